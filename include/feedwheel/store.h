/* SPDX-License-Identifier: ISC */
/*
 * A store: what callers use. It keeps feeds and when each is due, entries, visits, events, records.
 *
 *   - fw_store_open() finds the driver by the URL's scheme. The functions here check their arguments
 *     and call it. src/store/driver.h is what a driver implements; the schedule's shards and leases
 *     are there, for its one caller, the engine's owner of shards (src/engine/run/owner.h).
 *   - Every call blocks. One thread per store at a time; any number of stores and of processes.
 *   - Arguments are looked at during the call only. What a callback is shown lives until it returns;
 *     what goes into an arena lives as long as that.
 *   - Times are Unix milliseconds, UTC. Where a time may be 0 for "now", it is the store's clock.
 *   - A function that writes is one transaction, unless its comment says otherwise: all or nothing.
 *   - Returns 0 or a negative FW_E*, and one line in err (may be NULL) that names the store and the
 *     remedy:
 *         FW_EIO       the connection or the file broke: close, open again, retry
 *         FW_EAGAIN    busy for longer than busy_timeout_ms, or a deadlock: retry as it is
 *         FW_ENOTFOUND FW_EINVAL FW_ENOMEM; FW_EINVAL also: opened for reading only
 *     What is retried after FW_EIO or FW_EAGAIN stores nothing twice, even if the first try was
 *     stored.
 */
#ifndef FEEDWHEEL_STORE_H
#define FEEDWHEEL_STORE_H

#include "feedwheel/document.h"
#include "feedwheel/types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct fw_store;

#define FW_DUE_FIRST 1 /* ms: a due_at_ms before all others: a person asked for the feed */

/*
 * The learned delay of a host, between two requests to it. Throttled (429, 503): FW_PACE_MIN_MS at first, then
 * twice as long, up to FW_PACE_MAX_MS. Otherwise delay x FW_PACE_STEP_MS / (FW_PACE_STEP_MS + delay): a tenth of a
 * request a second more. From FW_PACE_NONE_MS down there is none.
 */
#define FW_PACE_MIN_MS 1000
#define FW_PACE_MAX_MS 600000
#define FW_PACE_STEP_MS 10000
#define FW_PACE_NONE_MS 50

/* ---- what is kept ---------------------------------------------------------------------------- */

enum fw_feed_status {
	FW_FEED_ACTIVE,
	FW_FEED_PAUSED,      /* by its owner */
	FW_FEED_GONE,        /* 410, or JSON Feed expired: not fetched any more, shown */
	FW_FEED_QUARANTINED, /* its visit killed a worker twice in a row: not fetched, shown */
};

enum fw_visit_kind {
	FW_VISIT_NONE,          /* never visited */
	FW_VISIT_OK,            /* a document was read */
	FW_VISIT_SAME,          /* 200, but the bytes are those of last time */
	FW_VISIT_NOT_MODIFIED,  /* 304 */
	FW_VISIT_HTTP,          /* another status; see http_status */
	FW_VISIT_DNS,
	FW_VISIT_CONNECT,
	FW_VISIT_TLS,
	FW_VISIT_TIMEOUT,
	FW_VISIT_PROTOCOL,      /* reset, truncated, not HTTP, unsolicited 304 */
	FW_VISIT_FORMAT,        /* not a feed */
	FW_VISIT_LIMIT,         /* too large, a decompression bomb, too many headers */
	FW_VISIT_BLOCKED,       /* the address guard refused it */
	FW_VISIT_REDIRECT,      /* a loop, too many, to another scheme */
	FW_VISIT_CRASH,         /* the visit killed its worker */
	FW_VISIT_GONE,          /* 410 */
	FW_VISIT_LOCAL,         /* our own fault (memory, file descriptors): nobody is charged */
	FW_VISIT_PUSHED,        /* no visit of ours: entries were pushed */
	FW_VISIT_KIND_N
};
/* "ok", "not_modified", "dns" ...: stable names, stored and printed. */
FW_API const char *fw_visit_kind_name(enum fw_visit_kind kind);
/* Did the server answer as it should, with a document or with "the same as before"? */
static inline bool fw_visit_succeeded(enum fw_visit_kind kind)
{
	return kind == FW_VISIT_OK || kind == FW_VISIT_SAME || kind == FW_VISIT_NOT_MODIFIED;
}
FW_API const char *fw_feed_status_name(enum fw_feed_status status);
/* Does it take pushed entries? A paused feed does: to pause is to send no requests. */
static inline bool fw_feed_takes_entries(enum fw_feed_status status)
{
	return status == FW_FEED_ACTIVE || status == FW_FEED_PAUSED;
}

