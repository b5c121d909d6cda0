/* SPDX-License-Identifier: ISC */
/*
 * The master: starts the workers and the server, watches and restarts them, drains them, and adds
 * up their counters. It touches neither the network nor the store, so no input from outside can
 * harm it.
 *
 * A worker that dies is replaced at once, or with backoff if its successors die too. Its successor
 * gets its name and the feed whose document it was reading; it ends the dead worker's lease and
 * charges that feed. A feed whose visit killed a worker twice is quarantined. A worker without a
 * heartbeat for HUNG_MS is killed, and so is a child that does not respond when drain_timeout_ms is
 * over. If the master itself is killed, the workers see the end of a pipe and drain. If all are
 * killed, the next run finds their leases by their heartbeat records (store_thread.c).
 *
 * The runner of orders' commands is a child too, but takes no part in this: it is started when the
 * sender in the first worker (or in the server, if there are no workers) has sent it a first job,
 * and again if it has died; it ends when its socket is closed. The master looks whether a job
 * waits, and reads none.
 *
 * A worker that a control message stops by its name retires: it is not replaced, and the others go
 * on. After the last one the run ends.
 *
 * At the first stop request the master tells the workers to drain. At the second it makes them exit
 * at once, by a signal of its own: a terminal's ^C, or a supervisor that signals every process,
 * reaches the workers too and must not count as the second request.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/run/child.h"
#include "engine/run/master.h"
#include "engine/orders/runner_process.h"
#include "engine/settings.h"

#define TICK_MS 200
#ifdef FW_TEST_HOOKS
#define HUNG_MS (8 * FW_SECOND_MS)
#else
#define HUNG_MS (60 * FW_SECOND_MS)
#endif
/* silence after which a child that should have drained is killed */
#define IGNORES_STOP_MS (5 * FW_SECOND_MS)
#define STOP_EXTRA_MS (30 * FW_SECOND_MS) /* added to drain_timeout_ms for the service manager */
#define BURST_MS 500
#define STOPPED_MS (2 * FW_SECOND_MS)     /* gap between two ticks: the master itself was stopped */
#define FILES_CHECK_MS (2 * FW_SECOND_MS) /* interval of checks of the files that children may read */
#define STEADY_MS (30 * FW_SECOND_MS)     /* a child that lived this long started properly */
#define STATUS_MS (5 * FW_SECOND_MS)      /* interval of status lines for the service manager */
#define EARLY_MS (5 * FW_SECOND_MS)
#define NUMBER_MAX (INT64_C(1) << 50)                 /* of what a child says: us in 35 years */
#define RUNNER_END_MS (RUNNER_KILL_MS + FW_SECOND_MS) /* it ends its programs first */
#define RUNNER_END_STEP_MS 10
#define RESPAWN_MIN_MS 100
#define RESPAWN_MAX_MS (30 * FW_SECOND_MS)

static enum fw_sandbox_role child_kind(const struct master *m, int index)
{
	return index < m->n ? FW_SANDBOX_WORKER : m->n ? FW_SANDBOX_SERVER : FW_SANDBOX_SENDER_SERVER;
}

static unsigned master_child_kinds(const struct master *m)
{
	return 1u << FW_SANDBOX_MASTER | (m->n ? 1u << FW_SANDBOX_WORKER : 0) |
		(m->slot_n > m->n ? 1u << FW_SANDBOX_SERVER : 0);
}

/* The sender is in the first worker, or in the server if it is alone. */
static int child_runner_fd(const struct master *m, int index)
{
	return index == m->first ? m->runner_fd[0] : -1;
}

static void master_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/*
 * Runs in the child, after the fork. With a sandbox that randomises the memory layout it executes
 * this program again; otherwise it goes on as forked.
 */
static int child_begin(struct master *m, int index)
{
	struct child c = {.config = m->config,
		.shared = child_shared(m, index),
		.meter = m->meter,
		.index = index,
		.n = m->n,
		.slot_n = m->slot_n,
		.master_fd = m->pipe_fd[0],
		.runner_fd = child_runner_fd(m, index),
		.first = index == m->first,
		.once = m->o->once,
		.started_ms = m->started_ms,
		.serve = m->o->serve,
		.ctx = m->o->ctx};
	unsigned have, lack;
	int rc;

	close(m->pipe_fd[1]);
	master_close(&m->runner_fd[1]);
	if (c.runner_fd < 0)
		master_close(&m->runner_fd[0]);
	fw_sandbox_layers(m->config, child_kind(m, index), &have, &lack);
	if (have & FW_SANDBOX_LAYOUT && m->o->exec_args) {
		rc = child_exec(&c, m->o->exec_args);
		if (fw_sandbox_failed(m->config, FW_SANDBOX_LAYOUT, -rc, &c.shared->err))
			return WORKER_SYSTEM;
	}
	fw_meter_narrow(m->meter, (size_t)index);
	return child_main(&c);
}

