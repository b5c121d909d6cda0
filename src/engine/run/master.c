/* SPDX-License-Identifier: ISC */
/*
 * The master: forks the workers, watches them, starts them again, drains them, adds up what they count. It never touches the
 * network or the store, so nothing that comes from outside can hurt it.
 *
 * A worker that dies is replaced at once, and with growing pauses when its successors die too. What the dead one was reading is
 * handed to the successor, who ends its lease and charges that feed; a feed whose visit killed a worker twice is set aside.
 * A worker whose loop shows no sign of life for HUNG_MS is killed; when drain_timeout_ms are over, one that does not answer is. Should the
 * master itself be killed, the workers see the end of a pipe and drain; should all be killed, the next run finds what they held by their signs
 * of life (store_thread.c).
 *
 * Told to stop, the master tells the workers to drain; told again, it tells them to leave at once, with a signal of its own: a
 * terminal's ^C, or a supervisor that signals every process, reaches the workers too, and that must not count as the second time.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/run/child.h"
#include "engine/run/master.h"
#include "engine/settings.h"

#define TICK_MS 200
#ifdef FW_TEST_HOOKS
#define HUNG_MS (8 * FW_SECOND_MS)
#else
#define HUNG_MS (60 * FW_SECOND_MS)
#endif
#define DEAF_MS (5 * FW_SECOND_MS) /* without a sign of life, once it should have drained */
#define STOP_EXTRA_MS (30 * FW_SECOND_MS) /* after drain_timeout_ms */
#define BURST_MS 500
#define STOPPED_MS (2 * FW_SECOND_MS) /* between two ticks: the master itself did not run */
#define LOOK_MS (2 * FW_SECOND_MS) /* at the files that children may read */
#define STEADY_MS (30 * FW_SECOND_MS) /* one that lived this long was not born broken */
#define STATUS_MS (5 * FW_SECOND_MS) /* between two lines for the service manager */
#define EARLY_MS (5 * FW_SECOND_MS)
#define RESPAWN_MIN_MS 100
#define RESPAWN_MAX_MS (30 * FW_SECOND_MS)

static enum fw_sandbox_who who_of(const struct master *m, int index)
{
	return index < m->n ? FW_SANDBOX_WORKER : FW_SANDBOX_SERVER;
}

static unsigned whos(const struct master *m)
{
	return 1u << FW_SANDBOX_MASTER | (m->n ? 1u << FW_SANDBOX_WORKER : 0) | (m->slot_n > m->n ? 1u << FW_SANDBOX_SERVER : 0);
}

/* The child's: anew, with a memory layout of its own, where there is a cage; else as it was forked. */
static int begin(const struct master *m, int index)
{
	struct child c = {.config = m->config, .shared = m->shared, .meter = m->meter, .shared_fd = m->shared_fd, .index = index, .n = m->n,
		.slot_n = m->slot_n, .master_fd = m->pipe_fd[0], .once = m->o->once, .started_ms = m->started_ms, .serve = m->o->serve, .ctx = m->o->ctx};
	unsigned have, lack;
	int rc;

	close(m->pipe_fd[1]);
	fw_sandbox_layers(m->config, who_of(m, index), &have, &lack);
	if (!(have & FW_SANDBOX_LAYOUT) || !m->o->anew)
		return child_main(&c);
	rc = child_anew(&c, m->o->anew);
	if (fw_sandbox_failed(m->config, FW_SANDBOX_LAYOUT, -rc, &m->shared[index].err))
		return WORKER_SYSTEM;
	return child_main(&c);
}

static int spawn(struct master *m, int index)
{
	struct slot *s = &m->slot[index];
	pid_t pid;

	s->born_ms = fw_mono_ms(); /* also of one that cannot be made: the next try is not at once */
	meter_begin(fw_meter_slot(m->meter, (size_t)index));
	fw_sandbox_make(m->config, who_of(m, index));
	fw_sandbox_mark(m->config, who_of(m, index), &s->mark);
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		exit(begin(m, index));
	if (pid < 0)
		return fw_err_set(&m->err, FW_EIO, "no process could be made: %s; see ulimit -u", strerror(errno));
	s->pid = pid;
	atomic_store(&fw_meter_slot(m->meter, (size_t)index)->pid, pid);
	s->respawn_at_ms = 0;
	s->renewed = s->stopped = s->killed = false;
	return 0;
}

