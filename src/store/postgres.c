/* SPDX-License-Identifier: ISC */
/*
 * The PostgreSQL driver: any number of workers on any number of machines share one wheel.
 *
 * This file opens and closes, sends statements, runs transactions and turns the server's codes into ours. What is stored where:
 * postgres_schema.c. Lending: postgres_wheel.c and postgres_loans.c. Outcomes: postgres_commit.c. Entries: postgres_entries.c.
 * Words: postgres_search.c. Who is subscribed: postgres_members.c. What people look at: postgres_window.c.
 *
 * Statements go through libpq's pipeline mode: a step of a transaction queues all it has to say, and one round trip brings all
 * answers (pg_send, pg_run). Values travel in binary, many rows as one array for each column. Every statement is prepared once and
 * its plan is generic; the planner is kept from scans and hash joins, for what a worker does is to look some hundred rows up by
 * their keys, whatever the statistics of the moment say (lists and figures give it its freedom back, see pg_list).
 *
 * Isolation is READ COMMITTED: each statement sees what was committed before it began, and rows are locked in one order: members
 * (an advisory lock), loans by id, places, wheel, hosts by id. What still meets in a deadlock is done again.
 *
 * Fork: a connection belongs to the process that opened it; nothing is shared between handles.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "store/dsn.h"
#include "store/postgres.h"

#define CONNECT_S "10"
#define STATEMENT_MS 60000      /* no statement of a worker takes longer; lists may */
#define ANSWER_MS 90000         /* not a byte for so long: the server is gone */
#define IDLE_IN_TRANSACTION_MS 30000 /* a worker that is stopped in the middle gives its locks back */
#define TRIES 6                 /* of a transaction that others are in the way of */

/* ---- errors --------------------------------------------------------------------------------------------------------- */

/* The server's sentence, or libpq's. */
static const char *said(struct pg *p, const PGresult *r)
{
	const char *text = r ? PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY) : NULL;

	text = text ? text : r ? PQresultErrorMessage(r) : NULL;
	return text && *text ? text : PQerrorMessage(p->c);
}

static bool is_state(const char *state, const char *class)
{
	return strncmp(state, class, strlen(class)) == 0;
}

static int gone(struct pg *p, const char *why, struct fw_err *err)
{
	struct fw_str rest, line = fw_str_split(fw_str(why), '\n', &rest);

	p->broken = true;
	return fw_err_set(err, FW_EIO, "%s: the connection broke (%.*s): it is opened anew; check the server and the network", p->name,
		FW_STR_ARG(line));
}

static const struct {
	const char *state;
	int rc;
	const char *remedy;
} answers[] = {
	{"40", FW_EAGAIN, "other workers were in the way: try again"},
	{"55P03", FW_EAGAIN, "others held a lock for too long: look for idle sessions in pg_stat_activity"},
	{"57014", FW_EAGAIN, "it took too long: look at the server's load"},
	{"53100", FW_EAGAIN, "the server's disk is full: free some; nothing stored is lost"},
	{"53200", FW_EAGAIN, "the server is out of memory"},
	{"53300", FW_EAGAIN, "too many connections: raise max_connections or run fewer workers"},
	{"53", FW_EAGAIN, "the server lacks resources"},
	{"58030", FW_EAGAIN, "the server's disk failed: look into its log"},
	{"25006", FW_EIO, "this server only reads: name the primary"},
	{"42501", FW_EINVAL, "grant the user what it needs on the schema"},
	{"42P01", FW_EINVAL, "tables are missing: were they dropped?"},
};

static int error(struct pg *p, const PGresult *r, struct fw_err *err)
{
	const char *state = r ? PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL;

	(void)fw_snprintf(p->state, sizeof(p->state), "%s", state ? state : "");
	if (!state || is_state(state, "08") || is_state(state, "57P") || is_state(state, "25P03") || PQstatus(p->c) == CONNECTION_BAD)
		return gone(p, said(p, r), err);
	for (size_t i = 0; i < FW_N(answers); i++) {
		if (!is_state(state, answers[i].state))
			continue;
		p->broken |= answers[i].rc == FW_EIO;
		return fw_err_set(err, answers[i].rc, "%s: %s (%s): %s", p->name, said(p, r), state, answers[i].remedy);
	}
	return fw_err_set(err, FW_EINVAL, "%s: %s (%s)", p->name, said(p, r), state);
}

