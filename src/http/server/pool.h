/* SPDX-License-Identifier: ISC */
/*
 * The blocking thread pool: serve_pool_threads threads, and with serve_discovery as many more as
 * addresses are fetched at once, each with its own connection to the store, for work that would
 * block the server threads.
 *
 * Backpressure: at most POOL_JOBS_MAX jobs are queued or running. A job needs a slot first; without
 * one a request is refused with 503. A thread keeps a link to the store (api/store_link.h).
 *
 * Fairness: an account takes turns with all others, runs on all but one of the serve_pool_threads
 * threads at most, but at least on one, and has at most POOL_ACCOUNT_MAX jobs. A job that fetches
 * an address does not count. Whose a request is, its handler finds out: it runs again then, if it
 * has to wait for its turn.
 *
 * The response to a search of an account is sent at the end of a slice of SEARCH_SLICE_MS: the
 * index holds the words of all feeds, and how long a look at it takes would tell whether a word is
 * in a feed of others.
 */
#ifndef FW_HTTP_SERVER_POOL_H
#define FW_HTTP_SERVER_POOL_H

#include "feedwheel/engine.h"

#define POOL_JOBS_MAX 512    /* queued or running */
#define POOL_ACCOUNT_MAX 128 /* of one account */
#define SEARCH_SLICE_MS 25
#define POOL_RETRY_MS 100
#define POOL_LATER 1
#define POOL_STOPPING "the server is stopping" /* FW_EGONE */
/* How long a request may work in the store. A client that left is noticed after STORE_LEFT_MS. */
#define STORE_READ_MS INT64_C(20000)
#define STORE_WRITE_MS INT64_C(60000)
#define STORE_LEFT_MS INT64_C(500)

struct pool;

/* the caller's, until done is called */
struct pool_job {
	/*
	 * Called by a pool thread. st NULL: the store is unavailable or the pool is closing
	 * (FW_EGONE), see err. Returns
	 *  - 0: finished;
	 *  - POOL_LATER: the job keeps its slot and runs again after POOL_RETRY_MS, or at at_ms,
	 *    if it has set that;
	 *  - FW_E*, and *err: finished, and this is what the store returned. If it is opened again
	 *    for that, a job with repeat runs once more.
	 */
	int (*run)(struct pool_job *j, struct fw_store *st, struct fw_err *err);
	void (*done)(struct pool_job *j); /* called once, after the last run; may free j */
	bool repeat;
	int64_t at_ms; /* when to run again, monotonic */
	/* private */
	int64_t account_id; /* 0: nobody's, or not known yet */
	uint64_t turn;
	bool waits;   /* for its turn */
	bool fetches; /* an address, on a thread that is not the account's */
	struct pool_job *next;
};

/* Starts serve_pool_threads threads. Errors: FW_ENOMEM; FW_EIO no thread. */
FW_MUST_CHECK int pool_open(const struct fw_config *c, struct pool **out, struct fw_err *err);
/* Waits for running jobs; queued jobs run without a store. NULL is fine. */
void pool_close(struct pool *pool);
bool pool_is_closing(void *pool);     /* a job that runs for seconds ends then */
void pool_destroy(struct pool *pool); /* closes it too. NULL is fine */
/* Any thread: take a slot, then put the job. False: no slot is free. */
FW_MUST_CHECK bool pool_take_slot(struct pool *pool);
void pool_put(struct pool *pool, struct pool_job *j); /* of a closed pool: calls run and done at once */

enum pool_turn {
	POOL_NOW,     /* go on */
	POOL_NOT_YET, /* return POOL_LATER: the job runs again when the account may */
	POOL_TOO_MANY
};
/* From a job that runs, on its thread: it is this account's. */
enum pool_turn pool_job_is_of(struct pool *pool, struct pool_job *j, int64_t account_id);
/* The same: it begins to fetch an address, which takes seconds, or has ended that. */
void pool_job_fetches(struct pool *pool, struct pool_job *j, bool on);

#endif
