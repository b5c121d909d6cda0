/* SPDX-License-Identifier: ISC */
/* New entries and known ones, on every engine. */
#include "bench.h"

#define PER_FEED 25
#define KB 1000

void bench_entries(const struct engine *e)
{
	static struct samples ours, ref, again; /* large */
	int64_t feeds = set.entries / PER_FEED;
	char url[400], name[40];
	struct fw_store *st;
	struct fill f;

	ours.n = ref.n = again.n = 0;
	row_head("entries of 1 KB");
	for (int64_t r = 0; r < set.runs; r++) {
		turn_load();
		if (!fw_snprintf(name, sizeof(name), "entries%d", (int)r))
			die("too many runs");
		store_url(e, url, sizeof(url), name);
		make_feeds(url, feeds, true, 1);
		st = open_store(url);
		turn_measure();
		sample(&ref, e->ref_entries(url, FW_MIN(set.entries, 5000), KB));
		f = fill_store(st, feeds, PER_FEED, 0, KB, NOW);
		if (f.new_n != feeds * PER_FEED)
			die("%lld entries are new, not %lld", (long long)f.new_n, (long long)(feeds * PER_FEED));
		sample(&ours, (double)f.new_n / f.seconds);
		f = fill_store(st, feeds, PER_FEED, 0, KB, NOW + HOUR);
		if (f.new_n)
			die("%lld known entries are new", (long long)f.new_n);
		sample(&again, (double)(feeds * PER_FEED) / f.seconds);
		fw_store_close(st);
	}
	turn_load();
	row_ratio("new entries in bulk, against one a transaction", &ours, &ref, e->entry_goal, "rows/s");
	row_ratio("known entries sent again, against new ones", &again, &ours, 1.5, "rows/s");
}
