/* SPDX-License-Identifier: ISC */
/*
 * What include/feedwheel/store.h promises, run against every driver (common.c has the table): the wheel, outcomes, the window.
 * Several processes, kills and broken files are in property.c and trouble.c.
 */
#include <stdlib.h>
#include <unistd.h>

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

/* ---- the wheel ---------------------------------------------------------------------------------------------------------- */

START_TEST(claim_lends_once_earliest_first) /* REL-05, invariant 1 */
{
	struct fw_store *st = fresh(_i);
	struct fw_lease l[10];

	subscribe(st, "https://a.example/late", NOW - 10);
	subscribe(st, "https://b.example/early", NOW - 20000);
	subscribe(st, "https://c.example/future", NOW + 5000);
	ck_assert_uint_eq(claim_at(st, NOW, 1, l, &A), 1);
	ck_assert_str_eq(l[0].feed.url.p, "https://b.example/early");
	ck_assert_int_gt(l[0].fence, 0);
	ck_assert_int_eq(l[0].until_ms, NOW + 60000);
	ck_assert_uint_eq(claim_at(st, NOW, 10, l, &A), 1);
	ck_assert_str_eq(l[0].feed.url.p, "https://a.example/late");
	ck_assert_uint_eq(claim_at(st, NOW, 10, l, &A), 0);
	ck_assert_uint_eq(claim_at(st, NOW + 5000, 10, l, &A), 1);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(claim_tells_when_to_come_again)
{
	struct fw_store *st = fresh(_i);
	struct fw_claim_ask ask = {.worker = "w", .now_ms = NOW, .lease_ms = 60000, .max = 10};
	struct fw_claim_got got;
	struct fw_lease l[10];
	struct fw_err err = {0};

	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_int_eq(got.next_ms, FW_NO_DATE);
	subscribe(st, "https://a.example/", NOW + 500);
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 0);
	ck_assert_int_eq(got.next_ms, NOW + 500);
	ask.now_ms = NOW + 500;
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 1);
	ck_assert_int_eq(got.next_ms, NOW + 60500); /* the end of the lease */
	fw_store_close(st);
}
END_TEST

START_TEST(claim_refuses_nonsense)
{
	struct fw_store *st = fresh(_i);
	struct fw_claim_ask ask = {.worker = "w", .now_ms = NOW, .max = 1};
	struct fw_claim_got got;
	struct fw_lease l[1];
	struct fw_err err = {0};

	IS(fw_store_claim(st, &ask, &A, l, &got, &err), FW_EINVAL);
	ask.lease_ms = 1;
	ask.worker = "";
	IS(fw_store_claim(st, &ask, &A, l, &got, &err), FW_EINVAL);
	ck_assert_uint_eq(st->error_n, 2);
	fw_store_close(st);
}
END_TEST

