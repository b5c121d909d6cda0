/* SPDX-License-Identifier: ISC */
/*
 * Borrowed strings, and ASCII. Nothing here depends on the locale, so bytes of feeds may be passed
 * as they are.
 */
#ifndef FW_BASE_STR_H
#define FW_BASE_STR_H

#include <string.h>

#include "feedwheel/types.h"

#define FW_STR(lit) ((struct fw_str){(lit), sizeof(lit) - 1})
#define FW_STR_NONE ((struct fw_str){NULL, 0})
#define FW_STR_ARG(s) (int)((s).len > 100000 ? 100000 : (s).len), ((s).p ? (s).p : "") /* for "%.*s" */
#define FW_N(array) (sizeof(array) / sizeof((array)[0]))

/* Minimum and maximum of two numbers, in the type of their sum. Each argument is evaluated once. */
#define FW_DEFINE_MIN_MAX(suffix, type)                    \
	static inline type fw_min_##suffix(type a, type b) \
	{                                                  \
		return a < b ? a : b;                      \
	}                                                  \
	static inline type fw_max_##suffix(type a, type b) \
	{                                                  \
		return a > b ? a : b;                      \
	}
FW_DEFINE_MIN_MAX(i, int)
FW_DEFINE_MIN_MAX(u, unsigned)
FW_DEFINE_MIN_MAX(l, long)
FW_DEFINE_MIN_MAX(ul, unsigned long)
FW_DEFINE_MIN_MAX(ll, long long)
FW_DEFINE_MIN_MAX(ull, unsigned long long)
FW_DEFINE_MIN_MAX(d, double)
#undef FW_DEFINE_MIN_MAX
/* clang-format off */
#define FW_NUMBER_GENERIC(name, a, b) \
	_Generic((a) + (b), int: name##_i, unsigned: name##_u, long: name##_l, unsigned long: name##_ul, \
	long long: name##_ll, unsigned long long: name##_ull, double: name##_d)(a, b)
/* clang-format on */
#define FW_MIN(a, b) FW_NUMBER_GENERIC(fw_min, a, b)
#define FW_MAX(a, b) FW_NUMBER_GENERIC(fw_max, a, b)

/* -1, 0 or 1, as qsort() wants it. */
#define FW_ORDER(a, b) (((a) > (b)) - ((a) < (b)))
/* Define a static function for qsort() and bsearch() of elements of this type, by a member. */
#define FW_COMPARE(name, type, member)                 \
	static int name(const void *a, const void *b)  \
	{                                              \
		const type *x = a, *y = b;             \
                                                       \
		return FW_ORDER(x->member, y->member); \
	}
/* By one member, and by a second one where that is equal. */
#define FW_COMPARE_BY(name, type, first, second)                                                             \
	static int name(const void *a, const void *b)                                                        \
	{                                                                                                    \
		const type *x = a, *y = b;                                                                   \
                                                                                                             \
		return x->first != y->first ? FW_ORDER(x->first, y->first) : FW_ORDER(x->second, y->second); \
	}

static inline struct fw_str fw_str(const char *s)
{
	return (struct fw_str){s, s ? strlen(s) : 0};
}

static inline bool fw_str_eq(struct fw_str a, struct fw_str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

/* By their bytes; a prefix comes first. */
static inline int fw_str_order(struct fw_str a, struct fw_str b)
{
	size_t n = FW_MIN(a.len, b.len);
	int d = n ? memcmp(a.p, b.p, n) : 0;

	return d ? d : FW_ORDER(a.len, b.len);
}

static inline int fw_lower(int c)
{
	return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

static inline bool fw_is_space(int c) /* XML and HTML white space */
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f';
}

static inline bool fw_is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static inline bool fw_is_alpha(int c)
{
	return (unsigned)((c | 32) - 'a') < 26;
}

static inline bool fw_is_alnum(int c)
{
	return fw_is_alpha(c) || fw_is_digit(c);
}

int fw_hexval(int c); /* 0..15, or -1 */
/* exactly n bytes */
FW_MUST_CHECK bool fw_hex_read(struct fw_str hex, unsigned char *out, size_t n);
void fw_hex_write(char *out, const unsigned char *bytes, size_t n); /* 2 * n lower-case digits and a NUL */
bool fw_str_ieq(struct fw_str a, struct fw_str b);                  /* ASCII case folded */
bool fw_str_starts(struct fw_str s, struct fw_str prefix);
bool fw_str_istarts(struct fw_str s, struct fw_str prefix);
bool fw_str_ends(struct fw_str s, struct fw_str suffix);
struct fw_str fw_str_trim(struct fw_str s); /* white space at both ends */
/* A path has names with '/' between them: "/News/Tech/" is the path "News/Tech". */
struct fw_str fw_path_trim(struct fw_str path);
/* Is the path this folder, or below it? In the folder "" is only the path "". */
bool fw_path_is_within(struct fw_str path, struct fw_str folder);
/* from and to are clamped to the length */
struct fw_str fw_str_sub(struct fw_str s, size_t from, size_t to);
const char *fw_str_find(struct fw_str s, struct fw_str needle); /* NULL: not found */
const char *fw_str_ifind(struct fw_str s, struct fw_str needle);
/* The part before the first sep. *rest: what follows it; absent (p NULL) if there is no sep. */
struct fw_str fw_str_split(struct fw_str s, char sep, struct fw_str *rest);
/*
 * The whole of s is a decimal number, with optional sign and surrounding white space. False
 * otherwise, or on overflow.
 */
FW_MUST_CHECK bool fw_str_int(struct fw_str s, int64_t *out);
FW_MUST_CHECK bool fw_str_double(struct fw_str s, double *out); /* locale-free, at most 60 characters */
/* snprintf() that returns false if it had to cut. */
/* A number with separators, "10,058". Returns dst. */
#define FW_COUNT_MAX 32
char *fw_count_text(char dst[FW_COUNT_MAX], int64_t n);
/* With what is counted: "1 feed is", "10,058 feeds are". Returns dst. */
#define FW_COUNT_OF_MAX 128
char *fw_count_of(char dst[FW_COUNT_OF_MAX], int64_t n, const char *one, const char *many);
#define FW_COUNT_OF(n, one, many) \
	fw_count_of((char[FW_COUNT_OF_MAX]){""}, (n), (one), (many)) /* until the block ends */
FW_PRINTF(3, 4) bool fw_snprintf(char *dst, size_t cap, const char *fmt, ...);
/* Copy with a NUL, cut at a UTF-8 boundary; returns true if everything fitted. */
bool fw_str_copy(char *dst, size_t cap, struct fw_str s);
char *fw_str_dup(struct fw_str s); /* malloc'd, NUL-terminated; NULL out of memory */

#endif
