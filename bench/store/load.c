/* SPDX-License-Identifier: ISC */
/* Driving a store as workers do, through its contract alone. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench.h"

struct fw_store *open_store(const char *url)
{
	struct fw_store_config c = {.url = url, .flags = FW_STORE_CREATE};
	struct fw_store *st;
	struct fw_err err;

	if (fw_store_open(&c, &st, &err))
		die_of("open", &err);
	return st;
}

double store_bytes(const struct engine *e, const char *url)
{
	struct fw_store *st = open_store(url);
	struct fw_store_stats stats;
	struct fw_err err;

	if (e->disk_bytes) {
		fw_store_close(st);
		return e->disk_bytes(url);
	}
	if (fw_store_stats(st, NOW, &stats, &err))
		die_of("stats", &err);
	fw_store_close(st);
	return (double)stats.size_bytes;
}

/* ---- subscribing ------------------------------------------------------------------------------------------------------------- */

#define SUBSCRIBE_N 10000

#define SLICE_N (10 * SUBSCRIBE_N) /* between turn_pause() and the next */

struct feeds {
	const char *url;
	int64_t from, to, n;
	bool shuffled;
	int processes;
};

/* Every so-many-th ten thousand. */
static void subscribe_work(struct crew *c, int worker, const void *ctx)
{
	const struct feeds *w = ctx;
	struct fw_feed_new *f = calloc(SUBSCRIBE_N, sizeof(*f));
	struct fw_store *st = open_store(w->url);
	struct fw_arena a;
	struct fw_err err;

	fw_arena_init(&a, 0);
	crew_begin(c);
	for (int64_t from = w->from + worker * SUBSCRIBE_N; from < w->to; from += (int64_t)w->processes * SUBSCRIBE_N) {
		size_t k = (size_t)FW_MIN(w->to - from, SUBSCRIBE_N);
		int64_t start;

		for (size_t i = 0; i < k; i++) {
			int64_t at = from + (int64_t)i;

			f[i] = (struct fw_feed_new){.url = fw_str(fw_arena_printf(&a, "https://www.host-%lld.example/feed/%lld.xml",
				(long long)at, (long long)at)), .due_at_ms = NOW - HOUR + (w->shuffled ? (int64_t)(mix((uint64_t)at) % HOUR) :
				at * HOUR / w->n)};
		}
		start = fw_mono_us();
		if (fw_store_subscribe(st, f, k, &err))
			die_of("subscribe", &err);
		crew_slowest(c, fw_mono_us() - start);
		crew_done(c, (int64_t)k);
		fw_arena_reset(&a, 1 << 20);
	}
	fw_arena_finish(&a);
	free(f);
	fw_store_close(st);
}

struct subscribed make_feeds(const char *url, int64_t n, bool shuffled, int processes)
{
	struct subscribed r = {0};
	double seconds = 0;

	fw_store_close(open_store(url)); /* makes its tables */
	for (int64_t from = 0; from < n; from += SLICE_N) {
		struct feeds w = {url, from, FW_MIN(n, from + SLICE_N), n, shuffled, processes};
		struct work k;

		turn_pause();
		k = crew_run(processes, 0, 0, subscribe_work, &w);
		if (k.done != w.to - w.from)
			die("%lld feeds were subscribed, not %lld", (long long)k.done, (long long)(w.to - w.from));
		seconds += k.seconds;
		r.slowest = FW_MAX(r.slowest, k.slowest);
	}
	r.rate = (double)n / seconds;
	return r;
}

/* ---- claim and commit ---------------------------------------------------------------------------------------------------------- */

struct hand { /* what a visitor holds */
	struct fw_lease *l;
	struct fw_feed *f;
	struct fw_outcome *o;
	struct fw_entry_row *e;
	struct fw_arena a;
	char name[40];
};

static void hand_init(struct hand *h, size_t batch, size_t per_feed)
{
	h->l = calloc(batch, sizeof(*h->l));
	h->f = calloc(batch, sizeof(*h->f));
	h->o = calloc(batch, sizeof(*h->o));
	h->e = calloc(batch * FW_MAX(per_feed, 1), sizeof(*h->e));
	if (!h->l || !h->f || !h->o || !h->e || !fw_snprintf(h->name, sizeof(h->name), "bench/%d/0", (int)getpid()))
		die("no memory for a batch of %zu", batch);
	fw_arena_init(&h->a, 0);
}

static void hand_finish(struct hand *h)
{
	fw_arena_finish(&h->a);
	free(h->l);
	free(h->f);
	free(h->o);
	free(h->e);
}

static size_t claim(struct fw_store *st, struct hand *h, size_t batch, int64_t now)
{
	/* A long lease: the store's time runs fast here. */
	struct fw_claim_ask ask = {.worker = h->name, .now_ms = now, .lease_ms = 24 * HOUR, .max = batch, .host_max = 4,
		.host_gap_ms = 100};
	struct fw_claim_got got;
	struct fw_err err;

	fw_arena_reset(&h->a, 1 << 18);
	if (fw_store_claim(st, &ask, &h->a, h->l, &got, &err))
		die_of("claim", &err);
	return got.n;
}