static void signal_all(struct master *m, int number)
{
	for (int i = 0; i < m->slot_n; i++) {
		if (m->slot[i].pid)
			kill(m->slot[i].pid, number);
		m->slot[i].respawn_at_ms = 0;
	}
}

static void stop(struct master *m)
{
	if (m->stopping)
		return;
	fw_debug("stopping: workers drain");
	m->stopping = true;
	/* it may take longer than the manager would wait by itself */
	(void)fw_notify(&m->notify, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%lld\nSTATUS=stopping: what is in flight is finished and stored",
		(long long)(m->config->drain_timeout_ms + STOP_EXTRA_MS) * 1000);
	m->leave_by_ms = fw_mono_ms() + m->config->drain_timeout_ms;
	signal_all(m, SIGTERM);
}

/* ---- the death of a worker ------------------------------------------------------------------- */

static void plan_respawn(struct slot *s, int64_t now_ms)
{
	if (now_ms - s->born_ms >= STEADY_MS)
		s->pause_ms = 0;
	s->respawn_at_ms = now_ms + s->pause_ms;
	s->pause_ms = s->pause_ms ? FW_MIN(s->pause_ms * 2, RESPAWN_MAX_MS) : RESPAWN_MIN_MS;
}

/*
 * The feed whose document it died of, or 0. Two may be read at the same time: the thread that failed tells which it was. Who is killed from
 * outside, out of memory or because it hangs, cannot tell: then it is rather the large one.
 */
static int64_t cause_of_death(struct worker_shared *sh)
{
	int64_t small = atomic_exchange(&sh->reading_feed_id, 0), large = atomic_exchange(&sh->reading_large_id, 0);
	int64_t told = atomic_exchange(&sh->died_reading_id, 0);

	if (told)
		return told == READING_NOTHING ? 0 : told;
	return large ? large : small;
}

/* Its successor is to give back what it held. Returns the feed it was reading, or 0. */
static int64_t inherit(struct master *m, int index)
{
	struct worker_shared *sh = &m->shared[index];
	int64_t reading = cause_of_death(sh);

	if (sh->dead_name[0])
		return 0; /* it died before it had buried its predecessor, thus before it borrowed anything */
	memcpy(sh->dead_name, sh->name, sizeof(sh->dead_name));
	sh->dead_feed_id = reading;
	return reading;
}

static void on_death(struct master *m, int index, int status)
{
	struct fw_meter_slot *meter = fw_meter_slot(m->meter, (size_t)index);
	struct worker_shared *sh = &m->shared[index];
	struct slot *s = &m->slot[index];
	int64_t now_ms = fw_mono_ms();
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	int64_t reading;
	char name[FW_WORKER_NAME_MAX + 40];

	if (index >= m->n)
		(void)fw_snprintf(name, sizeof(name), "the server");
	else
		(void)fw_snprintf(name, sizeof(name), "worker %d (%s)", index, sh->name);
	s->pid = 0;
	meter_end(meter);
	if (index >= m->n && m->stopping && code != WORKER_LEFT && !m->rc) { /* what it had accepted is not all stored */
		m->rc = sh->err.rc ? sh->err.rc : FW_EIO;
		m->err = sh->err;
		if (!sh->err.rc)
			fw_err_set(&m->err, FW_EIO, "the server was killed while it stopped: what it had accepted in memory is lost");
	}
	if (code == WORKER_TOLD)
		stop(m); /* all are meant, also one that is dead just now and would not hear of it */
	if (code == WORKER_TOLD || code == WORKER_DONE || (code == WORKER_LEFT && m->stopping))
		return;
	reading = index < m->n ? inherit(m, index) : 0;
	if (code == WORKER_STORE || code == WORKER_SYSTEM) {
		/* at the very start there is somebody to tell; later it is an outage */
		if (now_ms - m->started_mono_ms < EARLY_MS || m->o->once) {
			m->rc = code == WORKER_STORE ? (sh->err.rc ? sh->err.rc : FW_EIO) : FW_EINVAL;
			m->err = sh->err;
			stop(m);
			return;
		}
		fw_error("%s: %s", name, sh->err.text);
		meter_add(&meter->restarts, 1);
	} else if (code == WORKER_LEFT) {
		if (!s->renewed)
			fw_info("%s was stopped from outside: another takes its place", name);
		s->pause_ms = 0;
	} else {
		meter_add(&meter->restarts, 1);
		if (WIFSIGNALED(status))
			fw_error("%s was killed by signal %d%s", name, WTERMSIG(status), reading ? " while it read a document" : "");
		else
			fw_error("%s left with code %d", name, code);
		if (reading)
			fw_error("it was reading feed %lld", (long long)reading);
	}
	if (!m->stopping)
		plan_respawn(s, now_ms);
}

