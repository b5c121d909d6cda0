/* SPDX-License-Identifier: ISC */
/* Which of two entries fits a query better. */
#include "base/arena.h"
#include "base/str.h"
#include "query/rank.h"
#include "../../suite.h"

static const struct query_frequencies *frequencies; /* of score() */

static int64_t score(const char *query, const char *title, const char *text)
{
	struct query_scratch *s = query_scratch_create();
	struct fw_entry_row entry = {.title = fw_str(title), .content = fw_str(text), .author = FW_STR("anna")};
	struct query_subject subject = {.entry = &entry};
	struct query_node *q;
	struct fw_arena a;
	int64_t n;

	fw_arena_init(&a, 0);
	ck_assert_int_eq(query_parse(&a, fw_str(query), 0, &q, NULL), 0);
	query_scratch_set(s, &subject);
	n = query_score(q, s, frequencies);
	ck_assert(!query_scratch_failed(s));
	query_scratch_destroy(s);
	fw_arena_finish(&a);
	return n;
}

START_TEST(order)
{
	ck_assert_int_gt(score("a", "a", "x"), score("a", "x", "a"));
	ck_assert_int_gt(score("a", "x", "a a"), score("a", "x", "a y"));
	ck_assert_int_gt(score("a", "x", "a"), score("a", "x", "a b c d e f g h i j k l m n o"));
	ck_assert_int_gt(score("a b", "x", "a b"), score("a OR b", "x", "a c"));
	ck_assert_int_gt(score("\"a b\"", "", "a b a b"), score("\"a b\"", "", "a b b a"));
	ck_assert_int_gt(score("a*", "", "ab ac"), score("a*", "", "ab bc"));
	ck_assert_int_gt(score("title:a", "a a", "a"), score("title:a", "a b", "a"));
	ck_assert_int_eq(score("title:a b", "a", "b c"), score("title:a b -d", "a", "b c"));
}
END_TEST

START_TEST(nothing)
{
	ck_assert_int_eq(score("", "a", "a"), 0);
	ck_assert_int_eq(score("-b author:anna", "a", "a"), 0);
	ck_assert_int_eq(score("missing \"a missing\" miss*", "a", "a"), 0);
	ck_assert_int_eq(score("title:b", "a", "b"), 0);
	ck_assert_int_eq(score("title:b*", "a", "b"), 0);
	ck_assert_int_eq(score("a", "", ""), 0);
	ck_assert_int_gt(score("a", "a", ""), 0);
}
END_TEST

static uint64_t count(void *ctx, const struct query_node *term)
{
	(void)ctx;
	return fw_str_eq(term->text, FW_STR("common ")) ? 900 : 3;
}

START_TEST(rare_words)
{
	static const struct query_frequencies f = {.entry_n = 1000, .count = count};

	ck_assert_int_eq(score("common OR rare", "", "common x"), score("common OR rare", "", "rare x"));
	frequencies = &f;
	ck_assert_int_gt(score("common OR rare", "", "rare x"), 2 * score("common OR rare", "", "common x"));
	ck_assert_int_gt(score("common", "", "common"), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("rank");
	TCase *c = tcase_create("rank");

	tcase_add_test(c, order);
	tcase_add_test(c, nothing);
	tcase_add_test(c, rare_words);
	suite_add_tcase(s, c);
	return run_suite(s);
}
