/* SPDX-License-Identifier: ISC */
/*
 * The lenient parser: assigns meanings to tokens. Order: units in ideographs (2004<year>5<month>),
 * the clock time, the zone after it, the month's name; the remaining numbers are year, month and
 * day. Unknown words (weekdays, "at", "o'clock") are ignored: a wrong weekday is the most common
 * error in feeds, and the numbers are enough.
 */
#include "base/clock.h"
#include "parse/date/parts.h"

/* NONE: not a year */
static int date_full_year(int value, size_t digits)
{
	if (digits == 2)
		return value + (value <= 68 ? 2000 : 1900);
	if (digits == 3) /* 104 is 2004 if a program counted from 1900 (RFC 2822 section 4.3) */
		return value + 1900;
	return digits == 4 && value >= 1000 ? value : NONE;
}

bool fw_date_to_ms(const struct date_parts *p, int64_t *out)
{
	if (p->year < 1000 || p->year > 9999 || p->month < 1 || p->month > 12 || p->day < 1 ||
		p->day > fw_month_days(p->year, p->month))
		return false;
	if (p->hour < 0 || p->hour > 24 || p->minute < 0 || p->minute > 59 || p->second < 0 || p->second > 60)
		return false;
	if (p->hour == 24 && (p->minute || p->second || p->ms))
		return false;
	*out = fw_time_ms(p->year, p->month, p->day, p->hour, p->minute, p->second, p->ms);
	if (p->zone_min != NONE)
		*out -= (p->zone_min + (fw_date_summer(p->rule, p->zone_min, p->year, *out) ? 60 : 0)) * FW_MINUTE_MS;
	return true;
}

/* Numbers followed by their unit: 2004年5月28日 11時23分17秒, 2004년 05월 28일. */
static void read_units(struct date_scan *sc, struct date_parts *p)
{
	static const struct {
		const char *unit;
		size_t member;
	} UNITS[] = {
		{"年", 0},
		{"년", 0},
		{"月", 1},
		{"월", 1},
		{"日", 2},
		{"일", 2},
		{"号", 2},
		{"时", 3},
		{"時", 3},
		{"点", 3},
		{"시", 3},
		{"分", 4},
		{"분", 4},
		{"秒", 5},
		{"초", 5},
	};
	int *const member[] = {&p->year, &p->month, &p->day, &p->hour, &p->minute, &p->second};

	for (size_t i = 0; i + 1 < sc->n; i++) {
		if (!token_is_number(sc, i, 1, 4) || sc->tok[i + 1].kind != WORD)
			continue;
		for (size_t u = 0; u < FW_N(UNITS); u++) {
			if (!fw_str_starts(sc->tok[i + 1].text, fw_str(UNITS[u].unit)))
				continue;
			*member[UNITS[u].member] = UNITS[u].member ?
				sc->tok[i].value :
				date_full_year(sc->tok[i].value, sc->tok[i].digits);
			tokens_use(sc, i, i + 1);
			break;
		}
	}
}

static void read_fraction(const struct date_token *t, struct date_parts *p)
{
	int scale = 100;

	for (size_t i = 0; i < t->text.len && i < 3; i++, scale /= 10)
		p->ms += scale * (t->text.p[i] - '0');
}

/* The month at token i: a name, or Thai initials (two words with full stops). 0: not a month. */
static int read_month(const struct date_scan *sc, size_t i)
{
	static const char *const THAI[12][2] = {{"ม", "ค"}, {"ก", "พ"}, {"มี", "ค"}, {"เม", "ย"}, {"พ", "ค"}, {"มิ", "ย"},
		{"ก", "ค"}, {"ส", "ค"}, {"ก", "ย"}, {"ต", "ค"}, {"พ", "ย"}, {"ธ", "ค"}};

	if (token_at(sc, i)->kind != WORD)
		return 0;
	for (int m = 0; sc->thai && m < 12; m++) {
		if (token_is_word(sc, i, THAI[m][0]) && token_is_sign(sc, i + 1, '.') &&
			token_is_word(sc, i + 2, THAI[m][1]))
			return m + 1;
	}
	return fw_date_month(sc->tok[i].text);
}

