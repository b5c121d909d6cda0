/* SPDX-License-Identifier: ISC */
/*
 * The owner's lease and shards. A step sends a heartbeat when one is due, acquires shards and gives
 * shards back, and reads the store for a few ms.
 *
 * An owner gives shards back in two cases. It gives back the surplus when the number of workers has
 * changed. And a worker with more work than it can start gives shards to idle workers, which take
 * what is free. No worker reports itself idle for some heartbeats after each change in the number
 * of workers, until each has its part.
 *
 * The workers of a `run --once` know their number, and take no more than their part from the start.
 * They send heartbeats the more often the less work is left. They report themselves idle shortly
 * before they are, so that new work arrives in time.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/run/owner_parts.h"

/*
 * a lease lasts 6 heartbeats; a dead worker's shards are all taken two heartbeats after its lease
 * ended
 */
#define LEASE_HEARTBEATS 6
/* limit for any lease: a worker that joins waits this long for its part */
#define HEARTBEAT_MAX_MS 2500
#define CHANGED_MS 200 /* between heartbeats while the store reports changes */
/* while shards change owners; in a run --once with several workers */
#define HEARTBEAT_QUICK_MS 500
#define HEARTBEAT_MIN_MS 50
/* all heartbeats together take at most 1/10 of the store's time */
#define HEARTBEAT_SHARE 10
/* run --once with several workers: heartbeats in the remaining time */
#define END_HEARTBEATS 4
/* run --once: a worker reports itself idle this long before it is */
#define IDLE_AHEAD_MS 300
#define CLOCK_MAX_MS FW_SECOND_MS /* a clock query that took longer is not trusted */
#define ORDER_MS (10 * FW_SECOND_MS)
#define ONCE_ORDER_MS 100
#define ORDER_SHARE 20

static int64_t owner_mono_ms(const struct owner *o)
{
	return o->clock(o->ctx);
}

struct fw_hosts_now owner_now(const struct owner *o)
{
	int64_t mono_ms = owner_mono_ms(o);

	return (struct fw_hosts_now){mono_ms, mono_ms + o->wall_offset_ms};
}

struct fw_hosts_now owner_now_latest(const struct owner *o)
{
	struct fw_hosts_now now = owner_now(o);

	now.wall_ms += o->clock_took_ms;
	return now;
}

struct fw_hosts *owner_hosts_lock(struct owner *o)
{
	if (pthread_mutex_lock(&o->lock))
		abort(); /* only a bug can make this fail: a second lock by the same thread */
	return o->hosts;
}

void owner_hosts_unlock(struct owner *o)
{
	if (pthread_mutex_unlock(&o->lock))
		abort();
}

/* The gap is longer than the load of the next claim takes. */
static bool rules_gap_is_long(const struct owner_rules *r)
{
	return r->host_gap_ms >= FW_SECOND_MS / 2;
}

/*
 * Limit of claims of one host: those in flight, and as many as can start during one call to the
 * store.
 */
static uint32_t host_claims_max(const struct owner_rules *r)
{
	return !r->host_concurrency ? 0 : rules_gap_is_long(r) ? r->host_concurrency + 1 : 5 * r->host_concurrency + 2;
}

struct owner *owner_create(const struct owner_rules *r, struct store *st, owner_clock_fn *clock, void *ctx)
{
	struct due_rules due = {.max = r->due_max,
		.host_claims = host_claims_max(r),
		.host_gap_ms = rules_gap_is_long(r) ? r->host_gap_ms : 0,
		.slots = r->slots,
		.slow_us = r->slow_max ? r->slow_us : 0,
		.backlog_ms = r->backlog_ms,
		.once = r->once,
		.plan = r->plan};
	struct owner *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->rules = *r;
	o->st = st;
	o->clock = clock;
	o->ctx = ctx;
	o->heartbeat_mono_ms = INT64_MIN;
	o->lease.lease_ms = r->lease_ms;
	o->lease.expected = r->workers;
	fw_map_init(&o->claims, 0x636c61696d73);
	if (pthread_mutex_init(&o->lock, NULL)) {
		free(o);
		return NULL;
	}
	o->due = due_set_create(&due);
	o->hosts = fw_hosts_create(
		&(struct fw_hosts_rules){.host_concurrency = r->host_concurrency, .gap_ms = r->host_gap_ms});
	if (!o->due || !o->hosts) {
		owner_destroy(o);
		return NULL;
	}
	return o;
}

