/* SPDX-License-Identifier: ISC */
/*
 * The elements of RSS, Atom and CDF: what each does where it begins and where it ends.
 *
 * RSS and Atom share one vocabulary here, since feeds mix them; where they differ (how a text is to be read, link with href
 * or with text), the element's namespace or the root decides.
 */
#include <stddef.h>

#include "base/clock.h"
#include "parse/html.h"
#include "parse/walk.h"

#include "base/banned.h"

/* ---- targets --------------------------------------------------------------------------------------------------------- */

bool fw_in_entry(const struct fw_builder *b, enum fw_context where)
{
	return b->entry && where != CTX_SOURCE && where != CTX_FEED && where != CTX_IMAGE && where != CTX_ROOT;
}

static struct fw_document *feed_of(struct fw_builder *b, enum fw_context where)
{
	return where == CTX_SOURCE && b->source ? b->source : b->doc;
}

/* May this element fill the field? The higher rank may, and the first of equals. */
bool fw_take(struct fw_builder *b, enum fw_context where, enum fw_field field, uint8_t rank)
{
	struct fw_ranks *r = fw_in_entry(b, where) ? &b->entry_rank : where == CTX_SOURCE ? &b->source_rank : &b->feed_rank;

	if (rank <= r->of[field])
		return false;
	r->of[field] = rank;
	return true;
}

static struct fw_counts *counts_of(struct fw_builder *b, bool entry)
{
	return entry ? &b->count : &b->feed_count;
}

enum fw_context fw_where_of(const struct fw_builder *b, const struct fw_frame *f)
{
	return f > b->frame ? (enum fw_context)f[-1].ctx : CTX_TOP;
}

/* ---- roots ----------------------------------------------------------------------------------------------------------- */

static enum fw_format rss_version(struct fw_str v)
{
	static const struct { struct fw_str prefix; enum fw_format format; } known[] = {
		{{"0.90", 4}, FW_RSS090}, {{"0.91", 4}, FW_RSS091}, {{"0.92", 4}, FW_RSS092}, {{"0.93", 4}, FW_RSS093},
		{{"0.94", 4}, FW_RSS094},
	};
	size_t i;

	v = fw_str_trim(v);
	for (i = 0; i < FW_N(known); i++) {
		if (fw_str_starts(v, known[i].prefix))
			return known[i].format;
	}
	return FW_RSS20;
}

static void root_set(struct fw_walk *w, enum fw_format format)
{
	struct fw_builder *b = w->b;

	if (!b->root_seen) {
		b->doc->format = format;
		b->core_ns = w->name->ns;
		if (w->name->ns == FW_NS_UNKNOWN)
			b->core_uri = fw_build_dup(b, w->name->uri);
	}
	b->atom = format == FW_ATOM03 || format == FW_ATOM10;
	b->root_seen = true;
}

static void root_start(struct fw_walk *w)
{
	struct fw_str local = w->name->local;

	if (fw_str_ieq(local, FW_STR("rdf"))) {
		if (w->name->ns != FW_NS_RDF && w->frame != w->b->frame)
			return;
		/* 0.90 differs by its namespace only: said here, or by the channel's name */
		root_set(w, fw_str_find(fw_str_sub(w->b->text, w->b->xml->offset, w->b->xml->end_offset),
			FW_STR("my.netscape.com/rdf/simple/0.9")) ? FW_RSS090 : FW_RSS10);
		w->frame->ctx = CTX_ROOT;
	} else if (fw_str_ieq(local, FW_STR("rss"))) {
		root_set(w, rss_version(fw_attr(w, "version")));
		w->frame->ctx = CTX_ROOT;
	} else {
		bool old = w->name->ns == FW_NS_ATOM03 || fw_str_starts(fw_str_trim(fw_attr(w, "version")), FW_STR("0."));

		/* "feed" deep in something else has to show that it is Atom's */
		if (w->frame != w->b->frame && w->name->ns != FW_NS_ATOM10 && w->name->ns != FW_NS_ATOM03)
			return;
		root_set(w, old ? FW_ATOM03 : FW_ATOM10);
		w->frame->atom = true;
		w->frame->ctx = CTX_FEED;
	}
}

