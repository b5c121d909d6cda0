/* SPDX-License-Identifier: ISC */
/*
 * The MariaDB and MySQL driver: one database, any number of processes on any number of machines.
 *
 * This file opens and closes. Statements and transactions: maria_send.c. The server's codes: maria_error.c. What is stored where:
 * maria_schema.c. Standing in line: maria_line.c, maria_host.c. Lending: maria_claim.c, maria_wheel.c, maria_loans.c.
 * Outcomes: maria_commit.c. Entries: maria_entries.c; many at once: maria_bulk.c. Words: maria_search.c, maria_sweep.c. Who is subscribed: maria_members.c.
 * What people look at: maria_window.c. Copies: maria_load.c.
 * Doctor: maria_check.c.
 *
 * Transactions are READ COMMITTED, so that a lock is on a row and never on a gap. Rows are locked in one order: loans,
 * wheel by feed, hosts by number, and then what only the host's lock guards. The head of the queue is taken with SKIP
 * LOCKED. Where a deadlock happens all the same (a host that is new to two at once), the transaction is made again.
 *
 * The connection is not carried across fork(); one thread at a time.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "store/dsn.h"
#include "store/maria.h"

#define CONNECT_TIMEOUT_S 10
#define SILENCE_S 300      /* of the server, before the connection counts as broken */
#define UNHEARD_MS 30000   /* of what we sent, before TCP gives the connection up */
#define MARIADB_MIN 100600 /* SKIP LOCKED */
#define MYSQL_MIN 80013
#define IDLE_IN_TRANSACTION_S 15
#define MYSQL_IDLE_S 600
#define WAIT_MS 400        /* between two questions whether something was added */

/* ---- life ------------------------------------------------------------------------------------------------------------- */

static void maria_close(struct fw_store *st)
{
	struct maria *m = mr_of(st);

	if (m->entries_in)
		mysql_stmt_close(m->entries_in);
	if (m->keys_in)
		mysql_stmt_close(m->keys_in);
	if (m->events_in)
		mysql_stmt_close(m->events_in);
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

/* A switch of the URL; absent is off. */
static int is_on(struct maria *m, const struct fw_dsn *d, const char *name, my_bool *on, struct fw_err *err)
{
	static const char *const words[] = {"0", "no", "off", "1", "yes", "on"};
	struct fw_str s = fw_dsn_option(d, name);

	*on = 0;
	if (!s.p)
		return 0;
	for (size_t i = 0; i < FW_N(words); i++) {
		if (fw_str_eq(s, fw_str(words[i]))) {
			*on = i >= FW_N(words) / 2;
			return 0;
		}
	}
	return fw_err_set(err, FW_EINVAL, "%s: %s is '%.*s': write yes or no", m->name, name, FW_STR_ARG(s));
}

static int options_set(struct maria *m, const struct fw_dsn *d, struct fw_err *err)
{
	struct fw_str ca = fw_dsn_option(d, "ssl_ca"), cert = fw_dsn_option(d, "ssl_cert"), key = fw_dsn_option(d, "ssl_key");
	my_bool yes = 1, tls, check;
	unsigned long packet = 1UL << 30;
	int64_t connect_s, silence_s;
	unsigned c, t;
	int rc = fw_dsn_only(d, options_known, err);

	rc = rc ? rc : fw_dsn_number(d, "connect_timeout", 1, 3600, CONNECT_TIMEOUT_S, &connect_s, err);
	rc = rc ? rc : fw_dsn_number(d, "timeout", 1, 86400, SILENCE_S, &silence_s, err);
	rc = rc ? rc : is_on(m, d, "ssl", &tls, err);
	rc = rc ? rc : is_on(m, d, "ssl_verify", &check, err);
	if (rc)
		return rc;
	c = (unsigned)connect_s;
	t = (unsigned)silence_s;
	mysql_optionsv(m->db, MYSQL_OPT_CONNECT_TIMEOUT, &c);
	mysql_optionsv(m->db, MYSQL_OPT_READ_TIMEOUT, &t);
	mysql_optionsv(m->db, MYSQL_OPT_WRITE_TIMEOUT, &t);
	mysql_optionsv(m->db, MYSQL_OPT_MAX_ALLOWED_PACKET, &packet);
	mysql_optionsv(m->db, MYSQL_SET_CHARSET_NAME, "utf8mb4");
	m->tls = tls || ca.p || cert.p || key.p || check;
	if (m->tls) {
		mysql_ssl_set(m->db, key.p, cert.p, ca.p, NULL, NULL);
		mysql_optionsv(m->db, MYSQL_OPT_SSL_ENFORCE, &yes);
	}
	/* said in any case: Connector/C 3.4 would use TLS, and check the server's certificate, where nothing is said */
	mysql_optionsv(m->db, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &check);
	return 0;
}

/* What the network swallows is given up in time: the library leaves it to TCP, which waits twice as long again and again. */
static void patience_set(MYSQL *db)
{
#ifdef TCP_USER_TIMEOUT
	const unsigned ms = UNHEARD_MS;

	(void)setsockopt(mysql_get_socket(db), IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms)); /* no TCP, no need */
#else
	(void)db;
#endif
}

