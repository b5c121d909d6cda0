/* SPDX-License-Identifier: ISC */
/*
 * The store thread: owns the one database connection of its process. Claims ahead, commits outcomes in batches, gives leases
 * back, passes control messages on, does upkeep when there is nothing better to do.
 *
 * Outages: a commit that fails for a passing reason is kept and tried again with back-off (nothing is claimed meanwhile, so what is
 * held stays bounded); on a broken connection the store is opened anew. A batch that is refused for good is halved until the outcome
 * at fault is found; that one is stored as a local failure without its entries, the others go on.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/chores.h"
#include "engine/course.h"
#include "engine/lane.h"
#include "engine/moves.h"
#include "engine/retry.h"
#include "engine/websub.h"
#include "engine/settings.h"
#include "feedwheel/ingest.h"

#define BEAT_MS (5 * FW_SECOND_MS)
#define CONTROL_MS 400 /* between looks for messages, where the store does not wake us */
#define FIRST_MS 100                      /* between tries to get a feed that a person asked for, */
#define FIRST_PATIENCE_MS FW_MINUTE_MS    /* and when the ordinary way has to do */
#define FIRST_BACK_MS (2 * FW_SECOND_MS)
#define CLAIM_MAX 500
#define WINDOW 200000         /* feeds on one course */
#define WORTH_AHEAD_MS 500    /* a longer gap between two feeds of a host is longer than it takes to be lent the next */
#define HOLD_MIN_MS INT64_C(100) /* one that was put off is asked for again after its host's gap, at the least this */
#define ASKS_MAX 20           /* claims in a row that bring nothing */
#define IDLE_MS FW_SECOND_MS
#define COLLECT_N 32 /* outcomes that are worth waking up for, when a batch is open */
#define PORTION_MS 50
#define UPKEEP_BUSY_MS 200
#define ONCE_UPKEEP_MS FW_SECOND_MS
#define PRUNE_MS FW_MINUTE_MS              /* often, so that it is little each time */
#define PRUNE_MORE_MS FW_SECOND_MS        /* when a call did not get to the end */
#define PRUNE_ENTRIES_MS (6 * FW_HOUR_MS) /* seldom, for it looks at all of them */
#define OPEN_PATIENCE_MS (2 * FW_SECOND_MS)
#define ONCE_OUTAGE_MS (10 * FW_SECOND_MS)
#define ONCE_PATIENCE_MS (60 * FW_SECOND_MS) /* a --once does not wait longer than this for hosts that want a pause */

struct storer {
	struct lane *l;
	struct fw_store *st;
	struct visit **batch;       /* what the next commit carries */
	struct fw_outcome *outcome; /* the same, as the contract wants it */
	size_t n, bytes;
	bool hurry;                 /* somebody waits for one of them */
	int64_t batch_since_ms;     /* monotonic; of its oldest */
	size_t alive, extra;        /* visits lent to the loop and not yet spent; those of them that it did not want */
	int64_t first_at_ms, first_until_ms; /* monotonic: look for feeds that a person asked for; 0: none was */
	int64_t first_back_ms;      /* monotonic: till then one that is lent may come back from somebody's queue */
	int64_t next_claim_ms;      /* monotonic, for a wall clock may be set back: nothing is due before */
	int64_t newest_id;          /* control message when this worker began */
	int64_t control_at_ms, beat_at_ms, started_ms;
	struct retry retry;            /* an outage */
	int64_t outage_since_ms;       /* monotonic; 0: none */
	int64_t last_since_ms;         /* monotonic: when the loop had handed over its last visit; 0: not yet */
	struct fw_err outage_err;
	bool once_over, upkeep_more;
	int64_t once_over_ms, upkeep_at_ms, prune_at_ms, prune_entries_at_ms; /* monotonic */
	struct chores chores;
	struct fw_lease *back;      /* leases to give back, back_n of them */
	size_t back_n;
	bool cool;                  /* one of the batch brings a pause for its host: it is stored before others of that host go back */
	struct course *course;      /* once; NULL: none, the ordinary claim does it all */
	bool course_over, course_more; /* all of it is lent; the list did not end with it */
	int64_t rank;               /* of the next loan behind the course */
	struct fw_plan_bounds *bounds; /* once: of what was measured */
	int64_t claimed_at_ms;      /* monotonic: last claim */
	uint64_t visits, news, failures;
};

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

