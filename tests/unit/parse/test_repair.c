/* SPDX-License-Identifier: ISC */
/*
 * Repairs: each alone, all together, and cut off at each byte: XML-02, XML-08, LIM-02, REL-11. Each
 * repair reports its position, to the character, whatever the encoding and the line ends.
 */
#include <check.h>
#include <iconv.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/utf8.h"
#include "feedwheel/document.h"
#include "../../suite.h"

/* A feed of two items; the tested text is on line 2, from column 28 on. */
#define HEAD "<rss version='2.0'><channel><title>T</title>\n"
#define TAIL "\n<item><guid>2</guid><title>two</title></item>\n</channel></rss>"
#define ONE(text) HEAD "<item><guid>1</guid><title>" text "</title></item>" TAIL
#define AMP "an '&' that starts no reference"
#define ENTITY "an entity that is not declared"
#define LT "a '<' that starts no markup"
#define OPEN "an element without an end tag"
#define UNQUOTED "an attribute's value without quotes"
#define BAD_CHAR "a character that XML forbids"
#define AFTER "an element after the document's element"
#define AFTER_TEXT "text after the document's element"
#define BEFORE_TEXT "text before the document's element"
#define LATE "an XML declaration that is not at the start"
#define PREFIX "an undeclared namespace prefix"
#define CASE "an end tag in another case than its start tag"
#define CDATA_TEXT "\"]]>\" outside a CDATA section"

