/* SPDX-License-Identifier: ISC */
/*
 * Parses dates as feeds write them.
 *
 * Two fast paths handle what nearly all feeds use, RFC 3339 and RFC 822. A bare number is Unix time
 * or a date without separators. Everything else goes to the lenient parser (lenient.c). Sources:
 * RFC 822 section 5, RFC 2822 section 4.3, RFC 3339, ISO 8601, FMT-07, protocols note 5.9.
 */
#include "base/clock.h"
#include "base/utf8.h"
#include "parse/date/date.h"
#include "parse/date/parts.h"

/* ---- fast paths ------------------------------------------------------------------------------ */

/* "+02:00" or "-0500" as the whole rest of s. */
static bool fast_offset(struct fw_str s, int *zone_min)
{
	int h, m;

	if ((s.len != 5 && s.len != 6) || (s.p[0] != '+' && s.p[0] != '-') || (s.len == 6 && s.p[3] != ':'))
		return false;
	h = digits_parse(s.p + 1, 2);
	m = digits_parse(s.p + s.len - 2, 2);
	if (h < 0 || h > 23 || m < 0 || m > 59)
		return false;
	*zone_min = (s.p[0] == '-' ? -1 : 1) * (h * 60 + m);
	return true;
}

/* "2003-12-31T10:14:55[.250][Z|+00:00]" as all of s. MSSQL writes a space instead of T. */
static bool fast_rfc3339(struct fw_str s, struct date_parts *p)
{
	size_t i = 19;
	int scale = 100;

	if (s.len < 19 || s.p[4] != '-' || s.p[7] != '-' || ((s.p[10] | 32) != 't' && s.p[10] != ' ') ||
		s.p[13] != ':' || s.p[16] != ':')
		return false;
	p->year = digits_parse(s.p, 4);
	p->month = digits_parse(s.p + 5, 2);
	p->day = digits_parse(s.p + 8, 2);
	p->hour = digits_parse(s.p + 11, 2);
	p->minute = digits_parse(s.p + 14, 2);
	p->second = digits_parse(s.p + 17, 2);
	if ((p->year | p->month | p->day | p->hour | p->minute | p->second) < 0)
		return false;
	if (i < s.len && s.p[i] == '.') {
		for (i++; i < s.len && fw_is_digit(s.p[i]); i++, scale /= 10)
			p->ms += scale * (s.p[i] - '0');
	}
	s = fw_str_sub(s, i, s.len);
	if (s.len == 0 || (s.len == 1 && (s.p[0] | 32) == 'z'))
		return true;
	return fast_offset(s, &p->zone_min);
}

/* A zone's name ("EST", "CEST", "Z") as the whole rest of s. */
static bool fast_zone(struct fw_str s, int *zone_min)
{
	char word[4];

	if (s.len == 0 || s.len > sizeof(word))
		return false;
	for (size_t i = 0; i < s.len; i++)
		word[i] = (char)fw_lower((unsigned char)s.p[i]);
	return fw_date_zone((struct fw_str){word, s.len}, zone_min);
}

/* "[Thu, ]1 Jan 2004 19:48:21 (GMT|UTC|Z|+0000)" as all of s. */
static bool fast_rfc822(struct fw_str s, struct date_parts *p)
{
	size_t i = 0;

	if (s.len > 5 && s.p[3] == ',' && s.p[4] == ' ')
		i = 5;
	if (s.len < i + 20)
		return false;
	if (s.p[i + 1] == ' ') {
		p->day = digits_parse(s.p + i, 1);
		i += 2;
	} else {
		p->day = digits_parse(s.p + i, 2);
		if (s.p[i + 2] != ' ')
			return false;
		i += 3;
	}
	if (s.len < i + 19 || s.p[i + 3] != ' ' || s.p[i + 8] != ' ' || s.p[i + 11] != ':' || s.p[i + 14] != ':' ||
		s.p[i + 17] != ' ')
		return false;
	p->month = fw_date_english_month(s.p + i);
	p->year = digits_parse(s.p + i + 4, 4);
	p->hour = digits_parse(s.p + i + 9, 2);
	p->minute = digits_parse(s.p + i + 12, 2);
	p->second = digits_parse(s.p + i + 15, 2);
	if (!p->month || (p->day | p->year | p->hour | p->minute | p->second) < 0)
		return false;
	s = fw_str_sub(s, i + 18, s.len);
	if (s.len == 3 && (memcmp(s.p, "GMT", 3) == 0 || memcmp(s.p, "UTC", 3) == 0))
		return true;
	return fast_offset(s, &p->zone_min) || fast_zone(s, &p->zone_min);
}

/* ---- numbers alone --------------------------------------------------------------------------- */

/* Unix time in seconds from 1973 to 2100, or the same in ms or us. */
static bool epoch_parse(const char *p, size_t n, int64_t *out)
{
	int64_t v;

	if (n < 9 || n > 16 || !fw_str_int((struct fw_str){p, n}, &v))
		return false;
	if (n >= 15)
		v /= 1000;
	else if (n <= 10)
		v *= 1000;
	if (v < INT64_C(100000000000) || v > INT64_C(4102444800000))
		return false;
	*out = v;
	return true;
}

/*
 * Only digits, with an optional fraction of a second: 20031231101455, 1072865695, 1072865695.25,
 * 1072865695000.
 */
static bool bare_number_parse(struct fw_str s, int64_t *out)
{
	struct date_parts p = {.zone_min = NONE};
	size_t n = 0;

	while (n < s.len && fw_is_digit(s.p[n]))
		n++;
	if (n < s.len && s.p[n] != '.')
		return false;
	for (size_t i = n + 1; i < s.len; i++) {
		if (!fw_is_digit(s.p[i]))
			return false;
	}
	if ((n == 12 || n == 14) && (memcmp(s.p, "20", 2) == 0 || memcmp(s.p, "19", 2) == 0)) {
		p.year = digits_parse(s.p, 4);
		p.month = digits_parse(s.p + 4, 2);
		p.day = digits_parse(s.p + 6, 2);
		p.hour = digits_parse(s.p + 8, 2);
		p.minute = digits_parse(s.p + 10, 2);
		p.second = n > 12 ? digits_parse(s.p + 12, 2) : 0;
		if (fw_date_to_ms(&p, out))
			return true;
	}
	return epoch_parse(s.p, n, out);
}

bool fw_date_parse(struct fw_str s, int64_t *out, bool *zone_unknown)
{
	struct date_parts p = {.zone_min = NONE};
	bool unknown;

	if (!zone_unknown)
		zone_unknown = &unknown;
	*zone_unknown = false;
	s = fw_str_trim(s);
	if (s.len < 4)
		return false;
	if (fw_is_digit(s.p[0]) ? fast_rfc3339(s, &p) : fast_rfc822(s, &p))
		return fw_date_to_ms(&p, out);
	if (s.len > MAX_BYTES)
		s.len = fw_utf8_cut(s.p, s.len, MAX_BYTES);
	if (fw_str_istarts(s, FW_STR("/Date("))) { /* Microsoft's JSON */
		size_t n = 6;

		while (n < s.len && fw_is_digit(s.p[n]))
			n++;
		return n > 15 && epoch_parse(s.p + 6, n - 6, out);
	}
	return (fw_is_digit(s.p[0]) && bare_number_parse(s, out)) || fw_date_parse_lenient(s, out, zone_unknown);
}
