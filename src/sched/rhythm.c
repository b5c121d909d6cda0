/* SPDX-License-Identifier: ISC */
/*
 * The rhythm of a feed, learned from the dates its entries carry, not from what our visits happened to find: so how often we
 * ask does not bias what we learn.
 *
 * Kept are the last publications (up to 48), united with those a former document showed: a feed that carries one entry at a time
 * is learned over many visits. What comes within ten minutes of a publication that is known belongs to it; the older one stays,
 * so that a feed read every few minutes is learned as the same feed read once a day. And counted is, once for each publication,
 * the hour of the week it came in; older weeks count less.
 *
 * The model is a point process: the chance that something is published in the next minute is
 *
 *     weight of the hour of the week  x  rate after a silence of this length.
 *
 * The weights are counts over the time that was watched, drawn towards what is less particular by so many counts as PULL_*: a bin of
 * the week towards hour of the day x day of the week, these towards an even week. With few data the week is even; with many it is
 * as it was seen. Dates at exactly 00:00:00 UTC are days, not times, and say nothing of hours.
 *
 * The rate after a silence comes from the gaps between publications, measured in time so weighed and sorted into classes that grow
 * by the square root of two: how many gaps ended in a class, over the time all of them spent in it (a life table, with the silence
 * that goes on counted as what it is: a gap that has not ended). Drawn towards the mean rate by PULL_GAP. Bursts are a high rate
 * after a short silence, clocks a high rate after a day. Where hardly any gap was ever that long the table has an end: a lone
 * holiday is left out, and while a silence goes on beyond it, the rate falls as one over the silence: so feeds die away.
 *
 * A visit makes sense when as much is to be expected since the last one as the target says; and once in the time between two
 * publications at least, for "hardly ever at this hour" may be wrong. The target is that of a feed which publishes once a day;
 * it is greater for the busy and smaller for the slow by the power LEAN of their rate. With 0 the visits would be shared out
 * as entries are (the least median delay), with 0.5 by the square root (the least mean delay); 0.3 has nearly the one and nearly
 * the other (tools/simulate).
 */
#include <assert.h>
#include <math.h>

#include "base/clock.h"
#include "base/str.h"
#include "sched/due.h"
#include "sched/rhythm.h"
#include "sched/trust.h"
#include "base/banned.h"

#define EVENT_MINUTES 10
#define MAX_MINUTE (INT64_C(1) << 40)
#define MAX_AGE_MINUTES (10 * 366 * 24 * 60) /* older entries say nothing of today */
#define WEEK_MINUTES (FW_RHYTHM_HOURS * 60)
#define ONE 8                    /* a publication in hour[] */
#define ONE_MAX 4095             /* two letters; six an hour, remembered for eight weeks, are 384 */
#define KEEP_WEEK 0.875          /* of the counts, at the end of a week */
#define PULL_HOUR 0.5            /* counts that draw an hour of the day, or a day, to the even week */
#define PULL_BIN 3.0             /* counts that draw an hour of the week to its hour and its day */
#define PULL_GAP 0.5
#define KEEP_GAP 0.9             /* 0.9^7 = 1/2: so many publications later a gap counts half */
#define GAP_LEAST 0.05           /* hours: no gap is taken for shorter */
#define TAIL_SHARE 0.15          /* of the gaps, and one at least, have to reach a class for it to be in the table */
#define TAIL_N 0.5               /* publications to be expected in the silence beyond, while it grows e-fold */
#define LEAN 0.3

/* ---- text ------------------------------------------------------------------------------------------------------------------ */

static bool number(struct fw_str s, int64_t min, int64_t max, int64_t *out)
{
	int64_t v;

	if (!fw_str_int(s, &v) || v < min || v > max)
		return false;
	*out = v;
	return true;
}

static bool hex(struct fw_str s, uint32_t max, uint32_t *out)
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

		if (!number(fw_str_split(s, ',', &s), 1, MAX_AGE_MINUTES, &gap))
			return;
		r->event[r->n] = r->event[r->n - 1] - gap;
		r->n++;
	}
}

/* Each hour of the week is two letters, the first the greater; a dot and a letter stand for so many empty ones, and one more. */
static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static bool letter(char c, unsigned *out)
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

		if (!letter(s.p[i + 1], &low))
			return;
		if (s.p[i] == '.')
			at += low + 1;
		else if (letter(s.p[i], &high))
			hour[at++] = (uint16_t)(high << 6 | low);
		else
			return;
	}
}

/* At most 2 * FW_RHYTHM_HOURS letters and the NUL; the empty ones at the end are left out. */
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

