/* SPDX-License-Identifier: ISC */
/*
 * Reads of the schedule: what is due soon goes from the store into the due set, shard by shard.
 *
 * New shards that are adjacent are read by one query, so that a start costs few round trips, as
 * long as the due set has room for all that is due there. Otherwise, and for every later read, a
 * shard is read by itself, with its own span and bound.
 *
 * A shard is read when it was acquired, when its version has risen, and shortly before the span of
 * its last read ends. The span adapts, so that a read brings some dozens of feeds. The cost of
 * reads per visit is thus about one row's scan times the shard's feeds divided by those dozens,
 * however many feeds there are. A shard with few feeds is read once an hour. A shard that did not
 * fit into the due set is read again when there is room for twice as much. Feeds that are due later
 * fill no more than about half of the set.
 */
#include <assert.h>

#include "base/err.h"
#include "base/str.h"
#include "engine/run/owner_parts.h"

#define STEP_MS 20 /* time for reads in one step */
#define SPAN_MIN_MS (10 * FW_SECOND_MS)
#define SPAN_MAX_MS FW_HOUR_MS
#define SPAN_FEW 16 /* feeds read ahead: with fewer, widen the span */
#define SPAN_MANY 64
#define SPAN_EARLY_MS (2 * FW_SECOND_MS) /* a shard is read again this long before its span ends */
#define TOO_MANY 1                       /* stops a listing: more is due than there is room for */
/* at most 1/20 of the time goes into reading a shard again */
#define READ_SHARE 20

struct shard_reading {
	struct owner *o;
	int first, last;
	struct fw_hosts_now now;
};

static int reads_on_host(void *ctx, const struct store_host *host)
{
	const struct shard_reading *r = ctx;
	struct fw_hosts_row row = {host->id, host->next_ok_ms, host->cooldown_until_ms, host->learned_delay_ms};
	int rc = fw_hosts_row_put(owner_hosts_lock(r->o), (uint32_t)store_host_shard(host->id), &row, r->now);

	owner_hosts_unlock(r->o);
	return rc;
}

static int reads_on_due(void *ctx, const struct store_due *due)
{
	const struct shard_reading *r = ctx;
	struct owner *o = r->o;
	struct claim *c = claim_find(o, due->feed_id);

	due_set_learn(o->due, due->host_id, due->expect_us);
	if (c && due->due_at_ms != c->was_due_ms) /* changed from outside since the claim */
		c->rescheduled_ms = due->due_at_ms;
	if (c || due->due_at_ms > o->shard[due->shard].until_ms)
		return 0;
	if (r->last > r->first && o->read.n >= o->read.room)
		return TOO_MANY;
	return due_read_add(&o->read, due);
}

/* The shard's feeds are in the set now. Set the time and the span of its next read. */
static void shard_schedule_read(
	struct owner *o, struct owner_shard *s, bool cut, size_t ahead, int64_t took_ms, struct fw_hosts_now now)
{
	int64_t span_ms;

	assert(s->state == SHARD_HELD && o->unread >= s->unread);
	o->unread -= s->unread;
	s->unread = s->changed = false;
	shard_cut(o, s, cut);
	s->reread_mono_ms = o->unread ? now.mono_ms : now.mono_ms + READ_SHARE * took_ms;
	if (o->rules.once) {
		s->next_read_mono_ms = INT64_MAX;
		return;
	}
	span_ms = FW_MAX(s->until_ms - now.wall_ms, SPAN_MIN_MS);
	s->next_read_mono_ms = now.mono_ms + FW_MAX(span_ms - SPAN_EARLY_MS, READ_SHARE * took_ms);
	if (s->cut || ahead > SPAN_MANY)
		s->span_ms = FW_MAX(s->span_ms / 2, SPAN_MIN_MS);
	else if (ahead < SPAN_FEW)
		s->span_ms = FW_MIN(s->span_ms * 2, SPAN_MAX_MS);
}

/* Set the span of this read. */
static void shard_begin_read(struct owner *o, int shard, int64_t wall_ms)
{
	struct owner_shard *s = &o->shard[shard];

	/* spread the reads of different shards */
	if (!s->span_ms)
		s->span_ms = SPAN_MIN_MS + SPAN_MIN_MS * shard / STORE_SHARDS;
	if (s->changed)
		claims_requeue_shard(o, shard); /* claims that have not started take the new state */
	if (o->rules.once)
		s->until_ms = o->rules.due_before_ms;
	else /* feeds due later leave room for late feeds of other shards */
		s->until_ms = wall_ms +
			(due_set_n(o->due) - due_set_waiting(o->due) < o->rules.due_max / 2 ? s->span_ms : 0);
}