void owner_destroy(struct owner *o)
{
	if (!o)
		return;
	while (o->first) {
		o->first->due = NULL;
		claim_free(o, o->first);
	}
	due_set_destroy(o->due);
	due_read_finish(&o->read);
	fw_hosts_destroy(o->hosts);
	fw_map_finish(&o->claims);
	pthread_mutex_destroy(&o->lock);
	free(o);
}

void owner_set_store(struct owner *o, struct store *st)
{
	o->st = st;
}

/* ---- shards ---------------------------------------------------------------------------------- */

static void shard_acquire(struct owner *o, const struct store_shard *is)
{
	struct owner_shard *s = &o->shard[is->shard];

	assert(s->state == SHARD_FOREIGN && !s->claims);
	*s = (struct owner_shard){.state = SHARD_HELD, .unread = true, .changed = true, .version = is->version};
	o->held++;
	o->width = o->unread++ ? o->width : READ_WIDTH_MAX;
	fw_hosts_own(owner_hosts_lock(o), (uint32_t)is->shard, is->quiet_since_ms, owner_now(o));
	owner_hosts_unlock(o);
}

void shard_cut(struct owner *o, struct owner_shard *s, bool cut)
{
	assert(o->cut_n >= s->cut);
	o->cut_n += (size_t)cut - (size_t)s->cut;
	s->cut = cut;
}

/* Start nothing of this shard any more; give it back after its last claim. */
static void shard_leave(struct owner *o, int shard)
{
	struct owner_shard *s = &o->shard[shard];

	assert(s->state == SHARD_HELD && o->held && o->unread >= s->unread);
	s->state = SHARD_LEAVING;
	o->held--;
	o->leaving_n++;
	o->unread -= s->unread;
	s->unread = false;
	shard_cut(o, s, false);
	claims_requeue_shard(o, shard);
	due_set_clear(o->due, shard);
	fw_hosts_release(owner_hosts_lock(o), (uint32_t)shard);
	owner_hosts_unlock(o);
}

/* The shard is given back: nothing of it is in flight. */
static void shard_drop(struct owner *o, int shard)
{
	assert(o->shard[shard].state == SHARD_LEAVING && !o->shard[shard].claims);
	assert(o->leaving_n);
	o->shard[shard] = (struct owner_shard){.state = SHARD_FOREIGN};
	o->leaving_n--;
	fw_hosts_drop(owner_hosts_lock(o), (uint32_t)shard);
	owner_hosts_unlock(o);
}

static void shards_leave_all(struct owner *o)
{
	for (int i = 0; i < STORE_SHARDS; i++) {
		if (o->shard[i].state == SHARD_HELD)
			shard_leave(o, i);
	}
}

void owner_lose_lease(struct owner *o)
{
	if (o->lost)
		return;
	fw_warn("this worker's lease is lost: what is in flight is dropped, and other workers fetch it again");
	o->lost = true;
	fw_hosts_set_lease(owner_hosts_lock(o), INT64_MIN);
	owner_hosts_unlock(o);
	shards_leave_all(o);
}

/* After the last claim of a lost lease: join again with a new lease. */
static void owner_rejoin(struct owner *o)
{
	if (!o->lost || o->first)
		return;
	assert(!o->open && !o->done && !o->held);
	for (int i = 0; i < STORE_SHARDS; i++) {
		if (o->shard[i].state == SHARD_LEAVING)
			shard_drop(o, i);
	}
	o->lost = o->planned = false;
	o->heartbeat_mono_ms = INT64_MIN;
	o->lease.id = 0;
	o->left = o->leaving;
}

