/* SPDX-License-Identifier: ISC */
/*
 * Searches, on each driver: a list holds exactly the entries that query_matches() accepts, in its
 * order, whatever index a store has; ranks and snippets are those of src/query/. Generated
 * entries, with what indexes get wrong among them; written queries for each rule, and random ones
 * (FW_SEED).
 */
#include <stdio.h>
#include <stdlib.h>

#include "drv.h"
#include "base/clock.h"
#include "parse/html/text.h"
#include "query/query.h"
#include "query/rank.h"
#include "query/snippet.h"

#define FEEDS 6
#define ENTRIES 420

static struct fw_arena A;
static struct fw_err err;
static uint64_t seed;
static struct query_scratch *scratches[ENTRIES];

static void setup(void)
{
	const char *text = getenv("FW_SEED");

	fw_arena_init(&A, 0);
	seed = text ? strtoull(text, NULL, 10) : 20261126;
}

static void teardown(void)
{
	for (int i = 0; i < ENTRIES; i++)
		query_scratch_destroy(scratches[i]);
	fw_arena_finish(&A);
}

static size_t pick(size_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (size_t)(seed >> 33) % n;
}

#define PICK(list) list[pick(FW_N(list))]

/* ---- entries --------------------------------------------------------------------------------- */

static const char *const WORD[] = {"rain", "comet", "linux", "Linux", "kernel", "long", "night", "CVE-2026-1", "remote",
	"code", "wal", "sqlite", "naïve", "naive", "Äpfel", "apfel", "straße", "strasse", "東京都", "京都", "すし",
	"ガス", "МИР", "мир", "κόσμος", "한글", "कीमत", "don't", "AT&T", "x86", "1,000", "release", "released",
	"releases", "a", "the", "Việt", "ﬁsh", "fish", "e\u0301te\u0301", "שלום", "שָׁלוֹם", "مرحبا", "مَرْحَبًا",
	"\U0001F600"};
static const char *const AUTHOR[] = {"", "Ada Lovelace", "Linus Torvalds", "ADA", "Müller", "東京 太郎"};
static const char *const EXTRA[] = {"", "{\"tags\":[\"linux\",\"open source\"]}", "{\"tags\":[\"Linux Kernel\"]}",
	"{\"tags\":[\"Ökologie\"],\"language\":\"de-AT\"}", "{\"language\":\"en\"}", "{\"language\":\"de\"}",
	"{\"attachments\":[{\"url\":\"https://x.example/a.mp3\",\"mime_type\":\"audio/mpeg\"}]}",
	"{\"attachments\":[{\"url\":\"https://x.example/a.mp4\",\"mime_type\":\"video/mp4\"}],\"tags\":[\"film\"]}",
	"{\"attachments\":[{\"url\":\"https://x.example/a.png\",\"mime_type\":\"image/png\"}]}",
	"{\"attachments\":[{\"url\":\"https://x.example/a\"}]}"};
static const char *const URL[] = {"", "https://blog.example.org/a", "https://example.org/B?q=1",
	"https://notexample.org/", "http://EXAMPLE.org/C", "https://x.example/post/rain"};
static const struct {
	const char *url, *title, *folder, *language;
} FEED[FEEDS] = {
	{"https://one.example/feed", "First news", "News", "de"},
	{"https://two.example/feed", "Second", "News/Tech", "en"},
	{"https://three.example/rss", "Third", "Newsletter", ""},
	{"https://four.example/rss", "Über uns", "News/Tech/Deep_1", "de-CH"},
	{"https://five.example/rss", "100% five", "", "ja"},
	{"https://six.example/feed", "", "news", ""},
};

static struct fw_entry_row row[ENTRIES]; /* as put; id and seen_ms as read; feed_id: index of FEED until stored */
static int64_t feed_id[FEEDS];

static struct fw_str words(size_t n)
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct fw_str s;

	for (size_t i = 0; i < n; i++)
		fw_buf_addf(&b, "%s%s", i ? (pick(8) ? " " : ", ") : "", PICK(WORD));
	s = n ? fw_arena_str(&A, fw_buf_str(&b)) : FW_STR("");
	fw_buf_finish(&b);
	return s;
}

