/* SPDX-License-Identifier: ISC */
/*
 * The decoders of the WHATWG Encoding Standard, equivalent to those of browsers.
 *
 * Unicode and single-byte encodings are decoded here. For multi-byte encodings this file has the
 * standard's rules: which bytes form a character, and how many bytes an invalid sequence takes.
 * iconv maps the characters: all forms of Japanese go through CP932, whose table is the standard's.
 * Where glibc's tables differ from the standard's, exceptions are listed here. iconv keeps no state
 * and gets only whole characters, in batches.
 *
 * One difference from browsers: six GB18030 characters that the standard leaves in private use map
 * to their Unicode characters.
 */
#include <iconv.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"
#include "parse/charset/charset.h"
#include "parse/charset/decode.h"
#include "parse/charset/table.h"

#define BATCH ((size_t)512)

static bool decode_room(struct decode_out *o, size_t n)
{
	size_t cap;
	char *p;

	if (o->failed || o->cap - o->len >= n)
		return !o->failed;
	cap = FW_MAX(o->cap + o->cap / 2, o->len + n) + 64;
	p = fw_arena_grow(o->a, o->p, o->cap, cap);
	if (!p) {
		o->failed = true;
		return false;
	}
	o->p = p;
	o->cap = cap;
	return true;
}

static void utf8_first_bad(struct decode_out *o, size_t at)
{
	if (!o->t.fault_n && !o->t.zero_n) {
		o->t.bad = at;
		o->t.place = o->len;
	}
}

static void decode_zero(struct decode_out *o, size_t at)
{
	utf8_first_bad(o, at);
	o->t.zero_n++;
}

/* at: offset in the input. */
static void decode_put(struct decode_out *o, uint32_t cp, size_t at)
{
	if (cp == 0) {
		decode_zero(o, at);
		return;
	}
	if (decode_room(o, 4))
		o->len += fw_utf8_put(o->p + o->len, cp);
	o->t.high_n += cp >= 0x80;
}

static void decode_put_fault(struct decode_out *o, size_t at)
{
	utf8_first_bad(o, at);
	if (decode_room(o, 4))
		o->len += fw_utf8_put(o->p + o->len, 0xfffd);
	o->t.fault_n++;
}

static void decode_put_run(struct decode_out *o, const char *p, size_t n)
{
	if (n && decode_room(o, n)) {
		memcpy(o->p + o->len, p, n);
		o->len += n;
	}
}

/* ---- Unicode's own --------------------------------------------------------------------------- */

static void from_utf8(struct decode_out *o, struct fw_str s)
{
	size_t i = 0, n;

	while (i < s.len && !o->failed) {
		size_t good = fw_utf8_valid(s.p + i, s.len - i);
		struct fw_str run = fw_str_sub(s, i, i + good);

		for (size_t k = 0; k < run.len; k += n) {
			const char *nul = memchr(run.p + k, 0, run.len - k);

			n = nul ? (size_t)(nul - run.p) - k : run.len - k;
			decode_put_run(o, run.p + k, n);
			for (size_t j = 0; j < n; j++)
				o->t.high_n += ((unsigned char)run.p[k + j] & 0xc0) == 0xc0;
			if (nul) {
				decode_zero(o, i + k + n);
				n++;
			}
		}
		i += good;
		if (i < s.len) {
			decode_put_fault(o, i);
			/* one replacement for a truncated character */
			for (i++; i < s.len && ((unsigned char)s.p[i] & 0xc0) == 0x80; i++)
				;
		}
	}
}

static void from_utf16(struct decode_out *o, struct fw_str s, bool big)
{
	const unsigned char *p = (const unsigned char *)s.p;
	size_t hi = big ? 0 : 1, lo = big ? 1 : 0;

	for (size_t i = 0; i + 1 < s.len && !o->failed; i += 2) {
		uint32_t u = (uint32_t)p[i + hi] << 8 | p[i + lo];

		if (u >= 0xd800 && u <= 0xdbff && i + 3 < s.len) {
			uint32_t v = (uint32_t)p[i + 2 + hi] << 8 | p[i + 2 + lo];

			if (v >= 0xdc00 && v <= 0xdfff) {
				decode_put(o, 0x10000 + ((u - 0xd800) << 10) + (v - 0xdc00), i);
				i += 2;
				continue;
			}
		}
		if (u >= 0xd800 && u <= 0xdfff)
			decode_put_fault(o, i);
		else
			decode_put(o, u, i);
	}
	if (s.len % 2)
		decode_put_fault(o, s.len - 1);
}

