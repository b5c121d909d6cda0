/* SPDX-License-Identifier: ISC */
/*
 * The master on a simulated clock, with simulated children: hours pass in milliseconds.
 *
 * The linker replaces (--wrap) the clocks, fork, waitpid and kill, the datagrams to the service
 * manager, the check of files that a child may read, and the opening of the store. Shared memory,
 * meter and pipe are the real ones. A child has habits: when it is up, when and how it dies, how
 * long it drains. It sends heartbeats unless it hangs. Where a case needs a store, a child opens it
 * as a worker does (store_thread_open() on a real SQLite file) and claims a lease, so that the
 * store shows what becomes of the lease and the feed of a dead worker.
 *
 * Three invariants are checked throughout: no signal goes to a process that is not our child, no
 * child is started once all are to stop, no place has two children.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/run/master.h"
#include "engine/run/store_thread.h"
#include "engine/run/worker_parts.h"
#include "store/driver.h"
#include "../../suite.h"

#define WALL_MS INT64_C(1795000000000) /* Unix time when the monotonic clock showed 0 */
#define START_MS INT64_C(1000000)
#define WORKERS 3
#define SERVER WORKERS
#define PLACES (WORKERS + 1)
#define FORKS 4096
#define TICK_MS 200
#define NEVER INT64_MAX
#define EXITED(code) ((code) << 8) /* as waitpid reports it */
#define KILLED(number) (number)
#define STOPPED(number) ((number) << 8 | 0x7f)
#define CONTINUED 0xffff
#define OK(call) ck_assert_msg((call) == 0, "%s: %s", #call, err.text)

/* of the children of a place, from the next one on */
struct habits {
	int64_t up_ms;    /* from its birth to its first heartbeat */
	int64_t dies_ms;  /* from its birth; NEVER */
	int status;       /* then */
	int64_t drain_ms; /* from the request to leave; NEVER */
	int64_t dying_ms; /* from SIGKILL to its end: it waits for a disk, for example */
};

/* a child */
struct sim {
	pid_t pid; /* 0: none */
	int place; /* -1: the master has not assigned one yet */
	int64_t up_at_ms, dies_at_ms;
	int status, news; /* its exit status; what waitpid has to report meanwhile, 0: nothing */
	bool is_up, hangs, gone;
	bool stopped; /* by SIGSTOP */
	int pending;  /* a signal that it has not handled yet */
	unsigned term_n, hurry_n, kill_n;
	bool with_store; /* from here on: */
	struct worker w;
	struct worker_options o;
	struct store_thread s;
};

static int64_t now_ms, step_ms;
static struct master m;
static struct fw_config *config;
static struct fw_run_options options;
static struct habits habits[PLACES];
static struct sim sims[PLACES];
static bool playing, forks_fail, with_store;
static bool sigchld; /* it is pending: once, however many have ended */
static int64_t forked_ms[FORKS];
static unsigned fork_n, fork_try_n, kill_n;
static pid_t last_pid;
static uint64_t file_seen; /* the file that is now at the path that children may read */
static struct fw_err err;

/* what the service manager was told */
static struct {
	unsigned ready, ping, stopping, reloading, status;
	int64_t ping_ms, longest_ms; /* between two pings */
	char text[1000];             /* the last status */
	bool full;                   /* its queue is full */
} manager;

/* ---- what the linker replaces ---------------------------------------------------------------- */

int64_t __wrap_fw_mono_us(void);
int64_t __wrap_fw_mono_ms(void);
int64_t __wrap_fw_now_ms(void);
pid_t __wrap_fork(void);
pid_t __real_fork(void);
pid_t __wrap_waitpid(pid_t pid, int *status, int flags);
pid_t __real_waitpid(pid_t pid, int *status, int flags);
int __wrap_kill(pid_t pid, int number);
int __real_kill(pid_t pid, int number);
ssize_t __wrap_sendto(int fd, const void *p, size_t n, int flags, const struct sockaddr *to, socklen_t to_len);
void __wrap_fw_sandbox_mark(const struct fw_config *c, enum fw_sandbox_role who, struct fw_sandbox_mark *out);
int __wrap_fw_config_store(const struct fw_config *c, unsigned flags, struct fw_store **out, struct fw_err *e);
int __real_fw_config_store(const struct fw_config *c, unsigned flags, struct fw_store **out, struct fw_err *e);

int64_t __wrap_fw_mono_us(void)
{
	return now_ms * 1000;
}

int64_t __wrap_fw_mono_ms(void)
{
	return now_ms;
}

int64_t __wrap_fw_now_ms(void)
{
	return WALL_MS + now_ms;
}

static struct sim *sim_of(pid_t pid)
{
	for (int i = 0; i < PLACES; i++) {
		if (pid > 0 && sims[i].pid == pid)
			return &sims[i];
	}
	ck_abort_msg("%d is none of the master's children", (int)pid);
	return NULL;
}

/* The test program uses these three too, to run each case in a process of its own. */
pid_t __wrap_fork(void)
{
	int i = 0;

	if (!playing)
		return __real_fork();
	fork_try_n++;
	ck_assert_msg(!m.stopping, "a child is started though all are to stop");
	if (forks_fail) {
		errno = EAGAIN;
		return -1;
	}
	while (i < PLACES && sims[i].pid)
		i++;
	ck_assert_msg(i < PLACES, "more children than places");
	ck_assert_uint_lt(fork_n, FORKS);
	forked_ms[fork_n++] = now_ms;
	sims[i] = (struct sim){.pid = ++last_pid, .place = -1, .up_at_ms = NEVER, .dies_at_ms = NEVER};
	return sims[i].pid;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int flags)
{
	if (!playing)
		return __real_waitpid(pid, status, flags);
	ck_assert(flags & WNOHANG);
	if (pid != -1) { /* the runner ends when its socket is closed */
		ck_assert_int_eq(pid, m.runner.pid);
		ck_assert_int_lt(m.runner_fd[0], 0);
		sim_of(pid)->pid = 0;
		return pid;
	}
	for (int i = 0; i < PLACES; i++) {
		struct sim *c = &sims[i];

		if (!c->pid || (!c->gone && !c->news))
			continue;
		pid = c->pid;
		*status = c->news ? c->news : c->status;
		if (c->news)
			c->news = 0;
		else
			c->pid = 0;
		return pid;
	}
	return 0;
}

static void ends(struct sim *c, int status)
{
	if (c->gone)
		return;
	if (c->with_store) {
		store_thread_finish(&c->s);
		worker_finish(&c->w);
		c->with_store = false;
	}
	c->gone = sigchld = true;
	c->status = status;
}

