/* SPDX-License-Identifier: ISC */
/*
 * Lists of entries, which are ordered twice, by id and by date.
 *
 * A search has no index: each entry is read and checked, until the limit is reached. An index of
 * words would take several times the memory of the entries, and on this engine all data is in
 * memory. So a search is always up to date, and reads about 100,000 entries of 1 KB per second.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "query/query.h"
#include "store/redis/redis.h"

/* ids rise with seen_ms, except for clocks and processes that differ by less than this */
#define SEEN_SLACK_MS 60000
#define BATCH 100 /* entries per read, since they may be large */
#define PAGE 1000
#define KEYS_BATCH 128 /* feeds per read */
#define SEEN "^%d+ (%S+)"

/* ---- ids, in pages --------------------------------------------------------------------------- */

static void page_request(struct rs *r, const struct rs_walk *w, size_t most)
{
	if (!w->key) {
		rs_call(r, RS_READ, "visits");
		rs_expect(r, "(t)");
		rs_addi(r, w->down);
		rs_addi(r, w->down ? w->end : w->next);
		rs_addi(r, w->down ? w->next : w->end);
		rs_addi(r, (int64_t)most);
		return;
	}
	rs_command_key(r, w->down ? "ZREVRANGEBYSCORE" : "ZRANGEBYSCORE", w->key);
	rs_expect_n(r, "(t)<", most);
	fw_buf_addf(rs_word(r), "(%lld", (long long)w->next);
	rs_word_end(r);
	fw_buf_addf(rs_word(r), "(%lld", (long long)w->end);
	rs_word_end(r);
	rs_adds(r, "LIMIT");
	rs_addi(r, 0);
	rs_addi(r, (int64_t)most);
}

int rs_walk_page(struct rs *r, struct rs_walk *w, size_t most, struct rs_page_row **out, size_t *n, struct fw_err *err)
{
	const struct rs_reply *rows;
	int rc;

	page_request(r, w, most);
	rc = rs_run(r, "listing", err);
	rows = rc ? NULL : r->reply[0];
	*n = rc ? 0 : rows->n;
	*out = rc ? NULL : fw_arena_calloc(&r->arena, *n + 1, sizeof(**out));
	if (rc || !*out)
		return rc ? rc : rs_no_memory(r, err);
	for (size_t i = 0; i < *n; i++) {
		struct rs_page_row *at = &(*out)[i];
		struct fw_str rest;

		*at = (struct rs_page_row){.row = rs_elem(rows, i)->text};
		if (!fw_str_int(fw_str_split(at->row, ' ', &rest), &at->id))
			at->id = 0;
	}
	w->done = *n < most;
	w->next = w->done ? w->end : (*out)[*n - 1].id;
	return 0;
}

int rs_id_before(struct rs *r, const char *name, const char *pattern, int64_t ms, int64_t *last, struct fw_err *err)
{
	int rc;

	rs_call(r, RS_READ, "id_before");
	rs_expect(r, "i");
	rs_adds(r, name);
	rs_adds(r, pattern);
	rs_addi(r, ms);
	rc = rs_run(r, "listing", err);
	*last = rc ? 0 : rs_int(r->reply[0]);
	return rc;
}

/* ---- picks ----------------------------------------------------------------------------------- */

struct redis_pick {
	int64_t date_ms, id;
};

struct redis_entry_list {
	struct rs *r;
	const struct fw_entry_query *q;
	const struct store_entry_query *of;
	fw_entry_cb *cb;
	void *ctx;
	struct query_scratch *scratch; /* NULL: all entries match */
	size_t shown;
	int64_t since_id;  /* only ids above this */
	int64_t before_id; /* only ids below this */
	bool by_id;
};

static bool entry_list_is_full(const struct redis_entry_list *l)
{
	return l->q->limit && l->shown >= l->q->limit;
}

static int pick_newest_first(const void *a, const void *b)
{
	const struct redis_pick *x = a, *y = b;

	if (x->date_ms != y->date_ms)
		return x->date_ms > y->date_ms ? -1 : 1;
	return x->id > y->id ? -1 : x->id < y->id;
}

FW_COMPARE(pick_oldest_first, struct redis_pick, id)

static bool pick_is_behind(const struct redis_pick *p, int64_t date_ms, int64_t id)
{
	return p->date_ms < date_ms || (p->date_ms == date_ms && p->id < id);
}

