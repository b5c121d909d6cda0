/* SPDX-License-Identifier: ISC */
/*
 * The PostgreSQL driver and servers that die or are full, locked, foreign or too new. Each error
 * has the right code and one line that names the store and the remedy; nothing is half-done; the
 * same call succeeds when the cause is gone. Each test has a server of its own.
 */
#include <glob.h>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tiny_disk.h"
#include "work.h"

static struct fw_arena A;
static char url[400];

static void setup(void)
{
	fw_arena_init(&A, 0);
	server_postgres.start(scratch());
	server_postgres.url(url, sizeof(url), "trouble");
}

static void teardown(void)
{
	server_postgres.stop();
	fw_arena_finish(&A);
}

/* A connection to the same schema that bypasses the driver. */
static PGconn *bare_open(void)
{
	char conninfo[500];
	PGconn *c;

	ck_assert(fw_snprintf(conninfo, sizeof(conninfo),
		"host=%s/pg user=feedwheel dbname=postgres options='-c search_path=trouble'", scratch()));
	c = PQconnectdb(conninfo);
	ck_assert_msg(PQstatus(c) == CONNECTION_OK, "%s", PQerrorMessage(c));
	return c;
}

static void bare_do(PGconn *c, const char *sql)
{
	PGresult *r = PQexec(c, sql);

	ck_assert_msg(PQresultStatus(r) == PGRES_COMMAND_OK || PQresultStatus(r) == PGRES_TUPLES_OK, "%s: %s", sql,
		PQerrorMessage(c));
	PQclear(r);
}

static void bare(const char *sql)
{
	PGconn *c = bare_open();

	bare_do(c, sql);
	PQfinish(c);
}

/* Runs a program that refuses to run as root; its path comes first. It ends with the test. */
static pid_t run_as_server(const char *argv[])
{
	const struct passwd *who = geteuid() == 0 ? getpwnam("postgres") : NULL;
	char log[300];
	pid_t pid;

	ck_assert(fw_snprintf(log, sizeof(log), "%s/pg/log", scratch()));
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (who && (setgroups(0, NULL) || setgid(who->pw_gid) || setuid(who->pw_uid)))
			_exit(126);
		prctl(PR_SET_PDEATHSIG, SIGQUIT);
		if (!freopen(log, "a", stdout) || dup2(STDOUT_FILENO, STDERR_FILENO) < 0)
			_exit(126);
		execv(argv[0], (char *const *)(uintptr_t)argv); /* execv() does not change the strings */
		_exit(127);
	}
	ck_assert_int_gt(pid, 0);
	return pid;
}

static void answers_at(int port)
{
	char conninfo[400];

	ck_assert(fw_snprintf(
		conninfo, sizeof(conninfo), "host=%s/pg port=%d user=feedwheel dbname=postgres", scratch(), port));
	for (int i = 0; i < 3000 && PQping(conninfo) != PQPING_OK; i++)
		usleep(20000);
	ck_assert_int_eq(PQping(conninfo), PQPING_OK);
}

static void end(pid_t pid, int sig)
{
	kill(pid, sig);
	waitpid(pid, NULL, 0);
}

static void refused(const char *where, unsigned flags, int code, const char *words)
{
	open_fails(where, flags, code, "postgres:", words);
}

START_TEST(older_schema)
{
	schema_1_is_upgraded(url, bare);
}
END_TEST

START_TEST(schemas_that_are_not_ours) /* REL-15 */
{
	refused(url, 0, FW_ENOTFOUND, "feedwheel add");
	/* opening for reading creates nothing */
	refused(url, FW_STORE_READ | FW_STORE_CREATE, FW_ENOTFOUND, "feedwheel add");
	fw_store_close(store_open(url, FW_STORE_CREATE));
	bare("UPDATE meta SET value = 99 WHERE name = 'schema'");
	refused(url, FW_STORE_CREATE, FW_EVERSION, "upgrade feedwheel");
	refused(url, FW_STORE_READ, FW_EVERSION, "upgrade feedwheel");
	bare("DELETE FROM meta WHERE name = 'feedwheel'");
	refused(url, FW_STORE_CREATE, FW_EINVAL, "another program");
	bare("DROP TABLE meta");
	refused(url, FW_STORE_CREATE, FW_EINVAL, "another program");
}
END_TEST