/* The store said no: it is asked again later. */
static void outage(struct storer *s, const char *doing, int rc, const struct fw_err *err)
{
	ask_later(s, doing, err);
	if (retry_reopens(&s->retry, rc, s->l->config))
		reopen(s);
}

static void outage_over(struct storer *s)
{
	if (s->retry.pause_ms)
		fw_info("the store answers again");
	atomic_store_explicit(&s->l->o->meter->away, 0, memory_order_relaxed);
	s->retry = (struct retry){0};
	s->outage_since_ms = 0;
}

/* ---- visits and their leases ----------------------------------------------------------------------------------------------------- */

/* Back to the loop thread, which empties it. */
static void visit_spent(struct storer *s, struct visit *v)
{
	if (v->lent->stop)
		course_back(s->course, v->lent->stop);
	s->extra -= v->lent->extra;
	lease_batch_unref(v->batch);
	v->batch = NULL;
	v->lease = NULL;
	v->lent = NULL;
	atomic_fetch_sub(&s->l->held_bytes, v->held_bytes);
	s->alive--;
	if (!fw_ring_put(&s->l->spent, v))
		abort(); /* the ring holds as many as there are visits */
}

static void count(struct storer *s, const struct visit *v)
{
	struct fw_meter_slot *m = s->l->o->meter;
	const struct fw_outcome *o = &v->outcome;

	if (o->rc == FW_ESTALE) {
		meter_count(m, FW_COUNT_STALE, 1);
		fw_info("feed %lld: its lease ran out before the visit was stored; nothing was written", (long long)o->feed_id);
		return;
	}
	if (v->moved) { /* it comes again at once, under its feed's address, and counts then */
		meter_count(m, FW_COUNT_MOVED, 1);
		fw_info("feed %lld: %s", (long long)o->feed_id, v->fetch.err.text);
		return;
	}
	if (s->bounds && fw_plan_bounds_add(s->bounds, v->lease->host_id, o->feed_id, o->visit.total_us)) {
		fw_plan_bounds_free(s->bounds); /* out of memory: nothing is said of it at the end */
		s->bounds = NULL;
	}
	s->visits++;
	s->news += o->visit.new_n;
	if (v->feed.fail_n)
		s->failures++;
	meter_visit(m, &o->visit, v->lease->feed.due_at_ms <= FW_DUE_FIRST);
	if (s->l->config->websub_url)
		fw_websub_visited(s->st, &v->lease->feed, o);
}

/* ---- commit ------------------------------------------------------------------------------------------------------------------------- */

static void beat_fill(struct storer *s, struct fw_beat *b)
{
	struct worker_shared *sh = s->l->o->shared;

	*b = (struct fw_beat){.worker = sh->name, .pid = getpid(), .started_ms = s->started_ms, .run_id = s->l->o->run_id,
		.visits = s->visits, .new_entries = s->news, .failures = s->failures,
		.in_flight = (uint32_t)atomic_load(&s->l->o->meter->in_flight), .slots = s->l->slots};
}

static int commit_some(struct storer *s, size_t from, size_t n, struct fw_err *err)
{
	struct fw_beat beat;
	struct fw_commit c = {.outcome = s->outcome, .n = n, .beat = &beat};
	int64_t start_us = fw_mono_us();
	int rc;

	beat_fill(s, &beat);
	for (size_t i = 0; i < n; i++) {
		s->outcome[i] = s->batch[from + i]->outcome;
		s->outcome[i].rc = 0;
		s->outcome[i].visit.store_us = FW_MAX(start_us - s->batch[from + i]->lent->parsed_us, INT64_C(0));
	}
	rc = fw_store_commit(s->st, &c, err);
	if (rc)
		return rc;
	meter_time(s->l->o->meter, FW_TIMING_COMMIT, fw_mono_us() - start_us);
	for (size_t i = 0; i < n; i++) {
		struct visit *v = s->batch[from + i];

		v->outcome = s->outcome[i];
		count(s, v);
		moves_done(s->st, v, s->l->o->meter);
	}
	return 0;
}

