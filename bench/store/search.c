/* SPDX-License-Identifier: ISC */
/*
 * Searches on each engine with SQL, on a store of --entries-large entries: what is common, the
 * newest 50; and what nothing has, so that all entries are looked at. The reference is a bare
 * client that reads the same short columns of all entries, once.
 */
#include "bench.h"

#define FEEDS 1000
#define LOAD_N 5000
#define KB 1000
#define EVERY_MS 8000 /* an entry is stored: 10,000 a day, published on the day before */
#define NEWEST 50
#define SCANS_MAX 10 /* what a search without matches may cost, in such scans */

static void search_load(struct fw_store *st, int64_t from, int64_t n)
{
	static struct fw_entry_row e[LOAD_N]; /* large */
	struct fw_load l = {.entry = e, .entry_n = (size_t)n};
	struct fw_arena a;
	struct fw_err err;

	fw_arena_init(&a, 0);
	for (int64_t i = 0; i < n; i++) {
		int64_t at = from + i, feed = 1 + (int64_t)(mix((uint64_t)at) % FEEDS);

		make_entry(&e[i], feed, at, KB, &a);
		e[i].id = at + 1;
		e[i].feed_id = feed;
		e[i].revision = 1;
		e[i].seen_ms = e[i].changed_ms = NOW - (set.entries_large - at) * EVERY_MS;
		e[i].published_ms = e[i].seen_ms - (int64_t)(mix((uint64_t)at + 1) % (24 * HOUR));
		e[i].author = fw_str(fw_arena_printf(&a, "Ann Author %d", (int)(mix((uint64_t)at) % 500)));
		e[i].title = fw_str(fw_arena_printf(&a, "A common story, part%d", (int)(at % 50)));
		e[i].extra = fw_str(fw_arena_printf(
			&a, "{\"tags\":[\"t%d\",\"sky\"],\"language\":\"en\"}", (int)(mix((uint64_t)at + 2) % 100)));
	}
	if (fw_store_load(st, &l, &err))
		die_of("load", &err);
	fw_arena_finish(&a);
}

static void search_fill(struct fw_store *st)
{
	static struct fw_feed f[FEEDS]; /* large */
	struct fw_prune p = {.now_ms = NOW, .index = true, .more = true};
	struct fw_arena a;
	struct fw_err err;

	fw_arena_init(&a, 0);
	for (int i = 0; i < FEEDS; i++)
		f[i] = (struct fw_feed){.id = i + 1,
			.url = fw_str(fw_arena_printf(&a, "https://www.host-%d.example/feed.xml", i)),
			.folder = i % 50 ? FW_STR("News") : FW_STR("News/Rare"),
			.due_at_ms = NOW};
	if (fw_store_load(st, &(struct fw_load){.feed = f, .feed_n = FEEDS}, &err))
		die_of("load", &err);
	fw_arena_finish(&a);
	for (int64_t at = 0; at < set.entries_large; at += LOAD_N) {
		turn_pause();
		search_load(st, at, FW_MIN((int64_t)LOAD_N, set.entries_large - at));
	}
	while (p.more) {
		turn_pause();
		if (fw_store_prune(st, &p, &err))
			die_of("prune", &err);
	}
}

static int search_count(void *ctx, const struct fw_entry_row *e)
{
	(void)e;
	++*(int64_t *)ctx;
	return 0;
}

static double search_s(struct fw_store *st, const char *query, bool by_relevance, int64_t *n)
{
	struct fw_entry_query q = {.search = fw_str(query), .limit = NEWEST, .by_relevance = by_relevance};
	double start = now_s();
	struct fw_err err;

	*n = 0;
	if (fw_store_entry_list(st, &q, search_count, n, &err))
		die_of(query, &err);
	return now_s() - start;
}

/* Is it that many? scan NULL: no reference. */
static void search_row(struct fw_store *st, const char *query, int64_t want, const struct samples *scan)
{
	static struct samples took; /* large */
	char name[80];
	int64_t n;

	took.n = 0;
	for (int64_t r = 0; r < set.runs; r++) {
		sample(&took, 1000 * search_s(st, query, false, &n));
		if (n != want)
			die("%s: %lld entries, not %lld", query, (long long)n, (long long)want);
	}
	if (!fw_snprintf(name, sizeof(name), "%s: %s", query, want ? "the newest 50" : "none"))
		die("the name is too long");
	if (scan)
		row_at_most(name, median(&took), median(scan), SCANS_MAX, "ms");
	else
		row(name, median(&took), "ms");
}

void bench_search(const struct engine *e)
{
	static const char *const common[] = {"common", "common -part7", "title:common", "folder:News", "author:ann",
		"tag:sky", "url:host", "site:example", "lang:en", "has:author", "common OR author:ann", "-part7"};
	static const char *const none[] = {"nothing", "title:nothing", "folder:News/Rare author:nobody",
		"author:nobody", "tag:nothing", "url:nothing", "site:nothing.example", "lang:de", "has:audio",
		"-has:author"};
	static const char *const whole[] = {"nothing OR author:nobody", "-common"}; /* it reads all contents */
	static struct samples scan, ranked;                                         /* large */
	struct fw_store *st;
	char url[400];
	int64_t n;

	if (!e->ref_scan || !set.entries_large)
		return;
	row_head("searches");
	store_url(e, url, sizeof(url), "search");
	st = open_store(url);
	search_fill(st);
	turn_measure();
	scan.n = ranked.n = 0;
	for (int64_t r = 0; r < set.runs; r++)
		sample(&scan, 1000 * e->ref_scan(url, set.entries_large));
	for (size_t i = 0; i < FW_N(common); i++)
		search_row(st, common[i], NEWEST, NULL);
	for (int64_t r = 0; r < set.runs; r++)
		sample(&ranked, 1000 * search_s(st, "common", true, &n));
	row("common: best first, 50", median(&ranked), "ms");
	for (size_t i = 0; i < FW_N(none); i++)
		search_row(st, none[i], 0, &scan);
	for (size_t i = 0; i < FW_N(whole); i++)
		search_row(st, whole[i], 0, NULL);
	turn_load();
	fw_store_close(st);
}
