/* SPDX-License-Identifier: ISC */
/*
 * bench_parse [FOLDER]: compares the tokenizer and the whole parse with expat without handlers, on
 * real feeds in memory; sanitising with python3-feedparser's; the memory of documents; and the cost
 * of hostile shapes by size.
 *
 * One row per figure: name, ours, reference, ratio, goal, ok or short. Rounds alternate, times are
 * CPU seconds of the thread, the ratio is the median of the rounds' ratios. Exit status 1: a row is
 * short.
 */
#include <dirent.h>
#include <expat.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/utf8.h"
#include "parse/charset/charset.h"
#include "parse/html/sanitize.h"
#include "parse/parse.h"
#include "parse/xml/xml.h"
#include "../tests/unit/parse/heap.h"
#include "../tests/unit/parse/shapes.h"

#define ROUNDS_MAX 9
#define SMALL 8192

struct doc {
	char *p;
	size_t n;
	char name[256];
	bool common; /* UTF-8, and accepted by expat */
};

/* The sizes of the measurements; with TINY=1 they only show that it works. */
static size_t rounds = ROUNDS_MAX, their_rounds = 3, shape_bytes = (size_t)1 << 20;
static bool any_short;

static struct doc *docs;
static size_t doc_n;
static const char *folder;
static int64_t today_ms; /* dates are checked against it */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return v[n / 2];
}

/* ---- empty handlers -------------------------------------------------------------------------- */

static int on_start(void *ctx, const struct fw_xml_name *name, const struct fw_xml_attr *a, size_t n)
{
	(void)name, (void)a;
	*(size_t *)ctx += 1 + n;
	return 0;
}

static int on_end(void *ctx, const struct fw_xml_name *name)
{
	(void)name;
	++*(size_t *)ctx;
	return 0;
}

static int on_text(void *ctx, struct fw_str text, bool cdata)
{
	(void)cdata;
	*(size_t *)ctx += text.len;
	return 0;
}

static void XMLCALL their_start(void *ctx, const XML_Char *name, const XML_Char **atts)
{
	(void)name, (void)atts;
	++*(size_t *)ctx;
}

static void XMLCALL their_end(void *ctx, const XML_Char *name)
{
	(void)name;
	++*(size_t *)ctx;
}

static void XMLCALL their_text(void *ctx, const XML_Char *p, int n)
{
	(void)p;
	*(size_t *)ctx += (size_t)n;
}

static size_t sink, refused;

static void ours(const struct doc *d, struct fw_arena *a)
{
	static const struct fw_xml_handler h = {.start = on_start, .end = on_end, .text = on_text};
	struct fw_xml x = {.arena = a, .handler = &h, .ctx = &sink};
	struct fw_charset_result r;
	struct fw_err err;

	if (fw_charset_decode(a, (struct fw_str){d->p, d->n}, FW_STR_NONE, &r, &err) ||
		fw_xml_parse(&x, r.text.p, r.text.len, &err))
		fprintf(stderr, "bench_parse: %s\n", err.text);
	fw_arena_reset(a, 1 << 16);
}

static void whole(const struct doc *d, struct fw_arena *a)
{
	struct fw_parse_options o = {.now_ms = today_ms};
	struct fw_document *doc;
	struct fw_err err;

	if (fw_parse_into(a, (struct fw_str){d->p, d->n}, &o, &doc, &err))
		refused++;
	fw_arena_reset(a, 1 << 18);
}

/* The whole parse, and all content sanitised. */
static void sanitised(const struct doc *d, struct fw_arena *a)
{
	struct fw_parse_options o = {.now_ms = today_ms};
	struct fw_document *doc;
	struct fw_buf out = FW_BUF_INIT(0);
	struct fw_err err;

	if (fw_parse_into(a, (struct fw_str){d->p, d->n}, &o, &doc, &err))
		doc = NULL;
	for (const struct fw_entry *e = doc ? doc->entries : NULL; e; e = e->next) {
		fw_buf_reset(&out);
		if (fw_html_sanitize(e->content, e->content_base, 0, &out, NULL))
			fprintf(stderr, "bench_parse: %s: not sanitised\n", d->name);
		sink += out.len;
	}
	fw_buf_finish(&out);
	fw_arena_reset(a, 1 << 18);
}