/* Not modified; next in six to twelve minutes. */
static void visit_unchanged(struct hand *h, size_t i, int64_t now)
{
	struct fw_feed *f = &h->f[i];

	*f = h->l[i].feed;
	f->last_visit_ms = f->last_ok_ms = now;
	f->due_at_ms = now + HOUR / 10 + (int64_t)(mix((uint64_t)f->id) % (HOUR / 10));
	f->last_kind = FW_VISIT_NOT_MODIFIED;
	f->http_status = 304;
	f->expect_us = 60000;
	f->why = FW_STR("learned 60 min; jitter +3 min");
	h->o[i] = (struct fw_outcome){.feed_id = f->id, .fence = h->l[i].fence, .feed = f, .visit = {.run_id = 1, .at_ms = now,
		.kind = FW_VISIT_NOT_MODIFIED, .http_status = 304, .slot = (int)i, .lateness_ms = 1000, .dns_us = 500,
		.connect_us = 20000, .first_byte_us = 55000, .total_us = 60000, .wire_bytes = 300}};
}

static void commit(struct fw_store *st, struct hand *h, size_t n, int64_t now)
{
	struct fw_err err;

	if (fw_store_commit(st, &(struct fw_commit){.now_ms = now, .outcome = h->o, .n = n}, &err))
		die_of("commit", &err);
	for (size_t i = 0; i < n; i++) {
		if (h->o[i].rc)
			die("feed %lld: its outcome was refused (%d)", (long long)h->o[i].feed_id, h->o[i].rc);
	}
}

static void wheel_work(struct crew *c, int worker, const void *ctx)
{
	const struct wheel *w = ctx;
	struct fw_store *st = open_store(w->url);
	struct hand h;

	(void)worker;
	hand_init(&h, w->batch, 0);
	crew_begin(c);
	while (crew_on(c)) {
		int64_t now = NOW + (w->turn + crew_total(c)) * HOUR / w->feeds;
		size_t n = claim(st, &h, w->batch, now);

		for (size_t i = 0; i < n; i++)
			visit_unchanged(&h, i, now);
		if (n)
			commit(st, &h, n, now);
		crew_done(c, (int64_t)n);
	}
	hand_finish(&h);
	fw_store_close(st);
}

struct work turn_wheel(struct wheel *w, int workers, double seconds, int parts)
{
	struct work r = crew_run(workers, seconds, parts, wheel_work, w);

	w->turn += r.done;
	return r;
}

void turn_wheel_here(struct fw_store *st, size_t batch, int64_t visits, int64_t now, struct samples *took, struct samples *took_cpu)
{
	struct hand h;

	hand_init(&h, batch, 0);
	for (int64_t done = 0; done < visits;) {
		double start = now_s(), cpu = thread_cpu_s();
		size_t n = claim(st, &h, batch, now);

		sample(took_cpu, (thread_cpu_s() - cpu) * 1e3);
		sample(took, (now_s() - start) * 1e3);
		if (!n)
			break;
		for (size_t i = 0; i < n; i++) {
			visit_unchanged(&h, i, now);
			h.f[i].due_at_ms += HOUR; /* not again soon */
		}
		commit(st, &h, n, now);
		done += (int64_t)n;
	}
	hand_finish(&h);
}

/* ---- entries --------------------------------------------------------------------------------------------------------------------- */

struct fill fill_store(struct fw_store *st, int64_t feeds, int per_feed, int64_t from, size_t bytes, int64_t now)
{
	size_t batch = (size_t)FW_MAX(FW_MIN(2500 / per_feed, feeds), 1), n, each = (size_t)per_feed;
	struct fill r = {0};
	struct fw_err err;
	struct hand h;

	hand_init(&h, batch, each);
	for (; feeds > 0 && (n = claim(st, &h, (size_t)FW_MIN((int64_t)batch, feeds), now)); feeds -= (int64_t)n) {
		double start, cpu;

		for (size_t i = 0; i < n; i++) {
			h.f[i] = h.l[i].feed;
			h.f[i].due_at_ms = now + HOUR;
			h.o[i] = (struct fw_outcome){.feed_id = h.f[i].id, .fence = h.l[i].fence, .feed = &h.f[i], .groups = FW_GROUP_VALIDATORS |
				FW_GROUP_META | FW_GROUP_RHYTHM, .entries = h.e + i * each, .entry_n = each,
				.visit = {.at_ms = now, .kind = FW_VISIT_OK, .http_status = 200}};
			for (int k = 0; k < per_feed; k++)
				make_entry(&h.e[i * each + (size_t)k], h.f[i].id, from + k, bytes, &h.a);
		}
		start = now_s();
		cpu = thread_cpu_s();
		if (fw_store_commit(st, &(struct fw_commit){.now_ms = now, .outcome = h.o, .n = n}, &err))
			die_of("commit", &err);
		r.seconds += now_s() - start;
		r.cpu += thread_cpu_s() - cpu;
		for (size_t i = 0; i < n; i++)
			r.new_n += h.o[i].visit.new_n;
	}
	hand_finish(&h);
	return r;
}
