/* SPDX-License-Identifier: ISC */
/* Authors, contributors, publishers: the start and the end of each. */
#ifndef FW_PARSE_FEED_PEOPLE_H
#define FW_PARSE_FEED_PEOPLE_H

#include "parse/feed/frame.h"

void fw_person_start(struct fw_start_event *w);
void fw_person_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s);
void fw_person_part_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s);
/* Set a person's URL. With F_EMAIL or a mailto: URL, set the mail address. */
void fw_person_url(struct fw_person *p, enum element_field field, struct fw_str url);

#endif
