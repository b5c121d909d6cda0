/* SPDX-License-Identifier: ISC */
/*
 * Contents to read: sanitised HTML becomes lines that fit, without anything that a terminal would
 * interpret (LOG-01).
 */
#include <check.h>

#include "base/utf8.h"
#include "cli/cli.h"
#include "../../suite.h"

static const struct cli_term term = {.utf8 = true};

static const struct {
	const char *html;
	size_t columns;
	const char *want;
} PAGE[] = {
	{"", 40, ""},
	{"plain", 40, "plain\n"},
	{"<p>one</p><p>two</p>", 40, "one\n\ntwo\n"},
	{"a<br>b<br><br>c", 40, "a\nb\n\nc\n"},
	{"<div>a</div><div>b</div>", 40, "a\nb\n"},
	{"  a \n\t b<b>c</b> d ", 40, "a bc d\n"},
	{"a &lt;b&gt; &amp;amp; &quot;c&quot; &nosuch;", 40, "a <b> &amp; \"c\" &nosuch;\n"},
	{"aaaa bbbb cccc", 9, "aaaa bbbb\ncccc\n"},
	{"abcdefghijkl", 5, "abcde\nfghij\nkl\n"},
	{"see https://example.org/a/long/one it", 12, "see\nhttps://example.org/a/long/one\nit\n"},
	{"\xe4\xb8\xad\xe6\x96\x87\xe5\xad\x97\xe5\xad\x97", 5, "\xe4\xb8\xad\xe6\x96\x87\n\xe5\xad\x97\xe5\xad\x97\n"},
	{"<a href=\"https://x.example/?a=1&amp;b=2\" rel=\"noopener\">two words</a>.", 60,
		"two words <https://x.example/?a=1&b=2>.\n"},
	{"(<a href=\"https://x.example/\">https://x.example</a>)", 60, "(https://x.example)\n"},
	{"<a href=\"mailto:me@x.example\">me@x.example</a>", 60, "me@x.example\n"},
	{"<a href=\"#note\">1</a>", 60, "1\n"},
	{"<ul><li>one</li><li>two is long</li></ul><p>x</p>", 8, "* one\n* two is\n  long\n\nx\n"},
	{"<ol><li>a<ul><li>b</li></ul></li><li>c</li></ol>", 40, "1. a\n   * b\n2. c\n"},
	{"<ul><li><ol><li>deep</li></ol></li></ul>", 40, "* 1. deep\n"},
	{"<ul><li></li><li>b</li></ul>", 40, "* b\n"},
	{"<blockquote><p>said so</p><ul><li>x</li></ul></blockquote>y", 40, "> said so\n\n> * x\n\ny\n"},
	{"<pre>a  b\n\n\tc &lt;\n</pre>d", 40, "a  b\n\n    c <\n\nd\n"},
	{"<pre>this line is not broken</pre>", 8, "this line is not broken\n"},
	{"<table><tbody><tr><th>a</th><th>b</th></tr><tr><td>c</td><td>d</td></tr></tbody></table>", 40,
		"a | b\nc | d\n"},
	{"<img src=\"https://x.example/1.png\" alt=\"a &quot;b&quot;\">", 60,
		"[picture: a \"b\"] <https://x.example/1.png>\n"},
	{"a<img src=\"https://x.example/p.gif\" width=\"1\">", 60, "a\n"},
	{"<dl><dt>t</dt><dd>d</dd></dl><hr>", 40, "t\n- d\n\n----\n"},
	{"a\x1b[31mb \xc2\x9b \xe2\x80\xae", 40, "a\\x1b[31mb \\u{009b} \\u{202e}\n"},
	{"<a title=\"href=\" href=\"https://y.example/\">word</a>", 60, "word <https://y.example/>\n"},
	{"a <b", 40, "a\n"},
	{"</li></ul></pre></a>a", 40, "a\n"},
};
START_TEST(page)
{
	struct fw_buf b = FW_BUF_INIT(0);

	cli_page_html(&b, &term, fw_str(PAGE[_i].html), PAGE[_i].columns, 0);
	ck_assert_str_eq(b.p ? b.p : "", PAGE[_i].want);
	fw_buf_finish(&b);
}
END_TEST

