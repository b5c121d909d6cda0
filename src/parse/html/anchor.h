/* SPDX-License-Identifier: ISC */
/*
 * Links within a content, such as footnotes. An id that is kept gets a prefix: a page and its
 * scripts find elements by id, and an id that the content chooses could impersonate one of them.
 * Links to the id get the same prefix.
 *
 * An id is kept if a link of the content refers to it; a link is changed if the content has its id.
 * A name that has the prefix already is unchanged, so sanitising twice changes nothing.
 */
#ifndef FW_PARSE_HTML_ANCHOR_H
#define FW_PARSE_HTML_ANCHOR_H

#include "base/arena.h"

#define FW_HTML_ANCHOR_PREFIX "user-content-"

/* Sorted hashes of the names in a content. */
struct fw_html_anchors {
	uint64_t *id, *ref;
	size_t id_n, ref_n;
};

void fw_html_anchors_find(struct fw_arena *a, struct fw_str html, struct fw_str base, struct fw_html_anchors *out);
/* The id to write; absent: the id is dropped. */
struct fw_str fw_html_anchor_id(struct fw_arena *a, const struct fw_html_anchors *in, struct fw_str id);
/* The link to write if it refers to a kept id; absent: an ordinary link. */
struct fw_str fw_html_anchor_ref(
	struct fw_arena *a, const struct fw_html_anchors *in, struct fw_str base, struct fw_str href);

#endif
