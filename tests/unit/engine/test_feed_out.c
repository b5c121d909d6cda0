/* SPDX-License-Identifier: ISC */
/*
 * Entries that go out as feeds: each odd character, URL and id; and the round trip: what the parser
 * reads from a feed that was written is what was stored, for all cases and corpora.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "api/feed_out.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/utf8.h"
#include "base/xml.h"
#include "engine/out/feed_item.h"
#include "engine/rows.h"
#include "feedwheel/engine.h"
#include "../parse/documents.h"
#include "../../suite.h"

#define NOW (INT64_C(1790000000) * 1000)
#define ENTRIES_MAX 1000 /* of a document; some cases are about its limits */
#define KNOWN_ID "urn:uuid:d645e071-4c0e-5f5e-bfa0-68e33088cfe8"
#define FEED_URL FW_STR("https://feeds.example/a/feed.xml")

static const struct fw_feed_out_head HEAD = {.id = FW_STR("https://out.example/feeds/folder/News.atom"),
	.title = FW_STR("News & <more>"),
	.self_url = FW_STR("https://out.example/feeds/News.atom")};

static struct fw_entry_row row_of(struct fw_str title)
{
	return (struct fw_entry_row){.id = 1,
		.feed_id = 1,
		.guid = FW_STR("https://a.example/1"),
		.title = title,
		.published_ms = FW_NO_DATE,
		.updated_ms = FW_NO_DATE,
		.seen_ms = NOW,
		.changed_ms = NOW,
		.revision = 1,
		.feed_url = FEED_URL,
		.feed_title = FW_STR("Feed")};
}

static struct fw_buf written(
	enum fw_feed_out_format format, const struct fw_feed_out_head *head, const struct fw_entry_row *row, size_t n)
{
	struct fw_view_work work = {.cache = NULL};
	struct fw_feed_out *f = fw_feed_out_create(format, &work);
	struct fw_buf out = FW_BUF_INIT(0);
	struct fw_err err;

	for (size_t i = 0; i < n; i++)
		ck_assert_int_eq(fw_feed_out_add(f, &row[i], &err), 0);
	ck_assert_int_eq(fw_feed_out_end(f, head, &out, &err), 0);
	fw_feed_out_destroy(f);
	return out;
}

static struct fw_document *parsed(struct fw_str bytes)
{
	struct fw_parse_options o = {.url = FW_STR("https://out.example/feeds/News.atom")};
	struct fw_document *d;
	struct fw_err err;

	ck_assert_msg(fw_parse(bytes.p, bytes.len, &o, &d, &err) == 0, "%s: %.300s", err.text, bytes.p);
	return d;
}

static bool has(const struct fw_buf *b, const char *text)
{
	return fw_str_find(fw_buf_str(b), fw_str(text)) != NULL;
}

/* The document of one entry has these texts. */
static void check_one(enum fw_feed_out_format format, const struct fw_entry_row *row, const char *const *text)
{
	struct fw_buf out = written(format, &HEAD, row, 1);

	for (; *text; text++)
		ck_assert_msg((*text)[0] == '!' ? !has(&out, *text + 1) : has(&out, *text), "'%s' in %s", *text, out.p);
	fw_document_free(parsed(fw_buf_str(&out)));
	fw_buf_finish(&out);
}

#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- the round trip -------------------------------------------------------------------------- */

/* What XML can carry of a text; RSS as HTML collapses white space. */
static struct fw_str carried(struct fw_arena *a, struct fw_str s)
{
	struct fw_buf b = FW_BUF_INIT(0);
	size_t n;

	for (size_t i = 0; i < s.len; i += n) {
		uint32_t cp = fw_utf8_get(s.p + i, s.len - i, &n);

		if (n == 1 && fw_is_space(s.p[i])) {
			if (b.len && b.p[b.len - 1] != ' ')
				fw_buf_addc(&b, ' ');
		} else if (fw_xml_is_char(cp) && !(cp == 0xfffd && n == 1)) {
			fw_buf_add(&b, s.p + i, n);
		}
	}
	s = fw_arena_str(a, fw_str_trim(fw_buf_str(&b)));
	fw_buf_finish(&b);
	return s;
}

