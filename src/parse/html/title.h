/* SPDX-License-Identifier: ISC */
/* Titles that do not say whether they are HTML. */
#ifndef FW_PARSE_HTML_TITLE_H
#define FW_PARSE_HTML_TITLE_H

#include "feedwheel/types.h"

/* Does a title look like HTML? Tags that HTML knows, or character references; "<vector>" does not. */
bool fw_title_is_html(struct fw_str s);

#endif
