/* SPDX-License-Identifier: ISC */
/*
 * What the storage room costs. One row per figure: name, ours, reference, ratio, goal, ok or short. References run in the same
 * process against bare SQLite, so that ratios hold on any machine.
 *
 *	store_bench [--feeds N] [--entries N] [--only NAME] [--keep]
 *
 * Everything lies under TMPDIR (/tmp) and is removed. With the default million feeds it takes about two minutes.
 */
#include <ftw.h>
#include <getopt.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"
#include "feedwheel/store.h"

#define NOW INT64_C(1763730000000)
#define HOUR FW_HOUR_MS

static char folder[200];
static const char *only;

static void die(const char *what, const struct fw_err *err)
{
	fprintf(stderr, "store_bench: %s: %s\n", what, err->text);
	exit(1);
}

static double now_s(void)
{
	return (double)fw_mono_us() / 1e6;
}

static double cpu_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static double thread_cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* goal: ours must be at least (or, below: at most) this; 0: none. */
static void row(const char *name, double ours, double reference, double goal, bool below, const char *unit)
{
	bool ok = goal == 0 || (below ? ours <= goal : ours >= goal);

	printf("%-52s %12.1f %12.1f %8.2f %s%-12.6g %-10s %s\n", name, ours, reference, reference > 0 ? ours / reference : 0,
		goal == 0 ? " " : below ? "<" : ">", goal, unit, goal == 0 ? "-" : ok ? "ok" : "short");
	fflush(stdout);
}

static bool wanted(const char *name)
{
	return !only || strcmp(only, name) == 0;
}

static uint64_t mix(uint64_t x)
{
	return fw_hash64(&x, sizeof(x));
}

static struct fw_store *open_store(const char *name, bool relaxed)
{
	struct fw_store_config c = {.flags = FW_STORE_CREATE, .relaxed = relaxed};
	struct fw_store *st;
	struct fw_err err;
	char url[300];

	if (!fw_snprintf(url, sizeof(url), "sqlite:%s/%s.db", folder, name))
		exit(1);
	c.url = url;
	if (fw_store_open(&c, &st, &err))
		die("open", &err);
	return st;
}

static sqlite3 *open_bare(const char *name, const char *sync, const char *schema)
{
	char path[300], pragma[200];
	sqlite3 *db;

	if (!fw_snprintf(path, sizeof(path), "%s/%s.db", folder, name) ||
	    !fw_snprintf(pragma, sizeof(pragma), "PRAGMA journal_mode=WAL; PRAGMA synchronous=%s; PRAGMA cache_size=-32768;"
			"PRAGMA wal_autocheckpoint=16384", sync) ||
	    sqlite3_open(path, &db) || sqlite3_exec(db, pragma, NULL, NULL, NULL) || sqlite3_exec(db, schema, NULL, NULL, NULL))
		exit(1);
	return db;
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *q;

	if (sqlite3_prepare_v2(db, sql, -1, &q, NULL)) {
		fprintf(stderr, "store_bench: %s\n", sqlite3_errmsg(db));
		exit(1);
	}
	return q;
}

static double size_of(const char *name, const char *suffix)
{
	struct stat sb;
	char path[300];

	if (!fw_snprintf(path, sizeof(path), "%s/%s.db%s", folder, name, suffix) || stat(path, &sb))
		return 0;
	return (double)sb.st_size;
}

/* ---- the wheel ------------------------------------------------------------------------------------------------------------ */

/* n feeds, each on a host of its own; due in the order of their ids, or at random within an hour. Returns seconds per 10,000. */
static double make_feeds(struct fw_store *st, int64_t n, bool shuffled)
{
	struct fw_feed_new *f = calloc(10000, sizeof(*f));
	double start = now_s(), worst = 0;
	struct fw_arena a;
	struct fw_err err;

	fw_arena_init(&a, 0);
	for (int64_t at = 0; at < n;) {
		size_t k = (size_t)FW_MIN(n - at, 10000);

		for (size_t i = 0; i < k; i++, at++) {
			f[i] = (struct fw_feed_new){.url = fw_str(fw_arena_printf(&a, "https://www.host-%lld.example/feed/%lld.xml",
				(long long)at, (long long)at)), .due_at_ms = NOW - HOUR + (shuffled ? (int64_t)(mix((uint64_t)at) % HOUR) :
				at * HOUR / n)};
		}
		start = now_s();
		if (fw_store_subscribe(st, f, k, &err))
			die("subscribe", &err);
		worst = FW_MAX(worst, now_s() - start);
		fw_arena_reset(&a, 1 << 20);
	}
	fw_arena_finish(&a);
	free(f);
	return worst;
}

