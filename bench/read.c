/* SPDX-License-Identifier: ISC */
/*
 * bench_read: what clients of readers wait for, on SQLite and PostgreSQL. A store has ENTRIES
 * entries of FEEDS feeds; each of ACCOUNTS accounts subscribes all feeds, and half of the entries
 * are unread. Ours is the accounts' interface (api/account.h); the reference is the bare SQL that
 * reads or writes the same rows, by the engine's own client library. They alternate, and each
 * figure is the median of RUNS.
 *
 * A row: name, ours, reference, ratio, goal, and ok or short; an edit has no goal, because the bare
 * SQL does not look at what it changes. A row with two goals is short if either is missed. Exit
 * status 1: a row is short.
 *
 *	ENTRIES=1000000 FEEDS=5000 ACCOUNTS=100 RUNS=9 STORES=sqlite,postgres
 */
#include <ftw.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#if FW_HAVE_POSTGRES
#include <libpq-fe.h>
#endif

#include "api/account.h"
#include "base/buf.h"
#include "base/str.h"
#include "feedwheel/store.h"
#include "../tests/store/servers.h"
#include "size.h"

#define RUNS_MAX 99

static size_t entry_n, feed_n, account_n, run_n;
static bool any_short;
static int64_t account = 1; /* the next one that nothing was written for */
static char folder[200];

static void die(const char *what, const char *why)
{
	fprintf(stderr, "bench_read: %s: %s\n", what, why);
	exit(2);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- the reference: a connection without feedwheel ------------------------------------------- */

static struct {
	sqlite3 *sqlite;
#if FW_HAVE_POSTGRES
	PGconn *postgres;
#endif
} bare;

static size_t bare_sqlite(const char *sql)
{
	size_t n = 0;

	while (sql && *sql) {
		sqlite3_stmt *q;
		int rc;

		if (sqlite3_prepare_v2(bare.sqlite, sql, -1, &q, &sql) != SQLITE_OK)
			die(sql, sqlite3_errmsg(bare.sqlite));
		for (n = 0; q && (rc = sqlite3_step(q)) == SQLITE_ROW; n++) {
			for (int i = 0; i < sqlite3_column_count(q); i++)
				(void)sqlite3_column_blob(q, i);
		}
		if (q && rc != SQLITE_DONE)
			die("SQLite", sqlite3_errmsg(bare.sqlite));
		sqlite3_finalize(q);
	}
	return n;
}

/* Run statements; returns the number of rows of the last one. */
static size_t bare_run(const char *sql)
{
#if FW_HAVE_POSTGRES
	if (bare.postgres) {
		PGresult *r = PQexec(bare.postgres, sql);
		size_t n = (size_t)PQntuples(r);

		if (PQresultStatus(r) != PGRES_COMMAND_OK && PQresultStatus(r) != PGRES_TUPLES_OK)
			die(sql, PQerrorMessage(bare.postgres));
		PQclear(r);
		return n;
	}
#endif
	return bare_sqlite(sql);
}

FW_PRINTF(1, 2) static size_t bare_runf(const char *format, ...)
{
	struct fw_buf b = FW_BUF_INIT(0);
	va_list ap;
	size_t n;

	va_start(ap, format);
	fw_buf_vaddf(&b, format, ap);
	va_end(ap);
	if (b.rc)
		die("memory", "none left");
	n = bare_run(b.p);
	fw_buf_finish(&b);
	return n;
}

static void bare_open(const char *engine, const char *url)
{
	if (strcmp(engine, "sqlite") == 0) {
		if (sqlite3_open(url + strlen("sqlite:"), &bare.sqlite) != SQLITE_OK)
			die(url, sqlite3_errmsg(bare.sqlite));
		bare_run("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-8192");
		sqlite3_busy_timeout(bare.sqlite, 10000);
		return;
	}
#if FW_HAVE_POSTGRES
	char conninfo[400];
	const char *schema = strstr(url, "&schema=");

	if (!schema ||
		!fw_snprintf(conninfo, sizeof(conninfo), "%.*s&options=-csearch_path%%3D%s", (int)(schema - url), url,
			schema + strlen("&schema=")))
		die(url, "too long");
	bare.postgres = PQconnectdb(conninfo);
	if (PQstatus(bare.postgres) != CONNECTION_OK)
		die(url, PQerrorMessage(bare.postgres));
#endif
}

static void bare_close(void)
{
	sqlite3_close(bare.sqlite);
	bare.sqlite = NULL;
#if FW_HAVE_POSTGRES
	PQfinish(bare.postgres);
	bare.postgres = NULL;
#endif
}

/* ---- the store ------------------------------------------------------------------------------- */

/* Made by SQL, because a million entries through commits take their time. */
static void fill(bool sqlite)
{
	const char *key = sqlite ? "randomblob(16)" : "decode(md5(i::text), 'hex')";
	const char *text = sqlite ? "printf('%.*c', 200 + i * 31 % 900, 'x')" :
				    "repeat('x', (200 + i * 31 % 900)::int)";
	long long e = (long long)entry_n, f = (long long)feed_n, a = (long long)account_n;

	if (sqlite)
		bare_run("PRAGMA synchronous=OFF");
	bare_runf("INSERT INTO entries (id, feed_id, entry_key, date_ms, seen_ms, changed_ms, revision, content_type,"
		  " guid, url, title, content) WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i <"
		  " %lld) SELECT i, i %% %lld + 1, %s, i * 1000, i * 1000, i * 1000, 1, 2, 'guid' || i,"
		  " 'https://h.example/entry/' || i, 'The title of entry ' || i, %s FROM c",
		e, f, key, text);
	bare_runf("UPDATE meta SET value = %lld WHERE name IN ('entry_id', 'indexed_entry_id')", e);
	bare_runf("UPDATE schedule SET entry_total_n = %lld", e / f);
	bare_runf(
		"INSERT INTO accounts (id, name, password, admin, created_ms, used_ms, label_id) WITH RECURSIVE c(i)"
		" AS (SELECT 2 UNION ALL SELECT i + 1 FROM c WHERE i < %lld) SELECT i, 'a' || i, '', 0, 1, 0, 0 FROM c",
		a);
	bare_runf("UPDATE meta SET value = %lld WHERE name = 'account_id'", a);
	bare_runf(
		"INSERT INTO subscriptions (account_id, feed_id, mark_id, read_n, added_ms, folder) SELECT a.id, f.id,"
		" %lld, %lld, 1, 'folder' FROM accounts a, feeds f ORDER BY a.id, f.id",
		e / 2, e / f / 2);
	bare_run(sqlite ? "PRAGMA synchronous=FULL; PRAGMA wal_checkpoint(TRUNCATE)" : "VACUUM ANALYZE");
}

static void add_feeds(struct fw_store *st)
{
	struct fw_feed_new *f = calloc(feed_n, sizeof(*f));
	struct fw_buf urls = FW_BUF_INIT(0);
	struct fw_err err = {0};
	size_t at = 0;

	for (size_t i = 0; i < feed_n; i++)
		fw_buf_addf(&urls, "https://h%zu.example/feed/%zu\n", i % 997, i);
	for (size_t i = 0; f && i < feed_n; i++) {
		size_t from = at;

		while (urls.p[at] != '\n')
			at++;
		f[i].url = (struct fw_str){urls.p + from, at++ - from};
	}
	if (!f || urls.rc || fw_store_subscribe(st, f, feed_n, &err))
		die("feeds", err.text);
	fw_buf_finish(&urls);
	free(f);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), compare);
	return v[n / 2];
}

