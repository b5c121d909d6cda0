/* SPDX-License-Identifier: ISC */
/*
 * Each encoding of the WHATWG Encoding Standard: its whole table, a text in it under each
 * declaration, right and wrong, and the places where browsers differ from iconv. CHR-01 ... CHR-05.
 */
#include <iconv.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "decode.h"
#include "parse/charset/charset.h"
#include "parse/charset/decode.h"
#include "../../suite.h"

/* ---- a text in each, under each declaration -------------------------------------------------- */

static const struct text {
	const char *label, *encoding, *iconv, *text;
} TEXT[] = {
	{"utf-8", "utf-8", "UTF-8", "Grüße aus Köln, señor Łódź – 100 €"},
	{"ISO-8859-1", "windows-1252", "CP1252", "Grüße aus Köln, señor; “quotes” – 100 €"},
	{"windows-1252", "windows-1252", "CP1252", "Élève, garçon, œuvre… naïveté, 5 €"},
	{"iso-8859-2", "iso-8859-2", "ISO-8859-2", "Zażółć gęślą jaźń, příliš žluťoučký kůň"},
	{"latin3", "iso-8859-3", "ISO-8859-3", "Eĥoŝanĝo ĉiuĵaŭde, ħobż Malti"},
	{"iso-8859-4", "iso-8859-4", "ISO-8859-4", "Eesti õhtu, Lietuvių ąžuolas, Rīga"},
	{"iso-8859-5", "iso-8859-5", "ISO-8859-5", "Съешь ещё этих мягких французских булок"},
	{"iso-8859-6", "iso-8859-6", "ISO-8859-6", "نص عربي قصير للتجربة"},
	{"greek", "iso-8859-7", "ISO-8859-7", "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία"},
	{"iso-8859-8-i", "iso-8859-8", "ISO-8859-8", "דג סקרן שט בים מאוכזב"},
	{"iso-8859-10", "iso-8859-10", "ISO-8859-10", "Sámegiella čáppa, þetta er íslenska, ŋ đ"},
	{"iso-8859-13", "iso-8859-13", "ISO-8859-13", "Įlinkdama fechtuotojo špaga sublykčiojusi ėjo"},
	{"iso-8859-14", "iso-8859-14", "ISO-8859-14", "Ŵ ŵ Ŷ ŷ ac mae ḃ ḋ ḟ yn Gaeilge"},
	{"latin-9", "iso-8859-15", "ISO-8859-15", "Un cœur coûte 3 €, Žižka šumí"},
	{"iso-8859-16", "iso-8859-16", "ISO-8859-16", "Înțelepciunea și țăranul, ăâ, 7 €"},
	{"KOI8-R", "koi8-r", "KOI8-R", "Съешь ещё этих мягких французских булок"},
	{"koi8-u", "koi8-u", "KOI8-U", "Їжак і ґедзь: щастя, яке єднає"},
	{"macintosh", "macintosh", "MACINTOSH", "Élève à Zürich, ƒ ≈ π, “œuvre”"},
	{"tis-620", "windows-874", "CP874", "เป็นมนุษย์สุดประเสริฐ"},
	{"windows-1250", "windows-1250", "CP1250", "Zażółć gęślą jaźń – „cytat”, 5 €"},
	{"windows-1251", "windows-1251", "CP1251", "Съешь ещё этих мягких «булок» – № 5"},
	{"windows-1253", "windows-1253", "CP1253", "Ξεσκεπάζω την ψυχοφθόρα – 5 €"},
	{"iso-8859-9", "windows-1254", "CP1254", "Pijamalı hasta yağız şoföre çabucak güvendi"},
	{"windows-1255", "windows-1255", "CP1255", "דג סקרן שט בים מאוכזב – 5 €"},
	{"windows-1256", "windows-1256", "CP1256", "نص عربي قصير للتجربة، پچژ"},
	{"windows-1257", "windows-1257", "CP1257", "Įlinkdama fechtuotojo špaga – 5 €"},
	{"windows-1258", "windows-1258", "CP1258",
		"Đàn ông, nươ\xcc\x81"
		"c, bo\xcc\xa3, ư ơ ă â"},
	{"x-mac-ukrainian", "x-mac-cyrillic", "MAC-CYRILLIC", "Съешь ещё этих мягких булок – № 5"},
	{"cp866", "ibm866", "CP866", "Съешь ещё этих мягких французских булок ░"},
	{"gb2312", "gb18030", "GB18030", "中文网页的编码，简体字"},
	{"gbk", "gb18030", "GB18030", "朱镕基與繁體字，简体字"},
	{"GB18030", "gb18030", "GB18030", "㐀㐁𠀀𠀁 中文 ꀀ"},
	{"big5", "big5", "BIG5-HKSCS", "繁體中文網頁的編碼"},
	{"big5-hkscs", "big5", "BIG5-HKSCS", "香港嘅廣東話，係咁㗎喇"},
	{"EUC-JP", "euc-jp", "EUC-JP", "日本語の文字コード、ｶﾀｶﾅ"},
	{"x-sjis", "shift_jis", "CP932", "日本語の文字コード、ｶﾀｶﾅ ①㈱"},
	{"iso-2022-jp", "iso-2022-jp", "ISO-2022-JP", "日本語の文字コード"},
	{"euc-kr", "euc-kr", "EUC-KR", "한국어 문자 인코딩 시험"},
	{"ks_c_5601-1987", "euc-kr", "CP949", "똠방각하 펲시콜라 쌰 뷁"},
};