static bool expat(const struct doc *d)
{
	XML_Parser x = XML_ParserCreate(NULL);
	bool ok;

	XML_SetUserData(x, &sink);
	XML_SetElementHandler(x, their_start, their_end);
	XML_SetCharacterDataHandler(x, their_text);
	ok = XML_Parse(x, d->p, (int)d->n, 1) == XML_STATUS_OK;
	XML_ParserFree(x);
	return ok;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void row(const char *name, const char *mine, const char *reference, double ratio, double goal, bool ok)
{
	printf("%-66s %12s %12s %8.2f %8.2f  %s\n", name, mine, reference, ratio, goal, ok ? "ok" : "short");
	any_short |= !ok;
}

typedef void reader(const struct doc *d, struct fw_arena *a);

static void speed(const char *name, reader *read, size_t max, double goal)
{
	double ratio[ROUNDS_MAX], a[ROUNDS_MAX], b[ROUNDS_MAX], bytes = 0;
	struct fw_arena arena;
	char mine[32], reference[32];
	size_t repeat;

	fw_arena_init(&arena, 0);
	for (size_t i = 0; i < doc_n; i++)
		bytes += docs[i].common && docs[i].n < max ? (double)docs[i].n : 0;
	repeat = bytes < 4e6 ? (size_t)(4e6 / (bytes + 1)) + 1 : 1;
	for (size_t k = 0; k < rounds; k++) {
		double t0 = now(), t1;

		for (size_t m = 0; m < repeat; m++) {
			for (size_t i = 0; i < doc_n; i++) {
				if (docs[i].common && docs[i].n < max)
					read(&docs[i], &arena);
			}
		}
		t1 = now();
		for (size_t m = 0; m < repeat; m++) {
			for (size_t i = 0; i < doc_n; i++) {
				if (docs[i].common && docs[i].n < max)
					(void)expat(&docs[i]);
			}
		}
		a[k] = t1 - t0;
		b[k] = now() - t1;
		ratio[k] = b[k] / a[k];
	}
	fw_arena_finish(&arena);
	bytes *= (double)repeat / 1e6;
	fw_snprintf(mine, sizeof(mine), "%.0f MB/s", bytes / median(a, rounds));
	fw_snprintf(reference, sizeof(reference), "%.0f MB/s", bytes / median(b, rounds));
	row(name, mine, reference, median(ratio, rounds), goal, median(ratio, rounds) >= goal);
}

/* ---- python3-feedparser ---------------------------------------------------------------------- */

struct reference {
	pid_t pid;
	FILE *to, *from;
};

/* Runs parse_ref.py in a process of its own, with a Python that has feedparser. */
static bool reference_start(struct reference *r)
{
	static const char *const script = "bench/parse_ref.py";
	int in[2], out[2];

	if (access(script, R_OK) != 0 || pipe(in) != 0)
		return false;
	if (pipe(out) != 0) {
		close(in[0]);
		close(in[1]);
		return false;
	}
	r->pid = fork();
	if (r->pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		close(out[0]);
		execlp("sh", "sh", "-c",
			"for p in python3 /usr/bin/python3; do $p -c 'import feedparser' 2>/dev/null && exec"
			" $p \"$0\"; done; exit 3",
			script, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	r->to = fdopen(in[1], "w");
	r->from = fdopen(out[0], "r");
	return r->pid > 0 && r->to && r->from;
}

/* The time for all documents once. False: feedparser is not installed. */
static bool reference_round(const struct reference *r, double *seconds, unsigned *entries)
{
	char line[100];
	struct fw_str rest, first;

	if (fputs("go\n", r->to) < 0 || fflush(r->to) != 0 || !fgets(line, sizeof(line), r->from))
		return false;
	first = fw_str_split(fw_str_trim(fw_str(line)), ' ', &rest);
	*entries = (unsigned)strtoul(rest.p ? rest.p : "0", NULL, 10);
	return fw_str_double(first, seconds);
}

static void beside_feedparser(void)
{
	double ratio[ROUNDS_MAX], a[ROUNDS_MAX], b[ROUNDS_MAX], bytes = 0;
	char mine[32], theirs[32];
	struct reference r = {0};
	struct fw_arena arena;
	unsigned entries = 0;
	size_t k = 0;

	fw_arena_init(&arena, 0);
	if (reference_start(&r)) {
		for (size_t i = 0; i < doc_n; i++) {
			if (docs[i].common && fprintf(r.to, "%s/%s\n", folder, docs[i].name) > 0)
				bytes += (double)docs[i].n / 1e6;
		}
		fputs("\n", r.to);
		for (; k < their_rounds && reference_round(&r, &b[k], &entries); k++) {
			double t = now();

			for (size_t i = 0; i < doc_n; i++) {
				if (docs[i].common)
					sanitised(&docs[i], &arena);
			}
			a[k] = now() - t;
			ratio[k] = b[k] / a[k];
		}
	}
	if (r.to)
		fclose(r.to);
	if (r.from)
		fclose(r.from);
	if (r.pid > 0)
		waitpid(r.pid, NULL, 0);
	fw_arena_finish(&arena);
	if (k < their_rounds) {
		printf("# python3-feedparser is not here (tools/deps.sh bench): not compared with it\n");
		return;
	}
	fw_snprintf(mine, sizeof(mine), "%.0f MB/s", bytes / median(a, k));
	fw_snprintf(theirs, sizeof(theirs), "%.1f MB/s", bytes / median(b, k));
	row("parse and sanitise / python3-feedparser, sanitising", mine, theirs, median(ratio, k), 20,
		median(ratio, k) >= 20);
	printf("# in which it finds %u entries\n", entries);
}

/*
 * The document that needs most memory, as a part of its limit: twice its bytes and 64 KiB. All
 * memory counts: see heap.h.
 */
static void memory(void)
{
	struct fw_parse_options o = {.now_ms = today_ms};
	char mine[32], reference[32];
	double worst = 0, part;
	size_t at = 0, most = 0, took;
	struct fw_document *doc;

	for (size_t i = 0; i < doc_n; i++) {
		heap_begin();
		if (fw_parse(docs[i].p, docs[i].n, &o, &doc, NULL))
			doc = NULL;
		took = heap_end();
		fw_document_free(doc);
		part = (double)took / (2.0 * (double)docs[i].n + 65536);
		if (part > worst) {
			worst = part;
			most = took;
			at = i;
		}
	}
	fw_snprintf(mine, sizeof(mine), "%zu KiB", most / 1024);
	fw_snprintf(reference, sizeof(reference), "%zu KiB", docs[at].n / 1024);
	row("memory / (2 x document + 64 KiB), worst", mine, reference, worst, 1, worst <= 1);
}

/* ---- hostile shapes -------------------------------------------------------------------------- */

#define SHAPE_GROWTH 8
#define SHAPE_ROUNDS 2
#define SHAPE_ROUNDS_MAX 25

/* As ours(), for text that is UTF-8 already, with the limits that feeds are parsed with. */
static void tokenized(const struct doc *d, struct fw_arena *a)
{
	static const struct fw_xml_handler h = {.start = on_start, .end = on_end, .text = on_text};
	struct fw_xml x = {.arena = a, .handler = &h, .ctx = &sink};
	struct fw_err err;

	if (fw_xml_parse(&x, d->p, d->n, &err))
		fprintf(stderr, "bench_parse: %s\n", err.text);
	fw_arena_reset(a, 1 << 16);
}

static void least(double *of, double t)
{
	*of = FW_MIN(*of, t);
}

static double seconds(reader *read, const struct doc *d, size_t n, struct fw_arena *a)
{
	double t = now();

	for (size_t i = 0; i < n; i++)
		read(&d[i], a);
	return now() - t;
}

/* Two plain walks. */
static void walked(const struct doc *d, struct fw_arena *a)
{
	(void)a;
	for (int i = 0; i < 2; i++)
		sink += memchr(d->p, 4, d->n) != NULL;
}

/*
 * One document of 8 MB against eight of 1 MB: the same number of bytes, from memory that is as far
 * away, into memory that was used before. Other work on the machine can only add time, most of all
 * to the case that needs more cache: the minimum of each counts, and a row that is too large is
 * measured again. Work that grows faster than the document shows each time.
 *
 * Shapes that are read at some GB/s show the memory instead: all walks of a small document but the
 * first find it in the second-level cache, those of a large one never do. That difference is
 * measured with two plain walks over the same bytes, and subtracted.
 */
static void shape_row(const struct shape *s, reader *read, const char *what)
{
	struct shape_text t = shape_build(s, shape_bytes * SHAPE_GROWTH);
	struct doc large = {.p = t.p, .n = t.n}, small[SHAPE_GROWTH];
	double a = 1e9, b = 1e9, bare_a = 1e9, bare_b = 1e9, small_mb = 0, large_mb = (double)t.n / 1e6;
	char name[80], mine[32], reference[32];
	struct fw_arena arena;

	for (size_t i = 0; i < SHAPE_GROWTH; i++) {
		t = shape_build(s, shape_bytes);
		small[i] = (struct doc){.p = t.p, .n = t.n};
		small_mb += (double)t.n / 1e6;
	}
	fw_arena_init(&arena, 0);
	seconds(read, &large, 1, &arena);
	for (size_t k = 0; k < SHAPE_ROUNDS || (k < SHAPE_ROUNDS_MAX && a - FW_MAX(bare_a - bare_b, 0) > 1.2 * b);
		k++) {
		least(&b, seconds(read, small, SHAPE_GROWTH, &arena) / small_mb);
		least(&a, seconds(read, &large, 1, &arena) / large_mb);
		least(&bare_b, seconds(walked, small, SHAPE_GROWTH, &arena) / small_mb);
		least(&bare_a, seconds(walked, &large, 1, &arena) / large_mb);
	}
	a -= FW_MAX(bare_a - bare_b, 0);
	fw_arena_finish(&arena);
	fw_snprintf(name, sizeof(name), "%zu kB / %zu kB, %s: %s", shape_bytes * SHAPE_GROWTH >> 10, shape_bytes >> 10,
		what, s->name);
	fw_snprintf(mine, sizeof(mine), "%.2f ms/MB", a * 1e3);
	fw_snprintf(reference, sizeof(reference), "%.2f ms/MB", b * 1e3);
	row(name, mine, reference, a / b, 1.2, a <= 1.2 * b);
	for (size_t i = 0; i < SHAPE_GROWTH; i++)
		free(small[i].p);
	free(large.p);
}

static void linear(void)
{
	for (size_t i = 0; i < FW_N(XML_SHAPES); i++)
		shape_row(&XML_SHAPES[i], tokenized, "tokens");
	for (size_t i = 0; i < FW_N(FEED_SHAPES); i++)
		shape_row(&FEED_SHAPES[i], whole, "parse");
	for (size_t i = 0; i < FW_N(JSON_SHAPES); i++)
		shape_row(&JSON_SHAPES[i], whole, "parse");
}

/* ---- documents ------------------------------------------------------------------------------- */

static void load(void)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	char path[2000];

	while (d && (e = readdir(d)) != NULL) {
		FILE *f = fw_snprintf(path, sizeof(path), "%s/%s", folder, e->d_name) && e->d_name[0] != '.' ?
			fopen(path, "rb") :
			NULL;
		struct doc one = {.p = malloc((size_t)8 << 20)};
		void *p;

		if (f && one.p)
			one.n = fread(one.p, 1, (size_t)8 << 20, f);
		if (f)
			fclose(f);
		p = realloc(one.p, one.n + 1);
		one.p = p ? p : one.p;
		one.common = one.n && fw_utf8_valid(one.p, one.n) == one.n && expat(&one);
		(void)fw_snprintf(one.name, sizeof(one.name), "%s", e->d_name);
		p = one.n ? realloc(docs, (doc_n + 1) * sizeof(*docs)) : NULL;
		if (!p) {
			free(one.p);
			continue;
		}
		docs = p;
		docs[doc_n++] = one;
	}
	if (d)
		closedir(d);
}

int main(int argc, char **argv)
{
	folder = argc > 1 ? argv[1] : "../shared/corpus/open";
	if (getenv("TINY")) {
		rounds = their_rounds = 1;
		shape_bytes = (size_t)1 << 13;
	}
	today_ms = (int64_t)time(NULL) * 1000;
	signal(SIGPIPE, SIG_IGN);
	/* memory is kept once allocated: page faults are the system's cost, not the parser's */
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
	load();
	printf("%-66s %12s %12s %8s %8s\n", "figure", "ours", "reference", "ratio", "goal");
	if (doc_n) {
		speed("tokenizer / expat", ours, SIZE_MAX, 4.4);
		speed("tokenizer / expat, under 8 KB", ours, SMALL, 4.0);
		speed("whole parse / expat's walk", whole, SIZE_MAX, 1.9);
		if (refused)
			printf("# not a feed: %zu readings\n", refused);
		beside_feedparser();
		memory();
	} else {
		printf("# no feeds in %s: name a folder that holds some\n", folder);
	}
	linear();
	for (size_t i = 0; i < doc_n; i++)
		free(docs[i].p);
	free(docs);
	return any_short;
}
