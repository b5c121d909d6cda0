/* SPDX-License-Identifier: ISC */
/* Parses the HTTP Link header. */
#ifndef FW_PARSE_HTML_LINK_HEADER_H
#define FW_PARSE_HTML_LINK_HEADER_H

#include "base/arena.h"
#include "feedwheel/document.h"

/*
 * The links of an HTTP Link header value (RFC 8288) that have the given rel; all if rel is absent.
 */
struct fw_link *fw_link_header(struct fw_arena *a, struct fw_str value, struct fw_str base, struct fw_str rel);

/* Is word among the space-separated words of rel? Case is ignored. */
bool fw_html_rel_has(struct fw_str rel, struct fw_str word);

#endif
