/* SPDX-License-Identifier: ISC */
/*
 * A claim: picked from the due set when its host may be asked about now, loaded with some hundred
 * others in one call, handed to the hosts' table; and its outcome's commit.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/str.h"
#include "engine/run/owner_parts.h"
#include "store/driver.h"
#include "base/banned.h"

#define PICK_MAX 500      /* claims loaded in one call */
#define LOOK_MAX (4 * PICK_MAX)
#define LEAD_MS 200       /* a claim is made so long before its host may be asked */
#define RECALL_MS (5 * FW_SECOND_MS) /* claims whose host pauses for longer do not wait here */
#define HOSTS_MAX 256     /* hosts in one commit */
#define FIRST_ORDER_MS FW_SECOND_MS /* after joining, to read all shards before the first claim */

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
		[CLAIM_FETCHING] = TO(CLAIM_DOUBTED) | TO(CLAIM_READING) | TO(CLAIM_ENDED),
		[CLAIM_DOUBTED] = TO(CLAIM_READING) | TO(CLAIM_ENDED),
		[CLAIM_READING] = TO(CLAIM_ENDED),
		[CLAIM_ENDED] = TO(CLAIM_STORING),
	};

	assert(may[c->state] & TO(to));
	c->state = to;
#undef TO
}

struct claim *claim_find(const struct owner *o, int64_t feed_id)
{
	return fw_map_get(&o->claims, (struct fw_str){(const char *)&feed_id, sizeof(feed_id)});
}

static void batch_unref(struct claim_batch *b)
{
	if (--b->left)
		return;
	fw_arena_finish(&b->arena);
	free(b);
}

/* It is neither waiting nor in flight any more: others may be claimed. */
static void claim_close(struct owner *o, const struct claim *c)
{
	o->open--;
	o->slow -= c->is_slow;
	o->urgent -= c->item.urgent;
}

void claim_free(struct owner *o, struct claim *c)
{
	if (c->state == CLAIM_STORING)
		o->done--;
	else
		claim_close(o, c);
	if (c->due)
		due_set_done(o->due, c->due, owner_now(o));
	fw_map_del(&o->claims, (struct fw_str){(const char *)&c->feed.id, sizeof(c->feed.id)});
	*(c->prev ? &c->prev->next : &o->first) = c->next;
	if (c->next)
		c->next->prev = c->prev;
	o->shard[c->shard].claims--;
	batch_unref(c->batch);
}

/* It goes back into the due set, as it was. */
static void claim_return(struct owner *o, struct claim *c, int64_t until_mono_ms)
{
	struct due_item *due = c->due;

	c->due = NULL;
	claim_free(o, c);
	due_set_back(o->due, due, until_mono_ms, owner_now(o));
}

/* ---- stage 2: claims with their state -------------------------------------------------------- */

struct picks {
	struct owner *o;
	struct due_item *it[PICK_MAX]; /* by feed */
	struct claim *claim[PICK_MAX];
	struct store_due due[PICK_MAX];
	size_t n;
	struct claim_batch *batch;
	struct claim *mem;
};

/* What may start about now, in order. */
static size_t pick(struct owner *o, size_t open, struct due_item **it)
{
	struct fw_hosts_now now = owner_now(o);
	size_t n = 0, slow = o->slow, urgent = o->urgent;
	int64_t next_ms;

	for (int i = 0; i < LOOK_MAX && n < PICK_MAX && (o->open + n < open || urgent < OWNER_SPARE); i++) {
		bool slow_too = !o->rules.slow_max || slow < o->rules.slow_max;
		struct due_item *at = due_set_claim(o->due, now.mono_ms, slow_too, o->open + n >= open, &next_ms);
		int64_t free_ms;

		if (!at)
			break;
		free_ms = fw_hosts_free_ms(owner_hosts_lock(o), at->host_id);
		owner_hosts_unlock(o);
		if (free_ms > now.mono_ms + LEAD_MS) {
			due_set_back(o->due, at, free_ms - LEAD_MS, now);
			continue;
		}
		slow += at->lane == DUE_SLOW;
		urgent += at->item.urgent;
		it[n++] = at;
	}
	return n;
}

