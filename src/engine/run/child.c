/* SPDX-License-Identifier: ISC */
/*
 * A worker or the server starts here, after the fork. With a sandbox this program is executed
 * again, so that each child has a memory layout of its own and an attacker cannot use what one
 * child leaked against the next. The master passes to it, as files without a name,
 *
 * - its own memory in the meter, to the server also the slots of workers, which it may read,
 * - the pipe by which it sees the master's end,
 * - the configuration: the master may have read it long ago, and it may hold the store's password.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/run/child.h"
#include "engine/config_text.h"
#include "engine/sandbox/sandbox.h"
#include "engine/orders/runner_process.h"

#define HANDED_MAX_BYTES ((size_t)8 << 20)
#define ARGUMENTS_MAX 8
/* and two descriptors, its socket and its rules: what fw_run_child() is handed for the runner */
#define RUNNER "runner-"
#define RULES_MAX_BYTES ((size_t)1 << 20)

/* Head of the file, written and read by the same binary; the configuration follows. */
struct child_handoff {
	int64_t started_ms;
	int master_fd, runner_fd;
	int index, n, slot_n;
	int fd_n; /* of the meter */
	bool first, once;
	int fd[FW_METER_FDS];
};

/* ---- its life -------------------------------------------------------------------------------- */

/* Enter the sandbox, before any input from outside is read. */
static int child_enter_sandbox(const struct child *c, enum fw_sandbox_role role)
{
	if (fw_sandbox_enter(c->config, role, &c->shared->err))
		return WORKER_SYSTEM;
#ifdef FW_TEST_HOOKS
	fw_sandbox_test();
#endif
	return 0;
}

/* The server is a separate process: requests from clients cannot harm the workers. */
static int child_serve(const struct child *c)
{
	fw_log_setup(fw_log_level_of(c->config->log_level), c->config->log_json, "serve");
	if (child_enter_sandbox(c, c->n ? FW_SANDBOX_SERVER : FW_SANDBOX_SENDER_SERVER))
		return WORKER_SYSTEM;
	switch (c->serve(c->ctx, c->config, c->meter, c->master_fd, &c->shared->err)) {
	case 0:
		return WORKER_LEFT;
	case FW_EIO:
	case FW_EUNUSABLE:
	case FW_EVERSION:
		return WORKER_STORE;
	default:
		return WORKER_SYSTEM;
	}
}

static int child_work(const struct child *c)
{
	struct worker_options wo = {.config = c->config,
		.shared = c->shared,
		.meter = fw_meter_slot(c->meter, (size_t)c->index),
		.index = c->index,
		.workers = c->n,
		.first = c->first,
		.once = c->once,
		.due_before_ms = c->once ? c->started_ms : 0,
		.run_id = c->started_ms,
		.master_fd = c->master_fd};
	char process[32];

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	(void)fw_snprintf(process, sizeof(process), "worker %d", c->index);
	fw_log_setup(fw_log_level_of(c->config->log_level), c->config->log_json, process);
	if (child_enter_sandbox(c, FW_SANDBOX_WORKER))
		return WORKER_SYSTEM;
	return fw_worker_main(&wo);
}

int child_main(const struct child *c)
{
	signal(SIGHUP, SIG_IGN);
	runner_fd_set(c->runner_fd);
	return c->index < c->n ? child_work(c) : child_serve(c);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* A file without a name; -1: not supported, or no room. */
static int file_open_nameless(void)
{
#ifdef MFD_CLOEXEC
	return memfd_create("feedwheel", MFD_CLOEXEC);
#else
	errno = ENOSYS;
	return -1;
#endif
}

/* ---- anew ------------------------------------------------------------------------------------ */

/* Keep the descriptor open across exec. */
static int fd_keep_on_exec(int fd)
{
	return fcntl(fd, F_SETFD, 0) ? -errno : 0;
}

/* Write what the child needs into a file. *fd: that file. Returns 0 or a negative errno. */
static int handoff_write(const struct child *c, int *fd)
{
	struct child_handoff h = {.started_ms = c->started_ms,
		.master_fd = c->master_fd,
		.runner_fd = c->runner_fd,
		.index = c->index,
		.n = c->n,
		.slot_n = c->slot_n,
		.first = c->first,
		.once = c->once};
	struct fw_buf b = FW_BUF_INIT(HANDED_MAX_BYTES);
	int rc;

	*fd = file_open_nameless();
	if (*fd < 0)
		return -errno;
	h.fd_n = fw_meter_hand_over(c->meter, (size_t)c->index, h.fd);
	if (h.fd_n < 0)
		return h.fd_n;
	fw_buf_add(&b, &h, sizeof(h));
	config_write(c->config, &b);
	rc = b.rc ? -ENOMEM : -fw_write_all(*fd, b.p, b.len);
	fw_buf_finish(&b);
	rc = rc ? rc : fd_keep_on_exec(*fd);
	rc = rc || h.runner_fd < 0 ? rc : fd_keep_on_exec(h.runner_fd);
	return rc ? rc : fd_keep_on_exec(h.master_fd);
}

/* Returns only on failure: a negative errno. */
static int program_exec(const char *const *argv, const char *who, const char *handed)
{
	const char *all[ARGUMENTS_MAX + 3] = {NULL};
	size_t n = 0;

	while (argv[n] && n < ARGUMENTS_MAX) {
		all[n] = argv[n];
		n++;
	}
	all[n++] = who; /* shown in lists of processes */
	all[n] = handed;
	unsetenv("FEEDWHEEL_STORE"); /* it may hold a password */
	/* the running binary: its path may name another file by now */
	execv("/proc/self/exe", (char *const *)(uintptr_t)all);
	return -errno;
}

/* Two lines, into a file without a name. Returns its descriptor, or a negative errno. */
static int rules_write(const struct runner_rules *rules)
{
	struct fw_buf b = FW_BUF_INIT(RULES_MAX_BYTES);
	int fd = file_open_nameless(), rc = fd < 0 ? -errno : 0;

	fw_buf_addf(&b, "%s\n%s", rules->programs ? rules->programs : "", rules->files ? rules->files : "");
	rc = rc ? rc : b.rc ? -ENOMEM : -fw_write_all(fd, b.p, b.len);
	fw_buf_finish(&b);
	rc = rc ? rc : fd_keep_on_exec(fd);
	return rc ? rc : fd;
}

int child_exec_runner(int fd, const struct runner_rules *rules, const char *const *argv)
{
	int rc = fd_keep_on_exec(fd), rules_fd = rc ? rc : rules_write(rules);
	char handed[40];

	if (rules_fd < 0)
		return rules_fd;
	(void)fw_snprintf(handed, sizeof(handed), RUNNER "%d-%d", fd, rules_fd);
	return program_exec(argv, "runner", handed);
}

int child_exec(const struct child *c, const char *const *argv)
{
	char who[24], file[16];
	int fd, rc = handoff_write(c, &fd);

	if (rc && fd >= 0)
		close(fd);
	if (rc)
		return rc;
	if (c->index < c->n)
		(void)fw_snprintf(who, sizeof(who), "worker-%d", c->index);
	else
		(void)fw_snprintf(who, sizeof(who), "server");
	(void)fw_snprintf(file, sizeof(file), "%d", fd);
	return program_exec(argv, who, file);
}

/* Read all that the master wrote, at least min_bytes, and close it. */
static int file_read(int fd, size_t min_bytes, struct fw_buf *out)
{
	struct stat st;
	char *to;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size < (off_t)min_bytes ||
		st.st_size > (off_t)HANDED_MAX_BYTES)
		return FW_EINVAL;
	to = fw_buf_room(out, (size_t)st.st_size);
	if (!to || pread(fd, to, (size_t)st.st_size, 0) != st.st_size)
		return FW_EINVAL;
	out->len = (size_t)st.st_size;
	close(fd);
	return 0;
}

