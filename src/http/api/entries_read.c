/* SPDX-License-Identifier: ISC */
/*
 * GET /v1/entries: entries as JSON Feed 1.1 or NDJSON; GET /v1/folders. There are two orders. Their
 * cursors neither skip nor repeat entries while others are stored:
 *  - newest first: the cursor is the date and id of the last entry;
 *  - in order of storing: the cursor is an id, and also finds what is stored later.
 * Best first is made anew for each page: its cursor is the number of entries shown before.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/url.h"
#include "base/when.h"
#include "api/folder.h"
#include "api/view.h"
#include "http/server/http.h"

#define LIMIT 50
#define LIMIT_MAX 1000
#define FEEDS_MAX HTTP_PARAMS_MAX
/*
 * A page ends early after sanitizing this much, so that it does not occupy a pool thread for long.
 */
#define WORK_BYTES ((size_t)8 << 20)
#define WORK_US 25000

struct entry_list {
	struct list_page p;
	struct fw_entry_query q;
	struct fw_feed feed; /* the only one whose entries are listed; id 0: there are others */
	int64_t feed_id[FEEDS_MAX];
	unsigned flags;
	bool ndjson;
	struct fw_view_work work;
};

static void entry_list_write(struct entry_list *l, const struct fw_entry_row *e)
{
	struct list_page *p = &l->p;
	struct fw_err err;

	if (fw_entry_json_work(&p->j, e, l->flags, &l->work, &err)) /* the item was written without its content */
		fw_warn("%s", err.text);
	p->last_ms = FW_MAX(p->last_ms, e->changed_ms);
}

static int entry_list_add(void *ctx, const struct fw_entry_row *e)
{
	struct entry_list *l = ctx;

	l->p.limit = l->work.bytes >= WORK_BYTES || l->work.cpu_us >= WORK_US ? l->p.n : l->p.limit;
	if (!list_page_has_room(&l->p))
		return 1;
	if (l->q.by_relevance)
		list_page_set_cursor(&l->p, "r%zu", l->q.skip_n + l->p.n);
	else if (l->q.oldest_first)
		list_page_set_cursor(&l->p, "s%lld", (long long)e->id);
	else
		list_page_set_cursor(
			&l->p, "n%lld.%lld", (long long)fw_store_entry_date(e, e->seen_ms), (long long)e->id);
	entry_list_write(l, e);
	if (l->ndjson) {
		fw_buf_addc(&l->p.out, '\n');
		l->p.j.need_comma = false;
	}
	return 0;
}

struct feed_params {
	struct fw_str at[FEEDS_MAX];
	size_t n;
};

static enum MHD_Result feed_param_take(void *ctx, enum MHD_ValueKind kind, const char *key, const char *value)
{
	struct feed_params *p = ctx;

	(void)kind;
	if (strcmp(key, "feed") == 0 && p->n < FEEDS_MAX) /* more parameters are refused (head.c) */
		p->at[p->n++] = value ? fw_str(value) : FW_STR("");
	return MHD_YES;
}

/* Find a feed by its id or URL. False: responded. */
static bool entry_list_feed(struct entry_list *l, struct fw_str word, enum MHD_Result *ok)
{
	struct request *r = l->p.r;
	struct fw_str url = FW_STR_NONE, user, pass;
	struct fw_err err = {0};
	int64_t id = 0;
	int rc;

	if (word.len && fw_is_digit((unsigned char)word.p[0]) ?
			!fw_str_int(word, &id) || !id :
			fw_url_clean(&l->p.arena, word, &url, &user, &pass, NULL) != 0) {
		*ok = http_param_wrong(r, "feed", "a feed's id or URL");
		return false;
	}
	rc = fw_store_feed_find(r->store, id, url, &l->p.arena, &l->feed, &err);
	l->feed_id[l->q.feed_n++] = l->feed.id;
	if (rc)
		*ok = http_store_failed(r, rc, &err);
	return !rc;
}

