/* SPDX-License-Identifier: ISC */
/*
 * One SQL core, three engines. A statement is written once, beside the function that uses it; a
 * dialect is a connection, some operations and the fragments in which engines differ. Nothing above
 * a dialect knows a client library.
 *
 * A statement's text has its values as ?1, ?2 ..., and fragments in braces, which the dialect's
 * table fills in. One with arguments, {name a|b}, puts them where its text has $1 and $2; for $= it
 * compares each column of $1 with the value that was not inserted, {new}.
 *
 *	{last}           the number that the last INSERT gave, into a table with an {id}
 *	{now}            the time, Unix ms: the server's, or this machine's where the store is a file
 *	{skip}           behind a SELECT: lock its rows, pass over those that somebody else has locked
 *	{share}          behind a SELECT: nobody changes its rows before this transaction ends
 *	{update}         behind a SELECT: lock its rows
 *	{from}           in an UPDATE of many rows: UPDATE t AS t SET a = v.b {from} WHERE t.k = v.k
 *	{using}          in a DELETE: DELETE FROM t {using} WHERE k = v.b
 *	{values}         in an INSERT: INSERT INTO t (a, b) {values}
 *	{rows}           in a SELECT: SELECT ... FROM {rows} t, u WHERE t.k = v.k AND u.k = t.l
 *	{upsert a, b}    behind an INSERT: where (a, b) is there already, SET what follows; {new c} is the
 *	                 value that was not inserted, t.c the one that is there
 *	{keep a, b|t.a}  behind an INSERT: where (a, b) is there already, nothing; another key that is
 *	                 there is an error
 *	{greatest}       the function: the largest of its arguments
 *	{sum x}          of numbers; of none 0
 *	{behind a|b}     a and b, in their order, are behind ?1 and ?2
 *	{head x}         of a text the first MiB at least
 *	{waiting}        how many entries wait in entries_changed, ?1 at most
 *	{found}          e.id is among what was searched for, ?1: search_begin()
 *	{iso x}          Unix ms as ISO 8601 text, UTC; NULL stays NULL
 *	{kind x} {status x}  the name of a visit's kind, of a feed's status
 *	{words x}        a text made of literals, as a column: so that it compares with texts of any client
 *	{ms x}           whole milliseconds of microseconds
 *	{jsonb x}        a {json} column for people's queries: of the type that the engine searches
 *	{tags x}         the member `tags` (an array of texts) of a JSON object as text, separated by
 *	                 commas; NULL where it has none
 *	{fields wheel|t.}  the columns of a field table (fields.h), each with that in front: wheel, feed,
 *	                 entry, visit; and of the groups of a feed: validators, meta, rhythm, redirect, error
 *	{set wheel|v.}   the same as "due_at_ms = v.due_at_ms, ..."
 *	{pk} {id}        column types: a number and primary key; one that rises by itself
 *	{text} {long}    text; text of any size
 *	{bytes} {key16}  bytes; 16 bytes in a key
 *	{json}           a JSON object
 *	{name} {namebytes}  up to 255 bytes of text in a key, ordered by its bytes; and of any bytes
 *	{clustered}      behind CREATE TABLE (...) whose rows lie in the order of the primary key
 *	{filled}         behind one whose rows are rewritten all the time
 *	{table}          behind each other one
 *
 * A statement over many rows names the row's columns as v.NAME.
 *
 * One thread per connection. Errors: as in driver.h.
 */
#ifndef FW_STORE_SQL_H
#define FW_STORE_SQL_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "store/driver.h"

enum sql_type { SQL_TYPE_NULL, SQL_TYPE_INT, SQL_TYPE_TEXT, SQL_TYPE_BLOB };

struct sql_value {
	enum sql_type type;
	int64_t i;
	struct fw_str s;          /* borrowed during the call */
};

#define SQL_INT(v) ((struct sql_value){.type = SQL_TYPE_INT, .i = (int64_t)(v)})
#define SQL_TEXT(v) ((struct sql_value){.type = SQL_TYPE_TEXT, .s = (v)}) /* no NUL in it, valid UTF-8; absent: NULL */
#define SQL_BLOB(v) ((struct sql_value){.type = SQL_TYPE_BLOB, .s = (v)})
#define SQL_KEY(bytes) SQL_BLOB(((struct fw_str){(const char *)(bytes), 16})) /* of {key16} */
#define SQL_NULL ((struct sql_value){.type = SQL_TYPE_NULL})
#define SQL_DATE(v) ((v) == FW_NO_DATE ? SQL_NULL : SQL_INT(v))

