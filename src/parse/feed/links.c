/* SPDX-License-Identifier: ISC */
/*
 * Links and related elements: the entry's page, enclosures, guids; categories; an entry's source;
 * the generator.
 */
#include "base/url.h"
#include "parse/feed/links.h"
#include "parse/html/token.h"

/* ---- links ----------------------------------------------------------------------------------- */

void fw_link_add(struct fw_builder *b, struct fw_link **list, struct fw_str rel, struct fw_str href)
{
	struct fw_link *l = FW_NEW(b, struct fw_link);

	if (!l)
		return;
	l->rel = rel;
	l->href = href;
	l->length = FW_NO_NUMBER;
	FW_APPEND(*list, l);
}

/* An address that is not the page after all stays as a link. */
static void page_keep(struct fw_builder *b, enum fw_context where, struct fw_str page, struct fw_str url)
{
	bool entry = fw_in_entry(b, where);
	struct fw_link **list = entry ? &b->entry->links : &b->doc->links;

	if (!url.len || where == CTX_SOURCE || fw_str_eq(url, page) || (entry && fw_str_eq(url, b->entry->id)))
		return;
	for (const struct fw_link *l = *list; l; l = l->next) {
		if (fw_str_eq(l->href, url))
			return;
	}
	if (fw_build_count_member(b, &fw_counts_of(b, entry)->links, FW_LIST_MAX, "more than 100 links"))
		fw_link_add(b, list, FW_STR("alternate"), url);
}

static struct fw_str *page_of(struct fw_builder *b, enum fw_context where)
{
	return fw_in_entry(b, where) ? &b->entry->url : &fw_feed_of(b, where)->home_page_url;
}

bool fw_page_set(struct fw_builder *b, enum fw_context where, struct fw_str url, uint8_t rank)
{
	struct fw_str *to = page_of(b, where), old = *to;

	if (!fw_address_take(b, where, fw_in_entry(b, where) ? F_URL : F_HOME, rank, to, url))
		return false;
	if (fw_url_weigh(old, url) > 0)
		page_keep(b, where, url, old);
	return true;
}

void fw_page_add(struct fw_builder *b, enum fw_context where, struct fw_str url, uint8_t rank)
{
	if (!fw_page_set(b, where, url, rank))
		page_keep(b, where, *page_of(b, where), url);
}

/* Relations ignore case, so they are stored in lower case, except those that are URLs. */
static struct fw_str rel_lower(struct fw_builder *b, struct fw_str rel)
{
	char *out;
	size_t i;

	for (i = 0; i < rel.len && rel.p[i] != ':' && !(rel.p[i] >= 'A' && rel.p[i] <= 'Z'); i++)
		;
	if (i == rel.len || memchr(rel.p, ':', rel.len) || !(out = fw_arena_alloc(b->arena, rel.len)))
		return rel;
	for (i = 0; i < rel.len; i++)
		out[i] = (char)fw_lower((unsigned char)rel.p[i]);
	return (struct fw_str){out, rel.len};
}

/* "http://www.iana.org/assignments/relation/self" means "self" (RFC 4287 section 4.2.7.2). */
static bool rel_is(struct fw_str rel, const char *name)
{
	static const struct fw_str iana = {"http://www.iana.org/assignments/relation/", 41};

	if (fw_str_istarts(rel, iana))
		rel = fw_str_sub(rel, iana.len, rel.len);
	return fw_str_ieq(rel, fw_str(name));
}

/* thr:count of a link to replies (RFC 4685 section 4). */
static void replies_count(struct fw_start_event *w, const struct fw_link *l)
{
	int64_t n;

	for (size_t i = 0; i < w->attr_n; i++) {
		if (w->attr[i].name.ns != FW_NS_THR || !fw_str_ieq(w->attr[i].name.local, FW_STR("count")))
			continue;
		n = fw_build_number(w->attr[i].value);
		if (n != FW_NO_NUMBER && fw_in_entry(w->b, w->where) && rel_is(l->rel, "replies") &&
			fw_field_take(w->b, w->where, F_COMMENT_COUNT, 6))
			w->b->entry->comment_count = n;
	}
}

void fw_link_start(struct fw_start_event *w)
{
	struct fw_link *l;

	fw_text_capture(w, TEXT_TRIM);
	/* RSS: a URL as text only */
	if (!w->frame->atom && !fw_attr(w, "href").p && !fw_attr(w, "rel").p)
		return;
	l = w->frame->obj = FW_NEW(w->b, struct fw_link);
	if (!l)
		return;
	l->rel = rel_lower(w->b, fw_str_trim(fw_attr(w, "rel")));
	l->type = fw_str_trim(fw_attr(w, "type"));
	l->href = fw_str_trim(fw_attr(w, "href"));
	l->title = fw_build_line_text(w->b, fw_attr(w, "title"));
	l->hreflang = fw_str_trim(fw_attr(w, "hreflang"));
	l->length = fw_build_size(fw_attr(w, "length"));
	replies_count(w, l);
}

