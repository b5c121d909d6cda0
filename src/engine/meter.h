/* SPDX-License-Identifier: ISC */
/*
 * Counting. Each process has a slot of its own, each thread its own cache lines in it, and each number one writer: it is read and
 * written back, without a locked instruction.
 */
#ifndef FW_ENGINE_METER_H
#define FW_ENGINE_METER_H

#include <stdatomic.h>

#include "base/ring.h"
#include "api/meter.h"

struct fw_meter_timing {
	_Atomic uint64_t bucket[FW_METER_BUCKETS], sum_us;
};

/* What a process takes, as it says itself: /proc may hide it from others. */
struct fw_meter_own {
	_Atomic int64_t rss_bytes, cpu_ms; /* -1: it has not said so yet, or this system does not say */
};

struct fw_meter_slot {
	/* the master's */
	_Alignas(FW_CACHE_LINE) _Atomic pid_t pid; /* 0: not running */
	_Atomic uint64_t restarts;
	/* the loop thread's */
	_Alignas(FW_CACHE_LINE) _Atomic uint64_t in_flight;
	_Atomic uint64_t slots, offline;
	_Atomic int64_t beat_mono_ms; /* its sign of life, also the server's; 0: it is not up yet */
	struct fw_meter_own own;
	/* the store thread's */
	_Alignas(FW_CACHE_LINE) _Atomic uint64_t visits[FW_VISIT_KIND_N];
	_Atomic uint64_t answers[FW_METER_CLASSES], count[FW_COUNT_N], away, disk_low;
	struct fw_meter_timing timing[FW_TIMING_N];
};

/* Memory that children share, for so many workers and a server behind them. NULL: there is none. */
struct fw_meter *fw_meter_create(size_t workers, bool server);
void fw_meter_destroy(struct fw_meter *m);
/* By what a process that begins anew finds it; -1: it cannot. There: NULL with errno set; fd is closed. */
int fw_meter_fd(const struct fw_meter *m);
struct fw_meter *fw_meter_open(int fd);
/* The server's slot is the one after the last worker's. */
struct fw_meter_slot *fw_meter_slot(struct fw_meter *m, size_t i);

/* Another process takes the slot: what the last one said of itself is not true of it. Before it is started. */
void meter_begin(struct fw_meter_slot *s);
/* Its process is gone, and with it what it was doing and what it lacked. What it has counted stays. */
void meter_end(struct fw_meter_slot *s);
/* Of the calling process: now and then. */
void meter_own(struct fw_meter_own *out);
void fw_meter_own_master(struct fw_meter *m);

static inline void meter_add(_Atomic uint64_t *at, uint64_t n)
{
	atomic_store_explicit(at, atomic_load_explicit(at, memory_order_relaxed) + n, memory_order_relaxed);
}

static inline void meter_count(struct fw_meter_slot *s, enum fw_count what, uint64_t n)
{
	meter_add(&s->count[what], n);
}

void meter_time(struct fw_meter_slot *s, enum fw_timing what, int64_t us);
/* A visit that is stored. asked_for: by a person, so lateness says nothing. */
void meter_visit(struct fw_meter_slot *s, const struct fw_visit *v, bool asked_for);

#endif
