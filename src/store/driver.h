/* SPDX-License-Identifier: ISC */
/*
 * What a driver implements: 24 functions. Callers use the front (store.c), which checks arguments,
 * answers in words and adds what is the same on every engine.
 *
 * The schedule
 *
 *   - A feed belongs to the shard of its host, one of STORE_SHARDS. A worker leases shards through
 *     one row of its own, which it keeps alive, and only it fetches their feeds. So a claim is a
 *     read, hosts are limited in their owner's memory (sched/hosts.h), and a commit is fenced by
 *     one row.
 *   - A lease has a number that is never used again. While its row is there, its shards are
 *     nobody else's, and what its worker commits is taken. Once the row is gone, each commit is
 *     FW_ESTALE and writes nothing, and the worker joins anew. Each beat takes away rows whose time
 *     is over; but not that of a worker which comes back from an outage of the store itself.
 *   - A worker begins no request after safe_until_mono_ms, on its own clock.
 *   - The due time of a commit is written only when the feed's is still the one that was read, and
 *     the status only when it is still active: what its owner, or fetch-now, set meanwhile stands.
 *   - A change of the schedule from outside (load, feed_set, feed_drop, a feed that moved to
 *     another host) raises the shard's version in the same transaction. The owner sees that at its
 *     next beat and reads the shard again.
 *   - Pushed entries need no lease: a commit without one stores entries and the visit, and leaves
 *     the schedule alone but for last_new_ms. Nor does the first visit of a feed need one.
 *
 * Entries
 *
 *   - Entries are unique by (feed, key), whoever brings them. Storing one again changes nothing
 *     unless its hash differs. Of two with one key in one outcome the first counts. What prune took
 *     stays away, also while its feed lists it.
 *   - Entry ids appear in order: a reader that has seen an id will never see a lower one appear.
 *     Visit ids rise, but those of two commits at a time may appear in either order.
 *
 * Rules for each slot
 *
 *   - Times are Unix ms, UTC; leases and due times go by the store's clock (clock slot).
 *   - Every call blocks. One thread per store at a time; any number of processes.
 *   - A driver sees its arguments during the call only. What it hands out lives during the
 *     callback. A callback returns 0, or anything else to end the walk, which is returned then; it
 *     does not call the store.
 *   - All or nothing: a slot that writes is one transaction, unless its comment says otherwise.
 *   - Returns 0 or FW_E*, with words that name the store and the remedy. FW_EIO: the connection or
 *     the file broke (open again, retry). FW_EAGAIN: another transaction held it longer than
 *     busy_timeout_ms, or a deadlock (retry as it is). Also FW_ENOTFOUND, FW_EVERSION, FW_EINVAL,
 *     FW_ENOMEM.
 *   - What is retried after FW_EIO or FW_EAGAIN, though the first try had been stored, stores
 *     nothing twice.
 */
#ifndef FW_STORE_DRIVER_H
#define FW_STORE_DRIVER_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "feedwheel/store.h"

#define STORE_SHARDS 1024
#define FW_STORE_CRASH_MAX 2   /* a feed that killed this many workers in a row is quarantined */
#define FW_STORE_BUSY_MS 10000 /* default of fw_store_config.busy_timeout_ms */
#define FW_RECORD_STEP 1000    /* rows that a prune takes in one step */
#define FW_EVENT_STEP 5000

/* ---- the schedule ---------------------------------------------------------------------------- */

/* The number of a host's name (fw_store_feed_host()), the same on every engine: never 0. */
int64_t store_host_id(struct fw_str host);
static inline int store_host_shard(int64_t host_id)
{
	return (int)(host_id & (STORE_SHARDS - 1));
}
/* The same of the host that this feed belongs to. */
int64_t store_feed_host_id(const struct fw_feed *feed);

struct store_shard { /* one that this worker holds */
	int shard;
	int64_t version;
	/*
	 * Its hosts may have been asked until then by an owner that left no word; 0: they were not
	 */
	int64_t quiet_since_ms;
};