/* ---- the lease ------------------------------------------------------------------------------- */

static bool owner_has_others(const struct owner *o)
{
	return FW_MAX(o->lease.living, o->lease.expected) > 1;
}

static int64_t heartbeat_calm_ms(const struct owner *o)
{
	bool once = o->rules.once && owner_has_others(o);

	return FW_MIN(o->rules.lease_ms / LEASE_HEARTBEATS, (int64_t)(once ? HEARTBEAT_QUICK_MS : HEARTBEAT_MAX_MS));
}

/*
 * Does each worker have its part? True when all workers that start together are present, or when
 * their number has been stable long enough for all to see it.
 */
static bool owner_is_settled(const struct owner *o)
{
	return o->lease.living == o->lease.expected ||
		owner_mono_ms(o) - o->settled_mono_ms > heartbeat_calm_ms(o) + 2 * HEARTBEAT_QUICK_MS;
}

/* run --once with several workers: the nearer the end, the shorter the interval. */
static int64_t heartbeat_end_ms(const struct owner *o)
{
	int64_t left_ms = due_set_work_ms(o->due) / o->rules.slots / END_HEARTBEATS;

	return FW_MAX(
		FW_MAX(left_ms, HEARTBEAT_SHARE * o->lease.living * o->heartbeat_took_ms), (int64_t)HEARTBEAT_MIN_MS);
}

static int64_t heartbeat_interval_ms(const struct owner *o)
{
	int64_t calm_ms = heartbeat_calm_ms(o);

	if (o->rules.once && owner_has_others(o))
		return FW_MIN(calm_ms, heartbeat_end_ms(o));
	return owner_is_settled(o) ? calm_ms : FW_MIN(calm_ms, (int64_t)HEARTBEAT_QUICK_MS);
}

/*
 * run --once: a worker reports itself idle when less work than this is left. Help takes that long
 * to arrive.
 */
static int64_t owner_idle_work_ms(const struct owner *o)
{
	return o->rules.once ? IDLE_AHEAD_MS * (int64_t)o->rules.slots : 0;
}

/* Is there nothing more to start now? In a run --once: nothing more soon? */
static bool owner_is_idle(struct owner *o, int64_t mono_ms)
{
	int64_t next_ms;
	bool idle;

	if (!o->lease.id || o->leaving || !o->read_all || o->unread || !owner_is_settled(o) || o->cut_n ||
		(o->rules.once && !o->planned))
		return false;
	if (due_set_work_ms(o->due) < owner_idle_work_ms(o))
		return true;
	idle = !fw_hosts_first(owner_hosts_lock(o), mono_ms, &next_ms);
	owner_hosts_unlock(o);
	return idle && !due_set_ready(o->due, mono_ms, &next_ms);
}

/* Follow the list of our shards that the heartbeat returned. */
static void shards_update(struct owner *o)
{
	const struct store_shard *at = o->lease.shard, *end = at + o->lease.shard_n;

	o->shards_moved = false;
	for (int i = 0; i < STORE_SHARDS; i++) {
		struct owner_shard *s = &o->shard[i];

		if (at == end || at->shard != i) {
			if (s->state == SHARD_HELD) /* cannot happen while the lease is valid */
				shard_leave(o, i);
			continue;
		}
		if (s->state == SHARD_FOREIGN) {
			shard_acquire(o, at);
			o->shards_moved = true;
		}
		s->changed = s->changed || s->version != at->version;
		s->version = at++->version;
	}
}

/* Does the shard have feeds, as far as is known? */
static bool shard_has_feeds(const struct owner *o, int shard)
{
	return o->shard[shard].claims || due_set_shard_n(o->due, shard);
}

