/* SPDX-License-Identifier: ISC */
/*
 * The PostgreSQL driver and servers that die, are full, locked, foreign or too new: the right code, one line that names the store
 * and the remedy, nothing half-done, and the same call succeeds when the trouble is over. Each test has a server of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <sched.h>
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
#include "common.h"

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

/* A connection that is not the driver's, to the same schema. */
static PGconn *bare_open(void)
{
	char conninfo[500];
	PGconn *c;

	ck_assert(fw_snprintf(conninfo, sizeof(conninfo), "host=%s/pg user=feedwheel dbname=postgres options='-c search_path=trouble'",
		scratch()));
	c = PQconnectdb(conninfo);
	ck_assert_msg(PQstatus(c) == CONNECTION_OK, "%s", PQerrorMessage(c));
	return c;
}

static void bare_do(PGconn *c, const char *sql)
{
	PGresult *r = PQexec(c, sql);

	ck_assert_msg(PQresultStatus(r) == PGRES_COMMAND_OK || PQresultStatus(r) == PGRES_TUPLES_OK, "%s: %s", sql, PQerrorMessage(c));
	PQclear(r);
}

static void bare(const char *sql)
{
	PGconn *c = bare_open();

	bare_do(c, sql);
	PQfinish(c);
}

/* A program that insists on not being root; its path first. It ends with the test. */
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
		execv(argv[0], (char *const *)(uintptr_t)argv); /* it changes nothing in there */
		_exit(127);
	}
	ck_assert_int_gt(pid, 0);
	return pid;
}

static void answers_at(int port)
{
	char conninfo[400];

	ck_assert(fw_snprintf(conninfo, sizeof(conninfo), "host=%s/pg port=%d user=feedwheel dbname=postgres", scratch(), port));
	for (int i = 0; i < 3000 && PQping(conninfo) != PQPING_OK; i++)
		usleep(20000);
	ck_assert_int_eq(PQping(conninfo), PQPING_OK);
}

static void end(pid_t pid, int sig)
{
	kill(pid, sig);
	waitpid(pid, NULL, 0);
}

/* Opening fails with this code, and the words name the store and hold these. */
static void refused(const char *where, unsigned flags, int code, const char *words)
{
	struct fw_store_config c = {.url = where, .flags = flags, .busy_timeout_ms = 200};
	struct fw_store *st = NULL;
	struct fw_err err = {0};
	int rc = fw_store_open(&c, &st, &err);

	ck_assert_msg(rc == code, "%d instead of %d: %s", rc, code, err.text);
	ck_assert_ptr_null(st);
	ck_assert_msg(strstr(err.text, "postgres:") && strstr(err.text, words), "\"%s\" is not in: %s", words, err.text);
	ck_assert_ptr_null(strchr(err.text, '\n'));
	ck_assert_ptr_null(strstr(err.text, "secret"));
}

/* What schemas 4 and 5 brought is taken away. */
static void schema_3(void)
{
	bare("DROP VIEW visits; ALTER TABLE feeds DROP COLUMN push_until_ms, DROP COLUMN host_key; ALTER TABLE wheel DROP COLUMN expect_parts;"
		"ALTER TABLE hosts DROP COLUMN pace_ms, DROP COLUMN expect_us, DROP COLUMN holder, DROP COLUMN cool_until_ms;"
		"ALTER TABLE visit_batches DROP COLUMN queue_us, DROP COLUMN store_us;"
		"ALTER TABLE visit_rows DROP COLUMN queue_us, DROP COLUMN store_us;"
		"CREATE VIEW visits AS SELECT id, feed_id, previous_id, run_id, at_ms, kind, http_status, hops, slot, lateness_ms, dns_us,"
		" connect_us, tls_us, first_byte_us, total_us, parse_us, wire_bytes, body_bytes, item_n, new_n, changed_n, error FROM visit_rows;"
		"UPDATE meta SET value = 3 WHERE name = 'schema'");
}

START_TEST(schemas_that_are_not_ours) /* REL-15 */
{
	refused(url, 0, FW_ENOTFOUND, "feedwheel add");
	refused(url, FW_STORE_READ | FW_STORE_CREATE, FW_ENOTFOUND, "feedwheel add");
	fw_store_close(store_open(url, FW_STORE_CREATE));
	/* schema 1 had no tables for what is pushed, schema 2 none for records */
	schema_3();
	bare("DROP TABLE incoming, incoming_dead, records; UPDATE meta SET value = 1 WHERE name = 'schema'");
	refused(url, FW_STORE_READ, FW_EVERSION, "upgrades it");
	refused(url, FW_STORE_NO_MIGRATE, FW_EVERSION, "upgrades it");
	fw_store_close(store_open(url, 0));
	bare("INSERT INTO incoming VALUES (1, 'news', 1, 1, '', 1)");
	bare("INSERT INTO records VALUES ('kind', 'key', 'value', 1, NULL)");
	bare("UPDATE meta SET value = 99 WHERE name = 'schema'");
	refused(url, FW_STORE_CREATE, FW_EVERSION, "upgrade feedwheel");
	refused(url, FW_STORE_READ, FW_EVERSION, "upgrade feedwheel");
	bare("DELETE FROM meta WHERE name = 'feedwheel'");
	refused(url, FW_STORE_CREATE, FW_EINVAL, "another program");
	bare("DROP TABLE meta");
	refused(url, FW_STORE_CREATE, FW_EINVAL, "another program");
}
END_TEST

