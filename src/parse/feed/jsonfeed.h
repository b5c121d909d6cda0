/* SPDX-License-Identifier: ISC */
/* The reader of JSON Feed. */
#ifndef FW_PARSE_FEED_JSONFEED_H
#define FW_PARSE_FEED_JSONFEED_H

#include "parse/feed/build.h"

/* 0, or FW_E*. b->doc->format stays FW_FORMAT_NONE when it was no feed. */
FW_MUST_CHECK int fw_read_json(struct fw_builder *b, struct fw_err *err);

#endif
