/* SPDX-License-Identifier: ISC */
/*
 * The MariaDB and MySQL driver: the connection, and what the files of src/store/mysql/ share. Any
 * number of machines can share one server. The SQL core (store/sql/) calls it through
 * mysql_dialect. One thread per connection.
 */
#ifndef FW_STORE_MYSQL_MYSQL_H
#define FW_STORE_MYSQL_MYSQL_H

#include <mysql.h>

#include "store/dsn.h"
#include "store/sql/core.h"

#define MYSQL_STATEMENTS 256 /* per connection */
/* about the maximum length of statements that are sent together */
#define MYSQL_SCRIPT_MAX ((size_t)1 << 20)

/* sweep.c: a walk that removes old words from the search index */
struct mysql_sweep {
	bool on;
	struct fw_buf gone; /* documents to remove: int64_t, sorted */
	char word[64];      /* position of the walk */
	size_t word_len;
	int64_t step;
	int64_t next_check_ms; /* monotonic time of the next check; 0: now */
};

/* a value in a statement's text: its offset and number */
struct mysql_mark {
	size_t at, value;
};

/* a prepared text; the address of its source is the key */
struct mysql_statement {
	struct sql_text of;
	char *text;
	size_t len;
	struct mysql_mark *mark;
	size_t mark_n;
	size_t row_from, row_to;
	char between;     /* rows: of one statement ',', or separate statements ';' */
	MYSQL_STMT *stmt; /* NULL: not prepared yet */
};

struct mysql_db {
	struct sql sql;
	MYSQL *c;
	char schema[65];         /* name of the database */
	bool mysql;              /* the server is MySQL, not MariaDB */
	bool arrays;             /* rows can travel as arrays (MariaDB only) */
	bool tls;                /* requested by the URL */
	size_t packet_max;       /* the server's max_allowed_packet */
	char *url;               /* for a second connection; limit.c */
	int64_t server_mark;     /* MYSQL_SERVER_MARK */
	int64_t read_timeout_ms; /* without a byte from the server; then the connection counts as broken */
	unsigned timeout_s;      /* of connecting and reading; 0: the URL's */
	bool killed;             /* limit.c has tried to end the statement */
	struct mysql_statement kept[MYSQL_STATEMENTS];
	size_t kept_n;
	struct fw_buf script; /* statements to be sent together */
	struct fw_err late;   /* error of statements that were sent early; rc 0: none */
	/* last value seen; value that this transaction raises it to, 0: none */
	int64_t changes, own_change;
	int64_t inbox_feed_id, inbox_control_id; /* the highest ids seen in the inbox */
	/* monotonic time of the last read of `changes`; interval to the next */
	int64_t polled_ms, poll_interval_ms;
	struct mysql_sweep sweep;
};

static inline struct mysql_db *mysql_db(struct sql *s)
{
	return (struct mysql_db *)s; /* sql comes first */
}

extern const struct sql_dialect mysql_dialect;

/* dialect.c: free the kept statements; append a number in decimal digits. */
void mysql_statements_free(struct mysql_db *s);
void mysql_int_put(struct fw_buf *b, int64_t v);

/* error.c: the last error as code and message, with the store and the remedy. */
int mysql_failed(struct mysql_db *s, const char *doing, struct fw_err *err);
int mysql_stmt_failed(struct mysql_db *s, MYSQL_STMT *stmt, const char *doing, struct fw_err *err);
int mysql_too_large(struct mysql_db *s, struct fw_err *err);

/* limit.c: around reading the reply to statements of a request with a limit */
#define MYSQL_KILL_TIMEOUT_S 3
#define MYSQL_SERVER_MARK "crc32(concat_ws(' ', @@hostname, @@port, @@server_id))" /* another one on each server */
void mysql_limit_begin(struct mysql_db *s);
void mysql_limit_end(struct mysql_db *s);

/* open.c */
int mysql_connect_to(struct mysql_db *s, const struct fw_dsn *d, const char *schema, struct fw_err *err);
int mysql_notify(struct sql *s, struct fw_err *err);
/*
 * A lock across the server, held until it is released or the connection ends. *got 0: another
 * process held it for the whole timeout.
 */
int mysql_lock(struct mysql_db *s, const char *what, int64_t timeout_s, int64_t *got, struct fw_err *err);
int mysql_unlock(struct mysql_db *s, const char *what, struct fw_err *err);
/* inspect.c */
store_inspect_fn mysql_inspect;
/* doors.c */
extern const char *const mysql_doors[]; /* NULL-ended */
/*
 * Create the procedure by which users change feeds, if it is missing and the user may.
 * *there: it exists.
 */
#define MYSQL_PROCEDURE "set_feed"
int mysql_doors_create(struct mysql_db *s, struct fw_err *err);
int mysql_doors_find(struct mysql_db *s, bool *there, struct fw_err *err);

/* words.c: as in sql.h */
int mysql_search_changed(struct sql *s, int64_t entry_id, enum sql_entry_change what, struct fw_err *err);
int mysql_search_step(struct sql *s, bool *more, struct fw_err *err);
int mysql_search_begin(struct sql *s, const struct query_node *words, bool *any, bool *exact, struct fw_buf *value,
	int64_t *missing, struct fw_err *err);
/* NULL-ended; the last statement creates the last of all tables */
extern const char *const mysql_search_tables[];
#define MYSQL_LAST_TABLE "entries_indexed"

#endif
