/* SPDX-License-Identifier: ISC */
/*
 * Commits: outcomes of visits go into a batch, the batch into the store, the visits back to the
 * loop.
 *
 * A commit that fails for a passing reason is kept and retried (store_thread.c). A batch that the
 * store refuses for good is halved until the faulty outcome is found. That outcome is stored as a
 * local failure without its entries; the others are stored as they are.
 *
 * Orders that cannot be read hold up commits as an outage does: entries that are stored without
 * them would never be matched.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/orders/orders.h"
#include "engine/run/redirect_adoption.h"
#include "engine/settings.h"
#include "engine/run/store_thread.h"
#include "engine/run/trust.h"
#include "engine/websub/websub.h"

/* Give the visit back to the loop, which empties it for reuse. */
static void visit_recycle(struct store_thread *s, struct visit *v)
{
	assert(v->claim);
	assert(v->large || atomic_load(&s->ch->held_bytes) >= v->held_bytes); /* only this thread subtracts */
	v->claim = NULL;
	v->was = NULL;
	if (!v->large)
		atomic_fetch_sub(&s->ch->held_bytes, v->held_bytes);
	if (!fw_ring_put(&s->ch->recycled, v))
		abort(); /* the ring holds as many as there are visits */
}

/* Deferred: not started, and due later. */
static bool visit_is_deferred(const struct visit *v)
{
	return v->outcome.visit.kind == FW_VISIT_NONE;
}

static void visit_meter(struct store_thread *s, const struct visit *v)
{
	struct fw_meter_slot *m = s->ch->o->meter;
	const struct fw_outcome *o = &v->outcome;

	if (visit_is_deferred(v) || o->rc == FW_ENOTFOUND) /* its feed was removed meanwhile */
		return;
	if (v->page_replaced) { /* it is visited again at once under its new address, and counts then */
		meter_count(m, FW_COUNT_MOVED, 1);
		fw_info("feed %lld: %s", (long long)o->feed_id, v->fetch.err.text);
		return;
	}
	if (s->bounds && fw_plan_bounds_add(s->bounds, o->host_id, o->feed_id, o->visit.total_us)) {
		/* out of memory: the report at the end omits the bounds */
		fw_plan_bounds_destroy(s->bounds);
		s->bounds = NULL;
	}
	s->visits++;
	s->new_entries_n += o->visit.new_n;
	if (v->feed.fail_n)
		s->failures++;
	meter_visit(m, &o->visit, v->claim->item.urgent);
	meter_count(m, FW_COUNT_DEFERRED_ENTRIES, (uint64_t)v->quota.deferred_n);
}

/* ---- quotas ---------------------------------------------------------------------------------- */

static int visit_apply_quota(struct store_thread *s, struct visit *v, struct fw_err *err)
{
	int64_t had_n = v->quota.deferred_n;
	int rc = quota_apply(
		&v->quota, s->st, s->ch->config, v->was, true, v->row, &v->outcome, fw_store_now_ms(s->st), err);

	if (rc || v->quota.deferred_n == had_n)
		return rc;
	visit_drop_validators(v);
	if (!v->quota.before.deferred_n) /* log it once a day, not for each visit */
		fw_info("feed %lld: daily quota reached (feed_daily_entries_max, feed_daily_bytes_max); %lld entries "
			"wait",
			(long long)v->feed.id, (long long)v->quota.deferred_n);
	return 0;
}

/* ---- commit ---------------------------------------------------------------------------------- */

/* The lease was lost: other workers repeat these visits. */
static void commits_count_stale(struct store_thread *s, size_t n)
{
	meter_count(s->ch->o->meter, FW_COUNT_STALE, n);
	fw_info("%s after this worker's lease was lost: not stored, and repeated by other workers",
		FW_COUNT_OF((int64_t)n, "visit ended", "visits ended"));
}

static void visit_stored(struct store_thread *s, struct visit *v)
{
	quota_count(&v->quota, s->st, &v->outcome, fw_store_now_ms(s->st));
	visit_meter(s, v);
	if (visit_is_deferred(v) || v->outcome.rc == FW_ENOTFOUND)
		return;
	fw_websub_visited(s->st, s->ch->config, v->was, &v->outcome);
	adoption_finish(s->st, v, s->ch->o->meter);
}

static int commits_store_some(struct store_thread *s, size_t from, size_t n, struct fw_err *err)
{
	int64_t start_us = fw_mono_us();
	int rc;

	assert(n && from + n <= s->n);
	for (size_t i = 0; i < n; i++) {
		struct visit *v = s->batch[from + i];

		s->outcome[i] = v->outcome;
		s->claim[i] = v->claim;
		s->outcome[i].visit.store_us = v->read_us ? FW_MAX(start_us - v->read_us, INT64_C(0)) : 0;
	}
	rc = owner_commit(s->owner, s->outcome, s->claim, n, err);
	if (rc == FW_ESTALE)
		commits_count_stale(s, n);
	if (rc && rc != FW_ESTALE)
		return rc;
	meter_time(s->ch->o->meter, FW_TIMING_COMMIT, fw_mono_us() - start_us);
	for (size_t i = 0; i < n; i++) {
		s->batch[from + i]->outcome = s->outcome[i];
		if (!rc)
			visit_stored(s, s->batch[from + i]);
		owner_claim_free(s->owner, s->claim[i]);
	}
	return 0;
}