/* Whatever is in it stays as it is, and whoever looks on with a view of his own is not shut out. */
START_TEST(schema_3_is_brought_up_to_date) /* REL-15 */
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_arena a;
	struct fw_feed f;
	int64_t id;

	fw_arena_init(&a, 0);
	id = subscribe(st, "https://a.example/1", NOW);
	subscribe(st, "https://a.example/2", NOW + 100000000);
	put_entries(st, &a, NOW, 0, 5);
	fw_store_close(st);
	schema_3();
	bare("CREATE VIEW mine AS SELECT feed_id, total_us FROM visits");
	st = store_open(url, 0);
	ck_assert_int_eq(stats(st, NOW).schema, 5);
	ck_assert_int_eq(entry_count(st, id), 5);
	ck_assert_int_eq(stats(st, NOW).visit_n, 1);
	f = find(st, id, &a);
	ck_assert_int_eq(f.last_visit_ms, NOW);
	ck_assert_int_eq(f.push_until_ms, 0);
	put_entries(st, &a, f.due_at_ms, 5, 9);
	ck_assert_int_eq(entry_count(st, id), 9);
	bare("SELECT 1 / (count(*) = 2)::int FROM mine");
	check_clean(st);
	fw_store_close(st);
	fw_arena_finish(&a);
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
	ck_assert(fw_snprintf(where, sizeof(where), "postgres://feedwheel@/postgres?host=%s/pg&options=-csearch_path%%3Dnone", scratch()));
	refused(where, FW_STORE_CREATE, FW_EINVAL, "schema=NAME");
	bare("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0");
	ck_assert(fw_snprintf(where, sizeof(where), "postgres://feedwheel@/latin?host=%s/pg", scratch()));
	refused(where, FW_STORE_CREATE, FW_EINVAL, "encoding UTF8");
}
END_TEST

/* Each is a server's sentence about itself; here a function of that name says it, found before the server's own. */
START_TEST(servers_that_only_look_like_it)
{
	static const struct { const char *version, *words; } T[] = {
		{"CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu)", "the server is CockroachDB"},
		{"PostgreSQL 15.2-YB-2.25.0.0-b0 on x86_64-pc-linux-gnu", "the server is YugabyteDB"},
	};
	char where[600], sql[300];

	bare("CREATE SCHEMA other");
	ck_assert(fw_snprintf(where, sizeof(where), "postgres://feedwheel@/postgres?host=%s/pg&options=-csearch_path%%3Dother,pg_catalog", scratch()));
	fw_store_close(store_open(where, FW_STORE_CREATE));
	for (size_t i = 0; i < FW_N(T); i++) {
		ck_assert(fw_snprintf(sql, sizeof(sql), "CREATE OR REPLACE FUNCTION other.version() RETURNS text LANGUAGE sql AS $$ SELECT '%s' $$", T[i].version));
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
	struct fw_feed_new n = {.url = FW_STR("https://b.example/")};
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_err err = {0};

	subscribe(st, "https://a.example/", NOW);
	fw_store_close(st);
	st = store_open(url, FW_STORE_READ);
	ck_assert_int_eq(stats(st, NOW).feed_n, 1);
	IS(fw_store_subscribe(st, &n, 1, &err), FW_EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "for reading only"));
	fw_store_close(st);
}
END_TEST

