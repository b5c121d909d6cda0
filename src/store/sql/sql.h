/* SPDX-License-Identifier: ISC */
/*
 * One SQL core for three engines: SQLite, PostgreSQL, MariaDB/MySQL. Each statement is written
 * once, beside the function that uses it. A dialect is a connection, some operations, and the text
 * fragments in which the engines differ. Only a dialect knows a client library.
 *
 * A statement refers to its values as ?1, ?2 ... and to fragments in braces, which the dialect's
 * table replaces. A fragment with arguments, {name a|b}, puts them where its text has $1 and $2. $=
 * compares each column in $1 with the value that was not inserted, {new}. A statement over many
 * rows (struct sql_rows) names the columns of its rows as v.NAME.
 *
 * 	{last}           the id that the last INSERT assigned, into a table with an {id}
 * 	{now}            the time, Unix ms: the server's; the machine's if the store is a file
 * 	{readonly}       1 if the server takes no writes (a replica, or made read-only), else 0
 * 	{skip}           after a SELECT: lock its rows, skip rows that others have locked
 * 	{share}          after a SELECT: others cannot change its rows until this transaction ends
 * 	{update}         after a SELECT: lock its rows
 * 	{from}           in an UPDATE of many rows: UPDATE t AS t SET a = v.b {from} WHERE t.k = v.k
 * 	{using}          in a DELETE: DELETE FROM t {using} WHERE k = v.b
 * 	{values}         in an INSERT: INSERT INTO t (a, b) {values}
 * 	{rows}           in a SELECT: SELECT ... FROM {rows} t, u WHERE t.k = v.k AND u.k = t.l
 * 	{upsert a, b}    after an INSERT: if (a, b) exists, SET what follows; {new c} is the
 * 	                 value that was not inserted, t.c the stored one
 * 	{keep a, b|t.a}  after an INSERT: if (a, b) exists, do nothing; a conflict on another
 * 	                 key is an error
 * 	{greatest}       the function: the largest of its arguments
 * 	{sum x}          the sum of numbers; 0 for no rows
 * 	{rows_of x}      the number of rows for which x is true
 * 	{behind a|b}     (a, b) > (?1, ?2)
 * 	{head x}         at least the first MiB of a text
 * 	{octets x}       the number of bytes of a text
 * 	{waiting}        the number of entries in entries_changed, at most ?1
 * 	{found}          e.id matches the search ?1: search_begin()
 * 	{among c|x}      c is in the JSON array of numbers x
 * 	{iso x}          Unix ms as ISO 8601 text, UTC; NULL stays NULL
 * 	{kind x} {status x}  the name of a visit's kind, of a feed's status
 * 	{raw x}          a text that is compared byte by byte
 * 	{words x}        a text made of literals, as a column: comparable with texts of any client
 * 	{ms x}           microseconds as whole milliseconds
 * 	{shown x} {count x}  a text, a number, as a column of a view that cannot be written
 * 	{nth x|i}        the i-th number, from 0, of bytes that are numbers between spaces; NULL:
 * 	                 there are fewer
 * 	{utf8 x}         bytes that are UTF-8, as text
 * 	{shard x}        the shard of a position
 * 	{indexed i}      the number of indexes with the name i
 * 	{of t}           after DROP INDEX: the table t
 * 	{jsonb x}        a {json} column for people's queries: of the type that the engine can
 * 	                 search
 * 	{tags x}         the member `tags` (an array of texts) of a JSON object as text,
 * 	                 separated by commas; NULL if there is none
 * 	{fields schedule|t.}  the columns of a field table (fields.h), prefixed: schedule, feed,
 * 	                 entry, visit; and of the groups of a feed: validators, meta, rhythm,
 * 	                 redirect, error
 * 	{set schedule|v.}   the same as "due_at_ms = v.due_at_ms, ..."
 * 	{pk} {id}        column types: a numeric primary key; one that the engine assigns, rising
 * 	{serial}         the same, and no number twice
 * 	{text} {long}    text; text of any size
 * 	{bytes} {key16}  bytes; 16 bytes in a key
 * 	{json}           a JSON object
 * 	{name} {namebytes}  up to 255 bytes of text in a key, ordered by its bytes; and of any bytes
 * 	{clustered}      after CREATE TABLE (...): rows lie in the order of the primary key
 * 	{filled}         after CREATE TABLE (...): rows are rewritten all the time
 * 	{table}          after every other CREATE TABLE (...)
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
	struct fw_str s; /* borrowed for the call */
};

