/* SPDX-License-Identifier: ISC */
/*
 * What is kept of subscriptions: records of kind "websub". Each has one who writes it, so that nobody overwrites what another has found:
 *
 *	feed/N      struct sub. The process that leads
 *	cb/TOKEN    a callback. Made and ended by the process that leads; in between, who is told by a hub notes it there
 *	n/N         what came for feed N: counts. Every process, now and then
 *	brake/N     how often the hubs of feed N were asked (sub_may_ask). The process that leads; it outlives feed/N
 *	ask/N/WORD  something to look at, for the process that leads: "look" (a hub has verified or refused), "missed", "on", "off"
 *	key         signs callbacks. Made by who needs it first, never changed
 *	base        what callbacks begin with. The process that leads
 *	leader      who leads, till when
 *
 * N has 19 digits, so that keys stand in order of numbers.
 */
#ifndef FW_ENGINE_WEBSUB_REC_H
#define FW_ENGINE_WEBSUB_REC_H

#include "base/arena.h"
#include "engine/websub/websub_law.h"

#define REC_KIND FW_STR("websub")

enum callback_state { CALLBACK_ASKED, CALLBACK_ACTIVE, CALLBACK_DENIED, CALLBACK_LEAVING, CALLBACK_LEFT };

struct callback {
	struct fw_str token;
	int64_t feed_id;
	enum callback_state state;
	bool cloud;
	struct fw_str hub, topic, secret; /* secret absent: there is none */
	int64_t lease_asked_ms, lease_ms; /* lease_ms: as verified */
	int64_t said_ms;                  /* when the hub verified or refused last; 0: it has not */
	struct fw_str why;                /* the hub's reason, or what is odd about its lease */
	uint32_t try_n;                   /* leaving: requests so far */
	int64_t next_ms;                  /* leaving: the next one */
};

struct counts {
	int64_t feed_id, delivered_n, new_n, ignored_n, last_ms;
};

static inline void counts_add(struct counts *to, const struct counts *more)
{
	to->delivered_n += more->delivered_n;
	to->new_n += more->new_n;
	to->ignored_n += more->ignored_n;
	to->last_ms = FW_MAX(to->last_ms, more->last_ms);
}

struct missed { /* the value of ask/N/missed */
	int64_t polled_ms, before_ms, new_n;
};

struct rec_key { char text[80]; };
struct rec_key rec_key(const char *what, int64_t feed_id, const char *word /* or NULL */);
/* "feed/123", "n/123", "ask/123/look" back; false: it is no such key. word may be NULL. */
bool rec_key_read(struct fw_str key, const char *what, int64_t *feed_id, struct fw_str *word);

/* Put or get; FW_ENOTFOUND. Texts are in the arena. One that cannot be read is as good as none, and removed by who leads. */
FW_MUST_CHECK int rec_sub_put(struct fw_store *st, const struct sub *s, int64_t now_ms, struct fw_err *err);
FW_MUST_CHECK int rec_sub_get(struct fw_store *st, int64_t feed_id, struct fw_arena *a, struct sub *out, struct fw_err *err);
bool rec_sub_read(struct fw_str value, struct fw_arena *a, struct sub *out);
FW_MUST_CHECK int rec_callback_put(struct fw_store *st, const struct callback *c, int64_t now_ms, struct fw_err *err);
FW_MUST_CHECK int rec_callback_get(struct fw_store *st, struct fw_str token, struct fw_arena *a, struct callback *out, struct fw_err *err);
bool rec_callback_read(struct fw_str value, struct fw_arena *a, struct callback *out); /* token stays as it is */
FW_MUST_CHECK int rec_callback_remove(struct fw_store *st, struct fw_str token, struct fw_err *err); /* one that is not there is fine */
FW_MUST_CHECK int rec_counts_get(struct fw_store *st, int64_t feed_id, struct fw_arena *a, struct counts *out, struct fw_err *err); /* none: zeros */
FW_MUST_CHECK int rec_counts_add(struct fw_store *st, const struct counts *more, int64_t now_ms, struct fw_err *err);
FW_MUST_CHECK int rec_brake_get(struct fw_store *st, int64_t feed_id, int64_t *brake_ms, struct fw_err *err); /* none: 0 */
FW_MUST_CHECK int rec_brake_put(struct fw_store *st, int64_t feed_id, int64_t brake_ms, int64_t now_ms, struct fw_err *err);
FW_MUST_CHECK int rec_ask(struct fw_store *st, int64_t feed_id, const char *word, const struct missed *m /* or NULL */, int64_t now_ms,
	struct fw_err *err);
bool rec_missed_read(struct fw_str value, struct missed *out);
FW_MUST_CHECK int rec_base_get(struct fw_store *st, struct fw_arena *a, struct fw_str *out, struct fw_err *err); /* none: absent */
FW_MUST_CHECK int rec_base_put(struct fw_store *st, struct fw_str base, int64_t now_ms, struct fw_err *err);
/* The key of callbacks; made when there is none. */
FW_MUST_CHECK int rec_mac_key(struct fw_store *st, unsigned char out[SUB_KEY_LEN], struct fw_err *err);
FW_MUST_CHECK int rec_remove(struct fw_store *st, const char *key, struct fw_err *err); /* one that is not there is fine */
FW_MUST_CHECK int rec_feed_remove(struct fw_store *st, const char *what, int64_t feed_id, struct fw_err *err); /* feed/N, n/N or brake/N; the same */

/*
 * Records whose keys begin with prefix. cb may ask the store, and change them; anything but 0 ends it and is returned. a: for what it reads; it
 * lives as long as this one.
 */
typedef int rec_cb(void *ctx, struct fw_str key, struct fw_str value, struct fw_arena *a, struct fw_err *err);
FW_MUST_CHECK int rec_each(struct fw_store *st, const char *prefix, rec_cb *cb, void *ctx, struct fw_err *err);

#endif
