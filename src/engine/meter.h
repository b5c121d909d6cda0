/* SPDX-License-Identifier: ISC */
/*
 * Counters in shared memory, written here and read through api/meter.h. Each process has a slot,
 * each thread its own cache lines in it, and each number a single writer, which updates it without
 * a locked instruction. A slot's counts survive its process.
 *
 * Each child has memory of its own: its slot, and what else it tells the master. It cannot write
 * that of others; the server can read their slots. What the master knows of children is on a board
 * that it alone writes; which slots there are is in no shared memory. So a child that was taken
 * over can put any number into its slot, and the master must bear that.
 */
#ifndef FW_ENGINE_METER_H
#define FW_ENGINE_METER_H

#include <stdatomic.h>

#include "base/ring.h"
#include "api/meter.h"

struct fw_meter_timing {
	_Atomic uint64_t bucket[FW_METER_BUCKETS], sum_us;
};

/* Resource usage that a process reports itself: /proc may hide it from other processes. */
struct fw_meter_usage {
	/* -1: not reported yet, or not available on this system */
	_Atomic int64_t rss_bytes, cpu_ms;
};

struct fw_meter_slot {
	/* written by the loop thread */
	_Alignas(FW_CACHE_LINE) _Atomic uint64_t in_flight;
	_Atomic uint64_t slots, offline;
	_Atomic int64_t heartbeat_mono_ms; /* heartbeat, also of the server; 0: not started yet */
	struct fw_meter_usage usage;
	/* written by the store thread */
	_Alignas(FW_CACHE_LINE) _Atomic uint64_t visits[FW_VISIT_KIND_N];
	_Atomic uint64_t responses[FW_METER_CLASSES], count[FW_COUNT_N], unavailable, disk_low;
	struct fw_meter_timing timing[FW_TIMING_N];
};

/*
 * Allocates shared memory for the workers, and for a server, whose slot follows the last worker's:
 * for each a slot, and own_bytes zeroed for other uses. NULL: failed, with errno.
 */
struct fw_meter *fw_meter_create(size_t workers, bool server, size_t own_bytes);
void fw_meter_destroy(struct fw_meter *m);
/* The caller may write those of its own process only; the master writes its children's. */
struct fw_meter_slot *fw_meter_slot(struct fw_meter *m, size_t i);
void *fw_meter_own(struct fw_meter *m, size_t i);

/*
 * For child i that is a new program: descriptors that stay open on exec, one that it may write, and
 * for the server those it may read. Returns their number, at most FW_METER_FDS, or a negative
 * errno. fw_meter_open(): maps them there, and closes them. NULL: failed, with errno.
 */
#define FW_METER_FDS 1026
int fw_meter_hand_over(const struct fw_meter *m, size_t i, int fd[FW_METER_FDS]);
struct fw_meter *fw_meter_open(size_t workers, size_t slot_n, size_t own_bytes, size_t i, const int *fd, size_t fd_n);
/* For child i that was forked: what is not its own becomes read only (the server), or goes. */
void fw_meter_narrow(struct fw_meter *m, size_t i);

/* Master: child i is about to start (resets what the last process reported); runs; is restarted
 * after a failure; has exited (resets its state, but keeps its counts). */
void meter_child_prepare(struct fw_meter *m, size_t i);
void meter_child_start(struct fw_meter *m, size_t i, pid_t pid);
void meter_child_restart(struct fw_meter *m, size_t i);
void meter_child_end(struct fw_meter *m, size_t i);
/* Updates the usage of the calling process; call it periodically. */
void meter_usage_update(struct fw_meter_usage *out);
void fw_meter_master_usage(struct fw_meter *m);

static inline void meter_add(_Atomic uint64_t *at, uint64_t n)
{
	atomic_store_explicit(at, atomic_load_explicit(at, memory_order_relaxed) + n, memory_order_relaxed);
}

static inline void meter_count(struct fw_meter_slot *s, enum fw_count what, uint64_t n)
{
	meter_add(&s->count[what], n);
}

void meter_time(struct fw_meter_slot *s, enum fw_timing what, int64_t us);
/*
 * Counts a visit that was stored. is_requested: by a user, so its lateness does not count.
 */
void meter_visit(struct fw_meter_slot *s, const struct fw_visit *v, bool is_requested);

#endif
