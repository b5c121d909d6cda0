/* SPDX-License-Identifier: ISC */
/* Strings, UTF-8, buffers, error messages and log lines. */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/str.h"
#include "base/utf8.h"
#include "../../suite.h"

START_TEST(str_cuts_and_finds)
{
	struct fw_str rest, s = FW_STR(" \t a,b,,c \r\n\f");

	ck_assert(fw_str_eq(fw_str_trim(s), FW_STR("a,b,,c")));
	ck_assert_uint_eq(fw_str_trim(FW_STR("  \n ")).len, 0);
	ck_assert_uint_eq(fw_str_trim(FW_STR_NONE).len, 0);
	s = fw_str_trim(s);
	ck_assert(fw_str_eq(fw_str_split(s, ',', &rest), FW_STR("a")) && fw_str_eq(rest, FW_STR("b,,c")));
	ck_assert(fw_str_eq(fw_str_split(rest, ',', &rest), FW_STR("b")) &&
		fw_str_eq(fw_str_split(rest, ',', &rest), FW_STR("")));
	ck_assert(fw_str_eq(fw_str_split(rest, ',', &rest), FW_STR("c")) && !rest.p);
	ck_assert(fw_str_split(FW_STR("x,"), ',', &rest).len == 1 && rest.p && rest.len == 0); /* empty, not absent */
	ck_assert(fw_str_split(FW_STR_NONE, ',', &rest).len == 0 && !rest.p);
	ck_assert(fw_str_eq(fw_str_sub(s, 2, 99), FW_STR("b,,c")) && fw_str_sub(s, 99, 2).len == 0 &&
		fw_str_sub(s, 4, 2).len == 0);
	ck_assert(fw_str_ieq(FW_STR("ABCz@"), FW_STR("abcZ@")) && !fw_str_ieq(FW_STR("["), FW_STR("{")));
	ck_assert(fw_str_ieq(FW_STR_NONE, FW_STR("")) && fw_str_eq(FW_STR_NONE, FW_STR("")));
	ck_assert(!fw_str_ieq(FW_STR("\xc3\x84"), FW_STR("\xc3\xa4"))); /* ASCII only, whatever the locale */
	ck_assert(fw_str_starts(FW_STR("abc"), FW_STR("")) && !fw_str_starts(FW_STR("a"), FW_STR("ab")) &&
		fw_str_istarts(FW_STR("ABC"), FW_STR("ab")));
	ck_assert(fw_str_ends(FW_STR("abc"), FW_STR("bc")) && fw_str_ends(FW_STR("abc"), FW_STR("")) &&
		!fw_str_ends(FW_STR("c"), FW_STR("bc")));
	ck_assert_ptr_eq(fw_str_find(s, FW_STR(",c")), s.p + 4);
	ck_assert_ptr_null(fw_str_find(s, FW_STR("x")));
	ck_assert_ptr_null(fw_str_find(FW_STR_NONE, FW_STR("x")));
	ck_assert_ptr_eq(fw_str_ifind(s, FW_STR("B,")), s.p + 2);
	ck_assert_ptr_null(fw_str_ifind(FW_STR("ab"), FW_STR("abc")));
	s = FW_STR("<<p><hTMl>zZ");
	ck_assert_ptr_eq(fw_str_ifind(s, FW_STR("<HtmL")), s.p + 4);
	ck_assert_ptr_eq(fw_str_ifind(s, FW_STR("zz")), s.p + 10);
	ck_assert_ptr_null(fw_str_ifind(s, FW_STR("<q")));
	ck_assert_ptr_eq(fw_str_ifind(s, FW_STR("")), s.p);
	ck_assert_ptr_null(fw_str_ifind(FW_STR_NONE, FW_STR("<")));
	ck_assert_int_eq(fw_hexval('f'), 15);
	ck_assert(fw_hexval('F') == 15 && fw_hexval('0') == 0 && fw_hexval('g') == -1 && fw_hexval('/') == -1 &&
		fw_hexval(0xff) == -1);
}
END_TEST

