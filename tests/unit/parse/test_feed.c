/* SPDX-License-Identifier: ISC */
/*
 * The document parser as a library: memory, limits, identity, what stores keep, and damaged
 * documents. The meaning of feeds is tested in tests/cases; this file has what a single document
 * cannot show.
 */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/utf8.h"
#include "parse/charset/sniff.h"
#include "parse/feed/builder.h"
#include "parse/feed/normalize.h"
#include "parse/feed/podcast.h"
#include "parse/parse.h"
#include "documents.h"
#include "../../suite.h"

static const char RSS_HEAD[] = "<rss version=\"2.0\"><channel><title>T</title><link>https://e.org/</link>";
static const char RSS_TAIL[] = "</channel></rss>";

/* ---- helpers --------------------------------------------------------------------------------- */

static struct fw_document *parse_ok(struct fw_str s, const struct fw_parse_options *o)
{
	struct fw_document *doc;
	struct fw_err err;

	ck_assert_msg(!fw_parse(s.p, s.len, o, &doc, &err), "%s", err.text);
	return doc;
}

static struct fw_document *parse_items(const char *items)
{
	struct fw_buf b;
	struct fw_document *doc;

	fw_buf_init(&b, 0);
	fw_buf_adds(&b, RSS_HEAD);
	fw_buf_adds(&b, items);
	fw_buf_adds(&b, RSS_TAIL);
	doc = parse_ok(fw_buf_str(&b), NULL);
	fw_buf_finish(&b); /* the document has no pointer into its input */
	return doc;
}

/*
 * Any input: an error with a message, or a document that can be written as JSON in UTF-8. Returns
 * the number of entries, or -1.
 */
static int survives(struct fw_str s, const struct fw_parse_options *o, bool *malformed)
{
	struct fw_document *doc;
	struct fw_err err;
	char *json;
	size_t len;
	int n;

	if (fw_parse(s.p ? s.p : "", s.len, o, &doc, &err)) {
		ck_assert_ptr_null(doc);
		ck_assert(err.text[0]);
		return -1;
	}
	ck_assert_msg(!fw_document_json(doc, 0, &json, &len, &err), "%s", err.text);
	ck_assert_uint_eq(fw_utf8_valid(json, len), len);
	free(json);
	n = (int)doc->entry_n;
	if (malformed)
		*malformed = doc->malformed;
	fw_document_free(doc);
	return n;
}

/* ---- memory ---------------------------------------------------------------------------------- */

struct counter {
	size_t allowed, live, bytes, peak;
};

static void *count_alloc(size_t n, void *ctx)
{
	struct counter *c = ctx;
	size_t *p;

	if (!c->allowed)
		return NULL;
	c->allowed--;
	p = malloc(n + 16);
	if (!p)
		return NULL;
	*p = n;
	c->live++;
	c->bytes += n;
	c->peak = FW_MAX(c->peak, c->bytes);
	return (char *)p + 16;
}

static void count_free(void *p, void *ctx)
{
	struct counter *c = ctx;
	size_t *head;

	if (!p)
		return;
	head = (size_t *)(void *)((char *)p - 16);
	c->live--;
	c->bytes -= *head;
	free(head);
}

/*
 * Each allocation fails, once alone and once with all that follow: FW_ENOMEM, and all memory is
 * freed. REL-11.
 */
static void out_of_memory(const char *name, struct fw_str bytes)
{
	struct counter c = {.allowed = 0};
	struct fw_parse_options o = {.alloc = count_alloc, .free = count_free, .alloc_ctx = &c};
	struct fw_document *doc;
	struct fw_err err;
	size_t n;
	int rc;

	for (n = 0; n < 200; n++) {
		c.allowed = n;
		rc = fw_parse(bytes.p ? bytes.p : "", bytes.len, &o, &doc, &err);
		if (!rc)
			fw_document_free(doc);
		ck_assert_msg(c.live == 0, "%s: %zu blocks kept after %zu allocations", name, c.live, n);
		if (rc != FW_ENOMEM)
			return;
	}
	ck_abort_msg("%s never succeeds", name);
}

