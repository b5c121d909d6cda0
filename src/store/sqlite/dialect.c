/* SPDX-License-Identifier: ISC */
/*
 * SQLite's dialect. A writing transaction starts with BEGIN IMMEDIATE: it waits up to
 * busy_timeout_ms for the write lock and is then the only writer, so no statement needs row locks.
 * A statement over many rows runs once for each row.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/account.h"
#include "base/buf.h"
#include "store/sqlite/sqlite.h"

#define APPEND_ROWS 32  /* rows per INSERT */
#define APPEND_VALUES 8 /* values per row, at most */

struct sqlite_row {
	struct sql_row row;
	sqlite3_stmt *q;
};

int sqlite_failed(struct sqlite_db *s, const char *doing, struct fw_err *err)
{
	static const struct {
		int code, rc;
		const char *what, *remedy;
	} KNOWN[] = {
		{SQLITE_FULL, FW_EIO, "no space left", "free some on its disk and run again; stored data is intact"},
		{SQLITE_CORRUPT, FW_EUNUSABLE, "the file is damaged",
			"restore a backup, or try `sqlite3 FILE .recover`"},
		{SQLITE_NOTADB, FW_EUNUSABLE, "not an SQLite database", "name another file"},
		{SQLITE_READONLY, FW_EUNUSABLE, "is not writable", "check the permissions of the file and its folder"},
		{SQLITE_CANTOPEN, FW_EIO, "cannot be opened", "check the path and the permissions"},
		{SQLITE_PERM, FW_EUNUSABLE, "cannot be opened", "check the path and the permissions"},
		{SQLITE_AUTH, FW_EUNUSABLE, "cannot be opened", "check the path and the permissions"},
		{SQLITE_NOMEM, FW_ENOMEM, "out of memory", "try again"},
		{SQLITE_IOERR, FW_EIO, "disk I/O failed", "check the disk, its quota and `ulimit -f`"},
		{SQLITE_CONSTRAINT, FW_EINVAL, "row refused", "look for triggers and constraints that were added"},
		{SQLITE_TOOBIG, FW_EINVAL, "row refused", "larger than SQLite's limit"},
		{SQLITE_MISUSE, FW_EINVAL, "the store was called from its own callback", "a bug of this program"},
	};
	int code = sqlite3_extended_errcode(s->db), class = code & 0xff, sys = sqlite3_system_errno(s->db);
	const char *msg = sqlite3_errmsg(s->db);

	if ((class == SQLITE_INTERRUPT || class == SQLITE_BUSY) && s->sql.store.limit && s->sql.store.limit->over)
		return store_over(s->path, err);
	if (class == SQLITE_BUSY || class == SQLITE_LOCKED)
		return fw_err_set(err, FW_EAGAIN,
			"%s: locked by another program for more than %lld ms (%s): try again; `fuser %s` names it",
			s->path, (long long)s->sql.busy_timeout_ms, doing, s->path);
	if (class == SQLITE_IOERR && (sys == ENOSPC || sys == EDQUOT))
		class = SQLITE_FULL;
	if (class == SQLITE_READONLY && code != SQLITE_READONLY && code != SQLITE_READONLY_DIRECTORY)
		class = SQLITE_CANTOPEN; /* the file was replaced, or a reader has come too early: open anew */
	if (class == SQLITE_CANTOPEN && (sys == EACCES || sys == EPERM || sys == EROFS))
		class = SQLITE_PERM;
	for (size_t i = 0; i < FW_N(KNOWN); i++) {
		if (KNOWN[i].code == class)
			return fw_err_set(err, KNOWN[i].rc, "%s: %s (%s: %s%s%s): %s", s->path, KNOWN[i].what, doing,
				msg, sys ? ", " : "", sys ? strerror(sys) : "", KNOWN[i].remedy);
	}
	return fw_err_set(err, FW_EIO, "%s: %s: %s (%d)", s->path, doing, msg, code);
}