/*
 * The token at which a clock time starts; sc->n if there is none. *sep separates hour and minute.
 */
static size_t find_time(const struct date_scan *sc, int *sep)
{
	for (size_t i = 0; i + 2 < sc->n; i++) {
		if (token_is_number(sc, i, 1, 2) && token_is_sign(sc, i + 1, ':') && token_is_number(sc, i + 2, 1, 2)) {
			*sep = ':';
			return i;
		}
	}
	for (size_t i = 1; i + 2 < sc->n; i++) { /* 19h48 */
		if (token_is_number(sc, i, 1, 2) && token_is_word(sc, i + 1, "h") && token_is_number(sc, i + 2, 2, 2) &&
			!sc->tok[i + 2].gap) {
			*sep = 'h';
			return i;
		}
	}
	for (size_t i = 1; i + 4 < sc->n; i++) { /* 19.48.21 after a date */
		if (sc->tok[i].gap && token_is_number(sc, i, 1, 2) && token_is_sign(sc, i + 1, '.') &&
			token_is_number(sc, i + 2, 2, 2) && token_is_sign(sc, i + 3, '.') &&
			token_is_number(sc, i + 4, 2, 2) && !sc->tok[i + 1].gap && !sc->tok[i + 2].gap) {
			*sep = '.';
			return i;
		}
	}
	return sc->n;
}

/* Read the clock time. Returns the token after it; sc->n if there was none. */
static size_t read_time(struct date_scan *sc, struct date_parts *p)
{
	int sep = 0;
	size_t from = find_time(sc, &sep), i = from + 3;

	if (from == sc->n)
		return sc->n;
	p->hour = sc->tok[from].value;
	p->minute = sc->tok[from + 2].value;
	p->second = 0;
	if (token_at(sc, i)->kind == SIGN &&
		(token_at(sc, i)->value == sep || (sep == ':' && token_at(sc, i)->value == '.')) &&
		token_is_number(sc, i + 1, 1, 2) && !sc->tok[i + 1].gap) {
		p->second = sc->tok[i + 1].value;
		i += 2;
		if ((token_is_sign(sc, i, '.') || token_is_sign(sc, i, ',') || token_is_sign(sc, i, ':')) &&
			token_is_number(sc, i + 1, 1, 200) && !sc->tok[i].gap && !sc->tok[i + 1].gap) {
			read_fraction(&sc->tok[i + 1], p);
			i += 2;
		}
	}
	if (from > 0 && token_is_word(sc, from - 1, "t"))
		from--;
	tokens_use(sc, from, i);
	return i;
}

/*
 * A time without colons after a T: "20040101T194821", "T19". Returns the token after it, or sc->n.
 */
static size_t read_compact_time(struct date_scan *sc, struct date_parts *p)
{
	size_t from;

	for (size_t i = 1; i + 1 < sc->n; i++) {
		const struct date_token *t = &sc->tok[i + 1];

		if (!token_is_word(sc, i, "t") || sc->tok[i].gap || t->gap || !token_is_number(sc, i + 1, 2, 6) ||
			t->digits % 2)
			continue;
		from = i;
		p->hour = digits_parse(t->text.p, 2);
		p->minute = t->digits > 2 ? digits_parse(t->text.p + 2, 2) : 0;
		p->second = t->digits > 4 ? digits_parse(t->text.p + 4, 2) : 0;
		i += 2;
		if ((token_is_sign(sc, i, '.') || token_is_sign(sc, i, ',')) && token_is_number(sc, i + 1, 1, 200)) {
			read_fraction(&sc->tok[i + 1], p);
			i += 2;
		}
		tokens_use(sc, from, i);
		return i;
	}
	return sc->n;
}

