/* SPDX-License-Identifier: ISC */
/* The course: in which order, how many of a host at once, what is put off, and how workers share it. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/str.h"
#include "engine/course.h"
#include "../../suite.h"

#define S INT64_C(1000000) /* us */

static struct course_rules rules = {.plan = {.policy = FW_PLAN_HOST_PATH, .slots = 2, .host_max = 1}, .ahead = 1, .workers = 1};

static struct course *course(const struct course_rules *r, const struct fw_due_row *row, size_t n)
{
	struct course *c;

	ck_assert_int_eq(course_create(r, row, n, &c), 0);
	return c;
}

/* Ask, and be lent those of the numbers in lent[] (0-ended); the others are put off or not. Returns what was asked for. */
static size_t ask(struct course *c, size_t max, const int64_t *lent, bool deferred, int64_t now_us, int64_t *id, struct fw_plan_item **stop)
{
	struct fw_lease lease[10] = {{.fence = 0}};
	int64_t next_us;
	size_t n = 0, asked = course_ask(c, now_us, max, id, &next_us);

	for (; lent && lent[n]; n++)
		lease[n].feed.id = lent[n];
	course_got(c, lease, n, deferred, now_us, S, stop);
	return asked;
}

START_TEST(host_by_host)
{
	const struct fw_due_row row[] = {{1, 0, 50, 2 * S, 0}, {2, 7, 50, 3 * S, 0}, {3, 7, 50, 2 * S, 0}, {4, 7, 50, 4 * S, 0}, {5, 0, 50, 0, 0}};
	struct course *c = course(&rules, row, 5);
	const struct course_forecast *f = course_forecast(c);
	struct fw_plan_item *stop[10], *other[10];
	int64_t id[10], next_us;

	ck_assert_uint_eq(f->known, 4);
	ck_assert_int_eq(f->total.host_us, 9 * S);
	ck_assert_int_eq(f->total.total_us, 9 * S);
	ck_assert_uint_eq(f->total.host_n, 3);
	ck_assert(f->total.host_item == 2 || f->total.host_item == 3 || f->total.host_item == 4);
	/* two of host 7 may be lent at once; the third waits until one of them is back */
	ck_assert_uint_eq(ask(c, 10, (const int64_t[]){1, 4, 2, 5, 0}, false, 0, id, stop), 4);
	ck_assert(id[0] == 4 && id[1] == 5 && id[2] == 1 && id[3] == 2);
	ck_assert(stop[0] && stop[1]->rank == 0 && stop[3]->rank == 1);
	ck_assert(!course_is_over(c));
	ck_assert_uint_eq(course_ask(c, 0, 10, id, &next_us), 0);
	ck_assert_int_eq(next_us, INT64_MAX);
	course_back(stop[1]);
	ck_assert_uint_eq(ask(c, 10, NULL, true, S, id, other), 1);
	ck_assert_int_eq(id[0], 3);
	/* it was put off: again after a moment */
	ck_assert(!course_is_over(c));
	ck_assert_uint_eq(course_ask(c, S + 1, 10, id, &next_us), 0);
	ck_assert_int_eq(next_us, 2 * S);
	/* the store was away: again at once */
	ck_assert_uint_eq(course_ask(c, 2 * S, 10, id, &next_us), 1);
	course_unasked(c);
	ck_assert(!course_is_over(c));
	ck_assert_uint_eq(ask(c, 10, (const int64_t[]){3, 0}, false, 2 * S, id, other), 1);
	ck_assert(course_is_over(c) && other[0]);
	course_back(other[0]);
	course_back(stop[3]);
	course_destroy(c);
	course_destroy(NULL);
}
END_TEST

