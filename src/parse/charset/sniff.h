/* SPDX-License-Identifier: ISC */
/* What bytes that are no feed seem to be, by the first of them. */
#ifndef FW_PARSE_CHARSET_SNIFF_H
#define FW_PARSE_CHARSET_SNIFF_H

#include "feedwheel/types.h"

/* What a document that is no feed seems to be: "an HTML page", "an image (PNG)", "JSON that is no feed", "empty" ... */
const char *fw_sniff_name(struct fw_str bytes, struct fw_str content_type);
/* Does a page have a field for a password? */
bool fw_sniff_asks_login(struct fw_str html);
bool fw_sniff_is_html(struct fw_str bytes, struct fw_str content_type);
/* "text/html; charset=x" -> "text/html" in lower case into dst. */
void fw_media_type(struct fw_str content_type, char *dst, size_t cap);

#endif
