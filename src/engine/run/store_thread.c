/* SPDX-License-Identifier: ISC */
/*
 * The store thread. It owns the only database connection of its process. It renews the worker's
 * lease and claims ahead (owner.h), commits outcomes in batches (commits.c), takes rows of other
 * programs (inbox.c), passes control messages on, and does maintenance when it has nothing else to
 * do. A step takes them in this order: control messages, commits, rows, claims.
 *
 * Outages: what fails for a passing reason is kept and retried with backoff. Nothing is claimed
 * meanwhile, so what is held stays bounded. A broken connection is replaced.
 *
 * Full disk: with less room than disk_free_min_bytes on the store's disk, claims and commits pause.
 * Heartbeats, control messages and retention go on: they take next to no room, or make some.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/offset_clock.h"
#include "base/str.h"
#include "engine/settings.h"
#include "engine/run/store_thread.h"
#include "api/clock_watch.h"
#include "api/retention.h"

#define WORKER_HEARTBEAT_MS (5 * FW_SECOND_MS)
/* poll interval for control messages, if the store does not announce them */
#define CONTROL_MS FW_SECOND_MS
#define CONTROL_STEP_MS 100  /* time for messages in one step */
#define COLLECT_N 32         /* outcomes in the ring that wake a thread that collects a batch */
#define CLAIM_MS 50          /* between claims, while the loop wants only a few */
#define IDLE_MS FW_SECOND_MS /* limit of one sleep */
#define INDEX_BUSY_MS 200
#define ONCE_INDEX_MS FW_SECOND_MS
#define ROOM_MS FW_SECOND_MS
#define PRUNE_MS FW_MINUTE_MS      /* often, so that each call does little */
#define PRUNE_MORE_MS FW_SECOND_MS /* if a call left work behind */
#define NEXT_DUE_MS FW_SECOND_MS   /* minimum between two queries for the next due time */
#define NEXT_DUE_SHARE 50          /* these queries take at most 1/50 of the store's time */
#define FAR_MS (100 * 366 * FW_DAY_MS)
#define OPEN_TIMEOUT_MS (2 * FW_SECOND_MS)
#define ONCE_OUTAGE_MS (10 * FW_SECOND_MS)

void channel_wake_store(struct channel *ch)
{
	if (atomic_exchange(&ch->woken, true))
		return;
	while (write(ch->wake_fd[1], "", 1) < 0 && errno == EINTR)
		;
}

/*
 * Lost wake-up: both sides use an atomic exchange on `collecting`, so the later one sees what the
 * earlier one wrote. Either the loop finds the store thread awake, or the store thread finds the
 * outcome.
 */
void channel_outcome_put(struct channel *ch, bool last)
{
	bool collecting = atomic_fetch_or(&ch->collecting, 0);

	if (last || !collecting || fw_ring_fill(&ch->outcomes) >= COLLECT_N ||
		atomic_load(&ch->held_bytes) >= ch->held_max / 4)
		channel_wake_store(ch);
}

/* Sleep until woken, at most ms. */
static void channel_sleep(struct channel *ch, int64_t ms)
{
	struct pollfd p = {.fd = ch->wake_fd[0], .events = POLLIN};

	(void)poll(&p, 1, (int)ms);
}

static void channel_wake_clear(struct channel *ch)
{
	char drop[64];

	while (read(ch->wake_fd[0], drop, sizeof(drop)) > 0)
		;
	atomic_store(&ch->woken, false);
	(void)atomic_exchange(&ch->collecting, 0);
}

/* ---- outages --------------------------------------------------------------------------------- */

static int store_thread_opened(void *ctx, struct fw_store *st, struct fw_err *err)
{
	struct store_thread *s = ctx;

	(void)err;
	s->st = st;
	owner_set_store(s->owner, store_of(st));
	s->step_at_ms = 0;
	return 0;
}

static void store_thread_lost(void *ctx)
{
	struct store_thread *s = ctx;

	owner_set_store(s->owner, NULL);
	s->st = NULL;
}

/* The link has failed. */
static void store_outage_count(struct store_thread *s)
{
	if (!s->is_out)
		meter_count(s->ch->o->meter, FW_COUNT_OUTAGES, 1);
	s->is_out = true;
	atomic_store_explicit(&s->ch->o->meter->unavailable, 1, memory_order_relaxed);
	meter_count(s->ch->o->meter, FW_COUNT_RETRIES, 1);
}

