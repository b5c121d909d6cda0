/* SPDX-License-Identifier: ISC */
/*
 * Two levels of heaps, as in plan.c. Each host has a heap of its waiting feeds and further
 * requests. The hosts stand in one of four heaps: HOST_READY may start something, ordered by the
 * first feed; HOST_BLOCKED has feeds and waits for a time, and so does HOST_FURTHER, whose first is
 * a further request; HOST_IDLE has none and is remembered until a time. A host whose budget is used
 * up, or whose request is not sent yet, is in no heap; an event of its requests puts it back. So a
 * host costs nothing while it cannot start anything, however many feeds it has.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/str.h"
#include "sched/hosts.h"

#define LONG_AGO (INT64_MIN / 2)

enum hosts_heap { HOST_IN_NO_HEAP, HOST_READY, HOST_BLOCKED, HOST_FURTHER, HOST_IDLE };

struct fw_hosts_host {
	struct fw_heap_node node;
	struct fw_heap items;
	enum hosts_heap where;
	uint32_t shard;
	/* HOST_READY: copies of the first item's, as are order and feed_id */
	bool further, urgent;
	int64_t order, feed_id;
	int64_t free_ms; /* in the other heaps: when to place the host again */
	int64_t id;
	/* last permission or sending, or when a former owner may have sent */
	int64_t last_ms;
	int64_t row_ok_ms; /* next_ok_ms of its row */
	int64_t cooldown_ms;
	int64_t learned_delay_ms;
	size_t waiting; /* feeds, without further requests */
	uint32_t in_flight, unsent;
	uint32_t committing; /* rows in commits that have not ended */
	bool is_dirty;
	struct fw_hosts_host *next, *prev; /* the hosts of its shard */
	struct fw_hosts_host *dirty_next, *dirty_prev;
};

enum hosts_shard_state { HOSTS_SHARD_FOREIGN, HOSTS_SHARD_OWNED, HOSTS_SHARD_RELEASING };

struct hosts_shard {
	enum hosts_shard_state state;
	int64_t sent_ms; /* a former owner may have sent until then */
	size_t in_flight;
	struct fw_hosts_host *first;
};

struct fw_hosts {
	struct fw_hosts_rules rules;
	int64_t now_ms, stop_ms;
	struct fw_heap ready, blocked, further, idle;
	struct fw_map hosts;
	struct fw_hosts_host *dirty, *dirty_last; /* oldest first */
	size_t waiting;
	struct hosts_shard shard[FW_HOSTS_SHARDS];
};

/* ---- orders ---------------------------------------------------------------------------------- */

static const struct fw_hosts_item *hosts_item_of(const struct fw_heap_node *n)
{
	return FW_HEAP_OF_CONST(n, struct fw_hosts_item, node);
}

static const struct fw_hosts_host *hosts_host_of(const struct fw_heap_node *n)
{
	return FW_HEAP_OF_CONST(n, struct fw_hosts_host, node);
}

static bool hosts_item_before(const struct fw_heap_node *a, const struct fw_heap_node *b)
{
	const struct fw_hosts_item *x = hosts_item_of(a), *y = hosts_item_of(b);

	if (x->further != y->further)
		return x->further;
	if (x->urgent != y->urgent)
		return x->urgent;
	return x->order != y->order ? x->order < y->order : x->feed_id < y->feed_id;
}

/*
 * Compares copies of the first items' keys: reading the items would be a cache miss for each
 * comparison.
 */
static bool hosts_host_before(const struct fw_heap_node *a, const struct fw_heap_node *b)
{
	const struct fw_hosts_host *x = hosts_host_of(a), *y = hosts_host_of(b);

	if (x->further != y->further)
		return x->further;
	if (x->urgent != y->urgent)
		return x->urgent;
	return x->order != y->order ? x->order < y->order : x->feed_id < y->feed_id;
}

static bool hosts_free_before(const struct fw_heap_node *a, const struct fw_heap_node *b)
{
	return hosts_host_of(a)->free_ms < hosts_host_of(b)->free_ms;
}

/* ---- time ------------------------------------------------------------------------------------ */

static void hosts_clock_advance(struct fw_hosts *t, int64_t mono_ms)
{
	t->now_ms = FW_MAX(t->now_ms, mono_ms);
}

/*
 * Wall time to monotonic time, at most max_ms from now. A time in the past needs no exact result.
 */
