/* SPDX-License-Identifier: ISC */
/*
 * The SQLite driver and files that are locked, full, broken, foreign or forbidden. Each error has
 * the right code and one line that names the file and the remedy; nothing is half-done; the same
 * call succeeds when the cause is gone.
 */
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tiny_disk.h"
#include "work.h"
#include "store/sqlite/sqlite.h"

static struct fw_arena A;
static char path[300], url[320];

static void setup(void)
{
	fw_arena_init(&A, 0);
	ck_assert(fw_snprintf(path, sizeof(path), "%s/trouble.db", scratch()));
	ck_assert(fw_snprintf(url, sizeof(url), "sqlite:%s", path));
}

static void teardown(void)
{
	fw_arena_finish(&A);
}

static void bare(const char *sql)
{
	char *words = NULL;
	sqlite3 *db;

	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &words) == SQLITE_OK, "%s", words);
	sqlite3_close(db);
}

static void write_file(const char *text, size_t n)
{
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(text, 1, n, f), n);
	ck_assert_int_eq(fclose(f), 0);
}

static void refused(unsigned flags, int code, const char *words)
{
	open_fails(url, flags, code, path, words);
}

static int64_t number(const char *sql)
{
	sqlite3_stmt *q;
	sqlite3 *db;
	int64_t n;

	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_msg(sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
	ck_assert_int_eq(sqlite3_step(q), SQLITE_ROW);
	n = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	sqlite3_close(db);
	return n;
}

/* ---- the content ----------------------------------------------------------------------------- */

START_TEST(older_schema)
{
	schema_1_is_upgraded(url, bare);
}
END_TEST

START_TEST(newer_schema) /* REL-15 */
{
	fw_store_close(store_open(url, FW_STORE_CREATE));
	bare("UPDATE meta SET value = 99 WHERE name = 'schema'");
	refused(FW_STORE_CREATE, FW_EVERSION, "upgrade feedwheel");
	refused(FW_STORE_READ, FW_EVERSION, "upgrade feedwheel");
}
END_TEST

static int tick(void *ctx)
{
	++*(int64_t *)ctx;
	return 0;
}

static int none(void *ctx, const struct fw_entry_row *e)
{
	(void)ctx;
	ck_assert(e->hash != 0);
	return 0;
}

/* The work of SQLite, in hundreds of its steps, to list n entries of one feed with their keys. */
static int64_t steps_for(int n)
{
	struct fw_entry_query q = {.oldest_first = true, .key = true};
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_err err = {0};
	int64_t steps = 0;

	put_entries(st, subscribe(st, "https://a.example/", NOW), 0, n);
	sqlite3_progress_handler(sqlite_db(sql_of(store_of(st)))->db, 100, tick, &steps);
	OK(fw_store_entry_list(st, &q, none, NULL, &err));
	fw_store_close(st);
	ck_assert_int_eq(unlink(path), 0);
	return steps;
}

/*
 * Keys are found by an index, not by a scan for each entry: twice as many entries take twice the
 * steps.
 */
START_TEST(keys_of_a_large_feed)
{
	int64_t few = steps_for(1000), many = steps_for(4000);

	ck_assert_int_gt(few, 10);
	ck_assert_msg(many < few * 5, "%lld hundred steps for 1,000 entries, %lld for 4,000", (long long)few,
		(long long)many);
}
END_TEST

/*
 * Many small commits leave many segments in the index. Maintenance merges them and finishes;
 * nothing is lost.
 */
START_TEST(index_is_merged)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	int64_t id = subscribe(st, "https://a.example/", NOW);

	for (int i = 0; i < 60; i++) {
		put_entries(st, id, i, i + 1);
		ck_assert_int_eq(hits(st, "number"), i + 1); /* each search completes the index */
	}
	ck_assert_int_ge(number("SELECT count(DISTINCT segid) FROM entries_fts_idx"), 60);
	index_all(st);
	ck_assert_int_lt(number("SELECT count(DISTINCT segid) FROM entries_fts_idx"), 16);
	ck_assert_int_eq(hits(st, "number"), 60);
	ck_assert_int_eq(hits(st, "n59"), 1);
	index_all(st);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/*
 * A feed that was deleted by hand holds up no other: its outcome is FW_ENOTFOUND, the rest of the
 * batch is stored.
 */
START_TEST(feed_deleted_by_hand)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct store *to = store_of(st);
	struct store_lease *l = drv_join(to, "w", LONG_MS);
	struct fw_outcome o[3];
	struct fw_feed f[3];

	for (int i = 0; i < 3; i++)
		o[i] = drv_outcome(
			to, subscribe(st, fw_arena_printf(&A, "https://h%d.example/", i), NOW), &f[i], NOW + 1);
	bare("DELETE FROM schedule WHERE position = (SELECT position FROM feeds WHERE url LIKE '%h1%');"
	     " DELETE FROM feeds WHERE url LIKE '%h1%'");
	DONE(drv_commit(to, l->id, o, 3));
	ck_assert(o[0].rc == 0 && o[1].rc == FW_ENOTFOUND && o[2].rc == 0);
	ck_assert_int_eq(stats(st).visit_n, 2);
	ck_assert_uint_eq(drv_due(to, -1, INT64_MAX)->n, 2);
	free(l);
	fw_store_close(st);
}
END_TEST

