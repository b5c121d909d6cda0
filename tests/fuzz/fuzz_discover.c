/* SPDX-License-Identifier: ISC */
/*
 * The feeds of a site: a page's <link> elements and the HTTP Link header. Any bytes give web URLs,
 * each once, in document order. For a page without the elements where a tokenizer and a tree
 * builder may differ (foreign elements, frames, lists in forms), the feeds are those of gumbo's
 * tree. The result of a Link header, written as a header, gives the same result again.
 */
#include <gumbo.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "parse/discover.h"
#include "parse/html/link_header.h"
#include "parse/html/value.h"

static const char PAGE[] = "http://example.org/dir/page";

enum { MAX_LINKS = 200 };

/* ---- the page in gumbo's tree ---------------------------------------------------------------- */

struct tree {
	struct fw_arena *arena;
	const char *base; /* the first <base href>, or NULL */
	const GumboElement *link[MAX_LINKS];
	size_t link_n;
	bool plain, anchors; /* anchors: some with a type or text of a feed; they count if no link does */
};

static const char *attribute(const GumboElement *e, const char *name)
{
	const GumboAttribute *a = gumbo_get_attribute(&e->attributes, name);

	return a ? a->value : NULL;
}

static void gather(struct tree *t, const GumboNode *node, unsigned depth)
{
	const GumboElement *e = &node->v.element;

	if (node->type == GUMBO_NODE_TEMPLATE || depth > 400)
		t->plain = false;
	if (node->type != GUMBO_NODE_ELEMENT || !t->plain)
		return;
	switch (e->tag) {
	case GUMBO_TAG_SELECT:
	case GUMBO_TAG_FRAMESET:
	case GUMBO_TAG_NOSCRIPT:
	case GUMBO_TAG_PLAINTEXT:
	case GUMBO_TAG_SVG:
	case GUMBO_TAG_MATH:
		t->plain = false;
		return;
	case GUMBO_TAG_BASE:
		if (!t->base)
			t->base = attribute(e, "href");
		break;
	case GUMBO_TAG_A:
		t->anchors = t->anchors || attribute(e, "type");
		break;
	case GUMBO_TAG_LINK:
		if (t->link_n < MAX_LINKS)
			t->link[t->link_n++] = e;
		break;
	default:
		break;
	}
	for (unsigned i = 0; i < e->children.length; i++)
		gather(t, e->children.data[i], depth + 1);
}

static bool has_word(const char *list, const char *word)
{
	struct fw_str s = fw_str(list ? list : ""), w = fw_str(word);

	for (size_t i = 0, from; i < s.len;) {
		while (i < s.len && fw_is_space((unsigned char)s.p[i]))
			i++;
		for (from = i; i < s.len && !fw_is_space((unsigned char)s.p[i]); i++)
			;
		if (fw_str_ieq(fw_str_sub(s, from, i), w))
			return true;
	}
	return false;
}

static bool is_feed_type(const char *type)
{
	static const char LIST[] = " application/rss+xml application/atom+xml application/feed+json application/rdf+xml"
				   " application/x.atom+xml "
				   "application/x-atom+xml application/x-rss+xml text/rss+xml text/rss text/atom+xml"
				   " application/rss application/atom "
				   "application/x-netcdf ";
	struct fw_str rest, word = fw_str_trim(fw_str_split(fw_str(type ? type : ""), ';', &rest));
	char padded[64];

	for (size_t i = 0; i < word.len; i++) {
		if (fw_is_space((unsigned char)word.p[i]))
			return false;
	}
	return word.len && word.len < 40 && fw_snprintf(padded, sizeof(padded), " %.*s ", FW_STR_ARG(word)) &&
		fw_str_ifind(fw_str(LIST), fw_str(padded));
}

