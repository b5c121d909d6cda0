/* SPDX-License-Identifier: ISC */
/*
 * The dialect of MariaDB and MySQL. Statements are text, with the values written into it.
 * Statements whose results are not needed are collected and sent together, so a commit takes a few
 * round trips. If one fails, the next call that waits returns the error, at the latest the commit;
 * the server skips everything that was sent after it.
 *
 * A change of many rows is one prepared statement with an array of values per column if the server
 * supports that (MariaDB), otherwise a sequence of statements. A SELECT over many rows gets them as
 * JSON, and both servers turn that into a table.
 */
#include <assert.h>
#include <mysqld_error.h>
#include <stdlib.h>
#include <string.h>

#include "api/account.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "store/mysql/mysql.h"
#include "store/sql/search.h"

#define ARRAY_MIN 4   /* fewer rows travel as text with the other statements */
#define ROW_FROM '\1' /* the text between these two is repeated for each row */
#define ROW_TO '\2'

struct mysql_row {
	struct sql_row row;
	MYSQL_ROW at;
	const unsigned long *len;
};

/* ---- kept statements ------------------------------------------------------------------------- */

static void statement_finish(struct mysql_statement *k)
{
	if (k->stmt)
		mysql_stmt_close(k->stmt);
	free(k->text);
	free(k->mark);
}

void mysql_statements_free(struct mysql_db *s)
{
	for (size_t i = 0; i < s->kept_n; i++)
		statement_finish(&s->kept[i]);
}

/*
 * The rows as a table v of columns c1, c2 ... JSON holds numbers, and bytes as hexadecimal digits.
 */
static void mysql_rows_table(struct fw_buf *b, const struct sql_text *t)
{
	char letter;

	fw_buf_adds(b, "(SELECT ");
	for (size_t i = 0; sql_column(t, i, &letter).p; i++)
		fw_buf_addf(b,
			letter == 'i'         ? "%sj%zu AS c%zu" :
				letter == 'b' ? "%sunhex(j%zu) AS c%zu" :
						"%sCONVERT(unhex(j%zu) USING utf8mb4) AS c%zu",
			i ? ", " : "", i + 1, i + 1);
	fw_buf_adds(b, " FROM JSON_TABLE(?1, '$[*]' COLUMNS (");
	for (size_t i = 0; sql_column(t, i, &letter).p; i++)
		fw_buf_addf(b, "%sj%zu %s PATH '$[%zu]'", i ? ", " : "", i + 1,
			letter == 'i' ? "BIGINT" : "VARCHAR(1024)", i);
	fw_buf_adds(b, ")) j) v");
}

/*
 * The text of a statement as sql_render() makes it; NULL: out of memory. A SELECT over rows must
 * read them first: otherwise the server may scan a small table once per row.
 */
static char *mysql_text_write(const struct sql *s, const struct sql_text *t, bool select)
{
	static const char SELECT[] = "SELECT ";
	struct sql_form form = {.mark = '?', .by_number = select};
	struct fw_buf rows = FW_BUF_INIT(0), text = FW_BUF_INIT(0);
	struct sql_text ordered = *t;
	char *written, letter;

	if (select) {
		mysql_rows_table(&rows, t);
		if (fw_str_starts(fw_str(t->text), FW_STR(SELECT))) {
			fw_buf_addf(&text, "SELECT STRAIGHT_JOIN %s%c", t->text + strlen(SELECT), '\0');
			ordered.text = text.p;
		}
	} else if (t->columns) {
		fw_buf_addf(&rows, "VALUES %c(", ROW_FROM);
		for (size_t i = 0; sql_column(t, i, &letter).p; i++)
			fw_buf_addf(&rows, "%s?%zu", i ? ", " : "", i + 1);
		fw_buf_addf(&rows, ")%c", ROW_TO);
	}
	fw_buf_addc(&rows, '\0');
	if (select)
		form.table = rows.p;
	else
		form.values = rows.p;
	written = rows.rc || text.rc ? NULL : sql_render(s->dialect, &ordered, &form);
	fw_buf_finish(&rows);
	fw_buf_finish(&text);
	return written;
}

