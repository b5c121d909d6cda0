/* SPDX-License-Identifier: ISC */
/*
 * Servers with true 304s and servers with false ones, over weeks of a simulated clock: what is
 * detected, how soon, and at what cost.
 */
#include <check.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"
#include "engine/run/redirect_adoption.h"
#include "engine/run/trust.h"
#include "api/trust.h"
#include "store/driver.h"
#include "../../suite.h"

#define BEGIN INT64_C(1795262400000) /* 2026-11-21T12:00:00Z */
#define URL FW_STR("https://a.example/feed")
#define OK(call) ck_assert_msg((call) == 0, "%s: %s", #call, err.text)

enum manner {
	HONEST,
	STALE,    /* 304 to each conditional request, whatever has changed */
	SLOW,     /* the same for eight hours after a change */
	STUBBORN, /* 304 even to unconditional requests, from the second request on */
	FRAIL,    /* STALE, and 500 to unconditional requests from the second request on */
};

enum dating {
	DATED,
	UNDATED,
	WITH_LAST_MODIFIED,
	EARLY, /* Last-Modified, and dates five hours too early */
};

static struct server {
	enum manner manner;
	enum dating dating;
	int64_t habit_ms; /* between the entries that existed before */
	int64_t gap_ms;   /* between new entries; 0: there are none */
	int64_t until_ms; /* ... and none after that time */
	int64_t edit_ms;  /* another part of the document changes this often; 0: never */
} S;

static struct {
	int64_t now_ms, unconditional_ms; /* ... of the last */
	int visits, unconditional, whole;
	bool lied;                      /* it answered 304 though an entry was more than an hour old */
	int64_t gap_min_ms, gap_max_ms; /* between two unconditional requests */
	/*
	 * the last time something new was stored; the store uses the real clock, which this test is
	 * ahead of
	 */
	int64_t new_ms;
} SEEN;

static struct fw_store *st;
static struct store_driver driver; /* the store's slots; tests replace some */
static const struct store_driver *real;
static struct store_lease lease;
static struct fw_err err;
static int keys_rc;

static int keys(struct store *s, int64_t first, int64_t last, fw_key_cb *cb, void *ctx, struct fw_err *e)
{
	return keys_rc ? fw_err_set(e, keys_rc, "tampered with") : real->key_list(s, first, last, cb, ctx, e);
}

static void setup(void)
{
	struct fw_feed_new n = {.url = URL, .due_at_ms = BEGIN};

	OK(fw_store_open(&(struct fw_store_config){.url = "memory:", .flags = FW_STORE_CREATE}, &st, &err));
	OK(fw_store_subscribe(st, &n, 1, &err));
	real = store_of(st)->driver;
	driver = *real;
	driver.key_list = keys;
	store_of(st)->driver = &driver;
	lease = (struct store_lease){.lease_ms = FW_HOUR_MS};
	OK(real->heartbeat(store_of(st), "t", &lease, &err));
	keys_rc = 0;
	memset(&SEEN, 0, sizeof(SEEN));
	SEEN.now_ms = BEGIN;
	SEEN.gap_min_ms = INT64_MAX;
}

static void teardown(void)
{
	fw_store_close(st);
}

static int newest(void *ctx, const struct fw_entry_row *row)
{
	int64_t k, *max = ctx;

	ck_assert(fw_str_int(fw_str_sub(row->guid, 1, row->guid.len), &k));
	*max = FW_MAX(*max, k);
	return 0;
}

/* The newest stored entry; 0: none is newer than the start. */
static int64_t newest_stored(void)
{
	int64_t max = 0;

	OK(fw_store_entry_list(st, &(struct fw_entry_query){.feed_id = 1}, newest, &max, &err));
	return max;
}

/* ---- the server ------------------------------------------------------------------------------ */

/* When it was published; k <= 0: before the start. */
static int64_t entry_ms(int64_t k)
{
	return k > 0 ? BEGIN + k * S.gap_ms : BEGIN - S.habit_ms / 2 + k * S.habit_ms;
}

static int64_t entries_at(int64_t now_ms)
{
	return S.gap_ms ? (FW_MIN(now_ms, S.until_ms ? S.until_ms : INT64_MAX) - BEGIN) / S.gap_ms : 0;
}

static void document(struct fw_buf *b, int64_t now_ms)
{
	int64_t newest = entries_at(now_ms);
	char date[FW_RFC3339_MAX];

	fw_buf_addf(b, "<rss version='2.0'><channel><title>T</title><description>%lld</description>",
		(long long)(S.edit_ms ? (now_ms - BEGIN) / S.edit_ms : 0));
	for (int64_t k = newest; k > newest - 20; k--) {
		fw_buf_addf(b, "<item><guid>e%lld</guid><title>entry</title>", (long long)k);
		if (S.dating == DATED || S.dating == EARLY)
			fw_buf_addf(b, "<pubDate>%s</pubDate>",
				fw_http_date(date, entry_ms(k) - (S.dating == EARLY ? 5 * FW_HOUR_MS : 0)));
		fw_buf_adds(b, "</item>");
	}
	fw_buf_adds(b, "</channel></rss>");
}

