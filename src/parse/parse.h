/* SPDX-License-Identifier: ISC */
/*
 * The parser's interface for the engine; the public fw_parse() is a wrapper around it. Pure.
 * Implemented in parse.c (bytes to document), ndjson.c (NDJSON), json_out.c (document to JSON) and
 * opml.c.
 */
#ifndef FW_PARSE_PARSE_H
#define FW_PARSE_PARSE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/json.h"
#include "feedwheel/document.h"

/*
 * Load the C library's tables of all encodings, some 2 MB of shared files, for a process that may
 * load no code later. A table that is missing is missed later too.
 */
void fw_parse_preload(void);

/*
 * Parse a document into the caller's arena, where *doc lives. *doc borrows from bytes (zero copy),
 * so bytes must live as long.
 */
FW_MUST_CHECK int fw_parse_into(struct fw_arena *a, struct fw_str bytes, const struct fw_parse_options *o,
	struct fw_document **doc, struct fw_err *err);

/*
 * Parse NDJSON: one JSON Feed item per line. Only what JSON Feed permits is repaired; otherwise
 * FW_EINVAL names the line. The document borrows from the arena only.
 */
FW_MUST_CHECK int fw_parse_ndjson(struct fw_arena *a, struct fw_str bytes, const struct fw_parse_options *o,
	struct fw_document **doc, struct fw_err *err);

/*
 * Unpack a gzip body that no Content-Encoding announced. *bytes becomes its contents; it is
 * unchanged if it is not gzip or nothing can be unpacked. *cut: the data is damaged. The limit is
 * l->max_bytes; 0: 16 MiB.
 */
FW_MUST_CHECK int fw_gunzip(
	struct fw_arena *a, const struct fw_limits *l, struct fw_str *bytes, bool *cut, struct fw_err *err);

/*
 * Append an object with the members that have no column in the store, which are all but id, url,
 * title, summary, content, dates and language. Appends nothing if there are none.
 */
void fw_out_item_extra(struct fw_json *j, const struct fw_entry *e);
void fw_out_feed_extra(struct fw_json *j, const struct fw_document *doc);

/* OPML (opml.c). The public fw_opml_read() is a wrapper around this. */
FW_MUST_CHECK int fw_opml_parse(struct fw_arena *a, struct fw_str bytes, fw_opml_cb *cb, fw_opml_problem_cb *problem,
	void *ctx, struct fw_err *err);

#endif
