/* SPDX-License-Identifier: ISC */
/* HTTP's hints as durations (POL-06, POL-07), and the expected duration of a visit. */
#include <check.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/str.h"
#include "sched/due.h"
#include "../../suite.h"

#define NOW INT64_C(784111777000) /* Sun, 06 Nov 1994 08:49:37 GMT */
#define NONE FW_NO_NUMBER

START_TEST(freshness) /* POL-06; RFC 9111 sections 4.2.1, 4.2.3, 1.2.2, 5.3 */
{
	static const struct {
		const char *cache_control, *age, *expires, *date;
		int64_t want;
	} T[] = {
		{NULL, NULL, NULL, NULL, NONE},
		{"max-age=3600", NULL, NULL, NULL, 3600000},
		{"public, Max-Age=3600, must-revalidate", NULL, NULL, NULL, 3600000},
		{"max-age=\"60\"", NULL, NULL, NULL, 60000},
		{"s-maxage=10, max-age=20", NULL, NULL, NULL, 20000},
		{"max-age=20, max-age=30", NULL, NULL, NULL, 20000},
		{"max-age=3600", "600", NULL, NULL, 3000000},
		{"max-age=3600", " 600 ", NULL, NULL, 3000000},
		{"max-age=60", "600", NULL, NULL, 0},
		{"max-age=60", "-5", NULL, NULL, 60000},
		{"max-age=60", "x", NULL, NULL, 60000},
		{"max-age=0", NULL, NULL, NULL, 0},
		{"max-age=-1", NULL, NULL, NULL, 0},
		{"max-age=x", NULL, NULL, NULL, 0},
		{"max-age", NULL, NULL, NULL, 0},
		{"max-age=", NULL, NULL, NULL, 0},
		{"max-age=1000000000000", NULL, NULL, NULL, INT64_C(2147483648000)},
		{"max-age=99999999999999999999999999", NULL, NULL, NULL, INT64_C(2147483648000)},
		{"no-cache, max-age=3600", NULL, NULL, NULL, NONE},
		{"max-age=3600, no-store", NULL, NULL, NULL, NONE},
		{"no-cache=\"set-cookie\", private", NULL, NULL, NULL, NONE},
		{"private", NULL, NULL, NULL, NONE},
		{"", NULL, NULL, NULL, NONE},
		{",,,=,=;", NULL, NULL, NULL, NONE},
		{NULL, NULL, "Sun, 06 Nov 1994 09:49:37 GMT", NULL, 3600000},
		{NULL, NULL, "Sun, 06 Nov 1994 09:49:37 GMT", "Sun, 06 Nov 1994 09:19:37 GMT", 1800000},
		{NULL, "60", "Sun, 06 Nov 1994 09:49:37 GMT", "Sun, 06 Nov 1994 09:19:37 GMT", 1740000},
		{NULL, NULL, "Sun, 06 Nov 1994 09:49:37 GMT", "rubbish", 3600000},
		{NULL, NULL, "Sunday, 06-Nov-94 09:49:37 GMT", NULL, 3600000},
		{NULL, NULL, "Sun Nov  6 09:49:37 1994", NULL, 3600000},
		{NULL, NULL, "Sun, 06 Nov 1994 07:49:37 GMT", NULL, 0},
		{NULL, NULL, "0", NULL, 0},
		{NULL, NULL, "-1", NULL, 0},
		{NULL, NULL, "Fri, 31 Dec 9999 23:59:59 GMT", NULL, INT64_C(2147483648000)},
		{"max-age=60", NULL, "Sun, 06 Nov 1994 09:49:37 GMT", NULL, 60000},
		{"private", NULL, "Sun, 06 Nov 1994 09:49:37 GMT", NULL, 3600000},
		{"no-cache", NULL, "Sun, 06 Nov 1994 09:49:37 GMT", NULL, NONE},
	};

	for (size_t i = 0; i < FW_N(T); i++) {
		int64_t got = fw_fresh_ms(
			fw_str(T[i].cache_control), fw_str(T[i].age), fw_str(T[i].expires), fw_str(T[i].date), NOW);

		ck_assert_msg(got == T[i].want, "%zu: %s | %s | %s: %lld, want %lld", i,
			T[i].cache_control ? T[i].cache_control : "-", T[i].age ? T[i].age : "-",
			T[i].expires ? T[i].expires : "-", (long long)got, (long long)T[i].want);
	}
}
END_TEST

START_TEST(retry_after) /* POL-07; RFC 9110 section 10.2.3 */
{
	static const struct {
		const char *in;
		int64_t want;
	} T[] = {
		{NULL, NONE},
		{"", NONE},
		{"120", 120000},
		{" 120 ", 120000},
		{"0", 0},
		{"-5", NONE},
		{"1.5", NONE},
		{"soon", NONE},
		{"Sun, 06 Nov 1994 08:51:37 GMT", 120000},
		{"Sunday, 06-Nov-94 08:51:37 GMT", 120000},
		{"Sun Nov  6 08:51:37 1994", 120000},
		{"Thu, 01 Jan 1970 00:00:00 GMT", -NOW},
		{"Sun, 06 Nov 1994 08:40:00 GMT", 0},
		{"999999999999999999999", INT64_C(2147483648000)},
		{"Fri, 31 Dec 9999 23:59:59 GMT", INT64_C(2147483648000)},
		{"Sun, 31 Feb 1994 08:51:37 GMT", NONE},
	};

	for (size_t i = 0; i < FW_N(T); i++) {
		int64_t got = fw_retry_after_ms(fw_str(T[i].in), NOW);

		ck_assert_msg(got == T[i].want, "%s: %lld, want %lld", T[i].in ? T[i].in : "-", (long long)got,
			(long long)T[i].want);
	}
}
END_TEST

