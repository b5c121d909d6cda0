/* SPDX-License-Identifier: ISC */
/*
 * Matches of orders, in the cell of their feed, so that a commit stores them with the entry:
 *
 *	matches:ORDER       sorted set of rows by change id: "change entry feed at_ms changed"
 *	dead_matches:ORDER  the same for dead ones
 *	match_orders        set of the orders that have either
 */
#include <assert.h>
#include <stdlib.h>

#include "base/map.h"
#include "store/redis/redis.h"

#define PAGE 500

void rs_match_row_add(struct rs *r, const struct fw_match *m)
{
	fw_buf_addf(rs_word(r), "%lld %lld %lld %lld %d", (long long)m->change_id, (long long)m->entry_id,
		(long long)m->feed_id, (long long)m->at_ms, m->changed);
	rs_word_end(r);
}

static bool match_row_unpack(struct fw_str row, struct fw_match *m)
{
	int64_t *const part[] = {&m->change_id, &m->entry_id, &m->feed_id, &m->at_ms};
	int64_t changed;

	for (size_t i = 0; i < FW_N(part); i++) {
		if (!fw_str_int(fw_str_split(row, ' ', &row), part[i]))
			return false;
	}
	if (!fw_str_int(row, &changed))
		return false;
	m->changed = changed != 0;
	return true;
}

int rs_match_put(struct store *st, const struct fw_match *match, size_t n, bool dead, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int rc = rs_slot_start(r, true, err);

	for (int cell = 0; !rc && cell < r->cell_n; cell++) {
		int64_t mine = 0;

		for (size_t i = 0; i < n; i++)
			mine += rs_cell(r, match[i].feed_id) == cell;
		if (!mine)
			continue;
		rs_call(r, cell, RS_WRITE, "match_put");
		rs_adds(r, dead ? "dead_" : "");
		rs_addi(r, mine);
		for (size_t i = 0; i < n; i++) {
			if (rs_cell(r, match[i].feed_id) != cell)
				continue;
			rs_addi(r, match[i].order_id);
			rs_addi(r, match[i].change_id);
			rs_match_row_add(r, &match[i]);
		}
	}
	return rc ? rc : rs_run(r, "storing matches", err);
}

