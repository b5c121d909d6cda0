/* SPDX-License-Identifier: ISC */
/*
 * The store thread's way back: what became of the visits goes into a batch, the batch into the store, the visits back to the loop.
 *
 * A commit that fails for a passing reason is kept and tried again (storer.c). A batch that is refused for good is halved until the
 * outcome at fault is found; that one is stored as a local failure without its entries, the others go on.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/moves.h"
#include "engine/settings.h"
#include "engine/storer.h"
#include "engine/trust.h"
#include "engine/websub.h"

/* Back to the loop thread, which empties it. */
static void visit_spent(struct storer *s, struct visit *v)
{
	if (v->lent->stop)
		course_back(v->lent->stop);
	s->extra -= v->lent->extra;
	lease_batch_unref(v->batch);
	v->batch = NULL;
	v->lease = NULL;
	v->lent = NULL;
	if (!v->large)
		atomic_fetch_sub(&s->l->held_bytes, v->held_bytes);
	s->alive--;
	if (!fw_ring_put(&s->l->spent, v))
		abort(); /* the ring holds as many as there are visits */
}

static void count(struct storer *s, const struct visit *v)
{
	struct fw_meter_slot *m = s->l->o->meter;
	const struct fw_outcome *o = &v->outcome;

	if (o->rc == FW_ESTALE) {
		meter_count(m, FW_COUNT_STALE, 1);
		fw_info("feed %lld: its lease ran out before the visit was stored; nothing was written", (long long)o->feed_id);
		return;
	}
	if (v->moved) { /* it comes again at once, under its feed's address, and counts then */
		meter_count(m, FW_COUNT_MOVED, 1);
		fw_info("feed %lld: %s", (long long)o->feed_id, v->fetch.err.text);
		return;
	}
	if (s->bounds && fw_plan_bounds_add(s->bounds, v->lease->host_id, o->feed_id, o->visit.total_us)) {
		fw_plan_bounds_free(s->bounds); /* out of memory: nothing is said of it at the end */
		s->bounds = NULL;
	}
	s->visits++;
	s->news += o->visit.new_n;
	if (v->feed.fail_n)
		s->failures++;
	meter_visit(m, &o->visit, v->lease->feed.due_at_ms <= FW_DUE_FIRST);
	meter_count(m, FW_COUNT_LEFT_ENTRIES, (uint64_t)v->quota.left_n);
	fw_websub_visited(s->st, s->l->config, &v->lease->feed, o);
}

/* What is left of the gap since its host was asked. */
static int64_t host_wait_ms(const struct visit *v, int64_t now_us)
{
	int64_t left_us = v->sent_us + v->lease->host_gap_ms * 1000 - now_us;

	return (v->lease->host_id || v->outcome.groups & FW_GROUP_HOST) && v->sent_us && left_us > 0 ? left_us / 1000 + 1 : 0;
}

/* ---- quotas ------------------------------------------------------------------------------------------- */

static int quota_keep(struct storer *s, struct visit *v, struct fw_err *err)
{
	int64_t had_n = v->quota.left_n;
	int rc = quota_take(&v->quota, s->st, s->l->config, &v->lease->feed, true, v->row, &v->outcome, fw_now_ms(), err);

	if (rc || v->quota.left_n == had_n)
		return rc;
	visit_comes_again(v);
	if (!v->quota.before.waiting_n) /* once a day, not with each visit */
		fw_info("feed %lld: it has brought all that it may a day (feed_entries_max, feed_bytes_max); waiting: %lld entries",
			(long long)v->feed.id, (long long)v->quota.left_n);
	return 0;
}

static void quota_note(struct storer *s, const struct visit *v)
{
	struct fw_err err;

	if (quota_put(&v->quota, s->st, &v->outcome, fw_now_ms(), &err))
		fw_warn("feed %lld: its entries are stored, but could not be counted: %s", (long long)v->feed.id, err.text);
}

/* ---- commit ------------------------------------------------------------------------------------------------------------------------- */

static int commit_some(struct storer *s, size_t from, size_t n, struct fw_err *err)
{
	struct fw_beat beat;
	struct fw_commit c = {.outcome = s->outcome, .n = n, .beat = &beat};
	int64_t start_us = fw_mono_us();
	int rc;

	storer_beat_fill(s, &beat);
	for (size_t i = 0; i < n; i++) {
		s->outcome[i] = s->batch[from + i]->outcome;
		s->outcome[i].rc = 0;
		s->outcome[i].host_wait_ms = host_wait_ms(s->batch[from + i], start_us);
		s->outcome[i].visit.store_us = FW_MAX(start_us - s->batch[from + i]->lent->parsed_us, INT64_C(0));
	}
	rc = fw_store_commit(s->st, &c, err);
	if (rc)
		return rc;
	meter_time(s->l->o->meter, FW_TIMING_COMMIT, fw_mono_us() - start_us);
	for (size_t i = 0; i < n; i++) {
		struct visit *v = s->batch[from + i];

		v->outcome = s->outcome[i];
		quota_note(s, v);
		count(s, v);
		moves_done(s->st, v, s->l->o->meter);
	}
	return 0;
}