static int sqlite_script(struct sql *sql, const char *text, struct fw_err *err)
{
	struct sqlite_db *s = sqlite_db(sql);

	return sqlite3_exec(s->db, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : sqlite_failed(s, "running a script", err);
}

static int sqlite_begin(struct sql *sql, struct fw_err *err)
{
	if (sql->read_only)
		return fw_err_set(err, FW_EINVAL, "%s: opened for reading only", sql->name);
	return sql_exec(sql, "BEGIN IMMEDIATE", SQL_NONE, err);
}

static void sqlite_rollback(struct sql *sql)
{
	struct sqlite_db *s = sqlite_db(sql);

	if (!sqlite3_get_autocommit(s->db))
		(void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL); /* the error before it is reported */
}

static int sqlite_commit(struct sql *sql, struct fw_err *err)
{
	int lock_fd = sqlite_checkpoint_begin(sqlite_db(sql)), rc = sql_exec(sql, "COMMIT", SQL_NONE, err);

	sqlite_checkpoint_end(sqlite_db(sql), lock_fd);
	if (rc)
		sqlite_rollback(sql);
	return rc;
}

/* Write the VALUES (...) of an INSERT of some rows. */
static bool sqlite_values_write(struct fw_buf *b, const struct sql_text *t, size_t rows)
{
	size_t n = 0;
	char letter;

	for (size_t row = 0; row < rows; row++) {
		fw_buf_adds(b, row ? ", (" : "VALUES (");
		for (size_t i = 0; sql_column(t, i, &letter).p; i++)
			fw_buf_addf(b, "%s?%zu", i ? ", " : "", ++n);
		fw_buf_addc(b, ')');
	}
	fw_buf_addc(b, '\0');
	return !b->rc;
}

/* Get the prepared statement of a text from the cache, or prepare it. rows: per INSERT; else 1. */
static int sqlite_statement(
	struct sqlite_db *s, const struct sql_text *t, size_t rows, sqlite3_stmt **out, struct fw_err *err)
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct sql_form form = {.mark = '?'};
	char *text;
	int rc = 0;

	assert(rows == 1 || t->columns); /* only an INSERT of {values} takes several rows */
	assert(s->kept_n <= SQLITE_STATEMENTS);
	for (size_t i = 0; i < s->kept_n; i++) {
		if (s->kept[i].text == t->text && s->kept[i].rows == rows) {
			*out = s->kept[i].q;
			return 0;
		}
	}
	if (t->columns && sqlite_values_write(&b, t, rows))
		form.values = b.p;
	text = b.rc ? NULL : sql_render(s->sql.dialect, t, &form);
	if (!text)
		rc = fw_no_memory(err);
	else if (s->kept_n == SQLITE_STATEMENTS)
		rc = fw_err_set(err, FW_EIO, "%s: more than %d statements", s->path, SQLITE_STATEMENTS);
	else if (sqlite3_prepare_v3(s->db, text, -1, SQLITE_PREPARE_PERSISTENT, out, NULL) != SQLITE_OK)
		rc = sqlite_failed(s, text, err);
	else
		s->kept[s->kept_n++] = (struct sqlite_kept){t->text, rows, *out};
	fw_buf_finish(&b);
	free(text);
	return rc;
}

static int sqlite_bind(sqlite3_stmt *q, const struct sql_value *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int at = (int)i + 1, rc;

		if (v[i].type == SQL_TYPE_INT)
			rc = sqlite3_bind_int64(q, at, v[i].i);
		else if (sql_is_null(&v[i]))
			rc = sqlite3_bind_null(q, at);
		else if (v[i].type == SQL_TYPE_TEXT)
			rc = sqlite3_bind_text64(q, at, v[i].s.p, v[i].s.len, SQLITE_STATIC, SQLITE_UTF8);
		else
			rc = sqlite3_bind_blob64(q, at, v[i].s.p, v[i].s.len, SQLITE_STATIC);
		if (rc != SQLITE_OK && rc != SQLITE_RANGE) /* RANGE: the text does not use this value */
			return rc;
	}
	return SQLITE_OK;
}

