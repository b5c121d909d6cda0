/* SPDX-License-Identifier: ISC */
/* Claim and commit of unchanged feeds, on every engine. */
#include <stdio.h>

#include "../../tests/store/servers.h"
#include "bench.h"

static const size_t batches[] = {100, 500};

static void name_row(char *out, size_t cap, const char *what, size_t batch, int workers)
{
	if (!fw_snprintf(out, cap, "%s, %zu a batch, %d %s", what, batch, workers, workers == 1 ? "process" : "processes"))
		die("too long a name: %s", what);
}

static void rows(const struct engine *e, size_t batch, const struct samples *ours, const struct samples *ref, const struct samples *cpu,
	const struct samples *server)
{
	char name[100];

	name_row(name, sizeof(name), "claim + commit", batch, e->workers);
	if (e->wheel_least > 0)
		row_least(name, median(ours), median(ref), e->wheel_least, "feeds/s");
	else
		row_ratio(name, ours, ref, e->wheel_goal, "feeds/s");
	row("  CPU of the workers, a feed", median(cpu), "us");
	if (server_of(e->name))
		row("  CPU of the server, a feed", median(server), "us");
}

/* A figure of one run, per feed. */
static void sample_cpu(struct samples *s, double cpu, const struct work *w)
{
	sample(s, cpu * 1e6 / (double)FW_MAX(w->done, 1));
}

void bench_wheel(const struct engine *e)
{
	static struct samples ours[FW_N(batches)], cpu[FW_N(batches)], server[FW_N(batches)], ref, ref_server; /* large */
	char url[400];
	struct wheel w = {.url = url, .feeds = set.feeds};

	turn_load();
	store_url(e, url, sizeof(url), "wheel");
	make_feeds(url, set.feeds, true, 2);
	if (e->ref_fill)
		e->ref_fill(url, set.feeds);
	row_head("the wheel");
	for (size_t i = 0; i < FW_N(batches); i++)
		ours[i].n = cpu[i].n = server[i].n = 0;
	ref.n = ref_server.n = 0;
	turn_measure();
	for (int64_t r = 0; r < set.runs; r++) {
		struct work k;

		for (size_t i = 0; i < FW_N(batches); i++) {
			w.batch = batches[i];
			k = turn_wheel(&w, e->workers, (double)set.seconds, 0);
			sample(&ours[i], k.rate);
			sample_cpu(&cpu[i], k.cpu, &k);
			sample_cpu(&server[i], k.server_cpu, &k);
		}
		if (e->ref_wheel) {
			k = e->ref_wheel(url, e->workers, (double)set.seconds, 0);
			sample(&ref, k.rate);
			sample_cpu(&ref_server, k.server_cpu, &k);
		}
	}
	turn_load();
	for (size_t i = 0; i < FW_N(batches); i++)
		rows(e, batches[i], &ours[i], &ref, &cpu[i], &server[i]);
	if (ref.n) {
		row("the reference alone", median(&ref), "feeds/s");
		if (server_of(e->name))
			row("  CPU of the server, a feed", median(&ref_server), "us");
	}
}
