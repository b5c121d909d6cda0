/* SPDX-License-Identifier: ISC */
/*
 * The rings between two threads: nothing is lost or doubled, the order is kept, and what was
 * written before a put is visible after the take.
 */
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/byte_ring.h"
#include "base/ring.h"
#include "base/str.h"
#include "../../suite.h"

#define ITEMS 100000

struct item {
	size_t number;
	size_t twice; /* plain memory: only the ring's ordering makes it safe to read */
};

struct pair {
	struct fw_ring ring;
	struct item *item;
	size_t full; /* how often the producer met a full ring */
};

static void *produce(void *arg)
{
	struct pair *p = arg;

	for (size_t i = 0; i < ITEMS; i++) {
		p->item[i].number = i;
		p->item[i].twice = 2 * i;
		while (!fw_ring_put(&p->ring, &p->item[i])) {
			p->full++;
			sched_yield();
		}
	}
	return NULL;
}

static void run_pair(size_t cap)
{
	struct pair p = {.item = calloc(ITEMS, sizeof(*p.item))};
	pthread_t producer;

	ck_assert_ptr_nonnull(p.item);
	ck_assert_int_eq(fw_ring_init(&p.ring, cap), 0);
	ck_assert_int_eq(pthread_create(&producer, NULL, produce, &p), 0);
	for (size_t i = 0; i < ITEMS; i++) {
		struct item *it;

		while ((it = fw_ring_take(&p.ring)) == NULL)
			sched_yield();
		ck_assert_uint_eq(it->number, i);
		ck_assert_uint_eq(it->twice, 2 * i);
		ck_assert_uint_le(fw_ring_fill(&p.ring), fw_ring_cap(&p.ring));
	}
	pthread_join(producer, NULL);
	ck_assert_ptr_null(fw_ring_take(&p.ring));
	fw_ring_finish(&p.ring);
	free(p.item);
}

START_TEST(two_threads)
{
	static const size_t CAPS[] = {2, 4, 64, 4096};

	run_pair(CAPS[_i]);
}
END_TEST

/*
 * Every interleaving of puts and takes of up to 12 steps on a ring of two, against a counter as the
 * model.
 */
START_TEST(exhaustive_small)
{
	for (unsigned plan = 0; plan < 1u << 12; plan++) {
		struct fw_ring r;
		static int items[16];
		size_t in = 0, out = 0;

		ck_assert_int_eq(fw_ring_init(&r, 2), 0);
		atomic_store(&r.head, SIZE_MAX - 2); /* the indices wrap on the way */
		atomic_store(&r.tail, SIZE_MAX - 2);
		r.head_seen = r.tail_seen = SIZE_MAX - 2;
		for (int step = 0; step < 12; step++) {
			if (plan >> step & 1) {
				bool room = in - out < 2;

				ck_assert_int_eq(fw_ring_put(&r, &items[in]), room);
				in += room;
			} else {
				void *want = in > out ? &items[out] : NULL;

				ck_assert_ptr_eq(fw_ring_take(&r), want);
				out += want != NULL;
			}
			ck_assert_uint_eq(fw_ring_fill(&r), in - out);
		}
		fw_ring_finish(&r);
	}
}
END_TEST

/* ---- records --------------------------------------------------------------------------------- */

#define RECORDS 20000
#define RECORD_MAX 200

/* The length of the i-th record follows from its number, and each of its bytes shows the number. */
static size_t record_len(size_t i)
{
	return i * 7 % RECORD_MAX;
}

static void *produce_records(void *arg)
{
	struct fw_byte_ring *r = arg;

	for (size_t i = 0; i < RECORDS;) {
		size_t n = FW_MIN(1 + i % 5, RECORDS - i), k;

		/* several at a time, all or none */
		for (k = 0; k < n; k++) {
			unsigned char *at = fw_byte_ring_draft(r, record_len(i + k));

			if (!at)
				break;
			memset(at, (int)(i + k) & 255, record_len(i + k));
		}
		if (k < n) {
			fw_byte_ring_drop(r);
			sched_yield();
			continue;
		}
		fw_byte_ring_publish(r);
		i += n;
	}
	return NULL;
}

START_TEST(two_threads_and_records)
{
	static const size_t BYTES[] = {4096, 65536};
	struct fw_byte_ring r;
	pthread_t producer;
	size_t i = 0;

	ck_assert_int_eq(fw_byte_ring_init(&r, BYTES[_i]), 0);
	ck_assert_int_eq(pthread_create(&producer, NULL, produce_records, &r), 0);
	while (i < RECORDS) {
		size_t len, first = i;
		const unsigned char *at;

		while ((at = fw_byte_ring_next(&r, &len))) {
			ck_assert_uint_eq(len, record_len(i));
			for (size_t k = 0; k < len; k++)
				ck_assert_uint_eq(at[k], i & 255);
			i++;
		}
		ck_assert_uint_le(fw_byte_ring_fill(&r), BYTES[_i]);
		fw_byte_ring_release(&r);
		if (i == first)
			sched_yield();
	}
	pthread_join(producer, NULL);
	ck_assert_uint_eq(fw_byte_ring_fill(&r), 0);
	fw_byte_ring_finish(&r);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit engine ring");
	TCase *t = tcase_create("ring");

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, two_threads, 0, 4);
	tcase_add_test(t, exhaustive_small);
	tcase_add_loop_test(t, two_threads_and_records, 0, 2);
	suite_add_tcase(s, t);
	return run_suite(s);
}
