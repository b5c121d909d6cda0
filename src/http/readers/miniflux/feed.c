/* SPDX-License-Identifier: ISC */
/* Miniflux' API: feeds, which are the account's subscriptions. */
#include <jansson.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/url.h"
#include "http/readers/add.h"
#include "http/readers/icons.h"
#include "http/readers/miniflux/miniflux.h"

/* A client may ask for a visit of a feed that had none for so long. */
#define REFRESH_MS (10 * FW_MINUTE_MS)
#define REFRESH_MAX 100 /* feeds of one request: the schedule visits all of them anyway */

/* ---- reading --------------------------------------------------------------------------------- */

static void feed_icon_json(struct fw_json *j, const struct reader_feed *f)
{
	if (!f->icon_id) {
		fw_json_null(j, "icon");
		return;
	}
	fw_json_object(j, "icon");
	fw_json_int(j, "feed_id", f->id);
	fw_json_int(j, "icon_id", f->icon_id);
	fw_json_end(j);
}

/* What feedwheel lacks is as in a feed without it: clients with types expect each member. */
void miniflux_feed_json(struct reader *rd, const char *key, const struct reader_feed *f, const struct miniflux_lists *l)
{
	static const char *const EMPTY[] = {"etag_header", "last_modified_header", "scraper_rules", "rewrite_rules",
		"urlrewrite_rules", "blocklist_rules", "keeplist_rules", "block_filter_entry_rules",
		"keep_filter_entry_rules", "user_agent", "cookie", "username", "password", "description", "proxy_url",
		"apprise_service_urls", "webhook_url"};
	static const char *const FALSE[] = {"crawler", "ignore_http_cache", "allow_self_signed_certificates",
		"fetch_via_proxy", "hide_globally", "no_media_player", "disable_http2", "ntfy_enabled",
		"pushover_enabled"};
	const struct miniflux_category *c = miniflux_category_of(l, f->folder);
	struct fw_json *j = &rd->p.j;

	fw_json_object(j, key);
	fw_json_int(j, "id", f->id);
	fw_json_int(j, "user_id", rd->account.id);
	fw_json_text(j, "feed_url", f->url);
	fw_json_text(j, "site_url", f->home.len ? f->home : f->url);
	fw_json_text(j, "title", f->title.len ? f->title : f->url);
	miniflux_time(j, "checked_at", f->visit_ms);
	miniflux_time(j, "next_check_at", f->due_ms);
	fw_json_text(j, "parsing_error_message", f->error);
	fw_json_int(j, "parsing_error_count", f->fail_n);
	fw_json_bool(j, "disabled", f->status != FW_FEED_ACTIVE);
	for (size_t i = 0; i < FW_N(EMPTY); i++)
		fw_json_cstr(j, EMPTY[i], "");
	for (size_t i = 0; i < FW_N(FALSE); i++)
		fw_json_bool(j, FALSE[i], false);
	miniflux_category_json(rd, "category", c ? c : l->category, false);
	feed_icon_json(j, f);
	fw_json_end(j);
}

const struct reader_feed *miniflux_feed_path(
	struct reader *rd, bool brief, struct miniflux_lists *l, enum MHD_Result *ok)
{
	int rc = miniflux_lists_read(rd, rd->r->id, brief, l);

	if (!rc && l->feeds.n)
		return l->feeds.feed;
	*ok = rc ? http_store_failed(rd->r, rc, &rd->err) : miniflux_missing(rd, "feed");
	return NULL;
}

/* folder absent: all. */
static enum MHD_Result feed_list_send(struct reader *rd, const struct miniflux_lists *l, struct fw_str folder, int rc)
{
	fw_json_array(&rd->p.j, NULL);
	for (size_t i = 0; !rc && i < l->feeds.n; i++) {
		if (!folder.p || fw_str_eq(l->feeds.feed[i].folder, folder))
			miniflux_feed_json(rd, NULL, &l->feeds.feed[i], l);
	}
	fw_json_end(&rd->p.j);
	return reader_json(rd, rc);
}

enum MHD_Result miniflux_feed_list(struct reader *rd)
{
	struct miniflux_lists l;
	int rc = miniflux_lists_read(rd, 0, false, &l);

	return feed_list_send(rd, &l, FW_STR_NONE, rc);
}

enum MHD_Result miniflux_category_feeds(struct reader *rd)
{
	struct miniflux_lists l;
	enum MHD_Result ok = MHD_NO;
	const struct miniflux_category *c = miniflux_category_path(rd, false, &l, &ok);

	return c ? feed_list_send(rd, &l, c->folder, 0) : ok;
}

static enum MHD_Result feed_one_send(struct reader *rd, unsigned status)
{
	struct miniflux_lists l;
	enum MHD_Result ok = MHD_NO;
	const struct reader_feed *f = miniflux_feed_path(rd, false, &l, &ok);

