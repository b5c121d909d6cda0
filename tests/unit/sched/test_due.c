/* SPDX-License-Identifier: ISC */
/*
 * The next due time and its reason: each rule, its precedence, its limits and its text (POL-05 ...
 * POL-11, FMT-06).
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/str.h"
#include "sched/due.h"
#include "../../suite.h"

#define NOW INT64_C(1795262400000) /* Saturday, 2026-11-21 12:00:00 UTC */
#define MIN FW_MINUTE_MS
#define H FW_HOUR_MS
#define D FW_DAY_MS
#define ZERO (INT64_MIN + 1) /* in the tables, 0 is "absent" */

static int64_t hint(int64_t v)
{
	return v == 0 ? FW_NO_NUMBER : v == ZERO ? 0 : v;
}

static struct fw_due ask(struct fw_due_facts f, int64_t now_ms, uint64_t rnd)
{
	struct fw_due_policy p;
	struct fw_due due;

	f.retry_after_ms = hint(f.retry_after_ms);
	f.fresh_ms = hint(f.fresh_ms);
	f.ttl_minutes = hint(f.ttl_minutes);
	f.update_period_minutes = hint(f.update_period_minutes);
	fw_due_policy_default(&p);
	fw_due(&f, &p, now_ms, rnd, &due);
	return due;
}

struct row {
	const char *id;
	struct fw_due_facts f;
	int64_t lo, hi;   /* the delay's limits, over all random bits */
	const char *word; /* a word of the reason */
	bool stop;
};

static void check_row(const struct row *r)
{
	for (uint64_t rnd = 0; rnd < 4000; rnd += 7) {
		struct fw_due due = ask(r->f, NOW, rnd * UINT64_C(0x9e3779b97f4a7c15));
		int64_t delay = due.at_ms - NOW;

		ck_assert_msg(delay >= r->lo && delay <= r->hi, "%s: %lld s, want %lld to %lld: %s", r->id,
			(long long)delay / 1000, (long long)r->lo / 1000, (long long)r->hi / 1000, due.why);
		ck_assert_msg(strstr(due.why, r->word) != NULL, "%s: \"%s\" is not in \"%s\"", r->id, r->word, due.why);
		ck_assert_int_eq(due.stop, r->stop);
	}
}

static void check_rows(const struct row *r, size_t n)
{
	for (size_t i = 0; i < n; i++)
		check_row(&r[i]);
}

#define TEN(ms) (ms) - (ms) / 10, (ms) + (ms) / 10
#define LATER(ms) (ms), (ms) + ((ms) < 10 * MIN ? MIN : (ms) > 10 * H ? H : (ms) / 10) /* constant */

