/* SPDX-License-Identifier: ISC */
/*
 * A feed's rhythm is learned from the dates of its entries, not from what visits happen to find. So
 * the frequency of polls does not bias it.
 *
 * Kept data: the last 48 publications, merged over documents, so that a feed that shows one entry
 * at a time is learned over many visits. A publication within ten minutes of a known one belongs to
 * it, and the older date stays; so a feed polled every few minutes is learned like the same feed
 * polled once a day. Also kept: how many publications fell into each hour of the week; older weeks
 * count less.
 *
 * The model is a point process. The chance that something is published in the next minute is
 *
 *	weight of the hour of the week  x  rate after a silence of this length.
 *
 * Weights are counts divided by the time watched, shrunk towards coarser estimates by PULL_*
 * pseudo-counts: an hour of the week towards hour of the day x day of the week, these towards an
 * even week. With few data the week is even. Dates at exactly 00:00:00 UTC are days without a time
 * and do not count.
 *
 * Rates come from the gaps between publications, measured in weighted time and sorted into classes
 * that grow by the square root of two. The rate of a class is the number of gaps that ended in it,
 * divided by the time that all gaps spent in it: a life table. The current silence counts as a gap
 * that has not ended. Rates shrink towards the mean rate by PULL_GAP. A burst is a high rate after
 * a short silence; a daily feed has a high rate after a day. The table ends at the class that
 * hardly any gap reached, so that one holiday does not count. Beyond it the rate falls as one over
 * the silence: dead feeds fade out.
 *
 * A visit is worthwhile when the publications expected since the last visit reach the target, and
 * at least once per mean gap, because a quiet hour may be a wrong guess. The target is for a feed
 * with one publication a day; it grows with the feed's rate to the power LEAN. With LEAN 0, visits
 * are shared out in proportion to entries (least median delay); with 0.5, to the square root (least
 * mean delay). 0.3 comes close to both (tools/simulate).
 */
#include <assert.h>
#include <math.h>

#include "base/clock.h"
#include "base/str.h"
#include "sched/due.h"
#include "sched/rhythm.h"
#include "sched/trust.h"

#define EVENT_MINUTES 10
#define MAX_MINUTE (INT64_C(1) << 40)
#define MAX_AGE_MINUTES (10 * 366 * 24 * 60) /* older entries tell nothing about today */
#define WEEK_MINUTES (FW_RHYTHM_HOURS * 60)
#define COUNT_ONE 8 /* weight of one publication in hour[] */
/* two letters; six publications an hour, over eight weeks, make 384 */
#define COUNT_MAX 4095
#define WEEK_DECAY 0.875 /* share of the counts that is kept each week */
/* pseudo-counts: hour of the day and day of the week towards an even week */
#define PULL_HOUR 0.5
#define PULL_BIN 3.0 /* pseudo-counts: hour of the week towards its hour and day */
#define PULL_GAP 0.5
#define GAP_DECAY 0.9      /* 0.9^7 = 1/2: after seven more publications a gap counts half */
#define GAP_MIN_HOURS 0.05 /* hours; shorter gaps count as this long */
/* a class is in the table if this share of the gaps, and at least one, reached it */
#define TAIL_SHARE 0.15
/* publications expected beyond the table while the silence grows e-fold */
#define TAIL_N 0.5
#define LEAN 0.3

/* ---- text ------------------------------------------------------------------------------------ */

static bool rhythm_number_parse(struct fw_str s, int64_t min, int64_t max, int64_t *out)
{
	int64_t v;

	if (!fw_str_int(s, &v) || v < min || v > max)
		return false;
	*out = v;
	return true;
}

static bool rhythm_hex_parse(struct fw_str s, uint32_t max, uint32_t *out)
{
	uint32_t v = 0;

	if (s.len == 0 || s.len > 6)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		int d = fw_hexval((unsigned char)s.p[i]);

		if (d < 0)
			return false;
		v = v << 4 | (uint32_t)d;
	}
	*out = v;
	return v <= max;
}

