/* SPDX-License-Identifier: ISC */
/*
 * The loop thread of a worker: takes leases, keeps the transfer slots full, reads what comes back (large documents are read beside it:
 * reader.h), hands outcomes to the store thread. Never blocks: no SQL, no disk, no name look-up happens here.
 *
 * Draining (signal, control message, end of a --once, loss of the master): nothing new is started, leases not begun go back,
 * transfers in flight get drain_timeout_ms, then they are cancelled and go back too. Told to hurry, it leaves at once.
 */
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
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/host_pause.h"
#include "engine/lane.h"
#include "engine/reader.h"
#include "engine/settings.h"

#define BEAT_EVERY_MS 500
#define SIGNAL_N 4
#define READING_MAX_MS (30 * FW_SECOND_MS) /* of a large document: no linear parse takes as long */
#define DOUBT_MIN 64         /* visits that may wait for the verdict on our network, or as many as there are slots */
#define DOUBT_LEASE_MS (2 * FW_SECOND_MS) /* ... but not when their lease is about to run out */
#define COOLED_N 64
#define PATIENCE_EVERY_MS 25 /* looks at the end of a --once */
#define PATIENCE_RUN 4       /* a run that has not lasted so many times its patience yet is patient */
#define PATIENCE_DEV 8       /* so many mean deviations above what is expected are more than ever */
#define NAME_WAIT_US 1000000 /* for another visit of its name to end, before it gives back its place at their host */
#define ONCE_TURN_MS FW_MINUTE_MS /* a --once gives back at once what would wait longer for its host */

struct line { /* of leases */
	struct lent *first, *last;
};

/* A host that wants a pause; leases that are on their way from the store thread do not know of it. */
struct cooled {
	int64_t host, until_ms;
};

struct worker {
	struct lane lane;
	const struct worker_options *o;
	uv_loop_t loop;
	struct fw_net net;
	struct fw_fetcher *fetcher;
	struct reader reader;
	struct visit *visit;         /* all of them */
	struct visit *free;
	struct visit **in_slot;      /* by slot: in flight */
	int *free_slot;
	uint32_t free_slot_n, in_flight;
	struct fw_plan *queue;       /* leases waiting for a slot */
	struct line slow;            /* ... and such as wait for another slow one to end */
	size_t slow_line_n, slow_n;  /* these; slow ones in the queue and in flight */
	size_t slow_max;             /* for either; 0: there is no such limit */
	int64_t slow_us;
	size_t batch;                /* a barrier after so many; 0: none */
	int64_t barrier;             /* the rank at which the next one stands */
	struct cooled cooled[COOLED_N];
	size_t cooled_at;
	struct host_pauses *pauses;  /* of names that share their host */
	struct host_share **share;   /* of all workers */
	struct line named;           /* leases whose name has all the places of its host that it may have */
	size_t named_n;
	size_t granted, pending;
	uint64_t rnd;
	struct fw_weather weather;
	struct visit **doubt;        /* ended, oldest first, and waiting for what the next ones show */
	uint32_t doubt_n, doubt_max;
	bool draining, closing;
	uv_timer_t beat, drain_timer, gap_timer, patience_timer;
	int64_t started_us;
	uv_signal_t signal[SIGNAL_N];
	uv_poll_t master;
};

static void start_more(struct worker *w);
static void doubts_settle(struct worker *w);
static void on_gap_over(uv_timer_t *t);

static void line_put(struct line *l, struct lent *lent)
{
	lent->next = NULL;
	if (l->first)
		l->last->next = lent;
	else
		l->first = lent;
	l->last = lent;
}

static struct lent *line_take(struct line *l)
{
	struct lent *lent = l->first;

	if (lent)
		l->first = lent->next;
	return lent;
}

static struct lent *lent_of(const struct fw_plan_item *item)
{
	return (struct lent *)(void *)((char *)(uintptr_t)item - offsetof(struct lent, item));
}

static size_t waiting(const struct worker *w)
{
	return fw_plan_waiting(w->queue) + w->slow_line_n + w->named_n;
}

static uint64_t next_random(struct worker *w)
{
	w->rnd ^= w->rnd << 13;
	w->rnd ^= w->rnd >> 7;
	w->rnd ^= w->rnd << 17;
	return w->rnd;
}

/* It holds no place any more that counts for its name. */
static void name_leave(struct worker *w, struct lent *lent)
{
	if (lent->named)
		host_share_leave(w->share[w->o->index], lent->name);
	lent->named = false;
}

/* ---- visits ---------------------------------------------------------------------------------------------------------------------- */