static int64_t mono_from_wall(int64_t wall_ms, struct fw_hosts_now now, int64_t max_ms)
{
	if (wall_ms <= now.wall_ms)
		return wall_ms <= 0 ? LONG_AGO : FW_MAX(now.mono_ms - (now.wall_ms - wall_ms), LONG_AGO);
	return now.mono_ms + FW_MIN(wall_ms - now.wall_ms, max_ms);
}

static int64_t wall_from_mono(int64_t mono_ms, struct fw_hosts_now now)
{
	return mono_ms > now.mono_ms ? now.wall_ms + (mono_ms - now.mono_ms) : 0;
}

static int64_t hosts_gap_of(const struct fw_hosts *t, const struct fw_hosts_host *h)
{
	return FW_MAX(t->rules.gap_ms, h->learned_delay_ms);
}

/* The gap is over from this time on. */
static int64_t host_gap_end_ms(const struct fw_hosts *t, const struct fw_hosts_host *h)
{
	return FW_MAX(h->last_ms + hosts_gap_of(t, h), h->row_ok_ms);
}

static int64_t host_further_at_ms(const struct fw_hosts *t, const struct fw_hosts_host *h)
{
	return h->last_ms + FW_MAX(t->rules.gap_ms, FW_MIN(h->learned_delay_ms, FW_HOSTS_FURTHER_MAX_MS));
}

static int64_t host_free_at_ms(const struct fw_hosts *t, const struct fw_hosts_host *h)
{
	return FW_MAX(host_gap_end_ms(t, h), h->cooldown_ms);
}

/* ---- hosts ----------------------------------------------------------------------------------- */

static struct fw_str host_id_key(const int64_t *id)
{
	return (struct fw_str){(const char *)id, sizeof(*id)};
}

static struct fw_hosts_host *hosts_find(const struct fw_hosts *t, int64_t id)
{
	return fw_map_get(&t->hosts, host_id_key(&id));
}

