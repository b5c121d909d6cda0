/* SPDX-License-Identifier: ISC */
/*
 * A pairing heap. Its nodes are members of the items, so it allocates nothing and has no limit.
 * Putting costs O(1); taking the first and removing cost O(log n) amortized.
 */
#ifndef FW_BASE_HEAP_H
#define FW_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

struct fw_heap_node {
	struct fw_heap_node *child, *next; /* first child; next sibling */
	struct fw_heap_node *prev;         /* previous sibling; of a first child: the parent */
};

/* Does a come before b? A strict order, unchanged while both are in the heap. */
typedef bool fw_heap_before(const struct fw_heap_node *a, const struct fw_heap_node *b);

struct fw_heap {
	struct fw_heap_node *first; /* NULL: empty */
	fw_heap_before *before;
};

/* clang-format off */
#define FW_HEAP_OF(node, type, member) ((type *)(void *)((char *)(node) - offsetof(type, member)))
#define FW_HEAP_OF_CONST(node, type, member) \
	((const type *)(const void *)((const char *)(node) - offsetof(type, member)))
/* clang-format on */

void fw_heap_init(struct fw_heap *h, fw_heap_before *before);
void fw_heap_put(struct fw_heap *h, struct fw_heap_node *n);
struct fw_heap_node *fw_heap_take(struct fw_heap *h);           /* remove and return the first; NULL: empty */
void fw_heap_remove(struct fw_heap *h, struct fw_heap_node *n); /* n must be in the heap */

#endif
