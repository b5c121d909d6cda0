/* SPDX-License-Identifier: ISC */
/*
 * Three rules for the time of the next poll, and what they find.
 *
 *   fixed            A fixed interval.
 *   entry frequency  As Miniflux describes its scheduler of that name. The mean gap between the
 *                    entries of the last seven days, as entries per week and rounded up, gives the
 *                    interval: a week / entries / factor, within 5 min and 24 h. With fewer than
 *                    two entries it is 24 h. max-age lengthens it, up to 24 h. Miniflux looks for
 *                    due feeds once an hour; that is left out, in its favour.
 *   ours             fw_due(), with what fw_rhythm_add() learned: the collector's code.
 */
#include <stdlib.h>

#include "sim.h"

#define WEEK_MS (7 * FW_DAY_MS)
#define FREQUENCY_MAX_MS FW_DAY_MS

bool tally_begin(struct tally *t)
{
	t->delay = calloc(DELAY_STEPS, sizeof(*t->delay));
	return t->delay != NULL;
}

void tally_free(struct tally *t)
{
	free(t->delay);
	*t = (struct tally){0};
}

double tally_quantile_ms(const struct tally *t, double q)
{
	double below = 0;

	for (size_t i = 0; i < DELAY_STEPS; i++) {
		/* interpolated within the step */
		if (t->delay[i] > 0 && below + t->delay[i] >= q * t->entries)
			return ((double)i + (q * t->entries - below) / t->delay[i]) * DELAY_STEP_MS;
		below += t->delay[i];
	}
	return 0;
}

/* A feed while it is simulated. */
struct rule_watch {
	const struct life *life;
	struct tally *t;
	size_t found; /* number of known dates */
	size_t week;  /* the first of them within the last week */
	uint64_t rnd;
	struct fw_rhythm rhythm;
	struct fw_rhythm_model model;
	struct fw_due_policy policy;
};

/* The number of entries that a visit finds. */
static size_t watch_find(struct rule_watch *w, int64_t now_ms)
{
	size_t from = w->found;

	while (w->found < w->life->n && w->life->date[w->found] <= now_ms)
		w->found++;
	return w->found - from;
}

/* The same, counted in the tally. */
static size_t watch_visit(struct rule_watch *w, int64_t now_ms, bool counted)
{
	const struct life *l = w->life;
	struct tally *t = w->t;
	size_t n = 0;

	for (; w->found < l->n && l->date[w->found] <= now_ms; w->found++, n++) {
		int64_t delay = now_ms - l->date[w->found];

		if (l->date[w->found] <= l->start_ms || l->date[w->found] > l->end_ms)
			continue;
		t->entries += l->weight;
		t->delay_sum_ms += l->weight * (double)delay;
		t->delay[FW_MIN(delay / DELAY_STEP_MS, DELAY_STEPS - 1)] += l->weight;
	}
	if (!counted)
		return n;
	t->requests += l->weight;
	t->fruitful += n ? l->weight : 0;
	t->not_modified += !n && l->validators ? l->weight : 0;
	return n;
}

static int64_t frequency_next(struct rule_watch *w, int64_t now_ms, double factor)
{
	const struct life *l = w->life;
	int64_t interval = FREQUENCY_MAX_MS;
	size_t n;

	while (w->week < w->found && l->date[w->week] < now_ms - WEEK_MS)
		w->week++;
	n = w->found - w->week;
	if (n > 1 && l->date[w->found - 1] > l->date[w->week]) {
		int64_t gap_s = FW_MAX((l->date[w->found - 1] - l->date[w->week]) / 1000 / (int64_t)(n - 1), 1);
		int64_t weekly = (WEEK_MS / 1000 + gap_s - 1) / gap_s;

		interval = (int64_t)((double)WEEK_MS / ((double)weekly * factor));
		interval = FW_MAX(FW_MIN(interval, FREQUENCY_MAX_MS), RULE_FREQUENCY_MIN_MS);
	}
	if (l->fresh_ms > interval)
		interval = FW_MIN(l->fresh_ms, FREQUENCY_MAX_MS);
	return now_ms + interval;
}

static int64_t ours_next(struct rule_watch *w, int64_t now_ms, size_t new_n)
{
	const struct life *l = w->life;
	struct fw_due_facts facts = {
		.kind = new_n         ? FW_VISIT_OK :
			l->validators ? FW_VISIT_NOT_MODIFIED :
					FW_VISIT_SAME,
		.retry_after_ms = FW_NO_NUMBER,
		.fresh_ms = l->fresh_ms,
		.ttl_minutes = FW_NO_NUMBER,
		.update_period_minutes = FW_NO_NUMBER,
		.model = &w->model,
		.mute = true,
	};
	struct fw_due due;

	if (new_n) {
		size_t shown = FW_MIN(w->found, FW_MAX(l->shown, new_n));

		if (fw_rhythm_add(&w->rhythm, l->date + w->found - shown, shown, now_ms))
			fw_rhythm_model(&w->rhythm, &w->model);
	}
	fw_due(&facts, &w->policy, now_ms, sim_random(&w->rnd), &due);
	return due.at_ms;
}

static void watch_ours(struct rule_watch *w, int64_t min_ms, double target)
{
	fw_due_policy_default(&w->policy);
	w->policy.min_ms = min_ms ? min_ms : w->policy.min_ms;
	w->policy.target = target > 0 ? target : w->policy.target;
	fw_rhythm_read(FW_STR_NONE, &w->rhythm);
	fw_rhythm_model(&w->rhythm, &w->model);
}

/* Feeds start at different times within the first hour. */
static int64_t watch_first_visit(struct rule_watch *w)
{
	return w->life->start_ms + (int64_t)(sim_uniform(&w->rnd) * FW_HOUR_MS);
}

void rule_run_until(const struct life *life, int64_t until_ms, struct rule_state *out)
{
	struct rule_watch w = {.life = life, .rnd = life->seed ^ 0x5eed};
	int64_t at = watch_first_visit(&w);

	watch_ours(&w, 0, 0);
	do {
		out->last_ms = at;
		at = ours_next(&w, at, watch_find(&w, at));
	} while (at <= until_ms);
	out->due_ms = at;
	out->found = w.found;
	out->model = w.model;
}

void rule_run(const struct rule *r, const struct life *life, struct tally *t)
{
	struct rule_watch w = {.life = life, .t = t, .rnd = life->seed ^ 0x5eed};
	int64_t at = watch_first_visit(&w), fixed_ms = (int64_t)(r->factor * FW_MINUTE_MS);

	t->feeds += life->weight;
	t->feed_days += life->weight * (double)(life->end_ms - life->start_ms) / FW_DAY_MS;
	if (r->kind == RULE_OURS)
		watch_ours(&w, r->min_ms, r->factor);
	/* entries older than a week at the first visit never count */
	if (r->kind == RULE_FREQUENCY) {
		while (w.week < life->n && life->date[w.week] < at - WEEK_MS)
			w.week++;
		w.found = w.week;
	}
	/* to the end, and on to the visit that finds the last entries of those days */
	while (at <= life->end_ms || (w.found < life->n && life->date[w.found] <= life->end_ms)) {
		size_t n = watch_visit(&w, at, at <= life->end_ms);

		if (r->kind == RULE_FIXED)
			at += fixed_ms;
		else if (r->kind == RULE_FREQUENCY)
			at = frequency_next(&w, at, r->factor);
		else
			at = ours_next(&w, at, n);
	}
}
