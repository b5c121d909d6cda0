/* SPDX-License-Identifier: ISC */
/*
 * The simulation has two levels of heaps: each host has a heap of its items, and the hosts that may
 * start an item stand in a heap by the policy's key. A host without waiting items, or at its limit,
 * is in no heap; a host in its gap stands in a heap by the end of the gap. So the next item costs
 * O(log n) under every policy, and a host with 100,000 feeds blocks no other.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/str.h"
#include "sched/plan.h"
#include "base/banned.h"

#define UNKNOWN_US 1000000 /* when no duration at all is known */

enum where { NOWHERE, READY, IN_GAP };

struct fw_plan_host {
	struct fw_heap_node node;
	struct fw_heap items;
	int64_t id;
	enum where where;
	int64_t key;      /* READY: the largest first */
	int64_t free_us;  /* the end of its gap */
	int64_t left_us;  /* sum of the waiting items' guesses */
	size_t waiting;   /* number of items in the heap */
	uint32_t busy;
};

struct slot {
	struct fw_heap_node node; /* in the running heap, or in the free one */
	struct fw_plan_item *item;
	int64_t until_us;
};

struct simulation {
	const struct fw_plan_rules *rules;
	struct fw_plan_item *item;
	struct fw_heap ready, gaps; /* hosts */
	struct fw_heap backlog;     /* batch policies: items of later batches */
	struct fw_map hosts;
	struct fw_arena mem;
	struct fw_heap running, free;
	struct slot *slot;
	struct fw_plan_start *start;
	size_t started, queued;
	uint64_t number;
	int64_t now_us, total_us;
};

/* ---- orders ---------------------------------------------------------------------------------- */

static const char *const NAMES[FW_PLAN_POLICY_N] = {"fifo", "shortest", "longest", "host-path", "batch-unordered", "batch-sorted"};

const char *fw_plan_policy_name(enum fw_plan_policy p)
{
	return p < FW_PLAN_POLICY_N ? NAMES[p] : "?";
}

bool fw_plan_policy_find(struct fw_str name, enum fw_plan_policy *out)
{
	for (int i = 0; i < FW_PLAN_POLICY_N; i++) {
		if (fw_str_eq(name, fw_str(NAMES[i]))) {
			*out = (enum fw_plan_policy)i;
			return true;
		}
	}
	return false;
}

static const struct fw_plan_item *item_of(const struct fw_heap_node *n)
{
	return FW_HEAP_OF_CONST(n, struct fw_plan_item, node);
}

static const struct fw_plan_host *host_of(const struct fw_heap_node *n)
{
	return FW_HEAP_OF_CONST(n, struct fw_plan_host, node);
}

static bool as_they_come(const struct fw_heap_node *a, const struct fw_heap_node *b)
{
	const struct fw_plan_item *x = item_of(a), *y = item_of(b);

	return x->number < y->number;
}

static bool short_first(const struct fw_heap_node *a, const struct fw_heap_node *b)
{
	int64_t x = item_of(a)->guess_us, y = item_of(b)->guess_us;

	return x != y ? x < y : as_they_come(a, b);
}

static bool long_first(const struct fw_heap_node *a, const struct fw_heap_node *b)
{
	int64_t x = item_of(a)->guess_us, y = item_of(b)->guess_us;

	return x != y ? x > y : as_they_come(a, b);
}

static bool unknown_last(const struct fw_heap_node *a, const struct fw_heap_node *b)
{
	bool x = item_of(a)->expect_us <= 0, y = item_of(b)->expect_us <= 0;

	return x != y ? y : x ? as_they_come(a, b) : short_first(a, b);
}

static fw_heap_before *item_order(enum fw_plan_policy p)
{
	switch (p) {
	case FW_PLAN_SHORTEST: return short_first;
	case FW_PLAN_LONGEST:
	case FW_PLAN_HOST_PATH: return long_first;
	default: return as_they_come;
	}
}

static bool host_first(const struct fw_heap_node *a, const struct fw_heap_node *b)
{
	const struct fw_plan_host *x = host_of(a), *y = host_of(b);

	return x->key != y->key ? x->key > y->key : as_they_come(x->items.first, y->items.first);
}

static bool gap_first(const struct fw_heap_node *a, const struct fw_heap_node *b)
{
	return host_of(a)->free_us < host_of(b)->free_us;
}

/* ---- hosts ----------------------------------------------------------------------------------- */

