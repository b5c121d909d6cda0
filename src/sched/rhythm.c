/* SPDX-License-Identifier: ISC */
/*
 * The rhythm of a feed, learned from the dates its entries carry, not from what our visits happened to find: so how often we
 * ask does not bias what we learn.
 *
 * Kept are the last publications (up to 48; several within ten minutes are one), united with those a former document showed: a
 * feed that carries one entry at a time is learned over many visits. The typical gap is their mean, the newer weighing more
 * (half as much every ten publications). The mean, and not the median, because a feed that posts three times within an hour
 * every Sunday has a rate of three a week. One gap that is more than four times the next longest is a holiday and left out. The
 * time since the last publication counts as a gap once it is longer than the mean, so a feed that falls silent slows down.
 * We wait half the typical gap; while a burst is on (silence no longer than twice the median gap), the median instead if that
 * is shorter.
 */
#include "base/clock.h"
#include "base/str.h"
#include "sched/due.h"
#include "sched/rhythm.h"
#include "base/banned.h"

#define EVENT_MINUTES 10
#define MAX_AGE_MINUTES (10 * 366 * 24 * 60) /* older entries say nothing of today */

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

void fw_rhythm_read(struct fw_str text, struct fw_rhythm *out)
{
	struct fw_str rest = text, value, word = fw_str_split(rest, ' ', &rest);
	uint32_t days;

	*out = (struct fw_rhythm){.ttl_minutes = FW_NO_NUMBER, .update_period_minutes = FW_NO_NUMBER};
	if (!fw_str_eq(word, FW_STR("v1")))
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
		else if (fw_str_eq(word, FW_STR("at")))
			out->n = number(value, 0, INT64_C(1) << 40, &out->event[0]);
		else if (fw_str_eq(word, FW_STR("g")))
			read_gaps(value, out);
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

static size_t write(const struct fw_rhythm *r, char out[FW_RHYTHM_MAX])
{
	size_t len = 0;
	char word[40];

	(void)append(out, &len, "v1");
	if (r->ttl_minutes != FW_NO_NUMBER && fw_snprintf(word, sizeof(word), " ttl=%lld", (long long)r->ttl_minutes))
		(void)append(out, &len, word);
	if (r->update_period_minutes != FW_NO_NUMBER && fw_snprintf(word, sizeof(word), " sy=%lld", (long long)r->update_period_minutes))
		(void)append(out, &len, word);
	if (r->skip_hours && fw_snprintf(word, sizeof(word), " sh=%x", (unsigned)r->skip_hours))
		(void)append(out, &len, word);
	if (r->skip_days && fw_snprintf(word, sizeof(word), " sd=%x", (unsigned)r->skip_days))
		(void)append(out, &len, word);
	if (r->n && fw_snprintf(word, sizeof(word), " at=%lld", (long long)r->event[0]))
		(void)append(out, &len, word);
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

/* Insert into a list that falls; the smallest drops out when it is full. False when it was the smallest itself, or there. */
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

/* Dates that were made when we asked: three or more that all are the same, and that is now. */
static bool made_up(const int64_t *dates, size_t n, int64_t now_ms)
{
	if (n < 3)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (dates[i] < now_ms - FW_HOUR_MS || dates[i] > now_ms + FW_HOUR_MS || dates[i] / FW_MINUTE_MS != dates[0] / FW_MINUTE_MS)
			return false;
	}
	return true;
}

static void learn_dates(struct fw_rhythm *r, const int64_t *dates, size_t n, int64_t now_ms)
{
	int64_t all[4 * FW_RHYTHM_EVENTS], now = now_ms / FW_MINUTE_MS;
	size_t all_n = 0;

	for (size_t i = 0; i < r->n; i++) {
		if (r->event[i] > now - MAX_AGE_MINUTES)
			insert(all, &all_n, FW_N(all), FW_MIN(r->event[i], now)); /* the clock may have been put back */
	}
	for (size_t i = 0; i < n; i++) {
		int64_t at = dates[i] / FW_MINUTE_MS;

		if (dates[i] > 0 && at <= now + 60 && at > now - MAX_AGE_MINUTES) /* an hour ahead is a wrong zone or clock */
			insert(all, &all_n, FW_N(all), at < now ? at : now);
	}
	r->n = 0;
	for (size_t i = 0; i < all_n && r->n < FW_RHYTHM_EVENTS; i++) {
		if (!r->n || r->event[r->n - 1] - all[i] >= EVENT_MINUTES)
			r->event[r->n++] = all[i];
	}
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
	if (n && !made_up(dates, n, now_ms))
		learn_dates(&r, dates, n, now_ms);
	return write(&r, out);
}

/* ---- guessing --------------------------------------------------------------------------------------------------------------- */

/* The gaps between publications that count, newest first; a lone holiday left out. */
static size_t gaps_of(const struct fw_rhythm *r, int64_t gap[FW_RHYTHM_EVENTS])
{
	size_t n = 0, longest = 0;
	int64_t next = 0;

	for (size_t i = 1; i < r->n; i++)
		gap[n++] = r->event[i - 1] - r->event[i];
	if (n < 5)
		return n;
	for (size_t i = 1; i < n; i++)
		longest = gap[i] > gap[longest] ? i : longest;
	for (size_t i = 0; i < n; i++)
		next = i != longest && gap[i] > next ? gap[i] : next;
	if (gap[longest] > 4 * next) {
		memmove(gap + longest, gap + longest + 1, (n - 1 - longest) * sizeof(*gap));
		n--;
	}
	return n;
}

static double weighted_mean(const int64_t *gap, size_t n, int64_t silence)
{
	double sum = 0, weights = 0, weight = 1;

	for (size_t i = 0; i < n; i++, weight *= 0.933) { /* 0.933^10 = 1/2 */
		sum += weight * (double)gap[i];
		weights += weight;
	}
	if (!n || (double)silence * weights > sum) {
		sum += (double)silence;
		weights += 1;
	}
	return sum / weights;
}

static int64_t median(const int64_t *gap, size_t n)
{
	int64_t sorted[FW_RHYTHM_EVENTS];

	for (size_t i = 0; i < n; i++) {
		size_t k = i;

		for (; k > 0 && sorted[k - 1] > gap[i]; k--)
			sorted[k] = sorted[k - 1];
		sorted[k] = gap[i];
	}
	return n ? sorted[n / 2] : 0;
}

void fw_rhythm_guess(const struct fw_rhythm *r, int64_t now_ms, struct fw_rhythm_guess *out)
{
	int64_t gap[FW_RHYTHM_EVENTS], silence, middle;
	size_t n;

	*out = (struct fw_rhythm_guess){0};
	if (!r->n)
		return;
	silence = FW_MAX(now_ms / FW_MINUTE_MS - r->event[0], 0); /* clocks may have been put back */
	n = gaps_of(r, gap);
	middle = median(gap, n);
	if (!n && silence < 24 * 60) /* a single young entry says nothing yet */
		return;
	out->silence_ms = silence * FW_MINUTE_MS;
	out->gap_ms = (int64_t)weighted_mean(gap, n, silence) * FW_MINUTE_MS;
	out->interval_ms = out->gap_ms / 2;
	if (n >= 3 && silence <= 2 * middle && middle * FW_MINUTE_MS < out->interval_ms) {
		out->burst = true;
		out->interval_ms = middle * FW_MINUTE_MS;
	}
	out->interval_ms = FW_MAX(out->interval_ms, FW_MINUTE_MS);
}