static int child_spawn(struct master *m, int index)
{
	struct child_slot *s = &m->slot[index];
	pid_t pid;

	assert(index < m->slot_n && !s->pid);
	s->born_ms = fw_mono_ms(); /* also if fork() fails: the next attempt is delayed */
	meter_child_prepare(m->meter, (size_t)index);
	fw_sandbox_create_files(m->config, child_kind(m, index));
	fw_sandbox_mark(m->config, child_kind(m, index), &s->mark);
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		exit(child_begin(m, index));
	if (pid < 0)
		return fw_err_set(&m->err, FW_EIO, "process not created: %s (to raise the limit, use ulimit -u)",
			strerror(errno));
	s->pid = pid;
	meter_child_start(m->meter, (size_t)index, pid);
	s->respawn_at_ms = 0;
	s->restarting = s->stopped = s->killed = false;
	return 0;
}

static void children_signal(struct master *m, int number)
{
	for (int i = 0; i < m->slot_n; i++) {
		if (m->slot[i].pid)
			kill(m->slot[i].pid, number);
		m->slot[i].respawn_at_ms = 0;
	}
}

static void master_stop(struct master *m)
{
	if (m->stopping)
		return;
	fw_debug("stopping: workers drain");
	m->stopping = true;
	/* draining may take longer than the manager's default timeout */
	(void)fw_notify(&m->notify,
		"STOPPING=1\nEXTEND_TIMEOUT_USEC=%lld\nSTATUS=stopping: finishing and storing what is in flight",
		(long long)(m->config->drain_timeout_ms + STOP_EXTRA_MS) * 1000);
	m->leave_by_ms = fw_mono_ms() + m->config->drain_timeout_ms;
	children_signal(m, SIGTERM);
}

/* ---- what children say -----------------------------------------------------------------------

 * A child that was taken over may have written anything, and may write on while this reads.
 */

/* cap: of both. */
static void shared_text(char *out, const char *from, size_t cap)
{
	memcpy(out, from, cap);
	out[cap - 1] = 0;
}

static struct fw_err shared_err(const struct worker_shared *sh)
{
	struct fw_err err = {.rc = sh->err.rc};

	if (err.rc >= 0)
		err.rc = FW_EIO;
	shared_text(err.text, sh->err.text, sizeof(err.text));
	return err;
}

/* Sums over all children do not overflow. */
static int64_t shared_number(int64_t n)
{
	return FW_MIN(FW_MAX(n, INT64_C(0)), NUMBER_MAX);
}

/* Monotonic; 0: it has not started yet. A time to come would be no silence ever. */
static int64_t child_heartbeat_ms(const struct master *m, int i, int64_t now_ms)
{
	return FW_MIN(shared_number(atomic_load(&fw_meter_slot(m->meter, (size_t)i)->heartbeat_mono_ms)), now_ms);
}

/* ---- the death of a worker ------------------------------------------------------------------- */

static void child_schedule_respawn(struct child_slot *s, int64_t now_ms)
{
	if (now_ms - s->born_ms >= STEADY_MS)
		s->pause_ms = 0;
	s->respawn_at_ms = now_ms + s->pause_ms;
	s->pause_ms = s->pause_ms ? FW_MIN(s->pause_ms * 2, RESPAWN_MAX_MS) : RESPAWN_MIN_MS;
}

/*
 * The feed whose document the worker was reading when it died, or 0. Two documents may be read at
 * once: the thread that crashed has recorded which. A worker killed from outside (out of memory,
 * hung) records nothing: the large document is then the likelier cause.
 */
static int64_t worker_death_cause(struct worker_shared *sh)
{
	int64_t small = atomic_exchange(&sh->reading_feed_id, 0), large = atomic_exchange(&sh->reading_large_id, 0);
	int64_t told = atomic_exchange(&sh->crashed_reading_id, 0);

	if (told)
		return told == READING_NOTHING ? 0 : told;
	return large ? large : small;
}

