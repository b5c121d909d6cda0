/* SPDX-License-Identifier: ISC */
/*
 * Do the servers fail, or does our own network? (POL-10, issue 6: an outage of our network charges
 * no feed.)
 */
#include <check.h>

#include "base/clock.h"
#include "sched/connectivity.h"
#include "../../suite.h"

#define N FW_CONNECTIVITY_DOWN_N

static struct fw_connectivity w;
static int64_t now, polled_ms;

static void setup(void)
{
	w = (struct fw_connectivity){0};
	now = 1000;
	polled_ms = 0;
}

static bool seen(uint64_t host, enum fw_connectivity_sign sign, bool expected, int64_t took_ms)
{
	now += 10;
	return fw_connectivity_count(&w,
		&(struct fw_connectivity_visit){.host = host,
			.sign = sign,
			.failing = expected,
			.polled_ms = polled_ms,
			.begin_ms = now - took_ms,
			.now_ms = now});
}

static bool fails(uint64_t host)
{
	return seen(host, FW_CONNECTIVITY_FAILED, false, 5);
}

static bool doubtful(void) /* whether a failure of this moment is in doubt */
{
	return fw_connectivity_is_doubtful(&w, now);
}

static bool answers(uint64_t host)
{
	return seen(host, FW_CONNECTIVITY_RESPONDED, false, 5);
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
	ck_assert(seen(98, FW_CONNECTIVITY_STALLED, false, 10000)); /* it had connected before */
	ck_assert(!doubtful());
	ck_assert(seen(7, FW_CONNECTIVITY_FAILED, true, 5)); /* feeds that were failing before are not charged either */
	ck_assert(!seen(7, FW_CONNECTIVITY_NO_SIGN, false, 5));
}
END_TEST

START_TEST(one_host_is_no_network) /* a hosting service with many feeds */
{
	for (int i = 0; i < 1000; i++)
		ck_assert(!fails(1 + (uint64_t)i % (N - 1)));
}
END_TEST

START_TEST(dead_feeds_are_no_evidence) /* they go first, all together, where the plan puts slow feeds first */
{
	for (uint64_t h = 1; h < 1000; h++)
		ck_assert(!seen(h, FW_CONNECTIVITY_FAILED, true, 5));
	ck_assert(!w.down);
}
END_TEST

/*
 * only transfers are left that take longest to fail: they started while others answered, or were
 * connected
 */
START_TEST(end_of_a_run)
{
	answers(1);
	answers(2);
	for (uint64_t h = 10; h < 50; h++) {
		ck_assert(!seen(h, FW_CONNECTIVITY_FAILED, false, 10000));
		ck_assert(!seen(1000 + h, FW_CONNECTIVITY_STALLED, false, 5));
		ck_assert(!fw_connectivity_is_doubtful(&w, now - 10000));
	}
	fails(1);
	ck_assert(doubtful());
}
END_TEST

START_TEST(answers_between) /* each seventh fails: normal conditions */
{
	for (uint64_t h = 1; h < 10000; h++)
		ck_assert(h % 7 ? !answers(h) : !fails(h));
}
END_TEST

START_TEST(half_fail) /* and even when half of them fail */
{
	for (uint64_t h = 1; h < 10000; h++)
		ck_assert(h % 2 ? !answers(h) : !fails(h));
}
END_TEST

START_TEST(host_in_our_lan) /* one host in our own LAN answers: this does not prove that the network is up */
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

START_TEST(up_again) /* and a new series starts from zero */
{
	go_down();
	answers(1);
	ck_assert(w.down);
	answers(2);
	ck_assert(!w.down);
	ck_assert(seen(5, FW_CONNECTIVITY_FAILED, false, 3000)); /* it started while the network was down */
	ck_assert(seen(5, FW_CONNECTIVITY_STALLED, true, 3000));
	ck_assert(fails(5)); /* a failed lookup of this moment is remembered */
	answers(1);
	answers(2);
	now += FW_CONNECTIVITY_AFTER_MS;
	for (uint64_t h = 1; h < N; h++)
		ck_assert(!fails(h));
	ck_assert(fails(N));
}
END_TEST

