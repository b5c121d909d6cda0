/* SPDX-License-Identifier: ISC */
/* From bytes to UTF-8: CHR-01 ... CHR-05. */
#include <stdlib.h>
#include <string.h>

#include "decode.h"
#include "parse/charset/charset.h"
#include "parse/charset/sniff.h"
#include "../../suite.h"

START_TEST(order) /* CHR-01 */
{
	static const struct {
		struct fw_str bytes;
		const char *type, *encoding, *has;
		bool wrong;
	} T[] = {
		{LIT("<a>x</a>"), NULL, "utf-8", "x", false},
		{LIT("<a>\xc3\xa9</a>"), NULL, "utf-8", "\xc3\xa9", false},
		{LIT("\xef\xbb\xbf<a>\xc3\xa9</a>"), "text/xml; charset=iso-8859-1", "utf-8", "<a>\xc3\xa9", false},
		{LIT("<?xml version='1.0' encoding='iso-8859-1'?><a>\xe9</a>"), NULL, "windows-1252", "\xc3\xa9",
			false},
		{LIT("<?xml version='1.0' encoding='utf-8'?><a>\xe9</a>"), "text/xml; charset=\"windows-1251\"",
			"windows-1251", "\xd0\xb9", false},
		{LIT("<?xml version=\"1.0\" encoding=\"Shift_JIS\"?><a>\x83\x65</a>"), "application/xml", "shift_jis",
			"\xe3\x83\x86", false},
		{LIT("<?xml version='1.0' encoding='gb2312'?><a>\xd6\xd0</a>"), NULL, "gb18030", "\xe4\xb8\xad", false},
		{LIT("<?xml version='1.0' encoding='euc-kr'?><a>\xb0\xa1\x8c\x63</a>"), NULL, "euc-kr", "\xea\xb0\x80",
			false},
		{LIT("<?xml version='1.0' encoding='x-nonsense'?><a>\xc3\xa9</a>"), NULL, "utf-8", "\xc3\xa9", true},
		{LIT("<?xml version='1.0' encoding='utf-16'?><a>\xc3\xa9</a>"), NULL, "utf-8", "\xc3\xa9", true},
		{LIT("<?xml version='1.0' encoding='utf-7'?><a>+AGE-</a>"), NULL, "utf-8", "+AGE-", true}, /* CHR-02 */
		{LIT("<?xml version='1.0' encoding='ISO-2022-CN-EXT'?><a>x</a>"), NULL, "utf-8", "x", true},
		{LIT("<?xml version='1.0' encoding='us-ascii'?><a>\xc3\xa9</a>"), NULL, "utf-8", "\xc3\xa9", true},
		{LIT("<?xml version='1.0' encoding='utf-8'?><a>na\xefve caf\xe9</a>"), NULL, "windows-1252",
			"na\xc3\xafve", true},
		{LIT("<a>\xe2\x82\xac \xe2\x82\xac \xe2\x82\xac \xe2\x82\xac \xe2\x82"), NULL, "utf-8",
			"\xe2\x82\xac \xef\xbf\xbd", true},
		{LIT("<\0a\0>\0\xac\x20"), NULL, "utf-16le", "\xe2\x82\xac", false},
		{LIT("\0<\0a\0>\x20\xac"), NULL, "utf-16be", "\xe2\x82\xac", false},
		{LIT("\xfe\xff\0<\0a\0>\xd8\x3d\xde\x00"), NULL, "utf-16be", "\xf0\x9f\x98\x80", false},
		{LIT("\xff\xfe<\0a\0>\0\x3d\xd8x\0"), NULL, "utf-16le", "\xef\xbf\xbdx",
			true}, /* CHR-04: a lone surrogate */
		{LIT("\xff\xfe\0\0<\0\0\0a\0\0\0>\0\0\0"), NULL, "utf-32le", "<a>", false},
		{LIT("\0\0\0<\0\0\0a\0\x11\0\0"), NULL, "utf-32be", "<a\xef\xbf\xbd", true},
		{LIT("<a>x\0y</a>"), NULL, "utf-8", "xy", true}, /* CHR-05 */
		/* too short to guess from */
		{LIT("<a>\x93test\x94 \xa3</a>"), NULL, "windows-1252", "\xe2\x80\x9ctest", true},
		{LIT("<?xml version='1.0' encoding='utf-8'?><a>\xc3\xa9</a>"), "text/xml; charset=iso-8859-1", "utf-8",
			"\xc3\xa9", true},
		{LIT("<?xml version='1.0' encoding='utf-8'?><a>\xe9</a>"), "text/xml; charset=iso-8859-1",
			"windows-1252", "\xc3\xa9", false},
		{LIT("{\"a\": \"<?xml version='1.0' encoding='koi8-r'?>\xc3\xa9\"}"), NULL, "utf-8", "\xc3\xa9", false},
		{LIT("<?xml version='1.0' encoding='windows-1252'?><a>\x80\x9d</a>"), NULL, "windows-1252",
			"\xe2\x82\xac\xc2\x9d", false},
	};

	decode(T[_i].bytes, T[_i].type);
	ck_assert_str_eq(R.encoding, T[_i].encoding);
	ck_assert_msg(fw_str_find(R.text, fw_str(T[_i].has)) != NULL, "%.*s", FW_STR_ARG(R.text));
	ck_assert_int_eq(R.wrong, T[_i].wrong);
	ck_assert_int_eq(R.problem != NULL, T[_i].wrong);
	ck_assert(!fw_str_starts(R.text, FW_STR("\xef\xbb\xbf")));
}
END_TEST