static int no_memory(struct pg *p, struct fw_err *err)
{
	return fw_err_set(err, FW_ENOMEM, "%s: out of memory", p->name);
}

/* ---- parameters ------------------------------------------------------------------------------------------------------- */

static void put32(struct fw_buf *b, uint32_t v)
{
	uint32_t net = htonl(v);

	fw_buf_add(b, &net, sizeof(net));
}

static void put64(struct fw_buf *b, int64_t v)
{
	put32(b, (uint32_t)((uint64_t)v >> 32));
	put32(b, (uint32_t)v);
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

static int send_one(struct pg *p, enum pg_id id, const char *sql, int arg_n)
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

static void answers_forget(struct pg *p)
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
		rc = r ? error(p, r, err) : gone(p, p->broken ? "no answer" : PQerrorMessage(p->c), err);
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
	return rc == FW_ENOMEM ? no_memory(p, err) : gone(p, p->broken ? "earlier" : PQerrorMessage(p->c), err);
}

int pg_run(struct pg *p, struct fw_err *err)
{
	int rc = 0;

	args_forget(p);
	if (p->in_callback)
		return p->send_rc ? send_error(p, err) : 0;
	answers_forget(p);
	if (p->send_rc)
		rc = send_error(p, err);
	if (!p->sent_n)
		return rc;
	if (!p->broken && !PQpipelineSync(p->c))
		rc = rc ? rc : gone(p, PQerrorMessage(p->c), err);
	for (size_t i = 0; i < p->sent_n && !p->broken; i++)
		rc = answer_take(p, &p->sent[i], rc, err);
	if (!p->broken)
		PQclear(answer(p)); /* the end of the pipeline */
	p->sent_n = 0;
	return p->broken && !rc ? gone(p, "no answer", err) : rc;
}

