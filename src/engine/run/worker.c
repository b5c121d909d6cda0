/* SPDX-License-Identifier: ISC */
/*
 * The life of a worker's loop thread: signals, heartbeat, draining, the end. Claims and visits are
 * in transfers.c. The thread never blocks: no SQL, no disk, no name look-up.
 *
 * Draining starts at a signal, a control message, the end of a run --once, or the loss of the
 * master. Nothing new starts, waiting claims go back, transfers in flight get drain_timeout_ms;
 * then they are cancelled and their feeds are due as before. At WORKER_EXIT_NOW the process exits
 * at once.
 *
 * When the lease is lost, what is in flight is cancelled, because other workers own those hosts
 * now. The same happens when the store is unavailable and the lease's safe time is over.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "api/sender.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/run/worker_parts.h"

#define HEARTBEAT_EVERY_MS 500
/* limit for one large document: no linear parse takes as long */
#define READING_MAX_MS (30 * FW_SECOND_MS)
#define VERDICT_MIN 64        /* minimum number of deferred verdicts; otherwise one for each slot */
#define STRAGGLER_CHECK_MS 25 /* interval of checks for stragglers in a run --once */
/*
 * Limits of the due set, at about 370 bytes a feed with its host. A run --once plans all that is in
 * it; a worker that runs on needs some feeds for each shard, and for each transfer.
 */
#define DUE_MAX_ONCE 50000
#define DUE_MAX_RUN 16384
#define DUE_PER_SLOT 8

uint64_t worker_random(struct worker *w)
{
	w->rnd ^= w->rnd << 13;
	w->rnd ^= w->rnd >> 7;
	w->rnd ^= w->rnd << 17;
	return w->rnd;
}

void worker_finish_drain(struct worker *w)
{
	if (w->draining && !w->in_flight && !w->held_n && !w->parser.n && !w->verdict_n &&
		!atomic_load(&w->ch.loop_done)) {
		atomic_store(&w->ch.loop_done, true);
		channel_wake_store(&w->ch);
	}
}

/* Lift the backpressure when the store thread has caught up. */
static void worker_resume_reading(struct worker *w)
{
	if (w->draining || atomic_load(&w->ch.held_bytes) < w->ch.held_max)
		fw_fetcher_hold(w->fetcher, false);
}

/* ---- draining and the end -------------------------------------------------------------------- */

static void worker_on_drain_timeout(uv_timer_t *t)
{
	struct worker *w = t->data;

	fw_info("%zu transfers cancelled at drain_timeout_ms; their feeds are due as before",
		w->in_flight + w->parser.n);
	transfers_cancel_all(w);
	worker_finish_drain(w);
}

void worker_drain(struct worker *w)
{
	if (w->draining)
		return;
	w->draining = true;
	if (w->ch.sender)
		fw_sender_stop(w->ch.sender);
	atomic_store(&w->ch.open_max, 0);
	atomic_store(&w->ch.stopping, true);
	channel_wake_store(&w->ch);
	fw_fetcher_hold(w->fetcher, false);
	transfers_release_held(w);
	transfers_settle_verdicts(w);
	if (w->in_flight || w->parser.n)
		uv_timer_start(&w->drain_timer, worker_on_drain_timeout, (uint64_t)w->ch.config->drain_timeout_ms, 0);
	worker_finish_drain(w);
}

