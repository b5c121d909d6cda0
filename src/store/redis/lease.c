/* SPDX-License-Identifier: ISC */
/*
 * Leases of shards. driver.h has the rules. Which leases exist and which lease holds each shard is
 * changed by one script each (script/meta.lua). A commit watches the key of its lease.
 */
#include <assert.h>

#include "base/clock.h"
#include "store/redis/redis.h"

/*
 * A worker stops this long before its lease ends: a tenth of it, for clocks that run at different
 * speeds and for requests in flight.
 */
#define SAFETY_MARGIN_MS(lease_ms) ((lease_ms) / 10)

int rs_lease_over(struct rs *r, struct fw_err *err)
{
	return fw_err_set(err, FW_ESTALE, "%s: this worker's lease is over: others have its feeds", r->target.name);
}

static int versions_read(struct rs *r, const struct rs_reply *held, struct store_lease *l, struct fw_err *err)
{
	int rc;

	l->shard_n = 0;
	for (size_t i = 0; i + 2 <= held->n && l->shard_n < STORE_SHARDS; i += 2)
		l->shard[l->shard_n++] = (struct store_shard){
			(int)(rs_int(rs_elem(held, i)) & (STORE_SHARDS - 1)), 0, rs_int(rs_elem(held, i + 1))};
	if (!l->shard_n)
		return 0;
	assert(l->shard_n <= STORE_SHARDS);
	rs_command_key(r, "HMGET", "version");
	rs_expect_n(r, "(i?)=", l->shard_n);
	for (size_t i = 0; i < l->shard_n; i++) {
		rs_int_pad(rs_word(r), l->shard[i].shard, 4);
		rs_word_end(r);
	}
	rc = rs_run(r, "a heartbeat", err);
	for (size_t i = 0; !rc && i < l->shard_n; i++)
		l->shard[i].version = rs_int(rs_elem(r->reply[0], i));
	return rc;
}

int rs_heartbeat(struct store *st, const char *worker, struct store_lease *l, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int64_t sent_mono_ms = fw_mono_ms();
	const struct rs_reply *got;
	int rc = rs_slot_start(r, true, err);

	if (rc)
		return rc;
	rs_call(r, RS_WRITE, "heartbeat");
	rs_expect(r, "[iii(ih)]?");
	rs_addi(r, l->id);
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
	rc = versions_read(r, rs_elem(got, 3), l, err);
	if (rc)
		return rc;
	l->id = rs_int(rs_elem(got, 0));
	l->living = (uint32_t)rs_int(rs_elem(got, 1));
	l->idle_n = (uint32_t)rs_int(rs_elem(got, 2));
	l->safe_until_mono_ms = sent_mono_ms + l->lease_ms - SAFETY_MARGIN_MS(l->lease_ms);
	return 0;
}

int rs_release(struct store *st, const struct store_release *g, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	size_t n = g->lease_id ? g->n : 0;
	int rc = rs_slot_start(r, true, err);

	if (rc)
		return rc;
	rs_call(r, RS_WRITE, "release");
	rs_addi(r, g->lease_id);
	rs_adds(r, g->lease_id || !g->worker ? "" : g->worker);
	rs_addi(r, g->leave);
	rs_addi(r, (int64_t)n);
	for (size_t i = 0; i < n; i++) {
		rs_addi(r, g->shard[i].shard);
		rs_addi(r, g->shard[i].quiet_since_ms);
	}
	rs_addi(r, g->lease_id ? 0 : g->crashed_feed_id);
	rs_addi(r, FW_STORE_CRASH_MAX);
	return rs_run(r, "giving shards back", err);
}
