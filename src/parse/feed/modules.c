/* SPDX-License-Identifier: ISC */
/*
 * The elements of modules: Media RSS, iTunes, Podcasting 2.0, chapters. Values without a member of
 * their own in an entry or feed go into the extra tree, named as in parse-output.
 *
 * Most are plain rules in element.gperf: EL_VALUE is a typed text, EL_OBJECT an object made of the
 * attributes. Only elements with a further meaning have a function here.
 */
#include "parse/feed/geo.h"
#include "parse/feed/links.h"
#include "parse/feed/modules.h"
#include "parse/feed/texts.h"

#define OBJECT_MEMBERS_MAX 50
#define LIST_VALUES_MAX 1000
#define NEST_MAX 8

/* ---- where extras go ------------------------------------------------------------------------- */

/*
 * Limit nested objects: no module nests more than a few, and every JSON parser must accept the
 * output.
 */
static bool too_deep(const struct fw_builder *b, const struct fw_frame *f)
{
	int n = 0;

	while (f-- > b->frame && n <= NEST_MAX && (f->ctx == CTX_MEDIA || f->ctx == CTX_LIST || f->ctx == CTX_LIVE))
		n++;
	return n > NEST_MAX;
}

/*
 * The object for members of this element's group: the liveItem, media:group or media:content ...
 * around it, else extra.group.
 */
static struct fw_value *group_of(struct fw_builder *b, const struct fw_frame *f)
{
	enum fw_context where = fw_context_around(b, f);

	if (where == CTX_LIVE || where == CTX_MEDIA || where == CTX_LIST)
		return too_deep(b, f) ? NULL : f[-1].obj;
	return fw_value_object(b, fw_extra_root(b, where), f->el->group);
}

/* Append a new object to the list of that name. NULL if the list is full. */
static struct fw_value *module_list_add(struct fw_builder *b, struct fw_value *in, const char *name)
{
	struct fw_value *list = fw_value_array(b, in, name);

	if (!list || !fw_build_count_member(b, &list->counted, LIST_VALUES_MAX, "a list with more than 1000 members"))
		return NULL;
	return fw_value_new(b, list, NULL, FW_VALUE_OBJECT);
}

/* "firstUrl" and "first-url" become "first_url". Results are cached: a feed has few names. */
static const char *snake_case(struct fw_builder *b, struct fw_str name)
{
	struct fw_member_name *k = &b->member_names[fw_name_slot(name) % FW_N(b->member_names)];
	size_t i, n = 0;
	char *out;

	if (k->member && fw_str_eq(k->local, name))
		return k->member;
	out = fw_arena_mul(b->arena, name.len, 2, 1);
	if (!out)
		return "";
	for (i = 0; i < name.len; i++) {
		char c = name.p[i];

		if (c >= 'A' && c <= 'Z' && i && out[n - 1] != '_' && !(name.p[i - 1] >= 'A' && name.p[i - 1] <= 'Z'))
			out[n++] = '_';
		out[n++] = c == '-' ? '_' : (char)fw_lower((unsigned char)c);
	}
	out[n] = 0;
	fw_arena_trim(b->arena, out, 2 * name.len + 1, n + 1);
	*k = (struct fw_member_name){.local = name, .member = out};
	return out;
}

static bool all_digits(struct fw_str s)
{
	size_t i;

	for (i = 0; i < s.len && fw_is_digit(s.p[i]); i++)
		;
	return s.len && i == s.len && s.len < 16 && (s.len == 1 || s.p[0] != '0');
}

/* Add every attribute as a member: URLs resolved, numbers as numbers. */
static void attributes_add(struct fw_start_event *w, struct fw_value *v)
{
	size_t i;

	for (i = 0; i < w->attr_n && i < OBJECT_MEMBERS_MAX; i++) {
		const struct fw_xml_attr *at = &w->attr[i];
		struct fw_str s = fw_str_trim(at->value), l = at->name.local;
		const char *name;

		if (at->name.ns == FW_NS_XML || at->name.ns == FW_NS_XMLNS || !s.len)
			continue;
		name = snake_case(w->b, l);
		if (fw_str_ieq(l, FW_STR("url")) || fw_str_ieq(l, FW_STR("href")) || fw_str_ieq(l, FW_STR("uri")) ||
			fw_str_ieq(l, FW_STR("img")))
			fw_value_str(w->b, v, name, fw_build_url(w->b, w->frame->scope, s));
		else if (all_digits(s))
			fw_value_int(w->b, v, name, fw_build_number(s));
		else
			fw_value_str(w->b, v, name, s);
	}
}