static struct fw_str repeated(const char *word, size_t n, const char *end)
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct fw_str s;

	for (size_t i = 0; i < n; i++)
		fw_buf_addf(&b, "%s ", word);
	fw_buf_adds(&b, end);
	s = fw_arena_str(&A, fw_buf_str(&b));
	fw_buf_finish(&b);
	return s;
}

/* What an index could get wrong. */
static void entries_special(void)
{
	static const char LONG_WORD[] =
		"wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww";

	/* a phrase spans title, summary and content */
	row[0].title = FW_STR("ends with crimson");
	row[0].summary = FW_STR("velvet starts, ends with golden");
	row[0].content = FW_STR("<p>harvest starts</p>");
	row[1].content = FW_STR("<p>crimson velvet and golden harvest</p>");
	/* positions of PostgreSQL: 256 per word, 16383 at most */
	row[2].content = repeated("often", 300, "harbour lights");
	row[3].content = repeated("one two three", 7000, "amber lantern glows, often two lights");
	row[4].content = FW_STR("amber and a lantern, harbour with lights, lights often");
	/* a long word is cut */
	row[5].content = fw_arena_str(&A, fw_str(LONG_WORD));
	row[6].content = (struct fw_str){LONG_WORD, sizeof(LONG_WORD) - 9};
	row[7].title = fw_arena_str(&A, fw_str(fw_arena_printf(&A, "before %s after", LONG_WORD)));
	row[8].content = FW_STR("<script>hidden</script><!-- secret -->visible &eacute;t&eacute; tags&nbsp;apart");
	row[9].title = FW_STR("NOT a title OR an AND");
	row[10].author = FW_STR("percent%_\\");
}

static void entries_make(void)
{
	for (int i = 0; i < ENTRIES; i++) {
		struct fw_entry_row *e = &row[i];

		*e = entry(i, 1, "", "");
		e->feed_id = (int64_t)pick(FEEDS);
		e->guid = fw_str(fw_arena_printf(&A, "g%d", i));
		e->title = words(pick(5));
		e->summary = pick(3) ? FW_STR("") : words(pick(8));
		e->content = pick(6) ? words(pick(20)) : FW_STR("");
		e->content_type = (enum fw_text_type)pick(3);
		e->author = fw_str(PICK(AUTHOR));
		e->url = fw_str(PICK(URL));
		e->extra = fw_str(PICK(EXTRA));
		e->extra = e->extra.len ? e->extra : FW_STR_NONE;
		e->published_ms = pick(4) ? NOW - (int64_t)pick(1000) * FW_HOUR_MS : FW_NO_DATE;
	}
	entries_special();
	for (int i = 0; i <= 10; i++)
		row[i].content_type = FW_TEXT_HTML;
}

static void entries_put(struct fw_store *st)
{
	for (int f = 0; f < FEEDS; f++) {
		struct fw_feed_new new = {
			.url = fw_str(FEED[f].url), .folder = fw_str(FEED[f].folder), .due_at_ms = NOW};
		struct fw_feed feed = {.title = fw_str(FEED[f].title), .language = fw_str(FEED[f].language)};
		struct fw_entry_row *e = calloc(ENTRIES, sizeof(*e));
		struct fw_outcome o = {.feed = &feed, .groups = FW_GROUP_META, .entries = e};

		ck_assert_ptr_nonnull(e);
		OK(fw_store_subscribe(st, &new, 1, &err));
		feed_id[f] = o.feed_id = feed.id = new.id;
		o.visit = (struct fw_visit){.feed_id = new.id, .kind = FW_VISIT_PUSHED, .at_ms = NOW + f, .slot = -1};
		for (int i = 0; i < ENTRIES; i++) {
			if (row[i].feed_id == f)
				e[o.entry_n++] = row[i];
		}
		OK(fw_store_push(st, &o, 1, &err));
		free(e);
	}
}

