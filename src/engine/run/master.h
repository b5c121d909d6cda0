/* SPDX-License-Identifier: ISC */
/* The master a step at a time, for fw_run() and for the test that plays it on a clock of its own. */
#ifndef FW_ENGINE_MASTER_H
#define FW_ENGINE_MASTER_H

#include <sys/types.h>

#include "engine/ops/sandbox.h"
#include "engine/run/notify.h"
#include "engine/run/worker.h"

struct slot {
	pid_t pid;               /* 0: none is running */
	int64_t born_ms;         /* monotonic */
	int64_t respawn_at_ms;   /* monotonic; 0: not to be started, and always while all stop */
	int64_t pause_ms;        /* before the next respawn */
	bool renewed;            /* told to leave, for another with the new configuration, or that may read what was replaced */
	bool stopped;            /* by SIGSTOP: it hears nothing */
	bool killed;             /* by us; it is not gone yet */
	struct fw_sandbox_mark mark; /* the files it was allowed when it began */
};

struct master {
	const struct fw_config *config;
	struct fw_config *reloaded; /* owned; NULL until the first SIGHUP */
	const struct fw_run_options *o;
	struct worker_shared *shared;
	int shared_fd;             /* of that memory; -1: none */
	struct fw_meter *meter;
	struct slot *slot;
	int n;                     /* workers: the first slots; behind them the server, if there is one */
	int slot_n;
	int pipe_fd[2];
	int64_t started_mono_ms, started_ms;
	int64_t took_before_ms;    /* processor time of children before it began */
	int64_t told_ms;           /* monotonic: when it was first told to stop */
	int64_t looked_ms;         /* monotonic: at the files that children may read */
	int64_t tick_ms, awake_ms; /* monotonic: the last tick; since when ticks have come regularly */
	int64_t leave_by_ms;       /* monotonic, while it stops: until then they may drain */
	bool stopping;
	int rc;
	struct fw_err err;
	struct fw_notify notify;
	bool ready;                /* what the service manager was told last */
	int still;                 /* the child that it was told to stand still; -1: none */
	int64_t ping_ms, status_ms; /* monotonic: when it is told again */
	char trouble[200];         /* the configuration that could not be taken; "": none */
};

/*
 * Makes what it shares with its children, and starts them; the signals of master_step() are blocked. Not 0, as m->rc then: it could not begin,
 * and only master_finish() is left to do. A child that could not be started is told in m->rc: then all stop.
 */
FW_MUST_CHECK int master_begin(struct master *m, const struct fw_config *c, const struct fw_run_options *o);
/* One round of its loop, at each signal that it gets and some times a second. number: the signal; -1: none came. */
void master_step(struct master *m, int number);
/* No child is left, and none is to follow. */
bool master_is_over(const struct master *m);
/* When it is over: what they did. */
void master_report(const struct master *m, struct fw_run_stats *out);
void master_finish(struct master *m);

#endif
