/* SPDX-License-Identifier: ISC */
/*
 * The runner's process, and the frames that it takes (runner.h: the sender's end).
 *
 * Each job is a process of its own with its own process group, a file's job too: a file system
 * that hangs holds up nobody else. At its time limit the group gets SIGTERM, and SIGKILL after
 * RUNNER_KILL_MS or when the program itself has ended; what a program leaves behind after a normal
 * end lives on. If the runner dies, the kernel kills its programs.
 *
 * A program gets: the message as standard input, /dev/null as standard output, "/" as its folder,
 * no other descriptors, no core files, and this environment: PATH, HOME, LANG, TZ and
 * XDG_RUNTIME_DIR as the service has them (PATH has a default), FEEDWHEEL_ORDER and
 * FEEDWHEEL_MESSAGE_ID. It inherits the limits of the master's sandbox: no new privileges, and the
 * refused system calls. The runner itself could give up more only by taking it from programs.
 *
 * Whoever holds the socket may be an attacker. The runner does only what the rules of the
 * configuration allow (runner_rules.h); the message, the order's name and the message's id are
 * whatever the frame says, without controls.
 */
#ifndef FW_ENGINE_RUNNER_PROCESS_H
#define FW_ENGINE_RUNNER_PROCESS_H

#include "engine/orders/runner.h"
#include "engine/runner_rules.h"

enum runner_kind { RUNNER_COMMAND, RUNNER_APPEND, RUNNER_END };
enum runner_text { RUNNER_TO, RUNNER_ORDER, RUNNER_MESSAGE, RUNNER_TEXTS };

#define RUNNER_FRAME_MAX 16384

/* Head of a frame; its texts follow. A memfd with the input comes with it, but not with END. */
struct runner_frame {
	uint64_t client; /* of runner_open(); the first job of another client ends the jobs of this one */
	uint64_t id;
	int64_t timeout_ms;
	uint32_t kind; /* RUNNER_END: end all jobs of this client */
	uint32_t len[RUNNER_TEXTS];
};

struct runner_reply {
	uint64_t client, id;
	int32_t status;
	uint32_t accepted;
	char error[RUNNER_ERROR_MAX + 80]; /* with a NUL */
};

/*
 * The whole life of the runner: until all other ends of the socket are closed. The caller is a
 * process of its own, with a single thread. Closes all descriptors but fd and the first three.
 * rules are borrowed. Returns an exit status.
 */
int runner_main(int fd, const struct runner_rules *rules);

/* runner_job.c: in a process that was just forked; does not return. */
_Noreturn void runner_job_command(const char *const text[RUNNER_TEXTS]);
_Noreturn void runner_job_append(const char *path, size_t trusted_n);

#endif
