/* SPDX-License-Identifier: ISC */
/*
 * Concurrent processes: a store belongs to one thread of one process, and the benchmark measures
 * many. They share a page of counters. The parent starts all of them when all are ready, and
 * watches.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

struct crew {
	_Atomic int ready_n, go;
	_Atomic int64_t done;
	_Atomic int64_t end_us; /* monotonic; when the last of them ended */
	_Atomic int64_t slowest_us;
	int64_t begin_us, until_us;
};

void crew_begin(struct crew *c)
{
	atomic_fetch_add(&c->ready_n, 1);
	while (!atomic_load(&c->go))
		usleep(200);
}

bool crew_on(const struct crew *c)
{
	return fw_mono_us() < c->until_us;
}

void crew_done(struct crew *c, int64_t n)
{
	atomic_fetch_add(&c->done, n);
}

static void raise_to(_Atomic int64_t *at, int64_t v)
{
	int64_t old = atomic_load(at);

	while (old < v && !atomic_compare_exchange_weak(at, &old, v))
		;
}

void crew_slowest(struct crew *c, int64_t us)
{
	raise_to(&c->slowest_us, us);
}

int64_t crew_total(const struct crew *c)
{
	return atomic_load(&c->done);
}

static double crews_cpu_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
		(double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

double thread_cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct fw_str read_proc(int64_t pid, const char *what, char *text, size_t cap)
{
	char path[80];
	size_t n = 0;
	FILE *f;

	if (fw_snprintf(path, sizeof(path), "/proc/%lld/%s", (long long)pid, what) && (f = fopen(path, "r"))) {
		n = fread(text, 1, cap - 1, f);
		fclose(f);
	}
	text[n] = '\0';
	return (struct fw_str){text, n};
}

static int64_t ticks_below(int64_t pid);

/* CPU ticks of a process, of the children it has waited for, and of all its descendants. */
static int64_t ticks_of(int64_t pid)
{
	char text[1000];
	struct fw_str rest = read_proc(pid, "stat", text, sizeof(text));
	int64_t sum = 0, v;

	if (!rest.len || !strrchr(text, ')')) /* it has just ended */
		return 0;
	rest = fw_str(strrchr(text, ')'));
	for (int i = 0; i <= 15 && rest.p; i++) {
		struct fw_str word = fw_str_split(rest, ' ', &rest);

		if (i >= 12 && fw_str_int(word, &v)) /* utime, stime, cutime, cstime */
			sum += v;
	}
	return sum + ticks_below(pid);
}

static int64_t ticks_below(int64_t pid)
{
	char what[60], text[4000];
	struct fw_str rest;
	int64_t sum = 0, child;

	if (!fw_snprintf(what, sizeof(what), "task/%lld/children", (long long)pid))
		die("the process id is too large");
	rest = read_proc(pid, what, text, sizeof(text));
	while (rest.p && rest.len) {
		if (fw_str_int(fw_str_split(rest, ' ', &rest), &child))
			sum += ticks_of(child);
	}
	return sum;
}

double servers_cpu_s(void)
{
	return (double)ticks_below(getpid()) / (double)sysconf(_SC_CLK_TCK);
}

static pid_t start(struct crew *c, int worker, crew_fn *fn, const void *ctx)
{
	pid_t pid = fork();

	if (pid < 0)
		die("worker %d cannot be started", worker);
	if (pid)
		return pid;
	fn(c, worker, ctx);
	raise_to(&c->end_us, fw_mono_us());
	_exit(0);
}

/* Reads the counter at the end of each of equal parts. */
static void watch(struct crew *c, int parts, struct work *w)
{
	int64_t whole = c->until_us - c->begin_us, before = 0;
	double last = (double)c->begin_us;

	for (int i = 1; i <= parts; i++) {
		int64_t at = c->begin_us + whole * i / parts, left;
		double rate, now;

		while ((left = at - fw_mono_us()) > 0)
			usleep((useconds_t)FW_MIN(left, 500000));
		now = (double)fw_mono_us();
		rate = (double)(crew_total(c) - before) / (now - last) * 1e6;
		before = crew_total(c);
		last = now;
		if (i == 1)
			w->first = rate;
		w->last = rate;
	}
}

struct work crew_run(int n, double seconds, int parts, crew_fn *fn, const void *ctx)
{
	struct crew *c = mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double server = servers_cpu_s(), own = crews_cpu_s();
	struct work w = {0};
	pid_t pid[WORKERS_MAX];
	int status;

	if (c == MAP_FAILED || n > WORKERS_MAX)
		die("too many workers: %d", n);
	fflush(stdout);
	for (int i = 0; i < n; i++)
		pid[i] = start(c, i, fn, ctx);
	while (atomic_load(&c->ready_n) < n) {
		for (int i = 0; i < n; i++) { /* not any child: servers are children too */
			if (waitpid(pid[i], &status, WNOHANG) > 0)
				die("a worker ended before its start");
		}
		usleep(1000);
	}
	c->begin_us = fw_mono_us();
	c->until_us = c->begin_us + (int64_t)(seconds * 1e6);
	atomic_store(&c->go, 1);
	watch(c, parts, &w);
	for (int i = 0; i < n; i++) {
		if (waitpid(pid[i], &status, 0) != pid[i] || !WIFEXITED(status) || WEXITSTATUS(status))
			die("a worker failed");
	}
	w.done = crew_total(c);
	w.seconds = (double)(c->end_us - c->begin_us) / 1e6;
	w.rate = (double)w.done / w.seconds;
	w.slowest = (double)c->slowest_us / 1e6;
	w.cpu = crews_cpu_s() - own;
	w.server_cpu = servers_cpu_s() - server;
	munmap(c, sizeof(*c));
	return w;
}