/* Add a typed text as a member. The first one wins. */
static void typed_add(struct fw_builder *b, struct fw_value *in, const char *name, enum element_field type,
	const struct fw_frame *f, struct fw_str s)
{
	double num;
	int64_t n;

	s = fw_str_trim(s);
	if (!in || !s.len)
		return;
	switch (type) {
	case F_BOOL:
		fw_value_bool(b, in, name, fw_build_bool(s));
		break;
	case F_INTEGER:
		fw_value_int(b, in, name, fw_build_number(s));
		break;
	case F_NUMBER:
		if (fw_str_double(s, &num))
			fw_value_num(b, in, name, num);
		break;
	case F_SECONDS:
		n = fw_build_duration(s);
		if (n != FW_NO_NUMBER && n % 1000)
			fw_value_num(b, in, name, (double)n / 1000);
		else if (n != FW_NO_NUMBER)
			fw_value_int(b, in, name, n / 1000);
		if (n != FW_NO_NUMBER && b->entry)
			b->duration_ms = n;
		break;
	case F_LINK:
		fw_value_str(b, in, name, fw_build_url(b, f->scope, s));
		break;
	case F_DATE:
		fw_value_date(b, in, name, fw_build_date(b, s));
		break;
	case F_STRING:
	case F_ORIGINAL:
		fw_value_str(b, in, name, s);
		break;
	default:
		fw_value_str(b, in, name, fw_build_title(b, s));
		break;
	}
}

static void object_start(struct fw_start_event *w, enum fw_element_kind kind)
{
	struct fw_builder *b = w->b;
	struct fw_value *in, *v;

	if (kind == EL_PART && w->where == CTX_LIST)
		in = too_deep(b, w->frame) ? NULL : w->up->obj;
	else
		in = group_of(b, w->frame);
	if (kind == EL_ONE) {
		v = fw_value_new(b, in, w->el->member, FW_VALUE_OBJECT);
	} else {
		v = module_list_add(b, in, w->el->member);
	}
	if (!v)
		return;
	attributes_add(w, v);
	w->frame->obj = v;
	w->frame->ctx = CTX_LIST;
	if (w->el->field != F_NONE)
		fw_text_capture(w, TEXT_TRIM);
}

/* Add the text of an object. Its name tells its type. */
static void object_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	static const char *const names[F_N] = {
		[F_NAME] = "name",
		[F_BOOL] = "value",
		[F_INTEGER] = "number",
		[F_NUMBER] = "number",
		[F_PLAIN] = "text",
		[F_STRING] = "text",
		[F_LINK] = "text",
	};
	const char *name = names[f->el->field];
	enum element_field type = f->el->field == F_LINK || f->el->field == F_NAME ? F_PLAIN :
										     (enum element_field)f->el->field;

	s = fw_str_trim(s);
	if (!f->obj)
		return;
	if (f->el->field == F_LINK && fw_is_http(s) && !fw_value_find(f->obj, "url") && !fw_value_find(f->obj, "href"))
		fw_value_str(b, f->obj, "url", fw_build_url(b, f->scope, s));
	else if (name)
		typed_add(b, f->obj, name, type, f, s);
}

void fw_live_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s, bool markup)
{
	struct fw_value *live = f[-1].obj;
	const struct fw_link *l = f->obj;
	const struct fw_frame *around = f - 1;
	enum fw_text_type type;

	switch ((enum fw_element_kind)f->el->kind) {
	case EL_TEXT:
		fw_value_str(b, live, "title", fw_text_line(b, f, s, markup));
		break;
	case EL_BODY:
		s = fw_text_value(b, f, s, markup, &type);
		fw_value_str(b, live, "description", fw_build_plain(b, s, type));
		break;
	case EL_LINK:
		while (!around->el) /* it was closed without an end tag */
			around--;
		fw_value_str(b, live, around->el->kind == EL_TEXT_INPUT ? "link" : "url",
			fw_build_url(b, f->scope, l && l->href.len ? l->href : s));
		break;
	case EL_PERSON_PART: /* of a textInput */
		fw_value_str(b, live, "name", fw_build_line_text(b, s));
		break;
	case EL_GUID:
		s = fw_str_trim(s);
		fw_value_str(b, live, "id", s.len ? s : FW_STR_NONE);
		break;
	default:
		break;
	}
}

