/* SPDX-License-Identifier: ISC */
/*
 * The matcher of orders finds what query_matches() finds, order by order: on random orders and
 * entries of a small vocabulary, so that much matches, and on sets that hardly match.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "query/match.h"
#include "../../suite.h"

#define NOW_MS INT64_C(1790000000000)

static uint64_t random_state = 1;

/* xorshift64*: the same numbers on all machines. Below n. */
static unsigned below(unsigned n)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (unsigned)((random_state * UINT64_C(0x2545f4914f6cdd1d)) >> 33) % n;
}

/* ---- random orders and entries --------------------------------------------------------------- */

static const char *const WORD[] = {"a", "ab", "abc", "abd", "b", "ba", "bab", "c", "ca", "cab", "\u00e4b", "\u4eac",
	"d", "e", "f", "fa", "fab", "g", "h", "i"};

static const char *word(void)
{
	/* the first words are the common ones */
	unsigned most = 1 + below(FW_N(WORD));

	return WORD[below(most)];
}

static void words_add(struct fw_buf *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		fw_buf_addf(b, "%s%s", i ? " " : "", word());
}

static void term_add(struct fw_buf *b)
{
	static const char *const words_of[] = {"", "", "", "", "title:", "author:", "tag:"};
	static const char *const other[] = {"url:a", "url:/b", "site:example.org", "site:B.example.org", "site:org",
		"feed:1", "feed:2", "feed:planet", "folder:News", "folder:News/Tech", "folder:a", "lang:de",
		"lang:DE-at", "lang:en", "since:1h", "until:1h", "has:audio", "has:tag", "has:author", "has:link",
		"has:content", "has:attachment"};

	if (below(4) == 0) {
		fw_buf_adds(b, other[below(FW_N(other))]);
		return;
	}
	fw_buf_adds(b, words_of[below(FW_N(words_of))]);
	if (below(3)) {
		fw_buf_adds(b, word());
	} else {
		fw_buf_addc(b, '"');
		words_add(b, 1 + below(3));
		fw_buf_addc(b, '"');
	}
	if (below(5) == 0)
		fw_buf_addc(b, '*');
}

static void query_add(struct fw_buf *b, unsigned depth)
{
	unsigned n = 1 + below(depth ? 4 : 6);
	bool either = below(3) == 0;

	for (unsigned i = 0; i < n; i++) {
		fw_buf_adds(b, !i ? "" : either ? " OR " : " ");
		if (below(5) == 0)
			fw_buf_addc(b, '-');
		if (depth < 3 && below(6) == 0) {
			fw_buf_addc(b, '(');
			query_add(b, depth + 1);
			fw_buf_addc(b, ')');
		} else {
			term_add(b);
		}
	}
}

struct example {
	struct fw_buf text;
	struct fw_entry_row entry;
	struct query_subject subject;
};

static struct fw_str text_add(struct fw_buf *b, unsigned n)
{
	size_t from = b->len;

	words_add(b, n);
	return fw_str_sub(fw_buf_str(b), from, b->len);
}

static void example_set(struct example *e)
{
	static const char *const url[] = {"", "https://example.org/a", "http://b.EXAMPLE.org:80/b?a", "urn:x"};
	static const char *const extra[] = {"", "{}", "{\"tags\":[\"a\",\"ab c\"],\"language\":\"en\"}",
		"{\"attachments\":[{\"mime_type\":\"audio/mpeg\"}]}", "{\"tags\":[\"b\"],\"attachments\":[{}]}"};
	static const char *const folder[] = {"", "News", "News/Tech", "Newsroom", "a/b"};
	static const char *const lang[] = {"", "de", "de-AT", "en_US", "fr"};

	fw_buf_finish(&e->text);
	(void)fw_buf_room(&e->text, 4096); /* the parts do not move */
	e->entry = (struct fw_entry_row){.title = text_add(&e->text, below(4)),
		.author = text_add(&e->text, below(3)),
		.summary = text_add(&e->text, below(5)),
		.content = text_add(&e->text, below(12)),
		.content_type = below(2) ? FW_TEXT_HTML : FW_TEXT_PLAIN,
		.url = fw_str(url[below(FW_N(url))]),
		.extra = fw_str(extra[below(FW_N(extra))]),
		.seen_ms = below(2) ? 0 : NOW_MS - (int64_t)below(7200000)};
	e->subject = (struct query_subject){.entry = &e->entry,
		.feed_id = 1 + (int64_t)below(3),
		.feed_url = fw_str("https://planet.example/"),
		.feed_title = fw_str("Planet"),
		.feed_folder = fw_str(folder[below(FW_N(folder))]),
		.feed_language = fw_str(lang[below(FW_N(lang))]),
		.now_ms = NOW_MS};
}