START_TEST(paths)
{
	ck_assert(fw_str_eq(fw_path_trim(FW_STR("//News/Tech/")), FW_STR("News/Tech")));
	ck_assert(!fw_path_trim(FW_STR("/")).len && !fw_path_trim(FW_STR_NONE).len);
	ck_assert(fw_path_is_within(FW_STR("News"), FW_STR("News")));
	ck_assert(fw_path_is_within(FW_STR("News/Tech"), FW_STR("News")));
	ck_assert(!fw_path_is_within(FW_STR("Newsletters"), FW_STR("News")));
	ck_assert(!fw_path_is_within(FW_STR("News"), FW_STR("News/Tech")) &&
		!fw_path_is_within(FW_STR_NONE, FW_STR("a")));
	ck_assert(fw_path_is_within(FW_STR_NONE, FW_STR("")) && !fw_path_is_within(FW_STR("News"), FW_STR("")));
}
END_TEST

START_TEST(hex)
{
	unsigned char bytes[3] = {1, 1, 1};
	char text[2 * sizeof(bytes) + 1];

	ck_assert(fw_hex_read(FW_STR("00fFa9"), bytes, 3) && bytes[0] == 0 && bytes[1] == 0xff && bytes[2] == 0xa9);
	fw_hex_write(text, bytes, 3);
	ck_assert_str_eq(text, "00ffa9");
	ck_assert(!fw_hex_read(FW_STR("00ff"), bytes, 3) && !fw_hex_read(FW_STR("00ffa900"), bytes, 3) &&
		!fw_hex_read(FW_STR("00ffag"), bytes, 3));
	ck_assert(!fw_hex_read(FW_STR_NONE, bytes, 3) && fw_hex_read(FW_STR_NONE, bytes, 0));
}
END_TEST

START_TEST(str_numbers)
{
	static const struct {
		const char *in;
		bool ok;
		double want;
	} D[] = {
		{"0", true, 0},
		{"-1.5", true, -1.5},
		{" 2.25 ", true, 2.25},
		{"1e3", true, 1000},
		{"1E-2", true, 0.01},
		{".5", true, 0.5},
		{"5.", true, 5},
		{"0.1", true, 0.1},
		{"", false, 0},
		{".", false, 0},
		{"-", false, 0},
		{"1,5", false, 0},
		{"1e", false, 0},
		{"1e301", false, 0},
		{"nan", false, 0},
		{"inf", false, 0},
		{"0x10", false, 0},
		{"1 2", false, 0},
		{"99999999999e299", false, 0},
		{"1234567890123456789012345678901234567890123456789012345678901", false, 0},
	};
	int64_t i;
	double d;

	for (size_t n = 0; n < FW_N(D); n++) {
		ck_assert_msg(fw_str_double(fw_str(D[n].in), &d) == D[n].ok, "%s", D[n].in);
		if (D[n].ok)
			ck_assert_msg(d == D[n].want, "%s: %.17g", D[n].in, d);
	}
	ck_assert(fw_str_int(FW_STR(" +7 "), &i) && i == 7 && fw_str_int(FW_STR("-0"), &i) && i == 0);
	ck_assert(!fw_str_int(FW_STR("--1"), &i) && !fw_str_int(FW_STR("1 2"), &i) && !fw_str_int(FW_STR_NONE, &i) &&
		!fw_str_int(FW_STR("+"), &i));
	ck_assert(!fw_str_int(FW_STR("-9223372036854775809"), &i));
}
END_TEST

START_TEST(str_copies)
{
	char small[6], *d;

	ck_assert(fw_str_copy(small, sizeof(small), FW_STR("12345")) && strcmp(small, "12345") == 0);
	ck_assert(!fw_str_copy(small, sizeof(small), FW_STR("123456")) && strcmp(small, "12345") == 0);
	/* not a part of the euro sign */
	ck_assert(!fw_str_copy(small, sizeof(small), FW_STR("123\xe2\x82\xac")) && strcmp(small, "123") == 0);
	ck_assert(fw_str_copy(small, sizeof(small), FW_STR_NONE) && small[0] == '\0');
	ck_assert(!fw_str_copy(small, 0, FW_STR("x")));
	ck_assert(fw_snprintf(small, sizeof(small), "%d", 12345) && !fw_snprintf(small, sizeof(small), "%d", 123456));
	d = fw_str_dup(FW_STR("a\0b"));
	ck_assert(memcmp(d, "a\0b", 4) == 0);
	free(d);
	d = fw_str_dup(FW_STR_NONE);
	ck_assert_str_eq(d, "");
	free(d);
}
END_TEST

