/* SPDX-License-Identifier: ISC */
/*
 * The elements of RSS, Atom and CDF: what each does at its start and at its end. Roots, entries and
 * plain values are here; texts, people, links and modules have their own files.
 *
 * RSS and Atom share one vocabulary, since feeds mix them. Where they differ (how a text is read, a
 * link with href or with text), the element's namespace or the root decides.
 */
#include "parse/feed/lookahead.h"
#include "parse/feed/elements.h"
#include "parse/feed/links.h"
#include "parse/feed/modules.h"
#include "parse/feed/normalize.h"
#include "parse/feed/people.h"
#include "parse/feed/texts.h"

/* ---- roots ----------------------------------------------------------------------------------- */

static enum fw_format rss_version(struct fw_str v)
{
	static const struct {
		struct fw_str prefix;
		enum fw_format format;
	} known[] = {
		{{"0.90", 4}, FW_RSS090},
		{{"0.91", 4}, FW_RSS091},
		{{"0.92", 4}, FW_RSS092},
		{{"0.93", 4}, FW_RSS093},
		{{"0.94", 4}, FW_RSS094},
	};
	size_t i;

	v = fw_str_trim(v);
	if (fw_str_eq(v, FW_STR("0.9")))
		return FW_RSS090;
	for (i = 0; i < FW_N(known); i++) {
		if (fw_str_starts(v, known[i].prefix))
			return known[i].format;
	}
	return FW_RSS20;
}

/* The xml:lang of the root or channel is the feed's. */
static void language_set(struct fw_start_event *w)
{
	if (!w->b->feed_lang.p && w->frame->scope)
		w->b->feed_lang = w->frame->scope->lang;
}

/* Make this element's namespace the feed's own. */
static void core_set(struct fw_start_event *w)
{
	w->b->core_ns = w->name->ns;
	if (w->name->ns == FW_NS_UNKNOWN)
		w->b->core_uri = fw_build_dup(w->b, w->name->uri);
}

static void root_set(struct fw_start_event *w, enum fw_format format)
{
	struct fw_builder *b = w->b;

	if (!b->root_seen) {
		b->doc->format = format;
		core_set(w);
	}
	b->atom = format == FW_ATOM03 || format == FW_ATOM10;
	b->root_seen = true;
	if (fw_str_ieq(b->root_name, FW_STR("html")))
		fw_build_problem(b, fw_build_offset(b), "a feed inside an HTML page", "the page around it is left out");
	if (w->el->kind != EL_ENTRY)
		language_set(w);
}

static void root_start(struct fw_start_event *w)
{
	struct fw_str local = w->name->local;

	if (fw_str_ieq(local, FW_STR("rdf"))) {
		if (w->name->ns != FW_NS_RDF && w->frame != w->b->frame)
			return;
		/* 0.90 differs in its namespace only: declared here, or by the channel's name */
		root_set(w,
			fw_str_find(fw_str_sub(w->b->text, w->b->xml->offset, w->b->xml->end_offset),
				FW_STR("my.netscape.com/rdf/simple/0.9")) ?
				FW_RSS090 :
				FW_RSS10);
		w->frame->ctx = CTX_ROOT;
	} else if (fw_str_ieq(local, FW_STR("rss"))) {
		root_set(w, rss_version(fw_attr(w, "version")));
		w->frame->ctx = CTX_ROOT;
	} else {
		bool old = w->name->ns == FW_NS_ATOM03 ||
			(w->name->ns != FW_NS_ATOM10 &&
				fw_str_starts(fw_str_trim(fw_attr(w, "version")), FW_STR("0.")));

		/* a nested "feed" counts only in Atom's namespace */
		if (w->frame != w->b->frame && w->name->ns != FW_NS_ATOM10 && w->name->ns != FW_NS_ATOM03)
			return;
		root_set(w, old ? FW_ATOM03 : FW_ATOM10);
		w->frame->atom = true;
		w->frame->ctx = CTX_FEED;
	}
}