/* ---- iTunes ---------------------------------------------------------------------------------- */

static void image_set(struct fw_builder *b, enum fw_context where, struct fw_str url, uint8_t rank)
{
	fw_address_take(b, where, F_IMAGE, rank, fw_in_entry(b, where) ? &b->entry->image : &b->doc->icon, url);
}

static void itunes_image_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	enum fw_context where = fw_context_around(b, f);
	struct fw_str *kept = f->obj, url;
	struct fw_value *in;

	url = fw_build_url(b, f->scope, kept ? *kept : s);
	image_set(b, where, url, f->el->rank);
	in = f->el->group[0] && url.len ? group_of(b, f) : NULL;
	fw_value_str(b, in, f->el->member, url);
}

/*
 * <itunes:category text="A"><itunes:category text="B"/></itunes:category>: a flat list without
 * duplicates.
 */
static void itunes_category_add(struct fw_builder *b, const struct fw_element *el, struct fw_str text)
{
	struct fw_value *list, *v;
	unsigned root = b->entry ? CTX_ENTRY : CTX_FEED;

	text = fw_build_line_text(b, text);
	if (!text.len)
		return;
	fw_category_add(b, b->entry != NULL, text, FW_STR("http://www.itunes.com/"), FW_STR_NONE);
	if (!el->group[0])
		return;
	list = fw_value_array(b, fw_value_object(b, fw_extra_root(b, root), el->group), el->member);
	for (v = fw_value_members(list); v; v = v->next) {
		if (v->type == FW_VALUE_STRING && fw_str_eq(v->string, text))
			return;
	}
	if (list && fw_build_count_member(b, &list->counted, FW_LIST_MAX, "more than 100 categories"))
		fw_value_str(b, list, NULL, text);
}

static void keywords_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	struct fw_value *list = NULL;
	struct fw_str part, rest;

	s = fw_build_plain(b, s, FW_TEXT_HTML);
	for (rest = s; rest.p;) {
		part = fw_build_line_text(b, fw_str_split(rest, ',', &rest));
		if (!part.len)
			continue;
		fw_category_add(b, fw_in_entry(b, fw_context_around(b, f)), part, FW_STR_NONE, FW_STR_NONE);
		if (!f->el->group[0])
			continue;
		if (!list)
			list = fw_value_array(b, group_of(b, f), f->el->member);
		if (list && fw_build_count_member(b, &list->counted, FW_LIST_MAX, "more than 100 keywords"))
			fw_value_str(b, list, NULL, part);
	}
}

static void itunes_owner_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	enum fw_context where = fw_context_around(b, f);
	struct fw_person *p = f->obj;
	struct fw_value *v, *in;

	if (!p)
		return;
	if (!p->name.len && !p->email.len)
		fw_person_split(b, fw_build_title(b, s), p);
	if (!p->name.len && !p->email.len)
		return;
	in = group_of(b, f);
	v = fw_value_new(b, in, f->el->member, FW_VALUE_OBJECT);
	fw_value_str(b, v, "name", p->name);
	fw_value_str(b, v, "email", p->email);
	if (fw_field_take(b, where, F_PUBLISHER, f->el->rank))
		*(fw_in_entry(b, where) ? &b->entry->publisher : &b->doc->publisher) = p;
}

/* ---- Media RSS ------------------------------------------------------------------------------- */

/*
 * The elements of media:group are defaults for its contents (Media RSS: "shallow" elements are
 * defaults for deeper ones). A group collects its elements in an object of its own. At its end its
 * contents inherit what they lack, and everything moves up into the entry's media. counted: how
 * many members of a content are attributes, which do not move up.
 */