/* One outcome that the store will never take as it is: without entries and learned state, as our own failure. */
static void defuse(struct visit *v, const struct fw_err *err)
{
	fw_error("feed %lld: the store refused the visit (%s); stored without its entries", (long long)v->feed.id, err->text);
	v->outcome.entries = NULL;
	v->outcome.entry_n = 0;
	v->outcome.groups = FW_GROUP_ERROR;
	v->outcome.visit.kind = FW_VISIT_LOCAL;
	v->feed.url = v->lease->feed.url;
	v->feed.last_kind = FW_VISIT_LOCAL;
	v->feed.error = fw_arena_str(&v->arena, fw_str(err->text));
	v->outcome.visit.error = v->feed.error;
}

/* Commit batch[from, from + n), halving where it is refused. *done counts from the front what is dealt with. */
static int commit_range(struct storer *s, size_t from, size_t n, size_t *done, struct fw_err *err)
{
	int rc = commit_some(s, from, n, err);

	if (!rc) {
		*done += n;
		return 0;
	}
	if (retry_is_passing(rc))
		return rc;
	if (n > 1) {
		rc = commit_range(s, from, n / 2, done, err);
		return rc ? rc : commit_range(s, from + n / 2, n - n / 2, done, err);
	}
	defuse(s->batch[from], err);
	rc = commit_some(s, from, 1, err);
	if (retry_is_passing(rc))
		return rc;
	if (rc) /* not even that: the lease will run out and the feed be lent again */
		fw_error("feed %lld: the store refused even that: %s", (long long)s->batch[from]->feed.id, err->text);
	*done += 1;
	return 0;
}

static void commit(struct storer *s)
{
	struct fw_err err;
	size_t done = 0;
	int rc;

	if (!s->n)
		return;
	for (size_t i = 0; i < s->n; i++)
		moves_judge(s->st, s->batch[i]);
	rc = commit_range(s, 0, s->n, &done, &err);
	for (size_t i = 0; i < done; i++) {
		s->bytes -= s->batch[i]->held_bytes;
		visit_spent(s, s->batch[i]);
	}
	memmove(s->batch, s->batch + done, (s->n - done) * sizeof(*s->batch));
	s->n -= done;
	if (done) {
		s->beat_at_ms = fw_mono_ms(); /* it went with them */
		uv_async_send(&s->l->to_loop);
	}
	if (rc) {
		outage(s, "storing visits", rc, &err);
	} else {
		outage_over(s);
		s->hurry = s->cool = false;
		s->upkeep_more = true;
		s->next_claim_ms = 0; /* hosts that were at their budget may have room now */
	}
}

static void give_back(struct storer *s)
{
	struct fw_err err;

	if (!s->back_n || s->cool)
		return;
	/* when it fails the leases simply run out: a matter of time, not of data */
	if (s->st && fw_store_release(s->st, s->back, s->back_n, &err))
		fw_warn("giving %zu leases back: %s; they will run out", s->back_n, err.text);
	meter_count(s->l->o->meter, FW_COUNT_RELEASED, s->back_n);
	s->back_n = 0;
	s->first_at_ms = 0; /* one that somebody asked for may be among them */
	s->next_claim_ms = 0;
}

static void take_outcomes(struct storer *s)
{
	struct visit *v;
	bool released = false;

	while (s->n < s->l->visit_max && s->back_n < s->l->visit_max && (v = fw_ring_take(&s->l->outcomes)) != NULL) {
		if (v->end == VISIT_RELEASE) {
			s->back[s->back_n] = *v->lease; /* only ids and fences are looked at: the strings go with the arena */
			s->back[s->back_n++].feed = (struct fw_feed){.id = v->lease->feed.id};
			visit_spent(s, v);
			released = true;
			continue;
		}
		if (!s->n)
			s->batch_since_ms = fw_mono_ms();
		s->batch[s->n++] = v;
		s->bytes += v->held_bytes;
		s->hurry = s->hurry || v->lease->feed.due_at_ms <= FW_DUE_FIRST;
		s->cool = s->cool || v->outcome.host_cooldown_ms > 0;
	}
	if (released)
		uv_async_send(&s->l->to_loop);
	give_back(s);
}

static bool commit_due(const struct storer *s, int64_t mono_ms)
{
	const struct fw_config *c = s->l->config;

	if (!s->n || s->retry.at_ms > mono_ms)
		return false;
	return s->hurry || (s->cool && s->back_n) || s->n >= (size_t)c->batch_visits || s->bytes >= (size_t)c->batch_bytes ||
		mono_ms - s->batch_since_ms >= c->batch_ms || atomic_load(&s->l->loop_done) ||
		s->n == s->alive; /* nobody else is on the way: waiting gains nothing */
}