static void hand_over(struct worker *w, struct visit *v, enum visit_end end)
{
	v->end = end;
	w->pending++;
	if (v->large)
		reader_hold(&w->reader, v);
	else if (atomic_fetch_add(&w->lane.held_bytes, v->held_bytes) + v->held_bytes >= w->lane.held_max && !w->draining)
		fw_fetcher_hold(w->fetcher, true); /* what ends now waits undecoded for its turn */
	if (!fw_ring_put(&w->lane.outcomes, v))
		abort(); /* the ring holds as many as there are visits */
	fw_lane_outcome_put(&w->lane, w->draining || (!w->in_flight && !waiting(w) && !w->reader.n) || v->lease->feed.due_at_ms <= FW_DUE_FIRST);
}

static void slot_free(struct worker *w, struct visit *v)
{
	w->in_slot[v->slot] = NULL;
	w->free_slot[w->free_slot_n++] = v->slot;
	w->in_flight--;
	name_leave(w, v->lent);
	fw_plan_done(w->queue, &v->lent->item);
	w->slow_n -= v->lent->slow;
	atomic_store_explicit(&w->o->meter->in_flight, w->in_flight, memory_order_relaxed);
}

static void end_if_drained(struct worker *w)
{
	if (w->draining && !w->in_flight && !waiting(w) && !w->reader.n && !atomic_load(&w->lane.loop_done)) {
		atomic_store(&w->lane.loop_done, true);
		fw_lane_wake_store(&w->lane);
	}
}

static void weather_changed(struct worker *w)
{
	atomic_store_explicit(&w->o->meter->offline, w->weather.down, memory_order_relaxed);
	if (w->weather.down)
		fw_warn("our own network seems to be down: %d hosts in a row did not answer%s; no feed is charged with it",
			w->weather.few ? (int)w->weather.failed_n : FW_WEATHER_DOWN_N, w->weather.few ? ", and nobody else did" : "");
	else
		fw_info("our own network is up again");
}

static struct visit *visit_take(struct worker *w, struct lent *lent)
{
	struct visit *v = w->free;

	w->free = v->next;
	v->next = NULL;
	v->worker = w;
	v->lent = lent;
	v->lease = lent->lease;
	v->batch = lent->batch;
	v->held_bytes = 0;
	return v;
}

static void give_back(struct worker *w, struct lent *lent)
{
	name_leave(w, lent);
	hand_over(w, visit_take(w, lent), VISIT_RELEASE);
}

/* It waits until then in the store, where it is in nobody's way. */
static void put_off(struct worker *w, struct lent *lent, int64_t until_ms)
{
	struct visit *v = visit_take(w, lent);
	int64_t spread_ms = FW_MIN((until_ms - fw_now_ms()) / 10, FW_HOUR_MS);

	name_leave(w, lent);
	v->feed.due_at_ms = until_ms + (int64_t)(next_random(w) % (uint64_t)(FW_MAX(spread_ms, 0) + 1)); /* not all of them at once */
	meter_count(w->o->meter, FW_COUNT_DEFERRED, 1);
	hand_over(w, v, VISIT_DEFER);
}

static void withdrawn(void *ctx, struct fw_plan_item *item)
{
	struct worker *w = ctx;
	struct lent *lent = lent_of(item);

	w->slow_n -= lent->slow;
	give_back(w, lent);
}

static void line_unqueue(struct worker *w, struct line *l, size_t *n, int64_t host)
{
	struct line kept = {NULL, NULL};
	struct lent *lent;

	while ((lent = line_take(l)) != NULL) {
		if (host != FW_PLAN_ALL && lent->item.host != host) {
			line_put(&kept, lent);
			continue;
		}
		--*n;
		give_back(w, lent);
	}
	*l = kept;
}

/* All that wait for this host go back, or simply all. */
static void unqueue(struct worker *w, int64_t host)
{
	fw_plan_withdraw(w->queue, host, withdrawn, w);
	line_unqueue(w, &w->slow, &w->slow_line_n, host);
	line_unqueue(w, &w->named, &w->named_n, host);
	fw_lane_wake_store(&w->lane);
}

/* This host wants to be left alone: what waits here for it goes back to the store, whose pause holds for everybody. */
static void cool(struct worker *w, int64_t host, int64_t until_ms)
{
	if (!host || until_ms <= 0)
		return;
	w->cooled[w->cooled_at++ % COOLED_N] = (struct cooled){host, until_ms};
	unqueue(w, host);
}

static bool is_cooled(const struct worker *w, int64_t host)
{
	for (size_t i = 0; host && i < COOLED_N; i++) {
		if (w->cooled[i].host == host && w->cooled[i].until_ms > fw_now_ms())
			return true;
	}
	return false;
}