static void from_utf32(struct decode_out *o, struct fw_str s, bool big)
{
	const unsigned char *p = (const unsigned char *)s.p;

	for (size_t i = 0; i + 3 < s.len && !o->failed; i += 4) {
		uint32_t u = big ?
			(uint32_t)p[i] << 24 | (uint32_t)p[i + 1] << 16 | (uint32_t)p[i + 2] << 8 | p[i + 3] :
			(uint32_t)p[i + 3] << 24 | (uint32_t)p[i + 2] << 16 | (uint32_t)p[i + 1] << 8 | p[i];

		if (u > 0x10ffff || (u >= 0xd800 && u <= 0xdfff))
			decode_put_fault(o, i);
		else
			decode_put(o, u, i);
	}
	if (s.len % 4)
		decode_put_fault(o, s.len & ~(size_t)3);
}

/* ---- one byte, one character ----------------------------------------------------------------- */

uint32_t fw_windows_1252(unsigned char c)
{
	return c < 0x80 ? c : SINGLE[0].point[c - 0x80];
}

static const uint16_t *single_byte_table(const char *name)
{
	for (size_t i = 0; i < FW_N(SINGLE); i++) {
		if (strcmp(SINGLE[i].name, name) == 0)
			return SINGLE[i].point;
	}
	return SINGLE[0].point;
}

static void from_single(struct decode_out *o, struct fw_str s, const uint16_t *table)
{
	size_t i = 0;

	while (i < s.len && !o->failed) {
		size_t from = i;

		while (i < s.len && (unsigned char)s.p[i] - 1u < 0x7f)
			i++;
		decode_put_run(o, s.p + from, i - from);
		for (; i < s.len && (unsigned char)s.p[i] - 1u >= 0x7f; i++) {
			uint32_t cp = s.p[i] ? table[(unsigned char)s.p[i] - 0x80] : 0;

			if (cp == 0xfffd)
				decode_put_fault(o, i);
			else
				decode_put(o, cp, i);
		}
	}
}

/* The exact length of the text, except for U+0000. */
static size_t single_size(struct fw_str s, const uint16_t *table)
{
	unsigned char more[256] = {0};
	size_t n = s.len;

	for (int c = 128; c < 256; c++)
		more[c] = table[c - 128] < 0x800 ? 1 : 2;
	for (size_t i = 0; i < s.len; i++)
		n += more[(unsigned char)s.p[i]];
	return n;
}

/* ---- several bytes --------------------------------------------------------------------------- */

/* A batch of whole characters for iconv. from: the input offset of each. */
struct decode_batch {
	struct decode_out *o;
	iconv_t cd;
	/* an invalid pair takes its second byte along even if that is ASCII */
	bool pairs;
	size_t n;
	char buf[BATCH];
	size_t from[BATCH];
};

static void iconv_batch_flush(struct decode_batch *b)
{
	struct decode_out *o = b->o;
	char *in = b->buf, *end = b->buf + b->n;

	while (in < end && decode_room(o, 3 * (size_t)(end - in) + 16)) {
		char *at = o->p + o->len;
		size_t left = (size_t)(end - in), space = o->cap - o->len;
		bool fine = iconv(b->cd, &in, &left, &at, &space) != (size_t)-1;

		if (fine) /* flush the second half of a character that maps to two code points */
			fine = iconv(b->cd, NULL, NULL, &at, &space) != (size_t)-1;
		for (const char *p = o->p + o->len; p < at; p++)
			o->t.high_n += ((unsigned char)*p & 0xc0) == 0xc0;
		o->len = (size_t)(at - o->p);
		if (fine || in >= end)
			continue;
		decode_put_fault(o, b->from[in - b->buf]);
		in += end - in > 1 && (b->pairs || (unsigned char)in[1] >= 0x80) ? 2 : 1;
	}
	b->n = 0;
}

