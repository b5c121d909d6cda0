/* SPDX-License-Identifier: ISC */
/*
 * The storage contract: what a driver author reads, and nothing else.
 *
 * A store holds feeds on a wheel. A worker claims the feeds that are due (each is lent with a fence number until a lease runs
 * out), visits them, and commits the outcomes: entries, feed state, timings and the leases go back in one transaction.
 *
 *   - claim never lends a feed that is lent; a lease that ran out is lent again with a higher fence; nothing sweeps. Once it has
 *     run out, an outcome may be refused (FW_ESTALE) even before somebody else has the feed.
 *   - claims go by due time to within about ten seconds; what one claim lends is in exact order.
 *   - the host budget counts feeds of hosts that have several; a host_cooldown_ms holds for every host. Which feeds share a host is said
 *     by fw_store_host(): the name in the URL, or for services where each customer has a name of his own, the service; or by the feed's
 *     host_key, where an outcome has set one.
 *   - a host's gap is the caller's or what was learned (its pace), whichever is longer. The pace is doubled when an outcome says that the
 *     host is strained, and shrinks with each that says it is not (FW_PACE_*): the rate rises in steps and falls by halves.
 *   - a gap begins with a loan, and anew when a request is sent: the borrower keeps that by himself as long as he has the loan, and
 *     what is left of it holds for everybody from the commit on (host_wait_ms). So at host_max 1 no two requests of a host are ever
 *     closer than its gap, whoever sends them; above that two workers' may be, by what lies between a loan and its sending.
 *   - of a host nothing of which is lent to others a claim may lend more than host_max at once (host_ahead): the borrower then keeps
 *     host_max and the gap by himself. What is lent counts, begun or not, so that nobody else gets one before fewer than host_max are left.
 *     Nobody goes ahead of a host_cooldown_ms; and unless feeds are named, what goes ahead gets the room that all others left in the claim.
 *   - an outcome whose fence is not the feed's current one writes nothing and is reported FW_ESTALE.
 *   - entries are unique by (feed, key): storing one again changes nothing unless its hash differs. Of two with one key in one
 *     document the first counts. What prune took away stays away, also while its feed still lists it.
 *   - what the owner sets (paused, quarantined) while a feed is lent outlives the outcome's status.
 *   - a feed may be lent by its number too, due or not, paused or not, for entries that somebody brought (lend). No budget of its host
 *     is used, and an outcome of kind FW_VISIT_PUSHED leaves due_at_ms as it stands, also where its owner has changed it meanwhile.
 *   - a feed that is due at FW_DUE_FIRST was asked for by a person: its time is before all others, so claims lend it first.
 *   - times are Unix milliseconds, UTC; a driver with a clock of its own uses that where `now_ms` is 0.
 *   - every call blocks; one thread per store at a time; any number of processes.
 *   - a driver sees its arguments during the call only and copies what it keeps; what it hands out goes into the arena the
 *     caller brought, or lives during the callback.
 *   - errors: FW_EIO the connection or file broke (reopen, retry), FW_EAGAIN another writer held it longer than busy_timeout_ms
 *     (retry), FW_ENOTFOUND, FW_EVERSION, FW_EINVAL, FW_ENOMEM; err names the store and the remedy.
 *
 * Adding a slot: at the end of struct fw_store_driver, and raise FW_STORE_ABI.
 */
#ifndef FEEDWHEEL_STORE_H
#define FEEDWHEEL_STORE_H

#include "feedwheel/document.h"
#include "feedwheel/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FW_STORE_ABI 7

struct fw_store;

#define FW_DUE_FIRST 1 /* ms: a due_at_ms before all others */

/* The learned pace of a host: strained: FW_PACE_MIN_MS at first, then twice as long, up to FW_PACE_MAX_MS. Not strained: pace x
   FW_PACE_STEP_MS / (FW_PACE_STEP_MS + pace), that is a tenth of a visit a second more; from FW_PACE_NONE_MS down there is none. */
#define FW_PACE_MIN_MS 1000
#define FW_PACE_MAX_MS 600000
#define FW_PACE_STEP_MS 10000
#define FW_PACE_NONE_MS 50

/* ---- what is kept ------------------------------------------------------------------------------------------------ */

