/* SPDX-License-Identifier: ISC */
/* Claims and commits of unchanged feeds, and reads, on each engine. */
#include <stdio.h>

#include "../../tests/store/servers.h"
#include "bench.h"

#define MANY 32 /* concurrent workers */

static const size_t batches[] = {100, 500};

/* one mode of working, over all rounds */
struct part {
	struct samples rate, cpu, server; /* CPU in us a feed */
};

static void part_add(struct part *p, const struct work *w)
{
	double n = (double)FW_MAX(w->done, 1);

	sample(&p->rate, w->rate);
	sample(&p->cpu, w->cpu * 1e6 / n);
	sample(&p->server, w->server_cpu * 1e6 / n);
}

static void part_cpu(const struct engine *e, const struct part *p)
{
	row("  CPU of the clients, a feed", median(&p->cpu), "us");
	if (server_of(e->name))
		row("  CPU of the server, a feed", median(&p->server), "us");
}

static void name_row(char *out, size_t cap, const char *what, size_t batch, int workers)
{
	if (!fw_snprintf(
		    out, cap, "%s, %zu a batch, %d %s", what, batch, workers, workers == 1 ? "process" : "processes"))
		die("the name is too long: %s", what);
}

static void rows(const struct engine *e, size_t batch, const struct part *ours, const struct part *by_shard,
	const struct part *ref)
{
	char name[100];

	name_row(name, sizeof(name), "claim + commit", batch, e->workers);
	if (e->claim_least > 0)
		row_least(name, median(&ours->rate), median(&ref->rate), e->claim_least, "feeds/s");
	else
		row_ratio(name, &ours->rate, &ref->rate, e->claim_goal, "feeds/s");
	part_cpu(e, ours);
	row("  each batch of one shard", median(&by_shard->rate), "feeds/s");
}

static void measure(const struct engine *e, struct schedule *w)
{
	static struct part ours[FW_N(batches)], by_shard[FW_N(batches)], ref; /* large */
	double held = 0;

	memset(ours, 0, sizeof(ours));
	memset(by_shard, 0, sizeof(by_shard));
	memset(&ref, 0, sizeof(ref));
	turn_measure();
	for (int64_t r = 0; r < set.runs; r++) {
		struct work k;

		for (size_t i = 0; i < 2 * FW_N(batches); i++) {
			w->batch = batches[i / 2];
			w->by_shard = i % 2;
			k = turn_schedule(w, e->workers, set.seconds, 0);
			part_add(i % 2 ? &by_shard[i / 2] : &ours[i / 2], &k);
		}
		w->by_shard = false;
		k = e->ref_claim(w->url, e->workers, set.seconds, 0);
		part_add(&ref, &k);
	}
	if (e->holds)
		held = e->ref_claim(w->url, MANY, set.seconds, 50).rate;
	for (size_t i = 0; i < FW_N(batches); i++)
		rows(e, batches[i], &ours[i], &by_shard[i], &ref);
	row("the reference alone", median(&ref.rate), "feeds/s");
	part_cpu(e, &ref);
	if (e->holds)
		row("  with jobs of 50 ms, 32 processes", held, "feeds/s");
}

/*
 * Whether many workers slow each other down. Of each round the last of four parts counts: workers
 * live for weeks, and the first seconds of a new server session do not matter, above all its first
 * access to each page of the shared memory.
 */
static void many(const struct engine *e, struct schedule *w)
{
	static struct samples few, all; /* large */

	w->batch = 100;
	for (int64_t r = 0; r < set.runs; r++) {
		sample(&few, turn_schedule(w, e->workers, 4.0 * set.seconds, 4).last);
		sample(&all, turn_schedule(w, MANY, 4.0 * set.seconds, 4).last);
	}
	row_ratio("32 processes against 4, 100 a batch", &all, &few, 0.7, "feeds/s");
}

/*
 * Minutes without a pause; the second time another client leaves a transaction open. The last
 * minute of each is compared: the store's growth by then affects both.
 */
