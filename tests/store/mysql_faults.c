/* SPDX-License-Identifier: ISC */
/*
 * The MariaDB and MySQL driver and servers that refuse, wait, break or are full. Each error has the
 * right code and one line that names the store and the remedy, never the password; nothing is
 * half-done; the same call succeeds when the cause is gone. dialect_mysql.c tests the layer below.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "mysql_fixture.h"
#include "tiny_disk.h"
#include "work.h"

static struct fw_arena A;

static void setup(void)
{
	fw_arena_init(&A, 0);
	bare_begin();
}

static void teardown(void)
{
	fw_arena_finish(&A);
}

static void refused_at(const char *at, unsigned flags, int code, const char *words)
{
	open_fails(at, flags, code, "", words);
}

/* ---- opening --------------------------------------------------------------------------------- */

START_TEST(tls_as_the_server_has_it)
{
	/* MySQL, and MariaDB since 11.4, create a certificate for themselves */
	bool offers;
	char tls[340];

	fw_store_close(store_open(url, FW_STORE_CREATE));
	offers = getenv("FW_MYSQLD") || bare_number("SELECT @@have_ssl = 'YES'");
	ck_assert(fw_snprintf(tls, sizeof(tls), "%s&ssl=yes", url));
	if (offers)
		fw_store_close(store_open(tls, FW_STORE_CREATE));
	else
		refused_at(tls, FW_STORE_CREATE, FW_EINVAL, "no TLS");
	ck_assert(fw_snprintf(tls, sizeof(tls), "%s&ssl_ca=/nowhere.pem", url));
	refused_at(tls, FW_STORE_CREATE, FW_EINVAL, "no TLS");
}
END_TEST

START_TEST(addresses) /* each message names the thing and the remedy */
{
	static const struct {
		const char *url, *words;
		int rc;
	} T[] = {
		{"mysql://root@localhost", "no name of a database", FW_EINVAL},
		{"mysql://root@localhost/a`b", "no name of a database", FW_EINVAL},
		{"mysql://root@localhost/x?colour=red", "unknown option \"colour\"", FW_EINVAL},
		{"mysql://root@localhost/x?timeout=soon", "timeout=soon", FW_EINVAL},
		{"mysql://root@localhost/x?ssl=required", "ssl is 'required': write yes or no", FW_EINVAL},
		{"mysql://root@localhost/x?ssl_verify=maybe", "ssl_verify is 'maybe': write yes or no", FW_EINVAL},
		{"mysql://root:secret@127.0.0.1:1/x", "no server answers", FW_EIO},
		{"mariadb://root:secret@localhost/x?socket=/nowhere/at/all", "no server answers", FW_EIO},
	};

	for (size_t i = 0; i < FW_N(T); i++)
		refused_at(T[i].url, FW_STORE_CREATE, T[i].rc, T[i].words);
	refused_at(url, 0, FW_ENOTFOUND, "feedwheel add");
	/* opening for reading creates nothing */
	refused_at(url, FW_STORE_READ | FW_STORE_CREATE, FW_ENOTFOUND, "feedwheel add");
}
END_TEST

START_TEST(unsupported_servers) /* their version shows it */
{
	static const struct {
		const char *argument, *words;
	} T[] = {
		{"--version=8.0.11-TiDB-v7.5.0", "the server is TiDB"},
		{"--version=8.0.30-Vitess", "the server is Vitess"},
	};
	const struct server *server = server_of("mysql");

	server->start(scratch()); /* a server of this test's own */
	server->url(url, sizeof(url), name);
	fw_store_close(store_open(url, FW_STORE_CREATE));
	for (size_t i = 0; i < FW_N(T) && !getenv("FW_MYSQLD"); i++) { /* MySQL's version shows what it is */
		server->kill9();
		server_maria_argument = T[i].argument;
		server->again();
		refused_at(url, 0, FW_EINVAL, T[i].words);
		refused_at(url, FW_STORE_READ, FW_EINVAL, "use PostgreSQL, MariaDB or MySQL");
	}
	server->kill9();
	server_maria_argument = NULL;
	server->again();
	fw_store_close(store_open(url, 0));
	server->stop();
}
END_TEST

/* Creates a user with all rights in this database and none elsewhere; at: the URL. */
static void user_make(char *at, size_t cap, const char *password)
{
	char sql[400];

	ck_assert(fw_snprintf(sql, sizeof(sql), "CREATE USER '%s'@'localhost' IDENTIFIED BY 'secret'", name));
	bare(sql);
	ck_assert(fw_snprintf(sql, sizeof(sql), "GRANT ALL ON `%s`.* TO '%s'@'localhost'", name, name));
	bare(sql);
	ck_assert(fw_snprintf(
		at, cap, "mysql://%s:%s@localhost/%s?socket=%s", name, password, name, strstr(url, "socket=") + 7));
}

