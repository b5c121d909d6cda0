/* SPDX-License-Identifier: ISC */
/*
 * A private redis-server, on a socket in its folder, durable as a store needs it. valkey-server is
 * used if there is no redis-server or FW_REDIS=valkey. Each store of the tests is a key prefix.
 *
 * The server's process id is in a file: the process that restarts it need not be the one that
 * killed it. A process of its own, the watch, also knows it, and kills the server when all
 * processes of the test are gone, however they ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "server_redis.h"

static char folder[200], socket_path[240], pid_path[240];
static int watch = -1; /* the pipe to the watch: a server's process id, 0 after it has ended */

static void give_up(const char *what)
{
	fprintf(stderr, "redis-server: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static bool installed_as(const char *name)
{
	static const char *const folder_of[] = {"/usr/bin", "/usr/local/bin"};
	char path[100];

	for (size_t i = 0; i < FW_N(folder_of); i++) {
		if (fw_snprintf(path, sizeof(path), "%s/%s-server", folder_of[i], name) && access(path, X_OK) == 0)
			return true;
	}
	return false;
}

static const char *brand(void)
{
	const char *wanted = getenv("FW_REDIS");

	return wanted && *wanted ? wanted : installed_as("redis") ? "redis" : "valkey";
}

static bool installed(void)
{
	return installed_as(brand());
}

bool redis_answers(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	char answer[8] = "";
	bool well = false;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && fw_str_copy(sa.sun_path, sizeof(sa.sun_path), fw_str(path)) &&
		connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 && write(fd, "PING\r\n", 6) == 6)
		well = read(fd, answer, sizeof(answer)) >= 5 &&
			(memcmp(answer, "+PONG", 5) == 0 || memcmp(answer, "-NOAUTH", 5) == 0);
	if (fd >= 0)
		close(fd);
	return well;
}

static pid_t pid_get(void)
{
	char text[24] = "";
	int64_t pid = 0;
	FILE *f = fopen(pid_path, "r");

	if (!f)
		return 0;
	if (fgets(text, sizeof(text), f) && !fw_str_int(fw_str(text), &pid))
		pid = 0;
	fclose(f);
	return (pid_t)pid;
}

static void pid_put(pid_t pid)
{
	FILE *f = fopen(pid_path, "w");

	if (!f || fprintf(f, "%d\n", (int)pid) < 0 || fclose(f))
		give_up(pid_path);
}

static void watch_tell(pid_t pid)
{
	if (send(watch, &pid, sizeof(pid), MSG_NOSIGNAL) != sizeof(pid))
		give_up("the watch does not listen");
}

static void watch_begin(void)
{
	pid_t pid = -1, latest = 0;
	int end[2];

	if (watch >= 0)
		return;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, end) || (pid = fork()) < 0)
		give_up("no watch");
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		setsid();
		for (int fd = 0; fd <= 2; fd++) /* a reader of the test's output must not wait for this process */
			dup2(null, fd);
		close(end[1]);
		while (recv(end[0], &pid, sizeof(pid), 0) == sizeof(pid))
			latest = pid;
		if (latest > 0)
			kill(latest, SIGKILL);
		_exit(0);
	}
	close(end[0]);
	watch = end[1];
}

/*
 * A cut-off write to the append-only file can leave a transaction without its end. The server would
 * cut off only the last command, and read the rest as the start of the next transaction. This
 * function cuts off the whole transaction.
 */