/* The text of HTML that is only text. */
static struct fw_str html_text(struct fw_arena *a, struct fw_str s)
{
	static const char *const NAME[] = {"&amp;", "&lt;", "&gt;", "&quot;", "<br>"};
	struct fw_buf b = FW_BUF_INIT(0);

	while (s.len) {
		size_t k = 0;

		while (k < FW_N(NAME) && !fw_str_starts(s, fw_str(NAME[k])))
			k++;
		if (k < 4 || k == FW_N(NAME))
			fw_buf_addc(&b, k < 4 ? "&<>\""[k] : s.p[0]);
		s = fw_str_sub(s, k < FW_N(NAME) ? strlen(NAME[k]) : 1, s.len);
	}
	s = fw_arena_str(a, fw_buf_str(&b));
	fw_buf_finish(&b);
	return s;
}

/* The document of the round trip, for messages. */
static const char *at_file, *at_format;
static size_t entry_n;

/* An address as the format has it: RSS has URIs. */
static struct fw_str address(struct fw_arena *a, struct fw_str iri, bool rss)
{
	struct fw_buf b = FW_BUF_INIT(0);

	if (!rss || !iri.len)
		return iri;
	feed_uri(&b, iri);
	for (size_t i = 0; i < b.len; i++)
		ck_assert(b.p[i] > ' ' && b.p[i] < 0x7f);
	iri = fw_arena_str(a, fw_buf_str(&b));
	fw_buf_finish(&b);
	return iri;
}

static void same(const char *what, struct fw_arena *a, struct fw_str want, struct fw_str got)
{
	want = carried(a, want);
	got = carried(a, got);
	ck_assert_msg(fw_str_eq(want, got), "%s as %s, %s: want '%.*s', got '%.*s'", at_file, at_format, what,
		FW_STR_ARG(fw_str_sub(want, 0, 500)), FW_STR_ARG(fw_str_sub(got, 0, 500)));
}

static void same_date(const char *what, int64_t want, int64_t got, int64_t unit)
{
	ck_assert_msg(got != FW_NO_DATE && want / unit == got / unit, "%s as %s, %s: want %lld, got %lld", at_file,
		at_format, what, (long long)want, (long long)got);
}

/* The parser sees when a name is an address of mail, or a URL, which it may drop. */
static struct fw_str person_text(const struct fw_person *p, const struct fw_person *want)
{
	if (fw_str_eq(want->name, want->url))
		return want->name;
	return !p ? FW_STR_NONE : p->name.len ? p->name : p->email.len ? p->email : p->url;
}

static void same_lists(struct fw_arena *a, const struct feed_item *i, const struct fw_entry *e, bool rss)
{
	const struct fw_person *p = e->authors;
	const struct fw_category *c = e->categories;
	const struct fw_attachment *t = e->attachments;

	for (const struct fw_person *x = i->authors; x; x = x->next, p = p ? p->next : NULL)
		same("author", a, x->name, person_text(p, x));
	for (const struct fw_category *x = i->categories; x; x = x->next, c = c ? c->next : NULL)
		same("category", a, x->term, c ? c->term : FW_STR_NONE);
	for (const struct fw_attachment *x = i->attachments; x && !(rss && x != i->attachments);
		x = x->next, t = t ? t->next : NULL) {
		same("attachment", a, address(a, x->url, rss), t ? t->url : FW_STR_NONE);
		if (x->mime_type.len)
			same("its type", a, x->mime_type, t ? t->mime_type : FW_STR_NONE);
	}
	ck_assert(!p && !c && !t);
}

/*
 * The parser takes a lone description of RSS for a summary or a content, by its look, and a lone
 * content_text for a content.
 */
static void same_content(
	struct fw_arena *a, const struct fw_entry_row *r, const struct feed_item *i, const struct fw_entry *e)
{
	struct fw_view_work work = {.cache = NULL};
	struct fw_buf html = FW_BUF_INIT(0);
	struct fw_str only = e->content.len ? e->content : e->summary;
	struct fw_err err;

