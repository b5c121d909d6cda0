/* SPDX-License-Identifier: ISC */
/*
 * A set-associative table: a seeded hash, which clients cannot predict, maps a network to a set of
 * a few slots. A new network replaces an expired slot, else the slot with the fewest wrong tokens.
 * So an attacker with thousands of networks evicts its own slots, and not those of throttled
 * networks.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/hash.h"
#include "http/guesses.h"
#include "base/banned.h"

struct slot {
	uint64_t network;    /* 0: empty */
	int64_t from_ms;     /* when its first wrong token came; the slot expires within_ms later */
	int64_t n;           /* wrong tokens since then */
};

struct guesses {
	int64_t max, within_ms;
	uint64_t seed;
	_Atomic int64_t until_ms; /* from then on no network is throttled */
	pthread_mutex_t lock;     /* of the slots */
	struct slot slot[GUESSES_SETS][GUESSES_WAYS];
};

struct guesses *guesses_create(int64_t max, int64_t within_ms)
{
	struct guesses *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->max = max;
	g->within_ms = within_ms;
	if (getrandom(&g->seed, sizeof(g->seed), 0) != sizeof(g->seed))
		g->seed = (uintptr_t)g;
	atomic_init(&g->until_ms, INT64_MIN);
	pthread_mutex_init(&g->lock, NULL);
	return g;
}

void guesses_destroy(struct guesses *g)
{
	if (!g)
		return;
	pthread_mutex_destroy(&g->lock);
	free(g);
}

/* IPv6: the first 64 bits. All others map to values in ::/16, which no client's address has. */
uint64_t guesses_network(struct fw_str address)
{
	uint64_t n = 0;

	if (address.len == 4)
		return (uint64_t)1 << 32 | (uint64_t)(unsigned char)address.p[0] << 16 | (uint64_t)(unsigned char)address.p[1] << 8 |
			(unsigned char)address.p[2];
	for (size_t i = 0; i < 8 && address.len == 16; i++)
		n = n << 8 | (unsigned char)address.p[i];
	return n ? n : address.len ? 2 : 1; /* 2: ::1 and the rest of ::/64 */
}

static bool over(const struct guesses *g, const struct slot *s, int64_t now_ms)
{
	return !s->network || now_ms - s->from_ms >= g->within_ms;
}

static struct slot *set_of(struct guesses *g, uint64_t network)
{
	return g->slot[fw_hash64_seed(&network, sizeof(network), g->seed) % GUESSES_SETS];
}

static struct slot *find(struct slot *set, uint64_t network)
{
	for (size_t i = 0; i < GUESSES_WAYS; i++) {
		if (set[i].network == network)
			return &set[i];
	}
	return NULL;
}

/* The slot that a new network replaces. */
static struct slot *least(const struct guesses *g, struct slot *set, int64_t now_ms)
{
	struct slot *s = &set[0];

	for (size_t i = 0; i < GUESSES_WAYS; i++) {
		if (over(g, &set[i], now_ms))
			return &set[i];
		if (set[i].n < s->n || (set[i].n == s->n && set[i].from_ms < s->from_ms))
			s = &set[i];
	}
	return s;
}

int64_t guesses_wait_ms(struct guesses *g, uint64_t network, int64_t now_ms)
{
	const struct slot *s;
	int64_t ms = 0;

	if (now_ms >= atomic_load_explicit(&g->until_ms, memory_order_relaxed))
		return 0;
	pthread_mutex_lock(&g->lock);
	s = find(set_of(g, network), network);
	if (s && s->n >= g->max && !over(g, s, now_ms))
		ms = s->from_ms + g->within_ms - now_ms;
	pthread_mutex_unlock(&g->lock);
	return ms;
}

bool guesses_wrong(struct guesses *g, uint64_t network, int64_t now_ms)
{
	struct slot *set, *s;
	bool last;

	if (!g->max)
		return false;
	pthread_mutex_lock(&g->lock);
	set = set_of(g, network);
	s = find(set, network);
	if (!s || over(g, s, now_ms)) {
		s = s ? s : least(g, set, now_ms);
		*s = (struct slot){.network = network, .from_ms = now_ms};
	}
	last = ++s->n == g->max;
	if (last && s->from_ms + g->within_ms > atomic_load(&g->until_ms))
		atomic_store(&g->until_ms, s->from_ms + g->within_ms);
	pthread_mutex_unlock(&g->lock);
	return last;
}