/*
 * A feed and what is known of it. Members are in groups; an outcome says which groups changed
 * (FW_GROUP_*), and only these are written. The first group is always written: it is the one narrow
 * row an unchanged visit costs.
 */
struct fw_feed {
	int64_t id;
	struct fw_str url; /* as subscribed (or adopted after permanent redirects); unique */

	/* the schedule: always written */
	enum fw_feed_status status;
	int64_t due_at_ms;
	struct fw_str why;           /* reasons of due_at_ms, for people */
	int64_t last_visit_ms;       /* 0: never */
	int64_t last_ok_ms;          /* last 200 or 304; 0: never */
	enum fw_visit_kind last_kind;
	int http_status;             /* of the last visit; 0: none */
	uint32_t fail_n;             /* failures in a row */
	uint32_t crash_n;            /* worker deaths in a row */
	int64_t expect_us;           /* expected duration: exponentially weighted average; 0: unknown */
	int64_t expect_dev_us;       /* and its mean deviation */
	int64_t expect_parts;        /* how expect_us is made up (sched/due.h); opaque to the store; 0: unknown */

	/* FW_GROUP_ERROR */
	struct fw_str error;         /* words of the last failure; absent: none */

	/* FW_GROUP_VALIDATORS: one atomic set, byte for byte, good for validator_url only */
	struct fw_str validator_url, etag, last_modified;
	int64_t validators_ms;       /* when they were given; 0: none */
	uint64_t body_hash;          /* of the last document, decoded; 0: none */

	/* FW_GROUP_META: from the document */
	struct fw_str title, home_page_url, description, language, icon;
	enum fw_format format;
	struct fw_str hub, topic;    /* WebSub */
	struct fw_str extra;         /* JSON object, or absent */

	/* FW_GROUP_RHYTHM: what the schedule learned; opaque to the store */
	struct fw_str rhythm;

	/* FW_GROUP_REDIRECT */
	struct fw_str redirect_url;  /* a permanent redirect in sight, not yet adopted */
	int64_t redirect_since_ms;
	uint32_t redirect_n;         /* visits that showed it; 0: another feed is there. See fw_feed_is_named() */

	/*
	 * FW_GROUP_HOST: whose host limit it counts against, where that is not what fw_store_host()
	 * says; absent: that. An outcome that changes it moves the feed to that host.
	 */
	struct fw_str host_key;

	/*
	 * FW_GROUP_URL: an outcome may change url itself (adoption); when another feed has it
	 * outcome.rc is FW_EINVAL and the rest of the outcome is written
	 */

	/* the owner's (subscribe, feed_set): never written by commit */
	struct fw_str user_title, folder, username, password;
	int64_t interval_ms;         /* fixed by the owner; 0: by the schedule */
	int64_t push_until_ms;       /* WebSub's: until then a hub has promised to push what is new; 0: none has */
	int64_t created_ms;

	/* kept by the store */
	int64_t last_new_ms;         /* when it last had a new entry; 0: never */
	int64_t entry_n;             /* fw_store_feed_find() and fw_store_feed_list() only */
};

enum {
	FW_GROUP_ERROR = 1, FW_GROUP_VALIDATORS = 2, FW_GROUP_META = 4, FW_GROUP_RHYTHM = 8, FW_GROUP_REDIRECT = 16,
	FW_GROUP_URL = 32, FW_GROUP_HOST = 64, /* never both in one outcome */
};

/*
 * Does the feed's document name redirect_url as its address, and no request was redirected there
 * yet? Then redirect_n counts the documents, from FW_REDIRECT_NAMED on. That alone moves no feed.
 */
#define FW_REDIRECT_NAMED 1000000
static inline bool fw_feed_is_named(const struct fw_feed *feed)
{
	return feed->redirect_n > FW_REDIRECT_NAMED;
}