START_TEST(addresses_that_lead_nowhere)
{
	char where[600];

	refused("postgres://u:secret@/db?host=/nowhere/at/all", FW_STORE_CREATE, FW_EIO, "cannot be reached");
	refused("postgres://u:secret@127.0.0.1:1/db", FW_STORE_CREATE, FW_EIO, "cannot be reached");
	ck_assert(fw_snprintf(where, sizeof(where), "postgres://feedwheel:secret@/nosuchbase?host=%s/pg", scratch()));
	refused(where, FW_STORE_CREATE, FW_EINVAL, "create it");
	ck_assert(fw_snprintf(where, sizeof(where), "%s&nosuchoption=1", url));
	refused(where, FW_STORE_CREATE, FW_EINVAL, "nosuchoption");
	ck_assert(fw_snprintf(where, sizeof(where),
		"postgres://feedwheel@/postgres?host=%s/pg&options=-csearch_path%%3Dnone", scratch()));
	refused(where, FW_STORE_CREATE, FW_EINVAL, "schema=NAME");
	bare("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0");
	ck_assert(fw_snprintf(where, sizeof(where), "postgres://feedwheel@/latin?host=%s/pg", scratch()));
	refused(where, FW_STORE_CREATE, FW_EINVAL, "encoding UTF8");
}
END_TEST

/*
 * Each is what a server reports about itself. Here a function of that name, found before the
 * server's own, reports it.
 */
START_TEST(unsupported_servers)
{
	static const struct {
		const char *version, *words;
	} T[] = {
		{"CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu)", "the server is CockroachDB"},
		{"PostgreSQL 15.2-YB-2.25.0.0-b0 on x86_64-pc-linux-gnu", "the server is YugabyteDB"},
	};
	char where[600], sql[300];

	bare("CREATE SCHEMA other");
	ck_assert(fw_snprintf(where, sizeof(where),
		"postgres://feedwheel@/postgres?host=%s/pg&options=-csearch_path%%3Dother,pg_catalog", scratch()));
	fw_store_close(store_open(where, FW_STORE_CREATE));
	for (size_t i = 0; i < FW_N(T); i++) {
		ck_assert(fw_snprintf(sql, sizeof(sql),
			"CREATE OR REPLACE FUNCTION other.version() RETURNS text LANGUAGE sql AS $$ SELECT '%s' $$",
			T[i].version));
		bare(sql);
		refused(where, 0, FW_EINVAL, T[i].words);
		refused(where, FW_STORE_READ, FW_EINVAL, "use PostgreSQL");
	}
	bare("DROP FUNCTION other.version");
	bare("CREATE TABLE other.pg_extension AS SELECT 'citus' AS extname, '12.1-1' AS extversion");
	refused(where, 0, FW_EINVAL, "Citus");
	bare("DROP TABLE other.pg_extension");
	fw_store_close(store_open(where, 0));
}
END_TEST

START_TEST(reading_only)
{
	read_only_refuses(url);
}
END_TEST

START_TEST(too_many_connections)
{
	PGconn *c[100];
	int n = 0;

	fw_store_close(store_open(url, FW_STORE_CREATE));
	do {
		char conninfo[300];

		ck_assert(fw_snprintf(
			conninfo, sizeof(conninfo), "host=%s/pg user=feedwheel dbname=postgres", scratch()));
		c[n] = PQconnectdb(conninfo);
	} while (PQstatus(c[n++]) == CONNECTION_OK && n < 100);
	refused(url, 0, FW_EAGAIN, "max_connections");
	while (n)
		PQfinish(c[--n]);
	for (int i = 0; i < 1200; i++) { /* the connections end one by one */
		struct fw_store_config cfg = {.url = url};
		struct fw_store *st;
		struct fw_err err;

		if (fw_store_open(&cfg, &st, &err) == 0) {
			fw_store_close(st);
			return;
		}
		usleep(50000);
	}
	ck_abort_msg("still refused");
}
END_TEST