/* Removes the marks of values and rows from the text, and stores their offsets. */
static bool marks_parse(struct mysql_statement *k)
{
	char *to = k->text, *end;
	size_t n = 0;

	for (const char *p = k->text; *p; p++)
		n += p[0] == '?' && fw_is_digit((unsigned char)p[1]);
	k->mark = calloc(n + 1, sizeof(*k->mark));
	if (!k->mark)
		return false;
	k->between = ';';
	for (const char *p = k->text; *p;) {
		size_t at = (size_t)(to - k->text);

		if (p[0] == '?' && fw_is_digit((unsigned char)p[1])) {
			k->mark[k->mark_n++] = (struct mysql_mark){at, (size_t)strtol(p + 1, &end, 10) - 1};
			p = end;
		} else if (*p == ROW_FROM) {
			k->between = ',';
			k->row_from = at;
			p++;
		} else if (*p == ROW_TO) {
			k->row_to = at;
			p++;
		} else {
			*to++ = *p++;
		}
	}
	*to = '\0';
	k->len = (size_t)(to - k->text);
	if (k->between == ';')
		k->row_to = k->len;
	assert(k->mark_n <= n && k->row_from <= k->row_to && k->row_to <= k->len);
	return true;
}

static int statement_find(
	struct mysql_db *s, const struct sql_text *t, bool select, struct mysql_statement **out, struct fw_err *err)
{
	struct mysql_statement *k;

	for (size_t i = 0; i < s->kept_n; i++) {
		if (s->kept[i].of.text == t->text) {
			*out = &s->kept[i];
			return 0;
		}
	}
	if (s->kept_n == MYSQL_STATEMENTS)
		return fw_err_set(err, FW_EINVAL, "%s: more than %d statements", s->sql.name, MYSQL_STATEMENTS);
	k = &s->kept[s->kept_n];
	*k = (struct mysql_statement){.of = *t, .text = mysql_text_write(&s->sql, t, select)};
	if (!k->text || !marks_parse(k)) {
		statement_finish(k);
		return fw_no_memory(err);
	}
	s->kept_n++;
	*out = k;
	return 0;
}

/* ---- values ---------------------------------------------------------------------------------- */

void mysql_int_put(struct fw_buf *b, int64_t v)
{
	char digits[24], *at = digits + sizeof(digits);
	uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;

	do
		*--at = (char)('0' + u % 10);
	while (u /= 10);
	if (v < 0)
		*--at = '-';
	fw_buf_add(b, at, (size_t)(digits + sizeof(digits) - at));
}

/* s is valid UTF-8; the result stands between quotes. */
static void escaped_put(struct fw_buf *b, const char *p, size_t len)
{
	static const char SPECIAL[256] = {
		[0] = '0', ['\''] = '\'', ['\\'] = '\\', ['\n'] = 'n', ['\r'] = 'r', [26] = 'Z'};
	size_t from = 0;

	for (size_t i = 0; i < len; i++) {
		char c = SPECIAL[(unsigned char)p[i]];

		if (!c)
			continue;
		fw_buf_add(b, p + from, i - from);
		fw_buf_addc(b, '\\');
		fw_buf_addc(b, c);
		from = i + 1;
	}
	fw_buf_add(b, p + from, len - from);
}

/* Each byte of invalid UTF-8 becomes U+FFFD, because the server refuses it. */
static void mysql_text_put(struct fw_buf *b, struct fw_str s, bool escape)
{
	for (;;) {
		size_t n = fw_utf8_valid(s.p, s.len);

		if (escape)
			escaped_put(b, s.p, n);
		else
			fw_buf_add(b, s.p, n);
		if (n == s.len)
			return;
		fw_buf_addcp(b, 0xfffd);
		s = (struct fw_str){s.p + n + 1, s.len - n - 1};
	}
}

static void hex_put(struct fw_buf *b, struct fw_str s)
{
	static const char HEX[] = "0123456789abcdef";
	char *p = fw_buf_room(b, s.len * 2);

	for (size_t i = 0; p && i < s.len; i++) {
		*p++ = HEX[(unsigned char)s.p[i] >> 4];
		*p++ = HEX[(unsigned char)s.p[i] & 15];
	}
	b->len += p ? s.len * 2 : 0;
}

