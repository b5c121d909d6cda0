/* SPDX-License-Identifier: ISC */
/*
 * A whole store into another one, of any engines: feeds, then entries, then the keys that retention left behind, then visits, each
 * in order of the numbers they keep, in batches of so many bytes that are one transaction each. So what a copy has done can be seen
 * from the highest number that is there, and a copy that was killed goes on behind it.
 *
 * How far to go is read before the first feed: an entry up to there belongs to a feed that is read later, also while workers go on
 * storing at the source. Until all is there and found to be the same, the target is paused: a worker that is started on it too
 * early waits.
 *
 * The check reads both sides once more, feed by feed: a hash over a feed's members, and one over its keys, hashes and whether
 * retention took the entry, in any order. Documents are not read again.
 */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"
#include "feedwheel/engine.h"
#include "store/fields.h"

#define BATCH_ROWS 2000
#define FEED_RANGE 500   /* numbers of feeds whose keys are looked at together */
#define AGAIN_N 6        /* tries while the target is held by another */
#define AGAIN_MS 100

struct copy {
	struct fw_store *from, *to;
	const struct fw_copy_options *o;
	struct fw_copy_stats *s;
	struct fw_store_stats end; /* of the source, when it began */
	struct fw_arena arena;     /* of the rows of one batch */
	struct fw_load batch;
	struct fw_feed feed[BATCH_ROWS];
	struct fw_entry_row entry[BATCH_ROWS];
	struct fw_entry_key key[BATCH_ROWS];
	struct fw_visit visit[BATCH_ROWS];
	size_t bytes;
	int64_t started_ms;
	struct fw_err *err;
};

static int no_memory(struct copy *c)
{
	return fw_err_set(c->err, FW_ENOMEM, "copy: out of memory");
}

static void progress(struct copy *c)
{
	c->s->elapsed_ms = fw_mono_ms() - c->started_ms;
	if (c->o->progress)
		c->o->progress(c->o->ctx, c->s);
}

/* ---- batches ---------------------------------------------------------------------------------------------------------------- */

/* Copies of the texts of a row; counts what it weighs. False out of memory. */
static bool texts_keep(struct copy *c, const struct fw_field *f, size_t n, void *row)
{
	for (size_t i = 0; i < n; i++) {
		struct fw_str s;

		if (!fw_field_is_text(&f[i]))
			continue;
		s = fw_field_str(&f[i], row);
		fw_field_str_set(&f[i], row, fw_arena_str(&c->arena, s));
		c->bytes += s.len;
	}
	return !c->arena.failed;
}

/* May another row come into the batch? 1 ends a walk. */
static int full(const struct copy *c, size_t n)
{
	return n == BATCH_ROWS || c->bytes >= c->o->batch_bytes;
}

/* Write the batch; what is there already is passed over, so a failed one may be tried again. */
static int flush(struct copy *c)
{
	struct fw_load *b = &c->batch;
	int rc;

	if (!b->feed_n && !b->entry_n && !b->key_n && !b->visit_n)
		return 0;
	rc = fw_store_load(c->to, b, c->err);
	for (int i = 0; rc == FW_EAGAIN && i < AGAIN_N; i++) {
		(void)poll(NULL, 0, AGAIN_MS << i);
		rc = fw_store_load(c->to, b, c->err);
	}
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
	progress(c);
	return 0;
}

static int feed_take(void *ctx, const struct fw_feed *f)
{
	struct copy *c = ctx;
	struct fw_feed *to = &c->feed[c->batch.feed_n];

	*to = *f;
	if (!texts_keep(c, fw_wheel_fields, fw_wheel_field_n, to) || !texts_keep(c, fw_feed_fields, fw_feed_field_n, to))
		return no_memory(c);
	c->bytes += sizeof(*to);
	return full(c, ++c->batch.feed_n);
}