/*
 * Reduce an outcome that the store refuses for good: no entries, no learned state, a local failure.
 */
static void outcome_strip(struct visit *v, const struct fw_err *err)
{
	fw_error("feed %lld: visit refused by the store: %s; it is stored without its entries", (long long)v->feed.id,
		err->text);
	v->outcome.entries = NULL;
	v->outcome.entry_n = v->outcome.retracted_n = 0;
	v->outcome.groups = FW_GROUP_ERROR;
	v->outcome.visit.kind = FW_VISIT_LOCAL;
	v->feed.url = v->was->url;
	v->feed.last_kind = FW_VISIT_LOCAL;
	v->feed.error = fw_arena_str(&v->arena, fw_str(err->text));
	v->outcome.visit.error = v->feed.error;
}

/*
 * Commit batch[from, from + n), halving it when the store refuses it. *done: number of visits dealt
 * with, from the front.
 */
static int commits_store_range(struct store_thread *s, size_t from, size_t n, size_t *done, struct fw_err *err)
{
	int rc = commits_store_some(s, from, n, err);

	if (!rc) {
		*done += n;
		return 0;
	}
	if (fw_err_is_of_store(rc))
		return rc;
	if (n > 1) {
		rc = commits_store_range(s, from, n / 2, done, err);
		return rc ? rc : commits_store_range(s, from + n / 2, n - n / 2, done, err);
	}
	outcome_strip(s->batch[from], err);
	rc = commits_store_some(s, from, 1, err);
	if (fw_err_is_of_store(rc))
		return rc;
	if (rc) { /* refused again: the feed is fetched again after the next read of its shard */
		fw_error("feed %lld: visit without entries refused by the store: %s",
			(long long)s->batch[from]->feed.id, err->text);
		owner_claim_free(s->owner, s->batch[from]->claim);
	}
	*done += 1;
	return 0;
}

void commits_store(struct store_thread *s)
{
	struct fw_err err;
	size_t done = 0;
	int rc;

	if (!s->n)
		return;
	rc = orders_use(s->st, &err);
	for (size_t i = 0; i < s->n && !rc; i++) {
		if (visit_is_deferred(s->batch[i]))
			continue;
		adoption_check(s->st, s->batch[i]);
		trust_check_document(s->st, s->batch[i], fw_store_now_ms(s->st));
		rc = visit_apply_quota(s, s->batch[i], &err);
	}
	rc = rc ? rc : commits_store_range(s, 0, s->n, &done, &err);
	assert(done <= s->n);
	for (size_t i = 0; i < done; i++) {
		s->bytes -= s->batch[i]->held_bytes;
		visit_recycle(s, s->batch[i]);
	}
	memmove(s->batch, s->batch + done, (s->n - done) * sizeof(*s->batch));
	s->n -= done;
	if (done)
		uv_async_send(&s->ch->to_loop);
	if (rc) {
		store_outage(s, rc, &err);
	} else {
		store_outage_over(s);
		s->commit_now = false;
		s->index_more = true;
		s->step_at_ms = 0; /* committed feeds may be due again soon */
	}
}

void commits_receive(struct store_thread *s)
{
	size_t released = 0;
	struct visit *v;

	while (s->n < s->ch->visit_max && (v = fw_ring_take(&s->ch->outcomes)) != NULL) {
		assert(v->claim->state == CLAIM_ENDED);
		if (v->end == VISIT_RELEASE) {
			owner_release(s->owner, v->claim);
			visit_recycle(s, v);
			released++;
			continue;
		}
		owner_receive(s->owner, v->claim);
		if (!s->n)
			s->batch_since_ms = fw_mono_ms();
		s->batch[s->n++] = v;
		s->bytes += v->held_bytes;
		s->commit_now = s->commit_now || v->claim->item.urgent;
	}
	if (!released)
		return;
	meter_count(s->ch->o->meter, FW_COUNT_RELEASED, released);
	s->step_at_ms = 0;
	uv_async_send(&s->ch->to_loop);
}

/* No other claim is open: waiting would not fill the batch. */
static bool commits_is_last(const struct store_thread *s)
{
	struct owner_counts counts;

	owner_count(s->owner, &counts);
	return !counts.open;
}

bool commits_due(const struct store_thread *s, int64_t mono_ms)
{
	const struct fw_config *c = s->ch->config;

	if (!s->n || store_link_wait_ms(&s->link))
		return false;
	return s->commit_now || s->n >= (size_t)c->batch_visits || s->bytes >= (size_t)c->batch_bytes ||
		mono_ms - s->batch_since_ms >= c->batch_ms || atomic_load(&s->ch->loop_done) || commits_is_last(s);
}
