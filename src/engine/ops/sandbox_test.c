/* SPDX-License-Identifier: ISC */
/*
 * Test builds only. A process that has just entered the sandbox tries the actions that
 * FEEDWHEEL_TEST_SANDBOX lists, and logs each result.
 *
 *	read=PATH write=PATH chmod=PATH connect=PORT bind=PORT signal= ptrace= fork= keys= ring=
 *	code= socket= exec= command=PATH append=PATH
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "engine/ops/sandbox.h"
#include "engine/orders/runner.h"
#include "base/banned.h"

static int try_open(const char *path, int flags)
{
	char drop;
	int fd = open(path, flags | O_CLOEXEC, 0600),
	    rc = fd < 0 || (flags == O_RDONLY && read(fd, &drop, 1) < 0) ? errno : 0;

	if (fd >= 0)
		close(fd);
	return rc;
}

static int try_socket(int (*act)(int, const struct sockaddr *, socklen_t), const char *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;
	int64_t n = 0;

	if (!fw_str_int(fw_str(port), &n))
		fw_error("trial: '%s' is not a port", port);
	a.sin_port = htons((uint16_t)n);
	rc = act(fd, (struct sockaddr *)&a, sizeof(a)) ? errno : 0;
	close(fd);
	return rc;
}

static int try_ptrace(void)
{
	if (ptrace(PTRACE_ATTACH, getppid(), NULL, NULL))
		return errno;
	waitpid(getppid(), NULL, __WALL);
	ptrace(PTRACE_DETACH, getppid(), NULL, NULL);
	return 0;
}

static int try_fork(void)
{
	pid_t pid = fork();

	if (pid < 0)
		return errno;
	if (!pid)
		_exit(0);
	return waitpid(pid, NULL, 0) == pid ? 0 : errno;
}

static int try_code(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return errno;
	munmap(p, 4096);
	return 0;
}

static int try_family(void)
{
	int fd = socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), rc = fd < 0 ? errno : 0;

	if (fd >= 0)
		close(fd);
	return rc;
}

static int try_exec(void)
{
	execl("/bin/sh", "sh", "-c", "echo trial: exec: done >&2", (char *)NULL);
	return errno;
}

struct runner_try {
	struct runner *r;
	int rc;
};

static void try_runner_done(void *ctx, const struct runner_result *result)
{
	struct runner_try *t = ctx;

	t->rc = result->accepted ? 0 : EIO;
	runner_close(t->r);
}

/* Let the runner do it. */
static int try_runner(const char *command, const char *path)
{
	struct runner_try t = {.rc = EIO};
	struct runner_job job = {.input = FW_STR("message\n"),
		.order = FW_STR("trial"),
		.timeout_ms = 60000,
		.done = try_runner_done,
		.ctx = &t};
	struct fw_err err;
	uv_loop_t loop;

	if (runner_fd() < 0)
		return EBADF;
	job.command = command ? fw_str(command) : FW_STR_NONE;
	job.path = path ? fw_str(path) : FW_STR_NONE;
	if (uv_loop_init(&loop) || runner_open(&loop, runner_fd(), &t.r, &err))
		return EIO;
	if (runner_start(t.r, &job, &err)) {
		fw_error("%s", err.text);
		runner_close(t.r);
	}
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	return t.rc;
}

static int try_one(struct fw_str what, const char *value)
{
	char unknown[8];

	if (fw_str_eq(what, FW_STR("read")))
		return try_open(value, O_RDONLY);
	if (fw_str_eq(what, FW_STR("write")))
		return try_open(value, O_WRONLY | O_CREAT);
	if (fw_str_eq(what, FW_STR("chmod")))
		return chmod(value, 0600) ? errno : 0;
	if (fw_str_eq(what, FW_STR("connect")))
		return try_socket(connect, value);
	if (fw_str_eq(what, FW_STR("bind")))
		return try_socket(bind, value);
	if (fw_str_eq(what, FW_STR("signal")))
		return kill(getppid(), SIGCONT) ? errno : 0;
	if (fw_str_eq(what, FW_STR("ptrace")))
		return try_ptrace();
	if (fw_str_eq(what, FW_STR("fork")))
		return try_fork();
	if (fw_str_eq(what, FW_STR("keys")))
		return syscall(SYS_add_key, "user", "feedwheel-trial", "x", (size_t)1, -1 /* this thread's keyring */) <
				0 ?
			errno :
			0;
	if (fw_str_eq(what, FW_STR("ring")))
		return syscall(SYS_io_uring_register, -1, 0, NULL, 0) < 0 ? errno : 0;
	if (fw_str_eq(what, FW_STR("code")))
		return try_code();
	if (fw_str_eq(what, FW_STR("socket")))
		return try_family();
	if (fw_str_eq(what, FW_STR("exec")))
		return try_exec();
	if (fw_str_eq(what, FW_STR("command")))
		return try_runner(value, NULL);
	if (fw_str_eq(what, FW_STR("append")))
		return try_runner(NULL, value);
	fw_str_copy(unknown, sizeof(unknown), what);
	fw_error("trial: %s: unknown", unknown);
	return EINVAL;
}

void fw_sandbox_test(void)
{
	const char *list = getenv("FEEDWHEEL_TEST_SANDBOX");
	struct fw_str rest = fw_str(list ? list : "");

	while (rest.p && rest.len) {
		struct fw_str value, what = fw_str_split(fw_str_split(rest, ' ', &rest), '=', &value);
		char text[300];
		int e;

		(void)fw_str_copy(text, sizeof(text), value);
		e = try_one(what, text);
		fw_info("trial: %.*s: %s", FW_STR_ARG(what), e ? strerror(e) : "done");
	}
}