START_TEST(slow_rows) /* failures before the window do not count */
{
	for (uint64_t h = 1; h < 100; h++) {
		now += FW_CONNECTIVITY_WINDOW_MS / (N - 2);
		ck_assert(!fails(h));
	}
}
END_TEST

START_TEST(doubt_until_two_answer) /* whether the failure counts as evidence or not */
{
	static const bool EXPECTED[] = {false, true};
	int64_t begin_ms;

	answers(1);
	seen(7, FW_CONNECTIVITY_FAILED, EXPECTED[_i], 5);
	begin_ms = now - 5;
	ck_assert(fw_connectivity_is_doubtful(&w, begin_ms));
	answers(1); /* again: it may be a host in our own LAN */
	ck_assert(fw_connectivity_is_doubtful(&w, begin_ms));
	answers(2);
	ck_assert(!fw_connectivity_is_doubtful(&w, begin_ms));
	ck_assert(!fw_connectivity_conclude(&w));
}
END_TEST

/*
 * when no more results are to come and no server has answered for a while; one host that answers
 * ends it
 */
START_TEST(few_are_enough)
{
	static const struct {
		int n;
		bool heard_before;
		int64_t quiet_ms;
		bool heard_between, down;
	} T[] = {
		{FW_CONNECTIVITY_FEW_N, false, 0, false, true},
		{FW_CONNECTIVITY_FEW_N - 1, false, 0, false, false},
		{FW_CONNECTIVITY_FEW_N, true, FW_CONNECTIVITY_QUIET_MS, false, true},
		{FW_CONNECTIVITY_FEW_N, true, FW_CONNECTIVITY_QUIET_MS / 2, false, false},
		{FW_CONNECTIVITY_FEW_N, true, FW_CONNECTIVITY_QUIET_MS, true, false},
		{N - 1, false, 0, true, false},
	};

	if (T[_i].heard_before)
		answers(100);
	now += T[_i].quiet_ms;
	for (int h = 0; h < T[_i].n; h++) {
		ck_assert(!fails(1 + (uint64_t)h));
		if (!h && T[_i].heard_between)
			answers(100);
	}
	ck_assert_int_eq(fw_connectivity_conclude(&w), T[_i].down);
	ck_assert_int_eq(w.down, T[_i].down);
	if (!T[_i].down)
		return;
	ck_assert_int_eq(w.since_ms, now - 10 * (T[_i].n - 1));
	ck_assert(fails(50) && fw_connectivity_conclude(&w));
	answers(100);
	ck_assert(!w.down && !w.few);
	now += FW_CONNECTIVITY_AFTER_MS;
	ck_assert(!fails(1) && !fails(2) && !fails(3));
	ck_assert(!fw_connectivity_conclude(&w)); /* a server has just answered */
}
END_TEST

START_TEST(refusals) /* refusals may come from a firewall of ours, but not if they are few */
{
	for (uint64_t h = 1; h < N; h++)
		ck_assert(!seen(h, FW_CONNECTIVITY_REFUSED, false, 5) && doubtful());
	ck_assert(!fw_connectivity_conclude(&w));
	ck_assert(seen(N, FW_CONNECTIVITY_REFUSED, false, 5));
	setup();
	for (uint64_t h = 1; h <= FW_CONNECTIVITY_FEW_N; h++)
		fails(h);
	seen(50, FW_CONNECTIVITY_REFUSED, false, 5);
	ck_assert(!fw_connectivity_conclude(&w));
}
END_TEST