START_TEST(locked_by_another_client)
{
	struct work *w = work_begin_at(url, 300);
	PGconn *db = bare_open();

	bare_do(db, "BEGIN; LOCK TABLE schedule");
	commit_is_locked_out(w, "", "pg_stat_activity");
	bare_do(db, "ROLLBACK");
	PQfinish(db);
	ck_assert_int_eq(stats(w->front).entry_n, 0);
	commit_stores_once(w);
	work_end(w);
}
END_TEST

/* The table of the schedule, or the partition of it, that visits write. */
#define FAIL_BEFORE "CREATE TRIGGER fail BEFORE UPDATE ON schedule FOR EACH ROW EXECUTE FUNCTION "

static const char fail_function[] =
	"CREATE SEQUENCE tries; CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
	" IF nextval('trouble.tries') <= TG_ARGV[0]::int THEN RAISE EXCEPTION 'in the way'"
	" USING ERRCODE = TG_ARGV[1]; END IF;"
	" RETURN new; END $$";

/* Conflicts that the server reports: nothing is stored, and the same call succeeds afterwards. */
START_TEST(serialisation_failures)
{
	struct work *w = work_begin(store_open(url, FW_STORE_CREATE));
	int rc = 0;

	bare(fail_function);
	bare(FAIL_BEFORE "fail(2, '40P01')");
	visit(w, 0, 3);
	for (int i = 0; i < 3; i++) { /* as the store thread does; the dialect may retry by itself */
		rc = commit(w);
		ck_assert_msg(
			rc == 0 || (rc == FW_EAGAIN && strstr(drv_err.text, "try again")), "%d %s", rc, drv_err.text);
		if (!rc)
			break;
		ck_assert_int_eq(stats(w->front).entry_n, 0);
	}
	ck_assert(rc == 0 && w->o.rc == 0 && w->o.visit.new_n == 3);
	bare("DROP TRIGGER fail ON schedule; " FAIL_BEFORE "fail(1000, '40001')");
	visit(w, 3, 3);
	FAILS(commit(w), FW_EAGAIN);
	ck_assert_msg(strstr(drv_err.text, "40001") && strstr(drv_err.text, "try again"), "%s", drv_err.text);
	bare("DROP TRIGGER fail ON schedule");
	ck_assert_int_eq(stats(w->front).entry_n, 3);
	DONE(commit(w));
	ck_assert_int_eq(w->o.rc, 0);
	ck_assert_int_eq(stats(w->front).entry_n, 6);
	work_end(w);
}
END_TEST

/*
 * The server is killed at any moment of a commit. The commit is sent again until it is answered,
 * and then the rows are counted.
 */
START_TEST(server_killed_in_commit) /* REL-01, invariants 1 and 2 */
{
	struct work *w = work_begin(store_open(url, FW_STORE_CREATE));
	int broken = 0;

	for (int round = 0; round < 12; round++) {
		pid_t killer;
		int rc;

		visit(w, round * 200, 200);
		killer = fork();
		if (killer == 0) {
			usleep((useconds_t)(round * 300));
			server_postgres.kill9();
			_exit(0);
		}
		rc = commit(w);
		waitpid(killer, NULL, 0);
		waitpid(-1, NULL, 0); /* the server itself: it is our child */
		server_postgres.again();
		if (rc) {
			ck_assert_int_eq(rc, FW_EIO);
			ck_assert_msg(strstr(drv_err.text, "opened anew") != NULL, "%s", drv_err.text);
			broken++;
		}
		work_again(w, url);
		if (rc)
			DONE(commit(w)); /* the lease still holds */
		ck_assert_int_eq(w->o.rc, 0);
		ck_assert_int_eq(stats(w->front).entry_n, (round + 1) * 200);
		ck_assert_int_eq(stats(w->front).visit_n, round + 1);
		check_clean(w->front);
	}
	printf("# postgres: server killed 12 times, %d commits broke, each batch is stored once\n", broken);
	work_end(w);
}
END_TEST

/*
 * Each server error in the middle of a commit: our code, the remedy, nothing stored. Sent again,
 * the commit is stored once.
 */
