/* SPDX-License-Identifier: ISC */
/* The feeds that a page and its Link header name: FMT-13. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "parse/discover.h"
#include "../../suite.h"

#define URL FW_STR("https://example.org/blog/page.html?x=1")
#define RSS "type='application/rss+xml'"

/* The named feeds, separated by a space. */
static void named(const struct fw_link *l, const char *want, const char *of)
{
	struct fw_buf b = FW_BUF_INIT(0);

	for (; l; l = l->next)
		fw_buf_addf(&b, "%s%.*s", b.len ? " " : "", FW_STR_ARG(l->href));
	ck_assert_msg(fw_str_eq(fw_buf_str(&b), fw_str(want)), "%s\nnames: %.*s", of, (int)b.len, b.p ? b.p : "");
	fw_buf_finish(&b);
}

START_TEST(pages)
{
	static const struct {
		const char *html, *want;
	} T[] = {
		/* order, base */
		{"<link rel=alternate " RSS " href=b><link rel=alternate " RSS " href=a>",
			"https://example.org/blog/b https://example.org/blog/a"},
		{"<link rel=alternate " RSS " href=a><base href='/x/'><base href=/y/>", "https://example.org/x/a"},
		{"<base target=_top><base href='../z/'><link rel=alternate " RSS " href=a>", "https://example.org/z/a"},
		{"<base href='//cdn.example.net/'><link rel=alternate " RSS " href=a>", "https://cdn.example.net/a"},
		{"<base href='javascript:x'><link rel=alternate " RSS " href=/a>", "https://example.org/a"},
		{"<link rel=alternate " RSS " href=?feed=rss2>", "https://example.org/blog/page.html?feed=rss2"},
		{"<link rel=alternate " RSS " href=a><link rel=alternate " RSS " href='https://example.org/blog/a'>",
			"https://example.org/blog/a"},
		/* spellings in real pages */
		{"<LINK REL='ALTERNATE' TYPE='Application/RSS+XML' HREF='/A'>", "https://example.org/A"},
		{"<link href=/a type=application/rss+xml rel=alternate>", "https://example.org/a"},
		{"<link rel='home  \talternate\n' " RSS " href='\n /a '/>", "https://example.org/a"},
		{"<link rel=alternate type='application/atom+xml;type=feed; charset=utf-8' href=/a>",
			"https://example.org/a"},
		{"<link rel=alternate type=\" application/rss+xml \" href=\"/a?b=1&amp;c=2&copy=3\">",
			"https://example.org/a?b=1&c=2&copy=3"},
		{"<link rel=feed href=/a><link rel='feed' type=text/css href=/b>", "https://example.org/a"},
		{"<link rel='alternate stylesheet' " RSS " href=/a>", ""},
		{"<link rel='alternate' " RSS "><link rel=alternate " RSS " href=''>", ""},
		{"<link rel=alternative " RSS " href=/a><link " RSS " href=/a>", ""},
		{"<link rel=alternate " RSS " href='javascript:alert(1)'><link rel=alternate " RSS " href='feed:x'>",
			""},
		{"<link rel=alternate " RSS " href='mailto:a@b'><link rel=alternate " RSS
		 " href='data:,x'><link rel=alternate " RSS " href='file:///x'>",
			""},
		/* types that are not a feed's, unless the URL suggests one */
		{"<link rel=alternate type=application/json href=/wp-json/wp/v2/pages/2><link"
		 " rel=alternate type=application/json+oembed href=/o>",
			""},
		{"<link rel=alternate type=application/json href=/feed.json><link rel=alternate"
		 " type=application/json href=/wp-json/feed>",
			"https://example.org/feed.json"},
		{"<link rel=alternate type=text/xml href=/rss.xml><link rel=alternate"
		 " type=application/xml href=/sitemap.xml>",
			"https://example.org/rss.xml"},
		{"<link rel=alternate hreflang=de href=/de/feed><link rel=alternate type=text/html href=/feed>", ""},
		/* where in the page */
		{"<body><p><link rel=alternate " RSS " href=/a></p>", "https://example.org/a"},
		{"<noscript><link rel=alternate " RSS " href=/a></noscript>", "https://example.org/a"},
		{"<!-- <link rel=alternate " RSS " href=/a> --><!-><link rel=alternate " RSS " href=/b>",
			"https://example.org/b"},
		{"<!--[if IE]><link rel=alternate " RSS " href=/a><![endif]-->", ""},
		{"<script>var x = \"<link rel=alternate " RSS " href=/a>\";</script>", ""},
		{"<style><link rel=alternate " RSS " href=/a></style><title><link rel=alternate " RSS
		 " href=/a></title>",
			""},
		{"<textarea><link rel=alternate " RSS " href=/a></textarea><iframe><link rel=alternate " RSS
		 " href=/a></iframe>",
			""},
		{"<template><div><template></template><link rel=alternate " RSS
		 " href=/a></div></template><link rel=alternate " RSS " href=/b>",
			"https://example.org/b"},
		{"<svg><title>x</title></svg><link rel=alternate " RSS " href=/a>", "https://example.org/a"},
		{"<p title='<link rel=alternate "
		 "type=application/rss+xml href=/a>'>",
			""},
		{"<link rel=alternate " RSS " href=/a", ""}, /* cut off inside the tag */
		/* anchors, if there is nothing else */
		{"<a href=/a " RSS ">RSS</a><a href=/b type=text/html>x</a><a href=/feed>x</a>",
			"https://example.org/a"},
		{"<a href=/a " RSS ">RSS</a><link rel=alternate " RSS " href=/b>", "https://example.org/b"},
		{"", ""},
		{"plain text", ""},
		{"{\"a\": 1}", ""},
	};
	struct fw_link *l;
	struct fw_err err;

	ck_assert_msg(!fw_discover(T[_i].html, strlen(T[_i].html), URL, FW_STR_NONE, &l, &err), "%s", err.text);
	named(l, T[_i].want, T[_i].html);
	free(l);
}
END_TEST

