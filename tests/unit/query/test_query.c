/* SPDX-License-Identifier: ISC */
/* The query language: which entries a query matches, and what is said about what is no query. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "base/utf8.h"
#include "query/query.h"
#include "../../suite.h"

#define S(text) ((struct fw_str){(text), sizeof(text) - 1})
#define NOW_MS INT64_C(1790000000000)
#define HOUR_MS INT64_C(3600000)

/* ---- parsing --------------------------------------------------------------------------------- */

/* The tree as text: (and a (or b -c)). */
static void tree_write(struct fw_buf *out, const struct query_node *q)
{
	switch (q->op) {
	case QUERY_AND:
	case QUERY_OR:
		fw_buf_adds(out, q->op == QUERY_AND ? "(and" : "(or");
		for (const struct query_node *c = q->child; c; c = c->next) {
			fw_buf_addc(out, ' ');
			tree_write(out, c);
		}
		fw_buf_addc(out, ')');
		return;
	case QUERY_NOT:
		fw_buf_addc(out, '-');
		tree_write(out, q->child);
		return;
	default:
		break;
	}
	if (q->op != QUERY_WORDS)
		fw_buf_addf(out, "%s:", query_field_name(q->op));
	fw_buf_addf(out, "[%.*s]%s", FW_STR_ARG(fw_str_trim(q->text)), q->prefix ? "*" : "");
	if (q->op == QUERY_FEED && q->number)
		fw_buf_addf(out, "#%lld", (long long)q->number);
}

static const struct {
	const char *query, *tree;
} TREE[] = {
	{"", ""},
	{" \t\n ", ""},
	{"\u3000", ""},
	{"one", "[one]"},
	{"ONE Été", "(and [one] [ete])"},
	{"one AND two", "(and [one] [two])"},
	{"one OR two three", "(or [one] (and [two] [three]))"},
	{"(one OR two) three", "(and (or [one] [two]) [three])"},
	{"one OR two OR three", "(or [one] [two] [three])"},
	{"((one))", "[one]"},
	{"-one", "-[one]"},
	{"--one", "--[one]"},
	{"NOT one", "-[one]"},
	{"-(one OR two)", "-(or [one] [two])"},
	{"a -\"b c\"", "(and [a] -[b c])"},
	{"and or not", "(and [and] [or] [not])"},
	{"ANDROID ORDER", "(and [android] [order])"},
	{"\"AND\"", "[and]"},
	{"long-term", "[long term]"},
	{"CVE-2026-1", "[cve 2026 1]"},
	{"12:30", "[12 30]"},
	{"c++ C#", "(and [c] [c])"},
	{"don't", "[don t]"},
	{"pre*", "[pre]*"},
	{"\"long nig\"*", "[long nig]*"},
	{"x\"a b\"y", "(and [x] [a b] [y])"},
	{"one\u3000two", "(and [one] [two])"},
	{"\u6771\u4eac", "[\u6771 \u4eac]"},
	{"title:one", "title:[one]"},
	{"Title:ONE", "title:[one]"},
	{"title:\"Long Night\"*", "title:[long night]*"},
	{"author:o'neil", "author:[o neil]"},
	{"tag:c*", "tag:[c]*"},
	{"url:/Blog/", "url:[/Blog/]"},
	{"url:\"a b\"", "url:[a b]"},
	{"url:\"a*\"", "url:[a*]"},
	{"site:.Example.org.", "site:[Example.org]"},
	{"feed:12", "feed:[12]#12"},
	{"feed:\"12\"", "feed:[12]"},
	{"feed:0", "feed:[0]"},
	{"feed:99999999999999999999", "feed:[99999999999999999999]"},
	{"folder:News/Tech/", "folder:[News/Tech]"},
	{"folder:\"My News\"", "folder:[My News]"},
	{"lang:de-AT", "lang:[de-AT]"},
	{"since:2h", "since:[2h]"},
	{"until:\"2026-11-01 12:00\"", "until:[2026-11-01 12:00]"},
	{"has:AUDIO", "has:[AUDIO]"},
	{"-title:one", "-title:[one]"},
};

