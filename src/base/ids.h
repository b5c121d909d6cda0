/* SPDX-License-Identifier: ISC */
/*
 * Unique ids of events that rise with time.
 *
 *	bit 63: 0 | 41 bits: ms since 2024-01-01 | 12 bits: count | 10 bits: number
 *
 * The upper 53 bits are the serial number. The store reserves ranges of serial numbers, each under
 * a number, and never the same twice (fw_store_event_ids()): that makes the ids unique in all
 * processes that write into one store, whatever their clocks say. Within its range an id follows
 * the clock, as long as a part of the range is left. Behind that, or when the clock is behind, each
 * id is the last one and 1. Within a process ids rise over all threads. They last until 2093.
 */
#ifndef FW_BASE_IDS_H
#define FW_BASE_IDS_H

#include <stdatomic.h>

#include "feedwheel/types.h"

#define FW_IDS_NUMBER_BITS 10
#define FW_IDS_NUMBERS (1 << FW_IDS_NUMBER_BITS)
#define FW_IDS_COUNT_BITS 12
#define FW_IDS_SERIAL_MAX ((INT64_C(1) << 53) - 1)
#define FW_IDS_EPOCH_MS INT64_C(1704067200000)
/*
 * Serial numbers of a range: 17 minutes of time. The last quarter is spared for an outage of the
 * store in which the clock would leave the range: a thousand million ids.
 */
#define FW_IDS_RANGE (INT64_C(1) << 32)
#define FW_IDS_SPARE (FW_IDS_RANGE / 4)
/* A new range is due after this time. */
#define FW_IDS_RENEW_MS (FW_IDS_RANGE / 4 >> FW_IDS_COUNT_BITS)

struct fw_ids {
	_Atomic int64_t last_id; /* with the number of the range */
	_Atomic int64_t high;    /* the range's last serial number */
};

/* Without a range: fw_ids_take() returns 0. */
void fw_ids_init(struct fw_ids *ids);
/*
 * Take ids from this range from now on. first must have been above fw_ids_serial() when the range
 * was reserved. Any thread may take ids meanwhile; one thread sets ranges.
 */
void fw_ids_range(struct fw_ids *ids, int64_t number, int64_t first, int64_t last);
/* The serial number of the last id; 0: none was taken. */
int64_t fw_ids_serial(const struct fw_ids *ids);
/* The serial numbers that are left in the range. */
int64_t fw_ids_left(const struct fw_ids *ids);
/*
 * Take n ids; returns the first, the others follow at steps of FW_IDS_NUMBERS. 0: so many are not
 * left, none is taken. now_ms: Unix time. Any thread.
 */
int64_t fw_ids_take(struct fw_ids *ids, int64_t n, int64_t now_ms);
/* The serial number of this time; of times out of range the nearest. */
int64_t fw_ids_serial_at(int64_t now_ms);
/* Approximate time when an id was taken, Unix ms. */
static inline int64_t fw_ids_ms(int64_t id)
{
	return (id >> 22) + FW_IDS_EPOCH_MS;
}
/* The lowest id that can be taken from that time on. */
static inline int64_t fw_ids_first(int64_t at_ms)
{
	return at_ms <= FW_IDS_EPOCH_MS                   ? 0 :
		at_ms - FW_IDS_EPOCH_MS > INT64_MAX >> 22 ? INT64_MAX :
							    (at_ms - FW_IDS_EPOCH_MS) << 22;
}

#endif
