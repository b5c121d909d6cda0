/* SPDX-License-Identifier: ISC */
/* fw_utf8_valid(), compared with a slow reading of RFC 3629, at each offset of a block. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "../../suite.h"

/* The table of RFC 3629 section 4, one row per line. */
static size_t naive_char(const unsigned char *p, size_t n)
{
	static const unsigned char T[][8] = {
		{0x00, 0x7f},
		{0xc2, 0xdf, 0x80, 0xbf},
		{0xe0, 0xe0, 0xa0, 0xbf, 0x80, 0xbf},
		{0xe1, 0xec, 0x80, 0xbf, 0x80, 0xbf},
		{0xed, 0xed, 0x80, 0x9f, 0x80, 0xbf},
		{0xee, 0xef, 0x80, 0xbf, 0x80, 0xbf},
		{0xf0, 0xf0, 0x90, 0xbf, 0x80, 0xbf, 0x80, 0xbf},
		{0xf1, 0xf3, 0x80, 0xbf, 0x80, 0xbf, 0x80, 0xbf},
		{0xf4, 0xf4, 0x80, 0x8f, 0x80, 0xbf, 0x80, 0xbf},
	};

	for (size_t r = 0; r < sizeof(T) / sizeof(*T); r++) {
		size_t len = r == 0 ? 1 : T[r][4] == 0 ? 2 : T[r][6] == 0 ? 3 : 4, i = 0;

		while (i < len && i < n && p[i] >= T[r][2 * i] && p[i] <= T[r][2 * i + 1])
			i++;
		if (i == len)
			return len;
	}
	return 0;
}

static size_t naive(const unsigned char *p, size_t n)
{
	size_t i = 0, k;

	while (i < n && (k = naive_char(p + i, n - i)) != 0)
		i += k;
	return i;
}

static void compare(const unsigned char *p, size_t n)
{
	size_t want = naive(p, n), got = fw_utf8_valid((const char *)p, n);

	ck_assert_msg(got == want, "%zu bytes %02x %02x %02x %02x at 60: %zu, not %zu", n, p[60], p[61], p[62], p[63],
		got, want);
}

/* A sample of all sequences of three and four bytes, across the border of a block. */
START_TEST(sequences)
{
	unsigned char b[96];

	memset(b, 'x', sizeof(b));
	for (unsigned v = 0; v < 0x1000000; v += _i ? 1 : 0x101) {
		size_t at = 61 + v % 4;

		if (_i && (v >> 16) < 0xc0)
			v = 0xc00000;
		b[at] = (unsigned char)(v >> 16);
		b[at + 1] = (unsigned char)(v >> 8);
		b[at + 2] = (unsigned char)v;
		b[at + 3] = v % 3 == 0 ? 'x' : (unsigned char)(0x80 | (v & 0x3f));
		compare(b, 96);
		memset(b + at, 'x', 4);
		if (_i)
			v += 30;
	}
}
END_TEST

/* Random text with characters of each length, then with one byte changed, at each offset. */
START_TEST(random_text)
{
	unsigned char b[400];
	uint64_t seed = 12345;

	for (int round = 0; round < 200000; round++) {
		size_t n = 0, len;

		while (n < 300) {
			uint32_t cp, kind;

			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
			kind = (uint32_t)(seed >> 60) % (round % 5 + 1);
			cp = (uint32_t)(seed >> 33);
			cp = kind == 0    ? cp % 0x80 :
				kind == 1 ? cp % 0x800 :
				kind == 2 ? cp % 0xd800 :
				kind == 3 ? 0x10000 + cp % 0x100000 :
					    cp % 0x80;
			n += fw_utf8_put((char *)b + n, cp);
		}
		len = n - (size_t)(seed >> 20) % 100;
		compare(b, len);
		if (round % 2)
			b[(seed >> 8) % n] = (unsigned char)(seed >> 44);
		compare(b, len);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit base utf8");
	TCase *t = tcase_create("utf8");

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, sequences, 0, 2);
	tcase_add_test(t, random_text);
	suite_add_tcase(s, t);
	return run_suite(s);
}