static int by_feed(const void *a, const void *b)
{
	const struct due_item *x = *(struct due_item *const *)a, *y = *(struct due_item *const *)b;

	return x->item.feed_id < y->item.feed_id ? -1 : x->item.feed_id > y->item.feed_id;
}

static int on_feed(void *ctx, const struct fw_feed *feed)
{
	struct picks *p = ctx;
	struct due_item key = {.item.feed_id = feed->id}, *at = &key;
	struct due_item **found = bsearch(&at, p->it, p->n, sizeof(*p->it), by_feed);
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

/* False: since it was read somebody has paused it or put it off. */
static bool is_due(const struct owner *o, const struct fw_feed *feed)
{
	int64_t until_ms = o->rules.once ? o->rules.due_before_ms : owner_now(o).wall_ms;

	return feed->status == FW_FEED_ACTIVE && feed->due_at_ms <= until_ms;
}

/* A claim of its own from here on. */
static int claim_begin(struct picks *p, size_t i)
{
	struct owner *o = p->o;
	struct claim *c = p->claim[i];
	struct due_item *it = p->it[i];
	int rc;

	/* in the order in which they were claimed; of a --once, in that of the plan, which has barriers */
	c->item = (struct fw_hosts_item){
		.order = o->rules.once ? it->item.order : (int64_t)++o->claim_n, .feed_id = it->item.feed_id, .urgent = it->item.urgent};
	c->host_id = it->host_id;
	c->was_due_ms = c->feed.due_at_ms;
	c->is_slow = it->lane == DUE_SLOW;
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
	c->due = NULL; /* the caller has it */
	claim_free(o, c);
	return rc;
}

static int load(struct picks *p, struct fw_err *err)
{
	struct store_feed_query q = {.due = p->due, .due_n = p->n};
	struct store *st = p->o->st;
	int rc;

	qsort(p->it, p->n, sizeof(*p->it), by_feed);
	for (size_t i = 0; i < p->n; i++)
		p->due[i] = (struct store_due){.feed_id = p->it[i]->item.feed_id, .shard = p->it[i]->shard,
			.host_id = p->it[i]->host_id, .due_at_ms = p->it[i]->due_at_ms};
	p->batch = calloc(1, sizeof(*p->batch));
	if (!p->batch)
		return fw_no_memory(err);
	fw_arena_init(&p->batch->arena, 0);
	p->batch->left = 1; /* ours */
	p->mem = fw_arena_calloc(&p->batch->arena, p->n, sizeof(*p->mem));
	rc = p->mem ? st->is->feed_list(st, &q, on_feed, p, err) : FW_ENOMEM;
	return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
}

/* What is due is in order for the first time; one that goes on does not wait for long. */
static bool is_ordered(const struct owner *o, int64_t mono_ms)
{
	return o->planned || (!o->rules.once && mono_ms - o->joined_mono_ms > FIRST_ORDER_MS);
}

int owner_take(struct owner *o, size_t open, size_t *n, struct fw_err *err)
{
	struct picks p = {.o = o};
	struct fw_hosts_now now = owner_now(o);
	int rc;

	*n = 0;
	if (!o->st || !o->lease.id || o->lost || o->leaving || !is_ordered(o, now.mono_ms) ||
	    now.mono_ms >= o->lease.safe_until_mono_ms)
		return 0;
	(void)due_set_ripen(o->due, now);
	p.n = pick(o, open, p.it);
	if (!p.n)
		return 0;
	rc = load(&p, err);
	for (size_t i = 0; i < p.n; i++) {
		bool failed = rc != 0;

		if (!failed && p.claim[i] && is_due(o, &p.claim[i]->feed)) {
			failed = claim_begin(&p, i) != 0;
			*n += !failed;
		} else if (!failed) { /* removed, or not due any more: its shard's version has risen */
			due_set_done(o->due, p.it[i], now);
		}
		if (failed)
			due_set_back(o->due, p.it[i], 0, now);
	}
	if (p.batch)
		batch_unref(p.batch);
	return rc;
}

/* ---- the way back --------------------------------------------------------------------------- */

/* What waits in the hosts' table, of a shard (-1: of all) and a host (0: of all), waits in the due set again; of the host until then. */
static void recall(struct owner *o, int shard, int64_t host_id, int64_t until_mono_ms)
{
	for (struct claim *c = o->first, *next; c; c = next) {
		struct fw_hosts *t;
		bool waits;

		next = c->next;
		if ((shard >= 0 && c->shard != shard) || (host_id && c->host_id != host_id))
			continue;
		t = owner_hosts_lock(o);
		waits = c->item.of && !c->item.flying;
		if (waits)
			fw_hosts_withdraw(t, &c->item);
		owner_hosts_unlock(o);
		if (waits)
			claim_return(o, c, until_mono_ms);
	}
}

void claims_recall(struct owner *o, int shard)
{
	recall(o, shard, 0, 0);
}

void owner_recall(struct owner *o)
{
	recall(o, -1, 0, 0);
}

/* Its host wants a long pause: claims of it wait in the due set, where they are in nobody's way. */
static void host_recall(struct owner *o, int64_t host_id)
{
	struct fw_hosts_now now = owner_now(o);
	int64_t free_ms = fw_hosts_free_ms(owner_hosts_lock(o), host_id);

	owner_hosts_unlock(o);
	if (free_ms > now.mono_ms + RECALL_MS)
		recall(o, -1, host_id, free_ms - LEAD_MS);
}

void owner_done(struct owner *o, struct claim *c)
{
	assert(!c->item.of);
	claim_close(o, c);
	claim_move(c, CLAIM_STORING);
	o->done++;
	due_set_done(o->due, c->due, owner_now(o));
	c->due = NULL;
	host_recall(o, c->host_id);
}

void owner_back(struct owner *o, struct claim *c)
{
	struct owner_shard *s = &o->shard[c->shard];

	assert(!c->item.of && c->state == CLAIM_ENDED);
	if (s->state != SHARD_HELD || c->again_ms) {
		s->changed = s->changed || s->state == SHARD_HELD; /* it is as somebody wants it: read it */
		claim_free(o, c);
	} else {
		int64_t free_ms = fw_hosts_free_ms(owner_hosts_lock(o), c->host_id);

		owner_hosts_unlock(o);
		claim_return(o, c, free_ms);
	}
}

/* ---- commits -------------------------------------------------------------------------------- */

/* The host that a feed has moved to; 0: it stays. */
static int64_t moved_to(const struct fw_outcome *out)
{
	int64_t host_id;

	if (!(out->groups & (FW_GROUP_URL | FW_GROUP_HOST)) || out->rc == FW_EINVAL)
		return 0;
	host_id = store_feed_host_id(out->feed);
	return host_id != out->host_id ? host_id : 0;
}

/*
 * What keeps the old host waiting holds for the new one, which is the same server, perhaps; and
 * what the answer asked for its host is meant for the new one. True: *row is for its owner, who may
 * be another worker.
 */
static bool move_host(struct owner *o, int64_t from, int64_t to, int64_t cool_until_ms, struct fw_hosts_now now,
	struct store_host *row)
{
	struct fw_hosts *t = owner_hosts_lock(o);
	int64_t free_ms = FW_MAX(fw_hosts_free_ms(t, from), now.mono_ms);
	struct fw_hosts_row own = {
		.host_id = to, .next_ok_ms = now.wall_ms + (free_ms - now.mono_ms), .cool_until_ms = cool_until_ms};
	bool others = o->shard[store_host_shard(to)].state != SHARD_HELD, cools = cool_until_ms > now.wall_ms;
	bool held = free_ms > now.mono_ms;

	if ((held || cools) && !others && fw_hosts_row_put(t, (uint32_t)store_host_shard(to), &own, now))
		held = false; /* out of memory: its gap begins with its next request */
	owner_hosts_unlock(o);
	*row = (struct store_host){.id = to, .next_ok_ms = own.next_ok_ms, .cool_until_ms = cool_until_ms, .others = true};
	return cools || (held && others);
}

/* Due again: when, and is that soon enough for the set? */
static void due_again(struct owner *o, const struct claim *c, const struct fw_outcome *out)
{
	struct owner_shard *s = &o->shard[c->shard];
	const struct fw_feed *f = out->feed;
	struct store_due due = {.feed_id = c->feed.id, .host_id = c->host_id,
		.due_at_ms = c->again_ms ? c->again_ms : f->due_at_ms, .last_visit_ms = f->last_visit_ms,
		.expect_us = f->expect_us, .expect_dev_us = f->expect_dev_us, .shard = c->shard};
	int64_t to = moved_to(out);

	due_set_learn(o->due, c->host_id, f->expect_us);
	if (to)
		o->shard[store_host_shard(to)].changed = true; /* looked at while it is held */
	if (to || s->state != SHARD_HELD || out->rc == FW_ENOTFOUND || f->status != FW_FEED_ACTIVE ||
	    due.due_at_ms > s->until_ms)
		return;
	/*
	 * Where the set does not hold all that is due, those that it lacks come first. Out of
	 * memory: the same.
	 */
	if (o->cut_n || due_set_put(o->due, &due, owner_now(o)))
		shard_cut(o, s, true);
}

/* One commit, if there is anything for it. *host_n: so many hosts were in it. */
static int commit(struct owner *o, struct fw_outcome *outcome, struct claim *const *claim, size_t n, size_t *host_n,
	struct fw_err *err)
{
	struct fw_hosts_row row[HOSTS_MAX];
	struct store_host *host = calloc(HOSTS_MAX + n, sizeof(*host));
	struct store_commit c = {.lease_id = o->lease.id, .outcome = outcome, .n = n, .host = host};
	struct fw_hosts_now now = owner_latest(o);
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
			.cool_until_ms = row[c.host_n].cool_until_ms,
			.pace_ms = row[c.host_n].pace_ms};
	for (size_t i = 0; i < n; i++) {
		int64_t to = moved_to(&outcome[i]);

		c.host_n += to && move_host(o, outcome[i].host_id, to, claim[i]->cool_until_ms, now, &host[c.host_n]);
	}
	rc = o->st->is->commit(o->st, &c, err);
	fw_hosts_rows_done(owner_hosts_lock(o), row, *host_n, !rc);
	owner_hosts_unlock(o);
	free(host);
	if (rc == FW_ESTALE)
		owner_lose(o);
	return rc;
}

int claims_hosts_commit(struct owner *o, struct fw_err *err)
{
	size_t host_n;
	int rc;

	do {
		rc = commit(o, NULL, NULL, 0, &host_n, err);
	} while (!rc && host_n == HOSTS_MAX);
	return rc;
}

int owner_commit(struct owner *o, struct fw_outcome *outcome, struct claim *const *claim, size_t n,
	struct fw_err *err)
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
		rc = fw_err_set(err, FW_ESTALE, "this worker's lease is over: others have its feeds");
	else if (!o->st)
		return fw_err_set(err, FW_EIO, "the store is not open");
	else
		rc = commit(o, outcome, claim, n, &host_n, err);
	for (size_t i = 0; !rc && i < n; i++)
		due_again(o, claim[i], &outcome[i]);
	return rc;
}

void owner_end(struct owner *o, struct claim *c)
{
	assert(c->state == CLAIM_STORING);
	claim_free(o, c);
}