#define SQL_INT(v) ((struct sql_value){.type = SQL_TYPE_INT, .i = (int64_t)(v)})
#define SQL_TEXT(v) ((struct sql_value){.type = SQL_TYPE_TEXT, .s = (v)}) /* valid UTF-8 without NUL; absent: NULL */
#define SQL_BLOB(v) ((struct sql_value){.type = SQL_TYPE_BLOB, .s = (v)})
#define SQL_KEY(bytes) SQL_BLOB(((struct fw_str){(const char *)(bytes), 16})) /* for {key16} */
#define SQL_NULL ((struct sql_value){.type = SQL_TYPE_NULL})
#define SQL_DATE(v) ((v) == FW_NO_DATE ? SQL_NULL : SQL_INT(v))

/* A statement's values and their number. */
#define SQL_V(...) (const struct sql_value[]){__VA_ARGS__}, FW_N(((const struct sql_value[]){__VA_ARGS__}))
#define SQL_NONE NULL, 0

/*
 * The text of a statement. Its address identifies it: a dialect caches the prepared statement under
 * it. So a text is a literal, or lives as long as the connection.
 */
struct sql_text {
	const char *text;
	/*
	 * The columns of a statement over many rows, in the order of the values: "shard:i url:t
	 * rhythm:b". i int64_t, t text, b bytes, j JSON; "{schedule}": those of a field table.
	 * NULL: a statement for one row. The same text always has the same columns.
	 */
	const char *columns;
};

/* Does a dialect send NULL for this value? */
static inline bool sql_is_null(const struct sql_value *v)
{
	return v->type == SQL_TYPE_NULL || (v->type != SQL_TYPE_INT && !v->s.p);
}

struct sql; /* a connection */
struct sql_row;

/*
 * Called for each row of a result. The row is borrowed until it returns. Any value other than 0
 * ends the result and is returned by sql_query().
 */
typedef int sql_row_fn(void *ctx, const struct sql_row *row);

struct sql_fragment {
	const char *name, *text;
};

/* Before and after an entry is written; before it is removed. */
enum sql_entry_change { SQL_ENTRY_CHANGING, SQL_ENTRY_CHANGED, SQL_ENTRY_REMOVING };

struct sql_dialect {
	const struct sql_fragment *fragment; /* ends with a NULL name */
	/* Run several statements without values or fragments */
	int (*script)(struct sql *s, const char *text, struct fw_err *err);
	int (*begin)(struct sql *s, struct fw_err *err);  /* a transaction that writes */
	int (*commit)(struct sql *s, struct fw_err *err); /* on error: rolled back */
	void (*rollback)(struct sql *s);
	int (*query)(struct sql *s, const char *text, const struct sql_value *v, size_t n, sql_row_fn *fn, void *ctx,
		int64_t *changed, struct fw_err *err);
	int (*query_rows)(struct sql *s, const struct sql_text *t, const struct sql_value *v, size_t n, size_t rows,
		sql_row_fn *fn, void *ctx, struct fw_err *err);
	/* Insert new rows, if the engine has a faster way than each() with t; NULL: it has none */
	int (*append)(struct sql *s, const char *table, const struct sql_text *t, const struct sql_value *v, size_t n,
		size_t rows, struct fw_err *err);
	bool (*get_null)(const struct sql_row *row, int column); /* all three: column is below column_n */
	int64_t (*get_int)(const struct sql_row *row, int column);
	struct fw_str (*get_str)(const struct sql_row *row, int column);
	/*
	 * In a transaction: wake the callers of store_wait_fn when it commits; NULL: they poll the
	 * number `changes`
	 */
	int (*notify)(struct sql *s, struct fw_err *err);

	/*
	 * In a transaction that stores new entries, the last of which is entry_id: tell other
	 * programs when it commits; NULL: the engine cannot
	 */
	int (*entries_new)(struct sql *s, int64_t entry_id, struct fw_err *err);

	/*
	 * The next statements read most of a table, or no longer do; NULL: the engine needs no
	 * hint. It outlives a transaction.
	 */
	int (*passes)(struct sql *s, bool on, struct fw_err *err);