/* An entry as stored. content is the original: sanitise on the way out. */
struct fw_entry_row {
	int64_t id;                  /* the store's, rising in order of storing: a cursor */
	int64_t feed_id;
	unsigned char key[16];       /* unique within the feed */
	uint64_t hash;               /* of what a reader would see change */
	struct fw_str guid, url, title, author, summary;
	struct fw_str content, content_base;
	enum fw_text_type content_type;
	int64_t published_ms, updated_ms; /* as the document says, or FW_NO_DATE */
	int64_t seen_ms;             /* first stored */
	int64_t changed_ms;          /* last stored with another hash; = seen_ms when never */
	uint32_t revision;           /* 1, 2, ... */
	struct fw_str extra;         /* JSON object with the item's other members, or absent */
	struct fw_str feed_title, feed_url; /* reading only */
};

/* The date by which newest comes first: published, else updated, when known; at the latest when first seen. */
static inline int64_t fw_store_entry_date(const struct fw_entry_row *e, int64_t seen_ms)
{
	int64_t date_ms = e->published_ms != FW_NO_DATE ? e->published_ms : e->updated_ms;

	return date_ms != FW_NO_DATE && date_ms < seen_ms ? date_ms : seen_ms;
}

/* A key that a feed had: of an entry, or of one that retention took. */
struct fw_entry_key {
	int64_t feed_id;
	unsigned char key[16];
	uint64_t hash;
	int64_t entry_id;            /* 0: retention took it */
};

/* One visit: what it took. Times in microseconds from the start of the request; 0 when the phase was not reached. */
struct fw_visit {
	int64_t id;                  /* the store's, rising in order of storing: a cursor; visit_list and load only */
	int64_t feed_id;
	int64_t run_id;              /* of the run it belongs to; 0: none */
	int64_t at_ms;               /* request began */
	enum fw_visit_kind kind;
	int http_status;
	uint32_t hops;               /* redirects followed */
	int32_t slot;                /* which of the transfer slots; -1 unknown */
	uint32_t lateness_ms;        /* at_ms - due_at_ms, capped */
	int64_t dns_us, connect_us, tls_us, first_byte_us, total_us; /* ends of the phases */
	int64_t queue_us;            /* duration: from the claim to the request */
	int64_t parse_us;            /* duration */
	int64_t store_us;            /* duration: from the end of the parse to the beginning of its commit */
	uint64_t wire_bytes, body_bytes;
	uint32_t item_n, new_n, changed_n; /* new_n and changed_n are the store's finding */
	struct fw_str error;
	struct fw_str feed_url;      /* reading only */
};

/*
 * What each phase took: name look-up, connection, TLS, waiting for the first byte, body. 0: not
 * reached. What was spent in vain belongs to the phase that was under way.
 */
#define FW_VISIT_PHASES 5
static inline void fw_visit_phases(const struct fw_visit *v, int64_t part_us[FW_VISIT_PHASES])
{
	enum { NAME, CONNECT, TLS, WAIT, BODY };
	const int64_t end_us[FW_VISIT_PHASES] = {v->dns_us, v->connect_us, v->tls_us, v->first_byte_us, v->total_us};
	int64_t from_us = 0, vain_us;

	for (int i = 0; i < FW_VISIT_PHASES; i++) {
		int64_t until_us = end_us[i] < v->total_us ? end_us[i] : v->total_us;

		part_us[i] = until_us > from_us ? until_us - from_us : 0;
		from_us += part_us[i];
	}
	if (v->first_byte_us)
		return;
	vain_us = part_us[BODY];
	part_us[BODY] = 0;
	if (v->kind == FW_VISIT_DNS)
		part_us[NAME] += vain_us;
	else if (v->kind == FW_VISIT_TLS)
		part_us[TLS] += vain_us;
	else
		part_us[v->kind == FW_VISIT_CONNECT || !v->connect_us ? CONNECT : WAIT] += vain_us;
}

/* A usage event (somebody has seen an entry, say), as the server takes them. */
struct fw_event {
	int64_t id;                  /* the sender's: unique, rising with time (base/ids.h) */
	struct fw_str property;
	int64_t section, item;       /* columns property_section, property_id */
	struct fw_str remote_ip;     /* as text; empty: unknown */
	int64_t stamp_ms;            /* column stamp */
};

/* A dead letter: an event that the store refused. */
struct fw_dead_event {
	int64_t id;
	struct fw_str row;           /* JSON object with the members of table incoming */
	struct fw_str reason;
	int64_t at_ms;
};

/*
 * A small thing of one of feedwheel's parts, kept beside the feeds: an access token, the answer to
 * an Idempotency-Key.
 */
