/* SPDX-License-Identifier: ISC */
/*
 * The rules of a subscription at a hub (W3C WebSub; rssCloud): when to send which request, how long
 * a response is valid, and how far a hub is trusted. A pure state machine: facts, time and
 * randomness are arguments, which websub.c and hubs.c supply.
 *
 * A feed has at most one subscription, in one of these states:
 *
 *	asked    the request is due at next_ms, or was sent, and the hub has until next_ms to
 *	         verify
 *	active   verified. It is renewed at next_ms, in the last third of the lease, with a new
 *	         callback and a new secret (rssCloud cannot unsubscribe, so it keeps its callback).
 *	         The old callback is valid until the hub has verified the new one, and is
 *	         unsubscribed shortly after
 *	off      refused, failed, or switched off by hand: the next attempt is at next_ms
 *
 * A feed is polled as without a hub unless its subscription is active and the hub is trusted.
 */
#ifndef FW_ENGINE_WEBSUB_RULES_H
#define FW_ENGINE_WEBSUB_RULES_H

#include "base/arena.h"
#include "base/buf.h"
#include "api/websub.h"

#define SUB_HUBS_MAX 5
/* timeout for a hub to verify a request that it accepted */
#define SUB_SILENCE_MS INT64_C(3600000)
/*
 * grace period for a hub to deliver what a poll found, and for deliveries to the previous callback
 */
#define SUB_GRACE_MS INT64_C(600000)
/* rate limit of a feed's requests: burst size */
#define SUB_REQUEST_BURST 8
#define SUB_REQUEST_GAP_MS INT64_C(7200000) /* and refill interval: at most 20 in 24 h */
#define SUB_LEASE_MIN_MS INT64_C(300000)
#define SUB_LEASE_MAX_MS INT64_C(7776000000) /* 90 d */
#define SUB_DENIED_MS INT64_C(604800000)     /* 7 d: WSB-08 */
#define SUB_CLOUD_LEASE_MS INT64_C(90000000) /* 25 h: the lease of rssCloud is fixed */
#define SUB_CLOUD_RENEW_MS INT64_C(86400000)

struct sub {
	int64_t feed_id;
	enum fw_websub_state state;
	bool cloud; /* rssCloud: hub is the URL to register at */
	bool held;  /* switched off by hand */
	/* the hub accepted the request, and its verification is awaited */
	bool accepted;
	struct fw_str hub, topic, token, base; /* base: the callback's URL without the token */
	/* the callback of a renewal, until it is verified and becomes token; absent: none */
	struct fw_str renewal;
	int64_t next_ms;      /* when it is due next */
	int64_t requested_ms; /* time of the last request; 0: never */
	int64_t since_ms;     /* start of the uninterrupted active time; 0: not active */
	int64_t verified_ms;  /* last verification; 0: never */
	int64_t until_ms;     /* end of the lease */
	/* no round of requests starts before: a hub refused, or sent Retry-After; 0: none did */
	int64_t retry_after_ms;
	int64_t distrust_ms; /* when it is trusted again; 0: it is trusted */
	uint32_t fail_n;     /* consecutive failed rounds over all hubs */
	uint32_t missed_n;   /* how often it missed entries that a poll found */
	uint32_t hub_i;      /* index into the feed's hubs */
	char why[160];       /* what happened last, in words */
};

/*
 * The subscription that a feed should have. Its hubs in order of preference: the first that works
 * is used.
 */
struct sub_desired {
	int64_t feed_id;
	struct fw_str hub[SUB_HUBS_MAX];
	uint32_t hub_n; /* 0: no subscription (no hub, or the feed is not fetched) */
	bool cloud;
	struct fw_str topic;
	struct fw_str base;
};

enum sub_change {
	SUB_SAME,
	SUB_NEW /* s is a new subscription; it has the callbacks of the old one, which must be retired */,
	SUB_GONE /* the subscription must be removed */
};

/*
 * Compares the stored subscription s (all zeros: none) with the desired one. After SUB_NEW, s is
 * due at once and needs a token.
 */
