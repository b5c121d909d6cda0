/* SPDX-License-Identifier: ISC */
/*
 * Test builds only. A process that has just entered the sandbox tries the actions that
 * FEEDWHEEL_TEST_SANDBOX lists, and logs each result.
 *
 *	read=PATH write=PATH chmod=PATH connect=PORT bind=PORT signal= ptrace= fork= keys= ring=
 *	code= socket= exec= command=PATH append=PATH owner= listen= raw= scheduler= capabilities=
 *	mode=PATH environ= scribble=BYTE
 *
 * An attempt with several ways is done if any way works.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "engine/orders/runner.h"
#include "engine/run/child.h"
#include "engine/sandbox/sandbox.h"

#define PAGE ((size_t)4096)

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

/* The result of another way: e of the ways before it is 0 if one works. */
static int way(int e, long rc)
{
	return e && rc < 0 ? errno : 0;
}

/* Memory that is writable and executable, and a file that is mapped both ways. */
static int try_code(void)
{
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = memfd_create("code", MFD_CLOEXEC), e = way(EPERM, p == MAP_FAILED ? -1 : 0);

	if (p != MAP_FAILED)
		munmap(p, PAGE);
	p = ftruncate(fd, PAGE) ? MAP_FAILED : mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	e = way(e, p == MAP_FAILED ? -1 : 0);
	if (p != MAP_FAILED)
		munmap(p, PAGE);
	close(fd);
	return e;
}

/* The kernel sends the signal that F_SETSIG names to the owner. */
static int try_owner(void)
{
	struct f_owner_ex owner = {.type = F_OWNER_PID, .pid = getppid()};
	int pair[2], pid = getppid(), e = EPERM;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return EIO;
	e = way(e, fcntl(pair[0], F_SETOWN, pid));
	e = way(e, syscall(SYS_fcntl, pair[0], F_SETOWN | INT64_C(1) << 32, pid)); /* the kernel reads 32 bits */
	e = way(e, fcntl(pair[0], F_SETOWN_EX, &owner));
	e = way(e, fcntl(pair[0], F_SETSIG, SIGCONT));
	e = way(e, ioctl(pair[0], FIOSETOWN, &pid));
	e = way(e, ioctl(pair[0], SIOCSPGRP, &pid));
	close(pair[0]);
	close(pair[1]);
	return e;
}

/* Without bind() the kernel chooses the port. */
static int try_listen(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), e;

	if (fd < 0)
		return errno;
	e = way(EPERM, listen(fd, 1));
	close(fd);
	return e;
}

static int try_raw(void)
{
	const int kinds[][3] = {{AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW}, {AF_INET6, SOCK_RAW, IPPROTO_ICMPV6},
		{AF_INET, SOCK_PACKET, 0}, {AF_PACKET, SOCK_RAW, 0}};
	int e = ESOCKTNOSUPPORT;

	for (size_t i = 0; i < FW_N(kinds); i++) {
		int fd = socket(kinds[i][0], kinds[i][1], kinds[i][2]);

		e = fd < 0 && e ? ESOCKTNOSUPPORT : 0; /* the families have errors of their own */
		if (fd >= 0)
			close(fd);
	}
	return e;
}

/* Priority and processors of the master. */
static int try_scheduler(void)
{
	struct sched_param param = {0};
	pid_t pid = getppid();
	cpu_set_t set;
	int e = EPERM;

	e = way(e, sched_getaffinity(0, sizeof(set), &set) ? -1 : sched_setaffinity(pid, sizeof(set), &set));
	e = way(e, setpriority(PRIO_PROCESS, (id_t)pid, 0));
	e = way(e, setpriority(PRIO_USER, 0, 0));
	e = way(e, sched_setscheduler(pid, SCHED_OTHER, &param));
	e = way(e, sched_setparam(pid, &param));
	return way(e, syscall(SYS_ioprio_set, 1, pid, 2 << 13 | 4));
}

/* 0: this process has a capability, in whatever set. */
static int try_capabilities(void)
{
	static const char *const SETS[] = {"CapInh:", "CapPrm:", "CapEff:", "CapAmb:"};
	FILE *f = fopen("/proc/self/status", "re");
	char line[200];
	bool any = false;

	while (f && fgets(line, sizeof(line), f)) {
		for (size_t i = 0; i < FW_N(SETS); i++)
			any |= fw_str_starts(fw_str(line), fw_str(SETS[i])) && strpbrk(line + 7, "123456789abcdef");
	}
	if (f)
		fclose(f);
	return f && any ? 0 : EPERM;
}

/* A set-user-ID bit, by a descriptor. */
static int try_mode(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), e = way(EPERM, fd < 0 ? -1 : fchmod(fd, 04711));

	if (fd >= 0)
		close(fd);
	return e;
}

/* What /proc shows of the master, even to root. */
static int try_environ(void)
{
	static const char *const NAME[] = {"environ", "maps", "cmdline"};
	int e = EACCES;

	for (size_t i = 0; i < FW_N(NAME); i++) {
		char path[60];

		(void)fw_snprintf(path, sizeof(path), "/proc/%d/%s", (int)getppid(), NAME[i]);
		e = e ? try_open(path, O_RDONLY) : 0;
	}
	return e;
}

/* Fill the memory that is shared with the master and others with a byte. */
static int try_scribble(const char *byte)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[400];
	int e = ENOENT;

	while (f && fgets(line, sizeof(line), f)) {
		unsigned long from, to;
		char rights[5];

		if (!strstr(line, "memfd:feedwheel") || sscanf(line, "%lx-%lx %4s", &from, &to, rights) != 3)
			continue;
		e = rights[1] == 'w' ? 0 : e;
		if (rights[1] == 'w')
			memset((void *)from, (int)strtol(byte, NULL, 16),
				to - from); /* NOLINT: the address is /proc's */
	}
	if (f)
		fclose(f);
	return e;
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
	if (fw_str_eq(what, FW_STR("owner")))
		return try_owner();
	if (fw_str_eq(what, FW_STR("listen")))
		return try_listen();
	if (fw_str_eq(what, FW_STR("raw")))
		return try_raw();
	if (fw_str_eq(what, FW_STR("scheduler")))
		return try_scheduler();
	if (fw_str_eq(what, FW_STR("capabilities")))
		return try_capabilities();
	if (fw_str_eq(what, FW_STR("mode")))
		return try_mode(value);
	if (fw_str_eq(what, FW_STR("environ")))
		return try_environ();
	if (fw_str_eq(what, FW_STR("scribble")))
		return try_scribble(value);
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
