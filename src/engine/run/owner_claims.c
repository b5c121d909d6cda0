/* SPDX-License-Identifier: ISC */
/*
 * Claims: the store thread's part of a claim's life.
 *
 * 1. picks_take() takes a feed from the due set when its host is about to be free. 2. picks_load()
 *    reads the state of up to PICK_MAX picked feeds in one call. 3. claim_create() makes the claims
 *    and puts them into the hosts' table (CLAIM_WAITING), from which the loop starts them
 *    (transfers.c). 4. owner_receive() takes the ended claim, owner_commit() stores its outcome,
 *    owner_claim_free() frees it. owner_release() is the way back without a visit.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/str.h"
#include "engine/run/owner_parts.h"
#include "store/driver.h"

#define PICK_MAX 500 /* claims that one call loads */
#define PICK_TRIES (4 * PICK_MAX)
#define LEAD_MS 200 /* a claim is made at most this long before its host is free */
/* waiting claims whose host pauses for longer go back to the due set */
#define REQUEUE_MS (5 * FW_SECOND_MS)
#define HOSTS_MAX 256 /* limit of hosts in one commit */
/* limit of the wait, after joining, for all shards to be read before the first claim */
#define FIRST_ORDER_MS FW_SECOND_MS

struct claim_batch {
	struct fw_arena arena;
	size_t left;
};

void claim_move(struct claim *c, enum claim_state to)
{
#define TO(state) (1u << (state))
	static const unsigned may[CLAIM_STATES] = {
		[CLAIM_WAITING] = TO(CLAIM_HELD) | TO(CLAIM_FETCHING) | TO(CLAIM_ENDED),
		[CLAIM_HELD] = TO(CLAIM_WAITING) | TO(CLAIM_ENDED),
		[CLAIM_FETCHING] = TO(CLAIM_VERDICT_DEFERRED) | TO(CLAIM_READING) | TO(CLAIM_ENDED),
		[CLAIM_VERDICT_DEFERRED] = TO(CLAIM_READING) | TO(CLAIM_ENDED),
		[CLAIM_READING] = TO(CLAIM_ENDED),
		[CLAIM_ENDED] = TO(CLAIM_STORING),
	};

	assert(c->state < CLAIM_STATES && to < CLAIM_STATES);
	assert(may[c->state] & TO(to));
	c->state = to;
#undef TO
}

struct claim *claim_find(const struct owner *o, int64_t feed_id)
{
	return fw_map_get(&o->claims, (struct fw_str){(const char *)&feed_id, sizeof(feed_id)});
}

static void claim_batch_release(struct claim_batch *b)
{
	assert(b->left);
	if (--b->left)
		return;
	fw_arena_finish(&b->arena);
	free(b);
}

/* The claim no longer waits and is no longer in flight: it makes room for others. */
static void claim_uncount_open(struct owner *o, const struct claim *c)
{
	assert(o->open && o->slow >= c->is_slow && o->urgent >= c->item.urgent);
	o->open--;
	o->slow -= c->is_slow;
	o->urgent -= c->item.urgent;
}

void claim_free(struct owner *o, struct claim *c)
{
	assert(o->shard[c->shard].claims);
	assert(c->state != CLAIM_STORING || o->done);
	if (c->state == CLAIM_STORING)
		o->done--;
	else
		claim_uncount_open(o, c);
	if (c->due)
		due_set_done(o->due, c->due, owner_now(o));
	fw_map_del(&o->claims, (struct fw_str){(const char *)&c->feed.id, sizeof(c->feed.id)});
	*(c->prev ? &c->prev->next : &o->first) = c->next;
	if (c->next)
		c->next->prev = c->prev;
	o->shard[c->shard].claims--;
	claim_batch_release(c->batch);
}

/* Free the claim and put its feed back into the due set, due as before. */
static void claim_requeue(struct owner *o, struct claim *c, int64_t until_mono_ms)
{
	struct due_item *due = c->due;

	assert(due && !c->item.of);
	c->due = NULL;
	claim_free(o, c);
	due_set_put_back(o->due, due, until_mono_ms, owner_now(o));
}