static int row_of(const struct fw_entry_row *e)
{
	return (int)strtol(fw_arena_dup(&A, e->guid.p + 1, e->guid.len - 1), NULL, 10);
}

static int seen_row(void *ctx, const struct fw_entry_row *e)
{
	struct fw_entry_row *r = &row[row_of(e)];

	(void)ctx;
	r->id = e->id;
	r->seen_ms = e->seen_ms;
	return 0;
}

static struct fw_store *store_filled(int i)
{
	struct store *st = drv_fresh(i);
	struct fw_store *front = (struct fw_store *)st;

	entries_make();
	entries_put(front);
	index_all(front);
	OK(fw_store_entry_list(front, &(struct fw_entry_query){.limit = 0}, seen_row, NULL, &err));
	return front;
}

/* ---- the truth ------------------------------------------------------------------------------- */

struct listed {
	int at[ENTRIES];
	int64_t date_ms[ENTRIES];
	size_t n;
};

static int listed_add(void *ctx, const struct fw_entry_row *e)
{
	struct listed *l = ctx;

	ck_assert_uint_lt(l->n, ENTRIES);
	l->date_ms[l->n] = fw_store_entry_date(e, e->seen_ms);
	l->at[l->n++] = row_of(e);
	return 0;
}

static bool oldest_first;

static int row_order(const void *a, const void *b)
{
	const struct fw_entry_row *x = &row[*(const int *)a], *y = &row[*(const int *)b];
	int64_t x_ms = fw_store_entry_date(x, x->seen_ms), y_ms = fw_store_entry_date(y, y->seen_ms);

	if (oldest_first)
		return x->id < y->id ? -1 : x->id > y->id;
	return x_ms != y_ms ? (x_ms > y_ms ? -1 : 1) : x->id > y->id ? -1 : x->id < y->id;
}

/*
 * An entry with its folded words, for all queries of a case: making them costs far more than a
 * query. An entry that changes does so before the case's first query.
 */
static struct query_scratch *scratch_of(int i)
{
	static struct query_subject subject[ENTRIES];
	int64_t f = row[i].feed_id;

	if (scratches[i])
		return scratches[i];
	subject[i] = (struct query_subject){.entry = &row[i],
		.feed_id = feed_id[f],
		.feed_url = fw_str(FEED[f].url),
		.feed_title = fw_str(FEED[f].title),
		.feed_folder = fw_str(FEED[f].folder),
		.feed_language = fw_str(FEED[f].language)};
	scratches[i] = query_scratch_create();
	ck_assert_ptr_nonnull(scratches[i]);
	query_scratch_set(scratches[i], &subject[i]);
	return scratches[i];
}

static void truth(const char *text, struct listed *out)
{
	struct query_node *tree;

	out->n = 0;
	OK(query_parse(&A, fw_str(text), fw_now_ms(), &tree, &err));
	for (int i = 0; i < ENTRIES; i++) {
		if (query_matches(tree, scratch_of(i)))
			out->at[out->n++] = i;
		ck_assert(!query_scratch_failed(scratch_of(i)));
	}
	qsort(out->at, out->n, sizeof(*out->at), row_order);
}

static void same(const struct listed *got, const struct listed *want, const char *how, const char *text)
{
	for (size_t i = 0; i < FW_MAX(got->n, want->n); i++)
		ck_assert_msg(i < got->n && i < want->n && got->at[i] == want->at[i],
			"%s: %s: %zu entries, not %zu; number %zu is %d, not %d", how, text, got->n, want->n, i,
			i < got->n ? got->at[i] : -1, i < want->n ? want->at[i] : -1);
}