/* ---- claim ---------------------------------------------------------------------------------------------------------------------------- */

static bool claim_due(const struct storer *s, int64_t mono_ms)
{
	size_t want = atomic_load(&s->l->want);

	if (!s->st || !s->beat_at_ms || s->l->o->shared->paused || s->once_over || atomic_load(&s->l->stopping) || s->retry.at_ms > mono_ms)
		return false;
	/* in portions, but a few free slots do not wait for many */
	return want && mono_ms >= s->next_claim_ms && (want >= s->l->slots / 4 || mono_ms - s->claimed_at_ms >= PORTION_MS);
}

/* In which order the loop begins them: on a course by their place there, else as they were lent, or by due time. */
static int64_t rank_of(struct storer *s, const struct fw_lease *lease, const struct fw_plan_item *stop)
{
	if (!s->l->o->once)
		return lease->feed.due_at_ms;
	return stop ? stop->rank : s->rank++;
}

/* stop: of each, NULL: they were not on the course. */
static void lend(struct storer *s, struct lease_batch *b, struct fw_lease *lease, struct fw_plan_item **stop, struct lent *lent, size_t n,
	int64_t until_ms, bool extra)
{
	b->left = n;
	s->alive += n;
	if (extra)
		s->extra += n;
	else
		atomic_fetch_sub(&s->l->want, n);
	for (size_t i = 0; i < n; i++) {
		lent[i] = (struct lent){.lease = &lease[i], .batch = b, .until_ms = until_ms, .extra = extra, .stop = stop ? stop[i] : NULL,
			.asked_for = lease[i].feed.due_at_ms <= FW_DUE_FIRST, .item.rank = rank_of(s, &lease[i], stop ? stop[i] : NULL)};
		if (!fw_ring_put(&s->l->leases, &lent[i]))
			abort(); /* the ring holds as many as can be asked for */
	}
	uv_async_send(&s->l->to_loop);
}

/* The next claim is made when the wall clock shows wake_ms, but soon enough to see what others add. */
static void claim_again(struct storer *s, int64_t wake_ms, int64_t now_ms, int64_t least_ms)
{
	s->next_claim_ms = fw_mono_ms() + (wake_ms == FW_NO_DATE ? IDLE_MS : FW_MIN(FW_MAX(wake_ms - now_ms, least_ms), IDLE_MS));
}

/* Nobody has anything in hand, so what is left waits for the clock alone. */
static bool nothing_lent(struct storer *s)
{
	struct fw_store_stats stats;
	struct fw_err err;

	return fw_store_stats(s->st, 0, &stats, &err) == 0 && stats.lent_n == 0;
}

/* Once, at its end: what no order could have been faster than. */
static void measured(struct storer *s)
{
	struct worker_shared *sh = s->l->o->shared;
	struct fw_arena mem;
	struct fw_feed feed;

	if (!s->bounds)
		return;
	sh->measured = *fw_plan_bounds_get(s->bounds);
	fw_arena_init(&mem, 0);
	if (sh->measured.host_us && !fw_store_feed_find(s->st, sh->measured.host_item, FW_STR_NONE, &mem, &feed, NULL))
		(void)fw_store_host(feed.url, sh->measured_host, sizeof(sh->measured_host));
	fw_arena_finish(&mem);
}

/* Once: is anything of the start left, here or with another worker? */
static void once_check(struct storer *s, int64_t now_ms)
{
	int64_t n, wake_ms;
	struct fw_err err;
	int rc = fw_store_pending(s->st, s->l->o->due_before_ms, &n, &wake_ms, &err);

	if (rc) {
		outage(s, "looking for feeds that are left", rc, &err);
		return;
	}
	fw_debug("%lld feeds of this run are left", (long long)n);
	if (n && wake_ms > now_ms + ONCE_PATIENCE_MS && nothing_lent(s)) {
		fw_info("%lld feeds are left for a later run: their hosts asked for a pause", (long long)n);
		n = 0;
	}
	if (n == 0) {
		s->once_over = true;
		s->once_over_ms = fw_mono_ms();
		measured(s);
	} else {
		/* put off for their host's sake, or lent to another worker: the end of its lease is the latest it can take */
		claim_again(s, wake_ms, now_ms, 20);
	}
}