static struct fw_str key_of(const int64_t *host)
{
	return (struct fw_str){(const char *)host, sizeof(*host)};
}

/* A lower bound for the time that n items of one host take. */
static int64_t chain_us(const struct fw_plan_rules *r, int64_t work_us, size_t n, int64_t last_us)
{
	int64_t chain = last_us;

	if (r->host_max)
		chain = FW_MAX(chain, work_us / r->host_max);
	if (r->host_gap_us > 0 && n)
		chain = FW_MAX(chain, (int64_t)(n - 1) * r->host_gap_us + last_us);
	return chain;
}

static int64_t measure(const struct fw_plan_rules *r, const struct fw_plan_host *h)
{
	int64_t first_us = item_of(h->items.first)->guess_us;

	switch (r->policy) {
	case FW_PLAN_SHORTEST: return -first_us;
	case FW_PLAN_LONGEST: return first_us;
	case FW_PLAN_HOST_PATH: return chain_us(r, h->left_us, h->waiting, first_us);
	default: return 0;
	}
}

static void unplace(struct simulation *s, struct fw_plan_host *h)
{
	if (h->where != NOWHERE)
		fw_heap_remove(h->where == READY ? &s->ready : &s->gaps, &h->node);
	h->where = NOWHERE;
}

/* Put the host into the heap where it belongs now. */
static void place(struct simulation *s, struct fw_plan_host *h)
{
	unplace(s, h);
	if (!h->waiting || (s->rules->host_max && h->busy >= s->rules->host_max))
		return;
	h->where = h->free_us > s->now_us ? IN_GAP : READY;
	h->key = measure(s->rules, h);
	fw_heap_put(h->where == READY ? &s->ready : &s->gaps, &h->node);
}

static struct fw_plan_host *host_get(struct simulation *s, int64_t id)
{
	struct fw_plan_host *h = fw_map_get(&s->hosts, key_of(&id));
	int rc;

	if (h)
		return h;
	h = fw_arena_zalloc(&s->mem, sizeof(*h));
	if (!h)
		return NULL;
	h->id = id;
	fw_heap_init(&h->items, item_order(s->rules->policy));
	fw_map_put(&s->hosts, key_of(&h->id), h, &rc);
	return rc ? NULL : h;
}

/* ---- waiting items --------------------------------------------------------------------------- */

bool fw_plan_is_batch(enum fw_plan_policy p)
{
	return p == FW_PLAN_BATCH_UNORDERED || p == FW_PLAN_BATCH_SORTED;
}

static void enqueue(struct simulation *s, struct fw_plan_item *item)
{
	struct fw_plan_host *h = item->of;

	item->number = s->number++;
	unplace(s, h); /* its key changes */
	fw_heap_put(&h->items, &item->node);
	h->left_us += item->guess_us;
	h->waiting++;
	s->queued++;
	place(s, h);
}

static int put(struct simulation *s, struct fw_plan_item *item)
{
	item->number = s->number++; /* orders the backlog */
	item->of = host_get(s, item->host);
	if (!item->of)
		return FW_ENOMEM;
	if (fw_plan_is_batch(s->rules->policy))
		fw_heap_put(&s->backlog, &item->node);
	else
		enqueue(s, item);
	return 0;
}

static void next_batch(struct simulation *s)
{
	uint32_t n = s->rules->batch ? s->rules->batch : s->rules->slots;

	for (uint32_t i = 0; i < n && s->backlog.first; i++)
		enqueue(s, FW_HEAP_OF(fw_heap_take(&s->backlog), struct fw_plan_item, node));
}

/*
 * The next item that may start; NULL: none. Then *next_us is the end of the next host's gap;
 * INT64_MAX: nothing can start before an item is done.
 */
static struct fw_plan_item *take(struct simulation *s, int64_t *next_us)
{
	struct fw_plan_host *h;
	struct fw_plan_item *item;

	while (s->gaps.first && host_of(s->gaps.first)->free_us <= s->now_us)
		place(s, FW_HEAP_OF(s->gaps.first, struct fw_plan_host, node));
	if (!s->queued && !s->running.first)
		next_batch(s);
	*next_us = s->gaps.first ? host_of(s->gaps.first)->free_us : INT64_MAX;
	if (!s->ready.first)
		return NULL;
	h = FW_HEAP_OF(s->ready.first, struct fw_plan_host, node);
	assert(h->waiting && s->queued);
	unplace(s, h);
	item = FW_HEAP_OF(fw_heap_take(&h->items), struct fw_plan_item, node);
	h->left_us -= item->guess_us;
	h->waiting--;
	h->busy++;
	h->free_us = s->now_us + s->rules->host_gap_us;
	s->queued--;
	place(s, h);
	return item;
}

