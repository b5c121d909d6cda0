/* SPDX-License-Identifier: ISC */
/* Reads feeds in XML: all versions of RSS, Atom, CDF. */
#ifndef FW_PARSE_FEED_XMLFEED_H
#define FW_PARSE_FEED_XMLFEED_H

#include "parse/feed/builder.h"

/* Returns 0 or FW_E*. b->doc->format stays FW_FORMAT_NONE if it is not a feed. */
FW_MUST_CHECK int fw_read_xml(struct fw_builder *b, struct fw_err *err);

#endif
