/* SPDX-License-Identifier: ISC */
/*
 * The store thread: owns the one database connection of its process. Claims ahead (claims.c), commits outcomes in batches and gives
 * leases back (commits.c), passes control messages on, does upkeep when there is nothing better to do.
 *
 * Outages: what fails for a passing reason is kept and tried again with back-off (nothing is claimed meanwhile, so what is held stays
 * bounded); on a broken connection the store is opened anew.
 *
 * A disk with less room than disk_free_min_bytes stops claims and commits too, until there is room. Heartbeats, messages and retention
 * go on: they take next to nothing, or make room.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/settings.h"
#include "engine/storer.h"
#include "engine/unblock.h"
#include "feedwheel/ingest.h"

#define BEAT_MS (5 * FW_SECOND_MS)
#define CONTROL_MS 400 /* between looks for messages, where the store does not wake us */
#define FIRST_PATIENCE_MS FW_MINUTE_MS    /* how long a feed that a person asked for is looked for, before the ordinary way has to do */
#define FIRST_BACK_MS (2 * FW_SECOND_MS)  /* in which one that is lent may come back from a worker that had not begun it */
#define COLLECT_N 32 /* outcomes that are worth waking up for, when a batch is open */
#define UPKEEP_BUSY_MS 200
#define ONCE_UPKEEP_MS FW_SECOND_MS
#define ROOM_MS FW_SECOND_MS
#define PRUNE_MS FW_MINUTE_MS              /* often, so that it is little each time */
#define PRUNE_MORE_MS FW_SECOND_MS        /* when a call did not get to the end */
#define PRUNE_ENTRIES_MS (6 * FW_HOUR_MS) /* seldom, for it looks at all of them */
#define OPEN_PATIENCE_MS (2 * FW_SECOND_MS)
#define ONCE_OUTAGE_MS (10 * FW_SECOND_MS)

void fw_lane_wake_store(struct lane *l)
{
	if (atomic_exchange(&l->woken, true))
		return;
	while (write(l->wake_fd[1], "", 1) < 0 && errno == EINTR)
		;
}

/* Both sides exchange: who comes second sees what the other did before. The loop finds the store thread awake, or that one the outcome. */
void fw_lane_outcome_put(struct lane *l, bool last)
{
	bool collecting = atomic_fetch_or(&l->collecting, 0);

	if (last || !collecting || fw_ring_fill(&l->outcomes) >= COLLECT_N || atomic_load(&l->held_bytes) >= l->held_max / 4)
		fw_lane_wake_store(l);
}

static void wake_taken(struct lane *l)
{
	char drop[64];

	while (read(l->wake_fd[0], drop, sizeof(drop)) > 0)
		;
	atomic_store(&l->woken, false);
	(void)atomic_exchange(&l->collecting, 0);
}

/* ---- outages ------------------------------------------------------------------------------------------------------------------ */

static void ask_later(struct storer *s, const char *doing, const struct fw_err *err)
{
	int64_t wait = retry_later(&s->retry);

	if (!s->outage_since_ms) {
		s->outage_since_ms = fw_mono_ms();
		meter_count(s->l->o->meter, FW_COUNT_OUTAGES, 1);
	}
	s->outage_err = *err;
	atomic_store_explicit(&s->l->o->meter->away, 1, memory_order_relaxed);
	meter_count(s->l->o->meter, FW_COUNT_RETRIES, 1);
	fw_warn("%s: %s; nothing is lost, next try in %d ms", doing, err->text, (int)wait);
}

static void reopen(struct storer *s)
{
	struct fw_err err;

	fw_store_close(s->st);
	s->st = NULL;
	if (fw_config_store(s->l->config, FW_STORE_CREATE, &s->st, &err))
		ask_later(s, "opening the store", &err);
}

void storer_outage(struct storer *s, const char *doing, int rc, const struct fw_err *err)
{
	ask_later(s, doing, err);
	if (retry_reopens(&s->retry, rc, s->l->config))
		reopen(s);
}

void storer_outage_over(struct storer *s)
{
	if (s->retry.pause_ms)
		fw_info("the store answers again");
	atomic_store_explicit(&s->l->o->meter->away, 0, memory_order_relaxed);
	s->retry = (struct retry){0};
	s->outage_since_ms = 0;
}

/* ---- room on the disk -------------------------------------------------------------------------------- */

