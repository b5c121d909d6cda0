/* SPDX-License-Identifier: ISC */
/*
 * Validation follows the table of RFC 3629 section 4: the first byte says how long the character is and narrows the range of
 * the second; the rest are 80-BF. ASCII runs are skipped sixteen bytes at a time.
 */
#include <string.h>

#include "base/utf8.h"

#define ASCII_MASK UINT64_C(0x8080808080808080)

/* Length of the character that starts at p, 0 when it is not valid or cut off. */
static size_t char_len(const unsigned char *p, size_t len)
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

size_t fw_utf8_valid(const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t i = 0;

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
			n = char_len(p + i, len - i);
			if (n == 0)
				return i;
			i += n;
		}
	}
	return i;
}

uint32_t fw_utf8_get(const char *s, size_t len, size_t *n)
{
	const unsigned char *p = (const unsigned char *)s;

	*n = char_len(p, len);
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

static int cp_width(uint32_t cp)
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

size_t fw_utf8_width(const char *p, size_t len)
{
	size_t w = 0, n;

	for (size_t i = 0; i < len; i += n)
		w += (size_t)cp_width(fw_utf8_get(p + i, len - i, &n));
	return w;
}
