/* SPDX-License-Identifier: ISC */
/*
 * The SQLite store beyond the rows of every engine: how reading grows, bytes, and the full-text
 * index. The references run in the same process on bare SQLite.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

static sqlite3 *open_bare(const char *name, const char *sync, const char *schema)
{
	char path[300], pragma[200];
	sqlite3 *db;

	if (!fw_snprintf(path, sizeof(path), "%s/%s.db", set.folder, name) ||
		!fw_snprintf(pragma, sizeof(pragma),
			"PRAGMA journal_mode=WAL; PRAGMA synchronous=%s; PRAGMA cache_size=-32768;"
			"PRAGMA wal_autocheckpoint=16384",
			sync) ||
		sqlite3_open(path, &db) || sqlite3_exec(db, pragma, NULL, NULL, NULL) ||
		sqlite3_exec(db, schema, NULL, NULL, NULL))
		die("%s: bare SQLite cannot be opened", name);
	return db;
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *q;

	if (sqlite3_prepare_v2(db, sql, -1, &q, NULL))
		die("%s: %s", sql, sqlite3_errmsg(db));
	return q;
}

static double size_of(const char *name, const char *suffix)
{
	struct stat sb;
	char path[300];

	if (!fw_snprintf(path, sizeof(path), "%s/%s.db%s", set.folder, name, suffix) || stat(path, &sb))
		return 0;
	return (double)sb.st_size;
}

/* ---- the schedule ---------------------------------------------------------------------------- */

#define BARE_BATCH 500

/* Due within an hour, in the order of their ids or at random. */
static void fill_bare(const char *name, int64_t feeds, bool shuffled)
{
	sqlite3 *db = open_bare(name, "FULL",
		"CREATE TABLE w (id INTEGER PRIMARY KEY, due INTEGER, fence INTEGER); CREATE INDEX d ON w(due)");
	sqlite3_stmt *in = prepare(db, "INSERT INTO w VALUES (?, ?, 0)");

	sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
	for (int64_t i = 0; i < feeds; i++) {
		sqlite3_bind_int64(in, 1, i);
		sqlite3_bind_int64(
			in, 2, NOW - HOUR + (shuffled ? (int64_t)(mix((uint64_t)i) % HOUR) : i * HOUR / feeds));
		sqlite3_step(in);
		sqlite3_reset(in);
	}
	sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	sqlite3_finalize(in);
	sqlite3_close(db);
}

static void bare_fill(const char *url, int64_t feeds)
{
	(void)url;
	fill_bare("bare", feeds, true);
}

static void bare_put(sqlite3_stmt *q, const sqlite3_int64 *id, const sqlite3_int64 *due, int n, int64_t later)
{
	for (int i = 0; i < n; i++) {
		sqlite3_bind_int64(q, 1, due[i] + later);
		sqlite3_bind_int64(q, 2, id[i]);
		sqlite3_step(q);
		sqlite3_reset(q);
	}
}

/*
 * The lower bound for leasing and finishing a feed: two updates of one narrow indexed row, in
 * batches.
 */
static void bare_work(struct crew *c, int worker, const void *ctx)
{
	sqlite3 *db = open_bare(ctx, "FULL", "");
	sqlite3_stmt *get = prepare(db, "SELECT id, due FROM w ORDER BY due LIMIT ?"),
		     *take = prepare(db, "UPDATE w SET due = ?, fence = fence + 1 WHERE id = ?"),
		     *done = prepare(db, "UPDATE w SET due = ? WHERE id = ? AND fence > 0");
	sqlite3_int64 id[BARE_BATCH], due[BARE_BATCH];

	(void)worker;
	sqlite3_bind_int(get, 1, BARE_BATCH);
	crew_begin(c);
	while (crew_on(c)) {
		int k = 0;

		sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
		for (; sqlite3_step(get) == SQLITE_ROW; k++) {
			id[k] = sqlite3_column_int64(get, 0);
			due[k] = sqlite3_column_int64(get, 1);
		}
		sqlite3_reset(get);
		bare_put(take, id, due, k, 2 * HOUR);
		sqlite3_exec(db, "COMMIT; BEGIN IMMEDIATE", NULL, NULL, NULL);
		bare_put(done, id, due, k, HOUR);
		sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
		crew_done(c, k);
	}
	sqlite3_finalize(get);
	sqlite3_finalize(take);
	sqlite3_finalize(done);
	sqlite3_close(db);
}

static struct work bare_claim(const char *url, int workers, double seconds, int job_ms)
{
	(void)url;
	(void)job_ms;
	return crew_run(workers, seconds, 0, bare_work, "bare");
}

static void forget(const char *name)
{
	static const char *const suffix[] = {"", "-wal", "-shm", "-checkpoint"};
	char path[300];

	for (size_t i = 0; i < FW_N(suffix); i++) {
		if (fw_snprintf(path, sizeof(path), "%s/%s.db%s", set.folder, name, suffix[i]))
			(void)unlink(path);
	}
}

/*
 * Whether reading a feed costs more when there are more feeds. A store of 10,000 alternates with
 * the large one, so that other work on the machine affects both.
 */
