/* SPDX-License-Identifier: ISC */
/*
 * One folding for the search indexes of all engines, on the tables of utf8proc. If the engines'
 * own rules decided, the same words would find different entries.
 *
 * Letters are case folded and decomposed with their compatible forms; accents are dropped. Marks
 * that distinguish words (vowels of Devanagari and related scripts) stay, as do kana with sound
 * marks and Hangul syllables: decomposed, they would match other words. A character that is not a
 * letter, digit or mark ends a word, even if its compatible form is letters (a trade mark sign).
 *
 * Stored indexes depend on this folding: a change needs a migration that rebuilds them.
 */
#include "query/fold.h"

#include <pthread.h>
#include <string.h>
#include <utf8proc.h>

#include "base/str.h"

struct char_range {
	uint32_t first, last;
};

static bool range_contains(uint32_t c, const struct char_range *r, size_t n)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (c > r[mid].last)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < n && c >= r[lo].first;
}

/* Combining accents and points, and invisible characters: dropped; they do not end a word. */
static bool char_is_dropped(uint32_t c)
{
	static const struct char_range passed[] = {
		{0xad, 0xad},
		{0x300, 0x36f},
		{0x483, 0x489},
		{0x591, 0x5bd},
		{0x5bf, 0x5bf},
		{0x5c1, 0x5c2},
		{0x5c4, 0x5c5},
		{0x5c7, 0x5c7},
		{0x610, 0x61a},
		{0x640, 0x640},
		{0x64b, 0x65f},
		{0x670, 0x670},
		{0x1ab0, 0x1aff},
		{0x1dc0, 0x1dff},
		{0x200b, 0x200f},
		{0x2060, 0x2064},
		{0x20d0, 0x20ff},
		{0x3099, 0x309a},
		{0xfe00, 0xfe0f},
		{0xfe20, 0xfe2f},
		{0xfeff, 0xfeff},
		{0xff9e, 0xff9f},
		{0xe0100, 0xe01ef},
	};

	return range_contains(c, passed, FW_N(passed));
}

static bool char_is_word(uint32_t c)
{
	switch (utf8proc_category((utf8proc_int32_t)c)) {
	case UTF8PROC_CATEGORY_LU:
	case UTF8PROC_CATEGORY_LL:
	case UTF8PROC_CATEGORY_LT:
	case UTF8PROC_CATEGORY_LM:
	case UTF8PROC_CATEGORY_LO:
	case UTF8PROC_CATEGORY_MN:
	case UTF8PROC_CATEGORY_MC:
	case UTF8PROC_CATEGORY_ME:
	case UTF8PROC_CATEGORY_ND:
	case UTF8PROC_CATEGORY_NL:
	case UTF8PROC_CATEGORY_NO:
	case UTF8PROC_CATEGORY_CO:
		return true;
	default:
		return false;
	}
}

/* Kana (except punctuation), Han, Hangul: kept unchanged. */
static bool char_is_kept(uint32_t c)
{
	return (c >= 0x3041 && c <= 0x3096) || (c >= 0x30a1 && c <= 0x30fa) || (c >= 0x3400 && c <= 0x9fff) ||
		(c >= 0xac00 && c <= 0xd7a3);
}

static int char_fold(uint32_t c, uint32_t out[FW_FOLD_MAX])
{
	utf8proc_int32_t part[FW_FOLD_MAX];
	int boundary = 0, n = 0;
	utf8proc_ssize_t part_n;

	if (char_is_dropped(c))
		return 0;
	if (!char_is_word(c))
		return -1;
	out[0] = c;
	if (char_is_kept(c))
		return 1;
	part_n = utf8proc_decompose_char((utf8proc_int32_t)c, part, FW_FOLD_MAX,
		UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD, &boundary);
	for (utf8proc_ssize_t i = 0; i < part_n && i < FW_FOLD_MAX; i++) {
		uint32_t p = (uint32_t)part[i];

		if (!char_is_dropped(p))
			out[n++] = char_is_word(p) ? p : ' ';
	}
	return n;
}

/* Cache of folded characters of two UTF-8 bytes: many texts consist of them. */
#define SMALL_FIRST 0x80
#define SMALL_END 0x800
#define SMALL_MAX 4
static struct {
	int n; /* above SMALL_MAX: call char_fold() */
	uint32_t c[SMALL_MAX];
} small[SMALL_END - SMALL_FIRST];

static void small_init(void)
{
	uint32_t out[FW_FOLD_MAX];

	for (uint32_t c = SMALL_FIRST; c < SMALL_END; c++) {
		int n = char_fold(c, out);

		small[c - SMALL_FIRST].n = n;
		if (n > 0 && n <= SMALL_MAX)
			memcpy(small[c - SMALL_FIRST].c, out, (size_t)n * sizeof(*out));
	}
}

int query_fold(uint32_t c, uint32_t out[FW_FOLD_MAX])
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int n;

	if (c < SMALL_FIRST) {
		out[0] = (uint32_t)fw_lower((int)c);
		return fw_is_alnum((int)c) ? 1 : -1;
	}
	if (c >= SMALL_END)
		return char_fold(c, out);
	pthread_once(&once, small_init);
	n = small[c - SMALL_FIRST].n;
	if (n > SMALL_MAX)
		return char_fold(c, out);
	if (n > 0)
		memcpy(out, small[c - SMALL_FIRST].c, (size_t)n * sizeof(*out));
	return n;
}

uint32_t query_fold_kana(uint32_t kana, uint32_t mark)
{
	utf8proc_int32_t pair[3] = {(utf8proc_int32_t)kana, 0, 0};

	pair[1] = mark == 0x3099 || mark == 0xff9e ? 0x3099 : mark == 0x309a || mark == 0xff9f ? 0x309a : 0;
	if (!pair[1] || kana < 0x3041 || kana > 0x30fa)
		return 0;
	return utf8proc_normalize_utf32(pair, 2, UTF8PROC_COMPOSE | UTF8PROC_STABLE) == 1 ? (uint32_t)pair[0] : 0;
}
