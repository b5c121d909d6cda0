/* SPDX-License-Identifier: ISC */
/*
 * The simulator: when would feeds have been asked by a rule, and how long after their publication would entries have been found?
 *
 * Feeds have nothing to do with each other here (nothing waits for a slot or a host), so each lives its days from beginning to end
 * alone: a million of them take the memory of one.
 */
#ifndef FW_TOOLS_SIM_H
#define FW_TOOLS_SIM_H

#include "base/clock.h"
#include "base/str.h"
#include "sched/due.h"
#include "sched/rhythm.h"

/* ---- a feed's world --------------------------------------------------------------------------------------------------------- */

struct life {
	int64_t *date;        /* publications, ms, ascending: those before start_ms are what the first visit finds */
	size_t n, cap;
	int64_t start_ms, end_ms;
	size_t shown;         /* so many entries a document shows */
	double weight;        /* it stands for so many feeds */
	int64_t fresh_ms;     /* what its server says of max-age; FW_NO_NUMBER: nothing */
	bool validators;      /* its server answers 304 */
	uint64_t seed;
};

struct world {
	const char *name;
	size_t feeds;
	int64_t days;
	uint64_t seed;
	/* synthetic: */
	double rate;          /* publications a day, mean over all feeds */
	double zipf;          /* the exponent */
	double top;           /* rate of the first; set by world_zipf() */
	/* a trace: */
	struct life *life;
};

void world_zipf(struct world *w, size_t feeds, int64_t days, uint64_t seed);
/* Feeds that people published: each is watched over the later half of the dates it shows, at most `days`. Files that are no feeds,
   or say too little, are left out. Negative: FW_E*, with words. */
FW_MUST_CHECK int world_trace(struct world *w, const char *folder, int64_t days, uint64_t seed, struct fw_err *err);
void world_free(struct world *w);
/* The i-th; *life is reused from call to call: begin with {0}, end with life_free(). False: out of memory. */
FW_MUST_CHECK bool world_feed(const struct world *w, size_t i, struct life *life);
void life_free(struct life *life);

uint64_t sim_random(uint64_t *seed);   /* splitmix64: 64 bits */
double sim_uniform(uint64_t *seed);    /* [0, 1) */

/* ---- rules ------------------------------------------------------------------------------------------------------------------- */

enum rule_kind { RULE_FIXED, RULE_FREQUENCY, RULE_OURS };
struct rule {
	enum rule_kind kind;
	double factor;        /* fixed: minutes; entry frequency: its factor; ours: the target */
	int64_t min_ms;       /* ours: never sooner; 0: as it is by default */
};
#define RULE_FREQUENCY_MIN_MS (5 * FW_MINUTE_MS) /* what Miniflux has by default */

#define DELAY_STEP_MS (10 * FW_SECOND_MS)
#define DELAY_STEPS (20 * 8640) /* twenty days; longer ones are counted in the last */

/* All counts are weighted. */
struct tally {
	double feeds, feed_days, requests, not_modified, fruitful, entries, delay_sum_ms;
	double *delay;        /* DELAY_STEPS of them */
};

FW_MUST_CHECK bool tally_begin(struct tally *t);
void tally_free(struct tally *t);
double tally_quantile_ms(const struct tally *t, double q);
void rule_run(const struct rule *r, const struct life *life, struct tally *t);

/* Where a feed stands that ours visits until then: its last visit, when it is due next, so many dates known. */
struct standing {
	int64_t last_ms, due_ms;
	size_t found;
	struct fw_rhythm_model model;
};
void rule_stand(const struct life *life, int64_t until_ms, struct standing *out);

/* ---- a backlog --------------------------------------------------------------------------------------------------------------- */

enum backlog_order {
	BACKLOG_DUE,          /* by due time */
	BACKLOG_VALUE,        /* by fw_late_intervals(): the collector's */
	BACKLOG_EXPECTED,     /* by what the learned rhythm lets expect */
	BACKLOG_BEST,         /* knowing what a visit will find */
	BACKLOG_ORDERS
};
#define BACKLOG_PARTS 4
extern const double BACKLOG_PART[BACKLOG_PARTS]; /* of all requests */

struct backlog {
	double feeds, missed; /* due, and entries that are to be found there */
	double found[BACKLOG_ORDERS][BACKLOG_PARTS]; /* which part of these is found by the first requests */
};
/* Nothing was fetched over the last down_ms. False: out of memory. */
FW_MUST_CHECK bool backlog_run(const struct world *w, int64_t down_ms, struct backlog *out);

#endif
