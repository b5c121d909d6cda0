/* SPDX-License-Identifier: ISC */
/*
 * /v1/feeds and /v1/timings: what `feedwheel list`, `show`, `add`, `set`, `pause`, `resume` and
 * `remove` do, over HTTP.
 */
#include <jansson.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/url.h"
#include "api/feed_login.h"
#include "api/view.h"
#include "http/server/http.h"

#define VISITS 10
#define VISITS_MAX 1000
#define LIMIT 100
#define LIMIT_MAX 1000
#define ADD_MAX 1000 /* in one request */

/* ---- reading --------------------------------------------------------------------------------- */

struct feed_page_send {
	struct list_page p;
	void (*write)(struct fw_json *j, const char *key, const struct fw_feed *f);
};

static int feed_page_add(void *ctx, const struct fw_feed *f)
{
	struct feed_page_send *l = ctx;

	if (!list_page_has_room(&l->p))
		return 1;
	list_page_set_cursor(&l->p, "f%lld", (long long)f->id);
	l->write(&l->p.j, NULL, f);
	return 0;
}

/* A page of feeds: an array called name, each item written by write. */
static enum MHD_Result feed_page_send(
	struct request *r, const char *name, void (*write)(struct fw_json *j, const char *key, const struct fw_feed *f))
{
	/* in the order of fw_feed_status */
	static const char STATUS_WORDS[] = "active paused gone quarantined failing";
	struct fw_feed_query q = {.status = -1, .folder = http_param(r, "folder"), .match = http_param(r, "q")};
	struct feed_page_send l = {.write = write};
	int64_t limit = LIMIT;
	struct fw_err err = {0};
	enum MHD_Result ok;
	bool there;
	int rc;

	if (!http_param_int(r, "limit", 1, LIMIT_MAX, &limit, &ok) ||
		!http_param_word(r, "status", STATUS_WORDS, &q.status, &ok) ||
		!http_param_cursor(r, 'f', &q.after_id, 1, &there, &ok))
		return ok;
	q.failing = q.status > FW_FEED_QUARANTINED;
	q.status = q.failing ? -1 : q.status;
	list_page_begin(&l.p, r);
	l.p.limit = (size_t)limit;
	q.limit = l.p.limit + 1;
	fw_json_object(&l.p.j, NULL);
	fw_json_array(&l.p.j, name);
	rc = fw_store_feed_list(r->store, &q, feed_page_add, &l, &err);
	fw_json_end(&l.p.j);
	fw_json_cstr(&l.p.j, "next_url", list_page_next(&l.p));
	fw_json_end(&l.p.j);
	return list_page_send(&l.p, "application/json", rc, &err);
}

enum MHD_Result http_feed_list(struct request *r)
{
	return feed_page_send(r, "feeds", fw_feed_json);
}

/* A feed for a program that plans its own fetches. */
static void timing_json(struct fw_json *j, const char *key, const struct fw_feed *f)
{
	char host[256] = "";

	(void)fw_url_host(f->url, host, sizeof(host));
	fw_json_object(j, key);
	fw_json_int(j, "feed", f->id);
	fw_json_str(j, "url", f->url);
	fw_json_cstr(j, "host", host);
	fw_json_cstr(j, "status", fw_feed_status_name(f->status));
	if (f->due_at_ms)
		fw_json_time(j, "due", f->due_at_ms);
	fw_json_int(j, "expected_us", f->expect_us);
	fw_json_int(j, "deviation_us", f->expect_dev_us);
	if (f->last_visit_ms) {
		fw_json_time(j, "last_visit", f->last_visit_ms);
		fw_json_cstr(j, "last_result", fw_visit_kind_name(f->last_kind));
	}
	if (f->http_status)
		fw_json_int(j, "http_status", f->http_status);
	fw_json_int(j, "failures", f->fail_n);
	if (f->interval_ms)
		fw_json_int(j, "interval_ms", f->interval_ms);
	fw_json_end(j);
}

enum MHD_Result http_timings(struct request *r)
{
	return feed_page_send(r, "timings", timing_json);
}

static int feed_visit_add(void *ctx, const struct fw_visit *v)
{
	fw_visit_json(ctx, NULL, v);
	return 0;
}

enum MHD_Result http_feed_get(struct request *r)
{
	struct fw_visit_query q = {.feed_id = r->id};
	int64_t visits = VISITS;
	struct fw_feed f = {0};
	struct fw_err err = {0};
	struct list_page p;
	enum MHD_Result ok;
	int rc;

