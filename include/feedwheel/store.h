/* SPDX-License-Identifier: ISC */
/*
 * A store keeps feeds and their schedule, entries, visits, events and records. This header is the
 * interface for callers.
 *
 *   - fw_store_open() selects the driver by the URL's scheme. The functions here check arguments
 *     and call the driver. src/store/driver.h is the contract of a driver; the shards and leases of
 *     the schedule are there, because only the engine's owner of shards (src/engine/run/owner.h)
 *     uses them.
 *   - Every call blocks. One thread per store at a time; any number of stores and of processes.
 *   - Arguments are borrowed for the call. Rows passed to a callback are borrowed until it returns.
 *     Strings returned in an arena live as long as the arena.
 *   - Times are Unix milliseconds, UTC. Where a time may be 0 for "now", the store's clock is used.
 *   - A function that writes is one transaction, unless its comment says otherwise: all or nothing.
 *   - Returns 0 or a negative FW_E*, and one line in err (may be NULL) that names the store and the
 *     remedy:
 *         FW_EIO       the connection or the file broke, or the server takes no writes (a replica):
 *                      close, open again, retry
 *         FW_EUNUSABLE the store is damaged, or this user lacks a right to it: retrying does not
 *                      help, a person must mend it
 *         FW_EAGAIN    busy for longer than busy_timeout_ms, or a deadlock: retry unchanged
 *         FW_ENOTFOUND FW_EINVAL FW_ENOMEM; FW_EINVAL also: the store is open for reading only
 *     Writes are idempotent: a retry after FW_EIO or FW_EAGAIN stores nothing twice, even if the
 *     first try was stored.
 */
#ifndef FEEDWHEEL_STORE_H
#define FEEDWHEEL_STORE_H

#include "feedwheel/document.h"
#include "feedwheel/types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct fw_store;
struct fw_offset_clock;

#define FW_DUE_FIRST 1 /* ms: the due_at_ms of highest priority, for a poll that a person requested */

/*
 * The learned delay of a host: the backoff between two requests to it. A throttled response (429,
 * 503) sets FW_LEARNED_DELAY_MIN_MS, and each further one doubles it, up to
 * FW_LEARNED_DELAY_MAX_MS. Any other response shrinks it to delay x FW_LEARNED_DELAY_STEP_MS /
 * (FW_LEARNED_DELAY_STEP_MS + delay), which adds 0.1 requests/s to the rate. At
 * FW_LEARNED_DELAY_NONE_MS or less the delay becomes 0.
 */
#define FW_LEARNED_DELAY_MIN_MS 1000
#define FW_LEARNED_DELAY_MAX_MS 600000
#define FW_LEARNED_DELAY_STEP_MS 10000
#define FW_LEARNED_DELAY_NONE_MS 50

/* ---- stored rows ----------------------------------------------------------------------------- */

enum fw_feed_status {
	FW_FEED_ACTIVE,
	FW_FEED_PAUSED,      /* by the user */
	FW_FEED_GONE,        /* 410, or JSON Feed "expired": no longer fetched */
	FW_FEED_QUARANTINED, /* its visits killed two workers in a row: no longer fetched */
};

enum fw_visit_kind {
	FW_VISIT_NONE,         /* never visited */
	FW_VISIT_OK,           /* a document was parsed */
	FW_VISIT_SAME,         /* 200, body identical to the last one */
	FW_VISIT_NOT_MODIFIED, /* 304 */
	FW_VISIT_HTTP,         /* another status: see http_status */
	FW_VISIT_DNS,
	FW_VISIT_CONNECT,
	FW_VISIT_TLS,
	FW_VISIT_TIMEOUT,
	FW_VISIT_PROTOCOL, /* reset, truncated, not HTTP, unsolicited 304 */
	FW_VISIT_FORMAT,   /* not a feed */
	FW_VISIT_LIMIT,    /* too large, a decompression bomb, too many headers */
	FW_VISIT_BLOCKED,  /* the address guard refused it */
	FW_VISIT_REDIRECT, /* a loop, too many, to another scheme */
	FW_VISIT_CRASH,    /* the visit killed its worker */
	FW_VISIT_GONE,     /* 410 */
	FW_VISIT_LOCAL,    /* local failure (memory, file descriptors): not counted against the feed or host */
	FW_VISIT_PUSHED,   /* not a poll: a client pushed entries */
	FW_VISIT_KIND_N
};
/* "ok", "not_modified", "dns" ...: stable names, printed and used in queries. */
FW_API const char *fw_visit_kind_name(enum fw_visit_kind kind);
/* Did the server return a document, or confirm that it is unchanged? */
static inline bool fw_visit_succeeded(enum fw_visit_kind kind)
{
	return kind == FW_VISIT_OK || kind == FW_VISIT_SAME || kind == FW_VISIT_NOT_MODIFIED;
}
FW_API const char *fw_feed_status_name(enum fw_feed_status status);
/* Does a feed accept pushed entries? A paused feed does: pausing stops requests only. */
static inline bool fw_feed_takes_entries(enum fw_feed_status status)
{
	return status == FW_FEED_ACTIVE || status == FW_FEED_PAUSED;
}

/*
 * A feed and its state. The members form groups. An outcome names the groups that changed
 * (FW_GROUP_*), and only these are written. The first group, the schedule, is always written: an
 * unchanged visit costs that one narrow row.
 */
struct fw_feed {
	int64_t id;
	struct fw_str url; /* as subscribed, or after redirect adoption; unique */

	/* the schedule: always written */
	enum fw_feed_status status;
	int64_t due_at_ms;
	struct fw_str why;     /* the reason for due_at_ms, for people */
	int64_t last_visit_ms; /* 0: never */
	int64_t last_ok_ms;    /* last 200 or 304; 0: never */
	enum fw_visit_kind last_kind;
	int http_status;       /* of the last visit; 0: none */
	uint32_t fail_n;       /* failures in a row */
	uint32_t crash_n;      /* worker deaths in a row */
	int64_t expect_us;     /* expected duration: exponentially weighted average; 0: unknown */
	int64_t expect_dev_us; /* mean deviation of the duration */
	int64_t expect_parts;  /* expect_us by phase (sched/due.h); opaque to the store; 0: unknown */

