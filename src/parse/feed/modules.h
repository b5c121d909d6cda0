/* SPDX-License-Identifier: ISC */
/* The elements of modules: iTunes, Podcasting 2.0, Media RSS, chapters ... */
#ifndef FW_PARSE_FEED_MODULES_H
#define FW_PARSE_FEED_MODULES_H

#include "parse/feed/frame.h"

void fw_module_start(struct fw_start_event *w);
void fw_module_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s, bool markup);
/* RSS's own elements inside podcast:liveItem. */
void fw_live_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s, bool markup);

#endif
