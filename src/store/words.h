/* SPDX-License-Identifier: ISC */
/* Text made ready for an index of words, alike for all engines. For drivers. */
#ifndef FW_STORE_WORDS_H
#define FW_STORE_WORDS_H

#include "base/buf.h"
#include "base/str.h"
#include "store/tokens.h"

/*
 * Append the words of a plain text, folded (fold.h): in lower case, without accents. A word is a
 * run of letters and digits of ASCII and of all characters beyond it; what is between words is
 * ASCII. Scripts that write without spaces (Han, kana, Thai and its neighbours) get a space around
 * each character, so that each is a word of its own and a run of them is a phrase. The user's words
 * go through this too.
 */
void fw_store_words(struct fw_buf *out, struct fw_str text);
/*
 * The same for HTML: a space for each tag; script, style and comments left out; character references decoded, accented
 * letters among the named ones without their accent, unknown names as a space.
 */
void fw_store_words_html(struct fw_buf *out, struct fw_str html);
#define FW_STORE_TEXT_MAX ((size_t)1 << 20) /* of a title, a summary, a content: the rest is not searched */
/* An entry's words: those of its title; and of its summary, a line end, and its content. Texts may be longer. */
void fw_store_words_title(struct fw_buf *out, struct fw_str title);
void fw_store_words_body(struct fw_buf *out, struct fw_str summary, struct fw_str content, int content_type);
/*
 * The next word or phrase of a search that has a word in it, as one of these would be found: out->text is what
 * fw_store_words() made of it, in `words`. False at the end, and out of memory (words->rc).
 */
bool fw_store_term_next(struct fw_str *rest, struct fw_buf *words, struct fw_store_word *out);

#endif
