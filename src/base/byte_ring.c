/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#include "base/byte_ring.h"

#define HEADER 8
#define ALIGN 8
#define FILLER UINT64_MAX /* instead of a length: the next record is at the start of the memory */

static size_t record_span(size_t len)
{
	return HEADER + ((len + ALIGN - 1) & ~(size_t)(ALIGN - 1));
}

static uint64_t record_header_get(const struct fw_byte_ring *r, size_t at)
{
	uint64_t v;

	memcpy(&v, r->mem + (at & r->mask), sizeof(v));
	return v;
}

static void record_header_set(struct fw_byte_ring *r, size_t at, uint64_t v)
{
	memcpy(r->mem + (at & r->mask), &v, sizeof(v));
}

int fw_byte_ring_init(struct fw_byte_ring *r, size_t bytes)
{
	size_t n = 4096;
	void *mem;

	*r = (struct fw_byte_ring){0};
	if (bytes < n)
		return FW_EINVAL;
	while (n <= bytes / 2)
		n *= 2;
	mem = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return FW_ENOMEM;
	memset(mem, 0, n); /* touch the pages now, not in the first burst */
	r->mem = mem;
	r->mask = n - 1;
	return 0;
}

void fw_byte_ring_finish(struct fw_byte_ring *r)
{
	if (r->mem)
		munmap(r->mem, r->mask + 1);
	r->mem = NULL;
}

/* ---- producer -------------------------------------------------------------------------------- */

/* Indices grow and wrap around; only their differences count. */
static bool byte_ring_has_room(struct fw_byte_ring *r, size_t n)
{
	if (n <= r->mask + 1 - (r->draft - r->head_seen))
		return true;
	r->head_seen = atomic_load_explicit(&r->head, memory_order_acquire);
	return n <= r->mask + 1 - (r->draft - r->head_seen);
}

void *fw_byte_ring_draft(struct fw_byte_ring *r, size_t len)
{
	size_t n = record_span(len), to_end = r->mask + 1 - (r->draft & r->mask);
	void *at;

	assert(len <= r->mask && n <= (r->mask + 1) / 2);
	if (n > to_end) {
		if (!byte_ring_has_room(r, to_end + n))
			return NULL;
		record_header_set(r, r->draft, FILLER);
		r->draft += to_end;
	} else if (!byte_ring_has_room(r, n)) {
		return NULL;
	}
	record_header_set(r, r->draft, len);
	at = r->mem + (r->draft & r->mask) + HEADER;
	r->draft += n;
	return at;
}

void fw_byte_ring_publish(struct fw_byte_ring *r)
{
	assert(r->draft - r->head_seen <= r->mask + 1);
	atomic_store_explicit(&r->tail, r->draft, memory_order_release);
}

void fw_byte_ring_drop(struct fw_byte_ring *r)
{
	r->draft = atomic_load_explicit(&r->tail, memory_order_relaxed);
}

/* ---- consumer -------------------------------------------------------------------------------- */

/* Find the next record; false: there is none. */
static bool byte_ring_find(struct fw_byte_ring *r, size_t *at, size_t *len)
{
	if (r->next == r->tail_seen) {
		r->tail_seen = atomic_load_explicit(&r->tail, memory_order_acquire);
		if (r->next == r->tail_seen)
			return false;
	}
	*at = r->next;
	/* filler is always published together with the record behind it */
	if (record_header_get(r, *at) == FILLER)
		*at += r->mask + 1 - (*at & r->mask);
	*len = (size_t)record_header_get(r, *at);
	return true;
}

void *fw_byte_ring_peek(struct fw_byte_ring *r, size_t *len)
{
	size_t at;

	return byte_ring_find(r, &at, len) ? r->mem + (at & r->mask) + HEADER : NULL;
}

void *fw_byte_ring_next(struct fw_byte_ring *r, size_t *len)
{
	size_t at;

	if (!byte_ring_find(r, &at, len))
		return NULL;
	r->next = at + record_span(*len);
	return r->mem + (at & r->mask) + HEADER;
}

void fw_byte_ring_release(struct fw_byte_ring *r)
{
	assert(r->tail_seen - r->next <= r->mask + 1);
	atomic_store_explicit(&r->head, r->next, memory_order_release);
}

size_t fw_byte_ring_fill(const struct fw_byte_ring *r)
{
	size_t head = atomic_load_explicit(&r->head, memory_order_acquire);
	size_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);

	return tail - head > r->mask + 1 ? 0 : tail - head;
}
