/* SPDX-License-Identifier: ISC */
/*
 * Two worlds. The synthetic world is generated from a seed, feed by feed, and is the same each
 * time. Publication rates follow Zipf's law. Three in ten feeds are silent. Most have hours and
 * days (offices, evenings, a time of day) in some time zone. A third publish in bursts. Half of the
 * servers send max-age, three in four send 304.
 *
 * The trace holds the dates of real feed documents. A document shows a number of entries, of one
 * day or of ten years. So each feed is watched over the later half of its publications, with the
 * former half known, and a weight makes all these times equally long. (Less than a day counts as a
 * day, or a few lucky hours would decide.) Skipped are feeds with fewer than eight publications, a
 * later half of less than three hours, dates without a time of day, or the same dates as another
 * feed.
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "parse/parse.h"
#include "sim.h"

#define START_MS INT64_C(1795392000000) /* Monday, 2026-11-23 */
#define MAX_RATE 100.0
#define MAX_FILE (16 << 20)
#define CLUMP_MS (10 * FW_MINUTE_MS)
#define TRACE_LEAST 8
#define TRACE_LEAST_MS (3 * FW_HOUR_MS)

uint64_t sim_random(uint64_t *seed)
{
	uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

double sim_uniform(uint64_t *seed)
{
	return (double)(sim_random(seed) >> 11) / (double)(UINT64_C(1) << 53);
}

static double exponential(uint64_t *seed, double mean)
{
	return -mean * log(1 - sim_uniform(seed));
}

static bool life_add_date(struct life *l, int64_t at_ms)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 256;
		int64_t *more = realloc(l->date, cap * sizeof(*more));

		if (!more)
			return false;
		l->date = more;
		l->cap = cap;
	}
	l->date[l->n++] = at_ms;
	return true;
}

static int date_compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

void life_free(struct life *life)
{
	free(life->date);
	*life = (struct life){0};
}

/* ---- the synthetic world --------------------------------------------------------------------- */

enum habit { HABIT_NONE, HABIT_OFFICE, HABIT_EVENING, HABIT_CLOCK };

/* How active an hour of the week is, at most 1; the week starts on Monday, local time. */
static double habit_activity(enum habit habit, int day, int hour)
{
	bool weekend = day >= 5;

	if (habit == HABIT_OFFICE)
		return (hour >= 8 && hour < 19 ? 1 : hour >= 6 && hour < 23 ? 0.25 : 0.02) * (weekend ? 0.25 : 1);
	if (habit == HABIT_EVENING)
		return weekend ? (hour >= 9 ? 1 : 0.05) : hour >= 18 ? 0.8 : hour >= 7 ? 0.1 : 0.02;
	return 1;
}

static double habit_mean(enum habit habit)
{
	double sum = 0;

	for (int i = 0; i < FW_RHYTHM_HOURS; i++)
		sum += habit_activity(habit, i / 24, i % 24);
	return sum / FW_RHYTHM_HOURS;
}

void world_zipf(struct world *w, size_t feeds, int64_t days, uint64_t seed)
{
	double sum = 0;

	*w = (struct world){.name = "zipf", .feeds = feeds, .days = days, .seed = seed, .rate = 0.7, .zipf = 0.9};
	for (size_t i = 1; i <= feeds; i++)
		sum += pow((double)i, -w->zipf);
	w->top = w->rate * (double)feeds / sum;
}

/* A Poisson process with this rate, thinned out by the hour; bursts follow some publications. */
static bool publish_poisson(struct life *l, uint64_t *rnd, double per_day, enum habit habit, double zone_hours,
	double followers, int64_t from_ms)
{
	double peak = per_day / habit_mean(habit) / (1 + followers), at = (double)from_ms / FW_HOUR_MS;

	for (;;) {
		int64_t local, hour;

		at += exponential(rnd, 24 / peak);
		if (at * FW_HOUR_MS >= (double)l->end_ms)
			return true;
		local = (int64_t)floor(at + zone_hours);
		hour = (local + 72) % FW_RHYTHM_HOURS; /* 1970 began on a Thursday */
		if (sim_uniform(rnd) >= habit_activity(habit, (int)(hour / 24), (int)(hour % 24)))
			continue;
		for (double when = at; when * FW_HOUR_MS < (double)l->end_ms; when += exponential(rnd, 0.4)) {
			if (!life_add_date(l, (int64_t)(when * FW_HOUR_MS)))
				return false;
			if (sim_uniform(rnd) >= followers / (1 + followers))
				break;
		}
	}
}

