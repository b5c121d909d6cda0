/* SPDX-License-Identifier: ISC */
/* The tokenizer: good and broken XML, its limits, its time, and expat as the oracle. */
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "parse/charset/entity.h"
#include "parse/xml/xml.h"
#if FW_HAVE_EXPAT
#include "trace.h"
#include "../../suite.h"
#endif

#define LIT(s) ((struct fw_str){(s), sizeof(s) - 1})

/* ---- events as text: (name attribute=value "text" 'cdata' ) ---------------------------------- */

struct shown {
	struct fw_buf out;
	unsigned problems;
	const char *what; /* the first problem */
	size_t offset;
};

static void show_name(struct shown *t, const struct fw_xml_name *n)
{
	if (n->prefix.len)
		fw_buf_addf(&t->out, "%.*s:", FW_STR_ARG(n->prefix));
	fw_buf_addstr(&t->out, n->local);
}

static int on_start(void *ctx, const struct fw_xml_name *name, const struct fw_xml_attr *a, size_t n)
{
	struct shown *t = ctx;

	fw_buf_addc(&t->out, '(');
	show_name(t, name);
	for (size_t i = 0; i < n; i++) {
		fw_buf_addc(&t->out, ' ');
		show_name(t, &a[i].name);
		fw_buf_addc(&t->out, '=');
		fw_buf_addstr(&t->out, a[i].value);
	}
	return 0;
}

static int on_end(void *ctx, const struct fw_xml_name *name)
{
	struct shown *t = ctx;

	(void)name;
	fw_buf_addc(&t->out, ')');
	return 0;
}

static int on_text(void *ctx, struct fw_str text, bool cdata)
{
	struct shown *t = ctx;
	char quote = cdata ? '\'' : '"';

	if (t->out.len && t->out.p[t->out.len - 1] == quote) {
		t->out.len--; /* pieces of one run */
	} else {
		fw_buf_addc(&t->out, quote);
	}
	fw_buf_addstr(&t->out, text);
	fw_buf_addc(&t->out, quote);
	return 0;
}

static void on_problem(void *ctx, size_t offset, const char *what, const char *repair)
{
	struct shown *t = ctx;

	ck_assert_ptr_nonnull(repair);
	if (t->problems++ == 0) {
		t->what = what;
		t->offset = offset;
	}
}

static const struct fw_xml_handler SHOW = {on_start, on_end, on_text, NULL, NULL, on_problem};

/* Tokenizes. The input is copied to exactly its size, so that ASan detects a read beyond it. */
static bool show(struct shown *t, struct fw_str in, const struct fw_limits *limits, bool whole)
{
	struct fw_arena a;
	struct fw_xml x = {.arena = &a, .handler = &SHOW, .ctx = t, .whole_text = whole};
	struct fw_err err;
	char *copy = malloc(in.len + !in.len);

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, in.p, in.len);
	if (limits)
		x.limits = *limits;
	*t = (struct shown){0};
	fw_arena_init(&a, 0);
	ck_assert_int_eq(fw_xml_parse(&x, copy, in.len, &err), 0);
	fw_buf_addc(&t->out, '\0');
	fw_arena_finish(&a);
	free(copy);
	return !x.malformed;
}

struct row {
	struct fw_str in;
	const char *out;
	const char *what; /* a part of the first problem's text; NULL: well-formed */
};

static void check_row(const struct row *r, bool whole)
{
	struct shown t;
	bool ok = show(&t, r->in, NULL, whole);

	ck_assert_msg(
		strcmp(t.out.p, r->out) == 0, "%.*s\n   gave %s\n  wanted %s", FW_STR_ARG(r->in), t.out.p, r->out);
	ck_assert_msg(ok == !r->what, "%.*s\n  malformed: %d (%s)", FW_STR_ARG(r->in), !ok, t.what ? t.what : "");
	if (r->what)
		ck_assert_msg(t.what && strstr(t.what, r->what), "%.*s\n  said: %s", FW_STR_ARG(r->in),
			t.what ? t.what : "nothing");
	fw_buf_finish(&t.out);
}

/* ---- well-formed ----------------------------------------------------------------------------- */

