/* SPDX-License-Identifier: ISC */
/*
 * PostgreSQL's dialect, in libpq's pipeline mode. A statement whose result is not needed is sent
 * without waiting, so a commit takes a few round trips. If it fails, the next call that waits
 * returns the error, at the latest the commit; the server skips everything that was sent after it.
 *
 * Values and results are binary. Many rows travel as one array per column. Each statement is
 * prepared once per connection, with a generic plan.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <endian.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/utf8.h"
#include "store/postgres/postgres.h"
#include "store/sql/search.h"

#define RESULT_TIMEOUT_MS 90000 /* after this long without a byte the server counts as gone */
#define SENT_MAX 1000           /* then the results are read */

enum { OID_BYTEA = 17, OID_INT8 = 20, OID_TEXT = 25, OID_JSON = 114 };

struct postgres_row {
	struct sql_row row;
	const PGresult *r;
	int at;
};

/* ---- errors ---------------------------------------------------------------------------------- */

#define POOLER                                                                                                        \
	"a pooler gives each transaction another session: switch the pooler to session mode (pgbouncer: pool_mode = " \
	"session)"

static bool sqlstate_has_class(const char *state, const char *class)
{
	return strncmp(state, class, strlen(class)) == 0;
}

int postgres_broken(struct postgres_db *s, const char *why, struct fw_err *err)
{
	struct fw_str rest, line = fw_str_split(fw_str(why), '\n', &rest);

	s->broken = true;
	return fw_err_set(err, FW_EIO,
		"%s: the connection broke (%.*s): it will be opened anew; check the server and the network",
		s->sql.name, FW_STR_ARG(line));
}

/*
 * A duplicate key in a table: another process stored the row first, and a retry sees it. An error
 * that a user's trigger raises names no table, and is final.
 */
static bool error_is_race(const PGresult *r, const char *state)
{
	const char *table = PQresultErrorField(r, PG_DIAG_TABLE_NAME);

	return strcmp(state, "23505") == 0 && table;
}

/* Turns a failed result into an error with its message. r NULL: an error of the connection. */
static int postgres_failed(struct postgres_db *s, const PGresult *r, struct fw_err *err)
{
	static const struct {
		const char *state;
		int rc;
		const char *remedy;
	} KNOWN[] = {
		{"40", FW_EAGAIN, "conflict with another transaction: try again"},
		{"55P03", FW_EAGAIN,
			"another session held a lock for too long: check pg_stat_activity for idle sessions"},
		{"57014", FW_EAGAIN, "the statement took too long: check the server's load"},
		{"53100", FW_EAGAIN, "the server's disk is full: free some space; no stored data is lost"},
		{"53200", FW_EAGAIN, "the server is out of memory: give it more, or run fewer workers"},
		{"53300", FW_EAGAIN, "too many connections: raise max_connections or run fewer workers"},
		{"53", FW_EAGAIN, "the server lacks resources: check its log"},
		{"58030", FW_EAGAIN, "the server's disk failed: check its log"},
		{"25006", FW_EIO, SQL_READ_ONLY},
		{"22012", FW_EINVAL, POOLER},
		{"26000", FW_EINVAL, POOLER},
		{"42P05", FW_EINVAL, POOLER},
		{"42501", FW_EUNUSABLE, "missing privilege: grant the user all on the schema"},
		{"42P01", FW_EUNUSABLE, "tables are missing: restore a backup, or choose another schema"},
		{"42703", FW_EUNUSABLE, "another program has changed the tables: restore a backup"},
		{"XX001", FW_EUNUSABLE, "the server's data is damaged: restore a backup"},
		{"XX002", FW_EUNUSABLE, "an index is damaged: REINDEX it, or restore a backup"},
	};
	const char *state = r ? PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL,
		   *said = r ? PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY) : NULL;

	said = said ? said : r && *PQresultErrorMessage(r) ? PQresultErrorMessage(r) : PQerrorMessage(s->c);
	if (!state || sqlstate_has_class(state, "08") || sqlstate_has_class(state, "57P") ||
		sqlstate_has_class(state, "25P03") || PQstatus(s->c) == CONNECTION_BAD)
		return postgres_broken(s, said, err);
	if (sqlstate_has_class(state, "57014") && store_is_over(&s->sql.store))
		return store_over(s->sql.name, err);
	if (sqlstate_has_class(state, "40"))
		s->sql.race = SQL_RACE_LOCKS;
	if (error_is_race(r, state)) {
		s->sql.race = SQL_RACE_ROW;
		return fw_err_set(err, FW_EAGAIN, "%s: %s (%s): another process stored it meanwhile: try again",
			s->sql.name, said, state);
	}
	for (size_t i = 0; i < FW_N(KNOWN); i++) {
		if (!sqlstate_has_class(state, KNOWN[i].state))
			continue;
		s->broken |= KNOWN[i].rc == FW_EIO || strcmp(KNOWN[i].remedy, POOLER) == 0;
		if (sqlstate_has_class(state, "22012")) /* raised by session_guard() */
			return fw_err_set(err, KNOWN[i].rc, "%s: " POOLER, s->sql.name);
		return fw_err_set(err, KNOWN[i].rc, "%s: %s (%s): %s", s->sql.name, said, state, KNOWN[i].remedy);
	}
	return fw_err_set(err, FW_EINVAL, "%s: %s (%s)", s->sql.name, said, state);
}

