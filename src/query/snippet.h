/* SPDX-License-Identifier: ISC */
/* A part of an entry's text that shows why it matches. */
#ifndef FW_QUERY_SNIPPET_H
#define FW_QUERY_SNIPPET_H

#include "base/buf.h"
#include "query/query.h"

#define SNIPPET_CHARS 200 /* of a snippet, without marks and ellipses */

/* The texts of an entry, as plain text. */
struct snippet_texts {
	struct fw_str title, summary, content;
};

/*
 * Append the part that has most of the query's words: of summary or content; of the title if they
 * have none; else the start of what there is. Each match stands between FW_MARK_BEGIN and
 * FW_MARK_END; such characters of the text itself are left out. White space becomes one space; an
 * ellipsis (U+2026) stands where text was cut. q NULL: no match. FW_ENOMEM.
 */
FW_MUST_CHECK int query_snippet(struct fw_buf *out, const struct query_node *q, const struct snippet_texts *texts);

#endif