static const struct row GOOD[] = {
	{LIT("<a/>"), "(a)"},
	{LIT("<a></a >"), "(a)"},
	{LIT("<?xml version='1.0' encoding=\"utf-8\" standalone='no' ?>\n<!-- c --><?p d?><a>x</a>\n"), "(a\"x\")"},
	{LIT("<a b='1' c = \"2\">x<b/>y</a>"), "(a b=1 c=2\"x\"(b)\"y\")"},
	{LIT("<a b='&lt;&amp;&#65;&#x42;&apos;'>&gt;&quot;&#8217;.</a>"), "(a b=<&AB'\">\"\xe2\x80\x99.\")"},
	{LIT("<a b='x\n y\tz\r\n!&#10;'/>"), "(a b=x  y z !\n)"},
	{LIT("<a>1\r\n2\r3</a>"), "(a\"1\n2\n3\")"},
	{LIT("<a><![CDATA[<b>&amp;]] >\r\n]]>]</a>"), "(a'<b>&amp;]] >\n'\"]\")"},
	{LIT("<a><![CDATA[]]></a>"), "(a)"},
	{LIT("<!DOCTYPE a [<!ENTITY e 'x<b>&#38;lt;</b>'><!ENTITY f '&e;y'>]><a>&f;</a>"), "(a\"x\"(b\"<\")\"y\")"},
	{LIT("<!DOCTYPE a [<!ENTITY e 'p&#10;q'>]><a b='&e;'>&e;</a>"), "(a b=p q\"p\nq\")"},
	{LIT("<!DOCTYPE a [<!ATTLIST a t NMTOKENS #IMPLIED d CDATA 'v&lt;'>]><a t='  x   y '/>"), "(a t=x y d=v<)"},
	{LIT("<!DOCTYPE a SYSTEM 'http://x.example/a.dtd'><a>&eacute;</a>"), "(a\"\xc3\xa9\")"},
	{LIT("<!DOCTYPE a PUBLIC '-//A//B//EN' \"u\" [ <!-- x > --> <?y > ?> %p; <!ENTITY e 'x'> ]><a/>"), "(a)"},
	{LIT("<!DOCTYPE a [<!ELEMENT a (b|(c,d?)*|e+)><!ELEMENT b (#PCDATA|c)*><!ELEMENT c EMPTY>"
	     "<!NOTATION n PUBLIC 'p'>]><a/>"),
		"(a)"},
	{LIT("<\xc3\xa9 \xe5\x90\x8d='1'/>"), "(\xc3\xa9 \xe5\x90\x8d=1)"},
	{LIT("<x:a xmlns:x='u' x:b='1' b='2' xml:lang='de'/>"), "(x:a x:b=1 b=2 xml:lang=de)"},
	{LIT("<a-long.name_of-more:than-sixteen xmlns:a-long.name_of-more='u' attribute-that-is-longer-than='1'>"
	     "</a-long.name_of-more:than-sixteen>"),
		"(a-long.name_of-more:than-sixteen attribute-that-is-longer-than=1)"},
	{LIT("<a>]]&gt; ] ]]</a>"), "(a\"]]> ] ]]\")"},
	{LIT("<a>&lt;p&gt;more than sixteen bytes of text\r\nand &amp;amp; a line\rend&#xd;&#10;</a>"),
		"(a\"<p>more than sixteen bytes of text\nand &amp; a line\nend\r\n\")"},
	{LIT("<!DOCTYPE a [<!ENTITY e '<b>&#38;amp;</b>x'>]><a>&lt;&e;&gt;<![CDATA[&]]>&quot;&apos;</a>"),
		"(a\"<\"(b\"&\")\"x>\"'&'\"\"'\")"},
	{LIT("<a><!-- - -> <b> --></a>"), "(a)"},
};

START_TEST(good)
{
	check_row(&GOOD[_i], false);
	check_row(&GOOD[_i], true);
}
END_TEST

/* ---- repairs --------------------------------------------------------------------------------- */

