/* SPDX-License-Identifier: ISC */
/*
 * The parse room's inner door: what the engine calls. The library's fw_parse() is a thin coat over it. Pure.
 * Here: parse.c (bytes to a document), lines.c, out.c (a document to JSON), opml.c.
 */
#ifndef FW_PARSE_PARSE_H
#define FW_PARSE_PARSE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/json.h"
#include "feedwheel/document.h"

/* Read a document into the caller's arena; *doc lives there. bytes must live as long as *doc (zero copy). */
FW_MUST_CHECK int fw_parse_into(struct fw_arena *a, struct fw_str bytes, const struct fw_parse_options *o,
	struct fw_document **doc, struct fw_err *err);

/*
 * The same for one item of JSON Feed a line. Nothing is repaired but what JSON Feed's items are allowed: FW_EINVAL names the line. The
 * document borrows from the arena only.
 */
FW_MUST_CHECK int fw_parse_lines(struct fw_arena *a, struct fw_str bytes, const struct fw_parse_options *o, struct fw_document **doc,
	struct fw_err *err);

/*
 * A gzip body that no header announced: *bytes becomes what is in it; left as it is when nothing can be made of it, or it is none.
 * *cut: it is damaged. l->max_bytes bounds it, 0: 16 MiB.
 */
FW_MUST_CHECK int fw_gunzip(struct fw_arena *a, const struct fw_limits *l, struct fw_str *bytes, bool *cut, struct fw_err *err);

/* JSON Feed 1.1 (out.c): a whole document; one item as an object; an item's members that the store has no column for. */
void fw_out_document(struct fw_json *j, const struct fw_document *doc, unsigned flags);
void fw_out_item(struct fw_json *j, const char *key, const struct fw_entry *e, unsigned flags);
/* Members other than id, url, title, summary, content, dates, language: "" when there are none. Appends an object. */
void fw_out_item_extra(struct fw_json *j, const struct fw_entry *e);
void fw_out_feed_extra(struct fw_json *j, const struct fw_document *doc);

/* OPML (opml.c): what fw_opml_read() is a coat over. */
FW_MUST_CHECK int fw_opml_parse(struct fw_arena *a, struct fw_str bytes, fw_opml_cb *cb, fw_opml_problem_cb *problem,
	void *ctx, struct fw_err *err);

#endif
