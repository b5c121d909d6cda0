/* SPDX-License-Identifier: ISC */
/* Is it the others, or is it us? (POL-10, issue 6: own network down charges nobody) */
#include <check.h>

#include "base/clock.h"
#include "sched/weather.h"
#include "../../suite.h"

#define N FW_WEATHER_DOWN_N

static struct fw_weather w;
static int64_t now;

static void setup(void)
{
	w = (struct fw_weather){0};
	now = 1000;
}

static bool seen(uint64_t host, enum fw_weather_sign sign, bool expected, int64_t took_ms)
{
	now += 10;
	return fw_weather_seen(&w, &(struct fw_weather_visit){.host = host, .sign = sign, .expected = expected, .begin_ms = now - took_ms, .now_ms = now});
}

static bool fails(uint64_t host)
{
	return seen(host, FW_WEATHER_FAILED, false, 5);
}

static bool answers(uint64_t host)
{
	return seen(host, FW_WEATHER_ANSWERED, false, 5);
}

static void go_down(void)
{
	for (uint64_t h = 1; h <= N; h++)
		fails(h);
	ck_assert(w.down);
}

START_TEST(many_hosts_at_once)
{
	for (uint64_t h = 1; h < N; h++)
		ck_assert(!fails(h));
	ck_assert(fails(N));
	ck_assert_int_eq(w.since_ms, 1010);
	ck_assert(fails(1) && fails(99));
	ck_assert(seen(98, FW_WEATHER_STALLED, false, 10000)); /* it had connected before */
	ck_assert(!fw_weather_doubtful(&w));
	ck_assert(seen(7, FW_WEATHER_FAILED, true, 5)); /* those that were failing are not charged either */
	ck_assert(!seen(7, FW_WEATHER_NOTHING, false, 5));
}
END_TEST

START_TEST(one_host_is_no_network) /* a hoster with many feeds */
{
	for (int i = 0; i < 1000; i++)
		ck_assert(!fails(1 + (uint64_t)i % (N - 1)));
}
END_TEST

START_TEST(dead_feeds_are_no_evidence) /* they go first, all together, when the slow ones go first */
{
	for (uint64_t h = 1; h < 1000; h++)
		ck_assert(!seen(h, FW_WEATHER_FAILED, true, 5));
	ck_assert(!w.down);
}
END_TEST

START_TEST(end_of_a_run) /* only those are left that take longest to fail: they began when others answered, or were connected */
{
	answers(1);
	answers(2);
	for (uint64_t h = 10; h < 50; h++) {
		ck_assert(!seen(h, FW_WEATHER_FAILED, false, 10000));
		ck_assert(!seen(1000 + h, FW_WEATHER_STALLED, false, 5));
		ck_assert(!fw_weather_doubtful(&w));
	}
	fails(1);
	ck_assert(fw_weather_doubtful(&w));
}
END_TEST

START_TEST(answers_between) /* every seventh fails: ordinary weather */
{
	for (uint64_t h = 1; h < 10000; h++)
		ck_assert(h % 7 ? !answers(h) : !fails(h));
}
END_TEST

START_TEST(half_fail) /* and even when half of them do */
{
	for (uint64_t h = 1; h < 10000; h++)
		ck_assert(h % 2 ? !answers(h) : !fails(h));
}
END_TEST

START_TEST(house_mate) /* one host in our own house answers: the network may be down all the same, and is not up by that */
{
	for (uint64_t h = 1; h <= N; h++) {
		ck_assert_int_eq(fails(h), h == N);
		answers(1000);
	}
	for (uint64_t h = 1; h < 100; h++) {
		ck_assert(fails(h));
		answers(1000);
	}
	answers(1000);
	answers(1001);
	ck_assert(!w.down);
}
END_TEST

START_TEST(up_again) /* and a new row has to begin anew */
{
	go_down();
	answers(1);
	ck_assert(w.down);
	answers(2);
	ck_assert(!w.down);
	for (uint64_t h = 1; h < N; h++)
		ck_assert(!fails(h));
	ck_assert(fails(N));
}
END_TEST

START_TEST(slow_rows) /* what lies further back than the window is another story */
{
	for (uint64_t h = 1; h < 100; h++) {
		now += FW_WEATHER_WINDOW_MS / (N - 2);
		ck_assert(!fails(h));
	}
}
END_TEST

START_TEST(signs)
{
	ck_assert_int_eq(fw_weather_sign(FW_VISIT_DNS, false), FW_WEATHER_FAILED);
	ck_assert_int_eq(fw_weather_sign(FW_VISIT_CONNECT, false), FW_WEATHER_FAILED);
	ck_assert_int_eq(fw_weather_sign(FW_VISIT_TIMEOUT, false), FW_WEATHER_FAILED);
	ck_assert_int_eq(fw_weather_sign(FW_VISIT_TIMEOUT, true), FW_WEATHER_STALLED);
	ck_assert_int_eq(fw_weather_sign(FW_VISIT_LOCAL, false), FW_WEATHER_NOTHING);
	ck_assert_int_eq(fw_weather_sign(FW_VISIT_BLOCKED, false), FW_WEATHER_NOTHING);
	ck_assert_int_eq(fw_weather_sign(FW_VISIT_HTTP, false), FW_WEATHER_ANSWERED);
	ck_assert_int_eq(fw_weather_sign(FW_VISIT_TLS, false), FW_WEATHER_ANSWERED);
	ck_assert_int_eq(fw_weather_sign(FW_VISIT_GONE, false), FW_WEATHER_ANSWERED);
	ck_assert_int_eq(fw_weather_sign(FW_VISIT_NOT_MODIFIED, false), FW_WEATHER_ANSWERED);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("weather");
	TCase *t = tcase_create("weather");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, many_hosts_at_once);
	tcase_add_test(t, one_host_is_no_network);
	tcase_add_test(t, dead_feeds_are_no_evidence);
	tcase_add_test(t, end_of_a_run);
	tcase_add_test(t, answers_between);
	tcase_add_test(t, half_fail);
	tcase_add_test(t, house_mate);
	tcase_add_test(t, up_again);
	tcase_add_test(t, slow_rows);
	tcase_add_test(t, signs);
	suite_add_tcase(s, t);
	return run_suite(s);
}