START_TEST(after_success)
{
	static const struct row ROWS[] = {
		{"nothing known", {.kind = FW_VISIT_OK}, TEN(H), "no entry rhythm known: 1 h", false},
		{"304 too", {.kind = FW_VISIT_NOT_MODIFIED}, TEN(H), "no entry rhythm known", false},
		{"same bytes too", {.kind = FW_VISIT_SAME}, TEN(H), "no entry rhythm known", false},
		{"never visited", {.kind = FW_VISIT_NONE}, 0, 0, "never visited: now", false},
		{"POL-06 max-age", {.kind = FW_VISIT_OK, .fresh_ms = 12 * H}, LATER(12 * H), "max-age 12 h is longer",
			false},
		{"POL-06 max-age on 304", {.kind = FW_VISIT_NOT_MODIFIED, .fresh_ms = 12 * H}, LATER(12 * H),
			"max-age 12 h", false},
		{"POL-06 stale", {.kind = FW_VISIT_OK, .fresh_ms = ZERO}, TEN(H), "known: 1 h", false},
		{"POL-06 short max-age", {.kind = FW_VISIT_OK, .fresh_ms = 5 * MIN}, TEN(H), "known: 1 h", false},
		{"POL-05 max-age 10^12", {.kind = FW_VISIT_OK, .fresh_ms = INT64_C(1000000000000000)}, LATER(D),
			"cut to 1 d", false},
		{"POL-05 max-age INT64_MAX", {.kind = FW_VISIT_OK, .fresh_ms = INT64_MAX}, LATER(D), "cut to 1 d",
			false},
		{"FMT-06 ttl", {.kind = FW_VISIT_OK, .ttl_minutes = 180}, LATER(3 * H), "ttl 3 h is longer", false},
		{"FMT-06 ttl shorter", {.kind = FW_VISIT_OK, .ttl_minutes = 5}, TEN(H), "known: 1 h", false},
		{"FMT-06 ttl -1", {.kind = FW_VISIT_OK, .ttl_minutes = -1}, TEN(H), "ttl -1 min is invalid", false},
		{"FMT-06 ttl 0", {.kind = FW_VISIT_OK, .ttl_minutes = ZERO}, TEN(H), "ttl 0 ms is invalid", false},
		{"FMT-06 ttl huge", {.kind = FW_VISIT_OK, .ttl_minutes = INT64_MAX}, LATER(D), "cut to 1 d", false},
		{"FMT-06 updatePeriod", {.kind = FW_VISIT_OK, .update_period_minutes = 1440}, LATER(D),
			"updatePeriod 1 d is longer", false},
		{"the longest counts",
			{.kind = FW_VISIT_OK, .update_period_minutes = 240, .ttl_minutes = 120, .fresh_ms = 3 * H},
			LATER(4 * H), "updatePeriod 4 h is longer", false},
		{"hints of the last document", {.kind = FW_VISIT_NOT_MODIFIED, .rhythm = {"v1 ttl=300", 10}},
			LATER(5 * H), "ttl 5 h is longer", false},
		{"this document beats the last",
			{.kind = FW_VISIT_OK, .ttl_minutes = 120, .rhythm = {"v1 ttl=300", 10}}, LATER(2 * H),
			"ttl 2 h is longer", false},
		{"the owner",
			{.kind = FW_VISIT_OK,
				.interval_ms = 10 * MIN,
				.ttl_minutes = 600,
				.fresh_ms = D,
				.skip_hours = 0xfff000},
			TEN(10 * MIN), "the owner's interval 10 min", false},
		{"the owner, too often", {.kind = FW_VISIT_OK, .interval_ms = 1}, LATER(MIN), "clamped to 1 min",
			false},
		{"the owner, too rare", {.kind = FW_VISIT_OK, .interval_ms = INT64_MAX}, TEN(30 * D), "clamped to 30 d",
			false},
		{"POL-07 on 200", {.kind = FW_VISIT_OK, .retry_after_ms = 2 * D}, LATER(2 * D), "Retry-After 2 d",
			false},
		{"POL-07 beats the owner", {.kind = FW_VISIT_OK, .interval_ms = 10 * MIN, .retry_after_ms = 2 * H},
			LATER(2 * H), "Retry-After 2 h", false},
		{"POL-07 short", {.kind = FW_VISIT_OK, .retry_after_ms = 1000}, TEN(H), "known: 1 h", false},
		{"learned", {.kind = FW_VISIT_OK, .rhythm = {"v1 at=29921010 g=240,240,240,240", 32}}, 15 * MIN, 4 * H,
			"(new about every 4 h)", false},
		{"burst", {.kind = FW_VISIT_OK, .rhythm = {"v1 at=29921035 g=12,11,10,13,5000,4000", 38}},
			LATER(15 * MIN), "publishing right now: 15 min", false},
		{"silent", {.kind = FW_VISIT_NOT_MODIFIED, .rhythm = {"v1 at=29000000 g=60,60,60,60,60", 31}}, TEN(D),
			"silent for", false},
		{"learned and max-age",
			{.kind = FW_VISIT_OK, .fresh_ms = 12 * H, .rhythm = {"v1 at=29921010 g=240,240,240,240", 32}},
			LATER(12 * H), "(new about every 4 h); max-age 12 h is longer", false},
		{"a hub delivers",
			{.kind = FW_VISIT_OK, .pushed = true, .rhythm = {"v1 at=29921010 g=240,240,240,240", 32}},
			TEN(D), "a hub delivers", false},
		{"a hub delivers, 304", {.kind = FW_VISIT_NOT_MODIFIED, .pushed = true}, TEN(D), "after 1 d", false},
		{"a hub delivers, ttl is shorter", {.kind = FW_VISIT_OK, .pushed = true, .ttl_minutes = 60}, TEN(D),
			"a hub delivers", false},
		{"a hub delivers, the owner decides", {.kind = FW_VISIT_OK, .pushed = true, .interval_ms = 2 * H},
			TEN(2 * H), "the owner's interval", false},
		{"a hub delivers, Retry-After", {.kind = FW_VISIT_OK, .pushed = true, .retry_after_ms = 3 * D},
			LATER(3 * D), "Retry-After 3 d", false},
		{"a check is due before", {.kind = FW_VISIT_NOT_MODIFIED, .whole_ms = NOW - 23 * H - 30 * MIN},
			LATER(30 * MIN), "304 (not modified) is trusted for 30 min more", false},
		{"a check is due a little later", {.kind = FW_VISIT_NOT_MODIFIED, .whole_ms = NOW - 23 * H + 5 * MIN},
			LATER(65 * MIN), "trusted for", false},
		{"a check is due at once", {.kind = FW_VISIT_NOT_MODIFIED, .whole_ms = NOW - 24 * H - 5 * MIN},
			LATER(15 * MIN), "trusted for 15 min", false},
		{"a check is far", {.kind = FW_VISIT_NOT_MODIFIED, .whole_ms = NOW - 5 * H}, TEN(H), "known: 1 h",
			false},
		{"a check of who is trusted is far",
			{.kind = FW_VISIT_NOT_MODIFIED,
				.whole_ms = NOW - D,
				.rhythm = {"v2 tr=2,29900000,0 at=29919600 g=1440,1440", 43}},
			15 * MIN, D, "learned", false},
		{"a check, but the owner decides",
			{.kind = FW_VISIT_NOT_MODIFIED, .whole_ms = NOW - 23 * H - 30 * MIN, .interval_ms = 2 * H},
			TEN(2 * H), "the owner's interval", false},
		{"a check, but the server wants peace",
			{.kind = FW_VISIT_NOT_MODIFIED, .whole_ms = NOW - 23 * H - 30 * MIN, .fresh_ms = 12 * H},
			LATER(12 * H), "max-age 12 h is longer", false},
		{"a check waits while it fails", {.kind = FW_VISIT_TIMEOUT, .fail_n = 1, .whole_ms = NOW - 30 * H},
			TEN(15 * MIN), "timed out, failure 1", false},
		{"torn rhythm", {.kind = FW_VISIT_OK, .rhythm = {"v1 at=x g=,,-5 ttl=y sh=zz sd=fff", 33}}, TEN(H),
			"no entry rhythm known", false},
		{"rhythm of another version", {.kind = FW_VISIT_OK, .rhythm = {"v9 ttl=600", 10}}, TEN(H),
			"no entry rhythm known", false},
	};

	check_rows(ROWS, FW_N(ROWS));
}
END_TEST

