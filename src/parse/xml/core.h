/* SPDX-License-Identifier: ISC */
/* What xml.c, the tokenizer's loop, does for the other parts. */
#ifndef FW_PARSE_XML_CORE_H
#define FW_PARSE_XML_CORE_H

#include "parse/xml/state.h"

/* Content up to s->end; elements may stay open. */
FW_MUST_CHECK int fw_xml_content(struct xml_state *s, const char *p);

/* "<" that begins nothing: it is text. */
FW_MUST_CHECK int fw_xml_stray_lt(struct xml_state *s, const char **pp);
/* "]]>" in text, reported. */
void fw_xml_stray_cdata_end(struct xml_state *s, const char *p);
/* Text from p: an event, unless there is none. */
FW_MUST_CHECK int fw_xml_emit(struct xml_state *s, const char *p, const char *end, struct fw_str text);
FW_MUST_CHECK int fw_xml_expand(struct xml_state *s, const char *p, struct xml_entity *e);

#endif
