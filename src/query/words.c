/* SPDX-License-Identifier: ISC */
/*
 * The words of an entry for the search index. Each byte is read once; runs of ASCII without '<' and
 * '&' are copied at once, other characters one by one.
 *
 * An index removes a text by the same words that it was added with. So the output must not change
 * without a migration that rebuilds the index.
 */
#include "query/words.h"

#include <assert.h>

#include "base/utf8.h"
#include "feedwheel/document.h"
#include "query/fold.h"

enum { PLAIN = 0, MARKUP = 1, HIGH = 2 }; /* HIGH: not ASCII */

static int byte_class(unsigned char c)
{
	return c == '<' || c == '&' ? MARKUP : c >= 0x80 ? HIGH : PLAIN;
}

static void words_ascii_add(struct fw_buf *out, const char *p, size_t n)
{
	char *d = fw_buf_room(out, n);

	for (size_t i = 0; d && i < n; i++)
		d[i] = (char)fw_lower((unsigned char)p[i]);
	if (!d)
		return;
	d[n] = '\0';
	out->len += n;
}

/* Is c of a script that is written without spaces between words? */
static bool char_is_packed(uint32_t c)
{
	static const uint32_t range[][2] = {
		{0x0e00, 0x0eff}, /* Thai, Lao */
		{0x1000, 0x109f}, /* Myanmar */
		{0x1780, 0x17ff}, /* Khmer */
		{0x3005, 0x3007},
		{0x3041, 0x312f}, /* kana, bopomofo */
		{0x31a0, 0x31bf},
		{0x31f0, 0x31ff},
		{0x3400, 0x4dbf},
		{0x4e00, 0x9fff},
		{0xf900, 0xfaff}, /* Han */
		{0xff66, 0xff9f}, /* halfwidth kana */
		{0x1b000, 0x1b16f},
		{0x20000, 0x3ffff},
	};

	for (size_t i = 0; i < FW_N(range); i++) {
		if (c <= range[i][1])
			return c >= range[i][0];
	}
	return false;
}

static void words_folded_add(struct fw_buf *out, uint32_t c)
{
	bool packed = c >= 0x80 && char_is_packed(c);

	if (packed)
		fw_buf_addc(out, ' ');
	fw_buf_addcp(out, c);
	if (packed)
		fw_buf_addc(out, ' ');
}

/*
 * Append the first character of text, folded, with spaces around it if its script has none. A kana
 * takes the sound mark after it. Returns the length read.
 */
static size_t words_char_add(struct fw_buf *out, struct fw_str text)
{
	uint32_t c[FW_FOLD_MAX], whole;
	size_t n, mark_n;
	int fold_n = query_fold(fw_utf8_get(text.p, text.len, &n), c);

	assert(text.len > 0 && fold_n <= FW_FOLD_MAX);
	if (fold_n < 0)
		fw_buf_addc(out, ' ');
	if (fold_n == 1 && n == 3 && n < text.len && (unsigned char)text.p[n] >= 0xe0) {
		whole = query_fold_kana(c[0], fw_utf8_get(text.p + n, text.len - n, &mark_n));
		if (whole) {
			c[0] = whole;
			n += mark_n;
		}
	}
	for (int i = 0; i < fold_n; i++)
		words_folded_add(out, c[i]);
	return n;
}

/* The end of a <script>, <style> or comment that starts at tag; NULL: it is another tag. */
static const char *html_hidden_end(struct fw_str tag)
{
	static const struct {
		struct fw_str begin, end;
	} hidden[] = {
		{{"<script", 7}, {"</script", 8}},
		{{"<style", 6}, {"</style", 7}},
		{{"<!--", 4}, {"-->", 3}},
	};

	for (size_t i = 0; i < FW_N(hidden); i++) {
		if (fw_str_istarts(tag, hidden[i].begin)) {
			const char *end = fw_str_ifind(tag, hidden[i].end);

			return end ? end : tag.p + tag.len; /* never closed: all the rest, so each byte is read once */
		}
	}
	return NULL;
}