/*
 * RFC 3629 section 4, compared with a definition without tables: every two bytes, and the limits of
 * longer sequences.
 */
START_TEST(utf8_valid_or_not)
{
	static const struct {
		const char *bytes;
		size_t valid;
	} T[] = {
		{"a\xc3\xa9z", 4},
		{"\xc0\x80", 0},
		{"\xc1\xbf", 0},
		{"\xc2\x80", 2},
		{"\xdf\xbf", 2},
		{"\xe0\x9f\xbf", 0},
		{"\xe0\xa0\x80", 3},
		{"\xed\x9f\xbf", 3},
		{"\xed\xa0\x80", 0},
		{"\xee\x80\x80", 3},
		{"\xf0\x8f\xbf\xbf", 0},
		{"\xf0\x90\x80\x80", 4},
		{"\xf4\x8f\xbf\xbf", 4},
		{"\xf4\x90\x80\x80", 0},
		{"\xf5\x80\x80\x80", 0},
		{"\x80", 0},
		{"\xff", 0},
		{"ab\xe2\x82", 2},
		{"ab\xe2", 2},
		{"\xe2\x28\xa1", 0},
		{"0123456789abcdef0123456789abcdef\xff", 32},
		{"0123456789abcde\xc3\xa9!", 18},
		{"", 0},
	};

	for (size_t i = 0; i < FW_N(T); i++)
		ck_assert_msg(fw_utf8_valid(T[i].bytes, strlen(T[i].bytes)) == T[i].valid, "row %zu", i);
	for (int a = 0; a < 256; a++) {
		for (int b = 0; b < 256; b++) {
			char s[2] = {(char)a, (char)b};
			size_t want = a >= 0x80 ? (a >= 0xc2 && a <= 0xdf && b >= 0x80 && b <= 0xbf ? 2 : 0) :
				b < 0x80        ? 2 :
						  1;

			ck_assert_msg(fw_utf8_valid(s, 2) == want, "%02x %02x", a, b);
		}
	}
	for (uint32_t cp = 0; cp <= 0x10ffff + 5; cp += cp < 0x11000 ? 1 : 17) {
		bool scalar = cp <= 0x10ffff && !(cp >= 0xd800 && cp <= 0xdfff);
		char s[4];
		size_t n = fw_utf8_put(s, cp), m;

		ck_assert_uint_eq(fw_utf8_valid(s, n), n);
		ck_assert_uint_eq(fw_utf8_get(s, n, &m), scalar ? cp : 0xfffd);
		ck_assert_uint_eq(m, n);
	}
}
END_TEST

