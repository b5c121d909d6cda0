/* SPDX-License-Identifier: ISC */
/* Miniflux' API: feeds, which are the account's subscriptions. */
#include <jansson.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/url.h"
#include "http/readers/icons.h"
#include "http/readers/miniflux/miniflux.h"
#include "base/banned.h"

/* A client may ask for a visit of a feed that had none for so long. */
#define REFRESH_MS (10 * FW_MINUTE_MS)
#define REFRESH_MAX 100 /* feeds of one request: the schedule visits all of them anyway */

/* ---- reading --------------------------------------------------------------------------------- */

static void feed_icon_json(struct fw_json *j, const struct greader_feed *f)
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
void miniflux_feed_json(
	struct greader *g, const char *key, const struct greader_feed *f, const struct miniflux_lists *l)
{
	static const char *const EMPTY[] = {"etag_header", "last_modified_header", "scraper_rules", "rewrite_rules",
		"urlrewrite_rules", "blocklist_rules", "keeplist_rules", "block_filter_entry_rules",
		"keep_filter_entry_rules", "user_agent", "cookie", "username", "password", "description", "proxy_url",
		"apprise_service_urls", "webhook_url"};
	static const char *const FALSE[] = {"crawler", "ignore_http_cache", "allow_self_signed_certificates",
		"fetch_via_proxy", "hide_globally", "no_media_player", "disable_http2", "ntfy_enabled",
		"pushover_enabled"};
	const struct miniflux_category *c = miniflux_category_of(l, f->folder);
	struct fw_json *j = &g->p.j;

	fw_json_object(j, key);
	fw_json_int(j, "id", f->id);
	fw_json_int(j, "user_id", g->account.id);
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
	miniflux_category_json(g, "category", c ? c : l->category, false);
	feed_icon_json(j, f);
	fw_json_end(j);
}

const struct greader_feed *miniflux_feed_path(
	struct greader *g, bool brief, struct miniflux_lists *l, enum MHD_Result *ok)
{
	int rc = miniflux_lists_read(g, g->r->id, brief, l);

	if (!rc && l->feeds.n)
		return l->feeds.feed;
	*ok = rc ? http_store_failed(g->r, rc, &g->err) : miniflux_missing(g, "feed");
	return NULL;
}

/* folder absent: all. */
static enum MHD_Result feed_list_send(struct greader *g, const struct miniflux_lists *l, struct fw_str folder, int rc)
{
	fw_json_array(&g->p.j, NULL);
	for (size_t i = 0; !rc && i < l->feeds.n; i++) {
		if (!folder.p || fw_str_eq(l->feeds.feed[i].folder, folder))
			miniflux_feed_json(g, NULL, &l->feeds.feed[i], l);
	}
	fw_json_end(&g->p.j);
	return greader_json(g, rc);
}

enum MHD_Result miniflux_feed_list(struct greader *g)
{
	struct miniflux_lists l;
	int rc = miniflux_lists_read(g, 0, false, &l);

	return feed_list_send(g, &l, FW_STR_NONE, rc);
}

enum MHD_Result miniflux_category_feeds(struct greader *g)
{
	struct miniflux_lists l;
	enum MHD_Result ok = MHD_NO;
	const struct miniflux_category *c = miniflux_category_path(g, false, &l, &ok);

	return c ? feed_list_send(g, &l, c->folder, 0) : ok;
}

static enum MHD_Result feed_one_send(struct greader *g, unsigned status)
{
	struct miniflux_lists l;
	enum MHD_Result ok = MHD_NO;
	const struct greader_feed *f = miniflux_feed_path(g, false, &l, &ok);

	if (!f)
		return ok;
	miniflux_feed_json(g, NULL, f, &l);
	return greader_json_status(g, status, 0);
}

enum MHD_Result miniflux_feed_get(struct greader *g)
{
	return feed_one_send(g, MHD_HTTP_OK);
}

/* ---- icons ----------------------------------------------------------------------------------- */

static enum MHD_Result feed_icon_send(struct greader *g, const struct greader_feed *f)
{
	struct fw_buf data = FW_BUF_INIT(0);
	struct fw_icon icon;
	int rc = http_icon_get(g->r, &g->p.arena, &f->icon_at, &icon, &g->err);