static void channel_start(struct fw_walk *w)
{
	struct fw_builder *b = w->b;
	struct fw_str href;

	if (w->where == CTX_TOP) {
		if (w->up)
			return; /* a "channel" somewhere in a document that is no feed */
		root_set(w, w->name->ns == FW_NS_RSS11 ? FW_RSS11 : FW_CDF);
	} else if (b->doc->format == FW_RSS10 && w->where == CTX_ROOT) {
		b->core_ns = w->name->ns;
		if (w->name->ns == FW_NS_RSS090)
			b->doc->format = FW_RSS090;
	}
	w->frame->ctx = w->where == CTX_FEED ? CTX_OTHER : CTX_FEED;
	href = fw_attr(w, "href"); /* CDF */
	if (href.len && b->doc->format == FW_CDF && w->where == CTX_TOP && fw_take(b, CTX_FEED, F_HOME, 5))
		b->doc->home_page_url = fw_build_url(b, w->frame->scope, href);
	if (b->doc->format == FW_CDF && w->where == CTX_TOP && fw_take(b, CTX_FEED, F_UPDATED, 5))
		b->doc->updated_ms = fw_build_date(b, fw_attr(w, "lastmod"));
}

static void entry_start(struct fw_walk *w)
{
	struct fw_builder *b = w->b;
	bool item = fw_str_ieq(w->name->local, FW_STR("item"));
	struct fw_str s;

	if (w->where == CTX_TOP) {
		if (w->up || (!item && w->name->ns != FW_NS_ATOM10 && w->name->ns != FW_NS_ATOM03))
			return;
		root_set(w, item ? FW_RSS20 : w->name->ns == FW_NS_ATOM03 ? FW_ATOM03 : FW_ATOM10);
	}
	if ((w->where == CTX_ENTRY || w->where == CTX_SOURCE) && item == b->atom)
		return;
	if (b->entry)
		fw_entry_finish(b); /* an entry that nobody closed */
	if (!fw_entry_begin(b, b->xml->offset))
		return;
	w->frame->obj = b->entry;
	w->frame->ctx = CTX_ENTRY;
	w->frame->atom = b->atom;
	fw_entry_language(b, w->frame->scope);
	if (!w->attr_n)
		return;
	s = fw_attr(w, "about");
	if (s.len && fw_take(b, CTX_ENTRY, F_ID, 8))
		b->entry->id = fw_str_trim(s);
	s = fw_attr(w, "href");
	if (s.len && fw_take(b, CTX_ENTRY, F_URL, 5))
		b->entry->url = fw_build_url(b, w->frame->scope, s);
	s = fw_attr(w, "lastmod");
	if (s.len && fw_take(b, CTX_ENTRY, F_UPDATED, 5))
		b->entry->updated_ms = fw_build_date(b, s);
}

/* ---- text constructs -------------------------------------------------------------------------------------------------- */

/* RFC 4287 section 3.1.1 and 4.1.3.3; Atom 0.3 section 3.1: type is a MIME type, mode says how it was packed. */
static void text_start(struct fw_walk *w)
{
	struct fw_str type = fw_str_trim(fw_attr(w, "type")), mode;
	enum fw_text_rule rule = TEXT_AUTO;

	if (!w->frame->atom) {
		if (w->name->ns == FW_NS_XHTML)
			rule = TEXT_XML;
		else if (w->attr_n && fw_str_ieq(type, FW_STR("xhtml")))
			rule = TEXT_XML;
		fw_walk_capture(w, rule);
		return;
	}
	mode = fw_str_trim(fw_attr(w, "mode"));
	w->frame->is_html = fw_str_ieq(type, FW_STR("html")) || fw_str_ieq(type, FW_STR("text/html")) ||
		fw_str_ieq(type, FW_STR("xhtml")) || fw_str_ieq(type, FW_STR("application/xhtml+xml"));
	if (fw_str_ieq(mode, FW_STR("base64")))
		rule = TEXT_BASE64;
	else if (!type.len || fw_str_ieq(type, FW_STR("text")) || fw_str_istarts(type, FW_STR("text/plain")))
		rule = fw_str_ieq(mode, FW_STR("escaped")) && !type.len ? TEXT_AUTO : TEXT_PLAIN;
	else if (fw_str_ieq(type, FW_STR("xhtml")) || fw_str_ieq(type, FW_STR("application/xhtml+xml")))
		rule = fw_str_ieq(mode, FW_STR("escaped")) ? TEXT_HTML : TEXT_XML;
	else if (fw_str_ieq(type, FW_STR("html")) || fw_str_istarts(type, FW_STR("text/html")))
		rule = TEXT_HTML;
	else if (fw_str_ends(type, FW_STR("+xml")) || fw_str_ends(type, FW_STR("/xml")))
		rule = TEXT_XML;
	else if (fw_str_istarts(type, FW_STR("text/")))
		rule = TEXT_PLAIN;
	else if (memchr(type.p, '/', type.len))
		rule = TEXT_BASE64;
	w->frame->untyped = !type.len && w->el->kind == EL_BODY;
	fw_walk_capture(w, rule);
	if (w->el->field == F_CONTENT) {
		struct fw_str src = fw_build_url(w->b, w->frame->scope, fw_attr(w, "src"));

		if (src.len) {
			struct fw_value *v = fw_value_object(w->b, &w->b->entry->extra, "content");

			fw_value_str(w->b, v, "src", src);
			fw_value_str(w->b, v, "type", type.len ? fw_build_dup(w->b, type) : FW_STR_NONE);
			if (fw_take(w->b, CTX_ENTRY, F_URL, 3))
				w->b->entry->url = src;
		}
	}
}

