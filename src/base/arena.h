/* SPDX-License-Identifier: ISC */
/*
 * A region of memory that is given back at once: one visit, one arena.
 *
 * Blocks grow with the arena, up to 256 KiB; an allocation larger than a quarter of a block gets one of its own.
 * The arena has a ceiling in bytes; past it, or out of memory, allocation returns NULL and
 * arena->failed stays set, so that a parser may check once at the end.
 * Not thread-safe: one arena belongs to one thread at a time (it may be handed over).
 */
#ifndef FW_BASE_ARENA_H
#define FW_BASE_ARENA_H

#include "feedwheel/types.h"

struct fw_arena_block;

struct fw_arena {
	char *at, *end;              /* free part of the current block */
	struct fw_arena_block *head; /* newest first */
	size_t used_bytes;           /* handed to the system's allocator so far */
	size_t max_bytes;            /* ceiling for used_bytes; 0 = none */
	bool failed;                 /* an allocation was refused since the last reset */
	bool full;                   /* ... by max_bytes, not by the system */
	void *(*alloc)(size_t n, void *ctx); /* NULL: malloc */
	void (*free)(void *p, void *ctx);
	void *ctx;
};

void fw_arena_init(struct fw_arena *a, size_t max_bytes);
/* Empty it; keeps one block of at most keep_bytes for the next user (0: keeps none). */
void fw_arena_reset(struct fw_arena *a, size_t keep_bytes);
void fw_arena_finish(struct fw_arena *a);

void *fw_arena_slow(struct fw_arena *a, size_t n);

/* n bytes, aligned to 16, not zeroed; NULL past the ceiling. */
static inline void *fw_arena_alloc(struct fw_arena *a, size_t n)
{
	if (n - 1 < (size_t)(a->end - a->at)) { /* 0 bytes take the slow way: they get an address too */
		size_t m = (n + 15) & ~(size_t)15;
		void *p = a->at;

		if (m <= (size_t)(a->end - a->at)) {
			a->at += m;
			return p;
		}
	}
	return fw_arena_slow(a, n);
}

void *fw_arena_zalloc(struct fw_arena *a, size_t n);
/* n * size + more; SIZE_MAX, of which there is never enough memory, where that does not fit: for numbers from outside. */
static inline size_t fw_size(size_t n, size_t size, size_t more)
{
	size_t bytes;

	return __builtin_mul_overflow(n, size, &bytes) || __builtin_add_overflow(bytes, more, &bytes) ? SIZE_MAX : bytes;
}

/* fw_size() bytes, not zeroed; NULL past the ceiling. */
void *fw_arena_mul(struct fw_arena *a, size_t n, size_t size, size_t more);
/* n zeroed elements, counted as by fw_arena_mul(). */
void *fw_arena_calloc(struct fw_arena *a, size_t n, size_t size);
/* n bytes copied, plus a NUL behind them. */
char *fw_arena_dup(struct fw_arena *a, const void *p, size_t n);
struct fw_str fw_arena_str(struct fw_arena *a, struct fw_str s); /* absent out of memory */
FW_PRINTF(2, 3) char *fw_arena_printf(struct fw_arena *a, const char *fmt, ...);
/* Grow the newest allocation in place when it is the last one, else copy. old_n bytes are kept. */
void *fw_arena_grow(struct fw_arena *a, void *p, size_t old_n, size_t new_n);
/* Give the tail of p back when it is the newest allocation: old_n bytes were asked for, new_n are in use. 0: p is gone. */
void fw_arena_trim(struct fw_arena *a, void *p, size_t old_n, size_t new_n);

#endif
