/* SPDX-License-Identifier: ISC */
/*
 * Transfers: the loop thread's part of a claim's life. It starts waiting claims, reads the
 * responses (large documents on the parser thread: parser_thread.h), and hands the outcomes to the
 * store thread.
 *
 * A claim passes through this file as follows:
 *
 *	claim_next()            CLAIM_WAITING -> CLAIM_FETCHING, or CLAIM_HELD (name at its limit)
 *	visit_start()           a transfer in a slot
 *	transfers_on_further()  still CLAIM_FETCHING: a redirect waits for the host, too
 *	transfers_on_fetched()  CLAIM_FETCHING -> CLAIM_VERDICT_DEFERRED if our own network may be
 *	                        down, else:
 *	visit_begin_read()      -> CLAIM_READING
 *	visit_decide()          the outcome is decided
 *	visit_hand_over()       -> CLAIM_ENDED, into the ring to the store thread
 *
 * Nothing here blocks: no SQL, no disk, no name lookup.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/run/worker_parts.h"

/* a run abandons nothing before it has lasted this many times straggler_timeout_ms */
#define STRAGGLER_RUN 4
/* mean deviations above the expected duration that count as longer than ever */
#define STRAGGLER_DEV 8
#define NAME_WAIT_US 1000000 /* limit of the wait for another visit of the same name to end */

static size_t hosts_waiting(struct worker *w)
{
	size_t n = fw_hosts_waiting(owner_hosts_lock(w->ch.owner));

	owner_hosts_unlock(w->ch.owner);
	return n;
}

size_t transfers_waiting(struct worker *w)
{
	return hosts_waiting(w) + w->held_n;
}

/* ---- to the store thread --------------------------------------------------------------------- */

static void visit_hand_over(struct worker *w, struct visit *v, enum visit_end end)
{
	bool last = w->draining || v->claim->item.urgent || (!w->in_flight && !w->parser.n && !transfers_waiting(w));

	assert(!v->claim->item.of); /* the store thread may put the feed back at once */
	v->end = end;
	if (end == VISIT_RELEASE)
		v->held_bytes = 0;
	w->pending++;
	if (v->large)
		parser_thread_hold(&w->parser, v);
	else if (atomic_fetch_add(&w->ch.held_bytes, v->held_bytes) + v->held_bytes >= w->ch.held_max && !w->draining)
		/* backpressure: responses that end now stay undecoded */
		fw_fetcher_hold(w->fetcher, true);
	claim_move(v->claim, CLAIM_ENDED);
	if (!fw_ring_put(&w->ch.outcomes, v))
		abort(); /* the ring holds as many as there are visits */
	channel_outcome_put(&w->ch, last);
}

static struct visit *visit_alloc(struct worker *w, struct claim *c)
{
	struct visit *v = w->free;

	assert(v); /* there are as many visits as there can be claims */
	w->free = v->next;
	v->next = NULL;
	v->worker = w;
	v->claim = c;
	v->was = &c->feed;
	v->held_bytes = 0;
	return v;
}

static void claim_release(struct worker *w, struct claim *c)
{
	visit_hand_over(w, visit_alloc(w, c), VISIT_RELEASE);
}

/* Defer a claim that has not started: store a later due time for its feed, and why. */
static void claim_defer(struct worker *w, struct claim *c, int64_t until_ms, const char *why)
{
	struct visit *v = visit_alloc(w, c);
	int64_t spread_ms = FW_MIN((until_ms - fw_config_now_ms(w->ch.config)) / 10, FW_HOUR_MS);

	v->feed = c->feed;
	/* spread the feeds */
	v->feed.due_at_ms = until_ms + (int64_t)(worker_random(w) % (uint64_t)(FW_MAX(spread_ms, 0) + 1));
	v->feed.why = fw_str(why);
	v->outcome = (struct fw_outcome){.feed = &v->feed};
	meter_count(w->o->meter, FW_COUNT_DEFERRED, 1);
	visit_hand_over(w, v, VISIT_COMMIT);
}

void transfers_take_recycled(struct worker *w)
{
	struct visit *v;

	while ((v = fw_ring_take(&w->ch.recycled)) != NULL) {
		assert(w->pending);
		if (v->large)
			parser_thread_release(&w->parser, v);
		visit_reset(v);
		v->next = w->free;
		w->free = v;
		w->pending--;
	}
}