static struct fw_str title_of(struct fw_builder *b, const struct fw_frame *f, struct fw_str s, bool markup)
{
	enum fw_text_type type;

	if (f->rule == TEXT_AUTO && !markup)
		return fw_build_title(b, s);
	s = fw_text_value(b, f, s, markup, &type);
	return fw_build_line_text(b, fw_build_plain(b, s, type));
}

static void text_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s, bool markup)
{
	enum fw_context where = fw_where_of(b, f);
	struct fw_document *d = feed_of(b, where);
	struct fw_str text = title_of(b, f, s, markup);

	if (!text.len)
		return;
	if (where == CTX_IMAGE) {
		if (!d->image.title.p)
			d->image.title = text;
		return;
	}
	if (f->el->member[0])
		fw_value_str(b, fw_value_object(b, fw_extra_root(b, where), f->el->group), f->el->member, text);
	if (!fw_take(b, where, (enum fw_field)f->el->field, f->el->rank))
		return;
	if (f->el->field == F_TITLE && fw_in_entry(b, where))
		b->entry->title = text;
	else if (f->el->field == F_TITLE)
		d->title = text;
	else if (fw_in_entry(b, where))
		b->entry->copyright = text;
	else
		d->copyright = text;
}

static void body_set(const struct fw_frame *f, struct fw_body *body, struct fw_str s,
	enum fw_text_type type)
{
	if (f->el->rank <= body->rank)
		return;
	*body = (struct fw_body){.s = s, .type = type, .scope = f->scope, .rank = f->el->rank};
}

static void body_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s, bool markup)
{
	enum fw_context where = fw_where_of(b, f);
	struct fw_document *d = feed_of(b, where);
	enum fw_text_type type;

	s = fw_str_trim(fw_text_value(b, f, s, markup, &type));
	if (!s.len)
		return;
	if (f->el->member[0])
		fw_value_str(b, fw_value_object(b, fw_extra_root(b, where), f->el->group), f->el->member,
			fw_build_plain(b, s, type));
	if (fw_in_entry(b, where)) {
		if (f->el->field == F_CONTENT)
			body_set(f, &b->content, s, f->el->rank == 9 ? FW_TEXT_HTML : type);
		else
			body_set(f, f->el->field == F_SUMMARY ? &b->summary : &b->description, s, type);
	} else if (where == CTX_IMAGE) {
		d->image.description = fw_build_plain(b, s, type);
	} else if (fw_take(b, where, F_DESCRIPTION, f->el->rank)) {
		d->description = fw_build_plain(b, s, type);
	}
}

static bool is_http(struct fw_str s)
{
	return fw_str_istarts(s, FW_STR("http://")) || fw_str_istarts(s, FW_STR("https://"));
}

/* ---- plain values ------------------------------------------------------------------------------------------------------ */