static void read_gaps(struct fw_str s, struct fw_rhythm *r)
{
	while (s.p && r->n && r->n < FW_RHYTHM_EVENTS) {
		int64_t gap;

		if (!rhythm_number_parse(fw_str_split(s, ',', &s), 1, MAX_AGE_MINUTES, &gap))
			return;
		r->event[r->n] = r->event[r->n - 1] - gap;
		r->n++;
	}
}

/*
 * Two letters for each hour of the week, the higher digit first. A dot and a letter: a run of empty
 * hours, one more than the letter's value.
 */
static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static bool letter_value(char c, unsigned *out)
{
	const char *at = c ? memchr(LETTERS, c, 64) : NULL;

	*out = at ? (unsigned)(at - LETTERS) : 0;
	return at != NULL;
}

static void read_hours(struct fw_str s, uint16_t hour[FW_RHYTHM_HOURS])
{
	size_t at = 0;

	for (size_t i = 0; i + 1 < s.len && at < FW_RHYTHM_HOURS; i += 2) {
		unsigned high, low;

		if (!letter_value(s.p[i + 1], &low))
			return;
		if (s.p[i] == '.')
			at += low + 1;
		else if (letter_value(s.p[i], &high))
			hour[at++] = (uint16_t)(high << 6 | low);
		else
			return;
	}
}

/* At most 2 * FW_RHYTHM_HOURS letters and a NUL; empty hours at the end are left out. */
static void write_hours(const uint16_t hour[FW_RHYTHM_HOURS], char out[2 * FW_RHYTHM_HOURS + 1])
{
	size_t len = 0, empty = 0;

	for (size_t i = 0; i < FW_RHYTHM_HOURS; i++) {
		if (!hour[i]) {
			empty++;
			continue;
		}
		for (size_t n; empty; empty -= n) {
			n = FW_MIN(empty, (size_t)64);
			out[len++] = '.';
			out[len++] = LETTERS[n - 1];
		}
		out[len++] = LETTERS[hour[i] >> 6 & 63];
		out[len++] = LETTERS[hour[i] & 63];
	}
	out[len] = '\0';
}

/* Level, time of the check, time of the denial: all or none. */
static void read_trust(struct fw_str s, struct fw_rhythm *r)
{
	struct fw_str rest, level = fw_str_split(s, ',', &rest), checked = fw_str_split(rest, ',', &rest);
	int64_t n[3];

	if (!rhythm_number_parse(level, FW_TRUST_MIN, FW_TRUST_MAX, &n[0]) ||
		!rhythm_number_parse(checked, 0, MAX_MINUTE, &n[1]) || !rhythm_number_parse(rest, 0, MAX_MINUTE, &n[2]))
		return;
	r->trust = (int)n[0];
	r->checked = n[1];
	r->denied = n[2];
}

void fw_rhythm_read(struct fw_str text, struct fw_rhythm *out)
{
	struct fw_str rest = text, value, word = fw_str_split(rest, ' ', &rest);
	uint32_t days;

	*out = (struct fw_rhythm){.ttl_minutes = FW_NO_NUMBER, .update_period_minutes = FW_NO_NUMBER};
	if (!fw_str_eq(word, FW_STR("v1")) && !fw_str_eq(word, FW_STR("v2")))
		return;
	while (rest.p) {
		word = fw_str_split(rest, ' ', &rest);
		word = fw_str_split(word, '=', &value);
		if (!value.p)
			continue;
		if (fw_str_eq(word, FW_STR("ttl")))
			(void)rhythm_number_parse(value, INT32_MIN, INT32_MAX, &out->ttl_minutes);
		else if (fw_str_eq(word, FW_STR("sy")))
			(void)rhythm_number_parse(value, INT32_MIN, INT32_MAX, &out->update_period_minutes);
		else if (fw_str_eq(word, FW_STR("sh")) && !rhythm_hex_parse(value, 0xffffff, &out->skip_hours))
			out->skip_hours = 0;
		else if (fw_str_eq(word, FW_STR("sd")) && rhythm_hex_parse(value, 0x7f, &days))
			out->skip_days = (uint8_t)days;
		else if (fw_str_eq(word, FW_STR("tr")))
			read_trust(value, out);
		else if (fw_str_eq(word, FW_STR("at")))
			out->n = rhythm_number_parse(value, 0, MAX_MINUTE, &out->event[0]);
		else if (fw_str_eq(word, FW_STR("from")))
			(void)rhythm_number_parse(value, 0, MAX_MINUTE, &out->from);
		else if (fw_str_eq(word, FW_STR("w")))
			read_hours(value, out->hour);
		else if (fw_str_eq(word, FW_STR("g")))
			read_gaps(value, out);
	}
	/* v1 or damaged: counted anew as dates arrive */
	if (!out->n || !out->from || out->from > out->event[0]) {
		out->from = 0;
		memset(out->hour, 0, sizeof(out->hour));
	}
}