/* ---- stage 2: claims with their state -------------------------------------------------------- */

struct picks {
	struct owner *o;
	struct due_item *it[PICK_MAX]; /* sorted by feed id after picks_load() */
	struct claim *claim[PICK_MAX];
	struct store_due due[PICK_MAX];
	size_t n;
	struct claim_batch *batch;
	struct claim *mem;
};

/* Take what may start now from the due set, in order. `open`: wanted number of open claims. */
static size_t picks_take(struct owner *o, size_t open, struct due_item **it)
{
	struct fw_hosts_now now = owner_now(o);
	size_t n = 0, slow = o->slow, urgent = o->urgent;
	int64_t next_ms;

	for (int i = 0; i < PICK_TRIES && n < PICK_MAX && (o->open + n < open || urgent < OWNER_URGENT_EXTRA); i++) {
		bool slow_too = !o->rules.slow_max || slow < o->rules.slow_max;
		struct due_item *at = due_set_claim(o->due, now.mono_ms, slow_too, o->open + n >= open, &next_ms);
		int64_t free_ms;

		if (!at)
			break;
		free_ms = fw_hosts_free_ms(owner_hosts_lock(o), at->host_id);
		owner_hosts_unlock(o);
		if (free_ms > now.mono_ms + LEAD_MS) {
			due_set_put_back(o->due, at, free_ms - LEAD_MS, now);
			continue;
		}
		slow += at->queue == DUE_SLOW;
		urgent += at->item.urgent;
		it[n++] = at;
	}
	return n;
}

static int picks_by_feed(const void *a, const void *b)
{
	const struct due_item *x = *(struct due_item *const *)a, *y = *(struct due_item *const *)b;

	return FW_ORDER(x->item.feed_id, y->item.feed_id);
}

static int picks_on_feed(void *ctx, const struct fw_feed *feed)
{
	struct picks *p = ctx;
	struct due_item key = {.item.feed_id = feed->id}, *at = &key;
	struct due_item **found = bsearch(&at, p->it, p->n, sizeof(*p->it), picks_by_feed);
	struct claim *c;

	if (!found || p->claim[found - p->it])
		return 0;
	c = &p->mem[found - p->it];
	c->feed = *feed;
	if (!fw_store_feed_dup(&p->batch->arena, &c->feed))
		return FW_ENOMEM;
	p->claim[found - p->it] = c;
	return 0;
}

/* False: the feed was paused or rescheduled since its shard was read. */
static bool claim_is_due(const struct owner *o, const struct fw_feed *feed)
{
	int64_t until_ms = o->rules.once ? o->rules.due_before_ms : owner_now(o).wall_ms;

	return feed->status == FW_FEED_ACTIVE && feed->due_at_ms <= until_ms;
}

/* Make the claim of the i-th picked feed, and put it into the hosts' table. */
static int claim_create(struct picks *p, size_t i)
{
	struct owner *o = p->o;
	struct claim *c = p->claim[i];
	struct due_item *it = p->it[i];
	int rc;

	assert(c->state == CLAIM_WAITING && it->state == DUE_CLAIMED && c->feed.id == it->item.feed_id);
	/* order of the claims; in a run --once the order of the plan, which has barriers */
	c->item = (struct fw_hosts_item){.order = o->rules.once ? it->item.order : (int64_t)++o->claim_n,
		.feed_id = it->item.feed_id,
		.urgent = it->item.urgent};
	c->host_id = it->host_id;
	c->was_due_ms = c->feed.due_at_ms;
	c->is_slow = it->queue == DUE_SLOW;
	c->shard = it->shard;
	c->lease_id = o->lease.id;
	c->due = it;
	c->claimed_mono_ms = o->clock(o->ctx);
	c->batch = p->batch;
	fw_map_put(&o->claims, (struct fw_str){(const char *)&c->feed.id, sizeof(c->feed.id)}, c, &rc);
	if (rc)
		return rc;
	c->next = o->first;
	if (c->next)
		c->next->prev = c;
	o->first = c;
	o->open++;
	o->slow += c->is_slow;
	o->urgent += c->item.urgent;
	o->shard[c->shard].claims++;
	p->batch->left++;
	rc = fw_hosts_put(owner_hosts_lock(o), (uint32_t)c->shard, c->host_id, &c->item);
	owner_hosts_unlock(o);
	if (!rc)
		return 0;
	c->due = NULL; /* the caller puts it back */
	claim_free(o, c);
	return rc;
}