static void reap(struct master *m)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
		for (int i = 0; i < m->slot_n; i++) {
			if (m->slot[i].pid != pid)
				continue;
			m->slot[i].stopped = WIFSTOPPED(status);
			if (WIFEXITED(status) || WIFSIGNALED(status))
				on_death(m, i, status);
		}
	}
}

/* ---- every tick ------------------------------------------------------------------------------ */

/* It is to leave, and will not; silent_ms: of a server 0, which shows no signs of life while it stores what it has taken. */
static bool is_deaf(const struct master *m, const struct slot *s, int64_t silent_ms, int64_t now_ms)
{
	return m->stopping && now_ms >= m->leave_by_ms && (s->stopped || silent_ms > DEAF_MS);
}

static void put_down(struct master *m, int i)
{
	kill(m->slot[i].pid, SIGKILL);
	m->slot[i].killed = true;
}

/* For how long a child has shown no sign of life; one that is not up yet, since it was born. */
static int64_t silent(const struct master *m, int i, int64_t now_ms)
{
	int64_t beat_ms = atomic_load(&fw_meter_slot(m->meter, (size_t)i)->beat_mono_ms);

	return now_ms - FW_MAX(beat_ms ? beat_ms : m->slot[i].born_ms, m->awake_ms);
}

static void look_after(struct master *m)
{
	int64_t now_ms = fw_mono_ms();

	if (now_ms - m->tick_ms > STOPPED_MS)
		m->awake_ms = now_ms; /* ^Z, say: the workers may have slept as long and have yet to wake up */
	m->tick_ms = now_ms;
	for (int i = 0; i < m->slot_n; i++) {
		struct slot *s = &m->slot[i];
		int64_t silent_ms = silent(m, i, now_ms);

		if (!s->pid && s->respawn_at_ms && now_ms >= s->respawn_at_ms) {
			if (spawn(m, i)) {
				fw_error("%s", m->err.text);
				plan_respawn(s, now_ms);
			}
		} else if (!s->pid || s->killed) {
			continue;
		} else if (is_deaf(m, s, i < m->n ? silent_ms : 0, now_ms)) {
			fw_error("%s %d does not answer, and its time to drain is over (drain_timeout_ms): killed",
				i < m->n ? "worker" : "server", (int)s->pid);
			put_down(m, i);
		} else if (i < m->n && silent_ms > HUNG_MS) { /* a server that is killed may forget what it has taken: that is for the watchdog to decide */
			fw_error("worker %d shows no sign of life for %d s: killed", i, (int)(silent_ms / 1000));
			put_down(m, i);
		}
	}
}

/*
 * A file that a child may read has been replaced by another, which it may not: the child that follows may. Name servers and certificates
 * change so. What is in flight is finished and stored before.
 */
static void renew_moved(struct master *m)
{
	struct fw_sandbox_mark now;

	if (m->stopping || m->tick_ms - m->looked_ms < LOOK_MS)
		return;
	m->looked_ms = m->tick_ms;
	for (int i = 0; i < m->slot_n; i++) {
		struct slot *s = &m->slot[i];

		if (!s->pid || s->renewed)
			continue;
		fw_sandbox_mark(m->config, who_of(m, i), &now);
		if (!fw_sandbox_moved(&s->mark, &now))
			continue;
		fw_info("a file that %s %d may read was replaced (resolv.conf, certificates, ...): it finishes what it holds and starts anew",
			i < m->n ? "worker" : "server", i < m->n ? i : 0);
		s->renewed = true;
		kill(s->pid, SIGTERM);
	}
}

