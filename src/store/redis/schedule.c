/* SPDX-License-Identifier: ISC */
/* The due set, the clock, statistics and retention. */
#include <assert.h>

#include "store/redis/redis.h"

#define FEEDS_AT_ONCE 4000 /* feeds per read, about; but one shard at least */
#define SHARDS_AT_ONCE 32
#define VISITS_STEP 100
#define ENTRIES_STEP 20
/* ids rise with seen_ms, except for clocks and processes that differ by less than this */
#define SEEN_SLACK_MS 60000

/*
 * INFO, because the ACL that we ask for grants it and not ROLE. A user without it learns at the
 * next write.
 */
int rs_clock(struct store *st, int64_t *now_ms, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	bool asks_role = !r->read_only;
	const struct rs_reply *time;
	struct rs_reply *all;
	int rc = rs_slot_start(r, false, err);

	if (rc)
		return rc;
	rs_conn_command(r->conn, "TIME");
	if (asks_role)
		rs_conn_command(r->conn, "INFO replication");
	rc = rs_conn_exchange(r->conn, &r->arena, &all, err);
	if (rc)
		return rc;
	time = rs_elem(all, 0);
	if (time->type == RS_ERROR)
		return rs_error(r, time->text, "reading the clock", err);
	if (!rs_reply_fits(time, RS_TIME, 0))
		return rs_malformed(r, "reading the clock", err);
	if (fw_str_eq(rs_info_field(rs_elem(all, 1), "role"), FW_STR("slave")))
		return rs_error(r, FW_STR("READONLY"), "checking its role", err);
	*now_ms = rs_time_ms(time);
	return 0;
}

/* ---- due set --------------------------------------------------------------------------------- */

static int host_rows_show(const struct store_due_query *q, const struct rs_reply *list)
{
	int rc = 0;

	for (size_t i = 0; !rc && i + 2 <= list->n; i += 2) {
		struct store_host host = {.id = rs_int(rs_elem(list, i))};

		if (rs_host_unpack(rs_elem(list, i + 1)->text, &host))
			rc = q->host(q->ctx, &host);
	}
	return rc;
}

static int due_rows_show(const struct store_due_query *q, int shard, const struct rs_reply *rows)
{
	int rc = 0;

	for (size_t i = 0; !rc && i + 2 <= rows->n; i += 2) {
		struct fw_feed f = {.id = rs_int(rs_elem(rows, i))};
		struct rs_schedule_row s;

		if (!rs_schedule_row_unpack(rs_elem(rows, i + 1)->text, &f, &s) || f.status ||
			f.due_at_ms > q->until_ms)
			continue;
		rc = q->due(q->ctx,
			&(struct store_due){.feed_id = f.id,
				.due_at_ms = f.due_at_ms,
				.host_id = s.host_id,
				.expect_us = f.expect_us,
				.expect_dev_us = f.expect_dev_us,
				.last_visit_ms = f.last_visit_ms,
				.shard = shard});
	}
	return rc;
}

/* Requests one shard: its hosts, and its feeds. */
static void shard_request(struct rs *r, const struct store_due_query *q, int shard)
{
	if (q->host) {
		rs_command(r, "HGETALL");
		rs_expect(r, "(tt)");
		rs_key(r, "hosts:%04d", shard);
	}
	if (q->due) {
		rs_command(r, "HGETALL");
		rs_expect(r, "(tt)");
		rs_key(r, "schedule:%04d", shard);
	}
}

static int due_list(struct rs *r, const struct store_due_query *q, int first, int n, struct fw_err *err)
{
	const struct rs_reply **reply;
	size_t feed_n = 0;
	int rc;

	assert(n > 0 && first + n <= STORE_SHARDS);
	for (int shard = first; shard < first + n; shard++)
		shard_request(r, q, shard);
	rc = rs_run(r, "reading due feeds", err);
	reply = r->reply;
	for (int shard = first; !rc && shard < first + n; shard++) {
		if (q->host)
			rc = RS_CALLBACK(r, host_rows_show(q, *reply++));
		if (!rc && q->due) {
			feed_n += (*reply)->n / 2;
			rc = RS_CALLBACK(r, due_rows_show(q, shard, *reply++));
		}
	}
	n = (int)(FEEDS_AT_ONCE / (feed_n / (size_t)n + 1));
	r->shards_at_once = FW_MAX(1, FW_MIN(n, SHARDS_AT_ONCE));
	return rc;
}