enum sub_change sub_reconcile(struct sub *s, const struct sub_desired *w, int64_t now_ms);
/* Makes it neither active nor requested. */
void sub_off(struct sub *s);
/* Sets when it is due next, at the latest at the end of its lease. */
void sub_schedule(struct sub *s, int64_t at_ms);
/* How long deliveries to the callback before a renewal are still accepted. */
int64_t sub_overlap_ms(int64_t lease_ms);
/* Its callback is invalid: a new request is due at once. */
void sub_callback_invalid(struct sub *s, int64_t now_ms);
/*
 * True: the hub accepted a request and did not verify it in time (next_ms), which is a failure.
 * Also ends an expired lease.
 */
bool sub_check_timeout(struct sub *s, const struct sub_desired *w, int64_t now_ms, uint64_t rnd);
/*
 * Call it when the subscription is due (next_ms). True: send a request now, with s->token, or with
 * a new token if *fresh (after SUB_NEW).
 */
bool sub_due(struct sub *s, const struct sub_desired *w, int64_t now_ms, uint64_t rnd, bool *fresh);
/*
 * The rate limiter for requests (token bucket): SUB_REQUEST_BURST requests, then one per gap_ms.
 * *rate_ms is stored for each feed, apart from its subscription, which may come and go; 0: no
 * request yet. Call it after sub_due(). False: not now; s is due again when a request is allowed.
 */
bool sub_rate_take(struct sub *s, int64_t *rate_ms, int64_t gap_ms, int64_t now_ms);
/* The gap for a requested lease: SUB_REQUEST_GAP_MS, or less for short leases. */
int64_t sub_request_gap_ms(int64_t lease_ms);
/*
 * After this many consecutive failures over all topics, a hub gets a cooldown.
 * sub_hub_cooldown_ms(): its length; 0: none.
 */
#define SUB_HUB_FAILS 10
int64_t sub_hub_cooldown_ms(uint32_t fail_n);
/* The hub has responded. why NULL: it accepted. retry_ms: Retry-After as a duration, or 0. */
void sub_responded(
	struct sub *s, const struct sub_desired *w, const char *why, int64_t retry_ms, int64_t now_ms, uint64_t rnd);
/* The hub has verified the subscription, for lease_ms. */
void sub_verified(struct sub *s, int64_t verified_ms, int64_t lease_ms, uint64_t rnd);
void sub_denied(struct sub *s, const struct sub_desired *w, struct fw_str reason, int64_t now_ms, uint64_t rnd);
/*
 * A poll at polled_ms has found new entries; the previous good poll was at before_ms. pushed_ms:
 * the hub's last delivery. Call it SUB_GRACE_MS after the poll. True: the hub missed the entries,
 * and is trusted less.
 */
bool sub_missed(struct sub *s, int64_t polled_ms, int64_t before_ms, int64_t pushed_ms, int64_t now_ms);
/* Until when the feed is rarely polled: fw_feed.push_until_ms. */
int64_t sub_push_until(const struct sub *s, int64_t now_ms);

/*
 * Clamps the lease that a hub states; asked_ms: the requested lease. why: an explanation for users,
 * "" if it is used as stated.
 */
int64_t sub_lease_ms(struct fw_str seconds, int64_t requested_ms, char why[80]);

/* ---- the protocol's texts ------------------------------------------------ */

/* Appends name=value, percent-encoded. */
void form_add(struct fw_buf *b, const char *name, struct fw_str value);
void form_int(struct fw_buf *b, const char *name, int64_t value);
/* Finds the value of a name in a form, decoded. False: not found. */
FW_MUST_CHECK bool form_get(struct fw_str form, const char *name, struct fw_arena *a, struct fw_str *out);
/*
 * Does header, the value of X-Hub-Signature, sign body with secret? sha1, sha256, sha384 or sha512;
 * constant-time comparison.
 */
FW_MUST_CHECK bool signature_is_valid(struct fw_str header, struct fw_str secret, struct fw_str body);
/*
 * A callback's token: 128 random bits and 128 bits of their MAC by the store's key, in hex. A
 * forged token is recognised without a query to the store. False: no randomness.
 */
#define SUB_KEY_LEN 32
#define SUB_TOKEN_LEN 64
FW_MUST_CHECK bool callback_make(const unsigned char key[SUB_KEY_LEN], char out[SUB_TOKEN_LEN + 1]);
/* constant time */
FW_MUST_CHECK bool callback_is_ours(const unsigned char key[SUB_KEY_LEN], struct fw_str token);
/* 160 random bits in hex. */
#define SUB_SECRET_LEN 40
FW_MUST_CHECK bool secret_make(char out[SUB_SECRET_LEN + 1]);

#endif