START_TEST(headers) /* RFC 8288 */
{
	static const struct {
		const char *header, *want;
	} T[] = {
		{"</feed>; rel=\"alternate\"; type=\"application/rss+xml\"", "https://example.org/feed"},
		{"<a>;rel=alternate;type=application/atom+xml,<b>;type=application/feed+json;rel=alternate",
			"https://example.org/blog/a https://example.org/blog/b"},
		{"<a> ; REL = \"home ALTERNATE\" ; Type=\"Application/RSS+XML; charset=utf-8\" ;"
		 " title=\"x, <y>; rel=z\"",
			"https://example.org/blog/a"},
		{"<a,b;c>; rel=alternate; type=application/rss+xml", "https://example.org/blog/a,b;c"},
		{"<x>; rel=alternate; hreflang=de, <y>; rel=canonical, </wp-json/>; rel=\"https://api.w.org/\", "
		 "</wp-json/wp/v2/pages/2>; rel=\"alternate\"; title=\"JSON\"; type=\"application/json\"",
			""},
		{"<a>; rel=alternate; type=application/rss+xml; rel=stylesheet",
			"https://example.org/blog/a"}, /* the first rel counts */
		{"<a>; rel=alternate; type=application/rss+xml; anchor=\"/other\"", ""},
		{"<a>; title=\"\\\"; rel=self\"; rel=feed", "https://example.org/blog/a"},
		{"<a>; rel=feed, <a>; rel=feed, <javascript:x>; rel=feed, <>; rel=feed",
			"https://example.org/blog/a https://example.org/blog/page.html?x=1"},
		{"nonsense, <a; rel=feed", ""},
		{"<b>; rel=\"feed", "https://example.org/blog/b"},
		{"", ""},
		{",,;", ""},
	};
	struct fw_link *l;
	struct fw_err err;

	ck_assert_msg(!fw_discover_header(fw_str(T[_i].header), URL, &l, &err), "%s", err.text);
	named(l, T[_i].want, T[_i].header);
	free(l);
}
END_TEST

START_TEST(header_and_page) /* the header's come first, each once */
{
	struct fw_link *l;
	struct fw_arena a;
	struct fw_err err;

	fw_arena_init(&a, 0);
	ck_assert_int_eq(fw_find_feeds(&a, FW_STR("</c>; rel=feed, </a>; rel=feed"),
				 FW_STR("<link rel=feed href=/a><link rel=feed href=/b>"), FW_STR_NONE, URL, &l, &err),
		0);
	named(l, "https://example.org/c https://example.org/a https://example.org/b", "both");
	fw_arena_finish(&a);
}
END_TEST

