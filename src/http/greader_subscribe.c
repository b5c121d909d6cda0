/* SPDX-License-Identifier: ISC */
/*
 * The Google Reader API: subscribing, also by a site's address, and OPML.
 *
 * With serve_discovery quickadd fetches an address that the store does not know, to see whether it
 * is a feed or a page that names one. It does so with the limits and the address guard of all
 * fetches, in less time, and for one request of this server at once; others wait outside the pool.
 * Without it an address is taken for a feed's, and the workers fetch it.
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/url.h"
#include "base/utf8.h"
#include "api/opml.h"
#include "http/greader.h"
#include "base/banned.h"

#define EDITS_MAX 1000
#define DISCOVERY_MS (15 * FW_SECOND_MS)

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

/* *id is out. */
static int subscribe_url(struct greader *g, struct fw_feed_new *f, int64_t *id)
{
	size_t added;
	int rc = fw_account_import(g->r->store, g->account.id, f, 1, fw_now_ms(), &added, &g->err);

	*id = f->id;
	return rc;
}

static int subscribe_one(struct greader *g, const struct greader_stream *stream, const struct fw_subscription *set)
{
	struct fw_feed_new f = {.user_title = set->title, .folder = set->folder};
	struct fw_feed known;
	int64_t id;
	int rc = 0;

	f.url = stream->url;
	if (stream->feed_id) { /* by the number of a feed that the store has */
		rc = fw_store_feed_find(g->r->store, stream->feed_id, FW_STR_NONE, &g->p.arena, &known, &g->err);
		f.url = rc ? FW_STR_NONE : known.url;
	}
	return rc ? rc : subscribe_url(g, &f, &id);
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

/* ---- quickadd -------------------------------------------------------------------------------- */

struct quickadd {
	struct fw_response answer; /* its doc, if the address was fetched and is a feed's */
	struct fw_str url, user, pass;
	int64_t until_ms;                             /* monotonic: when the page and its feed must be there */
	char why[sizeof(((struct fw_err *)0)->text)]; /* it is none */
};

static int quickadd_fetch(struct greader *g, struct quickadd *q, bool follow)
{
	struct fw_config c = *g->r->thread->h->config;
	struct fw_str url, user, pass;
	int rc;

	c.total_timeout_ms = FW_MIN(c.total_timeout_ms, FW_MAX(q->until_ms - fw_mono_ms(), (int64_t)1));
	rc = fw_fetch_url(&c, q->url, q->user, q->pass, &q->answer, &g->err);
	if (rc || q->answer.doc)
		return rc;
	if (!follow || !q->answer.feeds || fw_url_clean(&g->p.arena, q->answer.feeds->href, &url, &user, &pass, NULL)) {
		(void)fw_str_copy(q->why, sizeof(q->why), fw_str(q->answer.err.text));
		return 0;
	}
	if (!fw_url_same_origin(q->url, url)) /* the login is for the page's origin */
		q->user = q->pass = FW_STR_NONE;
	q->url = url;
	fw_response_free(&q->answer);
	return quickadd_fetch(g, q, false);
}

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

static enum MHD_Result quickadd_subscribe(struct greader *g, struct fw_str query, struct quickadd *q)
{
	struct fw_feed_new f = {.url = q->url, .username = q->user, .password = q->pass};
	int64_t feed_id;
	int rc = subscribe_url(g, &f, &feed_id);

	/* what was fetched is the first visit; if that fails, a worker will visit the feed */
	if (!rc && q->answer.doc)
		rc = fw_response_store(g->r->store, g->r->thread->h->config, &q->answer, feed_id, &g->err);
	return rc ? http_store_failed(g->r, rc, &g->err) : quickadd_send(g, query, feed_id, NULL);
}

/* With the gate taken. */
static enum MHD_Result quickadd_discover(struct greader *g, struct fw_str query, struct quickadd *q)
{
	enum MHD_Result ok;
	int rc;

	q->until_ms = fw_mono_ms() + DISCOVERY_MS;
	rc = quickadd_fetch(g, q, true);

	if (rc)
		ok = http_store_failed(g->r, rc, &g->err);
	else
		ok = q->answer.doc ? quickadd_subscribe(g, query, q) : quickadd_send(g, query, 0, q->why);
	fw_response_free(&q->answer);
	return ok;
}

enum MHD_Result greader_quickadd(struct greader *g)
{
	struct fw_str query = fw_str_trim(http_form_get(&g->form, "quickadd")), text = query;
	struct http_gate *gate = &g->r->thread->h->discoveries;
	struct quickadd q = {.answer = {.doc = NULL}};
	enum MHD_Result ok;
	struct fw_feed f;
	int rc;

	if (!query.len || !fw_utf8_fits(query, FW_URL_MAX))
		return greader_wrong(g, "quickadd", "the address of a feed or a site");
	if (fw_str_starts(text, FW_STR("feed/")))
		text = fw_str_sub(text, 5, text.len);
	if (fw_url_clean(&g->p.arena, text, &q.url, &q.user, &q.pass, &g->err))
		return quickadd_send(g, query, 0, g->err.text);
	rc = fw_store_feed_find(g->r->store, 0, q.url, &g->p.arena, &f, &g->err);
	if (!rc)
		return quickadd_subscribe(g, query, &q);
	if (rc != FW_ENOTFOUND)
		return http_store_failed(g->r, rc, &g->err);
	if (!g->r->thread->h->config->serve_discovery)
		return quickadd_subscribe(g, query, &q);
	switch (http_gate_enter(gate, g->r)) {
	case GATE_LATER:
		return MHD_YES;
	case GATE_FULL:
		return http_problem(
			g->r, MHD_HTTP_SERVICE_UNAVAILABLE, "busy", "too many addresses wait to be fetched");
	case GATE_TAKEN:
		break;
	}
	ok = quickadd_discover(g, query, &q);
	http_gate_leave(gate);
	return ok;
}

/* ---- OPML ------------------------------------------------------------------------------------ */

static void export_write(struct greader *g, const struct greader_feeds *f, struct fw_opml_item *item)
{
	struct fw_opml_writer w;

	for (size_t i = 0; i < f->n; i++)
		item[i] = (struct fw_opml_item){.folder = f->feed[i].folder,
			.title = f->feed[i].title,
			.url = f->feed[i].url,
			.home = f->feed[i].home,
			.at = i};
	fw_opml_sort(item, f->n);
	fw_opml_begin(&w, &g->p.out, fw_now_ms());
	for (size_t i = 0; i < f->n; i++)
		fw_opml_add(&w, &item[i]);
	fw_opml_end(&w);
}

enum MHD_Result greader_export(struct greader *g)
{
	struct greader_feeds f;
	struct fw_opml_item *item;
	enum MHD_Result ok;
	int rc = greader_feeds_read(g, 0, false, &f);

	item = rc ? NULL : fw_arena_calloc(&g->p.arena, f.n, sizeof(*item));
	if (!rc && !item)
		rc = fw_no_memory(&g->err);
	if (!rc)
		export_write(g, &f, item);
	ok = list_page_send(&g->p, "text/x-opml; charset=UTF-8", rc, &g->err);
	list_page_begin(&g->p, g->r);
	return ok;
}

struct import {
	struct greader *g;
	struct fw_feed_new *feed;
	size_t n, cap, refused_n;
};

static int import_one(void *ctx, const struct fw_opml_outline *o)
{
	struct import *im = ctx;
	struct fw_arena *a = &im->g->p.arena;
	struct fw_feed_new f = {.id = 0};
	int rc = fw_url_clean(a, o->url, &f.url, &f.username, &f.password, NULL);

	im->refused_n += rc == FW_EINVAL;
	if (rc)
		return rc == FW_EINVAL ? 0 : rc;
	if (im->n == im->cap) {
		size_t cap = im->cap ? 2 * im->cap : 256;

		im->feed = fw_arena_grow(a, im->feed, im->cap * sizeof(f), cap * sizeof(f));
		im->cap = cap;
		if (!im->feed)
			return FW_ENOMEM;
	}
	/* a title equal to the URL is no title: OPML requires one */
	if (!fw_str_eq(o->title, o->url))
		f.user_title = fw_arena_str(a, fw_str_trim(o->title));
	f.folder = fw_arena_str(a, o->folder);
	f.home_page_url = fw_arena_str(a, o->home_page_url);
	im->feed[im->n++] = f;
	return a->failed ? FW_ENOMEM : 0;
}

enum MHD_Result greader_import(struct greader *g)
{
	struct import im = {.g = g};
	struct fw_buf out = FW_BUF_INIT(0);
	size_t added = 0;
	int rc = fw_opml_read(g->r->body.p, g->r->body.len, import_one, NULL, &im, &g->err);

	if (rc == FW_EFORMAT)
		return http_problem(g->r, MHD_HTTP_BAD_REQUEST, "malformed", "%s", g->err.text);
	if (!rc && im.n)
		rc = fw_account_import(g->r->store, g->account.id, im.feed, im.n, fw_now_ms(), &added, &g->err);
	if (rc)
		return http_store_failed(g->r, rc, &g->err);
	fw_buf_addf(&out, "OK: %zu", im.n);
	if (im.refused_n)
		fw_buf_addf(&out, " (%zu addresses are invalid)", im.refused_n);
	return http_send(g->r, MHD_HTTP_OK, "text/plain; charset=UTF-8", &out);
}