enum fw_feed_status {
	FW_FEED_ACTIVE,
	FW_FEED_PAUSED,      /* by its owner */
	FW_FEED_GONE,        /* 410, or JSON Feed expired: not asked any more, shown */
	FW_FEED_QUARANTINED, /* its visit killed a worker twice: set aside, shown */
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
	FW_VISIT_PUSHED,        /* no visit of ours: somebody brought entries */
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
/* Does it take entries that somebody brings? To pause it is not to ask its server. */
static inline bool fw_feed_takes_entries(enum fw_feed_status status)
{
	return status == FW_FEED_ACTIVE || status == FW_FEED_PAUSED;
}

/*
 * A feed and what is known of it. Members are in groups; an outcome says which groups changed (FW_GROUP_*), and only these are
 * written. The first group is always written: it is the one narrow row an unchanged visit costs.
 */
struct fw_feed {
	int64_t id;
	struct fw_str url; /* as subscribed (or adopted after permanent redirects); unique */

	/* wheel: always written */
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
	uint32_t redirect_n;         /* visits that showed it; 0: what is there is another feed; fw_feed_is_named(): see there */

	/* FW_GROUP_HOST, since ABI 6: whose budget it uses, where that is not what fw_store_host() says; absent: that. An outcome that changes
	   it moves the feed to that host: its loan goes back to the old one, what is left of its gap holds at the new one. */
	struct fw_str host_key;

	/* FW_GROUP_URL: an outcome may change url itself (adoption); when another feed has it outcome.rc is FW_EINVAL and the
	   rest of the outcome is written */

	/* the owner's (subscribe, feed_set): never written by commit */
	struct fw_str user_title, folder, username, password;
	int64_t interval_ms;         /* fixed by the owner; 0: by the schedule */
	int64_t push_until_ms;       /* not the owner's but WebSub's: till then a hub has promised to bring what is new; 0: none has */
	int64_t created_ms;

	/* kept by the store */
	int64_t last_new_ms;         /* when it last had a new entry; 0: never */
	int64_t entry_n;             /* feed_find and feed_list only */
	int64_t lease_until_ms;      /* 0: not lent */
	int64_t fence;
};

enum {
	FW_GROUP_ERROR = 1, FW_GROUP_VALIDATORS = 2, FW_GROUP_META = 4, FW_GROUP_RHYTHM = 8, FW_GROUP_REDIRECT = 16,
	FW_GROUP_URL = 32, FW_GROUP_HOST = 64, /* never both in one outcome */
};

/*
 * Does the feed's document name redirect_url as its address, and no request was redirected there yet? Then redirect_n counts the documents,
 * from FW_REDIRECT_NAMED on. That alone moves no feed.
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
	int64_t queue_us;            /* duration: from the loan to the request */
	int64_t parse_us;            /* duration */
	int64_t store_us;            /* duration: from the end of the parse to the beginning of its commit */
	uint64_t wire_bytes, body_bytes;
	uint32_t item_n, new_n, changed_n; /* new_n and changed_n are the store's finding */
	struct fw_str error;
	struct fw_str feed_url;      /* reading only */
};

/* What each phase took: name look-up, connection, TLS, waiting for the first byte, body. 0: not reached. What was spent in vain belongs to
   the phase that was under way. */
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
	part_us[v->kind == FW_VISIT_DNS ? NAME : v->kind == FW_VISIT_TLS ? TLS : v->kind == FW_VISIT_CONNECT || !v->connect_us ? CONNECT : WAIT] += vain_us;
}

/* A usage event (somebody has seen an entry, say), as the front door takes them: nothing to do with the wheel. */
struct fw_event {
	int64_t id;                  /* whoever pushes gives it: unique, rising with time (base/ids.h) */
	struct fw_str property;
	int64_t section, item;       /* columns property_section, property_id */
	struct fw_str remote_ip;     /* as text; empty: unknown */
	int64_t stamp_ms;            /* column stamp */
};

/* One that the store refused. */
struct fw_dead_event {
	int64_t id;
	struct fw_str row;           /* JSON object with the members of table incoming */
	struct fw_str reason;
	int64_t at_ms;
};

/* A small thing of one of feedwheel's parts, kept beside the feeds: an access token, the answer to an Idempotency-Key. */
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

/* ---- life ---------------------------------------------------------------------------------------------------------- */

