/* SPDX-License-Identifier: ISC */
/*
 * The channel between the two threads of a worker: the loop thread and the store thread.
 *
 *	store thread --(claims, in the hosts' table)--> loop thread
 *	loop thread  --(ring of outcomes)-------------> store thread
 *	store thread --(ring of recycled visits)------> loop thread
 *
 * Claims wait in the owner's hosts' table (owner.h), which decides what may start when. The loop
 * publishes the number of claims it can use (`open_max`). The store thread makes no more than that,
 * and wakes the loop when it has made some.
 *
 * Each ring has one producer and one consumer, and holds as many visits as exist, so a push cannot
 * fail. Backpressure: `held_bytes` bounds the documents that wait for a commit; above the limit the
 * loop starts nothing new.
 *
 * Urgent feeds (a person requested them) bypass these limits: the owner claims them beyond
 * open_max, the hosts' table starts them first, and the loop keeps URGENT_SLOTS slots for them.
 */
#ifndef FW_ENGINE_CHANNEL_H
#define FW_ENGINE_CHANNEL_H

#include <pthread.h>
#include <uv.h>

#include "base/ring.h"
#include "engine/run/owner.h"
#include "engine/run/visit.h"
#include "engine/run/worker.h"

#define URGENT_SLOTS OWNER_URGENT_EXTRA /* slots for urgent feeds, used when all others are taken */

struct channel {
	const struct worker_options *o;
	const struct fw_config *config;
	struct visit_rules rules;
	struct owner *owner;
	uint32_t slots; /* limit of transfers in flight */
	/* claims that are useful: in flight, and the next ones that start when a slot frees */
	size_t claims_max;
	/* limit of uncommitted visits: above it the loop wants no more claims */
	size_t pending_max;
	size_t visit_max; /* number of visit structs */
	size_t held_max;  /* limit of held_bytes */

	struct fw_ring outcomes, recycled; /* struct visit * */
	/*
	 * number of claims that the loop wants: waiting, in flight or not handed over yet; 0: none
	 */
	_Atomic size_t open_max;
	/* bodies and arenas that wait for a commit; large ones count in parser_thread.h */
	_Atomic size_t held_bytes;
	/* the store thread has nothing to claim; it wakes by itself when it has */
	_Atomic bool nothing_due;
	_Atomic bool all_claimed; /* run --once: nothing is left to claim */
	/* set by the loop: claim nothing, take everything back, then end */
	_Atomic bool stopping;
	_Atomic bool loop_done; /* the loop has handed over its last visit */
	/* set by the store thread: all work is done (run --once), or a stop was requested */
	_Atomic bool finished;
	_Atomic bool stop_requested;     /* a control message requested the stop of all workers */
	_Atomic bool retires;            /* ... of this worker alone */
	_Atomic bool store_thread_ended; /* the store thread has ended */

	int wake_fd[2];         /* wakes the store thread: a non-blocking pipe */
	_Atomic bool woken;     /* the pipe holds a byte already */
	_Atomic int collecting; /* 1: the store thread sleeps until its open batch is due */
	uv_async_t to_loop;
	struct fw_sender *sender; /* of the first worker; else NULL */
	pthread_t store_thread;
};

/*
 * Main function of the store thread (store_thread.c); arg is the channel. Returns an enum
 * worker_exit as a pointer; the error text is in shared->err.
 */
void *store_thread_main(void *arg);
/* Wake the store thread. Called by the loop. */
void channel_wake_store(struct channel *ch);
/*
 * Call after pushing an outcome. Wakes the store thread if needed: a thread that collects a batch
 * takes the outcome along without a wake-up. last: no other outcome follows soon.
 */
void channel_outcome_put(struct channel *ch, bool last);

#endif