	if (!f)
		return ok;
	miniflux_feed_json(rd, NULL, f, &l);
	return reader_json_status(rd, status, 0);
}

enum MHD_Result miniflux_feed_get(struct reader *rd)
{
	return feed_one_send(rd, MHD_HTTP_OK);
}

/* ---- icons ----------------------------------------------------------------------------------- */

static enum MHD_Result feed_icon_send(struct reader *rd, const struct reader_feed *f)
{
	struct fw_buf data = FW_BUF_INIT(0);
	struct fw_icon icon;
	int rc = http_icon_get(rd->r, &rd->p.arena, &f->icon_at, &icon, &rd->err);

	if (!rc && !icon.type.p)
		return miniflux_missing(rd, "icon");
	fw_json_object(&rd->p.j, NULL);
	if (!rc) {
		http_icon_data(&data, &icon);
		fw_json_int(&rd->p.j, "id", icon.id);
		fw_json_str(&rd->p.j, "mime_type", icon.type);
		fw_json_str(&rd->p.j, "data", fw_buf_str(&data));
		rc = data.rc ? fw_no_memory(&rd->err) : 0;
	}
	fw_json_end(&rd->p.j);
	fw_buf_finish(&data);
	return reader_json(rd, rc);
}

enum MHD_Result miniflux_feed_icon(struct reader *rd)
{
	struct miniflux_lists l;
	enum MHD_Result ok = MHD_NO;
	const struct reader_feed *f = miniflux_feed_path(rd, false, &l, &ok);

	return f ? feed_icon_send(rd, f) : ok;
}

enum MHD_Result miniflux_icon(struct reader *rd)
{
	struct reader_feeds f;
	int rc = reader_feeds_read(rd, 0, false, &f);

	rc = rc ? rc : http_icons_read(rd, &f);
	if (rc)
		return http_store_failed(rd->r, rc, &rd->err);
	for (size_t i = 0; i < f.n; i++) {
		if (f.feed[i].icon_id == rd->r->id)
			return feed_icon_send(rd, &f.feed[i]);
	}
	return miniflux_missing(rd, "icon");
}

/* ---- counters -------------------------------------------------------------------------------- */

struct feed_counting {
	const struct reader_feeds *feeds;
	int64_t *read_n;
};

static int feed_count_read(void *ctx, const struct fw_stream_entry *e)
{
	struct feed_counting *c = ctx;
	const struct reader_feed *f = reader_feed_find(c->feeds, e->entry->feed_id);

	if (f)
		c->read_n[f - c->feeds->feed]++;
	return 0;
}

static void feed_counter_json(struct fw_json *j, int64_t feed_id, int64_t n)
{
	char key[24];

	(void)fw_snprintf(key, sizeof(key), "%lld", (long long)feed_id);
	if (n > 0)
		fw_json_int(j, key, n);
}

/* What is unread is known; what is read is counted, by a walk of the numbers. */
enum MHD_Result miniflux_counters(struct reader *rd)
{
	const struct fw_stream s = {.account_id = rd->account.id, .read = FW_READ_READ};
	struct reader_feeds f;
	struct feed_counting c = {.feeds = &f};
	struct fw_json *j = &rd->p.j;
	int rc = reader_feeds_read(rd, 0, true, &f);

	c.read_n = rc ? NULL : fw_arena_calloc(&rd->p.arena, f.n + 1, sizeof(*c.read_n));
	if (!rc && !c.read_n)
		rc = fw_no_memory(&rd->err);
	rc = rc ? rc : fw_account_ids(rd->r->store, &s, feed_count_read, &c, &rd->err);
	fw_json_object(j, NULL);
	fw_json_object(j, "reads");
	for (size_t i = 0; !rc && i < f.n; i++)
		feed_counter_json(j, f.feed[i].id, c.read_n[i]);
	fw_json_end(j);
	fw_json_object(j, "unreads");
	for (size_t i = 0; !rc && i < f.n; i++)
		feed_counter_json(j, f.feed[i].id, f.feed[i].unread_n);
	fw_json_end(j);
	fw_json_end(j);
	return reader_json(rd, rc);
}

/* ---- changes --------------------------------------------------------------------------------- */

