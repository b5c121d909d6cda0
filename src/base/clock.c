/* SPDX-License-Identifier: ISC */
/*
 * Calendar arithmetic counts days from 0000-03-01, so the leap day is the last day of a year; 400
 * years have 146,097 days.
 */
#include <time.h>

#include "base/str.h"
#include "base/clock.h"

static const char *const MONTH_NAMES[] = {
	"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
static const char *const DAY_NAMES[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};

static int64_t clock_us(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t fw_now_ms(void)
{
	return clock_us(CLOCK_REALTIME) / 1000;
}

int64_t fw_mono_ms(void)
{
	return clock_us(CLOCK_MONOTONIC) / 1000;
}

struct timespec fw_timespec(int64_t at_ms)
{
	return (struct timespec){.tv_sec = (time_t)(at_ms / 1000), .tv_nsec = (long)(at_ms % 1000 * 1000000)};
}

int64_t fw_mono_us(void)
{
	return clock_us(CLOCK_MONOTONIC);
}

void fw_mono_cond_init(pthread_cond_t *c)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(c, &attr);
	pthread_condattr_destroy(&attr);
}

int64_t fw_thread_cpu_us(void)
{
	return clock_us(CLOCK_THREAD_CPUTIME_ID);
}

bool fw_leap_year(int year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

int fw_month_days(int year, int month)
{
	static const char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

	return month == 2 && fw_leap_year(year) ? 29 : days[month - 1];
}

int64_t fw_days_from_civil(int year, int month, int day)
{
	int64_t y = (int64_t)year - (month <= 2);
	int64_t era = (y >= 0 ? y : y - 399) / 400;
	int64_t yoe = y - era * 400;
	int64_t doy = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

	return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

int64_t fw_time_ms(int year, int month, int day, int hour, int minute, int second, int ms)
{
	int64_t days = fw_days_from_civil(year, month, day);

	return ((days * 24 + hour) * 60 + minute) * FW_MINUTE_MS + (int64_t)second * 1000 + ms;
}

void fw_civil_from_ms(int64_t at_ms, struct fw_civil *out)
{
	int64_t days = at_ms / FW_DAY_MS, rest = at_ms % FW_DAY_MS, z, era, doe, yoe, doy, mp;

	if (rest < 0) {
		rest += FW_DAY_MS;
		days--;
	}
	z = days + 719468;
	era = (z >= 0 ? z : z - 146096) / 146097;
	doe = z - era * 146097;
	yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	mp = (5 * doy + 2) / 153;
	out->day = (int)(doy - (153 * mp + 2) / 5 + 1);
	out->month = (int)(mp < 10 ? mp + 3 : mp - 9);
	out->year = (int)(yoe + era * 400 + (out->month <= 2));
	out->hour = (int)(rest / FW_HOUR_MS);
	out->minute = (int)(rest / FW_MINUTE_MS % 60);
	out->second = (int)(rest / 1000 % 60);
	out->ms = (int)(rest % 1000);
	out->weekday = (int)(((days + 4) % 7 + 7) % 7);
	out->yearday = (int)(days - fw_days_from_civil(out->year, 1, 1) + 1);
}

/* Years 0000 to 9999, the range of the text forms. */
static int64_t clamp_ms(int64_t at_ms)
{
	const int64_t lo = INT64_C(-62167219200000), hi = INT64_C(253402300799999);

	return at_ms < lo ? lo : at_ms > hi ? hi : at_ms;
}

char *fw_rfc3339(char dst[FW_RFC3339_MAX], int64_t at_ms)
{
	struct fw_civil c;
	char fraction[8] = "";

	fw_civil_from_ms(clamp_ms(at_ms), &c);
	if (c.ms)
		(void)fw_snprintf(fraction, sizeof(fraction), ".%03u", (unsigned)c.ms % 1000);
	(void)fw_snprintf(dst, FW_RFC3339_MAX, "%04u-%02u-%02uT%02u:%02u:%02u%sZ", (unsigned)c.year % 10000,
		(unsigned)c.month % 100, (unsigned)c.day % 100, (unsigned)c.hour % 100, (unsigned)c.minute % 100,
		(unsigned)c.second % 100, fraction);
	return dst;
}

char *fw_http_date(char dst[FW_RFC3339_MAX], int64_t at_ms)
{
	struct fw_civil c;

	fw_civil_from_ms(clamp_ms(at_ms), &c);
	(void)fw_snprintf(dst, FW_RFC3339_MAX, "%s, %02u %s %04u %02u:%02u:%02u GMT", DAY_NAMES[c.weekday],
		(unsigned)c.day % 100, MONTH_NAMES[c.month - 1], (unsigned)c.year % 10000, (unsigned)c.hour % 100,
		(unsigned)c.minute % 100, (unsigned)c.second % 100);
	return dst;
}

static bool clock_number_parse(struct fw_str s, int min, int max, int *out)
{
	int64_t v;

	for (size_t i = 0; i < s.len; i++) {
		if (!fw_is_digit((unsigned char)s.p[i]))
			return false;
	}
	if (!fw_str_int(s, &v) || v < min || v > max)
		return false;
	*out = (int)v;
	return true;
}

static bool month_name_parse(struct fw_str s, int *out)
{
	for (int i = 0; i < 12; i++) {
		if (fw_str_ieq(s, fw_str(MONTH_NAMES[i]))) {
			*out = i + 1;
			return true;
		}
	}
	return false;
}

static bool clock_time_parse(struct fw_str s, int *h, int *m, int *sec)
{
	return s.len == 8 && s.p[2] == ':' && s.p[5] == ':' && clock_number_parse(fw_str_sub(s, 0, 2), 0, 23, h) &&
		clock_number_parse(fw_str_sub(s, 3, 5), 0, 59, m) &&
		clock_number_parse(fw_str_sub(s, 6, 8), 0, 60, sec);
}

bool fw_http_date_parse(struct fw_str s, int64_t now_ms, int64_t *out)
{
	struct fw_str word[8], rest = fw_str_trim(s);
	int n = 0, day, month, year, h, m, sec;

	if (rest.len > 64)
		return false;
	while (rest.len && n < 8) {
		word[n++] = fw_str_split(rest, ' ', &rest);
		rest = fw_str_trim(rest);
	}
	if (n == 6 && word[0].len == 4 && word[0].p[3] == ',') { /* Sun, 06 Nov 1994 08:49:37 GMT */
		if (!clock_number_parse(word[1], 1, 31, &day) || !month_name_parse(word[2], &month) ||
			word[3].len != 4 || !clock_number_parse(word[3], 0, 9999, &year) ||
			!clock_time_parse(word[4], &h, &m, &sec) || !fw_str_ieq(word[5], FW_STR("GMT")))
			return false;
	} else if (n == 4) { /* Sunday, 06-Nov-94 08:49:37 GMT */
		struct fw_str d = fw_str_split(word[1], '-', &rest), mon = fw_str_split(rest, '-', &rest);
		struct fw_civil now;

		if (!clock_number_parse(d, 1, 31, &day) || !month_name_parse(mon, &month) ||
			!clock_time_parse(word[2], &h, &m, &sec) || !fw_str_ieq(word[3], FW_STR("GMT")) ||
			!clock_number_parse(rest, 0, 9999, &year))
			return false;
		if (rest.len == 2) { /* more than 50 years ahead: the past century */
			fw_civil_from_ms(now_ms, &now);
			year += now.year / 100 * 100;
			if (year > now.year + 50)
				year -= 100;
		} else if (rest.len != 4) {
			return false;
		}
	} else if (n == 5) { /* Sun Nov  6 08:49:37 1994 */
		if (!month_name_parse(word[1], &month) || !clock_number_parse(word[2], 1, 31, &day) ||
			!clock_time_parse(word[3], &h, &m, &sec) || word[4].len != 4 ||
			!clock_number_parse(word[4], 0, 9999, &year))
			return false;
	} else {
		return false;
	}
	if (day > fw_month_days(year, month))
		return false;
	*out = fw_time_ms(year, month, day, h, m, sec, 0);
	return true;
}

char *fw_duration_text(char dst[FW_RFC3339_MAX], int64_t ms)
{
	const char *sign = ms < 0 ? "-" : "";
	uint64_t v = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
	uint64_t s = v / 1000, d = s / 86400, h = s / 3600 % 24, m = s / 60 % 60;

	if (v < 1000)
		(void)fw_snprintf(dst, FW_RFC3339_MAX, "%s%u ms", sign, (unsigned)v);
	else if (s < 10)
		(void)fw_snprintf(dst, FW_RFC3339_MAX, "%s%u.%u s", sign, (unsigned)s, (unsigned)(v / 100 % 10));
	else if (s < 60)
		(void)fw_snprintf(dst, FW_RFC3339_MAX, "%s%u s", sign, (unsigned)s);
	else if (s < 3600 && (s % 60 == 0 || m >= 10))
		(void)fw_snprintf(dst, FW_RFC3339_MAX, "%s%u min", sign, (unsigned)m);
	else if (s < 3600)
		(void)fw_snprintf(dst, FW_RFC3339_MAX, "%s%u min %u s", sign, (unsigned)m, (unsigned)(s % 60));
	else if (d == 0 && m)
		(void)fw_snprintf(dst, FW_RFC3339_MAX, "%s%u h %u min", sign, (unsigned)h, (unsigned)m);
	else if (d == 0)
		(void)fw_snprintf(dst, FW_RFC3339_MAX, "%s%u h", sign, (unsigned)h);
	else if (h)
		(void)fw_snprintf(dst, FW_RFC3339_MAX, "%s%llu d %u h", sign, (unsigned long long)d, (unsigned)h);
	else
		(void)fw_snprintf(dst, FW_RFC3339_MAX, "%s%llu d", sign, (unsigned long long)d);
	return dst;
}

bool fw_duration_parse(struct fw_str s, int64_t unit_ms, int64_t *out)
{
	static const struct {
		const char *name;
		int64_t ms;
	} UNIT[] = {
		{"ms", 1},
		{"s", FW_SECOND_MS},
		{"sec", FW_SECOND_MS},
		{"m", FW_MINUTE_MS},
		{"min", FW_MINUTE_MS},
		{"h", FW_HOUR_MS},
		{"d", FW_DAY_MS},
		{"w", 7 * FW_DAY_MS},
	};
	size_t n = 0;
	int64_t v;

	s = fw_str_trim(s);
	while (n < s.len && fw_is_digit((unsigned char)s.p[n]))
		n++;
	if (n == 0 || !fw_str_int(fw_str_sub(s, 0, n), &v))
		return false;
	s = fw_str_trim(fw_str_sub(s, n, s.len));
	if (s.len == 0)
		return !__builtin_mul_overflow(v, unit_ms, out);
	for (size_t i = 0; i < FW_N(UNIT); i++) {
		if (fw_str_ieq(s, fw_str(UNIT[i].name)))
			return !__builtin_mul_overflow(v, UNIT[i].ms, out);
	}
	return false;
}
