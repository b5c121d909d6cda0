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

#define UNKNOWN_US 1000000 /* when no duration at all is known */

enum plan_heap { PLAN_IN_NO_HEAP, PLAN_READY, PLAN_IN_GAP };

struct fw_plan_host {
	struct fw_heap_node node;
	struct fw_heap items;
	int64_t id;
	enum plan_heap where;
	int64_t priority; /* PLAN_READY: the largest first */
	int64_t free_us;  /* the end of its gap */
	int64_t left_us;  /* sum of the waiting items' guesses */
	size_t waiting;   /* number of items in the heap */
	uint32_t busy;
};

struct plan_slot {
	struct fw_heap_node node; /* in the running heap, or in the free one */
	struct fw_plan_item *item;
	int64_t until_us;
};

struct plan_simulation {
	const struct fw_plan_rules *rules;
	struct fw_plan_item *item;
	struct fw_heap ready, gaps; /* hosts */
	struct fw_heap backlog;     /* batch policies: items of later batches */
	struct fw_map hosts;
	struct fw_arena mem;
	struct fw_heap running, free;
	struct plan_slot *slot;
	struct fw_plan_start *start;
	size_t started, queued;
	uint64_t number;
	int64_t now_us, total_us;
};

/* ---- orders ---------------------------------------------------------------------------------- */

static const char *const PLAN_POLICY_NAMES[FW_PLAN_POLICY_N] = {
	"fifo", "shortest", "longest", "host-path", "batch-unordered", "batch-sorted"};

const char *fw_plan_policy_name(enum fw_plan_policy p)
{
	return p < FW_PLAN_POLICY_N ? PLAN_POLICY_NAMES[p] : "?";
}

bool fw_plan_policy_find(struct fw_str name, enum fw_plan_policy *out)
{
	for (int i = 0; i < FW_PLAN_POLICY_N; i++) {
		if (fw_str_eq(name, fw_str(PLAN_POLICY_NAMES[i]))) {
			*out = (enum fw_plan_policy)i;
			return true;
		}
	}
	return false;
}

static const struct fw_plan_item *plan_item_of(const struct fw_heap_node *n)
{
	return FW_HEAP_OF_CONST(n, struct fw_plan_item, node);
}

static const struct fw_plan_host *plan_host_of(const struct fw_heap_node *n)
{
	return FW_HEAP_OF_CONST(n, struct fw_plan_host, node);
}

static bool plan_fifo_before(const struct fw_heap_node *a, const struct fw_heap_node *b)
{
	const struct fw_plan_item *x = plan_item_of(a), *y = plan_item_of(b);

	return x->number < y->number;
}

static bool plan_shorter_before(const struct fw_heap_node *a, const struct fw_heap_node *b)
{
	int64_t x = plan_item_of(a)->guess_us, y = plan_item_of(b)->guess_us;

	return x != y ? x < y : plan_fifo_before(a, b);
}

static bool plan_longer_before(const struct fw_heap_node *a, const struct fw_heap_node *b)
{
	int64_t x = plan_item_of(a)->guess_us, y = plan_item_of(b)->guess_us;

	return x != y ? x > y : plan_fifo_before(a, b);
}

static bool plan_known_before(const struct fw_heap_node *a, const struct fw_heap_node *b)
{
	bool x = plan_item_of(a)->expect_us <= 0, y = plan_item_of(b)->expect_us <= 0;

	return x != y ? y : x ? plan_fifo_before(a, b) : plan_shorter_before(a, b);
}

static fw_heap_before *plan_item_order(enum fw_plan_policy p)
{
	switch (p) {
	case FW_PLAN_SHORTEST:
		return plan_shorter_before;
	case FW_PLAN_LONGEST:
	case FW_PLAN_HOST_PATH:
		return plan_longer_before;
	default:
		return plan_fifo_before;
	}
}

static bool plan_host_before(const struct fw_heap_node *a, const struct fw_heap_node *b)
{
	const struct fw_plan_host *x = plan_host_of(a), *y = plan_host_of(b);

	return x->priority != y->priority ? x->priority > y->priority :
					    plan_fifo_before(x->items.first, y->items.first);
}

static bool plan_gap_before(const struct fw_heap_node *a, const struct fw_heap_node *b)
{
	return plan_host_of(a)->free_us < plan_host_of(b)->free_us;
}

/* ---- hosts ----------------------------------------------------------------------------------- */

