/* SPDX-License-Identifier: ISC */
/*
 * A bounded ring of records of any length between exactly one producer thread and one consumer thread.
 *
 * Its memory is fixed and touched at init; no lock, no allocation, no system call afterwards. Records lie in one piece, each behind
 * a header of 8 bytes, on addresses divisible by 8; one that would cross the end begins at the start again, behind filler.
 *
 * The producer drafts records and publishes them together: the consumer sees all of them or none. The consumer reads ahead as far as
 * it likes and releases what it has read when it is done with it: until then the records stay where they are, and their room is
 * not given to the producer. What it read and did not release it can read again (rewind).
 *
 * publish writes tail with release, next reads it with acquire; release and draft pass head back the same way. Each side's
 * members lie on a cache line of their own, and each keeps a copy of the other's index, so that a record touches the other's line
 * only when the copy says that the ring is full or empty.
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
	_Alignas(FW_CACHE_LINE) _Atomic size_t tail; /* producer: what is published ends here */
	size_t draft;                                /* ... and what is drafted, here */
	size_t head_seen;
	_Alignas(FW_CACHE_LINE) _Atomic size_t head; /* consumer: what it has not released begins here */
	size_t next;                                 /* ... and what it has not read, here */
	size_t tail_seen;
};

/*
 * bytes is rounded down to a power of two, at least 4096. The memory is the ring's own, zeroed and touched.
 * Errors: FW_ENOMEM; FW_EINVAL bytes < 4096.
 */
FW_MUST_CHECK int fw_byte_ring_init(struct fw_byte_ring *r, size_t bytes);
void fw_byte_ring_finish(struct fw_byte_ring *r);

/* Producer. Room for one more record of len bytes, to be filled before publish; NULL: full. len + 8 is at most half of the ring. */
void *fw_byte_ring_draft(struct fw_byte_ring *r, size_t len);
void fw_byte_ring_publish(struct fw_byte_ring *r); /* all that is drafted */
void fw_byte_ring_forget(struct fw_byte_ring *r);  /* all that is drafted: it was never there */

/* Consumer. The next record, or NULL: nothing more is published. It stays until released. */
void *fw_byte_ring_next(struct fw_byte_ring *r, size_t *len);
void *fw_byte_ring_peek(struct fw_byte_ring *r, size_t *len); /* the same, which is not read by that: it is next again, and not released */
void fw_byte_ring_release(struct fw_byte_ring *r); /* all that was read */
void fw_byte_ring_rewind(struct fw_byte_ring *r);  /* what was read and not released is next again */

/* Any thread; a snapshot. Bytes in use, headers and filler included. */
size_t fw_byte_ring_fill(const struct fw_byte_ring *r);
static inline size_t fw_byte_ring_bytes(const struct fw_byte_ring *r)
{
	return r->mask + 1;
}

#endif
