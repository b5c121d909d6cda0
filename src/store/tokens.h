/* SPDX-License-Identifier: ISC */
/* The words of a text one by one, for an index that has no tokenizer of its own. For drivers. */
#ifndef FW_STORE_TOKENS_H
#define FW_STORE_TOKENS_H

#include "base/str.h"

struct fw_store_token {
	char text[64]; /* UTF-8, not NUL-terminated; a longer word is cut */
	size_t len;
};

/* The next word of what fw_store_words() made. False at the end. Linear in what it passes over. */
bool fw_store_token_next(struct fw_str *rest, struct fw_store_token *out);

#endif