static void row(const char *name, double *ours, double *reference, size_t n, double most_ms)
{
	double a, b, ratio[RUNS_MAX], r;
	char limit[40];
	bool fine;

	for (size_t i = 0; i < n; i++)
		ratio[i] = ours[i] / reference[i];
	a = median(ours, n) * 1e3;
	b = median(reference, n) * 1e3;
	r = median(ratio, n);
	fine = getenv("TINY") || !most_ms || (a <= most_ms && r <= 2.0);
	if (!fw_snprintf(limit, sizeof(limit), "%.0f ms, 2.0", most_ms))
		limit[0] = '\0';
	printf("%-44s %9.2f ms %9.2f ms %7.2f %13s  %s\n", name, a, b, r, most_ms ? limit : "-",
		!most_ms     ? "-" :
			fine ? "ok" :
			       "short");
	fflush(stdout);
	any_short |= !fine;
}

struct work {
	struct fw_store *st;
	int64_t account; /* of this run */
	size_t n;        /* rows that the callback got */
};

static int take_sub(void *ctx, const struct fw_subscription *s)
{
	(void)s;
	((struct work *)ctx)->n++;
	return 0;
}

static int take_entry(void *ctx, const struct fw_stream_entry *e)
{
	(void)e;
	((struct work *)ctx)->n++;
	return 0;
}

static void check(int rc, const struct fw_err *err)
{
	if (rc)
		die("store", err->text);
}

static size_t ours_counts(struct work *w)
{
	struct fw_err err = {0};

	check(fw_account_subscription_list(w->st, w->account, 0, true, take_sub, w, &err), &err);
	return w->n;
}

static size_t bare_counts(struct work *w)
{
	return bare_runf(
		"SELECT s.feed_id, t.entry_total_n - s.read_n, t.last_new_ms, s.folder FROM subscriptions s JOIN"
		" feeds f ON f.id = s.feed_id JOIN schedule t ON t.position = f.position WHERE s.account_id ="
		" %lld ORDER BY s.feed_id",
		(long long)w->account);
}

