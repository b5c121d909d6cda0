/* SPDX-License-Identifier: ISC */
/*
 * Copies a whole store into another one, of any engines. The order is: feeds, entries, the keys
 * that retention left behind, visits, pushed events, records, matches of orders, accounts. Rows
 * keep their ids and are written in order of id, in batches by size, each one transaction. So the
 * highest id in the target shows how far a copy came, and a killed copy goes on after it.
 *
 * The highest ids are read before the first feed is. Thus each entry up to them belongs to a feed
 * that is read later, even while workers write to the source. The target stays paused until all is
 * copied and compared: a worker that is started on it too early waits.
 *
 * A resumed copy first brings the older one up to date. It removes all feeds that differ from the
 * source (copy_check.c) before it copies the first of them again, because a URL may have moved from
 * one feed to another. A feed is written together with its visits; its entries follow. If the copy
 * is killed in between, the next one finds the feed missing, or without its entries, and repeats
 * it.
 */
#include <assert.h>
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/str.h"
#include "engine/copy/copy.h"

#define AGAIN_N 6 /* tries while another process holds the target */
#define AGAIN_MS 100

static int copy_no_memory(struct copy *c)
{
	return fw_err_set(c->err, FW_ENOMEM, "copy: out of memory");
}

void copy_progress(struct copy *c)
{
	c->s->elapsed_ms = fw_mono_ms() - c->started_ms;
	if (c->o->progress)
		c->o->progress(c->o->ctx, c->s);
}

/* ---- batches ------------------------------------------------------------- */

size_t copy_texts_dup(struct fw_arena *a, const struct fw_field *f, size_t n, void *row)
{
	size_t bytes = 0;

	for (size_t i = 0; i < n; i++) {
		struct fw_str s;

		if (!fw_field_is_text(&f[i]))
			continue;
		s = fw_field_str(&f[i], row);
		fw_field_str_set(&f[i], row, fw_arena_str(a, s));
		bytes += s.len;
	}
	return bytes;
}

/* 1 ends a list: the batch is full. */
static int batch_is_full(const struct copy *c, size_t n)
{
	return n == COPY_ROWS || c->bytes >= c->o->batch_bytes;
}

bool copy_again(int rc, int *i)
{
	if (rc != FW_EAGAIN || *i >= AGAIN_N)
		return false;
	(void)poll(NULL, 0, AGAIN_MS << (*i)++);
	return true;
}

/* Writes the batch. The store skips rows that it has, so a failed batch may be written again. */
static int copy_flush(struct copy *c)
{
	struct fw_load *b = &c->batch;
	int rc, i = 0;

	if (!b->feed_n && !b->entry_n && !b->key_n && !b->visit_n)
		return 0;
	do
		rc = fw_store_load(c->to, b, c->err);
	while (copy_again(rc, &i));
	if (rc)
		return rc;
	c->s->feeds += (int64_t)b->feed_n;
	c->s->entries += (int64_t)b->entry_n;
	c->s->keys += (int64_t)b->key_n;
	c->s->visits += (int64_t)b->visit_n;
	c->s->bytes += c->bytes;
	b->feed_n = b->entry_n = b->key_n = b->visit_n = 0;
	c->bytes = 0;
	fw_arena_reset(&c->arena, c->o->batch_bytes);
	copy_progress(c);
	return 0;
}

static int batch_add_feed(void *ctx, const struct fw_feed *f)
{
	struct copy *c = ctx;
	struct fw_feed *to = &c->feed[c->batch.feed_n];

	assert(c->batch.feed_n < COPY_ROWS);
	*to = *f;
	c->bytes += sizeof(*to) + copy_texts_dup(&c->arena, fw_schedule_fields, fw_schedule_field_n, to);
	c->bytes += copy_texts_dup(&c->arena, fw_feed_fields, fw_feed_field_n, to);
	if (c->arena.failed)
		return copy_no_memory(c);
	return batch_is_full(c, ++c->batch.feed_n);
}

static int batch_add_entry(void *ctx, const struct fw_entry_row *e)
{
	struct copy *c = ctx;
	struct fw_entry_row *to = &c->entry[c->batch.entry_n];

	assert(c->batch.entry_n < COPY_ROWS);
	*to = *e;
	to->feed_title = to->feed_url = FW_STR_NONE;
	c->bytes += sizeof(*to) + copy_texts_dup(&c->arena, fw_entry_fields, fw_entry_field_n, to);
	if (c->arena.failed)
		return copy_no_memory(c);
	return batch_is_full(c, ++c->batch.entry_n);
}

