/* SPDX-License-Identifier: ISC */
/*
 * A course: what is due, in the order in which it is best begun.
 *
 * That of a --once is made at its start, so that it ends soonest: the order is that in which a simulation of the policy begins them
 * (sched/plan.h), which also tells how long it will take. Feeds of one duration keep the order of their due times; value has no say, for
 * all of them are fetched, and two durations are hardly ever equal.
 *
 * A run that goes on makes one when it is behind (by_value): what a visit is worth most comes first (fw_late_intervals). In front of all
 * stands what a person asked for; then every second place is a first visit's, as long as there are any, those that wait longest first:
 * a new feed does not wait for a day's backlog, and a thousand new ones do not hold up the others by more than a thousand. It is
 * made anew again and again, for meanwhile others come due.
 *
 * The store thread then asks the store for them by their numbers, a few ahead of the loop. Of one host no more are asked for than may be
 * lent, so that none is asked for in vain; what the store puts off all the same is asked for again a little later. Of several
 * workers each begins with its own part, a host's feeds all with one of them, and then takes the others' from their ends.
 *
 * A course may be wrong or out of date: what it leaves over, the ordinary claim by due time finds.
 */
#ifndef FW_ENGINE_COURSE_H
#define FW_ENGINE_COURSE_H

#include "feedwheel/store.h"
#include "sched/plan.h"

struct course_rules {
	struct fw_plan_rules plan; /* slots: of all workers */
	uint32_t ahead;            /* as fw_claim_ask.host_ahead */
	uint32_t index, workers;
	bool by_value;             /* the backlog's order, at now_ms; of the plan's rules only host_max is looked at, and nothing is foretold */
	int64_t now_ms;
};

/* What is due, as fw_store_due_list() tells it. */
struct due_rows {
	struct fw_due_row *row; /* free() it */
	size_t n, cap;
	size_t known;           /* so many have an expected duration of their own */
	bool ordered;           /* something is known by which they can be ordered */
};
int due_rows_add(void *ctx, const struct fw_due_row *row); /* a fw_due_cb, ctx the rows. FW_ENOMEM */

/* What would happen. item and start have room for n; start: in order of starting. Errors: FW_ENOMEM. */
FW_MUST_CHECK int course_simulate(const struct fw_plan_rules *r, const struct fw_due_row *row, size_t n, struct fw_plan_item *item,
	struct fw_plan_start *start, struct fw_plan_total *out);

struct course;
/* row[0..n) is put in order. Errors: FW_ENOMEM. */
FW_MUST_CHECK int course_create(const struct course_rules *r, const struct fw_due_row *row, size_t n, struct course **out);
void course_destroy(struct course *c); /* and all before it */
/* It takes the place of an older one, or of none: of that nothing more is asked for; it goes with the last of its loans. */
void course_follow(struct course *c, struct course *before);

struct course_forecast {
	struct fw_plan_total total; /* if all goes as expected; host_item is a feed's number */
	size_t known;               /* so many have an expected duration of their own */
};
const struct course_forecast *course_forecast(const struct course *c);

/* The numbers of up to max feeds to ask the store for; returns how many. 0: none now; *next_us: when to look again, at the latest. */
size_t course_ask(struct course *c, int64_t now_us, size_t max, int64_t *id, int64_t *next_us);
/*
 * What came of it: of those that were asked for last, these are lent; stop[i] is lease[i]'s. The others were put off, if any was
 * (deferred), and are asked for again after hold_us; or somebody else has them, and they are left to the ordinary claim.
 */
void course_got(struct course *c, const struct fw_lease *lease, size_t n, bool deferred, int64_t now_us, int64_t hold_us,
	struct fw_plan_item **stop);
/* They could not be asked for: all are asked for again. */
void course_unasked(struct course *c);
/* That loan has ended. */
void course_back(struct fw_plan_item *stop);
/* Is everything on it lent, or left to others? */
bool course_is_over(const struct course *c);
/* Is no loan of it, or of those before it, out? */
bool course_is_idle(const struct course *c);
/* So many could be lent at once, within their hosts' limits. */
size_t course_ready(const struct course *c);

#endif