START_TEST(trees)
{
	for (size_t i = 0; i < FW_N(TREE); i++) {
		struct fw_buf out = FW_BUF_INIT(0);
		struct query_node *q;
		struct fw_arena a;
		struct fw_err err;

		fw_arena_init(&a, 0);
		ck_assert_msg(query_parse(&a, fw_str(TREE[i].query), NOW_MS, &q, &err) == 0, "%s: %s", TREE[i].query,
			err.text);
		if (q)
			tree_write(&out, q);
		fw_buf_addc(&out, '\0');
		ck_assert_msg(strcmp(out.p, TREE[i].tree) == 0, "%s: %s", TREE[i].query, out.p);
		fw_buf_finish(&out);
		fw_arena_finish(&a);
	}
}
END_TEST

static const struct {
	const char *query, *words;
} WRONG[] = {
	{"\"one", "at 1: the quote is not closed: add \" where the phrase ends"},
	{"\u00e9t\u00e9 \"one", "at 5: the quote is not closed"},
	{"(one", "at 1: the bracket is not closed: add )"},
	{"(", "at 1: the bracket is not closed: add a term and )"},
	{"one)", "at 4: the bracket was not opened"},
	{")", "at 1: the bracket was not opened"},
	{"a ()", "at 3: the brackets are empty: leave them out"},
	{"OR one", "at 1: OR must stand between two terms: in lower case it is a word"},
	{"one OR", "at 5: OR has no term behind it: add one, or leave it out"},
	{"(one OR)", "at 6: OR has no term behind it"},
	{"one AND OR two", "at 9: OR must stand between two terms"},
	{"one NOT", "at 5: NOT has no term behind it"},
	{"one - two", "at 5: the - stands alone"},
	{"one -", "at 5: the - stands alone"},
	{"---", "at 3: the - stands alone"},
	{"-)", "at 1: - has no term behind it"},
	{"++", "at 1: \"++\" has no letter or digit to look for: leave it out"},
	{"*", "at 1: \"*\" has no letter or digit"},
	{"\"\"", "at 1: \"\" has no letter or digit"},
	{"title:\"!\"", "at 1: \"!\" has no letter"},
	{"a*b", "at 2: * stands only at the end of a word"},
	{"title:*a", "at 7: * stands only at the end of a word"},
	{"titel:one", "at 1: there is no field \"titel\": did you mean title:?"},
	{"http://x.example", "at 1: there is no field \"http\": put text with a colon in quotes (fields: title author"},
	{"one title:", "at 5: title: needs its value right behind the colon, such as title:word"},
	{"title:(a OR b)", "at 7: a field takes a word or a phrase, no brackets: write (title:a OR title:b)"},
	{"site:https://example.org/x", "at 6: site: takes a host alone"},
	{"site:exam*", "at 6: site: takes no *"},
	{"folder:/", "at 1: folder: needs a value, such as folder:News"},
	{"has:sound", "at 5: has:sound is unknown: it takes audio, video"},
	{"has:vidoe", "at 5: has:vidoe is unknown: did you mean has:video?"},
	{"since:someday", "at 7: \"someday\" is not a time: write since:2h, since:today or since:2026-11-01"},
};

START_TEST(errors)
{
	for (size_t i = 0; i < FW_N(WRONG); i++) {
		struct query_node *q;
		struct fw_arena a;
		struct fw_err err = {0};

		fw_arena_init(&a, 0);
		ck_assert_msg(query_parse(&a, fw_str(WRONG[i].query), NOW_MS, &q, &err) == FW_EINVAL, "%s: parsed",
			WRONG[i].query);
		ck_assert_msg(strncmp(err.text, WRONG[i].words, strlen(WRONG[i].words)) == 0, "%s: %s", WRONG[i].query,
			err.text);
		ck_assert(!q && err.rc == FW_EINVAL);
		ck_assert_int_eq(query_parse(&a, fw_str(WRONG[i].query), NOW_MS, &q, NULL), FW_EINVAL);
		fw_arena_finish(&a);
	}
}
END_TEST