/* A key of another length than ours: the feed can still be removed. */
START_TEST(keys_of_any_length)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_err err = {0};
	int64_t id = subscribe(st, "https://a.example/", NOW);

	put_entries(st, id, 0, 3);
	bare("INSERT INTO entry_keys VALUES (1, zeroblob(100), 0, 0), (1, x'', 0, 0); UPDATE"
	     " entry_keys SET entry_key = zeroblob(200)"
	     " WHERE entry_id = 2");
	OK(fw_store_unsubscribe(st, id, &err));
	check_clean(st);
	ck_assert_int_eq(stats(st).entry_n, 0);
	fw_store_close(st);
}
END_TEST

/* ---- files ----------------------------------------------------------------------------------- */

/* Some file systems do not support a WAL; SQLite then uses another journal without an error. */
START_TEST(no_shared_memory)
{
	sqlite3_vfs *usual = sqlite3_vfs_find(NULL);

	ck_assert_int_eq(sqlite3_vfs_register(sqlite3_vfs_find("unix-dotfile"), 1), SQLITE_OK);
	refused(FW_STORE_CREATE, FW_EIO, "use a local disk");
	ck_assert_int_eq(sqlite3_vfs_register(usual, 1), SQLITE_OK);
}
END_TEST

START_TEST(database_of_another_program)
{
	bare("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)");
	refused(FW_STORE_CREATE, FW_EINVAL, "another program");
	bare("INSERT INTO theirs VALUES (2)"); /* and it is unchanged */
}
END_TEST

START_TEST(not_a_database)
{
	char junk[5000];

	memset(junk, 'x', sizeof(junk));
	write_file(junk, sizeof(junk));
	refused(FW_STORE_CREATE, FW_EUNUSABLE, "not an SQLite database");
}
END_TEST

START_TEST(empty_and_missing_files)
{
	struct fw_store *st;

	refused(0, FW_ENOTFOUND, "feedwheel add");
	ck_assert_int_eq(access(path, F_OK), -1); /* no file was created */
	write_file("", 0);
	refused(0, FW_ENOTFOUND, "feedwheel add");
	st = store_open(url, FW_STORE_CREATE);
	subscribe(st, "https://a.example/", NOW);
	fw_store_close(st);
}
END_TEST

START_TEST(forbidden_file)
{
	fw_store_close(store_open(url, FW_STORE_CREATE));
	ck_assert_int_eq(chmod(path, 0), 0);
	ck_assert_int_eq(chmod(scratch(), 0755), 0);
	if (geteuid() == 0)
		ck_assert_int_eq(seteuid(65534), 0); /* root may read everything */
	refused(FW_STORE_CREATE, FW_EUNUSABLE, "permissions");
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0), 0);
	ck_assert_int_eq(chmod(path, 0644), 0);
}
END_TEST

START_TEST(file_without_write_permission)
{
	struct fw_store_config c = {.url = url};
	struct fw_store *st = NULL;
	struct fw_err err = {0};
	struct fw_feed_new n = {.url = FW_STR("https://b.example/")};
	int rc;

	fw_store_close(store_open(url, FW_STORE_CREATE));
	ck_assert_int_eq(chmod(path, 0444), 0);
	ck_assert_int_eq(chmod(scratch(), 0755), 0);
	if (geteuid() == 0)
		ck_assert_int_eq(seteuid(65534), 0);
	rc = fw_store_open(&c, &st, &err);
	if (!rc)
		rc = fw_store_subscribe(st, &n, 1, &err);
	ck_assert_msg(rc == FW_EUNUSABLE && strstr(err.text, path) && strstr(err.text, "permissions"), "%d: %s", rc,
		err.text);
	fw_store_close(st);
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0), 0);
}
END_TEST

START_TEST(reading_only)
{
	read_only_refuses(url);
}
END_TEST

