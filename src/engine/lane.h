/* SPDX-License-Identifier: ISC */
/*
 * The two threads of a worker and what runs between them.
 *
 *	store thread --(leases)--> loop thread --(outcomes)--> store thread --(spent)--> loop thread
 *
 * Each ring has one producer and one consumer and is as large as the number of visits there can be, so a put cannot fail.
 * The loop says how many more leases it can use (`want`); the store thread never claims more. `held_bytes` bounds the documents
 * that wait for a commit: above the mark the loop starts nothing new.
 *
 * Leases that were claimed ahead wait in the loop's queue (sched/plan.h), which keeps a host's limits; in order of rank: a run that
 * goes on ranks by due time, a --once, and one that is behind, by its course (course.h). In a run that goes on, slow ones hold slow_share of the slots at
 * most; of those above that as many wait as may run, and then claims leave slow ones out (`slow_full`). One that is slow by its host only is
 * never given back for it: with no room left in that line it is as any other.
 *
 * A feed that a person asked for passes all that by: the store thread lends it unasked, the loop puts it before all others and has
 * SPARE_SLOTS for such. One that was lent already may be waiting here for its slot, behind others: then the loop gives back what it
 * has not begun (`unqueue`), and it is lent again as the first.
 */
#ifndef FW_ENGINE_LANE_H
#define FW_ENGINE_LANE_H

#include <pthread.h>
#include <uv.h>

#include "base/ring.h"
#include "engine/visit.h"
#include "engine/worker.h"

#define SPARE_SLOTS 4 /* for feeds that a person asked for, when all others are taken */

struct lane {
	const struct worker_options *o;
	const struct fw_config *config;
	struct visit_rules rules;
	uint32_t slots;             /* transfers in flight at most */
	size_t cap;                 /* leases at the loop that it asks for: in flight, and claimed ahead to begin when a slot is free */
	size_t lease_max;           /* leases at the loop at most: with those that wait for their host, or for the slow ones' part */
	size_t pending_max;         /* visits that may wait for their commit before the loop takes no more leases */
	size_t visit_max;           /* visits alive at most */
	size_t held_max;            /* mark for held_bytes */

	struct fw_ring leases;      /* of struct lent * */
	struct fw_ring outcomes, spent; /* of struct visit * */
	_Atomic size_t want;        /* leases the loop has asked for and not been lent */
	_Atomic size_t held_bytes;  /* bodies and arenas on their way to a commit; large ones are the reader's (reader.h) */
	_Atomic bool tail;          /* once: nothing is left that could be lent just now */
	_Atomic bool slow_full;     /* enough slow ones wait: it wants others */
	_Atomic bool unqueue;       /* to the loop: give back what has not begun */
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

/* The store thread (storer.c); arg is the lane. Returns an enum worker_exit as a pointer, words in shared->err. */
void *fw_storer_main(void *arg);
/* Wake the store thread (from the loop). */
void fw_lane_wake_store(struct lane *l);
/* The same for an outcome that was put into the ring, when it is worth it: a batch that is collected anyway takes it along. */
void fw_lane_outcome_put(struct lane *l, bool last);

#endif
