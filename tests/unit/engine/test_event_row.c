/* SPDX-License-Identifier: ISC */
/*
 * An event as JSON and back: nothing is lost, and invalid rows are reported. And the ids of a time.
 */
#include <check.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/ids.h"
#include "base/str.h"
#include "feedwheel/ingest.h"
#include "../../suite.h"

START_TEST(there_and_back)
{
	static const struct fw_event CASE[] = {
		{.id = 1,
			.property = {"news", 4},
			.section = 1,
			.item = 2,
			.remote_ip = {"127.0.0.1", 9},
			.stamp_ms = 3},
		{.id = INT64_MAX,
			.property = {"a\0b\"\\\n\xc3\xa9", 8},
			.section = INT64_MIN,
			.item = INT64_C(9007199254740993),
			.remote_ip = {"", 0},
			.stamp_ms = -1},
	};
	struct fw_arena a;
	struct fw_err err;

	fw_arena_init(&a, 0);
	for (size_t i = 0; i < FW_N(CASE); i++) {
		struct fw_buf row = FW_BUF_INIT(0);
		struct fw_event e = {.id = 0};

		fw_event_row_write(&CASE[i], &row);
		ck_assert_int_eq(fw_event_row_parse(fw_buf_str(&row), &a, &e, &err), 0);
		ck_assert(e.id == CASE[i].id && e.section == CASE[i].section && e.item == CASE[i].item &&
			e.stamp_ms == CASE[i].stamp_ms);
		ck_assert(fw_str_eq(e.property, CASE[i].property) && fw_str_eq(e.remote_ip, CASE[i].remote_ip));
		fw_buf_finish(&row);
	}
	fw_arena_finish(&a);
}
END_TEST

#define REST "\"property\":\"p\",\"property_section\":1,\"property_id\":1,\"remote_ip\":\"\""

START_TEST(no_rows)
{
	static const char *const CASE[] = {"", "x", "[]", "1", "{}", "{" REST ",\"id\":1}",
		"{" REST ",\"id\":\"1\",\"stamp\":1}", "{" REST ",\"id\":1.5,\"stamp\":1}",
		"{" REST ",\"id\":1,\"id\":1,\"stamp\":1}", "{" REST ",\"id\":99999999999999999999,\"stamp\":1}",
		"{" REST ",\"id\":1,\"stamp\":1} x", "{\"id\":1,\"stamp\":1,\"property\":null}"};
	struct fw_event e;
	struct fw_arena a;
	struct fw_err err;

	fw_arena_init(&a, 0);
	for (size_t i = 0; i < FW_N(CASE); i++) {
		err = (struct fw_err){.rc = 0};
		ck_assert_msg(
			fw_event_row_parse(fw_str(CASE[i]), &a, &e, &err) == FW_EFORMAT && err.text[0], "%s", CASE[i]);
	}
	ck_assert_int_eq(fw_event_row_parse(FW_STR("{" REST ",\"id\":1,\"stamp\":1}"), &a, &e, &err), 0);
	fw_arena_finish(&a);
	fw_arena_init(&a, 1);
	ck_assert_int_eq(fw_event_row_parse(FW_STR("{" REST ",\"id\":1,\"stamp\":1}"), &a, &e, &err), FW_ENOMEM);
	fw_arena_finish(&a);
}
END_TEST

START_TEST(numbers_of_a_time)
{
	struct fw_ids ids;
	int64_t now_ms = INT64_C(1794067200123);

	fw_ids_init(&ids);
	fw_ids_range(&ids, 7, 1, FW_IDS_SERIAL_MAX);
	ck_assert_int_le(fw_ids_first(now_ms), fw_ids_take(&ids, 1, now_ms));
	ck_assert_int_gt(fw_ids_first(now_ms + 1), fw_ids_take(&ids, 1, now_ms));
	ck_assert_int_eq(fw_ids_ms(fw_ids_first(now_ms)), now_ms);
	ck_assert_int_eq(fw_ids_first(0), 0);
	ck_assert_int_eq(fw_ids_first(INT64_MIN), 0);
	ck_assert_int_eq(fw_ids_first(INT64_MAX), INT64_MAX);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit engine event row");
	TCase *t = tcase_create("rows");

	tcase_add_test(t, there_and_back);
	tcase_add_test(t, no_rows);
	tcase_add_test(t, numbers_of_a_time);
	suite_add_tcase(s, t);
	return run_suite(s);
}