/* What nobody put off belongs to somebody else: it is not asked for again. Nor is one that is put off for ever. */
START_TEST(left_to_others)
{
	const struct fw_due_row row[] = {{1, 0, 50, S, 0, 0}, {2, 7, 50, S, 0, 0}, {3, 7, 50, S, 0, 0}};
	struct course *c = course(&rules, row, 3);
	struct fw_plan_item *stop[10];
	int64_t id[10], next_us;
	int n = 0;

	ck_assert_uint_eq(ask(c, 10, NULL, false, 0, id, stop), 3);
	ck_assert(course_is_over(c));
	ck_assert_uint_eq(course_ask(c, 0, 10, id, &next_us), 0);
	course_destroy(c);
	c = course(&rules, row, 3);
	for (int64_t now_us = 0; !course_is_over(c); now_us += S) {
		ask(c, 10, NULL, true, now_us, id, stop);
		ck_assert(++n < 1000);
	}
	ck_assert(n > 10);
	course_destroy(c);
	c = course(&rules, NULL, 0);
	ck_assert(course_is_over(c));
	ck_assert_uint_eq(course_forecast(c)->known, 0);
	course_destroy(c);
}
END_TEST

/*
 * Workers: each feed is one's own, a host's feeds all the same one's; the others' come behind, from their end. What a person asked for is
 * first. All durations differ: they fall over a worker's own and rise over the others', and the shortest may be on either side.
 */
START_TEST(shared)
{
	enum { N = 100, W = 3, ASKED = 41 };
	struct fw_due_row row[N];
	int owner_of_host[10] = {0};
	int own_n = 0, first_n = 0;

	for (int i = 0; i < N; i++)
		row[i] = (struct fw_due_row){i + 1, i % 2 ? i % 10 : 0, 50 + i, (1 + i * 37 % 101) * S, 0, 0};
	row[ASKED - 1].due_at_ms = FW_DUE_FIRST;
	for (int w = 0; w < W; w++) {
		struct course_rules r = {.plan = {.policy = FW_PLAN_LONGEST, .slots = 3}, .index = (uint32_t)w, .workers = W};
		struct course *c = course(&r, row, N);
		int64_t id[N], next_us;
		int from, to, low;

		ck_assert_uint_eq(course_ask(c, 0, N, id, &next_us), N);
		from = id[0] == ASKED;
		to = N - !from;
		first_n += from;
		ck_assert(from || id[N - 1] == ASKED);
		low = from;
		for (int i = from; i < to; i++)
			low = row[id[i] - 1].expect_us < row[id[low] - 1].expect_us ? i : low;
		for (int i = from + 1; i < to; i++)
			ck_assert((row[id[i] - 1].expect_us < row[id[i - 1] - 1].expect_us) == (i <= low));
		for (int i = from; i < low; i++) {
			int *owner = &owner_of_host[row[id[i] - 1].host_id];

			ck_assert(!row[id[i] - 1].host_id || !*owner || *owner == w + 1);
			*owner = w + 1;
		}
		own_n += low;
		course_destroy(c);
	}
	ck_assert_int_eq(first_n, 1);
	ck_assert(own_n >= N - W && own_n <= N);
}
END_TEST

/* ---- a backlog ----------------------------------------------------------------------------------------------------------------------- */

#define NOW (1000 * FW_DAY_MS)

static struct course_rules backlog = {.by_value = true, .now_ms = NOW, .workers = 1};

/* What a person asked for; then in turns what is new, the oldest first, and what is known, that first which is late by most of its intervals. */
START_TEST(most_worth_first)
{
	const struct fw_due_row row[] = {
		{1, 0, NOW - 7 * FW_DAY_MS, 0, 0, NOW - 372 * FW_DAY_MS}, /* once a year, a week late */
		{2, 0, NOW - FW_HOUR_MS, 0, 0, NOW - 75 * FW_MINUTE_MS},  /* each quarter, an hour late */
		{3, 0, NOW - 12 * FW_HOUR_MS, 0, 0, NOW - 36 * FW_HOUR_MS}, /* once a day, half a day late */
		{4, 0, NOW - 5, 0, 0, 0}, {5, 0, NOW - 6, 0, 0, 0}, {6, 0, NOW - 4, 0, 0, 0}, {7, 0, NOW - 3, 0, 0, 0},
		{8, 0, FW_DUE_FIRST, 0, 0, NOW - 1}, {9, 0, FW_DUE_FIRST, 0, 0, 0},
		{10, 0, NOW + 5, 0, 0, NOW + 7}, /* a clock was put back: it is not late at all */
	};
	const int64_t want[] = {8, 9, 5, 2, 4, 3, 6, 1, 7, 10, 0};
	struct course *c = course(&backlog, row, FW_N(row));
	struct fw_plan_item *stop[10];
	int64_t id[10];

	ck_assert_uint_eq(course_ready(c), 10);
	ck_assert_uint_eq(ask(c, 10, want, false, 0, id, stop), 10);
	for (size_t i = 0; i < FW_N(row); i++)
		ck_assert_msg(id[i] == want[i], "place %zu is feed %lld's, not %lld's", i, (long long)id[i], (long long)want[i]);
	ck_assert(course_is_over(c) && !course_is_idle(c));
	for (size_t i = 0; i < FW_N(row); i++)
		course_back(stop[i]);
	ck_assert(course_is_idle(c));
	course_destroy(c);
	ck_assert(fw_late_intervals(NOW, NOW - FW_SECOND_MS, NOW - 1) <= 1.0); /* due before its visit */
	ck_assert(fw_late_intervals(INT64_MAX, INT64_MIN, INT64_MAX) > 0);
	ck_assert(fw_late_intervals(INT64_MIN, INT64_MAX, 0) <= 0);
}
END_TEST