START_TEST(after_failure)
{
	static const struct row ROWS[] = {
		{"POL-08 429", {.kind = FW_VISIT_HTTP, .http_status = 429, .fail_n = 1}, TEN(H),
			"too many requests (429), failure 1: 1 h", false},
		{"POL-08 429 again", {.kind = FW_VISIT_HTTP, .http_status = 429, .fail_n = 3}, TEN(4 * H),
			"failure 3: 4 h", false},
		{"POL-07 429 with Retry-After",
			{.kind = FW_VISIT_HTTP, .http_status = 429, .fail_n = 1, .retry_after_ms = 3 * D}, LATER(3 * D),
			"Retry-After 3 d", false},
		{"POL-07 7 days at most",
			{.kind = FW_VISIT_HTTP, .http_status = 503, .fail_n = 1, .retry_after_ms = 70 * D},
			LATER(7 * D), "Retry-After 70 d, cut to 7 d", false},
		{"POL-07 7 days uncut",
			{.kind = FW_VISIT_HTTP, .http_status = 503, .fail_n = 1, .retry_after_ms = 7 * D}, LATER(7 * D),
			"Retry-After 7 d", false},
		{"POL-07 redirect", {.kind = FW_VISIT_HTTP, .http_status = 302, .fail_n = 1, .retry_after_ms = 2 * H},
			LATER(2 * H), "Retry-After", false},
		{"POL-07 just gone by",
			{.kind = FW_VISIT_HTTP, .http_status = 503, .fail_n = 1, .retry_after_ms = ZERO}, TEN(H),
			"(503), failure 1: 1 h", false},
		{"POL-07 in 1970", {.kind = FW_VISIT_HTTP, .http_status = 503, .fail_n = 1, .retry_after_ms = -NOW},
			TEN(H), "h is invalid, ignored", false},
		{"POL-07 negative", {.kind = FW_VISIT_HTTP, .http_status = 503, .fail_n = 1, .retry_after_ms = -5000},
			TEN(H), "is invalid", false},
		{"POL-10 404", {.kind = FW_VISIT_HTTP, .http_status = 404, .fail_n = 1}, TEN(H), "not found (404)",
			false},
		{"POL-10 404 for a week", {.kind = FW_VISIT_HTTP, .http_status = 404, .fail_n = 11}, TEN(7 * D),
			"failure 11: 7 d", false},
		{"POL-10 404 for ever", {.kind = FW_VISIT_HTTP, .http_status = 404, .fail_n = UINT32_MAX}, TEN(7 * D),
			"7 d", false},
		{"POL-10 403", {.kind = FW_VISIT_HTTP, .http_status = 403, .fail_n = 1}, TEN(4 * H), "forbidden (403)",
			false},
		{"POL-10 401", {.kind = FW_VISIT_HTTP, .http_status = 401, .fail_n = 2}, TEN(8 * H),
			"authentication required (401)", false},
		{"500", {.kind = FW_VISIT_HTTP, .http_status = 500, .fail_n = 1}, TEN(15 * MIN), "server error", false},
		{"418", {.kind = FW_VISIT_HTTP, .http_status = 418, .fail_n = 1}, TEN(H), "refused", false},
		{"not sooner than a healthy one",
			{.kind = FW_VISIT_HTTP,
				.http_status = 429,
				.fail_n = 1,
				.rhythm = {"v1 at=29000000 g=60,60", 22}},
			TEN(D), "its usual 1 d is longer", false},
		{"POL-10 410", {.kind = FW_VISIT_GONE, .http_status = 410, .fail_n = 1}, TEN(30 * D),
			"gone for good (410)", true},
		{"POL-10 410, owner or not",
			{.kind = FW_VISIT_GONE, .http_status = 410, .interval_ms = MIN, .retry_after_ms = D},
			TEN(30 * D), "polled once more after", true},
		{"FMT-08 expired", {.kind = FW_VISIT_OK, .expired = true}, TEN(30 * D), "it has ended", true},
		{"POL-10 DNS", {.kind = FW_VISIT_DNS, .fail_n = 1}, TEN(15 * MIN),
			"host name not resolved, failure 1: 15 min", false},
		{"POL-10 DNS, days", {.kind = FW_VISIT_DNS, .fail_n = 20}, TEN(D), "failure 20: 1 d", false},
		{"POL-10 DNS, a month", {.kind = FW_VISIT_DNS, .fail_n = 37}, TEN(30 * D), "failure 37: 30 d", false},
		{"connect", {.kind = FW_VISIT_CONNECT, .fail_n = 2}, TEN(30 * MIN),
			"connection failed, failure 2: 30 min", false},
		{"TLS", {.kind = FW_VISIT_TLS, .fail_n = 1}, TEN(H), "TLS failed", false},
		{"time-out", {.kind = FW_VISIT_TIMEOUT, .fail_n = 3}, TEN(H), "timed out", false},
		{"protocol", {.kind = FW_VISIT_PROTOCOL, .fail_n = 1}, TEN(15 * MIN), "invalid response", false},
		{"not a feed", {.kind = FW_VISIT_FORMAT, .fail_n = 1}, TEN(H), "not a feed", false},
		{"limit", {.kind = FW_VISIT_LIMIT, .fail_n = 1}, TEN(4 * H), "too large", false},
		{"blocked", {.kind = FW_VISIT_BLOCKED, .fail_n = 1}, TEN(H), "address refused", false},
		{"redirect", {.kind = FW_VISIT_REDIRECT, .fail_n = 1}, TEN(H), "redirect failed", false},
		{"crash", {.kind = FW_VISIT_CRASH, .fail_n = 1}, TEN(H), "parser crashed", false},
		{"our own fault", {.kind = FW_VISIT_LOCAL, .fail_n = 30}, TEN(5 * MIN),
			"our own fault, the feed is not charged", false},
		{"our own network", {.kind = FW_VISIT_LOCAL, .fail_n = 30, .offline_ms = 1}, TEN(5 * MIN),
			"our own network seems to be down, the feed is not charged: 5 min", false},
		{"our own network, and for long", {.kind = FW_VISIT_LOCAL, .offline_ms = 2 * H}, TEN(15 * MIN),
			"our own network seems to be down", false},
		{"a failure that was not counted", {.kind = FW_VISIT_TIMEOUT, .fail_n = 0}, TEN(15 * MIN), "failure 1",
			false},
		{"a kind nobody knows", {.kind = (enum fw_visit_kind)99, .fail_n = 1}, TEN(15 * MIN),
			"invalid response", false},
	};

	check_rows(ROWS, FW_N(ROWS));
}
END_TEST