/* Below disk_free_min_bytes nothing is claimed and nothing is committed; see the top of this file. */
static void look_for_room(struct storer *s, int64_t mono_ms)
{
	bool was = s->full_since_ms != 0, full;

	if (mono_ms < s->room_at_ms)
		return;
	full = fw_config_room(s->l->config, &s->full_err) != 0;
	s->room_at_ms = mono_ms + ROOM_MS;
	atomic_store_explicit(&s->l->o->meter->disk_low, full, memory_order_relaxed);
	if (full == was)
		return;
	s->full_since_ms = full ? mono_ms : 0;
	if (!full) {
		fw_info("there is room on the store's disk again");
		return;
	}
	fw_warn("%s; nothing is fetched meanwhile, and what was is kept", s->full_err.text);
	atomic_store(&s->l->unqueue, true); /* what has not begun */
	uv_async_send(&s->l->to_loop);
}

/* ---- control, upkeep, waiting --------------------------------------------------------------------------------------------------------- */

static void control(struct storer *s, int64_t mono_ms)
{
	struct worker_shared *sh = s->l->o->shared;
	struct fw_control msg;
	struct fw_err err;

	if (!s->st || mono_ms < s->control_at_ms || s->retry.at_ms > mono_ms)
		return;
	s->control_at_ms = mono_ms + CONTROL_MS;
	/* a store that fails here fails the next claim too, and that is told; a message that nobody knows is passed over */
	while (fw_store_control_take(s->st, sh->control_id, &msg, &err) == 0 && msg.id > sh->control_id) {
		sh->control_id = msg.id;
		if (msg.kind == FW_CONTROL_STOP) {
			fw_info("told to stop");
			atomic_store(&s->l->told, true);
			atomic_store(&s->l->finished, true);
			uv_async_send(&s->l->to_loop);
		} else if (msg.kind == FW_CONTROL_PAUSE || msg.kind == FW_CONTROL_RESUME) {
			sh->paused = msg.kind == FW_CONTROL_PAUSE;
			fw_info(sh->paused ? "paused" : "resumed");
		} else if (msg.kind == FW_CONTROL_FETCH || msg.kind == FW_CONTROL_FETCH_LENT) {
			s->first_at_ms = 0;
			s->first_until_ms = mono_ms + FIRST_PATIENCE_MS;
			s->first_back_ms = msg.kind == FW_CONTROL_FETCH_LENT ? mono_ms + FIRST_BACK_MS : 0;
			if (msg.kind == FW_CONTROL_FETCH_LENT && s->alive) {
				atomic_store(&s->l->unqueue, true);
				uv_async_send(&s->l->to_loop);
			}
		} else if (msg.kind == FW_CONTROL_RELOAD && msg.id > s->newest_id) { /* else this worker was born after it */
			atomic_store(&s->l->o->shared->reload, true); /* it may send no signals */
		}
	}
}

void storer_beat_fill(struct storer *s, struct fw_beat *b)
{
	struct worker_shared *sh = s->l->o->shared;

	*b = (struct fw_beat){.worker = sh->name, .pid = getpid(), .started_ms = s->started_ms, .run_id = s->l->o->run_id,
		.visits = s->visits, .new_entries = s->news, .failures = s->failures,
		.in_flight = (uint32_t)atomic_load(&s->l->o->meter->in_flight), .slots = s->l->slots};
}

/* The first one goes before the first claim: by it the next start finds the leases that are left when everything is killed. */
static void beat(struct storer *s, int64_t mono_ms)
{
	struct fw_beat b;
	struct fw_commit c = {.beat = &b};
	struct fw_err err;
	int rc;

	if (!s->st || s->retry.at_ms > mono_ms || (s->beat_at_ms && mono_ms - s->beat_at_ms < BEAT_MS))
		return;
	storer_beat_fill(s, &b);
	rc = fw_store_commit(s->st, &c, &err);
	if (rc) {
		storer_outage(s, "the sign of life", rc, &err);
	} else {
		s->beat_at_ms = mono_ms;
		s->upkeep_more = true; /* others may have stored something that the index lacks */
		storer_outage_over(s);
	}
}

/*
 * A short step of housekeeping, when there is nothing to store. While transfers keep the machine busy only now and then, so that the
 * index keeps up without slowing them; a --once leaves it to its end, and then takes no longer than ONCE_UPKEEP_MS: what is left is
 * done by the next run, and a search says how much that is.
 */
