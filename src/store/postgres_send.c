/* SPDX-License-Identifier: ISC */
/*
 * What the PostgreSQL driver says and hears: parameters, statements, transactions, answers, lists.
 *
 * Statements go through libpq's pipeline mode: a step of a transaction queues all it has to say, and one round trip brings all
 * answers (pg_send, pg_run). Values travel in binary, many rows as one array for each column. Every statement is prepared once and
 * its plan is generic; the planner is kept from scans and hash joins, for what a worker does is to look some hundred rows up by
 * their keys, whatever the statistics of the moment say (lists and figures give it its freedom back, see pg_list).
 *
 * Isolation is READ COMMITTED: each statement sees what was committed before it began, and rows are locked in one order: members
 * (an advisory lock), loans by id, places, wheel, hosts by id. What still meets in a deadlock is done again.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "store/postgres.h"

#define ANSWER_MS 90000         /* not a byte for so long: the server is gone */
#define TRIES 6                 /* of a transaction that others are in the way of */

/* ---- parameters ------------------------------------------------------------------------------------------------------- */

static void put32(struct fw_buf *b, uint32_t v)
{
	uint32_t net = htonl(v);

	fw_buf_add(b, &net, sizeof(net));
}

static void put64(struct fw_buf *b, int64_t v)
{
	uint64_t net = htobe64((uint64_t)v);

	fw_buf_add(b, &net, sizeof(net));
}

static void args_forget(struct pg *p)
{
	fw_buf_reset(&p->arg);
	p->arg_n = 0;
}

static void arg_begin(struct pg *p)
{
	if (p->arg_n == PG_ARGS)
		abort(); /* a statement of ours has more: its fault */
	p->arg_at[p->arg_n++] = p->arg.len;
}

static void arg_end(struct pg *p)
{
	p->arg_len[p->arg_n - 1] = (int)(p->arg.len - p->arg_at[p->arg_n - 1]);
}

void pg_int(struct pg *p, int64_t v)
{
	arg_begin(p);
	put64(&p->arg, v);
	arg_end(p);
}

void pg_null(struct pg *p)
{
	arg_begin(p);
	p->arg_len[p->arg_n - 1] = -1;
}

void pg_date(struct pg *p, int64_t v)
{
	if (v == FW_NO_DATE)
		pg_null(p);
	else
		pg_int(p, v);
}

void pg_str(struct pg *p, struct fw_str s)
{
	arg_begin(p);
	fw_buf_addstr(&p->arg, s);
	arg_end(p);
	if (!s.p)
		p->arg_len[p->arg_n - 1] = -1;
}

/* What a text cannot hold (NUL, what is no UTF-8) becomes U+FFFD. */
static void text_add(struct fw_buf *b, struct fw_str s)
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

void pg_text(struct pg *p, struct fw_str s)
{
	arg_begin(p);
	text_add(&p->arg, s);
	arg_end(p);
	if (!s.p)
		p->arg_len[p->arg_n - 1] = -1;
}

static void items_end(struct pg *p)
{
	p->arg_len[p->arg_n - 1] = (int)(p->arg.len - p->arg_at[p->arg_n - 1]);
}

void pg_array(struct pg *p, enum pg_type type, size_t n)
{
	arg_begin(p);
	put32(&p->arg, n ? 1 : 0); /* dimensions */
	put32(&p->arg, 1);         /* there may be NULLs */
	put32(&p->arg, type);
	if (n) {
		put32(&p->arg, (uint32_t)n);
		put32(&p->arg, 1); /* the first index */
	}
	items_end(p);
}

void pg_item_int(struct pg *p, int64_t v)
{
	put32(&p->arg, 8);
	put64(&p->arg, v);
	items_end(p);
}

static void item_null(struct pg *p)
{
	put32(&p->arg, UINT32_MAX);
	items_end(p);
}

void pg_item_date(struct pg *p, int64_t v)
{
	if (v == FW_NO_DATE)
		item_null(p);
	else
		pg_item_int(p, v);
}

void pg_item_tid(struct pg *p, int64_t v)
{
	unsigned char b[6];

	if (!v) {
		item_null(p);
		return;
	}
	for (int i = 0; i < 6; i++)
		b[i] = (unsigned char)((uint64_t)v >> (40 - 8 * i));
	put32(&p->arg, sizeof(b));
	fw_buf_add(&p->arg, b, sizeof(b));
	items_end(p);
}

