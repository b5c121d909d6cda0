/* SPDX-License-Identifier: ISC */
/*
 * Titles, descriptions and contents: how to read each one (at its start), and its value (at its
 * end).
 */
#include "parse/feed/texts.h"

#include "base/banned.h"

/*
 * RFC 4287 sections 3.1.1 and 4.1.3.3; Atom 0.3 section 3.1: type is a MIME type, mode is its
 * encoding.
 */
void fw_text_start(struct fw_start_event *w)
{
	struct fw_str type = fw_str_trim(fw_attr(w, "type")), mode;
	enum fw_text_rule rule = TEXT_AUTO;

	if (!w->frame->atom) {
		if (w->name->ns == FW_NS_XHTML || fw_str_ieq(type, FW_STR("xhtml")) ||
			fw_str_ieq(type, FW_STR("application/xhtml+xml")))
			rule = TEXT_XML;
		fw_text_capture(w, rule);
		return;
	}
	/* Atom 0.3: the parts declare their own types */
	if (fw_str_istarts(type, FW_STR("multipart/"))) {
		w->frame->ctx = (uint8_t)w->where;
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
		/* only content has a media type */
		rule = w->el->kind == EL_BODY ? TEXT_BASE64 : TEXT_PLAIN;
	w->frame->untyped = !type.len && w->el->kind == EL_BODY;
	fw_text_capture(w, rule);
	if (w->el->field == F_CONTENT) {
		struct fw_str src = fw_build_url(w->b, w->frame->scope, fw_attr(w, "src"));

		if (src.len) {
			struct fw_value *v = fw_value_object(w->b, &w->b->entry->extra, "content");

			fw_value_str(w->b, v, "src", src);
			fw_value_str(w->b, v, "type", type.len ? fw_build_dup(w->b, type) : FW_STR_NONE);
			if (fw_field_take(w->b, CTX_ENTRY, F_URL, 3))
				w->b->entry->url = src;
		}
	}
}

struct fw_str fw_text_line(struct fw_builder *b, const struct fw_frame *f, struct fw_str s, bool markup)
{
	enum fw_text_type type;

	if (f->rule == TEXT_AUTO && !markup)
		return fw_build_title(b, s);
	s = fw_text_value(b, f, s, markup, &type);
	return fw_build_line_text(b, fw_build_plain(b, s, type));
}

void fw_text_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s, bool markup)
{
	enum fw_context where = fw_context_around(b, f);
	struct fw_document *d = fw_feed_of(b, where);
	struct fw_str text = fw_text_line(b, f, s, markup);

	if (!text.len)
		return;
	if (where == CTX_IMAGE) {
		if (!b->entry && !d->image.title.p)
			d->image.title = text;
		return;
	}
	if (where == CTX_RETRACTION) {
		struct fw_retraction *of = f[-1].obj;

		if (of && !of->comment.p)
			of->comment = text;
		return;
	}
	if (f->el->member[0])
		fw_value_str(b, fw_value_object(b, fw_extra_root(b, where), f->el->group), f->el->member, text);
	if (!fw_field_take(b, where, (enum fw_field)f->el->field, f->el->rank))
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

static void body_set(const struct fw_frame *f, struct fw_body *body, struct fw_str s, enum fw_text_type type)
{
	if (f->el->rank <= body->rank)
		return;
	*body = (struct fw_body){.s = s, .type = type, .scope = f->scope, .rank = f->el->rank};
}

void fw_body_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s, bool markup)
{
	enum fw_context where = fw_context_around(b, f);
	struct fw_document *d = fw_feed_of(b, where);
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
		if (!b->entry)
			d->image.description = fw_build_plain(b, s, type);
	} else if (fw_field_take(b, where, F_DESCRIPTION, f->el->rank)) {
		d->description = fw_build_plain(b, s, type);
	}
}