	/* FW_GROUP_ERROR */
	struct fw_str error; /* text of the last failure; absent: none */

	/* FW_GROUP_VALIDATORS: one set, byte for byte, valid for validator_url only */
	struct fw_str validator_url, etag, last_modified;
	int64_t validators_ms; /* when the server sent them; 0: none */
	uint64_t body_hash;    /* of the last document, decoded; 0: none */

	/* FW_GROUP_META: from the document */
	struct fw_str title, home_page_url, description, language, icon;
	enum fw_format format;
	struct fw_str hub, topic; /* WebSub */
	struct fw_str extra;      /* JSON object, or absent */

	/* FW_GROUP_RHYTHM: the learned publishing rhythm; opaque to the store */
	struct fw_str rhythm;

	/* FW_GROUP_REDIRECT */
	struct fw_str redirect_url; /* a permanent redirect, not yet adopted */
	int64_t redirect_since_ms;
	/*
	 * Visits with this redirect; 0: the target is another feed. See
	 * fw_feed_redirect_is_named().
	 */
	uint32_t redirect_n;

	/*
	 * FW_GROUP_HOST: the host whose limits apply, if it differs from fw_store_host(url);
	 * absent: it does not. An outcome that changes it moves the feed to that host.
	 */
	struct fw_str host_key;

	/*
	 * FW_GROUP_URL: an outcome may change url (redirect adoption). If another feed has the url,
	 * outcome.rc is FW_EINVAL and the rest of the outcome is written.
	 */

	/* set by the user (subscribe, feed_set); never written by a commit */
	struct fw_str user_title, folder, username, password;
	int64_t interval_ms;   /* fixed polling interval; 0: chosen by the schedule */
	int64_t push_until_ms; /* WebSub: end of the subscription at the hub; 0: none */
	int64_t created_ms;

	/* maintained by the store */
	int64_t last_new_ms; /* when a new entry was last stored; 0: never */
	int64_t entry_n;     /* fw_store_feed_find() and fw_store_feed_list() only */
};

enum {
	FW_GROUP_ERROR = 1,
	FW_GROUP_VALIDATORS = 2,
	FW_GROUP_META = 4,
	FW_GROUP_RHYTHM = 8,
	FW_GROUP_REDIRECT = 16,
	FW_GROUP_URL = 32,
	FW_GROUP_HOST = 64, /* never URL and HOST in one outcome */
};

/*
 * Is redirect_url only an address that the feed's documents name, without any HTTP redirect to it?
 * Then redirect_n - FW_REDIRECT_NAMED counts these documents. Such an address alone is not adopted.
 */
#define FW_REDIRECT_NAMED 1000000
static inline bool fw_feed_redirect_is_named(const struct fw_feed *feed)
{
	return feed->redirect_n > FW_REDIRECT_NAMED;
}

static inline bool fw_feed_has_login(const struct fw_feed *feed)
{
	return feed->username.len || feed->password.len;
}

/* An entry as stored. content is unsanitised: sanitise it before showing it. */
struct fw_entry_row {
	int64_t id; /* assigned by the store, rising: a cursor */
	int64_t feed_id;
	unsigned char key[16]; /* unique within the feed */
	uint64_t hash;         /* of the content that readers see */
	struct fw_str guid, url, title, author, summary;
	struct fw_str content, content_base;
	enum fw_text_type content_type;                  /* of content; FW_TEXT_NONE counts as HTML */
	int64_t published_ms, updated_ms;                /* from the document, or FW_NO_DATE */
	int64_t seen_ms;                                 /* first stored */
	int64_t changed_ms;                              /* last stored with another hash; seen_ms: never */
	uint32_t revision;                               /* 1, 2, ... */
	struct fw_str extra;                             /* JSON object with the entry's other members, or absent */
	struct fw_str feed_title, feed_url, feed_folder; /* set when reading only */
	/*
	 * Set when reading with fw_entry_query.snippet: a part of the plain text, each match
	 * between FW_MARK_BEGIN and FW_MARK_END.
	 */
	struct fw_str snippet;
};

#define FW_MARK_BEGIN '\x02'
#define FW_MARK_END '\x03'

/* The date of the order "newest first": published, else updated; but never later than seen_ms. */
static inline int64_t fw_store_entry_date(const struct fw_entry_row *e, int64_t seen_ms)
{
	int64_t date_ms = e->published_ms != FW_NO_DATE ? e->published_ms : e->updated_ms;

	return date_ms != FW_NO_DATE && date_ms < seen_ms ? date_ms : seen_ms;
}

/* A key for dedup: of a stored entry, or of an entry that was removed and stays away. */
struct fw_entry_key {
	int64_t feed_id;
	unsigned char key[16];
	uint64_t hash;
	int64_t entry_id; /* 0: retention removed the entry, or its feed retracted it */
};

/* One visit. Phase times are microseconds from the start of the request; 0: phase not reached. */
struct fw_visit {
	int64_t id; /* assigned by the store, rising: a cursor; visit_list and load only */
	int64_t feed_id;
	int64_t run_id; /* the run that made it; 0: none */
	int64_t at_ms;  /* start of the request */
	enum fw_visit_kind kind;
	int http_status;
	uint32_t redirects;                                          /* redirects followed */
	int32_t slot;                                                /* transfer slot; -1: unknown */
	uint32_t lateness_ms;                                        /* at_ms - due_at_ms, capped */
	int64_t dns_us, connect_us, tls_us, first_byte_us, total_us; /* end of each phase */
	int64_t queue_us;                                            /* duration from the claim to the request */
	int64_t parse_us;                                            /* duration of parsing */
	int64_t store_us; /* duration from the end of parsing to the start of the commit */
	uint64_t wire_bytes, body_bytes;
	uint32_t item_n, new_n, changed_n; /* new_n and changed_n are set by the store */
	struct fw_str error;               /* kept as it is, with line ends */
	struct fw_str feed_url;            /* set when reading only */
};