/* How many of a host are lent ahead on a course. */
static uint32_t course_ahead(const struct fw_config *c)
{
	return 4 * (uint32_t)c->host_max + 2;
}

/* How many of a host are lent ahead, so that it need not wait for a commit between two feeds. */
static uint32_t ahead(const struct storer *s)
{
	const struct fw_config *c = s->l->config;

	if (s->l->o->once)
		return s->course && !s->course_over ? course_ahead(c) : 0;
	return c->host_gap_ms < WORTH_AHEAD_MS ? (uint32_t)c->host_max : 0;
}

static struct fw_claim_ask ask_for(const struct storer *s, size_t max, int64_t due_before_ms)
{
	const struct fw_config *c = s->l->config;

	return (struct fw_claim_ask){.worker = s->l->o->shared->name, .lease_ms = c->lease_ms, .max = max, .due_before_ms = due_before_ms,
		.host_max = (uint32_t)c->host_max, .host_gap_ms = c->host_gap_ms, .host_ahead = ahead(s)};
}

/* Claim and lend to the loop what was lent. With ids: of the course. */
static int claim_some(struct storer *s, const struct fw_claim_ask *ask, bool extra, int64_t now_ms, struct fw_claim_got *got)
{
	struct lease_batch *b = calloc(1, sizeof(*b));
	struct fw_plan_item **stop = NULL;
	struct fw_lease *lease = NULL;
	struct lent *lent = NULL;
	int64_t start_us = fw_mono_us();
	struct fw_err err;
	int rc = FW_ENOMEM;

	*got = (struct fw_claim_got){.n = 0};
	if (b) {
		fw_arena_init(&b->arena, 0);
		lease = fw_arena_zalloc(&b->arena, ask->max * sizeof(*lease));
		lent = fw_arena_alloc(&b->arena, ask->max * sizeof(*lent));
		stop = ask->ids ? fw_arena_alloc(&b->arena, ask->max * sizeof(*stop)) : NULL;
		rc = lease && lent && (stop || !ask->ids) ? fw_store_claim(s->st, ask, &b->arena, lease, got, &err) : FW_ENOMEM;
	}
	if (ask->ids && !rc) /* put off though nothing of ours is lent: that is for the clock or for others, and the ordinary claim waits for these */
		course_got(s->course, lease, got->n, got->deferred_n > 0 && (got->n || s->alive), fw_mono_us(),
			FW_MIN(FW_MAX(s->l->config->host_gap_ms, HOLD_MIN_MS), IDLE_MS) * 1000, stop);
	else if (ask->ids)
		course_unasked(s->course);
	if (!rc && got->n) {
		lend(s, b, lease, stop, lent, got->n, now_ms + ask->lease_ms, extra);
		b = NULL;
	}
	if (b)
		fw_arena_finish(&b->arena);
	free(b);
	if (!rc) {
		outage_over(s);
		meter_time(s->l->o->meter, FW_TIMING_CLAIM, fw_mono_us() - start_us);
		meter_count(s->l->o->meter, FW_COUNT_LEASES, got->n);
		meter_count(s->l->o->meter, FW_COUNT_DEFERRED, got->deferred_n);
		return 0;
	}
	if (rc == FW_ENOMEM)
		fw_err_set(&err, rc, "out of memory");
	outage(s, "claiming feeds", rc, &err);
	return rc;
}

/* ---- the course ------------------------------------------------------------------------------------------------------------------------ */

/* What is foretold, for the end of the run to be compared with; by the first of the workers, all of whom see the same. */
static void foretell(struct storer *s, size_t n)
{
	const struct course_forecast *f = course_forecast(s->course);
	struct worker_shared *sh = s->l->o->shared;
	int64_t total = FW_MAX(atomic_load(&sh->total), (int64_t)n);

	if (s->l->o->index || sh->foretold.feeds || !f->known)
		return;
	sh->foretold.known = (int64_t)f->known;
	sh->foretold.feeds = (int64_t)n;
	sh->foretold.total_us = (int64_t)((double)f->total.total_us * (double)total / (double)n);
	fw_debug("%zu feeds, %zu of them of known duration: expected to take %lld ms", n, f->known, (long long)(sh->foretold.total_us / 1000));
}

