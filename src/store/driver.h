/* SPDX-License-Identifier: ISC */
/*
 * The contract of a storage driver: 36 functions (slots). Callers use the front (store.c), which
 * checks arguments, words errors and adds what is the same on every engine.
 *
 * The schedule
 *
 *   - A feed belongs to the shard of its host, one of STORE_SHARDS. A worker leases shards through
 *     one lease row, which it keeps alive with heartbeats. Only the owner of a shard fetches its
 *     feeds. So a claim is a read, the rate limits of hosts live in the owner's memory
 *     (sched/hosts.h), and one row fences every commit.
 *   - A lease id is never reused. While its row exists, no other lease owns its shards and its
 *     commits are accepted. Once the row is gone, each commit returns FW_ESTALE and writes nothing;
 *     the worker then joins anew. Each heartbeat reaps expired rows, unless the caller's own lease
 *     had expired: then the store itself was unreachable, and the others deserve the same chance.
 *   - A worker starts no request after safe_until_mono_ms of its own monotonic clock.
 *   - A commit writes the due time and its reason only if the feed's due time is still was_due_ms,
 *     and the status only if it is still active. A change by the user (feed_set, fetch-now) wins.
 *   - A change of the schedule from outside (load, feed_set, feed_drop, a feed that moved to
 *     another host) raises the shard's version in the same transaction. The owner sees the new
 *     version at its next heartbeat and reads the shard again.
 *   - Pushed entries need no lease. A commit without a lease stores entries and the visit; of the
 *     schedule it writes last_new_ms only. The first visit of a feed needs no lease either.
 *
 * Entries
 *
 *   - Entries are unique by (feed, key), from every source (dedup). Storing an entry again changes
 *     nothing unless its hash differs. If two entries of one outcome have the same key, the first
 *     counts. An entry that retention removed, or that an outcome retracted, is not stored again.
 *   - Entry ids appear in order: after a reader has seen an id, no lower id appears. Visit ids
 *     rise, but the ids of two concurrent commits may appear in either order.
 *   - The log of changes: a commit that changes or retracts an entry, prune of entries, feed_drop
 *     and a merge store a change for each entry (changed; gone; for an entry that a merge moves:
 *     changed), in the same transaction. Its number comes from the counter of entry ids, and
 *     appears in order with these. A new entry needs no change: its id is the number. load stores
 *     none.
 *   - A commit with a matcher compares the version of its orders in the transaction that stores new
 *     or changed entries: after the counter of entry ids is locked, or watched from before it reads
 *     until EXEC. Another version: STORE_EORDERS. To put or remove a record of kind FW_RECORD_ORDER
 *     raises the version in the same transaction, under the same lock.
 *   - Before a commit changes an entry, its version goes to the revisions. The newest revisions_max
 *     are kept; all of them go with the entry.
 *
 * Rules for every slot
 *
 *   - Times are Unix milliseconds, UTC. Leases and due times use the store's clock (clock slot).
 *   - Every call blocks. One thread per store at a time; any number of processes.
 *   - Arguments are borrowed for the call. Rows passed to a callback are borrowed until it returns.
 *     A callback returns 0 to go on; any other value ends the walk and is returned by the slot. A
 *     callback must not call the store.
 *   - A slot that writes is one transaction, unless its comment says otherwise: all or nothing.
 *   - Returns 0 or FW_E*, with a text that names the store and the remedy:
 *         FW_EIO     the connection or the file broke, or the server takes no writes (a replica, a
 *                    master before a failover, read-only mode): close, open again, retry. The
 *                    store's name may lead to another server by now, which only a new connection
 *                    finds
 *         FW_EUNUSABLE  damaged, or a right is missing: retrying does not help
 *         FW_EAGAIN  locked by others for longer than busy_timeout_ms, or a deadlock: retry
 *         FW_ENOTFOUND FW_EVERSION FW_EINVAL FW_ENOMEM
 *   - Writes are idempotent: a retry after FW_EIO or FW_EAGAIN stores nothing twice, even if the
 *     first try was stored.
 */
#ifndef FW_STORE_DRIVER_H
#define FW_STORE_DRIVER_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/offset_clock.h"
#include "base/str.h"
#include "feedwheel/store.h"

