/* SPDX-License-Identifier: ISC */
/*
 * A visit: one poll of a claimed feed, through fetch, parse, schedule and store, and its outcome.
 *
 * Threads: the loop thread owns a visit from visit_start() until it pushes it onto the outcome
 * ring, except while the parser thread reads a large document (parser_thread.h). The store thread
 * owns it until it pushes it onto the recycle ring. Then the loop thread owns it again.
 *
 * Borrowing: the document borrows from the fetched body; the outcome borrows from both and from the
 * claim. All stay unchanged until the visit is recycled.
 *
 * Redirect adoption: a permanent redirect (an unbroken chain of 301 and 308, on a visit that
 * succeeded) becomes the feed's address when
 *
 * - it led to the same address on at least three visits in a row, the last of them at least a day
 *   after the first (POL-09), and
 * - the first document behind it held an entry that the feed had before, or was the same document.
 *   A feed without entries has nothing to compare. A redirect to something else is remembered
 *   (redirect_url) but not counted (redirect_n 0), until it changes or ends, and
 * - no login of the feed would be sent to another origin.
 *
 * A document may name another address as its own: itunes:new-feed-url, JSON Feed's feed_url, or
 * rel=self on another host. Each such visit counts as one of the three, two at most, and the day
 * starts with the first. Until the server redirects, the address is only named
 * (fw_feed_redirect_is_named()). The first redirected visit compares the entries, and only a later
 * one adopts the address.
 *
 * If another feed has the address already, the two feeds are merged (redirect_adoption.h).
 */
#ifndef FW_ENGINE_VISIT_H
#define FW_ENGINE_VISIT_H

#include "base/arena.h"
#include "engine/push/quota.h"
#include "engine/run/visit_rules.h"
#include "feedwheel/engine.h"
#include "fetch/fetch.h"
#include "sched/due.h"
#include "sched/plan.h"
#include "sched/trust.h"
#include "sched/connectivity.h"

enum visit_end {
	VISIT_COMMIT,  /* write the outcome; kind FW_VISIT_NONE: not started, and due later */
	VISIT_RELEASE, /* not started, or cancelled: the feed is due as before */
};

struct claim;

struct visit {
	struct claim *claim;       /* see owner.h; NULL: a visit without a claim (oneshot.c) */
	const struct fw_feed *was; /* the feed as it was claimed: all column groups */
	enum visit_end end;
	int slot;
	struct fw_fetch fetch;
	struct fw_arena arena; /* document, rows, strings */
	struct fw_document *doc;
	uint64_t body_hash;                /* hash of the decoded body; set by visit_read() */
	struct fw_str named;               /* the body is a page: the first feed that it names */
	struct fw_str page_hub, page_self; /* the hub that the page names, and its topic there */
	bool page_replaced;                /* that feed replaces the page */
	bool our_network;                  /* it failed, and the failure is attributed to our own network */
	int64_t offline_ms;                /* how long our own network has been down */
	/*
	 * it failed; the verdict is deferred: the next visits may show that our own network is down
	 */
	bool verdict_deferred;
	int64_t began_ms, ended_ms; /* monotonic; set by visit_learn_network() */
	/* its lease was lost or about to expire: the feed is due as before */
	bool cancelled;
	bool is_elsewhere; /* a redirect has led its request to another host */
	/* abandoned as a straggler of a run --once: its feed is not charged */
	bool abandoned;
	/* a check of the server's 304s: sent without the feed's validators (sched/trust.h) */
	bool checks_304;
	bool compare_304; /* the check returned a document: see trust_check_document() */
	/*
	 * first document behind a permanent redirect, of a feed that had one: see adoption_check()
	 */
	bool new_target;
	enum fw_host_health host_health; /* what the response says of its host's load */
	int64_t cooldown_until_ms;       /* the host's cooldown (Retry-After); 0: none */
	/* cooldown of the name that responded, if it may not speak for the whole host; 0: none */
	int64_t name_cooldown_ms;
	struct fw_feed feed; /* the state to write */
	struct fw_outcome outcome;
	struct fw_entry_row *row; /* rows of its entries */
	struct quota quota;
	int64_t queue_us; /* from the claim to the request; microseconds */
	int64_t read_us;  /* monotonic; when its document had been read */
	/* body and arena; count in the worker's limit until the visit is recycled */
	size_t held_bytes;
	/* read by the parser thread, and counted in its limit */
	bool large;
	void *worker;
	struct visit *next;
};

/* result of visit_parse() */
struct visit_reading {
	enum fw_visit_kind kind; /* OK, FORMAT, LIMIT or LOCAL */
	struct fw_document *doc; /* NULL unless kind is OK */
	/* not a feed: the feeds that the page or its Link header names */
	struct fw_link *feeds;
	struct fw_str hub, self; /* not a feed: its hub, and its topic there */
	int64_t parse_us;
	struct fw_err err; /* set unless kind is OK */
};

/*
 * Parse the body of a completed fetch. Document and links live in the arena and borrow from the
 * fetch. The arena's ceiling becomes rows_memory_limit(). After an error other than FORMAT the
 * arena is empty.
 */
void visit_parse(const struct fw_fetch *f, const struct visit_rules *r, int64_t now_ms, struct fw_arena *a,
	struct visit_reading *out);

/* Set up the request from `was`. */
void visit_prepare(struct visit *v, int64_t now_ms);
/* The fetch has ended: set what the response says of its host (health, cooldown). */
void visit_learn_host(struct visit *v, const struct visit_rules *r, int64_t now_ms);
/*
 * First half: read the document and make rows of its entries. Pure except for the visit and the
 * measured parse time, so it may run on another thread.
 */
void visit_read(struct visit *v, const struct visit_rules *r, int64_t now_ms);
/*
 * Second half: update the feed's state, schedule the next visit, write the outcome. Pure except for
 * the visit.
 */
void visit_conclude(struct visit *v, const struct visit_rules *r, int64_t now_ms, uint64_t rnd);
/* Both halves. */
void visit_finish(struct visit *v, const struct visit_rules *r, int64_t now_ms, uint64_t rnd);
/*
 * Before both halves: feed the fetch's result into the connectivity detector
 * (sched/connectivity.h), and decide whether a failure is attributed to our own network. True: the
 * network's state has changed.
 */
bool visit_learn_network(struct visit *v, struct fw_connectivity *w, int64_t mono_ms);
/* Decide a deferred verdict again by what is known now. */
void visit_settle_verdict(struct visit *v, const struct fw_connectivity *w, int64_t mono_ms);
/* Record the result of a check of the server's 304s. */
void visit_note_304_check(struct visit *v, enum fw_trust_found found, int64_t now_ms);
/*
 * Not all of the document was stored: the next request is sent without validators, so that the
 * server sends it in full. The due time stays.
 */
void visit_drop_validators(struct visit *v);
/* Empty the visit for reuse. It keeps little memory. */
void visit_reset(struct visit *v);

#endif
