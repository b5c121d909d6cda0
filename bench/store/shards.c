/* SPDX-License-Identifier: ISC */
/*
 * A worker on src/store/driver.h: it leases its part of the shards, reads what is due, and then,
 * batch by batch, reads the state of feeds and commits their visits. A batch is spread over all its
 * shards by due time, as in a real worker, or has one shard's feeds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "store/driver.h"

#define LEASE_MS 600000

struct hand {
	struct store *st;
	struct store_lease lease;
	struct store_due *due;
	size_t due_n, due_cap, batch;
	struct fw_outcome *o;
	struct fw_feed *f;
	struct fw_arena a;
	size_t n;
	char name[40];
	struct fw_err err;
};

static struct hand *hand_open(const char *url, size_t batch)
{
	struct hand *h = calloc(1, sizeof(*h));

	if (!h || !fw_snprintf(h->name, sizeof(h->name), "bench/%d/0", (int)getpid()))
		die("out of memory");
	h->st = store_of(open_store(url));
	h->batch = batch;
	h->lease.lease_ms = LEASE_MS;
	h->o = calloc(batch, sizeof(*h->o));
	h->f = calloc(batch, sizeof(*h->f));
	if (!h->o || !h->f)
		die("out of memory for a batch of %zu", batch);
	fw_arena_init(&h->a, 0);
	return h;
}

static void hand_close(struct hand *h)
{
	struct store_release g = {.lease_id = h->lease.id, .leave = true};

	if (h->lease.id && h->st->driver->release(h->st, &g, &h->err))
		die_of("leave", &h->err);
	h->st->driver->close(h->st);
	fw_arena_finish(&h->a);
	free(h->due);
	free(h->o);
	free(h->f);
	free(h);
}

/* All workers beat at once here, so a store may be busy: as a worker does, try again then. */
static bool share_busy(const char *what, int rc, const struct fw_err *err)
{
	if (rc && rc != FW_EAGAIN)
		die_of(what, err);
	return rc != 0;
}

/* Exchanges shards until each of the workers has its part. */
static void share(struct hand *h, int workers)
{
	for (;; usleep(20000)) {
		size_t part;

		if (share_busy("beat", h->st->driver->heartbeat(h->st, h->name, &h->lease, &h->err), &h->err))
			continue;
		part = store_fair_share(&h->lease);
		if (h->lease.living == (uint32_t)workers && h->lease.shard_n + 1 >= (size_t)(STORE_SHARDS / workers) &&
			h->lease.shard_n <= part)
			return;
		if (h->lease.shard_n > part) {
			struct store_release g = {
				.lease_id = h->lease.id, .shard = h->lease.shard + part, .n = h->lease.shard_n - part};

			(void)share_busy("give", h->st->driver->release(h->st, &g, &h->err), &h->err);
		}
	}
}

/* ---- what is due ----------------------------------------------------------------------------- */

static int due_add(void *ctx, const struct store_due *d)
{
	struct hand *h = ctx;

	if (h->due_n == h->due_cap) {
		h->due_cap = h->due_cap ? 2 * h->due_cap : 4096;
		h->due = reallocarray(h->due, h->due_cap, sizeof(*h->due));
		if (!h->due)
			die("out of memory");
	}
	h->due[h->due_n++] = *d;
	return 0;
}

static void due_read(struct hand *h, int shard, int64_t until_ms)
{
	struct store_due_query q = {.shard = shard, .until_ms = until_ms, .due = due_add, .ctx = h};

	if (h->st->driver->due(h->st, &q, &h->err))
		die_of("due", &h->err);
}

static int by_due(const void *a, const void *b)
{
	const struct store_due *x = a, *y = b;

	return x->due_at_ms < y->due_at_ms ? -1 : x->due_at_ms > y->due_at_ms;
}

static void due_sort(struct hand *h)
{
	if (h->due_n)
		qsort(h->due, h->due_n, sizeof(*h->due), by_due);
}

/* All that is due in all its shards, by due time. */
static void due_read_all(struct hand *h)
{
	for (size_t i = 0; i < h->lease.shard_n; i++)
		due_read(h, h->lease.shard[i].shard, fw_now_ms());
	due_sort(h);
}

/* ---- state, visits --------------------------------------------------------------------------- */

static int state_add(void *ctx, const struct fw_feed *f)
{
	struct hand *h = ctx;

	h->f[h->n] = *f;
	if (!fw_store_feed_dup(&h->a, &h->f[h->n++]))
		die("out of memory");
	return 0;
}

static void state_read(struct hand *h, const struct store_due *due, size_t n)
{
	struct store_feed_query q = {.due = due, .due_n = n};

	h->n = 0;
	fw_arena_reset(&h->a, 1 << 18);
	if (h->st->driver->feed_list(h->st, &q, state_add, h, &h->err))
		die_of("feed_list", &h->err);
	if (h->n != n)
		die("%zu feeds were read, not %zu", h->n, n);
}

static void commit(struct hand *h)
{
	struct store_commit c = {.lease_id = h->lease.id, .outcome = h->o, .n = h->n};

	if (h->st->driver->commit(h->st, &c, &h->err))
		die_of("commit", &h->err);
	for (size_t i = 0; i < h->n; i++) {
		if (h->o[i].rc)
			die("feed %lld: its outcome was refused (%d)", (long long)h->o[i].feed_id, h->o[i].rc);
	}
}