/* It is read: what becomes of it. */
static void visit_settle(struct worker *w, struct visit *v)
{
	int64_t host = v->lent->item.host, cooldown_ms;

	visit_conclude(v, &w->lane.rules, fw_now_ms(), next_random(w));
	host_pause_learn(w->pauses, v, fw_now_ms());
	v->lent->parsed_us = fw_mono_us();
	atomic_store_explicit(&w->o->shared->last_done_us, v->lent->parsed_us, memory_order_relaxed);
	v->outcome.visit.queue_us = v->lent->queue_us + v->fetch.visit.queue_us;
	cooldown_ms = v->outcome.host_cooldown_ms;
	hand_over(w, v, VISIT_COMMIT); /* from here on it is the store thread's */
	cool(w, host, cooldown_ms);
}

static void visit_over(struct worker *w, struct visit *v)
{
	if (v->fetch.coded) {
		reader_put(&w->reader, v);
		return;
	}
	reading_begin(w->o->shared, v);
	visit_read(v, &w->lane.rules, fw_now_ms());
	reading_end(w->o->shared, v);
	visit_settle(w, v);
}

static void on_read(struct visit *v)
{
	struct worker *w = v->worker;

	visit_settle(w, v);
	start_more(w);
	doubts_settle(w);
	end_if_drained(w);
}

/* A --once of which nothing is left but what waits here. */
static bool none_can_tell(const struct worker *w)
{
	return w->o->once && !w->in_flight && !w->reader.n && !waiting(w) && atomic_load(&w->lane.tail);
}

static bool waited_enough(const struct worker *w, const struct visit *v, int64_t mono_ms)
{
	return mono_ms - v->ended_ms >= w->lane.config->offline_wait_ms || v->lent->until_ms - fw_now_ms() < DOUBT_LEASE_MS;
}

/*
 * Failures that may yet turn out to be those of our own network wait for what comes next, so that nobody is charged with the first of them:
 * until others answer or enough fail too, for offline_wait_ms, or until nothing is under way that could tell. A crash meanwhile, and a drain,
 * cost nothing: it is as if they had not been asked.
 */
static void doubts_settle(struct worker *w)
{
	int64_t mono_ms = fw_mono_ms();
	bool was = w->weather.down, over = none_can_tell(w), conclude = over;
	uint32_t n = w->doubt_n, kept = 0;

	for (uint32_t i = 0; i < n && !conclude; i++)
		conclude = waited_enough(w, w->doubt[i], mono_ms);
	if (n && conclude && fw_weather_conclude(&w->weather) != was)
		weather_changed(w);
	for (uint32_t i = 0; i < n; i++) {
		struct visit *v = w->doubt[i];

		visit_weather_again(v, &w->weather, mono_ms);
		if (w->draining) {
			v->held_bytes = 0;
			hand_over(w, v, VISIT_RELEASE);
		} else if (v->doubtful && !over && !waited_enough(w, v, mono_ms)) {
			w->doubt[kept++] = v;
		} else {
			visit_over(w, v);
		}
	}
	w->doubt_n = kept;
}

static bool may_wait(const struct worker *w, const struct visit *v)
{
	return v->doubtful && !v->lent->asked_for && w->lane.config->offline_wait_ms;
}

static void on_fetched(struct fw_fetch *f)
{
	struct visit *v = f->ctx;
	struct worker *w = v->worker;

	slot_free(w, v);
	if (visit_weather(v, &w->weather, fw_mono_ms()))
		weather_changed(w);
	if (f->put_off)
		meter_count(w->o->meter, FW_COUNT_DEFERRED, 1);
	/* as if it had not begun; or cancelled; or a machine that is shut down, its network first */
	if (f->put_off || (w->draining && (f->kind == FW_VISIT_LOCAL || may_wait(w, v)))) {
		v->held_bytes = 0;
		hand_over(w, v, VISIT_RELEASE);
	} else if (w->doubt_n < w->doubt_max && may_wait(w, v)) { /* too many are of few hosts: it is theirs */
		w->doubt[w->doubt_n++] = v;
	} else {
		visit_over(w, v);
	}
	start_more(w);
	doubts_settle(w);
	end_if_drained(w);
}

/* Sleep until a host's gap is over. */
static void gap_wait(struct worker *w, int64_t now_us, int64_t next_us)
{
	if (next_us != INT64_MAX)
		uv_timer_start(&w->gap_timer, on_gap_over, (uint64_t)((next_us - now_us) / 1000 + 1), 0);
}

/* From deep within libcurl: nothing is started here. */
static void on_sent(struct fw_fetch *f)
{
	struct visit *v = f->ctx;
	struct worker *w = v->worker;
	int64_t next_us;

	v->sent_us = fw_mono_us();
	fw_plan_sent(w->queue, &v->lent->item, v->sent_us);
	if (!fw_plan_first(w->queue, v->sent_us, &next_us))
		gap_wait(w, v->sent_us, next_us);
}

