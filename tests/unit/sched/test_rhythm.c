/* SPDX-License-Identifier: ISC */
/*
 * The rhythm learned from publication dates: kinds of feeds, what is stored, what is refused
 * (POL-05, FMT-06, FRB 023).
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/str.h"
#include "sched/due.h"
#include "sched/rhythm.h"
#include "sched/trust.h"
#include "../../suite.h"

#define NOW INT64_C(1795262400000)
#define MIN FW_MINUTE_MS
#define H FW_HOUR_MS
#define D FW_DAY_MS

static const struct fw_due_facts NO_HINTS = {.ttl_minutes = FW_NO_NUMBER, .update_period_minutes = FW_NO_NUMBER};

static struct fw_rhythm_model model_of(const char *text)
{
	struct fw_rhythm_model m;
	struct fw_rhythm r;

	fw_rhythm_read(fw_str(text), &r);
	fw_rhythm_model(&r, &m);
	return m;
}

static struct fw_rhythm_guess guess_within(const char *text, int64_t now_ms, int64_t max_ms)
{
	struct fw_rhythm_model m = model_of(text);
	struct fw_rhythm_guess g;

	fw_rhythm_guess(&m, now_ms, 0.2, max_ms, &g);
	return g;
}

static struct fw_rhythm_guess guess(const char *text, int64_t now_ms)
{
	return guess_within(text, now_ms, 400 * D);
}

static double expected(const char *text, int64_t from_ms, int64_t to_ms)
{
	struct fw_rhythm_model m = model_of(text);

	return fw_rhythm_expected(&m, from_ms, to_ms);
}

/* n dates, the newest `silence` ago, the others `gap` apart. */
static size_t steady(int64_t *dates, size_t n, int64_t silence, int64_t gap)
{
	for (size_t i = 0; i < n; i++)
		dates[i] = NOW - silence - (int64_t)i * gap;
	return n;
}

/*
 * From half-hourly to weekly: each is polled before it publishes again, and not many times before.
 */
START_TEST(steady_feeds)
{
	static const struct {
		int64_t gap, silence;
	} T[] = {{30 * MIN, 5 * MIN}, {H, 0}, {4 * H, H}, {11 * H, H}, {D, 2 * H}, {7 * D, D}};
	char text[FW_RHYTHM_MAX];
	int64_t dates[60];

	for (size_t i = 0; i < FW_N(T); i++) {
		size_t n = steady(dates, 40, T[i].silence, T[i].gap);
		struct fw_rhythm_guess g;

		ck_assert_uint_gt(fw_rhythm_learn(FW_STR_NONE, dates, n, &NO_HINTS, NOW, text), 0);
		g = guess(text, NOW);
		ck_assert_msg(llabs(g.gap_ms - T[i].gap) <= T[i].gap / 10, "%zu: gap %lld min: %s", i,
			(long long)g.gap_ms / MIN, text);
		ck_assert_msg(g.interval_ms >= T[i].gap / 20 && g.interval_ms <= T[i].gap, "%zu: %lld min: %s", i,
			(long long)g.interval_ms / MIN, text);
		/* more is expected around the due time than right after a publication */
		ck_assert_msg(expected(text, NOW - T[i].silence, NOW - T[i].silence + T[i].gap / 4) <
				expected(text, NOW - T[i].silence + T[i].gap, NOW - T[i].silence + T[i].gap * 5 / 4) /
					2,
			"%zu: %s", i, text);
	}
}
END_TEST

/*
 * Our polling frequency does not bias what we learn: any sequence of visits ends with the same
 * text.
 */