static void worker_close_all(struct worker *w)
{
	if (w->closing)
		return;
	assert(atomic_load(&w->ch.store_thread_ended)); /* nothing can be stored any more */
	w->closing = true;
	worker_drain(w);
	if (w->in_flight || w->parser.n) /* the store thread has given up: waiting is pointless */
		worker_on_drain_timeout(&w->drain_timer);
	parser_thread_close(&w->parser);
	uv_close((uv_handle_t *)&w->ch.to_loop, NULL);
	uv_close((uv_handle_t *)&w->heartbeat_timer, NULL);
	uv_close((uv_handle_t *)&w->drain_timer, NULL);
	uv_close((uv_handle_t *)&w->gap_timer, NULL);
	uv_close((uv_handle_t *)&w->straggler_timer, NULL);
	uv_close((uv_handle_t *)&w->signals, NULL);
	close(w->signal_fd);
	uv_close((uv_handle_t *)&w->master, NULL);
	fw_fetcher_destroy(w->fetcher);
	w->fetcher = NULL;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void worker_follow_lease(struct worker *w)
{
	if (owner_is_lost(w->ch.owner)) {
		transfers_cancel_all(w);
	} else if (w->in_flight && fw_mono_ms() >= owner_safe_until_ms(w->ch.owner)) {
		fw_warn("the store does not answer and the lease is about to expire: %u transfers cancelled; their "
			"feeds are due as before",
			w->in_flight);
		transfers_cancel(w);
	}
}

void worker_round(struct worker *w)
{
	transfers_take_recycled(w);
	if (atomic_load(&w->ch.finished))
		worker_drain(w);
	worker_follow_lease(w);
	transfers_settle_verdicts(w);
	worker_resume_reading(w);
	transfers_start(w);
	worker_finish_drain(w);
}

static void worker_on_async(uv_async_t *async)
{
	struct worker *w = async->data;

	if (!atomic_load(&w->ch.store_thread_ended)) {
		worker_round(w);
		return;
	}
	transfers_take_recycled(w);
	worker_close_all(w);
}

static void worker_on_heartbeat(uv_timer_t *t)
{
	struct worker *w = t->data;

	/* no heartbeat while one document takes too long: the master then kills this worker */
	if (!w->parser.since_ms || fw_mono_ms() - w->parser.since_ms < READING_MAX_MS)
		atomic_store(&w->o->meter->heartbeat_mono_ms, fw_mono_ms());
	meter_usage_update(&w->o->meter->usage);
	fw_log_report_lost();
	if (!w->closing)
		worker_round(w);
}

static void worker_on_straggler_timer(uv_timer_t *t)
{
	transfers_settle_verdicts(t->data);
	transfers_abandon_stragglers(t->data);
}

static void worker_on_signal(struct worker *w, int number)
{
	if (number == WORKER_EXIT_NOW) {
		fw_warn("exiting at once: what is in flight is fetched again later");
		_exit(WORKER_LEFT);
	}
	fw_debug("signal %d: draining", number);
	worker_drain(w);
}

static void worker_on_signals(uv_poll_t *handle, int status, int events)
{
	struct worker *w = handle->data;
	struct signalfd_siginfo info;

	(void)status;
	(void)events;
	while (read(w->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		worker_on_signal(w, (int)info.ssi_signo);
}

static void worker_on_master(uv_poll_t *handle, int status, int events)
{
	struct worker *w = handle->data;

	(void)status;
	(void)events;
	uv_poll_stop(handle);
	fw_warn("the master is gone: draining");
	worker_drain(w);
}

/* ---- setting up ------------------------------------------------------------------------------ */

/* As many transfers as wanted, or as the limit of descriptors allows. Raises the soft limit. */
static uint32_t worker_slots_allowed(int64_t wanted)
{
	int64_t need = fw_settings_files(wanted);
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r))
		return (uint32_t)wanted;
	r.rlim_cur = r.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &r);
	if (r.rlim_cur != RLIM_INFINITY && (int64_t)r.rlim_cur < need) {
		int64_t fit = fw_settings_transfers((int64_t)r.rlim_cur);

		fw_warn("concurrency %lld reduced: it needs %lld file descriptors and %lld are allowed; using %lld (to "
			"raise the limit, use ulimit -n)",
			(long long)wanted, (long long)need, (long long)r.rlim_cur, (long long)fit);
		return (uint32_t)fit;
	}
	return (uint32_t)wanted;
}

static int worker_channel_init(struct worker *w)
{
	const struct fw_config *c = w->o->config;
	struct channel *ch = &w->ch;

	ch->o = w->o;
	ch->config = c;
	ch->slots = worker_slots_allowed(c->concurrency);
	atomic_store_explicit(&w->o->meter->slots, ch->slots, memory_order_relaxed);
	ch->claims_max = ch->slots + FW_MIN((size_t)ch->slots / 2 + 1, (size_t)256);
	ch->pending_max = (size_t)c->batch_visits + (size_t)c->batch_visits / 2;
	w->verdict_max = FW_MAX(ch->slots, VERDICT_MIN);
	ch->visit_max = 3 * ch->claims_max + ch->pending_max + URGENT_SLOTS + w->verdict_max;
	ch->held_max = 2 * (size_t)c->batch_bytes;
	visit_rules_of(c, &ch->rules);
	ch->rules.run_id = w->o->run_id;
	if (fw_ring_init(&ch->outcomes, ch->visit_max) || fw_ring_init(&ch->recycled, ch->visit_max))
		return FW_ENOMEM;
	if (pipe2(ch->wake_fd, O_NONBLOCK | O_CLOEXEC))
		return FW_EIO;
	return 0;
}

static size_t worker_due_max(const struct worker *w)
{
	size_t wanted = FW_MAX((size_t)DUE_MAX_RUN, (size_t)w->ch.slots * DUE_PER_SLOT);

	return w->o->once ? DUE_MAX_ONCE : FW_MIN(wanted, (size_t)DUE_MAX_ONCE);
}