static bool pick_matches(const struct redis_entry_list *l, const struct redis_pick *p)
{
	const struct fw_entry_query *q = l->q;

	return p->id > q->after_id && p->id < l->before_id &&
		(l->by_id || !q->behind_id || pick_is_behind(p, q->behind_date_ms, q->behind_id));
}

/* ---- showing --------------------------------------------------------------------------------- */

/* Do all parts of the query match? *matches; FW_ENOMEM. */
static int entry_check(const struct redis_entry_list *l, const struct fw_entry_row *e, const struct fw_feed *f,
	bool *matches, struct fw_err *err)
{
	struct query_subject subject = {.entry = e,
		.feed_id = e->feed_id,
		.feed_url = f->url,
		.feed_title = f->user_title.len ? f->user_title : f->title,
		.feed_folder = f->folder,
		.feed_language = f->language,
		.now_ms = l->of->now_ms};

	*matches = true;
	if (!l->scratch)
		return 0;
	query_scratch_set(l->scratch, &subject);
	for (size_t i = 0; *matches && i < l->of->part_n; i++)
		*matches = query_matches(l->of->part[i], l->scratch);
	return query_scratch_failed(l->scratch) ? rs_no_memory(l->r, err) : 0;
}

static int entry_show(struct redis_entry_list *l, struct fw_entry_row *e, const struct fw_feed *f, struct fw_err *err)
{
	bool matches;
	int rc;

	if (!e->id || !f->url.p || e->seen_ms < l->q->since_ms || entry_list_is_full(l) ||
		(l->q->until_ms && e->seen_ms >= l->q->until_ms) || (l->q->feed_id && e->feed_id != l->q->feed_id))
		return 0;
	rc = entry_check(l, e, f, &matches, err);
	if (rc || !matches)
		return rc;
	if (!l->q->content)
		e->content = e->content_base = FW_STR_NONE;
	if (!l->q->key) {
		memset(e->key, 0, sizeof(e->key));
		e->hash = 0;
	}
	e->feed_url = f->url;
	e->feed_title = f->user_title.len ? f->user_title : f->title;
	e->feed_folder = f->folder;
	l->shown++;
	return RS_CALLBACK(l->r, l->cb(l->ctx, e));
}

static int entry_batch_show(struct redis_entry_list *l, const struct redis_pick *p, size_t n, struct fw_err *err)
{
	struct fw_entry_row *e = fw_arena_calloc(&l->r->arena, n + 1, sizeof(*e));
	struct fw_feed *f = fw_arena_calloc(&l->r->arena, n + 1, sizeof(*f));
	int rc;

	if (!e || !f)
		return rs_no_memory(l->r, err);
	for (size_t i = 0; i < n; i++) {
		rs_command_key(l->r, "HGET", "entries");
		rs_expect(l->r, "t?");
		rs_addi(l->r, p[i].id);
	}
	rc = rs_run(l->r, "reading rows", err);
	for (size_t i = 0; !rc && i < n; i++) {
		struct fw_str row = l->r->reply[i]->text;

		if (row.p && rs_entry_unpack(row, &e[i]))
			e[i].id = p[i].id;
		f[i].id = e[i].feed_id;
	}
	rc = rc ? rc : rs_feeds_read(l->r, f, NULL, n, err);
	for (size_t i = 0; !rc && i < n; i++)
		rc = entry_show(l, &e[i], &f[i], err);
	return rc;
}

/*
 * Shows the picks that match the query, in order. The picks must not lie in the arena, which is
 * emptied here.
 */
static int picks_show(struct redis_entry_list *l, struct redis_pick *p, size_t n, struct fw_err *err)
{
	size_t k = 0;
	int rc = 0;

	for (size_t i = 0; i < n; i++) {
		if (pick_matches(l, &p[i]))
			p[k++] = p[i];
	}
	if (k)
		qsort(p, k, sizeof(*p), l->by_id ? pick_oldest_first : pick_newest_first);
	for (size_t at = 0; !rc && at < k && !entry_list_is_full(l); at += BATCH) {
		fw_arena_reset(&l->r->arena, RS_ARENA_KEEP);
		rc = entry_batch_show(l, p + at, FW_MIN(k - at, (size_t)BATCH), err);
	}
	return rc;
}