/* Append a space for the tag, or the lone "<", at the start of rest. Returns the length read. */
static size_t words_tag_add(struct fw_buf *out, struct fw_str rest)
{
	const char *from = rest.p, *end = rest.p + rest.len, *gt;

	assert(rest.p); /* its "<" */
	fw_buf_addc(out, ' ');
	if (rest.len > 1 && !fw_is_alpha(rest.p[1]) && rest.p[1] != '/' && rest.p[1] != '!' && rest.p[1] != '?')
		return 1; /* "a < b" */
	gt = html_hidden_end(rest);
	from = gt ? gt : from;
	gt = memchr(from, '>', (size_t)(end - from));
	return gt ? (size_t)(gt + 1 - rest.p) : rest.len;
}

static uint32_t reference_number(struct fw_str digits)
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

/* The character of a named reference, without its accent; a space if it is unknown. */
static uint32_t reference_name(struct fw_str name)
{
	static const struct fw_str accent[] = {
		{"acute", 5},
		{"grave", 5},
		{"circ", 4},
		{"uml", 3},
		{"tilde", 5},
		{"ring", 4},
		{"cedil", 5},
		{"caron", 5},
		{"slash", 5},
	};
	static const struct {
		struct fw_str name;
		uint32_t c;
	} other[] = {
		{{"amp", 3}, '&'},
		{{"apos", 4}, '\''},
		{{"rsquo", 5}, 0x2019},
		{{"szlig", 5}, 0xdf},
		{{"aelig", 5}, 0xe6},
		{{"AElig", 5}, 0xe6},
		{{"oelig", 5}, 0x153},
		{{"OElig", 5}, 0x153},
		{{"shy", 3}, 0xad},
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

#define REFERENCE_MAX 12 /* characters between & and ; */

/*
 * Append the reference, or a space for the lone "&", at the start of rest. Returns the length read.
 */
static size_t words_reference_add(struct fw_buf *out, struct fw_str rest)
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
	c = name.p[0] == '#' ? reference_number(fw_str_sub(name, 1, name.len)) : reference_name(name);
	(void)words_char_add(out, (struct fw_str){one, fw_utf8_put(one, c)});
	return n + 1;
}

static void text_words_add(struct fw_buf *out, struct fw_str text, bool html)
{
	size_t at = 0;

	while (at < text.len) {
		struct fw_str rest;
		size_t n = at;
		int kind = PLAIN;

		while (n < text.len && (kind = byte_class((unsigned char)text.p[n])) == PLAIN)
			n++;
		words_ascii_add(out, text.p + at, n - at);
		at = n;
		if (at == text.len)
			break;
		rest = fw_str_sub(text, at, text.len);
		if (kind == HIGH) {
			at += words_char_add(out, rest);
		} else if (html) {
			at += *rest.p == '<' ? words_tag_add(out, rest) : words_reference_add(out, rest);
		} else {
			fw_buf_addc(out, *rest.p);
			at++;
		}
	}
}

void query_words(struct fw_buf *out, struct fw_str text)
{
	text_words_add(out, text, false);
}

void query_words_html(struct fw_buf *out, struct fw_str html)
{
	text_words_add(out, html, true);
}

void query_words_title(struct fw_buf *out, struct fw_str title)
{
	query_words(out, fw_str_sub(title, 0, QUERY_TEXT_MAX));
}

void query_words_body(struct fw_buf *out, struct fw_str summary, struct fw_str content, int content_type)
{
	query_words(out, fw_str_sub(summary, 0, QUERY_TEXT_MAX));
	fw_buf_addc(out, '\n');
	content = fw_str_sub(content, 0, QUERY_TEXT_MAX);
	if (content_type == FW_TEXT_PLAIN)
		query_words(out, content);
	else
		query_words_html(out, content);
}
