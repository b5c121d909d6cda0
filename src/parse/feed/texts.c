/* SPDX-License-Identifier: ISC */
/*
 * Titles, descriptions and contents: how to read each one (at its start), and its value (at its
 * end).
 */
#include "parse/feed/links.h"
#include "parse/feed/texts.h"

#define CONTENT_DATA_MAX ((size_t)256 << 10) /* bytes in base64 */

/* ---- how to read a text ---------------------------------------------------------------------- */

static bool type_is_xhtml(struct fw_str type)
{
	return fw_str_ieq(type, FW_STR("xhtml")) || fw_str_ieq(type, FW_STR("application/xhtml+xml"));
}

static bool type_is_html(struct fw_str type)
{
	return fw_str_ieq(type, FW_STR("html")) || fw_str_istarts(type, FW_STR("text/html"));
}

static bool type_is_plain(struct fw_str type)
{
	return !type.len || fw_str_ieq(type, FW_STR("text")) || fw_str_istarts(type, FW_STR("text/plain"));
}

/*
 * RFC 4287 sections 3.1.1 and 4.1.3.3; Atom 0.3 section 3.1: type is a MIME type, mode is its
 * encoding.
 */
static enum fw_text_rule atom_rule(const struct fw_start_event *w, struct fw_str type)
{
	struct fw_str mode = fw_str_trim(fw_attr(w, "mode"));
	bool escaped = fw_str_ieq(mode, FW_STR("escaped"));

	if (fw_str_ieq(mode, FW_STR("base64")))
		return TEXT_BASE64;
	if (type_is_plain(type))
		return escaped && !type.len ? TEXT_AUTO : TEXT_PLAIN;
	if (type_is_xhtml(type))
		return escaped ? TEXT_HTML : TEXT_XML;
	if (type_is_html(type))
		return TEXT_HTML;
	if (fw_str_ends(type, FW_STR("+xml")) || fw_str_ends(type, FW_STR("/xml")))
		return TEXT_XML;
	if (fw_str_istarts(type, FW_STR("text/")))
		return TEXT_PLAIN;
	if (memchr(type.p, '/', type.len)) /* only content has a media type */
		return w->el->kind == EL_BODY ? TEXT_BASE64 : TEXT_PLAIN;
	return TEXT_AUTO;
}

/* Content that is elsewhere, and the media type of content that is neither plain text nor HTML. */
static void content_start(struct fw_start_event *w, struct fw_str type)
{
	struct fw_builder *b = w->b;
	struct fw_str src = fw_build_url(b, w->frame->scope, fw_attr(w, "src")), *other;
	struct fw_value *v;

	if (src.len) {
		v = fw_value_object(b, &b->entry->extra, "content");
		fw_value_str(b, v, "src", src);
		fw_value_str(b, v, "type", type.len ? fw_build_dup(b, type) : FW_STR_NONE);
		fw_page_set(b, CTX_ENTRY, src, 3);
	} else if (!type_is_plain(type) && !type_is_html(type) && !type_is_xhtml(type) &&
		memchr(type.p, '/', type.len) && (other = FW_NEW(b, struct fw_str))) {
		*other = type;
		w->frame->obj = other;
	}
}

void fw_text_start(struct fw_start_event *w)
{
	struct fw_str type = fw_str_trim(fw_attr(w, "type"));

	if (!w->frame->atom) {
		fw_text_capture(w, w->name->ns == FW_NS_XHTML || type_is_xhtml(type) ? TEXT_XML : TEXT_AUTO);
		return;
	}
	if (fw_str_istarts(type, FW_STR("multipart/"))) { /* Atom 0.3: the parts declare their own types */
		w->frame->ctx = (uint8_t)w->where;
		fw_text_capture(w, TEXT_TRIM);
	} else {
		w->frame->is_html = type_is_xhtml(type) || fw_str_ieq(type, FW_STR("html")) ||
			fw_str_ieq(type, FW_STR("text/html"));
		w->frame->untyped = !type.len && w->el->kind == EL_BODY;
		fw_text_capture(w, atom_rule(w, type));
	}
	if (w->el->field == F_CONTENT)
		content_start(w, type);
}

/* ---- what it is ------------------------------------------------------------------------------ */

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
	if (!fw_field_take(b, where, (enum element_field)f->el->field, f->el->rank))
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

/* White space in base64 means nothing. */
static struct fw_str base64_join(struct fw_builder *b, struct fw_str s)
{
	char *out = fw_arena_alloc(b->arena, s.len);
	size_t n = 0;

	for (size_t i = 0; out && i < s.len; i++) {
		if (!fw_is_space(s.p[i]))
			out[n++] = s.p[i];
	}
	return out ? (struct fw_str){out, n} : FW_STR_NONE;
}

/*
 * Content of another media type: the entry's extra member "content" tells the type. What is text is
 * the entry's content too; of anything else it holds the bytes, in base64.
 */
static void content_type_keep(struct fw_builder *b, struct fw_str type, struct fw_str bytes)
{
	struct fw_value *v;

	bytes = fw_str_trim(bytes);
	if (fw_value_find(b->entry->extra, "content"))
		return; /* the first one counts, as for all members */
	v = fw_value_object(b, &b->entry->extra, "content");
	fw_value_str(b, v, "type", type);
	if (bytes.len > CONTENT_DATA_MAX)
		fw_build_problem(b, fw_build_offset(b), "content that is not text, of more than 256 KiB", "left out");
	else if (bytes.len)
		fw_value_str(b, v, "base64", base64_join(b, bytes));
}

void fw_body_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s, bool markup)
{
	enum fw_context where = fw_context_around(b, f);
	struct fw_document *d = fw_feed_of(b, where);
	enum fw_text_type type;
	struct fw_str bytes = s;

	if (f->el->field == F_CONTENT && !fw_in_entry(b, where))
		return; /* an entry within ended it */
	s = fw_str_trim(fw_text_value(b, f, s, markup, &type));
	if (f->obj && fw_str_trim(bytes).len)
		content_type_keep(b, *(const struct fw_str *)f->obj, s.len ? FW_STR_NONE : bytes);
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