static void growth(const char *large)
{
	static struct samples few, few_cpu, many, many_cpu; /* large */
	char url[400];

	store_url(&engine_sqlite, url, sizeof(url), "small");
	make_feeds(url, 10000, true, 1);
	for (int i = 0; i < 20; i++) {
		read_states(url, 500, 10, &few, &few_cpu);
		read_states(large, 500, 10, &many, &many_cpu);
	}
	row_most("state of 500, 10,000 feeds", median(&few), 20, "ms");
	row_most("state of 500, all feeds", median(&many), 20, "ms");
	row_most("state of 500, all feeds against 10,000: CPU, times", median(&many_cpu) / median(&few_cpu), 2, "");
	forget("small");
}

/*
 * In the order of the ids, alternating with the bare form in the same order: what this machine can
 * do.
 */
static void ordered(struct schedule *w)
{
	static struct samples rate, bare; /* large */

	for (int64_t r = 0; r < set.runs; r++) {
		sample(&rate, turn_schedule(w, 1, set.seconds, 0).rate);
		sample(&bare, crew_run(1, set.seconds, 0, bare_work, "bare_ordered").rate);
	}
	row_least("claim + commit, 500 a batch, ids in order", median(&rate), median(&bare), engine_sqlite.claim_least,
		"feeds/s");
	forget("bare_ordered");
}

static void schedule_rows(const char *name, bool shuffled)
{
	char url[400];
	struct schedule w = {.url = url, .feeds = set.feeds, .batch = 500};
	struct fw_store *st;
	double slowest;

	turn_load();
	store_url(&engine_sqlite, url, sizeof(url), name);
	slowest = make_feeds(url, set.feeds, shuffled, 1).slowest;
	if (!shuffled)
		fill_bare("bare_ordered", set.feeds, false);
	turn_measure();
	if (shuffled) {
		growth(url);
	} else {
		row_most("subscribe 10,000 feeds, slowest of all batches", slowest, 1, "s");
		ordered(&w);
	}
	fw_store_close(open_store(url)); /* merges the WAL */
	st = open_store(url);            /* and keeps later writes from being merged */
	w.visits = 0;
	turn_schedule(&w, 1, 0.1, 0);
	row(shuffled ? "bytes of WAL per visit, 500 a batch, ids shuffled" :
		       "bytes of WAL per visit, 500 a batch, ids in order",
		size_of(name, "-wal") / (double)FW_MAX(w.visits, 1), "bytes");
	row("bytes of the file per feed", size_of(name, "") / (double)set.feeds, "bytes");
	fw_store_close(st);
	forget(name);
}

/* ---- entries --------------------------------------------------------------------------------- */

/* The usual form: one INSERT, one transaction. Rows/s. */
static double bare_inserts(const char *url, int64_t n, size_t bytes)
{
	sqlite3 *db = open_bare("bare", "FULL",
		"CREATE TABLE e (id INTEGER PRIMARY KEY, feed INTEGER, key BLOB, guid TEXT, url TEXT,"
		" title TEXT, author TEXT, published INTEGER, content TEXT, UNIQUE (feed, key))");
	sqlite3_stmt *in = prepare(
		db, "INSERT INTO e (feed, key, guid, url, title, author, published, content) VALUES (?,?,?,?,?,?,?,?)");
	struct fw_entry_row e;
	struct fw_arena a;
	double start = now_s();

	(void)url;
	fw_arena_init(&a, 0);
	for (int64_t i = 0; i < n; i++) {
		make_entry(&e, i / 25, i, bytes, &a);
		sqlite3_bind_int64(in, 1, i / 25);
		sqlite3_bind_blob(in, 2, e.key, 16, SQLITE_STATIC);
		sqlite3_bind_text(in, 3, e.guid.p, (int)e.guid.len, SQLITE_STATIC);
		sqlite3_bind_text(in, 4, e.url.p, (int)e.url.len, SQLITE_STATIC);
		sqlite3_bind_text(in, 5, e.title.p, (int)e.title.len, SQLITE_STATIC);
		sqlite3_bind_text(in, 6, e.author.p, (int)e.author.len, SQLITE_STATIC);
		sqlite3_bind_int64(in, 7, e.published_ms);
		sqlite3_bind_text(in, 8, e.content.p, (int)e.content.len, SQLITE_STATIC);
		sqlite3_step(in);
		sqlite3_reset(in);
		fw_arena_reset(&a, 1 << 16);
	}
	start = (double)n / (now_s() - start);
	fw_arena_finish(&a);
	sqlite3_finalize(in);
	sqlite3_close(db);
	forget("bare");
	return start;
}

/*
 * FTS5 with its defaults, with the same contents, 1,000 a transaction. Entries per second of CPU.
 */