/* ---- the comparison -------------------------------------------------------------------------- */

#define ORDER_N 400

struct found {
	unsigned n[ORDER_N];
};

static int on_match(void *ctx, uint64_t number)
{
	struct found *f = ctx;

	ck_assert_uint_lt(number, ORDER_N);
	f->n[number]++;
	return 0;
}

static struct query_node *parsed(struct fw_arena *a, const char *text)
{
	struct query_node *q;
	struct fw_err err;

	ck_assert_msg(query_parse(a, fw_str(text), NOW_MS, &q, &err) == 0, "%s: %s", text, err.text);
	return q;
}

/* Returns the number of matches. */
static size_t check_entries(
	struct match_set *set, struct query_node *const *order, char *const *text, size_t n, int entries)
{
	struct query_scratch *s = query_scratch_create(), *brute = query_scratch_create();
	struct example e = {0};
	size_t match_n = 0;

	for (int i = 0; i < entries; i++) {
		struct found found = {0};

		example_set(&e);
		query_scratch_set(s, &e.subject);
		query_scratch_set(brute, &e.subject);
		ck_assert_int_eq(match_set_run(set, s, on_match, &found), 0);
		for (size_t k = 0; k < n; k++) {
			bool matches = query_matches(order[k], brute);

			ck_assert_msg(found.n[k] == matches, "%s: %u, not %d: %.*s", text[k], found.n[k], matches,
				FW_STR_ARG(fw_buf_str(&e.text)));
			match_n += matches;
		}
	}
	query_scratch_destroy(s);
	query_scratch_destroy(brute);
	fw_buf_finish(&e.text);
	return match_n;
}

static void learn(struct match_set *set, int entries)
{
	struct query_scratch *s = query_scratch_create();
	struct example e = {0};

	for (int i = 0; i < entries; i++) {
		example_set(&e);
		query_scratch_set(s, &e.subject);
		match_set_learn(set, s);
	}
	query_scratch_destroy(s);
	fw_buf_finish(&e.text);
}

START_TEST(like_brute_force)
{
	size_t match_n = 0;

	for (int turn = 0; turn < 30; turn++) {
		struct match_set *set = match_set_create();
		struct query_node *order[ORDER_N];
		char *text[ORDER_N];
		struct fw_arena a;
		size_t len, n = 1 + below(ORDER_N);

		fw_arena_init(&a, 0);
		for (size_t k = 0; k < n; k++) {
			struct fw_buf b = FW_BUF_INIT(0);

			query_add(&b, 0);
			text[k] = fw_buf_take(&b, &len);
			order[k] = parsed(&a, text[k]);
			ck_assert_int_eq(match_set_add(set, k, order[k], NULL), 0);
		}
		learn(set, turn % 3 * 20);
		ck_assert_int_eq(match_set_finish(set, NULL), 0);
		match_n += check_entries(set, order, text, n, 40);
		match_set_destroy(set);
		for (size_t k = 0; k < n; k++)
			free(text[k]);
		fw_arena_finish(&a);
	}
	ck_assert_uint_gt(match_n, 10000);
}
END_TEST

/* ---- cost ------------------------------------------------------------------------------------ */

static void add(struct match_set *set, uint64_t number, const char *text)
{
	struct fw_arena a;

	fw_arena_init(&a, 0);
	ck_assert_int_eq(match_set_add(set, number, parsed(&a, text), NULL), 0);
	fw_arena_finish(&a);
}

static int on_count(void *ctx, uint64_t number)
{
	(void)number;
	++*(size_t *)ctx;
	return 0;
}

static size_t run_text(struct match_set *set, const char *title, const char *url)
{
	struct fw_entry_row entry = {.title = fw_str(title), .url = fw_str(url)};
	struct query_subject subject = {
		.entry = &entry, .feed_id = 5, .feed_folder = FW_STR("News/Tech"), .now_ms = NOW_MS};
	struct query_scratch *s = query_scratch_create();
	size_t n = 0;

	query_scratch_set(s, &subject);
	ck_assert_int_eq(match_set_run(set, s, on_count, &n), 0);
	query_scratch_destroy(s);
	return n;
}