static bool upkeep(struct storer *s, int64_t mono_ms)
{
	bool busy = atomic_load(&s->l->o->meter->in_flight) > s->l->slots / 4, more = false;
	struct fw_err err;
	int rc;

	if (!s->st || !s->upkeep_more || s->retry.pause_ms || atomic_load(&s->l->stopping) ||
	    (s->l->o->once && (!s->once_over || mono_ms - s->once_over_ms > ONCE_UPKEEP_MS)) ||
	    (busy && mono_ms - s->upkeep_at_ms < UPKEEP_BUSY_MS))
		return false;
	rc = fw_store_upkeep(s->st, fw_now_ms(), &more, &err);
	if (rc && rc != FW_EUNSUP && rc != FW_EAGAIN)
		fw_warn("upkeep of the store: %s", err.text);
	s->upkeep_more = !rc && more;
	s->upkeep_at_ms = fw_mono_ms();
	return s->upkeep_more;
}

/* Forget what is older than the settings want it kept: one worker's business, now and then; a --once does it at its end. */
static void prune(struct storer *s, int64_t mono_ms)
{
	const struct fw_config *c = s->l->config;
	int64_t now_ms = fw_now_ms(), n = 0;
	bool entries, more;
	struct fw_err err;
	int rc;

	if (s->l->o->index || !s->st || s->retry.pause_ms || mono_ms < s->prune_at_ms || (s->l->o->once && !s->once_over) ||
	    atomic_load(&s->l->stopping))
		return;
	(void)fw_keep(s->st, c, now_ms, &more); /* a store that is gone is found by the next claim */
	s->prune_at_ms = fw_mono_ms() + (more ? PRUNE_MORE_MS : PRUNE_MS);
	if (!c->keep_visits_ms && !c->keep_entries_ms)
		return;
	entries = c->keep_entries_ms && mono_ms >= s->prune_entries_at_ms;
	rc = fw_store_prune(s->st, c->keep_visits_ms ? now_ms - c->keep_visits_ms : 0, entries ? now_ms - c->keep_entries_ms : 0, &n,
		&err);
	if (rc && rc != FW_EUNSUP)
		fw_warn("forgetting old visits and entries: %s; it is tried again later", err.text);
	else if (n)
		fw_debug("%lld old visits and entries forgotten", (long long)n);
	if (entries)
		s->prune_entries_at_ms = fw_mono_ms() + PRUNE_ENTRIES_MS;
}

/* Does the store end a wait by itself when somebody adds or asks for something? */
static bool wakes(const struct storer *s)
{
	return s->st && s->st->driver->wait;
}

static int64_t wait_ms(const struct storer *s, int64_t mono_ms)
{
	int64_t ms = STORER_IDLE_MS;

	if (s->full_since_ms)
		return FW_MAX(FW_MIN(ms, s->room_at_ms - mono_ms), 1);
	if (s->retry.at_ms)
		ms = FW_MIN(ms, s->retry.at_ms - mono_ms);
	else if (s->n)
		ms = FW_MIN(ms, s->batch_since_ms + s->l->config->batch_ms - mono_ms);
	if (!wakes(s) && !s->retry.at_ms)
		ms = FW_MIN(ms, s->control_at_ms - mono_ms);
	if (s->first_until_ms && !s->retry.at_ms && !s->l->o->shared->paused)
		ms = FW_MIN(ms, s->first_at_ms - mono_ms);
	if (!s->retry.at_ms && atomic_load(&s->l->want) && !s->l->o->shared->paused)
		ms = FW_MIN(ms, FW_MAX(s->next_claim_ms, s->claimed_at_ms + STORER_PORTION_MS) - mono_ms);
	return FW_MAX(ms, 1);
}

static void sleep_until_something(struct storer *s)
{
	int64_t ms = wait_ms(s, fw_mono_ms());
	bool changed = false;
	struct fw_err err;

	atomic_store(&s->l->collecting, s->n > 0);
	/* where it has to be looked for, only a worker with nothing in hand looks for what others add */
	if (s->st && (wakes(s) || !s->alive) && !s->retry.at_ms && !s->l->o->once &&
	    fw_store_wait(s->st, s->l->wake_fd[0], ms, &changed, &err) == 0) {
		if (changed) {
			s->next_claim_ms = 0;
			s->control_at_ms = 0;
		}
	} else {
		struct pollfd p = {.fd = s->l->wake_fd[0], .events = POLLIN};

		(void)poll(&p, 1, (int)ms);
	}
	wake_taken(s->l);
}

/* ---- life -------------------------------------------------------------------------------------------------------------------------------- */

struct dead {
	char **name;
	size_t n;
	int64_t run_id; /* ours: of its workers the master knows more, namely what they were reading */
};

