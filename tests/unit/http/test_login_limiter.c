/* SPDX-License-Identifier: ISC */
/* Wrong tokens are counted by network, within a time, in a table that does not grow (API-07). */
#include <check.h>
#include <stdlib.h>

#include "base/str.h"
#include "http/auth/limiter.h"
#include "../../suite.h"

#define MAX 3
#define WITHIN 1000
#define NET 77

static struct auth_limiter *make(int64_t max)
{
	struct auth_limiter *g = auth_limiter_create(max, WITHIN);

	ck_assert_ptr_nonnull(g);
	return g;
}

START_TEST(counted)
{
	struct auth_limiter *g = make(MAX);

	for (int64_t at = 0; at < 3 * WITHIN; at += WITHIN) { /* counting starts again in each period */
		ck_assert(!auth_limiter_fail(g, NET, at));
		ck_assert(!auth_limiter_fail(g, NET, at + 1));
		ck_assert_int_eq(auth_limiter_wait_ms(g, NET, at + 2), 0);
		ck_assert(auth_limiter_fail(g, NET, at + 2));
		ck_assert_int_eq(auth_limiter_wait_ms(g, NET, at + 2), WITHIN - 2);
		/* reported once; a request that was already running does not renew it */
		ck_assert(!auth_limiter_fail(g, NET, at + 3));
		ck_assert_int_eq(auth_limiter_wait_ms(g, NET, at + WITHIN - 1), 1);
		ck_assert_int_eq(auth_limiter_wait_ms(g, NET, at + WITHIN), 0);
		ck_assert_int_eq(auth_limiter_wait_ms(g, NET + 1, at + 2), 0);
	}
	auth_limiter_destroy(g);
	auth_limiter_destroy(NULL);
}
END_TEST

START_TEST(rare_failures_are_never_refused)
{
	struct auth_limiter *g = make(MAX);

	for (int64_t i = 0; i < 100; i++) {
		ck_assert(!auth_limiter_fail(g, NET, i * WITHIN / 2));
		ck_assert_int_eq(auth_limiter_wait_ms(g, NET, i * WITHIN / 2), 0);
	}
	auth_limiter_destroy(g);
}
END_TEST

START_TEST(switched_off)
{
	struct auth_limiter *g = make(0);

	for (int i = 0; i < 1000; i++)
		ck_assert(!auth_limiter_fail(g, NET, 0));
	ck_assert_int_eq(auth_limiter_wait_ms(g, NET, 0), 0);
	auth_limiter_destroy(g);
}
END_TEST

START_TEST(first_is_the_last)
{
	struct auth_limiter *g = make(1);

	ck_assert(auth_limiter_fail(g, NET, 5));
	ck_assert_int_eq(auth_limiter_wait_ms(g, NET, 5), WITHIN);
	auth_limiter_destroy(g);
}
END_TEST

START_TEST(many_networks) /* networks that have reached the limit are not displaced by many others */
{
	struct auth_limiter *g = make(MAX);

	for (int i = 0; i < MAX; i++)
		(void)auth_limiter_fail(g, NET, 0);
	for (uint64_t n = 1000; n < 1000 + (uint64_t)16 * AUTH_LIMITER_SETS * AUTH_LIMITER_WAYS; n++)
		ck_assert(!auth_limiter_fail(g, n, 1));
	ck_assert_int_gt(auth_limiter_wait_ms(g, NET, 1), 0);
	/* after its time its slot is free */
	for (uint64_t n = 1000; n < 1000 + (uint64_t)16 * AUTH_LIMITER_SETS * AUTH_LIMITER_WAYS; n++)
		(void)auth_limiter_fail(g, n, WITHIN);
	for (int i = 0; i < MAX - 1; i++)
		ck_assert(!auth_limiter_fail(g, NET, WITHIN + 1));
	ck_assert(auth_limiter_fail(g, NET, WITHIN + 1));
	auth_limiter_destroy(g);
}
END_TEST

START_TEST(networks)
{
	static const struct {
		const char *a, *b;
		size_t len;
		bool same;
	} CASE[] = {
		{"\xc0\x00\x02\x01", "\xc0\x00\x02\xff", 4, true},
		{"\xc0\x00\x02\x01", "\xc0\x00\x03\x01", 4, false},
		{"\x20\x01\x0d\xb8\0\0\0\x01xxxxxxxx", "\x20\x01\x0d\xb8\0\0\0\x01yyyyyyyy", 16, true},
		{"\x20\x01\x0d\xb8\0\0\0\x01xxxxxxxx", "\x20\x01\x0d\xb8\0\0\0\x02xxxxxxxx", 16, false},
		{"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02", 16, true},
		{"\0\0\0\0", "\0\0\1\0", 4, false},
		{"", "", 0, true},
	};
	uint64_t all[FW_N(CASE)];

	for (size_t i = 0; i < FW_N(CASE); i++) {
		all[i] = auth_limiter_network((struct fw_str){CASE[i].a, CASE[i].len});
		ck_assert_uint_ne(all[i], 0);
		ck_assert_msg((all[i] == auth_limiter_network((struct fw_str){CASE[i].b, CASE[i].len})) == CASE[i].same,
			"%zu", i);
	}
	ck_assert_uint_ne(all[4], all[5]);
	ck_assert_uint_ne(all[4], all[6]);
	ck_assert_uint_ne(all[5], all[6]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit http login_limiter");
	TCase *t = tcase_create("login_limiter");
	const TTest *const every[] = {
		counted, rare_failures_are_never_refused, switched_off, first_is_the_last, many_networks, networks};

	tcase_set_timeout(t, 60);
	for (size_t i = 0; i < FW_N(every); i++)
		tcase_add_test(t, every[i]);
	suite_add_tcase(s, t);
	return run_suite(s);
}