static void hears(struct sim *c, int number)
{
	int64_t drain_ms = habits[c->place].drain_ms;

	if (c->hangs || c->gone || drain_ms == NEVER)
		return;
	if (number == WORKER_EXIT_NOW)
		drain_ms = 1;
	if (now_ms + drain_ms < c->dies_at_ms) {
		c->dies_at_ms = now_ms + drain_ms;
		c->status = EXITED(WORKER_LEFT);
	}
}

int __wrap_kill(pid_t pid, int number)
{
	struct sim *c;

	if (!playing)
		return __real_kill(pid, number);
	c = sim_of(pid);
	c->term_n += number == SIGTERM;
	c->hurry_n += number == WORKER_EXIT_NOW;
	c->kill_n += number == SIGKILL;
	kill_n += number == SIGKILL;
	if (number == SIGKILL) {
		c->hangs = true;
		c->stopped = false;
		c->dies_at_ms = now_ms + habits[c->place].dying_ms;
		c->status = KILLED(SIGKILL);
	} else if (c->stopped)
		c->pending = number;
	else
		hears(c, number);
	return 0;
}

ssize_t __wrap_sendto(int fd, const void *p, size_t n, int flags, const struct sockaddr *to, socklen_t to_len)
{
	char text[sizeof(manager.text)];

	ck_assert(fd == m.notify.fd && to && to_len && flags & MSG_NOSIGNAL && n < sizeof(text));
	if (manager.full) {
		errno = EAGAIN;
		return -1;
	}
	memcpy(text, p, n);
	text[n] = 0;
	if (strcmp(text, "WATCHDOG=1") == 0) {
		manager.longest_ms = manager.ping++ ? FW_MAX(manager.longest_ms, now_ms - manager.ping_ms) : 0;
		manager.ping_ms = now_ms;
	} else if (strncmp(text, "STATUS=", 7) == 0) {
		manager.status++;
		memcpy(manager.text, text, n + 1);
	} else {
		manager.ready += strcmp(text, "READY=1") == 0;
		manager.stopping += strncmp(text, "STOPPING=1\n", 11) == 0;
		manager.reloading += strncmp(text, "RELOADING=1\nMONOTONIC_USEC=", 27) == 0;
	}
	return (ssize_t)n;
}

void __wrap_fw_sandbox_mark(const struct fw_config *c, enum fw_sandbox_role who, struct fw_sandbox_mark *out)
{
	(void)c;
	(void)who;
	*out = (struct fw_sandbox_mark){.n = 1, .file = {file_seen}};
}

/* ---- a store that can be cut off ------------------------------------------------------------- */

static bool cut_open, cut_give;

static int give(struct store *st, const struct store_release *g, struct fw_err *e)
{
	return cut_give ? fw_err_set(e, FW_EIO, "cut off") : store_sqlite.release(st, g, e);
}

int __wrap_fw_config_store(const struct fw_config *c, unsigned flags, struct fw_store **out, struct fw_err *e)
{
	static struct store_driver driver;
	int rc = cut_open ? fw_err_set(e, FW_EIO, "cut off") : __real_fw_config_store(c, flags, out, e);

	if (rc)
		return rc;
	driver = store_sqlite;
	driver.release = give;
	store_of(*out)->driver = &driver;
	return 0;
}

/* ---- children -------------------------------------------------------------------------------- */

/* Opening the store releases what the predecessor held, as in a worker. */
static void works(struct sim *c)
{
	struct worker_shared *sh = child_shared(&m, c->place);
	struct store_lease lease = {.lease_ms = 15 * FW_SECOND_MS};
	struct store *st;
	int code;

	c->o = (struct worker_options){.config = m.config,
		.shared = sh,
		.meter = fw_meter_slot(m.meter, (size_t)c->place),
		.index = c->place,
		.workers = m.n,
		.run_id = m.started_ms,
		.master_fd = -1};
	ck_assert_msg(worker_init(&c->w, &c->o) == 0, "%s", sh->err.text);
	ck_assert_int_eq(store_thread_init(&c->s, &c->w.ch), 0);
	c->with_store = true;
	(void)fw_snprintf(sh->name, sizeof(sh->name), "sim/%d", (int)c->pid);
	code = store_thread_open(&c->s);
	if (code != WORKER_DONE) {
		ends(c, EXITED(code));
		return;
	}
	st = store_of(c->s.st);
	OK(st->driver->heartbeat(st, sh->name, &lease, &err));
	c->is_up = true;
}

static void plays(struct sim *c)
{
	for (int i = 0; i < m.slot_n && c->place < 0; i++) {
		if (m.slot[i].pid != c->pid)
			continue;
		c->place = i;
		c->up_at_ms = now_ms + habits[i].up_ms;
		c->dies_at_ms = habits[i].dies_ms == NEVER ? NEVER : now_ms + habits[i].dies_ms;
		c->status = habits[i].status;
	}
	if (c->gone || c->stopped)
		return;
	if (!c->is_up && now_ms >= c->up_at_ms) {
		if (with_store && c->place < m.n)
			works(c);
		else
			c->is_up = true;
	}
	if (now_ms >= c->dies_at_ms)
		ends(c, c->status);
	else if (c->is_up && !c->hangs)
		atomic_store(&fw_meter_slot(m.meter, (size_t)c->place)->heartbeat_mono_ms, now_ms);
}

/* ---- time ------------------------------------------------------------------------------------ */

static void step(int number)
{
	step_ms = now_ms;
	sigchld &= number != SIGCHLD;
	master_step(&m, number);
	for (int i = 0; i < PLACES; i++) {
		if (sims[i].pid)
			plays(&sims[i]);
	}
}

static int64_t next_event_ms(void)
{
	int64_t next_ms = step_ms + TICK_MS;

	for (int i = 0; i < PLACES; i++) {
		const struct sim *c = &sims[i];

		if (c->pid && !c->gone && !c->stopped)
			next_ms = FW_MIN(next_ms, FW_MIN(c->dies_at_ms, c->is_up ? NEVER : c->up_at_ms));
	}
	return sigchld ? now_ms : next_ms;
}

static void pass(int64_t ms)
{
	int64_t until_ms = now_ms + ms;

	while (!master_is_over(&m)) {
		int64_t next_ms = next_event_ms();

		if (next_ms > until_ms)
			break;
		now_ms = FW_MAX(now_ms, next_ms);
		for (int i = 0; i < PLACES; i++) {
			if (sims[i].pid)
				plays(&sims[i]);
		}
		if (sigchld)
			step(SIGCHLD);
		else if (now_ms >= step_ms + TICK_MS)
			step(-1);
	}
	now_ms = until_ms;
}

/* ---- the world ------------------------------------------------------------------------------- */

static int serves(void *ctx, const struct fw_config *c, struct fw_meter *meter, int master_fd, struct fw_err *e)
{
	(void)ctx;
	(void)c;
	(void)meter;
	(void)master_fd;
	(void)e;
	ck_abort_msg("nobody is forked");
	return 0;
}