/*
 * The duration of each phase: DNS, TCP connect, TLS, wait for the first byte, body. 0: not reached.
 * Without a first byte, the time after the last completed phase counts for the next phase.
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

/* A usage event, such as "an entry was read", as clients push it to the server. */
struct fw_event {
	int64_t id; /* assigned by the sender: unique, rising with time (base/ids.h) */
	struct fw_str property;
	int64_t section, item;   /* columns property_section, property_id */
	struct fw_str remote_ip; /* as text; empty: unknown */
	int64_t stamp_ms;        /* column stamp */
	bool clashes;            /* set by fw_store_event_put(), with FW_ECLASH: another event has its id */
};

/* A dead letter: an event that the store refused, with the reason. */
struct fw_dead_letter {
	int64_t id;
	struct fw_str row; /* JSON object with the members of table incoming */
	struct fw_str reason;
	int64_t at_ms;
	bool clashes; /* as in struct fw_event */
};

/*
 * A range of ids of events that only one caller ever gets. An id is a serial number in its upper 53
 * bits, and the number of the range in its lower 10 (base/ids.h).
 */
struct fw_id_range {
	int64_t number;      /* out */
	int64_t first, last; /* serial numbers. in: first is the lowest that is wanted; out */
	int64_t clash_n;     /* in: events that had the id of another one since the last call; they are counted */
};

/*
 * A small key-value record of one part of feedwheel, such as an access token or the response to an
 * Idempotency-Key. Sizes in bytes.
 */
#define FW_RECORD_KIND_MAX 32
#define FW_RECORD_ORDER "order" /* the kind of orders: struct fw_orders_version */
#define FW_RECORD_KEY_MAX 255
#define FW_RECORD_VALUE_MAX 65535
struct fw_record {
	struct fw_str kind;  /* which part: a-z, 0-9 and _, such as "token" */
	struct fw_str key;   /* any bytes, not empty; unique within its kind */
	struct fw_str value; /* any bytes; may be empty */
	int64_t at_ms;       /* when it was put */
	int64_t until_ms;    /* expiry: prune may remove it from then on; FW_NO_DATE: never */
};

/* ---- open ------------------------------------------------------------------------------------ */

enum {
	FW_STORE_CREATE = 1, /* create the store if it does not exist */
	FW_STORE_READ = 2,   /* read only */
};

struct fw_store_config {
	const char *url; /* sqlite:PATH, memory:, postgres://... */
	unsigned flags;
	int64_t busy_timeout_ms; /* 0: 10,000 */
	size_t page_cache_bytes; /* 0: the driver's default */
	bool async_commit;       /* a power failure may lose the last commits; a crash of feedwheel never does */
	uint32_t revisions_max;  /* earlier versions kept of an entry that changes; 0: none */
	/*
	 * An earlier version whose content and summary have more bytes is kept without them; 0: no
	 * limit
	 */
	size_t revision_max_bytes;
	/* the store's time, shared by connections; NULL: one for this connection */
	struct fw_offset_clock *clock;
	int64_t account_feeds_max; /* feeds that an account may subscribe; 0: no limit */
};

/* ---- the schedule ---------------------------------------------------------------------------- */

/* The effect of an outcome on the learned delay of its host. */
enum fw_host_health {
	FW_HOST_UNKNOWN,   /* no evidence: the delay stays */
	FW_HOST_HEALTHY,   /* a normal response: the delay shrinks */
	FW_HOST_THROTTLED, /* 429, 503: the delay doubles */
};

/* The learned delay after an outcome (FW_LEARNED_DELAY_*). */
static inline int64_t fw_store_learned_delay(int64_t learned_delay_ms, enum fw_host_health health)
{
	learned_delay_ms = learned_delay_ms < 0            ? 0 :
		learned_delay_ms > FW_LEARNED_DELAY_MAX_MS ? FW_LEARNED_DELAY_MAX_MS :
							     learned_delay_ms;
	if (health == FW_HOST_THROTTLED && 2 * learned_delay_ms < FW_LEARNED_DELAY_MIN_MS)
		return FW_LEARNED_DELAY_MIN_MS;
	if (health == FW_HOST_THROTTLED)
		return 2 * learned_delay_ms > FW_LEARNED_DELAY_MAX_MS ? FW_LEARNED_DELAY_MAX_MS : 2 * learned_delay_ms;
	if (health == FW_HOST_UNKNOWN)
		return learned_delay_ms;
	learned_delay_ms = learned_delay_ms * FW_LEARNED_DELAY_STEP_MS / (FW_LEARNED_DELAY_STEP_MS + learned_delay_ms);
	return learned_delay_ms > FW_LEARNED_DELAY_NONE_MS ? learned_delay_ms : 0;
}

/* The outcome of a visit or a push: what a commit writes. */
struct fw_outcome {
	int64_t feed_id;
	int64_t host_id;            /* as read from the due set; 0 for a push, which knows neither host nor due time */
	int64_t was_due_ms;         /* due_at_ms as read from the due set */
	const struct fw_feed *feed; /* the new state: the schedule group is always written, others by groups */
	unsigned groups;            /* FW_GROUP_* */
	/*
	 * In; new_n and changed_n are out. kind FW_VISIT_NONE: there was no visit, and only the
	 * state is written.
	 */
	struct fw_visit visit;
	const struct fw_entry_row *entries;
	size_t entry_n;
	/*
	 * Entries that the feed takes back, by key, each once; none of them is in entries. Those
	 * that are stored become gone, as after retention: their keys stay, so they are not stored
	 * again. An entry that an account has starred or labelled stays while it is: a reader kept
	 * it, whatever its feed thinks of it now.
	 */
	const struct fw_entry_key *retracted;
	size_t retracted_n;
	/*
	 * Out. FW_ENOTFOUND: the feed was removed; nothing of the outcome was written. FW_EINVAL:
	 * url belongs to another feed; the rest was written. 0: success, also for a retry: if the
	 * feed's last_visit_ms equals the outcome's, the outcome was stored before and nothing is
	 * written. A push is always stored, except its visit if a push with the same time is stored
	 * and no entry is new or changed.
	 */
	int rc;
};

