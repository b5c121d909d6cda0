/* SPDX-License-Identifier: ISC */
/* Read the due set: narrow rows of adjacent shards, in key order. */
#include "store/sql/core.h"
#include "base/banned.h"

#define SHARDS_AT_ONCE 32 /* per statement: some client libraries buffer a whole result in memory */

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

static int due_feed_row(void *ctx, const struct sql_row *row)
{
	const struct store_due_query *q = ctx;
	int64_t position = sql_int(row, 0);
	struct store_due due = {.feed_id = sql_position_feed(position),
		.shard = (int)(position >> SQL_POSITION_BITS),
		.due_at_ms = sql_int(row, 1),
		.host_id = sql_int(row, 2),
		.expect_us = sql_int(row, 3),
		.expect_dev_us = sql_int(row, 4),
		.last_visit_ms = sql_int(row, 5)};

	return q->due(q->ctx, &due);
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
	if (!rc && q->due)
		rc = sql_query(s,
			"SELECT position, due_at_ms, host_id, expect_us, expect_dev_us, last_visit_ms FROM"
			" schedule WHERE position >= ?1 AND position <= ?2 AND due_at_ms <= ?3 AND status = 0",
			SQL_V(SQL_INT(sql_position(first, 0)), SQL_INT(sql_position(last, in_shard)),
				SQL_INT(q->until_ms)),
			due_feed_row, &mine, err);
	return rc;
}

int sql_due(struct store *st, const struct store_due_query *q, struct fw_err *err)
{
	int first = FW_MAX(q->shard, 0), last = q->shard < 0 ? STORE_SHARDS - 1 : FW_MAX(q->shard, q->last_shard),
	    rc = 0;

	for (; !rc && first <= last; first += SHARDS_AT_ONCE)
		rc = due_read_shards(sql_of(st), q, first, FW_MIN(first + SHARDS_AT_ONCE - 1, last), err);
	return rc;
}
