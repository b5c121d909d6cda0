/* SPDX-License-Identifier: ISC */
/*
 * Validation follows RFC 3629 section 4: the first byte gives the character's length and narrows
 * the range of the second byte; the others are 80-BF. ASCII is skipped 16 bytes at a time.
 *
 * With AVX2, 32 bytes are checked at once by the method of Keiser and Lemire ("Validating UTF-8 in
 * less than one instruction per byte", 2021). Three table lookups by nibble (both nibbles of a
 * byte, the high one of the next) give the possible faults; a fault that all three report is real.
 * Blocks with a fault, and the last bytes, go through the plain loop, which finds the exact place.
 */
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define HAVE_AVX2 1
#else
#define HAVE_AVX2 0
#endif

#include "base/url.h"
#include "base/utf8.h"

#define ASCII_MASK UINT64_C(0x8080808080808080)

/* Length of the character at p; 0: invalid or truncated. */
static size_t utf8_char_len(const unsigned char *p, size_t len)
{
	unsigned char lo = 0x80, hi = 0xbf;
	size_t n;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (len < n)
		return 0;
	if (p[0] == 0xe0)
		lo = 0xa0;
	else if (p[0] == 0xed)
		hi = 0x9f;
	else if (p[0] == 0xf0)
		lo = 0x90;
	else if (p[0] == 0xf4)
		hi = 0x8f;
	if (p[1] < lo || p[1] > hi)
		return 0;
	for (size_t i = 2; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	return n;
}

static size_t utf8_valid_plain(const unsigned char *p, size_t i, size_t len)
{
	while (i < len) {
		size_t n;

		while (len - i >= 16) {
			uint64_t a, b;

			memcpy(&a, p + i, 8);
			memcpy(&b, p + i + 8, 8);
			if ((a | b) & ASCII_MASK)
				break;
			i += 16;
		}
		while (i < len && p[i] < 0x80)
			i++;
		while (i < len && p[i] >= 0x80) {
			n = utf8_char_len(p + i, len - i);
			if (n == 0)
				return i;
			i += n;
		}
	}
	return i;
}

#if HAVE_AVX2
/* Faults of two consecutive bytes. */
enum {
	SHORT = 1,                    /* a lead byte without a continuation */
	LONG = 2,                     /* ASCII followed by a continuation */
	OVER3 = 4,                    /* E0 80-9F */
	LARGE = 8,                    /* F4 90-BF, F5-FF 90-BF */
	SURROGATE = 16,               /* ED A0-BF */
	OVER2 = 32,                   /* C0, C1 */
	LARGE8 = 64,                  /* F5-FF 80-8F; also overlong: F0 80-8F */
	TWO = 128,                    /* two continuations: valid only as the third or fourth byte */
	ANY_LOW = SHORT | LONG | TWO, /* faults that do not depend on the low nibble */
};

#define TWICE(...) _mm256_setr_epi8(__VA_ARGS__, __VA_ARGS__)
#define B(x) ((char)(x))

__attribute__((target("avx2"))) static inline __m256i utf8_faults(__m256i v, __m256i before)
{
	const __m256i first_high = TWICE(LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG, B(TWO), B(TWO), B(TWO), B(TWO),
		SHORT | OVER2, SHORT, SHORT | OVER3 | SURROGATE, SHORT | LARGE | LARGE8);
	const __m256i first_low = TWICE(B(ANY_LOW | OVER3 | OVER2 | LARGE8), B(ANY_LOW | OVER2), B(ANY_LOW), B(ANY_LOW),
		B(ANY_LOW | LARGE), B(ANY_LOW | LARGE | LARGE8), B(ANY_LOW | LARGE | LARGE8),
		B(ANY_LOW | LARGE | LARGE8), B(ANY_LOW | LARGE | LARGE8), B(ANY_LOW | LARGE | LARGE8),
		B(ANY_LOW | LARGE | LARGE8), B(ANY_LOW | LARGE | LARGE8), B(ANY_LOW | LARGE | LARGE8),
		B(ANY_LOW | LARGE | LARGE8 | SURROGATE), B(ANY_LOW | LARGE | LARGE8), B(ANY_LOW | LARGE | LARGE8));
	const __m256i second_high = TWICE(SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, SHORT,
		B(LONG | OVER2 | TWO | OVER3 | LARGE8), B(LONG | OVER2 | TWO | OVER3 | LARGE),
		B(LONG | OVER2 | TWO | SURROGATE | LARGE), B(LONG | OVER2 | TWO | SURROGATE | LARGE), SHORT, SHORT,
		SHORT, SHORT);
	const __m256i nibble = _mm256_set1_epi8(0x0f);
	__m256i join = _mm256_permute2x128_si256(before, v, 0x21);
	__m256i back1 = _mm256_alignr_epi8(v, join, 15), back2 = _mm256_alignr_epi8(v, join, 14),
		back3 = _mm256_alignr_epi8(v, join, 13);
	__m256i pair = _mm256_and_si256(
		_mm256_shuffle_epi8(first_high, _mm256_and_si256(_mm256_srli_epi16(back1, 4), nibble)),
		_mm256_and_si256(_mm256_shuffle_epi8(first_low, _mm256_and_si256(back1, nibble)),
			_mm256_shuffle_epi8(second_high, _mm256_and_si256(_mm256_srli_epi16(v, 4), nibble))));
	/* the top bit is set where a third or fourth byte must be: only there TWO is valid */
	__m256i third = _mm256_subs_epu8(back2, _mm256_set1_epi8(0xe0 - 0x80)),
		fourth = _mm256_subs_epu8(back3, _mm256_set1_epi8(0xf0 - 0x80));

	return _mm256_xor_si256(pair, _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8(B(0x80))));
}