START_TEST(due_before_holds_back_later_feeds)
{
	struct fw_store *st = fresh(_i);
	struct fw_claim_ask ask = {.worker = "w", .now_ms = NOW + 1000, .due_before_ms = NOW, .lease_ms = 60000, .max = 10,
		.host_max = 1};
	struct fw_claim_got got;
	struct fw_lease l[10];
	struct fw_feed f;
	struct fw_outcome o;
	struct fw_err err = {0};
	int64_t n, wake;

	subscribe(st, "https://a.example/1", NOW - 1);
	subscribe(st, "https://a.example/2", NOW);
	subscribe(st, "https://b.example/1", NOW + 1);
	OK(fw_store_pending(st, NOW, &n, &wake, &err));
	ck_assert_int_eq(n, 2);
	ck_assert_int_eq(wake, NOW - 1);
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 1);
	o = outcome_of(&l[0], &f, NOW + 1000);
	ck_assert_int_eq(commit_one(st, &o, NOW + 1000), 0);
	/* the second one was put off for its host's sake and stands behind due_before now: it is lent all the same */
	OK(fw_store_pending(st, NOW, &n, &wake, &err));
	ck_assert_int_eq(n, 1);
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 1);
	ck_assert_str_eq(l[0].feed.url.p, "https://a.example/2");
	o = outcome_of(&l[0], &f, NOW + 1000);
	ck_assert_int_eq(commit_one(st, &o, NOW + 1000), 0);
	OK(fw_store_pending(st, NOW, &n, &wake, &err));
	ck_assert_int_eq(n, 0);
	ck_assert_int_eq(wake, FW_NO_DATE);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(lease_that_ran_out_is_lent_again) /* REL-05 */
{
	struct fw_store *st = fresh(_i);
	struct fw_lease first[1], second[1];
	struct fw_feed f;
	struct fw_outcome o;

	subscribe(st, "https://a.example/", NOW);
	ck_assert_uint_eq(claim_at(st, NOW, 1, first, &A), 1);
	ck_assert_uint_eq(claim_at(st, NOW + 59999, 1, second, &A), 0);
	ck_assert_uint_eq(claim_at(st, NOW + 60000, 1, second, &A), 1);
	ck_assert_int_eq(second[0].feed.id, first[0].feed.id);
	ck_assert_int_gt(second[0].fence, first[0].fence);
	/* the dead one comes back: nothing of it is written */
	struct fw_entry_row e = entry(1, 1, "stale", "stale");
	o = outcome_of(&first[0], &f, NOW + 60001);
	o.entries = &e;
	o.entry_n = 1;
	ck_assert_int_eq(commit_one(st, &o, NOW + 60001), FW_ESTALE);
	ck_assert_int_eq(stats(st, NOW).entry_n, 0);
	ck_assert_int_eq(stats(st, NOW).visit_n, 0);
	ck_assert_uint_eq(st->stale_n, 1);
	ck_assert_int_eq(find(st, first[0].feed.id, &A).last_visit_ms, 0);
	o = outcome_of(&second[0], &f, NOW + 60001);
	ck_assert_int_eq(commit_one(st, &o, NOW + 60001), 0);
	/* and once more: its lease has ended with the commit */
	ck_assert_int_eq(commit_one(st, &o, NOW + 60001), FW_ESTALE);
	ck_assert_int_eq(stats(st, NOW).visit_n, 1);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(commit_mixes_stale_and_good)
{
	struct fw_store *st = fresh(_i);
	struct fw_lease l[3];
	struct fw_feed f[3];
	struct fw_outcome o[3];
	struct fw_commit c = {.now_ms = NOW, .outcome = o, .n = 3};
	struct fw_err err = {0};

	subscribe_many(st, "https://h%d.example/", 0, 3, NOW);
	ck_assert_uint_eq(claim_at(st, NOW, 3, l, &A), 3);
	for (int i = 0; i < 3; i++)
		o[i] = outcome_of(&l[i], &f[i], NOW);
	o[1].fence += 1000;
	OK(fw_store_commit(st, &c, &err));
	ck_assert_int_eq(o[0].rc, 0);
	ck_assert_int_eq(o[1].rc, FW_ESTALE);
	ck_assert_int_eq(o[2].rc, 0);
	ck_assert_int_eq(stats(st, NOW).lent_n, 1);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(release_gives_back_untouched)
{
	struct fw_store *st = fresh(_i);
	struct fw_lease l[2], again[2];
	struct fw_err err = {0};

	subscribe(st, "https://a.example/", NOW - 5);
	subscribe(st, "https://b.example/", NOW - 4);
	ck_assert_uint_eq(claim_at(st, NOW, 2, l, &A), 2);
	OK(fw_store_release(st, l, 2, &err));
	ck_assert_int_eq(stats(st, NOW).lent_n, 0);
	ck_assert_int_eq(stats(st, NOW).due_n, 2);
	ck_assert_uint_eq(claim_at(st, NOW, 2, again, &A), 2);
	ck_assert_int_eq(again[0].feed.due_at_ms, NOW - 5);
	OK(fw_store_release(st, l, 2, &err)); /* stale: passed over */
	ck_assert_int_eq(stats(st, NOW).lent_n, 2);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(bury_frees_leases_and_charges_the_killer)
{
	struct fw_store *st = fresh(_i);
	struct fw_lease l[3];
	struct fw_feed f, set = {0};
	struct fw_err err = {0};
	int64_t bad;

	subscribe_many(st, "https://h%d.example/", 0, 3, NOW);
	ck_assert_uint_eq(claim_at(st, NOW, 3, l, &A), 3);
	bad = l[1].feed.id;
	OK(fw_store_bury(st, "somebody else", bad, NOW, &err));
	ck_assert_int_eq(stats(st, NOW).lent_n, 3);
	ck_assert_uint_eq(find(st, bad, &A).crash_n, 0);
	OK(fw_store_bury(st, "w", bad, NOW, &err));
	ck_assert_int_eq(stats(st, NOW).lent_n, 0);
	f = find(st, bad, &A);
	ck_assert_uint_eq(f.crash_n, 1);
	ck_assert_int_eq(f.status, FW_FEED_ACTIVE);
	ck_assert_uint_eq(claim_at(st, NOW, 3, l, &A), 3);
	OK(fw_store_bury(st, "w", bad, NOW, &err));
	f = find(st, bad, &A);
	ck_assert_uint_eq(f.crash_n, 2);
	ck_assert_int_eq(f.status, FW_FEED_QUARANTINED);
	ck_assert_int_eq(f.last_kind, FW_VISIT_CRASH);
	ck_assert_int_eq(stats(st, NOW).quarantined_n, 1);
	ck_assert_uint_eq(claim_at(st, NOW, 3, l, &A), 2); /* not the bad one */
	set.id = bad;
	OK(fw_store_feed_set(st, &set, FW_SET_STATUS | FW_SET_CRASH, &err));
	ck_assert_uint_eq(claim_at(st, NOW, 3, l, &A), 1);
	ck_assert_uint_eq(l[0].feed.crash_n, 0);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* ---- hosts --------------------------------------------------------------------------------------------------------------- */

START_TEST(host_budget_in_flight) /* invariant 6 */
{
	struct fw_store *st = fresh(_i);
	struct fw_claim_ask ask = {.worker = "w", .now_ms = NOW, .lease_ms = 60000, .max = 100, .host_max = 2};
	struct fw_claim_got got;
	struct fw_lease l[100];
	struct fw_feed f;
	struct fw_outcome o;
	struct fw_err err = {0};
	int visited = 0;

	subscribe_many(st, "https://one.example/%d", 0, 20, NOW - 1000);
	while (visited < 20) {
		OK(fw_store_claim(st, &ask, &A, l, &got, &err));
		ck_assert_uint_eq(got.n, 2);
		for (size_t i = 0; i < got.n; i++) {
			o = outcome_of(&l[i], &f, NOW);
			ck_assert_int_eq(commit_one(st, &o, NOW), 0);
			visited++;
		}
		check_clean(st);
	}
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 0);
	ck_assert_int_eq(got.next_ms, NOW + 3600000);
	fw_store_close(st);
}
END_TEST

START_TEST(host_gap_between_loans) /* invariant 6 */
{
	struct fw_store *st = fresh(_i);
	struct fw_claim_ask ask = {.worker = "w", .now_ms = NOW, .lease_ms = 60000, .max = 100, .host_gap_ms = 1000};
	struct fw_claim_got got;
	struct fw_lease l[100];
	struct fw_feed f;
	struct fw_outcome o;
	struct fw_err err = {0};
	int64_t last = 0, now = NOW;

	subscribe_many(st, "https://one.example/%d", 0, 5, NOW - 1000);
	for (int visited = 0; visited < 5;) {
		ask.now_ms = now;
		OK(fw_store_claim(st, &ask, &A, l, &got, &err));
		ck_assert_uint_le(got.n, 1);
		if (got.n) {
			ck_assert_int_ge(now, last + 1000);
			last = now;
			visited++;
			o = outcome_of(&l[0], &f, now);
			ck_assert_int_eq(commit_one(st, &o, now), 0);
		}
		now += 250;
	}
	ck_assert_int_le(last, NOW + 4000); /* as soon as allowed, too */
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* One that was asked late is left alone for the gap from then on, by whoever comes. */
START_TEST(host_gap_from_sending) /* invariant 6 */
{
	struct fw_store *st = fresh(_i);
	struct fw_claim_ask ask = {.worker = "w", .now_ms = NOW, .lease_ms = 60000, .max = 100, .host_max = 1, .host_gap_ms = 1000};
	struct fw_claim_ask two = {.worker = "w", .now_ms = NOW + 5000, .lease_ms = 60000, .max = 100, .host_max = 2};
	struct fw_claim_ask other = {.worker = "v", .lease_ms = 60000, .max = 100, .host_max = 1, .host_gap_ms = 1000};
	struct fw_claim_got got;
	struct fw_lease l[100];
	struct fw_feed f[2];
	struct fw_outcome o[2];
	struct fw_commit c = {.now_ms = NOW + 5100, .outcome = o, .n = 2};
	struct fw_err err = {0};

	subscribe_many(st, "https://one.example/%d", 0, 6, NOW - 1000);
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 1);
	o[0] = outcome_of(&l[0], &f[0], NOW);
	o[0].host_wait_ms = 900; /* it was sent at NOW + 700 */
	ck_assert_int_eq(commit_one(st, &o[0], NOW + 800), 0);
	other.now_ms = NOW + 1699;
	OK(fw_store_claim(st, &other, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 0);
	ck_assert_int_eq(got.next_ms, NOW + 1700);
	other.now_ms = NOW + 1700;
	OK(fw_store_claim(st, &other, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 1);
	/* the loan's gap is the longer one */
	o[0] = outcome_of(&l[0], &f[0], NOW);
	o[0].host_wait_ms = 10;
	ck_assert_int_eq(commit_one(st, &o[0], NOW + 1800), 0);
	ask.now_ms = NOW + 2699;
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 0);
	ask.now_ms = NOW + 2700;
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 1);
	OK(fw_store_release(st, l, 1, &err));
	/* of several the latest */
	OK(fw_store_claim(st, &two, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 2);
	for (int i = 0; i < 2; i++) {
		o[i] = outcome_of(&l[i], &f[i], NOW);
		o[i].host_wait_ms = i ? 300 : 700;
	}
	OK(fw_store_commit(st, &c, &err));
	other.now_ms = NOW + 5799;
	OK(fw_store_claim(st, &other, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 0);
	other.now_ms = NOW + 5800;
	OK(fw_store_claim(st, &other, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 1);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* An outcome names the host: feeds of several addresses share a budget, from then on; and go back to that of their own. */
START_TEST(host_key_moves_a_feed)
{
	struct fw_store *st = fresh(_i);
	struct fw_claim_ask ask = {.worker = "w", .now_ms = NOW, .lease_ms = 60000, .max = 9, .host_max = 1, .host_gap_ms = 0};
	static const char KEY[] = "[203.0.113.7]";
	struct fw_claim_got got;
	struct fw_lease l[9];
	struct fw_feed f, all_f[3];
	struct fw_outcome o, all[3];
	struct fw_commit c = {.now_ms = NOW, .outcome = all, .n = 3};
	struct fw_err err = {0};
	int64_t moved, id[3];

	id[0] = subscribe(st, "https://a.example/", NOW - 3);
	id[1] = subscribe(st, "https://b.example/", NOW - 2);
	id[2] = subscribe(st, "https://c.example/", NOW - 1);
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 3);
	for (int i = 0; i < 3; i++) {
		all[i] = outcome_of(&l[i], &all_f[i], NOW);
		all_f[i].due_at_ms = NOW + 10 + i;
		all_f[i].host_key = i < 2 ? fw_str(KEY) : FW_STR_NONE;
		all[i].groups = i < 2 ? FW_GROUP_HOST : 0;
		all[i].host_wait_ms = i == 1 ? 500 : 0; /* the key's, from now on */
	}
	OK(fw_store_commit(st, &c, &err));
	ck_assert(!all[0].rc && !all[1].rc && !all[2].rc);
	check_clean(st);
	ask.now_ms = NOW + 499;
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 1);
	ck_assert_int_eq(l[0].feed.id, id[2]);
	ck_assert_int_eq(l[0].host_id, 0);
	ck_assert(!l[0].feed.host_key.len);
	ask.now_ms = NOW + 500;
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 1);
	ck_assert_int_ne(l[0].host_id, 0);
	ck_assert(fw_str_eq(l[0].feed.host_key, fw_str(KEY)));
	moved = l[0].feed.id;
	/* it is elsewhere now: the other one has the key for itself */
	o = outcome_of(&l[0], &f, NOW);
	f.due_at_ms = NOW + 600;
	f.host_key = FW_STR_NONE;
	o.groups = FW_GROUP_HOST;
	ck_assert_int_eq(commit_one(st, &o, NOW + 501), 0);
	check_clean(st);
	ask.now_ms = NOW + 600;
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 2);
	for (int i = 0; i < 2; i++)
		ck_assert(fw_str_eq(l[i].feed.host_key, l[i].feed.id == moved ? FW_STR_NONE : fw_str(KEY)));
	/* with a new address it keeps its key */
	for (int i = 0; i < 2; i++) {
		o = outcome_of(&l[i], &f, NOW);
		if (l[i].feed.id != moved) {
			f.url = FW_STR("https://c.example/moved");
			o.groups = FW_GROUP_URL;
		}
		ck_assert_int_eq(commit_one(st, &o, NOW + 601), 0);
	}
	OK(fw_store_feed_find(st, moved == id[0] ? id[1] : id[0], FW_STR_NONE, &A, &f, &err));
	ck_assert(fw_str_eq(f.url, FW_STR("https://c.example/moved")) && fw_str_eq(f.host_key, fw_str(KEY)));
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(crowded_host_does_not_starve_others)
{
	struct fw_store *st = fresh(_i);
	struct fw_claim_ask ask = {.worker = "w", .now_ms = NOW, .lease_ms = 60000, .max = 100, .host_max = 2, .host_gap_ms = 1000};
	struct fw_claim_got got;
	struct fw_lease l[100];
	struct fw_err err = {0};
	int others = 0, claims = 0;

	subscribe_many(st, "https://crowd.example/%d", 0, 500, NOW - 100000); /* overdue for longest */
	subscribe_many(st, "https://h%d.example/", 0, 500, NOW - 1000);
	while (others < 500) {
		ck_assert_int_lt(claims, 7); /* six would do without the crowd: at most one batch of delay */
		OK(fw_store_claim(st, &ask, &A, l, &got, &err));
		for (size_t i = 0; i < got.n; i++)
			others += !fw_str_starts(l[i].feed.url, FW_STR("https://crowd"));
		claims++;
	}
	ck_assert_int_eq(stats(st, NOW).lent_n, 501); /* one of the crowd: the gap */
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(host_cooldown_is_kept)
{
	struct fw_store *st = fresh(_i);
	struct fw_lease l[3];
	struct fw_feed f;
	struct fw_outcome o;
	struct fw_claim_ask ask = {.worker = "w", .now_ms = NOW, .lease_ms = 60000, .max = 1, .host_max = 1};
	struct fw_claim_got got;
	struct fw_err err = {0};

	subscribe_many(st, "https://one.example/%d", 0, 2, NOW - 1);
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	o = outcome_of(&l[0], &f, NOW);
	o.host_cooldown_ms = NOW + 30000;
	ck_assert_int_eq(commit_one(st, &o, NOW), 0);
	ask.now_ms = NOW + 29999;
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 0);
	ck_assert_int_eq(got.next_ms, NOW + 30000);
	ask.now_ms = NOW + 30000;
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 1);
	check_clean(st);
	fw_store_close(st);
	/* the only feed of its host, due before the cooldown ends */
	st = fresh(_i);
	subscribe(st, "https://two.example/", NOW - 1);
	ask.now_ms = NOW;
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 1);
	o = outcome_of(&l[0], &f, NOW);
	f.due_at_ms = NOW + 10;
	o.host_cooldown_ms = NOW + 5000;
	ck_assert_int_eq(commit_one(st, &o, NOW), 0);
	ask.now_ms = NOW + 4999;
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 0);
	ask.now_ms = NOW + 5000;
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 1);
	ck_assert_int_eq(l[0].feed.due_at_ms, NOW + 10);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(second_feed_of_a_host_joins_while_the_first_is_lent)
{
	struct fw_store *st = fresh(_i);
	struct fw_claim_ask ask = {.worker = "w", .now_ms = NOW, .lease_ms = 60000, .max = 9, .host_max = 1};
	struct fw_claim_got got;
	struct fw_lease l[9];
	struct fw_feed f;
	struct fw_outcome o;
	struct fw_err err = {0};
	int64_t second;

	subscribe(st, "https://one.example/1", NOW);
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 1);
	o = outcome_of(&l[0], &f, NOW);
	second = subscribe(st, "https://one.example/2", NOW);
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 0); /* the first one's loan counts */
	ck_assert_uint_eq(got.deferred_n, 1);
	check_clean(st);
	ck_assert_int_eq(commit_one(st, &o, NOW), 0);
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 1);
	ck_assert_int_eq(l[0].feed.id, second);
	OK(fw_store_unsubscribe(st, second, &err)); /* while lent */
	check_clean(st);
	ck_assert_int_eq(stats(st, NOW).lent_n, 0);
	fw_store_close(st);
}
END_TEST