START_TEST(visits_do_not_matter)
{
	static const struct {
		int64_t gap;
		size_t n;
	} T[] = {{4 * H, 40}, {8 * MIN, 180}, {25 * MIN, 60}, {3 * MIN, 180}};

	for (size_t i = 0; i < FW_N(T); i++) {
		char once[FW_RHYTHM_MAX];
		int64_t dates[180];
		size_t n = steady(dates, T[i].n, 3 * MIN, T[i].gap);

		(void)fw_rhythm_learn(FW_STR_NONE, dates, n, &NO_HINTS, NOW, once);
		/* a visit at each step-th publication; the document has some old entries too */
		for (size_t step = 1; step < 20; step += 3) {
			char text[FW_RHYTHM_MAX] = "", old[FW_RHYTHM_MAX];

			for (size_t left = n; left > 0;) {
				size_t next = left > step ? left - step : 0;

				memcpy(old, text, sizeof(old));
				(void)fw_rhythm_learn(fw_str(old), dates + next, FW_MIN(step + 2, n - next), &NO_HINTS,
					dates[next] + MIN, text);
				left = next;
			}
			ck_assert_msg(!strcmp(once, text), "gap %lld min, %zu at a time:\n%s\n%s",
				(long long)T[i].gap / MIN, step, once, text);
		}
	}
}
END_TEST

START_TEST(bursts_do_not_fool_it)
{
	char text[FW_RHYTHM_MAX];
	struct fw_rhythm_guess g, on;
	int64_t dates[60];
	size_t n = 0;

	for (int week = 0; week < 8; week++) { /* three posts within an hour each week */
		for (int k = 0; k < 3; k++)
			dates[n++] = NOW - 2 * D - week * 7 * D - k * 20 * MIN;
	}
	(void)fw_rhythm_learn(FW_STR_NONE, dates, n, &NO_HINTS, NOW, text);
	g = guess(text, NOW);
	ck_assert_msg(g.interval_ms > 4 * H && !g.burst, "%lld min: %s", (long long)g.interval_ms / MIN, text);
	on = guess(text, NOW - 2 * D + 10 * MIN); /* during such an hour */
	ck_assert_msg(on.burst && on.interval_ms < H, "%lld min: %s", (long long)on.interval_ms / MIN, text);
	for (size_t i = 0; i < 50; i++) /* fifty entries imported within a minute are one publication */
		dates[i] = NOW - D - (int64_t)i * 1000;
	(void)fw_rhythm_learn(FW_STR_NONE, dates, 50, &NO_HINTS, NOW, text);
	ck_assert_ptr_null(strstr(text, "g="));
}
END_TEST

START_TEST(holidays_and_silence)
{
	char text[FW_RHYTHM_MAX], whole[FW_RHYTHM_MAX];
	struct fw_rhythm_guess g, before = {0};
	int64_t dates[30];
	size_t n = steady(dates, 10, 2 * H, D);

	(void)fw_rhythm_learn(FW_STR_NONE, dates, n, &NO_HINTS, NOW, whole);
	for (size_t i = 5; i < 10; i++) /* nothing for a year in between */
		dates[i] -= 365 * D;
	(void)fw_rhythm_learn(FW_STR_NONE, dates, n, &NO_HINTS, NOW, text);
	g = guess(text, NOW);
	ck_assert_msg(g.interval_ms <= 2 * guess(whole, NOW).interval_ms, "%lld min: %s",
		(long long)g.interval_ms / MIN, text);
	/*
	 * silence slows the polling down steadily; 20 % tolerance, because the hours of the week
	 * vary
	 */
	for (int64_t silence = 3 * D; silence < 400 * D; silence += D, before = g) {
		g = guess(whole, NOW + silence);
		ck_assert_msg(5 * g.interval_ms >= 4 * before.interval_ms, "%lld d: %lld min after %lld",
			(long long)(silence / D), (long long)g.interval_ms / MIN, (long long)before.interval_ms / MIN);
	}
	ck_assert_int_gt(g.interval_ms, 5 * D);
	dates[0] = NOW - 900 * D; /* one old entry only */
	(void)fw_rhythm_learn(FW_STR_NONE, dates, 1, &NO_HINTS, NOW, text);
	ck_assert_int_gt(guess(text, NOW).interval_ms, 30 * D);
	dates[0] = NOW - H; /* one young entry is no evidence */
	(void)fw_rhythm_learn(FW_STR_NONE, dates, 1, &NO_HINTS, NOW, text);
	ck_assert_int_eq(guess(text, NOW).interval_ms, 0);
}
END_TEST

/* A changed rhythm is learned within some ten publications. */
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
	/* 6, or 2 as before */
	ck_assert_msg(expected(text, NOW, NOW + 12 * H) > 3, "%g: %s", expected(text, NOW, NOW + 12 * H), text);
}
END_TEST

