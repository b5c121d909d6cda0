/* SPDX-License-Identifier: ISC */
/* Decodes text with references as a whole. */
#ifndef FW_PARSE_XML_TEXT_H
#define FW_PARSE_XML_TEXT_H

#include "parse/xml/state.h"

/* *pp is at the first '&' of the text that starts at from. Decodes all text up to the next '<'. */
FW_MUST_CHECK int fw_xml_whole_text(struct xml_state *s, const char *from, const char **pp);

#endif
