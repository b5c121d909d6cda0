/* SPDX-License-Identifier: ISC */
/*
 * Statements, their answers, and transactions.
 *
 * Statements are gathered in m->sql and travel together: a claim is four round trips, a commit two, however many feeds they
 * carry. All work on sets of rows. Values are written into the text here, by type; what the server parses is never more than
 * script_max() bytes.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "store/maria.h"

#define CLOCK_MS 30000 /* the server's clock is asked for this often */
#define COUNTERS 64    /* rows that share the counting, so that nobody waits */

/* ---- statements ------------------------------------------------------------------------------------------------------- */

static size_t script_max(const struct maria *m)
{
	return FW_MIN(MR_SCRIPT_MAX, m->packet_max / 2);
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

void mr_text_each(struct fw_str s, struct fw_buf *to, void (*add)(struct fw_buf *to, const void *p, size_t len))
{
	for (;;) { /* the column takes UTF-8 only: what is none is replaced, byte by byte */
		size_t n = fw_utf8_valid(s.p, s.len);

		add(to, s.p, n);
		if (n == s.len)
			return;
		fw_buf_addcp(to, 0xfffd);
		s = (struct fw_str){s.p + n + 1, s.len - n - 1};
	}
}

/* Valid UTF-8 within quotes. */
static void escape(struct fw_buf *b, const void *text, size_t len)
{
	const char *p = text;
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
	mr_text_each(s, b, escape);
	fw_buf_addc(b, '\'');
}

void mr_hex(struct maria *m, struct fw_str s)
{
	static const char hex[] = "0123456789abcdef";
	char *p = fw_buf_room(&m->sql, s.len * 2);

	for (size_t i = 0; p && i < s.len; i++) {
		*p++ = hex[(unsigned char)s.p[i] >> 4];
		*p++ = hex[(unsigned char)s.p[i] & 15];
	}
	m->sql.len += p ? s.len * 2 : 0;
}

void mr_value_bytes(struct maria *m, struct fw_str s)
{
	if (!s.p) {
		fw_buf_adds(&m->sql, "NULL");
		return;
	}
	fw_buf_adds(&m->sql, "x'");
	mr_hex(m, s);
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
		rc = mr_too_large(m, err); /* the server would hang up */
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

int mr_transact(struct maria *m, mr_work *work, void *arg, struct fw_err *err)
{
	for (int i = 1;; i++) {
		int rc = begin(m, err);

		if (rc)
			return rc;
		rc = end(m, work(m, arg, err), err);
		if (!rc || !mr_error_again(m->code) || i == MR_TRIES)
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
	for (int i = 0; !m->clock_at_ms || mono - m->clock_at_ms > CLOCK_MS; i++, mono = fw_mono_ms()) {
		if (i == FW_CLOCK_TRIES)
			return fw_store_clock_late(m->name, err);
		rc = mr_number(m, 0, &server, err, "SELECT CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED)", "");
		if (rc)
			return rc;
		if (fw_store_clock_note(&m->clock_d_ms, server, mono))
			m->clock_at_ms = mono;
	}
	*now_ms = fw_mono_ms() + m->clock_d_ms;
	return 0;
}