static int picks_load(struct picks *p, struct fw_err *err)
{
	struct store_feed_query q = {.due = p->due, .due_n = p->n};
	struct store *st = p->o->st;
	int rc;

	qsort(p->it, p->n, sizeof(*p->it), picks_by_feed);
	for (size_t i = 0; i < p->n; i++)
		p->due[i] = (struct store_due){.feed_id = p->it[i]->item.feed_id,
			.shard = p->it[i]->shard,
			.host_id = p->it[i]->host_id,
			.due_at_ms = p->it[i]->due_at_ms};
	p->batch = calloc(1, sizeof(*p->batch));
	if (!p->batch)
		return fw_no_memory(err);
	fw_arena_init(&p->batch->arena, 0);
	p->batch->left = 1; /* our own reference */
	p->mem = fw_arena_calloc(&p->batch->arena, p->n, sizeof(*p->mem));
	rc = p->mem ? st->driver->feed_list(st, &q, picks_on_feed, p, err) : FW_ENOMEM;
	return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
}

/* Has the due set been ordered? A continuous run waits for that only FIRST_ORDER_MS. */
static bool owner_is_ordered(const struct owner *o, int64_t mono_ms)
{
	return o->planned || (!o->rules.once && mono_ms - o->joined_mono_ms > FIRST_ORDER_MS);
}

int owner_claim(struct owner *o, size_t open, size_t *n, struct fw_err *err)
{
	struct picks p = {.o = o};
	struct fw_hosts_now now = owner_now(o);
	int rc;

	*n = 0;
	if (!o->st || !o->lease.id || o->lost || o->leaving || !owner_is_ordered(o, now.mono_ms) ||
		now.mono_ms >= o->lease.safe_until_mono_ms)
		return 0;
	(void)due_set_advance(o->due, now);
	p.n = picks_take(o, open, p.it);
	if (!p.n)
		return 0;
	rc = picks_load(&p, err);
	for (size_t i = 0; i < p.n; i++) {
		bool failed = rc != 0;

		if (!failed && p.claim[i] && claim_is_due(o, &p.claim[i]->feed)) {
			failed = claim_create(&p, i) != 0;
			*n += !failed;
		} else if (!failed) {
			/*
			 * removed, or no longer due: the shard's version has risen, so it is read
			 * again
			 */
			due_set_done(o->due, p.it[i], now);
		}
		if (failed)
			due_set_put_back(o->due, p.it[i], 0, now);
	}
	if (p.batch)
		claim_batch_release(p.batch);
	return rc;
}

/* ---- the way back ---------------------------------------------------------------------------- */

/*
 * Put the waiting claims of a shard (-1: all) and a host (0: all) back into the due set. Claims of
 * that host are not made again before until_mono_ms.
 */
static void claims_requeue_matching(struct owner *o, int shard, int64_t host_id, int64_t until_mono_ms)
{
	for (struct claim *c = o->first, *next; c; c = next) {
		struct fw_hosts *t;
		bool waits;

		next = c->next;
		if ((shard >= 0 && c->shard != shard) || (host_id && c->host_id != host_id))
			continue;
		t = owner_hosts_lock(o);
		waits = c->item.of && !c->item.in_flight;
		if (waits)
			fw_hosts_remove(t, &c->item);
		owner_hosts_unlock(o);
		if (waits)
			claim_requeue(o, c, until_mono_ms);
	}
}

void claims_requeue_shard(struct owner *o, int shard)
{
	claims_requeue_matching(o, shard, 0, 0);
}

