/* SPDX-License-Identifier: ISC */
/*
 * The counters of a run: buckets at their limits, sums over processes, and that a dead process's
 * numbers stay.
 */
#include <check.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "engine/meter.h"
#include "../../suite.h"

START_TEST(buckets)
{
	struct fw_meter *m = fw_meter_create(1, false, 0);
	struct fw_meter_sum s;

	ck_assert_ptr_nonnull(m);
	for (int t = 0; t < FW_TIMING_N; t++) {
		uint64_t sum_us = 0;
		size_t n;
		const int64_t *bound = fw_meter_bounds((enum fw_timing)t, &n);

		ck_assert(n >= 2 && n <= FW_METER_BUCKETS);
		ck_assert(bound[n - 1] == INT64_MAX);
		for (size_t i = 0; i + 1 < n; i++) { /* an upper limit belongs to its bucket */
			ck_assert(bound[i] < bound[i + 1] && bound[i] > 0);
			meter_time(fw_meter_slot(m, 0), (enum fw_timing)t, bound[i]);
			meter_time(fw_meter_slot(m, 0), (enum fw_timing)t, bound[i] + 1);
			sum_us += 2 * (uint64_t)bound[i] + 1;
		}
		meter_time(fw_meter_slot(m, 0), (enum fw_timing)t, -5); /* a clock that went back */
		fw_meter_read(m, &s);
		ck_assert_uint_eq(s.timing[t].sum_us, sum_us);
		ck_assert_uint_eq(s.timing[t].bucket[0], 2);
		for (size_t i = 1; i < FW_METER_BUCKETS; i++)
			ck_assert_uint_eq(s.timing[t].bucket[i], i + 1 < n ? 2 : i < n ? 1 : 0);
	}
	fw_meter_destroy(m);
}
END_TEST

START_TEST(visits)
{
	static const struct {
		int status;
		size_t at;
	} CASE[] = {{100, 1}, {200, 2}, {304, 3}, {404, 4}, {599, 5}, {600, 0}, {99, 0}, {-1, 0}};
	struct fw_meter *m = fw_meter_create(1, false, 0);
	struct fw_visit v = {.kind = FW_VISIT_OK,
		.lateness_ms = 1500,
		.total_us = 20000,
		.parse_us = 300,
		.wire_bytes = 10,
		.body_bytes = 30,
		.item_n = 5,
		.new_n = 3,
		.changed_n = 1,
		.redirects = 2};
	struct fw_visit nothing = {.kind = FW_VISIT_DNS};
	struct fw_meter_sum s;

	for (size_t i = 0; i < FW_N(CASE); i++) {
		v.http_status = CASE[i].status;
		meter_visit(fw_meter_slot(m, 0), &v, i % 2);
	}
	meter_visit(fw_meter_slot(m, 0), &nothing, false);
	fw_meter_read(m, &s);
	ck_assert_uint_eq(s.visits[FW_VISIT_OK], 8);
	ck_assert_uint_eq(s.visits[FW_VISIT_DNS], 1);
	ck_assert_uint_eq(s.responses[0], 3);
	for (size_t i = 1; i < FW_METER_CLASSES; i++)
		ck_assert_uint_eq(s.responses[i], 1);
	ck_assert_uint_eq(s.count[FW_COUNT_ITEMS], 40);
	ck_assert_uint_eq(s.count[FW_COUNT_NEW_ENTRIES], 24);
	ck_assert_uint_eq(s.count[FW_COUNT_CHANGED_ENTRIES], 8);
	ck_assert_uint_eq(s.count[FW_COUNT_WIRE_BYTES], 80);
	ck_assert_uint_eq(s.count[FW_COUNT_BODY_BYTES], 240);
	ck_assert_uint_eq(s.count[FW_COUNT_REDIRECTS], 16);
	ck_assert_uint_eq(s.timing[FW_TIMING_LATENESS].sum_us, 4 * 1500000); /* of those that no user requested */
	ck_assert_uint_eq(s.timing[FW_TIMING_LATENESS].bucket[0], 1);
	ck_assert_uint_eq(s.timing[FW_TIMING_FETCH].sum_us, 8 * 20000);
	ck_assert_uint_eq(s.timing[FW_TIMING_PARSE].sum_us, 8 * 300);
	fw_meter_destroy(m);
}
END_TEST

