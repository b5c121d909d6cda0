/* SPDX-License-Identifier: ISC */
/*
 * Subscriptions at hubs: the rules for requesting, renewing, distrusting and ending them; the
 * protocol's texts; the records.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "engine/websub/websub.h"
#include "engine/websub/websub_requests.h"
#include "../../suite.h"

#define NOW INT64_C(1800000000000)
#define DAY FW_DAY_MS
#define HOUR FW_HOUR_MS
#define BASE FW_STR("https://us.example/websub/")
#define OK(call) ck_assert_msg((call) == 0, "%s: %s", #call, err.text)

static struct fw_err err;

static struct sub_desired desired(uint32_t hubs)
{
	return (struct sub_desired){.feed_id = 7,
		.hub = {FW_STR("https://hub.example/"), FW_STR("https://other.example/"),
			FW_STR("https://third.example/")},
		.hub_n = hubs,
		.topic = FW_STR("https://pub.example/feed"),
		.base = BASE};
}

static bool says(const struct sub *s, const char *words)
{
	return strstr(s->why, words) != NULL;
}

/* A subscription that was requested, and verified at `at` for lease_ms. */
static struct sub active(int64_t at, int64_t lease_ms, uint64_t rnd)
{
	struct sub_desired w = desired(1);
	struct sub s = {0};
	bool fresh;

	ck_assert_int_eq(sub_reconcile(&s, &w, at), SUB_NEW);
	ck_assert(sub_due(&s, &w, at, rnd, &fresh));
	ck_assert(!fresh);
	sub_responded(&s, &w, NULL, 0, at, rnd);
	sub_verified(&s, at, lease_ms, rnd);
	return s;
}

/* ---- rules ----------------------------------------------------------------------------------- */

START_TEST(desired_subscriptions)
{
	struct sub_desired w = desired(1), none = desired(0);
	struct sub s = {0};

	ck_assert_int_eq(sub_reconcile(&s, &none, NOW), SUB_SAME);
	ck_assert_int_eq(s.feed_id, 0);
	ck_assert_int_eq(sub_reconcile(&s, &w, NOW), SUB_NEW);
	ck_assert_int_eq(s.feed_id, 7);
	ck_assert_int_eq(s.next_ms, NOW);
	ck_assert_int_eq(s.state, FW_WEBSUB_REQUESTED);
	ck_assert_int_eq(sub_reconcile(&s, &w, NOW), SUB_SAME);
	w = desired(2); /* an additional hub is no reason to leave the present one */
	ck_assert_int_eq(sub_reconcile(&s, &w, NOW), SUB_SAME);
	w.hub[0] = FW_STR("https://new.example/");
	ck_assert_int_eq(sub_reconcile(&s, &w, NOW), SUB_NEW);
	w.topic = FW_STR("https://pub.example/feed2");
	ck_assert_int_eq(sub_reconcile(&s, &w, NOW), SUB_NEW);
	w.base = FW_STR("https://moved.example/websub/");
	ck_assert_int_eq(sub_reconcile(&s, &w, NOW), SUB_NEW);
	s.held = true; /* by the user: none of this applies */
	w = desired(1);
	ck_assert_int_eq(sub_reconcile(&s, &w, NOW), SUB_SAME);
	ck_assert_int_eq(sub_reconcile(&s, &none, NOW), SUB_SAME);
	s.held = false;
	ck_assert_int_eq(sub_reconcile(&s, &none, NOW), SUB_GONE);
}
END_TEST

START_TEST(renewed_before_the_end) /* WSB-07 */
{
	static const int64_t LEASE[] = {
		10 * 1000, 10 * FW_MINUTE_MS, 2 * FW_HOUR_MS, FW_DAY_MS, 10 * FW_DAY_MS, 90 * FW_DAY_MS};
	int64_t seen[FW_N(LEASE)] = {0};

	for (uint64_t rnd = 0; rnd < 2000; rnd++) {
		for (size_t i = 0; i < FW_N(LEASE); i++) {
			int64_t lease = LEASE[i];
			struct sub s = active(NOW, lease, rnd * UINT64_C(0x9E3779B97F4A7C15));

			ck_assert_int_eq(s.state, FW_WEBSUB_ACTIVE);
			ck_assert_int_eq(s.until_ms, NOW + lease);
			ck_assert_int_ge(s.next_ms, NOW + lease / 3 * 2);
			ck_assert_int_lt(s.next_ms, s.until_ms);
			if (lease > 3 * HOUR)
				ck_assert_int_le(s.next_ms, s.until_ms - HOUR);
			seen[i] |= INT64_C(1) << (s.next_ms - NOW - lease / 3 * 2) * 16 / (lease / 3 + 1);
		}
	}
	for (size_t i = 0; i < FW_N(LEASE); i++) /* spread over (nearly) all of the last third */
		ck_assert_int_ge(__builtin_popcountll((uint64_t)seen[i]), 11);
}
END_TEST

START_TEST(renewal_keeps_the_subscription)
{
	struct sub s = active(NOW, 10 * DAY, 5);
	struct sub_desired w = desired(1);
	int64_t at = s.next_ms;
	bool fresh;

	ck_assert_int_eq(sub_push_until(&s, NOW), NOW + 10 * DAY);
	ck_assert(sub_due(&s, &w, at, 5, &fresh));
	ck_assert(!fresh); /* an active subscription stays so until a renewal is verified */
	sub_responded(&s, &w, "HTTP 500", 0, at, 5);
	ck_assert_int_eq(s.state, FW_WEBSUB_ACTIVE);
	ck_assert_int_eq(sub_push_until(&s, at), NOW + 10 * DAY);
	ck_assert(s.next_ms > at && s.next_ms <= at + HOUR);
	for (int n = 0; s.next_ms < s.until_ms; n++) { /* again and again while there is time, but not too often */
		ck_assert_int_lt(n, 1000);
		at = s.next_ms;
		ck_assert(sub_due(&s, &w, at, 5, &fresh));
		ck_assert(!fresh);
		sub_responded(&s, &w, "HTTP 500", 0, at, 5);
	}
	at = s.next_ms;
	ck_assert_int_eq(at, s.until_ms);
	ck_assert(sub_due(&s, &w, at, 5, &fresh)); /* the lease is over: from the start */
	ck_assert(fresh);
	ck_assert_int_eq(s.state, FW_WEBSUB_REQUESTED);
	ck_assert_int_eq(sub_push_until(&s, at), 0);
	ck_assert_int_eq(s.since_ms, 0);
	sub_responded(&s, &w, NULL, 0, at, 5);
	sub_verified(&s, at + 5, DAY, 5);
	ck_assert_int_eq(s.since_ms, at + 5);
	sub_verified(&s, at + 50, DAY, 5); /* a repetition changes nothing */
	ck_assert_int_eq(s.since_ms, at + 5);
	ck_assert_int_eq(s.until_ms, at + 50 + DAY);
}
END_TEST

START_TEST(renewal_not_verified)
{
	struct sub s = active(NOW, 10 * DAY, 5);
	struct sub_desired w = desired(1);
	int64_t at = s.next_ms;
	bool fresh;

	ck_assert(sub_due(&s, &w, at, 5, &fresh));
	sub_responded(&s, &w, NULL, 0, at, 5);
	ck_assert_int_eq(s.next_ms, at + SUB_SILENCE_MS);
	at = s.next_ms;
	ck_assert(!sub_due(&s, &w, at, 5, &fresh));
	ck_assert(says(&s, "has not verified"));
	ck_assert_int_eq(s.state, FW_WEBSUB_ACTIVE);
	ck_assert_int_gt(s.next_ms, at);
	ck_assert(sub_due(&s, &w, s.next_ms, 5, &fresh));
}
END_TEST