static int entry_take(void *ctx, const struct fw_entry_row *e)
{
	struct copy *c = ctx;
	struct fw_entry_row *to = &c->entry[c->batch.entry_n];

	*to = *e;
	to->feed_title = to->feed_url = FW_STR_NONE;
	if (!texts_keep(c, fw_entry_fields, fw_entry_field_n, to))
		return no_memory(c);
	c->bytes += sizeof(*to);
	return full(c, ++c->batch.entry_n);
}

static int visit_take(void *ctx, const struct fw_visit *v)
{
	struct copy *c = ctx;
	struct fw_visit *to = &c->visit[c->batch.visit_n];

	if (v->id > c->end.last_visit_id)
		return 1; /* made since */
	*to = *v;
	to->feed_url = FW_STR_NONE;
	if (!texts_keep(c, fw_visit_fields, fw_visit_field_n, to))
		return no_memory(c);
	c->bytes += sizeof(*to);
	return full(c, ++c->batch.visit_n);
}

/* A walk ended because a batch was full or for want of rows: neither is an error. */
static int walked(int rc)
{
	return rc > 0 ? 0 : rc;
}

static int feeds(struct copy *c, int64_t after_id)
{
	struct fw_feed_query q = {.status = -1, .after_id = after_id, .limit = BATCH_ROWS};
	size_t n;
	int rc;

	do {
		rc = walked(fw_store_feed_list(c->from, &q, feed_take, c, c->err));
		n = c->batch.feed_n;
		if (n)
			q.after_id = c->feed[n - 1].id;
		rc = rc ? rc : flush(c);
	} while (!rc && n);
	return rc;
}

static int entries(struct copy *c, int64_t after_id)
{
	struct fw_entry_query q = {.oldest_first = true, .content = true, .key = true, .after_id = after_id,
		.before_id = c->end.last_entry_id + 1, .limit = BATCH_ROWS};
	size_t n;
	int rc;

	do {
		rc = walked(fw_store_entry_list(c->from, &q, entry_take, c, c->err));
		n = c->batch.entry_n;
		if (n)
			q.after_id = c->entry[n - 1].id;
		rc = rc ? rc : flush(c);
	} while (!rc && n);
	return rc;
}

static int visits(struct copy *c, int64_t after_id)
{
	struct fw_visit_query q = {.oldest_first = true, .after_id = after_id, .limit = BATCH_ROWS};
	size_t n;
	int rc;

	do {
		rc = walked(fw_store_visit_list(c->from, &q, visit_take, c, c->err));
		n = c->batch.visit_n;
		if (n)
			q.after_id = c->visit[n - 1].id;
		rc = rc ? rc : flush(c);
	} while (!rc && n);
	return rc;
}

static int key_take(void *ctx, const struct fw_entry_key *k)
{
	struct copy *c = ctx;

	if (k->entry_id)
		return 0; /* came with its entry */
	c->key[c->batch.key_n] = *k;
	c->bytes += sizeof(*k);
	/* a walk cannot go on in the middle of a feed, so a full batch is written from within: it is the other store that is asked */
	return full(c, ++c->batch.key_n) ? flush(c) : 0;
}

static int keys(struct copy *c)
{
	int rc = 0;

	for (int64_t id = 1; !rc && id <= c->end.last_feed_id; id += FEED_RANGE)
		rc = fw_store_key_list(c->from, id, id + FEED_RANGE - 1, key_take, c, c->err);
	return rc ? rc : flush(c);
}

/* ---- the check --------------------------------------------------------------------------------------------------------------- */

struct print { /* of one feed */
	int64_t id;
	uint64_t feed, keys;
	int64_t key_n, entry_n;
};

struct prints {
	struct print at[FEED_RANGE];
	size_t n;
	int64_t last_id; /* those above are for the next range */
};

static void fields_hash(struct fw_hasher *h, const struct fw_field *f, size_t n, const void *row)
{
	for (size_t i = 0; i < n; i++) {
		struct fw_str s;
		int64_t v;

		if (fw_field_is_text(&f[i])) {
			s = fw_field_str(&f[i], row);
			fw_hasher_add(h, s.p ? s : FW_STR("\1absent"));
		} else {
			v = fw_field_int(&f[i], row);
			fw_hasher_add(h, (struct fw_str){(const char *)&v, sizeof(v)});
		}
	}
}