static struct fw_str encoded(const char *name, const char *utf8)
{
	iconv_t cd = iconv_open(name, "UTF-8");
	size_t left = strlen(utf8), space = 4 * left + 64;
	char *in = (char *)(uintptr_t)utf8, *p = fw_arena_alloc(&A, space), *at = p;

	ck_assert_msg(cd != (iconv_t)-1, "%s", name);
	ck_assert_msg(iconv(cd, &in, &left, &at, &space) == 0, "%s cannot hold all of it from \"%s\" on", name, in);
	ck_assert_int_ne((int)iconv(cd, NULL, NULL, &at, &space), -1);
	iconv_close(cd);
	return (struct fw_str){p, (size_t)(at - p)};
}

static struct fw_str document(const char *declared, struct fw_str inside)
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct fw_str all;

	if (declared)
		fw_buf_addf(&b, "<?xml version='1.0' encoding='%s'?>\n", declared);
	fw_buf_adds(&b, "<rss><channel><title>");
	fw_buf_addstr(&b, inside);
	fw_buf_adds(&b, "</title></channel></rss>");
	all = fw_arena_str(&A, fw_buf_str(&b));
	fw_buf_finish(&b);
	return all;
}

static const char *header(const char *label)
{
	return label ? fw_arena_printf(&A, "application/xml; charset=\"%s\"", label) : "application/xml";
}

static void reads(
	const struct text *t, struct fw_str bytes, const char *http, const char *encoding, bool wrong, const char *by)
{
	decode(bytes, header(http));
	ck_assert_msg(
		fw_str_find(R.text, fw_str(t->text)) != NULL, "%s, by %s: %.*s", t->label, by, FW_STR_ARG(R.text));
	ck_assert_str_eq(R.encoding, encoding);
	ck_assert_str_eq(R.declared_by, by);
	ck_assert_msg(R.wrong == wrong, "%s by %s: %s", t->label, by, R.wrong ? R.problem : "nothing wrong");
}

START_TEST(under_each_declaration) /* CHR-01 */
{
	const struct text *t = &TEXT[_i];
	struct fw_str in = encoded(t->iconv, t->text), utf8 = fw_str(fw_arena_printf(&A, "%s %s", t->text, t->text));
	bool seven_bit = strcmp(t->encoding, "iso-2022-jp") == 0, is_utf8 = strcmp(t->encoding, "utf-8") == 0;

	reads(t, document(NULL, in), t->label, t->encoding, false, "http");
	reads(t, document(t->label, in), NULL, t->encoding, false, "xml");
	reads(t, document(t->label, in), t->label, t->encoding, false, "http");
	if (!seven_bit) /* the header counts first, whatever the declaration */
		reads(t, document("utf-8", in), t->label, t->encoding, false, "http");
	/* the header's encoding does not fit, the declared one does */
	if (!seven_bit && !is_utf8)
		reads(t, document(t->label, in), "utf-8", t->encoding, true, "xml");
	reads(t, document(t->label, in), "x-nonsense", t->encoding, true, "xml");
	reads(t, document("utf-16", in), t->label, t->encoding, true, "http");
	/*
	 * UTF-8 under a wrong label, in the header and in the declaration: too much of it for
	 * chance
	 */
	reads(t, document(t->label, utf8), NULL, "utf-8", !is_utf8, is_utf8 ? "xml" : "default");
	reads(t, document(NULL, utf8), t->label, "utf-8", !is_utf8, is_utf8 ? "http" : "default");
	/* no declaration: the result is valid, with a problem if it is not UTF-8 */
	decode(document(NULL, in), NULL);
	ck_assert_int_eq(R.wrong, !seven_bit && !is_utf8);
}
END_TEST

