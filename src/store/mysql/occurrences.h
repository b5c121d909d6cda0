/* SPDX-License-Identifier: ISC */
/* The search index's rows: what words.c writes into them, and sweep.c takes out. */
#ifndef FW_STORE_MYSQL_OCCURRENCES_H
#define FW_STORE_MYSQL_OCCURRENCES_H

#include "store/mysql/mysql.h"

/* Of a word: the last one that was put, or got. Before the first of a row: {the row's step, 0}. */
struct occurrence {
	int64_t doc;
	uint64_t place;
};

/* Behind those in b; documents and places rise. */
void occurrence_put(struct fw_buf *b, struct occurrence *last, int64_t doc, uint64_t place);
/* The next one. False at the end. */
bool occurrence_get(struct fw_str *list, struct occurrence *o);

/* A step of the walk that takes out what is old, when it is time for one, or one is under way (*more). */
int mysql_sweep(struct mysql_db *s, bool *more, struct fw_err *err);

#endif
