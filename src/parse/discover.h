/* SPDX-License-Identifier: ISC */
/* The feeds and the hub that a page or an answer names. */
#ifndef FW_PARSE_DISCOVER_H
#define FW_PARSE_DISCOVER_H

#include "base/arena.h"
#include "feedwheel/document.h"

/* Feeds that a page of UTF-8 names, into the arena, in document order, absolute, each once. */
FW_MUST_CHECK int fw_html_discover(struct fw_arena *a, struct fw_str html, struct fw_str url, struct fw_link **links,
	struct fw_err *err);
/* The feeds among the links of an HTTP Link header. */
struct fw_link *fw_link_feeds(struct fw_arena *a, struct fw_str header, struct fw_str url);
/* The feeds that an answer names: its Link header, then the page in whatever encoding. header and content_type may be absent. */
FW_MUST_CHECK int fw_find_feeds(struct fw_arena *a, struct fw_str header, struct fw_str page, struct fw_str content_type, struct fw_str url,
	struct fw_link **links, struct fw_err *err);
/*
 * The hub that an answer names (WebSub section 4), and the address under which it knows the document: by the Link header, else by the links
 * in the page's head. Absent: none. Errors: FW_ENOMEM.
 */
FW_MUST_CHECK int fw_find_hub(struct fw_arena *a, struct fw_str header, struct fw_str page, struct fw_str content_type, struct fw_str url,
	struct fw_str *hub, struct fw_str *self, struct fw_err *err);

#endif