/* A worker's heartbeat, for people and metrics. It does not renew the lease. */
struct fw_heartbeat {
	const char *worker;
	int64_t pid, started_ms, run_id;
	uint64_t visits, new_entries, failures;
	uint32_t in_flight, slots;
	int64_t clock_ahead_ms; /* how far its machine's clock is ahead of the store's */
	int64_t at_ms;          /* set when reading only */
};

/* ---- queries --------------------------------------------------------------------------------- */

struct fw_feed_new {
	struct fw_str url, user_title, folder, home_page_url, username, password;
	int64_t interval_ms;
	int64_t due_at_ms; /* 0: now */
	int64_t id;        /* out */
	bool existed;      /* out: url was subscribed already; nothing was changed */
};

/* What fw_store_feed_set() writes. */
enum {
	FW_SET_STATUS = 1,
	FW_SET_TITLE = 2,
	FW_SET_FOLDER = 4,
	FW_SET_INTERVAL = 8,
	FW_SET_DUE = 16, /* due_at_ms; and why, unless it is absent */
	FW_SET_AUTH = 32,
	FW_SET_CRASH = 64, /* crash_n */
	FW_SET_PUSH = 128, /* push_until_ms */
};

struct fw_feed_query {
	int status;           /* enum fw_feed_status, or -1: any */
	bool failing;         /* fail_n > 0 only */
	struct fw_str folder; /* in this folder or a subfolder of it; "": in none; absent: any */
	struct fw_str match;  /* substring of url or title, ignoring ASCII case; absent: any */
	int64_t after_id;     /* cursor */
	size_t limit;         /* 0: all */
	bool by_due;          /* order by due_at_ms instead of id; no cursor */
};

struct fw_entry_query {
	int64_t feed_id;         /* 0: all */
	const int64_t *feed_ids; /* one of these feed_n feeds; feed_n 0: all */
	size_t feed_n;
	struct fw_str folder;              /* in this folder or a subfolder of it; absent: any */
	int64_t since_ms, until_ms;        /* stored at or after, and before; 0: any time */
	struct fw_str search;              /* a query (feedwheel-query(7)); absent: no search */
	int64_t after_id, before_id;       /* cursors by id, both exclusive; 0: none */
	int64_t behind_id, behind_date_ms; /* cursor of newest first: id (0: none) and date of the last entry seen */
	size_t limit;                      /* 0: all */
	bool oldest_first;                 /* by id; default: newest first, by fw_store_entry_date() */
	/*
	 * With search: best first, of the newest FW_RANKED_MAX matches; equals by id, newest first.
	 * FW_EINVAL with oldest_first or a cursor.
	 */
	bool by_relevance;
	size_t skip_n; /* by_relevance: leave out the first ones */
	bool content;  /* fill content (and content_base) too */
	bool snippet;  /* fill snippet; without search it is the start of the text */
	bool key;      /* fill key and hash too: costly in a long list of one feed */
	/*
	 * Out, with search, set before the first callback: number of entries that are not indexed
	 * yet; 0: the result is complete. NULL: not wanted.
	 */
	int64_t *unindexed_n;
};

/*
 * The log of changes. One counter numbers entries and changes of entries: an entry's id is the
 * number of its `new`, and each later change has a number of its own. Numbers appear in order, as
 * ids do: after a reader has seen one, no lower one appears.
 */
enum fw_change_kind {
	FW_CHANGE_NEW,     /* as the entry is when it is read; none for an entry that is gone */
	FW_CHANGE_CHANGED, /* stored with another hash, or moved to another feed */
	FW_CHANGE_GONE,    /* removed by retention, with its feed, or retracted by its feed */
};
/* "new", "changed", "gone". */
FW_API const char *fw_change_kind_name(enum fw_change_kind kind);

struct fw_change {
	int64_t id; /* its number: a cursor */
	enum fw_change_kind kind;
	int64_t entry_id, feed_id; /* feed_id: at that time; the feed may be gone */
	uint32_t revision;         /* the version that the change made; 0 for gone */
	int64_t at_ms;
	const struct fw_entry_row *entry; /* as it is now; NULL: it is gone */
};

/*
 * Changes with numbers above after_id, up to the last one at the start of the call. A reader goes
 * on with next_id, also if nothing was shown. Old changes are pruned: a reader that is behind
 * misses some. A first read, after_id 0, is not behind. If it takes several calls, it sets base_id
 * to head_id of the first one, because changes before that are no news to it.
 */
struct fw_change_query {
	int64_t after_id, base_id;
	int64_t feed_id;         /* 0: all */
	const int64_t *feed_ids; /* one of these feed_n feeds; feed_n 0: all */
	size_t feed_n;
	/*
	 * In this folder or a subfolder of it; absent or "": any. FW_CHANGE_GONE passes every
	 * folder, because the feed of an entry that is gone may be gone too.
	 */
	struct fw_str folder;
	size_t limit;     /* 0: all */
	bool content;     /* fill content (and content_base) too */
	int64_t head_id;  /* out: the last number at the start of the call */
	int64_t next_id;  /* out: all changes up to it were shown */
	int64_t first_id; /* out, with FW_EGONE: numbers from this one on are left */
};

#define FW_RANKED_MAX 1000 /* of fw_entry_query.by_relevance */

/* Does the query select one entry by its id? */
static inline bool fw_store_entry_query_is_one(const struct fw_entry_query *q)
{
	return q->before_id > 0 && q->after_id == q->before_id - 2;
}

/* A feed in the due set. */
struct fw_due_row {
	int64_t feed_id;
	int64_t host_id; /* the same for all feeds of one host */
	int64_t due_at_ms, expect_us, expect_dev_us;
	int64_t last_visit_ms; /* 0: never */
};

/*
 * The priority of a due feed in a backlog: its lateness in units of its own interval, (now - due) /
 * (due - last visit). The schedule chooses intervals so that about equally many new entries are
 * expected in each. The priority of every feed grows with time, so none starves; under permanent
 * overload all feeds are late by the same fraction of their intervals. Dates in any order. An
 * interval below 1 s counts as 1 s: such a feed was made due by hand. Not for a feed that was never
 * visited: it has no interval.
 */
