/* SPDX-License-Identifier: ISC */
/* Reads the document type declaration. */
#ifndef FW_PARSE_XML_DTD_H
#define FW_PARSE_XML_DTD_H

#include "parse/xml/state.h"

/* *pp is at "<!DOCTYPE" and moves past its '>'. */
FW_MUST_CHECK int fw_xml_doctype(struct xml_state *s, const char **pp);

#endif
