/* SPDX-License-Identifier: ISC */
/* Subscription lists. FMT-12 */
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "parse/parse.h"
#include "../../suite.h"

struct got {
	struct fw_buf out;
	unsigned n, problems;
	uint32_t line, column; /* of the first problem */
	int stop_at;
};

static int on_outline(void *ctx, const struct fw_opml_outline *o)
{
	struct got *g = ctx;

	fw_buf_addf(&g->out, "%u|%.*s|%.*s|%.*s|%.*s\n", o->line, FW_STR_ARG(o->folder), FW_STR_ARG(o->title),
		FW_STR_ARG(o->url), FW_STR_ARG(o->home_page_url));
	g->n++;
	return g->stop_at && (int)g->n == g->stop_at ? 42 : 0;
}

static void on_problem(void *ctx, uint32_t line, uint32_t column, const char *what, const char *repair)
{
	struct got *g = ctx;

	ck_assert(what && repair);
	if (g->problems++ == 0) {
		g->line = line;
		g->column = column;
	}
}

static int read_list(struct got *g, struct fw_str in, struct fw_err *err)
{
	struct fw_arena a;
	int rc;

	fw_arena_init(&a, 0);
	rc = fw_opml_parse(&a, in, on_outline, on_problem, g, err);
	fw_arena_finish(&a);
	fw_buf_addc(&g->out, '\0');
	return rc;
}

static void expect(const char *in, const char *out, unsigned problems)
{
	struct got g = {0};
	struct fw_err err;

	ck_assert_int_eq(read_list(&g, fw_str(in), &err), 0);
	ck_assert_str_eq(g.out.p, out);
	ck_assert_uint_eq(g.problems, problems);
	fw_buf_finish(&g.out);
}

START_TEST(folders_and_cases)
{
	expect("<opml version='2.0'><body>\n<outline text='A'>\n<outline title='B' text='b'><outline"
	       " text='x' xmlUrl='http://x/' htmlUrl='http://h/'/>"
	       "</outline>\n<outline title='y' text='z' XMLURL=' http://y/ ' type='rss'/></outline>\n"
	       "<outline xmlurl='http://z/'/></body></opml>",
		"3|A/b|x|http://x/|http://h/\n4|A|y|http://y/|\n5|||http://z/|\n", 0);
	/* a subscription may contain others; it is not a folder */
	expect("<opml><outline text='s' xmlUrl='http://s/'><outline text='t' xmlUrl='http://t/'/></outline></opml>",
		"1||s|http://s/|\n1||t|http://t/|\n", 0);
	/* nothing around the outlines, and in another encoding */
	expect("<?xml version='1.0' encoding='iso-8859-1'?><outline text='\xe9' xmlUrl='http://e/'/>",
		"1||\xc3\xa9|http://e/|\n", 0);
}
END_TEST

START_TEST(damage_costs_one_outline)
{
	struct got g = {0};
	struct fw_err err;

	expect("<opml><outline text='a & b' xmlUrl='http://x/?a=1&b=2'/></opml>", "1||a & b|http://x/?a=1&b=2|\n", 2);
	expect("<opml><outline text='a' xmlUrl=''/><outline type='rss' text='b'/><outline text='c'"
	       " xmlUrl='http://c/'/></opml>",
		"1||c|http://c/|\n", 2);
	/* markup and quotes inside a value */
	expect("<opml><outline text=\"s\" description=\"by <a href=\"http://w/\" rel=\"x\">w</a>."
	       " Since 1999.\" xmlUrl=\"http://s/\"/>\n"
	       "<outline text='t' xmlUrl='http://t/'/></opml>",
		"1||s|http://s/|\n2||t|http://t/|\n", 2);
	ck_assert_int_eq(read_list(&g,
				 FW_STR("<opml>\n<outline text='a' xmlUrl='http://a/'>\n"
					" <outline text=b xmlUrl='http://b/'/>\n"),
				 &err),
		0);
	ck_assert_uint_eq(g.n, 2);
	ck_assert_uint_eq(g.line, 3);
	ck_assert_uint_eq(g.column, 16);
	fw_buf_finish(&g.out);
}
END_TEST

