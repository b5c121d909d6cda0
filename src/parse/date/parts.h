/* SPDX-License-Identifier: ISC */
/*
 * Shared by the files of the date parser and private to them: date.c (fast paths), lenient.c
 * (lenient parser), tokenize.c (its tokenizer), words.c (names of months and zones), zone.c
 * (places).
 */
#ifndef FW_PARSE_DATE_PARTS_H
#define FW_PARSE_DATE_PARTS_H

#include "base/str.h"
#include "parse/date/date.h"

#define MAX_BYTES 200
#define MAX_TOKENS 64
#define NONE INT32_MIN

/* Daylight saving rules. */
enum zone_rule { ZONE_FIXED, ZONE_EUROPE, ZONE_AMERICA, ZONE_AUSTRALIA, ZONE_NEW_ZEALAND };

struct date_parts {
	int year, month, day, hour, minute, second, ms;
	int zone_min;        /* minutes east of Greenwich, or NONE */
	enum zone_rule rule; /* when daylight saving time adds an hour */
	bool zone_unknown;   /* the date names a zone that is not in the tables */
};

/* The n digits at p as a number; negative if one is not a digit. */
static inline int digits_parse(const char *p, int n)
{
	int v = 0;

	for (int i = 0; i < n; i++) {
		int d = p[i] - '0';

		if (d < 0 || d > 9)
			return -1;
		v = v * 10 + d;
	}
	return v;
}

/* ---- words.c --------------------------------------------------------------------------------- */

/* All words but the first are folded (fw_date_fold). Month numbers are 1 to 12; 0: not a month. */
int fw_date_english_month(const char *p); /* three letters, any case */
int fw_date_month(struct fw_str word);
bool fw_date_zone(struct fw_str word, int *zone_min);
/* 1: before noon, 2: after noon, 0: neither. */
int fw_date_half_day(struct fw_str w);
uint32_t fw_date_fold(uint32_t c);

/* ---- tokenize.c ------------------------------------------------------------------------------ */

enum date_token_kind { NUMBER, WORD, SIGN, USED };

struct date_token {
	enum date_token_kind kind;
	bool gap;  /* white space precedes the token */
	int value; /* NUMBER of up to nine digits: its value; SIGN: the character */
	size_t digits;
	struct fw_str text; /* folded */
};

struct date_scan {
	struct date_token tok[MAX_TOKENS];
	size_t n;
	/* invalid UTF-8 becomes U+FFFD */
	char folded[3 * MAX_BYTES + 4];
	size_t folded_n;
	bool korean, thai;
};

bool fw_date_scan(struct date_scan *sc, struct fw_str s);

static inline const struct date_token *token_at(const struct date_scan *sc, size_t i)
{
	static const struct date_token end = {.kind = USED};

	return i < sc->n ? &sc->tok[i] : &end;
}

static inline bool token_is_number(const struct date_scan *sc, size_t i, size_t min_digits, size_t max_digits)
{
	const struct date_token *t = token_at(sc, i);

	return t->kind == NUMBER && t->digits >= min_digits && t->digits <= max_digits;
}

static inline bool token_is_sign(const struct date_scan *sc, size_t i, int c)
{
	return token_at(sc, i)->kind == SIGN && token_at(sc, i)->value == c;
}

static inline bool token_is_word(const struct date_scan *sc, size_t i, const char *w)
{
	return token_at(sc, i)->kind == WORD && fw_str_eq(token_at(sc, i)->text, fw_str(w));
}

static inline void tokens_use(struct date_scan *sc, size_t from, size_t to)
{
	for (size_t i = from; i < to && i < sc->n; i++)
		sc->tok[i].kind = USED;
}

/* ---- zone.c ---------------------------------------------------------------------------------- */

/* place: "berlin", "new_york", "est5edt", folded. */
bool fw_date_place(struct fw_str place, int *zone_min, enum zone_rule *rule);
bool fw_date_summer(enum zone_rule rule, int zone_min, int year, int64_t local_ms);

/* ---- lenient.c ------------------------------------------------------------------------------- */

bool fw_date_to_ms(const struct date_parts *p, int64_t *out);
bool fw_date_parse_lenient(struct fw_str s, int64_t *out, bool *zone_unknown);

#endif
