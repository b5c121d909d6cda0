/* SPDX-License-Identifier: ISC */
/*
 * Inside the loop thread of a worker: worker.c is its life (signals, heartbeat, draining, the end), transfers.c what it does with claims
 * and visits. Nobody else looks in here.
 */
#ifndef FW_ENGINE_WORKER_PARTS_H
#define FW_ENGINE_WORKER_PARTS_H

#include "engine/run/channel.h"
#include "engine/run/host_pause.h"
#include "engine/run/host_share.h"
#include "engine/run/reader.h"
#include "engine/settings.h"

#define WORKER_SIGNALS 4

struct worker {
	struct channel ch;
	const struct worker_options *o;
	uv_loop_t loop;
	struct fw_net net;
	struct fw_fetcher *fetcher;
	struct reader reader;
	struct visit *visit;         /* all of them */
	struct visit *free;
	struct visit **in_slot;      /* by slot: in flight */
	int *free_slot;
	uint32_t free_slot_n, in_flight;
	size_t pending;              /* handed over, and not yet spent */
	size_t batch;                /* a barrier after so many; 0: none */
	int64_t barrier;             /* the place in the plan at which the next one stands */
	struct host_pauses *pauses;  /* of names that share their host */
	struct host_share share;     /* the places of such names */
	struct claim *held, **held_end; /* those that wait for one */
	size_t held_n;
	uint64_t rnd, seed;
	struct fw_weather network;
	struct visit **doubt;        /* ended, oldest first, and waiting for what the next ones show */
	uint32_t doubt_n, doubt_max;
	bool draining, closing;
	uv_timer_t beat, drain_timer, gap_timer, patience_timer;
	int64_t started_us;
	uv_signal_t signal[WORKER_SIGNALS];
	uv_poll_t master;
};

/* ---- worker.c */
/* All but the loop's handles, the fetcher and the threads. Errors: FW_ENOMEM, FW_EIO; words in shared->err. */
FW_MUST_CHECK int worker_init(struct worker *w, const struct worker_options *o);
void worker_finish(struct worker *w);
/*
 * Whatever there is to do now: when the store thread has something (claims, spent visits, a lost lease, the end), and now and then, for what
 * comes to pass without an event (time; the limit of held bytes is passed downwards).
 */
void worker_round(struct worker *w);
void worker_drain(struct worker *w);
void worker_end_if_drained(struct worker *w);
uint64_t worker_random(struct worker *w);

/* ---- transfers.c */
/* Start what may start, and tell the store thread how many claims are wanted. */
void transfers_start(struct worker *w);
/* Waiting for their host, their name or a slot. */
size_t transfers_waiting(struct worker *w);
/* What the store thread is done with. */
void transfers_take_spent(struct worker *w);
/* Failures that waited for a verdict on our own network: those that have it go on. */
void transfers_settle_doubts(struct worker *w);
/* Claims that are held go back. */
void transfers_release_held(struct worker *w);
/* End what is in flight; all of it is due as before. */
void transfers_cancel(struct worker *w);
/* The same, and what has ended and is not read yet. */
void transfers_cancel_all(struct worker *w);
/* The document of a visit was read, beside the loop. */
void transfers_on_read(struct visit *v);
/* The end of a --once: give up what is silent for longer than ever before. */
void transfers_patience(struct worker *w);

#endif
