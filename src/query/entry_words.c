/* SPDX-License-Identifier: ISC */
/*
 * The words of an entry as numbers: a hash table of the distinct words, and the sequence of their
 * numbers. A phrase is looked for where its rarest word stands.
 */
#include "query/entry_words.h"

#include <stdlib.h>

#include "base/hash.h"
#include "query/query.h"
#include "query/words.h"

#define WORDS_MIN 256 /* the first size of the tables */

void entry_words_finish(struct entry_words *w)
{
	fw_buf_finish(&w->folded);
	fw_buf_finish(&w->text);
	free(w->word);
	free(w->token);
	free(w->next);
	free(w->slot);
	free(w->sorted);
	*w = (struct entry_words){0};
}

/* ---- filling --------------------------------------------------------------------------------- */

/* Resize an array. False: out of memory; the old array stays. */
static bool words_grow(void *array, size_t size, size_t cap)
{
	void **p = array, *more = reallocarray(*p, cap, size);

	if (more)
		*p = more;
	return more != NULL;
}

uint64_t entry_word_hash(struct fw_str word)
{
	static const char place = 0; /* the system chooses its address */

	return fw_hash64_seed(word.p, word.len, (uint64_t)(uintptr_t)&place);
}

static uint32_t *words_slot(const struct entry_words *w, struct fw_str word, uint64_t hash)
{
	size_t at = hash & (w->slot_n - 1);

	while (w->slot[at] &&
		(w->word[w->slot[at] - 1].hash != hash || !fw_str_eq(entry_words_text(w, w->slot[at] - 1), word)))
		at = (at + 1) & (w->slot_n - 1);
	return &w->slot[at];
}

/* At least twice as many slots as words. */
static bool words_rehash(struct entry_words *w, size_t slot_n)
{
	uint32_t *slot = calloc(slot_n, sizeof(*slot));

	if (!slot)
		return false;
	free(w->slot);
	w->slot = slot;
	w->slot_n = slot_n;
	for (size_t i = 0; i < w->word_n; i++)
		*words_slot(w, entry_words_text(w, i), w->word[i].hash) = (uint32_t)i + 1;
	return true;
}

static bool words_reserve(struct entry_words *w)
{
	size_t cap;

	if (w->word_n == w->word_cap) {
		cap = w->word_cap ? 2 * w->word_cap : WORDS_MIN;
		if (!words_grow(&w->word, sizeof(*w->word), cap) || !words_rehash(w, 2 * cap))
			return false;
		w->word_cap = cap;
	}
	if (w->token_n == w->token_cap) {
		cap = w->token_cap ? 2 * w->token_cap : WORDS_MIN;
		if (!words_grow(&w->token, sizeof(*w->token), cap) || !words_grow(&w->next, sizeof(*w->next), cap))
			return false;
		w->token_cap = cap;
	}
	return true;
}

static uint32_t words_word(struct entry_words *w, struct fw_str text)
{
	uint64_t hash = entry_word_hash(text);
	uint32_t *slot = words_slot(w, text, hash);

	if (!*slot) {
		w->word[w->word_n++] = (struct entry_word){
			.hash = hash, .at = (uint32_t)w->text.len, .len = (uint32_t)text.len, .first = ENTRY_WORD_NONE};
		fw_buf_addstr(&w->text, text);
		*slot = (uint32_t)w->word_n;
	}
	return *slot - 1;
}

/* Append a token: a word, or with an empty text the end of a text. */
static void words_token(struct entry_words *w, struct fw_str text)
{
	uint32_t at = (uint32_t)w->token_n, id = ENTRY_WORD_NONE;

	if (!words_reserve(w)) {
		w->failed = true;
		return;
	}
	if (text.len) {
		struct entry_word *word = &w->word[id = words_word(w, text)];

		if (word->first == ENTRY_WORD_NONE)
			word->first = at;
		else
			w->next[word->last] = at;
		word->last = at;
		word->n++;
	}
	w->token[at] = id;
	w->next[at] = ENTRY_WORD_NONE;
	w->token_n++;
}

/* The words of what was folded. */
static void words_take(struct entry_words *w)
{
	struct fw_str rest = fw_buf_str(&w->folded);
	struct fw_str word;

	while (!w->failed && query_token_find(&rest, &word)) {
		words_token(w, word);
		w->failed |= w->text.rc != 0;
	}
	words_token(w, FW_STR(""));
	w->failed |= w->folded.rc != 0;
	fw_buf_reset(&w->folded);
}

/* Empty the hash table. A large one is replaced: it would make the small entries after it slow. */
static void words_reset(struct entry_words *w)
{
	if (w->slot_n > 16 * WORDS_MIN && w->word_n < w->slot_n / 32) {
		free(w->word);
		w->word = NULL;
		w->word_cap = 0;
	} else if (w->slot) {
		memset(w->slot, 0, w->slot_n * sizeof(*w->slot));
	}
	fw_buf_reset(&w->text);
	fw_buf_reset(&w->folded);
	w->word_n = w->token_n = w->title_n = w->sorted_n = 0;
	w->failed = false;
}