static int64_t version_at(int64_t now_ms)
{
	return entries_at(now_ms) * 1000000 + (S.edit_ms ? (now_ms - BEGIN) / S.edit_ms : 0);
}

static bool says_304(const struct fw_fetch *f, const char *etag, int64_t now_ms)
{
	bool conditional = f->etag.p != NULL, same = conditional && fw_str_eq(f->etag, fw_str(etag));

	switch (S.manner) {
	case HONEST:
		return same;
	case SLOW:
		return conditional && (same || now_ms - entry_ms(entries_at(now_ms)) < 8 * FW_HOUR_MS);
	case STUBBORN:
		return SEEN.visits > 0;
	default:
		return conditional;
	}
}

static void respond(struct fw_fetch *f, int64_t now_ms)
{
	static char etag[40], changed[FW_RFC3339_MAX];

	(void)fw_snprintf(etag, sizeof(etag), "\"%lld\"", (long long)version_at(now_ms));
	f->final_url = URL;
	f->http_status = 200;
	f->kind = FW_VISIT_OK;
	if (says_304(f, etag, now_ms)) {
		SEEN.lied = SEEN.lied || (S.gap_ms && now_ms - entry_ms(FW_MAX(newest_stored() + 1, 1)) > FW_HOUR_MS);
		f->http_status = 304;
		f->kind = f->etag.p ? FW_VISIT_NOT_MODIFIED : FW_VISIT_PROTOCOL;
		fw_err_set(&f->err, FW_ENET, "304 although nothing was known");
	} else if (S.manner == FRAIL && SEEN.visits) {
		f->http_status = 500;
		f->kind = FW_VISIT_HTTP;
		fw_err_set(&f->err, FW_ENET, "HTTP 500");
	} else {
		SEEN.whole++;
		document(&f->body, now_ms);
		f->h_etag = fw_str(etag);
		if (S.dating >= WITH_LAST_MODIFIED)
			f->h_last_modified = fw_str(fw_http_date(changed, entry_ms(entries_at(now_ms))));
	}
	f->visit = (struct fw_visit){
		.at_ms = now_ms, .total_us = 50000, .http_status = f->http_status, .kind = f->kind};
}

/* ---- the crawler ----------------------------------------------------------------------------- */

static struct fw_feed feed_now(struct fw_arena *a)
{
	struct fw_feed f;

	OK(fw_store_feed_find(st, 1, FW_STR_NONE, a, &f, &err));
	f.last_new_ms = SEEN.new_ms;
	return f;
}

static struct fw_trust trust_now(void)
{
	struct fw_trust t;
	struct fw_arena a;
	struct fw_feed f;

	fw_arena_init(&a, 0);
	f = feed_now(&a);
	(void)fw_trust_of(&f, SEEN.now_ms, &t);
	fw_arena_finish(&a);
	return t;
}

static void count_request(bool conditional)
{
	if (conditional)
		return;
	if (SEEN.unconditional++) {
		int64_t gap = SEEN.now_ms - SEEN.unconditional_ms;

		SEEN.gap_min_ms = FW_MIN(SEEN.gap_min_ms, gap);
		SEEN.gap_max_ms = FW_MAX(SEEN.gap_max_ms, gap);
	}
	SEEN.unconditional_ms = SEEN.now_ms;
}

/* The visit that is due now. */
static void visit_once(void)
{
	struct store_commit c = {.lease_id = lease.id, .n = 1};
	struct visit_rules r = {.run_id = 1};
	struct visit v = {.slot = 0};
	struct fw_feed was;
	struct fw_arena a;

	fw_arena_init(&a, 0);
	fw_due_policy_default(&r.due);
	was = feed_now(&a);
	v.was = &was;
	visit_prepare(&v, SEEN.now_ms);
	count_request(v.fetch.etag.p != NULL);
	respond(&v.fetch, SEEN.now_ms);
	visit_finish(&v, &r, SEEN.now_ms, fw_hash64(&SEEN.now_ms, sizeof(SEEN.now_ms)));
	adoption_check(st, &v);
	trust_check_document(st, &v, SEEN.now_ms);
	ck_assert(!v.compare_304);
	v.outcome.host_id = store_feed_host_id(&was);
	v.outcome.was_due_ms = was.due_at_ms;
	c.outcome = &v.outcome;
	OK(real->commit(store_of(st), &c, &err));
	ck_assert_int_eq(v.outcome.rc, 0);
	SEEN.new_ms = v.outcome.visit.new_n ? SEEN.now_ms : SEEN.new_ms;
	fw_buf_finish(&v.fetch.body);
	fw_arena_finish(&v.arena);
	fw_arena_finish(&a);
	SEEN.visits++;
}