	if (!rc && !icon.type.p)
		return miniflux_missing(g, "icon");
	fw_json_object(&g->p.j, NULL);
	if (!rc) {
		http_icon_data(&data, &icon);
		fw_json_int(&g->p.j, "id", icon.id);
		fw_json_str(&g->p.j, "mime_type", icon.type);
		fw_json_str(&g->p.j, "data", fw_buf_str(&data));
		rc = data.rc ? fw_no_memory(&g->err) : 0;
	}
	fw_json_end(&g->p.j);
	fw_buf_finish(&data);
	return greader_json(g, rc);
}

enum MHD_Result miniflux_feed_icon(struct greader *g)
{
	struct miniflux_lists l;
	enum MHD_Result ok = MHD_NO;
	const struct greader_feed *f = miniflux_feed_path(g, false, &l, &ok);

	return f ? feed_icon_send(g, f) : ok;
}

enum MHD_Result miniflux_icon(struct greader *g)
{
	struct greader_feeds f;
	int rc = greader_feeds_read(g, 0, false, &f);

	rc = rc ? rc : http_icons_read(g, &f);
	if (rc)
		return http_store_failed(g->r, rc, &g->err);
	for (size_t i = 0; i < f.n; i++) {
		if (f.feed[i].icon_id == g->r->id)
			return feed_icon_send(g, &f.feed[i]);
	}
	return miniflux_missing(g, "icon");
}

/* ---- counters -------------------------------------------------------------------------------- */

struct feed_counting {
	const struct greader_feeds *feeds;
	int64_t *read_n;
};