/* Loans of a course that another took the place of: it goes with the last of them, or with the new one, whichever is first (ASan looks). */
START_TEST(one_after_another)
{
	const struct fw_due_row row[] = {{1, 0, 50, S, 0, 9}, {2, 7, 50, S, 0, 9}, {3, 7, 50, S, 0, 9}};
	struct course *c[4];
	struct fw_plan_item *stop[4][10];
	int64_t id[10];

	for (int i = 0; i < 4; i++) {
		c[i] = course(&backlog, row, 3);
		course_follow(c[i], i ? c[i - 1] : NULL);
		if (i == 1)
			continue; /* nothing of the second was lent: it is gone at once */
		ck_assert_uint_eq(ask(c[i], 10, (const int64_t[]){3, 1, 0}, false, 0, id, stop[i]), 3);
		ck_assert(!course_is_idle(c[i]));
	}
	course_back(stop[2][0]);
	course_back(stop[0][1]);
	course_back(stop[0][0]);
	course_back(stop[3][0]);
	course_back(stop[3][1]);
	ck_assert(!course_is_idle(c[3])); /* one of the third's is out */
	course_destroy(c[3]);
}
END_TEST

/*
 * Item 4 of fairness on this way too: 500 of one host, late by years, and 500 of others: with k slots the others' are all lent as fast
 * as if the host were not there, but for what it may have at once.
 */
START_TEST(a_crowd_is_in_nobodys_way)
{
	enum { N = 500, SLOTS = 20, MAX = 2 };
	struct course_rules r = backlog;
	static struct fw_due_row row[2 * N];
	struct fw_plan_item *stop[SLOTS];
	int64_t id[SLOTS];
	struct course *c;
	int others = 0, batches = 0;

	r.plan.host_max = MAX;
	for (int i = 0; i < 2 * N; i++)
		row[i] = (struct fw_due_row){i + 1, i < N ? 7 : 0, i < N ? 1000 : NOW - FW_HOUR_MS - i, S, 0, 500};
	c = course(&r, row, 2 * N);
	ck_assert_uint_eq(course_ready(c), N + MAX);
	while (others < N) {
		int64_t next_us;
		size_t n = course_ask(c, 0, SLOTS, id, &next_us), crowd = 0;
		struct fw_lease lease[SLOTS] = {{.fence = 0}};

		for (size_t i = 0; i < n; i++) {
			lease[i].feed.id = id[i];
			crowd += id[i] <= N;
		}
		course_got(c, lease, n, false, 0, S, stop);
		ck_assert(crowd <= MAX);
		others += (int)(n - crowd);
		batches++;
		for (size_t i = 0; i < n; i++)
			course_back(stop[i]);
	}
	ck_assert_int_le(batches, N / (SLOTS - MAX) + 2);
	course_destroy(c);
}
END_TEST

/* ---- always more than can be done ----------------------------------------------------------------------------------------------------- */

#define FEEDS 400

static int64_t interval_of(int i)
{
	return FW_MINUTE_MS * (15 + (int64_t)i * i * 1425 / FEEDS / FEEDS); /* a quarter of an hour to a day, most of them short */
}