START_TEST(every_answer) /* REL-09 */
{
	static const struct {
		const char *state;
		int rc;
		const char *words;
	} T[] = {
		{"53000", FW_EAGAIN, "lacks resources"},
		{"53100", FW_EAGAIN, "disk is full"},
		{"53200", FW_EAGAIN, "out of memory"},
		{"53300", FW_EAGAIN, "max_connections"},
		{"55P03", FW_EAGAIN, "pg_stat_activity"},
		{"57014", FW_EAGAIN, "load"},
		{"58030", FW_EAGAIN, "check its log"},
		{"25006", FW_EIO, "name the primary"},
		{"57P01", FW_EIO, "opened anew"},
		{"57P02", FW_EIO, "opened anew"},
		{"57P03", FW_EIO, "opened anew"},
		{"08006", FW_EIO, "opened anew"},
		{"08P01", FW_EIO, "opened anew"},
		{"42501", FW_EUNUSABLE, "grant"},
		{"42P01", FW_EUNUSABLE, "tables are missing"},
		{"42703", FW_EUNUSABLE, "changed the tables"},
		{"XX001", FW_EUNUSABLE, "restore a backup"},
		{"XX002", FW_EUNUSABLE, "REINDEX"},
		{"XX000", FW_EINVAL, "XX000"},
	};
	struct work *w = work_begin(store_open(url, FW_STORE_CREATE));

	bare(fail_function);
	for (size_t i = 0; i < FW_N(T); i++) {
		int rc;

		visit(w, (int)i * 2, 2);
		bare(fw_arena_printf(&A, "SELECT setval('tries', 1, false); " FAIL_BEFORE "fail(1, '%s')", T[i].state));
		rc = commit(w);
		ck_assert_msg(
			rc == T[i].rc && strstr(drv_err.text, T[i].words), "%s: %d %s", T[i].state, rc, drv_err.text);
		ck_assert_ptr_nonnull(strstr(drv_err.text, "postgres:"));
		if (rc == FW_EIO) {
			ck_assert_int_eq(fw_store_ping(w->front, NULL), FW_EIO); /* the connection is unusable */
			work_again(w, url);
		}
		ck_assert_int_eq(stats(w->front).entry_n, (int64_t)i * 2);
		DONE(commit(w));
		ck_assert_int_eq(w->o.rc, 0);
		ck_assert_int_eq(stats(w->front).entry_n, (int64_t)i * 2 + 2);
		bare("DROP TRIGGER fail ON schedule");
	}
	work_end(w);
}
END_TEST

/* An administrator ends sessions, and makes the database read-only for a while. */
START_TEST(sessions_ended_by_an_administrator)
{
	struct work *w = work_begin(store_open(url, FW_STORE_CREATE));
	PGconn *other;

	visit(w, 0, 2);
	bare("ALTER DATABASE postgres SET default_transaction_read_only = on; SELECT"
	     " pg_terminate_backend(pid) FROM pg_stat_activity"
	     " WHERE application_name = 'feedwheel'");
	FAILS(commit(w), FW_EIO);
	ck_assert_msg(strstr(drv_err.text, "opened anew") != NULL, "%s", drv_err.text);
	refused(url, 0, FW_EIO, "read-only");
	other = bare_open();
	bare_do(other, "SET default_transaction_read_only = off");
	bare_do(other, "ALTER DATABASE postgres RESET default_transaction_read_only");
	PQfinish(other);
	work_again(w, url);
	DONE(commit(w));
	ck_assert_int_eq(w->o.rc, 0);
	ck_assert_int_eq(stats(w->front).entry_n, 2);
	work_end(w);
}
END_TEST

#define STANDBY_PORT 5433

static PGconn *standby_open(void)
{
	char conninfo[400];
	PGconn *c;

	ck_assert(fw_snprintf(conninfo, sizeof(conninfo), "host=%s/pg port=%d user=feedwheel dbname=postgres",
		scratch(), STANDBY_PORT));
	c = PQconnectdb(conninfo);
	ck_assert_msg(PQstatus(c) == CONNECTION_OK, "%s", PQerrorMessage(c));
	return c;
}

