/* SPDX-License-Identifier: ISC */
/* Decides whether a title that does not declare its type is HTML. */
#ifndef FW_PARSE_HTML_TITLE_H
#define FW_PARSE_HTML_TITLE_H

#include "feedwheel/types.h"

/*
 * Does a title look like HTML? It does if it has known HTML tags or character references;
 * "<vector>" does not.
 */
bool fw_title_is_html(struct fw_str s);

#endif