enum {
	FW_STORE_CREATE = 1,   /* make it when it is not there */
	FW_STORE_READ = 2,     /* will not write */
	FW_STORE_NO_MIGRATE = 4, /* fail with FW_EVERSION instead of bringing an older schema up to date */
};

struct fw_store_config {
	const char *url;          /* sqlite:PATH, memory:, postgres://... */
	unsigned flags;
	int64_t busy_timeout_ms;  /* 0: 10,000 */
	size_t cache_bytes;       /* 0: the driver's default */
	bool relaxed;             /* may lose the last commits on power loss (never on a crash of ours): SQLite NORMAL */
};

/* ---- the wheel ------------------------------------------------------------------------------------------------------ */

struct fw_claim_ask {
	const char *worker;       /* who borrows: unique per process, "host/pid/n" */
	int64_t now_ms;           /* 0: the store's clock */
	int64_t due_before_ms;    /* lend only feeds with due_at_ms <= this; 0: now */
	int64_t lease_ms;         /* > 0 */
	size_t max;               /* at most this many */
	uint32_t host_max;        /* in flight per host over all workers; 0: no limit */
	int64_t host_gap_ms;      /* between two loans of one host, and two requests to it */
	/* Since ABI 5; 0 and NULL: as before. */
	uint32_t host_ahead;      /* of a host of which nobody else has any: up to host_max + host_ahead, lent to this worker in all. Each moves
	                             the time from which the host may be asked on by its gap; a claim lends ahead of that time, but no
	                             further than host_ahead gaps, and none to who has none of that host yet: he does not know when
	                             the last request was sent */
	int64_t expect_max_us;    /* only those that are expected to take at most so long, or unknown; but all that are due at FW_DUE_FIRST. Of a
	                             host at its limit one feed stands in line for all that are parked: a slow one that has this turn keeps it,
	                             and the host's quick ones wait with it for a claim that takes slow ones too. To pass it by would be a
	                             look at all that the host has, for each host in each such claim, and the slow one would never get in */
	const int64_t *ids;       /* only these, at most max of them, those that come first here first: as far as they are due and on the wheel. Others
	                             are passed over; deferred_n counts those that their host's budget kept back */
	size_t id_n;
};

struct fw_lease {
	struct fw_feed feed;      /* all groups; strings in the arena */
	int64_t fence;
	int64_t until_ms;         /* of the store's clock */
	int64_t host_id;          /* the same for all feeds of one host; 0: it is the only one */
	int64_t host_gap_ms;      /* to be kept between two requests to its host: the ask's, or the learned pace */
	int64_t host_expect_us;   /* what visits to its host take: exponentially weighted average; 0: unknown */
};

struct fw_claim_got {
	size_t n;
	size_t deferred_n;        /* due, but their host's budget was used up: put off, not failed */
	int64_t next_ms;          /* when something may be due next: a hint, never too late for those who claim again after a commit,
	                             a release or a change; FW_NO_DATE: the wheel is empty */
};

/* One feed, by its number. */
struct fw_lend_ask {
	int64_t feed_id;
	const char *worker;       /* who borrows, as in a claim */
	int64_t now_ms;           /* 0: the store's clock */
	int64_t lease_ms;         /* > 0 */
};

struct fw_lend_got {
	int64_t fence;            /* 0: it was not lent */
	int64_t until_ms;         /* of the store's clock: the end of this loan, or of another's; 0: nobody has it */
	enum fw_feed_status status; /* not lent to anybody: why it cannot be */
	char worker[128];         /* who has it instead; cut where it is longer */
};

enum fw_host_mood {
	FW_HOST_UNKNOWN,  /* nothing: the pace stays */
	FW_HOST_FINE,     /* it answered: the pace shrinks, if there is one */
	FW_HOST_STRAINED, /* 429, 503: the pace doubles */
};

