/* SPDX-License-Identifier: ISC */
/* A worker or the server, from its first moment: what the master hands to it, and how. */
#ifndef FW_ENGINE_CHILD_H
#define FW_ENGINE_CHILD_H

#include "engine/run/worker.h"

struct child {
	const struct fw_config *config;
	struct worker_shared *shared;      /* of all children; [index] is its own */
	struct fw_meter *meter;
	int shared_fd;                     /* of the memory that it is in, -1: none */
	int index, n, slot_n;              /* workers are 0 ... n - 1; behind them the server, if there is one */
	int master_fd;                     /* end of file here means the master is gone */
	bool once;
	int64_t started_ms;                /* the run's number, and what is due by then */
	fw_serve_body *serve;
	void *ctx;
};

/* The whole life of a child; an enum worker_exit. */
int child_main(const struct child *c);
/*
 * Become this program anew, with a memory layout of its own, and go on there in fw_run_child(): of a child that was just forked. argv:
 * fw_run_options.anew. Returns only when that could not be done: a negative errno.
 */
FW_MUST_CHECK int child_anew(const struct child *c, const char *const *argv);

/* Memory that children share, all zeros. *fd: what a child finds it by that begins anew, -1: none can. NULL with errno set. */
void *child_memory(size_t bytes, int *fd);

#endif