/* ---- names that share a host ----------------------------------------------------------------- */

/*
 * Take a place at the host for the claim's name. One name may have all places of its host but one.
 */
static bool name_take_slot(struct worker *w, struct claim *c)
{
	int64_t max = w->ch.config->host_concurrency - 1;

	if (!c->is_named)
		c->name = c->item.urgent ? 0 : host_share_of(&c->feed, w->seed);
	c->is_named = true;
	if (!c->is_counted && c->name && max > 0)
		c->is_counted = host_share_take(&w->share, c->name, (uint32_t)max);
	return c->is_counted || !c->name || max < 1;
}

static void name_release_slot(struct worker *w, struct claim *c)
{
	if (c->is_counted)
		host_share_release(&w->share, c->name);
	c->is_counted = false;
}

static void held_push(struct worker *w, struct claim *c)
{
	assert(c->state == CLAIM_HELD);
	c->next_held = NULL;
	*w->held_end = c;
	w->held_end = &c->next_held;
	w->held_n++;
}

/* Take the whole list of held claims. */
static struct claim *held_take_all(struct worker *w)
{
	struct claim *first = w->held;

	w->held = NULL;
	w->held_end = &w->held;
	w->held_n = 0;
	return first;
}

void transfers_release_held(struct worker *w)
{
	for (struct claim *c = held_take_all(w), *next; c; c = next) {
		next = c->next_held;
		name_release_slot(w, c);
		claim_release(w, c);
	}
}

/*
 * Put a held claim back into the hosts' table, or release it if its shard was given back meanwhile.
 */
static void claim_wait_for_host(struct worker *w, struct claim *c)
{
	struct fw_hosts *t = owner_hosts_lock(w->ch.owner);
	int rc;

	claim_move(c, CLAIM_WAITING);
	rc = fw_hosts_put(t, (uint32_t)store_host_shard(c->host_id), c->host_id, &c->item);
	if (rc)
		claim_move(c, CLAIM_HELD);
	owner_hosts_unlock(w->ch.owner);
	if (rc) {
		name_release_slot(w, c);
		claim_release(w, c);
	}
}

/*
 * The claim has waited NAME_WAIT_US for its name: make room for other names of its host. In a
 * continuous run the feed is due again when the visits that hold the name must have ended. In a run
 * --once it is deferred to the end of the run, and then starts whatever its name has.
 */
static void name_wait_expire(struct worker *w, struct claim *c)
{
	static const char WHY[] = "deferred: its name is at its limit at a shared host";

	if (!w->o->once) {
		claim_defer(w, c, fw_config_now_ms(w->ch.config) + w->ch.config->total_timeout_ms, WHY);
	} else if (c->feed.due_at_ms < w->o->due_before_ms) {
		claim_defer(w, c, w->o->due_before_ms, WHY);
	} else {
		c->name = 0;
		claim_wait_for_host(w, c);
	}
}

static void held_update(struct worker *w)
{
	for (struct claim *c = held_take_all(w), *next; c; c = next) {
		next = c->next_held;
		if (name_take_slot(w, c))
			claim_wait_for_host(w, c);
		else if (fw_mono_us() - c->held_us >= NAME_WAIT_US)
			name_wait_expire(w, c);
		else
			held_push(w, c);
	}
}

/* ---- starting -------------------------------------------------------------------------------- */

static void transfers_on_gap(uv_timer_t *t)
{
	transfers_start(t->data);
}

/* Start the timer for the next host that is free. */
static void gap_timer_start(struct worker *w, int64_t mono_ms, int64_t next_ms)
{
	if (next_ms != INT64_MAX)
		uv_timer_start(&w->gap_timer, transfers_on_gap, (uint64_t)FW_MAX(next_ms - mono_ms, INT64_C(1)), 0);
}

/* Start the timer for what the table of hosts, which is locked, says. */
static void gap_timer_follow(struct worker *w, struct fw_hosts *t, int64_t mono_ms)
{
	int64_t next_ms;

	if (fw_hosts_first(t, mono_ms, &next_ms))
		next_ms = mono_ms;
	gap_timer_start(w, mono_ms, next_ms);
}