static const struct row BROKEN[] = {
	/* references */
	{LIT("<a>AT&T &amp Co &; & </a>"), "(a\"AT&T &amp Co &; & \")", "starts no reference"},
	{LIT("<a b='x?y=1&z=2'/>"), "(a b=x?y=1&z=2)", "starts no reference"},
	{LIT("<a>&nbsp;&eacute;&bogus;</a>"), "(a\"\xc2\xa0\xc3\xa9&bogus;\")", "not declared"},
	{LIT("<a>&nGt;</a>"), "(a\"\xe2\x89\xab\xe2\x83\x92\")", "not declared"},
	{LIT("<a>&#8217 &#x; &#; &#X41;</a>"), "(a\"\xe2\x80\x99 &#x; &#; A\")", "without a semicolon"},
	{LIT("<a>&#0;&#xD800;&#1114112;&#99999999999999;&#1;.</a>"),
		"(a\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd.\")", "an invalid character"},
	{LIT("<a>&#xD83D;&#xDE00;</a>"), "(a\"\xf0\x9f\x98\x80\")", "two surrogates"},
	{LIT("<!DOCTYPE a [<!ENTITY e '&f;'><!ENTITY f '&e;'>]><a>x&e;y</a>"), "(a\"xy\")", "recursive entity"},
	{LIT("<!DOCTYPE a [<!ENTITY e '<b>'>]><a>&e;x</b></a>"), "(a(b\"x\"))", "begins or ends inside"},
	{LIT("<!DOCTYPE a [<!ENTITY e '<b'>]><a b='&e;'/>"), "(a b=<b)", "'<' in an attribute"},
	{LIT("<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><a b='&e;'/>"), "(a b=)", "not text here"},
	/* tags */
	{LIT("<a>1 < 2 <3 <> <- <=></a>"), "(a\"1 < 2 <3 <> <- <=>\")", "starts no markup"},
	{LIT("<a>if x <y and z <b>c</b></a>"), "(a\"if x <y and z \"(b\"c\"))", "without a value"},
	{LIT("<a>mail <me@x.example> <http://x.example/></a>"), "(a\"mail <me@x.example> <http://x.example/>\")",
		"starts no markup"},
	{LIT("<a b=1 c=x/y d='2'e='3' f>t</a>"), "(a b=1 c=x/y d=2 e=3 f=\"t\")", "without quotes"},
	{LIT("<a><b c=d/><b c=d/e/></a>"), "(a(b c=d)(b c=d/e))", "without quotes"},
	{LIT("<a b='1' b='2'/>"), "(a b=1)", "same attribute twice"},
	{LIT("<a xmlns:x='u' xmlns:y='u' x:b='1' y:b='2'/>"), "(a x:b=1)", "same attribute twice"},
	{LIT("<a b='x<y'/>"), "(a b=x<y)", "'<' in an attribute"},
	{LIT("<a b='by <i c='d'>me</i>.' e='f'/>"), "(a b=by <i c='d'>me</i>. e=f)", "'<' in an attribute"},
	{LIT("<r><a b=\"x>text</a> more</r>"), "(r(a b=x\"text\")\" more\")", "without its closing quote"},
	{LIT("<r><a b=\"x/><c>y</c></r>"), "(r(a b=x)(c\"y\"))", "without its closing quote"},
	{LIT("<a \"x\" ;y z='1'/>"), "(a x= y= z=1)", "form no attribute"},
	{LIT("<a b='1' <c>x</c></a>"), "(a b=1(c\"x\"))", "does not end"},
	{LIT("<a><b>x</a>"), "(a(b\"x\"))", "without an end tag"},
	{LIT("<a><b><i>x</b>y</i>z</a>"), "(a(b(i\"x\"))\"yz\")", "without an end tag"},
	{LIT("<a>x</b>y</a>"), "(a\"xy\")", "without a start tag"},
	{LIT("<A><Title>x</TITLE>y</a>"), "(A(Title\"x\")\"y\")", "another case"},
	{LIT("<a>x</a junk><b/>"), "(a\"x\")(b)", "malformed end tag"},
	{LIT("<a>x</ a></></a>"), "(a\"x\")", "malformed end tag"},
	{LIT("<a>x</a<b/>"), "(a\"x\")(b)", "malformed end tag"},
	/* names and namespaces */
	{LIT("<a:b/>"), "(a:b)", "undeclared namespace prefix"},
	{LIT("<a x:b='1'/>"), "(a x:b=1)", "undeclared namespace prefix"},
	{LIT("<a xmlns:x=''/>"), "(a)", "bound to an empty URI"},
	{LIT("<a xmlns:xml='u'/>"), "(a)", "declared anew"},
	{LIT("<a xmlns:xmlns='u'/>"), "(a)", "declared anew"},
	{LIT("<a xmlns:x='http://www.w3.org/XML/1998/namespace'/>"), "(a)", "declared anew"},
	{LIT("<a xmlns='http://www.w3.org/2000/xmlns/'/>"), "(a)", "reserved namespace"},
	{LIT("<x:a:b xmlns:x='u'/>"), "(x:a:b)", "misplaced colon"},
	{LIT("<a\xc3\x97/>"), "(a\xc3\x97)", "names cannot have"},
	/* sections, comments, instructions */
	{LIT("<a>x]]>y</a>"), "(a\"x]]>y\")", "outside a CDATA section"},
	{LIT("<a>&amp;]]>y</a>"), "(a\"&]]>y\")", "outside a CDATA section"},
	{LIT("<a>&nGt;&nGt;&amp;&nGt;x</a>"), /* five bytes that become six */
		"(a\"\xe2\x89\xab\xe2\x83\x92\xe2\x89\xab\xe2\x83\x92&\xe2\x89\xab\xe2\x83\x92x\")", "not declared"},
	{LIT("<a>&lt;1 & 2 < 3 &amp; &#0; &#x1; &bogus; & </a>"), "(a\"<1 & 2 < 3 & \xef\xbf\xbd  &bogus; & \")",
		"starts no reference"},
	{LIT("<a><![cdata[x]]></a>"), "(a'x')", "not in capitals"},
	{LIT("<r><a><![CDATA[x<b>]]</a><c/></r>"), "(r(a'x<b>')(c))", "does not end"},
	{LIT("<r><a><![CDATA[x ]></a><c/></r>"), "(r(a'x ')(c))", "does not end"},
	{LIT("<r><a><![CDATA[x</a>"), "(r(a'x</a>'))", "does not end"},
	{LIT("<a><!-- x -- y -->z</a>"), "(a\"z\")", "\"--\" inside"},
	{LIT("<a><!-- x --!>z<!-- -- >.</a>"), "(a\"z.\")", "\"--\" inside"},
	{LIT("<a><!-- x>z</a>"), "(a\"z\")", "comment that does not end"},
	{LIT("<a><!---->z<!--->y</a>"), "(a\"zy\")", "comment that does not end"},
	{LIT("<a><? x ?><?p x>z</a>"), "(a\"z\")", "proper name"},
	{LIT("<a><!foo bar>z<![if x]>y<![endif]></a>"), "(a\"zy\")", "misplaced declaration"},
	{LIT("<a>x\x01y\xef\xbf\xbfz\x0c</a>"), "(a\"xyz\")", "XML forbids"},
	{LIT("<a b='x\x01y\xef\xbf\xbe'/>"), "(a b=xy)", "XML forbids"},
	/* around the document */
	{LIT("\n<?xml version='1.0'?><a/>"), "(a)", "not at the start"},
	{LIT("\xef\xbb\xbf<a/>"), "(a)", "byte order mark"},
	{LIT("Warning: x on line 1\n<?xml version='1.0'?><a/>"), "(a)", "text before"},
	{LIT("<br />\n<b>Warning</b>: x\n<?xml version='1.0'?><a>y</a>"), "(br)(b\"Warning\")(a\"y\")",
		"element after"},
	{LIT("<html><pre><?xml version='1.0'?><a>y</a></pre></html>"), "(html(pre))(a\"y\")", "not at the start"},
	{LIT("<a/>x<b/>"), "(a)(b)", "text after"},
	{LIT("<a/><b/>"), "(a)(b)", "element after"},
	{LIT("<a/>&amp;<![CDATA[x]]>"), "(a)", "reference outside"},
	{LIT("<!DOCTYPE a [<!ENTITY e '</a'>]><a>x&e;&e;&e;</a>"), "(a\"x\")", "ends inside a tag"},
	{LIT("<?xml version=1.0?><a/>"), "(a)", "malformed XML declaration"},
	{LIT("<?xml encoding='utf-8'?><a/>"), "(a)", "malformed XML declaration"},
	{LIT("<?xml version='1.0' standalone='maybe'?><a/>"), "(a)", "malformed XML declaration"},
	{LIT("<?xml version='1.0'><a/>"), "(a)", "declaration that does not end"},
	{LIT("<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\"><a/>"), "(a)", "malformed DOCTYPE"},
	{LIT("<!doctype a><a/><!DOCTYPE b>"), "(a)", "not in capitals"},
	{LIT("<!DOCTYPE a [<!ENTITY e '%p;'><!FOO><!ELEMENT a (b,c|d)><!ENTITY f 'x'>]><a>&f;</a>"), "(a\"x\")",
		"declaration in the DTD"},
	{LIT("<!DOCTYPE a [<a>x</a>"), "(a\"x\")", "declaration in the DTD"},
	/* cut */
	{LIT(""), "", "without an element"},
	{LIT(" \n"), "", "without an element"},
	{LIT("<"), "", "starts no markup"},
	{LIT("<a><b>x"), "(a(b\"x\"))", "without an end tag"},
	{LIT("<a><b>x</b><c d='"), "(a(b\"x\"))", "ends inside a tag"},
	{LIT("<a><b>x</b><c"), "(a(b\"x\"))", "ends inside a tag"},
	{LIT("<a><b>x</b></a"), "(a(b\"x\"))", "ends inside a tag"},
	{LIT("<a>x&am"), "(a\"x&am\")", "starts no reference"},
	{LIT("<a>x<!-"), "(a\"x\")", "misplaced declaration"},
	{LIT("<a>x<![CDATA[y"), "(a\"x\"'y')", "does not end"},
};