static bool entry_list_feeds(struct entry_list *l, enum MHD_Result *ok)
{
	struct feed_params p = {.n = 0};

	(void)MHD_get_connection_values(l->p.r->conn, MHD_GET_ARGUMENT_KIND, feed_param_take, &p);
	for (size_t i = 0; i < p.n; i++) {
		if (!entry_list_feed(l, p.at[i], ok))
			return false;
	}
	l->q.feed_ids = l->feed_id;
	if (p.n > 1)
		l->feed = (struct fw_feed){.id = 0};
	return true;
}

static bool entry_list_cursor(struct entry_list *l, enum MHD_Result *ok)
{
	char kind = l->q.by_relevance ? 'r' : l->q.oldest_first ? 's' : 'n';
	int64_t at[2];
	bool there;

	if (!http_param_cursor(l->p.r, kind, at, kind == 'n' ? 2 : 1, &there, ok))
		return false;
	if (!there)
		return true;
	/* the same cursor, if the page stays empty */
	list_page_set_cursor(&l->p, "%.*s", FW_STR_ARG(http_param(l->p.r, "cursor")));
	if (kind == 'r') {
		l->q.skip_n = at[0] > 0 ? (size_t)at[0] : 0;
	} else if (kind == 's') {
		l->q.after_id = at[0];
	} else {
		l->q.behind_date_ms = at[0];
		l->q.behind_id = at[1];
	}
	return true;
}

static bool wants_ndjson(struct request *r, enum MHD_Result *ok, bool *ndjson)
{
	const char *accept = MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	int which = accept && fw_str_ifind(fw_str(accept), FW_STR("ndjson")) ? 1 : 0;

	if (!http_param_word(r, "format", "json ndjson", &which, ok))
		return false;
	*ndjson = which == 1;
	return true;
}

/* A time; *at_ms is untouched when absent. False: responded. */
static bool entry_list_time(struct request *r, const char *name, int64_t *at_ms, enum MHD_Result *ok)
{
	struct fw_str text = http_param(r, name);

	if (!text.p || (text.len && fw_when_parse(text, http_now_ms(r), at_ms)))
		return true;
	*ok = http_param_wrong(r, name, "a time such as 2026-11-01T12:00:00Z, or 2h (ago)");
	return false;
}

/* The query and its order. False: responded. */
static bool entry_list_search(struct entry_list *l, enum MHD_Result *ok)
{
	struct request *r = l->p.r;
	int order = 0, by = 0, snippet = 0;

	l->q.search = http_param(r, "q");
	if (l->q.search.p && !fw_str_trim(l->q.search).len) {
		*ok = http_param_wrong(r, "q", "words to search for");
		return false;
	}
	if (!http_param_word(r, "order", "newest stored", &order, ok) ||
		!http_param_word(r, "by", "date relevance", &by, ok) ||
		!http_param_word(r, "snippet", "0 1", &snippet, ok))
		return false;
	l->q.oldest_first = order == 1;
	l->q.by_relevance = by == 1;
	l->q.snippet = snippet == 1;
	if (!l->q.by_relevance || (l->q.search.p && !l->q.oldest_first))
		return true;
	*ok = http_problem(r, MHD_HTTP_BAD_REQUEST, "invalid_parameter",
		"invalid by 'relevance' (it needs q, and excludes order=stored)");
	return false;
}

static bool entry_list_params(struct entry_list *l, enum MHD_Result *ok)
{
	struct request *r = l->p.r;
	int64_t limit = LIMIT;

	l->flags = FW_VIEW_CONTENT;
	l->q.folder = http_param(r, "folder");
	if (!entry_list_search(l, ok) || !entry_list_time(r, "since", &l->q.since_ms, ok) ||
		!entry_list_time(r, "until", &l->q.until_ms, ok) ||
		!http_param_int(r, "limit", 1, LIMIT_MAX, &limit, ok) || !http_param_content(r, &l->flags, ok) ||
		!wants_ndjson(r, ok, &l->ndjson))
		return false;
	l->q.content = l->flags != 0;
	l->q.unindexed_n = &l->p.unindexed_n;
	l->p.limit = (size_t)limit;
	l->q.limit = l->p.limit + 1;
	return entry_list_cursor(l, ok) && entry_list_feeds(l, ok);
}

