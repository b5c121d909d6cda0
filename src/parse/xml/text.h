/* SPDX-License-Identifier: ISC */
/* Text with references, decoded at once. */
#ifndef FW_PARSE_XML_TEXT_H
#define FW_PARSE_XML_TEXT_H

#include "parse/xml/state.h"

/* *pp at the first '&' of the text that begins at from: all up to the next '<', decoded. */
FW_MUST_CHECK int fw_xml_whole_text(struct xml_state *s, const char *from, const char **pp);

#endif