	if (r->content_type == FW_TEXT_HTML && r->content.len)
		ck_assert_int_eq(fw_entry_html(r, &work, &html, &err), 0);
	if (!i->summary.len + !i->text.len + !html.len >= 2) { /* one text */
		if (e->content_type == FW_TEXT_HTML && !html.len)
			only = html_text(a, only);
		same("the text", a, html.len ? fw_buf_str(&html) : i->text.len ? i->text : i->summary, only);
	} else {
		same("summary", a, i->summary, e->summary);
		same("content", a, html.len ? fw_buf_str(&html) : i->text,
			e->content_type == FW_TEXT_HTML && !html.len ? html_text(a, e->content) : e->content);
	}
	fw_buf_finish(&html);
}

static void same_entry(enum fw_feed_out_format format, const struct fw_entry_row *r, const struct fw_entry *e)
{
	bool rss = format == FW_FEED_OUT_RSS;
	struct feed_item i;
	struct fw_arena a;

	fw_arena_init(&a, 0);
	feed_item_read(r, &a, &i);
	if (i.url.len || !fw_str_eq(e->url, i.id)) /* an id that is a URL serves as one */
		same("url", &a, address(&a, i.url, rss), e->url);
	if (!rss || i.title.len || !fw_str_eq(e->title, FW_STR("-")))
		same("title", &a, i.title, e->title);
	if (i.published_ms != FW_NO_DATE)
		same_date("published", i.published_ms, e->published_ms, rss ? 1000 : 1);
	if (i.updated_known)
		same_date("updated", i.updated_ms, e->updated_ms, 1);
	same("language", &a, i.language, e->language);
	same_lists(&a, &i, e, rss);
	same_content(&a, r, &i, e);
	fw_arena_finish(&a);
}

/* The limits of the parser, and text that was broken before, are no problems of ours. */
static bool is_clean(const struct fw_document *d)
{
	return !d->malformed &&
		(!d->problem_n || fw_str_starts(fw_str(d->problems->what), FW_STR("more than")) ||
			fw_str_starts(fw_str(d->problems->what), FW_STR("double-encoded")));
}

static void round_trip_as(enum fw_feed_out_format format, const struct fw_entry_row *row, size_t n)
{
	struct fw_buf out = written(format, &HEAD, row, n);
	struct fw_document *back = parsed(fw_buf_str(&out));
	const struct fw_entry *e = back->entries;

	at_format = fw_feed_out_extension(format);
	ck_assert_msg(is_clean(back), "%s as %s: %s", at_file, at_format, back->problems->what);
	ck_assert_msg(back->entry_n == n, "%s as %s: %zu entries of %zu", at_file, at_format, back->entry_n, n);
	ck_assert(fw_str_eq(back->title, HEAD.title));
	ck_assert(fw_str_eq(back->feed_url, HEAD.self_url));
	/* the parser repairs this, and so reads other text */
	if (back->problem_n && fw_str_starts(fw_str(back->problems->what), FW_STR("double-encoded")))
		e = NULL;
	for (size_t i = 0; e; e = e->next)
		same_entry(format, &row[i++], e);
	fw_document_free(back);
	fw_buf_finish(&out);
}

static void round_trip(const char *name, struct fw_str bytes)
{
	struct fw_parse_options o = {.url = FEED_URL};
	struct fw_entry_row *row;
	struct fw_document *d;
	struct fw_arena a;
	size_t n;

	if (fw_parse(bytes.p, bytes.len, &o, &d, NULL))
		return; /* no feed */
	at_file = name;
	fw_arena_init(&a, 0);
	row = rows_from_document(&a, 1, d, false, &n);
	n = FW_MIN(n, (size_t)ENTRIES_MAX);
	for (size_t i = 0; i < n; i++) {
		row[i].id = (int64_t)i + 1;
		row[i].seen_ms = row[i].changed_ms = NOW;
		row[i].feed_title = d->title;
		row[i].feed_url = FEED_URL;
	}
	for (int format = 0; format < FW_FEED_OUT_N; format++)
		round_trip_as((enum fw_feed_out_format)format, row, n);
	entry_n += n;
	fw_arena_finish(&a);
	fw_document_free(d);
}