/* ---- outcomes ------------------------------------------------------------------------------------------------------------ */

START_TEST(groups_are_written_and_only_these)
{
	struct fw_store *st = fresh(_i);
	struct fw_lease l[1];
	struct fw_feed f, g;
	struct fw_outcome o;
	int64_t id = subscribe(st, "https://a.example/", NOW);

	ck_assert_uint_eq(claim_at(st, NOW, 1, l, &A), 1);
	o = outcome_of(&l[0], &f, NOW);
	f.error = FW_STR("words");
	f.validator_url = FW_STR("https://a.example/final");
	f.etag = FW_STR("W/\"\xff\x01\"");
	f.last_modified = FW_STR("yesterday");
	f.validators_ms = 7;
	f.body_hash = UINT64_MAX - 5;
	f.title = FW_STR("Title");
	f.home_page_url = FW_STR("https://a.example/home");
	f.description = FW_STR("About");
	f.language = FW_STR("en");
	f.icon = FW_STR("icon");
	f.format = FW_ATOM10;
	f.hub = FW_STR("hub");
	f.topic = FW_STR("topic");
	f.extra = FW_STR("{}");
	f.rhythm = FW_STR("r1");
	f.redirect_url = FW_STR("https://b.example/");
	f.redirect_since_ms = 3;
	f.redirect_n = 2;
	f.fail_n = 4;
	f.crash_n = 1;
	f.expect_us = 5;
	f.expect_dev_us = 6;
	f.folder = FW_STR("not mine");
	o.groups = FW_GROUP_ERROR | FW_GROUP_VALIDATORS | FW_GROUP_META | FW_GROUP_RHYTHM | FW_GROUP_REDIRECT;
	ck_assert_int_eq(commit_one(st, &o, NOW), 0);
	for (int round = 0; round < 2; round++) {
		g = find(st, id, &A);
		ck_assert(fw_str_eq(g.error, f.error) && fw_str_eq(g.validator_url, f.validator_url));
		ck_assert(fw_str_eq(g.etag, FW_STR("W/\"\xff\x01\""))); /* POL-01 */
		ck_assert(fw_str_eq(g.last_modified, f.last_modified) && g.validators_ms == 7 && g.body_hash == UINT64_MAX - 5);
		ck_assert(fw_str_eq(g.title, f.title) && fw_str_eq(g.home_page_url, f.home_page_url));
		ck_assert(fw_str_eq(g.description, f.description) && fw_str_eq(g.language, f.language));
		ck_assert(fw_str_eq(g.icon, f.icon) && g.format == FW_ATOM10 && fw_str_eq(g.hub, f.hub));
		ck_assert(fw_str_eq(g.topic, f.topic) && fw_str_eq(g.extra, f.extra) && fw_str_eq(g.rhythm, f.rhythm));
		ck_assert(fw_str_eq(g.redirect_url, f.redirect_url) && g.redirect_since_ms == 3 && g.redirect_n == 2);
		ck_assert(g.fail_n == 4 && g.crash_n == 1 && g.expect_us == 5 && g.expect_dev_us == 6);
		ck_assert(g.due_at_ms == NOW + 3600000 * (round + 1) && fw_str_eq(g.why, FW_STR("default 60 min")));
		ck_assert(g.last_visit_ms == NOW + round && g.last_ok_ms == NOW + round && g.http_status == 304);
		ck_assert_ptr_null(g.folder.p);
		if (round)
			break;
		/* an unchanged visit: other words in the other groups are not looked at */
		ck_assert_uint_eq(claim_at(st, NOW + 3600000, 1, l, &A), 1);
		ck_assert(fw_str_eq(l[0].feed.etag, f.etag) && l[0].feed.body_hash == f.body_hash);
		o = outcome_of(&l[0], &g, NOW + 1);
		g.due_at_ms = NOW + 7200000;
		g.title = g.etag = g.error = g.rhythm = FW_STR("changed in vain");
		ck_assert_int_eq(commit_one(st, &o, NOW + 3600001), 0);
	}
	fw_store_close(st);
}
END_TEST