/* Appends text if it fits as a whole; returns whether it did. */
static bool rhythm_append(char out[FW_RHYTHM_MAX], size_t *len, const char *text)
{
	size_t n = strlen(text);

	if (*len + n >= FW_RHYTHM_MAX)
		return false;
	memcpy(out + *len, text, n + 1);
	*len += n;
	return true;
}

size_t fw_rhythm_write(const struct fw_rhythm *r, char out[FW_RHYTHM_MAX])
{
	char word[60], hours[2 * FW_RHYTHM_HOURS + 1];
	size_t len = 0;

	assert(r->n <= FW_RHYTHM_EVENTS);
	(void)rhythm_append(out, &len, "v2");
	if (r->ttl_minutes != FW_NO_NUMBER && fw_snprintf(word, sizeof(word), " ttl=%lld", (long long)r->ttl_minutes))
		(void)rhythm_append(out, &len, word);
	if (r->update_period_minutes != FW_NO_NUMBER &&
		fw_snprintf(word, sizeof(word), " sy=%lld", (long long)r->update_period_minutes))
		(void)rhythm_append(out, &len, word);
	if (r->skip_hours && fw_snprintf(word, sizeof(word), " sh=%x", (unsigned)r->skip_hours))
		(void)rhythm_append(out, &len, word);
	if (r->skip_days && fw_snprintf(word, sizeof(word), " sd=%x", (unsigned)r->skip_days))
		(void)rhythm_append(out, &len, word);
	if (r->checked &&
		fw_snprintf(
			word, sizeof(word), " tr=%d,%lld,%lld", r->trust, (long long)r->checked, (long long)r->denied))
		(void)rhythm_append(out, &len, word);
	if (r->n && r->from && fw_snprintf(word, sizeof(word), " from=%lld", (long long)r->from))
		(void)rhythm_append(out, &len, word);
	if (r->n && fw_snprintf(word, sizeof(word), " at=%lld", (long long)r->event[0]))
		(void)rhythm_append(out, &len, word);
	write_hours(r->hour, hours);
	/* at most 475 bytes so far: only the oldest gaps may not fit */
	if (r->n && r->from && hours[0])
		(void)(rhythm_append(out, &len, " w=") && rhythm_append(out, &len, hours));
	for (size_t i = 1; i < r->n; i++) {
		if (!fw_snprintf(word, sizeof(word), "%s%lld", i == 1 ? " g=" : ",",
			    (long long)(r->event[i - 1] - r->event[i])) ||
			!rhythm_append(out, &len, word))
			break;
	}
	if (len > 2)
		return len;
	out[0] = '\0'; /* nothing to store */
	return 0;
}

/* ---- learning -------------------------------------------------------------------------------- */

/*
 * Dates that the server generated at the request: three or more equal ones within an hour of now,
 * or any within this minute. A single true date looks the same; it is learned when the feed shows
 * it again.
 */
static bool dates_are_generated(const int64_t *dates, size_t n, int64_t now_ms)
{
	int64_t around = n < 3 ? FW_MINUTE_MS : FW_HOUR_MS;

	for (size_t i = 0; i < n; i++) {
		if (dates[i] <= now_ms - around || dates[i] >= now_ms + around ||
			dates[i] / FW_MINUTE_MS != dates[0] / FW_MINUTE_MS)
			return false;
	}
	return true;
}