static void batch_add(struct decode_batch *b, const unsigned char *p, size_t n, size_t at)
{
	if (b->n + n > BATCH)
		iconv_batch_flush(b);
	for (size_t i = 0; i < n; i++) {
		b->from[b->n] = at;
		b->buf[b->n++] = (char)p[i];
	}
}

static void batch_add_point(struct decode_batch *b, uint32_t cp, size_t at)
{
	iconv_batch_flush(b);
	decode_put(b->o, cp, at);
}

/* Report a fault of n bytes and skip them. */
static size_t batch_add_fault(struct decode_batch *b, size_t at, size_t n)
{
	iconv_batch_flush(b);
	decode_put_fault(b->o, at);
	return n;
}

static bool byte_within(unsigned c, unsigned from, unsigned to)
{
	return c >= from && c <= to;
}

struct exception {
	uint16_t pair;
	uint32_t point;
};

static uint32_t exception(const struct exception *list, size_t n, const unsigned char *p)
{
	unsigned pair = (unsigned)p[0] << 8 | p[1];
	size_t low = 0;

	while (low < n) {
		size_t mid = low + (n - low) / 2;

		if (list[mid].pair == pair)
			return list[mid].point;
		if (list[mid].pair < pair)
			low = mid + 1;
		else
			n = mid;
	}
	return 0;
}

/* A pair of bytes, which iconv decodes unless the list has it. */
static size_t batch_add_pair(
	struct decode_batch *b, const struct exception *list, size_t n, const unsigned char *p, size_t at)
{
	uint32_t cp = exception(list, n, p);

	if (cp)
		batch_add_point(b, cp, at);
	else
		batch_add(b, p, 2, at);
	return 2;
}

/*
 * A step decodes the character at p, whose first byte is outside ASCII, and returns its length in
 * bytes.
 */
typedef size_t step_fn(struct decode_batch *b, const unsigned char *p, size_t left, size_t at);

/*
 * A lead byte without a valid second byte. An ASCII byte after it is kept; any other belongs to the
 * fault.
 */
static size_t batch_no_pair(struct decode_batch *b, const unsigned char *p, size_t left, size_t at)
{
	return batch_add_fault(b, at, left > 1 && p[1] >= 0x80 ? 2 : 1);
}

/*
 * Four-byte sequences of characters that two bytes also encode. glibc lacks them, or from 2.41
 * those in private use.
 */
static uint32_t gb18030_four(const unsigned char *p)
{
	uint32_t n = (((p[0] - 0x81u) * 10 + p[1] - '0') * 126 + p[2] - 0x81u) * 10 + p[3] - '0';

	if (n - 19057 < 8)
		return 0x9fb4 + n - 19057;
	return n - 39076 < 10 ? 0xfe10 + n - 39076 : 0;
}

static size_t step_gb18030(struct decode_batch *b, const unsigned char *p, size_t left, size_t at)
{
	/* private use in the standard, and in glibc from 2.41 */
	static const struct exception LIST[] = {
		{0xa3a0, 0x3000},
		{0xfe51, 0x20087},
		{0xfe52, 0x20089},
		{0xfe53, 0x200cc},
		{0xfe6c, 0x215d7},
		{0xfe76, 0x2298f},
		{0xfe91, 0x241fe},
	};
	uint32_t cp;

	if (*p == 0x80) {
		batch_add_point(b, 0x20ac, at);
		return 1;
	}
	if (*p == 0xff)
		return batch_add_fault(b, at, 1);
	if (left > 1 && byte_within(p[1], '0', '9')) {
		if (left < 4 && (left < 3 || byte_within(p[2], 0x81, 0xfe)))
			return batch_add_fault(b, at, left);
		if (!byte_within(p[2], 0x81, 0xfe) || !byte_within(p[3], '0', '9'))
			return batch_add_fault(b, at, 1);
		cp = gb18030_four(p);
		if (cp)
			batch_add_point(b, cp, at);
		else
			batch_add(b, p, 4, at);
		return 4;
	}
	if (left < 2 || !(byte_within(p[1], 0x40, 0x7e) || byte_within(p[1], 0x80, 0xfe)))
		return batch_no_pair(b, p, left, at);
	return batch_add_pair(b, LIST, FW_N(LIST), p, at);
}

