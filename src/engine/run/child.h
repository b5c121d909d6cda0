/* SPDX-License-Identifier: ISC */
/* A child process (a worker or the server): its start, and what the master passes to it. */
#ifndef FW_ENGINE_CHILD_H
#define FW_ENGINE_CHILD_H

#include "engine/run/worker.h"

struct runner_rules;

struct child {
	const struct fw_config *config;
	struct worker_shared *shared; /* its own */
	struct fw_meter *meter;
	/* workers are 0 ... n - 1; the server, if there is one, is n */
	int index, n, slot_n;
	int master_fd; /* end of file: the master is gone */
	int runner_fd; /* socket of the runner (engine/orders/runner.h); -1: not for this child */
	bool first;    /* worker_options */
	bool once;
	/* start and id of the run; a run --once fetches what is due by then */
	int64_t started_ms;
	fw_serve_body *serve;
	void *ctx;
};

/* The whole life of a child; returns an enum worker_exit. */
int child_main(const struct child *c);
/*
 * Execute this program again in a child that was just forked, so that it has a memory layout of its
 * own, and continue there in fw_run_child(). argv: fw_run_options.exec_args. Returns only on
 * failure: a negative errno.
 */
FW_MUST_CHECK int child_exec(const struct child *c, const char *const *argv);
/* The same for the runner: fd is its end of the socket; rules: what it may do. */
FW_MUST_CHECK int child_exec_runner(int fd, const struct runner_rules *rules, const char *const *argv);

#ifdef FW_TEST_HOOKS
/* Try from inside what the sandbox refuses (sandbox_test.c). */
void fw_sandbox_test(void);
#endif

#endif