int rs_due(struct store *st, const struct store_due_query *q, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int first = FW_MAX(q->shard, 0), end = q->shard < 0 ? STORE_SHARDS : FW_MAX(q->shard, q->last_shard) + 1;
	int rc = rs_slot_start(r, false, err);

	for (int n; !rc && first < end; first += n) {
		fw_arena_reset(&r->arena, RS_ARENA_KEEP);
		n = FW_MIN(end - first, r->shards_at_once);
		rc = due_list(r, q, first, n, err);
	}
	return rc;
}

/* ---- statistics ------------------------------------------------------------------------------ */

int rs_stats(struct store *st, struct fw_store_stats *out, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int64_t *const to[] = {&out->active_n, &out->paused_n, &out->gone_n, &out->quarantined_n, &out->failing_n,
		&out->due_n, &out->next_due_ms, &out->entry_n, &out->visit_n, &out->last_entry_id, &out->last_visit_id,
		&out->last_feed_id, &out->clash_n};
	int64_t now_ms = 0;
	int rc = rs_clock(st, &now_ms, err);

	if (rc)
		return rc;
	rs_call(r, RS_READ, "stats");
	rs_expect(r, "[iiiiiitiiiiii]");
	rs_addi(r, now_ms);
	rc = rs_run(r, "counting", err);
	if (rc)
		return rc;
	*out = (struct fw_store_stats){.size_bytes = -1, .schema = RS_SCHEMA};
	for (size_t i = 0; i < FW_N(to); i++)
		*to[i] = rs_int(rs_elem(r->reply[0], i));
	if (!rs_elem(r->reply[0], 6)->text.len)
		out->next_due_ms = FW_NO_DATE;
	rc = rs_inbox_count(r, &out->inbox_n, &out->inbox_refused_n, err);
	if (rc)
		return rc;
	out->feed_n = out->active_n + out->paused_n + out->gone_n + out->quarantined_n;
	if (!fw_str_int(rs_info(r, "memory", "used_memory_dataset"), &out->size_bytes))
		out->size_bytes = -1;
	return 0;
}

/* ---- retention ------------------------------------------------------------------------------- */

/*
 * Runs one operation and adds up the rows it removed. It is done again if it removed half of its
 * limit: there may be more, behind rows that are too young.
 */
static int rows_prune(struct rs *r, const char *op, const char *name, const int64_t arg[3], int64_t *n, bool *more,
	struct fw_err *err)
{
	int rc;

	rs_call(r, RS_TRIM, op);
	rs_expect(r, "i");
	if (name)
		rs_adds(r, name);
	for (int i = 0; i < 3; i++)
		rs_addi(r, arg[i]);
	rc = rs_run(r, "pruning", err);
	if (rc)
		return rc;
	*n += rs_int(r->reply[0]);
	*more |= rs_int(r->reply[0]) >= arg[1] / 2;
	return 0;
}

int rs_prune(struct store *st, struct fw_prune *p, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int rc = rs_slot_start(r, true, err);

	p->more = false;
	rc = rc ? rc : rs_ids_revoke(r, err);
	if (!rc && p->visits_before_ms)
		rc = rows_prune(r, "prune_visits", NULL, (int64_t[]){p->visits_before_ms, VISITS_STEP, 0}, &p->visit_n,
			&p->more, err);
	if (!rc && p->entries_before_ms)
		rc = rows_prune(r, "prune_entries", NULL,
			(int64_t[]){p->entries_before_ms, ENTRIES_STEP, SEEN_SLACK_MS}, &p->entry_n, &p->more, err);
	if (!rc && p->changes_before_ms)
		rc = rs_changes_prune(r, p, err);
	if (!rc && p->events_before_ms)
		rc = rows_prune(r, "event_prune", "incoming", (int64_t[]){p->events_before_ms, FW_EVENT_STEP, 0},
			&p->event_n, &p->more, err);
	if (!rc && p->events_before_ms)
		rc = rows_prune(r, "event_prune", "dead_letters", (int64_t[]){p->events_before_ms, FW_EVENT_STEP, 0},
			&p->event_n, &p->more, err);
	if (!rc && p->records)
		rc = rows_prune(r, "record_prune", NULL, (int64_t[]){p->now_ms, FW_RECORD_STEP, 0}, &p->record_n,
			&p->more, err);
	return rc;
}
