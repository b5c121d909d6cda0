/* SPDX-License-Identifier: ISC */
/*
 * Leases of shards. driver.h has the rules.
 *
 * Cell 0 stores which leases exist and which lease holds each shard. A commit checks in its own
 * cell that its lease exists. With one cell each step is one script.
 *
 * With many cells a lease starts in cell 0, then in the other cells. Then cell 0 is read again to
 * see that the lease still exists: a worker that froze in between must not start with a lease that
 * is over. A lease ends in cell 0 (`ended_leases`), then in the other cells, and only then its
 * shards become free. So two workers can never commit to the same shard. If a worker dies in
 * between, the next heartbeat of any worker completes the steps. Each step is idempotent, because
 * the id of a lease is never used again.
 */
#include <assert.h>

#include "base/clock.h"
#include "store/redis/redis.h"

#define TRIES 10
/*
 * A worker stops this long before its lease ends: a tenth of it, for clocks that run at different
 * speeds and for requests in flight.
 */
#define SAFETY_MARGIN_MS(lease_ms) ((lease_ms) / 10)

int rs_lease_over(struct rs *r, struct fw_err *err)
{
	return fw_err_set(err, FW_ESTALE, "%s: this worker's lease is over: others have its feeds", r->target.name);
}

static void strings_add(struct rs *r, const struct rs_reply *list)
{
	rs_addi(r, list ? (int64_t)list->n : 0);
	for (size_t i = 0; list && i < list->n; i++)
		rs_add(r, rs_elem(list, i)->text);
}

/* In all cells but the first: delete these leases, and create lease_id (0: none). */
static int leases_fence(struct rs *r, const struct rs_reply *gone, int64_t lease_id, struct fw_err *err)
{
	for (int cell = 1; cell < r->cell_n; cell++) {
		rs_call(r, cell, RS_WRITE, "leases");
		strings_add(r, gone);
		rs_addi(r, lease_id > 0);
		if (lease_id > 0)
			rs_addi(r, lease_id);
	}
	return rs_run(r, "fencing shards", err);
}

static int versions_read(struct rs *r, const struct rs_reply *held, struct store_lease *l, struct fw_err *err)
{
	int rc;

	l->shard_n = 0;
	for (size_t i = 0; i + 2 <= held->n && l->shard_n < STORE_SHARDS; i += 2)
		l->shard[l->shard_n++] = (struct store_shard){
			(int)(rs_int(rs_elem(held, i)) & (STORE_SHARDS - 1)), 0, rs_int(rs_elem(held, i + 1))};
	for (int cell = 0; l->shard_n && cell < r->cell_n; cell++) {
		rs_command_key(r, cell, "HMGET", "version");
		rs_expect_n(r, "(i?)=", l->shard_n);
		for (size_t i = 0; i < l->shard_n; i++) {
			rs_int_pad(rs_word(r), l->shard[i].shard, 4);
			rs_word_end(r);
		}
	}
	assert(l->shard_n <= STORE_SHARDS);
	rc = l->shard_n ? rs_run(r, "a heartbeat", err) : 0;
	for (int cell = 0; !rc && l->shard_n && cell < r->cell_n; cell++) {
		for (size_t i = 0; i < l->shard_n; i++)
			l->shard[i].version += rs_int(rs_elem(r->reply[cell], i));
	}
	return rc;
}

int rs_heartbeat(struct store *st, const char *worker, struct store_lease *l, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int64_t sent_mono_ms = fw_mono_ms(), id = l->id;
	const struct rs_reply *got = NULL, *gone = NULL;
	bool joins = !id, more = true;
	int rc = rs_slot_start(r, true, err);

	for (int i = 0; !rc && more && i < TRIES; i++) {
		sent_mono_ms = fw_mono_ms();
		rs_call(r, RS_META, RS_WRITE, "heartbeat");
		rs_expect(r, "[iii(t)(ih)]?");
		rs_addi(r, r->cell_n == 1);
		strings_add(r, gone);
		rs_addi(r, id);
		rs_adds(r, worker);
		rs_addi(r, l->lease_ms);
		rs_addi(r, l->idle);
		rs_addi(r, l->full);
		rs_addi(r, l->expected);
		rs_addi(r, l->late);
		rc = rs_run(r, "a heartbeat", err);
		got = rc ? NULL : r->reply[0];
		if (rc || got->type != RS_ARRAY)
			return rc ? rc : rs_lease_over(r, err);
		id = rs_int(rs_elem(got, 0));
		gone = rs_elem(got, 3);
		more = r->cell_n > 1 && (joins || gone->n);
		rc = more ? leases_fence(r, gone, joins ? id : 0, err) : 0;
		joins = false;
	}
	rc = rc ? rc : versions_read(r, rs_elem(got, 4), l, err);
	if (rc)
		return rc;
	l->id = id;
	l->living = (uint32_t)rs_int(rs_elem(got, 1));
	l->idle_n = (uint32_t)rs_int(rs_elem(got, 2));
	l->safe_until_mono_ms = sent_mono_ms + l->lease_ms - SAFETY_MARGIN_MS(l->lease_ms);
	return 0;
}

static int feed_crash_count(struct rs *r, int64_t feed_id, struct fw_err *err)
{
	rs_call(r, rs_cell(r, feed_id), RS_WRITE, "crashed");
	rs_addi(r, feed_id);
	rs_addi(r, FW_STORE_CRASH_MAX);
	return rs_run(r, "counting a crash", err);
}

int rs_release(struct store *st, const struct store_release *g, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	const struct rs_reply *gone = NULL;
	size_t n = g->lease_id ? g->n : 0;
	int rc = rs_slot_start(r, true, err);

	for (int i = 0; !rc && i < TRIES && (!i || gone->n); i++) {
		rs_call(r, RS_META, RS_WRITE, "release");
		rs_expect(r, "(t)");
		rs_addi(r, r->cell_n == 1);
		strings_add(r, gone);
		rs_addi(r, g->lease_id);
		rs_adds(r, g->lease_id || !g->worker ? "" : g->worker);
		rs_addi(r, g->leave);
		rs_addi(r, (int64_t)n);
		for (size_t k = 0; k < n; k++) {
			rs_addi(r, g->shard[k].shard);
			rs_addi(r, g->shard[k].quiet_since_ms);
		}
		rc = rs_run(r, "giving shards back", err);
		gone = rc ? NULL : r->reply[0];
		rc = !rc && gone->n ? leases_fence(r, gone, 0, err) : rc;
	}
	return !rc && !g->lease_id && g->crashed_feed_id ? feed_crash_count(r, g->crashed_feed_id, err) : rc;
}
