/* SPDX-License-Identifier: ISC */
/*
 * Text for people: cut to columns, without control characters (LOG-01); numbers, times, the
 * progress line.
 */
#include <check.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "api/feed_remedy.h"
#include "cli/progress.h"
#include "../../suite.h"

static struct cli c;

static void setup(void)
{
	setenv("TZ", "UTC", 1);
	c = (struct cli){.now_ms = fw_time_ms(2026, 11, 21, 12, 0, 0, 0), .term = {.utf8 = true, .width = 80}};
}

static const struct {
	const char *in;
	size_t columns;
	const char *out;
	size_t width;
} FIT[] = {
	{"plain", 0, "plain", 5},
	{"plain", 5, "plain", 5},
	{"plain", 4, "pla\xe2\x80\xa6", 4},
	{"  a \n\t b  ", 0, "a b", 3},
	{"", 0, "", 0},
	{"a\x1b[31mb", 0, "a\\x1b[31mb", 10},
	{"\xc2\x9b", 0, "\\u{009b}", 8},
	{"\xff", 0, "\\xff", 4},
	{"\xe2\x80\xae"
	 "x",
		0, "\\u{202e}x", 9},
	{"\xe4\xb8\xad\xe6\x96\x87\xe5\xad\x97", 6, "\xe4\xb8\xad\xe6\x96\x87\xe5\xad\x97", 6},
	/* a wide character is never cut in two: one column stays free */
	{"\xe4\xb8\xad\xe6\x96\x87\xe5\xad\x97", 4, "\xe4\xb8\xad\xe2\x80\xa6", 3},
	{"e\xcc\x81t\xc3\xa9", 3, "e\xcc\x81t\xc3\xa9", 3},
	{"a\x1b[2Jb", 5, "a\\x1\xe2\x80\xa6", 5},
};
START_TEST(fit)
{
	struct fw_buf b = FW_BUF_INIT(0);

	ck_assert_uint_eq(cli_fit(&b, &c.term, fw_str(FIT[_i].in), FIT[_i].columns), FIT[_i].width);
	ck_assert_str_eq(b.p ? b.p : "", FIT[_i].out);
	ck_assert_uint_eq(fw_utf8_width(b.p ? b.p : "", b.len), FIT[_i].width);
	fw_buf_finish(&b);
}
END_TEST

static const struct {
	const char *in;
	size_t columns, hang;
	const char *out;
} WRAP[] = {
	{"", 10, 2, ""},
	{"one two", 0, 2, "one two"},
	{"one two", 7, 2, "one two"},
	{"one two", 6, 2, "one\n  two"},
	{"a  b", 80, 2, "a  b"},
	{"  a b c", 5, 4, "  a b\n  c"},
	{"  aaa bbb ccc", 10, 4, "  aaa bbb\n    ccc"},
	{"one two   ", 7, 2, "one two"},
	/*
	 * a word wider than a line stays whole, on a line of its own; but text after a label stays
	 * with it
	 */
	{"see http://long.example/ now", 12, 2, "see\n  http://long.example/\n  now"},
	{"url  http://long.example/ x", 12, 5, "url  http://long.example/\n     x"},
	/* wide characters, and colours, which have no width */
	{"\xe4\xb8\xad\xe6\x96\x87 \xe5\xad\x97", 6, 0, "\xe4\xb8\xad\xe6\x96\x87\n\xe5\xad\x97"},
	{"\033[31mone\033[0m two x", 7, 1, "\033[31mone\033[0m two\n x"},
	/* a choice of words may continue */
	{"one a|bb|ccc [X]", 9, 2, "one a|bb|\n  ccc [X]"},
	{"one a|bb|ccc [X]", 80, 2, "one a|bb|ccc [X]"},
	/* an indentation that leaves no room is reduced */
	{"aa bb cc", 5, 40, "aa bb\n  cc"},
};
START_TEST(wrap)
{
	struct fw_buf b = FW_BUF_INIT(0);

	cli_wrap(&b, fw_str(WRAP[_i].in), WRAP[_i].columns, WRAP[_i].hang);
	ck_assert_str_eq(b.p ? b.p : "", WRAP[_i].out);
	fw_buf_finish(&b);
}
END_TEST