static int feed_print(void *ctx, const struct fw_feed *f)
{
	struct prints *p = ctx;
	struct fw_hasher h;

	if (f->id > p->last_id)
		return 1;
	fw_hasher_init(&h);
	fields_hash(&h, fw_wheel_fields, fw_wheel_field_n, f);
	fields_hash(&h, fw_feed_fields, fw_feed_field_n, f);
	p->at[p->n++] = (struct print){.id = f->id, .feed = fw_hasher_end64(&h)};
	return p->n == FEED_RANGE;
}

static struct print *print_of(struct prints *p, int64_t id)
{
	size_t lo = 0, hi = p->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (p->at[mid].id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < p->n && p->at[lo].id == id ? &p->at[lo] : NULL;
}

static int key_print(void *ctx, const struct fw_entry_key *k)
{
	struct print *p = print_of(ctx, k->feed_id);
	unsigned char row[16 + 8 + 1];

	if (!p)
		return 0; /* subscribed since */
	memcpy(row, k->key, 16);
	memcpy(row + 16, &k->hash, 8);
	row[24] = k->entry_id != 0;
	p->keys += fw_hash64(row, sizeof(row)); /* a sum: in any order */
	p->key_n++;
	p->entry_n += k->entry_id != 0;
	return 0;
}

static int prints_read(struct copy *c, struct fw_store *st, int64_t first_id, struct prints *p)
{
	struct fw_feed_query q = {.status = -1, .after_id = first_id - 1, .limit = FEED_RANGE};
	int rc;

	*p = (struct prints){.last_id = FW_MIN(first_id + FEED_RANGE - 1, c->end.last_feed_id)};
	rc = walked(fw_store_feed_list(st, &q, feed_print, p, c->err));
	return rc || !p->n ? rc : fw_store_key_list(st, first_id, p->last_id, key_print, p, c->err);
}

FW_PRINTF(2, 3) static void differs(struct copy *c, const char *fmt, ...)
{
	char words[300];
	va_list ap;

	c->s->differing++;
	if (!c->o->differs)
		return;
	va_start(ap, fmt);
	vsnprintf(words, sizeof(words), fmt, ap);
	va_end(ap);
	c->o->differs(c->o->ctx, words);
}

static void print_compare(struct copy *c, const struct print *a, const struct print *b)
{
	if (a->key_n != b->key_n || a->entry_n != b->entry_n)
		differs(c, "feed %lld: %lld entries and %lld keys of entries gone at the source, %lld and %lld at the target",
			(long long)a->id, (long long)a->entry_n, (long long)(a->key_n - a->entry_n), (long long)b->entry_n,
			(long long)(b->key_n - b->entry_n));
	else if (a->keys != b->keys)
		differs(c, "feed %lld: as many entries, but not the same ones", (long long)a->id);
	else if (a->feed != b->feed)
		differs(c, "feed %lld: the same entries, but another state or other settings", (long long)a->id);
	else
		return;
}

/* Both in order of id. */
static void prints_compare(struct copy *c, const struct prints *a, const struct prints *b)
{
	size_t i = 0, k = 0;

	while (i < a->n || k < b->n) {
		if (k == b->n || (i < a->n && a->at[i].id < b->at[k].id))
			differs(c, "feed %lld: missing at the target", (long long)a->at[i++].id);
		else if (i == a->n || b->at[k].id < a->at[i].id)
			differs(c, "feed %lld: not at the source", (long long)b->at[k++].id);
		else
			print_compare(c, &a->at[i++], &b->at[k++]);
	}
}

static int verify(struct copy *c)
{
	struct fw_store_stats from, to;
	struct prints a, b;
	int rc = 0;

	for (int64_t id = 1; !rc && id <= c->end.last_feed_id; id += FEED_RANGE) {
		rc = prints_read(c, c->from, id, &a);
		rc = rc ? rc : prints_read(c, c->to, id, &b);
		if (rc)
			return rc;
		prints_compare(c, &a, &b);
		c->s->verified = FW_MIN(id + FEED_RANGE - 1, c->end.last_feed_id);
		progress(c);
	}
	rc = fw_store_stats(c->from, 0, &from, c->err);
	rc = rc ? rc : fw_store_stats(c->to, 0, &to, c->err);
	if (rc)
		return rc;
	c->s->moved_on = from.last_entry_id != c->end.last_entry_id || from.last_visit_id != c->end.last_visit_id;
	if (!c->s->moved_on && from.visit_n != to.visit_n)
		differs(c, "%lld visits at the source, %lld at the target", (long long)from.visit_n, (long long)to.visit_n);
	if (!c->s->moved_on && from.entry_n != to.entry_n)
		differs(c, "%lld entries at the source, %lld at the target", (long long)from.entry_n, (long long)to.entry_n);
	return 0;
}

/* ---- from beginning to end ----------------------------------------------------------------------------------------------------- */

static int beat_seen(void *ctx, const struct fw_beat *b)
{
	(void)b;
	*(bool *)ctx = true;
	return 1;
}

/* May this target be written to? Then it is paused. */
static int target_take(struct copy *c, const struct fw_store_stats *to)
{
	bool empty = !to->feed_n && !to->last_feed_id && !to->last_entry_id && !to->last_visit_id, worked = false;
	struct fw_control newest;
	int rc = fw_store_control_take(c->to, -1, &newest, c->err);

	if (rc)
		return rc;
	if (!empty && !c->o->resume)
		return fw_err_set(c->err, FW_EINVAL, "the target is not empty (%lld feeds, %lld entries): name an empty store, or give --continue"
			" if it holds a copy that was interrupted", (long long)to->feed_n, (long long)to->entry_n);
	if (!empty && !newest.paused) {
		rc = walked(fw_store_beat_list(c->to, 0, beat_seen, &worked, c->err));
		if (rc)
			return rc;
		if (worked)
			return fw_err_set(c->err, FW_EINVAL, "workers have been at work on the target since it was copied, and their numbers are not"
				" those of the source: copy into an empty store");
	}
	return newest.paused ? 0 : fw_store_control_put(c->to, FW_CONTROL_PAUSE, 0, c->err);
}

static int phase(struct copy *c, enum fw_copy_phase p, int rc)
{
	c->s->phase = p;
	if (!rc)
		progress(c);
	return rc;
}

static int run(struct copy *c)
{
	struct fw_store_stats to;
	int rc = fw_store_stats(c->to, 0, &to, c->err);

	rc = rc ? rc : target_take(c, &to);
	rc = rc ? rc : fw_store_stats(c->from, 0, &c->end, c->err);
	if (rc)
		return rc;
	c->s->feed_total = c->end.feed_n;
	c->s->entry_total = c->end.entry_n;
	c->s->visit_total = c->end.visit_n;
	c->s->feed_before = to.feed_n;
	c->s->entry_before = to.entry_n;
	c->s->visit_before = to.visit_n;
	rc = phase(c, FW_COPY_FEEDS, 0);
	rc = rc ? rc : feeds(c, to.last_feed_id);
	rc = phase(c, FW_COPY_ENTRIES, rc);
	rc = rc ? rc : entries(c, to.last_entry_id);
	rc = phase(c, FW_COPY_KEYS, rc);
	rc = rc ? rc : keys(c);
	rc = phase(c, FW_COPY_VISITS, rc);
	rc = rc ? rc : visits(c, to.last_visit_id);
	rc = phase(c, FW_COPY_VERIFY, rc);
	rc = rc ? rc : verify(c);
	if (!rc && !c->s->differing)
		rc = fw_store_control_put(c->to, FW_CONTROL_RESUME, 0, c->err);
	return phase(c, FW_COPY_DONE, rc);
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
	c->batch = (struct fw_load){.feed = c->feed, .entry = c->entry, .key = c->key, .visit = c->visit};
	fw_arena_init(&c->arena, 0);
	rc = run(c);
	fw_arena_finish(&c->arena);
	free(c);
	return rc;
}
