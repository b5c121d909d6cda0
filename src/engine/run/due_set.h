/* SPDX-License-Identifier: ISC */
/*
 * The due set: what is due soon in the shards of one worker, and which of it is claimed next. In
 * memory, pure: it knows neither store nor clock.
 *
 *   - A shard's feeds come from one read of the store and replace those that it had. A read keeps
 *     the earliest of each host, and of no host more than its fair part, where it holds less than
 *     there is (due_read).
 *   - A feed that is not due yet waits outside of the order. From its due time on it may be
 *     claimed.
 *   - Order of a run: by due time; of a backlog (more than `slots` feeds are late by backlog_ms):
 *     most intervals late first (fw_late_intervals), and every second one is a feed that was never
 *     visited, as long as there are any. Feeds that a person asked for (FW_DUE_FIRST) come before
 *     all others. Order of a --once: by the plan over the whole set (sched/plan.h). Of feeds that are
 *     about as late, or take about as long, those of one shard follow each other.
 *   - Of one host no more than host_claims are claimed at once, and one each gap. That bounds what
 *     is read ahead, and is no promise to the host: the owner's table of hosts keeps those.
 *
 * Memory: 104 bytes for a feed, and some 270 for each host with feeds that may be claimed now. At
 * most `max` feeds, DUE_URGENT_MAX more that a person asked for, and those that are claimed.
 */
#ifndef FW_ENGINE_DUE_SET_H
#define FW_ENGINE_DUE_SET_H

#include "sched/hosts.h"
#include "sched/plan.h"
#include "store/driver.h"

#define DUE_URGENT_MAX 1000

struct due_rules {
	size_t max;
	uint32_t host_claims;      /* of one host at once; 0: no limit */
	int64_t host_gap_ms;       /* between two claims of one host */
	uint32_t slots;
	int64_t slow_us;           /* expected to take longer: slow; 0: none is */
	int64_t backlog_ms;        /* 0: by due time, whatever is late */
	bool once;                 /* all that is put is due, and `plan` is its order */
	struct fw_plan_rules plan;
};

enum due_state { DUE_NOWHERE, DUE_LATER, DUE_WAITING, DUE_CLAIMED };
enum due_lane { DUE_QUICK, DUE_SLOW, DUE_NEW, DUE_LANES };

struct due_item { /* a feed of the set: read only */
	struct fw_hosts_item item; /* feed_id, urgent; while it is due later the node is that of the heap */
	struct due_item *next, *prev; /* of its shard; or of those that are free */
	int64_t due_at_ms, host_id, last_visit_ms;
	uint32_t expect_ms;
	uint16_t shard;
	uint8_t lane, state;
};

/* ---- a read of one shard --------------------------------------------------------------------- */

struct due_read {
	struct store_due *row;
	size_t n, cap;
	size_t room;               /* so many are kept */
	bool cut;                  /* there were more */
};
/* FW_ENOMEM. Memory: 2 * room rows. */
FW_MUST_CHECK int due_read_add(struct due_read *r, const struct store_due *due);
void due_read_end(struct due_read *r); /* keep what there is room for */
void due_read_finish(struct due_read *r);

/* ---- the set --------------------------------------------------------------------------------- */

struct due_set;
struct due_set *due_set_new(const struct due_rules *rules); /* NULL: out of memory */
void due_set_free(struct due_set *d);
/*
 * How many feeds a shard may have. unread: shards that were not read yet, each of which has a part
 * kept free. A shard fills half of what is free.
 */
size_t due_set_room(const struct due_set *d, int shard, size_t held, size_t unread);
size_t due_set_shard_n(const struct due_set *d, int shard); /* waiting, or due later */
int64_t due_set_shard_work_ms(const struct due_set *d, int shard); /* expected of those that wait */
int64_t due_set_work_ms(const struct due_set *d); /* of all that wait */
size_t due_set_n(const struct due_set *d);
size_t due_set_waiting(const struct due_set *d);
/*
 * So long took a visit of a feed of this host. A feed that was never visited is slow when its host is:
 * by an average of those last told, in a table in which hosts may take each other's place.
 */
void due_set_learn(struct due_set *d, int64_t host_id, int64_t expect_us);
/* All of a shard leave but those that are claimed. */
void due_set_clear(struct due_set *d, int shard);
/* FW_ENOMEM; FW_EAGAIN: there is no room. */
FW_MUST_CHECK int due_set_put(struct due_set *d, const struct store_due *due, struct fw_hosts_now now);
/*
 * Those whose time has come may be claimed. Returns when the next one's comes: wall; INT64_MAX:
 * none waits for its time.
 */
int64_t due_set_ripen(struct due_set *d, struct fw_hosts_now now);
/*
 * The next one, and it is claimed; NULL: none. *next_ms: monotonic, when a host's pause ends;
 * INT64_MAX: none has one. slow: slow ones too. urgent: only what a person asked for.
 */
struct due_item *due_set_claim(struct due_set *d, int64_t mono_ms, bool slow, bool urgent, int64_t *next_ms);
/* Could anything be claimed? */
bool due_set_ready(struct due_set *d, int64_t mono_ms, int64_t *next_ms);
/* A claim ends: the feed is not in the set any more. */
void due_set_done(struct due_set *d, struct due_item *it, struct fw_hosts_now now);
/*
 * A claim ends, and the feed waits again; none of its host's is claimed before until_ms (monotonic;
 * FW_PACE_MAX_MS from now at the latest).
 */
void due_set_back(struct due_set *d, struct due_item *it, int64_t until_ms, struct fw_hosts_now now);
/*
 * Look at the order anew: is there a backlog, or is something not planned yet? FW_ENOMEM: it is as
 * it was. Cost O(n log n) where it is put in order again.
 */
FW_MUST_CHECK int due_set_order(struct due_set *d, struct fw_hosts_now now);
bool due_set_has_backlog(const struct due_set *d);
size_t due_set_unplanned(const struct due_set *d); /* of a --once */

#endif