void owner_requeue_waiting(struct owner *o)
{
	claims_requeue_matching(o, -1, 0, 0);
}

/* If the host pauses for long, its claims wait in the due set, where they block no others. */
static void claims_requeue_host(struct owner *o, int64_t host_id)
{
	struct fw_hosts_now now = owner_now(o);
	int64_t free_ms = fw_hosts_free_ms(owner_hosts_lock(o), host_id);

	owner_hosts_unlock(o);
	if (free_ms > now.mono_ms + REQUEUE_MS)
		claims_requeue_matching(o, -1, host_id, free_ms - LEAD_MS);
}

void owner_receive(struct owner *o, struct claim *c)
{
	assert(!c->item.of && c->due);
	claim_uncount_open(o, c);
	claim_move(c, CLAIM_STORING);
	o->done++;
	due_set_done(o->due, c->due, owner_now(o));
	c->due = NULL;
	claims_requeue_host(o, c->host_id);
}

void owner_release(struct owner *o, struct claim *c)
{
	struct owner_shard *s = &o->shard[c->shard];

	assert(!c->item.of && c->state == CLAIM_ENDED);
	if (s->state != SHARD_HELD || c->rescheduled_ms) {
		/* changed from outside: read it again */
		s->changed = s->changed || s->state == SHARD_HELD;
		claim_free(o, c);
	} else {
		int64_t free_ms = fw_hosts_free_ms(owner_hosts_lock(o), c->host_id);

		owner_hosts_unlock(o);
		claim_requeue(o, c, free_ms);
	}
}

/* ---- commits --------------------------------------------------------------------------------- */

/* The new host of a feed whose host has changed; 0: unchanged. */
static int64_t outcome_new_host(const struct fw_outcome *out)
{
	int64_t host_id;

	if (!(out->groups & (FW_GROUP_URL | FW_GROUP_HOST)) || out->rc == FW_EINVAL)
		return 0;
	host_id = store_feed_host_id(out->feed);
	return host_id != out->host_id ? host_id : 0;
}

/*
 * Carry the old host's waiting time over to the new host, which may be the same server. A cooldown
 * that the response set is meant for the new host. True: *row must be stored for the new host's
 * owner, which may be another worker.
 */
static bool outcome_carry_host(struct owner *o, int64_t from, int64_t to, int64_t cooldown_until_ms,
	struct fw_hosts_now now, struct store_host *row)
{
	struct fw_hosts *t = owner_hosts_lock(o);
	int64_t free_ms = FW_MAX(fw_hosts_free_ms(t, from), now.mono_ms);
	struct fw_hosts_row own = {.host_id = to,
		.next_ok_ms = now.wall_ms + (free_ms - now.mono_ms),
		.cooldown_until_ms = cooldown_until_ms};
	bool others = o->shard[store_host_shard(to)].state != SHARD_HELD, cools = cooldown_until_ms > now.wall_ms;
	bool held = free_ms > now.mono_ms;

	if ((held || cools) && !others && fw_hosts_row_put(t, (uint32_t)store_host_shard(to), &own, now))
		held = false; /* out of memory: its gap starts with its next request */
	owner_hosts_unlock(o);
	*row = (struct store_host){
		.id = to, .next_ok_ms = own.next_ok_ms, .cooldown_until_ms = cooldown_until_ms, .others = true};
	return cools || (held && others);
}

