/* SPDX-License-Identifier: ISC */
/*
 * The master of `run` and `serve`: starts the child processes (workers, and the server if there is
 * one), watches and restarts them, and stops them. These functions run it step by step, for
 * fw_run() and for tests with a clock of their own. Single-threaded.
 */
#ifndef FW_ENGINE_MASTER_H
#define FW_ENGINE_MASTER_H

#include <sys/types.h>

#include "engine/sandbox/sandbox.h"
#include "engine/run/notify.h"
#include "engine/run/worker.h"

struct child_slot {
	pid_t pid;             /* 0: not running */
	int64_t born_ms;       /* monotonic */
	int64_t respawn_at_ms; /* monotonic; 0: do not start it; always 0 while stopping */
	int64_t pause_ms;      /* backoff before the next respawn */
	/*
	 * draining, to be replaced by a child with the new configuration or with access to replaced
	 * files
	 */
	bool restarting;
	bool stopped;                /* stopped by SIGSTOP: it cannot respond */
	bool retired;                /* a control message stopped this worker alone: it is not replaced */
	bool killed;                 /* we sent SIGKILL; it has not exited yet */
	struct fw_sandbox_mark mark; /* the files that its sandbox permitted at its start */
};

struct master {
	const struct fw_config *config;
	struct fw_config *reloaded; /* owned; NULL before the first reload */
	const struct fw_run_options *o;
	struct fw_meter *meter; /* with what each child shares with the master: child_shared() */
	struct child_slot *slot;
	/* number of workers, which have the first slots; the server has the last */
	int n;
	int slot_n;
	int first; /* the child that does what one does for all (worker_options), and has the sender */
	int pipe_fd[2];
	/*
	 * the sender's end, the runner's; both stay open, so it can be started again; -1: no rules
	 */
	int runner_fd[2];
	struct child_slot runner; /* runs commands of orders; only while its socket had something to read */
	int64_t started_mono_ms, started_ms;
	int64_t cpu_before_ms;     /* CPU time of earlier children, to subtract */
	int64_t stop_requested_ms; /* monotonic; first stop request */
	int64_t files_checked_ms;  /* monotonic; last check of the files that children may read */
	int64_t tick_ms, awake_ms; /* monotonic; last tick; ticks have been regular since */
	int64_t leave_by_ms;       /* monotonic; end of the time to drain, while stopping */
	bool stopping;
	int rc;
	struct fw_err err;
	struct fw_notify notify;
	bool ready; /* the service manager was sent READY=1 */
	/* unresponsive child reported to the service manager; -1: none */
	int unresponsive;
	int64_t ping_ms, status_ms; /* monotonic; next watchdog ping, next status line */
	int64_t reload_id;          /* newest control message that requested a reload; 0: none */
	char reload_error[200];     /* error of the last reload; "": none */
};

static inline struct worker_shared *child_shared(const struct master *m, int i)
{
	return fw_meter_own(m->meter, (size_t)i);
}

/*
 * Create the shared memory and start the children. The caller has blocked the signals that
 * master_step() handles. Returns m->rc if the master could not start: then call only
 * master_finish(). If a child could not be started, returns 0, sets m->rc and stops the others.
 */
FW_MUST_CHECK int master_begin(struct master *m, const struct fw_config *c, const struct fw_run_options *o);
/*
 * One round of the master's loop; call it at each signal and at least every 200 ms. number: the
 * signal; -1: none.
 */
void master_step(struct master *m, int number);
/* True when no child runs and none is scheduled to start. */
bool master_is_over(const struct master *m);
/* After the end: totals of all children. */
void master_report(const struct master *m, struct fw_run_stats *out);
void master_finish(struct master *m);

#endif