START_TEST(memory_refused)
{
	ck_assert_int_gt(each_of("tests/cases", out_of_memory, 1, SIZE_MAX), 60);
}
END_TEST

START_TEST(options_checked)
{
	struct fw_parse_options o = {.alloc = count_alloc};
	struct fw_document *doc;
	struct fw_err err;

	ck_assert_int_eq(fw_parse("x", 1, &o, &doc, &err), FW_EINVAL);
	ck_assert_int_eq(fw_parse(NULL, 1, NULL, &doc, &err), FW_EINVAL);
	ck_assert_int_eq(fw_parse("", 0, NULL, &doc, &err), FW_EFORMAT);
	fw_document_free(NULL);
}
END_TEST

/* `one` has a "%" for the number. */
static void add_numbered(struct fw_buf *b, const char *one, size_t i)
{
	struct fw_str rest, part = fw_str_split(fw_str(one), '%', &rest);

	fw_buf_addstr(b, part);
	if (rest.p)
		fw_buf_addf(b, "%zu", i);
	fw_buf_addstr(b, rest);
}

static struct fw_buf many(size_t n, const char *one)
{
	struct fw_buf b;
	size_t i;

	fw_buf_init(&b, 0);
	fw_buf_adds(&b, RSS_HEAD);
	for (i = 0; i < n; i++)
		add_numbered(&b, one, i);
	fw_buf_adds(&b, RSS_TAIL);
	ck_assert_int_eq(b.rc, 0);
	return b;
}

/* At most 2x the document and 64 KiB in all, with the copy that fw_parse() makes. */
START_TEST(memory_bounded)
{
	struct fw_buf b = many(1000,
		"<item><title>Title %</title><link>https://e.org/some/page</link><description>&lt;p&gt;Some words "
		"about this and that, as long as descriptions tend to be, with a link &lt;a"
		" href=\"https://e.org/\"&gt;here&lt;/a&gt; and "
		"an entity &amp;amp; more of it, so that it has to be put together from pieces, as"
		" most of them have to be. And then there "
		"is more to say, which makes it about as long as what blogs write: some hundred words,"
		" sometimes a few more, seldom much "
		"fewer; this is what the figure is about. Feeds of one line entries are another"
		" thing.&lt;/p&gt;</description></item>");
	struct counter c = {.allowed = SIZE_MAX};
	struct fw_parse_options o = {.alloc = count_alloc, .free = count_free, .alloc_ctx = &c};
	struct fw_document *doc = parse_ok(fw_buf_str(&b), &o);

	ck_assert_uint_eq(doc->entry_n, 1000);
	ck_assert_uint_le(c.peak, 2 * b.len + 65536);
	fw_document_free(doc);
	ck_assert_uint_eq(c.live, 0);
	fw_buf_finish(&b);
}
END_TEST

START_TEST(memory_limit)
{
	struct fw_buf b = many(5000, "<item><title>Title % &amp;amp; more</title></item>");
	struct fw_parse_options o = {.limits.max_memory = 300000};
	struct fw_document *doc;
	struct fw_err err;

	/* the entries so far stay, and the document has a note that there are more */
	doc = parse_ok(fw_buf_str(&b), &o);
	ck_assert_uint_gt(doc->entry_n, 100);
	ck_assert_uint_lt(doc->entry_n, 5000);
	fw_document_free(doc);
	o.limits.max_memory = 1; /* even an empty document needs more */
	ck_assert_int_eq(fw_parse("<rss/>", 6, &o, &doc, &err), FW_ELIMIT);
	ck_assert_ptr_nonnull(strstr(err.text, "max_memory"));
	fw_buf_finish(&b);
}
END_TEST

