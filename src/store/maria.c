/* SPDX-License-Identifier: ISC */
/*
 * The MariaDB and MySQL driver: one database, any number of processes on any number of machines.
 *
 * This file opens and closes, sends statements, begins and ends transactions and turns the server's codes into ours. What is
 * stored where: maria_schema.c. Standing in line: maria_line.c, maria_host.c. Lending: maria_wheel.c, maria_loans.c. Outcomes:
 * maria_commit.c. Entries: maria_entries.c. Words: maria_search.c. What people look at: maria_window.c. Copies: maria_load.c.
 *
 * Statements are gathered in m->sql and travel together: a claim is four round trips, a commit two, however many feeds they
 * carry. All work on sets of rows. Values are written into the text here, by type; what the server parses is never more than
 * script_max() bytes.
 *
 * Transactions are READ COMMITTED, so that a lock is on a row and never on a gap. Rows are locked in one order: loans,
 * wheel by feed, hosts by number, and then what only the host's lock guards. The head of the queue is taken with SKIP
 * LOCKED. Where a deadlock happens all the same (a host that is new to two at once), the transaction is made again.
 *
 * The connection is not carried across fork(); one thread at a time.
 */
#include <errmsg.h>
#include <mysqld_error.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "store/dsn.h"
#include "store/maria.h"

#define CONNECT_TIMEOUT_S 10
#define SILENCE_S 300           /* of the server, before the connection counts as broken */
#define SCRIPT_MAX ((size_t)1 << 20)
#define TRIES 8                 /* of a transaction that meets deadlocks */
#define CLOCK_MS 30000          /* the server's clock is asked for this often */
#define COUNTERS 64             /* rows that share the counting, so that nobody waits */
#define MARIADB_MIN 100600      /* SKIP LOCKED */
#define MYSQL_MIN 80013
/* codes that mysqld_error.h of one or the other lacks */
#define ER_STATEMENT_TIMEOUT_MARIADB 1969
#define ER_CONNECTION_KILLED_MARIADB 1927
#define ER_QUERY_TIMEOUT_MYSQL 3024
#define ER_READ_ONLY_MODE_MYSQL 1836
#define ER_DISK_FULL_NOWAIT_MYSQL 3019

/* ---- errors --------------------------------------------------------------------------------------------------------- */

int mr_no_memory(struct maria *m, struct fw_err *err)
{
	return fw_err_set(err, FW_ENOMEM, "%s: out of memory", m->name);
}

static int connection_error(struct maria *m, unsigned code, const char *msg, struct fw_err *err)
{
	switch (code) {
	case CR_SERVER_GONE_ERROR:
	case CR_SERVER_LOST:
	case CR_SERVER_LOST_EXTENDED:
	case ER_CONNECTION_KILLED_MARIADB:
	case ER_SERVER_SHUTDOWN:
	case ER_NEW_ABORTING_CONNECTION:
	case ER_ABORTING_CONNECTION:
	case ER_FORCING_CLOSE:
	case ER_NORMAL_SHUTDOWN:
	case ER_NET_READ_ERROR:
	case ER_NET_READ_INTERRUPTED:
	case ER_NET_ERROR_ON_WRITE:
	case ER_NET_WRITE_INTERRUPTED:
	case CR_MALFORMED_PACKET:
		return fw_err_set(err, FW_EIO, "%s: the connection broke (%s): it is made again; look whether the server runs", m->name, msg);
	case CR_CONN_HOST_ERROR:
	case CR_CONNECTION_ERROR:
	case CR_UNKNOWN_HOST:
	case CR_IPSOCK_ERROR:
	case CR_SOCKET_CREATE_ERROR:
		return fw_err_set(err, FW_EIO, "%s: no server answers (%s): start it, or check host, port and socket", m->name, msg);
	case CR_SSL_CONNECTION_ERROR:
		return fw_err_set(err, FW_EINVAL, "%s: no TLS (%s): check ssl_ca, ssl_cert, ssl_key and the server's", m->name, msg);
	case CR_OUT_OF_MEMORY:
		return mr_no_memory(m, err);
	default:
		return 0;
	}
}