void store_outage(struct store_thread *s, int rc, const struct fw_err *err)
{
	assert(rc);
	/* what was not foreseen may pass too */
	(void)store_link_after(&s->link, fw_err_is_of_store(rc) ? rc : FW_EAGAIN, err);
	store_outage_count(s);
}

void store_outage_over(struct store_thread *s)
{
	if (store_link_after(&s->link, 0, NULL))
		return;
	atomic_store_explicit(&s->ch->o->meter->unavailable, 0, memory_order_relaxed);
	s->is_out = false;
}

/* Open the store again, if that is due. */
static void store_thread_reopen(struct store_thread *s)
{
	struct fw_err err;

	if (!store_link_wait_ms(&s->link) && !store_link_get(&s->link, &err))
		store_outage_count(s);
}

/* ---- room on the disk ------------------------------------------------------------------------ */

/* See "Full disk" at the top of this file. */
static void disk_room_check(struct store_thread *s, int64_t mono_ms)
{
	bool was = s->full_since_ms != 0, full;

	if (mono_ms < s->room_at_ms)
		return;
	full = fw_config_check_disk(s->ch->config, &s->full_err) != 0;
	s->room_at_ms = mono_ms + ROOM_MS;
	atomic_store_explicit(&s->ch->o->meter->disk_low, full, memory_order_relaxed);
	if (full == was)
		return;
	s->full_since_ms = full ? mono_ms : 0;
	if (!full) {
		fw_info("there is room on the store's disk again");
		return;
	}
	fw_warn("%s; fetching pauses, and fetched documents are kept", s->full_err.text);
	owner_requeue_waiting(s->owner); /* claims that have not started */
}

/* ---- control messages and heartbeat ---------------------------------------------------------- */

/*
 * A message to a worker by its name. One that was put before this worker started may be for its
 * predecessor, which died before it could obey.
 */
static bool control_is_ours(const struct store_thread *s, const struct fw_control *msg)
{
	return !msg->worker[0] || strcmp(msg->worker, s->ch->o->shared->name) == 0 ||
		(msg->id <= s->newest_id && strcmp(msg->worker, s->predecessor) == 0);
}

static void control_pause(struct store_thread *s, bool pause)
{
	struct worker_shared *sh = s->ch->o->shared;

	if (sh->paused != pause)
		fw_info(pause ? "paused" : "resumed");
	sh->paused = pause;
	if (pause)
		owner_requeue_waiting(s->owner); /* claims that have not started */
}

static void control_stop(struct store_thread *s, bool all)
{
	fw_info("stop requested by a control message%s", all ? "" : " to this worker");
	atomic_store(all ? &s->ch->stop_requested : &s->ch->retires, true);
	atomic_store(&s->ch->finished, true);
	uv_async_send(&s->ch->to_loop);
}

static void control_obey(struct store_thread *s, const struct fw_control *msg)
{
	switch (msg->kind) {
	case FW_CONTROL_STOP:
		control_stop(s, !msg->worker[0]);
		break;
	case FW_CONTROL_PAUSE:
	case FW_CONTROL_RESUME:
		control_pause(s, msg->kind == FW_CONTROL_PAUSE);
		break;
	case FW_CONTROL_RELOAD:
		/* no signal: the sandbox forbids it; the master obeys each message once */
		atomic_store(&s->ch->o->shared->reload_id, msg->id);
		break;
	default: /* of a newer version */
		break;
	}
}

/*
 * Obey the messages that have come, for at most CONTROL_STEP_MS: another program may send
 * thousands. Until all are obeyed, nothing is committed and claimed; the lease is kept.
 *
 * A stop is obeyed when the process has ended. If it dies before, its successor finds the message
 * again, so that control_id stays before it.
 */