/* At each width the lines fit, and joined again they are the text. */
START_TEST(wrap_every_width)
{
	static const char TEXT[] =
		"feedwheel: its visits killed a worker, so it is quarantined: 'feedwheel resume' tries again";
	struct fw_buf b = FW_BUF_INIT(0);

	for (size_t columns = 16; columns < 120; columns++) {
		struct fw_str rest;
		struct fw_buf joined = FW_BUF_INIT(0);

		fw_buf_reset(&b);
		cli_wrap(&b, fw_str(TEXT), columns, 2);
		for (rest = fw_buf_str(&b); rest.p;) {
			struct fw_str line = fw_str_split(rest, '\n', &rest);

			ck_assert_uint_le(line.len, columns);
			if (joined.len)
				fw_buf_addc(&joined, ' ');
			fw_buf_addstr(&joined, fw_str_trim(line));
		}
		ck_assert_str_eq(joined.p, TEXT);
		fw_buf_finish(&joined);
	}
	fw_buf_finish(&b);
}
END_TEST

START_TEST(fit_ascii)
{
	struct fw_buf b = FW_BUF_INIT(0);

	c.term.utf8 = false;
	ck_assert_uint_eq(cli_fit(&b, &c.term, FW_STR("something long"), 7), 7);
	ck_assert_str_eq(b.p, "some...");
	fw_buf_finish(&b);
}
END_TEST

START_TEST(ascii_only)
{
	struct fw_buf b = FW_BUF_INIT(0);

	c.term.utf8 = false;
	c.term.out_tty = true;
	/*
	 * All of it is replaced, not only text with bytes that such a terminal interprets: U+00FC
	 * has none, U+201B has one (e2 80 9b: 9b starts a sequence). A combining accent goes with
	 * its letter.
	 */
	ck_assert_uint_eq(
		cli_fit(&b, &c.term, FW_STR("\xc3\xbc \xe2\x80\x9b[2J \xd8\xb1\xd9\x85 e\xcc\x81 \xe4\xb8\xad"), 0),
		13);
	ck_assert_str_eq(b.p, "? ?[2J ?? e ?");
	fw_buf_finish(&b);
	fw_buf_finish(&c.out);
	cli_out_json(&c, "\"\xc3\xbc\xf0\x9f\x98\x80\"", 8);
	ck_assert_str_eq(c.out.p, "\"\\u00fc\\ud83d\\ude00\"");
	fw_buf_finish(&c.out);
}
END_TEST

START_TEST(json_for_terminals)
{
	static const char IN[] = "{\"a\":\"\xc2\x9b"
				 "31m \xe2\x80\xae x \xc3\xa9 \x7f\"}";

	cli_out_json(&c, IN, sizeof(IN) - 1);
	ck_assert_str_eq(c.out.p, "{\"a\":\"\\u009b31m \\u202e x \xc3\xa9 \\u007f\"}");
	fw_buf_finish(&c.out);
}
END_TEST

/*
 * A command that is printed for pasting into a shell has the URL as one word, whatever a page put
 * into it.
 */
START_TEST(remedy_is_one_word)
{
	struct fw_feed f = {.id = 7,
		.fail_n = 1,
		.last_kind = FW_VISIT_FORMAT,
		.error = FW_STR(
			"not a feed: an HTML page; it names feeds: subscribe to http://x/?a='$(id)';b, http://x/2")};

	fw_arena_init(&c.arena, 0);
	ck_assert_str_eq(
		cli_feed_remedy(&c, &f), "feedwheel add 'http://x/?a='\\''$(id)'\\'';b' && feedwheel remove 7");
	f.error = FW_STR("not a feed: an HTML page; it names feeds: subscribe to http://x/1");
	ck_assert_str_eq(cli_feed_remedy(&c, &f), "feedwheel add 'http://x/1' && feedwheel remove 7");
	f.error = FW_STR("not a feed: an HTML page");
	ck_assert_str_eq(cli_feed_remedy(&c, &f), fw_feed_remedy(&f));
	f.error = FW_STR("not a feed: subscribe to our letter"); /* not the engine's text */
	ck_assert_str_eq(cli_feed_remedy(&c, &f), fw_feed_remedy(&f));
	fw_arena_finish(&c.arena);
}
END_TEST