/* Not modified; next due six to twelve minutes later. */
static void visit_unchanged(struct hand *h, size_t i, int64_t now)
{
	struct fw_feed *f = &h->f[i];

	h->o[i] = (struct fw_outcome){.feed_id = f->id,
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
	f->last_visit_ms = FW_MAX(now, f->last_visit_ms + 1); /* here a feed can be visited twice within 1 ms */
	f->last_ok_ms = now;
	f->due_at_ms += HOUR / 10 + (int64_t)(mix((uint64_t)f->id) % (HOUR / 10));
	f->last_kind = FW_VISIT_NOT_MODIFIED;
	f->http_status = 304;
	f->expect_us = 60000;
	f->why = FW_STR("learned 60 min; jitter +3 min");
}

static void due_visit(struct crew *c, struct hand *h)
{
	for (size_t at = 0; at < h->due_n && crew_on(c); at += h->batch) {
		size_t n = FW_MIN(h->due_n - at, h->batch);
		int64_t now = fw_now_ms();

		state_read(h, h->due + at, n);
		for (size_t i = 0; i < n; i++)
			visit_unchanged(h, i, now);
		commit(h);
		crew_done(c, (int64_t)n);
	}
	h->due_n = 0;
}

static void turn_work(struct crew *c, int worker, const void *ctx)
{
	const struct schedule *w = ctx;
	struct hand *h = hand_open(w->url, w->batch);

	share(h, w->workers);
	if (!w->by_shard) /* a worker reads it once for hundreds of batches: not in the measured time */
		due_read_all(h);
	crew_begin(c);
	for (size_t i = (size_t)mix((uint64_t)(w->visits + worker)); crew_on(c); i++) {
		if (w->by_shard)
			due_read(h, h->lease.shard[i % h->lease.shard_n].shard, fw_now_ms());
		else if (!h->due_n)
			due_read_all(h);
		due_visit(c, h);
	}
	hand_close(h);
}

struct work turn_schedule(struct schedule *w, int workers, double seconds, int parts)
{
	struct work r;

	w->workers = workers;
	r = crew_run(workers, seconds, parts, turn_work, w);
	w->visits += r.done;
	return r;
}

/* ---- reading --------------------------------------------------------------------------------- */

void read_due(const char *url, struct samples *rate)
{
	struct hand *h = hand_open(url, 1);
	double start = now_s();

	due_read(h, -1, INT64_MAX);
	sample(rate, (double)h->due_n / (now_s() - start));
	hand_close(h);
}

void read_states(const char *url, size_t batch, int times, struct samples *took, struct samples *took_cpu)
{
	struct hand *h = hand_open(url, batch);

	due_read(h, -1, INT64_MAX);
	due_sort(h);
	for (int i = 0; i < times; i++) {
		size_t at = h->due_n > batch ? mix((uint64_t)i) % (h->due_n - batch) : 0;
		double start = now_s(), cpu = thread_cpu_s();

		state_read(h, h->due + at, FW_MIN(batch, h->due_n));
		sample(took_cpu, (thread_cpu_s() - cpu) * 1e3);
		sample(took, (now_s() - start) * 1e3);
	}
	hand_close(h);
}

/* ---- entries --------------------------------------------------------------------------------- */

static void visit_new(
	struct hand *h, size_t i, struct fw_entry_row *e, size_t per_feed, int64_t from, size_t bytes, int64_t now)
{
	struct fw_feed *f = &h->f[i];

	h->o[i] = (struct fw_outcome){.feed_id = f->id,
		.host_id = store_feed_host_id(f),
		.was_due_ms = f->due_at_ms,
		.feed = f,
		.groups = FW_GROUP_VALIDATORS | FW_GROUP_META | FW_GROUP_RHYTHM,
		.entries = e,
		.entry_n = per_feed,
		.visit = {.feed_id = f->id, .at_ms = now, .kind = FW_VISIT_OK, .http_status = 200}};
	f->last_visit_ms = f->last_ok_ms = FW_MAX(now, f->last_visit_ms + 1);
	f->due_at_ms = now + HOUR;
	for (size_t k = 0; k < per_feed; k++)
		make_entry(&e[k], f->id, from + (int64_t)k, bytes, &h->a);
}

struct fill fill_store(const char *url, int64_t feeds, int per_feed, int64_t from, size_t bytes, int64_t now)
{
	size_t each = (size_t)per_feed, batch = (size_t)FW_MAX(FW_MIN(2500 / per_feed, feeds), 1);
	struct fw_entry_row *e = calloc(batch * each, sizeof(*e));
	struct hand *h = hand_open(url, batch);
	struct fill r = {0};

	if (!e)
		die("out of memory");
	share(h, 1);
	due_read(h, -1, now);
	due_sort(h);
	for (size_t at = 0, all = (size_t)FW_MIN(feeds, (int64_t)h->due_n); at < all; at += batch) {
		double start, cpu;

		state_read(h, h->due + at, FW_MIN(batch, all - at));
		for (size_t i = 0; i < h->n; i++)
			visit_new(h, i, e + i * each, each, from, bytes, now);
		start = now_s();
		cpu = thread_cpu_s();
		commit(h);
		r.seconds += now_s() - start;
		r.cpu += thread_cpu_s() - cpu;
		for (size_t i = 0; i < h->n; i++)
			r.new_n += h->o[i].visit.new_n;
	}
	hand_close(h);
	free(e);
	return r;
}