static void control_poll(struct store_thread *s, int64_t mono_ms)
{
	struct worker_shared *sh = s->ch->o->shared;
	struct fw_control msg;
	struct fw_err err;

	if (!s->st || mono_ms < s->control_at_ms || store_link_wait_ms(&s->link))
		return;
	s->control_at_ms = mono_ms + CONTROL_MS;
	s->control_more = false;
	/* An error is not reported here: the next claim fails too and reports it. */
	while (!atomic_load(&s->ch->finished) && fw_store_control_get(s->st, sh->control_id, &msg, &err) == 0 &&
		msg.id > sh->control_id) {
		if (control_is_ours(s, &msg))
			control_obey(s, &msg);
		if (atomic_load(&s->ch->finished))
			break;
		sh->control_id = msg.id;
		s->control_more = fw_mono_ms() - mono_ms >= CONTROL_STEP_MS;
		if (s->control_more) {
			s->control_at_ms = 0;
			break;
		}
	}
}

/*
 * The heartbeat record, for people and metrics. The first one precedes the first claim: by it the
 * next run finds workers that were killed.
 */
static void heartbeat_store(struct store_thread *s, int64_t mono_ms)
{
	struct worker_shared *sh = s->ch->o->shared;
	struct fw_heartbeat b = {.worker = sh->name,
		.pid = getpid(),
		.started_ms = s->started_ms,
		.run_id = s->ch->o->run_id,
		.visits = s->visits,
		.new_entries = s->new_entries_n,
		.failures = s->failures,
		.in_flight = (uint32_t)atomic_load(&s->ch->o->meter->in_flight),
		.slots = s->ch->slots,
		.clock_ahead_ms = fw_offset_clock_ahead_ms(s->ch->config->store_clock)};
	struct fw_err err;
	int rc;

	if (!s->st || store_link_wait_ms(&s->link) ||
		(s->heartbeat_at_ms && mono_ms - s->heartbeat_at_ms < WORKER_HEARTBEAT_MS))
		return;
	rc = fw_store_heartbeat_put(s->st, &b, fw_config_now_ms(s->ch->config), &err);
	if (rc) {
		store_outage(s, rc, &err);
	} else {
		s->heartbeat_at_ms = mono_ms;
		if (s->ch->o->first) /* one worker says it for its machine */
			fw_clock_watch(&s->clock_wrong, b.clock_ahead_ms);
		/* other workers may have stored entries that the index lacks */
		s->index_more = true;
		store_outage_over(s);
	}
}

/* ---- maintenance ----------------------------------------------------------------------------- */

/*
 * One short step of the search index, when there is nothing to store. While transfers keep the
 * machine busy, a step every INDEX_BUSY_MS keeps the index up to date without slowing them. A run
 * once leaves the index to its end, and then takes at most ONCE_INDEX_MS: the next run does the
 * rest, and a search reports how much is missing.
 */
static bool store_thread_index(struct store_thread *s, int64_t mono_ms)
{
	bool busy = atomic_load(&s->ch->o->meter->in_flight) > s->ch->slots / 4;
	struct fw_err err;

	if (!s->st || !s->index_more || store_link_is_down(&s->link) || atomic_load(&s->ch->stopping) ||
		(s->ch->o->once && (!s->once_over || mono_ms - s->once_over_ms > ONCE_INDEX_MS)) ||
		(busy && mono_ms - s->index_at_ms < INDEX_BUSY_MS))
		return false;
	/* logs its errors; retried later */
	(void)fw_search_index_step(s->st, fw_config_now_ms(s->ch->config), &s->index_more, &err);
	s->index_at_ms = fw_mono_ms();
	return s->index_more;
}

/*
 * Retention: the first worker prunes what is older than the settings allow; a run --once does so at
 * its end.
 */
static void store_thread_prune(struct store_thread *s, int64_t mono_ms)
{
	bool more = false;
	struct fw_err err;

	if (!s->ch->o->first || !s->st || store_link_is_down(&s->link) || mono_ms < s->prune_at_ms ||
		(s->ch->o->once && !s->once_over) || atomic_load(&s->ch->stopping))
		return;
	/* the next claim notices a broken store */
	(void)fw_retention_run(s->st, s->ch->config, fw_config_now_ms(s->ch->config), &more, &err);
	s->prune_at_ms = fw_mono_ms() + (more ? PRUNE_MORE_MS : PRUNE_MS);
}

/* ---- claims ---------------------------------------------------------------------------------- */

