/* SPDX-License-Identifier: ISC */
/*
 * What an entry says, as an index wants it. Each byte is looked at once, and most are copied in runs: only '<', '&' and the lead
 * bytes of characters from U+0800 on end one.
 *
 * An index forgets a text by being shown the same words again, so what comes out here must not change without a migration that
 * builds the index anew.
 */
#include "store/words.h"

#include "base/utf8.h"

enum { PLAIN = 0, MARKUP = 1, HIGH = 2 }; /* HIGH: may be a character of a script without spaces */

static int kind_of(unsigned char c)
{
	return c == '<' || c == '&' ? MARKUP : c >= 0xe0 ? HIGH : PLAIN;
}

/* Written without spaces between words. */
static bool is_packed(uint32_t c)
{
	static const uint32_t range[][2] = {
		{0x0e00, 0x0eff},   /* Thai, Lao */
		{0x1000, 0x109f},   /* Myanmar */
		{0x1780, 0x17ff},   /* Khmer */
		{0x3005, 0x3007}, {0x3041, 0x312f}, /* kana, bopomofo */
		{0x31a0, 0x31bf}, {0x31f0, 0x31ff},
		{0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xf900, 0xfaff}, /* Han */
		{0xff66, 0xff9f},   /* halfwidth kana */
		{0x1b000, 0x1b16f}, {0x20000, 0x3ffff},
	};

	for (size_t i = 0; i < FW_N(range); i++) {
		if (c <= range[i][1])
			return c >= range[i][0];
	}
	return false;
}

/* The character at p, with spaces where its script has none; returns its length. */
static size_t high_add(struct fw_buf *out, const char *p, size_t len)
{
	size_t n;
	bool packed = is_packed(fw_utf8_get(p, len, &n));

	if (packed)
		fw_buf_addc(out, ' ');
	fw_buf_add(out, p, n);
	if (packed)
		fw_buf_addc(out, ' ');
	return n;
}

/* Where a <script> or <style> element that begins at tag ends (at its end tag), or NULL: tag begins neither. */
static const char *hidden_end(struct fw_str tag)
{
	static const struct { struct fw_str begin, end; } hidden[] = {
		{{"<script", 7}, {"</script", 8}}, {{"<style", 6}, {"</style", 7}}, {{"<!--", 4}, {"-->", 3}},
	};

	for (size_t i = 0; i < FW_N(hidden); i++) {
		if (fw_str_istarts(tag, hidden[i].begin)) {
			const char *end = fw_str_ifind(tag, hidden[i].end);

			return end ? end : tag.p + tag.len; /* never closed: all the rest; so each byte is looked at once */
		}
	}
	return NULL;
}

/* A tag, or a "<" that is none, at the begin of rest: a space; returns its length. */
static size_t tag_add(struct fw_buf *out, struct fw_str rest)
{
	const char *from = rest.p, *end = rest.p + rest.len, *gt;

	fw_buf_addc(out, ' ');
	if (rest.len > 1 && !fw_is_alpha(rest.p[1]) && rest.p[1] != '/' && rest.p[1] != '!' && rest.p[1] != '?')
		return 1; /* "a < b" */
	gt = hidden_end(rest);
	from = gt ? gt : from;
	gt = memchr(from, '>', (size_t)(end - from));
	return gt ? (size_t)(gt + 1 - rest.p) : rest.len;
}

static uint32_t number_of(struct fw_str digits)
{
	bool hex = digits.len && (digits.p[0] == 'x' || digits.p[0] == 'X');
	uint32_t v = 0;

	for (size_t i = hex; i < digits.len && v <= 0x10ffff; i++) {
		int c = (unsigned char)digits.p[i], d = hex || fw_is_digit(c) ? fw_hexval(c) : -1;

		if (d < 0)
			return ' ';
		v = v * (hex ? 16 : 10) + (uint32_t)d;
	}
	return v < 0x20 || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff) ? ' ' : v;
}

/* What a named reference stands for, as far as words go. */
static uint32_t named(struct fw_str name)
{
	static const struct fw_str accent[] = {
		{"acute", 5}, {"grave", 5}, {"circ", 4}, {"uml", 3}, {"tilde", 5}, {"ring", 4}, {"cedil", 5}, {"caron", 5}, {"slash", 5},
	};
	static const struct { struct fw_str name; uint32_t c; } other[] = {
		{{"amp", 3}, '&'}, {{"apos", 4}, '\''}, {{"rsquo", 5}, 0x2019}, {{"szlig", 5}, 0xdf}, {{"aelig", 5}, 0xe6},
		{{"AElig", 5}, 0xe6}, {{"oelig", 5}, 0x153}, {{"OElig", 5}, 0x153}, {{"shy", 3}, 0xad},
	};

	for (size_t i = 0; i < FW_N(other); i++) {
		if (fw_str_eq(name, other[i].name))
			return other[i].c;
	}
	for (size_t i = 0; name.len && i < FW_N(accent); i++) {
		if (fw_str_eq(fw_str_sub(name, 1, name.len), accent[i]))
			return fw_str_eq(accent[i], FW_STR("slash")) ? 0xf8 : (uint32_t)(unsigned char)name.p[0];
	}
	return ' ';
}

#define REFERENCE_MAX 12 /* between & and ; */

/* "&...;" at the begin of rest, or a lone "&": returns its length. */
static size_t reference_add(struct fw_buf *out, struct fw_str rest)
{
	size_t n = 1;
	struct fw_str name;
	uint32_t c;
	char one[4];

	while (n < rest.len && n <= REFERENCE_MAX && (fw_is_alnum(rest.p[n]) || (n == 1 && rest.p[n] == '#')))
		n++;
	if (n == rest.len || n == 1 || rest.p[n] != ';') {
		fw_buf_addc(out, ' ');
		return 1;
	}
	name = fw_str_sub(rest, 1, n);
	c = name.p[0] == '#' ? number_of(fw_str_sub(name, 1, name.len)) : named(name);
	(void)high_add(out, one, fw_utf8_put(one, c));
	return n + 1;
}

static void words(struct fw_buf *out, struct fw_str text, bool html)
{
	size_t at = 0;

	while (at < text.len) {
		struct fw_str rest;
		size_t n = at;
		int kind = PLAIN;

		while (n < text.len && (kind = kind_of((unsigned char)text.p[n])) == PLAIN)
			n++;
		fw_buf_add(out, text.p + at, n - at);
		at = n;
		if (at == text.len)
			break;
		rest = fw_str_sub(text, at, text.len);
		if (kind == HIGH) {
			at += high_add(out, rest.p, rest.len);
		} else if (html) {
			at += *rest.p == '<' ? tag_add(out, rest) : reference_add(out, rest);
		} else {
			fw_buf_addc(out, *rest.p);
			at++;
		}
	}
}

void fw_store_words(struct fw_buf *out, struct fw_str text)
{
	words(out, text, false);
}

void fw_store_words_html(struct fw_buf *out, struct fw_str html)
{
	words(out, html, true);
}
