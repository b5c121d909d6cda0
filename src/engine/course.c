/* SPDX-License-Identifier: ISC */
/*
 * The course is a plan's queue once more: an item begins when it is lent to us and is done when its loan has ended, a host's limit is
 * what the store lends of it at once, and the rank is the place in the simulated order. One that was put off goes back into the queue,
 * and its host pauses for a moment.
 */
#include <stdlib.h>

#include "base/str.h"
#include "engine/course.h"

#define UNKNOWN_US 1000000 /* where nothing at all is known */
#define TRIES_MAX 100      /* of one that is put off again and again; then the ordinary claim has it */
#define CHUNK 500

struct stop {
	struct fw_plan_item item;
	struct course *of;
	int64_t feed_id;
	uint32_t tries;
};

struct course {
	struct stop *stop;
	struct fw_plan *queue;
	struct stop *asked[CHUNK]; /* by feed_id */
	size_t asked_n;
	size_t lent_n;
	struct course *before, *after; /* those that it took the place of, while loans of theirs are out */
	struct course_forecast forecast;
};

static struct stop *stop_of(struct fw_plan_item *item)
{
	return (struct stop *)(void *)((char *)item - offsetof(struct stop, item));
}

/* All feeds of a host belong to one worker; one that is alone at its host, to any. */
static uint32_t owner(const struct course_rules *r, const struct fw_due_row *row)
{
	uint64_t key = (uint64_t)(row->host_id ? row->host_id : row->feed_id) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)((key >> 32) % FW_MAX(r->workers, 1u));
}

int due_rows_add(void *ctx, const struct fw_due_row *row)
{
	struct due_rows *d = ctx;

	if (d->n == d->cap) {
		size_t cap = d->cap ? 2 * d->cap : 1024;
		struct fw_due_row *grown = reallocarray(d->row, cap, sizeof(*grown));

		if (!grown)
			return FW_ENOMEM;
		d->row = grown;
		d->cap = cap;
	}
	d->row[d->n++] = *row;
	d->known += row->expect_us > 0;
	d->ordered = d->ordered || row->expect_us > 0 || row->host_id;
	return 0;
}

int course_simulate(const struct fw_plan_rules *r, const struct fw_due_row *row, size_t n, struct fw_plan_item *item,
	struct fw_plan_start *start, struct fw_plan_total *out)
{
	int64_t *took_us = calloc(FW_MAX(n, 1), sizeof(*took_us));
	int rc;

	for (size_t i = 0; i < n; i++)
		item[i] = (struct fw_plan_item){.host = row[i].host_id, .expect_us = row[i].expect_us};
	rc = took_us ? fw_plan_guess(item, n, UNKNOWN_US) : FW_ENOMEM;
	for (size_t i = 0; i < n && !rc; i++) {
		took_us[i] = item[i].expect_us;
		if (r->policy == FW_PLAN_BATCH_SORTED) /* what was never timed is its last, and takes its time nevertheless */
			item[i].expect_us = row[i].expect_us;
	}
	if (!rc)
		rc = fw_plan_simulate(r, item, n, took_us, start, out);
	for (size_t i = 0; i < n && !rc; i++)
		item[i].expect_us = took_us[i];
	free(took_us);
	return rc;
}

/* What is due; start: in which order it begins. */
static int foretell(const struct course_rules *r, const struct fw_due_row *row, size_t n, struct fw_plan_start *start,
	struct course_forecast *out)
{
	struct fw_plan_item *item = calloc(n, sizeof(*item));
	int rc = item ? course_simulate(&r->plan, row, n, item, start, &out->total) : FW_ENOMEM;

	for (size_t i = 0; i < n; i++)
		out->known += row[i].expect_us > 0;
	free(item);
	return rc;
}

/* ---- the order ------------------------------------------------------------------------------------------------------------------------- */

