/* SPDX-License-Identifier: ISC */
/*
 * The parts of the XML reader: walk.c keeps frames and text; elements.c acts on elements, plain values itself, texts, people,
 * links and modules in the files of these names.
 */
#ifndef FW_PARSE_WALK_H
#define FW_PARSE_WALK_H

#include "parse/build.h"

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

/* ---- walk.c ---- */
/* An attribute without a namespace, in the element's own, or in RDF's; case does not count; absent when there is none. */
struct fw_str fw_attr_find(const struct fw_walk *w, struct fw_str name);
#define fw_attr(w, literal) fw_attr_find((w), FW_STR(literal))
/* Gather this element's text. */
void fw_walk_capture(struct fw_walk *w, enum fw_text_rule rule);
/* What the gathered text s is by the frame's rule; markup: child elements were written into it. */
struct fw_str fw_text_value(struct fw_builder *b, const struct fw_frame *f, struct fw_str s, bool markup,
	enum fw_text_type *type);

/* ---- ahead.c ---- */
/* Does the end tag of the nth open element not come before that of the one around it? Remembered in the frame. */
bool fw_end_lost(struct fw_builder *b, size_t n, size_t around);
/* Does an element of that local name begin anywhere behind the start tag being read? */
bool fw_ahead(struct fw_builder *b, const char *local);
/* Is there nothing in f, whose start tag is being read? */
bool fw_is_hollow(const struct fw_builder *b, const struct fw_frame *f);

/* ---- elements.c ---- */
FW_MUST_CHECK int fw_walk_start(struct fw_walk *w);
void fw_frame_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s, bool markup);

struct fw_document *fw_feed_of(struct fw_builder *b, enum fw_context where); /* the feed, or the source that is open */
struct fw_counts *fw_counts_of(struct fw_builder *b, bool entry);
void fw_category_add(struct fw_builder *b, bool entry, struct fw_str term, struct fw_str scheme, struct fw_str label);
/* May this element fill the field? The higher rank may, and the first of equals. */
bool fw_take(struct fw_builder *b, enum fw_context where, enum fw_field field, uint8_t rank);
/* Of the element around f. */
enum fw_context fw_where_of(const struct fw_builder *b, const struct fw_frame *f);
bool fw_in_entry(const struct fw_builder *b, enum fw_context where);
/* The address of an element: its text when that is absolute, or else an attribute, which the start keeps in obj. */
void fw_url_start(struct fw_walk *w);
struct fw_str fw_url_text(const struct fw_frame *f, struct fw_str s);
/* The first of an address counts. */
void fw_attachment_add(struct fw_builder *b, struct fw_str url, struct fw_str type, struct fw_str title, int64_t size);

/* ---- texts.c, people.c, links.c: the start or the end of one kind ---- */
void fw_text_start(struct fw_walk *w);
struct fw_str fw_text_line(struct fw_builder *b, const struct fw_frame *f, struct fw_str s, bool markup); /* of a title */
void fw_text_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s, bool markup);
void fw_body_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s, bool markup);
void fw_person_start(struct fw_walk *w);
void fw_person_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s);
void fw_person_part_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s);
void fw_link_start(struct fw_walk *w);
void fw_link_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s);
void fw_guid_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s);
void fw_enclosure_start(struct fw_walk *w);
void fw_enclosure_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s);
void fw_image_set(struct fw_builder *b, struct fw_str url, uint8_t rank); /* <image> of the channel or an item */
void fw_category_start(struct fw_walk *w);
void fw_category_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s);
void fw_source_start(struct fw_walk *w);
void fw_source_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s);
void fw_generator_start(struct fw_walk *w);

/* ---- modules.c ---- */
void fw_module_start(struct fw_walk *w);
void fw_module_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s, bool markup);
/* RSS's own elements inside podcast:liveItem. */
void fw_live_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s, bool markup);
struct fw_value **fw_extra_root(struct fw_builder *b, unsigned where);

/* ---- geo.c: GeoRSS, GML, W3C geo, ICBM ---- */
void fw_geo_start(struct fw_walk *w);
void fw_geo_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s);

#endif