static inline double fw_due_priority(int64_t now_ms, int64_t due_at_ms, int64_t last_visit_ms)
{
	double late = (double)now_ms - (double)due_at_ms, interval = (double)due_at_ms - (double)last_visit_ms;

	return (late > 0 ? late : 0) / (interval > 1000 ? interval : 1000);
}

/* ---- matches ---- */

/*
 * A match: an order wants a change of an entry (feedwheel-orders(7)). Matches wait until they are
 * delivered; dead ones are kept for a person.
 */
struct fw_match {
	int64_t order_id;
	int64_t change_id; /* the number of the change: the entry's id if it is new */
	int64_t entry_id, feed_id;
	int64_t at_ms; /* when the change was stored */
	bool changed;  /* a new version of an entry, not a new entry */
};

struct fw_match_query {
	int64_t order_id;
	bool dead;               /* dead letters; else what waits */
	int64_t after_change_id; /* cursor */
	size_t limit;            /* 0: all */
};

/* What the orders say of an entry that is about to be stored. Valid until the next call. */
struct fw_match_result {
	bool drop;           /* do not store it, if it is new; its key is kept for dedup */
	struct fw_str extra; /* store this in place of the entry's extra; absent: leave it */
	const int64_t *order_id;
	size_t n; /* the orders that get a match */
};
#define FW_ORDERS_PARTS 16 /* a store keeps the version in up to so many places */
/*
 * The version of the orders, which are the records of kind FW_RECORD_ORDER: to put or remove one
 * changes the version in the same transaction. Two versions are equal or not; neither is the later
 * one. All 0: no order was ever stored.
 */
struct fw_orders_version {
	int64_t part[FW_ORDERS_PARTS];
};
/*
 * What matches the entries of commits and pushes.
 *
 * match is called inside a commit or push for each entry that is about to be stored, new or with a
 * new hash; again if the transaction is tried again. It must not use the store. Other than 0: the
 * commit fails with it.
 *
 * A commit that stores new or changed entries compares `version` with the store's inside its
 * transaction. If they differ, it is rolled back, reload is called, and the commit starts over. So
 * an order that was put, changed or removed counts for every commit that ends after that call has
 * returned, in every process, however long one stood still. Cost: none for SQL, where the statement
 * that reads the counter of entry ids reads the version; one GET for Redis. The other way, that a
 * sender looks for entries that were stored since an order was added, would hold only if the time
 * until each process has the order had a bound, and a process that stands still has none.
 */
struct fw_matcher {
	int (*match)(void *ctx, const struct fw_outcome *o, const struct fw_entry_row *e, bool is_new,
		struct fw_match_result *out);
	/*
	 * Read the version into `version`, then load the orders: in this order, so that no order of
	 * that version is missing. It may use the store. Other than 0: the commit fails with it.
	 * NULL: match depends on no orders, and no version is compared.
	 */
	int (*reload)(void *ctx, struct fw_store *st, struct fw_err *err);
	struct fw_orders_version version;
	void (*close)(void *ctx); /* the store is closed, or gets another matcher; NULL: nothing to do */
	void *ctx;
};

struct fw_record_query {
	struct fw_str kind;       /* absent: all, in order of kind */
	struct fw_str after_key;  /* cursor; absent: from the first record */
	struct fw_str after_kind; /* kind of the cursor, if kind is absent */
	size_t limit;             /* 0: all */
};

struct fw_visit_query {
	int64_t feed_id; /* 0: all */
	int64_t run_id;  /* 0: all */
	int64_t since_ms;
	size_t limit;      /* 0: all */
	bool oldest_first; /* by id, and feed_id 0 only; default: newest first */
	int64_t after_id;  /* cursor; with oldest_first only */
};

struct fw_store_stats {
	int64_t feed_n, active_n, due_n, failing_n, gone_n, quarantined_n, paused_n;
	int64_t entry_n, visit_n, unindexed_n;
	int64_t next_due_ms; /* FW_NO_DATE: no feed is active */
	int64_t size_bytes;  /* -1: unknown */
	int64_t schema;
	int64_t last_feed_id, last_entry_id, last_visit_id; /* highest id in use; 0: none */
	int64_t inbox_n, inbox_refused_n; /* rows that other programs put in, and wait; those that were refused */
	int64_t clash_n; /* events that came with the id of another one, and were stored with a new one */
};

/*
 * One step of retention and indexing, tens of ms. Rows before a limit are removed; a limit of 0
 * keeps all rows of that sort.
 */
struct fw_prune {
	int64_t now_ms;
	int64_t visits_before_ms;
	int64_t entries_before_ms;                   /* neither new nor changed since then; their keys stay for dedup */
	int64_t events_before_ms;                    /* and dead letters */
	int64_t changes_before_ms;                   /* of the log of changes */
	bool records;                                /* those with until_ms <= now_ms */
	bool index;                                  /* index new and changed entries */
	bool more;                                   /* out: call again */
	int64_t visit_n, entry_n, event_n, record_n; /* out: the numbers of removed rows are added */
	int64_t change_n;                            /* out: likewise */
};

enum fw_control_kind {
	FW_CONTROL_NONE,
	FW_CONTROL_STOP,
	FW_CONTROL_PAUSE,
	FW_CONTROL_RESUME,
	FW_CONTROL_RELOAD,
};

struct fw_control {
	int64_t id; /* rising */
	enum fw_control_kind kind;
	int64_t created_ms;
	bool paused;                        /* for after_id < 0 only: the newest PAUSE or RESUME is a PAUSE */
	char worker[FW_RECORD_KEY_MAX + 1]; /* the only one that obeys it; "": all do */
};

/*
 * Rows of another store, with their ids.
 *
 *   - Existing rows (a feed's id, an entry's id or key, a key, a visit's id) are skipped, so a load
 *     may be repeated.
 *   - A feed is written with all groups, the user's members and last_new_ms; entry_n is ignored. An
 *     active feed is due at its due_at_ms.
 *   - Entries keep key, hash, seen_ms, changed_ms and revision.
 *   - A feed's visits come oldest first, within a load and from load to load.
 *   - A feed comes before its entries, keys and visits: in the same load or an earlier one.
 *   - Ids are from 1 to 2^53 - 1. Those that the store assigns later are above the highest loaded
 *     id, and above change_id.
 *   - The log of changes is not loaded: it starts anew above change_id. A reader that is behind is
 *     told.
 */
