/* SPDX-License-Identifier: ISC */
/*
 * The simulator: when would each rule have polled a feed, and how long after their publication
 * would entries have been found?
 *
 * Feeds are independent here: none waits for a slot or a host. So each feed is simulated alone,
 * from its first day to its last, and a million feeds need the memory of one.
 */
#ifndef FW_TOOLS_SIM_H
#define FW_TOOLS_SIM_H

#include "base/clock.h"
#include "base/str.h"
#include "sched/due.h"
#include "sched/rhythm.h"

/* ---- a feed's world -------------------------------------------------------------------------- */

struct life {
	/* publication dates, ms, ascending; the first visit finds those before start_ms */
	int64_t *date;
	size_t n, cap;
	int64_t start_ms, end_ms;
	size_t shown;     /* number of entries that a document shows */
	double weight;    /* number of feeds that this one represents */
	int64_t fresh_ms; /* max-age of its server; FW_NO_NUMBER: none */
	bool validators;  /* its server sends 304 */
	uint64_t seed;
};

struct world {
	const char *name;
	size_t feeds;
	int64_t days;
	uint64_t seed;
	/* synthetic world: */
	double rate; /* publications per day, mean over all feeds */
	double zipf; /* exponent of Zipf's law */
	double top;  /* rate of the first feed; set by world_zipf() */
	/* trace: */
	struct life *life;
};

void world_zipf(struct world *w, size_t feeds, int64_t days, uint64_t seed);
/*
 * A trace: the dates of real feed documents. Each feed is watched over the later half of the dates
 * it shows, at most `days`. Files that are not feeds, or show too little, are skipped. Errors:
 * FW_E*, with a text.
 */
FW_MUST_CHECK int world_trace(struct world *w, const char *folder, int64_t days, uint64_t seed, struct fw_err *err);
void world_free(struct world *w);
/*
 * Get the i-th feed. *life is reused from call to call: start with {0}, end with life_free().
 * False: out of memory.
 */
FW_MUST_CHECK bool world_feed(const struct world *w, size_t i, struct life *life);
void life_free(struct life *life);

uint64_t sim_random(uint64_t *seed); /* splitmix64: 64 bits */
double sim_uniform(uint64_t *seed);  /* [0, 1) */

/* ---- rules ----------------------------------------------------------------------------------- */

enum rule_kind { RULE_FIXED, RULE_FREQUENCY, RULE_OURS };
struct rule {
	enum rule_kind kind;
	double factor;  /* fixed: minutes; entry frequency: its factor; ours: the target */
	int64_t min_ms; /* ours: minimum interval; 0: the default */
};
#define RULE_FREQUENCY_MIN_MS (5 * FW_MINUTE_MS) /* Miniflux's default */

#define DELAY_STEP_MS (10 * FW_SECOND_MS)
#define DELAY_STEPS (20 * 8640) /* twenty days; the last step counts longer delays too */

/* All counts are weighted. */
struct tally {
	double feeds, feed_days, requests, not_modified, fruitful, entries, delay_sum_ms;
	double *delay; /* DELAY_STEPS of them */
};

FW_MUST_CHECK bool tally_begin(struct tally *t);
void tally_free(struct tally *t);
double tally_quantile_ms(const struct tally *t, double q);
void rule_run(const struct rule *r, const struct life *life, struct tally *t);

/*
 * The state of a feed that our rule has polled until some time: its last visit, its due time, the
 * number of known dates.
 */
struct rule_state {
	int64_t last_ms, due_ms;
	size_t found;
	struct fw_rhythm_model model;
};
void rule_run_until(const struct life *life, int64_t until_ms, struct rule_state *out);

/* ---- a backlog ------------------------------------------------------------------------------- */

enum backlog_order {
	BACKLOG_DUE,      /* by due time */
	BACKLOG_VALUE,    /* by fw_due_priority(), as the collector does */
	BACKLOG_EXPECTED, /* by publications expected from the learned rhythm */
	BACKLOG_BEST,     /* knowing what each visit will find */
	BACKLOG_ORDERS
};
#define BACKLOG_PARTS 4
extern const double BACKLOG_PART[BACKLOG_PARTS]; /* shares of all requests */

struct backlog {
	double feeds, missed; /* due feeds, and new entries that they have */
	/* share of these entries that the first requests find */
	double found[BACKLOG_ORDERS][BACKLOG_PARTS];
};
/* Simulate that nothing was fetched during the last down_ms. False: out of memory. */
FW_MUST_CHECK bool backlog_run(const struct world *w, int64_t down_ms, struct backlog *out);

#endif