/* Three posts on each working day for ten weeks, none at weekends. NOW is a Saturday, 12:00. */
static size_t office(int64_t *dates)
{
	static const int64_t AT[] = {9 * H, 11 * H + 20 * MIN, 15 * H + 40 * MIN};
	size_t n = 0;

	for (int64_t day = NOW / D - 70; day <= NOW / D; day++) {
		/* 1970 started on a Thursday: day 4 was a Monday */
		for (size_t k = 0; k < FW_N(AT) && (day + 3) % 7 < 5; k++)
			dates[n++] = day * D + AT[k] + (day * 7 % 20) * MIN;
	}
	return n;
}

START_TEST(hours_of_the_week)
{
	int64_t dates[240], monday = NOW - 12 * H + 2 * D;
	char text[FW_RHYTHM_MAX];
	size_t n = office(dates);
	struct fw_rhythm_guess g;
	double weekend, working, night;

	(void)fw_rhythm_learn(FW_STR_NONE, dates, n, &NO_HINTS, NOW, text);
	ck_assert_ptr_nonnull(strstr(text, " w="));
	weekend = expected(text, NOW, monday);
	working = expected(text, monday, monday + D);
	night = expected(text, monday, monday + 6 * H);
	ck_assert_msg(weekend < 0.4 && working > 1 && night < 0.2, "%g, %g, %g: %s", weekend, working, night, text);
	g = guess_within(text, NOW, 3 * D);
	ck_assert_msg(g.quiet, "%s", text);
	g = guess_within(text, monday + 9 * H, D);
	ck_assert_msg(!g.quiet && g.interval_ms < 90 * MIN, "%lld min: %s", (long long)g.interval_ms / MIN, text);
	/* the parts sum up to the whole, nearly: in the later one the silence is longer */
	ck_assert(fabs(weekend + working - expected(text, NOW, monday + D)) < 0.3 * working);
	/* a day without a time is no evidence for hours */
	for (size_t i = 0; i < n; i++)
		dates[i] -= dates[i] % D;
	(void)fw_rhythm_learn(FW_STR_NONE, dates, n, &NO_HINTS, NOW, text);
	ck_assert_ptr_null(strstr(text, " w="));
	ck_assert(!guess_within(text, NOW, 3 * D).quiet);
}
END_TEST

/* With few data the week is nearly even: three entries decide nothing. */
START_TEST(few_data_decide_little)
{
	int64_t dates[] = {NOW - H, NOW - 25 * H, NOW - 50 * H};
	struct fw_rhythm_model m;
	char text[FW_RHYTHM_MAX];

	(void)fw_rhythm_learn(FW_STR_NONE, dates, FW_N(dates), &NO_HINTS, NOW, text);
	m = model_of(text);
	for (size_t i = 0; i < FW_RHYTHM_HOURS; i++)
		ck_assert_msg(m.week[i + 1] - m.week[i] > 0.3 && m.week[i + 1] - m.week[i] < 3.5, "hour %zu: %g", i,
			m.week[i + 1] - m.week[i]);
	ck_assert(fabs(m.week[FW_RHYTHM_HOURS] - FW_RHYTHM_HOURS) < 1e-6);
}
END_TEST

/* The former form, without hours, is read, and what it had learned counts on. */
START_TEST(the_former_form)
{
	static const char V1[] = "v1 ttl=90 at=29921010 g=240,240,240,240,240"; /* 30 min before NOW */
	int64_t date = 29921010 * MIN + 4 * H;
	struct fw_rhythm_guess g = guess(V1, NOW);
	char text[FW_RHYTHM_MAX];

	ck_assert_msg(g.gap_ms == 4 * H && g.interval_ms > 10 * MIN && g.interval_ms <= 4 * H, "%lld",
		(long long)g.interval_ms);
	(void)fw_rhythm_learn(fw_str(V1), &date, 1, &NO_HINTS, date + MIN, text);
	ck_assert_msg(
		!strncmp(text, "v2 from=29919810 at=29921250 w=", 31) && strstr(text, " g=240,240,240,240,240,240"),
		"%s", text);
	(void)fw_rhythm_learn(fw_str(V1), NULL, 0, NULL, NOW, text); /* no dates: unchanged */
	ck_assert_str_eq(text, "v2 ttl=90 at=29921010 g=240,240,240,240,240");
}
END_TEST

