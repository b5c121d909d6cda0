/* SPDX-License-Identifier: ISC */
/*
 * The desk: a few threads, each with a store connection of its own, for what would block the server's threads. Its queue is bounded, and
 * who comes when it is full is told to come again. A store that is not there is opened anew for each job, at most once a second.
 */
#ifndef FW_HTTP_DESK_H
#define FW_HTTP_DESK_H

#include "feedwheel/engine.h"

#define DESK_JOBS_MAX 512 /* waiting or being done */
#define DESK_LATER_MS 100

struct desk;

struct desk_job { /* the caller's, alive until done was called */
	/*
	 * From one of the desk's threads. st NULL: it cannot be reached, or the desk is closing; err says so. Returns 0, or FW_EIO when the
	 * store broke: it is opened anew, and a job that may be repeated runs once more; or FW_EAGAIN: it keeps its seat, and runs again in
	 * DESK_LATER_MS.
	 */
	int (*run)(struct desk_job *j, struct fw_store *st, const struct fw_err *err);
	void (*done)(struct desk_job *j); /* once, behind the last run */
	bool repeat;
	int64_t at_ms;            /* the desk's: monotonic, not before */
	struct desk_job *next;
};

/* Setting serve_readers: so many threads. Errors: FW_ENOMEM; FW_EIO no thread. */
FW_MUST_CHECK int desk_open(const struct fw_config *c, struct desk **out, struct fw_err *err);
/* What waits is run without a store, what is being done is waited for. NULL is fine. */
void desk_close(struct desk *d);
void desk_destroy(struct desk *d); /* closed, or never used */
/* Any thread: first a seat, then the job. False: there is none. */
FW_MUST_CHECK bool desk_seat(struct desk *d);
void desk_put(struct desk *d, struct desk_job *j); /* when it is closed, run and done are called at once */

#endif
