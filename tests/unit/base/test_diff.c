/* SPDX-License-Identifier: ISC */
/* The difference of two texts: by example, and at random against what a difference must be. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/diff.h"
#include "base/str.h"
#include "../../suite.h"

struct told {
	struct fw_buf text;          /* "same[-removed-]{+added+}" */
	struct fw_buf before, after; /* what the runs make of each side */
	size_t edits;
	enum fw_diff_op last;
	bool any;
};

static size_t words_n(struct fw_str s)
{
	size_t n = 0;

	for (size_t i = 0; i < s.len; i++)
		n += !fw_is_space(s.p[i]) && (i + 1 == s.len || fw_is_space(s.p[i + 1]));
	return n;
}

static void told_add(void *ctx, enum fw_diff_op op, struct fw_str text)
{
	static const char *const AROUND[][2] = {{"", ""}, {"[-", "-]"}, {"{+", "+}"}};
	struct told *t = ctx;

	ck_assert_uint_gt(text.len, 0);
	ck_assert(!(t->any && t->last == FW_DIFF_ADDED && op == FW_DIFF_REMOVED)); /* removed ones come first */
	fw_buf_adds(&t->text, AROUND[op][0]);
	fw_buf_addstr(&t->text, text);
	fw_buf_adds(&t->text, AROUND[op][1]);
	if (op != FW_DIFF_ADDED)
		fw_buf_addstr(&t->before, text);
	if (op != FW_DIFF_REMOVED)
		fw_buf_addstr(&t->after, text);
	t->edits += op == FW_DIFF_SAME ? 0 : words_n(text);
	t->last = op;
	t->any = true;
}

static struct told told_of(const char *before, const char *after)
{
	struct told t = {.text = FW_BUF_INIT(0), .before = FW_BUF_INIT(0), .after = FW_BUF_INIT(0)};

	ck_assert_int_eq(fw_text_diff(fw_str(before), fw_str(after), told_add, &t), 0);
	return t;
}

static void told_finish(struct told *t)
{
	fw_buf_finish(&t->text);
	fw_buf_finish(&t->before);
	fw_buf_finish(&t->after);
}

START_TEST(diff_by_example)
{
	static const char *const CASE[][3] = {
		{"", "", ""}, {"a b c", "a b c", "a b c"},
		{"a  b\tc", "a b c ", "a b c "}, /* white space does not count */
		{"", "a b", "{+a b+}"}, {"a b", "", "[-a b-]"}, {"one two three", "one three", "one [-two -]three"},
		{"one three", "one two three", "one {+two +}three"},
		{"the old price", "the new price", "the [-old -]{+new +}price"}, {"a b", "x y", "[-a b-]{+x y+}"},
		{"a b c a b b a", "c b a b a c", NULL},
		/* an ideograph is a word */
		{"\xe4\xbb\x8a\xe5\xa4\xa9", "\xe4\xbb\x8a\xe6\x97\xa5",
			"\xe4\xbb\x8a[-\xe5\xa4\xa9-]{+\xe6\x97\xa5+}"},
		{"\xff\xfe x", "\xff x", "\xff [-\xfe -]x"}, /* each invalid byte is one */
	};

	for (size_t i = 0; i < FW_N(CASE); i++) {
		struct told t = told_of(CASE[i][0], CASE[i][1]);

		if (CASE[i][2])
			ck_assert_msg(fw_str_eq(fw_buf_str(&t.text), fw_str(CASE[i][2])), "%s: %.*s", CASE[i][2],
				FW_STR_ARG(fw_buf_str(&t.text)));
		else
			ck_assert_uint_eq(t.edits, 5); /* Myers' own example */
		told_finish(&t);
	}
}
END_TEST

/* The length of the longest common subsequence of two texts of one-letter words. */
static size_t naive_common(const char *a, size_t a_n, const char *b, size_t b_n)
{
	size_t best[32][32] = {{0}};

	for (size_t i = 1; i <= a_n; i++) {
		for (size_t k = 1; k <= b_n; k++)
			best[i][k] = a[2 * i - 2] == b[2 * k - 2] ? best[i - 1][k - 1] + 1 :
								    FW_MAX(best[i - 1][k], best[i][k - 1]);
	}
	return best[a_n][b_n];
}

START_TEST(diff_at_random_is_the_shortest)
{
	unsigned seed = 7;

	for (int round = 0; round < 20000; round++) {
		char text[2][64] = {"", ""};
		size_t n[2];
		struct told t;

		for (size_t side = 0; side < 2; side++) {
			n[side] = (seed = seed * 1103515245 + 12345) / 65536 % 24;
			for (size_t i = 0; i < n[side]; i++) {
				text[side][2 * i] = (char)('a' + (seed = seed * 1103515245 + 12345) / 65536 % 4);
				text[side][2 * i + 1] = ' ';
			}
		}
		t = told_of(text[0], text[1]);
		ck_assert(fw_str_eq(fw_buf_str(&t.before), fw_str(text[0])));
		ck_assert(fw_str_eq(fw_buf_str(&t.after), fw_str(text[1])));
		ck_assert_uint_eq(t.edits, n[0] + n[1] - 2 * naive_common(text[0], n[0], text[1], n[1]));
		told_finish(&t);
	}
}
END_TEST

START_TEST(diff_of_texts_with_too_many_differences_is_one_replacement)
{
	struct fw_buf a = FW_BUF_INIT(0), b = FW_BUF_INIT(0);
	struct told t;

	fw_buf_adds(&a, "head ");
	fw_buf_adds(&b, "head ");
	for (int i = 0; i < 200000; i++) {
		fw_buf_addf(&a, "a%d ", i);
		fw_buf_addf(&b, "b%d ", i);
	}
	fw_buf_addf(&a, "tail%c", 0);
	fw_buf_addf(&b, "tail%c", 0);
	t = told_of(a.p, b.p);
	ck_assert(fw_str_starts(fw_buf_str(&t.text), FW_STR("head [-a0 a1 ")));
	ck_assert(fw_str_ends(fw_buf_str(&t.text), FW_STR(" b199999 +}tail")));
	ck_assert_uint_eq(t.edits, 400000);
	told_finish(&t);
	fw_buf_finish(&a);
	fw_buf_finish(&b);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit base diff");
	TCase *t = tcase_create("diff");

	tcase_add_test(t, diff_by_example);
	tcase_add_test(t, diff_at_random_is_the_shortest);
	tcase_add_test(t, diff_of_texts_with_too_many_differences_is_one_replacement);
	suite_add_tcase(s, t);
	return run_suite(s);
}