START_TEST(encodings) /* a page in UTF-16, and one that declares its encoding */
{
	static const char wide[] = "\xff\xfe<\0l\0i\0n\0k\0 \0r\0e\0l\0=\0f\0e\0e\0d\0 \0h\0r\0e\0f\0=\0/\0\xe9\0>\0";
	static const char own[] =
		"<html><meta charset=windows-1251><link rel=feed title='\xcf\xf0\xe8\xe2\xe5\xf2' href=/a>";
	struct fw_link *l;
	struct fw_err err;

	ck_assert_int_eq(fw_discover(wide, sizeof(wide) - 1, URL, FW_STR("text/html; charset=latin1"), &l, &err), 0);
	named(l, "https://example.org/\xc3\xa9", "UTF-16");
	free(l);
	ck_assert_int_eq(fw_discover(own, sizeof(own) - 1, URL, FW_STR("text/html"), &l, &err), 0);
	ck_assert(l && fw_str_eq(l->title, FW_STR("Привет")));
	free(l);
}
END_TEST

START_TEST(many) /* at most two hundred, whatever the page contains */
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct fw_link *first, *l;
	struct fw_err err;
	int n = 0;

	for (int i = 0; i < 5000; i++)
		fw_buf_addf(&b, "<link rel=feed href=/%d>", i);
	ck_assert_int_eq(fw_discover(b.p, b.len, URL, FW_STR_NONE, &first, &err), 0);
	for (l = first; l; l = l->next)
		n++;
	ck_assert_int_eq(n, 200);
	free(first);
	fw_buf_finish(&b);
}
END_TEST

START_TEST(hubs) /* WSB-01, WSB-02: the header first, then the page's head; its body is not trusted */
{
	static const struct {
		const char *header, *page, *hub, *self;
	} T[] = {
		{"</h>; rel=hub, </s>; rel=\"self\"", "<link rel=hub href=/no><link rel=self href=/no>",
			"https://example.org/h", "https://example.org/s"},
		{"<https://h.example/1>; rel=hub, <https://h.example/2>; rel=hub", "", "https://h.example/1", ""},
		{NULL, "<head><link rel=hub href=h><link rel='hub x' href=i><link rel=self href='?y'></head>",
			"https://example.org/blog/h", "https://example.org/blog/page.html?y"},
		{NULL, "<base href=/b/><link rel=HUB href=h><template><link rel=self href=/no></template>",
			"https://example.org/b/h", ""},
		{"</s>; rel=self", "<link rel=hub href=/h><link rel=self href=/other>", "https://example.org/h",
			"https://example.org/s"},
		{NULL, "<html><body><link rel=hub href=/h><link rel=self href=/s>", "", ""},
		{NULL,
			"<!-- <link rel=hub href=/h> --><script><link rel=hub href=/h></script><link rel=hub"
			" href='javascript:x'>",
			"", ""},
		{NULL, "", "", ""},
	};

	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_str hub, self;
		struct fw_arena a;

		fw_arena_init(&a, 0);
		ck_assert_int_eq(
			fw_find_hub(&a, fw_str(T[i].header), fw_str(T[i].page), FW_STR_NONE, URL, &hub, &self, NULL),
			0);
		ck_assert_msg(fw_str_eq(hub, fw_str(T[i].hub)), "%zu: hub %.*s", i, FW_STR_ARG(hub));
		ck_assert_msg(fw_str_eq(self, fw_str(T[i].self)), "%zu: self %.*s", i, FW_STR_ARG(self));
		fw_arena_finish(&a);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit parse discover");
	TCase *t = tcase_create("discover");

	tcase_add_loop_test(t, pages, 0, 38);
	tcase_add_loop_test(t, headers, 0, 13);
	tcase_add_test(t, header_and_page);
	tcase_add_test(t, encodings);
	tcase_add_test(t, many);
	tcase_add_test(t, hubs);
	suite_add_tcase(s, t);
	return run_suite(s);
}
