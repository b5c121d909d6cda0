/* SPDX-License-Identifier: ISC */
/*
 * Per-host rate limits, and the queue of waiting feeds: when a host may be polled, and which feed
 * starts next. The table is the memory of the one worker that owns some shards of hosts.
 *
 * Rules for each host:
 *   budget         At most host_concurrency requests are in flight, from start to done.
 *   gap            Between the sendings of two requests lies max(gap_ms, learned delay). The gap
 *                  counts from the permission to start, and anew from the sending. While a host has
 *                  a gap and a request is permitted but not sent, nothing else of the host starts.
 *                  A further request of the same visit (a redirect) waits too, before all other
 *                  feeds; of a learned delay at most FW_HOSTS_FURTHER_MAX_MS, because the visit
 *                  holds its part of the budget meanwhile.
 *   cooldown       Nothing starts before it is over (Retry-After). fw_hosts_may_send() refuses
 *                  a request that is permitted and not sent yet.
 *   learned delay  A throttled response doubles it, a good one shrinks it (FW_LEARNED_DELAY_* in
 *                  store.h). A new value counts from the last sending at once.
 * A request that was permitted before the learned delay grew is not delayed.
 *
 * One row for each host survives the owner. Nothing has to be written before a request is sent:
 *   An owner sends nothing after stop_ms, which lies before the end of its lease. So the end of a
 *   dead owner's lease bounds its last sending, and its successor acts as if each host of the shard
 *   had been polled then (sent_until_ms of fw_hosts_own()). A row is dirty when the learned delay
 *   or the cooldown has changed. Only an owner that gives its shard up writes a gap that still
 *   runs; its successor then need not wait.
 * What an owner learned after its last commit is lost with the outcome that taught it. A successor
 * knows nothing of requests in flight: an owner cancels them at stop_ms. A frozen owner cannot; if
 * sent_until_ms is later by the longest duration of a request, the budget holds in that case too.
 *
 * Clocks: gaps are monotonic, because a wall clock may jump. Rows and Retry-After are wall time of
 * the store's clock, which all owners share. Calls that take or return wall time get both clocks,
 * so each conversion uses the current offset. A row from a wrong clock is clamped: a gap to the
 * longest possible one, a cooldown to FW_HOSTS_COOLDOWN_MAX_MS. All times are in ms, and so is the
 * precision.
 *
 * Memory: a host is dropped when none of its feeds waits or is in flight, no gap or cooldown runs,
 * it has no learned delay, and its row is stored. A host with a learned delay stays while its shard
 * is owned, because its row is not loaded again. One thread at a time.
 */
#ifndef FW_SCHED_HOSTS_H
#define FW_SCHED_HOSTS_H

#include "base/heap.h"
#include "feedwheel/store.h"

#define FW_HOSTS_SHARDS 1024
#define FW_HOSTS_COOLDOWN_MAX_MS (INT64_C(7) * 24 * 60 * 60 * 1000)
#define FW_HOSTS_FURTHER_MAX_MS (INT64_C(10) * 1000)

struct fw_hosts_rules {
	uint32_t host_concurrency; /* in flight of one host; 0: no limit */
	int64_t gap_ms;            /* ms between two sendings; 0: none */
};

struct fw_hosts_now {
	int64_t mono_ms; /* a clock that does not go back */
	int64_t wall_ms; /* the store's, Unix */
};

struct fw_hosts_row {
	int64_t host_id;
	int64_t next_ok_ms;        /* wall time of the earliest next request; 0: any time */
	int64_t cooldown_until_ms; /* wall time; 0: none */
	int64_t learned_delay_ms;  /* 0: none */
};

/*
 * A feed that waits or is in flight. It is a member of the caller's struct, which must not move
 * meanwhile.
 */
struct fw_hosts_host;
struct fw_hosts_item {
	int64_t order;   /* lowest first: a due time, or a position in a plan */
	int64_t feed_id; /* breaks ties: the lower id first */
	/* fetch-now: comes before all others, within its host and among hosts */
	bool urgent;

	/* the table's own. further: in flight, and its further request waits */
	bool in_flight, sent, further;
	struct fw_heap_node node;
	struct fw_hosts_host *of; /* NULL: neither waiting nor in flight */
};

struct fw_hosts;
/* NULL: out of memory. Nothing starts before fw_hosts_set_lease(). */
struct fw_hosts *fw_hosts_create(const struct fw_hosts_rules *rules);
void fw_hosts_destroy(struct fw_hosts *t); /* items still in it remain the caller's */
/*
 * The lease was renewed: nothing starts or is sent from stop_ms (monotonic) on. The caller computes
 * stop_ms from the time before it sent the renewal, less a margin.
 */
void fw_hosts_set_lease(struct fw_hosts *t, int64_t stop_ms);

/* ---- shards ---------------------------------------------------------------------------------- */

