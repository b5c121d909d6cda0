/* SPDX-License-Identifier: ISC */
/* The PostgreSQL driver: any number of machines share one server. What its files share. */
#ifndef FW_STORE_POSTGRES_POSTGRES_H
#define FW_STORE_POSTGRES_POSTGRES_H

#include <libpq-fe.h>

#include "store/sql/core.h"

#define POSTGRES_STATEMENTS 256 /* prepared, of one connection */
#define POSTGRES_VALUES 64      /* of one statement */
#define POSTGRES_MIN 140000     /* pipelines are libpq's since 14; the server's version, too */

struct postgres_sent {
	int statement;        /* its number, -1: none */
	bool preparation, guard;
};

struct postgres_db {
	struct sql sql;
	PGconn *c;
	char schema[64], channel[64];
	char session[20];         /* behind a pooler: a mark that the session has; "": there is none */
	bool broken;              /* the connection is of no use any more */
	bool listening, heard;
	bool in_callback;         /* an answer's rows are being shown */
	const char *kept[POSTGRES_STATEMENTS]; /* prepared as "s0", "s1" ... */
	size_t kept_n;
	struct postgres_sent *sent;                  /* what was sent, and not answered yet */
	size_t sent_n, sent_cap;
	struct fw_err late;       /* of what was sent and answered since; rc 0: none */
	struct fw_buf value;      /* values of the statement under way, as libpq wants them */
};

static inline struct postgres_db *postgres_db(struct sql *s)
{
	return (struct postgres_db *)s; /* sql comes first */
}

extern const struct sql_dialect postgres_dialect;

/* The code of a failed answer as ours, with words. r NULL: the connection's. */
int postgres_failed(struct postgres_db *s, const PGresult *r, struct fw_err *err);
/* The connection is of no use any more. */
int postgres_gone(struct postgres_db *s, const char *why, struct fw_err *err);

/* open.c */
store_inspect_fn postgres_inspect;
store_wait_fn postgres_wait;
int postgres_tell(struct sql *s, struct fw_err *err);

/* tsvector.c; as in sql.h */
int postgres_search_changed(struct sql *s, int64_t entry_id, enum sql_entry_change what, struct fw_err *err);
int postgres_search_step(struct sql *s, bool *more, struct fw_err *err);
int postgres_search_begin(
	struct sql *s, struct fw_str words, bool *any, struct fw_buf *value, int64_t *missing, struct fw_err *err);
extern const char *const postgres_search_tables[]; /* ended by NULL */

#endif