START_TEST(a_mark_overrides_all)
{
	static const struct {
		const char *iconv, *encoding;
		struct fw_str mark;
	} WIDE[] = {
		{"UTF-8", "utf-8", LIT("\xef\xbb\xbf")},
		{"UTF-16LE", "utf-16le", LIT("\xff\xfe")},
		{"UTF-16BE", "utf-16be", LIT("\xfe\xff")},
		{"UTF-32LE", "utf-32le", LIT("\xff\xfe\0\0")},
		{"UTF-32BE", "utf-32be", LIT("\0\0\xfe\xff")},
	};
	const struct text *t = &TEXT[_i];

	for (size_t k = 0; k < FW_N(WIDE); k++) {
		struct fw_str text = document(t->label, fw_str(t->text)), bytes;
		struct fw_buf b = FW_BUF_INIT(0);

		bytes = encoded(WIDE[k].iconv, fw_arena_dup(&A, text.p, text.len));
		fw_buf_addstr(&b, WIDE[k].mark);
		fw_buf_addstr(&b, bytes);
		reads(t, fw_arena_str(&A, fw_buf_str(&b)), t->label, WIDE[k].encoding, false, "bom");
		fw_buf_finish(&b);
		if (k > 0) /* without the mark the zero bytes decide */
			reads(t, bytes, t->label, WIDE[k].encoding, false, "zeros");
	}
}
END_TEST

/* ---- whole tables ---------------------------------------------------------------------------- */

static uint64_t mix(const struct encoding *e, const char *bytes, size_t n, uint64_t seed)
{
	struct decode_out o = {.a = &A};
	struct fw_str text;

	fw_arena_reset(&A, 65536);
	ck_assert(fw_charset_decode_as(&o, e, (struct fw_str){bytes, n}, &text));
	ck_assert_uint_eq(fw_utf8_valid(text.p, text.len), text.len);
	return fw_hash64_seed(text.p, text.len, seed);
}

/* Each byte, each pair of bytes, and the longer forms. */
static uint64_t table_hash(const struct encoding *e)
{
	static const struct {
		const char *escape;
		int n;
	} JIS[] = {{"\x1b(J", 1}, {"\x1b(I", 1}, {"\x1b$@", 2}, {"\x1b$B", 2}};
	uint64_t h = 0;
	char s[8];

	for (int a = 1; a < 256; a++) {
		s[0] = (char)a;
		h = mix(e, s, 1, h);
		for (int b = 1; b < 256 && e->codec != SINGLE_BYTE && (a >= 0x80 || a == 0x1b); b++) {
			s[1] = (char)b;
			s[2] = 'A';
			h = mix(e, s, 3, h);
		}
	}
	for (int i = 0; i < 94 * 94 && e->codec == EUC_JP; i++) {
		s[0] = (char)0x8f;
		s[1] = (char)(0xa1 + i / 94);
		s[2] = (char)(0xa1 + i % 94);
		h = mix(e, s, 3, h);
	}
	for (int i = 0; i < 39420 && e->codec == GB18030; i++) { /* the whole plane with holes */
		s[0] = (char)(0x81 + i / 12600);
		s[1] = (char)('0' + i / 1260 % 10);
		s[2] = (char)(0x81 + i / 10 % 126);
		s[3] = (char)('0' + i % 10);
		h = mix(e, s, 4, h);
	}
	for (size_t k = 0; k < FW_N(JIS) && e->codec == ISO_2022_JP; k++) {
		for (int i = 0; i < (JIS[k].n == 2 ? 94 * 94 : 94); i++) {
			memcpy(s, JIS[k].escape, 3);
			s[3] = (char)(0x21 + (JIS[k].n == 2 ? i / 94 : i));
			s[4] = (char)(0x21 + i % 94);
			h = mix(e, s, 3 + (size_t)JIS[k].n, h);
		}
	}
	return h;
}