/* The pace after an outcome of this mood (FW_PACE_*). */
static inline int64_t fw_store_pace(int64_t pace_ms, enum fw_host_mood mood)
{
	pace_ms = pace_ms < 0 ? 0 : pace_ms > FW_PACE_MAX_MS ? FW_PACE_MAX_MS : pace_ms;
	if (mood == FW_HOST_STRAINED)
		return 2 * pace_ms < FW_PACE_MIN_MS ? FW_PACE_MIN_MS : 2 * pace_ms > FW_PACE_MAX_MS ? FW_PACE_MAX_MS : 2 * pace_ms;
	if (mood == FW_HOST_UNKNOWN)
		return pace_ms;
	pace_ms = pace_ms * FW_PACE_STEP_MS / (FW_PACE_STEP_MS + pace_ms);
	return pace_ms > FW_PACE_NONE_MS ? pace_ms : 0;
}

struct fw_outcome {
	int64_t feed_id, fence;
	const struct fw_feed *feed;  /* the state to write */
	unsigned groups;             /* FW_GROUP_* that differ from what was lent */
	int64_t host_cooldown_ms;    /* nobody asks this host before this time (Retry-After); 0: none */
	enum fw_host_mood host_mood; /* what the answer says of its host's pace */
	int64_t host_wait_ms;        /* Since ABI 6. From the commit's time on nobody asks this host for so long: what is left of its gap, which
	                                counts from the request's sending; 0: nothing is */
	struct fw_visit visit;       /* in; the store fills visit.new_n and visit.changed_n */
	const struct fw_entry_row *entries;
	size_t entry_n;
	int rc;                      /* out: 0, FW_ESTALE (nothing written), FW_EINVAL (url is taken; the rest is written) */
};

struct fw_beat { /* a worker's sign of life; part of a commit */
	const char *worker;
	int64_t pid, started_ms, run_id;
	uint64_t visits, new_entries, failures;
	uint32_t in_flight, slots;
	int64_t at_ms;               /* reading only */
};

struct fw_commit {
	int64_t now_ms;              /* 0: the store's clock */
	struct fw_outcome *outcome;
	size_t n;
	const struct fw_beat *beat;  /* NULL: none */
};

/* ---- the window ------------------------------------------------------------------------------------------------------ */

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
	int64_t after_id, before_id; /* cursors by id; 0: none. Somebody's who follows by id hides what is stored above numbers that may still
	                                come; one entry, with nothing else between the two, is shown as soon as it is there */
	int64_t behind_id, behind_date_ms; /* the cursor of newest first: those that come after this one there; its id (0: none) and date */
	size_t limit;                /* 0: all */
	bool oldest_first;           /* by id; default: newest first, by date (published, else updated; at the latest when seen) */
	bool content;                /* fill content (and content_base) too */
	bool key;                    /* fill key and hash too: in a long list of one feed that is not cheap */
	int64_t *unindexed_n;        /* Since ABI 7. Out, with search, before the first entry is shown: how many entries the search index did
	                                not hold when it was searched; 0: the answer is complete. NULL: not wanted */
};

/* Is it one entry that is asked for, by its number? */
static inline bool fw_store_entry_is_one(const struct fw_entry_query *q)
{
	return q->before_id > 0 && q->after_id == q->before_id - 2;
}

/* A feed that is due, as narrow as can be. */
struct fw_due_row {
	int64_t feed_id;
	int64_t host_id;             /* as in a lease */
	int64_t due_at_ms, expect_us, expect_dev_us;
	int64_t last_visit_ms;       /* since ABI 6; 0: never */
};

/*
 * In a backlog: what a visit now is worth against others'. It is how many of its own intervals a feed is late, (now - due) / (due - last
 * visit): the schedule makes intervals such that about as much is to be expected in each. It grows with time for every feed, so each
 * has its turn; where work is always more than can be done, all come late by the same part of their intervals. Dates in any order;
 * an interval of less than a second counts as one: such a feed was made due by hand. Not for a feed that was never visited, which
 * has none.
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
	int64_t feed_n, active_n, due_n, lent_n, failing_n, gone_n, quarantined_n, paused_n;
	int64_t entry_n, visit_n, unindexed_n;
	int64_t next_due_ms;         /* FW_NO_DATE: nothing */
	int64_t size_bytes;          /* -1: unknown */
	int64_t schema;
	int64_t last_feed_id, last_entry_id, last_visit_id; /* the highest in use; 0: none */
};

enum fw_control_kind {
	FW_CONTROL_NONE, FW_CONTROL_STOP, FW_CONTROL_PAUSE, FW_CONTROL_RESUME, FW_CONTROL_RELOAD,
	FW_CONTROL_FETCH, /* feeds were made due at FW_DUE_FIRST: look for them, however busy */
	FW_CONTROL_FETCH_LENT, /* the same, and some were lent then: give back what has not begun */
};

