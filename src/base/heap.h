/* SPDX-License-Identifier: ISC */
/*
 * A pairing heap whose nodes are members of what it holds: no memory of its own, no bound. put and merging cost O(1), taking the
 * first and removing O(log n) on the average.
 */
#ifndef FW_BASE_HEAP_H
#define FW_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

struct fw_heap_node {
	struct fw_heap_node *child, *next; /* its first child, the next of its siblings */
	struct fw_heap_node *prev;         /* the sibling before it; of a first child: the parent */
};

/* Does a come before b? A strict order; the same as long as both are in the heap. */
typedef bool fw_heap_before(const struct fw_heap_node *a, const struct fw_heap_node *b);

struct fw_heap {
	struct fw_heap_node *first; /* NULL: empty */
	fw_heap_before *before;
};

/* clang-format off */
#define FW_HEAP_OF(node, type, member) ((type *)(void *)((char *)(node) - offsetof(type, member)))
#define FW_HEAP_OF_CONST(node, type, member) ((const type *)(const void *)((const char *)(node) - offsetof(type, member)))
/* clang-format on */

void fw_heap_init(struct fw_heap *h, fw_heap_before *before);
void fw_heap_put(struct fw_heap *h, struct fw_heap_node *n);
struct fw_heap_node *fw_heap_take(struct fw_heap *h); /* the first; NULL: empty */
void fw_heap_remove(struct fw_heap *h, struct fw_heap_node *n); /* one that is in it */

#endif