/*
 * Called from inside libcurl, at the last moment before a request is sent: a worker that stood
 * still may have lost its lease. It must not start transfers.
 */
static bool transfers_on_send(struct fw_fetch *f)
{
	struct visit *v = f->ctx;
	struct worker *w = v->worker;
	struct owner *o = w->ch.owner;
	int64_t mono_ms = fw_mono_ms();
	bool may;

	if (v->is_elsewhere)
		return mono_ms < owner_safe_until_ms(o) && !owner_is_lost(o);
	may = fw_hosts_may_send(owner_hosts_lock(o), &v->claim->item, mono_ms);
	owner_hosts_unlock(o);
	return may;
}

/* It must not start transfers either: the timer does. */
static void transfers_on_sent(struct fw_fetch *f)
{
	struct visit *v = f->ctx;
	struct worker *w = v->worker;
	int64_t mono_ms = fw_mono_ms();
	struct fw_hosts *t;

	if (v->is_elsewhere)
		return;
	t = owner_hosts_lock(w->ch.owner);
	fw_hosts_sent(t, &v->claim->item, mono_ms);
	gap_timer_follow(w, t, mono_ms);
	owner_hosts_unlock(w->ch.owner);
}

/* A redirect within the host waits as other feeds do, if the host is not free at once. */
static bool transfers_on_further(struct fw_fetch *f, struct fw_str url)
{
	struct visit *v = f->ctx;
	struct worker *w = v->worker;
	struct fw_hosts_item *item = &v->claim->item;
	int64_t mono_ms = fw_mono_ms(), next_ms;
	struct fw_hosts *t;
	bool waits;

	v->is_elsewhere = !host_is_same(&w->ch.rules.host, v->was->url, url);
	if (v->is_elsewhere)
		return false;
	t = owner_hosts_lock(w->ch.owner);
	fw_hosts_further(t, item, mono_ms);
	waits = fw_hosts_first(t, mono_ms, &next_ms) != item;
	if (waits)
		gap_timer_follow(w, t, mono_ms);
	else
		(void)fw_hosts_start(t, mono_ms, &next_ms);
	owner_hosts_unlock(w->ch.owner);
	return waits;
}

static void slot_release(struct worker *w, struct visit *v)
{
	assert(w->in_flight && w->in_slot[v->slot] == v);
	w->in_slot[v->slot] = NULL;
	w->free_slot[w->free_slot_n++] = v->slot;
	w->in_flight--;
	name_release_slot(w, v->claim);
	v->claim->cooldown_until_ms = v->cooldown_until_ms;
	v->claim->visit = NULL;
	fw_hosts_done(owner_hosts_lock(w->ch.owner), &v->claim->item, v->host_health, v->cooldown_until_ms,
		owner_now(w->ch.owner));
	owner_hosts_unlock(w->ch.owner);
	atomic_store_explicit(&w->o->meter->in_flight, w->in_flight, memory_order_relaxed);
}

static void transfers_on_fetched(struct fw_fetch *f);

static void visit_start(struct worker *w, struct claim *c)
{
	struct visit *v = visit_alloc(w, c);
	struct fw_err err;

	assert(c->state == CLAIM_FETCHING && w->free_slot_n);
	visit_prepare(v, fw_config_now_ms(w->ch.config));
	v->queue_us = FW_MAX(fw_mono_us() - c->claimed_mono_ms * 1000, INT64_C(0));
	v->fetch.done = transfers_on_fetched;
	v->fetch.send = transfers_on_send;
	v->fetch.sent = transfers_on_sent;
	v->fetch.further = transfers_on_further;
	v->fetch.ctx = v;
	v->slot = w->free_slot[--w->free_slot_n];
	w->in_slot[v->slot] = v;
	c->visit = v;
	w->in_flight++;
	atomic_store_explicit(&w->o->meter->in_flight, w->in_flight, memory_order_relaxed);
	if (fw_fetch_start(w->fetcher, &v->fetch, &err)) {
		fw_warn("feed %lld: fetch not started: %s", (long long)v->feed.id, err.text);
		slot_release(w, v);
		visit_hand_over(w, v, VISIT_RELEASE);
	}
}

