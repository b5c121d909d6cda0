/* SPDX-License-Identifier: ISC */
/*
 * A random walk over the wheel, beside a model of it: claims from the line and by number, ahead of others and without slow feeds, outcomes
 * that say how their host does, leases given back, feeds that come, go, pause, are pushed to or become one. After each step the store lends
 * what the model says it may, and its deep check finds nothing. FW_WALK_SEED repeats one walk, FW_WALK_STEPS sets its length.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "common.h"

#define CROWDS 3
#define FEEDS_MAX 200
#define WORKERS 3
#define LEASE_MS (100 * FW_HOUR_MS)

struct mfeed {
	int64_t id, due, visit_ms, expect_us, fence;
	int host;      /* of the crowds; -1: it is alone */
	int status;
	bool is, lent, counted;
};

struct mhost {
	int busy, holder, feed_n; /* holder: a worker; -1: nobody */
	int64_t next, cool, pace, expect, id;
};

static struct mfeed feed[FEEDS_MAX];
static struct mhost host[CROWDS];
static int feed_n, host_max;
static int64_t now;
static uint64_t dice;
static struct fw_arena A;
static char step_words[100];

static uint64_t roll(uint64_t n)
{
	dice = fw_hash64(&dice, sizeof(dice)) + 1;
	return dice % n;
}

#define WALK(cond, ...) ck_assert_msg(cond, "after %s: " __VA_ARGS__)
#define WORDS step_words

static struct mfeed *by_id(int64_t id)
{
	for (int i = 0; i < feed_n; i++) {
		if (feed[i].is && feed[i].id == id)
			return &feed[i];
	}
	return NULL;
}

static struct mfeed *some_feed(void)
{
	struct mfeed *f;

	do {
		f = &feed[roll((uint64_t)feed_n)];
	} while (!f->is);
	return f;
}

/* ---- what the contract says ------------------------------------------------------------------------------------------------- */

static bool is_ready(const struct mfeed *f, const struct fw_claim_ask *ask)
{
	return f && f->is && !f->lent && f->status == FW_FEED_ACTIVE && f->due <= now &&
		(!ask->expect_max_us || f->due == FW_DUE_FIRST || f->expect_us <= ask->expect_max_us);
}

static bool may_lend(const struct mhost *h, const struct fw_claim_ask *ask, int worker)
{
	int ahead = h->busy == 0 || h->holder == worker ? (int)ask->host_ahead : 0, gaps = h->busy ? ahead : 0;

	return h->busy < host_max + ahead && now >= h->cool && h->next <= now + gaps * FW_MAX(ask->host_gap_ms, h->pace);
}

static void lend(struct mfeed *f, const struct fw_claim_ask *ask, int worker)
{
	f->lent = true;
	f->counted = f->host >= 0;
	if (f->host >= 0) {
		struct mhost *h = &host[f->host];

		h->holder = h->busy == 0 || h->holder == worker ? worker : -1;
		h->busy++;
		h->next = FW_MAX(h->next, now) + FW_MAX(ask->host_gap_ms, h->pace);
	}
}

static void bring_back(struct mfeed *f)
{
	if (f->counted) {
		struct mhost *h = &host[f->host];

		h->holder = --h->busy == 0 ? -1 : h->holder;
	}
	f->lent = f->counted = false;
}

/* ---- steps ------------------------------------------------------------------------------------------------------------------------ */

static void feed_add(struct fw_store *st, int h)
{
	static int n;
	struct mfeed *f = &feed[feed_n];
	char url[80];

	if (feed_n == FEEDS_MAX)
		return;
	ck_assert(h < 0 ? fw_snprintf(url, sizeof(url), "https://alone%d.example/", n++) :
		fw_snprintf(url, sizeof(url), "https://crowd%d.example/%d", h, n++));
	*f = (struct mfeed){.is = true, .host = h, .due = now - 1000 + (int64_t)roll(5000)};
	f->id = subscribe(st, url, f->due);
	if (h >= 0)
		host[h].feed_n++;
	feed_n++;
}