static int dead_note(void *ctx, const struct fw_beat *b)
{
	struct dead *d = ctx;
	char **grown;

	if (b->run_id == d->run_id || !fw_worker_is_dead(b->worker))
		return 0;
	grown = reallocarray(d->name, d->n + 1, sizeof(*grown));
	if (!grown)
		return FW_ENOMEM;
	d->name = grown;
	d->name[d->n] = fw_str_dup(fw_str(b->worker));
	return d->name[d->n] && ++d->n ? 0 : FW_ENOMEM;
}

/*
 * Workers that were killed together with their master, by whatever hand, left leases behind that nobody will give back. What they
 * were reading is not known, so no feed is charged with their death: a machine that stops is not a document's fault.
 */
static void bury_the_dead(struct storer *s)
{
	struct dead d = {.run_id = s->l->o->run_id};
	int64_t since_ms = fw_now_ms() - s->l->config->lease_ms - FW_MINUTE_MS; /* older leases have run out */
	struct fw_err err = {.text = "out of memory"};
	int rc = fw_store_beat_list(s->st, since_ms, dead_note, &d, &err);

	for (size_t i = 0; i < d.n; i++) {
		rc = rc ? rc : fw_store_bury(s->st, d.name[i], 0, 0, &err);
		free(d.name[i]);
	}
	free(d.name);
	if (rc)
		fw_warn("giving back what dead workers held: %s; their leases will run out", err.text);
}

/* A network was permitted since the last run: what it had blocked is due, for a --once too. */
static int unblock(struct storer *s, struct fw_err *err)
{
	int64_t now_ms = s->l->o->due_before_ms ? s->l->o->due_before_ms : fw_now_ms();
	size_t n;
	int rc = unblock_feeds(s->st, s->l->config, now_ms, &n, err);

	if (!rc && n)
		fw_info("allow_networks or deny_networks has changed: %zu feeds that were blocked are due", n);
	return rc;
}

/* Open the store and see to what was left there. Passing errors may be tried again. */
static int begin(struct storer *s, struct fw_err *err)
{
	struct worker_shared *sh = s->l->o->shared;
	struct fw_control newest;
	int64_t wake_ms, total = 0;
	int rc = fw_config_store(s->l->config, FW_STORE_CREATE, &s->st, err);

	if (rc)
		return rc;
	if (sh->dead_name[0] && fw_store_bury(s->st, sh->dead_name, sh->dead_feed_id, 0, &sh->err))
		fw_warn("giving the leases of %s back: %s; they will run out", sh->dead_name, sh->err.text);
	sh->dead_name[0] = '\0';
	if (s->l->o->index == 0) {
		bury_the_dead(s);
		rc = unblock(s, err);
	}
	if (rc)
		return rc;
	rc = fw_store_control_take(s->st, -1, &newest, err);
	if (rc)
		return rc;
	s->newest_id = newest.id;
	if (!sh->listening) { /* a successor goes on where the last one stopped, and stays paused */
		sh->control_id = newest.id;
		sh->paused = newest.paused;
	}
	sh->listening = true;
	if (s->l->o->once && sh->paused)
		return fw_err_set(err, FW_EINVAL, "this store's workers are paused: 'feedwheel resume --all' lets them go on");
	if (s->l->o->once && s->l->o->index == 0 && atomic_load(&sh->total) == 0) {
		rc = fw_store_pending(s->st, s->l->o->due_before_ms, &total, &wake_ms, err);
		if (rc)
			return rc;
		atomic_store(&sh->total, total);
	}
	if (s->l->o->once && !s->course)
		claims_begin(s);
	return 0;
}

/*
 * The first opening. Ten workers that start at once hold each other up for a moment; a server may start after its workers, and a run
 * that goes on waits for it, until it is told to stop.
 */
static int storer_open(struct storer *s)
{
	bool waits = !s->l->o->once && fw_store_is_remote(s->l->config->store);
	struct fw_err *err = &s->l->o->shared->err;
	int64_t start_ms = fw_mono_ms();

	for (;;) {
		int rc = begin(s, err);

		if (!rc) {
			storer_outage_over(s);
			return WORKER_DONE;
		}
		fw_store_close(s->st);
		s->st = NULL;
		if (!retry_is_passing(rc) || (!waits && (rc != FW_EAGAIN || fw_mono_ms() - start_ms > OPEN_PATIENCE_MS)))
			return WORKER_STORE;
		ask_later(s, "opening the store", err);
		for (int64_t left; (left = s->retry.at_ms - fw_mono_ms()) > 0;) {
			struct pollfd p = {.fd = s->l->wake_fd[0], .events = POLLIN};

			(void)poll(&p, 1, (int)left);
			wake_taken(s->l);
			if (atomic_load(&s->l->stopping))
				return WORKER_LEFT;
		}
	}
}