static struct fw_str plan_host_key(const int64_t *host)
{
	return (struct fw_str){(const char *)host, sizeof(*host)};
}

/* A lower bound for the time that n items of one host take. */
static int64_t plan_chain_us(const struct fw_plan_rules *r, int64_t work_us, size_t n, int64_t last_us)
{
	int64_t chain = last_us;

	if (r->host_concurrency)
		chain = FW_MAX(chain, work_us / r->host_concurrency);
	if (r->host_gap_us > 0 && n)
		chain = FW_MAX(chain, (int64_t)(n - 1) * r->host_gap_us + last_us);
	return chain;
}

static int64_t plan_host_priority(const struct fw_plan_rules *r, const struct fw_plan_host *h)
{
	int64_t first_us = plan_item_of(h->items.first)->guess_us;

	switch (r->policy) {
	case FW_PLAN_SHORTEST:
		return -first_us;
	case FW_PLAN_LONGEST:
		return first_us;
	case FW_PLAN_HOST_PATH:
		return plan_chain_us(r, h->left_us, h->waiting, first_us);
	default:
		return 0;
	}
}

static void plan_unplace(struct plan_simulation *s, struct fw_plan_host *h)
{
	if (h->where != PLAN_IN_NO_HEAP)
		fw_heap_remove(h->where == PLAN_READY ? &s->ready : &s->gaps, &h->node);
	h->where = PLAN_IN_NO_HEAP;
}

/* Put the host into the heap where it belongs now. */
static void plan_place(struct plan_simulation *s, struct fw_plan_host *h)
{
	plan_unplace(s, h);
	if (!h->waiting || (s->rules->host_concurrency && h->busy >= s->rules->host_concurrency))
		return;
	h->where = h->free_us > s->now_us ? PLAN_IN_GAP : PLAN_READY;
	h->priority = plan_host_priority(s->rules, h);
	fw_heap_put(h->where == PLAN_READY ? &s->ready : &s->gaps, &h->node);
}

static struct fw_plan_host *plan_host_get(struct plan_simulation *s, int64_t id)
{
	struct fw_plan_host *h = fw_map_get(&s->hosts, plan_host_key(&id));
	int rc;

	if (h)
		return h;
	h = fw_arena_zalloc(&s->mem, sizeof(*h));
	if (!h)
		return NULL;
	h->id = id;
	fw_heap_init(&h->items, plan_item_order(s->rules->policy));
	fw_map_put(&s->hosts, plan_host_key(&h->id), h, &rc);
	return rc ? NULL : h;
}

/* ---- waiting items --------------------------------------------------------------------------- */

bool fw_plan_is_batch(enum fw_plan_policy p)
{
	return p == FW_PLAN_BATCH_UNORDERED || p == FW_PLAN_BATCH_SORTED;
}

static void plan_enqueue(struct plan_simulation *s, struct fw_plan_item *item)
{
	struct fw_plan_host *h = item->of;

	item->number = s->number++;
	plan_unplace(s, h); /* its key changes */
	fw_heap_put(&h->items, &item->node);
	h->left_us += item->guess_us;
	h->waiting++;
	s->queued++;
	plan_place(s, h);
}

static int plan_put(struct plan_simulation *s, struct fw_plan_item *item)
{
	item->number = s->number++; /* orders the backlog */
	item->of = plan_host_get(s, item->host);
	if (!item->of)
		return FW_ENOMEM;
	if (fw_plan_is_batch(s->rules->policy))
		fw_heap_put(&s->backlog, &item->node);
	else
		plan_enqueue(s, item);
	return 0;
}

static void plan_next_batch(struct plan_simulation *s)
{
	uint32_t n = s->rules->batch ? s->rules->batch : s->rules->slots;

	for (uint32_t i = 0; i < n && s->backlog.first; i++)
		plan_enqueue(s, FW_HEAP_OF(fw_heap_take(&s->backlog), struct fw_plan_item, node));
}

/*
 * The next item that may start; NULL: none. Then *next_us is the end of the next host's gap;
 * INT64_MAX: nothing can start before an item is done.
 */
static struct fw_plan_item *plan_take(struct plan_simulation *s, int64_t *next_us)
{
	struct fw_plan_host *h;
	struct fw_plan_item *item;