/* For a while: the same may succeed later. */
static int passing_error(struct maria *m, unsigned code, const char *msg, struct fw_err *err)
{
	switch (code) {
	case ER_LOCK_WAIT_TIMEOUT:
		return fw_err_set(err, FW_EAGAIN, "%s: locked by another transaction for more than %lld ms: try again; "
			"SHOW ENGINE INNODB STATUS names it", m->name, (long long)m->busy_timeout_ms);
	case ER_LOCK_DEADLOCK:
	case ER_CHECKREAD:
		return fw_err_set(err, FW_EAGAIN, "%s: %d times in a row others were in the way (%s): try again", m->name, TRIES, msg);
	case ER_CON_COUNT_ERROR:
	case ER_TOO_MANY_USER_CONNECTIONS:
	case ER_USER_LIMIT_REACHED:
		return fw_err_set(err, FW_EAGAIN, "%s: too many connections (%s): raise max_connections, or run fewer workers", m->name, msg);
	case ER_DISK_FULL:
	case ER_RECORD_FILE_FULL:
	case ER_ERROR_ON_WRITE:
	case ER_GET_ERRNO:
	case ER_DISK_FULL_NOWAIT_MYSQL:
		return fw_err_set(err, FW_EAGAIN, "%s: its disk is full or failed (%s): free some space; nothing stored is lost", m->name, msg);
	case ER_OPTION_PREVENTS_STATEMENT:
	case ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION:
	case ER_READ_ONLY_MODE_MYSQL:
		return fw_err_set(err, FW_EAGAIN, "%s: it may not be written now (%s): wait for the fail-over, or set read_only off", m->name, msg);
	case ER_OUTOFMEMORY:
	case ER_OUT_OF_SORTMEMORY:
	case ER_OUT_OF_RESOURCES:
	case ER_LOCK_TABLE_FULL:
		return fw_err_set(err, FW_EAGAIN, "%s: the server is out of memory (%s): try again, or give it more", m->name, msg);
	case ER_STATEMENT_TIMEOUT_MARIADB:
	case ER_QUERY_TIMEOUT_MYSQL:
	case ER_QUERY_INTERRUPTED:
		return fw_err_set(err, FW_EAGAIN, "%s: a statement was ended (%s): try again, or raise max_statement_time", m->name, msg);
	default:
		return 0;
	}
}

static int too_large(struct maria *m, struct fw_err *err)
{
	return fw_err_set(err, FW_EINVAL, "%s: a document is larger than the server takes (%zu bytes): raise max_allowed_packet", m->name,
		m->packet_max);
}

int mr_error(struct maria *m, const char *doing, struct fw_err *err)
{
	unsigned code = mysql_errno(m->db);
	const char *msg = mysql_error(m->db);

	m->code = code;
	if (connection_error(m, code, msg, err) || passing_error(m, code, msg, err))
		return err->rc;
	switch (code) {
	case ER_ACCESS_DENIED_ERROR:
	case ER_DBACCESS_DENIED_ERROR:
	case ER_TABLEACCESS_DENIED_ERROR:
	case ER_SPECIFIC_ACCESS_DENIED_ERROR:
		return fw_err_set(err, FW_EINVAL, "%s: refused (%s): check user and password, and GRANT ALL ON `%s`.*", m->name, msg,
			m->schema ? m->schema : "...");
	case ER_BAD_DB_ERROR:
		return fw_err_set(err, FW_ENOTFOUND, "%s: no such database: begin with `feedwheel add URL`, or name another", m->name);
	case ER_NET_PACKET_TOO_LARGE:
	case CR_NET_PACKET_TOO_LARGE:
		return too_large(m, err);
	case CR_COMMANDS_OUT_OF_SYNC:
		return fw_err_set(err, FW_EINVAL, "%s: called again from a callback of its own", m->name);
	default:
		return fw_err_set(err, FW_EINVAL, "%s: %s: %s (%u)", m->name, doing, msg, code);
	}
}

/* ---- statements ------------------------------------------------------------------------------------------------------- */

static size_t script_max(const struct maria *m)
{
	return FW_MIN(SCRIPT_MAX, m->packet_max / 2);
}

void mr_value_int(struct maria *m, int64_t v)
{
	char digits[24], *at = digits + sizeof(digits);
	uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;

	do
		*--at = (char)('0' + u % 10);
	while (u /= 10);
	if (v < 0)
		*--at = '-';
	fw_buf_add(&m->sql, at, (size_t)(digits + sizeof(digits) - at));
}

/* Valid UTF-8 within quotes. */
static void escape(struct fw_buf *b, const char *p, size_t len)
{
	static const char special[256] = {[0] = '0', ['\''] = '\'', ['\\'] = '\\', ['\n'] = 'n', ['\r'] = 'r', [26] = 'Z'};
	size_t from = 0;

	for (size_t i = 0; i < len; i++) {
		char c = special[(unsigned char)p[i]];

		if (!c)
			continue;
		fw_buf_add(b, p + from, i - from);
		fw_buf_addc(b, '\\');
		fw_buf_addc(b, c);
		from = i + 1;
	}
	fw_buf_add(b, p + from, len - from);
}

void mr_value_text(struct maria *m, struct fw_str s)
{
	struct fw_buf *b = &m->sql;

	if (!s.p) {
		fw_buf_adds(b, "NULL");
		return;
	}
	fw_buf_addc(b, '\'');
	for (;;) { /* the column takes UTF-8 only: what is none is replaced, byte by byte */
		size_t n = fw_utf8_valid(s.p, s.len);

		escape(b, s.p, n);
		if (n == s.len)
			break;
		fw_buf_addcp(b, 0xfffd);
		s = (struct fw_str){s.p + n + 1, s.len - n - 1};
	}
	fw_buf_addc(b, '\'');
}

