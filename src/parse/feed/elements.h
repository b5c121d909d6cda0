/* SPDX-License-Identifier: ISC */
/* The elements of RSS, Atom and CDF: what each does at its start and at its end. */
#ifndef FW_PARSE_FEED_ELEMENTS_H
#define FW_PARSE_FEED_ELEMENTS_H

#include "parse/feed/frame.h"

FW_MUST_CHECK int fw_element_start(struct fw_start_event *w);
void fw_element_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s, bool markup);

#endif