/* Level, when checked, when denied: all of them, or none. */
static void read_trust(struct fw_str s, struct fw_rhythm *r)
{
	struct fw_str rest, level = fw_str_split(s, ',', &rest), checked = fw_str_split(rest, ',', &rest);
	int64_t n[3];

	if (!number(level, FW_TRUST_LIED, FW_TRUST_MAX, &n[0]) || !number(checked, 0, MAX_MINUTE, &n[1]) || !number(rest, 0, MAX_MINUTE, &n[2]))
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
			(void)number(value, INT32_MIN, INT32_MAX, &out->ttl_minutes);
		else if (fw_str_eq(word, FW_STR("sy")))
			(void)number(value, INT32_MIN, INT32_MAX, &out->update_period_minutes);
		else if (fw_str_eq(word, FW_STR("sh")) && !hex(value, 0xffffff, &out->skip_hours))
			out->skip_hours = 0;
		else if (fw_str_eq(word, FW_STR("sd")) && hex(value, 0x7f, &days))
			out->skip_days = (uint8_t)days;
		else if (fw_str_eq(word, FW_STR("tr")))
			read_trust(value, out);
		else if (fw_str_eq(word, FW_STR("at")))
			out->n = number(value, 0, MAX_MINUTE, &out->event[0]);
		else if (fw_str_eq(word, FW_STR("from")))
			(void)number(value, 0, MAX_MINUTE, &out->from);
		else if (fw_str_eq(word, FW_STR("w")))
			read_hours(value, out->hour);
		else if (fw_str_eq(word, FW_STR("g")))
			read_gaps(value, out);
	}
	if (!out->n || !out->from || out->from > out->event[0]) { /* v1, or torn: counted anew when dates come */
		out->from = 0;
		memset(out->hour, 0, sizeof(out->hour));
	}
}

/* Appends to out when it fits whole; false when it does not. */
static bool append(char out[FW_RHYTHM_MAX], size_t *len, const char *text)
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

	(void)append(out, &len, "v2");
	if (r->ttl_minutes != FW_NO_NUMBER && fw_snprintf(word, sizeof(word), " ttl=%lld", (long long)r->ttl_minutes))
		(void)append(out, &len, word);
	if (r->update_period_minutes != FW_NO_NUMBER && fw_snprintf(word, sizeof(word), " sy=%lld", (long long)r->update_period_minutes))
		(void)append(out, &len, word);
	if (r->skip_hours && fw_snprintf(word, sizeof(word), " sh=%x", (unsigned)r->skip_hours))
		(void)append(out, &len, word);
	if (r->skip_days && fw_snprintf(word, sizeof(word), " sd=%x", (unsigned)r->skip_days))
		(void)append(out, &len, word);
	if (r->checked && fw_snprintf(word, sizeof(word), " tr=%d,%lld,%lld", r->trust, (long long)r->checked, (long long)r->denied))
		(void)append(out, &len, word);
	if (r->n && r->from && fw_snprintf(word, sizeof(word), " from=%lld", (long long)r->from))
		(void)append(out, &len, word);
	if (r->n && fw_snprintf(word, sizeof(word), " at=%lld", (long long)r->event[0]))
		(void)append(out, &len, word);
	write_hours(r->hour, hours);
	if (r->n && r->from && hours[0]) /* at most 475 bytes so far: the oldest gaps are what may not fit */
		(void)(append(out, &len, " w=") && append(out, &len, hours));
	for (size_t i = 1; i < r->n; i++) {
		if (!fw_snprintf(word, sizeof(word), "%s%lld", i == 1 ? " g=" : ",", (long long)(r->event[i - 1] - r->event[i])) ||
		    !append(out, &len, word))
			break;
	}
	if (len > 2)
		return len;
	out[0] = '\0'; /* nothing to say */
	return 0;
}

/* ---- learning --------------------------------------------------------------------------------------------------------------- */

/*
 * Dates that were made when we asked: three or more that all are the same within this hour; or all of this very minute, be it one: that
 * one may be true, and then it is learned when it is shown again.
 */
static bool made_up(const int64_t *dates, size_t n, int64_t now_ms)
{
	int64_t around = n < 3 ? FW_MINUTE_MS : FW_HOUR_MS;

	for (size_t i = 0; i < n; i++) {
		if (dates[i] <= now_ms - around || dates[i] >= now_ms + around || dates[i] / FW_MINUTE_MS != dates[0] / FW_MINUTE_MS)
			return false;
	}
	return true;
}