static void done(struct simulation *s, struct fw_plan_item *item)
{
	assert(item->of->busy);
	item->of->busy--;
	place(s, item->of);
}

/* ---- guesses --------------------------------------------------------------------------------- */

struct average {
	int64_t sum_us;
	int64_t n;
};

static void add(struct average *a, int64_t us)
{
	a->sum_us += us;
	a->n++;
}

static int averages(const struct fw_plan_item *item, size_t n, struct fw_map *hosts, struct fw_arena *mem, struct average *all)
{
	for (size_t i = 0; i < n; i++) {
		struct average *a;
		int rc = 0;

		if (item[i].expect_us <= 0)
			continue;
		add(all, item[i].expect_us);
		a = fw_map_get(hosts, key_of(&item[i].host));
		if (!a) {
			a = fw_arena_zalloc(mem, sizeof(*a));
			if (!a)
				return FW_ENOMEM;
			fw_map_put(hosts, key_of(&item[i].host), a, &rc);
			if (rc)
				return rc;
		}
		add(a, item[i].expect_us);
	}
	return 0;
}

static int guess(struct fw_plan_item *item, size_t n)
{
	struct average all = {0};
	struct fw_arena mem;
	struct fw_map hosts;
	int rc;

	fw_arena_init(&mem, 0);
	fw_map_init(&hosts, 0x686f7374);
	rc = averages(item, n, &hosts, &mem, &all);
	for (size_t i = 0; i < n && !rc; i++) {
		const struct average *a = fw_map_get(&hosts, key_of(&item[i].host));

		if (!a)
			a = &all;
		item[i].guess_us = item[i].expect_us > 0 ? item[i].expect_us : a->n ? a->sum_us / a->n : UNKNOWN_US;
	}
	fw_map_finish(&hosts);
	fw_arena_finish(&mem);
	return rc;
}

/* ---- bounds ---------------------------------------------------------------------------------- */

/* The items of one host: their work, number, shortest and longest. */
struct chain {
	int64_t host, work_us, shortest_us, longest_us;
	size_t n;
};

struct fw_plan_bounds {
	struct fw_plan_rules rules;
	struct fw_plan_total total;
	struct fw_map hosts;
	struct fw_arena mem;
};

struct fw_plan_bounds *fw_plan_bounds_new(const struct fw_plan_rules *rules)
{
	struct fw_plan_bounds *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->rules = *rules;
	fw_map_init(&b->hosts, 0x63686e73);
	fw_arena_init(&b->mem, 0);
	return b;
}

void fw_plan_bounds_free(struct fw_plan_bounds *b)
{
	if (!b)
		return;
	fw_map_finish(&b->hosts);
	fw_arena_finish(&b->mem);
	free(b);
}

static struct chain *chain_get(struct fw_plan_bounds *b, int64_t host)
{
	struct chain *c = fw_map_get(&b->hosts, key_of(&host));
	int rc;

	if (c)
		return c;
	c = fw_arena_zalloc(&b->mem, sizeof(*c));
	if (!c)
		return NULL;
	*c = (struct chain){.host = host, .shortest_us = INT64_MAX};
	fw_map_put(&b->hosts, key_of(&c->host), c, &rc);
	return rc ? NULL : c;
}

int fw_plan_bounds_add(struct fw_plan_bounds *b, int64_t host, int64_t name, int64_t took_us)
{
	struct fw_plan_total *t = &b->total;
	struct chain *c = chain_get(b, host);
	int64_t us;

	if (!c)
		return FW_ENOMEM;
	t->sum_us += took_us;
	t->longest_us = FW_MAX(t->longest_us, took_us);
	c->work_us += took_us;
	c->n++;
	c->shortest_us = FW_MIN(c->shortest_us, took_us);
	c->longest_us = FW_MAX(c->longest_us, took_us);
	us = FW_MAX(chain_us(&b->rules, c->work_us, c->n, c->shortest_us), c->longest_us);
	if (us > t->host_us) {
		t->host_us = us;
		t->host_item = name;
		t->host_n = c->n;
	}
	return 0;
}