/* Run a statement once with these values. */
static int sqlite_run(struct sqlite_db *s, sqlite3_stmt *q, const struct sql_value *v, size_t n, sql_row_fn *fn,
	void *ctx, struct fw_err *err)
{
	bool is_broken;
	struct sqlite_row row = {{s->sql.dialect, sqlite3_column_count(q), &is_broken}, q};
	int rc = 0, step = SQLITE_ROW;

	/*
	 * fails if the statement still runs for an outer caller: an error is better than wrong rows
	 */
	if (sqlite_bind(q, v, n) != SQLITE_OK)
		return sqlite_failed(s, "binding values", err);
	while (!rc && (step = sqlite3_step(q)) == SQLITE_ROW)
		rc = fn ? sql_row_show(&s->sql, &row.row, fn, ctx, err) : 0;
	if (!rc && step != SQLITE_DONE)
		rc = sqlite_failed(
			s, sqlite3_stmt_readonly(q) && sqlite3_get_autocommit(s->db) ? "reading" : "writing", err);
	(void)sqlite3_reset(q);
	return rc;
}

static int sqlite_query(struct sql *sql, const char *text, const struct sql_value *v, size_t n, sql_row_fn *fn,
	void *ctx, int64_t *changed, struct fw_err *err)
{
	struct sqlite_db *s = sqlite_db(sql);
	sqlite3_stmt *q;
	int rc = sqlite_statement(s, &(struct sql_text){text, NULL}, 1, &q, err);

	rc = rc ? rc : sqlite_run(s, q, v, n, fn, ctx, err);
	if (changed)
		*changed = rc ? 0 : sqlite3_changes64(s->db);
	return rc;
}

static int sqlite_query_each(struct sql *sql, const struct sql_text *t, const struct sql_value *v, size_t n,
	size_t rows, sql_row_fn *fn, void *ctx, struct fw_err *err)
{
	struct sqlite_db *s = sqlite_db(sql);
	sqlite3_stmt *q;
	int rc = sqlite_statement(s, t, 1, &q, err);

	for (size_t i = 0; !rc && i < rows; i++)
		rc = sqlite_run(s, q, v + i * n, n, fn, ctx, err);
	return rc;
}

/* Reads outside a transaction: one transaction for all rows, not one for each. */
static int sqlite_query_rows(struct sql *sql, const struct sql_text *t, const struct sql_value *v, size_t n,
	size_t rows, sql_row_fn *fn, void *ctx, struct fw_err *err)
{
	bool alone = rows > 1 && sqlite3_get_autocommit(sqlite_db(sql)->db);
	int rc = alone ? sql_exec(sql, "BEGIN", SQL_NONE, err) : 0;

	rc = rc ? rc : sqlite_query_each(sql, t, v, n, rows, fn, ctx, err);
	return alone ? sql_end(sql, rc, err) : rc;
}

/*
 * Starting a statement costs as much as a narrow row, so narrow rows share one; wide ones do not.
 */
static int sqlite_append(struct sql *sql, const char *table, const struct sql_text *t, const struct sql_value *v,
	size_t n, size_t rows, struct fw_err *err)
{
	struct sqlite_db *s = sqlite_db(sql);
	sqlite3_stmt *q;
	int rc = 0;

	assert(table && t->columns && n > 0);
	(void)table;
	for (; !rc && rows >= APPEND_ROWS && n <= APPEND_VALUES; rows -= APPEND_ROWS, v += APPEND_ROWS * n) {
		rc = sqlite_statement(s, t, APPEND_ROWS, &q, err);
		rc = rc ? rc : sqlite_run(s, q, v, APPEND_ROWS * n, NULL, NULL, err);
	}
	return rc || !rows ? rc : sqlite_query_each(sql, t, v, n, rows, NULL, NULL, err);
}

static sqlite3_stmt *sqlite_row_statement(const struct sql_row *row)
{
	return ((const struct sqlite_row *)row)->q; /* row comes first */
}

