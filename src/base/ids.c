/* SPDX-License-Identifier: ISC */
#include "base/ids.h"

#define COUNT_BITS 12
#define TIME_MAX ((INT64_C(1) << 41) - 1)

void fw_ids_init(struct fw_ids *ids, int64_t machine)
{
	atomic_store(&ids->last, 0);
	ids->machine = machine & (FW_IDS_MACHINES - 1);
}

int64_t fw_ids_take(struct fw_ids *ids, int64_t n, int64_t now_ms)
{
	int64_t ms = now_ms - FW_IDS_EPOCH_MS, last = atomic_load_explicit(&ids->last, memory_order_relaxed), first;

	ms = ms < 0 ? 0 : ms > TIME_MAX ? TIME_MAX : ms;
	do {
		first = last + 1 > ms << COUNT_BITS ? last + 1 : ms << COUNT_BITS;
	} while (!atomic_compare_exchange_weak_explicit(
		&ids->last, &last, first + n - 1, memory_order_relaxed, memory_order_relaxed));
	return first * FW_IDS_MACHINES + ids->machine;
}
