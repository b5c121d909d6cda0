/* SPDX-License-Identifier: ISC */
/*
 * Names of workers, and how to recognise a dead one.
 *
 *	host/pid/index/started_ms/space-birth
 *
 * A pid is meaningful only among processes of one boot and one pid namespace. `space` is a hash of
 * these (and of the time namespace, whose clock gives the births), so containers with the same host
 * name and store do not misjudge each other. `birth` is the kernel's start time of the process: it
 * reveals a pid that was reused. Without a /proc of our own pid namespace there is no `space`, and
 * no worker counts as dead. Its lease then expires, as after a reboot or when another machine takes
 * over. A sandboxed process sees no births of others: to it a reused pid is alive, and that lease
 * expires too.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"
#include "feedwheel/deliver.h"

/* from /proc/PID/stat */
struct process_stat {
	char state;
	int64_t start_ticks; /* start time in ticks since boot */
};

/* Reads a small file or link in /proc; absent if there is none. */
static struct fw_str proc_read(const char *path, bool is_link, char *out, size_t size)
{
	ssize_t n = -1;
	int fd = -1;

	if (is_link)
		n = readlink(path, out, size);
	else
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, out, size);
		close(fd);
	}
	return n > 0 ? fw_str_trim((struct fw_str){out, (size_t)n}) : FW_STR_NONE;
}

/* The hash `space`; 0: unknown. */
static uint64_t pid_space(void)
{
	static const struct {
		const char *path;
		bool is_link, needed;
	} PART[] = {
		{"/proc/sys/kernel/random/boot_id", false, true},
		{"/proc/self/ns/pid", true, true},
		{"/proc/self/ns/time", true, false},
	};
	char text[100];
	uint64_t space = 0;
	int64_t self;

	/* a /proc of another namespace has other pids */
	if (!fw_str_int(proc_read("/proc/self", true, text, sizeof(text)), &self) || self != getpid())
		return 0;
	for (size_t i = 0; i < FW_N(PART); i++) {
		struct fw_str part = proc_read(PART[i].path, PART[i].is_link, text, sizeof(text));

		if (PART[i].needed && !part.len)
			return 0;
		if (part.len)
			space = fw_hash64_seed(part.p, part.len, space);
	}
	return space;
}

/*
 * Format: "pid (name) state ppid ...". The name may contain any byte, so parsing starts after the
 * last ')'. The start time is the 20th word from there.
 */
static bool process_stat_read(int64_t pid, struct process_stat *out)
{
	char path[40], text[1000];
	struct fw_str rest;

	(void)fw_snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
	rest = proc_read(path, false, text, sizeof(text));
	for (size_t i = rest.len; i > 0; i--) {
		if (rest.p[i - 1] != ')')
			continue;
		rest = fw_str_trim(fw_str_sub(rest, i, rest.len));
		out->state = rest.len ? rest.p[0] : 0;
		for (int word = 0; word < 19 && rest.p; word++)
			(void)fw_str_split(rest, ' ', &rest);
		return fw_str_int(fw_str_split(rest, ' ', &rest), &out->start_ticks);
	}
	return false;
}

void fw_worker_name(char *out, size_t size, int index)
{
	char host[64] = "localhost", tag[50] = "-";
	uint64_t space = pid_space();
	struct process_stat stat;
	/* wall clock: it tells lives of one pid apart where /proc does not */
	int64_t now_ms = fw_now_ms();

	(void)gethostname(host, sizeof(host) - 1);
	if (space && process_stat_read(getpid(), &stat))
		(void)fw_snprintf(
			tag, sizeof(tag), "%016llx-%lld", (unsigned long long)space, (long long)stat.start_ticks);
	(void)fw_snprintf(out, size, "%s/%lld/%d/%lld/%s", host, (long long)getpid(), index, (long long)now_ms, tag);
}

/* Has it exited, though its parent has not waited for it? Also in a sandbox. */
static bool process_has_exited(int64_t pid)
{
	struct pollfd p = {.fd = -1, .events = POLLIN};
	bool has;

#ifdef SYS_pidfd_open
	p.fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0u);
#endif
	has = p.fd >= 0 && poll(&p, 1, 0) > 0;
	if (p.fd >= 0)
		close(p.fd);
	return has;
}

bool fw_worker_is_dead(const char *name)
{
	struct fw_str word, rest = fw_str(name);
	uint64_t space = pid_space();
	char here[20];
	struct process_stat stat;
	int64_t pid = 0, start_ticks;

	for (int i = 0; i < 4; i++) {
		word = fw_str_split(rest, '/', &rest);
		if (i == 1 && (!fw_str_int(word, &pid) || pid <= 0 || pid > INT32_MAX))
			return false;
	}
	word = fw_str_split(rest, '-', &rest);
	(void)fw_snprintf(here, sizeof(here), "%016llx", (unsigned long long)space);
	if (!space || !fw_str_eq(word, fw_str(here)) || !fw_str_int(rest, &start_ticks))
		return false;
	if ((kill((pid_t)pid, 0) && errno == ESRCH) || process_has_exited(pid))
		return true;
	return process_stat_read(pid, &stat) &&
		(stat.start_ticks != start_ticks || stat.state == 'Z' || stat.state == 'X');
}
