/* SPDX-License-Identifier: ISC */
/*
 * Two levels of heaps, as in plan.c. Each host has a heap of its waiting feeds. The hosts stand in
 * one of three heaps: READY may start something, ordered by the first feed; BLOCKED has feeds and
 * waits for a time; FADING has none and is remembered until a time. A host whose budget is used up,
 * or whose request is not sent yet, is in no heap; an event of its requests puts it back. So a host
 * costs nothing while it cannot start anything, however many feeds it has.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/str.h"
#include "sched/hosts.h"
#include "base/banned.h"

#define LONG_AGO (INT64_MIN / 2)

enum where { NOWHERE, READY, BLOCKED, FADING };

struct fw_hosts_host {
	struct fw_heap_node node;
	struct fw_heap items;
	enum where where;
	uint32_t shard;
	bool urgent;              /* READY: copy of the first item's, as are order and feed_id */
	int64_t order, feed_id;
	int64_t free_ms;          /* BLOCKED, FADING: when to place the host again */
	int64_t id;
	/* last permission or sending, or when a former owner may have sent */
	int64_t last_ms;
	int64_t row_ok_ms;        /* next_ok_ms of its row */
	int64_t cool_ms;
	int64_t pace_ms;
	size_t waiting;
	uint32_t flying, unsent;
	uint32_t committing;      /* rows in commits that have not ended */
	bool is_dirty;
	struct fw_hosts_host *next, *prev;            /* the hosts of its shard */
	struct fw_hosts_host *dirty_next, *dirty_prev;
};

enum state { FOREIGN, OWNED, LEAVING };

struct shard {
	enum state state;
	int64_t sent_ms;          /* a former owner may have sent until then */
	size_t flying;
	struct fw_hosts_host *first;
};

struct fw_hosts {
	struct fw_hosts_rules rules;
	int64_t now_ms, stop_ms;
	struct fw_heap ready, blocked, fading;
	struct fw_map hosts;
	struct fw_hosts_host *dirty, *dirty_last; /* oldest first */
	size_t waiting;
	struct shard shard[FW_HOSTS_SHARDS];
};

/* ---- orders ---------------------------------------------------------------------------------- */

static const struct fw_hosts_item *item_of(const struct fw_heap_node *n)
{
	return FW_HEAP_OF_CONST(n, struct fw_hosts_item, node);
}

static const struct fw_hosts_host *host_of(const struct fw_heap_node *n)
{
	return FW_HEAP_OF_CONST(n, struct fw_hosts_host, node);
}

static bool item_first(const struct fw_heap_node *a, const struct fw_heap_node *b)
{
	const struct fw_hosts_item *x = item_of(a), *y = item_of(b);

	if (x->urgent != y->urgent)
		return x->urgent;
	return x->order != y->order ? x->order < y->order : x->feed_id < y->feed_id;
}

/*
 * Compares copies of the first items' keys: reading the items would be a cache miss for each
 * comparison.
 */
static bool host_first(const struct fw_heap_node *a, const struct fw_heap_node *b)
{
	const struct fw_hosts_host *x = host_of(a), *y = host_of(b);

	if (x->urgent != y->urgent)
		return x->urgent;
	return x->order != y->order ? x->order < y->order : x->feed_id < y->feed_id;
}

static bool free_first(const struct fw_heap_node *a, const struct fw_heap_node *b)
{
	return host_of(a)->free_ms < host_of(b)->free_ms;
}

/* ---- time ------------------------------------------------------------------------------------ */

static void clock_on(struct fw_hosts *t, int64_t mono_ms)
{
	t->now_ms = FW_MAX(t->now_ms, mono_ms);
}

/*
 * Wall time to monotonic time, at most max_ms from now. A time in the past needs no exact result.
 */
static int64_t mono_of(int64_t wall_ms, struct fw_hosts_now now, int64_t max_ms)
{
	if (wall_ms <= now.wall_ms)
		return wall_ms <= 0 ? LONG_AGO : FW_MAX(now.mono_ms - (now.wall_ms - wall_ms), LONG_AGO);
	return now.mono_ms + FW_MIN(wall_ms - now.wall_ms, max_ms);
}

static int64_t wall_of(int64_t mono_ms, struct fw_hosts_now now)
{
	return mono_ms > now.mono_ms ? now.wall_ms + (mono_ms - now.mono_ms) : 0;
}

static int64_t gap_of(const struct fw_hosts *t, const struct fw_hosts_host *h)
{
	return FW_MAX(t->rules.gap_ms, h->pace_ms);
}