static void worker_owner_rules(struct worker *w, struct owner_rules *r)
{
	const struct fw_config *c = w->ch.config;

	*r = (struct owner_rules){.worker = w->o->shared->name,
		.lease_ms = c->lease_ms,
		.slots = w->ch.slots,
		.host_concurrency = (uint32_t)c->host_concurrency,
		.host_gap_ms = c->host_gap_ms,
		.due_max = worker_due_max(w),
		.slow_us = c->slow_ms * 1000,
		.backlog_ms = c->backlog_ms,
		.once = w->o->once,
		.due_before_ms = w->o->due_before_ms};
	r->workers = w->o->once ? (uint32_t)w->o->workers : 0;
	fw_settings_plan(c, w->ch.slots, &r->plan);
	if (!w->o->once && c->slow_percent_max < 100)
		r->slow_max = FW_MAX((size_t)w->ch.slots * (size_t)c->slow_percent_max / 100, 1);
}

static int64_t worker_owner_clock(void *ctx)
{
	(void)ctx;
	return fw_mono_ms();
}

static int worker_owner_init(struct worker *w)
{
	struct owner_rules r;

	worker_owner_rules(w, &r);
	w->ch.owner = owner_create(&r, NULL, worker_owner_clock, NULL);
	if (w->o->once)
		w->batch = (size_t)fw_settings_batch(w->ch.config, w->ch.slots);
	w->seed = worker_random(w);
	w->held_end = &w->held;
	w->cooldowns = name_cooldowns_create(worker_random(w));
	return w->ch.owner && w->cooldowns ? 0 : FW_ENOMEM;
}

static int worker_visits_init(struct worker *w)
{
	uint32_t slots = w->ch.slots + URGENT_SLOTS;
	size_t n = w->ch.visit_max;

	w->visit = calloc(n, sizeof(*w->visit));
	w->in_slot = calloc(slots, sizeof(*w->in_slot));
	w->free_slot = calloc(slots, sizeof(*w->free_slot));
	w->verdict_queue = calloc(w->verdict_max, sizeof(struct visit *));
	if (!w->visit || !w->in_slot || !w->free_slot || !w->verdict_queue)
		return FW_ENOMEM;
	for (size_t i = 0; i < n; i++) {
		w->visit[i].slot = -1;
		w->visit[i].next = w->free;
		w->free = &w->visit[i];
	}
	for (uint32_t i = slots; i > 0; i--)
		w->free_slot[w->free_slot_n++] = (int)i - 1;
	return 0;
}

/*
 * The signals stay blocked from the fork to the end, in all threads: one that comes during the last
 * steps of a worker does not kill it, so that its exit code is heard.
 */
static int worker_signals_init(struct worker *w, struct fw_err *err)
{
	static const int NUMBER[] = {SIGTERM, SIGINT, SIGQUIT, WORKER_EXIT_NOW};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < FW_N(NUMBER); i++)
		sigaddset(&set, NUMBER[i]);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	w->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (w->signal_fd < 0 || uv_poll_init(&w->loop, &w->signals, w->signal_fd) ||
		uv_poll_start(&w->signals, UV_READABLE, worker_on_signals))
		return fw_err_set(err, FW_EIO, "signals cannot be handled: %s", strerror(errno));
	w->signals.data = w;
	return 0;
}

static int worker_handles_init(struct worker *w, struct fw_err *err)
{
	int rc;

	if (uv_loop_init(&w->loop) || uv_async_init(&w->loop, &w->ch.to_loop, worker_on_async) ||
		uv_timer_init(&w->loop, &w->heartbeat_timer) || uv_timer_init(&w->loop, &w->drain_timer) ||
		uv_timer_init(&w->loop, &w->gap_timer) || uv_timer_init(&w->loop, &w->straggler_timer))
		return fw_err_set(err, FW_EIO, "event loop not created: %s", strerror(errno));
	w->ch.to_loop.data = w->heartbeat_timer.data = w->drain_timer.data = w->gap_timer.data =
		w->straggler_timer.data = w;
	rc = worker_signals_init(w, err);
	if (rc)
		return rc;
	if (uv_poll_init(&w->loop, &w->master, w->o->master_fd) ||
		uv_poll_start(&w->master, UV_READABLE | UV_DISCONNECT, worker_on_master))
		return fw_err_set(err, FW_EIO, "the master cannot be watched: %s", strerror(errno));
	w->master.data = w;
	rc = fw_settings_net(w->o->config, w->ch.slots + URGENT_SLOTS, &w->net, err);
	if (rc)
		return rc;
	w->net.fetch.eager_bytes = PARSER_LARGE_BYTES;
	rc = fw_fetcher_create(&w->loop, &w->net.fetch, &w->fetcher, err);
	if (rc)
		return rc;
	w->parser = (struct parser_thread){.loop = &w->loop,
		.fetcher = w->fetcher,
		.rules = &w->ch.rules,
		.config = w->ch.config,
		.shared = w->o->shared,
		.done = transfers_on_read};
	parser_thread_init(&w->parser);
	return reading_catch_crashes(w->o->shared, err);
}

