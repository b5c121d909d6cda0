/* SPDX-License-Identifier: ISC */
/*
 * The runner, as the sender of orders uses it (runner.c): a process that runs the commands of
 * orders and appends to their files, and does nothing else. It is started by the master when the
 * first job waits, and again when it has died, and has neither store nor network. A job goes to it
 * as one frame on a socketpair (SOCK_SEQPACKET), with the message in a memfd that becomes the
 * program's standard input: so a runner that is killed and started again finds whole frames.
 * runner_process.h: the process.
 */
#ifndef FW_ENGINE_RUNNER_H
#define FW_ENGINE_RUNNER_H

#include <uv.h>

#include "base/str.h"
#include "base/err.h"

#define RUNNER_JOBS_MAX 64
#define RUNNER_WORDS_MAX 64  /* of a command */
#define RUNNER_KILL_MS 2000  /* from SIGTERM to SIGKILL */
#define RUNNER_LATE_MS 5000  /* added to a job's time limit: then its runner has died */
#define RUNNER_ERROR_MAX 240 /* bytes of a program's last line that are kept */

struct runner; /* the sender's end */

struct runner_result {
	bool accepted;       /* exit status 0; the text is in the file, and synced */
	int status;          /* exit status; 127: not started; 128 and the signal; 0: no program ended */
	struct fw_str error; /* why it was not accepted, in words without controls; borrowed for the call */
};
typedef void runner_done_fn(void *ctx, const struct runner_result *result);

struct runner_job {
	/*
	 * program and arguments, as in "command:": an absolute path and words, separated by spaces;
	 * there are no quotes. Or absent: append
	 */
	struct fw_str command;
	struct fw_str path;              /* of the file to append to (order_path()); or absent */
	struct fw_str input;             /* standard input, or the whole lines that are appended */
	struct fw_str order, message_id; /* a program's environment, see runner_process.h; may be absent */
	int64_t timeout_ms;              /* then the command's process group is killed */
	runner_done_fn *done;            /* called once, from the loop */
	void *ctx;
};

/* Descriptor of the runner's socket in this process; -1: it may not use the runner. */
int runner_fd(void);
void runner_fd_set(int fd); /* child.c */

/* Use the runner behind this socket; fd stays the caller's. */
FW_MUST_CHECK int runner_open(uv_loop_t *loop, int fd, struct runner **out, struct fw_err *err);
/*
 * Start a job; its strings are borrowed for the call. Jobs run beside each other, up to
 * RUNNER_JOBS_MAX. A job whose runner died ends by its time-out. Errors: nothing was started, done
 * is not called; FW_EAGAIN: too many jobs.
 */
FW_MUST_CHECK int runner_start(struct runner *r, const struct runner_job *job, struct fw_err *err);
/*
 * Jobs that have not ended are killed, and their done is not called. The memory is freed by the
 * loop, which has to run once more. NULL is allowed.
 */
void runner_close(struct runner *r);

/*
 * The path of an order's file at this time: %Y %m %d %H %M become the time in UTC, %% is a percent
 * sign. false: another letter follows a percent sign, or out is too small.
 */
FW_MUST_CHECK bool order_path(char *out, size_t cap, struct fw_str path, int64_t at_ms);

#endif