static bool html_type(struct fw_str type)
{
	return !type.len || fw_str_istarts(type, FW_STR("text/html")) ||
		fw_str_istarts(type, FW_STR("application/xhtml"));
}

/* Add an attachment. Of those with the same URL the first wins. */
static void attachment_add(
	struct fw_builder *b, struct fw_str url, struct fw_str type, struct fw_str title, int64_t size)
{
	struct fw_entry *e = b->entry;
	struct fw_attachment *a;

	for (a = e->attachments; a; a = a->next) {
		if (fw_str_eq(a->url, url))
			return;
	}
	if (!fw_build_count_member(b, &b->count.attachments, FW_LIST_MAX, "an entry with more than 100 attachments"))
		return;
	a = FW_NEW(b, struct fw_attachment);
	if (!a)
		return;
	a->url = url;
	a->mime_type = type.len ? type : FW_STR_NONE;
	a->title = title.len ? title : FW_STR_NONE;
	a->size_bytes = size;
	a->duration_ms = FW_NO_NUMBER;
	FW_APPEND(e->attachments, a);
}

static void entry_link_place(struct fw_builder *b, struct fw_link *l, uint8_t rank)
{
	struct fw_entry *e = b->entry;

	if (rel_is(l->rel, "alternate")) {
		fw_page_set(b, CTX_ENTRY, l->href, rank);
	} else if (rel_is(l->rel, "enclosure")) {
		attachment_add(b, l->href, l->type, l->title, l->length);
	} else if (rel_is(l->rel, "replies")) {
		if (html_type(l->type) && l->type.len) {
			fw_address_take(b, CTX_ENTRY, F_COMMENTS, 5, &e->comments, l->href);
		} else {
			fw_address_take(b, CTX_ENTRY, F_COMMENT_FEED, 5, &e->comment_feed_url, l->href);
		}
	} else if (rel_is(l->rel, "license")) {
		fw_address_take(b, CTX_ENTRY, F_LICENSE, 6, &e->license, l->href);
	}
}

static void feed_link_place(
	struct fw_builder *b, struct fw_document *d, enum fw_context where, struct fw_link *l, uint8_t rank)
{
	if (rel_is(l->rel, "alternate")) {
		fw_page_set(b, where, l->href, rank);
	} else if (rel_is(l->rel, "self")) {
		fw_address_take(b, where, F_SELF, 1, &d->feed_url, l->href);
	} else if (rel_is(l->rel, "hub")) {
		fw_link_add(b, &d->hubs, FW_STR("hub"), l->href); /* WebSub */
	} else if (rel_is(l->rel, "next")) {
		fw_address_take(b, where, F_NEXT, 1, &d->next_url, l->href);
	} else if (rel_is(l->rel, "prev-archive")) {
		fw_address_take(b, where, F_PREV_ARCHIVE, 1, &d->prev_archive_url, l->href);
	} else if (rel_is(l->rel, "license")) {
		fw_address_take(b, where, F_LICENSE, 6, &d->license, l->href);
	} else if (rel_is(l->rel, "icon") || rel_is(l->rel, "shortcut icon")) {
		fw_address_take(b, where, F_FAVICON, 5, &d->favicon, l->href);
	}
}

/* <link>&lt;a href="..."&gt;...: extract the URL. */
static struct fw_str anchor_href(struct fw_builder *b, struct fw_str s)
{
	struct fw_html_tokenizer z;
	struct fw_html_token t;

	s = fw_str_trim(s);
	if (!fw_str_istarts(s, FW_STR("<a")))
		return s;
	fw_html_start(&z, s);
	fw_html_next(&z, &t);
	return t.kind == FW_HTML_OPEN && t.el == FW_E_A ? fw_html_attr_get(b->arena, t.attrs, "href") : s;
}

