/* SPDX-License-Identifier: ISC */
/* Names the probable type of a document that is not a feed, from its first bytes. */
#ifndef FW_PARSE_CHARSET_SNIFF_H
#define FW_PARSE_CHARSET_SNIFF_H

#include "feedwheel/types.h"

/* The probable type: "an HTML page", "an image (PNG)", "JSON that is not a feed", "empty" ... */
const char *fw_sniff_name(struct fw_str bytes, struct fw_str content_type);
/* Does the page have a password field? */
bool fw_sniff_has_login(struct fw_str html);
bool fw_sniff_is_html(struct fw_str bytes, struct fw_str content_type);
/* Copy the media type in lower case into dst: "text/html; charset=x" -> "text/html". */
void fw_media_type(struct fw_str content_type, char *dst, size_t cap);

#endif