/* The gap is over from this time on. */
static int64_t gap_end(const struct fw_hosts *t, const struct fw_hosts_host *h)
{
	return FW_MAX(h->last_ms + gap_of(t, h), h->row_ok_ms);
}

static int64_t free_of(const struct fw_hosts *t, const struct fw_hosts_host *h)
{
	return FW_MAX(gap_end(t, h), h->cool_ms);
}

/* ---- hosts ----------------------------------------------------------------------------------- */

static struct fw_str key_of(const int64_t *id)
{
	return (struct fw_str){(const char *)id, sizeof(*id)};
}

static struct fw_hosts_host *host_find(const struct fw_hosts *t, int64_t id)
{
	return fw_map_get(&t->hosts, key_of(&id));
}

static struct fw_hosts_host *host_get(struct fw_hosts *t, uint32_t shard, int64_t id)
{
	struct fw_hosts_host *h = host_find(t, id);
	struct shard *s = &t->shard[shard];
	int rc;

	assert(!h || h->shard == shard);
	if (h)
		return h;
	h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	h->id = id;
	h->shard = shard;
	h->last_ms = s->sent_ms;
	h->row_ok_ms = h->cool_ms = LONG_AGO;
	fw_heap_init(&h->items, item_first);
	fw_map_put(&t->hosts, key_of(&h->id), h, &rc);
	if (rc) {
		free(h);
		return NULL;
	}
	h->next = s->first;
	if (h->next)
		h->next->prev = h;
	s->first = h;
	return h;
}

static void unplace(struct fw_hosts *t, struct fw_hosts_host *h)
{
	struct fw_heap *const heap[] = {NULL, &t->ready, &t->blocked, &t->fading};

	if (h->where != NOWHERE)
		fw_heap_remove(heap[h->where], &h->node);
	h->where = NOWHERE;
}

static void clean(struct fw_hosts *t, struct fw_hosts_host *h)
{
	if (!h->is_dirty)
		return;
	*(h->dirty_prev ? &h->dirty_prev->dirty_next : &t->dirty) = h->dirty_next;
	*(h->dirty_next ? &h->dirty_next->dirty_prev : &t->dirty_last) = h->dirty_prev;
	h->dirty_next = h->dirty_prev = NULL;
	h->is_dirty = false;
}

static void dirty(struct fw_hosts *t, struct fw_hosts_host *h)
{
	if (h->is_dirty)
		return;
	h->is_dirty = true;
	h->dirty_prev = t->dirty_last;
	*(t->dirty_last ? &t->dirty_last->dirty_next : &t->dirty) = h;
	t->dirty_last = h;
}

/* A request of a shard that is given up moves the gap; the row tells the successor. */
static void dirty_gap(struct fw_hosts *t, struct fw_hosts_host *h)
{
	if (t->shard[h->shard].state == LEAVING && gap_end(t, h) > t->now_ms)
		dirty(t, h);
}

static void host_free(struct fw_hosts *t, struct fw_hosts_host *h)
{
	assert(!h->waiting && !h->flying);
	unplace(t, h);
	clean(t, h);
	*(h->prev ? &h->prev->next : &t->shard[h->shard].first) = h->next;
	if (h->next)
		h->next->prev = h->prev;
	fw_map_del(&t->hosts, key_of(&h->id));
	free(h);
}

static bool is_held(const struct fw_hosts *t, const struct fw_hosts_host *h)
{
	return (t->rules.host_max && h->flying >= t->rules.host_max) || (h->unsent && gap_of(t, h) > 0);
}

/*
 * Put the host into the heap where it belongs now. Free it when nothing about it has to be
 * remembered.
 */
static void place(struct fw_hosts *t, struct fw_hosts_host *h)
{
	const struct fw_hosts_item *first;

	unplace(t, h);
	if (h->waiting ? is_held(t, h) : h->flying || h->is_dirty || h->committing)
		return;
	h->free_ms = free_of(t, h);
	if (h->free_ms > t->now_ms) {
		h->where = h->waiting ? BLOCKED : FADING;
		fw_heap_put(h->waiting ? &t->blocked : &t->fading, &h->node);
	} else if (h->waiting) {
		first = item_of(h->items.first);
		h->urgent = first->urgent;
		h->order = first->order;
		h->feed_id = first->feed_id;
		h->where = READY;
		fw_heap_put(&t->ready, &h->node);
	} else if (!h->pace_ms) {
		host_free(t, h);
	}
}

/* Place the hosts whose time has come. */
static void times_end(struct fw_hosts *t, struct fw_heap *heap)
{
	while (heap->first && host_of(heap->first)->free_ms <= t->now_ms)
		place(t, FW_HEAP_OF(heap->first, struct fw_hosts_host, node));
}

