/* SPDX-License-Identifier: ISC */
/*
 * A bounded ring of pointers between exactly one producer thread and one consumer thread.
 *
 * Power of two slots, no lock, no allocation after init. Head and tail live on cache lines of their own and
 * each side keeps a copy of the other's index, so an uncontended put or take touches one shared line.
 * Order is kept. put publishes with release, take reads with acquire: what the producer wrote into *item
 * before put is seen by the consumer after take.
 */
#ifndef FW_BASE_RING_H
#define FW_BASE_RING_H

#include <stdatomic.h>

#include "feedwheel/types.h"

#define FW_CACHE_LINE 64

struct fw_ring {
	void **slot;
	size_t mask; /* slots - 1 */
	_Alignas(FW_CACHE_LINE) _Atomic size_t tail; /* producer writes */
	size_t head_seen;                            /* producer's copy of head */
	_Alignas(FW_CACHE_LINE) _Atomic size_t head; /* consumer writes */
	size_t tail_seen;                            /* consumer's copy of tail */
};

/* cap is rounded up to a power of two, at least 2. Errors: FW_ENOMEM. */
FW_MUST_CHECK int fw_ring_init(struct fw_ring *r, size_t cap);
void fw_ring_finish(struct fw_ring *r); /* items still inside are not freed: they are the caller's */
FW_MUST_CHECK bool fw_ring_put(struct fw_ring *r, void *item); /* producer; false: full */
void *fw_ring_take(struct fw_ring *r);                         /* consumer; NULL: empty */
size_t fw_ring_fill(const struct fw_ring *r);                  /* any thread; a snapshot */
static inline size_t fw_ring_cap(const struct fw_ring *r)
{
	return r->mask + 1;
}

#endif