/* Replace the due set's feeds of these shards by those just read. */
static int shards_end_read(struct owner *o, const struct shard_reading *r, struct fw_err *err)
{
	struct {
		size_t ahead;
		bool cut;
	} of[READ_WIDTH_MAX] = {{0}};
	int64_t took_ms;

	due_read_end(&o->read);
	of[0].cut = o->read.cut; /* counts for a single shard only */
	for (int i = r->first; i <= r->last; i++)
		due_set_clear(o->due, i);
	for (size_t i = 0; i < o->read.n; i++) {
		const struct store_due *due = &o->read.row[i];
		int at = due->shard - r->first, rc = due_set_put(o->due, due, r->now);

		if (rc == FW_ENOMEM)
			return fw_no_memory(err); /* the shard stays unread */
		of[at].ahead += due->due_at_ms > r->now.wall_ms;
		of[at].cut = of[at].cut || rc;
	}
	took_ms = o->clock(o->ctx) - r->now.mono_ms;
	for (int i = r->first; i <= r->last; i++)
		shard_schedule_read(o, &o->shard[i], of[i - r->first].cut, of[i - r->first].ahead, took_ms, r->now);
	if (o->read.cap > SPAN_MANY * SPAN_FEW)
		due_read_finish(&o->read);
	return 0;
}

/* Read one shard, or adjacent new ones. TOO_MANY: read fewer at once. */
static int shards_read_range(struct owner *o, int first, int last, struct fw_err *err)
{
	const struct owner_shard *s = &o->shard[first];
	size_t unread = s->unread ? (size_t)(last - first + 1) : 0;
	struct shard_reading r = {o, first, last, owner_now(o)};
	struct store_due_query q = {.shard = first,
		.last_shard = last,
		.due = reads_on_due,
		.host = s->changed ? reads_on_host : NULL,
		.ctx = &r};
	int rc;

	assert(first <= last && last < STORE_SHARDS && last - first < READ_WIDTH_MAX);
	for (int i = first; i <= last; i++) {
		shard_begin_read(o, i, r.now.wall_ms);
		q.until_ms = FW_MAX(q.until_ms, o->shard[i].until_ms);
	}
	/* list all feeds of a new shard, to learn which hosts are slow */
	if (s->unread && o->rules.slow_us && !o->rules.once)
		q.until_ms = INT64_MAX;
	o->read.n = 0;
	o->read.cut = false;
	o->read.room = due_set_room(o->due, first, o->held, o->unread - unread);
	rc = o->st->driver->due(o->st, &q, err);
	return rc == FW_ENOMEM ? fw_no_memory(err) : rc ? rc : shards_end_read(o, &r, err);
}

/* The last of the new shards that one query reads from `first` on. */
static int reads_range_end(const struct owner *o, int first)
{
	int last = first;

	while (o->shard[first].unread && last + 1 < STORE_SHARDS && last - first + 1 < o->width &&
		o->shard[last + 1].unread)
		last++;
	return last;
}

/* Read this shard; *last: the last shard that was read with it. */
static int shard_read_from(struct owner *o, int shard, int *last, struct fw_err *err)
{
	int rc;

	do {
		*last = reads_range_end(o, shard);
		rc = shards_read_range(o, shard, *last, err);
		assert(rc != TOO_MANY || *last > shard); /* a single shard is cut instead */
		if (rc == TOO_MANY)
			o->width = (*last - shard + 1) / 2;
	} while (rc == TOO_MANY);
	return rc;
}

/* Is there room for twice as many feeds as the shard has in the set? */
static bool shard_has_room(const struct owner *o, int shard)
{
	size_t some = FW_MIN((size_t)SPAN_FEW, o->rules.due_max / 16 + 1);

	return !o->unread && due_set_room(o->due, shard, o->held, 0) >= 2 * due_set_shard_n(o->due, shard) + some;
}

static bool shard_wants_read(const struct owner *o, int shard, int64_t mono_ms)
{
	const struct owner_shard *s = &o->shard[shard];

	if (s->state != SHARD_HELD)
		return false;
	return s->unread || s->changed || mono_ms >= s->next_read_mono_ms ||
		(s->cut && mono_ms >= s->reread_mono_ms && shard_has_room(o, shard));
}

int owner_reads_run(struct owner *o, int64_t *next_ms, struct fw_err *err)
{
	int64_t began_ms = o->clock(o->ctx), now_ms = began_ms;
	int from = o->next_read_shard;

	*next_ms = INT64_MAX;
	for (int i = 0; i < 2 * STORE_SHARDS; i++) {
		int shard = i < STORE_SHARDS ? i : (from + i) % STORE_SHARDS, last, rc;
		const struct owner_shard *s = &o->shard[shard];

		if (!shard_wants_read(o, shard, now_ms) || (i < STORE_SHARDS && (!s->changed || s->unread)))
			continue;
		rc = shard_read_from(o, shard, &last, err);
		if (rc)
			return rc;
		now_ms = o->clock(o->ctx);
		if (i >= STORE_SHARDS)
			o->next_read_shard = (last + 1) % STORE_SHARDS;
		if (now_ms - began_ms >= STEP_MS) {
			o->read_all = false;
			*next_ms = now_ms;
			return 0;
		}
	}
	o->read_all = true;
	for (int i = 0; i < STORE_SHARDS; i++) {
		if (o->shard[i].state == SHARD_HELD)
			*next_ms = FW_MIN(*next_ms, o->shard[i].next_read_mono_ms);
		if (o->shard[i].state == SHARD_HELD && o->shard[i].cut)
			*next_ms = FW_MIN(*next_ms, FW_MAX(o->shard[i].reread_mono_ms, now_ms + FW_SECOND_MS));
	}
	return 0;
}