static void steady(const struct engine *e, struct schedule *w)
{
	double own = 0;
	char name[100];

	w->batch = 100;
	for (int foreign = 0; foreign < (e->foreign_begin ? 2 : 1); foreign++) {
		void *other = NULL;
		struct work k;

		turn_measure();
		if (foreign)
			other = e->foreign_begin(w->url);
		k = turn_schedule(w, e->workers, (double)set.minutes * 60, (int)FW_MAX(set.minutes, 2));
		turn_load();
		if (other)
			e->foreign_end(other);
		if (!fw_snprintf(name, sizeof(name), "%lld min%s", (long long)set.minutes,
			    foreign ? ", a transaction open elsewhere, against none" : ": the last against the first"))
			die("too many minutes");
		row_ratio1(name, k.last, foreign ? own : k.first, foreign ? 0.6 : 0.8, "feeds/s");
		own = k.last;
		row("  visits made", (double)k.done, "");
	}
}

static void reading(const struct engine *e, const struct schedule *w)
{
	static struct samples due, took, cpu; /* large */

	(void)e;
	for (int64_t r = 0; r < set.runs; r++) {
		read_due(w->url, &due);
		read_states(w->url, 500, 20, &took, &cpu);
	}
	row("reading what is due, all feeds", median(&due), "feeds/s");
	row("reading the state of feeds, 500 a batch", 500e3 / median(&took), "feeds/s");
}

/*
 * What all those visits left behind, and the growth of the log. before_bytes: with the reference,
 * which Redis counts too.
 */
static void weigh(const struct engine *e, struct schedule *w, double filled_bytes, double before_bytes)
{
	double grown = store_bytes(e, w->url) - before_bytes, before;
	int64_t visits = w->visits;

	row("bytes of the store per feed, never visited", filled_bytes / (double)w->feeds, "bytes");
	row("  growth per visit, its kept row included", grown / (double)FW_MAX(visits, 1), "bytes");
	row("  visits made", (double)visits, "");
	if (!e->log_bytes)
		return;
	before = e->log_bytes(w->url);
	w->batch = 500;
	turn_schedule(w, e->workers, set.seconds, 0);
	row("bytes of log per visit, 500 a batch",
		(e->log_bytes(w->url) - before) / (double)FW_MAX(w->visits - visits, 1), "bytes");
}

/* A store with many more feeds alternates with the usual one. */
static void large(const struct engine *e, struct schedule *w)
{
	static struct samples many, few; /* large */
	char url[400], name[80];
	struct schedule l = {.url = url, .feeds = set.feeds_large, .batch = 500};

	many.n = few.n = 0;
	store_url(e, url, sizeof(url), "large");
	turn_measure();
	w->batch = l.batch;
	for (int64_t r = 0; r < set.runs; r++) {
		sample(&few, turn_schedule(w, e->workers, set.seconds, 0).rate);
		sample(&many, turn_schedule(&l, e->workers, set.seconds, 0).rate);
	}
	if (!fw_snprintf(name, sizeof(name), "%lld feeds against %lld, 500 a batch", (long long)l.feeds,
		    (long long)w->feeds))
		die("the name is too long");
	row_ratio(name, &many, &few, 0.6, "feeds/s");
	row("  bytes of the store per feed", store_bytes(e, url) / (double)l.feeds, "bytes");
}

void bench_schedule(const struct engine *e)
{
	char url[400];
	struct schedule w = {.url = url, .feeds = set.feeds};
	struct subscribed made;
	double empty, filled, before;

	turn_load();
	if (e->large && set.feeds_large) {
		store_url(e, url, sizeof(url), "large");
		make_feeds(url, set.feeds_large, true, 2);
	}
	store_url(e, url, sizeof(url), "bench");
	empty = store_bytes(e, url);
	made = make_feeds(url, set.feeds, true, 2);
	filled = store_bytes(e, url) - empty;
	e->ref_fill(url, set.feeds);
	before = store_bytes(e, url);
	row_head("the schedule");
	row("subscribing, 10,000 a call, 2 processes", made.rate, "feeds/s");
	measure(e, &w);
	reading(e, &w);
	weigh(e, &w, filled, before);
	if (server_of(e->name))
		many(e, &w);
	if (e->schedule_more)
		e->schedule_more(e, &w);
	if (set.minutes)
		steady(e, &w);
	if (e->large && set.feeds_large)
		large(e, &w);
	turn_load();
}