static double bare_index(int64_t n, size_t bytes)
{
	sqlite3 *db = open_bare("bare", "NORMAL", "CREATE VIRTUAL TABLE t USING fts5(title, body, content='')");
	sqlite3_stmt *in = prepare(db, "INSERT INTO t (rowid, title, body) VALUES (?, ?, ?)");
	struct fw_entry_row e;
	struct fw_arena a;
	double cpu = thread_cpu_s();

	fw_arena_init(&a, 0);
	for (int64_t i = 0; i < n; i++) {
		if (i % 1000 == 0)
			sqlite3_exec(db, i ? "COMMIT; BEGIN" : "BEGIN", NULL, NULL, NULL);
		make_entry(&e, i / 25 + 1, i % 25, bytes, &a);
		sqlite3_bind_int64(in, 1, i + 1);
		sqlite3_bind_text(in, 2, e.title.p, (int)e.title.len, SQLITE_STATIC);
		sqlite3_bind_text(in, 3, e.content.p, (int)e.content.len, SQLITE_STATIC);
		sqlite3_step(in);
		sqlite3_reset(in);
		fw_arena_reset(&a, 1 << 16);
	}
	sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	cpu = (double)n / (thread_cpu_s() - cpu);
	fw_arena_finish(&a);
	sqlite3_finalize(in);
	sqlite3_close(db);
	forget("bare");
	return cpu;
}

/*
 * Runs until each entry is indexed, then until the index is merged. Entries per second of CPU for
 * the first, and for both.
 */
static void index_all(struct fw_store *st, int64_t n, double *complete, double *merged)
{
	struct fw_prune p = {.now_ms = NOW, .index = true, .more = true};
	double cpu = thread_cpu_s(), looked = 0;
	struct fw_store_stats s;
	struct fw_err err;

	*complete = 0;
	while (p.more) {
		double before;

		if (fw_store_prune(st, &p, &err))
			die_of("prune", &err);
		before = thread_cpu_s();
		if (*complete > 0)
			continue;
		if (fw_store_stats(st, &s, &err))
			die_of("stats", &err);
		looked += thread_cpu_s() - before;
		if (!s.unindexed_n)
			*complete = (double)n / (thread_cpu_s() - cpu - looked);
	}
	*merged = (double)n / (thread_cpu_s() - cpu - looked);
}

static void job(int64_t entries)
{
	int64_t feeds = entries / 25;
	double bare, complete, merged;
	struct fw_store *st;
	struct fill f;
	char url[400];

	row_head("the whole job's entries of 2.4 KB");
	turn_load();
	store_url(&engine_sqlite, url, sizeof(url), "job");
	make_feeds(url, feeds, false, 1);
	turn_measure();
	f = fill_store(url, feeds, 25, 0, 2400, NOW);
	row_least("stored, durable, a second of wall", (double)f.new_n / f.seconds, 0, 62500, "rows/s");
	row_least("stored, durable, a second of CPU", (double)f.new_n / f.cpu, 0, 62500, "rows/s");
	bare = bare_index(FW_MIN(f.new_n, 50000), 2400);
	st = open_store(url);
	index_all(st, f.new_n, &complete, &merged);
	turn_load();
	row_ratio1("full-text index complete, against FTS5 as it comes", complete, bare, 1, "entries/CPU s");
	row_ratio1("  and merged", merged, bare, 0, "entries/CPU s");
	fw_store_close(st);
	row("bytes of the file per entry", size_of("job", "") / (double)f.new_n, "bytes");
	forget("job");
}

/* Another client has an open read: the journal cannot be merged. */
static double ref_scan(const char *url, int64_t n)
{
	sqlite3 *db;
	sqlite3_stmt *q;
	double start;

	if (sqlite3_open(strchr(url, ':') + 1, &db))
		die("%s: %s", url, sqlite3_errmsg(db));
	q = prepare(db, SHORT_COLUMNS);
	start = now_s();
	while (sqlite3_step(q) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(q); i++)
			(void)sqlite3_column_text(q, i);
		n--;
	}
	if (n)
		die("%s: %lld entries are missing", url, (long long)n);
	start = now_s() - start;
	sqlite3_finalize(q);
	sqlite3_close(db);
	return start;
}

static void *foreign_begin(const char *url)
{
	sqlite3 *db;

	if (sqlite3_open(strchr(url, ':') + 1, &db) ||
		sqlite3_exec(db, "BEGIN; SELECT count(*) FROM meta", NULL, NULL, NULL))
		die("%s: a transaction: %s", url, sqlite3_errmsg(db));
	return db;
}

static void foreign_end(void *connection)
{
	sqlite3_close(connection);
}

static void schedule_more(const struct engine *e, struct schedule *w)
{
	(void)e;
	(void)w;
	schedule_rows("ordered", false);
	schedule_rows("shuffled", true);
}

static void more(const struct engine *e)
{
	(void)e;
	if (wanted("job"))
		job(set.entries);
}

const struct engine engine_sqlite = {
	.name = "sqlite",
	.workers = 1,
	.claim_least = 150000,
	.entry_goal = 20,
	.classic = "two bare updates of one narrow row, 500 a batch",
	.large = true,
	.ref_fill = bare_fill,
	.ref_claim = bare_claim,
	.ref_entries = bare_inserts,
	.ref_scan = ref_scan,
	.foreign_begin = foreign_begin,
	.foreign_end = foreign_end,
	.schedule_more = schedule_more,
	.more = more,
};