START_TEST(cases_and_corpora)
{
	ck_assert_int_gt(each_of("tests/cases", round_trip, 1, SIZE_MAX), 100);
	ck_assert_int_gt(each_of("tests/corpus", round_trip, 1, SIZE_MAX), 0);
	(void)each_of("../shared/corpus/open", round_trip, 1, SIZE_MAX);
	printf("# %zu entries\n", entry_n);
}
END_TEST

/* ---- one entry ------------------------------------------------------------------------------- */

static void check_all(const struct fw_entry_row *row, const char *const *xml, const char *const *json)
{
	check_one(FW_FEED_OUT_ATOM, row, xml);
	check_one(FW_FEED_OUT_RSS, row, xml);
	check_one(FW_FEED_OUT_JSON, row, json);
}

START_TEST(odd_characters)
{
	char every[2 * 0x20 + 40];
	struct fw_entry_row row;
	size_t n = 0;

	/* all controls, DEL, C1, bytes that are not UTF-8, surrogates, the end of CDATA */
	for (char c = 0; c < 0x20; c++)
		every[n++] = c;
	memcpy(every + n, "\x7f\xc2\x85\xff\xc0\x80\xed\xa0\x80\xef\xbf\xbe\xef\xbf\xbf]]>&<\"'", 23);
	row = row_of((struct fw_str){every, n + 23});
	row.author = row.summary = row.title;
	row.content = row.title;
	row.content_type = FW_TEXT_PLAIN;
	check_all(&row, TEXTS("]]&gt;&amp;", "&#127;&#133;", "!\x01", "!\x1f", "!&#1;", "!\xff", "!\xed\xa0"),
		TEXTS("\\u0000\\u0001", "]]>&<\\\""));
	row.content_type = FW_TEXT_HTML;
	check_all(&row, TEXTS("!\x01", "!\x1f", "!\xff"), TEXTS("content_html"));
}
END_TEST

START_TEST(empty_texts)
{
	struct fw_entry_row row = row_of(FW_STR_NONE);

	check_one(FW_FEED_OUT_ATOM, &row,
		TEXTS("<title type=\"text\"></title>", "<content type=\"text\"></content>",
			"<updated>2026-09-21T14:13:20Z</updated>", "!<published>"));
	check_one(FW_FEED_OUT_RSS, &row,
		TEXTS("<title>-</title>", "!<description></", "<pubDate>Mon, 21 Sep 2026 14:13:20 GMT</pubDate>"));
	check_one(FW_FEED_OUT_JSON, &row, TEXTS("\"content_text\":\"\"", "!\"title\":\"\""));
	row.content = FW_STR("<b>x</b>");
	row.content_type = FW_TEXT_HTML;
	check_one(FW_FEED_OUT_RSS, &row, TEXTS("<description>&lt;b&gt;x", "!content:encoded>", "!<title>-"));
	row.title = FW_STR("a < b & c <i> &amp; &#1;");
	check_one(FW_FEED_OUT_RSS, &row,
		TEXTS("<title>a &lt; b &amp; c &amp;lt;i&gt; &amp;amp;amp; &amp;amp;#1;</title>", "<content:encoded>"));
}
END_TEST

/* RSS has URIs; Atom wants a content where there is no link. */
START_TEST(validity)
{
	struct fw_entry_row row = row_of(FW_STR("t"));

	row.summary = FW_STR("only a summary");
	row.url = FW_STR("https://a.example/\u00e4");
	check_one(FW_FEED_OUT_ATOM, &row,
		TEXTS("<summary type=\"text\">only a", "!<content", "href=\"https://a.example/\u00e4\""));
	check_one(FW_FEED_OUT_RSS, &row, TEXTS("<link>https://a.example/%C3%A4</link>", "isPermaLink=\"false\""));
	row.guid = row.url;
	check_one(FW_FEED_OUT_RSS, &row, TEXTS("<guid isPermaLink=\"false\">https://a.example/\u00e4</guid>"));
	row.url = FW_STR_NONE;
	check_one(FW_FEED_OUT_ATOM, &row, TEXTS("<content type=\"text\">only a summary</content>", "!<summary"));
	row.extra = FW_STR("{\"attachments\":[{\"url\":\"https://a.example/\u00e4.mp3\"},"
			   "{\"url\":\"https://a.example/\u00f6.mp3\"}]}");
	check_one(FW_FEED_OUT_RSS, &row,
		TEXTS("<enclosure url=\"https://a.example/%C3%A4.mp3\"",
			"<media:content url=\"https://a.example/%C3%B6.mp3\""));
}
END_TEST