/*
 * Own a shard from now on. Then the caller loads the shard's rows, and after them its feeds.
 * sent_until_ms (wall time): until then the former owner may have sent requests that no row tells
 * of, because its lease expired or was ended; at most FW_LEARNED_DELAY_MAX_MS from now. 0: the
 * former owner gave the shard up, and its fw_hosts_sent_until() was 0.
 */
void fw_hosts_own(struct fw_hosts *t, uint32_t shard, int64_t sent_until_ms, struct fw_hosts_now now);
/*
 * Load a host's row. Where the host is known already, the later time and the longer delay hold.
 * Errors: FW_ENOMEM; FW_ESTALE: the shard is not owned.
 */
FW_MUST_CHECK int fw_hosts_row_put(
	struct fw_hosts *t, uint32_t shard, const struct fw_hosts_row *row, struct fw_hosts_now now);
/*
 * Start to give a shard up. All its waiting feeds must have been withdrawn; those in flight go on
 * until done. Then the caller stores the dirty rows a last time and calls fw_hosts_drop().
 * fw_hosts_own() before that takes the shard back with all that is known. After a lost lease the
 * caller cancels what is in flight and stores nothing. Cost O(hosts of the shard).
 */
void fw_hosts_release(struct fw_hosts *t, uint32_t shard);
/*
 * What the shard's row must tell the next owner when this one gives the shard up: wall time; 0:
 * nothing. It is the value that fw_hosts_own() got, while that may still delay a host without a
 * row.
 */
int64_t fw_hosts_sent_until(const struct fw_hosts *t, uint32_t shard, struct fw_hosts_now now);
/*
 * Drop a shard that was left and is idle. fw_hosts_rows_done() must have been called for all rows
 * taken.
 */
void fw_hosts_drop(struct fw_hosts *t, uint32_t shard);

/* ---- feeds: O(log n) each, on the average ---------------------------------------------------- */

/* Add a waiting feed. Errors: FW_ENOMEM; FW_ESTALE: the shard is not owned, or is being left. */
FW_MUST_CHECK int fw_hosts_put(struct fw_hosts *t, uint32_t shard, int64_t host_id, struct fw_hosts_item *item);
void fw_hosts_remove(struct fw_hosts *t, struct fw_hosts_item *item); /* remove a waiting feed */
/*
 * The first feed in order that may start now; it stays in the queue. NULL: none, and *next_ms is
 * the monotonic time when one may start. INT64_MAX: only after something is sent, done or put, or
 * the lease is renewed. Not NULL: *next_ms is when a further request may start, which needs no
 * place of the caller's.
 */
struct fw_hosts_item *fw_hosts_first(struct fw_hosts *t, int64_t mono_ms, int64_t *next_ms);
/* The same, and the feed, or its further request, is permitted and in flight from now on. */
struct fw_hosts_item *fw_hosts_start(struct fw_hosts *t, int64_t mono_ms, int64_t *next_ms);
/*
 * Its permitted request is about to be sent: call this at the last moment. False: it must not be
 * sent, because the lease ends or the host is in a cooldown. Then the caller cancels the request,
 * calls fw_hosts_done(), and may put the feed again.
 */
FW_MUST_CHECK bool fw_hosts_may_send(struct fw_hosts *t, const struct fw_hosts_item *item, int64_t mono_ms);
/* Its request was sent, at the latest now. */
void fw_hosts_sent(struct fw_hosts *t, struct fw_hosts_item *item, int64_t mono_ms);
/*
 * The visit needs a further request to its host, after one that was sent. The request waits until
 * fw_hosts_start() returns the item again; fw_hosts_done() may come first.
 */
void fw_hosts_further(struct fw_hosts *t, struct fw_hosts_item *item, int64_t mono_ms);
/*
 * The visit is over, sent or not. cooldown_until_ms: wall time, from Retry-After; 0: none. From now
 * on the item is the caller's.
 */
void fw_hosts_done(struct fw_hosts *t, struct fw_hosts_item *item, enum fw_host_health health,
	int64_t cooldown_until_ms, struct fw_hosts_now now);

size_t fw_hosts_waiting(const struct fw_hosts *t); /* feeds, without further requests */
size_t fw_hosts_count(const struct fw_hosts *t);   /* hosts in memory */
/* When this host may be polled again, the budget aside: monotonic; INT64_MIN: now. */
int64_t fw_hosts_free_ms(const struct fw_hosts *t, int64_t host_id);
int64_t fw_hosts_learned_delay_ms(const struct fw_hosts *t, int64_t host_id); /* 0: none is known */

/* ---- rows ------------------------------------------------------------------------------------ */

/*
 * Take at most max dirty rows for the next commit; returns how many. Fewer than max: no more are
 * dirty. Report each with fw_hosts_rows_done(). Cost O(rows).
 */
size_t fw_hosts_rows_take(struct fw_hosts *t, struct fw_hosts_row *out, size_t max, struct fw_hosts_now now);
/* The commit has ended; false: it failed, and the rows are dirty again. */
void fw_hosts_rows_done(struct fw_hosts *t, const struct fw_hosts_row *row, size_t n, bool stored);

#endif
