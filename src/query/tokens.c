/* SPDX-License-Identifier: ISC */
/*
 * Split text into words. ASCII letters and digits, and all non-ASCII characters, belong to words.
 * (query_words() has replaced other non-ASCII characters by spaces.)
 */
#include "query/tokens.h"

#include <string.h>

#include "base/utf8.h"

static bool byte_is_word(char c)
{
	return (unsigned char)c >= 0x80 || fw_is_alnum((unsigned char)c);
}

bool query_token_next(struct fw_str *rest, struct query_token *out)
{
	const char *p = rest->p, *end = p ? p + rest->len : p, *from;

	while (p < end && !byte_is_word(*p))
		p++;
	from = p;
	while (p < end && byte_is_word(*p))
		p++;
	out->len = (size_t)(p - from);
	if (out->len > sizeof(out->text))
		out->len = fw_utf8_cut(from, out->len, sizeof(out->text));
	if (out->len)
		memcpy(out->text, from, out->len);
	*rest = (struct fw_str){p, (size_t)(end - p)};
	return out->len > 0;
}

static bool text_has_word(struct fw_str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (byte_is_word(s.p[i]))
			return true;
	}
	return false;
}

bool fw_store_word_next(struct fw_str *rest, struct fw_store_word *out)
{
	const char *p = rest->p, *end = p ? p + rest->len : p;

	do {
		const char *from;
		bool phrase;

		while (p < end && *p != '"' && !byte_is_word(*p))
			p++;
		if (p >= end)
			return false;
		phrase = *p == '"';
		from = p += phrase;
		while (p < end && (phrase ? *p != '"' : byte_is_word(*p)))
			p++;
		out->text = (struct fw_str){from, (size_t)(p - from)};
		p += phrase && p < end;
		out->prefix = p < end && *p == '*';
		p += out->prefix;
	} while (!text_has_word(out->text)); /* skip a phrase without a word */
	*rest = (struct fw_str){p, (size_t)(end - p)};
	return true;
}