static void mysql_value_put(struct fw_buf *b, const struct sql_value *v)
{
	if (sql_is_null(v)) {
		fw_buf_adds(b, "NULL");
	} else if (v->type == SQL_TYPE_INT) {
		mysql_int_put(b, v->i);
	} else if (v->type == SQL_TYPE_TEXT) {
		fw_buf_addc(b, '\'');
		mysql_text_put(b, v->s, true);
		fw_buf_addc(b, '\'');
	} else {
		fw_buf_adds(b, "x'");
		hex_put(b, v->s);
		fw_buf_addc(b, '\'');
	}
}

/* The text between two offsets with these values; v NULL: a '?' for each value. */
static void statement_put(
	struct fw_buf *b, const struct mysql_statement *k, size_t from, size_t to, const struct sql_value *v)
{
	assert(from <= to && to <= k->len);
	for (size_t i = 0; i < k->mark_n; i++) {
		size_t at = k->mark[i].at;

		if (at < from || at > to)
			continue;
		fw_buf_add(b, k->text + from, at - from);
		if (v)
			mysql_value_put(b, &v[k->mark[i].value]);
		else
			fw_buf_addc(b, '?');
		from = at;
	}
	fw_buf_add(b, k->text + from, to - from);
}

/* The same as hexadecimal digits. */
static void mysql_text_hex_put(struct fw_buf *b, struct fw_str s)
{
	struct fw_buf mended = FW_BUF_INIT(0);

	mysql_text_put(&mended, s, false);
	hex_put(b, fw_buf_str(&mended));
	b->rc = mended.rc ? mended.rc : b->rc;
	fw_buf_finish(&mended);
}

/* The rows as JSON: numbers, and bytes as hexadecimal digits. */
static void rows_json_put(struct fw_buf *b, const struct sql_value *v, size_t n, size_t rows)
{
	fw_buf_addc(b, '[');
	for (size_t i = 0; i < rows; i++) {
		fw_buf_adds(b, i ? ",[" : "[");
		for (size_t c = 0; c < n; c++, v++) {
			fw_buf_adds(b, c ? "," : "");
			if (sql_is_null(v)) {
				fw_buf_adds(b, "null");
			} else if (v->type == SQL_TYPE_INT) {
				mysql_int_put(b, v->i);
			} else {
				fw_buf_addc(b, '"');
				if (v->type == SQL_TYPE_TEXT && fw_utf8_valid(v->s.p, v->s.len) != v->s.len)
					mysql_text_hex_put(b, v->s);
				else
					hex_put(b, v->s);
				fw_buf_addc(b, '"');
			}
		}
		fw_buf_addc(b, ']');
	}
	fw_buf_addc(b, ']');
}

/* ---- sending --------------------------------------------------------------------------------- */

static size_t script_max(const struct mysql_db *s)
{
	return FW_MIN(MYSQL_SCRIPT_MAX, s->packet_max / 2);
}

static int script_send(struct mysql_db *s, struct fw_err *err)
{
	int rc = s->late.rc;

	if (rc && err)
		*err = s->late;
	s->late.rc = 0;
	if (!rc && s->script.rc)
		rc = fw_no_memory(err);
	else if (!rc && s->script.len >= s->packet_max)
		rc = mysql_too_large(s, err); /* a longer packet would end the connection */
	else if (!rc && mysql_send_query(s->c, s->script.p, s->script.len))
		rc = mysql_failed(s, "sending", err);
	fw_buf_reset(&s->script);
	return rc;
}

/*
 * Number of rows that a statement wrote. Of an UPDATE all matching rows count, also unchanged ones.
 */
static int64_t rows_written(struct mysql_db *s)
{
	static const char FOUND[] = "Rows matched: ";
	const char *info = mysql_info(s->c);

	if (info && strncmp(info, FOUND, strlen(FOUND)) == 0)
		return strtoll(info + strlen(FOUND), NULL, 10);
	return (int64_t)mysql_affected_rows(s->c);
}

