/* SPDX-License-Identifier: ISC */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "bench.h"

struct settings set = {
	.feeds = 1000000, .entries = 100000, .entries_large = 500000, .minutes = 2, .runs = 3, .seconds = 3};
int short_n;

bool wanted(const char *part)
{
	return !set.only || strcmp(set.only, part) == 0;
}

void die(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fputs("bench_store: ", stderr);
	vfprintf(stderr, format, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(2);
}

void die_of(const char *what, const struct fw_err *err)
{
	die("%s: %s", what, err->text);
}

/* ---- alternating with other work ------------------------------------------------------------- */

static int lock_file(const char *name)
{
	char path[300];
	int fd = fw_snprintf(path, sizeof(path), "%s/%s", set.turns, name) ?
		open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644) :
		-1;

	if (fd < 0)
		die("--turns %s: %s in it cannot be opened", set.turns, name);
	return fd;
}

static int quiet = -1, held;

/* A process that waits for the second lock holds the first, so that none overtakes it. */
static void take(int how)
{
	int turn;

	if (!set.turns)
		return;
	if (quiet < 0)
		quiet = lock_file("quiet.lock");
	flock(quiet, LOCK_UN);
	turn = lock_file("turn.lock");
	if (flock(turn, LOCK_EX) || flock(quiet, how))
		die("--turns %s: its files cannot be locked", set.turns);
	close(turn);
	held = how;
}

void turn_pause(void)
{
	if (held != LOCK_SH)
		return;
	flock(quiet, LOCK_UN);
	usleep(50000);
	if (flock(quiet, LOCK_SH))
		die("--turns %s: its file cannot be locked", set.turns);
}

void turn_load(void)
{
	if (held == LOCK_SH)
		turn_pause();
	else
		take(LOCK_SH);
}

void turn_measure(void)
{
	if (held != LOCK_EX)
		take(LOCK_EX);
}

/* ---- figures --------------------------------------------------------------------------------- */

double now_s(void)
{
	return (double)fw_mono_us() / 1e6;
}

uint64_t mix(uint64_t x)
{
	return fw_hash64(&x, sizeof(x));
}

void sample(struct samples *s, double v)
{
	if (s->n < SAMPLES_MAX)
		s->v[s->n++] = v;
}

static int by_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double median(const struct samples *s)
{
	static struct samples sorted; /* large */

	sorted = *s;
	qsort(sorted.v, sorted.n, sizeof(*sorted.v), by_double);
	return sorted.n ? sorted.v[sorted.n / 2] : 0;
}

void row_head(const char *words)
{
	printf("\n# %s\n%-66s %12s %12s %8s %-13s %-15s\n", words, "# name", "ours", "reference", "ratio", "goal",
		"unit");
	fflush(stdout);
}

static void print(const char *name, double ours, double reference, double ratio, const char *goal, const char *unit,
	const char *word)
{
	char ref[30] = "-", times[30] = "-";

	if (reference > 0 &&
		(!fw_snprintf(ref, sizeof(ref), "%.1f", reference) ||
			!fw_snprintf(times, sizeof(times), "%.2f", ratio)))
		die("%s: the figure is too long", name);
	printf("%-66s %12.1f %12s %8s %-13s %-15s %s\n", name, ours, ref, times, goal, unit, word);
	fflush(stdout);
}

static const char *verdict(bool fine)
{
	short_n += !fine;
	return fine ? "ok" : "short";
}

static const char *goal_text(const char *format, double goal)
{
	static char text[40];

	if (!fw_snprintf(text, sizeof(text), "%s%.6g%s", format[0] == '<' ? "<=" : ">=", goal, format + 1))
		die("the goal is too long");
	return text;
}

void row(const char *name, double ours, const char *unit)
{
	print(name, ours, 0, 0, "-", unit, "-");
}

void row_least(const char *name, double ours, double reference, double goal, const char *unit)
{
	print(name, ours, reference, reference > 0 ? ours / reference : 0, goal_text(">", goal), unit,
		verdict(ours >= goal));
}

void row_most(const char *name, double ours, double goal, const char *unit)
{
	print(name, ours, 0, 0, goal_text("<", goal), unit, verdict(ours <= goal));
}

void row_at_most(const char *name, double ours, double reference, double goal, const char *unit)
{
	double ratio = reference > 0 ? ours / reference : 0;

	print(name, ours, reference, ratio, goal_text("<x", goal), unit, verdict(ratio <= goal));
}

static void row_with_goal(const char *name, double ours, double reference, double ratio, double goal, const char *unit)
{
	print(name, ours, reference, ratio, goal > 0 ? goal_text(">x", goal) : "-", unit,
		goal > 0 ? verdict(ratio >= goal) : "-");
}

void row_ratio(
	const char *name, const struct samples *ours, const struct samples *reference, double goal, const char *unit)
{
	static struct samples ratio; /* large */

	ratio.n = 0;
	for (size_t i = 0; i < ours->n && i < reference->n; i++)
		sample(&ratio, reference->v[i] > 0 ? ours->v[i] / reference->v[i] : 0);
	row_with_goal(name, median(ours), median(reference), median(&ratio), goal, unit);
}

void row_ratio1(const char *name, double ours, double reference, double goal, const char *unit)
{
	row_with_goal(name, ours, reference, reference > 0 ? ours / reference : 0, goal, unit);
}

/* ---- generated entries ----------------------------------------------------------------------- */

/*
 * Pages of generated prose in HTML. Word frequencies follow Zipf's law over about 30,000 words, as
 * in real blogs.
 */
static struct fw_buf prose;

void make_prose(void)
{
	static const char *const tags[] = {
		"<p>", "</p>\n", "<b>", "</b>", "<a href=\"https://www.example.org/2026/11/", "\">", "</a>"};

	for (uint64_t i = 0; prose.len < (size_t)8 << 20; i++) {
		uint64_t r = mix(i),
			 rank = (UINT64_C(1) << (r >> 32) % 15) + (r >> 40) % (UINT64_C(1) << (r >> 32) % 15),
			 w = mix(rank);

		if (r % 13 == 0)
			fw_buf_adds(&prose, tags[(r >> 8) % FW_N(tags)]);
		for (unsigned k = 0; k < 2 + w % 9; k++)
			fw_buf_addc(&prose, "etaoinshrdlucmfwypvbgkjqxz"[(w >> (4 + k * 5)) % 32 % 26]);
		fw_buf_addc(&prose, ' ');
	}
}

void make_entry(struct fw_entry_row *e, int64_t feed, int64_t n, size_t bytes, struct fw_arena *a)
{
	struct fw_hash128 h = fw_hash128((int64_t[]){feed, n}, 16);
	size_t len = bytes / 2 + mix((uint64_t)(feed * 1000 + n)) % bytes, title = mix((uint64_t)n) % 4000000;

	*e = (struct fw_entry_row){.hash = mix((uint64_t)n), .content_type = FW_TEXT_HTML, .updated_ms = FW_NO_DATE};
	memcpy(e->key, h.b, sizeof(e->key));
	e->published_ms = NOW - (int64_t)(mix((uint64_t)(feed + n)) % 1000) * HOUR;
	e->guid = fw_str(fw_arena_printf(
		a, "https://www.host-%lld.example/2026/11/an-article-%lld", (long long)feed, (long long)n));
	e->url = e->guid;
	e->title = fw_str_sub(fw_buf_str(&prose), title, title + 50);
	e->author = FW_STR("A. Writer");
	e->content = fw_str_sub(fw_buf_str(&prose), (size_t)(mix((uint64_t)(feed * 7919 + n)) % 7000000), SIZE_MAX);
	e->content.len = len;
}
