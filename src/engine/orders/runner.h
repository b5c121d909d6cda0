/* SPDX-License-Identifier: ISC */
/*
 * The runner: a process that runs the commands of orders and appends to their files, and does
 * nothing else. It is forked before its parent gives up rights, threads and connections begin, and
 * has neither store nor network. A job goes to it as a small frame on a socketpair
 * (SOCK_SEQPACKET), with the message in a memfd that becomes the program's standard input: so a
 * runner that is killed and started again finds whole frames.
 */
#ifndef FW_ENGINE_RUNNER_H
#define FW_ENGINE_RUNNER_H

#include <uv.h>

#include "base/str.h"
#include "base/err.h"

struct runner; /* the sender's end */

struct runner_result {
	bool accepted;       /* exit status 0; the text is in the file, and synced */
	int status;          /* exit status; 128 and the signal; 0: it did not run */
	struct fw_str error; /* why it was not accepted, in words; borrowed for the call */
};
typedef void runner_done_fn(void *ctx, const struct runner_result *result);

struct runner_job {
	struct fw_str command; /* program and arguments, as in "command:"; or absent: append */
	struct fw_str path;    /* of the file to append to, without its "%"; or absent */
	struct fw_str input;   /* standard input, or what is appended */
	int64_t timeout_ms;    /* then the command's process group is killed */
	runner_done_fn *done;  /* called once, from the loop */
	void *ctx;
};

/* Use the runner behind this socket; fd stays the caller's. */
FW_MUST_CHECK int runner_open(uv_loop_t *loop, int fd, struct runner **out, struct fw_err *err);
/*
 * Start a job; its strings are borrowed for the call. Jobs run beside each other. A job whose
 * runner died ends by its time-out. Errors: nothing was started, done is not called.
 */
FW_MUST_CHECK int runner_start(struct runner *r, const struct runner_job *job, struct fw_err *err);
/* Jobs that have not ended are killed, and their done is not called. NULL is allowed. */
void runner_close(struct runner *r);

#endif
