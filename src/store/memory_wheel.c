/* SPDX-License-Identifier: ISC */
/* Lending, in the store in memory: a claim looks at every feed. */
#include <stdlib.h>

#include "base/clock.h"
#include "store/memory.h"

bool mem_on_wheel(const struct node *f)
{
	return f->feed.status == FW_FEED_ACTIVE;
}

bool mem_crowded(const struct host *h)
{
	return h->feed_n > 1;
}

/* When it may be lent, its host's budget aside. */
static int64_t wake_ms(const struct node *f)
{
	return f->feed.lease_until_ms ? f->feed.lease_until_ms : FW_MAX(f->feed.due_at_ms, f->host->budget.next_ok_ms);
}

void mem_lease_end(struct node *f, const struct fw_outcome *o, int64_t now_ms)
{
	if (f->feed.lease_until_ms && !f->uncounted)
		fw_budget_return(&f->host->budget, mem_crowded(f->host) ? o : NULL, now_ms);
	f->uncounted = false;
	f->feed.lease_until_ms = 0;
	free(f->worker);
	f->worker = NULL;
}

int mem_by_due(const void *a, const void *b)
{
	const struct node *x = *(const struct node *const *)a, *y = *(const struct node *const *)b;

	if (x->feed.due_at_ms != y->feed.due_at_ms)
		return x->feed.due_at_ms < y->feed.due_at_ms ? -1 : 1;
	return x->feed.id < y->feed.id ? -1 : x->feed.id > y->feed.id;
}

struct claim {
	struct memory *m;
	const struct fw_claim_ask *ask;
	struct fw_arena *a;
	int64_t now_ms, until_ms; /* those due till then */
	int64_t me;
};

/* Is it one that is asked for, due or not? */
static bool wanted(const struct claim *c, const struct node *f)
{
	return !c->ask->expect_max_us || f->feed.expect_us <= c->ask->expect_max_us || f->feed.due_at_ms == FW_DUE_FIRST;
}

static bool is_due(const struct claim *c, const struct node *f)
{
	return mem_on_wheel(f) && !f->feed.lease_until_ms && f->feed.due_at_ms <= c->until_ms && wanted(c, f);
}

static bool may(const struct claim *c, const struct node *f, bool ahead)
{
	const struct fw_budget *b = &f->host->budget;
	struct fw_claim_ask ask = *c->ask;

	if (!mem_crowded(f->host))
		return c->now_ms >= b->next_ok_ms;
	ask.host_ahead = ahead ? ask.host_ahead : 0;
	return fw_budget_may(b, &ask, c->me, c->now_ms);
}

static int lend(const struct claim *c, struct node *f, struct fw_lease *out)
{
	struct fw_budget *b = &f->host->budget;
	bool crowded = mem_crowded(f->host);
	char *worker;

	worker = fw_str_dup(fw_str(c->ask->worker));
	*out = (struct fw_lease){.feed = f->feed, .host_id = crowded ? f->host->id : 0, .host_gap_ms = c->ask->host_gap_ms};
	if (!worker || !fw_store_feed_dup(c->a, &out->feed)) {
		free(worker);
		return FW_ENOMEM;
	}
	if (crowded) {
		out->host_gap_ms = fw_budget_gap(b, c->ask);
		out->host_expect_us = b->expect_us;
		fw_budget_lend(b, c->ask, c->me, c->now_ms);
	} else {
		b->busy_n++;
		b->holder = c->me;
	}
	f->worker = worker;
	f->feed.fence = ++c->m->fence;
	f->feed.lease_until_ms = c->now_ms + c->ask->lease_ms;
	out->feed.fence = out->fence = f->feed.fence;
	out->feed.lease_until_ms = out->until_ms = f->feed.lease_until_ms;
	return 0;
}

/* By number in one go; else what goes ahead of its host's time may have what is left when all others had theirs. */
static int lend_all(const struct claim *c, struct node **due, size_t n, bool ahead, struct fw_lease *out, struct fw_claim_got *got)
{
	int rc = 0;

	got->deferred_n = 0;
	for (size_t i = 0; i < n && got->n < c->ask->max && !rc; i++) {
		if (due[i]->feed.lease_until_ms) /* it is lent by now */
			continue;
		if (!may(c, due[i], ahead)) {
			got->deferred_n++;
			continue;
		}
		rc = lend(c, due[i], &out[got->n]);
		got->n += !rc;
	}
	return rc;
}

/* Those that are due, in order of time or of the numbers asked for; and take back what ran out. */
static size_t due_find(const struct claim *c, struct node **due)
{
	const struct memory *m = c->m;
	size_t n = 0;

	for (size_t i = 0; i < m->feeds.n; i++) {
		struct node *f = m->feeds.at[i];

		if (f->feed.lease_until_ms && f->feed.lease_until_ms <= c->now_ms)
			mem_lease_end(f, NULL, 0);
		if (!c->ask->ids && is_due(c, f))
			due[n++] = f;
	}
	qsort(due, n, sizeof(struct node *), mem_by_due);
	for (size_t i = 0; c->ask->ids && i < c->ask->id_n; i++) {
		struct node *f = mem_node_find(m, c->ask->ids[i]);

		if (f && is_due(c, f))
			due[n++] = f;
	}
	return n;
}