#define CLAIMS_MAX 4096

struct times { /* of single calls, ms */
	double v[CLAIMS_MAX];
	size_t n;
};

static void time_add(struct times *t, double ms)
{
	if (t->n < CLAIMS_MAX)
		t->v[t->n++] = ms;
}

static int by_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(struct times *t)
{
	qsort(t->v, t->n, sizeof(*t->v), by_double);
	return t->n ? t->v[t->n / 2] : 0;
}

struct turn { /* what a number of visits took */
	double seconds, cpu;
	struct times claim, claim_cpu;
	int64_t visits, commits;
};

/* Claim and commit, nothing changed, until `visits` more are done or nothing is due; added to t. */
static void turn_wheel(struct fw_store *st, size_t batch, int64_t visits, int64_t now, struct turn *t)
{
	struct fw_lease *l = calloc(batch, sizeof(*l));
	struct fw_feed *f = calloc(batch, sizeof(*f));
	struct fw_outcome *o = calloc(batch, sizeof(*o));
	struct fw_claim_got got;
	struct fw_arena a;
	struct fw_err err;
	double cpu = cpu_s(), start = now_s();
	int64_t end = t->visits + visits;

	fw_arena_init(&a, 0);
	while (t->visits < end) {
		struct fw_claim_ask ask = {.worker = "bench/1/0", .now_ms = now, .lease_ms = 60000, .max = batch, .host_max = 4,
			.host_gap_ms = 100};
		double before = now_s(), before_cpu = thread_cpu_s();

		if (fw_store_claim(st, &ask, &a, l, &got, &err))
			die("claim", &err);
		time_add(&t->claim_cpu, (thread_cpu_s() - before_cpu) * 1e3);
		time_add(&t->claim, (now_s() - before) * 1e3);
		if (!got.n)
			break;
		for (size_t i = 0; i < got.n; i++) {
			f[i] = l[i].feed;
			f[i].last_visit_ms = f[i].last_ok_ms = now;
			f[i].due_at_ms = now + HOUR + (int64_t)(mix((uint64_t)f[i].id) % (HOUR / 10));
			f[i].last_kind = FW_VISIT_NOT_MODIFIED;
			f[i].http_status = 304;
			f[i].expect_us = 60000;
			f[i].why = FW_STR("learned 60 min; jitter +3 min");
			o[i] = (struct fw_outcome){.feed_id = f[i].id, .fence = l[i].fence, .feed = &f[i], .visit = {.run_id = 1, .at_ms = now,
				.kind = FW_VISIT_NOT_MODIFIED, .http_status = 304, .slot = (int)i, .lateness_ms = 1000, .dns_us = 500,
				.connect_us = 20000, .first_byte_us = 55000, .total_us = 60000, .wire_bytes = 300}};
		}
		if (fw_store_commit(st, &(struct fw_commit){.now_ms = now, .outcome = o, .n = got.n}, &err))
			die("commit", &err);
		for (size_t i = 0; i < got.n; i++) {
			if (o[i].rc)
				die("outcome", &err);
		}
		t->visits += (int64_t)got.n;
		t->commits += 2;
		fw_arena_reset(&a, 1 << 18);
	}
	t->seconds += now_s() - start;
	t->cpu += cpu_s() - cpu;
	fw_arena_finish(&a);
	free(l);
	free(f);
	free(o);
}