void mr_value_bytes(struct maria *m, struct fw_str s)
{
	static const char hex[] = "0123456789abcdef";
	char *p;

	if (!s.p) {
		fw_buf_adds(&m->sql, "NULL");
		return;
	}
	fw_buf_adds(&m->sql, "x'");
	p = fw_buf_room(&m->sql, s.len * 2);
	for (size_t i = 0; p && i < s.len; i++) {
		*p++ = hex[(unsigned char)s.p[i] >> 4];
		*p++ = hex[(unsigned char)s.p[i] & 15];
	}
	m->sql.len += p ? s.len * 2 : 0;
	fw_buf_addc(&m->sql, '\'');
}

void mr_value_field(struct maria *m, const struct fw_field *f, const void *of)
{
	if (f->type == FW_FIELD_TEXT)
		mr_value_text(m, fw_field_str(f, of));
	else if (f->type == FW_FIELD_BYTES)
		mr_value_bytes(m, fw_field_str(f, of));
	else if (f->type == FW_FIELD_DATE && fw_field_int(f, of) == FW_NO_DATE)
		fw_buf_adds(&m->sql, "NULL");
	else
		mr_value_int(m, fw_field_int(f, of));
}

static void value(struct maria *m, char type, va_list *ap)
{
	int64_t v;

	switch (type) {
	case 's':
		mr_value_text(m, va_arg(*ap, struct fw_str));
		break;
	case 'b':
		mr_value_bytes(m, va_arg(*ap, struct fw_str));
		break;
	default: /* i, d */
		v = va_arg(*ap, int64_t);
		if (type == 'd' && v == FW_NO_DATE)
			fw_buf_adds(&m->sql, "NULL");
		else
			mr_value_int(m, v);
		break;
	}
}

/* A part is sent before the whole becomes too large for the server. Its failure is told with the rest. */
static void part_send(struct maria *m)
{
	if (m->sql.len > script_max(m) && !m->late.rc)
		(void)mr_flush(m, &m->late);
}

static void statement(struct maria *m, const char *sql, const char *fmt, va_list *ap)
{
	const char *mark;

	part_send(m);
	if (m->sql.len)
		fw_buf_addc(&m->sql, ';');
	for (; (mark = strchr(sql, '?')) != NULL; sql = mark + 1) {
		fw_buf_add(&m->sql, sql, (size_t)(mark - sql));
		value(m, *fmt++, ap);
	}
	fw_buf_adds(&m->sql, sql);
}

void mr_put(struct maria *m, const char *sql, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	statement(m, sql, fmt, &ap);
	va_end(ap);
}

void mr_rows_next(struct maria *m, struct mr_rows *r)
{
	if (r->n && !r->whole && m->sql.len - r->from > script_max(m))
		mr_rows_end(m, r);
	if (!r->n) {
		part_send(m);
		if (m->sql.len)
			fw_buf_addc(&m->sql, ';');
		r->from = m->sql.len;
		fw_buf_adds(&m->sql, r->head);
	}
	fw_buf_adds(&m->sql, r->n++ ? "," : "");
	fw_buf_addc(&m->sql, r->json ? '[' : '(');
}

void mr_rows_add(struct maria *m, struct mr_rows *r, const char *fmt, ...)
{
	va_list ap;

	mr_rows_next(m, r);
	va_start(ap, fmt);
	for (bool first = true; *fmt; fmt++, first = false) {
		if (!first)
			fw_buf_addc(&m->sql, ',');
		value(m, *fmt, &ap);
	}
	va_end(ap);
	fw_buf_addc(&m->sql, r->json ? ']' : ')');
}

void mr_rows_end(struct maria *m, struct mr_rows *r)
{
	if (r->n && r->tail)
		fw_buf_adds(&m->sql, r->tail);
	r->n = 0;
}

void mr_in(struct maria *m, const char *column, const int64_t *id, size_t n)
{
	fw_buf_adds(&m->sql, column);
	fw_buf_adds(&m->sql, " IN (");
	for (size_t i = 0; i < n; i++) {
		if (i)
			fw_buf_addc(&m->sql, ',');
		mr_value_int(m, id[i]);
	}
	fw_buf_addc(&m->sql, ')');
}

/* Send what was gathered. */
static int script_send(struct maria *m, struct fw_err *err)
{
	int rc = 0;

	if (m->late.rc) {
		*err = m->late;
		m->late.rc = 0;
		rc = err->rc;
	} else if (m->sql.rc) {
		rc = mr_no_memory(m, err);
	} else if (m->sql.len >= m->packet_max) {
		rc = too_large(m, err); /* the server would hang up */
	} else if (mysql_real_query(m->db, m->sql.p, m->sql.len)) {
		rc = mr_error(m, "sending statements", err);
	}
	fw_buf_reset(&m->sql);
	return rc;
}

