/* SPDX-License-Identifier: ISC */
/*
 * Scans for the next byte that matters, 16 bytes at a time with SSE2, else byte by byte. Loads
 * never leave [p, end). All functions return end if nothing is found.
 */
#ifndef FW_PARSE_CHARSET_SCAN_H
#define FW_PARSE_CHARSET_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/*
 * Marks a branch-free loop over bytes. It is compiled for wider vectors too; the version is chosen
 * at program start.
 */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
	!defined(__SANITIZE_THREAD__)
#define SCAN_WIDE __attribute__((target_clones("avx2", "default"), optimize("O3")))
#else
#define SCAN_WIDE
#endif

enum {
	SCAN_NAME = 1,  /* may stand in a name; includes every byte of a non-ASCII character */
	SCAN_START = 2, /* may start a name */
	SCAN_SPACE = 4, /* XML white space */
	SCAN_TEXT = 8,  /* ends a run of text: < & ] CR */
	/* ends a run of an attribute value, as its quote does: < & and all below space */
	SCAN_VALUE = 16,
	SCAN_CTL = 32, /* not allowed in XML 1.0 */
};

extern const unsigned char fw_scan_class[256];

static inline bool scan_is(char c, unsigned classes)
{
	return (fw_scan_class[(unsigned char)c] & classes) != 0;
}

/*
 * For a structure whose members are all set at its definition. Without it -ftrivial-auto-var-init
 * makes the compiler clear the padding too and keep the structure in memory, which took two thirds
 * of the time of a tag.
 */
#if defined(__has_attribute)
#if __has_attribute(uninitialized)
#define SCAN_SET_WHOLE __attribute__((uninitialized))
#endif
#endif
#ifndef SCAN_SET_WHOLE
#define SCAN_SET_WHOLE
#endif

struct scan_name {
	const char *end;   /* just after the name */
	const char *colon; /* the first one, or NULL */
	bool high;         /* holds bytes outside ASCII */
};

