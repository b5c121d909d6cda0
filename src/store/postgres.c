/* SPDX-License-Identifier: ISC */
/*
 * The PostgreSQL driver: any number of workers on any number of machines share one wheel.
 *
 * This file opens and closes, turns the server's codes into ours, and waits. Statements and answers: postgres_send.c. What is stored
 * where: postgres_schema.c. Lending: postgres_wheel.c and postgres_loans.c. Outcomes: postgres_commit.c. Entries:
 * postgres_entries.c. Words: postgres_search.c. Who is subscribed: postgres_members.c. What people look at: postgres_window.c.
 *
 * Fork: a connection belongs to the process that opened it; nothing is shared between handles.
 */
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "store/dsn.h"
#include "store/postgres.h"

#define CONNECT_S "10"
#define STATEMENT_MS 60000      /* no statement of a worker takes longer; lists may */
#define LOOK_FIRST_MS 1000
#define IDLE_IN_TRANSACTION_MS 10000 /* a worker that is stopped in the middle gives its locks back; lists may take longer */

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

int pg_gone(struct pg *p, const char *why, struct fw_err *err)
{
	struct fw_str rest, line = fw_str_split(fw_str(why), '\n', &rest);

	p->broken = true;
	return fw_err_set(err, FW_EIO, "%s: the connection broke (%.*s): it is opened anew; check the server and the network", p->name,
		FW_STR_ARG(line));
}

#define POOLER "a pooler gives each transaction another session: put it into session mode (pgbouncer: pool_mode = session)"

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
	{"22012", FW_EINVAL, POOLER},
	{"26000", FW_EINVAL, POOLER},
	{"42P05", FW_EINVAL, POOLER},
	{"42501", FW_EINVAL, "grant the user what it needs on the schema"},
	{"42P01", FW_EINVAL, "tables are missing: were they dropped?"},
};

int pg_error(struct pg *p, const PGresult *r, struct fw_err *err)
{
	const char *state = r ? PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL;

	(void)fw_snprintf(p->state, sizeof(p->state), "%s", state ? state : "");
	if (!state || is_state(state, "08") || is_state(state, "57P") || is_state(state, "25P03") || PQstatus(p->c) == CONNECTION_BAD)
		return pg_gone(p, said(p, r), err);
	for (size_t i = 0; i < FW_N(answers); i++) {
		if (!is_state(state, answers[i].state))
			continue;
		p->broken |= answers[i].rc == FW_EIO || strcmp(answers[i].remedy, POOLER) == 0;
		if (is_state(state, "22012")) /* of our making: see send_guard */
			return fw_err_set(err, answers[i].rc, "%s: " POOLER, p->name);
		return fw_err_set(err, answers[i].rc, "%s: %s (%s): %s", p->name, said(p, r), state, answers[i].remedy);
	}
	return fw_err_set(err, FW_EINVAL, "%s: %s (%s)", p->name, said(p, r), state);
}

/* ---- life -------------------------------------------------------------------------------------------------------------- */

static void postgres_close(struct fw_store *st)
{
	struct pg *p = pg_of(st);

	pg_answers_forget(p);
	PQfinish(p->c);
	fw_buf_finish(&p->arg);
	fw_buf_finish(&p->text);
	free(p->hint);
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
		return pg_no_memory(p, err);
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
			"SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 3; SET tcp_keepalives_count = 3; SET tcp_user_timeout = 15000;"
			"SET default_transaction_isolation = 'read committed'; SET default_transaction_read_only = %s; %s"
			"SELECT set_config('default_toast_compression', 'lz4', false) FROM pg_settings"
			" WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)", STATEMENT_MS, IDLE_IN_TRANSACTION_MS * (p->read_only ? 6 : 1),
			(long long)p->busy_timeout_ms, p->read_only ? "on" : "off", p->relaxed ? "SET synchronous_commit = off; " : ""))
		return pg_no_memory(p, err);
	return pg_exec(p, sql, err);
}