/* Take all results; the last set of rows stays in *last. */
static int results_take(struct maria *m, MYSQL_RES **last, struct fw_err *err)
{
	int more;

	do {
		MYSQL_RES *res = mysql_store_result(m->db);

		if (res) {
			mysql_free_result(*last);
			*last = res;
		} else if (mysql_errno(m->db)) {
			return mr_error(m, "reading", err);
		}
		more = mysql_next_result(m->db);
	} while (more == 0);
	return more > 0 ? mr_error(m, "writing", err) : 0;
}

int mr_answer(struct maria *m, struct mr_res *out, struct fw_err *err)
{
	int rc = script_send(m, err);

	*out = (struct mr_res){NULL, NULL, NULL};
	rc = rc ? rc : results_take(m, &out->res, err);
	if (rc || !out->res)
		mr_done(out);
	return rc;
}

/* The last statement of the script is a SELECT; its rows come as they are sent. */
int mr_stream(struct maria *m, struct mr_res *out, struct fw_err *err)
{
	int rc = script_send(m, err);

	*out = (struct mr_res){NULL, NULL, NULL};
	while (!rc && !out->res) {
		out->res = mysql_use_result(m->db);
		if (!out->res && mysql_errno(m->db))
			rc = mr_error(m, "listing", err);
		else if (!out->res && mysql_next_result(m->db) != 0)
			rc = mr_error(m, "listing", err);
	}
	return rc;
}

int mr_flush(struct maria *m, struct fw_err *err)
{
	struct mr_res r;
	int rc;

	if (!m->sql.len && !m->sql.rc && !m->late.rc)
		return 0;
	rc = mr_answer(m, &r, err);
	mr_done(&r);
	return rc;
}

int mr_ask(struct maria *m, struct mr_res *out, struct fw_err *err, const char *sql, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	statement(m, sql, fmt, &ap);
	va_end(ap);
	return mr_answer(m, out, err);
}

bool mr_row(struct mr_res *r)
{
	r->row = r->res ? mysql_fetch_row(r->res) : NULL;
	if (r->row)
		r->len = mysql_fetch_lengths(r->res);
	else
		mr_done(r);
	return r->row != NULL;
}

void mr_done(struct mr_res *r)
{
	mysql_free_result(r->res);
	*r = (struct mr_res){NULL, NULL, NULL};
}

int64_t mr_int(const struct mr_res *r, unsigned col)
{
	const char *p = r->row[col];
	bool negative = p && *p == '-';
	uint64_t v = 0;

	if (!p)
		return 0;
	for (p += negative; fw_is_digit((unsigned char)*p); p++)
		v = v * 10 + (uint64_t)(*p - '0');
	return (int64_t)(negative ? 0 - v : v);
}

int64_t mr_date(const struct mr_res *r, unsigned col)
{
	return r->row[col] ? mr_int(r, col) : FW_NO_DATE;
}

struct fw_str mr_str(const struct mr_res *r, unsigned col)
{
	return r->row[col] ? (struct fw_str){r->row[col], r->len[col]} : FW_STR_NONE;
}

void mr_field_read(const struct mr_res *r, unsigned col, const struct fw_field *f, void *of)
{
	if (fw_field_is_text(f))
		fw_field_str_set(f, of, mr_str(r, col));
	else
		fw_field_int_set(f, of, f->type == FW_FIELD_DATE ? mr_date(r, col) : mr_int(r, col));
}

int mr_number(struct maria *m, int64_t none, int64_t *out, struct fw_err *err, const char *sql, const char *fmt, ...)
{
	struct mr_res r;
	va_list ap;
	int rc;

	*out = none;
	va_start(ap, fmt);
	statement(m, sql, fmt, &ap);
	va_end(ap);
	rc = mr_answer(m, &r, err);
	if (!rc && mr_row(&r) && r.row[0])
		*out = mr_int(&r, 0);
	mr_done(&r);
	return rc;
}

/* ---- transactions ------------------------------------------------------------------------------------------------------- */

static int begin(struct maria *m, struct fw_err *err)
{
	if (m->read_only)
		return fw_err_set(err, FW_EINVAL, "%s: opened for reading only", m->name);
	fw_buf_reset(&m->sql);
	m->code = 0;
	m->late.rc = 0;
	m->own_change = 0;
	m->entry_d = m->visit_d = 0;
	mr_put(m, "START TRANSACTION", "");
	return 0;
}