START_TEST(broken)
{
	check_row(&BROKEN[_i], false);
	check_row(&BROKEN[_i], true);
}
END_TEST

/* Each prefix of a document: no complete element is lost, and nothing crashes. */
START_TEST(cut_anywhere)
{
	static const char doc[] = "<?xml version='1.0'?>\n<!DOCTYPE r [<!ENTITY e 'x'>]>\n<r xmlns:d='u'><i d:a=\"1\">&"
				  "e;<![CDATA[c]]></i>"
				  "<!-- n --><i b='2'>t&amp;u</i><?p q?></r>";

	for (size_t n = 0; n < sizeof(doc); n++) {
		struct shown t;

		(void)show(&t, (struct fw_str){doc, n}, NULL, false);
		if (n >= 101)
			ck_assert_msg(strstr(t.out.p, "(i d:a=1\"x\"'c')") != NULL, "%zu: %s", n, t.out.p);
		if (n < sizeof(doc) - 1)
			ck_assert(n == 0 || t.problems > 0);
		fw_buf_finish(&t.out);
	}
}
END_TEST

START_TEST(offsets)
{
	static const char doc[] = "<a>\n  <b>x</b>\n & </a>";
	struct shown t;
	uint32_t line, column;

	(void)show(&t, LIT(doc), NULL, false);
	ck_assert_uint_eq(t.offset, 16);
	fw_xml_position(doc, sizeof(doc) - 1, t.offset, &line, &column);
	ck_assert_uint_eq(line, 3);
	ck_assert_uint_eq(column, 2);
	fw_xml_position("\xc3\xa9\xc3\xa9x", 5, 4, &line, &column);
	ck_assert_uint_eq(column, 3);
	fw_xml_position("a\r\nb\rc", 6, 99, &line, &column);
	ck_assert_uint_eq(line, 3);
	fw_buf_finish(&t.out);
}
END_TEST