/* Repeats unit n times around the middle. */
static struct fw_str repeated(struct fw_buf *b, const char *before, const char *middle, const char *after, int n)
{
	fw_buf_reset(b);
	for (int i = 0; i < n; i++)
		fw_buf_adds(b, before);
	fw_buf_adds(b, middle);
	for (int i = 0; i < n; i++)
		fw_buf_adds(b, after);
	return fw_buf_str(b);
}

static void check_limit(struct fw_str query, const char *words)
{
	struct query_node *q;
	struct fw_arena a;
	struct fw_err err = {0};
	int rc;

	fw_arena_init(&a, 0);
	rc = query_parse(&a, query, NOW_MS, &q, &err);
	if (words)
		ck_assert_msg(rc == FW_EINVAL && strstr(err.text, words), "%s", err.text);
	else
		ck_assert_msg(rc == 0 && q, "%s", err.text);
	fw_arena_finish(&a);
}

START_TEST(limits)
{
	struct fw_buf b = FW_BUF_INIT(0);

	check_limit(repeated(&b, "(", "x", ")", QUERY_DEPTH_MAX), NULL);
	check_limit(repeated(&b, "(", "x", ")", QUERY_DEPTH_MAX + 1), "at 33: more than 32 brackets and negations");
	check_limit(repeated(&b, "-", "x", "", QUERY_DEPTH_MAX), NULL);
	check_limit(repeated(&b, "NOT ", "x", "", QUERY_DEPTH_MAX + 1), "more than 32 brackets");
	check_limit(repeated(&b, "(a) ", "x", " (-b)", 100), NULL);
	check_limit(repeated(&b, "x ", "y", "", QUERY_TERMS_MAX - 1), NULL);
	check_limit(repeated(&b, "x ", "y", "", QUERY_TERMS_MAX), "at 513: a query has at most 256 terms");
	check_limit(repeated(&b, "x-", "y", "", QUERY_PHRASE_MAX - 1), NULL);
	check_limit(repeated(&b, "x-", "y", "", QUERY_PHRASE_MAX), "a phrase has at most 64 words");
	check_limit(repeated(&b, "x", "", "", QUERY_LENGTH_MAX), NULL);
	check_limit(repeated(&b, "x", "", "", QUERY_LENGTH_MAX + 1), "the query has 8193 bytes, the limit is 8192");
	fw_buf_finish(&b);
}
END_TEST

START_TEST(reads)
{
	static const struct {
		const char *query;
		unsigned reads;
	} want[] = {
		{"", 0},
		{"one", QUERY_READS_BODY},
		{"title:one -url:two", 0},
		{"tag:one OR site:x", QUERY_READS_EXTRA},
		{"-lang:de", QUERY_READS_EXTRA | QUERY_READS_FEED},
		{"feed:12 author:a since:2h until:1h", 0},
		{"feed:abc", QUERY_READS_FEED},
		{"folder:a b", QUERY_READS_FEED | QUERY_READS_BODY},
		{"has:audio", QUERY_READS_EXTRA},
		{"has:tag", QUERY_READS_EXTRA},
		{"has:content", QUERY_READS_BODY},
		{"has:link has:author", 0},
	};

	for (size_t i = 0; i < FW_N(want); i++) {
		struct query_node *q;
		struct fw_arena a;

		fw_arena_init(&a, 0);
		ck_assert_int_eq(query_parse(&a, fw_str(want[i].query), NOW_MS, &q, NULL), 0);
		ck_assert_msg(query_reads(q) == want[i].reads, "%s: %u", want[i].query, query_reads(q));
		fw_arena_finish(&a);
	}
}
END_TEST

/* ---- matching -------------------------------------------------------------------------------- */

