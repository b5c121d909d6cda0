/* SPDX-License-Identifier: ISC */
/* Pushed events, from bytes to rows: each form, each rule, and errors with their place. */
#include <check.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/str.h"
#include "http/api/event_rules.h"
#include "../../suite.h"

#define MAX 32

struct taken {
	int64_t section[MAX], item[MAX];
	size_t n, begun, full_at;
};

static int put(void *ctx, const struct fw_event *e)
{
	struct taken *t = ctx;

	if (t->n == t->full_at)
		return FW_EAGAIN;
	t->section[t->n] = e->section;
	t->item[t->n++] = e->item;
	return 0;
}

static int again(void *ctx)
{
	struct taken *t = ctx;

	t->n = 0;
	return ++t->begun > 1 ? FW_EGONE : 0;
}

static int read_body(struct taken *t, const char *body, const struct event_rules *rules, struct event_wrong *wrong)
{
	static const struct event_rules USUAL = {FW_STR_NONE, 1, 1};
	struct event_sink to = {put, again, t};
	struct fw_event e = {.stamp_ms = 1};
	size_t n = 99;
	int rc;

	if (!t->full_at)
		t->full_at = MAX;
	rc = events_read(rules ? rules : &USUAL, fw_str(body), &e, &to, &n, wrong);
	ck_assert(rc || n == t->n);
	return rc;
}

START_TEST(forms)
{
	static const struct {
		const char *body;
		size_t n;
	} T[] = {
		{"", 0},
		{" \n", 0},
		{"[]", 0},
		{"[] []", 0},
		{"{\"property\":\"a\",\"section\":1,\"id\":1}", 1},
		{"{\"id\":1,\"section\":1,\"property\":\"a\"}\n{\"property\":\"a\",\"section\":1,\"id\":2}", 2},
		{"[{\"property\":\"a\",\"section\":1,\"id\":1},{\"property\":\"\\u00e9\",\"section\":1,\"id\":2}]", 2},
		{"[{\"property\":\"a\",\"section\":1,\"id\":1}][{\"property\":\"b\",\"section\":1,"
		 "\"id\":2,\"more\":{}}]",
			2},
	};

	for (size_t i = 0; i < FW_N(T); i++) {
		struct event_wrong wrong;
		struct taken t = {0};

		ck_assert_msg(read_body(&t, T[i].body, NULL, &wrong) == 0, "%s: %s", T[i].body, wrong.words);
		ck_assert_msg(t.n == T[i].n, "%s", T[i].body);
		for (size_t k = 0; k < t.n; k++)
			ck_assert_int_eq(t.item[k], (int64_t)k + 1);
	}
}
END_TEST

START_TEST(rules)
{
	static const struct {
		const char *body, *words;
		int64_t section_min, id_min;
	} T[] = {
		{"{\"property\":\"a\",\"section\":0,\"id\":1}", "section is too small (a number above 0)", 1, 1},
		{"{\"property\":\"a\",\"section\":0,\"id\":1}", NULL, 0, 1},
		{"{\"property\":\"a\",\"section\":-5,\"id\":1}", NULL, -5, 1},
		{"{\"property\":\"a\",\"section\":-6,\"id\":1}", "section is too small (a number of at least -5)", -5,
			1},
		{"{\"property\":\"a\",\"id\":1}", "section is missing (a number of at least 0)", 0, 1},
		{"{\"property\":\"a\",\"section\":1.0,\"id\":1}", "section is missing (a number above 0)", 1, 1},
		{"{\"property\":\"a\",\"section\":1,\"id\":6}", "id is too small (a number of at least 7)", 1, 7},
		{"{\"property\":\"b\",\"section\":1,\"id\":1}", NULL, 1, 1},
		{"{\"property\":\"c\",\"section\":1,\"id\":1}", "property is not in push_properties", 1, 1},
		{"{\"property\":\"a,b\",\"section\":1,\"id\":1}", "property is not in push_properties", 1, 1},
		{"{\"property\":\"\",\"section\":1,\"id\":1}", "property is missing (a non-empty string)", 1, 1},
		{"{\"property\":7,\"section\":1,\"id\":1}", "property is missing (a non-empty string)", 1, 1},
		{"7", "not a JSON object", 1, 1},
	};

	for (size_t i = 0; i < FW_N(T); i++) {
		struct event_rules r = {FW_STR(" a, b"), T[i].section_min, T[i].id_min};
		struct event_wrong wrong;
		struct taken t = {0};
		struct fw_buf second = FW_BUF_INIT(0);
		int rc;

		fw_buf_addf(&second, "[{\"property\":\"a\",\"section\":9,\"id\":9},%s]", T[i].body);
		rc = read_body(&t, second.p, &r, &wrong);
		if (!T[i].words) {
			ck_assert_msg(!rc && t.n == 2, "%s", T[i].body);
		} else {
			ck_assert_msg(rc == FW_EINVAL && wrong.n == 2, "%s", T[i].body);
			ck_assert_str_eq(wrong.words, T[i].words);
		}
		fw_buf_finish(&second);
	}
}
END_TEST

START_TEST(malformed)
{
	static const char *const T[] = {"{", "[", "]", "x", "{}x", "[{\"property\":\"a\",\"section\":1,\"id\":1}",
		"{\"property\":\"a\",\"section\":1,\"id\":1}}", "{\"a\":1,\"a\":2}", "\"a",
		"{\"property\":\"a\",\"section\":1,\"id\":99999999999999999999}", "\xff",
		"{\"property\":\"\xff\",\"section\":1,\"id\":1}"};

	for (size_t i = 0; i < FW_N(T); i++) {
		struct event_wrong wrong;
		struct taken t = {0};
		int rc = read_body(&t, T[i], NULL, &wrong);

		ck_assert_msg(rc == FW_EFORMAT || rc == FW_EINVAL, "%s", T[i]);
		ck_assert_msg(rc == FW_EINVAL || (wrong.json.text[0] && wrong.json.line > 0), "%s", T[i]);
	}
}
END_TEST

START_TEST(sink_is_full)
{
	struct event_wrong wrong;
	struct taken t = {.full_at = 1}, u = {.full_at = 1}, v = {.begun = 1};

	ck_assert_int_eq(
		read_body(&t, "{\"property\":\"a\",\"section\":1,\"id\":1}{\"property\":\"a\",\"section\":1,\"id\":1}",
			NULL, &wrong),
		FW_EAGAIN);
	ck_assert_uint_eq(t.begun, 0);
	ck_assert_int_eq(read_body(&u,
				 "[{\"property\":\"\\u0041\",\"section\":1,\"id\":1},"
				 "{\"property\":\"a\",\"section\":1,\"id\":1}]",
				 NULL, &wrong),
		FW_EAGAIN);
	ck_assert_uint_eq(u.begun, 1);
	ck_assert_int_eq(read_body(&v, "[{\"property\":\"\\u0041\",\"section\":1,\"id\":1}]", NULL, &wrong), FW_EGONE);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit http events");
	TCase *tc = tcase_create("events");

	tcase_add_test(tc, forms);
	tcase_add_test(tc, rules);
	tcase_add_test(tc, malformed);
	tcase_add_test(tc, sink_is_full);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