static void media_group_start(struct fw_start_event *w)
{
	struct fw_value *g = FW_NEW(w->b, struct fw_value);

	w->frame->ctx = CTX_MEDIA;
	w->frame->obj = g;
	if (g)
		g->type = FW_VALUE_OBJECT;
}

/* Add a member in a second place. Its value is shared. */
static void member_add(struct fw_builder *b, struct fw_value *in, const struct fw_value *m)
{
	struct fw_value *v = fw_value_new(b, in, m->name.p, m->type), *next;

	if (!v)
		return;
	next = v->next;
	*v = *m;
	v->next = next;
}

static size_t value_bytes(const struct fw_value *v)
{
	size_t n = v->name.len + (v->type == FW_VALUE_STRING ? v->string.len : 0) + 16;

	for (v = fw_value_members(v); v; v = v->next)
		n += value_bytes(v);
	return n;
}

/*
 * Inherited members are limited to the document's length, so a small document cannot make a huge
 * output.
 */
static void media_defaults_apply(struct fw_builder *b, const struct fw_value *group)
{
	const struct fw_value *list = fw_value_find(group, "contents"), *m;
	struct fw_value *c;

	for (m = list ? fw_value_members(group) : NULL; m; m = m->next) {
		size_t n = value_bytes(m);

		for (c = m == list ? NULL : fw_value_members(list); c; c = c->next) {
			if (fw_value_find(c, m->name.p))
				continue;
			if (b->inherited + n > b->text.len)
				return;
			b->inherited += n;
			member_add(b, c, m);
		}
	}
}

/* Lists are joined; for other members the first wins. */
static void media_join(struct fw_builder *b, struct fw_value *to, const struct fw_value *m)
{
	struct fw_value *list;
	const struct fw_value *v;

	for (; m; m = m->next) {
		if (m->type != FW_VALUE_ARRAY) {
			member_add(b, to, m);
			continue;
		}
		list = fw_value_array(b, to, m->name.p);
		for (v = list ? fw_value_members(m) : NULL; v; v = v->next) {
			if (fw_build_count_member(
				    b, &list->counted, LIST_VALUES_MAX, "a list with more than 1000 members"))
				member_add(b, list, v);
		}
	}
}

static void media_group_end(struct fw_builder *b, struct fw_frame *f)
{
	const struct fw_value *group = f->obj;

	if (!fw_value_members(group))
		return;
	media_defaults_apply(b, group);
	media_join(
		b, fw_value_object(b, fw_extra_root(b, fw_context_around(b, f)), f->el->group), group->members.first);
}

static void media_content_end(struct fw_builder *b, struct fw_frame *f)
{
	const struct fw_value *c = f->obj, *m = fw_value_members(c);
	uint32_t n;

	for (n = c ? c->counted : 0; m && n > 0; n--)
		m = m->next;
	if (m)
		media_join(b, fw_value_object(b, fw_extra_root(b, fw_context_around(b, f)), f->el->group), m);
}

static void media_content_start(struct fw_start_event *w)
{
	struct fw_builder *b = w->b;
	struct fw_value *v = module_list_add(b, group_of(b, w->frame), w->el->member), *m;
	struct fw_str url, medium, type;

	w->frame->ctx = CTX_MEDIA;
	w->frame->obj = v;
	if (!v)
		return;
	attributes_add(w, v);
	for (m = fw_value_members(v); m; m = m->next)
		v->counted++;
	medium = fw_attr(w, "medium");
	type = fw_attr(w, "type");
	if (w->where != CTX_FEED && (fw_str_ieq(medium, FW_STR("image")) || fw_str_istarts(type, FW_STR("image/")))) {
		url = fw_build_url(b, w->frame->scope, fw_attr(w, "url"));
		image_set(b, w->where, url, 4);
	}
}

static void thumbnail_start(struct fw_start_event *w)
{
	struct fw_builder *b = w->b;
	struct fw_value *v = module_list_add(b, group_of(b, w->frame), w->el->member);
	struct fw_str url = fw_build_url(b, w->frame->scope, fw_attr(w, "url"));

	fw_text_capture(w, TEXT_TRIM);
	w->frame->obj = v;
	if (v)
		attributes_add(w, v);
	if (w->where != CTX_FEED)
		image_set(b, w->where, url, 3);
}