/* Count a publication that is newer than all counted ones. last: the newest of these; 0: none. */
static void hour_count(struct fw_rhythm *r, int64_t last, int64_t at)
{
	size_t bin = (size_t)(at / 60 % FW_RHYTHM_HOURS);

	if (!r->from)
		r->from = at;
	for (int64_t weeks = last ? FW_MIN(at / WEEK_MINUTES - last / WEEK_MINUTES, 64) : 0; weeks > 0; weeks--) {
		for (size_t i = 0; i < FW_RHYTHM_HOURS; i++)
			r->hour[i] = (uint16_t)(r->hour[i] * WEEK_DECAY);
	}
	if (at % (24 * 60)) /* otherwise a day without a time */
		r->hour[bin] = (uint16_t)FW_MIN(r->hour[bin] + COUNT_ONE, COUNT_MAX);
}

/* Insert into a descending list; a full list drops its smallest. */
static void dates_insert(int64_t *list, size_t *n, size_t max, int64_t v)
{
	size_t i = *n;

	assert(*n <= max);
	while (i > 0 && list[i - 1] < v)
		i--;
	if (i == max || (i > 0 && list[i - 1] == v))
		return;
	if (*n < max)
		++*n;
	memmove(list + i + 1, list + i, (*n - 1 - i) * sizeof(*list));
	list[i] = v;
}

/* Is it a known publication, or within ten minutes of one? */
static bool event_is_known(const struct fw_rhythm *r, int64_t at)
{
	for (size_t i = 0; i < r->n && r->event[i] > at - EVENT_MINUTES; i++) {
		if (r->event[i] < at + EVENT_MINUTES)
			return true;
	}
	return false;
}

/*
 * Forget publications in the future (the clock was set back) and very old ones; documents will show
 * them again.
 */
static void events_prune(struct fw_rhythm *r, int64_t now)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++) {
		if (r->event[i] <= now && r->event[i] > now - MAX_AGE_MINUTES)
			r->event[n++] = r->event[i];
	}
	r->n = n;
	if (!r->n || r->from > now) {
		r->from = 0;
		memset(r->hour, 0, sizeof(r->hour));
	}
}

bool fw_rhythm_add(struct fw_rhythm *r, const int64_t *dates, size_t n, int64_t now_ms)
{
	int64_t fresh[4 * FW_RHYTHM_EVENTS], now = now_ms / FW_MINUTE_MS, counted;
	size_t fresh_n = 0;
	bool any = false;

	if (dates_are_generated(dates, n, now_ms))
		return false;
	if (r->n && (r->event[0] > now || r->event[r->n - 1] <= now - MAX_AGE_MINUTES))
		events_prune(r, now);
	for (size_t i = 0; i < n; i++) {
		int64_t at = dates[i] / FW_MINUTE_MS;

		/* up to an hour ahead: a wrong time zone or clock */
		if (dates[i] > 0 && at <= now + 60 && at > now - MAX_AGE_MINUTES && !event_is_known(r, FW_MIN(at, now)))
			dates_insert(fresh, &fresh_n, FW_N(fresh), FW_MIN(at, now));
	}
	if (!r->from && fresh_n) { /* form v1 counted no hours: count its publications too */
		for (size_t i = 0; i < r->n; i++)
			dates_insert(fresh, &fresh_n, FW_N(fresh), r->event[i]);
		r->n = 0;
	}
	counted = r->n ? r->event[0] : 0;
	for (size_t i = fresh_n; i-- > 0;) { /* oldest first */
		if (event_is_known(r, fresh[i]))
			continue;
		if (fresh[i] > counted) {
			hour_count(r, counted, fresh[i]);
			counted = fresh[i];
		}
		dates_insert(r->event, &r->n, FW_RHYTHM_EVENTS, fresh[i]);
		any = true;
	}
	return any;
}

size_t fw_rhythm_learn(struct fw_str old, const int64_t *dates, size_t n, const struct fw_due_facts *hints,
	int64_t now_ms, char out[FW_RHYTHM_MAX])
{
	struct fw_rhythm r;

	fw_rhythm_read(old, &r);
	if (hints) {
		r.ttl_minutes = hints->ttl_minutes == FW_NO_NUMBER ?
			FW_NO_NUMBER :
			FW_MAX(FW_MIN(hints->ttl_minutes, INT32_MAX), INT32_MIN);
		r.update_period_minutes = hints->update_period_minutes == FW_NO_NUMBER ?
			FW_NO_NUMBER :
			FW_MAX(FW_MIN(hints->update_period_minutes, INT32_MAX), INT32_MIN);
		r.skip_hours = hints->skip_hours & 0xffffff;
		r.skip_days = hints->skip_days & 0x7f;
	}
	(void)fw_rhythm_add(&r, dates, n, now_ms);
	return fw_rhythm_write(&r, out);
}

