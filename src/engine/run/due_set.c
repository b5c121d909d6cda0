/* SPDX-License-Identifier: ISC */
/*
 * Feeds that are due stand in tables of sched/hosts.h, which here know only a limit for each host.
 * Such a table finds the first feed, in order, of the hosts below their limit; a host at its limit
 * blocks no other. There are three tables, for quick, slow and never visited feeds, so that a claim
 * can skip a kind without looking at each feed. Feeds that are due later stand in a heap by due
 * time.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "engine/run/due_set.h"

#define CHUNK 1024
#define UNPLANNED (INT64_MAX / 2) /* orders after the plan's */
#define LATENESS_UNIT 16777216.0  /* one interval late, as an order */
#define LATENESS_MAX 1e11
#define COARSE_BITS 3     /* significant bits that order_round() keeps */
#define EQUAL_BELOW_MS 32 /* shorter durations count as equal */

struct due_chunk {
	struct due_chunk *next;
	struct due_item item[CHUNK];
};

struct due_shard {
	struct due_item *first;
	size_t n;
	int64_t work_ms; /* expected time of the feeds that are due */
};

#define HOSTS_LEARNED 8192

struct due_set {
	struct due_rules rules;
	struct {
		int64_t host_id, expect_us;
	} learned[HOSTS_LEARNED];
	struct fw_hosts *queue[DUE_QUEUES]; /* by enum due_queue; all hosts are in shard 0 */
	struct fw_heap later;
	struct due_chunk *due_chunk;
	struct due_item *free;
	size_t n, waiting, unplanned;
	int64_t work_ms;
	bool backlog, new_next;
	struct due_shard shard[STORE_SHARDS];
};

/* ---- a read of one shard --------------------------------------------------------------------- */

FW_COMPARE_BY(due_row_by_due, struct store_due, due_at_ms, feed_id)

static int due_row_by_host(const void *a, const void *b)
{
	const struct store_due *x = a, *y = b;

	return x->host_id != y->host_id ? (x->host_id < y->host_id ? -1 : 1) : due_row_by_due(a, b);
}

/*
 * The number of rows with at most max of each host. The rows are sorted by host. drop: remove the
 * others.
 */
static size_t due_read_limit_hosts(struct due_read *r, size_t max, bool drop)
{
	size_t kept = 0, of_host = 0;
	int64_t host = 0;

	for (size_t i = 0; i < r->n; i++) {
		of_host = r->row[i].host_id == host ? of_host + 1 : 1;
		host = r->row[i].host_id;
		if (of_host > max)
			continue;
		if (drop)
			r->row[kept] = r->row[i];
		kept++;
	}
	return kept;
}

/*
 * Find the largest limit for each host with which the rows fit. If not even one row of each host
 * fits, keep the earliest.
 */
void due_read_end(struct due_read *r)
{
	size_t low = 1, high = r->room;

	if (r->n <= r->room)
		return;
	r->cut = true;
	qsort(r->row, r->n, sizeof(*r->row), due_row_by_host);
	while (low < high) {
		size_t middle = high - (high - low) / 2;

		if (due_read_limit_hosts(r, middle, false) <= r->room)
			low = middle;
		else
			high = middle - 1;
	}
	r->n = due_read_limit_hosts(r, low, true);
	if (r->n <= r->room)
		return;
	qsort(r->row, r->n, sizeof(*r->row), due_row_by_due);
	r->n = r->room;
}

int due_read_add(struct due_read *r, const struct store_due *due)
{
	assert(r->n <= r->cap);
	if (r->n >= 2 * FW_MAX(r->room, (size_t)CHUNK))
		due_read_end(r);
	if (r->n == r->cap) {
		size_t cap = r->cap ? 2 * r->cap : CHUNK;
		struct store_due *grown = reallocarray(r->row, cap, sizeof(*grown));

		if (!grown)
			return FW_ENOMEM;
		r->row = grown;
		r->cap = cap;
	}
	r->row[r->n++] = *due;
	return 0;
}

void due_read_finish(struct due_read *r)
{
	free(r->row);
	*r = (struct due_read){.row = NULL};
}

/* ---- items ----------------------------------------------------------------------------------- */

static struct due_item *due_item_of(struct fw_hosts_item *item)
{
	return (struct due_item *)(void *)((char *)item - offsetof(struct due_item, item));
}

static struct due_item *due_later_of(struct fw_heap_node *node)
{
	return due_item_of(FW_HEAP_OF(node, struct fw_hosts_item, node));
}

