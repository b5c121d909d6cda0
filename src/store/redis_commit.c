/* SPDX-License-Identifier: ISC */
/*
 * Outcomes: one script for the whole batch (for each shard, if there are several), see redis/commit.lua; with entries, one transaction
 * of that script and plain commands, see redis_news.c.
 *
 * What can be made here is made here, for the server has one thread: the feeds' values, the visits' lines, who gets in line where. That
 * takes knowing what was lent (redis_leases.c). What is remembered may not hold any more: then nothing is written, and it is looked for.
 *
 * A batch of visits is named by the fence and the feed of its first one, which no other batch can have.
 */
#include <stdlib.h>

#include "store/redis_commit.h"

/* ---- the script's arguments ----------------------------------------------------------------------------------------------------- */

#define GROUPS_KEPT 31u /* those that are values of their own */
#define ARGS_FIXED 9

/* How many words an extra has. */
static size_t extra_argc(const struct rd_plan *p)
{
	size_t n = 3;

	for (unsigned bit = 1; bit <= FW_GROUP_REDIRECT; bit *= 2)
		n += (p->o->groups & bit) != 0;
	return n + (p->o->groups & (FW_GROUP_URL | FW_GROUP_HOST) ? 2 : 0);
}

static bool has_extra(const struct rd_plan *p)
{
	const struct fw_outcome *o = p->o;

	return o->visit.kind == FW_VISIT_PUSHED || p->loan->status || p->loan->fail_n || p->loan->host.p || o->feed->status || o->feed->fail_n || o->host_cooldown_ms ||
		o->groups;
}

static int by_fence(const void *a, const void *b)
{
	const struct rd_plan *x = *(struct rd_plan *const *)a, *y = *(struct rd_plan *const *)b;

	if (x->o->fence != y->o->fence)
		return x->o->fence < y->o->fence ? -1 : 1;
	return x < y ? -1 : x > y;
}

static int by_slot(const void *a, const void *b)
{
	const struct rd_plan *x = *(struct rd_plan *const *)a, *y = *(struct rd_plan *const *)b;

	if (x->slot != y->slot)
		return x->slot < y->slot ? -1 : 1;
	return x->o->feed->due_at_ms < y->o->feed->due_at_ms ? -1 : x->o->feed->due_at_ms > y->o->feed->due_at_ms;
}

static int64_t slot_of(int64_t due_ms)
{
	return (due_ms - (due_ms < 0 ? RD_SLOT_MS - 1 : 0)) / RD_SLOT_MS;
}

static void run_note(struct rd_part *t, int64_t run_id)
{
	for (size_t i = 0; i < t->run_n; i++) {
		if (t->run[i] == run_id)
			return;
	}
	if (run_id && t->run_n < FW_N(t->run))
		t->run[t->run_n++] = run_id;
}

/* What is stored, in the orders in which it is sent. */
static int part_sort(struct rd_part *t, struct fw_err *err)
{
	t->good_n = t->line_n = t->run_n = 0;
	t->others = t->news = false;
	t->good = fw_arena_mul(&t->r->arena, t->n + 1, sizeof(struct rd_plan *), 0);
	t->line = fw_arena_mul(&t->r->arena, t->n + 1, sizeof(struct rd_plan *), 0);
	if (!t->good || !t->line)
		return rd_no_memory(t->r, err);
	for (size_t i = 0; i < t->n; i++) {
		struct rd_plan *p = &t->plan[i];

		if (!p->loan)
			continue;
		t->good[t->good_n++] = p;
		t->others = t->others || p->foreign;
		t->news = t->news || rd_brings(p);
		run_note(t, p->o->visit.run_id);
		p->slot = slot_of(p->o->feed->due_at_ms);
		p->extra = has_extra(p);
		if (!p->extra)
			t->line[t->line_n++] = p;
	}
	if (t->good_n)
		qsort(t->good, t->good_n, sizeof(struct rd_plan *), by_fence);
	if (t->line_n)
		qsort(t->line, t->line_n, sizeof(struct rd_plan *), by_slot);
	return 0;
}

