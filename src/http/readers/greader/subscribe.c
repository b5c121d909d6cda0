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
static bool subscribe_folder_read(struct greader *g, const char *name, struct fw_str *folder, enum MHD_Result *ok)
{
	struct fw_str text = http_form_get(&g->form, name);
	struct greader_stream stream;

	*folder = FW_STR_NONE;
	if (!text.len)
		return true;
	if (!greader_stream_read(text, &stream)) {
		*ok = greader_wrong(g, name, "user/-/label/NAME");
		return false;
	}
	*folder = stream.kind == GREADER_NAMED ? stream.name : FW_STR_NONE; /* states mean nothing here */
	return true;
}

/* Remove the folder `from` of a subscription, unless it is in another. */
static int subscribe_folder_leave(struct greader *g, struct fw_str from, struct fw_subscription *set)
{
	struct greader_feeds now;
	int rc = greader_feeds_read(g, set->feed_id, true, &now);

	if (!rc && now.n && fw_str_eq(now.feed[0].folder, from))
		set->folder = FW_STR("");
	return rc;
}

static int subscribe_edit_one(
	struct greader *g, const struct greader_stream *stream, struct fw_str from, struct fw_subscription set)
{
	int rc = greader_feed_id(g, stream, &set.feed_id);

	if (!rc && !set.feed_id)
		return FW_ERR(&g->err, FW_ENOTFOUND, "there is no such feed");
	if (!rc && from.p && !set.folder.p)
		rc = subscribe_folder_leave(g, from, &set);
	return rc ? rc : fw_account_subscription_set(g->r->store, g->account.id, &set, &g->err);
}

static int subscribe_one(struct greader *g, const struct greader_stream *stream, const struct fw_subscription *set)
{
	struct fw_feed_new f = {.url = stream->url, .user_title = set->title, .folder = set->folder};
	size_t added;

	/* by counting numbers one could see the address of every feed, with the secrets in it */
	if (stream->feed_id)
		return subscribe_edit_one(g, stream, FW_STR_NONE, *set);
	return fw_account_import(g->r->store, g->account.id, &f, 1, http_now_ms(g->r), &added, &g->err);
}

static int subscribe_leave(struct greader *g, const struct greader_stream *stream)
{
	int64_t id;
	int rc = greader_feed_id(g, stream, &id);

	if (!rc && !id)
		return FW_ERR(&g->err, FW_ENOTFOUND, "there is no such feed");
	return rc ? rc : fw_account_unsubscribe(g->r->store, g->account.id, id, &g->err);
}

enum MHD_Result greader_subscription_edit(struct greader *g)
{
	struct fw_str ac = http_form_get(&g->form, "ac"), from, text;
	struct fw_subscription set = {.feed_id = 0};
	struct greader_stream stream;
	size_t at = 0, title_at = 0;
	enum MHD_Result ok;
	int rc = 0;

	if (!fw_str_eq(ac, FW_STR("subscribe")) && !fw_str_eq(ac, FW_STR("unsubscribe")) &&
		!fw_str_eq(ac, FW_STR("edit")))
		return greader_wrong(g, "ac", "one of: subscribe unsubscribe edit");
	if (!http_form_get(&g->form, "s").p || http_form_count(&g->form, "s") > EDITS_MAX)
		return greader_wrong(g, "s", "feed/ID or feed/URL, at most 1000 times");
	if (!subscribe_folder_read(g, "a", &set.folder, &ok) || !subscribe_folder_read(g, "r", &from, &ok))
		return ok;
	while (!rc && (text = http_form_next(&g->form, "s", &at)).p) {
		set.title = http_form_next(&g->form, "t", &title_at); /* the first title is the first stream's */
		if (!greader_stream_read(text, &stream) || stream.kind != GREADER_FEED)
			return greader_wrong(g, "s", "feed/ID or feed/URL");
		if (!fw_utf8_fits(set.title, FW_LABEL_NAME_MAX))
			return greader_wrong(g, "t", "a title");
		if (ac.p[0] == 's')
			rc = subscribe_one(g, &stream, &set);
		else if (ac.p[0] == 'u')
			rc = subscribe_leave(g, &stream);
		else
			rc = subscribe_edit_one(g, &stream, from, set);
	}
	return rc ? http_store_failed(g->r, rc, &g->err) : greader_ok(g);
}

/* ---- addresses ------------------------------------------------------------------------------- */

/*
 * Open an address, which address_close() follows in any case. False: responded. *why: the address
 * is invalid.
 */
static bool subscribe_open(
	struct greader *g, struct fw_str text, struct address *q, const char **why, enum MHD_Result *ok)
{
	*q = (struct address){.r = g->r, .arena = &g->p.arena, .err = &g->err};
	*why = NULL;
	switch (address_open(q, text, false)) {
	case ADDRESS_READY:
		return true;
	case ADDRESS_INVALID:
		*why = g->err.text;
		return true;
	case ADDRESS_LATER:
		*ok = MHD_YES;
		return false;
	case ADDRESS_BUSY:
		*ok = http_problem(g->r, MHD_HTTP_SERVICE_UNAVAILABLE, "busy", ADDRESS_BUSY_TEXT);
		return false;
	case ADDRESS_FAILED:
		break;
	}
	*ok = http_store_failed(g->r, q->rc, &g->err);
	return false;
}

/* Words that outlive the response. */
static const char *subscribe_why(struct greader *g, const struct address *q)
{
	g->err = q->answer.err;
	return g->err.text;
}

