/* SPDX-License-Identifier: ISC */
/*
 * The MariaDB driver and servers that refuse, wait, break or are full: a one-line error that names the store and the remedy and never
 * the password, the right code, nothing half-done, and the same call succeeds when the trouble is over. Also what this engine
 * alone could get wrong: letters that it takes for equal, text that it does not take, statements that it finds too long.
 */
#include <errno.h>
#include <fcntl.h>
#include <mysql.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "common.h"

static struct fw_arena A;
static char url[300], name[60];

static void setup(void)
{
	static int n;

	fw_arena_init(&A, 0);
	ck_assert(fw_snprintf(name, sizeof(name), "t%d_%d", (int)getpid(), n++));
	ck_assert(fw_snprintf(url, sizeof(url), "%s", scratch_url(0, name)));
}

static void teardown(void)
{
	fw_arena_finish(&A);
}

/* A connection of our own, past the driver. */
static MYSQL *bare_open(void)
{
	MYSQL *db = mysql_init(NULL);

	ck_assert_msg(mysql_real_connect(db, NULL, "root", NULL, name, 0, strstr(url, "socket=") + 7, 0) != NULL, "%s", mysql_error(db));
	return db;
}

static void run(MYSQL *db, const char *sql)
{
	ck_assert_msg(mysql_query(db, sql) == 0, "%s\n%s", mysql_error(db), sql);
	mysql_free_result(mysql_store_result(db));
}

static void bare(const char *sql)
{
	MYSQL *db = bare_open();

	run(db, sql);
	mysql_close(db);
}

static int64_t bare_number(const char *sql)
{
	MYSQL *db = bare_open();
	MYSQL_RES *res;
	int64_t v = -1;

	ck_assert_msg(mysql_query(db, sql) == 0, "%s", mysql_error(db));
	res = mysql_store_result(db);
	ck_assert(fw_str_int(fw_str(mysql_fetch_row(res)[0]), &v));
	mysql_free_result(res);
	mysql_close(db);
	return v;
}

/* Opening fails with this code, and the words hold these, in one line, and never the password. */
static void refused_at(const char *at, unsigned flags, int code, const char *words)
{
	struct fw_store_config c = {.url = at, .flags = flags, .busy_timeout_ms = 1000};
	struct fw_store *st = NULL;
	struct fw_err err = {0};
	int rc = fw_store_open(&c, &st, &err);

	ck_assert_msg(rc == code, "%d instead of %d: %s", rc, code, err.text);
	ck_assert_ptr_null(st);
	ck_assert_msg(strstr(err.text, words) != NULL, "does not say \"%s\": %s", words, err.text);
	ck_assert_ptr_null(strchr(err.text, '\n'));
	ck_assert_ptr_null(strstr(err.text, "secret"));
}

/* ---- opening ------------------------------------------------------------------------------------------------------------- */

START_TEST(versions) /* REL-15 */
{
	fw_store_close(store_open(url, FW_STORE_CREATE));
	bare("UPDATE numbers SET value = 99 WHERE name = 'schema'");
	refused_at(url, FW_STORE_CREATE, FW_EVERSION, "upgrade feedwheel");
	refused_at(url, FW_STORE_READ, FW_EVERSION, "upgrade feedwheel");
	/* schema 2 had no tables for what is pushed, schema 3 none for records */
	bare("DROP TABLE incoming, incoming_dead, records");
	bare("UPDATE numbers SET value = 2 WHERE name = 'schema'");
	refused_at(url, FW_STORE_READ, FW_EVERSION, "upgrades it");
	refused_at(url, FW_STORE_NO_MIGRATE, FW_EVERSION, "upgrades it");
	fw_store_close(store_open(url, 0));
	fw_store_close(store_open(url, FW_STORE_READ));
	bare("INSERT INTO incoming VALUES (1, 'news', 1, 1, '', 1)");
	bare("INSERT INTO records VALUES ('kind', 'key', 'value', 1, NULL)");
}
END_TEST

/* What a dump says of a view. */
static bool names_its_database(const char *view)
{
	MYSQL *db = bare_open();
	MYSQL_RES *res;
	char text[100];
	bool found;

	ck_assert(fw_snprintf(text, sizeof(text), "SHOW CREATE VIEW %s", view));
	ck_assert_msg(mysql_query(db, text) == 0, "%s", mysql_error(db));
	res = mysql_store_result(db);
	ck_assert(fw_snprintf(text, sizeof(text), "`%s`.", name));
	found = strstr(mysql_fetch_row(res)[1], text) != NULL;
	mysql_free_result(res);
	mysql_close(db);
	return found;
}

START_TEST(views_follow_their_database) /* a dump can be restored under another name; REL-15: in stores made before, too */
{
	static const char *const views[] = {"leases", "claims", "meta"};
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_lease l[60];

	subscribe_many(st, "https://h%d.example/", 0, 70, NOW);
	ck_assert_uint_eq(claim_at(st, NOW, 60, l, &A), 60);
	fw_store_close(st);
	bare("CREATE OR REPLACE VIEW leases AS SELECT CAST((l.id << 20) + j.i - 1 AS SIGNED) AS fence, j.feed_id, w.due_at_ms, j.host_id"
		" FROM loans l JOIN JSON_TABLE(l.body, '$[*]' COLUMNS (i FOR ORDINALITY, feed_id BIGINT PATH '$[0]', host_id BIGINT PATH"
		" '$[1]')) j ON substr(l.lent, j.i, 1) = '1' LEFT JOIN wheel w ON w.feed_id = j.feed_id");
	ck_assert(names_its_database("leases") || getenv("FW_MYSQLD")); /* MySQL leaves it out */
	bare("CREATE TABLE before_it AS SELECT * FROM leases");
	bare("UPDATE numbers SET value = 1 WHERE name = 'schema'");
	refused_at(url, FW_STORE_READ, FW_EVERSION, "`feedwheel run` upgrades it");
	refused_at(url, FW_STORE_NO_MIGRATE, FW_EVERSION, "`feedwheel run` upgrades it");
	st = store_open(url, 0);
	for (size_t i = 0; i < FW_N(views); i++)
		ck_assert_msg(!names_its_database(views[i]), "%s", views[i]);
	ck_assert_int_eq(bare_number("SELECT count(*) FROM leases"), 60);
	ck_assert_int_eq(bare_number("SELECT count(*) FROM leases NATURAL JOIN before_it"), 60);
	ck_assert_int_eq(bare_number("SELECT count(*) FROM leases l JOIN feeds f ON f.id = l.feed_id"), 60);
	bare("DROP TABLE before_it");
	fw_store_close(st);
}
END_TEST

