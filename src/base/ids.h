/* SPDX-License-Identifier: ISC */
/*
 * Unique ids that rise with time, without coordination between processes.
 *
 *	bit 63: 0 | 41 bits: ms since 2024-01-01 | 12 bits: count | 10 bits: machine
 *
 * The machine part must differ between processes that write into one store. Within a process ids
 * rise over all threads, also when the clock is set back. More than 4,096 ids in one millisecond
 * take from the next. Lasts until 2093.
 */
#ifndef FW_BASE_IDS_H
#define FW_BASE_IDS_H

#include <stdatomic.h>

#include "feedwheel/types.h"

#define FW_IDS_MACHINES 1024
#define FW_IDS_EPOCH_MS INT64_C(1704067200000)

struct fw_ids {
	_Atomic int64_t last; /* time and count of the last id */
	int64_t machine;
};

/* machine: 0 to FW_IDS_MACHINES - 1 */
void fw_ids_init(struct fw_ids *ids, int64_t machine);
/*
 * Take n ids; returns the first, the others follow at steps of FW_IDS_MACHINES. now_ms: Unix time.
 * Any thread.
 */
int64_t fw_ids_take(struct fw_ids *ids, int64_t n, int64_t now_ms);
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
