/* SPDX-License-Identifier: ISC */
/*
 * The laws of a subscription at a hub (W3C WebSub; rssCloud): what is asked when, how long what a hub says holds, and how far it is
 * trusted. Pure: facts, the time and chance come in as arguments; websub.c and hubs.c bring them.
 *
 * A feed has at most one subscription, in one of these states:
 *
 *	asked    the hub is to be asked (at next_ms), or was, and has until next_ms to verify
 *	active   verified; it is asked again at next_ms, somewhere in the last third of the lease, by a new callback with a new secret
 *	         (rssCloud, which has no way to leave: by the same). The old one holds until the hub has verified the new one, and is left
 *	         a little later
 *	off      refused, failed, or switched off by hand: the next try is at next_ms
 *
 * The feed is polled as if there were no hub unless its subscription is active and the hub is trusted.
 */
#ifndef FW_ENGINE_WEBSUB_LAW_H
#define FW_ENGINE_WEBSUB_LAW_H

#include "base/arena.h"
#include "base/buf.h"
#include "api/websub.h"

#define SUB_HUBS_MAX 5
#define SUB_SILENCE_MS INT64_C(3600000)      /* a hub that took the request has so long to verify */
#define SUB_GRACE_MS INT64_C(600000)         /* and so long to bring what a poll has found already, or has for the callback before */
#define SUB_ASK_BURST 8                      /* the general brake: so many requests for a topic at once, */
#define SUB_ASK_GAP_MS INT64_C(7200000)      /* and one in so long on average: 20 in any 24 h */
#define SUB_LEASE_MIN_MS INT64_C(300000)
#define SUB_LEASE_MAX_MS INT64_C(7776000000) /* 90 d */
#define SUB_DENIED_MS INT64_C(604800000)     /* 7 d: WSB-08 */
#define SUB_CLOUD_LEASE_MS INT64_C(90000000) /* 25 h: rssCloud has no other */
#define SUB_CLOUD_RENEW_MS INT64_C(86400000)

struct sub {
	int64_t feed_id;
	enum fw_websub_state state;
	bool cloud;                /* rssCloud: hub is where to register */
	bool held;                 /* off by hand */
	bool sent;                 /* asked, and the hub took the request: its verification is awaited */
	struct fw_str hub, topic, token, base; /* base: the callback's address without the token */
	struct fw_str renewal;     /* the callback that it is asked again by, until that is verified and becomes token; absent: none */
	int64_t next_ms;           /* when to look at it next */
	int64_t asked_ms;          /* when the hub was asked last; 0: never */
	int64_t since_ms;          /* active without a break since; 0: it is not */
	int64_t verified_ms;       /* last; 0: never */
	int64_t until_ms;          /* the lease */
	int64_t left_ms;           /* a hub has refused, or said when to come again: no round begins before; 0: none has */
	int64_t distrust_ms;       /* trusted again from then on; 0: it is */
	uint32_t fail_n;           /* rounds over all hubs in a row that failed */
	uint32_t missed_n;         /* times it brought nothing of what a poll found */
	uint32_t hub_i;            /* which of the feed's hubs */
	char why[160];             /* in words, what happened last */
};

/* What the feed says of its hubs; the first one that works is used. */
struct sub_wish {
	int64_t feed_id;
	struct fw_str hub[SUB_HUBS_MAX];
	uint32_t hub_n;            /* 0: none is wanted (no hub, or the feed is not fetched) */
	bool cloud;
	struct fw_str topic;
	struct fw_str base;
};

enum sub_change { SUB_SAME, SUB_NEW /* another subscription from now on: s is a new one, with the old one's callbacks, which are to be left */, SUB_GONE /* to be left */ };