/* The outcome is stored: put the feed back into the due set if it is due within the set's span. */
static void claim_reschedule(struct owner *o, const struct claim *c, const struct fw_outcome *out)
{
	struct owner_shard *s = &o->shard[c->shard];
	const struct fw_feed *f = out->feed;
	struct store_due due = {.feed_id = c->feed.id,
		.host_id = c->host_id,
		.due_at_ms = c->rescheduled_ms ? c->rescheduled_ms : f->due_at_ms,
		.last_visit_ms = f->last_visit_ms,
		.expect_us = f->expect_us,
		.expect_dev_us = f->expect_dev_us,
		.shard = c->shard};
	int64_t to = outcome_new_host(out);

	due_set_learn(o->due, c->host_id, f->expect_us);
	/* has an effect only if we hold that shard */
	if (to)
		o->shard[store_host_shard(to)].changed = true;
	if (to || s->state != SHARD_HELD || out->rc == FW_ENOTFOUND || f->status != FW_FEED_ACTIVE ||
		due.due_at_ms > s->until_ms)
		return;
	/*
	 * A set that does not hold all due feeds must first read those it lacks, which are due
	 * earlier. When out of memory: the same.
	 */
	if (o->cut_n || due_set_put(o->due, &due, owner_now(o)))
		shard_cut(o, s, true);
}

/* One commit of outcomes and changed hosts, if there are any. *host_n: number of hosts in it. */
static int claims_commit(struct owner *o, struct fw_outcome *outcome, struct claim *const *claim, size_t n,
	size_t *host_n, struct fw_err *err)
{
	struct fw_hosts_row row[HOSTS_MAX];
	struct store_host *host = calloc(HOSTS_MAX + n, sizeof(*host));
	struct store_commit c = {.lease_id = o->lease.id, .outcome = outcome, .n = n, .host = host};
	struct fw_hosts_now now = owner_now_latest(o);
	int rc;

	if (!host)
		return fw_no_memory(err);
	*host_n = fw_hosts_rows_take(owner_hosts_lock(o), row, HOSTS_MAX, now);
	owner_hosts_unlock(o);
	if (!n && !*host_n) {
		free(host);
		return 0;
	}
	for (; c.host_n < *host_n; c.host_n++)
		host[c.host_n] = (struct store_host){.id = row[c.host_n].host_id,
			.next_ok_ms = row[c.host_n].next_ok_ms,
			.cooldown_until_ms = row[c.host_n].cooldown_until_ms,
			.learned_delay_ms = row[c.host_n].learned_delay_ms};
	for (size_t i = 0; i < n; i++) {
		int64_t to = outcome_new_host(&outcome[i]);

		c.host_n += to &&
			outcome_carry_host(
				o, outcome[i].host_id, to, claim[i]->cooldown_until_ms, now, &host[c.host_n]);
	}
	assert(c.host_n <= HOSTS_MAX + n);
	rc = store_commit(o->st, &c, err);
	fw_hosts_rows_done(owner_hosts_lock(o), row, *host_n, !rc);
	owner_hosts_unlock(o);
	free(host);
	if (rc == FW_ESTALE)
		owner_lose_lease(o);
	return rc;
}

int hosts_commit_all(struct owner *o, struct fw_err *err)
{
	size_t host_n;
	int rc;

	do {
		rc = claims_commit(o, NULL, NULL, 0, &host_n, err);
	} while (!rc && host_n == HOSTS_MAX);
	return rc;
}

int owner_commit(struct owner *o, struct fw_outcome *outcome, struct claim *const *claim, size_t n, struct fw_err *err)
{
	bool stale = o->lost || !o->lease.id;
	size_t host_n;
	int rc;

	for (size_t i = 0; i < n; i++) {
		assert(claim[i]->state == CLAIM_STORING);
		outcome[i].feed_id = claim[i]->feed.id;
		outcome[i].host_id = claim[i]->host_id;
		outcome[i].was_due_ms = claim[i]->was_due_ms;
		outcome[i].rc = 0;
		stale = stale || claim[i]->lease_id != o->lease.id;
	}
	if (stale)
		rc = fw_err_set(err, FW_ESTALE, "this worker's lease is lost: other workers own its feeds");
	else if (!o->st)
		return fw_err_set(err, FW_EIO, "the store is not open");
	else
		rc = claims_commit(o, outcome, claim, n, &host_n, err);
	for (size_t i = 0; !rc && i < n; i++)
		claim_reschedule(o, claim[i], &outcome[i]);
	return rc;
}

void owner_claim_free(struct owner *o, struct claim *c)
{
	assert(c->state == CLAIM_STORING);
	claim_free(o, c);
}