static int count_text(void *ctx, struct fw_str text, bool cdata)
{
	(void)text, (void)cdata;
	++*(int *)ctx;
	return 0;
}

/* Text that is requested whole is one event. */
START_TEST(whole_text)
{
	static const char doc[] = "<a>x &lt;b&gt; &#8212; &amp;amp; y</a>";
	static const struct fw_xml_handler h = {.text = count_text};
	int pieces = 0, whole = 0;
	struct fw_arena a;
	struct fw_xml x = {.arena = &a, .handler = &h, .ctx = &pieces};

	fw_arena_init(&a, 0);
	ck_assert_int_eq(fw_xml_parse(&x, doc, sizeof(doc) - 1, NULL), 0);
	x.whole_text = true;
	x.ctx = &whole;
	ck_assert_int_eq(fw_xml_parse(&x, doc, sizeof(doc) - 1, NULL), 0);
	ck_assert_int_eq(whole, 1);
	ck_assert_int_gt(pieces, 4);
	fw_arena_finish(&a);
}
END_TEST

static int stop_at_b(void *ctx, const struct fw_xml_name *name, const struct fw_xml_attr *a, size_t n)
{
	(void)ctx, (void)a, (void)n;
	return fw_str_eq(name->local, FW_STR("b")) ? 42 : 0;
}

START_TEST(handler_stops)
{
	static const struct fw_xml_handler h = {.start = stop_at_b};
	struct fw_arena a;
	struct fw_xml x = {.arena = &a, .handler = &h};
	struct fw_err err;

	fw_arena_init(&a, 0);
	ck_assert_int_eq(fw_xml_parse(&x, "<a><b/><c></a>", 14, &err), 42);
	ck_assert_uint_eq(x.offset, 3);
	ck_assert_uint_eq(x.end_offset, 7);
	fw_arena_finish(&a);
}
END_TEST

/* ---- limits and time ------------------------------------------------------------------------- */

START_TEST(deep_elements_are_flattened)
{
	struct fw_limits l = {.max_depth = 3};
	struct shown t;

	ck_assert(show(&t, LIT("<a><b><c>1<d>2<e>3</e>4</d>5</c>6</b>7</a>"), &l, false));
	ck_assert_str_eq(t.out.p, "(a(b(c\"12345\")\"6\")\"7\")");
	ck_assert_uint_eq(t.problems, 1);
	fw_buf_finish(&t.out);
	/* elements beyond the depth limit do not keep an ancestor from ending */
	ck_assert(!show(&t, LIT("<a><b><c>1<d>2<e>3</c>6</b>7</a>"), &l, false));
	ck_assert_str_eq(t.out.p, "(a(b(c\"123\")\"6\")\"7\")");
	fw_buf_finish(&t.out);
}
END_TEST

static void sum_offsets(void *ctx, size_t offset, const char *what, const char *repair)
{
	(void)what;
	(void)repair;
	*(size_t *)ctx += offset;
}

/*
 * Names beyond the limit are counted in a hash table: collisions in it must not depend on the
 * address of the tokenizer's state.
 */
START_TEST(flat_elements_end_the_same_way_each_time)
{
	static const struct fw_xml_handler h = {.problem = sum_offsets};
	struct fw_buf in = FW_BUF_INIT(0);
	size_t first = 0, sum;
	struct fw_err err;

	fw_buf_adds(&in, "<a><flat>");
	for (int i = 0; i < 180; i++)
		fw_buf_addf(&in, "</b%d>", i);
	fw_buf_adds(&in, "</flat></a>");
	for (size_t i = 0; i < 40; i++) {
		struct fw_arena a;
		struct fw_xml x = {.arena = &a, .handler = &h, .ctx = &sum, .limits = {.max_depth = 1}};

		fw_arena_init(&a, 0);
		ck_assert_ptr_nonnull(fw_arena_alloc(&a, 16 * i + 1));
		sum = 0;
		ck_assert_int_eq(fw_xml_parse(&x, in.p, in.len, &err), 0);
		fw_arena_finish(&a);
		first = i ? first : sum;
		ck_assert_uint_eq(sum, first);
	}
	fw_buf_finish(&in);
}
END_TEST