START_TEST(verified_before_the_answer)
{
	struct sub s = active(NOW, 10 * DAY, 5);
	struct sub_desired w = desired(1);
	int64_t at = s.next_ms, next;
	bool fresh;

	ck_assert(sub_due(&s, &w, at, 5, &fresh));
	s.requested_ms = at;
	sub_verified(&s, at + 1, 10 * DAY, 5);
	next = s.next_ms;
	sub_responded(&s, &w, NULL, 0, at + 2, 5); /* no verification is expected any more */
	ck_assert(!s.accepted);
	ck_assert_int_eq(s.next_ms, next);
	sub_responded(&s, &w, "HTTP 500", DAY, at + 2, 5); /* a hub that has verified is trusted by that */
	ck_assert_int_eq(s.state, FW_WEBSUB_ACTIVE);
	ck_assert_int_eq(s.next_ms, next);
}
END_TEST

START_TEST(never_verified)
{
	struct sub_desired w = desired(1);
	struct sub s = {0};
	bool fresh;
	int64_t at = NOW, last = 0;

	ck_assert_int_eq(sub_reconcile(&s, &w, at), SUB_NEW);
	for (int n = 0; n < 30; n++) {
		ck_assert(sub_due(&s, &w, at, 3, &fresh));
		ck_assert_int_eq(fresh, n > 0);
		sub_responded(&s, &w, NULL, 0, at, 3);
		ck_assert_int_eq(s.next_ms, at + SUB_SILENCE_MS);
		at = s.next_ms;
		ck_assert(!sub_due(&s, &w, at, 3, &fresh));
		ck_assert(says(&s, "never verified"));
		ck_assert_int_eq(s.state, FW_WEBSUB_OFF);
		ck_assert_int_ge(s.next_ms - at, FW_MIN(last, 7 * DAY)); /* more and more rarely */
		ck_assert_int_le(s.next_ms - at, 7 * DAY + 7 * DAY / 4);
		last = s.next_ms - at;
		at = s.next_ms;
	}
	ck_assert_int_ge(last, 7 * DAY);
}
END_TEST

START_TEST(several_hubs)
{
	struct sub_desired w = desired(3);
	struct sub s = {0};
	bool fresh;

	ck_assert_int_eq(sub_reconcile(&s, &w, NOW), SUB_NEW);
	ck_assert(sub_due(&s, &w, NOW, 1, &fresh));
	sub_responded(&s, &w, "HTTP 404", 0, NOW, 1);
	ck_assert_int_eq(s.next_ms, NOW); /* the next one at once */
	ck_assert(sub_due(&s, &w, NOW, 1, &fresh));
	ck_assert(fresh);
	ck_assert(fw_str_eq(s.hub, w.hub[1]));
	ck_assert_int_eq(sub_reconcile(&s, &w, NOW), SUB_SAME);
	sub_denied(&s, &w, FW_STR("no more \x1b[31m"), NOW, 1);
	ck_assert(says(&s, "refused: no more"));
	ck_assert(sub_due(&s, &w, NOW, 1, &fresh));
	ck_assert(fw_str_eq(s.hub, w.hub[2]));
	sub_denied(&s, &w, FW_STR_NONE, NOW, 1); /* all of them: WSB-08 */
	ck_assert(fw_str_eq(s.hub, w.hub[0]));
	ck_assert_int_eq(s.state, FW_WEBSUB_OFF);
	ck_assert_int_ge(s.next_ms, NOW + 7 * DAY);
	ck_assert_int_eq(sub_push_until(&s, NOW), 0);
}
END_TEST

START_TEST(denied_at_any_time)
{
	struct sub s = active(NOW, 10 * DAY, 1);
	struct sub_desired w = desired(1);

	sub_denied(&s, &w, FW_STR("spam"), NOW + DAY, 1);
	ck_assert_int_eq(sub_push_until(&s, NOW + DAY), 0);
	ck_assert_int_eq(s.until_ms, 0);
	ck_assert_int_ge(s.next_ms, NOW + 8 * DAY);
	ck_assert(says(&s, "spam"));
}
END_TEST

START_TEST(retry_after_counts)
{
	struct sub_desired w = desired(1);
	struct sub s = {0};
	bool fresh;

	ck_assert_int_eq(sub_reconcile(&s, &w, NOW), SUB_NEW);
	ck_assert(sub_due(&s, &w, NOW, 1, &fresh));
	sub_responded(&s, &w, "HTTP 429", 2 * DAY, NOW, 1);
	ck_assert_int_ge(s.next_ms, NOW + 2 * DAY);
	sub_responded(&s, &w, "HTTP 429", 4000 * DAY, NOW, 1); /* no longer than a week */
	ck_assert_int_le(s.next_ms, NOW + 9 * DAY);
	sub_responded(&s, &w, "HTTP 429", -5, NOW, 1);
	ck_assert_int_gt(s.next_ms, NOW);
}
END_TEST

START_TEST(trust) /* WSB-14 */
{
	struct sub s = active(NOW, 10 * DAY, 1);
	int64_t now = NOW + DAY;

	ck_assert(!sub_missed(&s, now, NOW - 1, 0, now)); /* the poll before was older than the request to the hub */
	ck_assert(!sub_missed(&s, now, NOW + 1, now + 5, now + SUB_GRACE_MS)); /* the push came a moment later */
	ck_assert_int_eq(sub_push_until(&s, now), NOW + 10 * DAY);
	ck_assert(sub_missed(&s, now, NOW + 1, NOW + 2, now));
	ck_assert_int_eq(sub_push_until(&s, now), 0);
	ck_assert_int_eq(s.distrust_ms, now + DAY);
	ck_assert_int_eq(sub_push_until(&s, now + DAY), NOW + 10 * DAY);
	ck_assert(sub_missed(&s, now, NOW + 1, NOW + 2, now)); /* the second time for longer */
	ck_assert_int_eq(s.distrust_ms, now + 2 * DAY);
	for (int i = 0; i < 40; i++)
		ck_assert(sub_missed(&s, now, NOW + 1, NOW + 2, now));
	ck_assert_int_eq(s.distrust_ms, now + 30 * DAY);
	now += 61 * DAY; /* long ago */
	ck_assert(sub_missed(&s, now, NOW + 1, NOW + 2, now));
	ck_assert_int_eq(s.missed_n, 1);
	s.cloud = true;
	ck_assert(!sub_missed(&s, now, NOW + 1, NOW + 2, now));
	ck_assert_int_eq(sub_push_until(&s, NOW + 1), 0); /* pings are hints: polling does not rely on them */
}
END_TEST

START_TEST(by_hand)
{
	struct sub s = active(NOW, 10 * DAY, 1);
	struct sub_desired w = desired(1);
	bool fresh;

	s.held = true;
	ck_assert_int_eq(sub_push_until(&s, NOW), 0);
	ck_assert(!sub_due(&s, &w, NOW, 1, &fresh));
	ck_assert_int_gt(s.next_ms, NOW + DAY);
}
END_TEST

START_TEST(cloud_renews_daily)
{
	struct sub s = {.feed_id = 7, .cloud = true};

	for (uint64_t rnd = 0; rnd < 100; rnd++) {
		sub_verified(&s, NOW, 5, rnd * UINT64_C(0x9E3779B97F4A7C15));
		ck_assert_int_eq(s.until_ms, NOW + 25 * HOUR);
		ck_assert(s.next_ms >= NOW + 22 * HOUR && s.next_ms <= NOW + 24 * HOUR);
	}
}
END_TEST

