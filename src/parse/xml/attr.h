/* SPDX-License-Identifier: ISC */
/* The attributes of a start tag. */
#ifndef FW_PARSE_XML_ATTR_H
#define FW_PARSE_XML_ATTR_H

#include "parse/xml/tag.h"

/*
 * Read the attributes between the element's name and '>' into s->attr; t->end moves past the '>'.
 */
FW_MUST_CHECK int fw_xml_attributes(struct xml_state *s, struct xml_tag *t, const char *p);
/* Apply the defaults and types that the DTD declares for the element. */
FW_MUST_CHECK int fw_xml_attrs_declared(struct xml_state *s, struct fw_str raw);
/* Remove namespace declarations from the list and resolve prefixes. */
FW_MUST_CHECK int fw_xml_attrs_resolve(struct xml_state *s);

#endif