	int (*size)(struct sql *s, int64_t *bytes, struct fw_err *err); /* size of the whole store; NULL: unknown */
	/*
	 * A row with an explicit id was put into row_counts: assign higher ids from now on; NULL:
	 * the engine does
	 */
	int (*row_counts_raised)(struct sql *s, struct fw_err *err);

	/* ---- the search index: {engine}/search.c */
	/* A transaction changed an entry, or is about to: update an index that holds it */
	int (*search_changed)(struct sql *s, int64_t entry_id, enum sql_entry_change what, struct fw_err *err);
	/* One step of maintenance: tens of ms, in transactions of its own */
	int (*search_step)(struct sql *s, bool *more, struct fw_err *err);
	int (*search_unindexed)(struct sql *s, int64_t *n, struct fw_err *err);
	/*
	 * Before a search: index what is missing if that is little; *missing (NULL: not wanted):
	 * number of entries still not indexed. words: a tree of AND, OR, NOT, WORDS and TITLE; NOT
	 * only as a child of AND, behind at least one other. value: ?1 of {found}, which finds at
	 * least the entries that match: more for a phrase, for a word that may have been cut, and
	 * for TITLE if the index does not know it. *exact: no more for all other words. *any false:
	 * the index is no help.
	 */
	int (*search_begin)(struct sql *s, const struct query_node *words, bool *any, bool *exact, struct fw_buf *value,
		int64_t *missing, struct fw_err *err);
};

/* What all dialects say of a server that takes no writes (FW_EIO). */
#define SQL_READ_ONLY                                                                                                  \
	"the server is read-only: name the primary in the URL, end its read-only mode, or wait until the failover is " \
	"over"

/*
 * A race that a transaction lost. LOCKS: it was rolled back for a deadlock or the like, and may be
 * retried at once. ROW: a row exists already.
 */
enum sql_race { SQL_RACE_NONE, SQL_RACE_LOCKS, SQL_RACE_ROW };

struct sql {
	struct store store; /* first member: a connection is a store */
	const struct sql_dialect *dialect;
	char *name; /* its URL for people, the prefix of errors */
	int64_t busy_timeout_ms;
	bool read_only, async_commit;
	int64_t schema; /* of the store: below SQL_SCHEMA only if it is opened for reading */
	int64_t revisions_max, revision_max_bytes;
	int64_t account_feeds_max; /* 0: no limit */
	enum sql_race race;        /* set by the dialect, with FW_EAGAIN */
};

/* A row of a result, from a server that may send anything. */
struct sql_row {
	const struct sql_dialect *dialect;
	int column_n;    /* of the result, whatever its statement asked for */
	bool *is_broken; /* set if a column that is read is not there, or is no integer where one is read */
};

static inline struct sql *sql_of(struct store *st)
{
	return (struct sql *)st; /* store comes first */
}

/* Is the column there? One that is not counts as NULL, and the statement fails. */
static inline bool sql_has(const struct sql_row *row, int column)
{
	bool has = column < row->column_n;

	*row->is_broken |= !has;
	return has;
}

static inline bool sql_null(const struct sql_row *row, int column)
{
	return !sql_has(row, column) || row->dialect->get_null(row, column);
}

static inline int64_t sql_int(const struct sql_row *row, int column) /* NULL: 0 */
{
	return sql_has(row, column) ? row->dialect->get_int(row, column) : 0;
}

static inline int64_t sql_date(const struct sql_row *row, int column)
{
	return sql_null(row, column) ? FW_NO_DATE : row->dialect->get_int(row, column);
}

static inline struct fw_str sql_str(const struct sql_row *row, int column) /* NULL: absent */
{
	return sql_has(row, column) ? row->dialect->get_str(row, column) : FW_STR_NONE;
}

/* For dialects: show a row. FW_EIO: it is broken. */
static inline int sql_row_show(
	const struct sql *s, const struct sql_row *row, sql_row_fn *fn, void *ctx, struct fw_err *err)
{
	int rc;

	*row->is_broken = false;
	rc = fn(ctx, row);
	if (!*row->is_broken)
		return rc;
	return FW_ERR(err, FW_EIO,
		"%s: malformed result: did another program change the tables, or does one in between change results?",
		s->name);
}

/* Run one statement; fn gets each row of the result. fn may be NULL. */
static inline int sql_query(struct sql *s, const char *text, const struct sql_value *v, size_t n, sql_row_fn *fn,
	void *ctx, struct fw_err *err)
{
	if (fn && store_is_over(&s->store))
		return store_over(s->name, err);
	return s->dialect->query(s, text, v, n, fn, ctx, NULL, err);
}