/* As schema 4 had it, a part of the way: killed between two tables. */
static void schema4(bool half)
{
	bare("ALTER TABLE visits DROP COLUMN queue_us, DROP COLUMN store_us");
	bare("ALTER TABLE feeds DROP COLUMN host_key");
	bare("ALTER TABLE hosts DROP COLUMN pace_ms, DROP COLUMN expect_us, DROP COLUMN cool_until_ms, DROP COLUMN holder");
	if (!half) {
		bare("ALTER TABLE feeds DROP COLUMN push_until_ms");
		bare("ALTER TABLE wheel DROP COLUMN expect_parts");
	}
	bare("UPDATE numbers SET value = 4 WHERE name = 'schema'");
}

START_TEST(schema_4_is_brought_up_to_date) /* REL-15: with all that is in it, and hosts as they were; LIM-06 */
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_claim_ask ask = {.worker = "w", .now_ms = NOW, .lease_ms = 60000, .max = 9, .host_max = 1, .host_gap_ms = 5};
	struct fw_claim_got got;
	struct fw_lease l[9];
	struct fw_feed f;
	struct fw_outcome o;
	struct fw_err err = {0};

	subscribe(st, "https://one.blogspot.com/a", NOW);
	put_entries(st, &A, NOW, 0, 10);
	subscribe(st, "https://one.blogspot.com/b", NOW);
	subscribe(st, "https://one.blogspot.com/c", NOW);
	OK(fw_store_claim(st, &ask, &A, l, &got, &err)); /* is lent all the while; the other is parked */
	ck_assert_uint_eq(got.n, 1);
	fw_store_close(st);
	bare("UPDATE hosts SET name = 'one.blogspot.com'");
	schema4(_i);
	refused_at(url, FW_STORE_READ, FW_EVERSION, "upgrades it");
	refused_at(url, FW_STORE_NO_MIGRATE, FW_EVERSION, "upgrades it");
	st = store_open(url, 0);
	ck_assert_int_eq(bare_number("SELECT value FROM numbers WHERE name = 'schema'"), 6);
	ck_assert_int_eq(bare_number("SELECT sum(pace_ms + expect_us + cool_until_ms + holder) FROM hosts"), 0);
	ck_assert_int_eq(bare_number("SELECT sum(push_until_ms) + (SELECT sum(expect_parts) FROM wheel) FROM feeds"), 0);
	check_clean(st);
	ck_assert_int_eq(stats(st, NOW).entry_n, 10);
	ck_assert_int_eq(stats(st, NOW).visit_n, 1);
	ck_assert_int_eq(hits(st, "number"), 10);
	o = outcome_of(&l[0], &f, NOW);
	o.host_mood = FW_HOST_STRAINED;
	ck_assert_int_eq(commit_one(st, &o, NOW), 0);
	ask.now_ms = NOW + 10;
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 1);
	ck_assert_int_eq(l[0].host_gap_ms, FW_PACE_MIN_MS);
	/* who comes now joins the service; who was there stays where he was */
	subscribe(st, "https://two.blogspot.com/", NOW);
	ck_assert_int_eq(bare_number("SELECT feed_n FROM hosts WHERE name = 'one.blogspot.com'"), 3);
	ck_assert_int_eq(bare_number("SELECT feed_n FROM hosts WHERE name = 'blogspot.com'"), 1);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(half_made_schema) /* killed between two tables: the next one goes on */
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);

	fw_store_close(st);
	bare("DROP TABLE words");
	bare("DELETE FROM numbers WHERE name = 'schema'");
	refused_at(url, 0, FW_ENOTFOUND, "feedwheel add");
	st = store_open(url, FW_STORE_CREATE);
	subscribe(st, "https://a.example/", NOW);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(tls_as_the_server_has_it)
{
	/* MySQL, and MariaDB since 11.4, make themselves a certificate */
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

START_TEST(addresses) /* each names the thing and the remedy */
{
	static const struct { const char *url, *words; int rc; } T[] = {
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
	refused_at(url, FW_STORE_READ | FW_STORE_CREATE, FW_ENOTFOUND, "feedwheel add"); /* who only reads makes nothing */
}
END_TEST

START_TEST(servers_that_only_look_like_it) /* they say so in their version */
{
	static const struct { const char *argument, *words; } T[] = {
		{"--version=8.0.11-TiDB-v7.5.0", "the server is TiDB"},
		{"--version=8.0.30-Vitess", "the server is Vitess"},
	};
	const struct server *server = server_of("mysql");

	server->start(scratch()); /* one of our own */
	server->url(url, sizeof(url), name);
	fw_store_close(store_open(url, FW_STORE_CREATE));
	for (size_t i = 0; i < FW_N(T) && !getenv("FW_MYSQLD"); i++) { /* MySQL's says what it is */
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

START_TEST(database_of_another_program)
{
	MYSQL *db;

	fw_store_close(store_open(url, FW_STORE_CREATE));
	db = bare_open();
	run(db, "DROP TABLE numbers");
	mysql_close(db);
	refused_at(url, FW_STORE_CREATE, FW_EINVAL, "another program");
}
END_TEST

/* A user who may do everything in this database and nothing else; at: the URL. */
static void user_make(char *at, size_t cap, const char *password)
{
	char sql[400];

	ck_assert(fw_snprintf(sql, sizeof(sql), "CREATE USER '%s'@'localhost' IDENTIFIED BY 'secret'", name));
	bare(sql);
	ck_assert(fw_snprintf(sql, sizeof(sql), "GRANT ALL ON `%s`.* TO '%s'@'localhost'", name, name));
	bare(sql);
	ck_assert(fw_snprintf(at, cap, "mysql://%s:%s@localhost/%s?socket=%s", name, password, name, strstr(url, "socket=") + 7));
}

START_TEST(password_is_not_told)
{
	char at[400];

	fw_store_close(store_open(url, FW_STORE_CREATE));
	user_make(at, sizeof(at), "secrets");
	refused_at(at, 0, FW_EINVAL, "check user and password");
	*strstr(at, "secrets@") = 'x';
	refused_at(at, 0, FW_EINVAL, "GRANT ALL");
}
END_TEST

START_TEST(reading_only)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_feed_new n = {.url = FW_STR("https://b.example/")};
	struct fw_err err = {0};
	int64_t id = subscribe(st, "https://a.example/", NOW);

	put_entries(st, &A, NOW, 0, 3);
	ck_assert_int_eq(hits(st, "number"), 3);
	fw_store_close(st);
	st = store_open(url, FW_STORE_READ);
	ck_assert_int_eq(find(st, id, &A).id, id);
	ck_assert_int_eq(hits(st, "number"), 3);
	IS(fw_store_subscribe(st, &n, 1, &err), FW_EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "reading only"));
	ck_assert_int_eq(stats(st, NOW).feed_n, 1);
	fw_store_close(st);
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
	ck_assert_msg(rc == FW_EAGAIN && strstr(err.text, "too many connections") && strstr(err.text, "max_connections"), "%d: %s", rc,
		err.text);
	for (n--; n-- > 0;)
		fw_store_close(st[n]);
	for (int i = 0; i < 1000 && rc; i++) { /* the server takes its time to say goodbye to so many */
		struct fw_store_config c = {.url = at};

		usleep(20000);
		rc = fw_store_open(&c, &st[0], &err);
	}
	ck_assert_msg(rc == 0, "%s", err.text);
	fw_store_close(st[0]);
}
END_TEST

/* ---- others in the way ------------------------------------------------------------------------------------------------------ */

START_TEST(locked_by_somebody_else)
{
	struct fw_store_config c = {.url = url, .flags = FW_STORE_CREATE, .busy_timeout_ms = 1000};
	struct fw_lease l[2];
	struct fw_feed f;
	struct fw_outcome o;
	struct fw_commit batch = {.outcome = &o, .n = 1, .now_ms = NOW};
	struct fw_store *st;
	struct fw_err err = {0};
	MYSQL *db;

	OK(fw_store_open(&c, &st, &err));
	subscribe(st, "https://a.example/", NOW);
	subscribe(st, "https://b.example/", NOW);
	ck_assert_uint_eq(claim_at(st, NOW, 1, l, &A), 1);
	o = outcome_of(&l[0], &f, NOW);
	db = bare_open();
	run(db, "BEGIN");
	run(db, "UPDATE wheel SET fail_n = fail_n");
	run(db, "SELECT * FROM queue FOR UPDATE");
	IS(fw_store_commit(st, &batch, &err), FW_EAGAIN);
	ck_assert_msg(strstr(err.text, name) && strstr(err.text, "1000 ms"), "%s", err.text);
	ck_assert_uint_eq(claim_at(st, NOW, 1, l, &A), 0); /* others' rows are passed over, not waited for */
	ck_assert_int_eq(stats(st, NOW).lent_n, 1);        /* reading goes on */
	run(db, "COMMIT");
	mysql_close(db);
	OK(fw_store_commit(st, &batch, &err)); /* as it was */
	ck_assert_int_eq(o.rc, 0);
	ck_assert_uint_eq(claim_at(st, NOW, 1, l, &A), 1);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(others_hold_what_is_asked_for_by_number) /* they are about to lend it: nobody waits, and the rest is lent */
{
	struct fw_store_config c = {.url = url, .flags = FW_STORE_CREATE, .busy_timeout_ms = 60000};
	struct fw_claim_ask ask = {.worker = "w", .now_ms = NOW, .lease_ms = 60000, .max = 9, .host_max = 1};
	struct fw_claim_got got;
	struct fw_lease l[9];
	struct fw_store *st;
	struct fw_err err = {0};
	int64_t id[6], began;
	MYSQL *db;

	OK(fw_store_open(&c, &st, &err));
	subscribe_many(st, "https://a.example/%d", 0, 3, NOW);
	subscribe_many(st, "https://b.example/%d", 0, 2, NOW);
	id[5] = subscribe(st, "https://c.example/", NOW);
	for (int i = 0; i < 5; i++)
		id[i] = id[5] - 5 + i;
	ask.ids = id;
	ask.id_n = 6;
	db = bare_open();
	run(db, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
	run(db, "START TRANSACTION");
	for (size_t i = 0; i < 6; i += 5) {
		char sql[160];

		ck_assert(fw_snprintf(sql, sizeof(sql), "SELECT * FROM queue WHERE wake_at_ms = %lld AND feed_id = %lld FOR UPDATE", (long long)NOW,
			(long long)id[i]));
		run(db, sql);
	}
	began = fw_mono_ms();
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_int_lt(fw_mono_ms() - began, 30000); /* half of busy_timeout_ms, and more would be an error */
	for (size_t i = 0; i < got.n; i++)
		ck_assert(l[i].feed.id != id[0] && l[i].feed.id != id[5]);
	run(db, "ROLLBACK");
	mysql_close(db);
	check_clean(st);
	ck_assert_uint_eq(got.n, 2); /* one of each host, of those nobody held */
	OK(fw_store_claim(st, &ask, &A, l, &got, &err));
	ck_assert_uint_eq(got.n, 1);
	ck_assert_int_eq(l[0].feed.id, id[5]);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(may_not_be_written_now) /* a replica, or a fail-over */
{
	struct fw_feed_new n = {.url = FW_STR("https://b.example/")};
	struct fw_err err = {0};
	struct fw_store *st;
	char at[400];

	fw_store_close(store_open(url, FW_STORE_CREATE));
	user_make(at, sizeof(at), "secret");
	st = store_open(at, 0);
	bare("SET GLOBAL read_only = 1");
	IS(fw_store_subscribe(st, &n, 1, &err), FW_EAGAIN);
	ck_assert_msg(strstr(err.text, "may not be written now") && strstr(err.text, "***") && !strstr(err.text, "secret"), "%s", err.text);
	bare("SET GLOBAL read_only = 0");
	OK(fw_store_subscribe(st, &n, 1, &err));
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* All other connections to this database. */
static void others_end(void)
{
	MYSQL *db = bare_open();
	MYSQL_RES *res;
	MYSQL_ROW row;
	char sql[60];

	ck_assert(mysql_query(db, "SELECT id FROM information_schema.processlist WHERE id <> connection_id() AND db = database()") == 0);
	res = mysql_store_result(db);
	while ((row = mysql_fetch_row(res)) != NULL) {
		ck_assert(fw_snprintf(sql, sizeof(sql), "KILL %s", row[0]));
		run(db, sql);
	}
	mysql_free_result(res);
	mysql_close(db);
}

/*
 * What the server may say at any time, said by a trigger, so many times. It counts in a setting of the server that nobody else needs: a
 * table would be rolled back.
 */
static void trouble_make(const char *table, int code, int times)
{
	char sql[400];

	ck_assert(fw_snprintf(sql, sizeof(sql), "SET GLOBAL max_error_count = %d", times));
	bare(sql);
	ck_assert(fw_snprintf(sql, sizeof(sql), "CREATE TRIGGER trouble_comes BEFORE INSERT ON %s FOR EACH ROW IF"
		" @@GLOBAL.max_error_count > 0 THEN SET GLOBAL max_error_count = @@GLOBAL.max_error_count - 1; SIGNAL SQLSTATE 'HY000' SET"
		" MYSQL_ERRNO = %d, MESSAGE_TEXT = 'trouble'; END IF", table, code));
	bare(sql);
}

/* How often it would have come yet. */
static int64_t trouble_end(void)
{
	int64_t left = bare_number("SELECT @@GLOBAL.max_error_count");

	bare("SET GLOBAL max_error_count = 64");
	bare("DROP TRIGGER trouble_comes");
	return left;
}

START_TEST(what_the_server_says) /* each code has its answer, nothing is half-done, and the same call succeeds when it is over */
{
	static const struct { int code, rc; const char *words; } T[] = {
		{1213, FW_EAGAIN, "8 times in a row"}, {1205, FW_EAGAIN, "locked by another"}, {1040, FW_EAGAIN, "max_connections"},
		{1203, FW_EAGAIN, "max_connections"}, {1290, FW_EAGAIN, "may not be written now"}, {1792, FW_EAGAIN, "may not be written now"},
		{1836, FW_EAGAIN, "may not be written now"}, {1021, FW_EAGAIN, "disk is full"}, {1114, FW_EAGAIN, "disk is full"},
		{1026, FW_EAGAIN, "disk is full"}, {3019, FW_EAGAIN, "disk is full"}, {1041, FW_EAGAIN, "out of memory"},
		{1206, FW_EAGAIN, "out of memory"}, {1317, FW_EAGAIN, "max_statement_time"}, {3024, FW_EAGAIN, "max_statement_time"},
		{1053, FW_EIO, "connection broke"}, {1927, FW_EIO, "connection broke"}, {2006, FW_EIO, "connection broke"},
		{2013, FW_EIO, "connection broke"}, {1142, FW_EINVAL, "GRANT ALL"}, {1146, FW_EINVAL, "trouble (1146)"},
	};
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	int64_t now = NOW;

	subscribe(st, "https://a.example/", NOW);
	for (size_t i = 0; i < FW_N(T); i++, now += 86400000) {
		struct fw_entry_row e = entry((int)i + 1, 1, "t", "c");
		struct fw_err err = {0};
		struct fw_lease l[1];
		struct fw_feed f;
		struct fw_outcome o;
		struct fw_commit c = {.outcome = &o, .n = 1, .now_ms = now};
		int rc;

		ck_assert_uint_eq(claim_at(st, now, 1, l, &A), 1);
		o = outcome_of(&l[0], &f, now);
		o.entries = &e;
		o.entry_n = 1;
		trouble_make("visits", T[i].code, 1000);
		rc = fw_store_commit(st, &c, &err);
		ck_assert_msg(rc == T[i].rc && strstr(err.text, T[i].words) && strstr(err.text, name) && !strchr(err.text, '\n'), "%d: %d %s",
			T[i].code, rc, err.text);
		ck_assert_int_eq(stats(st, now).entry_n, (int64_t)i);
		ck_assert_int_eq(stats(st, now).lent_n, 1);
		(void)trouble_end();
		OK(fw_store_commit(st, &c, &err));
		ck_assert_int_eq(o.rc, 0);
		ck_assert_uint_eq(o.visit.new_n, 1);
	}
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(deadlocks_are_tried_again)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);

	subscribe(st, "https://a.example/", NOW);
	trouble_make("visits", 1213, 7); /* the eighth time it works */
	put_entries(st, &A, NOW, 0, 3);
	ck_assert_int_eq(trouble_end(), 0);
	ck_assert_int_eq(stats(st, NOW).entry_n, 3);
	ck_assert_int_eq(stats(st, NOW).visit_n, 1);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(server_shuts_down) /* in good order, with a worker at it */
{
	const struct server *server = server_of("mysql");
	struct fw_store *st;
	struct fw_lease l[1];
	struct fw_feed f;
	struct fw_outcome o;
	struct fw_commit c = {.outcome = &o, .n = 1, .now_ms = NOW};
	struct fw_err err = {0};

	server->start(scratch()); /* one of our own */
	server->url(url, sizeof(url), name);
	st = store_open(url, FW_STORE_CREATE);
	subscribe(st, "https://a.example/", NOW);
	ck_assert_uint_eq(claim_at(st, NOW, 1, l, &A), 1);
	o = outcome_of(&l[0], &f, NOW);
	bare("SHUTDOWN");
	for (int i = 0; i < 3000 && fw_store_ping(st, &err) == 0; i++)
		usleep(20000);
	IS(fw_store_commit(st, &c, &err), FW_EIO);
	ck_assert_ptr_nonnull(strstr(err.text, "the connection broke"));
	fw_store_close(st);
	server->kill9();
	refused_at(url, 0, FW_EIO, "no server answers");
	server->again();
	st = store_open(url, 0);
	OK(fw_store_commit(st, &c, &err));
	ck_assert_int_eq(o.rc, 0);
	check_clean(st);
	fw_store_close(st);
	server->stop();
}
END_TEST

START_TEST(connection_is_ended)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_lease l[1];
	struct fw_feed f;
	struct fw_outcome o;
	struct fw_commit batch = {.outcome = &o, .n = 1, .now_ms = NOW};
	struct fw_err err = {0};

	subscribe(st, "https://a.example/", NOW);
	ck_assert_uint_eq(claim_at(st, NOW, 1, l, &A), 1);
	o = outcome_of(&l[0], &f, NOW);
	others_end();
	IS(fw_store_commit(st, &batch, &err), FW_EIO);
	ck_assert_ptr_nonnull(strstr(err.text, "the connection broke"));
	IS(fw_store_ping(st, &err), FW_EIO);
	fw_store_close(st);
	st = store_open(url, 0);
	OK(fw_store_commit(st, &batch, &err));
	ck_assert_int_eq(o.rc, 0);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* The commit happened, but nobody heard so: what is sent again over a new connection is told as stored, and is not stored twice. */
START_TEST(commit_is_sent_again)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE), *later;
	struct fw_entry_row e[3] = {entry(1, 1, "a", "x"), entry(2, 1, "b", "x"), entry(3, 1, "c", "x")};
	struct fw_lease l[2], other[2];
	struct fw_feed f[2];
	struct fw_outcome o[2];
	struct fw_commit batch = {.outcome = o, .n = 2, .now_ms = NOW};
	struct fw_err err = {0};

	subscribe(st, "https://a.example/", NOW);
	subscribe(st, "https://b.example/", NOW);
	ck_assert_uint_eq(claim_at(st, NOW, 2, l, &A), 2);
	for (int i = 0; i < 2; i++) {
		o[i] = outcome_of(&l[i], &f[i], NOW);
		o[i].entries = e;
		o[i].entry_n = 3;
	}
	batch.n = 1; /* only the first was stored */
	OK(fw_store_commit(st, &batch, &err));
	later = store_open(url, 0);
	batch.n = 2;
	OK(fw_store_commit(later, &batch, &err));
	ck_assert_int_eq(o[0].rc, 0);
	ck_assert_int_eq(o[1].rc, 0);
	ck_assert_uint_eq(o[0].visit.new_n, 3);
	ck_assert_uint_eq(o[1].visit.new_n, 3);
	ck_assert_int_eq(stats(st, NOW).entry_n, 6);
	ck_assert_int_eq(stats(st, NOW).visit_n, 2);
	/* when the feed was lent again meanwhile, it is stale */
	ck_assert_uint_eq(claim_at(st, NOW + 3600000, 2, other, &A), 2);
	o[0] = outcome_of(&other[0], &f[0], NOW + 3600000);
	ck_assert_int_eq(commit_one(st, &o[0], NOW + 3600000), 0);
	o[0].fence = l[0].fence;
	ck_assert_int_eq(commit_one(later, &o[0], NOW + 3600000), FW_ESTALE);
	check_clean(st);
	fw_store_close(later);
	fw_store_close(st);
}
END_TEST

/* ---- a server that dies ------------------------------------------------------------------------------------------------------ */

#define KEYS 30
struct ledger {
	int published, acknowledged; /* entries of the one feed */
	_Atomic int commits;
	int broken;
};
static struct ledger *ledger;

static struct fw_store *open_patiently(void)
{
	struct fw_store_config c = {.url = url};
	struct fw_store *st = NULL;
	struct fw_err err = {0};

	for (int i = 0; i < 1800; i++) {
		if (fw_store_open(&c, &st, &err) == 0)
			return st;
		usleep(50000);
	}
	fprintf(stderr, "# %s\n", err.text);
	_exit(9);
}

/* Visits the feed again and again, each time with a new entry; a commit that breaks is sent again as it is, as the engine does. */
static void storer(void)
{
	struct fw_entry_row e[5000];
	struct fw_store *st = open_patiently();
	struct fw_err err = {0};
	struct fw_arena a;

	fw_arena_init(&a, 0);
	for (int64_t now = NOW; ledger->published < 5000; now += 3600000) {
		struct fw_claim_ask ask = {.worker = "w", .now_ms = now, .lease_ms = 60000, .max = 1};
		struct fw_commit batch;
		struct fw_claim_got got = {0};
		struct fw_lease l[1];
		struct fw_feed f;
		struct fw_outcome o;

		while (fw_store_claim(st, &ask, &a, l, &got, &err)) {
			ledger->broken++;
			fw_store_close(st);
			st = open_patiently();
		}
		if (!got.n)
			continue; /* a claim nobody heard the end of: its lease has run out an hour later */
		e[ledger->published] = entry(ledger->published + 1, 1, "t", "c");
		ledger->published++;
		o = outcome_of(&l[0], &f, now);
		o.entries = e;
		o.entry_n = (size_t)ledger->published;
		batch = (struct fw_commit){.outcome = &o, .n = 1, .now_ms = now};
		while (fw_store_commit(st, &batch, &err)) {
			ledger->broken++;
			fw_store_close(st);
			st = open_patiently();
		}
		if (o.rc) /* nobody else is there who could have had the feed */
			_exit(8);
		if (o.visit.new_n != 1)
			_exit(7);
		ledger->acknowledged = ledger->published;
		ledger->commits++;
		fw_arena_reset(&a, 1 << 16);
	}
	_exit(0);
}

/* Until the storer has got on; the test's own time limit tells if it never does. */
static void two_commits(void)
{
	int before = atomic_load(&ledger->commits);

	while (atomic_load(&ledger->commits) < before + 2)
		usleep(1000);
}

START_TEST(server_is_killed_in_commits) /* REL-01 */
{
	const struct server *server = server_of("mysql");
	struct fw_store *st;
	int status, kills = 5;
	pid_t pid;

	server->start(scratch()); /* one of our own */
	server->url(url, sizeof(url), name);
	ledger = mmap(NULL, sizeof(*ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(ledger, MAP_FAILED);
	st = store_open(url, FW_STORE_CREATE);
	subscribe(st, "https://a.example/", NOW);
	fw_store_close(st);
	pid = fork();
	if (pid == 0)
		storer();
	for (int i = 0; i < kills; i++) {
		two_commits();
		usleep((useconds_t)i * 7700); /* somewhere in the next ones */
		server->kill9();
		server->again();
	}
	two_commits();
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFSIGNALED(status), "left by itself: status %x", (unsigned)status);
	st = store_open(url, 0);
	printf("# the server was killed %d times: %d commits, %d calls broken, %d entries published, %d acknowledged, %lld stored\n", kills,
		ledger->commits, ledger->broken, ledger->published, ledger->acknowledged, (long long)stats(st, NOW).entry_n);
	ck_assert_int_gt(ledger->broken, 0);
	ck_assert_int_gt(ledger->commits, kills);
	ck_assert_int_ge(stats(st, NOW).entry_n, ledger->acknowledged);
	ck_assert_int_le(stats(st, NOW).entry_n, ledger->published);
	check_clean(st);
	fw_store_close(st);
	server->stop();
}
END_TEST

#define BIG_N 1000

START_TEST(disk_full) /* REL-09 */
{
	const struct server *server = server_of("mysql");
	char folder[200], filler[300], junk[65536] = "";
	struct fw_buf text = FW_BUF_INIT(0);
	static struct fw_entry_row e[BIG_N];
	struct fw_lease l[1];
	struct fw_feed f;
	struct fw_outcome o;
	struct fw_commit c = {.outcome = &o, .n = 1};
	struct fw_err err = {0};
	struct fw_store *st;
	int64_t now = NOW, before;
	int fd, rc = 0, id = 0;

	ck_assert(fw_snprintf(folder, sizeof(folder), "%s/tiny", scratch()));
	ck_assert_int_eq(mkdir(folder, 0755), 0);
	ck_assert_int_eq(chmod(scratch(), 0755), 0);
	/* a mount of this process alone; needs root */
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tiny", folder, "tmpfs", 0, "size=260m,mode=755")) {
		printf("# disk_full: no mount here (%s): skipped\n", strerror(errno));
		return;
	}
	server->start(folder);
	server->url(url, sizeof(url), name);
	st = store_open(url, FW_STORE_CREATE);
	subscribe(st, "https://a.example/", NOW);
	ck_assert(fw_snprintf(filler, sizeof(filler), "%s/filler", folder));
	fd = open(filler, O_WRONLY | O_CREAT, 0600);
	while (write(fd, junk, sizeof(junk)) == (ssize_t)sizeof(junk))
		;
	ck_assert_int_eq(ftruncate(fd, lseek(fd, 0, SEEK_END) - (8 << 20)), 0); /* 8 MB are left */
	close(fd);
	for (int i = 0; i < 300; i++)
		fw_buf_addf(&text, "<p>word%d</p>", i * 7919);
	do {
		now += 3600000;
		before = stats(st, now).entry_n;
		ck_assert_uint_eq(claim_at(st, now, 1, l, &A), 1);
		o = outcome_of(&l[0], &f, now);
		for (int i = 0; i < BIG_N; i++) {
			e[i] = entry(++id, 1, "t", "");
			e[i].content = fw_buf_str(&text);
		}
		o.entries = e;
		o.entry_n = BIG_N;
		c.now_ms = now;
		rc = fw_store_commit(st, &c, &err);
	} while (!rc && id < 20 * BIG_N);
	printf("# disk_full: %s\n", err.text);
	if (rc == FW_EAGAIN) {
		ck_assert_msg(strstr(err.text, name) && strstr(err.text, "disk is full"), "%s", err.text);
		ck_assert_int_eq(stats(st, now).entry_n, before); /* all or nothing */
		ck_assert_int_eq(stats(st, now).lent_n, 1);
		ck_assert_int_eq(unlink(filler), 0);
	} else { /* MariaDB 10.11 may abort itself when it rolls a statement back for want of space */
		ck_assert_int_eq(rc, FW_EIO);
		ck_assert_int_eq(unlink(filler), 0);
		server->kill9();
		server->again();
		fw_store_close(st);
		st = store_open(url, 0);
		ck_assert_int_eq(stats(st, now).entry_n, before);
	}
	OK(fw_store_commit(st, &c, &err));
	ck_assert_int_eq(o.rc, 0);
	ck_assert_uint_eq(o.visit.new_n, BIG_N);
	check_clean(st);
	fw_store_close(st);
	server->stop();
	fw_buf_finish(&text);
	umount(folder);
}
END_TEST

/* ---- what this engine takes for equal, too long, or no text --------------------------------------------------------------------- */

START_TEST(letters_of_addresses_count)
{
	static const char *const urls[] = {"https://a.example/x", "https://a.example/X", "https://a.example/\xc3\xa4",
		"https://a.example/a", "https://a.example/x ", "https://a.example/'\"\\;--"};
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	char *far = calloc(1, 9001);
	struct fw_err err = {0};
	struct fw_feed f;

	for (size_t i = 0; i < FW_N(urls); i++) {
		int64_t id = subscribe(st, urls[i], NOW);

		ck_assert_int_eq(stats(st, NOW).feed_n, (int64_t)i + 1);
		OK(fw_store_feed_find(st, 0, fw_str(urls[i]), &A, &f, &err));
		ck_assert_int_eq(f.id, id);
		ck_assert_str_eq(f.url.p, urls[i]);
	}
	memset(far, 'x', 9000); /* equal as far as any index looks */
	memcpy(far, "https://a.example/", 18);
	subscribe(st, far, NOW);
	far[8999] = 'y';
	subscribe(st, far, NOW);
	ck_assert_int_eq(stats(st, NOW).feed_n, (int64_t)FW_N(urls) + 2);
	check_clean(st);
	free(far);
	fw_store_close(st);
}
END_TEST

static struct fw_entry_row got;

static int keep_text(void *ctx, const struct fw_entry_row *row)
{
	(void)ctx;
	got = *row;
	got.title = fw_arena_str(&A, row->title);
	got.summary = fw_arena_str(&A, row->summary);
	got.content = fw_arena_str(&A, row->content);
	return 0;
}

START_TEST(any_bytes_are_taken)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_entry_row e = entry(1, 1, "\xf0\x9f\x98\x80 '\"\\\n\r\x1a%_", "");
	struct fw_entry_query q = {.content = true};
	struct fw_lease l[1];
	struct fw_feed f;
	struct fw_outcome o;
	struct fw_err err = {0};
	struct fw_str content = FW_STR("a\0b\0\\"), broken = FW_STR("x\xff\xc3(y\xed\xa0\x80");

	e.content = content;
	e.summary = broken;
	subscribe(st, "https://a.example/", NOW);
	ck_assert_uint_eq(claim_at(st, NOW, 1, l, &A), 1);
	o = outcome_of(&l[0], &f, NOW);
	o.entries = &e;
	o.entry_n = 1;
	f.etag = broken; /* bytes stay what they are */
	f.error = broken;
	o.groups = FW_GROUP_VALIDATORS | FW_GROUP_ERROR;
	ck_assert_int_eq(commit_one(st, &o, NOW), 0);
	OK(fw_store_entry_list(st, &q, keep_text, NULL, &err));
	ck_assert(fw_str_eq(got.title, e.title));
	ck_assert(fw_str_eq(got.content, content));
	ck_assert_str_eq(got.summary.p, "x\xef\xbf\xbd\xef\xbf\xbd(y\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); /* what is no UTF-8 is replaced */
	f = find(st, l[0].feed.id, &A);
	ck_assert(fw_str_eq(f.etag, broken));
	fw_store_close(st);
}
END_TEST

#define MANY 300 /* more than what goes in as an array, and a rest */

static void many_make(struct fw_entry_row e[MANY])
{
	for (int i = 0; i < MANY; i++) {
		e[i] = entry(i, i, fw_arena_printf(&A, "t%d", i), i % 3 ? "c" : "");
		e[i].author = i % 2 ? FW_STR("x\xff\xc3(y") : FW_STR_NONE;
		e[i].published_ms = i % 5 ? NOW - i : FW_NO_DATE;
	}
}

/* Entries that go with their key, their text and their date. */
#define MANY_RIGHT "SELECT count(*) FROM entries e JOIN entry_keys k ON k.feed_id = e.feed_id AND k.entry_id = e.id AND" \
	" e.title = concat('t', k.hash) WHERE e.author <=> if(k.hash % 2, _utf8mb4 x'78efbfbdefbfbd2879', NULL) AND" \
	" e.published_ms <=> if(k.hash % 5, 1763730000000 - k.hash, NULL) AND e.content = if(k.hash % 3, 'c', '')"

/* REL-02: many rows at once take other ways through driver and server than few; they end the same. */
START_TEST(many_entries_at_once)
{
	static const struct { const char *table; int code, times, rc; } T[] = {{"entries", 1114, 1, FW_EAGAIN},
		{"entry_keys", 1114, 1, FW_EAGAIN}, {"entries", 2013, 1, FW_EIO}, {"entry_keys", 1213, 7, 0}};
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_entry_row e[MANY];
	struct fw_err err = {0};
	struct fw_lease l[1];
	struct fw_feed f;
	struct fw_outcome o;
	struct fw_commit c = {.outcome = &o, .n = 1, .now_ms = NOW};

	subscribe(st, "https://a.example/", NOW);
	ck_assert_uint_eq(claim_at(st, NOW, 1, l, &A), 1);
	many_make(e);
	o = outcome_of(&l[0], &f, NOW);
	o.entries = e;
	o.entry_n = MANY;
	for (size_t i = 0; i < FW_N(T); i++) { /* nothing is half-done, and the same call succeeds when it is over */
		ck_assert_int_eq(bare_number("SELECT (SELECT count(*) FROM entries) + (SELECT count(*) FROM entry_keys)"), 0);
		trouble_make(T[i].table, T[i].code, T[i].times);
		IS(fw_store_commit(st, &c, &err), T[i].rc);
		ck_assert_int_eq(trouble_end(), 0);
	}
	ck_assert_uint_eq(o.visit.new_n, MANY);
	ck_assert_int_eq(stats(st, NOW).entry_n, MANY);
	ck_assert_int_eq(bare_number(MANY_RIGHT), MANY);
	put_entries(st, &A, NOW + 3600000, 1000, 1001);
	bare("DELETE FROM entry_keys WHERE `key` = (SELECT k.`key` FROM (SELECT `key` FROM entry_keys WHERE hash = 17) k)");
	bare("DELETE FROM entries WHERE title = 't17'");
	bare("UPDATE counters SET entry_n = entry_n - 1 LIMIT 1");
	e[299] = entry(299, 298, "t298", "c"); /* one is missing, one is another */
	e[299].author = FW_STR_NONE;
	e[299].published_ms = NOW - 298;
	ck_assert_uint_eq(claim_at(st, NOW + 7200000, 1, l, &A), 1);
	o = outcome_of(&l[0], &f, NOW + 7200000);
	o.entries = e;
	o.entry_n = MANY;
	ck_assert_int_eq(commit_one(st, &o, NOW + 7200000), 0);
	ck_assert_uint_eq(o.visit.new_n, 1);
	ck_assert_uint_eq(o.visit.changed_n, 1);
	ck_assert_int_eq(bare_number(MANY_RIGHT), MANY);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* Numbers that are missing are waited for by the index of words: arrays of rows leave none out. */
START_TEST(numbers_have_no_gaps)
{
	static const int N[] = {62, 63, 64, 127, 200, 2047, 2500, 1};
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	int64_t now = NOW, all = 0;
	int key = 0;

	subscribe(st, "https://a.example/", NOW);
	for (size_t i = 0; i < FW_N(N); i++, now += 86400000) {
		put_entries(st, &A, now, key, key + N[i]);
		key += N[i];
		all += N[i];
		ck_assert_int_eq(bare_number("SELECT max(id) - min(id) + 1 FROM entries"), all);
	}
	ck_assert_int_eq(stats(st, now).entry_n, all);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(packets_stay_small_enough)
{
	struct fw_entry_row e[60];
	struct fw_buf text = FW_BUF_INIT(0);
	struct fw_lease l[1];
	struct fw_feed f;
	struct fw_outcome o;
	struct fw_commit c = {.outcome = &o, .n = 1, .now_ms = NOW};
	struct fw_err err = {0};
	struct fw_store *st;

	fw_store_close(store_open(url, FW_STORE_CREATE));
	bare("SET GLOBAL max_allowed_packet = 1048576");
	st = store_open(url, 0);
	bare("SET GLOBAL max_allowed_packet = 16777216");
	subscribe_many(st, "https://h%d.example/", 0, 20000, NOW + 1000); /* far more than one packet, in one transaction */
	subscribe(st, "https://a.example/", NOW);
	for (int i = 0; i < 10000; i++)
		fw_buf_addf(&text, "<p>%d\n\\</p>", i);
	ck_assert_uint_eq(claim_at(st, NOW, 1, l, &A), 1);
	o = outcome_of(&l[0], &f, NOW);
	for (int i = 0; i < 60; i++) { /* 9 MB of text in all */
		e[i] = entry(i + 1, 1, "t", "");
		e[i].content = fw_buf_str(&text);
	}
	o.entries = e;
	o.entry_n = 60;
	OK(fw_store_commit(st, &c, &err));
	ck_assert_uint_eq(o.visit.new_n, 60);
	/* one that no packet holds is refused, with the remedy, and nothing of it stays */
	while (text.len < 2000000)
		fw_buf_adds(&text, "more and more ");
	ck_assert_uint_eq(claim_at(st, NOW + 3600000 + 999999999, 1, l, &A), 1);
	o = outcome_of(&l[0], &f, NOW);
	e[0] = entry(99, 1, "t", "");
	e[0].content = fw_buf_str(&text);
	o.entries = e;
	o.entry_n = 1;
	IS(fw_store_commit(st, &c, &err), FW_EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "raise max_allowed_packet"));
	fw_store_close(st);
	st = store_open(url, 0);
	ck_assert_int_eq(stats(st, NOW).entry_n, 60);
	o.entry_n = 0;
	OK(fw_store_commit(st, &c, &err));
	ck_assert_int_eq(o.rc, 0);
	check_clean(st);
	fw_buf_finish(&text);
	fw_store_close(st);
}
END_TEST

/* ---- idle workers ------------------------------------------------------------------------------------------------------------- */

#define QUESTIONS "SELECT variable_value FROM %s.global_status WHERE variable_name = 'Questions'"

static int64_t questions(void)
{
	char sql[200];

	ck_assert(fw_snprintf(sql, sizeof(sql), QUESTIONS, getenv("FW_MYSQLD") ? "performance_schema" : "information_schema"));
	return bare_number(sql);
}

START_TEST(idle_workers_ask_seldom) /* and hear of a new feed within a second all the same */
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE), *other = store_open(url, 0);
	int64_t before, own, start;
	bool changed = true;
	struct fw_lease l[4];
	struct fw_err err;
	int fd[2];

	ck_assert_int_eq(pipe(fd), 0);
	OK(fw_store_wait(st, fd[0], 0, &changed, &err));
	own = -questions();
	own += questions(); /* what the asking costs */
	ck_assert_uint_eq(claim_at(st, NOW, 4, l, &A), 0);
	before = questions();
	start = fw_mono_ms();
	for (int i = 0; i < 4; i++) { /* four seconds of an idle worker, who is woken now and then */
		OK(fw_store_wait(st, fd[0], 900, &changed, &err));
		ck_assert(!changed);
		ck_assert_uint_eq(claim_at(st, NOW + i, 4, l, &A), 0);
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
	ck_assert_int_lt(fw_mono_ms() - start, 60000); /* found, not timed out */
	ck_assert_uint_eq(claim_at(st, NOW + 10, 4, l, &A), 1);
	close(fd[0]);
	close(fd[1]);
	fw_store_close(other);
	fw_store_close(st);
}
END_TEST

/* ---- the index of words --------------------------------------------------------------------------------------------------------- */

/* A commit with lower numbers that ends after the index has passed them. */
START_TEST(late_commit_is_indexed)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_err err = {0};
	bool more = true;
	MYSQL *db;

	subscribe(st, "https://a.example/", NOW);
	db = bare_open();
	run(db, "BEGIN");
	run(db, "INSERT INTO entries (feed_id, date_ms, seen_ms, changed_ms, revision, content_type, title) VALUES"
		" (1, 1, 1, 1, 1, 0, 'latecomer'), (1, 1, 1, 1, 1, 0, 'latecomer too')");
	run(db, "INSERT INTO entry_keys VALUES (1, 'aaaaaaaaaaaaaaaa', 1, last_insert_id()), (1, 'bbbbbbbbbbbbbbbb', 1, last_insert_id() + 1)");
	run(db, "INSERT INTO counters VALUES (1000, 2, 0)");
	put_entries(st, &A, NOW, 0, 3);
	while (more)
		OK(fw_store_upkeep(st, NOW, &more, &err));
	ck_assert_int_eq(hits(st, "number"), 3);
	ck_assert_int_eq(hits(st, "latecomer"), 0);
	run(db, "COMMIT");
	mysql_close(db);
	ck_assert_int_eq(stats(st, NOW).unindexed_n, 2);
	ck_assert_int_eq(hits(st, "latecomer"), 2);
	ck_assert_int_eq(stats(st, NOW).unindexed_n, 0);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* The feed's next visit brings entries from..to-1, whose text is `words`. */
static void bring(struct fw_store *st, int64_t now, int from, int to, const char *words)
{
	struct fw_entry_row e[10];
	struct fw_lease l[1];
	struct fw_feed f;
	struct fw_outcome o;

	ck_assert_uint_eq(claim_at(st, now, 1, l, &A), 1);
	for (int i = from; i < to; i++)
		e[i - from] = entry(i, 1, words, "");
	o = outcome_of(&l[0], &f, now);
	o.entries = e;
	o.entry_n = (size_t)(to - from);
	ck_assert_int_eq(commit_one(st, &o, now), 0);
}

/* All that waits to be done in the background, by a process that has just come. */
static void upkeep(void)
{
	struct fw_store *st = store_open(url, 0);
	struct fw_err err = {0};
	bool more = true;

	while (more)
		OK(fw_store_upkeep(st, NOW, &more, &err));
	fw_store_close(st);
}

#define ROWS_OF(word) bare_number("SELECT count(*) FROM words WHERE word = '" word "'")

START_TEST(words_of_what_is_gone) /* the index does not grow for ever */
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_err err = {0};
	int64_t id[2], n = 0;

	for (int i = 0; i < 2; i++) {
		id[i] = subscribe(st, i ? "https://b.example/" : "https://a.example/", NOW);
		bring(st, NOW, 0, 4, i ? "common beta" : "common alpha");
	}
	upkeep();
	ck_assert_int_eq(hits(st, "alpha"), 4);
	ck_assert_int_eq(ROWS_OF("beta"), 1);
	OK(fw_store_unsubscribe(st, id[1], &err)); /* a feed goes */
	ck_assert_int_eq(hits(st, "beta"), 0);     /* from now on, */
	ck_assert_int_eq(hits(st, "common"), 4);
	ck_assert_int_eq(bare_number("SELECT count(*) FROM gone"), 4);
	upkeep();
	ck_assert_int_eq(ROWS_OF("beta"), 0);      /* and takes no room */
	ck_assert_int_eq(ROWS_OF("alpha"), 1);
	ck_assert_int_eq(bare_number("SELECT count(*) FROM gone"), 0);
	ck_assert_int_eq(hits(st, "common"), 4);
	ck_assert_int_eq(hits(st, "alpha"), 4);
	bring(st, NOW + 86400000, 4, 6, "common gamma");
	upkeep();
	OK(fw_store_prune(st, 0, NOW + 1, &n, &err)); /* retention takes the first four */
	ck_assert_int_eq(n, 4);
	ck_assert_int_eq(hits(st, "alpha"), 0);
	upkeep();
	ck_assert_int_eq(ROWS_OF("alpha"), 0);
	ck_assert_int_eq(ROWS_OF("common"), 1);
	ck_assert_int_eq(hits(st, "common"), 2);
	OK(fw_store_unsubscribe(st, id[0], &err)); /* the last one */
	upkeep();
	ck_assert_int_eq(bare_number("SELECT count(*) FROM words"), 0);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* One in many that goes is not worth a walk; one that comes back with its old number keeps its words. */
START_TEST(words_of_what_came_back)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_feed f = {.id = 7, .url = FW_STR("https://b.example/"), .due_at_ms = NOW + INT64_C(9000000000)};
	struct fw_entry_row e = entry(1, 1, "common beta", "");
	struct fw_load rows = {.feed = &f, .feed_n = 1, .entry = &e, .entry_n = 1};
	struct fw_err err = {0};

	e.id = 1;
	e.feed_id = f.id;
	e.seen_ms = e.changed_ms = NOW;
	e.revision = 1;
	OK(fw_store_load(st, &rows, &err));
	upkeep();
	OK(fw_store_unsubscribe(st, f.id, &err));
	ck_assert_int_eq(bare_number("SELECT count(*) FROM gone"), 1);
	OK(fw_store_load(st, &rows, &err));
	bare("INSERT INTO gone VALUES (1)"); /* a walk that had begun before */
	upkeep();
	ck_assert_int_eq(bare_number("SELECT count(*) FROM gone"), 0);
	ck_assert_int_eq(hits(st, "beta"), 1);
	subscribe(st, "https://a.example/", NOW - 1);
	for (int i = 0; i < 3; i++)
		bring(st, NOW + (int64_t)i * 86400000, i * 10, i * 10 + 10, "common alpha");
	upkeep();
	OK(fw_store_unsubscribe(st, f.id, &err));
	upkeep();
	ck_assert_int_ge(ROWS_OF("beta"), 1);
	ck_assert_int_eq(hits(st, "beta"), 0);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(feed_deleted_by_hand) /* must not hold up the others */
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_lease l[4];

	subscribe(st, "https://a.example/1", NOW);
	subscribe(st, "https://a.example/2", NOW);
	subscribe(st, "https://b.example/", NOW);
	bare("DELETE FROM feeds WHERE url LIKE '%/1' OR url LIKE '%b.example/'");
	ck_assert_uint_eq(claim_at(st, NOW, 4, l, &A), 1);
	ck_assert(fw_str_eq(l[0].feed.url, FW_STR("https://a.example/2")));
	ck_assert_uint_eq(claim_at(st, NOW, 4, l, &A), 0);
	ck_assert_int_eq(stats(st, NOW).lent_n, 1);
	fw_store_close(st);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("store, trouble with mariadb");
	TCase *t = tcase_create("mysql");
	const TTest *every[] = {versions, views_follow_their_database, half_made_schema, tls_as_the_server_has_it, addresses,
		servers_that_only_look_like_it, database_of_another_program, password_is_not_told, reading_only,
		too_many_connections, locked_by_somebody_else, others_hold_what_is_asked_for_by_number, may_not_be_written_now, what_the_server_says, deadlocks_are_tried_again,
		server_shuts_down, connection_is_ended, commit_is_sent_again,
		server_is_killed_in_commits, disk_full, letters_of_addresses_count, any_bytes_are_taken, many_entries_at_once, numbers_have_no_gaps,
		packets_stay_small_enough,
		idle_workers_ask_seldom, late_commit_is_indexed, words_of_what_is_gone, words_of_what_came_back, feed_deleted_by_hand};

	setenv("FW_STORES", "mysql", 1);
	stores_begin();
	if (!under_test_n) {
		printf("1..0 # SKIP install the package mariadb-server\n");
		return 0;
	}
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	for (size_t i = 0; i < FW_N(every); i++)
		tcase_add_test(t, every[i]);
	tcase_add_loop_test(t, schema_4_is_brought_up_to_date, 0, 2);
	suite_add_tcase(s, t);
	return run_suite(s);
}
