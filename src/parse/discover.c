/* SPDX-License-Identifier: ISC */
/*
 * Finds the feeds that a page names with <link rel="alternate" type="a feed's type" href="...">, in
 * document order, which is the page's preference. Those of the HTTP Link header come first. The
 * first <base href> applies to the whole page, wherever it stands. A page without such links may
 * still have <a type="a feed's type">.
 *
 * Works on tokens. As in a browser, comments, scripts and templates do not count; <noscript> does,
 * as in a browser without scripts.
 */
#include "parse/charset/charset.h"
#include "parse/discover.h"
#include "parse/html/link_header.h"
#include "parse/html/text.h"
#include "parse/html/token.h"
#include "parse/html/value.h"
#include "parse/parse.h"

static bool is_feed_type(struct fw_str type)
{
	static const char *const TYPES[] = {"application/rss+xml", "application/atom+xml", "application/feed+json",
		"application/rdf+xml", "application/x.atom+xml", "application/x-atom+xml", "application/x-rss+xml",
		"text/rss+xml", "text/rss", "text/atom+xml", "application/rss", "application/atom",
		"application/x-netcdf"};
	struct fw_str rest;

	type = fw_str_trim(fw_str_split(type, ';', &rest));
	for (size_t i = 0; i < FW_N(TYPES); i++) {
		if (fw_str_ieq(type, fw_str(TYPES[i])))
			return true;
	}
	return false;
}

/*
 * JSON and XML links may be anything (WordPress has one on every page): a feed's URL must look like
 * one.
 */
static bool is_feed_by_name(const struct fw_link *l)
{
	static const char *const TYPES[] = {"application/json", "application/xml", "text/xml"},
				 *const WORDS[] = {"feed", "rss", "atom"};
	struct fw_str rest, type = fw_str_trim(fw_str_split(l->type, ';', &rest));

	if (fw_str_ifind(l->href, FW_STR("wp-json")) || fw_str_ifind(l->href, FW_STR("oembed")))
		return false;
	for (size_t i = 0; i < FW_N(TYPES); i++) {
		for (size_t k = 0; fw_str_ieq(type, fw_str(TYPES[i])) && k < FW_N(WORDS); k++) {
			if (fw_str_ifind(l->href, fw_str(WORDS[k])))
				return true;
		}
	}
	return false;
}

static bool names_feed(const struct fw_link *l)
{
	if (!l->href.len || fw_html_rel_has(l->rel, FW_STR("stylesheet")))
		return false;
	if (fw_html_rel_has(l->rel, FW_STR("feed")) && (!l->type.len || is_feed_type(l->type)))
		return true;
	return fw_html_rel_has(l->rel, FW_STR("alternate")) && (is_feed_type(l->type) || is_feed_by_name(l));
}

static void link_of_tag(struct fw_arena *a, struct fw_str attrs, struct fw_link *l)
{
	*l = (struct fw_link){.length = FW_NO_NUMBER};
	l->rel = fw_str_trim(fw_html_attr_get(a, attrs, "rel"));
	l->type = fw_str_trim(fw_html_attr_get(a, attrs, "type"));
	l->href = fw_str_trim(fw_html_attr_get(a, attrs, "href"));
	l->title = fw_html_text(a, fw_html_attr_get(a, attrs, "title"));
	l->hreflang = fw_html_attr_get(a, attrs, "hreflang");
}

static bool link_known(const struct fw_link *first, struct fw_str href)
{
	for (; first; first = first->next) {
		if (fw_str_eq(first->href, href))
			return true;
	}
	return false;
}

/* Append the links with absolute web URLs to *list, without duplicates. */
static void links_resolve(struct fw_arena *a, struct fw_link **list, struct fw_link *first, struct fw_str base)
{
	struct fw_link **tail = list, *next;

	while (*tail)
		tail = &(*tail)->next;
	for (; first; first = next) {
		next = first->next;
		first->href = fw_html_url(a, base, first->href, true, false);
		if (!first->href.len || link_known(*list, first->href))
			continue;
		first->next = NULL;
		*tail = first;
		tail = &first->next;
	}
}

#define MAX_LINKS 200

struct found {
	struct fw_arena *a;
	struct fw_link *first, **tail;
	size_t n;
};

static void found_add(struct found *f, const struct fw_link *link)
{
	struct fw_link *kept = f->n++ < MAX_LINKS ? fw_arena_alloc(f->a, sizeof(*kept)) : NULL;

	if (!kept)
		return;
	*kept = *link;
	*f->tail = kept;
	f->tail = &kept->next;
}

int fw_html_discover(
	struct fw_arena *a, struct fw_str html, struct fw_str url, struct fw_link **links, struct fw_err *err)
{
	struct found links_of = {.a = a, .tail = &links_of.first}, anchors = {.a = a, .tail = &anchors.first};
	struct fw_html_tokenizer z;
	struct fw_html_token t;
	struct fw_str base = url;
	struct fw_link link;
	bool based = false;