START_TEST(errors)
{
	static const char *const NONE[] = {"", "hello", "<html><p>x</p></html>", "{}", "<rss><channel/></rss>"};
	struct got g = {0};
	struct fw_err err;

	for (size_t i = 0; i < FW_N(NONE); i++) {
		ck_assert_int_eq(read_list(&g, fw_str(NONE[i]), &err), FW_EFORMAT);
		ck_assert_ptr_nonnull(strstr(err.text, "xmlUrl"));
	}
	ck_assert_int_eq(read_list(&g, FW_STR("<opml/>"), &err), 0);
	ck_assert_uint_eq(g.n, 0);
	g.stop_at = 1;
	ck_assert_int_eq(read_list(&g, FW_STR("<opml><outline xmlUrl='a'/><outline xmlUrl='b'/></opml>"), &err), 42);
	ck_assert_uint_eq(g.n, 1);
	fw_buf_finish(&g.out);
}
END_TEST

START_TEST(long_names_are_cut)
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct got g = {0};
	struct fw_err err;

	fw_buf_adds(&b, "<opml>");
	for (int i = 0; i < 100; i++) {
		fw_buf_adds(&b, "<outline text='");
		for (int k = 0; k < 150; k++)
			fw_buf_adds(&b, "\xe4\xb8\xad");
		fw_buf_adds(&b, "'>");
	}
	fw_buf_adds(&b, "<outline text='x' xmlUrl='http://x/'/>");
	ck_assert_int_eq(read_list(&g, fw_buf_str(&b), &err), 0);
	ck_assert_uint_eq(g.n, 1);
	ck_assert_uint_lt(g.out.len, 1300);
	fw_buf_finish(&g.out);
	fw_buf_finish(&b);
}
END_TEST

/*
 * Real lists beside the source tree, if they exist: one outline for each xmlUrl that a text search
 * finds.
 */
START_TEST(real_lists)
{
	const char *root = getenv("FW_SOURCE_ROOT");
	char dir[1000], path[2000];
	static char text[4 << 20];
	struct dirent *e;
	DIR *d;

	fw_snprintf(dir, sizeof(dir), "%s/../shared/corpus/opml", root ? root : ".");
	d = opendir(dir);
	while (d && (e = readdir(d)) != NULL) {
		struct got g = {0};
		struct fw_err err;
		struct fw_str in = {text, 0}, rest;
		unsigned want = 0;
		const char *p;
		FILE *f;

		fw_snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		f = e->d_name[0] != '.' ? fopen(path, "rb") : NULL;
		if (!f)
			continue;
		in.len = fread(text, 1, sizeof(text), f);
		fclose(f);
		for (rest = in; (p = fw_str_ifind(rest, FW_STR("xmlUrl="))) != NULL; want++)
			rest = fw_str_sub(rest, (size_t)(p - rest.p) + 7, rest.len);
		ck_assert_int_eq(read_list(&g, in, &err), 0);
		ck_assert_msg(g.n == want, "%s: %u subscriptions, not %u", e->d_name, g.n, want);
		fw_buf_finish(&g.out);
	}
	if (d)
		closedir(d);
}
END_TEST

/* What is nested too deep is missing; the reader says so, and gives the rest. */
START_TEST(deep_outlines_are_cut)
{
	struct fw_buf list = FW_BUF_INIT(0);
	struct got g = {0};
	struct fw_err err;

	fw_buf_adds(&list, "<opml><body>");
	for (int i = 0; i < 3000; i++)
		fw_buf_addf(&list, "<outline text='f'><outline xmlUrl='http://a.example/%d'/>", i);
	ck_assert_int_eq(read_list(&g, fw_buf_str(&list), &err), FW_ELIMIT);
	ck_assert_msg(strstr(err.text, "nested deeper than 256 levels"), "%s", err.text);
	ck_assert_ptr_nonnull(strstr(g.out.p, "http://a.example/250"));
	ck_assert_ptr_null(strstr(g.out.p, "http://a.example/260"));
	fw_buf_finish(&g.out);
	fw_buf_finish(&list);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit parse opml");
	TCase *t = tcase_create("opml");

	tcase_add_test(t, folders_and_cases);
	tcase_add_test(t, damage_costs_one_outline);
	tcase_add_test(t, errors);
	tcase_add_test(t, long_names_are_cut);
	tcase_add_test(t, deep_outlines_are_cut);
	tcase_add_test(t, real_lists);
	suite_add_tcase(s, t);
	return run_suite(s);
}