	if (!http_param_int(r, "visits", 1, VISITS_MAX, &visits, &ok))
		return ok;
	list_page_begin(&p, r);
	q.limit = (size_t)visits;
	rc = fw_store_feed_find(r->store, r->id, FW_STR_NONE, &p.arena, &f, &err);
	if (!rc) {
		fw_json_object(&p.j, NULL);
		fw_feed_json(&p.j, "feed", &f);
		fw_json_array(&p.j, "visits");
		rc = fw_store_visit_list(r->store, &q, feed_visit_add, &p.j, &err);
		fw_json_end(&p.j);
		fw_json_end(&p.j);
	}
	return list_page_send(&p, "application/json", rc, &err);
}

/* ---- request bodies -------------------------------------------------------------------------- */

/* The members of a feed that a client may set. */
enum { URL = 1, TITLE = 2, FOLDER = 4, INTERVAL = 8, STATUS = 16, DUE = 32 };
static const struct json_member FEED_MEMBER[] = {
	{"url", URL, JSON_STRING, "must be a string"},
	{"title", TITLE, JSON_STRING, "must be a string"},
	{"folder", FOLDER, JSON_STRING, "must be a string"},
	{"interval_ms", INTERVAL, JSON_INTEGER, "must be a number of ms, 0 or more", .natural = true},
	{"status", STATUS, JSON_STRING, "must be \"active\" or \"paused\""},
	{"due", DUE, JSON_TRUE, "must be true"},
};

struct feed_fields {
	unsigned has;
	struct fw_str url, title, folder, status; /* point into the JSON document */
	int64_t interval_ms;
};

/*
 * Read the members of o; may: which are allowed. Returns NULL, or the invalid member, with the
 * reason in *words.
 */
static const char *feed_fields_read(json_t *o, unsigned may, struct feed_fields *w, const char **words)
{
	const char *wrong;

	*w = (struct feed_fields){0};
	wrong = http_json_members(o, FEED_MEMBER, FW_N(FEED_MEMBER), may, &w->has, words);
	if (wrong)
		return wrong;
	w->interval_ms = json_integer_value(json_object_get(o, "interval_ms"));
	w->url = http_json_text(o, "url");
	w->title = http_json_text(o, "title");
	w->folder = http_json_text(o, "folder");
	w->status = http_json_text(o, "status");
	*words = http_json_member_words(FEED_MEMBER, FW_N(FEED_MEMBER), "status");
	if (w->has & STATUS && !fw_str_eq(w->status, FW_STR("active")) && !fw_str_eq(w->status, FW_STR("paused")))
		return "status";
	return NULL;
}

/* ---- changing -------------------------------------------------------------------------------- */

/* Read the i-th subscription of the body. False: responded 422. */
static bool subscription_read(
	struct list_page *p, json_t *o, size_t i, bool alone, struct fw_feed_new *f, enum MHD_Result *ok)
{
	const char *words = "missing", *name;
	struct fw_err err = {0};
	struct feed_fields w;
	char at[24] = "", place[80];

	if (!alone)
		(void)fw_snprintf(at, sizeof(at), "[%zu].", i);
	name = json_is_object(o) ? feed_fields_read(o, URL | TITLE | FOLDER | INTERVAL, &w, &words) : "url";
	if (!name && !(w.has & URL)) {
		name = "url";
		words = "missing";
	}
	if (!name && fw_url_clean(&p->arena, w.url, &f->url, &f->username, &f->password, &err)) {
		name = "url";
		words = err.text;
	}
	if (name) {
		(void)fw_snprintf(place, sizeof(place), "%s%.40s", at, name);
		*ok = http_unprocessable(p->r, place, words);
		return false;
	}
	f->user_title = w.title;
	f->folder = w.folder;
	f->interval_ms = w.interval_ms;
	return true;
}

static void subscribed_json(struct fw_json *j, const struct fw_feed_new *f)
{
	char at[40];

	(void)fw_snprintf(at, sizeof(at), "/v1/feeds/%lld", (long long)f->id);
	fw_json_object(j, NULL);
	fw_json_int(j, "id", f->id);
	fw_json_str(j, "url", f->url);
	fw_json_bool(j, "existed", f->existed);
	fw_json_cstr(j, "location", at);
	fw_json_end(j);
}

static enum MHD_Result subscribed_respond(struct list_page *p, const struct fw_feed_new *f, size_t n, bool alone)
{
	unsigned status = MHD_HTTP_OK;
	struct MHD_Response *m;
	char at[40];

	if (!alone)
		fw_json_array(&p->j, NULL);
	for (size_t i = 0; i < n; i++) {
		subscribed_json(&p->j, &f[i]);
		status = f[i].existed ? status : MHD_HTTP_CREATED;
	}
	if (!alone)
		fw_json_end(&p->j);
	(void)fw_snprintf(at, sizeof(at), "/v1/feeds/%lld", (long long)f[0].id);
	m = http_response(p->r, status, "application/json", &p->out);
	if (m && alone && !MHD_add_response_header(m, MHD_HTTP_HEADER_LOCATION, at)) {
		MHD_destroy_response(m);
		m = NULL;
	}
	return m ? http_respond(p->r, status, m) : MHD_NO;
}