struct fw_load {
	const struct fw_feed *feed;
	const struct fw_entry_row *entry;
	const struct fw_entry_key *key; /* of entries that were removed and stay away; entry_id is ignored */
	const struct fw_visit *visit;
	size_t feed_n, entry_n, key_n, visit_n;
	int64_t change_id; /* the last number of the other store (fw_change_query.head_id); 0: unknown */
};

/*
 * Callbacks. Their arguments are borrowed until they return. Any value other than 0 stops the walk
 * and is returned. A callback must not call its store.
 */
typedef int fw_feed_cb(void *ctx, const struct fw_feed *feed);
typedef int fw_entry_cb(void *ctx, const struct fw_entry_row *row);
typedef int fw_entry_count_cb(void *ctx, int64_t feed_id, int64_t n);
typedef int fw_change_cb(void *ctx, const struct fw_change *change);
/* cut: content and summary were not kept, because they exceeded revision_max_bytes. */
typedef int fw_revision_cb(void *ctx, const struct fw_entry_row *row, bool cut);
typedef int fw_match_cb(void *ctx, const struct fw_match *match);
/*
 * Per order with matches: how many wait and how many are dead; the time of the oldest that waits.
 */
typedef int fw_match_summary_cb(void *ctx, int64_t order_id, int64_t pending_n, int64_t dead_n, int64_t oldest_ms);
typedef int fw_visit_cb(void *ctx, const struct fw_visit *visit);
typedef int fw_heartbeat_cb(void *ctx, const struct fw_heartbeat *heartbeat);
typedef int fw_event_cb(void *ctx, const struct fw_event *event);
typedef int fw_dead_letter_cb(void *ctx, const struct fw_dead_letter *event);
typedef int fw_key_cb(void *ctx, const struct fw_entry_key *key);
typedef int fw_record_cb(void *ctx, const struct fw_record *record);
typedef int fw_due_cb(void *ctx, const struct fw_due_row *row);
/* A finding: name ("durability"), level 0 fine / 1 note / 2 broken, text, remedy ("" if fine). */
typedef void fw_inspect_cb(void *ctx, const char *name, int level, const char *found, const char *remedy);

/* ---- the store as a whole -------------------------------------------------------------------- */

/*
 * *out is NULL on error. FW_EUNSUP: this build has no driver for the URL. FW_ENOTFOUND: the store
 * does not exist and FW_STORE_CREATE is not set. FW_EVERSION: the schema is newer than this
 * program. FW_EIO: the server is unreachable, or takes no writes and FW_STORE_READ is not set.
 * FW_EINVAL: the URL, its password, or the database of another program.
 */
FW_API FW_MUST_CHECK int fw_store_open(const struct fw_store_config *cfg, struct fw_store **out, struct fw_err *err);
/* st may be NULL. */
FW_API void fw_store_close(struct fw_store *st);
/* The name of the driver: "sqlite". Static. */
FW_API const char *fw_store_name(const struct fw_store *st);
/* Does it have a search index? Without one (Redis) a search reads entries until enough match. */
FW_API bool fw_store_has_index(const struct fw_store *st);
/* The name of the i-th driver of this build; NULL: no more. */
FW_API const char *fw_store_driver_at(size_t i);
/* The name of the i-th driver that is not in this build; NULL: no more. */
FW_API const char *fw_store_absent_at(size_t i);
/* Does the URL name a server? A server may be unreachable for a while and may be shared. */
FW_API bool fw_store_is_remote(const char *url);
/* Is the word the path of an SQLite file: without ":", ending in .db, .sqlite or .sqlite3? */
bool fw_store_is_file(const char *word);
/* A URL for people and logs: passwords as "***", control characters escaped, cut to cap bytes. */
FW_API void fw_store_url_show(const char *url, char *out, size_t cap);
/*
 * Check that the store is reachable: one round trip. Opened for writing, also that it takes writes:
 * else FW_EIO.
 */
FW_API FW_MUST_CHECK int fw_store_ping(struct fw_store *st, struct fw_err *err);
/* The store's clock: one round trip, which also measures it for fw_store_now_ms(). */
FW_API FW_MUST_CHECK int fw_store_clock(struct fw_store *st, int64_t *now_ms, struct fw_err *err);
/*
 * The store's time, as the last measurements say: no round trip. What is stored, or is compared
 * with what was stored, uses it, because the clocks of machines differ. It is exact to the length
 * of a round trip, and goes backwards only if the store's clock does. fw_store_open() measures
 * first. Not exported.
 */
int64_t fw_store_now_ms(const struct fw_store *st);
/* How far this machine's clock is ahead of the store's; less than 0: behind. Not exported. */
int64_t fw_store_ahead_ms(const struct fw_store *st);
/* All counts. One pass over the schedule: about 0.2 s for 1,000,000 feeds (SQL). */
FW_API FW_MUST_CHECK int fw_store_stats(struct fw_store *st, struct fw_store_stats *out, struct fw_err *err);
/* For `doctor`: the server's version, the durability of a commit, harmful settings. */
FW_API FW_MUST_CHECK int fw_store_inspect(struct fw_store *st, fw_inspect_cb *cb, void *ctx, struct fw_err *err);
/* Check the integrity of all rows; cb gets each fault. Reads everything. */
FW_API FW_MUST_CHECK int fw_store_check(
	struct fw_store *st, void (*cb)(void *ctx, const char *finding), void *ctx, struct fw_err *err);
/*
 * Wait until another connection changes a schedule or puts a control message (*changed), until
 * wake_fd is readable (-1: none), or for timeout_ms. May return early.
 */
FW_API FW_MUST_CHECK int fw_store_wait(
	struct fw_store *st, int wake_fd, int64_t timeout_ms, bool *changed, struct fw_err *err);
/*
 * One step of retention and indexing, tens of ms; p->more: call again. May be several transactions.
 */
