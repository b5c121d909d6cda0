/* SPDX-License-Identifier: ISC */
/* PostgreSQL's dialect: prepared statements, many rows as arrays. */
#include <libpq-fe.h>
#include <stdlib.h>

#include "base/buf.h"
#include "store/sql/sql.h"
#include "base/banned.h"

#define STATEMENTS 64
#define VALUES_MAX 32

struct postgres_sql {
	struct sql sql;
	PGconn *c;
	const struct sql_text *kept[STATEMENTS]; /* prepared as "s0", "s1" ... */
	size_t kept_n;
	struct fw_buf value;                     /* texts of the values that are sent */
};

struct postgres_row {
	struct sql_row row;
	const PGresult *r;
	int at;
};

static struct postgres_sql *of(struct sql *s)
{
	return (struct postgres_sql *)s; /* sql comes first */
}

static int failed(struct postgres_sql *s, const PGresult *r, struct fw_err *err)
{
	const char *state = r ? PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL;
	bool again = state && (strncmp(state, "40", 2) == 0 || strcmp(state, "55P03") == 0); /* deadlock, serialization; a lock not had in time */
	struct fw_str said = fw_str(r ? PQresultErrorMessage(r) : PQerrorMessage(s->c));

	return fw_err_set(err, again ? FW_EAGAIN : FW_EIO, "PostgreSQL: %.*s", FW_STR_ARG(said));
}