struct mysql_result {
	MYSQL_RES *rows; /* of the last statement that returned any */
	int64_t written; /* by the last statement */
};

static int script_read(struct mysql_db *s, struct mysql_result *a, struct fw_err *err)
{
	int more;

	if (mysql_read_query_result(s->c))
		return mysql_failed(s, "sending", err);
	do {
		MYSQL_RES *rows = mysql_store_result(s->c);

		if (rows) {
			mysql_free_result(a->rows);
			a->rows = rows;
		} else if (mysql_errno(s->c)) {
			return mysql_failed(s, "reading", err);
		} else {
			a->written = rows_written(s);
		}
		more = mysql_next_result(s->c);
	} while (more == 0);
	return more > 0 ? mysql_failed(s, "writing", err) : 0;
}

/* Send the collected statements, and read all results. limited: the last one by script_limit(). */
static int script_flush(struct mysql_db *s, struct mysql_result *a, bool limited, struct fw_err *err)
{
	int rc;

	if (!s->script.len && !s->script.rc && !s->late.rc)
		return 0;
	rc = script_send(s, err);
	if (rc || !limited)
		return rc ? rc : script_read(s, a, err);
	mysql_limit_begin(s);
	rc = script_read(s, a, err);
	mysql_limit_end(s);
	return rc;
}

static int script_flush_all(struct mysql_db *s, struct fw_err *err)
{
	struct mysql_result a = {0};
	int rc = script_flush(s, &a, false, err);

	mysql_free_result(a.rows);
	return rc;
}

/*
 * Start a statement behind the collected ones. If these are too long they are sent first; their
 * error is kept in s->late.
 */
static void script_separate(struct mysql_db *s)
{
	if (s->script.len > script_max(s) && !s->late.rc)
		(void)script_flush_all(s, &s->late);
	if (s->script.len)
		fw_buf_addc(&s->script, ';');
}

static int mysql_rows_show(const struct mysql_db *s, MYSQL_RES *rows, sql_row_fn *fn, void *ctx, struct fw_err *err)
{
	bool is_broken;
	struct mysql_row row = {.row = {s->sql.dialect, rows ? (int)mysql_num_fields(rows) : 0, &is_broken}};
	int rc = 0;

	while (!rc && rows && fn && (row.at = mysql_fetch_row(rows)) != NULL) {
		row.len = mysql_fetch_lengths(rows);
		rc = sql_row_show(&s->sql, &row.row, fn, ctx, err);
	}
	return rc;
}

/* The server ends what follows when the request's time is over; 5 ms: by our clock too. */
static void script_limit(struct mysql_db *s, const struct fw_work_limit *l)
{
	long long left_ms = FW_MAX(l->until_ms - fw_mono_ms(), (int64_t)0) + 5;

	if (s->mysql)
		fw_buf_addf(&s->script, "SET SESSION max_execution_time = %lld;", left_ms);
	else
		fw_buf_addf(&s->script, "SET STATEMENT max_statement_time = %lld.%03lld FOR ", left_ms / 1000,
			left_ms % 1000);
}

static int statement_ask(struct mysql_db *s, const struct mysql_statement *k, const struct sql_value *v, sql_row_fn *fn,
	void *ctx, int64_t *changed, struct fw_err *err)
{
	bool limited = fn && s->sql.store.limit;
	struct mysql_result a = {0};
	int rc;

	assert(v || !k->mark_n);
	script_separate(s);
	if (limited)
		script_limit(s, s->sql.store.limit);
	statement_put(&s->script, k, 0, k->len, v);
	if (!fn && !changed)
		return 0;
	rc = script_flush(s, &a, limited, err);
	rc = rc ? rc : mysql_rows_show(s, a.rows, fn, ctx, err);
	if (changed)
		*changed = rc ? 0 : a.written;
	mysql_free_result(a.rows);
	return rc;
}