/*
 * The hash of the decoders' output at a time when it was compared, character by character, with two
 * implementations of the standard. The only differences were GB18030's six (see below) and U+FEFF
 * as the first character.
 */
static const struct {
	struct encoding e;
	uint64_t hash;
} TABLE[] = {
	{{"windows-1252", SINGLE_BYTE, NULL}, 0xd5c2b0497c776ff9u},
	{{"ibm866", SINGLE_BYTE, NULL}, 0x228f50781cf4aff8u},
	{{"iso-8859-2", SINGLE_BYTE, NULL}, 0x267599175a6d4c38u},
	{{"iso-8859-3", SINGLE_BYTE, NULL}, 0x1d8f35e0f89fe87fu},
	{{"iso-8859-4", SINGLE_BYTE, NULL}, 0x10c8a5bf5091b2dau},
	{{"iso-8859-5", SINGLE_BYTE, NULL}, 0x2a222c2832a5d97au},
	{{"iso-8859-6", SINGLE_BYTE, NULL}, 0x8c347eada48ceafbu},
	{{"iso-8859-7", SINGLE_BYTE, NULL}, 0xc2e2728ecec50eau},
	{{"iso-8859-8", SINGLE_BYTE, NULL}, 0xffaf855905ddb03fu},
	{{"iso-8859-10", SINGLE_BYTE, NULL}, 0x639318c77503758u},
	{{"iso-8859-13", SINGLE_BYTE, NULL}, 0x1743d7df7b9ac868u},
	{{"iso-8859-14", SINGLE_BYTE, NULL}, 0x8b49afab6fab2b6cu},
	{{"iso-8859-15", SINGLE_BYTE, NULL}, 0x71f4257d8c34acd7u},
	{{"iso-8859-16", SINGLE_BYTE, NULL}, 0x75e0852c352e724cu},
	{{"koi8-r", SINGLE_BYTE, NULL}, 0x55edb8a1a2a94dbeu},
	{{"koi8-u", SINGLE_BYTE, NULL}, 0x6adbe8c3b729b300u},
	{{"macintosh", SINGLE_BYTE, NULL}, 0xe08ef1f3b7310c69u},
	{{"windows-874", SINGLE_BYTE, NULL}, 0x1e75eaed093a7e66u},
	{{"windows-1250", SINGLE_BYTE, NULL}, 0x2b20234399c4179fu},
	{{"windows-1251", SINGLE_BYTE, NULL}, 0x3d6924773fb6432cu},
	{{"windows-1253", SINGLE_BYTE, NULL}, 0x9123af34158d2448u},
	{{"windows-1254", SINGLE_BYTE, NULL}, 0xad624f3bb5b2c888u},
	{{"windows-1255", SINGLE_BYTE, NULL}, 0x683c3c342d96cad6u},
	{{"windows-1256", SINGLE_BYTE, NULL}, 0x4ad48d6c1309d695u},
	{{"windows-1257", SINGLE_BYTE, NULL}, 0x2e486b64ece42968u},
	{{"windows-1258", SINGLE_BYTE, NULL}, 0x77ab3fbbe5823af4u},
	{{"x-mac-cyrillic", SINGLE_BYTE, NULL}, 0x3ef222168a5be4ecu},
	{{"gb18030", GB18030, NULL}, 0xc6fa69b77f34856bu},
	{{"big5", BIG5, NULL}, 0x514a64e0662712a5u},
	{{"euc-kr", EUC_KR, NULL}, 0xde4af3f22919ee9au},
	{{"shift_jis", SHIFT_JIS, NULL}, 0xa92a60516d688d93u},
	{{"euc-jp", EUC_JP, NULL}, 0x26470068093b2966u},
	{{"iso-2022-jp", ISO_2022_JP, NULL}, 0xe4e7d3c34aab7739u},
};

START_TEST(whole_table)
{
	uint64_t h = table_hash(&TABLE[_i].e);

	ck_assert_msg(h == TABLE[_i].hash,
		"%s: %#llx: a character is decoded otherwise than before; see charset/decode.c", TABLE[_i].e.name,
		(unsigned long long)h);
}
END_TEST

/* ---- where browsers and iconv differ --------------------------------------------------------- */