static const struct fw_entry_row ENTRY = {
	.feed_id = 7,
	.url = S("https://Blog.Example.org:8080/2026/Post?x=1"),
	.title = S("The Long Night of C\u0327a"),
	.author = S("Anna O'Neil, Bob"),
	.summary = S("short summary"),
	.content = S("<p>A <b>remote</b> code execution, remote cod. Nightfall &amp; caf&eacute;</p>"),
	.content_type = FW_TEXT_HTML,
	.seen_ms = NOW_MS - 3 * HOUR_MS,
	.extra = S("{\"tags\":[\"Linux Kernel\",\"c++\",\"\"],\"attachments\":[{\"mime_type\":\"Audio/mpeg\"},7]}"),
};

static const struct {
	const char *query;
	bool matches;
} MATCH[] = {
	{"", true},
	{"night", true},
	{"NIGHT", true},
	{"nigh", false},
	{"nigh*", true},
	{"nightfall*", true},
	{"nightfalls*", false},
	{"ca", true},
	{"cafe", true},
	{"CAF\u00c9", true},
	{"amp", false},
	{"\"long night\"", true},
	{"\"night long\"", false},
	{"\"long nig\"", false},
	{"\"long nig\"*", true},
	{"\"remote code\"", true},
	{"\"remote cod\"", true},
	{"\"remote co\"*", true},
	{"\"remote exec\"*", false},
	{"\"code execution remote\"", true},
	{"\"ca short\"", false},
	{"\"summary a\"", false},
	{"\"ca short\"*", false},
	{"short -missing", true},
	{"short -night", false},
	{"missing OR night", true},
	{"missing OR absent", false},
	{"(missing OR night) AND summary", true},
	{"-(missing OR night)", false},
	{"--night", true},
	{"title:night", true},
	{"title:remote", false},
	{"title:\"the long\"", true},
	{"title:\"the lo\"*", true},
	{"title:ni*", true},
	{"title:rem*", false},
	{"author:anna", true},
	{"author:\"anna o neil\"", true},
	{"author:o'neil", true},
	{"author:nei", false},
	{"author:nei*", true},
	{"author:eil*", false},
	{"author:\"anna bob\"", false},
	{"tag:linux", false},
	{"tag:\"linux kernel\"", true},
	{"tag:kernel", false},
	{"tag:linux*", true},
	{"tag:kern*", false},
	{"tag:\"linux ker\"*", true},
	{"tag:c", true},
	{"url:/2026/", true},
	{"url:POST", true},
	{"url:2025", false},
	{"site:example.org", true},
	{"site:EXAMPLE.org", true},
	{"site:blog.example.org", true},
	{"site:ample.org", false},
	{"site:a.blog.example.org", false},
	{"site:org", true},
	{"feed:7", true},
	{"feed:8", false},
	{"feed:planet", true},
	{"feed:feeds.example", true},
	{"feed:pluto", false},
	{"folder:News", true},
	{"folder:News/Tech", true},
	{"folder:New", false},
	{"folder:news", false},
	{"folder:News/Tech/Sub", false},
	{"lang:de", true},
	{"lang:DE-at", true},
	{"lang:d", false},
	{"lang:en", false},
	{"since:4h", true},
	{"since:2h", false},
	{"until:2h", true},
	{"until:4h", false},
	{"has:audio", true},
	{"has:video", false},
	{"has:attachment", true},
	{"has:image", false},
	{"has:author", true},
	{"has:tag", true},
	{"has:link", true},
	{"has:content", true},
};

static const struct query_subject SUBJECT = {
	.entry = &ENTRY,
	.feed_id = 7,
	.feed_url = S("https://feeds.example/a"),
	.feed_title = S("Planet X"),
	.feed_folder = S("News/Tech"),
	.feed_language = S("de-AT"),
	.now_ms = NOW_MS,
};

