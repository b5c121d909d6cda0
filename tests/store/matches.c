/* SPDX-License-Identifier: ISC */
/* Matches of orders, on each driver: listed in order, made dead and alive, removed, counted. */
#include <stdio.h>

#include "common.h"

#define ORDER INT64_C(1790000000000123)
#define MANY 1300 /* several pages of each driver */

static struct fw_match match(int64_t order_id, int64_t change_id)
{
	return (struct fw_match){.order_id = order_id,
		.change_id = change_id,
		.entry_id = change_id - change_id % 2,
		.feed_id = change_id % 40 + 1,
		.at_ms = NOW + change_id,
		.changed = change_id % 2 != 0};
}

static void put(struct fw_store *st, struct fw_match m, bool dead)
{
	struct fw_err err = {0};

	OK(fw_store_match_put(st, &m, 1, dead, &err));
}

struct seen {
	int64_t last_id;
	size_t n, max;
};

static int see(void *ctx, const struct fw_match *m)
{
	struct fw_match want = match(m->order_id, m->change_id);
	struct seen *s = ctx;

	ck_assert(m->change_id > s->last_id);
	ck_assert(m->entry_id == want.entry_id && m->feed_id == want.feed_id && m->at_ms == want.at_ms &&
		m->changed == want.changed);
	s->last_id = m->change_id;
	return ++s->n == s->max;
}

static size_t count(struct fw_store *st, struct fw_match_query q)
{
	struct seen s = {.last_id = q.after_change_id};
	struct fw_err err = {0};

	OK(fw_store_match_list(st, &q, see, &s, &err));
	return s.n;
}

struct sums {
	int64_t pending_n, dead_n, oldest_ms;
	size_t order_n;
};

static int sum(void *ctx, int64_t order_id, int64_t pending_n, int64_t dead_n, int64_t oldest_ms)
{
	struct sums *s = ctx;

	s->order_n++;
	if (order_id == ORDER) {
		s->pending_n = pending_n;
		s->dead_n = dead_n;
		s->oldest_ms = oldest_ms;
	}
	return 0;
}

static struct sums sums_of(struct fw_store *st)
{
	struct sums s = {0};
	struct fw_err err = {0};

	OK(fw_store_match_summary(st, sum, &s, &err));
	return s;
}

START_TEST(matches_are_listed_by_change)
{
	struct fw_store *st = fresh(_i);
	struct fw_match m[MANY];
	struct fw_err err = {0};
	struct seen s = {.max = 7};

	for (size_t i = 0; i < MANY; i++)
		m[i] = match(ORDER, (int64_t)((i * 7919) % MANY) + 2); /* in another order than listed */
	OK(fw_store_match_put(st, m, MANY, false, &err));
	put(st, match(ORDER + 1, 5), false);
	ck_assert_uint_eq(count(st, (struct fw_match_query){.order_id = ORDER}), MANY);
	ck_assert_uint_eq(count(st, (struct fw_match_query){.order_id = ORDER, .after_change_id = 1000}), MANY - 999);
	ck_assert_uint_eq(count(st, (struct fw_match_query){.order_id = ORDER, .limit = 1001}), 1001);
	ck_assert_uint_eq(count(st, (struct fw_match_query){.order_id = ORDER + 1}), 1);
	ck_assert_uint_eq(count(st, (struct fw_match_query){.order_id = ORDER, .dead = true}), 0);
	ck_assert_int_eq(fw_store_match_list(st, &(struct fw_match_query){.order_id = ORDER}, see, &s, &err), 1);
	ck_assert_uint_eq(s.n, 7);
	fw_store_close(st);
}
END_TEST

START_TEST(a_match_is_stored_once)
{
	struct fw_store *st = fresh(_i);

	struct fw_match later = match(ORDER, 4);

	later.at_ms += 1000;
	put(st, match(ORDER, 4), false);
	put(st, match(ORDER, 4), false);
	put(st, later, false);
	ck_assert_uint_eq(count(st, (struct fw_match_query){.order_id = ORDER}), 1);
	ck_assert_int_eq(sums_of(st).pending_n, 1);
	ck_assert_int_eq(sums_of(st).oldest_ms, match(ORDER, 4).at_ms);
	put(st, later, true); /* found by its change, and has its new time */
	ck_assert(sums_of(st).pending_n == 0 && sums_of(st).dead_n == 1);
	put(st, later, false);
	ck_assert(sums_of(st).oldest_ms == later.at_ms && sums_of(st).dead_n == 0);
	fw_store_close(st);
}
END_TEST