static void media_text_start(struct fw_start_event *w)
{
	struct fw_str type = fw_str_trim(fw_attr(w, "type"));

	fw_text_capture(w,
		fw_str_ieq(type, FW_STR("html"))          ? TEXT_HTML :
			fw_str_ieq(type, FW_STR("plain")) ? TEXT_PLAIN :
							    TEXT_AUTO);
}

static void media_text_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s, bool markup)
{
	enum fw_context where = fw_context_around(b, f);
	enum element_field field = (enum element_field)f->el->field;
	/* a caption */
	bool of_medium = f > b->frame && f[-1].el && f[-1].el->kind == EL_MEDIA_CONTENT;
	struct fw_str line = fw_text_line(b, f, s, markup), text;
	enum fw_text_type type;
	struct fw_body *body;

	s = fw_str_trim(fw_text_value(b, f, s, markup, &type));
	if (!s.len)
		return;
	text = field == F_TITLE ? line : fw_build_plain(b, s, type);
	fw_value_str(b, group_of(b, f), f->el->member, text);
	if (field == F_TITLE) {
		if (fw_field_take(b, where, F_TITLE, (uint8_t)(f->el->rank - of_medium)))
			*(fw_in_entry(b, where) ? &b->entry->title : &b->doc->title) = text;
	} else if (field == F_DESCRIPTION && fw_in_entry(b, where)) {
		body = of_medium ? &b->caption : &b->summary;
		if (body->rank < f->el->rank)
			*body = (struct fw_body){.s = s, .type = type, .scope = f->scope, .rank = f->el->rank};
	} else if (field == F_DESCRIPTION && !of_medium && fw_field_take(b, where, F_DESCRIPTION, f->el->rank)) {
		b->doc->description = text;
	}
}

static void media_category_start(struct fw_start_event *w)
{
	struct fw_category *c = FW_NEW(w->b, struct fw_category);

	fw_text_capture(w, TEXT_TRIM);
	w->frame->obj = c;
	if (!c)
		return;
	c->scheme = fw_str_trim(fw_attr(w, "scheme"));
	if (!c->scheme.len)
		/* Media RSS: the default scheme */
		c->scheme = FW_STR("http://search.yahoo.com/mrss/category_schema");
	c->label = fw_build_line_text(w->b, fw_attr(w, "label"));
}

static void media_category_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	struct fw_category *c = f->obj;
	struct fw_value *list;

	s = fw_build_title(b, s);
	if (!c || (!s.len && !c->label.len))
		return;
	fw_category_add(b, fw_in_entry(b, fw_context_around(b, f)), s, c->scheme, c->label);
	list = fw_value_array(b, group_of(b, f), f->el->member);
	if (list && fw_build_count_member(b, &list->counted, FW_LIST_MAX, "more than 100 categories"))
		fw_value_str(b, list, NULL, s.len ? s : c->label);
}

/* media:comments, media:backLinks ...: a list of texts or URLs, each in an element of its own. */
static void string_in_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	struct fw_value *list;

	s = f->el->field == F_LINK ? fw_build_url(b, f->scope, s) : fw_build_title(b, s);
	list = s.len ? fw_value_array(b, f[-1].obj, f->el->member) : NULL;
	if (list && fw_build_count_member(b, &list->counted, LIST_VALUES_MAX, "a list with more than 1000 members"))
		fw_value_str(b, list, NULL, s);
}

/* ---- chapters -------------------------------------------------------------------------------- */

static void chapter_start(struct fw_start_event *w)
{
	struct fw_builder *b = w->b;
	struct fw_value *list = w->up ? w->up->obj : NULL, *v;
	int64_t at = fw_build_duration(fw_attr(w, "start"));

	if (!list || !fw_build_count_member(b, &list->counted, LIST_VALUES_MAX, "a list with more than 1000 members"))
		return;
	v = fw_value_new(b, list, NULL, FW_VALUE_OBJECT);
	if (at != FW_NO_NUMBER)
		fw_value_num(b, v, "start_seconds", (double)at / 1000);
	fw_value_str(b, v, "title", fw_build_line_text(b, fw_attr(w, "title")));
	fw_value_str(b, v, "url", fw_build_url(b, w->frame->scope, fw_attr(w, "href")));
	fw_value_str(b, v, "image", fw_build_url(b, w->frame->scope, fw_attr(w, "image")));
}

