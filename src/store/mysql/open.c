/* SPDX-License-Identifier: ISC */
/*
 * Opening, closing, waiting. Transactions are READ COMMITTED, so that locks are on rows and never
 * on gaps. The connection does not survive fork(); one thread at a time.
 */
#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "store/driver.h"
#include "store/sql/open.h"
#include "store/mysql/mysql.h"

#define CONNECT_TIMEOUT_S 10
#define LOGIN_PLUGIN 2 /* MYSQL_CLIENT_AUTHENTICATION_PLUGIN, of a header of inner parts */
/* without a byte from the server; then the connection counts as broken */
#define READ_TIMEOUT_S 300
/* TCP closes the connection when sent bytes are not acknowledged for this long */
#define UNACKED_TIMEOUT_MS 30000
#define MARIADB_MIN 100600 /* SKIP LOCKED, JSON_TABLE */
#define MYSQL_MIN 80013
#define IDLE_IN_TRANSACTION_S 15
#define MYSQL_IDLE_S 600
#define POLL_FIRST_MS 200 /* interval between two reads of `changes`, which grows */
#define POLL_LAST_MS 800

/* ---- connecting ------------------------------------------------------------------------------ */

static const char *const OPTIONS[] = {
	"socket", "connect_timeout", "timeout", "ssl", "ssl_ca", "ssl_cert", "ssl_key", "ssl_verify", NULL};

/* A boolean option of the URL; absent: off. */
static int option_is_on(struct mysql_db *s, const struct fw_dsn *d, const char *name, my_bool *on, struct fw_err *err)
{
	static const char *const WORDS[] = {"0", "no", "off", "1", "yes", "on"};
	struct fw_str value = fw_dsn_option(d, name);

	*on = 0;
	if (!value.p)
		return 0;
	for (size_t i = 0; i < FW_N(WORDS); i++) {
		if (fw_str_eq(value, fw_str(WORDS[i]))) {
			*on = i >= FW_N(WORDS) / 2;
			return 0;
		}
	}
	return fw_err_set(err, FW_EINVAL, "%s: %s is '%.*s': write yes or no", s->sql.name, name, FW_STR_ARG(value));
}

static int connect_options_set(struct mysql_db *s, const struct fw_dsn *d, struct fw_err *err)
{
	struct fw_str ca = fw_dsn_option(d, "ssl_ca"), cert = fw_dsn_option(d, "ssl_cert"),
		      key = fw_dsn_option(d, "ssl_key");
	my_bool yes = 1, tls, check;
	unsigned long packet = 1UL << 30;
	int64_t connect_s, read_timeout_s;
	unsigned c, t;
	int rc = fw_dsn_only(d, OPTIONS, err);

	rc = rc ? rc : fw_dsn_number(d, "connect_timeout", 1, 3600, CONNECT_TIMEOUT_S, &connect_s, err);
	rc = rc ? rc : fw_dsn_number(d, "timeout", 1, 86400, READ_TIMEOUT_S, &read_timeout_s, err);
	rc = rc ? rc : option_is_on(s, d, "ssl", &tls, err);
	rc = rc ? rc : option_is_on(s, d, "ssl_verify", &check, err);
	if (rc)
		return rc;
	c = s->timeout_s ? s->timeout_s : (unsigned)connect_s;
	t = s->timeout_s ? s->timeout_s : (unsigned)read_timeout_s;
	s->read_timeout_ms = t * INT64_C(1000);
	mysql_optionsv(s->c, MYSQL_OPT_CONNECT_TIMEOUT, &c);
	mysql_optionsv(s->c, MYSQL_OPT_READ_TIMEOUT, &t);
	mysql_optionsv(s->c, MYSQL_OPT_WRITE_TIMEOUT, &t);
	mysql_optionsv(s->c, MYSQL_OPT_MAX_ALLOWED_PACKET, &packet);
	mysql_optionsv(s->c, MYSQL_SET_CHARSET_NAME, "utf8mb4");
	s->tls = tls || ca.p || cert.p || key.p || check;
	if (s->tls) {
		mysql_ssl_set(s->c, key.p, cert.p, ca.p, NULL, NULL);
		mysql_optionsv(s->c, MYSQL_OPT_SSL_ENFORCE, &yes);
	}
	/* Always set: Connector/C 3.4 otherwise uses TLS and verifies the server's certificate. */
	mysql_optionsv(s->c, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &check);
	return 0;
}

/*
 * Limits the time for lost packets. The library leaves it to TCP, which doubles its timeout at each
 * retransmission.
 */
