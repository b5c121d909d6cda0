/* SPDX-License-Identifier: ISC */
/*
 * Fetch plan and forecast: in which order the due feeds of a 'run --once' are fetched, and how long
 * that takes. A simulation with expected durations computes both; due_set.h uses it.
 *
 * A free slot takes the next feed at once; there is no barrier. Only the two batch policies have
 * one, as the collector that feedwheel replaces had. They serve for comparison. Pure.
 */
#ifndef FW_SCHED_PLAN_H
#define FW_SCHED_PLAN_H

#include "base/heap.h"
#include "feedwheel/types.h"

enum fw_plan_policy {
	FW_PLAN_FIFO,     /* in order of arrival */
	FW_PLAN_SHORTEST, /* shortest first */
	FW_PLAN_LONGEST,  /* longest first (LPT) */
	/* the host with the longest remaining work first, and its longest feed first */
	FW_PLAN_HOST_PATH,
	FW_PLAN_BATCH_UNORDERED, /* batch after batch, in order of arrival */
	FW_PLAN_BATCH_SORTED,    /* batch after batch, shortest first, unknown durations last */
	FW_PLAN_POLICY_N
};
const char *fw_plan_policy_name(
	enum fw_plan_policy p);               /* "fifo", "shortest", "longest", "host-path", "batch-unordered", ... */
bool fw_plan_is_batch(enum fw_plan_policy p); /* either batch policy */
bool fw_plan_policy_find(struct fw_str name, enum fw_plan_policy *out);

struct fw_plan_rules {
	enum fw_plan_policy policy;
	uint32_t slots;            /* concurrent transfers */
	uint32_t host_concurrency; /* concurrent transfers of one host; 0: no limit */
	int64_t host_gap_us;       /* between two starts of one host */
	uint32_t batch;            /* size of a batch; 0: slots */
};

struct fw_plan_host;
struct fw_plan_item {
	int64_t host;      /* identifies the host */
	int64_t expect_us; /* 0: unknown */

	/* set by the simulation */
	int64_t guess_us; /* expect_us; else the average of its host, or of all */
	struct fw_heap_node node;
	struct fw_plan_host *of;
	uint64_t number; /* position in the order of arrival */
};

/* ---- forecast -------------------------------------------------------------------------------- */

struct fw_plan_start {
	size_t item; /* index in the caller's array */
	uint32_t slot;
	int64_t at_us, until_us;
};

struct fw_plan_total {
	int64_t total_us; /* until the last transfer ends */
	int64_t sum_us;   /* sum of all durations */
	/* Lower bounds: no order is faster than the largest of these. */
	int64_t slots_us;   /* sum / slots */
	int64_t longest_us; /* the longest single transfer */
	int64_t host_us;    /* the longest chain that the limits of one host make */
	int64_t host_item;  /* an item of that host: its index, or the name the caller gave */
	size_t host_n;      /* number of that host's items */
};
int64_t fw_plan_bound(const struct fw_plan_total *t);

/* The lower bounds for durations that arrive one by one, such as measured ones. */
struct fw_plan_bounds;
struct fw_plan_bounds *fw_plan_bounds_create(const struct fw_plan_rules *rules); /* NULL: out of memory */
void fw_plan_bounds_destroy(struct fw_plan_bounds *b);
/* Errors: FW_ENOMEM */
FW_MUST_CHECK int fw_plan_bounds_add(struct fw_plan_bounds *b, int64_t host, int64_t name, int64_t took_us);
/* so far; total_us is left to the caller */
const struct fw_plan_total *fw_plan_bounds_get(struct fw_plan_bounds *b);

/*
 * Simulate a run in which each item takes its guess_us. start[0..n): the starts in order, or NULL.
 * Cost O(n log n). Errors: FW_ENOMEM; FW_EINVAL: no slots.
 */
FW_MUST_CHECK int fw_plan_simulate(const struct fw_plan_rules *rules, struct fw_plan_item *item, size_t n,
	struct fw_plan_start *start, struct fw_plan_total *out);

#endif