static size_t step_big5(struct decode_batch *b, const unsigned char *p, size_t left, size_t at)
{
	static const struct exception LIST[] = {
		{0x8e69, 0x7bb8},
		{0x8e6f, 0x7c06},
		{0x8e7e, 0x7cce},
		{0x8eab, 0x7dd2},
		{0x8eb4, 0x7e1d},
		{0x8ecd, 0x8005},
		{0x8ed0, 0x8028},
		{0x8f57, 0x83c1},
		{0x8f69, 0x84a8},
		{0x8f6e, 0x840f},
		{0x8fcb, 0x89a6},
		{0x8fcc, 0x89a9},
		{0x8ffe, 0x8d77},
		{0x906d, 0x90fd},
		{0x907a, 0x92b9},
		{0x90dc, 0x975c},
		{0x90f1, 0x97ff},
		{0x91bf, 0x9f16},
		{0x9244, 0x8503},
		{0x92af, 0x5159},
		{0x92b0, 0x515b},
		{0x92b1, 0x515d},
		{0x92b2, 0x515e},
		{0x92c8, 0x936e},
		{0x92d1, 0x7479},
		{0x9447, 0x6d67},
		{0x94ca, 0x799b},
		{0x95d9, 0x9097},
		{0x9644, 0x975d},
		{0x96ed, 0x701e},
		{0x96fc, 0x5b28},
		{0x9b76, 0x7201},
		{0x9b78, 0x77d7},
		{0x9b7b, 0x7e87},
		{0x9bc6, 0x99d6},
		{0x9bde, 0x91d4},
		{0x9bec, 0x60de},
		{0x9bf6, 0x6fb6},
		{0x9c42, 0x8f36},
		{0x9c53, 0x4fbb},
		{0x9c62, 0x71df},
		{0x9c68, 0x9104},
		{0x9c6b, 0x9df0},
		{0x9c77, 0x83cf},
		{0x9cbc, 0x5c10},
		{0x9cbd, 0x79e3},
		{0x9cd0, 0x5a67},
		{0x9d57, 0x8f0b},
		{0x9d5a, 0x7b51},
		{0x9dc4, 0x62d0},
		{0x9ea9, 0x6062},
		{0x9eef, 0x75f9},
		{0x9efd, 0x6c4a},
		{0x9f60, 0x9b2e},
		{0x9f66, 0x9f17},
		{0x9fcb, 0x50ed},
		{0x9fd8, 0x5f0c},
		{0xa063, 0x880f},
		{0xa077, 0x62ce},
		{0xa0d5, 0x7468},
		{0xa0df, 0x7162},
		{0xa0e4, 0x7250},
		{0xa145, 0x2027},
		{0xa14e, 0xfe51},
		{0xa15a, 0x2574},
		{0xa1c2, 0x00af},
		{0xa1c3, 0xffe3},
		{0xa1c5, 0x02cd},
		{0xa1e3, 0xff5e},
		{0xa1f2, 0x2295},
		{0xa1f3, 0x2299},
		{0xa1fe, 0xff0f},
		{0xa240, 0xff3c},
		{0xa241, 0x2215},
		{0xa242, 0xfe68},
		{0xa244, 0xffe5},
		{0xa246, 0xffe0},
		{0xa247, 0xffe1},
		{0xa2cc, 0x5341},
		{0xa2ce, 0x5345},
		{0xa3c0, 0x2400},
		{0xa3c1, 0x2401},
		{0xa3c2, 0x2402},
		{0xa3c3, 0x2403},
		{0xa3c4, 0x2404},
		{0xa3c5, 0x2405},
		{0xa3c6, 0x2406},
		{0xa3c7, 0x2407},
		{0xa3c8, 0x2408},
		{0xa3c9, 0x2409},
		{0xa3ca, 0x240a},
		{0xa3cb, 0x240b},
		{0xa3cc, 0x240c},
		{0xa3cd, 0x240d},
		{0xa3ce, 0x240e},
		{0xa3cf, 0x240f},
		{0xa3d0, 0x2410},
		{0xa3d1, 0x2411},
		{0xa3d2, 0x2412},
		{0xa3d3, 0x2413},
		{0xa3d4, 0x2414},
		{0xa3d5, 0x2415},
		{0xa3d6, 0x2416},
		{0xa3d7, 0x2417},
		{0xa3d8, 0x2418},
		{0xa3d9, 0x2419},
		{0xa3da, 0x241a},
		{0xa3db, 0x241b},
		{0xa3dc, 0x241c},
		{0xa3dd, 0x241d},
		{0xa3de, 0x241e},
		{0xa3df, 0x241f},
		{0xa3e0, 0x2421},
		{0xa3e1, 0x20ac},
		{0xc6cf, 0x5ef4},
		{0xc6d3, 0x65e0},
		{0xc6d5, 0x7676},
		{0xc6d7, 0x96b6},
		{0xc6de, 0x3003},
		{0xc6df, 0x4edd},
		{0xfa5f, 0x5029},
		{0xfa66, 0x507d},
		{0xfabd, 0x5305},
		{0xfac5, 0x5344},
		{0xfad5, 0x537f},
		{0xfb48, 0x5605},
		{0xfbb8, 0x5a77},
		{0xfbf3, 0x5e75},
		{0xfbf9, 0x5ed0},
		{0xfc4f, 0x5f58},
		{0xfc6c, 0x60a4},
		{0xfcb9, 0x6490},
		{0xfce2, 0x6674},
		{0xfcf1, 0x675e},
		{0xfdb7, 0x6c9c},
		{0xfdb8, 0x6e1d},
		{0xfdbb, 0x6e2f},
		{0xfdf1, 0x716e},
		{0xfe52, 0x732a},
		{0xfe6f, 0x745c},
		{0xfeaa, 0x74e9},
		{0xfedd, 0x7809},
	};

	if (!byte_within(*p, 0x81, 0xfe))
		return batch_add_fault(b, at, 1);
	if (left < 2 || !(byte_within(p[1], 0x40, 0x7e) || byte_within(p[1], 0xa1, 0xfe)))
		return batch_no_pair(b, p, left, at);
	return batch_add_pair(b, LIST, FW_N(LIST), p, at);
}

