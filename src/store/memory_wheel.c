/* SPDX-License-Identifier: ISC */
/* Lending, in the store in memory: a claim looks at every feed. */
#include <stdlib.h>

#include "base/clock.h"
#include "store/memory.h"

bool mem_on_wheel(const struct node *f)
{
	return f->feed.status == FW_FEED_ACTIVE;
}

/* When it may be lent, its host's budget aside. */
static int64_t wake_ms(const struct node *f)
{
	return f->feed.lease_until_ms ? f->feed.lease_until_ms : FW_MAX(f->feed.due_at_ms, f->host->next_ok_ms);
}

void mem_lease_end(struct node *f)
{
	if (f->feed.lease_until_ms && !f->uncounted)
		f->host->busy_n--;
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

/* Lend one feed; false: its host has no budget. *rc is set out of memory. */
static bool lend(struct memory *m, struct node *f, const struct fw_claim_ask *ask, int64_t now, struct fw_arena *a,
	struct fw_lease *out, int *rc)
{
	struct host *h = f->host;
	char *worker;

	if ((ask->host_max && h->busy_n >= ask->host_max) || now < h->next_ok_ms)
		return false;
	worker = fw_str_dup(fw_str(ask->worker));
	out->feed = f->feed;
	if (!worker || !fw_store_feed_dup(a, &out->feed)) {
		free(worker);
		*rc = FW_ENOMEM;
		return false;
	}
	h->busy_n++;
	h->next_ok_ms = h->feed_n > 1 ? now + ask->host_gap_ms : h->next_ok_ms;
	f->worker = worker;
	f->feed.fence = ++m->fence;
	f->feed.lease_until_ms = now + ask->lease_ms;
	out->feed.fence = out->fence = f->feed.fence;
	out->feed.lease_until_ms = out->until_ms = f->feed.lease_until_ms;
	return true;
}

int mem_claim(struct fw_store *st, const struct fw_claim_ask *ask, struct fw_arena *a, struct fw_lease *out,
	struct fw_claim_got *got, struct fw_err *err)
{
	struct memory *m = mem_of(st);
	int64_t now = ask->now_ms ? ask->now_ms : fw_now_ms();
	int64_t before = ask->due_before_ms ? ask->due_before_ms : now;
	struct node **due = malloc((m->feeds.n + 1) * sizeof(struct node *));
	size_t due_n = 0;
	int rc = 0;

	if (!due)
		return mem_no_memory(err);
	for (size_t i = 0; i < m->feeds.n; i++) {
		struct node *f = m->feeds.at[i];

		if (!mem_on_wheel(f) && !f->feed.lease_until_ms)
			continue;
		if (f->feed.lease_until_ms && f->feed.lease_until_ms <= now)
			mem_lease_end(f);
		if (mem_on_wheel(f) && !f->feed.lease_until_ms && f->feed.due_at_ms <= FW_MIN(now, before))
			due[due_n++] = f;
	}
	qsort(due, due_n, sizeof(struct node *), mem_by_due);
	for (size_t i = 0; i < due_n && got->n < ask->max && !rc; i++) {
		if (lend(m, due[i], ask, now, a, &out[got->n], &rc))
			got->n++;
		else if (!rc)
			got->deferred_n++;
	}
	for (size_t i = 0; i < m->feeds.n; i++) {
		struct node *f = m->feeds.at[i];

		if (mem_on_wheel(f) && (got->next_ms == FW_NO_DATE || wake_ms(f) < got->next_ms))
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
		mem_lease_end(f);
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
			mem_lease_end(f);
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
		mem_lease_end(f);
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