#define STORE_SHARDS 1024
#define STORE_ID_MAX ((INT64_C(1) << 53) - 1) /* of feeds, entries, visits: Lua's numbers are exact up to it */
#define FW_STORE_CRASH_MAX 2                  /* worker deaths in a row after which a feed is quarantined */
#define FW_STORE_BUSY_MS 10000                /* default of fw_store_config.busy_timeout_ms */
#define FW_RECORD_STEP 1000                   /* records that one step of prune removes at most */
#define FW_EVENT_STEP 5000                    /* events that one step of prune removes at most */

/* ---- the schedule ---------------------------------------------------------------------------- */

/* The id of a host name (fw_store_feed_host()): a hash, the same on every engine, never 0. */
int64_t store_host_id(struct fw_str host);
static inline int store_host_shard(int64_t host_id)
{
	return (int)(host_id & (STORE_SHARDS - 1));
}
/* The id of the feed's host. */
int64_t store_feed_host_id(const struct fw_feed *feed);

/* A shard that this worker owns. */
struct store_shard {
	int shard;
	int64_t version; /* differs from the last heartbeat: the schedule changed, read the shard again */
	/*
	 * The previous owner ended without handing over its hosts, and may have sent requests to
	 * them until this time; 0: it handed them over
	 */
	int64_t quiet_since_ms;
};

struct store_lease {
	int64_t id;                 /* in, out; 0: none yet, join */
	int64_t lease_ms;           /* in: how long the lease lasts after a heartbeat */
	bool idle;                  /* in: nothing owned is due soon; take free shards beyond the fair share */
	bool full;                  /* in: more is due than can be started (backpressure); take no shard */
	bool late;                  /* in: this lease had expired, so others may have for the same reason; reap none */
	uint32_t expected;          /* in: number of workers that start together, with this one; 0: unknown */
	int64_t safe_until_mono_ms; /* out: no request starts after this time */
	uint32_t living;            /* out: number of workers with a lease, with this one */
	uint32_t idle_n;            /* out: how many of the others are idle */
	struct store_shard shard[STORE_SHARDS]; /* out: the owned shards, by number */
	size_t shard_n;
};
/* A worker's fair share of the shards, rounded up. A worker that owns more gives the surplus. */
static inline size_t store_fair_share(const struct store_lease *l)
{
	uint32_t n = l->living > l->expected ? l->living : l->expected;

	return (STORE_SHARDS + n - 1) / n;
}
/*
 * How many of the free_n free shards a worker takes at a heartbeat: up to its fair share. Idle
 * workers also divide the free shards among themselves.
 */
static inline size_t store_take_count(const struct store_lease *l, size_t held, size_t free_n)
{
	size_t part = store_fair_share(l), wants = part > held ? part - held : 0;

	if (l->full)
		return 0;
	return l->idle ? FW_MAX(wants, (free_n + l->idle_n) / (l->idle_n + 1)) : wants;
}

/* What to release: shards, a lease, or all leases of a dead worker. */
struct store_release {
	int64_t lease_id;
	/*
	 * Shards with nothing in flight, whose outcomes and hosts are all committed. quiet_since_ms
	 * is stored for the next owner.
	 */
	const struct store_shard *shard;
	size_t n;
	/* End the lease too. Its other shards are released as if the owner had died now. */
	bool leave;
	/* lease_id 0: reap all leases of this dead worker. */
	const char *worker;
	/*
	 * The feed whose visit killed the worker, 0: none. Its crash_n rises by one; at
	 * FW_STORE_CRASH_MAX the feed is quarantined.
	 */
	int64_t crashed_feed_id;
};

/* A feed in the due set: only the columns that scheduling needs. */
struct store_due {
	int64_t feed_id, due_at_ms, host_id;
	int64_t expect_us, expect_dev_us, last_visit_ms;
	int shard;
};

/* A host's rate limit state, as far as it must survive its owner. */
struct store_host {
	int64_t id; /* its shard is store_host_shard() */
	int64_t next_ok_ms, cooldown_until_ms, learned_delay_ms;
	/*
	 * In a commit: another lease owns this host's shard (a feed moved there). The later of the
	 * stored and the new times is kept, and learned_delay_ms is not written.
	 */
	bool others;
};

