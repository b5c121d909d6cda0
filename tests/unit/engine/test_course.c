/* SPDX-License-Identifier: ISC */
/* The course: in which order, how many of a host at once, what is put off, and how workers share it. */
#include <check.h>
#include <stdlib.h>

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
	course_back(c, stop[1]);
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
	course_back(c, other[0]);
	course_back(c, stop[3]);
	course_destroy(c);
	course_destroy(NULL);
}
END_TEST

/* What nobody put off belongs to somebody else: it is not asked for again. Nor is one that is put off for ever. */
START_TEST(left_to_others)
{
	const struct fw_due_row row[] = {{1, 0, 50, S, 0}, {2, 7, 50, S, 0}, {3, 7, 50, S, 0}};
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
		row[i] = (struct fw_due_row){i + 1, i % 2 ? i % 10 : 0, 50 + i, (1 + i * 37 % 101) * S, 0};
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

int main(void)
{
	Suite *s = suite_create("course");
	TCase *t = tcase_create("course");

	tcase_add_test(t, host_by_host);
	tcase_add_test(t, left_to_others);
	tcase_add_test(t, shared);
	suite_add_tcase(s, t);
	return run_suite(s);
}