struct fw_hosts *fw_hosts_new(const struct fw_hosts_rules *rules)
{
	struct fw_hosts *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->rules = *rules;
	t->now_ms = LONG_AGO;
	t->stop_ms = INT64_MIN;
	fw_heap_init(&t->ready, host_first);
	fw_heap_init(&t->blocked, free_first);
	fw_heap_init(&t->fading, free_first);
	fw_map_init(&t->hosts, 0x686f737473);
	return t;
}

void fw_hosts_free(struct fw_hosts *t)
{
	if (!t)
		return;
	fw_map_free(&t->hosts);
	free(t);
}

void fw_hosts_lease(struct fw_hosts *t, int64_t stop_ms)
{
	t->stop_ms = stop_ms;
}

/* ---- shards ---------------------------------------------------------------------------------- */

void fw_hosts_take(struct fw_hosts *t, uint32_t shard, int64_t sent_until_ms, struct fw_hosts_now now)
{
	struct shard *s = &t->shard[shard];

	assert(s->state != OWNED);
	clock_on(t, now.mono_ms);
	if (s->state == FOREIGN) /* otherwise it was being left, and had no other owner since */
		s->sent_ms = mono_of(sent_until_ms, now, FW_PACE_MAX_MS);
	s->state = OWNED;
}

int fw_hosts_row_put(struct fw_hosts *t, uint32_t shard, const struct fw_hosts_row *row, struct fw_hosts_now now)
{
	struct fw_hosts_host *h;

	if (t->shard[shard].state != OWNED)
		return FW_ESTALE;
	h = host_get(t, shard, row->host_id);
	if (!h)
		return FW_ENOMEM;
	clock_on(t, now.mono_ms);
	h->pace_ms = FW_MAX(h->pace_ms, FW_MIN(row->pace_ms, FW_PACE_MAX_MS));
	h->row_ok_ms = FW_MAX(h->row_ok_ms, mono_of(row->next_ok_ms, now, FW_MAX(t->rules.gap_ms, FW_PACE_MAX_MS)));
	h->cool_ms = FW_MAX(h->cool_ms, mono_of(row->cool_until_ms, now, FW_HOSTS_COOL_MAX_MS));
	place(t, h);
	return 0;
}

void fw_hosts_leave(struct fw_hosts *t, uint32_t shard)
{
	struct shard *s = &t->shard[shard];

	assert(s->state == OWNED);
	s->state = LEAVING;
	for (struct fw_hosts_host *h = s->first, *next; h; h = next) {
		next = h->next;
		assert(!h->waiting);
		dirty_gap(t, h);
		place(t, h);
	}
}

int64_t fw_hosts_sent_until(const struct fw_hosts *t, uint32_t shard, struct fw_hosts_now now)
{
	int64_t sent_ms = t->shard[shard].sent_ms;

	return sent_ms + t->rules.gap_ms > now.mono_ms ? now.wall_ms + (sent_ms - now.mono_ms) : 0;
}

void fw_hosts_forget(struct fw_hosts *t, uint32_t shard)
{
	struct shard *s = &t->shard[shard];

	assert(s->state == LEAVING && !s->flying);
	for (struct fw_hosts_host *h = s->first, *next; h; h = next) {
		next = h->next;
		host_free(t, h);
	}
	s->state = FOREIGN;
}

/* ---- feeds ----------------------------------------------------------------------------------- */

int fw_hosts_put(struct fw_hosts *t, uint32_t shard, int64_t host_id, struct fw_hosts_item *item)
{
	struct fw_hosts_host *h;

	assert(!item->of);
	if (t->shard[shard].state != OWNED)
		return FW_ESTALE;
	h = host_get(t, shard, host_id);
	if (!h)
		return FW_ENOMEM;
	item->of = h;
	item->flying = item->sent = false;
	fw_heap_put(&h->items, &item->node);
	h->waiting++;
	t->waiting++;
	if (h->waiting == 1 || (h->where == READY && h->items.first == &item->node))
		place(t, h);
	return 0;
}

void fw_hosts_withdraw(struct fw_hosts *t, struct fw_hosts_item *item)
{
	struct fw_hosts_host *h = item->of;
	bool was_first = h->items.first == &item->node;

	assert(!item->flying && h->waiting && t->waiting);
	fw_heap_remove(&h->items, &item->node);
	h->waiting--;
	t->waiting--;
	item->of = NULL;
	if (was_first)
		place(t, h);
}

