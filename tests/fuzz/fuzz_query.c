/* SPDX-License-Identifier: ISC */
/*
 * The first line is a query, the second an entry's title, the rest its content. What the query
 * matches is compared with a second, naive evaluation of the tree on texts of folded words; a set
 * of orders with the query in it finds the same; the snippet's marks are balanced.
 */
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "base/utf8.h"
#include "query/match.h"
#include "query/rank.h"
#include "query/snippet.h"
#include "query/words.h"
#include "fuzz.h"

#define NOW_MS INT64_C(1790000000000)

static struct fw_str line_of(struct fw_str *rest)
{
	return fw_str_split(*rest, '\n', rest);
}

/* ---- the second evaluation ------------------------------------------------------------------- */

/* " w1 w2 " */
static void naive_words(struct fw_buf *out, struct fw_str text)
{
	struct fw_buf folded = FW_BUF_INIT(0);
	struct query_token token;
	struct fw_str rest;

	query_words(&folded, text);
	rest = fw_buf_str(&folded);
	fw_buf_addc(out, ' ');
	while (query_token_next(&rest, &token)) {
		fw_buf_add(out, token.text, token.len);
		fw_buf_addc(out, ' ');
	}
	fw_buf_finish(&folded);
}

static bool naive_contains(struct fw_str text, const struct query_node *q)
{
	struct fw_buf needle = FW_BUF_INIT(0), words = FW_BUF_INIT(0);
	bool found;

	naive_words(&words, text);
	fw_buf_addc(&needle, ' ');
	fw_buf_addstr(&needle, fw_str_sub(q->text, 0, q->text.len - q->prefix));
	found = fw_str_find(fw_buf_str(&words), fw_buf_str(&needle)) != NULL;
	fw_buf_finish(&needle);
	fw_buf_finish(&words);
	return found;
}

/* The entry has a title, an author (the title again), content, a URL and a folder. */
static bool naive_matches(const struct query_node *q, const struct query_subject *subject)
{
	const struct fw_entry_row *e = subject->entry;
	bool any = false, all = true;

	switch (q->op) {
	case QUERY_AND:
	case QUERY_OR:
	case QUERY_NOT:
		for (const struct query_node *c = q->child; c; c = c->next) {
			bool matches = naive_matches(c, subject);

			any |= matches;
			all &= matches;
		}
		return q->op == QUERY_AND ? all : q->op == QUERY_OR ? any : !any;
	case QUERY_WORDS:
		return naive_contains(e->title, q) || naive_contains(e->content, q);
	case QUERY_TITLE:
		return naive_contains(e->title, q);
	case QUERY_AUTHOR:
		return naive_contains(e->author, q);
	case QUERY_URL:
		return fw_str_ifind(e->url, q->text) != NULL;
	case QUERY_SITE:
		return fw_str_ieq(q->text, FW_STR("blog.example.org")) || fw_str_ieq(q->text, FW_STR("example.org")) ||
			fw_str_ieq(q->text, FW_STR("org"));
	case QUERY_FEED:
		return q->number ? q->number == 7 : fw_str_ifind(FW_STR("Planet"), q->text) != NULL;
	case QUERY_FOLDER:
		return fw_str_eq(q->text, FW_STR("News")) || fw_str_eq(q->text, FW_STR("News/Tech"));
	case QUERY_LANG:
		return fw_str_ieq(q->text, FW_STR("de")) || fw_str_ieq(q->text, FW_STR("de-AT"));
	case QUERY_SINCE:
		return NOW_MS >= q->at_ms;
	case QUERY_UNTIL:
		return NOW_MS < q->at_ms;
	case QUERY_TAG:
		return false;
	case QUERY_HAS:
		return (q->number == QUERY_HAS_AUTHOR && e->author.len) || q->number == QUERY_HAS_LINK ||
			(q->number == QUERY_HAS_CONTENT && e->content.len);
	}
	return false;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static int on_match(void *ctx, uint64_t number)
{
	FUZZ_CHECK(number == 1);
	++*(int *)ctx;
	return 0;
}

/* The query among others. */
static void check_set(const struct query_node *q, struct query_scratch *s, bool matches)
{
	struct match_set *set = match_set_create();
	int n = 0;

	FUZZ_CHECK(set && match_set_add(set, 1, q, NULL) == 0);
	if (matches)
		match_set_learn(set, s);
	FUZZ_CHECK(match_set_finish(set, NULL) == 0);
	FUZZ_CHECK(match_set_run(set, s, on_match, &n) == 0);
	FUZZ_CHECK(n == matches);
	match_set_destroy(set);
}

static void check_snippet(const struct query_node *q, const struct fw_entry_row *e)
{
	struct snippet_texts texts = {.title = e->title, .content = e->content};
	struct fw_buf out = FW_BUF_INIT(0);
	bool inside = false;

	FUZZ_CHECK(query_snippet(&out, q, &texts) == 0);
	for (size_t i = 0; i < out.len; i++) {
		if (out.p[i] != FW_MARK_BEGIN && out.p[i] != FW_MARK_END)
			continue;
		FUZZ_CHECK(inside == (out.p[i] == FW_MARK_END));
		inside = !inside;
	}
	FUZZ_CHECK(!inside && fw_utf8_valid(fw_buf_str(&out).p, out.len) == out.len);
	fw_buf_finish(&out);
}

static void check_error(const struct fw_err *err)
{
	FUZZ_CHECK(err->rc == FW_EINVAL && strncmp(err->text, "at ", 3) == 0);
	FUZZ_CHECK(fw_utf8_valid(err->text, strlen(err->text)) == strlen(err->text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fw_str rest = {(const char *)data, size}, query = line_of(&rest), title = line_of(&rest);
	struct fw_entry_row entry = {.title = title,
		.author = title,
		.content = rest,
		.content_type = FW_TEXT_PLAIN,
		.url = FW_STR("http://Blog.example.org/a?b"),
		.seen_ms = NOW_MS};
	struct query_subject subject = {.entry = &entry,
		.feed_id = 7,
		.feed_title = FW_STR("Planet"),
		.feed_folder = FW_STR("News/Tech"),
		.feed_language = FW_STR("de-AT"),
		.now_ms = NOW_MS};
	struct query_scratch *s = query_scratch_create();
	struct query_node *q;
	struct fw_arena a;
	struct fw_err err;

	fw_arena_init(&a, 0);
	FUZZ_CHECK(s);
	if (query_parse(&a, query, NOW_MS, &q, &err)) {
		check_error(&err);
	} else if (q) {
		bool matches;

		query_scratch_set(s, &subject);
		matches = query_matches(q, s);
		FUZZ_CHECK(matches == naive_matches(q, &subject));
		check_set(q, s, matches);
		check_snippet(q, &entry);
		FUZZ_CHECK(query_score(q, s, NULL) >= 0 && !query_scratch_failed(s));
	}
	query_scratch_destroy(s);
	fw_arena_finish(&a);
	return 0;
}