#define FW_RECORD_KIND_MAX 32
#define FW_RECORD_KEY_MAX 255
#define FW_RECORD_VALUE_MAX 65535
struct fw_record {
	struct fw_str kind;          /* whose: a word of a-z, 0-9 and _, such as "token" */
	struct fw_str key;           /* bytes; unique among those of its kind, not empty */
	struct fw_str value;         /* bytes; may be empty */
	int64_t at_ms;               /* when it was put */
	int64_t until_ms;            /* from then on prune may take it; FW_NO_DATE: never */
};

/* ---- life ------------------------------------------------------------------------------------ */

enum {
	FW_STORE_CREATE = 1,   /* make it when it is not there */
	FW_STORE_READ = 2,     /* will not write */
};

struct fw_store_config {
	const char *url;          /* sqlite:PATH, memory:, postgres://... */
	unsigned flags;
	int64_t busy_timeout_ms;  /* 0: 10,000 */
	size_t cache_bytes;       /* 0: the driver's default */
	bool relaxed;             /* may lose the last commits on power loss, never on a crash of ours */
};

/* ---- the schedule ---------------------------------------------------------------------------- */

enum fw_host_mood { /* what an outcome says of its host */
	FW_HOST_UNKNOWN,  /* nothing: the learned delay stays */
	FW_HOST_FINE,     /* it answered: the delay shrinks */
	FW_HOST_STRAINED, /* 429, 503: the delay doubles */
};

/* The learned delay after such an outcome (FW_PACE_*). */
static inline int64_t fw_store_pace(int64_t pace_ms, enum fw_host_mood mood)
{
	pace_ms = pace_ms < 0 ? 0 : pace_ms > FW_PACE_MAX_MS ? FW_PACE_MAX_MS : pace_ms;
	if (mood == FW_HOST_STRAINED && 2 * pace_ms < FW_PACE_MIN_MS)
		return FW_PACE_MIN_MS;
	if (mood == FW_HOST_STRAINED)
		return 2 * pace_ms > FW_PACE_MAX_MS ? FW_PACE_MAX_MS : 2 * pace_ms;
	if (mood == FW_HOST_UNKNOWN)
		return pace_ms;
	pace_ms = pace_ms * FW_PACE_STEP_MS / (FW_PACE_STEP_MS + pace_ms);
	return pace_ms > FW_PACE_NONE_MS ? pace_ms : 0;
}

struct fw_outcome { /* of a visit, or of a push */
	int64_t feed_id;
	int64_t host_id;          /* as it was read; 0: of a push, which knows neither it nor the due time */
	int64_t was_due_ms;       /* as it was read */
	const struct fw_feed *feed; /* the state to write: the schedule's members always, others by groups */
	unsigned groups;          /* FW_GROUP_* */
	/*
	 * in; new_n and changed_n are the store's finding. kind FW_VISIT_NONE: none was made, only
	 * the state is written
	 */
	struct fw_visit visit;
	const struct fw_entry_row *entries;
	size_t entry_n;
	/*
	 * Out: 0; FW_ENOTFOUND: the feed was removed, nothing of it was written; FW_EINVAL: url is
	 * another feed's, the rest is written. 0 and nothing is written where the feed's
	 * last_visit_ms is that of the outcome already: it was stored before, and its answer was
	 * lost. A push is always stored, but for its visit, where one of a push at that time is
	 * there and none of its entries is new or changed.
	 */
	int rc;
};

struct fw_beat { /* a worker's heartbeat, for people and metrics; its lease is another thing */
	const char *worker;
	int64_t pid, started_ms, run_id;
	uint64_t visits, new_entries, failures;
	uint32_t in_flight, slots;
	int64_t at_ms;               /* reading only */
};

/* ---- queries --------------------------------------------------------------------------------- */

struct fw_feed_new {
	struct fw_str url, user_title, folder, home_page_url, username, password;
	int64_t interval_ms;
	int64_t due_at_ms;           /* 0: now */
	int64_t id;                  /* out */
	bool existed;                /* out: subscribed already; nothing was changed */
};

/* Changes by the owner; only members whose bit is set in `what`. */
enum {
	FW_SET_STATUS = 1, FW_SET_TITLE = 2, FW_SET_FOLDER = 4, FW_SET_INTERVAL = 8, FW_SET_DUE = 16, FW_SET_AUTH = 32,
	FW_SET_CRASH = 64, /* crash_n */
	FW_SET_PUSH = 128, /* push_until_ms */
};