static void string_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	enum fw_context where = fw_where_of(b, f);
	enum fw_field field = (enum fw_field)f->el->field;
	bool entry = fw_in_entry(b, where);

	s = fw_str_trim(s);
	if (!s.len || !fw_take(b, where, field, f->el->rank))
		return;
	if (field == F_ID && entry) {
		b->entry->id = s;
		/* better than no address at all */
		if (is_http(s) && fw_take(b, where, F_URL, 2))
			b->entry->url = fw_build_url(b, f->scope, s);
	} else if (field == F_ID)
		feed_of(b, where)->id = s;
	else if (field == F_LANGUAGE && entry)
		b->entry->language = s;
	else if (field == F_LANGUAGE)
		feed_of(b, where)->language = s;
}

/* The address may stand in an attribute instead of the text: the start keeps it in obj. */
static void url_start(struct fw_walk *w)
{
	struct fw_str s = fw_attr(w, "resource"), *kept;

	if (!s.len)
		s = fw_attr(w, "href");
	if (!s.len)
		s = fw_attr(w, "url");
	if (s.len && (kept = FW_NEW(w->b, struct fw_str))) {
		*kept = s;
		w->frame->obj = kept;
	}
	fw_walk_capture(w, TEXT_TRIM);
}

static void url_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	enum fw_context where = fw_where_of(b, f);
	enum fw_field field = (enum fw_field)f->el->field;
	struct fw_document *d = feed_of(b, where);
	struct fw_entry *e = fw_in_entry(b, where) ? b->entry : NULL;
	struct fw_str *kept = f->obj;

	s = fw_build_url(b, f->scope, fw_str_trim(s).len ? s : kept ? *kept : s);
	if (where == CTX_PERSON) {
		struct fw_person *p = f[-1].obj;

		if (p && !p->url.p)
			p->url = s;
		return;
	}
	if (!s.len || !fw_take(b, where, field, f->el->rank))
		return;
	switch (field) {
	case F_URL:
		if (e && e->url.len) /* FeedBurner's own stays in sight */
			fw_link_add(b, &e->links, FW_STR("feedburner"), e->url);
		if (e)
			e->url = s;
		break;
	case F_LICENSE:
		*(e ? &e->license : &d->license) = s;
		break;
	case F_COMMENTS:
		if (e)
			e->comments = s;
		break;
	case F_COMMENT_FEED:
		if (e)
			e->comment_feed_url = s;
		break;
	case F_DOCS:
		d->docs = s;
		break;
	case F_ICON:
		*(e ? &e->image : &d->icon) = s;
		break;
	case F_FAVICON:
		if (!e)
			d->favicon = s;
		break;
	case F_IMAGE:
		d->image.url = s;
		break;
	case F_GENERATOR:
		d->generator_url = s;
		if (!d->generator_name.p)
			d->generator_name = s;
		break;
	default:
		break;
	}
}

static void date_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	enum fw_context where = fw_where_of(b, f);
	enum fw_field field = (enum fw_field)f->el->field;
	struct fw_document *d = feed_of(b, where);
	struct fw_entry *e = fw_in_entry(b, where) ? b->entry : NULL;
	int64_t at;

	/* a channel's dc:date says when it was brought out last */
	if (!e && field == F_PUBLISHED && f->el->rank == 6)
		field = F_UPDATED;
	s = fw_str_trim(s);
	if (field == F_NONE || !s.len)
		return;
	at = fw_build_date(b, s);
	if (at == FW_NO_DATE || !fw_take(b, where, field, f->el->rank))
		return;
	if (field == F_PUBLISHED)
		*(e ? &e->published_ms : &d->published_ms) = at;
	else if (field == F_UPDATED)
		*(e ? &e->updated_ms : &d->updated_ms) = at;
	else
		*(e ? &e->created_ms : &d->created_ms) = at;
}

static void number_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	enum fw_context where = fw_where_of(b, f);
	int64_t n = fw_build_number(s);

	if (n == FW_NO_NUMBER)
		return;
	switch ((enum fw_field)f->el->field) {
	case F_TTL:
		b->doc->ttl_minutes = n;
		break;
	case F_WIDTH:
		b->doc->image.width = n;
		break;
	case F_HEIGHT:
		b->doc->image.height = n;
		break;
	case F_COMMENT_COUNT:
		if (fw_in_entry(b, where) && fw_take(b, where, F_COMMENT_COUNT, f->el->rank))
			b->entry->comment_count = n;
		break;
	default:
		break;
	}
}