START_TEST(remedy_for_each) /* failure; and none for a feed that works */
{
	static const struct {
		enum fw_visit_kind kind;
		int http_status;
		const char *word;
	} CASE[] = {{FW_VISIT_HTTP, 401, "a password"}, {FW_VISIT_HTTP, 403, "refuses"},
		{FW_VISIT_HTTP, 404, "no feed"}, {FW_VISIT_GONE, 410, "no feed"}, {FW_VISIT_HTTP, 429, "less often"},
		{FW_VISIT_HTTP, 503, "trouble"}, {FW_VISIT_HTTP, 418, "something other"}, {FW_VISIT_DNS, 0, "name"},
		{FW_VISIT_CONNECT, 0, "answer"}, {FW_VISIT_TIMEOUT, 0, "answer"}, {FW_VISIT_PROTOCOL, 0, "answer"},
		{FW_VISIT_TLS, 0, "http:// instead"}, {FW_VISIT_FORMAT, 200, "not a feed"},
		{FW_VISIT_LIMIT, 0, "limits"}, {FW_VISIT_BLOCKED, 0, "allow_networks"},
		{FW_VISIT_REDIRECT, 0, "circles"}, {FW_VISIT_CRASH, 0, "resume"}, {FW_VISIT_OK, 0, "tried again"}};
	struct fw_feed f = {.status = FW_FEED_ACTIVE};

	ck_assert_str_eq(fw_feed_remedy(&f), "");
	for (size_t i = 0; i < FW_N(CASE); i++) {
		f = (struct fw_feed){.fail_n = 1, .last_kind = CASE[i].kind, .http_status = CASE[i].http_status};
		ck_assert_msg(strstr(fw_feed_remedy(&f), CASE[i].word), "%d: %s", CASE[i].kind, fw_feed_remedy(&f));
	}
	f = (struct fw_feed){.fail_n = 1, .last_kind = FW_VISIT_HTTP, .http_status = 404, .last_ok_ms = 1};
	ck_assert(strstr(fw_feed_remedy(&f), "any more"));
	f = (struct fw_feed){
		.fail_n = 1, .last_kind = FW_VISIT_TLS, .error = FW_STR("invalid server certificate: old")};
	ck_assert(strstr(fw_feed_remedy(&f), "Only its owner"));
	f = (struct fw_feed){.status = FW_FEED_GONE, .last_kind = FW_VISIT_GONE, .http_status = 410};
	ck_assert(strstr(fw_feed_remedy(&f), "has ended"));
	f = (struct fw_feed){.status = FW_FEED_QUARANTINED, .last_kind = FW_VISIT_CRASH};
	ck_assert(strstr(fw_feed_remedy(&f), "resume"));
}
END_TEST

START_TEST(numbers_of_feeds)
{
	static const struct {
		const char *word;
		int64_t id;
	} N[] = {
		{"12", 12},
		{"#12", 12},
		{"0", 0},
		{"007", 7},
		{"99999999999999999999", INT64_MAX},
		{"", -1},
		{"#", -1},
		{"-1", -1},
		{"##1", -1},
		{"1 ", -1},
		{"/404", -1},
		{"404.", -1},
		{"1e3", -1},
		{"1#", -1},
	};

	for (size_t i = 0; i < FW_N(N); i++) {
		int64_t id = -1;

		ck_assert_msg(cli_is_number(N[i].word, &id) == (N[i].id >= 0), "'%s'", N[i].word);
		ck_assert_int_eq(id, N[i].id);
	}
}
END_TEST

START_TEST(numbers)
{
	static const struct {
		int64_t n;
		const char *text;
	} N[] = {
		{0, "0"},
		{999, "999"},
		{1000, "1,000"},
		{-1000, "-1,000"},
		{-100, "-100"},
		{1234567, "1,234,567"},
		{INT64_MIN, "-9,223,372,036,854,775,808"},
	};
	static const struct {
		uint64_t n;
		const char *text;
	} B[] = {
		{0, "0 bytes"},
		{1023, "1023 bytes"},
		{1024, "1.0 KiB"},
		{15 * 1024, "15 KiB"},
		{(uint64_t)3 << 30, "3.0 GiB"},
		{UINT64_MAX, "16777216 TiB"},
	};
	char text[FW_RFC3339_MAX];

	for (size_t i = 0; i < FW_N(N); i++)
		ck_assert_str_eq(cli_number(text, N[i].n), N[i].text);
	for (size_t i = 0; i < FW_N(B); i++)
		ck_assert_str_eq(cli_bytes(text, B[i].n), B[i].text);
}
END_TEST

