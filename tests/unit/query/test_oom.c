/* SPDX-License-Identifier: ISC */
/*
 * Memory that runs out while a query is parsed and a snippet made: each allocation fails once
 * alone, and once with all that follow. The result is FW_ENOMEM or the whole one, never a part of
 * it, and nothing leaks.
 */
#include "base/arena.h"
#include "query/snippet.h"
#include "../oom.h"
#include "../../suite.h"

#define QUERY "title:news (ma\u00dfe OR word) -absent \"two three\""

enum { WORD_N = 400 };

static struct fw_str long_text; /* its tokens need more than one allocation */

static int make_snippet(struct fw_buf *out)
{
	const struct snippet_texts texts = {.title = FW_STR("News of \u00dcber"),
		.summary = FW_STR("The Ma\u00dfe of a word"),
		.content = long_text};
	struct query_node *q;
	struct fw_arena a;
	int rc;

	fw_arena_init(&a, 0);
	rc = query_parse(&a, FW_STR(QUERY), 0, &q, NULL);
	if (!rc)
		rc = query_snippet(out, q, &texts);
	fw_arena_finish(&a);
	return rc;
}

/* Returns the number of allocations. */
static long make_failing(long number, bool behind, struct fw_str whole)
{
	struct fw_buf out = FW_BUF_INIT(0);
	int rc;

	at = live = 0;
	fail_at = number;
	all_behind = behind;
	counting = true;
	rc = make_snippet(&out);
	if (!rc)
		ck_assert(fw_str_eq(fw_buf_str(&out), whole));
	fw_buf_finish(&out);
	counting = false;
	ck_assert_int_le(live, 0); /* below 0: we free a word that utf8proc allocated */
	ck_assert_msg(!rc || rc == FW_ENOMEM, "%d", rc);
	ck_assert_msg(rc || !number || at < number || !behind, "number %ld is not noticed", number);
	return at;
}

START_TEST(snippet_is_whole_or_an_error)
{
	struct fw_buf text = FW_BUF_INIT(0), out = FW_BUF_INIT(0);
	struct fw_str whole;
	long n;

	for (int i = 0; i < WORD_N; i++)
		fw_buf_adds(&text, i == WORD_N / 2 ? "one two three word " : "other ");
	long_text = fw_buf_str(&text);
	ck_assert_int_eq(make_snippet(&out), 0);
	whole = fw_buf_str(&out);
	n = make_failing(0, false, whole);
	ck_assert_int_gt(n, 5);
	for (long i = 1; i <= n; i++) {
		make_failing(i, false, whole);
		make_failing(i, true, whole);
	}
	fw_buf_finish(&out);
	fw_buf_finish(&text);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("query oom");
	TCase *t = tcase_create("all");

	tcase_add_test(t, snippet_is_whole_or_an_error);
	suite_add_tcase(s, t);
	return run_suite(s);
}
