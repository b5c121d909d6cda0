/* SPDX-License-Identifier: ISC */
/*
 * Which feeds a claim takes, on every driver: by their numbers, ahead of a host's time, those that do not take long; and what is due at
 * all. LIM-06, invariant 6.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common.h"

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
	ck_assert(L[0].fence > 0 && L[1].fence > 0 && L[0].until_ms == NOW + 600000);
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

/* ---- ahead of a host's time ------------------------------------------------------------------------------------------------ */

/* The leases that were just handed out, kept by who got them. */
struct hand {
	struct fw_lease l[CLAIM_MAX];
	size_t n;
};

static size_t take(struct fw_store *st, struct hand *h, const char *worker, struct fw_claim_ask ask)
{
	size_t n;

	ask.worker = worker;
	n = claim(st, ask).n;
	memcpy(&h->l[h->n], L, n * sizeof(L[0]));
	h->n += n;
	check_clean(st);
	return n;
}

static void give(struct fw_store *st, struct hand *h, size_t n, int64_t now)
{
	h->n -= n;
	commit_all(st, &h->l[h->n], n, now);
	check_clean(st);
}

START_TEST(more_of_a_host_ahead)
{
	struct fw_store *st = fresh5(_i);
	struct fw_claim_ask two = {.host_max = 1, .host_ahead = 3}, one = {.host_max = 1};
	struct hand a = {.n = 0}, b = {.n = 0};

	if (!st)
		return;
	subscribe_many(st, "https://crowd.example/%d", 0, 12, NOW - 1000);
	ck_assert_uint_eq(take(st, &a, "a", two), 4);
	for (size_t i = 0; i < 4; i++)
		ck_assert(a.l[i].host_id == a.l[0].host_id && a.l[i].host_id && a.l[i].host_gap_ms == 0);
	ck_assert_uint_eq(take(st, &b, "b", two), 0);
	ck_assert_uint_eq(take(st, &a, "a", two), 0);
	give(st, &a, 1, NOW);
	ck_assert_uint_eq(take(st, &b, "b", two), 0); /* what is lent counts, begun or not */
	ck_assert_uint_eq(take(st, &a, "a", one), 0); /* who asks for none ahead gets none */
	give(st, &a, 1, NOW);
	ck_assert_uint_eq(take(st, &a, "a", two), 2);
	give(st, &a, 3, NOW);
	ck_assert_uint_eq(take(st, &b, "b", two), 0);
	give(st, &a, 1, NOW);
	ck_assert_uint_eq(take(st, &b, "b", two), 4); /* nobody has any: it is the next one's turn */
	ck_assert_uint_eq(take(st, &a, "a", two), 0);
	give(st, &b, 4, NOW);
	ck_assert_int_eq(stats(st, NOW).lent_n, 0);
	fw_store_close(st);
}
END_TEST

START_TEST(two_share_a_host)
{
	struct fw_store *st = fresh5(_i);
	struct fw_claim_ask ask = {.host_max = 2, .host_ahead = 2}, first = {.host_max = 2, .host_ahead = 2, .max = 1};
	struct hand a = {.n = 0}, b = {.n = 0}, c = {.n = 0};

	if (!st)
		return;
	subscribe_many(st, "https://crowd.example/%d", 0, 12, NOW - 1000);
	ck_assert_uint_eq(take(st, &a, "a", first), 1);
	ck_assert_uint_eq(take(st, &b, "b", ask), 1); /* within host_max: it is nobody's now */
	ck_assert_uint_eq(take(st, &a, "a", ask), 0);
	ck_assert_uint_eq(take(st, &c, "c", ask), 0);
	give(st, &b, 1, NOW);
	ck_assert_uint_eq(take(st, &a, "a", ask), 1); /* still nobody's, though a has all of it */
	ck_assert_uint_eq(take(st, &a, "a", ask), 0);
	give(st, &a, 1, NOW);
	ck_assert_uint_eq(take(st, &c, "c", ask), 1);
	give(st, &a, 1, NOW);
	give(st, &c, 1, NOW);
	ck_assert_uint_eq(take(st, &c, "c", ask), 4);
	ck_assert_uint_eq(take(st, &a, "a", ask), 0);
	give(st, &c, 3, NOW);
	ck_assert_uint_eq(take(st, &a, "a", ask), 1); /* one is c's, and two may be lent */
	ck_assert_uint_eq(take(st, &c, "c", ask), 0);
	fw_store_close(st);
}
END_TEST