/* The least that leasing and finishing a feed can cost: two updates of one narrow indexed row, in batches. */
static double bare_wheel(int64_t feeds, int batch, int64_t visits, bool shuffled)
{
	sqlite3 *db = open_bare("bare", "FULL", "CREATE TABLE w (id INTEGER PRIMARY KEY, due INTEGER, lease INTEGER, fence INTEGER);"
		"CREATE INDEX d ON w(due)");
	sqlite3_stmt *in = prepare(db, "INSERT INTO w VALUES (?, ?, 0, 0)"), *get = prepare(db, "SELECT id FROM w WHERE due <= ? ORDER BY due LIMIT ?"),
		*lend = prepare(db, "UPDATE w SET due = ?, fence = fence + 1 WHERE id = ?"),
		*done = prepare(db, "UPDATE w SET due = ? WHERE id = ? AND fence > 0");
	sqlite3_int64 *id = calloc((size_t)batch, sizeof(*id));
	double start;
	int64_t n = 0;

	sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
	for (int64_t i = 0; i < feeds; i++) {
		sqlite3_bind_int64(in, 1, i);
		sqlite3_bind_int64(in, 2, NOW - HOUR + (shuffled ? (int64_t)(mix((uint64_t)i) % HOUR) : i * HOUR / feeds));
		sqlite3_step(in);
		sqlite3_reset(in);
	}
	sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	start = now_s();
	while (n < visits) {
		int k = 0;

		sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
		sqlite3_bind_int64(get, 1, NOW);
		sqlite3_bind_int(get, 2, batch);
		while (sqlite3_step(get) == SQLITE_ROW)
			id[k++] = sqlite3_column_int64(get, 0);
		sqlite3_reset(get);
		for (int i = 0; i < k; i++) {
			sqlite3_bind_int64(lend, 1, NOW + 60000);
			sqlite3_bind_int64(lend, 2, id[i]);
			sqlite3_step(lend);
			sqlite3_reset(lend);
		}
		sqlite3_exec(db, "COMMIT; BEGIN IMMEDIATE", NULL, NULL, NULL);
		for (int i = 0; i < k; i++) {
			sqlite3_bind_int64(done, 1, NOW + HOUR + (int64_t)(mix((uint64_t)id[i]) % (HOUR / 10)));
			sqlite3_bind_int64(done, 2, id[i]);
			sqlite3_step(done);
			sqlite3_reset(done);
		}
		sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
		n += k;
		if (!k)
			break;
	}
	start = (double)n / (now_s() - start);
	sqlite3_finalize(in);
	sqlite3_finalize(get);
	sqlite3_finalize(lend);
	sqlite3_finalize(done);
	sqlite3_close(db);
	free(id);
	return start;
}

static void forget(const char *name)
{
	static const char *const suffix[] = {"", "-wal", "-shm"};
	char path[300];

	for (size_t i = 0; i < FW_N(suffix); i++) {
		if (fw_snprintf(path, sizeof(path), "%s/%s.db%s", folder, name, suffix[i]))
			(void)unlink(path);
	}
}

/*
 * Does a claim cost more when there are more feeds? A store of 10,000 takes turns with the large one, a few claims each, so that
 * what else the machine does meanwhile hits both.
 */
static void bench_growth(struct fw_store *large)
{
	struct fw_store *small = open_store("small", false);
	static struct turn few, many; /* static: large */

	make_feeds(small, 10000, true);
	for (int i = 0; i < 20; i++) {
		turn_wheel(small, 500, 5000, NOW + i * HOUR / 2, &few);
		turn_wheel(large, 500, 5000, NOW, &many);
	}
	row("claim of 500, 10,000 feeds", median(&few.claim), 0, 20, true, "ms");
	row("claim of 500, all feeds", median(&many.claim), 0, 20, true, "ms");
	row("claim of 500, all feeds, against 10,000: CPU", median(&many.claim_cpu), median(&few.claim_cpu),
		median(&few.claim_cpu) * 2, true, "ms");
	fw_store_close(small);
	forget("small");
}

