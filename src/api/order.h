/* SPDX-License-Identifier: ISC */
/*
 * Orders: standing queries. An order matches entries as they are stored, and delivers them
 * (feedwheel-orders(7)), drops them, or adds a tag. An order is a record of kind "order"; workers
 * and servers see a change of the orders at their next heartbeat.
 */
#ifndef FW_API_ORDER_H
#define FW_API_ORDER_H

#include "feedwheel/engine.h"
#include "feedwheel/store.h"

struct fw_arena;
struct fw_json;

#define FW_ORDER_NAME_MAX 64
#define FW_ORDER_SECRETS 2
#define FW_ORDER_SECRET_MAX 100 /* "whsec_" and base64 of 16 to 64 bytes, NUL */

enum fw_order_action {
	FW_ORDER_DELIVER, /* to `to` */
	FW_ORDER_DROP,    /* do not store the entry */
	FW_ORDER_TAG,     /* store it with one more tag */
};

enum fw_order_state {
	FW_ORDER_ACTIVE,
	FW_ORDER_PAUSED, /* matches are kept, nothing is sent */
	FW_ORDER_ENDED,  /* its receiver answered 410: no more matches */
};

/* How a delivery is made: the scheme of `to`. */
enum fw_order_channel {
	FW_ORDER_WEBHOOK, /* https://HOST/..., http://HOST/... */
	FW_ORDER_COMMAND, /* command:/path/of/program argument ... */
	FW_ORDER_FILE,    /* file:/path, with %Y %m %d %H %M (UTC) */
	FW_ORDER_REDIS,   /* redis:STREAM, redis://HOST:PORT/DB?stream=STREAM */
	FW_ORDER_AMQP,    /* amqp://USER:PASSWORD@HOST:PORT/VHOST?exchange=E&routing_key=K */
	FW_ORDER_CHANNEL_N,
};

/* All strings are borrowed. */
struct fw_order {
	int64_t id;          /* never reused: a name that is added again is another order */
	struct fw_str name;  /* letters, digits, '.', '_' and '-' */
	struct fw_str query; /* feedwheel-query(7) */
	enum fw_order_action action;
	enum fw_order_state state;
	struct fw_str to;  /* with FW_ORDER_DELIVER */
	struct fw_str tag; /* with FW_ORDER_TAG */
	bool changes;      /* also new versions of entries; else only new entries */
	/* of a webhook: the newest first; the second, if present, still signs too */
	struct fw_str secret[FW_ORDER_SECRETS];
	int64_t created_ms;
	int64_t woken_ms; /* a person wants what waits to be sent now, whatever failed before; 0: never */
	bool broken;      /* its record is invalid: it matches nothing */
};

const char *fw_order_action_name(enum fw_order_action action);
const char *fw_order_state_name(enum fw_order_state state);

/*
 * Check a destination: its scheme, and what it must have. FW_EINVAL names the fault and the remedy.
 * It does not connect.
 */
FW_MUST_CHECK int fw_order_check_to(struct fw_str to, enum fw_order_channel *out, struct fw_err *err);
/*
 * May an order with this destination be added or changed here, by the settings order_commands,
 * order_programs and order_files? A destination that neither runs a program nor writes a file
 * always may. FW_EINVAL names the remedy, such as the line that is missing.
 */
FW_MUST_CHECK int fw_order_check_commands(
	const struct fw_config *c, struct fw_str to, bool over_http, struct fw_err *err);
/*
 * Store a new order; sets id, created_ms, and for a webhook without secret a new one. Strings that
 * it sets live in the arena. FW_EINVAL: the name is invalid or taken, the query ("query, at 7:
 * ...") or the destination is invalid, an action lacks what it needs.
 */
FW_MUST_CHECK int fw_order_add(
	struct fw_store *st, struct fw_arena *a, struct fw_order *order, int64_t now_ms, struct fw_err *err);
/* Strings go into the arena. FW_ENOTFOUND: suggests a name. */
FW_MUST_CHECK int fw_order_get(
	struct fw_store *st, struct fw_str name, struct fw_arena *a, struct fw_order *out, struct fw_err *err);
/* By name. A callback's result other than 0 stops the walk and is returned. */
typedef int fw_order_cb(void *ctx, const struct fw_order *order);
FW_MUST_CHECK int fw_order_list(struct fw_store *st, fw_order_cb *cb, void *ctx, struct fw_err *err);
/* Change an order; its matches that wait stay. Checks as fw_order_add(). FW_ENOTFOUND. */
FW_MUST_CHECK int fw_order_put(struct fw_store *st, const struct fw_order *order, struct fw_err *err);
/* Changes of an order; members that are absent or -1 stay. */
struct fw_order_change {
	struct fw_str query, to;
	int changes;      /* 0, 1 */
	int state;        /* FW_ORDER_ACTIVE, FW_ORDER_PAUSED */
	bool made_secret; /* out: the order became a webhook, and out->secret[0] is new */
};
/* Strings go into the arena. FW_ENOTFOUND; FW_EINVAL as fw_order_add(). */
FW_MUST_CHECK int fw_order_apply(struct fw_store *st, struct fw_str name, struct fw_order_change *change,
	struct fw_arena *a, struct fw_order *out, struct fw_err *err);
