/* SPDX-License-Identifier: ISC */
/*
 * Token buckets: a burst, and the same number again over a time, for each client; the table does
 * not grow.
 */
#include <check.h>
#include <stdlib.h>

#include "base/str.h"
#include "http/auth/bucket.h"
#include "../../suite.h"

#define MAX 4
#define WITHIN 1000 /* that is one every 250 ms */
#define WHO 77

static struct buckets *make(int64_t max)
{
	struct buckets *b = buckets_create(max, WITHIN);

	ck_assert_ptr_nonnull(b);
	return b;
}

START_TEST(so_many_at_once)
{
	struct buckets *b = make(MAX);

	for (int64_t at = 0; at <= 5 * WITHIN; at += 5 * WITHIN) {
		for (int i = 0; i < MAX; i++)
			ck_assert_int_eq(buckets_take(b, WHO, at), 0);
		ck_assert_int_eq(buckets_take(b, WHO, at), 250);
		/* a request that comes too early is not charged */
		ck_assert_int_eq(buckets_take(b, WHO, at + 100), 150);
		ck_assert_int_eq(buckets_take(b, WHO + 1, at + 100), 0);
		ck_assert_int_eq(buckets_take(b, WHO, at + 250), 0);
		ck_assert_int_eq(buckets_take(b, WHO, at + 250), 250);
		ck_assert_int_eq(buckets_take(b, WHO, at + 750), 0);
		ck_assert_int_eq(buckets_take(b, WHO, at + 750), 0);
		ck_assert_int_eq(buckets_take(b, WHO, at + 750), 250);
	}
	buckets_destroy(b);
	buckets_destroy(NULL);
}
END_TEST

START_TEST(as_many_over_a_time)
{
	struct buckets *b = make(MAX);
	int taken = 0;

	for (int64_t at = 0; at < 10 * WITHIN; at++)
		taken += buckets_take(b, WHO, at) == 0;
	ck_assert_int_eq(taken, MAX + MAX * 10 - 1); /* a full bucket, and what was refilled by then */
	buckets_destroy(b);
}
END_TEST

START_TEST(switched_off_or_fast)
{
	struct buckets *off = make(0), *fast = make(10 * INT64_C(1000) * WITHIN);

	for (int i = 0; i < 1000; i++) {
		ck_assert_int_eq(buckets_take(off, WHO, 0), 0);
		ck_assert_int_eq(buckets_take(fast, WHO, 0), 0);
	}
	buckets_destroy(off);
	buckets_destroy(fast);
}
END_TEST

/*
 * Thousands of clients that send one request each displace each other, not the one that sends too
 * much.
 */
START_TEST(largest_sender_keeps_its_slot)
{
	struct buckets *b = make(MAX);

	for (int i = 0; i < MAX; i++)
		ck_assert_int_eq(buckets_take(b, WHO, 0), 0);
	for (uint64_t who = 1000; who < 1000 + 10 * BUCKET_SETS * BUCKET_WAYS; who++)
		ck_assert_int_eq(buckets_take(b, who, 0), 0);
	ck_assert_int_eq(buckets_take(b, WHO, 0), 250);
	buckets_destroy(b);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit http bucket");
	TCase *t = tcase_create("bucket");
	const TTest *const every[] = {
		so_many_at_once, as_many_over_a_time, switched_off_or_fast, largest_sender_keeps_its_slot};

	for (size_t i = 0; i < FW_N(every); i++)
		tcase_add_test(t, every[i]);
	suite_add_tcase(s, t);
	return run_suite(s);
}
