/* SPDX-License-Identifier: ISC */
/*
 * A bounded ring of pointers between exactly one producer thread and one consumer thread, in order.
 *
 * A power of two of slots; no lock, and no allocation after init. Head and tail have cache lines of
 * their own, and each side keeps a copy of the other's index, so an uncontended put or take touches
 * one shared line. put publishes with release order, take reads with acquire order: the consumer
 * sees all that the producer wrote into *item before put.
 */
#ifndef FW_BASE_RING_H
#define FW_BASE_RING_H

#include <stdatomic.h>

#include "feedwheel/types.h"

#define FW_CACHE_LINE 64

struct fw_ring {
	void **slot;
	size_t mask;                                 /* slots - 1 */
	_Alignas(FW_CACHE_LINE) _Atomic size_t tail; /* producer writes */
	size_t head_seen;                            /* producer's copy of head */
	_Alignas(FW_CACHE_LINE) _Atomic size_t head; /* consumer writes */
	size_t tail_seen;                            /* consumer's copy of tail */
};

/* cap is rounded up to a power of two, at least 2. Errors: FW_ENOMEM. */
FW_MUST_CHECK int fw_ring_init(struct fw_ring *r, size_t cap);
/* items still in it are not freed; they belong to the caller */
void fw_ring_finish(struct fw_ring *r);
FW_MUST_CHECK bool fw_ring_put(struct fw_ring *r, void *item); /* producer; false: full */
void *fw_ring_take(struct fw_ring *r);                         /* consumer; NULL: empty */
size_t fw_ring_fill(const struct fw_ring *r);                  /* any thread; a snapshot */
static inline size_t fw_ring_cap(const struct fw_ring *r)
{
	return r->mask + 1;
}

#endif