struct fw_feed_query {
	int status;                  /* enum fw_feed_status, or -1: any */
	bool failing;                /* fail_n > 0 only */
	struct fw_str folder;        /* absent: any */
	struct fw_str match;         /* part of url or title, ASCII case folded; absent: any */
	int64_t after_id;            /* cursor */
	size_t limit;                /* 0: all */
	bool by_due;                 /* order by due_at_ms instead of id (no cursor then) */
};

struct fw_entry_query {
	int64_t feed_id;             /* 0: all */
	int64_t since_ms;            /* stored at or after; 0: any */
	struct fw_str search;        /* words that all have to occur (prefix with *, "phrase"); absent: none */
	int64_t after_id, before_id; /* cursors by id, both exclusive; 0: none */
	int64_t behind_id, behind_date_ms; /* the cursor of newest first: id (0: none) and date of the last one seen */
	size_t limit;                /* 0: all */
	bool oldest_first;           /* by id; default: newest first, by fw_store_entry_date() */
	bool content;                /* fill content (and content_base) too */
	bool key;                    /* fill key and hash too: in a long list of one feed that is not cheap */
	/*
	 * Out, with search, before the first entry is shown: how many entries the search index did
	 * not hold; 0: the answer is complete. NULL: not wanted
	 */
	int64_t *unindexed_n;
};

/* Is it one entry that is asked for, by its number? */
static inline bool fw_store_entry_is_one(const struct fw_entry_query *q)
{
	return q->before_id > 0 && q->after_id == q->before_id - 2;
}

/* A feed that is due, as narrow as can be. */
struct fw_due_row {
	int64_t feed_id;
	int64_t host_id;             /* the same for all feeds of one host */
	int64_t due_at_ms, expect_us, expect_dev_us;
	int64_t last_visit_ms;       /* 0: never */
};

/*
 * In a backlog: what a visit now is worth against others'. It is how many of its own intervals a
 * feed is late, (now - due) / (due - last visit): the schedule makes intervals such that about as
 * much is to be expected in each. It grows with time for every feed, so each has its turn; where
 * work is always more than can be done, all come late by the same part of their intervals. Dates in
 * any order; an interval of less than a second counts as one: such a feed was made due by hand. Not
 * for a feed that was never visited, which has none.
 */
static inline double fw_late_intervals(int64_t now_ms, int64_t due_at_ms, int64_t last_visit_ms)
{
	double late = (double)now_ms - (double)due_at_ms, interval = (double)due_at_ms - (double)last_visit_ms;

	return (late > 0 ? late : 0) / (interval > 1000 ? interval : 1000);
}

struct fw_record_query {
	struct fw_str kind;          /* absent: all, in order of kind */
	struct fw_str after_key;     /* cursor; absent: from the first on */
	struct fw_str after_kind;    /* and its kind, when all are asked for */
	size_t limit;                /* 0: all */
};

struct fw_visit_query {
	int64_t feed_id;             /* 0: all */
	int64_t run_id;              /* 0: all */
	int64_t since_ms;
	size_t limit;                /* newest first; 0: all */
	bool oldest_first;           /* by id; of all feeds only */
	int64_t after_id;            /* cursor; with oldest_first only */
};

struct fw_store_stats {
	int64_t feed_n, active_n, due_n, failing_n, gone_n, quarantined_n, paused_n;
	int64_t entry_n, visit_n, unindexed_n;
	int64_t next_due_ms;         /* FW_NO_DATE: nothing */
	int64_t size_bytes;          /* -1: unknown */
	int64_t schema;
	int64_t last_feed_id, last_entry_id, last_visit_id; /* the highest in use; 0: none */
};

/*
 * A step of tens of ms: what is older goes (0: nothing of that sort does), and the search index
 * catches up.
 */
struct fw_prune {
	int64_t now_ms;
	int64_t visits_before_ms;
	int64_t entries_before_ms; /* neither new nor changed since; their keys stay */
	int64_t events_before_ms;  /* dead letters too */
	bool records;              /* those whose until_ms <= now_ms */
	bool index;                /* a step of the search index */
	bool more;                 /* out: call again */
	int64_t visit_n, entry_n, event_n, record_n; /* out: added to */
};

enum fw_control_kind {
	FW_CONTROL_NONE, FW_CONTROL_STOP, FW_CONTROL_PAUSE, FW_CONTROL_RESUME, FW_CONTROL_RELOAD,
};

struct fw_control {
	int64_t id;                  /* rising */
	enum fw_control_kind kind;
	int64_t created_ms;
	bool paused;                 /* asked with after_id < 0 only: the newest PAUSE or RESUME is a PAUSE */
};

