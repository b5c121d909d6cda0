/* SPDX-License-Identifier: ISC */
/*
 * Authors, contributors, publishers: elements with parts (Atom), or a text that names them (RSS,
 * Dublin Core).
 */
#include "parse/feed/people.h"

void fw_person_start(struct fw_start_event *w)
{
	w->frame->obj = FW_NEW(w->b, struct fw_person);
	w->frame->ctx = CTX_PERSON;
	fw_text_capture(w, TEXT_TRIM);
}

static bool same_person(const struct fw_person *a, const struct fw_person *b)
{
	return (a->name.len && fw_str_eq(a->name, b->name)) || (a->email.len && fw_str_eq(a->email, b->email));
}

static void person_list_add(struct fw_person **list, struct fw_person *p)
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

/* The author is only a mail address: take the name of the substitute, if there is exactly one. */
static void name_inherit(struct fw_person *author, const struct fw_person *stand_in)
{
	if (author && stand_in && !author->next && !stand_in->next && !author->name.len)
		author->name = stand_in->name;
}

/* Add a person to the list where it belongs. */
static void person_place(struct fw_builder *b, const struct fw_frame *f, struct fw_person *p)
{
	enum fw_context where = fw_context_around(b, f);
	struct fw_document *d = fw_feed_of(b, where);
	struct fw_entry *e = fw_in_entry(b, where) ? b->entry : NULL;
	struct fw_ranks *r = e ? &b->entry_rank : where == CTX_SOURCE ? &b->source_rank : &b->feed_rank;
	struct fw_person **list = e ? &e->authors : &d->authors;

	if (!p->name.len && !p->email.len && !p->url.len)
		return;
	if (where == CTX_RETRACTION) {
		struct fw_retraction *of = f[-1].obj;

		if (of && !of->by)
			of->by = p;
		return;
	}
	if (f->el->member[0] && (p->name.len || p->email.len))
		fw_value_str(b, fw_value_object(b, fw_extra_root(b, where), f->el->group), f->el->member,
			p->name.len ? p->name : p->email);
	if (f->el->field == F_PUBLISHER) {
		if (fw_field_take(b, where, F_PUBLISHER, f->el->rank))
			*(e ? &e->publisher : &d->publisher) = p;
		return;
	}
	if (!fw_build_count_member(b, &fw_counts_of(b, e != NULL)->people, FW_LIST_MAX, "more than 100 people"))
		return;
	if (f->el->field == F_CONTRIBUTOR) {
		FW_APPEND(*(e ? &e->contributors : &d->contributors), p);
		return;
	}
	if (f->el->rank < r->of[F_AUTHOR]) {
		name_inherit(*list, p);
		return;
	}
	/* substitutes (itunes:author) are dropped when the author follows */
	if (f->el->rank > r->of[F_AUTHOR] && r->of[F_AUTHOR] < 6) {
		name_inherit(p, *list);
		*list = NULL;
	}
	r->of[F_AUTHOR] = f->el->rank;
	person_list_add(list, p);
}

/*
 * The next piece of "a@example.org (A, B), c@example.org": up to a comma or semicolon outside
 * brackets and quotes.
 */
static struct fw_str piece_next(struct fw_str s, struct fw_str *rest)
{
	bool quoted = false;
	int depth = 0;
	size_t i;

	for (i = 0; i < s.len; i++) {
		char c = s.p[i];

		if (c == '"')
			quoted = !quoted;
		else if (c == '(' || c == '<')
			depth++;
		else if (c == ')' || c == '>')
			depth--;
		else if ((c == ',' || c == ';') && !quoted && depth <= 0)
			break;
	}
	*rest = i < s.len ? fw_str_sub(s, i + 1, s.len) : FW_STR_NONE;
	return fw_str_trim(fw_str_sub(s, 0, i));
}

/*
 * Add one or more people from one text. A comma separates people only if each piece has a mail
 * address.
 */
static void people_place(struct fw_builder *b, const struct fw_frame *f, struct fw_str s, struct fw_person *first)
{
	struct fw_str piece, rest = s;
	struct fw_person *p = first;
	bool several = true;
	size_t n = 0;

	while (rest.p && several) {
		piece = piece_next(rest, &rest);
		several = piece.len && memchr(piece.p, '@', piece.len);
	}
	for (rest = s; p && rest.p && n++ <= FW_LIST_MAX; p = rest.p ? FW_NEW(b, struct fw_person) : NULL) {
		piece = s;
		if (several)
			piece = piece_next(rest, &rest);
		else
			rest = FW_STR_NONE;
		fw_person_split(b, piece, p);
		person_place(b, f, p);
	}
}

void fw_person_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	struct fw_person *p = f->obj;
	struct fw_str name;

	if (!p)
		return;
	if (!p->name.len && !p->email.len && !p->url.len) {
		people_place(b, f, fw_build_title(b, s), p);
		return;
	}
	if (p->name.len && !p->email.len && memchr(p->name.p, '@', p->name.len)) {
		name = p->name;
		p->name = FW_STR_NONE;
		fw_person_split(b, name, p);
	}
	person_place(b, f, p);
}

static struct fw_str mail_of(struct fw_str s)
{
	const char *sign, *query;

	if (fw_str_istarts(s, FW_STR("mailto:")))
		s = fw_str_sub(s, 7, s.len);
	sign = s.len ? memchr(s.p, '@', s.len) : NULL;
	query = sign ? memchr(sign, '?', s.len - (size_t)(sign - s.p)) : NULL;
	return query ? fw_str_sub(s, 0, (size_t)(query - s.p)) : s;
}

void fw_person_url(struct fw_person *p, enum element_field field, struct fw_str url)
{
	if (!p || !url.len)
		return;
	if (field == F_EMAIL || fw_str_istarts(url, FW_STR("mailto:"))) {
		if (!p->email.p)
			p->email = mail_of(url);
	} else if (!p->url.p || fw_url_weigh(p->url, url) > 0) {
		p->url = url;
	}
}

void fw_person_part_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	struct fw_person *p = f > b->frame ? f[-1].obj : NULL;

	s = fw_str_trim(s);
	if (!p || !s.len)
		return;
	if (f->el->field == F_URL) {
		fw_person_url(p, F_URL, fw_build_url(b, f->scope, s));
	} else if (f->el->field == F_NAME) {
		if (!p->name.p)
			p->name = fw_build_title(b, s);
	} else if (!p->email.p) {
		p->email = mail_of(s);
	}
}