/* One outcome that the store will never take as it is: without entries and learned state, as our own failure. */
static void defuse(struct visit *v, const struct fw_err *err)
{
	fw_error("feed %lld: the store refused the visit (%s); stored without its entries", (long long)v->feed.id, err->text);
	v->outcome.entries = NULL;
	v->outcome.entry_n = 0;
	v->outcome.groups = FW_GROUP_ERROR;
	v->outcome.visit.kind = FW_VISIT_LOCAL;
	v->feed.url = v->lease->feed.url;
	v->feed.last_kind = FW_VISIT_LOCAL;
	v->feed.error = fw_arena_str(&v->arena, fw_str(err->text));
	v->outcome.visit.error = v->feed.error;
}

/* Commit batch[from, from + n), halving where it is refused. *done counts from the front what is dealt with. */
static int commit_range(struct storer *s, size_t from, size_t n, size_t *done, struct fw_err *err)
{
	int rc = commit_some(s, from, n, err);

	if (!rc) {
		*done += n;
		return 0;
	}
	if (retry_is_passing(rc))
		return rc;
	if (n > 1) {
		rc = commit_range(s, from, n / 2, done, err);
		return rc ? rc : commit_range(s, from + n / 2, n - n / 2, done, err);
	}
	defuse(s->batch[from], err);
	rc = commit_some(s, from, 1, err);
	if (retry_is_passing(rc))
		return rc;
	if (rc) /* not even that: the lease will run out and the feed be lent again */
		fw_error("feed %lld: the store refused even that: %s", (long long)s->batch[from]->feed.id, err->text);
	*done += 1;
	return 0;
}

void commits_store(struct storer *s)
{
	struct fw_err err;
	size_t done = 0;
	int rc = 0;

	if (!s->n)
		return;
	for (size_t i = 0; i < s->n && !rc; i++) {
		moves_judge(s->st, s->batch[i]);
		trust_judge(s->st, s->batch[i], fw_now_ms());
		rc = quota_keep(s, s->batch[i], &err);
	}
	rc = rc ? rc : commit_range(s, 0, s->n, &done, &err);
	for (size_t i = 0; i < done; i++) {
		s->bytes -= s->batch[i]->held_bytes;
		visit_spent(s, s->batch[i]);
	}
	memmove(s->batch, s->batch + done, (s->n - done) * sizeof(*s->batch));
	s->n -= done;
	if (done) {
		s->beat_at_ms = fw_mono_ms(); /* it went with them */
		uv_async_send(&s->l->to_loop);
	}
	if (rc) {
		storer_outage(s, "storing visits", rc, &err);
	} else {
		storer_outage_over(s);
		s->hurry = s->cool = false;
		s->upkeep_more = true;
		s->next_claim_ms = 0; /* hosts that were at their budget may have room now */
	}
}

/* One that its name does not want yet. When it fails the feed is due as before, and is put off anew. */
static void put_off(struct storer *s, const struct visit *v)
{
	struct fw_feed to = {.id = v->lease->feed.id, .due_at_ms = v->feed.due_at_ms};
	struct fw_err err;
	int rc = s->st ? fw_store_feed_set(s->st, &to, FW_SET_DUE, &err) : 0;

	if (rc && rc != FW_ENOTFOUND)
		fw_warn("feed %lld: putting it off: %s", (long long)to.id, err.text);
}

void commits_give_back(struct storer *s)
{
	struct fw_err err;

	if (!s->back_n || s->cool)
		return;
	/* when it fails the leases simply run out: a matter of time, not of data */
	if (s->st && fw_store_release(s->st, s->back, s->back_n, &err))
		fw_warn("giving %zu leases back: %s; they will run out", s->back_n, err.text);
	meter_count(s->l->o->meter, FW_COUNT_RELEASED, s->back_n);
	s->back_n = 0;
	s->first_at_ms = 0; /* one that somebody asked for may be among them */
	s->next_claim_ms = 0;
}

void commits_take(struct storer *s)
{
	struct visit *v;
	bool released = false;

	while (s->n < s->l->visit_max && s->back_n < s->l->visit_max && (v = fw_ring_take(&s->l->outcomes)) != NULL) {
		if (v->end == VISIT_DEFER)
			put_off(s, v);
		if (v->end != VISIT_COMMIT) {
			s->back[s->back_n] = *v->lease; /* only ids and fences are looked at: the strings go with the arena */
			s->back[s->back_n++].feed = (struct fw_feed){.id = v->lease->feed.id};
			visit_spent(s, v);
			released = true;
			continue;
		}
		if (!s->n)
			s->batch_since_ms = fw_mono_ms();
		s->batch[s->n++] = v;
		s->bytes += v->held_bytes;
		s->hurry = s->hurry || v->lease->feed.due_at_ms <= FW_DUE_FIRST;
		s->cool = s->cool || v->outcome.host_cooldown_ms > 0;
	}
	if (released)
		uv_async_send(&s->l->to_loop);
	commits_give_back(s);
}

bool commits_due(const struct storer *s, int64_t mono_ms)
{
	const struct fw_config *c = s->l->config;

	if (!s->n || s->retry.at_ms > mono_ms)
		return false;
	return s->hurry || (s->cool && s->back_n) || s->n >= (size_t)c->batch_visits || s->bytes >= (size_t)c->batch_bytes ||
		mono_ms - s->batch_since_ms >= c->batch_ms || atomic_load(&s->l->loop_done) ||
		s->n == s->alive; /* nobody else is on the way: waiting gains nothing */
}
