/* SPDX-License-Identifier: ISC */
/* What a request of the Fever API asks for, and folders as numbers. */
#include <check.h>
#include <stdlib.h>

#include "base/arena.h"
#include "http/readers/fever/fever.h"
#include "http/readers/folder_id.h"
#include "../../suite.h"

START_TEST(keys)
{
	static const char *const BAD[] = {"", "x", "0123456789abcdef0123456789abcde",
		"0123456789abcdef0123456789abcdef0", "0123456789abcdef0123456789abcdeg",
		"0123456789abcdef 123456789abcdef"};
	char key[FEVER_KEY_LEN + 1];

	ck_assert(fever_key_read(FW_STR("0123456789abcdef0123456789abcdef"), key));
	ck_assert_str_eq(key, "0123456789abcdef0123456789abcdef");
	ck_assert(fever_key_read(FW_STR(" 0123456789ABCDEF0123456789ABCDEF\n"), key));
	ck_assert_str_eq(key, "0123456789abcdef0123456789abcdef");
	for (size_t i = 0; i < FW_N(BAD); i++)
		ck_assert_msg(!fever_key_read(fw_str(BAD[i]), key), "%s", BAD[i]);
	ck_assert(!fever_key_read(FW_STR_NONE, key));
}
END_TEST

START_TEST(lists)
{
	static const struct {
		const char *text;
		bool good;
		size_t n;
		int64_t first, last;
	} CASE[] = {
		{"", true, 0, 0, 0},
		{",,", true, 0, 0, 0},
		{"1", true, 1, 1, 1},
		{"1,2,3", true, 3, 1, 3},
		{" 1 , 2,", true, 2, 1, 2},
		{"-1,0,9223372036854775807", true, 3, -1, INT64_MAX},
		{"1,2,3,4,5", true, 4, 1, 4}, /* the first of too many */
		{"1,2,3,4,x", false, 4, 1, 4},
		{"x", false, 0, 0, 0},
		{"1;2", false, 0, 0, 0},
		{"1.5", false, 0, 0, 0},
		{"9223372036854775808", false, 0, 0, 0},
	};

	for (size_t i = 0; i < FW_N(CASE); i++) {
		int64_t id[4];
		size_t n;

		ck_assert_msg(
			fever_ids_read(fw_str(CASE[i].text), id, FW_N(id), &n) == CASE[i].good, "%s", CASE[i].text);
		ck_assert_uint_eq(n, CASE[i].n);
		if (n) {
			ck_assert_int_eq(id[0], CASE[i].first);
			ck_assert_int_eq(id[n - 1], CASE[i].last);
		}
	}
}
END_TEST

START_TEST(marks)
{
	static const struct {
		const char *form, *wrong;
		enum fever_what what;
		enum fever_as as;
		const char *id;
		int64_t before_ms;
	} CASE[] = {
		{"", NULL, FEVER_NOTHING, FEVER_READ, NULL, 0},
		{"as=read&id=1", NULL, FEVER_NOTHING, FEVER_READ, NULL, 0},
		{"mark=&as=read&id=1", NULL, FEVER_NOTHING, FEVER_READ, NULL, 0},
		{"mark=item&as=read&id=1", NULL, FEVER_ITEM, FEVER_READ, "1", 0},
		{"mark=item&as=unread&id=1,2", NULL, FEVER_ITEM, FEVER_UNREAD, "1,2", 0},
		{"mark=item&as=saved&id=x", NULL, FEVER_ITEM, FEVER_SAVED, "x", 0}, /* the list is read later */
		{"mark=item&as=unsaved&id=1", NULL, FEVER_ITEM, FEVER_UNSAVED, "1", 0},
		{"mark=feed&as=read&id=7&before=1700000000", NULL, FEVER_FEED, FEVER_READ, "7", 1700000000000},
		{"mark=group&as=read&id=0&before=", NULL, FEVER_GROUP, FEVER_READ, "0", 0},
		{"mark=group&as=read&id=-1&before=99999999999999", NULL, FEVER_GROUP, FEVER_READ, "-1",
			1000000000000000},
		{"mark=Item&as=read&id=1", "mark", 0, 0, NULL, 0},
		{"mark=item&id=1", "as", 0, 0, NULL, 0},
		{"mark=group&as=unread&id=1", "as", 0, 0, NULL, 0},
		{"mark=item&as=read", "id", 0, 0, NULL, 0},
		{"mark=feed&as=read&id=1,2", "id", 0, 0, NULL, 0},
		{"mark=feed&as=read&id=1&before=x", "before", 0, 0, NULL, 0},
		{"mark=feed&as=read&id=1&before=-1", "before", 0, 0, NULL, 0},
	};
	struct fw_arena arena;

	fw_arena_init(&arena, 0);
	for (size_t i = 0; i < FW_N(CASE); i++) {
		struct fever_mark m;
		struct http_form f;
		const char *wrong;

		ck_assert_int_eq(http_form_read(&arena, fw_str(CASE[i].form), 0, &f), 0);
		wrong = fever_mark_read(&f, &m);
		ck_assert_msg((wrong == NULL) == (CASE[i].wrong == NULL), "%s", CASE[i].form);
		if (wrong) {
			ck_assert_str_eq(wrong, CASE[i].wrong);
			continue;
		}
		ck_assert_int_eq(m.what, CASE[i].what);
		ck_assert_int_eq(m.as, CASE[i].as);
		ck_assert(fw_str_eq(m.id, CASE[i].id ? fw_str(CASE[i].id) : FW_STR_NONE));
		ck_assert_int_eq(m.before_ms, CASE[i].before_ms);
	}
	fw_arena_finish(&arena);
}
END_TEST

/* Clients keep these numbers: they must not change. */
START_TEST(folders)
{
	ck_assert_int_eq(http_folder_id(FW_STR("")), FOLDER_ID_NONE);
	ck_assert_int_eq(http_folder_id(FW_STR_NONE), FOLDER_ID_NONE);
	ck_assert_int_eq(http_folder_id(FW_STR("News")), 1869685041);
	ck_assert_int_eq(http_folder_id(FW_STR("News/Tech")), 67773731);
	for (int i = 0; i < 10000; i++) {
		char name[20];
		int64_t id;

		ck_assert(fw_snprintf(name, sizeof(name), "%d", i));
		id = http_folder_id(fw_str(name));
		ck_assert(id > FOLDER_ID_NONE && id <= INT32_MAX);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit http fever");
	TCase *t = tcase_create("fever");

	tcase_add_test(t, keys);
	tcase_add_test(t, lists);
	tcase_add_test(t, marks);
	tcase_add_test(t, folders);
	suite_add_tcase(s, t);
	return run_suite(s);
}
