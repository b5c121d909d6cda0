/* SPDX-License-Identifier: ISC */
/*
 * One feed lent by its number, on every driver: it and claims never both have a feed, whatever its place on the wheel; no host's budget
 * is touched; and what was pushed leaves the feed's time and health as they are.
 */
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

static struct fw_lend_got lend_at(struct fw_store *st, int64_t id, int64_t now, int64_t lease_ms, struct fw_lease *out)
{
	struct fw_lend_ask ask = {.feed_id = id, .worker = "pusher", .now_ms = now, .lease_ms = lease_ms};
	struct fw_lend_got got;
	struct fw_err err = {0};

	OK(fw_store_lend(st, &ask, &A, out, &got, &err));
	return got;
}

static size_t claim_of_host(struct fw_store *st, int64_t now, uint32_t host_max, struct fw_lease *out, size_t max)
{
	struct fw_claim_ask ask = {.worker = "w", .now_ms = now, .lease_ms = 60000, .max = max, .host_max = host_max};
	struct fw_claim_got got;
	struct fw_err err = {0};

	OK(fw_store_claim(st, &ask, &A, out, &got, &err));
	return got.n;
}

/* What the engine writes for entries that somebody brought: the feed as it was lent, but its status, of which a push knows nothing. */
static struct fw_outcome pushed(const struct fw_lease *l, struct fw_feed *feed, int64_t now)
{
	*feed = l->feed;
	feed->status = FW_FEED_ACTIVE;
	return (struct fw_outcome){.feed_id = l->feed.id, .fence = l->fence, .feed = feed,
		.visit = {.feed_id = l->feed.id, .at_ms = now, .kind = FW_VISIT_PUSHED, .slot = -1}};
}

static int push_back(struct fw_store *st, const struct fw_lease *l, int64_t now)
{
	struct fw_feed f;
	struct fw_outcome o = pushed(l, &f, now);

	return commit_one(st, &o, now);
}

static void released(struct fw_store *st, const struct fw_lease *l)
{
	struct fw_err err = {0};

	OK(fw_store_release(st, l, 1, &err));
}

/* n feeds of a host that takes one at a time are due: all of them are there, and no more. */
static void one_after_the_other(struct fw_store *st, int64_t now, int n)
{
	struct fw_lease l[9];
	struct fw_outcome o;
	struct fw_feed f;

	for (int i = 0; i < n; i++) {
		ck_assert_uint_eq(claim_of_host(st, now, 1, l, 9), 1);
		check_clean(st);
		o = outcome_of(&l[0], &f, now);
		ck_assert_int_eq(commit_one(st, &o, now), 0);
	}
	ck_assert_uint_eq(claim_of_host(st, now, 1, l, 9), 0);
	check_clean(st);
}

struct seen {
	size_t n;
	enum fw_visit_kind kind;
	uint32_t new_n;
};

static int see_visit(void *ctx, const struct fw_visit *v)
{
	struct seen *s = ctx;

	if (!s->n++) {
		s->kind = v->kind;
		s->new_n = v->new_n;
	}
	return 0;
}

