/* SPDX-License-Identifier: ISC */
/* Writing subscriptions as OPML 2.0, which fw_opml_read() reads. */
#ifndef FW_API_OPML_H
#define FW_API_OPML_H

#include "feedwheel/types.h"

struct fw_buf;

struct fw_opml_item {
	struct fw_str folder, title, url, home; /* home "": none */
	size_t at;                              /* the order within a folder */
};
/* By folder, so that each folder is written once. */
void fw_opml_sort(struct fw_opml_item *item, size_t n);

/*
 * Folders become nested outlines. The buffer may be emptied between the calls; strings of an item
 * stay valid until the end.
 */
struct fw_opml_writer {
	struct fw_buf *out;
	struct fw_str folder; /* of the last item */
};
void fw_opml_begin(struct fw_opml_writer *w, struct fw_buf *out, int64_t now_ms);
void fw_opml_add(struct fw_opml_writer *w, const struct fw_opml_item *item);
void fw_opml_end(struct fw_opml_writer *w);

#endif