static void entry_list_head(struct entry_list *l)
{
	const struct fw_feed *f = &l->feed;
	struct fw_json *j = &l->p.j;

	fw_json_object(j, NULL);
	fw_json_cstr(j, "version", "https://jsonfeed.org/version/1.1");
	fw_json_str(j, "title",
		f->user_title.len    ? f->user_title :
			f->title.len ? f->title :
			f->url.len   ? f->url :
				       FW_STR("feedwheel entries"));
	if (f->home_page_url.len)
		fw_json_str(j, "home_page_url", f->home_page_url);
	fw_json_array(j, "items");
}

enum MHD_Result http_entry_list(struct request *r)
{
	struct fw_err err = {0};
	enum MHD_Result ok;
	struct entry_list l = {.feed = {.id = 0}, .work = {.cache = r->thread->h->views}};
	int rc;

	list_page_begin(&l.p, r);
	if (!entry_list_params(&l, &ok)) {
		fw_arena_finish(&l.p.arena);
		return ok;
	}
	if (!l.ndjson)
		entry_list_head(&l);
	if (l.q.search.p && !fw_store_has_index(r->store))
		l.p.note = "this store has no index: entries are read until enough match";
	rc = fw_store_entry_list(r->store, &l.q, entry_list_add, &l, &err);
	if (rc == FW_EINVAL && l.q.search.p) { /* with the place in the query */
		ok = http_problem(r, MHD_HTTP_BAD_REQUEST, "invalid_parameter", "invalid q: %s", err.text);
		fw_buf_finish(&l.p.out);
		fw_arena_finish(&l.p.arena);
		return ok;
	}
	if (!l.q.oldest_first && !l.p.more)
		l.p.cursor[0] = 0; /* the list ends here */
	if (!l.ndjson) {
		fw_json_end(&l.p.j);
		fw_incomplete_json(&l.p.j, l.p.unindexed_n);
		if (l.p.note)
			fw_json_cstr(&l.p.j, "note", l.p.note);
		fw_json_cstr(&l.p.j, "next_url", list_page_next(&l.p));
		fw_json_end(&l.p.j);
	}
	return list_page_send(&l.p, l.ndjson ? "application/x-ndjson" : "application/feed+json", rc, &err);
}

static int entry_get_one(void *ctx, const struct fw_entry_row *e)
{
	struct entry_list *l = ctx;

	entry_list_write(l, e);
	return 0;
}

enum MHD_Result http_entry_get(struct request *r)
{
	struct fw_err err = {0};
	enum MHD_Result ok;
	struct entry_list l = {.q = {.after_id = r->id - 1,
				       .before_id = r->id < INT64_MAX ? r->id + 1 : 0,
				       .oldest_first = true,
				       .limit = 1},
		.work = {.cache = r->thread->h->views}};
	int rc;

	l.flags = FW_VIEW_CONTENT;
	if (!http_param_content(r, &l.flags, &ok))
		return ok;
	l.q.content = l.flags != 0;
	list_page_begin(&l.p, r);
	rc = fw_store_entry_list(r->store, &l.q, entry_get_one, &l, &err);
	if (!rc && !l.p.out.len)
		rc = fw_err_set(&err, FW_ENOTFOUND, "no entry has the number %lld", (long long)r->id);
	return list_page_send(&l.p, "application/json", rc, &err);
}

#define NEW_MS (7 * FW_DAY_MS)

enum MHD_Result http_folder_list(struct request *r)
{
	struct fw_folders folders = {.n = 0};
	struct fw_err err = {0};
	struct list_page p;
	int rc;

	list_page_begin(&p, r);
	rc = fw_folders_read(r->store, &p.arena, http_now_ms(r) - NEW_MS, &folders, &err);
	fw_json_object(&p.j, NULL);
	fw_json_array(&p.j, "folders");
	for (size_t i = 0; i < folders.n; i++)
		fw_folder_json(&p.j, NULL, &folders.folder[i]);
	fw_json_end(&p.j);
	fw_json_end(&p.j);
	return list_page_send(&p, "application/json", rc, &err);
}