START_TEST(lent_by_number_due_or_not)
{
	struct fw_store *st = fresh(_i);
	int64_t id = subscribe(st, "https://one.example/feed", NOW);
	struct fw_lease l[2], claimed[2];
	struct fw_entry_row e[2] = {entry(1, 1, "one", "1"), entry(2, 1, "two", "2")};
	struct fw_feed f, was;
	struct fw_outcome o;
	struct fw_lend_got got;
	struct seen s = {0};
	struct fw_err err = {0};

	ck_assert_uint_eq(claim_at(st, NOW, 1, claimed, &A), 1); /* a visit that fails, so that there is something to keep */
	o = outcome_of(&claimed[0], &f, NOW);
	f.last_kind = o.visit.kind = FW_VISIT_TIMEOUT;
	f.fail_n = 3;
	f.last_ok_ms = NOW - 5000;
	f.error = FW_STR("timed out");
	f.etag = FW_STR("\"e1\"");
	f.validator_url = FW_STR("https://one.example/feed");
	f.validators_ms = NOW;
	f.body_hash = 77;
	f.rhythm = FW_STR("r1 x");
	f.expect_us = 5000;
	o.groups = FW_GROUP_ERROR | FW_GROUP_VALIDATORS | FW_GROUP_RHYTHM;
	ck_assert_int_eq(commit_one(st, &o, NOW), 0);
	was = find(st, id, &A);

	got = lend_at(st, id, NOW + 1000, 60000, &l[0]); /* it is due in an hour */
	ck_assert_int_gt(got.fence, claimed[0].fence);
	ck_assert_int_eq(got.until_ms, NOW + 61000);
	ck_assert_int_eq(l[0].fence, got.fence);
	ck_assert_int_eq(l[0].until_ms, got.until_ms);
	ck_assert(fw_str_eq(l[0].feed.url, was.url) && fw_str_eq(l[0].feed.etag, was.etag) && fw_str_eq(l[0].feed.rhythm, was.rhythm));
	ck_assert_int_eq(find(st, id, &A).lease_until_ms, got.until_ms);
	ck_assert_int_eq(stats(st, NOW).lent_n, 1);
	check_clean(st);
	got = lend_at(st, id, NOW + 2000, 60000, &l[1]);
	ck_assert_int_eq(got.fence, 0);
	ck_assert_int_eq(got.until_ms, NOW + 61000);
	ck_assert_str_eq(got.worker, "pusher");
	ck_assert_uint_eq(claim_at(st, NOW + 30000, 2, claimed, &A), 0);

	o = pushed(&l[0], &f, NOW + 3000);
	o.entries = e;
	o.entry_n = 2;
	ck_assert_int_eq(commit_one(st, &o, NOW + 3000), 0);
	ck_assert_uint_eq(o.visit.new_n, 2);
	check_clean(st);
	f = find(st, id, &A);
	ck_assert_int_eq(f.due_at_ms, was.due_at_ms);
	ck_assert(fw_str_eq(f.why, was.why) && fw_str_eq(f.error, was.error) && fw_str_eq(f.etag, was.etag) && fw_str_eq(f.rhythm, was.rhythm));
	ck_assert_uint_eq(f.fail_n, 3);
	ck_assert_int_eq(f.last_kind, FW_VISIT_TIMEOUT);
	ck_assert_int_eq(f.last_visit_ms, was.last_visit_ms);
	ck_assert_int_eq(f.last_ok_ms, was.last_ok_ms);
	ck_assert_int_eq(f.expect_us, 5000);
	ck_assert_uint_eq(f.body_hash, 77);
	ck_assert_int_eq(f.last_new_ms, NOW + 3000);
	ck_assert_int_eq(f.lease_until_ms, 0);
	ck_assert_int_eq(entry_count(st, id), 2);
	OK(fw_store_visit_list(st, &(struct fw_visit_query){.feed_id = id}, see_visit, &s, &err));
	ck_assert_uint_eq(s.n, 2);
	ck_assert_int_eq(s.kind, FW_VISIT_PUSHED);
	ck_assert_uint_eq(s.new_n, 2);
	ck_assert_int_eq(commit_one(st, &o, NOW + 3000), FW_ESTALE); /* once */
	ck_assert_uint_eq(claim_at(st, was.due_at_ms - 1000, 2, claimed, &A), 0);
	ck_assert_uint_eq(claim_at(st, was.due_at_ms, 2, claimed, &A), 1);
	ck_assert_int_gt(claimed[0].fence, l[0].fence);
	fw_store_close(st);
}
END_TEST