START_TEST(attributes_are_limited)
{
	struct fw_limits l = {.max_attributes = 2};
	struct shown t;

	ck_assert(show(&t, LIT("<a b='1' c='2' d='3' e='4'/>"), &l, false));
	ck_assert_str_eq(t.out.p, "(a b=1 c=2)");
	ck_assert_uint_eq(t.problems, 1);
	fw_buf_finish(&t.out);
}
END_TEST

START_TEST(entities_are_limited) /* "a billion laughs" */
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct shown t;

	fw_buf_adds(&b, "<!DOCTYPE a [<!ENTITY e0 'haha'>");
	for (int i = 1; i < 30; i++)
		fw_buf_addf(&b, "<!ENTITY e%d '&e%d;&e%d;&e%d;&e%d;'>", i, i - 1, i - 1, i - 1, i - 1);
	fw_buf_adds(&b, "]><a b='&e29;'>&e29;<c/></a>");
	(void)show(&t, fw_buf_str(&b), NULL, false);
	ck_assert_ptr_nonnull(strstr(t.what, "max_entity_ratio"));
	ck_assert_uint_lt(t.out.len, 200000);
	ck_assert_ptr_nonnull(strstr(t.out.p, "(c))"));
	fw_buf_finish(&t.out);
	fw_buf_finish(&b);
}
END_TEST

START_TEST(memory_is_limited)
{
	struct fw_arena a;
	struct fw_xml x = {.arena = &a};
	struct fw_err err;
	struct fw_buf b = FW_BUF_INIT(0);

	fw_buf_adds(&b, "<a b='&lt;");
	for (int i = 0; i < 100000; i++)
		fw_buf_addc(&b, 'x');
	fw_buf_adds(&b, "'/>");
	fw_arena_init(&a, 50000);
	ck_assert_int_eq(fw_xml_parse(&x, b.p, b.len, &err), FW_ELIMIT);
	ck_assert_ptr_nonnull(strstr(err.text, "max_memory"));
	fw_arena_finish(&a);
	fw_buf_finish(&b);
}
END_TEST

/*
 * Shapes that are slow for a tokenizer that looks at anything twice; the test's timeout is the
 * assertion.
 */
static const struct shape {
	const char *head, *unit, *tail;
} SHAPES[] = {
	{"", "<a>", ""},
	{"<r>", "</b>", ""},
	{"<r>", "<a></b>", ""},
	{"<r", " a#='1'", "/>"},
	{"<r", " a='1'", "/>"},
	{"<r", " xmlns:a#='u'", "/>"},
	{"<r>", "<x xmlns:a#='u'/>", ""},
	{"<r>", "<a#:x/>", ""},
	{"<r>", "<a#>", ""},
	{"<r a='", "x\n", "'/>"},
	{"<r a='", "&lt;", "'/>"},
	{"<r>", "<a b=\"", ""},
	{"<r>", "<a b=\"<c>", ""},
	{"<r a='", "<a ", ""},
	{"<r>", "<!--", ""},
	{"<r>", "<!-- --", ""},
	{"<r>", "<![CDATA[", ""},
	{"<r>", "<![CDATA[]]", ""},
	{"<r>", "<?a ", ""},
	{"<r>", "&", ""},
	{"<r>", "&a", ""},
	{"<r>", "&#1", ""},
	{"<r>", "<", ""},
	{"<r>", "<a ", ""},
	{"<r>", "]", ""},
	{"<r>", "\r", ""},
	{"<r>", "\x01", ""},
	{"<!DOCTYPE r [", "<!ENTITY e# 'x'>", "]><r/>"},
	{"<!DOCTYPE r [<!ATTLIST r", " a# CDATA 'x'", ">]><r/>"},
	{"<!DOCTYPE r [", "<!", ""},
	{"<!DOCTYPE r [<!ELEMENT r ", "(", ""},
	{"<!DOCTYPE r [<!ENTITY e '&#60;!--&#60;?a '>]><r>", "&e;", "</r>"},
	{"<r>", "<A></a>", ""},
	{"<r>", "<?xml version='1.0'?><a>", ""},
	{"<!DOCTYPE r [<!ENTITY e '", "&#60;?a ", "'>]><r>&e;</r>"},
	{"<r>", "<a b='<c d=\"<e f='>", ""},
};

START_TEST(linear_time)
{
	const struct shape *s = &SHAPES[_i];
	struct fw_buf b = FW_BUF_INIT(0);
	struct fw_arena a;
	struct fw_xml x = {.arena = &a};
	struct fw_err err;

	fw_buf_adds(&b, s->head);
	for (size_t i = 0; b.len < 4000000; i++) {
		const char *hash = strchr(s->unit, '#');

		if (hash && s->unit[1] != '&' && hash[-1] != '&')
			fw_buf_addf(&b, "%.*s%zu%s", (int)(hash - s->unit), s->unit, i, hash + 1);
		else
			fw_buf_adds(&b, s->unit);
	}
	fw_buf_adds(&b, s->tail);
	fw_arena_init(&a, 0);
	ck_assert_int_eq(fw_xml_parse(&x, b.p, b.len, &err), 0);
	fw_arena_finish(&a);
	fw_buf_finish(&b);
}
END_TEST