static const struct {
	const char *html, *words, *pictures;
} WORDS[] = {
	{"", "", ""},
	{"<p>one</p><p>two <a href=\"https://x.example/\">three</a></p>", "one two three", "one two three"},
	{"<img src=\"https://x.example/1.png\" alt=\"a &lt;cat&gt;\"><br><br>b", "b", "[picture: a <cat>] b"},
	{"<img src=\"https://x.example/1.png\">", "", "[picture]"},
	{"a<pre>b\n\n c</pre>d", "a b  c d", "a b  c d"},
	{"a\x1b[31mb", "a\\x1b[31mb", "a\\x1b[31mb"},
};
START_TEST(words_of_a_page)
{
	struct fw_buf b = FW_BUF_INIT(0);

	cli_page_line(&b, &term, fw_str(WORDS[_i].html), false);
	ck_assert_str_eq(b.p ? b.p : "", WORDS[_i].words);
	fw_buf_finish(&b);
	cli_page_line(&b, &term, fw_str(WORDS[_i].html), true);
	ck_assert_str_eq(b.p ? b.p : "", WORDS[_i].pictures);
	fw_buf_finish(&b);
}
END_TEST

START_TEST(html_is_indented)
{
	struct fw_buf b = FW_BUF_INIT(0);

	fw_buf_adds(&b, "head\n");
	cli_page_html(&b, &term, FW_STR("<p>a</p><blockquote>b</blockquote>"), 40, 4);
	ck_assert_str_eq(b.p, "head\n    a\n\n    > b\n");
	fw_buf_finish(&b);
}
END_TEST

START_TEST(plain_text_keeps_its_lines)
{
	struct fw_buf b = FW_BUF_INIT(0);

	cli_page_text(&b, &term, FW_STR("one <b>\r\ntwo   words here\n\n\nthree\n"), 10, 2);
	ck_assert_str_eq(b.p, "  one <b>\n  two\n  words\n  here\n\n  three\n");
	fw_buf_finish(&b);
}
END_TEST

/* Any nesting and any width: every line fits, the work is linear, no buffer overflows. */
START_TEST(deep_nesting)
{
	struct fw_buf html = FW_BUF_INIT(0), b = FW_BUF_INIT(0);
	struct fw_str rest, line;

	for (int i = 0; i < 20000; i++)
		fw_buf_adds(&html, i % 3 ? "<ul><li>word" : "<blockquote>");
	for (int i = 19999; i >= 0; i--)
		fw_buf_adds(&html, i % 3 ? "</li></ul>" : "</blockquote>");
	fw_buf_adds(&html, "<p>end</p>");
	cli_page_html(&b, &term, fw_buf_str(&html), 20, 4);
	for (rest = fw_buf_str(&b); rest.p;) {
		line = fw_str_split(rest, '\n', &rest);
		ck_assert_uint_le(fw_utf8_width(line.p, line.len), 20);
	}
	ck_assert(fw_str_ends(fw_buf_str(&b), FW_STR("\n\n    end\n")));
	fw_buf_finish(&html);
	fw_buf_finish(&b);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit cli page");
	TCase *t = tcase_create("page");

	tcase_add_loop_test(t, page, 0, (int)FW_N(PAGE));
	tcase_add_loop_test(t, words_of_a_page, 0, (int)FW_N(WORDS));
	tcase_add_test(t, html_is_indented);
	tcase_add_test(t, plain_text_keeps_its_lines);
	tcase_add_test(t, deep_nesting);
	suite_add_tcase(s, t);
	return run_suite(s);
}