/* The feeds of the changes are unknown, so every cell is told. */
int rs_match_remove(
	struct store *st, int64_t order_id, bool dead, const int64_t *change_id, size_t n, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int rc = rs_slot_start(r, true, err);

	for (int cell = 0; !rc && cell < r->cell_n; cell++) {
		rs_call(r, cell, RS_TRIM, "match_remove");
		rs_adds(r, dead ? "dead_" : "");
		rs_addi(r, order_id);
		rs_addi(r, (int64_t)n);
		for (size_t i = 0; i < n; i++)
			rs_addi(r, change_id[i]);
	}
	return rc ? rc : rs_run(r, "removing matches", err);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int match_compare(const void *a, const void *b)
{
	const struct fw_match *x = a, *y = b;

	return x->change_id < y->change_id ? -1 : x->change_id > y->change_id;
}

/*
 * The next matches of all cells, in order, in the arena. Each cell gives up to a page. Beyond the
 * last row of a full page that cell may have more, so the result ends at the lowest of these.
 */
static int matches_page_read(struct rs *r, const struct fw_match_query *q, int64_t after_id, struct fw_match **out,
	size_t *n, struct fw_err *err)
{
	struct fw_match *m = fw_arena_calloc(&r->arena, (size_t)r->cell_n * PAGE, sizeof(*m));
	int64_t end_id = INT64_MAX;
	int rc;

	*n = 0;
	*out = m;
	if (!m)
		return rs_no_memory(r, err);
	for (int cell = 0; cell < r->cell_n; cell++) {
		rs_command(r, cell, "ZRANGEBYSCORE");
		rs_expect_n(r, "(t)<", PAGE);
		rs_key(r, cell, "%smatches:%lld", q->dead ? "dead_" : "", (long long)q->order_id);
		fw_buf_addf(rs_word(r), "(%lld", (long long)after_id);
		rs_word_end(r);
		rs_adds(r, "+inf");
		rs_adds(r, "LIMIT");
		rs_addi(r, 0);
		rs_addi(r, PAGE);
	}
	rc = rs_run(r, "listing matches", err);
	for (int cell = 0; !rc && cell < r->cell_n; cell++) {
		const struct rs_reply *rows = r->reply[cell];

		for (size_t i = 0; i < rows->n; i++) {
			m[*n].order_id = q->order_id;
			*n += match_row_unpack(rs_elem(rows, i)->text, &m[*n]);
		}
		if (rows->n == PAGE && *n)
			end_id = FW_MIN(end_id, m[*n - 1].change_id);
	}
	if (*n)
		qsort(m, *n, sizeof(*m), match_compare);
	while (*n && m[*n - 1].change_id > end_id)
		--*n;
	return rc;
}

int rs_match_list(struct store *st, const struct fw_match_query *q, fw_match_cb *cb, void *ctx, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int64_t after_id = FW_MAX(q->after_change_id, INT64_C(0));
	size_t shown = 0, n;
	int rc = rs_slot_start(r, false, err);

	do {
		struct fw_match *m;

		fw_arena_reset(&r->arena, RS_ARENA_KEEP);
		rc = rc ? rc : matches_page_read(r, q, after_id, &m, &n, err);
		for (size_t i = 0; !rc && i < n && (!q->limit || shown < q->limit); i++, shown++) {
			after_id = m[i].change_id;
			rc = RS_CALLBACK(r, cb(ctx, &m[i]));
		}
	} while (!rc && n >= PAGE && (!q->limit || shown < q->limit));
	return rc;
}

struct match_sum {
	int64_t order_id, pending_n, dead_n, oldest_ms;
};

static int match_sum_add(struct rs *r, struct fw_map *all, const struct rs_reply *row, struct fw_err *err)
{
	struct fw_str order = rs_elem(row, 0)->text;
	struct match_sum *s = fw_map_get(all, order);
	struct fw_match first;
	int rc = 0;

	if (!s) {
		s = fw_arena_zalloc(&r->arena, sizeof(*s));
		if (!s || !fw_str_int(order, &s->order_id))
			return s ? 0 : rs_no_memory(r, err);
		(void)fw_map_put(all, order, s, &rc);
	}
	s->pending_n += rs_int(rs_elem(row, 1));
	s->dead_n += rs_int(rs_elem(row, 2));
	if (match_row_unpack(rs_elem(row, 3)->text, &first) && (!s->oldest_ms || first.at_ms < s->oldest_ms))
		s->oldest_ms = first.at_ms;
	return rc ? rs_no_memory(r, err) : 0;
}

int rs_match_summary(struct store *st, fw_match_summary_cb *cb, void *ctx, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	const struct match_sum *s;
	struct fw_map all;
	size_t at = 0;
	int rc = rs_slot_start(r, false, err);

	for (int cell = 0; !rc && cell < r->cell_n; cell++) {
		rs_call(r, cell, RS_READ, "match_summary");
		rs_expect(r, "([tiit])");
	}
	rc = rc ? rc : rs_run(r, "counting matches", err);
	fw_map_init(&all, 0);
	for (int cell = 0; !rc && cell < r->cell_n; cell++) {
		const struct rs_reply *rows = r->reply[cell];

		for (size_t i = 0; !rc && i < rows->n; i++)
			rc = match_sum_add(r, &all, rs_elem(rows, i), err);
	}
	while (!rc && (s = fw_map_next(&all, &at, NULL)) != NULL) {
		if (s->pending_n || s->dead_n)
			rc = RS_CALLBACK(r, cb(ctx, s->order_id, s->pending_n, s->dead_n, s->oldest_ms));
	}
	fw_map_finish(&all);
	return rc;
}