/* ---- the oracle ------------------------------------------------------------------------------ */

#if FW_HAVE_EXPAT
/* If expat accepts the input: the same events, not malformed. If it refuses: malformed. */
static void compare(const char *name, struct fw_str in)
{
	struct trace ours = {0}, theirs = {0};
	uint32_t skipped;
	int refused = trace_expat(&theirs, in.p, in.len);
	bool ok = trace_ours(&ours, in.p, in.len, NULL, &skipped);

	ck_assert_msg(ok == !refused, "%s: expat says %s, we say %s", name, refused ? XML_ErrorString(refused) : "fine",
		ok ? "fine" : "malformed");
	if (!refused && !skipped)
		ck_assert_msg(fw_str_eq(fw_buf_str(&ours.out), fw_buf_str(&theirs.out)),
			"%s: other events than expat's", name);
	ck_assert_msg(trace_same_whole(&ours, in.p, in.len, NULL), "%s: other events when text comes whole", name);
	fw_buf_finish(&ours.out);
	fw_buf_finish(&theirs.out);
}

START_TEST(as_expat)
{
	for (size_t i = 0; i < FW_N(GOOD); i++)
		compare(GOOD[i].in.p, GOOD[i].in);
	for (size_t i = 0; i < FW_N(BROKEN); i++) {
		/* for expat it is the first mark, for us the second */
		if (!fw_str_starts(BROKEN[i].in, FW_STR("\xef\xbb\xbf")))
			compare(BROKEN[i].in.p, BROKEN[i].in);
	}
}
END_TEST

static char *slurp(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	char *p = NULL;
	long size;

	if (f && fseek(f, 0, SEEK_END) == 0 && (size = ftell(f)) >= 0) {
		rewind(f);
		p = malloc((size_t)size + 1);
		*n = p ? fread(p, 1, (size_t)size, f) : 0;
	}
	if (f)
		fclose(f);
	return p;
}

/* Real feeds beside the source tree, if they exist. */
START_TEST(as_expat_on_real_feeds)
{
	const char *root = getenv("FW_SOURCE_ROOT");
	char dir[1000], path[2000];
	struct dirent *e;
	DIR *d;

	fw_snprintf(dir, sizeof(dir), "%s/../shared/corpus/open", root ? root : ".");
	d = opendir(dir);
	while (d && (e = readdir(d)) != NULL) {
		struct fw_str in;
		char *p;

		if (e->d_name[0] == '.')
			continue;
		fw_snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		p = slurp(path, &in.len);
		in.p = p;
		if (p && fw_str_starts(in, FW_STR("\xef\xbb\xbf")))
			in = fw_str_sub(in, 3, in.len);
		if (p && fw_utf8_valid(in.p, in.len) == in.len)
			compare(path, in);
		free(p);
	}
	if (d)
		closedir(d);
}
END_TEST
#endif

/* ---- tables ---------------------------------------------------------------------------------- */

START_TEST(ns_similar_names)
{
	static const struct {
		const char *uri;
		enum fw_ns ns;
	} T[] = {
		{"http://www.w3.org/2005/Atom", FW_NS_ATOM10},
		{"https://www.w3.org/2005/atom/", FW_NS_ATOM10},
		{"http://purl.org/dc/elements/1.1", FW_NS_DC},
		{" http://purl.org/dc/elements/1.1/ ", FW_NS_DC},
		{"http://purl.org/rss/1.0/", FW_NS_RSS10},
		{"http://purl.org/rss/1.0/modules/content/", FW_NS_CONTENT},
		{"http://www.itunes.com/dtds/podcast-1.0.dtd", FW_NS_ITUNES},
		{"http://itunes.com/DTDs/PodCast-1.0.dtd", FW_NS_ITUNES},
		{"http://search.yahoo.com/mrss/", FW_NS_MEDIA},
		{"http://nowhere.example/", FW_NS_UNKNOWN},
		{"", FW_NS_NONE},
		{"https://github.com/Podcastindex-org/podcast-namespace/blob/main/docs/1.0.md", FW_NS_PODCAST},
	};

	for (size_t i = 0; i < FW_N(T); i++)
		ck_assert_msg(fw_ns_find(fw_str(T[i].uri)) == T[i].ns, "%s", T[i].uri);
	ck_assert_int_eq(fw_ns_guess(FW_STR("creativeCommons")), FW_NS_CREATIVECOMMONS);
	ck_assert_int_eq(fw_ns_guess(FW_STR("dc")), FW_NS_DC);
	ck_assert_int_eq(fw_ns_guess(FW_STR("zz")), FW_NS_UNKNOWN);
}
END_TEST

