/* SPDX-License-Identifier: ISC */
/*
 * Opening and waiting, and the checks of `doctor` for PostgreSQL. A connection belongs to the
 * process that opened it.
 */
#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "store/driver.h"
#include "store/sql/open.h"
#include "store/postgres/postgres.h"
#include "store/sql/search.h"

#define CONNECT_S "10"
#define STATEMENT_MS 60000 /* limit for one statement */
/* a worker that is stopped in a transaction gives its locks back; readers get more time */
#define IDLE_IN_TRANSACTION_MS 10000
#define LOCK_SCHEMA 1

/* ---- connecting ------------------------------------------------------------------------------ */

/* libpq has no code for a refused connection, only the text. */
static int connect_failed(struct postgres_db *s, struct fw_err *err)
{
	static const struct {
		const char *words;
		int rc;
		const char *remedy;
	} KNOWN[] = {
		{"too many clients", FW_EAGAIN, "raise max_connections or run fewer workers"},
		{"remaining connection slots", FW_EAGAIN, "raise max_connections or run fewer workers"},
		{"too many connections", FW_EAGAIN,
			"raise the limit of the role or the database, or run fewer workers"},
		{"authentication failed", FW_EINVAL, "check user and password in the URL"},
		{"no password supplied", FW_EINVAL, "add a password to the URL or to ~/.pgpass"},
		{"pg_hba.conf", FW_EINVAL, "permit this machine in the server's pg_hba.conf"},
		{"does not exist", FW_EINVAL, "create it, or choose another in the URL"},
		{"invalid connection option", FW_EINVAL, "use libpq's options, or schema"},
		{"invalid sslmode", FW_EINVAL, "see libpq's sslmode"},
		{"does not support SSL", FW_EINVAL, "enable SSL on the server, or choose another sslmode"},
		{"certificate", FW_EINVAL, "check sslrootcert and the server's certificate"},
	};
	const char *text = PQerrorMessage(s->c);
	struct fw_str rest, line = fw_str_split(fw_str(text), '\n', &rest);

	if (strstr(text, "session is read-only")) /* the server's line says no more, but takes room */
		return fw_err_set(err, FW_EIO, "%s: %s", s->sql.name, SQL_READ_ONLY);
	for (size_t i = 0; i < FW_N(KNOWN); i++) {
		if (strstr(text, KNOWN[i].words))
			return fw_err_set(
				err, KNOWN[i].rc, "%s: %.*s: %s", s->sql.name, FW_STR_ARG(line), KNOWN[i].remedy);
	}
	return fw_err_set(err, FW_EIO, "%s: cannot be reached (%.*s): check the server and the address", s->sql.name,
		FW_STR_ARG(line));
}

struct postgres_options {
	const char *key[FW_DSN_OPTIONS + 16], *value[FW_DSN_OPTIONS + 16];
	size_t n;
};

static void option_add(struct postgres_options *q, const char *key, const char *value)
{
	if (!value)
		return;
	assert(q->n + 1 < FW_N(q->key));
	q->key[q->n] = key;
	q->value[q->n++] = value;
	q->key[q->n] = NULL;
}

/* Options of the URL come later, and so override these. */
static int postgres_connect(struct postgres_db *s, const struct fw_dsn *d, struct fw_err *err)
{
	struct postgres_options q = {.n = 0};
	char port[12] = "";

	option_add(&q, "application_name", "feedwheel");
	option_add(&q, "connect_timeout", CONNECT_S);
	option_add(&q, "keepalives_idle", "15");
	option_add(&q, "keepalives_interval", "5");
	option_add(&q, "keepalives_count", "3");
	option_add(&q, "tcp_user_timeout", "30000");
	if (!s->sql.read_only)
		/* among several hosts the primary */
		option_add(&q, "target_session_attrs", "read-write");
	option_add(&q, "host", d->host.p);
	option_add(&q, "port", d->port && fw_snprintf(port, sizeof(port), "%d", d->port) ? port : NULL);
	option_add(&q, "user", d->user.p);
	option_add(&q, "password", d->password.p);
	option_add(&q, "dbname", d->path.len ? d->path.p : NULL);
	for (size_t i = 0; i < d->option_n; i++) {
		if (!fw_str_eq(d->option[i].name, FW_STR("schema")))
			option_add(&q, d->option[i].name.p, d->option[i].value.p);
	}
	option_add(&q, "client_encoding", "UTF8");
	s->c = PQconnectdbParams(q.key, q.value, 0);
	if (!s->c)
		return fw_no_memory(err);
	return PQstatus(s->c) == CONNECTION_OK ? 0 : connect_failed(s, err);
}