static int end(struct maria *m, int rc, struct fw_err *err)
{
	if (!rc && (m->entry_d || m->visit_d))
		mr_put(m, "INSERT INTO counters (slot, entry_n, visit_n) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE"
			" entry_n = entry_n + VALUES(entry_n), visit_n = visit_n + VALUES(visit_n)", "iii",
			MR_INT(mysql_thread_id(m->db) % COUNTERS), m->entry_d, m->visit_d);
	if (!rc) {
		mr_put(m, "COMMIT", "");
		rc = mr_flush(m, err);
	}
	if (rc) {
		fw_buf_reset(&m->sql);
		(void)mysql_query(m->db, "ROLLBACK"); /* rc tells already; a broken connection rolls back by itself */
	} else if (m->own_change && m->own_change == m->changes + 1) {
		m->changes = m->own_change; /* nobody else's in between */
	}
	return rc;
}

static bool again(unsigned code)
{
	return code == ER_LOCK_DEADLOCK || code == ER_CHECKREAD || code == ER_DUP_ENTRY;
}

int mr_transact(struct maria *m, mr_work *work, void *arg, struct fw_err *err)
{
	for (int i = 1;; i++) {
		int rc = begin(m, err);

		if (rc)
			return rc;
		rc = end(m, work(m, arg, err), err);
		if (!rc || !again(m->code) || i == TRIES)
			return rc;
		usleep((useconds_t)((uint64_t)fw_mono_us() * 2654435761u % (1000u << FW_MIN(i, 5)))); /* not all at once */
	}
}

int mr_change(struct maria *m, struct fw_err *err)
{
	return mr_number(m, 0, &m->own_change, err, "UPDATE numbers SET value = LAST_INSERT_ID(value + 1) WHERE name = 'changes';"
		"SELECT LAST_INSERT_ID()", "");
}

int mr_now(struct maria *m, int64_t given_ms, int64_t *now_ms, struct fw_err *err)
{
	int64_t mono = fw_mono_ms(), server;
	int rc;

	*now_ms = given_ms;
	if (given_ms)
		return 0;
	if (!m->clock_at_ms || mono - m->clock_at_ms > CLOCK_MS) {
		rc = mr_number(m, 0, &server, err, "SELECT CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED)", "");
		if (rc)
			return rc;
		m->clock_at_ms = mono;
		m->clock_d_ms = server - mono;
	}
	*now_ms = fw_mono_ms() + m->clock_d_ms;
	return 0;
}

/* ---- life ------------------------------------------------------------------------------------------------------------- */

static void maria_close(struct fw_store *st)
{
	struct maria *m = mr_of(st);

	if (m->db)
		mysql_close(m->db);
	mr_sweep_finish(m);
	fw_buf_finish(&m->sql);
	fw_buf_finish(&m->text);
	free(m->schema);
	free(m);
}

static const char *const options_known[] = {"socket", "connect_timeout", "timeout", "ssl", "ssl_ca", "ssl_cert", "ssl_key",
	"ssl_verify", NULL};

static bool is_on(struct fw_str s)
{
	return fw_str_eq(s, FW_STR("1")) || fw_str_eq(s, FW_STR("yes")) || fw_str_eq(s, FW_STR("on"));
}

static int options_set(struct maria *m, const struct fw_dsn *d, struct fw_err *err)
{
	struct fw_str ca = fw_dsn_option(d, "ssl_ca"), cert = fw_dsn_option(d, "ssl_cert"), key = fw_dsn_option(d, "ssl_key");
	struct fw_str verify = fw_dsn_option(d, "ssl_verify");
	my_bool yes = 1, check = is_on(verify);
	unsigned long packet = 1UL << 30;
	int64_t connect_s, silence_s;
	unsigned c, t;
	int rc = fw_dsn_only(d, options_known, err);

	rc = rc ? rc : fw_dsn_number(d, "connect_timeout", 1, 3600, CONNECT_TIMEOUT_S, &connect_s, err);
	rc = rc ? rc : fw_dsn_number(d, "timeout", 1, 86400, SILENCE_S, &silence_s, err);
	if (rc)
		return rc;
	c = (unsigned)connect_s;
	t = (unsigned)silence_s;
	mysql_optionsv(m->db, MYSQL_OPT_CONNECT_TIMEOUT, &c);
	mysql_optionsv(m->db, MYSQL_OPT_READ_TIMEOUT, &t);
	mysql_optionsv(m->db, MYSQL_OPT_WRITE_TIMEOUT, &t);
	mysql_optionsv(m->db, MYSQL_OPT_MAX_ALLOWED_PACKET, &packet);
	mysql_optionsv(m->db, MYSQL_SET_CHARSET_NAME, "utf8mb4");
	if (is_on(fw_dsn_option(d, "ssl")) || ca.p || cert.p || key.p || check) {
		mysql_ssl_set(m->db, key.p, cert.p, ca.p, NULL, NULL);
		mysql_optionsv(m->db, MYSQL_OPT_SSL_ENFORCE, &yes);
		mysql_optionsv(m->db, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &check);
	}
	return 0;
}

