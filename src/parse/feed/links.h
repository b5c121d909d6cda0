/* SPDX-License-Identifier: ISC */
/* Links, categories, an entry's source, the generator: the start and the end of each. */
#ifndef FW_PARSE_FEED_LINKS_H
#define FW_PARSE_FEED_LINKS_H

#include "parse/feed/frame.h"

/* Append a link with relation rel. */
void fw_link_add(struct fw_builder *b, struct fw_link **list, struct fw_str rel, struct fw_str href);
/*
 * The page of an entry or feed, if url may be it (fw_address_take); the document has url in another
 * place too, such as an id. fw_page_add(): it has not, so an address that is not the page, or no
 * longer, becomes a link.
 */
bool fw_page_set(struct fw_builder *b, enum fw_context where, struct fw_str url, uint8_t rank);
void fw_page_add(struct fw_builder *b, enum fw_context where, struct fw_str url, uint8_t rank);
void fw_link_start(struct fw_start_event *w);
void fw_link_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s);
void fw_guid_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s);
void fw_enclosure_start(struct fw_start_event *w);
void fw_enclosure_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s);
/* <image> of the channel or an item */
void fw_image_set(struct fw_builder *b, struct fw_str url, uint8_t rank);
void fw_category_add(struct fw_builder *b, bool entry, struct fw_str term, struct fw_str scheme, struct fw_str label);
void fw_category_start(struct fw_start_event *w);
void fw_category_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s);
void fw_source_start(struct fw_start_event *w);
void fw_source_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s);
void fw_generator_start(struct fw_start_event *w);
void fw_generator_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s);

#endif