/* A statement's values, and how many they are. */
#define SQL_V(...) (const struct sql_value[]){__VA_ARGS__}, FW_N(((const struct sql_value[]){__VA_ARGS__}))
#define SQL_NONE NULL, 0

/*
 * A text is known by its address: a dialect keeps what it prepared under it, so it is a literal, or
 * lives as long as the connection.
 */
struct sql_text {
	const char *text;
	/*
	 * Over many rows: "shard:i url:t rhythm:b", in the values' order: i int64_t, t text, b bytes,
	 * j JSON; "{wheel}": those of a field table. Else NULL. One text has always the same.
	 */
	const char *columns;
};

/* Absent: a dialect sends NULL. */
static inline bool sql_is_null(const struct sql_value *v)
{
	return v->type == SQL_TYPE_NULL || (v->type != SQL_TYPE_INT && !v->s.p);
}

struct sql; /* a connection */
struct sql_row;

/*
 * A row of an answer, good during the call. Other than 0 ends the answer, and is what sql_ask()
 * returns.
 */
typedef int sql_row_fn(void *ctx, const struct sql_row *row);

struct sql_fragment {
	const char *name, *text;
};

/* before and after it is written; before it is removed */
enum sql_entry_change { SQL_ENTRY_CHANGES, SQL_ENTRY_CHANGED, SQL_ENTRY_GOES };

struct sql_dialect {
	const struct sql_fragment *fragment; /* ended by a NULL name */
	/* Several statements without values, as they are */
	int (*script)(struct sql *s, const char *text, struct fw_err *err);
	int (*begin)(struct sql *s, struct fw_err *err);                    /* to write */
	int (*commit)(struct sql *s, struct fw_err *err);                   /* what fails is rolled back */
	void (*rollback)(struct sql *s);
	int (*ask)(struct sql *s, const char *text, const struct sql_value *v, size_t n, sql_row_fn *fn, void *ctx,
		int64_t *changed, struct fw_err *err);
	int (*each)(struct sql *s, const struct sql_text *t, const struct sql_value *v, size_t n, size_t rows,
		sql_row_fn *fn, void *ctx, struct fw_err *err);
	/* Rows that are new, where the engine has a quicker way than each() with t; NULL: it has none */
	int (*append)(struct sql *s, const char *table, const struct sql_text *t, const struct sql_value *v, size_t n,
		size_t rows, struct fw_err *err);
	bool (*get_null)(const struct sql_row *row, int column);
	int64_t (*get_int)(const struct sql_row *row, int column);
	struct fw_str (*get_str)(const struct sql_row *row, int column);
	/*
	 * In a transaction: who waits is told when it commits; NULL: they look at the number
	 * `changes`
	 */
	int (*tell)(struct sql *s, struct fw_err *err);

	int (*size)(struct sql *s, int64_t *bytes, struct fw_err *err); /* of the whole store; NULL: unknown */
	/* The tally got a row with a number: new ones go on above it; NULL: they do anyway */
	int (*tally_raised)(struct sql *s, struct fw_err *err);

	/* ---- the search index: {engine}/search.c */
	/*
	 * What a transaction did, or is about to do, to an entry: an index that holds it is to be
	 * put right.
	 */
	int (*search_changed)(struct sql *s, int64_t entry_id, enum sql_entry_change what, struct fw_err *err);
	/* Of maintenance: some tens of ms, in transactions of its own */
	int (*search_step)(struct sql *s, bool *more, struct fw_err *err);
	int (*search_unindexed)(struct sql *s, int64_t *n, struct fw_err *err);
	/*
	 * Before a search: catch up where little is missing; *missing (NULL: not wanted) what is
	 * not in the index. value: ?1 of {found}. False in *any: there is no word in it.
	 */
	int (*search_begin)(struct sql *s, struct fw_str words, bool *any, struct fw_buf *value, int64_t *missing,
		struct fw_err *err);
};

/*
 * Others were quicker: it was rolled back for a deadlock or the like, and may be done again at once;
 * or a row is there already.
 */
enum sql_race { SQL_RACE_NONE, SQL_RACE_LOCKS, SQL_RACE_ROW };

struct sql {
	struct store store;       /* first: a connection is a store */
	const struct sql_dialect *dialect;
	char *name;               /* its URL for people: in front of errors */
	int64_t busy_timeout_ms;
	bool read_only, relaxed;
	enum sql_race race;       /* set by the dialect with FW_EAGAIN, where it was that */
};

struct sql_row {
	const struct sql_dialect *dialect;
};

static inline struct sql *sql_of(struct store *st)
{
	return (struct sql *)st; /* store comes first */
}

static inline bool sql_null(const struct sql_row *row, int column)
{
	return row->dialect->get_null(row, column);
}