START_TEST(too_many_connections)
{
	PGconn *c[100];
	int n = 0;

	fw_store_close(store_open(url, FW_STORE_CREATE));
	do {
		char conninfo[300];

		ck_assert(fw_snprintf(conninfo, sizeof(conninfo), "host=%s/pg user=feedwheel dbname=postgres", scratch()));
		c[n] = PQconnectdb(conninfo);
	} while (PQstatus(c[n++]) == CONNECTION_OK && n < 100);
	refused(url, 0, FW_EAGAIN, "max_connections");
	while (n)
		PQfinish(c[--n]);
	for (int i = 0; i < 1200; i++) { /* they leave one by one */
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

/* Claim the one feed and make an outcome with n entries, keys from `first` on. */
static struct fw_outcome visit_of(struct fw_store *st, struct fw_lease *l, struct fw_feed *f, struct fw_entry_row *e, int first, int n,
	int64_t now)
{
	struct fw_outcome o;

	ck_assert_uint_eq(claim_at(st, now, 1, l, &A), 1);
	o = outcome_of(l, f, now);
	for (int i = 0; i < n; i++)
		e[i] = entry(first + i, 1, fw_arena_printf(&A, "n%d", first + i), "<p>number</p>");
	o.entries = e;
	o.entry_n = (size_t)n;
	return o;
}

START_TEST(locked_by_somebody_else)
{
	struct fw_store_config cfg = {.url = url, .flags = FW_STORE_CREATE, .busy_timeout_ms = 300};
	struct fw_commit c = {.now_ms = NOW, .n = 1};
	struct fw_entry_row e[3];
	struct fw_lease l[1];
	struct fw_outcome o;
	struct fw_store *st;
	struct fw_feed f;
	struct fw_err err = {0};
	PGconn *other;

	OK(fw_store_open(&cfg, &st, &err));
	subscribe(st, "https://a.example/", NOW);
	o = visit_of(st, l, &f, e, 0, 3, NOW);
	c.outcome = &o;
	other = bare_open();
	bare_do(other, "BEGIN; LOCK TABLE wheel");
	IS(fw_store_commit(st, &c, &err), FW_EAGAIN);
	ck_assert_msg(strstr(err.text, "pg_stat_activity") != NULL, "%s", err.text);
	bare_do(other, "ROLLBACK");
	PQfinish(other);
	ck_assert_int_eq(stats(st, NOW).entry_n, 0);
	OK(fw_store_commit(st, &c, &err));
	ck_assert_int_eq(o.rc, 0);
	ck_assert_uint_eq(o.visit.new_n, 3);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

static const char fail_function[] = "CREATE SEQUENCE tries; CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
	" IF nextval('trouble.tries') <= TG_ARGV[0]::int THEN RAISE EXCEPTION 'in the way' USING ERRCODE = TG_ARGV[1]; END IF;"
	" RETURN new; END $$";

/* Others are in the way, as the server says: twice is dealt with inside, for ever is told. */
START_TEST(serialisation_failures)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_commit c = {.now_ms = NOW, .n = 1};
	struct fw_entry_row e[3];
	struct fw_lease l[1];
	struct fw_outcome o;
	struct fw_feed f;
	struct fw_err err = {0};

	subscribe(st, "https://a.example/", NOW);
	o = visit_of(st, l, &f, e, 0, 3, NOW);
	c.outcome = &o;
	bare(fail_function);
	bare("CREATE TRIGGER fail BEFORE UPDATE ON wheel FOR EACH ROW EXECUTE FUNCTION fail(2, '40P01')");
	OK(fw_store_commit(st, &c, &err));
	ck_assert_int_eq(o.rc, 0);
	ck_assert_uint_eq(o.visit.new_n, 3);
	bare("DROP TRIGGER fail ON wheel; CREATE TRIGGER fail BEFORE UPDATE ON wheel FOR EACH ROW EXECUTE FUNCTION fail(1000, '40001')");
	o = visit_of(st, l, &f, e, 3, 3, NOW + 7200000);
	IS(fw_store_commit(st, &c, &err), FW_EAGAIN);
	ck_assert_msg(strstr(err.text, "40001") && strstr(err.text, "try again"), "%s", err.text);
	bare("DROP TRIGGER fail ON wheel");
	ck_assert_int_eq(stats(st, NOW).entry_n, 3);
	OK(fw_store_commit(st, &c, &err));
	ck_assert_int_eq(o.rc, 0);
	ck_assert_int_eq(stats(st, NOW).entry_n, 6);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* Sent again over another connection, as after one that broke in COMMIT: it is told as stored, and stored once. */
START_TEST(commit_that_was_stored_is_not_stale)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE), *anew;
	struct fw_commit c = {.now_ms = NOW, .n = 1};
	struct fw_entry_row e[3];
	struct fw_lease l[2];
	struct fw_outcome o;
	struct fw_feed f;
	struct fw_err err = {0};

	subscribe(st, "https://a.example/", NOW);
	o = visit_of(st, l, &f, e, 0, 3, NOW);
	c.outcome = &o;
	OK(fw_store_commit(st, &c, &err));
	anew = store_open(url, 0);
	for (int i = 0; i < 2; i++) {
		OK(fw_store_commit(anew, &c, &err));
		ck_assert_int_eq(o.rc, 0);
		ck_assert_uint_eq(o.visit.new_n, 3);
		ck_assert_int_eq(stats(anew, NOW).visit_n, 1);
		ck_assert_int_eq(stats(anew, NOW).entry_n, 3);
	}
	OK(fw_store_commit(st, &c, &err));
	ck_assert_int_eq(o.rc, FW_ESTALE); /* here there is no doubt */
	ck_assert_uint_eq(claim_at(anew, NOW + 7200000, 1, l + 1, &A), 1);
	OK(fw_store_commit(anew, &c, &err));
	ck_assert_int_eq(o.rc, 0); /* the new loan is not the old one, and is left alone */
	ck_assert_int_eq(stats(anew, NOW).lent_n, 1);
	check_clean(anew);
	fw_store_close(anew);
	fw_store_close(st);
}
END_TEST

static struct fw_store *open_again(const char *where)
{
	for (int i = 0; i < 3000; i++) {
		struct fw_store_config cfg = {.url = where};
		struct fw_store *st;
		struct fw_err err;

		if (fw_store_open(&cfg, &st, &err) == 0)
			return st;
		ck_assert_msg(err.rc == FW_EIO || err.rc == FW_EAGAIN, "%s", err.text);
		usleep(20000);
	}
	ck_abort_msg("the store does not come back");
	return NULL;
}

/* The server is killed at any moment of a commit; what was sent is sent again until it is answered, and then counted. */
START_TEST(server_killed_in_commit) /* REL-01, invariants 1 and 2 */
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	static struct fw_entry_row e[200];
	int64_t now = NOW, last_fence = 0;
	int stored = 0, broken = 0;

	subscribe(st, "https://a.example/", NOW);
	for (int round = 0; round < 12; round++, now += 7200000) {
		struct fw_commit c = {.now_ms = now, .n = 1};
		struct fw_lease l[1];
		struct fw_outcome o;
		struct fw_feed f;
		struct fw_err err = {0};
		pid_t killer;
		int rc;

		o = visit_of(st, l, &f, e, round * 200, 200, now);
		ck_assert_msg(l[0].fence > last_fence, "fence %lld after %lld", (long long)l[0].fence, (long long)last_fence);
		last_fence = l[0].fence;
		c.outcome = &o;
		if (round % 2 == 0) { /* lent without a wait for the disk: it may be lost, but then its fence never comes again */
			OK(fw_store_commit(st, &(struct fw_commit){.now_ms = now, .beat = &(struct fw_beat){.worker = "w"}}, &err));
		}
		killer = fork();
		if (killer == 0) {
			usleep((useconds_t)(round * 1500));
			server_postgres.kill9();
			_exit(0);
		}
		rc = fw_store_commit(st, &c, &err);
		waitpid(killer, NULL, 0);
		waitpid(-1, NULL, 0); /* the server itself: it is our child */
		server_postgres.again();
		if (rc) {
			IS(rc, FW_EIO);
			ck_assert_msg(strstr(err.text, "opened anew") != NULL, "%s", err.text);
			broken++;
		}
		fw_store_close(st);
		st = open_again(url);
		if (rc) {
			OK(fw_store_commit(st, &c, &err));
			ck_assert_msg(o.rc == 0 || o.rc == FW_ESTALE, "%d", o.rc);
		}
		if (o.rc == 0) {
			ck_assert_uint_eq(o.visit.new_n, 200);
			stored++;
		}
		ck_assert_int_eq(stats(st, now).entry_n, stored * 200);
		ck_assert_int_eq(stats(st, now).visit_n, stored);
		check_clean(st);
	}
	printf("# postgres: server killed 12 times, %d commits broke, %d batches stored, each once\n", broken, stored);
	ck_assert_int_gt(stored, 5);
	fw_store_close(st);
}
END_TEST