static void bench_wheel(int64_t feeds)
{
	static const size_t batches[] = {100, 500};
	double per_10k, wal;
	struct fw_store *st;
	static struct turn t; /* static: large */
	char name[80];

	for (int shuffled = 0; shuffled < 2; shuffled++) {
		st = open_store("wheel", false);
		per_10k = make_feeds(st, feeds, shuffled);
		if (!shuffled)
			row("subscribe 10,000 feeds, slowest of all batches", per_10k, 0, 1, true, "s");
		fw_store_close(st);
		st = open_store("wheel", false); /* as another process would find it */
		for (size_t i = 0; i < FW_N(batches); i++) {
			int64_t visits = FW_MIN(feeds / 3, 200000);

			t = (struct turn){0};
			turn_wheel(st, batches[i], visits, NOW, &t);
			if (!fw_snprintf(name, sizeof(name), "claim + commit, %zu a batch, ids %s", batches[i], shuffled ? "shuffled" : "in order"))
				exit(1);
			row(name, (double)t.visits / t.seconds, bare_wheel(feeds, (int)batches[i], visits, shuffled), shuffled ? 0 : 150000, false,
				"feeds/s");
			forget("bare");
			row("  CPU per visit", t.cpu * 1e6 / (double)t.visits, 0, 0, true, "us");
			row("  transactions per 1,000 visits", (double)t.commits * 1e3 / (double)t.visits, 0, 0, true, "");
		}
		if (shuffled)
			bench_growth(st);
		fw_store_close(st); /* folds the WAL in */
		st = open_store("wheel", false);
		t = (struct turn){0};
		turn_wheel(st, 500, 2000, NOW, &t);
		wal = size_of("wheel", "-wal");
		row("  bytes of WAL per visit, 500 a batch", wal / (double)FW_MAX(t.visits, 1), 0, 0, true, "bytes");
		row("  bytes of the file per feed", size_of("wheel", "") / (double)feeds, 0, 0, true, "bytes");
		fw_store_close(st);
		forget("wheel");
	}
}

/* ---- entries -------------------------------------------------------------------------------------------------------------- */

/* Pages of made-up prose in HTML. Word frequencies follow Zipf's law over some 30,000 words, as in what blogs publish. */
static struct fw_buf prose;

static void make_prose(void)
{
	static const char *const tags[] = {"<p>", "</p>\n", "<b>", "</b>", "<a href=\"https://www.example.org/2026/11/", "\">", "</a>"};

	for (uint64_t i = 0; prose.len < (size_t)8 << 20; i++) {
		uint64_t r = mix(i), rank = (UINT64_C(1) << (r >> 32) % 15) + (r >> 40) % (UINT64_C(1) << (r >> 32) % 15), w = mix(rank);

		if (r % 13 == 0)
			fw_buf_adds(&prose, tags[(r >> 8) % FW_N(tags)]);
		for (unsigned k = 0; k < 2 + w % 9; k++)
			fw_buf_addc(&prose, "etaoinshrdlucmfwypvbgkjqxz"[(w >> (4 + k * 5)) % 32 % 26]);
		fw_buf_addc(&prose, ' ');
	}
}

static void make_entry(struct fw_entry_row *e, int64_t feed, int64_t n, size_t bytes, struct fw_arena *a)
{
	struct fw_hash128 h = fw_hash128((int64_t[]){feed, n}, 16);
	size_t len = bytes / 2 + mix((uint64_t)(feed * 1000 + n)) % bytes;

	*e = (struct fw_entry_row){.hash = mix((uint64_t)n), .content_type = FW_TEXT_HTML, .updated_ms = FW_NO_DATE};
	memcpy(e->key, h.b, sizeof(e->key));
	e->published_ms = NOW - (int64_t)(mix((uint64_t)(feed + n)) % 1000) * HOUR;
	e->guid = fw_str(fw_arena_printf(a, "https://www.host-%lld.example/2026/11/an-article-%lld", (long long)feed, (long long)n));
	e->url = e->guid;
	e->title = fw_str_sub(fw_buf_str(&prose), (size_t)mix((uint64_t)n) % 4000000, (size_t)mix((uint64_t)n) % 4000000 + 50);
	e->author = FW_STR("A. Writer");
	e->content = fw_str_sub(fw_buf_str(&prose), (size_t)(mix((uint64_t)(feed * 7919 + n)) % 7000000), SIZE_MAX);
	e->content.len = len;
}