/* ---- people ------------------------------------------------------------------------------------------------------------ */

static void person_start(struct fw_walk *w)
{
	w->frame->obj = FW_NEW(w->b, struct fw_person);
	w->frame->ctx = CTX_PERSON;
	fw_walk_capture(w, TEXT_TRIM);
}

static bool same_person(const struct fw_person *a, const struct fw_person *b)
{
	return (a->name.len && fw_str_eq(a->name, b->name)) || (a->email.len && fw_str_eq(a->email, b->email));
}

static void person_add(struct fw_person **list, struct fw_person *p)
{
	struct fw_person *o;

	for (o = *list; o; o = o->next) {
		if (!same_person(o, p))
			continue;
		if (!o->name.p)
			o->name = p->name;
		if (!o->email.p)
			o->email = p->email;
		if (!o->url.p)
			o->url = p->url;
		return;
	}
	FW_APPEND(*list, p);
}

static void person_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	enum fw_context where = fw_where_of(b, f);
	struct fw_document *d = feed_of(b, where);
	struct fw_entry *e = fw_in_entry(b, where) ? b->entry : NULL;
	struct fw_ranks *r = e ? &b->entry_rank : where == CTX_SOURCE ? &b->source_rank : &b->feed_rank;
	struct fw_person *p = f->obj, **list;
	struct fw_str name;

	if (!p)
		return;
	if (!p->name.len && !p->email.len && !p->url.len)
		fw_person_split(b, fw_build_title(b, s), p);
	else if (p->name.len && !p->email.len && memchr(p->name.p, '@', p->name.len)) {
		name = p->name;
		p->name = FW_STR_NONE;
		fw_person_split(b, name, p);
	}
	if (!p->name.len && !p->email.len && !p->url.len)
		return;
	if (f->el->member[0])
		fw_value_str(b, fw_value_object(b, fw_extra_root(b, where), f->el->group), f->el->member,
			p->name.len ? p->name : p->email);
	if (f->el->field == F_PUBLISHER) {
		if (fw_take(b, where, F_PUBLISHER, f->el->rank))
			*(e ? &e->publisher : &d->publisher) = *p;
		return;
	}
	if (counts_of(b, e != NULL)->people++ >= FW_LIST_MAX)
		return;
	if (f->el->field == F_CONTRIBUTOR) {
		FW_APPEND(*(e ? &e->contributors : &d->contributors), p);
		return;
	}
	list = e ? &e->authors : &d->authors;
	if (f->el->rank < r->of[F_AUTHOR])
		return;
	if (f->el->rank > r->of[F_AUTHOR] && r->of[F_AUTHOR] < 6)
		*list = NULL; /* stand-ins (itunes:author) go when the author comes */
	r->of[F_AUTHOR] = f->el->rank;
	person_add(list, p);
}

static void person_part_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	struct fw_person *p = f > b->frame ? f[-1].obj : NULL;

	s = fw_str_trim(s);
	if (!p || !s.len)
		return;
	if (f->el->field == F_URL) {
		if (!p->url.p)
			p->url = fw_build_url(b, f->scope, s);
	} else if (f->el->field == F_NAME) {
		if (!p->name.p)
			p->name = fw_build_title(b, s);
	} else if (!p->email.p) {
		p->email = fw_str_istarts(s, FW_STR("mailto:")) ? fw_str_sub(s, 7, s.len) : s;
	}
}

/* ---- links ------------------------------------------------------------------------------------------------------------- */

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

static void link_start(struct fw_walk *w)
{
	struct fw_link *l;

	fw_walk_capture(w, TEXT_TRIM);
	/* RSS: an address as text and nothing else */
	if (!w->frame->atom && !fw_attr(w, "href").p && !fw_attr(w, "rel").p)
		return;
	l = w->frame->obj = FW_NEW(w->b, struct fw_link);
	if (!l)
		return;
	l->rel = fw_str_trim(fw_attr(w, "rel"));
	l->type = fw_str_trim(fw_attr(w, "type"));
	l->href = fw_str_trim(fw_attr(w, "href"));
	l->title = fw_build_line_text(w->b, fw_attr(w, "title"));
	l->hreflang = fw_str_trim(fw_attr(w, "hreflang"));
	l->length = fw_build_number(fw_attr(w, "length"));
}