#ifdef __SSE2__
static inline __m128i scan_load(const char *p)
{
	return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static inline __m128i scan_eq(__m128i v, char c)
{
	return _mm_cmpeq_epi8(v, _mm_set1_epi8(c));
}

/* from <= v <= from + more, unsigned */
static inline __m128i scan_range(__m128i v, char from, char more)
{
	__m128i d = _mm_sub_epi8(v, _mm_set1_epi8(from));

	return _mm_cmpeq_epi8(_mm_min_epu8(d, _mm_set1_epi8(more)), d);
}

static inline unsigned scan_bits(__m128i hit)
{
	return (unsigned)_mm_movemask_epi8(hit);
}

static inline unsigned scan_first(unsigned bits)
{
	return (unsigned)__builtin_ctz(bits);
}
#endif

static inline const char *scan_text(const char *p, const char *end)
{
#ifdef __SSE2__
	for (; end - p >= 16; p += 16) {
		__m128i v = scan_load(p);
		unsigned m = scan_bits(_mm_or_si128(_mm_or_si128(scan_eq(v, '<'), scan_eq(v, '&')),
			_mm_or_si128(scan_eq(v, ']'), scan_eq(v, '\r'))));

		if (m)
			return p + scan_first(m);
	}
#endif
	while (p < end && !scan_is(*p, SCAN_TEXT))
		p++;
	return p;
}

/* A byte outside ASCII */
static inline const char *scan_high(const char *p, const char *end)
{
#ifdef __SSE2__
	for (; end - p >= 16; p += 16) {
		unsigned m = scan_bits(scan_load(p));

		if (m)
			return p + scan_first(m);
	}
#endif
	while (p < end && !(*p & 0x80))
		p++;
	return p;
}

/* < or & */
static inline const char *scan_markup(const char *p, const char *end)
{
#ifdef __SSE2__
	for (; end - p >= 16; p += 16) {
		__m128i v = scan_load(p);
		unsigned m = scan_bits(_mm_or_si128(scan_eq(v, '<'), scan_eq(v, '&')));

		if (m)
			return p + scan_first(m);
	}
#endif
	while (p < end && *p != '<' && *p != '&')
		p++;
	return p;
}

/* A control character, or the first of two spaces */
static inline const char *scan_loose(const char *p, const char *end)
{
#ifdef __SSE2__
	for (; end - p > 16; p += 16) {
		__m128i v = scan_load(p), pair = _mm_and_si128(scan_eq(v, ' '), scan_eq(scan_load(p + 1), ' '));
		unsigned m = scan_bits(_mm_or_si128(scan_range(v, 0, 0x1f), pair));

		if (m)
			return p + scan_first(m);
	}
#endif
	while (p < end && (unsigned char)*p >= ' ' && !(*p == ' ' && p + 1 < end && p[1] == ' '))
		p++;
	return p;
}

/*
 * A byte at which an absolute URL may need a change: white space, a control, &, or a dot after a
 * slash. *p itself is not such a dot.
 */
static inline const char *scan_address(const char *p, const char *end)
{
	const char *from = p;

#ifdef __SSE2__
	for (; end - p > 16; p += 16) {
		__m128i v = scan_load(p), dots = _mm_and_si128(scan_eq(v, '/'), scan_eq(scan_load(p + 1), '.'));
		unsigned m = scan_bits(_mm_or_si128(scan_range(v, 0, ' '), scan_eq(v, '&'))) | scan_bits(dots) << 1;

		if (m)
			return p + scan_first(m);
	}
#endif
	while (p < end && (unsigned char)*p > ' ' && *p != '&' && !(*p == '.' && p > from && p[-1] == '/'))
		p++;
	return p;
}

static inline const char *scan_value(const char *p, const char *end, char quote)
{
#ifdef __SSE2__
	for (; end - p >= 16; p += 16) {
		__m128i v = scan_load(p);
		unsigned m = scan_bits(_mm_or_si128(_mm_or_si128(scan_eq(v, quote), scan_eq(v, '<')),
			_mm_or_si128(scan_eq(v, '&'), scan_range(v, 0, 0x1f))));

		if (m)
			return p + scan_first(m);
	}
#endif
	while (p < end && *p != quote && !scan_is(*p, SCAN_VALUE))
		p++;
	return p;
}

static inline struct scan_name scan_name(const char *p, const char *end)
{
	SCAN_SET_WHOLE struct scan_name r = {p, NULL, false};

#ifdef __SSE2__
	for (; end - r.end >= 16; r.end += 16) {
		__m128i v = scan_load(r.end);
		__m128i name = _mm_or_si128(
			_mm_or_si128(scan_range(_mm_or_si128(v, _mm_set1_epi8(0x20)), 'a', 25), scan_range(v, '0', 10)),
			_mm_or_si128(scan_range(v, '-', 1), scan_eq(v, '_')));
		unsigned high = scan_bits(v), m = ~(scan_bits(name) | high) & 0xffff;
		unsigned colon = scan_bits(scan_eq(v, ':'));

		if (m) { /* keep the bits before the name's end */
			high &= m ^ (m - 1);
			colon &= m ^ (m - 1);
		}
		r.high |= high != 0;
		if (colon && !r.colon)
			r.colon = r.end + scan_first(colon);
		if (m) {
			r.end += scan_first(m);
			return r;
		}
	}
#endif
	for (; r.end < end && scan_is(*r.end, SCAN_NAME); r.end++) {
		r.high |= (unsigned char)*r.end >= 0x80;
		if (*r.end == ':' && !r.colon)
			r.colon = r.end;
	}
	return r;
}

/*
 * Are the len bytes at a and b equal? end bounds b. a must precede b in one buffer or have 16
 * readable bytes.
 */
static inline bool scan_same(const char *a, const char *b, size_t len, const char *end)
{
#ifdef __SSE2__
	if (len <= 16 && end - b >= 16) {
		unsigned m = scan_bits(_mm_cmpeq_epi8(scan_load(a), scan_load(b)));

		return ((~m) & ((1u << len) - 1)) == 0;
	}
#endif
	return (size_t)(end - b) >= len && memcmp(a, b, len) == 0;
}

static inline const char *scan_space(const char *p, const char *end)
{
	while (p < end && scan_is(*p, SCAN_SPACE))
		p++;
	return p;
}

#endif