static void visit_start(struct worker *w, struct lent *lent)
{
	struct visit *v = visit_take(w, lent);
	struct fw_err err;

	visit_prepare(v, fw_now_ms());
	lent->queue_us = fw_mono_us() - lent->arrived_us;
	v->fetch.done = on_fetched;
	v->fetch.sent = on_sent;
	v->fetch.ctx = v;
	v->slot = w->free_slot[--w->free_slot_n];
	w->in_slot[v->slot] = v;
	w->in_flight++;
	atomic_store_explicit(&w->o->meter->in_flight, w->in_flight, memory_order_relaxed);
	if (fw_fetch_start(w->fetcher, &v->fetch, &err)) {
		fw_warn("feed %lld could not be started: %s", (long long)v->feed.id, err.text);
		slot_free(w, v);
		hand_over(w, v, VISIT_RELEASE);
	}
}

/*
 * Ask for more leases as long as there is room for them and for what they will become. What waits for its host, or for a slow one to
 * end, takes no room from what could begin: it has room of its own.
 */
static void grant(struct worker *w)
{
	struct lane *l = &w->lane;
	size_t at_hand = w->in_flight + fw_plan_ready(w->queue) + w->granted, all = w->in_flight + waiting(w) + w->granted + w->reader.n, more;

	if (w->draining || at_hand >= l->cap || all >= l->lease_max || w->pending >= l->pending_max ||
	    atomic_load(&l->held_bytes) >= l->held_max || w->reader.coded_bytes >= (size_t)l->config->max_buffered_bytes)
		return;
	more = FW_MIN(l->cap - at_hand, l->lease_max - all);
	w->granted += more;
	if (atomic_fetch_add(&l->want, more) + more >= l->slots / 4)
		fw_lane_wake_store(l);
}

/* A batch policy's barrier: nothing begins behind it before all in front of it has ended. */
static bool is_barred(struct worker *w, const struct lent *lent)
{
	if (!w->batch || lent->asked_for || lent->item.rank < w->barrier)
		return false;
	if (w->in_flight)
		return true;
	w->barrier = (lent->item.rank / (int64_t)w->batch + 1) * (int64_t)w->batch;
	return false;
}

/* The next one that may begin; NULL: none, or no slot for it. */
static struct lent *queue_take(struct worker *w)
{
	int64_t now_us = fw_mono_us(), next_us;
	const struct fw_plan_item *first;

	if (w->draining || !w->free_slot_n || !fw_plan_waiting(w->queue))
		return NULL;
	first = fw_plan_first(w->queue, now_us, &next_us);
	if (!first)
		gap_wait(w, now_us, next_us);
	if (!first || (!lent_of(first)->asked_for && (w->in_flight >= w->lane.slots || is_barred(w, lent_of(first)))))
		return NULL;
	return lent_of(fw_plan_take(w->queue, now_us, &next_us));
}

static void enqueue(struct worker *w, struct lent *lent)
{
	if (fw_plan_put(w->queue, &lent->item))
		give_back(w, lent);
	else
		w->slow_n += lent->slow;
}

static void slow_follow(struct worker *w)
{
	while (w->slow.first && w->slow_n < w->slow_max) {
		w->slow_line_n--;
		enqueue(w, line_take(&w->slow));
	}
	atomic_store_explicit(&w->lane.slow_full, w->slow_max && w->slow_line_n >= w->slow_max, memory_order_relaxed);
}

/* Of a host that several names share this one's may hold all places but one. */
static bool name_enter(struct worker *w, struct lent *lent)
{
	int64_t max = w->lane.config->host_max - 1;

	if (!lent->named && lent->name && max > 0)
		lent->named = host_share_enter(w->share, w->o->workers, w->o->index, lent->name, (uint32_t)max);
	return lent->named || !lent->name || max < 1;
}

/*
 * It has waited for its name long enough: others of their host may have its place. In a run that goes on it is due again when what holds
 * the name must have ended; in a --once, after all others of the run, and then it has its turn.
 */
static void name_gives_up(struct worker *w, struct lent *lent)
{
	if (!w->o->once) {
		put_off(w, lent, fw_now_ms() + w->lane.config->total_timeout_ms);
	} else if (lent->lease->feed.due_at_ms < w->o->due_before_ms) {
		put_off(w, lent, w->o->due_before_ms);
	} else {
		lent->name = 0;
		enqueue(w, lent);
	}
}

static void names_follow(struct worker *w)
{
	struct line waiting = w->named;
	struct lent *lent;

	if (!w->named_n)
		return;
	w->named = (struct line){NULL, NULL};
	w->named_n = 0;
	while ((lent = line_take(&waiting)) != NULL) {
		if (name_enter(w, lent)) {
			enqueue(w, lent);
		} else if (fw_mono_us() - lent->held_us >= NAME_WAIT_US) {
			name_gives_up(w, lent);
		} else {
			w->named_n++;
			line_put(&w->named, lent);
		}
	}
}

