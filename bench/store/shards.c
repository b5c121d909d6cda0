/* SPDX-License-Identifier: ISC */
/*
 * Claim and commit by shards (src/store/driver.h), beside the leases of single feeds that it
 * replaces, in turns: what a worker does all day with feeds that have not changed. Its batch is one
 * shard's feeds after the other's, or, spread, by due time over all its shards.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../tests/store/servers.h"
#include "bench.h"
#include "store/driver.h"

#define LEASE_MS 600000
#define LOAD_N 2000
#define DUE_MAX ((size_t)1 << 20)

struct shards {
	const char *url;
	size_t batch;
	int workers;
	bool spread;
	int64_t turn;
};

static struct store *open_new(const char *url)
{
	struct fw_store_config c = {.url = url, .flags = FW_STORE_CREATE};
	struct fw_str scheme, rest;
	struct store *st = NULL;
	struct fw_err err;

	scheme = fw_str_split(fw_str(url), ':', &rest);
	for (const struct store_driver *const *d = store_drivers; *d; d++) {
		for (const char *const *s = (*d)->schemes; *s; s++) {
			if (fw_str_eq(scheme, fw_str(*s)) && (*d)->open(&c, &st, &err))
				die_of("open", &err);
		}
	}
	return st;
}

static bool has_new(const char *name)
{
	for (const struct store_driver *const *d = store_drivers; *d; d++) {
		if (strcmp((*d)->name, name) == 0)
			return true;
	}
	return false;
}

static double load(const char *url, int64_t n)
{
	struct store *st = open_new(url);
	struct fw_feed *f = calloc(LOAD_N, sizeof(*f));
	struct store_feed_new *made = calloc(LOAD_N, sizeof(*made));
	struct fw_arena a;
	struct fw_err err;
	double start = now_s();

	fw_arena_init(&a, 0);
	for (int64_t at = 0; at < n;) {
		size_t k = (size_t)FW_MIN(n - at, LOAD_N);

		for (size_t i = 0; i < k; i++, at++)
			f[i] = (struct fw_feed){
				.url = fw_str(fw_arena_printf(&a, "https://www.host-%lld.example/feed/%lld.xml",
					(long long)at, (long long)at)),
				.due_at_ms = NOW - HOUR + (int64_t)(mix((uint64_t)at) % HOUR)};
		if (st->is->load(st, &(struct store_load){.rows = {.feed = f, .feed_n = k}, .made = made}, &err))
			die_of("load", &err);
		fw_arena_reset(&a, 1 << 20);
	}
	fw_arena_finish(&a);
	free(f);
	free(made);
	st->is->close(st);
	return (double)n / (now_s() - start);
}

/* ---- a worker -------------------------------------------------------------------------------- */

struct hand {
	const struct shards *w;
	struct store *st;
	struct store_lease lease;
	struct store_due *due;
	size_t due_n, due_cap;
	struct store_outcome *o;
	struct fw_feed *f;
	struct fw_arena a;
	size_t n, max;
	struct fw_err err;
};

static int due_add(void *ctx, const struct store_due *d)
{
	struct hand *h = ctx;

	if (h->due_n == h->due_cap) {
		h->due_cap = h->due_cap ? 2 * h->due_cap : 4096;
		h->due = reallocarray(h->due, h->due_cap, sizeof(*h->due));
		if (!h->due)
			die("no memory");
	}
	h->due[h->due_n++] = *d;
	return 0;
}

static int state_add(void *ctx, const struct fw_feed *f)
{
	struct hand *h = ctx;

	h->f[h->n] = *f;
	h->f[h->n].url = fw_arena_str(&h->a, f->url);
	h->f[h->n].rhythm = fw_arena_str(&h->a, f->rhythm);
	h->f[h->n].etag = fw_arena_str(&h->a, f->etag);
	h->n++;
	return 0;
}

static void share(struct hand *h)
{
	for (;;) {
		if (h->st->is->beat(h->st, "bench", &h->lease, &h->err))
			die_of("beat", &h->err);
		if (h->lease.living == (uint32_t)h->w->workers &&
			h->lease.shard_n + 1 >= (size_t)(STORE_SHARDS / h->w->workers) &&
			h->lease.shard_n <= store_part(&h->lease))
			return;
		if (h->lease.shard_n > store_part(&h->lease)) {
			struct store_give g = {.lease_id = h->lease.id,
				.shard = h->lease.shard + store_part(&h->lease),
				.n = h->lease.shard_n - store_part(&h->lease)};

			if (h->st->is->give(h->st, &g, &h->err))
				die_of("give", &h->err);
		}
		usleep(20000);
	}
}