static bool fresh_is_wrong;

static int read_again(void *ctx, struct fw_config **out, struct fw_err *e)
{
	(void)ctx;
	if (fresh_is_wrong)
		return fw_err_set(e, FW_EINVAL, "feedwheel.conf:3: colour\nis no setting");
	OK(fw_config_create(out, e));
	return fw_config_set(*out, "drain_timeout_ms", "20s", "test", e);
}

static void set(const char *name, const char *value)
{
	OK(fw_config_set(config, name, value, "test", &err));
}

static void world_make(void)
{
	memset(sims, 0, sizeof(sims));
	for (int i = 0; i < PLACES; i++)
		habits[i] = (struct habits){.up_ms = 50, .dies_ms = NEVER, .drain_ms = 1000};
	memset(&manager, 0, sizeof(manager));
	playing = true;
	forks_fail = sigchld = fresh_is_wrong = cut_open = cut_give = with_store = false;
	fork_n = fork_try_n = kill_n = 0;
	last_pid = 70000;
	file_seen = 1;
	now_ms = START_MS;
	step_ms = now_ms;
	fw_log_level_set(FW_LOG_ERROR);
	OK(fw_config_create(&config, &err));
	set("workers", "3");
	set("sandbox", "off");
	set("drain_timeout_ms", "10s");
	set("order_programs", "/bin/true");
	options = (struct fw_run_options){.notify = true, .reload = read_again};
	setenv("NOTIFY_SOCKET", "@feedwheel-test-master", 1);
	setenv("WATCHDOG_USEC", "90000000", 1);
	unsetenv("WATCHDOG_PID");
}

static void begin(void)
{
	ck_assert_int_eq(master_begin(&m, config, &options), 0);
	ck_assert_ptr_null(getenv("NOTIFY_SOCKET")); /* children must not inherit it */
	step(-1);
}

static void world_begin(void)
{
	world_make();
	begin();
}

static struct sim *child(int place)
{
	return sim_of(m.slot[place].pid);
}

static void dies(int place, int status)
{
	ends(child(place), status);
}

/* SIGSTOP and SIGCONT, from outside. */
static void stopped(int place, bool is)
{
	struct sim *c = child(place);

	c->stopped = is;
	c->news = is ? STOPPED(SIGSTOP) : CONTINUED;
	sigchld = true;
}

static uint64_t restarts(void)
{
	struct fw_meter_sum s;

	fw_meter_read(m.meter, &s);
	return s.worker_restarts + s.server_restarts;
}

/* All children are gone, and the run ended with this code. */
static void world_end(int rc)
{
	struct fw_run_stats stats;

	ck_assert_msg(master_is_over(&m), "it goes on");
	master_report(&m, &stats);
	ck_assert_uint_eq(stats.workers, options.once ? WORKERS : 0);
	ck_assert_msg(m.rc == rc, "%d: %s", m.rc, m.err.text);
	master_finish(&m);
	fw_config_destroy(config);
	playing = false;
}

/* The master leaves in good order. */
static void world_leave(void)
{
	step(SIGTERM);
	pass(2 * FW_MINUTE_MS);
	world_end(0);
}

/* ---- deaths ---------------------------------------------------------------------------------- */

START_TEST(hours_of_nothing)
{
	world_make();
	options.serve = serves;
	habits[1].up_ms = 700;
	begin();
	pass(500);
	ck_assert_uint_eq(manager.ready, 0); /* one is not up yet */
	pass(500);
	ck_assert_uint_eq(manager.ready, 1);
	pass(4 * FW_HOUR_MS);
	ck_assert_uint_eq(manager.ready, 1);
	ck_assert_uint_eq(fork_n, PLACES);
	ck_assert_uint_eq(kill_n, 0);
	ck_assert_int_le(manager.longest_ms, 31 * FW_SECOND_MS); /* a third of the watchdog's time */
	ck_assert_uint_ge(manager.status, 4 * 60 * 11);
	ck_assert_uint_le(manager.status, 4 * 60 * 12 + 3);
	ck_assert_msg(strncmp(manager.text, "STATUS=3 of 3 workers, a server; ", 33) == 0, "%s", manager.text);
	for (int i = 0; i < PLACES; i++)
		ck_assert_uint_eq(child(i)->term_n, 0);
	world_leave();
}
END_TEST

/*
 * A dead child is replaced at once; when the next ones die too, after pauses that double up to 30
 * s; at once again after one has lived for 30 s.
 */
START_TEST(dies_again_and_again)
{
	unsigned had;

	world_begin();
	pass(FW_MINUTE_MS);
	ck_assert_uint_eq(fork_n, WORKERS);
	habits[1].dies_ms = 20;
	habits[1].status = KILLED(SIGSEGV);
	dies(1, KILLED(SIGSEGV));
	pass(10 * FW_MINUTE_MS);
	ck_assert_int_eq(forked_ms[WORKERS], START_MS + FW_MINUTE_MS);
	for (unsigned i = WORKERS + 1; i < fork_n; i++) {
		int64_t pause_ms = FW_MIN(INT64_C(100) << FW_MIN(i - WORKERS - 1, 20u), 30 * FW_SECOND_MS);
		int64_t waited_ms = forked_ms[i] - forked_ms[i - 1] - 20;

		ck_assert_msg(waited_ms >= pause_ms && waited_ms <= pause_ms + TICK_MS,
			"restart %u: after %lld ms instead of %lld", i - WORKERS, (long long)waited_ms,
			(long long)pause_ms);
	}
	ck_assert_uint_ge(fork_n, WORKERS + 20);
	ck_assert_uint_ge(restarts(), 20);
	ck_assert(m.slot[0].pid && m.slot[2].pid); /* the others are not affected */
	ck_assert_uint_eq(child(0)->term_n + child(2)->term_n, 0);
	habits[1].dies_ms = NEVER;
	pass(2 * FW_MINUTE_MS);
	had = fork_n;
	dies(1, EXITED(1));
	pass(1);
	ck_assert_uint_eq(fork_n, had + 1);
	ck_assert_uint_eq(manager.ready, 1); /* the manager is not told of this */
	world_leave();
}
END_TEST

