/* SPDX-License-Identifier: ISC */
/* The Google Reader API: subscribing, also by a site's address, and OPML. */
#include "base/clock.h"
#include "base/err.h"
#include "base/url.h"
#include "base/utf8.h"
#include "http/readers/address.h"
#include "http/readers/greader/greader.h"
#include "http/readers/subscriptions.h"
#include "base/banned.h"

#define EDITS_MAX 1000

/* ---- subscription/edit ----------------------------------------------------------------------- */

/* What an edit sets: folder and title; absent ones stay. False: responded. */
static bool subscribe_folder_read(struct reader *rd, const char *name, struct fw_str *folder, enum MHD_Result *ok)
{
	struct fw_str text = http_form_get(&rd->form, name);
	struct greader_stream stream;

	*folder = FW_STR_NONE;
	if (!text.len)
		return true;
	if (!greader_stream_read(text, &stream)) {
		*ok = reader_wrong(rd, name, "user/-/label/NAME");
		return false;
	}
	*folder = stream.kind == GREADER_NAMED ? stream.name : FW_STR_NONE; /* states mean nothing here */
	return true;
}

/* Remove the folder `from` of a subscription, unless it is in another. */
static int subscribe_folder_leave(struct reader *rd, struct fw_str from, struct fw_subscription *set)
{
	struct reader_feeds now;
	int rc = reader_feeds_read(rd, set->feed_id, true, &now);

	if (!rc && now.n && fw_str_eq(now.feed[0].folder, from))
		set->folder = FW_STR("");
	return rc;
}

static int subscribe_edit_one(
	struct reader *rd, const struct greader_stream *stream, struct fw_str from, struct fw_subscription set)
{
	int rc = greader_feed_id(rd, stream, &set.feed_id);

	if (!rc && !set.feed_id)
		return FW_ERR(&rd->err, FW_ENOTFOUND, "there is no such feed");
	if (!rc && from.p && !set.folder.p)
		rc = subscribe_folder_leave(rd, from, &set);
	return rc ? rc : fw_account_subscription_set(rd->r->store, rd->account.id, &set, &rd->err);
}

static int subscribe_one(struct reader *rd, const struct greader_stream *stream, const struct fw_subscription *set)
{
	struct fw_feed_new f = {.url = stream->url, .user_title = set->title, .folder = set->folder};
	size_t added;

	/* by counting numbers one could see the address of every feed, with the secrets in it */
	if (stream->feed_id)
		return subscribe_edit_one(rd, stream, FW_STR_NONE, *set);
	return fw_account_import(rd->r->store, rd->account.id, &f, 1, http_now_ms(rd->r), &added, &rd->err);
}

static int subscribe_leave(struct reader *rd, const struct greader_stream *stream)
{
	int64_t id;
	int rc = greader_feed_id(rd, stream, &id);

	if (!rc && !id)
		return FW_ERR(&rd->err, FW_ENOTFOUND, "there is no such feed");
	return rc ? rc : fw_account_unsubscribe(rd->r->store, rd->account.id, id, &rd->err);
}

enum MHD_Result greader_subscription_edit(struct reader *rd)
{
	struct fw_str ac = http_form_get(&rd->form, "ac"), from, text;
	struct fw_subscription set = {.feed_id = 0};
	struct greader_stream stream;
	size_t at = 0, title_at = 0;
	enum MHD_Result ok;
	int rc = 0;

