/* SPDX-License-Identifier: ISC */
/* The verdict on a run, from invented visits: each reason for idle slots, and its text. */
#include <check.h>
#include <string.h>

#include "base/str.h"
#include "picture/timeline.h"
#include "../../suite.h"

#define RUN INT64_C(1795262400000)
#define MS INT64_C(1000)

static struct timeline T;

static void setup(void)
{
	timeline_init(&T);
	T.run_id = RUN;
}

static void teardown(void)
{
	timeline_finish(&T);
}

/*
 * A visit, in ms from the start of the run: due (less than 0: before the start), claimed, started,
 * ended.
 */
static void visit(int host, int slot, int64_t due, int64_t there, int64_t from, int64_t until)
{
	char url[80];
	struct fw_visit v = {.feed_id = (int64_t)T.n + 1,
		.run_id = RUN,
		.at_ms = RUN + from,
		.kind = FW_VISIT_OK,
		.http_status = 200,
		.slot = slot,
		.lateness_ms = (uint32_t)(from - due),
		.queue_us = (from - there) * MS,
		.first_byte_us = (until - from) * MS,
		.total_us = (until - from) * MS};

	(void)fw_snprintf(url, sizeof(url), "http://h%d.example/%zu", host, T.n);
	v.feed_url = fw_str(url);
	ck_assert_int_eq(timeline_add(&T, &v), 0);
}

static void verdict_is(const int64_t want_ms[IDLE_N], const char *words)
{
	int64_t sum_us = 0;

	ck_assert_int_eq(timeline_analyze(&T), 0);
	for (int i = 0; i < IDLE_N; i++) {
		sum_us += T.idle_us[i];
		ck_assert_msg(T.idle_us[i] == want_ms[i] * MS, "reason %d: %lld ms", i, (long long)(T.idle_us[i] / MS));
	}
	ck_assert_int_eq(sum_us, T.total_us * T.row_n - T.sum_us); /* all idle time is attributed */
	ck_assert_msg(strstr(T.verdict, words) != NULL, "%s", T.verdict);
}

/* 561 feeds due, a host each, on a machine that is busy with other work: the verdict names this. */
START_TEST(neither_due_nor_hosts)
{
	T.elapsed_us = 3000 * MS;
	T.read_us = 1300 * MS;
	T.host_concurrency = 2;
	T.host_gap_us = 1000 * MS;
	for (int i = 0; i < 4; i++)
		visit(i, i, -5000, 100, 100, 200);
	for (int i = 4; i < 8; i++)
		visit(i, i - 4, -5000, 120, 600, 700); /* claimed, and not started */
	for (int i = 8; i < 12; i++)
		visit(i, i - 8, -5000, 900, 900, 1000); /* not claimed before */
	verdict_is((int64_t[IDLE_N]){[IDLE_START] = 400,
			   [IDLE_WORKER] = 1600,
			   [IDLE_CLAIM] = 800,
			   [IDLE_READ] = 1200,
			   [IDLE_STORE] = 6800},
		"Slots were idle for 90 % of the time: storing after the last response (57 %), claimed feeds waited "
		"for a busy worker (13 %), "
		"parsing after the last response (10 %).");
	ck_assert_int_eq(T.started_ms, RUN);
	ck_assert_int_eq(T.total_us, 3000 * MS);
	ck_assert_int_eq(T.bar[0].from_us, 100 * MS);
}
END_TEST

/*
 * One host permits a start each 400 ms: as many slots are idle for this reason as could have
 * started another of its feeds.
 */
START_TEST(hosts)
{
	T.host_gap_us = 400 * MS;
	for (int i = 0; i < 5; i++)
		visit(1, i % 2, -1000, 0, i * 400, i * 400 + 100);
	for (int i = 0; i < 2; i++)
		visit(2 + i, 2 + i, -1000, 0, 0, 1700);
	verdict_is((int64_t[IDLE_N]){[IDLE_HOST] = 2500, [IDLE_LEFT] = 400}, "");
}
END_TEST

/*
 * host_concurrency: a feed that waits for one in flight waits for its host, and only then for other
 * reasons
 */
START_TEST(at_a_time)
{
	T.host_concurrency = 1;
	visit(1, 0, -1000, 0, 0, 500);
	visit(1, 1, -1000, 100, 700, 1000); /* claimed at 100, permitted at 500 */
	visit(2, 1, -1000, 0, 0, 100);
	verdict_is((int64_t[IDLE_N]){[IDLE_HOST] = 400, [IDLE_WORKER] = 200, [IDLE_LEFT] = 500}, "");
}
END_TEST

START_TEST(not_due) /* in a continuous run slots are idle because nothing is due; it has no start or end to report */
{
	T.endless = true;
	visit(1, 0, 0, 0, 0, 100);
	visit(2, 1, 0, 0, 0, 100);
	visit(3, 0, 900, 950, 1000, 1100);
	visit(4, 1, 900, 900, 900, 1000);
	verdict_is((int64_t[IDLE_N]){[IDLE_DUE] = 1700, [IDLE_CLAIM] = 50, [IDLE_WORKER] = 50},
		"Slots were idle for 82 % of the time: nothing was due (77 %).");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit cli timeline");
	TCase *t = tcase_create("timeline");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, neither_due_nor_hosts);
	tcase_add_test(t, hosts);
	tcase_add_test(t, at_a_time);
	tcase_add_test(t, not_due);
	suite_add_tcase(s, t);
	return run_suite(s);
}
