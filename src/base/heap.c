/* SPDX-License-Identifier: ISC */
/* Fredman, Sedgewick, Sleator and Tarjan, "The pairing heap" (1986); two passes. */
#include <assert.h>

#include "base/heap.h"

void fw_heap_init(struct fw_heap *h, fw_heap_before *before)
{
	h->first = NULL;
	h->before = before;
}

/* Link two trees without siblings into one. */
static struct fw_heap_node *heap_link(const struct fw_heap *h, struct fw_heap_node *a, struct fw_heap_node *b)
{
	struct fw_heap_node *up = h->before(b, a) ? b : a, *down = up == a ? b : a;

	assert(a != b);
	down->prev = up;
	down->next = up->child;
	if (up->child)
		up->child->prev = down;
	up->child = down;
	up->next = up->prev = NULL;
	return up;
}

/* Link a list of siblings into one tree: in pairs from the left, then the pairs from the right. */
static struct fw_heap_node *heap_link_siblings(const struct fw_heap *h, struct fw_heap_node *n)
{
	struct fw_heap_node *pairs = NULL, *whole = NULL;

	while (n) {
		struct fw_heap_node *a = n, *b = n->next;

		n = b ? b->next : NULL;
		a->next = a->prev = NULL;
		if (b) {
			b->next = b->prev = NULL;
			a = heap_link(h, a, b);
		}
		a->next = pairs;
		pairs = a;
	}
	while (pairs) {
		struct fw_heap_node *a = pairs;

		pairs = a->next;
		a->next = NULL;
		whole = whole ? heap_link(h, whole, a) : a;
	}
	return whole;
}

void fw_heap_put(struct fw_heap *h, struct fw_heap_node *n)
{
	*n = (struct fw_heap_node){0};
	h->first = h->first ? heap_link(h, h->first, n) : n;
}

struct fw_heap_node *fw_heap_take(struct fw_heap *h)
{
	struct fw_heap_node *n = h->first;

	if (n)
		h->first = heap_link_siblings(h, n->child);
	return n;
}

void fw_heap_remove(struct fw_heap *h, struct fw_heap_node *n)
{
	struct fw_heap_node *below;

	assert(h->first);
	if (n == h->first) {
		fw_heap_take(h);
		return;
	}
	if (n->prev->child == n)
		n->prev->child = n->next;
	else
		n->prev->next = n->next;
	if (n->next)
		n->next->prev = n->prev;
	below = heap_link_siblings(h, n->child);
	if (below)
		h->first = heap_link(h, h->first, below);
}