/* How many from good[i] on are under one fence; and whether that is all that its claim still holds. */
static size_t fence_run(struct rd_part *t, size_t i, bool *all)
{
	size_t n = 1;

	while (i + n < t->good_n && t->good[i + n]->o->fence == t->good[i]->o->fence)
		n++;
	*all = !t->others && rd_loans_under(&t->r->loans, t->good[i]->o->fence) == n;
	return n;
}

static size_t slot_run(const struct rd_part *t, size_t i)
{
	size_t n = 1;

	while (i + n < t->line_n && t->line[i + n]->slot == t->line[i]->slot)
		n++;
	return n;
}

static size_t part_argc(struct rd_part *t)
{
	size_t n = ARGS_FIXED + t->run_n + 4 + 3 * t->line_n;
	bool all;

	for (size_t i = 0, run; i < t->good_n; i += run) {
		run = fence_run(t, i, &all);
		n += 3 + (all ? 0 : run);
	}
	for (size_t i = 0; i < t->line_n; i += slot_run(t, i))
		n += 2;
	for (size_t i = 0; i < t->good_n; i++)
		n += t->good[i]->extra ? extra_argc(t->good[i]) : 0;
	return n;
}

static void batch_name(const struct rd_part *t, struct fw_buf *out)
{
	if (t->good_n)
		fw_buf_addf(out, "%lld-%lld", (long long)t->good[0]->o->fence, (long long)t->good[0]->o->feed_id);
}

/* The visits, a line each. */
static void lines_add(const struct rd_part *t, struct rd_conn *c)
{
	struct fw_buf *b = rd_word_begin(c);

	for (size_t i = 0; i < t->good_n; i++) {
		const struct rd_plan *p = t->good[i];

		fw_buf_addc(b, '\n');
		rd_number(b, p->o->feed_id);
		fw_buf_addstr(b, p->loan->place);
		fw_buf_addc(b, ' ');
		rd_number(b, p->o->fence);
		rd_number(b, (int64_t)p->new_n);
		rd_number(b, (int64_t)p->changed_n);
		rd_visit_pack(b, &p->o->visit);
	}
	rd_word_end(c);
}

/* Whose leases come back, and who gets in line where. */
static void places_add(struct rd_part *t, struct rd_conn *c)
{
	size_t n = 0, run;
	bool all;

	for (size_t i = 0; i < t->good_n; i += fence_run(t, i, &all))
		n++;
	rd_add_int(c, (int64_t)n);
	for (size_t i = 0; i < t->good_n; i += run) {
		run = fence_run(t, i, &all);
		rd_add_int(c, t->good[i]->o->fence);
		rd_add_int(c, all);
		rd_add_int(c, (int64_t)run);
	}
	n = 0;
	for (size_t i = 0; i < t->line_n; i += slot_run(t, i))
		n++;
	rd_add_int(c, (int64_t)n);
	for (size_t i = 0; i < t->line_n; i += run) {
		run = slot_run(t, i);
		rd_add_int(c, t->line[i]->slot);
		rd_add_int(c, (int64_t)run);
	}
	for (size_t i = 0; i < t->good_n; i += run) {
		run = fence_run(t, i, &all);
		for (size_t k = i; k < i + run && !all; k++) {
			const struct rd_loan *loan = t->good[k]->loan;

			fw_buf_addf(rd_word_begin(c), loan->host.p ? "%lld@%.*s" : "%lld%.*s", (long long)loan->feed_id, FW_STR_ARG(loan->host));
			rd_word_end(c);
		}
	}
	for (size_t i = 0; i < t->line_n; i++)
		rd_add_int(c, t->line[i]->o->feed_id);
}