struct store_lease {
	int64_t id;               /* 0: to be joined */
	int64_t lease_ms;         /* in */
	bool idle;                /* in: nothing of what it holds is due, or soon not: it takes free shards beyond its part */
	bool full;                /* in: it has more than it can start, and takes none */
	bool late;                /* in: its own lease was over, as those of others may be for the same reason: it ends none */
	uint32_t expected;        /* in: so many begin together, this one among them; 0: not known */
	int64_t safe_until_mono_ms; /* out: no request begins from here on */
	uint32_t living;          /* out: workers with a lease, this one among them */
	uint32_t idle_n;          /* out: others that are idle */
	struct store_shard shard[STORE_SHARDS]; /* out: what it holds, by number */
	size_t shard_n;
};
/* A worker's fair part of the shards, rounded up. One that holds more gives the surplus. */
static inline size_t store_part(const struct store_lease *l)
{
	uint32_t n = l->living > l->expected ? l->living : l->expected;

	return (STORE_SHARDS + n - 1) / n;
}
/*
 * So many of the free ones a worker takes at a beat: up to its part; one that is idle its share with
 * others that are.
 */
static inline size_t store_take(const struct store_lease *l, size_t held, size_t free_n)
{
	size_t part = store_part(l), wants = part > held ? part - held : 0;

	if (l->full)
		return 0;
	return l->idle ? FW_MAX(wants, (free_n + l->idle_n) / (l->idle_n + 1)) : wants;
}

struct store_give {
	int64_t lease_id;
	/*
	 * Shards in which nothing is in flight, all outcomes and hosts committed; quiet_since_ms is
	 * handed on.
	 */
	const struct store_shard *shard;
	size_t n;
	/*
	 * And then the lease ends: what is left of its shards is as quiet as if its owner had died
	 * now
	 */
	bool leave;
	/* lease_id 0: reap the leases of this worker, which is dead. */
	const char *worker;
	/*
	 * It died of this feed: crash_n rises by one, and at FW_STORE_CRASH_MAX it is quarantined;
	 * 0: none
	 */
	int64_t crashed_feed_id;
};

struct store_due { /* a feed, as narrow as can be */
	int64_t feed_id, due_at_ms, host_id;
	int64_t expect_us, expect_dev_us, last_visit_ms;
	int shard;
};

struct store_host { /* what must outlive its owner */
	int64_t id;               /* its shard is store_host_shard() */
	int64_t next_ok_ms, cool_until_ms, pace_ms;
	/*
	 * In a commit: this lease does not hold its shard (a feed moved there): the later times
	 * count, the pace stays
	 */
	bool others;
};

struct store_due_query {
	int shard;                /* -1: all */
	int last_shard;           /* and those up to this one, in one round trip or a few; below shard: that alone */
	int64_t until_ms;         /* active feeds with due_at_ms <= this */
	/* In no order; NULL: not wanted */
	int (*due)(void *ctx, const struct store_due *due);
	/* Hosts of those shards, each before its shard's feeds; NULL: not wanted */
	int (*host)(void *ctx, const struct store_host *host);
	void *ctx;
};

struct store_commit {
	/*
	 * 0: none. An outcome of kind FW_VISIT_PUSHED is a push then, and only FW_GROUP_META may be
	 * set: what the feed has not been told yet is written. One of another kind is its feed's
	 * first visit (last_visit_ms was 0), alone in its commit, with host_id, was_due_ms and all of
	 * its state: it is written as under a lease, and the shard's version rises. Where the feed
	 * was visited meanwhile it is a push.
	 */
	int64_t lease_id;
	struct fw_outcome *outcome;
	size_t n;
	const struct store_host *host;
	size_t host_n;
};

/* ---- feeds, queries, copies ------------------------------------------------------------------ */

struct store_feed_query {
	struct fw_feed_query q;   /* status -1, the rest 0: all. Ignored where one of those below is set */
	int64_t id;               /* the one with this number, with entry_n; FW_ENOTFOUND */
	struct fw_str url;        /* the one with this address, with entry_n; FW_ENOTFOUND */
	/*
	 * these, in any order; those removed meanwhile are passed over. feed_id and shard are
	 * looked at
	 */
	const struct store_due *due;
	size_t due_n;
};

/* A feed with id 0 is new, and these are out. */
struct store_feed_new {
	int64_t id;
	bool existed;             /* its url is subscribed already: nothing was changed */
};

struct store_load {
	struct fw_load rows;      /* see there; a feed with id 0 is subscribed: rows.feed_n results in made[] */
	struct store_feed_new *made; /* NULL: no feed has id 0 */
};

/* ---- events and records ---------------------------------------------------------------------- */

struct store_event_query {
	int64_t after_id;
	size_t limit;             /* 0: all */
	fw_event_cb *event;       /* one of the two: events, or dead letters */
	fw_dead_event_cb *dead;
	void *ctx;
};