const struct fw_plan_total *fw_plan_bounds_get(struct fw_plan_bounds *b)
{
	b->total.slots_us = b->total.sum_us / FW_MAX(b->rules.slots, 1u);
	return &b->total;
}

int64_t fw_plan_bound(const struct fw_plan_total *t)
{
	return FW_MAX(FW_MAX(t->slots_us, t->longest_us), t->host_us);
}

/* ---- simulation ------------------------------------------------------------------------------ */

static const struct slot *slot_of(const struct fw_heap_node *n)
{
	return FW_HEAP_OF_CONST(n, struct slot, node);
}

static bool ends_first(const struct fw_heap_node *a, const struct fw_heap_node *b)
{
	return slot_of(a)->until_us < slot_of(b)->until_us;
}

static bool lower_first(const struct fw_heap_node *a, const struct fw_heap_node *b)
{
	return slot_of(a) < slot_of(b);
}

static void begin(struct simulation *s, struct fw_plan_item *item)
{
	struct slot *slot = FW_HEAP_OF(fw_heap_take(&s->free), struct slot, node);

	slot->item = item;
	slot->until_us = s->now_us + item->guess_us;
	s->total_us = FW_MAX(s->total_us, slot->until_us);
	fw_heap_put(&s->running, &slot->node);
	if (s->start)
		s->start[s->started] = (struct fw_plan_start){.item = (size_t)(item - s->item), .slot = (uint32_t)(slot - s->slot),
			.at_us = s->now_us, .until_us = slot->until_us};
	s->started++;
}

/* Start all that can start, then move on to the next event. */
static void simulate(struct simulation *s)
{
	for (;;) {
		int64_t next_us = INT64_MAX;
		struct fw_plan_item *item;

		while (s->free.first && (item = take(s, &next_us)) != NULL)
			begin(s, item);
		if (s->running.first && (!s->free.first || slot_of(s->running.first)->until_us <= next_us)) {
			struct slot *slot = FW_HEAP_OF(fw_heap_take(&s->running), struct slot, node);

			s->now_us = slot->until_us;
			done(s, slot->item);
			fw_heap_put(&s->free, &slot->node);
		} else if (next_us != INT64_MAX) {
			s->now_us = next_us;
		} else {
			return; /* nothing runs and nothing waits */
		}
	}
}

static int bounds(const struct simulation *s, size_t n, struct fw_plan_total *out)
{
	struct fw_plan_bounds *b = fw_plan_bounds_new(s->rules);
	int rc = b ? 0 : FW_ENOMEM;

	for (size_t i = 0; i < n && !rc; i++)
		rc = fw_plan_bounds_add(b, s->item[i].host, (int64_t)i, s->item[i].guess_us);
	if (!rc)
		*out = *fw_plan_bounds_get(b);
	fw_plan_bounds_free(b);
	return rc;
}

int fw_plan_simulate(const struct fw_plan_rules *rules, struct fw_plan_item *item, size_t n, struct fw_plan_start *start,
	struct fw_plan_total *out)
{
	struct simulation s = {.rules = rules, .item = item, .start = start};
	size_t slots = FW_MIN((size_t)rules->slots, n);
	int rc;

	*out = (struct fw_plan_total){0};
	if (!slots)
		return rules->slots ? 0 : FW_EINVAL;
	fw_heap_init(&s.ready, host_first);
	fw_heap_init(&s.gaps, gap_first);
	fw_heap_init(&s.backlog, rules->policy == FW_PLAN_BATCH_SORTED ? unknown_last : as_they_come);
	fw_heap_init(&s.running, ends_first);
	fw_heap_init(&s.free, lower_first);
	fw_map_init(&s.hosts, 0x66656564);
	fw_arena_init(&s.mem, 0);
	s.slot = fw_arena_calloc(&s.mem, slots, sizeof(*s.slot));
	rc = s.slot ? guess(item, n) : FW_ENOMEM;
	rc = rc ? rc : bounds(&s, n, out);
	for (size_t i = 0; !rc && i < slots; i++)
		fw_heap_put(&s.free, &s.slot[i].node);
	for (size_t i = 0; !rc && i < n; i++)
		rc = put(&s, &item[i]);
	if (!rc) {
		simulate(&s);
		out->total_us = s.total_us;
	}
	fw_map_finish(&s.hosts);
	fw_arena_finish(&s.mem);
	return rc;
}