/* Whatever the server says in the middle of a commit: our code, the remedy, nothing stored; sent again it is stored once. */
START_TEST(every_answer) /* REL-09 */
{
	static const struct { const char *state; int rc; const char *words; } T[] = {
		{"53000", FW_EAGAIN, "lacks resources"}, {"53100", FW_EAGAIN, "disk is full"}, {"53200", FW_EAGAIN, "out of memory"},
		{"53300", FW_EAGAIN, "max_connections"}, {"55P03", FW_EAGAIN, "pg_stat_activity"}, {"57014", FW_EAGAIN, "load"},
		{"58030", FW_EAGAIN, "look into its log"}, {"25006", FW_EIO, "name the primary"}, {"57P01", FW_EIO, "opened anew"},
		{"57P02", FW_EIO, "opened anew"}, {"57P03", FW_EIO, "opened anew"}, {"08006", FW_EIO, "opened anew"},
		{"08P01", FW_EIO, "opened anew"}, {"42501", FW_EINVAL, "grant"}, {"XX000", FW_EINVAL, "XX000"},
	};
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_entry_row e[2];
	struct fw_lease l[1];
	struct fw_outcome o;
	struct fw_feed f;

	subscribe(st, "https://a.example/", NOW);
	bare(fail_function);
	for (size_t i = 0; i < FW_N(T); i++) {
		int64_t now = NOW + (int64_t)i * 7200000;
		struct fw_commit c = {.now_ms = now, .n = 1, .outcome = &o};
		struct fw_err err = {0};
		int rc;

		o = visit_of(st, l, &f, e, (int)i * 2, 2, now);
		bare(fw_arena_printf(&A, "SELECT setval('tries', 1, false); CREATE TRIGGER fail BEFORE UPDATE ON wheel FOR EACH ROW"
			" EXECUTE FUNCTION fail(1, '%s')", T[i].state));
		rc = fw_store_commit(st, &c, &err);
		ck_assert_msg(rc == T[i].rc && strstr(err.text, T[i].words), "%s: %d %s", T[i].state, rc, err.text);
		ck_assert_ptr_nonnull(strstr(err.text, "postgres:"));
		if (rc == FW_EIO) {
			IS(fw_store_ping(st, &err), FW_EIO); /* of no use any more */
			fw_store_close(st);
			st = open_again(url);
		}
		ck_assert_int_eq(stats(st, now).entry_n, (int64_t)i * 2);
		OK(fw_store_commit(st, &c, &err));
		ck_assert_int_eq(o.rc, 0);
		ck_assert_int_eq(stats(st, now).entry_n, (int64_t)i * 2 + 2);
		bare("DROP TRIGGER fail ON wheel");
	}
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* An administrator ends sessions, and makes the database one that only reads, for a while. */
START_TEST(sessions_ended_by_an_administrator)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_commit c = {.now_ms = NOW, .n = 1};
	struct fw_entry_row e[2];
	struct fw_err err = {0};
	struct fw_lease l[1];
	struct fw_outcome o;
	struct fw_feed f;
	PGconn *other;

	subscribe(st, "https://a.example/", NOW);
	o = visit_of(st, l, &f, e, 0, 2, NOW);
	c.outcome = &o;
	bare("ALTER DATABASE postgres SET default_transaction_read_only = on; SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
		" WHERE application_name = 'feedwheel'");
	IS(fw_store_commit(st, &c, &err), FW_EIO);
	ck_assert_msg(strstr(err.text, "opened anew") != NULL, "%s", err.text);
	fw_store_close(st);
	refused(url, 0, FW_EIO, "read-only");
	other = bare_open();
	bare_do(other, "SET default_transaction_read_only = off");
	bare_do(other, "ALTER DATABASE postgres RESET default_transaction_read_only");
	PQfinish(other);
	st = open_again(url);
	OK(fw_store_commit(st, &c, &err));
	ck_assert_int_eq(o.rc, 0);
	ck_assert_int_eq(stats(st, NOW).entry_n, 2);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

#define STANDBY_PORT 5433

static PGconn *standby_open(void)
{
	char conninfo[400];
	PGconn *c;

	ck_assert(fw_snprintf(conninfo, sizeof(conninfo), "host=%s/pg port=%d user=feedwheel dbname=postgres", scratch(), STANDBY_PORT));
	c = PQconnectdb(conninfo);
	ck_assert_msg(PQstatus(c) == CONNECTION_OK, "%s", PQerrorMessage(c));
	return c;
}

/* A copy of the running server that follows it. */
static pid_t standby_start(void)
{
	char copy[400], serve[400], data[300], socket[300], from[300], port[12];
	const char *pg_basebackup[] = {copy, "-D", data, "-h", from, "-U", "feedwheel", "-R", "-X", "stream", "-c", "fast", "-N", NULL};
	const char *postgres[] = {serve, "-D", data, "-c", socket, "-c", port, "-c", "listen_addresses=", "-c", "fsync=off", "-c",
		"max_connections=60", NULL};
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

/* All that the primary has written is on the standby. */
static void standby_has_all(void)
{
	PGconn *first = bare_open(), *second = standby_open();
	PGresult *r = PQexec(first, "SELECT pg_current_wal_insert_lsn()");
	const char *lsn = PQgetvalue(r, 0, 0);
	bool there = false;

	for (int i = 0; i < 3000 && !there; i++) {
		PGresult *q = PQexecParams(second, "SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn", 1, NULL, &lsn, NULL, NULL, 0);

		there = PQresultStatus(q) == PGRES_TUPLES_OK && strcmp(PQgetvalue(q, 0, 0), "t") == 0;
		PQclear(q);
		usleep(20000);
	}
	ck_assert(there);
	PQclear(r);
	PQfinish(first);
	PQfinish(second);
}

/* The primary dies, the standby takes over: with both in the URL the same worker goes on, and what it held is stored once. */
START_TEST(standby_takes_over) /* REL-01 */
{
	struct fw_commit c = {.now_ms = NOW, .n = 1};
	struct fw_store *st, *reader;
	struct fw_entry_row e[4];
	struct fw_err err = {0};
	struct fw_lease l[1];
	struct fw_outcome o;
	struct fw_feed f;
	char where[700];
	PGconn *second;
	pid_t pid;

	st = store_open(url, FW_STORE_CREATE);
	fw_store_close(st);
	pid = standby_start();
	ck_assert(fw_snprintf(where, sizeof(where), "postgres://feedwheel@/postgres?host=%s/pg,%s/pg&port=%d,5432&schema=trouble", scratch(),
		scratch(), STANDBY_PORT)); /* the standby first: it is passed over */
	st = store_open(where, 0);
	subscribe(st, "https://a.example/", NOW);
	o = visit_of(st, l, &f, e, 0, 4, NOW);
	c.outcome = &o;
	/* whatever waits for no disk is on its way after this */
	OK(fw_store_commit(st, &(struct fw_commit){.now_ms = NOW, .beat = &(struct fw_beat){.worker = "w"}}, &err));
	standby_has_all();
	reader = store_open(where, FW_STORE_READ); /* any of them will do for that */
	ck_assert_int_eq(stats(reader, NOW).feed_n, 1);
	fw_store_close(reader);
	server_postgres.kill9();
	IS(fw_store_commit(st, &c, &err), FW_EIO);
	fw_store_close(st);
	refused(where, 0, FW_EIO, "cannot be reached"); /* nobody is there to be written to */
	second = standby_open();
	bare_do(second, "SELECT pg_promote()");
	PQfinish(second);
	st = open_again(where);
	OK(fw_store_commit(st, &c, &err));
	ck_assert_int_eq(o.rc, 0);
	ck_assert_int_eq(stats(st, NOW).entry_n, 4);
	o = visit_of(st, l, &f, e, 4, 4, NOW + 7200000);
	ck_assert_int_eq(commit_one(st, &o, NOW + 7200000), 0);
	ck_assert_int_eq(stats(st, NOW).entry_n, 8);
	check_clean(st);
	fw_store_close(st);
	end(pid, SIGINT);
}
END_TEST

/* A number that was taken but is not yet to be seen must not be passed by a reader's cursor. */
START_TEST(cursor_waits_for_writers)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_entry_row e[1];
	struct fw_lease l[2];
	struct fw_feed f;
	struct fw_outcome o;
	int64_t a = subscribe(st, "https://a.example/", NOW), by_number = 0;
	PGconn *other = bare_open();
	int status;
	pid_t slow;

	subscribe(st, "https://b.example/", NOW);
	bare("CREATE FUNCTION nap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF new.title = 'slow' THEN PERFORM pg_advisory_xact_lock(47, 11); END IF;"
		" RETURN new; END $$; CREATE TRIGGER nap BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION nap()");
	for (int i = 0; i < 2; i++) /* two claims: the loans of one have one lock */
		ck_assert_uint_eq(claim_at(st, NOW, 1, &l[i], &A), 1);
	bare_do(other, "SELECT pg_advisory_lock(47, 11)");
	slow = fork();
	if (slow == 0) {
		struct fw_store *mine = store_open(url, 0);

		e[0] = entry(1, 1, "slow", "x");
		o = outcome_of(&l[0], &f, NOW);
		o.entries = e;
		o.entry_n = 1;
		_exit(commit_one(mine, &o, NOW));
	}
	bare_do(other, "DO $$ BEGIN WHILE NOT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = 47 AND NOT granted) LOOP"
		" PERFORM pg_sleep(0.02); END LOOP; END $$"); /* it has its number and waits */
	e[0] = entry(2, 1, "quick", "x");
	o = outcome_of(&l[1], &f, NOW);
	o.entries = e;
	o.entry_n = 1;
	ck_assert_int_eq(commit_one(st, &o, NOW), 0);
	ck_assert_int_eq(entry_count(st, 0), 1); /* who just looks sees it */
	ck_assert_int_eq(query_count(st, (struct fw_entry_query){.oldest_first = true}), 0); /* a cursor does not */
	for (int64_t id = 1; id < 9; id++) /* who asks for it by its number does */
		by_number += query_count(st, (struct fw_entry_query){.oldest_first = true, .after_id = id - 1, .before_id = id + 1});
	ck_assert_int_eq(by_number, 1);
	bare_do(other, "SELECT pg_advisory_unlock(47, 11)");
	PQfinish(other);
	ck_assert_int_eq(waitpid(slow, &status, 0), slow);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(entry_count(st, 0), 2);
	ck_assert_int_eq(entry_count(st, a), 1);
	fw_store_close(st);
}
END_TEST

START_TEST(waiting_workers_are_told)
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
		ck_assert_int_lt(fw_mono_ms() - start, 60000); /* told, not timed out */
		waitpid(pid, NULL, 0);
		while (changed)
			OK(fw_store_wait(mine, -1, 100, &changed, &err));
	}
	fw_store_close(other);
	fw_store_close(mine);
}
END_TEST