struct fw_control {
	int64_t id;                  /* rising */
	enum fw_control_kind kind;
	int64_t created_ms;
	bool paused;                 /* asked with after_id < 0 only: the newest PAUSE or RESUME is a PAUSE */
};

/*
 * Rows as another store had them, with their ids; all of them in one transaction. What is there already (a feed's id, an entry's id or
 * key, a key, a visit's id) is passed over, so that a load may be repeated. A feed is written with all groups, the owner's members
 * and the store's last_new_ms; an active one gets on the wheel, due as it says; lease, fence and entry_n are not looked at.
 * Entries keep key, hash, seen_ms, changed_ms and revision. A feed's visits come oldest first, in this load and from load to load.
 * Feeds come before what belongs to them: in the same load or an earlier one. New ids go on above the highest.
 */
struct fw_load {
	const struct fw_feed *feed;
	const struct fw_entry_row *entry;
	const struct fw_entry_key *key; /* of entries that retention took: entry_id is not looked at */
	const struct fw_visit *visit;
	size_t feed_n, entry_n, key_n, visit_n;
};

/*
 * Callbacks: what they are shown lives until they return. Anything but 0 stops the walk and is returned. They must not call
 * the store they are called from.
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

/* ---- the driver -------------------------------------------------------------------------------------------------------- */

/* Every slot: 0 or FW_E*, words in err (never NULL here). Slots marked (o) may be NULL. */
struct fw_store_driver {
	int abi;                     /* FW_STORE_ABI */
	const char *name;            /* "sqlite" */
	const char *const *schemes;  /* NULL-ended: "sqlite", NULL */

	int (*open)(const struct fw_store_config *cfg, struct fw_store **out, struct fw_err *err);
	void (*close)(struct fw_store *st);
	int (*ping)(struct fw_store *st, struct fw_err *err);
	/* (o) deep check of the store's integrity; each finding through cb, words for people */
	int (*check)(struct fw_store *st, void (*cb)(void *ctx, const char *finding), void *ctx, struct fw_err *err);

	int (*claim)(struct fw_store *st, const struct fw_claim_ask *ask, struct fw_arena *a, struct fw_lease *out,
		struct fw_claim_got *got, struct fw_err *err);
	/* All or nothing but for stale outcomes. A failed commit may be tried again as it is: nothing is stored twice. */
	int (*commit)(struct fw_store *st, struct fw_commit *batch, struct fw_err *err);
	/* Give leases back unvisited: due_at_ms as it was, budget returned. Stale ones are passed over. */
	int (*release)(struct fw_store *st, const struct fw_lease *lease, size_t n, struct fw_err *err);
	/* The same for all leases of one dead worker; with feed_id != 0, that feed's crash_n rises by one and at 2 it is quarantined. */
	int (*bury)(struct fw_store *st, const char *worker, int64_t crashed_feed_id, int64_t now_ms, struct fw_err *err);
	/* (o) has another connection changed something since the last call? Cheap. */
	int (*changed)(struct fw_store *st, bool *changed, struct fw_err *err);
	/* (o) sleep until a change, until wake_fd is readable, or for timeout_ms */
	int (*wait)(struct fw_store *st, int wake_fd, int64_t timeout_ms, bool *changed, struct fw_err *err);

	int (*subscribe)(struct fw_store *st, struct fw_feed_new *feed, size_t n, struct fw_err *err);
	int (*unsubscribe)(struct fw_store *st, int64_t feed_id, struct fw_err *err); /* its entries go too */
	int (*feed_find)(struct fw_store *st, int64_t id, struct fw_str url, struct fw_arena *a, struct fw_feed *out,
		struct fw_err *err); /* by id, or by url when id is 0 */
	int (*feed_list)(struct fw_store *st, const struct fw_feed_query *q, fw_feed_cb *cb, void *ctx, struct fw_err *err);
	int (*feed_set)(struct fw_store *st, const struct fw_feed *feed, unsigned what, struct fw_err *err);
	int (*entry_list)(struct fw_store *st, const struct fw_entry_query *q, fw_entry_cb *cb, void *ctx, struct fw_err *err);
	int (*visit_list)(struct fw_store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx, struct fw_err *err);
	int (*stats)(struct fw_store *st, int64_t now_ms, struct fw_store_stats *out, struct fw_err *err);
	/* Feeds with due_at_ms <= due_before_ms: how many, and the earliest time one of them may be lent (FW_NO_DATE: none). */
	int (*pending)(struct fw_store *st, int64_t due_before_ms, int64_t *n, int64_t *wake_ms, struct fw_err *err);

