/* SPDX-License-Identifier: ISC */
/* Visits: a row each. A feed's are a list, each with the number of the one before it. */
#include <stdlib.h>
#include <string.h>

#include "store/redis/redis.h"
#include "base/banned.h"

#define HISTORY 500 /* of a feed, at a time */
#define PORTION 500
#define TRIES 3
#define SLACK_MS INT64_C(3600000)
#define AT "^%d+ %d+ %d+ %d+ %S+ (%S+)"

struct listing {
	struct rs *r;
	const struct fw_visit_query *q;
	fw_visit_cb *cb;
	void *ctx;
	size_t shown;
	int64_t last_id;
};

static bool is_full(const struct listing *l)
{
	return l->q->limit && l->shown >= l->q->limit;
}

static int show(struct listing *l, struct fw_visit *v, struct fw_str url)
{
	const struct fw_visit_query *q = l->q;

	if (v->at_ms < q->since_ms || (q->run_id && v->run_id != q->run_id) || is_full(l) ||
		v->id == l->last_id)
		return 0;
	l->last_id = v->id; /* one on its way to another cell is there twice */
	l->shown++;
	v->feed_url = url;
	return RS_SHOW(l->r, l->cb(l->ctx, v));
}

/* ---- of a feed ------------------------------------------------------------------------------- */

static int newest_first(const void *a, const void *b)
{
	const struct fw_visit *x = a, *y = b;

	if (x->at_ms != y->at_ms)
		return x->at_ms > y->at_ms ? -1 : 1;
	return x->id > y->id ? -1 : x->id < y->id;
}

/* The next ones of the list, back from *id; that becomes where to go on, 0: there are no more. */
static int history_read(struct rs *r, int cell, int64_t *id, struct fw_buf *out, struct fw_err *err)
{
	int rc;

	rs_op(r, cell, RS_READ, "history");
	rs_addi(r, *id);
	rs_addi(r, HISTORY);
	rc = rs_run(r, "listing visits", err);
	*id = 0;
	for (size_t i = 0; !rc && i + 2 <= r->reply[0]->n; i += 2) {
		struct fw_str before, row = r->reply[0]->elem[i + 1]->text;
		struct fw_visit v;

		(void)fw_str_split(row, ' ', &before);
		if (r->reply[0]->n < (size_t)2 * HISTORY || !fw_str_int(fw_str_split(before, ' ', &before), id))
			*id = 0;
		if (!rs_visit_unpack(row, &v))
			continue;
		v.id = rs_int(r->reply[0]->elem[i]);
		fw_buf_add(out, &v, sizeof(v));
	}
	return rc ? rc : out->rc ? rs_no_memory(r, err) : 0;
}

static int of_feed(struct listing *l, struct fw_err *err)
{
	struct fw_buf all = FW_BUF_INIT(0);
	struct rs_place p = {.id = l->q->feed_id};
	struct fw_feed f = {.id = l->q->feed_id};
	struct rs_state s = {0};
	struct fw_visit *v;
	bool there = false;
	size_t n;
	int cell = 0, rc = 0;

	for (int i = 0; !rc && !there && i < TRIES; i++) { /* it may go to another cell just now */
		rc = rs_places_find(l->r, &p, 1, err);
		if (rc || p.shard < 0)
			return rc;
		cell = rs_cell(p.shard);
		rs_ask(l->r, cell, "HGET", "state");
		rs_addi(l->r, f.id);
		rc = rs_run(l->r, "listing visits", err);
		there = !rc && l->r->reply[0]->text.p && rs_state_unpack(l->r->reply[0]->text, &f, &s);
	}
	if (rc || !there)
		return rc;
	rc = rs_feeds_read(l->r, &f, &cell, 1, true, err);
	while (!rc && s.last_visit_id)
		rc = history_read(l->r, cell, &s.last_visit_id, &all, err);
	v = (struct fw_visit *)(void *)all.p;
	n = all.len / sizeof(*v);
	if (!rc && n)
		qsort(v, n, sizeof(*v), newest_first);
	for (size_t i = 0; !rc && i < n; i++)
		rc = show(l, &v[i], f.url);
	fw_buf_finish(&all);
	return rc;
}

/* ---- of all ---------------------------------------------------------------------------------- */

static int portion_show(struct listing *l, const struct rs_number *at, size_t n, struct fw_err *err)
{
	struct fw_visit *v = fw_arena_calloc(&l->r->arena, n + 1, sizeof(*v));
	struct fw_feed *f = fw_arena_calloc(&l->r->arena, n + 1, sizeof(*f));
	struct fw_str *row = fw_arena_calloc(&l->r->arena, n + 1, sizeof(*row));
	int *cell = fw_arena_calloc(&l->r->arena, n + 1, sizeof(*cell)), rc;

	if (!v || !f || !row || !cell)
		return rs_no_memory(l->r, err);
	rc = rs_rows_read(l->r, "visits", at, cell, row, n, err);
	for (size_t i = 0; !rc && i < n; i++) {
		if (row[i].p && rs_visit_unpack(row[i], &v[i]))
			v[i].id = at[i].id;
		f[i].id = v[i].feed_id;
	}
	rc = rc ? rc : rs_feeds_read(l->r, f, cell, n, true, err);
	for (size_t i = 0; !rc && i < n; i++)
		rc = v[i].id && f[i].url.p ? show(l, &v[i], f[i].url) : 0;
	return rc;
}

int rs_visit_list(
	struct store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx, struct fw_err *err)
{
	struct listing l = {.r = rs_of(st), .q = q, .cb = cb, .ctx = ctx};
	struct rs_walk w = {.key = "visit_ids", .down = !q->oldest_first};
	int64_t since[RS_CELLS] = {0}, first = INT64_MAX;
	struct rs_number *at;
	size_t n;
	int rc = rs_start(l.r, false, err);

	if (q->feed_id && !q->oldest_first)
		return rc ? rc : of_feed(&l, err);
	if (!rc && (q->since_ms || q->run_id)) /* a run is called by when it began */
		rc = rs_since(l.r, "visits", AT, FW_MAX(q->since_ms, q->run_id) - SLACK_MS, since, err);
	for (int cell = 0; cell < RS_CELLS; cell++)
		first = FW_MIN(first, since[cell]);
	w.next = w.down ? INT64_MAX : FW_MAX(q->after_id, first);
	w.end = w.down ? first : INT64_MAX;
	while (!rc && !w.done && !is_full(&l)) {
		fw_arena_reset(&l.r->arena, RS_ARENA_KEEP);
		rc = rs_walk_page(l.r, &w, q->limit && !q->run_id ? FW_MIN(q->limit, (size_t)PORTION) : PORTION,
			&at, &n, err);
		rc = rc ? rc : portion_show(&l, at, n, err);
	}
	return rc;
}