/* The runner is started when a job waits, and again after pauses as long as one does. */
START_TEST(job_starts_the_runner)
{
	char job;

	world_begin();
	pass(FW_MINUTE_MS);
	ck_assert_uint_eq(fork_n, WORKERS);
	ck_assert_int_eq(send(m.runner_fd[0], "x", 1, 0), 1);
	pass(TICK_MS);
	ck_assert_uint_eq(fork_n, WORKERS + 1);
	pass(FW_MINUTE_MS);
	ck_assert_uint_eq(fork_n, WORKERS + 1);
	ends(sim_of(m.runner.pid), KILLED(SIGKILL));
	pass(1);
	ck_assert_uint_eq(fork_n, WORKERS + 2);
	ends(sim_of(m.runner.pid), EXITED(1));
	pass(1);
	ck_assert_uint_eq(fork_n, WORKERS + 2);
	pass(2 * TICK_MS);
	ck_assert_uint_eq(fork_n, WORKERS + 3);
	ck_assert_int_eq(recv(m.runner_fd[1], &job, 1, MSG_DONTWAIT), 1);
	ends(sim_of(m.runner.pid), KILLED(SIGKILL));
	pass(FW_MINUTE_MS);
	ck_assert_uint_eq(fork_n, WORKERS + 3);
	ck_assert_int_eq(m.runner.pid, 0);
	forks_fail = true;
	ck_assert_int_eq(send(m.runner_fd[0], "x", 1, 0), 1);
	pass(FW_MINUTE_MS);
	forks_fail = false;
	pass(31 * FW_SECOND_MS);
	ck_assert_int_gt(m.runner.pid, 0);
	ck_assert_uint_eq(restarts() + kill_n, 0); /* it is no worker */
	world_leave();
}
END_TEST

/* By other rules, as by none, the socket of those before leads nowhere. */
START_TEST(reload_replaces_the_rules_of_orders)
{
	int old;
	char c;

	world_begin();
	pass(FW_MINUTE_MS);
	old = fcntl(m.runner_fd[0], F_DUPFD_CLOEXEC, 0);
	step(SIGHUP); /* what read_again() gives allows nothing */
	ck_assert(m.runner_fd[0] < 0 && m.runner_fd[1] < 0);
	ck_assert_int_eq(recv(old, &c, 1, MSG_DONTWAIT), 0);
	ck_assert_int_eq(send(old, "x", 1, MSG_NOSIGNAL), -1);
	close(old);
	pass(FW_MINUTE_MS);
	ck_assert_int_eq(m.runner.pid, 0);
	world_leave();
}
END_TEST

/* The kernel reports them once. */
START_TEST(die_together)
{
	world_begin();
	pass(FW_MINUTE_MS);
	for (int i = 0; i < WORKERS; i++)
		dies(i, KILLED(SIGKILL));
	pass(1);
	ck_assert_uint_eq(fork_n, 2 * WORKERS);
	world_leave();
}
END_TEST

/*
 * While it is down, its last activity and shortages are not reported any more; its counters stay.
 */
START_TEST(child_that_is_down_reports_no_shortage)
{
	struct fw_meter_slot *of;
	struct fw_meter_sum s;

	world_begin();
	pass(FW_SECOND_MS);
	of = fw_meter_slot(m.meter, 1);
	atomic_store(&of->in_flight, 7);
	atomic_store(&of->offline, 1);
	atomic_store(&of->unavailable, 1);
	atomic_store(&of->disk_low, 1);
	atomic_store(&of->visits[FW_VISIT_OK], 5);
	forks_fail = true;
	dies(1, KILLED(SIGKILL));
	pass(FW_SECOND_MS);
	fw_meter_read(m.meter, &s);
	ck_assert_uint_eq(s.alive, WORKERS - 1);
	ck_assert_uint_eq(s.in_flight + s.offline + s.unavailable + s.disk_low, 0);
	ck_assert_uint_eq(s.visits[FW_VISIT_OK], 5);
	forks_fail = false;
	world_leave();
}
END_TEST

/*
 * A process that cannot be created is tried again with the same pauses, however long the last one
 * lived.
 */
START_TEST(fork_fails)
{
	world_begin();
	pass(FW_HOUR_MS);
	forks_fail = true;
	dies(2, KILLED(SIGKILL));
	pass(10 * FW_MINUTE_MS);
	ck_assert_uint_ge(fork_try_n - fork_n, 20);
	ck_assert_uint_le(fork_try_n - fork_n, 40);
	ck_assert_ptr_nonnull(strstr(manager.text, "2 of 3 workers"));
	dies(0, KILLED(SIGKILL));
	dies(1, KILLED(SIGKILL));
	pass(FW_MINUTE_MS);
	ck_assert(!master_is_over(&m));
	forks_fail = false;
	pass(31 * FW_SECOND_MS);
	ck_assert_uint_eq(fork_n, 2 * WORKERS);
	world_leave();
}
END_TEST

START_TEST(no_process_at_all)
{
	world_make();
	forks_fail = true;
	ck_assert_int_eq(master_begin(&m, config, &options), 0);
	ck_assert(master_is_over(&m));
	ck_assert_ptr_nonnull(strstr(m.err.text, "ulimit"));
	world_end(FW_EIO);
}
END_TEST

/*
 * A child without a heartbeat for a minute is killed and replaced. Before it is up, the minute
 * counts from its birth.
 */
START_TEST(hangs)
{
	int64_t since_ms;
	pid_t pid;

	world_begin();
	pass(FW_MINUTE_MS);
	child(0)->hangs = true;
	habits[0].dying_ms = 2 * FW_SECOND_MS;
	pid = child(0)->pid;
	pass(59 * FW_SECOND_MS);
	ck_assert_int_eq(m.slot[0].pid, pid);
	pass(2 * FW_SECOND_MS);
	ck_assert_uint_eq(kill_n, 1);
	pass(2 * FW_SECOND_MS);
	ck_assert_uint_eq(kill_n, 1);
	ck_assert_uint_eq(fork_n, WORKERS + 1);
	habits[0].up_ms = NEVER / 2;
	dies(0, KILLED(SIGBUS));
	pass(FW_SECOND_MS);
	since_ms = now_ms;
	while (kill_n == 1)
		pass(TICK_MS);
	ck_assert_int_ge(now_ms - since_ms, 58 * FW_SECOND_MS);
	ck_assert_int_le(now_ms - since_ms, 61 * FW_SECOND_MS);
	habits[0].up_ms = 50;
	pass(2 * FW_MINUTE_MS);
	ck_assert_uint_eq(child(1)->kill_n + child(2)->kill_n, 0);
	world_leave();
}
END_TEST

/*
 * A server holds accepted rows: the master does not kill it when it hangs, but sends the manager no
 * more pings; the manager's watchdog decides.
 */