/*
 * Three times as much comes due as can be visited, for three days, and a course is made every minute. Each has its turn: the longest that
 * any waits is not much more than three of its intervals, whatever its interval is; by due time the quick ones wait for many.
 * new_every: one that was never visited comes every so many minutes; 0: none. *worst: the longest wait, in intervals; *first: of a new one, in courses.
 */
static void overload(bool by_value, int new_every, double *worst, int64_t *first)
{
	static struct fw_due_row row[FEEDS];
	double demand = 0, spare = 0; /* a minute's */
	int64_t step = FW_MINUTE_MS, end = NOW + 3 * FW_DAY_MS;

	*worst = 0;
	*first = 0;
	for (int i = 0; i < FEEDS; i++) {
		demand += (double)step / (double)interval_of(i);
		row[i] = (struct fw_due_row){i + 1, 0, NOW + interval_of(i) * (i % 7) / 7, 0, 0, NOW - interval_of(i) * (7 - i % 7) / 7};
	}
	for (int64_t now = NOW; now < end; now += step) {
		static struct fw_due_row due[FEEDS + 1];
		static int64_t id[FEEDS];
		struct course_rules r = {.by_value = true, .now_ms = now, .workers = 1};
		struct course *c;
		int64_t next_us;
		size_t n = 0;

		for (int i = 0; i < FEEDS; i++) {
			if (row[i].due_at_ms <= now)
				due[n++] = row[i];
		}
		if (new_every && now / step % new_every == 0)
			due[n++] = (struct fw_due_row){FEEDS + 1, 0, now, 0, 0, 0};
		spare += demand / 3;
		if (!by_value) { /* what the ordinary claim does */
			for (; spare >= 1 && n; spare--) {
				size_t at = 0;

				for (size_t i = 1; i < n; i++)
					at = due[i].due_at_ms < due[at].due_at_ms ? i : at;
				id[0] = due[at].feed_id;
				due[at] = due[--n];
				*worst = FW_MAX(*worst, (double)(now - row[id[0] - 1].last_visit_ms) / (double)interval_of((int)id[0] - 1));
				row[id[0] - 1].last_visit_ms = now;
				row[id[0] - 1].due_at_ms = now + interval_of((int)id[0] - 1);
			}
			continue;
		}
		c = course(&r, due, n);
		n = course_ask(c, 0, FW_MIN((size_t)spare, (size_t)FEEDS), id, &next_us);
		spare -= (double)n;
		for (size_t i = 0; i < n; i++) {
			if (id[i] > FEEDS) {
				*first = FW_MAX(*first, (int64_t)i + 1);
				continue;
			}
			*worst = FW_MAX(*worst, (double)(now - row[id[i] - 1].last_visit_ms) / (double)interval_of((int)id[i] - 1));
			row[id[i] - 1].last_visit_ms = now;
			row[id[i] - 1].due_at_ms = now + interval_of((int)id[i] - 1);
		}
		course_unasked(c);
		course_destroy(c);
	}
	for (int i = 0; i < FEEDS; i++)
		*worst = FW_MAX(*worst, (double)(end - row[i].last_visit_ms) / (double)interval_of(i));
}

START_TEST(each_has_its_turn)
{
	double ours, by_due, with_new;
	int64_t first;

	overload(true, 0, &ours, &first);
	overload(false, 0, &by_due, &first);
	printf("# three times too much to do: the longest wait is %.1f intervals by value, %.1f by due time\n", ours, by_due);
	ck_assert_msg(ours < 4, "a feed waited for %.1f of its intervals", ours);
	ck_assert(by_due > 2 * ours);
	overload(true, 10, &with_new, &first);
	ck_assert_int_eq(first, 1); /* at once */
	ck_assert_msg(with_new < 1.5 * ours, "beside new ones a feed waited for %.1f of its intervals", with_new);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("course");
	TCase *t = tcase_create("course");

	tcase_add_test(t, host_by_host);
	tcase_add_test(t, left_to_others);
	tcase_add_test(t, shared);
	tcase_add_test(t, most_worth_first);
	tcase_add_test(t, one_after_another);
	tcase_add_test(t, a_crowd_is_in_nobodys_way);
	tcase_add_test(t, each_has_its_turn);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	return run_suite(s);
}