/* Count a publication later than all that were counted. last: the newest of those; 0: it is the first. */
static void count(struct fw_rhythm *r, int64_t last, int64_t at)
{
	size_t bin = (size_t)(at / 60 % FW_RHYTHM_HOURS);

	if (!r->from)
		r->from = at;
	for (int64_t weeks = last ? FW_MIN(at / WEEK_MINUTES - last / WEEK_MINUTES, 64) : 0; weeks > 0; weeks--) {
		for (size_t i = 0; i < FW_RHYTHM_HOURS; i++)
			r->hour[i] = (uint16_t)(r->hour[i] * KEEP_WEEK);
	}
	if (at % (24 * 60)) /* else a day without a time */
		r->hour[bin] = (uint16_t)FW_MIN(r->hour[bin] + ONE, ONE_MAX);
}

/* Insert into a list that falls; the smallest drops out when it is full. */
static void insert(int64_t *list, size_t *n, size_t max, int64_t v)
{
	size_t i = *n;

	while (i > 0 && list[i - 1] < v)
		i--;
	if (i == max || (i > 0 && list[i - 1] == v))
		return;
	if (*n < max)
		++*n;
	memmove(list + i + 1, list + i, (*n - 1 - i) * sizeof(*list));
	list[i] = v;
}

/* Is it, or does it belong to, one that is known? */
static bool known(const struct fw_rhythm *r, int64_t at)
{
	for (size_t i = 0; i < r->n && r->event[i] > at - EVENT_MINUTES; i++) {
		if (r->event[i] < at + EVENT_MINUTES)
			return true;
	}
	return false;
}

/* What lies ahead (the clock was put back) and what is too old is forgotten: the document will show it again. */
static void forget(struct fw_rhythm *r, int64_t now)
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

bool fw_rhythm_see(struct fw_rhythm *r, const int64_t *dates, size_t n, int64_t now_ms)
{
	int64_t fresh[4 * FW_RHYTHM_EVENTS], now = now_ms / FW_MINUTE_MS, counted;
	size_t fresh_n = 0;
	bool any = false;

	if (made_up(dates, n, now_ms))
		return false;
	if (r->n && (r->event[0] > now || r->event[r->n - 1] <= now - MAX_AGE_MINUTES))
		forget(r, now);
	for (size_t i = 0; i < n; i++) {
		int64_t at = dates[i] / FW_MINUTE_MS;

		if (dates[i] > 0 && at <= now + 60 && at > now - MAX_AGE_MINUTES && !known(r, FW_MIN(at, now))) /* an hour ahead is a wrong zone or clock */
			insert(fresh, &fresh_n, FW_N(fresh), FW_MIN(at, now));
	}
	if (!r->from && fresh_n) { /* a former form: its publications are counted with these */
		for (size_t i = 0; i < r->n; i++)
			insert(fresh, &fresh_n, FW_N(fresh), r->event[i]);
		r->n = 0;
	}
	counted = r->n ? r->event[0] : 0;
	for (size_t i = fresh_n; i-- > 0;) { /* the oldest first */
		if (known(r, fresh[i]))
			continue;
		if (fresh[i] > counted) {
			count(r, counted, fresh[i]);
			counted = fresh[i];
		}
		insert(r->event, &r->n, FW_RHYTHM_EVENTS, fresh[i]);
		any = true;
	}
	return any;
}

size_t fw_rhythm_learn(struct fw_str old, const int64_t *dates, size_t n, const struct fw_due_facts *hints, int64_t now_ms,
	char out[FW_RHYTHM_MAX])
{
	struct fw_rhythm r;

	fw_rhythm_read(old, &r);
	if (hints) {
		r.ttl_minutes = hints->ttl_minutes == FW_NO_NUMBER ? FW_NO_NUMBER :
			FW_MAX(FW_MIN(hints->ttl_minutes, INT32_MAX), INT32_MIN);
		r.update_period_minutes = hints->update_period_minutes == FW_NO_NUMBER ? FW_NO_NUMBER :
			FW_MAX(FW_MIN(hints->update_period_minutes, INT32_MAX), INT32_MIN);
		r.skip_hours = hints->skip_hours & 0xffffff;
		r.skip_days = hints->skip_days & 0x7f;
	}
	(void)fw_rhythm_see(&r, dates, n, now_ms);
	return fw_rhythm_write(&r, out);
}

/* ---- the week --------------------------------------------------------------------------------------------------------------- */

