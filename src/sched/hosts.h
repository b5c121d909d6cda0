/* SPDX-License-Identifier: ISC */
/*
 * When a host may be asked, and which waiting feed is next: the memory of the only owner of some
 * shards of hosts.
 *
 * Rules, for each host:
 *   budget     at most host_max requests are in flight (start to done).
 *   gap        between the sendings of two requests lies max(gap_ms, learned pace). The gap counts
 *              from the permission and anew from the sending; while a host has a gap, nothing of it
 *              starts as long as one of its requests is permitted and not sent.
 *   cool-down  nothing starts before it is over (Retry-After); what is permitted and not sent yet
 *              is refused by fw_hosts_send().
 *   pace       FW_PACE_* of store.h: strained, it doubles; answered, it shrinks. A new pace counts
 *              from the last sending at once.
 * A further request of the same visit (a redirect) begins the gap anew and is not held back itself;
 * nor is a request that was permitted before, or before the gap grew.
 *
 * What survives the owner is a row for each host. Why nothing has to be written before a request is
 * sent:
 *   An owner sends nothing after stop_ms, which lies before the end of its lease: so the end of a
 *   dead owner's lease bounds its last sending, and its successor behaves as if each host of the
 *   shard had been asked then (fw_hosts_take(): sent_until_ms). A row is dirty when pace or
 *   cool-down have changed; a gap that runs is written only by an owner that gives its shard up,
 *   whose successor then need not wait.
 * What an owner learned after its last commit dies with it, as does the outcome that taught it. Of
 * requests in flight a successor knows nothing: an owner cancels at stop_ms what is in flight. One
 * that is frozen cannot; with sent_until_ms later by the longest time that a request takes, the
 * budget holds beside that one too.
 *
 * Clocks: gaps inside are monotonic, as a wall clock may jump. Rows and Retry-After are wall time
 * of the store's clock, the one that all owners share. Calls in which wall time enters or leaves
 * take both, so that each conversion uses the offset of its moment; a row from a clock that was
 * wrong is clamped: a gap to the longest there is, a cool-down to FW_HOSTS_COOL_MAX_MS. All times
 * are ms; so is the precision.
 *
 * Memory: a host is forgotten when nothing of it waits or is in flight, no gap or cool-down runs,
 * it has no learned pace, and its row is stored. One with a pace stays while its shard is owned,
 * for nobody would bring its row again. One thread's.
 */
#ifndef FW_SCHED_HOSTS_H
#define FW_SCHED_HOSTS_H

#include "base/heap.h"
#include "feedwheel/store.h"

#define FW_HOSTS_SHARDS 1024
#define FW_HOSTS_COOL_MAX_MS (INT64_C(7) * 24 * 60 * 60 * 1000)

struct fw_hosts_rules {
	uint32_t host_max;    /* in flight of one host; 0: no limit */
	int64_t gap_ms;       /* between two sendings; 0: none */
};

struct fw_hosts_now {
	int64_t mono_ms;      /* a clock that does not go back */
	int64_t wall_ms;      /* the store's, Unix */
};

struct fw_hosts_row {
	int64_t host_id;
	int64_t next_ok_ms;    /* wall; no request before; 0: any time */
	int64_t cool_until_ms; /* wall; 0: none */
	int64_t pace_ms;       /* 0: none */
};

/*
 * A feed that waits or is in flight: a member of the caller's struct, which must not move
 * meanwhile.
 */
struct fw_hosts_host;
struct fw_hosts_item {
	int64_t order;        /* the lowest first: due time, or position in a plan */
	int64_t feed_id;      /* of two with one order the lower first */
	bool urgent;          /* fetch-now: before all that are not, in its host and among hosts, however many */

	/* the table's */
	bool flying, sent;
	struct fw_heap_node node;
	struct fw_hosts_host *of; /* NULL: neither waits nor is in flight */
};

struct fw_hosts;
/* NULL: out of memory. Nothing starts before fw_hosts_lease(). */
struct fw_hosts *fw_hosts_new(const struct fw_hosts_rules *rules);
void fw_hosts_free(struct fw_hosts *t); /* items still in it are the caller's as ever */
/*
 * The lease was renewed: from stop_ms (monotonic) on nothing starts or is sent. The caller takes
 * the time before it asked, and a margin off.
 */
void fw_hosts_lease(struct fw_hosts *t, int64_t stop_ms);

/* ---- shards ---------------------------------------------------------------------------------- */

