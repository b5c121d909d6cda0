/* SPDX-License-Identifier: ISC */
/*
 * Shared by the store benchmarks. A row is: name, ours, reference, ratio, goal, unit, and ok, short
 * or - as the last word. Ours and the reference alternate within one run; each figure is the median
 * of several.
 *
 *   common.c    rows, generated feeds and entries
 *   crew.c      concurrent processes, and their and the servers' use of the machine
 *   load.c      stores and feeds, for each engine
 *   shards.c    a worker on src/store/driver.h, for each engine
 *   schedule.c  rows of claims, commits and reads
 *   entries.c   rows of entries and events
 *   search.c    rows of searches
 *   sqlite.c    rows of SQLite alone
 *   ref_*.c     the references: each engine's plain client library
 */
#ifndef BENCH_STORE_H
#define BENCH_STORE_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"
#include "feedwheel/store.h"

#define NOW INT64_C(1763730000000)
#define HOUR FW_HOUR_MS
#define SAMPLES_MAX 4096
#define WORKERS_MAX 64

/* ---- common.c -------------------------------------------------------------------------------- */

/* of the command line */
struct settings {
	int64_t feeds, feeds_large, entries, entries_large, minutes, runs;
	double seconds;
	const char *only;  /* only this part; NULL: all */
	const char *turns; /* see main.c; NULL: none */
	char folder[200];
};
extern struct settings set;
extern int short_n; /* the number of rows that missed their goal */

bool wanted(const char *part);
_Noreturn FW_PRINTF(1, 2) void die(const char *format, ...);
_Noreturn void die_of(const char *what, const struct fw_err *err);

/*
 * For other work on the machine that alternates with ours: the following only loads the machine, or
 * measures and needs it alone.
 */
void turn_load(void);
void turn_pause(void); /* between pieces of a long load: a waiting measurement goes first */
void turn_measure(void);

double now_s(void);
uint64_t mix(uint64_t x);

struct samples {
	double v[SAMPLES_MAX];
	size_t n;
};
void sample(struct samples *s, double v); /* samples beyond SAMPLES_MAX are ignored */
double median(const struct samples *s);

void row_head(const char *words);
/* A figure without a goal. */
void row(const char *name, double ours, const char *unit);
/* At least (at most) `goal`. A reference is shown beside it; 0: none. */
void row_least(const char *name, double ours, double reference, double goal, const char *unit);
void row_most(const char *name, double ours, double goal, const char *unit);
/* At most `goal` times a reference. */
void row_at_most(const char *name, double ours, double reference, double goal, const char *unit);
/* What a search that no index serves has to read. */
#define SHORT_COLUMNS                                                                                          \
	"SELECT id, feed_id, seen_ms, published_ms, updated_ms, content_type, guid, url, title, author, extra" \
	" FROM entries ORDER BY id"
/* Against a reference: the median of the rounds' ratios is at least `goal`; 0: shown only. */
void row_ratio(
	const char *name, const struct samples *ours, const struct samples *reference, double goal, const char *unit);
/* The same for single figures. */
void row_ratio1(const char *name, double ours, double reference, double goal, const char *unit);

void make_prose(void);
/* Entry n of a feed: about `bytes` of HTML prose as content; the same each time. */
void make_entry(struct fw_entry_row *e, int64_t feed, int64_t n, size_t bytes, struct fw_arena *a);

/* ---- crew.c ---------------------------------------------------------------------------------- */

struct crew; /* in memory shared by its processes */

/* the result */
struct work {
	int64_t done;
	double seconds, rate;   /* units of work a second */
	double cpu, server_cpu; /* CPU seconds of the workers and of our servers */
	double slowest;         /* seconds of the longest call, from crew_slowest() */
	double first, last;     /* rates of the first and the last of `parts` equal parts */
};

typedef void crew_fn(struct crew *c, int worker, const void *ctx);
/*
 * Forks n processes that run fn. Each prepares itself, calls crew_begin(), works as long as
 * crew_on() is true and reports by crew_done(). parts: see struct work; 0: none.
 */