/* ---- the week -------------------------------------------------------------------------------- */

/* How many hours each hour of the week was watched; past weeks decay as the counts do. */
static void hours_watched(const struct fw_rhythm *r, double hours[FW_RHYTHM_HOURS])
{
	int64_t weeks = FW_MAX(r->event[0] / WEEK_MINUTES - r->from / WEEK_MINUTES, 0);
	size_t last = (size_t)(r->event[0] / 60 % FW_RHYTHM_HOURS), first = (size_t)(r->from / 60 % FW_RHYTHM_HOURS);
	double oldest = pow(WEEK_DECAY, (double)weeks),
	       between = weeks > 1 ? (WEEK_DECAY - oldest) / (1 - WEEK_DECAY) : 0;

	for (size_t i = 0; i < FW_RHYTHM_HOURS; i++) {
		if (weeks)
			hours[i] = (i <= last ? 1 : 0) + between + (i >= first ? oldest : 0);
		else
			hours[i] = i >= first && i <= last ? 1 : 0;
	}
}

/* Smooth over the neighbours: publications come around an hour, not exactly in it. */
static void hours_smooth(const double *in, double *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (in[(i + n - 1) % n] + 2 * in[i] + in[(i + 1) % n]) / 4;
}

/* The weight of each hour of the week; the mean is 1. Cost: about 600 divisions. */
static void hours_weigh(const struct fw_rhythm *r, double weight[FW_RHYTHM_HOURS])
{
	double n[FW_RHYTHM_HOURS], hours[FW_RHYTHM_HOURS], day_n[7] = {0}, day_hours[7] = {0}, hour_n[24] = {0},
							   hour_hours[24] = {0};
	double raw[FW_RHYTHM_HOURS], raw_hours[FW_RHYTHM_HOURS], all = 0, all_hours = 0, sum = 0, mean;

	hours_watched(r, raw_hours);
	for (size_t i = 0; i < FW_RHYTHM_HOURS; i++)
		raw[i] = r->hour[i] / (double)COUNT_ONE;
	hours_smooth(raw, n, FW_RHYTHM_HOURS);
	hours_smooth(raw_hours, hours, FW_RHYTHM_HOURS);
	for (size_t i = 0; i < FW_RHYTHM_HOURS; i++) {
		hour_n[i % 24] += n[i];
		hour_hours[i % 24] += hours[i];
		all += n[i];
		all_hours += hours[i];
	}
	mean = all > 0 && all_hours > 0 ? all / all_hours : 0;
	for (size_t i = 0; i < 24; i++)
		hour_n[i] = mean > 0 ? (hour_n[i] + PULL_HOUR) / (hour_hours[i] * mean + PULL_HOUR) : 1;
	/* a day is compared with what its hours predict */
	for (size_t i = 0; i < FW_RHYTHM_HOURS; i++) {
		day_n[i / 24] += n[i];
		day_hours[i / 24] += hours[i] * mean * hour_n[i % 24];
	}
	for (size_t i = 0; i < 7; i++)
		day_n[i] = (day_n[i] + PULL_HOUR) / (day_hours[i] + PULL_HOUR);
	for (size_t i = 0; i < FW_RHYTHM_HOURS; i++) {
		double usual = hour_n[i % 24] * day_n[i / 24];

		weight[i] = mean > 0 ? usual * (n[i] + PULL_BIN) / (hours[i] * mean * usual + PULL_BIN) : 1;
		sum += weight[i];
	}
	for (size_t i = 0; i < FW_RHYTHM_HOURS; i++)
		weight[i] *= FW_RHYTHM_HOURS / sum;
}

