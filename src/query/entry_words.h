/* SPDX-License-Identifier: ISC */
/*
 * The words of one entry, where they stand, and questions about them. Serves the evaluation of
 * queries, the matcher, the snippets and the scores.
 */
#ifndef FW_QUERY_ENTRY_WORDS_H
#define FW_QUERY_ENTRY_WORDS_H

#include "base/buf.h"
#include "feedwheel/store.h"

#define ENTRY_WORD_NONE UINT32_MAX

/* A distinct word. */
struct entry_word {
	uint64_t hash;    /* entry_word_hash() */
	uint32_t at, len; /* in entry_words.text */
	uint32_t first;   /* its first token */
	uint32_t last;
	uint32_t n; /* number of its tokens */
};

/* Zero it before the first use. The memory is kept from one entry to the next. */
struct entry_words {
	struct fw_buf folded, text;
	struct entry_word *word;
	size_t word_n, word_cap;
	/* Title, summary, content, one after the other; a token of no word ends each. */
	uint32_t *token; /* its word, or ENTRY_WORD_NONE */
	uint32_t *next;  /* the next token of the same word, or ENTRY_WORD_NONE */
	size_t token_n, token_cap;
	size_t title_n; /* tokens of the title */
	uint32_t *slot; /* hash table: word + 1, 0: free */
	size_t slot_n;
	struct fw_str *sorted; /* the words in order of bytes */
	size_t sorted_n, sorted_cap;
	bool failed; /* out of memory */
};

/* With a seed of this process: strangers must not choose words that collide. */
uint64_t entry_word_hash(struct fw_str word);

void entry_words_finish(struct entry_words *w);
void entry_words_set(struct entry_words *w, const struct fw_entry_row *entry);

static inline struct fw_str entry_words_text(const struct entry_words *w, size_t word)
{
	return (struct fw_str){w->text.p + w->word[word].at, w->word[word].len};
}

/*
 * Do these words, each followed by a space, stand one after the other in a text, or in the title?
 * prefix: the last one is the start of a word.
 */
bool entry_words_contain(struct entry_words *w, struct fw_str words, bool prefix, bool title);
/* How often they do; *in_title: how often in the title. */
size_t entry_words_count(struct entry_words *w, struct fw_str words, bool prefix, size_t *in_title);

#endif