void worker_finish(struct worker *w)
{
	/* some visits are not stored if the store stayed unavailable */
	for (size_t i = 0; w->visit && i < w->ch.visit_max; i++) {
		fw_fetch_finish(&w->visit[i].fetch);
		fw_arena_finish(&w->visit[i].arena);
	}
	owner_destroy(w->ch.owner);
	free(w->visit);
	free(w->in_slot);
	free(w->free_slot);
	free(w->verdict_queue);
	name_cooldowns_destroy(w->cooldowns);
	fw_ring_finish(&w->ch.outcomes);
	fw_ring_finish(&w->ch.recycled);
	if (w->ch.wake_fd[1]) {
		close(w->ch.wake_fd[0]);
		close(w->ch.wake_fd[1]);
	}
}

int worker_init(struct worker *w, const struct worker_options *o)
{
	int rc;

	memset(w, 0, sizeof(*w));
	w->o = o;
	fw_worker_name(o->shared->name, sizeof(o->shared->name), o->index);
	if (getrandom(&w->rnd, sizeof(w->rnd), 0) != (ssize_t)sizeof(w->rnd) || !w->rnd)
		w->rnd = (uint64_t)fw_mono_us() << 20 ^ (uint64_t)getpid();
	rc = worker_channel_init(w);
	if (!rc)
		rc = worker_visits_init(w);
	if (!rc)
		rc = worker_owner_init(w);
	w->started_us = fw_mono_us();
	if (rc)
		fw_err_set(&o->shared->err, rc, "worker not started: %s",
			rc == FW_ENOMEM ? "out of memory" : strerror(errno));
	return rc;
}

static void worker_on_sender_idle(void *ctx)
{
	channel_wake_store(ctx);
}

/* The first worker delivers the matches of orders. */
static int worker_sender_open(struct worker *w, struct fw_err *err)
{
	struct fw_sender_options o = {.config = w->o->config, .idle = worker_on_sender_idle, .ctx = &w->ch};

	return !w->o->first ? 0 : fw_sender_open(&o, &w->ch.sender, err);
}

/*
 * Tune malloc. Bodies and documents come and go in bursts: large blocks go back to the system at
 * once, and both threads share one heap. glibc's defaults (a growing threshold, a heap for each
 * thread) use a quarter more memory and save no measurable time.
 */
static void malloc_tune(void)
{
#ifdef __GLIBC__
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 64 * 1024);
	mallopt(M_TRIM_THRESHOLD, 128 * 1024);
	mallopt(M_TOP_PAD, 64 * 1024);
#endif
}

int fw_worker_main(const struct worker_options *o)
{
	/* calloc() does not align to cache lines */
	struct worker *w = aligned_alloc(_Alignof(struct worker), sizeof(*w));
	void *code = NULL;
	int rc;

	if (!w)
		return WORKER_SYSTEM;
	malloc_tune();
	rc = worker_init(w, o);
	rc = rc ? rc : worker_handles_init(w, &o->shared->err);
	if (rc)
		return WORKER_SYSTEM;
	atomic_store(&o->meter->heartbeat_mono_ms, fw_mono_ms());
	meter_usage_update(&o->meter->usage);
	uv_timer_start(&w->heartbeat_timer, worker_on_heartbeat, HEARTBEAT_EVERY_MS, HEARTBEAT_EVERY_MS);
	transfers_start(w); /* publishes the wanted number of claims */
	if (o->once && o->config->straggler_timeout_ms)
		uv_timer_start(&w->straggler_timer, worker_on_straggler_timer, STRAGGLER_CHECK_MS, STRAGGLER_CHECK_MS);
	rc = worker_sender_open(w, &o->shared->err);
	if (rc)
		return WORKER_SYSTEM;
	rc = pthread_create(&w->ch.store_thread, NULL, store_thread_main, &w->ch);
	if (rc) {
		fw_err_set(&o->shared->err, FW_EIO, "store thread not created: %s", strerror(rc));
		return WORKER_SYSTEM;
	}
	uv_run(&w->loop, UV_RUN_DEFAULT);
	pthread_join(w->ch.store_thread, &code);
	fw_sender_close(w->ch.sender);
	uv_loop_close(&w->loop);
	rc = (int)(intptr_t)code;
	if (rc == WORKER_DONE && !atomic_load(&w->ch.finished))
		rc = WORKER_LEFT;
	else if (rc == WORKER_DONE && atomic_load(&w->ch.stop_requested))
		rc = WORKER_STOP_REQUESTED;
	else if (rc == WORKER_DONE && atomic_load(&w->ch.retires))
		rc = WORKER_RETIRED;
	worker_finish(w);
	free(w);
	return rc;
}
