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

/* Subscribe to a clean URL. */
static int subscribe_url(struct greader *g, struct fw_feed_new *f)
{
	size_t added;

	return fw_account_import(g->r->store, g->account.id, f, 1, fw_now_ms(), &added, &g->err);
}

static int subscribe_one(struct greader *g, const struct greader_stream *stream, const struct fw_subscription *set)
{
	struct fw_feed_new f = {.user_title = set->title, .folder = set->folder};
	struct fw_feed known;
	int rc = 0;

	f.url = stream->url;
	if (stream->feed_id) { /* by the number of a feed that the store has */
		rc = fw_store_feed_find(g->r->store, stream->feed_id, FW_STR_NONE, &g->p.arena, &known, &g->err);
		f.url = rc ? FW_STR_NONE : known.url;
	}
	return rc ? rc : subscribe_url(g, &f);
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

/* ---- addresses ------------------------------------------------------------------------------- */

struct address {
	struct fw_response answer; /* if the address was fetched: of it, or of the feed that it names */
	struct fw_str url, user, pass;
	int64_t until_ms; /* monotonic: when the page and its feed must be there */
	bool gate;        /* is taken */
};

static int address_fetch(struct greader *g, struct address *q)
{
	struct fw_config c = *g->r->thread->h->config;

	c.total_timeout_ms = FW_MIN(c.total_timeout_ms, FW_MAX(q->until_ms - fw_mono_ms(), (int64_t)1));
	return fw_fetch_url(&c, q->url, q->user, q->pass, &q->answer, &g->err);
}

/* Fetch the first feed that the page names. */
static int address_follow(struct greader *g, struct address *q)
{
	struct fw_str url, user, pass;

	if (q->answer.doc || !q->answer.feeds ||
		fw_url_clean(&g->p.arena, q->answer.feeds->href, &url, &user, &pass, NULL))
		return 0;
	if (!fw_url_same_origin(q->url, url)) /* the login is for the page's origin */
		q->user = q->pass = FW_STR_NONE;
	q->url = url;
	fw_response_free(&q->answer);
	return address_fetch(g, q);
}

/* Words that outlive the response. */
static const char *address_why(struct greader *g, const char *text)
{
	const char *why = fw_arena_str(&g->p.arena, fw_str(text)).p;

	return why ? why : "out of memory";
}

/*
 * Read an address, and fetch it, unless the store knows it or there is no serve_discovery. False:
 * responded. *why: the address is invalid. address_end() follows in any case.
 */
static bool address_begin(
	struct greader *g, struct fw_str text, struct address *q, const char **why, enum MHD_Result *ok)
{
	struct fw_feed f;
	int rc;

	*why = NULL;
	if (fw_url_clean(&g->p.arena, text, &q->url, &q->user, &q->pass, &g->err)) {
		*why = address_why(g, g->err.text);
		return true;
	}
	rc = fw_store_feed_find(g->r->store, 0, q->url, &g->p.arena, &f, &g->err);
	if (rc == FW_ENOTFOUND && g->r->thread->h->config->serve_discovery) {
		switch (http_gate_enter(&g->r->thread->h->discoveries, g->r)) {
		case GATE_LATER:
			*ok = MHD_YES;
			return false;
		case GATE_FULL:
			*ok = http_problem(
				g->r, MHD_HTTP_SERVICE_UNAVAILABLE, "busy", "too many addresses wait to be fetched");
			return false;
		case GATE_TAKEN:
			break;
		}
		q->gate = true;
		q->until_ms = fw_mono_ms() + DISCOVERY_MS;
		rc = address_fetch(g, q);
	}
	if (rc && rc != FW_ENOTFOUND)
		*ok = http_store_failed(g->r, rc, &g->err);
	return !rc || rc == FW_ENOTFOUND;
}

static void address_end(struct greader *g, struct address *q)
{
	if (!q->gate)
		return;
	fw_response_free(&q->answer);
	http_gate_leave(&g->r->thread->h->discoveries);
}

static int address_subscribe(struct greader *g, struct address *q, struct fw_feed_new *f, const char **why)
{
	int rc = q->gate ? address_follow(g, q) : 0;

	if (rc)
		return rc;
	if (q->gate && !q->answer.doc) {
		*why = address_why(g, q->answer.err.text);
		return 0;
	}
	f->url = q->url;
	if (!f->username.len) {
		f->username = q->user;
		f->password = q->pass;
	}
	rc = subscribe_url(g, f);
	/* what was fetched is the first visit; if that fails, a worker will visit the feed */
	if (!rc && q->answer.doc)
		rc = fw_response_store(g->r->store, g->r->thread->h->config, &q->answer, f->id, &g->err);
	return rc;
}

bool greader_address_add(
	struct greader *g, struct fw_str text, struct fw_feed_new *f, const char **why, enum MHD_Result *ok)
{
	struct address q = {.gate = false};
	bool good = address_begin(g, text, &q, why, ok);
	int rc = 0;

	if (good && !*why)
		rc = address_subscribe(g, &q, f, why);
	address_end(g, &q);
	if (rc)
		*ok = http_store_failed(g->r, rc, &g->err);
	return good && !rc;
}

static struct greader_found address_found(struct greader *g, struct fw_str url, struct fw_str title)
{
	return (struct greader_found){
		.url = fw_arena_str(&g->p.arena, url), .title = fw_arena_str(&g->p.arena, title.len ? title : url)};
}

static int address_list(struct greader *g, const struct address *q, struct greader_found **found, size_t *n)
{
	const struct fw_link *l;
	size_t max = 1;

	for (l = q->answer.feeds; l; l = l->next)
		max++;
	*found = fw_arena_calloc(&g->p.arena, max, sizeof(**found));
	if (!*found)
		return fw_no_memory(&g->err);
	if (!q->gate) {
		(*found)[(*n)++] = address_found(g, q->url, FW_STR_NONE);
	} else if (q->answer.doc) {
		(*found)[*n] = address_found(g, q->url, q->answer.doc->title);
		(*found)[(*n)++].format = q->answer.doc->format;
	} else {
		for (l = q->answer.feeds; l; l = l->next)
			(*found)[(*n)++] = address_found(g, l->href, l->title);
	}
	return g->p.arena.failed ? fw_no_memory(&g->err) : 0;
}

bool greader_address_look(struct greader *g, struct fw_str text, struct greader_found **found, size_t *n,
	const char **why, enum MHD_Result *ok)
{
	struct address q = {.gate = false};
	bool good = address_begin(g, text, &q, why, ok);
	int rc = 0;

	*n = 0;
	if (good && !*why)
		rc = address_list(g, &q, found, n);
	if (good && !rc && !*n && !*why)
		*why = address_why(g, q.answer.err.text);
	address_end(g, &q);
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

bool greader_opml_add(struct greader *g, size_t *n, size_t *refused_n, enum MHD_Result *ok)
{
	struct import im = {.g = g};
	size_t added = 0;
	int rc = fw_opml_read(g->r->body.p, g->r->body.len, import_one, NULL, &im, &g->err);

	*n = im.n;
	*refused_n = im.refused_n;
	if (rc == FW_EFORMAT) {
		*ok = http_problem(g->r, MHD_HTTP_BAD_REQUEST, "malformed", "%s", g->err.text);
		return false;
	}
	if (!rc && im.n)
		rc = fw_account_import(g->r->store, g->account.id, im.feed, im.n, fw_now_ms(), &added, &g->err);
	if (rc)
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
		fw_buf_addf(&out, " (%zu addresses are invalid)", refused_n);
	return http_send(g->r, MHD_HTTP_OK, "text/plain; charset=UTF-8", &out);
}