/* "http://www.iana.org/assignments/relation/self" means "self" (RFC 4287 section 4.2.7.2). */
static bool rel_is(struct fw_str rel, const char *name)
{
	static const struct fw_str iana = {"http://www.iana.org/assignments/relation/", 41};

	if (fw_str_istarts(rel, iana))
		rel = fw_str_sub(rel, iana.len, rel.len);
	return fw_str_ieq(rel, fw_str(name));
}

static bool html_type(struct fw_str type)
{
	return !type.len || fw_str_istarts(type, FW_STR("text/html")) || fw_str_istarts(type, FW_STR("application/xhtml"));
}

void fw_attachment_add(struct fw_builder *b, struct fw_str url, struct fw_str type, struct fw_str title, int64_t size)
{
	struct fw_entry *e = b->entry;
	struct fw_attachment *a;

	for (a = e->attachments; a; a = a->next) {
		if (fw_str_eq(a->url, url))
			return;
	}
	if (b->count.attachments++ >= FW_LIST_MAX)
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

static void entry_link(struct fw_builder *b, struct fw_link *l, uint8_t rank)
{
	struct fw_entry *e = b->entry;

	if (rel_is(l->rel, "alternate")) {
		if (fw_take(b, CTX_ENTRY, F_URL, rank))
			e->url = l->href;
	} else if (rel_is(l->rel, "enclosure")) {
		fw_attachment_add(b, l->href, l->type, l->title, l->length);
	} else if (rel_is(l->rel, "replies")) {
		if (html_type(l->type) && l->type.len) {
			if (fw_take(b, CTX_ENTRY, F_COMMENTS, 5))
				e->comments = l->href;
		} else if (fw_take(b, CTX_ENTRY, F_COMMENT_FEED, 5)) {
			e->comment_feed_url = l->href;
		}
	} else if (rel_is(l->rel, "license")) {
		if (fw_take(b, CTX_ENTRY, F_LICENSE, 6))
			e->license = l->href;
	}
}

static void feed_link(struct fw_builder *b, struct fw_document *d, enum fw_context where, struct fw_link *l, uint8_t rank)
{
	if (rel_is(l->rel, "alternate")) {
		if (fw_take(b, where, F_HOME, rank))
			d->home_page_url = l->href;
	} else if (rel_is(l->rel, "self")) {
		if (!d->feed_url.p)
			d->feed_url = l->href;
	} else if (rel_is(l->rel, "hub")) {
		fw_link_add(b, &d->hubs, FW_STR("hub"), l->href); /* WebSub */
	} else if (rel_is(l->rel, "next")) {
		if (!d->next_url.p)
			d->next_url = l->href;
	} else if (rel_is(l->rel, "prev-archive")) {
		if (!d->prev_archive_url.p)
			d->prev_archive_url = l->href;
	} else if (rel_is(l->rel, "license")) {
		if (fw_take(b, where, F_LICENSE, 6))
			d->license = l->href;
	} else if (rel_is(l->rel, "icon") || rel_is(l->rel, "shortcut icon")) {
		if (fw_take(b, where, F_FAVICON, 5))
			d->favicon = l->href;
	}
}

static void link_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	enum fw_context where = fw_where_of(b, f);
	struct fw_entry *e = fw_in_entry(b, where) ? b->entry : NULL;
	struct fw_document *d = feed_of(b, where);
	struct fw_link *l = f->obj;
	uint8_t rank = f->el->rank;

	s = fw_build_url(b, f->scope, l && l->href.len ? l->href : s);
	if (!s.len)
		return;
	if (where == CTX_IMAGE) {
		d->image.link = s;
	} else if (!l && e) {
		if (fw_take(b, where, F_URL, rank))
			e->url = s;
	} else if (!l) {
		if (fw_take(b, where, F_HOME, rank))
			d->home_page_url = s;
	} else {
		l->href = s;
		if (!l->rel.len)
			l->rel = FW_STR("alternate");
		/* Atom's links in RSS stand back behind RSS's own; other types of the page behind HTML */
		rank = (uint8_t)(rank - (b->atom ? 0 : 2) - (html_type(l->type) ? 0 : 1));
		if (counts_of(b, e != NULL)->links++ >= FW_LIST_MAX)
			return;
		FW_APPEND(*(e ? &e->links : &d->links), l);
		if (e)
			entry_link(b, l, rank);
		else
			feed_link(b, d, where, l, rank);
	}
}