static bool connected(struct maria *m, const struct fw_dsn *d, const char *schema)
{
	return mysql_real_connect(m->db, d->host.p, d->user.p, d->password.p, schema, (unsigned)d->port, fw_dsn_option(d, "socket").p,
		CLIENT_MULTI_STATEMENTS) != NULL;
}

static int connection_open(struct maria *m, const struct fw_dsn *d, bool create, struct fw_err *err)
{
	int rc = options_set(m, d, err);

	if (rc)
		return rc;
	if (connected(m, d, m->schema))
		return 0;
	rc = mr_error(m, "connecting", err);
	if (rc != FW_ENOTFOUND || !create)
		return rc;
	mysql_close(m->db); /* the database is missing: a new one, as far as we may */
	m->db = mysql_init(NULL);
	rc = m->db ? options_set(m, d, err) : mr_no_memory(m, err);
	if (!rc && !connected(m, d, NULL))
		rc = mr_error(m, "connecting", err);
	if (rc)
		return rc;
	fw_buf_addf(&m->sql, "CREATE DATABASE IF NOT EXISTS `%s` CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", m->schema);
	rc = mr_flush(m, err);
	if (!rc && mysql_select_db(m->db, m->schema))
		rc = mr_error(m, "opening", err);
	return rc;
}

static int server_check(struct maria *m, struct fw_err *err)
{
	unsigned long version = mysql_get_server_version(m->db);

	m->mysql = !mariadb_connection(m->db);
	if (version < (m->mysql ? MYSQL_MIN : MARIADB_MIN))
		return fw_err_set(err, FW_EVERSION, "%s: the server is %s: MariaDB 10.6 or MySQL 8.0.13 is the least that will do", m->name,
			mysql_get_server_info(m->db));
	return 0;
}

static int session_set(struct maria *m, struct fw_err *err)
{
	struct mr_res r;
	int rc;

	/* a chain of visits may be long; a long list of numbers is no subquery */
	mr_put(m, m->mysql ? "SET SESSION cte_max_recursion_depth = 4294967295" : "SET SESSION in_predicate_conversion_threshold = 0", "");
	mr_put(m, "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00', autocommit = 1,"
		" innodb_lock_wait_timeout = ?", "i", FW_MAX((m->busy_timeout_ms + 999) / 1000, INT64_C(1)));
	mr_put(m, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "");
	rc = mr_ask(m, &r, err, "SELECT @@max_allowed_packet, @@auto_increment_increment", "");
	if (!rc && mr_row(&r)) {
		m->packet_max = (size_t)mr_int(&r, 0);
		m->step = mr_int(&r, 1);
	}
	mr_done(&r);
	return rc;
}

/* The database's name: the path of the URL. It stands in a statement as it is. */
static int schema_name(struct maria *m, const struct fw_dsn *d, struct fw_err *err)
{
	bool ok = d->path.len > 0 && d->path.len <= 64;

	for (size_t i = 0; i < d->path.len && ok; i++)
		ok = fw_is_alnum((unsigned char)d->path.p[i]) || strchr("_-$", d->path.p[i]) != NULL || (unsigned char)d->path.p[i] >= 0x80;
	if (!ok)
		return fw_err_set(err, FW_EINVAL, "%s: no name of a database behind the host (letters, digits, _, -, $): write for example"
			" mysql://user@host/feedwheel", m->name);
	m->schema = fw_str_dup(d->path);
	return m->schema ? 0 : mr_no_memory(m, err);
}

static int maria_open(const struct fw_store_config *cfg, struct fw_store **out, struct fw_err *err)
{
	struct maria *m = calloc(1, sizeof(*m));
	struct fw_arena a;
	struct fw_dsn d;
	int rc;

	if (!m)
		return fw_err_set(err, FW_ENOMEM, "store: out of memory");
	fw_arena_init(&a, 0);
	m->base.driver = &fw_store_mysql;
	m->read_only = cfg->flags & FW_STORE_READ;
	m->busy_timeout_ms = cfg->busy_timeout_ms;
	m->packet_max = SCRIPT_MAX;
	fw_dsn_show(&m->text, cfg->url);
	(void)fw_str_copy(m->name, sizeof(m->name), fw_buf_str(&m->text));
	m->db = mysql_init(NULL);
	rc = m->db ? fw_dsn_split(&a, cfg->url, &d, err) : mr_no_memory(m, err);
	rc = rc ? rc : schema_name(m, &d, err);
	rc = rc ? rc : connection_open(m, &d, (cfg->flags & FW_STORE_CREATE) && !m->read_only, err);
	rc = rc ? rc : server_check(m, err);
	rc = rc ? rc : session_set(m, err);
	rc = rc ? rc : mr_migrate(m, cfg->flags & FW_STORE_CREATE, cfg->flags & FW_STORE_NO_MIGRATE, err);
	rc = rc ? rc : mr_number(m, 0, &m->changes, err, "SELECT value FROM numbers WHERE name = 'changes'", "");
	fw_arena_finish(&a);
	if (rc) {
		maria_close(&m->base);
		return rc;
	}
	*out = &m->base;
	return 0;
}

