/* SPDX-License-Identifier: ISC */
/*
 * The PostgreSQL driver and servers that die, are full, locked, foreign or too new: the right code, one line that names the store
 * and the remedy, nothing half-done, and the same call succeeds when the trouble is over. Each test has a server of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
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

START_TEST(schemas_that_are_not_ours) /* REL-15 */
{
	refused(url, 0, FW_ENOTFOUND, "feedwheel add");
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
	ck_assert(fw_snprintf(where, sizeof(where), "postgres://feedwheel@/postgres?host=%s/pg&options=-csearch_path%%3Dnone", scratch()));
	refused(where, FW_STORE_CREATE, FW_EINVAL, "schema=NAME");
	bare("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0");
	ck_assert(fw_snprintf(where, sizeof(where), "postgres://feedwheel@/latin?host=%s/pg", scratch()));
	refused(where, FW_STORE_CREATE, FW_EINVAL, "encoding UTF8");
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
	for (int i = 0; i < 100; i++) { /* they leave one by one */
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
	bare("CREATE SEQUENCE tries; CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
		" IF nextval('trouble.tries') <= TG_ARGV[0]::int THEN RAISE EXCEPTION 'in the way' USING ERRCODE = TG_ARGV[1]; END IF;"
		" RETURN new; END $$; CREATE TRIGGER fail BEFORE UPDATE ON wheel FOR EACH ROW EXECUTE FUNCTION fail(2, '40P01')");
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

static struct fw_store *open_again(void)
{
	for (int i = 0; i < 200; i++) {
		struct fw_store_config cfg = {.url = url};
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
		st = open_again();
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

/* A number that was taken but is not yet to be seen must not be passed by a reader's cursor. */
START_TEST(cursor_waits_for_writers)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_entry_row e[1];
	struct fw_lease l[2];
	struct fw_feed f;
	struct fw_outcome o;
	int64_t a = subscribe(st, "https://a.example/", NOW);
	int status;
	pid_t slow;

	subscribe(st, "https://b.example/", NOW);
	bare("CREATE FUNCTION nap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF new.title = 'slow' THEN PERFORM pg_sleep(1.5); END IF;"
		" RETURN new; END $$; CREATE TRIGGER nap BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION nap()");
	for (int i = 0; i < 2; i++) /* two claims: the loans of one have one lock */
		ck_assert_uint_eq(claim_at(st, NOW, 1, &l[i], &A), 1);
	slow = fork();
	if (slow == 0) {
		struct fw_store *other = store_open(url, 0);

		e[0] = entry(1, 1, "slow", "x");
		o = outcome_of(&l[0], &f, NOW);
		o.entries = e;
		o.entry_n = 1;
		_exit(commit_one(other, &o, NOW));
	}
	usleep(700000);
	e[0] = entry(2, 1, "quick", "x");
	o = outcome_of(&l[1], &f, NOW);
	o.entries = e;
	o.entry_n = 1;
	ck_assert_int_eq(commit_one(st, &o, NOW), 0);
	ck_assert_int_eq(entry_count(st, 0), 1); /* who just looks sees it */
	ck_assert_int_eq(query_count(st, (struct fw_entry_query){.oldest_first = true}), 0); /* a cursor does not */
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
		OK(fw_store_wait(mine, -1, 10000, &changed, &err));
		ck_assert(changed);
		ck_assert_int_lt(fw_mono_ms() - start, 3000);
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
		"UPDATE places p SET wheel_at = w.ctid, feed_at = f.ctid FROM wheel w, feeds f WHERE w.feed_id = 21 - p.feed_id"
			" AND f.id = p.feed_id",
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
	usleep(500000);
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
	for (int i = 0; rc && i < 300; i++) { /* a full journal ends the server; it starts again by itself */
		if (rc == FW_EIO) {
			fw_store_close(st);
			st = open_again();
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
	const TTest *every[] = {schemas_that_are_not_ours, addresses_that_lead_nowhere, reading_only, too_many_connections,
		locked_by_somebody_else, serialisation_failures, commit_that_was_stored_is_not_stale, server_killed_in_commit,
		cursor_waits_for_writers, waiting_workers_are_told, hints_that_lie, row_that_moves_meanwhile, manual_names_everything, disk_full};

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