/* A failing feed is never given up, and never polled more often than after the first failure. */
START_TEST(failures_back_off_and_never_end)
{
	for (int kind = FW_VISIT_HTTP; kind < FW_VISIT_KIND_N; kind++) {
		int64_t before = 0;

		for (uint32_t n = 1; n < 200; n++) {
			struct fw_due due = ask(
				(struct fw_due_facts){
					.kind = (enum fw_visit_kind)kind, .http_status = 500, .fail_n = n},
				NOW, 0);

			ck_assert_msg(due.at_ms - NOW >= before && due.at_ms - NOW <= 31 * D, "kind %d, failure %u: %s",
				kind, n, due.why);
			before = due.at_ms - NOW;
		}
	}
}
END_TEST

START_TEST(skip_hours_and_days) /* FMT-06; NOW is a Saturday, 12:00 GMT */
{
	static const struct {
		const char *id;
		uint32_t hours;
		uint8_t days;
		int64_t lo, hi;
		const char *word;
	} T[] = {
		{"not now", 1u << 3, 0, TEN(H), "known: 1 h"},
		{"13 and 12 to 14", 1u << 12 | 1u << 13, 0, 2 * H, 2 * H + 30 * MIN, "out of skipHours"},
		{"12 to 23", 0xfff000, 0, 12 * H, 12 * H + 30 * MIN, "out of skipHours"},
		{"Saturday", 0, 1u << 6, 12 * H, 12 * H + 30 * MIN, "out of skipDays"},
		{"all days but Friday", 0, 0x5f, 6 * D - 12 * H, 6 * D - 12 * H + 30 * MIN, "out of skipDays"},
		{"all hours but 5, all days but Friday", ~(1u << 5) & 0xffffff, 0x5f, 6 * D - 7 * H,
			6 * D - 7 * H + 30 * MIN, "skipHours and skipDays"},
		{"all hours", 0xffffff, 0, TEN(H), "skipHours lists all hours, ignored"},
		{"all days", 0, 0x7f, TEN(H), "skipDays lists all days, ignored"},
		{"bits that mean nothing", 0xff000000, 0x80, TEN(H), "known: 1 h"},
	};

	for (size_t i = 0; i < FW_N(T); i++) {
		struct row r = {T[i].id, {.kind = FW_VISIT_OK, .skip_hours = T[i].hours, .skip_days = T[i].days},
			T[i].lo, T[i].hi, T[i].word, false};

		check_row(&r);
	}
	for (uint64_t rnd = 0; rnd < 5000; rnd++) { /* a skipped hour is skipped for each random number */
		struct fw_due due = ask(
			(struct fw_due_facts){.kind = FW_VISIT_OK, .skip_hours = 0x5a5a5a, .skip_days = 0x41}, NOW,
			rnd * UINT64_C(0x9e3779b97f4a7c15));
		struct fw_civil c;

		fw_civil_from_ms(due.at_ms, &c);
		ck_assert(!(0x5a5a5a >> c.hour & 1) && !(0x41 >> c.weekday & 1));
	}
}
END_TEST