void fw_link_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	enum fw_context where = fw_context_around(b, f);
	struct fw_entry *e = fw_in_entry(b, where) ? b->entry : NULL;
	struct fw_document *d = fw_feed_of(b, where);
	struct fw_link *l = f->obj;
	uint8_t rank = f->el->rank;
	bool empty = l && l->href.p && !l->href.len && f->scope && f->scope->base_declared;

	if (empty)
		s = f->scope->base; /* an empty reference is the base (RFC 3986 section 4.4) */
	else
		s = fw_build_url(b, f->scope, l && l->href.len ? l->href : anchor_href(b, s));
	if (!s.len)
		return;
	if (where == CTX_IMAGE) {
		if (!b->entry)
			d->image.link = s;
	} else if (!l) {
		fw_page_add(b, where, s, rank);
	} else {
		l->href = s;
		if (!l->rel.len)
			l->rel = FW_STR("alternate");
		/* Atom links in RSS rank below RSS's own; pages of other types rank below HTML */
		rank = (uint8_t)(rank - (b->atom ? 0 : 2) - (html_type(l->type) ? 0 : 1));
		if (empty && e)
			/* an id that is a URL is more reliable: the base may be the feed's */
			rank = 1;
		if (!fw_build_count_member(b, &fw_counts_of(b, e != NULL)->links, FW_LIST_MAX, "more than 100 links"))
			return;
		FW_APPEND(*(e ? &e->links : &d->links), l);
		if (e)
			entry_link_place(b, l, rank);
		else
			feed_link_place(b, d, where, l, rank);
	}
}

static bool is_relative(struct fw_str s)
{
	return !fw_url_is_absolute(s) && !memchr(s.p, ' ', s.len) &&
		(memchr(s.p, '/', s.len) || memchr(s.p, '.', s.len));
}

void fw_guid_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	enum fw_context where = fw_context_around(b, f);

	s = fw_str_trim(s);
	if (!s.len)
		return;
	if (!fw_in_entry(b, where)) { /* some channels have one too */
		if (where == CTX_FEED && fw_field_take(b, where, F_ID, 5))
			b->doc->id = s;
		return;
	}
	/* in Atom the id has priority */
	if (fw_field_take(b, CTX_ENTRY, F_ID, (uint8_t)(f->el->rank - b->atom)))
		b->entry->id = s;
	/*
	 * isPermaLink defaults to true, but then only a URL counts; if it is stated, a relative one
	 * does too
	 */
	if (f->obj != b && (fw_is_http(s) || (f->obj && is_relative(s))))
		fw_page_set(b, CTX_ENTRY, fw_build_url(b, f->scope, s), 4);
}

void fw_enclosure_start(struct fw_start_event *w)
{
	struct fw_str url = fw_attr(w, "url");

	url = url.len ? url : fw_attr(w, "href");
	url = fw_build_url(w->b, w->frame->scope, url.len ? url : fw_attr(w, "resource"));
	if (url.len)
		attachment_add(
			w->b, url, fw_str_trim(fw_attr(w, "type")), FW_STR_NONE, fw_build_size(fw_attr(w, "length")));
	else
		fw_text_capture(w, TEXT_TRIM);
}

/* The URL is the text if no attribute has it. */
void fw_enclosure_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	s = fw_str_trim(s);
	if (b->entry && fw_is_http(s))
		attachment_add(b, fw_build_url(b, f->scope, s), FW_STR_NONE, FW_STR_NONE, FW_NO_NUMBER);
}

void fw_image_set(struct fw_builder *b, struct fw_str url, uint8_t rank)
{
	if (b->entry)
		fw_address_take(b, CTX_ENTRY, F_IMAGE, 2, &b->entry->image, url);
	else
		fw_address_take(b, CTX_FEED, F_IMAGE_URL, rank, &b->doc->image.url, url);
}

/* ---- categories, source, image, generator ---------------------------------------------------- */

void fw_category_add(struct fw_builder *b, bool entry, struct fw_str term, struct fw_str scheme, struct fw_str label)
{
	struct fw_category *c, **list = entry ? &b->entry->categories : &b->doc->categories;

	if (!term.len && !label.len)
		return;
	for (c = *list; c; c = c->next) {
		if (fw_str_eq(c->term, term) && fw_str_eq(c->scheme, scheme))
			return;
	}
	if (!fw_build_count_member(b, &fw_counts_of(b, entry)->categories, FW_LIST_MAX, "more than 100 categories"))
		return;
	c = FW_NEW(b, struct fw_category);
	if (!c)
		return;
	c->term = term.len ? term : FW_STR_NONE;
	c->scheme = scheme.len ? scheme : FW_STR_NONE;
	c->label = label.len ? label : FW_STR_NONE;
	FW_APPEND(*list, c);
}

void fw_category_start(struct fw_start_event *w)
{
	struct fw_category *c;

	fw_text_capture(w, TEXT_TRIM);
	if (!w->attr_n)
		return;
	c = w->frame->obj = FW_NEW(w->b, struct fw_category);
	if (!c)
		return;
	c->term = fw_build_line_text(w->b, fw_attr(w, "term"));
	c->scheme = fw_str_trim(fw_attr(w, "scheme"));
	if (!c->scheme.len)
		c->scheme = fw_str_trim(fw_attr(w, "domain"));
	c->label = fw_build_line_text(w->b, fw_attr(w, "label"));
}