/* CDF: a channel's BASE applies to all its content. */
static void cdf_base(struct fw_start_event *w)
{
	struct fw_str base = fw_build_url(w->b, w->frame->scope, fw_attr(w, "base"));
	struct fw_scope *s = base.len && base.len <= FW_BASE_MAX ? FW_NEW(w->b, struct fw_scope) : NULL;

	if (!s)
		return;
	if (w->frame->scope)
		*s = *w->frame->scope;
	s->base = base;
	s->base_declared = true;
	w->frame->scope = s;
}

static void channel_start(struct fw_start_event *w)
{
	struct fw_builder *b = w->b;

	if (w->where == CTX_TOP && w->up) {
		/*
		 * other documents have a "channel" too (XMLTV); one with items is a feed, whatever
		 * is around it
		 */
		if (!fw_lookahead(b, "item"))
			return;
		root_set(w, w->name->ns == FW_NS_RSS10 ? FW_RSS10 : FW_RSS20);
		w->up->ctx = CTX_ROOT; /* RSS 1.0 items follow the channel */
		fw_build_problem(b, fw_build_offset(b), "a channel in an element that is not a feed", "read as RSS");
	} else if (w->where == CTX_TOP) {
		root_set(w, w->name->ns == FW_NS_RSS11 ? FW_RSS11 : FW_CDF);
	} else if (b->doc->format == FW_RSS10 && w->where == CTX_ROOT) {
		core_set(w);
		if (w->name->ns == FW_NS_RSS090)
			b->doc->format = FW_RSS090;
	}
	w->frame->ctx = w->where == CTX_FEED ? CTX_OTHER : CTX_FEED;
	language_set(w);
	if (b->doc->format == FW_CDF)
		cdf_base(w);
	if (b->doc->format != FW_CDF || w->where != CTX_TOP)
		return;
	fw_page_add(b, CTX_FEED, fw_build_url(b, w->frame->scope, fw_attr(w, "href")), 5);
	if (fw_field_take(b, CTX_FEED, F_UPDATED, 5))
		b->doc->updated_ms = fw_build_date(b, fw_attr(w, "lastmod"));
}

/* obj encodes isPermaLink: the builder for "false", the frame for "true", NULL if it is absent. */
static void guid_start(struct fw_start_event *w)
{
	struct fw_str says = w->attr_n ? fw_str_trim(fw_attr(w, "ispermalink")) : FW_STR_NONE;

	w->frame->obj = fw_str_ieq(says, FW_STR("false")) ? (void *)w->b :
		fw_str_ieq(says, FW_STR("true"))          ? (void *)w->frame :
							    NULL;
	fw_text_capture(w, TEXT_TRIM);
}

/* CDF: <A HREF> inside an item or channel does the same as its HREF attribute. */
static void anchor_start(struct fw_start_event *w)
{
	if (w->b->doc->format == FW_CDF)
		fw_page_add(w->b, w->where, fw_build_url(w->b, w->frame->scope, fw_attr(w, "href")), w->el->rank);
}

static void entry_start(struct fw_start_event *w)
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
	if (b->core_ns == FW_NS_RDF)
		core_set(w);                                /* there was no channel */
	if (!w->attr_n && fw_frame_is_empty(b, w->frame)) { /* an entry around it continues after it */
		fw_build_empty_entry(b, fw_build_offset(b));
		return;
	}
	if (b->entry)
		fw_entry_finish(b); /* the previous entry was not closed */
	if (!fw_entry_begin(b, b->xml->offset))
		return;
	w->frame->obj = b->entry;
	w->frame->ctx = CTX_ENTRY;
	w->frame->atom = b->atom;
	fw_entry_language(b, w->frame->scope);
	if (!w->attr_n)
		return;
	s = fw_attr(w, "about");
	if (s.len && fw_field_take(b, CTX_ENTRY, F_ID, 7))
		b->entry->id = fw_str_trim(s);
	if (fw_is_http(s)) /* unless there is a link */
		fw_page_set(b, CTX_ENTRY, fw_build_url(b, w->frame->scope, s), 1);
	fw_page_add(b, CTX_ENTRY, fw_build_url(b, w->frame->scope, fw_attr(w, "href")), 5);
	s = fw_attr(w, "lastmod");
	if (s.len && fw_field_take(b, CTX_ENTRY, F_UPDATED, 5))
		b->entry->updated_ms = fw_build_date(b, s);
}

/* ---- plain values ---------------------------------------------------------------------------- */