struct store_due_query {
	int shard;        /* -1: all */
	int last_shard;   /* also the shards up to this one, in few round trips; below shard: shard alone */
	int64_t until_ms; /* active feeds with due_at_ms <= this */
	/* Feeds in no order; NULL: not wanted */
	int (*due)(void *ctx, const struct store_due *due);
	/* Hosts of those shards, each before the feeds of its shard; NULL: not wanted */
	int (*host)(void *ctx, const struct store_host *host);
	void *ctx;
};

struct store_commit {
	/*
	 * 0: no lease. Then an outcome is one of two things:
	 *   - FW_VISIT_PUSHED: a push. groups may hold FW_GROUP_META only, and of that group only
	 *     members that the feed lacks are written.
	 *   - another kind: the first visit of its feed (last_visit_ms was 0), alone in its commit,
	 *     with host_id, was_due_ms and the whole state. It is written as under a lease, and the
	 *     shard's version rises. If the feed was visited meanwhile, it is stored as a push.
	 */
	int64_t lease_id;
	struct fw_outcome *outcome;
	size_t n;
	const struct store_host *host;
	size_t host_n;
};

/* ---- feeds, queries, copies ------------------------------------------------------------------ */

struct store_feed_query {
	struct fw_feed_query q; /* status -1, the rest 0: all. Ignored if id, url or due is set */
	int64_t id;             /* one feed by id, with entry_n; FW_ENOTFOUND */
	struct fw_str url;      /* one feed by url, with entry_n; FW_ENOTFOUND */
	/* These feeds, by feed_id and shard, in any order. Removed feeds are skipped. */
	const struct store_due *due;
	size_t due_n;
};

/* The result for a loaded feed whose id was 0: a subscription. */
struct store_feed_new {
	int64_t id;
	bool existed; /* its url was subscribed already: nothing was changed */
};

struct store_load;
typedef int store_load_put_fn(void *to, const struct store_load *part, struct fw_err *err);
struct store_load {
	struct fw_load rows;         /* a feed with id 0 is subscribed; results go into made[0 .. rows.feed_n) */
	struct store_feed_new *made; /* NULL: no feed has id 0 */
	/*
	 * Instead of rows, if set: puts them part by part, put(to, part, err), so that not all are
	 * in memory at once. A part finds what an earlier one stored. It is called again, from the
	 * start, if the transaction is retried. Returns 0, the code that put returned, or its own.
	 * Redis: a transaction for each part.
	 */
	int (*each)(void *ctx, store_load_put_fn *put, void *to, struct fw_err *err);
	void *ctx;
};

/* ---- events and records ---------------------------------------------------------------------- */

struct store_event_query {
	int64_t after_id;
	size_t limit;       /* 0: all */
	fw_event_cb *event; /* exactly one is set: event for events, dead for dead letters */
	fw_dead_letter_cb *dead;
	void *ctx;
};

struct store_record_query {
	struct fw_record_query q;
	/*
	 * One record, of kind q.kind; FW_ENOTFOUND. Absent: the list that q describes. An expired
	 * record is shown until prune removes it.
	 */
	struct fw_str key;
};

struct store_change_query {
	int64_t after_id;
	int64_t feed_id; /* 0: all */
	size_t limit;    /* 0: all */
	/*
	 * Out. head_id: the last number of an entry or change when the call started; no number up
	 * to it will appear later. pruned_id: changes up to it may have been removed; read after
	 * the changes.
	 */
	int64_t head_id, pruned_id;
};

/* ---- the slots ------------------------------------------------------------------------------- */

struct query_node;
struct store_driver;
/* The first member of every driver's own struct. */
struct fw_work_limit;
struct store {
	const struct store_driver *driver;
	const struct fw_matcher *matcher; /* NULL: none */
	struct fw_offset_clock *clock;    /* the store's time, shared by connections; NULL: own_clock */
	struct fw_offset_clock own_clock;
	struct fw_work_limit *limit; /* api/account.h; NULL: none. SQL stores obey it */
};
#define STORE_LIMIT_STEP_MS 50 /* between two questions of a driver that waits for a server */
/* Has the limit been reached, or has whoever asked left? Cost: a look at the clock. */
bool store_is_over(struct store *st);
int store_over(const char *name, struct fw_err *err); /* FW_EAGAIN, with a message */