/*
 * Barrier of a batch policy: no claim behind it starts before all claims in front of it have ended.
 */
static bool claim_is_barred(struct worker *w, const struct claim *c)
{
	if (!w->batch || c->item.order < w->barrier)
		return false;
	if (w->in_flight)
		return true;
	w->barrier = (c->item.order / (int64_t)w->batch + 1) * (int64_t)w->batch;
	return false;
}

static bool claim_has_slot(struct worker *w, const struct claim *c)
{
	return !w->draining && w->free_slot_n &&
		(c->item.urgent || (w->in_flight < w->ch.slots && !claim_is_barred(w, c)));
}

/*
 * Take the next claim that may start out of the hosts' table; it is then CLAIM_FETCHING or
 * CLAIM_HELD. Or one in a slot (c->visit), whose further request may begin. NULL: none, *next_ms as
 * fw_hosts_first() sets it. *pause_ms: its name pauses until then; 0: it does not.
 */
static struct claim *claim_next(struct worker *w, int64_t mono_ms, int64_t *next_ms, int64_t *pause_ms)
{
	struct fw_hosts *t = owner_hosts_lock(w->ch.owner);
	struct fw_hosts_item *item = fw_hosts_first(t, mono_ms, next_ms);
	struct claim *c = item ? claim_of(item) : NULL;

	if (c && c->visit) {
		(void)fw_hosts_start(t, mono_ms, next_ms);
	} else if (c && !claim_has_slot(w, c)) {
		c = NULL; /* a visit must end first */
	} else if (c) {
		*pause_ms = name_cooldown_until(w->cooldowns, c->feed.url, fw_config_now_ms(w->ch.config));
		if (*pause_ms || !name_take_slot(w, c)) {
			fw_hosts_remove(t, item);
			claim_move(c, CLAIM_HELD);
		} else {
			(void)fw_hosts_start(t, mono_ms, next_ms); /* the same claim */
			claim_move(c, CLAIM_FETCHING);
		}
	}
	owner_hosts_unlock(w->ch.owner);
	return c;
}

static void claim_start(struct worker *w, struct claim *c, int64_t pause_ms)
{
	if (c->visit) {
		fw_fetch_continue(&c->visit->fetch);
	} else if (c->state == CLAIM_FETCHING) {
		visit_start(w, c);
	} else if (pause_ms) {
		name_release_slot(w, c);
		claim_defer(w, c, pause_ms, "deferred: its name is in cooldown");
	} else {
		c->held_us = fw_mono_us();
		held_push(w, c);
	}
}

/*
 * Publish how many claims the loop wants. Visits that have ended but are not read yet, and held
 * claims, do not count. If a slot is free and no claim can start, all waiting claims wait for their
 * hosts: then ask for twice as many.
 */
static void claims_publish_wanted(struct worker *w, bool none)
{
	struct channel *ch = &w->ch;
	size_t at_hand = w->in_flight + hosts_waiting(w),
	       max = none && w->in_flight < ch->slots ? 2 * ch->claims_max : ch->claims_max;

	max = FW_MIN(max + w->verdict_n + w->parser.n + w->held_n, 2 * ch->claims_max + w->verdict_max);
	if (w->draining || w->pending >= ch->pending_max || atomic_load(&ch->held_bytes) >= ch->held_max ||
		w->parser.coded_bytes >= (size_t)ch->config->max_buffered_bytes)
		max = 0;
	atomic_store(&ch->open_max, max);
	if (max && at_hand + ch->slots / 4 < max && !atomic_load(&ch->nothing_due))
		channel_wake_store(ch);
}

