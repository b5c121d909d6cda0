/* SPDX-License-Identifier: ISC */
/*
 * An arena: memory that is freed all at once. One visit uses one arena.
 *
 * Blocks grow with the arena, up to 256 KiB. An allocation of more than a quarter of a block gets
 * its own block. The arena has a limit in bytes. Past it, or out of memory, allocation returns NULL
 * and arena->failed stays set, so a parser may check once at the end. Not thread-safe: one arena
 * belongs to one thread at a time, and may be handed over.
 */
#ifndef FW_BASE_ARENA_H
#define FW_BASE_ARENA_H

#include "feedwheel/types.h"

struct fw_arena_block;

struct fw_arena {
	char *at, *end;                      /* free part of the current block */
	struct fw_arena_block *head;         /* newest first */
	size_t used_bytes;                   /* got from the system's allocator so far */
	size_t max_bytes;                    /* limit of used_bytes; 0: none */
	bool failed;                         /* an allocation has failed since the last reset */
	bool full;                           /* it failed by max_bytes, not by the system */
	void *(*alloc)(size_t n, void *ctx); /* NULL: malloc */
	void (*free)(void *p, void *ctx);
	void *ctx;
};

void fw_arena_init(struct fw_arena *a, size_t max_bytes);
/* Free everything, but keep one block of at most keep_bytes for the next use (0: none). */
void fw_arena_reset(struct fw_arena *a, size_t keep_bytes);
void fw_arena_finish(struct fw_arena *a);

void *fw_arena_alloc_slow(struct fw_arena *a, size_t n);

/* n bytes, aligned to 16, not zeroed; NULL: limit or memory exceeded. */
static inline void *fw_arena_alloc(struct fw_arena *a, size_t n)
{
	/* 0 bytes take the slow path, which returns an address too */
	if (n - 1 < (size_t)(a->end - a->at)) {
		size_t m = (n + 15) & ~(size_t)15;
		void *p = a->at;

		if (m <= (size_t)(a->end - a->at)) {
			a->at += m;
			return p;
		}
	}
	return fw_arena_alloc_slow(a, n);
}

void *fw_arena_zalloc(struct fw_arena *a, size_t n);
/*
 * n * size + more, for numbers from outside. On overflow SIZE_MAX, which no allocation can satisfy.
 */
static inline size_t fw_size(size_t n, size_t size, size_t more)
{
	size_t bytes;

	return __builtin_mul_overflow(n, size, &bytes) || __builtin_add_overflow(bytes, more, &bytes) ? SIZE_MAX :
													bytes;
}

/* fw_size() bytes, not zeroed; NULL: limit or memory exceeded. */
void *fw_arena_mul(struct fw_arena *a, size_t n, size_t size, size_t more);
/* n zeroed elements, with the checks of fw_arena_mul(). */
void *fw_arena_calloc(struct fw_arena *a, size_t n, size_t size);
/* A copy of n bytes, with a NUL appended. */
char *fw_arena_dup(struct fw_arena *a, const void *p, size_t n);
/* out of memory: absent (p NULL) */
struct fw_str fw_arena_str(struct fw_arena *a, struct fw_str s);
FW_PRINTF(2, 3) char *fw_arena_printf(struct fw_arena *a, const char *fmt, ...);
/*
 * Resize an allocation: in place if it is the newest and fits, else by copying. old_n bytes are
 * kept.
 */
void *fw_arena_grow(struct fw_arena *a, void *p, size_t old_n, size_t new_n);
/*
 * Give back the unused tail of p, if p is the newest allocation: it had old_n bytes and needs
 * new_n. 0: p is freed.
 */
void fw_arena_trim(struct fw_arena *a, void *p, size_t old_n, size_t new_n);

#endif