static void guid_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	s = fw_str_trim(s);
	if (!s.len || !fw_in_entry(b, fw_where_of(b, f)))
		return;
	if (fw_take(b, CTX_ENTRY, F_ID, f->el->rank))
		b->entry->id = s;
	/* isPermaLink defaults to true, but only an address can be one */
	if (!f->obj && is_http(s) && fw_take(b, CTX_ENTRY, F_URL, 4))
		b->entry->url = fw_build_url(b, f->scope, s);
}

static void enclosure_start(struct fw_walk *w)
{
	struct fw_str url = fw_attr(w, "url");

	url = fw_build_url(w->b, w->frame->scope, url.len ? url : fw_attr(w, "href"));
	if (url.len)
		fw_attachment_add(w->b, url, fw_str_trim(fw_attr(w, "type")), FW_STR_NONE,
			fw_build_number(fw_attr(w, "length")));
}

/* ---- categories, source, image, generator ------------------------------------------------------------------------------ */

void fw_category_add(struct fw_builder *b, bool entry, struct fw_str term, struct fw_str scheme, struct fw_str label)
{
	struct fw_category *c, **list = entry ? &b->entry->categories : &b->doc->categories;

	if (!term.len && !label.len)
		return;
	for (c = *list; c; c = c->next) {
		if (fw_str_eq(c->term, term) && fw_str_eq(c->scheme, scheme))
			return;
	}
	if (counts_of(b, entry)->categories++ >= FW_LIST_MAX)
		return;
	c = FW_NEW(b, struct fw_category);
	if (!c)
		return;
	c->term = term.len ? term : FW_STR_NONE;
	c->scheme = scheme.len ? scheme : FW_STR_NONE;
	c->label = label.len ? label : FW_STR_NONE;
	FW_APPEND(*list, c);
}

static void category_start(struct fw_walk *w)
{
	struct fw_category *c;

	fw_walk_capture(w, TEXT_TRIM);
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

static void category_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	enum fw_context where = fw_where_of(b, f);
	struct fw_category *c = f->obj;
	struct fw_str term = c && c->term.len ? c->term : FW_STR_NONE;

	if (where == CTX_SOURCE)
		return;
	if (!term.len)
		term = fw_build_title(b, s);
	fw_category_add(b, fw_in_entry(b, where), term, c ? c->scheme : FW_STR_NONE, c ? c->label : FW_STR_NONE);
}

static void source_start(struct fw_walk *w)
{
	struct fw_document *d = FW_NEW(w->b, struct fw_document);

	fw_walk_capture(w, TEXT_TRIM);
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

static void date_value(struct fw_builder *b, struct fw_value *in, const char *name, int64_t at_ms)
{
	char text[FW_RFC3339_MAX];

	if (at_ms != FW_NO_DATE)
		fw_value_str(b, in, name, fw_build_dup(b, fw_str(fw_rfc3339(text, at_ms))));
}

static void source_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	struct fw_document *d = b->source;
	struct fw_value *v;

	(void)f;
	b->source = NULL;
	if (!d || !b->entry)
		return;
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
	date_value(b, v, "updated", d->updated_ms);
	persons_value(b, v, "authors", d->authors);
	persons_value(b, v, "contributors", d->contributors);
}

static void generator_start(struct fw_walk *w)
{
	struct fw_document *d = feed_of(w->b, w->where);
	struct fw_str url;

	fw_walk_capture(w, TEXT_TRIM);
	if (!w->attr_n || w->where != CTX_FEED)
		return;
	url = fw_attr(w, "uri");
	url = url.len ? url : fw_attr(w, "url");
	if (url.len)
		d->generator_url = fw_build_url(w->b, w->frame->scope, url);
	d->generator_version = fw_str_trim(fw_attr(w, "version"));
	if (!d->generator_version.len)
		d->generator_version = FW_STR_NONE;
}

/* ---- when not to come: skipHours, skipDays ----------------------------------------------------------------------------- */

