/* SPDX-License-Identifier: ISC */
/*
 * Lists of entries. Each cell orders its entries twice, by id and by date. A page reads the next
 * ids of all cells, and shows entries up to the point that all cells have reached.
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

/* ---- ids of all cells, merged ---------------------------------------------------------------- */

static int page_row_compare(const void *a, const void *b)
{
	const struct rs_page_row *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int page_row_compare_desc(const void *a, const void *b)
{
	return page_row_compare(b, a);
}

/* The number of merges so far. */
static int merge_count_read(struct rs *r, int64_t *n, struct fw_err *err)
{
	int rc;

	rs_command_key(r, RS_META, "HGET", "meta");
	rs_adds(r, "merge_n");
	rs_expect(r, "i?");
	rc = rs_run(r, "listing", err);
	*n = rc ? 0 : rs_int(r->reply[0]);
	return rc;
}

/*
 * Ask all cells. If a merge happened meanwhile, ask again: the entries of a merged feed may have
 * been seen in neither cell.
 */
static int cells_request(struct rs *r, void (*request)(struct rs *r, int cell, const void *ctx), const void *ctx,
	const struct rs_reply ***reply, struct fw_err *err)
{
	int64_t moved = 0, was;
	int rc = r->cell_n > 1 ? merge_count_read(r, &moved, err) : 0;

	do {
		was = moved;
		for (int cell = 0; cell < r->cell_n; cell++)
			request(r, cell, ctx);
		rc = rc ? rc : rs_run(r, "listing", err);
		*reply = r->reply;
		rc = rc || r->cell_n == 1 ? rc : merge_count_read(r, &moved, err);
	} while (!rc && moved != was);
	return rc;
}

struct redis_page {
	const struct rs_walk *w;
	size_t per;
};

static void page_request(struct rs *r, int cell, const void *ctx)
{
	const struct redis_page *p = ctx;
	const struct rs_walk *w = p->w;

	if (!w->key) {
		rs_call(r, cell, RS_READ, "visits");
		rs_expect(r, "(t)");
		rs_addi(r, w->down);
		rs_addi(r, w->down ? w->end : w->next);
		rs_addi(r, w->down ? w->next : w->end);
		rs_addi(r, (int64_t)p->per);
		return;
	}
	rs_command_key(r, cell, w->down ? "ZREVRANGEBYSCORE" : "ZRANGEBYSCORE", w->key);
	rs_expect_n(r, "(t)<", p->per);
	fw_buf_addf(rs_word(r), "(%lld", (long long)w->next);
	rs_word_end(r);
	fw_buf_addf(rs_word(r), "(%lld", (long long)w->end);
	rs_word_end(r);
	rs_adds(r, "LIMIT");
	rs_addi(r, 0);
	rs_addi(r, (int64_t)p->per);
}

int rs_walk_page(struct rs *r, struct rs_walk *w, size_t most, struct rs_page_row **out, size_t *n, struct fw_err *err)
{
	size_t per = r->cell_n > 1 ? most / (size_t)r->cell_n + 10 : most, k = 0;
	int64_t edge = w->end; /* a cell may have more ids beyond it */
	const struct rs_reply **reply;
	int rc = cells_request(r, page_request, &(struct redis_page){w, per}, &reply, err);

	*n = 0;
	for (int cell = 0; !rc && cell < r->cell_n; cell++)
		k += reply[cell]->n;
	*out = rc ? NULL : fw_arena_calloc(&r->arena, k + 1, sizeof(**out));
	if (rc || !*out)
		return rc ? rc : rs_no_memory(r, err);
	w->done = true;
	k = 0;
	for (int cell = 0; cell < r->cell_n; cell++) {
		const struct rs_reply *rows = reply[cell];

		for (size_t i = 0; i < rows->n; i++) {
			struct rs_page_row *at = &(*out)[k++];
			struct fw_str rest;

			*at = (struct rs_page_row){.cell = cell, .row = rs_elem(rows, i)->text};
			if (!fw_str_int(fw_str_split(at->row, ' ', &rest), &at->id))
				at->id = 0;
		}
		if (rows->n < per)
			continue;
		edge = w->done  ? (*out)[k - 1].id :
			w->down ? FW_MAX(edge, (*out)[k - 1].id) :
				  FW_MIN(edge, (*out)[k - 1].id);
		w->done = false;
	}
	if (k)
		qsort(*out, k, sizeof(**out), w->down ? page_row_compare_desc : page_row_compare);
	while (*n < k && (w->done || (w->down ? (*out)[*n].id >= edge : (*out)[*n].id <= edge)))
		++*n;
	assert(*n <= k);
	w->next = edge;
	return 0;
}

int rs_id_before(struct rs *r, const char *name, const char *pattern, int64_t ms, int64_t *last, struct fw_err *err)
{
	int rc;

	for (int cell = 0; cell < r->cell_n; cell++) {
		rs_call(r, cell, RS_READ, "id_before");
		rs_expect(r, "i");
		rs_adds(r, name);
		rs_adds(r, pattern);
		rs_addi(r, ms);
	}
	rc = rs_run(r, "listing", err);
	for (int cell = 0; !rc && cell < r->cell_n; cell++)
		last[cell] = rs_int(r->reply[cell]);
	return rc;
}

/* ---- picks ----------------------------------------------------------------------------------- */

struct redis_pick {
	int64_t date_ms, id;
	int cell;
};

struct redis_entry_list {
	struct rs *r;
	const struct fw_entry_query *q;
	const struct store_entry_query *of;
	fw_entry_cb *cb;
	void *ctx;
	struct query_scratch *scratch; /* NULL: all entries match */
	size_t shown;
	/* of the last entry shown: during a merge an entry is in two cells */
	int64_t last_id;
	int64_t since[RS_CELLS]; /* only ids above these */
	int64_t before_id;       /* only ids below this */
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

static int pick_oldest_first(const void *a, const void *b)
{
	const struct redis_pick *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

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

	if (!e->id || !f->url.p || e->id == l->last_id || e->seen_ms < l->q->since_ms || entry_list_is_full(l) ||
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
	l->last_id = e->id;
	l->shown++;
	return RS_CALLBACK(l->r, l->cb(l->ctx, e));
}

/* Rows by id. A row that is not in its cell was moved to another cell by a merge, or is removed. */
static int entry_rows_read(struct rs *r, const struct redis_pick *p, struct fw_str *row, size_t n, struct fw_err *err)
{
	bool missing = false;
	int rc;

	for (size_t i = 0; i < n; i++) {
		rs_command_key(r, p[i].cell, "HGET", "entries");
		rs_expect(r, "t?");
		rs_addi(r, p[i].id);
	}
	rc = n ? rs_run(r, "reading rows", err) : 0;
	for (size_t i = 0; !rc && i < n; i++) {
		row[i] = r->reply[i]->text;
		missing |= !row[i].p;
	}
	for (int c = 0; !rc && missing && r->cell_n > 1 && c < r->cell_n; c++) {
		rs_command_key(r, c, "HMGET", "entries");
		rs_expect_n(r, "(t?)=", n);
		for (size_t i = 0; i < n; i++)
			rs_addi(r, p[i].id);
		rc = rs_run(r, "reading rows", err);
		for (size_t i = 0; !rc && i < n; i++)
			row[i] = row[i].p ? row[i] : rs_elem(r->reply[0], i)->text;
	}
	return rc;
}

static int entry_batch_show(struct redis_entry_list *l, const struct redis_pick *p, size_t n, struct fw_err *err)
{
	struct fw_entry_row *e = fw_arena_calloc(&l->r->arena, n + 1, sizeof(*e));
	struct fw_feed *f = fw_arena_calloc(&l->r->arena, n + 1, sizeof(*f));
	struct fw_str *row = fw_arena_calloc(&l->r->arena, n + 1, sizeof(*row));
	int rc;

	if (!e || !f || !row)
		return rs_no_memory(l->r, err);
	rc = entry_rows_read(l->r, p, row, n, err);
	for (size_t i = 0; !rc && i < n; i++) {
		if (row[i].p && rs_entry_unpack(row[i], &e[i]))
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
	int cell = rs_cell(l->r, l->q->feed_id), rc;

	rs_command(l->r, cell, "HVALS");
	rs_expect(l->r, "(t)");
	rs_key(l->r, cell, "keys:%lld", (long long)l->q->feed_id);
	rc = rs_run(l->r, "listing a feed's entries", err);
	for (size_t i = 0; !rc && i < l->r->reply[0]->n; i++) {
		struct rs_key_value k;

		if (rs_key_value_unpack(rs_elem(l->r->reply[0], i)->text, &k) && k.id)
			fw_buf_add(&picks, &(struct redis_pick){k.date_ms, k.id, cell}, sizeof(struct redis_pick));
	}
	return picks_buf_show(l, &picks, rc, err);
}

static int entries_by_id(struct redis_entry_list *l, struct fw_err *err)
{
	struct rs_walk w = {.key = "entry_ids", .end = l->before_id, .next = INT64_MAX};
	int rc = 0;

	for (int cell = 0; cell < l->r->cell_n; cell++)
		w.next = FW_MIN(w.next, l->since[cell]);
	w.next = FW_MAX(w.next, l->q->after_id);
	while (!rc && !w.done && !entry_list_is_full(l)) {
		struct fw_buf picks = FW_BUF_INIT(0);
		struct rs_page_row *at;
		size_t n;

		fw_arena_reset(&l->r->arena, RS_ARENA_KEEP);
		rc = rs_walk_page(
			l->r, &w, l->q->limit && !l->scratch ? FW_MIN(l->q->limit, (size_t)PAGE) : PAGE, &at, &n, err);
		for (size_t i = 0; !rc && i < n; i++)
			fw_buf_add(&picks, &(struct redis_pick){0, at[i].id, at[i].cell}, sizeof(struct redis_pick));
		rc = picks_buf_show(l, &picks, rc, err);
	}
	return rc;
}

/* By date, only ids above a limit. */
static int entries_sorted_by_date(struct redis_entry_list *l, struct fw_err *err)
{
	struct fw_buf picks = FW_BUF_INIT(0);
	int rc;

	for (int cell = 0; cell < l->r->cell_n; cell++) {
		rs_call(l->r, cell, RS_READ, "dates");
		rs_expect(l->r, "[(t)(t)]");
		rs_addi(l->r, FW_MAX(l->since[cell], l->q->after_id));
		rs_addi(l->r, l->before_id);
	}
	rc = rs_run(l->r, "listing entries", err);
	for (int cell = 0; !rc && cell < l->r->cell_n; cell++) {
		const struct rs_reply *ids = rs_elem(l->r->reply[cell], 0), *dates = rs_elem(l->r->reply[cell], 1);

		for (size_t i = 0; i < ids->n; i++)
			fw_buf_add(&picks,
				&(struct redis_pick){rs_int(rs_elem(dates, i)), rs_int(rs_elem(ids, i)), cell},
				sizeof(struct redis_pick));
	}
	return picks_buf_show(l, &picks, rc, err);
}

struct redis_date_page {
	int64_t before_ms; /* inclusive */
	size_t per;
};

static void date_page_request(struct rs *r, int cell, const void *ctx)
{
	const struct redis_date_page *d = ctx;

	rs_command_key(r, cell, "ZREVRANGEBYSCORE", "entry_dates");
	rs_expect_n(r, "(tt)<", d->per);
	rs_addi(r, d->before_ms);
	rs_adds(r, "-inf");
	rs_adds(r, "WITHSCORES");
	rs_adds(r, "LIMIT");
	rs_addi(r, 0);
	rs_addi(r, (int64_t)d->per);
}

/*
 * One page backwards from *date_ms. A cell that returned as many entries as requested may have more
 * of its last date. So only later entries are shown; if there are none, the next request asks for
 * more.
 */
static int date_page(struct redis_entry_list *l, int64_t *date_ms, size_t *per, bool *done, struct fw_err *err)
{
	struct fw_buf picks = FW_BUF_INIT(0);
	int64_t edge = INT64_MIN;
	const struct rs_reply **reply;
	size_t n = 0;
	struct redis_pick *p;
	int rc;

	assert(*per);
	fw_arena_reset(&l->r->arena, RS_ARENA_KEEP);
	rc = cells_request(l->r, date_page_request, &(struct redis_date_page){*date_ms, *per}, &reply, err);
	for (int cell = 0; !rc && cell < l->r->cell_n; cell++) {
		const struct rs_reply *e = reply[cell];

		for (size_t i = 0; i + 2 <= e->n; i += 2)
			fw_buf_add(&picks, &(struct redis_pick){rs_int(rs_elem(e, i + 1)), rs_int(rs_elem(e, i)), cell},
				sizeof(struct redis_pick));
		if (e->n >= 2 * *per)
			edge = FW_MAX(edge, rs_int(rs_elem(e, e->n - 1)));
	}
	*done = edge == INT64_MIN;
	p = (struct redis_pick *)(void *)picks.p;
	for (size_t i = 0; !picks.rc && i < picks.len / sizeof(*p); i++) {
		if (*done || p[i].date_ms > edge)
			p[n++] = p[i];
	}
	if (!picks.rc)
		picks.len = n * sizeof(*p);
	*per *= n ? 1 : 4;
	*date_ms = n ? edge : *date_ms;
	return picks_buf_show(l, &picks, rc, err);
}

static int entries_by_date(struct redis_entry_list *l, struct fw_err *err)
{
	int64_t date_ms = l->q->behind_id ? l->q->behind_date_ms : INT64_MAX;
	size_t per = (l->q->limit && !l->scratch ? FW_MIN(l->q->limit, (size_t)PAGE) : PAGE) / (size_t)l->r->cell_n +
		10;
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
		rc = rs_id_before(l->r, "entries", SEEN, q->since_ms - SEEN_SLACK_MS, l->since, err);
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
			rs_command(r, at[i].cell, "HGETALL");
			rs_expect(r, "(tt)");
			rs_key(r, at[i].cell, "keys:%lld", (long long)at[i].id);
		}
		rc = rc || !n ? rc : rs_run(r, "listing keys", err);
		for (size_t i = 0; !rc && i < n; i++)
			rc = RS_CALLBACK(r, key_show(at[i].id, r->reply[i], cb, ctx));
	}
	return rc;
}