static int handoff_read(int fd, struct child *c, struct fw_config **config, struct fw_err *err)
{
	struct fw_buf b = FW_BUF_INIT(HANDED_MAX_BYTES);
	struct child_handoff h;
	int rc = file_read(fd, sizeof(h), &b);

	*c = (struct child){0};
	if (rc) {
		fw_buf_finish(&b);
		fw_err_set(err, rc,
			"descriptor %d refused: not created by 'run' or 'serve', which alone start this command", fd);
		return rc;
	}
	memcpy(&h, b.p, sizeof(h));
	rc = config_read(fw_str_sub(fw_buf_str(&b), sizeof(h), b.len), config, err);
	fw_buf_finish(&b);
	if (rc)
		return rc;
	*c = (struct child){.config = *config,
		.meter = fw_meter_open(
			(size_t)h.n, (size_t)h.slot_n, sizeof(*c->shared), (size_t)h.index, h.fd, (size_t)h.fd_n),
		.index = h.index,
		.n = h.n,
		.slot_n = h.slot_n,
		.master_fd = h.master_fd,
		.runner_fd = h.runner_fd,
		.first = h.first,
		.once = h.once,
		.started_ms = h.started_ms};
	if (!c->meter)
		return fw_err_set(err, FW_EIO, "shared memory of the run not mapped: %s", strerror(errno));
	c->shared = fw_meter_own(c->meter, (size_t)h.index);
	return 0;
}

/* The runner. handed: its two descriptors. */
static int child_run(struct fw_str handed)
{
	struct fw_str second, first = fw_str_split(handed, '-', &second);
	struct fw_buf b = FW_BUF_INIT(RULES_MAX_BYTES + 1);
	struct runner_rules rules = {NULL, NULL};
	int64_t fd, rules_fd;
	char *line;

	if (!fw_str_int(first, &fd) || !fw_str_int(second, &rules_fd) || fd <= STDERR_FILENO || fd > INT_MAX ||
		rules_fd <= STDERR_FILENO || rules_fd > INT_MAX || file_read((int)rules_fd, 1, &b)) {
		fw_error("descriptors '%.*s' refused: not created by 'run' or 'serve', which alone start this command",
			FW_STR_ARG(fw_str_sub(handed, 0, 40)));
		return EXIT_FAILURE;
	}
	fw_buf_add(&b, "", 1);
	line = b.rc ? NULL : memchr(b.p, '\n', b.len);
	if (line) {
		*line = 0;
		rules = (struct runner_rules){b.p, line + 1};
	}
	return runner_main((int)fd, &rules);
}

int fw_run_child(const char *handed, fw_serve_body *serve, void *ctx)
{
	struct fw_config *config = NULL;
	struct fw_err err;
	struct child c;
	int64_t fd = -1;

#ifdef __linux__
	prctl(PR_SET_NAME, program_invocation_short_name, 0, 0, 0); /* the default would be "exe" */
#endif
	if (fw_str_starts(fw_str(handed), FW_STR(RUNNER)))
		return child_run(fw_str_sub(fw_str(handed), strlen(RUNNER), strlen(handed)));
	if (!fw_str_int(fw_str(handed), &fd) || fd < 0 || fd > INT_MAX)
		fd = -1;
	if (handoff_read((int)fd, &c, &config, &err)) {
		fw_error("%s", err.text);
		return WORKER_SYSTEM;
	}
	c.serve = serve;
	c.ctx = ctx;
	return child_main(&c);
}