/* ---- results --------------------------------------------------------------------------------- */

static bool result_is_ok(const PGresult *r)
{
	ExecStatusType status = PQresultStatus(r);

	return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* Ask the server to end the statement that runs; its result is an error then. */
static void statement_cancel(struct postgres_db *s)
{
	PGcancel *cancel = PQgetCancel(s->c);
	char why[256];

	if (cancel && !PQcancel(cancel, why, (int)sizeof(why)))
		fw_warn("%s: a statement could not be cancelled, it ends by its own limit: %s", s->sql.name, why);
	PQfreeCancel(cancel);
}

/* Wait for bytes. What reads is cancelled, once, when the request's limit is reached. */
static bool result_wait(struct postgres_db *s, bool *cancelled)
{
	struct pollfd f = {.fd = PQsocket(s->c), .events = POLLIN};
	bool limited = s->reading && s->sql.store.limit && !*cancelled;
	int step_ms = limited ? STORE_LIMIT_STEP_MS : RESULT_TIMEOUT_MS;

	for (int waited_ms = 0; waited_ms < RESULT_TIMEOUT_MS; waited_ms += step_ms) {
		if (poll(&f, 1, step_ms) != 0)
			return true;
		if (limited && !*cancelled && store_is_over(&s->sql.store)) {
			*cancelled = true;
			statement_cancel(s);
		}
	}
	return false;
}

/* PQgetResult() with a timeout. */
static PGresult *result_next(struct postgres_db *s)
{
	bool cancelled = false;

	while (PQisBusy(s->c)) {
		if (!result_wait(s, &cancelled) || !PQconsumeInput(s->c)) {
			s->broken = true;
			return NULL;
		}
	}
	return PQgetResult(s->c);
}

/* One result, and the NULL behind it. The first error is kept in s->late. */
static PGresult *result_read(struct postgres_db *s, const struct postgres_sent *sent)
{
	PGresult *r = result_next(s), *more;
	bool good = r && result_is_ok(r);

	assert(!sent->preparation || (sent->statement >= 0 && sent->statement < POSTGRES_STATEMENTS));
	if (sent->preparation && !good)
		s->kept[sent->statement] = NULL;
	if (!good && !s->late.rc) {
		if (r)
			(void)postgres_failed(s, r, &s->late);
		else
			(void)postgres_broken(s, s->broken ? "no answer" : PQerrorMessage(s->c), &s->late);
	}
	while (!s->broken && (more = result_next(s)) != NULL)
		PQclear(more);
	if (good && !sent->preparation && !sent->guard)
		return r;
	PQclear(r);
	return NULL;
}

/*
 * Reads the results of all statements that were sent. *last: the result of the last statement, or
 * NULL; last may be NULL. Errors stay in s->late.
 */
static void results_read(struct postgres_db *s, PGresult **last)
{
	PGresult *r = NULL;

	if (s->sent_n && !s->broken && !PQpipelineSync(s->c))
		(void)postgres_broken(s, PQerrorMessage(s->c), s->late.rc ? NULL : &s->late);
	for (size_t i = 0; i < s->sent_n && !s->broken; i++) {
		PQclear(r);
		r = result_read(s, &s->sent[i]);
	}
	if (s->sent_n && !s->broken)
		PQclear(result_next(s)); /* the end of the pipeline */
	if (s->broken && !s->late.rc)
		(void)postgres_broken(s, "no answer", &s->late);
	s->sent_n = 0;
	if (last && !s->late.rc)
		*last = r;
	else
		PQclear(r);
}

/* Reads the results of all statements that were sent, and returns the first error. */
static int results_settle(struct postgres_db *s, PGresult **last, struct fw_err *err)
{
	int rc;

	results_read(s, last);
	assert(!s->sent_n);
	rc = s->late.rc;
	if (rc && err)
		*err = s->late;
	s->late.rc = 0;
	return rc;
}

/* ---- sending --------------------------------------------------------------------------------- */

static bool sent_add(struct postgres_db *s, int statement, bool preparation, bool guard)
{
	if (s->sent_n == s->sent_cap) {
		size_t cap = s->sent_cap ? s->sent_cap * 2 : 64;
		struct postgres_sent *more = reallocarray(s->sent, cap, sizeof(*more));

		if (!more)
			return false;
		s->sent = more;
		s->sent_cap = cap;
	}
	s->sent[s->sent_n++] = (struct postgres_sent){statement, preparation, guard};
	return true;
}

/*
 * Behind a pooler: a statement that fails, and so everything behind it, if this is not the session
 * that was opened. A pooler in transaction mode gives each transaction any session: it may have
 * another store's search_path, and other clients' statements under our names.
 */
static bool session_guard(struct postgres_db *s)
{
	char sql[140];

	if (!s->session[0] || s->sent_n)
		return true;
	return fw_snprintf(sql, sizeof(sql),
		       "SELECT 1 / (current_setting('feedwheel.session', true) IS NOT DISTINCT FROM '%s')::int",
		       s->session) &&
		sent_add(s, -1, false, true) && PQsendQueryParams(s->c, sql, 0, NULL, NULL, NULL, NULL, 1);
}

static const char *column_array_type(char letter)
{
	return letter == 'i' ? "int8[]" : letter == 't' ? "text[]" : letter == 'j' ? "json[]" : "bytea[]";
}

/* The rows as a table v. */
static void postgres_rows_table(struct fw_buf *b, const struct sql_text *t)
{
	struct fw_str name;
	char letter;

	fw_buf_adds(b, "unnest(");
	for (size_t i = 0; sql_column(t, i, &letter).p; i++)
		fw_buf_addf(b, "%s$%zu::%s", i ? ", " : "", i + 1, column_array_type(letter));
	fw_buf_adds(b, ") v(");
	for (size_t i = 0; (name = sql_column(t, i, &letter)).p; i++)
		fw_buf_addf(b, "%s%.*s", i ? ", " : "", FW_STR_ARG(name));
	fw_buf_addc(b, ')');
	fw_buf_addc(b, '\0');
}

static char *postgres_text_write(const struct sql *s, const struct sql_text *t)
{
	struct fw_buf table = FW_BUF_INIT(0);
	char *text;

	if (t->columns)
		postgres_rows_table(&table, t);
	text = table.rc ? NULL : sql_render(s->dialect, t, &(struct sql_form){.mark = '$', .table = table.p});
	fw_buf_finish(&table);
	return text;
}

/* Types of single values: otherwise the server takes a small number in a comparison for int4. */
static Oid value_oid(const struct sql_value *v)
{
	return v->type == SQL_TYPE_INT   ? OID_INT8 :
		v->type == SQL_TYPE_BLOB ? OID_BYTEA :
		v->type == SQL_TYPE_TEXT ? OID_TEXT :
					   0;
}

/* The number of the statement; a negative error. Sends the preparation if it is new. */
static int statement_prepare(
	struct postgres_db *s, const struct sql_text *t, const struct sql_value *v, size_t n, struct fw_err *err)
{
	Oid type[POSTGRES_VALUES];
	size_t at = 0;
	char *text, name[16];
	bool ok;

	while (at < s->kept_n && s->kept[at] != t->text)
		at++;
	if (at < s->kept_n)
		return (int)at;
	/* a failed preparation frees its number */
	for (at = 0; at < s->kept_n && s->kept[at]; at++)
		;
	if (at == POSTGRES_STATEMENTS)
		return fw_err_set(err, FW_EINVAL, "%s: more than %d statements", s->sql.name, POSTGRES_STATEMENTS);
	text = postgres_text_write(&s->sql, t);
	if (!text)
		return fw_no_memory(err);
	for (size_t i = 0; i < n; i++)
		type[i] = t->columns ? 0 : value_oid(&v[i]);
	(void)fw_snprintf(name, sizeof(name), "s%zu", at);
	ok = sent_add(s, (int)at, true, false) && PQsendPrepare(s->c, name, text, (int)n, type);
	free(text);
	if (!ok)
		return postgres_broken(s, PQerrorMessage(s->c), err);
	s->kept[at] = t->text;
	s->kept_n += at == s->kept_n;
	return (int)at;
}

static void int32_put(struct fw_buf *b, uint32_t v)
{
	uint32_t net = htonl(v);

	fw_buf_add(b, &net, sizeof(net));
}

static void int64_put(struct fw_buf *b, int64_t v)
{
	uint64_t net = htobe64((uint64_t)v);

	fw_buf_add(b, &net, sizeof(net));
}

/* PostgreSQL's text holds no NUL and no invalid UTF-8: both become U+FFFD. */
static void postgres_text_put(struct fw_buf *b, struct fw_str s)
{
	for (size_t at = 0; at < s.len;) {
		struct fw_str rest = fw_str_sub(s, at, s.len);
		size_t ok = fw_utf8_valid(rest.p, rest.len), n = 1;
		const char *nul = memchr(rest.p, '\0', ok);

		ok = nul ? (size_t)(nul - rest.p) : ok;
		fw_buf_add(b, rest.p, ok);
		at += ok;
		if (at == s.len)
			break;
		(void)fw_utf8_get(s.p + at, s.len - at, &n);
		fw_buf_addcp(b, 0xfffd);
		at += n;
	}
}

static void bytes_put(struct fw_buf *b, const struct sql_value *v)
{
	if (v->type == SQL_TYPE_TEXT)
		postgres_text_put(b, v->s);
	else
		fw_buf_addstr(b, v->s);
}

static void array_item_put(struct fw_buf *b, const struct sql_value *v)
{
	size_t at = b->len;
	uint32_t net;

	if (sql_is_null(v)) {
		int32_put(b, UINT32_MAX);
		return;
	}
	int32_put(b, 8);
	if (v->type == SQL_TYPE_INT) {
		int64_put(b, v->i);
		return;
	}
	bytes_put(b, v);
	if (b->rc)
		return;
	net = htonl((uint32_t)(b->len - at - sizeof(net)));
	memcpy(b->p + at, &net, sizeof(net));
}

static uint32_t column_oid(char letter)
{
	return letter == 'i' ? OID_INT8 : letter == 't' ? OID_TEXT : letter == 'j' ? OID_JSON : OID_BYTEA;
}

/* One column of many rows. */
static void array_put(struct fw_buf *b, char letter, const struct sql_value *v, size_t step, size_t rows)
{
	assert(rows && step);
	int32_put(b, 1); /* dimensions */
	int32_put(b, 1); /* has NULLs */
	int32_put(b, column_oid(letter));
	int32_put(b, (uint32_t)rows);
	int32_put(b, 1); /* lower bound */
	for (size_t i = 0; i < rows; i++)
		array_item_put(b, v + i * step);
}

static int connection_check(struct postgres_db *s, size_t n, struct fw_err *err)
{
	if (s->broken)
		return postgres_broken(s, "in an earlier call", err);
	if (s->in_callback)
		return fw_err_set(err, FW_EINVAL, "%s: called from one of its own callbacks", s->sql.name);
	if (n > POSTGRES_VALUES)
		return fw_err_set(err, FW_EINVAL, "%s: more than %d values", s->sql.name, POSTGRES_VALUES);
	return session_guard(s) ? 0 : postgres_broken(s, PQerrorMessage(s->c), err);
}

/*
 * The parameters, one after the other, in s->value. rows 0: single values. Otherwise an array for
 * each of the n columns.
 */
static void parameters_put(struct postgres_db *s, const struct sql_text *t, const struct sql_value *v, size_t n,
	size_t rows, size_t *length)
{
	char letter = 'i';

	fw_buf_reset(&s->value);
	for (size_t i = 0, from = 0; i < n; i++, from = s->value.len) {
		if (rows) {
			(void)sql_column(t, i, &letter);
			array_put(&s->value, letter, v + i, n, rows);
		} else if (v[i].type == SQL_TYPE_INT) {
			int64_put(&s->value, v[i].i);
		} else if (!sql_is_null(&v[i])) {
			bytes_put(&s->value, &v[i]);
		}
		length[i] = s->value.len - from;
	}
}

static int statement_send(struct postgres_db *s, const struct sql_text *t, const struct sql_value *v, size_t n,
	size_t rows, struct fw_err *err)
{
	const char *value[POSTGRES_VALUES];
	int length[POSTGRES_VALUES], format[POSTGRES_VALUES];
	size_t bytes[POSTGRES_VALUES];
	int rc = connection_check(s, n, err), number;
	char name[16];

	if (rc)
		return rc;
	assert(n <= POSTGRES_VALUES);
	number = statement_prepare(s, t, v, n, err);
	if (number < 0)
		return number;
	parameters_put(s, t, v, n, rows, bytes);
	if (s->value.rc || !sent_add(s, number, false, false))
		return fw_no_memory(err);
	for (size_t i = 0, at = 0; i < n; at += bytes[i++]) {
		value[i] = !rows && sql_is_null(&v[i]) ? NULL : s->value.p ? s->value.p + at : "";
		length[i] = (int)bytes[i];
		format[i] = 1;
	}
	(void)fw_snprintf(name, sizeof(name), "s%d", number);
	return PQsendQueryPrepared(s->c, name, (int)n, value, length, format, 1) ?
		0 :
		postgres_broken(s, PQerrorMessage(s->c), err);
}

static int postgres_rows_show(struct postgres_db *s, const PGresult *r, sql_row_fn *fn, void *ctx, struct fw_err *err)
{
	bool is_broken;
	struct postgres_row row = {{s->sql.dialect, PQnfields(r), &is_broken}, r, 0};
	int rc = 0;

	assert(!s->in_callback);
	s->in_callback = true;
	for (; !rc && fn && row.at < PQntuples(r); row.at++)
		rc = sql_row_show(&s->sql, &row.row, fn, ctx, err);
	s->in_callback = false;
	return rc;
}

static int statement_run(struct postgres_db *s, const struct sql_text *t, const struct sql_value *v, size_t n,
	size_t rows, sql_row_fn *fn, void *ctx, int64_t *changed, struct fw_err *err)
{
	PGresult *r = NULL;
	int rc = statement_send(s, t, v, n, rows, err);

	if (rc || (!fn && !changed && s->sent_n < SENT_MAX))
		return rc;
	s->reading = fn != NULL;
	rc = results_settle(s, &r, err);
	s->reading = false;
	if (!rc && r)
		rc = postgres_rows_show(s, r, fn, ctx, err);
	if (changed)
		*changed = r ? strtoll(PQcmdTuples(r), NULL, 10) : 0;
	PQclear(r);
	return rc;
}

static int postgres_ask(struct sql *s, const char *text, const struct sql_value *v, size_t n, sql_row_fn *fn, void *ctx,
	int64_t *changed, struct fw_err *err)
{
	return statement_run(postgres_db(s), &(struct sql_text){text, NULL}, v, n, 0, fn, ctx, changed, err);
}

static int postgres_each(struct sql *s, const struct sql_text *t, const struct sql_value *v, size_t n, size_t rows,
	sql_row_fn *fn, void *ctx, struct fw_err *err)
{
	return statement_run(postgres_db(s), t, v, n, rows, fn, ctx, NULL, err);
}

/* One result outside a pipeline, whose status must be `wanted`. */
static int result_expect(struct postgres_db *s, ExecStatusType wanted, struct fw_err *err)
{
	PGresult *r = result_next(s);
	int rc = r && PQresultStatus(r) == wanted ? 0 :
		r                                 ? postgres_failed(s, r, err) :
						    postgres_broken(s, PQerrorMessage(s->c), err);

	PQclear(r);
	return rc;
}

/* The rows of a COPY, and its end. */
static int copy_rows(struct postgres_db *s, const struct sql_value *v, size_t n, size_t rows, struct fw_err *err)
{
	/* The NUL of the string counts: flags and header extension are 0. */
	static const char HEAD[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0";
	const uint16_t width = htons((uint16_t)n), end = UINT16_MAX;
	bool sent;

	assert(n && n < UINT16_MAX);
	fw_buf_reset(&s->value);
	fw_buf_add(&s->value, HEAD, sizeof(HEAD));
	for (size_t i = 0; i < rows * n; i++) {
		if (i % n == 0)
			fw_buf_add(&s->value, &width, sizeof(width));
		array_item_put(&s->value, &v[i]);
	}
	fw_buf_add(&s->value, &end, sizeof(end));
	sent = s->value.rc || PQputCopyData(s->c, s->value.p, (int)s->value.len) == 1;
	if (!sent || PQputCopyEnd(s->c, s->value.rc ? "out of memory" : NULL) != 1)
		return postgres_broken(s, PQerrorMessage(s->c), err);
	return result_expect(s, PGRES_COMMAND_OK, err);
}

/*
 * COPY costs the server a third of what an INSERT over arrays does. It cannot be part of a
 * pipeline.
 */
static int postgres_append(struct sql *sql, const char *table, const struct sql_text *t, const struct sql_value *v,
	size_t n, size_t rows, struct fw_err *err)
{
	struct postgres_db *s = postgres_db(sql);
	struct fw_buf text = FW_BUF_INIT(0);
	struct fw_str name;
	PGresult *r;
	char letter;
	int rc = connection_check(s, n, err);

	rc = rc ? rc : results_settle(s, NULL, err);
	if (rc)
		return rc;
	fw_buf_addf(&text, "COPY %s (", table);
	for (size_t i = 0; (name = sql_column(t, i, &letter)).p; i++)
		fw_buf_addf(&text, "%s%.*s", i ? ", " : "", FW_STR_ARG(name));
	fw_buf_adds(&text, ") FROM STDIN (FORMAT binary)");
	fw_buf_addc(&text, '\0');
	if (text.rc)
		rc = fw_no_memory(err);
	else if (s->broken || !PQexitPipelineMode(s->c) || !PQsendQuery(s->c, text.p))
		rc = postgres_broken(s, PQerrorMessage(s->c), err);
	fw_buf_finish(&text);
	if (rc)
		return rc;
	rc = result_expect(s, PGRES_COPY_IN, err);
	rc = rc ? rc : copy_rows(s, v, n, rows, err);
	while (!s->broken && (r = result_next(s)) != NULL)
		PQclear(r);
	if (!PQenterPipelineMode(s->c)) {
		(void)postgres_broken(s, PQerrorMessage(s->c), rc ? NULL : err);
		return rc ? rc : FW_EIO;
	}
	return rc;
}

/* ---- transactions ---------------------------------------------------------------------------- */

/* Several statements in one text, outside the pipeline. */
static int postgres_script(struct sql *sql, const char *text, struct fw_err *err)
{
	struct postgres_db *s = postgres_db(sql);
	PGresult *r;
	int rc = results_settle(s, NULL, err);

	if (rc)
		return rc;
	if (s->broken || !PQexitPipelineMode(s->c))
		return postgres_broken(s, PQerrorMessage(s->c), err);
	r = PQexec(s->c, text);
	rc = result_is_ok(r) ? 0 : postgres_failed(s, r, err);
	PQclear(r);
	if (!PQenterPipelineMode(s->c) && !rc)
		rc = postgres_broken(s, PQerrorMessage(s->c), err);
	return rc;
}

static int postgres_begin(struct sql *sql, struct fw_err *err)
{
	if (sql->read_only)
		return fw_err_set(err, FW_EINVAL, "%s: opened for reading only", sql->name);
	postgres_db(sql)->late.rc = 0;
	return sql_exec(sql, "BEGIN", SQL_NONE, err);
}

static void postgres_rollback(struct sql *sql)
{
	struct postgres_db *s = postgres_db(sql);

	results_read(s, NULL);
	s->late.rc = 0;
	if (s->broken || sql_exec(sql, "ROLLBACK", SQL_NONE, NULL))
		return;
	results_read(s, NULL);
	s->broken |= s->late.rc != 0; /* the error before the rollback is the one to report */
	s->late.rc = 0;
}

static int postgres_commit(struct sql *sql, struct fw_err *err)
{
	struct postgres_db *s = postgres_db(sql);
	PGresult *r = NULL;
	int rc = statement_send(s, &(struct sql_text){"COMMIT", NULL}, NULL, 0, 0, err),
	    late = results_settle(s, &r, rc ? NULL : err);

	rc = rc ? rc : late;
	if (!rc && r && strcmp(PQcmdStatus(r), "COMMIT") != 0)
		rc = fw_err_set(err, FW_EIO, "%s: the transaction was rolled back", s->sql.name);
	PQclear(r);
	if (rc)
		postgres_rollback(sql);
	return rc;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool postgres_get_null(const struct sql_row *row, int column)
{
	const struct postgres_row *p = (const struct postgres_row *)row; /* row comes first */

	assert(p->at < PQntuples(p->r));
	return PQgetisnull(p->r, p->at, column);
}

/* An integer of 1, 2, 4 or 8 bytes; NULL is 0. */
static int64_t postgres_get_int(const struct sql_row *row, int column)
{
	const struct postgres_row *p = (const struct postgres_row *)row;
	const char *at = PQgetvalue(p->r, p->at, column), *end = at + PQgetlength(p->r, p->at, column);
	int64_t v = at < end && (signed char)*at < 0 ? -1 : 0;

	*row->is_broken |= end - at > (ptrdiff_t)sizeof(v);

	while (at < end)
		v = (int64_t)((uint64_t)v << 8 | (unsigned char)*at++);
	return v;
}

static struct fw_str postgres_get_str(const struct sql_row *row, int column)
{
	const struct postgres_row *p = (const struct postgres_row *)row;

	if (PQgetisnull(p->r, p->at, column))
		return FW_STR_NONE;
	return (struct fw_str){PQgetvalue(p->r, p->at, column), (size_t)PQgetlength(p->r, p->at, column)};
}

/* ---- the dialect ----------------------------------------------------------------------------- */

/* session_settings() keeps the planner from it. */
static int postgres_passes(struct sql *sql, bool on, struct fw_err *err)
{
	return sql_query(sql,
		"SELECT set_config('enable_seqscan', ?1, false), set_config('max_parallel_workers_per_gather', ?2,"
		" false)",
		SQL_V(SQL_TEXT(fw_str(on ? "on" : "off")), SQL_TEXT(fw_str(on ? "2" : "0"))), NULL, NULL, err);
}

static int postgres_size(struct sql *sql, int64_t *bytes, struct fw_err *err)
{
	return sql_query_int(sql,
		"SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::int8 FROM pg_class WHERE"
		" relnamespace = current_schema()::regnamespace AND relkind = 'r'",
		SQL_NONE, 0, bytes, err);
}

static int postgres_row_id_raised(struct sql *sql, struct fw_err *err)
{
	return sql_exec(sql,
		"SELECT setval(pg_get_serial_sequence('row_counts', 'id'), greatest((SELECT max(id) FROM row_counts),"
		" nextval(pg_get_serial_sequence('row_counts', 'id'))))",
		SQL_NONE, err);
}

static const struct sql_fragment POSTGRES_FRAGMENT[] = {
	{"now", "(extract(epoch FROM clock_timestamp()) * 1000)::int8"},
	{"readonly", "pg_is_in_recovery()::int::int8"},
	{"last", "lastval()"},
	{"skip", "FOR UPDATE SKIP LOCKED"},
	{"share", "FOR SHARE"},
	{"update", "FOR UPDATE"},
	{"upsert", "ON CONFLICT ($1) DO UPDATE SET"},
	{"new", "excluded.$1"},
	{"keep", "ON CONFLICT ($1) DO NOTHING"},
	{"greatest", "greatest"},
	{"rows_of", "count(*) FILTER (WHERE $1)"},
	{"sum", "coalesce(sum($1), 0)::int8"}, /* sum() of int8 is numeric */
	{"behind", "($1, $2) > (?1, ?2)"},
	{"head", "left($1, 1048576)"},
	{"octets", "octet_length($1)"},
	{"waiting", "(SELECT count(*) FROM (SELECT 1 FROM entries_changed LIMIT ?1) b)"},
	/* an array keeps the planner from joining the two tables row by row */
	{"found", "e.id = ANY (ARRAY(SELECT f.id FROM entries_fts f WHERE f.words @@ ?1::tsquery))"},
	{"among", "$1 = ANY (ARRAY(SELECT j.x::int8 FROM json_array_elements_text($2::json) AS j (x)))"},
	{"iso", "to_char(to_timestamp(($1) / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"},
	{"raw", "$1"},
	{"words", "$1"},
	{"ms", "($1) / 1000"},
	{"shown", "$1"},
	{"count", "$1"},
	{"nth", "(('[' || replace(convert_from($1, 'UTF8'), ' ', ',') || ']')::json ->> $2)::int8"},
	{"utf8", "convert_from($1, 'UTF8')"},
	{"shard", "($1) >> 53"},
	{"indexed", "(SELECT count(*) FROM pg_indexes WHERE schemaname = current_schema() AND indexname = '$1')"},
	{"of", ""},
	{"jsonb", "($1)::jsonb"},
	{"tags",
		"(SELECT string_agg(tag, ', ') FROM json_array_elements_text(CASE WHEN json_typeof($1 -> 'tags') = "
		"'array' THEN $1 -> 'tags' ELSE '[]' END) tag)"},
	{"pk", "int8 PRIMARY KEY"},
	{"id", "int8 GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"},
	{"serial", "int8 GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"},
	{"text", "text"},
	{"long", "text"},
	{"bytes", "bytea"},
	{"key16", "bytea"},
	/* json keeps the text as written; jsonb rejects \u0000 and changes the text */
	{"json", "json"},
	{"name", "text COLLATE \"C\""},
	{"namebytes", "bytea"},
	{"clustered", ""},
	{"filled", "WITH (fillfactor = 30)"},
	{"table", ""},
	{NULL, NULL},
};

const struct sql_dialect postgres_dialect = {
	.fragment = POSTGRES_FRAGMENT,
	.script = postgres_script,
	.begin = postgres_begin,
	.commit = postgres_commit,
	.rollback = postgres_rollback,
	.query = postgres_ask,
	.query_rows = postgres_each,
	.append = postgres_append,
	.get_null = postgres_get_null,
	.get_int = postgres_get_int,
	.get_str = postgres_get_str,
	.notify = postgres_notify,
	.entries_new = postgres_entries_new,
	.passes = postgres_passes,
	.size = postgres_size,
	.row_counts_raised = postgres_row_id_raised,
	.search_changed = postgres_search_changed,
	.search_step = postgres_search_step,
	.search_unindexed = sql_search_unindexed,
	.search_begin = postgres_search_begin,
};
