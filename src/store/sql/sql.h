/* SPDX-License-Identifier: ISC */
/*
 * One SQL core, several engines. A statement is written once, beside the function that uses it; a dialect is a connection, nine operations
 * and the few fragments in which engines differ. Nothing above a dialect knows a client library.
 *
 * A statement's text has its values as ?1, ?2 ..., and these fragments:
 *
 *	{now}       the time, Unix ms: the server's, or this machine's where the database is a file
 *	{skip}      behind a SELECT: lock its rows, and pass over those that somebody else has locked
 *	{share}     behind a SELECT: nobody changes its rows before this transaction ends
 *	{hits}      at the end of an UPDATE over many rows of which the caller wants to know whom it hit
 *
 * A statement over many rows has the row's columns as v.NAME, and says where they come from: {from} in an UPDATE, {values} in an INSERT.
 *
 * One thread per connection. Errors: FW_EAGAIN somebody else held it too long, or a deadlock (begin the transaction anew), FW_EIO
 * the connection or the file broke, FW_ENOMEM.
 */
#ifndef FW_STORE_SQL_H
#define FW_STORE_SQL_H

#include "base/err.h"
#include "base/str.h"

enum sql_type { SQL_TYPE_NULL, SQL_TYPE_INT, SQL_TYPE_TEXT, SQL_TYPE_BLOB };

struct sql_value {
	enum sql_type type;
	int64_t i;
	struct fw_str s;          /* borrowed during the call */
};

#define SQL_INT(v) ((struct sql_value){.type = SQL_TYPE_INT, .i = (v)})
#define SQL_TEXT(v) ((struct sql_value){.type = SQL_TYPE_TEXT, .s = (v)}) /* no NUL in it, valid UTF-8 */
#define SQL_BLOB(v) ((struct sql_value){.type = SQL_TYPE_BLOB, .s = (v)})

/* Known by its address: a dialect keeps what it prepared under it, so it is static. */
struct sql_text {
	const char *text;
	const char *columns;      /* over many rows: "shard:i url:t rhythm:b", i int64_t, t text, b bytes, in the values' order; else NULL */
};

/* Absent: a dialect sends NULL. */
static inline bool sql_is_null(const struct sql_value *v)
{
	return v->type == SQL_TYPE_NULL || (v->type != SQL_TYPE_INT && !v->s.p);
}

struct sql; /* a connection: begins with its dialect; a row does, too */
struct sql_row;

/* A row of an answer, good during the call. Other than 0 ends the answer, and is what sql_ask() returns. */
typedef int sql_row_fn(void *ctx, const struct sql_row *row);

struct sql_dialect {
	const char *now, *skip, *share;
	const char *hits;         /* behind an UPDATE of many rows, which is to tell those that it hit */
	const char *blob_type;    /* in CREATE TABLE */
	const char *clustered;    /* behind CREATE TABLE (...) whose rows lie in the order of the primary key */
	const char *filled;       /* behind one whose rows are rewritten all the time */
	void (*close)(struct sql *s);
	int (*script)(struct sql *s, const char *text, struct fw_err *err); /* several statements without values */
	int (*begin)(struct sql *s, struct fw_err *err);                    /* to write */
	int (*commit)(struct sql *s, struct fw_err *err);                   /* what fails is rolled back */
	void (*rollback)(struct sql *s);
	int (*ask)(struct sql *s, const struct sql_text *t, const struct sql_value *v, size_t n, sql_row_fn *fn, void *ctx, int64_t *changed,
		struct fw_err *err);
	int (*each)(struct sql *s, const struct sql_text *t, const struct sql_value *v, size_t n, size_t rows, bool *hit, struct fw_err *err);
	int64_t (*get_int)(const struct sql_row *row, int column);
	struct fw_str (*get_str)(const struct sql_row *row, int column);
};

struct sql {
	const struct sql_dialect *is;
};

struct sql_row {
	const struct sql_dialect *is;
};

static inline int64_t sql_int(const struct sql_row *row, int column) /* NULL: 0 */
{
	return row->is->get_int(row, column);
}

static inline struct fw_str sql_str(const struct sql_row *row, int column) /* NULL: absent */
{
	return row->is->get_str(row, column);
}

int sql_open_sqlite(const char *path, struct sql **out, struct fw_err *err);
int sql_open_postgres(const char *conninfo, struct sql **out, struct fw_err *err);

static inline void sql_close(struct sql *s)
{
	if (s)
		s->is->close(s);
}

/* One statement. fn may be NULL; changed, when wanted: the rows that it wrote. */
static inline int sql_ask(struct sql *s, const struct sql_text *t, const struct sql_value *v, size_t n, sql_row_fn *fn, void *ctx, int64_t *changed,
	struct fw_err *err)
{
	return s->is->ask(s, t, v, n, fn, ctx, changed, err);
}

/* The same for each of many rows of n values. hit, when wanted: rows times, was something written for it? */
static inline int sql_each(struct sql *s, const struct sql_text *t, const struct sql_value *v, size_t n, size_t rows, bool *hit, struct fw_err *err)
{
	return rows ? s->is->each(s, t, v, n, rows, hit, err) : 0;
}

/* ---- for dialects: sql.c ------------------------------------------------------------------------------------------------------------- */

/* Its text with the fragments filled in, to be freed; NULL: out of memory. mark: what stands before a value's number; from, values: what stands
   for {from} and {values}; by_value: v.NAME becomes that column's value. */
struct sql_form {
	char mark;
	const char *from, *values;
	bool by_value;
};
char *sql_write(const struct sql_dialect *d, const struct sql_text *t, const struct sql_form *f);
/* The i-th column: its name and letter. Absent behind the last. */
struct fw_str sql_column(const struct sql_text *t, size_t i, char *letter);

#endif