START_TEST(urls)
{
	static const struct {
		const char *in, *out; /* out NULL: left out */
	} URL[] = {
		{"https://a.example/x?a=1&b=%20#c", "https://a.example/x?a=1&b=%20#c"},
		{"/x", "https://feeds.example/x"},
		{"x y", "https://feeds.example/a/x%20y"},
		{"//b.example/", "https://b.example/"},
		{"  http://a.example/ ", "http://a.example/"},
		{"http://a.example/|{}\\^`<>\"", "http://a.example/%7C%7B%7D%5C%5E%60%3C%3E%22"},
		{"http://a.example/%zz%", "http://a.example/%25zz%25"},
		{"http://a.example/\xc3\xa4\xff\xef\xbf\xbf\xc2\x85", "http://a.example/\xc3\xa4%FF%EF%BF%BF%C2%85"},
		{"http://a.example/\x01", "http://a.example/%01"},
		{"http://a.example/[x]?a[]=1#[", "http://a.example/%5Bx%5D?a%5B%5D=1#%5B"},
		{"http://[2001:db8::1]:80/[", "http://[2001:db8::1]:80/%5B"},
		{"http://a.example/#a#b#", "http://a.example/#a%23b%23"},
		{"mailto:a@b.example", "mailto:a@b.example"},
		{"javascript:alert(1)", NULL},
		{"JavaScript:x", NULL},
		{"data:text/html,x", NULL},
		{"http:///x", NULL},
		{"1:x", "https://feeds.example/a/1:x"},
		{"", NULL},
		{" ", NULL},
	};
	struct fw_arena a;

	fw_arena_init(&a, 0);
	for (size_t i = 0; i < FW_N(URL); i++) {
		struct fw_str out = feed_url(&a, FEED_URL, fw_str(URL[i].in));

		ck_assert_msg(fw_str_eq(out, fw_str(URL[i].out)), "%s: %.*s", URL[i].in, FW_STR_ARG(out));
	}
	fw_arena_finish(&a);
}
END_TEST

START_TEST(ids)
{
	static const char *const OWN[] = {"http://a.example/1", "https://a.example/?p=1#x", "tag:a.example,2026:1",
		"urn:uuid:00000000-0000-5000-8000-000000000000", "URN:isbn:1"};
	static const char *const MADE[] = {"1", "a b", "post:1", "http://a.example/a b", "http:", "http:///", "made:00",
		"tag:", "/x", "\xff", "tag:a\nb", "Title: x", "javascript:x"};
	struct fw_arena a;
	struct fw_str id;

	fw_arena_init(&a, 0);
	for (size_t i = 0; i < FW_N(OWN); i++)
		ck_assert(fw_str_eq(feed_id(&a, FEED_URL, fw_str(OWN[i]), FW_STR_NONE), fw_str(OWN[i])));
	for (size_t i = 0; i < FW_N(MADE); i++) {
		id = feed_id(&a, FEED_URL, fw_str(MADE[i]), FW_STR_NONE);
		ck_assert_msg(fw_str_starts(id, FW_STR("urn:uuid:")) && id.len == 45 && id.p[23] == '5', "%s", MADE[i]);
		/* on all servers; if the feed moves to https; not in another feed */
		ck_assert(fw_str_eq(
			id, feed_id(&a, FW_STR("http://feeds.example/a/feed.xml"), fw_str(MADE[i]), FW_STR_NONE)));
		ck_assert(!fw_str_eq(
			id, feed_id(&a, FW_STR("https://feeds.example/b/feed.xml"), fw_str(MADE[i]), FW_STR_NONE)));
	}
	/* forever: readers know it */
	ck_assert(fw_str_eq(feed_id(&a, FEED_URL, FW_STR("1"), FW_STR_NONE), FW_STR(KNOWN_ID)));
	fw_arena_finish(&a);
}
END_TEST