/* The whole list, in both orders; and page by page. */
static void ask(struct fw_store *st, const char *text)
{
	struct listed want, got = {.n = 0}, pages = {.n = 0};
	struct fw_entry_query q = {.search = fw_str(text)};

	oldest_first = false;
	truth(text, &want);
	OK(fw_store_entry_list(st, &q, listed_add, &got, &err));
	same(&got, &want, "newest first", text);
	q.limit = 1 + pick(want.n / 3 + 3);
	do {
		size_t before = pages.n;

		OK(fw_store_entry_list(st, &q, listed_add, &pages, &err));
		ck_assert_msg(pages.n - before <= q.limit, "%s: more than the limit", text);
		if (pages.n - before < q.limit)
			break;
		q.behind_id = row[pages.at[pages.n - 1]].id;
		q.behind_date_ms = pages.date_ms[pages.n - 1];
	} while (true);
	same(&pages, &want, "page by page", text);
	oldest_first = true;
	truth(text, &want);
	got.n = 0;
	OK(fw_store_entry_list(
		st, &(struct fw_entry_query){.search = fw_str(text), .oldest_first = true}, listed_add, &got, &err));
	same(&got, &want, "oldest first", text);
}

/* ---- ranks and snippets ---------------------------------------------------------------------- */

static int64_t score[ENTRIES];

static int score_order(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	if (score[x] != score[y])
		return score[x] > score[y] ? -1 : 1;
	return row[x].id > row[y].id ? -1 : 1;
}

static void truth_ranked(const char *text, struct listed *out)
{
	struct query_node *tree;

	oldest_first = false;
	truth(text, out);
	OK(query_parse(&A, fw_str(text), fw_now_ms(), &tree, &err));
	for (size_t i = 0; i < out->n; i++)
		score[out->at[i]] = query_score(tree, scratch_of(out->at[i]), NULL);
	qsort(out->at, out->n, sizeof(*out->at), score_order);
}

struct ranked {
	struct listed list;
	const char *text; /* the query */
};

static int ranked_add(void *ctx, const struct fw_entry_row *e)
{
	struct ranked *r = ctx;
	const struct fw_entry_row *put = &row[row_of(e)];
	struct snippet_texts texts = {.title = put->title, .summary = put->summary, .content = put->content};
	struct fw_buf want = FW_BUF_INIT(0);
	struct query_node *tree;

	OK(query_parse(&A, fw_str(r->text), fw_now_ms(), &tree, &err));
	if (put->content_type != FW_TEXT_PLAIN)
		texts.content = fw_html_text(&A, put->content);
	ck_assert_int_eq(query_snippet(&want, tree, &texts), 0);
	ck_assert_msg(
		fw_str_eq(e->snippet, fw_buf_str(&want)), "%s: %.*s, not %s", r->text, FW_STR_ARG(e->snippet), want.p);
	ck_assert_ptr_null(e->content.p);
	fw_buf_finish(&want);
	return listed_add(&r->list, e);
}

/* Best first: a part of the list; with snippets. */
static void ask_ranked(struct fw_store *st, const char *text)
{
	struct listed want;
	struct ranked got = {.text = text};
	struct fw_entry_query q = {.search = fw_str(text), .by_relevance = true, .snippet = true};

	truth_ranked(text, &want);
	q.skip_n = pick(2) ? 0 : pick(want.n + 2);
	q.limit = pick(2) && want.n < 40 ? 0 : 1 + pick(15);
	OK(fw_store_entry_list(st, &q, ranked_add, &got, &err));
	want.n = want.n > q.skip_n ? want.n - q.skip_n : 0;
	want.n = q.limit ? FW_MIN(want.n, q.limit) : want.n;
	memmove(want.at, want.at + FW_MIN(q.skip_n, (size_t)ENTRIES - 1), want.n * sizeof(*want.at));
	same(&got.list, &want, "best first", text);
}

/* ---- cases ----------------------------------------------------------------------------------- */

static int first_id(void *ctx, const struct fw_entry_row *e)
{
	*(int64_t *)ctx = e->id;
	return 0;
}

