/* SPDX-License-Identifier: ISC */
/*
 * Memory that runs out: while `counting`, the allocation with the number fail_at fails, alone or
 * with all_behind it. oom_link of tests/meson.build redirects the calls of a program and of our
 * library to this file.
 */
#ifndef FW_TEST_OOM_H
#define FW_TEST_OOM_H

#include <stdbool.h>
#include <stddef.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_reallocarray(void *p, size_t n, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
void __wrap_free(void *p);

static bool counting, all_behind;
static long at, fail_at; /* allocations so far; the one that fails, 0: none */
static long live;        /* blocks of the library that are not freed yet */

static bool refused(void)
{
	if (!counting)
		return false;
	at++;
	return fail_at && (all_behind ? at >= fail_at : at == fail_at);
}

static void *kept(void *p)
{
	live += counting && p;
	return p;
}

void *__wrap_malloc(size_t n)
{
	return refused() ? NULL : kept(__real_malloc(n));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return refused() ? NULL : kept(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t n)
{
	void *q = refused() ? NULL : __real_realloc(p, n);

	live += counting && q && !p;
	return q;
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	void *q = refused() ? NULL : __real_reallocarray(p, n, size);

	live += counting && q && !p;
	return q;
}

void __wrap_free(void *p)
{
	live -= counting && p;
	__real_free(p);
}

#endif