static size_t step_euc_kr(struct decode_batch *b, const unsigned char *p, size_t left, size_t at)
{
	if (!byte_within(*p, 0x81, 0xfe))
		return batch_add_fault(b, at, 1);
	/* A2 E8 is invalid, and glibc has moved past it when it reports that */
	if (left < 2 || !byte_within(p[1], 0x41, 0xfe) || (p[0] == 0xa2 && p[1] == 0xe8))
		return batch_no_pair(b, p, left, at);
	batch_add(b, p, 2, at);
	return 2;
}

static size_t step_shift_jis(struct decode_batch *b, const unsigned char *p, size_t left, size_t at)
{
	if (*p == 0x80) {
		batch_add_point(b, 0x80, at);
		return 1;
	}
	if (byte_within(*p, 0xa1, 0xdf)) {
		batch_add(b, p, 1, at);
		return 1;
	}
	if (*p == 0xa0 || *p > 0xfc)
		return batch_add_fault(b, at, 1);
	if (left < 2 || !(byte_within(p[1], 0x40, 0x7e) || byte_within(p[1], 0x80, 0xfc)))
		return batch_no_pair(b, p, left, at);
	batch_add(b, p, 2, at);
	return 2;
}

/* Add a character by row and cell of JIS X 0208 (1 to 94), in Shift_JIS. */
static void batch_add_jis(struct decode_batch *b, unsigned row, unsigned cell, size_t at)
{
	unsigned lead = (row - 1) / 2 + 0x81, trail = cell + (row % 2 ? 0x3f : 0x9e);
	unsigned char pair[2];

	pair[0] = (unsigned char)(lead > 0x9f ? lead + 0x40 : lead);
	pair[1] = (unsigned char)(row % 2 && trail >= 0x7f ? trail + 1 : trail);
	batch_add(b, pair, 2, at);
}