static int note_ns(void *ctx, const struct fw_xml_name *name, const struct fw_xml_attr *a, size_t n)
{
	struct fw_buf *b = ctx;

	(void)a, (void)n;
	fw_buf_addf(b, "%.*s=%d ", FW_STR_ARG(name->local), (int)name->ns);
	return 0;
}

START_TEST(ns_scopes)
{
	static const char doc[] =
		"<a xmlns='http://www.w3.org/2005/Atom'><b xmlns='http://www.w3.org/1999/xhtml'><c/></b><d/>"
		"<dc:e xmlns:dc='http://purl.org/dc/terms/'/><dc:f/><g xmlns=''/><h/></a>";
	static const struct fw_xml_handler h = {.start = note_ns};
	struct fw_buf got = FW_BUF_INIT(0), want = FW_BUF_INIT(0);
	struct fw_arena a;
	struct fw_xml x = {.arena = &a, .handler = &h, .ctx = &got};
	struct fw_err err;

	fw_arena_init(&a, 0);
	ck_assert_int_eq(fw_xml_parse(&x, doc, sizeof(doc) - 1, &err), 0);
	fw_buf_addf(&want, "a=%d b=%d c=%d d=%d e=%d f=%d g=0 h=%d ", FW_NS_ATOM10, FW_NS_XHTML, FW_NS_XHTML,
		FW_NS_ATOM10, FW_NS_DCTERMS, FW_NS_DC, FW_NS_ATOM10);
	ck_assert_str_eq(got.p, want.p);
	fw_arena_finish(&a);
	fw_buf_finish(&got);
	fw_buf_finish(&want);
}
END_TEST

START_TEST(html_references)
{
	static const struct {
		const char *in, *out;
	} T[] = {
		{"plain", "plain"},
		{"&amp;&lt;&eacute;&#8217;&#x2019;", "&<\xc3\xa9\xe2\x80\x99\xe2\x80\x99"},
		{"AT&T &amp Co", "AT&T & Co"},
		{"&copy2026 &notit; &notin; &bogus;",
			"\xc2\xa9"
			"2026 \xc2\xacit; \xe2\x88\x89 &bogus;"},
		{"&#150;&#0;&#x110000;", "\xe2\x80\x93\xef\xbf\xbd\xef\xbf\xbd"},
		{"&", "&"},
		{"&#", "&#"},
		{"&#x", "&#x"},
		{"&;", "&;"},
		{"&nGt;x", "\xe2\x89\xab\xe2\x83\x92x"},
		{"&CounterClockwiseContourIntegral;", "\xe2\x88\xb3"},
		{"&amp;amp;", "&amp;"},
	};
	uint32_t cp[2];
	struct fw_arena a;

	fw_arena_init(&a, 0);
	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_str s = fw_entity_decode(&a, fw_str(T[i].in));

		ck_assert_msg(fw_str_eq(s, fw_str(T[i].out)), "%s: %.*s", T[i].in, FW_STR_ARG(s));
	}
	ck_assert_int_eq(fw_entity_find(FW_STR("zwnj"), cp), 1);
	ck_assert_uint_eq(cp[0], 0x200c);
	ck_assert_int_eq(fw_entity_find(FW_STR("AElig"), cp), 1);
	ck_assert_int_eq(fw_entity_find(FW_STR("AElix"), cp), 0);
	ck_assert_int_eq(fw_entity_find(FW_STR(""), cp), 0);
	fw_arena_finish(&a);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit parse xml");
	TCase *t = tcase_create("xml"), *slow = tcase_create("time");

	tcase_add_loop_test(t, good, 0, (int)FW_N(GOOD));
	tcase_add_loop_test(t, broken, 0, (int)FW_N(BROKEN));
	tcase_add_test(t, cut_anywhere);
	tcase_add_test(t, offsets);
	tcase_add_test(t, whole_text);
	tcase_add_test(t, handler_stops);
	tcase_add_test(t, deep_elements_are_flattened);
	tcase_add_test(t, flat_elements_end_the_same_way_each_time);
	tcase_add_test(t, attributes_are_limited);
	tcase_add_test(t, entities_are_limited);
	tcase_add_test(t, memory_is_limited);
	tcase_add_test(t, ns_similar_names);
	tcase_add_test(t, ns_scopes);
	tcase_add_test(t, html_references);
	tcase_set_timeout(slow, 60);
	tcase_add_loop_test(slow, linear_time, 0, (int)FW_N(SHAPES));
#if FW_HAVE_EXPAT
	tcase_add_test(t, as_expat);
	tcase_add_test(slow, as_expat_on_real_feeds);
#endif
	suite_add_tcase(s, t);
	suite_add_tcase(s, slow);
	return run_suite(s);
}