static int mysql_db_ask(struct sql *sql, const char *text, const struct sql_value *v, size_t n, sql_row_fn *fn,
	void *ctx, int64_t *changed, struct fw_err *err)
{
	struct mysql_statement *k;
	int rc = statement_find(mysql_db(sql), &(struct sql_text){text, NULL}, false, &k, err);

	(void)n;
	return rc ? rc : statement_ask(mysql_db(sql), k, v, fn, ctx, changed, err);
}

static int each_select(struct mysql_db *s, const struct sql_text *t, const struct sql_value *v, size_t n, size_t rows,
	sql_row_fn *fn, void *ctx, struct fw_err *err)
{
	struct fw_buf json = FW_BUF_INIT(0);
	struct mysql_statement *k;
	int rc = statement_find(s, t, true, &k, err);

	rows_json_put(&json, v, n, rows);
	if (!rc && json.rc)
		rc = fw_no_memory(err);
	rc = rc ? rc : statement_ask(s, k, &SQL_TEXT(fw_buf_str(&json)), fn, ctx, NULL, err);
	fw_buf_finish(&json);
	return rc;
}

/* ---- many rows as text ----------------------------------------------------------------------- */

/* Appends rows to the script, up to script_max(). Returns how many. */
static size_t rows_put(
	struct mysql_db *s, const struct mysql_statement *k, const struct sql_value *v, size_t n, size_t rows)
{
	size_t done = 0;

	assert(rows);
	script_separate(s);
	fw_buf_add(&s->script, k->text, k->row_from);
	do {
		if (done)
			fw_buf_addc(&s->script, k->between);
		statement_put(&s->script, k, k->row_from, k->row_to, v + done * n);
	} while (++done < rows && s->script.len < script_max(s));
	fw_buf_add(&s->script, k->text + k->row_to, k->len - k->row_to);
	return done;
}

static int each_text(struct mysql_db *s, const struct mysql_statement *k, const struct sql_value *v, size_t n,
	size_t rows, struct fw_err *err)
{
	int rc = 0;

	for (size_t at = 0, done; !rc && at < rows; at += done) {
		done = rows_put(s, k, v + at * n, n, rows - at);
		if (at + done < rows)
			rc = script_flush_all(s, err);
	}
	return rc;
}

/* ---- many rows as arrays --------------------------------------------------------------------- */

union column_value {
	int64_t number;
	const void *bytes;
};

struct mysql_column {
	union column_value *value;
	unsigned long *len;
	char *state;
};

static int stmt_prepare(struct mysql_db *s, struct mysql_statement *k, struct fw_err *err)
{
	struct fw_buf b = FW_BUF_INIT(0);
	int rc = 0;

	if (k->stmt)
		return 0;
	statement_put(&b, k, 0, k->len, NULL);
	k->stmt = b.rc ? NULL : mysql_stmt_init(s->c);
	if (!k->stmt)
		rc = fw_no_memory(err);
	else if (mysql_stmt_prepare(k->stmt, b.p, b.len))
		rc = mysql_stmt_failed(s, k->stmt, "preparing", err);
	fw_buf_finish(&b);
	return rc;
}

/* One column of some rows, as the library takes it. a: memory for repaired texts. */
static bool column_fill(struct mysql_column *c, const struct sql_value *v, size_t step, size_t rows, struct fw_arena *a)
{
	c->value = fw_arena_mul(a, rows, sizeof(*c->value), 0);
	c->len = fw_arena_mul(a, rows, sizeof(*c->len), 0);
	c->state = fw_arena_alloc(a, rows);
	for (size_t i = 0; !a->failed && i < rows; i++, v += step) {
		struct fw_str bytes = v->s;

		c->state[i] = sql_is_null(v) ? STMT_INDICATOR_NULL : STMT_INDICATOR_NONE;
		if (v->type == SQL_TYPE_INT) {
			c->value[i].number = v->i;
			c->len[i] = sizeof(v->i);
			continue;
		}
		if (v->type == SQL_TYPE_TEXT && bytes.p && fw_utf8_valid(bytes.p, bytes.len) != bytes.len) {
			struct fw_buf mended = FW_BUF_INIT(0);

			mysql_text_put(&mended, bytes, false);
			bytes = fw_arena_str(a, fw_buf_str(&mended));
			a->failed |= mended.rc != 0;
			fw_buf_finish(&mended);
		}
		c->value[i].bytes = bytes.p;
		c->len[i] = bytes.len;
	}
	return !a->failed;
}