static int connect_to(struct maria *m, const struct fw_dsn *d, const char *schema, struct fw_err *err)
{
	if (!mysql_real_connect(m->db, d->host.p, d->user.p, d->password.p, schema, (unsigned)d->port, fw_dsn_option(d, "socket").p,
			CLIENT_MULTI_STATEMENTS))
		return mr_error(m, "connecting", err);
	patience_set(m->db);
	/* the library goes on in plain text when the server has no TLS and its certificate need not be checked */
	if (m->tls && !mysql_get_ssl_cipher(m->db))
		return fw_err_set(err, FW_EINVAL, "%s: no TLS (the server offers none): give it a certificate, or leave ssl out of the URL", m->name);
	return 0;
}

static int connection_open(struct maria *m, const struct fw_dsn *d, bool create, struct fw_err *err)
{
	int rc = options_set(m, d, err);

	if (rc)
		return rc;
	rc = connect_to(m, d, m->schema, err);
	if (rc != FW_ENOTFOUND || !create)
		return rc;
	mysql_close(m->db); /* the database is missing: a new one, as far as we may */
	m->db = mysql_init(NULL);
	rc = m->db ? options_set(m, d, err) : mr_no_memory(m, err);
	rc = rc ? rc : connect_to(m, d, NULL, err);
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
	unsigned long version = mysql_get_server_version(m->db), extended = 0;

	m->mysql = !mariadb_connection(m->db);
	if (!m->mysql && !mariadb_get_infov(m->db, MARIADB_CONNECTION_EXTENDED_SERVER_CAPABILITIES, &extended))
		m->arrays = extended & (MARIADB_CLIENT_STMT_BULK_OPERATIONS >> 32);
	if (fw_store_server_known(m->name, mysql_get_server_info(m->db), err))
		return err->rc;
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
	/* one that was stopped or cut off in the middle gives its locks back; MySQL knows idle connections only */
	mr_put(m, m->mysql ? "SET SESSION wait_timeout = ?" : "SET SESSION idle_transaction_timeout = ?", "i",
		(int64_t)(m->mysql ? MYSQL_IDLE_S : IDLE_IN_TRANSACTION_S));
	rc = mr_ask(m, &r, err, "SELECT @@max_allowed_packet, @@auto_increment_increment, (SELECT count(*) FROM information_schema.engines"
		" WHERE engine = 'SEQUENCE' AND support = 'YES')", "");
	if (!rc && mr_row(&r)) {
		m->packet_max = (size_t)mr_int(&r, 0);
		m->step = mr_int(&r, 1);
		m->sequences = mr_int(&r, 2);
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
	m->packet_max = MR_SCRIPT_MAX;
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

/*
 * The server tells nobody, so it is asked: one row by its key, WAIT_MS after the last time, however often we are woken by wake_fd in
 * between; and once at the end of each wait.
 */
static int maria_wait(struct fw_store *st, int wake_fd, int64_t timeout_ms, bool *changed, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	int64_t now = fw_mono_ms(), end = now + timeout_ms;

	for (;; now = fw_mono_ms()) {
		struct pollfd p = {.fd = wake_fd, .events = POLLIN};

		if (now >= FW_MIN(m->asked_ms + WAIT_MS, end)) {
			int rc = maria_changed(st, changed, err);

			m->asked_ms = now;
			if (rc || *changed || now >= end)
				return rc;
		}
		if (poll(&p, 1, (int)(FW_MIN(m->asked_ms + WAIT_MS, end) - now)) > 0)
			return 0;
	}
}

static int maria_clock(struct fw_store *st, int64_t *now_ms, struct fw_err *err)
{
	struct maria *m = mr_of(st);

	m->clock_at_ms = 0; /* asked anew */
	return mr_now(m, 0, now_ms, err);
}

static const char *const schemes[] = {FW_STORE_MYSQL_SCHEMES};

const struct fw_store_driver fw_store_mysql = {
	.abi = FW_STORE_ABI,
	.name = "mysql",
	.schemes = schemes,
	.open = maria_open,
	.close = maria_close,
	.ping = maria_ping,
	.check = mr_check,
	.claim = mr_claim,
	.commit = mr_commit,
	.release = mr_release,
	.bury = mr_bury,
	.changed = maria_changed,
	.wait = maria_wait,
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
	.inspect = mr_inspect,
	.event_put = mr_event_put,
	.event_bury = mr_event_bury,
	.event_list = mr_event_list,
	.event_dead_list = mr_event_dead_list,
	.event_prune = mr_event_prune,
	.record_put = mr_record_put,
	.record_get = mr_record_get,
	.record_list = mr_record_list,
	.record_remove = mr_record_remove,
	.record_prune = mr_record_prune,
	.lend = mr_lend,
	.event_unbury = mr_event_unbury,
	.due_list = mr_due_list,
	.feed_merge = mr_feed_merge,
};