START_TEST(locked_by_another_client)
{
	struct work *w = work_begin_at(url, 100);
	sqlite3 *db;

	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	commit_is_locked_out(w, path, "locked");
	ck_assert_msg(strstr(drv_err.text, "100 ms") != NULL, "%s", drv_err.text);
	FAILS(w->st->driver->heartbeat(w->st, "w", w->l, &drv_err), FW_EAGAIN);
	ck_assert_uint_eq(drv_due(w->st, -1, INT64_MAX)->n, 1); /* reading still works */
	ck_assert_int_eq(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	commit_stores_once(w);
	work_end(w);
}
END_TEST

static int keep_quiet(void *ctx, const struct fw_feed *f)
{
	(void)ctx;
	(void)f;
	return 0;
}

static void count_finding(void *ctx, const char *text)
{
	(void)text;
	++*(int *)ctx;
}

/*
 * A process with several connections, as the server is: another process that opens and closes the
 * store must not take itself for the last one and remove the journal. (A process that closes a file
 * loses all its locks on it.)
 */
START_TEST(several_connections_of_one_process)
{
	struct fw_store *st[3];
	struct stat sb;
	char wal[310];
	int status;
	pid_t pid;

	for (int i = 0; i < 3; i++)
		st[i] = store_open(url, FW_STORE_CREATE);
	subscribe(st[0], "https://a.example/", NOW);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		(void)execl("/proc/self/exe", "trouble", "visit", url, (char *)NULL);
		_exit(9);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	ck_assert(fw_snprintf(wal, sizeof(wal), "%s-wal", path));
	ck_assert_int_eq(stat(wal, &sb), 0);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(stats(st[i]).feed_n, 2);
		check_clean(st[i]);
	}
	for (int i = 0; i < 3; i++)
		fw_store_close(st[i]);
	ck_assert_int_eq(stat(wal, &sb), -1);
}
END_TEST

/* The other program of the test above. */
static int visit_and_leave(const char *where)
{
	struct fw_store_config c = {.url = where};
	struct fw_feed_new n = {.url = FW_STR("https://b.example/")};
	struct fw_store *st;
	struct fw_err err;
	int rc = fw_store_open(&c, &st, &err);

	rc = rc ? rc : fw_store_subscribe(st, &n, 1, &err);
	if (rc)
		fprintf(stderr, "# %s\n", err.text);
	else
		fw_store_close(st);
	return rc ? 1 : 0;
}

START_TEST(damaged_file)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_feed_query all = {.status = -1};
	struct fw_err err = {0};
	char junk[4096];
	struct stat sb;
	int fd, rc, findings = 0;

	subscribe_many(st, "https://h%d.example/", 0, 3000, NOW);
	fw_store_close(st);
	ck_assert_int_eq(stat(path, &sb), 0);
	memset(junk, 0xa5, sizeof(junk));
	fd = open(path, O_WRONLY);
	for (off_t at = 80 * 4096; at + 4096 <= sb.st_size; at += 2 * 4096) /* every other page behind the schema */
		ck_assert_int_eq(pwrite(fd, junk, sizeof(junk), at), (ssize_t)sizeof(junk));
	close(fd);
	st = store_open(url, 0);
	rc = fw_store_feed_list(st, &all, keep_quiet, NULL, &err);
	ck_assert_msg(
		rc == FW_EUNUSABLE && strstr(err.text, path) && strstr(err.text, ".recover"), "%d: %s", rc, err.text);
	rc = fw_store_check(st, count_finding, &findings, &err);
	ck_assert(rc == FW_EUNUSABLE || findings > 0);
	fw_store_close(st);
}
END_TEST

START_TEST(truncated_file)
{
	struct fw_store_config c = {.url = url};
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	struct fw_feed_query all = {.status = -1};
	struct fw_err err = {0};
	struct stat sb;
	int rc;

	subscribe_many(st, "https://h%d.example/", 0, 3000, NOW);
	fw_store_close(st);
	ck_assert_int_eq(stat(path, &sb), 0);
	ck_assert_int_eq(truncate(path, sb.st_size / 2), 0);
	rc = fw_store_open(&c, &st, &err);
	if (!rc)
		rc = fw_store_feed_list(st, &all, keep_quiet, NULL, &err);
	ck_assert_msg(rc == FW_EUNUSABLE && strstr(err.text, path), "%d: %s", rc, err.text);
	fw_store_close(st);
}
END_TEST

#define BIG_N 60

/*
 * Fills the store until no space is left: then nothing of the last commit is stored, and with space
 * the same commit succeeds. Closes the store.
 */