/*
 * POL-11, FRB 037: a thousand equal feeds, visited at the same moment at the top of the hour,
 * spread out.
 */
START_TEST(equal_feeds_part)
{
	static const struct fw_due_facts F[] = {
		{.kind = FW_VISIT_OK},
		{.kind = FW_VISIT_OK, .fresh_ms = 24 * H},
		{.kind = FW_VISIT_HTTP, .http_status = 503, .fail_n = 1, .retry_after_ms = H},
		{.kind = FW_VISIT_OK, .skip_hours = 0x002000},
		{.kind = FW_VISIT_TIMEOUT, .fail_n = 2},
	};

	for (size_t i = 0; i < FW_N(F); i++) {
		int minute[60] = {0}, most = 0;

		for (uint64_t n = 0; n < 1000; n++) {
			struct fw_due due = ask(F[i], NOW, (n + 1) * UINT64_C(0x9e3779b97f4a7c15));
			int m = (int)(due.at_ms / MIN % 60);

			minute[m]++;
			most = FW_MAX(most, minute[m]);
		}
		ck_assert_msg(most <= 260, "facts %zu: %d of 1,000 in one minute", i, most);
	}
}
END_TEST

/*
 * POL-11, FRB 037: ten thousand equal feeds, visited within a second at the top of the hour, come
 * back evenly over their jitter.
 */