/* The folder of the category in category_id; absent: the member is, or 0. False: responded. */
static bool feed_folder_read(struct reader *rd, const json_t *o, struct fw_str *folder, enum MHD_Result *ok)
{
	const json_t *v = json_object_get(o, "category_id");
	const struct miniflux_category *c;
	struct miniflux_lists l;
	int rc;

	*folder = FW_STR_NONE;
	if (!v || json_is_null(v) || (json_is_integer(v) && !json_integer_value(v)))
		return true;
	rc = miniflux_lists_read(rd, 0, true, &l);
	c = rc || !json_is_integer(v) ? NULL : miniflux_category_find(&l, json_integer_value(v));
	if (c)
		*folder = c->folder;
	else
		*ok = rc ? http_store_failed(rd->r, rc, &rd->err) :
			   http_problem(rd->r, MHD_HTTP_BAD_REQUEST, "invalid",
				   "category_id: the account has no such category");
	return c != NULL;
}

static enum MHD_Result feed_invalid(struct reader *rd, const char *words)
{
	return http_problem(rd->r, MHD_HTTP_BAD_REQUEST, "invalid", "%s", words);
}

/* Is this address that of a subscription? */
static int feed_is_subscribed(struct reader *rd, struct fw_str text, bool *is)
{
	struct fw_str url, user, pass;
	struct reader_feeds subscribed;
	struct fw_feed f;
	int rc = fw_url_clean(&rd->p.arena, text, &url, &user, &pass, NULL);

	*is = false;
	rc = rc ? rc : fw_store_feed_find(rd->r->store, 0, url, &rd->p.arena, &f, &rd->err);
	if (rc)
		return rc == FW_EINVAL || rc == FW_ENOTFOUND ? 0 : rc;
	rc = reader_feeds_read(rd, f.id, true, &subscribed);
	*is = !rc && subscribed.n > 0;
	return rc;
}

static enum MHD_Result feed_add_send(struct reader *rd, int64_t id)
{
	fw_json_object(&rd->p.j, NULL);
	fw_json_int(&rd->p.j, "feed_id", id);
	fw_json_end(&rd->p.j);
	return reader_json_status(rd, MHD_HTTP_CREATED, 0);
}

static enum MHD_Result feed_add(struct reader *rd, const json_t *o)
{
	struct fw_feed_new f = {.id = 0};
	struct fw_str text;
	const char *why;
	enum MHD_Result ok = MHD_NO;
	bool is;
	int rc;

	if (!miniflux_text(rd, o, "feed_url", FW_URL_MAX, &text, &ok) ||
		!miniflux_text(rd, o, "title", FW_LABEL_NAME_MAX, &f.user_title, &ok) ||
		!miniflux_text(rd, o, "username", FW_URL_MAX, &f.username, &ok) ||
		!miniflux_text(rd, o, "password", FW_URL_MAX, &f.password, &ok) ||
		!feed_folder_read(rd, o, &f.folder, &ok))
		return ok;
	if (!text.len)
		return feed_invalid(rd, "feed_url: missing");
	rc = feed_is_subscribed(rd, text, &is);
	if (rc || is)
		return rc ? http_store_failed(rd->r, rc, &rd->err) :
			    feed_invalid(rd, "feed_url: this feed already exists");
	if (!reader_address_add(rd, text, &f, &why, &ok))
		return ok;
	return f.id ? feed_add_send(rd, f.id) : feed_invalid(rd, why);
}

enum MHD_Result miniflux_feed_add(struct reader *rd)
{
	enum MHD_Result ok = MHD_NO;
	json_t *o = miniflux_body(rd, &ok);

	if (o)
		ok = feed_add(rd, o);
	json_decref(o);
	return ok;
}

static enum MHD_Result feed_set(struct reader *rd, const struct reader_feed *f, const json_t *o)
{
	struct fw_subscription set = {.feed_id = f->id};
	struct fw_str url;
	enum MHD_Result ok = MHD_NO;
	int rc = 0;

	if (!miniflux_text(rd, o, "title", FW_LABEL_NAME_MAX, &set.title, &ok) ||
		!miniflux_text(rd, o, "feed_url", FW_URL_MAX, &url, &ok) || !feed_folder_read(rd, o, &set.folder, &ok))
		return ok;
	if (url.p && !fw_str_eq(url, f->url))
		return feed_invalid(rd, "feed_url: cannot change: add the other feed, and remove this one");
	if (set.title.p && !set.title.len)
		return feed_invalid(rd, "title: is empty");
	if (set.title.p || set.folder.p)
		rc = fw_account_subscription_set(rd->r->store, rd->account.id, &set, &rd->err);
	return rc ? http_store_failed(rd->r, rc, &rd->err) : feed_one_send(rd, MHD_HTTP_CREATED);
}

enum MHD_Result miniflux_feed_set(struct reader *rd)
{
	struct miniflux_lists l;
	const struct reader_feed *f;
	enum MHD_Result ok = MHD_NO;
	json_t *o = miniflux_body(rd, &ok);

	if (!o)
		return ok;
	f = miniflux_feed_path(rd, false, &l, &ok);
	if (f)
		ok = feed_set(rd, f, o);
	json_decref(o);
	return ok;
}