struct work crew_run(int n, double seconds, int parts, crew_fn *fn, const void *ctx);
void crew_begin(struct crew *c);
bool crew_on(const struct crew *c);
void crew_done(struct crew *c, int64_t n);
void crew_slowest(struct crew *c, int64_t us);
int64_t crew_total(const struct crew *c); /* of all processes so far */
/* CPU seconds of all running descendants of this process: of the servers, if no crew runs. */
double servers_cpu_s(void);
double thread_cpu_s(void);

/* ---- engines --------------------------------------------------------------------------------- */

struct schedule;

struct engine {
	const char *name;              /* as in tests/store/servers.h */
	const char *classic;           /* the name of the reference */
	int workers;                   /* the number of processes of the usual load */
	double claim_goal, entry_goal; /* times the reference; 0: none */
	double claim_least;            /* feeds/s; 0: none */
	bool large;                    /* it has a goal for --feeds-large */
	bool holds;                    /* the reference holds a connection and a transaction during each job */
	/* the reference; all with the URL of a store on the server */
	void (*ref_fill)(const char *url, int64_t feeds);
	struct work (*ref_claim)(const char *url, int workers, double seconds, int job_ms);
	double (*ref_entries)(const char *url, int64_t n, size_t bytes); /* one insert a transaction; rows/s */
	/* Reads the short columns of n entries in a bare client: seconds. NULL: no row */
	double (*ref_scan)(const char *url, int64_t n);
	/* Bytes of log written so far; only grows. NULL: unknown. */
	double (*log_bytes)(const char *url);
	double (*disk_bytes)(const char *url); /* of the store's files, or in memory; NULL: as the store reports */
	/* Another client's connection that keeps a transaction open, and its end. */
	void *(*foreign_begin)(const char *url);
	void (*foreign_end)(void *connection);
	/*
	 * Rows of this engine alone; NULL: none. schedule_more() gets the measured schedule, still
	 * filled.
	 */
	void (*schedule_more)(const struct engine *e, struct schedule *w);
	void (*more)(const struct engine *e);
};

extern const struct engine engine_sqlite, engine_postgres, engine_mysql, engine_redis;

/* The URL of a store on the engine that runs. */
void store_url(const struct engine *e, char *out, size_t cap, const char *name);

/* ---- load.c ---------------------------------------------------------------------------------- */

struct fw_store *open_store(const char *url);
double store_bytes(const struct engine *e, const char *url);
struct subscribed {
	double rate, slowest; /* feeds/s; seconds of the slowest 10,000 */
};
/*
 * n feeds, each on a host of its own, due in the order of their ids or at random within an hour,
 * added by this many processes.
 */
struct subscribed make_feeds(const char *url, int64_t n, bool shuffled, int processes);

/* ---- shards.c -------------------------------------------------------------------------------- */

struct schedule {
	const char *url;
	int64_t feeds;
	size_t batch;
	bool by_shard;  /* a batch has one shard's feeds; otherwise the earliest of all the worker's shards */
	int workers;    /* of the round */
	int64_t visits; /* so far, in all rounds */
};
/*
 * Workers claim and commit unchanged visits. A visit moves a feed's due time by six to twelve
 * minutes: it stays in the past throughout.
 */
struct work turn_schedule(struct schedule *w, int workers, double seconds, int parts);
/* Reads all that is due, in this process: feeds a second. */
void read_due(const char *url, struct samples *rate);
/* Reads the state of `batch` feeds, one batch after the other: ms. */
void read_states(const char *url, size_t batch, int times, struct samples *took, struct samples *took_cpu);

struct fill {
	double seconds, cpu;
	int64_t new_n;
};
/*
 * Visits `feeds` of the feeds that are due at `now`, with `per_feed` entries each, numbered from
 * `from`; commits of about 2,500 entries.
 */
struct fill fill_store(const char *url, int64_t feeds, int per_feed, int64_t from, size_t bytes, int64_t now);

/* ---- rows of every engine -------------------------------------------------------------------- */

void bench_schedule(const struct engine *e);
void bench_entries(const struct engine *e);
void bench_events(const struct engine *e);
void bench_search(const struct engine *e);
/* One row: new entries against inserts one a transaction, on a store of this name. */
void entries_row(const struct engine *e, const char *name, double goal);

#endif
