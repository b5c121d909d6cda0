/* SPDX-License-Identifier: ISC */
#include <stdlib.h>

#include "base/ring.h"

int fw_ring_init(struct fw_ring *r, size_t cap)
{
	size_t n = 2;

	while (n < cap && n < SIZE_MAX / (4 * sizeof(void *)))
		n *= 2;
	*r = (struct fw_ring){.mask = n - 1};
	r->slot = calloc(n, sizeof(*r->slot));
	return r->slot ? 0 : FW_ENOMEM;
}

void fw_ring_finish(struct fw_ring *r)
{
	free(r->slot);
	r->slot = NULL;
}

bool fw_ring_put(struct fw_ring *r, void *item)
{
	size_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	/* indices grow and wrap around: their difference is the fill */
	if (tail - r->head_seen > r->mask) {
		r->head_seen = atomic_load_explicit(&r->head, memory_order_acquire);
		if (tail - r->head_seen > r->mask)
			return false;
	}
	r->slot[tail & r->mask] = item;
	atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
	return true;
}

void *fw_ring_take(struct fw_ring *r)
{
	size_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
	void *item;

	if (head == r->tail_seen) {
		r->tail_seen = atomic_load_explicit(&r->tail, memory_order_acquire);
		if (head == r->tail_seen)
			return NULL;
	}
	item = r->slot[head & r->mask];
	atomic_store_explicit(&r->head, head + 1, memory_order_release);
	return item;
}

size_t fw_ring_fill(const struct fw_ring *r)
{
	size_t head = atomic_load_explicit(&r->head, memory_order_acquire);
	size_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);

	return tail - head > r->mask + 1 ? 0 : tail - head;
}