/* JIS X 0212 is rare: convert one character at a time. */
#define ICONV_JIS0212 "EUC-JP"

static void decode_put_jis0212(struct decode_out *o, const unsigned char *p, size_t at)
{
	iconv_t cd = iconv_open("UTF-8", ICONV_JIS0212);
	char *in = (char *)(uintptr_t)p, *to;
	size_t left = 3, space = 8;

	if (!decode_room(o, 8))
		goto out;
	to = o->p + o->len;
	if (cd != (iconv_t)-1 && iconv(cd, &in, &left, &to, &space) != (size_t)-1) {
		o->len = (size_t)(to - o->p);
		o->t.high_n++;
	} else {
		decode_put_fault(o, at);
	}
out:
	if (cd != (iconv_t)-1)
		iconv_close(cd);
}

static size_t step_euc_jp(struct decode_batch *b, const unsigned char *p, size_t left, size_t at)
{
	if (*p == 0x8e && left > 1 && byte_within(p[1], 0xa1, 0xdf)) {
		batch_add(b, p + 1, 1, at);
		return 2;
	}
	if (*p == 0x8f && left > 1 && byte_within(p[1], 0xa1, 0xfe)) {
		if (left < 3 || !byte_within(p[2], 0xa1, 0xfe))
			return batch_add_fault(b, at, left > 2 && p[2] >= 0x80 ? 3 : 2);
		iconv_batch_flush(b);
		decode_put_jis0212(b->o, p, at);
		return 3;
	}
	if (*p != 0x8e && *p != 0x8f && !byte_within(*p, 0xa1, 0xfe))
		return batch_add_fault(b, at, 1);
	if (*p < 0xa1 || left < 2 || !byte_within(p[1], 0xa1, 0xfe))
		return batch_no_pair(b, p, left, at);
	batch_add_jis(b, p[0] - 0xa0u, p[1] - 0xa0u, at);
	return 2;
}

static void batch_steps(struct decode_batch *b, struct fw_str s, step_fn *step)
{
	const unsigned char *p = (const unsigned char *)s.p;
	size_t i = 0;

	while (i < s.len && !b->o->failed) {
		size_t from = i;

		while (i < s.len && p[i] - 1u < 0x7f)
			i++;
		if (i - from > 16) {
			iconv_batch_flush(b);
			decode_put_run(b->o, s.p + from, i - from);
		} else if (i > from) {
			batch_add(b, p + from, i - from, from);
		}
		for (; i < s.len && p[i] - 1u >= 0x7f; i += p[i] ? step(b, p + i, s.len - i, i) : 1) {
			if (!p[i])
				batch_add_point(b, 0, i);
		}
	}
}

/*
 * 7-bit text in which escapes switch the character set. More tolerant than browsers in two ways:
 * line ends and spaces are valid in every state, and an escape may follow another.
 */
static void from_iso2022jp(struct decode_batch *b, struct fw_str s)
{
	static const struct {
		char escape[3];
		enum state { ASCII, ROMAN, KATAKANA, JIS } state;
	} TO[] = {
		{{0x1b, '(', 'B'}, ASCII},
		{{0x1b, '(', 'J'}, ROMAN},
		{{0x1b, '(', 'I'}, KATAKANA},
		{{0x1b, '$', '@'}, JIS},
		{{0x1b, '$', 'B'}, JIS},
	};
	const unsigned char *p = (const unsigned char *)s.p;
	enum state state = ASCII;
	size_t k;

	for (size_t i = 0; i < s.len && !b->o->failed;) {
		unsigned char c = p[i];

		for (k = 0; c == 0x1b && k < FW_N(TO) && (s.len - i < 3 || memcmp(TO[k].escape, s.p + i, 3)); k++)
			;
		if (c == 0x1b && k < FW_N(TO)) {
			state = TO[k].state;
			i += 3;
		} else if (c == 0) {
			batch_add_point(b, 0, i++);
		} else if (c == 0x1b || c == 0x0e || c == 0x0f || c >= 0x80) {
			i += batch_add_fault(b, i, 1);
		} else if (state == ROMAN && (c == '\\' || c == '~')) {
			batch_add_point(b, c == '~' ? 0x203e : 0xa5, i++);
		} else if (state <= ROMAN || c <= ' ' || c == 0x7f) {
			batch_add(b, &c, 1, i++);
		} else if (state == KATAKANA) {
			if (c <= 0x5f)
				batch_add_point(b, 0xff61u - 0x21 + c, i);
			else
				(void)batch_add_fault(b, i, 1);
			i++;
		} else if (i + 1 < s.len && byte_within(p[i + 1], 0x21, 0x7e)) {
			batch_add_jis(b, c - 0x20u, p[i + 1] - 0x20u, i);
			i += 2;
		} else {
			i += batch_add_fault(b, i, 1);
		}
	}
}