START_TEST(utf8_cut_and_width)
{
	const char s[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"; /* 1, 2, 3 and 4 bytes */
	static const size_t want[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};

	for (size_t max = 0; max < FW_N(want); max++)
		ck_assert_uint_eq(fw_utf8_cut(s, 10, max), want[max]);
	ck_assert_uint_eq(fw_utf8_cut(s, 10, 99), 10);
	ck_assert_uint_eq(fw_utf8_width(s, 10), 1 + 1 + 1 + 2);
	ck_assert_uint_eq(fw_utf8_width("e\xcc\x81\xe4\xb8\xad", 6), 3); /* a combining accent, an ideograph */
	ck_assert_uint_eq(fw_utf8_width("\xff\x1b", 2), 1);
}
END_TEST

START_TEST(buf_grows_to_its_ceiling)
{
	struct fw_buf b = FW_BUF_INIT(10), u = FW_BUF_INIT(0);
	char *p;
	size_t n;

	ck_assert(fw_buf_str(&b).p && fw_buf_str(&b).len == 0); /* empty, not absent */
	fw_buf_adds(&b, "12345");
	fw_buf_addstr(&b, FW_STR_NONE);
	fw_buf_addstr(&b, FW_STR("67890"));
	ck_assert(b.rc == 0 && strcmp(b.p, "1234567890") == 0);
	fw_buf_addc(&b, 'x');
	ck_assert(b.rc == FW_ELIMIT && strcmp(b.p, "1234567890") == 0); /* the earlier text stays */
	fw_buf_adds(&b, "");
	ck_assert(b.rc == FW_ELIMIT && b.len == 10);
	fw_buf_reset(&b);
	ck_assert(b.rc == 0 && b.len == 0 && b.p[0] == '\0');
	fw_buf_addf(&b, "%s", "12345678901");
	ck_assert(b.rc == FW_ELIMIT && b.len == 0);
	fw_buf_finish(&b);
	ck_assert(!b.p && b.max_bytes == 10);
	for (int i = 0; i < 1000; i++)
		fw_buf_addf(&u, "%03d", i);
	ck_assert_uint_eq(u.len, 3000);
	fw_buf_addf(&u, "%0400d", 7); /* longer than the small buffer in the function */
	ck_assert(u.rc == 0 && u.len == 3400 && memcmp(u.p + 2997, "999", 3) == 0);
	ck_assert_ptr_null(fw_buf_room(&u, SIZE_MAX));
	ck_assert_int_eq(u.rc, FW_ELIMIT);
	fw_buf_reset(&u);
	fw_buf_addcp(&u, 0x20ac);
	fw_buf_addcp(&u, 0xd800);
	ck_assert_str_eq(u.p, "\xe2\x82\xac\xef\xbf\xbd");
	p = fw_buf_take(&u, &n);
	ck_assert(n == 6 && !u.p && !u.len);
	free(p);
	ck_assert_ptr_null(fw_buf_take(&u, NULL));
}
END_TEST

START_TEST(errors_are_harmless)
{
	struct fw_err err;
	char big[600];

	ck_assert_int_eq(fw_err_set(&err, FW_EIO,
				 "a\nb\x1b[31m \x7f \xc2\x9b"
				 "31m \xe2\x80\xae"),
		FW_EIO);
	ck_assert_str_eq(err.text, "a?b?[31m ? ??31m ???");
	ck_assert_int_eq(fw_err_set(NULL, FW_EINVAL, "nobody listens"), FW_EINVAL);
	memset(big, 'x', sizeof(big));
	for (size_t i = 1; i + 3 < sizeof(big); i += 3)
		memcpy(big + i, "\xe2\x82\xac", 3);
	big[sizeof(big) - 1] = '\0';
	(void)fw_err_set(&err, FW_EIO, "%s", big);
	ck_assert(strlen(err.text) == sizeof(err.text) - 1 &&
		fw_utf8_valid(err.text, strlen(err.text)) == strlen(err.text));
	for (int rc = 0; rc >= -14; rc--) {
		ck_assert_str_ne(fw_err_name(rc), "unknown");
		for (int other = 0; other > rc; other--)
			ck_assert_str_ne(fw_err_name(rc), fw_err_name(other));
	}
	ck_assert_str_eq(fw_err_name(1), "unknown");
	ck_assert_str_eq(fw_err_name(-16), "unknown");
}
END_TEST

START_TEST(log_escapes) /* LOG-01 */
{
	static const struct {
		const char *in, *want;
	} T[] = {
		{"plain \xc3\xa9 \xe2\x82\xac", "plain \xc3\xa9 \xe2\x82\xac"},
		{"a\nb", "a\\nb"},
		{"a\rb\tc\x1b[2J\x07", "a\\x0db\\x09c\\x1b[2J\\x07"},
		{"\x7f", "\\x7f"},
		{"\xc2\x85\xc2\x9b", "\\u{0085}\\u{009b}"},
		{"\xe2\x80\xa8\xe2\x80\xa9", "\\u{2028}\\u{2029}"},
		{"\xe2\x80\xae"
		 "evil\xe2\x81\xa6",
			"\\u{202e}evil\\u{2066}"},
		{"\xef\xbb\xbf", "\\u{feff}"},
		{"\xff\xc3", "\\xff\\xc3"},
		{"\xef\xbf\xbd", "\xef\xbf\xbd"},
		{"", ""},
	};

	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_buf b = FW_BUF_INIT(0);

		fw_log_escape(&b, fw_str(T[i].in));
		ck_assert_msg(fw_str_eq(fw_buf_str(&b), fw_str(T[i].want)), "row %zu: %s", i, b.p);
		fw_buf_finish(&b);
	}
}
END_TEST