/* Returned unvisited, buried, run out: each time nobody has any, and one may go ahead again. */
START_TEST(ahead_after_loans_that_came_to_nothing)
{
	struct fw_claim_ask ask = {.host_max = 1, .host_ahead = 1};
	struct hand a = {.n = 0}, b = {.n = 0};
	struct fw_store *st = fresh5(_i);
	struct fw_err err = {0};

	if (!st)
		return;
	subscribe_many(st, "https://crowd.example/%d", 0, 5, NOW - 1000);
	ck_assert_uint_eq(take(st, &a, "a", ask), 2);
	OK(fw_store_release(st, a.l, 2, &err));
	check_clean(st);
	ck_assert_uint_eq(take(st, &b, "b", ask), 2);
	OK(fw_store_bury(st, "b", 0, NOW, &err));
	check_clean(st);
	ck_assert_uint_eq(take(st, &a, "a", ask), 2);
	ask.now_ms = NOW + 600000; /* a's leases have run out; the crowd's first is due again with them */
	ck_assert_uint_eq(take(st, &b, "b", ask), 2);
	ck_assert_uint_eq(take(st, &a, "a", ask), 0);
	fw_store_close(st);
}
END_TEST

START_TEST(gaps_ahead)
{
	struct fw_claim_ask ask = {.host_ahead = 3, .host_gap_ms = 1000};
	struct hand a = {.n = 0}, b = {.n = 0};
	struct fw_store *st = fresh5(_i);

	if (!st)
		return;
	subscribe_many(st, "https://crowd.example/%d", 0, 20, NOW - 1000);
	ck_assert_uint_eq(take(st, &a, "a", ask), 4); /* now, and three gaps */
	for (size_t i = 0; i < 4; i++)
		ck_assert_int_eq(a.l[i].host_gap_ms, 1000);
	ask.now_ms = NOW + 999;
	ck_assert_uint_eq(take(st, &a, "a", ask), 0);
	ask.now_ms = NOW + 3999;
	ck_assert_uint_eq(take(st, &b, "b", ask), 0);
	ask.now_ms = NOW + 4000;
	ck_assert_uint_eq(take(st, &b, "b", ask), 1); /* somebody else has some: none ahead */
	ck_assert_uint_eq(take(st, &a, "a", ask), 0);
	ask.now_ms = NOW + 5000;
	ck_assert_uint_eq(take(st, &a, "a", ask), 1);
	give(st, &a, 5, NOW + 5000);
	give(st, &b, 1, NOW + 5000);
	ask.host_max = 1;
	ask.now_ms = NOW + 5999;
	ck_assert_uint_eq(take(st, &a, "a", ask), 0); /* nobody has any, and nobody is ahead of the last one's gap */
	ck_assert_uint_eq(take(st, &b, "b", ask), 0);
	ask.now_ms = NOW + 6000;
	ck_assert_uint_eq(take(st, &b, "b", ask), 4);
	fw_store_close(st);
}
END_TEST

/* Those that are parked go along when their host's turn has come: claims lend all that the borrower may have. */
START_TEST(parked_ones_go_along)
{
	struct fw_claim_ask none = {.host_max = 1, .host_gap_ms = 10}, ask = {.host_max = 1, .host_gap_ms = 10, .host_ahead = 4, .now_ms = NOW + 10};
	struct hand a = {.n = 0};
	struct fw_store *st = fresh5(_i);

	if (!st)
		return;
	subscribe_many(st, "https://crowd.example/%d", 0, 20, NOW - 1000);
	ck_assert_uint_eq(take(st, &a, "a", none), 1);
	give(st, &a, 1, NOW);
	while (take(st, &a, "a", ask) > 0)
		;
	ck_assert_uint_eq(a.n, 5);
	give(st, &a, 5, NOW);
	ask.max = 2;
	ask.now_ms = NOW + 60;
	ck_assert_uint_le(take(st, &a, "a", ask), 2); /* never more than are asked for */
	fw_store_close(st);
}
END_TEST