START_TEST(as_in_browsers) /* CHR-03 */
{
	static const struct {
		const char *label;
		struct fw_str bytes;
		const char *text;
	} T[] = {
		{"windows-1252", LIT("\x80\x81\x8d\x9d"), "€\xc2\x81\xc2\x8d\xc2\x9d"}, /* the holes become controls */
		{"iso-8859-1", LIT("\x93\x94"), "“”"},
		{"us-ascii", LIT("x"), "x"},
		{"windows-1251", LIT("\x98"), "\xc2\x98"},
		{"windows-1253", LIT("\x81"), "\xc2\x81"},
		{"windows-874", LIT("\x81\xa1"), "\xc2\x81ก"},
		/* points stay separate; the last letter is mapped */
		{"windows-1255", LIT("\xf9\xd1 \xe0"), "ש\xd7\x81 א"},
		{"windows-1255", LIT("\xca"), "\xd6\xba"},
		/* tone marks stay separate too */
		{"windows-1258",
			LIT("a\xec"
			    "Vi\xea\xf2t"),
			"a\xcc\x81Vi\xc3\xaa\xcc\xa3t"},
		{"koi8-u", LIT("\xae\xbe"), "ўЎ"},
		{"macintosh", LIT("\xc6\xf0\xdb"), "∆\xef\xa3\xbf€"},
		{"x-mac-cyrillic", LIT("\xff\xa2\xb6"), "€Ґґ"},
		{"x-user-defined", LIT("\xe9"), "é"},
		{"gbk", LIT("\x80 \xa2\xe3"), "€ €"},
		{"gbk", LIT("\xa3\xa0"), "\xe3\x80\x80"},
		{"gb2312", LIT("\xa1\xa4\xa1\xaa"), "·—"},
		{"gb18030", LIT("\x82\x35\x90\x37\x84\x31\x82\x36"), "龴︐"},
		{"gb18030", LIT("\xfe\x51"), "\xf0\xa0\x82\x87"}, /* unlike browsers: a character, not private use */
		{"shift_jis", LIT("\x5c\x7e\xa5"), "\\~･"},       /* not a yen sign and an overline */
		{"shift_jis", LIT("\x81\x60\x81\x7c\x87\x40\x80"), "～－①\xc2\x80"},
		{"euc-jp", LIT("\xa1\xc1\xad\xa1\x8e\xb1\x8f\xa2\xc3\xfc\xe2"), "～①ｱ¦髙"},
		{"iso-2022-jp", LIT("\x1b$B-!\x1b(B\\\x1b(J\\~\x1b(I1\x1b(B"), "①\\¥‾ｱ"},
		{"iso-2022-jp", LIT("\x1b$BF|F\n\x1b(B."), NULL}, /* a line that ends in the middle of a character */
		{"big5", LIT("\xa1\x45\xa1\xe3\xa2\x44\xf9\xfe"), "‧～￥￭"},
		{"big5", LIT("\x88\x62\x88\x64\x8e\x69"), "Ê̄Ê̌箸"},
		{"euc-kr", LIT("\x8c\x63\xa2\xe6"), "똠€"},
	};

	decode(document(T[_i].label, T[_i].bytes), NULL);
	if (!T[_i].text) {
		ck_assert(R.wrong);
		return;
	}
	ck_assert_msg(fw_str_find(R.text, fw_str(fw_arena_printf(&A, "<title>%s</title>", T[_i].text))) != NULL,
		"%s: %.*s", T[_i].label, FW_STR_ARG(R.text));
	ck_assert_msg(!R.wrong, "%s", R.problem);
}
END_TEST