/*
 * Tell the successor whose lease to end. Returns the feed that the dead worker was reading, or 0.
 */
static int64_t successor_inherit(struct master *m, int index)
{
	struct worker_shared *sh = child_shared(m, index);
	int64_t reading = worker_death_cause(sh);

	/* it died before it had reaped its own predecessor, so it claimed nothing */
	if (sh->predecessor_name[0]) {
		sh->predecessor_name[sizeof(sh->predecessor_name) - 1] = 0;
		return 0;
	}
	shared_text(sh->predecessor_name, sh->name, sizeof(sh->predecessor_name));
	sh->predecessor_feed_id = reading;
	return reading;
}

static int workers_left(const struct master *m)
{
	int n = 0;

	for (int i = 0; i < m->n; i++)
		n += m->slot[i].pid || m->slot[i].respawn_at_ms;
	return n;
}

/*
 * The first worker has retired. Another one drains and starts again as the first one: only a new
 * process gets the runner's socket.
 */
static void first_worker_choose(struct master *m)
{
	struct child_slot *s;
	int i = 0;

	while (!m->slot[i].pid && !m->slot[i].respawn_at_ms)
		i++;
	assert(i < m->n);
	m->first = i;
	s = &m->slot[i];
	if (!s->pid)
		return;
	fw_info("worker %d takes the duties of the first one: it drains and restarts", i);
	s->restarting = true;
	kill(s->pid, SIGTERM);
}

static void worker_retire(struct master *m, int index)
{
	char name[FW_WORKER_NAME_MAX];
	int left = workers_left(m);

	shared_text(name, child_shared(m, index)->name, sizeof(name));
	fw_info("worker %d (%s) was stopped by a control message; %d others go on", index, name, left);
	m->slot[index].retired = true;
	if (!left)
		master_stop(m);
	else if (index == m->first && !m->stopping && !m->o->once)
		first_worker_choose(m);
}

static void child_on_exit(struct master *m, int index, int status)
{
	struct worker_shared *sh = child_shared(m, index);
	struct child_slot *s = &m->slot[index];
	int64_t now_ms = fw_mono_ms();
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	int64_t reading;
	bool has_err = sh->err.rc != 0;
	struct fw_err err = shared_err(sh);
	char name[FW_WORKER_NAME_MAX + 40], own[FW_WORKER_NAME_MAX];

	shared_text(own, sh->name, sizeof(own));
	if (index >= m->n)
		(void)fw_snprintf(name, sizeof(name), "the server");
	else
		(void)fw_snprintf(name, sizeof(name), "worker %d (%s)", index, own);
	s->pid = 0;
	meter_child_end(m->meter, (size_t)index);
	/* not all that the server had accepted is stored */
	if (index >= m->n && m->stopping && code != WORKER_LEFT && !m->rc) {
		m->rc = err.rc;
		m->err = err;
		if (!has_err)
			fw_err_set(&m->err, FW_EIO,
				"the server was killed while it stopped: rows accepted in memory are lost");
	}
	/* the request is for all workers, and one that is dead just now would miss it */
	if (code == WORKER_STOP_REQUESTED)
		master_stop(m);
	if (code == WORKER_RETIRED) {
		worker_retire(m, index);
		return;
	}
	if (code == WORKER_STOP_REQUESTED || code == WORKER_DONE || (code == WORKER_LEFT && m->stopping))
		return;
	reading = index < m->n ? successor_inherit(m, index) : 0;
	if (code == WORKER_STORE || code == WORKER_SYSTEM) {
		/*
		 * An error at the very start is reported to the user; later it is an outage, unless
		 * waiting does not mend it
		 */
		if (now_ms - m->started_mono_ms < EARLY_MS || m->o->once || fw_err_is_permanent(err.rc)) {
			m->rc = code == WORKER_STORE ? err.rc : FW_EINVAL;
			m->err = err;
			master_stop(m);
			return;
		}
		fw_error("%s: %s", name, err.text);
		meter_child_restart(m->meter, (size_t)index);
	} else if (code == WORKER_LEFT) {
		if (!s->restarting)
			fw_info("%s was stopped from outside: it is replaced", name);
		s->pause_ms = 0;
	} else {
		meter_child_restart(m->meter, (size_t)index);
		if (WIFSIGNALED(status))
			fw_error("%s was killed by signal %d%s", name, WTERMSIG(status),
				reading ? " while reading a document" : "");
		else
			fw_error("%s exited with code %d", name, code);
		if (reading)
			fw_error("the document belonged to feed %lld", (long long)reading);
	}
	if (!m->stopping)
		child_schedule_respawn(s, now_ms);
}