	int (*control_put)(struct fw_store *st, enum fw_control_kind kind, int64_t now_ms, struct fw_err *err);
	/* The oldest control message after id; kind FW_CONTROL_NONE: none. With after_id < 0: the newest one's id, kind NONE, and
	   whether the newest PAUSE or RESUME is a PAUSE. */
	int (*control_take)(struct fw_store *st, int64_t after_id, struct fw_control *out, struct fw_err *err);
	int (*beat_list)(struct fw_store *st, int64_t since_ms, fw_beat_cb *cb, void *ctx, struct fw_err *err);

	/* (o) one short step (tens of ms) of background work: full-text index, checkpoint, retention. *more: call again. */
	int (*upkeep)(struct fw_store *st, int64_t now_ms, bool *more, struct fw_err *err);
	/* (o) forget visits older than visits_before_ms (signs of life and control messages too, but they are not counted, and whether
	   the fleet is paused is not forgotten), and entries neither new nor changed since entries_before_ms (0: keep) */
	int (*prune)(struct fw_store *st, int64_t visits_before_ms, int64_t entries_before_ms, int64_t *n, struct fw_err *err);

	/* Since ABI 2. FW_EINVAL: a feed's id or url is that of another feed; nothing was written. */
	int (*load)(struct fw_store *st, const struct fw_load *rows, struct fw_err *err);
	/* All keys of the feeds with these ids, feed by feed in order of id; within one in any order. */
	int (*key_list)(struct fw_store *st, int64_t first_feed_id, int64_t last_feed_id, fw_key_cb *cb, void *ctx,
		struct fw_err *err);
	/* (o) the store's clock; NULL: it is that of the process */
	int (*clock)(struct fw_store *st, int64_t *now_ms, struct fw_err *err);
	/* (o) the server's version, how durable a commit is, settings that hurt */
	int (*inspect)(struct fw_store *st, fw_inspect_cb *cb, void *ctx, struct fw_err *err);

	/* Since ABI 3. Events: all in one transaction, or none. An id that is there already is passed over, so a batch may be sent again.
	   FW_EINVAL: at least one will never be taken as it is. */
	int (*event_put)(struct fw_store *st, const struct fw_event *event, size_t n, struct fw_err *err);
	/* One that was refused, kept apart with the reason; in place of the one with that id. */
	int (*event_bury)(struct fw_store *st, const struct fw_dead_event *event, struct fw_err *err);
	/* Oldest first, with ids above after_id; limit 0: all. */
	int (*event_list)(struct fw_store *st, int64_t after_id, size_t limit, fw_event_cb *cb, void *ctx, struct fw_err *err);
	int (*event_dead_list)(struct fw_store *st, int64_t after_id, size_t limit, fw_dead_event_cb *cb, void *ctx, struct fw_err *err);
	/* Take up to about FW_EVENT_STEP of those with a stamp before before_ms, and of dead ones as old; *n: how many. Ids rise with time:
	   one that is old and stands behind so many young ones may wait until those are old. */
	int (*event_prune)(struct fw_store *st, int64_t before_ms, int64_t *n, struct fw_err *err);

	/* Since ABI 4. Put it there, over the one of that kind and key. if_absent: but one that is there and has not run out at
	   r->at_ms stays as it is, and *was becomes true; of many who try at once one finds none. */
	int (*record_put)(struct fw_store *st, const struct fw_record *r, bool if_absent, bool *was, struct fw_err *err);
	/* FW_ENOTFOUND: none. One that has run out is shown until it is pruned: the caller looks at until_ms. */
	int (*record_get)(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_arena *a, struct fw_record *out,
		struct fw_err *err);
	/* In order of the keys' bytes; those that have run out too. */
	int (*record_list)(struct fw_store *st, const struct fw_record_query *q, fw_record_cb *cb, void *ctx, struct fw_err *err);
	/* Unless value is absent only one that has this value goes: who has looked takes nothing that came since. FW_ENOTFOUND: none. */
	int (*record_remove)(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_str value, struct fw_err *err);
	/* Take up to FW_RECORD_STEP of those whose until_ms <= now_ms; *n: how many. */
	int (*record_prune)(struct fw_store *st, int64_t now_ms, int64_t *n, struct fw_err *err);