static int maria_ping(struct fw_store *st, struct fw_err *err)
{
	int64_t v;

	return mr_number(mr_of(st), 0, &v, err, "SELECT 1", "");
}

static int maria_changed(struct fw_store *st, bool *changed, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	int64_t v;
	int rc = mr_number(m, m->changes, &v, err, "SELECT value FROM numbers WHERE name = 'changes'", "");

	*changed = !rc && v != m->changes;
	m->changes = rc ? m->changes : v;
	return rc;
}

static int maria_clock(struct fw_store *st, int64_t *now_ms, struct fw_err *err)
{
	struct maria *m = mr_of(st);

	m->clock_at_ms = 0; /* asked anew */
	return mr_now(m, 0, now_ms, err);
}

static int maria_inspect(struct fw_store *st, fw_inspect_cb *cb, void *ctx, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	struct mr_res r;
	char text[200];
	int64_t flush;
	int rc = mr_ask(m, &r, err, "SELECT version(), @@innodb_flush_log_at_trx_commit, @@max_allowed_packet, @@innodb_buffer_pool_size", "");

	if (rc || !mr_row(&r))
		return rc;
	cb(ctx, "server", 0, r.row[0], "");
	flush = mr_int(&r, 1);
	(void)fw_snprintf(text, sizeof(text), "innodb_flush_log_at_trx_commit=%lld", (long long)flush);
	if (flush == 1)
		cb(ctx, "durability", 0, text, "");
	else
		cb(ctx, "durability", 1, text, "a crash of the machine takes the last second; set it to 1 in the server's configuration");
	(void)fw_snprintf(text, sizeof(text), "max_allowed_packet=%lld", (long long)mr_int(&r, 2));
	if (mr_int(&r, 2) >= (int64_t)16 << 20)
		cb(ctx, "packet", 0, text, "");
	else
		cb(ctx, "packet", 1, text, "documents larger than a quarter of it may be refused; set it to 64M in the server's configuration");
	(void)fw_snprintf(text, sizeof(text), "innodb_buffer_pool_size=%lld", (long long)mr_int(&r, 3));
	if (mr_int(&r, 3) >= (int64_t)512 << 20)
		cb(ctx, "memory", 0, text, "");
	else
		cb(ctx, "memory", 1, text, "fine for some ten thousand feeds; for more give it half of the server's memory");
	mr_done(&r);
	return 0;
}