/* One step of the owner: the lease and the due set. */
static void store_thread_step_owner(struct store_thread *s, int64_t mono_ms)
{
	bool lost = owner_is_lost(s->owner);
	struct fw_err err;
	int rc;

	if (!s->st || store_link_wait_ms(&s->link) || (!s->changed && mono_ms < s->step_at_ms))
		return;
	rc = owner_step(s->owner, s->changed, &s->step_at_ms, &err);
	s->changed = false;
	if (rc)
		store_outage(s, rc, &err);
	if (owner_is_lost(s->owner) != lost)
		uv_async_send(&s->ch->to_loop);
}

static bool store_thread_may_claim(const struct store_thread *s)
{
	return s->st && s->heartbeat_at_ms && !s->full_since_ms && !s->control_more && !s->ch->o->shared->paused &&
		!s->once_over && !atomic_load(&s->ch->stopping) && !store_link_wait_ms(&s->link) &&
		atomic_load(&s->ch->open_max);
}

/* Claim in batches, but do not let a quarter of the slots stay free to fill one. */
static void store_thread_claim(struct store_thread *s, int64_t mono_ms)
{
	struct channel *ch = s->ch;
	int64_t start_us = fw_mono_us();
	size_t max = atomic_load(&ch->open_max), n;
	struct owner_counts counts;
	struct fw_err err;
	int rc;

	if (!store_thread_may_claim(s))
		return;
	owner_count(s->owner, &counts);
	if (mono_ms < s->claim_at_ms && counts.open + ch->slots / 4 > max)
		return;
	atomic_store(&ch->nothing_due, false);
	rc = owner_claim(s->owner, max, &n, &err);
	if (rc) {
		store_outage(s, rc, &err);
		return;
	}
	s->claim_at_ms = mono_ms + CLAIM_MS;
	owner_count(s->owner, &counts);
	atomic_store(&ch->nothing_due, counts.open < max);
	atomic_store_explicit(
		&ch->all_claimed, ch->o->once && counts.open < max && !counts.waiting, memory_order_relaxed);
	if (!n)
		return;
	meter_time(ch->o->meter, FW_TIMING_CLAIM, fw_mono_us() - start_us);
	meter_count(ch->o->meter, FW_COUNT_CLAIMS, n);
	s->next_due_at_ms = 0;
	atomic_store(&ch->o->shared->next_due_ms, 0);
	uv_async_send(&ch->to_loop);
}

/*
 * Idle: nothing is claimed or uncommitted. Publish when the next feed is due, for the status line.
 */
static void next_due_publish(struct store_thread *s)
{
	int64_t began_ms = fw_mono_ms(), now_ms = fw_config_now_ms(s->ch->config), n, wake_ms;
	struct owner_counts counts;
	struct fw_err err;

	owner_count(s->owner, &counts);
	if (!s->st || s->ch->o->once || !s->ch->o->first || counts.open || counts.done ||
		began_ms < s->next_due_at_ms || store_link_is_down(&s->link))
		return;
	if (fw_store_pending(s->st, now_ms + FAR_MS, &n, &wake_ms, &err))
		return; /* the next step fails too, and logs it */
	if (n && wake_ms <= now_ms)
		wake_ms = 0;
	else if (wake_ms != FW_NO_DATE)
		wake_ms += fw_now_ms() - now_ms; /* wall clock: people read it here */
	atomic_store(&s->ch->o->shared->next_due_ms, wake_ms);
	s->next_due_at_ms = fw_mono_ms() + FW_MAX(NEXT_DUE_MS, NEXT_DUE_SHARE * (fw_mono_ms() - began_ms));
}

/* ---- waiting --------------------------------------------------------------------------------- */

int64_t store_thread_wait_ms(const struct store_thread *s, int64_t mono_ms)
{
	int64_t until_ms = mono_ms + IDLE_MS;
	struct owner_counts counts;

	if (store_link_wait_ms(&s->link))
		return FW_MAX(FW_MIN(until_ms - mono_ms, store_link_wait_ms(&s->link)), INT64_C(1));
	if (s->control_more || inbox_is_due(s))
		return 1;
	until_ms = FW_MIN(FW_MIN(until_ms, s->step_at_ms), s->inbox_at_ms);
	if (s->full_since_ms)
		return FW_MAX(FW_MIN(until_ms, s->room_at_ms) - mono_ms, INT64_C(1));
	if (s->n)
		until_ms = FW_MIN(until_ms, s->batch_since_ms + s->ch->config->batch_ms);
	owner_count(s->owner, &counts);
	if (store_thread_may_claim(s) && !atomic_load(&s->ch->nothing_due) &&
		counts.open < atomic_load(&s->ch->open_max))
		until_ms = FW_MIN(until_ms, s->claim_at_ms);
	return FW_MAX(until_ms - mono_ms, INT64_C(1));
}