static int postgres_server_check(struct postgres_db *s, struct fw_err *err)
{
	const char *encoding = PQparameterStatus(s->c, "server_encoding");

	if (PQserverVersion(s->c) < POSTGRES_MIN)
		return fw_err_set(err, FW_EINVAL, "%s: the server is PostgreSQL %d: feedwheel needs %d or newer",
			s->sql.name, PQserverVersion(s->c) / 10000, POSTGRES_MIN / 10000);
	if (!encoding || strcmp(encoding, "UTF8") != 0)
		return fw_err_set(err, FW_EINVAL,
			"%s: the database's encoding is %s: create a database with encoding UTF8", s->sql.name,
			encoding ? encoding : "unknown");
	return 0;
}

struct postgres_server {
	int64_t pid;
	char version[300];
};

static int postgres_server_row(void *ctx, const struct sql_row *row)
{
	struct postgres_server *is = ctx;

	is->pid = sql_int(row, 0);
	(void)fw_str_copy(is->version, sizeof(is->version), fw_str_sub(sql_str(row, 1), 0, sizeof(is->version) - 1));
	return 0;
}

/*
 * Finds out what is behind the connection. A pooler reports a process id of its own instead of the
 * server's.
 */
static int session_identify(struct postgres_db *s, struct fw_err *err)
{
	int64_t seed[] = {fw_mono_us(), getpid(), (int64_t)(intptr_t)s};
	char session[sizeof(s->session)];
	struct postgres_server is = {.pid = 0};
	int rc = sql_query(&s->sql,
		"SELECT pg_backend_pid()::int8, version() || coalesce((SELECT ', Citus ' ||"
		" extversion FROM pg_extension WHERE extname = 'citus'), '')",
		SQL_NONE, postgres_server_row, &is, err);

	rc = rc ? rc : fw_store_server_check(s->sql.name, is.version, err);
	if (rc || is.pid == PQbackendPID(s->c))
		return rc;
	(void)fw_snprintf(session, sizeof(session), "%llx", (unsigned long long)fw_hash64(seed, sizeof(seed)));
	rc = sql_exec_count(&s->sql, "SELECT set_config('feedwheel.session', ?1, false)",
		SQL_V(SQL_TEXT(fw_str(session))), &(int64_t){0}, err);
	memcpy(s->session, session, sizeof(session));
	return rc;
}

/*
 * The planner must not use scans and hash joins: a worker looks up some hundred rows by key,
 * whatever the current statistics say.
 */
static int session_settings(struct postgres_db *s, struct fw_err *err)
{
	char sql[1200];

	if (!fw_snprintf(sql, sizeof(sql),
		    "SET jit = off; SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off;"
		    "SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;"
		    "SET max_parallel_workers_per_gather = 0; SET client_min_messages = warning; SET timezone = 'UTC';"
		    "SET statement_timeout = %d; SET idle_in_transaction_session_timeout = %d; SET lock_timeout = %lld;"
		    "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 3; SET tcp_keepalives_count = 3; SET "
		    "tcp_user_timeout = 15000;"
		    "SET default_transaction_isolation = 'read committed'; SET default_transaction_read_only = %s; %s"
		    "SELECT set_config('default_toast_compression', 'lz4', false) FROM pg_settings"
		    " WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)",
		    STATEMENT_MS, IDLE_IN_TRANSACTION_MS * (s->sql.read_only ? 6 : 1),
		    (long long)s->sql.busy_timeout_ms, s->sql.read_only ? "on" : "off",
		    s->sql.async_commit ? "SET synchronous_commit = off; " : ""))
		return fw_no_memory(err);
	return s->sql.dialect->script(&s->sql, sql, err);
}