/* A JSON or XML type counts only if the URL's name suggests a feed. */
static bool is_feed_by_name(const char *type, const char *href)
{
	struct fw_str rest, word = fw_str_trim(fw_str_split(fw_str(type ? type : ""), ';', &rest)),
			    name = fw_str(href ? href : "");

	if (!fw_str_ieq(word, FW_STR("application/json")) && !fw_str_ieq(word, FW_STR("application/xml")) &&
		!fw_str_ieq(word, FW_STR("text/xml")))
		return false;
	return (fw_str_ifind(name, FW_STR("feed")) || fw_str_ifind(name, FW_STR("rss")) ||
		       fw_str_ifind(name, FW_STR("atom"))) &&
		!fw_str_ifind(name, FW_STR("wp-json")) && !fw_str_ifind(name, FW_STR("oembed"));
}

static bool names_feed(const GumboElement *e)
{
	const char *rel = attribute(e, "rel"), *type = attribute(e, "type");

	if (has_word(rel, "stylesheet"))
		return false;
	return (has_word(rel, "alternate") && (is_feed_type(type) || is_feed_by_name(type, attribute(e, "href")))) ||
		(has_word(rel, "feed") && (!fw_str_trim(fw_str(type ? type : "")).len || is_feed_type(type)));
}

/* The URL of gumbo's i-th link; absent: not a feed's, or a repetition. */
static struct fw_str expected(const struct tree *t, size_t i, struct fw_str base)
{
	const char *href = attribute(t->link[i], "href");
	struct fw_str url;

	if (!href || !names_feed(t->link[i]))
		return FW_STR_NONE;
	url = fw_str_trim(fw_str(href));
	url = url.len ? fw_html_url(t->arena, base, url, true, false) : FW_STR_NONE;
	for (size_t k = 0; k < i && url.len; k++) {
		if (fw_str_eq(expected(t, k, base), url))
			return FW_STR_NONE;
	}
	return url.len ? url : FW_STR_NONE;
}

static void check_against_tree(struct fw_arena *a, struct fw_str in, const struct fw_link *found)
{
	struct tree t = {.arena = a, .plain = true};
	GumboOptions options = kGumboDefaultOptions;
	GumboOutput *out = gumbo_parse_with_options(&options, in.p, in.len);
	struct fw_str base;
	size_t n = 0;

	gather(&t, out->root, 0);
	base = fw_html_url(a, FW_STR(PAGE), fw_str(t.base), true, false);
	base = base.len ? base : FW_STR(PAGE);
	if (t.plain && t.link_n < 12) {
		for (size_t i = 0; i < t.link_n; i++) {
			struct fw_str url = expected(&t, i, base);

			if (!url.p)
				continue;
			FUZZ_CHECK(found && fw_str_eq(found->href, url));
			found = found->next;
			n++;
		}
		FUZZ_CHECK(!found || (!n && t.anchors));
	}
	gumbo_destroy_output(&options, out);
}

/*
 * Input that gumbo reads as browsers do: no control characters, which it replaces; ASCII; of
 * references only the one in URLs. And input that we read as they do: "<!" that starts neither a
 * comment nor a declaration is text here.
 */
static bool comparable(struct fw_str in)
{
	for (size_t i = 0; i < in.len; i++) {
		int c = (unsigned char)in.p[i], next = i + 2 < in.len ? in.p[i + 2] : 'x';

		if (c == '<' && in.p[i + (i + 1 < in.len)] == '!' && !fw_is_alpha(next) && next != '-' && next != '[' &&
			next != '>')
			return false;

		if (c >= 0x7f || (c < ' ' && c != '\t' && c != '\n'))
			return false;
		if (c == '&' && !fw_str_starts(fw_str_sub(in, i, in.len), FW_STR("&amp;")))
			return false;
	}
	return in.len > 0;
}

static bool is_web(struct fw_str url)
{
	return fw_str_istarts(url, FW_STR("http:")) || fw_str_istarts(url, FW_STR("https:"));
}

static void check_page(struct fw_arena *a, struct fw_str in)
{
	struct fw_link *links;

	FUZZ_CHECK(fw_html_discover(a, in, FW_STR(PAGE), &links, NULL) == 0);
	if (comparable(in))
		check_against_tree(a, in, links);
}