/* Remove an order, its matches and its dead letters. FW_ENOTFOUND. */
FW_MUST_CHECK int fw_order_remove(struct fw_store *st, struct fw_str name, struct fw_err *err);
/* Put a new secret before the newest; the one before it goes on signing, older ones end. */
FW_MUST_CHECK int fw_order_rotate(
	struct fw_store *st, struct fw_str name, struct fw_arena *a, struct fw_order *out, struct fw_err *err);

#define FW_ORDER_BATCH_MAX 100
#define FW_ORDER_BATCH_BYTES ((size_t)256 << 10) /* of a message, unless one entry is larger */

/*
 * The delivery of an order: what the sender has stored. A batch is fixed before it is sent first,
 * so a repeated message has the same id and the same entries.
 */
struct fw_order_delivery {
	int64_t order_id;
	int64_t batch_n;                        /* batches so far: the number of the last one */
	int64_t id[FW_ORDER_BATCH_MAX];         /* change ids of the batch that is being sent, rising */
	uint32_t id_n;                          /* 0: none is */
	uint32_t fail_n;                        /* failed attempts since the last accepted one */
	int64_t since_ms;                       /* when the batch was formed */
	int64_t woken_ms;                       /* fw_order.woken_ms, as the last attempt found it */
	int64_t next_ms;                        /* the next attempt, not before */
	int64_t failing_since_ms;               /* no success since; 0: the last attempt was accepted */
	int64_t status;                         /* HTTP status or exit code of the last attempt; 0: none */
	struct fw_str error;                    /* of the last attempt; absent: none */
	int64_t delivered_n, retried_n, dead_n; /* entries, attempts, entries */
	int64_t gone_n;                         /* entries that were deleted before they were delivered */
	int64_t delivered_ms;                   /* the last accepted batch */
};
/* Without a record, or with an invalid one: all 0. Strings go into the arena. */
FW_MUST_CHECK int fw_order_delivery_get(
	struct fw_store *st, int64_t order_id, struct fw_arena *a, struct fw_order_delivery *out, struct fw_err *err);
FW_MUST_CHECK int fw_order_delivery_put(
	struct fw_store *st, const struct fw_order_delivery *d, int64_t now_ms, struct fw_err *err);
/* One that does not exist is no error. */
FW_MUST_CHECK int fw_order_delivery_remove(struct fw_store *st, int64_t order_id, struct fw_err *err);

/* An order, its delivery and its matches: what people see. */
struct fw_order_status {
	struct fw_order order;
	struct fw_order_delivery delivery;
	int64_t pending_n, dead_n;
	int64_t oldest_ms; /* the oldest match that waits; 0: none */
	bool unattended;   /* it should be sent, and no process delivers: none runs, or it lacks the store */
};
typedef int fw_order_status_cb(void *ctx, const struct fw_order_status *s);
/* By name. The callback may use the store; a result other than 0 stops the walk and is returned. */
FW_MUST_CHECK int fw_order_status_list(struct fw_store *st, fw_order_status_cb *cb, void *ctx, struct fw_err *err);
/* Strings go into the arena. FW_ENOTFOUND: suggests a name. */
FW_MUST_CHECK int fw_order_status_get(
	struct fw_store *st, struct fw_str name, struct fw_arena *a, struct fw_order_status *out, struct fw_err *err);

/* Check a query as fw_order_add() does: FW_EINVAL ("query, at 7: ..."). */
FW_MUST_CHECK int fw_order_check_query(struct fw_str query, struct fw_err *err);

/* Store an order's matches again. Set n to 0 first. */
struct fw_order_again {
	int64_t n;                                                   /* out: so many so far, also after an error */
	void (*progress)(void *ctx, const struct fw_order_again *r); /* after each 1,000; or NULL */
	void *ctx;
	int64_t unindexed_n; /* out, of a replay: entries that the search did not see; 0: it is complete */
};
/*
 * Match all entries stored since since_ms again, in order of id, 1,000 in a transaction; what waits
 * already is left as it is. They count as matched now, for the time after which they become dead
 * letters. The sender tries now, also if the receiver failed before. FW_EINVAL: the order delivers
 * nothing, or has ended.
 */
FW_MUST_CHECK int fw_order_replay(
	struct fw_store *st, const struct fw_order *o, int64_t since_ms, struct fw_order_again *r, struct fw_err *err);
/* Make all dead letters wait again, in the same way. Errors as fw_order_replay(). */
FW_MUST_CHECK int fw_order_retry(
	struct fw_store *st, const struct fw_order *o, struct fw_order_again *r, struct fw_err *err);
/* The JSON of a match: of a dead letter. */
void fw_match_json(struct fw_json *j, const char *key, const struct fw_match *m);

/*
 * The JSON of an order and its delivery, the same for --json and HTTP: without secrets and
 * passwords.
 */
void fw_order_json(struct fw_json *j, const char *key, const struct fw_order_status *s);

#endif