/*
 * Rows as another store had them, with their ids. What is there already (a feed's id, an entry's id
 * or key, a key, a visit's id) is passed over, so that a load may be repeated. A feed is written
 * with all groups, the owner's members and last_new_ms; an active one is due as it says. entry_n is
 * not looked at. Entries keep key, hash, seen_ms, changed_ms and revision. A feed's visits come
 * oldest first, in this load and from load to load. Feeds come before what belongs to them: in the
 * same load or an earlier one. New ids go on above the highest.
 */
struct fw_load {
	const struct fw_feed *feed;
	const struct fw_entry_row *entry;
	const struct fw_entry_key *key; /* of entries that retention took: entry_id is not looked at */
	const struct fw_visit *visit;
	size_t feed_n, entry_n, key_n, visit_n;
};

/*
 * Callbacks: what they are shown lives until they return. Anything but 0 stops the walk and is
 * returned. They must not call the store they are called from.
 */
typedef int fw_feed_cb(void *ctx, const struct fw_feed *feed);
typedef int fw_entry_cb(void *ctx, const struct fw_entry_row *row);
typedef int fw_visit_cb(void *ctx, const struct fw_visit *visit);
typedef int fw_beat_cb(void *ctx, const struct fw_beat *beat);
typedef int fw_event_cb(void *ctx, const struct fw_event *event);
typedef int fw_dead_event_cb(void *ctx, const struct fw_dead_event *event);
typedef int fw_key_cb(void *ctx, const struct fw_entry_key *key);
typedef int fw_record_cb(void *ctx, const struct fw_record *record);
typedef int fw_due_cb(void *ctx, const struct fw_due_row *row);
/* For `doctor`: name ("durability"), 0 fine / 1 note / 2 broken, what was found, the remedy ("" when fine). */
typedef void fw_inspect_cb(void *ctx, const char *name, int level, const char *found, const char *remedy);

/* ---- the store as a whole -------------------------------------------------------------------- */

/*
 * NULL in *out on error. FW_EUNSUP: this build has no driver for the URL. FW_ENOTFOUND: nothing is
 * there, and FW_STORE_CREATE is not set. FW_EVERSION: its schema is newer than this program.
 */
FW_API FW_MUST_CHECK int fw_store_open(const struct fw_store_config *cfg, struct fw_store **out, struct fw_err *err);
/* NULL is fine. */
FW_API void fw_store_close(struct fw_store *st);
/* The driver's: "sqlite". Not to be freed. */
FW_API const char *fw_store_name(const struct fw_store *st);
/* The name of the i-th driver built in, NULL behind the last. */
FW_API const char *fw_store_driver_at(size_t i);
/* The name of the i-th driver that this build goes without, NULL behind the last. */
FW_API const char *fw_store_absent_at(size_t i);
/* Does the URL name a server? It may be away for a while, and others may use it too. */
FW_API bool fw_store_is_remote(const char *url);
/* Is it no URL but the name of an SQLite file: without a ":", and with .db, .sqlite or .sqlite3 at its end? */
bool fw_store_is_file(const char *word);
/* A URL for people and logs: "***" for every password, control characters escaped, cut to cap. */
FW_API void fw_store_url_show(const char *url, char *out, size_t cap);
/* Is it there? One short question to the server. */
FW_API FW_MUST_CHECK int fw_store_ping(struct fw_store *st, struct fw_err *err);
/* The store's clock. */
FW_API FW_MUST_CHECK int fw_store_clock(struct fw_store *st, int64_t *now_ms, struct fw_err *err);
/*
 * All figures, in one pass over the narrow rows: 1,000,000 feeds in a second. now_ms is not looked
 * at: the store's clock counts.
 */
FW_API FW_MUST_CHECK int fw_store_stats(struct fw_store *st, struct fw_store_stats *out,
	struct fw_err *err);
/* For `doctor`: the version of the server, how durable a commit is, settings that hurt. */
FW_API FW_MUST_CHECK int fw_store_inspect(struct fw_store *st, fw_inspect_cb *cb, void *ctx, struct fw_err *err);
/* Each fault of what is stored, in words. Reads everything. */
FW_API FW_MUST_CHECK int fw_store_check(struct fw_store *st, void (*cb)(void *ctx, const char *finding),
	void *ctx, struct fw_err *err);