static int subscribe_address(struct greader *g, struct address *q, struct fw_feed_new *f, const char **why)
{
	int rc = address_follow(q);

	if (!rc && q->fetched && !q->answer.doc)
		*why = subscribe_why(g, q);
	else if (!rc)
		rc = address_subscribe(q, g->account.id, f, http_now_ms(g->r));
	return rc;
}

bool greader_address_add(
	struct greader *g, struct fw_str text, struct fw_feed_new *f, const char **why, enum MHD_Result *ok)
{
	struct address q;
	bool good = subscribe_open(g, text, &q, why, ok);
	int rc = 0;

	if (good && !*why)
		rc = subscribe_address(g, &q, f, why);
	address_close(&q);
	if (rc)
		*ok = http_store_failed(g->r, rc, &g->err);
	return good && !rc;
}

static struct greader_found subscribe_found(struct greader *g, struct fw_str url, struct fw_str title)
{
	return (struct greader_found){
		.url = fw_arena_str(&g->p.arena, url), .title = fw_arena_str(&g->p.arena, title.len ? title : url)};
}

static int subscribe_found_list(struct greader *g, const struct address *q, struct greader_found **found, size_t *n)
{
	const struct fw_link *l;
	size_t max = 1;

	for (l = q->answer.feeds; l; l = l->next)
		max++;
	*found = fw_arena_calloc(&g->p.arena, max, sizeof(**found));
	if (!*found)
		return fw_no_memory(&g->err);
	if (!q->fetched) {
		(*found)[(*n)++] = subscribe_found(g, q->url, FW_STR_NONE);
	} else if (q->answer.doc) {
		(*found)[*n] = subscribe_found(g, q->url, q->answer.doc->title);
		(*found)[(*n)++].format = q->answer.doc->format;
	} else {
		for (l = q->answer.feeds; l; l = l->next)
			(*found)[(*n)++] = subscribe_found(g, l->href, l->title);
	}
	return g->p.arena.failed ? fw_no_memory(&g->err) : 0;
}

bool greader_address_look(struct greader *g, struct fw_str text, struct greader_found **found, size_t *n,
	const char **why, enum MHD_Result *ok)
{
	struct address q;
	bool good = subscribe_open(g, text, &q, why, ok);
	int rc = 0;

	*n = 0;
	if (good && !*why)
		rc = subscribe_found_list(g, &q, found, n);
	if (good && !rc && !*n && !*why)
		*why = subscribe_why(g, &q);
	address_close(&q);
	if (rc)
		*ok = http_store_failed(g->r, rc, &g->err);
	return good && !rc;
}

/* ---- quickadd -------------------------------------------------------------------------------- */

static enum MHD_Result quickadd_send(struct greader *g, struct fw_str query, int64_t feed_id, const char *why)
{
	struct greader_feeds f = {.n = 0};
	struct fw_json *j = &g->p.j;
	char id[32];
	int rc = feed_id ? greader_feeds_read(g, feed_id, false, &f) : 0;

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
	return greader_json(g, rc);
}

enum MHD_Result greader_quickadd(struct greader *g)
{
	struct fw_str query = fw_str_trim(http_form_get(&g->form, "quickadd")), text = query;
	struct fw_feed_new f = {.id = 0};
	const char *why;
	enum MHD_Result ok;

	if (!query.len || !fw_utf8_fits(query, FW_URL_MAX))
		return greader_wrong(g, "quickadd", "the address of a feed or a site");
	if (fw_str_starts(text, FW_STR("feed/")))
		text = fw_str_sub(text, 5, text.len);
	return greader_address_add(g, text, &f, &why, &ok) ? quickadd_send(g, query, f.id, why) : ok;
}

/* ---- OPML ------------------------------------------------------------------------------------ */

static struct subscriptions subscribe_all(struct greader *g)
{
	return (struct subscriptions){.store = g->r->store,
		.account_id = g->account.id,
		.now_ms = http_now_ms(g->r),
		.arena = &g->p.arena,
		.err = &g->err};
}

enum MHD_Result greader_export(struct greader *g)
{
	const struct subscriptions all = subscribe_all(g);
	enum MHD_Result ok;
	int rc = subscriptions_export(&all, &g->p.out);

	ok = list_page_send(&g->p, "text/x-opml; charset=UTF-8", rc, &g->err);
	list_page_begin(&g->p, g->r);
	return ok;
}

bool greader_opml_add(struct greader *g, size_t *n, size_t *refused_n, enum MHD_Result *ok)
{
	const struct subscriptions all = subscribe_all(g);
	struct subscriptions_imported done;
	int rc = subscriptions_import(&all, fw_buf_str(&g->r->body), &done);

	*n = done.added_n + done.had_n;
	*refused_n = done.refused_n;
	if (rc == FW_EFORMAT)
		*ok = http_problem(g->r, MHD_HTTP_BAD_REQUEST, "malformed", "%s", g->err.text);
	else if (rc)
		*ok = http_store_failed(g->r, rc, &g->err);
	return !rc;
}

enum MHD_Result greader_import(struct greader *g)
{
	struct fw_buf out = FW_BUF_INIT(0);
	size_t n, refused_n;
	enum MHD_Result ok;

	if (!greader_opml_add(g, &n, &refused_n, &ok))
		return ok;
	fw_buf_addf(&out, "OK: %zu", n);
	if (refused_n)
		fw_buf_addf(&out, " (%s refused: invalid, or with another login)",
			FW_COUNT_OF((int64_t)refused_n, "address was", "addresses were"));
	return http_send(g->r, MHD_HTTP_OK, "text/plain; charset=UTF-8", &out);
}
