/* SPDX-License-Identifier: ISC */
/*
 * Numbers that are unique without asking anybody, and rise with time.
 *
 *	bit 63: 0 | 41 bits: ms since 2024-01-01 | 12 bits: count | 10 bits: machine
 *
 * The machine's part keeps those of several processes apart: it must differ between processes that write into one store. Within a
 * process numbers rise, over all threads, also when the clock is set back; more than 4,096 within a millisecond borrow from the next.
 * Good until 2093.
 */
#ifndef FW_BASE_IDS_H
#define FW_BASE_IDS_H

#include <stdatomic.h>

#include "feedwheel/types.h"

#define FW_IDS_MACHINES 1024
#define FW_IDS_EPOCH_MS INT64_C(1704067200000)

struct fw_ids {
	_Atomic int64_t last; /* time and count of the last one given */
	int64_t machine;
};

/* machine: 0 ... FW_IDS_MACHINES - 1 */
void fw_ids_init(struct fw_ids *ids, int64_t machine);
/* The first of n numbers, the others lie FW_IDS_MACHINES apart. Any thread. now_ms: Unix time. */
int64_t fw_ids_take(struct fw_ids *ids, int64_t n, int64_t now_ms);
/* When a number was made, about. */
static inline int64_t fw_ids_ms(int64_t id)
{
	return (id >> 22) + FW_IDS_EPOCH_MS;
}
/* All that are made from then on are this or higher. */
static inline int64_t fw_ids_first(int64_t at_ms)
{
	return at_ms <= FW_IDS_EPOCH_MS ? 0 : at_ms - FW_IDS_EPOCH_MS > INT64_MAX >> 22 ? INT64_MAX : (at_ms - FW_IDS_EPOCH_MS) << 22;
}

#endif
