/* SPDX-License-Identifier: ISC */
/*
 * The due set: the feeds of one worker's shards that are due soon, and their order. In memory and
 * pure: it knows neither the store nor a clock.
 *
 * - One read of the store brings a shard's feeds, which replace those that the set had. If there is
 *   not room for all, the read keeps the earliest feeds of each host, and of no host more than its
 *   fair share (due_read).
 * - A feed that is not due yet stands outside the order. It can be claimed from its due time on.
 * - The order of a continuous run is due time. In a backlog (more than `slots` feeds are late by
 *   backlog_ms) it is lateness in intervals, greatest first (fw_due_priority), and every second
 *   feed is a never visited one, while there are any. Urgent feeds (FW_DUE_FIRST: a person
 *   requested them) come before all others. The order of a run --once is the fetch plan over the
 *   whole set (sched/plan.h). Feeds with about the same lateness or duration follow each other
 *   shard by shard.
 * - No more than host_claims feeds of one host are claimed at once, and one in each gap. This
 *   bounds the prefetch. It does not rate limit the host: the owner's hosts' table does that.
 *
 * Memory: 104 bytes for each feed, and about 270 for each host that has feeds to claim now. The set
 * holds at most `max` feeds, DUE_URGENT_MAX more that are urgent, and the claimed ones.
 */
#ifndef FW_ENGINE_DUE_SET_H
#define FW_ENGINE_DUE_SET_H

#include "sched/hosts.h"
#include "sched/plan.h"
#include "store/driver.h"

#define DUE_URGENT_MAX 1000

struct due_rules {
	size_t max;
	uint32_t host_claims; /* claims of one host at once; 0: no limit */
	int64_t host_gap_ms;  /* between two claims of one host */
	uint32_t slots;
	/* a feed that is expected to take longer is slow; 0: no feed is */
	int64_t slow_us;
	int64_t backlog_ms; /* 0: always by due time */
	bool once;          /* run --once: every feed is due, and `plan` is the order */
	struct fw_plan_rules plan;
};

enum due_state { DUE_NOWHERE, DUE_LATER, DUE_WAITING, DUE_CLAIMED };
enum due_queue { DUE_QUICK, DUE_SLOW, DUE_NEW, DUE_QUEUES };

/* a feed of the set; read-only for callers */
struct due_item {
	struct fw_hosts_item item;    /* feed_id, urgent; DUE_LATER: its node stands in the heap */
	struct due_item *next, *prev; /* list of its shard, or of free items */
	int64_t due_at_ms, host_id, last_visit_ms;
	uint32_t expect_ms;
	uint16_t shard;
	uint8_t queue, state;
};

/* ---- a read of one shard --------------------------------------------------------------------- */

struct due_read {
	struct store_due *row;
	size_t n, cap;
	size_t room; /* number of rows to keep */
	bool cut;    /* there were more rows */
};
/* FW_ENOMEM. Memory: 2 * room rows. */
FW_MUST_CHECK int due_read_add(struct due_read *r, const struct store_due *due);
void due_read_end(struct due_read *r); /* keep the rows that there is room for */
void due_read_finish(struct due_read *r);

/* ---- the set --------------------------------------------------------------------------------- */

struct due_set;
struct due_set *due_set_create(const struct due_rules *rules); /* NULL: out of memory */
void due_set_destroy(struct due_set *d);
/*
 * Limit of feeds for a shard. unread: number of shards not read yet; a part is kept free for each.
 * A shard may fill half of the free room.
 */
size_t due_set_room(const struct due_set *d, int shard, size_t held, size_t unread);
size_t due_set_shard_n(const struct due_set *d, int shard); /* due now, or later */
/* expected time of the feeds that are due */
int64_t due_set_shard_work_ms(const struct due_set *d, int shard);
int64_t due_set_work_ms(const struct due_set *d); /* the same for all shards */
size_t due_set_n(const struct due_set *d);
size_t due_set_waiting(const struct due_set *d);
/*
 * Learn the duration of a visit at this host. A feed that was never visited is slow if its host is.
 * The value is a moving average, in a hash table where a host may displace another.
 */
void due_set_learn(struct due_set *d, int64_t host_id, int64_t expect_us);
/* Remove all feeds of a shard that are not claimed. */
void due_set_clear(struct due_set *d, int shard);
/* Add a feed. FW_ENOMEM; FW_EAGAIN: there is no room. */
FW_MUST_CHECK int due_set_put(struct due_set *d, const struct store_due *due, struct fw_hosts_now now);
/*
 * Make the feeds claimable that are due by now. Returns the due time of the next one (Unix ms), or
 * INT64_MAX.
 */
int64_t due_set_advance(struct due_set *d, struct fw_hosts_now now);
/*
 * Take the next feed and mark it as claimed; NULL: none. *next_ms: monotonic, when the first host's
 * gap ends; INT64_MAX: none waits. slow: slow feeds too. urgent: urgent feeds only.
 */
struct due_item *due_set_claim(struct due_set *d, int64_t mono_ms, bool slow, bool urgent, int64_t *next_ms);
/* Would due_set_claim() return a feed, with slow ones? */
bool due_set_ready(struct due_set *d, int64_t mono_ms, int64_t *next_ms);
/* A claim ends, and the feed leaves the set. */
void due_set_done(struct due_set *d, struct due_item *it, struct fw_hosts_now now);
/*
 * A claim ends, and the feed can be claimed again. No feed of its host is claimed before until_ms
 * (monotonic; at most FW_LEARNED_DELAY_MAX_MS from now).
 */
void due_set_put_back(struct due_set *d, struct due_item *it, int64_t until_ms, struct fw_hosts_now now);
/*
 * Update the order: detect a backlog, plan what is not planned yet. FW_ENOMEM: the order is
 * unchanged. Cost: O(n log n) if the set is reordered.
 */
FW_MUST_CHECK int due_set_order(struct due_set *d, struct fw_hosts_now now);
bool due_set_has_backlog(const struct due_set *d);
size_t due_set_unplanned(const struct due_set *d); /* run --once: feeds not in the plan yet */

#endif
