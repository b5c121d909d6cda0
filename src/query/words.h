/* SPDX-License-Identifier: ISC */
/* Normalise text for the search index, the same for all engines. For drivers. */
#ifndef FW_STORE_WORDS_H
#define FW_STORE_WORDS_H

#include "base/buf.h"
#include "base/str.h"
#include "query/tokens.h"

/*
 * Append the words of a plain text, folded (fold.h): lower case, without accents, separated by
 * ASCII. A word is a run of ASCII letters and digits and of non-ASCII letters. Scripts without
 * spaces (Han, kana, Thai and the like) get a space around each character: each is a word, and a
 * run is a phrase. Searches go through this too.
 */
void query_words(struct fw_buf *out, struct fw_str text);
/*
 * The same for HTML: a tag becomes a space; script, style and comments are dropped; character
 * references are decoded: named accented letters lose their accent, unknown names become a space.
 */
void query_words_html(struct fw_buf *out, struct fw_str html);
#define QUERY_TEXT_MAX ((size_t)1 << 20) /* bytes of a title, summary or content that are indexed */
/*
 * The words of an entry: of its title; of its summary, a line end, and its content. Texts are cut.
 */
void query_words_title(struct fw_buf *out, struct fw_str title);
void query_words_body(struct fw_buf *out, struct fw_str summary, struct fw_str content, int content_type);

#endif