/* Its turn has come: does it begin, or is there something in the way? */
static void lent_start(struct worker *w, struct lent *lent)
{
	int64_t now_ms = fw_now_ms(), pause_ms = host_pause_until(w->pauses, lent->lease->feed.url, now_ms);
	/* after a long wait (the store was away, the machine asleep) somebody else may be at it, or come to it meanwhile */
	bool late = lent->until_ms - now_ms < w->lane.config->total_timeout_ms;

	if (!late && !pause_ms && name_enter(w, lent)) {
		visit_start(w, lent);
		return;
	}
	fw_plan_done(w->queue, &lent->item);
	w->slow_n -= lent->slow;
	if (late) {
		give_back(w, lent);
	} else if (pause_ms) {
		put_off(w, lent, pause_ms);
	} else {
		lent->held_us = fw_mono_us();
		w->named_n++;
		line_put(&w->named, lent);
	}
	slow_follow(w);
}

static void start_more(struct worker *w)
{
	struct lent *lent;

	slow_follow(w);
	names_follow(w);
	while ((lent = queue_take(w)) != NULL)
		lent_start(w, lent);
	grant(w);
}

static void on_gap_over(uv_timer_t *t)
{
	start_more(t->data);
}

/* The store thread has caught up a little: read what waits. */
static void read_on(struct worker *w)
{
	if (w->draining || atomic_load(&w->lane.held_bytes) < w->lane.held_max)
		fw_fetcher_hold(w->fetcher, false);
}

/* Is it slow, as far as is known? One of which nothing is known is as slow as its host's others, or else it is not. */
static bool is_slow(const struct worker *w, const struct lent *lent)
{
	int64_t expect_us = lent->lease->feed.expect_us;

	return w->slow_max && !lent->asked_for && (expect_us > 0 ? expect_us : lent->lease->host_expect_us) > w->slow_us;
}

static void take_lease(struct worker *w, struct lent *lent)
{
	const struct fw_lease *lease = lent->lease;
	bool is_known = lease->feed.expect_us > 0;

	lent->arrived_us = fw_mono_us();
	lent->slow = is_slow(w, lent);
	lent->item.host = lease->host_id;
	lent->item.gap_us = lease->host_gap_ms * 1000;
	lent->item.expect_us = lease->feed.expect_us;
	lent->name = lease->host_id && !lent->asked_for ? host_share_of(&lease->feed, w->o->shared->seed) : 0;
	if (lent->asked_for)
		lent->item.rank = -INT64_MAX;
	if (w->draining || is_cooled(w, lease->host_id) || (w->o->once && fw_plan_turn_us(w->queue, &lent->item) > ONCE_TURN_MS * 1000)) {
		give_back(w, lent);
	} else if (!lent->slow || w->slow_n < w->slow_max) {
		enqueue(w, lent);
	} else if (w->slow_line_n < (is_known ? w->slow_max : w->lane.cap / 2)) {
		w->slow_line_n++;
		line_put(&w->slow, lent);
	} else if (is_known) {
		give_back(w, lent); /* one claim brought many; the next leaves them out */
	} else {
		lent->slow = false; /* the next claim would bring it again, for it leaves out none for their hosts' sake */
		enqueue(w, lent);
	}
}

static void take_leases(struct worker *w)
{
	struct lent *lent;

	while ((lent = fw_ring_take(&w->lane.leases)) != NULL) {
		if (!lent->extra)
			w->granted--;
		take_lease(w, lent);
	}
}

static void take_spent(struct worker *w)
{
	struct visit *v;

	while ((v = fw_ring_take(&w->lane.spent)) != NULL) {
		if (v->large)
			reader_spent(&w->reader, v);
		visit_reset(v);
		v->next = w->free;
		w->free = v;
		w->pending--;
	}
}

/* ---- draining and the end ------------------------------------------------------------------------------------------------------------- */

static void on_drain_timeout(uv_timer_t *t)
{
	struct worker *w = t->data;
	struct visit *v;

	fw_info("%zu transfers did not end in time; their feeds go back", w->in_flight + w->reader.n);
	while ((v = reader_take_back(&w->reader)) != NULL) {
		v->held_bytes = 0;
		hand_over(w, v, VISIT_RELEASE);
	}
	for (uint32_t i = 0; i < w->lane.slots + SPARE_SLOTS; i++) {
		if (w->in_slot[i])
			fw_fetch_cancel(&w->in_slot[i]->fetch);
	}
	end_if_drained(w);
}

