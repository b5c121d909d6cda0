/* SPDX-License-Identifier: ISC */
/* Tags and the stack of open elements. */
#ifndef FW_PARSE_XML_TAG_H
#define FW_PARSE_XML_TAG_H

#include "parse/xml/state.h"

enum {
	TAG_EMPTY = 1,    /* ends in "/>" */
	TAG_CUT = 2,      /* the input ended inside the tag */
	TAG_COLONS = 4,   /* an attribute name has a colon or is xmlns */
	TAG_TOO_MANY = 8, /* too many attributes */
	TAG_VALUED = 16,  /* an attribute has a value */
	TAG_STRAY = 32,   /* "a <b and c <d>": not a tag */
};

struct xml_tag {
	const char *lt, *end;  /* end: after '>' */
	struct xml_open *open; /* its entry on top of the stack */
	unsigned flags;
};

/* *pp is at '<' and the start of a name follows. */
FW_MUST_CHECK int fw_xml_start_tag(struct xml_state *s, const char **pp);
/* *pp is at "</". */
FW_MUST_CHECK int fw_xml_end_tag(struct xml_state *s, const char **pp);
/* The input ends inside a tag, which is ignored. */
FW_MUST_CHECK int fw_xml_cut_tag(struct xml_state *s, const char **pp);
/* Close elements until depth of them are left. The document has no end tags for them. */
FW_MUST_CHECK int fw_xml_close_to(struct xml_state *s, const char *p, uint32_t depth, const char *what);

#endif
