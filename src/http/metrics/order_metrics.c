/* SPDX-License-Identifier: ISC */
/*
 * Metrics of orders, from what the store holds: so they are those of the whole fleet, whichever
 * process delivers. Beyond ORDERS_MAX orders only the sums of what waits are shown.
 */
#include <stdlib.h>

#include "api/order.h"
#include "api/sender.h"
#include "base/clock.h"
#include "http/metrics/prom.h"
#include "http/server/http.h"

#define ORDERS_MAX 1000
#define ENOUGH 1 /* stops a listing */

struct order_sample {
	char name[FW_ORDER_NAME_MAX + 1];
	int64_t id, matched_n, delivered_n, retried_n, pending_n, dead_n, oldest_ms;
};

struct order_samples {
	int64_t pending_n, dead_n, oldest_ms; /* of all */
	size_t n;
	struct order_sample at[ORDERS_MAX]; /* by name */
};

static int sample_by_name(const void *a, const void *b)
{
	return strcmp(((const struct order_sample *)a)->name, ((const struct order_sample *)b)->name);
}

static int order_samples_add(void *ctx, const struct fw_order_status *s)
{
	struct order_samples *all = ctx;
	const struct fw_order_delivery *d = &s->delivery;
	struct order_sample *p;

	if (s->order.action != FW_ORDER_DELIVER || s->order.broken)
		return 0;
	if (all->n == ORDERS_MAX)
		return ENOUGH;
	p = &all->at[all->n++];
	*p = (struct order_sample){.id = s->order.id,
		.matched_n = d->delivered_n + d->dead_n + d->gone_n + s->pending_n,
		.delivered_n = d->delivered_n,
		.retried_n = d->retried_n,
		.pending_n = s->pending_n,
		.dead_n = s->dead_n,
		.oldest_ms = s->oldest_ms};
	(void)fw_str_copy(p->name, sizeof(p->name), s->order.name);
	return 0;
}

static int order_samples_sum(void *ctx, int64_t order_id, int64_t pending_n, int64_t dead_n, int64_t oldest_ms)
{
	struct order_samples *all = ctx;

	(void)order_id;
	all->pending_n += pending_n;
	all->dead_n += dead_n;
	if (oldest_ms && (!all->oldest_ms || oldest_ms < all->oldest_ms))
		all->oldest_ms = oldest_ms;
	return 0;
}

/* A batch is counted a moment after its matches are removed: a counter must not fall in between. */
static void order_samples_keep(struct order_samples *s, const struct order_samples *before)
{
	for (size_t i = 0; before && i < s->n; i++) {
		const struct order_sample *was = bsearch(
			&s->at[i], before->at, before->n, sizeof(*before->at), sample_by_name);

		if (was && was->id == s->at[i].id)
			s->at[i].matched_n = FW_MAX(s->at[i].matched_n, was->matched_n);
	}
}

int order_samples_read(
	struct fw_store *st, const struct order_samples *before, struct order_samples **out, struct fw_err *err)
{
	struct order_samples *s = calloc(1, sizeof(*s));
	int rc = s ? fw_store_match_summary(st, order_samples_sum, s, err) : FW_ENOMEM;

	*out = NULL;
	rc = rc ? rc : fw_order_status_list(st, order_samples_add, s, err);
	if (rc && rc != ENOUGH) {
		free(s);
		return rc;
	}
	if (rc)
		s->n = 0;
	qsort(s->at, s->n, sizeof(*s->at), sample_by_name);
	order_samples_keep(s, before);
	*out = s;
	return 0;
}

static double age_s(int64_t oldest_ms, int64_t now_ms)
{
	return oldest_ms ? (double)FW_MAX(now_ms - oldest_ms, INT64_C(0)) / 1000 : 0;
}

static void order_metric(struct fw_buf *b, const struct order_samples *s, const char *name, const char *type,
	const char *help, size_t offset)
{
	metric_head(b, name, type, help);
	for (size_t i = 0; i < s->n; i++)
		metric_sample(b, name, (double)*(const int64_t *)(const void *)((const char *)&s->at[i] + offset),
			"order=\"%s\"", s->at[i].name);
}

void order_samples_metrics(struct fw_buf *b, const struct order_samples *s, int64_t now_ms)
{
	metric(b, "orders_pending", "gauge", "Matches of all orders that wait for delivery.", (double)s->pending_n);
	metric(b, "orders_dead_letters", "gauge", "Dead letters of all orders.", (double)s->dead_n);
	metric(b, "orders_lag_seconds", "gauge", "Age of the oldest match that waits, of any order.",
		age_s(s->oldest_ms, now_ms));
#define ORDER_METRIC(name, type, help, member) \
	order_metric(b, s, name, type, help, offsetof(struct order_sample, member))
	ORDER_METRIC("order_matched_total", "counter",
		"Entries that an order got, and once more those that were retried or replayed.", matched_n);
	ORDER_METRIC("order_delivered_total", "counter", "Entries that an order's receiver has accepted.", delivered_n);
	ORDER_METRIC("order_retries_total", "counter", "Failed attempts to deliver.", retried_n);
	ORDER_METRIC("order_pending", "gauge", "Matches of an order that wait for delivery.", pending_n);
	ORDER_METRIC("order_dead_letters", "gauge", "Dead letters of an order.", dead_n);
#undef ORDER_METRIC
	metric_head(b, "order_lag_seconds", "gauge", "Age of an order's oldest match that waits.");
	for (size_t i = 0; i < s->n; i++)
		metric_sample(b, "order_lag_seconds", age_s(s->at[i].oldest_ms, now_ms), "order=\"%s\"", s->at[i].name);
}
