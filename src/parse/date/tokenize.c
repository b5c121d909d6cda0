/* SPDX-License-Identifier: ISC */
/*
 * Tokenizer of the lenient parser: numbers, words and signs. Comments in parentheses are white
 * space.
 */
#include "base/utf8.h"
#include "parse/date/parts.h"

static int digit_value(uint32_t c)
{
	/* ASCII, full width, Arabic-Indic, Persian */
	static const uint32_t zero[] = {'0', 0xff10, 0x660, 0x6f0};

	for (size_t i = 0; i < FW_N(zero); i++) {
		if (c >= zero[i] && c < zero[i] + 10)
			return (int)(c - zero[i]);
	}
	return -1;
}

static bool is_gap(uint32_t c)
{
	return c <= ' ' || c == 0xa0 || c == 0x3000 || (c >= 0x2000 && c <= 0x200f) || c == 0x202f || c == 0xfeff;
}

static bool is_letter(uint32_t c)
{
	return c < 0x80 ?
		fw_is_alpha((int)c) :
		digit_value(c) < 0 && !is_gap(c) && !(c >= 0x2010 && c <= 0x206f) && !(c >= 0x3001 && c <= 0x303f) &&
			!(c >= 0xff01 && c <= 0xff0f) && c != 0xff1a && c != 0xb7 && c != 0xba;
}

/* Map typographic signs to ASCII. */
static int plain_sign(uint32_t c)
{
	switch (c) {
	case 0x2010:
	case 0x2011:
	case 0x2012:
	case 0x2013:
	case 0x2212:
	case 0xff0d:
		return '-';
	case 0xff1a:
		return ':';
	case 0xff0f:
		return '/';
	case 0xff0e:
	case 0x3002:
		return '.';
	case 0xff0b:
		return '+';
	case 0x2019:
	case 0x2018:
		return '\'';
	default:
		return c < 0x80 ? (int)c : ',';
	}
}

bool fw_date_scan(struct date_scan *sc, struct fw_str s)
{
	bool gap = false, more = false; /* more: the last token may continue */
	size_t n, depth = 0;

	for (size_t i = 0; i < s.len; i += n) {
		uint32_t c = fw_utf8_get(s.p + i, s.len - i, &n);
		struct date_token *t = more ? &sc->tok[sc->n - 1] : NULL;
		int d = digit_value(c);

		/* a comment counts as white space */
		if (c == '(' || c == ')' || depth || is_gap(c)) {
			depth = c == '(' ? depth + 1 : c == ')' ? depth - (depth > 0) : depth;
			gap = true;
			more = false;
			continue;
		}
		if (!t || t->kind == SIGN || (t->kind == NUMBER) != (d >= 0) || !(d >= 0 || is_letter(c))) {
			if (sc->n == MAX_TOKENS)
				return false;
			t = &sc->tok[sc->n++];
			*t = (struct date_token){.kind = d >= 0 ? NUMBER :
					is_letter(c)            ? WORD :
								  SIGN,
				.gap = gap,
				.text = {sc->folded + sc->folded_n, 0}};
			gap = false;
			more = true;
		}
		if (d >= 0) {
			t->value = t->digits < 9 ? t->value * 10 + d : t->value;
			t->digits++;
		} else if (t->kind == SIGN) {
			t->value = plain_sign(c);
			continue;
		}
		t->text.len += fw_utf8_put(sc->folded + sc->folded_n, d >= 0 ? (uint32_t)('0' + d) : fw_date_fold(c));
		sc->folded_n = (size_t)(t->text.p - sc->folded) + t->text.len;
		if (c >= 0xac00 && c <= 0xd7a3)
			sc->korean = true;
		if (c >= 0xe01 && c <= 0xe4e)
			sc->thai = true;
	}
	return sc->n > 0;
}