START_TEST(processes)
{
	struct fw_meter *m = fw_meter_create(2, true, 0);
	struct fw_meter_process p;
	struct fw_meter_sum s;
	int status;

	for (size_t round = 0; round < 2; round++) { /* the second continues where the first stopped */
		for (size_t i = 0; i < 2; i++) {
			pid_t pid = fork();

			if (pid == 0) {
				for (int n = 0; n < 1000; n++)
					meter_count(fw_meter_slot(m, i), FW_COUNT_CLAIMS, i + 1);
				meter_usage_update(&fw_meter_slot(m, i)->usage);
				_exit(0);
			}
			ck_assert_int_eq(waitpid(pid, &status, 0), pid);
			ck_assert_int_eq(status, 0);
		}
	}
	meter_child_start(m, 1, getpid());
	for (int i = 0; i < 7; i++) {
		meter_child_restart(m, 2);
		if (i < 4)
			meter_child_restart(m, 1);
	}
	fw_meter_read(m, &s);
	ck_assert_uint_eq(s.count[FW_COUNT_CLAIMS], 6000);
	ck_assert(s.workers == 2 && s.alive == 1 && s.worker_restarts == 4 && s.server_restarts == 7);
	ck_assert_uint_eq(fw_meter_process_n(m), 4);
	ck_assert(fw_meter_process(m, 0, &p) && strcmp(p.what, "master") == 0 && p.pid == getpid());
	ck_assert_msg(p.rss_bytes > 100000 && p.cpu_ms >= 0, "%lld bytes, %lld ms", (long long)p.rss_bytes,
		(long long)p.cpu_ms);
	ck_assert(!fw_meter_process(m, 1, &p) && strcmp(p.what, "worker") == 0 && p.index == 0);
	ck_assert(fw_meter_process(m, 2, &p) && p.index == 1 && p.rss_bytes > 0);
	ck_assert(!fw_meter_process(m, 3, &p) && strcmp(p.what, "server") == 0);
	ck_assert(!fw_meter_process(m, 4, &p));
	meter_child_start(m, 0, 1); /* for other processes their own figures, whatever /proc has */
	ck_assert(fw_meter_process(m, 1, &p) && p.rss_bytes == atomic_load(&fw_meter_slot(m, 0)->usage.rss_bytes) &&
		p.rss_bytes > 100000);
	/* and none for a process that has just started, least of all its predecessor's */
	meter_child_prepare(m, 0);
	ck_assert(fw_meter_process(m, 1, &p) && p.rss_bytes == -1 && p.cpu_ms == -1);
	fw_meter_destroy(m);
}
END_TEST

/* Whether this child may write there: it would die of SIGSEGV. */
static bool writes(struct fw_meter *m, size_t self, size_t i)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		fw_meter_narrow(m, self);
		if (i == self || self == 2) /* the server can read all */
			(void)atomic_load(&fw_meter_slot(m, i)->in_flight);
		signal(SIGABRT, SIG_DFL);
		signal(SIGSEGV, SIG_DFL);
		atomic_store(&fw_meter_slot(m, i)->in_flight, 9);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status == 0;
}

START_TEST(child_writes_its_own_slot_only)
{
	struct fw_meter *m = fw_meter_create(2, true, 100), *opened;
	int fd[FW_METER_FDS], n;
	struct fw_meter_sum s;

	for (size_t self = 0; self < 3; self++) {
		for (size_t i = 0; i < 3; i++)
			ck_assert_msg(writes(m, self, i) == (self == i), "%zu %zu", self, i);
	}
	/* the same for one that is a new program */
	n = fw_meter_hand_over(m, 2, fd);
	ck_assert_int_eq(n, 4);
	ck_assert_int_ne(ftruncate(fd[0], 1), 0);
	ck_assert_int_ne(ftruncate(fd[0], 1 << 20), 0);
	for (int i = 1; i < n; i++)
		ck_assert_ptr_eq(mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd[i], 0), MAP_FAILED);
	fd[0] = dup(fd[0]);
	opened = fw_meter_open(2, 3, 100, 2, fd, (size_t)n);
	ck_assert_ptr_nonnull(opened);
	meter_count(fw_meter_slot(m, 1), FW_COUNT_CLAIMS, 5);
	*(char *)fw_meter_own(opened, 2) = 'x';
	ck_assert_int_eq(*(char *)fw_meter_own(m, 2), 'x');
	fw_meter_read(opened, &s);
	ck_assert(s.count[FW_COUNT_CLAIMS] == 5 && s.workers == 2 && s.in_flight == 18);
	fw_meter_destroy(opened);
	fw_meter_destroy(m);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit engine meter");
	TCase *t = tcase_create("meter");

	tcase_add_test(t, buckets);
	tcase_add_test(t, visits);
	tcase_add_test(t, processes);
	tcase_add_test(t, child_writes_its_own_slot_only);
	suite_add_tcase(s, t);
	return run_suite(s);
}