START_TEST(server_hangs)
{
	int64_t ping_ms;
	pid_t pid;

	world_make();
	options.serve = serves;
	habits[SERVER].up_ms = 10 * FW_MINUTE_MS; /* it reads its log first */
	begin();
	pass(11 * FW_MINUTE_MS);
	ck_assert_int_le(manager.longest_ms, 31 * FW_SECOND_MS);
	ck_assert_uint_eq(manager.ready, 1);
	child(SERVER)->hangs = true;
	pid = child(SERVER)->pid;
	pass(3 * FW_MINUTE_MS);
	ping_ms = manager.ping_ms;
	ck_assert_int_ge(now_ms - ping_ms, FW_MINUTE_MS);
	ck_assert_ptr_nonnull(strstr(manager.text, "is unresponsive"));
	ck_assert_int_eq(m.slot[SERVER].pid, pid);
	child(SERVER)->hangs = false;
	pass(FW_SECOND_MS);
	ck_assert_int_gt(manager.ping_ms, ping_ms);
	ck_assert_ptr_null(strstr(manager.text, "is unresponsive"));
	dies(SERVER, KILLED(SIGSEGV));
	pass(FW_SECOND_MS);
	ck_assert(m.slot[SERVER].pid && m.slot[SERVER].pid != pid);
	ck_assert_uint_eq(restarts(), 1);
	world_leave();
}
END_TEST

/* The whole process group slept: children get their minute again. */
START_TEST(master_slept)
{
	world_begin();
	pass(FW_MINUTE_MS);
	for (int i = 0; i < WORKERS; i++)
		child(i)->hangs = true;
	now_ms += FW_HOUR_MS;
	step(-1);
	pass(30 * FW_SECOND_MS);
	ck_assert_uint_eq(kill_n, 0);
	for (int i = 0; i < WORKERS; i++)
		child(i)->hangs = false;
	pass(FW_HOUR_MS);
	ck_assert_uint_eq(kill_n, 0);
	ck_assert_uint_eq(fork_n, WORKERS);
	world_leave();
}
END_TEST

/* SIGSTOP is noticed at once; the child is killed after a minute. */
START_TEST(one_is_stopped)
{
	int64_t ping_ms;

	world_begin();
	pass(FW_MINUTE_MS);
	stopped(1, true);
	pass(FW_SECOND_MS);
	ck_assert_ptr_nonnull(strstr(manager.text, "is unresponsive"));
	ping_ms = manager.ping_ms;
	pass(40 * FW_SECOND_MS);
	ck_assert_int_eq(manager.ping_ms, ping_ms);
	stopped(1, false);
	pass(FW_SECOND_MS);
	ck_assert_int_gt(manager.ping_ms, ping_ms);
	ck_assert_uint_eq(kill_n, 0);
	stopped(1, true);
	pass(62 * FW_SECOND_MS);
	ck_assert_uint_eq(kill_n, 1);
	pass(FW_SECOND_MS);
	ck_assert_uint_eq(fork_n, WORKERS + 1);
	ck_assert_ptr_null(strstr(manager.text, "is unresponsive"));
	world_leave();
}
END_TEST

/* ---- the end --------------------------------------------------------------------------------- */

/*
 * All are told once and waited for. A child that dies meanwhile, or waits for its restart, gets no
 * successor.
 */
START_TEST(drains)
{
	int64_t stop_requested_ms;
	struct sim *c;

	world_make();
	habits[2].dies_ms = 10;
	habits[2].status = EXITED(1);
	habits[0].drain_ms = 8 * FW_SECOND_MS;
	begin();
	pass(2900);
	ck_assert_int_eq(m.slot[2].pid, 0); /* it is in its pause */
	stop_requested_ms = now_ms;
	step(SIGTERM);
	c = child(0);
	ck_assert_uint_eq(child(0)->term_n, 1);
	ck_assert_uint_eq(child(1)->term_n, 1);
	ck_assert_uint_eq(manager.stopping, 1);
	dies(1, KILLED(SIGSEGV));
	pass(7900);
	ck_assert(!master_is_over(&m));
	ck_assert_uint_eq(c->term_n, 1);
	while (!master_is_over(&m))
		pass(TICK_MS);
	ck_assert_int_le(now_ms - stop_requested_ms, 8400);
	ck_assert_uint_eq(kill_n + c->hurry_n, 0);
	ck_assert_uint_eq(manager.stopping, 1);
	world_end(0);
}
END_TEST

/*
 * A child that hangs or is stopped while draining is killed after the drain time. A child that
 * still works is waited for.
 */
START_TEST(drains_too_long)
{
	int64_t stop_requested_ms;

	world_make();
	habits[0].drain_ms = NEVER;
	habits[2].drain_ms = 40 * FW_SECOND_MS;
	begin();
	pass(FW_MINUTE_MS);
	stopped(1, true);
	pass(FW_SECOND_MS);
	child(0)->hangs = true;
	stop_requested_ms = now_ms;
	step(SIGTERM);
	pass(9900);
	ck_assert_uint_eq(kill_n, 0);
	pass(500);
	ck_assert_uint_eq(kill_n, 2); /* ten seconds have passed, and it has been silent for more than five */
	ck_assert(!m.slot[0].pid && !m.slot[1].pid && m.slot[2].pid);
	while (!master_is_over(&m))
		pass(TICK_MS);
	ck_assert_int_ge(now_ms - stop_requested_ms, 40 * FW_SECOND_MS);
	ck_assert_uint_eq(kill_n, 2);
	world_end(0);
}
END_TEST

/*
 * Two requests at once count as one. After a later second request all leave at once, and a child
 * that does not react is killed.
 */
START_TEST(second_request_to_stop)
{
	struct sim *c;

	world_make();
	for (int i = 0; i < WORKERS; i++)
		habits[i].drain_ms = 9 * FW_SECOND_MS;
	begin();
	pass(FW_MINUTE_MS);
	c = child(0);
	child(2)->hangs = true;
	step(SIGINT);
	pass(400);
	step(SIGTERM);
	pass(2 * FW_SECOND_MS);
	ck_assert_uint_eq(c->hurry_n, 0);
	ck_assert_uint_eq(c->term_n, 1);
	step(SIGQUIT);
	ck_assert_uint_eq(c->hurry_n, 1);
	ck_assert_uint_eq(c->term_n, 1);
	pass(100);
	ck_assert(!m.slot[0].pid && !m.slot[1].pid && m.slot[2].pid);
	pass(4 * FW_SECOND_MS);
	ck_assert(master_is_over(&m)); /* its silence started before the request */
	ck_assert_uint_eq(kill_n, 1);
	world_end(0);
}
END_TEST

/* A control message that reached one child applies to all. A --once run ends when all are done. */
START_TEST(by_themselves)
{
	world_begin();
	pass(FW_MINUTE_MS);
	dies(0, EXITED(WORKER_STOP_REQUESTED));
	pass(500);
	ck_assert_uint_eq(child(1)->term_n, 1);
	pass(FW_SECOND_MS);
	world_end(0);

	world_make();
	options.once = true;
	begin();
	pass(FW_SECOND_MS);
	dies(1, EXITED(WORKER_DONE));
	dies(2, KILLED(SIGSEGV)); /* its successor does the rest */
	pass(FW_SECOND_MS);
	ck_assert_uint_eq(fork_n, WORKERS + 1);
	dies(0, EXITED(WORKER_DONE));
	pass(FW_SECOND_MS);
	ck_assert_uint_eq(child(2)->term_n, 0);
	ck_assert(!master_is_over(&m));
	dies(2, EXITED(WORKER_DONE));
	pass(FW_SECOND_MS);
	world_end(0);
}
END_TEST