/* "am" or "p.m." just after the time, or a word such as 오후 anywhere. Returns the token after it. */
static size_t read_half_day(struct date_scan *sc, size_t i, struct date_parts *p)
{
	int half = 0;

	if (token_at(sc, i)->kind == WORD)
		half = fw_date_half_day(sc->tok[i].text);
	if (half) {
		tokens_use(sc, i, i + 1);
		i++;
		if (token_is_sign(sc, i, '.'))
			i++;
	} else if ((token_is_word(sc, i, "a") || token_is_word(sc, i, "p")) && token_is_sign(sc, i + 1, '.') &&
		token_is_word(sc, i + 2, "m")) {
		half = sc->tok[i].text.p[0] == 'p' ? 2 : 1;
		tokens_use(sc, i, i + 3);
		i += token_is_sign(sc, i + 3, '.') ? 4 : 3;
	} else {
		for (size_t k = 0; k < sc->n && !half; k++)
			half = sc->tok[k].kind == WORD ? fw_date_half_day(sc->tok[k].text) : 0;
	}
	if (half && p->hour <= 12) /* "23:00 PM" means 23:00 */
		p->hour = p->hour % 12 + (half == 2 ? 12 : 0);
	return i;
}

/*
 * An offset at token i without spaces: "+02:00", "-5", "+0530". "+3000" is out of range: UTC.
 * Returns the token after it, or i.
 */
static size_t read_offset(struct date_scan *sc, size_t i, struct date_parts *p)
{
	const struct date_token *t = token_at(sc, i + 1);
	int h, m = 0, sign = token_is_sign(sc, i, '-') ? -1 : 1;
	size_t end = i + 2;

	if ((!token_is_sign(sc, i, '+') && !token_is_sign(sc, i, '-')) || !token_is_number(sc, i + 1, 1, 6) ||
		(t->gap && t->digits != 4))
		return i;
	h = t->value;
	if (t->digits >= 3) {
		m = digits_parse(t->text.p + (t->digits == 3 ? 1 : 2), 2);
		h = digits_parse(t->text.p, t->digits == 3 ? 1 : 2);
	} else if ((token_is_sign(sc, end, ':') || token_is_sign(sc, end, '.')) && token_is_number(sc, end + 1, 1, 2) &&
		!token_at(sc, end)->gap) {
		/* truncated: "+05:3" */
		m = token_at(sc, end + 1)->value * (token_at(sc, end + 1)->digits == 1 ? 10 : 1);
		end += 2;
	}
	p->zone_unknown = h > 23 || m > 59;
	p->zone_min = p->zone_unknown ? 0 : sign * (h * 60 + m);
	tokens_use(sc, i, end);
	return end;
}

/*
 * A place: "Europe/Berlin", "America/Argentina/Buenos_Aires", "EST5EDT", "ET". The part after the
 * last '/' decides.
 */
static bool read_place(struct date_scan *sc, size_t i, struct date_parts *p)
{
	char name[32];
	size_t from = i, n = 0;

	for (; token_at(sc, i)->kind != USED && (i == from || !token_at(sc, i)->gap); i++) {
		const struct date_token *t = token_at(sc, i);

		if (t->kind == SIGN && t->value == '/') {
			n = 0;
		} else if (t->kind == SIGN && (t->value == '_' || t->value == '-') && n < sizeof(name)) {
			name[n++] = '_';
		} else if (t->kind != SIGN && n + t->text.len <= sizeof(name)) {
			memcpy(name + n, t->text.p, t->text.len);
			n += t->text.len;
		} else {
			break;
		}
	}
	if (!n || !fw_date_place((struct fw_str){name, n}, &p->zone_min, &p->rule))
		return false;
	tokens_use(sc, from, i);
	return true;
}

/*
 * A zone in words up to "time": "Central European Time", "W. Europe Standard Time", "EST time". An
 * unknown phrase means UTC; its single words are not looked up.
 */
