/* SPDX-License-Identifier: ISC */
/* Titles, descriptions and contents: the start and the end of each. */
#ifndef FW_PARSE_FEED_TEXTS_H
#define FW_PARSE_FEED_TEXTS_H

#include "parse/feed/frame.h"

void fw_text_start(struct fw_start_event *w);
/* of a title */
struct fw_str fw_text_line(struct fw_builder *b, const struct fw_frame *f, struct fw_str s, bool markup);
void fw_text_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s, bool markup);
void fw_body_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s, bool markup);

#endif
