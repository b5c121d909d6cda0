/* SPDX-License-Identifier: ISC */
/*
 * The fetch plan: the order of each policy, its limits, no idle slots without a reason, and the
 * bound for any order.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "sched/plan.h"
#include "../../suite.h"

#define S 1000000 /* us */
#define MAX 120

static uint64_t seed;

static uint32_t next(void)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(seed >> 33);
}

static struct fw_plan_total simulate(
	const struct fw_plan_rules *r, struct fw_plan_item *item, size_t n, struct fw_plan_start *start)
{
	struct fw_plan_total t;

	ck_assert_int_eq(fw_plan_simulate(r, item, n, start, &t), 0);
	return t;
}

/* The order in which they start, by index, as digits. */
static void order_is(enum fw_plan_policy policy, uint32_t slots, uint32_t host_concurrency, struct fw_plan_item *item,
	size_t n, const char *want)
{
	struct fw_plan_rules r = {.policy = policy, .slots = slots, .host_concurrency = host_concurrency};
	struct fw_plan_start start[10];
	char got[11] = "";

	simulate(&r, item, n, start);
	for (size_t i = 0; i < n; i++)
		got[i] = (char)('0' + start[i].item);
	ck_assert_msg(strcmp(got, want) == 0, "%s: %s, want %s", fw_plan_policy_name(policy), got, want);
}

START_TEST(orders)
{
	struct fw_plan_item a[] = {{.host = 1, .expect_us = 3 * S}, {.host = 2, .expect_us = S},
		{.host = 3, .expect_us = 0}, {.host = 4, .expect_us = 5 * S}, {.host = 5, .expect_us = S}};
	struct fw_plan_item h[] = {
		{.host = 1, .expect_us = 4 * S},
		{.host = 2, .expect_us = 2 * S},
		{.host = 2, .expect_us = 3 * S},
		{.host = 2, .expect_us = 2 * S},
		{.host = 3, .expect_us = S},
		{.host = 4, .expect_us = 2 * S},
	};

	order_is(FW_PLAN_FIFO, 1, 0, a, 5, "01234");
	order_is(FW_PLAN_LONGEST, 1, 0, a, 5, "30214");
	order_is(FW_PLAN_HOST_PATH, 1, 0, a, 5, "30214");
	order_is(FW_PLAN_SHORTEST, 1, 0, a, 5, "14203");
	order_is(FW_PLAN_BATCH_UNORDERED, 2, 0, a, 5, "01234");
	order_is(FW_PLAN_BATCH_SORTED, 2, 0, a, 5, "14032");
	order_is(FW_PLAN_LONGEST, 2, 1, h, 6, "021534");
	order_is(FW_PLAN_HOST_PATH, 2, 1, h, 6, "201534");
}
END_TEST

START_TEST(names)
{
	enum fw_plan_policy found;

	for (int p = 0; p < FW_PLAN_POLICY_N; p++) {
		ck_assert(fw_plan_policy_find(fw_str(fw_plan_policy_name((enum fw_plan_policy)p)), &found));
		ck_assert_int_eq(found, p);
	}
	ck_assert(!fw_plan_policy_find(FW_STR("longes"), &found));
	ck_assert(!fw_plan_policy_find(FW_STR_NONE, &found));
	ck_assert_str_eq(fw_plan_policy_name(FW_PLAN_POLICY_N), "?");
}
END_TEST

START_TEST(expected_durations)
{
	struct fw_plan_item a[] = {
		{.host = 1, .expect_us = 4 * S},
		{.host = 1, .expect_us = 2 * S},
		{.host = 1},
		{.host = 2},
		{.host = 3, .expect_us = 9 * S},
		{.host = 4, .expect_us = -1},
	};

	simulate(&(struct fw_plan_rules){.slots = 1}, a, 6, NULL);
	ck_assert_int_eq(a[0].guess_us, 4 * S);
	ck_assert_int_eq(a[2].guess_us, 3 * S);
	ck_assert_int_eq(a[3].guess_us, 5 * S);
	ck_assert_int_eq(a[5].guess_us, 5 * S);
	simulate(&(struct fw_plan_rules){.slots = 1}, &a[2], 2, NULL);
	ck_assert_int_eq(a[2].guess_us, S);
	ck_assert_int_eq(a[3].guess_us, S);
}
END_TEST

/* ---- any plan -------------------------------------------------------------------------------- */

static struct fw_plan_item item[MAX];
static struct fw_plan_start start[MAX];

static size_t make(void)
{
	size_t n = next() % MAX, hosts = next() % 8;

	for (size_t i = 0; i < n; i++) {
		item[i] = (struct fw_plan_item){.host = 100 + (int64_t)i,
			.expect_us = !(next() % 5) ? 0 :
				next() % 20        ? next() % (4 * S) :
						     10 * S};
		if (hosts && next() % 4)
			item[i].host = 1 + next() % (uint32_t)hosts;
	}
	return n;
}