static bool read_phrase(struct date_scan *sc, size_t i, struct date_parts *p)
{
	char name[32];
	size_t from = i, n = 0;

	for (; token_at(sc, i)->kind == WORD || token_is_sign(sc, i, '.'); i++) {
		struct fw_str word = token_at(sc, i)->text;

		if (n && token_is_word(sc, i, "time"))
			break;
		if (token_at(sc, i)->kind == SIGN || token_is_word(sc, i, "standard") ||
			token_is_word(sc, i, "daylight") || token_is_word(sc, i, "summer"))
			continue;
		if (n + word.len + 1 > sizeof(name))
			return false;
		if (n)
			name[n++] = '_';
		memcpy(name + n, word.p, word.len);
		n += word.len;
	}
	if (!n || !token_is_word(sc, i, "time"))
		return false;
	if (!fw_date_place((struct fw_str){name, n}, &p->zone_min, &p->rule) &&
		(n == 1 || !fw_date_zone((struct fw_str){name, n}, &p->zone_min))) {
		p->zone_min = 0;
		p->zone_unknown = true;
	}
	tokens_use(sc, from, i + 1);
	return true;
}

/* Does the word at token i stand where a zone would, with nothing but a year after it? */
static bool is_some_zone(const struct date_scan *sc, size_t i)
{
	static const char *const OTHERS[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun", "uhr", "hrs", "hour"};
	const struct date_token *t = token_at(sc, i);
	int years = 0;

	if (t->kind != WORD || t->text.len < 2 || fw_date_month(t->text))
		return false;
	for (size_t k = 0; k < t->text.len; k++) {
		if (!fw_is_alpha((unsigned char)t->text.p[k]))
			return false;
	}
	for (size_t k = 0; k < FW_N(OTHERS); k++) {
		if (fw_str_starts(t->text, fw_str(OTHERS[k])))
			return false;
	}
	for (i++; i < sc->n; i++) {
		if (sc->tok[i].kind == NUMBER && (sc->tok[i].digits != 4 || years++))
			return false;
	}
	return true;
}

/*
 * The zone after a time: "GMT", "GMT+2", "+0200", "+02:00 CEST", "EST5EDT", "Etc/GMT",
 * "Europe/Berlin".
 */
static void read_zone(struct date_scan *sc, size_t i, struct date_parts *p)
{
	int named;

	while (token_at(sc, i)->kind == SIGN &&
		(token_at(sc, i)->value == ',' || token_at(sc, i)->value == '/' || token_at(sc, i)->value == '['))
		i++;
	if (token_at(sc, i)->kind == WORD && (read_phrase(sc, i, p) || read_place(sc, i, p)))
		return;
	if (token_at(sc, i)->kind == WORD && fw_date_zone(sc->tok[i].text, &named)) {
		bool greenwich = named == 0;

		if (token_is_word(sc, i, "etc") && token_is_sign(sc, i + 1, '/'))
			i += 2;
		if (token_is_word(sc, i + 1, "dst"))
			named += 60;
		p->zone_min = named;
		tokens_use(sc, i, i + 1);
		i++;
		if (token_is_number(sc, i, 1, 2) && !sc->tok[i].gap) { /* EST5EDT */
			tokens_use(sc, i, i + 1);
			return;
		}
		if (!greenwich)
			return;
	}
	if (read_offset(sc, i, p) == i && p->zone_min == NONE)
		p->zone_unknown = is_some_zone(sc, i);
}

/* Ordinal day: 2003-335. */
static bool set_yearday(struct date_parts *p, int yearday)
{
	if (yearday < 1 || yearday > (fw_leap_year(p->year) ? 366 : 365))
		return false;
	for (p->month = 1; yearday > fw_month_days(p->year, p->month); p->month++)
		yearday -= fw_month_days(p->year, p->month);
	p->day = yearday;
	return true;
}

/* ISO 8601 week date: week 1 contains 4 January; weeks start on Monday. */
static bool set_week(struct date_parts *p, int week, int weekday)
{
	int64_t jan4 = fw_days_from_civil(p->year, 1, 4), monday = jan4 - ((jan4 + 3) % 7 + 7) % 7, day;
	int64_t next4 = fw_days_from_civil(p->year + 1, 1, 4), next = next4 - ((next4 + 3) % 7 + 7) % 7;
	struct fw_civil c;

	day = monday + (week - 1) * 7 + weekday - 1;
	if (week < 1 || weekday < 1 || weekday > 7 || day >= next)
		return false;
	fw_civil_from_ms(day * FW_DAY_MS, &c);
	p->year = c.year;
	p->month = c.month;
	p->day = c.day;
	return true;
}

/* Digits without separators: 20031231, 031231, 2003335, 03335, 2003. */
static bool set_compact(struct date_parts *p, const struct date_token *t)
{
	const char *d = t->text.p;
	size_t y = t->digits >= 7 || t->digits == 4 ? 4 : 2;

	if (t->digits < 4 || t->digits > 8)
		return false;
	p->year = date_full_year(digits_parse(d, (int)y), y);
	if (p->year == NONE)
		return false;
	if (t->digits == 4) {
		p->month = p->day = 1;
		return true;
	}
	if (t->digits == 5 || t->digits == 7)
		return set_yearday(p, digits_parse(d + y, 3));
	p->month = digits_parse(d + y, 2);
	p->day = digits_parse(d + y + 2, 2);
	return true;
}

/* A month's name and up to two numbers; a third one is a time such as 0930. */
static bool set_named(struct date_parts *p, const struct date_token *const *num, size_t n, bool have_time)
{
	const struct date_token *day, *year;

	if (n == 3 && !have_time && num[2]->digits == 4) {
		p->hour = digits_parse(num[2]->text.p, 2);
		p->minute = digits_parse(num[2]->text.p + 2, 2);
		n = 2;
	}
	if (n == 1 && p->year != NONE) { /* 2004年 May 5 */
		p->day = num[0]->value;
		return true;
	}
	if (n == 0 || n == 1) {
		if (p->day == NONE)
			p->day = 1;
		if (n == 0)
			return p->year != NONE;
		p->year = num[0]->digits == 4 ? date_full_year(num[0]->value, 4) : NONE;
		return p->year != NONE;
	}
	if (n != 2)
		return false;
	day = num[0];
	year = num[1];
	if (day->digits > 2 || day->value > 31) {
		day = num[1];
		year = num[0];
	}
	if (day->digits > 2)
		return false;
	p->day = day->value;
	p->year = date_full_year(year->value, year->digits == 1 ? 2 : year->digits);
	return p->year != NONE;
}

/* Three numbers: the year is the one with four digits. Otherwise the separator tells the order. */
static bool set_three(struct date_parts *p, const struct date_token *const *num, int sign)
{
	const struct date_token *year = num[0];

	if (num[1]->digits > 2 || (num[0]->digits > 2 && num[2]->digits > 2))
		return false;
	/* 2003-12-31, 03-12-31, 2003/12/31 */
	if (num[0]->digits > 2 || (num[2]->digits <= 2 && sign == '-')) {
		p->month = num[1]->value;
		p->day = num[2]->value;
	} else { /* 31.12.2003, 31-12-2003, 12/31/2003 */
		bool month_first = sign == '/';

		year = num[2];
		p->month = num[month_first ? 0 : 1]->value;
		p->day = num[month_first ? 1 : 0]->value;
		if (p->month > 12 && p->day <= 12) {
			int swap = p->month;

			p->month = p->day;
			p->day = swap;
		}
	}
	p->year = date_full_year(year->value, year->digits);
	return p->year != NONE;
}

static bool set_two(struct date_parts *p, const struct date_token *const *num)
{
	if (num[0]->digits <= 2 && num[1]->digits == 4) { /* 12/2003 */
		p->month = num[0]->value;
		p->year = date_full_year(num[1]->value, 4);
		p->day = 1;
		return p->year != NONE;
	}
	p->year = date_full_year(num[0]->value, num[0]->digits);
	if (p->year == NONE)
		return false;
	if (num[1]->digits == 3)
		return set_yearday(p, num[1]->value);
	p->month = num[1]->value;
	p->day = 1;
	return num[1]->digits <= 2;
}

/* 2003-W01-3, 2003W013, 2003-W01. Returns whether it is a week date; *ok: that week exists. */
static bool read_week(struct date_scan *sc, struct date_parts *p, bool *ok)
{
	for (size_t i = 0; i + 2 < sc->n; i++) {
		size_t w = i + 1 + token_is_sign(sc, i + 1, '-'), d = w + 2;
		const struct date_token *t = token_at(sc, w + 1);
		int weekday = 1;

		if (!token_is_number(sc, i, 4, 4) || !token_is_word(sc, w, "w") || !token_is_number(sc, w + 1, 2, 3))
			continue;
		if (t->digits == 3)
			weekday = t->text.p[2] - '0';
		else if (token_is_sign(sc, d, '-') && token_is_number(sc, d + 1, 1, 1))
			weekday = token_at(sc, d + 1)->value;
		p->year = date_full_year(sc->tok[i].value, 4);
		*ok = p->year != NONE && set_week(p, digits_parse(t->text.p, 2), weekday);
		return true;
	}
	return false;
}

static bool read_date(struct date_scan *sc, struct date_parts *p, bool have_time)
{
	const struct date_token *num[4];
	bool ok, words = false;
	size_t n = 0;
	int sign = 0;

	if (read_week(sc, p, &ok))
		return ok;
	for (size_t i = 0; i < sc->n; i++) {
		const struct date_token *t = &sc->tok[i];
		int month = read_month(sc, i);

		words = words || t->kind == WORD;
		if (month) /* the last one: "mar." is Tuesday in "mar. 5 janv." */
			p->month = month;
		if (t->kind == NUMBER) {
			if (n == 1 && i > 0 && sc->tok[i - 1].kind == SIGN)
				sign = sc->tok[i - 1].value;
			if (n == FW_N(num))
				return false;
			num[n++] = t;
		}
	}
	if (p->month != NONE)
		return set_named(p, num, n, have_time);
	if (words && n < 3 && !(n == 1 && num[0]->digits == 8)) /* "page 2003", "1.5 rc" */
		return false;
	switch (n) {
	case 1:
		if (num[0]->digits == 4 && token_is_sign(sc, 0, '-')) { /* -0312 */
			p->year = date_full_year(digits_parse(num[0]->text.p, 2), 2);
			p->month = digits_parse(num[0]->text.p + 2, 2);
			p->day = 1;
			return true;
		}
		return set_compact(p, num[0]);
	case 2:
		return set_two(p, num);
	case 3:
		return set_three(p, num, sign);
	default:
		return false;
	}
}

bool fw_date_parse_lenient(struct fw_str s, int64_t *out, bool *zone_unknown)
{
	struct date_parts p = {NONE, NONE, NONE, NONE, NONE, NONE, 0, NONE, ZONE_FIXED, false};
	bool have_time;
	struct date_scan sc;
	size_t i;

	sc.n = sc.folded_n = 0;
	sc.korean = sc.thai = false;
	if (!fw_date_scan(&sc, s))
		return false;
	read_units(&sc, &p);
	i = read_time(&sc, &p);
	if (i == sc.n && p.hour == NONE)
		i = read_compact_time(&sc, &p);
	have_time = p.hour != NONE;
	if (have_time) {
		i = read_half_day(&sc, i, &p);
		read_zone(&sc, i, &p);
	}
	if (!read_date(&sc, &p, have_time))
		return false;
	if (sc.thai && p.year > 2400) /* Buddhist era */
		p.year -= 543;
	p.hour = p.hour == NONE ? 0 : p.hour;
	p.minute = p.minute == NONE ? 0 : p.minute;
	p.second = p.second == NONE ? 0 : p.second;
	/* Korean dates without a zone are local time, as in feedparser */
	if (sc.korean && p.zone_min == NONE)
		p.zone_min = 9 * 60;
	*zone_unknown = p.zone_unknown;
	return fw_date_to_ms(&p, out);
}