/* ---- the runner ------------------------------------------------------------------------------ */

/* Runs in the runner's process, after the fork. */
static int runner_begin(struct master *m)
{
	struct runner_rules rules = runner_rules_of(m->config);
	unsigned have, lack;

	fw_sandbox_layers(m->config, FW_SANDBOX_WORKER, &have, &lack);
	/* as a new program, its memory holds no settings */
	if (have & FW_SANDBOX_LAYOUT && m->o->exec_args && child_exec_runner(m->runner_fd[1], &rules, m->o->exec_args))
		return EXIT_FAILURE;
	return runner_main(m->runner_fd[1], &rules);
}

/* Without rules there is no socket, and nobody starts a program. Returns 0 or an errno. */
static int runner_open_socket(struct master *m)
{
	struct runner_rules rules = runner_rules_of(m->config);

	return runner_rules_any(&rules) && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, m->runner_fd) ? errno :
														 0;
}

/*
 * The configuration was read again. By other rules the old socket ends at once, whoever holds it;
 * what its runner did ends too, and is repeated by the next one.
 */
static void runner_on_reload(struct master *m, const struct runner_rules *was)
{
	struct runner_rules rules = runner_rules_of(m->config);
	int e;

	if (runner_rules_equal(&rules, was))
		return;
	if (m->runner_fd[0] >= 0)
		shutdown(m->runner_fd[0], SHUT_RDWR);
	for (int i = 0; i < 2; i++)
		master_close(&m->runner_fd[i]);
	e = runner_open_socket(m);
	if (e)
		fw_error("commands of orders wait for the next reload: socket not created: %s", strerror(e));
}

/* Start the runner if a job waits for it. */
static void runner_check(struct master *m)
{
	struct pollfd job = {.fd = m->runner_fd[1], .events = POLLIN};
	int64_t now_ms = fw_mono_ms();
	pid_t pid;

	if (m->runner.pid || now_ms < m->runner.respawn_at_ms || poll(&job, 1, 0) <= 0)
		return;
	m->runner.born_ms = now_ms;
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(runner_begin(m));
	if (pid < 0) {
		fw_error("commands of orders wait: process not created: %s", strerror(errno));
		child_schedule_respawn(&m->runner, now_ms);
	} else {
		m->runner.pid = pid;
	}
}

static void runner_on_exit(struct master *m, int status)
{
	if (WIFSIGNALED(status))
		fw_error("the runner of orders' commands was killed by signal %d: the next job starts it again",
			WTERMSIG(status));
	else if (WEXITSTATUS(status)) /* 0: its socket was closed, by a reload */
		fw_error("the runner of orders' commands exited with code %d", WEXITSTATUS(status));
	m->runner.pid = 0;
	child_schedule_respawn(&m->runner, fw_mono_ms());
}

/* Its socket is closed at all other ends, so it ends; if it hangs it is killed. */
static void runner_finish(struct master *m)
{
	const struct timespec step = fw_timespec(RUNNER_END_STEP_MS);
	int64_t waited_ms = 0;

	while (m->runner.pid && waitpid(m->runner.pid, NULL, WNOHANG) == 0) {
		if (waited_ms >= RUNNER_END_MS)
			kill(m->runner.pid, SIGKILL);
		nanosleep(&step, NULL);
		waited_ms += RUNNER_END_STEP_MS;
	}
	m->runner.pid = 0;
}

/* ---- children that have ended ---------------------------------------------------------------- */

static void children_reap(struct master *m)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
		if (pid == m->runner.pid && (WIFEXITED(status) || WIFSIGNALED(status)))
			runner_on_exit(m, status);
		for (int i = 0; i < m->slot_n; i++) {
			if (m->slot[i].pid != pid)
				continue;
			m->slot[i].stopped = WIFSTOPPED(status);
			if (WIFEXITED(status) || WIFSIGNALED(status))
				child_on_exit(m, i, status);
		}
	}
}

/* ---- every tick ------------------------------------------------------------------------------ */