/* The feed as this visit leaves it; see redis/head.lua. */
static void value_add(const struct rd_part *t, struct rd_conn *c, const struct rd_plan *p)
{
	struct fw_buf *b = rd_word_begin(c);

	batch_name(t, b);
	fw_buf_addc(b, ' ');
	rd_number(b, p->new_n ? t->now_ms : p->loan->last_new_ms);
	rd_number(b, p->loan->groups | (p->o->groups & GROUPS_KEPT));
	rd_state_pack(b, p->o->fence, p->o->feed);
	fw_buf_addstr(b, p->loan->own);
	rd_word_end(c);
}

static void extra_add(const struct rd_part *t, struct rd_conn *c, const struct rd_plan *p)
{
	const struct fw_outcome *o = p->o;
	int64_t took_us = o->feed->expect_us > 0 ? FW_MAX(o->visit.total_us, 0) : 0;
	char host[256];

	fw_buf_addf(rd_word_begin(c), "%zu %lld %.*s %lld", (size_t)(p - t->plan), (long long)o->feed_id, FW_STR_ARG(p->loan->host),
		(long long)o->feed->due_at_ms);
	rd_word_end(c);
	fw_buf_addf(rd_word_begin(c), "%d %d %u %u %lld %u %d %d %lld %lld", p->loan->status, (int)o->feed->status, p->loan->fail_n,
		o->feed->fail_n, (long long)o->host_cooldown_ms, o->groups, o->visit.kind == FW_VISIT_PUSHED, (int)o->host_mood,
		(long long)took_us, (long long)FW_MAX(o->host_wait_ms, 0));
	rd_word_end(c);
	value_add(t, c, p);
	for (size_t g = 0; g < FW_N(rd_feed_group); g++) {
		if (!(o->groups >> g & 1))
			continue;
		rd_pack(rd_word_begin(c), &rd_feed_group[g], o->feed);
		rd_word_end(c);
	}
	if (o->groups & (FW_GROUP_URL | FW_GROUP_HOST)) {
		/* a new address on another shard is refused, for a feed stays where its number says; a key is one of its own on each shard */
		bool here = rd_host(t->r, o->feed->url, host, sizeof(host)) && (rd_shard_of_host(t->r, host) == t->shard ||
			!(o->groups & FW_GROUP_URL)) && rd_feed_host(t->r, o->feed, host, sizeof(host));

		rd_add(c, o->feed->url);
		rd_add(c, here ? fw_str(host) : FW_STR(""));
	}
}

static int part_send(struct rd_part *t, const struct fw_beat *beat, struct rd_reply **answers, struct fw_err *err)
{
	struct redis *r = t->r;
	struct rd_conn *c = t->news ? rd_transaction(r, t->shard, RD_COMMIT, "commit", part_argc(t), err) :
		rd_op(r, t->shard, RD_COMMIT, "commit", part_argc(t), err);
	int rc;

	if (!c)
		return FW_ERR_CODE(err);
	rd_add_int(c, t->now_ms);
	rd_add_int(c, r->epoch[t->shard]);
	rd_add_int(c, t->others);
	rd_add_int(c, (int64_t)t->good_n);
	rd_add(c, beat ? fw_str(beat->worker) : FW_STR(""));
	if (beat)
		rd_pack(rd_word_begin(c), &rd_beat, beat);
	else
		(void)rd_word_begin(c);
	rd_word_end(c);
	batch_name(t, rd_word_begin(c));
	rd_word_end(c);
	lines_add(t, c);
	rd_add_int(c, (int64_t)t->run_n);
	for (size_t i = 0; i < t->run_n; i++)
		rd_add_int(c, t->run[i]);
	places_add(t, c);
	rd_add_int(c, (int64_t)t->line_n);
	for (size_t i = 0; i < t->line_n; i++) {
		rd_add_int(c, t->line[i]->o->feed_id);
		value_add(t, c, t->line[i]);
	}
	rd_add_int(c, (int64_t)(t->good_n - t->line_n));
	for (size_t i = 0; i < t->good_n; i++) {
		if (t->good[i]->extra)
			extra_add(t, c, t->good[i]);
	}
	if (!t->news)
		return rd_run1(r, t->shard, &r->arena, answers, "commit", err);
	rc = rd_news_send(t, err);
	if (rc) {
		rd_forget(c);
		return rc;
	}
	return rd_transact(r, t->shard, &r->arena, answers, "commit", err);
}

