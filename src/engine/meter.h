/* SPDX-License-Identifier: ISC */
/*
 * Counters in shared memory, written here and read through api/meter.h. Each process has a slot,
 * each thread its own cache lines in it, and each number a single writer, which updates it without
 * a locked instruction. A slot's counts survive its process.
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
	/* written by the master */
	_Alignas(FW_CACHE_LINE) _Atomic pid_t pid; /* 0: not running */
	_Atomic uint64_t restarts;
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

/* Allocates shared memory with slots for the workers, and one for a server. NULL: out of memory. */
struct fw_meter *fw_meter_create(size_t workers, bool server);
void fw_meter_destroy(struct fw_meter *m);
/*
 * fw_meter_fd(): the descriptor for a child that is a new program; -1: none. fw_meter_open(): maps
 * it there, and closes fd. NULL: failed, with errno.
 */
int fw_meter_fd(const struct fw_meter *m);
struct fw_meter *fw_meter_open(int fd);
/* The server's slot follows the last worker's. */
struct fw_meter_slot *fw_meter_slot(struct fw_meter *m, size_t i);

/*
 * Prepares a slot for a new process, before it is started: resets what the last process reported.
 */
void meter_slot_reset(struct fw_meter_slot *s);
/* Call it when the process has exited: resets its state, but keeps its counts. */
void meter_slot_clear(struct fw_meter_slot *s);
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