/*
 * To callers a store is the opaque struct fw_store. The owner of shards in the engine, the only
 * caller of heartbeat, release and due, uses the driver itself, and store_commit().
 */
static inline struct store *store_of(struct fw_store *st)
{
	return (struct store *)st;
}
#define STORE_CALL(st, slot, ...) store_of(st)->driver->slot(store_of(st), __VA_ARGS__)

/*
 * Open a store. With FW_STORE_CREATE, create the tables if there are none. FW_ENOTFOUND: no tables.
 * FW_EVERSION: the schema is newer than this program, or older than the first release. FW_EINVAL:
 * the database belongs to another program, or the server is unsupported. Safe when ten processes
 * open a new store at once.
 */
typedef int store_open_fn(const struct fw_store_config *cfg, struct store **out, struct fw_err *err);
typedef void store_close_fn(struct store *st);
/*
 * The store's clock. One round trip: also the ping. Of a store opened for writing it is FW_EIO if
 * the server takes no writes, also from a user who may write to a replica: what is written there is
 * lost. So a connection that only reads learns of a failover too.
 */
typedef int store_clock_fn(struct store *st, int64_t *now_ms, struct fw_err *err);
/*
 * deep: check the integrity of everything stored; each fault is a finding of level 2. Else: the
 * server's version, the durability of a commit, harmful settings.
 */
typedef int store_inspect_fn(struct store *st, bool deep, fw_inspect_cb *cb, void *ctx, struct fw_err *err);
/*
 * Wait until another connection changes a schedule or puts a record with `wake` (*changed), until
 * wake_fd is readable (-1: none), or for timeout_ms. May return early.
 */
typedef int store_wait_fn(struct store *st, int wake_fd, int64_t timeout_ms, bool *changed, struct fw_err *err);
/* Cost: one pass over the schedule, about 0.2 s for 1,000,000 feeds on SQL. */
typedef int store_stats_fn(struct store *st, struct fw_store_stats *out, struct fw_err *err);
/* One step of retention and indexing, tens of ms. May be several transactions. */
typedef int store_prune_fn(struct store *st, struct fw_prune *p, struct fw_err *err);

/*
 * The heartbeat of a lease: join (id 0) or renew, reap expired leases, take free shards up to the
 * fair share. The worker calls it three times per lease_ms. FW_ESTALE: the lease is gone; nothing
 * was written.
 */
typedef int store_heartbeat_fn(struct store *st, const char *worker, struct store_lease *l, struct fw_err *err);
/* Release shards, a lease, or the leases of a dead worker. Those that do not exist are skipped. */
typedef int store_release_fn(struct store *st, const struct store_release *g, struct fw_err *err);
/* Read the due set, row by row. Needs no lease. */
typedef int store_due_fn(struct store *st, const struct store_due_query *q, struct fw_err *err);
/*
 * FW_ESTALE: the lease is gone; nothing was written. A commit does not renew the lease.
 * STORE_EORDERS: the matcher has another version of the orders, and what is not stored yet needs
 * another commit: nothing was written (Redis: parts of it may be, as after FW_EIO). Callers use
 * store_commit().
 */
#define STORE_EORDERS (-100) /* no fw_code: it does not leave the front */
typedef int store_commit_fn(struct store *st, struct store_commit *c, struct fw_err *err);

/*
 * Store rows with their ids, or subscribe feeds. FW_EINVAL: an id or url belongs to another feed.
 */
typedef int store_load_fn(struct store *st, const struct store_load *l, struct fw_err *err);
typedef int store_feed_list_fn(
	struct store *st, const struct store_feed_query *q, fw_feed_cb *cb, void *ctx, struct fw_err *err);
/* Write the members in `what` (FW_SET_*), on behalf of the user. FW_ENOTFOUND. */
typedef int store_feed_set_fn(struct store *st, const struct fw_feed *feed, unsigned what, struct fw_err *err);
/*
 * Remove a feed and all that belongs to it. into_id not 0: a merge. First, the entries that feed
 * into_id lacks, by key and by guid, go to it and keep their ids and keys. FW_ENOTFOUND: either.
 */