/*
 * Wait until another connection changed a schedule or put a control message (*changed), until
 * wake_fd is readable (-1: none), or for timeout_ms. May return early.
 */
FW_API FW_MUST_CHECK int fw_store_wait(struct fw_store *st, int wake_fd, int64_t timeout_ms, bool *changed,
	struct fw_err *err);
/*
 * One step of retention and of the search index, tens of ms; p->more: call again. Not all of a step
 * need be one transaction.
 */
FW_API FW_MUST_CHECK int fw_store_prune(struct fw_store *st, struct fw_prune *p, struct fw_err *err);

/* ---- feeds ----------------------------------------------------------------------------------- */

/* Subscribe feeds: id and existed are out. FW_EINVAL: an address names no host; then none was subscribed. */
FW_API FW_MUST_CHECK int fw_store_subscribe(struct fw_store *st, struct fw_feed_new *feed, size_t n,
	struct fw_err *err);
/* Remove a feed, its entries and its visits. FW_ENOTFOUND. */
FW_API FW_MUST_CHECK int fw_store_unsubscribe(struct fw_store *st, int64_t feed_id, struct fw_err *err);
/* Move the entries that `into` lacks, by key and by guid, over to it; then remove `from`. FW_ENOTFOUND: either. */
FW_API FW_MUST_CHECK int fw_store_feed_merge(struct fw_store *st, int64_t from_id, int64_t into_id,
	struct fw_err *err);
