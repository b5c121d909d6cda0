/* SPDX-License-Identifier: ISC */
/*
 * Hostile shapes: documents of any size that are slow for a reader that looks at anything twice.
 * test_linear.c counts the work on them, bench/parse_bench.c measures the time. Header only.
 */
#ifndef FW_TEST_SHAPES_H
#define FW_TEST_SHAPES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * head, then units, then (if there is a mid) mid and as many units2 of half the size each, then
 * tail. '$' becomes the unit's number.
 */
struct shape {
	const char *name, *head, *unit, *tail, *mid, *unit2;
};

#define SHAPE_SAME "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* Markup: for the tokenizer, and as a document for the whole parse. */
static const struct shape XML_SHAPES[] = {
	/* elements */
	{"nested tags", "", "<a>", ""},
	{"nested tags with names of their own", "", "<a$>", ""},
	{"end tags without start", "<r>", "</b>", ""},
	{"end tags that cross", "<r>", "<a$><b$></a$></b$>", ""},
	{"open elements, then the end of others", "<r>", "<a$>", "", "", "</b$>"},
	{"open elements, ended from the outside", "<r>", "<a$>", "", "", "</a$>"},
	{"open elements, one letter's case off", "<r>", "<a$>", "", "", "</A$x>"},
	{"open elements with long names", "<r>", "<" SHAPE_SAME "$>", "", "", "</" SHAPE_SAME "x$>"},
	{"names in another case", "<r>", "<A></a>", ""},
	{"elements without end, end tags of others", "<r>", "<a></b>", ""},
	{"one long name", "<", "a", ">"},
	{"one long name's end", "<r></", "a", ">"},
	{"tags that do not end", "<r>", "<a ", ""},
	{"tags cut by the next", "<r>", "<a b='c'", ""},
	{"end tags that do not end", "<r>", "</a", ""},
	{"many roots", "", "<a/>x", ""},
	{"text outside", "", "x ", ""},
	{"marks", "", "\xef\xbb\xbf", ""},
	/* attributes */
	{"attributes", "<r", " a$='1'", "/>"},
	{"repeated attributes", "<r", " a='1'", "/>"},
	{"attributes of another case", "<r", " a$='1' A$='2'", "/>"},
	{"attributes without values", "<r", " a$", "/>"},
	{"attributes without values, then a tag", "<r><a", " b$", "<c>"},
	{"attributes without quotes", "<r", " a=b$", "/>"},
	{"junk in a tag", "<r", " =\"", "/>"},
	{"spaces in a tag", "<r", " ", "/>"},
	{"one value", "<r a='", "x", "'/>"},
	{"lines in a value", "<r a='", "x\n", "'/>"},
	{"references in a value", "<r a='", "&lt;", "'/>"},
	{"unknown references in a value", "<r a='", "&nix$;", "'/>"},
	{"tags in a value", "<r a='", "<a ", "'/>"},
	{"values without end", "<r>", "<a b=\"", ""},
	{"values without end, tags in them", "<r>", "<a b=\"<c>", ""},
	{"values in values", "<r>", "<a b='<c d=\"<e f='>", ""},
	{"values without a closing quote", "<r>", "<a b=\"x>t<c>", ""},
	/* namespaces */
	{"declarations in one tag", "<r", " xmlns:a$='u'", "/>"},
	{"declarations, nested", "<r>", "<x xmlns:a$='u'>", ""},
	{"declarations one after another", "<r>", "<a$:x xmlns:a$='u'/>", ""},
	{"default namespaces, nested", "<r>", "<x xmlns='u$'>", ""},
	{"unknown prefixes", "<r>", "<a$:x/>", ""},
	{"unknown prefixes when many are bound", "<r>", "<x xmlns:a$='u'>", "", "", "<b$:x/>"},
	{"two prefixes of one namespace", "<r xmlns:a='u' xmlns:b='u'><x", " a:c$='' b:c$=''", "/>"},
	{"colons", "<r>", "<a:b:c :d=''/>", ""},
	/* references, text */
	{"bare ampersands", "<r>", "& ", ""},
	{"ampersands", "<r>", "&", ""},
	{"references without end", "<r>", "&a", ""},
	{"numbers without end", "<r>", "&#1", ""},
	{"one long number", "<r>&#", "1", ";"},
	{"one long reference", "<r>&", "a", ";"},
	{"surrogates", "<r>", "&#xd800;", ""},
	{"references", "<r>", "&amp;&lt;&nbsp;&eacute;&#8217;", ""},
	{"stray '<'", "<r>", "< ", ""},
	{"'<' in a row", "<r>", "<", ""},
	{"brackets", "<r>", "]", ""},
	{"\"]]>\"", "<r>", "]]>", ""},
	{"CR", "<r>", "\r", ""},
	{"CR LF", "<r>", "\r\n", ""},
	{"control characters", "<r>", "\x01", ""},
	{"U+FFFE", "<r>", "\xef\xbf\xbe", ""},
	/* sections, comments, instructions, declarations */
	{"sections", "<r>", "<![CDATA[x]]>", ""},
	{"sections without end", "<r>", "<![CDATA[", ""},
	{"sections without end, brackets in them", "<r>", "<![CDATA[]]", ""},
	{"sections without end, tags in them", "<r>", "<a><![CDATA[x]]</a>", ""},
	{"section begins", "<r>", "<![", ""},
	{"comments", "<r>", "<!--x-->", ""},
	{"comments without end", "<r>", "<!--", ""},
	{"comments with hyphens", "<r>", "<!-- --", ""},
	{"comments ended as HTML has it", "<r>", "<!-- --!>", ""},
	{"instructions", "<r>", "<?a b?>", ""},
	{"instructions without end", "<r>", "<?a ", ""},
	{"instructions that end like tags", "<r>", "<?a >", ""},
	{"XML declarations", "<r>", "<?xml version='1.0'?><a>", ""},
	{"declarations of nothing", "<r>", "<!a", ""},
	/* the DTD */
	{"entities", "<!DOCTYPE r [", "<!ENTITY e$ 'x'>", "]><r/>"},
	{"entities, used", "<!DOCTYPE r [", "<!ENTITY e$ 'x'>", "</r>", "]><r>", "&e$;"},
	{"entities of entities", "<!DOCTYPE r [<!ENTITY a '&#60;b>&lt;&#60;/b>'>", "<!ENTITY e$ '&a;&a;'>", "</r>",
		"]><r>", "&e$;"},
	{"one entity, used", "<!DOCTYPE r [<!ENTITY e '&#60;!--&#60;?a '>]><r>", "&e;", "</r>"},
	{"one entity in a value", "<!DOCTYPE r [<!ENTITY e 'x'>]><r a='", "&e;", "'/>"},
	{"one long entity", "<!DOCTYPE r [<!ENTITY e '", "&#60;?a ", "'>]><r>&e;</r>"},
	{"attribute lists", "<!DOCTYPE r [", "<!ATTLIST r$ a CDATA 'x'>", "]><r/>"},
	{"declared attributes", "<!DOCTYPE r [<!ATTLIST r", " a$ CDATA 'x'", ">]><r/>"},
	{"declared attributes, used", "<!DOCTYPE r [<!ATTLIST r", " a$ NMTOKEN #IMPLIED", "", ">]><x>", "<r/>"},
	{"declared attributes, used with others", "<!DOCTYPE r [<!ATTLIST r", " a$ NMTOKEN #IMPLIED", "", ">]><x>",
		"<r b='' c=''/>"},
	{"declared defaults, used", "<!DOCTYPE r [<!ATTLIST r", " a$ CDATA 'x'", "", ">]><x>", "<r/>"},
	{"instructions in the DTD", "<!DOCTYPE r [", "<?a >", ""},
	{"comments in the DTD", "<!DOCTYPE r [", "<!--x->", ""},
	{"literals in the DTD", "<!DOCTYPE r [", "<!ENTITY e$ \"'>", ""},
	{"declarations without end", "<!DOCTYPE r [", "<!", ""},
	{"parentheses", "<!DOCTYPE r [<!ELEMENT r ", "(", ""},
	{"a DOCTYPE without end", "<!DOCTYPE ", "r ", ""},
	{"DOCTYPEs", "", "<!DOCTYPE r>", ""},
};