struct fw_hosts_item *fw_hosts_first(struct fw_hosts *t, int64_t mono_ms, int64_t *next_ms)
{
	clock_on(t, mono_ms);
	times_end(t, &t->fading);
	times_end(t, &t->blocked);
	*next_ms = INT64_MAX;
	if (t->now_ms >= t->stop_ms)
		return NULL;
	if (t->ready.first)
		return FW_HEAP_OF(host_of(t->ready.first)->items.first, struct fw_hosts_item, node);
	if (t->blocked.first)
		*next_ms = host_of(t->blocked.first)->free_ms;
	return NULL;
}

struct fw_hosts_item *fw_hosts_start(struct fw_hosts *t, int64_t mono_ms, int64_t *next_ms)
{
	struct fw_hosts_item *item = fw_hosts_first(t, mono_ms, next_ms);
	struct fw_hosts_host *h = item ? item->of : NULL;

	if (!h)
		return NULL;
	assert(h->waiting && t->waiting);
	unplace(t, h);
	fw_heap_take(&h->items);
	h->waiting--;
	t->waiting--;
	item->flying = true;
	h->flying++;
	h->unsent++;
	t->shard[h->shard].flying++;
	h->last_ms = FW_MAX(h->last_ms, t->now_ms);
	place(t, h);
	return item;
}

bool fw_hosts_send(struct fw_hosts *t, struct fw_hosts_item *item, int64_t mono_ms)
{
	struct fw_hosts_host *h = item->of;

	assert(item->flying && (item->sent || h->unsent));
	clock_on(t, mono_ms);
	if (t->now_ms >= t->stop_ms || (!item->sent && h->cool_ms > t->now_ms))
		return false;
	h->unsent -= !item->sent;
	item->sent = true;
	h->last_ms = FW_MAX(h->last_ms, t->now_ms);
	place(t, h);
	return true;
}

void fw_hosts_done(struct fw_hosts *t, struct fw_hosts_item *item, enum fw_host_mood mood, int64_t cool_until_ms,
	struct fw_hosts_now now)
{
	struct fw_hosts_host *h = item->of;
	int64_t pace_ms = fw_store_pace(h->pace_ms, mood), cool_ms = mono_of(cool_until_ms, now, FW_HOSTS_COOL_MAX_MS);

	assert(item->flying && h->flying && (item->sent || h->unsent));
	clock_on(t, now.mono_ms);
	h->flying--;
	h->unsent -= !item->sent;
	t->shard[h->shard].flying--;
	item->flying = false;
	item->of = NULL;
	if (pace_ms != h->pace_ms || (cool_ms > h->cool_ms && cool_ms > t->now_ms))
		dirty(t, h);
	h->pace_ms = pace_ms;
	h->cool_ms = FW_MAX(h->cool_ms, cool_ms);
	dirty_gap(t, h);
	place(t, h);
}

size_t fw_hosts_waiting(const struct fw_hosts *t)
{
	return t->waiting;
}

size_t fw_hosts_known(const struct fw_hosts *t)
{
	return t->hosts.n;
}

int64_t fw_hosts_free_ms(const struct fw_hosts *t, int64_t host_id)
{
	const struct fw_hosts_host *h = host_find(t, host_id);
	int64_t free_ms = h ? free_of(t, h) : INT64_MIN;

	return free_ms > t->now_ms ? free_ms : INT64_MIN;
}

int64_t fw_hosts_pace_ms(const struct fw_hosts *t, int64_t host_id)
{
	const struct fw_hosts_host *h = host_find(t, host_id);

	return h ? h->pace_ms : 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

size_t fw_hosts_rows_take(struct fw_hosts *t, struct fw_hosts_row *out, size_t max, struct fw_hosts_now now)
{
	size_t n = 0;

	clock_on(t, now.mono_ms);
	while (n < max && t->dirty) {
		struct fw_hosts_host *h = t->dirty;

		clean(t, h);
		h->committing++;
		out[n++] = (struct fw_hosts_row){.host_id = h->id, .next_ok_ms = wall_of(gap_end(t, h), now),
			.cool_until_ms = wall_of(h->cool_ms, now), .pace_ms = h->pace_ms};
	}
	return n;
}

void fw_hosts_rows_done(struct fw_hosts *t, const struct fw_hosts_row *row, size_t n, bool stored)
{
	for (size_t i = 0; i < n; i++) {
		struct fw_hosts_host *h = host_find(t, row[i].host_id);

		if (!h || !h->committing) /* the shard was dropped meanwhile */
			continue;
		h->committing--;
		if (!stored)
			dirty(t, h);
		place(t, h);
	}
}