/* At the same time each day, within a few minutes; some days without. */
static bool publish_daily(struct life *l, uint64_t *rnd, double per_day, int64_t from_ms)
{
	int64_t first = (int64_t)(sim_uniform(rnd) * FW_DAY_MS),
		step = (int64_t)(FW_DAY_MS / FW_MAX(floor(per_day + 0.5), 1.0));
	double often = FW_MIN(per_day, 1.0);

	for (int64_t at = from_ms - from_ms % FW_DAY_MS + first; at < l->end_ms; at += step) {
		if (sim_uniform(rnd) < often &&
			!life_add_date(l, at + (int64_t)((sim_uniform(rnd) - 0.5) * 10 * FW_MINUTE_MS)))
			return false;
	}
	return true;
}

/* Nothing for months. */
static bool publish_silent(struct life *l, uint64_t *rnd)
{
	int64_t at = l->start_ms - (int64_t)((60 + 2000 * sim_uniform(rnd)) * FW_DAY_MS);

	for (int i = 0; i < 15; i++, at -= (int64_t)exponential(rnd, 10.0 * FW_DAY_MS)) {
		if (!life_add_date(l, at))
			return false;
	}
	return true;
}

static int64_t fresh_of(double u)
{
	return u < 0.5   ? FW_NO_NUMBER :
		u < 0.6  ? 0 :
		u < 0.7  ? 5 * FW_MINUTE_MS :
		u < 0.8  ? 15 * FW_MINUTE_MS :
		u < 0.92 ? FW_HOUR_MS :
		u < 0.98 ? 6 * FW_HOUR_MS :
			   FW_DAY_MS;
}

static bool zipf_feed(const struct world *w, size_t i, struct life *l)
{
	static const double ZONE[] = {-8, -5, -3, 0, 1, 1, 2, 3, 5.5, 8, 9};
	uint64_t rnd = w->seed * UINT64_C(0xd1342543de82ef95) + i;
	double per_day = FW_MIN(w->top * pow((double)i + 1, -w->zipf), MAX_RATE), followers, kind, back;
	bool ok;

	(void)sim_random(&rnd);
	l->n = 0;
	l->start_ms = START_MS;
	l->end_ms = START_MS + w->days * FW_DAY_MS;
	l->weight = 1;
	l->shown = 10 + (size_t)(sim_uniform(&rnd) * 20);
	l->fresh_ms = fresh_of(sim_uniform(&rnd));
	l->validators = sim_uniform(&rnd) < 0.75;
	kind = sim_uniform(&rnd);
	followers = sim_uniform(&rnd) < 0.33 ? 1.5 : 0;
	back = FW_MAX(FW_MIN((double)l->shown / per_day, 400.0), 1.0);
	if (sim_uniform(&rnd) < 0.3)
		ok = publish_silent(l, &rnd);
	else if (kind < 0.1)
		ok = publish_daily(l, &rnd, per_day, l->start_ms - (int64_t)(back * FW_DAY_MS));
	else
		ok = publish_poisson(l, &rnd, per_day,
			kind < 0.35        ? HABIT_NONE :
				kind < 0.8 ? HABIT_OFFICE :
					     HABIT_EVENING,
			ZONE[sim_random(&rnd) % FW_N(ZONE)], followers, l->start_ms - (int64_t)(back * FW_DAY_MS));
	qsort(l->date, l->n, sizeof(*l->date), date_compare);
	l->seed = sim_random(&rnd);
	return ok;
}

/* ---- the trace ------------------------------------------------------------------------------- */

static bool dates_of(struct fw_arena *a, struct fw_str bytes, struct life *l)
{
	struct fw_document *doc;

	if (fw_parse_into(a, bytes, NULL, &doc, NULL))
		return true;
	for (const struct fw_entry *e = doc->entries; e; e = e->next) {
		int64_t at = e->published_ms != FW_NO_DATE ? e->published_ms : e->updated_ms;

		if (at != FW_NO_DATE && at > 0 && !life_add_date(l, at))
			return false;
	}
	return true;
}

