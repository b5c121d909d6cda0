/* SPDX-License-Identifier: ISC */
/*
 * Makes HTML from feeds safe to show. It never patches text: output is written anew, from tokens or
 * from gumbo's tree. Pure.
 */
#ifndef FW_PARSE_HTML_SANITIZE_H
#define FW_PARSE_HTML_SANITIZE_H

#include "base/buf.h"
#include "feedwheel/document.h"

/* in addition to FW_PRINT_* */
enum {
	FW_HTML_DATA_IMAGES = 1 << 16, /* keep small data: images of safe types */
	FW_HTML_NO_TREE = 1 << 17,     /* treat html as too large for a tree */
};
/*
 * Append sanitised HTML to out. flags: FW_PRINT_NO_PIXELS and FW_HTML_*. Idempotent and linear.
 *
 * Kept: text elements, lists, tables, images, audio and video; a link for each embed (embed.h); ids
 * that a link in html refers to, with a prefix (anchor.h). Removed: scripts, frames, forms, SVG,
 * MathML, classes. docs/html.md has the list. Errors: FW_ENOMEM, FW_ELIMIT (out's limit).
 */
FW_MUST_CHECK int fw_html_sanitize(
	struct fw_str html, struct fw_str base, unsigned flags, struct fw_buf *out, struct fw_err *err);

#endif
