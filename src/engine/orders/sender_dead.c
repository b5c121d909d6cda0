/* SPDX-License-Identifier: ISC */
/* Dead letters, and matches of removed orders. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/orders/sender.h"

#define PAGE 1000

struct old_matches {
	int64_t before_ms, now_ms, last_id;
	size_t n, seen_n;
	struct fw_match match[PAGE];
};

static int old_matches_add(void *ctx, const struct fw_match *m)
{
	struct old_matches *p = ctx;

	p->seen_n++;
	p->last_id = m->change_id;
	if (m->at_ms >= p->before_ms)
		return 0;
	p->match[p->n] = *m;
	p->match[p->n++].at_ms = p->now_ms; /* dead letters are kept from now on */
	return 0;
}

/* The next old matches of an order. *more: there may be further ones. */
static int old_matches_read(
	struct fw_sender *s, struct old_matches *p, int64_t order_id, bool dead, bool *more, struct fw_err *err)
{
	struct fw_match_query q = {.order_id = order_id, .dead = dead, .after_change_id = p->last_id, .limit = PAGE};
	int rc;

	p->n = p->seen_n = 0;
	rc = fw_store_match_list(service_store(s->service), &q, old_matches_add, p, err);
	*more = p->seen_n == PAGE;
	return rc;
}

/* How many of the batch are among these? */
static size_t batch_count(const struct fw_order_delivery *d, const struct fw_match *m, size_t n)
{
	size_t k = 0, found = 0;

	for (size_t i = 0; i < n; i++) {
		while (k < d->id_n && d->id[k] < m[i].change_id)
			k++;
		found += k < d->id_n && d->id[k] == m[i].change_id;
	}
	return found;
}

int sender_make_dead(struct fw_sender *s, struct sender_order *o, int64_t before_ms, struct fw_err *err)
{
	struct old_matches *p = calloc(1, sizeof(*p));
	struct fw_order_delivery *d = &o->delivery->d;
	size_t of_batch = 0;
	bool more = true;
	int rc = p ? 0 : fw_no_memory(err);

	if (p)
		*p = (struct old_matches){.before_ms = before_ms, .now_ms = fw_config_now_ms(s->config)};
	while (!rc && more) {
		rc = old_matches_read(s, p, o->id, false, &more, err);
		rc = rc ? rc : fw_store_match_put(service_store(s->service), p->match, p->n, true, err);
		if (rc)
			break;
		of_batch += batch_count(d, p->match, p->n);
		d->dead_n += (int64_t)p->n;
		o->pending_n -= (int64_t)p->n;
		o->dead_n += (int64_t)p->n;
	}
	if (!rc && of_batch && o->attempt && of_batch >= o->attempt->n)
		delivery_end_batch(d);
	free(p);
	return rc;
}

/* ---- orders that have ended ------------------------------------------------------------------ */

static int order_set_ended(struct fw_sender *s, const struct sender_order *o, struct fw_err *err)
{
	struct fw_order order;
	struct fw_arena a;
	int rc;

	fw_arena_init(&a, 0);
	rc = fw_order_get(service_store(s->service), fw_str(o->name), &a, &order, err);
	if (!rc && order.id == o->id && !order.broken && order.state == FW_ORDER_ACTIVE) {
		order.state = FW_ORDER_ENDED;
		rc = fw_order_put(service_store(s->service), &order, err);
	}
	fw_arena_finish(&a);
	/* removed; or its query is invalid by now, so it matches nothing anyway */
	return rc == FW_ENOTFOUND || rc == FW_EINVAL ? 0 : rc;
}

int sender_end_order(struct fw_sender *s, struct sender_order *o, struct fw_err *err)
{
	int rc = sender_delivery_read(s, o, err);

	rc = rc ? rc : order_set_ended(s, o, err);
	rc = rc ? rc : sender_make_dead(s, o, INT64_MAX, err);
	if (rc)
		return rc;
	o->state = FW_ORDER_ENDED;
	o->pending_n = 0;
	delivery_end_batch(&o->delivery->d);
	return sender_delivery_put(s, o, err);
}

/* ---- the sweep ------------------------------------------------------------------------------- */

static int dead_letters_prune(struct fw_sender *s, struct sender_order *o, struct fw_err *err)
{
	struct old_matches *p = calloc(1, sizeof(*p));
	int64_t id[PAGE], now_ms = fw_config_now_ms(s->config);
	bool more = true;
	int rc = p ? 0 : fw_no_memory(err);

	if (p)
		*p = (struct old_matches){.before_ms = now_ms - s->config->changes_retention_ms, .now_ms = now_ms};
	while (!rc && more) {
		rc = old_matches_read(s, p, o->id, true, &more, err);
		for (size_t i = 0; i < p->n; i++)
			id[i] = p->match[i].change_id;
		rc = rc ? rc : fw_store_match_remove(service_store(s->service), o->id, true, id, p->n, err);
	}
	free(p);
	return rc;
}

int sender_remove_orphans(struct fw_sender *s, int64_t order_id, struct fw_err *err)
{
	int rc = fw_store_match_remove(service_store(s->service), order_id, false, NULL, 0, err);

	rc = rc ? rc : fw_store_match_remove(service_store(s->service), order_id, true, NULL, 0, err);
	rc = rc ? rc : fw_order_delivery_remove(service_store(s->service), order_id, err);
	return rc;
}

int sender_sweep(void *sender, struct fw_store *st, struct fw_err *err)
{
	struct fw_sender *s = sender;
	size_t at = 0;
	int rc = 0;

	(void)st;
	for (struct sender_order *o; !rc && (o = fw_map_next(&s->orders, &at, NULL)) != NULL;) {
		if (o->dead_n && s->config->changes_retention_ms)
			rc = dead_letters_prune(s, o, err);
	}
	if (rc || !s->unknown_n)
		return rc;
	/* read after the matches were seen: an order is stored before it matches */
	rc = sender_list_orders(s, err);
	for (size_t i = 0; !rc && i < s->unknown_n && !s->broken_n; i++) {
		if (sender_order_find(s, s->unknown[i]))
			continue;
		fw_debug("orders: removing the matches of order %lld, which was removed", (long long)s->unknown[i]);
		rc = sender_remove_orphans(s, s->unknown[i], err);
	}
	return rc;
}
