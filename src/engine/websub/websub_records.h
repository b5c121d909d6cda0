/* SPDX-License-Identifier: ISC */
/*
 * The stored records of subscriptions: records of kind "websub". Each key has one writer, so that
 * no process overwrites what another one has found:
 *
 *	feed/N      struct sub. Written by the leader
 *	cb/TOKEN    a callback. Created and removed by the leader; in between, the process that a
 *	            hub contacts records the hub's message there
 *	n/N         counts of the deliveries for feed N. Written by every process, now and then
 *	brake/N     the rate limiter for requests of feed N (sub_rate_take()). Written by the
 *	            leader; outlives feed/N
 *	ask/N/WORD  a message to the leader: "look" (a hub has verified or refused), "missed",
 *	            "on", "off"
 *	key         the key that signs callbacks. Created by the first process that needs it;
 *	            constant
 *	base        the prefix of callbacks' URLs. Written by the leader
 *	leader      the leader and the end of its lease
 *
 * N has 19 digits, so that keys sort by number.
 */
#ifndef FW_ENGINE_WEBSUB_RECORDS_H
#define FW_ENGINE_WEBSUB_RECORDS_H

#include "engine/records.h"
#include "base/arena.h"
#include "engine/websub/websub_rules.h"

#define WEBSUB_RECORD_KIND FW_STR("websub")

enum callback_state {
	CALLBACK_REQUESTED,
	CALLBACK_ACTIVE,
	CALLBACK_DENIED,
	CALLBACK_UNSUBSCRIBING,
	CALLBACK_UNSUBSCRIBED
};

struct callback {
	struct fw_str token;
	int64_t feed_id;
	enum callback_state state;
	bool cloud;
	struct fw_str hub, topic, secret;     /* secret absent: none */
	int64_t lease_requested_ms, lease_ms; /* lease_ms: as verified */
	int64_t decided_ms;                   /* when the hub last verified or refused; 0: never */
	struct fw_str why;                    /* the hub's reason, or a remark on its lease */
	uint32_t try_n;                       /* leaving: unsubscribe requests so far */
	int64_t next_ms;                      /* leaving: time of the next one */
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

/* the value of ask/N/missed */
struct missed {
	int64_t polled_ms, before_ms, new_n;
};

struct websub_record_key {
	char text[80];
};
struct websub_record_key websub_record_key(const char *what, int64_t feed_id, const char *word /* or NULL */);
/* Parses "feed/123", "n/123", "ask/123/look". False: another kind of key. word may be NULL. */
bool websub_record_key_read(struct fw_str key, const char *what, int64_t *feed_id, struct fw_str *word);

/*
 * Write and read records. Strings are in the arena. Errors: FW_ENOTFOUND, also for an invalid
 * record, which the leader removes; those of the store.
 */
FW_MUST_CHECK int websub_record_sub_put(struct fw_store *st, const struct sub *s, int64_t now_ms, struct fw_err *err);
FW_MUST_CHECK int websub_record_sub_get(
	struct fw_store *st, int64_t feed_id, struct fw_arena *a, struct sub *out, struct fw_err *err);
bool websub_record_sub_read(struct fw_str value, struct fw_arena *a, struct sub *out);
FW_MUST_CHECK int websub_record_callback_put(
	struct fw_store *st, const struct callback *c, int64_t now_ms, struct fw_err *err);
FW_MUST_CHECK int websub_record_callback_get(
	struct fw_store *st, struct fw_str token, struct fw_arena *a, struct callback *out, struct fw_err *err);
/* leaves token unchanged */
bool websub_record_callback_read(struct fw_str value, struct fw_arena *a, struct callback *out);
FW_MUST_CHECK int websub_record_callback_remove(
	struct fw_store *st, struct fw_str token, struct fw_err *err); /* absent is no error */
FW_MUST_CHECK int websub_record_counts_get(struct fw_store *st, int64_t feed_id, struct fw_arena *a, struct counts *out,
	struct fw_err *err); /* none: zeros */
FW_MUST_CHECK int websub_record_counts_add(
	struct fw_store *st, const struct counts *more, int64_t now_ms, struct fw_err *err);
FW_MUST_CHECK int websub_record_rate_get(
	struct fw_store *st, int64_t feed_id, int64_t *rate_ms, struct fw_err *err); /* none: 0 */
FW_MUST_CHECK int websub_record_rate_put(
	struct fw_store *st, int64_t feed_id, int64_t rate_ms, int64_t now_ms, struct fw_err *err);
FW_MUST_CHECK int websub_record_message_put(struct fw_store *st, int64_t feed_id, const char *word,
	const struct missed *m /* or NULL */, int64_t now_ms, struct fw_err *err);
bool websub_record_missed_read(struct fw_str value, struct missed *out);
FW_MUST_CHECK int websub_record_base_get(
	struct fw_store *st, struct fw_arena *a, struct fw_str *out, struct fw_err *err); /* none: absent */
FW_MUST_CHECK int websub_record_base_put(struct fw_store *st, struct fw_str base, int64_t now_ms, struct fw_err *err);
/* Reads the key of callbacks; creates it if there is none. */
FW_MUST_CHECK int websub_record_mac_key(struct fw_store *st, unsigned char out[SUB_KEY_LEN], struct fw_err *err);
FW_MUST_CHECK int websub_record_remove(
	struct fw_store *st, const char *key, struct fw_err *err); /* absent is no error */
/* feed/N, n/N or brake/N; absent is no error */
FW_MUST_CHECK int websub_record_feed_remove(struct fw_store *st, const char *what, int64_t feed_id, struct fw_err *err);

/*
 * Calls cb for each record whose key starts with prefix. cb may use the store and change the
 * records; a result other than 0 ends the iteration and is returned. a: an arena for cb, valid
 * until it returns.
 */
FW_MUST_CHECK int websub_record_list(
	struct fw_store *st, const char *prefix, record_walk_cb *cb, void *ctx, struct fw_err *err);

#endif