START_TEST(ten_thousand_in_one_second)
{
	static const struct fw_due_facts F[] = {
		{.kind = FW_VISIT_OK},
		{.kind = FW_VISIT_OK, .fresh_ms = 24 * H},
		{.kind = FW_VISIT_OK, .interval_ms = 2 * H},
		{.kind = FW_VISIT_OK, .pushed = true},
		{.kind = FW_VISIT_OK, .rhythm = {"v1 at=29921010 g=240,240,240,240", 32}},
		{.kind = FW_VISIT_HTTP, .http_status = 503, .fail_n = 1, .retry_after_ms = H},
		{.kind = FW_VISIT_OK, .skip_hours = 0x003000},
		{.kind = FW_VISIT_TIMEOUT, .fail_n = 3},
	};
	static uint16_t second[48 * 3600];
	uint64_t x = 88172645463325252u;

	for (size_t i = 0; i < FW_N(F); i++) {
		int64_t first = INT64_MAX, last = 0;
		double share, most;

		memset(second, 0, sizeof(second));
		for (int n = 0; n < 10000; n++) {
			int64_t s;

			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			s = (ask(F[i], NOW, x).at_ms - NOW) / 1000;
			ck_assert(s >= 0 && s < (int64_t)FW_N(second));
			second[s]++;
			first = FW_MIN(first, s);
			last = FW_MAX(last, s);
		}
		share = 10000.0 / (double)(last - first + 1);
		most = share + 7 * sqrt(share) + 3; /* chance exceeds this once in millions */
		for (int64_t s = first; s <= last; s++)
			ck_assert_msg(second[s] <= most, "facts %zu: %d in second %lld, %g are fair", i, second[s],
				(long long)s, share);
		for (int64_t m = first / 60 + 1; m < last / 60; m++) { /* whole minutes are even */
			double sum = 0;

			for (int64_t s = m * 60; s < m * 60 + 60; s++)
				sum += second[s];
			ck_assert_msg(fabs(sum - 60 * share) <= 6 * sqrt(60 * share),
				"facts %zu: %g in minute %lld, %g are fair", i, sum, (long long)m, 60 * share);
		}
	}
}
END_TEST

/*
 * Feeds that have spread out stay so: after three days each minute of the hour has as many as the
 * others, the first too.
 */
START_TEST(no_rush_at_the_top_of_the_hour)
{
	int minute[60] = {0};
	uint64_t x = 88172645463325252u;

	for (int n = 0; n < 10000; n++) {
		for (int64_t at = NOW; at < NOW + 3 * D + 2 * H;) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			at = ask((struct fw_due_facts){.kind = FW_VISIT_NOT_MODIFIED, .mute = true}, at, x).at_ms;
			if (at >= NOW + 3 * D && at < NOW + 3 * D + 2 * H)
				minute[at / MIN % 60]++;
		}
	}
	for (int m = 0; m < 60; m++)
		ck_assert_msg(minute[m] > 250 && minute[m] < 420, "%d of 20,000 in minute %d", minute[m], m);
}
END_TEST