/*
 * LIM-08: no tree of 2,000 members is built for one item; the first ones stay, and strings may
 * contain any bracket.
 */
START_TEST(json_members)
{
	static const char head[] = "{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"t\","
				   "\"items\":[{\"id\":\"1\",\"_x\":[\"]},\\\"\"";
	struct fw_parse_options o = {.limits.max_memory = 10000000};
	struct fw_document *doc;
	struct fw_buf b;

	for (int in_second = 0; in_second < 2; in_second++) {
		fw_buf_init(&b, 0);
		fw_buf_adds(&b,
			in_second ? "{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"t\","
				    "\"items\":[{\"id\":\"0\"}," :
				    head);
		fw_buf_adds(&b, in_second ? strchr(head, '[') + 1 : "");
		for (size_t i = 0; i < 2000; i++)
			add_numbered(&b, ",[%,{}]", i);
		fw_buf_adds(&b, "],\"title\":\"behind\"}]}");
		doc = parse_ok(fw_buf_str(&b), &o);
		ck_assert_uint_eq(doc->entry_n, in_second ? 2 : 1);
		ck_assert_uint_eq(doc->dropped_n, 1001);
		ck_assert_uint_eq(doc->problem_n, 1);
		ck_assert_ptr_nonnull(strstr(doc->problems->what, "1000 members"));
		ck_assert(fw_str_eq((in_second ? doc->entries->next : doc->entries)->title, FW_STR("behind")));
		fw_document_free(doc);
		fw_buf_finish(&b);
	}
}
END_TEST

/* The first 1,000 are kept, in order. */
START_TEST(retractions_bounded)
{
	struct fw_parse_options o = {.limits.max_memory = 10000000};
	struct fw_document *doc;
	struct fw_buf b;
	size_t n = 0;
	char ref[10];

	fw_buf_init(&b, 0);
	fw_buf_adds(&b, "<feed xmlns='http://www.w3.org/2005/Atom' xmlns:at='http://purl.org/atompub/tombstones/1.0'>");
	for (size_t i = 0; i < 1003; i++)
		add_numbered(&b, "<at:deleted-entry ref='%'/>", i);
	fw_buf_adds(&b, "<entry><id>1</id></entry></feed>");
	doc = parse_ok(fw_buf_str(&b), &o);
	fw_buf_finish(&b);
	for (const struct fw_retraction *r = doc->retractions; r; r = r->next) {
		ck_assert(fw_snprintf(ref, sizeof(ref), "%zu", n++));
		ck_assert(fw_str_eq(r->ref, fw_str(ref)) && r->when_ms == FW_NO_DATE);
	}
	ck_assert_uint_eq(n, 1000);
	ck_assert(doc->dropped_n == 3 && doc->problem_n == 1 && doc->entry_n == 1);
	ck_assert_ptr_nonnull(strstr(doc->problems->what, "1,000 deleted entries"));
	fw_document_free(doc);
}
END_TEST

/* Content that is not text: up to 256 KiB of base64 are kept. */
START_TEST(other_content_bounded)
{
	for (size_t more = 0; more < 2; more++) {
		const struct fw_value *content;
		struct fw_document *doc;
		struct fw_buf b;

		fw_buf_init(&b, 0);
		fw_buf_adds(
			&b, "<feed xmlns='http://www.w3.org/2005/Atom'><entry><id>1</id><content type='image/png'>");
		for (size_t i = 0; i < ((size_t)256 << 10) / 4 + more; i++)
			fw_buf_adds(&b, "AAAA");
		fw_buf_adds(&b, "</content></entry></feed>");
		doc = parse_ok(fw_buf_str(&b), NULL);
		fw_buf_finish(&b);
		content = fw_value_find(doc->entries->extra, "content");
		ck_assert(fw_str_eq(fw_value_find(content, "type")->string, FW_STR("image/png")));
		ck_assert_int_eq(fw_value_find(content, "base64") != NULL, !more);
		ck_assert_uint_eq(doc->problem_n, more);
		fw_document_free(doc);
	}
}
END_TEST

