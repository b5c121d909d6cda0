/* SPDX-License-Identifier: ISC */
/* Claim and commit of unchanged feeds, on every engine. */
#include <stdio.h>

#include "../../tests/store/servers.h"
#include "bench.h"

static const size_t batches[] = {100, 500};

struct part { /* one way of working, over all runs */
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
	if (!fw_snprintf(out, cap, "%s, %zu a batch, %d %s", what, batch, workers, workers == 1 ? "process" : "processes"))
		die("too long a name: %s", what);
}

static void rows(const struct engine *e, size_t batch, const struct part *ours, const struct part *ref)
{
	char name[100];

	name_row(name, sizeof(name), "claim + commit", batch, e->workers);
	if (e->wheel_least > 0)
		row_least(name, median(&ours->rate), median(&ref->rate), e->wheel_least, "feeds/s");
	else
		row_ratio(name, &ours->rate, &ref->rate, e->wheel_goal, "feeds/s");
	part_cpu(e, ours);
}

static void measure(const struct engine *e, struct wheel *w)
{
	static struct part ours[FW_N(batches)], ref; /* large */
	double held = 0;

	memset(ours, 0, sizeof(ours));
	memset(&ref, 0, sizeof(ref));
	turn_measure();
	for (int64_t r = 0; r < set.runs; r++) {
		struct work k;

		for (size_t i = 0; i < FW_N(batches); i++) {
			w->batch = batches[i];
			k = turn_wheel(w, e->workers, set.seconds, 0);
			part_add(&ours[i], &k);
		}
		k = e->ref_wheel(w->url, e->workers, set.seconds, 0);
		part_add(&ref, &k);
	}
	if (e->holds)
		held = e->ref_wheel(w->url, 32, set.seconds, 50).rate;
	for (size_t i = 0; i < FW_N(batches); i++)
		rows(e, batches[i], &ours[i], &ref);
	row("the reference alone", median(&ref.rate), "feeds/s");
	part_cpu(e, &ref);
	if (e->holds)
		row("  with jobs of 50 ms, 32 processes", held, "feeds/s");
}

/* What all those visits left behind, and what the log took. before_bytes: with the reference, which Redis counts too. */
static void weigh(const struct engine *e, struct wheel *w, double filled_bytes, double before_bytes)
{
	double grown = store_bytes(e, w->url) - before_bytes, before;
	int64_t visits = w->turn;

	row("bytes of the store per feed, never visited", filled_bytes / (double)w->feeds, "bytes");
	row("  growth per visit, its kept row included", grown / (double)FW_MAX(visits, 1), "bytes");
	row("  visits made", (double)visits, "");
	if (!e->log_bytes)
		return;
	before = e->log_bytes(w->url);
	w->batch = 500;
	turn_wheel(w, e->workers, set.seconds, 0);
	row("bytes of log per visit, 500 a batch", (e->log_bytes(w->url) - before) / (double)FW_MAX(w->turn - visits, 1), "bytes");
}

/* The same wheel with many more feeds takes turns with the usual one. */
static void large(const struct engine *e, struct wheel *w)
{
	static struct samples many, few; /* large */
	char url[400], name[80];
	struct wheel l = {.url = url, .feeds = set.feeds_large, .batch = 500};

	many.n = few.n = 0;
	store_url(e, url, sizeof(url), "large");
	turn_measure();
	w->batch = l.batch;
	for (int64_t r = 0; r < set.runs; r++) {
		sample(&few, turn_wheel(w, e->workers, set.seconds, 0).rate);
		sample(&many, turn_wheel(&l, e->workers, set.seconds, 0).rate);
	}
	if (!fw_snprintf(name, sizeof(name), "%lld feeds against %lld, 500 a batch", (long long)l.feeds, (long long)w->feeds))
		die("too long a name");
	row_ratio(name, &many, &few, 0.6, "feeds/s");
	row("  bytes of the store per feed", store_bytes(e, url) / (double)l.feeds, "bytes");
}

void bench_wheel(const struct engine *e)
{
	char url[400];
	struct wheel w = {.url = url, .feeds = set.feeds};
	struct subscribed made;
	double empty, filled, before;

	turn_load();
	if (e->large && set.feeds_large) {
		store_url(e, url, sizeof(url), "large");
		make_feeds(url, set.feeds_large, true, 2);
	}
	store_url(e, url, sizeof(url), "wheel");
	empty = store_bytes(e, url);
	made = make_feeds(url, set.feeds, true, 2);
	filled = store_bytes(e, url) - empty;
	e->ref_fill(url, set.feeds);
	before = store_bytes(e, url);
	row_head("the wheel");
	row("subscribing, 10,000 a call, 2 processes", made.rate, "feeds/s");
	measure(e, &w);
	weigh(e, &w, filled, before);
	if (e->wheel_more)
		e->wheel_more(e, &w);
	if (e->large && set.feeds_large)
		large(e, &w);
	turn_load();
}