	while (s->gaps.first && plan_host_of(s->gaps.first)->free_us <= s->now_us)
		plan_place(s, FW_HEAP_OF(s->gaps.first, struct fw_plan_host, node));
	if (!s->queued && !s->running.first)
		plan_next_batch(s);
	*next_us = s->gaps.first ? plan_host_of(s->gaps.first)->free_us : INT64_MAX;
	if (!s->ready.first)
		return NULL;
	h = FW_HEAP_OF(s->ready.first, struct fw_plan_host, node);
	assert(h->waiting && s->queued);
	plan_unplace(s, h);
	item = FW_HEAP_OF(fw_heap_take(&h->items), struct fw_plan_item, node);
	h->left_us -= item->guess_us;
	h->waiting--;
	h->busy++;
	h->free_us = s->now_us + s->rules->host_gap_us;
	s->queued--;
	plan_place(s, h);
	return item;
}

static void plan_done(struct plan_simulation *s, struct fw_plan_item *item)
{
	assert(item->of->busy);
	item->of->busy--;
	plan_place(s, item->of);
}

/* ---- guesses --------------------------------------------------------------------------------- */

struct plan_average {
	int64_t sum_us;
	int64_t n;
};

static void average_add(struct plan_average *a, int64_t us)
{
	a->sum_us += us;
	a->n++;
}

static int averages_collect(
	const struct fw_plan_item *item, size_t n, struct fw_map *hosts, struct fw_arena *mem, struct plan_average *all)
{
	for (size_t i = 0; i < n; i++) {
		struct plan_average *a;
		int rc = 0;

		if (item[i].expect_us <= 0)
			continue;
		average_add(all, item[i].expect_us);
		a = fw_map_get(hosts, plan_host_key(&item[i].host));
		if (!a) {
			a = fw_arena_zalloc(mem, sizeof(*a));
			if (!a)
				return FW_ENOMEM;
			fw_map_put(hosts, plan_host_key(&item[i].host), a, &rc);
			if (rc)
				return rc;
		}
		average_add(a, item[i].expect_us);
	}
	return 0;
}