/* Bytes in valid whole blocks, less the start of a character that may continue behind them. */
__attribute__((target("avx2"))) static size_t utf8_valid_avx2(const unsigned char *p, size_t len)
{
	__m256i before = _mm256_setzero_si256();
	bool ascii_before = true;
	size_t i = 0;

	for (; len - i >= 32; i += 32) {
		__m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(p + i));
		bool ascii = _mm256_movemask_epi8(v) == 0;

		if (!(ascii && ascii_before)) {
			__m256i bad = utf8_faults(v, before);

			if (!_mm256_testz_si256(bad, bad))
				break;
		}
		before = v;
		ascii_before = ascii;
	}
	for (int back = 0; back < 3 && i > 0 && (p[i - 1] & 0xc0) == 0x80; back++)
		i--;
	return i > 0 && p[i - 1] >= 0x80 ? i - 1 : i;
}
#endif

size_t fw_utf8_valid(const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t i = 0;

#if HAVE_AVX2
	if (len >= 64 && __builtin_cpu_supports("avx2"))
		i = utf8_valid_avx2(p, len);
#endif
	return utf8_valid_plain(p, i, len);
}

uint32_t fw_utf8_get(const char *s, size_t len, size_t *n)
{
	const unsigned char *p = (const unsigned char *)s;

	*n = utf8_char_len(p, len);
	switch (*n) {
	case 1:
		return p[0];
	case 2:
		return (uint32_t)(p[0] & 0x1f) << 6 | (p[1] & 0x3f);
	case 3:
		return (uint32_t)(p[0] & 0x0f) << 12 | (uint32_t)(p[1] & 0x3f) << 6 | (p[2] & 0x3f);
	case 4:
		return (uint32_t)(p[0] & 0x07) << 18 | (uint32_t)(p[1] & 0x3f) << 12 | (uint32_t)(p[2] & 0x3f) << 6 |
			(p[3] & 0x3f);
	default:
		*n = 1;
		return 0xfffd;
	}
}

size_t fw_utf8_put(char out[4], uint32_t cp)
{
	if (cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
		cp = 0xfffd;
	if (cp < 0x80) {
		out[0] = (char)cp;
		return 1;
	}
	if (cp < 0x800) {
		out[0] = (char)(0xc0 | cp >> 6);
		out[1] = (char)(0x80 | (cp & 0x3f));
		return 2;
	}
	if (cp < 0x10000) {
		out[0] = (char)(0xe0 | cp >> 12);
		out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
		out[2] = (char)(0x80 | (cp & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | cp >> 18);
	out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
	out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
	out[3] = (char)(0x80 | (cp & 0x3f));
	return 4;
}

size_t fw_utf8_cut(const char *p, size_t len, size_t max)
{
	if (len <= max)
		return len;
	for (int back = 0; max > 0 && back < 3 && ((unsigned char)p[max] & 0xc0) == 0x80; back++)
		max--;
	return max;
}

bool fw_utf8_is_unsafe(uint32_t cp)
{
	return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0x2028 || cp == 0x2029 || cp == 0x200e || cp == 0x200f ||
		cp == 0x61c || (cp >= 0x202a && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069) || cp == 0xfeff;
}

static int utf8_cp_width(uint32_t cp)
{
	if (cp < 0x20 || (cp >= 0x7f && cp < 0xa0))
		return 0;
	if (cp < 0x300)
		return 1;
	if ((cp >= 0x300 && cp <= 0x36f) || (cp >= 0x200b && cp <= 0x200f) || (cp >= 0x202a && cp <= 0x202e) ||
		(cp >= 0x20d0 && cp <= 0x20ff) || (cp >= 0xfe00 && cp <= 0xfe0f) || cp == 0xfeff)
		return 0;
	if ((cp >= 0x1100 && cp <= 0x115f) || (cp >= 0x2e80 && cp <= 0xa4cf) || (cp >= 0xac00 && cp <= 0xd7a3) ||
		(cp >= 0xf900 && cp <= 0xfaff) || (cp >= 0xfe30 && cp <= 0xfe6f) || (cp >= 0xff00 && cp <= 0xff60) ||
		(cp >= 0xffe0 && cp <= 0xffe6) || (cp >= 0x1f300 && cp <= 0x1faff) || (cp >= 0x20000 && cp <= 0x3fffd))
		return 2;
	return 1;
}

bool fw_utf8_fits(struct fw_str s, size_t max)
{
	return s.len <= max && !fw_url_has_control(s) && fw_utf8_valid(s.p ? s.p : "", s.len) == s.len;
}

size_t fw_utf8_width(const char *p, size_t len)
{
	size_t w = 0, n;

	for (size_t i = 0; i < len; i += n)
		w += (size_t)utf8_cp_width(fw_utf8_get(p + i, len - i, &n));
	return w;
}