START_TEST(times)
{
	char text[FW_RFC3339_MAX];

	ck_assert_str_eq(cli_ago(&c, text, c.now_ms - 3 * FW_MINUTE_MS), "3 min ago");
	ck_assert_str_eq(cli_ago(&c, text, c.now_ms + 2 * FW_HOUR_MS), "in 2 h");
	ck_assert_str_eq(cli_ago(&c, text, c.now_ms), "now");
	ck_assert_str_eq(cli_ago(&c, text, 0), "never");
	ck_assert_str_eq(cli_ago(&c, text, FW_NO_TIME), "never");
	ck_assert_str_eq(cli_ago(&c, text, c.now_ms - 90 * FW_DAY_MS), "2026-08-23 12:00");
	ck_assert_str_eq(cli_stamp(text, FW_NO_TIME), "-");
}
END_TEST

static const struct {
	const char *text;
	int64_t ms;
} SINCE[] = {
	/* ms before now or, when positive, since 1970 */
	{"2h", -2 * FW_HOUR_MS},
	{"90 s", -90 * FW_SECOND_MS},
	{"3d", -3 * FW_DAY_MS},
	{"2026-11-01", 1793491200000},
	{"2026-11-01T12:30:00Z", 1793536200000},
	{"2026-11-01 12:30", 1793536200000},
	{"2026-11-01T12:30:15+01:00", 1793532615000},
	{"2026-11-01T12:30:15.250-0500", 1793554215000},
	{"2024-02-29", 1709164800000},
	{"today", 1795219200000},
	{"yesterday", 1795132800000},
};
START_TEST(since)
{
	int64_t got = 0, want = SINCE[_i].ms < 0 ? c.now_ms + SINCE[_i].ms : SINCE[_i].ms;

	ck_assert(fw_when_parse(fw_str(SINCE[_i].text), c.now_ms, &got));
	ck_assert_int_eq(got, want);
}
END_TEST

/* From midnight to midnight, also where a day has 23 hours. */
START_TEST(since_midnight)
{
	/* 2026-03-30 00:00 in Berlin, where Sunday was short; 22:00 UTC of that Sunday */
	const int64_t monday_ms = 1774821600000;
	int64_t got = 0;

	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	ck_assert(fw_when_parse(FW_STR("today"), monday_ms + FW_HOUR_MS, &got));
	ck_assert_int_eq(got, monday_ms);
	ck_assert(fw_when_parse(FW_STR("yesterday"), monday_ms + FW_HOUR_MS, &got));
	ck_assert_int_eq(got, monday_ms - 23 * FW_HOUR_MS);
	ck_assert(fw_when_parse(FW_STR("yesterday"), 1772323200000 /* 2026-03-01 */, &got));
	ck_assert_int_eq(got, 1772233200000); /* in a month without a 29th */
}
END_TEST

START_TEST(since_refuses)
{
	static const char *const BAD[] = {"", "x", "2026", "90", "2026-13-01", "2026-02-30", "2026-11-01T",
		"2026-11-01T25:00", "2026-11-01T12:60", "2026-11-01T12:30:00+25:00", "2026-11-01T12:30 pm",
		"2026/11/01", "-2h", "2026-11-0", "2026-11-01T12:30:", "tomorrow", "today 12:00", "yesterda"};
	int64_t got;

	for (size_t i = 0; i < FW_N(BAD); i++)
		ck_assert_msg(!fw_when_parse(fw_str(BAD[i]), c.now_ms, &got), "'%s' was taken for a time", BAD[i]);
}
END_TEST

START_TEST(progress_fits_every_width)
{
	struct cli_progress p;
	struct fw_run_stats s = {.total = 1000000,
		.done = 123456,
		.new_entries = 9876543,
		.failed = 1234,
		.in_flight = 2000,
		.elapsed_ms = 60000};
	struct fw_buf line = FW_BUF_INIT(0);

	cli_progress_init(&p, &c, false);
	p.tty = true;
	for (size_t width = 20; width < 200; width++) {
		fw_buf_reset(&line);
		cli_progress_line(&p, &s, width, &line);
		ck_assert_uint_le(fw_utf8_width(line.p, line.len), width);
		ck_assert_ptr_nonnull(strstr(line.p, width < 25 ? "/s" : "123,456/1,000,000 feeds"));
	}
	ck_assert_ptr_nonnull(strstr(line.p, "2058/s"));
	ck_assert_ptr_nonnull(strstr(line.p, "9,876,543 new  1,234 failed  ETA 7 min 7 s  2,000 in flight"));
	fw_buf_finish(&line);
}
END_TEST

