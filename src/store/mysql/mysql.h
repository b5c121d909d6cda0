/* SPDX-License-Identifier: ISC */
/* The MariaDB and MySQL driver: any number of machines share one server. What its files share. */
#ifndef FW_STORE_MYSQL_MYSQL_H
#define FW_STORE_MYSQL_MYSQL_H

#include <mysql.h>

#include "store/sql/core.h"

#define MYSQL_STATEMENTS 256 /* of one connection */
#define MYSQL_SCRIPT_MAX ((size_t)1 << 20) /* statements that are sent together are no longer than this, about */

struct mysql_sweep { /* a walk through the search index: sweep.c */
	bool on;
	struct fw_buf gone; /* the documents that it takes out: int64_t, in order */
	char word[64];      /* how far it came */
	size_t word_len;
	int64_t step;
	int64_t look_ms;    /* monotonic: whether it is time for one; 0: now */
};

struct mysql_mark { /* a value's place in a text */
	size_t at, value;
};

struct mysql_kept { /* a text that was made ready, by address */
	struct sql_text of;
	char *text;
	size_t len;
	struct mysql_mark *mark;
	size_t mark_n;
	size_t row_from, row_to;
	char between;     /* rows: of one statement ',', or statements ';' */
	MYSQL_STMT *stmt; /* prepared; NULL: not yet */
};

struct mysql_db {
	struct sql sql;
	MYSQL *c;
	char schema[65];          /* name of the database */
	bool mysql;               /* the server is MySQL, not MariaDB */
	bool arrays;              /* rows may travel as arrays, which MySQL does not know */
	bool tls;                 /* asked for */
	size_t packet_max;        /* what the server takes at once */
	struct mysql_kept kept[MYSQL_STATEMENTS];
	size_t kept_n;
	struct fw_buf script;     /* statements that wait to be sent together */
	struct fw_err late;       /* of what was sent early; rc 0: none */
	int64_t changes, own_change; /* as last seen; what this transaction raises it to, 0: nothing */
	int64_t asked_ms, step_ms;   /* for it, monotonic; and when again */
	struct mysql_sweep sweep;
};

static inline struct mysql_db *mysql_db(struct sql *s)
{
	return (struct mysql_db *)s; /* sql comes first */
}

extern const struct sql_dialect mysql_dialect;

/* dialect.c: what it keeps; a number in digits. */
void mysql_kept_free(struct mysql_db *s);
void mysql_int_put(struct fw_buf *b, int64_t v);

/* error.c: words and code for what went wrong last. Names the store and the remedy. */
int mysql_failed(struct mysql_db *s, const char *doing, struct fw_err *err);
int mysql_stmt_failed(struct mysql_db *s, MYSQL_STMT *stmt, const char *doing, struct fw_err *err);
int mysql_too_large(struct mysql_db *s, struct fw_err *err);

/* open.c */
int mysql_tell(struct sql *s, struct fw_err *err);
/* A lock of the whole server's, until it is released or the connection ends. *got 0: somebody else had it all that time. */
int mysql_lock(struct mysql_db *s, const char *what, int64_t timeout_s, int64_t *got, struct fw_err *err);
int mysql_unlock(struct mysql_db *s, const char *what, struct fw_err *err);
/* inspect.c */
store_inspect_fn mysql_inspect;

/* words.c; as in sql.h */
int mysql_search_changed(struct sql *s, int64_t entry_id, enum sql_entry_change what, struct fw_err *err);
int mysql_search_step(struct sql *s, bool *more, struct fw_err *err);
int mysql_search_begin(
	struct sql *s, struct fw_str words, bool *any, struct fw_buf *value, int64_t *missing, struct fw_err *err);
extern const char *const mysql_search_tables[]; /* ended by NULL; the last one is made last of all tables */
#define MYSQL_LAST_TABLE "entries_indexed"

#endif