int pg_exec(struct pg *p, const char *sql, struct fw_err *err)
{
	PGresult *r;
	int rc;

	if (p->broken || !PQexitPipelineMode(p->c))
		return gone(p, PQerrorMessage(p->c), err);
	r = PQexec(p->c, sql);
	rc = is_good(r) ? 0 : error(p, r, err);
	PQclear(r);
	if (!PQenterPipelineMode(p->c) && !rc)
		rc = gone(p, PQerrorMessage(p->c), err);
	return rc;
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

int pg_list(struct pg *p, const char *sql, int portion, pg_row_fn *fn, void *ctx, struct fw_err *err)
{
	char fetch[40];
	bool more = true, own = false;
	struct fw_err spare;
	struct fw_buf b = FW_BUF_INIT(0);
	int rc;

	fw_buf_addf(&b, "DECLARE list NO SCROLL CURSOR FOR %s", sql);
	if (b.rc || !fw_snprintf(fetch, sizeof(fetch), "FETCH %d FROM list", portion)) {
		fw_buf_finish(&b);
		return no_memory(p, err);
	}
	send_bare(p, PG_ONCE, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
	/* a list is looked at in one's own time, and the planner may do as it likes */
	send_bare(p, PG_ONCE, "SELECT set_config(name, 'on', true) FROM unnest(ARRAY['enable_seqscan', 'enable_bitmapscan',"
		" 'enable_hashjoin', 'enable_mergejoin']) name UNION ALL SELECT set_config(name, '0', true) FROM"
		" unnest(ARRAY['statement_timeout', 'idle_in_transaction_session_timeout']) name");
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

/* ---- life -------------------------------------------------------------------------------------------------------------- */

static void postgres_close(struct fw_store *st)
{
	struct pg *p = pg_of(st);

	answers_forget(p);
	PQfinish(p->c);
	fw_buf_finish(&p->arg);
	fw_buf_finish(&p->text);
	free(p->sent);
	free(p->res);
	free(p);
}

/* There is no code for why a connection was refused, only words. */
static int connect_error(struct pg *p, struct fw_err *err)
{
	static const struct { const char *words; int rc; const char *remedy; } T[] = {
		{"too many clients", FW_EAGAIN, "raise max_connections or run fewer workers"},
		{"remaining connection slots", FW_EAGAIN, "raise max_connections or run fewer workers"},
		{"too many connections", FW_EAGAIN, "raise the limit of the role or the database, or run fewer workers"},
		{"authentication failed", FW_EINVAL, "check user and password in the URL"},
		{"no password supplied", FW_EINVAL, "put a password into the URL or into ~/.pgpass"},
		{"pg_hba.conf", FW_EINVAL, "let this machine in, in the server's pg_hba.conf"},
		{"does not exist", FW_EINVAL, "create it, or name another in the URL"},
		{"invalid connection option", FW_EINVAL, "options are libpq's, and schema"},
		{"invalid sslmode", FW_EINVAL, "see libpq's sslmode"},
		{"does not support SSL", FW_EINVAL, "turn it on in the server, or ask for another sslmode"},
		{"certificate", FW_EINVAL, "check sslrootcert and the server's certificate"},
	};
	const char *text = PQerrorMessage(p->c);
	struct fw_str rest, line = fw_str_split(fw_str(text), '\n', &rest);

	for (size_t i = 0; i < FW_N(T); i++) {
		if (strstr(text, T[i].words))
			return fw_err_set(err, T[i].rc, "%s: %.*s: %s", p->name, FW_STR_ARG(line), T[i].remedy);
	}
	return fw_err_set(err, FW_EIO, "%s: cannot be reached (%.*s): check the server and the address", p->name, FW_STR_ARG(line));
}

struct pairs {
	const char *key[FW_DSN_OPTIONS + 16], *value[FW_DSN_OPTIONS + 16];
	size_t n;
};

static void pair(struct pairs *q, const char *key, const char *value)
{
	if (!value)
		return;
	q->key[q->n] = key;
	q->value[q->n++] = value;
	q->key[q->n] = NULL;
}

/* What the URL says wins over these. */
static int connect_to(struct pg *p, const struct fw_dsn *d, struct fw_err *err)
{
	struct pairs q = {.n = 0};
	char port[12] = "";

	pair(&q, "application_name", "feedwheel");
	pair(&q, "connect_timeout", CONNECT_S);
	pair(&q, "keepalives_idle", "15");
	pair(&q, "keepalives_interval", "5");
	pair(&q, "keepalives_count", "3");
	pair(&q, "tcp_user_timeout", "30000");
	if (!p->read_only)
		pair(&q, "target_session_attrs", "read-write"); /* of several hosts the primary */
	pair(&q, "host", d->host.p);
	pair(&q, "port", d->port && fw_snprintf(port, sizeof(port), "%d", d->port) ? port : NULL);
	pair(&q, "user", d->user.p);
	pair(&q, "password", d->password.p);
	pair(&q, "dbname", d->path.len ? d->path.p : NULL);
	for (size_t i = 0; i < d->option_n; i++) {
		if (!fw_str_eq(d->option[i].name, FW_STR("schema")))
			pair(&q, d->option[i].name.p, d->option[i].value.p);
	}
	pair(&q, "client_encoding", "UTF8");
	p->c = PQconnectdbParams(q.key, q.value, 0);
	if (!p->c)
		return no_memory(p, err);
	return PQstatus(p->c) == CONNECTION_OK ? 0 : connect_error(p, err);
}

static int server_check(struct pg *p, struct fw_err *err)
{
	const char *encoding = PQparameterStatus(p->c, "server_encoding");

	if (PQserverVersion(p->c) < PG_SERVER_MIN)
		return fw_err_set(err, FW_EINVAL, "%s: PostgreSQL %d: version %d or newer is needed", p->name,
			PQserverVersion(p->c) / 10000, PG_SERVER_MIN / 10000);
	if (!encoding || strcmp(encoding, "UTF8") != 0)
		return fw_err_set(err, FW_EINVAL, "%s: the database's encoding is %s: create one with encoding UTF8", p->name,
			encoding ? encoding : "unknown");
	return 0;
}

static int settings(struct pg *p, struct fw_err *err)
{
	char sql[1200];

	if (!fw_snprintf(sql, sizeof(sql), "SET jit = off; SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off;"
			"SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;"
			"SET max_parallel_workers_per_gather = 0; SET client_min_messages = warning; SET timezone = 'UTC';"
			"SET statement_timeout = %d; SET idle_in_transaction_session_timeout = %d; SET lock_timeout = %lld;"
			"SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3;"
			"SET default_transaction_isolation = 'read committed'; SET default_transaction_read_only = %s; %s"
			"SELECT set_config('default_toast_compression', 'lz4', false) FROM pg_settings"
			" WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)", STATEMENT_MS, IDLE_IN_TRANSACTION_MS,
			(long long)p->busy_timeout_ms, p->read_only ? "on" : "off", p->relaxed ? "SET synchronous_commit = off; " : ""))
		return no_memory(p, err);
	return pg_exec(p, sql, err);
}

/* Which schema this store is; all its names are looked up there and nowhere else. */
static int schema_find(struct pg *p, struct fw_str wish, struct fw_err *err)
{
	int rc = 0;

	if (!wish.p) {
		pg_send(p, PG_ONCE, "SELECT current_schema()::text");
		rc = pg_run(p, err);
		wish = rc ? wish : pg_get_str(p->res[0], 0, 0);
		if (!rc && !wish.p)
			return fw_err_set(err, FW_EINVAL, "%s: the search_path names no schema that is there: add ?schema=NAME to the URL", p->name);
	}
	if (rc)
		return rc;
	if (!wish.len || wish.len >= sizeof(p->schema))
		return fw_err_set(err, FW_EINVAL, "%s: schema=: a name of 1 to 63 bytes is wanted", p->name);
	(void)fw_str_copy(p->schema, sizeof(p->schema), wish);
	(void)fw_snprintf(p->channel, sizeof(p->channel), "feedwheel_%s", p->schema); /* a longer one is cut */
	p->lock_key = (int32_t)fw_hash64(p->schema, strlen(p->schema));
	pg_str(p, fw_str(p->schema));
	pg_send(p, PG_ONCE, "SELECT set_config('search_path', quote_ident($1::text), false)");
	return pg_run(p, err);
}

#define CLOCK_SQL "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8"

static int clock_read(struct pg *p, struct fw_err *err)
{
	int rc;

	pg_send(p, PG_CLOCK, CLOCK_SQL);
	rc = pg_run(p, err);
	if (!rc)
		p->clock_ms = pg_get_int(p->res[0], 0, 0) - fw_mono_ms();
	return rc;
}

static int opened(struct pg *p, const struct fw_dsn *d, const struct fw_store_config *cfg, struct fw_err *err)
{
	int rc = connect_to(p, d, err);

	rc = rc ? rc : server_check(p, err);
	if (!rc && !PQenterPipelineMode(p->c))
		rc = gone(p, PQerrorMessage(p->c), err);
	rc = rc ? rc : settings(p, err);
	rc = rc ? rc : schema_find(p, fw_dsn_option(d, "schema"), err);
	rc = rc ? rc : pg_migrate(p, cfg->flags & FW_STORE_CREATE, cfg->flags & FW_STORE_NO_MIGRATE, err);
	return rc ? rc : clock_read(p, err);
}

static int postgres_open(const struct fw_store_config *cfg, struct fw_store **out, struct fw_err *err)
{
	struct fw_buf shown = FW_BUF_INIT(0);
	struct pg *p = calloc(1, sizeof(*p));
	struct fw_arena a;
	struct fw_dsn d;
	int rc;

	if (!p)
		return fw_err_set(err, FW_ENOMEM, "store: out of memory");
	fw_arena_init(&a, 0);
	p->base.driver = &fw_store_postgres;
	p->read_only = cfg->flags & FW_STORE_READ;
	p->relaxed = cfg->relaxed;
	p->busy_timeout_ms = cfg->busy_timeout_ms;
	fw_dsn_show(&shown, cfg->url);
	(void)fw_str_copy(p->name, sizeof(p->name), fw_buf_str(&shown));
	fw_buf_finish(&shown);
	rc = fw_dsn_split(&a, cfg->url, &d, err);
	rc = rc ? rc : opened(p, &d, cfg, err);
	fw_arena_finish(&a);
	if (rc)
		postgres_close(&p->base);
	else
		*out = &p->base;
	return rc;
}

static int postgres_ping(struct fw_store *st, struct fw_err *err)
{
	return clock_read(pg_of(st), err);
}

static int postgres_clock(struct fw_store *st, int64_t *now_ms, struct fw_err *err)
{
	int rc = clock_read(pg_of(st), err);

	*now_ms = rc ? 0 : pg_now_ms(pg_of(st));
	return rc;
}

/* ---- waiting ----------------------------------------------------------------------------------------------------------- */

void pg_hear(struct pg *p)
{
	PGnotify *n;

	while ((n = PQnotifies(p->c))) {
		if (n->be_pid != PQbackendPID(p->c)) { /* one's own do not count */
			p->heard = true;
			p->look_all_ms = p->look_again_ms = 0;
		}
		PQfreemem(n);
	}
}

static int hear(struct pg *p, bool *changed, struct fw_err *err)
{
	if (p->broken || !PQconsumeInput(p->c))
		return gone(p, PQerrorMessage(p->c), err);
	pg_hear(p);
	*changed |= p->heard;
	p->heard = false;
	return 0;
}

static int listen_on(struct pg *p, struct fw_err *err)
{
	char *name, sql[160];
	int rc = 0;

	if (p->listening)
		return 0;
	name = PQescapeIdentifier(p->c, p->channel, strlen(p->channel));
	if (!name || !fw_snprintf(sql, sizeof(sql), "LISTEN %s", name))
		rc = no_memory(p, err);
	PQfreemem(name);
	if (!rc) {
		pg_send(p, PG_ONCE, sql);
		rc = pg_run(p, err);
	}
	p->listening = !rc;
	return rc;
}

static int postgres_changed(struct fw_store *st, bool *changed, struct fw_err *err)
{
	struct pg *p = pg_of(st);
	int rc = listen_on(p, err);

	return rc ? rc : hear(p, changed, err);
}

static int postgres_wait(struct fw_store *st, int wake_fd, int64_t timeout_ms, bool *changed, struct fw_err *err)
{
	struct pg *p = pg_of(st);
	int64_t start = fw_mono_ms();
	int rc = postgres_changed(st, changed, err);

	while (!rc && !*changed) {
		struct pollfd f[2] = {{.fd = PQsocket(p->c), .events = POLLIN}, {.fd = wake_fd, .events = POLLIN}};
		int64_t left = timeout_ms - (fw_mono_ms() - start);

		if (left <= 0)
			break;
		if (poll(f, 2, (int)FW_MIN(left, INT64_C(3600000))) > 0 && f[1].revents)
			break;
		rc = hear(p, changed, err);
	}
	return rc;
}

static const char *const schemes[] = {"postgres", "postgresql", NULL};

const struct fw_store_driver fw_store_postgres = {
	.abi = FW_STORE_ABI,
	.name = "postgres",
	.schemes = schemes,
	.open = postgres_open,
	.close = postgres_close,
	.ping = postgres_ping,
	.check = pg_check,
	.claim = pg_claim,
	.commit = pg_commit,
	.release = pg_release,
	.bury = pg_bury,
	.changed = postgres_changed,
	.wait = postgres_wait,
	.subscribe = pg_subscribe,
	.unsubscribe = pg_unsubscribe,
	.feed_find = pg_feed_find,
	.feed_list = pg_feed_list,
	.feed_set = pg_feed_set,
	.entry_list = pg_entry_list,
	.visit_list = pg_visit_list,
	.stats = pg_stats,
	.pending = pg_pending,
	.control_put = pg_control_put,
	.control_take = pg_control_take,
	.beat_list = pg_beat_list,
	.upkeep = pg_upkeep,
	.prune = pg_prune,
	.load = pg_load,
	.key_list = pg_key_list,
	.clock = postgres_clock,
	.inspect = pg_inspect,
};