/* Makes room for another visit. */
static bool visits_reserve(struct copy *c)
{
	size_t cap = c->visit_cap ? c->visit_cap * 2 : COPY_ROWS;
	struct fw_visit *more;

	if (c->batch.visit_n < c->visit_cap)
		return true;
	more = reallocarray(c->visit, cap, sizeof(*more));
	if (!more)
		return false;
	c->batch.visit = c->visit = more;
	c->visit_cap = cap;
	return true;
}

static int batch_add_visit(struct copy *c, const struct fw_visit *v)
{
	struct fw_visit *to;

	if (!visits_reserve(c))
		return copy_no_memory(c);
	assert(c->batch.visit_n < c->visit_cap);
	to = &c->visit[c->batch.visit_n];
	*to = *v;
	to->feed_url = FW_STR_NONE;
	c->bytes += sizeof(*to) + copy_texts_dup(&c->arena, fw_visit_fields, fw_visit_field_n, to);
	if (c->arena.failed)
		return copy_no_memory(c);
	c->batch.visit_n++;
	return 0;
}

static int batch_on_visit(void *ctx, const struct fw_visit *v)
{
	struct copy *c = ctx;
	/* 1: newer than the start of the copy */
	int rc = v->id > c->end.last_visit_id ? 1 : batch_add_visit(c, v);

	return rc ? rc : batch_is_full(c, c->batch.visit_n);
}

static int copy_feeds(struct copy *c)
{
	struct fw_feed_query q = {.status = -1, .after_id = c->known.last_feed_id, .limit = COPY_ROWS};
	size_t n;
	int rc;

	do {
		rc = copy_list_result(fw_store_feed_list(c->from, &q, batch_add_feed, c, c->err));
		n = c->batch.feed_n;
		if (n)
			q.after_id = c->feed[n - 1].id;
		rc = rc ? rc : copy_flush(c);
	} while (!rc && n);
	return rc;
}

/* Copies all entries of the query; the last ones stay in the batch. */
static int copy_entries_of(struct copy *c, struct fw_entry_query q)
{
	size_t before, n;
	int rc;

	q.oldest_first = q.content = q.key = true;
	q.limit = COPY_ROWS;
	do {
		before = c->batch.entry_n;
		rc = copy_list_result(fw_store_entry_list(c->from, &q, batch_add_entry, c, c->err));
		n = c->batch.entry_n - before;
		if (n)
			q.after_id = c->entry[c->batch.entry_n - 1].id;
		if (!rc && batch_is_full(c, c->batch.entry_n))
			rc = copy_flush(c);
	} while (!rc && n);
	return rc;
}

static int copy_entries(struct copy *c)
{
	int rc = copy_entries_of(
		c, (struct fw_entry_query){.after_id = c->known.last_entry_id, .before_id = c->end.last_entry_id + 1});

	return rc ? rc : copy_flush(c);
}

static int copy_visits(struct copy *c)
{
	struct fw_visit_query q = {.oldest_first = true, .after_id = c->known.last_visit_id, .limit = COPY_ROWS};
	size_t n;
	int rc;

	do {
		rc = copy_list_result(fw_store_visit_list(c->from, &q, batch_on_visit, c, c->err));
		n = c->batch.visit_n;
		if (n)
			q.after_id = c->visit[n - 1].id;
		rc = rc ? rc : copy_flush(c);
	} while (!rc && n);
	return rc;
}

static int batch_add_key(void *ctx, const struct fw_entry_key *k)
{
	struct copy *c = ctx;

	if (k->entry_id)
		return 0; /* copied with its entry */
	assert(c->batch.key_n < COPY_ROWS);
	c->key[c->batch.key_n] = *k;
	c->bytes += sizeof(*k);
	/*
	 * A list cannot resume in the middle of a feed, so a full batch is written from the
	 * callback; that uses the other store.
	 */
	return batch_is_full(c, ++c->batch.key_n) ? copy_flush(c) : 0;
}

static int copy_keys(struct copy *c)
{
	int rc = 0;

	for (int64_t id = 1; !rc && id <= c->end.last_feed_id; id += COPY_FEED_RANGE)
		rc = fw_store_key_list(c->from, id, id + COPY_FEED_RANGE - 1, batch_add_key, c, c->err);
	return rc ? rc : copy_flush(c);
}

/* ---- an older copy up to date -------------------------------------------- */

static int batch_on_old_visit(void *ctx, const struct fw_visit *v)
{
	struct copy *c = ctx;

	return v->id > c->known.last_visit_id ? 0 : batch_add_visit(c, v);
}

FW_COMPARE(visit_by_id, struct fw_visit, id)