	*links = NULL;
	fw_html_start(&z, html);
	for (fw_html_next(&z, &t); t.kind != FW_HTML_END; fw_html_next(&z, &t)) {
		if (t.kind != FW_HTML_OPEN)
			continue;
		if (t.el == FW_E_TEMPLATE) {
			fw_html_skip(&z, &t);
		} else if (t.el == FW_E_BASE && !based) {
			struct fw_str href = fw_html_attr_get(a, t.attrs, "href");

			based = href.p != NULL;
			href = fw_html_url(a, url, href, true, false);
			base = href.len ? href : url; /* a base that is not a web URL is ignored */
		} else if (t.el == FW_E_LINK && links_of.n < MAX_LINKS) {
			link_of_tag(a, t.attrs, &link);
			if (names_feed(&link))
				found_add(&links_of, &link);
		} else if (t.el == FW_E_A && anchors.n < MAX_LINKS && fw_str_ifind(t.attrs, FW_STR("type"))) {
			link_of_tag(a, t.attrs, &link);
			if (link.href.len && is_feed_type(link.type))
				found_add(&anchors, &link);
		}
	}
	links_resolve(a, links, links_of.first, base);
	if (!*links)
		links_resolve(a, links, anchors.first, base);
	return a->failed ? fw_err_set(err, FW_ENOMEM, "out of memory while looking for feeds in the page") : 0;
}

struct fw_link *fw_link_feeds(struct fw_arena *a, struct fw_str header, struct fw_str url)
{
	struct fw_link *list = fw_link_header(a, header, url, FW_STR_NONE), *kept = NULL;
	struct found feeds = {.a = a, .tail = &feeds.first};

	for (; list; list = list->next) {
		if (names_feed(list))
			found_add(&feeds, list);
	}
	links_resolve(a, &kept, feeds.first, url);
	return kept;
}

/* The page decoded to UTF-8. */
static int page_text(
	struct fw_arena *a, struct fw_str page, struct fw_str content_type, struct fw_str *out, struct fw_err *err)
{
	struct fw_limits none = {.max_bytes = 0};
	struct fw_charset_result r;
	bool cut;
	int rc = fw_gunzip(a, &none, &page, &cut, err);

	rc = rc ? rc : fw_charset_decode(a, page, content_type, &r, err);
	*out = rc ? FW_STR_NONE : r.text;
	return rc;
}

int fw_find_feeds(struct fw_arena *a, struct fw_str header, struct fw_str page, struct fw_str content_type,
	struct fw_str url, struct fw_link **links, struct fw_err *err)
{
	struct fw_link *named = NULL;
	struct fw_str text;
	int rc;

	*links = fw_link_feeds(a, header, url);
	rc = page_text(a, page, content_type, &text, err);
	if (!rc)
		rc = fw_html_discover(a, text, url, &named, err);
	links_resolve(a, links, named, FW_STR_NONE);
	return rc;
}

/* ---- hubs ------------------------------------------------------------------------------------ */

/* Only the page's head counts: others than the author may write what follows. */
static void hub_of_head(
	struct fw_arena *a, struct fw_str html, struct fw_str url, struct fw_str *hub, struct fw_str *self)
{
	struct fw_html_tokenizer z;
	struct fw_html_token t;
	struct fw_str base = url;
	struct fw_link link;

	fw_html_start(&z, html);
	for (fw_html_next(&z, &t); t.kind != FW_HTML_END && !(t.kind == FW_HTML_OPEN && t.el == FW_E_BODY);
		fw_html_next(&z, &t)) {
		if (t.kind != FW_HTML_OPEN)
			continue;
		if (t.el == FW_E_TEMPLATE) {
			fw_html_skip(&z, &t);
			continue;
		}
		if (t.el == FW_E_BASE) {
			struct fw_str href = fw_html_url(a, url, fw_html_attr_get(a, t.attrs, "href"), true, false);

			base = href.len ? href : base;
		}
		if (t.el != FW_E_LINK)
			continue;
		link_of_tag(a, t.attrs, &link);
		if (!hub->len && fw_html_rel_has(link.rel, FW_STR("hub")))
			*hub = fw_html_url(a, base, link.href, true, false);
		if (!self->len && fw_html_rel_has(link.rel, FW_STR("self")))
			*self = fw_html_url(a, base, link.href, true, false);
	}
}

int fw_find_hub(struct fw_arena *a, struct fw_str header, struct fw_str page, struct fw_str content_type,
	struct fw_str url, struct fw_str *hub, struct fw_str *self, struct fw_err *err)
{
	const struct fw_link *by = fw_link_header(a, header, url, FW_STR("hub")),
			     *as = fw_link_header(a, header, url, FW_STR("self"));
	struct fw_str text = FW_STR_NONE;
	int rc = by ? 0 : page_text(a, page, content_type, &text, err);

	*hub = by ? by->href : FW_STR_NONE;
	*self = as ? as->href : FW_STR_NONE;
	if (!rc && !by)
		hub_of_head(a, text, url, hub, self);
	return rc || !a->failed ? rc : fw_err_set(err, FW_ENOMEM, "out of memory while looking for hubs in the page");
}