START_TEST(password_is_not_printed)
{
	char at[400];

	fw_store_close(store_open(url, FW_STORE_CREATE));
	user_make(at, sizeof(at), "secrets");
	refused_at(at, 0, FW_EINVAL, "check user and password");
	*strstr(at, "secrets@") = 'x';
	refused_at(at, 0, FW_EINVAL, "grant the user all");
}
END_TEST

START_TEST(reading_only)
{
	read_only_refuses(url);
}
END_TEST

START_TEST(too_many_connections)
{
	struct fw_store *st[200];
	struct fw_err err = {0};
	char at[400];
	int n = 0, rc = 0;

	fw_store_close(store_open(url, FW_STORE_CREATE));
	user_make(at, sizeof(at), "secret");
	for (; n < 200 && !rc; n++) {
		struct fw_store_config c = {.url = at};

		rc = fw_store_open(&c, &st[n], &err);
	}
	ck_assert_msg(
		rc == FW_EAGAIN && strstr(err.text, "too many connections") && strstr(err.text, "max_connections"),
		"%d: %s", rc, err.text);
	for (n--; n-- > 0;)
		fw_store_close(st[n]);
	for (int i = 0; i < 1000 && rc; i++) { /* the server takes a while to end that many connections */
		struct fw_store_config c = {.url = at};

		usleep(20000);
		rc = fw_store_open(&c, &st[0], &err);
	}
	ck_assert_msg(rc == 0, "%s", err.text);
	fw_store_close(st[0]);
}
END_TEST

/* ---- concurrent clients ---------------------------------------------------------------------- */

START_TEST(locked_by_another_client)
{
	struct work *w = work_begin_at(url, 1000);
	MYSQL *db = bare_open();

	run(db, "BEGIN");
	run(db, "UPDATE schedule SET fail_n = fail_n + 1");
	commit_is_locked_out(w, name, "locked by another");
	ck_assert_uint_eq(drv_due(w->st, -1, INT64_MAX)->n, 1); /* reading still works */
	run(db, "ROLLBACK");
	mysql_close(db);
	commit_stores_once(w);
	work_end(w);
}
END_TEST

static void says_read_only(int rc, const struct fw_err *err)
{
	ck_assert_msg(rc == FW_EIO && strstr(err->text, "the server is read-only: name the primary") &&
			!strstr(err->text, "secret"),
		"%d: %s", rc, err->text);
}