/* Makes each visit when it is due, up to this time. */
static void play(int64_t until_ms)
{
	for (;;) {
		struct fw_arena a;
		int64_t due_ms;

		fw_arena_init(&a, 0);
		due_ms = feed_now(&a).due_at_ms;
		fw_arena_finish(&a);
		if (due_ms > until_ms)
			break;
		SEEN.now_ms = FW_MAX(due_ms, SEEN.now_ms);
		visit_once();
	}
	SEEN.now_ms = until_ms;
}

/* ---- servers with false 304s ----------------------------------------------------------------- */

/*
 * Any gap, with and without dates: a document that grows behind 304s is noticed within 26 hours,
 * and from then on polled unconditionally each day.
 */
START_TEST(false_304_is_detected)
{
	static const int64_t HABIT[] = {
		20 * FW_MINUTE_MS, FW_HOUR_MS, 9 * FW_HOUR_MS, FW_DAY_MS, 7 * FW_DAY_MS, 90 * FW_DAY_MS};
	int64_t day_ms = BEGIN + FW_DAY_MS;
	bool lied;

	S = (struct server){STALE, (enum dating)(_i % 3), .habit_ms = HABIT[_i / 3], .gap_ms = FW_HOUR_MS};
	play(day_ms - FW_MINUTE_MS);
	ck_assert_int_eq(SEEN.unconditional, 1);
	lied = SEEN.lied; /* with one poll a day there may have been no occasion */
	play(BEGIN + 26 * FW_HOUR_MS);
	ck_assert_msg(newest_stored() >= 23, "%lld", (long long)newest_stored());
	ck_assert_int_eq(SEEN.unconditional, 2);
	ck_assert_int_eq(trust_now().level, lied ? FW_TRUST_MIN : 0);
	play(BEGIN + 15 * FW_DAY_MS);
	ck_assert_int_lt(trust_now().level, 0);
	ck_assert_int_ge(SEEN.gap_min_ms, FW_DAY_MS);
	ck_assert_int_le(SEEN.gap_max_ms, 26 * FW_HOUR_MS);
	ck_assert_int_ge(newest_stored(), 14 * 24 - 2);
}
END_TEST

/* The server has earned trust in a quiet time: with a busy feed it is noticed as soon. */
START_TEST(false_304_after_earned_trust)
{
	S = (struct server){HONEST, DATED, .habit_ms = FW_HOUR_MS, .gap_ms = FW_HOUR_MS};
	play(BEGIN + 20 * FW_DAY_MS);
	ck_assert_int_ge(newest_stored(), 20 * 24 - 6);
	S.manner = STALE;
	play(BEGIN + 20 * FW_DAY_MS + 26 * FW_HOUR_MS);
	ck_assert_int_ge(newest_stored(), 20 * 24 + 12);
	ck_assert_int_lt(trust_now().level, 0);
}
END_TEST

/*
 * A server with false 304s only for hours is detected by a check in those hours. It is trusted
 * again after it has been right for long enough.
 */
START_TEST(trust_returns_after_false_304)
{
	int64_t lied_ms;

	S = (struct server){STALE, DATED, .habit_ms = FW_HOUR_MS, .gap_ms = FW_HOUR_MS};
	play(BEGIN + 2 * FW_DAY_MS);
	lied_ms = trust_now().denied_ms;
	ck_assert_int_eq(trust_now().level, FW_TRUST_MIN);
	S.manner = HONEST;
	S.until_ms = SEEN.now_ms; /* and quiet: checks find nothing */
	play(BEGIN + 40 * FW_DAY_MS);
	ck_assert_int_gt(trust_now().level, 0);
	ck_assert_int_ge(trust_now().denied_ms, lied_ms);
	ck_assert_int_ge(SEEN.gap_min_ms, FW_DAY_MS);
	ck_assert_int_gt(SEEN.gap_max_ms, 2 * FW_DAY_MS);
}
END_TEST

START_TEST(delayed_documents)
{
	S = (struct server){SLOW, DATED, .habit_ms = 2 * FW_HOUR_MS, .gap_ms = 2 * FW_HOUR_MS};
	play(BEGIN + 26 * FW_HOUR_MS);
	ck_assert_int_ge(newest_stored(), 11);
	ck_assert_int_lt(trust_now().level, 0);
}
END_TEST