/*
 * Must the child be killed because it does not drain? silent_ms is 0 for a server, which sends no
 * heartbeat while it stores accepted rows.
 */
static bool child_ignores_stop(const struct master *m, const struct child_slot *s, int64_t silent_ms, int64_t now_ms)
{
	return m->stopping && now_ms >= m->leave_by_ms && (s->stopped || silent_ms > IGNORES_STOP_MS);
}

static void child_kill(struct master *m, int i)
{
	assert(m->slot[i].pid > 0); /* 0 would kill the whole process group */
	kill(m->slot[i].pid, SIGKILL);
	m->slot[i].killed = true;
}

/* Time since the child's last heartbeat, or since its start if there was none. */
static int64_t child_silent_ms(const struct master *m, int i, int64_t now_ms)
{
	int64_t last_ms = child_heartbeat_ms(m, i, now_ms);

	return now_ms - FW_MAX(last_ms ? last_ms : m->slot[i].born_ms, m->awake_ms);
}

static void children_check(struct master *m)
{
	int64_t now_ms = fw_mono_ms();

	/* after ^Z, for example: the workers may have been stopped too */
	if (now_ms - m->tick_ms > STOPPED_MS)
		m->awake_ms = now_ms;
	m->tick_ms = now_ms;
	for (int i = 0; i < m->slot_n; i++) {
		struct child_slot *s = &m->slot[i];
		int64_t silent_ms = child_silent_ms(m, i, now_ms);

		if (!s->pid && s->respawn_at_ms && now_ms >= s->respawn_at_ms) {
			if (child_spawn(m, i)) {
				fw_error("%s", m->err.text);
				child_schedule_respawn(s, now_ms);
			}
		} else if (!s->pid || s->killed) {
			continue;
		} else if (child_ignores_stop(m, s, i < m->n ? silent_ms : 0, now_ms)) {
			fw_error("%s %d killed: it does not respond, and drain_timeout_ms is over",
				i < m->n ? "worker" : "server", (int)s->pid);
			child_kill(m, i);
		} else if (i < m->n && silent_ms > HUNG_MS) {
			/*
			 * workers only: a killed server may lose rows it has accepted, so that is
			 * for the service manager's watchdog to decide
			 */
			fw_error("worker %d killed: no heartbeat for %d s", i, (int)(silent_ms / 1000));
			child_kill(m, i);
		}
	}
}

/*
 * A file that a child's sandbox permits was replaced (name servers and certificates change that
 * way). The child may not read the new file, but its successor may. The child drains first.
 */
static void children_restart_for_files(struct master *m)
{
	struct fw_sandbox_mark now;

	if (m->stopping || m->tick_ms - m->files_checked_ms < FILES_CHECK_MS)
		return;
	m->files_checked_ms = m->tick_ms;
	for (int i = 0; i < m->slot_n; i++) {
		struct child_slot *s = &m->slot[i];

		if (!s->pid || s->restarting)
			continue;
		fw_sandbox_mark(m->config, child_kind(m, i), &now);
		if (!fw_sandbox_is_stale(&s->mark, &now))
			continue;
		fw_info("a file that %s %d may read was replaced (resolv.conf, certificates, ...): it drains and "
			"restarts",
			i < m->n ? "worker" : "server", i < m->n ? i : 0);
		s->restarting = true;
		kill(s->pid, SIGTERM);
	}
}

static void master_add_up(const struct master *m, struct fw_run_stats *out)
{
	struct fw_meter_sum s;

	fw_meter_read(m->meter, &s);
	*out = (struct fw_run_stats){.run_id = m->started_ms,
		.elapsed_ms = fw_mono_ms() - m->started_mono_ms,
		.restarts = s.worker_restarts + s.server_restarts,
		.total = m->n ? shared_number(atomic_load(&child_shared(m, 0)->total)) : 0,
		.next_due_ms = m->n ? FW_MIN(atomic_load(&child_shared(m, m->first)->next_due_ms), NUMBER_MAX) : 0,
		.ok = s.visits[FW_VISIT_OK],
		.not_modified = s.visits[FW_VISIT_NOT_MODIFIED] + s.visits[FW_VISIT_SAME],
		.stale = s.count[FW_COUNT_STALE],
		.new_entries = s.count[FW_COUNT_NEW_ENTRIES],
		.changed_entries = s.count[FW_COUNT_CHANGED_ENTRIES],
		.wire_bytes = s.count[FW_COUNT_WIRE_BYTES],
		.body_bytes = s.count[FW_COUNT_BODY_BYTES],
		.deferred = s.count[FW_COUNT_DEFERRED],
		.in_flight = (uint32_t)s.in_flight,
		.workers = s.alive};
	for (size_t i = 0; i < FW_VISIT_KIND_N; i++)
		out->done += s.visits[i];
	out->failed = out->done - out->ok - out->not_modified;
	for (size_t i = 0; i < FW_METER_BUCKETS; i++)
		out->commits += s.timing[FW_TIMING_COMMIT].bucket[i];
}

