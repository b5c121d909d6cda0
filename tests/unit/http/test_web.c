/* SPDX-License-Identifier: ISC */
/* The page: places to return to, forms with files, contents. */
#include <check.h>
#include <stdlib.h>

#include "http/web/web.h"
#include "../../suite.h"

START_TEST(places)
{
	static const char *const YES[] = {
		"", "?", "?view=all&feed=7", "feeds", "feeds?feed=7", "?next=http://x/", "entry?id=1"};
	static const char *const NO[] = {"/", "//evil.example", "/feeds", "http://evil.example", "javascript:alert(1)",
		"a/b", "..", "./", "\\\\evil.example", "?a\r\nSet-Cookie: x=y", "feeds#x", " ", "?\xff", "7"};

	for (size_t i = 0; i < FW_N(YES); i++)
		ck_assert_msg(web_next_fits(fw_str(YES[i])), "%s", YES[i]);
	for (size_t i = 0; i < FW_N(NO); i++)
		ck_assert_msg(!web_next_fits(fw_str(NO[i])), "%s", NO[i]);
}
END_TEST

#define TYPE "multipart/form-data; boundary=b0"
#define DISPOSITION "Content-Disposition: form-data; name="

START_TEST(parts)
{
	static const struct {
		const char *type, *text, *want; /* "[name]value" of each part; NULL: refused */
	} CASE[] = {
		{TYPE, "--b0\r\n" DISPOSITION "\"a\"\r\n\r\n1\r\n--b0--\r\n", "[a]1"},
		{TYPE,
			"--b0\r\n" DISPOSITION "\"a\"\r\n\r\n\r\n--b0\r\ncontent-type: x\r\n" DISPOSITION
			"f; filename=\"x;y\"\r\n\r\n<o>\r\n--b1\r\n</o>\r\n--b0--",
			"[a][f]<o>\r\n--b1\r\n</o>"},
		{"multipart/form-data; charset=x; BOUNDARY=\"b0\"",
			"--b0\r\n" DISPOSITION "a\r\n\r\nx=1&b=2\r\n--b0--\r\n", "[a]x=1&b=2"},
		{TYPE, "--b0\r\nX: y\r\n\r\n1\r\n--b0--", "[]1"},
		{TYPE, "--b0--", ""},
		{TYPE, "", NULL},
		{TYPE, "--b0\r\n" DISPOSITION "a\r\n\r\n1", NULL},
		{TYPE, "--b0\r\n" DISPOSITION "a\r\n1\r\n--b0--", NULL},
		{"multipart/form-data", "--b0--", NULL},
		{"multipart/form-data; boundary=", "--\r\n\r\n--", NULL},
	};
	struct fw_arena arena;

	fw_arena_init(&arena, 0);
	for (size_t i = 0; i < FW_N(CASE); i++) {
		struct fw_buf got = FW_BUF_INIT(0);
		struct http_form f;
		int rc = http_form_read_parts(&arena, fw_str(CASE[i].type), fw_str(CASE[i].text), 1, &f);

		ck_assert_msg(rc == (CASE[i].want ? 0 : FW_EFORMAT), "%s", CASE[i].text);
		for (size_t k = 0; !rc && k < f.n; k++)
			fw_buf_addf(&got, "[%.*s]%.*s", FW_STR_ARG(f.field[k].name), FW_STR_ARG(f.field[k].value));
		if (!rc)
			ck_assert_str_eq(got.p ? got.p : "", CASE[i].want);
		fw_buf_finish(&got);
	}
	fw_arena_finish(&arena);
}
END_TEST

#define EMBED(url) "{\"_feedwheel\":{\"embeds\":[{\"url\":\"https://other.example/\"},{\"url\":\"" url "\"}]}}"
#define IMG " loading=\"lazy\" decoding=\"async\" referrerpolicy=\"no-referrer\">"