static int schema_row(void *ctx, const struct sql_row *row)
{
	struct postgres_db *s = ctx;

	(void)fw_str_copy(s->schema, sizeof(s->schema), sql_str(row, 0));
	return 0;
}

/* Which schema holds this store. All names are looked up in it and nowhere else. */
static int schema_find(struct postgres_db *s, struct fw_str name, struct fw_err *err)
{
	int rc = name.p ? 0 : sql_query(&s->sql, "SELECT current_schema()::text", SQL_NONE, schema_row, s, err);

	if (rc)
		return rc;
	if (!name.p && !*s->schema)
		return fw_err_set(err, FW_EINVAL,
			"%s: no schema of the search_path exists: add ?schema=NAME to the URL", s->sql.name);
	if (name.p && (!name.len || !fw_str_copy(s->schema, sizeof(s->schema), name)))
		return fw_err_set(err, FW_EINVAL, "%s: schema: write a name of 1 to 63 bytes", s->sql.name);
	(void)fw_snprintf(s->channel, sizeof(s->channel), "feedwheel_%.50s", s->schema);
	(void)fw_snprintf(s->channel_new, sizeof(s->channel_new), "feedwheel_%.49s_new", s->schema);
	return sql_exec_count(&s->sql, "SELECT set_config('search_path', quote_ident(?1), false)",
		SQL_V(SQL_TEXT(fw_str(s->schema))), &(int64_t){0}, err);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static int postgres_tables_row(void *ctx, const struct sql_row *row)
{
	bool *there = ctx;

	there[0] = sql_int(row, 0);
	there[1] = sql_int(row, 1);
	return 0;
}

static int postgres_schema_find(struct sql *s, int64_t *version, struct fw_err *err)
{
	const char *schema = postgres_db(s)->schema;
	bool there[2] = {false}; /* a table of ours; tables of another program */
	int rc = sql_query(s,
		"SELECT count(*) FILTER (WHERE relname = 'meta'), count(*) FILTER (WHERE relname IN"
		" ('feeds', 'entries', 'schedule', 'hosts')) FROM pg_class WHERE relnamespace = (SELECT oid FROM"
		" pg_namespace WHERE nspname = ?1)",
		SQL_V(SQL_TEXT(fw_str(schema))), postgres_tables_row, there, err);

	if (!rc && there[1] && !there[0])
		return fw_err_set(err, FW_EINVAL,
			"%s: schema \"%s\" holds tables of another program, or of feedwheel before its first release: "
			"add ?schema=NAME to the URL",
			s->name, schema);
	return rc ? rc : sql_schema_version(s, there[0], version, err);
}

/*
 * CREATE SCHEMA IF NOT EXISTS needs the right to create one, which the owner of a schema may lack.
 */
static int schema_create(struct postgres_db *s, struct fw_err *err)
{
	char sql[160], *name;
	int64_t there;
	int rc = sql_query_int(&s->sql, "SELECT count(*) FROM pg_namespace WHERE nspname = ?1",
		SQL_V(SQL_TEXT(fw_str(s->schema))), 0, &there, err);

	if (rc || there)
		return rc;
	name = PQescapeIdentifier(s->c, s->schema, strlen(s->schema));
	if (!name || !fw_snprintf(sql, sizeof(sql), "CREATE SCHEMA IF NOT EXISTS %s", name))
		rc = fw_no_memory(err);
	PQfreemem(name);
	return rc ? rc : s->sql.dialect->script(&s->sql, sql, err);
}

static int postgres_schema_lock(struct sql *s, struct fw_err *err)
{
	const char *schema = postgres_db(s)->schema;
	int64_t key = (int64_t)(fw_hash64(schema, strlen(schema)) >> 8 << 4 | LOCK_SCHEMA);
	int rc = s->dialect->begin(s, err);

	if (rc)
		return rc;
	rc = sql_exec_count(s, "SELECT pg_advisory_xact_lock(?1)", SQL_V(SQL_INT(key)), &(int64_t){0}, err);
	rc = rc ? rc : schema_create(postgres_db(s), err);
	return rc ? sql_end(s, rc, err) : 0;
}

/* ---- open and close -------------------------------------------------------------------------- */

static void postgres_close(struct store *st)
{
	struct postgres_db *s = postgres_db(sql_of(st));

	PQfinish(s->c);
	fw_buf_finish(&s->value);
	free(s->sent);
	free(s->sql.name);
	free(s);
}

static int postgres_open_tables(struct sql *sql, const struct fw_dsn *d, bool create, struct fw_err *err)
{
	static const struct sql_tables_open TABLES = {
		.read_version = postgres_schema_find,
		.lock = postgres_schema_lock,
		.unlock = sql_end,
		.search = postgres_search_tables,
		.search_upgrade = postgres_search_upgrade,
		.doors = postgres_doors,
	};
	struct postgres_db *s = postgres_db(sql);
	int rc = postgres_connect(s, d, err);

	rc = rc ? rc : postgres_server_check(s, err);
	if (!rc && !PQenterPipelineMode(s->c))
		rc = postgres_broken(s, PQerrorMessage(s->c), err);
	rc = rc ? rc : session_identify(s, err);
	rc = rc ? rc : session_settings(s, err);
	rc = rc ? rc : schema_find(s, fw_dsn_option(d, "schema"), err);
	return rc ? rc : sql_tables_open(sql, create, &TABLES, err);
}

static int postgres_open(const struct fw_store_config *cfg, struct store **out, struct fw_err *err)
{
	static const struct sql_server SERVER = {&postgres_dialect, sizeof(struct postgres_db), postgres_open_tables};

	return sql_open_server(&store_postgres, &SERVER, cfg, out, err);
}

/* ---- waiting --------------------------------------------------------------------------------- */

int postgres_notify(struct sql *sql, struct fw_err *err)
{
	return sql_exec(sql, "SELECT pg_notify(?1, '')", SQL_V(SQL_TEXT(fw_str(postgres_db(sql)->channel))), err);
}

int postgres_entries_new(struct sql *sql, int64_t entry_id, struct fw_err *err)
{
	char id[24];

	(void)fw_snprintf(id, sizeof(id), "%lld", (long long)entry_id);
	return sql_exec(sql, "SELECT pg_notify(?1, ?2)",
		SQL_V(SQL_TEXT(fw_str(postgres_db(sql)->channel_new)), SQL_TEXT(fw_str(id))), err);
}

static int channel_listen(struct postgres_db *s, struct fw_err *err)
{
	char *name, sql[160];
	int rc = 0;

	if (s->listening)
		return 0;
	name = PQescapeIdentifier(s->c, s->channel, strlen(s->channel));
	if (!name || !fw_snprintf(sql, sizeof(sql), "LISTEN %s", name))
		rc = fw_no_memory(err);
	PQfreemem(name);
	rc = rc ? rc : s->sql.dialect->script(&s->sql, sql, err);
	s->listening = !rc;
	return rc;
}

/* Reads the notifications of other sessions; our own do not count. */
static int notifications_read(struct postgres_db *s, struct fw_err *err)
{
	PGnotify *n;

	if (s->broken || !PQconsumeInput(s->c))
		return postgres_broken(s, PQerrorMessage(s->c), err);
	while ((n = PQnotifies(s->c))) {
		s->notified |= n->be_pid != PQbackendPID(s->c);
		PQfreemem(n);
	}
	return 0;
}

int postgres_wait(struct store *st, int wake_fd, int64_t timeout_ms, bool *changed, struct fw_err *err)
{
	struct postgres_db *s = postgres_db(sql_of(st));
	int64_t start = fw_mono_ms();
	int rc = channel_listen(s, err);

	rc = rc ? rc : notifications_read(s, err);
	while (!rc && !s->notified) {
		struct pollfd f[2] = {{.fd = PQsocket(s->c), .events = POLLIN}, {.fd = wake_fd, .events = POLLIN}};
		int64_t left = timeout_ms - (fw_mono_ms() - start);

		if (left <= 0 || (poll(f, 2, (int)FW_MIN(left, INT64_C(3600000))) > 0 && f[1].revents))
			break;
		rc = notifications_read(s, err);
	}
	*changed = !rc && s->notified;
	s->notified = s->notified && rc;
	return rc;
}

/* ---- doctor ---------------------------------------------------------------------------------- */

struct postgres_inspection {
	fw_inspect_cb *cb;
	void *ctx;
};

static bool setting_is_on(struct fw_str s)
{
	return fw_str_eq(s, FW_STR("on"));
}

static int postgres_inspect_row(void *ctx, const struct sql_row *row)
{
	const struct postgres_inspection *i = ctx;
	struct fw_str fsync = sql_str(row, 1), commit = sql_str(row, 2), pages = sql_str(row, 3);
	int64_t old_s = sql_int(row, 5);
	bool vacuum = setting_is_on(sql_str(row, 4));
	char found[200];

	(void)fw_snprintf(found, sizeof(found), "PostgreSQL %.*s", FW_STR_ARG(sql_str(row, 0)));
	i->cb(i->ctx, "server", 0, found, "");
	(void)fw_snprintf(found, sizeof(found), "fsync %.*s, full_page_writes %.*s, synchronous_commit %.*s",
		FW_STR_ARG(fsync), FW_STR_ARG(pages), FW_STR_ARG(commit));
	if (!setting_is_on(fsync) || !setting_is_on(pages))
		i->cb(i->ctx, "durability", 2, found,
			"a power cut may destroy the store: turn on fsync and full_page_writes");
	else if (fw_str_eq(commit, FW_STR("off")))
		i->cb(i->ctx, "durability", 1, found,
			"a power cut may lose the last visits: turn on synchronous_commit");
	else
		i->cb(i->ctx, "durability", 0, found, "");
	i->cb(i->ctx, "vacuum", vacuum ? 0 : 2, vacuum ? "autovacuum is on" : "autovacuum is off",
		vacuum ? "" : "the schedule table grows without limit: turn on autovacuum");
	(void)fw_snprintf(found, sizeof(found), "the oldest open transaction is %lld s old", (long long)old_s);
	i->cb(i->ctx, "long transactions", old_s > 600 ? 1 : 0, found,
		old_s > 600 ? "vacuum cannot remove newer dead rows: find its session in pg_stat_activity" : "");
	return 0;
}

int postgres_inspect(struct store *st, bool deep, fw_inspect_cb *cb, void *ctx, struct fw_err *err)
{
	static const struct sql_check INDEX = {"search", "search index: entry %lld is missing",
		"SELECT e.id, 0 FROM entries e WHERE e.id <= " SQL_SEARCH_INDEXED_ID
		" AND NOT EXISTS (SELECT 1 FROM entries_fts f WHERE f.id = e.id)"
		" AND NOT EXISTS (SELECT 1 FROM entries_changed c WHERE c.entry_id = e.id) LIMIT 20"};

	if (deep)
		return sql_check(sql_of(st),
			"BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL enable_seqscan = on;"
			" SET LOCAL enable_hashjoin = on; SET LOCAL statement_timeout = 0",
			&INDEX, cb, ctx, err);
	return sql_query(sql_of(st),
		"SELECT current_setting('server_version'), current_setting('fsync'),"
		" current_setting('synchronous_commit'), current_setting('full_page_writes'),"
		" current_setting('autovacuum'),"
		" (SELECT coalesce(max(extract(epoch FROM now() - xact_start)), 0)::int8 FROM pg_stat_activity"
		" WHERE pid <> pg_backend_pid() AND backend_xmin IS NOT NULL)",
		SQL_NONE, postgres_inspect_row, &(struct postgres_inspection){cb, ctx}, err);
}

static const char *const postgres_schemes[] = {FW_STORE_POSTGRES_SCHEMES};

const struct store_driver store_postgres = {
	.name = "postgres",
	.schemes = postgres_schemes,
	.open = postgres_open,
	.close = postgres_close,
	.inspect = postgres_inspect,
	.wait = postgres_wait,
	SQL_SLOTS,
};