static enum enum_field_types column_type(char letter)
{
	return letter == 'i' ? MYSQL_TYPE_LONGLONG : letter == 'b' ? MYSQL_TYPE_BLOB : MYSQL_TYPE_STRING;
}

static int array_execute(struct mysql_db *s, struct mysql_statement *k, const struct sql_value *v, size_t n,
	size_t rows, struct fw_arena *a, struct fw_err *err)
{
	struct mysql_column *column = fw_arena_calloc(a, n, sizeof(*column));
	MYSQL_BIND *bind = fw_arena_calloc(a, k->mark_n + 1, sizeof(*bind));
	unsigned count = (unsigned)rows;
	char letter = 'i';

	for (size_t i = 0; column && i < n; i++) {
		if (!column_fill(&column[i], v + i, n, rows, a))
			break;
	}
	if (a->failed || !column || !bind)
		return fw_no_memory(err);
	for (size_t i = 0; i < k->mark_n; i++) {
		const struct mysql_column *c = &column[k->mark[i].value];

		(void)sql_column(&k->of, k->mark[i].value, &letter);
		bind[i] = (MYSQL_BIND){.buffer_type = column_type(letter), .buffer = c->value, .length = c->len};
		bind[i].u.indicator = c->state;
	}
	if (mysql_stmt_attr_set(k->stmt, STMT_ATTR_ARRAY_SIZE, &count) || mysql_stmt_bind_param(k->stmt, bind) ||
		mysql_stmt_execute(k->stmt))
		return mysql_stmt_failed(s, k->stmt, "writing", err);
	return 0;
}

static size_t mysql_row_bytes(const struct sql_value *v, size_t n)
{
	size_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += v[i].type == SQL_TYPE_INT ? 9 : v[i].s.len + 10;
	return bytes;
}

static int array_send(struct mysql_db *s, struct mysql_statement *k, const struct sql_value *v, size_t n, size_t rows,
	struct fw_err *err)
{
	struct fw_arena a;
	int rc = script_flush_all(s, err);

	assert(s->arrays);
	rc = rc ? rc : stmt_prepare(s, k, err);
	fw_arena_init(&a, 0);
	for (size_t at = 0, done = 0; !rc && at < rows; at += done) {
		size_t bytes = mysql_row_bytes(v + at * n, n);

		for (done = 1; at + done < rows && bytes < script_max(s); done++)
			bytes += mysql_row_bytes(v + (at + done) * n, n);
		if (bytes >= s->packet_max)
			rc = mysql_too_large(s, err); /* a longer packet would end the connection */
		rc = rc ? rc : array_execute(s, k, v + at * n, n, done, &a, err);
		fw_arena_reset(&a, (size_t)1 << 20);
	}
	fw_arena_finish(&a);
	if (rc && k->stmt) { /* the next call prepares it again */
		mysql_stmt_close(k->stmt);
		k->stmt = NULL;
	}
	return rc;
}

static int mysql_db_each(struct sql *sql, const struct sql_text *t, const struct sql_value *v, size_t n, size_t rows,
	sql_row_fn *fn, void *ctx, struct fw_err *err)
{
	struct mysql_db *s = mysql_db(sql);
	struct mysql_statement *k;
	int rc = fn ? 0 : statement_find(s, t, false, &k, err);

	if (fn || rc)
		return rc ? rc : each_select(s, t, v, n, rows, fn, ctx, err);
	return !s->arrays || rows < ARRAY_MIN ? each_text(s, k, v, n, rows, err) : array_send(s, k, v, n, rows, err);
}

/* ---- transactions ---------------------------------------------------------------------------- */

/*
 * Runs a text as it is, except that statements which create something skip what exists. CREATE
 * TABLE is a transaction of its own, so a kill may leave some tables, and the next process creates
 * the rest.
 */