START_TEST(progress_rate_is_that_of_the_last_seconds)
{
	struct cli_progress p;
	struct fw_run_stats s = {.total = 0};
	struct fw_buf line = FW_BUF_INIT(0);

	cli_progress_init(&p, &c, false);
	/* a minute at 10/s, then ten seconds at 1000/s */
	for (int64_t ms = 0; ms <= 70000; ms += 250) {
		s.elapsed_ms = ms;
		s.done = (uint64_t)(ms <= 60000 ? ms / 100 : 600 + (ms - 60000));
		cli_progress_show(&p, &s);
	}
	cli_progress_line(&p, &s, 80, &line);
	ck_assert_msg(strstr(line.p, "1000/s") != NULL, "%s", line.p);
	ck_assert_ptr_null(strstr(line.p, "ETA"));
	fw_buf_finish(&line);
}
END_TEST

START_TEST(progress_when_idle)
{
	static const struct {
		int64_t ahead_ms;
		uint32_t in_flight;
		const char *want;
	} IDLE[] = {
		{12 * FW_MINUTE_MS + 1, 0, "next in 12 min"},
		{FW_DAY_MS, 0, "next in "},
		{-FW_SECOND_MS, 0, "0 in flight"},
		{12 * FW_MINUTE_MS, 3, "3 in flight"},
	};
	struct cli_progress p;
	struct fw_run_stats s = {.done = 2};
	struct fw_buf line = FW_BUF_INIT(0);

	cli_progress_init(&p, &c, false);
	for (size_t i = 0; i < FW_N(IDLE); i++) {
		fw_buf_reset(&line);
		s.in_flight = IDLE[i].in_flight;
		s.next_due_ms = fw_now_ms() + IDLE[i].ahead_ms;
		cli_progress_line(&p, &s, 80, &line);
		ck_assert_msg(strstr(line.p, IDLE[i].want) != NULL, "%s", line.p);
	}
	s.in_flight = 0;
	s.next_due_ms = FW_NO_DATE;
	fw_buf_reset(&line);
	cli_progress_line(&p, &s, 80, &line);
	ck_assert_ptr_nonnull(strstr(line.p, "nothing to fetch"));
	s.next_due_ms = 0;
	fw_buf_reset(&line);
	cli_progress_line(&p, &s, 80, &line);
	ck_assert_ptr_nonnull(strstr(line.p, "0 in flight"));
	fw_buf_finish(&line);
}
END_TEST

START_TEST(progress_without_anything)
{
	struct cli_progress p;
	struct fw_run_stats s = {.total = 5};
	struct fw_buf line = FW_BUF_INIT(0);

	cli_progress_init(&p, &c, false);
	cli_progress_line(&p, &s, 80, &line);
	ck_assert_ptr_nonnull(strstr(line.p, "0/5 feeds  0.0/s"));
	fw_buf_finish(&line);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit cli words");
	TCase *t = tcase_create("words");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_loop_test(t, fit, 0, FW_N(FIT));
	tcase_add_test(t, fit_ascii);
	tcase_add_test(t, remedy_is_one_word);
	tcase_add_test(t, remedy_for_each);
	tcase_add_test(t, ascii_only);
	tcase_add_loop_test(t, wrap, 0, FW_N(WRAP));
	tcase_add_test(t, wrap_every_width);
	tcase_add_test(t, json_for_terminals);
	tcase_add_test(t, numbers_of_feeds);
	tcase_add_test(t, numbers);
	tcase_add_test(t, times);
	tcase_add_loop_test(t, since, 0, FW_N(SINCE));
	tcase_add_test(t, since_midnight);
	tcase_add_test(t, since_refuses);
	tcase_add_test(t, progress_fits_every_width);
	tcase_add_test(t, progress_rate_is_that_of_the_last_seconds);
	tcase_add_test(t, progress_when_idle);
	tcase_add_test(t, progress_without_anything);
	suite_add_tcase(s, t);
	return run_suite(s);
}