#define SHAPE_RSS "<rss version=\"2.0\"><channel><title>T</title><link>https://e.org/</link>"
#define SHAPE_END "</channel></rss>"
#define SHAPE_ATOM "<feed xmlns='http://www.w3.org/2005/Atom' xml:base='https://e.org/"

/* Feeds: for the whole parse. */
static const struct shape FEED_SHAPES[] = {
	{"categories of an entry", SHAPE_RSS "<item>", "<category>c$</category>", "</item>" SHAPE_END},
	{"authors of an entry", SHAPE_RSS "<item>", "<author>a$@e.org</author>", "</item>" SHAPE_END},
	{"enclosures of an entry", SHAPE_RSS "<item>", "<enclosure url=\"https://e.org/$\"/>", "</item>" SHAPE_END},
	{"hubs", SHAPE_RSS, "<link rel=\"hub\" href=\"https://e.org/$\"/>", SHAPE_END},
	{"entries", SHAPE_RSS, "<item><guid>$</guid><title>t</title></item>", SHAPE_END},
	{"entries with one id", SHAPE_RSS, "<item><guid>same</guid><title>$</title></item>", SHAPE_END},
	{"entries that are equal", SHAPE_RSS, "<item><guid>same</guid></item>", SHAPE_END},
	{"entries without anything", SHAPE_RSS, "<item/>", SHAPE_END},
	{"entries in entries", SHAPE_RSS, "<item><title>$", ""},
	{"elements without end in an entry", SHAPE_RSS "<item>", "<x><link/>", ""},
	{"elements without end, one in the other", SHAPE_RSS "<item>", "<x>", "", "", "<link/>"},
	{"entries with elements without end", SHAPE_RSS, "<item><x>$<link/></item>", SHAPE_END},
	{"a channel with elements without end", SHAPE_RSS, "<x>$<title/>", SHAPE_END},
	{"texts without end before a module's", SHAPE_RSS "<item xmlns:dc=\"http://purl.org/dc/elements/1.1/\">",
		"<description>$<b/><dc:date/>", ""},
	{"values without end before unknown elements", SHAPE_RSS "<item>", "<guid>$<x:y/>", ""},
	{"default namespaces without end", SHAPE_RSS, "<x xmlns='u$'><title/>", ""},
	{"channels without items in another document", "<a>", "<channel>$</channel>", "</a>"},
	{"Atom's names without entries", "", "<a xmlns='http://www.w3.org/2005/Atom'>$</a>", ""},
	{"unknown elements with the feed's inside", SHAPE_RSS "<item>", "<x><link/></x>", "</item>" SHAPE_END},
	{"references in a title", SHAPE_RSS "<item><title>", "a&amp;$", "</title></item>" SHAPE_END},
	{"HTML references in a title", SHAPE_RSS "<item><title>", "&amp;eacute;", "</title></item>" SHAPE_END},
	{"tags begun in a title", SHAPE_RSS "<item><title>", "&lt;b ", "</title></item>" SHAPE_END},
	{"tags in a title", SHAPE_RSS "<item><title>", "&lt;b&gt;x", "</title></item>" SHAPE_END},
	{"titles", SHAPE_RSS "<item>", "<title>$</title>", "</item>" SHAPE_END},
	{"descriptions", SHAPE_RSS "<item>", "<description>$</description>", "</item>" SHAPE_END},
	{"markup in a description", SHAPE_RSS "<item><description>", "<b>$", "</description></item>" SHAPE_END},
	{"markup in a description, closed", SHAPE_RSS "<item><description>", "<b>$</b>",
		"</description></item>" SHAPE_END},
	{"xhtml", SHAPE_ATOM "'><entry><content type='xhtml'>", "<p xmlns='http://www.w3.org/1999/xhtml'>&lt;$</p>",
		"</content></entry></feed>"},
	{"media in a group", SHAPE_RSS "<item><media:group xmlns:media=\"http://search.yahoo.com/mrss/\">",
		"<media:content url=\"u$\"/>", "</media:group></item>" SHAPE_END},
	{"keywords", SHAPE_RSS "<item><itunes:keywords xmlns:itunes=\"http://www.itunes.com/dtds/podcast-1.0.dtd\">",
		"k$,", "</itunes:keywords></item>" SHAPE_END},
	{"junk dates", SHAPE_RSS "<item>", "<pubDate>junk $</pubDate>\n", "</item>" SHAPE_END},
	{"problems in one line", SHAPE_RSS "<item>", "<pubDate>junk $</pubDate>", "</item>" SHAPE_END},
	{"a name of at signs", SHAPE_RSS "<item><author>", "@$", "</author></item>" SHAPE_END},
	{"bases, nested", SHAPE_ATOM "'>", "<x xml:base='abcdefghijklmnopqrstuvwxyz$/'>", ""},
	{"a long base", SHAPE_ATOM, "x", "</feed>", "/'>", "<entry><link href='$'/></entry>"},
	{"a long base, paths up", SHAPE_ATOM, "x/", "</feed>", "'>", "<entry><link href='../$'/></entry>"},
	{"paths up", SHAPE_ATOM "'><entry><link href='", "../", "'/></entry></feed>"},
	{"paths up and down", SHAPE_ATOM "'><entry><link href='", "x/../", "'/></entry></feed>"},
	{"a link of the feed, long", SHAPE_ATOM "'><link href='", "x", "</feed>", "'/>",
		"<entry><link href='$'/></entry>"},
	{"an author of the feed, long", SHAPE_ATOM "'><author><name>", "x ", "</feed>", "</name></author>",
		"<entry><id>$</id></entry>"},
	{"a title of the feed, long", SHAPE_ATOM "'><title>", "&amp;", "</feed>", "</title>",
		"<entry><id>$</id></entry>"},
	{"languages", SHAPE_ATOM "' xml:lang='", "x", "</feed>", "'>", "<entry xml:lang='$'><id>$</id></entry>"},
	{"unknown elements", SHAPE_RSS "<item xmlns:x='urn:x'>", "<x:a$ b='$'>t</x:a$>", "</item>" SHAPE_END},
	{"source", SHAPE_ATOM "'><entry>", "<source><title>$</title></source>", "</entry></feed>"},
	{"base64", SHAPE_ATOM "'><entry><content type='image/png'>", "QUJD\n", "</content></entry></feed>"},
	{"chapters", SHAPE_RSS "<item><psc:chapters xmlns:psc='http://podlove.org/simple-chapters'>",
		"<psc:chapter start='$' title='t'/>", "</psc:chapters></item>" SHAPE_END},
	{"places", SHAPE_RSS "<item><georss:line xmlns:georss='http://www.georss.org/georss'>", "1 2 ",
		"</georss:line></item>" SHAPE_END},
	{"RDF lists",
		"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'>",
		"<item rdf:about='u$'><title>t</title></item>", "</rdf:RDF>"},
};

