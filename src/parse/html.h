/* SPDX-License-Identifier: ISC */
/* HTML inside feeds: is it markup, as plain text, made safe. Gumbo builds the tree; nothing here patches text. Pure. */
#ifndef FW_PARSE_HTML_H
#define FW_PARSE_HTML_H

#include "base/arena.h"
#include "base/buf.h"
#include "feedwheel/document.h"

/* Would a browser see a tag that HTML knows, a comment or a character reference in it? ("vector<int>" has none.) No tree. */
bool fw_html_has_markup(struct fw_str s);
/* Markup stripped, references decoded, white space collapsed, block elements and <br> as spaces; script and style dropped.
 * Fast path without a tree. Borrowed when nothing changes. */
struct fw_str fw_html_text(struct fw_arena *a, struct fw_str html);
enum { /* beside FW_PRINT_* */
	FW_HTML_DATA_IMAGES = 1 << 16, /* keep small data: images of safe types */
	FW_HTML_NO_TREE = 1 << 17,     /* as if it were too large for one */
};
/*
 * Sanitised HTML appended to out; flags are FW_PRINT_NO_PIXELS and FW_HTML_*. Idempotent; linear. What is kept: text
 * elements, lists, tables, images, audio and video; of what is embedded, a link (html_embed.h); ids that a link in html leads to, with a
 * prefix (html_anchor.h). No scripts, frames, forms, SVG, MathML, classes. docs/html.md has the list. Errors: FW_ENOMEM, FW_ELIMIT
 * (out's ceiling).
 */
FW_MUST_CHECK int fw_html_sanitize(struct fw_str html, struct fw_str base, unsigned flags, struct fw_buf *out, struct fw_err *err);
/* Feeds that a page of UTF-8 names, into the arena, in document order, absolute, each once. */
FW_MUST_CHECK int fw_html_discover(struct fw_arena *a, struct fw_str html, struct fw_str url, struct fw_link **links,
	struct fw_err *err);
/* The feeds among the links of an HTTP Link header. */
struct fw_link *fw_link_feeds(struct fw_arena *a, struct fw_str header, struct fw_str url);
/* The feeds that an answer names: its Link header, then the page in whatever encoding. header and content_type may be absent. */
FW_MUST_CHECK int fw_find_feeds(struct fw_arena *a, struct fw_str header, struct fw_str page, struct fw_str content_type, struct fw_str url,
	struct fw_link **links, struct fw_err *err);
/*
 * The hub that an answer names (WebSub section 4), and the address under which it knows the document: by the Link header, else by the links
 * in the page's head. Absent: none. Errors: FW_ENOMEM.
 */
FW_MUST_CHECK int fw_find_hub(struct fw_arena *a, struct fw_str header, struct fw_str page, struct fw_str content_type, struct fw_str url,
	struct fw_str *hub, struct fw_str *self, struct fw_err *err);
/* All links of an HTTP Link header value (RFC 8288): links with the given rel; absent rel: all. */
struct fw_link *fw_link_header(struct fw_arena *a, struct fw_str value, struct fw_str base, struct fw_str rel);

#endif