/* s as it is kept (all zeros: there is none yet) and what the feed wishes. SUB_NEW: s is asked at next_ms = now_ms, and wants a token. */
enum sub_change sub_wish(struct sub *s, const struct sub_wish *w, int64_t now_ms);
/* It is not active any more, or not asked. */
void sub_off(struct sub *s);
/* When to look at it next: when its lease ends at the latest. */
void sub_at(struct sub *s, int64_t at_ms);
/* For how long what comes to the callback before a renewal is still taken. */
int64_t sub_overlap_ms(int64_t lease_ms);
/* Its callback is no more, whatever the hub thinks: to be asked anew. */
void sub_lost(struct sub *s, int64_t now_ms);
/* The hub took a request, and has not verified it by its time (next_ms): true; a failure like others. And the lease may be over. */
bool sub_silent(struct sub *s, const struct sub_wish *w, int64_t now_ms, uint64_t rnd);
/* Its time has come (next_ms). True: ask the hub now, with s->token (SUB_NEW: a new one, when *fresh). */
bool sub_due(struct sub *s, const struct sub_wish *w, int64_t now_ms, uint64_t rnd, bool *fresh);
/*
 * The general brake, whatever feeds and hubs say: SUB_ASK_BURST requests, then one in gap_ms. *brake_ms is kept for each feed, apart from its
 * subscription, which may come and go; 0: never asked. Behind sub_due(): false: not now; s is to be looked at again when it may be.
 */
bool sub_may_ask(struct sub *s, int64_t *brake_ms, int64_t gap_ms, int64_t now_ms);
/* The gap when hubs are asked for leases of so long: SUB_ASK_GAP_MS, less for those who want it short. */
int64_t sub_ask_gap_ms(int64_t lease_ms);
/* Requests that fail in a row for all topics of a hub, so many: how long it is left alone by all; 0: not at all. */
#define SUB_HUB_FAILS 10
int64_t sub_hub_pause_ms(uint32_t fail_n);
/* The hub was asked. why NULL: it took it. retry_ms: Retry-After as a duration, or 0. */
void sub_answered(struct sub *s, const struct sub_wish *w, const char *why, int64_t retry_ms, int64_t now_ms, uint64_t rnd);
/* It has verified, for so long. */
void sub_verified(struct sub *s, int64_t verified_ms, int64_t lease_ms, uint64_t rnd);
void sub_denied(struct sub *s, const struct sub_wish *w, struct fw_str reason, int64_t now_ms, uint64_t rnd);
/*
 * A poll that began at polled_ms has found what is new, and the one before was good at before_ms. pushed_ms: when the hub brought something
 * last. Judged SUB_GRACE_MS later. True: the hub missed it, and is trusted less.
 */
bool sub_missed(struct sub *s, int64_t polled_ms, int64_t before_ms, int64_t pushed_ms, int64_t now_ms);
/* Till when the feed need hardly be polled: fw_feed.push_until_ms. */
int64_t sub_push_until(const struct sub *s, int64_t now_ms);

/*
 * The lease that a hub says, made sane; asked_ms: what it was asked for. Words for people into why, "" when it is taken as it is.
 */
int64_t sub_lease_ms(struct fw_str seconds, int64_t asked_ms, char why[80]);

/* ---- the protocol's texts ------------------------------------------------ */

/* name=value, percent-encoded, behind what is there. */
void form_add(struct fw_buf *b, const char *name, struct fw_str value);
void form_int(struct fw_buf *b, const char *name, int64_t value);
/* The value of a name in a form, decoded; false: it is not there. */
FW_MUST_CHECK bool form_get(struct fw_str form, const char *name, struct fw_arena *a, struct fw_str *out);
/* Does header, X-Hub-Signature's value, sign body by secret? sha1, sha256, sha384, sha512; compared in constant time. */
FW_MUST_CHECK bool signature_is_good(struct fw_str header, struct fw_str secret, struct fw_str body);
/*
 * A callback's token: 128 random bits and 128 of their MAC by the store's key, in hex. So one that nobody made is told without the store.
 * False: there is no randomness.
 */
#define SUB_KEY_LEN 32
#define SUB_TOKEN_LEN 64
FW_MUST_CHECK bool callback_make(const unsigned char key[SUB_KEY_LEN], char out[SUB_TOKEN_LEN + 1]);
FW_MUST_CHECK bool callback_is_ours(const unsigned char key[SUB_KEY_LEN], struct fw_str token); /* in constant time */
/* 160 random bits in hex. */
#define SUB_SECRET_LEN 40
FW_MUST_CHECK bool secret_make(char out[SUB_SECRET_LEN + 1]);

#endif
