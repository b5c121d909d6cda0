/* SPDX-License-Identifier: ISC */
/* When next, and why: POL-05 ... POL-11, FMT-06. */
#include <check.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/str.h"
#include "sched/due.h"

#define NOW INT64_C(1795262400000) /* Saturday 2026-11-21T12:00:00Z */
#define MIN FW_MINUTE_MS
#define NONE FW_NO_NUMBER
#define FACTS .retry_after_ms = NONE, .fresh_ms = NONE, .ttl_minutes = NONE, .update_period_minutes = NONE

START_TEST(table)
{
	static const struct {
		struct fw_due_facts f;
		const char *rhythm;
		int64_t min_ms, max_ms;
		const char *why;
	} T[] = {
		{{.kind = FW_VISIT_OK, FACTS}, NULL, 60 * MIN, 72 * MIN, "no rhythm known"},
		{{.kind = FW_VISIT_NOT_MODIFIED, FACTS}, "1;gap=7200;n=9;last=1795260000", 60 * MIN, 72 * MIN, "learned"},
		{{.kind = FW_VISIT_OK, FACTS}, "1;gap=60;n=9;last=1795262000", 15 * MIN, 20 * MIN, "never sooner than"},
		{{.kind = FW_VISIT_OK, FACTS}, "1;gap=99999999;n=9;last=1700000000", 1440 * MIN, 1640 * MIN, "never later than"},
		{{.kind = FW_VISIT_OK, FACTS, .ttl_minutes = 180}, NULL, 180 * MIN, 206 * MIN, "ttl"},
		{{.kind = FW_VISIT_NOT_MODIFIED, FACTS}, "1;ttl=180", 180 * MIN, 206 * MIN, "ttl"},
		{{.kind = FW_VISIT_OK, FACTS, .ttl_minutes = -1}, NULL, 60 * MIN, 72 * MIN, "no rhythm"},
		{{.kind = FW_VISIT_OK, FACTS, .ttl_minutes = INT64_MAX}, NULL, 1440 * MIN, 1640 * MIN, "never later"},
		{{.kind = FW_VISIT_OK, FACTS, .fresh_ms = 2 * FW_HOUR_MS}, NULL, 120 * MIN, 140 * MIN, "fresh for"},
		{{.kind = FW_VISIT_OK, FACTS, .fresh_ms = INT64_C(2147483648) * 1000}, NULL, 1440 * MIN, 1640 * MIN, "never later"},
		{{.kind = FW_VISIT_OK, FACTS, .interval_ms = 5 * MIN}, NULL, 5 * MIN, 8 * MIN, "set by you"},
		{{.kind = FW_VISIT_OK, FACTS, .skip_hours = 1u << 13 | 1u << 14}, NULL, 180 * MIN, 210 * MIN, "skipHours"},
		{{.kind = FW_VISIT_OK, FACTS, .skip_hours = 0xffffff}, NULL, 60 * MIN, 72 * MIN, "ignored"},
		{{.kind = FW_VISIT_OK, FACTS, .skip_days = 1u << 6}, NULL, 720 * MIN, 800 * MIN, "skipDays"},
		{{.kind = FW_VISIT_HTTP, FACTS, .http_status = 429, .fail_n = 1, .retry_after_ms = FW_DAY_MS * 3}, NULL, 3 * 1440 * MIN,
			3 * 1640 * MIN, "Retry-After"},
		{{.kind = FW_VISIT_HTTP, FACTS, .http_status = 503, .fail_n = 1, .retry_after_ms = FW_DAY_MS * 300}, NULL, 7 * 1440 * MIN,
			7 * 1640 * MIN, "longer than is believed"},
		{{.kind = FW_VISIT_HTTP, FACTS, .http_status = 429, .fail_n = 1}, NULL, 60 * MIN, 72 * MIN, "too often"},
		{{.kind = FW_VISIT_HTTP, FACTS, .http_status = 404, .fail_n = 30}, NULL, 7 * 1440 * MIN, 7 * 1640 * MIN, "not found, 30"},
		{{.kind = FW_VISIT_TIMEOUT, FACTS, .fail_n = 1}, NULL, 15 * MIN, 20 * MIN, "failed, 1"},
		{{.kind = FW_VISIT_TIMEOUT, FACTS, .fail_n = 4000000000u}, NULL, 1440 * MIN, 1640 * MIN, "failed"},
		{{.kind = FW_VISIT_LOCAL, FACTS}, NULL, MIN, 2 * MIN, "our own fault"},
		{{.kind = FW_VISIT_GONE, FACTS, .http_status = 410}, NULL, 30 * 1440 * MIN, 30 * 1440 * MIN, "gone"},
		{{.kind = FW_VISIT_OK, FACTS, .expired = true}, NULL, 30 * 1440 * MIN, 30 * 1440 * MIN, "ended"},
	};
	struct fw_due_facts f = T[_i].f;
	struct fw_due_policy p;
	struct fw_due d;

	f.rhythm = fw_str(T[_i].rhythm);
	fw_due_policy_default(&p);
	for (uint64_t rnd = 0; rnd < 2000; rnd++) {
		fw_due(&f, &p, NOW, rnd * UINT64_C(0x9e3779b97f4a7c15), &d);
		ck_assert_msg(d.at_ms - NOW >= T[_i].min_ms && d.at_ms - NOW <= T[_i].max_ms, "%lld min: %s",
			(long long)((d.at_ms - NOW) / MIN), d.why);
		ck_assert_msg(strstr(d.why, T[_i].why) != NULL, "%s", d.why);
	}
	ck_assert_int_eq(d.stop, f.kind == FW_VISIT_GONE || f.expired);
}
END_TEST