/* After a run --once: collect the forecast and the measured times of the workers. */
static void master_collect_plan(const struct master *m, struct fw_run_stats *out)
{
	struct fw_run_forecast *c = &out->forecast;
	struct fw_meter_sum s;

	fw_meter_read(m->meter, &s);
	*c = (struct fw_run_forecast){.order = fw_plan_policy_name(fw_settings_order(m->config)),
		.slots = (int64_t)FW_MIN(s.slots, (uint64_t)NUMBER_MAX)};
	out->workers = (uint32_t)m->n;
	c->batch = fw_settings_batch(m->config, c->slots / FW_MAX(m->n, 1));
	for (int i = 0; i < m->n; i++) {
		const struct worker_shared *sh = child_shared(m, i);
		int64_t host_us = shared_number(sh->measured.host_us);
		char host[sizeof(sh->measured_host)];

		if (sh->forecast.feeds) {
			c->feeds = shared_number(sh->forecast.feeds);
			c->known = shared_number(sh->forecast.known);
			c->predicted_us = shared_number(sh->forecast.total_us);
		}
		c->took_us = FW_MAX(
			c->took_us, shared_number(atomic_load(&sh->last_done_us)) - m->started_mono_ms * 1000);
		c->sum_us += shared_number(sh->measured.sum_us);
		c->longest_us = FW_MAX(c->longest_us, shared_number(sh->measured.longest_us));
		if (host_us > c->host_us) {
			c->host_us = host_us;
			c->host_n = (int64_t)FW_MIN((uint64_t)sh->measured.host_n, (uint64_t)NUMBER_MAX);
			shared_text(host, sh->measured_host, sizeof(host));
			(void)fw_str_copy(c->host, sizeof(c->host), fw_str(host));
		}
	}
	c->slots_us = c->slots ? c->sum_us / c->slots : 0;
	c->bound_us = FW_MAX(FW_MAX(c->slots_us, c->longest_us), c->host_us);
}

static void master_progress(const struct master *m)
{
	struct fw_run_stats stats;

	if (!m->o->progress)
		return;
	master_add_up(m, &stats);
	m->o->progress(m->o->ctx, &stats);
}

/* ---- the service manager --------------------------------------------------------------------- */

/* All children run, with the current configuration. */
static bool children_are_up(const struct master *m)
{
	for (int i = 0; i < m->slot_n; i++) {
		if (m->slot[i].retired)
			continue;
		if (!m->slot[i].pid || m->slot[i].restarting || !child_heartbeat_ms(m, i, m->tick_ms))
			return false;
	}
	return true;
}

/*
 * An unresponsive child, or -1. A dead child does not count: it is replaced. A hung worker is
 * killed after HUNG_MS. So only what the master cannot repair lasts until the manager's own timeout
 * (WatchdogSec), which is longer.
 */
static int child_unresponsive(const struct master *m)
{
	for (int i = 0; i < m->slot_n; i++) {
		const struct child_slot *s = &m->slot[i];
		int64_t drain_ms = m->stopping || s->restarting ? m->config->drain_timeout_ms : 0;
		/* a starting server first replays its write-ahead log */
		bool begins = i == m->n && !child_heartbeat_ms(m, i, m->tick_ms);

		if (s->pid &&
			(s->stopped || s->killed ||
				(!begins && child_silent_ms(m, i, m->tick_ms) > HUNG_MS + drain_ms)))
			return i;
	}
	return -1;
}

