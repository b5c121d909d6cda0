/* SPDX-License-Identifier: ISC */
/* An open element: its attributes, its text, its address, and what it may fill. All elements lean on this. */
#ifndef FW_PARSE_FEED_FRAME_H
#define FW_PARSE_FEED_FRAME_H

#include "parse/feed/build.h"

/* One element that begins. */
struct fw_walk {
	struct fw_builder *b;
	const struct fw_xml_name *name;
	const struct fw_xml_attr *attr;
	size_t attr_n;
	const struct fw_element *el;
	struct fw_frame *frame, *up; /* up: NULL at the root */
	enum fw_context where;
};

/* An attribute without a namespace, in the element's own, or in RDF's; case does not count; absent when there is none. */
struct fw_str fw_attr_find(const struct fw_walk *w, struct fw_str name);
#define fw_attr(w, literal) fw_attr_find((w), FW_STR(literal))
/* Gather this element's text. */
void fw_walk_capture(struct fw_walk *w, enum fw_text_rule rule);
/* What the gathered text s is by the frame's rule; markup: child elements were written into it. */
struct fw_str fw_text_value(struct fw_builder *b, const struct fw_frame *f, struct fw_str s, bool markup,
	enum fw_text_type *type);
struct fw_document *fw_feed_of(struct fw_builder *b, enum fw_context where); /* the feed, or the source that is open */
struct fw_counts *fw_counts_of(struct fw_builder *b, bool entry);
/* May this element fill the field? The higher rank may, and the first of equals. */
bool fw_take(struct fw_builder *b, enum fw_context where, enum fw_field field, uint8_t rank);
/* Of the element around f. */
enum fw_context fw_where_of(const struct fw_builder *b, const struct fw_frame *f);
bool fw_in_entry(const struct fw_builder *b, enum fw_context where);
/* The address of an element: its text when that is absolute, or else an attribute, which the start keeps in obj. */
void fw_url_start(struct fw_walk *w);
struct fw_str fw_url_text(const struct fw_frame *f, struct fw_str s);
struct fw_value **fw_extra_root(struct fw_builder *b, unsigned where); /* where extra members go */

#endif