static bool match(struct query_scratch *s, const char *query)
{
	struct query_node *q;
	struct fw_arena a;
	struct fw_err err;
	bool matches;

	fw_arena_init(&a, 0);
	ck_assert_msg(query_parse(&a, fw_str(query), NOW_MS, &q, &err) == 0, "%s: %s", query, err.text);
	matches = query_matches(q, s);
	ck_assert(!query_scratch_failed(s));
	fw_arena_finish(&a);
	return matches;
}

START_TEST(matches)
{
	struct query_scratch *s = query_scratch_create();

	query_scratch_set(s, &SUBJECT);
	for (size_t i = 0; i < FW_N(MATCH); i++)
		ck_assert_msg(match(s, MATCH[i].query) == MATCH[i].matches, "%s", MATCH[i].query);
	query_scratch_destroy(s);
}
END_TEST

/* Nothing of an entry is left for the next one; an entry without anything; what is not JSON. */
START_TEST(next_entries)
{
	static const struct fw_entry_row none,
		odd = {.extra = S("{\"tags\":7,\"attachments\":{},\"language\":\"fr\"}")},
		bad = {.extra = S("{\"tags\":["), .url = S("no url")};
	struct query_subject subject = {.entry = &none, .now_ms = NOW_MS};
	struct query_scratch *s = query_scratch_create();

	for (int turn = 0; turn < 2; turn++) {
		query_scratch_set(s, &SUBJECT);
		ck_assert(match(s, "night author:anna tag:c has:audio site:example.org lang:de nig*"));
		subject.entry = &none;
		query_scratch_set(s, &subject);
		ck_assert(
			!match(s, "night OR author:anna OR tag:c OR has:audio OR site:example.org OR lang:de OR nig*"));
		ck_assert(!match(
			s, "has:author OR has:tag OR has:link OR has:content OR feed:x OR title:n* OR folder:a"));
		ck_assert(match(s, "since:1s -until:1s -tag:x* -author:x*"));
		subject.entry = &odd;
		query_scratch_set(s, &subject);
		ck_assert(match(s, "lang:fr -has:tag -has:attachment"));
		subject.entry = &bad;
		query_scratch_set(s, &subject);
		ck_assert(match(s, "-has:tag -lang:fr -site:url url:\"no url\""));
	}
	query_scratch_destroy(s);
}
END_TEST

/* A word of more than 64 bytes is cut in the query as in the entry. */
START_TEST(long_words)
{
	struct query_scratch *s = query_scratch_create();
	struct fw_buf text = FW_BUF_INIT(0), query = FW_BUF_INIT(0);
	struct fw_entry_row entry = {0};
	struct query_subject subject = {.entry = &entry, .now_ms = NOW_MS};

	for (int i = 0; i < 50; i++) {
		fw_buf_adds(&text, "\u00f8\u00e6");
		fw_buf_adds(&query, "\u00d8\u00c6");
	}
	fw_buf_addc(&query, '\0');
	for (int i = 0; i < 50000; i++)
		fw_buf_addf(&text, " w%d", i);
	entry.title = fw_buf_str(&text);
	query_scratch_set(s, &subject);
	ck_assert(match(s, query.p));
	query.p[query.len - 1] = '*';
	fw_buf_addc(&query, '\0');
	ck_assert(match(s, query.p));
	ck_assert(match(s, "w0 w49999 w4999* -w50000 \"w49998 w49999\" title:\"w7 w8\""));
	for (int i = 0; i < 2; i++) {
		query_scratch_set(s, &SUBJECT);
		ck_assert(match(s, "night -w0 -w1* \"long night\""));
	}
	query_scratch_destroy(s);
	fw_buf_finish(&text);
	fw_buf_finish(&query);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("query");
	TCase *c = tcase_create("query");

	tcase_add_test(c, trees);
	tcase_add_test(c, errors);
	tcase_add_test(c, limits);
	tcase_add_test(c, reads);
	tcase_add_test(c, matches);
	tcase_add_test(c, next_entries);
	tcase_add_test(c, long_words);
	suite_add_tcase(s, c);
	return run_suite(s);
}