/* The visits come newest first for each feed; a load needs them in order of id. */
static int copy_flush_feeds(struct copy *c)
{
	if (c->batch.visit_n)
		qsort(c->visit, c->batch.visit_n, sizeof(*c->visit), visit_by_id);
	return copy_flush(c);
}

static int copy_update_feed(struct copy *c, int64_t id)
{
	struct fw_visit_query q = {.feed_id = id};
	struct fw_feed *f = &c->feed[c->batch.feed_n];
	int rc = fw_store_feed_find(c->from, id, FW_STR_NONE, &c->arena, f, c->err);

	assert(c->batch.feed_n < COPY_ROWS);
	if (rc)
		return rc == FW_ENOTFOUND ? 0 : rc; /* removed meanwhile */
	for (size_t i = 0; i < fw_feed_field_n; i++)
		c->bytes += fw_field_is_text(&fw_feed_fields[i]) ? fw_field_str(&fw_feed_fields[i], f).len : 0;
	c->bytes += sizeof(*f);
	c->batch.feed_n++;
	c->s->updated += id <= c->known.last_feed_id;
	rc = fw_store_visit_list(c->from, &q, batch_on_old_visit, c, c->err);
	if (!rc && (batch_is_full(c, c->batch.feed_n) || c->batch.visit_n >= COPY_ROWS))
		rc = copy_flush_feeds(c);
	return rc;
}

/*
 * Copies the feeds of a range that are missing in the target, with what they had when the older
 * copy ended.
 */
static int copy_update_range(struct copy *c, int64_t first_id)
{
	struct copy_fingerprints a, b;
	int rc = copy_fingerprints_read(c, first_id, false, &a, &b);

	for (size_t i = 0; !rc && i < a.n; i++) {
		if (!copy_fingerprint_find(&b, a.at[i].id))
			rc = copy_update_feed(c, a.at[i].id);
	}
	rc = rc ? rc : copy_flush_feeds(c);
	for (size_t i = 0; !rc && i < a.n; i++) {
		if (!copy_fingerprint_find(&b, a.at[i].id))
			rc = copy_entries_of(c,
				(struct fw_entry_query){
					.feed_id = a.at[i].id, .before_id = c->known.last_entry_id + 1});
	}
	return rc ? rc : copy_flush(c);
}

static int copy_update(struct copy *c)
{
	struct fw_store_stats left;
	int64_t last_id;
	int rc = copy_check_target(c);

	rc = rc ? rc : copy_stale_remove(c);
	rc = rc ? rc : fw_store_stats(c->to, &left, c->err);
	if (rc)
		return rc;
	c->s->feed_before = left.feed_n;
	c->s->entry_before = left.entry_n;
	c->s->visit_before = left.visit_n;
	/*
	 * up to the source's highest id: an interrupted renewal may have removed feeds above the
	 * target's
	 */
	last_id = c->known.last_entry_id || c->known.last_visit_id ? c->end.last_feed_id : c->known.last_feed_id;
	for (int64_t id = 1; !rc && id <= last_id; id += COPY_FEED_RANGE)
		rc = copy_update_range(c, id);
	return rc;
}

/* ---- the whole copy ------------------------------------------------------ */

struct target_workers {
	bool paused, worked;
};

/* A worker that started during the pause has done nothing, unless it has counted visits. */
static int target_on_heartbeat(void *ctx, const struct fw_heartbeat *b)
{
	struct target_workers *s = ctx;

	s->worked = !s->paused || b->visits > 0;
	return s->worked;
}

/* Checks that the target may be written to, and pauses it. */
static int target_check_and_pause(struct copy *c)
{
	const struct fw_store_stats *to = &c->known;
	bool empty = !to->feed_n && !to->last_feed_id && !to->last_entry_id && !to->last_visit_id, events, dead,
	     records, accounts;
	struct fw_control newest;
	struct target_workers seen = {0};
	int rc = fw_store_control_get(c->to, -1, &newest, c->err);

	rc = rc ? rc : copy_accounts_check(c, &accounts);
	rc = rc ? rc : copy_extra_any(c, COPY_EVENTS, &events);
	rc = rc ? rc : copy_extra_any(c, COPY_DEAD_LETTERS, &dead);
	rc = rc ? rc : copy_extra_any(c, COPY_RECORDS, &records);
	if (!rc && (!empty || events || dead || records || accounts) && !c->o->resume)
		return fw_err_set(c->err, FW_EINVAL,
			"the target is not empty (%s, %s%s%s%s): name an empty store, or give"
			" --continue if it holds an older or interrupted copy",
			FW_COUNT_OF((int64_t)to->feed_n, "feed", "feeds"),
			FW_COUNT_OF((int64_t)to->entry_n, "entry", "entries"), events || dead ? ", pushed events" : "",
			records ? ", access tokens or other records" : "", accounts ? ", accounts" : "");
	seen.paused = newest.paused;
	rc = rc ? rc : copy_list_result(fw_store_heartbeat_list(c->to, 0, target_on_heartbeat, &seen, c->err));
	if (!rc && !empty && seen.worked)
		return fw_err_set(c->err, FW_EINVAL,
			"workers have written to the target since it was copied, so it is no longer a copy:"
			" copy into an empty store");
	return rc || newest.paused ? rc : fw_store_control_put(c->to, FW_CONTROL_PAUSE, 0, c->err);
}

