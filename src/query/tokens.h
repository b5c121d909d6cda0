/* SPDX-License-Identifier: ISC */
/* Split a text, or a search, into words. For drivers. */
#ifndef FW_STORE_TOKENS_H
#define FW_STORE_TOKENS_H

#include "base/str.h"

struct query_token {
	char text[64]; /* UTF-8, not NUL-terminated; a longer word is cut */
	size_t len;
};

/*
 * The next word of a text made by query_words(). False: no more. Cost: linear in the bytes read.
 */
bool query_token_next(struct fw_str *rest, struct query_token *out);

struct fw_store_word {
	struct fw_str text; /* borrowed; a phrase comes without its quotes */
	bool prefix;
};

/*
 * The next term of a search: word, prefix* or "a phrase". ASCII characters other than letters,
 * digits, "*" and quotes are separators; all other bytes belong to words. False: no more.
 */
bool fw_store_word_next(struct fw_str *rest, struct fw_store_word *out);

#endif