struct fill {
	double seconds, cpu;
	int64_t new_n;
};

/*
 * Visit each of `feeds` feeds once with `per_feed` entries, from number `from` on; commits of about 2,500 entries or 8 MB.
 * upkeep: what a worker would do between commits, counted separately.
 */
static struct fill fill_store(struct fw_store *st, int64_t feeds, int per_feed, int64_t from, size_t bytes, int64_t now)
{
	size_t batch = (size_t)FW_MAX(FW_MIN(2500 / per_feed, feeds), 1), n;
	struct fw_lease *l = calloc(batch, sizeof(*l));
	struct fw_feed *f = calloc(batch, sizeof(*f));
	struct fw_outcome *o = calloc(batch, sizeof(*o));
	struct fw_entry_row *e = calloc(batch * (size_t)per_feed, sizeof(*e));
	struct fill r = {0};
	struct fw_claim_got got;
	struct fw_arena a;
	struct fw_err err;

	fw_arena_init(&a, 0);
	for (;;) {
		struct fw_claim_ask ask = {.worker = "bench/1/0", .now_ms = now, .lease_ms = 60000, .max = batch};
		double start, cpu;

		if (fw_store_claim(st, &ask, &a, l, &got, &err))
			die("claim", &err);
		n = got.n;
		if (!n)
			break;
		for (size_t i = 0; i < n; i++) {
			f[i] = l[i].feed;
			f[i].due_at_ms = now + HOUR;
			o[i] = (struct fw_outcome){.feed_id = f[i].id, .fence = l[i].fence, .feed = &f[i], .groups = FW_GROUP_VALIDATORS |
				FW_GROUP_META | FW_GROUP_RHYTHM, .entries = e + i * (size_t)per_feed, .entry_n = (size_t)per_feed,
				.visit = {.at_ms = now, .kind = FW_VISIT_OK, .http_status = 200}};
			for (int k = 0; k < per_feed; k++)
				make_entry(&e[i * (size_t)per_feed + (size_t)k], f[i].id, from + k, bytes, &a);
		}
		start = now_s();
		cpu = cpu_s();
		if (fw_store_commit(st, &(struct fw_commit){.now_ms = now, .outcome = o, .n = n}, &err))
			die("commit", &err);
		r.seconds += now_s() - start;
		r.cpu += cpu_s() - cpu;
		for (size_t i = 0; i < n; i++)
			r.new_n += o[i].visit.new_n;
		fw_arena_reset(&a, 1 << 18);
	}
	fw_arena_finish(&a);
	free(l);
	free(f);
	free(o);
	free(e);
	return r;
}