struct store_record_query {
	struct fw_record_query q;
	/*
	 * This one only, q.kind is set; FW_ENOTFOUND. Absent: the list. One that has run out is
	 * shown until it is pruned
	 */
	struct fw_str key;
};

/* ---- the slots ------------------------------------------------------------------------------- */

struct store_driver;
struct store { /* a driver's own struct begins with this */
	const struct store_driver *is;
};

/*
 * Callers know a driver's struct as struct fw_store, which is defined nowhere. The owner of shards,
 * the one caller of beat, give, due and commit, takes the driver itself.
 */
static inline struct store *fw_store_driver(struct fw_store *st)
{
	return (struct store *)st;
}
#define STORE_CALL(st, slot, ...) fw_store_driver(st)->is->slot(fw_store_driver(st), __VA_ARGS__)

/*
 * Open, and make the tables when FW_STORE_CREATE is set and there are none. FW_ENOTFOUND: there are
 * none. FW_EVERSION: the schema is newer than this program, or of a version before the first
 * release. FW_EINVAL: the database is another program's, or the server is none of ours. Ten
 * processes may open a new store at once.
 */
typedef int store_open_fn(const struct fw_store_config *cfg, struct store **out, struct fw_err *err);
typedef void store_close_fn(struct store *st);
/* The store's time. Also: is it there? */
typedef int store_clock_fn(struct store *st, int64_t *now_ms, struct fw_err *err);
/*
 * deep: the integrity of all that is kept, each fault a finding of level 2; else the server's
 * version, how durable a commit is, settings that hurt.
 */
typedef int store_inspect_fn(struct store *st, bool deep, fw_inspect_cb *cb, void *ctx, struct fw_err *err);
/*
 * Until somebody else changed a schedule or put a record with `wake`, until wake_fd is readable
 * (-1: none), or for timeout_ms. *changed: the first. May be early.
 */
typedef int store_wait_fn(struct store *st, int wake_fd, int64_t timeout_ms, bool *changed, struct fw_err *err);
/* One pass over the narrow rows: 1,000,000 feeds in a second. */
typedef int store_stats_fn(struct store *st, struct fw_store_stats *out, struct fw_err *err);
typedef int store_prune_fn(struct store *st, struct fw_prune *p, struct fw_err *err);

/*
 * Join (id 0) or keep the lease alive, free what the dead held, take what is free up to the fair
 * part. Three times in a lease. FW_ESTALE: it is over; nothing was written.
 */
typedef int store_beat_fn(struct store *st, const char *worker, struct store_lease *l, struct fw_err *err);
/* Shards, a lease, or the leases of one that is dead. What is not there is passed over. */
typedef int store_give_fn(struct store *st, const struct store_give *g, struct fw_err *err);
/* Feeds row by row. Needs no lease. */
typedef int store_due_fn(struct store *st, const struct store_due_query *q, struct fw_err *err);
/* FW_ESTALE: the lease is over, and nothing was written. It is no sign of life. */
typedef int store_commit_fn(struct store *st, struct store_commit *c, struct fw_err *err);

/* Rows with their ids, or new feeds. FW_EINVAL: a feed's id or url is another's. */
typedef int store_load_fn(struct store *st, const struct store_load *l, struct fw_err *err);
typedef int store_feed_list_fn(
	struct store *st, const struct store_feed_query *q, fw_feed_cb *cb, void *ctx, struct fw_err *err);
/* FW_SET_*, by its owner. FW_ENOTFOUND. */
typedef int store_feed_set_fn(struct store *st, const struct fw_feed *feed, unsigned what, struct fw_err *err);
/*
 * Remove a feed and all that belongs to it. into_id not 0: first entries that `into` lacks, by key
 * and by guid, go over with their ids and keys. FW_ENOTFOUND: either.
 */
typedef int store_feed_drop_fn(struct store *st, int64_t feed_id, int64_t into_id, struct fw_err *err);
typedef int store_entry_list_fn(
	struct store *st, const struct fw_entry_query *q, fw_entry_cb *cb, void *ctx, struct fw_err *err);
/* All keys of the feeds with these ids, feed by feed in order of id; within one in any order. */
typedef int store_key_list_fn(
	struct store *st, int64_t first_feed_id, int64_t last_feed_id, fw_key_cb *cb, void *ctx, struct fw_err *err);