/* An error consumes as many bytes as in browsers: markup after it is never lost. */
START_TEST(faults_spare_markup)
{
	static const struct {
		const char *label;
		struct fw_str bytes;
		const char *text;
	} T[] = {
		{"gbk", LIT("\xc4<b>"), "�<b>"},
		{"gbk", LIT("\xff<b>"), "�<b>"},
		{"gb18030", LIT("\x81\x30<b>"), "�0<b>"},
		{"gb18030", LIT("\x81\x30\x81<b>"), "�0�<b>"},
		{"gb18030", LIT("\xfe\x39\xfe\x39<b>"), "�9�9<b>"},
		{"big5", LIT("\xa4<b>"), "�<b>"},
		{"big5", LIT("\x81\x40<b>"), "�@<b>"},
		{"big5", LIT("\x80<b>"), "�<b>"},
		{"euc-kr", LIT("\xb0<b>"), "�<b>"},
		{"euc-kr", LIT("\xa2\xe8<b>"), "�<b>"},
		{"euc-kr", LIT("\xc9\x41<b>"), "�A<b>"},
		{"shift_jis", LIT("\x83<b>"), "�<b>"},
		{"shift_jis", LIT("\xa0<b>"), "�<b>"},
		{"shift_jis", LIT("\x85\x40<b>"), "�@<b>"},
		{"euc-jp", LIT("\xa4<b>"), "�<b>"},
		{"euc-jp", LIT("\x8f\xa1<b>"), "�<b>"},
		{"euc-jp", LIT("\xa9\xa1<b>"), "�<b>"},
		{"euc-jp", LIT("\x8f\xa1\xa1<b>"), "�<b>"},
		{"euc-jp", LIT("\x80<b>"), "�<b>"},
		{"euc-jp", LIT("\x8e\xe0<b>"), "�<b>"},
		{"iso-2022-jp", LIT("\x1b$B$\x1b(B<b>"), "�<b>"},
		{"iso-2022-jp", LIT("\x0e<b>"), "�<b>"},
		{"iso-2022-jp", LIT("\x1b(X<b>"), "�(X<b>"},
		{"utf-8", LIT("\xe2\x82<b>"), "�<b>"},
		{"windows-1257", LIT("\xa1<b>"), "�<b>"},
	};
	struct fw_buf b = FW_BUF_INIT(0);
	const struct text *plenty = NULL;

	for (size_t i = 0; i < FW_N(TEXT); i++) {
		if (strcmp(TEXT[i].encoding, fw_charset_label(fw_str(T[_i].label))) == 0)
			plenty = &TEXT[i];
	}
	ck_assert_ptr_nonnull(plenty); /* most of it is valid, so the label is trusted */
	for (int i = 0; i < 12; i++)
		fw_buf_addstr(&b, encoded(plenty->iconv, plenty->text));
	fw_buf_adds(&b, "\n#");
	fw_buf_addstr(&b, T[_i].bytes);
	decode(document(T[_i].label, fw_buf_str(&b)), NULL);
	ck_assert_str_eq(R.encoding, plenty->encoding);
	ck_assert(R.wrong);
	ck_assert_msg(fw_str_find(R.text, fw_str(fw_arena_printf(&A, "\n#%s", T[_i].text))) != NULL, "%s: %.*s",
		T[_i].label, FW_STR_ARG(R.text));
	ck_assert_str_eq(fw_arena_dup(&A, R.text.p + R.offset, 3), "�"); /* the problem has the position */
	fw_buf_finish(&b);
}
END_TEST

/* ---- never opened ---------------------------------------------------------------------------- */

START_TEST(never_opened) /* CHR-02 */
{
	static const char *const NAME[] = {"ISO-2022-CN-EXT", "ISO-2022-CN", "ISO-2022-KR", "csiso2022kr", "HZ-GB-2312",
		"HZ", "replacement", "UTF-7", "csUnicode11UTF7", "UTF-EBCDIC", "IBM037", "cp037", "IBM1047",
		"EBCDIC-US", "IBM1390", "IBM1399", "CP930", "SCSU", "BOCU-1", "CESU-8", "INIS", "UTF-8//TRANSLIT",
		"CP932//IGNORE", "../../tmp/evil", "C", "\"", "utf-8\x01", "ISO-2022-JP-2", "ISO-2022-JP-3", "TSCII",
		"BIG5-HKSCS:2008", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};

	ck_assert_ptr_null(fw_charset_label(fw_str(NAME[_i])));
	decode(document(NAME[_i], LIT("+ADw-b+AD4- ~{VPND~} \x1b$)A\x0eVPND\x0f")), NULL);
	ck_assert_str_eq(R.encoding, "utf-8");
	ck_assert(R.wrong);
	ck_assert_ptr_nonnull(fw_str_find(R.text, FW_STR("+ADw-b+AD4- ~{VPND~} \x1b$)A\x0eVPND\x0f")));
}
END_TEST

/* ---- pages ----------------------------------------------------------------------------------- */