static int storer_init(struct storer *s)
{
	size_t max = s->l->visit_max;

	s->batch = calloc(max, sizeof(*s->batch));
	s->outcome = calloc(max, sizeof(*s->outcome));
	s->back = calloc(max, sizeof(*s->back));
	s->started_ms = fw_now_ms();
	s->upkeep_more = s->behind = true; /* it may have been away for long */
	s->prune_at_ms = s->l->o->once ? 0 : fw_mono_ms() + PRUNE_MS;
	if (s->l->o->once) {
		struct fw_plan_rules rules;

		fw_settings_plan(s->l->config, s->l->slots, &rules);
		s->bounds = fw_plan_bounds_new(&rules);
	}
	return s->batch && s->outcome && s->back ? 0 : FW_ENOMEM;
}

/*
 * The store is away, or full. A run that goes on waits for it; one that drains waits for drain_timeout_ms, and a --once, behind which
 * somebody sits, for ONCE_OUTAGE_MS. What is held then is not lost: the next run takes the leases back and makes the visits again.
 */
static bool gave_up(const struct storer *s, int64_t mono_ms)
{
	int64_t limit = s->l->o->once ? ONCE_OUTAGE_MS : s->l->config->drain_timeout_ms;
	int64_t since_ms = s->outage_since_ms ? s->outage_since_ms : s->full_since_ms;

	if (!since_ms || (!s->l->o->once && !s->last_since_ms))
		return false;
	if (mono_ms - FW_MAX(since_ms, s->last_since_ms) < limit)
		return false;
	s->l->o->shared->err = s->outage_since_ms ? s->outage_err : s->full_err;
	fw_error("giving up: %zu visits could not be stored; the next run makes them again", s->n);
	return true;
}

static int storer_run(struct storer *s)
{
	struct lane *l = s->l;

	for (;;) {
		int64_t now_ms = fw_now_ms(), mono_ms = fw_mono_ms();
		bool last = atomic_load(&l->loop_done);

		if (last && !s->last_since_ms) {
			s->last_since_ms = mono_ms;
			s->retry.at_ms = FW_MIN(s->retry.at_ms, mono_ms); /* drained during an outage: look once more, now */
		}
		if (s->retry.at_ms && mono_ms >= s->retry.at_ms) {
			s->retry.at_ms = 0; /* s->retry.pause_ms stays: the next failure waits longer */
			if (!s->st)
				reopen(s);
		}
		control(s, mono_ms);
		look_for_room(s, mono_ms);
		commits_take(s);
		if (s->st && !s->full_since_ms && commits_due(s, mono_ms))
			commits_store(s);
		commits_give_back(s);
		if (last && !s->alive)
			return WORKER_DONE;
		if (gave_up(s, mono_ms))
			return WORKER_STORE;
		beat(s, mono_ms);
		if (claims_first_due(s, mono_ms))
			claims_first(s, now_ms, mono_ms);
		if (claims_due(s, mono_ms))
			claims_make(s, now_ms);
		if (!s->n && !fw_ring_fill(&l->outcomes)) {
			prune(s, mono_ms);
			if (s->st && !s->retry.pause_ms && !atomic_load(&l->stopping))
				chores_do(&s->chores, s->st, l->o->shared->name, l->o->meter, l->o->index == 0, mono_ms);
			if (upkeep(s, mono_ms))
				continue;
		}
		if (s->once_over && !s->alive && !atomic_load(&l->finished)) {
			atomic_store(&l->finished, true);
			uv_async_send(&l->to_loop);
		}
		sleep_until_something(s);
	}
}

void *fw_storer_main(void *arg)
{
	struct storer s = {.l = arg};
	struct worker_shared *sh = s.l->o->shared;
	intptr_t code = WORKER_DONE;

	if (storer_init(&s)) {
		fw_err_set(&sh->err, FW_ENOMEM, "out of memory for %zu visits: lower 'concurrency'", s.l->visit_max);
		code = WORKER_SYSTEM;
	} else {
		code = storer_open(&s);
	}
	if (code == WORKER_DONE)
		code = storer_run(&s);
	fw_store_close(s.st);
	course_destroy(s.course);
	fw_plan_bounds_free(s.bounds);
	free(s.batch);
	free(s.outcome);
	free(s.back);
	atomic_store(&s.l->store_gone, true);
	uv_async_send(&s.l->to_loop);
	return (void *)code;
}
