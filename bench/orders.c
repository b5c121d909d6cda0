/* SPDX-License-Identifier: ISC */
/*
 * bench_orders [FOLDER]: the matcher of orders. The entries are those of the feeds in the folder;
 * the orders are made of their words: each takes five words of one entry and excludes two that
 * only another one has; every tenth has a phrase of the entry in place of a word, every tenth the
 * start of a word. Words are drawn as they occur, so common ones are among them.
 *
 * One row per figure: name, ours, reference, ratio, goal, ok or short. Times are CPU seconds of the
 * thread. "Missing or wrong" compares a sample of entries with query_matches() for each order. Exit
 * status 1: a row is short.
 *
 *	ORDERS=225000 SECONDS=3 SAMPLE=60
 */
#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "parse/parse.h"
#include "query/match.h"
#include "query/words.h"
#include "size.h"

#define DOCUMENT_MAX ((size_t)8 << 20)
#define OF_ONE_MAX 100 /* entries of one document */
#define MUST_N 5
#define NOT_N 2

static struct fw_arena arena; /* entries, and the orders as trees */
static struct fw_entry_row *entry;
static size_t entry_n, entry_cap;
static struct query_node **order;
static size_t order_n;
static bool any_short;

static void die(const char *words)
{
	fprintf(stderr, "bench_orders: %s\n", words);
	exit(2);
}

static void *checked(void *p)
{
	if (!p)
		die("out of memory");
	return p;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void row(
	const char *name, const char *ours, const char *reference, const char *ratio, const char *goal, int fine)
{
	printf("%-58s %13s %13s %8s %8s  %s\n", name, ours, reference, ratio, goal,
		fine < 0     ? "-" :
			fine ? "ok" :
			       "short");
	fflush(stdout);
	any_short |= fine == 0;
}

/* ---- entries --------------------------------------------------------------------------------- */

static void entries_of(struct fw_str document)
{
	struct fw_parse_options o = {.now_ms = (int64_t)time(NULL) * 1000};
	struct fw_document *doc;
	size_t n = 0;

	if (fw_parse_into(&arena, document, &o, &doc, NULL))
		return;
	for (const struct fw_entry *e = doc->entries; e && n++ < OF_ONE_MAX; e = e->next) {
		if (entry_n == entry_cap) {
			entry_cap = entry_cap ? 2 * entry_cap : 1024;
			entry = checked(reallocarray(entry, entry_cap, sizeof(*entry)));
		}
		entry[entry_n++] = (struct fw_entry_row){.url = e->url,
			.title = e->title,
			.summary = e->summary,
			.content = e->content,
			.content_type = e->content_type};
	}
}

static void load(const char *folder)
{
	DIR *d = opendir(folder);
	char *p = checked(malloc(DOCUMENT_MAX)), path[2000];
	struct dirent *e;

	while (d && (e = readdir(d)) != NULL) {
		FILE *f = fw_snprintf(path, sizeof(path), "%s/%s", folder, e->d_name) && e->d_name[0] != '.' ?
			fopen(path, "rb") :
			NULL;

		if (!f)
			continue;
		entries_of(fw_arena_str(&arena, (struct fw_str){p, fread(p, 1, DOCUMENT_MAX, f)}));
		fclose(f);
	}
	if (d)
		closedir(d);
	free(p);
}

/* ---- orders ---------------------------------------------------------------------------------- */

static uint64_t random_state = 19;

/* xorshift64*, below n. */
static size_t below(size_t n)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (size_t)((random_state * UINT64_C(0x2545f4914f6cdd1d)) >> 33) % n;
}

struct words {
	struct fw_buf folded;
	struct query_token *token;
	size_t n, cap;
};

static void words_of(struct words *w, const struct fw_entry_row *e)
{
	struct fw_str rest;

	fw_buf_reset(&w->folded);
	query_words_title(&w->folded, e->title);
	fw_buf_addc(&w->folded, ' ');
	query_words_body(&w->folded, e->summary, e->content, (int)e->content_type);
	rest = fw_buf_str(&w->folded);
	for (w->n = 0;; w->n++) {
		if (w->n == w->cap) {
			w->cap = w->cap ? 2 * w->cap : 1024;
			w->token = checked(reallocarray(w->token, w->cap, sizeof(*w->token)));
		}
		if (!query_token_next(&rest, &w->token[w->n]))
			break;
	}
}

static void words_finish(struct words *w)
{
	free(w->token);
	fw_buf_finish(&w->folded);
}

static void word_add(struct fw_buf *b, const struct words *w, size_t at)
{
	fw_buf_add(b, w->token[at].text, w->token[at].len);
}