static const struct {
	const char *iconv;
	step_fn *step;
	bool pairs;
} HOW[] = {
	[GB18030] = {"GB18030", step_gb18030, false},
	[BIG5] = {"BIG5-HKSCS", step_big5, false},
	[EUC_KR] = {"CP949", step_euc_kr, false},
	[SHIFT_JIS] = {"CP932", step_shift_jis, false},
	[EUC_JP] = {"CP932", step_euc_jp, true},
	[ISO_2022_JP] = {"CP932", NULL, true},
};

void fw_charset_preload(void)
{
	/* left open: the C library unloads a table that nobody uses */
	(void)iconv_open("UTF-8", ICONV_JIS0212);
	for (size_t i = 0; i < FW_N(HOW); i++) {
		if (HOW[i].iconv)
			(void)iconv_open("UTF-8", HOW[i].iconv);
	}
}

static void from_multi_byte(struct decode_out *o, enum codec codec, struct fw_str s)
{
	struct decode_batch b;

	b.o = o;
	b.n = 0;
	b.pairs = HOW[codec].pairs;
	b.cd = iconv_open("UTF-8", HOW[codec].iconv);
	if (b.cd == (iconv_t)-1) { /* the system has no such table: try the next encoding */
		o->t.fault_n = SIZE_MAX / 32;
		o->t.bad = 0;
		return;
	}
	if (HOW[codec].step)
		batch_steps(&b, s, HOW[codec].step);
	else
		from_iso2022jp(&b, s);
	iconv_batch_flush(&b);
	iconv_close(b.cd);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/*
 * An estimate that is seldom too small: most two-byte characters take three bytes in UTF-8, those
 * of UTF-16 one.
 */
static size_t text_size_estimate(const struct encoding *e, struct fw_str s)
{
	size_t high = 0;

	if (e->codec == SINGLE_BYTE)
		return single_size(s, single_byte_table(e->name));
	if (e->codec < GB18030)
		return s.len + s.len / 8 + 32;
	for (size_t i = 0; i < s.len; i++)
		high += (unsigned char)s.p[i] >> 7;
	if (e->codec == ISO_2022_JP)
		high = s.len / 2;
	else if (e->codec == EUC_KR || e->codec == EUC_JP) /* both bytes are outside ASCII */
		high /= 2;
	return s.len + high + 3 * BATCH + 32;
}

bool fw_charset_decode_as(struct decode_out *o, const struct encoding *e, struct fw_str s, struct fw_str *text)
{
	o->len = 0;
	o->t = (struct decode_stats){0};
	if (!decode_room(o, text_size_estimate(e, s)))
		return false;
	switch (e->codec) {
	case SINGLE_BYTE:
		from_single(o, s, single_byte_table(e->name));
		break;
	case UTF8:
		from_utf8(o, s);
		break;
	case UTF16LE:
		from_utf16(o, s, false);
		break;
	case UTF16BE:
		from_utf16(o, s, true);
		break;
	case UTF32LE:
		from_utf32(o, s, false);
		break;
	case UTF32BE:
		from_utf32(o, s, true);
		break;
	default:
		from_multi_byte(o, e->codec, s);
		break;
	}
	if (o->failed)
		return false;
	/* a BOM may also follow leading bytes that were another BOM */
	*text = (struct fw_str){o->p, o->len};
	if (fw_str_starts(*text, FW_STR("\xef\xbb\xbf")))
		*text = fw_str_sub(*text, 3, text->len);
	return true;
}
