/* SPDX-License-Identifier: ISC */
/* Tags and the stack of open elements. */
#ifndef FW_PARSE_XML_TAG_H
#define FW_PARSE_XML_TAG_H

#include "parse/xml/state.h"

enum {
	TAG_EMPTY = 1,    /* ends in "/>" */
	TAG_CUT = 2,      /* the input ended before the tag did */
	TAG_COLONS = 4,   /* some attribute's name has a colon, or is xmlns */
	TAG_TOO_MANY = 8, /* attributes */
	TAG_VALUED = 16,  /* some attribute has a value */
	TAG_STRAY = 32,   /* "a <b and c <d>": no tag at all */
};

struct xml_tag {
	const char *lt, *end; /* end: behind '>' */
	struct xml_open *open; /* the place on top of the stack that it is read into */
	unsigned flags;
};

/* *pp at '<', a name's first byte behind it. */
FW_MUST_CHECK int fw_xml_start_tag(struct xml_state *s, const char **pp);
/* *pp at "</". */
FW_MUST_CHECK int fw_xml_end_tag(struct xml_state *s, const char **pp);
/* The input ends inside a tag: it is left out. */
FW_MUST_CHECK int fw_xml_cut_tag(struct xml_state *s, const char **pp);
/* Close elements until depth of them are left; nothing in the document says so. */
FW_MUST_CHECK int fw_xml_close_to(struct xml_state *s, const char *p, uint32_t depth, const char *what);

#endif