START_TEST(wrong_lease_seconds)
{
	static const struct {
		const char *said;
		int64_t requested_ms, want_ms;
		const char *words;
	} T[] = {
		{"864000", 10 * FW_DAY_MS, 10 * FW_DAY_MS, ""},
		{"86400", 10 * FW_DAY_MS, FW_DAY_MS, ""},
		{" 3600 ", 10 * FW_DAY_MS, FW_HOUR_MS, ""},
		{"0", 10 * FW_DAY_MS, FW_DAY_MS, "no lease"},
		{"-1", 10 * FW_DAY_MS, FW_DAY_MS, "no lease"},
		{NULL, 10 * FW_DAY_MS, FW_DAY_MS, "no lease"},
		{"", 10 * FW_DAY_MS, FW_DAY_MS, "no lease"},
		{"soon", 10 * FW_DAY_MS, FW_DAY_MS, "no lease"},
		{"1e9", 10 * FW_DAY_MS, FW_DAY_MS, "no lease"},
		{"1000000000000", 10 * FW_DAY_MS, 90 * FW_DAY_MS, "more than 90 d"},
		{"9223372036854775807", 10 * FW_DAY_MS, 90 * FW_DAY_MS, "more than 90 d"},
		{"99999999999999999999999999", 10 * FW_DAY_MS, 90 * FW_DAY_MS, "more than 90 d"},
		{"7776000", 10 * FW_DAY_MS, 90 * FW_DAY_MS, ""},
		{"1", 10 * FW_DAY_MS, 5 * FW_MINUTE_MS, "lease of 1 s: taken as 300 s"},
		{"1", 10000, 10000, "taken as 10 s"},
		{"0", 10000, 10000, "the requested lease"},
	};

	for (size_t i = 0; i < FW_N(T); i++) {
		char why[80];
		int64_t got = sub_lease_ms(fw_str(T[i].said), T[i].requested_ms, why);

		ck_assert_msg(got == T[i].want_ms, "%s: %lld", T[i].said, (long long)got);
		ck_assert_msg(T[i].words[0] ? strstr(why, T[i].words) != NULL : !why[0], "%s: %s", T[i].said, why);
	}
}
END_TEST

/* ---- malicious hubs -------------------------------------------------------------------------- */

enum lie {
	HONEST,
	DENIES_AFTERWARDS,
	LEASE_OF_A_SECOND,
	NEVER_VERIFIES,
	SAYS_500,
	VERIFIES_AND_SAYS_500,
	RETRY_AT_ONCE,
	VERIFIES_EVERY_OTHER,
	TOPIC_FLIPS,
	HUB_COMES_AND_GOES,
	LIE_N
};

struct world {
	struct sub s;
	struct sub_desired w;
	int64_t rate_ms, asked[4096];
	size_t asked_n;
	int64_t looked_ms;
	bool braked; /* and the reason names it */
};

/* The hub's reaction to a request. */
static void lie(struct world *k, enum lie how, int64_t at, uint64_t rnd)
{
	char why[80];

	switch (how) {
	case DENIES_AFTERWARDS:
		sub_verified(&k->s, at, 10 * DAY, rnd);
		sub_denied(&k->s, &k->w, FW_STR("no"), at, rnd);
		break;
	case LEASE_OF_A_SECOND:
	case TOPIC_FLIPS:
	case HUB_COMES_AND_GOES:
		sub_verified(&k->s, at, how == LEASE_OF_A_SECOND ? sub_lease_ms(FW_STR("1"), 10 * DAY, why) : DAY, rnd);
		sub_responded(&k->s, &k->w, NULL, 0, at, rnd);
		break;
	case SAYS_500:
		sub_responded(&k->s, &k->w, "HTTP 500", 0, at, rnd);
		break;
	case RETRY_AT_ONCE:
		sub_responded(&k->s, &k->w, "HTTP 503", 1, at, rnd);
		break;
	case VERIFIES_AND_SAYS_500:
		sub_verified(&k->s, at, 300 * 1000, rnd);
		sub_responded(&k->s, &k->w, "HTTP 500", 0, at, rnd);
		break;
	case VERIFIES_EVERY_OTHER:
		if (k->asked_n % 2)
			sub_verified(&k->s, at, 300 * 1000, rnd);
		else
			sub_responded(&k->s, &k->w, NULL, 0, at, rnd);
		break;
	case NEVER_VERIFIES:
		sub_responded(&k->s, &k->w, NULL, 0, at, rnd);
		break;
	default:
		sub_verified(&k->s, at, 10 * DAY, rnd);
		break;
	}
}

/* The result of a poll, every ten minutes. */
static void fetched(struct world *k, enum lie how, int64_t at)
{
	if (how == TOPIC_FLIPS) {
		k->w.topic = at / (10 * FW_MINUTE_MS) % 2 ? FW_STR("https://pub.example/odd") :
							    FW_STR("https://pub.example/even");
	} else if (how == HUB_COMES_AND_GOES) {
		k->w.hub_n = k->w.hub_n ? 0 : 1;
	}
	if (sub_reconcile(&k->s, &k->w, at) == SUB_GONE)
		k->s = (struct sub){0};
}

static void live(struct world *k, enum lie how, uint32_t hubs)
{
	uint64_t rnd = 88172645463325252u;

	*k = (struct world){.w = desired(hubs)};
	for (int64_t at = NOW; at < NOW + 30 * DAY; at += 10 * 1000) {
		bool fresh;

		rnd ^= rnd << 13, rnd ^= rnd >> 7, rnd ^= rnd << 17;
		if (at >= k->looked_ms) {
			fetched(k, how, at);
			k->looked_ms = at + 10 * FW_MINUTE_MS;
		}
		if (!k->s.feed_id || k->s.next_ms > at || !sub_due(&k->s, &k->w, at, rnd, &fresh))
			continue;
		if (!sub_rate_take(&k->s, &k->rate_ms, sub_request_gap_ms(10 * DAY), at)) {
			ck_assert(says(&k->s, "rate limited"));
			k->braked = true;
			continue;
		}
		ck_assert_uint_lt(k->asked_n, FW_N(k->asked));
		k->asked[k->asked_n++] = at;
		k->s.requested_ms = at;
		lie(k, how, at, rnd);
	}
}

/* The number of requests to the hub in the worst 24 hours. */
static size_t worst_day(const struct world *k)
{
	size_t most = 0;

	for (size_t i = 0, from = 0; i < k->asked_n; i++) {
		while (k->asked[i] - k->asked[from] >= DAY)
			from++;
		most = FW_MAX(most, i - from + 1);
	}
	return most;
}