/* Weighted hours from 1970 to this minute. */
static double weighted_hours(const struct fw_rhythm_model *m, int64_t minute)
{
	int64_t week = minute / WEEK_MINUTES, in = minute % WEEK_MINUTES;
	size_t hour = (size_t)(in / 60);

	return (double)week * FW_RHYTHM_HOURS + m->week[hour] +
		(m->week[hour + 1] - m->week[hour]) * (double)(in % 60) / 60;
}

/* ---- silences -------------------------------------------------------------------------------- */

/* Where each class of silence ends, in hours: 2^(i/2) / 4; the last has no end. */
static const double GAP_END[FW_RHYTHM_GAPS] = {0.25, 0.353553, 0.5, 0.707107, 1, 1.414214, 2, 2.828427, 4, 5.656854, 8,
	11.313708, 16, 22.627417, 32, 45.254834, 64, 90.509668, 128, 181.019336, 256, 362.038672, 512, 724.077344, 1024,
	1448.154688, 2048, INFINITY};

static void gap_add(struct fw_rhythm_model *m, double gap, double weight)
{
	double begin = 0;

	for (size_t i = 0; i < FW_RHYTHM_GAPS; begin = GAP_END[i++]) {
		m->gap_hours[i] += weight * (FW_MIN(gap, GAP_END[i]) - begin);
		if (gap < GAP_END[i]) {
			m->gap_n[i] += weight;
			break;
		}
	}
}

/* Find where the table ends, and sum up the classes before. */
static void gap_table_end(struct fw_rhythm_model *m)
{
	double all = 0, reach;

	for (size_t i = 0; i < FW_RHYTHM_GAPS; i++)
		all += m->gap_n[i];
	for (reach = all; m->tail < FW_RHYTHM_GAPS - 1 && reach >= FW_MAX(TAIL_SHARE * all, 1.0 - 1e-9); m->tail++) {
		m->n += m->gap_n[m->tail];
		m->hours += m->gap_hours[m->tail];
		reach -= m->gap_n[m->tail];
	}
}

void fw_rhythm_model(const struct fw_rhythm *r, struct fw_rhythm_model *out)
{
	double weight[FW_RHYTHM_HOURS], at, before, keep = 1;

	*out = (struct fw_rhythm_model){0};
	if (!r->n)
		return;
	out->last = r->event[0];
	hours_weigh(r, weight);
	for (size_t i = 0; i < FW_RHYTHM_HOURS; i++)
		out->week[i + 1] = out->week[i] + weight[i];
	at = weighted_hours(out, r->event[0]);
	for (size_t i = 1; i < r->n; i++, keep *= GAP_DECAY, at = before) {
		before = weighted_hours(out, r->event[i]);
		gap_add(out, at - before, keep);
	}
	gap_table_end(out);
}

/* ---- guesses --------------------------------------------------------------------------------- */

/*
 * A walk ends with this much left. Reaching the exact sum might take for ever where sums have 80
 * bits (i386).
 */
#define WALK_MIN_HOURS 1e-9

/*
 * Walks forward in time, in pieces in which neither the hour of the week nor the class of silence
 * changes.
 */
struct rhythm_walk {
	const struct fw_rhythm_model *m;
	double at;      /* hours since 1970 */
	double silence; /* weighted hours */
	size_t hour, class;
	/* weighted hours between publications, the current silence included as a gap */
	double mean;
	double weight; /* weight of the hour */
};

static double gap_class_start(size_t i)
{
	/* i may be the number of classes: then the tail starts there */
	assert(i <= FW_RHYTHM_GAPS);
	return i ? GAP_END[i - 1] : 0;
}

static void walk_start(struct rhythm_walk *w, const struct fw_rhythm_model *m, int64_t at_ms)
{
	/* the clock may have been set back */
	int64_t minute = FW_MAX(at_ms / FW_MINUTE_MS, m->last);

	*w = (struct rhythm_walk){.m = m, .at = (double)minute / 60, .hour = (size_t)(minute / 60 % FW_RHYTHM_HOURS)};
	w->silence = weighted_hours(m, minute) - weighted_hours(m, m->last);
	while (w->silence >= GAP_END[w->class])
		w->class ++;
	w->weight = m->week[w->hour + 1] - m->week[w->hour];
	w->mean = (m->hours + FW_MIN(w->silence, gap_class_start(m->tail))) / FW_MAX(m->n, 1.0);
}