/* At that moment: how many run, how many of this host, and whether one of it may start. */
struct moment {
	uint32_t running, of_host;
	bool in_gap;
};

static struct moment moment(size_t n, const struct fw_plan_rules *r, int64_t name, int64_t at_us)
{
	struct moment m = {0};

	for (size_t i = 0; i < n; i++) {
		bool same = item[start[i].item].host == name,
		     runs = start[i].at_us <= at_us && at_us < start[i].until_us;

		m.running += runs;
		m.of_host += runs && same;
		m.in_gap |= same && start[i].at_us <= at_us && at_us < start[i].at_us + r->host_gap_us;
	}
	return m;
}

static void check_limits(const struct fw_plan_rules *r, size_t n)
{
	bool seen[MAX] = {false};

	for (size_t i = 0; i < n; i++) {
		const struct fw_plan_start *s = &start[i];
		int64_t name = item[s->item].host;
		struct moment m = moment(n, r, name, s->at_us);

		ck_assert(!seen[s->item]);
		seen[s->item] = true;
		ck_assert(i == 0 || s->at_us >= s[-1].at_us);
		ck_assert_int_eq(s->until_us - s->at_us, item[s->item].guess_us);
		ck_assert(s->slot < r->slots);
		ck_assert(m.running <= r->slots);
		ck_assert(!r->host_concurrency || m.of_host <= r->host_concurrency);
		for (size_t k = 0; k < i; k++) {
			bool same = item[start[k].item].host == name;

			if ((start[k].slot == s->slot && start[k].until_us > s->at_us) ||
				(same && s->at_us < start[k].at_us + r->host_gap_us))
				ck_abort_msg("%zu and %zu", k, i);
		}
	}
}

/*
 * If a feed starts late, all slots were taken the moment before, or its host was full or in its
 * gap. Not so with batches.
 */
static void check_no_slot_is_idle(const struct fw_plan_rules *r, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct moment m;

		if (start[i].at_us == 0)
			continue;
		m = moment(n, r, item[start[i].item].host, start[i].at_us - 1);
		ck_assert(
			m.running == r->slots || m.in_gap || (r->host_concurrency && m.of_host == r->host_concurrency));
	}
}

START_TEST(any_plan)
{
	seed = (uint64_t)_i;
	for (int round = 0; round < 40; round++) {
		size_t n = make();
		struct fw_plan_rules r = {.slots = 1 + next() % 20,
			.host_concurrency = next() % 4,
			.host_gap_us = next() % 2 ? next() % S : 0,
			.batch = next() % 30};

		for (int p = 0; p < FW_PLAN_POLICY_N; p++) {
			struct fw_plan_total t;
			int64_t last = 0;

			r.policy = (enum fw_plan_policy)p;
			t = simulate(&r, item, n, start);
			for (size_t i = 0; i < n; i++)
				last = FW_MAX(last, start[i].until_us);
			ck_assert_int_eq(t.total_us, last);
			ck_assert_msg(t.total_us >= fw_plan_bound(&t), "%s: %lld in less than %lld",
				fw_plan_policy_name(r.policy), (long long)t.total_us, (long long)fw_plan_bound(&t));
			check_limits(&r, n);
			if (p != FW_PLAN_BATCH_UNORDERED && p != FW_PLAN_BATCH_SORTED)
				check_no_slot_is_idle(&r, n);
		}
	}
}
END_TEST

/* Graham's bound: longest first is at most a third above the optimum, without host limits. */
START_TEST(longest_first_is_good)
{
	struct fw_plan_rules r = {.policy = FW_PLAN_LONGEST};

	seed = 77;
	for (int round = 0; round < 200; round++) {
		size_t n = make();
		struct fw_plan_total t;

		for (size_t i = 0; i < n; i++)
			item[i].host = (int64_t)i;
		r.slots = 1 + next() % 20;
		t = simulate(&r, item, n, NULL);
		ck_assert(t.total_us <= fw_plan_bound(&t) * 2);
		ck_assert(n < (size_t)8 * r.slots || 3 * t.total_us <= 4 * fw_plan_bound(&t));
	}
}
END_TEST

START_TEST(nothing_and_no_slots)
{
	struct fw_plan_rules r = {.slots = 0};
	struct fw_plan_total t;

	ck_assert_int_eq(fw_plan_simulate(&r, item, 1, NULL, &t), FW_EINVAL);
	r.slots = 4;
	t = simulate(&r, NULL, 0, NULL);
	ck_assert_int_eq(t.total_us, 0);
	ck_assert_int_eq(fw_plan_bound(&t), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit sched plan");
	TCase *t = tcase_create("plan");

	tcase_add_test(t, orders);
	tcase_add_test(t, names);
	tcase_add_test(t, expected_durations);
	tcase_add_loop_test(t, any_plan, 1, 9);
	tcase_add_test(t, longest_first_is_good);
	tcase_add_test(t, nothing_and_no_slots);
	suite_add_tcase(s, t);
	return run_suite(s);
}
