/* SPDX-License-Identifier: ISC */
#include "engine/orders/delivery_rules.h"

#include <assert.h>
#include <string.h>

#include "base/str.h"

void delivery_form(struct fw_order_delivery *d, const int64_t *change_id, size_t n, int64_t now_ms)
{
	assert(!d->id_n && n > 0 && n <= FW_ORDER_BATCH_MAX);
	memcpy(d->id, change_id, n * sizeof(*change_id));
	d->id_n = (uint32_t)n;
	d->batch_n++;
	d->since_ms = now_ms;
}

void delivery_message_id(const struct fw_order_delivery *d, char out[DELIVERY_MESSAGE_ID_MAX])
{
	(void)fw_snprintf(out, DELIVERY_MESSAGE_ID_MAX, "%lld.%lld.%lld.%lld.%u", (long long)d->order_id,
		(long long)d->id[0], (long long)d->batch_n, (long long)d->since_ms, d->id_n);
}

int64_t delivery_due_ms(const struct fw_order_delivery *d, int64_t woken_ms)
{
	return woken_ms == d->woken_ms ? d->next_ms : 0;
}

void delivery_begin(struct fw_order_delivery *d, int64_t woken_ms)
{
	d->woken_ms = woken_ms;
}

int64_t delivery_backoff_ms(uint32_t fail_n, uint64_t rnd)
{
	int64_t pause_ms = DELIVERY_BACKOFF_MIN_MS;

	for (uint32_t i = 1; i < fail_n && pause_ms < DELIVERY_BACKOFF_MAX_MS; i++)
		pause_ms *= 2;
	pause_ms = FW_MIN(pause_ms, DELIVERY_BACKOFF_MAX_MS);
	return pause_ms - (int64_t)(rnd % (uint64_t)(pause_ms / 4 + 1));
}

void delivery_end_batch(struct fw_order_delivery *d)
{
	d->id_n = 0;
}

static void delivery_fail(struct fw_order_delivery *d, const struct delivery_result *r, int64_t now_ms, uint64_t rnd)
{
	int64_t pause_ms;

	d->fail_n += d->fail_n < UINT32_MAX;
	d->retried_n++;
	pause_ms = delivery_backoff_ms(d->fail_n, rnd);
	if (r->retry_ms > 0)
		pause_ms = FW_MIN(r->retry_ms, DELIVERY_RETRY_AFTER_MAX_MS);
	d->next_ms = now_ms + pause_ms;
	d->failing_since_ms = d->failing_since_ms ? d->failing_since_ms : now_ms;
	d->error = r->error;
	if (r->ended)
		delivery_end_batch(d);
}

void delivery_conclude(
	struct fw_order_delivery *d, const struct delivery_result *r, size_t sent_n, int64_t now_ms, uint64_t rnd)
{
	assert(d->id_n && !(r->accepted && r->ended));
	d->status = r->status;
	if (!r->accepted) {
		delivery_fail(d, r, now_ms, rnd);
		return;
	}
	d->delivered_n += (int64_t)sent_n;
	d->delivered_ms = now_ms;
	d->next_ms = d->failing_since_ms = 0;
	d->fail_n = 0;
	d->error = FW_STR_NONE;
	delivery_end_batch(d);
}