/* State is read, a visit made up, all committed. */
static void visit_some(struct hand *h, const struct store_due *due, size_t n)
{
	struct store_feed_query q = {.due = due, .due_n = n};
	int64_t now = fw_now_ms();

	h->n = 0;
	fw_arena_reset(&h->a, 1 << 18);
	if (h->st->is->feed_list(h->st, &q, state_add, h, &h->err))
		die_of("feed_list", &h->err);
	if (h->n != n)
		die("%zu feeds were read, not %zu", h->n, n);
	for (size_t i = 0; i < n; i++) {
		struct fw_feed *f = &h->f[i];

		h->o[i] = (struct store_outcome){.feed_id = f->id,
			.host_id = store_feed_host_id(f),
			.was_due_ms = f->due_at_ms,
			.feed = f,
			.visit = {.feed_id = f->id,
				.run_id = 1,
				.at_ms = now,
				.kind = FW_VISIT_NOT_MODIFIED,
				.http_status = 304,
				.slot = (int)i,
				.lateness_ms = 1000,
				.dns_us = 500,
				.connect_us = 20000,
				.first_byte_us = 55000,
				.total_us = 60000,
				.wire_bytes = 300}};
		f->last_visit_ms = FW_MAX(now, f->last_visit_ms + 1); /* here a feed may come again within the ms */
		f->last_ok_ms = now;
		f->due_at_ms += HOUR / 10 + (int64_t)(mix((uint64_t)f->id) % (HOUR / 10));
		f->last_kind = FW_VISIT_NOT_MODIFIED;
		f->http_status = 304;
		f->expect_us = 60000;
		f->why = FW_STR("learned 60 min; jitter +3 min");
	}
	if (h->st->is->commit(h->st, &(struct store_commit){.lease_id = h->lease.id, .outcome = h->o, .n = n}, &h->err))
		die_of("commit", &h->err);
	for (size_t i = 0; i < n; i++) {
		if (h->o[i].rc)
			die("feed %lld: its outcome was refused (%d)", (long long)h->o[i].feed_id, h->o[i].rc);
	}
}

static int by_due(const void *a, const void *b)
{
	const struct store_due *x = a, *y = b;

	return x->due_at_ms < y->due_at_ms ? -1 : x->due_at_ms > y->due_at_ms;
}

static void work_on(struct crew *c, struct hand *h, int shard)
{
	struct store_due_query q = {.shard = shard, .until_ms = fw_now_ms(), .due = due_add, .ctx = h};

	if (shard >= 0 && h->st->is->due(h->st, &q, &h->err))
		die_of("due", &h->err);
	if (shard < 0)
		qsort(h->due, h->due_n, sizeof(*h->due), by_due);
	for (size_t at = 0; at < h->due_n && crew_on(c); at += h->w->batch) {
		size_t n = FW_MIN(h->due_n - at, h->w->batch);

		visit_some(h, h->due + at, n);
		crew_done(c, (int64_t)n);
	}
	h->due_n = 0;
}

/* Spread: all that is due of all its shards, by due time. */
static void work_spread(struct crew *c, struct hand *h)
{
	for (size_t i = 0; i < h->lease.shard_n; i++) {
		struct store_due_query q = {
			.shard = h->lease.shard[i].shard, .until_ms = fw_now_ms(), .due = due_add, .ctx = h};

		if (h->st->is->due(h->st, &q, &h->err))
			die_of("due", &h->err);
	}
	work_on(c, h, -1);
}

static void shards_work(struct crew *c, int worker, const void *ctx)
{
	static struct hand h; /* large */

	h.w = ctx;
	h.st = open_new(h.w->url);
	h.lease.lease_ms = LEASE_MS;
	h.o = calloc(h.w->batch, sizeof(*h.o));
	h.f = calloc(h.w->batch, sizeof(*h.f));
	if (!h.o || !h.f)
		die("no memory");
	fw_arena_init(&h.a, 0);
	share(&h);
	crew_begin(c);
	for (size_t i = (size_t)mix((uint64_t)(h.w->turn + worker)); crew_on(c); i++) {
		if (h.w->spread)
			work_spread(c, &h);
		else
			work_on(c, &h, h.lease.shard[i % h.lease.shard_n].shard);
	}
	if (h.st->is->give(h.st, &(struct store_give){.lease_id = h.lease.id, .leave = true}, &h.err))
		die_of("leave", &h.err);
	h.st->is->close(h.st);
}

static struct work turn(struct shards *w)
{
	struct work k = crew_run(w->workers, set.seconds, 0, shards_work, w);

	w->turn += 1;
	return k;
}

void bench_shards(const struct engine *e)
{
	static const struct {
		size_t batch;
		int workers;
		double goal;
		bool spread;
	} ROW[] = {{100, 0, 1.0, false}, {500, 0, 1.2, false}, {100, 32, 1.3, false}, {100, 0, 0, true},
		{500, 0, 0, true}};
	static struct samples ours, theirs; /* large */
	char url[400], old[400], name[100];
	struct shards w = {.url = url};
	struct wheel was = {.url = old, .feeds = set.feeds};

	if (!has_new(e->name))
		return;
	store_url(e, old, sizeof(old), "before");
	store_url(e, url, sizeof(url), "shards");
	row_head("claim + commit by shards, against leases of single feeds");
	make_feeds(old, set.feeds, true, 2);
	row("loading", load(url, set.feeds), "feeds/s");
	for (size_t i = 0; i < FW_N(ROW); i++) {
		ours.n = theirs.n = 0;
		w.batch = was.batch = ROW[i].batch;
		w.workers = ROW[i].workers ? ROW[i].workers : e->workers;
		w.spread = ROW[i].spread;
		if (ROW[i].workers && strcmp(e->name, "sqlite") == 0)
			continue;
		turn_measure();
		for (int64_t r = 0; r < set.runs; r++) {
			sample(&theirs, turn_wheel(&was, w.workers, set.seconds, 0).rate);
			sample(&ours, turn(&w).rate);
		}
		if (!fw_snprintf(name, sizeof(name), "%s%zu a batch, %d %s", w.spread ? "spread, " : "", w.batch,
			    w.workers, w.workers == 1 ? "process" : "processes"))
			die("too long a name");
		row_ratio(name, &ours, &theirs, ROW[i].goal, "feeds/s");
	}
	turn_load();
}
