/* SPDX-License-Identifier: ISC */
/* Stores, and the feeds in them. */
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
	if (fw_store_stats(st, &stats, &err))
		die_of("stats", &err);
	fw_store_close(st);
	return (double)stats.size_bytes;
}

/* ---- subscribing ----------------------------------------------------------------------------- */

#define SUBSCRIBE_N 10000

#define SLICE_N (10 * SUBSCRIBE_N) /* feeds between two calls of turn_pause() */

struct feeds {
	const char *url;
	int64_t from, to, n;
	bool shuffled;
	int processes;
};

/* Each process adds every n-th ten thousand. */
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

			f[i] = (struct fw_feed_new){
				.url = fw_str(fw_arena_printf(&a, "https://www.host-%lld.example/feed/%lld.xml",
					(long long)at, (long long)at)),
				.due_at_ms = NOW - HOUR +
					(w->shuffled ? (int64_t)(mix((uint64_t)at) % HOUR) : at * HOUR / w->n)};
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

	fw_store_close(open_store(url)); /* creates the tables */
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
