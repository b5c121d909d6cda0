/* SPDX-License-Identifier: ISC */
/*
 * Inside the store thread: what its files share. store_thread.c is its life (outages, control, retention, waiting), commits.c takes what
 * became of visits into the store, once.c is about a --once. Claims are the owner's (owner.h). No other thread looks in here; channel.h is
 * what they meet over.
 */
#ifndef FW_ENGINE_STORE_THREAD_H
#define FW_ENGINE_STORE_THREAD_H

#include "engine/run/channel.h"
#include "engine/run/chores.h"
#include "engine/retry.h"

struct store_thread {
	struct channel *ch;
	struct fw_store *st;
	struct owner *owner;        /* the channel's */
	struct visit **batch;       /* what the next commit carries */
	struct claim **claim;       /* theirs */
	struct fw_outcome *outcome; /* the same, as the contract wants it */
	size_t n, bytes;
	bool hurry;                 /* somebody waits for one of them */
	int64_t batch_since_ms;     /* monotonic; of its oldest */
	int64_t step_at_ms;         /* monotonic: the owner's next step */
	int64_t claim_at_ms;        /* monotonic: not before */
	bool changed;               /* the store has news for the owner */
	int64_t newest_id;          /* control message when this worker began */
	int64_t control_at_ms, beat_at_ms, started_ms;
	struct retry retry;         /* an outage */
	int64_t outage_since_ms;    /* monotonic; 0: none */
	int64_t last_since_ms;      /* monotonic: when the loop had handed over its last visit; 0: not yet */
	struct fw_err outage_err;
	int64_t full_since_ms, room_at_ms; /* monotonic: no room on the store's disk; 0: there is; when to look again */
	struct fw_err full_err;
	bool once_over, index_more;
	int64_t others_n, others_ms, others_look_ms; /* once: due at others; since when it is as many; when to look again */
	int64_t once_over_ms, index_at_ms, prune_at_ms; /* monotonic */
	struct chores chores;
	struct fw_plan_bounds *bounds; /* once: of what was measured */
	int64_t idle_look_ms;       /* monotonic: when to look again for what is due next */
	uint64_t visits, news, failures;
};

/* ---- store_thread.c */
FW_MUST_CHECK int store_thread_init(struct store_thread *s, struct channel *ch); /* FW_ENOMEM */
void store_thread_finish(struct store_thread *s);
/* WORKER_DONE: the store is open, and the owner knows it; else why it is not, words in shared->err. */
int store_thread_open(struct store_thread *s);
/* One round of all that it does. STORE_SLEEP: nothing more for store_thread_wait_ms(), unless it is woken; STORE_END: *code is the worker's. */
enum store_next { STORE_GO_ON, STORE_SLEEP, STORE_END };
enum store_next store_thread_step(struct store_thread *s, int *code);
int64_t store_thread_wait_ms(const struct store_thread *s, int64_t mono_ms);
/* The store said no while doing that: it is asked again later, through a new connection if this one is broken. */
void store_outage(struct store_thread *s, const char *doing, int rc, const struct fw_err *err);
/* It answered. */
void store_outage_over(struct store_thread *s);

/* ---- commits.c */
/* What the loop has finished: into the batch, or back to the owner. */
void commits_take(struct store_thread *s);
bool commits_due(const struct store_thread *s, int64_t mono_ms);
/* Store the batch, or keep it. */
void commits_store(struct store_thread *s);

/* ---- once.c: a --once */
/* What is due and how long it is expected to take, by the first worker. */
FW_MUST_CHECK int once_begin(struct store_thread *s, struct fw_err *err);
/* Is all of it done? Then what was measured is noted, and true: maintenance comes before the end. */
bool once_look(struct store_thread *s);

#endif
