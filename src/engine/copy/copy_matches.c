/* SPDX-License-Identifier: ISC */
/*
 * Matches of orders, which wait or are dead letters: those of the target are replaced by those of
 * the source, order by order. They are not compared at the end, because a sender at the source
 * takes them away at any time.
 */
#include <stdlib.h>

#include "base/err.h"
#include "engine/copy/copy.h"

struct matches {
	struct copy *c;
	struct fw_match at[COPY_ROWS];
	size_t n;
	int64_t *order; /* of both stores; those of both twice */
	size_t order_n, order_cap;
};

static int matches_add_order(void *ctx, int64_t order_id, int64_t pending_n, int64_t dead_n, int64_t oldest_ms)
{
	struct matches *m = ctx;
	size_t cap = m->order_cap ? 2 * m->order_cap : 64;

	(void)pending_n;
	(void)dead_n;
	(void)oldest_ms;
	if (m->order_n == m->order_cap) {
		int64_t *more = reallocarray(m->order, cap, sizeof(*more));

		if (!more)
			return FW_ENOMEM;
		m->order = more;
		m->order_cap = cap;
	}
	m->order[m->order_n++] = order_id;
	return 0;
}

static int matches_add(void *ctx, const struct fw_match *match)
{
	struct matches *m = ctx;

	m->at[m->n++] = *match;
	return 0;
}

static int matches_put(struct matches *m, bool dead)
{
	int rc, i = 0;

	do
		rc = fw_store_match_put(m->c->to, m->at, m->n, dead, m->c->err);
	while (copy_again(rc, &i));
	return rc;
}

static int matches_of_order(struct matches *m, int64_t order_id, bool dead)
{
	struct fw_match_query q = {.order_id = order_id, .dead = dead, .limit = COPY_ROWS};
	struct copy *c = m->c;
	int rc, i = 0;

	do
		rc = fw_store_match_remove(c->to, order_id, dead, NULL, 0, c->err);
	while (copy_again(rc, &i));
	do {
		m->n = 0;
		rc = rc ? rc : fw_store_match_list(c->from, &q, matches_add, m, c->err);
		rc = rc ? rc : matches_put(m, dead);
		q.after_change_id = m->n ? m->at[m->n - 1].change_id : q.after_change_id;
		copy_progress(c);
	} while (!rc && m->n == COPY_ROWS);
	return rc;
}

int copy_matches(struct copy *c)
{
	struct matches *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return fw_no_memory(c->err);
	m->c = c;
	rc = fw_store_match_summary(c->from, matches_add_order, m, c->err);
	rc = rc ? rc : fw_store_match_summary(c->to, matches_add_order, m, c->err);
	if (rc == FW_ENOMEM)
		(void)fw_no_memory(c->err);
	for (size_t i = 0; !rc && i < m->order_n; i++) {
		rc = matches_of_order(m, m->order[i], false);
		rc = rc ? rc : matches_of_order(m, m->order[i], true);
	}
	free(m->order);
	free(m);
	return rc;
}