static void add_up(const struct master *m, struct fw_run_stats *out)
{
	struct fw_meter_sum s;

	fw_meter_read(m->meter, &s);
	*out = (struct fw_run_stats){.run_id = m->started_ms, .elapsed_ms = fw_mono_ms() - m->started_mono_ms,
		.restarts = s.worker_restarts + s.server_restarts, .total = m->n ? atomic_load(&m->shared[0].total) : 0,
		.next_due_ms = m->n ? atomic_load(&m->shared[0].next_due_ms) : 0,
		.ok = s.visits[FW_VISIT_OK], .not_modified = s.visits[FW_VISIT_NOT_MODIFIED] + s.visits[FW_VISIT_SAME],
		.stale = s.count[FW_COUNT_STALE], .new_entries = s.count[FW_COUNT_NEW_ENTRIES],
		.changed_entries = s.count[FW_COUNT_CHANGED_ENTRIES], .wire_bytes = s.count[FW_COUNT_WIRE_BYTES],
		.body_bytes = s.count[FW_COUNT_BODY_BYTES], .deferred = s.count[FW_COUNT_DEFERRED], .in_flight = (uint32_t)s.in_flight,
		.workers = s.alive};
	for (size_t i = 0; i < FW_VISIT_KIND_N; i++)
		out->done += s.visits[i];
	out->failed = out->done - out->ok - out->not_modified;
	for (size_t i = 0; i < FW_METER_BUCKETS; i++)
		out->commits += s.timing[FW_TIMING_COMMIT].bucket[i];
}

/* Once, when all is over: what the workers foretold and measured. */
static void compare(const struct master *m, struct fw_run_stats *out)
{
	struct fw_run_course *c = &out->course;
	struct fw_meter_sum s;

	fw_meter_read(m->meter, &s);
	*c = (struct fw_run_course){.order = fw_plan_policy_name(fw_settings_order(m->config)), .slots = (int64_t)s.slots};
	out->workers = (uint32_t)m->n;
	c->batch = fw_settings_batch(m->config, c->slots / FW_MAX(m->n, 1));
	for (int i = 0; i < m->n; i++) {
		const struct worker_shared *sh = &m->shared[i];

		if (sh->foretold.feeds) {
			c->feeds = sh->foretold.feeds;
			c->known = sh->foretold.known;
			c->predicted_us = sh->foretold.total_us;
		}
		c->took_us = FW_MAX(c->took_us, atomic_load(&sh->last_done_us) - m->started_mono_ms * 1000);
		c->sum_us += sh->measured.sum_us;
		c->longest_us = FW_MAX(c->longest_us, sh->measured.longest_us);
		if (sh->measured.host_us > c->host_us) {
			c->host_us = sh->measured.host_us;
			c->host_n = (int64_t)sh->measured.host_n;
			(void)fw_str_copy(c->host, sizeof(c->host), fw_str(sh->measured_host));
		}
	}
	c->slots_us = c->slots ? c->sum_us / c->slots : 0;
	c->bound_us = FW_MAX(FW_MAX(c->slots_us, c->longest_us), c->host_us);
}

static void progress(const struct master *m)
{
	struct fw_run_stats stats;

	if (!m->o->progress)
		return;
	add_up(m, &stats);
	m->o->progress(m->o->ctx, &stats);
}

/* ---- the service manager --------------------------------------------------------------------- */

/* Every child has begun with what is configured now, and works. */
static bool all_up(const struct master *m)
{
	for (int i = 0; i < m->slot_n; i++) {
		if (!m->slot[i].pid || m->slot[i].renewed || !atomic_load(&fw_meter_slot(m->meter, (size_t)i)->beat_mono_ms))
			return false;
	}
	return true;
}

/*
 * A child that stands still, or -1. One that died does no harm: another takes its place. A worker that hangs is killed after HUNG_MS, so
 * only what the master cannot mend comes up to the manager's own patience (WatchdogSec), which is longer.
 */
