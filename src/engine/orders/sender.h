/* SPDX-License-Identifier: ISC */
/*
 * The sender, a service: what sender.c (the leader, the orders, what is due) and its parts share:
 * sender_batch.c (which entries a message has), sender_attempt.c (one attempt to send it),
 * sender_dead.c (dead letters, orphans).
 */
#ifndef FW_ENGINE_SENDER_H
#define FW_ENGINE_SENDER_H

#include <pthread.h>
#include <stdatomic.h>

#include "api/sender.h"
#include "api/service.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "engine/orders/delivery_rules.h"
#include "fetch/fetch.h"

#define SENDER_IN_FLIGHT_MAX 64
#define SENDER_ERROR_MAX 300
#define SENDER_UNKNOWN_MAX 32
#define SENDER_TIMEOUT_MS (15 * FW_SECOND_MS) /* of a webhook */
#ifdef FW_TEST_HOOKS
#define SENDER_RUNNER_TIMEOUT_MS (2 * FW_SECOND_MS)
#define SENDER_SWEEP_MS FW_SECOND_MS
#else
#define SENDER_SWEEP_MS FW_MINUTE_MS
#define SENDER_RUNNER_TIMEOUT_MS (60 * FW_SECOND_MS) /* of a command */
#endif
#define SENDER_RESPONSE_MAX ((size_t)64 << 10)

struct runner;
struct sender_attempt;
struct sender_thread;

/* The record of a delivery, which this process alone writes while it leads. */
struct sender_delivery {
	struct fw_order_delivery d;
	char error[SENDER_ERROR_MAX]; /* d.error */
};

/* An order that delivers. */
struct sender_order {
	int64_t id;
	char name[FW_ORDER_NAME_MAX + 1];
	enum fw_order_state state;
	uint64_t list_n;              /* the last list of orders that it was in */
	int64_t pending_n, oldest_ms; /* of its matches, at the last look */
	int64_t dead_n;
	int64_t due_ms;                   /* no attempt before */
	struct sender_delivery *delivery; /* NULL: not read yet */
	struct sender_attempt *attempt;   /* in flight; NULL: none */
};

struct fw_sender {
	const struct fw_config *config;
	struct fw_sender_options o;
	struct service *service;
	_Atomic bool finishing, idle;
	struct runner *runner; /* NULL: there is none */
	unsigned finish_n;     /* rounds since fw_sender_finish() */
	int64_t finish_by_ms;  /* monotonic */

	/* while this process is the leader */
	bool look_again;
	struct fw_orders_version version; /* of the orders, as listed; 0: not listed yet */
	struct fw_map orders;             /* by the bytes of the id */
	uint64_t list_n;                  /* the number of lists read */
	struct sender_order **ready;      /* with matches that wait, at the last look */
	size_t ready_n, ready_cap, ready_at;
	/* orders that are not listed, with matches at the last look */
	int64_t unknown[SENDER_UNKNOWN_MAX];
	size_t unknown_n;
	size_t broken_n;              /* orders whose record is invalid: theirs may be the unknown ones */
	struct sender_attempt *first; /* all attempts in flight */
	size_t in_flight;
	pthread_mutex_t ended_lock;
	struct sender_thread *ended; /* threads of attempts */
};

/* One message, from the choice of its entries to the end of the attempt. */
struct sender_attempt {
	struct fw_sender *s;
	struct sender_order *order; /* NULL: it is no longer wanted, and its result is ignored */
	struct sender_attempt *next, **prev;
	struct fw_arena arena; /* the strings of o */
	struct fw_order o;
	enum fw_order_channel channel;
	struct fw_match match[FW_ORDER_BATCH_MAX]; /* in the message */
	size_t n;
	struct fw_buf body, headers;
	char message_id[DELIVERY_MESSAGE_ID_MAX];
	struct fw_fetch fetch;
	struct sender_thread *thread; /* NULL: none */
	char error[SENDER_ERROR_MAX];
};

/* ---- sender.c -------------------------------------------------------------------------------- */

struct sender_order *sender_order_find(struct fw_sender *s, int64_t id);
/* Read all orders again. */
FW_MUST_CHECK int sender_list_orders(struct fw_sender *s, struct fw_err *err);

/* ---- sender_batch.c -------------------------------------------------------------------------- */

/*
 * Make the next message of a->order: reads the order and its delivery, chooses the entries of the
 * batch and stores their ids, or takes those of the batch that was sent before. a->n is 0 if there
 * is nothing to send now.
 */
FW_MUST_CHECK int sender_batch_make(struct sender_attempt *a, struct fw_err *err);
/* Read the order's delivery, if it is not read yet; store it. */
FW_MUST_CHECK int sender_delivery_read(struct fw_sender *s, struct sender_order *o, struct fw_err *err);
FW_MUST_CHECK int sender_delivery_put(struct fw_sender *s, struct sender_order *o, struct fw_err *err);

/* ---- sender_attempt.c ------------------------------------------------------------------------ */

/* Send the next message of an order. What fails at once is a failed attempt, not an error. */
FW_MUST_CHECK int sender_attempt_start(struct fw_sender *s, struct sender_order *o, struct fw_err *err);
/* An attempt is no longer wanted: its batch is sent again later. */
void sender_attempt_drop(struct sender_attempt *a);
/* An attempt has ended; frees it. */
void sender_attempt_done(struct sender_attempt *a, const struct delivery_result *r);
/* At the end of the loop: free attempts that have not ended; waits for their threads. */
void sender_attempts_free(struct fw_sender *s);

/* ---- sender_thread.c ------------------------------------------------------------------------- */

FW_MUST_CHECK int sender_thread_start(struct sender_attempt *a, struct fw_err *err);
/* Conclude the attempts whose threads have ended. */
void sender_threads_collect(struct fw_sender *s);
void sender_thread_free(struct sender_thread *t); /* waits for the thread; NULL is allowed */

/* ---- sender_dead.c --------------------------------------------------------------------------- */

/*
 * Matches of an order that were stored before before_ms become dead letters. A batch that has none
 * left is over.
 */
FW_MUST_CHECK int sender_make_dead(struct fw_sender *s, struct sender_order *o, int64_t before_ms, struct fw_err *err);
/* The order has ended: its receiver answered 410. */
FW_MUST_CHECK int sender_end_order(struct fw_sender *s, struct sender_order *o, struct fw_err *err);
/* Remove all that is stored of an order that does not exist. */
FW_MUST_CHECK int sender_remove_orphans(struct fw_sender *s, int64_t order_id, struct fw_err *err);
/* A task: remove old dead letters, and matches of orders that do not exist. */
FW_MUST_CHECK int sender_sweep(void *sender, struct fw_store *st, struct fw_err *err);

#endif