/* What one call of fw_log() writes to stderr; without a text, of fw_log_report_lost(). */
static size_t logged(char *line, size_t cap, const char *text)
{
	int fd[2], saved = dup(STDERR_FILENO);
	ssize_t n;

	ck_assert(pipe(fd) == 0 && saved >= 0 && dup2(fd[1], STDERR_FILENO) >= 0);
	if (text)
		fw_log(FW_LOG_WARN, "%s", text);
	else
		fw_log_report_lost();
	ck_assert(dup2(saved, STDERR_FILENO) >= 0);
	close(fd[1]);
	n = read(fd[0], line, cap - 1);
	close(fd[0]);
	close(saved);
	ck_assert_int_ge(n, 0);
	line[n] = '\0';
	return (size_t)n;
}

START_TEST(log_lines)
{
	static char big[20000], line[30000];
	size_t n;

	fw_log_setup(FW_LOG_INFO, false, "worker 2");
	n = logged(line, sizeof(line), "two\nlines");
	ck_assert_msg(n > 30 && strstr(line, " warn worker 2: two\\nlines\n") && strchr(line, '\n') == line + n - 1,
		"%s", line);
	fw_log_setup(FW_LOG_INFO, true, "a \"quoted\" name");
	n = logged(line, sizeof(line), "say \"x\"\x1b");
	ck_assert_msg(
		strstr(line, "\"process\":\"a \\\"quoted\\\" name\",\"text\":\"say \\\"x\\\"\\u001b\"}\n"), "%s", line);
	fw_log_setup(FW_LOG_ERROR, false, "x");
	ck_assert_uint_eq(logged(line, sizeof(line), "not loud enough"), 0);
	fw_log_setup(FW_LOG_INFO, false, "x");
	memset(big, 'y', sizeof(big) - 1); /* too long: cut, not dropped */
	n = logged(line, sizeof(line), big);
	ck_assert(n > 8000 && n < 9000 && line[n - 1] == '\n');
	ck_assert_uint_eq(fw_log_lost(), 0);
}
END_TEST

/* LOG-03: dropped messages are counted, and reported once the log is read again. */
START_TEST(log_owns_up)
{
	int saved = dup(STDERR_FILENO), full = open("/dev/full", O_WRONLY);
	char line[300];

	fw_log_setup(FW_LOG_INFO, false, "x");
	ck_assert(saved >= 0 && full >= 0 && dup2(full, STDERR_FILENO) >= 0);
	fw_log(FW_LOG_WARN, "one");
	fw_log(FW_LOG_WARN, "two");
	fw_log_report_lost(); /* not read yet: this message is dropped too */
	ck_assert(dup2(saved, STDERR_FILENO) >= 0);
	close(saved);
	close(full);
	ck_assert_uint_eq(fw_log_lost(), 3);
	(void)logged(line, sizeof(line), NULL);
	ck_assert_msg(strstr(line, " error x: 3 log lines could not be written\n"), "%s", line);
	(void)logged(line, sizeof(line), NULL);
	ck_assert_str_eq(line, "");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit base text");
	TCase *t = tcase_create("text");

	tcase_add_test(t, str_cuts_and_finds);
	tcase_add_test(t, paths);
	tcase_add_test(t, hex);
	tcase_add_test(t, str_numbers);
	tcase_add_test(t, str_copies);
	tcase_add_test(t, utf8_valid_or_not);
	tcase_add_test(t, utf8_cut_and_width);
	tcase_add_test(t, buf_grows_to_its_ceiling);
	tcase_add_test(t, errors_are_harmless);
	tcase_add_test(t, log_escapes);
	tcase_add_test(t, log_lines);
	tcase_add_test(t, log_owns_up);
	suite_add_tcase(s, t);
	return run_suite(s);
}