START_TEST(contents)
{
	static const struct {
		const char *html, *extra, *want;
	} CASE[] = {
		{"", "", ""},
		{"plain &lt;b&gt; &amp;", "", "plain &lt;b&gt; &amp;"},
		{"<p style=\"color: red\" dir=\"rtl\">a</p>", "", "<p dir=\"rtl\">a</p>"},
		{"<table bgcolor=\"red\" width=\"1\"><tr><td align=\"left\">x</td></tr></table>", "",
			"<table width=\"1\"><tr><td>x</td></tr></table>"},
		{"<img src=\"http://a/?b>c\" alt=\"x > y\">", "", "<img src=\"http://a/?b>c\" alt=\"x > y\"" IMG},
		{"<h1>a</h1><h4 id=\"user-content-x\">b</h4><h6>c</h6><hr>", "",
			"<h3>a</h3><h6 id=\"user-content-x\">b</h6><h6>c</h6><hr>"},
		{"<hr><h5 dir=\"rtl\">a</h5><h6>b</h6>", "", "<hr><h3 dir=\"rtl\">a</h3><h4>b</h4>"},
		{"<video controls src=\"http://a/v\"></video>", "",
			"<video controls src=\"http://a/v\" preload=\"none\"></video>"},
		{"<a href=\"http://a/\" rel=\"noopener noreferrer\">x</a>", "",
			"<a href=\"http://a/\" target=\"_blank\" rel=\"noopener noreferrer\">x</a>"},
		{"<a href=\"#user-content-1\" rel=\"noopener noreferrer\">1</a>", "",
			"<a href=\"#user-content-1\" rel=\"noopener noreferrer\">1</a>"},
		{"<a href=\"https://www.youtube.com/watch?v=a-B_9&amp;t=1\">x</a>",
			EMBED("https://www.youtube.com/watch?v=a-B_9&t=1"),
			"<a href=\"https://www.youtube.com/watch?v=a-B_9&amp;t=1\" target=\"_blank\" "
			"class=\"player\" title=\"Play it here\" "
			"data-player=\"https://www.youtube-nocookie.com/embed/a-B_9?autoplay=1\">x</a>"},
		{"<a href=\"https://vimeo.com/12/ab\">x</a>", EMBED("https://vimeo.com/12/ab"),
			"<a href=\"https://vimeo.com/12/ab\" target=\"_blank\" "
			"class=\"player\" title=\"Play it here\" "
			"data-player=\"https://player.vimeo.com/video/12?autoplay=1\">x</a>"},
		/* a link that is no embed's; an embed without a known player */
		{"<a href=\"https://vimeo.com/12\">x</a>", EMBED("https://vimeo.com/13"),
			"<a href=\"https://vimeo.com/12\" target=\"_blank\">x</a>"},
		{"<a href=\"https://other.example/\">x</a>", EMBED("https://vimeo.com/13"),
			"<a href=\"https://other.example/\" target=\"_blank\">x</a>"},
		{"<a href=\"https://vimeo.com/\">x</a>", EMBED("https://vimeo.com/"),
			"<a href=\"https://vimeo.com/\" target=\"_blank\">x</a>"},
		{"<a href=\"https://vimeo.com/1\">x</a>", "{\"embeds\": not JSON",
			"<a href=\"https://vimeo.com/1\" target=\"_blank\">x</a>"},
		/* nothing is loaded from the page's own server; its links stay */
		{"<img src=\"http://reader.example:8080/entry?id=1\" alt=\"x\">", "", "<img alt=\"x\"" IMG},
		{"<img src=\"https://READER.example:8080/\">", "", "<img" IMG},
		{"<img src=\"http://x@reader.example:8080/\">", "", "<img" IMG},
		{"<img src=\"/entry?id=1\">", "", "<img" IMG},
		{"<img src=\"//reader.example:8080/\">", "", "<img" IMG},
		{"<img src=\"http://reader.example/a\">", "", "<img src=\"http://reader.example/a\"" IMG},
		{"<img srcset=\"http://a/1 1x, http://reader.example:8080/2 2x\">", "", "<img" IMG},
		{"<img srcset=\"http://a/1 1x, http://b/2 2x\">", "",
			"<img srcset=\"http://a/1 1x, http://b/2 2x\"" IMG},
		{"<video poster=\"http://reader.example:8080/\" src=\"http://reader.example:8080/\"></video>", "",
			"<video preload=\"none\"></video>"},
		{"<td background=\"http://reader.example:8080/\">x</td>", "", "<td>x</td>"},
		{"<a href=\"http://reader.example:8080/\">x</a>", "",
			"<a href=\"http://reader.example:8080/\" target=\"_blank\">x</a>"},
		/* never written by the sanitiser, and harmless */
		{"<a href=\"x", "", "<a>"},
		{"<", "", "<>"},
	};

	for (size_t i = 0; i < FW_N(CASE); i++) {
		struct fw_buf out = FW_BUF_INIT(0);

		web_content_rewrite(
			&out, fw_str(CASE[i].html), fw_str(CASE[i].extra), 3, FW_STR("reader.example:8080"));
		ck_assert_str_eq(out.p ? out.p : "", CASE[i].want);
		fw_buf_finish(&out);
	}
}
END_TEST

START_TEST(beginnings)
{
	static const struct {
		const char *html, *want;
	} CASE[] = {
		{"", ""},
		{"<p>one</p><p>t <b>th</b>ree</p>", "one t thre\xe2\x80\xa6"},
		{"a<br>b\n\n c", "a b c"},
		{"<img src=\"http://a/?b>c\">x", "x"},
		{"0123456789abcde", "0123456789\xe2\x80\xa6"},
		{"01234567 &amp;x", "01234567\xe2\x80\xa6"},
		{"01234&amp;x", "01234&amp;\xe2\x80\xa6"},
		{"012345678\xc3\xa4", "012345678\xe2\x80\xa6"},
		{"01234567\xc3\xa4", "01234567\xc3\xa4"},
		{"&amp", "&amp"},
		{"<p", ""},
	};

	for (size_t i = 0; i < FW_N(CASE); i++) {
		struct fw_buf out = FW_BUF_INIT(0);

		web_content_text(&out, fw_str(CASE[i].html), 10);
		ck_assert_str_eq(out.p ? out.p : "", CASE[i].want);
		fw_buf_finish(&out);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit http web");
	TCase *t = tcase_create("web");

	tcase_add_test(t, places);
	tcase_add_test(t, parts);
	tcase_add_test(t, contents);
	tcase_add_test(t, beginnings);
	suite_add_tcase(s, t);
	return run_suite(s);
}
