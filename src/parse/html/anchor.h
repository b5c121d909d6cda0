/* SPDX-License-Identifier: ISC */
/*
 * Links within a content, such as footnotes. An id that stays gets a prefix, for a page finds its own parts by their ids, and so do its
 * scripts: an id of a content's choice could stand in for one of them. A link to the id is changed alike.
 *
 * An id stays when a link of the content leads to it; a link is changed when the content has its id. What has the prefix
 * already stays as it is, so a second time changes nothing.
 */
#ifndef FW_PARSE_HTML_ANCHOR_H
#define FW_PARSE_HTML_ANCHOR_H

#include "base/arena.h"

#define FW_HTML_ANCHOR_PREFIX "user-content-"

/* Hashes of the names in a content, in order. */
struct fw_html_anchors {
	uint64_t *id, *ref;
	size_t id_n, ref_n;
};

void fw_html_anchors_find(struct fw_arena *a, struct fw_str html, struct fw_str base, struct fw_html_anchors *out);
/* The id as it may be written; absent: it goes. */
struct fw_str fw_html_anchor_id(struct fw_arena *a, const struct fw_html_anchors *in, struct fw_str id);
/* The link as it is written when it leads to an id that stays; absent: it is a link as all others. */
struct fw_str fw_html_anchor_ref(struct fw_arena *a, const struct fw_html_anchors *in, struct fw_str base, struct fw_str href);

#endif
