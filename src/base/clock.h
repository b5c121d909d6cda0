/* SPDX-License-Identifier: ISC */
/*
 * Times as numbers: Unix milliseconds in UTC, int64_t, proleptic Gregorian calendar; a leap second
 * counts as the next second. Only the fw_now and fw_mono functions and fw_thread_cpu_us() read a
 * clock.
 */
#ifndef FW_BASE_CLOCK_H
#define FW_BASE_CLOCK_H

#include <pthread.h>
#include <time.h>

#include "feedwheel/types.h"

#define FW_SECOND_MS INT64_C(1000)
#define FW_MINUTE_MS (60 * FW_SECOND_MS)
#define FW_HOUR_MS (60 * FW_MINUTE_MS)
#define FW_DAY_MS (24 * FW_HOUR_MS)
/* An interval that the owner of a feed sets counts within these bounds. */
#define FW_OWN_INTERVAL_MIN_MS FW_MINUTE_MS
#define FW_OWN_INTERVAL_MAX_MS (30 * FW_DAY_MS)
#define FW_NO_TIME INT64_MIN /* "no date", wherever a date may be missing */

struct fw_civil {
	int year, month, day; /* month 1..12, day 1..31 */
	int hour, minute, second, ms;
	int weekday; /* 0 = Sunday */
	int yearday; /* 1..366 */
};

int64_t fw_now_ms(void);  /* wall clock */
int64_t fw_mono_ms(void); /* CLOCK_MONOTONIC */
int64_t fw_mono_us(void);
struct timespec fw_timespec(int64_t at_ms); /* of either clock */
int64_t fw_thread_cpu_us(void);             /* this thread's CPU time */
/*
 * A condition whose pthread_cond_timedwait() takes fw_timespec() of fw_mono_ms(): a wall clock that
 * is set back would make it wait longer.
 */
void fw_mono_cond_init(pthread_cond_t *c);

int64_t fw_days_from_civil(int year, int month, int day); /* days since 1970-01-01 */
/* Out-of-range days, hours and so on carry over; month must be 1..12. */
int64_t fw_time_ms(int year, int month, int day, int hour, int minute, int second, int ms);
void fw_civil_from_ms(int64_t at_ms, struct fw_civil *out);
bool fw_leap_year(int year);
int fw_month_days(int year, int month);

#define FW_RFC3339_MAX 40
/*
 * "2026-11-21T12:30:00Z", with .mmm unless that is 0; years outside 0..9999 are clamped. Returns
 * dst.
 */
char *fw_rfc3339(char dst[FW_RFC3339_MAX], int64_t at_ms);
/* IMF-fixdate for HTTP headers, "Sat, 21 Nov 2026 12:30:00 GMT". */
char *fw_http_date(char dst[FW_RFC3339_MAX], int64_t at_ms);
/*
 * The three forms of an HTTP-date (RFC 9110 section 5.6.7): IMF-fixdate, rfc850 and asctime. now_ms
 * gives the century of a two-digit year.
 */
FW_MUST_CHECK bool fw_http_date_parse(struct fw_str s, int64_t now_ms, int64_t *out);
/* "1 d 4 h", "25 min", "3.2 s", "412 ms": at most two units. Returns dst. */
char *fw_duration_text(char dst[FW_RFC3339_MAX], int64_t ms);
/*
 * "90", "90s", "15m", "2h", "1d", "1w", "250ms" to milliseconds; a number without a unit is in
 * unit_ms.
 */
FW_MUST_CHECK bool fw_duration_parse(struct fw_str s, int64_t unit_ms, int64_t *out);

#endif