/* ---- the answer ------------------------------------------------------------------------------------------------------------------ */

/* It is stored; the answer names those whose new address another feed has. */
static void part_settle(struct rd_part *t, const struct rd_reply *answer)
{
	for (size_t i = 1; i < answer->n; i++) {
		int64_t at = rd_int(answer->elem[i]);

		if (at >= 0 && (size_t)at < t->n)
			t->plan[at].o->rc = FW_EINVAL;
	}
	for (size_t i = 0; i < t->good_n; i++) {
		t->good[i]->o->visit.new_n = (uint32_t)t->good[i]->new_n;
		t->good[i]->o->visit.changed_n = (uint32_t)t->good[i]->changed_n;
	}
	if (t->good_n)
		rd_leases_settle(t, rd_int(answer->elem[0]));
}

/* Once. *answer: not an array when it came to nothing, for leases or keys changed meanwhile. *done: there was nothing to do. */
static int part_try(struct rd_part *t, const struct fw_beat *beat, struct rd_reply **answer, bool *done, struct fw_err *err)
{
	int rc = rd_news_look(t, err);

	rc = rc ? rc : rd_leases_find(t, err);
	rc = rc ? rc : part_sort(t, err);
	*done = !rc && !t->good_n && !beat;
	if (rc || *done)
		return rc;
	rc = t->news ? rd_news_take(t, err) : 0;
	return rc ? rc : part_send(t, beat, answer, err);
}

static int part_commit(struct rd_part *t, int64_t now_ms, const struct fw_beat *beat, struct fw_err *err)
{
	struct rd_reply *answer = NULL;
	bool done = false;
	int rc = 0;

	for (int i = 0; !rc && !done && (!answer || answer->type != RD_ARRAY); i++) {
		if (i) {
			rd_leases_forget(t);
			t->r->epoch[t->shard] = 0;
		}
		if (i == RD_TRIES)
			return fw_err_set(err, FW_EAGAIN, "%s: leases are being taken back all the time: try again", t->r->target.name);
		t->now_ms = now_ms;
		rc = part_try(t, beat, &answer, &done, err);
	}
	if (rc) {
		rd_leases_forget(t);
		return rc;
	}
	if (!done)
		part_settle(t, answer);
	if (!done && t->news && t->shard)
		rc = rd_numbers_used(t, err) ? FW_ERR_CODE(err) : rd_run1(t->r, 0, &t->r->arena, &answer, "taking numbers for entries", err);
	for (size_t i = 0; i < t->n; i++) {
		if (t->plan[i].o->rc == RD_STORED_BEFORE)
			t->plan[i].o->rc = 0;
	}
	return rc;
}

int rd_commit(struct fw_store *st, struct fw_commit *batch, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	const struct fw_beat *beat = batch->beat;
	struct rd_part t = {.r = r};
	int rc = rd_may_write(r, err);

	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	t.plan = fw_arena_mul(&r->arena, batch->n + 1, sizeof(*t.plan), 0);
	if (!rc && !t.plan)
		rc = rd_no_memory(r, err);
	for (size_t i = 0; i < batch->n; i++) {
		batch->outcome[i].rc = 0;
		batch->outcome[i].visit.new_n = batch->outcome[i].visit.changed_n = 0;
	}
	for (t.shard = 0; t.shard < r->shard_n && !rc; t.shard++) {
		t.n = 0;
		for (size_t i = 0; i < batch->n; i++) {
			if (rd_shard_of_feed(r, batch->outcome[i].feed_id) == t.shard)
				t.plan[t.n++] = (struct rd_plan){.o = &batch->outcome[i]};
		}
		if (!t.n && (!beat || t.shard))
			continue;
		rc = part_commit(&t, batch->now_ms, t.shard ? NULL : beat, err);
	}
	if (rc || batch->n) /* a batch that failed may come again */
		r->unsure = rc != 0;
	return rc;
}