/* What is really behind the connection. Poolers do not tell the server's process number, but one of their own. */
static int server_find(struct pg *p, struct fw_err *err)
{
	int64_t mark[] = {fw_mono_us(), getpid(), (int64_t)(intptr_t)p};
	char session[sizeof(p->session)];
	int rc;

	pg_send(p, PG_ONCE, "SELECT pg_backend_pid(), version() || coalesce((SELECT ', Citus ' || extversion FROM pg_extension"
		" WHERE extname = 'citus'), '')");
	rc = pg_run(p, err);
	rc = rc ? rc : fw_store_server_known(p->name, PQgetvalue(p->res[0], 0, 1), err);
	if (rc || pg_get_int(p->res[0], 0, 0) == PQbackendPID(p->c))
		return rc;
	(void)fw_snprintf(session, sizeof(session), "%llx", (unsigned long long)fw_hash64(mark, sizeof(mark)));
	pg_str(p, fw_str(session));
	pg_send(p, PG_ONCE, "SELECT set_config('feedwheel.session', $1, false)");
	rc = pg_run(p, err);
	memcpy(p->session, session, sizeof(session));
	return rc;
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

static int clock_read(struct pg *p, struct fw_err *err)
{
	for (int i = 0; i < FW_CLOCK_TRIES; i++) {
		int64_t asked_ms = fw_mono_ms();
		int rc;

		pg_send(p, PG_CLOCK, "SELECT " PG_CLOCK_SQL);
		rc = pg_run(p, err);
		if (rc || fw_store_clock_note(&p->clock_ms, pg_get_int(p->res[0], 0, 0), asked_ms))
			return rc;
	}
	return fw_store_clock_late(p->name, err);
}

static int opened(struct pg *p, const struct fw_dsn *d, const struct fw_store_config *cfg, struct fw_err *err)
{
	int rc = connect_to(p, d, err);

	rc = rc ? rc : server_check(p, err);
	if (!rc && !PQenterPipelineMode(p->c))
		rc = pg_gone(p, PQerrorMessage(p->c), err);
	rc = rc ? rc : server_find(p, err);
	rc = rc ? rc : settings(p, err);
	rc = rc ? rc : schema_find(p, fw_dsn_option(d, "schema"), err);
	rc = rc ? rc : pg_migrate(p, cfg->flags & FW_STORE_CREATE, cfg->flags & FW_STORE_NO_MIGRATE, err);
	/* many that are opened at once do not all look at the whole queue now; who finds too little there does */
	p->look_all_ms = fw_mono_ms() + LOOK_FIRST_MS + fw_mono_us() % LOOK_FIRST_MS;
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

static int listen_on(struct pg *p, struct fw_err *err)
{
	char *name, sql[160];
	int rc = 0;

	if (p->listening)
		return 0;
	name = PQescapeIdentifier(p->c, p->channel, strlen(p->channel));
	if (!name || !fw_snprintf(sql, sizeof(sql), "LISTEN %s", name))
		rc = pg_no_memory(p, err);
	PQfreemem(name);
	if (!rc) {
		pg_send(p, PG_ONCE, sql);
		rc = pg_run(p, err);
	}
	p->listening = !rc;
	return rc;
}

int pg_hear(struct pg *p, struct fw_err *err)
{
	int rc = listen_on(p, err);
	PGnotify *n;

	if (rc)
		return rc;
	if (p->broken || !PQconsumeInput(p->c))
		return pg_gone(p, PQerrorMessage(p->c), err);
	while ((n = PQnotifies(p->c))) {
		if (n->be_pid != PQbackendPID(p->c)) { /* one's own do not count */
			p->heard = true;
			p->look_all_ms = p->look_again_ms = 0;
		}
		PQfreemem(n);
	}
	return 0;
}

static int postgres_changed(struct fw_store *st, bool *changed, struct fw_err *err)
{
	struct pg *p = pg_of(st);
	int rc = pg_hear(p, err);

	if (rc)
		return rc;
	*changed |= p->heard;
	p->heard = false;
	return 0;
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
		rc = postgres_changed(st, changed, err);
	}
	return rc;
}

static const char *const schemes[] = {FW_STORE_POSTGRES_SCHEMES};

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
	.event_put = pg_event_put,
	.event_bury = pg_event_bury,
	.event_list = pg_event_list,
	.event_dead_list = pg_event_dead_list,
	.event_prune = pg_event_prune,
	.record_put = pg_record_put,
	.record_get = pg_record_get,
	.record_list = pg_record_list,
	.record_remove = pg_record_remove,
	.record_prune = pg_record_prune,
	.lend = pg_lend,
	.event_unbury = pg_event_unbury,
	.due_list = pg_due_list,
	.feed_merge = pg_feed_merge,
};
