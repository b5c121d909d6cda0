/* SPDX-License-Identifier: ISC */
/*
 * Counts all memory from malloc: heap_link of meson.build redirects the calls of a program and of
 * our library to this file. Blocks count with the C library's rounding. Blocks that another library
 * allocated and we free are subtracted too: a few bytes.
 */
#ifndef FW_TEST_HEAP_H
#define FW_TEST_HEAP_H

#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>

static struct {
	bool on;
	ptrdiff_t live, peak;
} heap;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);

static void *heap_counted(void *p)
{
	if (heap.on && p) {
		heap.live += (ptrdiff_t)malloc_usable_size(p);
		heap.peak = heap.live > heap.peak ? heap.live : heap.peak;
	}
	return p;
}

static void heap_uncounted(void *p)
{
	if (heap.on && p)
		heap.live -= (ptrdiff_t)malloc_usable_size(p);
}

void *__wrap_malloc(size_t n)
{
	return heap_counted(__real_malloc(n));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return heap_counted(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t n)
{
	heap_uncounted(p);
	return heap_counted(__real_realloc(p, n));
}

void __wrap_free(void *p)
{
	heap_uncounted(p);
	__real_free(p);
}

/* Starts at zero. */
static inline void heap_begin(void)
{
	heap.live = heap.peak = 0;
	heap.on = true;
}

/* The most that was in use at once. */
static inline size_t heap_end(void)
{
	heap.on = false;
	return (size_t)heap.peak;
}

#endif
