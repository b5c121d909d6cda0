/* SPDX-License-Identifier: ISC */
/* SQLite's dialect: a file, one writer at a time. */
#include <sqlite3.h>
#include <stdlib.h>

#include "base/buf.h"
#include "store/sql/sql.h"
#include "base/banned.h"

#define STATEMENTS 64
#define BUSY_MS 10000

struct sqlite_sql {
	struct sql sql;
	sqlite3 *db;
	struct { const struct sql_text *text; sqlite3_stmt *q; } kept[STATEMENTS];
	size_t kept_n;
};

struct sqlite_row {
	struct sql_row row;
	sqlite3_stmt *q;
};

static struct sqlite_sql *of(struct sql *s)
{
	return (struct sqlite_sql *)s; /* sql comes first */
}

static int failed(struct sqlite_sql *s, struct fw_err *err)
{
	int code = sqlite3_errcode(s->db) & 0xff;

	return fw_err_set(err, code == SQLITE_BUSY || code == SQLITE_LOCKED ? FW_EAGAIN : code == SQLITE_NOMEM ? FW_ENOMEM : FW_EIO, "SQLite: %s",
		sqlite3_errmsg(s->db));
}

static int script(struct sql *sql, const char *text, struct fw_err *err)
{
	struct sqlite_sql *s = of(sql);

	return sqlite3_exec(s->db, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : failed(s, err);
}

/* IMMEDIATE: who begins to write is the only writer from here on, and needs no locks. */
static int begin(struct sql *sql, struct fw_err *err)
{
	return script(sql, "BEGIN IMMEDIATE", err);
}

static void rollback(struct sql *sql)
{
	struct sqlite_sql *s = of(sql);

	if (!sqlite3_get_autocommit(s->db))
		(void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
}

static int commit(struct sql *sql, struct fw_err *err)
{
	int rc = script(sql, "COMMIT", err);

	if (rc)
		rollback(sql);
	return rc;
}

/* The values of a row as columns: an INSERT's VALUES. */
static bool values(struct fw_buf *b, const struct sql_text *t)
{
	char letter;

	fw_buf_adds(b, "VALUES (");
	for (size_t i = 0; sql_column(t, i, &letter).p; i++)
		fw_buf_addf(b, "%s?%zu", i ? ", " : "", i + 1);
	fw_buf_addc(b, ')');
	return !b->rc;
}

static int prepared(struct sqlite_sql *s, const struct sql_text *t, sqlite3_stmt **out, struct fw_err *err)
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct sql_form form = {.mark = '?', .from = "", .by_value = true};
	char *text = NULL;
	int rc = 0;

	for (size_t i = 0; i < s->kept_n; i++) {
		if (s->kept[i].text == t) {
			*out = s->kept[i].q;
			return 0;
		}
	}
	if (t->columns && values(&b, t))
		form.values = b.p;
	text = sql_write(s->sql.is, t, &form);
	if (b.rc || !text)
		rc = fw_no_memory(err);
	else if (s->kept_n == STATEMENTS)
		rc = fw_err_set(err, FW_EIO, "SQLite: more than %d statements", STATEMENTS);
	else if (sqlite3_prepare_v3(s->db, text, -1, SQLITE_PREPARE_PERSISTENT, out, NULL) != SQLITE_OK)
		rc = failed(s, err);
	else
		s->kept[s->kept_n].text = t, s->kept[s->kept_n++].q = *out;
	fw_buf_finish(&b);
	free(text);
	return rc;
}

static int bind(sqlite3_stmt *q, const struct sql_value *v, size_t n)
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
		if (rc != SQLITE_OK)
			return rc;
	}
	return SQLITE_OK;
}

static int ask(struct sql *sql, const struct sql_text *t, const struct sql_value *v, size_t n, sql_row_fn *fn, void *ctx, int64_t *changed,
	struct fw_err *err)
{
	struct sqlite_sql *s = of(sql);
	struct sqlite_row row = {.row.is = sql->is};
	int rc = prepared(s, t, &row.q, err), step = SQLITE_ROW;

	if (rc)
		return rc;
	if (bind(row.q, v, n) != SQLITE_OK)
		rc = failed(s, err);
	while (!rc && (step = sqlite3_step(row.q)) == SQLITE_ROW)
		rc = fn ? fn(ctx, &row.row) : 0;
	if (!rc && step != SQLITE_DONE)
		rc = failed(s, err);
	if (changed)
		*changed = sqlite3_changes(s->db);
	(void)sqlite3_reset(row.q);
	return rc;
}

static int each(struct sql *sql, const struct sql_text *t, const struct sql_value *v, size_t n, size_t rows, bool *hit, struct fw_err *err)
{
	int64_t changed;

	for (size_t i = 0; i < rows; i++) {
		int rc = ask(sql, t, v + i * n, n, NULL, NULL, &changed, err);

		if (rc)
			return rc;
		if (hit)
			hit[i] = changed > 0;
	}
	return 0;
}

static sqlite3_stmt *answer(const struct sql_row *row)
{
	return ((const struct sqlite_row *)row)->q; /* row comes first */
}

static int64_t get_int(const struct sql_row *row, int column)
{
	return sqlite3_column_int64(answer(row), column);
}

static struct fw_str get_str(const struct sql_row *row, int column)
{
	sqlite3_stmt *q = answer(row);
	const char *p = sqlite3_column_blob(q, column);

	if (sqlite3_column_type(q, column) == SQLITE_NULL)
		return FW_STR_NONE;
	return p ? (struct fw_str){p, (size_t)sqlite3_column_bytes(q, column)} : FW_STR("");
}

static void close_it(struct sql *sql)
{
	struct sqlite_sql *s = of(sql);

	for (size_t i = 0; i < s->kept_n; i++)
		sqlite3_finalize(s->kept[i].q);
	sqlite3_close(s->db);
	free(s);
}

static const struct sql_dialect SQLITE = {
	.now = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)", .skip = "", .share = "", .hits = "",
	.blob_type = "BLOB", .clustered = "WITHOUT ROWID", .filled = "",
	.close = close_it, .script = script, .begin = begin, .commit = commit, .rollback = rollback,
	.ask = ask, .each = each, .get_int = get_int, .get_str = get_str,
};

int sql_open_sqlite(const char *path, struct sql **out, struct fw_err *err)
{
	struct sqlite_sql *s = calloc(1, sizeof(*s));
	int rc = 0;

	if (!s)
		return fw_no_memory(err);
	s->sql.is = &SQLITE;
	if (sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
		rc = failed(s, err);
	if (!rc)
		sqlite3_busy_timeout(s->db, BUSY_MS);
	if (!rc)
		rc = script(&s->sql, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 4000", err);
	if (rc)
		close_it(&s->sql);
	else
		*out = &s->sql;
	return rc;
}