/* An id occurs once: of one feed each entry is there, of several feeds the first one. */
START_TEST(equal_ids)
{
	struct fw_entry_row row[5];

	for (size_t i = 0; i < FW_N(row); i++)
		row[i] = row_of(FW_STR("same"));
	row[1].title = FW_STR("other title");
	row[2].content = FW_STR("other text");
	row[2].content_type = FW_TEXT_PLAIN;
	row[3].content = FW_STR("more text");
	row[3].content_type = FW_TEXT_PLAIN;
	row[4].feed_id = 2;
	for (int format = 0; format < FW_FEED_OUT_N; format++) {
		struct fw_buf out = written((enum fw_feed_out_format)format, &HEAD, row, FW_N(row));
		struct fw_document *d = parsed(fw_buf_str(&out));

		ck_assert_uint_eq(d->entry_n, 4);
		for (const struct fw_entry *e = d->entries; e; e = e->next) {
			ck_assert(!e->dup_n && !e->repeat);
			ck_assert(fw_str_starts(e->id, e == d->entries ? FW_STR("https://a.") : FW_STR("urn:uuid:")));
		}
		fw_document_free(d);
		fw_buf_finish(&out);
	}
}
END_TEST

START_TEST(lists)
{
	struct fw_entry_row row = row_of(FW_STR("x"));

	row.extra = FW_STR("{\"language\":\"de-AT\",\"external_url\":\"/e\","
			   "\"authors\":[{\"name\":\"A & B\",\"url\":\"/a\",\"_email\":\"a@a.example\"},"
			   "{\"url\":\"https://b.example/\"},{},7],"
			   "\"tags\":[\"one\",\"<two>\",\"\",5,\"three\"],"
			   "\"_feedwheel\":{\"categories\":[{\"term\":\"one\",\"scheme\":\"https://s.example/\","
			   "\"label\":\"One\"},{\"label\":\"<two>\"}]},"
			   "\"attachments\":[{\"url\":\"/a.mp3\",\"mime_type\":\"audio/mpeg\","
			   "\"size_in_bytes\":7,\"duration_in_seconds\":1.5},"
			   "{\"url\":\"b.ogg\",\"mime_type\":\"no type\"},{\"mime_type\":\"x/y\"},"
			   "{\"url\":\"javascript:x\"}]}");
	check_one(FW_FEED_OUT_ATOM, &row,
		TEXTS("<entry xml:lang=\"de-AT\">", "<link rel=\"related\" href=\"https://feeds.example/e\"/>",
			"<name>A &amp; B</name>\n      <uri>https://feeds.example/a</uri>\n      <email>a@a.example<",
			"<name>https://b.example/</name>",
			"<category term=\"one\" scheme=\"https://s.example/\" label=\"One\"/>",
			"<category term=\"&lt;two&gt;\"", "<category term=\"three\"/>",
			"<link rel=\"enclosure\" type=\"audio/mpeg\" length=\"7\" href=\"https://feeds.",
			"<link rel=\"enclosure\" href=\"https://feeds.example/a/b.ogg\"/>", "!javascript", "!x/y"));
	check_one(FW_FEED_OUT_RSS, &row,
		TEXTS("<dc:language>de-AT<", "<dc:creator>A &amp; B<", "<category domain=\"https://s.example/\">one<",
			"<enclosure url=\"https://feeds.example/a.mp3\" length=\"7\" type=\"audio/mpeg\"/>",
			"<media:content url=\"https://feeds.example/a/b.ogg\"/>",
			"<source url=\"https://feeds.example/a/feed.xml\">Feed</source>", "!javascript"));
	check_one(FW_FEED_OUT_JSON, &row,
		TEXTS("\"tags\":[\"one\",\"<two>\",\"three\"]", "\"duration_in_seconds\":1.5",
			"\"mime_type\":\"application/octet-stream\"", "\"language\":\"de-AT\"", "!javascript"));
	row.extra = FW_STR("{\"authors\":{},\"tags\":\"x\",\"attachments\":7,\"language\":\"a b\"");
	check_all(&row, TEXTS("!lang"), TEXTS("!tags")); /* no JSON, or not what it should be */
}
END_TEST

