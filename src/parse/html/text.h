/* SPDX-License-Identifier: ISC */
/* Detects markup and converts HTML to plain text. */
#ifndef FW_PARSE_HTML_TEXT_H
#define FW_PARSE_HTML_TEXT_H

#include "base/arena.h"

/*
 * Would a browser see a known HTML tag, a comment or a character reference in s? "vector<int>" has
 * none. No tree.
 */
bool fw_html_has_markup(struct fw_str s);
/*
 * HTML as plain text: markup stripped, references decoded, white space collapsed, block elements
 * and <br> as spaces, script and style dropped. No tree. Borrowed if nothing changes.
 */
struct fw_str fw_html_text(struct fw_arena *a, struct fw_str html);

#endif