static int copy_events(struct copy *c)
{
	int rc = copy_extra(c, COPY_EVENTS, false);

	return rc ? rc : copy_extra(c, COPY_DEAD_LETTERS, false);
}

static int copy_records(struct copy *c)
{
	int rc = copy_extra(c, COPY_RECORDS, false);

	rc = rc ? rc : copy_matches(c);
	return rc ? rc : copy_accounts(c);
}

static int change_ignore(void *ctx, const struct fw_change *change)
{
	(void)ctx;
	(void)change;
	return 0;
}

/* A source of an older schema, opened for reading, has no log of changes. */
static int change_id_read(struct copy *c)
{
	struct fw_change_query q = {.after_id = INT64_MAX};
	int rc = fw_store_change_list(c->from, &q, change_ignore, NULL, c->err);

	c->change_id = rc ? 0 : q.head_id;
	return rc == FW_EVERSION ? 0 : rc;
}

/*
 * The log of changes is not copied: it starts anew, with numbers above those that readers know.
 * First of all, because a resumed copy removes feeds, and the changes get numbers too.
 */
static int copy_change_id(struct copy *c)
{
	return c->change_id ? fw_store_load(c->to, &(struct fw_load){.change_id = c->change_id}, c->err) : 0;
}

static int copy_compare(struct copy *c)
{
	int rc = copy_verify(c);

	rc = rc ? rc : copy_extra(c, COPY_EVENTS, true);
	rc = rc ? rc : copy_extra(c, COPY_DEAD_LETTERS, true);
	rc = rc ? rc : copy_extra(c, COPY_RECORDS, true);
	rc = rc ? rc : copy_accounts_compare(c);
	return rc || c->s->differing ? rc : fw_store_control_put(c->to, FW_CONTROL_RESUME, 0, c->err);
}

static const struct {
	enum fw_copy_phase phase;
	int (*run)(struct copy *c);
} COPY_STEPS[] = {
	{FW_COPY_UPDATE, copy_update},
	{FW_COPY_FEEDS, copy_feeds},
	{FW_COPY_ENTRIES, copy_entries},
	{FW_COPY_KEYS, copy_keys},
	{FW_COPY_VISITS, copy_visits},
	{FW_COPY_EVENTS, copy_events},
	{FW_COPY_RECORDS, copy_records},
	{FW_COPY_VERIFY, copy_compare},
};

static int copy_run_steps(struct copy *c)
{
	int rc = fw_store_stats(c->to, &c->known, c->err);

	rc = rc ? rc : fw_store_stats(c->from, &c->end, c->err);
	rc = rc ? rc : change_id_read(c);
	rc = rc ? rc : target_check_and_pause(c);
	rc = rc ? rc : copy_change_id(c);
	c->s->feed_total = c->end.feed_n;
	c->s->entry_total = c->end.entry_n;
	c->s->visit_total = c->end.visit_n;
	for (size_t i = 0; i < FW_N(COPY_STEPS) && !rc; i++) {
		c->s->phase = COPY_STEPS[i].phase;
		copy_progress(c);
		rc = COPY_STEPS[i].run(c);
	}
	if (rc)
		return rc;
	c->s->phase = FW_COPY_DONE;
	copy_progress(c);
	return 0;
}

int fw_copy(struct fw_store *from, struct fw_store *to, const struct fw_copy_options *o, struct fw_copy_stats *out,
	struct fw_err *err)
{
	struct copy *c = calloc(1, sizeof(*c));
	struct fw_err spare;
	int rc;

	*out = (struct fw_copy_stats){0};
	if (!c)
		return fw_err_set(err, FW_ENOMEM, "copy: out of memory");
	c->from = from;
	c->to = to;
	c->o = o;
	c->s = out;
	c->err = err ? err : &spare;
	c->started_ms = fw_mono_ms();
	c->batch = (struct fw_load){.feed = c->feed, .entry = c->entry, .key = c->key};
	fw_arena_init(&c->arena, 0);
	rc = copy_run_steps(c);
	fw_arena_finish(&c->arena);
	free(c->visit);
	free(c);
	return rc;
}