/* the limit for each hub: whatever it does, it gets 20 requests in 24 hours at most */
START_TEST(malicious_hubs_get_few_requests)
{
	static const struct {
		enum lie how;
		size_t day, month;
		bool braked;
		const char *words;
	} T[] = {
		{HONEST, 1, 5, false, ""},
		{DENIES_AFTERWARDS, 1, 5, false, "the hub refused: no"},
		{LEASE_OF_A_SECOND, 20, 370, true, NULL},
		{NEVER_VERIFIES, 6, 12, false, "never verified"},
		{SAYS_500, 6, 12, false, "HTTP 500"},
		{RETRY_AT_ONCE, 6, 12, false, "HTTP 503"},
		{VERIFIES_AND_SAYS_500, 20, 370, true, NULL},
		{VERIFIES_EVERY_OTHER, 20, 370, true, NULL},
		{TOPIC_FLIPS, 20, 370, true, NULL},
		{HUB_COMES_AND_GOES, 20, 370, true, NULL},
	};
	static struct world k;

	ck_assert_uint_eq(FW_N(T), LIE_N);
	for (size_t i = 0; i < FW_N(T); i++) {
		live(&k, T[i].how, 1);
		ck_assert_msg(k.asked_n > 0 && worst_day(&k) <= T[i].day && k.asked_n <= T[i].month,
			"lie %d: %zu a day, %zu a month", (int)T[i].how, worst_day(&k), k.asked_n);
		ck_assert_msg(!T[i].words || (*T[i].words ? says(&k.s, T[i].words) : !k.s.why[0]), "lie %d: %s",
			(int)T[i].how, k.s.why);
		ck_assert_msg(k.braked == T[i].braked, "lie %d", (int)T[i].how);
		live(&k, T[i].how, 3); /* several hubs do not raise it */
		ck_assert_uint_le(worst_day(&k), 20);
	}
}
END_TEST

START_TEST(the_brake)
{
	struct sub s = active(NOW, 10 * DAY, 1);
	int64_t rate_ms = 0, gap = SUB_REQUEST_GAP_MS;

	for (int i = 0; i < SUB_REQUEST_BURST; i++)
		ck_assert(sub_rate_take(&s, &rate_ms, gap, NOW));
	ck_assert(!sub_rate_take(&s, &rate_ms, gap, NOW));
	ck_assert(says(&s, "rate limited"));
	ck_assert_int_eq(s.state, FW_WEBSUB_ACTIVE); /* the subscription that it has stays */
	ck_assert_int_eq(s.next_ms, NOW + gap);
	ck_assert(!sub_rate_take(&s, &rate_ms, gap, NOW + gap - 1));
	ck_assert(sub_rate_take(&s, &rate_ms, gap, NOW + gap));
	ck_assert(!sub_rate_take(&s, &rate_ms, gap, NOW - 3650 * DAY));      /* the clock was set back by ten years */
	ck_assert(sub_rate_take(&s, &rate_ms, gap, NOW - 3650 * DAY + gap)); /* no longer than usual */
	ck_assert(sub_rate_take(&s, &rate_ms, gap, NOW + 3650 * DAY));
	s.state = FW_WEBSUB_REQUESTED;
	rate_ms = NOW + 100 * DAY;
	ck_assert(!sub_rate_take(&s, &rate_ms, gap, NOW));
	ck_assert_int_eq(s.state, FW_WEBSUB_OFF);
	ck_assert_int_eq(sub_request_gap_ms(10 * DAY), SUB_REQUEST_GAP_MS);
	ck_assert_int_eq(sub_request_gap_ms(4000), 1000);
}
END_TEST

START_TEST(a_refusal_holds_for_a_week)
{
	struct sub_desired w = desired(2);
	struct sub s = {0};
	int64_t at = NOW;
	bool fresh;

	ck_assert_int_eq(sub_reconcile(&s, &w, at), SUB_NEW);
	ck_assert(sub_due(&s, &w, at, 1, &fresh));
	sub_denied(&s, &w, FW_STR("no"), at, 1);
	ck_assert(sub_due(&s, &w, at, 1, &fresh));
	sub_responded(&s, &w, "HTTP 404", 0, at, 1); /* the first hub's request comes no earlier */
	ck_assert(fw_str_eq(s.hub, w.hub[0]));
	ck_assert_int_ge(s.next_ms, at + 7 * DAY);
	ck_assert_int_le(s.next_ms, at + 9 * DAY);
}
END_TEST

START_TEST(off_is_off)
{
	struct sub s = active(NOW, 10 * DAY, 1);
	struct sub_desired w = desired(1);

	sub_schedule(&s, NOW + 11 * DAY);
	ck_assert_int_eq(s.next_ms, NOW + 10 * DAY); /* when its lease ends */
	s.accepted = true;
	sub_off(&s);
	ck_assert(s.state == FW_WEBSUB_OFF && !s.until_ms && !s.since_ms);
	ck_assert(!sub_check_timeout(&s, &w, NOW, 1)); /* no verification is expected: the hub is not at fault */
	sub_schedule(&s, NOW + 11 * DAY);
	ck_assert_int_eq(s.next_ms, NOW + 11 * DAY);
}
END_TEST

START_TEST(hubs_that_fail_for_all)
{
	ck_assert_int_eq(sub_hub_cooldown_ms(0), 0);
	ck_assert_int_eq(sub_hub_cooldown_ms(SUB_HUB_FAILS - 1), 0);
	ck_assert_int_eq(sub_hub_cooldown_ms(SUB_HUB_FAILS), 10 * FW_MINUTE_MS);
	ck_assert_int_eq(sub_hub_cooldown_ms(SUB_HUB_FAILS + 1), 20 * FW_MINUTE_MS);
	ck_assert_int_eq(sub_hub_cooldown_ms(UINT32_MAX), 6 * HOUR);
}
END_TEST

/* ---- texts ----------------------------------------------------------------------------------- */

START_TEST(forms)
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct fw_arena a;
	struct fw_str v;

	fw_arena_init(&a, 0);
	form_add(&b, "hub.topic", FW_STR("https://e.example/?a=b&c=d e/\xc3\xa9~._-"));
	form_int(&b, "n", 864000);
	ck_assert_str_eq(b.p, "hub.topic=https%3A%2F%2Fe.example%2F%3Fa%3Db%26c%3Dd%20e%2F%C3%A9~._-&n=864000");
	ck_assert(form_get(fw_buf_str(&b), "hub.topic", &a, &v));
	ck_assert_str_eq(v.p, "https://e.example/?a=b&c=d e/\xc3\xa9~._-");
	ck_assert(form_get(FW_STR("x=1&url=a+b%2&url=2&"), "url", &a, &v));
	ck_assert_str_eq(v.p, "a b%2");
	ck_assert(form_get(FW_STR("url&x=1"), "url", &a, &v));
	ck_assert_str_eq(v.p, "");
	ck_assert(!form_get(FW_STR("urls=1"), "url", &a, &v));
	ck_assert(!form_get(FW_STR(""), "url", &a, &v));
	fw_buf_finish(&b);
	fw_arena_finish(&a);
}
END_TEST

#define SHA1 "de7c9b85b8b78aa6bc8a7a36f70a90701c9db4d9"
#define SHA256 "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8"