FW_API FW_MUST_CHECK int fw_store_prune(struct fw_store *st, struct fw_prune *p, struct fw_err *err);

/* ---- feeds ----------------------------------------------------------------------------------- */

/* Subscribe feeds; sets id and existed. FW_EINVAL: a url has no host; then none was subscribed. */
FW_API FW_MUST_CHECK int fw_store_subscribe(
	struct fw_store *st, struct fw_feed_new *feed, size_t n, struct fw_err *err);
/*
 * The same for any number of feeds, which are not all in memory at once: each() puts them, part by
 * part, and returns 0 or the code of the put that failed. One transaction (Redis: one for each
 * part). If it has to be repeated, each() is called again from the start. Not exported.
 */
struct fw_subscribing;
typedef int fw_subscribe_fn(void *ctx, const struct fw_subscribing *to, struct fw_err *err);
int fw_store_subscribe_each(struct fw_store *st, fw_subscribe_fn *each, void *ctx, struct fw_err *err);
int fw_store_subscribe_put(const struct fw_subscribing *to, struct fw_feed_new *feed, size_t n, struct fw_err *err);
/* Remove a feed, its entries and its visits. FW_ENOTFOUND. */
FW_API FW_MUST_CHECK int fw_store_unsubscribe(struct fw_store *st, int64_t feed_id, struct fw_err *err);
/*
 * Move the entries that into_id lacks, by key and by guid, to it; then remove from_id.
 * FW_ENOTFOUND: either.
 */