static bool words_have(const struct words *w, const struct query_token *t)
{
	for (size_t i = 0; i < w->n; i++) {
		if (w->token[i].len == t->len && memcmp(w->token[i].text, t->text, t->len) == 0)
			return true;
	}
	return false;
}

static void order_write(struct fw_buf *b, const struct words *in, const struct words *out, size_t number)
{
	fw_buf_reset(b);
	for (int i = 0; i < MUST_N; i++) {
		size_t at = below(in->n);
		bool phrase = i == 0 && number % 10 == 0 && at + 1 < in->n, prefix = i == 0 && number % 10 == 1;

		fw_buf_adds(b, phrase ? "\"" : "");
		word_add(b, in, at);
		if (phrase) {
			fw_buf_addc(b, ' ');
			word_add(b, in, at + 1);
		}
		fw_buf_adds(b, phrase ? "\" " : prefix && in->token[at].len > 3 ? "* " : " ");
	}
	for (int i = 0; i < NOT_N; i++) {
		size_t at = below(out->n);

		for (size_t tries = 0; tries < out->n && words_have(in, &out->token[at]); tries++)
			at = (at + 1) % out->n;
		fw_buf_adds(b, i ? " -" : "-");
		word_add(b, out, at);
	}
}

/* Leave out entries that have too few words for an order. */
static void entries_select(void)
{
	struct words w = {0};
	size_t n = 0;

	for (size_t i = 0; i < entry_n; i++) {
		words_of(&w, &entry[i]);
		if (w.n > MUST_N)
			entry[n++] = entry[i];
	}
	entry_n = n;
	words_finish(&w);
}

static void orders_make(size_t n)
{
	struct words in = {0}, out = {0};
	struct fw_buf text = FW_BUF_INIT(0);
	struct fw_err err;

	order = checked(calloc(n, sizeof(*order)));
	for (order_n = 0; order_n < n; order_n++) {
		words_of(&in, &entry[below(entry_n)]);
		if (order_n % 8 == 0)
			words_of(&out, &entry[below(entry_n)]);
		order_write(&text, &in, &out, order_n);
		if (query_parse(&arena, fw_buf_str(&text), 0, &order[order_n], &err))
			die(err.text);
	}
	words_finish(&in);
	words_finish(&out);
	fw_buf_finish(&text);
}

/* ---- figures --------------------------------------------------------------------------------- */

static struct match_set *set_of(size_t n, size_t learn_n, struct query_scratch *s)
{
	struct match_set *set = checked(match_set_create());
	struct fw_err err;

	for (size_t i = 0; i < n; i++) {
		if (match_set_add(set, i, order[i], &err))
			die(err.text);
	}
	for (size_t i = 0; i < learn_n; i++) {
		struct query_subject subject = {.entry = &entry[below(entry_n)]};

		query_scratch_set(s, &subject);
		match_set_learn(set, s);
	}
	if (match_set_finish(set, &err))
		die(err.text);
	return set;
}

static int on_count(void *ctx, uint64_t number)
{
	(void)number;
	++*(uint64_t *)ctx;
	return 0;
}

/* Entries a second; of an entry *match_n: matches, *checked_n: orders that were looked at. */
static double speed(struct match_set *set, struct query_scratch *s, double seconds, double *match_n, double *checked_n)
{
	double from = now_s(), took = 0;
	uint64_t matches = 0;
	size_t n = 0;

	while (took < seconds || n < entry_n) {
		struct query_subject subject = {.entry = &entry[n % entry_n]};

		query_scratch_set(s, &subject);
		if (match_set_run(set, s, on_count, &matches))
			die("out of memory");
		if (++n % 64 == 0 || n >= entry_n)
			took = now_s() - from;
	}
	*match_n = (double)matches / (double)n;
	*checked_n = (double)match_set_checked_n(set) / (double)n;
	return (double)n / took;
}

static void speed_row(size_t n, size_t learn_n, double seconds, double least)
{
	struct query_scratch *s = checked(query_scratch_create());
	struct match_set *set = set_of(n, learn_n, s);
	double match_n, checked_n, rate = speed(set, s, seconds, &match_n, &checked_n);
	char name[100], ours[32], reference[32], goal[32] = "-";

	fw_snprintf(
		name, sizeof(name), "%zu orders: entries/s on one core%s", n, learn_n ? ", with learned entries" : "");
	fw_snprintf(ours, sizeof(ours), "%.0f", rate);
	if (least > 0)
		fw_snprintf(goal, sizeof(goal), ">=%.0f", least);
	row(name, ours, "-", "-", goal, least > 0 ? rate >= least : -1);
	fw_snprintf(ours, sizeof(ours), "%.1f", match_n);
	fw_snprintf(reference, sizeof(reference), "%.1f", checked_n);
	row("  matches of an entry (reference: orders looked at)", ours, reference, "-", "-", -1);
	match_set_destroy(set);
	query_scratch_destroy(s);
}