static const struct repair {
	const char *text;
	size_t entries;
	const char *title; /* of the first */
	uint32_t line, column;
	const char *what; /* the first problem; NULL: none */
} T[] = {
	/* bare ampersands */
	{ONE("A & B"), 2, "A & B", 2, 30, AMP},
	{ONE("&&amp;&"), 2, "&&&", 2, 28, AMP},
	{ONE("<![CDATA[a]]>&"), 2, "a&", 2, 41, AMP},
	{ONE("AT&T; x"), 2, "AT&T; x", 2, 30, ENTITY},
	{HEAD "<item><guid>1</guid><title>x</title><link>http://e.example/?a=1&b=2</link></item>" TAIL, 2, "x", 2, 64,
		AMP},
	/* entities of HTML, and unknown ones */
	{ONE("a&nbsp;b"), 2,
		"a\xc2\xa0"
		"b",
		2, 29, ENTITY},
	{ONE("&eacute;&hellip;"), 2, "é…", 2, 28, ENTITY},
	{ONE("&NotEqualTilde;x"), 2, "≂̸x", 2, 28, ENTITY},
	{ONE("&nosuch; x"), 2, "&nosuch; x", 2, 28, ENTITY},
	/* unclosed elements */
	{ONE("<b>bold"), 2, "bold", 2, 35, OPEN},
	{"<rss><channel><title>T\n<item><guid>1</guid><title>one\n<item><guid>2</guid><title>two</channel></rss>", 2,
		"one", 2, 1, NULL},
	{"<feed xmlns='http://www.w3.org/2005/Atom'><title>T</title>\n<entry><id>1</id>"
	 "<title>one</title>\n<entry><id>2</id></entry></feed>",
		2, "one", 3, 1, NULL},
	{"<rss><channel><item><guid>1<title>x<link>http://e.example/<pubDate>Thu, 01 Jan 2004"
	 " 19:48:21 GMT<description>d</item></channel></rss>",
		1, "x", 1, 111, OPEN},
	{HEAD "<item><title>x<guid>1</guid><description>a <b>bold <author>j@e.example (J)</author></item>" TAIL, 2, "x",
		2, 84, OPEN},
	{HEAD "<item><guid>1</guid><title>x</title><description>a <title>b</title> <link>c</link>"
	      "</description></item>" TAIL,
		2, "x", 0, 0, NULL},
	/* crossed */
	{ONE("<b>x<i>y</b>z</i>"), 2, "xyz", 2, 36, OPEN},
	{ONE("<a>x<b>y</a>z</b>w"), 2, "xyzw", 2, 36, OPEN},
	{HEAD "<item><guid>1</guid><title>x<b></title></b></item>" TAIL, 2, "x", 2, 32, OPEN},
	/* attributes without quotes */
	{"<rss version=2.0><channel>\n<item><guid isPermaLink=false>1</guid><title>x</title></item></channel></rss>", 1,
		"x", 1, 14, UNQUOTED},
	{HEAD "<item><guid>1</guid><title>x</title><enclosure url=http://e.example/a.mp3 length='1'"
	      " type='a/b'/></item>" TAIL,
		2, "x", 2, 52, UNQUOTED},
	{HEAD "<item><guid>1</guid><title>x</title><source url=http://e.example/>s</source></item>" TAIL, 2, "x", 2, 49,
		UNQUOTED},
	/* stray < */
	{ONE("a < b"), 2, "a < b", 2, 30, LT},
	{ONE("1<2 and 3 <4"), 2, "1<2 and 3 <4", 2, 29, LT},
	{ONE("i <3 you"), 2, "i <3 you", 2, 30, LT},
	{ONE("<- back"), 2, "<- back", 2, 28, LT},
	/* CDATA */
	{ONE("<![cdata[a]]>"), 2, "a", 2, 28, "a CDATA section not in capitals"},
	{ONE("<![CDATA[a]] >"), 2, "a", 2, 28, "a CDATA section that does not end"},
	{ONE("a]]>b"), 2, "a]]>b", 2, 29, CDATA_TEXT},
	{ONE("<![CDATA[a<![CDATA[b]]>c]]>"), 2, NULL, 2, 52, CDATA_TEXT},
	/* control characters */
	{ONE("a\x01"
	     "b\x0b"
	     "c\x1f"),
		2, "abc", 2, 29, BAD_CHAR},
	{ONE("\xef\xbf\xbfx"), 2, "x", 2, 28, BAD_CHAR},
	{"\x02" ONE("x"), 2, "x", 1, 1, BAD_CHAR},
	/* junk before the document */
	{"\n\n \t<?xml version='1.0'?>" ONE("x"), 2, "x", 3, 3, LATE},
	{"<!-- made by hand -->\n<?xml version='1.0'?>" ONE("x"), 2, "x", 2, 1, LATE},
	{"PHP Notice:  Undefined index: q in /srv/x.php\n<?xml version='1.0'?>" ONE("x"), 2, "x", 1, 1, BEFORE_TEXT},
	{"<br />\n<b>Warning</b>:  mysql_connect() in <b>/a.php</b> on line <b>3</b><br />\n<?xml version='1.0'?>" ONE(
		 "x"),
		2, "x", 2, 1, AFTER},
	{"\xc3\xaf\xc2\xbb\xc2\xbf<?xml version='1.0'?>" ONE("x"), 2, "x", 1, 1, BEFORE_TEXT},
	/* byte order marks */
	{"\xef\xbb\xbf\xef\xbb\xbf" ONE("x"), 2, "x", 1, 1, "a second byte order mark"},
	{"\xef\xbb\xbf\xef\xbb\xbf<?xml version='1.0'?>" ONE("x"), 2, "x", 1, 1, "a second byte order mark"},
	{"\n\xef\xbb\xbf" ONE("x"), 2, "x", 2, 1, "a second byte order mark"},
	/* several roots */
	{ONE("x") "\n" ONE("y"), 4, "x", 5, 1, AFTER},
	{ONE("x") "<img src='pixel'/>", 2, "x", 4, 17, AFTER},
	{"<junk/>\n" ONE("x"), 2, "x", 2, 1, AFTER},
	{ONE("x") "\n<!-- 0.3 s --> bye", 2, "x", 5, 16, AFTER_TEXT},
	/* undeclared prefixes */
	{HEAD "<item><guid>1</guid><title>x</title><dc:creator>Jo</dc:creator></item>" TAIL, 2, "x", 2, 38, PREFIX},
	{HEAD "<item><guid>1</guid><title>x</title><content:encoded>c</content:encoded></item>" TAIL, 2, "x", 2, 38,
		PREFIX},
	{HEAD "<item><guid>1</guid><media:title>x</media:title></item>" TAIL, 2, "x", 2, 22, PREFIX},
	/* names in another case */
	{"<RSS VERSION='2.0'><CHANNEL><ITEM><GUID>1</GUID><TITLE>x</TITLE></ITEM></CHANNEL></RSS>", 1, "x", 0, 0, NULL},
	{"<rss><channel><Item><guid>1</Guid><title>x</title></item></channel></rss>", 1, "x", 1, 28, CASE},
	{"<FEED xmlns='http://www.w3.org/2005/Atom'><Entry><ID>1</ID><Title>x</Title></Entry></FEED>", 1, "x", 0, 0,
		NULL},
	/* inside an HTML page */
	{"<!DOCTYPE html><html><head><title>page</title></head><body><h1>x</h1>\n" ONE("x") "</body></html>", 2, "x", 2,
		1, "a feed inside an HTML page"},
	{"<html><body><pre>" ONE("x") "</pre></body></html>", 2, "x", 1, 18, "a feed inside an HTML page"},
	{"<HTML><BODY BGCOLOR=white><p>hi<br>\n" ONE("x") "</BODY></HTML>", 2, "x", 1, 21, UNQUOTED},
};

