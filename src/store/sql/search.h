/* SPDX-License-Identifier: ISC */
/*
 * A search index that lies beside the entries and is filled behind the storing, so that storing
 * never waits for it. What such indexes have in common; for dialects.
 *
 * Entries up to the number `indexed_entry_id` are in the index, but for those that the table
 * entries_changed (entry_id) names, where there is one: they wait to be read again. One process at a
 * time fills it, a step after the other, each a transaction.
 */
#ifndef FW_STORE_SQL_SEARCH_H
#define FW_STORE_SQL_SEARCH_H

#include "base/arena.h"
#include "store/sql/sql.h"

#define SQL_SEARCH_ROWS 300
#define SQL_SEARCH_MARK "(SELECT value FROM numbers WHERE name = 'indexed_entry_id')"
/* Of each text the first MiB. A character that is cut in the middle by the limit is no matter. */
#define SQL_SEARCH_COLUMNS "e.id, {head e.title}, {head e.summary}, {head e.content}, e.content_type"

/* The words of a row of these columns: of the title, whose length is returned; a line end, the rest. */
size_t sql_search_words(struct fw_buf *out, const struct sql_row *row);

struct sql_search_step;

struct sql_search_index {
	size_t rows;                    /* that a step reads of what changed, and of what is new */
	size_t bytes;                   /* a step ends behind so much text */
	/*
	 * Up to ?1 entries that changed (SQL_SEARCH_ROWS at most), by number, each once: locked, or
	 * taken out; NULL: there are none
	 */
	const char *changed;
	int (*add)(struct sql_search_step *p, int64_t entry_id, struct fw_str words); /* FW_ENOMEM: without words */
	int (*write)(struct sql_search_step *p, struct fw_err *err); /* what was added, behind it; NULL: it is */
	void (*end)(struct sql_search_step *p); /* frees what is the dialect's own; NULL: nothing is */
};

struct sql_search_step { /* a dialect's own begins with it */
	struct sql *s;
	const struct sql_search_index *index;
	struct fw_err *err;
	struct fw_arena a;              /* of the step */
	struct fw_buf words;            /* of the entry at hand */
	size_t title_len;               /* of these */
	int64_t changed[SQL_SEARCH_ROWS]; /* as found */
	size_t changed_n;
	size_t n, again_n;              /* entries that were read: first what changed and is there, then what is new */
	int64_t indexed, last_id;       /* up to this one; the last one that was read */
	size_t bytes;
	bool full;
};

/* A step; *more: it did something. p is all 0, but for what is the dialect's own. */
int sql_search_step(struct sql_search_step *p, struct sql *s, const struct sql_search_index *index, bool *more,
	struct fw_err *err);

/* So many entries wait to be indexed: new ones, and those that changed; of each sort up to max are counted. */
int sql_search_behind(struct sql *s, int64_t max, int64_t *n, struct fw_err *err);
typedef int sql_search_step_fn(struct sql *s, bool *more, struct fw_err *err);
/* Of maintenance: steps for some tens of ms. Idle workers do not write. */
int sql_search_steps(struct sql *s, sql_search_step_fn *step, bool *more, struct fw_err *err);
/* Before a search: so many steps as one that waits can bear, where little is missing. *missing as in sql.h. */
int sql_search_catch_up(struct sql *s, sql_search_step_fn *step, int64_t *missing, struct fw_err *err);
/* As in sql.h. */
int sql_search_unindexed(struct sql *s, int64_t *n, struct fw_err *err);

#endif