void entry_words_set(struct entry_words *w, const struct fw_entry_row *entry)
{
	words_reset(w);
	query_words_title(&w->folded, entry->title);
	words_take(w);
	w->title_n = w->token_n;
	query_words_body(&w->folded, entry->summary, FW_STR_NONE, FW_TEXT_PLAIN);
	words_take(w);
	query_words_body(&w->folded, FW_STR_NONE, entry->content, (int)entry->content_type);
	words_take(w);
}

/* ---- questions ------------------------------------------------------------------------------- */

/* ENTRY_WORD_NONE: the entry does not have the word. */
static uint32_t entry_words_find(const struct entry_words *w, struct fw_str word)
{
	return w->word_n ? *words_slot(w, word, entry_word_hash(word)) - 1 : ENTRY_WORD_NONE; /* 0 - 1: none */
}

static int words_order(const void *a, const void *b)
{
	return fw_str_order(*(const struct fw_str *)a, *(const struct fw_str *)b);
}

static bool words_sort(struct entry_words *w)
{
	if (w->sorted_n == w->word_n)
		return true;
	if (w->sorted_cap < w->word_n && !words_grow(&w->sorted, sizeof(*w->sorted), w->word_cap))
		return false;
	w->sorted_cap = FW_MAX(w->sorted_cap, w->word_cap);
	for (size_t i = 0; i < w->word_n; i++)
		w->sorted[i] = entry_words_text(w, i);
	qsort(w->sorted, w->word_n, sizeof(*w->sorted), words_order);
	w->sorted_n = w->word_n;
	return true;
}

/* Does a word start with it? */
static bool words_have_prefix(struct entry_words *w, struct fw_str prefix)
{
	size_t lo = 0, hi = w->word_n;

	if (!words_sort(w)) {
		w->failed = true;
		return false;
	}
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (fw_str_order(w->sorted[mid], prefix) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < w->word_n && fw_str_starts(w->sorted[lo], prefix);
}

static bool words_title_has_prefix(const struct entry_words *w, struct fw_str prefix)
{
	for (size_t i = 0; i < w->title_n; i++) {
		if (w->token[i] != ENTRY_WORD_NONE && fw_str_starts(entry_words_text(w, w->token[i]), prefix))
			return true;
	}
	return false;
}

/* A phrase: the words' numbers; prefix.p: a prefix follows. */
struct words_phrase {
	uint32_t word[QUERY_PHRASE_MAX];
	size_t n;
	struct fw_str prefix;
};

static bool words_stand_at(const struct entry_words *w, const struct words_phrase *p, size_t at, size_t end)
{
	if (at + p->n + (p->prefix.p != NULL) > end)
		return false;
	for (size_t i = 0; i < p->n; i++) {
		if (w->token[at + i] != p->word[i])
			return false;
	}
	if (!p->prefix.p)
		return true;
	at += p->n;
	return w->token[at] != ENTRY_WORD_NONE && fw_str_starts(entry_words_text(w, w->token[at]), p->prefix);
}

static bool words_have_phrase(const struct entry_words *w, const struct words_phrase *p, size_t end)
{
	size_t rarest = 0;

	for (size_t i = 1; i < p->n; i++) {
		if (w->word[p->word[i]].n < w->word[p->word[rarest]].n)
			rarest = i;
	}
	for (uint32_t at = w->word[p->word[rarest]].first; at != ENTRY_WORD_NONE && at < end; at = w->next[at]) {
		if (at >= rarest && words_stand_at(w, p, at - rarest, end))
			return true;
	}
	return false;
}

/* False: a word is not in the entry. */
static bool words_phrase_set(const struct entry_words *w, struct fw_str words, bool prefix, struct words_phrase *p)
{
	p->n = 0;
	p->prefix = FW_STR_NONE;
	while (words.len) {
		struct fw_str one = fw_str_split(words, ' ', &words);
		uint32_t id;

		if (!words.len && prefix) {
			p->prefix = one;
			return true;
		}
		id = entry_words_find(w, one);
		if (id == ENTRY_WORD_NONE || p->n == QUERY_PHRASE_MAX)
			return false;
		p->word[p->n++] = id;
	}
	return true;
}

bool entry_words_contain(struct entry_words *w, struct fw_str words, bool prefix, bool title)
{
	struct words_phrase phrase;

	if (!words_phrase_set(w, words, prefix, &phrase))
		return false;
	if (!phrase.n)
		return title ? words_title_has_prefix(w, phrase.prefix) : words_have_prefix(w, phrase.prefix);
	return words_have_phrase(w, &phrase, title ? w->title_n : w->token_n);
}

size_t entry_words_count(struct entry_words *w, struct fw_str words, bool prefix, size_t *in_title)
{
	struct words_phrase phrase;
	size_t n = 0;

	*in_title = 0;
	if (!words_phrase_set(w, words, prefix, &phrase))
		return 0;
	for (size_t at = phrase.n ? w->word[phrase.word[0]].first : 0; at < w->token_n;
		at = phrase.n ? w->next[at] : at + 1) {
		bool in = words_stand_at(w, &phrase, at, w->token_n);

		n += in;
		*in_title += in && at < w->title_n;
	}
	return n;
}