START_TEST(dead_matches_are_kept_apart_and_come_back)
{
	struct fw_store *st = fresh(_i);
	struct sums s;

	for (int64_t id = 2; id < 12; id++)
		put(st, match(ORDER, id), false);
	put(st, match(ORDER, 2), true);
	put(st, match(ORDER, 7), true);
	ck_assert_uint_eq(count(st, (struct fw_match_query){.order_id = ORDER}), 8);
	ck_assert_uint_eq(count(st, (struct fw_match_query){.order_id = ORDER, .dead = true}), 2);
	s = sums_of(st);
	ck_assert(s.pending_n == 8 && s.dead_n == 2 && s.oldest_ms == NOW + 3);
	put(st, match(ORDER, 2), false);
	ck_assert_uint_eq(count(st, (struct fw_match_query){.order_id = ORDER}), 9);
	ck_assert_uint_eq(count(st, (struct fw_match_query){.order_id = ORDER, .dead = true}), 1);
	fw_store_close(st);
}
END_TEST

START_TEST(matches_are_removed_one_by_one_or_all)
{
	struct fw_store *st = fresh(_i);
	struct fw_err err = {0};

	for (int64_t id = 2; id < 12; id++)
		put(st, match(ORDER, id), false);
	put(st, match(ORDER, 20), true);
	put(st, match(ORDER + 1, 3), false);
	OK(fw_store_match_remove(st, ORDER, false, (const int64_t[]){3, 7, 9, 20, 900}, 5, &err));
	ck_assert_uint_eq(count(st, (struct fw_match_query){.order_id = ORDER}), 7);
	ck_assert_uint_eq(count(st, (struct fw_match_query){.order_id = ORDER, .after_change_id = 7}), 3);
	OK(fw_store_match_remove(st, ORDER, false, &(int64_t){2}, 0, &err)); /* a list of none */
	ck_assert_uint_eq(count(st, (struct fw_match_query){.order_id = ORDER}), 7);
	ck_assert_uint_eq(count(st, (struct fw_match_query){.order_id = ORDER + 1}), 1);
	OK(fw_store_match_remove(st, ORDER, false, NULL, 0, &err));
	ck_assert_uint_eq(count(st, (struct fw_match_query){.order_id = ORDER}), 0);
	ck_assert_uint_eq(count(st, (struct fw_match_query){.order_id = ORDER, .dead = true}), 1);
	ck_assert_uint_eq(sums_of(st).order_n, 2);
	OK(fw_store_match_remove(st, ORDER, true, NULL, 0, &err));
	OK(fw_store_match_remove(st, ORDER, true, NULL, 0, &err));
	ck_assert_uint_eq(sums_of(st).order_n, 1);
	fw_store_close(st);
}
END_TEST

START_TEST(a_match_without_ids_is_refused)
{
	struct fw_store *st = fresh(_i);
	struct fw_match m = {.order_id = 1, .change_id = 1};
	struct fw_err err = {0};

	IS(fw_store_match_put(st, &m, 1, false, &err), FW_EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "above 0"));
	OK(fw_store_match_put(st, NULL, 0, false, &err));
	fw_store_close(st);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("matches");
	TCase *t = tcase_create("every driver");
	const TTest *const every[] = {matches_are_listed_by_change, a_match_is_stored_once,
		dead_matches_are_kept_apart_and_come_back, matches_are_removed_one_by_one_or_all,
		a_match_without_ids_is_refused};

	stores_begin();
	tcase_set_timeout(t, 60);
	for (size_t i = 0; i < FW_N(every); i++)
		tcase_add_loop_test(t, every[i], 0, under_test_n);
	suite_add_tcase(s, t);
	return run_suite(s);
}