void pg_item_str(struct pg *p, struct fw_str s)
{
	if (!s.p) {
		item_null(p);
		return;
	}
	put32(&p->arg, (uint32_t)s.len);
	fw_buf_addstr(&p->arg, s);
	items_end(p);
}

void pg_item_text(struct pg *p, struct fw_str s)
{
	size_t at = p->arg.len;
	uint32_t net;

	if (!s.p) {
		item_null(p);
		return;
	}
	put32(&p->arg, 0);
	text_add(&p->arg, s);
	if (p->arg.rc)
		return;
	net = htonl((uint32_t)(p->arg.len - at - sizeof(net)));
	memcpy(p->arg.p + at, &net, sizeof(net));
	items_end(p);
}

void pg_ints(struct pg *p, const int64_t *v, size_t n)
{
	pg_array(p, PG_INT8, n);
	for (size_t i = 0; i < n; i++)
		pg_item_int(p, v[i]);
}

/* ---- statements ------------------------------------------------------------------------------------------------------- */

static bool sent_add(struct pg *p, enum pg_id id, bool preparation)
{
	if (p->sent_n == p->sent_cap) {
		size_t cap = p->sent_cap ? p->sent_cap * 2 : 32;
		struct pg_sent *sent = reallocarray(p->sent, cap, sizeof(*sent));
		PGresult **res = reallocarray(p->res, cap, sizeof(PGresult *));

		p->sent = sent ? sent : p->sent;
		p->res = res ? res : p->res;
		if (!sent || !res)
			return false;
		p->sent_cap = cap;
	}
	p->sent[p->sent_n++] = (struct pg_sent){id, preparation};
	return true;
}

enum { NOT_PREPARED, PREPARED, PREPARING };

bool pg_is_prepared(const struct pg *p, enum pg_id id)
{
	return p->prepared[id] != NOT_PREPARED;
}

static int send_statement(struct pg *p, enum pg_id id, const char *sql, int arg_n)
{
	const char *value[PG_ARGS];
	int format[PG_ARGS];
	char name[16] = "";
	bool ok = true;

	if (p->broken)
		return FW_EIO;
	if (p->in_callback)
		return FW_EINVAL;
	if (arg_n && p->arg.rc)
		return FW_ENOMEM;
	for (int i = 0; i < arg_n; i++) {
		value[i] = p->arg_len[i] < 0 ? NULL : p->arg.p + p->arg_at[i];
		format[i] = 1;
	}
	if (id == PG_ONCE) {
		if (!sent_add(p, id, false))
			return FW_ENOMEM;
		return PQsendQueryParams(p->c, sql, arg_n, NULL, value, p->arg_len, format, 1) ? 0 : FW_EIO;
	}
	if (!fw_snprintf(name, sizeof(name), "fw%d", (int)id))
		return FW_EINVAL;
	if (p->prepared[id] == NOT_PREPARED) {
		if (!sent_add(p, id, true))
			return FW_ENOMEM;
		ok = PQsendPrepare(p->c, name, sql, 0, NULL);
		p->prepared[id] = PREPARING;
	}
	if (ok && !sent_add(p, id, false))
		return FW_ENOMEM;
	return ok && PQsendQueryPrepared(p->c, name, arg_n, value, p->arg_len, format, 1) ? 0 : FW_EIO;
}

/*
 * Behind a pooler: fails, and with it all that follows, when this is not the session that was opened. In transaction mode a pooler
 * gives us another one at any time, with another store's search_path perhaps, and statements of other people under our names.
 */
static int send_guard(struct pg *p)
{
	char sql[120];

	if (!fw_snprintf(sql, sizeof(sql), "SELECT 1 / (current_setting('feedwheel.session', true) IS NOT DISTINCT FROM '%s')::int",
			p->session))
		return FW_EINVAL;
	if (!sent_add(p, PG_GUARD, true))
		return FW_ENOMEM;
	return PQsendQueryParams(p->c, sql, 0, NULL, NULL, NULL, NULL, 1) ? 0 : FW_EIO;
}

