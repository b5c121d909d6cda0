/* SPDX-License-Identifier: ISC */
/*
 * An open element: its attributes, text and URL, and the field that it may fill. Used by all
 * elements.
 */
#include "base/url.h"
#include "parse/charset/entity.h"
#include "parse/feed/frame.h"
#include "parse/html/text.h"
#include "parse/html/token.h"

/* ---- contexts and fields --------------------------------------------------------------------- */

bool fw_in_entry(const struct fw_builder *b, enum fw_context where)
{
	const unsigned never = IN_SOURCE | IN_FEED | IN_IMAGE | IN_ROOT | IN_RETRACTION;

	return b->entry && !(never & 1u << where);
}

struct fw_document *fw_feed_of(struct fw_builder *b, enum fw_context where)
{
	return where == CTX_SOURCE && b->source ? b->source : b->doc;
}

static uint8_t *field_rank(struct fw_builder *b, enum fw_context where, enum element_field field)
{
	struct fw_ranks *r = fw_in_entry(b, where) ? &b->entry_rank :
		where == CTX_SOURCE                ? &b->source_rank :
						     &b->feed_rank;

	return &r->of[field];
}

bool fw_field_take(struct fw_builder *b, enum fw_context where, enum element_field field, uint8_t rank)
{
	uint8_t *taken = field_rank(b, where, field);

	if (rank <= *taken)
		return false;
	*taken = rank;
	return true;
}

bool fw_address_take(struct fw_builder *b, enum fw_context where, enum element_field field, uint8_t rank,
	struct fw_str *to, struct fw_str url)
{
	int weight = fw_url_weigh(*to, url);

	if (!url.len || weight < 0 || (!weight && !fw_field_take(b, where, field, rank)))
		return false;
	*field_rank(b, where, field) = rank;
	*to = url;
	return true;
}

struct fw_counts *fw_counts_of(struct fw_builder *b, bool entry)
{
	return entry ? &b->count : &b->feed_count;
}

enum fw_context fw_context_around(const struct fw_builder *b, const struct fw_frame *f)
{
	return f > b->frame ? (enum fw_context)f[-1].ctx : CTX_TOP;
}

struct fw_value **fw_extra_root(struct fw_builder *b, unsigned where)
{
	if (fw_in_entry(b, (enum fw_context)where))
		return &b->entry->extra;
	return where == CTX_SOURCE && b->source ? &b->source->extra : &b->doc->extra;
}

/* ---- attributes and text --------------------------------------------------------------------- */

struct fw_str fw_attr_find(const struct fw_start_event *w, struct fw_str key)
{
	struct fw_str other = FW_STR_NONE;
	size_t i;

	for (i = 0; i < w->attr_n; i++) {
		const struct fw_xml_attr *at = &w->attr[i];

		if (!fw_str_ieq(at->name.local, key))
			continue;
		if (at->name.ns == FW_NS_NONE)
			return at->value;
		if (at->name.ns == w->name->ns || at->name.ns == FW_NS_RDF)
			other = at->value;
	}
	return other;
}

void fw_text_capture(struct fw_start_event *w, enum fw_text_rule rule)
{
	struct fw_builder *b = w->b;
	struct fw_frame *f = w->frame;

	f->rule = (uint8_t)rule;
	b->cap = (struct fw_capture){
		.owner = (size_t)(f - b->frame), .raw_from = rule == TEXT_XML ? b->xml->end_offset : 0};
	b->xml->whole_text = rule != TEXT_XML && rule != TEXT_NONE;
}

void fw_url_start(struct fw_start_event *w)
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
	fw_text_capture(w, TEXT_TRIM);
}

struct fw_str fw_url_text(const struct fw_frame *f, struct fw_str s)
{
	const struct fw_str *kept = f->obj;

	return kept && !fw_url_is_absolute(fw_str_trim(s)) ? *kept : s;
}

/*
 * Atom content without a type is plain text, but some feeds put HTML there. It counts as HTML only
 * if it cannot be anything else: it starts with a known HTML tag and ends with one.
 */
static bool is_whole_html(struct fw_str s)
{
	size_t n = 1;

	s = fw_str_trim(s);
	if (s.len < 4 || s.p[0] != '<' || s.p[s.len - 1] != '>')
		return false;
	while (n < s.len && fw_is_alnum(s.p[n]))
		n++;
	return fw_el_find(fw_str_sub(s, 1, n)) != FW_EL_NONE && fw_str_find(s, FW_STR("</"));
}

/*
 * <content type="html"><div>x &lt;b&gt;y: text in a single element, escaped as if the element were
 * not there. With more elements, the text among them is text.
 */
static struct fw_str lone_div(struct fw_builder *b, struct fw_str s)
{
	struct fw_str t = fw_str_trim(s), inside;
	const char *gt = t.len ? memchr(t.p, '>', t.len) : NULL;
	size_t from = gt ? (size_t)(gt + 1 - t.p) : t.len, end = FW_STR("</div>").len;

	if (!fw_str_istarts(t, FW_STR("<div")) || t.len < from + end ||
		!fw_str_ieq(fw_str_sub(t, t.len - end, t.len), FW_STR("</div>")))
		return s;
	inside = fw_str_sub(t, from, t.len - end);
	if (!inside.len || memchr(inside.p, '<', inside.len) || !memchr(inside.p, '&', inside.len))
		return s;
	inside = fw_entity_decode(b->arena, inside);
	return fw_html_has_markup(inside) ? inside : s;
}

struct fw_str fw_text_value(
	struct fw_builder *b, const struct fw_frame *f, struct fw_str s, bool markup, enum fw_text_type *type)
{
	*type = FW_TEXT_PLAIN;
	if (markup && (f->rule == TEXT_AUTO || f->rule == TEXT_HTML))
		s = lone_div(b, s);
	switch ((enum fw_text_rule)f->rule) {
	case TEXT_AUTO:
		*type = markup || fw_html_has_markup(s) ? FW_TEXT_HTML : FW_TEXT_PLAIN;
		break;
	case TEXT_XML:
	case TEXT_HTML:
		*type = FW_TEXT_HTML;
		break;
	case TEXT_BASE64:
		if (!markup)
			s = fw_build_base64(b, s);
		*type = f->is_html || markup ? FW_TEXT_HTML : FW_TEXT_PLAIN;
		break;
	default:
		*type = markup || (f->untyped && is_whole_html(s)) ? FW_TEXT_HTML : FW_TEXT_PLAIN;
		break;
	}
	return s;
}
