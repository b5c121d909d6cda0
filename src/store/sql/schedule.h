/* SPDX-License-Identifier: ISC */
/*
 * The schedule: who fetches which feeds, and when. (It is to replace the leases of single feeds; no store uses it yet.)
 *
 * A feed belongs to the shard of its host, one of SCHEDULE_SHARDS. A worker leases shards through one row of its own, which it keeps alive;
 * he alone fetches their feeds. So a claim is a read, hosts are limited in their owner's memory, and a commit is fenced by one row.
 *
 *   - A lease is a row of `workers` with a number that is never used again. As long as the row is there, its shards are nobody else's, and what its
 *     worker commits is taken; once it is gone all he commits is FW_ESTALE, and he joins anew. Whoever beats takes away rows whose time is over.
 *   - A worker begins no request after safe_until_mono_ms, on his own clock: by then he has not heard from the store for nearly a lease.
 *   - What a commit says of a feed that somebody else changed meanwhile (its due time is not the one that was read) leaves that due time alone.
 *   - Who changes feeds of a shard from outside (adds, removes, asks for a fetch now) raises the shard's version in the same transaction; its owner
 *     sees that at his next look and reads the shard again. So no index on due times is needed, and a visit moves no index entry: rows are
 *     rewritten where they lie.
 *   - A shard that was given back has nothing in flight. One whose owner's lease ran out may have sent a request just before: ask none of its hosts before its gap has
 *     passed since quiet_since_ms.
 *
 * Errors as in sql.h, and FW_ESTALE: the lease is lost, nothing was written.
 */
#ifndef FW_STORE_SCHEDULE_H
#define FW_STORE_SCHEDULE_H

#include "store/sql/sql.h"

#define SCHEDULE_SHARDS 1024

struct schedule_lease {
	int64_t id;               /* of the row in workers */
	int64_t lease_ms;
	int64_t safe_until_mono_ms; /* no request begins from here on; set by join and beat */
	uint32_t living;          /* workers with a lease, this one among them, at the last beat */
};

struct schedule_shard { /* one that this worker holds */
	int shard;
	int64_t version;
	int64_t quiet_since_ms;   /* of the store's clock: its hosts may have been asked until then, without a row that says so; 0: they were not */
};

struct schedule_due {
	int64_t feed_id, due_at_ms, host_id, expect_us;
};

struct schedule_state { /* what a visit always writes */
	int64_t feed_id, due_at_ms, host_id, last_visit_ms, last_ok_ms, expect_us, kind, http_status, fail_n;
	struct fw_str why;
};

struct schedule_outcome {
	int shard;
	int64_t was_due_ms;       /* as it was read */
	struct schedule_state state;
	int rc;                   /* out: 0, or FW_ENOTFOUND: the feed was removed meanwhile */
};

struct schedule_host { /* what must outlive its owner; written when it has changed */
	int64_t id;
	int shard;
	int64_t next_ok_ms, cool_until_ms, pace_ms;
};

int schedule_create(struct sql *s, struct fw_err *err); /* its tables, once */

/* A new lease, with a first part of the shards. */
int schedule_join(struct sql *s, const char *name, int64_t lease_ms, struct schedule_lease *out, struct fw_err *err);
/* Keep the lease alive, free what the dead held, take what is free up to the fair part. About three times in a lease. FW_ESTALE: join anew. */
int schedule_beat(struct sql *s, struct schedule_lease *l, struct fw_err *err);
/* What this worker holds, by number. out: room for SCHEDULE_SHARDS. One read of that many narrow rows: a look for changes, each second. */
int schedule_mine(struct sql *s, const struct schedule_lease *l, struct schedule_shard *out, size_t *n, struct fw_err *err);
/* A worker's fair part, rounded up. Who holds more gives the surplus back: first shards in which nothing is in flight. */
static inline size_t schedule_part(const struct schedule_lease *l)
{
	return (SCHEDULE_SHARDS + l->living - 1) / l->living;
}
/* Shards in which nothing is in flight, all outcomes and hosts committed; quiet_since_ms is handed on (fw_hosts_sent_until()). */
int schedule_give(struct sql *s, const struct schedule_lease *l, const struct schedule_shard *shard, size_t n, struct fw_err *err);
/* All that is left, as quiet as if its owner had died just now, and the lease. */
int schedule_leave(struct sql *s, const struct schedule_lease *l, struct fw_err *err);

/* Feeds of a shard that are due until then: row by row, in no order. Other than 0 from fn ends it. */
int schedule_look(struct sql *s, int shard, int64_t until_ms, int (*fn)(void *ctx, const struct schedule_due *due), void *ctx, struct fw_err *err);
int schedule_hosts(struct sql *s, int shard, int (*fn)(void *ctx, const struct schedule_host *host), void *ctx, struct fw_err *err);
/* Outcomes and hosts, all or nothing. No sign of life: see schedule.c. */
int schedule_commit(struct sql *s, struct schedule_lease *l, struct schedule_outcome *out, size_t n, const struct schedule_host *host, size_t host_n,
	struct fw_err *err);

/* From outside, owner or not. */
int schedule_add(struct sql *s, const int *shard, const struct schedule_due *feed, size_t n, struct fw_err *err);
int schedule_remove(struct sql *s, int shard, int64_t feed_id, struct fw_err *err);
/* Due at that time; FW_ENOTFOUND. */
int schedule_ask_for(struct sql *s, int shard, int64_t feed_id, int64_t due_at_ms, struct fw_err *err);

#endif