/* A copy of the running server that follows it. */
static pid_t standby_start(void)
{
	char copy[400], serve[400], data[300], socket[300], from[300], port[12];
	const char *pg_basebackup[] = {
		copy, "-D", data, "-h", from, "-U", "feedwheel", "-R", "-X", "stream", "-c", "fast", "-N", NULL};
	const char *postgres[] = {serve, "-D", data, "-c", socket, "-c", port, "-c", "listen_addresses=", "-c",
		"fsync=off", "-c", "max_connections=60", NULL};
	struct fw_str path;
	int status;
	pid_t pid;
	glob_t g;

	ck_assert_int_eq(glob("/usr/lib/postgresql/*/bin/postgres", 0, NULL, &g), 0);
	path = fw_str(g.gl_pathv[g.gl_pathc - 1]);
	ck_assert(fw_snprintf(serve, sizeof(serve), "%.*s", FW_STR_ARG(path)));
	ck_assert(fw_snprintf(copy, sizeof(copy), "%.*s/pg_basebackup", (int)(path.len - strlen("/postgres")), path.p));
	globfree(&g);
	ck_assert(fw_snprintf(data, sizeof(data), "%s/pg/standby", scratch()));
	ck_assert(fw_snprintf(from, sizeof(from), "%s/pg", scratch()));
	ck_assert(fw_snprintf(socket, sizeof(socket), "unix_socket_directories=%s", from));
	ck_assert(fw_snprintf(port, sizeof(port), "port=%d", STANDBY_PORT));
	pid = run_as_server(pg_basebackup);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	pid = run_as_server(postgres);
	answers_at(STANDBY_PORT);
	return pid;
}

/* Waits until the standby has all that the primary has written. */
static void standby_has_all(void)
{
	PGconn *first = bare_open(), *second = standby_open();
	PGresult *r = PQexec(first, "SELECT pg_current_wal_insert_lsn()");
	const char *lsn = PQgetvalue(r, 0, 0);
	bool there = false;

	for (int i = 0; i < 3000 && !there; i++) {
		PGresult *q = PQexecParams(
			second, "SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn", 1, NULL, &lsn, NULL, NULL, 0);

		there = PQresultStatus(q) == PGRES_TUPLES_OK && strcmp(PQgetvalue(q, 0, 0), "t") == 0;
		PQclear(q);
		usleep(20000);
	}
	ck_assert(there);
	PQclear(r);
	PQfinish(first);
	PQfinish(second);
}

/*
 * The primary dies, the standby takes over. With both in its URL the same worker goes on, and what
 * it held is stored once.
 */
START_TEST(standby_takes_over) /* REL-01 */
{
	struct fw_store *reader;
	struct work *w;
	char where[700], second_only[700];
	PGconn *second;
	pid_t pid;

	fw_store_close(store_open(url, FW_STORE_CREATE));
	pid = standby_start();
	ck_assert(fw_snprintf(where, sizeof(where),
		"postgres://feedwheel@/postgres?host=%s/pg,%s/pg&port=%d,5432&schema=trouble", scratch(), scratch(),
		STANDBY_PORT)); /* the standby first: it is skipped */
	ck_assert(fw_snprintf(second_only, sizeof(second_only),
		"postgres://feedwheel@/postgres?host=%s/pg&port=%d&schema=trouble", scratch(), STANDBY_PORT));
	w = work_begin(store_open(where, 0));
	visit(w, 0, 4);
	standby_has_all();
	refused(second_only, 0, FW_EIO, "name the primary");
	ck_assert(fw_snprintf(second_only + strlen(second_only), sizeof(second_only) - strlen(second_only), "%s",
		"&target_session_attrs=any")); /* then the store finds out */
	refused(second_only, 0, FW_EIO, "name the primary");
	reader = store_open(where, FW_STORE_READ); /* either of them will do for reading */
	ck_assert_int_eq(stats(reader).feed_n, 1);
	fw_store_close(reader);
	server_postgres.kill9();
	FAILS(commit(w), FW_EIO);
	refused(where, 0, FW_EIO, "name the primary"); /* there is no server that can be written */
	second = standby_open();
	bare_do(second, "SELECT pg_promote()");
	PQfinish(second);
	work_again(w, where);
	DONE(commit(w));
	ck_assert_int_eq(w->o.rc, 0);
	ck_assert_int_eq(stats(w->front).entry_n, 4);
	visit(w, 4, 4);
	DONE(commit(w));
	ck_assert_int_eq(stats(w->front).entry_n, 8);
	work_end(w);
	end(pid, SIGINT);
}
END_TEST