static struct fw_hosts_host *hosts_find_or_add(struct fw_hosts *t, uint32_t shard, int64_t id)
{
	struct fw_hosts_host *h = hosts_find(t, id);
	struct hosts_shard *s = &t->shard[shard];
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
	h->row_ok_ms = h->cooldown_ms = LONG_AGO;
	fw_heap_init(&h->items, hosts_item_before);
	fw_map_put(&t->hosts, host_id_key(&h->id), h, &rc);
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

static void hosts_unplace(struct fw_hosts *t, struct fw_hosts_host *h)
{
	struct fw_heap *const heap[] = {NULL, &t->ready, &t->blocked, &t->further, &t->idle};

	if (h->where != HOST_IN_NO_HEAP)
		fw_heap_remove(heap[h->where], &h->node);
	h->where = HOST_IN_NO_HEAP;
}

static void host_clear_dirty(struct fw_hosts *t, struct fw_hosts_host *h)
{
	if (!h->is_dirty)
		return;
	*(h->dirty_prev ? &h->dirty_prev->dirty_next : &t->dirty) = h->dirty_next;
	*(h->dirty_next ? &h->dirty_next->dirty_prev : &t->dirty_last) = h->dirty_prev;
	h->dirty_next = h->dirty_prev = NULL;
	h->is_dirty = false;
}

static void host_mark_dirty(struct fw_hosts *t, struct fw_hosts_host *h)
{
	if (h->is_dirty)
		return;
	h->is_dirty = true;
	h->dirty_prev = t->dirty_last;
	*(t->dirty_last ? &t->dirty_last->dirty_next : &t->dirty) = h;
	t->dirty_last = h;
}

/* A request of a shard that is given up moves the gap; the row tells the successor. */
static void host_mark_gap_dirty(struct fw_hosts *t, struct fw_hosts_host *h)
{
	if (t->shard[h->shard].state == HOSTS_SHARD_RELEASING && host_gap_end_ms(t, h) > t->now_ms)
		host_mark_dirty(t, h);
}

static void hosts_host_free(struct fw_hosts *t, struct fw_hosts_host *h)
{
	assert(!h->waiting && !h->in_flight);
	hosts_unplace(t, h);
	host_clear_dirty(t, h);
	*(h->prev ? &h->prev->next : &t->shard[h->shard].first) = h->next;
	if (h->next)
		h->next->prev = h->prev;
	fw_map_del(&t->hosts, host_id_key(&h->id));
	free(h);
}

/* May it not start its first item, whatever the time? A further request has its budget already. */
static bool host_is_at_limit(const struct fw_hosts *t, const struct fw_hosts_host *h, const struct fw_hosts_item *first)
{
	return (!first->further && t->rules.host_concurrency && h->in_flight >= t->rules.host_concurrency) ||
		(h->unsent && hosts_gap_of(t, h) > 0);
}

static void hosts_put_into(struct fw_heap *heap, enum hosts_heap where, struct fw_hosts_host *h)
{
	h->where = where;
	fw_heap_put(heap, &h->node);
}

static void host_place_waiting(struct fw_hosts *t, struct fw_hosts_host *h, const struct fw_hosts_item *first)
{
	if (host_is_at_limit(t, h, first))
		return;
	h->free_ms = first->further ? host_further_at_ms(t, h) : host_free_at_ms(t, h);
	if (h->free_ms > t->now_ms) {
		hosts_put_into(
			first->further ? &t->further : &t->blocked, first->further ? HOST_FURTHER : HOST_BLOCKED, h);
		return;
	}
	h->further = first->further;
	h->urgent = first->urgent;
	h->order = first->order;
	h->feed_id = first->feed_id;
	hosts_put_into(&t->ready, HOST_READY, h);
}

/*
 * Put the host into the heap where it belongs now. Free it when nothing about it has to be
 * remembered.
 */
static void hosts_place(struct fw_hosts *t, struct fw_hosts_host *h)
{
	hosts_unplace(t, h);
	if (h->items.first) {
		host_place_waiting(t, h, hosts_item_of(h->items.first));
		return;
	}
	if (h->in_flight || h->is_dirty || h->committing)
		return;
	h->free_ms = host_free_at_ms(t, h);
	if (h->free_ms > t->now_ms)
		hosts_put_into(&t->idle, HOST_IDLE, h);
	else if (!h->learned_delay_ms)
		hosts_host_free(t, h);
}

/* Place the hosts whose time has come. */
static void hosts_place_due(struct fw_hosts *t, struct fw_heap *heap)
{
	while (heap->first && hosts_host_of(heap->first)->free_ms <= t->now_ms)
		hosts_place(t, FW_HEAP_OF(heap->first, struct fw_hosts_host, node));
}

struct fw_hosts *fw_hosts_create(const struct fw_hosts_rules *rules)
{
	struct fw_hosts *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->rules = *rules;
	t->now_ms = LONG_AGO;
	t->stop_ms = INT64_MIN;
	fw_heap_init(&t->ready, hosts_host_before);
	fw_heap_init(&t->blocked, hosts_free_before);
	fw_heap_init(&t->further, hosts_free_before);
	fw_heap_init(&t->idle, hosts_free_before);
	fw_map_init(&t->hosts, 0x686f737473);
	return t;
}

void fw_hosts_destroy(struct fw_hosts *t)
{
	if (!t)
		return;
	fw_map_free(&t->hosts);
	free(t);
}

void fw_hosts_set_lease(struct fw_hosts *t, int64_t stop_ms)
{
	t->stop_ms = stop_ms;
}

/* ---- shards ---------------------------------------------------------------------------------- */

void fw_hosts_own(struct fw_hosts *t, uint32_t shard, int64_t sent_until_ms, struct fw_hosts_now now)
{
	struct hosts_shard *s = &t->shard[shard];

	assert(s->state != HOSTS_SHARD_OWNED);
	hosts_clock_advance(t, now.mono_ms);
	if (s->state == HOSTS_SHARD_FOREIGN) /* otherwise it was being left, and had no other owner since */
		s->sent_ms = mono_from_wall(sent_until_ms, now, FW_LEARNED_DELAY_MAX_MS);
	s->state = HOSTS_SHARD_OWNED;
}

int fw_hosts_row_put(struct fw_hosts *t, uint32_t shard, const struct fw_hosts_row *row, struct fw_hosts_now now)
{
	struct fw_hosts_host *h;

	if (t->shard[shard].state != HOSTS_SHARD_OWNED)
		return FW_ESTALE;
	h = hosts_find_or_add(t, shard, row->host_id);
	if (!h)
		return FW_ENOMEM;
	hosts_clock_advance(t, now.mono_ms);
	h->learned_delay_ms = FW_MAX(h->learned_delay_ms, FW_MIN(row->learned_delay_ms, FW_LEARNED_DELAY_MAX_MS));
	h->row_ok_ms = FW_MAX(
		h->row_ok_ms, mono_from_wall(row->next_ok_ms, now, FW_MAX(t->rules.gap_ms, FW_LEARNED_DELAY_MAX_MS)));
	h->cooldown_ms = FW_MAX(h->cooldown_ms, mono_from_wall(row->cooldown_until_ms, now, FW_HOSTS_COOLDOWN_MAX_MS));
	hosts_place(t, h);
	return 0;
}

void fw_hosts_release(struct fw_hosts *t, uint32_t shard)
{
	struct hosts_shard *s = &t->shard[shard];

	assert(s->state == HOSTS_SHARD_OWNED);
	s->state = HOSTS_SHARD_RELEASING;
	for (struct fw_hosts_host *h = s->first, *next; h; h = next) {
		next = h->next;
		assert(!h->waiting);
		host_mark_gap_dirty(t, h);
		hosts_place(t, h);
	}
}

int64_t fw_hosts_sent_until(const struct fw_hosts *t, uint32_t shard, struct fw_hosts_now now)
{
	int64_t sent_ms = t->shard[shard].sent_ms;

	return sent_ms + t->rules.gap_ms > now.mono_ms ? now.wall_ms + (sent_ms - now.mono_ms) : 0;
}

void fw_hosts_drop(struct fw_hosts *t, uint32_t shard)
{
	struct hosts_shard *s = &t->shard[shard];

	assert(s->state == HOSTS_SHARD_RELEASING && !s->in_flight);
	for (struct fw_hosts_host *h = s->first, *next; h; h = next) {
		next = h->next;
		hosts_host_free(t, h);
	}
	s->state = HOSTS_SHARD_FOREIGN;
}

/* ---- feeds ----------------------------------------------------------------------------------- */

int fw_hosts_put(struct fw_hosts *t, uint32_t shard, int64_t host_id, struct fw_hosts_item *item)
{
	struct fw_hosts_host *h;

	assert(!item->of);
	if (t->shard[shard].state != HOSTS_SHARD_OWNED)
		return FW_ESTALE;
	h = hosts_find_or_add(t, shard, host_id);
	if (!h)
		return FW_ENOMEM;
	item->of = h;
	item->in_flight = item->sent = item->further = false;
	fw_heap_put(&h->items, &item->node);
	h->waiting++;
	t->waiting++;
	if (h->waiting == 1 || (h->where == HOST_READY && h->items.first == &item->node))
		hosts_place(t, h);
	return 0;
}

void fw_hosts_remove(struct fw_hosts *t, struct fw_hosts_item *item)
{
	struct fw_hosts_host *h = item->of;
	bool was_first = h->items.first == &item->node;

	assert(!item->in_flight && h->waiting && t->waiting);
	fw_heap_remove(&h->items, &item->node);
	h->waiting--;
	t->waiting--;
	item->of = NULL;
	if (was_first)
		hosts_place(t, h);
}

struct fw_hosts_item *fw_hosts_first(struct fw_hosts *t, int64_t mono_ms, int64_t *next_ms)
{
	hosts_clock_advance(t, mono_ms);
	hosts_place_due(t, &t->idle);
	hosts_place_due(t, &t->blocked);
	hosts_place_due(t, &t->further);
	*next_ms = INT64_MAX;
	if (t->now_ms >= t->stop_ms)
		return NULL;
	if (t->further.first)
		*next_ms = hosts_host_of(t->further.first)->free_ms;
	if (t->ready.first)
		return FW_HEAP_OF(hosts_host_of(t->ready.first)->items.first, struct fw_hosts_item, node);
	if (t->blocked.first)
		*next_ms = FW_MIN(*next_ms, hosts_host_of(t->blocked.first)->free_ms);
	return NULL;
}

struct fw_hosts_item *fw_hosts_start(struct fw_hosts *t, int64_t mono_ms, int64_t *next_ms)
{
	struct fw_hosts_item *item = fw_hosts_first(t, mono_ms, next_ms);
	struct fw_hosts_host *h = item ? item->of : NULL;