/*
 * The clock is wrong by ten years, either way, and then right again: the dates of the document are
 * learned as usual.
 */
START_TEST(clocks_that_jump)
{
	static const int64_t OFF[] = {3650 * D, 4000 * D, -3650 * D, -20000 * D, 2 * H, -2 * H};
	char right[FW_RHYTHM_MAX], text[FW_RHYTHM_MAX], again[FW_RHYTHM_MAX];
	int64_t dates[40];
	size_t n = steady(dates, 40, H, 5 * H);

	(void)fw_rhythm_learn(FW_STR_NONE, dates, n, &NO_HINTS, NOW, right);
	for (size_t i = 0; i < FW_N(OFF); i++) {
		struct fw_rhythm_guess g;

		(void)fw_rhythm_learn(fw_str(right), dates, n, &NO_HINTS, NOW + OFF[i], text);
		g = guess(text, NOW + OFF[i]);
		ck_assert(g.interval_ms >= 0 && g.silence_ms >= 0 && g.interval_ms <= 400 * D);
		(void)fw_rhythm_learn(fw_str(text), dates, n, &NO_HINTS, NOW, again);
		g = guess(again, NOW);
		ck_assert_msg(g.gap_ms > 4 * H && g.gap_ms < 7 * H, "%lld h off: %lld min\n%s\n%s",
			(long long)(OFF[i] / H), (long long)g.gap_ms / MIN, text, again);
	}
	ck_assert(expected(right, INT64_MIN, NOW) == 0 && expected(right, NOW, NOW - D) == 0);
	ck_assert(expected(right, 0, 1) >= 0 && guess_within(right, -D, D).interval_ms >= 0);
}
END_TEST

START_TEST(useless_dates)
{
	int64_t dates[] = {INT64_MIN, INT64_MAX, 0, -1, NOW + 400 * D, NOW - 40000 * D, 1};
	char text[FW_RHYTHM_MAX];

	ck_assert_uint_eq(fw_rhythm_learn(FW_STR_NONE, dates, FW_N(dates), &NO_HINTS, NOW, text), 0);
	ck_assert_str_eq(text, "");
	for (size_t i = 0; i < FW_N(dates); i++) /* generated at our request */
		dates[i] = NOW - 1000;
	ck_assert_uint_eq(fw_rhythm_learn(FW_STR_NONE, dates, FW_N(dates), &NO_HINTS, NOW, text), 0);
	ck_assert_uint_eq(fw_rhythm_learn(FW_STR_NONE, NULL, 0, NULL, NOW, text), 0);
	dates[0] = NOW + 30 * MIN; /* our clock is half an hour behind the server's */
	ck_assert_uint_gt(fw_rhythm_learn(FW_STR_NONE, dates, 1, &NO_HINTS, NOW, text), 0);
	ck_assert_int_eq(guess(text, NOW).silence_ms, 0);
}
END_TEST

/*
 * A server dates its only entry with the time of our visit. If it counted, we would poll ever
 * sooner.
 */
START_TEST(dates_made_at_our_request)
{
	char text[FW_RHYTHM_MAX] = "";
	int64_t now = NOW, date;

	for (int i = 0; i < 50; i++, now += 15 * MIN) {
		date = now - 700;
		ck_assert_uint_eq(fw_rhythm_learn(fw_str(text), &date, 1, &NO_HINTS, now, text), 0);
	}
	now = NOW; /* a true date is learned when it appears again */
	date = now - 700;
	(void)fw_rhythm_learn(FW_STR_NONE, &date, 1, &NO_HINTS, now, text);
	ck_assert_str_eq(text, "");
	ck_assert_uint_gt(fw_rhythm_learn(FW_STR_NONE, &date, 1, &NO_HINTS, now + H, text), 0);
}
END_TEST