typedef int store_visit_list_fn(
	struct store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx, struct fw_err *err);

/*
 * An id that is there already is passed over. FW_EINVAL: one will never be taken as it is; then
 * none was. dead: in place of the one with that id, with a reason.
 */
typedef int store_event_put_fn(struct store *st, const struct fw_event *event, size_t n,
	const struct fw_dead_event *dead, size_t dead_n, struct fw_err *err);
typedef int store_event_list_fn(struct store *st, const struct store_event_query *q, struct fw_err *err);
/* Dead letters by id. One that is not there is passed over. */
typedef int store_event_remove_fn(struct store *st, const int64_t *dead_id, size_t n, struct fw_err *err);

/*
 * Over the one of that kind and key. if_absent: but one that is there and has not run out at
 * r->at_ms stays, and *was becomes true; of many that try at once one finds none. wake: those who
 * wait are told.
 */
typedef int store_record_put_fn(
	struct store *st, const struct fw_record *r, bool if_absent, bool wake, bool *was, struct fw_err *err);
typedef int store_record_list_fn(
	struct store *st, const struct store_record_query *q, fw_record_cb *cb, void *ctx, struct fw_err *err);
/* Unless value is absent only one that has this value goes. FW_ENOTFOUND. */
typedef int store_record_remove_fn(
	struct store *st, struct fw_str kind, struct fw_str key, struct fw_str value, struct fw_err *err);

struct store_driver {
	const char *name;            /* "sqlite" */
	const char *const *schemes;  /* NULL-ended */
	store_open_fn *open;
	store_close_fn *close;
	store_clock_fn *clock;
	store_inspect_fn *inspect;
	store_wait_fn *wait;
	store_stats_fn *stats;
	store_prune_fn *prune;
	store_beat_fn *beat;
	store_give_fn *give;
	store_due_fn *due;
	store_commit_fn *commit;
	store_load_fn *load;
	store_feed_list_fn *feed_list;
	store_feed_set_fn *feed_set;
	store_feed_drop_fn *feed_drop;
	store_entry_list_fn *entry_list;
	store_key_list_fn *key_list;
	store_visit_list_fn *visit_list;
	store_event_put_fn *event_put;
	store_event_list_fn *event_list;
	store_event_remove_fn *event_remove;
	store_record_put_fn *record_put;
	store_record_list_fn *record_list;
	store_record_remove_fn *record_remove;
};

/* A driver that this build goes without is not defined. */
extern const struct store_driver store_sqlite, store_memory, store_postgres, store_mysql, store_redis;
/* Of this build, ended by NULL: store.c. */
extern const struct store_driver *const store_drivers[];

/* Their schemes. A build without the driver knows them too: it refuses such a URL with the remedy. */
#define FW_STORE_POSTGRES_SCHEMES "postgres", "postgresql", NULL
#define FW_STORE_MYSQL_SCHEMES "mysql", "mariadb", NULL
#define FW_STORE_REDIS_SCHEMES "redis", "rediss", "redis+unix", NULL

/* ---- what drivers and the front share: common.c ---------------------------------------------- */

/* An err for the driver, which never gets NULL. */
#define STORE_ERR(err) ((err) ? (err) : &(struct fw_err){0})
/* A caller's argument is wrong: FW_EINVAL. */
int store_refused(const struct store *st, const char *why, struct fw_err *err);

/* What follows "scheme:" in a store URL, without the "//" of an empty authority. Borrowed. */
struct fw_str fw_store_url_rest(const char *url);

/*
 * Refuse (FW_EINVAL) a server that speaks the protocol of PostgreSQL or MySQL but does not lock as
 * they do: feeds would be fetched twice. version: as the server says it; store: for the error.
 */
int fw_store_server_known(const char *store, const char *version, struct fw_err *err);

/* For fw_feed_query.match: text in lower case (ASCII), and whether text holds what is in lower case already. */
void fw_store_lower(struct fw_buf *out, struct fw_str text);
bool fw_store_has(struct fw_str text, struct fw_str low);

/* FW_ENOTFOUND. */
int fw_store_record_missing(const char *name, struct fw_str kind, struct fw_err *err);

/* Copy the strings of a record, of a feed, into the arena; false: out of memory. */
bool fw_store_record_dup(struct fw_arena *a, struct fw_record *r);
bool fw_store_feed_dup(struct fw_arena *a, struct fw_feed *feed);

#endif