typedef int store_feed_drop_fn(struct store *st, int64_t feed_id, int64_t into_id, struct fw_err *err);
/*
 * A merge that no person asked for, but a server that redirects: what it sent before is not taken
 * for the other feed's. No entry moves. Subscriptions do; what accounts have read and labelled
 * passes to the entry of into_id with the same key or guid. An entry with a label that has none
 * stays, as retraction keeps it: then the feed stays too, paused and without subscribers, else it
 * is removed. FW_EINVAL: their logins differ, and nothing was changed. FW_ENOTFOUND: either.
 */
typedef int store_feed_adopt_fn(struct store *st, int64_t from_id, int64_t into_id, struct fw_err *err);
/*
 * A list of entries as the front prepares it. q: search, folder, by_relevance and snippet are not
 * for drivers; feed_id, since_ms and until_ms hold also what the search says about them. An entry
 * is listed if all parts match it, by query_matches(): a driver may use an index, but the result is
 * this one. The limit counts entries that are listed.
 */
struct store_entry_query {
	struct fw_entry_query q;
	const struct query_node *const *part;
	size_t part_n;
	int64_t now_ms;
};
typedef int store_entry_list_fn(
	struct store *st, const struct store_entry_query *q, fw_entry_cb *cb, void *ctx, struct fw_err *err);
/* As fw_store_entry_counts(). NULL: the front lists the entries. */
typedef int store_entry_counts_fn(
	struct store *st, int64_t since_ms, fw_entry_count_cb *cb, void *ctx, struct fw_err *err);
/*
 * Changes with after_id < id <= head_id, by id, without entries and without those of kind new.
 */
typedef int store_change_list_fn(
	struct store *st, struct store_change_query *q, fw_change_cb *cb, void *ctx, struct fw_err *err);
/* The earlier versions of an entry, oldest first. */
typedef int store_revision_list_fn(
	struct store *st, int64_t entry_id, fw_revision_cb *cb, void *ctx, struct fw_err *err);
/* All keys of the feeds in this range of ids, in order of feed id; within a feed in any order. */
typedef int store_key_list_fn(
	struct store *st, int64_t first_feed_id, int64_t last_feed_id, fw_key_cb *cb, void *ctx, struct fw_err *err);
typedef int store_visit_list_fn(
	struct store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx, struct fw_err *err);

/*
 * Store events and dead letters. An event that is stored already is skipped; a dead letter that is
 * gets the new reason and time. FW_EINVAL: the store can never accept one of them as it is.
 * FW_ECLASH: some have the id of another row, that is, another event; `clashes` is set in these, at
 * least in one.
 */
typedef int store_event_put_fn(struct store *st, struct fw_event *event, size_t n, struct fw_dead_letter *dead,
	size_t dead_n, struct fw_err *err);
/*
 * Reserve a range of ids for events. The store keeps, for each of the FW_IDS_NUMBERS numbers, the
 * highest serial number that it has reserved. The range has the number with the lowest of these; of
 * equal ones the highest, because older programs give ids of number 0 and reserve none. It has
 * FW_IDS_RANGE serial numbers and starts above that, at the store's time, not below r->first, and
 * so that no stored event or dead letter has an id in it. So no two ranges have an id in common,
 * whatever the clocks say. clash_n is added to the store's count.
 */
typedef int store_event_ids_fn(struct store *st, struct fw_id_range *r, struct fw_err *err);
typedef int store_event_list_fn(struct store *st, const struct store_event_query *q, struct fw_err *err);
/* Remove dead letters by id; an id that does not exist is skipped. */
typedef int store_event_remove_fn(struct store *st, const int64_t *dead_id, size_t n, struct fw_err *err);

/* As in the front. */
typedef int store_match_put_fn(struct store *st, const struct fw_match *match, size_t n, bool dead, struct fw_err *err);
typedef int store_match_list_fn(
	struct store *st, const struct fw_match_query *q, fw_match_cb *cb, void *ctx, struct fw_err *err);
/* n is 0: all of the order. */
typedef int store_match_remove_fn(
	struct store *st, int64_t order_id, bool dead, const int64_t *change_id, size_t n, struct fw_err *err);
