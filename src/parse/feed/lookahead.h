/* SPDX-License-Identifier: ISC */
/* Searches ahead in the document's bytes. */
#ifndef FW_PARSE_FEED_LOOKAHEAD_H
#define FW_PARSE_FEED_LOOKAHEAD_H

#include "parse/feed/builder.h"

/*
 * Is the end tag of the nth open element missing before the end tag of the one around it? Cached in
 * the frame.
 */
bool fw_end_tag_missing(struct fw_builder *b, size_t n, size_t around);
/* Does an element of that local name start anywhere after the current start tag? */
bool fw_lookahead(struct fw_builder *b, const char *local);
/* Is f, whose start tag is the current one, empty? */
bool fw_frame_is_empty(const struct fw_builder *b, const struct fw_frame *f);

#endif
