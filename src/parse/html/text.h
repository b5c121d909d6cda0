/* SPDX-License-Identifier: ISC */
/* Is it markup, and what is it as plain text. */
#ifndef FW_PARSE_HTML_TEXT_H
#define FW_PARSE_HTML_TEXT_H

#include "base/arena.h"

/* Would a browser see a tag that HTML knows, a comment or a character reference in it? ("vector<int>" has none.) No tree. */
bool fw_html_has_markup(struct fw_str s);
/* Markup stripped, references decoded, white space collapsed, block elements and <br> as spaces; script and style dropped.
 * Fast path without a tree. Borrowed when nothing changes. */
struct fw_str fw_html_text(struct fw_arena *a, struct fw_str html);

#endif