/*
 * A worker that a message stopped by its name is not replaced, also not by a reload, and the others
 * go on. If it was the first one, another takes its duties. After the last one the run ends, with
 * its server.
 */
START_TEST(one_retires)
{
	world_make();
	options.serve = serves;
	begin();
	pass(FW_MINUTE_MS);
	dies(1, EXITED(WORKER_RETIRED));
	pass(FW_MINUTE_MS);
	ck_assert_uint_eq(fork_n, PLACES);
	ck_assert_uint_eq(child(0)->term_n + child(2)->term_n, 0);
	ck_assert_int_eq(m.first, 0);
	step(SIGHUP);
	pass(FW_MINUTE_MS);
	ck_assert_int_eq(m.slot[1].pid, 0);
	ck_assert_uint_eq(fork_n, 2 * PLACES - 1);
	ck_assert_uint_eq(manager.ready, 2);
	ck_assert_uint_eq(restarts(), 0);

	dies(0, EXITED(WORKER_RETIRED));
	pass(1);
	ck_assert_int_eq(m.first, 2);
	ck_assert_uint_eq(child(2)->term_n, 1);
	pass(FW_MINUTE_MS);
	ck_assert_uint_eq(fork_n, 2 * PLACES);
	ck_assert_int_eq(m.slot[0].pid, 0);
	dies(2, KILLED(SIGSEGV)); /* the first one, like any other, has a successor */
	pass(1);
	ck_assert_uint_eq(fork_n, 2 * PLACES + 1);
	pass(FW_SECOND_MS);
	dies(2, EXITED(WORKER_RETIRED));
	pass(5 * FW_SECOND_MS);
	world_end(0);
}
END_TEST

/* While the next first worker is dead, its successor starts as the first one. */
START_TEST(one_retires_while_others_are_dead)
{
	world_begin();
	pass(FW_MINUTE_MS);
	forks_fail = true;
	dies(1, KILLED(SIGSEGV));
	pass(1);
	dies(2, EXITED(WORKER_RETIRED));
	dies(0, EXITED(WORKER_RETIRED));
	pass(FW_SECOND_MS);
	ck_assert(!master_is_over(&m));
	ck_assert_int_eq(m.first, 1);
	forks_fail = false;
	pass(FW_MINUTE_MS);
	ck_assert(m.slot[1].pid && !m.slot[0].pid && !m.slot[2].pid);
	ck_assert_uint_eq(child(1)->term_n, 0);
	world_leave();
}
END_TEST

/* Waiting does not mend a damaged store: the run ends, however long it has lasted. */
START_TEST(store_is_unusable)
{
	world_begin();
	pass(FW_HOUR_MS);
	fw_err_set(&child_shared(&m, 1)->err, FW_EUNUSABLE, "the file is damaged");
	dies(1, EXITED(WORKER_STORE));
	pass(2 * FW_SECOND_MS);
	ck_assert_str_eq(m.err.text, "the file is damaged");
	world_end(FW_EUNUSABLE);
}
END_TEST

/* A worker that was taken over fills its memory with a byte, and dies. */
static void scribbles(int place, int byte)
{
	memset(fw_meter_slot(m.meter, (size_t)place), byte, sizeof(struct fw_meter_slot));
	memset(child_shared(&m, place), byte, sizeof(struct worker_shared));
}

/* The master bears what a child writes there: texts without an end, numbers without bounds. */
START_TEST(child_scribbles)
{
	static const int BYTE[] = {0, 0x41, 0x7f, 0x80, 0xff};
	struct fw_run_stats stats;

	for (size_t i = 0; i < FW_N(BYTE); i++) {
		world_begin();
		pass(FW_MINUTE_MS);
		scribbles(1, BYTE[i]);
		pass(FW_SECOND_MS);
		dies(1, KILLED(SIGSEGV));
		pass(FW_MINUTE_MS);
		ck_assert_ptr_nonnull(memchr(child_shared(&m, 1)->predecessor_name, 0, FW_WORKER_NAME_MAX));
		ck_assert_str_eq(child_shared(&m, 0)->predecessor_name, "");
		scribbles(1, BYTE[i]);
		options.once = true;
		master_report(&m, &stats);
		options.once = false;
		ck_assert(stats.forecast.sum_us >= 0 && memchr(stats.forecast.host, 0, sizeof(stats.forecast.host)));
		fw_err_set(&child_shared(&m, 1)->err, FW_EUNUSABLE, " ");
		memset(child_shared(&m, 1)->err.text, BYTE[i], sizeof(m.err.text));
		dies(1, EXITED(WORKER_STORE));
		pass(FW_MINUTE_MS);
		ck_assert_ptr_nonnull(memchr(m.err.text, 0, sizeof(m.err.text)));
		world_end(FW_EUNUSABLE);
	}
}
END_TEST

/* A store error of a worker at the very start is reported to the caller; later it is an outage. */
START_TEST(store_refuses)
{
	world_begin();
	pass(FW_SECOND_MS);
	fw_err_set(&child_shared(&m, 1)->err, FW_EINVAL, "no such database");
	dies(1, EXITED(WORKER_STORE));
	pass(2 * FW_SECOND_MS);
	ck_assert_str_eq(m.err.text, "no such database");
	world_end(FW_EINVAL);

	world_begin();
	pass(10 * FW_SECOND_MS);
	habits[1].dies_ms = 20;
	habits[1].status = EXITED(WORKER_STORE);
	dies(1, EXITED(WORKER_STORE));
	pass(FW_HOUR_MS);
	ck_assert_uint_ge(fork_n, WORKERS + 100);
	ck_assert_uint_le(fork_n, WORKERS + 140);
	habits[1].dies_ms = NEVER;
	pass(FW_MINUTE_MS);
	ck_assert(m.slot[1].pid);
	world_leave();
}
END_TEST

/*
 * A server that is killed while it stops loses accepted rows: that is an error of the run. For
 * other children it is not.
 */
START_TEST(server_is_killed_at_the_end)
{
	world_make();
	options.serve = serves;
	options.serve_only = true;
	begin();
	ck_assert_int_eq(m.n, 0);
	pass(FW_MINUTE_MS);
	ends(child(0), KILLED(SIGKILL));
	pass(FW_MINUTE_MS);
	ck_assert_int_eq(m.rc, 0);
	step(SIGTERM);
	ends(child(0), KILLED(SIGKILL));
	pass(FW_SECOND_MS);
	ck_assert_ptr_nonnull(strstr(m.err.text, "lost"));
	world_end(FW_EIO);
}
END_TEST

