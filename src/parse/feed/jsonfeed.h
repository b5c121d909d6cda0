/* SPDX-License-Identifier: ISC */
/* Reads JSON Feed. */
#ifndef FW_PARSE_FEED_JSONFEED_H
#define FW_PARSE_FEED_JSONFEED_H

#include "parse/feed/builder.h"

/* Returns 0 or FW_E*. b->doc->format stays FW_FORMAT_NONE if it is not a feed. */
FW_MUST_CHECK int fw_read_json(struct fw_builder *b, struct fw_err *err);

#endif
