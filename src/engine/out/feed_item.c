/* SPDX-License-Identifier: ISC */
/* A stored entry, whose lists are JSON in its member extra, as the formats need it. */
#include <jansson.h>

#include "engine/out/feed_item.h"

/* ---- JSON ------------------------------------------------------------------------------------ */

static struct fw_str item_string(struct fw_arena *a, const json_t *o, const char *name)
{
	const json_t *s = json_object_get(o, name);

	return json_is_string(s) ? fw_arena_str(a, (struct fw_str){json_string_value(s), json_string_length(s)}) :
				   FW_STR_NONE;
}

static int64_t item_number(const json_t *o, const char *name)
{
	const json_t *n = json_object_get(o, name);

	return json_is_integer(n) && json_integer_value(n) >= 0 ? json_integer_value(n) : FW_NO_NUMBER;
}

static void item_people(const json_t *extra, struct fw_arena *a, struct feed_item *out)
{
	struct fw_person **end = &out->authors;
	const json_t *o;
	size_t i;

	json_array_foreach(json_object_get(extra, "authors"), i, o)
	{
		struct fw_person *p = fw_arena_zalloc(a, sizeof(*p));

		if (!p)
			return;
		p->email = item_string(a, o, "_email");
		if (!fw_str_find(p->email, FW_STR("@")) || fw_str_find(p->email, FW_STR(" ")))
			p->email = FW_STR_NONE;
		p->url = feed_url(a, out->source_url, item_string(a, o, "url"));
		p->avatar = feed_url(a, out->source_url, item_string(a, o, "avatar"));
		p->name = fw_str_trim(item_string(a, o, "name"));
		p->name = p->name.len ? p->name : p->email.len ? p->email : p->url;
		if (!p->name.len)
			continue;
		*end = p;
		end = &p->next;
	}
}

/* scheme NULL: any. */
static bool item_has_category(const struct feed_item *i, struct fw_str term, const struct fw_str *scheme)
{
	for (const struct fw_category *c = i->categories; c; c = c->next) {
		if (fw_str_eq(c->term, term) && (!scheme || fw_str_eq(c->scheme, *scheme)))
			return true;
	}
	return false;
}

/* Categories with scheme and label; then the tags that are not among them, as orders add some. */
static void item_categories(const json_t *extra, struct fw_arena *a, struct feed_item *out)
{
	struct fw_category **end = &out->categories;
	const json_t *o;
	size_t i;

	json_array_foreach(json_object_get(json_object_get(extra, "_feedwheel"), "categories"), i, o)
	{
		struct fw_category *c = fw_arena_zalloc(a, sizeof(*c));

		if (!c)
			return;
		c->label = item_string(a, o, "label");
		c->term = item_string(a, o, "term");
		c->term = c->term.len ? c->term : c->label;
		c->scheme = feed_url(a, FW_STR_NONE, item_string(a, o, "scheme"));
		if (!c->term.len || item_has_category(out, c->term, &c->scheme))
			continue;
		*end = c;
		end = &c->next;
	}
	json_array_foreach(json_object_get(extra, "tags"), i, o)
	{
		struct fw_str term = json_is_string(o) ? (struct fw_str){json_string_value(o), json_string_length(o)} :
							 FW_STR_NONE;
		struct fw_category *c;

		if (!term.len || item_has_category(out, term, NULL))
			continue;
		c = fw_arena_zalloc(a, sizeof(*c));
		if (!c)
			return;
		c->term = fw_arena_str(a, term);
		*end = c;
		end = &c->next;
	}
}

/* "type/subtype", without white space. */
static bool item_is_type(struct fw_str type)
{
	const char *slash = fw_str_find(type, FW_STR("/"));

	for (size_t i = 0; i < type.len; i++) {
		if ((unsigned char)type.p[i] <= ' ' || (unsigned char)type.p[i] >= 0x7f)
			return false;
	}
	return slash && slash > type.p && slash + 1 < type.p + type.len;
}

static void item_attachments(const json_t *extra, struct fw_arena *a, struct feed_item *out)
{
	struct fw_attachment **end = &out->attachments;
	const json_t *o;
	size_t i;

	json_array_foreach(json_object_get(extra, "attachments"), i, o)
	{
		struct fw_attachment *t = fw_arena_zalloc(a, sizeof(*t));
		double seconds;

		if (!t)
			return;
		t->url = feed_url(a, out->source_url, item_string(a, o, "url"));
		if (!t->url.len)
			continue;
		t->mime_type = item_string(a, o, "mime_type");
		if (!item_is_type(t->mime_type))
			t->mime_type = FW_STR_NONE;
		t->title = item_string(a, o, "title");
		t->size_bytes = item_number(o, "size_in_bytes");
		seconds = json_number_value(json_object_get(o, "duration_in_seconds"));
		t->duration_ms = seconds > 0 && seconds < 1e9 ? (int64_t)(seconds * 1000 + 0.5) : FW_NO_NUMBER;
		*end = t;
		end = &t->next;
	}
}

static void item_extra(struct fw_str text, struct fw_arena *a, struct feed_item *out)
{
	json_t *extra = text.len ? json_loadb(text.p, text.len, JSON_ALLOW_NUL, NULL) : NULL;

	if (!extra)
		return;
	out->language = feed_language(item_string(a, extra, "language"));
	out->external_url = feed_url(a, out->source_url, item_string(a, extra, "external_url"));
	out->image = feed_url(a, out->source_url, item_string(a, extra, "image"));
	out->banner_image = feed_url(a, out->source_url, item_string(a, extra, "banner_image"));
	item_people(extra, a, out);
	item_categories(extra, a, out);
	item_attachments(extra, a, out);
	json_decref(extra);
}

/* ---- the rest -------------------------------------------------------------------------------- */

struct fw_str feed_language(struct fw_str s)
{
	size_t part = 0;

	s = fw_str_trim(s);
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.p[i];

		part = c == '-' ? 0 : part + 1;
		if (part > 8 || (c == '-' ? !i || s.p[i - 1] == '-' || i + 1 == s.len : !fw_is_alnum(c)))
			return FW_STR_NONE;
	}
	return s.len >= 2 && fw_is_alpha((unsigned char)s.p[0]) && fw_is_alpha((unsigned char)s.p[1]) ? s : FW_STR_NONE;
}

static void item_dates(const struct fw_entry_row *e, struct feed_item *out)
{
	out->published_ms = fw_date_known(e->published_ms) ? e->published_ms : FW_NO_DATE;
	out->updated_known = fw_date_known(e->updated_ms);
	out->updated_ms = out->updated_known    ? e->updated_ms :
		out->published_ms != FW_NO_DATE ? out->published_ms :
						  e->seen_ms;
}

void feed_item_read(const struct fw_entry_row *e, struct fw_arena *a, struct feed_item *out)
{
	char number[24];

	*out = (struct feed_item){.title = e->title, .summary = e->summary, .source_title = e->feed_title};
	out->source_url = feed_url(a, FW_STR_NONE, e->feed_url);
	out->url = feed_url(a, out->source_url, e->url);
	(void)fw_snprintf(number, sizeof(number), "%lld", (long long)e->id);
	out->id = feed_id(a, e->feed_url, e->guid.len ? e->guid : e->url.len ? e->url : fw_str(number), FW_STR_NONE);
	item_dates(e, out);
	if (e->content_type == FW_TEXT_PLAIN && e->content.len)
		out->text = e->content;
	item_extra(e->extra, a, out);
	if (!out->authors && e->author.len) {
		out->authors = fw_arena_zalloc(a, sizeof(*out->authors));
		if (out->authors)
			out->authors->name = e->author;
	}
}