/* Among the held shards with feeds (or without), the shard with the fewest claims; -1: none. */
static int shard_pick_surplus(const struct owner *o, bool with_feeds)
{
	size_t best_n = SIZE_MAX;
	int best = -1;

	for (int i = 0; i < STORE_SHARDS; i++) {
		const struct owner_shard *s = &o->shard[i];

		if (s->state != SHARD_HELD || s->claims >= best_n || shard_has_feeds(o, i) != with_feeds)
			continue;
		best_n = s->claims;
		best = i;
	}
	return best;
}

/*
 * Give back all but `goal` shards. Most shards may have no feeds, so shards with and without feeds
 * are shared out separately.
 */
static void shards_leave_surplus(struct owner *o, size_t goal)
{
	size_t fed = 0, keep;

	for (int i = 0; i < STORE_SHARDS; i++)
		fed += o->shard[i].state == SHARD_HELD && shard_has_feeds(o, i);
	/* round up: a single shard stays, its transfers may take long */
	keep = (fed * goal + o->held - 1) / o->held;
	while (o->held > goal) {
		bool with_feeds = fed > keep;
		int shard = shard_pick_surplus(o, with_feeds);

		/*
		 * keep <= goal < held: when no more than `keep` shards have feeds, some shard has
		 * none
		 */
		assert(shard >= 0);
		fed -= with_feeds;
		shard_leave(o, shard);
	}
}

/* The held shard with the most waiting work and no claims; -1: none. */
static int shard_pick_work(const struct owner *o)
{
	int64_t most_ms = 0;
	int best = -1;

	for (int i = 0; i < STORE_SHARDS; i++) {
		const struct owner_shard *s = &o->shard[i];
		int64_t work_ms = due_set_shard_work_ms(o->due, i);

		if (s->state != SHARD_HELD || s->claims || work_ms <= most_ms)
			continue;
		most_ms = work_ms;
		best = i;
	}
	return best;
}

/* Is more work waiting here than can start, so that other workers could help? */
static bool owner_is_full(struct owner *o, int64_t mono_ms)
{
	int64_t next_ms;

	return o->open >= o->rules.slots && (o->rules.once || due_set_has_backlog(o->due)) &&
		due_set_ready(o->due, mono_ms, &next_ms);
}

/* Give idle workers their part of the waiting work, in whole shards. */
static void shards_give_to_idle(struct owner *o, int64_t mono_ms)
{
	int64_t part_ms;

	if (!o->lease.idle_n || o->lease.idle || o->leaving_n || !owner_is_full(o, mono_ms))
		return;
	part_ms = (due_set_work_ms(o->due) - owner_idle_work_ms(o)) * o->lease.idle_n / o->lease.living;
	while (part_ms > 0) {
		int shard = shard_pick_work(o);

		if (shard < 0)
			return;
		part_ms -= due_set_shard_work_ms(o->due, shard);
		shard_leave(o, shard);
	}
}

/* Give back the surplus when there are more workers, and work to idle workers. */
static void shards_rebalance(struct owner *o, uint32_t living, int64_t mono_ms)
{
	size_t part = store_fair_share(&o->lease);

	/* a worker that leaves a run --once leaves no work behind */
	if (living != o->lease.living && (!o->rules.once || living < o->lease.living))
		o->settled_mono_ms = mono_ms;
	if (!owner_is_settled(o) && o->held > part)
		shards_leave_surplus(o, part);
	shards_give_to_idle(o, mono_ms);
}

/*
 * Read the store's clock. The store read it between our request and its response. A wait for a time
 * uses the time of the response, so it never ends early. Times that other workers wait for use the
 * time of the request (owner_now_latest()). A slow response is not trusted.
 */
static int owner_read_clock(struct owner *o, struct fw_err *err)
{
	int64_t asked_ms = owner_mono_ms(o), wall_ms, took_ms;
	int rc = fw_store_clock((struct fw_store *)o->st, &wall_ms, err); /* measures it for all threads */

	took_ms = owner_mono_ms(o) - asked_ms;
	if (rc)
		return rc;
	if (!o->clock_known || took_ms <= CLOCK_MAX_MS) {
		o->wall_offset_ms = wall_ms - asked_ms - took_ms;
		o->clock_took_ms = took_ms;
		o->clock_known = took_ms <= CLOCK_MAX_MS;
	}
	return 0;
}

