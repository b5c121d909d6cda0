/* SPDX-License-Identifier: ISC */
/*
 * An open element: its attributes, text and URL, and the field that it may fill. Used by all
 * elements.
 */
#ifndef FW_PARSE_FEED_FRAME_H
#define FW_PARSE_FEED_FRAME_H

#include "parse/feed/builder.h"

/* The start of an element. */
struct fw_start_event {
	struct fw_builder *b;
	const struct fw_xml_name *name;
	const struct fw_xml_attr *attr;
	size_t attr_n;
	const struct fw_element *el;
	struct fw_frame *frame, *up; /* up: NULL at the root */
	enum fw_context where;
};

/*
 * An attribute in no namespace, in the element's own, or in RDF's. Case is ignored. Absent if
 * missing.
 */
struct fw_str fw_attr_find(const struct fw_start_event *w, struct fw_str name);
#define fw_attr(w, literal) fw_attr_find((w), FW_STR(literal))
/* Capture this element's text. */
void fw_text_capture(struct fw_start_event *w, enum fw_text_rule rule);
/*
 * Interpret the captured text s by the frame's rule. markup: child elements were written into it.
 */
struct fw_str fw_text_value(
	struct fw_builder *b, const struct fw_frame *f, struct fw_str s, bool markup, enum fw_text_type *type);
/* the feed, or the open atom:source */
struct fw_document *fw_feed_of(struct fw_builder *b, enum fw_context where);
struct fw_counts *fw_counts_of(struct fw_builder *b, bool entry);
/*
 * May this element fill the field? The highest rank wins, and the first among equals. Records the
 * rank.
 */
bool fw_field_take(struct fw_builder *b, enum fw_context where, enum element_field field, uint8_t rank);
/*
 * The same for an address: sets *to and returns true if url may stand there. Beside rank,
 * fw_url_weigh() decides.
 */
bool fw_address_take(struct fw_builder *b, enum fw_context where, enum element_field field, uint8_t rank,
	struct fw_str *to, struct fw_str url);
/* The context of the element around f. */
enum fw_context fw_context_around(const struct fw_builder *b, const struct fw_frame *f);
bool fw_in_entry(const struct fw_builder *b, enum fw_context where);
/*
 * An element's URL is its text if that is absolute, else an attribute, which the start stores in
 * obj.
 */
void fw_url_start(struct fw_start_event *w);
struct fw_str fw_url_text(const struct fw_frame *f, struct fw_str s);
/* where extra members are added */
struct fw_value **fw_extra_root(struct fw_builder *b, unsigned where);

#endif