START_TEST(equal_feeds_spread) /* POL-11: neither in one second nor at the full hour */
{
	struct fw_due_facts f = {.kind = FW_VISIT_OK, FACTS};
	int in_minute[72] = {0}, hot = 0;
	struct fw_due_policy p;
	struct fw_due d;

	fw_due_policy_default(&p);
	for (uint64_t i = 1; i <= 6000; i++) {
		fw_due(&f, &p, NOW - 5 * MIN, i * UINT64_C(0x9e3779b97f4a7c15), &d);
		ck_assert_int_lt((d.at_ms - NOW) / MIN, 72);
		in_minute[(d.at_ms - NOW) / MIN]++;
		hot += d.at_ms % FW_HOUR_MS < 2 * MIN;
	}
	for (int i = 0; i < 72; i++)
		ck_assert_int_lt(in_minute[i], 2400);
	ck_assert_int_lt(hot, 600);
}
END_TEST

START_TEST(cache_headers) /* POL-06, POL-07 */
{
	static const struct { const char *cc, *age, *expires, *date; int64_t want; } T[] = {
		{"max-age=3600", NULL, NULL, NULL, 3600}, {"public, MAX-AGE=3600", "600", NULL, NULL, 3000},
		{"max-age=60", "600", NULL, NULL, 0}, {"max-age=1000000000000", NULL, NULL, NULL, INT64_C(2147483648)},
		{"max-age=x", NULL, NULL, NULL, NONE}, {"no-cache, max-age=60", NULL, NULL, NULL, NONE},
		{NULL, NULL, "0", NULL, NONE}, {NULL, NULL, "Sat, 21 Nov 2026 14:00:00 GMT", "Sat, 21 Nov 2026 13:00:00 GMT", 3600},
		{NULL, NULL, "Sat, 21 Nov 2026 14:00:00 GMT", NULL, 7200}, {NULL, NULL, "Thu, 01 Jan 1970 00:00:00 GMT", NULL, 0},
		{NULL, NULL, NULL, NULL, NONE},
	};
	int64_t want = T[_i].want == NONE ? NONE : T[_i].want * 1000;

	ck_assert_int_eq(fw_fresh_ms(fw_str(T[_i].cc), fw_str(T[_i].age), fw_str(T[_i].expires), fw_str(T[_i].date), NOW), want);
}
END_TEST

