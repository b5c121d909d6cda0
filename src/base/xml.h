/* SPDX-License-Identifier: ISC */
/* Escaping foreign text for the XML that feedwheel writes (feeds, OPML, SVG). */
#ifndef FW_BASE_XML_H
#define FW_BASE_XML_H

#include "base/buf.h"

/*
 * Characters that control a terminal or mislead a reader (line ends, C1, bidi controls):
 */
enum fw_xml_unsafe {
	FW_XML_DROP, /* are dropped */
	FW_XML_KEEP, /* become numeric references, for documents that are read again */
	FW_XML_TEXT, /* the same, but line feeds and tabs stay: for the text of an element */
};

/*
 * Append s as the text of an element or of a quoted attribute. Characters that XML 1.0 cannot
 * contain (section 2.2) and bytes that are not UTF-8 are dropped.
 */
void fw_xml_escape(struct fw_buf *out, struct fw_str s, enum fw_xml_unsafe unsafe);
/* Can XML 1.0 contain this character (Char, section 2.2)? */
bool fw_xml_is_char(uint32_t cp);

#endif
