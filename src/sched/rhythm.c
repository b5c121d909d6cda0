/* SPDX-License-Identifier: ISC */
/*
 * What a feed's own dates say about its rhythm, and the hints it gave, as one short text kept with the feed:
 *
 *	1;gap=5400;n=24;last=1795262400;ttl=60;sy=120;sh=255;sd=65
 *
 * gap is the typical time between two entries in seconds, last the newest date, n how many gaps it rests on. The gap is the
 * median of the gaps among the newest dates: an average would be ruled by one pause or one burst. Learning from the dates and
 * not from our visits keeps our own polling out of it. Known members in any order; an unknown form is forgotten and learned anew.
 */
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "sched/rhythm.h"

#define DATES_MAX 60 /* the newest ones tell today's rhythm */

void rhythm_read(struct fw_str s, struct rhythm *out)
{
	struct fw_str rest;

	*out = (struct rhythm){.gap_ms = 0, .ttl_minutes = FW_NO_NUMBER, .update_period_minutes = FW_NO_NUMBER, .last_ms = FW_NO_DATE};
	if (!fw_str_eq(fw_str_split(s, ';', &rest), FW_STR("1")))
		return;
	while (rest.p) {
		struct fw_str value, item = fw_str_split(rest, ';', &rest);
		struct fw_str key = fw_str_split(item, '=', &value);
		int64_t v;

		if (!value.p || !fw_str_int(value, &v) || v < 0 || v > INT64_C(1) << 50)
			continue;
		if (fw_str_eq(key, FW_STR("gap")))
			out->gap_ms = v * FW_SECOND_MS;
		else if (fw_str_eq(key, FW_STR("n")))
			out->gap_n = v;
		else if (fw_str_eq(key, FW_STR("last")))
			out->last_ms = v * FW_SECOND_MS;
		else if (fw_str_eq(key, FW_STR("ttl")))
			out->ttl_minutes = v;
		else if (fw_str_eq(key, FW_STR("sy")))
			out->update_period_minutes = v;
		else if (fw_str_eq(key, FW_STR("sh")))
			out->skip_hours = (uint32_t)v;
		else if (fw_str_eq(key, FW_STR("sd")))
			out->skip_days = (uint8_t)v;
	}
}

static int newest_first(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* The DATES_MAX newest dates that are not in the future, newest first. */
static size_t newest(const int64_t *dates, size_t n, int64_t now_ms, int64_t out[DATES_MAX])
{
	size_t m = 0;

	for (size_t i = 0; i < n; i++) {
		size_t at = m;

		if (dates[i] > now_ms + FW_HOUR_MS || dates[i] <= 0)
			continue;
		if (m == DATES_MAX && dates[i] <= out[m - 1])
			continue;
		if (m == DATES_MAX)
			at = --m;
		while (at > 0 && out[at - 1] < dates[i]) {
			out[at] = out[at - 1];
			at--;
		}
		out[at] = dates[i];
		m++;
	}
	return m;
}

/* Gaps of less than a minute are one batch of posts, not a rhythm. */
static size_t median_gap(const int64_t *date, size_t n, int64_t *gap_ms)
{
	int64_t gap[DATES_MAX];
	size_t m = 0;

	for (size_t i = 0, from = 0; i + 1 < n; i++) {
		int64_t g = date[from] - date[i + 1];

		if (g >= FW_MINUTE_MS) {
			gap[m++] = g;
			from = i + 1;
		}
	}
	if (!m)
		return 0;
	qsort(gap, m, sizeof(*gap), newest_first);
	*gap_ms = gap[m / 2];
	return m;
}

size_t fw_rhythm_learn(struct fw_str old, const int64_t *dates, size_t n, const struct fw_due_facts *hints, int64_t now_ms,
	char out[FW_RHYTHM_MAX])
{
	struct fw_buf b = FW_BUF_INIT(FW_RHYTHM_MAX - 1);
	int64_t date[DATES_MAX];
	struct rhythm r;
	size_t m, len;

	rhythm_read(old, &r);
	m = newest(dates, n, now_ms, date);
	if (m) {
		int64_t gap = 0;
		size_t gaps = median_gap(date, m, &gap);

		/* a document with one entry says little; what was learned from earlier ones stays, pulled towards the new distance */
		if (gaps >= 2 || !r.gap_n) {
			r.gap_ms = gap;
			r.gap_n = (int64_t)gaps;
		} else if (r.last_ms != FW_NO_DATE && date[0] > r.last_ms) {
			r.gap_ms += (date[0] - r.last_ms - r.gap_ms) / 4;
			r.gap_n++;
		}
		if (r.last_ms == FW_NO_DATE || date[0] > r.last_ms)
			r.last_ms = date[0];
	}
	r.ttl_minutes = hints->ttl_minutes;
	r.update_period_minutes = hints->update_period_minutes;
	r.skip_hours = hints->skip_hours;
	r.skip_days = hints->skip_days;
	fw_buf_adds(&b, "1");
	if (r.gap_n)
		fw_buf_addf(&b, ";gap=%lld;n=%lld", (long long)(r.gap_ms / FW_SECOND_MS), (long long)r.gap_n);
	if (r.last_ms != FW_NO_DATE)
		fw_buf_addf(&b, ";last=%lld", (long long)(r.last_ms / FW_SECOND_MS));
	if (r.ttl_minutes > 0)
		fw_buf_addf(&b, ";ttl=%lld", (long long)r.ttl_minutes);
	if (r.update_period_minutes > 0)
		fw_buf_addf(&b, ";sy=%lld", (long long)r.update_period_minutes);
	if (r.skip_hours)
		fw_buf_addf(&b, ";sh=%u", (unsigned)r.skip_hours);
	if (r.skip_days)
		fw_buf_addf(&b, ";sd=%u", (unsigned)r.skip_days);
	len = b.rc || b.len == 1 ? 0 : b.len;
	if (len)
		(void)fw_str_copy(out, FW_RHYTHM_MAX, fw_buf_str(&b));
	else
		out[0] = '\0';
	fw_buf_finish(&b);
	return len;
}