static void day_end(struct fw_builder *b, struct fw_str s)
{
	static const char *const names[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
	size_t i;

	s = fw_str_trim(s);
	for (i = 0; i < FW_N(names); i++) {
		if (fw_str_istarts(s, fw_str(names[i])))
			b->doc->skip_days |= (uint8_t)(1u << i);
	}
}

static void hour_end(struct fw_builder *b, struct fw_str s)
{
	int64_t n = fw_build_number(s);

	if (n >= 0 && n <= 24)
		b->doc->skip_hours |= 1u << (n % 24);
}

/* ---- dispatch ----------------------------------------------------------------------------------------------------------- */

int fw_walk_start(struct fw_walk *w)
{
	switch ((enum fw_element_kind)w->el->kind) {
	case EL_ROOT:
		root_start(w);
		break;
	case EL_CHANNEL:
		channel_start(w);
		break;
	case EL_ENTRY:
		entry_start(w);
		break;
	case EL_TEXT:
	case EL_BODY:
		text_start(w);
		break;
	case EL_URL:
		url_start(w);
		break;
	case EL_PERSON:
		person_start(w);
		break;
	case EL_LINK:
		link_start(w);
		break;
	case EL_GUID:
		/* obj marks a guid that is no address */
		w->frame->obj = w->attr_n && fw_str_ieq(fw_str_trim(fw_attr(w, "ispermalink")), FW_STR("false")) ? w->b : NULL;
		fw_walk_capture(w, TEXT_TRIM);
		break;
	case EL_ENCLOSURE:
		enclosure_start(w);
		break;
	case EL_CATEGORY:
		category_start(w);
		break;
	case EL_SOURCE:
		source_start(w);
		break;
	case EL_IMAGE:
		w->frame->ctx = CTX_IMAGE;
		if (!w->b->doc->image.url.p)
			w->b->doc->image.url = fw_build_url(w->b, w->frame->scope, fw_attr(w, "resource"));
		break;
	case EL_GENERATOR:
		generator_start(w);
		break;
	case EL_SKIP_HOURS:
	case EL_SKIP_DAYS:
		w->frame->ctx = CTX_LIST;
		break;
	case EL_STRING:
	case EL_DATE:
	case EL_NUMBER:
	case EL_PERSON_PART:
	case EL_HOUR:
	case EL_DAY:
	case EL_PERIOD:
	case EL_FREQUENCY:
		fw_walk_capture(w, TEXT_TRIM);
		break;
	default:
		fw_module_start(w);
		break;
	}
	return 0;
}

void fw_frame_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s, bool markup)
{
	switch ((enum fw_element_kind)f->el->kind) {
	case EL_ROOT:
	case EL_CHANNEL:
	case EL_ENCLOSURE:
	case EL_IMAGE:
	case EL_SKIP_HOURS:
	case EL_SKIP_DAYS:
		break;
	case EL_ENTRY:
		if (b->entry && f->obj == b->entry)
			fw_entry_finish(b);
		break;
	case EL_TEXT:
		text_end(b, f, s, markup);
		break;
	case EL_BODY:
		body_end(b, f, s, markup);
		break;
	case EL_STRING:
		string_end(b, f, s);
		break;
	case EL_URL:
		url_end(b, f, s);
		break;
	case EL_DATE:
		date_end(b, f, s);
		break;
	case EL_NUMBER:
		number_end(b, f, s);
		break;
	case EL_PERSON:
		person_end(b, f, s);
		break;
	case EL_PERSON_PART:
		person_part_end(b, f, s);
		break;
	case EL_LINK:
		link_end(b, f, s);
		break;
	case EL_GUID:
		guid_end(b, f, s);
		break;
	case EL_CATEGORY:
		category_end(b, f, s);
		break;
	case EL_SOURCE:
		source_end(b, f, s);
		break;
	case EL_GENERATOR:
		s = fw_build_line_text(b, s);
		if (s.len && fw_where_of(b, f) == CTX_FEED && fw_take(b, CTX_FEED, F_GENERATOR, f->el->rank))
			b->doc->generator_name = s;
		break;
	case EL_HOUR:
		hour_end(b, s);
		break;
	case EL_DAY:
		day_end(b, s);
		break;
	case EL_PERIOD:
		b->period = fw_str_trim(s);
		break;
	case EL_FREQUENCY:
		b->frequency = fw_str_trim(s);
		break;
	default:
		fw_module_end(b, f, s, markup);
		break;
	}
}