/* ---- SIGHUP ---------------------------------------------------------------------------------- */

START_TEST(reloads)
{
	world_begin();
	pass(FW_MINUTE_MS);
	habits[0].drain_ms = 20 * FW_SECOND_MS;
	habits[1].up_ms = 3 * FW_SECOND_MS;
	step(SIGHUP);
	ck_assert_uint_eq(manager.reloading, 1);
	ck_assert_int_eq(m.config->drain_timeout_ms, 20 * FW_SECOND_MS);
	for (int i = 0; i < WORKERS; i++)
		ck_assert_uint_eq(child(i)->term_n, 1);
	pass(1200);
	ck_assert_uint_eq(fork_n, WORKERS + 2); /* one is still draining */
	pass(18 * FW_SECOND_MS);
	ck_assert_uint_eq(manager.ready, 1);
	pass(FW_SECOND_MS);
	ck_assert_uint_eq(fork_n, WORKERS + 3);
	ck_assert_uint_eq(manager.ready, 2);
	ck_assert_uint_eq(restarts(), 0);
	pass(FW_HOUR_MS);
	ck_assert_uint_eq(fork_n, WORKERS + 3);
	ck_assert_uint_eq(manager.ready, 2);
	ck_assert_int_le(manager.longest_ms, 31 * FW_SECOND_MS);
	habits[0].drain_ms = 1000;
	atomic_store(&child_shared(&m, 2)->reload_id, 7); /* by a message in the store */
	pass(500);
	atomic_store(&child_shared(&m, 0)->reload_id, 7); /* which this one sees while it drains */
	pass(10 * FW_SECOND_MS);
	atomic_store(&child_shared(&m, 1)->reload_id, 7); /* and this one's successor */
	pass(10 * FW_SECOND_MS);
	ck_assert_uint_eq(manager.reloading, 2);
	ck_assert_uint_eq(fork_n, WORKERS + 6);
	ck_assert_uint_eq(manager.ready, 3);
	atomic_store(&child_shared(&m, 1)->reload_id, 8);
	pass(10 * FW_SECOND_MS);
	ck_assert_uint_eq(manager.reloading, 3);
	world_leave();
}
END_TEST

/*
 * The old configuration stays, and the manager gets the reason in one line. Without a file to read
 * again nothing happens.
 */
START_TEST(reloads_in_vain)
{
	world_begin();
	pass(FW_MINUTE_MS);
	fresh_is_wrong = true;
	step(SIGHUP);
	pass(6 * FW_SECOND_MS);
	ck_assert_ptr_eq(m.config, config);
	ck_assert_uint_eq(fork_n, WORKERS);
	ck_assert_uint_eq(child(0)->term_n, 0);
	ck_assert_uint_eq(manager.ready, 2);
	ck_assert_ptr_nonnull(strstr(manager.text, "colour?is no setting; the old configuration stays"));
	fresh_is_wrong = false;
	step(SIGHUP);
	pass(6 * FW_SECOND_MS);
	ck_assert_ptr_null(strstr(manager.text, "colour"));
	ck_assert_uint_eq(fork_n, 2 * WORKERS);
	world_leave();

	world_make();
	options.reload = NULL;
	begin();
	pass(FW_MINUTE_MS);
	step(SIGHUP);
	pass(FW_MINUTE_MS);
	ck_assert_uint_eq(fork_n, WORKERS);
	ck_assert_uint_eq(manager.reloading, 0);
	world_leave();
}
END_TEST

/* A signal together with a message is not lost; a master that stops does not reload. */
START_TEST(reloads_and_stops)
{
	world_begin();
	pass(FW_MINUTE_MS);
	atomic_store(&child_shared(&m, 1)->reload_id, 1);
	step(SIGTERM);
	ck_assert_uint_eq(manager.stopping, 1);
	pass(100);
	step(SIGHUP);
	ck_assert_uint_eq(manager.reloading, 0);
	ck_assert_ptr_eq(m.config, config);
	pass(2 * FW_SECOND_MS);
	world_end(0);
}
END_TEST

/* When a file that children may not read is replaced, those that may read it follow, once. */
START_TEST(file_is_replaced)
{
	world_begin();
	pass(FW_MINUTE_MS);
	habits[1].drain_ms = 8 * FW_SECOND_MS;
	file_seen = 2;
	pass(7 * FW_SECOND_MS);
	ck_assert_uint_eq(fork_n, 2 * WORKERS - 1);
	ck_assert_uint_eq(child(1)->term_n, 1);
	pass(FW_HOUR_MS);
	ck_assert_uint_eq(fork_n, 2 * WORKERS);
	ck_assert_uint_eq(restarts(), 0);
	file_seen = 0; /* it is just missing */
	pass(FW_MINUTE_MS);
	ck_assert_uint_eq(fork_n, 2 * WORKERS);
	world_leave();
}
END_TEST

/* A manager whose queue is full gets the message again. */
START_TEST(manager_is_busy)
{
	world_make();
	manager.full = true;
	begin();
	pass(10 * FW_SECOND_MS);
	manager.full = false;
	pass(TICK_MS);
	ck_assert_uint_eq(manager.ready, 1);
	ck_assert_uint_eq(manager.ping, 1);
	pass(10 * FW_SECOND_MS);
	ck_assert_uint_eq(manager.ready, 1);
	world_leave();
}
END_TEST

/*
 * ---- what a dead worker leaves in the store
 * ------------------------------------------------------
 */

static char folder[200], path[300];

static void store_begin(void)
{
	static const struct fw_feed_new FEEDS[] = {{.url = FW_STR("http://a.example/")},
		{.url = FW_STR("http://b.example/")}, {.url = FW_STR("http://c.example/")}};
	struct fw_store *st;

	world_make();
	with_store = true;
	(void)fw_snprintf(folder, sizeof(folder), "%s/master-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	(void)fw_snprintf(path, sizeof(path), "sqlite:%s/feeds.db", folder);
	set("store", path);
	set("async_commit", "true");
	OK(fw_config_store(config, FW_STORE_CREATE, &st, &err));
	OK(fw_store_subscribe(st, (struct fw_feed_new[]){FEEDS[0], FEEDS[1], FEEDS[2]}, 3, &err));
	fw_store_close(st);
	begin();
	pass(10 * FW_SECOND_MS);
}

static void store_end(void)
{
	static const char *const NAMES[] = {"feeds.db", "feeds.db-wal", "feeds.db-shm", "feeds.db-checkpoint"};

	world_leave();
	for (size_t i = 0; i < FW_N(NAMES); i++) {
		(void)fw_snprintf(path, sizeof(path), "%s/%s", folder, NAMES[i]);
		(void)unlink(path);
	}
	ck_assert_int_eq(rmdir(folder), 0);
}

static struct fw_store *look(void)
{
	struct fw_store *st;
	bool was = cut_open;

	cut_open = false;
	OK(fw_config_store(config, 0, &st, &err));
	cut_open = was;
	return st;
}

/* Leases of the worker with this name; NULL: of all. */
static int64_t leases(const char *name)
{
	sqlite3 *db;
	sqlite3_stmt *q;
	int64_t n;

	ck_assert_int_eq(sqlite3_open(path + strlen("sqlite:"), &db), SQLITE_OK);
	ck_assert_int_eq(
		sqlite3_prepare_v2(db, "SELECT count(*) FROM workers WHERE ?1 IS NULL OR name = ?1", -1, &q, NULL),
		SQLITE_OK);
	ck_assert_int_eq(sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC), SQLITE_OK);
	ck_assert_int_eq(sqlite3_step(q), SQLITE_ROW);
	n = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	sqlite3_close(db);
	return n;
}