static inline int64_t sql_int(const struct sql_row *row, int column) /* NULL: 0 */
{
	return row->dialect->get_int(row, column);
}

static inline int64_t sql_date(const struct sql_row *row, int column)
{
	return row->dialect->get_null(row, column) ? FW_NO_DATE : row->dialect->get_int(row, column);
}

static inline struct fw_str sql_str(const struct sql_row *row, int column) /* NULL: absent */
{
	return row->dialect->get_str(row, column);
}

/* One statement and its answer. fn may be NULL. */
static inline int sql_ask(struct sql *s, const char *text, const struct sql_value *v, size_t n, sql_row_fn *fn,
	void *ctx,
	struct fw_err *err)
{
	return s->dialect->ask(s, text, v, n, fn, ctx, NULL, err);
}

/* The same, of which the rows that it wrote are to be known. */
static inline int sql_change(
	struct sql *s, const char *text, const struct sql_value *v, size_t n, int64_t *changed, struct fw_err *err)
{
	return s->dialect->ask(s, text, v, n, NULL, NULL, changed, err);
}

/*
 * One of which nothing is to be known. A dialect may send it later: what is wrong with it may be
 * told by a later call, at the latest by the commit.
 */
static inline int sql_do(struct sql *s, const char *text, const struct sql_value *v, size_t n, struct fw_err *err)
{
	return s->dialect->ask(s, text, v, n, NULL, NULL, NULL, err);
}

/*
 * One statement for many rows, which are added one by one and sent when they are many, or at the
 * end. What values point to has to stay until then. Without fn nothing is to be known of it, and it
 * may be sent later, as sql_do(); the answers of a SELECT are in any order.
 */
struct sql_rows {
	struct sql *s;
	struct sql_text text;
	struct fw_err *err;
	sql_row_fn *fn;
	void *ctx;
	/*
	 * In a transaction, of an INSERT of {values} whose columns have the names of this table: a
	 * key that is there already is an error
	 */
	const char *table;
	int rc;                   /* of what went wrong first: then nothing more is sent */
	struct sql_value *v;      /* from here on: its own */
	size_t width, n, cap, bytes;
};
#define SQL_ROWS(s_, err_, ...) {.s = (s_), .err = (err_), .text = {__VA_ARGS__}} /* the statement and its columns */
#define SQL_ASK_ROWS(s_, err_, fn_, ctx_, ...) \
	{.s = (s_), .err = (err_), .fn = (fn_), .ctx = (ctx_), .text = {__VA_ARGS__}}
void sql_rows_add(struct sql_rows *r, const struct sql_value *v, size_t n);
/* A row of these values and, behind them, those of a field table. */
void sql_rows_add_fields(struct sql_rows *r, const struct sql_value *v, size_t n, const char *table, const void *of);
/* Sends the rest, and frees. */
int sql_rows_end(struct sql_rows *r);

/* ---- texts: text.c --------------------------------------------------------------------------- */

/*
 * A text with its fragments filled in, to be freed; NULL: out of memory. mark: what stands before a
 * value's number. table: the rows as a table v; NULL: the text is for one row, v.NAME becomes that
 * column's value. values: of {values}, where that is no SELECT from the table. by_number: v.NAME
 * becomes v.cN, for an engine that takes names of two tables for ambiguous.
 */
struct sql_form {
	char mark;
	const char *table, *values;
	bool by_number;
};
char *sql_write(const struct sql_dialect *d, const struct sql_text *t, const struct sql_form *f);
/* The i-th column: its name and letter. Absent behind the last. */
struct fw_str sql_column(const struct sql_text *t, size_t i, char *letter);

/*
 * The members of that field table (names as in {fields}), in its order: into values, and from an
 * answer's columns. Returns how many.
 */
size_t sql_fields_get(const char *table, const void *of, struct sql_value *out);
size_t sql_fields_set(const char *table, void *of, const struct sql_row *row, int column);

/* ---- the core: shared by its files (the slots are in core.h) --------------------------------- */

/*
 * A transaction: all that fn does, or nothing when it fails. One that was in the way of others is
 * made again, a few times: fn begins anew then.
 */
typedef int sql_work_fn(struct sql *s, void *ctx, struct fw_err *err);
int sql_transaction(struct sql *s, sql_work_fn *fn, void *ctx, struct fw_err *err);
/* The end of one: all of it, or nothing when rc says that something failed. */
int sql_end(struct sql *s, int rc, struct fw_err *err);
/* The first number of a statement's first row; `none` where it has no row. */
int sql_number(struct sql *s, const char *text, const struct sql_value *v, size_t n, int64_t none, int64_t *out,
	struct fw_err *err);

#endif