static const char *const QUERY[] = {
	"rain",
	"RAIN",
	"\"long night\"",
	"long night",
	"rain OR comet",
	"rain -comet",
	"-rain",
	"NOT rain",
	"lin*",
	"lin* -linux",
	"\"long nig\"*",
	"(rain OR comet) (linux OR kernel)",
	"rain (comet OR -linux)",
	"-(rain OR comet)",
	"-(rain comet)",
	"-(-rain)",
	"rain AND comet AND linux",
	"rain comet OR linux kernel",
	"naive",
	"naïve",
	"ete",
	"Été",
	"apfel",
	"Äpfel",
	"strasse",
	"東京",
	"東京都",
	"京都",
	"\"東京\"",
	"東*",
	"京",
	"すし",
	"ガス",
	"カス",
	"мир",
	"МИР",
	"κοσμος",
	"한글",
	"कीमत",
	"שלום",
	"שָׁלוֹם",
	"של*",
	"مرحبا",
	"مَرْحَبًا",
	"title:שלום",
	"\"שלום مرحبا\"",
	"don't",
	"\"don t\"",
	"AT&T",
	"CVE-2026-1",
	"\"cve 2026\"",
	"1,000",
	"x86",
	"release",
	"release*",
	"a",
	"the",
	"viet",
	"fish",
	"ﬁsh",
	"nothing",
	"nothing OR rain",
	"nothing rain",
	"rain -nothing",
	/* where indexes differ */
	"\"crimson velvet\"",
	"crimson velvet",
	"\"golden harvest\"",
	"\"harbour lights\"",
	"\"often harbour\"",
	"\"often often\"",
	"\"amber lantern\"",
	"\"lantern glows\"",
	"\"three amber\"",
	"\"often two lights\"",
	"\"two lights\"",
	"\"one two three\"",
	"\"amber lan\"*",
	"-\"amber lantern\" amber",
	"-\"crimson velvet\" golden",
	"wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww",
	"wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww*",
	"wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww",
	"wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww*",
	"-wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww before",
	"\"before wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww after\"",
	"hidden",
	"secret",
	"visible",
	"script",
	"nbsp",
	"\"NOT a title\"",
	"title:not",
	"\"OR\"",
	/* fields */
	"title:rain",
	"title:\"long night\"",
	"title:lin*",
	"title:crimson",
	"title:velvet",
	"-title:rain rain",
	"title:京都",
	"title:rain OR title:comet",
	"title:rain comet",
	"title:rain OR comet",
	"author:ada",
	"author:\"ada lovelace\"",
	"author:lov*",
	"author:müller",
	"author:muller",
	"author:太郎",
	"author:lovelace rain",
	"-author:ada",
	"author:percent",
	"tag:linux",
	"tag:\"open source\"",
	"tag:open",
	"tag:open*",
	"tag:ökologie",
	"tag:LINUX rain",
	"-tag:linux",
	"url:example.org",
	"url:/post/",
	"url:?q=1",
	"url:EXAMPLE",
	"site:example.org",
	"site:blog.example.org",
	"site:org",
	"site:.example.org.",
	"-site:example.org",
	"feed:first",
	"feed:two.example",
	"feed:über",
	"feed:Über",
	"feed:100%",
	"feed:\"100% five\"",
	"feed:_",
	"-feed:first",
	"feed:first OR feed:second",
	"feed:1",
	"feed:1 OR feed:3",
	"feed:1 feed:2",
	"feed:1 rain",
	"feed:1 OR rain",
	"-feed:1",
	"feed:999",
	"feed:999 rain",
	"feed:\"1\"",
	"(feed:1 OR feed:2) -rain",
	"(feed:1 OR feed:2) folder:News",
	"folder:News",
	"folder:news",
	"folder:News/Tech",
	"folder:News/Tech/",
	"folder:/News",
	"folder:News rain",
	"folder:News -folder:News/Tech",
	"-folder:News",
	"folder:News OR rain",
	"folder:\"News/Tech/Deep_1\"",
	"folder:News/Tech/Deep%",
	"folder:New",
	"folder:News feed:first",
	"folder:News (rain OR comet) -linux",
	"lang:de",
	"lang:DE",
	"lang:de-AT",
	"lang:en",
	"lang:ja",
	"-lang:de",
	"lang:de rain",
	"has:audio",
	"has:video",
	"has:image",
	"has:attachment",
	"has:author",
	"has:tag",
	"has:link",
	"has:content",
	"-has:content",
	"-has:author",
	"has:audio rain",
	"has:audio OR has:video",
	"since:1h",
	"until:1h",
	"since:2001-01-01",
	"until:2001-01-01",
	"since:1h rain",
	"-until:1h",
	"since:1h OR rain",
	"since:1h until:2001-01-01",
	"since:2001-01-01 since:1h folder:News",
	/* many at once */
	"title:rain folder:News tag:linux",
	"(title:rain OR author:ada OR tag:film) -comet",
	"(title:CVE* OR \"remote code\") -tag:film",
	"rain OR author:ada",
	"rain OR -comet",
	"(rain -comet) OR (comet -rain)",
	"((((rain))))",
	"-(title:rain OR -comet) linux",
	"rain rain rain",
	"rain -rain",
	"rain OR -rain",
	"linux kernel OR sqlite wal* OR \"remote code\" -release* (lang:de OR lang:en)",
	"  rain  ",
	"",
};