static int mysql_db_script(struct sql *sql, const char *text, struct fw_err *err)
{
	static const struct {
		const char *from, *to;
	} AGAIN[] = {{"CREATE TABLE ", "CREATE TABLE IF NOT EXISTS "}, {"CREATE VIEW ", "CREATE OR REPLACE VIEW "},
		{"INSERT INTO ", "INSERT IGNORE INTO "}};
	struct mysql_db *s = mysql_db(sql);
	int rc = script_flush_all(s, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < FW_N(AGAIN); i++) {
		if (fw_str_starts(fw_str(text), fw_str(AGAIN[i].from))) {
			fw_buf_adds(&s->script, AGAIN[i].to);
			text += strlen(AGAIN[i].from);
			break;
		}
	}
	fw_buf_adds(&s->script, text);
	rc = script_flush_all(s, err);
	return rc && (mysql_errno(s->c) == ER_DUP_KEYNAME || mysql_errno(s->c) == ER_DUP_FIELDNAME) ? 0 : rc;
}

static int mysql_db_begin(struct sql *sql, struct fw_err *err)
{
	struct mysql_db *s = mysql_db(sql);

	if (sql->read_only)
		return fw_err_set(err, FW_EINVAL, "%s: opened for reading only", sql->name);
	fw_buf_reset(&s->script);
	s->late.rc = 0;
	s->own_change = 0;
	fw_buf_adds(&s->script, "START TRANSACTION");
	return 0;
}

static void mysql_db_rollback(struct sql *sql)
{
	struct mysql_db *s = mysql_db(sql);

	fw_buf_reset(&s->script);
	s->late.rc = 0;
	s->own_change = 0;
	/*
	 * the error before the rollback is the one to report; a broken connection rolls back by
	 * itself
	 */
	(void)mysql_query(s->c, "ROLLBACK");
}