/* Without a course (the driver has no list, or it fails, or there is nothing to order by) claims go by due time. */
static void course_begin(struct storer *s)
{
	const struct worker_options *o = s->l->o;
	struct course_rules r = {.ahead = course_ahead(s->l->config), .index = (uint32_t)o->index, .workers = (uint32_t)o->workers};
	struct due_rows due = {.row = NULL};
	struct fw_err err;
	int rc;

	fw_settings_plan(s->l->config, s->l->slots * (uint32_t)o->workers, &r.plan);
	course_destroy(s->course);
	s->course = NULL;
	s->course_more = false;
	rc = fw_store_due_list(s->st, o->due_before_ms, WINDOW, due_rows_add, &due, &err);
	if (!rc && due.ordered) {
		rc = course_create(&r, due.row, due.n, &s->course);
		if (rc)
			fw_err_set(&err, rc, "out of memory");
	}
	if (rc && rc != FW_EUNSUP)
		fw_warn("putting what is due in order: %s; it is fetched by due time", err.text);
	if (s->course) {
		s->course_over = false;
		s->course_more = due.n >= WINDOW;
		s->rank = (int64_t)due.n;
		foretell(s, due.n);
	}
	free(due.row);
}

/* Ask for those that come next on the course. What somebody else has is passed over, so it may take a few claims. */
static void claim_course(struct storer *s, int64_t now_ms)
{
	int64_t id[CLAIM_MAX], next_us = 0, now_us = fw_mono_us();
	struct fw_claim_got got = {.n = 0};

	s->claimed_at_ms = fw_mono_ms();
	for (int i = 0; i < ASKS_MAX && !got.n; i++) {
		struct fw_claim_ask ask = ask_for(s, FW_MIN(atomic_load(&s->l->want), (size_t)CLAIM_MAX), s->l->o->due_before_ms);

		ask.ids = id;
		ask.id_n = course_ask(s->course, now_us, ask.max, id, &next_us);
		if (!ask.id_n || claim_some(s, &ask, false, now_ms, &got))
			break;
	}
	if (!got.n && !s->retry.at_ms && next_us)
		s->next_claim_ms = fw_mono_ms() + (next_us == INT64_MAX ? IDLE_MS : FW_MIN((next_us - now_us) / 1000 + 1, IDLE_MS));
	s->course_over = course_is_over(s->course);
	if (s->course_over)
		s->next_claim_ms = 0;
}

static void claim(struct storer *s, int64_t now_ms)
{
	size_t want = atomic_load(&s->l->want);
	struct fw_claim_ask ask = ask_for(s, FW_MIN(want, (size_t)CLAIM_MAX), s->l->o->once ? s->l->o->due_before_ms : 0);
	struct fw_claim_got got;

	if (s->course_over && s->course_more && !s->alive)
		course_begin(s);
	if (s->course && !s->course_over) {
		claim_course(s, now_ms);
		return;
	}
	if (s->course_over && s->course_more) { /* the next one is made when nobody is on this one any more; a commit comes before */
		s->next_claim_ms = fw_mono_ms() + IDLE_MS;
		return;
	}
	s->claimed_at_ms = fw_mono_ms();
	if (!s->l->o->once && atomic_load(&s->l->slow_full))
		ask.expect_max_us = s->l->config->slow_ms * 1000;
	if (claim_some(s, &ask, false, now_ms, &got))
		return;
	/* fewer than asked: the wheel is empty until next_ms */
	if (got.n < ask.max)
		claim_again(s, got.next_ms, now_ms, 0);
	atomic_store_explicit(&s->l->tail, s->l->o->once && !got.n && !got.deferred_n, memory_order_relaxed);
	if (!got.n && s->l->o->once && !s->alive)
		once_check(s, now_ms);
}

/* ---- feeds that a person asked for ------------------------------------------------------------------------------------------------- */

static bool first_due(const struct storer *s, int64_t mono_ms)
{
	return s->first_until_ms && mono_ms >= s->first_at_ms && s->st && s->beat_at_ms && !s->l->o->shared->paused && !s->once_over &&
		!atomic_load(&s->l->stopping) && s->retry.at_ms <= mono_ms;
}

