/* SPDX-License-Identifier: ISC */
/*
 * Stage 1: what is due soon, from the store into the due set, shard by shard.
 *
 * When a shard is read: after it was taken, and when its version has risen, at once; else shortly
 * before the time until which it was read is over. How far ahead it is read depends on what that
 * brings: as far as some dozens of feeds. So reads cost about a row's scan for each visit times the
 * feeds of a shard over those dozens, however many feeds there are, and a shard with little in it
 * is looked at once an hour. A shard of which the due set could not take all is read again when it
 * has room for twice as much. What is due later fills no more than about half of the set.
 */
#include "base/err.h"
#include "base/str.h"
#include "engine/run/owner_parts.h"
#include "base/banned.h"

#define STEP_MS 20                        /* of reads in a step */
#define SPAN_MIN_MS (10 * FW_SECOND_MS)
#define SPAN_MAX_MS FW_HOUR_MS
#define SPAN_FEW 16                       /* feeds due ahead: with fewer, read further */
#define SPAN_MANY 64
#define SPAN_EARLY_MS (2 * FW_SECOND_MS)  /* before the span ends it is read again */
#define READ_SHARE 20                     /* of the time one part in so many, at most, reads a shard again */

struct reading {
	struct owner *o;
	int shard;
	int64_t until_ms;
	struct fw_hosts_now now;
};

static int on_host(void *ctx, const struct store_host *host)
{
	const struct reading *r = ctx;
	struct fw_hosts_row row = {host->id, host->next_ok_ms, host->cool_until_ms, host->pace_ms};
	int rc = fw_hosts_row_put(owner_hosts_lock(r->o), (uint32_t)r->shard, &row, r->now);

	owner_hosts_unlock(r->o);
	return rc;
}

static int on_due(void *ctx, const struct store_due *due)
{
	const struct reading *r = ctx;
	struct claim *c = claim_find(r->o, due->feed_id);

	due_set_learn(r->o->due, due->host_id, due->expect_us);
	if (!c)
		return due->due_at_ms <= r->until_ms ? due_read_add(&r->o->read, due) : 0;
	if (due->due_at_ms != c->was_due_ms) /* from outside, since it was claimed */
		c->again_ms = due->due_at_ms;
	return 0;
}

/* It is in the set now. When to look again, and how far ahead. */
static void read_again(struct owner *o, struct owner_shard *s, size_t ahead, int64_t took_ms, struct fw_hosts_now now)
{
	int64_t span_ms;

	o->unread -= s->unread;
	s->unread = s->changed = false;
	shard_cut(o, s, o->read.cut);
	s->again_mono_ms = o->unread ? now.mono_ms : now.mono_ms + READ_SHARE * took_ms;
	if (o->rules.once) {
		s->look_mono_ms = INT64_MAX;
		return;
	}
	span_ms = FW_MAX(s->until_ms - now.wall_ms, SPAN_MIN_MS);
	s->look_mono_ms = now.mono_ms + FW_MAX(span_ms - SPAN_EARLY_MS, READ_SHARE * took_ms);
	if (s->cut || ahead > SPAN_MANY)
		s->span_ms = FW_MAX(s->span_ms / 2, SPAN_MIN_MS);
	else if (ahead < SPAN_FEW)
		s->span_ms = FW_MIN(s->span_ms * 2, SPAN_MAX_MS);
}

static int shard_read(struct owner *o, int shard, struct fw_err *err)
{
	struct owner_shard *s = &o->shard[shard];
	struct reading r = {.o = o, .shard = shard, .now = owner_now(o)};
	struct store_due_query q = {.shard = shard, .due = on_due, .host = s->changed ? on_host : NULL, .ctx = &r};
	size_t ahead = 0;
	int rc;

	if (!s->span_ms)
		/* not all of them are read again at once */
		s->span_ms = SPAN_MIN_MS + SPAN_MIN_MS * shard / STORE_SHARDS;
	if (s->changed)
		claims_recall(o, shard); /* what has not begun begins as it is now */
	if (o->rules.once)
		r.until_ms = o->rules.due_before_ms;
	else /* what is due later leaves room for what is late elsewhere */
		r.until_ms = r.now.wall_ms +
			(due_set_n(o->due) - due_set_waiting(o->due) < o->rules.due_max / 2 ? s->span_ms : 0);
	/* of a new shard all are seen, to learn which hosts are slow */
	q.until_ms = s->unread && o->rules.slow_us && !o->rules.once ? INT64_MAX : r.until_ms;
	o->read.n = 0;
	o->read.cut = false;
	o->read.room = due_set_room(o->due, shard, o->held, o->unread - s->unread);
	rc = o->st->is->due(o->st, &q, err);
	if (rc)
		return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
	due_read_end(&o->read);
	due_set_clear(o->due, shard);
	s->until_ms = r.until_ms;
	for (size_t i = 0; i < o->read.n; i++) {
		ahead += o->read.row[i].due_at_ms > r.now.wall_ms;
		rc = due_set_put(o->due, &o->read.row[i], r.now);
		if (rc == FW_ENOMEM)
			return fw_no_memory(err); /* it is still to be read */
		o->read.cut = o->read.cut || rc;
	}
	o->counts.reads++;
	o->counts.rows += o->read.n;
	read_again(o, s, ahead, o->clock(o->ctx) - r.now.mono_ms, r.now);
	if (o->read.cap > SPAN_MANY * SPAN_FEW)
		due_read_finish(&o->read);
	return 0;
}

/* Is there room for twice as much as it has? */
static bool has_room(const struct owner *o, int shard)
{
	size_t some = FW_MIN((size_t)SPAN_FEW, o->rules.due_max / 16 + 1);

	return !o->unread && due_set_room(o->due, shard, o->held, 0) >= 2 * due_set_shard_n(o->due, shard) + some;
}

static bool is_to_read(const struct owner *o, int shard, int64_t mono_ms)
{
	const struct owner_shard *s = &o->shard[shard];

	if (s->state != SHARD_HELD)
		return false;
	return s->unread || s->changed || mono_ms >= s->look_mono_ms ||
		(s->cut && mono_ms >= s->again_mono_ms && has_room(o, shard));
}

int reads_do(struct owner *o, int64_t *next_ms, struct fw_err *err)
{
	int64_t began_ms = o->clock(o->ctx), now_ms = began_ms;
	int from = o->look_at;

	*next_ms = INT64_MAX;
	for (int i = 0; i < 2 * STORE_SHARDS; i++) {
		int shard = i < STORE_SHARDS ? i : (from + i) % STORE_SHARDS;
		const struct owner_shard *s = &o->shard[shard];
		int rc;

		if (!is_to_read(o, shard, now_ms) || (i < STORE_SHARDS && (!s->changed || s->unread)))
			continue;
		rc = shard_read(o, shard, err);
		if (rc)
			return rc;
		now_ms = o->clock(o->ctx);
		if (i >= STORE_SHARDS)
			o->look_at = (shard + 1) % STORE_SHARDS;
		if (now_ms - began_ms >= STEP_MS) {
			o->read_all = false;
			*next_ms = now_ms;
			return 0;
		}
	}
	o->read_all = true;
	for (int i = 0; i < STORE_SHARDS; i++) {
		if (o->shard[i].state == SHARD_HELD)
			*next_ms = FW_MIN(*next_ms, o->shard[i].look_mono_ms);
		if (o->shard[i].state == SHARD_HELD && o->shard[i].cut)
			*next_ms = FW_MIN(*next_ms, FW_MAX(o->shard[i].again_mono_ms, now_ms + FW_SECOND_MS));
	}
	return 0;
}