/* As the simulation begins them, what a person asked for in front. */
static int order_by_plan(struct course *c, const struct course_rules *r, const struct fw_due_row *row, size_t n, size_t *order)
{
	struct fw_plan_start *start = calloc(n, sizeof(*start));
	int rc = start ? foretell(r, row, n, start, &c->forecast) : FW_ENOMEM;
	size_t at = 0;

	for (size_t i = 0; i < 2 * n && !rc; i++) {
		if ((row[start[i % n].item].due_at_ms <= FW_DUE_FIRST) == (i < n))
			order[at++] = start[i % n].item;
	}
	if (!rc && c->forecast.total.host_us)
		c->forecast.total.host_item = row[c->forecast.total.host_item].feed_id;
	free(start);
	return rc;
}

enum sort { ASKED_FOR, KNOWN, NEW };

struct worth {
	double value;
	int64_t due_at_ms;
	size_t row;
	enum sort sort;
};

static int worth_more(const void *a, const void *b)
{
	const struct worth *x = a, *y = b;

	if (x->sort != y->sort)
		return x->sort < y->sort ? -1 : 1;
	if (x->value < y->value || x->value > y->value)
		return x->value > y->value ? -1 : 1;
	if (x->due_at_ms != y->due_at_ms)
		return x->due_at_ms < y->due_at_ms ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

static int order_by_value(int64_t now_ms, const struct fw_due_row *row, size_t n, size_t *order)
{
	struct worth *w = calloc(n, sizeof(*w));
	size_t asked_n = 0, new_n = 0, known, fresh;

	if (!w)
		return FW_ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct fw_due_row *d = &row[i];

		w[i] = (struct worth){.row = i, .due_at_ms = d->due_at_ms, .sort = d->due_at_ms <= FW_DUE_FIRST ? ASKED_FOR :
			d->last_visit_ms > 0 ? KNOWN : NEW};
		asked_n += w[i].sort == ASKED_FOR;
		new_n += w[i].sort == NEW;
		if (w[i].sort == KNOWN)
			w[i].value = fw_late_intervals(now_ms, d->due_at_ms, d->last_visit_ms);
	}
	qsort(w, n, sizeof(*w), worth_more);
	known = asked_n;
	fresh = n - new_n;
	for (size_t i = 0; i < n; i++) {
		bool from_new = i >= asked_n && fresh < n && (known >= n - new_n || (i - asked_n) % 2 == 0);

		order[i] = w[i < asked_n ? i : from_new ? fresh++ : known++].row;
	}
	free(w);
	return 0;
}

/* Our own part first, in order; behind it what is the others', from its end. */
static void take_places(struct course *c, const struct course_rules *r, const struct fw_due_row *row, const size_t *order, size_t n)
{
	size_t own = 0, behind = n;

	for (size_t i = 0; i < n; i++) {
		const struct fw_due_row *d = &row[order[i]];
		size_t at = owner(r, d) == r->index ? own++ : --behind;

		c->stop[at] = (struct stop){.feed_id = d->feed_id, .of = c, .item = {.host = d->host_id, .rank = (int64_t)at}};
	}
}

int course_create(const struct course_rules *r, const struct fw_due_row *row, size_t n, struct course **out)
{
	struct fw_plan_rules rules = {.policy = FW_PLAN_FIFO, .host_max = r->plan.host_max ? r->plan.host_max + r->ahead : 0};
	struct course *c = calloc(1, sizeof(*c));
	size_t *order = calloc(FW_MAX(n, 1), sizeof(*order));
	int rc = FW_ENOMEM;

	*out = NULL;
	if (!c || !order)
		goto out;
	c->stop = calloc(FW_MAX(n, 1), sizeof(*c->stop));
	c->queue = fw_plan_new(&rules);
	if (!c->stop || !c->queue)
		goto out;
	if (!n)
		rc = 0;
	else if (r->by_value)
		rc = order_by_value(r->now_ms, row, n, order);
	else
		rc = order_by_plan(c, r, row, n, order);
	if (rc)
		goto out;
	take_places(c, r, row, order, n);
	for (size_t i = 0; i < n && !rc; i++)
		rc = fw_plan_put(c->queue, &c->stop[i].item);
	if (rc)
		goto out;
	*out = c;
	c = NULL;
out:
	course_destroy(c);
	free(order);
	return rc;
}