/* The classic: one INSERT, one transaction. Rows/s. */
static double bare_inserts(int64_t n, size_t bytes)
{
	sqlite3 *db = open_bare("bare", "FULL", "CREATE TABLE e (id INTEGER PRIMARY KEY, feed INTEGER, key BLOB, guid TEXT, url TEXT,"
		" title TEXT, author TEXT, published INTEGER, content TEXT, UNIQUE (feed, key))");
	sqlite3_stmt *in = prepare(db, "INSERT INTO e (feed, key, guid, url, title, author, published, content) VALUES (?,?,?,?,?,?,?,?)");
	struct fw_entry_row e;
	struct fw_arena a;
	double start = now_s();

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

static void bench_entries(int64_t entries)
{
	struct fw_store *st = open_store("entries", false);
	double one = bare_inserts(3000, 1000), empty, full;
	int64_t feeds = entries / 25;
	struct fill f;

	make_feeds(st, feeds, false);
	f = fill_store(st, feeds, 25, 0, 1000, NOW);
	empty = (double)f.new_n / f.seconds;
	row("new entries of 1 KB, in bulk", empty, one, one * 20, false, "rows/s");
	f = fill_store(st, feeds, 25, 0, 1000, NOW + HOUR);
	row("known entries sent again", (double)(feeds * 25) / f.seconds, empty, empty * 1.5, false, "rows/s");
	for (int i = 1; i < 4; i++)
		f = fill_store(st, feeds, 25, 25 * i, 1000, NOW + HOUR * (i + 1));
	full = (double)f.new_n / f.seconds;
	row("new entries into a store that holds 4 times as many", full, empty, empty * 0.5, false, "rows/s");
	fw_store_close(st);
	forget("entries");
}

/* FTS5 with its own defaults, fed the same contents as they are, 1,000 a transaction. Entries per second of CPU. */
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

/* Until every entry is in the index, then until it is merged. Entries per second of CPU to the first, and all in all. */
static void index_all(struct fw_store *st, int64_t n, double *complete, double *merged)
{
	double cpu = thread_cpu_s(), looked = 0;
	struct fw_store_stats s;
	struct fw_err err;
	bool more = true;

	*complete = 0;
	while (more) {
		double before;

		if (fw_store_upkeep(st, NOW, &more, &err))
			die("upkeep", &err);
		before = thread_cpu_s();
		if (*complete > 0)
			continue;
		if (fw_store_stats(st, NOW, &s, &err))
			die("stats", &err);
		looked += thread_cpu_s() - before;
		if (!s.unindexed_n)
			*complete = (double)n / (thread_cpu_s() - cpu - looked);
	}
	*merged = (double)n / (thread_cpu_s() - cpu - looked);
}

static void bench_job(int64_t entries)
{
	struct fw_store *st = open_store("job", false);
	int64_t feeds = entries / 25;
	double bare, complete, merged;
	struct fill f;

	make_feeds(st, feeds, false);
	f = fill_store(st, feeds, 25, 0, 2400, NOW);
	row("the whole job's entries of 2.4 KB, durable: wall", f.seconds, 0, 4, true, "s");
	row("  CPU of the storing thread", f.cpu, 0, 4, true, "s");
	row("  entries", (double)f.new_n, 0, 0, true, "");
	bare = bare_index(FW_MIN(f.new_n, 50000), 2400);
	index_all(st, f.new_n, &complete, &merged);
	row("full-text index complete, against FTS5 as it comes", complete, bare, bare, false, "entries/CPU s");
	row("  and merged", merged, bare, 0, false, "entries/CPU s");
	fw_store_close(st);
	row("  bytes of the file per entry", size_of("job", "") / (double)f.new_n, 0, 0, true, "bytes");
	forget("job");
}

/* ---- main ------------------------------------------------------------------------------------------------------------------ */

static int remove_one(const char *path, const struct stat *sb, int type, struct FTW *f)
{
	(void)sb;
	(void)type;
	(void)f;
	return remove(path);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"feeds", 1, NULL, 'f'}, {"entries", 1, NULL, 'e'}, {"only", 1, NULL, 'o'},
		{"keep", 0, NULL, 'k'}, {NULL, 0, NULL, 0}};
	int64_t feeds = 1000000, entries = 250000;
	const char *tmp = getenv("TMPDIR");
	bool keep = false;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'k')
			keep = true;
		else if (c == 'o')
			only = optarg;
		else if (c == '?' || !fw_str_int(fw_str(optarg), c == 'f' ? &feeds : &entries) || feeds < 10000 || entries < 2500) {
			fprintf(stderr, "usage: store_bench [--feeds N>=10000] [--entries N>=2500] [--only wheel|entries|job] [--keep]\n");
			return 2;
		}
	}
	if (!fw_snprintf(folder, sizeof(folder), "%s/feedwheel-bench-XXXXXX", tmp ? tmp : "/tmp") || !mkdtemp(folder)) {
		perror("store_bench: scratch folder");
		return 1;
	}
	make_prose();
	printf("%-52s %12s %12s %8s %-13s %-10s\n", "name", "ours", "reference", "ratio", " goal", "unit");
	if (wanted("wheel"))
		bench_wheel(feeds);
	if (wanted("entries"))
		bench_entries(entries);
	if (wanted("job"))
		bench_job(entries);
	fw_buf_finish(&prose);
	if (!keep)
		nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	return 0;
}