/* Retry-After is not a gap: nobody goes ahead of it. */
START_TEST(no_one_is_ahead_of_a_cooldown)
{
	struct fw_claim_ask ask = {.host_ahead = 50, .host_gap_ms = 1000, .max = 2};
	struct fw_store *st = fresh5(_i);
	struct fw_outcome o;
	struct fw_lease keep;
	struct fw_feed f;
	int64_t id[3];

	if (!st)
		return;
	subscribe_many(st, "https://crowd.example/%d", 0, 7, NOW - 1000);
	ck_assert_uint_eq(claim(st, ask).n, 2);
	keep = L[1];
	o = outcome_of(&L[0], &f, NOW);
	o.host_cooldown_ms = NOW + 20000;
	ck_assert_int_eq(commit_one(st, &o, NOW), 0);
	for (int i = 0; i < 2; i++) { /* while the borrower has one, and when nobody has */
		ask.now_ms = NOW + 19999;
		ck_assert_uint_eq(claim(st, ask).n, 0);
		for (int64_t k = 0; k < 3; k++)
			id[k] = keep.feed.id + 1 + k;
		ck_assert_uint_eq(claim_ids(st, id, 3, ask).n, 0);
		check_clean(st);
		if (i == 0) {
			o = outcome_of(&keep, &f, NOW);
			ck_assert_int_eq(commit_one(st, &o, NOW), 0);
		}
	}
	ask.now_ms = NOW + 20000;
	ck_assert_uint_ge(claim(st, ask).n, 1);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* The only feed of its host, fetched: due then, and its host wants a pause of a minute. */
static int64_t cooled(struct fw_store *st, int64_t due_ms)
{
	int64_t id = subscribe(st, "https://one.example/1", NOW);
	struct fw_outcome o;
	struct fw_feed f;

	ck_assert_uint_eq(claim_ids(st, &id, 1, (struct fw_claim_ask){0}).n, 1);
	o = outcome_of(&L[0], &f, NOW);
	f.due_at_ms = due_ms;
	o.host_cooldown_ms = NOW + 60000;
	ck_assert_int_eq(commit_one(st, &o, NOW), 0);
	return id;
}

/* Nobody gets anything before the pause is over, and then this one. */
static void rests(struct fw_store *st, int64_t id)
{
	check_clean(st);
	ck_assert_uint_eq(claim(st, (struct fw_claim_ask){.now_ms = NOW + 59999}).n, 0);
	ck_assert_uint_eq(claim_ids(st, &id, 1, (struct fw_claim_ask){.now_ms = NOW + 59999, .host_ahead = 9, .host_gap_ms = 60000}).n, 0);
	check_clean(st);
	ck_assert_uint_eq(claim_ids(st, &id, 1, (struct fw_claim_ask){.now_ms = NOW + 60000}).n, 1);
	check_clean(st);
	fw_store_close(st);
}

/* A host with one feed has said when; another feed of it comes before that. */
START_TEST(a_cooldown_holds_for_who_comes_later)
{
	static const int64_t due_ms[] = {NOW + 10, NOW + 3600000};

	for (size_t i = 0; i < FW_N(due_ms); i++) {
		struct fw_store *st = fresh5(_i);

		if (!st)
			return;
		cooled(st, due_ms[i]);
		rests(st, subscribe(st, "https://one.example/2", NOW));
	}
}
END_TEST

/* ... or another feed becomes one with it. */
START_TEST(a_cooldown_outlives_a_merge)
{
	struct fw_store *st = fresh5(_i);
	struct fw_err err = {0};
	int64_t id, other;

	if (!st)
		return;
	other = subscribe(st, "https://old.example/1", NOW + 3600000);
	id = cooled(st, NOW + 10);
	OK(fw_store_feed_merge(st, other, id, &err));
	rests(st, id);
	ck_assert_int_eq(L[0].feed.due_at_ms, NOW + 10);
}
END_TEST

/* ... or its owner wants it at once, or has paused it meanwhile. */
START_TEST(a_cooldown_outlives_what_the_owner_changes)
{
	struct fw_store *st = fresh5(_i);
	struct fw_feed f = {.due_at_ms = FW_DUE_FIRST};
	struct fw_err err = {0};

	if (!st)
		return;
	f.id = cooled(st, NOW + 3600000);
	status_set(st, f.id, FW_FEED_PAUSED);
	status_set(st, f.id, FW_FEED_ACTIVE);
	OK(fw_store_feed_set(st, &f, FW_SET_DUE, &err));
	rests(st, f.id);
	ck_assert_int_eq(L[0].feed.due_at_ms, FW_DUE_FIRST);
}
END_TEST

/* ---- those that do not take long ------------------------------------------------------------------------------------------- */

static void expect_set(struct fw_store *st, int64_t id, int64_t expect_us, int64_t due_ms)
{
	struct fw_outcome o;
	struct fw_feed f;

	ck_assert_uint_eq(claim_ids(st, &id, 1, (struct fw_claim_ask){0}).n, 1);
	o = outcome_of(&L[0], &f, NOW);
	f.expect_us = expect_us;
	f.due_at_ms = due_ms;
	ck_assert_int_eq(commit_one(st, &o, NOW), 0);
}

START_TEST(slow_ones_wait_in_line)
{
	struct fw_claim_ask quick = {.expect_max_us = 1000, .host_max = 1}, any = {.host_max = 1};
	struct fw_store *st = fresh5(_i);
	struct fw_claim_got got;
	int64_t first, n, wake;
	struct fw_err err = {0};

	if (!st)
		return;
	subscribe_many(st, "https://h%d.example/", 0, 5, NOW - 9);
	first = subscribe(st, "https://crowd.example/1", NOW - 9) - 5;
	subscribe(st, "https://crowd.example/2", NOW - 9);
	subscribe(st, "https://later.example/", NOW + 3000);
	expect_set(st, first, 1001, NOW - 8);     /* too slow */
	expect_set(st, first + 1, 1000, NOW - 7); /* just quick enough */
	expect_set(st, first + 2, INT64_MAX / 2, NOW - 6);
	expect_set(st, first + 3, 99999, FW_DUE_FIRST); /* somebody asked for it */
	expect_set(st, first + 5, 5000, NOW - 5);
	expect_set(st, first + 6, 5000, NOW - 4);
	got = claim(st, quick);
	ck_assert_uint_eq(got.n, 3);
	ck_assert_int_eq(L[0].feed.id, first + 3);
	ck_assert_int_eq(L[0].feed.due_at_ms, FW_DUE_FIRST);
	ck_assert_int_eq(L[1].feed.id, first + 4); /* unknown */
	ck_assert_int_eq(L[2].feed.id, first + 1);
	ck_assert_int_eq(got.next_ms, NOW + 3000); /* and not at once, for the slow ones' sake */
	check_clean(st);
	ck_assert_uint_eq(claim_ids(st, (int64_t[]){first, first + 5}, 2, quick).n, 0);
	OK(fw_store_pending(st, NOW, &n, &wake, &err));
	ck_assert_int_eq(n, 7); /* they are due all the same */
	got = claim(st, any);
	ck_assert_uint_eq(got.n, 3);
	ck_assert_int_eq(L[0].feed.id, first); /* in their places */
	ck_assert_int_eq(L[1].feed.id, first + 2);
	ck_assert_int_eq(L[2].feed.id, first + 5);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* ---- what is learned of hosts ------------------------------------------------------------------------------------------------ */

START_TEST(a_pace_is_learned)
{
	static const enum fw_host_mood moods[] = {FW_HOST_FINE, FW_HOST_STRAINED, FW_HOST_STRAINED, FW_HOST_UNKNOWN, FW_HOST_FINE, FW_HOST_FINE,
		FW_HOST_STRAINED, FW_HOST_FINE, FW_HOST_FINE, FW_HOST_FINE};
	struct fw_store *st = fresh5(_i);
	int64_t now = NOW, pace = 0, expect = 0;
	struct fw_feed f;
	struct fw_outcome o;

	if (!st)
		return;
	subscribe_many(st, "https://crowd.example/%d", 0, 2, NOW - 10);
	for (int i = 0; i < 60; i++) {
		enum fw_host_mood mood = i < 30 ? moods[i % (int)FW_N(moods)] : i < 45 ? FW_HOST_STRAINED : FW_HOST_FINE;
		struct fw_claim_ask ask = {.now_ms = now, .host_gap_ms = 300, .max = 1};
		int64_t gap = FW_MAX(pace, 300);

		ck_assert_uint_eq(claim(st, ask).n, 1);
		ck_assert_int_eq(L[0].host_gap_ms, gap);
		ck_assert_int_eq(L[0].host_expect_us, expect);
		o = outcome_of(&L[0], &f, now);
		f.due_at_ms = NOW;
		o.host_mood = mood;
		o.visit.total_us = i % 7 == 3 ? 0 : 1000 + 977 * (i % 5);
		f.expect_us = i % 5 == 4 ? 0 : 1;
		if (o.visit.total_us && f.expect_us)
			expect += expect ? (o.visit.total_us - expect) / 8 : o.visit.total_us;
		ck_assert_int_eq(commit_one(st, &o, now), 0);
		pace = fw_store_pace(pace, mood);
		ask.now_ms = now + gap - 1;
		ck_assert_uint_eq(claim(st, ask).n, 0);
		now += gap;
		if (i == 44)
			ck_assert_int_eq(pace, FW_PACE_MAX_MS);
	}
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(a_lone_feed_keeps_the_gap_that_is_asked)
{
	struct fw_claim_ask ask = {.host_gap_ms = 77};
	struct fw_store *st = fresh5(_i);
	struct fw_outcome o;
	struct fw_feed f;

	if (!st)
		return;
	subscribe(st, "https://alone.example/", NOW);
	for (int i = 0; i < 3; i++) {
		ck_assert_uint_eq(claim(st, ask).n, 1);
		ck_assert(L[0].host_id == 0 && L[0].host_gap_ms == 77 && L[0].host_expect_us == 0);
		o = outcome_of(&L[0], &f, NOW);
		o.host_mood = FW_HOST_STRAINED;
		f.due_at_ms = NOW;
		f.expect_us = o.visit.total_us = 5000;
		ck_assert_int_eq(commit_one(st, &o, NOW), 0);
	}
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(a_service_is_one_host)
{
	struct fw_store *st = fresh5(_i);
	struct fw_claim_ask ask = {.host_max = 1};
	struct fw_outcome o;
	struct fw_lease one;
	struct fw_feed f;

	if (!st)
		return;
	subscribe(st, "https://a.tumblr.com/rss", NOW);
	subscribe(st, "https://b.tumblr.com/rss", NOW);
	subscribe(st, "https://c.example/rss", NOW - 5);
	ck_assert_uint_eq(claim(st, ask).n, 2);
	ck_assert_int_eq(L[0].host_id, 0);
	ck_assert_int_ne(L[1].host_id, 0);
	one = L[1];
	o = outcome_of(&L[0], &f, NOW);
	f.url = FW_STR("https://d.tumblr.com/rss"); /* it moves in */
	f.due_at_ms = NOW;
	o.groups = FW_GROUP_URL;
	ck_assert_int_eq(commit_one(st, &o, NOW), 0);
	check_clean(st);
	ck_assert_uint_eq(claim(st, ask).n, 0);
	commit_all(st, &one, 1, NOW + 1);
	ck_assert_uint_eq(claim(st, ask).n, 1);
	ck_assert_int_eq(L[0].host_id, one.host_id);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* ---- nobody waits for a crowd ------------------------------------------------------------------------------------------------ */

START_TEST(others_wait_for_one_batch_at_most) /* REL-07: whatever may be taken of the crowd, and however often its turn comes */
{
	static const struct fw_claim_ask asks[] = {
		{.host_max = 2, .host_gap_ms = 1000}, {.host_max = 2}, {.host_max = 1, .host_ahead = 40}, {.host_max = 4, .host_gap_ms = 100, .host_ahead = 90},
	};
	struct fw_store *st = fresh5(_i);
	bool there = st != NULL;

	for (size_t k = 0; k < FW_N(asks) && there; k++) {
		int others = 0, batches = 0;

		st = k ? fresh(_i) : st;
		subscribe_many(st, "https://crowd.example/%d", 0, 500, NOW - 100000); /* overdue for longest */
		subscribe_many(st, "https://h%d.example/", 0, 500, NOW - 1000);
		for (int64_t now = NOW; others < 500; now += 50, batches++) {
			struct fw_claim_ask ask = asks[k];
			struct fw_claim_got got;

			ck_assert_msg(batches < 6, "case %zu: %d of the others were lent by %d batches, and five would do without the crowd", k, others, batches);
			ask.now_ms = now;
			got = claim(st, ask);
			for (size_t i = 0; i < got.n; i++)
				others += !fw_str_starts(L[i].feed.url, FW_STR("https://crowd"));
			commit_all(st, L, got.n, now);
			for (size_t i = 0; i < got.n; i++) { /* those that were visited are through; the crowd is due again at once */
				if (!fw_str_starts(L[i].feed.url, FW_STR("https://crowd")))
					status_set(st, L[i].feed.id, FW_FEED_PAUSED);
			}
			check_clean(st);
		}
		fw_store_close(st);
	}
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
	ck_assert_uint_eq(due_at(st, NOW + INT64_C(250000000000000), 0).n, 13); /* some 8,000 years */
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
	f.last_visit_ms = NOW - 2000;
	o.host_cooldown_ms = NOW + 100000;
	ck_assert_int_eq(commit_one(st, &o, NOW), 0);
	d = due_at(st, NOW, 0);
	ck_assert_uint_eq(d.n, 9);
	ck_assert_int_eq(due_of(&d, cooled)->due_at_ms, NOW - 1);
	ck_assert_int_eq(due_of(&d, cooled)->expect_us, 5000);
	ck_assert_int_eq(due_of(&d, cooled)->expect_dev_us, 70);
	ck_assert_int_eq(due_of(&d, cooled)->last_visit_ms, NOW - 2000);
	ck_assert_int_eq(due_of(&d, first + 1)->last_visit_ms, 0);
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

/* ---- two feeds are one ----------------------------------------------------------------------------------------------------- */

static struct fw_entry_row written(int key, const char *guid, const char *title)
{
	struct fw_entry_row e = entry(key, 1, title, "<p>text</p>");

	e.guid = fw_str(guid);
	return e;
}

static void visit_of(struct fw_store *st, int64_t id, struct fw_entry_row *e, size_t n, int64_t now)
{
	struct fw_outcome o;
	struct fw_feed f;

	ck_assert_uint_eq(claim_ids(st, &id, 1, (struct fw_claim_ask){.now_ms = now}).n, 1);
	o = outcome_of(&L[0], &f, now);
	f.due_at_ms = now;
	o.entries = e;
	o.entry_n = n;
	ck_assert_int_eq(commit_one(st, &o, now), 0);
	ck_assert_uint_eq(o.visit.new_n, n);
}

static int keep_title(void *ctx, const struct fw_entry_row *e)
{
	fw_buf_addf(ctx, "%.*s:%lld:%lld ", FW_STR_ARG(e->title), (long long)e->id, (long long)e->feed_id);
	return 0;
}

static const char *titles(struct fw_store *st, struct fw_entry_query q)
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct fw_err err = {0};
	const char *s;

	q.oldest_first = true;
	OK(fw_store_entry_list(st, &q, keep_title, &b, &err));
	s = fw_arena_dup(&A, b.len ? b.p : "", b.len);
	fw_buf_finish(&b);
	return s;
}

START_TEST(feeds_are_merged)
{
	struct fw_store *st = fresh5(_i);
	struct fw_entry_row a[4] = {written(1, "g1", "one"), written(2, "g2", "two"), written(3, "", "three"), written(4, "g4", "four")},
		b[3] = {written(11, "g2", "zwei"), written(3, "", "drei"), written(12, "g9", "neun")};
	struct fw_err err = {0};
	struct fw_store_stats s;
	int64_t from, into, n;
	bool more = true;
	const char *got;
	char want[200];

	if (!st)
		return;
	from = subscribe(st, "https://crowd.example/old", NOW);
	into = subscribe(st, "https://crowd.example/new", NOW);
	subscribe(st, "https://crowd.example/third", NOW);
	visit_of(st, from, a, 4, NOW);
	visit_of(st, into, b, 3, NOW + 1000);
	while (more)
		OK(fw_store_upkeep(st, NOW, &more, &err));
	got = titles(st, (struct fw_entry_query){.feed_id = from});
	ck_assert_str_eq(got, titles(st, (struct fw_entry_query){.search = FW_STR("text"), .feed_id = from}));
	ck_assert_int_eq(stats(st, NOW).entry_n, 7);
	ck_assert_int_eq(sscanf(got, "one:%lld", (long long *)&n), 1);
	OK(fw_store_feed_merge(st, from, into, &err));
	check_clean(st);
	/* by guid there is another "two", by key another "three"; the numbers are what they were */
	ck_assert(fw_snprintf(want, sizeof(want), "one:%lld:%lld ", (long long)n, (long long)into));
	ck_assert_int_eq(strncmp(titles(st, (struct fw_entry_query){0}), want, strlen(want)), 0);
	ck_assert_int_eq(entry_count(st, into), 5);
	ck_assert_int_eq(entry_count(st, from), 0);
	ck_assert_int_eq(find(st, into, &A).entry_n, 5);
	s = stats(st, NOW);
	ck_assert(s.feed_n == 2 && s.entry_n == 5 && s.visit_n == 1);
	ck_assert_int_eq(hits(st, "one"), 1);
	ck_assert_int_eq(hits(st, "four"), 1);
	ck_assert_int_eq(hits(st, "two") + hits(st, "three"), 0);
	ck_assert_str_eq(titles(st, (struct fw_entry_query){.search = FW_STR("text")}), titles(st, (struct fw_entry_query){.feed_id = into}));
	/* what came over is known by its key */
	b[0] = a[0];
	visit_of(st, into, b, 0, NOW + 2000);
	ck_assert_uint_eq(claim_ids(st, &into, 1, (struct fw_claim_ask){.now_ms = NOW + 3000}).n, 1);
	struct fw_feed f;
	struct fw_outcome o = outcome_of(&L[0], &f, NOW + 3000);
	o.entries = b;
	o.entry_n = 3;
	ck_assert_int_eq(commit_one(st, &o, NOW + 3000), 0);
	ck_assert_uint_eq(o.visit.new_n, 0);
	IS(fw_store_feed_merge(st, from, into, &err), FW_ENOTFOUND);
	IS(fw_store_feed_merge(st, into, from, &err), FW_ENOTFOUND);
	IS(fw_store_feed_merge(st, into, into, &err), FW_EINVAL);
	check_clean(st);
	OK(fw_store_unsubscribe(st, into, &err)); /* all that came over goes with it */
	ck_assert_int_eq(stats(st, NOW).entry_n, 0);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* Wherever the two stand: in line, with the turn, parked, paused; not while one is lent. */
START_TEST(merged_wherever_they_stand)
{
	struct fw_store *st = fresh5(_i);
	struct fw_claim_ask ask = {.host_max = 1};
	struct fw_err err = {0};
	struct fw_lease lent;
	int64_t last;

	if (!st)
		return;
	subscribe_many(st, "https://crowd.example/%d", 0, 6, NOW - 10);
	last = subscribe(st, "https://other.example/", NOW + 5);
	ck_assert_uint_eq(claim(st, ask).n, 1); /* one is lent, the others parked */
	lent = L[0];
	ck_assert_int_eq(lent.feed.id, last - 6);
	IS(fw_store_feed_merge(st, last - 6, last, &err), FW_EAGAIN);
	ck_assert_ptr_nonnull(strstr(err.text, "lent"));
	IS(fw_store_feed_merge(st, last, last - 6, &err), FW_EAGAIN);
	check_clean(st);
	OK(fw_store_feed_merge(st, last - 2, last, &err)); /* a parked one away */
	check_clean(st);
	commit_all(st, &lent, 1, NOW);
	check_clean(st);
	OK(fw_store_feed_merge(st, last - 5, last - 6, &err)); /* the one that has the turn */
	check_clean(st);
	status_set(st, last - 4, FW_FEED_PAUSED);
	OK(fw_store_feed_merge(st, last - 4, last - 3, &err));
	check_clean(st);
	OK(fw_store_feed_merge(st, last - 3, last - 1, &err));
	check_clean(st);
	ck_assert_int_eq(stats(st, NOW).feed_n, 3);
	for (int i = 0; i < 2; i++) { /* nobody was forgotten */
		ck_assert_uint_eq(claim(st, ask).n, 1);
		struct fw_feed f;
		struct fw_outcome o = outcome_of(&L[0], &f, NOW);
		ck_assert_int_eq(commit_one(st, &o, NOW), 0);
	}
	ck_assert_uint_eq(claim(st, ask).n, 0);
	ask.now_ms = NOW + 5;
	ck_assert_uint_eq(claim(st, ask).n, 1);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* ---- against the reference --------------------------------------------------------------------------------------------------- */

#define WALK_FEEDS 24
#define WALK_WORKERS 3

struct walker {
	struct fw_store *st;
	struct hand hand[WALK_WORKERS];
};

static uint64_t dice;

static uint64_t roll(uint64_t n)
{
	dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (dice >> 33) % n;
}

/* Both stores take the same step; what they lend is the same, feed by feed, with what is to be kept to its host. */
static void walk_claim(struct walker w[2], size_t worker, int64_t now)
{
	static const char *const name[WALK_WORKERS] = {"a/1/0", "b/2/1", "c/3/2"};
	struct fw_claim_ask ask = {.worker = name[worker], .now_ms = now, .host_max = (uint32_t)roll(4), .host_ahead = roll(2) ? (uint32_t)roll(6) : 0,
		.host_gap_ms = roll(2) ? (int64_t)roll(900) : 0, .expect_max_us = roll(4) ? 0 : 3000};
	struct fw_claim_got got[2];
	int64_t id[WALK_FEEDS];
	size_t n = 1 + roll(WALK_FEEDS);

	for (size_t i = 0; i < WALK_FEEDS; i++) { /* shuffled */
		size_t k = roll(i + 1);

		id[i] = id[k];
		id[k] = 1 + (int64_t)i;
	}
	ask.max = 1 + roll(8);
	for (int k = 0; k < 2; k++) {
		struct hand *h = &w[k].hand[worker];

		got[k] = claim_ids(w[k].st, id, n, ask);
		ck_assert_uint_le(h->n + got[k].n, CLAIM_MAX);
		memcpy(&h->l[h->n], L, got[k].n * sizeof(L[0]));
		h->n += got[k].n;
	}
	ck_assert_uint_eq(got[0].n, got[1].n);
	if (got[0].n < ask.max) /* else some may not have been looked at */
		ck_assert_uint_eq(got[0].deferred_n, got[1].deferred_n);
	for (size_t i = w[0].hand[worker].n - got[0].n; i < w[0].hand[worker].n; i++) {
		const struct fw_lease *x = &w[0].hand[worker].l[i], *y = &w[1].hand[worker].l[i];

		ck_assert_int_eq(x->feed.id, y->feed.id);
		ck_assert_int_eq(x->host_gap_ms, y->host_gap_ms);
		ck_assert_int_eq(x->host_expect_us, y->host_expect_us);
		ck_assert_int_eq(x->host_id != 0, y->host_id != 0);
	}
}

static void walk_back(struct walker w[2], size_t worker, int64_t now)
{
	enum fw_host_mood mood = (enum fw_host_mood)roll(3);
	int64_t total_us = (int64_t)roll(9000), expect_us = (int64_t)roll(6000), cool_ms = roll(12) ? 0 : now + (int64_t)roll(5000);
	int64_t due_ms = now + (int64_t)roll(3000) - 1000;
	bool release = roll(5) == 0;
	size_t at = w[0].hand[worker].n ? roll(w[0].hand[worker].n) : 0;

	for (int k = 0; k < 2 && w[0].hand[worker].n; k++) {
		struct hand *h = &w[k].hand[worker];
		struct fw_err err = {0};
		struct fw_outcome o;
		struct fw_feed f;

		o = outcome_of(&h->l[at], &f, now);
		f.due_at_ms = due_ms;
		f.expect_us = expect_us;
		o.visit.total_us = total_us;
		o.host_mood = mood;
		o.host_cooldown_ms = cool_ms;
		if (release)
			OK(fw_store_release(w[k].st, &h->l[at], 1, &err));
		else
			ck_assert_int_eq(commit_one(w[k].st, &o, now), 0);
	}
	for (int k = 0; k < 2 && w[k].hand[worker].n; k++) {
		struct hand *h = &w[k].hand[worker];

		h->l[at] = h->l[--h->n];
	}
}

static void walk_bury(struct walker w[2], size_t worker, int64_t now)
{
	static const char *const name[WALK_WORKERS] = {"a/1/0", "b/2/1", "c/3/2"};
	struct fw_err err = {0};

	for (int k = 0; k < 2; k++) {
		OK(fw_store_bury(w[k].st, name[worker], 0, now, &err));
		w[k].hand[worker].n = 0;
	}
}

START_TEST(any_walk_goes_as_in_memory) /* invariants 1 and 6: budgets, gaps, paces, holders, by a random walk of three workers */
{
	static struct walker w[2];
	int64_t now = NOW;

	w[0].st = fresh5(_i);
	if (!w[0].st)
		return;
	w[1].st = store_open("memory:", FW_STORE_CREATE);
	for (int k = 0; k < 2; k++) {
		subscribe_many(w[k].st, "https://one.example/%d", 0, 9, NOW - 100);
		subscribe_many(w[k].st, "https://two.example/%d", 0, 9, NOW - 100);
		subscribe_many(w[k].st, "https://h%d.example/", 0, WALK_FEEDS - 18, NOW - 100);
		for (int i = 0; i < WALK_WORKERS; i++)
			w[k].hand[i].n = 0;
	}
	dice = 4711;
	for (int i = 0; i < 1500; i++) {
		size_t worker = roll(WALK_WORKERS);

		now += roll(3) ? 0 : (int64_t)roll(400);
		if (roll(5) < 2)
			walk_claim(w, worker, now);
		else if (roll(60) == 0)
			walk_bury(w, worker, now);
		else
			walk_back(w, worker, now);
		if (i % 100 == 99)
			check_clean(w[0].st);
	}
	fw_store_close(w[0].st);
	fw_store_close(w[1].st);
}
END_TEST

void choice_tests(Suite *s)
{
	TCase *t = tcase_create("choice");
	const TTest *const every[] = {
		numbers_in_their_order, numbers_within_the_budget, numbers_and_turns, more_of_a_host_ahead, two_share_a_host,
		ahead_after_loans_that_came_to_nothing, gaps_ahead, parked_ones_go_along, no_one_is_ahead_of_a_cooldown, a_cooldown_holds_for_who_comes_later,
		a_cooldown_outlives_a_merge, a_cooldown_outlives_what_the_owner_changes,
		slow_ones_wait_in_line,
		a_pace_is_learned, a_lone_feed_keeps_the_gap_that_is_asked, a_service_is_one_host, others_wait_for_one_batch_at_most, due_are_listed,
		members_are_kept, feeds_are_merged, merged_wherever_they_stand, any_walk_goes_as_in_memory,
	};

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	for (size_t i = 0; i < FW_N(every); i++)
		tcase_add_loop_test(t, every[i], 0, under_test_n);
	suite_add_tcase(s, t);
}