struct redis_destination;
/* As store_stream_append(): it has no open store. */
typedef int store_stream_append_fn(const struct redis_destination *s, struct fw_err *err);
typedef int store_match_summary_fn(struct store *st, fw_match_summary_cb *cb, void *ctx, struct fw_err *err);
/* Read the version of the orders; raise: after it was raised, as a changed order does it. */
typedef int store_orders_version_fn(struct store *st, bool raise, struct fw_orders_version *out, struct fw_err *err);

/*
 * Take rows of the inbox (inbox.h), oldest first: all of control, then up to `limit` of
 * feeds_to_fetch; limit 0: control alone. Each of the two may be a transaction of its own. A driver
 * may take a part of many rows of control: then it takes no feeds, and sets more. Cheap if there
 * are none: one round trip. FW_EINVAL: nothing could be taken, because somebody made a key of Redis
 * something else than a list; the error has the remedy.
 */
struct store_inbox_feed;
struct store_inbox {
	size_t limit;
	/*
	 * Make a feed of a row: url, title, folder, login, interval. FW_EINVAL: the row is refused
	 * for this reason. May be called again for the same row. Its strings live until the call of
	 * the slot ends.
	 */
	int (*feed)(void *ctx, const struct store_inbox_feed *row, struct fw_feed_new *feed, struct fw_err *err);
	void *ctx;
	size_t control_n, feed_n, new_n, refused_n; /* out: rows taken; feeds of them that are new; refused rows */
	bool more;                                  /* out: further rows wait */
};
typedef int store_inbox_fn(struct store *st, struct store_inbox *in, struct fw_err *err);

/*
 * Put a record in place of the record of its kind and key. if_absent: keep a record that exists and
 * has not expired at r->at_ms, and set *was; of concurrent callers exactly one gets *was false.
 * wake: wake the callers of wait. With both, a record whose kind has a later key may count as one
 * that exists: so a reader that goes by key misses none, if the driver does that.
 */
typedef int store_record_put_fn(
	struct store *st, const struct fw_record *r, bool if_absent, bool wake, bool *was, struct fw_err *err);
typedef int store_record_list_fn(
	struct store *st, const struct store_record_query *q, fw_record_cb *cb, void *ctx, struct fw_err *err);
/* value absent: remove unconditionally; else only if the record has this value. FW_ENOTFOUND. */
typedef int store_record_remove_fn(
	struct store *st, struct fw_str kind, struct fw_str key, struct fw_str value, struct fw_err *err);

struct store_driver {
	const char *name;           /* "sqlite" */
	const char *const *schemes; /* NULL-ended */
	bool no_index;              /* a search reads entries */
	/* load what the client library loads late: see fw_store_preload(); NULL: nothing */
	void (*preload)(void);
	store_open_fn *open;
	store_close_fn *close;
	store_clock_fn *clock;
	store_inspect_fn *inspect;
	store_wait_fn *wait;
	store_stats_fn *stats;
	store_prune_fn *prune;
	store_heartbeat_fn *heartbeat;
	store_release_fn *release;
	store_due_fn *due;
	store_commit_fn *commit;
	store_load_fn *load;
	store_feed_list_fn *feed_list;
	store_feed_set_fn *feed_set;
	store_feed_drop_fn *feed_drop;
	store_feed_adopt_fn *feed_adopt;
	store_entry_list_fn *entry_list;
	store_entry_counts_fn *entry_counts;
	store_change_list_fn *change_list;
	store_revision_list_fn *revision_list;
	store_key_list_fn *key_list;
	store_visit_list_fn *visit_list;
	store_event_put_fn *event_put;
	store_event_ids_fn *event_ids;
	store_event_list_fn *event_list;
	store_event_remove_fn *event_remove;
	store_match_put_fn *match_put;
	store_match_list_fn *match_list;
	store_match_remove_fn *match_remove;
	store_match_summary_fn *match_summary;
	store_orders_version_fn *orders_version;
	store_stream_append_fn *stream_append; /* NULL: this engine has no streams */
	store_record_put_fn *record_put;
	store_record_list_fn *record_list;
	store_record_remove_fn *record_remove;
	store_inbox_fn *inbox;
	const struct store_accounts *accounts; /* NULL: the engine has none (accounts.h) */
};