/* Run one statement; *changed: number of rows that it wrote. */
static inline int sql_exec_count(
	struct sql *s, const char *text, const struct sql_value *v, size_t n, int64_t *changed, struct fw_err *err)
{
	return s->dialect->query(s, text, v, n, NULL, NULL, changed, err);
}

/*
 * Run one statement without a result. A dialect may send it later; then a later call reports its
 * error, at the latest the commit.
 */
static inline int sql_exec(struct sql *s, const char *text, const struct sql_value *v, size_t n, struct fw_err *err)
{
	return s->dialect->query(s, text, v, n, NULL, NULL, NULL, err);
}

/*
 * One statement over many rows. Rows are added one by one and sent in batches and at the end. The
 * memory that values point to must live until then. Without fn it may be sent later, as with
 * sql_exec(). The rows of a SELECT's result come in any order.
 */
struct sql_rows {
	struct sql *s;
	struct sql_text text;
	struct fw_err *err;
	sql_row_fn *fn;
	void *ctx;
	/*
	 * For an INSERT of {values} in a transaction whose columns have the names of this table: an
	 * existing key is an error, so append() may be used; NULL: not
	 */
	const char *table;
	int rc;              /* the first error; after it nothing more is sent */
	struct sql_value *v; /* private from here on */
	size_t width, n, cap, bytes;
};
#define SQL_ROWS(s_, err_, ...)                                   \
	{                                                         \
		.s = (s_), .err = (err_), .text = { __VA_ARGS__ } \
	} /* ...: the statement, its columns */
#define SQL_QUERY_ROWS(s_, err_, fn_, ctx_, ...)                                              \
	{                                                                                     \
		.s = (s_), .err = (err_), .fn = (fn_), .ctx = (ctx_), .text = { __VA_ARGS__ } \
	}
void sql_rows_add(struct sql_rows *r, const struct sql_value *v, size_t n);
/* Add a row: these values, then those of a field table. */
void sql_rows_add_fields(struct sql_rows *r, const struct sql_value *v, size_t n, const char *table, const void *of);
/* Send the rest, free, and return the first error. */
int sql_rows_end(struct sql_rows *r);

/* ---- texts: text.c --------------------------------------------------------------------------- */

/*
 * The text of a statement with its fragments filled in, to be freed; NULL: out of memory. mark: the
 * character before a value's number. table: the SQL for the rows, a table v; NULL: the text is for
 * one row, and v.NAME becomes the value of that column. values: the SQL for {values}, if that is
 * not a SELECT from the table. by_number: v.NAME becomes v.cN, for an engine that would take the
 * names of two tables for ambiguous.
 */
struct sql_form {
	char mark;
	const char *table, *values;
	bool by_number;
};
char *sql_render(const struct sql_dialect *d, const struct sql_text *t, const struct sql_form *f);
/* The name and type letter of the i-th column. Absent: no more. */
struct fw_str sql_column(const struct sql_text *t, size_t i, char *letter);

/*
 * Copy the members of a field table (named as in {fields}), in its order, into values, or from the
 * columns of a row. Return how many.
 */
size_t sql_fields_get(const char *table, const void *of, struct sql_value *out);
size_t sql_fields_set(const char *table, void *of, const struct sql_row *row, int column);

/* ---- the core: shared by its files (the slots are in core.h) --------------------------------- */

/*
 * Run fn in a transaction; on error it is rolled back. After SQL_RACE_LOCKS it is retried a few
 * times: fn must be able to start over.
 */
typedef int sql_work_fn(struct sql *s, void *ctx, struct fw_err *err);
int sql_transaction(struct sql *s, sql_work_fn *fn, void *ctx, struct fw_err *err);
/* End a transaction: commit if rc is 0, else roll back and return rc. */
int sql_end(struct sql *s, int rc, struct fw_err *err);
/* sql_query() of a statement that reads most of a table. Not in a transaction. */
int sql_pass(struct sql *s, const char *text, const struct sql_value *v, size_t n, sql_row_fn *fn, void *ctx,
	struct fw_err *err);
/* The first column of a statement's first row; `none` if it is NULL or there is no row. */
int sql_query_int(struct sql *s, const char *text, const struct sql_value *v, size_t n, int64_t none, int64_t *out,
	struct fw_err *err);

#endif