START_TEST(written)
{
	struct fw_store *st = store_filled(_i);

	for (size_t i = 0; i < FW_N(QUERY); i++) {
		ask(st, QUERY[i]);
		ask_ranked(st, QUERY[i]);
	}
	drv_end(store_of(st));
}
END_TEST

static void query_write(struct fw_buf *b, int depth)
{
	static const char *const FIELD[] = {"title:", "author:", "tag:", "title:"};
	static const char *const OTHER[] = {"folder:News", "folder:News/Tech", "feed:1", "feed:3", "feed:first",
		"lang:de", "lang:en", "site:example.org", "url:example", "has:audio", "has:content", "has:author",
		"has:tag", "since:1h", "until:1h", "author:ada", "tag:linux"};
	size_t what = pick(depth > 3 ? 8 : 14), n = 2 + pick(2);

	fw_buf_adds(b, pick(5) ? "" : "-");
	if (what >= 8) {
		fw_buf_addc(b, '(');
		for (size_t i = 0; i < n; i++) {
			fw_buf_adds(b, !i ? "" : what < 11 ? " OR " : " ");
			query_write(b, depth + 1);
		}
		fw_buf_addc(b, ')');
	} else if (what == 7) {
		fw_buf_adds(b, PICK(OTHER));
	} else if (what == 6) {
		fw_buf_addf(b, "\"%s %s\"%s", PICK(WORD), WORD[pick(FW_N(WORD) - 1)], pick(3) ? "" : "*");
	} else {
		fw_buf_adds(b, pick(4) ? "" : PICK(FIELD));
		fw_buf_addf(b, "%s%s", WORD[pick(FW_N(WORD) - 1)], pick(4) ? "" : "*");
	}
}

START_TEST(random_ones)
{
	struct fw_store *st = store_filled(_i);
	struct fw_buf b = FW_BUF_INIT(0);

	for (int i = 0; i < (SLOW_BUILD ? 75 : 200); i++) {
		fw_buf_reset(&b);
		query_write(&b, 0);
		fw_buf_addc(&b, '\0');
		ck_assert_int_eq(b.rc, 0);
		ask(st, b.p);
		if (i % 4 == 0)
			ask_ranked(st, b.p);
	}
	fw_buf_finish(&b);
	drv_end(store_of(st));
}
END_TEST

