/* SPDX-License-Identifier: ISC */
#include <time.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/when.h"

static bool when_digits(struct fw_str s, size_t at, size_t n, int *out)
{
	*out = 0;
	for (size_t i = at; i < at + n; i++) {
		if (i >= s.len || !fw_is_digit((unsigned char)s.p[i]))
			return false;
		*out = *out * 10 + (s.p[i] - '0');
	}
	return true;
}

/* Z, z, +01:00, -0500; *minutes: east of Greenwich */
static bool when_zone_parse(struct fw_str s, int *minutes)
{
	int h, m;

	*minutes = 0;
	if (s.len == 1 && (s.p[0] == 'Z' || s.p[0] == 'z'))
		return true;
	if (s.len < 5 || (s.p[0] != '+' && s.p[0] != '-') || !when_digits(s, 1, 2, &h) ||
		!when_digits(s, s.p[3] == ':' ? 4 : 3, 2, &m) || s.len != (s.p[3] == ':' ? 6u : 5u) || h > 23 || m > 59)
		return false;
	*minutes = (s.p[0] == '-' ? -1 : 1) * (h * 60 + m);
	return true;
}

/* Local time of this machine. */
static bool local_time_ms(int y, int mo, int d, int h, int mi, int s, int64_t *out_ms)
{
	struct tm tm = {.tm_year = y - 1900,
		.tm_mon = mo - 1,
		.tm_mday = d,
		.tm_hour = h,
		.tm_min = mi,
		.tm_sec = s,
		.tm_isdst = -1};
	time_t t = mktime(&tm);

	*out_ms = (int64_t)t * 1000;
	return t != (time_t)-1;
}

/* Midnight of local time, this many days before now. */
static bool local_midnight_ms(int64_t now_ms, int days, int64_t *out_ms)
{
	time_t t = (time_t)(now_ms / 1000);
	struct tm tm;

	return localtime_r(&t, &tm) &&
		local_time_ms(tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday - days, 0, 0, 0, out_ms);
}

bool fw_when_parse(struct fw_str s, int64_t now_ms, int64_t *out_ms)
{
	int y, mo, d, h = 0, mi = 0, sec = 0, east;
	int64_t ago;
	size_t at = 10;

	if (fw_duration_parse(s, FW_SECOND_MS, &ago) && !fw_is_digit((unsigned char)s.p[s.len - 1])) {
		*out_ms = now_ms - ago;
		return true;
	}
	if (fw_str_eq(s, FW_STR("today")) || fw_str_eq(s, FW_STR("yesterday")))
		return local_midnight_ms(now_ms, s.p[0] == 'y', out_ms);
	if (!when_digits(s, 0, 4, &y) || !when_digits(s, 5, 2, &mo) || !when_digits(s, 8, 2, &d) || s.p[4] != '-' ||
		s.p[7] != '-' || mo < 1 || mo > 12 || d < 1 || d > fw_month_days(y, mo))
		return false;
	if (s.len > 10) {
		if ((s.p[10] != 'T' && s.p[10] != 't' && s.p[10] != ' ') || !when_digits(s, 11, 2, &h) || s.len < 16 ||
			s.p[13] != ':' || !when_digits(s, 14, 2, &mi))
			return false;
		at = 16;
		if (s.len > 16 && s.p[16] == ':') {
			if (!when_digits(s, 17, 2, &sec))
				return false;
			at = 19;
		}
		while (at > 16 && at < s.len && (s.p[at] == '.' || fw_is_digit((unsigned char)s.p[at])))
			at++;
	}
	if (h > 23 || mi > 59 || sec > 60)
		return false;
	if (at == s.len)
		return local_time_ms(y, mo, d, h, mi, sec, out_ms);
	if (!when_zone_parse(fw_str_sub(s, at, s.len), &east))
		return false;
	*out_ms = fw_time_ms(y, mo, d, h, mi, sec, 0) - east * FW_MINUTE_MS;
	return true;
}