static int plan_guess(struct fw_plan_item *item, size_t n)
{
	struct plan_average all = {0};
	struct fw_arena mem;
	struct fw_map hosts;
	int rc;

	fw_arena_init(&mem, 0);
	fw_map_init(&hosts, 0x686f7374);
	rc = averages_collect(item, n, &hosts, &mem, &all);
	for (size_t i = 0; i < n && !rc; i++) {
		const struct plan_average *a = fw_map_get(&hosts, plan_host_key(&item[i].host));

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
struct plan_chain {
	int64_t host, work_us, shortest_us, longest_us;
	size_t n;
};

struct fw_plan_bounds {
	struct fw_plan_rules rules;
	struct fw_plan_total total;
	struct fw_map hosts;
	struct fw_arena mem;
};

struct fw_plan_bounds *fw_plan_bounds_create(const struct fw_plan_rules *rules)
{
	struct fw_plan_bounds *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->rules = *rules;
	fw_map_init(&b->hosts, 0x63686e73);
	fw_arena_init(&b->mem, 0);
	return b;
}

void fw_plan_bounds_destroy(struct fw_plan_bounds *b)
{
	if (!b)
		return;
	fw_map_finish(&b->hosts);
	fw_arena_finish(&b->mem);
	free(b);
}

static struct plan_chain *plan_chain_get(struct fw_plan_bounds *b, int64_t host)
{
	struct plan_chain *c = fw_map_get(&b->hosts, plan_host_key(&host));
	int rc;

	if (c)
		return c;
	c = fw_arena_zalloc(&b->mem, sizeof(*c));
	if (!c)
		return NULL;
	*c = (struct plan_chain){.host = host, .shortest_us = INT64_MAX};
	fw_map_put(&b->hosts, plan_host_key(&c->host), c, &rc);
	return rc ? NULL : c;
}

int fw_plan_bounds_add(struct fw_plan_bounds *b, int64_t host, int64_t name, int64_t took_us)
{
	struct fw_plan_total *t = &b->total;
	struct plan_chain *c = plan_chain_get(b, host);
	int64_t us;

	if (!c)
		return FW_ENOMEM;
	t->sum_us += took_us;
	t->longest_us = FW_MAX(t->longest_us, took_us);
	c->work_us += took_us;
	c->n++;
	c->shortest_us = FW_MIN(c->shortest_us, took_us);
	c->longest_us = FW_MAX(c->longest_us, took_us);
	us = FW_MAX(plan_chain_us(&b->rules, c->work_us, c->n, c->shortest_us), c->longest_us);
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

static const struct plan_slot *plan_slot_of(const struct fw_heap_node *n)
{
	return FW_HEAP_OF_CONST(n, struct plan_slot, node);
}

static bool plan_slot_ends_before(const struct fw_heap_node *a, const struct fw_heap_node *b)
{
	return plan_slot_of(a)->until_us < plan_slot_of(b)->until_us;
}

static bool plan_slot_before(const struct fw_heap_node *a, const struct fw_heap_node *b)
{
	return plan_slot_of(a) < plan_slot_of(b);
}

static void plan_start(struct plan_simulation *s, struct fw_plan_item *item)
{
	struct plan_slot *slot = FW_HEAP_OF(fw_heap_take(&s->free), struct plan_slot, node);

	slot->item = item;
	slot->until_us = s->now_us + item->guess_us;
	s->total_us = FW_MAX(s->total_us, slot->until_us);
	fw_heap_put(&s->running, &slot->node);
	if (s->start)
		s->start[s->started] = (struct fw_plan_start){.item = (size_t)(item - s->item),
			.slot = (uint32_t)(slot - s->slot),
			.at_us = s->now_us,
			.until_us = slot->until_us};
	s->started++;
}

/* Start all that can start, then move on to the next event. */
static void plan_simulation_run(struct plan_simulation *s)
{
	for (;;) {
		int64_t next_us = INT64_MAX;
		struct fw_plan_item *item;

		while (s->free.first && (item = plan_take(s, &next_us)) != NULL)
			plan_start(s, item);
		if (s->running.first && (!s->free.first || plan_slot_of(s->running.first)->until_us <= next_us)) {
			struct plan_slot *slot = FW_HEAP_OF(fw_heap_take(&s->running), struct plan_slot, node);

			s->now_us = slot->until_us;
			plan_done(s, slot->item);
			fw_heap_put(&s->free, &slot->node);
		} else if (next_us != INT64_MAX) {
			s->now_us = next_us;
		} else {
			return; /* nothing runs and nothing waits */
		}
	}
}

static int plan_bounds_compute(const struct plan_simulation *s, size_t n, struct fw_plan_total *out)
{
	struct fw_plan_bounds *b = fw_plan_bounds_create(s->rules);
	int rc = b ? 0 : FW_ENOMEM;

	for (size_t i = 0; i < n && !rc; i++)
		rc = fw_plan_bounds_add(b, s->item[i].host, (int64_t)i, s->item[i].guess_us);
	if (!rc)
		*out = *fw_plan_bounds_get(b);
	fw_plan_bounds_destroy(b);
	return rc;
}

int fw_plan_simulate(const struct fw_plan_rules *rules, struct fw_plan_item *item, size_t n,
	struct fw_plan_start *start, struct fw_plan_total *out)
{
	struct plan_simulation s = {.rules = rules, .item = item, .start = start};
	size_t slots = FW_MIN((size_t)rules->slots, n);
	int rc;

	*out = (struct fw_plan_total){0};
	if (!slots)
		return rules->slots ? 0 : FW_EINVAL;
	fw_heap_init(&s.ready, plan_host_before);
	fw_heap_init(&s.gaps, plan_gap_before);
	fw_heap_init(&s.backlog, rules->policy == FW_PLAN_BATCH_SORTED ? plan_known_before : plan_fifo_before);
	fw_heap_init(&s.running, plan_slot_ends_before);
	fw_heap_init(&s.free, plan_slot_before);
	fw_map_init(&s.hosts, 0x66656564);
	fw_arena_init(&s.mem, 0);
	s.slot = fw_arena_calloc(&s.mem, slots, sizeof(*s.slot));
	rc = s.slot ? plan_guess(item, n) : FW_ENOMEM;
	rc = rc ? rc : plan_bounds_compute(&s, n, out);
	for (size_t i = 0; !rc && i < slots; i++)
		fw_heap_put(&s.free, &s.slot[i].node);
	for (size_t i = 0; !rc && i < n; i++)
		rc = plan_put(&s, &item[i]);
	if (!rc) {
		plan_simulation_run(&s);
		out->total_us = s.total_us;
	}
	fw_map_finish(&s.hosts);
	fw_arena_finish(&s.mem);
	return rc;
}