/* Only the newest matches are ranked, whatever the limit. */
START_TEST(newest_ranked)
{
	enum { N = FW_RANKED_MAX + 30, BEST = 29 };
	struct fw_store *st = (struct fw_store *)drv_fresh(_i);
	struct fw_entry_row *e = calloc(N, sizeof(*e));
	struct fw_feed feed = {.url = FW_STR("https://a.example/"), .due_at_ms = NOW, .id = 1};
	struct fw_load l = {.feed = &feed, .feed_n = 1, .entry = e, .entry_n = N};
	int64_t n = 0;

	for (int i = 0; i < N; i++) {
		e[i] = entry(i, 1, "title", i <= BEST ? "rain rain rain" : "one rain among other words");
		e[i].id = i + 1;
		e[i].feed_id = 1;
		e[i].seen_ms = e[i].changed_ms = e[i].published_ms = NOW + i;
		e[i].revision = 1;
	}
	OK(fw_store_load(st, &l, &err));
	index_all(st);
	ck_assert_int_eq(query_count(st, (struct fw_entry_query){.search = FW_STR("rain"), .by_relevance = true}),
		FW_RANKED_MAX);
	ck_assert_int_eq(
		query_count(st, (struct fw_entry_query){.search = FW_STR("rain"), .by_relevance = true, .limit = 50}),
		50);
	ck_assert_int_eq(query_count(st,
				 (struct fw_entry_query){
					 .search = FW_STR("rain"), .by_relevance = true, .skip_n = FW_RANKED_MAX - 3}),
		3);
	/* the best ones are older than the others: none of them is among the newest */
	OK(fw_store_entry_list(st, &(struct fw_entry_query){.search = FW_STR("rain"), .by_relevance = true, .limit = 1},
		first_id, &n, &err));
	ck_assert_int_eq(n, N);
	OK(fw_store_entry_list(st,
		&(struct fw_entry_query){
			.search = FW_STR("rain"), .until_ms = NOW + FW_RANKED_MAX, .by_relevance = true, .limit = 1},
		first_id, &n, &err));
	ck_assert_int_eq(n, BEST + 1);
	free(e);
	drv_end(store_of(st));
}
END_TEST

static int row_is_of(void *ctx, const struct fw_entry_row *e)
{
	const int64_t *ids = ctx;

	ck_assert(e->feed_id == ids[0] || e->feed_id == ids[1]);
	return 0;
}

/* Entries of several feeds. */
START_TEST(several_feeds)
{
	struct fw_store *st = store_filled(_i);
	int64_t two[3] = {feed_id[1], feed_id[4], 999};
	int64_t n[2] = {query_count(st, (struct fw_entry_query){.feed_id = two[0]}),
		query_count(st, (struct fw_entry_query){.feed_id = two[1]})};

	OK(fw_store_entry_list(st, &(struct fw_entry_query){.feed_ids = two, .feed_n = 2}, row_is_of, two, &err));
	for (size_t k = 2; k <= 3; k++)
		ck_assert_int_eq(query_count(st, (struct fw_entry_query){.feed_ids = two, .feed_n = k}), n[0] + n[1]);
	ck_assert_int_eq(query_count(st, (struct fw_entry_query){.feed_ids = two, .feed_n = 1}), n[0]);
	ck_assert_int_eq(query_count(st, (struct fw_entry_query){.feed_ids = two + 2, .feed_n = 1}), 0);
	ck_assert_int_eq(
		query_count(st, (struct fw_entry_query){.feed_ids = two, .feed_n = 2, .feed_id = two[1]}), n[1]);
	ck_assert_int_eq(query_count(st,
				 (struct fw_entry_query){
					 .feed_ids = two, .feed_n = 2, .folder = FW_STR("News"), .oldest_first = true}),
		n[0]);
	ck_assert_int_eq(
		query_count(st, (struct fw_entry_query){.feed_ids = two, .feed_n = 2, .search = FW_STR("rain")}),
		query_count(st, (struct fw_entry_query){.search = FW_STR("rain (feed:2 OR feed:5)")}));
	drv_end(store_of(st));
}
END_TEST

/* An entry with more words than PostgreSQL's index has room for. */
START_TEST(huge)
{
	struct fw_store *st = store_filled(_i);
	struct fw_entry_row *e = &row[11];
	struct fw_feed none = {.id = feed_id[0]};
	struct fw_outcome o = {.feed_id = feed_id[e->feed_id],
		.feed = &none,
		.entries = e,
		.entry_n = 1,
		.visit = {.feed_id = feed_id[e->feed_id], .kind = FW_VISIT_PUSHED, .at_ms = NOW + 100, .slot = -1}};
	struct fw_buf b = FW_BUF_INIT(0);

	for (int i = 0; b.len < 1000000; i++)
		fw_buf_addf(&b, "longishword%dx ", i);
	fw_buf_adds(&b, "<b>lastword</b> ofall");
	e->content = fw_buf_str(&b);
	e->content_type = FW_TEXT_HTML;
	e->hash = 2;
	OK(fw_store_push(st, &o, 1, &err));
	ck_assert_int_eq(o.visit.changed_n, 1);
	index_all(st);
	ask(st, "lastword");
	ask(st, "lastwor*");
	ask(st, "\"lastword ofall\"");
	ask(st, "-lastword rain");
	ask(st, "rain -lastword");
	ask(st, "longishword7x OR rain");
	ask(st, "rain");
	fw_buf_finish(&b);
	drv_end(store_of(st));
}
END_TEST