/* Leases as they should be; those that are lent by it count from here on. */
static void lease_take(const struct fw_lease *l, const struct fw_claim_ask *ask, int worker)
{
	struct mfeed *f = by_id(l->feed.id);

	WALK(is_ready(f, ask), "feed %lld should not be lent", WORDS, (long long)l->feed.id);
	if (f->host >= 0) {
		struct mhost *h = &host[f->host];

		WALK(may_lend(h, ask, worker), "feed %lld: its host %d has %d lent (holder %d), next %+lld", WORDS, (long long)f->id, f->host, h->busy,
			h->holder, (long long)(h->next - now));
		WALK(l->host_gap_ms == FW_MAX(ask->host_gap_ms, h->pace), "feed %lld: gap %lld, pace %lld", WORDS, (long long)f->id,
			(long long)l->host_gap_ms, (long long)h->pace);
		WALK(l->host_expect_us == h->expect, "feed %lld: its host takes %lld, not %lld", WORDS, (long long)f->id, (long long)h->expect,
			(long long)l->host_expect_us);
		h->id = h->id ? h->id : l->host_id;
		WALK(l->host_id && l->host_id == h->id, "feed %lld: its host's number is %lld", WORDS, (long long)f->id, (long long)l->host_id);
	} else {
		WALK(!l->host_id && !l->host_expect_us && l->host_gap_ms == ask->host_gap_ms, "feed %lld is alone", WORDS, (long long)f->id);
	}
	lend(f, ask, worker);
	f->fence = l->fence;
}

static struct fw_claim_ask some_ask(int worker)
{
	static const char *const name[WORKERS] = {"one", "two", "three"};

	return (struct fw_claim_ask){.worker = name[worker], .now_ms = now, .lease_ms = LEASE_MS, .max = 1 + roll(12), .host_max = (uint32_t)host_max,
		.host_gap_ms = (int64_t)roll(3) * 700, .host_ahead = roll(2) ? (uint32_t)roll(4) : 0,
		.expect_max_us = roll(3) ? 0 : (int64_t)roll(4) * 500000};
}

static void claim_line(struct fw_store *st)
{
	static struct fw_lease l[FEEDS_MAX];
	int worker = (int)roll(WORKERS);
	struct fw_claim_ask ask = some_ask(worker);
	struct fw_claim_got got;
	struct fw_err err = {0};

	ask.max = roll(3) ? ask.max : FEEDS_MAX;
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	for (size_t i = 0; i < got.n; i++) {
		WALK(!i || l[i].feed.due_at_ms >= l[i - 1].feed.due_at_ms, "not in order of due times", WORDS);
		lease_take(&l[i], &ask, worker);
	}
	if (got.n == ask.max)
		return;
	ask.host_ahead = 0; /* more than that may be lent, but need not; and a slow feed may stand before others of its host */
	for (int i = 0; i < feed_n; i++) {
		if (is_ready(&feed[i], &ask) && (feed[i].host < 0 || !ask.expect_max_us))
			WALK(feed[i].host >= 0 && !may_lend(&host[feed[i].host], &ask, worker), "feed %lld of host %d was forgotten, due %lld ms ago", WORDS,
				(long long)feed[i].id, feed[i].host, (long long)(now - feed[i].due));
	}
}

/* One that is not there yet; now and then of no feed. */
static int64_t other_id(const int64_t *id, size_t n)
{
	for (;;) {
		int64_t one = roll(20) ? some_feed()->id : (int64_t)roll(100) * -4000000;
		size_t i = 0;

		while (i < n && id[i] != one)
			i++;
		if (i == n)
			return one;
	}
}

static void claim_ids(struct fw_store *st)
{
	static struct fw_lease l[FEEDS_MAX];
	int64_t id[40];
	int worker = (int)roll(WORKERS);
	struct fw_claim_ask ask = some_ask(worker);
	struct fw_claim_got got;
	struct fw_err err = {0};
	size_t n = 0, deferred = 0;

	for (ask.id_n = 0; ask.id_n < 1 + roll(FW_N(id)); ask.id_n++)
		id[ask.id_n] = other_id(id, ask.id_n);
	ask.ids = id;
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	for (size_t i = 0; i < ask.id_n && n < ask.max; i++) {
		struct mfeed *f = by_id(id[i]);

		if (!is_ready(f, &ask))
			continue;
		if (f->host >= 0 && !may_lend(&host[f->host], &ask, worker)) {
			deferred++;
			continue;
		}
		WALK(n < got.n && l[n].feed.id == id[i], "feed %lld should be lent as number %zu of %zu", WORDS, (long long)id[i], n, got.n);
		lease_take(&l[n++], &ask, worker);
	}
	WALK(got.n == n, "%zu were lent, not %zu", WORDS, got.n, n);
	WALK(got.deferred_n == deferred, "%zu were put off, not %zu", WORDS, got.deferred_n, deferred);
}

