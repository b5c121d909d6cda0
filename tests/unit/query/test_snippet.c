/* SPDX-License-Identifier: ISC */
/* Snippets: which part of the text, and what is marked in it. */
#include "base/arena.h"
#include "base/utf8.h"
#include "query/snippet.h"
#include "../../suite.h"

#define WORDS_20                                                                                                  \
	"lorem ipsum dolor sit amet lorem ipsum dolor sit amet lorem ipsum dolor sit amet lorem ipsum dolor sit " \
	"amet "

/* The snippet with [ and ] as marks. The caller frees it. */
static char *snippet(const char *query, const struct snippet_texts *texts)
{
	struct fw_buf out = FW_BUF_INIT(0);
	struct query_node *q;
	struct fw_arena a;
	size_t len, mark_n = 0;
	char *p;

	fw_arena_init(&a, 0);
	ck_assert_int_eq(query_parse(&a, fw_str(query), 0, &q, NULL), 0);
	ck_assert_int_eq(query_snippet(&out, q, texts), 0);
	fw_buf_addc(&out, '\0');
	fw_arena_finish(&a);
	p = fw_buf_take(&out, &len);
	for (size_t i = 0; i + 1 < len; i++) {
		ck_assert(p[i] != (mark_n % 2 ? FW_MARK_BEGIN : FW_MARK_END));
		if (p[i] != FW_MARK_BEGIN && p[i] != FW_MARK_END)
			continue;
		p[i] = mark_n++ % 2 ? ']' : '[';
	}
	ck_assert(mark_n % 2 == 0);
	ck_assert_uint_eq(fw_utf8_valid(p, len), len);
	return p;
}

static const struct {
	const char *query, *summary, *content, *snippet;
} MARKED[] = {
	{"", "", "", ""},
	{"x", "", "", ""},
	{"", "One two.", "", "One two."},
	{"two", "One two.", "", "One [two]."},
	{"TWO", "One tw\u00f6.", "", "One [tw\u00f6]."},
	{"two", "One two\u0308.", "", "One [two\u0308]."},
	{"\u00dcber", "U\u0308ber uber \u00dcBER", "", "[U\u0308ber] [uber] [\u00dcBER]"},
	{"strasse", "Die Stra\u00dfe!", "", "Die [Stra\u00dfe]!"},
	{"on*", "One on only", "", "[One] [on] [only]"},
	{"\"one two\"", "one two one, two", "", "[one two] [one, two]"},
	{"\"one tw\"*", "one twice two", "", "[one twice] two"},
	{"\"one two\" \"two three\"", "one two three", "", "[one two three]"},
	{"one -two", "one two", "", "[one] two"},
	{"one OR (two three)", "one two three", "", "[one] [two] [three]"},
	{"author:one", "one", "", "one"},
	{"title:one", "one", "", "one"},
	{"CVE-2026-1", "CVE-2026-1, CVE-2026-2", "", "[CVE-2026-1], CVE-2026-2"},
	{"\u4eac", "\u6771\u4eac\u90fd", "", "\u6771[\u4eac]\u90fd"},
	{"\u6771\u4eac", "\u6771\u4eac\u90fd", "", "[\u6771\u4eac]\u90fd"},
	{"\u304c", "\u304b\u3099\u3099 \u304b", "", "[\u304b\u3099]\u3099 \u304b"},
	{"2", "\u00bd of it", "", "[\u00bd] of it"},
	{"one", "a\n\n \tb\xc2\xa0 one\n", "", "a b [one] "},
	{"one", "\x02one\x03 \x1b[m \xe2\x80\xae", "", "[one] [m "},
	{"two", "one", "one two", "one [two]"},
	{"one two", "one", "one two", "[one] [two]"},
	{"one", "the one", "one", "the [one]"},
	{"a", "\xff\x80 a \xc3", "", "\xef\xbf\xbd\xef\xbf\xbd [a] \xef\xbf\xbd"},
};