	if (!h)
		return NULL;
	hosts_unplace(t, h);
	fw_heap_take(&h->items);
	if (item->further) {
		item->further = item->sent = false;
	} else {
		assert(h->waiting && t->waiting);
		h->waiting--;
		t->waiting--;
		item->in_flight = true;
		h->in_flight++;
		t->shard[h->shard].in_flight++;
	}
	h->unsent++;
	h->last_ms = FW_MAX(h->last_ms, t->now_ms);
	hosts_place(t, h);
	return item;
}

bool fw_hosts_may_send(struct fw_hosts *t, const struct fw_hosts_item *item, int64_t mono_ms)
{
	assert(item->in_flight && !item->further);
	hosts_clock_advance(t, mono_ms);
	return t->now_ms < t->stop_ms && item->of->cooldown_ms <= t->now_ms;
}

void fw_hosts_sent(struct fw_hosts *t, struct fw_hosts_item *item, int64_t mono_ms)
{
	struct fw_hosts_host *h = item->of;

	assert(item->in_flight && !item->sent && h->unsent);
	hosts_clock_advance(t, mono_ms);
	h->unsent--;
	item->sent = true;
	h->last_ms = FW_MAX(h->last_ms, t->now_ms);
	hosts_place(t, h);
}

void fw_hosts_further(struct fw_hosts *t, struct fw_hosts_item *item, int64_t mono_ms)
{
	struct fw_hosts_host *h = item->of;

	assert(item->in_flight && item->sent && !item->further);
	hosts_clock_advance(t, mono_ms);
	item->further = true;
	fw_heap_put(&h->items, &item->node);
	hosts_place(t, h);
}

void fw_hosts_done(struct fw_hosts *t, struct fw_hosts_item *item, enum fw_host_health health,
	int64_t cooldown_until_ms, struct fw_hosts_now now)
{
	struct fw_hosts_host *h = item->of;
	int64_t learned_delay_ms = fw_store_learned_delay(h->learned_delay_ms, health),
		cooldown_ms = mono_from_wall(cooldown_until_ms, now, FW_HOSTS_COOLDOWN_MAX_MS);

	assert(item->in_flight && h->in_flight && (item->sent || h->unsent));
	hosts_clock_advance(t, now.mono_ms);
	if (item->further)
		fw_heap_remove(&h->items, &item->node);
	h->in_flight--;
	h->unsent -= !item->sent;
	t->shard[h->shard].in_flight--;
	item->in_flight = item->further = false;
	item->of = NULL;
	if (learned_delay_ms != h->learned_delay_ms || (cooldown_ms > h->cooldown_ms && cooldown_ms > t->now_ms))
		host_mark_dirty(t, h);
	h->learned_delay_ms = learned_delay_ms;
	h->cooldown_ms = FW_MAX(h->cooldown_ms, cooldown_ms);
	host_mark_gap_dirty(t, h);
	hosts_place(t, h);
}

size_t fw_hosts_waiting(const struct fw_hosts *t)
{
	return t->waiting;
}

size_t fw_hosts_count(const struct fw_hosts *t)
{
	return t->hosts.n;
}

int64_t fw_hosts_free_ms(const struct fw_hosts *t, int64_t host_id)
{
	const struct fw_hosts_host *h = hosts_find(t, host_id);
	int64_t free_ms = h ? host_free_at_ms(t, h) : INT64_MIN;

	return free_ms > t->now_ms ? free_ms : INT64_MIN;
}

int64_t fw_hosts_learned_delay_ms(const struct fw_hosts *t, int64_t host_id)
{
	const struct fw_hosts_host *h = hosts_find(t, host_id);

	return h ? h->learned_delay_ms : 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

size_t fw_hosts_rows_take(struct fw_hosts *t, struct fw_hosts_row *out, size_t max, struct fw_hosts_now now)
{
	size_t n = 0;

	hosts_clock_advance(t, now.mono_ms);
	while (n < max && t->dirty) {
		struct fw_hosts_host *h = t->dirty;

		host_clear_dirty(t, h);
		h->committing++;
		out[n++] = (struct fw_hosts_row){.host_id = h->id,
			.next_ok_ms = wall_from_mono(host_gap_end_ms(t, h), now),
			.cooldown_until_ms = wall_from_mono(h->cooldown_ms, now),
			.learned_delay_ms = h->learned_delay_ms};
	}
	return n;
}

void fw_hosts_rows_done(struct fw_hosts *t, const struct fw_hosts_row *row, size_t n, bool stored)
{
	for (size_t i = 0; i < n; i++) {
		struct fw_hosts_host *h = hosts_find(t, row[i].host_id);

		if (!h || !h->committing) /* the shard was dropped meanwhile */
			continue;
		h->committing--;
		if (!stored)
			host_mark_dirty(t, h);
		hosts_place(t, h);
	}
}