/* A place is one shape and up to 100 more. */
START_TEST(shapes_bounded)
{
	struct fw_parse_options o = {.limits.max_memory = 10000000};
	const struct fw_value *more;
	struct fw_document *doc;
	struct fw_buf b;
	size_t n = 0;

	fw_buf_init(&b, 0);
	fw_buf_adds(&b, "<rss xmlns:georss='http://www.georss.org/georss'><channel><item>");
	for (size_t i = 0; i < 103; i++)
		add_numbered(&b, "<georss:point>1 %</georss:point>", i);
	fw_buf_adds(&b, "</item></channel></rss>");
	doc = parse_ok(fw_buf_str(&b), &o);
	fw_buf_finish(&b);
	more = fw_value_find(fw_value_find(doc->entries->extra, "geo"), "more");
	for (const struct fw_value *v = fw_value_members(more); v; v = v->next)
		n++;
	ck_assert(n == 100 && doc->dropped_n == 2 && doc->problem_n == 1);
	fw_document_free(doc);
}
END_TEST

/* Further shapes take no entry's memory. */
START_TEST(shapes_cost_no_entry)
{
	struct fw_document *doc;
	struct fw_buf b;

	fw_buf_init(&b, 0);
	fw_buf_adds(&b, "<rss xmlns:georss='http://www.georss.org/georss'><channel>");
	for (size_t i = 0; i < 500; i++) {
		fw_buf_adds(&b, "<item><title>1</title>");
		for (size_t k = 0; k < 20; k++) {
			fw_buf_adds(&b, "<georss:line>");
			for (size_t n = 0; n < (k ? 50 : 1); n++)
				fw_buf_adds(&b, "1 2 3 4 ");
			fw_buf_adds(&b, "</georss:line>");
		}
		fw_buf_adds(&b, "</item>");
	}
	fw_buf_adds(&b, "</channel></rss>");
	doc = parse_ok(fw_buf_str(&b), NULL);
	fw_buf_finish(&b);
	ck_assert(doc->entry_n == 500 && !doc->ended_early && doc->dropped_n);
	fw_document_free(doc);
}
END_TEST

/* The feed's new address, if it is one. */
START_TEST(new_feed_url)
{
	static const struct {
		const char *text, *url;
	} C[] = {{"https://e.org/new", "https://e.org/new"}, {"ftp://e.org/new", ""}, {"urn:x:new", ""}};

	for (size_t i = 0; i < FW_N(C); i++) {
		struct fw_document *doc;
		struct fw_buf b;

		fw_buf_init(&b, 0);
		fw_buf_addf(&b,
			"<rss xmlns:itunes='http://www.itunes.com/dtds/podcast-1.0.dtd'><channel>"
			"<itunes:new-feed-url>%s</itunes:new-feed-url><item><title>1</title></item></channel></rss>",
			C[i].text);
		doc = parse_ok(fw_buf_str(&b), NULL);
		fw_buf_finish(&b);
		ck_assert_msg(fw_str_eq(fw_new_feed_url(doc), fw_str(C[i].url)), "%s", C[i].text);
		fw_document_free(doc);
	}
}
END_TEST

