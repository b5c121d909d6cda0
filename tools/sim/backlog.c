/* SPDX-License-Identifier: ISC */
/*
 * After a downtime: how much of the missed entries do the first requests find, in which order of
 * feeds?
 *
 * Our rule polls each feed until the downtime starts. At its end the feeds that came due form the
 * backlog; each has the entries published since its last visit. Nothing is published while the
 * backlog is worked off, and all requests take the same time.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "sched/plan.h"
#include "sim.h"

const double BACKLOG_PART[BACKLOG_PARTS] = {0.02, 0.1, 0.25, 0.5};

struct backlog_item {
	double weight, missed; /* entries that a visit would find */
	double key;            /* largest first */
	double value, expected;
	int64_t due_ms;
};

static int backlog_item_compare(const void *a, const void *b)
{
	const struct backlog_item *x = a, *y = b;

	if (x->key < y->key || x->key > y->key)
		return x->key > y->key ? -1 : 1;
	return x->due_ms < y->due_ms ? -1 : x->due_ms > y->due_ms;
}

static double backlog_item_key(const struct backlog_item *w, enum backlog_order order)
{
	switch (order) {
	case BACKLOG_VALUE:
		return w->value;
	case BACKLOG_EXPECTED:
		return w->expected;
	case BACKLOG_BEST:
		return w->missed;
	default:
		return -(double)w->due_ms;
	}
}

/* Find the share of the missed entries that the first requests find. */
static void backlog_order_run(struct backlog_item *w, size_t n, enum backlog_order order, struct backlog *b)
{
	double requests = 0, found = 0;
	size_t at = 0;

	for (size_t i = 0; i < n; i++)
		w[i].key = backlog_item_key(&w[i], order);
	qsort(w, n, sizeof(*w), backlog_item_compare);
	for (size_t i = 0; i < n && at < BACKLOG_PARTS; i++) {
		requests += w[i].weight;
		found += w[i].weight * w[i].missed;
		while (at < BACKLOG_PARTS && requests >= BACKLOG_PART[at] * b->feeds)
			b->found[order][at++] = b->missed > 0 ? found / b->missed : 0;
	}
	for (; at < BACKLOG_PARTS; at++)
		b->found[order][at] = 1;
}

/* False: the feed is not due yet. */
static bool backlog_item_init(const struct life *life, int64_t down_ms, struct backlog_item *out)
{
	int64_t now = life->end_ms;
	struct rule_state s;

	rule_run_until(life, now - down_ms, &s);
	if (s.due_ms > now)
		return false;
	*out = (struct backlog_item){.weight = life->weight,
		.due_ms = s.due_ms,
		.value = fw_due_priority(now, s.due_ms, s.last_ms),
		.expected = fw_rhythm_expected(&s.model, s.last_ms, now)};
	for (size_t i = s.found; i < life->n && life->date[i] <= now; i++)
		out->missed++;
	return true;
}

bool backlog_run(const struct world *w, int64_t down_ms, struct backlog *out)
{
	struct backlog_item *waiting = calloc(w->feeds, sizeof(*waiting));
	struct life life = {0};
	bool ok = waiting != NULL;
	size_t n = 0;

	*out = (struct backlog){0};
	for (size_t i = 0; ok && i < w->feeds; i++) {
		ok = world_feed(w, i, &life);
		if (!ok || !backlog_item_init(&life, down_ms, &waiting[n]))
			continue;
		out->feeds += waiting[n].weight;
		out->missed += waiting[n].weight * waiting[n].missed;
		n++;
	}
	for (int order = 0; ok && order < BACKLOG_ORDERS; order++)
		backlog_order_run(waiting, n, (enum backlog_order)order, out);
	life_free(&life);
	free(waiting);
	return ok;
}
