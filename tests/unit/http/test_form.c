/* SPDX-License-Identifier: ISC */
/* Forms, and the ids of the Google Reader API. */
#include <check.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "http/server/form.h"
#include "http/readers/greader/id.h"
#include "../../suite.h"

static struct fw_arena arena;

static void setup(void)
{
	fw_arena_init(&arena, 0);
}

static void teardown(void)
{
	fw_arena_finish(&arena);
}

START_TEST(fields)
{
	static const struct {
		const char *text, *want; /* "[name]value" of each field */
	} CASE[] = {
		{"", ""},
		{"a=b", "[a]b"},
		{"a=b&c=d", "[a]b[c]d"},
		{"a=1&a=2&b=&=c&d", "[a]1[a]2[b][]c[d]"},
		{"&&a=b&&", "[a]b"},
		{"a=b=c", "[a]b=c"},
		{"a%3Db=c%26d", "[a=b]c&d"},
		{"a=b+c%20d%2Be", "[a]b c d+e"},
		{"a=%", "[a]%"},
		{"a=%4", "[a]%4"},
		{"a=%4x", "[a]%4x"},
		{"a=%x4&b=%41", "[a]%x4[b]A"},
		{"a=%C3%a4", "[a]\xc3\xa4"},
		{"i=tag:google.com,2005:reader/item/0000000000000001&T=x/y",
			"[i]tag:google.com,2005:reader/item/0000000000000001[T]x/y"},
	};

	for (size_t i = 0; i < FW_N(CASE); i++) {
		struct fw_buf got = FW_BUF_INIT(0);
		struct http_form f;

		ck_assert_int_eq(http_form_read(&arena, fw_str(CASE[i].text), 0, &f), 0);
		for (size_t k = 0; k < f.n; k++)
			fw_buf_addf(&got, "[%.*s]%.*s", FW_STR_ARG(f.field[k].name), FW_STR_ARG(f.field[k].value));
		ck_assert_str_eq(got.p ? got.p : "", CASE[i].want);
		fw_buf_finish(&got);
	}
}
END_TEST

START_TEST(values)
{
	struct http_form f;
	size_t at = 0;

	ck_assert_int_eq(http_form_read(&arena, FW_STR("i=1&a=x&i=2"), 1, &f), 0);
	http_form_add(&f, FW_STR("i"), FW_STR("3"));
	http_form_add(&f, FW_STR("i"), FW_STR("there is no room for this one"));
	ck_assert_uint_eq(http_form_count(&f, "i"), 3);
	ck_assert(fw_str_eq(http_form_get(&f, "i"), FW_STR("1")) && fw_str_eq(http_form_get(&f, "a"), FW_STR("x")));
	ck_assert(!http_form_get(&f, "b").p);
	ck_assert(fw_str_eq(http_form_next(&f, "i", &at), FW_STR("1")));
	ck_assert(fw_str_eq(http_form_next(&f, "i", &at), FW_STR("2")));
	ck_assert(fw_str_eq(http_form_next(&f, "i", &at), FW_STR("3")));
	ck_assert(!http_form_next(&f, "i", &at).p);
}
END_TEST

START_TEST(limit)
{
	struct fw_buf text = FW_BUF_INIT(0);
	struct http_form f;

	for (int i = 0; i < FORM_FIELDS_MAX; i++)
		fw_buf_adds(&text, i ? "&i=1" : "i=1");
	ck_assert_int_eq(http_form_read(&arena, fw_buf_str(&text), 0, &f), 0);
	ck_assert_uint_eq(f.n, FORM_FIELDS_MAX);
	ck_assert_int_eq(http_form_read(&arena, fw_buf_str(&text), 1, &f), FW_ELIMIT);
	fw_buf_adds(&text, "&");
	ck_assert_int_eq(http_form_read(&arena, fw_buf_str(&text), 0, &f), FW_ELIMIT);
	fw_buf_finish(&text);
	arena.max_bytes = 1;
	ck_assert_int_eq(http_form_read(&arena, FW_STR("a=b"), 0, &f), FW_ENOMEM);
}
END_TEST

