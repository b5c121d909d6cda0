/* SPDX-License-Identifier: ISC */
/* Finds the feeds and the hub that a page or an HTTP response names. */
#ifndef FW_PARSE_DISCOVER_H
#define FW_PARSE_DISCOVER_H

#include "base/arena.h"
#include "feedwheel/document.h"

/*
 * The feeds that a UTF-8 page names: absolute URLs in document order, without duplicates, in the
 * arena.
 */
FW_MUST_CHECK int fw_html_discover(
	struct fw_arena *a, struct fw_str html, struct fw_str url, struct fw_link **links, struct fw_err *err);
/* The feeds among the links of an HTTP Link header. */
struct fw_link *fw_link_feeds(struct fw_arena *a, struct fw_str header, struct fw_str url);
/*
 * The feeds that a response names: those of its Link header, then those of the page, which may have
 * any encoding. header and content_type may be absent.
 */
FW_MUST_CHECK int fw_find_feeds(struct fw_arena *a, struct fw_str header, struct fw_str page,
	struct fw_str content_type, struct fw_str url, struct fw_link **links, struct fw_err *err);
/*
 * The hub that a response names (WebSub section 4) and its self link, the topic URL. The Link
 * header wins; otherwise the links in the page's <head> count. Absent: none. Errors: FW_ENOMEM.
 */
FW_MUST_CHECK int fw_find_hub(struct fw_arena *a, struct fw_str header, struct fw_str page, struct fw_str content_type,
	struct fw_str url, struct fw_str *hub, struct fw_str *self, struct fw_err *err);

#endif
