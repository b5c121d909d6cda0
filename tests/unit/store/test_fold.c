/* SPDX-License-Identifier: ISC */
/*
 * One folding for all engines: the words of a text, and that texts that a reader takes for equal
 * have equal words.
 */
#include <check.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "query/fold.h"
#include "query/tokens.h"
#include "query/words.h"
#include "../../suite.h"

/* The words of a text, each after a space. The caller frees it. */
static char *words_of(const char *text, bool html)
{
	struct fw_buf b = FW_BUF_INIT(0), out = FW_BUF_INIT(0);
	struct query_token t;
	struct fw_str rest;
	size_t len;

	if (html)
		query_words_html(&b, fw_str(text));
	else
		query_words(&b, fw_str(text));
	rest = fw_buf_str(&b);
	while (query_token_next(&rest, &t)) {
		fw_buf_addc(&out, ' ');
		fw_buf_add(&out, t.text, t.len);
	}
	fw_buf_adds(&out, ".");
	fw_buf_finish(&b);
	return fw_buf_take(&out, &len);
}

static const struct {
	const char *text, *words;
} WORDS[] = {
	{"", "."},
	{"Plain ASCII, 2 times", " plain ascii 2 times."},
	{"don't-stop", " don t stop."},
	{u8"Été", " ete."},
	{u8"E\u0301te\u0301", " ete."},
	{u8"Straße STRASSE STRAẞE", " strasse strasse strasse."},
	{u8"İstanbul Istanbul istanbul", " istanbul istanbul istanbul."},
	{u8"ΟΔΟΣ οδός οδοσ", u8" οδοσ οδοσ οδοσ."},
	{u8"ｆｕｌｌ　ＷＩＤＴＨ１", " full width1."},
	{u8"ﬁle oﬃce", " file office."},
	{u8"Ǆ ǅ ǆ", " dz dz dz."},
	{u8"Ёлка Йод", u8" елка иод."},
	{u8"Việt Vie\u0302\u0323t", " viet viet."},
	{u8"Ångström A\u030angström Ångström", " angstrom angstrom angstrom."},
	{u8"Ærø Łódź", u8" ærø łodz."},
	{u8"x² ½", " x2 1 2."},
	{u8"Apple™ ©2026", " apple 2026."},
	{u8"soft\u00adhyphen zero\u200bwidth", " softhyphen zerowidth."},
	{u8"«quoted»—dash…", " quoted dash."},
	{u8"שָׁלוֹם", u8" שלום."},
	{u8"مُحَمَّد محمد", u8" محمد محمد."},
	{u8"ﻣﺤﻤﺪ", u8" محمد."},
	{u8"की का", u8" की का."},
	{u8"東京都", u8" 東 京 都."},
	{u8"がく かく", u8" が く か く."},
	{u8"か\u3099く ｶﾞｸ", u8" が く ガ ク."},
	{u8"は\u309aん パン ﾊﾟﾝ", u8" ぱ ん パ ン パ ン."},
	{u8"한국", u8" 한국."},
	{u8"ไทย", u8" ไ ท ย."},
	{"\xff"
	 "a\xc3",
		" a."},
	{u8"𝐁old 𝒊", " bold i."},
	{u8"ⓐ ⅷ", " viii."},
	{u8"\ufdfa", u8" صلى الله عليه وسلم."},
};

START_TEST(words)
{
	char *got = words_of(WORDS[_i].text, false), *twice;

	ck_assert_msg(strcmp(got, WORDS[_i].words) == 0, "%s: \"%s\" instead of \"%s\"", WORDS[_i].text, got,
		WORDS[_i].words);
	twice = words_of(got, false); /* folding is idempotent */
	ck_assert_str_eq(twice, got);
	free(got);
	free(twice);
}
END_TEST

START_TEST(words_in_html)
{
	static const struct {
		const char *html, *words;
	} t[] = {
		{"<p>&Eacute;t&eacute; &#201;T&#xc9;</p>", " ete ete."},
		{"Stra&szlig;e&shy;n &AElig;", u8" strassen æ."},
		{"A<b>B</b>C", " a b c."},
		{u8"<i>É</i>t&eacute;", " e te."},
		{"&#xfb01;le &#x30ab;&#x3099;", u8" file カ."},
	};

	for (size_t i = 0; i < FW_N(t); i++) {
		char *got = words_of(t[i].html, true);

		ck_assert_msg(strcmp(got, t[i].words) == 0, "%s: \"%s\" instead of \"%s\"", t[i].html, got, t[i].words);
		free(got);
	}
}
END_TEST

START_TEST(every_character) /* each character folds to word characters, and folding those again changes nothing */
{
	for (uint32_t c = 0; c <= 0x10ffff; c++) {
		uint32_t out[FW_FOLD_MAX], again[FW_FOLD_MAX];
		int n = query_fold(c, out);

		if (n > FW_FOLD_MAX) /* an assertion for each costs seconds */
			ck_abort_msg("U+%04X becomes %d characters", c, n);
		for (int i = 0; i < n; i++) {
			if (out[i] != ' ' && (query_fold(out[i], again) != 1 || again[0] != out[i]))
				ck_abort_msg("U+%04X: U+%04X is folded again", c, out[i]);
		}
	}
}
END_TEST

START_TEST(long_words_are_cut_between_characters)
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct query_token t;
	struct fw_str rest;

	fw_buf_adds(&b, "x");
	for (int i = 0; i < 100; i++)
		fw_buf_adds(&b, u8"ж");
	rest = fw_buf_str(&b);
	ck_assert(query_token_next(&rest, &t));
	ck_assert_uint_eq(t.len, 63);
	ck_assert_uint_eq(fw_utf8_valid(t.text, t.len), t.len);
	ck_assert(!query_token_next(&rest, &t));
	fw_buf_finish(&b);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit store fold");
	TCase *tc = tcase_create("folding");

	tcase_add_loop_test(tc, words, 0, (int)FW_N(WORDS));
	tcase_add_test(tc, words_in_html);
	tcase_add_test(tc, every_character);
	tcase_add_test(tc, long_words_are_cut_between_characters);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
