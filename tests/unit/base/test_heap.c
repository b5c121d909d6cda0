/* SPDX-License-Identifier: ISC */
/* The heap, compared with a sorted array over random operations. */
#include <check.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/heap.h"
#include "base/str.h"
#include "../../suite.h"

#define N 300

struct thing {
	struct fw_heap_node node;
	int key;
	bool in;
};

static struct thing *thing_of(struct fw_heap_node *n)
{
	return FW_HEAP_OF(n, struct thing, node);
}

static bool before(const struct fw_heap_node *a, const struct fw_heap_node *b)
{
	return ((const struct thing *)(const void *)a)->key <
		((const struct thing *)(const void *)b)->key; /* node is the first member */
}

static const struct thing *least(const struct thing *t)
{
	const struct thing *best = NULL;

	for (int i = 0; i < N; i++) {
		if (t[i].in && (!best || t[i].key < best->key))
			best = &t[i];
	}
	return best;
}

static uint32_t next(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

START_TEST(as_sorted)
{
	static struct thing t[N];
	uint32_t seed = (uint32_t)_i + 1;
	struct fw_heap h;

	fw_heap_init(&h, before);
	ck_assert_ptr_null(fw_heap_take(&h));
	for (int i = 0; i < N; i++)
		t[i] = (struct thing){.key = i};
	for (int step = 0; step < 20000; step++) {
		struct thing *x = &t[next(&seed) % N];

		if (!x->in) {
			x->key = (int)(next(&seed) % 1000) * N + (int)(x - t); /* all keys differ */
			fw_heap_put(&h, &x->node);
			x->in = true;
		} else if (next(&seed) % 2) {
			fw_heap_remove(&h, &x->node);
			x->in = false;
		} else {
			const struct thing *want = least(t);

			x = thing_of(fw_heap_take(&h));
			ck_assert_ptr_eq(x, want);
			x->in = false;
		}
		ck_assert_ptr_eq(h.first, least(t) ? &least(t)->node : NULL);
	}
	for (const struct thing *want; (want = least(t)) != NULL;) {
		struct thing *x = thing_of(fw_heap_take(&h));

		ck_assert_ptr_eq(x, want);
		x->in = false;
	}
	ck_assert_ptr_null(h.first);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("heap");
	Suite *s = suite_create("unit base heap");

	tcase_add_loop_test(tc, as_sorted, 0, 8);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