static void tcp_timeout_set(MYSQL *c)
{
#ifdef TCP_USER_TIMEOUT
	const unsigned ms = UNACKED_TIMEOUT_MS;

	/* fails on a Unix socket, which does not need it */
	(void)setsockopt(mysql_get_socket(c), IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
#else
	(void)c;
#endif
}

int mysql_connect_to(struct mysql_db *s, const struct fw_dsn *d, const char *schema, struct fw_err *err)
{
	int rc;

	s->c = mysql_init(NULL);
	rc = s->c ? connect_options_set(s, d, err) : fw_no_memory(err);
	if (rc)
		return rc;
	if (!mysql_real_connect(s->c, d->host.p, d->user.p, d->password.p, schema, (unsigned)d->port,
		    fw_dsn_option(d, "socket").p, CLIENT_MULTI_STATEMENTS))
		return mysql_failed(s, "connecting", err);
	tcp_timeout_set(s->c);
	/*
	 * The library continues in plain text if the server has no TLS and the certificate is not
	 * verified.
	 */
	if (s->tls && !mysql_get_ssl_cipher(s->c))
		return fw_err_set(err, FW_EINVAL,
			"%s: no TLS: the server has none: give it a certificate, or remove ssl from the URL",
			s->sql.name);
	return 0;
}

static int connection_open(struct mysql_db *s, const struct fw_dsn *d, bool create, struct fw_err *err)
{
	char sql[200];
	int rc = mysql_connect_to(s, d, s->schema, err);

	if (rc != FW_ENOTFOUND || !create)
		return rc;
	mysql_close(s->c); /* the database is missing: try to create it */
	rc = mysql_connect_to(s, d, NULL, err);
	if (rc)
		return rc;
	(void)fw_snprintf(sql, sizeof(sql),
		"CREATE DATABASE IF NOT EXISTS `%s` CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", s->schema);
	rc = s->sql.dialect->script(&s->sql, sql, err);
	return !rc && mysql_select_db(s->c, s->schema) ? mysql_failed(s, "opening", err) : rc;
}

static int mysql_server_check(struct mysql_db *s, struct fw_err *err)
{
	unsigned long version = mysql_get_server_version(s->c), extended = 0;

	s->mysql = !mariadb_connection(s->c);
	if (!s->mysql && !mariadb_get_infov(s->c, MARIADB_CONNECTION_EXTENDED_SERVER_CAPABILITIES, &extended))
		s->arrays = extended & (MARIADB_CLIENT_STMT_BULK_OPERATIONS >> 32);
	if (fw_store_server_check(s->sql.name, mysql_get_server_info(s->c), err))
		return FW_ERR_CODE(err);
	if (version < (s->mysql ? MYSQL_MIN : MARIADB_MIN))
		return fw_err_set(err, FW_EVERSION,
			"%s: the server is %s: feedwheel needs MariaDB 10.6, MySQL 8.0.13 or newer", s->sql.name,
			mysql_get_server_info(s->c));
	return 0;
}

static int server_row(void *ctx, const struct sql_row *row)
{
	struct mysql_db *s = ctx;

	s->packet_max = (size_t)sql_int(row, 0);
	s->server_mark = sql_int(row, 1);
	return 0;
}

/*
 * A session that was stopped or cut off in a transaction gives its locks back; MySQL has a timeout
 * for idle connections only. The limit for recursive queries of both servers is below the number of
 * shards.
 */
static int session_set(struct mysql_db *s, struct fw_err *err)
{
	long long wait_s = FW_MAX((s->sql.busy_timeout_ms + 999) / 1000, INT64_C(1));
	char sql[600];
	int rc;

	(void)fw_snprintf(sql, sizeof(sql),
		"SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00',"
		" autocommit = 1, innodb_lock_wait_timeout = %lld, lock_wait_timeout = %lld, %s = 4096, %s = %d;"
		"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED%s",
		wait_s, wait_s, s->mysql ? "cte_max_recursion_depth" : "max_recursive_iterations",
		s->mysql ? "wait_timeout" : "idle_transaction_timeout",
		s->mysql ? MYSQL_IDLE_S : IDLE_IN_TRANSACTION_S * (s->sql.read_only ? 6 : 1),
		s->sql.read_only ? ", READ ONLY" : "");
	rc = s->sql.dialect->script(&s->sql, sql, err);
	return rc ? rc :
		    sql_query(&s->sql, "SELECT @@max_allowed_packet, " MYSQL_SERVER_MARK, SQL_NONE, server_row, s, err);
}

/*
 * The database's name is the path of the URL. The characters are checked because the name becomes
 * part of a statement.
 */
static int schema_name(struct mysql_db *s, const struct fw_dsn *d, struct fw_err *err)
{
	bool ok = d->path.len > 0 && d->path.len < sizeof(s->schema);

	for (size_t i = 0; i < d->path.len && ok; i++) {
		unsigned char c = (unsigned char)d->path.p[i];

		ok = fw_is_alnum(c) || strchr("_-$", c) != NULL || c >= 0x80;
	}
	if (!ok)
		return fw_err_set(err, FW_EINVAL,
			"%s: no name of a database behind the host (letters, digits, _, -, $): write for"
			" example mysql://user@host/feedwheel",
			s->sql.name);
	(void)fw_str_copy(s->schema, sizeof(s->schema), d->path);
	return 0;
}

/* ---- tables ---------------------------------------------------------------------------------- */

int mysql_lock(struct mysql_db *s, const char *what, int64_t timeout_s, int64_t *got, struct fw_err *err)
{
	return sql_query_int(&s->sql, "SELECT get_lock(concat('feedwheel ', ?1, ' ', ?2), ?3)",
		SQL_V(SQL_TEXT(fw_str(what)), SQL_INT(fw_hash64(s->schema, strlen(s->schema)) >> 1),
			SQL_INT(timeout_s)),
		0, got, err);
}

int mysql_unlock(struct mysql_db *s, const char *what, struct fw_err *err)
{
	int64_t was;

	return sql_query_int(&s->sql, "SELECT release_lock(concat('feedwheel ', ?1, ' ', ?2))",
		SQL_V(SQL_TEXT(fw_str(what)), SQL_INT(fw_hash64(s->schema, strlen(s->schema)) >> 1)), 0, &was, err);
}

struct mysql_tables {
	int64_t tables, meta, last;
};

static int mysql_tables_row(void *ctx, const struct sql_row *row)
{
	*(struct mysql_tables *)ctx = (struct mysql_tables){sql_int(row, 0), sql_int(row, 1), sql_int(row, 2)};
	return 0;
}

/*
 * Tables are created one by one, and a kill may leave some: `meta` is the first, and the store
 * exists only with the last one. *version 0: create the tables.
 */
static int mysql_schema_find(struct sql *s, int64_t *version, struct fw_err *err)
{
	struct mysql_tables t = {0};
	int64_t rows = 1;
	int rc = sql_query(s,
		"SELECT count(*), coalesce(sum(table_name = 'meta'), 0), coalesce(sum(table_name = '" MYSQL_LAST_TABLE
		"'), 0) FROM information_schema.tables WHERE table_schema = database()",
		SQL_NONE, mysql_tables_row, &t, err);

	*version = 0;
	if (!rc && t.tables && !t.meta)
		return fw_err_set(err, FW_EINVAL, "%s: a database of another program: choose another one", s->name);
	if (!rc && t.meta && !t.last && t.tables == 1)
		rc = sql_query_int(s, "SELECT count(*) FROM meta", SQL_NONE, 0, &rows, err);
	if (!rc && t.meta && rows)
		rc = sql_schema_version(s, true, version, err);
	if (!rc && !t.last)
		*version = 0;
	return rc;
}

static int mysql_schema_lock(struct sql *s, struct fw_err *err)
{
	int64_t got;
	int rc = mysql_lock(mysql_db(s), "schema", FW_MAX(s->busy_timeout_ms / 1000, INT64_C(60)), &got, err);

	return rc || got ? rc :
			   fw_err_set(err, FW_EAGAIN,
				   "%s: another process has been creating the tables for too long: try again", s->name);
}

static int mysql_schema_unlock(struct sql *s, int rc, struct fw_err *err)
{
	/* the end of the connection also releases it */
	int late = mysql_unlock(mysql_db(s), "schema", rc ? NULL : err);

	return rc ? rc : late;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static int changes_read(struct mysql_db *s, int64_t *changes, struct fw_err *err)
{
	return sql_query_int(
		&s->sql, "SELECT value FROM meta WHERE name = 'changes'", SQL_NONE, s->changes, changes, err);
}

struct mysql_polled {
	int64_t changes, feed_id, control_id;
};

static int polled_row(void *ctx, const struct sql_row *row)
{
	*(struct mysql_polled *)ctx = (struct mysql_polled){sql_int(row, 0), sql_int(row, 1), sql_int(row, 2)};
	return 0;
}

/*
 * Has another process raised `changes`, or put a row into the inbox? Ids are never used twice, so a
 * new row has a higher one than any row before.
 */
static int changes_poll(struct mysql_db *s, bool *changed, struct fw_err *err)
{
	struct mysql_polled is = {.changes = s->changes};
	int rc = sql_query(&s->sql,
		s->sql.schema < SQL_SCHEMA_INBOX ?
			"SELECT value, 0, 0 FROM meta WHERE name = 'changes'" :
			"SELECT value, (SELECT max(id) FROM feeds_to_fetch), (SELECT max(id) FROM control)"
			" FROM meta WHERE name = 'changes'",
		SQL_NONE, polled_row, &is, err);

	*changed = !rc &&
		(is.changes != s->changes || is.feed_id > s->inbox_feed_id || is.control_id > s->inbox_control_id);
	if (rc)
		return rc;
	s->changes = is.changes;
	s->inbox_feed_id = FW_MAX(s->inbox_feed_id, is.feed_id);
	s->inbox_control_id = FW_MAX(s->inbox_control_id, is.control_id);
	return 0;
}

/*
 * The server cannot notify others: each process polls `changes`. The value that this transaction
 * gives it is not a change by another process.
 */
int mysql_notify(struct sql *sql, struct fw_err *err)
{
	return changes_read(mysql_db(sql), &mysql_db(sql)->own_change, err);
}

/*
 * Reads one row by its key, at most once per step_ms however often wake_fd becomes readable, and at
 * the end of each wait.
 */
static int mysql_wait(struct store *st, int wake_fd, int64_t timeout_ms, bool *changed, struct fw_err *err)
{
	struct mysql_db *s = mysql_db(sql_of(st));
	int64_t now = fw_mono_ms(), end = now + timeout_ms;

	assert(s->poll_interval_ms > 0);
	*changed = false;
	for (;; now = fw_mono_ms()) {
		struct pollfd p = {.fd = wake_fd, .events = POLLIN};

		if (now >= FW_MIN(s->polled_ms + s->poll_interval_ms, end)) {
			int rc = changes_poll(s, changed, err);

			s->poll_interval_ms = *changed ? POLL_FIRST_MS :
							 FW_MIN(s->poll_interval_ms * 5 / 4, (int64_t)POLL_LAST_MS);
			s->polled_ms = now;
			if (rc || *changed || now >= end)
				return rc;
		}
		if (poll(&p, 1, (int)(FW_MIN(s->polled_ms + s->poll_interval_ms, end) - now)) > 0)
			return 0;
	}
}

/* ---- open and close -------------------------------------------------------------------------- */

static void mysql_db_close(struct store *st)
{
	struct mysql_db *s = mysql_db(sql_of(st));

	mysql_statements_free(s);
	if (s->c)
		mysql_close(s->c);
	fw_buf_finish(&s->script);
	fw_buf_finish(&s->sweep.gone);
	free(s->sql.name);
	free(s->url);
	free(s);
}

static int mysql_open_tables(struct sql *sql, const struct fw_dsn *d, bool create, struct fw_err *err)
{
	static const struct sql_tables_open TABLES = {
		.read_version = mysql_schema_find,
		.lock = mysql_schema_lock,
		.unlock = mysql_schema_unlock,
		.search = mysql_search_tables,
		.doors = mysql_doors,
	};
	struct mysql_db *s = mysql_db(sql);
	int rc = schema_name(s, d, err);

	s->packet_max = MYSQL_SCRIPT_MAX;
	s->poll_interval_ms = POLL_FIRST_MS;
	rc = rc ? rc : connection_open(s, d, create, err);
	rc = rc ? rc : mysql_server_check(s, err);
	rc = rc ? rc : session_set(s, err);
	rc = rc ? rc : sql_tables_open(sql, create, &TABLES, err);
	rc = rc || sql->read_only ? rc : mysql_doors_create(s, err);
	return rc ? rc : changes_read(s, &s->changes, err);
}

static int mysql_open(const struct fw_store_config *cfg, struct store **out, struct fw_err *err)
{
	static const struct sql_server SERVER = {&mysql_dialect, sizeof(struct mysql_db), mysql_open_tables};
	int rc = sql_open_server(&store_mysql, &SERVER, cfg, out, err);
	struct mysql_db *s = rc ? NULL : mysql_db(sql_of(*out));

	if (!s)
		return rc;
	s->url = fw_str_dup(fw_str(cfg->url));
	if (s->url)
		return 0;
	mysql_db_close(*out);
	return fw_no_memory(err);
}

static const char *const mysql_schemes[] = {FW_STORE_MYSQL_SCHEMES};

/* The server chooses how its user logs in. */
static void mysql_preload(void)
{
	static const char *const LOGIN[] = {"caching_sha2_password", "sha256_password", "client_ed25519", "parsec",
		"dialog", "mysql_clear_password", "auth_gssapi_client"};
	MYSQL *c = mysql_init(NULL);

	for (size_t i = 0; c && i < FW_N(LOGIN); i++)
		(void)mysql_load_plugin(c, LOGIN[i], LOGIN_PLUGIN, 0);
	if (c)
		mysql_close(c);
}

const struct store_driver store_mysql = {
	.name = "mysql",
	.schemes = mysql_schemes,
	.preload = mysql_preload,
	.open = mysql_open,
	.close = mysql_db_close,
	.inspect = mysql_inspect,
	.wait = mysql_wait,
	SQL_SLOTS,
};