/* From the dates shown to the time watched; false: too little. */
static bool cut_trace(struct life *l, int64_t days)
{
	size_t clumps = 0, middle, days_only = 0;

	if (!l->n)
		return false;
	qsort(l->date, l->n, sizeof(*l->date), date_compare);
	for (size_t i = 0; i < l->n; i++) {
		clumps += !i || l->date[i] - l->date[i - 1] >= CLUMP_MS;
		days_only += l->date[i] % FW_DAY_MS == 0;
	}
	middle = l->n / 2;
	l->end_ms = l->date[l->n - 1];
	l->start_ms = FW_MAX(l->date[middle], l->end_ms - days * FW_DAY_MS);
	l->shown = l->n;
	l->weight = (double)days * FW_DAY_MS / (double)FW_MAX(l->end_ms - l->start_ms, FW_DAY_MS);
	l->fresh_ms = FW_NO_NUMBER;
	l->validators = true;
	return clumps >= TRACE_LEAST && l->end_ms - l->start_ms >= TRACE_LEAST_MS && 2 * days_only <= l->n;
}

static bool trace_is_duplicate(const struct world *w, const struct life *l)
{
	for (size_t i = 0; i < w->feeds; i++) {
		const struct life *other = &w->life[i];

		if (other->date[0] == l->date[0] && other->date[other->n - 1] == l->date[l->n - 1])
			return true;
	}
	return false;
}

static int read_file(struct fw_arena *a, const char *path, struct fw_str *out, struct fw_err *err)
{
	FILE *f = fopen(path, "rb");
	struct stat st;
	char *p;
	int rc = 0;

	*out = FW_STR_NONE;
	if (!f)
		return fw_err_set(err, FW_EIO, "cannot open %s", path);
	if (fstat(fileno(f), &st) || !S_ISREG(st.st_mode) || st.st_size > MAX_FILE)
		goto out;
	p = fw_arena_alloc(a, (size_t)st.st_size + 1);
	if (!p)
		rc = fw_err_set(err, FW_ENOMEM, "no memory to read %s", path);
	else if (fread(p, 1, (size_t)st.st_size, f) != (size_t)st.st_size)
		rc = fw_err_set(err, FW_EIO, "cannot read %s to its end", path);
	else
		*out = (struct fw_str){p, (size_t)st.st_size};
out:
	fclose(f);
	return rc;
}

static int trace_file(struct world *w, const char *path, int64_t days, struct fw_err *err)
{
	struct life l = {.seed = w->feeds};
	struct fw_arena a;
	struct fw_str bytes;
	int rc;

	fw_arena_init(&a, 0);
	rc = read_file(&a, path, &bytes, err);
	if (!rc && bytes.p && !dates_of(&a, bytes, &l))
		rc = fw_err_set(err, FW_ENOMEM, "no memory for the dates of %s", path);
	fw_arena_finish(&a);
	if (!rc && cut_trace(&l, days) && !trace_is_duplicate(w, &l))
		w->life[w->feeds++] = l;
	else
		life_free(&l);
	return rc;
}

int world_trace(struct world *w, const char *folder, int64_t days, uint64_t seed, struct fw_err *err)
{
	struct dirent **file = NULL;
	int n = scandir(folder, &file, NULL, alphasort), rc = 0;

	*w = (struct world){.name = "trace", .days = days, .seed = seed};
	if (n < 0)
		return fw_err_set(
			err, FW_ENOTFOUND, "'%s' is not a readable folder: name one with feed documents", folder);
	w->life = calloc((size_t)n + 1, sizeof(*w->life));
	if (!w->life)
		rc = fw_err_set(err, FW_ENOMEM, "no memory for %d feeds", n);
	for (int i = 0; i < n; i++) {
		char path[4096];

		if (!rc && file[i]->d_name[0] != '.' &&
			fw_snprintf(path, sizeof(path), "%s/%s", folder, file[i]->d_name))
			rc = trace_file(w, path, days, err);
		free(file[i]);
	}
	free(file);
	if (!rc && !w->feeds)
		rc = fw_err_set(err, FW_EFORMAT, "no document in %s has enough dates", folder);
	if (rc)
		world_free(w);
	return rc;
}

void world_free(struct world *w)
{
	for (size_t i = 0; i < w->feeds && w->life; i++)
		life_free(&w->life[i]);
	free(w->life);
	*w = (struct world){0};
}

bool world_feed(const struct world *w, size_t i, struct life *life)
{
	int64_t *date = life->date;
	size_t cap = life->cap;

	if (!w->life)
		return zipf_feed(w, i, life);
	*life = w->life[i % w->feeds];
	life->date = date;
	life->cap = cap;
	life->n = 0;
	for (size_t k = 0; k < w->life[i % w->feeds].n; k++) {
		if (!life_add_date(life, w->life[i % w->feeds].date[k]))
			return false;
	}
	life->seed = i * UINT64_C(0xd1342543de82ef95) + w->seed;
	return true;
}
