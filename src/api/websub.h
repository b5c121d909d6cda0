/* SPDX-License-Identifier: ISC */
/*
 * Feeds whose hub brings what is new: subscriber of WebSub (W3C Recommendation) and rssCloud.
 *
 * What is known of it are records of kind "websub" (feedwheel-store(7)). One process at a time, of all that serve on a store, asks hubs
 * (its hub thread); every one of them takes what hubs send.
 */
#ifndef FW_API_WEBSUB_H
#define FW_API_WEBSUB_H

#include "feedwheel/engine.h"

struct fw_arena;

enum fw_websub_state { FW_WEBSUB_ASKED, FW_WEBSUB_ACTIVE, FW_WEBSUB_OFF, FW_WEBSUB_STATE_N };
const char *fw_websub_state_name(enum fw_websub_state s); /* "asked", "active", "off" */

struct fw_websub { /* a feed's subscription */
	int64_t feed_id;
	enum fw_websub_state state;
	bool cloud;                  /* rssCloud: pings, that is */
	bool held;                   /* off by hand */
	struct fw_str hub, topic, why;
	int64_t next_ms;             /* when something is done about it next */
	int64_t since_ms, until_ms;  /* active: since when without a break, and the lease; else 0 */
	int64_t distrust_ms;         /* polled as usual till then, since the hub missed something; 0: it is trusted */
	uint32_t missed_n;
	int64_t delivered_n, new_n;  /* what it sent, and new entries in that */
	int64_t ignored_n;           /* sent, but not signed as it must be, or not a feed */
	int64_t last_ms;             /* when it sent something good last; 0: never */
};
/* By the feed's number. Anything but 0 stops the walk and is returned. */
typedef int fw_websub_cb(void *ctx, const struct fw_websub *s);
FW_MUST_CHECK int fw_websub_list(struct fw_store *st, fw_websub_cb *cb, void *ctx, struct fw_err *err);
/* FW_ENOTFOUND: it has none. Strings in the arena. */
FW_MUST_CHECK int fw_websub_get(struct fw_store *st, int64_t feed_id, struct fw_arena *a, struct fw_websub *out, struct fw_err *err);
/* Where hubs call back, as the process that asks them has it. */
struct fw_websub_home {
	struct fw_str base;          /* absent: none was asked yet */
	bool led;                    /* there is such a process */
	bool differs;                /* websub_url here says another address */
};
FW_MUST_CHECK int fw_websub_home(struct fw_store *st, const struct fw_config *c, struct fw_arena *a, struct fw_websub_home *out,
	struct fw_err *err);
/* By hand: have it subscribed now, or never again until it is asked for. A hub thread does so within seconds. */
FW_MUST_CHECK int fw_websub_switch(struct fw_store *st, int64_t feed_id, bool on, int64_t now_ms, struct fw_err *err);

/* ---- what hubs send: any thread, each with its store --------------------- */

#define FW_WEBSUB_CHALLENGE_MAX 4096

struct fw_websub_intent { /* a hub's GET: absent what it did not send */
	struct fw_str token;         /* of the path */
	struct fw_str mode, topic, challenge, lease, reason;
	struct fw_str url, cloud_challenge; /* rssCloud's */
};
/* *answer: what to answer 200 with, empty or one of the challenges, byte for byte; absent: 404. Errors: the store's. */
FW_MUST_CHECK int fw_websub_intent(struct fw_store *st, const struct fw_websub_intent *in, int64_t now_ms,
	struct fw_str *answer, struct fw_err *err);

enum fw_websub_verdict {
	FW_WEBSUB_TAKE,     /* it is the hub's: store it */
	FW_WEBSUB_HINT,     /* nothing vouches for it: the feed is asked itself. Done already */
	FW_WEBSUB_IGNORE,   /* wrong signature: 202, and nothing happens */
	FW_WEBSUB_UNSIGNED, /* no signature where there must be one: 4xx */
	FW_WEBSUB_GONE,     /* nobody waits for it: 410 */
	FW_WEBSUB_VERDICT_N
};
/* What is to be done with a hub's POST? Counts what is not taken. Errors: the store's. */
FW_MUST_CHECK int fw_websub_judge(struct fw_store *st, struct fw_str token, struct fw_str signature,
	struct fw_str body, int64_t now_ms, int64_t *feed_id, enum fw_websub_verdict *out, struct fw_err *err);
/* The feed is asked itself, soon. */
FW_MUST_CHECK int fw_websub_hint(struct fw_store *st, int64_t feed_id, int64_t now_ms, struct fw_err *err);
/* One more that was stored, with so many new entries; or that was no feed after all (good false). No store is asked. */
void fw_websub_count(int64_t feed_id, bool good, int64_t new_n, int64_t now_ms);

struct fw_websub_stats { /* of this process */
	uint64_t verdict[FW_WEBSUB_VERDICT_N];
	uint64_t asked_n, refused_n, verified_n, denied_n, missed_n; /* requests to hubs; that failed; what hubs said; polls that found what they had not sent */
	uint64_t unknown_n, looked_n; /* requests at callbacks that nobody made; at others, which the store was asked for */
	int64_t known_n, active_n;  /* subscriptions; 0 where another process asks hubs */
	bool leads;
};
void fw_websub_stats(struct fw_websub_stats *out);

/* ---- the hub thread ------------------------------------------------------ */

struct fw_hubs;

/* Setting websub_url unset: *out is NULL. Errors: FW_EINVAL names the setting; FW_EIO no thread; FW_ENOMEM. */
FW_MUST_CHECK int fw_hubs_open(const struct fw_config *c, struct fw_hubs **out, struct fw_err *err);
/* Could this be a callback of the store's? Its signature says so, and the store is not asked; any thread. While the key is not known, for
   the store did not answer yet, all could. */
bool fw_hubs_may_know(struct fw_hubs *h, struct fw_str token);
/* It asks no more; the one above goes on. NULL is fine. */
void fw_hubs_stop(struct fw_hubs *h);
void fw_hubs_close(struct fw_hubs *h); /* NULL is fine */

#endif