static struct fw_document *parsed(struct fw_str bytes, const char *type)
{
	struct fw_parse_options o = {.url = FW_STR("https://example.org/"), .content_type = fw_str(type)};
	struct fw_document *doc;
	struct fw_err err;

	ck_assert_msg(!fw_parse(bytes.p, bytes.len, &o, &doc, &err), "%s\n%.*s", err.text, FW_STR_ARG(bytes));
	return doc;
}

static void one_by_one(const struct repair *t, const char *type)
{
	struct fw_document *doc = parsed(fw_str(t->text), type);
	const struct fw_problem *p = doc->problems;

	ck_assert_msg(doc->entry_n == t->entries, "%zu entries: %s", doc->entry_n, t->text);
	if (t->title)
		ck_assert_msg(fw_str_eq(doc->entries->title, fw_str(t->title)), "\"%.*s\": %s",
			FW_STR_ARG(doc->entries->title), t->text);
	if (t->what) {
		ck_assert_msg(p != NULL, "no problem: %s", t->text);
		ck_assert_msg(!strcmp(p->what, t->what), "%s: %s", p->what, t->text);
		ck_assert_msg(p->line == t->line && p->column == t->column, "%u:%u: %s", p->line, p->column, t->text);
		ck_assert(p->repair[0]);
	}
	ck_assert_int_eq(p != NULL, doc->problem_n > 0);
	fw_document_free(doc);
}

START_TEST(each)
{
	one_by_one(&T[_i], "application/rss+xml");
	one_by_one(&T[_i], "text/html; charset=utf-8"); /* a feed by its content, whatever the header */
}
END_TEST

/* All that occurs in the text of an item, in one item; then each with each. */
START_TEST(together)
{
	static const char *const PART[] = {"A & B ", "a&nbsp;b ", "1<2 ", "<b>bold ", "c\001d ", "x]]>y ",
		"<![cdata[q]]> ", "&nosuch; ", "<i>z</b> "};

	for (size_t i = 0; i < FW_N(PART); i++) {
		for (size_t k = 0; k < FW_N(PART); k++) {
			struct fw_buf b = FW_BUF_INIT(0);
			struct fw_document *doc;

			fw_buf_addf(&b, HEAD "<item><guid>1</guid><title>%s%s</title></item>" TAIL, PART[i], PART[k]);
			doc = parsed(fw_buf_str(&b), NULL);
			ck_assert_msg(
				doc->entry_n == 2 && fw_str_eq(doc->entries->next->title, FW_STR("two")), "%s", b.p);
			ck_assert_msg(fw_str_eq(doc->entries->id, FW_STR("1")), "%s", b.p);
			ck_assert_uint_ge(doc->problem_n, 1);
			fw_document_free(doc);
			fw_buf_finish(&b);
		}
	}
}
END_TEST

/* ---- positions ------------------------------------------------------------------------------- */

/* Line 3, after six characters of one, two, three or four bytes: column 17. */
#define LINES(end)                                                                                                 \
	"<rss version='2.0'><channel>" end "<title>Привет</title>" end "<description>Привет & T</description>" end \
	"<item><guid>1</guid><title>x</title></item></channel></rss>"

static void says_where(struct fw_str bytes, const char *type, uint32_t column, const char *how)
{
	struct fw_document *doc = parsed(bytes, type);
	const struct fw_problem *p = doc->problems;

	while (p && strcmp(p->what, AMP) != 0)
		p = p->next;
	ck_assert_msg(p != NULL, "%s: no problem", how);
	ck_assert_msg(p->line == 3 && p->column == column, "%s: %u:%u", how, p->line, p->column);
	ck_assert_msg(fw_str_eq(doc->title, FW_STR("Привет")), "%s: %.*s", how, FW_STR_ARG(doc->title));
	fw_document_free(doc);
}

static struct fw_str encoded(const char *name, const char *text, struct fw_buf *b)
{
	iconv_t cd = iconv_open(name, "UTF-8");
	size_t left = strlen(text), space = 5 * left + 16;
	char *in = (char *)(uintptr_t)text, *at;

