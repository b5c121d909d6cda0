/* SPDX-License-Identifier: ISC */
/* Split a folded text into words. */
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

#endif