START_TEST(signatures) /* WSB-10 */
{
	/*
	 * HMAC of the well-known sentence with "key": published test vectors; sha384 and sha512 by
	 * openssl dgst -hmac
	 */
	static const struct {
		const char *header;
		bool good;
	} T[] = {
		{"sha1=" SHA1, true},
		{"SHA1=" SHA1, true},
		{"sha256=" SHA256, true},
		{" sha256 = " SHA256 " ", true},
		{"sha256=F7BC83F430538424B13298E6AA6FB143EF4D59A14946175997479DBC2D1A3CD8", true},
		{"sha256=" SHA256 "0000", false},
		{"sha256=", false},
		{"sha256", false},
		{"", false},
		{"=", false},
		{"sha1=" SHA256, false},
		{"sha256=" SHA1, false},
		{"md5=80070713463e7749b90c2dc24911e275", false},
		{"sha224=" SHA1, false},
		{"sha256=g7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8", false},
		{"sha256=f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd9", false},
	};
	struct fw_str body = FW_STR("The quick brown fox jumps over the lazy dog");

	for (size_t i = 0; i < FW_N(T); i++)
		ck_assert_msg(
			signature_is_valid(fw_str(T[i].header), FW_STR("key"), body) == T[i].good, "%s", T[i].header);
	ck_assert(signature_is_valid(
		FW_STR("sha384=d7f4727e2c0b39ae0f1e40cc96f60242d5b7801841cea6fc592c5d3e1ae50700582a96cf35e1e55"
		       "4995fe4e03381c237"),
		FW_STR("key"), body));
	ck_assert(signature_is_valid(
		FW_STR("sha512=b42af09057bac1e2d41708e48a902e09b5ff7f12ab428a4fe86653c73dd248fb82f948a549f7b79"
		       "1a5b41915ee4d1ec3935357e4"
		       "e2317250d0372afa2ebeeb3a"),
		FW_STR("key"), body));
	ck_assert(!signature_is_valid(FW_STR("sha256=" SHA256), FW_STR("kez"), body));
	ck_assert(!signature_is_valid(FW_STR("sha256=" SHA256), FW_STR(""), body));
	ck_assert(!signature_is_valid(FW_STR("sha256=" SHA256), FW_STR("key"), FW_STR("")));
}
END_TEST

START_TEST(callbacks_cannot_be_guessed) /* WSB-04 */
{
	static const unsigned char KEY[SUB_KEY_LEN] = {1}, OTHER[SUB_KEY_LEN] = {2};
	char a[SUB_TOKEN_LEN + 1], b[SUB_TOKEN_LEN + 1], mixed[SUB_TOKEN_LEN + 1], s[SUB_SECRET_LEN + 1];

	ck_assert(callback_make(KEY, a) && callback_make(KEY, b) && secret_make(s));
	ck_assert_uint_eq(strlen(a), SUB_TOKEN_LEN);
	ck_assert_uint_eq(strlen(s), SUB_SECRET_LEN);
	ck_assert_str_ne(a, b);
	ck_assert(callback_is_ours(KEY, fw_str(a)) && callback_is_ours(KEY, fw_str(b)));
	ck_assert(!callback_is_ours(OTHER, fw_str(a)));
	ck_assert(!callback_is_ours(KEY, FW_STR("abc")) && !callback_is_ours(KEY, FW_STR_NONE));
	ck_assert(!callback_is_ours(KEY, fw_str_sub(fw_str(a), 0, SUB_TOKEN_LEN - 1)));
	memcpy(mixed, a, sizeof(mixed)); /* the signature of another URL */
	memcpy(mixed + SUB_TOKEN_LEN / 2, b + SUB_TOKEN_LEN / 2, SUB_TOKEN_LEN / 2);
	ck_assert(!callback_is_ours(KEY, fw_str(mixed)));
	for (size_t i = 0; i < SUB_TOKEN_LEN; i++) { /* each digit counts */
		char was = a[i];

		a[i] = was == '0' ? '1' : '0';
		ck_assert(!callback_is_ours(KEY, fw_str(a)));
		a[i] = was;
	}
	ck_assert(callback_is_ours(KEY, fw_str(a)));
}
END_TEST

START_TEST(one_key_for_all)
{
	unsigned char a[SUB_KEY_LEN], b[SUB_KEY_LEN];
	struct fw_store *st;
	struct fw_record r = {.kind = WEBSUB_RECORD_KIND,
		.key = FW_STR("key"),
		.value = FW_STR("short"),
		.at_ms = NOW,
		.until_ms = FW_NO_DATE};

	OK(fw_store_open(&(struct fw_store_config){.url = "memory:", .flags = FW_STORE_CREATE}, &st, &err));
	OK(websub_record_mac_key(st, a, &err));
	OK(websub_record_mac_key(st, b, &err));
	ck_assert_mem_eq(a, b, sizeof(a));
	OK(fw_store_record_put(st, &r, false, NULL, &err));
	OK(websub_record_mac_key(st, b, &err)); /* an invalid key is replaced */
	ck_assert_mem_ne(a, b, sizeof(a));
	fw_store_close(st);
}
END_TEST

START_TEST(lost_callbacks)
{
	struct sub s = active(NOW, 10 * DAY, 1);
	struct sub_desired w = desired(1);
	bool fresh;

	sub_callback_invalid(&s, NOW + 5);
	ck_assert_int_eq(sub_push_until(&s, NOW + 5), 0);
	ck_assert(says(&s, "another key"));
	ck_assert(sub_due(&s, &w, NOW + 5, 1, &fresh));
	ck_assert(fresh);
	s = active(NOW, 10 * DAY, 1);
	s.held = true;
	sub_callback_invalid(&s, NOW + 5);
	ck_assert(!says(&s, "another key")); /* the user has switched it off: it stays off */
}
END_TEST

START_TEST(addresses)
{
	static const char *const BAD[] = {"", "example.org", "ftp://example.org/", "https://",
		"https://u:p@example.org/", "https://e.org/?x", "https://e.org/#x", "https://e.org:0/",
		"https://e.org:99999/", "https://e.org/\351/"};
	struct fw_buf b = FW_BUF_INIT(0);

	OK(callback_base("https://e.org", &b, &err));
	ck_assert_str_eq(b.p, "https://e.org/websub/");
	fw_buf_reset(&b);
	OK(callback_base("http://e.org:8080/feeds/", &b, &err));
	ck_assert_str_eq(b.p, "http://e.org:8080/feeds/websub/");
	for (size_t i = 0; i < FW_N(BAD); i++) {
		ck_assert_msg(callback_base(BAD[i], &b, &err) == FW_EINVAL, "%s", BAD[i]);
		ck_assert_ptr_nonnull(strstr(err.text, "websub_url"));
	}
	fw_buf_finish(&b);
}
END_TEST

START_TEST(hubs_of_feeds) /* WSB-01, WSB-02 */
{
	struct fw_feed f = {.id = 7,
		.status = FW_FEED_ACTIVE,
		.url = FW_STR("http://p.example/f"),
		.hub = FW_STR("https://one.example/"),
		.topic = FW_STR("http://p.example/self"),
		.extra = FW_STR("{\"hubs\":[{\"type\":\"WebSub\",\"url\":\"https://one.example/\"},"
				"{\"type\":\"rssCloud\",\"url\":\"https://not.example/\"},"
				"{\"url\":\"https://two.example/\"},{\"url\":\"gopher://x/\"},{\"url\":7}]}")};
	struct sub_desired w;
	struct fw_arena a;
	uint64_t hash;

	fw_arena_init(&a, 0);
	sub_desired_of_feed(&f, BASE, &a, &w);
	ck_assert_uint_eq(w.hub_n, 2);
	ck_assert(fw_str_eq(w.hub[0], FW_STR("https://one.example/")) &&
		fw_str_eq(w.hub[1], FW_STR("https://two.example/")));
	ck_assert(fw_str_eq(w.topic, FW_STR("http://p.example/self")));
	ck_assert(!w.cloud);
	hash = sub_desired_hash(&w);
	f.topic = FW_STR_NONE;
	sub_desired_of_feed(&f, BASE, &a, &w);
	ck_assert(fw_str_eq(w.topic, f.url));
	ck_assert_uint_ne(sub_desired_hash(&w), hash);
	f.status = FW_FEED_PAUSED;
	sub_desired_of_feed(&f, BASE, &a, &w);
	ck_assert_uint_eq(w.hub_n, 0);
	f.status = FW_FEED_ACTIVE;
	f.extra = FW_STR("{\"hubs\": broken");
	sub_desired_of_feed(&f, BASE, &a, &w);
	ck_assert_uint_eq(w.hub_n, 1);
	f.hub = FW_STR("javascript:alert(1)");
	sub_desired_of_feed(&f, BASE, &a, &w);
	ck_assert_uint_eq(w.hub_n, 0);
	f.hub = FW_STR("https://one.example/\351\303\251"); /* invalid UTF-8: all of it is percent-encoded */
	f.topic = FW_STR("http://p.example/self?\351");
	sub_desired_of_feed(&f, BASE, &a, &w);
	ck_assert(w.hub_n == 1 && fw_str_eq(w.hub[0], FW_STR("https://one.example/%E9%C3%A9")));
	ck_assert(fw_str_eq(w.topic, FW_STR("http://p.example/self?%E9")));
	f.topic = FW_STR("http://p.example/self?\303\251");
	sub_desired_of_feed(&f, BASE, &a, &w);
	ck_assert(fw_str_eq(w.topic, f.topic));
	fw_arena_finish(&a);
}
END_TEST