static void host_hear(struct mhost *h, const struct fw_outcome *o)
{
	h->next = FW_MAX(h->next, o->host_cooldown_ms);
	h->cool = FW_MAX(h->cool, o->host_cooldown_ms);
	h->pace = fw_store_pace(h->pace, o->host_mood);
	if (o->visit.total_us && o->feed->expect_us)
		h->expect = h->expect ? h->expect + (o->visit.total_us - h->expect) / 8 : o->visit.total_us;
}

/* A batch of those that are lent. Of one host all say the same, for a batch is in no order. */
static void commit_some(struct fw_store *st)
{
	static struct fw_outcome o[FEEDS_MAX];
	static struct fw_feed state[FEEDS_MAX];
	uint64_t says = roll(1000);
	struct fw_err err = {0};
	size_t n = 0;

	for (int i = 0; i < feed_n; i++) {
		struct mfeed *f = &feed[i];
		struct fw_lease l = {.fence = f->fence};
		uint64_t mood = says + (uint64_t)f->host;

		if (!f->is || !f->lent || roll(3) == 0)
			continue;
		l.feed = find(st, f->id, &A);
		o[n] = outcome_of(&l, &state[n], now);
		state[n].due_at_ms = now - 500 + (int64_t)roll(8000);
		state[n].expect_us = f->expect_us = (int64_t)roll(4) * 500000;
		state[n].status = FW_FEED_ACTIVE;
		o[n].visit.total_us = (int64_t)(mood / 3 % 3) * 300001;
		o[n].host_mood = (enum fw_host_mood)(mood % 3);
		o[n].host_cooldown_ms = f->counted && roll(8) == 0 ? now + 3000 : 0;
		if (f->counted)
			host_hear(&host[f->host], &o[n]);
		else if (f->host >= 0) {
			o[n].visit.kind = FW_VISIT_PUSHED;
			state[n].due_at_ms = f->due;
		}
		f->due = state[n].due_at_ms;
		f->visit_ms = now;
		bring_back(f);
		n++;
	}
	OK(fw_store_commit(st, &(struct fw_commit){.now_ms = now, .outcome = o, .n = n}, &err));
	for (size_t i = 0; i < n; i++)
		WALK(o[i].rc == 0, "the outcome of feed %lld was refused: %d", WORDS, (long long)o[i].feed_id, o[i].rc);
}

static void release_some(struct fw_store *st)
{
	static struct fw_lease l[FEEDS_MAX];
	struct fw_err err = {0};
	size_t n = 0;

	for (int i = 0; i < feed_n; i++) {
		if (!feed[i].is || !feed[i].lent || roll(2))
			continue;
		l[n++] = (struct fw_lease){.feed = {.id = feed[i].id}, .fence = feed[i].fence};
		bring_back(&feed[i]);
	}
	OK(fw_store_release(st, l, n, &err));
}

static void lend_by_number(struct fw_store *st)
{
	struct mfeed *f = some_feed();
	struct fw_lend_ask ask = {.feed_id = f->id, .worker = "pusher", .now_ms = now, .lease_ms = LEASE_MS};
	struct fw_lend_got got;
	struct fw_lease l;
	struct fw_err err = {0};

	if (f->host < 0 && !f->lent) /* alone or not is all the same then */
		return;
	OK(fw_store_lend(st, &ask, &A, &l, &got, &err));
	WALK((got.fence != 0) == !f->lent, "feed %lld: lent by its number or not, against what it should", WORDS, (long long)f->id);
	if (!got.fence)
		return;
	f->lent = true;
	f->fence = got.fence;
}