/* Has it been silent for longer than it ever was, so that waiting for it does not pay? */
static bool is_overdue(const struct visit *v, int64_t patience_us)
{
	const struct fw_feed *was = &v->lease->feed;
	int64_t begun_us = v->lent->arrived_us + v->lent->queue_us + v->fetch.visit.queue_us;

	return was->expect_us > 0 && fw_visit_succeeded(was->last_kind) && !v->lent->asked_for && fw_fetch_is_silent(&v->fetch) &&
		fw_mono_us() - begun_us > FW_MAX(patience_us, was->expect_us + PATIENCE_DEV * was->expect_dev_us);
}

/*
 * The last ones of a --once: when all of them are overdue they are given up. One that answers at random not for once would else hold up the
 * end of a run for as long as its time-outs are, whatever the order. Nothing is given up while anything else would go on.
 */
static void on_patience(uv_timer_t *t)
{
	struct worker *w = t->data;
	int64_t patience_us = w->lane.config->patience_ms * 1000;
	uint32_t slots = w->lane.slots + SPARE_SLOTS;

	doubts_settle(w);
	if (w->draining || !w->in_flight || waiting(w) || w->reader.n || !atomic_load(&w->lane.tail) ||
	    fw_mono_us() - w->started_us < PATIENCE_RUN * patience_us)
		return;
	for (uint32_t i = 0; i < slots; i++) {
		if (w->in_slot[i] && !is_overdue(w->in_slot[i], patience_us))
			return;
	}
	for (uint32_t i = 0; i < slots; i++) {
		struct visit *v = w->in_slot[i];

		if (!v)
			continue;
		v->impatient = true;
		if (!fw_fetch_give_up(&v->fetch)) /* it is not ours any more when this is true */
			v->impatient = false;
	}
}

static void drain(struct worker *w)
{
	if (w->draining)
		return;
	w->draining = true;
	atomic_store(&w->lane.stopping, true);
	fw_fetcher_hold(w->fetcher, false);
	unqueue(w, FW_PLAN_ALL);
	doubts_settle(w);
	if (w->in_flight || w->reader.n)
		uv_timer_start(&w->drain_timer, on_drain_timeout, (uint64_t)w->lane.config->drain_timeout_ms, 0);
	end_if_drained(w);
}

static void close_all(struct worker *w)
{
	if (w->closing)
		return;
	w->closing = true;
	drain(w);
	if (w->in_flight || w->reader.n) /* the store thread gave up: no use in waiting */
		on_drain_timeout(&w->drain_timer);
	reader_close(&w->reader);
	uv_close((uv_handle_t *)&w->lane.to_loop, NULL);
	uv_close((uv_handle_t *)&w->beat, NULL);
	uv_close((uv_handle_t *)&w->drain_timer, NULL);
	uv_close((uv_handle_t *)&w->gap_timer, NULL);
	uv_close((uv_handle_t *)&w->patience_timer, NULL);
	for (int i = 0; i < SIGNAL_N; i++)
		uv_close((uv_handle_t *)&w->signal[i], NULL);
	uv_close((uv_handle_t *)&w->master, NULL);
	fw_fetcher_destroy(w->fetcher);
	w->fetcher = NULL;
}

static void on_async(uv_async_t *async)
{
	struct worker *w = async->data;

	take_spent(w);
	take_leases(w);
	if (atomic_load(&w->lane.store_gone)) {
		close_all(w);
		return;
	}
	if (atomic_load(&w->lane.finished))
		drain(w);
	if (atomic_exchange(&w->lane.unqueue, false))
		unqueue(w, FW_PLAN_ALL);
	read_on(w);
	start_more(w);
	end_if_drained(w);
}

static void on_beat(uv_timer_t *t)
{
	struct worker *w = t->data;

	if (!w->reader.since_ms || fw_mono_ms() - w->reader.since_ms < READING_MAX_MS) /* a document in which it never ends is found so too */
		atomic_store(&w->o->meter->beat_mono_ms, fw_mono_ms());
	meter_own(&w->o->meter->own);
	fw_log_own_up();
	doubts_settle(w);
	if (!w->closing)
		read_on(w);
	if (w->named_n)
		start_more(w);
	grant(w); /* the mark on held bytes may have been passed downwards without an event */
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct worker *w = handle->data;

	if (number == WORKER_HURRY) {
		fw_warn("leaving at once: the next run gives back what is lent, or the leases run out");
		_exit(WORKER_LEFT);
	}
	fw_debug("signal %d: draining", number);
	drain(w);
}

static void on_master(uv_poll_t *handle, int status, int events)
{
	struct worker *w = handle->data;

	(void)status;
	(void)events;
	uv_poll_stop(handle);
	fw_warn("the master is gone: draining");
	drain(w);
}

/* ---- setting up ---------------------------------------------------------------------------------------------------------------------------- */