/*
 * Own a shard from now on. sent_until_ms: wall; the former owner may have sent until then, without
 * a row that says so (the end of a lease that ran out or was ended), FW_PACE_MAX_MS from now at the
 * latest; 0: it gave the shard up itself, and fw_hosts_sent_until() was 0. After this the caller
 * brings the shard's rows, then its feeds.
 */
void fw_hosts_take(struct fw_hosts *t, uint32_t shard, int64_t sent_until_ms, struct fw_hosts_now now);
/*
 * FW_ENOMEM; FW_ESTALE: the shard is not owned. Where something is known already the later time and
 * the longer pace hold.
 */
FW_MUST_CHECK int fw_hosts_row_put(struct fw_hosts *t, uint32_t shard, const struct fw_hosts_row *row,
	struct fw_hosts_now now);
/*
 * Give a shard up, of which nothing waits any more: it was withdrawn. What is in flight goes on until
 * done. Then the caller stores the dirty rows a last time and calls fw_hosts_forget().
 * fw_hosts_take() before that takes it back, with what is known. After a lost lease the caller
 * cancels what is in flight, and stores nothing. Cost O(hosts of the shard).
 */
void fw_hosts_leave(struct fw_hosts *t, uint32_t shard);
/*
 * What the shard's row is to tell the next owner when this one gives the shard up: wall; 0:
 * nothing. It is what fw_hosts_take() was told, as long as that may keep a host waiting of which
 * there is no row.
 */
int64_t fw_hosts_sent_until(const struct fw_hosts *t, uint32_t shard, struct fw_hosts_now now);
/* Of a shard that was left and is idle. Rows that were taken are to be done first. */
void fw_hosts_forget(struct fw_hosts *t, uint32_t shard);

/* ---- feeds: O(log n) each, on the average ---------------------------------------------------- */

/* A feed waits. Errors: FW_ENOMEM; FW_ESTALE: the shard is not owned or being left. */
FW_MUST_CHECK int fw_hosts_put(struct fw_hosts *t, uint32_t shard, int64_t host_id, struct fw_hosts_item *item);
void fw_hosts_withdraw(struct fw_hosts *t, struct fw_hosts_item *item); /* one that waits */
/*
 * The first in order of those that may start now; NULL: none. *next_ms: monotonic, when one may;
 * INT64_MAX: not before something is sent, done or put, or the lease is renewed. It stays where it
 * is.
 */
struct fw_hosts_item *fw_hosts_first(struct fw_hosts *t, int64_t mono_ms, int64_t *next_ms);
/* The same, and it is in flight. */
struct fw_hosts_item *fw_hosts_start(struct fw_hosts *t, int64_t mono_ms, int64_t *next_ms);
/*
 * Its request is about to be sent. False: it must not be (the lease ends, or the host has asked for
 * a pause meanwhile): the caller cancels it, says done, and may put it again. Called again for each
 * further request of the visit.
 */
FW_MUST_CHECK bool fw_hosts_send(struct fw_hosts *t, struct fw_hosts_item *item, int64_t mono_ms);
/*
 * It is over, sent or not. cool_until_ms: wall, the host's wish; 0: none. From here on the item is
 * the caller's.
 */
void fw_hosts_done(struct fw_hosts *t, struct fw_hosts_item *item, enum fw_host_mood mood, int64_t cool_until_ms,
	struct fw_hosts_now now);

size_t fw_hosts_waiting(const struct fw_hosts *t);
size_t fw_hosts_known(const struct fw_hosts *t); /* hosts in memory */
/*
 * When this host may be asked again, budget aside; monotonic; INT64_MIN: nothing is known against
 * it.
 */
int64_t fw_hosts_free_ms(const struct fw_hosts *t, int64_t host_id);
int64_t fw_hosts_pace_ms(const struct fw_hosts *t, int64_t host_id); /* 0: none is known */

/* ---- rows ------------------------------------------------------------------------------------ */

/*
 * Dirty rows for the next commit, at most max of them; returns how many: fewer than max, and there
 * are no more. Tell of each when it is done. Cost O(rows).
 */
size_t fw_hosts_rows_take(struct fw_hosts *t, struct fw_hosts_row *out, size_t max, struct fw_hosts_now now);
/* The commit has ended; false: it failed, and they are dirty again. */
void fw_hosts_rows_done(struct fw_hosts *t, const struct fw_hosts_row *row, size_t n, bool stored);

#endif