static const struct shape JSON_SHAPES[] = {
	{"JSON items", "{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"t\",\"items\":[{}",
		",{\"id\":\"$\"}", "]}"},
	{"JSON items, cut off", "{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"t\",\"items\":[{}",
		",{\"id\":\"$\"}", ",{\"id"},
	{"JSON items with one id", "{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"t\",\"items\":[{}",
		",{\"id\":\"1\"}", "]}"},
	{"JSON escapes", "{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"", "\\u00e9\\n",
		"\",\"items\":[{\"id\":\"1\"}]}"},
	{"JSON members", "{\"version\":\"https://jsonfeed.org/version/1.1\",\"items\":[{\"id\":\"1\"", ",\"_x$\":$",
		"}]}"},
	{"JSON numbers", "{\"version\":\"https://jsonfeed.org/version/1.1\",\"items\":[{\"id\":\"1\",\"_x\":[1", ",1",
		"]}]}"},
	{"JSON tags", "{\"version\":\"https://jsonfeed.org/version/1.1\",\"items\":[{\"id\":\"1\",\"tags\":[\"x\"",
		",\"t$\"", "]}]}"},
	{"JSON brackets", "{\"version\":\"https://jsonfeed.org/version/1.1\",\"items\":[{\"id\":\"1\",\"_x\":", "[",
		""},
	{"JSON braces", "{\"version\":\"https://jsonfeed.org/version/1.1\",\"items\":[", "{\"a\":", ""},
	{"JSON quotes", "{\"version\":\"https://jsonfeed.org/version/1.1\",\"items\":[", "\"", ""},
};