START_TEST(lent_to_a_worker)
{
	struct fw_store *st = fresh(_i);
	int64_t id = subscribe(st, "https://one.example/feed", NOW);
	struct fw_lease l, claimed[1];
	struct fw_feed f;
	struct fw_outcome o;
	struct fw_lend_got got;

	ck_assert_uint_eq(claim_at(st, NOW, 1, claimed, &A), 1);
	got = lend_at(st, id, NOW + 1000, 60000, &l);
	ck_assert_int_eq(got.fence, 0);
	ck_assert_int_eq(got.until_ms, NOW + 60000);
	ck_assert_str_eq(got.worker, "w");
	got = lend_at(st, id, NOW + 60000, 60000, &l); /* that has run out */
	ck_assert_int_ne(got.fence, 0);
	check_clean(st);
	o = outcome_of(&claimed[0], &f, NOW + 60001);
	ck_assert_int_eq(commit_one(st, &o, NOW + 60001), FW_ESTALE);
	ck_assert_uint_eq(claim_at(st, NOW + 119999, 1, claimed, &A), 0);
	ck_assert_uint_eq(claim_at(st, NOW + 120000, 1, claimed, &A), 1); /* and so has ours */
	ck_assert_int_eq(push_back(st, &l, NOW + 120001), FW_ESTALE);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(not_lent)
{
	struct fw_store *st = fresh(_i);
	struct fw_feed f = {.id = subscribe(st, "https://one.example/feed", NOW)};
	static const enum fw_feed_status off[] = {FW_FEED_GONE, FW_FEED_QUARANTINED};
	struct fw_lend_ask ask = {.worker = "pusher", .now_ms = NOW, .lease_ms = 1000};
	struct fw_lend_got got;
	struct fw_err err = {0};
	struct fw_lease l;

	for (size_t i = 0; i < FW_N(off); i++) {
		f.status = off[i];
		OK(fw_store_feed_set(st, &f, FW_SET_STATUS, &err));
		got = lend_at(st, f.id, NOW, 60000, &l);
		ck_assert_int_eq(got.fence, 0);
		ck_assert_int_eq(got.until_ms, 0);
		ck_assert_int_eq(got.status, off[i]);
		check_clean(st);
	}
	for (int64_t id = -1; id < 1000; id += 500) {
		ask.feed_id = id;
		IS(fw_store_lend(st, &ask, &A, &l, &got, &err), FW_ENOTFOUND);
		ck_assert_int_eq(got.fence, 0);
	}
	ask.feed_id = f.id;
	ask.lease_ms = 0;
	IS(fw_store_lend(st, &ask, &A, &l, &got, &err), FW_EINVAL);
	ask = (struct fw_lend_ask){.feed_id = f.id, .worker = "", .lease_ms = 1000};
	IS(fw_store_lend(st, &ask, &A, &l, &got, &err), FW_EINVAL);
	fw_store_close(st);
}
END_TEST

static void status_set(struct fw_store *st, int64_t id, enum fw_feed_status status)
{
	struct fw_feed f = {.id = id, .status = status};
	struct fw_err err = {0};

	OK(fw_store_feed_set(st, &f, FW_SET_STATUS, &err));
	check_clean(st);
}

static struct fw_lease lent_paused(struct fw_store *st, int64_t id, int64_t now)
{
	struct fw_lease l;

	ck_assert_int_ne(lend_at(st, id, now, 60000, &l).fence, 0);
	ck_assert_int_eq(l.feed.status, FW_FEED_PAUSED);
	check_clean(st);
	return l;
}

/* Off the wheel before, while it is lent and afterwards, however it comes back. */
START_TEST(one_that_is_paused_too)
{
	struct fw_store *st = fresh(_i);
	int64_t id = subscribe(st, "https://one.example/feed", NOW);
	struct fw_entry_row e[1] = {entry(1, 1, "one", "1")};
	struct fw_lease l, claimed[2];
	struct fw_outcome o;
	struct fw_feed f;
	struct fw_err err = {0};

	status_set(st, id, FW_FEED_PAUSED);
	for (int i = 0; i < 4; i++) {
		l = lent_paused(st, id, NOW);
		o = pushed(&l, &f, NOW);
		o.entries = e;
		o.entry_n = 1;
		if (i < 2)
			ck_assert_int_eq(commit_one(st, &o, NOW), 0);
		else if (i == 2)
			released(st, &l);
		else
			OK(fw_store_bury(st, "pusher", 0, NOW, &err));
		if (i < 2)
			ck_assert_uint_eq(o.visit.new_n, i == 0);
		check_clean(st);
		f = find(st, id, &A);
		ck_assert_int_eq(f.status, FW_FEED_PAUSED);
		ck_assert_int_eq(f.due_at_ms, NOW);
		ck_assert_int_eq(f.lease_until_ms, 0);
		ck_assert_uint_eq(claim_at(st, NOW + 1, 2, claimed, &A), 0);
	}
	ck_assert_int_eq(entry_count(st, id), 1);
	l = lent_paused(st, id, NOW);
	ck_assert_uint_eq(claim_at(st, NOW + 60000, 2, claimed, &A), 0); /* run out, and paused still */
	ck_assert_int_eq(push_back(st, &l, NOW + 60001), FW_ESTALE);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* Its owner has it go on, or ends it, while it is lent. */
START_TEST(paused_lent_and_resumed)
{
	struct fw_store *st = fresh(_i);
	int64_t id = subscribe(st, "https://one.example/feed", NOW);
	struct fw_lease l, claimed[2];
	struct fw_outcome o;
	struct fw_feed f;

	for (int i = 0; i < 3; i++) {
		status_set(st, id, FW_FEED_PAUSED);
		l = lent_paused(st, id, NOW);
		status_set(st, id, i == 2 ? FW_FEED_GONE : FW_FEED_ACTIVE);
		ck_assert_uint_eq(claim_at(st, NOW, 2, claimed, &A), 0);
		o = pushed(&l, &f, NOW);
		if (i == 1)
			released(st, &l);
		else
			ck_assert_int_eq(commit_one(st, &o, NOW), 0);
		check_clean(st);
		ck_assert_int_eq(find(st, id, &A).status, i == 2 ? FW_FEED_GONE : FW_FEED_ACTIVE);
		ck_assert_uint_eq(claim_at(st, NOW, 2, claimed, &A), i != 2);
		if (i != 2)
			released(st, &claimed[0]);
		check_clean(st);
	}
	fw_store_close(st);
}
END_TEST

/* Feeds of one crowded host, in all the places there are: in line, with the turn, parked, lent. */
START_TEST(budget_is_not_touched) /* invariant 6 */
{
	struct fw_store *st = fresh(_i);
	struct fw_lease claimed[9], l[5];
	int64_t id[4];
	char url[60];

	for (int i = 0; i < 4; i++) {
		ck_assert(fw_snprintf(url, sizeof(url), "https://crowd.example/%d", i));
		id[i] = subscribe(st, url, NOW + i);
	}
	ck_assert_uint_eq(claim_of_host(st, NOW + 10, 1, claimed, 9), 1); /* the others are parked, one has the turn or will */
	check_clean(st);
	for (int i = 1; i < 4; i++) {
		ck_assert_int_ne(lend_at(st, id[i], NOW + 10, 60000, &l[i]).fence, 0);
		check_clean(st);
	}
	for (int i = 1; i < 3; i++) {
		ck_assert_int_eq(push_back(st, &l[i], NOW + 20), 0);
		check_clean(st);
	}
	ck_assert_uint_eq(claim_of_host(st, NOW + 30, 1, &claimed[1], 8), 0); /* the budget of one is out, and was not given back by ours */
	check_clean(st);
	released(st, &claimed[0]);
	check_clean(st);
	released(st, &l[3]);
	check_clean(st);
	one_after_the_other(st, NOW + 40, 4);
	fw_store_close(st);
}
END_TEST

/* One of them is in line with the turn of its host, because the host wants a pause. */
START_TEST(the_turn_is_given_on)
{
	struct fw_store *st = fresh(_i);
	struct fw_lease claimed[9], l, other;
	struct fw_feed f;
	struct fw_outcome o;
	int64_t id[3];
	char url[60];

	for (int i = 0; i < 3; i++) {
		ck_assert(fw_snprintf(url, sizeof(url), "https://crowd.example/%d", i));
		id[i] = subscribe(st, url, NOW + i);
	}
	ck_assert_uint_eq(claim_of_host(st, NOW + 10, 1, claimed, 9), 1);
	o = outcome_of(&claimed[0], &f, NOW + 10);
	o.host_cooldown_ms = NOW + 5000;
	ck_assert_int_eq(commit_one(st, &o, NOW + 10), 0);
	ck_assert_uint_eq(claim_of_host(st, NOW + 20, 1, claimed, 9), 0);
	check_clean(st);
	ck_assert_int_ne(lend_at(st, id[1], NOW + 20, 60000, &l).fence, 0); /* a pause of the host is none for who brings something */
	check_clean(st);
	ck_assert_uint_eq(claim_of_host(st, NOW + 5000, 1, claimed, 9), 1);
	ck_assert_int_eq(claimed[0].feed.id, id[2]);
	ck_assert_int_eq(push_back(st, &l, NOW + 5000), 0);
	released(st, &claimed[0]);
	check_clean(st);
	ck_assert_uint_eq(claim_of_host(st, NOW + 5010, 2, claimed, 9), 2);
	released(st, &claimed[1]);
	released(st, &claimed[0]);
	ck_assert_int_ne(lend_at(st, id[0], NOW + 5020, 60000, &other).fence, 0); /* the one that is due in an hour */
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(a_second_feed_of_its_host_comes)
{
	struct fw_store *st = fresh(_i);
	int64_t id = subscribe(st, "https://one.example/1", NOW);
	struct fw_lease l;

	ck_assert_int_ne(lend_at(st, id, NOW, 60000, &l).fence, 0);
	subscribe(st, "https://one.example/2", NOW);
	check_clean(st);
	ck_assert_int_eq(push_back(st, &l, NOW), 0);
	check_clean(st);
	one_after_the_other(st, NOW, 2);
	fw_store_close(st);
}
END_TEST

START_TEST(what_its_owner_does_meanwhile_holds)
{
	struct fw_store *st = fresh(_i);
	struct fw_feed f = {.id = subscribe(st, "https://one.example/1", NOW + 1000000)};
	struct fw_lease l, claimed[2];
	struct fw_err err = {0};

	ck_assert_int_ne(lend_at(st, f.id, NOW, 60000, &l).fence, 0);
	f.due_at_ms = FW_DUE_FIRST; /* somebody wants it fetched at once */
	OK(fw_store_feed_set(st, &f, FW_SET_DUE, &err));
	ck_assert_int_eq(push_back(st, &l, NOW), 0);
	check_clean(st);
	ck_assert_int_eq(find(st, f.id, &A).due_at_ms, FW_DUE_FIRST);
	ck_assert_uint_eq(claim_at(st, NOW, 2, claimed, &A), 1);
	released(st, &claimed[0]);

	ck_assert_int_ne(lend_at(st, f.id, NOW, 60000, &l).fence, 0);
	f.status = FW_FEED_PAUSED;
	OK(fw_store_feed_set(st, &f, FW_SET_STATUS, &err));
	ck_assert_int_eq(push_back(st, &l, NOW), 0);
	ck_assert_int_eq(find(st, f.id, &A).status, FW_FEED_PAUSED);
	check_clean(st);
	f.status = FW_FEED_ACTIVE;
	OK(fw_store_feed_set(st, &f, FW_SET_STATUS, &err));

	ck_assert_int_ne(lend_at(st, f.id, NOW, 60000, &l).fence, 0);
	OK(fw_store_unsubscribe(st, f.id, &err));
	ck_assert_int_eq(push_back(st, &l, NOW), FW_ESTALE);
	ck_assert_int_eq(stats(st, NOW).lent_n, 0);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(back_without_a_commit)
{
	struct fw_store *st = fresh(_i);
	int64_t id = subscribe(st, "https://one.example/1", NOW + 1000), other = subscribe(st, "https://one.example/2", NOW + 1000);
	struct fw_lease l, claimed[4];
	struct fw_err err = {0};

	ck_assert_int_ne(lend_at(st, id, NOW, 60000, &l).fence, 0);
	released(st, &l);
	check_clean(st);
	ck_assert_int_ne(lend_at(st, other, NOW, 60000, &l).fence, 0);
	OK(fw_store_bury(st, "pusher", 0, NOW, &err));
	ck_assert_int_eq(push_back(st, &l, NOW), FW_ESTALE);
	check_clean(st);
	ck_assert_int_eq(find(st, other, &A).due_at_ms, NOW + 1000);
	ck_assert_uint_eq(claim_of_host(st, NOW + 1000, 2, claimed, 4), 2);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* ---- any order of all this ------------------------------------------------------------------------------------------------- */

#define FEEDS 12
#define STEPS 250

struct holder {
	struct fw_lease l;
	bool by_number;
};

static uint64_t roll(uint64_t *dice)
{
	*dice ^= *dice << 13;
	*dice ^= *dice >> 7;
	*dice ^= *dice << 17;
	return *dice;
}

static void note(struct holder *h, const struct fw_lease *l, int64_t now, bool by_number)
{
	struct holder *of = &h[l->feed.id];

	ck_assert_msg(!of->l.fence || of->l.until_ms <= now, "feed %lld: lent twice at once", (long long)l->feed.id);
	ck_assert_int_gt(l->fence, of->l.fence);
	*of = (struct holder){*l, by_number};
}

static void give_back(struct fw_store *st, struct holder *h, int64_t now, uint64_t how)
{
	struct fw_err err = {0};
	struct fw_outcome o;
	struct fw_feed f;

	if (how % 3 == 0) {
		OK(fw_store_release(st, &h->l, 1, &err));
	} else {
		o = h->by_number ? pushed(&h->l, &f, now) : outcome_of(&h->l, &f, now);
		if (!h->by_number)
			f.due_at_ms = now + (int64_t)(how % 3000);
		ck_assert_int_eq(commit_one(st, &o, now), 0);
	}
	h->l.until_ms = 0;
}

START_TEST(never_both)
{
	struct fw_store *st = fresh(_i);
	struct holder h[FEEDS + 2] = {{.by_number = false}};
	uint64_t dice = UINT64_C(88172645463325252);
	int64_t now = NOW;

	for (int i = 0; i < FEEDS; i++) {
		char url[60];

		ck_assert(fw_snprintf(url, sizeof(url), i < FEEDS / 2 ? "https://crowd.example/%d" : "https://h%d.example/", i));
		ck_assert_int_eq(subscribe(st, url, NOW), i + 1);
	}
	for (int step = 0; step < STEPS; step++) {
		int64_t id = 1 + (int64_t)(roll(&dice) % FEEDS);
		uint64_t what = roll(&dice) % 8;
		struct fw_lease l[FEEDS];

		now += (int64_t)(roll(&dice) % 700);
		if (what < 3) {
			size_t n = claim_of_host(st, now, 2, l, 1 + roll(&dice) % 4);

			for (size_t i = 0; i < n; i++)
				note(h, &l[i], now, false);
		} else if (what < 6) {
			struct fw_lend_got got = lend_at(st, id, now, 3000, l);

			ck_assert_int_eq(got.fence == 0, h[id].l.until_ms > now);
			if (got.fence)
				note(h, l, now, true);
			else
				ck_assert_int_eq(got.until_ms, h[id].l.until_ms);
		} else if (h[id].l.until_ms > now) {
			give_back(st, &h[id], now, roll(&dice));
		} else {
			status_set(st, id, roll(&dice) % 3 ? FW_FEED_ACTIVE : FW_FEED_PAUSED);
		}
		if (step % 10 == 0)
			check_clean(st);
	}
	check_clean(st);
	fw_store_close(st);
}
END_TEST

void lend_tests(Suite *s)
{
	TCase *t = tcase_create("lend");
	const TTest *const every[] = {
		lent_by_number_due_or_not, lent_to_a_worker, not_lent, one_that_is_paused_too, paused_lent_and_resumed, budget_is_not_touched, the_turn_is_given_on,
		a_second_feed_of_its_host_comes, what_its_owner_does_meanwhile_holds, back_without_a_commit, never_both,
	};

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	for (size_t i = 0; i < FW_N(every); i++)
		tcase_add_loop_test(t, every[i], 0, under_test_n);
	suite_add_tcase(s, t);
}
