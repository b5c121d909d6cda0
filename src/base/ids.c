/* SPDX-License-Identifier: ISC */
#include "base/ids.h"

#include <assert.h>

#define TIME_MAX ((INT64_C(1) << 41) - 1)

static int64_t ids_serial_of(int64_t id)
{
	return id >> FW_IDS_NUMBER_BITS;
}

void fw_ids_init(struct fw_ids *ids)
{
	atomic_store(&ids->last_id, 0);
	atomic_store(&ids->high, 0);
}

/*
 * last_id first: who sees the new number may still see the old end, which is not above the new one.
 * The other way round an id could be taken with the old number behind the end of its range.
 */
void fw_ids_range(struct fw_ids *ids, int64_t number, int64_t first, int64_t last)
{
	int64_t was = atomic_load(&ids->last_id), serial;

	assert(number >= 0 && number < FW_IDS_NUMBERS && last <= FW_IDS_SERIAL_MAX);
	do {
		serial = ids_serial_of(was) > first - 1 ? ids_serial_of(was) : first - 1;
	} while (!atomic_compare_exchange_weak(&ids->last_id, &was, serial * FW_IDS_NUMBERS + number));
	atomic_store(&ids->high, last);
}

int64_t fw_ids_serial(const struct fw_ids *ids)
{
	return ids_serial_of(atomic_load(&ids->last_id));
}

int64_t fw_ids_left(const struct fw_ids *ids)
{
	int64_t left = atomic_load(&ids->high) - fw_ids_serial(ids);

	return left > 0 ? left : 0;
}

int64_t fw_ids_serial_at(int64_t now_ms)
{
	int64_t ms = now_ms <= FW_IDS_EPOCH_MS ? 0 : now_ms - FW_IDS_EPOCH_MS;

	return (ms > TIME_MAX ? TIME_MAX : ms) << FW_IDS_COUNT_BITS;
}

int64_t fw_ids_take(struct fw_ids *ids, int64_t n, int64_t now_ms)
{
	int64_t clock = fw_ids_serial_at(now_ms), high, last, first, number;

	do {
		high = atomic_load(&ids->high);
		last = atomic_load(&ids->last_id);
		number = last & (FW_IDS_NUMBERS - 1);
		first = ids_serial_of(last) + 1;
		if (clock > first && clock <= high - FW_IDS_SPARE)
			first = clock;
		if (first > high || n - 1 > high - first)
			return 0;
	} while (!atomic_compare_exchange_weak(&ids->last_id, &last, (first + n - 1) * FW_IDS_NUMBERS + number));
	return first * FW_IDS_NUMBERS + number;
}
