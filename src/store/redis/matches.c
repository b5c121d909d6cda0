/* SPDX-License-Identifier: ISC */
/*
 * Matches of orders, which a commit stores with the entry:
 *
 *	matches:ORDER       sorted set of rows by change id: "change entry feed at_ms changed"
 *	dead_matches:ORDER  the same for dead ones
 *	match_orders        set of the orders that have either
 */
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

	if (rc)
		return rc;
	rs_call(r, RS_WRITE, "match_put");
	rs_adds(r, dead ? "dead_" : "");
	rs_addi(r, (int64_t)n);
	for (size_t i = 0; i < n; i++) {
		rs_addi(r, match[i].order_id);
		rs_addi(r, match[i].change_id);
		rs_match_row_add(r, &match[i]);
	}
	return rs_run(r, "storing matches", err);
}

int rs_match_remove(
	struct store *st, int64_t order_id, bool dead, const int64_t *change_id, size_t n, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int rc = rs_slot_start(r, true, err);

	if (rc)
		return rc;
	rs_call(r, RS_TRIM, "match_remove");
	rs_adds(r, dead ? "dead_" : "");
	rs_addi(r, order_id);
	rs_addi(r, (int64_t)n);
	for (size_t i = 0; i < n; i++)
		rs_addi(r, change_id[i]);
	return rs_run(r, "removing matches", err);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int matches_read(struct rs *r, const struct fw_match_query *q, int64_t after_id, struct fw_err *err)
{
	fw_arena_reset(&r->arena, RS_ARENA_KEEP);
	rs_command(r, "ZRANGEBYSCORE");
	rs_expect_n(r, "(t)<", PAGE);
	rs_key(r, "%smatches:%lld", q->dead ? "dead_" : "", (long long)q->order_id);
	fw_buf_addf(rs_word(r), "(%lld", (long long)after_id);
	rs_word_end(r);
	rs_adds(r, "+inf");
	rs_adds(r, "LIMIT");
	rs_addi(r, 0);
	rs_addi(r, PAGE);
	return rs_run(r, "listing matches", err);
}

int rs_match_list(struct store *st, const struct fw_match_query *q, fw_match_cb *cb, void *ctx, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int64_t after_id = FW_MAX(q->after_change_id, INT64_C(0));
	size_t left = q->limit ? q->limit : SIZE_MAX, n = PAGE;
	int rc = rs_slot_start(r, false, err);

	while (!rc && n == PAGE && left) {
		rc = matches_read(r, q, after_id, err);
		n = rc ? 0 : r->reply[0]->n;
		for (size_t i = 0; !rc && i < n && left; i++) {
			struct fw_match m = {.order_id = q->order_id};

			if (!match_row_unpack(rs_elem(r->reply[0], i)->text, &m))
				continue;
			left--;
			after_id = m.change_id;
			rc = RS_CALLBACK(r, cb(ctx, &m));
		}
	}
	return rc;
}

int rs_match_summary(struct store *st, fw_match_summary_cb *cb, void *ctx, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int rc = rs_slot_start(r, false, err);

	if (rc)
		return rc;
	rs_call(r, RS_READ, "match_summary");
	rs_expect(r, "([iiit])");
	rc = rs_run(r, "counting matches", err);
	for (size_t i = 0; !rc && i < r->reply[0]->n; i++) {
		const struct rs_reply *row = rs_elem(r->reply[0], i);
		int64_t pending_n = rs_int(rs_elem(row, 1)), dead_n = rs_int(rs_elem(row, 2));
		struct fw_match first = {.at_ms = 0};

		(void)match_row_unpack(rs_elem(row, 3)->text, &first); /* empty: none waits */
		if (pending_n || dead_n)
			rc = RS_CALLBACK(r, cb(ctx, rs_int(rs_elem(row, 0)), pending_n, dead_n, first.at_ms));
	}
	return rc;
}
