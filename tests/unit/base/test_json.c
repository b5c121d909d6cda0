/* SPDX-License-Identifier: ISC */
/* The JSON writer, read back by an independent reader (jansson). */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"
#include "../../suite.h"

START_TEST(shapes)
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct fw_json j;

	fw_json_init(&j, &b, false);
	fw_json_object(&j, NULL);
	fw_json_str(&j, "s", FW_STR("x"));
	fw_json_str(&j, "absent", FW_STR_NONE);
	fw_json_cstr(&j, "absent", NULL);
	fw_json_str(&j, "empty", FW_STR(""));
	fw_json_int(&j, "min", INT64_MIN);
	fw_json_bool(&j, "yes", true);
	fw_json_null(&j, "null");
	fw_json_time(&j, "t", 0);
	fw_json_time(&j, "none", INT64_MIN);
	fw_json_array(&j, "a");
	fw_json_int(&j, NULL, 1);
	fw_json_object(&j, NULL);
	fw_json_end(&j);
	fw_json_array(&j, NULL);
	fw_json_end(&j);
	fw_json_end(&j);
	fw_json_end(&j);
	ck_assert_str_eq(b.p,
		"{\"s\":\"x\",\"empty\":\"\",\"min\":-9223372036854775808,\"yes\":true,\"null\":null,"
		"\"t\":\"1970-01-01T00:00:00Z\",\"a\":[1,{},[]]}");
	fw_buf_reset(&b);
	fw_json_init(&j, &b, true);
	fw_json_object(&j, NULL);
	fw_json_array(&j, "a");
	fw_json_int(&j, NULL, 1);
	fw_json_int(&j, NULL, 2);
	fw_json_end(&j);
	fw_json_object(&j, "e");
	fw_json_end(&j);
	fw_json_end(&j);
	ck_assert_str_eq(b.p, "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"e\": {}\n}\n");
	fw_buf_finish(&b);
}
END_TEST

START_TEST(numbers)
{
	static const struct {
		double v;
		const char *want;
	} T[] = {
		{0, "0"},
		{-1, "-1"},
		{0.5, "0.5"},
		{1e14, "100000000000000"},
		{1e300, "1e+300"},
		{-2.25, "-2.25"},
		{1.0 / 3, "0.333333333333333"},
		{HUGE_VAL, "null"},
		{-HUGE_VAL, "null"},
		{NAN, "null"},
	};

	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_buf b = FW_BUF_INIT(0);
		struct fw_json j;

		fw_json_init(&j, &b, false);
		fw_json_double(&j, NULL, T[i].v);
		ck_assert_str_eq(b.p, T[i].want);
		fw_buf_finish(&b);
	}
}
END_TEST

START_TEST(strings_escaped)
{
	static const struct {
		struct fw_str in;
		const char *want;
	} T[] = {
		{{"a\"b\\c/", 6}, "\"a\\\"b\\\\c/\""},
		{{"\b\f\n\r\t", 5}, "\"\\b\\f\\n\\r\\t\""},
		{{"\0\x01\x1f\x7f", 4}, "\"\\u0000\\u0001\\u001f\\u007f\""},
		{{"\xc3\xa9\xf0\x9f\x98\x80", 6}, "\"\xc3\xa9\xf0\x9f\x98\x80\""},
		{{"a\xff"
		  "b\xc3",
			 4},
			"\"a\xef\xbf\xbd"
			"b\xef\xbf\xbd\""},
		{{"\xed\xa0\x80", 3}, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
		{{"", 0}, "\"\""},
	};

	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_buf b = FW_BUF_INIT(0);

		fw_json_escape(&b, T[i].in);
		ck_assert_msg(strcmp(b.p, T[i].want) == 0, "row %zu: %s", i, b.p);
		fw_buf_finish(&b);
	}
}
END_TEST

/* Any bytes as value and key: jansson reads what was written. */
START_TEST(any_bytes_come_back)
{
	uint64_t x = 88172645463325252u;

	for (int round = 0; round < 3000; round++) {
		struct fw_buf b = FW_BUF_INIT(0), want = FW_BUF_INIT(0);
		struct fw_json j;
		char in[64];
		size_t len = (size_t)round % sizeof(in), n;
		json_t *root, *value;

		for (size_t i = 0; i < len; i++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			in[i] = (char)(x >> (round % 3 ? 32 : 57));
		}
		for (size_t i = 0; i < len; i += n)
			fw_buf_addcp(&want, fw_utf8_get(in + i, len - i, &n));
		fw_json_init(&j, &b, round & 1);
		fw_json_object(&j, NULL);
		fw_json_str(&j, "k\"\n", (struct fw_str){in, len});
		fw_json_end(&j);
		root = json_loadb(b.p, b.len, JSON_ALLOW_NUL, NULL);
		ck_assert_msg(root != NULL, "%s", b.p);
		value = json_object_get(root, "k\"\n");
		ck_assert(fw_str_eq(
			(struct fw_str){json_string_value(value), json_string_length(value)}, fw_buf_str(&want)));
		json_decref(root);
		fw_buf_finish(&b);
		fw_buf_finish(&want);
	}
}
END_TEST

START_TEST(too_deep_is_reported)
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct fw_json j;

	fw_json_init(&j, &b, false);
	for (int i = 0; i < 63; i++)
		fw_json_array(&j, NULL);
	ck_assert_int_eq(b.rc, 0);
	for (int i = 0; i < 63; i++)
		fw_json_end(&j);
	ck_assert(b.rc == 0 && b.len == 126 && strspn(b.p, "[") == 63);
	fw_buf_reset(&b);
	fw_json_init(&j, &b, true);
	for (int i = 0; i < 200; i++)
		fw_json_object(&j, i ? "k" : NULL);
	ck_assert_int_eq(b.rc, FW_ELIMIT);
	for (int i = 0; i < 200; i++)
		fw_json_end(&j);
	ck_assert(j.depth == 0 && b.rc == FW_ELIMIT);
	fw_buf_finish(&b);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit base json");
	TCase *t = tcase_create("json");

	tcase_add_test(t, shapes);
	tcase_add_test(t, numbers);
	tcase_add_test(t, strings_escaped);
	tcase_add_test(t, any_bytes_come_back);
	tcase_add_test(t, too_deep_is_reported);
	suite_add_tcase(s, t);
	return run_suite(s);
}