static int owner_heartbeat(struct owner *o, struct fw_err *err)
{
	int64_t mono_ms;
	uint32_t living = o->lease.living;
	int rc = owner_read_clock(o, err);

	if (rc)
		return rc;
	mono_ms = owner_mono_ms(o);
	/*
	 * the store was unavailable: other workers, as late as we are, have one lease time to
	 * return
	 */
	if (o->lease.id && mono_ms - o->heartbeat_mono_ms > o->rules.lease_ms)
		o->late_until_mono_ms = mono_ms + o->rules.lease_ms;
	o->lease.late = o->lease.id && mono_ms < o->late_until_mono_ms;
	o->lease.idle = owner_is_idle(o, mono_ms);
	/*
	 * full workers do not take a dead worker's shards while others are idle; when all are full,
	 * one must. In a run --once idle workers are always first.
	 */
	o->lease.full = (o->rules.once || o->lease.idle_n) && !o->lease.idle && owner_is_full(o, mono_ms);
	if (!o->lease.id)
		o->joined_mono_ms = mono_ms;
	rc = o->st->driver->heartbeat(o->st, o->rules.worker, &o->lease, err);
	if (rc == FW_ESTALE) {
		owner_lose_lease(o);
		return 0;
	}
	if (rc)
		return rc;
	o->heartbeat_mono_ms = mono_ms;
	/* a single slow heartbeat counts little */
	o->heartbeat_took_ms = FW_MIN(owner_mono_ms(o) - mono_ms, 2 * o->heartbeat_took_ms + 1);
	o->store_changed = false;
	o->safe_until_ms = o->lease.safe_until_mono_ms;
	fw_hosts_set_lease(owner_hosts_lock(o), o->safe_until_ms);
	owner_hosts_unlock(o);
	shards_update(o);
	if (o->leaving)
		shards_leave_all(o);
	else
		shards_rebalance(o, living, mono_ms);
	return 0;
}

/* ---- giving back ----------------------------------------------------------------------------- */

/*
 * Give back the leaving shards whose visits are all stored. When the worker leaves: all at once,
 * after the last visit.
 */
static int shards_give_back(struct owner *o, struct fw_err *err)
{
	struct store_shard shards_give_back[STORE_SHARDS];
	struct store_release g = {.lease_id = o->lease.id, .shard = shards_give_back, .leave = o->leaving};
	struct fw_hosts_now now;
	int rc;

	for (int i = 0; i < STORE_SHARDS; i++) {
		if (o->shard[i].state == SHARD_LEAVING && !o->shard[i].claims)
			shards_give_back[g.n++].shard = i;
	}
	if (o->leaving ? o->first != NULL : !g.n)
		return 0;
	rc = hosts_commit_all(o, err);
	if (rc)
		return rc == FW_ESTALE ? 0 : rc;
	now = owner_now_latest(o);
	for (size_t i = 0; i < g.n; i++) {
		shards_give_back[i].quiet_since_ms = fw_hosts_sent_until(
			owner_hosts_lock(o), (uint32_t)shards_give_back[i].shard, now);
		owner_hosts_unlock(o);
	}
	rc = o->st->driver->release(o->st, &g, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < g.n; i++)
		shard_drop(o, shards_give_back[i].shard);
	o->shards_moved = true;
	o->left = o->leaving;
	if (o->left)
		o->lease.id = 0;
	return 0;
}

void owner_leave(struct owner *o)
{
	o->leaving = true;
	shards_leave_all(o);
	o->left = o->left || (!o->lease.id && !o->lost);
}

bool owner_has_left(const struct owner *o)
{
	return o->left;
}

bool owner_is_lost(const struct owner *o)
{
	return o->lost;
}

