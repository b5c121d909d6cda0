/* SPDX-License-Identifier: ISC */
/* Split a folded text into words. */
#ifndef FW_STORE_TOKENS_H
#define FW_STORE_TOKENS_H

#include "base/str.h"

#define QUERY_TOKEN_MAX 64 /* bytes; a longer word is cut */

struct query_token {
	char text[QUERY_TOKEN_MAX]; /* UTF-8, not NUL-terminated */
	size_t len;
};

/*
 * The next word of a text made by query_words(). False: no more. Cost: linear in the bytes read.
 */
bool query_token_next(struct fw_str *rest, struct query_token *out);
/* The same, as a part of the text. */
bool query_token_find(struct fw_str *rest, struct fw_str *out);

#endif
