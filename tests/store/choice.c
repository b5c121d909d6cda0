/* SPDX-License-Identifier: ISC */
/*
 * Which feeds a claim takes, on every driver: by their numbers, ahead of a host's time, those that do not take long; and what is due at
 * all. LIM-06, invariant 6.
 */
#include <stdlib.h>

#include "common.h"
#include "store/host.h"

static struct fw_arena A;

static void setup(void)
{
	fw_arena_init(&A, 0);
}

static void teardown(void)
{
	fw_arena_finish(&A);
}

/* A new store whose driver knows ABI 5; NULL: this one does not yet. */
static struct fw_store *fresh5(int driver)
{
	struct fw_store *st = fresh(driver);

	if (st->driver->due_list)
		return st;
	fw_store_close(st);
	return NULL;
}

#define CLAIM_MAX 100

static struct fw_lease L[CLAIM_MAX];

static struct fw_claim_got claim(struct fw_store *st, struct fw_claim_ask ask)
{
	struct fw_claim_got got;
	struct fw_err err = {0};

	ask.worker = ask.worker ? ask.worker : "w";
	ask.now_ms = ask.now_ms ? ask.now_ms : NOW;
	ask.lease_ms = 600000;
	ask.max = ask.max ? ask.max : CLAIM_MAX;
	OK(fw_store_claim(st, &ask, &A, L, &got, &err));
	return got;
}

/* How many of these one worker gets. */
static struct fw_claim_got claim_ids(struct fw_store *st, const int64_t *id, size_t n, struct fw_claim_ask ask)
{
	ask.ids = id;
	ask.id_n = n;
	return claim(st, ask);
}

static void commit_all(struct fw_store *st, const struct fw_lease *l, size_t n, int64_t now)
{
	struct fw_outcome o[CLAIM_MAX];
	struct fw_feed f[CLAIM_MAX];
	struct fw_err err = {0};

	for (size_t i = 0; i < n; i++) {
		o[i] = outcome_of(&l[i], &f[i], now);
		f[i].due_at_ms = NOW;
	}
	OK(fw_store_commit(st, &(struct fw_commit){.now_ms = now, .outcome = o, .n = n}, &err));
	for (size_t i = 0; i < n; i++)
		ck_assert_int_eq(o[i].rc, 0);
}

static void status_set(struct fw_store *st, int64_t id, enum fw_feed_status status)
{
	struct fw_feed f = {.id = id, .status = status};
	struct fw_err err = {0};

	OK(fw_store_feed_set(st, &f, FW_SET_STATUS, &err));
}

/* ---- by number ---------------------------------------------------------------------------------------------------------- */