int64_t owner_safe_until_ms(const struct owner *o)
{
	return o->safe_until_ms;
}

/* ---- a step ---------------------------------------------------------------------------------- */

static int owner_order(struct owner *o, struct fw_err *err)
{
	int64_t began_ms = owner_mono_ms(o), took_ms;

	if (!o->read_all || began_ms < o->order_mono_ms || (o->rules.once && !due_set_unplanned(o->due) && o->planned))
		return 0;
	if (due_set_order(o->due, owner_now(o)))
		return fw_no_memory(err);
	o->planned = true;
	took_ms = owner_mono_ms(o) - began_ms;
	o->order_mono_ms = began_ms + FW_MAX(o->rules.once ? ONCE_ORDER_MS : ORDER_MS, ORDER_SHARE * took_ms);
	return 0;
}

/* Time of the next step: the next heartbeat, read, check of the order, or feed that falls due. */
static int64_t owner_next_step_ms(struct owner *o, int64_t read_ms, int64_t later_ms)
{
	int64_t mono_ms = owner_mono_ms(o), interval_ms = o->store_changed ? CHANGED_MS : heartbeat_interval_ms(o);
	int64_t next_ms = FW_MIN(o->heartbeat_mono_ms + interval_ms, read_ms), host_ms;

	if (later_ms != INT64_MAX)
		next_ms = FW_MIN(next_ms, later_ms - o->wall_offset_ms);
	if (due_set_waiting(o->due)) {
		next_ms = FW_MIN(next_ms, FW_MAX(o->order_mono_ms, mono_ms + FW_SECOND_MS));
		if (!due_set_ready(o->due, mono_ms, &host_ms))
			next_ms = FW_MIN(next_ms, host_ms);
	}
	return FW_MAX(next_ms, mono_ms);
}

int owner_step(struct owner *o, bool changed, int64_t *next_mono_ms, struct fw_err *err)
{
	int64_t mono_ms = owner_mono_ms(o), heartbeat_at_ms, read_ms;
	int rc = 0;

	*next_mono_ms = mono_ms + FW_SECOND_MS;
	owner_rejoin(o);
	if (o->lost || o->left || !o->st)
		return 0;
	o->store_changed = o->store_changed || changed;
	heartbeat_at_ms = o->heartbeat_mono_ms == INT64_MIN ?
		mono_ms :
		o->heartbeat_mono_ms + (o->store_changed ? CHANGED_MS : heartbeat_interval_ms(o));
	if (mono_ms >= heartbeat_at_ms)
		rc = owner_heartbeat(o, err);
	rc = rc ? rc : o->lost ? 0 : shards_give_back(o, err);
	if (rc || o->lost || o->left)
		return rc;
	rc = owner_reads_run(o, &read_ms, err);
	if (!rc && !o->leaving)
		rc = owner_order(o, err);
	if (rc)
		return rc;
	*next_mono_ms = owner_next_step_ms(o, read_ms, due_set_advance(o->due, owner_now(o)));
	return 0;
}

bool owner_is_finished(struct owner *o, int64_t wait_max_ms, size_t *left, bool *others)
{
	int64_t mono_ms = owner_mono_ms(o), next_ms;

	*left = due_set_waiting(o->due);
	*others = owner_has_others(o) && (!o->lease.idle || o->lease.living > o->lease.idle_n + 1 || o->shards_moved);
	if (!o->rules.once || o->lost || !o->lease.id || !o->read_all || o->unread || o->cut_n || o->first ||
		o->leaving_n)
		return false;
	return !due_set_ready(o->due, mono_ms, &next_ms) && (next_ms == INT64_MAX || next_ms > mono_ms + wait_max_ms);
}

void owner_count(const struct owner *o, struct owner_counts *out)
{
	*out = (struct owner_counts){.due = due_set_n(o->due),
		.waiting = due_set_waiting(o->due),
		.open = o->open,
		.done = o->done,
		.shards = o->held,
		.leaving = o->leaving_n,
		.unread = o->unread};
}
