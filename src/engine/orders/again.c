/* SPDX-License-Identifier: ISC */
/*
 * Matches again: the entries of a time (replay), or the dead letters (retry) of an order. A step
 * reads up to STEP rows and stores their matches in one transaction, so it may be killed and
 * repeated.
 */
#include "api/order.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

#define STEP 1000

struct again {
	const struct fw_order *o;
	struct fw_match *match; /* STEP of them */
	size_t n;
	int64_t now_ms;
};

static int again_check(const struct fw_order *o, struct fw_err *err)
{
	if (o->broken)
		return fw_err_set(err, FW_EINVAL, "the record of order '%.*s' is invalid: remove it, and add it again",
			FW_STR_ARG(o->name));
	if (o->action != FW_ORDER_DELIVER)
		return fw_err_set(
			err, FW_EINVAL, "order '%.*s' delivers nothing: it has no matches", FW_STR_ARG(o->name));
	if (o->state == FW_ORDER_ENDED)
		return fw_err_set(err, FW_EINVAL,
			"order '%.*s' has ended, because its receiver answered 410: resume it first",
			FW_STR_ARG(o->name));
	return 0;
}

static int again_entry(void *ctx, const struct fw_entry_row *e)
{
	struct again *g = ctx;

	g->match[g->n++] = (struct fw_match){
		.order_id = g->o->id, .change_id = e->id, .entry_id = e->id, .feed_id = e->feed_id, .at_ms = g->now_ms};
	return 0;
}

static int again_dead(void *ctx, const struct fw_match *m)
{
	struct again *g = ctx;

	g->match[g->n] = *m;
	g->match[g->n++].at_ms = g->now_ms;
	return 0;
}

/* Store the matches of one step. */
static int again_put(struct fw_store *st, const struct again *g, struct fw_order_again *r, struct fw_err *err)
{
	int rc = fw_store_match_put(st, g->match, g->n, false, err);

	r->n += rc ? 0 : (int64_t)g->n;
	if (!rc && r->progress)
		r->progress(r->ctx, r);
	return rc;
}

/* A person wants them delivered now, also if the receiver failed. */
static int again_wake(struct fw_store *st, const struct again *g, struct fw_err *err)
{
	struct fw_order o;
	struct fw_arena a;
	int rc;

	fw_arena_init(&a, 0);
	rc = fw_order_get(st, g->o->name, &a, &o, err);
	if (!rc && o.id == g->o->id && !o.broken) {
		o.woken_ms = fw_store_now_ms(st);
		rc = fw_order_put(st, &o, err);
	}
	fw_arena_finish(&a);
	return rc;
}

static int again_begin(
	struct again *g, struct fw_store *st, struct fw_arena *a, const struct fw_order *o, struct fw_err *err)
{
	int rc = again_check(o, err);

	fw_arena_init(a, 0);
	*g = (struct again){.o = o, .now_ms = fw_store_now_ms(st)};
	if (rc)
		return rc;
	g->match = fw_arena_calloc(a, STEP, sizeof(*g->match));
	return g->match ? 0 : fw_no_memory(err);
}

int fw_order_replay(
	struct fw_store *st, const struct fw_order *o, int64_t since_ms, struct fw_order_again *r, struct fw_err *err)
{
	struct fw_entry_query q = {.search = o->query, .since_ms = since_ms, .oldest_first = true, .limit = STEP};
	struct fw_arena a;
	struct again g;
	int rc = again_begin(&g, st, &a, o, err);

	q.unindexed_n = &r->unindexed_n;
	do {
		g.n = 0;
		rc = rc ? rc : fw_store_entry_list(st, &q, again_entry, &g, err);
		rc = rc || !g.n ? rc : again_put(st, &g, r, err);
		q.after_id = g.n ? g.match[g.n - 1].change_id : q.after_id;
	} while (!rc && g.n == STEP);
	rc = rc || !r->n ? rc : again_wake(st, &g, err);
	fw_arena_finish(&a);
	return rc;
}

int fw_order_retry(struct fw_store *st, const struct fw_order *o, struct fw_order_again *r, struct fw_err *err)
{
	struct fw_match_query q = {.order_id = o->id, .dead = true, .limit = STEP};
	struct fw_arena a;
	struct again g;
	int rc = again_begin(&g, st, &a, o, err);

	do {
		g.n = 0;
		rc = rc ? rc : fw_store_match_list(st, &q, again_dead, &g, err);
		rc = rc || !g.n ? rc : again_put(st, &g, r, err);
		q.after_change_id = g.n ? g.match[g.n - 1].change_id : q.after_change_id;
	} while (!rc && g.n == STEP);
	rc = rc || !r->n ? rc : again_wake(st, &g, err);
	fw_arena_finish(&a);
	return rc;
}
