/* SPDX-License-Identifier: ISC */
/*
 * A bounded ring of records of any length, between exactly one producer thread and one consumer
 * thread.
 *
 * Its memory is fixed and touched at init. After that there is no lock, no allocation and no system
 * call. Each record is contiguous, behind a header of 8 bytes, at an address divisible by 8. A
 * record that would cross the end starts at the beginning again; filler marks the gap.
 *
 * The producer drafts records and publishes them together: the consumer sees all of them or none.
 * The consumer may read ahead and releases records when it is done with them. Until then they stay
 * in place, and the producer cannot reuse their room.
 *
 * publish stores tail with release order, and next loads it with acquire order; release and draft
 * do the same with head. Each side's members have a cache line of their own, with a copy of the
 * other side's index. So the other side's line is touched only when the copy shows a full or an
 * empty ring.
 */
#ifndef FW_BASE_BYTE_RING_H
#define FW_BASE_BYTE_RING_H

#include <stdatomic.h>

#include "feedwheel/types.h"

#ifndef FW_CACHE_LINE
#define FW_CACHE_LINE 64
#endif

struct fw_byte_ring {
	unsigned char *mem;
	size_t mask;                                 /* bytes - 1 */
	_Alignas(FW_CACHE_LINE) _Atomic size_t tail; /* producer: end of the published records */
	size_t draft;                                /* producer: end of the drafted records */
	size_t head_seen;
	_Alignas(FW_CACHE_LINE) _Atomic size_t head; /* consumer: start of the unreleased records */
	size_t next;                                 /* consumer: start of the unread records */
	size_t tail_seen;
};

/*
 * bytes is rounded down to a power of two. The memory belongs to the ring, zeroed and touched.
 * Errors: FW_ENOMEM; FW_EINVAL: bytes < 4096.
 */
FW_MUST_CHECK int fw_byte_ring_init(struct fw_byte_ring *r, size_t bytes);
void fw_byte_ring_finish(struct fw_byte_ring *r);

/*
 * Producer. Room for one more record of len bytes, to fill in before publish; NULL: the ring is
 * full. len + 8 is at most half of the ring.
 */
void *fw_byte_ring_draft(struct fw_byte_ring *r, size_t len);
void fw_byte_ring_publish(struct fw_byte_ring *r); /* publish all drafted records */
void fw_byte_ring_drop(struct fw_byte_ring *r);    /* drop all drafted records */

/* Consumer. The next record, which stays until released; NULL: nothing more is published. */
void *fw_byte_ring_next(struct fw_byte_ring *r, size_t *len);
/* the same, but the record stays unread */
void *fw_byte_ring_peek(struct fw_byte_ring *r, size_t *len);
void fw_byte_ring_release(struct fw_byte_ring *r); /* release all read records */

/* Bytes in use, headers and filler included; a snapshot. Any thread. */
size_t fw_byte_ring_fill(const struct fw_byte_ring *r);
static inline size_t fw_byte_ring_bytes(const struct fw_byte_ring *r)
{
	return r->mask + 1;
}

#endif
