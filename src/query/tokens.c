/* SPDX-License-Identifier: ISC */
/*
 * Split text into words. ASCII letters and digits, and all non-ASCII characters, belong to words.
 * (query_words() has replaced other non-ASCII characters by spaces.)
 */
#include "query/tokens.h"

#include <string.h>

#include "base/utf8.h"

/* A table: each byte of each entry is looked at. */
static const bool is_word[256] = {
	['0' ... '9'] = true,
	['A' ... 'Z'] = true,
	['a' ... 'z'] = true,
	[0x80 ... 0xff] = true,
};

static bool byte_is_word(char c)
{
	return is_word[(unsigned char)c];
}

bool query_token_find(struct fw_str *rest, struct fw_str *out)
{
	const char *p = rest->p, *end = p ? p + rest->len : p, *from;

	while (p < end && !byte_is_word(*p))
		p++;
	from = p;
	while (p < end && byte_is_word(*p))
		p++;
	*out = (struct fw_str){from, (size_t)(p - from)};
	if (out->len > QUERY_TOKEN_MAX)
		out->len = fw_utf8_cut(from, out->len, QUERY_TOKEN_MAX);
	*rest = (struct fw_str){p, (size_t)(end - p)};
	return out->len > 0;
}

bool query_token_next(struct fw_str *rest, struct query_token *out)
{
	struct fw_str word;
	bool found = query_token_find(rest, &word);

	out->len = word.len;
	if (found)
		memcpy(out->text, word.p, word.len);
	return found;
}
