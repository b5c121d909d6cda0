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

/* Why a slot had no fetch. */
enum idle {
	IDLE_START,   /* nothing was requested yet */
	IDLE_WORKER,  /* a feed was at hand, but its worker had no time to begin it */
	IDLE_CLAIM,   /* ... was due and not claimed yet */
	IDLE_HOST,    /* ... waited for its host's limits */
	IDLE_DUE,     /* ... was due later */
	IDLE_LEFT,    /* there was none left */
	IDLE_READ,    /* the last response had come, and documents were still to be read, */
	IDLE_STORE,   /* or to be stored */
	IDLE_N
};

struct bar { /* times in us since the picture begins */
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
	int64_t read_us;            /* until the last document was read, from the run's beginning */
	int64_t elapsed_us;         /* of the whole run, as its summary has it: then the picture begins with the run, not with its first request */
	bool endless;               /* it keeps going, or was killed: what is fetched last holds up nothing */
	/* found by judging */
	uint32_t lane_n;            /* up to the last that had a fetch; slots that never had one are not drawn */
	int64_t begin_us, end_us;   /* first request, last response: what the order of fetches can change lies between */
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
	double idle;                /* share of the lanes' time in which nothing was fetched, */
	int64_t idle_us[IDLE_N];    /* and why: all lanes together */
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
