/* SPDX-License-Identifier: ISC */
/*
 * What the benchmarks of the stores share. A row is: name, ours, reference, ratio, goal, unit, and
 * ok, short or - as its last word. Ours and the reference take turns in one run; each figure is the
 * median of several.
 *
 *	common.c    rows, made-up feeds and entries
 *	crew.c      processes that work at once, and what they and the servers take
 *	load.c      stores and feeds; shards.c: a worker over src/store/driver.h: the same for every engine
 *	wheel.c     rows of claim + commit and of reading; entries.c: rows of entries and events
 *	sqlite.c    what only SQLite has
 *	ref_*.c     what each engine's plain client library does without us
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

struct settings { /* of the command line */
	int64_t feeds, feeds_large, entries, entries_large, minutes, runs;
	double seconds;
	const char *only;  /* this part alone; NULL: all */
	const char *turns; /* see main.c; NULL: none */
	char folder[200];
};
extern struct settings set;
extern int short_n; /* rows whose goal was missed */

bool wanted(const char *part);
_Noreturn FW_PRINTF(1, 2) void die(const char *format, ...);
_Noreturn void die_of(const char *what, const struct fw_err *err);

/* Other work on the machine takes turns with us: what follows only loads it, or measures and wants it for itself. */
void turn_load(void);
void turn_pause(void); /* between pieces of a long load: who waits to measure goes first */
void turn_measure(void);

double now_s(void);
uint64_t mix(uint64_t x);

struct samples {
	double v[SAMPLES_MAX];
	size_t n;
};
void sample(struct samples *s, double v); /* those beyond SAMPLES_MAX are left out */
double median(const struct samples *s);

void row_head(const char *words);
/* A figure without a goal. */
void row(const char *name, double ours, const char *unit);
/* At least (at most) `goal`; a reference is shown beside it, 0: none. */
void row_least(const char *name, double ours, double reference, double goal, const char *unit);
void row_most(const char *name, double ours, double goal, const char *unit);
/* Against a reference: the median of the ratios of each turn is at least `goal`; 0: shown only. */
void row_ratio(const char *name, const struct samples *ours, const struct samples *reference, double goal, const char *unit);
/* The same of single figures. */
void row_ratio1(const char *name, double ours, double reference, double goal, const char *unit);

void make_prose(void);
/* Entry n of a feed: about `bytes` of HTML prose as content; the same each time. */
void make_entry(struct fw_entry_row *e, int64_t feed, int64_t n, size_t bytes, struct fw_arena *a);

/* ---- crew.c ---------------------------------------------------------------------------------- */

struct crew; /* in memory that its processes share */

struct work { /* what took place */
	int64_t done;
	double seconds, rate;          /* done a second */
	double cpu, server_cpu;        /* seconds of the workers and of our servers */
	double slowest;                /* seconds of the longest call told by crew_slowest */
	double first, last;            /* rates of the first and the last of `parts` equal parts */
};

typedef void crew_fn(struct crew *c, int worker, const void *ctx);
/*
 * Fork n processes that run fn. Each makes itself ready, calls crew_begin, works as long as crew_on
 * says so and reports by crew_done. parts: see struct work; 0: none.
 */
struct work crew_run(int n, double seconds, int parts, crew_fn *fn, const void *ctx);
void crew_begin(struct crew *c);
bool crew_on(const struct crew *c);
void crew_done(struct crew *c, int64_t n);
void crew_slowest(struct crew *c, int64_t us);
int64_t crew_total(const struct crew *c); /* all processes' so far */
/* CPU seconds of all processes below this one that run now: the servers, when no crew is there. */
double servers_cpu_s(void);
double thread_cpu_s(void);

/* ---- engines --------------------------------------------------------------------------------- */

struct schedule;

struct engine {
	const char *name;              /* as in tests/store/servers.h */
	const char *classic;           /* what the reference is, in words */
	int workers;                   /* processes of the usual load */
	double claim_goal, entry_goal; /* times the reference; 0: none */
	double claim_least;            /* feeds/s; 0: none */
	bool large;                    /* has a goal for --feeds-large */
	bool holds;                    /* the reference keeps a connection and a transaction through each job */
	/* the classic form; all by the URL of a store on the server */
	void (*ref_fill)(const char *url, int64_t feeds);
	struct work (*ref_claim)(const char *url, int workers, double seconds, int job_ms);
	double (*ref_entries)(const char *url, int64_t n, size_t bytes); /* one insert a transaction; rows/s */
	/* Bytes of log written so far; rising. NULL: not told. */
	double (*log_bytes)(const char *url);
	double (*disk_bytes)(const char *url); /* of the store's files, or in memory; NULL: what the store says of itself */
	/* A connection of somebody else that keeps a transaction open, and its end. */
	void *(*foreign_begin)(const char *url);
	void (*foreign_end)(void *connection);
	/* Rows of this engine alone; NULL: none. schedule_more has the one that was measured, still filled. */
	void (*schedule_more)(const struct engine *e, struct schedule *w);
	void (*more)(const struct engine *e);
};

extern const struct engine engine_sqlite, engine_postgres, engine_mysql, engine_redis;

/* The URL of a store of the engine that runs. */
void store_url(const struct engine *e, char *out, size_t cap, const char *name);

/* ---- load.c ---------------------------------------------------------------------------------- */

struct fw_store *open_store(const char *url);
double store_bytes(const struct engine *e, const char *url);
struct subscribed {
	double rate, slowest; /* feeds/s; seconds of the slowest 10,000 */
};
/*
 * n feeds, each on a host of its own; due in the order of their ids, or at random within an hour.
 * By so many processes.
 */
struct subscribed make_feeds(const char *url, int64_t n, bool shuffled, int processes);

/* ---- shards.c -------------------------------------------------------------------------------- */

struct schedule {
	const char *url;
	int64_t feeds;
	size_t batch;
	bool by_shard;  /* a batch is one shard's feeds; otherwise those that are due first of all the worker's shards */
	int workers;    /* of the turn */
	int64_t visits; /* so far, by all turns */
};
/*
 * Workers claim and commit, nothing changed. A visit puts a feed's due time six to twelve minutes
 * on: it stays in the past all the while.
 */
struct work turn_schedule(struct schedule *w, int workers, double seconds, int parts);
/* What is due, all of it, in this process: feeds a second. */
void read_due(const char *url, struct samples *rate);
/* The state of `batch` feeds, one batch after the other: ms. */
void read_states(const char *url, size_t batch, int times, struct samples *took, struct samples *took_cpu);

struct fill {
	double seconds, cpu;
	int64_t new_n;
};
/*
 * Visit `feeds` of those that are due at `now` with `per_feed` entries from number `from` on;
 * commits of about 2,500 entries.
 */
struct fill fill_store(const char *url, int64_t feeds, int per_feed, int64_t from, size_t bytes, int64_t now);

/* ---- rows that every engine has -------------------------------------------------------------- */

void bench_schedule(const struct engine *e);
void bench_entries(const struct engine *e);
void bench_events(const struct engine *e);
/* One row: new entries against one a transaction, on a store of this name. */
void entries_row(const struct engine *e, const char *name, double goal);

#endif