static void string_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	enum fw_context where = fw_context_around(b, f);
	enum element_field field = (enum element_field)f->el->field;
	bool entry = fw_in_entry(b, where);

	s = fw_str_trim(s);
	/* in RSS the guid has priority */
	if (!s.len || !fw_field_take(b, where, field, (uint8_t)(f->el->rank - (field == F_ID && !b->atom))))
		return;
	if (field == F_ID && entry) {
		b->entry->id = s;
		/* better than no URL at all */
		if (fw_is_http(s))
			fw_page_set(b, where, fw_build_url(b, f->scope, s), 2);
	} else if (field == F_ID)
		fw_feed_of(b, where)->id = s;
	else if (field == F_LANGUAGE && entry)
		b->entry->language = fw_build_language(b, s);
	else if (field == F_LANGUAGE)
		fw_feed_of(b, where)->language = fw_build_language(b, s);
}

/* The member that an address fills; NULL: none there. e: NULL outside of an entry. */
static struct fw_str *address_of(struct fw_document *d, struct fw_entry *e, enum element_field field)
{
	switch (field) {
	case F_LICENSE:
		return e ? &e->license : &d->license;
	case F_COMMENTS:
		return e ? &e->comments : NULL;
	case F_COMMENT_FEED:
		return e ? &e->comment_feed_url : NULL;
	case F_DOCS:
		return &d->docs;
	case F_IMAGE:
		return e ? &e->image : &d->icon;
	case F_FAVICON:
		return e ? NULL : &d->favicon;
	default:
		return NULL;
	}
}

static void url_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	enum fw_context where = fw_context_around(b, f);
	enum element_field field = (enum element_field)f->el->field;
	struct fw_document *d = fw_feed_of(b, where);
	struct fw_str *to;

	s = fw_url_text(f, s);
	if (field == F_ORIGINAL) {
		s = fw_build_original(b, s);
		b->orig_link = s.len ? s : b->orig_link;
		return;
	}
	s = fw_build_url(b, f->scope, s);
	if (where == CTX_PERSON) {
		fw_person_url(f[-1].obj, field, s);
		return;
	}
	if (field == F_IMAGE_URL) {
		fw_image_set(b, s, f->el->rank);
		return;
	}
	if (field == F_GENERATOR) { /* generatorAgent: a name too, if there is no other */
		if (!d->generator_url.p)
			d->generator_url = s;
		if (s.len && fw_field_take(b, where, field, f->el->rank))
			d->generator_name = s;
		return;
	}
	to = address_of(d, fw_in_entry(b, where) ? b->entry : NULL, field);
	if (to)
		fw_address_take(b, where, field, f->el->rank, to, s);
}

#define DC_DATE_RANK 6

static void date_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	enum fw_context where = fw_context_around(b, f);
	enum element_field field = (enum element_field)f->el->field;
	struct fw_document *d = fw_feed_of(b, where);
	struct fw_entry *e = fw_in_entry(b, where) ? b->entry : NULL;
	int64_t at;

	/* a channel's dc:date is its last publication */
	if (!e && field == F_PUBLISHED && f->el->rank == DC_DATE_RANK)
		field = F_UPDATED;
	s = fw_str_trim(s);
	if (field == F_NONE || !s.len)
		return;
	at = fw_build_date(b, s);
	if (at == FW_NO_DATE)
		return;
	/*
	 * dc:date beside an entry's own date is its update; fw_entry_finish() drops it if they are
	 * equal
	 */
	if (e && field == F_PUBLISHED && f->el->rank == DC_DATE_RANK && fw_field_take(b, where, F_UPDATED, 1))
		e->updated_ms = at;
	if (!fw_field_take(b, where, field, f->el->rank))
		return;
	if (field == F_PUBLISHED)
		*(e ? &e->published_ms : &d->published_ms) = at;
	else if (field == F_UPDATED)
		*(e ? &e->updated_ms : &d->updated_ms) = at;
	else
		*(e ? &e->created_ms : &d->created_ms) = at;
}