/* Every feed once, as itself; visited, at the same time again. */
static void visit_all(struct fw_store *st, int64_t now, int n)
{
	struct fw_lease l[32];
	bool seen[32] = {false};
	struct fw_outcome o;
	struct fw_feed f;

	ck_assert_uint_eq(claim_at(st, now, 32, l, &A), (size_t)n);
	for (int i = 0; i < n; i++) {
		int64_t k;

		ck_assert(fw_str_int(fw_str_sub(l[i].feed.url, strlen("https://a.example/"), SIZE_MAX), &k));
		ck_assert(k >= 0 && k < n && !seen[k]);
		seen[k] = true;
		ck_assert_int_eq(l[i].feed.id, find(st, l[i].feed.id, &A).id);
		ck_assert(fw_str_eq(l[i].feed.url, find(st, l[i].feed.id, &A).url));
		if (i % 2) {
			o = outcome_of(&l[i], &f, now);
			ck_assert_int_eq(commit_one(st, &o, now), 0);
			ck_assert_int_eq(find(st, l[i].feed.id, &A).last_visit_ms, now);
		} else {
			struct fw_err err = {0};

			OK(fw_store_release(st, &l[i], 1, &err));
		}
	}
	check_clean(st);
}

/* Where rows lay when a feed was put into the queue is a hint, and may be wrong in any way. */
START_TEST(hints_that_lie)
{
	static const char *const lies[] = {
		"VACUUM FULL wheel",
		"UPDATE wheel SET why = 'moved by hand'; UPDATE feeds SET folder = 'f'; VACUUM FULL feeds",
		"UPDATE places SET wheel_at = NULL, feed_at = NULL",
		"UPDATE places SET wheel_at = '(0,1)', feed_at = '(0,2)'", /* another feed's */
		"UPDATE places SET wheel_at = '(4000000000,7)', feed_at = '(99,0)'",
		"UPDATE places p SET wheel_at = w.ctid, feed_at = f.ctid FROM wheel w, feeds f WHERE w.feed_id = 21 - p.feed_id AND f.id = p.feed_id",
	};
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_lease l[1];
	struct fw_outcome o;
	struct fw_feed f;

	subscribe_many(st, "https://a.example/%d", 0, 20, NOW);
	for (size_t i = 0; i < FW_N(lies); i++) {
		struct fw_str rest = fw_str(lies[i]);

		visit_all(st, NOW + (int64_t)i * 7200000, 20);
		while (rest.len)
			bare(fw_arena_str(&A, fw_str_split(rest, ';', &rest)).p);
	}
	visit_all(st, NOW + (int64_t)FW_N(lies) * 7200000, 20);
	/* and between claim and commit */
	ck_assert_uint_eq(claim_at(st, NOW + 100 * INT64_C(7200000), 1, l, &A), 1);
	bare("VACUUM FULL wheel");
	o = outcome_of(&l[0], &f, NOW + 100 * INT64_C(7200000));
	ck_assert_int_eq(commit_one(st, &o, NOW + 100 * INT64_C(7200000)), 0);
	ck_assert_int_eq(find(st, o.feed_id, &A).last_visit_ms, NOW + 100 * INT64_C(7200000));
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* The row moves while the commit waits for whoever holds it: neither change is lost. */
START_TEST(row_that_moves_meanwhile)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_err err = {0};
	struct fw_lease l[1];
	struct fw_outcome o;
	struct fw_feed f;
	PGconn *other;
	int status;
	pid_t pid;

	subscribe(st, "https://a.example/", NOW);
	ck_assert_uint_eq(claim_at(st, NOW, 1, l, &A), 1);
	other = bare_open();
	bare_do(other, "BEGIN; UPDATE wheel SET status = 1");
	pid = fork();
	if (pid == 0) {
		struct fw_store *mine = store_open(url, 0);

		o = outcome_of(&l[0], &f, NOW);
		_exit(commit_one(mine, &o, NOW) != 0);
	}
	bare_do(other, "DO $$ BEGIN WHILE NOT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted) LOOP PERFORM pg_sleep(0.02); END LOOP; END $$");
	ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), 0); /* it waits */
	bare_do(other, "COMMIT");
	PQfinish(other);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	f = find(st, l[0].feed.id, &A);
	ck_assert_int_eq(f.last_visit_ms, NOW);
	ck_assert_int_eq(f.status, 1);
	OK(fw_store_ping(st, &err));
	check_clean(st); /* it is paused: in no queue */
	fw_store_close(st);
}
END_TEST