START_TEST(may_not_be_written_now) /* a replica, or a failover */
{
	struct fw_feed_new n = {.url = FW_STR("https://b.example/")};
	struct fw_store *st, *privileged, *reader;
	struct fw_err err = {0};
	char at[400];

	privileged = store_open(url, FW_STORE_CREATE); /* it may write to a replica, where that is lost */
	reader = store_open(url, FW_STORE_READ);
	user_make(at, sizeof(at), "secret");
	st = store_open(at, 0);
	bare("SET GLOBAL read_only = 1");
	says_read_only(fw_store_subscribe(st, &n, 1, &err), &err);
	ck_assert_ptr_nonnull(strstr(err.text, "***"));
	says_read_only(fw_store_ping(st, &err), &err);
	says_read_only(fw_store_ping(privileged, &err), &err);
	refused_at(at, 0, FW_EIO, "the server is read-only");
	refused_at(url, 0, FW_EIO, "the server is read-only");
	OK(fw_store_ping(reader, &err));
	fw_store_close(store_open(at, FW_STORE_READ));
	bare("SET GLOBAL read_only = 0");
	fw_store_close(reader);
	fw_store_close(privileged);
	OK(fw_store_ping(st, &err));
	OK(fw_store_subscribe(st, &n, 1, &err));
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/*
 * A trigger raises this server error that many times. It counts in a server variable that nothing
 * else uses: a table would be rolled back.
 */
static void trouble_make(const char *table, int code, int times)
{
	char sql[400];

	ck_assert(fw_snprintf(sql, sizeof(sql), "SET GLOBAL max_error_count = %d", times));
	bare(sql);
	ck_assert(fw_snprintf(sql, sizeof(sql),
		"CREATE TRIGGER trouble_comes BEFORE INSERT ON %s FOR EACH ROW IF"
		" @@GLOBAL.max_error_count > 0 THEN SET GLOBAL max_error_count ="
		" @@GLOBAL.max_error_count - 1; SIGNAL SQLSTATE 'HY000' SET"
		" MYSQL_ERRNO = %d, MESSAGE_TEXT = 'trouble'; END IF",
		table, code));
	bare(sql);
}

/* How many times the error was still to come. */
static int64_t trouble_end(void)
{
	int64_t left = bare_number("SELECT @@GLOBAL.max_error_count");

	bare("SET GLOBAL max_error_count = 64");
	bare("DROP TRIGGER trouble_comes");
	return left;
}

/* each server error gets its code, nothing is half-done, and the same call succeeds afterwards */
START_TEST(server_errors)
{
	static const struct {
		int code, rc;
		const char *words;
	} T[] = {
		{1213, FW_EAGAIN, "conflict with another transaction"},
		{1205, FW_EAGAIN, "locked by another"},
		{1040, FW_EAGAIN, "max_connections"},
		{1203, FW_EAGAIN, "max_connections"},
		{1290, FW_EIO, "the server is read-only"},
		{1792, FW_EIO, "the server is read-only"},
		{1836, FW_EIO, "the server is read-only"},
		{1021, FW_EAGAIN, "disk is full"},
		{1114, FW_EAGAIN, "disk is full"},
		{1026, FW_EAGAIN, "disk is full"},
		{3019, FW_EAGAIN, "disk is full"},
		{1041, FW_EAGAIN, "out of memory"},
		{1206, FW_EAGAIN, "out of memory"},
		{1317, FW_EAGAIN, "max_statement_time"},
		{3024, FW_EAGAIN, "max_statement_time"},
		{1053, FW_EIO, "connection broke"},
		{1927, FW_EIO, "connection broke"},
		{2006, FW_EIO, "connection broke"},
		{2013, FW_EIO, "connection broke"},
		{1142, FW_EUNUSABLE, "grant the user all"},
		{1143, FW_EUNUSABLE, "grant the user all"},
		{1227, FW_EUNUSABLE, "grant the user all"},
		{1146, FW_EUNUSABLE, "tables are missing"},
		{1054, FW_EUNUSABLE, "changed the tables"},
		{1033, FW_EUNUSABLE, "damaged"},
		{1034, FW_EUNUSABLE, "damaged"},
		{1194, FW_EUNUSABLE, "damaged"},
		{1195, FW_EUNUSABLE, "damaged"},
	};
	struct work *w = work_begin(store_open(url, FW_STORE_CREATE));

	for (size_t i = 0; i < FW_N(T); i++) {
		int rc;

		visit(w, (int)i, 1);
		trouble_make("visits", T[i].code, 1000);
		rc = commit(w);
		ck_assert_msg(rc == T[i].rc && strstr(drv_err.text, T[i].words) && strstr(drv_err.text, name) &&
				!strchr(drv_err.text, '\n'),
			"%d: %d %s", T[i].code, rc, drv_err.text);
		(void)trouble_end();
		if (rc == FW_EIO)
			work_again(w, url);
		ck_assert_int_eq(stats(w->front).entry_n, (int64_t)i);
		DONE(commit(w));
		ck_assert(w->o.rc == 0 && w->o.visit.new_n == 1);
	}
	work_end(w);
}
END_TEST

/* A few deadlocks: nothing is stored until the call succeeds, and then it is stored once. */
START_TEST(deadlocks_are_tried_again)
{
	struct work *w = work_begin(store_open(url, FW_STORE_CREATE));
	int rc, n = 0;

	visit(w, 0, 3);
	trouble_make("visits", 1213, 7);
	while ((rc = commit(w)) == FW_EAGAIN && n++ < 8) /* as the store thread does; the dialect may retry by itself */
		ck_assert_int_eq(stats(w->front).entry_n, 0);
	ck_assert_int_eq(rc, 0);
	ck_assert_int_eq(trouble_end(), 0);
	ck_assert_int_eq(stats(w->front).entry_n, 3);
	ck_assert_int_eq(stats(w->front).visit_n, 1);
	work_end(w);
}
END_TEST

/*
 * Many rows at once take other paths through driver and server than few: a failure there is rolled
 * back whole, too.
 */
START_TEST(many_entries_at_once)
{
	static const struct {
		const char *table;
		int code, rc;
	} T[] = {{"entries", 1114, FW_EAGAIN}, {"entry_keys", 1114, FW_EAGAIN}, {"entries", 2013, FW_EIO},
		{"entry_keys", 1213, FW_EAGAIN}};
	struct work *w = work_begin(store_open(url, FW_STORE_CREATE));

	visit(w, 0, 300);
	for (size_t i = 0; i < FW_N(T); i++) {
		trouble_make(T[i].table, T[i].code, 1000);
		FAILS(commit(w), T[i].rc);
		(void)trouble_end();
		if (T[i].rc == FW_EIO)
			work_again(w, url);
		ck_assert_int_eq(
			bare_number("SELECT (SELECT count(*) FROM entries) + (SELECT count(*) FROM entry_keys)"), 0);
	}
	DONE(commit(w));
	ck_assert_uint_eq(w->o.visit.new_n, 300);
	ck_assert_int_eq(stats(w->front).entry_n, 300);
	ck_assert_int_eq(bare_number("SELECT count(*) FROM entries e JOIN entry_keys k ON k.feed_id = e.feed_id AND"
				     " k.entry_id = e.id AND"
				     " k.entry_key = e.entry_key"),
		300);
	work_end(w);
}
END_TEST

START_TEST(server_shuts_down) /* a clean shutdown while a worker writes */
{
	const struct server *server = server_of("mysql");
	struct fw_err err = {0};
	struct work *w;

	server->start(scratch()); /* a server of this test's own */
	server->url(url, sizeof(url), name);
	w = work_begin(store_open(url, FW_STORE_CREATE));
	visit(w, 0, 1);
	bare("SHUTDOWN");
	for (int i = 0; i < 3000 && fw_store_ping(w->front, &err) == 0; i++)
		usleep(20000);
	FAILS(commit(w), FW_EIO);
	ck_assert_ptr_nonnull(strstr(drv_err.text, "the connection broke"));
	server->kill9();
	refused_at(url, 0, FW_EIO, "no server answers");
	server->again();
	work_again(w, url);
	DONE(commit(w));
	ck_assert_int_eq(w->o.rc, 0);
	work_end(w);
	server->stop();
}
END_TEST

static void *kill_after(void *us)
{
	usleep(*(useconds_t *)us);
	server_mysql.kill9();
	return NULL;
}

/*
 * The server is killed at any moment of a commit. The commit is sent again until it is answered,
 * and then the rows are counted.
 */
START_TEST(server_is_killed_in_commits) /* REL-01 */
{
	const struct server *server = server_of("mysql");
	struct work *w;
	int broken = 0;

	server->start(scratch()); /* a server of this test's own */
	server->url(url, sizeof(url), name);
	w = work_begin(store_open(url, FW_STORE_CREATE));
	for (int round = 0; round < 6; round++) {
		useconds_t us = (useconds_t)(round * 1000);
		pthread_t killer;
		int rc;

		visit(w, round * 200, 200);
		ck_assert_int_eq(pthread_create(&killer, NULL, kill_after, &us), 0);
		rc = commit(w);
		pthread_join(killer, NULL);
		server->again();
		if (rc) {
			ck_assert_msg(rc == FW_EIO && strstr(drv_err.text, "the connection broke"), "%d %s", rc,
				drv_err.text);
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
	printf("# mysql: server killed 6 times, %d commits broke, each batch is stored once\n", broken);
	work_end(w);
	server->stop();
}
END_TEST

#define BIG_N 1000

START_TEST(disk_full) /* REL-09 */
{
	const struct server *server = server_of("mysql");
	char folder[200], filler[300];
	struct fw_buf text = FW_BUF_INIT(0);
	struct work *w;
	int64_t before;
	int rc = 0, n = 0;

	ck_assert(fw_snprintf(folder, sizeof(folder), "%s/tiny", scratch()));
	ck_assert_int_eq(chmod(scratch(), 0755), 0);
	if (!tiny_disk(folder, "260m"))
		return;
	server->start(folder);
	server->url(url, sizeof(url), name);
	w = work_begin(store_open(url, FW_STORE_CREATE));
	ck_assert(fw_snprintf(filler, sizeof(filler), "%s/filler", folder));
	tiny_disk_fill(filler, 8 << 20);
	for (int i = 0; i < 300; i++)
		fw_buf_addf(&text, "<p>word%d</p>", i * 7919);
	do {
		before = stats(w->front).entry_n;
		visit_with(w, n * BIG_N, BIG_N, fw_buf_str(&text));
		rc = commit(w);
	} while (!rc && ++n < 20);
	printf("# disk_full: %s\n", drv_err.text);
	ck_assert_int_eq(unlink(filler), 0);
	if (rc == FW_EAGAIN) {
		ck_assert_msg(strstr(drv_err.text, name) && strstr(drv_err.text, "disk is full"), "%s", drv_err.text);
	} else { /* MariaDB 10.11 can abort when it rolls a statement back without free space */
		ck_assert_int_eq(rc, FW_EIO);
		server->kill9();
		server->again();
		work_again(w, url);
	}
	ck_assert_int_eq(stats(w->front).entry_n, before); /* all or nothing */
	DONE(commit(w));
	ck_assert(w->o.rc == 0 && w->o.visit.new_n == BIG_N);
	work_end(w);
	server->stop();
	fw_buf_finish(&text);
	umount(folder);
}
END_TEST

/* ---- too long -------------------------------------------------------------------------------- */

START_TEST(packets_stay_small_enough)
{
	struct fw_buf text = FW_BUF_INIT(0);
	struct fw_store *st;
	struct work *w;

	fw_store_close(store_open(url, FW_STORE_CREATE));
	bare("SET GLOBAL max_allowed_packet = 1048576");
	st = store_open(url, 0);
	bare("SET GLOBAL max_allowed_packet = 16777216");
	/* far more than one packet, in one transaction */
	subscribe_many(st, "https://h%d.example/", 0, 20000, NOW + 1000);
	w = work_begin(st);
	for (int i = 0; i < 10000; i++)
		fw_buf_addf(&text, "<p>%d\n\\</p>", i);
	visit_with(w, 0, 60, fw_buf_str(&text)); /* 9 MB of text in all */
	DONE(commit(w));
	ck_assert_uint_eq(w->o.visit.new_n, 60);
	/*
	 * an entry beyond the packet limit is refused, with the remedy, and nothing of it is stored
	 */
	while (text.len < 2000000)
		fw_buf_adds(&text, "more and more ");
	visit_with(w, 99, 1, fw_buf_str(&text));
	FAILS(commit(w), FW_EINVAL);
	ck_assert_ptr_nonnull(strstr(drv_err.text, "raise max_allowed_packet"));
	work_again(w, url);
	ck_assert_int_eq(stats(w->front).entry_n, 60);
	w->o.entry_n = 0;
	DONE(commit(w));
	ck_assert_int_eq(w->o.rc, 0);
	fw_buf_finish(&text);
	work_end(w);
}
END_TEST

/* ---- idle workers ---------------------------------------------------------------------------- */

#define QUESTIONS "SELECT variable_value FROM %s.global_status WHERE variable_name = 'Questions'"

static int64_t questions(void)
{
	char sql[200];

	ck_assert(fw_snprintf(
		sql, sizeof(sql), QUESTIONS, getenv("FW_MYSQLD") ? "performance_schema" : "information_schema"));
	return bare_number(sql);
}

START_TEST(idle_workers_ask_seldom) /* and notice a new feed within a second */
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE), *other = store_open(url, 0);
	int64_t before, own, start;
	bool changed = true;
	struct fw_err err;
	int fd[2];

	ck_assert_int_eq(pipe(fd), 0);
	OK(fw_store_wait(st, fd[0], 0, &changed, &err));
	own = -questions();
	own += questions(); /* the cost of reading the counter */
	before = questions();
	start = fw_mono_ms();
	for (int i = 0; i < 4; i++) { /* four seconds of an idle worker, which wakes now and then */
		OK(fw_store_wait(st, fd[0], 900, &changed, &err));
		ck_assert(!changed);
		ck_assert_int_eq(write(fd[1], "x", 1), 1);
		for (int k = 0; k < 100; k++)
			OK(fw_store_wait(st, fd[0], 900, &changed, &err));
		ck_assert_int_eq(read(fd[0], &(char){0}, 1), 1);
	}
	ck_assert_int_ge(fw_mono_ms() - start, 3600);
	ck_assert_int_le(questions() - before - own, 4 * (3 + 4));
	subscribe(other, "https://a.example/", NOW);
	start = fw_mono_ms();
	OK(fw_store_wait(st, fd[0], 60000, &changed, &err));
	ck_assert(changed);
	ck_assert_int_lt(fw_mono_ms() - start, 60000); /* noticed, not timed out */
	close(fd[0]);
	close(fd[1]);
	fw_store_close(other);
	fw_store_close(st);
}
END_TEST

int main(void)
{
	const TTest *const every[] = {tls_as_the_server_has_it, addresses, unsupported_servers, password_is_not_printed,
		reading_only, too_many_connections, locked_by_another_client, may_not_be_written_now, server_errors,
		deadlocks_are_tried_again, many_entries_at_once, server_shuts_down, server_is_killed_in_commits,
		disk_full, packets_stay_small_enough, idle_workers_ask_seldom};
	TCase *t;

	server_needed(&server_mysql);
	setenv("FW_STORES", "mysql", 1);
	stores_begin();
	t = cases("mysql", setup, teardown, 120);
	cases_add(t, every, FW_N(every), 1);
	return cases_run("store mysql_faults", t);
}