	/* Lend this feed, unless it is lent, gone or quarantined: *got tells. One that is paused stands nowhere afterwards, as before. It goes
	   back as others do (commit, release, bury, time). FW_ENOTFOUND: no such feed. */
	int (*lend)(struct fw_store *st, const struct fw_lend_ask *ask, struct fw_lend_got *got, struct fw_err *err);

	/* Take these away from those set aside; as event_dead_list showed them. One that is not there is passed over. */
	int (*event_unbury)(struct fw_store *st, const struct fw_dead_event *event, size_t n, struct fw_err *err);

	/* Since ABI 5. Feeds on the wheel with due_at_ms <= due_before_ms, also those whose host has no budget; not those that are lent. About in
	   order of due time, at most limit (0: all). One pass over narrow rows: 200,000 in a second. */
	int (*due_list)(struct fw_store *st, int64_t due_before_ms, size_t limit, fw_due_cb *cb, void *ctx, struct fw_err *err);
	/* Two feeds are one: entries of `from` that `into` lacks, by key and by guid (keys hold the feed's number, so those of two feeds differ),
	   go over with their ids and keys; the rest of `from`, its visits, and the feed itself go away. FW_EAGAIN: one of them is lent. FW_ENOTFOUND: one of them is not there.
	   FW_EUNSUP: no transaction reaches both (Redis, two shards): they stay two. */
	int (*feed_merge)(struct fw_store *st, int64_t from_id, int64_t into_id, struct fw_err *err);
};
#define FW_RECORD_STEP 1000
#define FW_EVENT_STEP 5000

struct fw_store { /* a driver's own struct begins with this */
	const struct fw_store_driver *driver;
	uint64_t call_n, error_n, stale_n;
};

/* ---- what callers use: one function per slot; arguments are checked, NULL slots answered, err may be NULL --------------- */