enum MHD_Result miniflux_feed_remove(struct reader *rd)
{
	return miniflux_done(rd, fw_account_unsubscribe(rd->r->store, rd->account.id, rd->r->id, &rd->err));
}

enum MHD_Result miniflux_feed_read(struct reader *rd)
{
	const struct fw_stream s = {.account_id = rd->account.id, .feed_id = rd->r->id};
	struct miniflux_lists l;
	enum MHD_Result ok = MHD_NO;

	return miniflux_feed_path(rd, true, &l, &ok) ?
		miniflux_done(rd, fw_account_mark_read(rd->r->store, &s, 0, 0, &rd->err)) :
		ok;
}

/* ---- refresh --------------------------------------------------------------------------------- */

/* Its server's wish for fewer requests is kept, and so is the schedule's minimum. */
static bool feed_may_refresh(const struct reader_feed *f, int64_t now_ms)
{
	return f->status == FW_FEED_ACTIVE && f->due_ms > now_ms && now_ms - f->visit_ms >= REFRESH_MS &&
		f->http_status != MHD_HTTP_TOO_MANY_REQUESTS && f->http_status != MHD_HTTP_SERVICE_UNAVAILABLE;
}

/* Make feeds due, those of a folder or (absent) all. */
static int feeds_refresh(struct reader *rd, const struct reader_feeds *f, struct fw_str folder)
{
	int64_t now_ms = http_now_ms(rd->r);
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; i < f->n && n < REFRESH_MAX && !rc; i++) {
		const struct fw_feed due = {
			.id = f->feed[i].id, .due_at_ms = now_ms, .why = FW_STR("a reader's refresh")};

		if ((folder.p && !fw_str_eq(f->feed[i].folder, folder)) || !feed_may_refresh(&f->feed[i], now_ms))
			continue;
		n++;
		rc = fw_store_feed_set(rd->r->store, &due, FW_SET_DUE, &rd->err);
		if (rc == FW_ENOTFOUND) /* removed meanwhile */
			rc = 0;
	}
	return rc;
}

enum MHD_Result miniflux_refresh(struct reader *rd)
{
	struct reader_feeds f;
	int rc = reader_feeds_read(rd, 0, false, &f);

	return miniflux_done(rd, rc ? rc : feeds_refresh(rd, &f, FW_STR_NONE));
}

enum MHD_Result miniflux_feed_refresh(struct reader *rd)
{
	struct miniflux_lists l;
	enum MHD_Result ok = MHD_NO;

	return miniflux_feed_path(rd, false, &l, &ok) ? miniflux_done(rd, feeds_refresh(rd, &l.feeds, FW_STR_NONE)) :
							ok;
}

enum MHD_Result miniflux_category_refresh(struct reader *rd)
{
	struct miniflux_lists l;
	enum MHD_Result ok = MHD_NO;
	const struct miniflux_category *c = miniflux_category_path(rd, false, &l, &ok);

	return c ? miniflux_done(rd, feeds_refresh(rd, &l.feeds, c->folder)) : ok;
}

/* ---- discover -------------------------------------------------------------------------------- */

static const char *discover_type(enum fw_format format)
{
	const char *name = fw_format_name(format);

	return strncmp(name, "atom", 4) == 0 ? "atom" : strncmp(name, "json", 4) == 0 ? "json" : "rss";
}

static enum MHD_Result discover_send(struct reader *rd, const struct reader_found *f, size_t n)
{
	struct fw_json *j = &rd->p.j;

	fw_json_array(j, NULL);
	for (size_t i = 0; i < n; i++) {
		fw_json_object(j, NULL);
		fw_json_text(j, "url", f[i].url);
		fw_json_text(j, "title", f[i].title);
		fw_json_cstr(j, "type", discover_type(f[i].format));
		fw_json_end(j);
	}
	fw_json_end(j);
	return reader_json(rd, 0);
}

enum MHD_Result miniflux_discover(struct reader *rd)
{
	struct reader_found *found = NULL;
	struct fw_str text = FW_STR_NONE;
	enum MHD_Result ok = MHD_NO;
	json_t *o = miniflux_body(rd, &ok);
	bool good = o && miniflux_text(rd, o, "url", FW_URL_MAX, &text, &ok);
	const char *why;
	size_t n;

	if (good && !text.len) {
		ok = feed_invalid(rd, "url: missing");
		good = false;
	}
	if (good && reader_address_look(rd, text, &found, &n, &why, &ok))
		ok = n ? discover_send(rd, found, n) :
			 http_problem(rd->r, MHD_HTTP_NOT_FOUND, "not_found", "no feed found: %s", why);
	json_decref(o);
	return ok;
}
