/* SPDX-License-Identifier: ISC */
/*
 * Subscriptions of feeds at hubs: WebSub (W3C Recommendation) and rssCloud, subscriber side.
 *
 * Their state is in records of kind "websub" (feedwheel-store(7)). Of all processes that serve on a
 * store, one at a time (the leader, in its hub thread) sends requests to hubs; all of them receive
 * what hubs send.
 */
#ifndef FW_API_WEBSUB_H
#define FW_API_WEBSUB_H

#include "feedwheel/engine.h"

struct fw_arena;

enum fw_websub_state { FW_WEBSUB_REQUESTED, FW_WEBSUB_ACTIVE, FW_WEBSUB_OFF, FW_WEBSUB_STATE_N };
const char *fw_websub_state_name(enum fw_websub_state s); /* "requested", "active", "off" */

/* a feed's subscription */
struct fw_websub {
	int64_t feed_id;
	enum fw_websub_state state;
	bool cloud; /* rssCloud: its hub sends pings */
	bool held;  /* switched off by hand */
	struct fw_str hub, topic, why;
	int64_t next_ms; /* when it is due next */
	/* active: start of the uninterrupted time, and end of the lease; else 0 */
	int64_t since_ms, until_ms;
	/* polled as usual until then because the hub missed something; 0: trusted */
	int64_t distrust_ms;
	uint32_t missed_n;
	int64_t delivered_n, new_n; /* deliveries, and the new entries in them */
	/* deliveries with a wrong signature, or that were not a feed */
	int64_t ignored_n;
	int64_t last_ms; /* last good delivery; 0: never */
};
/*
 * Lists subscriptions by feed id. A callback's result other than 0 stops the list and is returned.
 */
typedef int fw_websub_cb(void *ctx, const struct fw_websub *s);
FW_MUST_CHECK int fw_websub_list(struct fw_store *st, fw_websub_cb *cb, void *ctx, struct fw_err *err);
/* Errors: FW_ENOTFOUND: the feed has no subscription. Strings are in the arena. */
FW_MUST_CHECK int fw_websub_get(
	struct fw_store *st, int64_t feed_id, struct fw_arena *a, struct fw_websub *out, struct fw_err *err);
/* Where hubs deliver, as recorded by the leader. */
struct fw_websub_leader {
	struct fw_str base; /* absent: no request was sent yet */
	bool exists;        /* a leader exists */
	bool differs;       /* websub_url has another URL here */
};
FW_MUST_CHECK int fw_websub_leader(struct fw_store *st, const struct fw_config *c, struct fw_arena *a,
	struct fw_websub_leader *out, struct fw_err *err);
/*
 * Switches a subscription on, with a request now, or off until it is switched on. The leader does
 * it within seconds.
 */
FW_MUST_CHECK int fw_websub_switch(struct fw_store *st, int64_t feed_id, bool on, int64_t now_ms, struct fw_err *err);

/* ---- requests from hubs: any thread, each with its store ---- */

#define FW_WEBSUB_CHALLENGE_MAX 4096

/* a hub's GET; absent: not sent */
struct fw_websub_intent {
	struct fw_str token; /* from the path */
	struct fw_str mode, topic, challenge, lease, reason;
	struct fw_str url, cloud_challenge; /* rssCloud */
};
/*
 * *answer: the body of the 200 response, empty or one of the challenges, byte for byte; absent:
 * 404.
 * Errors: the store's.
 */
FW_MUST_CHECK int fw_websub_intent(struct fw_store *st, const struct fw_websub_intent *in, int64_t now_ms,
	struct fw_str *answer, struct fw_err *err);

enum fw_websub_verdict {
	FW_WEBSUB_ACCEPT, /* authentic: store it */
	/* not authenticated: the feed is polled instead, which is already arranged */
	FW_WEBSUB_HINT,
	FW_WEBSUB_IGNORE,   /* wrong signature: 202, and it is dropped */
	FW_WEBSUB_UNSIGNED, /* a required signature is missing: 4xx */
	FW_WEBSUB_GONE,     /* no subscription waits for it: 410 */
	FW_WEBSUB_VERDICT_N
};
/* Classifies a hub's POST, and counts it unless it is stored. Errors: the store's. */
FW_MUST_CHECK int fw_websub_classify(struct fw_store *st, struct fw_str token, struct fw_str signature,
	struct fw_str body, int64_t now_ms, int64_t *feed_id, enum fw_websub_verdict *out, struct fw_err *err);
/* Makes the feed due soon. */
FW_MUST_CHECK int fw_websub_hint(struct fw_store *st, int64_t feed_id, int64_t now_ms, struct fw_err *err);
/*
 * Counts a delivery that was stored, with its new entries, or that was not a feed (good false).
 * Does not use the store.
 */
void fw_websub_count(int64_t feed_id, bool good, int64_t new_n, int64_t now_ms);

/* counters of this process */
struct fw_websub_stats {
	uint64_t verdict[FW_WEBSUB_VERDICT_N];
	/*
	 * requests to hubs; failed ones; verified and denied by hubs; polls that found missed
	 * entries
	 */
	uint64_t requests_n, refused_n, verified_n, denied_n, missed_n;
	/* requests at forged callbacks; at others, which were looked up in the store */
	uint64_t unknown_n, lookups_n;
	int64_t known_n, active_n; /* subscriptions; 0 if another process is the leader */
	bool leads;
};
void fw_websub_stats(struct fw_websub_stats *out);

/* ---- the hub thread ------------------------------------------------------ */

struct fw_hubs;

/*
 * Starts the hub thread; *out is NULL if websub_url is unset. Errors: FW_EINVAL names the setting;
 * FW_EIO no thread; FW_ENOMEM.
 */
FW_MUST_CHECK int fw_hubs_open(const struct fw_config *c, struct fw_hubs **out, struct fw_err *err);
/*
 * True if token could be a callback of this store: its MAC is checked without the store. While the
 * key is unknown, because the store did not respond yet, always true. Any thread.
 */
bool fw_hubs_check_token(struct fw_hubs *h, struct fw_str token);
/* Stops the thread; fw_hubs_check_token() still works. NULL is allowed. */
void fw_hubs_stop(struct fw_hubs *h);
void fw_hubs_close(struct fw_hubs *h); /* NULL is allowed */

#endif