START_TEST(few_become_many) /* and then one host of our LAN is no longer enough */
{
	int64_t since_ms;

	for (uint64_t h = 1; h <= FW_CONNECTIVITY_FEW_N; h++)
		fails(h);
	ck_assert(fw_connectivity_conclude(&w));
	since_ms = w.since_ms;
	for (uint64_t h = 1; h <= N; h++)
		ck_assert(fails(h));
	answers(100);
	ck_assert(w.down && !w.few);
	ck_assert_int_eq(w.since_ms, since_ms);
	answers(101);
	ck_assert(!w.down);
}
END_TEST

/*
 * the first failures of an outage may have been charged: further failures of these feeds are still
 * evidence
 */
START_TEST(failing_since_the_last_response)
{
	answers(1);
	for (int k = 0; k < 2; k++) {
		polled_ms = k ? now : now - 20; /* before a server answered, and after */
		now += FW_CONNECTIVITY_QUIET_MS;
		for (uint64_t h = 10; h < 10 + FW_CONNECTIVITY_FEW_N; h++)
			ck_assert(!seen(h, FW_CONNECTIVITY_FAILED, true, 5));
		ck_assert_int_eq(fw_connectivity_conclude(&w), k);
	}
}
END_TEST

START_TEST(signs)
{
	ck_assert_int_eq(fw_connectivity_sign(FW_VISIT_DNS, false, false), FW_CONNECTIVITY_FAILED);
	ck_assert_int_eq(fw_connectivity_sign(FW_VISIT_CONNECT, false, false), FW_CONNECTIVITY_FAILED);
	ck_assert_int_eq(fw_connectivity_sign(FW_VISIT_DNS, false, true), FW_CONNECTIVITY_REFUSED); /* no such name */
	ck_assert_int_eq(
		fw_connectivity_sign(FW_VISIT_CONNECT, false, true), FW_CONNECTIVITY_REFUSED); /* no listener there */
	ck_assert_int_eq(fw_connectivity_sign(FW_VISIT_TIMEOUT, false, false), FW_CONNECTIVITY_FAILED);
	ck_assert_int_eq(fw_connectivity_sign(FW_VISIT_TIMEOUT, true, false), FW_CONNECTIVITY_STALLED);
	ck_assert_int_eq(fw_connectivity_sign(FW_VISIT_LOCAL, false, false), FW_CONNECTIVITY_NO_SIGN);
	ck_assert_int_eq(fw_connectivity_sign(FW_VISIT_BLOCKED, false, false), FW_CONNECTIVITY_NO_SIGN);
	ck_assert_int_eq(fw_connectivity_sign(FW_VISIT_HTTP, false, false), FW_CONNECTIVITY_RESPONDED);
	ck_assert_int_eq(fw_connectivity_sign(FW_VISIT_TLS, false, false), FW_CONNECTIVITY_RESPONDED);
	ck_assert_int_eq(fw_connectivity_sign(FW_VISIT_GONE, false, false), FW_CONNECTIVITY_RESPONDED);
	ck_assert_int_eq(fw_connectivity_sign(FW_VISIT_NOT_MODIFIED, false, false), FW_CONNECTIVITY_RESPONDED);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit sched connectivity");
	TCase *t = tcase_create("connectivity");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, many_hosts_at_once);
	tcase_add_test(t, one_host_is_no_network);
	tcase_add_test(t, dead_feeds_are_no_evidence);
	tcase_add_test(t, end_of_a_run);
	tcase_add_test(t, answers_between);
	tcase_add_test(t, half_fail);
	tcase_add_test(t, host_in_our_lan);
	tcase_add_test(t, up_again);
	tcase_add_test(t, slow_rows);
	tcase_add_loop_test(t, doubt_until_two_answer, 0, 2);
	tcase_add_loop_test(t, few_are_enough, 0, 6);
	tcase_add_test(t, refusals);
	tcase_add_test(t, few_become_many);
	tcase_add_test(t, failing_since_the_last_response);
	tcase_add_test(t, signs);
	suite_add_tcase(s, t);
	return run_suite(s);
}