static bool sqlite_get_null(const struct sql_row *row, int column)
{
	return sqlite3_column_type(sqlite_row_statement(row), column) == SQLITE_NULL;
}

static int64_t sqlite_get_int(const struct sql_row *row, int column)
{
	return sqlite3_column_int64(sqlite_row_statement(row), column);
}

static struct fw_str sqlite_get_str(const struct sql_row *row, int column)
{
	sqlite3_stmt *q = sqlite_row_statement(row);
	const char *p = sqlite3_column_blob(q, column); /* stored text; NULL for empty text too */

	if (p)
		return (struct fw_str){p, (size_t)sqlite3_column_bytes(q, column)};
	return sqlite3_column_type(q, column) == SQLITE_NULL ? FW_STR_NONE : FW_STR("");
}

static int sqlite_size(struct sql *sql, int64_t *bytes, struct fw_err *err)
{
	return sql_query_int(
		sql, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", SQL_NONE, 0, bytes, err);
}

static const struct sql_fragment SQLITE_FRAGMENTS[] = {
	{"now", "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"},
	{"readonly", "0"},
	{"last", "last_insert_rowid()"},
	{"skip", ""},
	{"share", ""},
	{"update", ""},
	{"upsert", "ON CONFLICT ($1) DO UPDATE SET"},
	{"new", "excluded.$1"},
	{"keep", "ON CONFLICT ($1) DO NOTHING"},
	{"greatest", "max"},
	{"rows_of", "count(*) FILTER (WHERE $1)"},
	{"sum", "coalesce(sum($1), 0)"},
	{"behind", "($1, $2) > (?1, ?2)"},
	{"head", "$1"},
	{"octets", "length(CAST($1 AS BLOB))"},
	{"waiting", "0"},
	{"found", "e.id IN (SELECT rowid FROM entries_fts WHERE entries_fts MATCH ?1)"},
	{"among", "$1 IN (SELECT j.value FROM json_each($2) j)"},
	{"iso", "strftime('%Y-%m-%dT%H:%M:%fZ', ($1) / 1000.0, 'unixepoch')"},
	{"raw", "$1"},
	{"words", "$1"},
	{"ms", "($1) / 1000"},
	{"shown", "$1"},
	{"count", "$1"},
	{"nth", "json_extract('[' || replace(CAST($1 AS TEXT), ' ', ',') || ']', '$[$2]')"},
	{"utf8", "CAST($1 AS TEXT)"},
	{"shard", "($1) >> 53"},
	{"indexed", "(SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND name = '$1')"},
	{"of", ""},
	{"jsonb", "$1"},
	{"tags", "(SELECT group_concat(value, ', ') FROM json_each($1, '$.tags'))"},
	{"id", "INTEGER PRIMARY KEY"},
	{"pk", "INTEGER PRIMARY KEY"},
	{"serial", "INTEGER PRIMARY KEY AUTOINCREMENT"},
	{"text", "TEXT"},
	{"long", "TEXT"},
	{"bytes", "BLOB"},
	{"key16", "BLOB"},
	{"json", "TEXT"},
	{"name", "TEXT"},
	{"namebytes", "BLOB"},
	{"clustered", "WITHOUT ROWID"},
	{"filled", ""},
	{"table", ""},
	{NULL, NULL},
};

const struct sql_dialect sqlite_dialect = {
	.fragment = SQLITE_FRAGMENTS,
	.script = sqlite_script,
	.begin = sqlite_begin,
	.commit = sqlite_commit,
	.rollback = sqlite_rollback,
	.query = sqlite_query,
	.query_rows = sqlite_query_rows,
	.append = sqlite_append,
	.get_null = sqlite_get_null,
	.get_int = sqlite_get_int,
	.get_str = sqlite_get_str,
	.size = sqlite_size,
	.search_changed = sqlite_search_changed,
	.search_step = sqlite_search_step,
	.search_unindexed = sqlite_search_unindexed,
	.search_begin = sqlite_search_begin,
};