START_TEST(retry_after)
{
	ck_assert_int_eq(fw_retry_after_ms(FW_STR("120"), NOW), 120000);
	ck_assert_int_eq(fw_retry_after_ms(FW_STR("Sat, 21 Nov 2026 12:02:00 GMT"), NOW), 120000);
	ck_assert_int_eq(fw_retry_after_ms(FW_STR("Saturday, 21-Nov-26 12:02:00 GMT"), NOW), 120000);
	ck_assert_int_eq(fw_retry_after_ms(FW_STR("Sat Nov 21 12:02:00 2026"), NOW), 120000);
	ck_assert_int_eq(fw_retry_after_ms(FW_STR("Thu, 01 Jan 1970 00:00:00 GMT"), NOW), 0);
	ck_assert_int_eq(fw_retry_after_ms(FW_STR("soon"), NOW), NONE);
	ck_assert_int_eq(fw_retry_after_ms(FW_STR("-1"), NOW), NONE);
	ck_assert_int_eq(fw_retry_after_ms(FW_STR_NONE, NOW), NONE);
}
END_TEST

START_TEST(rhythm)
{
	struct fw_due_facts hints = {FACTS, .ttl_minutes = 30, .skip_hours = 3};
	char a[FW_RHYTHM_MAX], b[FW_RHYTHM_MAX];
	int64_t dates[200];
	size_t n;

	/* one entry a day, one batch of five, one date in the future: the day wins */
	for (int i = 0; i < 200; i++)
		dates[i] = NOW - (i < 5 ? i * 1000 : (i - 4) * FW_DAY_MS);
	dates[100] = NOW + 90 * FW_DAY_MS;
	n = fw_rhythm_learn(FW_STR_NONE, dates, 200, &hints, NOW, a);
	ck_assert_uint_gt(n, 0);
	ck_assert_msg(strstr(a, "gap=86400;") != NULL, "%s", a);
	ck_assert(strstr(a, "ttl=30") && strstr(a, "sh=3") && strstr(a, "last=1795262400"));
	/* a document with one entry keeps what was learned */
	hints = (struct fw_due_facts){FACTS};
	dates[0] = NOW + FW_DAY_MS;
	ck_assert_uint_gt(fw_rhythm_learn((struct fw_str){a, n}, dates, 1, &hints, NOW + FW_DAY_MS, b), 0);
	ck_assert_msg(strstr(b, "gap=86400;") != NULL, "%s", b);
	ck_assert_ptr_null(strstr(b, "ttl"));
	/* nothing to say, nothing said; junk is forgotten */
	ck_assert_uint_eq(fw_rhythm_learn(FW_STR("9;what=1"), dates, 0, &hints, NOW, b), 0);
}
END_TEST

START_TEST(expectation) /* RFC 6298 section 2 */
{
	int64_t us = 0, dev = 0;

	fw_expect_update(&us, &dev, 800);
	ck_assert(us == 800 && dev == 400);
	fw_expect_update(&us, &dev, 1600);
	ck_assert(us == 900 && dev == 500);
	for (int i = 0; i < 100; i++)
		fw_expect_update(&us, &dev, 1000);
	ck_assert_int_ge(us, 990);
	ck_assert_int_lt(dev, 20);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("due");
	TCase *t = tcase_create("due");
	SRunner *r;
	int failed;

	tcase_add_loop_test(t, table, 0, 23);
	tcase_add_test(t, equal_feeds_spread);
	tcase_add_loop_test(t, cache_headers, 0, 11);
	tcase_add_test(t, retry_after);
	tcase_add_test(t, rhythm);
	tcase_add_test(t, expectation);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