void transfers_start(struct worker *w)
{
	int64_t mono_ms = fw_mono_ms(), next_ms = INT64_MAX, pause_ms = 0;
	struct claim *c;

	if (!w->draining)
		held_update(w);
	while ((c = claim_next(w, mono_ms, &next_ms, &pause_ms)) != NULL)
		claim_start(w, c, pause_ms);
	gap_timer_start(w, mono_ms, next_ms);
	if (!w->draining)
		claims_publish_wanted(w, w->free_slot_n > 0);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The document has been read: decide the outcome and hand it over. */
static void visit_decide(struct worker *w, struct visit *v)
{
	assert(v->claim->state == CLAIM_READING);
	visit_conclude(v, &w->ch.rules, fw_config_now_ms(w->ch.config), worker_random(w));
	v->read_us = fw_mono_us();
	atomic_store_explicit(&w->o->shared->last_done_us, v->read_us, memory_order_relaxed);
	v->outcome.visit.queue_us = v->queue_us + v->fetch.visit.queue_us;
	visit_hand_over(w, v, VISIT_COMMIT); /* the store thread owns it from here on */
}

static void visit_begin_read(struct worker *w, struct visit *v)
{
	claim_move(v->claim, CLAIM_READING);
	if (v->fetch.coded) {
		parser_thread_push(&w->parser, v);
		return;
	}
	reading_begin(w->o->shared, v);
	visit_read(v, &w->ch.rules, fw_config_now_ms(w->ch.config));
	reading_end(w->o->shared, v);
	visit_decide(w, v);
}

/* After the end of any visit: start others. */
static void transfers_continue(struct worker *w)
{
	transfers_start(w);
	transfers_settle_verdicts(w);
	worker_finish_drain(w);
}

void transfers_on_read(struct visit *v)
{
	struct worker *w = v->worker;

	visit_decide(w, v);
	transfers_continue(w);
}

/* ---- verdict on our own network -------------------------------------------------------------- */

static void connectivity_log_change(struct worker *w)
{
	atomic_store_explicit(&w->o->meter->offline, w->network.down, memory_order_relaxed);
	if (w->network.down)
		fw_warn("our own network seems to be down: %d hosts in a row did not answer%s; no feed is charged",
			w->network.few ? (int)w->network.failed_n : FW_CONNECTIVITY_DOWN_N,
			w->network.few ? ", and no other host did" : "");
	else
		fw_info("our own network is up again");
}

/* Is nothing left of a run --once but deferred verdicts? */
static bool verdict_is_last(struct worker *w)
{
	return w->o->once && !w->in_flight && !w->parser.n && atomic_load(&w->ch.all_claimed) && !transfers_waiting(w);
}

static bool verdict_is_due(const struct worker *w, const struct visit *v, int64_t mono_ms)
{
	return mono_ms - v->ended_ms >= w->ch.config->offline_wait_ms;
}

/*
 * A failure may be that of our own network, which only the next visits show. So the verdict on it
 * is deferred, and no feed is charged with the first failures of an outage. The verdict falls when
 * other hosts respond, when enough others fail too, after offline_wait_ms, or when nothing is in
 * flight that could tell. A crash or a drain meanwhile costs nothing: these feeds are due as
 * before.
 */
void transfers_settle_verdicts(struct worker *w)
{
	int64_t mono_ms = fw_mono_ms();
	uint32_t n = w->verdict_n, kept = 0;
	bool was = w->network.down, over, conclude;

	if (!n)
		return;
	conclude = over = verdict_is_last(w);
	for (uint32_t i = 0; i < n && !conclude; i++)
		conclude = verdict_is_due(w, w->verdict_queue[i], mono_ms);
	if (conclude && fw_connectivity_conclude(&w->network) != was)
		connectivity_log_change(w);
	for (uint32_t i = 0; i < n; i++) {
		struct visit *v = w->verdict_queue[i];

		assert(v->claim->state == CLAIM_VERDICT_DEFERRED);
		visit_settle_verdict(v, &w->network, mono_ms);
		if (w->draining)
			visit_hand_over(w, v, VISIT_RELEASE);
		else if (v->verdict_deferred && !over && !verdict_is_due(w, v, mono_ms))
			w->verdict_queue[kept++] = v;
		else
			visit_begin_read(w, v);
	}
	w->verdict_n = kept;
}

static bool verdict_may_wait(const struct worker *w, const struct visit *v)
{
	return v->verdict_deferred && !v->claim->item.urgent && w->ch.config->offline_wait_ms;
}

/* Until the verdict the store shows the feed as due, and nothing else that it was tried. */
static void verdict_log(const struct worker *w, const struct visit *v)
{
	char wait[FW_RFC3339_MAX];

	fw_info("feed %lld: %s; it is stored within %s, when other hosts show whether our own network is down",
		(long long)v->feed.id, v->fetch.err.text, fw_duration_text(wait, w->ch.config->offline_wait_ms));
}

/*
 * Does the visit count as not started? It could not be sent, it was cancelled, or the machine is
 * being shut down, its network first.
 */
static bool visit_is_void(const struct worker *w, const struct visit *v)
{
	return v->fetch.deferred || v->cancelled ||
		(w->draining && (v->fetch.kind == FW_VISIT_LOCAL || verdict_may_wait(w, v)));
}

static void transfers_on_fetched(struct fw_fetch *f)
{
	struct visit *v = f->ctx;
	struct worker *w = v->worker;
	int64_t now_ms = owner_now(w->ch.owner).wall_ms;

	visit_learn_host(v, &w->ch.rules, now_ms);
	name_cooldown_learn(w->cooldowns, v, now_ms);
	slot_release(w, v);
	if (!v->cancelled && visit_learn_network(v, &w->network, fw_mono_ms()))
		connectivity_log_change(w);
	if (f->deferred)
		meter_count(w->o->meter, FW_COUNT_DEFERRED, 1);
	if (visit_is_void(w, v)) {
		visit_hand_over(w, v, VISIT_RELEASE);
	} else if (w->verdict_n < w->verdict_max && verdict_may_wait(w, v)) {
		/* if the queue is full, few hosts cause the failures: they are charged */
		claim_move(v->claim, CLAIM_VERDICT_DEFERRED);
		if (!w->verdict_n)
			verdict_log(w, v);
		w->verdict_queue[w->verdict_n++] = v;
	} else {
		visit_begin_read(w, v);
	}
	transfers_continue(w);
}

/* ---- ending ---------------------------------------------------------------------------------- */

void transfers_cancel(struct worker *w)
{
	for (uint32_t i = 0; i < w->ch.slots + URGENT_SLOTS; i++) {
		if (!w->in_slot[i])
			continue;
		w->in_slot[i]->cancelled = true;
		fw_fetch_cancel(&w->in_slot[i]->fetch);
	}
}

void transfers_cancel_all(struct worker *w)
{
	struct visit *v;

	transfers_release_held(w);
	transfers_cancel(w);
	while ((v = parser_thread_take_back(&w->parser)) != NULL)
		visit_hand_over(w, v, VISIT_RELEASE);
	while (w->verdict_n)
		visit_hand_over(w, w->verdict_queue[--w->verdict_n], VISIT_RELEASE);
}

/* Has the transfer been silent for longer than ever before, so that waiting is pointless? */
static bool visit_is_straggler(const struct visit *v, int64_t straggler_us)
{
	const struct fw_feed *was = v->was;
	int64_t begun_us = v->claim->claimed_mono_ms * 1000 + v->queue_us + v->fetch.visit.queue_us;

	return was->expect_us > 0 && fw_visit_succeeded(was->last_kind) && !v->claim->item.urgent &&
		fw_fetch_is_silent(&v->fetch) &&
		fw_mono_us() - begun_us > FW_MAX(straggler_us, was->expect_us + STRAGGLER_DEV * was->expect_dev_us);
}

/*
 * Stragglers: when all transfers that are left are overdue, abandon them. Otherwise a feed that
 * responds only now and then would delay the end of every run by its timeouts. Nothing is abandoned
 * while any other transfer may go on.
 */
void transfers_abandon_stragglers(struct worker *w)
{
	int64_t straggler_us = w->ch.config->straggler_timeout_ms * 1000;
	uint32_t slots = w->ch.slots + URGENT_SLOTS;

	if (w->draining || !w->in_flight || w->parser.n || !atomic_load(&w->ch.all_claimed) || transfers_waiting(w) ||
		fw_mono_us() - w->started_us < STRAGGLER_RUN * straggler_us)
		return;
	for (uint32_t i = 0; i < slots; i++) {
		if (w->in_slot[i] && !visit_is_straggler(w->in_slot[i], straggler_us))
			return;
	}
	for (uint32_t i = 0; i < slots; i++) {
		struct visit *v = w->in_slot[i];

		if (!v)
			continue;
		v->abandoned = true;
		/* if this returns true, the visit has ended and may be reused already */
		if (!fw_fetch_abandon(&v->fetch))
			v->abandoned = false;
	}
}
