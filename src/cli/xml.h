/* SPDX-License-Identifier: ISC */
/* Words of others in XML that we write. */
#ifndef FW_CLI_XML_H
#define FW_CLI_XML_H

#include "base/buf.h"

/*
 * Add text for an element or a quoted attribute. What XML 1.0 cannot hold, and bytes that are no UTF-8, are left out. What a terminal or
 * a reader could obey (line ends, C1, bidi controls and so on) becomes a reference with keep, for documents that are read in again, and
 * is left out without.
 */
void cli_xml(struct fw_buf *out, struct fw_str s, bool keep);

#endif
