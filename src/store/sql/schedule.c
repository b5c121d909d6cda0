/* SPDX-License-Identifier: ISC */
/* Read the due set: narrow rows of adjacent shards, in key order. */
#include "store/sql/core.h"

/* Per statement: some client libraries buffer a whole result in memory. */
#define SHARDS_AT_ONCE 32
#define ROWS_AT_ONCE 4096

struct clock_read {
	int64_t now_ms;
	bool read_only;
};

static int clock_row(void *ctx, const struct sql_row *row)
{
	*(struct clock_read *)ctx = (struct clock_read){sql_int(row, 0), sql_int(row, 1)};
	return 0;
}

int sql_clock(struct store *st, int64_t *now_ms, struct fw_err *err)
{
	struct sql *s = sql_of(st);
	struct clock_read is = {.now_ms = 0};
	int rc = sql_query(s, "SELECT {now}, {readonly}", SQL_NONE, clock_row, &is, err);

	if (!rc && is.read_only && !s->read_only)
		rc = fw_err_set(err, FW_EIO, "%s: " SQL_READ_ONLY, s->name);
	*now_ms = is.now_ms;
	return rc;
}

static int due_host_row(void *ctx, const struct sql_row *row)
{
	const struct store_due_query *q = ctx;
	struct store_host host = {.id = sql_int(row, 0),
		.next_ok_ms = sql_int(row, 1),
		.cooldown_until_ms = sql_int(row, 2),
		.learned_delay_ms = sql_int(row, 3)};

	return q->host(q->ctx, &host);
}

/* A read of feeds, in order of position. */
struct due_reading {
	const struct store_due_query *q;
	int64_t next; /* position */
	size_t n;     /* rows of a statement */
};

static int due_feed_row(void *ctx, const struct sql_row *row)
{
	struct due_reading *r = ctx;
	int64_t position = sql_int(row, 0);
	struct store_due due = {.feed_id = sql_position_feed(position),
		.shard = (int)(position >> SQL_POSITION_BITS),
		.due_at_ms = sql_int(row, 1),
		.host_id = sql_int(row, 2),
		.expect_us = sql_int(row, 3),
		.expect_dev_us = sql_int(row, 4),
		.last_visit_ms = sql_int(row, 5)};

	r->next = position + 1;
	r->n++;
	return r->q->due(r->q->ctx, &due);
}

static int due_read_feeds(
	struct sql *s, const struct store_due_query *q, int64_t first, int64_t last, struct fw_err *err)
{
	struct due_reading r = {q, first, 0};
	int rc;

	do {
		r.n = 0;
		rc = sql_query(s,
			"SELECT position, due_at_ms, host_id, expect_us, expect_dev_us, last_visit_ms FROM"
			" schedule WHERE position >= ?1 AND position <= ?2 AND due_at_ms <= ?3 AND status = 0"
			" ORDER BY position LIMIT ?4",
			SQL_V(SQL_INT(r.next), SQL_INT(last), SQL_INT(q->until_ms), SQL_INT(ROWS_AT_ONCE)),
			due_feed_row, &r, err);
	} while (!rc && r.n == ROWS_AT_ONCE && r.next <= last);
	return rc;
}

/* Read the shards from first to last. */
static int due_read_shards(struct sql *s, const struct store_due_query *q, int first, int last, struct fw_err *err)
{
	const int64_t in_shard = (INT64_C(1) << SQL_POSITION_BITS) - 1;
	struct store_due_query mine = *q;
	int rc = 0;

	if (q->host)
		rc = sql_query(s,
			"SELECT host_id, next_ok_ms, cooldown_until_ms, learned_delay_ms FROM hosts WHERE shard >= ?1 "
			"AND shard <= ?2",
			SQL_V(SQL_INT(first), SQL_INT(last)), due_host_row, &mine, err);
	return rc || !q->due ? rc : due_read_feeds(s, q, sql_position(first, 0), sql_position(last, in_shard), err);
}

int sql_due(struct store *st, const struct store_due_query *q, struct fw_err *err)
{
	int first = FW_MAX(q->shard, 0), last = q->shard < 0 ? STORE_SHARDS - 1 : FW_MAX(q->shard, q->last_shard),
	    rc = 0;

	for (; !rc && first <= last; first += SHARDS_AT_ONCE)
		rc = due_read_shards(sql_of(st), q, first, FW_MIN(first + SHARDS_AT_ONCE - 1, last), err);
	return rc;
}