/* What is not of this entry is not looked at, whatever kind of thing it looks for. */
START_TEST(only_candidates)
{
	struct match_set *set = match_set_create();
	char text[200];

	for (unsigned i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "the common word%u -other", i);
		add(set, i, text);
		snprintf(text, sizeof(text), "the (rare%u OR scarce%u) common", i, i);
		add(set, i, text);
		snprintf(text, sizeof(text), "\"the common phrase%u\"", i);
		add(set, i, text);
		snprintf(text, sizeof(text), "the prefix%u*", i);
		add(set, i, text);
		snprintf(text, sizeof(text), "-the site:host%u.example", i);
		add(set, i, text);
		snprintf(text, sizeof(text), "-the feed:%u", i + 10);
		add(set, i, text);
		snprintf(text, sizeof(text), "-the folder:f%u", i);
		add(set, i, text);
		snprintf(text, sizeof(text), "common tag:t%u", i);
		add(set, i, text);
		snprintf(text, sizeof(text), "common author:a%u", i);
		add(set, i, text);
		snprintf(text, sizeof(text), "common title:t%u", i);
		add(set, i, text);
	}
	ck_assert_int_eq(match_set_finish(set, NULL), 0);
	ck_assert_uint_eq(run_text(set, "the common", "http://www.example/"), 0);
	ck_assert_uint_eq(match_set_checked_n(set), 0);
	ck_assert_uint_eq(
		run_text(set, "the common word7 rare8 phrase9 prefix99x scarce8 t9", "http://a.host7.example/"), 5);
	ck_assert_uint_lt(match_set_checked_n(set), 10);
	match_set_destroy(set);
}
END_TEST

/* Without a rare word of its own an order goes by what the learned entries say. */
START_TEST(learned)
{
	struct match_set *set = match_set_create();
	char text[100];

	for (unsigned i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "seldom often%u", i % 2);
		add(set, i, text);
	}
	for (int i = 0; i < 100; i++) {
		struct fw_entry_row entry = {.title = FW_STR("often0 often1")};
		struct query_subject subject = {.entry = &entry, .now_ms = NOW_MS};
		struct query_scratch *s = query_scratch_create();

		query_scratch_set(s, &subject);
		match_set_learn(set, s);
		query_scratch_destroy(s);
	}
	ck_assert_int_eq(match_set_finish(set, NULL), 0);
	ck_assert_uint_eq(run_text(set, "often0 often1", ""), 0);
	ck_assert_uint_eq(match_set_checked_n(set), 0);
	ck_assert_uint_eq(run_text(set, "often0 seldom", ""), 500);
	match_set_destroy(set);
}
END_TEST

static int on_stop(void *ctx, uint64_t number)
{
	++*(size_t *)ctx;
	return (int)number;
}

START_TEST(edges)
{
	struct match_set *set = match_set_create();
	struct query_scratch *s = query_scratch_create();
	struct fw_entry_row entry = {.title = FW_STR("x")};
	struct query_subject subject = {.entry = &entry, .now_ms = NOW_MS};
	size_t n = 0;

	ck_assert_int_eq(match_set_finish(set, NULL), 0); /* no order */
	ck_assert_uint_eq(run_text(set, "x", ""), 0);
	match_set_destroy(set);
	match_set_destroy(NULL);
	set = match_set_create();
	ck_assert_int_eq(match_set_add(set, 7, NULL, NULL), 0); /* everything */
	add(set, 8, "x OR x");
	add(set, UINT64_MAX, "-y url:z");
	ck_assert_int_eq(match_set_finish(set, NULL), 0);
	ck_assert_uint_eq(run_text(set, "x", ""), 2);
	ck_assert_uint_eq(run_text(set, "", "http://z/"), 2);
	query_scratch_set(s, &subject);
	ck_assert_int_eq(match_set_run(set, s, on_stop, &n), 7);
	ck_assert_uint_eq(n, 1);
	ck_assert_uint_gt(match_set_bytes(set), 0);
	match_set_destroy(set);
	query_scratch_destroy(s);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("match");
	TCase *c = tcase_create("match");

	tcase_add_test(c, like_brute_force);
	tcase_add_test(c, only_candidates);
	tcase_add_test(c, learned);
	tcase_add_test(c, edges);
	suite_add_tcase(s, c);
	return run_suite(s);
}
