/* SPDX-License-Identifier: ISC */
/*
 * Search: entries are read, newest first, and looked through here, until as many are found as were asked for.
 *
 * An index of words would take several times the memory of the entries themselves, which on this engine all is memory; so there is
 * none. What a search costs is reading: some 100,000 entries of 1 KB a second. It is always up to date, and finds what SQLite's index
 * finds: words without regard to case and accents, prefixes, phrases.
 *
 * Both sides are made alike: words in a row, between single spaces. A phrase is then a piece of text to be found.
 */
#include "base/utf8.h"
#include "store/redis.h"
#include "store/words.h"

#include "store/fold_table.h" /* made at build time by redis/fold.py */

#define TEXT_MAX ((size_t)1 << 20) /* of one entry: more is not looked through */

/* In a sorted table of ranges or pairs: the index of the last row that begins at or before c, -1: none. */
static ptrdiff_t row_of(const uint32_t (*table)[2], size_t n, uint32_t c)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (table[mid][0] <= c)
			lo = mid + 1;
		else
			hi = mid;
	}
	return (ptrdiff_t)lo - 1;
}

static bool is_accent(uint32_t c)
{
	return (c >= 0x300 && c <= 0x36f) || (c >= 0x1ab0 && c <= 0x1aff) || (c >= 0x1dc0 && c <= 0x1dff) || (c >= 0x20d0 && c <= 0x20ff);
}

/* The character as it is looked for; 0: between words; UINT32_MAX: nothing at all. */
static uint32_t plain(uint32_t c)
{
	ptrdiff_t i;

	if (c < 0x80)
		return fw_is_alnum((int)c) ? (uint32_t)fw_lower((int)c) : 0;
	if (is_accent(c))
		return UINT32_MAX;
	i = row_of(word_ranges, FW_N(word_ranges), c);
	if (i < 0 || c > word_ranges[i][1])
		return 0;
	i = row_of(folds, FW_N(folds), c);
	return i >= 0 && folds[i][0] == c ? folds[i][1] : c;
}

/* Append " word word ", whatever stands between the words; nothing at all when there is none. */
static void words_add(struct fw_buf *out, struct fw_str text)
{
	bool inside = false;

	for (size_t at = 0, n; at < text.len; at += n) {
		uint32_t c = plain(fw_utf8_get(text.p + at, text.len - at, &n));

		if (c == UINT32_MAX)
			continue;
		if (c == 0) {
			inside = false;
			continue;
		}
		if (!inside)
			fw_buf_addc(out, ' ');
		inside = true;
		if (c < 0x80)
			fw_buf_addc(out, (char)c);
		else
			fw_buf_addcp(out, c);
	}
	fw_buf_addc(out, ' ');
}

bool rd_search_begin(struct rd_search *s, struct fw_str words)
{
	struct fw_store_word w;
	bool any = false;

	*s = (struct rd_search){.words = FW_BUF_INIT(0), .text = FW_BUF_INIT(0), .raw = FW_BUF_INIT(0)};
	while (fw_store_word_next(&words, &w)) {
		size_t from = s->words.len;

		fw_buf_reset(&s->raw);
		fw_store_words(&s->raw, w.text);
		words_add(&s->words, fw_buf_str(&s->raw));
		if (s->words.len - from <= 1) { /* nothing that belongs to words: no condition */
			s->words.len = from;
			continue;
		}
		if (w.prefix)
			s->words.len--;
		fw_buf_addc(&s->words, '\0');
		any = true;
	}
	return any;
}

bool rd_search_matches(struct rd_search *s, const struct fw_entry_row *e)
{
	struct fw_str content = fw_str_sub(e->content, 0, TEXT_MAX), rest = fw_buf_str(&s->words);
	bool all = true;

	fw_buf_reset(&s->text);
	fw_buf_reset(&s->raw);
	fw_store_words(&s->raw, fw_str_sub(e->title, 0, TEXT_MAX));
	words_add(&s->text, fw_buf_str(&s->raw));
	fw_buf_addc(&s->text, '\n'); /* no phrase reaches from the title into the text */
	fw_buf_reset(&s->raw);
	fw_store_words(&s->raw, fw_str_sub(e->summary, 0, TEXT_MAX));
	fw_buf_addc(&s->raw, '\n');
	if (e->content_type == FW_TEXT_PLAIN)
		fw_store_words(&s->raw, content);
	else
		fw_store_words_html(&s->raw, content);
	words_add(&s->text, fw_buf_str(&s->raw));
	while (rest.len && all) {
		struct fw_str one = fw_str_split(rest, '\0', &rest);

		all = fw_str_find(fw_buf_str(&s->text), one) != NULL;
	}
	return all;
}

int rd_search_failed(const struct rd_search *s)
{
	return s->words.rc ? s->words.rc : s->text.rc ? s->text.rc : s->raw.rc;
}

void rd_search_end(struct rd_search *s)
{
	fw_buf_finish(&s->words);
	fw_buf_finish(&s->text);
	fw_buf_finish(&s->raw);
}