START_TEST(expectation_follows)
{
	int64_t expect = 0, dev = 0;

	fw_expect_update(&expect, &dev, 400000);
	ck_assert(expect == 400000 && dev == 200000); /* RFC 6298 (2.2) */
	fw_expect_update(&expect, &dev, 800000);
	ck_assert(expect == 450000 && dev == 250000); /* (2.3) */
	for (int i = 0; i < 100; i++)
		fw_expect_update(&expect, &dev, 1000000);
	ck_assert(expect > 990000 && expect <= 1000000 && dev < 20000);
	fw_expect_update(&expect, &dev, INT64_MAX); /* at most an hour counts */
	ck_assert(expect < INT64_C(500000000));
	fw_expect_update(&expect, &dev, INT64_MIN);
	ck_assert(expect > 0 && dev >= 0);
	expect = INT64_MAX, dev = INT64_MIN; /* values that no store of ours has */
	fw_expect_update(&expect, &dev, 1000);
	ck_assert(expect == 1000 && dev == 500);
	expect = 1, dev = INT64_MAX;
	fw_expect_update(&expect, &dev, 0);
	ck_assert(expect >= 1 && dev >= 0);
}
END_TEST

static int64_t sum_of(const int64_t *part)
{
	return part[0] + part[1] + part[2] + part[3] + part[4];
}

START_TEST(parts_follow)
{
	static const int64_t FIRST[] = {10000, 20000, 40000, 300000, 30000}, LATER[] = {0, 0, 0, 900000, 100000};
	int64_t parts = 0, was, got[FW_PHASE_N];

	fw_expect_parts(parts, 400000, got); /* nothing known */
	ck_assert_int_eq(sum_of(got), 0);
	fw_expect_parts_update(&parts, FIRST);
	fw_expect_parts(parts, 400000, got);
	for (int i = 0; i < FW_PHASE_N; i++)
		ck_assert_msg(llabs(got[i] - FIRST[i]) <= 200, "phase %d: %lld, want %lld", i, (long long)got[i],
			(long long)FIRST[i]);
	ck_assert_int_eq(sum_of(got), 400000);
	fw_expect_parts_update(&parts, LATER); /* an eighth of the difference */
	fw_expect_parts(parts, 400000, got);
	ck_assert_msg(llabs(got[FW_PHASE_FIRST_BYTE] - (300000 + (360000 - 300000) / 8)) <= 800, "%lld",
		(long long)got[FW_PHASE_FIRST_BYTE]);
	for (int i = 0; i < 100; i++) /* and all of it in the end */
		fw_expect_parts_update(&parts, LATER);
	fw_expect_parts(parts, 1000000, got);
	ck_assert(got[0] == 0 && got[1] == 0 && got[2] == 0 && llabs(got[3] - 900000) <= 300 && sum_of(got) == 1000000);
	was = parts;
	fw_expect_parts_update(&parts, (const int64_t[]){0, 0, 0, 0, 0}); /* no information */
	ck_assert_int_eq(parts, was);
	fw_expect_parts(parts, 0, got);
	ck_assert_int_eq(sum_of(got), 0);
}
END_TEST

START_TEST(parts_of_any_numbers)
{
	static const int64_t V[] = {
		0, 1, -1, 4095, 4096, INT64_MIN, INT64_MAX, INT64_C(1) << 60, (INT64_C(1) << 60) - 1};
	int64_t got[FW_PHASE_N];

	for (size_t a = 0; a < FW_N(V); a++) {
		for (size_t b = 0; b < FW_N(V); b++) {
			int64_t parts = V[a], us[] = {V[b], V[a], 5, V[b], 7};

			fw_expect_parts(parts, V[b], got);
			for (int i = 0; i < FW_PHASE_N; i++)
				ck_assert(got[i] >= 0 && got[i] <= INT64_C(3600000000));
			fw_expect_parts_update(&parts, us);
			ck_assert(parts > 0 && parts >> 60 == 0);
			fw_expect_parts(parts, 1000, got);
			ck_assert_int_eq(sum_of(got), 1000);
		}
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit sched hints");
	TCase *t = tcase_create("hints");

	tcase_add_test(t, freshness);
	tcase_add_test(t, retry_after);
	tcase_add_test(t, expectation_follows);
	tcase_add_test(t, parts_follow);
	tcase_add_test(t, parts_of_any_numbers);
	suite_add_tcase(s, t);
	return run_suite(s);
}