/* ---- dispatch -------------------------------------------------------------------------------- */

static void text_input_start(struct fw_start_event *w)
{
	w->frame->obj = fw_value_object(w->b, &w->b->doc->extra, w->el->member);
	w->frame->ctx = CTX_LIVE;
}

static void live_start(struct fw_start_event *w)
{
	w->frame->obj = module_list_add(w->b, group_of(w->b, w->frame), w->el->member);
	w->frame->ctx = CTX_LIVE;
	if (w->frame->obj)
		attributes_add(w, w->frame->obj);
}

/* An image or an enclosure, depending on its rel. */
static void itunes_link_start(struct fw_start_event *w)
{
	struct fw_str rel = fw_str_trim(fw_attr(w, "rel"));

	if (fw_str_ieq(rel, FW_STR("image")))
		fw_url_start(w);
	else if (w->b->entry && fw_str_ieq(rel, FW_STR("enclosure")))
		fw_enclosure_start(w);
}

static void itunes_category_start(struct fw_start_event *w)
{
	struct fw_str text = fw_attr(w, "text");

	w->frame->ctx = CTX_LIST;
	if (text.len)
		itunes_category_add(w->b, w->el, text);
	else
		fw_text_capture(w, TEXT_TRIM);
}

static void reply_start(struct fw_start_event *w)
{
	struct fw_builder *b = w->b;
	struct fw_link *l;

	if (!fw_attr(w, "ref").len && !fw_attr(w, "href").len)
		return;
	l = FW_NEW(b, struct fw_link);
	if (!l || !fw_build_count_member(b, &b->count.links, FW_LIST_MAX, "more than 100 links"))
		return;
	l->rel = fw_str_trim(fw_attr(w, "ref"));
	l->href = fw_build_url(b, w->frame->scope, fw_attr(w, "href"));
	l->type = fw_str_trim(fw_attr(w, "type"));
	l->title = fw_build_url(b, w->frame->scope, fw_attr(w, "source"));
	l->length = FW_NO_NUMBER;
	FW_APPEND(b->entry->in_reply_to, l);
}

static void strings_start(struct fw_start_event *w)
{
	w->frame->obj = group_of(w->b, w->frame);
	w->frame->ctx = CTX_MEDIA;
}

static void chapters_start(struct fw_start_event *w)
{
	w->frame->ctx = CTX_LIST;
	w->frame->obj = fw_value_array(w->b, fw_value_object(w->b, &w->b->entry->extra, ""), "chapters");
}

static void value_start(struct fw_start_event *w)
{
	if (w->el->field == F_LINK)
		fw_url_start(w);
	else
		fw_text_capture(w, TEXT_TRIM);
}

/* A tombstone (RFC 6721). Only a comment and a person count inside it. */
static void retraction_start(struct fw_start_event *w)
{
	struct fw_builder *b = w->b;
	struct fw_str ref = fw_str_trim(fw_attr(w, "ref")), when = fw_str_trim(fw_attr(w, "when"));
	struct fw_retraction *r;

	if (!ref.len) {
		fw_build_problem(b, fw_build_offset(b), "a deleted-entry without a ref", "left out");
		return;
	}
	if (!fw_build_count_member(b, &b->retraction_n, FW_RETRACTIONS_MAX, "more than 1,000 deleted entries"))
		return;
	r = FW_NEW(b, struct fw_retraction);
	if (!r)
		return;
	r->ref = ref;
	r->when_ms = when.len ? fw_build_date(b, when) : FW_NO_DATE;
	w->frame->obj = r;
	w->frame->ctx = CTX_RETRACTION;
	*(b->retraction_at ? b->retraction_at : &b->doc->retractions) = r;
	b->retraction_at = &r->next;
}