static int feed_count_read(void *ctx, const struct fw_stream_entry *e)
{
	struct feed_counting *c = ctx;
	const struct greader_feed *f = greader_feed_find(c->feeds, e->entry->feed_id);

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
enum MHD_Result miniflux_counters(struct greader *g)
{
	const struct fw_stream s = {.account_id = g->account.id, .read = FW_READ_READ};
	struct greader_feeds f;
	struct feed_counting c = {.feeds = &f};
	struct fw_json *j = &g->p.j;
	int rc = greader_feeds_read(g, 0, true, &f);

	c.read_n = rc ? NULL : fw_arena_calloc(&g->p.arena, f.n + 1, sizeof(*c.read_n));
	if (!rc && !c.read_n)
		rc = fw_no_memory(&g->err);
	rc = rc ? rc : fw_account_ids(g->r->store, &s, feed_count_read, &c, &g->err);
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
	return greader_json(g, rc);
}

/* ---- changes --------------------------------------------------------------------------------- */

/* The folder of the category in category_id; absent: the member is, or 0. False: responded. */
static bool feed_folder_read(struct greader *g, const json_t *o, struct fw_str *folder, enum MHD_Result *ok)
{
	const json_t *v = json_object_get(o, "category_id");
	const struct miniflux_category *c;
	struct miniflux_lists l;
	int rc;

	*folder = FW_STR_NONE;
	if (!v || json_is_null(v) || (json_is_integer(v) && !json_integer_value(v)))
		return true;
	rc = miniflux_lists_read(g, 0, true, &l);
	c = rc || !json_is_integer(v) ? NULL : miniflux_category_find(&l, json_integer_value(v));
	if (c)
		*folder = c->folder;
	else
		*ok = rc ? http_store_failed(g->r, rc, &g->err) :
			   http_problem(g->r, MHD_HTTP_BAD_REQUEST, "invalid",
				   "category_id: the account has no such category");
	return c != NULL;
}

static enum MHD_Result feed_invalid(struct greader *g, const char *words)
{
	return http_problem(g->r, MHD_HTTP_BAD_REQUEST, "invalid", "%s", words);
}

/* Is this address that of a subscription? */
static int feed_is_subscribed(struct greader *g, struct fw_str text, bool *is)
{
	struct fw_str url, user, pass;
	struct greader_feeds subscribed;
	struct fw_feed f;
	int rc = fw_url_clean(&g->p.arena, text, &url, &user, &pass, NULL);

	*is = false;
	rc = rc ? rc : fw_store_feed_find(g->r->store, 0, url, &g->p.arena, &f, &g->err);
	if (rc)
		return rc == FW_EINVAL || rc == FW_ENOTFOUND ? 0 : rc;
	rc = greader_feeds_read(g, f.id, true, &subscribed);
	*is = !rc && subscribed.n > 0;
	return rc;
}

static enum MHD_Result feed_add_send(struct greader *g, int64_t id)
{
	fw_json_object(&g->p.j, NULL);
	fw_json_int(&g->p.j, "feed_id", id);
	fw_json_end(&g->p.j);
	return greader_json_status(g, MHD_HTTP_CREATED, 0);
}

static enum MHD_Result feed_add(struct greader *g, const json_t *o)
{
	struct fw_feed_new f = {.id = 0};
	struct fw_str text;
	const char *why;
	enum MHD_Result ok = MHD_NO;
	bool is;
	int rc;

	if (!miniflux_text(g, o, "feed_url", FW_URL_MAX, &text, &ok) ||
		!miniflux_text(g, o, "title", FW_LABEL_NAME_MAX, &f.user_title, &ok) ||
		!miniflux_text(g, o, "username", FW_URL_MAX, &f.username, &ok) ||
		!miniflux_text(g, o, "password", FW_URL_MAX, &f.password, &ok) ||
		!feed_folder_read(g, o, &f.folder, &ok))
		return ok;
	if (!text.len)
		return feed_invalid(g, "feed_url: missing");
	rc = feed_is_subscribed(g, text, &is);
	if (rc || is)
		return rc ? http_store_failed(g->r, rc, &g->err) :
			    feed_invalid(g, "feed_url: this feed already exists");
	if (!greader_address_add(g, text, &f, &why, &ok))
		return ok;
	return f.id ? feed_add_send(g, f.id) : feed_invalid(g, why);
}

enum MHD_Result miniflux_feed_add(struct greader *g)
{
	enum MHD_Result ok = MHD_NO;
	json_t *o = miniflux_body(g, &ok);

	if (o)
		ok = feed_add(g, o);
	json_decref(o);
	return ok;
}

static enum MHD_Result feed_set(struct greader *g, const struct greader_feed *f, const json_t *o)
{
	struct fw_subscription set = {.feed_id = f->id};
	struct fw_str url;
	enum MHD_Result ok = MHD_NO;
	int rc = 0;

	if (!miniflux_text(g, o, "title", FW_LABEL_NAME_MAX, &set.title, &ok) ||
		!miniflux_text(g, o, "feed_url", FW_URL_MAX, &url, &ok) || !feed_folder_read(g, o, &set.folder, &ok))
		return ok;
	if (url.p && !fw_str_eq(url, f->url))
		return feed_invalid(g, "feed_url: cannot change: add the other feed, and remove this one");
	if (set.title.p && !set.title.len)
		return feed_invalid(g, "title: is empty");
	if (set.title.p || set.folder.p)
		rc = fw_account_subscription_set(g->r->store, g->account.id, &set, &g->err);
	return rc ? http_store_failed(g->r, rc, &g->err) : feed_one_send(g, MHD_HTTP_CREATED);
}

enum MHD_Result miniflux_feed_set(struct greader *g)
{
	struct miniflux_lists l;
	const struct greader_feed *f;
	enum MHD_Result ok = MHD_NO;
	json_t *o = miniflux_body(g, &ok);

	if (!o)
		return ok;
	f = miniflux_feed_path(g, false, &l, &ok);
	if (f)
		ok = feed_set(g, f, o);
	json_decref(o);
	return ok;
}

enum MHD_Result miniflux_feed_remove(struct greader *g)
{
	return miniflux_done(g, fw_account_unsubscribe(g->r->store, g->account.id, g->r->id, &g->err));
}

enum MHD_Result miniflux_feed_read(struct greader *g)
{
	const struct fw_stream s = {.account_id = g->account.id, .feed_id = g->r->id};
	struct miniflux_lists l;
	enum MHD_Result ok = MHD_NO;

	return miniflux_feed_path(g, true, &l, &ok) ?
		miniflux_done(g, fw_account_mark_read(g->r->store, &s, 0, 0, &g->err)) :
		ok;
}

/* ---- refresh --------------------------------------------------------------------------------- */

/* Its server's wish for fewer requests is kept, and so is the schedule's minimum. */
static bool feed_may_refresh(const struct greader_feed *f, int64_t now_ms)
{
	return f->status == FW_FEED_ACTIVE && f->due_ms > now_ms && now_ms - f->visit_ms >= REFRESH_MS &&
		f->http_status != MHD_HTTP_TOO_MANY_REQUESTS && f->http_status != MHD_HTTP_SERVICE_UNAVAILABLE;
}

/* Make feeds due, those of a folder or (absent) all. */
static int feeds_refresh(struct greader *g, const struct greader_feeds *f, struct fw_str folder)
{
	int64_t now_ms = http_now_ms(g->r);
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; i < f->n && n < REFRESH_MAX && !rc; i++) {
		const struct fw_feed due = {
			.id = f->feed[i].id, .due_at_ms = now_ms, .why = FW_STR("a reader's refresh")};

		if ((folder.p && !fw_str_eq(f->feed[i].folder, folder)) || !feed_may_refresh(&f->feed[i], now_ms))
			continue;
		n++;
		rc = fw_store_feed_set(g->r->store, &due, FW_SET_DUE, &g->err);
		if (rc == FW_ENOTFOUND) /* removed meanwhile */
			rc = 0;
	}
	return rc;
}