FW_API FW_MUST_CHECK int fw_store_open(const struct fw_store_config *cfg, struct fw_store **out, struct fw_err *err);
FW_API void fw_store_close(struct fw_store *st);
FW_API const char *fw_store_name(const struct fw_store *st);
/* Is it on a server, that others may use too and that may be away for a while? */
FW_API bool fw_store_is_remote(const char *url);
/* No URL, but the name of an SQLite file: without a ':', and with .db, .sqlite or .sqlite3 at its end. */
bool fw_store_is_file(const char *word);
/* A store's URL for people and logs: "***" for every password, controls escaped, cut where it is long. */
FW_API void fw_store_url_show(const char *url, char *out, size_t cap);
/* The i-th driver built in, or NULL. */
FW_API const struct fw_store_driver *fw_store_driver_at(size_t i);
/* The name of the i-th driver that this build goes without, or NULL. To open a store of it is FW_EUNSUP. */
FW_API const char *fw_store_absent_at(size_t i);
FW_API FW_MUST_CHECK int fw_store_ping(struct fw_store *st, struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_check(struct fw_store *st, void (*cb)(void *ctx, const char *finding), void *ctx,
	struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_claim(struct fw_store *st, const struct fw_claim_ask *ask, struct fw_arena *a,
	struct fw_lease *out, struct fw_claim_got *got, struct fw_err *err);
/* out is filled when got->fence is not 0: all groups, strings in the arena. */
FW_API FW_MUST_CHECK int fw_store_lend(struct fw_store *st, const struct fw_lend_ask *ask, struct fw_arena *a, struct fw_lease *out,
	struct fw_lend_got *got, struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_commit(struct fw_store *st, struct fw_commit *batch, struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_release(struct fw_store *st, const struct fw_lease *lease, size_t n, struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_bury(struct fw_store *st, const char *worker, int64_t crashed_feed_id, int64_t now_ms,
	struct fw_err *err);
/* Works on every driver: without a wait slot it looks at `changed` with back-off (50 ms to 1 s). */
FW_API FW_MUST_CHECK int fw_store_wait(struct fw_store *st, int wake_fd, int64_t timeout_ms, bool *changed, struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_subscribe(struct fw_store *st, struct fw_feed_new *feed, size_t n, struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_unsubscribe(struct fw_store *st, int64_t feed_id, struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_feed_find(struct fw_store *st, int64_t id, struct fw_str url, struct fw_arena *a,
	struct fw_feed *out, struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_feed_list(struct fw_store *st, const struct fw_feed_query *q, fw_feed_cb *cb, void *ctx,
	struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_feed_set(struct fw_store *st, const struct fw_feed *feed, unsigned what, struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_entry_list(struct fw_store *st, const struct fw_entry_query *q, fw_entry_cb *cb, void *ctx,
	struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_visit_list(struct fw_store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx,
	struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_stats(struct fw_store *st, int64_t now_ms, struct fw_store_stats *out, struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_pending(struct fw_store *st, int64_t due_before_ms, int64_t *n, int64_t *wake_ms,
	struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_control_put(struct fw_store *st, enum fw_control_kind kind, int64_t now_ms,
	struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_control_take(struct fw_store *st, int64_t after_id, struct fw_control *out,
	struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_beat_list(struct fw_store *st, int64_t since_ms, fw_beat_cb *cb, void *ctx,
	struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_upkeep(struct fw_store *st, int64_t now_ms, bool *more, struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_prune(struct fw_store *st, int64_t visits_before_ms, int64_t entries_before_ms, int64_t *n,
	struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_load(struct fw_store *st, const struct fw_load *rows, struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_key_list(struct fw_store *st, int64_t first_feed_id, int64_t last_feed_id, fw_key_cb *cb,
	void *ctx, struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_event_put(struct fw_store *st, const struct fw_event *event, size_t n, struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_event_bury(struct fw_store *st, const struct fw_dead_event *event, struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_event_list(struct fw_store *st, int64_t after_id, size_t limit, fw_event_cb *cb, void *ctx,
	struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_event_dead_list(struct fw_store *st, int64_t after_id, size_t limit, fw_dead_event_cb *cb,
	void *ctx, struct fw_err *err);
/* Steps for a tenth of a second; *more: there are more, call again. */
FW_API FW_MUST_CHECK int fw_store_event_prune(struct fw_store *st, int64_t before_ms, int64_t *n, bool *more, struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_event_unbury(struct fw_store *st, const struct fw_dead_event *event, size_t n, struct fw_err *err);
/* was may be NULL. */
FW_API FW_MUST_CHECK int fw_store_record_put(struct fw_store *st, const struct fw_record *r, bool if_absent, bool *was,
	struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_record_get(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_arena *a,
	struct fw_record *out, struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_record_list(struct fw_store *st, const struct fw_record_query *q, fw_record_cb *cb, void *ctx,
	struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_record_remove(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_str value,
	struct fw_err *err);
/* As event_prune. */
FW_API FW_MUST_CHECK int fw_store_record_prune(struct fw_store *st, int64_t now_ms, int64_t *n, bool *more, struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_clock(struct fw_store *st, int64_t *now_ms, struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_due_list(struct fw_store *st, int64_t due_before_ms, size_t limit, fw_due_cb *cb, void *ctx,
	struct fw_err *err);
FW_API FW_MUST_CHECK int fw_store_feed_merge(struct fw_store *st, int64_t from_id, int64_t into_id, struct fw_err *err);
/* Whose budget a feed of this URL uses: "example.org", "blogspot.com" for "someone.blogspot.com". False: the URL names no host. */
FW_API bool fw_store_host(struct fw_str url, char *out, size_t cap);
/* Whose budget this feed uses: its host_key, else that of its url. */
FW_API bool fw_store_feed_host(const struct fw_feed *feed, char *out, size_t cap);
/* A store without that slot has nothing to tell. */
FW_API FW_MUST_CHECK int fw_store_inspect(struct fw_store *st, fw_inspect_cb *cb, void *ctx, struct fw_err *err);

#ifdef __cplusplus
}
#endif
#endif