START_TEST(heads)
{
	static const struct fw_feed_out_head ALL = {.id = FW_STR("https://o.example/a"),
		.title = FW_STR("T"),
		.self_url = FW_STR("https://o.example/s?a&b"),
		.home_url = FW_STR("https://h.example/"),
		.hub_url = FW_STR("https://hub.example/"),
		.description = FW_STR("a <b>"),
		.language = FW_STR("en"),
		.icon = FW_STR("https://h.example/i.png")};
	static const struct fw_feed_out_head LEAST = {.id = FW_STR("urn:x:y"), .title = FW_STR("T")};
	struct fw_buf out;

	for (int format = 0; format < FW_FEED_OUT_N; format++) {
		struct fw_document *d;

		out = written((enum fw_feed_out_format)format, &ALL, NULL, 0);
		d = parsed(fw_buf_str(&out));
		ck_assert(is_clean(d) && !d->entry_n);
		ck_assert(fw_str_eq(d->title, ALL.title));
		ck_assert(fw_str_eq(d->feed_url, ALL.self_url));
		ck_assert(fw_str_eq(d->home_page_url, ALL.home_url));
		ck_assert_msg(fw_str_eq(d->description, ALL.description), "%s", out.p);
		ck_assert(fw_str_eq(d->language, ALL.language));
		ck_assert(fw_str_eq(d->hubs->href, ALL.hub_url));
		ck_assert(fw_str_eq(format == FW_FEED_OUT_ATOM ? d->favicon :
				format == FW_FEED_OUT_RSS      ? d->image.url :
								 d->icon,
			ALL.icon));
		fw_document_free(d);
		fw_buf_finish(&out);
		out = written((enum fw_feed_out_format)format, &LEAST, NULL, 0);
		d = parsed(fw_buf_str(&out));
		ck_assert(is_clean(d) && !d->hubs && fw_str_eq(d->title, LEAST.title));
		fw_document_free(d);
		fw_buf_finish(&out);
	}
}
END_TEST

/* Large, and deeply nested: linear in time, and what the sanitiser leaves is carried. */
START_TEST(huge_content)
{
	struct fw_entry_row row = row_of(FW_STR("x"));
	struct fw_buf html = FW_BUF_INIT(0);

	while (html.len < (size_t)4 << 20)
		fw_buf_adds(&html, "<p>a &amp; \x01 b<script>x</script>");
	row.content = fw_buf_str(&html);
	row.content_type = FW_TEXT_HTML;
	for (int format = 0; format < FW_FEED_OUT_N; format++) {
		struct fw_buf out = written((enum fw_feed_out_format)format, &HEAD, &row, 1);

		ck_assert_msg(out.len > html.len / 4, "%zu of %zu, %.1000s", out.len, html.len, out.p);
		ck_assert(!has(&out, ";script") && !has(&out, "<script") && !has(&out, "\x01"));
		fw_document_free(parsed(fw_buf_str(&out)));
		fw_buf_finish(&out);
	}
	fw_buf_finish(&html);
}
END_TEST

/* ---- names ----------------------------------------------------------------------------------- */

