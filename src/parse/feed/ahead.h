/* SPDX-License-Identifier: ISC */
/* A look ahead in the document's bytes. */
#ifndef FW_PARSE_FEED_AHEAD_H
#define FW_PARSE_FEED_AHEAD_H

#include "parse/feed/build.h"

/* Does the end tag of the nth open element not come before that of the one around it? Remembered in the frame. */
bool fw_end_lost(struct fw_builder *b, size_t n, size_t around);
/* Does an element of that local name begin anywhere behind the start tag being read? */
bool fw_ahead(struct fw_builder *b, const char *local);
/* Is there nothing in f, whose start tag is being read? */
bool fw_is_hollow(const struct fw_builder *b, const struct fw_frame *f);

#endif
