/* SPDX-License-Identifier: ISC */
/*
 * The blocking thread pool: serve_pool_threads threads, and one more with serve_discovery, each
 * with its own connection to the store, for work that would block the server threads.
 *
 * Backpressure: at most POOL_JOBS_MAX jobs are queued or running. A job needs a slot first; without
 * one a request is refused with 503. Jobs start in the order of the queue. A thread keeps a link to
 * the store (api/store_link.h).
 */
#ifndef FW_HTTP_POOL_H
#define FW_HTTP_POOL_H

#include "feedwheel/engine.h"

#define POOL_JOBS_MAX 512 /* queued or running */
#define POOL_RETRY_MS 100
#define POOL_LATER 1

struct pool;

/* the caller's, until done is called */
struct pool_job {
	/*
	 * Called by a pool thread. st NULL: the store is unavailable or the pool is closing
	 * (FW_EGONE), see err. Returns
	 *  - 0: finished;
	 *  - POOL_LATER: the job keeps its slot and runs again after POOL_RETRY_MS;
	 *  - FW_E*, and *err: finished, and this is what the store returned. If it is opened again
	 *    for that, a job with repeat runs once more.
	 */
	int (*run)(struct pool_job *j, struct fw_store *st, struct fw_err *err);
	void (*done)(struct pool_job *j); /* called once, after the last run; may free j */
	bool repeat;
	int64_t at_ms; /* private: when to run again, monotonic */
	struct pool_job *next;
};

/* Starts serve_pool_threads threads. Errors: FW_ENOMEM; FW_EIO no thread. */
FW_MUST_CHECK int pool_open(const struct fw_config *c, struct pool **out, struct fw_err *err);
/* Waits for running jobs; queued jobs run without a store. NULL is fine. */
void pool_close(struct pool *pool);
void pool_destroy(struct pool *pool); /* closes it too. NULL is fine */
/* Any thread: take a slot, then put the job. False: no slot is free. */
FW_MUST_CHECK bool pool_take_slot(struct pool *pool);
void pool_put(struct pool *pool, struct pool_job *j); /* of a closed pool: calls run and done at once */

#endif
