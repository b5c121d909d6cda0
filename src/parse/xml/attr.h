/* SPDX-License-Identifier: ISC */
/* The attributes of a start tag. */
#ifndef FW_PARSE_XML_ATTR_H
#define FW_PARSE_XML_ATTR_H

#include "parse/xml/tag.h"

/* What stands between the element's name and '>', into s->attr; t->end goes behind it. */
FW_MUST_CHECK int fw_xml_attributes(struct xml_state *s, struct xml_tag *t, const char *p);
/* Defaults and types that the DTD declares for the element. */
FW_MUST_CHECK int fw_xml_attrs_declared(struct xml_state *s, struct fw_str raw);
/* Declarations of namespaces leave the list, prefixes are resolved. */
FW_MUST_CHECK int fw_xml_attrs_resolve(struct xml_state *s);

#endif