/* feedwheel-store(7) names every table, view and column that there is. */
START_TEST(manual_names_everything)
{
	const char *root = getenv("FW_SOURCE_ROOT");
	struct fw_buf page = FW_BUF_INIT(0);
	char name[400], part[4096];
	PGconn *c;
	PGresult *r;
	size_t n;
	FILE *f;

	ck_assert(fw_snprintf(name, sizeof(name), "%s/man/feedwheel-store.7", root ? root : "."));
	f = fopen(name, "r");
	ck_assert_msg(f != NULL, "%s is missing: set FW_SOURCE_ROOT", name);
	while ((n = fread(part, 1, sizeof(part), f)) > 0)
		fw_buf_add(&page, part, n);
	fclose(f);
	fw_store_close(store_open(url, FW_STORE_CREATE));
	c = bare_open();
	r = PQexec(c, "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'trouble'");
	ck_assert_int_gt(PQntuples(r), 150);
	for (int i = 0; i < PQntuples(r); i++)
		ck_assert_msg(fw_str_find(fw_buf_str(&page), fw_str(PQgetvalue(r, i, 0))) &&
			fw_str_find(fw_buf_str(&page), fw_str(PQgetvalue(r, i, 1))), "feedwheel-store(7) does not name %s.%s",
			PQgetvalue(r, i, 0), PQgetvalue(r, i, 1));
	PQclear(r);
	PQfinish(c);
	fw_buf_finish(&page);
}
END_TEST