START_TEST(utf8_is_not_copied)
{
	struct fw_str s = FW_STR("<a>\xc3\xa9</a>");

	decode(s, "text/xml; charset=utf-8");
	ck_assert_ptr_eq(R.text.p, s.p);
	decode((struct fw_str){NULL, 0}, NULL);
	ck_assert_uint_eq(R.text.len, 0);
}
END_TEST

START_TEST(rescue_by_sniffing)
{
	/* Russian in windows-1251, declared as UTF-8 */
	static const char text[] =
		"<?xml version='1.0' encoding='utf-8'?><a>\xcf\xf0\xe8\xe2\xe5\xf2, \xfd\xf2\xee "
		"\xe4\xee\xf1\xf2\xe0\xf2\xee\xf7\xed\xee \xe4\xeb\xe8\xed\xed\xfb\xe9 \xf2\xe5\xea\xf1\xf2 \xed\xe0 "
		"\xf0\xf3\xf1\xf1\xea\xee\xec \xff\xe7\xfb\xea\xe5 \xe4\xeb\xff"
		" \xf3\xe3\xe0\xe4\xfb\xe2\xe0\xed\xe8\xff</a>";

	decode(LIT(text), NULL);
	ck_assert_str_eq(R.encoding, "windows-1251");
	ck_assert(R.wrong);
	ck_assert_str_eq(R.declared_by, "sniffed");
}
END_TEST

START_TEST(header)
{
	char type[32];

	ck_assert(fw_str_eq(fw_charset_of_type(FW_STR("text/xml; a=b; charset = 'UTF-8' ; c")), FW_STR("UTF-8")));
	ck_assert_ptr_null(fw_charset_of_type(FW_STR("text/xml")).p);
	ck_assert_ptr_null(fw_charset_of_type(FW_STR("text/xml; charset=")).p);
	fw_media_type(FW_STR(" Text/HTML ; charset=x"), type, sizeof(type));
	ck_assert_str_eq(type, "text/html");
	ck_assert_str_eq(fw_charset_label(FW_STR(" Latin1 ")), "windows-1252"); /* CHR-03 */
	ck_assert_str_eq(fw_charset_label(FW_STR("KS_C_5601-1987")), "euc-kr");
	ck_assert_ptr_null(fw_charset_label(FW_STR("IBM1390")));
	ck_assert_ptr_null(fw_charset_label(FW_STR("")));
}
END_TEST

/*
 * glibc's Korean decoder refuses A2 E8 after it has moved beyond it: reading must not continue
 * beyond the end.
 */
START_TEST(korean_ends_in_a_hole)
{
	char *exact = malloc(2);

	ck_assert_ptr_nonnull(exact);
	memcpy(exact, "\xa2\xe8", 2);
	decode((struct fw_str){exact, 2}, "text/xml; charset=euc-kr");
	ck_assert_uint_le(R.text.len, 6);
	free(exact);
}
END_TEST

START_TEST(memory_is_bounded)
{
	struct fw_err err;
	char *big = malloc(1 << 20);

	ck_assert_ptr_nonnull(big);
	memset(big, 0xe9, 1 << 20);
	fw_arena_finish(&A);
	fw_arena_init(&A, 1 << 20);
	ck_assert_int_eq(fw_charset_decode(&A, (struct fw_str){big, 1 << 20}, FW_STR_NONE, &R, &err), FW_ELIMIT);
	free(big);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit parse charset");
	TCase *t = tcase_create("charset");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, order, 0, 27);
	tcase_add_test(t, utf8_is_not_copied);
	tcase_add_test(t, rescue_by_sniffing);
	tcase_add_test(t, header);
	tcase_add_test(t, korean_ends_in_a_hole);
	tcase_add_test(t, memory_is_bounded);
	suite_add_tcase(s, t);
	return run_suite(s);
}
