/* SPDX-License-Identifier: ISC */
/*
 * Private to the loop thread of a worker. worker.c: its life (signals, heartbeat, draining, the
 * end). transfers.c: claims and visits.
 */
#ifndef FW_ENGINE_WORKER_PARTS_H
#define FW_ENGINE_WORKER_PARTS_H

#include "engine/run/channel.h"
#include "engine/run/name_cooldown.h"
#include "engine/run/host_share.h"
#include "engine/run/parser_thread.h"
#include "engine/settings.h"

struct worker {
	struct channel ch;
	const struct worker_options *o;
	uv_loop_t loop;
	struct fw_net net;
	struct fw_fetcher *fetcher;
	struct parser_thread parser;
	struct visit *visit; /* all visits */
	struct visit *free;
	struct visit **in_slot; /* visits in flight, by slot */
	int *free_slot;
	uint32_t free_slot_n, in_flight;
	size_t pending; /* visits handed over and not yet recycled */
	/* batch policies: claims between two barriers; 0: no barriers */
	size_t batch;
	int64_t barrier;                  /* position of the next barrier in the plan */
	struct name_cooldowns *cooldowns; /* cooldowns of names that share a host */
	struct host_share share;          /* places taken at shared hosts, by name */
	struct claim *held, **held_end;   /* held claims: they wait for such a place */
	size_t held_n;
	uint64_t rnd, seed;
	struct fw_connectivity network;
	struct visit **verdict_queue; /* ended visits whose verdict is deferred, oldest first */
	uint32_t verdict_n, verdict_max;
	bool draining, closing;
	uv_timer_t heartbeat_timer, drain_timer, gap_timer, straggler_timer;
	int64_t started_us;
	int signal_fd;
	uv_poll_t signals, master;
};

/* ---- worker.c -------------------------------------------------------------------------------- */
/*
 * Set up all but the loop's handles, the fetcher and the threads. Errors: FW_ENOMEM, FW_EIO; the
 * text is in shared->err.
 */
FW_MUST_CHECK int worker_init(struct worker *w, const struct worker_options *o);
void worker_finish(struct worker *w);
/*
 * One round of the loop's work. Called when the store thread has something (claims, recycled
 * visits, a lost lease, the end), and at intervals for changes without an event (time, held bytes
 * below their limit).
 */
void worker_round(struct worker *w);
void worker_drain(struct worker *w);
void worker_finish_drain(struct worker *w);
uint64_t worker_random(struct worker *w);

/* ---- transfers.c ----------------------------------------------------------------------------- */
/* Start the claims that may start, and publish how many claims are wanted. */
void transfers_start(struct worker *w);
/* The number of claims that wait for their host, their name or a slot. */
size_t transfers_waiting(struct worker *w);
/* Take back the visits that the store thread is done with. */
void transfers_take_recycled(struct worker *w);
/* Continue the visits whose deferred verdict on our own network has fallen. */
void transfers_settle_verdicts(struct worker *w);
/* Release the held claims. */
void transfers_release_held(struct worker *w);
/* Cancel all transfers in flight; their feeds are due as before. */
void transfers_cancel(struct worker *w);
/* The same, and the visits that have ended but are not read yet. */
void transfers_cancel_all(struct worker *w);
/* The parser thread has read the visit's document. */
void transfers_on_read(struct visit *v);
/*
 * The end of a run --once: abandon the stragglers, which have been silent for longer than ever
 * before.
 */
void transfers_abandon_stragglers(struct worker *w);

#endif