START_TEST(marks)
{
	for (size_t i = 0; i < FW_N(MARKED); i++) {
		struct snippet_texts texts = {.title = FW_STR(""),
			.summary = fw_str(MARKED[i].summary),
			.content = fw_str(MARKED[i].content)};
		char *p = snippet(MARKED[i].query, &texts);

		ck_assert_msg(strcmp(p, MARKED[i].snippet) == 0, "%s in %s: %s", MARKED[i].query, MARKED[i].summary, p);
		free(p);
	}
}
END_TEST

START_TEST(titles)
{
	struct snippet_texts texts = {.title = FW_STR("The title"), .summary = FW_STR("A summary")};
	char *p = snippet("title", &texts);

	ck_assert_str_eq(p, "The [title]");
	free(p);
	p = snippet("title OR summary", &texts);
	ck_assert_str_eq(p, "A [summary]");
	free(p);
	p = snippet("title:title", &texts);
	ck_assert_str_eq(p, "The [title]");
	free(p);
	p = snippet("other", &texts);
	ck_assert_str_eq(p, "A summary");
	free(p);
	texts.summary = FW_STR_NONE;
	p = snippet("other", &texts);
	ck_assert_str_eq(p, "The title");
	free(p);
}
END_TEST

static void check_window(const char *query, const char *content, const char *start, const char *part, const char *end)
{
	struct snippet_texts texts = {.content = fw_str(content)};
	char *p = snippet(query, &texts);
	size_t n = strlen(p);

	ck_assert_msg(strncmp(p, start, strlen(start)) == 0, "%s", p);
	ck_assert_msg(strstr(p, part), "%s", p);
	ck_assert_msg(n >= strlen(end) && strcmp(p + n - strlen(end), end) == 0, "%s", p);
	/* two ellipses, brackets, what is between words */
	ck_assert_msg(fw_utf8_width(p, n) <= SNIPPET_CHARS + 60, "%zu: %s", n, p);
	free(p);
}

START_TEST(windows)
{
	char word[2000];

	check_window("needle", WORDS_20 WORDS_20 WORDS_20 "needle " WORDS_20 WORDS_20 WORDS_20, "\u2026",
		"amet [needle] lorem", "\u2026");
	check_window("needle", "needle " WORDS_20 WORDS_20 WORDS_20, "[needle] lorem", "sit", "\u2026");
	check_window("needle", WORDS_20 WORDS_20 WORDS_20 "needle.", "\u2026", "lorem", "[needle].");
	check_window(
		"one two", "one " WORDS_20 WORDS_20 WORDS_20 "one two " WORDS_20, "\u2026", "[one] [two]", "amet ");
	check_window("none", WORDS_20 WORDS_20 WORDS_20, "lorem ipsum", "amet", "\u2026");
	memset(word, 'x', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	check_window("x*", word, "[xxx", "xxx", "x]\u2026");
	memset(word, '-', sizeof(word) - 1);
	check_window("x", word, "---", "---", "-");
}
END_TEST

/* A text of 1 MB that matches everywhere costs no more than its length. */
START_TEST(large)
{
	struct fw_buf text = FW_BUF_INIT(0);
	struct snippet_texts texts;
	char *p;

	while (text.len < (size_t)1 << 21)
		fw_buf_adds(&text, "a \u00e4 ");
	texts = (struct snippet_texts){.content = fw_buf_str(&text)};
	p = snippet("a \"a a a a a a a a\" b", &texts);
	ck_assert(strncmp(p, "[a ", 3) == 0);
	free(p);
	fw_buf_finish(&text);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("snippet");
	TCase *c = tcase_create("snippet");

	tcase_add_test(c, marks);
	tcase_add_test(c, titles);
	tcase_add_test(c, windows);
	tcase_add_test(c, large);
	suite_add_tcase(s, c);
	return run_suite(s);
}