void fw_category_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	enum fw_context where = fw_context_around(b, f);
	struct fw_category *c = f->obj;
	struct fw_str term = c && c->term.len ? c->term : FW_STR_NONE;

	if (where == CTX_SOURCE)
		return;
	if (!term.len)
		term = fw_build_title(b, s);
	fw_category_add(b, fw_in_entry(b, where), term, c ? c->scheme : FW_STR_NONE, c ? c->label : FW_STR_NONE);
}

void fw_source_start(struct fw_start_event *w)
{
	struct fw_document *d = FW_NEW(w->b, struct fw_document);

	fw_text_capture(w, TEXT_TRIM);
	if (!d)
		return;
	d->updated_ms = d->published_ms = d->created_ms = FW_NO_DATE;
	d->home_page_url = fw_build_url(w->b, w->frame->scope, fw_attr(w, "url"));
	w->b->source = d;
	memset(&w->b->source_rank, 0, sizeof(w->b->source_rank));
	w->frame->ctx = CTX_SOURCE;
}

static void persons_value(struct fw_builder *b, struct fw_value *in, const char *name, const struct fw_person *p)
{
	struct fw_value *list = p ? fw_value_array(b, in, name) : NULL, *v;

	for (; p; p = p->next) {
		v = fw_value_new(b, list, NULL, FW_VALUE_OBJECT);
		fw_value_str(b, v, "name", p->name);
		fw_value_str(b, v, "url", p->url);
		fw_value_str(b, v, "_email", p->email);
	}
}

void fw_source_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	struct fw_document *d = b->source;
	struct fw_value *v;

	(void)f;
	b->source = NULL;
	if (!d || !b->entry)
		return;
	if (!b->source_authors)
		b->source_authors = d->authors;
	if (!d->title.p)
		d->title = fw_build_title(b, s);
	if (!d->title.p && !d->home_page_url.p && !d->id.p && !d->feed_url.p && !d->authors && !d->description.p &&
		!d->copyright.p && !d->icon.p && !d->favicon.p && d->updated_ms == FW_NO_DATE)
		return;
	if (fw_value_find(b->entry->extra, "source"))
		return;
	v = fw_value_object(b, &b->entry->extra, "source");
	fw_value_str(b, v, "title", d->title);
	fw_value_str(b, v, "url", d->home_page_url);
	fw_value_str(b, v, "feed_url", d->feed_url);
	fw_value_str(b, v, "id", d->id);
	fw_value_str(b, v, "description", d->description);
	fw_value_str(b, v, "copyright", d->copyright);
	fw_value_str(b, v, "icon", d->favicon.p ? d->favicon : d->icon);
	fw_value_date(b, v, "updated", d->updated_ms);
	persons_value(b, v, "authors", d->authors);
	persons_value(b, v, "contributors", d->contributors);
}

/* What the attributes of a generator say, until its text is known. */
struct generator {
	struct fw_str url, version;
};

void fw_generator_start(struct fw_start_event *w)
{
	struct generator *g;
	struct fw_str url;

	fw_text_capture(w, TEXT_TRIM);
	if (!w->attr_n || w->where != CTX_FEED || !(g = FW_NEW(w->b, struct generator)))
		return;
	url = fw_attr(w, "uri");
	url = url.len ? url : fw_attr(w, "url");
	url = url.len ? url : fw_attr(w, "href");
	g->url = fw_build_url(w->b, w->frame->scope, url);
	g->version = fw_str_trim(fw_attr(w, "version"));
	w->frame->obj = g;
}

/*
 * The first one with a name counts; one without still has a URL and a version, above those of
 * admin:generatorAgent.
 */
#define RANK_WITHOUT_NAME 4
void fw_generator_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	const struct generator none = {FW_STR_NONE, FW_STR_NONE}, *g = f->obj ? f->obj : &none;
	struct fw_document *d = b->doc;

	s = fw_build_line_text(b, s);
	if ((!s.len && !g->url.len && !g->version.len) || fw_context_around(b, f) != CTX_FEED ||
		!fw_field_take(b, CTX_FEED, F_GENERATOR, s.len ? f->el->rank : RANK_WITHOUT_NAME))
		return;
	if (s.len)
		d->generator_name = s;
	if (g->url.len)
		d->generator_url = g->url;
	if (g->version.len)
		d->generator_version = g->version;
}