static void store_thread_sleep(struct store_thread *s)
{
	int64_t ms = store_thread_wait_ms(s, fw_mono_ms());
	bool news = false;
	struct fw_err err;

	atomic_store(&s->ch->collecting, s->n > 0);
	if (!s->st || store_link_wait_ms(&s->link) || fw_store_wait(s->st, s->ch->wake_fd[0], ms, &news, &err))
		channel_sleep(s->ch, ms);
	if (news)
		s->control_at_ms = s->inbox_at_ms = 0;
	s->changed = s->changed || news;
	channel_wake_clear(s->ch);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct dead_workers {
	struct fw_buf names; /* names, each with its NUL */
	int64_t run_id;      /* our run; its workers are reaped by their successors (predecessor_reap()) */
};

static int dead_workers_add(void *ctx, const struct fw_heartbeat *b)
{
	struct dead_workers *d = ctx;

	if (b->run_id != d->run_id && fw_worker_is_dead(b->worker))
		fw_buf_add(&d->names, b->worker, strlen(b->worker) + 1);
	return d->names.rc;
}

/*
 * Reap the workers that were killed together with their master: end their leases. It is not known
 * what they were reading, so no feed is charged: a machine that stops is not a document's fault.
 */
static int dead_workers_reap(struct store_thread *s, struct fw_err *err)
{
	struct dead_workers d = {.run_id = s->ch->o->run_id};
	/* older leases have expired */
	int64_t since_ms = fw_config_now_ms(s->ch->config) - s->ch->config->lease_ms - FW_MINUTE_MS;
	int rc = fw_store_heartbeat_list(s->st, since_ms, dead_workers_add, &d, err);

	if (d.names.rc)
		rc = fw_no_memory(err);
	for (size_t at = 0; at < d.names.len && !rc; at += strlen(d.names.p + at) + 1)
		rc = fw_store_reap(s->st, d.names.p + at, 0, err);
	fw_buf_finish(&d.names);
	if (fw_err_is_permanent(rc))
		return rc;
	if (rc)
		fw_warn("leases of dead workers were not ended: %s; they expire by themselves", err->text);
	return 0;
}

/*
 * If a network was permitted since the last run, the feeds that it had blocked are due, in a run
 * once too.
 */
static int store_thread_unblock(struct store_thread *s, struct fw_err *err)
{
	int64_t now_ms = s->ch->o->due_before_ms ? s->ch->o->due_before_ms : fw_config_now_ms(s->ch->config);
	size_t n;
	int rc = maintenance_unblock(s->st, s->ch->config, now_ms, &n, err);

	if (!rc && n)
		fw_info("allow_networks or deny_networks has changed: %zu blocked feeds are due again", n);
	return rc;
}

/*
 * Reap our predecessor: end its lease, and charge the feed it was reading. After a passing error
 * this worker retries, or its own successor does.
 */
static int predecessor_reap(struct store_thread *s, struct fw_err *err)
{
	struct worker_shared *sh = s->ch->o->shared;
	int rc = sh->predecessor_name[0] ? fw_store_reap(s->st, sh->predecessor_name, sh->predecessor_feed_id, err) : 0;

	if (fw_err_is_of_store(rc))
		return rc;
	if (sh->predecessor_name[0])
		memcpy(s->predecessor, sh->predecessor_name, sizeof(s->predecessor));
	if (rc)
		fw_warn("the lease of %s was not ended: %s; it expires by itself", sh->predecessor_name, err->text);
	sh->predecessor_name[0] = '\0';
	return 0;
}

/* The store is open: reap dead workers, read the control state. A passing error may be retried. */
static int store_thread_begin(struct store_thread *s, struct fw_err *err)
{
	struct worker_shared *sh = s->ch->o->shared;
	struct fw_control newest;
	int rc = predecessor_reap(s, err);

	if (!rc && s->ch->o->first) {
		rc = dead_workers_reap(s, err);
		rc = rc ? rc : store_thread_unblock(s, err);
	}
	if (rc)
		return rc;
	rc = inbox_take_all(s, s->ch->o->once, err);
	rc = rc ? rc : fw_store_control_get(s->st, -1, &newest, err);
	if (rc)
		return rc;
	s->newest_id = newest.id;
	/* a successor goes on after its predecessor's last message, and stays paused */
	if (!sh->listening) {
		sh->control_id = newest.id;
		sh->paused = newest.paused;
	}
	sh->listening = true;
	if (s->ch->o->once && sh->paused)
		return fw_err_set(err, FW_EINVAL,
			"the workers of this store are paused (to resume, run 'feedwheel resume --all')");
	if (s->ch->o->once && s->ch->o->first && atomic_load(&sh->total) == 0)
		rc = once_begin(s, err);
	return rc;
}

/*
 * The first opening. Workers that start together block each other for a moment. A database server
 * may start later than its workers: a continuous run waits for it until a stop is requested.
 */
int store_thread_open(struct store_thread *s)
{
	bool waits = !s->ch->o->once && fw_store_is_remote(s->ch->config->store);
	struct fw_err *err = &s->ch->o->shared->err;
	int64_t start_ms = fw_mono_ms(), left_ms;

	for (;;) {
		bool is_open = store_link_get(&s->link, err) != NULL;
		int rc = is_open ? store_thread_begin(s, err) : err->rc;

		if (!rc) {
			store_outage_over(s);
			return WORKER_DONE;
		}
		if (!fw_err_is_transient(rc))
			return WORKER_STORE;
		if (is_open)
			store_outage(s, rc, err);
		else
			store_outage_count(s);
		if (!waits && (rc != FW_EAGAIN || fw_mono_ms() - start_ms > OPEN_TIMEOUT_MS))
			return WORKER_STORE;
		while ((left_ms = store_link_wait_ms(&s->link)) > 0) {
			channel_sleep(s->ch, left_ms);
			channel_wake_clear(s->ch);
			if (atomic_load(&s->ch->stopping))
				return WORKER_LEFT;
		}
	}
}

int store_thread_init(struct store_thread *s, struct channel *ch)
{
	size_t max = ch->visit_max;

	*s = (struct store_thread){.ch = ch};
	s->link = (struct store_link){.config = ch->config,
		.who = "visits",
		.waits = "they wait",
		.opened = store_thread_opened,
		.lost = store_thread_lost,
		.ctx = s};
	s->owner = s->ch->owner;
	s->batch = calloc(max, sizeof(struct visit *));
	s->claim = calloc(max, sizeof(struct claim *));
	s->outcome = calloc(max, sizeof(*s->outcome));
	s->started_ms = fw_config_now_ms(s->ch->config);
	s->index_more = true; /* the index may be out of date */
	s->prune_at_ms = s->ch->o->once ? 0 : fw_mono_ms() + PRUNE_MS;
	if (s->ch->o->once) {
		struct fw_plan_rules rules;

		fw_settings_plan(s->ch->config, s->ch->slots, &rules);
		s->bounds = fw_plan_bounds_create(&rules);
	}
	return s->batch && s->claim && s->outcome ? 0 : FW_ENOMEM;
}

/*
 * Waiting does not mend an unusable store. If it is unavailable, or its disk is full, a continuous
 * run waits for it; a draining one waits for drain_timeout_ms, and a run --once, for which a person
 * waits, for ONCE_OUTAGE_MS.
 * Visits that were not stored are not lost: the next run repeats them.
 */
static bool store_thread_gave_up(const struct store_thread *s, int64_t mono_ms)
{
	int64_t limit = s->ch->o->once ? ONCE_OUTAGE_MS : s->ch->config->drain_timeout_ms;
	int64_t since_ms = store_link_is_down(&s->link) ? s->link.down_since_ms : s->full_since_ms;

	if (store_link_is_unusable(&s->link)) {
		s->ch->o->shared->err = s->link.err; /* the master ends the run */
		return true;
	}
	if (!since_ms || (!s->ch->o->once && !s->last_since_ms))
		return false;
	if (mono_ms - FW_MAX(since_ms, s->last_since_ms) < limit)
		return false;
	s->ch->o->shared->err = store_link_is_down(&s->link) ? s->link.err : s->full_err;
	fw_error("giving up: %s not stored; the next run repeats that",
		FW_COUNT_OF((int64_t)s->n, "visit is", "visits are"));
	return true;
}

/* Is all stored and the lease ended? */
static bool store_thread_has_left(struct store_thread *s)
{
	if (s->n || fw_ring_fill(&s->ch->outcomes))
		return false;
	return owner_has_left(s->owner);
}

/*
 * Maintenance, when there is nothing to store and all shards have been read. True: call again at
 * once.
 */
static bool store_thread_maintain(struct store_thread *s, int64_t mono_ms)
{
	const struct worker_options *o = s->ch->o;
	struct owner_counts counts;

	if (s->n || fw_ring_fill(&s->ch->outcomes))
		return false;
	owner_count(s->owner, &counts);
	if (counts.unread)
		return s->st && !store_link_wait_ms(&s->link);
	store_thread_prune(s, mono_ms);
	if (s->st && !store_link_is_down(&s->link) && !atomic_load(&s->ch->stopping))
		maintenance_run(&s->maintenance, s->st, o->shared->name, o->meter, o->first, mono_ms);
	next_due_publish(s);
	return store_thread_index(s, mono_ms);
}

enum store_next store_thread_step(struct store_thread *s, int *code)
{
	struct channel *ch = s->ch;
	int64_t mono_ms = fw_mono_ms();
	bool last = atomic_load(&ch->loop_done);

	assert(s->n <= ch->visit_max);
	if (last && !s->last_since_ms) {
		s->last_since_ms = mono_ms;
		store_link_try_now(&s->link); /* drained during an outage: once more */
	}
	store_thread_reopen(s);
	inbox_take_control(s, mono_ms);
	control_poll(s, mono_ms);
	disk_room_check(s, mono_ms);
	commits_receive(s);
	if (s->st && !s->full_since_ms && !s->control_more && commits_due(s, mono_ms))
		commits_store(s);
	if (atomic_load(&ch->stopping))
		owner_leave(s->owner);
	if (last && !s->n)
		s->step_at_ms = 0; /* the lease ends */
	heartbeat_store(s, mono_ms);
	store_thread_step_owner(s, mono_ms);
	inbox_take_feeds(s, mono_ms);
	store_thread_claim(s, mono_ms);
	*code = WORKER_DONE;
	if (last && store_thread_has_left(s))
		return STORE_END;
	*code = WORKER_STORE;
	if (store_thread_gave_up(s, mono_ms))
		return STORE_END;
	if (store_thread_maintain(s, mono_ms) || (ch->o->once && once_is_finished(s)))
		return STORE_GO_ON;
	return STORE_SLEEP;
}

static int store_thread_run(struct store_thread *s)
{
	int code;

	for (;;) {
		switch (store_thread_step(s, &code)) {
		case STORE_GO_ON:
			break;
		case STORE_SLEEP:
			store_thread_sleep(s);
			break;
		case STORE_END:
			return code;
		}
	}
}

void store_thread_finish(struct store_thread *s)
{
	store_link_close(&s->link);
	fw_plan_bounds_destroy(s->bounds);
	free(s->batch);
	free(s->claim);
	free(s->outcome);
}

void *store_thread_main(void *arg)
{
	struct store_thread s;
	struct channel *ch = arg;
	intptr_t code = WORKER_DONE;

	if (store_thread_init(&s, ch)) {
		fw_err_set(&ch->o->shared->err, FW_ENOMEM, "out of memory for %zu visits (lower 'concurrency')",
			ch->visit_max);
		code = WORKER_SYSTEM;
	} else {
		code = store_thread_open(&s);
	}
	if (code == WORKER_DONE)
		code = store_thread_run(&s);
	store_thread_finish(&s);
	atomic_store(&ch->store_thread_ended, true);
	uv_async_send(&ch->to_loop);
	return (void *)code;
}
