/* SPDX-License-Identifier: ISC */
/* Namespace prefixes and their bindings. */
#ifndef FW_PARSE_XML_PREFIX_H
#define FW_PARSE_XML_PREFIX_H

#include "parse/charset/scan.h"
#include "parse/xml/state.h"

/* Split a name as written into prefix and local name; does not resolve it. */
void fw_xml_split_name(struct xml_state *s, const char *p, const struct scan_name *n, struct fw_xml_name *out);
/* Handle an attribute named xmlns or xmlns:prefix. */
FW_MUST_CHECK int fw_xml_declare(struct xml_state *s, const struct fw_xml_attr *a);
/* Resolve the namespace of a name that has a prefix. */
FW_MUST_CHECK int fw_xml_resolve(struct xml_state *s, struct fw_xml_name *name);
/* Undo declarations until undo_n are left. */
void fw_xml_unbind(struct xml_state *s, size_t undo_n);

#endif
