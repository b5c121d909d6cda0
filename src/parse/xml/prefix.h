/* SPDX-License-Identifier: ISC */
/* What prefixes are bound to. */
#ifndef FW_PARSE_XML_PREFIX_H
#define FW_PARSE_XML_PREFIX_H

#include "parse/charset/scan.h"
#include "parse/xml/state.h"

/* A name as written to prefix and local name; not resolved yet. */
void fw_xml_split_name(struct xml_state *s, const char *p, const struct scan_name *n, struct fw_xml_name *out);
/* An attribute named xmlns or xmlns:prefix. */
FW_MUST_CHECK int fw_xml_declare(struct xml_state *s, const struct fw_xml_attr *a);
/* Namespace of a name that has a prefix. */
FW_MUST_CHECK int fw_xml_resolve(struct xml_state *s, struct fw_xml_name *name);
/* Take declarations back until undo_n are left. */
void fw_xml_unbind(struct xml_state *s, size_t undo_n);

#endif
