/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

#define BLOCK_MIN ((size_t)4096)
#define BLOCK_MAX ((size_t)256 * 1024)

struct fw_arena_block {
	struct fw_arena_block *next;
	size_t size; /* of the whole block, this header included */
	_Alignas(16) char data[];
};

static struct fw_arena_block *block_new(struct fw_arena *a, size_t size)
{
	struct fw_arena_block *b;

	if (a->max_bytes && (size > a->max_bytes || a->used_bytes > a->max_bytes - size)) {
		a->full = true;
		return NULL;
	}
	b = a->alloc ? a->alloc(size, a->ctx) : malloc(size);
	if (!b)
		return NULL;
	b->size = size;
	a->used_bytes += size;
	return b;
}

static void block_free(struct fw_arena *a, struct fw_arena_block *b)
{
	assert(a->used_bytes >= b->size);
	a->used_bytes -= b->size;
	if (a->free)
		a->free(b, a->ctx);
	else
		free(b);
}

void fw_arena_init(struct fw_arena *a, size_t max_bytes)
{
	*a = (struct fw_arena){.max_bytes = max_bytes};
}

void *fw_arena_alloc_slow(struct fw_arena *a, size_t n)
{
	size_t head = sizeof(struct fw_arena_block), want, size;
	struct fw_arena_block *b;

	if (n > SIZE_MAX / 2)
		goto fail;
	want = (n + 15) & ~(size_t)15;
	if (want == 0)
		want = 16;
	if (want <= (size_t)(a->end - a->at)) {
		void *p = a->at;

		a->at += want;
		return p;
	}
	/* blocks of a sixteenth of all memory: few blocks, little waste in the last */
	size = a->used_bytes / 16 < BLOCK_MIN ? BLOCK_MIN : a->used_bytes / 16;
	size = size > BLOCK_MAX ? BLOCK_MAX : size;
	if (want + head > size / 4 && a->head) {
		/* a large allocation gets its own block, behind the current one */
		b = block_new(a, want + head);
		if (!b)
			goto fail;
		b->next = a->head->next;
		a->head->next = b;
		return b->data;
	}
	if (size < want + head)
		size = want + head;
	b = block_new(a, size);
	if (!b && size > want + head)
		b = block_new(a, want + head);
	if (!b)
		goto fail;
	b->next = a->head;
	a->head = b;
	a->at = b->data + want;
	a->end = (char *)b + b->size;
	return b->data;
fail:
	a->failed = true;
	return NULL;
}

void fw_arena_reset(struct fw_arena *a, size_t keep_bytes)
{
	struct fw_arena_block *keep = NULL;

	for (struct fw_arena_block *b = a->head, *next; b; b = next) {
		next = b->next;
		if (b->size <= keep_bytes && (!keep || b->size > keep->size)) {
			if (keep)
				block_free(a, keep);
			keep = b;
		} else {
			block_free(a, b);
		}
	}
	a->head = keep;
	a->at = a->end = NULL;
	if (keep) {
		keep->next = NULL;
		a->at = keep->data;
		a->end = (char *)keep + keep->size;
	}
	a->failed = a->full = false;
}

void fw_arena_finish(struct fw_arena *a)
{
	fw_arena_reset(a, 0);
}

void *fw_arena_zalloc(struct fw_arena *a, size_t n)
{
	void *p = fw_arena_alloc(a, n);

	if (p)
		memset(p, 0, n);
	return p;
}

void *fw_arena_mul(struct fw_arena *a, size_t n, size_t size, size_t more)
{
	return fw_arena_alloc(a, fw_size(n, size, more));
}

void *fw_arena_calloc(struct fw_arena *a, size_t n, size_t size)
{
	void *p = fw_arena_mul(a, n, size, 0);

	if (p)
		memset(p, 0, n * size);
	return p;
}

char *fw_arena_dup(struct fw_arena *a, const void *p, size_t n)
{
	char *d = n < SIZE_MAX ? fw_arena_alloc(a, n + 1) : NULL;

	if (!d)
		return NULL;
	if (n)
		memcpy(d, p, n);
	d[n] = '\0';
	return d;
}

struct fw_str fw_arena_str(struct fw_arena *a, struct fw_str s)
{
	const char *p = s.p ? fw_arena_dup(a, s.p, s.len) : NULL;

	return (struct fw_str){p, p ? s.len : 0};
}

char *fw_arena_printf(struct fw_arena *a, const char *fmt, ...)
{
	va_list ap;
	char *p;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return NULL;
	p = fw_arena_alloc(a, (size_t)n + 1);
	if (!p)
		return NULL;
	va_start(ap, fmt);
	vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return p;
}

void *fw_arena_grow(struct fw_arena *a, void *p, size_t old_n, size_t new_n)
{
	size_t old_m = (old_n + 15) & ~(size_t)15;
	void *q;

	if (p && old_m && (char *)p + old_m == a->at && new_n >= old_n) {
		size_t new_m = (new_n + 15) & ~(size_t)15;

		if (new_m >= new_n && new_m - old_m <= (size_t)(a->end - a->at)) {
			a->at += new_m - old_m;
			return p;
		}
	}
	q = fw_arena_alloc(a, new_n);
	if (q && p && old_n)
		memcpy(q, p, old_n < new_n ? old_n : new_n);
	return q;
}

void fw_arena_trim(struct fw_arena *a, void *p, size_t old_n, size_t new_n)
{
	size_t old_m = (old_n + 15) & ~(size_t)15, new_m = (new_n + 15) & ~(size_t)15;
	struct fw_arena_block *b = a->head ? a->head->next : NULL;

	if (!p || !old_m || new_m > old_m)
		return;
	if ((char *)p + old_m == a->at) {
		a->at = (char *)p + new_m;
		return;
	}
	if (!b || p != b->data || (char *)p + old_m != (char *)b + b->size)
		return;
	/* a block of its own: free it, or make it current if it has more free space */
	if (!new_m) {
		a->head->next = b->next;
		block_free(a, b);
	} else if (old_m - new_m > (size_t)(a->end - a->at)) {
		a->head->next = b->next;
		b->next = a->head;
		a->head = b;
		a->at = (char *)p + new_m;
		a->end = (char *)b + b->size;
	}
}