/* A 304 to an unconditional request is false by itself; it causes no further requests. */
START_TEST(false_304_to_an_unconditional_request)
{
	struct fw_arena a;

	S = (struct server){STUBBORN, DATED, .habit_ms = FW_HOUR_MS, .gap_ms = FW_HOUR_MS};
	play(BEGIN + 26 * FW_HOUR_MS);
	ck_assert_int_eq(trust_now().level, FW_TRUST_MIN);
	play(BEGIN + 10 * FW_DAY_MS);
	ck_assert_int_ge(SEEN.gap_min_ms, FW_DAY_MS - FW_MINUTE_MS);
	fw_arena_init(&a, 0);
	ck_assert_int_eq(feed_now(&a).entry_n, 20);
	fw_arena_finish(&a);
}
END_TEST

/*
 * A failed check proves nothing, and is not repeated for a day: until then the old validators are
 * sent.
 */
START_TEST(checks_that_fail)
{
	S = (struct server){FRAIL, DATED, .habit_ms = FW_HOUR_MS, .gap_ms = FW_HOUR_MS};
	play(BEGIN + 10 * FW_DAY_MS);
	ck_assert_int_eq(trust_now().level, 0);
	ck_assert_int_ge(SEEN.unconditional, 8);
	ck_assert_int_ge(SEEN.gap_min_ms, FW_DAY_MS - FW_MINUTE_MS);
	ck_assert_int_gt(trust_now().checked_ms, BEGIN + 8 * FW_DAY_MS);
}
END_TEST

/* ---- honest servers -------------------------------------------------------------------------- */

/*
 * They never lose trust, get at most one unconditional request a day, and fewer and fewer while
 * nothing new appears.
 */
START_TEST(correct_304_keeps_trust)
{
	static const struct {
		int64_t habit, gap, edit, until;
		enum dating dating;
		int most;
	} T[] = {
		{FW_HOUR_MS, FW_HOUR_MS, 0, 0, DATED, 1}, /* it changes all the time: never in doubt */
		{9 * FW_HOUR_MS, 9 * FW_HOUR_MS, 0, 0, DATED, 2}, {3 * FW_DAY_MS, 3 * FW_DAY_MS, 0, 0, DATED, 6},
		{3 * FW_DAY_MS, 3 * FW_DAY_MS, 0, 0, UNDATED, 25},
		{3 * FW_DAY_MS, 3 * FW_DAY_MS, 0, 0, WITH_LAST_MODIFIED, 25},
		{3 * FW_DAY_MS, 3 * FW_DAY_MS, 0, 0, EARLY, 12}, {7 * FW_DAY_MS, 0, 0, 0, DATED, 6}, /* it has ended */
		{FW_HOUR_MS, FW_HOUR_MS, 0, 5 * FW_DAY_MS, DATED, 8}, /* ... in a busy time */
		{7 * FW_DAY_MS, 0, 0, 0, UNDATED, 8},
		{7 * FW_DAY_MS, 0, 30 * FW_HOUR_MS, 0, DATED, 4}, /* the change is outside of entries */
	};

	S = (struct server){HONEST, T[_i].dating, .habit_ms = T[_i].habit, .gap_ms = T[_i].gap, .edit_ms = T[_i].edit,
		.until_ms = T[_i].until ? BEGIN + T[_i].until : 0};
	play(BEGIN + 60 * FW_DAY_MS);
	ck_assert_int_eq(trust_now().denied_ms, 0);
	ck_assert_int_ge(trust_now().level, 0);
	ck_assert_int_ge(SEEN.gap_min_ms, FW_DAY_MS);
	ck_assert_msg(
		SEEN.unconditional <= T[_i].most, "%d unconditional requests of %d", SEEN.unconditional, SEEN.visits);
	if (T[_i].gap)
		ck_assert_int_ge(newest_stored(), entries_at(BEGIN + 58 * FW_DAY_MS));
}
END_TEST

/*
 * The document of a check is compared with the stored entries; a store that fails costs no server
 * its trust.
 */
START_TEST(store_fails)
{
	S = (struct server){STALE, DATED, .habit_ms = FW_HOUR_MS, .gap_ms = FW_HOUR_MS};
	keys_rc = FW_EIO;
	play(BEGIN + 26 * FW_HOUR_MS);
	ck_assert_int_eq(trust_now().level, 0);
	ck_assert_int_gt(trust_now().checked_ms, BEGIN);
	ck_assert_int_ge(newest_stored(), 23);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit engine trust");
	TCase *t = tcase_create("trust");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, false_304_is_detected, 0, 18);
	tcase_add_test(t, false_304_after_earned_trust);
	tcase_add_test(t, trust_returns_after_false_304);
	tcase_add_test(t, delayed_documents);
	tcase_add_test(t, false_304_to_an_unconditional_request);
	tcase_add_test(t, checks_that_fail);
	tcase_add_loop_test(t, correct_304_keeps_trust, 0, 10);
	tcase_add_test(t, store_fails);
	suite_add_tcase(s, t);
	return run_suite(s);
}