void fw_module_start(struct fw_start_event *w)
{
	struct fw_document *doc = w->b->doc;
	enum fw_element_kind kind = (enum fw_element_kind)w->el->kind;

	switch (kind) {
	case EL_OBJECT:
	case EL_ONE:
	case EL_PART:
		object_start(w, kind);
		break;
	case EL_ENCLOSURE:
		object_start(w, EL_OBJECT);
		break; /* of a live item */
	case EL_CLOUD:
		attributes_add(w, fw_value_object(w->b, &doc->extra, "cloud"));
		break;
	case EL_TEXT_INPUT:
		text_input_start(w);
		break;
	case EL_LIVE:
		live_start(w);
		break;
	case EL_ITUNES_LINK:
		itunes_link_start(w);
		break;
	case EL_ITUNES_IMAGE:
		fw_url_start(w);
		break;
	case EL_ITUNES_CATEGORY:
		itunes_category_start(w);
		break;
	case EL_OWNER:
		fw_text_capture(w, TEXT_TRIM);
		w->frame->obj = FW_NEW(w->b, struct fw_person);
		w->frame->ctx = CTX_PERSON;
		break;
	case EL_MEDIA_GROUP:
		media_group_start(w);
		break;
	case EL_MEDIA_CONTENT:
		media_content_start(w);
		break;
	case EL_MEDIA_THUMBNAIL:
		thumbnail_start(w);
		break;
	case EL_MEDIA_TEXT:
		media_text_start(w);
		break;
	case EL_MEDIA_CATEGORY:
		media_category_start(w);
		break;
	case EL_REPLY:
		reply_start(w);
		break;
	case EL_RETRACTION:
		retraction_start(w);
		break;
	case EL_FLAG:
		*(w->el->field == F_COMPLETE ? &doc->complete : &doc->archive) = true;
		break;
	case EL_GEO_WHERE:
	case EL_GEO_SHAPE:
	case EL_GEO_POINTS:
		fw_geo_start(w);
		break;
	case EL_STRINGS:
		strings_start(w);
		break;
	case EL_CHAPTERS:
		chapters_start(w);
		break;
	case EL_CHAPTER:
		chapter_start(w);
		break;
	case EL_VALUE:
		value_start(w);
		break;
	default:
		fw_text_capture(w, TEXT_TRIM);
		break; /* texts */
	}
}

void fw_module_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s, bool markup)
{
	struct fw_value *v;

	switch ((enum fw_element_kind)f->el->kind) {
	case EL_VALUE:
		if (f->el->field == F_LINK)
			s = fw_url_text(f, s);
		else if (f->el->field == F_ORIGINAL)
			s = fw_build_original(b, s);
		if (fw_str_trim(s).len)
			typed_add(b, group_of(b, f), f->el->member, (enum element_field)f->el->field, f, s);
		break;
	case EL_OBJECT:
	case EL_ONE:
	case EL_PART:
		object_end(b, f, s);
		break;
	case EL_ITUNES_LINK:
		if (f->obj)
			itunes_image_end(b, f, s);
		break;
	case EL_ITUNES_CATEGORY:
		itunes_category_add(b, f->el, s);
		break;
	case EL_ITUNES_IMAGE:
		itunes_image_end(b, f, s);
		break;
	case EL_KEYWORDS:
		keywords_end(b, f, s);
		break;
	case EL_OWNER:
		itunes_owner_end(b, f, s);
		break;
	case EL_MEDIA_GROUP:
		media_group_end(b, f);
		break;
	case EL_MEDIA_CONTENT:
		media_content_end(b, f);
		break;
	case EL_MEDIA_TEXT:
		media_text_end(b, f, s, markup);
		break;
	case EL_MEDIA_CATEGORY:
		media_category_end(b, f, s);
		break;
	case EL_MEDIA_THUMBNAIL:
		/* some feeds write the URL as text */
		v = f->obj;
		fw_value_str(b, v, "url", fw_build_url(b, f->scope, s));
		break;
	case EL_GEO_WHERE:
	case EL_GEO_SHAPE:
	case EL_GEO_POINTS:
	case EL_GEO_LAT:
	case EL_GEO_LONG:
	case EL_GEO_ALT:
	case EL_GEO_NOTE:
		fw_geo_end(b, f, s);
		break;
	case EL_STRING_IN:
		string_in_end(b, f, s);
		break;
	default:
		break;
	}
}
