/* SPDX-License-Identifier: ISC */
/*
 * The worker process and what it shares with its master, and with the others: an array, one part of it per worker, each member written by
 * one side and read by the others.
 */
#ifndef FW_ENGINE_WORKER_H
#define FW_ENGINE_WORKER_H

#include <signal.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "engine/meter.h"
#include "feedwheel/deliver.h"
#include "sched/plan.h"

enum worker_exit { /* exit codes of a worker; a signal means it crashed */
	WORKER_DONE = 0,      /* once: the run is complete */
	WORKER_TOLD = 10,     /* a control message said stop */
	WORKER_STORE = 11,    /* the store cannot be used: shared->err says why */
	WORKER_SYSTEM = 12,   /* memory, threads, descriptors */
	WORKER_LEFT = 13,     /* by a signal, or because the master is gone */
};

#define READING_NOTHING (-1)

struct worker_shared {
	/* the worker writes */
	_Atomic int64_t reading_feed_id;   /* bytes of this feed are being parsed right now; 0: none */
	_Atomic int64_t reading_large_id;  /* the same beside the loop */
	_Atomic int64_t died_reading_id;   /* what the thread was reading that a signal killed, or READING_NOTHING; 0: no signal we saw */
	_Atomic bool reload;               /* a message in the store said so: the master is to read its configuration again */
	_Atomic int64_t total;             /* once: feeds due at the start (worker 0 counts) */
	_Atomic int64_t last_done_us;      /* monotonic: when its last visit so far was over */
	_Atomic int64_t next_due_ms;       /* not once, worker 0, while it has nothing: when the next feed is due; FW_NO_DATE: none is; 0: not known */
	struct {
		int64_t feeds, known, total_us;
	} foretold;                        /* once: when it began, by worker 0; known: feeds of known duration; feeds 0: nothing */
	struct fw_plan_total measured;     /* once: when it was over; sum_us 0: nothing */
	char measured_host[256];           /* the host of measured.host_us */
	char name[FW_WORKER_NAME_MAX];     /* as the store knows it; written once at start */
	struct fw_err err;                 /* behind WORKER_STORE and WORKER_SYSTEM */
	/* the worker writes, for its successor: the last control message it has seen, and what that left behind */
	bool listening, paused;
	int64_t control_id;
	/* the master writes, before the worker starts */
	char dead_name[FW_WORKER_NAME_MAX];   /* a predecessor whose lease is to be ended; emptied by the worker that has */
	int64_t dead_feed_id;              /* what it was reading, or 0 */
};

struct worker_options {
	const struct fw_config *config;
	struct worker_shared *shared;      /* its own, among those of all workers */
	struct fw_meter_slot *meter;       /* what it counts */
	int index, workers;                /* 0 ... workers - 1 */
	bool once;
	int64_t due_before_ms;             /* once: what is due by then */
	int64_t run_id;
	int master_fd;                     /* end of file here means the master is gone: drain */
};

/* SIGTERM, SIGINT: drain. Sent by the master when it is asked a second time: leave at once. */
#define WORKER_HURRY SIGUSR2

/* The whole life of a worker process; returns an enum worker_exit. The signals it is sent are blocked when it is called. */
int fw_worker_main(const struct worker_options *o);

#endif