static int stands_still(const struct master *m)
{
	for (int i = 0; i < m->slot_n; i++) {
		const struct slot *s = &m->slot[i];
		int64_t drain_ms = m->stopping || s->renewed ? m->config->drain_timeout_ms : 0;
		/* a server that begins reads all of its spill first */
		bool begins = i == m->n && !atomic_load(&fw_meter_slot(m->meter, (size_t)i)->beat_mono_ms);

		if (s->pid && (s->stopped || s->killed || (!begins && silent(m, i, m->tick_ms) > HUNG_MS + drain_ms)))
			return i;
	}
	return -1;
}

static void tell_status(struct master *m)
{
	const char *server = m->slot_n == m->n ? "no server" : m->slot[m->n].pid ? "a server" : "a server that is down";
	char still[40] = "", next[FW_RFC3339_MAX + 40] = "", ms[FW_RFC3339_MAX];
	int64_t now_ms = fw_now_ms();
	struct fw_run_stats s;

	add_up(m, &s);
	if (m->still >= 0)
		(void)fw_snprintf(still, sizeof(still), "%s %d stands still; ", m->still < m->n ? "worker" : "server", (int)m->slot[m->still].pid);
	if (!s.in_flight && s.next_due_ms > now_ms)
		(void)fw_snprintf(next, sizeof(next), "; the next feed is due in %s", fw_duration_text(ms, s.next_due_ms - now_ms));
	(void)fw_notify(&m->notify, "STATUS=%s%s%u of %d workers, %s; %llu visits, %llu new entries, %llu failed; %u in flight%s", m->trouble, still, s.workers,
		m->n, server, (unsigned long long)s.done, (unsigned long long)s.new_entries, (unsigned long long)s.failed, s.in_flight, next);
}

static void tell_manager(struct master *m)
{
	int was = m->still;

	if (m->notify.fd < 0)
		return;
	m->still = stands_still(m);
	if (m->notify.watchdog_ms && m->tick_ms >= m->ping_ms && m->still < 0 && fw_notify(&m->notify, "WATCHDOG=1"))
		m->ping_ms = m->tick_ms + m->notify.watchdog_ms / 3;
	if (m->stopping)
		return;
	if (!m->ready && all_up(m) && fw_notify(&m->notify, "READY=1")) {
		m->ready = true;
		m->status_ms = 0;
	}
	if (m->still != was)
		m->status_ms = 0;
	if (m->tick_ms >= m->status_ms) {
		tell_status(m);
		m->status_ms = m->tick_ms + STATUS_MS;
	}
}

static void reload(struct master *m)
{
	struct fw_config *fresh = NULL;
	struct fw_err err;

	if (m->stopping)
		return;
	if (!m->o->reload) {
		fw_warn("SIGHUP: this run has no configuration to read again");
		return;
	}
	m->ready = false;
	m->trouble[0] = 0;
	(void)fw_notify(&m->notify, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)fw_mono_us());
	if (m->o->reload(m->o->ctx, &fresh, &err) || fw_sandbox_check(fresh, whos(m), &err)) {
		fw_error("SIGHUP: %s; the old configuration stays", err.text);
		(void)fw_snprintf(m->trouble, sizeof(m->trouble), "%.150s; the old configuration stays: ", err.text);
		fw_config_destroy(fresh);
		return;
	}
	fw_config_destroy(m->reloaded);
	m->config = m->reloaded = fresh;
	fw_info("SIGHUP: configuration read again; what runs finishes what it holds and starts anew");
	for (int i = 0; i < m->slot_n; i++) {
		if (!m->slot[i].pid)
			continue;
		m->slot[i].renewed = true;
		kill(m->slot[i].pid, SIGTERM); /* on_death starts the next one with what is configured now */
	}
}

/* By a message in the store, which each worker sees. */
static bool reload_asked(struct master *m)
{
	bool asked = false;

	for (int i = 0; i < m->n; i++)
		asked |= atomic_exchange(&m->shared[i].reload, false);
	return asked;
}

