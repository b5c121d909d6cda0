/* SPDX-License-Identifier: ISC */
/* The tokenizer's loop (xml.c) as the other files use it. */
#ifndef FW_PARSE_XML_CORE_H
#define FW_PARSE_XML_CORE_H

#include "parse/xml/state.h"

/* Read content up to s->end; elements may stay open. */
FW_MUST_CHECK int fw_xml_content(struct xml_state *s, const char *p);

/* Treat a "<" that starts nothing as text. */
FW_MUST_CHECK int fw_xml_stray_lt(struct xml_state *s, const char **pp);
/* Report "]]>" in text. */
void fw_xml_stray_cdata_end(struct xml_state *s, const char *p);
/* Report text from p as an event, unless it is empty. */
FW_MUST_CHECK int fw_xml_emit(struct xml_state *s, const char *p, const char *end, struct fw_str text);
FW_MUST_CHECK int fw_xml_expand(struct xml_state *s, const char *p, struct xml_entity *e);

#endif