START_TEST(waiting_workers_are_notified)
{
	struct fw_store *mine = store_open(url, FW_STORE_CREATE), *other = store_open(url, 0);
	struct fw_err err = {0};
	bool changed;
	pid_t pid;

	OK(fw_store_wait(mine, -1, 0, &changed, &err));
	for (int what = 0; what < 2; what++) {
		int64_t start;

		pid = fork();
		if (pid == 0) {
			struct fw_store *st = store_open(url, 0);

			usleep(300000);
			if (what == 0)
				subscribe(st, "https://a.example/", NOW);
			else
				_exit(fw_store_control_put(st, FW_CONTROL_STOP, NOW, &err) != 0);
			_exit(0);
		}
		start = fw_mono_ms();
		OK(fw_store_wait(mine, -1, 60000, &changed, &err));
		ck_assert(changed);
		ck_assert_int_lt(fw_mono_ms() - start, 60000); /* notified, not timed out */
		waitpid(pid, NULL, 0);
		while (changed)
			OK(fw_store_wait(mine, -1, 100, &changed, &err));
	}
	fw_store_close(other);
	fw_store_close(mine);
}
END_TEST

#define POOLER_PORT 6432

/*
 * Starts pgbouncer in front of the server, in this mode, with n sessions in all; 0: it is not
 * installed.
 */
static pid_t pooler_start(const char *mode, int n)
{
	char name[300];
	const char *argv[] = {"/usr/sbin/pgbouncer", "-q", name, NULL};
	pid_t pid;
	FILE *f;

	if (access(argv[0], X_OK))
		return 0;
	ck_assert(fw_snprintf(name, sizeof(name), "%s/pooler.ini", scratch()));
	f = fopen(name, "w");
	ck_assert_ptr_nonnull(f);
	fprintf(f,
		"[databases]\npostgres = host=%s/pg user=feedwheel\n[pgbouncer]\nlisten_addr"
		" =\nunix_socket_dir = %s/pg\n"
		"listen_port = %d\nauth_type = any\npool_mode = %s\ndefault_pool_size = %d\n"
		"ignore_startup_parameters = extra_float_digits\n",
		scratch(), scratch(), POOLER_PORT, mode, n);
	fclose(f);
	chmod(name, 0644);
	pid = run_as_server(argv);
	answers_at(POOLER_PORT);
	return pid;
}

/*
 * In transaction mode two stores would write into each other: both are refused. Session mode works.
 */
START_TEST(poolers)
{
	struct fw_err err = {0};
	char where[2][500];
	struct fw_store *st[2];
	struct work *w;
	bool changed = false;
	int refused_n = 0;
	pid_t pid;

	for (int i = 0; i < 2; i++) {
		char own[500];

		ck_assert(fw_snprintf(where[i], sizeof(where[i]),
			"postgres://feedwheel@/postgres?host=%s/pg&port=%d&schema=side%d", scratch(), POOLER_PORT, i));
		ck_assert(fw_snprintf(
			own, sizeof(own), "postgres://feedwheel@/postgres?host=%s/pg&schema=side%d", scratch(), i));
		fw_store_close(store_open(own, FW_STORE_CREATE));
	}
	pid = pooler_start("transaction", 1);
	if (!pid) {
		printf("# poolers: install the package pgbouncer: skipped\n");
		ck_assert_msg(!getenv("CI"), "pgbouncer is not installed");
		return;
	}
	for (int i = 0; i < 2; i++) {
		struct fw_store_config c = {.url = where[i]};

		if (fw_store_open(&c, &st[i], &err)) {
			ck_assert_msg(err.rc == FW_EINVAL && strstr(err.text, "session mode"), "%s", err.text);
			st[i] = NULL;
			refused_n++;
		}
	}
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < 2; i++) {
			struct fw_feed_new n = {
				.url = fw_str(fw_arena_printf(&A, "https://side%d.example/%d", i, round)),
				.due_at_ms = NOW};
			int rc = st[i] ? fw_store_subscribe(st[i], &n, 1, &err) : 0;

			ck_assert_msg(
				!rc || (rc == FW_EINVAL && strstr(err.text, "session mode")), "%d %s", rc, err.text);
			refused_n += rc != 0;
			if (rc) { /* the connection is unusable */
				fw_store_close(st[i]);
				st[i] = NULL;
			}
		}
	}
	ck_assert_int_gt(refused_n, 0);
	printf("# poolers: refused %d times in transaction mode: %s\n", refused_n, err.text);
	for (int i = 0; i < 2; i++) {
		if (st[i])
			fw_store_close(st[i]);
	}
	end(pid, SIGINT);
	bare("DO $$ BEGIN ASSERT NOT EXISTS (SELECT 1 FROM side0.feeds WHERE url LIKE '%side1%'),"
	     " 'mixed'; ASSERT NOT EXISTS"
	     " (SELECT 1 FROM side1.feeds WHERE url LIKE '%side0%'), 'mixed'; END $$");

	pid = pooler_start("session", 2);
	for (int i = 0; i < 2; i++)
		st[i] = store_open(where[i], 0);
	OK(fw_store_wait(st[1], -1, 0, &changed, &err));
	w = work_begin(st[1]);
	visit(w, 0, 3);
	DONE(commit(w));
	(void)stats(st[0]);
	ck_assert_int_eq(entry_count(st[1], 0), 3); /* a list is a transaction of its own kind */
	work_end(w);
	fw_store_close(st[0]);
	end(pid, SIGINT);
}
END_TEST

