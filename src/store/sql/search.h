/* SPDX-License-Identifier: ISC */
/*
 * A search index that is filled after entries are stored, so that storing never waits for it. This
 * is the part that all dialects with such an index share.
 *
 * Entries with ids up to `indexed_entry_id` are indexed. Exceptions are listed in the table
 * entries_changed (entry_id), if the dialect has it: they wait to be read again. One process at a
 * time fills the index, in steps; each step is a transaction.
 */
#ifndef FW_STORE_SQL_SEARCH_H
#define FW_STORE_SQL_SEARCH_H

#include "base/arena.h"
#include "store/sql/sql.h"

#define SQL_SEARCH_ROWS 300
#define SQL_SEARCH_INDEXED_ID "(SELECT value FROM meta WHERE name = 'indexed_entry_id')"
/* The first MiB of each text. A character may be cut at the limit. */
#define SQL_SEARCH_COLUMNS "e.id, {head e.title}, {head e.summary}, {head e.content}, e.content_type"

/*
 * Append the words of a row of SQL_SEARCH_COLUMNS: title, line end, rest. Returns the title's
 * length.
 */
size_t sql_search_words(struct fw_buf *out, const struct sql_row *row);

struct sql_search_step;

struct sql_search_index {
	size_t rows;  /* how many changed, and how many new, entries a step reads at most */
	size_t bytes; /* a step ends after this much text */
	/*
	 * Statement: up to ?1 (at most SQL_SEARCH_ROWS) ids from entries_changed, in order, each
	 * once, locked or removed; NULL: the dialect has no such table
	 */
	const char *changed;
	int (*add)(struct sql_search_step *p, int64_t entry_id, struct fw_str words); /* FW_ENOMEM: err is not set */
	int (*write)(struct sql_search_step *p, struct fw_err *err); /* store what was added; NULL: add() does */
	void (*end)(struct sql_search_step *p);                      /* free the dialect's own members; may be NULL */
};

/* The first member of a dialect's own step. */
struct sql_search_step {
	struct sql *s;
	const struct sql_search_index *index;
	struct fw_err *err;
	struct fw_arena a;                /* for the step */
	struct fw_buf words;              /* of the current entry */
	size_t title_len;                 /* of words */
	int64_t changed[SQL_SEARCH_ROWS]; /* ids of changed entries */
	size_t changed_n;
	size_t n, again_n;        /* entries read in all; of these, changed ones (read first) */
	int64_t indexed, last_id; /* the old indexed_entry_id; the last id read */
	size_t bytes;
	bool full;
};

/* Run a step; *more: it did something. p: zero, except for the dialect's own members. */
int sql_search_step(
	struct sql_search_step *p, struct sql *s, const struct sql_search_index *index, bool *more, struct fw_err *err);

/* Count the entries that wait to be indexed, new and changed, up to max of each. */
int sql_search_pending(struct sql *s, int64_t max, int64_t *n, struct fw_err *err);
typedef int sql_search_step_fn(struct sql *s, bool *more, struct fw_err *err);
/* Maintenance: run steps for tens of ms. Writes nothing if all is indexed. */
int sql_search_steps(struct sql *s, sql_search_step_fn *step, bool *more, struct fw_err *err);
/*
 * Before a search: index what is missing if that is little, for a limited time. *missing as in
 * sql.h.
 */
int sql_search_catch_up(struct sql *s, sql_search_step_fn *step, int64_t *missing, struct fw_err *err);
/* As in sql.h. */
int sql_search_unindexed(struct sql *s, int64_t *n, struct fw_err *err);

#endif