START_TEST(url_adoption)
{
	struct fw_store *st = fresh(_i);
	struct fw_lease l[2];
	struct fw_feed f, g;
	struct fw_outcome o;
	struct fw_err err = {0};
	int64_t id = subscribe(st, "https://a.example/", NOW), other;

	other = subscribe(st, "https://b.example/taken", NOW + 1000);
	ck_assert_uint_eq(claim_at(st, NOW, 1, l, &A), 1);
	o = outcome_of(&l[0], &f, NOW);
	f.url = FW_STR("https://b.example/taken");
	o.groups = FW_GROUP_URL;
	ck_assert_int_eq(commit_one(st, &o, NOW), FW_EINVAL);
	g = find(st, id, &A);
	ck_assert_str_eq(g.url.p, "https://a.example/");
	ck_assert_int_eq(g.last_visit_ms, NOW); /* the rest of the outcome was written */
	check_clean(st);
	ck_assert_uint_eq(claim_at(st, NOW + 3600000, 2, l, &A), 2);
	o = outcome_of(l[0].feed.id == id ? &l[0] : &l[1], &f, NOW);
	f.url = FW_STR("https://b.example/free");
	o.groups = FW_GROUP_URL;
	ck_assert_int_eq(commit_one(st, &o, NOW), 0);
	check_clean(st);
	OK(fw_store_feed_find(st, 0, FW_STR("https://b.example/free"), &A, &g, &err));
	ck_assert_int_eq(g.id, id);
	IS(fw_store_feed_find(st, 0, FW_STR("https://a.example/"), &A, &g, &err), FW_ENOTFOUND);
	OK(fw_store_unsubscribe(st, other, &err));
	OK(fw_store_unsubscribe(st, id, &err));
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(url_adoption_keeps_the_budget_right)
{
	static const char *const to[] = {"https://one.example/moved", "https://other.example/moved", "https://two.example/moved"};
	struct fw_claim_ask ask = {.worker = "w", .now_ms = NOW, .lease_ms = 60000, .max = 9, .host_max = 1};
	struct fw_claim_got got;
	struct fw_lease l[9];
	struct fw_feed f;
	struct fw_outcome o;
	struct fw_err err = {0};

	for (size_t i = 0; i < FW_N(to); i++) { /* within its crowded host; to one alone; to one where another is lent */
		struct fw_store *st = fresh(_i);
		int64_t id = subscribe(st, "https://one.example/1", NOW - 100000);

		subscribe(st, "https://one.example/2", NOW);
		subscribe(st, "https://two.example/1", NOW);
		OK(fw_store_claim(st, &ask, &A, l, &got, &err));
		ck_assert_uint_eq(got.n, 2);
		ck_assert_int_eq(l[0].feed.id, id);
		o = outcome_of(&l[0], &f, NOW);
		f.url = fw_str(to[i]);
		f.due_at_ms = NOW;
		o.groups = FW_GROUP_URL;
		ck_assert_int_eq(commit_one(st, &o, NOW), 0);
		check_clean(st);
		o = outcome_of(&l[1], &f, NOW);
		ck_assert_int_eq(commit_one(st, &o, NOW), 0);
		check_clean(st);
		OK(fw_store_claim(st, &ask, &A, l, &got, &err));
		ck_assert_uint_eq(got.n, i == 0 ? 1 : 2); /* one.example lends one at a time */
		check_clean(st);
		fw_store_close(st);
	}
}
END_TEST

START_TEST(status_of_owner_and_of_server)
{
	struct fw_store *st = fresh(_i);
	struct fw_lease l[1];
	struct fw_feed f, set = {.status = FW_FEED_PAUSED};
	struct fw_outcome o;
	struct fw_err err = {0};

	set.id = subscribe(st, "https://a.example/", NOW);
	/* paused while lent: the visit is stored, the pause stays */
	ck_assert_uint_eq(claim_at(st, NOW, 1, l, &A), 1);
	OK(fw_store_feed_set(st, &set, FW_SET_STATUS, &err));
	o = outcome_of(&l[0], &f, NOW);
	ck_assert_int_eq(commit_one(st, &o, NOW), 0);
	ck_assert_int_eq(find(st, set.id, &A).status, FW_FEED_PAUSED);
	ck_assert_int_eq(find(st, set.id, &A).last_visit_ms, NOW);
	ck_assert_uint_eq(claim_at(st, NOW + 7200000, 1, l, &A), 0);
	ck_assert_int_eq(stats(st, NOW).paused_n, 1);
	ck_assert_int_eq(stats(st, NOW + 7200000).due_n, 0);
	check_clean(st);
	set.status = FW_FEED_ACTIVE;
	set.due_at_ms = NOW + 50;
	OK(fw_store_feed_set(st, &set, FW_SET_STATUS | FW_SET_DUE, &err));
	ck_assert_uint_eq(claim_at(st, NOW + 49, 1, l, &A), 0);
	ck_assert_uint_eq(claim_at(st, NOW + 50, 1, l, &A), 1);
	/* the server says 410 */
	o = outcome_of(&l[0], &f, NOW + 50);
	f.status = FW_FEED_GONE;
	ck_assert_int_eq(commit_one(st, &o, NOW + 50), 0);
	ck_assert_int_eq(stats(st, NOW).gone_n, 1);
	ck_assert_uint_eq(claim_at(st, NOW + 72000000, 1, l, &A), 0);
	check_clean(st);
	/* paused while waiting, and while its lease runs out */
	set.due_at_ms = NOW;
	OK(fw_store_feed_set(st, &set, FW_SET_STATUS | FW_SET_DUE, &err));
	ck_assert_uint_eq(claim_at(st, NOW, 1, l, &A), 1);
	set.status = FW_FEED_PAUSED;
	OK(fw_store_feed_set(st, &set, FW_SET_STATUS, &err));
	ck_assert_uint_eq(claim_at(st, NOW + 100000, 1, l, &A), 0);
	check_clean(st);
	set.id = 999;
	IS(fw_store_feed_set(st, &set, FW_SET_STATUS, &err), FW_ENOTFOUND);
	fw_store_close(st);
}
END_TEST

START_TEST(due_set_while_lent) /* and then given back unvisited: that is how a feed is put off */
{
	struct fw_store *st = fresh(_i);
	struct fw_lease l[3];
	struct fw_feed set = {.due_at_ms = NOW + 5000};
	struct fw_err err = {0};

	for (int i = 0; i < 3; i++) /* of one host, and of another */
		subscribe(st, i < 2 ? i ? "https://b.netlify.app/" : "https://a.netlify.app/" : "https://c.example/", NOW);
	ck_assert_uint_eq(claim_at(st, NOW, 3, l, &A), 3);
	for (int i = 0; i < 3; i++) {
		set.id = l[i].feed.id;
		OK(fw_store_feed_set(st, &set, FW_SET_DUE, &err));
	}
	OK(fw_store_release(st, l, 3, &err));
	ck_assert_uint_eq(claim_at(st, NOW + 4999, 3, l, &A), 0);
	ck_assert_uint_eq(claim_at(st, NOW + 5000, 3, l, &A), 3);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

struct seen {
	int n;
	struct fw_entry_row row[20];
};

static int keep_row(void *ctx, const struct fw_entry_row *row)
{
	struct seen *s = ctx;
	struct fw_entry_row *e = &s->row[s->n++];

	*e = *row;
	e->title = fw_arena_str(&A, row->title);
	e->content = fw_arena_str(&A, row->content);
	e->guid = fw_arena_str(&A, row->guid);
	e->url = fw_arena_str(&A, row->url);
	e->author = fw_arena_str(&A, row->author);
	e->summary = fw_arena_str(&A, row->summary);
	e->extra = fw_arena_str(&A, row->extra);
	e->content_base = fw_arena_str(&A, row->content_base);
	e->feed_title = fw_arena_str(&A, row->feed_title);
	e->feed_url = fw_arena_str(&A, row->feed_url);
	return s->n == 20;
}

static struct seen entries(struct fw_store *st, struct fw_entry_query q)
{
	struct seen s = {0};
	struct fw_err err = {0};

	OK(fw_store_entry_list(st, &q, keep_row, &s, &err));
	return s;
}

static void visit_with(struct fw_store *st, int64_t at, const struct fw_entry_row *e, size_t n, uint32_t new_n, uint32_t changed_n)
{
	struct fw_lease l[1];
	struct fw_feed f;
	struct fw_outcome o;

	ck_assert_uint_eq(claim_at(st, at, 1, l, &A), 1);
	o = outcome_of(&l[0], &f, at);
	o.entries = e;
	o.entry_n = n;
	ck_assert_int_eq(commit_one(st, &o, at), 0);
	ck_assert_uint_eq(o.visit.new_n, new_n);
	ck_assert_uint_eq(o.visit.changed_n, changed_n);
}

#define HOUR 3600000

START_TEST(entries_once_each) /* REL-02, invariant 2 */
{
	struct fw_store *st = fresh(_i);
	struct fw_entry_row e[4] = {entry(1, 1, "one", "<p>first</p>"), entry(2, 1, "two", "second"), entry(3, 1, "three", ""),
		entry(1, 9, "one again", "same key, other text: the first in a document counts")};
	int64_t id = subscribe(st, "https://a.example/", NOW);
	struct seen s;

	visit_with(st, NOW, e, 4, 3, 0);
	visit_with(st, NOW + HOUR, e, 4, 0, 0);
	e[1].hash = 2;
	e[1].title = FW_STR("two, corrected");
	visit_with(st, NOW + 2 * HOUR, e, 3, 0, 1);
	ck_assert_int_eq(entry_count(st, id), 3);
	ck_assert_int_eq(find(st, id, &A).entry_n, 3);
	ck_assert_int_eq(find(st, id, &A).last_new_ms, NOW);
	s = entries(st, (struct fw_entry_query){.oldest_first = true, .content = true, .key = true});
	ck_assert_int_eq(s.n, 3);
	ck_assert_str_eq(s.row[0].title.p, "one");
	ck_assert_str_eq(s.row[0].content.p, "<p>first</p>");
	ck_assert_str_eq(s.row[1].title.p, "two, corrected");
	ck_assert_uint_eq(s.row[1].revision, 2);
	ck_assert_int_eq(s.row[1].seen_ms, NOW);
	ck_assert_int_eq(s.row[1].changed_ms, NOW + 2 * HOUR);
	ck_assert_uint_eq(s.row[1].hash, 2);
	ck_assert_uint_eq(s.row[0].revision, 1);
	ck_assert_int_eq(s.row[0].changed_ms, NOW);
	ck_assert(memcmp(s.row[2].key, e[2].key, 16) == 0);
	ck_assert_int_gt(s.row[1].id, s.row[0].id);
	ck_assert_int_gt(s.row[2].id, s.row[1].id);
	ck_assert_str_eq(s.row[0].feed_url.p, "https://a.example/");
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(entry_members_round_trip)
{
	struct fw_store *st = fresh(_i);
	struct fw_buf big = FW_BUF_INIT(0);
	struct fw_entry_row e = entry(1, 1, "t", NULL), r;
	struct seen s;

	for (int i = 0; i < 60000; i++)
		fw_buf_addf(&big, "<p>%d \xc3\xa9\xe2\x82\xac</p>", i);
	e.guid = FW_STR("guid");
	e.url = FW_STR("https://a.example/1");
	e.author = FW_STR("A. Writer");
	e.summary = FW_STR("");
	e.content = fw_buf_str(&big);
	e.content_base = FW_STR("https://a.example/base");
	e.content_type = FW_TEXT_PLAIN;
	e.published_ms = NOW - 5;
	e.updated_ms = -1;
	e.extra = FW_STR("{\"tags\":[]}");
	e.hash = UINT64_MAX;
	subscribe(st, "https://a.example/", NOW);
	visit_with(st, NOW, &e, 1, 1, 0);
	s = entries(st, (struct fw_entry_query){.content = true, .key = true});
	ck_assert_int_eq(s.n, 1);
	r = s.row[0];
	ck_assert(fw_str_eq(r.guid, e.guid) && fw_str_eq(r.url, e.url) && fw_str_eq(r.author, e.author));
	ck_assert(r.summary.p && r.summary.len == 0);
	ck_assert(fw_str_eq(r.content, e.content) && fw_str_eq(r.content_base, e.content_base));
	ck_assert(r.content_type == FW_TEXT_PLAIN && r.published_ms == NOW - 5 && r.updated_ms == -1);
	ck_assert(fw_str_eq(r.extra, e.extra) && r.hash == UINT64_MAX && r.seen_ms == NOW);
	s = entries(st, (struct fw_entry_query){.content = false});
	ck_assert_ptr_null(s.row[0].content.p);
	fw_buf_finish(&big);
	fw_store_close(st);
}
END_TEST

START_TEST(entry_queries)
{
	struct fw_store *st = fresh(_i);
	struct fw_entry_row e[4] = {entry(1, 1, "newest", "x"), entry(2, 1, "oldest", "x"), entry(3, 1, "from the future", "x"),
		entry(4, 1, "updated only", "x")};
	int64_t a = subscribe(st, "https://a.example/", NOW), b = subscribe(st, "https://b.example/", NOW + 1);
	struct seen s;

	e[0].published_ms = NOW - 10;
	e[1].published_ms = NOW - 30;
	e[2].published_ms = NOW + 99 * INT64_C(86400000); /* counts as seen now */
	e[3].updated_ms = NOW - 25;
	visit_with(st, NOW, e, 4, 4, 0);
	e[0].published_ms = NOW - 20;
	e[0].updated_ms = NOW - 1;
	e[0].title = FW_STR("middle");
	visit_with(st, NOW + 1, e, 1, 1, 0);
	s = entries(st, (struct fw_entry_query){0});
	ck_assert_int_eq(s.n, 5);
	ck_assert_str_eq(s.row[0].title.p, "from the future");
	ck_assert_str_eq(s.row[1].title.p, "newest");
	ck_assert_str_eq(s.row[2].title.p, "middle");
	ck_assert_str_eq(s.row[3].title.p, "updated only");
	ck_assert_str_eq(s.row[4].title.p, "oldest");
	s = entries(st, (struct fw_entry_query){.limit = 2});
	ck_assert_int_eq(s.n, 2);
	s = entries(st, (struct fw_entry_query){.feed_id = b});
	ck_assert_int_eq(s.n, 1);
	ck_assert_str_eq(s.row[0].title.p, "middle");
	s = entries(st, (struct fw_entry_query){.feed_id = a, .limit = 1});
	ck_assert_str_eq(s.row[0].title.p, "from the future");
	s = entries(st, (struct fw_entry_query){.since_ms = NOW + 1});
	ck_assert_int_eq(s.n, 1);
	s = entries(st, (struct fw_entry_query){.since_ms = NOW});
	ck_assert_int_eq(s.n, 5);
	ck_assert_str_eq(s.row[4].title.p, "oldest");
	s = entries(st, (struct fw_entry_query){.since_ms = NOW, .after_id = s.row[4].id});
	ck_assert_int_eq(s.n, 3);
	s = entries(st, (struct fw_entry_query){.since_ms = NOW + 1000000});
	ck_assert_int_eq(s.n, 0);
	s = entries(st, (struct fw_entry_query){.oldest_first = true});
	s = entries(st, (struct fw_entry_query){.oldest_first = true, .after_id = s.row[0].id, .before_id = s.row[2].id});
	ck_assert_int_eq(s.n, 1);
	ck_assert_str_eq(s.row[0].title.p, "oldest");
	fw_store_close(st);
}
END_TEST

/* Newest first, page by page: all of it once, whatever has the same date and however new ones come meanwhile. */
static void pages(struct fw_store *st, struct fw_entry_query q, const char *want)
{
	char got[100] = "";
	struct seen s;

	q.limit = 2;
	do {
		s = entries(st, q);
		for (int i = 0; i < s.n; i++) {
			size_t len = strlen(got);

			(void)fw_snprintf(got + len, sizeof(got) - len, "%s", s.row[i].title.p);
			q.behind_id = s.row[i].id;
			q.behind_date_ms = fw_store_entry_date(&s.row[i], s.row[i].seen_ms);
		}
	} while (s.n);
	ck_assert_str_eq(got, want);
}

START_TEST(pages_newest_first)
{
	static const struct { const char *title; int64_t date_ms; } ROW[] = {
		{"a", NOW - 9 * HOUR}, {"b", NOW - 30 * HOUR}, {"c", NOW - 9 * HOUR}, {"d", NOW - 9 * HOUR}, {"e", NOW - 80 * HOUR}, {"f", FW_NO_DATE},
		{"g", NOW - 9 * HOUR},
	};
	struct fw_store *st = fresh(_i);
	struct fw_entry_query first = {.limit = 3};
	int64_t a = subscribe(st, "https://a.example/", NOW), b = subscribe(st, "https://b.example/", NOW + 1);
	struct fw_entry_row e[FW_N(ROW)];
	struct fw_err err;
	struct seen s;

	for (size_t i = 0; i < FW_N(ROW); i++) {
		e[i] = entry((int)i, 1, ROW[i].title, i == 1 ? "other" : "word");
		e[i].published_ms = ROW[i].date_ms;
	}
	visit_with(st, NOW, e, 4, 4, 0);
	visit_with(st, NOW + 1, e + 4, 3, 3, 0);
	pages(st, (struct fw_entry_query){0}, "fgdcabe");
	pages(st, (struct fw_entry_query){.feed_id = a}, "dcab");
	pages(st, (struct fw_entry_query){.feed_id = b}, "fge");
	pages(st, (struct fw_entry_query){.since_ms = NOW}, "fgdcabe");
	pages(st, (struct fw_entry_query){.search = FW_STR("word")}, "fgdcae");
	s = entries(st, first);
	first.behind_id = s.row[2].id;
	first.behind_date_ms = fw_store_entry_date(&s.row[2], s.row[2].seen_ms);
	e[0] = entry(77, 1, "new", "c");
	visit_with(st, NOW + 2 * HOUR, e, 1, 1, 0);
	pages(st, first, "cabe");
	first.oldest_first = true;
	ck_assert_int_eq(fw_store_entry_list(st, &first, NULL, NULL, &err), FW_EINVAL);
	fw_store_close(st);
}
END_TEST

START_TEST(since_among_many)
{
	struct fw_store *st = fresh(_i);
	struct fw_entry_row e;

	subscribe(st, "https://a.example/", NOW);
	for (int i = 0; i < 50; i++) {
		e = entry(i, 1, "t", "c");
		visit_with(st, NOW + i * HOUR, &e, 1, 1, 0);
	}
	for (int i = 35; i < 50; i++) {
		ck_assert_int_eq(entries(st, (struct fw_entry_query){.since_ms = NOW + i * HOUR}).n, 50 - i);
		ck_assert_int_eq(entries(st, (struct fw_entry_query){.since_ms = NOW + i * HOUR + 1, .oldest_first = true}).n, 49 - i);
	}
	fw_store_close(st);
}
END_TEST

static int search_n(struct fw_store *st, const char *words)
{
	return entries(st, (struct fw_entry_query){.search = fw_str(words)}).n;
}

START_TEST(search_words) /* also: the user's words are never query syntax */
{
	struct fw_store *st = fresh(_i);
	struct fw_entry_row e[3] = {
		entry(1, 1, "Comet seen", "<p class=\"hidden\">The tail was <b>long</b> and bright</p><script>var secret;</script>"),
		entry(2, 1, "Weather", "Long rain, 3 < 4 > 2"), entry(3, 1, "\xc3\x84pfel", "")};
	struct fw_err err = {0};
	bool more = true;
	int64_t id = subscribe(st, "https://a.example/", NOW);

	visit_with(st, NOW, e, 3, 3, 0);
	for (int round = 0; round < 2; round++) {
		ck_assert_int_eq(search_n(st, "comet"), 1);
		ck_assert_int_eq(search_n(st, "long"), 2);
		ck_assert_int_eq(search_n(st, "long rain"), 1);
		ck_assert_int_eq(search_n(st, "rain comet"), 0);
		ck_assert_int_eq(search_n(st, "com"), 0);
		ck_assert_int_eq(search_n(st, "com*"), 1);
		ck_assert_int_eq(search_n(st, "\"was long\""), 1 - (strcmp(under_test[_i].name, "memory") == 0)); /* tags between */
		ck_assert_int_eq(search_n(st, "\"long was\""), 0);
		ck_assert_int_eq(search_n(st, "\xc3\x84pfel"), 1);
		ck_assert_int_eq(search_n(st, "nothing OR comet"), 0);
		ck_assert_int_eq(search_n(st, "title:comet -\"); ^ NEAR( *"), 0);
		ck_assert_int_eq(search_n(st, "\"comet"), 1); /* a quote that was not closed */
		ck_assert_int_eq(search_n(st, "*"), 3); /* no word: no condition */
		while (more) /* and again when the index was filled in the background */
			OK(fw_store_upkeep(st, NOW, &more, &err));
		ck_assert_int_eq(stats(st, NOW).unindexed_n, 0);
	}
	if (strcmp(under_test[_i].name, "memory") != 0) {
		ck_assert_int_eq(search_n(st, "hidden"), 0);
		ck_assert_int_eq(search_n(st, "secret"), 0);
	}
	/* a change takes the old words out, and brings the new ones */
	e[0].hash = 2;
	e[0].content = FW_STR("gone is the tale");
	visit_with(st, NOW + HOUR, e, 3, 0, 1);
	ck_assert_int_eq(search_n(st, "bright"), 0);
	ck_assert_int_eq(search_n(st, "tale"), 1);
	check_clean(st);
	OK(fw_store_unsubscribe(st, id, &err));
	ck_assert_int_eq(search_n(st, "tale"), 0);
	ck_assert_int_eq(search_n(st, "weather"), 0);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

static int one_more(void *ctx, const struct fw_entry_row *row)
{
	(void)row;
	++*(int64_t *)ctx;
	return 0;
}

/* Of entries of which each holds "number": how many are found, and how many the search did not see. */
static int64_t found(struct fw_store *st, int64_t *unindexed_n)
{
	struct fw_entry_query q = {.search = FW_STR("number"), .unindexed_n = unindexed_n};
	struct fw_err err = {0};
	int64_t n = 0;

	*unindexed_n = -1;
	OK(fw_store_entry_list(st, &q, one_more, &n, &err));
	return n;
}

START_TEST(search_says_what_it_did_not_see) /* more than a search indexes by itself */
{
	const char *name = under_test[_i].name;
	bool by_itself = strcmp(name, "sqlite") != 0 && strcmp(name, "postgres") != 0;
	struct fw_store *st = fresh(_i);
	struct fw_entry_query all = {.limit = 1};
	int64_t unindexed_n;
	struct fw_err err = {0};
	bool more = true;

	subscribe(st, "https://a.example/", NOW);
	put_entries(st, &A, NOW, 0, 2500);
	ck_assert_int_eq(found(st, &unindexed_n) + unindexed_n, 2500);
	ck_assert(by_itself ? unindexed_n <= 500 : unindexed_n == 2500);
	all.unindexed_n = &unindexed_n;
	OK(fw_store_entry_list(st, &all, one_more, &(int64_t){0}, &err));
	ck_assert_int_eq(unindexed_n, 0); /* nothing was searched */
	while (more)
		OK(fw_store_upkeep(st, NOW, &more, &err));
	ck_assert_int_eq(found(st, &unindexed_n), 2500);
	ck_assert_int_eq(unindexed_n, 0);
	fw_store_close(st);
}
END_TEST

START_TEST(search_in_any_script)
{
	static const struct { const char *words; int hits; } ask[] = {
		{"\xc3\x89t\xc3\xa9", 1}, {"ete", 1}, {"ETE", 1}, {"e\xcc\x81te\xcc\x81", 1}, /* Été: composed, bare, decomposed */
		{"\xd0\x9c\xd0\x98\xd0\xa0", 1}, {"\xce\xba\xcf\x8c\xcf\x83\xce\xbc\xce\xbf\xcf\x82", 1}, /* МИР, κόσμος */
		{"viet", 1}, {"nam", 0},
		{"\xe6\x9d\xb1\xe4\xba\xac", 2},              /* Tokyo: also within a longer run, and behind a Latin word */
		{"\xe4\xba\xac\xe6\x9d\xb1", 0},              /* the other way round */
		{"\xe6\x9d\xb1*", 2}, {"\"\xe6\x9d\xb1\xe4\xba\xac\xe9\x83\xbd\"", 1},
		{"\xe3\x81\x99\xe3\x81\x97", 1},              /* sushi, in hiragana */
		{"iPhone\xe6\x9d\xb1\xe4\xba\xac", 1},
		{"dont", 0}, {"don't", 1}, {"caf\xc3\xa9", 1}, {"cafe", 1}, {"nbsp", 0}, {"amp", 0}, {"8217", 0}, {"comment", 0},
		{"stra\xc3\x9f""e", 1}, {"AT&T", 1}, {"a\xcc", 0},
	};
	struct fw_store *st = fresh(_i);
	struct fw_err err = {0};
	bool more = true;
	struct fw_entry_row e[] = {
		entry(1, 1, "\xc3\x89t\xc3\xa9", "<p>\xd0\xbc\xd0\xb8\xd1\x80 \xce\x9a\xcf\x8c\xcf\x83\xce\xbc\xce\xbf\xcf\x82</p>"),
		entry(2, 1, "\xe6\x9d\xb1\xe4\xba\xac\xe9\x83\xbd\xe3\x81\xae\xe3\x81\x99\xe3\x81\x97", "Vi\xe1\xbb\x87t"),
		entry(3, 1, "AT&T", "iPhone\xe6\x9d\xb1\xe4\xba\xac <!-- comment > --> don&#x2019;t&nbsp;caf&eacute; &amp; Stra&szlig;e &#99999999; &"),
	};

	if (strcmp(under_test[_i].name, "memory") == 0) { /* compares bytes */
		fw_store_close(st);
		return;
	}
	subscribe(st, "https://a.example/", NOW);
	visit_with(st, NOW, e, 3, 3, 0);
	while (more)
		OK(fw_store_upkeep(st, NOW, &more, &err));
	for (size_t i = 0; i < FW_N(ask); i++)
		ck_assert_msg(search_n(st, ask[i].words) == ask[i].hits, "%s: %d instead of %d", ask[i].words, search_n(st, ask[i].words),
			ask[i].hits);
	for (int i = 0; i < 3; i++) { /* a change forgets the very words that were put in */
		e[i].hash = 2;
		e[i].title = e[i].content = FW_STR("nothing");
	}
	visit_with(st, NOW + HOUR, e, 3, 0, 3);
	for (size_t i = 0; i < FW_N(ask); i++)
		ck_assert_int_eq(search_n(st, ask[i].words), 0);
	fw_store_close(st);
}
END_TEST

/* Each line is one thing to a reader, however it is written: any form finds the entry that any other form stands in, and no other. */
START_TEST(search_folds_letters)
{
	static const char *const same[][4] = {
		{u8"résumé", u8"RÉSUMÉ", u8"re\u0301sume\u0301", "resume"}, {u8"Straße", "STRASSE", u8"STRAẞE", u8"ſtraße"},
		{u8"İzmir", "Izmir", "izmir", u8"i\u0307zmir"}, {u8"ΟΔΟΣ", u8"οδός", u8"οδοσ", u8"οδο\u0301ς"},
		{u8"Ｗｉｄｅ１", "wide1", "WIDE1", u8"ｗｉＤＥ１"}, {u8"ﬁsh", "fish", "FISH", u8"ﬁSH"}, {u8"Ångström", u8"Ångström", "angstrom", "ANGSTROM"},
		{u8"Ёж", u8"ёж", u8"Еж", u8"е\u0308ж"}, {u8"ガス", u8"カ\u3099ス", u8"ｶﾞｽ", u8"ｶ\uff9eｽ"}, {u8"カス", u8"ｶｽ", u8"カス", u8"カｽ"},
		{u8"कीमत", u8"कीमत", u8"कीमत", u8"कीमत"}, {u8"कमत", u8"कमत", u8"कमत", u8"कमत"}, {u8"한글", u8"한글", u8"한글", u8"한글"},
		{u8"co\u00adoperate", "cooperate", "Cooperate", u8"coöperate"}, {u8"مُحَمَّد", u8"محمد", u8"محـمد", u8"ﻣﺤﻤﺪ"},
	};
	struct fw_entry_row e[FW_N(same)];
	struct fw_err err = {0};
	struct fw_store *st;

	if (strcmp(under_test[_i].name, "memory") == 0) /* compares bytes */
		return;
	for (size_t form = 0; form < 4; form++) {
		bool more = true;

		st = fresh(_i);
		subscribe(st, "https://a.example/", NOW);
		for (size_t i = 0; i < FW_N(same); i++)
			e[i] = entry((int)i, 1, same[i][form], "<p>text</p>");
		visit_with(st, NOW, e, FW_N(same), FW_N(same), 0);
		while (more)
			OK(fw_store_upkeep(st, NOW, &more, &err));
		for (size_t i = 0; i < FW_N(same); i++) {
			for (size_t k = 0; k < 4; k++) {
				struct seen s = entries(st, (struct fw_entry_query){.search = fw_str(same[i][k])});

				ck_assert_msg(s.n == 1 && fw_str_eq(s.row[0].title, fw_str(same[i][form])), "%s finds %d entries, not %s alone",
					same[i][k], s.n, same[i][form]);
			}
		}
		fw_store_close(st);
	}
}
END_TEST

START_TEST(search_takes_linear_time) /* invariant 5 */
{
	static const char *const part[] = {"<script>", "<style ", "<", "<!--", "<a ", "</script", "&", "&#x", "\xe6\x9d\xb1"};
	struct fw_store *st = fresh(_i);
	struct fw_err err = {0};
	bool more = true;

	subscribe(st, "https://a.example/", NOW);
	for (size_t i = 0; i < FW_N(part); i++) {
		struct fw_buf b = FW_BUF_INIT(0);
		struct fw_entry_row e = entry((int)i, 1, "t", "");

		while (b.len < 1000000)
			fw_buf_adds(&b, part[i]);
		e.content = fw_buf_str(&b);
		visit_with(st, NOW + (int64_t)i * HOUR, &e, 1, 1, 0);
		fw_buf_finish(&b);
	}
	while (more) /* the test's time limit is far above what this takes, and far below its square */
		OK(fw_store_upkeep(st, NOW, &more, &err));
	ck_assert_int_eq(stats(st, NOW).unindexed_n, 0);
	fw_store_close(st);
}
END_TEST

START_TEST(prune_forgets_for_good)
{
	struct fw_store *st = fresh(_i);
	struct fw_entry_row e[2] = {entry(1, 1, "old", "x"), entry(2, 1, "young", "y")};
	struct fw_err err = {0};
	int64_t id = subscribe(st, "https://a.example/", NOW), n;

	visit_with(st, NOW, e, 1, 1, 0);
	visit_with(st, NOW + HOUR, e, 2, 1, 0);
	ck_assert_int_eq(search_n(st, "old"), 1);
	OK(fw_store_prune(st, NOW + HOUR, NOW + HOUR, &n, &err));
	ck_assert_int_eq(n, 2); /* one visit, one entry */
	ck_assert_int_eq(entry_count(st, id), 1);
	ck_assert_int_eq(find(st, id, &A).entry_n, 1);
	ck_assert_int_eq(stats(st, NOW).visit_n, 1);
	ck_assert_int_eq(search_n(st, "old"), 0);
	visit_with(st, NOW + 2 * HOUR, e, 2, 0, 0); /* its feed still lists it: it stays away */
	e[0].hash = 5;
	visit_with(st, NOW + 3 * HOUR, e, 2, 0, 0);
	ck_assert_int_eq(entry_count(st, id), 1);
	OK(fw_store_prune(st, 0, 0, &n, &err));
	ck_assert_int_eq(n, 0);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* ---- the window ----------------------------------------------------------------------------------------------------------- */

START_TEST(subscribe_twice_changes_nothing)
{
	struct fw_store *st = fresh(_i);
	struct fw_feed_new n[3] = {{.url = FW_STR("https://a.example/"), .user_title = FW_STR("T"), .folder = FW_STR("F"),
		.home_page_url = FW_STR("H"), .username = FW_STR("u"), .password = FW_STR("p"), .interval_ms = 9, .due_at_ms = 5},
		{.url = FW_STR("https://a.example/"), .user_title = FW_STR("other")}, {.url = FW_STR("https://b.example/")}};
	struct fw_feed f;
	struct fw_err err = {0};

	OK(fw_store_subscribe(st, n, 3, &err));
	ck_assert(!n[0].existed && n[1].existed && !n[2].existed);
	ck_assert(n[0].id == n[1].id && n[2].id > n[0].id);
	f = find(st, n[0].id, &A);
	ck_assert(fw_str_eq(f.user_title, FW_STR("T")) && fw_str_eq(f.folder, FW_STR("F")) && fw_str_eq(f.home_page_url, FW_STR("H")));
	ck_assert(fw_str_eq(f.username, FW_STR("u")) && fw_str_eq(f.password, FW_STR("p")) && f.interval_ms == 9 && f.due_at_ms == 5);
	ck_assert(f.created_ms > 0 && f.last_visit_ms == 0 && f.last_kind == FW_VISIT_NONE && f.status == FW_FEED_ACTIVE);
	n[0].url = FW_STR("no host in here");
	IS(fw_store_subscribe(st, n, 1, &err), FW_EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "no host in here"));
	IS(fw_store_unsubscribe(st, 12345, &err), FW_ENOTFOUND);
	OK(fw_store_unsubscribe(st, n[2].id, &err));
	IS(fw_store_feed_find(st, n[2].id, FW_STR_NONE, &A, &f, &err), FW_ENOTFOUND);
	ck_assert_int_eq(stats(st, NOW).feed_n, 1);
	ck_assert_int_gt(subscribe(st, "https://b.example/", NOW), n[2].id); /* numbers are not used again */
	check_clean(st);
	fw_store_close(st);
}
END_TEST

static int keep_url(void *ctx, const struct fw_feed *f)
{
	fw_buf_addf(ctx, "%.*s ", FW_STR_ARG(fw_str_sub(f->url, 8, 9)));
	return 0;
}

static const char *urls(struct fw_store *st, struct fw_feed_query q)
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct fw_err err = {0};
	const char *s;

	OK(fw_store_feed_list(st, &q, keep_url, &b, &err));
	s = fw_arena_dup(&A, b.p, b.len);
	fw_buf_finish(&b);
	return s;
}

static int stop_at_once(void *ctx, const struct fw_feed *f)
{
	(void)ctx;
	(void)f;
	return 77;
}

/* Feeds that are not active, beside b: one by one and by their time, one of them lent. */
static void paused_lists(struct fw_store *st, int64_t b)
{
	struct fw_feed set = {.status = FW_FEED_PAUSED};
	struct fw_lease l[1];
	struct fw_err err = {0};

	ck_assert_uint_eq(claim_at(st, NOW + 20, 1, l, &A), 1);
	set.id = l[0].feed.id;
	OK(fw_store_feed_set(st, &set, FW_SET_STATUS, &err));
	ck_assert_str_eq(urls(st, (struct fw_feed_query){.status = FW_FEED_PAUSED}), "b c ");
	ck_assert_str_eq(urls(st, (struct fw_feed_query){.status = FW_FEED_PAUSED, .by_due = true}), "c b ");
	ck_assert_str_eq(urls(st, (struct fw_feed_query){.status = FW_FEED_PAUSED, .limit = 1}), "b ");
	ck_assert_str_eq(urls(st, (struct fw_feed_query){.status = FW_FEED_PAUSED, .after_id = b}), "c ");
	ck_assert_str_eq(urls(st, (struct fw_feed_query){.status = FW_FEED_PAUSED, .folder = FW_STR("News")}), "b ");
	ck_assert_str_eq(urls(st, (struct fw_feed_query){.status = FW_FEED_GONE, .by_due = true}), "");
	set.status = FW_FEED_ACTIVE;
	OK(fw_store_feed_set(st, &set, FW_SET_STATUS, &err));
	OK(fw_store_release(st, l, 1, &err));
}

START_TEST(feed_lists)
{
	struct fw_store *st = fresh(_i);
	struct fw_feed set = {.status = FW_FEED_PAUSED, .folder = FW_STR("News"), .user_title = FW_STR("Pretty Title")};
	struct fw_feed_query bad = {.status = -1, .by_due = true, .after_id = 1}, all = {.status = -1};
	struct fw_lease l[1];
	struct fw_feed f;
	struct fw_outcome o;
	struct fw_err err = {0};
	int64_t a = subscribe(st, "https://a.example/", NOW + 30), b = subscribe(st, "https://b.example/", NOW + 10);

	subscribe(st, "https://c.example/", NOW + 20);
	ck_assert_str_eq(urls(st, all), "a b c ");
	ck_assert_str_eq(urls(st, (struct fw_feed_query){.status = -1, .by_due = true}), "b c a ");
	ck_assert_str_eq(urls(st, (struct fw_feed_query){.status = -1, .after_id = a, .limit = 1}), "b ");
	ck_assert_str_eq(urls(st, (struct fw_feed_query){.status = -1, .match = FW_STR("C.EXAMPLE")}), "c ");
	ck_assert_uint_eq(claim_at(st, NOW + 10, 1, l, &A), 1);
	o = outcome_of(&l[0], &f, NOW);
	f.fail_n = 3;
	ck_assert_int_eq(commit_one(st, &o, NOW), 0);
	ck_assert_str_eq(urls(st, (struct fw_feed_query){.status = -1, .failing = true}), "b ");
	set.id = b;
	OK(fw_store_feed_set(st, &set, FW_SET_STATUS | FW_SET_FOLDER | FW_SET_TITLE, &err));
	ck_assert_str_eq(urls(st, (struct fw_feed_query){.status = FW_FEED_PAUSED}), "b ");
	paused_lists(st, b);
	ck_assert_str_eq(urls(st, (struct fw_feed_query){.status = FW_FEED_ACTIVE}), "a c ");
	ck_assert_str_eq(urls(st, (struct fw_feed_query){.status = -1, .folder = FW_STR("News")}), "b ");
	ck_assert_str_eq(urls(st, (struct fw_feed_query){.status = -1, .match = FW_STR("pretty t")}), "b ");
	IS(fw_store_feed_list(st, &bad, stop_at_once, NULL, &err), FW_EINVAL);
	ck_assert_int_eq(fw_store_feed_list(st, &all, stop_at_once, NULL, &err), 77);
	ck_assert_str_eq(urls(st, all), "a b c "); /* stopping left nothing open */
	set.interval_ms = 123;
	set.username = FW_STR("me");
	set.password = FW_STR("secret");
	OK(fw_store_feed_set(st, &set, FW_SET_INTERVAL | FW_SET_AUTH, &err));
	f = find(st, b, &A);
	ck_assert(f.interval_ms == 123 && fw_str_eq(f.username, set.username) && fw_str_eq(f.password, set.password));
	ck_assert(fw_str_eq(f.folder, FW_STR("News")) && f.status == FW_FEED_PAUSED);
	fw_store_close(st);
}
END_TEST

static int sum_visits(void *ctx, const struct fw_visit *v)
{
	int64_t *at = ctx;

	at[++at[0]] = v->at_ms;
	ck_assert_ptr_nonnull(v->feed_url.p);
	return 0;
}

START_TEST(visits_newest_first)
{
	struct fw_store *st = fresh(_i);
	struct fw_lease l[2];
	struct fw_feed f;
	struct fw_outcome o;
	struct fw_err err = {0};
	int64_t a = subscribe(st, "https://a.example/", NOW), got[20];

	subscribe(st, "https://b.example/", NOW);
	for (int i = 0; i < 3; i++) {
		size_t n = claim_at(st, NOW + i * HOUR, 2, l, &A);

		ck_assert_uint_eq(n, 2);
		for (size_t j = 0; j < n; j++) {
			o = outcome_of(&l[j], &f, NOW + i * HOUR);
			o.visit.run_id = 100 + i;
			o.visit.at_ms += l[j].feed.id == a;
			o.visit.error = FW_STR("words");
			ck_assert_int_eq(commit_one(st, &o, NOW + i * HOUR), 0);
		}
	}
	got[0] = 0;
	OK(fw_store_visit_list(st, &(struct fw_visit_query){.feed_id = a}, sum_visits, got, &err));
	ck_assert_int_eq(got[0], 3);
	ck_assert_int_eq(got[1], NOW + 2 * HOUR + 1);
	ck_assert_int_eq(got[3], NOW + 1);
	got[0] = 0;
	OK(fw_store_visit_list(st, &(struct fw_visit_query){.run_id = 101}, sum_visits, got, &err));
	ck_assert_int_eq(got[0], 2);
	got[0] = 0;
	OK(fw_store_visit_list(st, &(struct fw_visit_query){.feed_id = a, .run_id = 101}, sum_visits, got, &err));
	ck_assert_int_eq(got[0], 1);
	got[0] = 0;
	OK(fw_store_visit_list(st, &(struct fw_visit_query){.since_ms = NOW + HOUR, .limit = 3}, sum_visits, got, &err));
	ck_assert_int_eq(got[0], 3);
	got[0] = 0;
	OK(fw_store_visit_list(st, &(struct fw_visit_query){.run_id = 5}, sum_visits, got, &err));
	ck_assert_int_eq(got[0], 0);
	ck_assert_int_eq(stats(st, NOW).visit_n, 6);
	OK(fw_store_unsubscribe(st, a, &err));
	ck_assert_int_eq(stats(st, NOW).visit_n, 3);
	fw_store_close(st);
}
END_TEST

START_TEST(control_messages_in_order)
{
	struct fw_store *st = fresh(_i);
	struct fw_control c;
	struct fw_err err = {0};
	int64_t last;

	OK(fw_store_control_put(st, FW_CONTROL_STOP, NOW, &err));
	OK(fw_store_control_take(st, -1, &c, &err));
	ck_assert_int_eq(c.kind, FW_CONTROL_NONE);
	last = c.id; /* who starts now does not obey yesterday's stop */
	OK(fw_store_control_take(st, last, &c, &err));
	ck_assert_int_eq(c.kind, FW_CONTROL_NONE);
	OK(fw_store_control_put(st, FW_CONTROL_PAUSE, NOW, &err));
	OK(fw_store_control_put(st, FW_CONTROL_RESUME, NOW + 1, &err));
	OK(fw_store_control_take(st, last, &c, &err));
	ck_assert_int_eq(c.kind, FW_CONTROL_PAUSE);
	OK(fw_store_control_take(st, c.id, &c, &err));
	ck_assert_int_eq(c.kind, FW_CONTROL_RESUME);
	ck_assert_int_eq(c.created_ms, NOW + 1);
	OK(fw_store_control_take(st, c.id, &c, &err));
	ck_assert_int_eq(c.kind, FW_CONTROL_NONE);
	IS(fw_store_control_put(st, FW_CONTROL_NONE, NOW, &err), FW_EINVAL);
	fw_store_close(st);
}
END_TEST

static int keep_beat(void *ctx, const struct fw_beat *b)
{
	fw_buf_addf(ctx, "%s:%lld:%llu:%lld ", b->worker, (long long)b->pid, (unsigned long long)b->visits, (long long)b->at_ms);
	return 0;
}

START_TEST(beats)
{
	struct fw_store *st = fresh(_i);
	struct fw_beat b = {.worker = "host/1/0", .pid = 1, .started_ms = NOW, .visits = 10};
	struct fw_commit c = {.now_ms = 100, .beat = &b};
	struct fw_buf out = FW_BUF_INIT(0);
	struct fw_err err = {0};
	int64_t n;

	OK(fw_store_commit(st, &c, &err));
	b.visits = 20;
	c.now_ms = 200;
	OK(fw_store_commit(st, &c, &err));
	b.worker = "host/2/0";
	b.pid = 2;
	c.now_ms = 150;
	OK(fw_store_commit(st, &c, &err));
	OK(fw_store_beat_list(st, 0, keep_beat, &out, &err));
	ck_assert_str_eq(out.p, "host/1/0:1:20:200 host/2/0:2:20:150 ");
	fw_buf_reset(&out);
	OK(fw_store_beat_list(st, 180, keep_beat, &out, &err));
	ck_assert_str_eq(out.p, "host/1/0:1:20:200 ");
	fw_buf_reset(&out);
	OK(fw_store_prune(st, 180, 0, &n, &err));
	ck_assert_int_eq(n, 0);
	OK(fw_store_beat_list(st, 0, keep_beat, &out, &err));
	ck_assert_str_eq(out.p, "host/1/0:1:20:200 ");
	fw_buf_finish(&out);
	fw_store_close(st);
}
END_TEST

START_TEST(wait_ends_by_time_and_by_fd)
{
	struct fw_store *st = fresh(_i);
	struct fw_err err = {0};
	bool changed;
	int fd[2];

	ck_assert_int_eq(pipe(fd), 0);
	OK(fw_store_wait(st, fd[0], 60, &changed, &err));
	ck_assert(!changed);
	ck_assert_int_eq(write(fd[1], "x", 1), 1);
	OK(fw_store_wait(st, fd[0], 60000, &changed, &err)); /* the test's own time limit tells if this sleeps */
	ck_assert(!changed);
	close(fd[0]);
	close(fd[1]);
	fw_store_close(st);
}
END_TEST

/* A driver is in the build or absent; the store of an absent one is refused with the remedy, and without its password. */
START_TEST(absent_drivers_are_named)
{
	static const char *const every[] = {"sqlite", "memory", "redis", "postgres", "mysql"};
	struct fw_err err;
	size_t n = 0;

	for (size_t i = 0; fw_store_driver_at(i); i++)
		n++;
	for (size_t i = 0; fw_store_absent_at(i); i++, n++) {
		const char *name = fw_store_absent_at(i);
		char url[60], remedy[60];
		struct fw_store_config c = {.url = url};
		struct fw_store *st;

		ck_assert(fw_snprintf(url, sizeof(url), "%s://u:hush@127.0.0.1:1/x", name));
		ck_assert(fw_snprintf(remedy, sizeof(remedy), " and build with -D%s=enabled)", name));
		IS(fw_store_open(&c, &st, &err), FW_EUNSUP);
		ck_assert_ptr_null(st);
		ck_assert_msg(strstr(err.text, "://u:***@127.0.0.1:1/x\": this build has no ") && strstr(err.text, remedy), "%s", err.text);
		ck_assert_ptr_null(strstr(err.text, "hush"));
		ck_assert(!built_in(name));
	}
	ck_assert_uint_eq(n, FW_N(every));
	for (size_t i = 0; i < FW_N(every); i++)
		n -= built_in(every[i]);
	for (size_t i = 0; fw_store_absent_at(i); i++)
		n--;
	ck_assert_uint_eq(n, 0);
}
END_TEST

START_TEST(open_refuses) /* each names the thing and the remedy */
{
	static const struct { const char *url, *words; int rc; } T[] = {
		{"", "sqlite:/path", FW_EINVAL}, {"feeds", "write sqlite:feeds", FW_EINVAL},
		{"oracle:x", "knows sqlite:, memory:", FW_EINVAL}, {"memory:x", "nothing may follow", FW_EINVAL},
		{"sqlite:", "no file", FW_EINVAL}, {"sqlite::memory:", "no file", FW_EINVAL},
		{"sqlite:/nowhere/at/all.db", "feedwheel add", FW_ENOTFOUND}, {"sqlite:/", "not a regular file", FW_EINVAL},
	};
	struct fw_store *st;
	struct fw_err err;

	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_store_config c = {.url = T[i].url};

		IS(fw_store_open(&c, &st, &err), T[i].rc);
		ck_assert_msg(strstr(err.text, T[i].words) != NULL, "%s: %s", T[i].url, err.text);
		ck_assert_ptr_null(st);
	}
	fw_store_close(NULL);
	ck_assert_ptr_nonnull(fw_store_driver_at(1));
	ck_assert_ptr_null(fw_store_driver_at(99));
	ck_assert_str_eq(fw_visit_kind_name(FW_VISIT_NOT_MODIFIED), "not_modified");
	ck_assert_str_eq(fw_visit_kind_name((enum fw_visit_kind)99), "unknown");
	ck_assert_str_eq(fw_feed_status_name(FW_FEED_QUARANTINED), "quarantined");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("store contract");
	TCase *t = tcase_create("every driver"), *once = tcase_create("front");
	const TTest *const every[] = {
		claim_lends_once_earliest_first, claim_tells_when_to_come_again, claim_refuses_nonsense,
		due_before_holds_back_later_feeds, lease_that_ran_out_is_lent_again, commit_mixes_stale_and_good,
		release_gives_back_untouched, bury_frees_leases_and_charges_the_killer, host_budget_in_flight,
		host_gap_between_loans, host_gap_from_sending, host_key_moves_a_feed, crowded_host_does_not_starve_others, host_cooldown_is_kept, due_set_while_lent,
		second_feed_of_a_host_joins_while_the_first_is_lent, groups_are_written_and_only_these, url_adoption,
		url_adoption_keeps_the_budget_right,
		status_of_owner_and_of_server, entries_once_each, entry_members_round_trip, entry_queries, pages_newest_first, since_among_many,
		search_words, search_says_what_it_did_not_see, search_in_any_script, search_folds_letters, search_takes_linear_time,
		prune_forgets_for_good, subscribe_twice_changes_nothing, feed_lists, visits_newest_first,
		control_messages_in_order, beats, wait_ends_by_time_and_by_fd,
	};

	stores_begin();
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	for (size_t i = 0; i < FW_N(every); i++)
		tcase_add_loop_test(t, every[i], 0, under_test_n);
	tcase_add_test(once, open_refuses);
	tcase_add_test(once, absent_drivers_are_named);
	suite_add_tcase(s, t);
	suite_add_tcase(s, once);
	choice_tests(s);
	lend_tests(s);
	return run_suite(s);
}