START_TEST(hints_are_kept) /* FMT-06: a 304 still knows them */
{
	struct fw_due_facts hints = {
		.ttl_minutes = 60, .update_period_minutes = 1440, .skip_hours = 0xff0000ff, .skip_days = 0xc1};
	char text[FW_RHYTHM_MAX], again[FW_RHYTHM_MAX];
	int64_t date = NOW - H;
	struct fw_rhythm r;

	(void)fw_rhythm_learn(FW_STR_NONE, &date, 1, &hints, NOW, text);
	fw_rhythm_read(fw_str(text), &r);
	ck_assert(r.ttl_minutes == 60 && r.update_period_minutes == 1440 && r.skip_hours == 0xff &&
		r.skip_days == 0x41 && r.n == 1);
	(void)fw_rhythm_learn(fw_str(text), NULL, 0, NULL, NOW, again); /* nothing new: the same text */
	ck_assert_str_eq(text, again);
	(void)fw_rhythm_learn(fw_str(text), &date, 1, &NO_HINTS, NOW, again); /* a new document removes them */
	ck_assert_ptr_null(strstr(again, "ttl"));
	hints.ttl_minutes = INT64_MAX;
	hints.update_period_minutes = INT64_MIN + 1;
	(void)fw_rhythm_learn(FW_STR_NONE, NULL, 0, &hints, NOW, text);
	fw_rhythm_read(fw_str(text), &r);
	ck_assert(r.ttl_minutes == INT32_MAX && r.update_period_minutes == INT32_MIN);
}
END_TEST

/* The trust in the server's 304s is stored with the rhythm; forms without it are read as before. */
START_TEST(trust_is_stored_with_the_rhythm)
{
	static const char OLD[] = "v2 ttl=90 from=29919810 at=29921010 w=.3AI g=240,240";
	static const struct {
		const char *word;
		int trust;
		int64_t checked, denied;
	} T[] = {
		{"", 0, 0, 0},
		{" tr=3,29920000,0", 3, 29920000, 0},
		{" tr=-7,29920000,29910000", -7, 29920000, 29910000},
		{" tr=5,29920000,0", 0, 0, 0},
		{" tr=1", 0, 0, 0},
		{" tr=1,2", 0, 0, 0},
		{" tr=1,-2,0", 0, 0, 0},
		{" tr=", 0, 0, 0},
		{" tr=1,2,3,4", 0, 0, 0},
	};
	int64_t date = 29921010 * MIN + 4 * H;
	struct fw_rhythm r, plain;

	fw_rhythm_read(fw_str(OLD), &plain);
	for (size_t i = 0; i < FW_N(T); i++) {
		char text[FW_RHYTHM_MAX], again[FW_RHYTHM_MAX];

		(void)fw_snprintf(text, sizeof(text), "v2%s%s", T[i].word, OLD + 2);
		fw_rhythm_read(fw_str(text), &r);
		ck_assert_msg(
			r.trust == T[i].trust && r.checked == T[i].checked && r.denied == T[i].denied, "%s", text);
		ck_assert(r.n == 3 && r.ttl_minutes == 90 && r.from == plain.from &&
			!memcmp(r.hour, plain.hour, sizeof(r.hour)));
		(void)fw_rhythm_learn(fw_str(text), &date, 1, &NO_HINTS, date + MIN, again);
		fw_rhythm_read(fw_str(again), &r);
		ck_assert_msg(r.n == 4 && r.trust == T[i].trust && r.checked == T[i].checked && r.denied == T[i].denied,
			"%s", again);
		ck_assert_ptr_eq(strstr(again, "tr=") == NULL ? NULL : again, T[i].checked ? again : NULL);
	}
}
END_TEST

