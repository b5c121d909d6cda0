/* SPDX-License-Identifier: ISC */
/* The reader of all feeds in XML. */
#ifndef FW_PARSE_FEED_WALK_H
#define FW_PARSE_FEED_WALK_H

#include "parse/feed/build.h"

/* 0, or FW_E*. b->doc->format stays FW_FORMAT_NONE when it was no feed. */
FW_MUST_CHECK int fw_read_xml(struct fw_builder *b, struct fw_err *err);

#endif