START_TEST(items)
{
	static const struct {
		const char *text;
		int64_t id;
	} GOOD[] = {
		/* Google's own examples, https://github.com/mihaip/google-reader-api/wiki/ItemId */
		{"tag:google.com,2005:reader/item/5d0cfa30041d4348", 6705009029382226760},
		{"6705009029382226760", 6705009029382226760},
		{"tag:google.com,2005:reader/item/024025978b5e50d2", 162170919393841362},
		{"162170919393841362", 162170919393841362},
		{"tag:google.com,2005:reader/item/fb115bd6d34a8e9f", -355401917359550817},
		{"-355401917359550817", -355401917359550817},
		{"fb115bd6d34a8e9f", -355401917359550817},
		/* unpadded (NetNewsWire), bare (Reeder), decimal (liferea) */
		{"tag:google.com,2005:reader/item/3e9", 1001},
		{"tag:google.com,2005:reader/item/00000000000003E9", 1001},
		{"00000000000003e9", 1001},
		{"0000000000001001", 0x1001},
		{"1001", 1001},
		{"1", 1},
		{"0", 0},
	};
	static const char *const BAD[] = {
		"",
		" 1",
		"1 ",
		"1x",
		"3e9",
		"tag:google.com,2005:reader/item/",
		"tag:google.com,2005:reader/item/x",
		"tag:google.com,2005:reader/item/-1",
		"tag:google.com,2005:reader/item/12345678901234567",
		"tag:google.com,2005:reader/feed/1",
		"9223372036854775808",
		"fb115bd6d34a8e9g",
		"0fb115bd6d34a8e9f",
	};
	char text[GREADER_ITEM_MAX];
	int64_t id;

	for (size_t i = 0; i < FW_N(GOOD); i++) {
		ck_assert_msg(greader_item_read(fw_str(GOOD[i].text), &id), "%s", GOOD[i].text);
		ck_assert_int_eq(id, GOOD[i].id);
		greader_item_write(text, id);
		ck_assert(greader_item_read(fw_str(text), &id));
		ck_assert_int_eq(id, GOOD[i].id);
	}
	for (size_t i = 0; i < FW_N(BAD); i++)
		ck_assert_msg(!greader_item_read(fw_str(BAD[i]), &id), "%s", BAD[i]);
	greader_item_write(text, 1001);
	ck_assert_str_eq(text, "tag:google.com,2005:reader/item/00000000000003e9");
}
END_TEST

START_TEST(streams)
{
	static const struct {
		const char *text;
		enum greader_kind kind;
		int64_t feed_id;
		const char *name; /* or the URL */
	} GOOD[] = {
		{"user/-/state/com.google/reading-list", GREADER_ALL, 0, NULL},
		{"user/1/state/com.google/reading-list", GREADER_ALL, 0, NULL},
		{"user/-/state/com.google/read", GREADER_READ, 0, NULL},
		{"user/-/state/com.google/kept-unread", GREADER_UNREAD, 0, NULL},
		{"user/-/state/com.google/starred", GREADER_STARRED, 0, NULL},
		{"user/-/state/com.google/tracking-kept-unread", GREADER_OTHER, 0, NULL},
		{"user/-/state/com.google/broadcast", GREADER_OTHER, 0, NULL},
		{"user/-/state/org.freshrss/main", GREADER_OTHER, 0, NULL},
		{"user/-/label/News", GREADER_NAMED, 0, "News"},
		{"user/-/label/News/Tech & more", GREADER_NAMED, 0, "News/Tech & more"},
		{"user/-/label/\xc3\xa4", GREADER_NAMED, 0, "\xc3\xa4"},
		{"feed/1", GREADER_FEED, 1, NULL},
		{"feed/9223372036854775807", GREADER_FEED, INT64_MAX, NULL},
		{"feed/https://example.org/feed?a=b", GREADER_FEED, 0, "https://example.org/feed?a=b"},
		{"feed/example.org", GREADER_FEED, 0, "example.org"},
		{"feed/1x", GREADER_FEED, 0, "1x"},
	};
	static const char *const BAD[] = {"", "feed", "feed/", "feed/0", "feed/9223372036854775808", "feed/a\nb",
		"feed/a\xff", "user", "user/", "user/-", "user/-/", "user//label/x", "user/-/label/",
		"user/-/label/a\tb", "user/-/label/\xff", "user/-/state/", "user/-/other/x", "news", "/feed/1"};
	struct greader_stream s;
	char *long_name;

	for (size_t i = 0; i < FW_N(GOOD); i++) {
		ck_assert_msg(greader_stream_read(fw_str(GOOD[i].text), &s), "%s", GOOD[i].text);
		ck_assert_int_eq(s.kind, GOOD[i].kind);
		ck_assert_int_eq(s.feed_id, GOOD[i].feed_id);
		ck_assert(fw_str_eq(s.kind == GREADER_FEED ? s.url : s.name, fw_str(GOOD[i].name)));
	}
	for (size_t i = 0; i < FW_N(BAD); i++)
		ck_assert_msg(!greader_stream_read(fw_str(BAD[i]), &s), "%s", BAD[i]);
	long_name = fw_arena_printf(&arena, "user/-/label/%0*d", 200, 1);
	ck_assert(greader_stream_read(fw_str(long_name), &s));
	long_name = fw_arena_printf(&arena, "user/-/label/%0*d", 201, 1);
	ck_assert(!greader_stream_read(fw_str(long_name), &s));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit http form");
	TCase *t = tcase_create("forms and ids");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, fields);
	tcase_add_test(t, values);
	tcase_add_test(t, limit);
	tcase_add_test(t, items);
	tcase_add_test(t, streams);
	suite_add_tcase(s, t);
	return run_suite(s);
}
