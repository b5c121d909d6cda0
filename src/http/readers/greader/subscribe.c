/* SPDX-License-Identifier: ISC */
/* The Google Reader API: subscribing, also by a site's address, and OPML. */
#include "base/err.h"
#include "base/url.h"
#include "base/utf8.h"
#include "http/readers/add.h"
#include "http/readers/greader/greader.h"

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

enum MHD_Result greader_export(struct reader *rd)
{
	const struct subscriptions all = reader_subscriptions(rd);
	enum MHD_Result ok;
	int rc = subscriptions_export(&all, &rd->p.out);

	ok = list_page_send(&rd->p, "text/x-opml; charset=UTF-8", rc, &rd->err);
	list_page_begin(&rd->p, rd->r);
	return ok;
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