/* The first statement of each round trip has a guard beside it; behind a BEGIN, which must be the first of its transaction. */
static int send_one(struct pg *p, enum pg_id id, const char *sql, int arg_n)
{
	bool guard = p->session[0] && !p->sent_n && !p->broken && !p->in_callback && id != PG_ROLLBACK;
	bool begin = id == PG_BEGIN || (id == PG_ONCE && strncmp(sql, "BEGIN", 5) == 0);
	int rc = guard && !begin ? send_guard(p) : 0;

	rc = rc ? rc : send_statement(p, id, sql, arg_n);
	return rc ? rc : guard && begin ? send_guard(p) : 0;
}

void pg_send(struct pg *p, enum pg_id id, const char *sql)
{
	if (!p->send_rc)
		p->send_rc = send_one(p, id, sql, p->arg_n);
	args_forget(p);
}

bool pg_text_wanted(struct pg *p, enum pg_id id)
{
	fw_buf_reset(&p->text);
	return !pg_is_prepared(p, id);
}

void pg_send_text(struct pg *p, enum pg_id id)
{
	if (p->text.rc && !p->send_rc)
		p->send_rc = FW_ENOMEM;
	pg_send(p, id, p->text.p ? p->text.p : "");
}

/* The same for a statement without parameters; those that were set are left for the next one. */
static void send_bare(struct pg *p, enum pg_id id, const char *sql)
{
	if (!p->send_rc)
		p->send_rc = send_one(p, id, sql, 0);
}

void pg_answers_forget(struct pg *p)
{
	for (size_t i = 0; i < p->res_n; i++)
		PQclear(p->res[i]);
	p->res_n = 0;
}

/* Like PQgetResult, but not for ever. */
static PGresult *answer(struct pg *p)
{
	while (PQisBusy(p->c)) {
		struct pollfd f = {.fd = PQsocket(p->c), .events = POLLIN};

		if (poll(&f, 1, ANSWER_MS) == 0 || !PQconsumeInput(p->c)) {
			p->broken = true;
			return NULL;
		}
	}
	return PQgetResult(p->c);
}

static bool is_good(const PGresult *r)
{
	ExecStatusType s = PQresultStatus(r);

	return s == PGRES_TUPLES_OK || s == PGRES_COMMAND_OK;
}

/* One answer, and the NULL behind it. The first bad one decides. */
static int answer_take(struct pg *p, const struct pg_sent *s, int rc, struct fw_err *err)
{
	PGresult *r = answer(p);
	bool good = r && is_good(r);

	if (s->preparation)
		p->prepared[s->id] = good ? PREPARED : NOT_PREPARED;
	if (!good && !rc)
		rc = r ? pg_error(p, r, err) : pg_gone(p, p->broken ? "no answer" : PQerrorMessage(p->c), err);
	if (good && !s->preparation && s->id == PG_TURNS)
		pg_turns_given(p, r);
	if (good && !s->preparation)
		p->res[p->res_n++] = r;
	else
		PQclear(r);
	while (!p->broken && (r = answer(p)))
		PQclear(r);
	return rc;
}

static int send_error(struct pg *p, struct fw_err *err)
{
	int rc = p->send_rc;

	p->send_rc = 0;
	if (rc == FW_EINVAL)
		return fw_err_set(err, rc, "%s: called again from a callback of its own", p->name);
	return rc == FW_ENOMEM ? pg_no_memory(p, err) : pg_gone(p, p->broken ? "earlier" : PQerrorMessage(p->c), err);
}

int pg_run(struct pg *p, struct fw_err *err)
{
	int rc = 0;

	args_forget(p);
	if (p->in_callback)
		return p->send_rc ? send_error(p, err) : 0;
	pg_answers_forget(p);
	if (p->send_rc)
		rc = send_error(p, err);
	if (!p->sent_n)
		return rc;
	if (!p->broken && !PQpipelineSync(p->c))
		rc = rc ? rc : pg_gone(p, PQerrorMessage(p->c), err);
	for (size_t i = 0; i < p->sent_n && !p->broken; i++)
		rc = answer_take(p, &p->sent[i], rc, err);
	if (!p->broken)
		PQclear(answer(p)); /* the end of the pipeline */
	p->sent_n = 0;
	return p->broken && !rc ? pg_gone(p, "no answer", err) : rc;
}

