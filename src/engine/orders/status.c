/* SPDX-License-Identifier: ISC */
/* Orders for people: each with its delivery, and with the number of its matches. */
#include <stdlib.h>

#include "api/order.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "engine/lead.h"
#include "engine/orders/orders.h"

/* The matches of one order. */
struct status_count {
	int64_t order_id, pending_n, dead_n, oldest_ms;
};

struct status_counts {
	struct status_count *at;
	size_t n, cap;
	bool led; /* a process delivers */
};

static int status_counts_add(void *ctx, int64_t order_id, int64_t pending_n, int64_t dead_n, int64_t oldest_ms)
{
	struct status_counts *k = ctx;
	size_t cap = k->cap ? 2 * k->cap : 64;

	if (k->n == k->cap) {
		struct status_count *more = reallocarray(k->at, cap, sizeof(*more));

		if (!more)
			return FW_ENOMEM;
		k->at = more;
		k->cap = cap;
	}
	k->at[k->n++] = (struct status_count){order_id, pending_n, dead_n, oldest_ms};
	return 0;
}

FW_COMPARE(status_by_order, struct status_count, order_id)

static int status_counts_read(struct fw_store *st, struct status_counts *k, struct fw_err *err)
{
	int rc;

	*k = (struct status_counts){0};
	rc = fw_store_match_summary(st, status_counts_add, k, err);
	if (!rc)
		rc = lead_exists(st, ORDERS_LEAD_KIND, &k->led, err);
	if (!rc && k->n)
		qsort(k->at, k->n, sizeof(*k->at), status_by_order);
	return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
}

static int status_fill(struct fw_store *st, const struct status_counts *k, struct fw_arena *a,
	struct fw_order_status *out, struct fw_err *err)
{
	const struct status_count key = {.order_id = out->order.id};
	const struct status_count *found = k->n ? bsearch(&key, k->at, k->n, sizeof(key), status_by_order) : NULL;

	out->delivery = (struct fw_order_delivery){.order_id = out->order.id};
	if (found) {
		out->pending_n = found->pending_n;
		out->dead_n = found->dead_n;
		out->oldest_ms = found->oldest_ms;
	}
	if (out->order.broken || out->order.action != FW_ORDER_DELIVER)
		return 0;
	out->unattended = out->pending_n && out->order.state == FW_ORDER_ACTIVE && !k->led;
	return fw_order_delivery_get(st, out->order.id, a, &out->delivery, err);
}

struct status_walk {
	struct fw_store *st;
	fw_order_status_cb *cb;
	void *ctx;
	struct status_counts counts;
	struct fw_arena a; /* of one delivery */
	struct fw_err *err;
};

static int status_add(void *ctx, const struct fw_order *o)
{
	struct status_walk *w = ctx;
	struct fw_order_status s = {.order = *o};
	int rc;

	fw_arena_reset(&w->a, 0);
	rc = status_fill(w->st, &w->counts, &w->a, &s, w->err);
	return rc ? rc : w->cb(w->ctx, &s);
}

int fw_order_status_list(struct fw_store *st, fw_order_status_cb *cb, void *ctx, struct fw_err *err)
{
	struct status_walk w = {.st = st, .cb = cb, .ctx = ctx, .err = err};
	int rc;

	fw_arena_init(&w.a, 0);
	rc = status_counts_read(st, &w.counts, err);
	rc = rc ? rc : fw_order_list(st, status_add, &w, err);
	free(w.counts.at);
	fw_arena_finish(&w.a);
	return rc;
}

int fw_order_status_get(
	struct fw_store *st, struct fw_str name, struct fw_arena *a, struct fw_order_status *out, struct fw_err *err)
{
	struct status_counts k = {0};
	int rc;

	*out = (struct fw_order_status){.pending_n = 0};
	rc = fw_order_get(st, name, a, &out->order, err);
	rc = rc ? rc : status_counts_read(st, &k, err);
	rc = rc ? rc : status_fill(st, &k, a, out, err);
	free(k.at);
	return rc;
}

void fw_match_json(struct fw_json *j, const char *key, const struct fw_match *m)
{
	fw_json_object(j, key);
	fw_json_int(j, "id", m->change_id);
	fw_json_cstr(j, "type", m->changed ? "changed" : "new");
	fw_json_int(j, "entry", m->entry_id);
	fw_json_int(j, "feed", m->feed_id);
	fw_json_time(j, "matched_at", m->at_ms);
	fw_json_end(j);
}