	ck_assert(cd != (iconv_t)-1);
	at = fw_buf_room(b, space);
	ck_assert_ptr_nonnull(at);
	space = b->cap - b->len - 1;
	left = strlen(text);
	b->len = b->cap - 1 - (iconv(cd, &in, &left, &at, &space) == 0 ? space : (ck_abort_msg("%s", name), space));
	iconv_close(cd);
	return fw_buf_str(b);
}

START_TEST(places)
{
	static const struct {
		const char *iconv, *type;
	} IN[] = {
		{"UTF-8", NULL},
		{"UTF-16", NULL},
		{"UTF-16LE", NULL},
		{"UTF-16BE", NULL},
		{"UTF-32", NULL},
		{"UTF-32BE", NULL},
		{"CP1251", "text/xml; charset=windows-1251"},
		{"KOI8-R", "text/xml; charset=koi8-r"},
		{"ISO-8859-5", "text/xml; charset=iso-8859-5"},
		{"CP932", "text/xml; charset=shift_jis"},
		{"EUC-JP", "text/xml; charset=euc-jp"},
		{"GB18030", "text/xml; charset=gb2312"},
		{"ISO-2022-JP", "text/xml; charset=iso-2022-jp"},
		{"EUC-KR", "text/xml; charset=euc-kr"},
		{"CP866", "text/xml; charset=cp866"},
	};
	static const char *const END[] = {LINES("\n"), LINES("\r\n")};

	for (size_t i = 0; i < FW_N(IN); i++) {
		for (size_t k = 0; k < FW_N(END); k++) {
			struct fw_buf b = FW_BUF_INIT(0);

			says_where(encoded(IN[i].iconv, END[k], &b), IN[i].type, 21, IN[i].iconv);
			fw_buf_finish(&b);
		}
	}
	says_where(FW_STR("\xef\xbb\xbf" LINES("\n")), NULL, 21, "a mark");
}
END_TEST

static struct fw_str packed(struct fw_str s, struct fw_buf *b)
{
	z_stream z = {.next_in = (unsigned char *)(uintptr_t)s.p, .avail_in = (unsigned)s.len};
	char *to = fw_buf_room(b, s.len + 200);