static bool good(const PGresult *r)
{
	ExecStatusType status = PQresultStatus(r);

	return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

static int script(struct sql *sql, const char *text, struct fw_err *err)
{
	struct postgres_sql *s = of(sql);
	PGresult *r = PQexec(s->c, text);
	int rc = good(r) ? 0 : failed(s, r, err);

	PQclear(r);
	return rc;
}

static int begin(struct sql *sql, struct fw_err *err)
{
	return script(sql, "BEGIN", err);
}

static void rollback(struct sql *sql)
{
	if (PQtransactionStatus(of(sql)->c) != PQTRANS_IDLE)
		PQclear(PQexec(of(sql)->c, "ROLLBACK"));
}

static int commit(struct sql *sql, struct fw_err *err)
{
	struct postgres_sql *s = of(sql);
	PGresult *r = PQexec(s->c, "COMMIT");
	int rc = good(r) ? 0 : failed(s, r, err);

	if (!rc && strcmp(PQcmdStatus(r), "COMMIT") != 0) /* a statement in it had failed */
		rc = fw_err_set(err, FW_EIO, "PostgreSQL: the transaction was rolled back");
	PQclear(r);
	return rc;
}

static const char *array_type(char letter)
{
	return letter == 'i' ? "int8[]" : letter == 't' ? "text[]" : "bytea[]";
}

/* The rows as a table v, numbered from 1 by v.n. */
static void rows_as_table(struct fw_buf *b, const struct sql_text *t)
{
	struct fw_str name;
	char letter;

	fw_buf_adds(b, "FROM unnest(");
	for (size_t i = 0; sql_column(t, i, &letter).p; i++)
		fw_buf_addf(b, "%s$%zu::%s", i ? ", " : "", i + 1, array_type(letter));
	fw_buf_adds(b, ") WITH ORDINALITY v(");
	for (size_t i = 0; (name = sql_column(t, i, &letter)).p; i++)
		fw_buf_addf(b, "%.*s, ", FW_STR_ARG(name));
	fw_buf_adds(b, "n)");
}

static void rows_as_query(struct fw_buf *b, const struct sql_text *t, const char *table)
{
	struct fw_str name;
	char letter;

	for (size_t i = 0; (name = sql_column(t, i, &letter)).p; i++)
		fw_buf_addf(b, "%s v.%.*s", i ? "," : "SELECT", FW_STR_ARG(name));
	fw_buf_addf(b, " %s", table);
}

/* The statement's number; a negative error. */
static int prepared(struct postgres_sql *s, const struct sql_text *t, struct fw_err *err)
{
	struct fw_buf from = FW_BUF_INIT(0), query = FW_BUF_INIT(0);
	struct sql_form form = {.mark = '$'};
	char *text = NULL, name[16];
	PGresult *r = NULL;
	int rc = 0;

	for (size_t i = 0; i < s->kept_n; i++) {
		if (s->kept[i] == t)
			return (int)i;
	}
	if (t->columns) {
		rows_as_table(&from, t);
		rows_as_query(&query, t, from.p ? from.p : "");
		form.from = from.p;
		form.values = query.p;
	}
	text = sql_write(s->sql.is, t, &form);
	(void)fw_snprintf(name, sizeof(name), "s%zu", s->kept_n);
	if (from.rc || query.rc || !text)
		rc = fw_no_memory(err);
	else if (s->kept_n == STATEMENTS)
		rc = fw_err_set(err, FW_EIO, "PostgreSQL: more than %d statements", STATEMENTS);
	else if (r = PQprepare(s->c, name, text, 0, NULL), !good(r))
		rc = failed(s, r, err);
	else
		s->kept[s->kept_n++] = t;
	PQclear(r);
	fw_buf_finish(&from);
	fw_buf_finish(&query);
	free(text);
	return rc ? rc : (int)s->kept_n - 1;
}

static void bytes_text(struct fw_buf *b, struct fw_str s)
{
	fw_buf_adds(b, "\\x");
	for (size_t i = 0; i < s.len; i++)
		fw_buf_addf(b, "%02x", (unsigned char)s.p[i]);
}

static void value_text(struct fw_buf *b, const struct sql_value *v)
{
	if (v->type == SQL_TYPE_INT)
		fw_buf_addf(b, "%lld", (long long)v->i);
	else if (v->type == SQL_TYPE_TEXT)
		fw_buf_addstr(b, v->s);
	else
		bytes_text(b, v->s);
}

/* In an array: quoted, where it is no number. */
static void item_text(struct fw_buf *b, const struct sql_value *v)
{
	if (sql_is_null(v)) {
		fw_buf_adds(b, "NULL");
		return;
	}
	if (v->type == SQL_TYPE_INT) {
		value_text(b, v);
		return;
	}
	fw_buf_addc(b, '"');
	if (v->type == SQL_TYPE_BLOB) {
		fw_buf_addc(b, '\\');
		bytes_text(b, v->s);
	}
	for (size_t i = 0; v->type == SQL_TYPE_TEXT && i < v->s.len; i++) {
		if (v->s.p[i] == '"' || v->s.p[i] == '\\')
			fw_buf_addc(b, '\\');
		fw_buf_addc(b, v->s.p[i]);
	}
	fw_buf_addc(b, '"');
}

/* Send with the texts that begin at these places of s->value; SIZE_MAX: NULL. */
static int run(struct postgres_sql *s, int number, const size_t *at, size_t n, PGresult **out, struct fw_err *err)
{
	const char *value[VALUES_MAX];
	char name[16];

	if (s->value.rc)
		return fw_no_memory(err);
	for (size_t i = 0; i < n; i++)
		value[i] = at[i] == SIZE_MAX ? NULL : s->value.p + at[i];
	(void)fw_snprintf(name, sizeof(name), "s%d", number);
	*out = PQexecPrepared(s->c, name, (int)n, value, NULL, NULL, 0);
	if (good(*out))
		return 0;
	(void)failed(s, *out, err);
	PQclear(*out);
	return FW_ERR_CODE(err);
}

static int ask(struct sql *sql, const struct sql_text *t, const struct sql_value *v, size_t n, sql_row_fn *fn, void *ctx, int64_t *changed,
	struct fw_err *err)
{
	struct postgres_sql *s = of(sql);
	size_t at[VALUES_MAX];
	struct postgres_row row;
	PGresult *r;
	int number = prepared(s, t, err), rc;

	if (number < 0)
		return number;
	assert(n <= VALUES_MAX);
	fw_buf_reset(&s->value);
	for (size_t i = 0; i < n; i++) {
		at[i] = sql_is_null(&v[i]) ? SIZE_MAX : s->value.len;
		if (at[i] != SIZE_MAX) {
			value_text(&s->value, &v[i]);
			fw_buf_addc(&s->value, '\0');
		}
	}
	rc = run(s, number, at, n, &r, err);
	if (rc)
		return rc;
	row = (struct postgres_row){{sql->is}, r, 0};
	for (; !rc && fn && row.at < PQntuples(r); row.at++)
		rc = fn(ctx, &row.row);
	if (changed)
		*changed = strtoll(PQcmdTuples(r), NULL, 10);
	PQclear(r);
	return rc;
}

/* An array for each column. What {hits} returns are the numbers of rows. */
static int each(struct sql *sql, const struct sql_text *t, const struct sql_value *v, size_t n, size_t rows, bool *hit, struct fw_err *err)
{
	struct postgres_sql *s = of(sql);
	int number = prepared(s, t, err), rc;
	size_t at[VALUES_MAX];
	PGresult *r;

	if (number < 0)
		return number;
	assert(n <= VALUES_MAX);
	fw_buf_reset(&s->value);
	for (size_t c = 0; c < n; c++) {
		at[c] = s->value.len;
		for (size_t i = 0; i < rows; i++) {
			fw_buf_addc(&s->value, i ? ',' : '{');
			item_text(&s->value, &v[i * n + c]);
		}
		fw_buf_addc(&s->value, '}');
		fw_buf_addc(&s->value, '\0');
	}
	rc = run(s, number, at, n, &r, err);
	if (rc)
		return rc;
	for (size_t i = 0; hit && i < rows; i++)
		hit[i] = false;
	for (int i = 0; hit && i < PQntuples(r); i++)
		hit[strtoll(PQgetvalue(r, i, 0), NULL, 10) - 1] = true;
	PQclear(r);
	return 0;
}

static int64_t get_int(const struct sql_row *row, int column)
{
	const struct postgres_row *p = (const struct postgres_row *)row; /* row comes first */

	return PQgetisnull(p->r, p->at, column) ? 0 : strtoll(PQgetvalue(p->r, p->at, column), NULL, 10);
}

static struct fw_str get_str(const struct sql_row *row, int column)
{
	const struct postgres_row *p = (const struct postgres_row *)row;

	if (PQgetisnull(p->r, p->at, column))
		return FW_STR_NONE;
	return (struct fw_str){PQgetvalue(p->r, p->at, column), (size_t)PQgetlength(p->r, p->at, column)};
}

static void close_it(struct sql *sql)
{
	struct postgres_sql *s = of(sql);

	PQfinish(s->c);
	fw_buf_finish(&s->value);
	free(s);
}

static const struct sql_dialect POSTGRES = {
	.now = "(extract(epoch FROM clock_timestamp()) * 1000)::int8", .skip = "FOR UPDATE SKIP LOCKED", .share = "FOR SHARE", .hits = "RETURNING v.n",
	.blob_type = "bytea", .clustered = "", .filled = "WITH (fillfactor = 30)",
	.close = close_it, .script = script, .begin = begin, .commit = commit, .rollback = rollback,
	.ask = ask, .each = each, .get_int = get_int, .get_str = get_str,
};

int sql_open_postgres(const char *conninfo, struct sql **out, struct fw_err *err)
{
	struct postgres_sql *s = calloc(1, sizeof(*s));
	int rc = 0;

	if (!s)
		return fw_no_memory(err);
	s->sql.is = &POSTGRES;
	s->c = PQconnectdb(conninfo);
	if (PQstatus(s->c) != CONNECTION_OK)
		rc = failed(s, NULL, err);
	if (!rc) /* who asks by the primary key is never better off with another plan, whatever the statistics say */
		rc = script(&s->sql, "SET client_min_messages = warning; SET jit = off; SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off;"
			"SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off", err);
	if (rc)
		close_it(&s->sql);
	else
		*out = &s->sql;
	return rc;
}