static size_t ours_stream(struct work *w, size_t limit, bool whole)
{
	const struct fw_stream s = {.account_id = w->account, .read = FW_READ_UNREAD, .limit = limit, .content = whole};
	struct fw_err err = {0};

	check(whole ? fw_account_entries(w->st, &s, take_entry, w, &err) :
		      fw_account_ids(w->st, &s, take_entry, w, &err),
		&err);
	return w->n;
}

static size_t ours_ids_10k(struct work *w)
{
	return ours_stream(w, entry_n / 100, false);
}

static size_t ours_ids_100k(struct work *w)
{
	return ours_stream(w, entry_n / 10, false);
}

static size_t ours_contents(struct work *w)
{
	return ours_stream(w, entry_n / 1000, true);
}

/* What says which entries are unread. */
static void bare_state(struct work *w)
{
	bare_runf("SELECT feed_id, mark_id, folder FROM subscriptions WHERE account_id = %lld ORDER BY feed_id",
		(long long)w->account);
	bare_runf("SELECT feed_id, entry_id FROM read_exceptions WHERE account_id = %lld", (long long)w->account);
}

static size_t bare_ids(struct work *w, size_t limit)
{
	bare_state(w);
	return bare_runf(
		"SELECT id, feed_id FROM entries WHERE id > %zu ORDER BY id DESC LIMIT %zu", entry_n / 2, limit);
}

static size_t bare_ids_10k(struct work *w)
{
	return bare_ids(w, entry_n / 100);
}

static size_t bare_ids_100k(struct work *w)
{
	return bare_ids(w, entry_n / 10);
}

static size_t bare_contents(struct work *w)
{
	bare_state(w);
	bare_runf("SELECT entry_id, label_id FROM entry_labels WHERE entry_id > %zu AND account_id = %lld",
		entry_n - entry_n / 1000, (long long)w->account);
	return bare_runf("SELECT e.*, f.url, f.title FROM entries e JOIN feeds f ON f.id = e.feed_id WHERE e.id > %zu"
			 " ORDER BY e.id DESC LIMIT %zu",
		entry_n / 2, entry_n / 1000);
}

static void ours_mark_until(struct work *w, size_t last_id)
{
	struct fw_err err = {0};

	check(fw_account_mark_read(w->st, &(struct fw_stream){.account_id = w->account}, 0, (int64_t)last_id, &err),
		&err);
}

static size_t ours_mark(struct work *w)
{
	ours_mark_until(w, 0);
	return 0;
}

static size_t ours_mark_older(struct work *w)
{
	ours_mark_until(w, entry_n - entry_n / 10000);
	return 0;
}

/* The marks and numbers are the same afterwards. above: the entries above the mark, by feed. */
static void bare_mark_until(struct work *w, size_t last_id, const char *above)
{
	bare_runf("BEGIN; UPDATE subscriptions AS u SET mark_id = %zu, read_n = t.entry_total_n - coalesce(a.n, 0)"
		  " FROM feeds f JOIN schedule t ON t.position = f.position LEFT JOIN (%s) a ON a.feed_id = f.id"
		  " WHERE f.id = u.feed_id AND u.account_id = %lld; COMMIT",
		last_id, above, (long long)w->account);
}

static size_t bare_mark(struct work *w)
{
	bare_mark_until(w, entry_n, "SELECT 0 AS feed_id, 0 AS n");
	return 0;
}

static size_t bare_mark_older(struct work *w)
{
	char above[100];
	size_t last_id = entry_n - entry_n / 10000;

	(void)fw_snprintf(
		above, sizeof(above), "SELECT feed_id, count(*) AS n FROM entries WHERE id > %zu GROUP BY 1", last_id);
	bare_mark_until(w, last_id, above);
	return 0;
}

/* 1 % of the entries are read, one by one. */
static size_t ours_edit(struct work *w)
{
	size_t n = entry_n / 100;
	int64_t *id = calloc(n, sizeof(*id));
	struct fw_err err = {0};

	for (size_t i = 0; id && i < n; i++)
		id[i] = (int64_t)(entry_n - i * 3);
	if (!id)
		die("memory", "none left");
	check(fw_account_edit(w->st, w->account, id, n, &(struct fw_entry_edit){.read = 1}, 1, &err), &err);
	free(id);
	return 0;
}

/* The same rows in one statement of the server's own: its reading and checking is not in it. */
static size_t bare_edit(struct work *w)
{
	bare_runf(
		"BEGIN; INSERT INTO read_exceptions SELECT %lld, feed_id, id FROM entries WHERE id > %zu AND id %% 3 ="
		" 1; UPDATE subscriptions SET read_n = read_n + 1 WHERE account_id = %lld; COMMIT",
		(long long)w->account, entry_n - entry_n / 100 * 3, (long long)w->account);
	return 0;
}