static void owner_does(struct fw_store *st)
{
	struct mfeed *f = some_feed();
	struct fw_feed set = {.id = f->id, .status = roll(3) ? FW_FEED_ACTIVE : FW_FEED_PAUSED, .push_until_ms = now};
	unsigned what = roll(2) ? FW_SET_STATUS : FW_SET_DUE;
	struct fw_err err = {0};

	if (f->lent) /* what outlives the outcome then is another test's */
		return;
	set.due_at_ms = roll(4) ? now - 2000 + (int64_t)roll(6000) : FW_DUE_FIRST;
	OK(fw_store_feed_set(st, &set, what | (roll(2) ? FW_SET_PUSH : 0), &err));
	if (what == FW_SET_STATUS)
		f->status = (int)set.status;
	else
		f->due = set.due_at_ms;
}

static void feed_goes(struct fw_store *st)
{
	struct mfeed *f = some_feed();
	struct fw_err err = {0};

	if (f->host >= 0 && host[f->host].feed_n < 4) /* it shall stay a crowd */
		return;
	OK(fw_store_unsubscribe(st, f->id, &err));
	bring_back(f);
	f->is = false;
	if (f->host >= 0)
		host[f->host].feed_n--;
}

static void two_become_one(struct fw_store *st)
{
	struct mfeed *from = some_feed(), *into = some_feed();
	struct fw_err err = {0};
	int rc;

	if (from == into || (from->host >= 0 && host[from->host].feed_n < 4))
		return;
	rc = fw_store_feed_merge(st, from->id, into->id, &err);
	if (rc == FW_EUNSUP)
		return;
	WALK(rc == (from->lent || into->lent ? FW_EAGAIN : 0), "%lld into %lld: %d %s", WORDS, (long long)from->id, (long long)into->id, rc,
		err.text);
	if (rc)
		return;
	from->is = false;
	if (from->host >= 0)
		host[from->host].feed_n--;
}

struct seen {
	int64_t last_due, host_id[CROWDS];
	bool row[FEEDS_MAX];
	size_t n;
};

static int due_row(void *ctx, const struct fw_due_row *row)
{
	struct mfeed *f = by_id(row->feed_id);
	struct seen *s = ctx;

	WALK(f && !f->lent && f->status == FW_FEED_ACTIVE, "feed %lld is in the list", WORDS, (long long)row->feed_id);
	WALK(!s->row[f - feed], "feed %lld is twice in the list", WORDS, (long long)f->id);
	WALK(row->due_at_ms == f->due && row->expect_us == f->expect_us && row->last_visit_ms == f->visit_ms,
		"feed %lld: due, visited or expected otherwise", WORDS, (long long)f->id);
	if (f->host >= 0) {
		host[f->host].id = host[f->host].id ? host[f->host].id : row->host_id;
		WALK(row->host_id && row->host_id == host[f->host].id, "feed %lld: its host's number", WORDS, (long long)f->id);
	} else {
		WALK(!row->host_id, "feed %lld is alone", WORDS, (long long)f->id);
	}
	s->row[f - feed] = true;
	s->n++;
	return 0;
}

static void due_are_listed(struct fw_store *st)
{
	int64_t before = now - 1000 + (int64_t)roll(4000);
	size_t n = 0, limit = roll(2) ? 0 : 1 + roll(5);
	struct fw_err err = {0};
	struct seen s = {0};

	for (int i = 0; i < feed_n; i++)
		n += feed[i].is && !feed[i].lent && feed[i].status == FW_FEED_ACTIVE && feed[i].due <= before;
	OK(fw_store_due_list(st, before, limit, due_row, &s, &err));
	WALK(s.n == (limit ? FW_MIN(limit, n) : n), "%zu are listed of %zu", WORDS, s.n, n);
}

/* ---- the walk ------------------------------------------------------------------------------------------------------------------------ */

static const struct { const char *words; void (*take)(struct fw_store *st); unsigned often; } steps[] = {
	{"a claim from the line", claim_line, 6}, {"a claim by number", claim_ids, 6}, {"a commit", commit_some, 5}, {"a release", release_some, 1},
	{"a loan by number", lend_by_number, 1}, {"a change by the owner", owner_does, 2}, {"an unsubscription", feed_goes, 1},
	{"a merge", two_become_one, 1}, {"a list of what is due", due_are_listed, 2},
};

static void step(struct fw_store *st, uint64_t seed, int64_t number)
{
	size_t k = 0;
	uint64_t at = 0;

	for (size_t i = 0; i < FW_N(steps); i++)
		at += steps[i].often;
	for (at = roll(at); at >= steps[k].often; k++)
		at -= steps[k].often;
	ck_assert(fw_snprintf(step_words, sizeof(step_words), "step %lld of walk %llu, %s", (long long)number, (unsigned long long)seed,
		steps[k].words));
	steps[k].take(st);
}