static int feed_told(void *ctx, const struct fw_feed *f)
{
	*(enum fw_feed_status *)ctx = f->status;
	return 0;
}

static bool is_aside(int64_t id)
{
	struct fw_store *st = look();
	enum fw_feed_status status = FW_FEED_GONE;

	OK(fw_store_feed_list(
		st, &(struct fw_feed_query){.status = -1, .after_id = id - 1, .limit = 1}, feed_told, &status, &err));
	fw_store_close(st);
	return status == FW_FEED_QUARANTINED;
}

/*
 * The child of a place dies while it parses these documents: a small one, a large one beside the
 * loop, and the one that its thread could name.
 */
static void dies_reading(int place, int64_t small, int64_t large, int64_t told)
{
	struct worker_shared *sh = child_shared(&m, place);

	atomic_store(&sh->reading_feed_id, small);
	atomic_store(&sh->reading_large_id, large);
	atomic_store(&sh->crashed_reading_id, told);
	dies(place, KILLED(told ? SIGSEGV : SIGKILL));
}

START_TEST(its_lease_is_ended)
{
	char name[FW_WORKER_NAME_MAX];

	store_begin();
	ck_assert_int_eq(leases(NULL), WORKERS);
	(void)fw_str_copy(name, sizeof(name), fw_str(child_shared(&m, 1)->name));
	dies(1, KILLED(SIGSEGV));
	ck_assert_int_eq(leases(name), 1);
	pass(200);
	ck_assert_int_eq(leases(name), 0);
	ck_assert_int_eq(leases(child_shared(&m, 1)->name), 1); /* its successor's */
	ck_assert_int_eq(leases(NULL), WORKERS);
	store_end();
}
END_TEST

/*
 * Of two documents the one that the thread names is charged; without a name the large one; without
 * a document none.
 */
START_TEST(two_crashes_quarantine_a_feed)
{
	store_begin();
	dies_reading(0, 1, 0, 0);
	pass(FW_MINUTE_MS);
	ck_assert(!is_aside(1));
	dies(0, KILLED(SIGSEGV)); /* it parses nothing any more */
	pass(FW_MINUTE_MS);
	ck_assert(!is_aside(1));
	dies_reading(2, 1, 0, 0);
	pass(FW_SECOND_MS);
	ck_assert(is_aside(1));
	for (int i = 0; i < 2; i++) {
		dies_reading(0, 2, 3, READING_NOTHING);
		pass(FW_MINUTE_MS);
		ck_assert_int_eq(child_shared(&m, 0)->predecessor_feed_id, 0);
		dies_reading(1, 2, 3, 2);
		pass(FW_MINUTE_MS);
	}
	ck_assert(is_aside(2));
	ck_assert(!is_aside(3));
	dies_reading(0, 2, 3, 0);
	pass(FW_MINUTE_MS);
	dies_reading(0, 2, 3, 0);
	pass(FW_MINUTE_MS);
	ck_assert(is_aside(3));
	store_end();
}
END_TEST

/*
 * The store is away for minutes while a lease is to be ended and a feed to be charged: both are
 * done when it is back.
 */
static void is_away(bool *cut)
{
	char name[FW_WORKER_NAME_MAX];

	store_begin();
	dies_reading(1, 1, 0, 0);
	pass(FW_MINUTE_MS);
	(void)fw_str_copy(name, sizeof(name), fw_str(child_shared(&m, 1)->name));
	*cut = true;
	dies_reading(1, 1, 0, 0);
	pass(5 * FW_MINUTE_MS);
	ck_assert_int_eq(leases(name), 1);
	ck_assert(!is_aside(1));
	ck_assert_uint_ge(fork_n, WORKERS + 10);
	*cut = false;
	pass(31 * FW_SECOND_MS);
	ck_assert_int_eq(leases(name), 0);
	ck_assert(is_aside(1));
	ck_assert_int_eq(leases(NULL), WORKERS);
	store_end();
}

START_TEST(store_is_away)
{
	is_away(&cut_open);
}
END_TEST

START_TEST(store_goes_away)
{
	is_away(&cut_give);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit engine master");
	TCase *t = tcase_create("master");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, hours_of_nothing);
	tcase_add_test(t, dies_again_and_again);
	tcase_add_test(t, job_starts_the_runner);
	tcase_add_test(t, reload_replaces_the_rules_of_orders);
	tcase_add_test(t, die_together);
	tcase_add_test(t, child_that_is_down_reports_no_shortage);
	tcase_add_test(t, fork_fails);
	tcase_add_test(t, no_process_at_all);
	tcase_add_test(t, hangs);
	tcase_add_test(t, server_hangs);
	tcase_add_test(t, master_slept);
	tcase_add_test(t, one_is_stopped);
	tcase_add_test(t, drains);
	tcase_add_test(t, drains_too_long);
	tcase_add_test(t, second_request_to_stop);
	tcase_add_test(t, by_themselves);
	tcase_add_test(t, child_scribbles);
	tcase_add_test(t, store_refuses);
	tcase_add_test(t, one_retires);
	tcase_add_test(t, one_retires_while_others_are_dead);
	tcase_add_test(t, store_is_unusable);
	tcase_add_test(t, server_is_killed_at_the_end);
	tcase_add_test(t, reloads);
	tcase_add_test(t, reloads_in_vain);
	tcase_add_test(t, reloads_and_stops);
	tcase_add_test(t, file_is_replaced);
	tcase_add_test(t, manager_is_busy);
	tcase_add_test(t, its_lease_is_ended);
	tcase_add_test(t, two_crashes_quarantine_a_feed);
	tcase_add_test(t, store_is_away);
	tcase_add_test(t, store_goes_away);
	suite_add_tcase(s, t);
	return run_suite(s);
}