START_TEST(pages_say_it_in_meta)
{
	static const struct {
		const char *type, *head, *encoding;
	} T[] = {
		{NULL, "<html><head><meta charset=koi8-r>", "koi8-r"},
		{NULL,
			"<!DOCTYPE html><META name=x><meta http-equiv='Content-Type' content='text/html;"
			" charset=koi8-r'>",
			"koi8-r"},
		{NULL, "<html><meta content=\"text/html;charset=koi8-r\">", "koi8-r"},
		{"text/html; charset=windows-1251", "<html><meta charset='koi8-r'>", "windows-1251"},
		{NULL, "<rss><title>&lt;meta charset=koi8-r></title><x>", "windows-1252"}, /* not a page */
		{NULL, "{\"a\": \"<html><meta charset=koi8-r>\"}", "windows-1252"},
	};
	struct fw_buf b = FW_BUF_INIT(0);

	fw_buf_addf(&b, "%s\xf0\xf2", T[_i].head);
	decode(fw_buf_str(&b), T[_i].type);
	ck_assert_str_eq(R.encoding, T[_i].encoding);
	fw_buf_finish(&b);
}
END_TEST

/* ---- Unicode's wide ones --------------------------------------------------------------------- */

START_TEST(wide) /* CHR-04 */
{
	static const struct {
		struct fw_str bytes;
		const char *encoding, *text;
		bool wrong;
	} T[] = {
		/* an odd length: the last byte is half a character */
		{LIT("\xff\xfe<\0a\0>"), "utf-16le", "<a�", true},
		{LIT("\xfe\xff\0<\0a\0>\0"), "utf-16be", "<a>�", true},
		{LIT("\xff\xfe\0\0<\0\0\0a\0\0"), "utf-32le", "<�", true},
		{LIT("\xff\xfe"), "utf-16le", "", false},
		{LIT("\xff\xfe<"), "utf-16le", "�", true},
		{LIT("\xff\xfe<\0\x3d\xd8\0\xde"), "utf-16le", "<\xf0\x9f\x98\x80", false},
		{LIT("\xff\xfe<\0\0\xde\x3d\xd8"), "utf-16le", "<��", true}, /* the wrong order */
		{LIT("\xff\xfe<\0\x3d\xd8"), "utf-16le", "<�", true},        /* cut within a pair */
		{LIT("\xff\xfe<\0\x3d\xd8\x3d\xd8\0\xde"), "utf-16le", "<�\xf0\x9f\x98\x80", true},
		{LIT("\0<\0a\0\0\0>"), "utf-16be", "<a>", true}, /* CHR-05 */
		{LIT("<\0\0\0>\0\x11\0"), "utf-32le", "<�", true},
		{LIT("\0\0\0<\0\0\xd8\x00"), "utf-32be", "<�", true},
		{LIT("\0\0\xfe\xff\0\0\0<\0\x01\xf6\x00"), "utf-32be", "<\xf0\x9f\x98\x80", false},
		{LIT("\xef\xbb\xbf\xef\xbb\xbf<a>\xe9"), "utf-8", "<a>�", true}, /* two marks */
		/* a mark before text in another encoding */
		{LIT("\xef\xbb\xbf<a>\xe9t\xe9 \xe0 la c\xf4te d'\xe9t\xe9</a>"), NULL, NULL, true},
	};

	decode(T[_i].bytes, "text/xml; charset=koi8-r");
	ck_assert_int_eq(R.wrong, T[_i].wrong);
	if (!T[_i].text) {
		ck_assert_ptr_null(fw_str_find(R.text, FW_STR("�")));
		return;
	}
	ck_assert_str_eq(R.encoding, T[_i].encoding);
	ck_assert_msg(fw_str_eq(fw_str_sub(R.text, R.text.len - strlen(T[_i].text), R.text.len), fw_str(T[_i].text)),
		"%.*s", FW_STR_ARG(R.text));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit parse encodings");
	TCase *t = tcase_create("encodings");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, under_each_declaration, 0, (int)FW_N(TEXT));
	tcase_add_loop_test(t, a_mark_overrides_all, 0, (int)FW_N(TEXT));
	tcase_add_loop_test(t, whole_table, 0, (int)FW_N(TABLE));
	tcase_add_loop_test(t, as_in_browsers, 0, 26);
	tcase_add_loop_test(t, faults_spare_markup, 0, 25);
	tcase_add_loop_test(t, never_opened, 0, 32);
	tcase_add_loop_test(t, pages_say_it_in_meta, 0, 6);
	tcase_add_loop_test(t, wide, 0, 15);
	suite_add_tcase(s, t);
	return run_suite(s);
}