static bool due_later_precedes(const struct fw_heap_node *a, const struct fw_heap_node *b)
{
	const struct due_item *x = FW_HEAP_OF_CONST(a, struct due_item, item.node);
	const struct due_item *y = FW_HEAP_OF_CONST(b, struct due_item, item.node);

	return x->due_at_ms < y->due_at_ms;
}

struct due_set *due_set_create(const struct due_rules *rules)
{
	struct due_set *d = calloc(1, sizeof(*d));
	bool made = d != NULL;

	for (int i = 0; made && i < DUE_QUEUES; i++) {
		d->queue[i] = fw_hosts_create(
			&(struct fw_hosts_rules){.host_concurrency = rules->host_claims, .gap_ms = rules->host_gap_ms});
		made = d->queue[i] != NULL;
		if (!made)
			break;
		fw_hosts_set_lease(d->queue[i], INT64_MAX);
		fw_hosts_own(d->queue[i], 0, 0, (struct fw_hosts_now){INT64_MIN / 2, 0});
	}
	if (!made) {
		due_set_destroy(d);
		return NULL;
	}
	d->rules = *rules;
	fw_heap_init(&d->later, due_later_precedes);
	return d;
}

void due_set_destroy(struct due_set *d)
{
	if (!d)
		return;
	for (int i = 0; i < DUE_QUEUES; i++)
		fw_hosts_destroy(d->queue[i]);
	for (struct due_chunk *c = d->due_chunk, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	free(d);
}

static struct due_item *due_item_alloc(struct due_set *d)
{
	struct due_item *it;

	if (!d->free) {
		struct due_chunk *c = calloc(1, sizeof(*c));

		if (!c)
			return NULL;
		c->next = d->due_chunk;
		d->due_chunk = c;
		for (int i = 0; i < CHUNK; i++) {
			c->item[i].next = d->free;
			d->free = &c->item[i];
		}
	}
	it = d->free;
	d->free = it->next;
	return it;
}

static void due_item_free(struct due_set *d, struct due_item *it)
{
	it->state = DUE_NOWHERE;
	it->next = d->free;
	d->free = it;
}

static void due_shard_add(struct due_set *d, struct due_item *it)
{
	struct due_shard *s = &d->shard[it->shard];

	it->prev = NULL;
	it->next = s->first;
	if (s->first)
		s->first->prev = it;
	s->first = it;
	s->n++;
	d->n++;
}

static void due_shard_remove(struct due_set *d, struct due_item *it)
{
	struct due_shard *s = &d->shard[it->shard];

	assert(s->n && d->n);
	*(it->prev ? &it->prev->next : &s->first) = it->next;
	if (it->next)
		it->next->prev = it->prev;
	s->n--;
	d->n--;
}

/* ---- the order ------------------------------------------------------------------------------- */

static size_t due_learned_index(int64_t host_id)
{
	return (size_t)((uint64_t)host_id / STORE_SHARDS % HOSTS_LEARNED);
}

void due_set_learn(struct due_set *d, int64_t host_id, int64_t expect_us)
{
	size_t i = due_learned_index(host_id);
	int64_t was_us = d->learned[i].host_id == host_id ? d->learned[i].expect_us : expect_us;

	if (expect_us <= 0)
		return;
	d->learned[i].host_id = host_id;
	d->learned[i].expect_us = was_us + (expect_us - was_us) / 4;
}

static bool due_host_is_slow(const struct due_set *d, int64_t host_id)
{
	size_t i = due_learned_index(host_id);

	return d->rules.slow_us && d->learned[i].host_id == host_id && d->learned[i].expect_us > d->rules.slow_us;
}

static enum due_queue due_item_queue(const struct due_set *d, const struct due_item *it)
{
	if (d->rules.once || it->item.urgent)
		return DUE_QUICK;
	if (!it->last_visit_ms)
		return due_host_is_slow(d, it->host_id) ? DUE_SLOW : DUE_NEW;
	return d->rules.slow_us && it->expect_ms > d->rules.slow_us / 1000 ? DUE_SLOW : DUE_QUICK;
}

/*
 * Round down to COARSE_BITS bits. Equal orders are then claimed shard by shard: feeds of a shard
 * are adjacent in the store, so a commit of them changes few pages.
 */
static int64_t order_round(int64_t n)
{
	int bits = n > 0 ? 64 - __builtin_clzll((unsigned long long)n) : 0, drop = FW_MAX(bits - COARSE_BITS, 0);

	return n >> drop << drop;
}

static int64_t due_item_order(const struct due_set *d, const struct due_item *it, struct fw_hosts_now now)
{
	double late;

	if (d->rules.once)
		return UNPLANNED + it->due_at_ms;
	if (!d->backlog || !it->last_visit_ms)
		return it->due_at_ms;
	late = fw_due_priority(now.wall_ms, it->due_at_ms, it->last_visit_ms);
	return it->shard - order_round((int64_t)(FW_MIN(late, LATENESS_MAX) * LATENESS_UNIT));
}

static int64_t due_item_work_ms(const struct due_item *it)
{
	return it->expect_ms ? it->expect_ms : FW_SECOND_MS;
}

/* Make the feed claimable. */
static int due_item_wait(struct due_set *d, struct due_item *it)
{
	int rc = fw_hosts_put(d->queue[it->queue], 0, it->host_id, &it->item);

	if (rc)
		return rc;
	it->state = DUE_WAITING;
	d->waiting++;
	d->work_ms += due_item_work_ms(it);
	d->shard[it->shard].work_ms += due_item_work_ms(it);
	d->unplanned += d->rules.once && it->item.order >= UNPLANNED;
	return 0;
}

static void due_item_unwait(struct due_set *d, struct due_item *it)
{
	assert(it->state == DUE_WAITING && d->waiting && d->work_ms >= due_item_work_ms(it));
	d->waiting--;
	d->work_ms -= due_item_work_ms(it);
	d->shard[it->shard].work_ms -= due_item_work_ms(it);
	d->unplanned -= d->rules.once && it->item.order >= UNPLANNED;
}

static int due_item_become_due(struct due_set *d, struct due_item *it, struct fw_hosts_now now)
{
	it->queue = (uint8_t)due_item_queue(d, it);
	it->item.order = due_item_order(d, it, now);
	return due_item_wait(d, it);
}

static void due_item_remove(struct due_set *d, struct due_item *it)
{
	if (it->state == DUE_LATER) {
		fw_heap_remove(&d->later, &it->item.node);
	} else {
		due_item_unwait(d, it);
		fw_hosts_remove(d->queue[it->queue], &it->item);
	}
	due_shard_remove(d, it);
	due_item_free(d, it);
}

/* ---- the set --------------------------------------------------------------------------------- */

size_t due_set_room(const struct due_set *d, int shard, size_t held, size_t unread)
{
	size_t others = d->n - d->shard[shard].n, room = d->rules.max > others ? d->rules.max - others : 0;
	size_t part = d->rules.max / FW_MAX(held, (size_t)1), kept = part * unread;

	return FW_MAX(room > kept ? (room - kept) / 2 : 0, FW_MIN(part, room));
}

size_t due_set_shard_n(const struct due_set *d, int shard)
{
	return d->shard[shard].n;
}

int64_t due_set_shard_work_ms(const struct due_set *d, int shard)
{
	return d->shard[shard].work_ms;
}

int64_t due_set_work_ms(const struct due_set *d)
{
	return d->work_ms;
}

size_t due_set_n(const struct due_set *d)
{
	return d->n;
}

size_t due_set_waiting(const struct due_set *d)
{
	return d->waiting;
}

void due_set_clear(struct due_set *d, int shard)
{
	while (d->shard[shard].first)
		due_item_remove(d, d->shard[shard].first);
}

int due_set_put(struct due_set *d, const struct store_due *due, struct fw_hosts_now now)
{
	bool urgent = due->due_at_ms <= FW_DUE_FIRST;
	struct due_item *it;
	int rc = 0;

	if (d->n >= d->rules.max + (urgent ? DUE_URGENT_MAX : 0))
		return FW_EAGAIN;
	it = due_item_alloc(d);
	if (!it)
		return FW_ENOMEM;
	*it = (struct due_item){.item = {.feed_id = due->feed_id, .urgent = urgent},
		.due_at_ms = due->due_at_ms,
		.host_id = due->host_id,
		.last_visit_ms = due->last_visit_ms,
		.shard = (uint16_t)due->shard,
		.expect_ms = (uint32_t)FW_MIN(FW_MAX((due->expect_us + 999) / 1000, 0), INT32_MAX)};
	due_shard_add(d, it);
	if (d->rules.once || it->due_at_ms <= now.wall_ms) {
		rc = due_item_become_due(d, it, now);
	} else {
		it->state = DUE_LATER;
		fw_heap_put(&d->later, &it->item.node);
	}
	if (rc) {
		due_shard_remove(d, it);
		due_item_free(d, it);
	}
	return rc;
}

int64_t due_set_advance(struct due_set *d, struct fw_hosts_now now)
{
	while (d->later.first) {
		struct due_item *it = due_later_of(d->later.first);

		if (it->due_at_ms > now.wall_ms)
			return it->due_at_ms;
		fw_heap_take(&d->later);
		if (due_item_become_due(d, it, now)) { /* out of memory: the next read of its shard adds it again */
			due_shard_remove(d, it);
			due_item_free(d, it);
		}
	}
	return INT64_MAX;
}

/* The first feed of each table. */
static void due_queues_first(struct due_set *d, int64_t mono_ms, struct fw_hosts_item **first, int64_t *next_ms)
{
	*next_ms = INT64_MAX;
	for (int i = 0; i < DUE_QUEUES; i++) {
		int64_t queue_ms;

		first[i] = fw_hosts_first(d->queue[i], mono_ms, &queue_ms);
		*next_ms = FW_MIN(*next_ms, queue_ms);
	}
}

static bool due_item_precedes(const struct fw_hosts_item *a, const struct fw_hosts_item *b)
{
	if (!a || !b)
		return a != NULL;
	if (a->urgent != b->urgent)
		return a->urgent;
	return a->order != b->order ? a->order < b->order : a->feed_id < b->feed_id;
}

bool due_set_ready(struct due_set *d, int64_t mono_ms, int64_t *next_ms)
{
	struct fw_hosts_item *first[DUE_QUEUES];

	due_queues_first(d, mono_ms, first, next_ms);
	return first[DUE_QUICK] || first[DUE_SLOW] || first[DUE_NEW];
}

struct due_item *due_set_claim(struct due_set *d, int64_t mono_ms, bool slow, bool urgent, int64_t *next_ms)
{
	struct fw_hosts_item *first[DUE_QUEUES];
	enum due_queue best = DUE_QUICK;
	struct due_item *it;
	int64_t queue_ms;

	due_queues_first(d, mono_ms, first, next_ms);
	if (slow && due_item_precedes(first[DUE_SLOW], first[best]))
		best = DUE_SLOW;
	if (d->backlog && first[DUE_NEW] && first[best] && !first[best]->urgent)
		best = d->new_next ? DUE_NEW : best;
	else if (due_item_precedes(first[DUE_NEW], first[best]))
		best = DUE_NEW;
	if (!first[best] || (urgent && !first[best]->urgent))
		return NULL;
	d->new_next = best != DUE_NEW;
	it = due_item_of(fw_hosts_start(d->queue[best], mono_ms, &queue_ms));
	fw_hosts_sent(d->queue[best], &it->item, mono_ms); /* the gap starts with the claim */
	due_item_unwait(d, it);
	due_shard_remove(d, it);
	it->state = DUE_CLAIMED;
	return it;
}

/* Its host has room for another claim. */
static void due_item_unclaim(struct due_set *d, struct due_item *it, struct fw_hosts_now now)
{
	assert(it->state == DUE_CLAIMED);
	fw_hosts_done(d->queue[it->queue], &it->item, FW_HOST_UNKNOWN, 0, now);
}

void due_set_done(struct due_set *d, struct due_item *it, struct fw_hosts_now now)
{
	due_item_unclaim(d, it, now);
	due_item_free(d, it);
}

void due_set_put_back(struct due_set *d, struct due_item *it, int64_t until_ms, struct fw_hosts_now now)
{
	struct fw_hosts_row pause = {.host_id = it->host_id,
		.next_ok_ms = now.wall_ms +
			FW_MIN(FW_MAX(until_ms, now.mono_ms) - now.mono_ms, FW_LEARNED_DELAY_MAX_MS)};
	int rc = 0;

	due_item_unclaim(d, it, now);
	due_shard_add(d, it);
	if (until_ms > now.mono_ms)
		rc = fw_hosts_row_put(d->queue[it->queue], 0, &pause, now);
	rc = rc ? rc : due_item_wait(d, it);
	if (rc) { /* out of memory: the next read of its shard adds it again */
		due_shard_remove(d, it);
		due_item_free(d, it);
	}
}

/* ---- reordering ------------------------------------------------------------------------------ */

/* Collect all due feeds into out (may be NULL). Returns how many are late. */
static size_t due_items_collect(struct due_set *d, struct due_item **out, int64_t late_before_ms)
{
	size_t n = 0, late = 0;

	for (struct due_chunk *c = d->due_chunk; c; c = c->next) {
		for (int i = 0; i < CHUNK; i++) {
			if (c->item[i].state != DUE_WAITING)
				continue;
			late += c->item[i].due_at_ms < late_before_ms;
			if (out)
				out[n] = &c->item[i];
			n++;
		}
	}
	return late;
}

/* order[i]: the position at which a simulation of the fetch plan starts it[i]. */
static int due_set_plan(const struct due_set *d, struct due_item **it, size_t n, int64_t *order)
{
	struct fw_plan_item *item = calloc(n, sizeof(*item));
	struct fw_plan_start *start = calloc(n, sizeof(*start));
	struct fw_plan_total total;
	int rc = item && start ? 0 : FW_ENOMEM;

	for (size_t i = 0; !rc && i < n; i++)
		item[i] = (struct fw_plan_item){.host = it[i]->host_id,
			.expect_us = it[i]->expect_ms ?
				order_round(FW_MAX((int64_t)it[i]->expect_ms, EQUAL_BELOW_MS)) * 1000 :
				0};
	rc = rc ? rc : fw_plan_simulate(&d->rules.plan, item, n, start, &total);
	for (size_t i = 0; !rc && i < n; i++)
		order[start[i].item] = (int64_t)i;
	free(item);
	free(start);
	return rc;
}

static int due_item_by_due(const void *a, const void *b)
{
	const struct due_item *x = *(struct due_item *const *)a, *y = *(struct due_item *const *)b;

	return x->due_at_ms != y->due_at_ms ? FW_ORDER(x->due_at_ms, y->due_at_ms) :
					      FW_ORDER(x->item.feed_id, y->item.feed_id);
}

/*
 * Group key for locality of writes: the shard; never visited feeds form one group, because most
 * rows of a first visit are stored by feed id.
 */
static int due_item_rows_key(const struct due_item *it)
{
	return it->last_visit_ms ? it->shard : STORE_SHARDS;
}

/* Within a group by due time, so that a feed deferred to the end of the run is its host's last. */
static int due_item_by_rows(const void *a, const void *b)
{
	const struct due_item *x = *(struct due_item *const *)a, *y = *(struct due_item *const *)b;

	return due_item_rows_key(x) != due_item_rows_key(y) ? (due_item_rows_key(x) < due_item_rows_key(y) ? -1 : 1) :
							      due_item_by_due(a, b);
}

/* Does the policy fetch in the order of due times? */
static bool policy_is_by_due(enum fw_plan_policy p)
{
	return p == FW_PLAN_FIFO || fw_plan_is_batch(p);
}

static int due_set_reorder(struct due_set *d, struct fw_hosts_now now)
{
	size_t n = d->waiting;
	struct due_item **it = calloc(n + 1, sizeof(struct due_item *));
	int64_t *order = calloc(n + 1, sizeof(*order));
	int rc = it && order ? 0 : FW_ENOMEM;

	if (!rc)
		(void)due_items_collect(d, it, 0);
	if (!rc && d->rules.once && n) {
		qsort(it, n, sizeof(struct due_item *),
			policy_is_by_due(d->rules.plan.policy) ? due_item_by_due : due_item_by_rows);
		rc = due_set_plan(d, it, n, order);
	}
	for (size_t i = 0; !rc && i < n; i++) {
		due_item_unwait(d, it[i]);
		fw_hosts_remove(d->queue[it[i]->queue], &it[i]->item);
		it[i]->item.order = d->rules.once ? order[i] : due_item_order(d, it[i], now);
	}
	for (size_t i = 0; !rc && i < n; i++) {
		if (!due_item_wait(d, it[i]))
			continue;
		due_shard_remove(d, it[i]); /* out of memory: see due_set_advance() */
		due_item_free(d, it[i]);
	}
	free(it);
	free(order);
	return rc;
}

int due_set_order(struct due_set *d, struct fw_hosts_now now)
{
	bool was = d->backlog;

	if (d->rules.once)
		return d->unplanned ? due_set_reorder(d, now) : 0;
	d->backlog = d->rules.backlog_ms && d->waiting > d->rules.slots &&
		due_items_collect(d, NULL, now.wall_ms - d->rules.backlog_ms) > d->rules.slots;
	return d->backlog || was ? due_set_reorder(d, now) : 0;
}

bool due_set_has_backlog(const struct due_set *d)
{
	return d->backlog;
}

size_t due_set_unplanned(const struct due_set *d)
{
	return d->unplanned;
}
