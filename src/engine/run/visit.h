/* SPDX-License-Identifier: ISC */
/*
 * One visit: a claimed feed on its way through fetch, parse, schedule and store.
 *
 * The loop thread owns a visit from visit_start() until it puts it on the outcome ring, but for the time in which a thread of its own reads
 * a large document (reader.h); the store thread owns it until it puts
 * it on the spent ring; then the loop thread again. The document borrows from the fetched body, the outcome borrows from both
 * and from the claim: none of them is touched before the visit is spent.
 *
 * A permanent redirect (an unbroken chain of 301 and 308, seen on a visit that succeeded) becomes the feed's address when
 *   - it led to the same address on three visits in a row at least, the last of them a day or more after the first (POL-09),
 *   - the first document seen through it held an entry that the feed had before, or was the very same document; a feed that had none
 *     yet has nothing to compare. Until the redirect changes or ends, one that showed something else stays in sight (redirect_url)
 *     and is not counted (redirect_n 0),
 *   - and no login of the feed would go to another origin.
 * A document that names another address as its own (itunes:new-feed-url, JSON Feed's feed_url, rel=self on another host) makes that a visit that
 * counts, two of them at most, and the day begins with the first. It is in sight then, but named only (fw_feed_is_named()); the first visit that is
 * redirected there compares the entries, and only a later one adopts it.
 * When another feed has that address already, the two are merged (moves.h).
 */
#ifndef FW_ENGINE_VISIT_H
#define FW_ENGINE_VISIT_H

#include "base/arena.h"
#include "engine/run/host_key.h"
#include "engine/push/quota.h"
#include "feedwheel/engine.h"
#include "fetch/fetch.h"
#include "sched/due.h"
#include "sched/plan.h"
#include "sched/trust.h"
#include "sched/weather.h"

enum visit_end {
	VISIT_COMMIT,  /* the outcome is to be written; kind FW_VISIT_NONE: it was not begun, and is due later */
	VISIT_RELEASE, /* never begun, or cancelled: it is due as before */
};

struct claim;

struct visit {
	struct claim *claim;       /* owner.h; NULL: made without one (oneshot.c) */
	const struct fw_feed *was; /* the feed as it was claimed: all groups */
	enum visit_end end;
	int slot;
	struct fw_fetch fetch;
	struct fw_arena arena;     /* document, rows, texts */
	struct fw_document *doc;
	uint64_t body_hash;        /* of the decoded body; set by reading it */
	struct fw_str named;       /* no feed but a page: the feed that it names first */
	struct fw_str page_hub, page_self; /* and its hub, and its address for that */
	bool moved;                /* ... which took its place */
	bool our_network;          /* it failed, and that is laid at our own door */
	int64_t offline_ms;        /* ... which has been so for so long */
	bool doubtful;             /* it failed, and what comes next may show that that was our own network */
	int64_t began_ms, ended_ms; /* monotonic; set by visit_weather() */
	bool cancelled;            /* its lease ended, or was about to: it is due as before */
	bool impatient;            /* it was given up early, at the end of a --once: its feed is not charged */
	bool checks;               /* sent without the validators that it has, to see whether its 304s are true (sched/trust.h) */
	bool to_compare;           /* ... and a document came: see trust_judge() */
	bool new_target;           /* the first document seen through a permanent redirect, of a feed that had one: see moves_judge() */
	enum fw_host_mood mood;    /* what the answer says of its host's pace */
	int64_t cool_until_ms;     /* nobody asks that host before this time (Retry-After); 0: none */
	int64_t name_pause_ms;     /* the name that answered wants no request for so long, but may not speak for a whole host; 0: none */
	struct fw_feed feed;       /* the state to write */
	struct fw_outcome outcome;
	struct fw_entry_row *row;  /* its entries */
	struct quota quota;
	int64_t queue_us;          /* from the claim to the request */
	int64_t read_us;           /* monotonic: its document was read */
	size_t held_bytes;         /* body and arena, counted against the worker's limit until spent */
	bool large;                /* read by the reading thread: counted against that one's limit */
	void *worker;
	struct visit *next;
};

struct visit_rules { /* settings a visit needs */
	struct fw_due_policy due;
	struct host_rules host;
	struct fw_limits limits;
	size_t parse_memory;       /* setting parse_memory_bytes; 0: none */
	int64_t run_id;
};

struct visit_reading { /* what a body turned out to be */
	enum fw_visit_kind kind;   /* OK, FORMAT, LIMIT or LOCAL */
	struct fw_document *doc;   /* NULL unless kind is OK */
	struct fw_link *feeds;     /* no feed: those that the page or its Link header names */
	struct fw_str hub, self;   /* no feed: its hub, and its address for that */
	int64_t parse_us;
	struct fw_err err;         /* set unless kind is OK */
};

/*
 * Read the body of an ended fetch; document and links live in the arena and borrow from the fetch. Takes no more memory than
 * rows_memory(), which stays the arena's ceiling; what failed leaves the arena empty.
 */
void visit_parse(const struct fw_fetch *f, const struct visit_rules *r, int64_t now_ms, struct fw_arena *a, struct visit_reading *out);

/* Fill in the request from `was`. */
void visit_prepare(struct visit *v, int64_t now_ms);
/* The fetch has ended: what its answer says of its host. */
void visit_mood(struct visit *v, const struct visit_rules *r, int64_t now_ms);
/*
 * First half: read the document, and make rows of it. Pure but for the visit and the time the parse took, so it may
 * run on another thread than the rest.
 */
void visit_read(struct visit *v, const struct visit_rules *r, int64_t now_ms);
/* Second half: decide when to come again, and write down the outcome. Pure but for the visit. */
void visit_conclude(struct visit *v, const struct visit_rules *r, int64_t now_ms, uint64_t rnd);
/* Both. */
void visit_finish(struct visit *v, const struct visit_rules *r, int64_t now_ms, uint64_t rnd);
/*
 * Before both: what the fetch says of our own network (sched/weather.h), and whether its failure is to be laid at our own
 * door. True: the weather has changed.
 */
bool visit_weather(struct visit *v, struct fw_weather *w, int64_t mono_ms);
/* One that was doubtful: it is by what is known now. */
void visit_weather_again(struct visit *v, const struct fw_weather *w, int64_t mono_ms);
/* What a check of its 304s has found. */
void visit_checked(struct visit *v, enum fw_trust_found found, int64_t now_ms);
/* Not all of its document was stored: it has to come in full next time, whether it has changed or not. When that is stays. */
void visit_comes_again(struct visit *v);
/* Empty it for reuse; memory kept is small. */
void visit_reset(struct visit *v);

#endif
