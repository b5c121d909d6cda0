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
