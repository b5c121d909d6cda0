/* SPDX-License-Identifier: ISC */
/*
 * The picture of a run, in three steps: timeline_add() adds visits as bars; timeline_analyze()
 * assigns the bars to rows, one per slot, and finds the bottleneck; timeline_svg() and
 * timeline_html() draw the picture. timeline.c computes, timeline_draw.c draws. All times are in us
 * since the start of the picture. One thread.
 */
#ifndef FW_PICTURE_TIMELINE_H
#define FW_PICTURE_TIMELINE_H

#include "base/arena.h"
#include "base/buf.h"
#include "feedwheel/engine.h"
#include "feedwheel/store.h"

enum phase {
	PHASE_QUEUE,
	PHASE_DNS,
	PHASE_CONNECT,
	PHASE_TLS,
	PHASE_WAIT,
	PHASE_BODY,
	PHASE_PARSE,
	PHASE_STORE,
	PHASE_N
};

/* Why a slot had no fetch. */
enum idle {
	IDLE_START,  /* before the first request */
	IDLE_WORKER, /* a feed was claimed, but its worker was too busy to start it */
	IDLE_CLAIM,  /* a feed was due but not claimed yet */
	IDLE_HOST,   /* a feed waited for its host's limits */
	IDLE_DUE,    /* feeds were not due yet */
	IDLE_LEFT,   /* no feed was left */
	IDLE_READ,   /* after the last response, while documents were parsed */
	IDLE_STORE,  /* after the last response, while visits were stored */
	IDLE_N
};

struct timeline_bar {
	int64_t from_us, until_us; /* request to end of response: while it had its slot */
	int64_t took_us[PHASE_N];
	struct fw_visit visit; /* strings in the arena */
	struct fw_str host;
	uint32_t row;
};

struct timeline {
	struct fw_arena arena;    /* of strings */
	struct timeline_bar *bar; /* sorted by from_us after timeline_analyze() */
	size_t n, cap;
	int64_t run_id, started_ms;
	/* the run's record; 0: unknown */
	uint32_t slots, host_concurrency, batch;
	struct fw_str order;
	int64_t predicted_us, host_gap_us;
	/* when the last document was parsed, since the start of the run */
	int64_t read_us;
	/*
	 * of the whole run, as in its summary; if known, the picture starts with the run and not
	 * with its first request
	 */
	int64_t elapsed_us;
	/* the run has no end (not --once, or killed): its last fetch is no bottleneck */
	bool endless;
	/*
	 * Results of timeline_analyze(). row_n: rows up to the last with a fetch; unused slots are
	 * not drawn.
	 */
	uint32_t row_n;
	/* first request, last response: the order of fetches only affects the time between */
	int64_t begin_us, end_us;
	int64_t total_us, sum_us;
	int64_t bound_us; /* lower bound for any order: the largest of the next three */
	int64_t slots_us, longest_us, chain_us;
	struct fw_str chain_host;
	size_t chain_n;    /* visits of that host */
	bool chain_pauses; /* chain_us is due to the gaps between the visits */
	/* when half of the rows had ended; total_us if that was not the bottleneck */
	int64_t half_us;
	int64_t tail_idle_us; /* idle time of all rows after their last fetch */
	size_t last;          /* the bar that ends last */
	size_t failed_n;
	double idle;             /* share of all rows' time without a fetch */
	int64_t idle_us[IDLE_N]; /* that time by reason, summed over all rows */
	char verdict[400];       /* the bottleneck, in words */
};

void timeline_init(struct timeline *t);
void timeline_finish(struct timeline *t);
/* Set what the record of a finished run says of it. Its strings must outlive t. */
void timeline_take_forecast(struct timeline *t, const struct fw_run_forecast *kept);
FW_MUST_CHECK int timeline_add(struct timeline *t, const struct fw_visit *v); /* FW_ENOMEM */
/* t->n must be above 0. FW_ENOMEM */
FW_MUST_CHECK int timeline_analyze(struct timeline *t);
int timeline_by_us(const void *x, const void *y); /* for qsort(): int64_t, ascending */
/* Append the picture. Errors: out->rc. */
void timeline_svg(const struct timeline *t, struct fw_buf *out);
void timeline_html(const struct timeline *t, struct fw_buf *out);

#endif
