/* SPDX-License-Identifier: ISC */
/* The rows of the search index: words.c writes them, sweep.c removes old words from them. */
#ifndef FW_STORE_MYSQL_OCCURRENCES_H
#define FW_STORE_MYSQL_OCCURRENCES_H

#include "store/mysql/mysql.h"

/*
 * A position in a list: the last occurrence put or read. Before the first one: {step of the row,
 * 0}.
 */
struct occurrence {
	int64_t doc;
	uint64_t position;
};

/* Append an occurrence. Documents, and positions within a document, rise. */
void occurrence_put(struct fw_buf *b, struct occurrence *last, int64_t doc, uint64_t position);
/* The next occurrence. False at the end. */
bool occurrence_get(struct fw_str *list, struct occurrence *o);

/* One step of the walk that removes old words, if one runs or is due. *more: the walk goes on. */
int mysql_sweep(struct mysql_db *s, bool *more, struct fw_err *err);

#endif