/* Descriptors: one per transfer, a second while a redirect or address changes, and some for ourselves. */
static uint32_t slots_allowed(int64_t wanted)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r))
		return (uint32_t)wanted;
	r.rlim_cur = r.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &r);
	if (r.rlim_cur != RLIM_INFINITY && (int64_t)r.rlim_cur < wanted * 2 + 64) {
		int64_t fit = FW_MAX(((int64_t)r.rlim_cur - 64) / 2, 1);

		fw_warn("concurrency %lld needs %lld file descriptors and %lld are allowed: using %lld (ulimit -n)", (long long)wanted,
			(long long)(wanted * 2 + 64), (long long)r.rlim_cur, (long long)fit);
		return (uint32_t)fit;
	}
	return (uint32_t)wanted;
}

static int lane_init(struct worker *w)
{
	const struct fw_config *c = w->o->config;
	struct lane *l = &w->lane;

	l->o = w->o;
	l->config = c;
	l->slots = slots_allowed(c->concurrency);
	atomic_store_explicit(&w->o->meter->slots, l->slots, memory_order_relaxed);
	l->cap = l->slots + FW_MIN((size_t)l->slots / 2 + 1, (size_t)256);
	l->pending_max = (size_t)c->batch_visits + (size_t)c->batch_visits / 2;
	l->lease_max = 2 * l->cap;
	w->doubt_max = FW_MAX(l->slots, DOUBT_MIN);
	l->visit_max = 3 * l->cap + l->pending_max + SPARE_SLOTS + w->doubt_max;
	l->held_max = 2 * (size_t)c->batch_bytes;
	fw_settings_visit(c, &l->rules);
	l->rules.run_id = w->o->run_id;
	if (fw_ring_init(&l->leases, l->visit_max) || fw_ring_init(&l->outcomes, l->visit_max) ||
	    fw_ring_init(&l->spent, l->visit_max))
		return FW_ENOMEM;
	if (pipe2(l->wake_fd, O_NONBLOCK | O_CLOEXEC))
		return FW_EIO;
	return 0;
}

static int queue_init(struct worker *w)
{
	const struct fw_config *c = w->o->config;
	struct fw_plan_rules rules = {.policy = FW_PLAN_FIFO, .slots = w->lane.slots, .host_max = (uint32_t)c->host_max,
		.from_sent = true};

	if (w->o->once)
		w->batch = (size_t)fw_settings_batch(c, w->lane.slots);
	if (!w->o->once && c->slow_share < 100)
		w->slow_max = FW_MAX((size_t)w->lane.slots * (size_t)c->slow_share / 100, 1);
	w->slow_us = c->slow_ms * 1000;
	w->queue = fw_plan_new(&rules);
	w->pauses = host_pauses_new(next_random(w));
	w->share = calloc((size_t)w->o->workers, sizeof(*w->share));
	for (int i = 0; w->share && i < w->o->workers; i++)
		w->share[i] = &(w->o->shared - w->o->index)[i].share;
	if (w->share) /* what a predecessor had */
		memset(w->share[w->o->index], 0, sizeof(**w->share));
	return w->queue && w->pauses && w->share ? 0 : FW_ENOMEM;
}