	if (!fw_str_eq(ac, FW_STR("subscribe")) && !fw_str_eq(ac, FW_STR("unsubscribe")) &&
		!fw_str_eq(ac, FW_STR("edit")))
		return reader_wrong(rd, "ac", "one of: subscribe unsubscribe edit");
	if (!http_form_get(&rd->form, "s").p || http_form_count(&rd->form, "s") > EDITS_MAX)
		return reader_wrong(rd, "s", "feed/ID or feed/URL, at most 1000 times");
	if (!subscribe_folder_read(rd, "a", &set.folder, &ok) || !subscribe_folder_read(rd, "r", &from, &ok))
		return ok;
	while (!rc && (text = http_form_next(&rd->form, "s", &at)).p) {
		set.title = http_form_next(&rd->form, "t", &title_at); /* the first title is the first stream's */
		if (!greader_stream_read(text, &stream) || stream.kind != GREADER_FEED)
			return reader_wrong(rd, "s", "feed/ID or feed/URL");
		if (!fw_utf8_fits(set.title, FW_LABEL_NAME_MAX))
			return reader_wrong(rd, "t", "a title");
		if (ac.p[0] == 's')
			rc = subscribe_one(rd, &stream, &set);
		else if (ac.p[0] == 'u')
			rc = subscribe_leave(rd, &stream);
		else
			rc = subscribe_edit_one(rd, &stream, from, set);
	}
	return rc ? http_store_failed(rd->r, rc, &rd->err) : greader_ok(rd);
}

/* ---- addresses ------------------------------------------------------------------------------- */

/*
 * Open an address, which address_close() follows in any case. False: responded. *why: the address
 * is invalid.
 */
static bool subscribe_open(
	struct reader *rd, struct fw_str text, struct address *q, const char **why, enum MHD_Result *ok)
{
	*q = (struct address){.r = rd->r, .arena = &rd->p.arena, .err = &rd->err};
	*why = NULL;
	switch (address_open(q, text, false)) {
	case ADDRESS_READY:
		return true;
	case ADDRESS_INVALID:
		*why = rd->err.text;
		return true;
	case ADDRESS_LATER:
		*ok = MHD_YES;
		return false;
	case ADDRESS_BUSY:
		*ok = http_problem(rd->r, MHD_HTTP_SERVICE_UNAVAILABLE, "busy", ADDRESS_BUSY_TEXT);
		return false;
	case ADDRESS_FAILED:
		break;
	}
	*ok = http_store_failed(rd->r, q->rc, &rd->err);
	return false;
}

/* Words that outlive the response. */
static const char *subscribe_why(struct reader *rd, const struct address *q)
{
	rd->err = q->answer.err;
	return rd->err.text;
}

static int subscribe_address(struct reader *rd, struct address *q, struct fw_feed_new *f, const char **why)
{
	int rc = address_follow(q);

	if (!rc && q->fetched && !q->answer.doc)
		*why = subscribe_why(rd, q);
	else if (!rc)
		rc = address_subscribe(q, rd->account.id, f, http_now_ms(rd->r));
	return rc;
}

bool reader_address_add(
	struct reader *rd, struct fw_str text, struct fw_feed_new *f, const char **why, enum MHD_Result *ok)
{
	struct address q;
	bool good = subscribe_open(rd, text, &q, why, ok);
	int rc = 0;

	if (good && !*why)
		rc = subscribe_address(rd, &q, f, why);
	address_close(&q);
	if (rc)
		*ok = http_store_failed(rd->r, rc, &rd->err);
	return good && !rc;
}

static struct reader_found subscribe_found(struct reader *rd, struct fw_str url, struct fw_str title)
{
	return (struct reader_found){
		.url = fw_arena_str(&rd->p.arena, url), .title = fw_arena_str(&rd->p.arena, title.len ? title : url)};
}

static int subscribe_found_list(struct reader *rd, const struct address *q, struct reader_found **found, size_t *n)
{
	const struct fw_link *l;
	size_t max = 1;

	for (l = q->answer.feeds; l; l = l->next)
		max++;
	*found = fw_arena_calloc(&rd->p.arena, max, sizeof(**found));
	if (!*found)
		return fw_no_memory(&rd->err);
	if (!q->fetched) {
		(*found)[(*n)++] = subscribe_found(rd, q->url, FW_STR_NONE);
	} else if (q->answer.doc) {
		(*found)[*n] = subscribe_found(rd, q->url, q->answer.doc->title);
		(*found)[(*n)++].format = q->answer.doc->format;
	} else {
		for (l = q->answer.feeds; l; l = l->next)
			(*found)[(*n)++] = subscribe_found(rd, l->href, l->title);
	}
	return rd->p.arena.failed ? fw_no_memory(&rd->err) : 0;
}