static int earlier(const void *a, const void *b)
{
	const struct fw_feed *x = &((const struct fw_lease *)a)->feed, *y = &((const struct fw_lease *)b)->feed;

	if (x->due_at_ms != y->due_at_ms)
		return x->due_at_ms < y->due_at_ms ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

int mem_claim(struct fw_store *st, const struct fw_claim_ask *ask, struct fw_arena *a, struct fw_lease *out,
	struct fw_claim_got *got, struct fw_err *err)
{
	struct memory *m = mem_of(st);
	int64_t now = ask->now_ms ? ask->now_ms : fw_now_ms();
	struct claim c = {.m = m, .ask = ask, .a = a, .now_ms = now, .me = fw_budget_holder(ask->worker),
		.until_ms = ask->due_before_ms ? FW_MIN(now, ask->due_before_ms) : now};
	struct node **due = reallocarray(NULL, m->feeds.n + ask->id_n + 1, sizeof(struct node *));
	size_t due_n;
	int rc = 0;

	if (!due)
		return mem_no_memory(err);
	due_n = due_find(&c, due);
	rc = lend_all(&c, due, due_n, ask->ids != NULL, out, got);
	if (!rc && !ask->ids && ask->host_ahead && got->n < ask->max)
		rc = lend_all(&c, due, due_n, true, out, got);
	if (!ask->ids)
		qsort(out, got->n, sizeof(*out), earlier);
	for (size_t i = 0; i < m->feeds.n; i++) {
		struct node *f = m->feeds.at[i];

		if (mem_on_wheel(f) && (f->feed.lease_until_ms || wanted(&c, f)) && (got->next_ms == FW_NO_DATE || wake_ms(f) < got->next_ms))
			got->next_ms = wake_ms(f);
	}
	free(due);
	if (rc)
		mem_no_memory(err); /* what was lent so far returns by its lease */
	return rc;
}

int mem_lend(struct fw_store *st, const struct fw_lend_ask *ask, struct fw_lend_got *got, struct fw_err *err)
{
	struct memory *m = mem_of(st);
	struct node *f = mem_node_find(m, ask->feed_id);
	int64_t now = ask->now_ms ? ask->now_ms : fw_now_ms();
	char *worker;

	if (!f)
		return mem_not_found(ask->feed_id, err);
	if (f->feed.lease_until_ms && f->feed.lease_until_ms <= now)
		mem_lease_end(f, NULL, 0);
	got->status = f->feed.status;
	got->until_ms = f->feed.lease_until_ms;
	(void)fw_str_copy(got->worker, sizeof(got->worker), fw_str(f->worker));
	if (got->until_ms || !fw_feed_takes_entries(f->feed.status))
		return 0;
	worker = fw_str_dup(fw_str(ask->worker));
	if (!worker)
		return mem_no_memory(err);
	f->worker = worker;
	f->uncounted = true;
	f->feed.fence = got->fence = ++m->fence;
	f->feed.lease_until_ms = got->until_ms = now + ask->lease_ms;
	return 0;
}

int mem_release(struct fw_store *st, const struct fw_lease *lease, size_t n, struct fw_err *err)
{
	struct memory *m = mem_of(st);

	(void)err;
	for (size_t i = 0; i < n; i++) {
		struct node *f = mem_node_find(m, lease[i].feed.id);

		if (f && f->feed.lease_until_ms && f->feed.fence == lease[i].fence)
			mem_lease_end(f, NULL, 0);
	}
	return 0;
}

int mem_bury(struct fw_store *st, const char *worker, int64_t crashed_feed_id, int64_t now_ms, struct fw_err *err)
{
	struct memory *m = mem_of(st);

	(void)now_ms;
	(void)err;
	for (size_t i = 0; i < m->feeds.n; i++) {
		struct node *f = m->feeds.at[i];

		if (!f->feed.lease_until_ms || strcmp(f->worker, worker) != 0)
			continue;
		mem_lease_end(f, NULL, 0);
		if (f->feed.id != crashed_feed_id)
			continue;
		f->feed.last_kind = FW_VISIT_CRASH;
		if (++f->feed.crash_n >= FW_STORE_CRASH_MAX && mem_on_wheel(f))
			f->feed.status = FW_FEED_QUARANTINED;
	}
	return 0;
}

int mem_pending(struct fw_store *st, int64_t due_before_ms, int64_t *n, int64_t *wake, struct fw_err *err)
{
	struct memory *m = mem_of(st);

	(void)err;
	for (size_t i = 0; i < m->feeds.n; i++) {
		const struct node *f = m->feeds.at[i];

		if (!mem_on_wheel(f) || f->feed.due_at_ms > due_before_ms)
			continue;
		++*n;
		if (*wake == FW_NO_DATE || wake_ms(f) < *wake)
			*wake = wake_ms(f);
	}
	return 0;
}

int mem_due_list(struct fw_store *st, int64_t due_before_ms, size_t limit, fw_due_cb *cb, void *ctx, struct fw_err *err)
{
	const struct memory *m = mem_of(st);
	struct node **due = reallocarray(NULL, m->feeds.n + 1, sizeof(struct node *));
	size_t n = 0;
	int rc = 0;

	if (!due)
		return mem_no_memory(err);
	for (size_t i = 0; i < m->feeds.n; i++) {
		struct node *f = m->feeds.at[i];

		if (mem_on_wheel(f) && !f->feed.lease_until_ms && f->feed.due_at_ms <= due_before_ms)
			due[n++] = f;
	}
	qsort(due, n, sizeof(struct node *), mem_by_due);
	for (size_t i = 0; i < n && (!limit || i < limit) && !rc; i++) {
		const struct node *f = due[i];

		rc = cb(ctx, &(struct fw_due_row){.feed_id = f->feed.id, .host_id = mem_crowded(f->host) ? f->host->id : 0,
			.due_at_ms = f->feed.due_at_ms, .expect_us = f->feed.expect_us, .expect_dev_us = f->feed.expect_dev_us,
			.last_visit_ms = f->feed.last_visit_ms});
	}
	free(due);
	return rc;
}