/* Each of these lists what should not be; column 0 is a sentence. */
#define IN_LINE "(SELECT feed_id FROM queue UNION ALL SELECT feed_id FROM parked UNION ALL SELECT feed_id FROM leases)"
static const char *const checks[] = {
	"SELECT concat('feed ', w.feed_id, ': active, but neither waiting nor lent') FROM wheel w LEFT JOIN " IN_LINE " x"
	" ON x.feed_id = w.feed_id WHERE w.status = 0 AND x.feed_id IS NULL",
	"SELECT concat('feed ', feed_id, ': in line ', count(*), ' times') FROM " IN_LINE " x GROUP BY feed_id HAVING count(*) > 1",
	"SELECT concat('feed ', x.feed_id, ': waiting, but not active') FROM (SELECT feed_id FROM queue UNION ALL"
	" SELECT feed_id FROM parked) x JOIN wheel w ON w.feed_id = x.feed_id WHERE status <> 0",
	"SELECT concat('feed ', f.id, ': not on the wheel') FROM feeds f LEFT JOIN wheel w ON w.feed_id = f.id WHERE w.feed_id IS NULL",
	"SELECT concat('wheel: no feed ', w.feed_id) FROM wheel w LEFT JOIN feeds f ON f.id = w.feed_id WHERE f.id IS NULL",
	"SELECT concat('claim ', id, ': nothing of it is lent') FROM loans WHERE locate('1', lent) = 0",
	"SELECT concat('claim ', id, ': lists ', json_length(body), ' feeds, and ', length(lent), ' of them as lent or not') FROM loans"
	" WHERE json_length(body) <> length(lent)",
	"SELECT concat('feed ', q.feed_id, ': waits for another time than it is due') FROM queue q JOIN wheel w ON w.feed_id = q.feed_id"
	" WHERE coalesce(q.due_at_ms, wake_at_ms) <> w.due_at_ms",
	"SELECT concat('feed ', q.feed_id, ': put off, but not noted') FROM queue q LEFT JOIN moved v ON v.feed_id = q.feed_id"
	" AND v.wake_at_ms = q.wake_at_ms WHERE q.due_at_ms IS NOT NULL AND v.feed_id IS NULL",
	"SELECT concat('feed ', v.feed_id, ': noted as put off, but it is not') FROM moved v LEFT JOIN queue q ON q.feed_id = v.feed_id"
	" AND q.wake_at_ms = v.wake_at_ms AND q.due_at_ms = v.due_at_ms WHERE q.feed_id IS NULL",
	"SELECT concat('entry ', e.id, ': no feed ', e.feed_id) FROM entries e LEFT JOIN feeds f ON f.id = e.feed_id WHERE f.id IS NULL",
	"SELECT concat('feed ', e.feed_id, ': has ', e.n, ' entries and keys of ', coalesce(k.n, 0)) FROM"
	" (SELECT feed_id, count(*) AS n FROM entries GROUP BY feed_id) e LEFT JOIN (SELECT feed_id, count(*) AS n FROM entry_keys"
	" WHERE entry_id > 0 GROUP BY feed_id) k ON k.feed_id = e.feed_id WHERE coalesce(k.n, 0) <> e.n",
	"SELECT concat('meta: counts ', value, ' entries') FROM meta WHERE name = 'entry_n' AND value <> (SELECT count(*) FROM entries)",
	"SELECT concat('meta: counts ', value, ' visits') FROM meta WHERE name = 'visit_n' AND value <> (SELECT count(*) FROM visits)",
	"SELECT concat('host ', h.name, ': has ', coalesce(x.n, 0), ' feeds, counts ', h.feed_n) FROM hosts h LEFT JOIN"
	" (SELECT host_id, count(*) AS n FROM feeds GROUP BY host_id) x ON x.host_id = h.id WHERE coalesce(x.n, 0) <> h.feed_n",
	"SELECT concat('host ', h.name, ': has ', coalesce(x.n, 0), ' lent, counts ', h.busy_n) FROM hosts h LEFT JOIN"
	" (SELECT host_id, count(*) AS n FROM leases GROUP BY host_id) x ON x.host_id = h.id WHERE coalesce(x.n, 0) <> h.busy_n",
	"SELECT concat('host ', h.name, ': has ', coalesce(x.n, 0), ' parked, counts ', h.parked_n) FROM hosts h LEFT JOIN"
	" (SELECT host_id, count(*) AS n FROM parked GROUP BY host_id) x ON x.host_id = h.id WHERE coalesce(x.n, 0) <> h.parked_n",
	"SELECT concat('host ', h.name, ': has ', coalesce(x.n, 0), ' turns, counts ', h.turn_n) FROM hosts h LEFT JOIN"
	" (SELECT host_id, count(*) AS n FROM queue WHERE due_at_ms IS NOT NULL AND host_id > 0 GROUP BY host_id) x ON x.host_id = h.id"
	" WHERE coalesce(x.n, 0) <> h.turn_n",
	"SELECT concat('host ', name, ': feeds wait, and none has its turn') FROM hosts WHERE parked_n > 0 AND busy_n + turn_n = 0",
};

static int maria_check(struct fw_store *st, void (*cb)(void *ctx, const char *finding), void *ctx, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	struct fw_err spare;
	int rc;

	/* one view of it all */
	mr_put(m, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "");
	mr_put(m, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY", "");
	rc = mr_flush(m, err);
	for (size_t i = 0; i < FW_N(checks) && !rc; i++) {
		struct mr_res r;

		rc = mr_ask(m, &r, err, checks[i], "");
		while (!rc && mr_row(&r)) /* a sentence ends with a NUL, as all that the client library hands out */
			cb(ctx, r.row[0] ? r.row[0] : "");
	}
	mr_put(m, "ROLLBACK", "");
	return rc ? (mr_flush(m, &spare), rc) : mr_flush(m, err);
}

static const char *const schemes[] = {"mysql", "mariadb", NULL};

const struct fw_store_driver fw_store_mysql = {
	.abi = FW_STORE_ABI,
	.name = "mysql",
	.schemes = schemes,
	.open = maria_open,
	.close = maria_close,
	.ping = maria_ping,
	.check = maria_check,
	.claim = mr_claim,
	.commit = mr_commit,
	.release = mr_release,
	.bury = mr_bury,
	.changed = maria_changed,
	.subscribe = mr_subscribe,
	.unsubscribe = mr_unsubscribe,
	.feed_find = mr_feed_find,
	.feed_list = mr_feed_list,
	.feed_set = mr_feed_set,
	.entry_list = mr_entry_list,
	.visit_list = mr_visit_list,
	.stats = mr_stats,
	.pending = mr_pending,
	.control_put = mr_control_put,
	.control_take = mr_control_take,
	.beat_list = mr_beat_list,
	.upkeep = mr_upkeep,
	.prune = mr_prune,
	.load = mr_load,
	.key_list = mr_key_list,
	.clock = maria_clock,
	.inspect = maria_inspect,
};