enum MHD_Result miniflux_refresh(struct greader *g)
{
	struct greader_feeds f;
	int rc = greader_feeds_read(g, 0, false, &f);

	return miniflux_done(g, rc ? rc : feeds_refresh(g, &f, FW_STR_NONE));
}

enum MHD_Result miniflux_feed_refresh(struct greader *g)
{
	struct miniflux_lists l;
	enum MHD_Result ok = MHD_NO;

	return miniflux_feed_path(g, false, &l, &ok) ? miniflux_done(g, feeds_refresh(g, &l.feeds, FW_STR_NONE)) : ok;
}

enum MHD_Result miniflux_category_refresh(struct greader *g)
{
	struct miniflux_lists l;
	enum MHD_Result ok = MHD_NO;
	const struct miniflux_category *c = miniflux_category_path(g, false, &l, &ok);

	return c ? miniflux_done(g, feeds_refresh(g, &l.feeds, c->folder)) : ok;
}

/* ---- discover -------------------------------------------------------------------------------- */

static const char *discover_type(enum fw_format format)
{
	const char *name = fw_format_name(format);

	return strncmp(name, "atom", 4) == 0 ? "atom" : strncmp(name, "json", 4) == 0 ? "json" : "rss";
}

static enum MHD_Result discover_send(struct greader *g, const struct greader_found *f, size_t n)
{
	struct fw_json *j = &g->p.j;

	fw_json_array(j, NULL);
	for (size_t i = 0; i < n; i++) {
		fw_json_object(j, NULL);
		fw_json_text(j, "url", f[i].url);
		fw_json_text(j, "title", f[i].title);
		fw_json_cstr(j, "type", discover_type(f[i].format));
		fw_json_end(j);
	}
	fw_json_end(j);
	return greader_json(g, 0);
}

enum MHD_Result miniflux_discover(struct greader *g)
{
	struct greader_found *found = NULL;
	struct fw_str text = FW_STR_NONE;
	enum MHD_Result ok = MHD_NO;
	json_t *o = miniflux_body(g, &ok);
	bool good = o && miniflux_text(g, o, "url", FW_URL_MAX, &text, &ok);
	const char *why;
	size_t n;

	if (good && !text.len) {
		ok = feed_invalid(g, "url: missing");
		good = false;
	}
	if (good && greader_address_look(g, text, &found, &n, &why, &ok))
		ok = n ? discover_send(g, found, n) :
			 http_problem(g->r, MHD_HTTP_NOT_FOUND, "not_found", "no feed found: %s", why);
	json_decref(o);
	return ok;
}
