/* SPDX-License-Identifier: ISC */
/* Escaping foreign text for the XML that commands write (OPML, SVG). */
#ifndef FW_CLI_XML_H
#define FW_CLI_XML_H

#include "base/buf.h"

/*
 * Append s as the text of an element or of a quoted attribute. Characters that XML 1.0 cannot
 * contain (section 2.2) and bytes that are not UTF-8 are dropped. Characters that control a
 * terminal or mislead a reader (line ends, C1, bidi controls) become numeric references with keep,
 * for documents that are read again, and are dropped without it.
 */
void cli_xml(struct fw_buf *out, struct fw_str s, bool keep);

#endif