static void course_free(struct course *c)
{
	fw_plan_free(c->queue);
	free(c->stop);
	free(c);
}

void course_destroy(struct course *c)
{
	while (c) {
		struct course *before = c->before;

		course_free(c);
		c = before;
	}
}

/* Nobody asks for anything on it any more: with its last loan it goes. */
static void leave(struct course *c)
{
	if (!c->after || c->lent_n)
		return;
	c->after->before = c->before;
	if (c->before)
		c->before->after = c->after;
	course_free(c);
}

void course_follow(struct course *c, struct course *before)
{
	if (!before)
		return;
	c->before = before;
	before->after = c;
	leave(before);
}

const struct course_forecast *course_forecast(const struct course *c)
{
	return &c->forecast;
}

static int by_feed(const void *a, const void *b)
{
	const struct stop *x = *(struct stop *const *)a, *y = *(struct stop *const *)b;

	return x->feed_id < y->feed_id ? -1 : x->feed_id > y->feed_id;
}

size_t course_ask(struct course *c, int64_t now_us, size_t max, int64_t *id, int64_t *next_us)
{
	struct fw_plan_item *item;

	max = FW_MIN(max, (size_t)CHUNK);
	c->asked_n = 0;
	*next_us = INT64_MAX;
	while (c->asked_n < max && (item = fw_plan_take(c->queue, now_us, next_us)) != NULL) {
		id[c->asked_n] = stop_of(item)->feed_id;
		c->asked[c->asked_n++] = stop_of(item);
	}
	qsort(c->asked, c->asked_n, sizeof(struct stop *), by_feed);
	return c->asked_n;
}

/* Its place among those asked for; NULL: it was not. */
static struct stop **asked_find(struct course *c, int64_t feed_id)
{
	struct stop key = {.feed_id = feed_id}, *at = &key;

	return bsearch(&at, c->asked, c->asked_n, sizeof(struct stop *), by_feed);
}

void course_got(struct course *c, const struct fw_lease *lease, size_t n, bool deferred, int64_t now_us, int64_t hold_us,
	struct fw_plan_item **stop)
{
	for (size_t i = 0; i < n; i++) {
		struct stop **at = asked_find(c, lease[i].feed.id);

		stop[i] = at ? &(*at)->item : NULL;
		c->lent_n += at != NULL;
	}
	for (size_t i = 0; i < n; i++) {
		if (stop[i])
			stop_of(stop[i])->tries = UINT32_MAX; /* lent */
	}
	for (size_t i = 0; i < c->asked_n; i++) {
		struct stop *s = c->asked[i];

		if (s->tries == UINT32_MAX)
			continue;
		fw_plan_done(c->queue, &s->item);
		/* out of memory for a host that is known to the queue already: it cannot be; and then the ordinary claim has it */
		if (deferred && s->item.host && ++s->tries < TRIES_MAX && !fw_plan_put(c->queue, &s->item))
			fw_plan_pause(c->queue, s->item.host, now_us + hold_us);
	}
	c->asked_n = 0;
}

void course_unasked(struct course *c)
{
	for (size_t i = 0; i < c->asked_n; i++) {
		fw_plan_done(c->queue, &c->asked[i]->item);
		if (fw_plan_put(c->queue, &c->asked[i]->item))
			break; /* the ordinary claim has it */
	}
	c->asked_n = 0;
}

void course_back(struct fw_plan_item *item)
{
	struct course *c = stop_of(item)->of;

	fw_plan_done(c->queue, item);
	c->lent_n--;
	leave(c);
}

bool course_is_over(const struct course *c)
{
	return !fw_plan_waiting(c->queue);
}

bool course_is_idle(const struct course *c)
{
	return !c->lent_n && !c->before;
}

size_t course_ready(const struct course *c)
{
	return fw_plan_ready(c->queue);
}