/* All that is active is lent in the end, and paused then. */
static void walk_end(struct fw_store *st, uint64_t seed)
{
	struct fw_err err = {0};
	int64_t n, wake;

	for (int i = 0; i < 400; i++) {
		(void)fw_snprintf(step_words, sizeof(step_words), "the end of walk %llu, round %d", (unsigned long long)seed, i);
		now += 700000;
		check_clean(st);
		claim_line(st);
		release_some(st);
		for (int k = 0; k < feed_n; k++) {
			struct fw_lease l = {.feed = {.id = feed[k].id, .status = FW_FEED_PAUSED}, .fence = feed[k].fence};

			if (!feed[k].is || !feed[k].lent)
				continue;
			bring_back(&feed[k]);
			OK(fw_store_release(st, &l, 1, &err));
			OK(fw_store_feed_set(st, &l.feed, FW_SET_STATUS, &err));
			feed[k].status = FW_FEED_PAUSED;
		}
		fw_arena_reset(&A, 1 << 16);
	}
	for (int k = 0; k < feed_n; k++)
		ck_assert_msg(!feed[k].is || feed[k].status != FW_FEED_ACTIVE, "feed %lld was never lent", (long long)feed[k].id);
	OK(fw_store_pending(st, now, &n, &wake, &err));
	ck_assert_int_eq(n, 0);
	check_clean(st);
}

static int64_t wish(const char *name, int64_t otherwise)
{
	const char *text = getenv(name);

	if (text)
		ck_assert(fw_str_int(fw_str(text), &otherwise));
	return otherwise;
}

/* Over two connections, where there may be several: what one remembers of the queue the other has changed. */
static void walk(int driver, uint64_t seed, int64_t step_n)
{
	struct fw_store *st, *other;
	char name[40];

	ck_assert(fw_snprintf(name, sizeof(name), "walk%llu", (unsigned long long)seed));
	st = store_open(scratch_url(driver, name), FW_STORE_CREATE);
	other = under_test[driver].shared ? store_open(scratch_url(driver, name), 0) : st;
	dice = seed;
	now = NOW;
	feed_n = 0;
	host_max = 1 + (int)roll(3);
	for (int h = 0; h < CROWDS; h++) {
		host[h] = (struct mhost){.holder = -1};
		for (int i = 0; i < 6; i++)
			feed_add(st, h);
	}
	for (int i = 0; i < 12; i++)
		feed_add(st, -1);
	for (int64_t i = 0; i < step_n; i++) {
		now += (int64_t)roll(3) ? (int64_t)roll(900) : 0;
		step(roll(2) ? st : other, seed, i);
		check_clean(st);
		if (roll(6) == 0)
			feed_add(st, (int)roll(CROWDS + 2) - 2 < 0 ? -1 : (int)roll(CROWDS));
		fw_arena_reset(&A, 1 << 16);
	}
	walk_end(st, seed);
	if (other != st)
		fw_store_close(other);
	fw_store_close(st);
}

/* Does it follow the contract of ABI 5 yet? */
static bool follows(int driver)
{
	struct fw_store *st = fresh(driver);
	bool it_does = st->driver->due_list && st->driver->feed_merge;

	fw_store_close(st);
	return it_does;
}

START_TEST(store_and_model_agree) /* invariants 1, 6 */
{
	int64_t seed = wish("FW_WALK_SEED", 0), long_run = wish("FW_LONG", 0);

	fw_arena_init(&A, 0);
	for (int64_t i = seed ? seed : 1; follows(_i) && i <= (seed ? seed : long_run ? 200 : 3); i++)
		walk(_i, (uint64_t)i, wish("FW_WALK_STEPS", long_run ? 150 : 60));
	fw_arena_finish(&A);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("store, walk");
	TCase *t = tcase_create("drivers");

	stores_begin();
	tcase_set_timeout(t, getenv("FW_LONG") ? 3600 : 120);
	tcase_add_loop_test(t, store_and_model_agree, 0, under_test_n);
	suite_add_tcase(s, t);
	return run_suite(s);
}