int pg_exec(struct pg *p, const char *sql, struct fw_err *err)
{
	PGresult *r;
	int rc;

	if (p->broken || !PQexitPipelineMode(p->c))
		return pg_gone(p, PQerrorMessage(p->c), err);
	r = PQexec(p->c, sql);
	rc = is_good(r) ? 0 : pg_error(p, r, err);
	PQclear(r);
	if (!PQenterPipelineMode(p->c) && !rc)
		rc = pg_gone(p, PQerrorMessage(p->c), err);
	return rc;
}

/* ---- COPY in binary form: a head, rows of (length, bytes), an end --------------------------------------------------------- */

#define COPY_PIECE 32768 /* what is complete goes out: the server reads it while the rest is made */

static void put16(struct fw_buf *b, uint16_t v)
{
	uint16_t net = htons(v);

	fw_buf_add(b, &net, sizeof(net));
}

/* Its last answers, and back to what the connection does otherwise. */
static int copy_over(struct pg *p, int rc, struct fw_err *err)
{
	PGresult *r;

	while (!p->broken && (r = answer(p))) {
		if (!is_good(r) && !rc)
			rc = pg_error(p, r, err);
		PQclear(r);
	}
	if (p->broken ? !rc : !PQenterPipelineMode(p->c))
		rc = pg_gone(p, PQerrorMessage(p->c), err);
	return rc;
}

