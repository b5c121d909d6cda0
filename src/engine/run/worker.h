/* SPDX-License-Identifier: ISC */
/*
 * A worker process, and the memory that it shares with its master alone. Each member has one
 * writer; the other reads it.
 */
#ifndef FW_ENGINE_WORKER_H
#define FW_ENGINE_WORKER_H

#include <signal.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "engine/meter.h"
#include "feedwheel/deliver.h"
#include "sched/plan.h"

/* exit codes of a worker; death by a signal means that it crashed */
enum worker_exit {
	WORKER_DONE = 0,            /* run --once: the run is complete */
	WORKER_STOP_REQUESTED = 10, /* a control message requested a stop */
	WORKER_STORE = 11,          /* the store cannot be used; the reason is in shared->err */
	WORKER_SYSTEM = 12,         /* out of memory, threads or descriptors */
	WORKER_LEFT = 13,           /* stopped by a signal, or because the master is gone */
	WORKER_RETIRED = 14,        /* a control message requested that this worker stop, and no other */
};

#define READING_NOTHING (-1)

/*
 * A worker that was taken over writes anything here, also while the master reads: it copies first,
 * bounds what it copied, and ends texts (shared_text() and the like in master.c).
 */
struct worker_shared {
	/* written by the worker */
	_Atomic int64_t reading_feed_id; /* feed whose document the loop is reading; 0: none */
	/* feed whose document the parser thread is reading; 0: none */
	_Atomic int64_t reading_large_id;
	/*
	 * feed that the crashed thread was reading, or READING_NOTHING; 0: no fatal signal was
	 * caught
	 */
	_Atomic int64_t crashed_reading_id;
	/* newest control message that requests a reload of the configuration; 0: none */
	_Atomic int64_t reload_id;
	/* run --once: feeds due at the start, counted by the first worker */
	_Atomic int64_t total;
	_Atomic int64_t last_done_us; /* monotonic; end of its latest visit */
	/*
	 * continuous run, first worker, while idle: next due time; FW_NO_DATE: no feed; 0: unknown
	 */
	_Atomic int64_t next_due_ms;
	/*
	 * run --once: the forecast at its start, by the first worker; known: feeds of known
	 * duration; feeds 0: no forecast
	 */
	struct {
		int64_t feeds, known, total_us;
	} forecast;
	struct fw_plan_total measured; /* run --once: the times measured; sum_us 0: none */
	char measured_host[256];       /* host of measured.host_us */
	char name[FW_WORKER_NAME_MAX]; /* its name in the store; written once, at the start */
	struct fw_err err;             /* reason for WORKER_STORE and WORKER_SYSTEM */
	/*
	 * written by the worker for its successor: the last control message it has handled, and its
	 * effect
	 */
	bool listening, paused;
	int64_t control_id;
	/*
	 * written by the master before the worker starts: the dead predecessor, whose lease this
	 * worker must end; it then empties the name
	 */
	char predecessor_name[FW_WORKER_NAME_MAX];
	int64_t predecessor_feed_id; /* feed that the predecessor was reading, or 0 */
};

struct worker_options {
	const struct fw_config *config;
	struct worker_shared *shared; /* its own */
	struct fw_meter_slot *meter;  /* its counters */
	int index, workers;           /* 0 ... workers - 1 */
	bool first;                   /* of its run: it does what one worker does for all: orders, retention, probes */
	bool once;
	int64_t due_before_ms; /* run --once: fetch what is due by then */
	int64_t run_id;
	int master_fd; /* end of file: the master is gone, so drain */
};

/*
 * SIGTERM, SIGINT and SIGQUIT drain a worker. This signal, which the master sends at the second
 * stop request, makes it exit at once.
 */
#define WORKER_EXIT_NOW SIGUSR2

/*
 * The whole life of a worker process; returns an enum worker_exit. The caller has blocked the
 * signals that the master sends.
 */
int fw_worker_main(const struct worker_options *o);

#endif
