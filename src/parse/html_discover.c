/* SPDX-License-Identifier: ISC */
/*
 * The feeds that a page names: <link rel="alternate" type="a feed's type" href="...">, in document order, which is the page's
 * order of preference. The first <base href> counts for all of them, wherever it stands. Read from the tokens: what stands in
 * comments, scripts and templates is not there for a browser, so it is not here either.
 */
#include "parse/html.h"
#include "parse/html_token.h"
#include "base/banned.h"

static bool is_feed_type(struct fw_str type)
{
	static const char *const TYPES[] = {"application/rss+xml", "application/atom+xml", "application/feed+json",
		"application/rdf+xml", "application/x.atom+xml", "application/x-atom+xml", "application/x-rss+xml", "text/rss+xml",
		"text/rss", "text/atom+xml", "application/rss", "application/atom", "application/x-netcdf"};
	struct fw_str rest;

	type = fw_str_trim(fw_str_split(type, ';', &rest));
	for (size_t i = 0; i < FW_N(TYPES); i++) {
		if (fw_str_ieq(type, fw_str(TYPES[i])))
			return true;
	}
	return false;
}

static bool names_feed(const struct fw_link *l)
{
	if (!l->href.len || fw_html_rel_has(l->rel, FW_STR("stylesheet")))
		return false;
	if (fw_html_rel_has(l->rel, FW_STR("feed")) && (!l->type.len || is_feed_type(l->type)))
		return true;
	return fw_html_rel_has(l->rel, FW_STR("alternate")) && is_feed_type(l->type);
}

static void read_link(struct fw_arena *a, struct fw_str attrs, struct fw_link *l)
{
	*l = (struct fw_link){.length = FW_NO_NUMBER};
	l->rel = fw_str_trim(fw_html_attr_get(a, attrs, "rel"));
	l->type = fw_str_trim(fw_html_attr_get(a, attrs, "type"));
	l->href = fw_str_trim(fw_html_attr_get(a, attrs, "href"));
	l->title = fw_html_text(a, fw_html_attr_get(a, attrs, "title"));
	l->hreflang = fw_html_attr_get(a, attrs, "hreflang");
}

static bool known(const struct fw_link *first, struct fw_str href)
{
	for (; first; first = first->next) {
		if (fw_str_eq(first->href, href))
			return true;
	}
	return false;
}

/* Absolute addresses, each once, none that is not on the web. */
static struct fw_link *resolve(struct fw_arena *a, struct fw_link *first, struct fw_str base)
{
	struct fw_link *kept = NULL, **tail = &kept, *next;

	for (; first; first = next) {
		next = first->next;
		first->href = fw_html_url(a, base, first->href, true, false);
		if (!first->href.len || known(kept, first->href))
			continue;
		first->next = NULL;
		*tail = first;
		tail = &first->next;
	}
	return kept;
}

#define MAX_LINKS 200

int fw_html_discover(struct fw_arena *a, struct fw_str html, struct fw_str url, struct fw_link **links, struct fw_err *err)
{
	struct fw_link *first = NULL, **tail = &first, link;
	struct fw_html_tokenizer z;
	struct fw_html_token t;
	struct fw_str base = url;
	bool based = false;
	size_t n = 0;

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
			base = href.len ? href : url; /* one that is not on the web is none */
		} else if (t.el == FW_E_LINK && n < MAX_LINKS) {
			read_link(a, t.attrs, &link);
			if (!names_feed(&link))
				continue;
			*tail = fw_arena_alloc(a, sizeof(**tail));
			if (!*tail)
				break;
			**tail = link;
			tail = &(*tail)->next;
			n++;
		}
	}
	*links = resolve(a, first, base);
	return a->failed ? fw_err_set(err, FW_ENOMEM, "out of memory while looking for feeds in the page") : 0;
}
