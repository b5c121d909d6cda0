/* SPDX-License-Identifier: ISC */
/* The rhythm learned from publication dates: kinds of feeds, what is kept, what is refused (POL-05, FMT-06, FRB 023). */
#include <check.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/str.h"
#include "sched/due.h"
#include "sched/rhythm.h"
#include "../../suite.h"

#define NOW INT64_C(1795262400000)
#define MIN FW_MINUTE_MS
#define H FW_HOUR_MS
#define D FW_DAY_MS

static const struct fw_due_facts NO_HINTS = {.ttl_minutes = FW_NO_NUMBER, .update_period_minutes = FW_NO_NUMBER};

static struct fw_rhythm_guess guess(const char *text, int64_t now_ms)
{
	struct fw_rhythm_guess g;
	struct fw_rhythm r;

	fw_rhythm_read(fw_str(text), &r);
	fw_rhythm_guess(&r, now_ms, &g);
	return g;
}

/* n dates, the newest `silence` ago, the others `gap` apart. */
static size_t steady(int64_t *dates, size_t n, int64_t silence, int64_t gap)
{
	for (size_t i = 0; i < n; i++)
		dates[i] = NOW - silence - (int64_t)i * gap;
	return n;
}

START_TEST(steady_feeds)
{
	static const struct { int64_t gap, silence, want; } T[] = {
		{4 * H, H, 2 * H}, {D, 2 * H, 12 * H}, {7 * D, D, 84 * H}, {30 * MIN, 5 * MIN, 15 * MIN}, {H, 0, 30 * MIN},
	};
	char text[FW_RHYTHM_MAX];
	int64_t dates[60];

	for (size_t i = 0; i < FW_N(T); i++) {
		size_t n = steady(dates, 20, T[i].silence, T[i].gap);
		struct fw_rhythm_guess g;

		ck_assert_uint_gt(fw_rhythm_learn(FW_STR_NONE, dates, n, &NO_HINTS, NOW, text), 0);
		g = guess(text, NOW);
		ck_assert_msg(llabs(g.interval_ms - T[i].want) <= MIN, "%zu: %lld min, want %lld: %s", i, (long long)g.interval_ms / MIN,
			(long long)T[i].want / MIN, text);
	}
}
END_TEST

/* A feed that carries one entry at a time is learned over many visits as well as one that carries them all. */
START_TEST(one_entry_at_a_time)
{
	char text[FW_RHYTHM_MAX] = "";
	struct fw_rhythm_guess g;

	for (int i = 20; i >= 0; i--) {
		char old[FW_RHYTHM_MAX];
		int64_t date = NOW - i * 4 * H;

		memcpy(old, text, sizeof(old));
		(void)fw_rhythm_learn(fw_str(old), &date, 1, &NO_HINTS, date + H, text);
	}
	g = guess(text, NOW);
	ck_assert_msg(llabs(g.interval_ms - 2 * H) <= MIN, "%s", text);
}
END_TEST

START_TEST(bursts_do_not_fool_it)
{
	char text[FW_RHYTHM_MAX];
	struct fw_rhythm_guess g;
	int64_t dates[60];
	size_t n = 0;

	for (int week = 0; week < 8; week++) { /* three posts within an hour each week */
		for (int k = 0; k < 3; k++)
			dates[n++] = NOW - 2 * D - week * 7 * D - k * 20 * MIN;
	}
	(void)fw_rhythm_learn(FW_STR_NONE, dates, n, &NO_HINTS, NOW, text);
	g = guess(text, NOW);
	ck_assert_msg(g.interval_ms > 12 * H && !g.burst, "%lld min: %s", (long long)g.interval_ms / MIN, text);
	g = guess(text, NOW - 2 * D + 10 * MIN); /* while it goes on */
	ck_assert(g.burst && g.interval_ms == 20 * MIN);
	for (size_t i = 0; i < 50; i++) /* fifty entries imported in one minute are one publication */
		dates[i] = NOW - D - (int64_t)i * 1000;
	(void)fw_rhythm_learn(FW_STR_NONE, dates, 50, &NO_HINTS, NOW, text);
	ck_assert_ptr_null(strstr(text, "g="));
}
END_TEST

START_TEST(holidays_and_silence)
{
	char text[FW_RHYTHM_MAX];
	struct fw_rhythm_guess g;
	int64_t dates[30];
	size_t n = steady(dates, 10, 2 * H, D);

	for (size_t i = 5; i < 10; i++) /* nothing for a year in between */
		dates[i] -= 365 * D;
	(void)fw_rhythm_learn(FW_STR_NONE, dates, n, &NO_HINTS, NOW, text);
	g = guess(text, NOW);
	ck_assert_msg(llabs(g.interval_ms - 12 * H) <= MIN, "%lld min: %s", (long long)g.interval_ms / MIN, text);
	/* falling silent slows it down, steadily */
	for (int64_t silence = 0, before = 0; silence < 400 * D; silence += D) {
		g = guess(text, NOW + silence);
		ck_assert_int_ge(g.interval_ms, before);
		before = g.interval_ms;
	}
	ck_assert_int_gt(g.interval_ms, 10 * D);
	dates[0] = NOW - 900 * D; /* one old entry only */
	(void)fw_rhythm_learn(FW_STR_NONE, dates, 1, &NO_HINTS, NOW, text);
	ck_assert_int_gt(guess(text, NOW).interval_ms, 100 * D);
	dates[0] = NOW - H; /* one young entry says nothing */
	(void)fw_rhythm_learn(FW_STR_NONE, dates, 1, &NO_HINTS, NOW, text);
	ck_assert_int_eq(guess(text, NOW).interval_ms, 0);
}
END_TEST