/* No login may be dropped. False: responded. */
static bool subscriptions_check_logins(
	struct request *r, const struct fw_feed_new *f, size_t n, bool alone, enum MHD_Result *ok)
{
	struct fw_err err = {0};
	char place[40] = "url";

	for (size_t i = 0; i < n; i++) {
		int rc = fw_feed_login_check(r->store, &f[i], &err);

		if (!rc)
			continue;
		if (!alone)
			(void)fw_snprintf(place, sizeof(place), "[%zu].url", i);
		*ok = rc == FW_EINVAL ? http_unprocessable(r, place, err.text) : http_store_failed(r, rc, &err);
		return false;
	}
	return true;
}

/* Subscribe to one feed, or to all of an array, in one transaction. */
enum MHD_Result http_feed_add(struct request *r)
{
	enum MHD_Result ok = MHD_NO;
	json_t *doc = http_json_body(r, &ok);
	bool alone = !json_is_array(doc), good = true;
	size_t n = alone ? 1 : json_array_size(doc);
	struct fw_feed_new *f;
	struct fw_err err = {0};
	struct list_page p;
	int rc;

	if (!doc)
		return ok;
	list_page_begin(&p, r);
	f = fw_arena_calloc(&p.arena, n + 1, sizeof(*f));
	if (!n || n > ADD_MAX) {
		good = false;
		ok = http_unprocessable(r, "request body", "must be a feed, or an array of 1 to 1000 feeds");
	}
	for (size_t i = 0; i < n && good && f; i++)
		good = subscription_read(&p, alone ? doc : json_array_get(doc, i), i, alone, &f[i], &ok);
	if (good && f)
		good = subscriptions_check_logins(r, f, n, alone, &ok);
	if (good) {
		rc = f ? fw_store_subscribe(r->store, f, n, &err) : fw_no_memory(&err);
		ok = rc ? http_store_failed(r, rc, &err) : subscribed_respond(&p, f, n, alone);
	}
	json_decref(doc);
	fw_buf_finish(&p.out);
	fw_arena_finish(&p.arena);
	return ok;
}

enum MHD_Result http_feed_change(struct request *r)
{
	enum MHD_Result ok = MHD_NO;
	json_t *doc = http_json_body(r, &ok);
	struct fw_feed now = {0}, to = {0};
	struct fw_err err = {0};
	struct feed_fields w = {0};
	const char *name, *words = "must be an object with title, folder, interval_ms, status or due";
	int64_t now_ms = http_now_ms(r);
	unsigned what = 0;
	struct list_page p;
	int rc;

	if (!doc)
		return ok;
	name = json_is_object(doc) ? feed_fields_read(doc, TITLE | FOLDER | INTERVAL | STATUS | DUE, &w, &words) :
				     "request body";
	if (name || !w.has) {
		ok = http_unprocessable(r, name ? name : "request body", name ? words : "no field to change");
		json_decref(doc);
		return ok;
	}
	what = (w.has & TITLE ? FW_SET_TITLE : 0) | (w.has & FOLDER ? FW_SET_FOLDER : 0) |
		(w.has & INTERVAL ? FW_SET_INTERVAL : 0) | (w.has & STATUS ? FW_SET_STATUS : 0) |
		(w.has & DUE ? FW_SET_DUE : 0);
	to = (struct fw_feed){
		.user_title = w.title, .folder = w.folder, .interval_ms = w.interval_ms, .due_at_ms = now_ms};
	if (w.has & STATUS && fw_str_eq(w.status, FW_STR("paused")))
		to.status = FW_FEED_PAUSED;
	else if (w.has & STATUS)
		what |= FW_SET_CRASH | FW_SET_DUE; /* like `feedwheel resume` */
	list_page_begin(&p, r);
	rc = fw_store_feed_find(r->store, r->id, FW_STR_NONE, &p.arena, &now, &err);
	rc = rc ? rc : fw_feed_update(r->store, &now, &to, what, now_ms, &err);
	rc = rc ? rc : fw_store_feed_find(r->store, r->id, FW_STR_NONE, &p.arena, &now, &err);
	if (!rc)
		fw_feed_json(&p.j, NULL, &now);
	json_decref(doc);
	return list_page_send(&p, "application/json", rc, &err);
}

enum MHD_Result http_feed_remove(struct request *r)
{
	struct fw_buf none = FW_BUF_INIT(0);
	struct fw_err err = {0};
	int rc = fw_store_unsubscribe(r->store, r->id, &err);

	return rc ? http_store_failed(r, rc, &err) : http_send(r, MHD_HTTP_NO_CONTENT, "application/json", &none);
}