/* How long a 304 is trusted, by the checks so far (level) and by the feed's gaps. */
START_TEST(trust_in_304_by_level_and_gap)
{
	static const struct {
		int trust;
		int64_t gap, silent, checked_ago, want;
	} T[] = {
		{0, 7 * D, 0, 0, D}, /* nothing known: a day, whatever its gap */
		{1, 7 * D, 0, 0, 7 * D}, {2, 7 * D, 0, 0, 14 * D}, {3, 7 * D, 0, 0, 28 * D}, {4, 7 * D, 0, 0, 30 * D},
		{1, H, 0, 0, D}, {4, H, 0, 0, D}, /* an hourly feed: a day in any case */
		{1, H, 10 * D, 0, 5 * D},         /* ... which had been silent for long when its document came */
		{-1, 7 * D, 0, 0, D}, {-7, 90 * D, 0, 0, D},
		{0, 7 * D, 0, 6 * H, 42 * H},               /* a check that failed: not before a day has passed since */
		{2, 7 * D, 0, -D, 14 * D},                  /* checked while the clock was ahead */
		{1, 0, 20 * D, 0, 10 * D}, {1, 0, 0, 0, D}, /* without dates: since something new was found */
	};

	for (size_t i = 0; i < FW_N(T); i++) {
		int64_t whole = NOW - 2 * D, newest = whole - T[i].silent, got;
		struct fw_rhythm r = {.trust = T[i].trust};

		for (r.n = 0; T[i].gap && r.n < 3; r.n++)
			r.event[r.n] = (newest - (int64_t)r.n * T[i].gap) / MIN;
		if (T[i].checked_ago)
			r.checked = (T[i].checked_ago < 0 ? NOW - T[i].checked_ago : whole + 18 * H) / MIN;
		got = fw_trust_until(&r, whole, newest, NOW) - whole;
		ck_assert_msg(got >= T[i].want - MIN && got <= T[i].want + MIN, "%zu: %lld h", i, (long long)(got / H));
	}
	/* it came while the clock was ahead */
	ck_assert_int_lt(fw_trust_until(&(struct fw_rhythm){.trust = 4}, NOW + 365 * D, 0, NOW), NOW);
}
END_TEST

START_TEST(trust_grows_and_falls)
{
	char text[FW_RHYTHM_MAX] = "", was[FW_RHYTHM_MAX];
	struct fw_rhythm r;

	for (int i = 1; i <= 12; i++) {
		enum fw_trust_found found = i == 7 ? FW_TRUST_DENIED : i == 9 ? FW_TRUST_UNCLEAR : FW_TRUST_UNCHANGED;
		static const int WANT[] = {1, 2, 3, 4, 4, 4, -7, -6, -6, -5, -4, -3};

		memcpy(was, text, sizeof(was));
		ck_assert_uint_eq(fw_trust_record(fw_str(was), found, NOW + i * D, text), strlen(text));
		fw_rhythm_read(fw_str(text), &r);
		ck_assert_int_eq(r.trust, WANT[i - 1]);
		ck_assert_int_eq(r.checked, (NOW + i * D) / MIN);
		ck_assert_int_eq(r.denied, i < 7 ? 0 : (NOW + 7 * D) / MIN);
	}
}
END_TEST

/* Never longer than FW_RHYTHM_MAX; learning again changes nothing; any bytes can be read. */
START_TEST(any_text)
{
	static const char soup[] = "v2 ttlsyhdatrgwfrom=,0123456789-_.  ABcdef";
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
			memcpy(old, n % 2 ? "v1 at=" : "v2 w=A", 6);
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
	Suite *s = suite_create("unit sched rhythm");
	TCase *t = tcase_create("rhythm");

	tcase_add_test(t, steady_feeds);
	tcase_add_test(t, visits_do_not_matter);
	tcase_add_test(t, bursts_do_not_fool_it);
	tcase_add_test(t, holidays_and_silence);
	tcase_add_test(t, the_newer_weigh_more);
	tcase_add_test(t, hours_of_the_week);
	tcase_add_test(t, few_data_decide_little);
	tcase_add_test(t, the_former_form);
	tcase_add_test(t, clocks_that_jump);
	tcase_add_test(t, useless_dates);
	tcase_add_test(t, dates_made_at_our_request);
	tcase_add_test(t, hints_are_kept);
	tcase_add_test(t, trust_is_stored_with_the_rhythm);
	tcase_add_test(t, trust_in_304_by_level_and_gap);
	tcase_add_test(t, trust_grows_and_falls);
	tcase_add_test(t, any_text);
	suite_add_tcase(s, t);
	return run_suite(s);
}