static int picks_buf_show(struct redis_entry_list *l, struct fw_buf *picks, int rc, struct fw_err *err)
{
	if (!rc && picks->rc)
		rc = rs_no_memory(l->r, err);
	rc = rc ? rc :
		  picks_show(l, (struct redis_pick *)(void *)picks->p, picks->len / sizeof(struct redis_pick), err);
	fw_buf_finish(picks);
	return rc;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static int entries_of_feed(struct redis_entry_list *l, struct fw_err *err)
{
	struct fw_buf picks = FW_BUF_INIT(0);
	int rc;

	rs_command(l->r, "HVALS");
	rs_expect(l->r, "(t)");
	rs_key(l->r, "keys:%lld", (long long)l->q->feed_id);
	rc = rs_run(l->r, "listing a feed's entries", err);
	for (size_t i = 0; !rc && i < l->r->reply[0]->n; i++) {
		struct rs_key_value k;

		if (rs_key_value_unpack(rs_elem(l->r->reply[0], i)->text, &k) && k.id)
			fw_buf_add(&picks, &(struct redis_pick){k.date_ms, k.id}, sizeof(struct redis_pick));
	}
	return picks_buf_show(l, &picks, rc, err);
}

static int entries_by_id(struct redis_entry_list *l, struct fw_err *err)
{
	struct rs_walk w = {.key = "entry_ids", .end = l->before_id, .next = FW_MAX(l->since_id, l->q->after_id)};
	int rc = 0;

	while (!rc && !w.done && !entry_list_is_full(l)) {
		struct fw_buf picks = FW_BUF_INIT(0);
		struct rs_page_row *at;
		size_t n;

		fw_arena_reset(&l->r->arena, RS_ARENA_KEEP);
		rc = rs_walk_page(
			l->r, &w, l->q->limit && !l->scratch ? FW_MIN(l->q->limit, (size_t)PAGE) : PAGE, &at, &n, err);
		for (size_t i = 0; !rc && i < n; i++)
			fw_buf_add(&picks, &(struct redis_pick){0, at[i].id}, sizeof(struct redis_pick));
		rc = picks_buf_show(l, &picks, rc, err);
	}
	return rc;
}

/* By date, only ids above a limit. */
static int entries_sorted_by_date(struct redis_entry_list *l, struct fw_err *err)
{
	struct fw_buf picks = FW_BUF_INIT(0);
	int rc;

	rs_call(l->r, RS_READ, "dates");
	rs_expect(l->r, "[(t)(t)]");
	rs_addi(l->r, FW_MAX(l->since_id, l->q->after_id));
	rs_addi(l->r, l->before_id);
	rc = rs_run(l->r, "listing entries", err);
	for (size_t i = 0; !rc && i < rs_elem(l->r->reply[0], 0)->n; i++)
		fw_buf_add(&picks,
			&(struct redis_pick){rs_int(rs_elem(rs_elem(l->r->reply[0], 1), i)),
				rs_int(rs_elem(rs_elem(l->r->reply[0], 0), i))},
			sizeof(struct redis_pick));
	return picks_buf_show(l, &picks, rc, err);
}

/*
 * One page backwards from *date_ms. A full page may lack some entries of its last date. So only
 * later ones are shown; if there are none, the next request asks for more.
 */
static int date_page(struct redis_entry_list *l, int64_t *date_ms, size_t *per, bool *done, struct fw_err *err)
{
	struct fw_buf picks = FW_BUF_INIT(0);
	const struct rs_reply *got;
	int64_t edge_ms;
	int rc;

	assert(*per);
	fw_arena_reset(&l->r->arena, RS_ARENA_KEEP);
	rs_command_key(l->r, "ZREVRANGEBYSCORE", "entry_dates");
	rs_expect_n(l->r, "(tt)<", *per);
	rs_addi(l->r, *date_ms);
	rs_adds(l->r, "-inf");
	rs_adds(l->r, "WITHSCORES");
	rs_adds(l->r, "LIMIT");
	rs_addi(l->r, 0);
	rs_addi(l->r, (int64_t)*per);
	rc = rs_run(l->r, "listing", err);
	got = rc ? &rs_nil : l->r->reply[0];
	*done = got->n < 2 * *per;
	edge_ms = *done ? INT64_MIN : rs_int(rs_elem(got, got->n - 1));
	for (size_t i = 0; i + 2 <= got->n; i += 2) {
		struct redis_pick p = {rs_int(rs_elem(got, i + 1)), rs_int(rs_elem(got, i))};

		if (*done || p.date_ms > edge_ms)
			fw_buf_add(&picks, &p, sizeof(p));
	}
	if (picks.len)
		*date_ms = edge_ms;
	else
		*per *= 4;
	return picks_buf_show(l, &picks, rc, err);
}

static int entries_by_date(struct redis_entry_list *l, struct fw_err *err)
{
	int64_t date_ms = l->q->behind_id ? l->q->behind_date_ms : INT64_MAX;
	size_t per = (l->q->limit && !l->scratch ? FW_MIN(l->q->limit, (size_t)PAGE) : PAGE) + 10;
	bool done = false;
	int rc = 0;

	while (!rc && !done && !entry_list_is_full(l))
		rc = date_page(l, &date_ms, &per, &done, err);
	return rc;
}

/* For readers that follow by id: show nothing above ids that are reserved and not stored yet. */
static int stored_ids_limit(struct redis_entry_list *l, struct fw_err *err)
{
	int64_t last;
	int rc = rs_head_read(l->r, &last, err);

	l->before_id = FW_MIN(l->before_id, last + 1);
	return rc;
}

static int entry_list_run(struct redis_entry_list *l, struct fw_err *err)
{
	const struct fw_entry_query *q = l->q;
	bool one = fw_store_entry_query_is_one(q);
	int rc = 0;

	l->before_id = q->before_id ? q->before_id : INT64_MAX;
	l->by_id = q->oldest_first || one;
	if (q->oldest_first && !one)
		rc = stored_ids_limit(l, err);
	if (rc || (q->feed_id && !one))
		return rc ? rc : entries_of_feed(l, err);
	if (q->since_ms)
		rc = rs_id_before(l->r, "entries", SEEN, q->since_ms - SEEN_SLACK_MS, &l->since_id, err);
	if (rc || l->by_id)
		return rc ? rc : entries_by_id(l, err);
	return q->since_ms || q->after_id ? entries_sorted_by_date(l, err) : entries_by_date(l, err);
}

int rs_entry_list(struct store *st, const struct store_entry_query *q, fw_entry_cb *cb, void *ctx, struct fw_err *err)
{
	struct redis_entry_list l = {.r = rs_of(st), .q = &q->q, .of = q, .cb = cb, .ctx = ctx};
	int rc = rs_slot_start(l.r, false, err);

	if (!rc && q->part_n) {
		l.scratch = query_scratch_create();
		rc = l.scratch ? 0 : rs_no_memory(l.r, err);
	}
	rc = rc ? rc : entry_list_run(&l, err);
	query_scratch_destroy(l.scratch);
	return rc;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static int key_show(int64_t feed_id, const struct rs_reply *all, fw_key_cb *cb, void *ctx)
{
	int rc = 0;

	for (size_t i = 0; !rc && i + 2 <= all->n; i += 2) {
		struct fw_entry_key key = {.feed_id = feed_id};
		struct rs_key_value k;

		if (!rs_key_value_unpack(rs_elem(all, i + 1)->text, &k) || rs_elem(all, i)->text.len != sizeof(key.key))
			continue;
		memcpy(key.key, rs_elem(all, i)->text.p, sizeof(key.key));
		key.hash = k.hash;
		key.entry_id = k.id;
		rc = cb(ctx, &key);
	}
	return rc;
}

int rs_key_list(struct store *st, int64_t first, int64_t last, fw_key_cb *cb, void *ctx, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	struct rs_walk w = {
		.key = "feed_ids", .next = FW_MAX(first, INT64_C(1)) - 1, .end = last < INT64_MAX ? last + 1 : last};
	int rc = rs_slot_start(r, false, err);

	while (!rc && !w.done) {
		struct rs_page_row *at;
		size_t n;

		fw_arena_reset(&r->arena, RS_ARENA_KEEP);
		rc = rs_walk_page(r, &w, KEYS_BATCH, &at, &n, err);
		for (size_t i = 0; !rc && i < n; i++) {
			rs_command(r, "HGETALL");
			rs_expect(r, "(tt)");
			rs_key(r, "keys:%lld", (long long)at[i].id);
		}
		rc = rc || !n ? rc : rs_run(r, "listing keys", err);
		for (size_t i = 0; !rc && i < n; i++)
			rc = RS_CALLBACK(r, key_show(at[i].id, r->reply[i], cb, ctx));
	}
	return rc;
}
