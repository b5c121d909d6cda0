/* SPDX-License-Identifier: ISC */
/*
 * Full-text search without an index: reads entries, newest first, and matches each of them, until
 * the limit is reached.
 *
 * An index of words would take several times the memory of the entries, and on this engine all data
 * is in memory. A search reads about 100,000 entries of 1 KB per second. It is always up to date,
 * and finds the same as SQLite's index: words regardless of case and accents, prefixes, phrases.
 *
 * Query and entry are brought into the same form: words in a row, between single spaces. So a
 * phrase matches if it is a substring.
 */
#include <assert.h>

#include "store/redis/redis.h"
#include "query/tokens.h"
#include "query/words.h"
#include "base/banned.h"

/* Append " word word ", without the characters between the words; " " if there is no word. */
static void search_words_add(struct fw_buf *out, struct fw_str text)
{
	struct query_token t;

	fw_buf_addc(out, ' ');
	while (query_token_next(&text, &t)) {
		fw_buf_add(out, t.text, t.len);
		fw_buf_addc(out, ' ');
	}
}

bool rs_search_init(struct rs_search *s, struct fw_str words)
{
	struct fw_store_word w;
	bool any = false;

	*s = (struct rs_search){.words = FW_BUF_INIT(0), .text = FW_BUF_INIT(0), .raw = FW_BUF_INIT(0)};
	while (fw_store_term_next(&words, &s->raw, &w)) {
		search_words_add(&s->words, w.text);
		if (w.prefix)
			s->words.len--;
		fw_buf_addc(&s->words, '\0');
		any = true;
	}
	/* out of memory: rs_search_failed() reports it at the first entry */
	return any || s->raw.rc;
}

bool rs_search_matches(struct rs_search *s, const struct fw_entry_row *e)
{
	struct fw_str rest = fw_buf_str(&s->words);
	bool all = true;

	assert(s->words.len || s->words.rc || s->raw.rc);
	fw_buf_reset(&s->text);
	fw_buf_reset(&s->raw);
	query_words_title(&s->raw, e->title);
	search_words_add(&s->text, fw_buf_str(&s->raw));
	fw_buf_addc(&s->text, '\n'); /* no phrase spans title and text */
	fw_buf_reset(&s->raw);
	query_words_body(&s->raw, e->summary, e->content, (int)e->content_type);
	search_words_add(&s->text, fw_buf_str(&s->raw));
	while (rest.len && all) {
		struct fw_str one = fw_str_split(rest, '\0', &rest);

		all = fw_str_find(fw_buf_str(&s->text), one) != NULL;
	}
	return all;
}

int rs_search_failed(const struct rs_search *s)
{
	return s->words.rc ? s->words.rc : s->text.rc ? s->text.rc : s->raw.rc;
}

void rs_search_finish(struct rs_search *s)
{
	fw_buf_finish(&s->words);
	fw_buf_finish(&s->text);
	fw_buf_finish(&s->raw);
}
