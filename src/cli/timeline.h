/* SPDX-License-Identifier: ISC */
/*
 * The picture of a run, in three steps: visits are added as bars; timeline_judge() puts them into lanes and finds what held the run up;
 * timeline_svg() and timeline_html() draw.
 */
#ifndef FW_CLI_TIMELINE_H
#define FW_CLI_TIMELINE_H

#include "base/arena.h"
#include "base/buf.h"
#include "feedwheel/store.h"

enum phase { PHASE_QUEUE, PHASE_DNS, PHASE_CONNECT, PHASE_TLS, PHASE_WAIT, PHASE_BODY, PHASE_PARSE, PHASE_STORE, PHASE_N };

struct bar { /* times in us since the first request of what is drawn */
	int64_t from_us, until_us;  /* the request and the answer: as long as it had its slot */
	int64_t took_us[PHASE_N];
	struct fw_visit visit;      /* strings in the arena */
	struct fw_str host;
	uint32_t lane;
};

struct timeline {
	struct fw_arena arena;      /* of strings */
	struct bar *bar;            /* in order of from_us, once judged */
	size_t n, cap;
	int64_t run_id, started_ms;
	/* what is known of the run; 0: not known */
	uint32_t slots, host_max, batch;
	struct fw_str order;
	int64_t predicted_us, host_gap_us;
	bool endless;               /* it keeps going, or was killed: what is fetched last holds up nothing */
	/* found by judging */
	uint32_t lane_n;            /* up to the last that had a fetch; slots that never had one are not drawn */
	int64_t total_us, sum_us;
	int64_t bound_us;           /* no order is faster: the largest of these three */
	int64_t slots_us, longest_us, chain_us;
	struct fw_str chain_host;
	size_t chain_n;             /* visits of that host */
	bool chain_pauses;          /* it is the pauses between them that take so long */
	int64_t half_us;            /* half of the slots had nothing to do any more; total_us when others could have begun since */
	int64_t tail_idle_us;       /* what all slots together stood idle after their last */
	size_t last;                /* the bar that ends last */
	size_t failed_n;
	double idle;                /* share of the lanes' time in which nothing was fetched */
	char verdict[400];          /* what held it up, in words */
};

void timeline_init(struct timeline *t);
void timeline_finish(struct timeline *t);
FW_MUST_CHECK int timeline_add(struct timeline *t, const struct fw_visit *v); /* FW_ENOMEM */
/* n must be above 0. FW_ENOMEM */
FW_MUST_CHECK int timeline_judge(struct timeline *t);
int timeline_by_us(const void *x, const void *y); /* for qsort: int64_t, rising */
/* out->rc tells whether there was room. */
void timeline_svg(const struct timeline *t, struct fw_buf *out);
void timeline_html(const struct timeline *t, struct fw_buf *out);

#endif