bool reader_address_look(struct reader *rd, struct fw_str text, struct reader_found **found, size_t *n,
	const char **why, enum MHD_Result *ok)
{
	struct address q;
	bool good = subscribe_open(rd, text, &q, why, ok);
	int rc = 0;

	*n = 0;
	if (good && !*why)
		rc = subscribe_found_list(rd, &q, found, n);
	if (good && !rc && !*n && !*why)
		*why = subscribe_why(rd, &q);
	address_close(&q);
	if (rc)
		*ok = http_store_failed(rd->r, rc, &rd->err);
	return good && !rc;
}

/* ---- quickadd -------------------------------------------------------------------------------- */

static enum MHD_Result quickadd_send(struct reader *rd, struct fw_str query, int64_t feed_id, const char *why)
{
	struct reader_feeds f = {.n = 0};
	struct fw_json *j = &rd->p.j;
	char id[32];
	int rc = feed_id ? reader_feeds_read(rd, feed_id, false, &f) : 0;

	(void)fw_snprintf(id, sizeof(id), "feed/%lld", (long long)feed_id);
	fw_json_object(j, NULL);
	fw_json_int(j, "numResults", feed_id ? 1 : 0);
	fw_json_str(j, "query", query);
	if (feed_id) {
		fw_json_cstr(j, "streamId", id);
		fw_json_str(j, "streamName", f.n ? f.feed[0].title : query);
	} else {
		fw_json_cstr(j, "error", why);
	}
	fw_json_end(j);
	return reader_json(rd, rc);
}

enum MHD_Result greader_quickadd(struct reader *rd)
{
	struct fw_str query = fw_str_trim(http_form_get(&rd->form, "quickadd")), text = query;
	struct fw_feed_new f = {.id = 0};
	const char *why;
	enum MHD_Result ok;

	if (!query.len || !fw_utf8_fits(query, FW_URL_MAX))
		return reader_wrong(rd, "quickadd", "the address of a feed or a site");
	if (fw_str_starts(text, FW_STR("feed/")))
		text = fw_str_sub(text, 5, text.len);
	return reader_address_add(rd, text, &f, &why, &ok) ? quickadd_send(rd, query, f.id, why) : ok;
}

/* ---- OPML ------------------------------------------------------------------------------------ */

static struct subscriptions subscribe_all(struct reader *rd)
{
	return (struct subscriptions){.store = rd->r->store,
		.account_id = rd->account.id,
		.now_ms = http_now_ms(rd->r),
		.arena = &rd->p.arena,
		.err = &rd->err};
}

enum MHD_Result greader_export(struct reader *rd)
{
	const struct subscriptions all = subscribe_all(rd);
	enum MHD_Result ok;
	int rc = subscriptions_export(&all, &rd->p.out);

	ok = list_page_send(&rd->p, "text/x-opml; charset=UTF-8", rc, &rd->err);
	list_page_begin(&rd->p, rd->r);
	return ok;
}

bool reader_opml_add(struct reader *rd, size_t *n, size_t *refused_n, enum MHD_Result *ok)
{
	const struct subscriptions all = subscribe_all(rd);
	struct subscriptions_imported done;
	int rc = subscriptions_import(&all, fw_buf_str(&rd->r->body), &done);

	*n = done.added_n + done.had_n;
	*refused_n = done.refused_n;
	if (rc == FW_EFORMAT)
		*ok = http_problem(rd->r, MHD_HTTP_BAD_REQUEST, "malformed", "%s", rd->err.text);
	else if (rc)
		*ok = http_store_failed(rd->r, rc, &rd->err);
	return !rc;
}

enum MHD_Result greader_import(struct reader *rd)
{
	struct fw_buf out = FW_BUF_INIT(0);
	size_t n, refused_n;
	enum MHD_Result ok;

	if (!reader_opml_add(rd, &n, &refused_n, &ok))
		return ok;
	fw_buf_addf(&out, "OK: %zu", n);
	if (refused_n)
		fw_buf_addf(&out, " (%s refused: invalid, or with another login)",
			FW_COUNT_OF((int64_t)refused_n, "address was", "addresses were"));
	return http_send(rd->r, MHD_HTTP_OK, "text/plain; charset=UTF-8", &out);
}