/* Entry by entry without orders: what the words alone cost. */
static void words_row(double seconds)
{
	struct query_scratch *s = checked(query_scratch_create());
	struct match_set *set = checked(match_set_create());
	struct fw_arena a;
	struct query_node *q;
	double match_n, checked_n;
	char ours[32];

	fw_arena_init(&a, 0);
	if (query_parse(&a, FW_STR("zzzzzzzzzz"), 0, &q, NULL) || match_set_add(set, 1, q, NULL) ||
		match_set_finish(set, NULL))
		die("out of memory");
	fw_snprintf(ours, sizeof(ours), "%.0f", speed(set, s, seconds, &match_n, &checked_n));
	row("1 order: entries/s on one core", ours, "-", "-", "-", -1);
	match_set_destroy(set);
	query_scratch_destroy(s);
	fw_arena_finish(&a);
}

static size_t heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static void memory_row(size_t n)
{
	struct query_scratch *s = checked(query_scratch_create());
	size_t before = heap_bytes();
	struct match_set *set = set_of(n, 0, s);
	double heap = (double)(heap_bytes() - before) / (double)n, own = (double)match_set_bytes(set) / (double)n;
	char ours[32], reference[32];

	fw_snprintf(ours, sizeof(ours), "%.0f", heap);
	fw_snprintf(reference, sizeof(reference), "%.0f", own);
	row("bytes of the heap for an order (reference: as counted)", ours, reference, "-", "<=300", heap <= 300);
	match_set_destroy(set);
	query_scratch_destroy(s);
}

static int on_mark(void *ctx, uint64_t number)
{
	((unsigned char *)ctx)[number]++;
	return 0;
}

static void truth_row(size_t sample)
{
	struct query_scratch *s = checked(query_scratch_create());
	struct match_set *set = set_of(order_n, 0, s);
	unsigned char *found = checked(malloc(order_n));
	size_t match_n = 0, missing = 0, wrong = 0;
	char ours[32], reference[32];

	for (size_t i = 0; i < sample; i++) {
		struct query_subject subject = {.entry = &entry[below(entry_n)]};

		memset(found, 0, order_n);
		query_scratch_set(s, &subject);
		if (match_set_run(set, s, on_mark, found))
			die("out of memory");
		for (size_t k = 0; k < order_n; k++) {
			bool matches = query_matches(order[k], s);

			match_n += matches;
			missing += matches && !found[k];
			wrong += found[k] > matches;
		}
	}
	fw_snprintf(ours, sizeof(ours), "%zu + %zu", missing, wrong);
	fw_snprintf(reference, sizeof(reference), "%zu", match_n);
	row("matches missing + wrong, beside query_matches() of each", ours, reference, "-", "0 + 0",
		!missing && !wrong);
	free(found);
	match_set_destroy(set);
	query_scratch_destroy(s);
}

int main(int argc, char **argv)
{
	size_t n = size_of("ORDERS", 225000, 2000), sample = size_of("SAMPLE", 60, 5), bytes = 0;
	double seconds = (double)size_of("SECONDS", 3, 1) * (getenv("TINY") ? 0.05 : 1);
	const char *folder = argc > 1 ? argv[1] : "../shared/corpus/open";

	fw_arena_init(&arena, 0);
	load(folder);
	entries_select();
	if (!entry_n && argc < 2) {
		folder = "tests/cases";
		load(folder);
		entries_select();
	}
	if (!entry_n)
		die("no entries here: name a folder that holds feeds");
	for (size_t i = 0; i < entry_n; i++)
		bytes += entry[i].title.len + entry[i].summary.len + entry[i].content.len;
	orders_make(n);
	printf("# %zu entries of %zu bytes on average, from %s\n", entry_n, bytes / entry_n, folder);
	printf("%-58s %13s %13s %8s %8s\n", "# name", "ours", "reference", "ratio", "goal");
	words_row(seconds);
	speed_row(FW_MAX(n / 100, (size_t)1), 0, seconds, 0);
	speed_row(n, 0, seconds, 10000);
	speed_row(n, 1000, seconds, 0);
	memory_row(n);
	truth_row(sample);
	fw_arena_finish(&arena);
	free(entry);
	free(order);
	return any_short;
}