	ck_assert(to && deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
	z.next_out = (unsigned char *)to;
	z.avail_out = (unsigned)(s.len + 200);
	ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
	b->len += s.len + 200 - z.avail_out;
	deflateEnd(&z);
	return fw_buf_str(b);
}

START_TEST(places_in_gzip)
{
	struct fw_buf b = FW_BUF_INIT(0);

	says_where(packed(FW_STR(LINES("\r\n")), &b), NULL, 21, "gzip");
	fw_buf_finish(&b);
}
END_TEST

START_TEST(wrong_encoding_says_where) /* the position of the first wrong byte, not of the start */
{
	static const struct {
		struct fw_str bytes;
		const char *type;
		uint32_t line, column;
	} W[] = {
		{FW_STR("<rss><channel>\n<title>ok \xc3\xa9</title>\n<description>caf\xe9 t\xe9 \xe0 c\xf4te"
			"</description></channel></rss>"),
			NULL, 3, 17},
		{FW_STR("<?xml version='1.0' encoding='utf-8'?>\n<rss><channel>\n<title>na\xefve \x93q\x94"
			"</title></channel></rss>"),
			NULL, 3, 10},
		{FW_STR("<rss><channel>\n<title>\xcf\xf0\xe8\xe2\xe5\xf2, \xfd\xf2\xee"
			" \xe4\xeb\xe8\xed\xed\xfb\xe9 \xf2\xe5\xea\xf1\xf2 \xed\xe0 "
			"\xf0\xf3\xf1\xf1\xea\xee\xec \xff\xe7\xfb\xea\xe5</title></channel></rss>"),
			"text/xml; charset=utf-8", 2, 8},
		{FW_STR("<rss><channel>\n<title>\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac \xff</title>"
			"</channel></rss>"),
			NULL, 2, 13},
		{FW_STR("<?xml version='1.0' encoding='no-such'?><rss><channel><title>x</title></channel></rss>"), NULL,
			1, 31},
		{FW_STR("<rss><channel>\n<title>x</title></channel></rss>"), "text/xml; charset=no-such", 1, 1},
	};
	struct fw_document *doc = parsed(W[_i].bytes, W[_i].type);

	ck_assert(doc->malformed && doc->problems);
	ck_assert_msg(doc->problems->line == W[_i].line && doc->problems->column == W[_i].column, "%u:%u %s",
		doc->problems->line, doc->problems->column, doc->problems->what);
	fw_document_free(doc);
}
END_TEST

/* ---- cut off at every byte ------------------------------------------------------------------- */

#define BODY "<b>bold</b> &amp; <![CDATA[<i>raw</i> ]] > ]]> caf\xc3\xa9"
static const struct rich {
	const char *head, *item, *tail;
} RICH[] = {
	{"<?xml version='1.0'?>\n<rss version='2.0'><channel><title>T</title><link>http://e.example/</link>",
		"<item><guid>%d</guid><title>t%d</title><description>" BODY
		"</description><pubDate>Thu, 01 Jan 2004 19:48:21 GMT</pubDate></item>",
		"</channel></rss>"},
	{"<rss version='2.0' xmlns:dc='http://purl.org/dc/elements/1.1/'"
	 " xmlns:media='http://search.yahoo.com/mrss/'><channel>",
		"<item>\n<guid isPermaLink='false'>%d</guid><title><![CDATA[t%d]]></title>"
		"<dc:creator>J</dc:creator><media:group><media:content url='http://e.example/a'/>"
		"</media:group></item>\n",
		"</channel></rss>"},
	{"<feed xmlns='http://www.w3.org/2005/Atom'><title>T</title><id>f</id>",
		"<entry><id>%d</id><title type='html'>t%d</title><content type='xhtml'><div"
		" xmlns='http://www.w3.org/1999/xhtml'><p>x<br/>y</p></div></content>"
		"<link href='/a'/></entry>",
		"</feed>"},
	{"<a:feed xmlns:a='http://www.w3.org/2005/Atom'>",
		"<a:entry><a:id>%d</a:id><a:title>t%d</a:title><a:summary>" BODY "</a:summary></a:entry>", "</a:feed>"},
	{"<feed version='0.3' xmlns='http://purl.org/atom/ns#'>",
		"<entry><id>%d</id><title>t%d</title><content mode='escaped'>&lt;p&gt;x</content></entry>", "</feed>"},
	{"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'"
	 " xmlns='http://purl.org/rss/1.0/'><channel><title>T</title></channel>",
		"<item rdf:about='%d'><title>t%d</title><description>" BODY "</description></item>", "</rdf:RDF>"},
	{"<!DOCTYPE rss [<!ENTITY e 'text <b>of</b> an entity'>]><rss><channel>",
		"<item><guid>%d</guid><title>t%d</title><description>&e;&e;</description></item>", "</channel></rss>"},
	{"<html><body><rss><channel>", "<item><guid>%d</guid><title>t%d</title><br><img src=x></item>",
		"</channel></rss></body></html>"},
	{"<br/>Warning: x\n<rss><channel>", "<item><guid>%d<title>t%d<link>http://e.example/?a&b</item>", ""},
	{"<rss><channel>", "<ITEM><GUID>%d</GUID><TITLE>t%d</TITLE><!-- <item> --><?pi <item>?></ITEM>",
		"</channel></rss>"},
	{"{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"T\",\"items\":[{\"id\":\"0\",\"title\":\"t0\"}",
		",{\"id\":\"%d\",\"title\":\"t%d\",\"content_html\":\"<p>\\\"x\\\" ]}\",\"tags\":[\"a\",\"b\"]}", "]}"},
	{"{\"items\":[{\"id\":\"0\",\"title\":\"t0\"}", ",{\"title\":\"t%d\",\"_x\":{\"y\":[1,2,{}]},\"id\":\"%d\"}",
		"],\"version\":\"https://jsonfeed.org/version/1\",\"title\":\"T\"}"},
};
#define ITEMS 6

/* Complete entries are read whole, in order; one more may follow, which was cut. */
static void check_cut(const struct rich *r, struct fw_str cut, size_t complete)
{
	struct fw_parse_options o = {.url = FW_STR("https://example.org/")};
	struct fw_document *doc;
	struct fw_err err;
	char want[20];
	size_t n = 0;

	if (fw_parse(cut.p, cut.len, &o, &doc, &err)) {
		ck_assert_msg(!complete, "%zu complete entries, but %s:\n%.*s", complete, err.text, FW_STR_ARG(cut));
		return;
	}
	ck_assert_msg(doc->entry_n >= complete && doc->entry_n <= complete + 1, "%zu entries of %zu:\n%.*s",
		doc->entry_n, complete, FW_STR_ARG(cut));
	for (const struct fw_entry *e = doc->entries; e && n < complete; e = e->next, n++) {
		size_t number = r->head[0] == '{' ? n : n + 1;

		ck_assert(fw_snprintf(want, sizeof(want), "t%zu", number));
		ck_assert_msg(fw_str_eq(e->title, fw_str(want)), "\"%.*s\" is not %s:\n%.*s", FW_STR_ARG(e->title),
			want, FW_STR_ARG(cut));
		ck_assert_msg(fw_str_find(e->id, fw_str(want + 1)) != NULL, "id %.*s:\n%.*s", FW_STR_ARG(e->id),
			FW_STR_ARG(cut));
	}
	fw_document_free(doc);
}

START_TEST(cut_at_every_byte)
{
	const struct rich *r = &RICH[_i];
	size_t end[ITEMS + 1], n = 0, complete = 0;
	struct fw_buf b = FW_BUF_INIT(0);
	bool json = r->head[0] == '{', late = json && !strstr(r->head, "version");

	fw_buf_adds(&b, r->head);
	if (json)
		end[n++] = b.len;
	for (int i = 1; i <= ITEMS - json; i++) {
		struct fw_str left = fw_str(r->item);
		const char *at;

		while ((at = fw_str_find(left, FW_STR("%d"))) != NULL) { /* the number occurs twice */
			fw_buf_add(&b, left.p, (size_t)(at - left.p));
			fw_buf_addf(&b, "%d", i);
			left = fw_str_sub(left, (size_t)(at - left.p) + 2, left.len);
		}
		fw_buf_addstr(&b, left);
		end[n++] = b.len;
	}
	fw_buf_adds(&b, r->tail);
	for (size_t at = 0; at <= b.len; at++) {
		while (complete < n && end[complete] <= at)
			complete++;
		if (!late || at == b.len) /* JSON that shows only after its items that it is a feed */
			check_cut(r, fw_str_sub(fw_buf_str(&b), 0, at), complete);
		else
			check_cut(r, fw_str_sub(fw_buf_str(&b), 0, at), 0);
	}
	fw_buf_finish(&b);
}
END_TEST

/* all that can be decompressed is read; the header, its checksum and other parts may be missing */
START_TEST(gzip_cut_at_every_byte)
{
	struct fw_buf plain = FW_BUF_INIT(0), b = FW_BUF_INIT(0);
	struct fw_document *doc;
	size_t had = 0;

	fw_buf_adds(&plain, "<rss><channel>");
	for (int i = 0; i < 200; i++)
		fw_buf_addf(&plain, "<item><guid>%d</guid><title>%x</title></item>", i, (unsigned)i * 2654435761u);
	fw_buf_adds(&plain, "</channel></rss>");
	packed(fw_buf_str(&plain), &b);
	for (size_t at = 20; at <= b.len; at++) {
		struct fw_err err;

		if (fw_parse(b.p, at, NULL, &doc, &err)) {
			ck_assert_uint_eq(had, 0);
			continue;
		}
		ck_assert_uint_ge(doc->entry_n + 1, had); /* the last one may have been incomplete */
		had = FW_MAX(had, doc->entry_n);
		ck_assert_int_eq(doc->malformed, at < b.len);
		fw_document_free(doc);
	}
	ck_assert_uint_eq(had, 200);
	fw_buf_finish(&plain);
	fw_buf_finish(&b);
}
END_TEST

START_TEST(gzip_without_a_header_is_a_repair)
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct fw_document *doc = parsed(packed(FW_STR(ONE("x")), &b), "application/rss+xml");

	ck_assert_uint_eq(doc->entry_n, 2);
	ck_assert(!doc->malformed);
	ck_assert_uint_eq(doc->problem_n, 1);
	ck_assert_str_eq(doc->problems->what, "a gzip document that no header announced");
	fw_document_free(doc);
	fw_buf_finish(&b);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit parse repair");
	TCase *t = tcase_create("repair");

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, each, 0, (int)FW_N(T));
	tcase_add_test(t, together);
	tcase_add_test(t, places);
	tcase_add_test(t, places_in_gzip);
	tcase_add_loop_test(t, wrong_encoding_says_where, 0, 6);
	tcase_add_loop_test(t, cut_at_every_byte, 0, (int)FW_N(RICH));
	tcase_add_test(t, gzip_cut_at_every_byte);
	tcase_add_test(t, gzip_without_a_header_is_a_repair);
	suite_add_tcase(s, t);
	return run_suite(s);
}