static void fill_up(struct fw_store *st, const char *words, void (*more_space)(void))
{
	struct fw_buf text = FW_BUF_INIT(0);
	struct work *w = work_begin(st);
	int64_t before;
	int rc, n = 0;

	for (int i = 0; i < 2000; i++)
		fw_buf_addf(&text, "<p>word%d</p>", i * 7919);
	do {
		before = stats(st).entry_n;
		visit_with(w, n * BIG_N, BIG_N, fw_buf_str(&text));
		rc = commit(w);
	} while (!rc && ++n < 100);
	ck_assert_msg(
		rc == FW_EIO && strstr(drv_err.text, path) && strstr(drv_err.text, words), "%d: %s", rc, drv_err.text);
	ck_assert_int_eq(stats(st).entry_n, before); /* all or nothing */
	ck_assert_int_eq(drv_find(w->st, w->feed_id)->last_visit_ms, n ? w->f.last_visit_ms - 1 : 0);
	FAILS(commit(w), FW_EIO); /* still full */
	more_space();
	DONE(commit(w));
	ck_assert_int_eq(w->o.rc, 0);
	ck_assert_uint_eq(w->o.visit.new_n, BIG_N);
	ck_assert_int_eq(stats(st).entry_n, before + BIG_N);
	work_end(w);
	fw_buf_finish(&text);
}

static char filler[320];

static void remove_filler(void)
{
	ck_assert_int_eq(unlink(filler), 0);
}

START_TEST(disk_full) /* REL-09 */
{
	struct fw_store *st;
	char folder[300];

	ck_assert(fw_snprintf(folder, sizeof(folder), "%s/tiny", scratch()));
	if (!tiny_disk(folder, "12m"))
		return;
	ck_assert(fw_snprintf(path, sizeof(path), "%s/full.db", folder));
	ck_assert(fw_snprintf(url, sizeof(url), "sqlite:%s", path));
	ck_assert(fw_snprintf(filler, sizeof(filler), "%s/filler", folder));
	tiny_disk_fill(filler, 6 << 20);
	st = store_open(url, FW_STORE_CREATE);
	fill_up(st, "no space left", remove_filler);
	umount(folder);
}
END_TEST

static void lift_limit(void)
{
	struct rlimit r = {RLIM_INFINITY, RLIM_INFINITY};

	getrlimit(RLIMIT_FSIZE, &r);
	r.rlim_cur = r.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &r), 0);
}

START_TEST(file_size_limit) /* the same without root: ulimit -f */
{
	struct rlimit r;
	struct fw_store *st = store_open(url, FW_STORE_CREATE);

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &r);
	r.rlim_cur = 6 << 20;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &r), 0);
	fill_up(st, "ulimit -f", lift_limit);
}
END_TEST

/* A search first indexes what is missing. If that cannot be written, it uses the index as it is. */
START_TEST(search_on_a_full_disk)
{
	struct fw_store *st = store_open(url, FW_STORE_CREATE);
	int64_t id = subscribe(st, "https://a.example/", NOW);
	struct rlimit r;

	put_entries(st, id, 0, 10);
	ck_assert_int_eq(hits(st, "number"), 10);
	put_entries(st, id, 10, 20);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &r);
	r.rlim_cur = 4096;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &r), 0);
	ck_assert_int_eq(hits(st, "number"), 10);
	lift_limit();
	ck_assert_int_eq(hits(st, "number"), 20);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

START_TEST(journal_stays_bounded)
{
	struct work *w = work_begin(store_open(url, FW_STORE_CREATE));
	struct fw_buf text = FW_BUF_INIT(0);
	struct stat sb;
	char wal[320];

	for (int i = 0; i < 5000; i++)
		fw_buf_addf(&text, "<p>word%d</p>", i * 7919);
	for (int n = 0; n < 40; n++) { /* 200 MB in all */
		visit_with(w, n * BIG_N, BIG_N, fw_buf_str(&text));
		DONE(commit(w));
	}
	ck_assert(fw_snprintf(wal, sizeof(wal), "%s-wal", path));
	ck_assert_int_eq(stat(wal, &sb), 0);
	ck_assert_int_lt(sb.st_size, 80 << 20);
	fw_buf_finish(&text);
	work_end(w);
	ck_assert_int_eq(stat(wal, &sb), -1); /* closing merges it into the database file */
}
END_TEST

int main(int argc, char **argv)
{
	const TTest *const every[] = {older_schema, newer_schema, keys_of_a_large_feed, index_is_merged,
		feed_deleted_by_hand, keys_of_any_length, no_shared_memory, database_of_another_program, not_a_database,
		empty_and_missing_files, forbidden_file, file_without_write_permission, reading_only,
		locked_by_another_client, several_connections_of_one_process, damaged_file, truncated_file, disk_full,
		file_size_limit, search_on_a_full_disk, journal_stays_bounded};
	TCase *t;

	if (argc == 3 && strcmp(argv[1], "visit") == 0)
		return visit_and_leave(argv[2]);
	engine_needed("sqlite");
	t = cases("sqlite", setup, teardown, 120);
	cases_add(t, every, FW_N(every), 1);
	return cases_run("store sqlite_faults", t);
}