#define FULL_N 400

/* The data is on a small disk of its own, which fills up. */
START_TEST(disk_full) /* REL-09 */
{
	struct fw_buf text = FW_BUF_INIT(0);
	char folder[300], filler[340];
	int64_t before = 0;
	struct work *w;
	int rc, n = 0;

	server_postgres.stop();
	ck_assert(fw_snprintf(folder, sizeof(folder), "%s/tiny", scratch()));
	if (!tiny_disk(folder, "160m"))
		return;
	server_postgres.start(folder);
	server_postgres.url(url, sizeof(url), "full");
	w = work_begin(store_open(url, FW_STORE_CREATE));
	ck_assert(fw_snprintf(filler, sizeof(filler), "%s/filler", folder));
	tiny_disk_fill(filler, 24 << 20);
	for (int i = 0; i < 3000; i++)
		fw_buf_addf(&text, "%x ", i * 7919 * 31);
	do {
		before = stats(w->front).entry_n;
		visit_with(w, n * FULL_N, FULL_N, fw_buf_str(&text));
		rc = commit(w);
	} while (!rc && ++n < 100);
	ck_assert_msg(rc == FW_EAGAIN || rc == FW_EIO, "%d %s", rc, drv_err.text);
	printf("# disk_full: %s\n", drv_err.text);
	ck_assert_int_eq(unlink(filler), 0);
	for (int i = 0, ended = 0; rc && i < 3000; i++) {
		/*
		 * a full journal ends the server, perhaps later; it recovers by itself only with
		 * free space
		 */
		if (rc == FW_EIO && !ended++) {
			server_postgres.kill9();
			server_postgres.again();
		}
		if (rc == FW_EIO)
			work_again(w, url);
		rc = commit(w);
		usleep(20000);
	}
	ck_assert_msg(rc == 0, "%d %s", rc, drv_err.text);
	ck_assert_int_eq(w->o.rc, 0);
	ck_assert_int_eq(stats(w->front).entry_n, before + FULL_N);
	work_end(w);
	fw_buf_finish(&text);
	server_postgres.stop();
	umount(folder);
}
END_TEST

int main(void)
{
	const TTest *const every[] = {older_schema, schemas_that_are_not_ours, addresses_that_lead_nowhere,
		unsupported_servers, reading_only, too_many_connections, locked_by_another_client,
		serialisation_failures, every_answer, sessions_ended_by_an_administrator, standby_takes_over,
		server_killed_in_commit, waiting_workers_are_notified, poolers, disk_full};
	TCase *t;

	server_needed(&server_postgres);
	t = cases("postgres", setup, teardown, 180);
	cases_add(t, every, FW_N(every), 1);
	return cases_run("store postgres_faults", t);
}