/* By id, or by url where id is 0. Strings go into the arena. FW_ENOTFOUND. */
FW_API FW_MUST_CHECK int fw_store_feed_find(struct fw_store *st, int64_t id, struct fw_str url,
	struct fw_arena *a, struct fw_feed *out, struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_feed_list(struct fw_store *st, const struct fw_feed_query *q, fw_feed_cb *cb,
	void *ctx, struct fw_err *err);
/*
 * Members of *feed whose FW_SET_* bit is set; a due time that is set is seen by its worker within a
 * heartbeat. FW_ENOTFOUND.
 */
FW_API FW_MUST_CHECK int fw_store_feed_set(struct fw_store *st, const struct fw_feed *feed, unsigned what,
	struct fw_err *err);
/* Rows as another store had them. FW_EINVAL: a feed's id or url is that of another feed here. */
FW_API FW_MUST_CHECK int fw_store_load(struct fw_store *st, const struct fw_load *rows, struct fw_err *err);
/*
 * Which host a feed of this URL belongs to: "example.org"; "blogspot.com" for
 * "someone.blogspot.com". False: the URL names none.
 */
FW_API bool fw_store_host(struct fw_str url, char *out, size_t cap);
/* Which host this feed belongs to: its host_key, else the host of its url. */
FW_API bool fw_store_feed_host(const struct fw_feed *feed, char *out, size_t cap);

/* ---- the schedule ---------------------------------------------------------------------------- */

/*
 * Active feeds with due_at_ms <= due_before_ms, by due time; limit 0: all. Reads them all and sorts
 * them: 50 MB for 1,000,000.
 */
FW_API FW_MUST_CHECK int fw_store_due_list(struct fw_store *st, int64_t due_before_ms, size_t limit,
	fw_due_cb *cb, void *ctx, struct fw_err *err);
/* How many of these there are, and the first one's due time (FW_NO_DATE: none). Reads them all. */
FW_API FW_MUST_CHECK int fw_store_pending(struct fw_store *st, int64_t due_before_ms, int64_t *n,
	int64_t *wake_ms, struct fw_err *err);
/*
 * Store what needs no lease: pushed entries (outcomes of kind FW_VISIT_PUSHED, groups none but
 * FW_GROUP_META; the feed's due time stays as it is), or the first visit of a feed (last_visit_ms
 * is 0), by itself (n 1), with host_id, was_due_ms and its whole state; if the feed was visited
 * meanwhile, it is taken as a push. Out: rc, visit.new_n and visit.changed_n of each outcome.
 */
FW_API FW_MUST_CHECK int fw_store_push(struct fw_store *st, struct fw_outcome *outcome, size_t n, struct fw_err *err);
/*
 * A worker died: its shards are free at once. crashed_feed_id: the feed whose visit killed it; its
 * crash_n rises, and the second time in a row it is quarantined; 0: none.
 */
FW_API FW_MUST_CHECK int fw_store_reap(struct fw_store *st, const char *worker, int64_t crashed_feed_id,
	struct fw_err *err);
/* A heartbeat is shown for a day. */
FW_API FW_MUST_CHECK int fw_store_beat_put(struct fw_store *st, const struct fw_beat *beat, int64_t now_ms,
	struct fw_err *err);
/* Each worker's last heartbeat, by name, unless it is older than since_ms. */
FW_API FW_MUST_CHECK int fw_store_beat_list(struct fw_store *st, int64_t since_ms, fw_beat_cb *cb, void *ctx,
	struct fw_err *err);
/*
 * For all workers. A message goes after a week; whether all are paused stays. Not one transaction:
 * a PAUSE may be seen before its message.
 */
FW_API FW_MUST_CHECK int fw_store_control_put(struct fw_store *st, enum fw_control_kind kind, int64_t now_ms,
	struct fw_err *err);
/*
 * The oldest message after this id; kind FW_CONTROL_NONE: none. after_id < 0: the newest message's
 * id (0: none), kind FW_CONTROL_NONE, and whether all are paused.
 */
FW_API FW_MUST_CHECK int fw_store_control_take(struct fw_store *st, int64_t after_id, struct fw_control *out,
	struct fw_err *err);

/* ---- entries, visits ------------------------------------------------------------------------- */

/* The owner of a cursor by id misses none: no entry appears below an id that was shown. */
FW_API FW_MUST_CHECK int fw_store_entry_list(struct fw_store *st, const struct fw_entry_query *q,
	fw_entry_cb *cb, void *ctx, struct fw_err *err);
/* Keys of the feeds with these ids, feed by feed in order of id; within one in any order. */
FW_API FW_MUST_CHECK int fw_store_key_list(struct fw_store *st, int64_t first_feed_id, int64_t last_feed_id,
	fw_key_cb *cb, void *ctx, struct fw_err *err);
/* Newest first, or oldest first by id. */
FW_API FW_MUST_CHECK int fw_store_visit_list(struct fw_store *st, const struct fw_visit_query *q,
	fw_visit_cb *cb, void *ctx, struct fw_err *err);

/* ---- events ---------------------------------------------------------------------------------- */

/*
 * An id that is there already is passed over. FW_EINVAL: at least one will never be taken as it is;
 * then none was stored.
 */
FW_API FW_MUST_CHECK int fw_store_event_put(struct fw_store *st, const struct fw_event *event, size_t n,
	struct fw_err *err);
/* By id, from above after_id on; limit 0: all. */
FW_API FW_MUST_CHECK int fw_store_event_list(struct fw_store *st, int64_t after_id, size_t limit,
	fw_event_cb *cb, void *ctx, struct fw_err *err);
/* Keep a dead letter, in place of the one with that id. */
FW_API FW_MUST_CHECK int fw_store_event_bury(struct fw_store *st, const struct fw_dead_event *event,
	struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_event_dead_list(struct fw_store *st, int64_t after_id, size_t limit,
	fw_dead_event_cb *cb, void *ctx, struct fw_err *err);
/* Remove dead letters; one that is not there is passed over. */
FW_API FW_MUST_CHECK int fw_store_event_unbury(struct fw_store *st, const struct fw_dead_event *event, size_t n,
	struct fw_err *err);

/* ---- records --------------------------------------------------------------------------------- */

/*
 * Put it over the one of that kind and key. if_absent: not over one that is there and has not run
 * out at r->at_ms; then *was is true. Of many that try at once one puts it. was may be NULL.
 */
FW_API FW_MUST_CHECK int fw_store_record_put(struct fw_store *st, const struct fw_record *r, bool if_absent,
	bool *was, struct fw_err *err);
/* Strings go into the arena. One that has run out is there until it is pruned. FW_ENOTFOUND. */
FW_API FW_MUST_CHECK int fw_store_record_get(struct fw_store *st, struct fw_str kind, struct fw_str key,
	struct fw_arena *a, struct fw_record *out, struct fw_err *err);
/* By kind and key, compared byte by byte. */
FW_API FW_MUST_CHECK int fw_store_record_list(struct fw_store *st, const struct fw_record_query *q,
	fw_record_cb *cb, void *ctx, struct fw_err *err);
/* value: only if this is its value; absent: whatever it is. FW_ENOTFOUND. */
FW_API FW_MUST_CHECK int fw_store_record_remove(struct fw_store *st, struct fw_str kind, struct fw_str key,
	struct fw_str value, struct fw_err *err);

#ifdef __cplusplus
}
#endif
#endif