START_TEST(names)
{
	static const struct {
		const char *name;
		enum fw_feed_out_kind kind;
		const char *text;
	} NAME[] = {
		{"News", FW_FEED_OUT_BARE, "News"},
		{"News/Tech", FW_FEED_OUT_BARE, "News/Tech"},
		{"folder/News/Tech", FW_FEED_OUT_FOLDER, "News/Tech"},
		{"folder/folder/x", FW_FEED_OUT_FOLDER, "folder/x"},
		{"folder", FW_FEED_OUT_BARE, "folder"},
		{"query/a OR b", FW_FEED_OUT_QUERY, "a OR b"},
		{"order/sec", FW_FEED_OUT_ORDER, "sec"},
		{"feed/12", FW_FEED_OUT_FEED, "12"},
		{"all", FW_FEED_OUT_ALL, ""},
		{"all/x", FW_FEED_OUT_BARE, "all/x"},
		{"", FW_FEED_OUT_BARE, ""},
	};
	static const struct {
		const char *own, *name;
		bool may;
	} MAY[] = {
		{"folder/News", "News", true},
		{"folder/News", "folder/News", true},
		{"folder/News", "query/News", false},
		{"folder/News", "News/Tech", false},
		{"folder/News", "all", false},
		{"folder/News", "News ", false},
		{"query/News", "News", true},
		{"query/all", "all", false},
		{"order/News", "News", false},
		{"feed/1", "feed/1", true},
		{"feed/1", "feed/2", false},
		{"feed/1", "1", false},
		{"all", "all", true},
		{"all", "News", false},
		{"all", "", false},
	};

	for (size_t i = 0; i < FW_N(NAME); i++) {
		struct fw_feed_out_name n = fw_feed_out_name_parse(fw_str(NAME[i].name));
		struct fw_buf b = FW_BUF_INIT(0);

		ck_assert_msg(n.kind == NAME[i].kind && fw_str_eq(n.text, fw_str(NAME[i].text)), "%s", NAME[i].name);
		if (n.kind != FW_FEED_OUT_BARE) {
			fw_feed_out_name_write(&b, &n);
			ck_assert(fw_str_eq(fw_buf_str(&b), fw_str(NAME[i].name)));
		}
		fw_buf_finish(&b);
	}
	for (size_t i = 0; i < FW_N(MAY); i++)
		ck_assert_msg(fw_feed_out_name_allows(fw_str(MAY[i].own), fw_str(MAY[i].name)) == MAY[i].may, "%s %s",
			MAY[i].own, MAY[i].name);
}
END_TEST

START_TEST(bases)
{
	static const struct {
		const char *listen, *websub_url, *cert, *base;
	} CASE[] = {
		{NULL, NULL, NULL, ""},
		{"unix:/run/x.sock", NULL, NULL, ""},
		{"127.0.0.1:8080", NULL, NULL, "http://127.0.0.1:8080/"},
		{"[::1]:8080", NULL, "/x.pem", "https://[::1]:8080/"},
		{"127.0.0.1:8080", "https://a.example/b", NULL, "https://a.example/b/"},
		{NULL, "https://a.example/", NULL, "https://a.example/"},
	};
	struct fw_config *c;
	struct fw_buf b = FW_BUF_INIT(0);
	struct fw_err err;

	for (size_t i = 0; i < FW_N(CASE); i++) {
		ck_assert_int_eq(fw_config_create(&c, &err), 0);
		ck_assert_int_eq(fw_config_set(c, "listen", CASE[i].listen ? CASE[i].listen : "", "", &err), 0);
		ck_assert_int_eq(
			fw_config_set(c, "websub_url", CASE[i].websub_url ? CASE[i].websub_url : "", "", &err), 0);
		ck_assert_int_eq(fw_config_set(c, "tls_cert", CASE[i].cert ? CASE[i].cert : "", "", &err), 0);
		fw_feed_out_base(c, &b);
		ck_assert_msg(
			fw_str_eq(fw_buf_str(&b), fw_str(CASE[i].base)), "%zu: %.*s", i, FW_STR_ARG(fw_buf_str(&b)));
		fw_buf_reset(&b);
		fw_config_destroy(c);
	}
	fw_feed_out_path(&b, FW_STR("a/\"b c\"?#%:\xc3\xa4"), FW_FEED_OUT_RSS);
	ck_assert_str_eq(b.p, "feeds/a/%22b%20c%22%3F%23%25:%C3%A4.rss");
	fw_buf_finish(&b);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit engine feed out");
	TCase *t = tcase_create("feeds");
	const TTest *const every[] = {cases_and_corpora, odd_characters, empty_texts, validity, urls, ids, equal_ids,
		lists, heads, huge_content, names, bases};

	tcase_set_timeout(t, 300);
	for (size_t i = 0; i < FW_N(every); i++)
		tcase_add_test(t, every[i]);
	suite_add_tcase(s, t);
	return run_suite(s);
}
