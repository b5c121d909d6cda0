/* SPDX-License-Identifier: ISC */
#include <float.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "base/utf8.h"

int fw_hexval(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = fw_lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool fw_hex_read(struct fw_str hex, unsigned char *out, size_t n)
{
	if (hex.len != 2 * n)
		return false;
	for (size_t i = 0; i < n; i++) {
		int hi = fw_hexval((unsigned char)hex.p[2 * i]), lo = fw_hexval((unsigned char)hex.p[2 * i + 1]);

		if (hi < 0 || lo < 0)
			return false;
		out[i] = (unsigned char)(hi << 4 | lo);
	}
	return true;
}

void fw_hex_write(char *out, const unsigned char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)fw_snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

static bool ascii_ieq(const char *a, const char *b, size_t n)
{
	if (n && memcmp(a, b, n) == 0) /* names usually come in the usual case */
		return true;
	for (size_t i = 0; i < n; i++) {
		if (fw_lower((unsigned char)a[i]) != fw_lower((unsigned char)b[i]))
			return false;
	}
	return true;
}

bool fw_str_ieq(struct fw_str a, struct fw_str b)
{
	return a.len == b.len && ascii_ieq(a.p, b.p, a.len);
}

bool fw_str_starts(struct fw_str s, struct fw_str prefix)
{
	return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.p, prefix.p, prefix.len) == 0);
}

bool fw_str_istarts(struct fw_str s, struct fw_str prefix)
{
	return s.len >= prefix.len && ascii_ieq(s.p, prefix.p, prefix.len);
}

bool fw_str_ends(struct fw_str s, struct fw_str suffix)
{
	return s.len >= suffix.len && (suffix.len == 0 || memcmp(s.p + s.len - suffix.len, suffix.p, suffix.len) == 0);
}

struct fw_str fw_path_trim(struct fw_str path)
{
	while (path.len && path.p[0] == '/')
		path = fw_str_sub(path, 1, path.len);
	while (path.len && path.p[path.len - 1] == '/')
		path.len--;
	return path;
}

bool fw_path_is_within(struct fw_str path, struct fw_str folder)
{
	if (!folder.len)
		return !path.len;
	return fw_str_starts(path, folder) && (path.len == folder.len || path.p[folder.len] == '/');
}

struct fw_str fw_str_trim(struct fw_str s)
{
	while (s.len && fw_is_space((unsigned char)s.p[0])) {
		s.p++;
		s.len--;
	}
	while (s.len && fw_is_space((unsigned char)s.p[s.len - 1]))
		s.len--;
	return s;
}

struct fw_str fw_str_sub(struct fw_str s, size_t from, size_t to)
{
	if (to > s.len)
		to = s.len;
	if (from > to)
		from = to;
	return (struct fw_str){s.p ? s.p + from : NULL, to - from};
}

const char *fw_str_find(struct fw_str s, struct fw_str needle)
{
	return s.len ? memmem(s.p, s.len, needle.p, needle.len) : needle.len ? NULL : s.p;
}

const char *fw_str_ifind(struct fw_str s, struct fw_str needle)
{
	const char *p = s.p, *last;
	int first;

	if (!needle.len || needle.len > s.len)
		return needle.len ? NULL : s.p;
	first = fw_lower((unsigned char)needle.p[0]);
	for (last = p + s.len - needle.len; p <= last; p++) {
		if (!fw_is_alpha(first))
			p = memchr(p, first, (size_t)(last - p) + 1);
		else if ((*p | 32) != first)
			continue;
		if (!p || ascii_ieq(p, needle.p, needle.len))
			return p;
	}
	return NULL;
}

struct fw_str fw_str_split(struct fw_str s, char sep, struct fw_str *rest)
{
	const char *at = s.len ? memchr(s.p, sep, s.len) : NULL;
	size_t n = at ? (size_t)(at - s.p) : s.len;

	*rest = at ? (struct fw_str){at + 1, s.len - n - 1} : FW_STR_NONE;
	return (struct fw_str){s.p, n};
}

bool fw_str_int(struct fw_str s, int64_t *out)
{
	bool negative = false;
	int64_t v = 0;
	size_t i = 0;

	s = fw_str_trim(s);
	if (i < s.len && (s.p[i] == '-' || s.p[i] == '+'))
		negative = s.p[i++] == '-';
	if (i == s.len)
		return false;
	for (; i < s.len; i++) {
		int d = s.p[i] - '0';

		if (d < 0 || d > 9 || __builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, d, &v))
			return false;
	}
	/* v was built as a negative number, so that INT64_MIN fits */
	if (!negative && v == INT64_MIN)
		return false;
	*out = negative ? v : -v;
	return true;
}

bool fw_str_double(struct fw_str s, double *out)
{
	double v = 0, scale = 1;
	bool negative = false, digits = false;
	int64_t exponent = 0;
	size_t i = 0;

	s = fw_str_trim(s);
	if (s.len > 60)
		return false;
	if (i < s.len && (s.p[i] == '-' || s.p[i] == '+'))
		negative = s.p[i++] == '-';
	for (; i < s.len && fw_is_digit(s.p[i]); i++, digits = true)
		v = v * 10 + (s.p[i] - '0');
	if (i < s.len && s.p[i] == '.') {
		for (i++; i < s.len && fw_is_digit(s.p[i]); i++, digits = true) {
			v = v * 10 + (s.p[i] - '0');
			scale *= 10;
		}
	}
	if (!digits)
		return false;
	if (i < s.len && (s.p[i] == 'e' || s.p[i] == 'E')) {
		if (!fw_str_int(fw_str_sub(s, i + 1, s.len), &exponent) || exponent > 300 || exponent < -300)
			return false;
		i = s.len;
	}
	if (i != s.len)
		return false;
	v /= scale;
	for (; exponent > 0; exponent--)
		v *= 10;
	for (; exponent < 0; exponent++)
		v /= 10;
	*out = negative ? -v : v;
	return v <= DBL_MAX;
}

bool fw_snprintf(char *dst, size_t cap, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(dst, cap, fmt, ap);
	va_end(ap);
	return n >= 0 && (size_t)n < cap;
}

bool fw_str_copy(char *dst, size_t cap, struct fw_str s)
{
	size_t n = s.len;

	if (cap == 0)
		return s.len == 0;
	if (n >= cap)
		n = fw_utf8_cut(s.p, s.len, cap - 1);
	if (n)
		memcpy(dst, s.p, n);
	dst[n] = '\0';
	return n == s.len;
}

char *fw_str_dup(struct fw_str s)
{
	char *d = malloc(s.len + 1);

	if (!d)
		return NULL;
	if (s.len)
		memcpy(d, s.p, s.len);
	d[s.len] = '\0';
	return d;
}

char *fw_count_text(char dst[FW_COUNT_MAX], int64_t n)
{
	char digits[24];
	size_t len, at = 0;

	(void)fw_snprintf(digits, sizeof(digits), "%lld", (long long)n);
	len = strlen(digits);
	for (size_t i = 0; i < len; i++) {
		if (i && digits[i - 1] != '-' && (len - i) % 3 == 0)
			dst[at++] = ',';
		dst[at++] = digits[i];
	}
	dst[at] = 0;
	return dst;
}

char *fw_count_of(char dst[FW_COUNT_OF_MAX], int64_t n, const char *one, const char *many)
{
	char number[FW_COUNT_MAX];

	(void)fw_snprintf(dst, FW_COUNT_OF_MAX, "%s %s", fw_count_text(number, n), n == 1 ? one : many);
	return dst;
}