static void field_number_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	enum fw_context where = fw_context_around(b, f);
	int64_t n = fw_build_number(s);

	if (n == FW_NO_NUMBER)
		return;
	switch ((enum element_field)f->el->field) {
	case F_TTL:
		b->doc->ttl_minutes = n;
		break;
	case F_WIDTH:
		if (!b->entry)
			b->doc->image.width = n;
		break;
	case F_HEIGHT:
		if (!b->entry)
			b->doc->image.height = n;
		break;
	case F_COMMENT_COUNT:
		if (fw_in_entry(b, where) && fw_field_take(b, where, F_COMMENT_COUNT, f->el->rank))
			b->entry->comment_count = n;
		break;
	default:
		break;
	}
}

/* ---- skipHours, skipDays --------------------------------------------------------------------- */

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

/* ---- dispatch -------------------------------------------------------------------------------- */

int fw_element_start(struct fw_start_event *w)
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
		fw_text_start(w);
		break;
	case EL_URL:
		fw_url_start(w);
		break;
	case EL_PERSON:
		fw_person_start(w);
		break;
	case EL_LINK:
		fw_link_start(w);
		break;
	case EL_ANCHOR:
		anchor_start(w);
		break;
	case EL_GUID:
		guid_start(w);
		break;
	case EL_ENCLOSURE:
		if (w->where == CTX_LIVE)
			fw_module_start(w);
		else
			fw_enclosure_start(w);
		break;
	case EL_CATEGORY:
		fw_category_start(w);
		break;
	case EL_SOURCE:
		fw_source_start(w);
		break;
	case EL_INSIDE:
		w->frame->ctx = (uint8_t)w->where;
		w->frame->obj = w->up->obj;
		break;
	case EL_IMAGE:
		fw_url_start(w);
		w->frame->ctx = CTX_IMAGE;
		break;
	case EL_GENERATOR:
		fw_generator_start(w);
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
		fw_text_capture(w, TEXT_TRIM);
		break;
	default:
		fw_module_start(w);
		break;
	}
	return 0;
}

/* Is the text words? Ids and URLs are kept byte for byte. */
static bool has_words(const struct fw_element *el)
{
	switch ((enum fw_element_kind)el->kind) {
	case EL_TEXT:
	case EL_BODY:
	case EL_PERSON:
	case EL_PERSON_PART:
	case EL_CATEGORY:
	case EL_SOURCE:
	case EL_GENERATOR:
	case EL_VALUE:
	case EL_KEYWORDS:
	case EL_MEDIA_TEXT:
	case EL_MEDIA_CATEGORY:
		return true;
	default:
		return false;
	}
}

void fw_element_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s, bool markup)
{
	if (has_words(f->el))
		s = fw_build_fix_mojibake(b, s);
	if (fw_context_around(b, f) == CTX_LIVE && !f->el->group[0]) {
		fw_live_end(b, f, s, markup);
		return;
	}
	switch ((enum fw_element_kind)f->el->kind) {
	case EL_ROOT:
	case EL_CHANNEL:
	case EL_INSIDE:
	case EL_SKIP_HOURS:
	case EL_SKIP_DAYS:
		break;
	case EL_ENTRY:
		if (b->entry && f->obj == b->entry)
			fw_entry_finish(b);
		break;
	case EL_ENCLOSURE:
		fw_enclosure_end(b, f, s);
		break;
	case EL_IMAGE: /* <image>http://...</image> */
		s = fw_str_trim(fw_url_text(f, s));
		if (f->obj || fw_is_http(s))
			fw_image_set(b, fw_build_url(b, f->scope, s), f->el->rank);
		break;
	case EL_TEXT:
		fw_text_end(b, f, s, markup);
		break;
	case EL_BODY:
		fw_body_end(b, f, s, markup);
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
		field_number_end(b, f, s);
		break;
	case EL_PERSON:
		fw_person_end(b, f, s);
		break;
	case EL_PERSON_PART:
		fw_person_part_end(b, f, s);
		break;
	case EL_LINK:
		fw_link_end(b, f, s);
		break;
	case EL_GUID:
		fw_guid_end(b, f, s);
		break;
	case EL_CATEGORY:
		fw_category_end(b, f, s);
		break;
	case EL_SOURCE:
		fw_source_end(b, f, s);
		break;
	case EL_GENERATOR:
		fw_generator_end(b, f, s);
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