static void append_only_mend(const char *dir)
{
	char manifest[300], program[40];
	int status, in[2];
	pid_t pid = -1;

	if (!fw_snprintf(manifest, sizeof(manifest), "%s/appendonlydir/appendonly.aof.manifest", dir))
		give_up(dir);
	if (access(manifest, R_OK))
		return;
	if (pipe2(in, O_CLOEXEC) || write(in[1], "y\n", 2) != 2 || (pid = fork()) < 0)
		give_up("redis-check-aof");
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		dup2(in[0], 0);
		dup2(null, 1);
		dup2(null, 2);
		if (fw_snprintf(program, sizeof(program), "%s-check-aof", brand()))
			execlp(program, program, "--fix", manifest, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(in[1]);
	if (waitpid(pid, &status, 0) != pid || status)
		give_up("redis-check-aof --fix");
}

pid_t redis_run(const char *dir, bool tied, const char *const *more)
{
	char program[40];
	const char *argv[64] = {program, "--dir", dir, "--logfile", "log", "--save", "", "--appendonly", "yes",
		"--daemonize", "no", "--maxmemory-policy", "noeviction", "--appendfsync", "everysec",
		"--aof-load-truncated", "no"};
	size_t n = 17;
	pid_t pid;

	if (!fw_snprintf(program, sizeof(program), "%s-server", brand()))
		give_up(brand());
	append_only_mend(dir);
	while (*more && n < FW_N(argv) - 1)
		argv[n++] = *more++;
	pid = fork();
	if (pid < 0)
		give_up("fork");
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		for (int fd = 0; fd <= 2; fd++) /* its output goes to its log */
			dup2(null, fd);
		if (tied)
			prctl(PR_SET_PDEATHSIG, SIGKILL);
		setsid(); /* a Ctrl-C at the tests does not reach it */
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	return pid;
}

static void run(void)
{
	/*
	 * Accepted writes survive a kill. (With everysec a write is delayed for up to 2 s while a
	 * sync blocks the disk.)
	 */
	const char *const more[] = {
		"--port", "0", "--unixsocket", socket_path, "--appendfsync", server_durable ? "everysec" : "no", NULL};
	pid_t pid = redis_run(folder, false, more);

	watch_tell(pid);
	pid_put(pid);
	for (int64_t start = fw_mono_ms(); !redis_answers(socket_path); usleep(10000)) {
		if (fw_mono_ms() - start > 30000)
			give_up("does not answer; its log is beside its data");
	}
}

static void start(const char *in)
{
	if (!fw_snprintf(folder, sizeof(folder), "%s/redis", in) ||
		!fw_snprintf(socket_path, sizeof(socket_path), "%s/s", folder) ||
		!fw_snprintf(pid_path, sizeof(pid_path), "%s/pid", folder) || mkdir(folder, 0700))
		give_up(folder);
	watch_begin();
	run();
}

/* The process that ends it is not always its parent. */
static bool is_gone(pid_t pid)
{
	char path[40], text[64] = "";
	FILE *f;

	if (waitpid(pid, NULL, WNOHANG) == pid || kill(pid, 0))
		return true;
	if (!fw_snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid) || !(f = fopen(path, "r")))
		return true;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	return strstr(text, ") Z") != NULL;
}

void redis_end(pid_t pid, int sig)
{
	if (pid <= 0 || kill(pid, sig))
		return;
	for (int64_t begin = fw_mono_ms(); !is_gone(pid); usleep(2000)) {
		if (fw_mono_ms() - begin > 10000)
			kill(pid, SIGKILL);
	}
}

static void end(int sig)
{
	pid_t pid = folder[0] ? pid_get() : 0;

	if (pid <= 0)
		return;
	redis_end(pid, sig);
	watch_tell(0);
	unlink(socket_path);
	unlink(pid_path);
}

static void kill9(void)
{
	end(SIGKILL);
}

static void stop(void)
{
	end(SIGTERM);
}

static void url(char *out, size_t cap, const char *name)
{
	const char *at = getenv("FW_REDIS_AT"); /* host:port of a running server instead, for example a cluster */

	if (!(at && *at ? fw_snprintf(out, cap, "redis://%s?prefix=%s", at, name) :
			  fw_snprintf(out, cap, "redis+unix://%s?prefix=%s", socket_path, name)))
		give_up("the name is too long");
}

const struct server server_redis = {
	.engine = "redis",
	.package = "redis-server",
	.installed = installed,
	.start = start,
	.url = url,
	.kill9 = kill9,
	.again = run,
	.stop = stop,
};