#define POOLER_PORT 6432

/* pgbouncer in front of the server, in this mode, with n sessions for all; 0: not installed. */
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
	fprintf(f, "[databases]\npostgres = host=%s/pg user=feedwheel\n[pgbouncer]\nlisten_addr =\nunix_socket_dir = %s/pg\n"
		"listen_port = %d\nauth_type = any\npool_mode = %s\ndefault_pool_size = %d\n"
		"ignore_startup_parameters = extra_float_digits\n", scratch(), scratch(), POOLER_PORT, mode, n);
	fclose(f);
	chmod(name, 0644);
	pid = run_as_server(argv);
	answers_at(POOLER_PORT);
	return pid;
}

/* In transaction mode two stores would write into each other: both are told instead. In session mode all is well. */
START_TEST(poolers)
{
	struct fw_err err = {0};
	char where[2][500];
	struct fw_store *st[2];
	struct fw_lease l[1];
	struct fw_outcome o;
	struct fw_feed f;
	bool changed = false;
	int refused_n = 0;
	pid_t pid;

	for (int i = 0; i < 2; i++) {
		char own[500];

		ck_assert(fw_snprintf(where[i], sizeof(where[i]), "postgres://feedwheel@/postgres?host=%s/pg&port=%d&schema=side%d",
			scratch(), POOLER_PORT, i));
		ck_assert(fw_snprintf(own, sizeof(own), "postgres://feedwheel@/postgres?host=%s/pg&schema=side%d", scratch(), i));
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
			struct fw_feed_new n = {.url = fw_str(fw_arena_printf(&A, "https://side%d.example/%d", i, round)), .due_at_ms = NOW};
			int rc = st[i] ? fw_store_subscribe(st[i], &n, 1, &err) : 0;

			ck_assert_msg(!rc || (rc == FW_EINVAL && strstr(err.text, "session mode")), "%d %s", rc, err.text);
			refused_n += rc != 0;
			if (rc) { /* of no use any more */
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
	bare("DO $$ BEGIN ASSERT NOT EXISTS (SELECT 1 FROM side0.feeds WHERE url LIKE '%side1%'), 'mixed'; ASSERT NOT EXISTS"
		" (SELECT 1 FROM side1.feeds WHERE url LIKE '%side0%'), 'mixed'; END $$");

	pid = pooler_start("session", 2);
	for (int i = 0; i < 2; i++)
		st[i] = store_open(where[i], 0);
	subscribe(st[1], "https://one.example/", NOW - 1000);
	OK(fw_store_wait(st[1], -1, 0, &changed, &err));
	ck_assert_uint_eq(claim_at(st[1], NOW, 1, l, &A), 1);
	o = outcome_of(&l[0], &f, NOW);
	ck_assert_int_eq(commit_one(st[1], &o, NOW), 0);
	(void)stats(st[0], NOW);
	(void)entry_count(st[1], 0); /* a list is a transaction of its own kind */
	check_clean(st[1]);
	for (int i = 0; i < 2; i++)
		fw_store_close(st[i]);
	end(pid, SIGINT);
}
END_TEST

#define FULL_N 400

/* The data lies on a small disk of its own, which fills up. */
START_TEST(disk_full) /* REL-09 */
{
	static struct fw_entry_row e[FULL_N];
	struct fw_buf text = FW_BUF_INIT(0);
	char folder[300], filler[340], junk[65536] = "";
	struct fw_commit c = {.n = 1};
	struct fw_store *st;
	struct fw_outcome o;
	struct fw_lease l[1];
	struct fw_feed f;
	struct fw_err err = {0};
	int64_t now = NOW, before = 0;
	int rc, fd, id = 0;

	server_postgres.stop();
	ck_assert(fw_snprintf(folder, sizeof(folder), "%s/tiny", scratch()));
	ck_assert_int_eq(mkdir(folder, 0755), 0);
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("tiny", folder, "tmpfs", 0, "size=160m")) {
		printf("# disk_full: no mount here (%s): skipped\n", strerror(errno));
		return;
	}
	server_postgres.start(folder);
	server_postgres.url(url, sizeof(url), "full");
	st = store_open(url, FW_STORE_CREATE);
	subscribe(st, "https://a.example/", NOW);
	ck_assert(fw_snprintf(filler, sizeof(filler), "%s/filler", folder));
	fd = open(filler, O_WRONLY | O_CREAT, 0600);
	while (write(fd, junk, sizeof(junk)) == (ssize_t)sizeof(junk))
		;
	ck_assert_int_eq(ftruncate(fd, lseek(fd, 0, SEEK_END) - (24 << 20)), 0);
	close(fd);
	for (int i = 0; i < 3000; i++)
		fw_buf_addf(&text, "%x ", i * 7919 * 31);
	do {
		before = stats(st, now).entry_n;
		now += 7200000;
		o = visit_of(st, l, &f, e, id, FULL_N, now);
		for (int i = 0; i < FULL_N; i++)
			e[i].content = fw_buf_str(&text);
		id += FULL_N;
		c.outcome = &o;
		c.now_ms = now;
		rc = fw_store_commit(st, &c, &err);
	} while (!rc && id < 100 * FULL_N);
	ck_assert_msg(rc == FW_EAGAIN || rc == FW_EIO, "%d %s", rc, err.text);
	printf("# disk_full: %s\n", err.text);
	ck_assert_int_eq(unlink(filler), 0);
	if (rc == FW_EIO) { /* a full journal ends the server; it recovers by itself where there is room by then, and ends for good where there is none */
		server_postgres.kill9();
		server_postgres.again();
	}
	for (int i = 0; rc && i < 3000; i++) {
		if (rc == FW_EIO) {
			fw_store_close(st);
			st = open_again(url);
		}
		rc = fw_store_commit(st, &c, &err);
		usleep(20000);
	}
	ck_assert_msg(rc == 0, "%d %s", rc, err.text);
	ck_assert_int_eq(o.rc, 0);
	ck_assert_int_eq(stats(st, now).entry_n, before + FULL_N);
	check_clean(st);
	fw_store_close(st);
	fw_buf_finish(&text);
	server_postgres.stop();
	umount(folder);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("store, trouble with PostgreSQL");
	TCase *t = tcase_create("postgres");
	const TTest *every[] = {schemas_that_are_not_ours, schema_3_is_brought_up_to_date, addresses_that_lead_nowhere,
		servers_that_only_look_like_it, reading_only, too_many_connections,
		locked_by_somebody_else, serialisation_failures, every_answer,
		sessions_ended_by_an_administrator, standby_takes_over, commit_that_was_stored_is_not_stale, server_killed_in_commit,
		cursor_waits_for_writers, waiting_workers_are_told, hints_that_lie, row_that_moves_meanwhile,
		poolers, manual_names_everything, disk_full};

	if (!server_postgres.installed()) {
		printf("1..0 # SKIP install the package %s\n", server_postgres.package);
		return getenv("CI") != NULL;
	}
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 180);
	for (size_t i = 0; i < FW_N(every); i++)
		tcase_add_test(t, every[i]);
	suite_add_tcase(s, t);
	return run_suite(s);
}