START_TEST(gzip_bomb)
{
	/* 1 MiB of zeros in 1 KiB; max_bytes applies to the decompressed size */
	static const unsigned char head[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
	struct fw_parse_options o = {.limits.max_bytes = 1000};
	struct fw_document *doc;
	struct fw_err err;
	char bytes[400];

	/* a stored block of 300 bytes, repeated: see RFC 1951 section 3.2.4 */
	memset(bytes, ' ', sizeof(bytes));
	memcpy(bytes, head, sizeof(head));
	memcpy(bytes + 10, "\1\x2c\1\xd3\xfe", 5);
	ck_assert_int_eq(fw_parse(bytes, sizeof(bytes), &o, &doc, &err), FW_EFORMAT);
	o.limits.max_bytes = 399;
	ck_assert_int_eq(fw_parse(bytes, sizeof(bytes), &o, &doc, &err), FW_ELIMIT);
}
END_TEST

/* ---- identity -------------------------------------------------------------------------------- */

static bool same_key(int64_t fa, const struct fw_entry *a, int64_t fb, const struct fw_entry *b)
{
	struct fw_hash128 ka = fw_entry_key(fa, a), kb = fw_entry_key(fb, b);

	return !memcmp(ka.b, kb.b, sizeof(ka.b));
}

/* REL-03 */
START_TEST(keys)
{
	struct fw_document *d = parse_items(
		"<item><guid>a</guid></item><item><guid>b</guid></item>"
		"<item><link>https://e.org/a</link></item><item><guid>https://e.org/a</guid></item>");
	const struct fw_entry *a = d->entries, *b = a->next, *link = b->next, *guid = link->next;

	ck_assert(same_key(1, a, 1, a));
	ck_assert(!same_key(1, a, 2, a));
	ck_assert(!same_key(1, a, 1, b));
	/* a URL as guid and the same URL as link are different keys */
	ck_assert(!same_key(1, link, 1, guid));
	fw_document_free(d);
}
END_TEST

/* REL-03: one guid for all entries; a new entry at the top changes no other key */
START_TEST(keys_of_repeated_ids)
{
	static const char OLD[] = "<item><guid>x</guid><title>B</title><link>https://e.org/b</link></item>"
				  "<item><guid>x</guid><title>A</title><link>https://e.org/a</link></item>"
				  "<item><guid>x</guid><title>A</title><link>https://e.org/a</link></item>";
	struct fw_buf b;
	struct fw_document *old = parse_items(OLD), *now;
	const struct fw_entry *o = old->entries, *n;

	fw_buf_init(&b, 0);
	fw_buf_addf(&b, "<item><guid>x</guid><title>C</title></item>%s", OLD);
	now = parse_items(b.p);
	n = now->entries;
	ck_assert_uint_eq(now->entry_n, 4);
	ck_assert(!same_key(1, n, 1, n->next));
	ck_assert(same_key(1, o, 1, n->next));
	ck_assert(same_key(1, o->next, 1, n->next->next));
	ck_assert(!same_key(1, o, 1, o->next));
	/* exact repeats count as one */
	ck_assert(same_key(1, o->next, 1, o->next->next));
	ck_assert(!o->next->repeat && o->next->next->repeat);
	fw_document_free(old);
	fw_document_free(now);
	fw_buf_finish(&b);
}
END_TEST

/* same id, title and link, another text: distinguished by the text */
START_TEST(keys_of_revisions)
{
	struct fw_document *d = parse_items(
		"<item><guid>x</guid><description>1</description></item>"
		"<item><guid>x</guid><description>2</description></item><item><guid>x</guid>"
		"<description>3</description></item>");
	const struct fw_entry *a = d->entries, *b = a->next, *c = b->next;

	ck_assert(!same_key(1, a, 1, b) && !same_key(1, b, 1, c) && !same_key(1, a, 1, c));
	ck_assert(!a->repeat && !b->repeat && !c->repeat);
	fw_document_free(d);
}
END_TEST

/* REL-04: a different date alone is not a change */
START_TEST(hashes)
{
	struct fw_document *d = parse_items(
		"<item><title>t</title><description>x</description><pubDate>2020-01-01</pubDate></item>"
		"<item><title>t</title><description>x</description><pubDate>2021-01-01</pubDate></item>"
		"<item><title>t</title><description>y</description></item><item><title>tx</title></item>"
		"<item><title>t</title><description>x</description><author>A</author></item>"
		"<item><title>t</title><description>x</description><enclosure url=\"https://e.org/a\"/></item>");
	const struct fw_entry *a = d->entries, *e;

	ck_assert_uint_eq(fw_entry_hash(a), fw_entry_hash(a->next));
	ck_assert(same_key(1, a, 1, a->next));
	for (e = a->next->next; e; e = e->next)
		ck_assert_uint_ne(fw_entry_hash(a), fw_entry_hash(e));
	fw_document_free(d);
}
END_TEST

/* Keys are stored: they must never change. */
START_TEST(key_is_stable)
{
	static const unsigned char WANT[16] = {
		0x82, 0x78, 0x3f, 0xff, 0x74, 0xec, 0x63, 0xa6, 0x53, 0x42, 0xd3, 0x6b, 0x33, 0xd5, 0xe0, 0x09};
	struct fw_entry e = {.id = FW_STR("urn:uuid:1225c695-cfb8-4ebb-aaaa-80da344efa6a")};
	struct fw_hash128 k = fw_entry_key(42, &e);
	char hex[33];

	for (int i = 0; i < 16; i++)
		snprintf(hex + 2 * i, 3, "%02x", k.b[i]);
	ck_assert_msg(!memcmp(k.b, WANT, 16), "the key is %s", hex);
}
END_TEST

/* ---- what stores keep ------------------------------------------------------------------------ */

static char *extra_of(const struct fw_entry *e)
{
	struct fw_buf b;
	struct fw_json j;

	fw_buf_init(&b, 0);
	fw_json_init(&j, &b, false);
	fw_out_item_extra(&j, e);
	fw_buf_add(&b, "", 0);
	ck_assert_int_eq(b.rc, 0);
	return b.p ? fw_buf_take(&b, NULL) : calloc(1, 1);
}

START_TEST(item_extra)
{
	struct fw_document *d = parse_items(
		"<item><guid>1</guid><title>t</title><link>https://e.org/1</link><description>x</description>"
		"<pubDate>2020-01-01</pubDate></item><item><guid>2</guid><category>c</category>"
		"<comments>https://e.org/c</comments></item>"
		"<item xml:lang='de-AT'><guid>3</guid><title>t</title></item>");
	char *none = extra_of(d->entries), *some = extra_of(d->entries->next),
	     *language = extra_of(d->entries->next->next);

	ck_assert_str_eq(none, "");
	ck_assert_str_eq(some, "{\"tags\":[\"c\"],\"_feedwheel\":{\"comments\":\"https://e.org/c\"}}");
	ck_assert_str_eq(language, "{\"language\":\"de-AT\"}");
	free(none);
	free(some);
	free(language);
	fw_document_free(d);
}
END_TEST

START_TEST(formats_named)
{
	ck_assert_str_eq(fw_format_name(FW_RSS20), "rss20");
	ck_assert_str_eq(fw_format_name(FW_JSON11), "json11");
	ck_assert_str_eq(fw_format_name((enum fw_format)99), "none");
}
END_TEST

START_TEST(sniffing)
{
	static const struct {
		const char *bytes, *type, *name;
		bool html;
	} T[] = {
		{"<!doctype html><p>", "", "an HTML page", true},
		{"\n<!-- x --><HTML>", "", "an HTML page", true},
		{"<div>x</div>", "text/html; charset=x", "an HTML page", true},
		{"<?xml version='1.0'?><a/>", "text/html", "an XML document", false},
		{"<svg/>", "", "an image (SVG)", false},
		{"<urlset/>", "", "a sitemap", false},
		{"GIF89a..", "", "an image (GIF)", false},
		{"hello", "text/plain", "plain text", false},
		{"{\"a\":1}", "", "JSON that is not a feed", false},
		{"\1\2\3\4\5\6", "", "binary data", false},
		{"<!-- only -->", "", "empty (white space or comments only)", false},
	};

	for (size_t i = 0; i < FW_N(T); i++) {
		ck_assert_str_eq(fw_sniff_name(fw_str(T[i].bytes), fw_str(T[i].type)), T[i].name);
		ck_assert_msg(fw_sniff_is_html(fw_str(T[i].bytes), fw_str(T[i].type)) == T[i].html, "%s", T[i].bytes);
	}
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------------- */

/* ---- hostile shapes: time grows with the size, not with its square --------------------------- */

static double seconds_for(const char *before, const char *unit, const char *after, size_t n)
{
	struct timespec from, to;
	struct fw_buf b;
	size_t i;

	fw_buf_init(&b, 0);
	fw_buf_adds(&b, RSS_HEAD);
	fw_buf_adds(&b, before);
	for (i = 0; i < n; i++)
		add_numbered(&b, unit, i);
	fw_buf_adds(&b, after);
	fw_buf_adds(&b, RSS_TAIL);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	survives(fw_buf_str(&b), NULL, NULL);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	fw_buf_finish(&b);
	return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
}

START_TEST(linear_time)
{
	static const struct {
		const char *before, *unit, *after;
	} T[] = {
		{"<item>", "<category>c%</category>", "</item>"},
		{"<item>", "<author>a%@e.org</author>", "</item>"},
		{"<item>", "<enclosure url=\"https://e.org/%\"/>", "</item>"},
		{"", "<link rel=\"hub\" href=\"https://e.org/%\"/>", ""},
		{"", "<item><guid>same</guid><title>%</title></item>", ""},
		{"", "<item><guid>same</guid></item>", ""},
		{"", "<item><title>%", ""},
		{"<item><title>", "a&amp;%", "</title></item>"},
		{"<item><description>", "<b>%", "</description></item>"},
		{"<item><title>", "&lt;b ", "</title></item>"},
		{"<item><media:group xmlns:media=\"http://search.yahoo.com/mrss/\">", "<media:content url=\"u%\"/>",
			"</media:group></item>"},
		{"<item><itunes:keywords xmlns:itunes=\"http://www.itunes.com/dtds/podcast-1.0.dtd\">", "k%,",
			"</itunes:keywords></item>"},
		{"<item>", "<pubDate>junk %</pubDate>\n", "</item>"},
		{"<item><author>", "@%", "</author></item>"},
	};

	for (size_t i = 0; i < FW_N(T); i++) {
		bool linear = false;

		/*
		 * 8 times the size takes 8 times as long; a square would be 64. Short times are
		 * noisy, and so is a single run; a square shows in each run.
		 */
		for (int tries = 0; tries < 5 && !linear; tries++) {
			double small = seconds_for(T[i].before, T[i].unit, T[i].after, 5000);
			double large = seconds_for(T[i].before, T[i].unit, T[i].after, 40000);

			linear = large < 0.05 || large < small * 24;
		}
		ck_assert_msg(linear, "%s", T[i].unit);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit parse feed");
	TCase *t = tcase_create("feed");

	tcase_set_timeout(t, 110);
	tcase_add_test(t, memory_refused);
	tcase_add_test(t, options_checked);
	tcase_add_test(t, memory_bounded);
	tcase_add_test(t, memory_limit);
	tcase_add_test(t, json_members);
	tcase_add_test(t, retractions_bounded);
	tcase_add_test(t, other_content_bounded);
	tcase_add_test(t, shapes_bounded);
	tcase_add_test(t, shapes_cost_no_entry);
	tcase_add_test(t, new_feed_url);
	tcase_add_test(t, gzip_bomb);
	tcase_add_test(t, keys);
	tcase_add_test(t, keys_of_repeated_ids);
	tcase_add_test(t, keys_of_revisions);
	tcase_add_test(t, hashes);
	tcase_add_test(t, key_is_stable);
	tcase_add_test(t, item_extra);
	tcase_add_test(t, formats_named);
	tcase_add_test(t, sniffing);
	tcase_add_test(t, linear_time);
	suite_add_tcase(s, t);
	return run_suite(s);
}