/*
 * Get them without being asked by the loop, which may have all it can take. One that waits for its host's pause is tried again.
 * One that is lent is under way, or comes back within FIRST_BACK_MS from a worker that had not begun it, and may by then have
 * claimed others in its place.
 */
static void claim_first(struct storer *s, int64_t now_ms, int64_t mono_ms)
{
	struct fw_claim_ask ask = ask_for(s, SPARE_SLOTS - FW_MIN(s->extra, (size_t)SPARE_SLOTS), FW_DUE_FIRST);
	struct fw_claim_got got = {.n = 0};
	int64_t n, wake_ms;
	struct fw_err err;
	int rc;

	s->first_at_ms = mono_ms + FIRST_MS;
	ask.host_ahead += SPARE_SLOTS; /* others of its host that are here already have to let it pass, not the other way round */
	if (s->extra < SPARE_SLOTS && claim_some(s, &ask, true, now_ms, &got))
		return;
	rc = fw_store_pending(s->st, FW_DUE_FIRST, &n, &wake_ms, &err);
	if (rc) {
		outage(s, "looking for feeds that were asked for", rc, &err);
		return;
	}
	if (n == 0 || mono_ms >= s->first_until_ms ||
	    (!got.n && wake_ms > now_ms + FW_SECOND_MS && mono_ms >= s->first_back_ms))
		s->first_until_ms = 0;
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
			if (getppid() == s->l->o->master) /* an orphan's parent is somebody else, such as init */
				kill(s->l->o->master, SIGHUP);
		}
	}
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
	beat_fill(s, &b);
	rc = fw_store_commit(s->st, &c, &err);
	if (rc) {
		outage(s, "the sign of life", rc, &err);
	} else {
		s->beat_at_ms = mono_ms;
		outage_over(s);
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
	int64_t ms = IDLE_MS;

	if (s->retry.at_ms)
		ms = FW_MIN(ms, s->retry.at_ms - mono_ms);
	else if (s->n)
		ms = FW_MIN(ms, s->batch_since_ms + s->l->config->batch_ms - mono_ms);
	if (!wakes(s) && !s->retry.at_ms)
		ms = FW_MIN(ms, s->control_at_ms - mono_ms);
	if (s->first_until_ms && !s->retry.at_ms && !s->l->o->shared->paused)
		ms = FW_MIN(ms, s->first_at_ms - mono_ms);
	if (!s->retry.at_ms && atomic_load(&s->l->want) && !s->l->o->shared->paused)
		ms = FW_MIN(ms, FW_MAX(s->next_claim_ms, s->claimed_at_ms + PORTION_MS) - mono_ms);
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
	if (s->l->o->index == 0)
		bury_the_dead(s);
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
		course_begin(s);
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
			outage_over(s);
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
	s->upkeep_more = true;
	s->prune_at_ms = s->l->o->once ? 0 : fw_mono_ms() + PRUNE_MS;
	if (s->l->o->once) {
		struct fw_plan_rules rules;

		fw_settings_plan(s->l->config, s->l->slots, &rules);
		s->bounds = fw_plan_bounds_new(&rules);
	}
	return s->batch && s->outcome && s->back ? 0 : FW_ENOMEM;
}

/*
 * The store is away. A run that goes on waits for it; one that drains waits for drain_timeout_ms, and a --once, behind which
 * somebody sits, for ONCE_OUTAGE_MS. What is held then is not lost: the next run takes the leases back and makes the visits again.
 */
static bool gave_up(const struct storer *s, int64_t mono_ms)
{
	int64_t limit = s->l->o->once ? ONCE_OUTAGE_MS : s->l->config->drain_timeout_ms;

	if (!s->outage_since_ms || (!s->l->o->once && !s->last_since_ms))
		return false;
	if (mono_ms - FW_MAX(s->outage_since_ms, s->last_since_ms) < limit)
		return false;
	s->l->o->shared->err = s->outage_err;
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
		take_outcomes(s);
		if (s->st && commit_due(s, mono_ms))
			commit(s);
		give_back(s);
		if (last && !s->alive)
			return WORKER_DONE;
		if (gave_up(s, mono_ms))
			return WORKER_STORE;
		beat(s, mono_ms);
		if (first_due(s, mono_ms))
			claim_first(s, now_ms, mono_ms);
		if (claim_due(s, mono_ms))
			claim(s, now_ms);
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
