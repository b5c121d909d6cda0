/* SPDX-License-Identifier: ISC */
/*
 * The two threads of a worker and what runs between them.
 *
 *	store thread --(claims, in the hosts' table)--> loop thread --(outcomes)--> store thread --(spent)--> loop thread
 *
 * Claims wait in the owner's hosts' table (owner.h), which says what may start when. The loop says how many claims it can use (`open_max`);
 * the store thread makes no more than that, and wakes the loop when it has made some. The rings have one producer and one consumer each and
 * are as large as the number of visits there can be, so a put cannot fail. `held_bytes` bounds the documents that wait for a commit: above
 * the limit the loop starts nothing new.
 *
 * A feed that a person asked for passes all that by: the owner claims it beyond open_max and puts it before all others, and the loop has
 * SPARE_SLOTS for such.
 */
#ifndef FW_ENGINE_CHANNEL_H
#define FW_ENGINE_CHANNEL_H

#include <pthread.h>
#include <uv.h>

#include "base/ring.h"
#include "engine/run/owner.h"
#include "engine/run/visit.h"
#include "engine/run/worker.h"

#define SPARE_SLOTS OWNER_SPARE /* for feeds that a person asked for, when all others are taken */

struct channel {
	const struct worker_options *o;
	const struct fw_config *config;
	struct visit_rules rules;
	struct owner *owner;
	uint32_t slots;             /* transfers in flight at most */
	size_t cap;                 /* claims that are worth having: in flight, and to begin when a slot is free */
	size_t pending_max;         /* visits that may wait for their commit before the loop wants no more claims */
	size_t visit_max;           /* visits alive at most */
	size_t held_max;            /* limit of held_bytes */

	struct fw_ring outcomes, spent; /* of struct visit * */
	_Atomic size_t open_max;    /* the loop wants so many claims: waiting, in flight or not handed over yet; 0: none */
	_Atomic size_t held_bytes;  /* bodies and arenas on their way to a commit; large ones are the reader's (reader.h) */
	_Atomic bool dry;           /* the store thread has nothing to claim now, and wakes by itself when it has */
	_Atomic bool tail;          /* once: nothing is left that could be claimed */
	_Atomic bool stopping;      /* the loop: no more claims; everything comes back, then the end */
	_Atomic bool loop_done;     /* the loop has handed over its last visit */
	_Atomic bool finished;      /* the store thread: nothing is left to do (once), or told to stop */
	_Atomic bool told;          /* ... by a control message */
	_Atomic bool store_gone;    /* the store thread has ended */

	int wake_fd[2];             /* to the store thread: a pipe, non-blocking */
	_Atomic bool woken;         /* a byte is in it already */
	_Atomic int collecting;     /* 1: the store thread sleeps on an open batch, and wakes by itself */
	uv_async_t to_loop;
	pthread_t store_thread;
};

/* The store thread (store_thread.c); arg is the channel. Returns an enum worker_exit as a pointer, words in shared->err. */
void *store_thread_main(void *arg);
/* Wake the store thread (from the loop). */
void channel_wake_store(struct channel *ch);
/* The same for an outcome that was put into the ring, when it is worth it: a batch that is collected anyway takes it along. */
void channel_outcome_put(struct channel *ch, bool last);

#endif
