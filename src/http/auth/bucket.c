/* SPDX-License-Identifier: ISC */
/*
 * Each bucket is one number: the time at which it is full again. A request moves that time forward
 * by the time in which one token is refilled. If it would then be more than within_ms ahead, the
 * bucket is empty and the request has to wait. The table is set-associative, as in limiter.c:
 * a new sender replaces the one whose bucket is fullest, because that loses least.
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/str.h"
#include "http/auth/bucket.h"

struct bucket {
	uint64_t sender;
	int64_t full_us; /* INT64_MIN: the slot is free */
};

struct buckets {
	int64_t within_us, token_us;
	pthread_mutex_t lock; /* of the slots */
	struct bucket bucket[BUCKET_SETS][BUCKET_WAYS];
};

struct buckets *buckets_create(int64_t max, int64_t within_ms)
{
	struct buckets *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->within_us = within_ms * 1000;
	b->token_us = max ? FW_MAX(b->within_us / max, INT64_C(1)) : 0;
	pthread_mutex_init(&b->lock, NULL);
	for (size_t i = 0; i < BUCKET_SETS; i++) {
		for (size_t k = 0; k < BUCKET_WAYS; k++)
			b->bucket[i][k].full_us = INT64_MIN;
	}
	return b;
}

void buckets_destroy(struct buckets *b)
{
	if (!b)
		return;
	pthread_mutex_destroy(&b->lock);
	free(b);
}

static struct bucket *bucket_find(struct buckets *b, uint64_t sender)
{
	struct bucket *set = b->bucket[fw_hash64(&sender, sizeof(sender)) % BUCKET_SETS], *fullest = set;

	for (size_t i = 0; i < BUCKET_WAYS; i++) {
		if (set[i].sender == sender && set[i].full_us != INT64_MIN)
			return &set[i];
		if (set[i].full_us < fullest->full_us)
			fullest = &set[i];
	}
	*fullest = (struct bucket){.sender = sender, .full_us = INT64_MIN};
	return fullest;
}

int64_t buckets_take(struct buckets *b, uint64_t sender, int64_t now_ms)
{
	int64_t now_us = now_ms * 1000, full_us, wait_us;
	struct bucket *s;

	if (!b->token_us)
		return 0;
	pthread_mutex_lock(&b->lock);
	s = bucket_find(b, sender);
	full_us = FW_MAX(s->full_us, now_us) + b->token_us;
	wait_us = full_us - now_us - b->within_us;
	if (wait_us <= 0)
		s->full_us = full_us;
	pthread_mutex_unlock(&b->lock);
	return wait_us > 0 ? (wait_us + 999) / 1000 : 0;
}
