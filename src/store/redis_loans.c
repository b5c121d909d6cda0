/* SPDX-License-Identifier: ISC */
/*
 * What this connection has borrowed, by feed: enough to write an outcome without asking for the feed's value again. A value's members
 * that visits leave alone go back as they came.
 *
 * A loan may be believed as long as the shard's epoch is the one it was read at (redis/wheel.lua says what makes that rise). Loans
 * that never come back are forgotten some time after their leases.
 */
#include <stdlib.h>

#include "base/hash.h"
#include "store/redis.h"

#define CAP_MIN 64

static size_t home(const struct rd_loans *l, int64_t id)
{
	return (size_t)fw_hash64(&id, sizeof(id)) & (l->cap - 1);
}

static size_t find(const struct rd_loans *l, int64_t id)
{
	size_t i = home(l, id);

	while (l->slot[i] && l->slot[i]->feed_id != id)
		i = (i + 1) & (l->cap - 1);
	return i;
}

struct rd_loan *rd_loan_get(const struct rd_loans *l, int64_t feed_id)
{
	return l->n ? l->slot[find(l, feed_id)] : NULL;
}

/* How many loans there are under a fence. Few fences are out at a time. */
static size_t *claim_of(struct rd_loans *l, int64_t fence)
{
	for (size_t i = l->claim_n; i > 0; i--) {
		if (l->claim[i - 1].fence == fence)
			return &l->claim[i - 1].n;
	}
	return NULL;
}

size_t rd_loans_under(struct rd_loans *l, int64_t fence)
{
	const size_t *n = claim_of(l, fence);

	return n ? *n : 0;
}

static void uncount(struct rd_loans *l, int64_t fence)
{
	size_t *n = claim_of(l, fence);

	if (n && --*n == 0) {
		struct rd_loan_claim *c = (struct rd_loan_claim *)(void *)((char *)n - offsetof(struct rd_loan_claim, n));

		*c = l->claim[--l->claim_n];
	}
}

static int count(struct rd_loans *l, int64_t fence)
{
	size_t *n = claim_of(l, fence);

	if (!n) {
		struct rd_loan_claim *grown = reallocarray(l->claim, l->claim_n + 1, sizeof(*grown));

		if (!grown)
			return FW_ENOMEM;
		l->claim = grown;
		l->claim[l->claim_n] = (struct rd_loan_claim){.fence = fence};
		n = &l->claim[l->claim_n++].n;
	}
	++*n;
	return 0;
}

void rd_loan_drop(struct rd_loans *l, int64_t feed_id)
{
	size_t i, hole;

	if (!rd_loan_get(l, feed_id))
		return;
	i = hole = find(l, feed_id);
	uncount(l, l->slot[i]->fence);
	free(l->slot[i]);
	l->slot[i] = NULL;
	l->n--;
	for (;;) { /* what stands behind it moves up, where that is not before its home */
		i = (i + 1) & (l->cap - 1);
		if (!l->slot[i])
			return;
		if (((i - home(l, l->slot[i]->feed_id)) & (l->cap - 1)) < ((i - hole) & (l->cap - 1)))
			continue;
		l->slot[hole] = l->slot[i];
		l->slot[i] = NULL;
		hole = i;
	}
}

static int grow(struct rd_loans *l)
{
	struct rd_loans wide = {.cap = l->cap ? 2 * l->cap : CAP_MIN};

	wide.slot = calloc(wide.cap, sizeof(struct rd_loan *));
	if (!wide.slot)
		return FW_ENOMEM;
	for (size_t i = 0; i < l->cap; i++) {
		if (l->slot[i])
			wide.slot[find(&wide, l->slot[i]->feed_id)] = l->slot[i];
	}
	free(l->slot);
	l->slot = wide.slot;
	l->cap = wide.cap;
	return 0;
}

int rd_loan_put(struct rd_loans *l, const struct rd_loan *loan)
{
	struct rd_loan *copy;
	char *p;

	rd_loan_drop(l, loan->feed_id);
	if (2 * l->n >= l->cap && grow(l))
		return FW_ENOMEM;
	copy = malloc(sizeof(*copy) + loan->place.len + loan->own.len + loan->host.len);
	if (!copy || count(l, loan->fence)) {
		free(copy);
		return FW_ENOMEM;
	}
	*copy = *loan;
	p = (char *)(copy + 1);
	struct fw_str *const text[] = {&copy->place, &copy->own, &copy->host};
	for (size_t i = 0; i < FW_N(text); i++) {
		if (text[i]->len)
			memcpy(p, text[i]->p, text[i]->len);
		text[i]->p = text[i]->p ? p : NULL;
		p += text[i]->len;
	}
	l->slot[find(l, loan->feed_id)] = copy;
	l->n++;
	return 0;
}

void rd_loans_expire(struct rd_loans *l, int64_t now_ms)
{
	if (2 * l->n < l->cap || l->n < CAP_MIN / 2)
		return; /* only where it would grow */
	for (size_t i = 0; i < l->cap;) {
		if (l->slot[i] && l->slot[i]->until_ms < now_ms)
			rd_loan_drop(l, l->slot[i]->feed_id); /* another one may stand here now */
		else
			i++;
	}
}

void rd_loans_finish(struct rd_loans *l)
{
	for (size_t i = 0; i < l->cap; i++)
		free(l->slot[i]);
	free(l->slot);
	free(l->claim);
	*l = (struct rd_loans){0};
}
