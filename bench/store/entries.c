/* SPDX-License-Identifier: ISC */
/* New and known entries, and events, on each engine. */
#include "bench.h"

#define PER_FEED 25
#define KB 1000
#define SINGLE_MAX 5000 /* single inserts */
#define SLICE_N 4000    /* feeds between two calls of turn_pause() */

static void numbered_url(const struct engine *e, const char *name, int64_t run, char url[400])
{
	char numbered[40];

	if (!fw_snprintf(numbered, sizeof(numbered), "%s%d", name, (int)run))
		die("too many runs");
	store_url(e, url, 400, numbered);
}

static void fresh(const struct engine *e, const char *name, int64_t run, int64_t feeds)
{
	char url[400];

	numbered_url(e, name, run, url);
	make_feeds(url, feeds, true, 1);
}

/* Visits them with entries that are all new, or all known. Rows a second. */
static double visits(const char *url, int64_t feeds, int64_t from, int64_t now, bool new)
{
	struct fill f = fill_store(url, feeds, PER_FEED, from, KB, now);

	if (f.new_n != (new ? feeds *PER_FEED : 0))
		die("%lld of %lld entries are new", (long long)f.new_n, (long long)(feeds * PER_FEED));
	return (double)(feeds * PER_FEED) / f.seconds;
}

/* On empty stores. again, NULL: not measured. */
static void empty(
	const struct engine *e, const char *name, struct samples *ours, struct samples *ref, struct samples *again)
{
	int64_t feeds = set.entries / PER_FEED;
	char url[400];

	ours->n = ref->n = 0;
	turn_load();
	for (int64_t r = 0; r < set.runs; r++)
		fresh(e, name, r, feeds);
	turn_measure();
	for (int64_t r = 0; r < set.runs; r++) {
		numbered_url(e, name, r, url);
		sample(ref, e->ref_entries(url, FW_MIN(set.entries, SINGLE_MAX), KB));
		sample(ours, visits(url, feeds, 0, NOW, true));
		if (again)
			sample(again, visits(url, feeds, 0, NOW + 2 * HOUR, false));
	}
	turn_load();
}

void entries_row(const struct engine *e, const char *name, double goal)
{
	static struct samples ours, ref; /* large */

	empty(e, "e", &ours, &ref, NULL);
	row_ratio(name, &ours, &ref, goal, "rows/s");
}

/* More entries for feeds that have some already: their keys are all over the store. */
static void full(const struct engine *e, const struct samples *ours)
{
	int64_t feeds = set.entries_large / PER_FEED;
	char url[400], name[80];
	double rate;

	if (!feeds)
		return;
	fresh(e, "full", 0, feeds);
	numbered_url(e, "full", 0, url);
	for (int64_t at = 0; at < feeds; at += SLICE_N) {
		turn_pause();
		visits(url, FW_MIN(SLICE_N, feeds - at), 0, NOW, true);
	}
	turn_measure();
	rate = visits(url, FW_MIN(set.entries / PER_FEED, feeds), PER_FEED, NOW + 2 * HOUR, true);
	turn_load();
	if (!fw_snprintf(name, sizeof(name), "new entries into a store of %lld, against empty",
		    (long long)set.entries_large))
		die("the name is too long");
	row_ratio1(name, rate, median(ours), 0.5, "rows/s");
	row("bytes of the store per entry", store_bytes(e, url) / (double)(set.entries_large + set.entries), "bytes");
}

void bench_entries(const struct engine *e)
{
	static struct samples ours, ref, again; /* large */

	row_head("entries of 1 KB");
	again.n = 0;
	empty(e, "entries", &ours, &ref, &again);
	row_ratio("new entries in bulk, against one a transaction", &ours, &ref, e->entry_goal, "rows/s");
	row_ratio("known entries sent again, against new ones", &again, &ours, 1.5, "rows/s");
	full(e, &ours);
}

#define EVENTS_BATCH 1000

/* In this process, in bulk, each event new. */
static double put_events(struct fw_store *st, int64_t from, int64_t n)
{
	static struct fw_event e[EVENTS_BATCH];
	double start = now_s();
	struct fw_err err;

	for (int64_t at = 0; at < n; at += EVENTS_BATCH) {
		for (int64_t i = 0; i < EVENTS_BATCH; i++)
			e[i] = (struct fw_event){.id = from + at + i,
				.property = FW_STR("news"),
				.section = 7,
				.item = at + i,
				.remote_ip = FW_STR("2001:db8::1"),
				.stamp_ms = NOW};
		if (fw_store_event_put(st, e, EVENTS_BATCH, &err))
			die_of("event_put", &err);
	}
	return (double)n / (now_s() - start);
}

static int event_seen(void *ctx, const struct fw_event *e)
{
	(void)e;
	++*(int64_t *)ctx;
	return 0;
}

void bench_events(const struct engine *e)
{
	static struct samples put, read; /* large */
	int64_t n = (set.entries + EVENTS_BATCH - 1) / EVENTS_BATCH * EVENTS_BATCH;
	struct fw_store *st;
	struct fw_err err;
	char url[400];

	row_head("events");
	put.n = read.n = 0;
	store_url(e, url, sizeof(url), "events");
	st = open_store(url);
	turn_measure();
	for (int64_t r = 0; r < set.runs; r++) {
		int64_t seen = 0;
		double start;

		sample(&put, put_events(st, 1 + r * n, n));
		start = now_s();
		if (fw_store_event_list(st, r * n, (size_t)n, event_seen, &seen, &err))
			die_of("event_list", &err);
		if (seen != n)
			die("%lld of %lld events are stored", (long long)seen, (long long)n);
		sample(&read, (double)n / (now_s() - start));
	}
	turn_load();
	row("new events, 1,000 a call", median(&put), "rows/s");
	row("events read in order", median(&read), "rows/s");
	fw_store_close(st);
}