static void manager_notify_status(struct master *m)
{
	const char *server = m->slot_n == m->n ? "no server" : m->slot[m->n].pid ? "a server" : "a server that is down";
	char unresponsive[40] = "", next[FW_RFC3339_MAX + 40] = "", ms[FW_RFC3339_MAX];
	int64_t now_ms = fw_now_ms(); /* wall clock: as next_due_ms */
	struct fw_run_stats s;

	master_add_up(m, &s);
	if (m->unresponsive >= 0)
		(void)fw_snprintf(unresponsive, sizeof(unresponsive), "%s %d is unresponsive; ",
			m->unresponsive < m->n ? "worker" : "server", (int)m->slot[m->unresponsive].pid);
	if (!s.in_flight && s.next_due_ms > now_ms)
		(void)fw_snprintf(next, sizeof(next), "; the next feed is due in %s",
			fw_duration_text(ms, s.next_due_ms - now_ms));
	(void)fw_notify(&m->notify,
		"STATUS=%s%s%u of %d workers, %s; %llu visits, %llu new entries, %llu failed; %u in flight%s",
		m->reload_error, unresponsive, s.workers, m->n, server, (unsigned long long)s.done,
		(unsigned long long)s.new_entries, (unsigned long long)s.failed, s.in_flight, next);
}

static void manager_notify(struct master *m)
{
	int was = m->unresponsive;

	if (m->notify.fd < 0)
		return;
	m->unresponsive = child_unresponsive(m);
	if (m->notify.watchdog_ms && m->tick_ms >= m->ping_ms && m->unresponsive < 0 &&
		fw_notify(&m->notify, "WATCHDOG=1"))
		m->ping_ms = m->tick_ms + m->notify.watchdog_ms / 3;
	if (m->stopping)
		return;
	if (!m->ready && children_are_up(m) && fw_notify(&m->notify, "READY=1")) {
		m->ready = true;
		m->status_ms = 0;
	}
	if (m->unresponsive != was)
		m->status_ms = 0;
	if (m->tick_ms >= m->status_ms) {
		manager_notify_status(m);
		m->status_ms = m->tick_ms + STATUS_MS;
	}
}

static void master_reload(struct master *m)
{
	struct fw_config *fresh = NULL, *old;
	struct runner_rules was;
	struct fw_err err;

	if (m->stopping)
		return;
	if (!m->o->reload) {
		fw_warn("SIGHUP ignored: this run cannot read its configuration again");
		return;
	}
	m->ready = false;
	m->reload_error[0] = 0;
	(void)fw_notify(&m->notify, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)fw_mono_us());
	if (m->o->reload(m->o->ctx, &fresh, &err) || fw_sandbox_check(fresh, master_child_kinds(m), &err)) {
		fw_error("SIGHUP: %s; the old configuration stays", err.text);
		(void)fw_snprintf(
			m->reload_error, sizeof(m->reload_error), "%.150s; the old configuration stays: ", err.text);
		fw_config_destroy(fresh);
		return;
	}
	was = runner_rules_of(m->config);
	old = m->reloaded;
	m->config = m->reloaded = fresh;
	runner_on_reload(m, &was);
	fw_config_destroy(old);
	fw_info("SIGHUP: configuration read again; children drain and restart");
	for (int i = 0; i < m->slot_n; i++) {
		if (!m->slot[i].pid)
			continue;
		m->slot[i].restarting = true;
		/* child_on_exit() starts the next one with the new configuration */
		kill(m->slot[i].pid, SIGTERM);
	}
}

/*
 * Did a worker see a control message that requests a reload? Each worker sees it in its own time,
 * some when the reload is under way: by its id it counts once.
 */
static bool master_reload_requested(struct master *m)
{
	const int64_t obeyed_id = m->reload_id;

	for (int i = 0; i < m->n; i++)
		m->reload_id = FW_MAX(m->reload_id, atomic_load(&child_shared(m, i)->reload_id));
	return m->reload_id > obeyed_id;
}

bool master_is_over(const struct master *m)
{
	for (int i = 0; i < m->slot_n; i++) {
		if (m->slot[i].pid || m->slot[i].respawn_at_ms)
			return false;
	}
	return true;
}

static void children_exit_now(struct master *m)
{
	children_signal(m, WORKER_EXIT_NOW);
	m->leave_by_ms = fw_mono_ms();
}

static void master_on_stop_request(struct master *m)
{
	if (!m->stop_requested_ms)
		m->stop_requested_ms = fw_mono_ms();
	else if (fw_mono_ms() - m->stop_requested_ms > BURST_MS)
		/* timeout(1), for example, sends the signal twice for one request */
		children_exit_now(m);
	master_stop(m);
}