static void measure(struct fw_store *st, const char *name, size_t (*ours)(struct work *),
	size_t (*reference)(struct work *), double most_ms, bool writes)
{
	double a[RUNS_MAX], b[RUNS_MAX], from;
	struct work w = {.st = st};
	size_t n, m;

	for (size_t i = 0; i < run_n + 1; i++) { /* the first one fills caches */
		size_t at = i ? i - 1 : 0;

		w.n = 0;
		w.account = writes ? account++ : 1 + (int64_t)(i % 3);
		from = now_s();
		n = ours(&w);
		a[at] = now_s() - from;
		w.account = writes ? account++ : w.account;
		from = now_s();
		m = reference(&w);
		b[at] = now_s() - from;
		if (n != m)
			die(name, "the reference has another number of rows");
	}
	if (account > (int64_t)account_n)
		account = 1;
	row(name, a, b, run_n, most_ms);
}

static void bench(const char *engine)
{
	const struct server *server = server_of(engine);
	struct fw_store_config c = {.flags = FW_STORE_CREATE};
	char url[300], name[60];
	struct fw_store *st;
	struct fw_err err = {0};
	int64_t id;

	if (server && !server->installed()) {
		printf("%-44s skipped: install the package %s\n", engine, server->package);
		return;
	}
	if (server)
		server->start(folder);
	if (server)
		server->url(url, sizeof(url), "bench");
	else if (!fw_snprintf(url, sizeof(url), "sqlite:%s/bench.db", folder))
		die(folder, "too long");
	c.url = url;
	account = 1;
	check(fw_store_open(&c, &st, &err), &err);
	add_feeds(st);
	check(fw_account_add(st, FW_STR("a1"), FW_STR("correct horse"), false, 1, &id, &err), &err);
	bare_open(engine, url);
	fill(strcmp(engine, "sqlite") == 0);
	/* clang-format off */
#define ROW(text, ours, reference, most_ms, writes) \
	(fw_snprintf(name, sizeof(name), "%s: %s", engine, text), measure(st, name, ours, reference, most_ms, writes))
	/* clang-format on */
	(void)ROW("unread counts of an account", ours_counts, bare_counts, 5, false);
	(void)ROW("numbers of 1 % of the entries", ours_ids_10k, bare_ids_10k, 30, false);
	(void)ROW("numbers of 10 % of the entries", ours_ids_100k, bare_ids_100k, 250, false);
	(void)ROW("0.1 % of the entries with contents", ours_contents, bare_contents, 60, false);
	(void)ROW("mark all read", ours_mark, bare_mark, 20, true);
	(void)ROW("mark all read but the newest", ours_mark_older, bare_mark_older, 20, true);
	(void)ROW("edit of 1 % of the entries", ours_edit, bare_edit, 0, true);
	bare_close();
	fw_store_close(st);
	if (server)
		server->stop();
}

static int remove_one(const char *path, const struct stat *sb, int type, struct FTW *f)
{
	(void)sb;
	(void)type;
	(void)f;
	return remove(path);
}

int main(void)
{
	const char *tmp = getenv("TMPDIR"), *stores = getenv("STORES");
	struct fw_str rest = fw_str(stores && *stores ? stores : FW_HAVE_POSTGRES ? "sqlite,postgres" : "sqlite");

	feed_n = size_of("FEEDS", 5000, 50);
	entry_n = size_of("ENTRIES", 1000000, 10000) / (2 * feed_n) * (2 * feed_n); /* each feed has as many */
	account_n = size_of("ACCOUNTS", 100, 12);
	run_n = FW_MIN(size_of("RUNS", 9, 1), (size_t)RUNS_MAX);
	if (!entry_n || account_n < 4 * (run_n + 1)) {
		fprintf(stderr, "ENTRIES: at least two of each feed; ACCOUNTS: four for each run, and four more\n");
		return 2;
	}
	server_durable = true;
	if (!fw_snprintf(folder, sizeof(folder), "%s/feedwheel-bench-XXXXXX", tmp ? tmp : "/tmp") || !mkdtemp(folder))
		die(folder, "cannot be created");
	chmod(folder, 0755);
	printf("%-44s %12s %12s %7s %13s\n", "# name", "ours", "bare SQL", "ratio", "at most");
	while (rest.p) {
		struct fw_str one = fw_str_split(rest, ',', &rest);

		if (fw_str_eq(one, FW_STR("sqlite")))
			bench("sqlite");
		else if (fw_str_eq(one, FW_STR("postgres")) && FW_HAVE_POSTGRES)
			bench("postgres");
		else
			die(stores ? stores : "", "STORES: sqlite and postgres, where the build has it");
	}
	nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	return any_short ? 1 : 0;
}