/* How long each hour of the week was watched, in hours, a week back counting as its publications do. */
static void watched(const struct fw_rhythm *r, double hours[FW_RHYTHM_HOURS])
{
	int64_t weeks = FW_MAX(r->event[0] / WEEK_MINUTES - r->from / WEEK_MINUTES, 0);
	size_t last = (size_t)(r->event[0] / 60 % FW_RHYTHM_HOURS), first = (size_t)(r->from / 60 % FW_RHYTHM_HOURS);
	double oldest = pow(KEEP_WEEK, (double)weeks), between = weeks > 1 ? (KEEP_WEEK - oldest) / (1 - KEEP_WEEK) : 0;

	for (size_t i = 0; i < FW_RHYTHM_HOURS; i++) {
		if (weeks)
			hours[i] = (i <= last ? 1 : 0) + between + (i >= first ? oldest : 0);
		else
			hours[i] = i >= first && i <= last ? 1 : 0;
	}
}

/* A little of each neighbour: publications come about an hour, not at it. */
static void blur(const double *in, double *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (in[(i + n - 1) % n] + 2 * in[i] + in[(i + 1) % n]) / 4;
}

/* The weight of each hour of the week; 1 is the mean. Cost: some 600 divisions. */
static void weigh(const struct fw_rhythm *r, double weight[FW_RHYTHM_HOURS])
{
	double n[FW_RHYTHM_HOURS], hours[FW_RHYTHM_HOURS], day_n[7] = {0}, day_hours[7] = {0}, hour_n[24] = {0}, hour_hours[24] = {0};
	double raw[FW_RHYTHM_HOURS], raw_hours[FW_RHYTHM_HOURS], all = 0, all_hours = 0, sum = 0, mean;

	watched(r, raw_hours);
	for (size_t i = 0; i < FW_RHYTHM_HOURS; i++)
		raw[i] = r->hour[i] / (double)ONE;
	blur(raw, n, FW_RHYTHM_HOURS);
	blur(raw_hours, hours, FW_RHYTHM_HOURS);
	for (size_t i = 0; i < FW_RHYTHM_HOURS; i++) {
		hour_n[i % 24] += n[i];
		hour_hours[i % 24] += hours[i];
		all += n[i];
		all_hours += hours[i];
	}
	mean = all > 0 && all_hours > 0 ? all / all_hours : 0;
	for (size_t i = 0; i < 24; i++)
		hour_n[i] = mean > 0 ? (hour_n[i] + PULL_HOUR) / (hour_hours[i] * mean + PULL_HOUR) : 1;
	for (size_t i = 0; i < FW_RHYTHM_HOURS; i++) { /* a day is measured by what its hours make expect */
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

/* Weighed hours from 1970 to a minute. */
static double weighed(const struct fw_rhythm_model *m, int64_t minute)
{
	int64_t week = minute / WEEK_MINUTES, in = minute % WEEK_MINUTES;
	size_t hour = (size_t)(in / 60);

	return (double)week * FW_RHYTHM_HOURS + m->week[hour] + (m->week[hour + 1] - m->week[hour]) * (double)(in % 60) / 60;
}

/* ---- silences --------------------------------------------------------------------------------------------------------------- */

/* Where each class ends, in hours: GAP_FIRST x 2^(i/2); the last has no end. */
static const double GAP_END[FW_RHYTHM_GAPS] = {
	0.25, 0.353553, 0.5, 0.707107, 1, 1.414214, 2, 2.828427, 4, 5.656854, 8, 11.313708, 16, 22.627417, 32, 45.254834, 64, 90.509668,
	128, 181.019336, 256, 362.038672, 512, 724.077344, 1024, 1448.154688, 2048, INFINITY,
};

static void add_gap(struct fw_rhythm_model *m, double gap, double weight)
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

/* Where the table ends, and what is in it up to there. */
static void end_table(struct fw_rhythm_model *m)
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
	weigh(r, weight);
	for (size_t i = 0; i < FW_RHYTHM_HOURS; i++)
		out->week[i + 1] = out->week[i] + weight[i];
	at = weighed(out, r->event[0]);
	for (size_t i = 1; i < r->n; i++, keep *= KEEP_GAP, at = before) {
		before = weighed(out, r->event[i]);
		add_gap(out, at - before, keep);
	}
	end_table(out);
}

/* ---- asking ------------------------------------------------------------------------------------------------------------------ */

/* What is left of a walk when it ends: to add up to it exactly may take for ever where sums are kept in 80 bits, as on i386. */
#define HOURS_LEAST 1e-9

/*
 * Walks through the time to come in pieces in which nothing changes, neither the hour of the week nor the class of silence.
 */
struct walk {
	const struct fw_rhythm_model *m;
	double at;       /* hours since 1970 */
	double silence;  /* weighed hours */
	size_t hour, class;
	double mean;     /* weighed hours between publications, the silence counted as a gap that will be at least as long */
	double weight;   /* of the hour */
};

static double class_begin(size_t i)
{
	assert(i <= FW_RHYTHM_GAPS); /* behind the last, too: where the tail begins */
	return i ? GAP_END[i - 1] : 0;
}

static void walk_begin(struct walk *w, const struct fw_rhythm_model *m, int64_t at_ms)
{
	int64_t minute = FW_MAX(at_ms / FW_MINUTE_MS, m->last); /* clocks may have been put back */

	*w = (struct walk){.m = m, .at = (double)minute / 60, .hour = (size_t)(minute / 60 % FW_RHYTHM_HOURS)};
	w->silence = weighed(m, minute) - weighed(m, m->last);
	while (w->silence >= GAP_END[w->class])
		w->class++;
	w->weight = m->week[w->hour + 1] - m->week[w->hour];
	w->mean = (m->hours + FW_MIN(w->silence, class_begin(m->tail))) / FW_MAX(m->n, 1.0);
}

/*
 * What was seen, weighed by its number, with what is to be thought where nothing was seen: the mean rate, and less after a time in
 * which it could have been.
 */
static double class_rate(const struct walk *w, size_t class, double spent)
{
	double n = w->m->gap_n[class], hours = w->m->gap_hours[class] + spent, unseen = PULL_GAP / (hours + PULL_GAP * w->mean);

	return n > 0 ? (n * n / FW_MAX(hours, n * GAP_LEAST) + PULL_GAP * unseen) / (n + PULL_GAP) : unseen;
}

/* Publications for each weighed hour, now. */
static double walk_rate(const struct walk *w)
{
	size_t tail = w->m->tail;
	double end = class_begin(tail), wait;

	if (w->class < tail)
		return class_rate(w, w->class, w->silence - class_begin(w->class));
	wait = tail ? 1 / class_rate(w, tail - 1, end - class_begin(tail - 1)) : 1;
	return 1 / (wait + (w->silence - end) / TAIL_N);
}

/* Go on by at most so many hours, to where something changes; returns what is expected meanwhile, *hours: how far it went. */
static double walk_on(struct walk *w, double most, double *hours)
{
	double whole = floor(w->at) + 1, to_hour = whole - w->at, to_class = (GAP_END[w->class] - w->silence) / w->weight;
	double by = FW_MIN(FW_MIN(to_hour, to_class), most), rate = walk_rate(w);

	*hours = by;
	w->silence += by * w->weight;
	if (by >= to_class)
		w->silence = FW_MAX(w->silence, GAP_END[w->class++]);
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
	struct walk w;

	if (!m->last || from_ms < 0 || to_ms <= from_ms)
		return 0;
	for (walk_begin(&w, m, from_ms); left > HOURS_LEAST; left -= by)
		sum += walk_on(&w, left, &by);
	return sum;
}

void fw_rhythm_guess(const struct fw_rhythm_model *m, int64_t now_ms, double target, int64_t max_ms, struct fw_rhythm_guess *out)
{
	double sum = 0, hours = 0, most = (double)max_ms / FW_HOUR_MS, silence, gap;
	struct walk w;

	*out = (struct fw_rhythm_guess){0};
	if (!m->last)
		return;
	walk_begin(&w, m, now_ms);
	out->silence_ms = FW_MAX(now_ms - m->last * FW_MINUTE_MS, 0);
	if (m->n <= 0 && out->silence_ms < FW_DAY_MS) /* a single young entry says nothing yet */
		return;
	silence = w.silence;
	gap = FW_MAX(FW_MAX(m->n > 0 ? m->hours / m->n : 0, silence / 2), 1.0 / 60);
	out->gap_ms = (int64_t)(gap * FW_HOUR_MS);
	target *= pow(24 / gap, LEAN);
	most = FW_MIN(most, gap);
	out->quiet = w.weight < 0.25;
	out->burst = m->n >= 2 && out->silence_ms < out->gap_ms / 4 && walk_rate(&w) * w.weight > 3 / gap;
	while (most - hours > HOURS_LEAST) {
		double by, more = walk_on(&w, most - hours, &by);

		if (sum + more >= target) {
			hours += by * (target - sum) / more;
			break;
		}
		sum += more;
		hours += by;
	}
	out->interval_ms = FW_MAX((int64_t)(FW_MIN(hours, most) * FW_HOUR_MS), FW_MINUTE_MS);
}