bool master_is_over(const struct master *m)
{
	for (int i = 0; i < m->slot_n; i++) {
		if (m->slot[i].pid || m->slot[i].respawn_at_ms)
			return false;
	}
	return true;
}

static void hurry(struct master *m)
{
	signal_all(m, WORKER_HURRY);
	m->leave_by_ms = fw_mono_ms();
}

static void told_to_stop(struct master *m)
{
	if (!m->told_ms)
		m->told_ms = fw_mono_ms();
	else if (fw_mono_ms() - m->told_ms > BURST_MS) /* timeout(1), for one, tells twice and means once */
		hurry(m);
	stop(m);
}

void master_step(struct master *m, int number)
{
	if (number == SIGTERM || number == SIGINT || number == SIGQUIT)
		told_to_stop(m);
	if (reload_asked(m) || number == SIGHUP)
		reload(m);
	reap(m);
	look_after(m);
	renew_moved(m);
	fw_meter_own_master(m->meter);
	progress(m);
	tell_manager(m);
	fw_log_own_up();
}

/* ---- from its begin to its end --------------------------------------------------------------- */

static int64_t children_took_ms(int64_t *max_rss_bytes)
{
	struct rusage r;

	getrusage(RUSAGE_CHILDREN, &r);
	*max_rss_bytes = (int64_t)r.ru_maxrss * 1024;
	return ((int64_t)r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000 + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1000;
}

static size_t shared_bytes(const struct master *m)
{
	return (size_t)m->slot_n * sizeof(*m->shared);
}

int master_begin(struct master *m, const struct fw_config *c, const struct fw_run_options *o)
{
	int64_t unused;

	*m = (struct master){.config = c, .o = o, .n = o->serve_only ? 0 : fw_settings_workers(c), .pipe_fd = {-1, -1}, .shared_fd = -1,
		.started_mono_ms = fw_mono_ms(), .started_ms = fw_now_ms(), .took_before_ms = children_took_ms(&unused), .notify = {.fd = -1}, .still = -1};
	if (o->notify) {
		fw_notify_open(&m->notify);
		fw_notify_hide();
	}
	m->slot_n = m->n + (o->serve != NULL);
	m->shared = child_memory(shared_bytes(m), &m->shared_fd);
	m->meter = fw_meter_create((size_t)m->n, o->serve != NULL);
	m->slot = calloc((size_t)m->slot_n, sizeof(*m->slot));
	if (!m->shared || !m->meter || !m->slot || pipe2(m->pipe_fd, O_CLOEXEC))
		return m->rc = fw_err_set(&m->err, FW_EIO, "the master could not start: %s", strerror(errno));
	fw_meter_own_master(m->meter);
	m->rc = fw_sandbox_check(c, whos(m), &m->err);
	for (int i = 0; i < m->slot_n && !m->rc; i++)
		m->rc = spawn(m, i);
	if (m->rc)
		stop(m);
	return 0;
}

void master_report(const struct master *m, struct fw_run_stats *out)
{
	progress(m);
	add_up(m, out);
	if (m->o->once)
		compare(m, out);
	out->cpu_ms = children_took_ms(&out->max_rss_bytes) - m->took_before_ms;
}

void master_finish(struct master *m)
{
	if (m->pipe_fd[0] >= 0) {
		close(m->pipe_fd[0]);
		close(m->pipe_fd[1]);
	}
	if (m->shared)
		munmap(m->shared, shared_bytes(m));
	if (m->shared_fd >= 0)
		close(m->shared_fd);
	fw_meter_destroy(m->meter);
	fw_notify_close(&m->notify);
	free(m->slot);
	fw_config_destroy(m->reloaded);
}

int fw_run(const struct fw_config *c, const struct fw_run_options *o, struct fw_run_stats *out, struct fw_err *err)
{
	/* blocked in a worker too, until it can answer */
	static const int NUMBER[] = {SIGCHLD, SIGTERM, SIGINT, SIGQUIT, SIGHUP, WORKER_HURRY};
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
		; /* all have left, which is what was wanted: it kills nobody now */
	sigprocmask(SIG_SETMASK, &old, NULL);
	master_finish(&m);
	if (m.rc && err)
		*err = m.err;
	return m.rc;
}