/* Members of the query beside the search. */
START_TEST(members)
{
	struct fw_store *st = store_filled(_i);

	ck_assert_int_eq(query_count(st, (struct fw_entry_query){.folder = FW_STR("News")}),
		query_count(st, (struct fw_entry_query){.search = FW_STR("folder:News")}));
	ck_assert_int_eq(
		query_count(st, (struct fw_entry_query){.folder = FW_STR("/News/Tech/"), .search = FW_STR("rain")}),
		query_count(st, (struct fw_entry_query){.search = FW_STR("folder:News/Tech rain")}));
	ck_assert_int_eq(query_count(st, (struct fw_entry_query){.folder = FW_STR("Nowhere")}), 0);
	ck_assert_int_eq(query_count(st, (struct fw_entry_query){.folder = FW_STR("")}), ENTRIES);
	ck_assert_int_eq(query_count(st, (struct fw_entry_query){.until_ms = 1}), 0);
	ck_assert_int_eq(query_count(st, (struct fw_entry_query){.until_ms = fw_now_ms() + FW_DAY_MS}), ENTRIES);
	ck_assert_int_eq(
		query_count(st, (struct fw_entry_query){.feed_id = feed_id[0], .search = FW_STR("feed:2")}), 0);
	ck_assert_int_eq(
		query_count(
			st, (struct fw_entry_query){.feed_id = feed_id[0], .folder = FW_STR("News"), .until_ms = 1}),
		0);
	ck_assert_int_eq(query_count(st, (struct fw_entry_query){.feed_id = feed_id[1], .folder = FW_STR("News")}),
		query_count(st, (struct fw_entry_query){.feed_id = feed_id[1]}));
	ck_assert_int_eq(query_count(st, (struct fw_entry_query){.feed_id = feed_id[2], .folder = FW_STR("News")}), 0);
	drv_end(store_of(st));
}
END_TEST

static int none(void *ctx, const struct fw_entry_row *e)
{
	(void)ctx;
	(void)e;
	return 0;
}

/* What is not a query is refused, with the place and the remedy. */
START_TEST(refused)
{
	static const struct {
		const char *query, *words;
	} bad[] = {{"rain AND", "at 6: "}, {"\"rain", "at 1: "}, {"rain titel:x", "did you mean title:"},
		{"a (b", "at 3: "}, {"has:music", "has:music is unknown"}};
	struct fw_store *st = (struct fw_store *)drv_fresh(_i);

	for (size_t i = 0; i < FW_N(bad); i++) {
		err.text[0] = '\0';
		ck_assert_int_eq(fw_store_entry_list(st, &(struct fw_entry_query){.search = fw_str(bad[i].query)}, none,
					 NULL, &err),
			FW_EINVAL);
		ck_assert_msg(strstr(err.text, bad[i].words), "%s: %s", bad[i].query, err.text);
	}
	drv_end(store_of(st));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("search");
	TCase *t = tcase_create("every driver");
	const TTest *const every[] = {written, random_ones, newest_ranked, several_feeds, huge, members, refused};

	stores_begin();
	tcase_set_timeout(t, 300);
	tcase_add_checked_fixture(t, setup, teardown);
	for (size_t i = 0; i < FW_N(every); i++)
		tcase_add_loop_test(t, every[i], 0, under_test_n);
	suite_add_tcase(s, t);
	return run_suite(s);
}
