/* SPDX-License-Identifier: ISC */
/*
 * In which order what is to be fetched is fetched, and how long that will take.
 *
 * A simulation with expected durations makes the plan of a 'run --once' (due_set.h), and its forecast.
 *
 * There is no barrier: a free slot takes the next at once. The two batch policies have one, as the collector had that this grew
 * from; they are kept to be compared with.
 */
#ifndef FW_SCHED_PLAN_H
#define FW_SCHED_PLAN_H

#include "base/heap.h"
#include "feedwheel/types.h"

enum fw_plan_policy {
	FW_PLAN_FIFO,            /* as they come */
	FW_PLAN_SHORTEST,        /* the shortest first */
	FW_PLAN_LONGEST,         /* the longest first (LPT) */
	FW_PLAN_HOST_PATH,       /* the host whose remaining work takes longest goes first, of its feeds the longest */
	FW_PLAN_BATCH_UNORDERED, /* batch after batch, as they come */
	FW_PLAN_BATCH_SORTED,    /* batch after batch, by duration, those of unknown duration last */
	FW_PLAN_POLICY_N
};
const char *fw_plan_policy_name(enum fw_plan_policy p); /* "fifo", "shortest", "longest", "host-path", "batch-unordered", ... */
bool fw_plan_is_batch(enum fw_plan_policy p); /* one of the two */
bool fw_plan_policy_find(struct fw_str name, enum fw_plan_policy *out);

struct fw_plan_rules {
	enum fw_plan_policy policy;
	uint32_t slots;       /* how many at once */
	uint32_t host_max;    /* at once of one host; 0: no limit */
	int64_t host_gap_us;  /* between two starts at one host */
	uint32_t batch;       /* of the batch policies; 0: slots */
};

struct fw_plan_host;
struct fw_plan_item {
	int64_t host;         /* the same for all of one host */
	int64_t expect_us;    /* 0: unknown */

	/* the simulation's */
	int64_t guess_us;     /* what is expected; else the average of its host's, or else of all */
	struct fw_heap_node node;
	struct fw_plan_host *of;
	uint64_t number;      /* in order of coming */
};

/* ---- foretelling ----------------------------------------------------------------------------------------------------------- */

struct fw_plan_start {
	size_t item;          /* its index */
	uint32_t slot;
	int64_t at_us, until_us;
};

struct fw_plan_total {
	int64_t total_us;     /* until the last is done */
	int64_t sum_us;       /* of all durations */
	/* No order is faster than the largest of these. */
	int64_t slots_us;     /* sum / slots */
	int64_t longest_us;   /* the longest single one */
	int64_t host_us;      /* the longest chain that one host's limits make */
	int64_t host_item;    /* one of that host's: its index, or as it was called */
	size_t host_n;        /* so many has it */
};
int64_t fw_plan_bound(const struct fw_plan_total *t);

/* The bounds for durations that are told one by one, such as measured ones. */
struct fw_plan_bounds;
struct fw_plan_bounds *fw_plan_bounds_new(const struct fw_plan_rules *rules); /* NULL: out of memory */
void fw_plan_bounds_free(struct fw_plan_bounds *b);
FW_MUST_CHECK int fw_plan_bounds_add(struct fw_plan_bounds *b, int64_t host, int64_t name, int64_t took_us); /* FW_ENOMEM */
const struct fw_plan_total *fw_plan_bounds_get(struct fw_plan_bounds *b); /* so far; total_us is the caller's */

/*
 * What would happen if each took as long as is guessed. start[0..n): in order of starting; may be NULL. Cost O(n log n).
 * FW_ENOMEM, FW_EINVAL (no slots).
 */
FW_MUST_CHECK int fw_plan_simulate(const struct fw_plan_rules *rules, struct fw_plan_item *item, size_t n, struct fw_plan_start *start,
	struct fw_plan_total *out);

#endif