/* A driver that is not in this build is not defined. */
extern const struct store_driver store_sqlite, store_memory, store_postgres, store_mysql, store_redis;
/* The drivers of this build, NULL-ended: store.c. */
extern const struct store_driver *const store_drivers[];

/* Known in every build: without the driver, opening such a URL fails with the remedy. */
#define FW_STORE_POSTGRES_SCHEMES "postgres", "postgresql", NULL
#define FW_STORE_MYSQL_SCHEMES "mysql", "mariadb", NULL
#define FW_STORE_REDIS_SCHEMES "redis", "rediss", "redis+unix", NULL

/* ---- helpers of drivers and the front: common.c ---------------------------------------------- */

/* A driver never gets err NULL. */
#define STORE_ERR(err) ((err) ? (err) : &(struct fw_err){0})
/* Report a wrong argument of the caller; returns FW_EINVAL. */
int store_invalid(const struct store *st, const char *why, struct fw_err *err);

/* The part of a store URL after "scheme:", without the "//" of an empty authority. Borrowed. */
struct fw_str fw_store_url_rest(const char *url);

/*
 * Refuse (FW_EINVAL) a server that speaks the protocol of PostgreSQL or MySQL but lacks their
 * locking: feeds would be fetched twice. version: the server's own; store: named in the error.
 */
int fw_store_server_check(const char *store, const char *version, struct fw_err *err);

/* Append text in lower case (ASCII). */
void fw_store_lower(struct fw_buf *out, struct fw_str text);
/* Does text contain low (in lower case), ignoring ASCII case? For fw_feed_query.match. */
bool fw_store_contains(struct fw_str text, struct fw_str low);
/* Report that n events or dead letters have ids of other rows; returns FW_ECLASH. */
int store_event_clash(const char *name, size_t n, struct fw_err *err);
/* Report that the ids are used up; returns FW_ELIMIT. */
int store_event_ids_over(const char *name, struct fw_err *err);
/* Report a record that does not exist; returns FW_ENOTFOUND. */
int fw_store_record_missing(const char *name, struct fw_str kind, struct fw_err *err);

/* What the matcher says of an entry that is about to be stored, in an arena. */
struct store_matched {
	bool drop;                    /* it is new, and only its key is stored */
	const struct fw_entry_row *e; /* the entry to store */
	const int64_t *order_id;
	size_t n;
};
/*
 * Ask the matcher about an entry that a commit is about to store. The entry must outlive *out. An
 * error is the matcher's, or FW_ENOMEM.
 */
int store_match(const struct store *st, struct fw_arena *a, const struct fw_outcome *o, const struct fw_entry_row *e,
	bool is_new, struct store_matched *out, struct fw_err *err);

/* Must this version be compared with the store's? */
static inline const struct fw_orders_version *store_matcher_version(const struct store *st)
{
	return st->matcher && st->matcher->reload ? &st->matcher->version : NULL;
}
/* Report that a commit has another version of the orders; returns STORE_EORDERS. */
int store_orders_differ(const char *name, struct fw_err *err);
/* Is a change of such a record a change of the orders? */
static inline bool store_is_order(struct fw_str kind)
{
	return fw_str_eq(kind, FW_STR(FW_RECORD_ORDER));
}
/*
 * By how much a change raises the version: 1 to 2^30, by chance. So a store that has lost its last
 * changes, by a failover or from a backup, does not come to a version again that had other orders.
 */
int store_orders_step(int64_t *step, struct fw_err *err);
/*
 * Commit: the only caller of the slot. If the orders are of another version, the matcher reloads
 * them, and it starts over. FW_EAGAIN: they kept changing.
 */
int store_commit(struct store *st, struct store_commit *c, struct fw_err *err);

/* A subscription as a row to load; borrows its strings. */
struct fw_feed store_feed_of_new(const struct fw_feed_new *f);
/* Copy the strings of a record, a feed or an entry into the arena; false: out of memory. */
bool fw_store_record_dup(struct fw_arena *a, struct fw_record *r);
bool fw_store_feed_dup(struct fw_arena *a, struct fw_feed *feed);
bool fw_store_entry_dup(struct fw_arena *a, struct fw_entry_row *entry);

#endif