START_TEST(clouds)
{
	static const struct {
		const char *members, *want;
	} T[] = {
		{"\"domain\":\"rpc.example\",\"port\":5337,\"path\":\"/pleaseNotify\",\"protocol\":\"http-post\"",
			"http://rpc.example:5337/pleaseNotify"},
		{"\"domain\":\"rpc.example\",\"port\":443,\"path\":\"pleaseNotify\",\"protocol\":\"HTTP-POST\"",
			"https://rpc.example:443/pleaseNotify"},
		{"\"domain\":\"rpc.example\",\"port\":80,\"protocol\":\"https-post\"", "https://rpc.example:80/"},
		{"\"domain\":\"rpc.example\",\"port\":80,\"path\":\"/RPC2\",\"protocol\":\"xml-rpc\"", NULL},
		{"\"domain\":\"rpc.example\",\"port\":0,\"path\":\"/\",\"protocol\":\"http-post\"", NULL},
		{"\"domain\":\"rpc.example\",\"path\":\"/\",\"protocol\":\"http-post\"", NULL},
		{"\"domain\":\"\",\"port\":80,\"path\":\"/\",\"protocol\":\"http-post\"", NULL},
	};
	struct fw_buf b = FW_BUF_INIT(0);
	struct fw_arena a;
	struct sub s = {.base = FW_STR("https://us.example/sub/websub/"), .topic = FW_STR("http://p.example/f?a=b")};

	fw_arena_init(&a, 0);
	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_str extra = fw_str(fw_arena_printf(&a, "{\"_feedwheel\":{\"cloud\":{%s}}}", T[i].members));
		struct fw_feed f = {.id = 7,
			.status = FW_FEED_ACTIVE,
			.url = FW_STR("http://p.example/f"),
			.topic = FW_STR("http://x/"),
			.extra = extra};
		struct sub_desired w;

		sub_desired_of_feed(&f, BASE, &a, &w);
		ck_assert_uint_eq(w.hub_n, T[i].want ? 1 : 0);
		ck_assert(
			!T[i].want || (w.cloud && fw_str_eq(w.hub[0], fw_str(T[i].want)) && fw_str_eq(w.topic, f.url)));
		f.hub = FW_STR("https://hub.example/"); /* a hub comes first */
		sub_desired_of_feed(&f, BASE, &a, &w);
		ck_assert(!w.cloud && w.hub_n == 1);
	}
	cloud_form_write(&s, FW_STR("abc"), &b);
	ck_assert_str_eq(b.p,
		"notifyProcedure=&protocol=https-post&domain=us.example&port=443&"
		"path=%2Fsub%2Fwebsub%2Fabc&url1=http%3A%2F%2Fp.example%2Ff%3Fa%3Db");
	ck_assert(cloud_is_refused(FW_STR("<notifyResult success=\"false\" msg=\"no\"/>")));
	ck_assert(cloud_is_refused(FW_STR("{\"success\": false}")));
	ck_assert(!cloud_is_refused(FW_STR("<notifyResult success=\"true\" msg=\"not false\"/>")));
	ck_assert(!cloud_is_refused(FW_STR("")));
	fw_buf_finish(&b);
	fw_arena_finish(&a);
}
END_TEST

/* ---- records, and what hubs send ------------------------------------------------------------- */