void master_step(struct master *m, int number)
{
	if (number == SIGTERM || number == SIGINT || number == SIGQUIT)
		master_on_stop_request(m);
	if (master_reload_requested(m) || number == SIGHUP)
		master_reload(m);
	children_reap(m);
	children_check(m);
	runner_check(m);
	children_restart_for_files(m);
	fw_meter_master_usage(m->meter);
	master_progress(m);
	manager_notify(m);
	fw_log_report_lost();
}

/* ---- start and end --------------------------------------------------------------------------- */

static int64_t children_cpu_ms(int64_t *max_rss_bytes)
{
	struct rusage r;

	getrusage(RUSAGE_CHILDREN, &r);
	*max_rss_bytes = (int64_t)r.ru_maxrss * 1024;
	return ((int64_t)r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000 +
		(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1000;
}

int master_begin(struct master *m, const struct fw_config *c, const struct fw_run_options *o)
{
	int64_t unused;

	*m = (struct master){.config = c,
		.o = o,
		.n = o->serve_only ? 0 : fw_settings_workers(c),
		.pipe_fd = {-1, -1},
		.runner_fd = {-1, -1},
		.started_mono_ms = fw_mono_ms(),
		.started_ms = o->run_id ? o->run_id : fw_config_now_ms(c),
		.cpu_before_ms = children_cpu_ms(&unused),
		.notify = {.fd = -1},
		.unresponsive = -1};
	if (o->notify) {
		fw_notify_open(&m->notify);
		fw_notify_hide();
	}
	m->slot_n = m->n + (o->serve != NULL);
	m->meter = fw_meter_create((size_t)m->n, o->serve != NULL, sizeof(struct worker_shared));
	m->slot = calloc((size_t)m->slot_n, sizeof(*m->slot));
	if (!m->meter || !m->slot || pipe2(m->pipe_fd, O_CLOEXEC) || runner_open_socket(m))
		return m->rc = fw_err_set(&m->err, FW_EIO, "master not started: %s", strerror(errno));
	fw_meter_master_usage(m->meter);
	m->rc = fw_sandbox_check(c, master_child_kinds(m), &m->err);
	for (int i = 0; i < m->slot_n && !m->rc; i++)
		m->rc = child_spawn(m, i);
	if (m->rc)
		master_stop(m);
	return 0;
}

void master_report(const struct master *m, struct fw_run_stats *out)
{
	master_progress(m);
	master_add_up(m, out);
	if (m->o->once)
		master_collect_plan(m, out);
	out->cpu_ms = children_cpu_ms(&out->max_rss_bytes) - m->cpu_before_ms;
}

void master_finish(struct master *m)
{
	for (int i = 0; i < 2; i++) {
		master_close(&m->pipe_fd[i]);
		master_close(&m->runner_fd[i]);
	}
	runner_finish(m);
	fw_meter_destroy(m->meter);
	fw_notify_close(&m->notify);
	free(m->slot);
	fw_config_destroy(m->reloaded);
}

int fw_run(const struct fw_config *c, const struct fw_run_options *o, struct fw_run_stats *out, struct fw_err *err)
{
	/* blocked in a worker too, until it handles them */
	static const int NUMBER[] = {SIGCHLD, SIGTERM, SIGINT, SIGQUIT, SIGHUP, WORKER_EXIT_NOW};
	static const struct timespec TICK = {.tv_nsec = TICK_MS * 1000000}, NOW = {0};
	sigset_t signals, old;
	struct master m;

	*out = (struct fw_run_stats){0};
	sigemptyset(&signals);
	for (size_t i = 0; i < FW_N(NUMBER); i++)
		sigaddset(&signals, NUMBER[i]);
	sigprocmask(SIG_BLOCK, &signals, &old);
	if (!master_begin(&m, c, o)) {
		while (!master_is_over(&m))
			master_step(&m, sigtimedwait(&signals, NULL, &TICK));
		master_report(&m, out);
	}
	while (sigtimedwait(&signals, NULL, &NOW) > 0)
		/*
		 * drop pending signals: all children have exited, and the signal must not kill this
		 * process now
		 */
		;
	sigprocmask(SIG_SETMASK, &old, NULL);
	master_finish(&m);
	if (m.rc && err)
		*err = m.err;
	return m.rc;
}