/*
 * Observed rate, mixed with a prior for what was never observed: the mean rate, lower after time in
 * which a publication would have been seen.
 */
static double gap_class_rate(const struct rhythm_walk *w, size_t class, double spent)
{
	double n = w->m->gap_n[class], hours = w->m->gap_hours[class] + spent,
	       unseen = PULL_GAP / (hours + PULL_GAP * w->mean);

	return n > 0 ? (n * n / FW_MAX(hours, n * GAP_MIN_HOURS) + PULL_GAP * unseen) / (n + PULL_GAP) : unseen;
}

/* Publications per weighted hour, now. */
static double walk_rate(const struct rhythm_walk *w)
{
	size_t tail = w->m->tail;
	double end = gap_class_start(tail), wait;

	if (w->class < tail)
		return gap_class_rate(w, w->class, w->silence - gap_class_start(w->class));
	wait = tail ? 1 / gap_class_rate(w, tail - 1, end - gap_class_start(tail - 1)) : 1;
	return 1 / (wait + (w->silence - end) / TAIL_N);
}

/*
 * Advance to the next change, at most `most` hours. Returns the publications expected on the way;
 * *hours: how far it went.
 */
static double walk_advance(struct rhythm_walk *w, double max_hours, double *hours)
{
	double whole = floor(w->at) + 1, to_hour = whole - w->at,
	       to_class = (GAP_END[w->class] - w->silence) / w->weight;
	double by = FW_MIN(FW_MIN(to_hour, to_class), max_hours), rate = walk_rate(w);

	*hours = by;
	w->silence += by * w->weight;
	if (by >= to_class)
		w->silence = FW_MAX(w->silence, GAP_END[w->class ++]);
	if (by >= to_hour) {
		w->at = whole;
		w->hour = (w->hour + 1) % FW_RHYTHM_HOURS;
	} else {
		w->at += by;
	}
	rate *= by * w->weight;
	w->weight = w->m->week[w->hour + 1] - w->m->week[w->hour];
	return rate;
}

double fw_rhythm_expected(const struct fw_rhythm_model *m, int64_t from_ms, int64_t to_ms)
{
	double left = (double)(to_ms - from_ms) / FW_HOUR_MS, sum = 0, by;
	struct rhythm_walk w;

	if (!m->last || from_ms < 0 || to_ms <= from_ms)
		return 0;
	for (walk_start(&w, m, from_ms); left > WALK_MIN_HOURS; left -= by)
		sum += walk_advance(&w, left, &by);
	return sum;
}

void fw_rhythm_guess(
	const struct fw_rhythm_model *m, int64_t now_ms, double target, int64_t max_ms, struct fw_rhythm_guess *out)
{
	double sum = 0, hours = 0, max_hours = (double)max_ms / FW_HOUR_MS, silence, gap;
	struct rhythm_walk w;

	*out = (struct fw_rhythm_guess){0};
	if (!m->last)
		return;
	walk_start(&w, m, now_ms);
	out->silence_ms = FW_MAX(now_ms - m->last * FW_MINUTE_MS, 0);
	if (m->n <= 0 && out->silence_ms < FW_DAY_MS) /* one recent entry alone tells nothing yet */
		return;
	silence = w.silence;
	gap = FW_MAX(FW_MAX(m->n > 0 ? m->hours / m->n : 0, silence / 2), 1.0 / 60);
	out->gap_ms = (int64_t)(gap * FW_HOUR_MS);
	target *= pow(24 / gap, LEAN);
	max_hours = FW_MIN(max_hours, gap);
	out->quiet = w.weight < 0.25;
	out->burst = m->n >= 2 && out->silence_ms < out->gap_ms / 4 && walk_rate(&w) * w.weight > 3 / gap;
	while (max_hours - hours > WALK_MIN_HOURS) {
		double by, more = walk_advance(&w, max_hours - hours, &by);

		if (sum + more >= target) {
			hours += by * (target - sum) / more;
			break;
		}
		sum += more;
		hours += by;
	}
	out->interval_ms = FW_MAX((int64_t)(FW_MIN(hours, max_hours) * FW_HOUR_MS), FW_MINUTE_MS);
}