START_TEST(numbers_in_their_order)
{
	struct fw_store *st = fresh5(_i);
	int64_t first, id[11], none = 1;
	struct fw_claim_got got;

	if (!st)
		return;
	subscribe_many(st, "https://h%d.example/", 0, 8, NOW - 5);
	first = subscribe(st, "https://a.example/", NOW) - 8;
	subscribe(st, "https://b.example/", NOW + 1);
	status_set(st, first + 2, FW_FEED_PAUSED);
	status_set(st, first + 3, FW_FEED_GONE);
	ck_assert_uint_eq(claim_ids(st, (int64_t[]){first + 4}, 1, (struct fw_claim_ask){.worker = "other"}).n, 1);
	/* twice the same; unknown; paused; gone; lent; not due */
	memcpy(id, (int64_t[]){first + 7, first + 1, first + 7, first + 999, first + 2, first + 3, first + 4, first + 9, 0, -5, first + 8}, sizeof(id));
	got = claim_ids(st, id, FW_N(id), (struct fw_claim_ask){0});
	ck_assert_uint_eq(got.n, 3);
	ck_assert_uint_eq(got.deferred_n, 0);
	ck_assert_int_eq(L[0].feed.id, first + 7);
	ck_assert_int_eq(L[1].feed.id, first + 1);
	ck_assert_int_eq(L[2].feed.id, first + 8);
	ck_assert_str_eq(L[2].feed.url.p, "https://a.example/");
	ck_assert(L[0].fence > 0 && L[0].fence != L[1].fence && L[0].until_ms == NOW + 600000);
	check_clean(st);
	commit_all(st, L, 3, NOW);
	ck_assert_uint_eq(claim_ids(st, &none, 0, (struct fw_claim_ask){0}).n, 0); /* none of none, and not all */
	got = claim_ids(st, (int64_t[]){first, first + 5, first + 6}, 3, (struct fw_claim_ask){.max = 2});
	ck_assert_uint_eq(got.n, 2);
	ck_assert_int_eq(L[1].feed.id, first + 5);
	ck_assert_uint_eq(claim_ids(st, (int64_t[]){first + 6}, 1, (struct fw_claim_ask){.due_before_ms = NOW - 6}).n, 0);
	ck_assert_uint_eq(claim(st, (struct fw_claim_ask){0}).n, 4); /* what others may have; three are due again */
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(numbers_within_the_budget)
{
	struct fw_claim_ask ask = {.host_max = 2};
	struct fw_store *st = fresh5(_i);
	struct fw_lease mine[CLAIM_MAX];
	struct fw_claim_got got;
	int64_t id[6];

	if (!st)
		return;
	subscribe_many(st, "https://crowd.example/%d", 0, 5, NOW - 5);
	id[5] = subscribe(st, "https://alone.example/", NOW);
	for (int i = 0; i < 5; i++)
		id[i] = id[5] - 1 - i;
	got = claim_ids(st, id, 6, ask);
	ck_assert_uint_eq(got.n, 3);
	ck_assert_uint_eq(got.deferred_n, 3);
	ck_assert(L[0].feed.id == id[0] && L[1].feed.id == id[1] && L[2].feed.id == id[5]);
	memcpy(mine, L, sizeof(mine));
	check_clean(st);
	got = claim(st, ask); /* which parks them, or not */
	ck_assert_uint_eq(got.n, 0);
	check_clean(st);
	commit_all(st, mine, 1, NOW);
	got = claim_ids(st, &id[2], 3, ask);
	ck_assert_uint_eq(got.n, 1);
	ck_assert_uint_eq(got.deferred_n, 2);
	ck_assert_int_eq(L[0].feed.id, id[2]);
	check_clean(st);
	commit_all(st, L, 1, NOW);
	commit_all(st, &mine[1], 2, NOW);
	check_clean(st);
	ask.host_gap_ms = 1000;
	got = claim_ids(st, id, 5, ask); /* those before were asked without a gap */
	ck_assert_uint_eq(got.n, 1);
	ck_assert_uint_eq(got.deferred_n, 4);
	ask.now_ms = NOW + 999;
	ck_assert_uint_eq(claim_ids(st, &id[1], 4, ask).n, 0);
	ask.now_ms = NOW + 1000;
	ck_assert_uint_eq(claim_ids(st, &id[1], 4, ask).n, 1);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* All of a parked crowd, by number, last one first; nobody is forgotten and nobody is lent twice. */
START_TEST(numbers_and_turns)
{
	struct fw_store *st = fresh5(_i);
	struct fw_claim_ask ask = {.host_max = 1};
	bool seen[20] = {false};
	int64_t last;

	if (!st)
		return;
	subscribe_many(st, "https://crowd.example/%d", 0, 19, NOW - 1000);
	last = subscribe(st, "https://crowd.example/last", NOW - 1000);
	for (int i = 0; i < 20; i++) {
		int64_t id = last - i;

		if (i % 3 == 0) { /* one by its turn, in between: the turn is somebody's all the time */
			ck_assert_uint_eq(claim(st, ask).n, 1);
			id = L[0].feed.id;
		} else if (!seen[last - id]) {
			ck_assert_uint_eq(claim_ids(st, &id, 1, ask).n, 1);
			ck_assert_int_eq(L[0].feed.id, id);
		} else {
			continue;
		}
		check_clean(st);
		ck_assert(!seen[last - id]);
		seen[last - id] = true;
		struct fw_feed f;
		struct fw_outcome o = outcome_of(&L[0], &f, NOW);
		ck_assert_int_eq(commit_one(st, &o, NOW), 0);
		check_clean(st);
	}
	while (claim(st, ask).n == 1) {
		struct fw_feed f;
		struct fw_outcome o = outcome_of(&L[0], &f, NOW);

		ck_assert(!seen[last - L[0].feed.id]);
		seen[last - L[0].feed.id] = true;
		ck_assert_int_eq(commit_one(st, &o, NOW), 0);
	}
	for (int i = 0; i < 20; i++)
		ck_assert(seen[i]);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* ---- what is due --------------------------------------------------------------------------------------------------------- */

struct due {
	struct fw_due_row row[CLAIM_MAX];
	size_t n, stop;
};

static int keep_due(void *ctx, const struct fw_due_row *row)
{
	struct due *d = ctx;

	ck_assert_uint_lt(d->n, CLAIM_MAX);
	d->row[d->n++] = *row;
	return d->n == d->stop ? 77 : 0;
}

static struct due due_at(struct fw_store *st, int64_t before_ms, size_t limit)
{
	struct fw_err err = {0};
	struct due d = {.n = 0};

	OK(fw_store_due_list(st, before_ms, limit, keep_due, &d, &err));
	for (size_t i = 1; i < d.n; i++)
		ck_assert_int_ge(d.row[i].due_at_ms, d.row[i - 1].due_at_ms - 10000);
	return d;
}

static const struct fw_due_row *due_of(const struct due *d, int64_t id)
{
	const struct fw_due_row *found = NULL;

	for (size_t i = 0; i < d->n; i++) {
		if (d->row[i].feed_id == id) {
			ck_assert_ptr_null(found);
			found = &d->row[i];
		}
	}
	return found;
}

START_TEST(due_are_listed)
{
	struct fw_claim_ask ask = {.host_max = 1, .now_ms = NOW - 30000};
	struct due d = {.stop = 2};
	struct fw_store *st = fresh5(_i);
	struct fw_outcome o;
	struct fw_err err = {0};
	struct fw_feed f;
	int64_t first = 0, cooled;

	if (!st)
		return;
	ck_assert_uint_eq(due_at(st, NOW, 0).n, 0);
	for (int i = 0; i < 6; i++) { /* 60 s, 50 s ... 10 s ago */
		char url[60];
		int64_t id;

		ck_assert(fw_snprintf(url, sizeof(url), "https://crowd.example/%d", i));
		id = subscribe(st, url, NOW - 60000 + 10000 * i);
		first = i ? first : id;
	}
	subscribe_many(st, "https://h%d.example/", 0, 6, NOW - 5000); /* first + 6 ... */
	subscribe(st, "https://later.example/", NOW + 1);
	d = due_at(st, NOW, 0);
	ck_assert_uint_eq(d.n, 12);
	ck_assert_int_eq(d.row[0].feed_id, first);
	ck_assert_uint_eq(due_at(st, NOW + 1, 0).n, 13);
	ck_assert_uint_eq(due_at(st, NOW, 5).n, 5);
	ck_assert_uint_eq(due_at(st, NOW - 5001, 0).n, 6);
	for (int i = 0; i < 6; i++) {
		ck_assert_int_eq(due_of(&d, first + i)->host_id, due_of(&d, first)->host_id);
		ck_assert_int_ne(due_of(&d, first + i)->host_id, 0);
		ck_assert_int_eq(due_of(&d, first + i)->due_at_ms, NOW - 60000 + 10000 * i);
	}
	d = (struct due){.stop = 2};
	ck_assert_int_eq(fw_store_due_list(st, NOW, 0, keep_due, &d, &err), 77);
	ck_assert_uint_eq(d.n, 2);
	/* one of the crowd is lent; three more were due then: parked or not, they are listed; one is put off; one paused, one gone */
	ck_assert_uint_eq(claim(st, ask).n, 1);
	status_set(st, first + 6, FW_FEED_PAUSED);
	status_set(st, first + 7, FW_FEED_GONE);
	ck_assert_int_eq(L[0].feed.id, first);
	d = due_at(st, NOW, 0);
	ck_assert_uint_eq(d.n, 9);
	ck_assert(!due_of(&d, first) && !due_of(&d, first + 6) && !due_of(&d, first + 7));
	ck_assert_int_eq(due_of(&d, first + 1)->host_id, L[0].host_id);
	ck_assert_int_eq(due_of(&d, first + 1)->due_at_ms, NOW - 50000);
	cooled = first + 8;
	ck_assert_uint_eq(claim_ids(st, &cooled, 1, (struct fw_claim_ask){0}).n, 1);
	o = outcome_of(&L[0], &f, NOW);
	f.due_at_ms = NOW - 1;
	f.expect_us = 5000;
	f.expect_dev_us = 70;
	o.host_cooldown_ms = NOW + 100000;
	ck_assert_int_eq(commit_one(st, &o, NOW), 0);
	d = due_at(st, NOW, 0);
	ck_assert_uint_eq(d.n, 9);
	ck_assert_int_eq(due_of(&d, cooled)->due_at_ms, NOW - 1);
	ck_assert_int_eq(due_of(&d, cooled)->expect_us, 5000);
	ck_assert_int_eq(due_of(&d, cooled)->expect_dev_us, 70);
	ck_assert_uint_eq(claim_ids(st, &cooled, 1, (struct fw_claim_ask){0}).n, 0);
	ck_assert_uint_eq(claim_ids(st, &cooled, 1, (struct fw_claim_ask){.now_ms = NOW + 99999}).deferred_n, 1);
	ck_assert_uint_eq(claim_ids(st, &cooled, 1, (struct fw_claim_ask){.now_ms = NOW + 100000}).n, 1);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* ---- what is new in rows --------------------------------------------------------------------------------------------------- */

static int keep_visit(void *ctx, const struct fw_visit *v)
{
	*(struct fw_visit *)ctx = *v;
	return 0;
}

START_TEST(members_are_kept)
{
	struct fw_store *st = fresh5(_i);
	struct fw_feed f, push = {.push_until_ms = NOW + 5};
	struct fw_outcome o;
	struct fw_visit v;
	struct fw_err err = {0};

	if (!st)
		return;
	push.id = subscribe(st, "https://a.example/", NOW);
	f = find(st, push.id, &A);
	ck_assert(f.push_until_ms == 0 && f.expect_parts == 0);
	OK(fw_store_feed_set(st, &push, FW_SET_PUSH, &err));
	ck_assert_uint_eq(claim(st, (struct fw_claim_ask){0}).n, 1);
	ck_assert_int_eq(L[0].feed.push_until_ms, NOW + 5);
	ck_assert_int_eq(L[0].host_id, 0);
	o = outcome_of(&L[0], &f, NOW);
	f.expect_parts = (INT64_C(1) << 60) - 3;
	f.push_until_ms = 7; /* not its business */
	o.visit.queue_us = 11;
	o.visit.parse_us = 12;
	o.visit.store_us = INT64_C(1) << 40;
	o.visit.error = FW_STR("[\"words\"]");
	ck_assert_int_eq(commit_one(st, &o, NOW), 0);
	f = find(st, push.id, &A);
	ck_assert_int_eq(f.expect_parts, (INT64_C(1) << 60) - 3);
	ck_assert_int_eq(f.push_until_ms, NOW + 5);
	for (int i = 0; i < 2; i++) {
		struct fw_visit_query q = {.feed_id = i ? push.id : 0, .oldest_first = !i};

		OK(fw_store_visit_list(st, &q, keep_visit, &v, &err));
		ck_assert(v.queue_us == 11 && v.parse_us == 12 && v.store_us == INT64_C(1) << 40);
	}
	push.push_until_ms = 0;
	OK(fw_store_feed_set(st, &push, FW_SET_PUSH, &err));
	status_set(st, push.id, FW_FEED_PAUSED);
	f = find(st, push.id, &A);
	ck_assert(f.push_until_ms == 0 && f.expect_parts == (INT64_C(1) << 60) - 3);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

void choice_tests(Suite *s)
{
	TCase *t = tcase_create("choice");
	const TTest *const every[] = {numbers_in_their_order, numbers_within_the_budget, numbers_and_turns, due_are_listed, members_are_kept};

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	for (size_t i = 0; i < FW_N(every); i++)
		tcase_add_loop_test(t, every[i], 0, under_test_n);
	suite_add_tcase(s, t);
}
