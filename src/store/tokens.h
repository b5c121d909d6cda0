/* SPDX-License-Identifier: ISC */
/* The words of a text, and of a search, one by one. For drivers. */
#ifndef FW_STORE_TOKENS_H
#define FW_STORE_TOKENS_H

#include "base/str.h"

struct fw_store_token {
	char text[64]; /* UTF-8, not NUL-terminated; a longer word is cut */
	size_t len;
};

/* The next word of what fw_store_words() made. False at the end. Linear in what it passes over. */
bool fw_store_token_next(struct fw_str *rest, struct fw_store_token *out);

struct fw_store_word {
	struct fw_str text; /* borrowed; of a phrase: without its quotes */
	bool prefix;
};

/*
 * The next word of a search: word, prefix* or "a phrase in quotes". In ASCII all but letters, digits,
 * "*" and quotes separates; other bytes belong to words. False at the end.
 */
bool fw_store_word_next(struct fw_str *rest, struct fw_store_word *out);

#endif