START_TEST(clocks_that_jump)
{
	static const int64_t AT[] = {0, 1, -1, INT64_MIN, INT64_MAX, NOW - 3650 * D, NOW + 3650 * D};
	struct fw_due_facts f = {
		.kind = FW_VISIT_OK, .rhythm = {"v1 at=29921010 g=240,240,240,240", 32}, .last_new_ms = NOW};

	for (size_t i = 0; i < FW_N(AT); i++) {
		struct fw_due due = ask(f, AT[i], 12345);
		int64_t from = AT[i] < 0 ? 0 : FW_MIN(AT[i], INT64_C(253402300799000));

		ck_assert_msg(due.at_ms - from >= 15 * MIN && due.at_ms - from <= 27 * H, "%s", due.why);
		ck_assert(due.why[0]);
	}
}
END_TEST

START_TEST(invalid_policies)
{
	static const struct fw_due_policy P[] = {{0}, {-1, -1, -1, -1, -1, -1, -1},
		{INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX},
		{INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN}, {D, H, MIN, D, H, 1, 1}};
	struct fw_due due;

	for (size_t i = 0; i <= FW_N(P); i++) {
		for (int kind = 0; kind < FW_VISIT_KIND_N; kind++) {
			struct fw_due_facts f = {.kind = (enum fw_visit_kind)kind,
				.http_status = 429,
				.fail_n = 50,
				.retry_after_ms = INT64_MAX,
				.pushed = i % 2 == 1};

			fw_due(&f, i < FW_N(P) ? &P[i] : NULL, NOW, UINT64_MAX, &due);
			ck_assert_msg(due.at_ms >= NOW && due.at_ms < NOW + 500 * D, "policy %zu, kind %d: %s", i, kind,
				due.why);
		}
	}
}
END_TEST

/* Any facts: a time in the future, with a reason, and the same result for the same random bits. */
START_TEST(any_facts)
{
	static const int64_t V[] = {0, ZERO, 1, -1, 59, 60, 1440, INT64_MIN, INT64_MAX, 1000000000000, -1000000000000};
	uint64_t x = 88172645463325252u;

	for (int n = 0; n < 20000; n++) {
		struct fw_due_facts f = {.kind = (enum fw_visit_kind)(n % (FW_VISIT_KIND_N + 2))};
		struct fw_due a, b;

		for (int k = 0; k < 7; k++) {
			int64_t *const to[] = {&f.retry_after_ms, &f.fresh_ms, &f.ttl_minutes, &f.update_period_minutes,
				&f.last_new_ms, &f.interval_ms};

			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			if (k < 6)
				*to[k] = V[x % FW_N(V)];
		}
		f.http_status = (int)(x >> 50);
		f.fail_n = (uint32_t)(x >> 20);
		f.skip_hours = (uint32_t)x;
		f.skip_days = (uint8_t)(x >> 8);
		f.expired = x >> 63;
		f.pushed = x >> 62 & 1;
		a = ask(f, NOW, x);
		b = ask(f, NOW, x);
		ck_assert_msg(a.at_ms >= NOW && a.at_ms <= NOW + 45 * D && a.why[0], "%lld: %s",
			(long long)(a.at_ms - NOW) / 1000, a.why);
		ck_assert(a.at_ms == b.at_ms && strcmp(a.why, b.why) == 0 && strlen(a.why) < sizeof(a.why));
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit sched due");
	TCase *t = tcase_create("due");

	tcase_add_test(t, after_success);
	tcase_add_test(t, after_failure);
	tcase_add_test(t, failures_back_off_and_never_end);
	tcase_add_test(t, skip_hours_and_days);
	tcase_add_test(t, equal_feeds_part);
	tcase_add_test(t, ten_thousand_in_one_second);
	tcase_add_test(t, no_rush_at_the_top_of_the_hour);
	tcase_add_test(t, clocks_that_jump);
	tcase_add_test(t, invalid_policies);
	tcase_add_test(t, any_facts);
	suite_add_tcase(s, t);
	return run_suite(s);
}