int pg_copy_begin(struct pg *p, const char *sql, struct fw_err *err)
{
	static const char HEAD[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0"; /* and the 0 at its end: no flags, no extension */
	PGresult *r;
	int rc;

	if (p->in_callback)
		return fw_err_set(err, FW_EINVAL, "%s: called again from a callback of its own", p->name);
	if (p->broken || !PQexitPipelineMode(p->c) || !PQsendQuery(p->c, sql))
		return pg_gone(p, PQerrorMessage(p->c), err);
	r = answer(p);
	fw_buf_reset(&p->text);
	fw_buf_add(&p->text, HEAD, sizeof(HEAD));
	if (PQresultStatus(r) == PGRES_COPY_IN) {
		PQclear(r);
		return 0;
	}
	rc = r ? pg_error(p, r, err) : pg_gone(p, PQerrorMessage(p->c), err);
	PQclear(r);
	return copy_over(p, rc, err);
}

static void copy_send(struct pg *p)
{
	if (!p->broken && !p->text.rc && PQputCopyData(p->c, p->text.p, (int)p->text.len) != 1)
		p->broken = true;
	if (!p->text.rc)
		fw_buf_reset(&p->text);
}

void pg_copy_row(struct pg *p, unsigned columns)
{
	if (p->text.len >= COPY_PIECE)
		copy_send(p);
	put16(&p->text, (uint16_t)columns);
}

void pg_copy_int(struct pg *p, int64_t v)
{
	uint32_t len = htonl(sizeof(v));
	uint64_t net = htobe64((uint64_t)v);
	char cell[sizeof(len) + sizeof(net)];

	memcpy(cell, &len, sizeof(len));
	memcpy(cell + sizeof(len), &net, sizeof(net));
	fw_buf_add(&p->text, cell, sizeof(cell));
}

void pg_copy_text(struct pg *p, struct fw_str s)
{
	size_t at = p->text.len;

	put32(&p->text, 0);
	text_add(&p->text, s);
	if (!p->text.rc) {
		uint32_t net = htonl((uint32_t)(p->text.len - at - 4));

		memcpy(p->text.p + at, &net, sizeof(net));
	}
}

int pg_copy_end(struct pg *p, struct fw_err *err)
{
	bool whole;

	put16(&p->text, UINT16_MAX);
	whole = !p->text.rc;
	copy_send(p);
	if (!p->broken && PQputCopyEnd(p->c, whole ? NULL : "out of memory") != 1)
		p->broken = true;
	return copy_over(p, whole ? 0 : pg_no_memory(p, err), err);
}

/* ---- transactions ------------------------------------------------------------------------------------------------------ */

void pg_begin(struct pg *p)
{
	send_bare(p, PG_BEGIN, "BEGIN");
}

void pg_begin_quick(struct pg *p)
{
	pg_begin(p);
	send_bare(p, PG_SYNC_OFF, "SET LOCAL synchronous_commit = off");
}

int64_t pg_lock_number(const struct pg *p, enum pg_lock what)
{
	return (int64_t)p->lock_key * 16 + (int64_t)what;
}

void pg_lock(struct pg *p, enum pg_lock what)
{
	pg_int(p, pg_lock_number(p, what));
	pg_send(p, PG_LOCK, "SELECT pg_advisory_xact_lock($1::int8)");
}

void pg_notify(struct pg *p)
{
	pg_str(p, fw_str(p->channel));
	pg_send(p, PG_NOTIFY, "SELECT pg_notify($1, '')");
}

int pg_commit_run(struct pg *p, struct fw_err *err)
{
	send_bare(p, PG_COMMIT, "COMMIT");
	return pg_run(p, err);
}

static bool in_the_way(const struct pg *p)
{
	return strcmp(p->state, "40001") == 0 || strcmp(p->state, "40P01") == 0;
}

int pg_txn(struct pg *p, pg_txn_fn *fn, void *ctx, struct fw_err *err)
{
	struct fw_err spare;
	int rc = 0;

	if (p->read_only)
		return fw_err_set(err, FW_EINVAL, "%s: opened for reading only", p->name);
	for (int i = 0; i < TRIES; i++) {
		p->state[0] = '\0';
		rc = fn(p, ctx, err);
		if (!rc || p->in_callback)
			return rc;
		args_forget(p);
		if (p->sent_n || p->send_rc)
			(void)pg_run(p, &spare);
		if (!p->broken && PQtransactionStatus(p->c) != PQTRANS_IDLE) {
			send_bare(p, PG_ROLLBACK, "ROLLBACK");
			(void)pg_run(p, &spare); /* rc tells already */
		}
		if (p->broken || rc != FW_EAGAIN || !in_the_way(p))
			return rc;
		usleep((useconds_t)(1000 + fw_hash64_seed(&i, sizeof(i), (uint64_t)fw_mono_us()) % ((uint64_t)5000 << i)));
	}
	return rc;
}

int64_t pg_now_ms(struct pg *p)
{
	return fw_mono_ms() + p->clock_ms;
}

/* ---- answers ----------------------------------------------------------------------------------------------------------- */

static int64_t get_be(const char *at, size_t n)
{
	uint64_t v = n && (at[0] & 0x80) ? UINT64_MAX : 0;

	for (size_t i = 0; i < n; i++)
		v = v << 8 | (unsigned char)at[i];
	return (int64_t)v;
}

int64_t pg_get_int(const PGresult *r, int row, int col)
{
	return pg_is_null(r, row, col) ? 0 : get_be(PQgetvalue(r, row, col), (size_t)PQgetlength(r, row, col));
}

int64_t pg_get_date(const PGresult *r, int row, int col)
{
	return pg_is_null(r, row, col) ? FW_NO_DATE : pg_get_int(r, row, col);
}

struct fw_str pg_get_str(const PGresult *r, int row, int col)
{
	if (pg_is_null(r, row, col))
		return FW_STR_NONE;
	return (struct fw_str){PQgetvalue(r, row, col), (size_t)PQgetlength(r, row, col)};
}

size_t pg_get_ints(const PGresult *r, int row, int col, int64_t *v, size_t max)
{
	struct fw_str a = pg_get_str(r, row, col);
	size_t n = a.len >= 20 ? (size_t)get_be(a.p + 12, 4) : 0;

	a = fw_str_sub(a, 20, a.len);
	for (size_t i = 0; i < n && i < max && a.len >= 4; i++) {
		size_t len = (size_t)FW_MAX(get_be(a.p, 4), 0); /* -1 is NULL: 0 */

		v[i] = get_be(a.p + 4, FW_MIN(len, a.len - 4));
		a = fw_str_sub(a, 4 + len, a.len);
	}
	return n;
}

void pg_get_fields(const PGresult *r, int row, int col, const struct fw_field *f, size_t n, void *out)
{
	for (size_t i = 0; i < n; i++, col++) {
		if (fw_field_is_text(&f[i]))
			fw_field_str_set(&f[i], out, pg_get_str(r, row, col));
		else
			fw_field_int_set(&f[i], out, f[i].type == FW_FIELD_DATE ? pg_get_date(r, row, col) : pg_get_int(r, row, col));
	}
}

void pg_columns(struct fw_buf *b, const char *prefix, const struct fw_field *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fw_buf_addf(b, "%s%s%s", i ? ", " : "", prefix, f[i].name);
}

void pg_array_params(struct fw_buf *b, int from, const struct fw_field *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fw_buf_addf(b, "%s$%d::%s[]", i ? ", " : "", from + (int)i, f[i].type == FW_FIELD_TEXT ? "text" :
			f[i].type == FW_FIELD_BYTES ? "bytea" : "int8");
}

void pg_field_arrays(struct pg *p, const struct fw_field *f, size_t field_n, const void *const *of, size_t n)
{
	for (size_t i = 0; i < field_n; i++) {
		pg_array(p, f[i].type == FW_FIELD_TEXT ? PG_TEXT : f[i].type == FW_FIELD_BYTES ? PG_BYTEA : PG_INT8, n);
		for (size_t k = 0; k < n; k++) {
			if (f[i].type == FW_FIELD_TEXT)
				pg_item_text(p, fw_field_str(&f[i], of[k]));
			else if (f[i].type == FW_FIELD_BYTES)
				pg_item_str(p, fw_field_str(&f[i], of[k]));
			else
				pg_item_date(p, fw_field_int(&f[i], of[k])); /* of a number FW_NO_DATE is none */
		}
	}
}

/* ---- lists ------------------------------------------------------------------------------------------------------------- */

/* Show the rows of the last run; *more: there may be others. */
static int rows_show(struct pg *p, int portion, pg_row_fn *fn, void *ctx, bool *more)
{
	const PGresult *r = p->res[p->res_n - 1];
	int n = PQntuples(r), rc = 0;

	*more = n == portion;
	p->in_callback = true;
	for (int i = 0; i < n && !rc; i++)
		rc = fn(ctx, p, r, i);
	p->in_callback = false;
	p->send_rc = 0; /* a call from a callback was refused, and said so */
	return rc;
}

static int list(struct pg *p, const char *sql, bool whole, int portion, pg_row_fn *fn, void *ctx, struct fw_err *err)
{
	char fetch[40];
	bool more = true, own = false;
	struct fw_err spare;
	struct fw_buf b = FW_BUF_INIT(0);
	int rc;

	fw_buf_addf(&b, "DECLARE list NO SCROLL CURSOR FOR %s", sql);
	if (b.rc || !fw_snprintf(fetch, sizeof(fetch), "FETCH %d FROM list", portion)) {
		fw_buf_finish(&b);
		return pg_no_memory(p, err);
	}
	send_bare(p, PG_ONCE, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
	/* a list is looked at in one's own time, and the planner may do as it likes */
	send_bare(p, PG_ONCE, "SELECT set_config(name, 'on', true) FROM unnest(ARRAY['enable_seqscan', 'enable_bitmapscan',"
		" 'enable_hashjoin', 'enable_mergejoin']) name UNION ALL SELECT set_config(name, '0', true) FROM"
		" unnest(ARRAY['statement_timeout', 'idle_in_transaction_session_timeout']) name");
	/* of a cursor it expects that a tenth will be read, and then looks each row up in its index */
	if (whole)
		send_bare(p, PG_ONCE, "SELECT set_config('cursor_tuple_fraction', '1', true), set_config('work_mem', '64MB', true)");
	pg_send(p, PG_ONCE, b.p);
	fw_buf_finish(&b);
	send_bare(p, PG_ONCE, fetch);
	rc = pg_run(p, err);
	while (!rc) {
		rc = rows_show(p, portion, fn, ctx, &more);
		own = rc != 0;
		if (rc || !more)
			break;
		send_bare(p, PG_ONCE, fetch);
		rc = pg_run(p, err);
	}
	if (!p->broken && !p->in_callback && PQtransactionStatus(p->c) != PQTRANS_IDLE) {
		send_bare(p, PG_ROLLBACK, "ROLLBACK");
		if (pg_run(p, own || rc ? &spare : err) && !rc)
			rc = err->rc;
	}
	return rc;
}

int pg_list(struct pg *p, const char *sql, int portion, pg_row_fn *fn, void *ctx, struct fw_err *err)
{
	return list(p, sql, false, portion, fn, ctx, err);
}

int pg_list_whole(struct pg *p, const char *sql, int portion, pg_row_fn *fn, void *ctx, struct fw_err *err)
{
	return list(p, sql, true, portion, fn, ctx, err);
}