static int visits_init(struct worker *w)
{
	uint32_t slots = w->lane.slots + SPARE_SLOTS;
	size_t n = w->lane.visit_max;

	w->visit = calloc(n, sizeof(*w->visit));
	w->in_slot = calloc(slots, sizeof(*w->in_slot));
	w->free_slot = calloc(slots, sizeof(*w->free_slot));
	w->doubt = calloc(w->doubt_max, sizeof(struct visit *));
	if (!w->visit || !w->in_slot || !w->free_slot || !w->doubt)
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

static int handles_init(struct worker *w, struct fw_err *err)
{
	static const int SIGNALS[SIGNAL_N] = {SIGTERM, SIGINT, SIGQUIT, WORKER_HURRY};
	int rc;

	if (uv_loop_init(&w->loop) || uv_async_init(&w->loop, &w->lane.to_loop, on_async) || uv_timer_init(&w->loop, &w->beat) ||
	    uv_timer_init(&w->loop, &w->drain_timer) || uv_timer_init(&w->loop, &w->gap_timer) ||
	    uv_timer_init(&w->loop, &w->patience_timer))
		return fw_err_set(err, FW_EIO, "the event loop could not be made: %s", strerror(errno));
	w->lane.to_loop.data = w->beat.data = w->drain_timer.data = w->gap_timer.data = w->patience_timer.data = w;
	for (int i = 0; i < SIGNAL_N; i++) {
		if (uv_signal_init(&w->loop, &w->signal[i]) || uv_signal_start(&w->signal[i], on_signal, SIGNALS[i]))
			return fw_err_set(err, FW_EIO, "signal %d cannot be waited for: %s", SIGNALS[i], strerror(errno));
		w->signal[i].data = w;
	}
	if (uv_poll_init(&w->loop, &w->master, w->o->master_fd) ||
	    uv_poll_start(&w->master, UV_READABLE | UV_DISCONNECT, on_master))
		return fw_err_set(err, FW_EIO, "the master cannot be watched: %s", strerror(errno));
	w->master.data = w;
	rc = fw_settings_net(w->o->config, w->lane.slots + SPARE_SLOTS, &w->net, err);
	if (rc)
		return rc;
	w->net.fetch.eager_bytes = READER_LARGE_BYTES;
	rc = fw_fetcher_create(&w->loop, &w->net.fetch, &w->fetcher, err);
	if (rc)
		return rc;
	w->reader = (struct reader){.loop = &w->loop, .fetcher = w->fetcher, .rules = &w->lane.rules, .shared = w->o->shared, .done = on_read};
	reader_init(&w->reader);
	return reading_watch(w->o->shared, err);
}

static void worker_finish(struct worker *w)
{
	struct lent *lent;

	/* a store that stayed away leaves visits and leases behind */
	while ((lent = fw_ring_take(&w->lane.leases)) != NULL)
		lease_batch_unref(lent->batch);
	for (size_t i = 0; w->visit && i < w->lane.visit_max; i++) {
		fw_fetch_finish(&w->visit[i].fetch);
		fw_arena_finish(&w->visit[i].arena);
		if (w->visit[i].batch)
			lease_batch_unref(w->visit[i].batch);
	}
	free(w->visit);
	free(w->in_slot);
	free(w->free_slot);
	free(w->doubt);
	fw_plan_free(w->queue);
	host_pauses_free(w->pauses);
	free(w->share);
	fw_ring_finish(&w->lane.leases);
	fw_ring_finish(&w->lane.outcomes);
	fw_ring_finish(&w->lane.spent);
}

/*
 * Bodies and documents come and go in bursts: what is large goes back to the system at once, and both threads share one heap.
 * glibc's own habits (a threshold that grows, a heap per thread) cost a quarter more memory and save no time that could be measured.
 */
static void heap_tame(void)
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
	struct worker *w = aligned_alloc(_Alignof(struct worker), sizeof(*w)); /* calloc knows nothing of cache lines */
	sigset_t all, none;
	void *code = NULL;
	int rc;

	if (!w)
		return WORKER_SYSTEM;
	memset(w, 0, sizeof(*w));
	w->o = o;
	heap_tame();
	fw_worker_name(o->shared->name, sizeof(o->shared->name), o->index);
	if (getrandom(&w->rnd, sizeof(w->rnd), 0) != (ssize_t)sizeof(w->rnd) || !w->rnd)
		w->rnd = (uint64_t)fw_mono_us() << 20 ^ (uint64_t)getpid();
	rc = lane_init(w);
	if (!rc)
		rc = visits_init(w);
	if (!rc)
		rc = queue_init(w);
	if (rc)
		fw_err_set(&o->shared->err, rc, "a worker could not start: %s", rc == FW_ENOMEM ? "out of memory" : strerror(errno));
	else
		rc = handles_init(w, &o->shared->err);
	if (rc)
		return WORKER_SYSTEM;
	atomic_store(&o->meter->beat_mono_ms, fw_mono_ms());
	meter_own(&o->meter->own);
	uv_timer_start(&w->beat, on_beat, BEAT_EVERY_MS, BEAT_EVERY_MS);
	w->started_us = fw_mono_us();
	if (o->once && o->config->patience_ms)
		uv_timer_start(&w->patience_timer, on_patience, PATIENCE_EVERY_MS, PATIENCE_EVERY_MS);
	grant(w);
	sigfillset(&all);
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &all, NULL); /* signals are the loop's */
	rc = pthread_create(&w->lane.store_thread, NULL, fw_storer_main, &w->lane);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	if (rc) {
		fw_err_set(&o->shared->err, FW_EIO, "a thread could not be made: %s", strerror(rc));
		return WORKER_SYSTEM;
	}
	uv_run(&w->loop, UV_RUN_DEFAULT);
	pthread_join(w->lane.store_thread, &code);
	uv_loop_close(&w->loop);
	rc = (int)(intptr_t)code;
	if (rc == WORKER_DONE && !atomic_load(&w->lane.finished))
		rc = WORKER_LEFT;
	else if (rc == WORKER_DONE && atomic_load(&w->lane.told))
		rc = WORKER_TOLD;
	worker_finish(w);
	close(w->lane.wake_fd[0]);
	close(w->lane.wake_fd[1]);
	free(w);
	return rc;
}