#define SHAPE_OPML "<opml version='2.0'><body>"

static const struct shape OPML_SHAPES[] = {
	{"outlines", SHAPE_OPML, "<outline xmlUrl='http://e.org/$' text='$'/>\n", "</body></opml>"},
	{"folders", SHAPE_OPML, "<outline text='$'><outline xmlUrl='u$'/></outline>", "</body></opml>"},
	{"folders, nested", SHAPE_OPML, "<outline text='$'><outline xmlUrl='u$'/>", ""},
	{"outlines, then some without an address", SHAPE_OPML, "<outline xmlUrl='u$'/>\n", "", "",
		"<outline xmlUrl=''/>\n"},
	{"outlines, then some that are damaged twice", SHAPE_OPML, "<outline xmlUrl='u$'/>", "", "",
		"<outline xmlUrl='' a=b/>"},
};

struct shape_text {
	char *p;
	size_t n, cap;
};

static void shape_add(struct shape_text *t, const char *s, size_t number)
{
	for (; *s; s++) {
		char digits[24] = {*s, '\0'};
		int n = *s == '$' ? snprintf(digits, sizeof(digits), "%zu", number) : 1;

		if (t->n + 32 > t->cap) {
			char *p = realloc(t->p, t->cap = t->cap * 2 + 4096);

			if (!p)
				abort();
			t->p = p;
		}
		memcpy(t->p + t->n, digits, (size_t)n);
		t->n += (size_t)n;
	}
}

/* A document of at least `size` bytes; the caller frees it. */
static struct shape_text shape_build(const struct shape *s, size_t size)
{
	struct shape_text t = {malloc(size + size / 4 + 4096), 0, size + size / 4 + 4096};
	size_t units = 0;

	if (!t.p)
		abort();
	shape_add(&t, s->head, 0);
	while (t.n < (s->mid ? size / 2 : size))
		shape_add(&t, s->unit, units++);
	if (s->mid) {
		shape_add(&t, s->mid, 0);
		for (units = 0; t.n < size; units++)
			shape_add(&t, s->unit2, units);
	}
	shape_add(&t, s->tail, 0);
	return t;
}

#endif
