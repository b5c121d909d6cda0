/* SPDX-License-Identifier: ISC */
/*
 * The PostgreSQL driver: the connection, and what the files of src/store/postgres/ share. Any
 * number of machines can share one server. The SQL core (store/sql/) calls it through
 * postgres_dialect. One thread per connection.
 */
#ifndef FW_STORE_POSTGRES_POSTGRES_H
#define FW_STORE_POSTGRES_POSTGRES_H

#include <libpq-fe.h>

#include "store/sql/core.h"

#define POSTGRES_STATEMENTS 256 /* prepared per connection */
#define POSTGRES_VALUES 64      /* per statement */
#define POSTGRES_MIN 140000     /* libpq has pipelines since 14; the same for the server */

/* a statement that was sent */
struct postgres_sent {
	int statement; /* its number; -1: none */
	bool preparation, guard;
};

struct postgres_db {
	struct sql sql;
	PGconn *c;
	char schema[64], channel[64], channel_new[64]; /* channels: of changes, of new entries */
	char session[20];                              /* behind a pooler: a mark that our session has; "": no pooler */
	bool broken;                                   /* the connection is unusable */
	bool listening, notified;
	bool in_callback;                      /* a row callback runs */
	bool reading;                          /* a statement's rows are awaited: it may be cancelled */
	const char *kept[POSTGRES_STATEMENTS]; /* prepared as "s0", "s1" ... */
	size_t kept_n;
	struct postgres_sent *sent; /* statements that were sent, and whose results were not read */
	size_t sent_n, sent_cap;
	/* error of a statement whose result was not awaited; rc 0: none */
	struct fw_err late;
	struct fw_buf value; /* parameters of the current statement in binary */
};

static inline struct postgres_db *postgres_db(struct sql *s)
{
	return (struct postgres_db *)s; /* sql comes first */
}

extern const struct sql_dialect postgres_dialect;

/* Marks the connection unusable, and sets FW_EIO. */
int postgres_broken(struct postgres_db *s, const char *why, struct fw_err *err);

/* open.c */
store_inspect_fn postgres_inspect;
store_wait_fn postgres_wait;
int postgres_notify(struct sql *s, struct fw_err *err);
int postgres_entries_new(struct sql *s, int64_t entry_id, struct fw_err *err);

/* doors.c */
extern const char *const postgres_doors[]; /* NULL-ended */
/* tsvector.c: as in sql.h */
int postgres_search_changed(struct sql *s, int64_t entry_id, enum sql_entry_change what, struct fw_err *err);
int postgres_search_step(struct sql *s, bool *more, struct fw_err *err);
int postgres_search_begin(struct sql *s, const struct query_node *words, bool *any, bool *exact, struct fw_buf *value,
	int64_t *missing, struct fw_err *err);
extern const char *const postgres_search_tables[], *const postgres_search_upgrade[]; /* NULL-ended */

#endif
