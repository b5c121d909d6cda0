/* SPDX-License-Identifier: ISC */
/*
 * What fw_store_words() made, word by word. Folded, and with a space for all else beyond ASCII, it needs no table: letters and digits of
 * ASCII and every other character belong to words.
 */
#include "store/tokens.h"

#include <string.h>

#include "base/utf8.h"

static bool in_word(char c)
{
	return (unsigned char)c >= 0x80 || fw_is_alnum((unsigned char)c);
}

bool fw_store_token_next(struct fw_str *rest, struct fw_store_token *out)
{
	const char *p = rest->p, *end = p ? p + rest->len : p, *from;

	while (p < end && !in_word(*p))
		p++;
	from = p;
	while (p < end && in_word(*p))
		p++;
	out->len = (size_t)(p - from);
	if (out->len > sizeof(out->text))
		out->len = fw_utf8_cut(from, out->len, sizeof(out->text));
	if (out->len)
		memcpy(out->text, from, out->len);
	*rest = (struct fw_str){p, (size_t)(end - p)};
	return out->len > 0;
}