static int mysql_db_commit(struct sql *sql, struct fw_err *err)
{
	struct mysql_db *s = mysql_db(sql);
	int rc;

	script_separate(s);
	fw_buf_adds(&s->script, "COMMIT");
	rc = script_flush_all(s, err);
	if (rc)
		mysql_db_rollback(sql);
	else if (s->own_change && s->own_change == s->changes + 1)
		s->changes = s->own_change; /* no other process changed it in between */
	return rc;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static const struct mysql_row *mysql_row_of(const struct sql_row *row)
{
	return (const struct mysql_row *)row; /* row comes first */
}

static bool mysql_db_get_null(const struct sql_row *row, int column)
{
	return !mysql_row_of(row)->at[column];
}

static int64_t mysql_db_get_int(const struct sql_row *row, int column)
{
	const char *p = mysql_row_of(row)->at[column];
	bool negative = p && *p == '-';
	uint64_t v = 0;

	if (!p)
		return 0;
	*row->is_broken |= !fw_is_digit((unsigned char)p[negative]);
	for (p += negative; fw_is_digit((unsigned char)*p); p++)
		v = v * 10 + (uint64_t)(*p - '0');
	return (int64_t)(negative ? 0 - v : v);
}

static struct fw_str mysql_db_get_str(const struct sql_row *row, int column)
{
	const struct mysql_row *r = mysql_row_of(row);

	return r->at[column] ? (struct fw_str){r->at[column], r->len[column]} : FW_STR_NONE;
}

/* ---- the dialect ----------------------------------------------------------------------------- */

static int mysql_db_size(struct sql *sql, int64_t *bytes, struct fw_err *err)
{
	return sql_query_int(sql,
		"SELECT coalesce(sum(data_length + index_length), 0) FROM information_schema.tables"
		" WHERE table_schema = database()",
		SQL_NONE, 0, bytes, err);
}

#define ENGINE "ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
/*
 * Otherwise a view's text gets the collation of the connection that created it, and cannot be
 * compared with literals of other connections.
 */
#define TEXT(x) "((" x ") COLLATE utf8mb4_bin)"
/*
 * Members of an array of texts, without JSON_TABLE: it would put the name of the database into each
 * dump of the view, so the dump could not be restored under another name.
 */
#define TAGS "json_extract($1, '$.tags')"

static const struct sql_fragment MYSQL_FRAGMENT[] = {
	{"now", "CAST(unix_timestamp(sysdate(3)) * 1000 AS SIGNED)"},
	/* a word since MariaDB 12; super_read_only implies it. innodb_read_only: on shared disks */
	{"readonly", "(CONCAT(@@read_only) NOT IN ('0', 'OFF') OR @@innodb_read_only)"},
	{"last", "last_insert_id()"},
	{"skip", "FOR UPDATE SKIP LOCKED"},
	{"share", "LOCK IN SHARE MODE"},
	{"update", "FOR UPDATE"},
	{"upsert", "ON DUPLICATE KEY UPDATE"},
	{"new", "VALUES($1)"},
	{"keep", "ON DUPLICATE KEY UPDATE $2 = IF($=, $2, NULL)"},
	{"greatest", "greatest"},
	{"rows_of", "count(CASE WHEN $1 THEN 1 END)"},
	{"sum", "coalesce(sum($1), 0)"},
	{"behind", "($1 > ?1 OR ($1 = ?1 AND $2 > ?2))"},
	{"head", "left($1, 1048576)"},
	{"octets", "length($1)"},
	{"waiting", "(SELECT count(*) FROM (SELECT 1 FROM entries_changed LIMIT ?1) b)"},
	{"found",
		"e.id IN (SELECT i.entry_id FROM JSON_TABLE(?1, '$[*]' COLUMNS (doc BIGINT PATH '$')) j"
		" JOIN entries_indexed i ON i.doc = j.doc)"},
	{"among", "$1 IN (SELECT j.id FROM JSON_TABLE($2, '$[*]' COLUMNS (id BIGINT PATH '$')) j)"},
	{"iso",
		TEXT("concat(left(date_format(date_add('1970-01-01', INTERVAL ($1) * 1000 MICROSECOND), "
		     "'%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z')")},
	{"raw", "CAST($1 AS BINARY)"},
	{"words", TEXT("$1")},
	{"ms", "($1) DIV 1000"},
	{"shown", "concat($1)"}, /* the server would write through a column that is no expression */
	{"count", "($1 + 0)"},
	{"nth",
		"CAST(json_extract(concat('[', replace(CONVERT($1 USING utf8mb4), ' ', ','), ']'), '$[$2]') AS"
		" SIGNED)"},
	{"utf8", TEXT("CONVERT($1 USING utf8mb4)")},
	{"shard", "($1) DIV 9007199254740992"},
	{"indexed",
		"(SELECT count(*) FROM information_schema.statistics WHERE table_schema = database()"
		" AND index_name = '$1')"},
	{"of", "ON $1"},
	{"jsonb", "concat($1)"},
	{"tags",
		TEXT("nullif(replace(replace(substr(" TAGS ", 3, greatest(char_length(" TAGS
		     ") - 4, 0)), '\", \"', ', '), '\",\"', ', '), '')")},
	{"pk", "BIGINT NOT NULL PRIMARY KEY"},
	{"id", "BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY"},
	{"serial", "BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY"},
	{"text", "MEDIUMTEXT"},
	{"long", "LONGTEXT"},
	{"bytes", "MEDIUMBLOB"},
	{"key16", "BINARY(16)"},
	{"json", "LONGTEXT"},
	{"name", "VARCHAR(255)"},
	{"namebytes", "VARBINARY(255)"},
	{"clustered", ENGINE},
	{"filled", ENGINE},
	{"table", ENGINE},
	{NULL, NULL},
};

const struct sql_dialect mysql_dialect = {
	.fragment = MYSQL_FRAGMENT,
	.script = mysql_db_script,
	.begin = mysql_db_begin,
	.commit = mysql_db_commit,
	.rollback = mysql_db_rollback,
	.query = mysql_db_ask,
	.query_rows = mysql_db_each,
	.get_null = mysql_db_get_null,
	.get_int = mysql_db_get_int,
	.get_str = mysql_db_get_str,
	.notify = mysql_notify,
	.size = mysql_db_size,
	.search_changed = mysql_search_changed,
	.search_step = mysql_search_step,
	.search_unindexed = sql_search_unindexed,
	.search_begin = mysql_search_begin,
};