/* A feed that changed its rhythm is followed within some ten publications. */
START_TEST(the_newer_weigh_more)
{
	char text[FW_RHYTHM_MAX];
	int64_t dates[40];
	size_t n = 0;

	for (int i = 0; i < 20; i++)
		dates[n++] = NOW - H - i * 2 * H;
	for (int i = 0; i < 20; i++)
		dates[n++] = NOW - 41 * H - i * 6 * H;
	(void)fw_rhythm_learn(FW_STR_NONE, dates, n, &NO_HINTS, NOW, text);
	ck_assert_int_lt(guess(text, NOW).gap_ms, 3 * H);
}
END_TEST

START_TEST(dates_that_say_nothing)
{
	int64_t dates[] = {INT64_MIN, INT64_MAX, 0, -1, NOW + 400 * D, NOW - 40000 * D, 1};
	char text[FW_RHYTHM_MAX];

	ck_assert_uint_eq(fw_rhythm_learn(FW_STR_NONE, dates, FW_N(dates), &NO_HINTS, NOW, text), 0);
	ck_assert_str_eq(text, "");
	for (size_t i = 0; i < FW_N(dates); i++) /* made when we asked */
		dates[i] = NOW - 1000;
	ck_assert_uint_eq(fw_rhythm_learn(FW_STR_NONE, dates, FW_N(dates), &NO_HINTS, NOW, text), 0);
	ck_assert_uint_eq(fw_rhythm_learn(FW_STR_NONE, NULL, 0, NULL, NOW, text), 0);
	dates[0] = NOW + 30 * MIN; /* a clock half an hour ahead */
	ck_assert_uint_gt(fw_rhythm_learn(FW_STR_NONE, dates, 1, &NO_HINTS, NOW, text), 0);
	ck_assert_int_eq(guess(text, NOW).silence_ms, 0);
}
END_TEST

START_TEST(hints_are_kept) /* FMT-06: a 304 still knows them */
{
	struct fw_due_facts hints = {.ttl_minutes = 60, .update_period_minutes = 1440, .skip_hours = 0xff0000ff, .skip_days = 0xc1};
	char text[FW_RHYTHM_MAX], again[FW_RHYTHM_MAX];
	int64_t date = NOW - H;
	struct fw_rhythm r;

	(void)fw_rhythm_learn(FW_STR_NONE, &date, 1, &hints, NOW, text);
	fw_rhythm_read(fw_str(text), &r);
	ck_assert(r.ttl_minutes == 60 && r.update_period_minutes == 1440 && r.skip_hours == 0xff && r.skip_days == 0x41 && r.n == 1);
	(void)fw_rhythm_learn(fw_str(text), NULL, 0, NULL, NOW, again); /* nothing new: the same text */
	ck_assert_str_eq(text, again);
	(void)fw_rhythm_learn(fw_str(text), &date, 1, &NO_HINTS, NOW, again); /* a new document takes them back */
	ck_assert_ptr_null(strstr(again, "ttl"));
	hints.ttl_minutes = INT64_MAX;
	hints.update_period_minutes = INT64_MIN + 1;
	(void)fw_rhythm_learn(FW_STR_NONE, NULL, 0, &hints, NOW, text);
	fw_rhythm_read(fw_str(text), &r);
	ck_assert(r.ttl_minutes == INT32_MAX && r.update_period_minutes == INT32_MIN);
}
END_TEST

/* Never longer than FW_RHYTHM_MAX, learning again changes nothing, and any bytes may be read. */
START_TEST(any_text)
{
	static const char soup[] = "v1 ttlsyhdatg=,0123456789-  abcdef";
	int64_t dates[300];
	uint64_t x = 88172645463325252u;

	for (int n = 0; n < 3000; n++) {
		char old[200], text[FW_RHYTHM_MAX], again[FW_RHYTHM_MAX];
		size_t len = (size_t)n % sizeof(old), date_n = (size_t)n % FW_N(dates);

		for (size_t i = 0; i < len; i++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			old[i] = soup[x % (sizeof(soup) - 1)];
		}
		if (len > 6)
			memcpy(old, "v1 at=", 6);
		for (size_t i = 0; i < date_n; i++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			dates[i] = NOW - (int64_t)(x % (uint64_t)(3000 * D));
		}
		len = fw_rhythm_learn((struct fw_str){old, len}, dates, date_n, &NO_HINTS, NOW, text);
		ck_assert(len < FW_RHYTHM_MAX && strlen(text) == len);
		(void)fw_rhythm_learn(fw_str(text), dates, date_n, &NO_HINTS, NOW, again);
		ck_assert_str_eq(text, again);
		ck_assert_int_ge(guess(text, NOW).interval_ms, 0);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("rhythm");
	TCase *t = tcase_create("rhythm");

	tcase_add_test(t, steady_feeds);
	tcase_add_test(t, one_entry_at_a_time);
	tcase_add_test(t, bursts_do_not_fool_it);
	tcase_add_test(t, holidays_and_silence);
	tcase_add_test(t, the_newer_weigh_more);
	tcase_add_test(t, dates_that_say_nothing);
	tcase_add_test(t, hints_are_kept);
	tcase_add_test(t, any_text);
	suite_add_tcase(s, t);
	return run_suite(s);
}
