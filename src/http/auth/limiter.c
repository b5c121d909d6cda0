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
#include "http/auth/limiter.h"

struct auth_slot {
	uint64_t network; /* 0: empty */
	int64_t from_ms;  /* when its first wrong token came; the slot expires within_ms later */
	int64_t n;        /* wrong tokens since then */
};

struct auth_limiter {
	int64_t max, within_ms;
	uint64_t seed;
	_Atomic int64_t until_ms; /* from then on no network is throttled */
	pthread_mutex_t lock;     /* of the slots */
	struct auth_slot slot[AUTH_LIMITER_SETS][AUTH_LIMITER_WAYS];
};

struct auth_limiter *auth_limiter_create(int64_t max, int64_t within_ms)
{
	struct auth_limiter *limiter = calloc(1, sizeof(*limiter));

	if (!limiter)
		return NULL;
	limiter->max = max;
	limiter->within_ms = within_ms;
	if (getrandom(&limiter->seed, sizeof(limiter->seed), 0) != sizeof(limiter->seed))
		limiter->seed = (uintptr_t)limiter;
	atomic_init(&limiter->until_ms, INT64_MIN);
	pthread_mutex_init(&limiter->lock, NULL);
	return limiter;
}

void auth_limiter_destroy(struct auth_limiter *limiter)
{
	if (!limiter)
		return;
	pthread_mutex_destroy(&limiter->lock);
	free(limiter);
}

/* IPv6: the first 64 bits. All others map to values in ::/16, which no client's address has. */
uint64_t auth_limiter_network(struct fw_str address)
{
	uint64_t n = 0;

	if (address.len == 4)
		return (uint64_t)1 << 32 | (uint64_t)(unsigned char)address.p[0] << 16 |
			(uint64_t)(unsigned char)address.p[1] << 8 | (unsigned char)address.p[2];
	for (size_t i = 0; i < 8 && address.len == 16; i++)
		n = n << 8 | (unsigned char)address.p[i];
	return n ? n : address.len ? 2 : 1; /* 2: ::1 and the rest of ::/64 */
}

static bool auth_slot_is_expired(const struct auth_limiter *limiter, const struct auth_slot *s, int64_t now_ms)
{
	return !s->network || now_ms - s->from_ms >= limiter->within_ms;
}

static struct auth_slot *auth_slot_set(struct auth_limiter *limiter, uint64_t network)
{
	return limiter->slot[fw_hash64_seed(&network, sizeof(network), limiter->seed) % AUTH_LIMITER_SETS];
}

static struct auth_slot *auth_slot_find(struct auth_slot *set, uint64_t network)
{
	for (size_t i = 0; i < AUTH_LIMITER_WAYS; i++) {
		if (set[i].network == network)
			return &set[i];
	}
	return NULL;
}

/* The slot that a new network replaces. */
static struct auth_slot *auth_slot_evict(const struct auth_limiter *limiter, struct auth_slot *set, int64_t now_ms)
{
	struct auth_slot *s = &set[0];

	for (size_t i = 0; i < AUTH_LIMITER_WAYS; i++) {
		if (auth_slot_is_expired(limiter, &set[i], now_ms))
			return &set[i];
		if (set[i].n < s->n || (set[i].n == s->n && set[i].from_ms < s->from_ms))
			s = &set[i];
	}
	return s;
}

int64_t auth_limiter_wait_ms(struct auth_limiter *limiter, uint64_t network, int64_t now_ms)
{
	const struct auth_slot *s;
	int64_t ms = 0;

	if (now_ms >= atomic_load_explicit(&limiter->until_ms, memory_order_relaxed))
		return 0;
	pthread_mutex_lock(&limiter->lock);
	s = auth_slot_find(auth_slot_set(limiter, network), network);
	if (s && s->n >= limiter->max && !auth_slot_is_expired(limiter, s, now_ms))
		ms = s->from_ms + limiter->within_ms - now_ms;
	pthread_mutex_unlock(&limiter->lock);
	return ms;
}

bool auth_limiter_fail(struct auth_limiter *limiter, uint64_t network, int64_t now_ms)
{
	struct auth_slot *set, *s;
	bool last;

	if (!limiter->max)
		return false;
	pthread_mutex_lock(&limiter->lock);
	set = auth_slot_set(limiter, network);
	s = auth_slot_find(set, network);
	if (!s || auth_slot_is_expired(limiter, s, now_ms)) {
		s = s ? s : auth_slot_evict(limiter, set, now_ms);
		*s = (struct auth_slot){.network = network, .from_ms = now_ms};
	}
	last = ++s->n == limiter->max;
	if (last && s->from_ms + limiter->within_ms > atomic_load(&limiter->until_ms))
		atomic_store(&limiter->until_ms, s->from_ms + limiter->within_ms);
	pthread_mutex_unlock(&limiter->lock);
	return last;
}