FW_API FW_MUST_CHECK int fw_store_feed_merge(struct fw_store *st, int64_t from_id, int64_t into_id, struct fw_err *err);
/* By id, or by url where id is 0. Strings go into the arena. FW_ENOTFOUND. */
FW_API FW_MUST_CHECK int fw_store_feed_find(struct fw_store *st, int64_t id, struct fw_str url, struct fw_arena *a,
	struct fw_feed *out, struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_feed_list(
	struct fw_store *st, const struct fw_feed_query *q, fw_feed_cb *cb, void *ctx, struct fw_err *err);
/*
 * Write the members of *feed in `what` (FW_SET_*). Its worker sees a new due time within a
 * heartbeat. FW_ENOTFOUND.
 */
FW_API FW_MUST_CHECK int fw_store_feed_set(
	struct fw_store *st, const struct fw_feed *feed, unsigned what, struct fw_err *err);
/*
 * Load rows of another store. FW_EINVAL: a feed's id or url belongs to another feed here, or an id
 * is out of range.
 */
FW_API FW_MUST_CHECK int fw_store_load(struct fw_store *st, const struct fw_load *rows, struct fw_err *err);
/*
 * The host whose limits apply to a URL: "example.org"; "blogspot.com" for "someone.blogspot.com".
 * False: the URL has no host.
 */
FW_API bool fw_store_host(struct fw_str url, char *out, size_t cap);
/* The host whose limits apply to a feed: its host_key, else the host of its url. */
FW_API bool fw_store_feed_host(const struct fw_feed *feed, char *out, size_t cap);

/* ---- the schedule ---------------------------------------------------------------------------- */

/*
 * The due set: active feeds with due_at_ms <= due_before_ms, by due time; limit 0: all. Reads and
 * sorts them all: 50 MB for 1,000,000.
 */
FW_API FW_MUST_CHECK int fw_store_due_list(
	struct fw_store *st, int64_t due_before_ms, size_t limit, fw_due_cb *cb, void *ctx, struct fw_err *err);
/* The size of the due set, and its earliest due time (FW_NO_DATE: empty). Reads all of it. */
FW_API FW_MUST_CHECK int fw_store_pending(
	struct fw_store *st, int64_t due_before_ms, int64_t *n, int64_t *wake_ms, struct fw_err *err);
/*
 * Store outcomes without a lease:
 *   - pushed entries: kind FW_VISIT_PUSHED, groups 0 or FW_GROUP_META. The due time stays.
 *   - the first visit of a feed (last_visit_ms is 0): alone (n is 1), with host_id, was_due_ms and
 *     its whole state. If the feed was visited meanwhile, it is stored as a push.
 * Sets rc, visit.new_n and visit.changed_n of each outcome.
 */
FW_API FW_MUST_CHECK int fw_store_push(struct fw_store *st, struct fw_outcome *outcome, size_t n, struct fw_err *err);
/*
 * Reap a dead worker: its shards are free at once. crashed_feed_id: the feed whose visit killed it,
 * 0: none. Its crash_n rises; at the second death in a row it is quarantined.
 */
FW_API FW_MUST_CHECK int fw_store_reap(
	struct fw_store *st, const char *worker, int64_t crashed_feed_id, struct fw_err *err);
/* Store a heartbeat in place of the worker's last one. It is kept for a day. */
FW_API FW_MUST_CHECK int fw_store_heartbeat_put(
	struct fw_store *st, const struct fw_heartbeat *heartbeat, int64_t now_ms, struct fw_err *err);
/* Each worker's last heartbeat at or after since_ms, by name. */
FW_API FW_MUST_CHECK int fw_store_heartbeat_list(
	struct fw_store *st, int64_t since_ms, fw_heartbeat_cb *cb, void *ctx, struct fw_err *err);
/*
 * Send a control message to all workers. Messages are removed after a week; the paused state stays.
 * Not one transaction: readers may see a PAUSE before its message.
 */
FW_API FW_MUST_CHECK int fw_store_control_put(
	struct fw_store *st, enum fw_control_kind kind, int64_t now_ms, struct fw_err *err);
/*
 * Read the oldest message after after_id; kind FW_CONTROL_NONE: none. after_id < 0: only the newest
 * id (0: none) and the paused state, with kind FW_CONTROL_NONE.
 */
FW_API FW_MUST_CHECK int fw_store_control_get(
	struct fw_store *st, int64_t after_id, struct fw_control *out, struct fw_err *err);

/* ---- entries, visits ------------------------------------------------------------------------- */

/* A cursor by id misses no entry: none appears below an id that was shown. */
FW_API FW_MUST_CHECK int fw_store_entry_list(
	struct fw_store *st, const struct fw_entry_query *q, fw_entry_cb *cb, void *ctx, struct fw_err *err);
/*
 * How many entries, by feed, were stored since then (0: all). A feed may be called several times:
 * its numbers add up. The database counts; Redis lists the entries.
 */
FW_API FW_MUST_CHECK int fw_store_entry_counts(
	struct fw_store *st, int64_t since_ms, fw_entry_count_cb *cb, void *ctx, struct fw_err *err);
/*
 * The log of changes, by number. FW_EGONE: pruned beyond the reader; the text and first_id name the
 * first number left. The callback's entry is borrowed like the change.
 */
FW_API FW_MUST_CHECK int fw_store_change_list(
	struct fw_store *st, struct fw_change_query *q, fw_change_cb *cb, void *ctx, struct fw_err *err);
/*
 * The earlier versions of an entry that are kept, oldest first. changed_ms is when the version was
 * stored. key and hash are not filled.
 */
FW_API FW_MUST_CHECK int fw_store_revision_list(
	struct fw_store *st, int64_t entry_id, fw_revision_cb *cb, void *ctx, struct fw_err *err);
/* Keys of the feeds in this range of ids, in order of feed id; within a feed in any order. */
FW_API FW_MUST_CHECK int fw_store_key_list(
	struct fw_store *st, int64_t first_feed_id, int64_t last_feed_id, fw_key_cb *cb, void *ctx, struct fw_err *err);
/* Newest first, or, with oldest_first, by id. */
FW_API FW_MUST_CHECK int fw_store_visit_list(
	struct fw_store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx, struct fw_err *err);

/* ---- matches --------------------------------------------------------------------------------- */

/* Commits and pushes of this store ask the matcher from now on; NULL: none. Borrowed. */
FW_API void fw_store_set_matcher(struct fw_store *st, const struct fw_matcher *matcher);
/* NULL: none. */
FW_API const struct fw_matcher *fw_store_matcher(const struct fw_store *st);
/* One round trip; two more, once, in a store whose orders are older than their version. */
FW_API FW_MUST_CHECK int fw_store_orders_version(
	struct fw_store *st, struct fw_orders_version *out, struct fw_err *err);
/*
 * Store matches, or move them between those that wait and the dead ones. One that exists is left as
 * it is.
 */
FW_API FW_MUST_CHECK int fw_store_match_put(
	struct fw_store *st, const struct fw_match *match, size_t n, bool dead, struct fw_err *err);
/* By change id. */
FW_API FW_MUST_CHECK int fw_store_match_list(
	struct fw_store *st, const struct fw_match_query *q, fw_match_cb *cb, void *ctx, struct fw_err *err);
/* Remove these of an order's matches; one that does not exist is skipped. change_id NULL: all. */
FW_API FW_MUST_CHECK int fw_store_match_remove(
	struct fw_store *st, int64_t order_id, bool dead, const int64_t *change_id, size_t n, struct fw_err *err);
/* In no order. Cost: one pass over all matches. */
FW_API FW_MUST_CHECK int fw_store_match_summary(
	struct fw_store *st, fw_match_summary_cb *cb, void *ctx, struct fw_err *err);

/* ---- events ---------------------------------------------------------------------------------- */

/*
 * Store events; one that is stored already is skipped. Errors, and then none was stored: FW_EINVAL
 * the store can never accept one of them as it is; FW_ECLASH other events have the ids of those
 * that `clashes` marks: give them new ids.
 */
FW_API FW_MUST_CHECK int fw_store_event_put(struct fw_store *st, struct fw_event *event, size_t n, struct fw_err *err);
/*
 * Reserve a range of ids for events. It starts at the store's time, or later: above what is
 * reserved under its number, and so that no event or dead letter has an id in it. FW_ELIMIT: there
 * is none.
 */
FW_API FW_MUST_CHECK int fw_store_event_ids(struct fw_store *st, struct fw_id_range *range, struct fw_err *err);
/* Events with id > after_id, by id; limit 0: all. */
FW_API FW_MUST_CHECK int fw_store_event_list(
	struct fw_store *st, int64_t after_id, size_t limit, fw_event_cb *cb, void *ctx, struct fw_err *err);
/*
 * Store a dead letter, or a new reason and time of one that has the same id and row. FW_ECLASH: one
 * with another row has its id.
 */
FW_API FW_MUST_CHECK int fw_store_dead_letter_put(
	struct fw_store *st, struct fw_dead_letter *event, struct fw_err *err);
/* Dead letters with id > after_id, by id; limit 0: all. */
FW_API FW_MUST_CHECK int fw_store_dead_letter_list(
	struct fw_store *st, int64_t after_id, size_t limit, fw_dead_letter_cb *cb, void *ctx, struct fw_err *err);
/* Remove dead letters, by id; one that does not exist is skipped. */
FW_API FW_MUST_CHECK int fw_store_dead_letter_remove(
	struct fw_store *st, const struct fw_dead_letter *event, size_t n, struct fw_err *err);

/* ---- records --------------------------------------------------------------------------------- */

/*
 * Put a record in place of the record of its kind and key. if_absent: keep a record that exists and
 * has not expired at r->at_ms, and set *was; of concurrent callers exactly one puts. was may be
 * NULL.
 */
FW_API FW_MUST_CHECK int fw_store_record_put(
	struct fw_store *st, const struct fw_record *r, bool if_absent, bool *was, struct fw_err *err);
/* Strings go into the arena. An expired record is found until prune removes it. FW_ENOTFOUND. */
FW_API FW_MUST_CHECK int fw_store_record_get(struct fw_store *st, struct fw_str kind, struct fw_str key,
	struct fw_arena *a, struct fw_record *out, struct fw_err *err);
/* By kind and key, compared byte by byte. */
FW_API FW_MUST_CHECK int fw_store_record_list(
	struct fw_store *st, const struct fw_record_query *q, fw_record_cb *cb, void *ctx, struct fw_err *err);
/* value absent: remove unconditionally; else only if the record has this value. FW_ENOTFOUND. */
FW_API FW_MUST_CHECK int fw_store_record_remove(
	struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_str value, struct fw_err *err);

#ifdef __cplusplus
}
#endif
#endif