/* The page, and the header in its first line: web URLs, each once, the header's first. */
static void check_answer(struct fw_arena *a, struct fw_str in)
{
	struct fw_str rest, header = fw_str_split(in, '\n', &rest);
	struct fw_link *links, *first;
	size_t n = 0;

	FUZZ_CHECK(fw_find_feeds(a, header, in, FW_STR("text/html"), FW_STR(PAGE), &links, NULL) == 0);
	for (const struct fw_link *l = links; l; l = l->next, n++) {
		const struct fw_str all[] = {l->rel, l->type, l->title, l->hreflang};

		FUZZ_CHECK(is_web(l->href));
		for (const struct fw_link *m = links; m != l; m = m->next)
			FUZZ_CHECK(!fw_str_eq(l->href, m->href));
		for (size_t i = 0; i < FW_N(all); i++)
			FUZZ_CHECK(all[i].p || !all[i].len);
	}
	FUZZ_CHECK(n <= 2 * MAX_LINKS);
	for (first = fw_link_feeds(a, header, FW_STR(PAGE)); first; first = first->next, links = links->next)
		FUZZ_CHECK(links && fw_str_eq(links->href, first->href));
}

/* The public function: strings in UTF-8 from bytes of any encoding. */
static void check_public(struct fw_str in)
{
	struct fw_link *links;
	struct fw_err err;

	FUZZ_CHECK(fw_discover(in.p, in.len, FW_STR(PAGE), FW_STR_NONE, &links, &err) == 0);
	for (const struct fw_link *l = links; l; l = l->next) {
		const struct fw_str all[] = {l->href, l->rel, l->type, l->title, l->hreflang};

		for (size_t i = 0; i < FW_N(all); i++)
			FUZZ_CHECK(fw_utf8_valid(all[i].p, all[i].len) == all[i].len);
	}
	free(links);
}

/* ---- the header ------------------------------------------------------------------------------ */

static void add_parameter(struct fw_buf *out, const char *name, struct fw_str value)
{
	if (!value.p)
		return;
	fw_buf_addf(out, "; %s=\"", name);
	for (size_t i = 0; i < value.len; i++) {
		if (value.p[i] == '"' || value.p[i] == '\\')
			fw_buf_addc(out, '\\');
		fw_buf_addc(out, value.p[i]);
	}
	fw_buf_addc(out, '"');
}

static void check_header(struct fw_arena *a, struct fw_str in)
{
	struct fw_link *links = fw_link_header(a, in, FW_STR(PAGE), FW_STR_NONE), *again;
	struct fw_buf header = FW_BUF_INIT(0);
	size_t feeds = 0;

	for (const struct fw_link *l = links; l; l = l->next) {
		FUZZ_CHECK(l->href.p && !memchr(l->href.p, '>', l->href.len));
		feeds += fw_html_rel_has(fw_str_trim(l->rel), FW_STR("alternate"));
		fw_buf_adds(&header, header.len ? ", <" : "<");
		fw_buf_addstr(&header, l->href);
		fw_buf_addc(&header, '>');
		add_parameter(&header, "rel", l->rel);
		add_parameter(&header, "type", l->type);
		add_parameter(&header, "title", l->title);
		add_parameter(&header, "hreflang", l->hreflang);
	}
	again = fw_link_header(a, fw_buf_str(&header), FW_STR(PAGE), FW_STR_NONE);
	for (; links && again; links = links->next, again = again->next) {
		FUZZ_CHECK(fw_str_eq(links->href, again->href) && fw_str_eq(links->rel, again->rel));
		FUZZ_CHECK(fw_str_eq(links->type, again->type) && fw_str_eq(links->title, again->title));
		FUZZ_CHECK(fw_str_eq(links->hreflang, again->hreflang));
	}
	FUZZ_CHECK(!links && !again);
	for (links = fw_link_header(a, in, FW_STR(PAGE), FW_STR("alternate")); links; links = links->next)
		feeds--;
	FUZZ_CHECK(feeds == 0);
	fw_buf_finish(&header);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fw_str in = {(const char *)data, size};
	struct fw_arena a;

	fw_arena_init(&a, 0);
	check_page(&a, in);
	check_answer(&a, in);
	check_header(&a, in);
	check_public(in);
	fw_arena_finish(&a);
	return 0;
}