static struct fw_store *st;
static struct fw_config *config;
static struct fw_arena arena;
static const char TOKEN[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
static struct callback cb;

static void setup(void)
{
	struct fw_feed_new n = {.url = FW_STR("https://a.example/feed")};

	fw_arena_init(&arena, 0);
	OK(fw_config_create(&config, &err));
	OK(fw_store_open(&(struct fw_store_config){.url = "memory:", .flags = FW_STORE_CREATE}, &st, &err));
	OK(fw_store_subscribe(st, &n, 1, &err));
	cb = (struct callback){.token = fw_str(TOKEN),
		.feed_id = 1,
		.state = CALLBACK_REQUESTED,
		.hub = FW_STR("https://hub.example/"),
		.topic = FW_STR("https://a.example/feed"),
		.secret = FW_STR("geheim"),
		.lease_requested_ms = 10 * DAY};
	OK(websub_record_callback_put(st, &cb, NOW, &err));
}

static void teardown(void)
{
	fw_arena_finish(&arena);
	fw_store_close(st);
	fw_config_destroy(config);
}

START_TEST(records_are_read_back)
{
	struct sub s = active(NOW, 10 * DAY, 1), got;
	struct callback back;

	s.token = fw_str(TOKEN);
	s.renewal = FW_STR("abc");
	s.distrust_ms = NOW + 3;
	s.missed_n = 2;
	s.accepted = s.held = s.cloud = true;
	(void)fw_snprintf(s.why, sizeof(s.why), "a \"word\" \xc3\xa9");
	OK(websub_record_sub_put(st, &s, NOW, &err));
	OK(websub_record_sub_get(st, 7, &arena, &got, &err));
	ck_assert(fw_str_eq(got.hub, s.hub) && fw_str_eq(got.topic, s.topic) && fw_str_eq(got.token, s.token) &&
		fw_str_eq(got.base, s.base));
	ck_assert(fw_str_eq(got.renewal, s.renewal));
	ck_assert(got.accepted && got.held && got.cloud);
	ck_assert_str_eq(got.why, s.why);
	got.hub = s.hub, got.topic = s.topic, got.token = s.token, got.base = s.base;
	ck_assert(got.next_ms == s.next_ms && got.until_ms == s.until_ms && got.since_ms == s.since_ms &&
		got.verified_ms == s.verified_ms && got.missed_n == 2 && got.distrust_ms == s.distrust_ms &&
		got.state == s.state && got.requested_ms == s.requested_ms);
	ck_assert_int_eq(websub_record_sub_get(st, 8, &arena, &got, &err), FW_ENOTFOUND);
	ck_assert_int_eq(got.feed_id, 0);
	OK(websub_record_callback_get(st, fw_str(TOKEN), &arena, &back, &err));
	ck_assert(fw_str_eq(back.secret, cb.secret) && fw_str_eq(back.topic, cb.topic) &&
		back.lease_requested_ms == 10 * DAY && back.feed_id == 1);
	ck_assert(!websub_record_sub_read(FW_STR("{}"), &arena, &got) &&
		!websub_record_sub_read(FW_STR("["), &arena, &got) &&
		!websub_record_sub_read(FW_STR("{\"feed\":1,\"state\":\"x\"}"), &arena, &got));
	ck_assert(!websub_record_callback_read(FW_STR("{\"feed\":\"1\",\"state\":\"asked\"}"), &arena, &back));
}
END_TEST

static struct fw_str intend(const char *mode, const char *topic, const char *challenge, const char *lease)
{
	struct fw_websub_intent in = {.token = fw_str(TOKEN),
		.mode = fw_str(mode),
		.topic = fw_str(topic),
		.challenge = fw_str(challenge),
		.lease = fw_str(lease),
		.reason = FW_STR("spam\0\377")};
	struct fw_str answer;

	OK(fw_websub_intent(st, &in, NOW, &answer, &err));
	return answer;
}

static enum callback_state state_now(void)
{
	struct callback now;

	OK(websub_record_callback_get(st, fw_str(TOKEN), &arena, &now, &err));
	return now.state;
}

#define TOPIC "https://a.example/feed"

START_TEST(intent_is_exact) /* WSB-05, WSB-06, WSB-15; websub.rocks 205 */
{
	static char longest[FW_WEBSUB_CHALLENGE_MAX + 2];

	memset(longest, 'x', sizeof(longest) - 1);
	ck_assert_ptr_null(intend("subscribe", TOPIC "?invalid", "c", "60").p);
	ck_assert_ptr_null(intend("subscribe", "https://A.example/feed", "c", "60").p);
	ck_assert_ptr_null(intend("subscribe", NULL, "c", "60").p);
	ck_assert_ptr_null(intend("subscribe", TOPIC, NULL, "60").p);
	ck_assert_ptr_null(intend("subscribe", TOPIC, "", "60").p);
	ck_assert_ptr_null(intend("subscribe", TOPIC, longest, "60").p);
	ck_assert_ptr_null(intend("Subscribe", TOPIC, "c", "60").p);
	ck_assert_ptr_null(intend(NULL, TOPIC, "c", "60").p);
	ck_assert_ptr_null(intend("unsubscribe", TOPIC, "c", NULL).p); /* not requested */
	ck_assert_int_eq(state_now(), CALLBACK_REQUESTED);
	longest[FW_WEBSUB_CHALLENGE_MAX] = '\0';
	ck_assert(fw_str_eq(intend("subscribe", TOPIC, longest, "60"), fw_str(longest)));
	ck_assert_int_eq(state_now(), CALLBACK_ACTIVE);
	ck_assert(fw_str_eq(intend("subscribe", TOPIC, "<b>\n", "0"), FW_STR("<b>\n"))); /* again */
	ck_assert_ptr_null(intend("unsubscribe", TOPIC, "c", NULL).p);
	ck_assert_ptr_null(intend("denied", TOPIC "x", NULL, NULL).p);
	ck_assert_int_eq(state_now(), CALLBACK_ACTIVE);
	ck_assert_uint_eq(intend("denied", TOPIC, NULL, NULL).len, 0);
	ck_assert_int_eq(state_now(), CALLBACK_DENIED);
	ck_assert_ptr_null(intend("subscribe", TOPIC, "c", "60").p);
	cb.state = CALLBACK_UNSUBSCRIBING;
	OK(websub_record_callback_put(st, &cb, NOW, &err));
	ck_assert_ptr_null(intend("subscribe", TOPIC, "c", "60").p);
	ck_assert(fw_str_eq(intend("unsubscribe", TOPIC, "c", NULL), FW_STR("c")));
	ck_assert_int_eq(state_now(), CALLBACK_UNSUBSCRIBED);
	ck_assert(fw_str_eq(intend("unsubscribe", TOPIC, "d", NULL), FW_STR("d")));
}
END_TEST

static enum fw_websub_verdict push(const char *signature, const char *body)
{
	enum fw_websub_verdict v;
	int64_t feed = 0;

	OK(fw_websub_classify(st, fw_str(TOKEN), fw_str(signature), fw_str(body), NOW, &feed, &v, &err));
	ck_assert(v == FW_WEBSUB_GONE || feed == 1);
	return v;
}

static void put_state(enum callback_state state)
{
	cb.state = state;
	OK(websub_record_callback_put(st, &cb, NOW, &err));
}

START_TEST(pushes_are_classified) /* WSB-10, WSB-12, WSB-13; websub.rocks 301, 302 */
{
	static const char GOOD[] = "sha1=b9c290641edec44139f8a7b28c8ec18cc01c6637"; /* of "body" with "geheim" */
	static const enum callback_state LATE[] = {CALLBACK_DENIED, CALLBACK_UNSUBSCRIBING, CALLBACK_UNSUBSCRIBED};
	struct counts n, more;

	ck_assert_int_eq(push(GOOD, "body"), FW_WEBSUB_ACCEPT); /* signed, so it comes from the hub */
	put_state(CALLBACK_ACTIVE);
	ck_assert_int_eq(push(GOOD, "body"), FW_WEBSUB_ACCEPT);
	ck_assert_int_eq(push(GOOD, "bodz"), FW_WEBSUB_IGNORE);
	ck_assert_int_eq(push(NULL, "body"), FW_WEBSUB_UNSIGNED);
	ck_assert_int_eq(push("sha1=00", "body"), FW_WEBSUB_IGNORE);
	ck_assert_int_eq(push("", "body"), FW_WEBSUB_IGNORE);
	for (size_t i = 0; i < FW_N(LATE); i++) {
		put_state(LATE[i]);
		ck_assert_int_eq(push(GOOD, "body"), FW_WEBSUB_GONE);
	}
	OK(websub_record_callback_remove(st, fw_str(TOKEN), &err));
	ck_assert_int_eq(push("sha1=00", "body"), FW_WEBSUB_GONE);
	cb.secret = FW_STR_NONE; /* unsigned: the feed itself is polled */
	put_state(CALLBACK_REQUESTED);
	ck_assert_int_eq(push("sha1=00", "body"), FW_WEBSUB_IGNORE);
	put_state(CALLBACK_ACTIVE);
	ck_assert_int_eq(push("sha1=00", "body"), FW_WEBSUB_HINT);
	ck_assert_int_eq(push(NULL, "body"), FW_WEBSUB_HINT);
	cb.feed_id = 99; /* removed */
	put_state(CALLBACK_ACTIVE);
	ck_assert_int_eq(push(NULL, "body"), FW_WEBSUB_GONE);
	ck_assert(websub_counts_take(&n));
	ck_assert_int_eq(n.feed_id, 1);
	ck_assert_int_eq(n.ignored_n, 5);
	ck_assert_int_eq(n.delivered_n, 2);
	ck_assert(!websub_counts_take(&more));
	OK(websub_record_counts_add(st, &n, NOW, &err));
	OK(websub_record_counts_add(st, &n, NOW, &err));
	OK(websub_record_counts_get(st, 1, &arena, &more, &err));
	ck_assert(more.ignored_n == 10 && more.delivered_n == 4 && more.last_ms == NOW);
}
END_TEST

START_TEST(clouds_ping)
{
	struct fw_websub_intent in = {.token = fw_str(TOKEN), .url = FW_STR(TOPIC), .cloud_challenge = FW_STR("xyz")};
	struct fw_str answer;
	struct counts n;

	cb.cloud = true;
	cb.secret = FW_STR_NONE;
	put_state(CALLBACK_REQUESTED);
	/* not before it has verified the subscription */
	ck_assert_int_eq(push(NULL, "url=https%3A%2F%2Fa.example%2Ffeed"), FW_WEBSUB_IGNORE);
	ck_assert_ptr_null(intend("subscribe", TOPIC, "c", "60").p);
	in.url = FW_STR(TOPIC "x");
	OK(fw_websub_intent(st, &in, NOW, &answer, &err));
	ck_assert_ptr_null(answer.p);
	in.url = FW_STR(TOPIC);
	OK(fw_websub_intent(st, &in, NOW, &answer, &err));
	ck_assert(fw_str_eq(answer, FW_STR("xyz")));
	ck_assert_int_eq(state_now(), CALLBACK_ACTIVE);
	ck_assert_int_eq(push(NULL, "url=https%3A%2F%2Fa.example%2Ffeed"), FW_WEBSUB_HINT);
	ck_assert_int_eq(push(NULL, "url=https://b.example/"), FW_WEBSUB_IGNORE);
	ck_assert_int_eq(push(NULL, ""), FW_WEBSUB_IGNORE);
	while (websub_counts_take(&n))
		;
}
END_TEST

START_TEST(a_hint_has_the_feed_polled)
{
	struct fw_feed f = {.id = 1, .due_at_ms = NOW + DAY};

	OK(fw_store_feed_set(st, &f, FW_SET_DUE, &err));
	OK(fw_websub_hint(st, 1, NOW, &err));
	OK(fw_store_feed_find(st, 1, FW_STR_NONE, &arena, &f, &err));
	ck_assert_int_eq(f.due_at_ms, NOW);
	ck_assert(fw_str_eq(f.why, FW_STR("the hub's ping; at most one fetch a minute")));
	OK(fw_websub_hint(st, 1, NOW + 5, &err)); /* it is due already, and a commit must not overwrite the hint */
	OK(fw_store_feed_find(st, 1, FW_STR_NONE, &arena, &f, &err));
	ck_assert_int_eq(f.due_at_ms, NOW + 1);
	f.due_at_ms = FW_DUE_FIRST;
	OK(fw_store_feed_set(st, &f, FW_SET_DUE, &err));
	OK(fw_websub_hint(st, 1, NOW + 5, &err));
	OK(fw_store_feed_find(st, 1, FW_STR_NONE, &arena, &f, &err));
	ck_assert_int_eq(f.due_at_ms, FW_DUE_FIRST + 1); /* a user's request stays before all others */
	f.status = FW_FEED_PAUSED;
	f.due_at_ms = NOW + DAY;
	OK(fw_store_feed_set(st, &f, FW_SET_DUE | FW_SET_STATUS, &err));
	OK(fw_websub_hint(st, 1, NOW, &err)); /* the user does not want it polled */
	OK(fw_store_feed_find(st, 1, FW_STR_NONE, &arena, &f, &err));
	ck_assert_int_ne(f.due_at_ms, NOW);
	ck_assert_int_eq(fw_websub_hint(st, 99, NOW, &err), FW_ENOTFOUND);
}
END_TEST

static int listed;

static int list_one(void *ctx, const struct fw_websub *w)
{
	ck_assert_int_eq(w->feed_id, ++listed);
	ck_assert(fw_str_eq(w->hub, FW_STR("https://hub.example/")));
	return ctx && listed == *(int *)ctx ? 5 : 0;
}

START_TEST(lists)
{
	int stop = 3;

	for (int i = 1; i <= 250; i++) {
		struct sub s = active(NOW, DAY, 1);

		s.feed_id = i;
		OK(websub_record_sub_put(st, &s, NOW, &err));
		OK(websub_record_message_put(
			st, i, "look", NULL, NOW, &err)); /* similar keys that are not records of it */
		OK(websub_record_counts_add(st, &(struct counts){.feed_id = i, .new_n = 1}, NOW, &err));
	}
	listed = 0;
	OK(fw_websub_list(st, list_one, NULL, &err));
	ck_assert_int_eq(listed, 250);
	listed = 0;
	ck_assert_int_eq(fw_websub_list(st, list_one, &stop, &err), 5);
}
END_TEST

START_TEST(workers_tell)
{
	struct fw_feed was = {.id = 1,
			       .push_until_ms = INT64_MAX,
			       .last_ok_ms = 5,
			       .hub = FW_STR("https://hub.example/")},
		       is = was;
	struct fw_outcome o = {.feed_id = 1, .feed = &is, .visit = {.kind = FW_VISIT_OK, .at_ms = NOW, .new_n = 2}};
	struct fw_feed f = {.id = 1, .push_until_ms = NOW};
	struct fw_record r;
	struct missed m;
	const struct websub_record_key missed = websub_record_key("ask", 1, "missed"),
				       look = websub_record_key("ask", 1, "look");

	OK(fw_store_feed_set(st, &f, FW_SET_PUSH, &err));
	fw_websub_visited(st, config, &was, &o); /* without websub_url: a missed publication is noted all the same */
	OK(fw_store_record_get(st, WEBSUB_RECORD_KIND, fw_str(missed.text), &arena, &r, &err));
	ck_assert(websub_record_missed_read(r.value, &m) && m.polled_ms == NOW && m.before_ms == 5 && m.new_n == 2);
	OK(fw_store_feed_find(st, 1, FW_STR_NONE, &arena, &f, &err));
	ck_assert_int_eq(f.push_until_ms, 0); /* no requests to hubs: polling does not wait for them */
	OK(websub_record_remove(st, missed.text, &err));
	o.visit.new_n = 0;
	fw_websub_visited(st, config, &was, &o);
	ck_assert_int_eq(
		fw_store_record_get(st, WEBSUB_RECORD_KIND, fw_str(missed.text), &arena, &r, &err), FW_ENOTFOUND);
	is.hub = FW_STR("https://other.example/");
	o.groups = FW_GROUP_META;
	fw_websub_visited(st, config, &was, &o);
	/* a scan finds it */
	ck_assert_int_eq(
		fw_store_record_get(st, WEBSUB_RECORD_KIND, fw_str(look.text), &arena, &r, &err), FW_ENOTFOUND);
	OK(fw_config_set(config, "websub_url", "https://us.example/", NULL, &err));
	fw_websub_visited(st, config, &was, &o);
	OK(fw_store_record_get(st, WEBSUB_RECORD_KIND, fw_str(look.text), &arena, &r, &err));
}
END_TEST

int main(void)
{
	const TTest *const RULE[] = {desired_subscriptions, renewed_before_the_end, renewal_keeps_the_subscription,
		renewal_not_verified, verified_before_the_answer, never_verified, several_hubs, denied_at_any_time,
		retry_after_counts, trust, by_hand, cloud_renews_daily, wrong_lease_seconds,
		malicious_hubs_get_few_requests, the_brake, a_refusal_holds_for_a_week, off_is_off,
		hubs_that_fail_for_all, forms, signatures, callbacks_cannot_be_guessed, one_key_for_all, lost_callbacks,
		addresses, hubs_of_feeds, clouds};
	const TTest *const RECORDS[] = {records_are_read_back, intent_is_exact, pushes_are_classified, clouds_ping,
		a_hint_has_the_feed_polled, lists, workers_tell};
	Suite *s = suite_create("unit engine websub");
	TCase *rules = tcase_create("rules"), *records = tcase_create("records");

	for (size_t i = 0; i < FW_N(RULE); i++)
		tcase_add_test(rules, RULE[i]);
	tcase_add_checked_fixture(records, setup, teardown);
	for (size_t i = 0; i < FW_N(RECORDS); i++)
		tcase_add_test(records, RECORDS[i]);
	suite_add_tcase(s, rules);
	suite_add_tcase(s, records);
	return run_suite(s);
}
