/* SPDX-License-Identifier: ISC */
/* HTML inside feeds, made safe. Gumbo builds the tree; nothing here patches text. Pure. */
#ifndef FW_PARSE_HTML_SANITIZE_H
#define FW_PARSE_HTML_SANITIZE_H

#include "base/buf.h"
#include "feedwheel/document.h"

enum { /* beside FW_PRINT_* */
	FW_HTML_DATA_IMAGES = 1 << 16, /* keep small data: images of safe types */
	FW_HTML_NO_TREE = 1 << 17,     /* as if it were too large for one */
};
/*
 * Sanitised HTML appended to out; flags are FW_PRINT_NO_PIXELS and FW_HTML_*. Idempotent; linear. What is kept: text
 * elements, lists, tables, images, audio and video; of what is embedded, a link (embed.h); ids that a link in html leads to, with a
 * prefix (anchor.h). No scripts, frames, forms, SVG, MathML, classes. docs/html.md has the list. Errors: FW_ENOMEM, FW_ELIMIT
 * (out's ceiling).
 */
FW_MUST_CHECK int fw_html_sanitize(struct fw_str html, struct fw_str base, unsigned flags, struct fw_buf *out, struct fw_err *err);

#endif
