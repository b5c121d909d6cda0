/* SPDX-License-Identifier: ISC */
/*
 * Reads JSON Feed 1 and 1.1 (jsonfeed.org). jansson builds trees; their content is copied into the
 * arena, so a tree can be freed at once.
 *
 * A tree takes several times the memory of its text, and not from the caller's allocator: jansson's
 * allocator is process-wide and not a library's to set. So a tree never holds two items: first the
 * feed is read with its first item only, then one item at a time. A broken document is repaired
 * where possible (json_repair.c). A truncated one, or one with an unrepairable error, is closed
 * after the last complete item before that place.
 */
#include <jansson.h>
#include <stdlib.h>

#include "base/url.h"
#include "parse/feed/json_repair.h"
#include "parse/feed/jsonfeed.h"
#include "parse/feed/normalize.h"
#include "parse/feed/people.h"

#define NEST_MAX 32
#define MEMBERS_MAX 1000 /* per list or object */
#define PROBE_BYTES ((size_t)4096)

/*
 * NULL: the text is invalid, or arena->failed. jansson uses malloc, so the memory limit is checked
 * beforehand. When malloc fails jansson mostly reports invalid text; a probe tells the two apart,
 * so that the document is not blamed.
 */
static json_t *jsonfeed_load(struct fw_builder *b, struct fw_str text, size_t flags, json_error_t *why)
{
	void *volatile probe; /* volatile: clang assumes that an unused malloc() succeeds */
	json_t *root;

	*why = (json_error_t){.line = 0};
	if (!fw_json_fits(b->arena, text))
		return NULL;
	root = json_loadb(text.p, text.len, flags, why);
	probe = root ? NULL : malloc(PROBE_BYTES);

	b->arena->failed |= !root && !probe;
	free(probe);
	return root;
}

/* ---- members --------------------------------------------------------------------------------- */

static struct fw_str jsonfeed_text(struct fw_builder *b, const json_t *v)
{
	char *n;

	if (json_is_string(v))
		return fw_arena_str(b->arena, (struct fw_str){json_string_value(v), json_string_length(v)});
	if (json_is_integer(v))
		n = fw_arena_printf(b->arena, "%lld", (long long)json_integer_value(v));
	else if (json_is_real(v))
		n = fw_arena_printf(b->arena, "%.17g", json_real_value(v));
	else
		return FW_STR_NONE;
	return fw_str(n);
}

static struct fw_str str_at(struct fw_builder *b, const json_t *o, const char *key)
{
	struct fw_str s = jsonfeed_text(b, json_object_get(o, key));

	return s.len ? s : FW_STR_NONE;
}

/* Text other than ids and URLs: double encoding is undone, as in XML. */
static struct fw_str words_at(struct fw_builder *b, const json_t *o, const char *key)
{
	return fw_build_fix_mojibake(b, str_at(b, o, key));
}

static struct fw_str line_at(struct fw_builder *b, const json_t *o, const char *key)
{
	return fw_build_line_text(b, words_at(b, o, key));
}

/* A title is plain text, but some contain "&#8211;". Tags in it are literal. */
static struct fw_str title_at(struct fw_builder *b, const json_t *o)
{
	struct fw_str s = words_at(b, o, "title");

	return s.len && memchr(s.p, '<', s.len) ? fw_build_line_text(b, s) : fw_build_title(b, s);
}

static struct fw_str url_at(struct fw_builder *b, const json_t *o, const char *key)
{
	return fw_build_url(b, b->base_scope, str_at(b, o, key));
}

static int64_t date_at(struct fw_builder *b, const json_t *o, const char *key)
{
	return fw_build_date(b, str_at(b, o, key));
}

static int64_t int_at(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (json_is_integer(v) && json_integer_value(v) >= 0)
		return json_integer_value(v);
	if (json_is_real(v) && json_real_value(v) >= 0 && json_real_value(v) < 9e15)
		return (int64_t)json_real_value(v);
	if (json_is_string(v))
		return fw_build_size((struct fw_str){json_string_value(v), json_string_length(v)});
	return FW_NO_NUMBER;
}

/* A duration in seconds or as "1:02:03"; returns ms. */
static int64_t duration_at(struct fw_builder *b, const json_t *o, const char *key)
{
	int64_t ms = fw_build_duration(str_at(b, o, key));

	return ms > 0 && ms < INT64_C(1000000000000) ? ms : FW_NO_NUMBER;
}

static void jsonfeed_person_add(struct fw_builder *b, struct fw_person **list, const json_t *v)
{
	struct fw_person *p = FW_NEW(b, struct fw_person);

	if (!p)
		return;
	if (json_is_string(v)) {
		fw_person_split(b, fw_build_fix_mojibake(b, jsonfeed_text(b, v)), p);
	} else {
		p->name = line_at(b, v, "name");
		fw_person_url(p, F_URL, url_at(b, v, "url"));
		p->avatar = url_at(b, v, "avatar");
		fw_person_url(p, F_EMAIL, line_at(b, v, "_email"));
	}
	if (p->name.len || p->url.len || p->avatar.len || p->email.len)
		FW_APPEND(*list, p);
}

/*
 * The number of members to read from a list. Those beyond the limit are dropped, counted and
 * reported (LIM-08).
 */
static size_t list_size(struct fw_builder *b, const json_t *list, const char *what)
{
	size_t n = json_is_array(list) ? json_array_size(list) : list && !json_is_null(list);

	if (n <= FW_LIST_MAX)
		return n;
	fw_build_problem(b, 0, what, "the rest is left out");
	b->doc->dropped_n += n - FW_LIST_MAX;
	return FW_LIST_MAX;
}

/* A list of one is often written without its brackets. */
static const json_t *member_of(const json_t *list, size_t i)
{
	return json_is_array(list) ? json_array_get(list, i) : list;
}

/* "authors" has priority over version 1's "author". */
static void people_read(struct fw_builder *b, struct fw_person **list, const json_t *o)
{
	const json_t *authors = json_object_get(o, "authors"), *v = json_object_get(o, "author");
	size_t i, n = list_size(b, authors, "more than 100 people");

	for (i = 0; i < n; i++)
		jsonfeed_person_add(b, list, member_of(authors, i));
	if (!*list && v)
		jsonfeed_person_add(b, list, v);
}

static void value_copy(struct fw_builder *b, struct fw_value *in, const char *name, const json_t *v, int depth)
{
	struct fw_value *to;
	const char *key;
	json_t *m;
	size_t i;

	if (depth > NEST_MAX)
		return;
	if (name)
		name = fw_arena_dup(b->arena, name, strlen(name));
	switch (json_typeof(v)) {
	case JSON_OBJECT:
		to = fw_value_new(b, in, name, FW_VALUE_OBJECT);
		json_object_foreach((json_t *)(uintptr_t)v, key, m) value_copy(b, to, key, m, depth + 1);
		break;
	case JSON_ARRAY:
		to = fw_value_new(b, in, name, FW_VALUE_ARRAY);
		json_array_foreach(v, i, m) value_copy(b, to, NULL, m, depth + 1);
		break;
	case JSON_INTEGER:
		fw_value_int(b, in, name, json_integer_value(v));
		break;
	case JSON_REAL:
		fw_value_num(b, in, name, json_real_value(v));
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		fw_value_bool(b, in, name, json_is_true(v));
		break;
	case JSON_STRING:
		fw_value_str(b, in, name, jsonfeed_text(b, v));
		break;
	case JSON_NULL:
		break;
	}
}

/* Extensions ("_name") are copied unchanged, except "_feedwheel", which is our own. */
static void extensions_copy(struct fw_builder *b, struct fw_value **extra, const json_t *o)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)o, key, v)
	{
		if (key[0] == '_' && key[1] && strcmp(key, "_feedwheel") != 0)
			value_copy(b, fw_value_object(b, extra, "extensions"), key, v, 0);
	}
}

/* ---- items ----------------------------------------------------------------------------------- */

static void attachments_read(struct fw_builder *b, struct fw_entry *e, const json_t *list)
{
	struct fw_attachment **at = &e->attachments, *a;
	size_t i, n = list_size(b, list, "more than 100 attachments");

	for (i = 0; i < n; i++) {
		const json_t *o = member_of(list, i);
		struct fw_str url = url_at(b, o, "url");

		if (!url.len || !(a = FW_NEW(b, struct fw_attachment)))
			continue;
		a->url = url;
		a->mime_type = line_at(b, o, "mime_type");
		a->title = line_at(b, o, "title");
		a->size_bytes = int_at(o, "size_in_bytes");
		a->duration_ms = duration_at(b, o, "duration_in_seconds");
		*at = a;
		at = &a->next;
	}
}

static void tags_read(struct fw_builder *b, struct fw_category **list, const json_t *tags)
{
	struct fw_category *c;
	size_t i, n = list_size(b, tags, "more than 100 categories");

	for (i = 0; i < n; i++) {
		struct fw_str s = fw_build_line_text(b, fw_build_fix_mojibake(b, jsonfeed_text(b, member_of(tags, i))));

		if (s.len && (c = FW_NEW(b, struct fw_category))) {
			c->term = s;
			*list = c;
			list = &c->next;
		}
	}
}

static void item_read(struct fw_builder *b, const json_t *o)
{
	struct fw_entry *e;
	struct fw_str html, text;

	if (!json_is_object(o))
		return;
	if (!json_object_size(o)) {
		fw_build_empty_entry(b, 0);
		return;
	}
	e = fw_entry_begin(b, 0);
	if (!e)
		return;
	e->line = 0;
	e->id = fw_str_trim(str_at(b, o, "id"));
	e->url = url_at(b, o, "url");
	e->external_url = url_at(b, o, "external_url");
	e->title = title_at(b, o);
	html = words_at(b, o, "content_html");
	text = words_at(b, o, "content_text");
	if (html.len)
		b->content = (struct fw_body){.s = html, .type = FW_TEXT_HTML, .scope = b->base_scope, .rank = 9};
	if (html.len)
		e->content_text = text;
	else if (text.len)
		b->content = (struct fw_body){.s = text, .type = FW_TEXT_PLAIN, .scope = b->base_scope, .rank = 8};
	text = words_at(b, o, "summary");
	if (text.len)
		b->summary = (struct fw_body){.s = text, .type = FW_TEXT_PLAIN, .scope = b->base_scope, .rank = 8};
	e->image = url_at(b, o, "image");
	e->banner_image = url_at(b, o, "banner_image");
	e->language = fw_build_language(b, str_at(b, o, "language"));
	e->published_ms = date_at(b, o, "date_published");
	e->updated_ms = date_at(b, o, "date_modified");
	people_read(b, &e->authors, o);
	tags_read(b, &e->categories, json_object_get(o, "tags"));
	attachments_read(b, e, json_object_get(o, "attachments"));
	extensions_copy(b, &e->extra, o);
	fw_entry_finish(b);
}

/* ---- the document ---------------------------------------------------------------------------- */

static void hubs_read(struct fw_builder *b, const json_t *list)
{
	struct fw_link **at = &b->doc->hubs, *l;
	size_t i, n = list_size(b, list, "more than 100 hubs");

	for (i = 0; i < n; i++) {
		const json_t *o = member_of(list, i);
		struct fw_str url = url_at(b, o, "url");

		if (!url.len || !(l = FW_NEW(b, struct fw_link)))
			continue;
		l->rel = FW_STR("hub");
		l->href = url;
		l->type = line_at(b, o, "type");
		l->length = FW_NO_NUMBER;
		*at = l;
		at = &l->next;
	}
}

static void jsonfeed_read_feed(struct fw_builder *b, const json_t *o)
{
	struct fw_document *d = b->doc;

	d->title = title_at(b, o);
	d->home_page_url = url_at(b, o, "home_page_url");
	d->feed_url = url_at(b, o, "feed_url");
	d->description = words_at(b, o, "description");
	d->icon = url_at(b, o, "icon");
	d->favicon = url_at(b, o, "favicon");
	d->language = fw_build_language(b, str_at(b, o, "language"));
	d->next_url = url_at(b, o, "next_url");
	if (fw_str_eq(d->next_url, d->feed_url))
		d->next_url = FW_STR_NONE; /* it would never end */
	d->expired = json_is_true(json_object_get(o, "expired"));
	people_read(b, &d->authors, o);
	hubs_read(b, json_object_get(o, "hubs"));
	if (str_at(b, o, "user_comment").len)
		fw_value_str(b, fw_value_object(b, &d->extra, ""), "user_comment", str_at(b, o, "user_comment"));
	extensions_copy(b, &d->extra, o);
}

/*
 * Is items not a list but one item without brackets, or an object whose members are items? PHP
 * writes the latter for a list that has lost a member.
 */
static bool holds_items(const json_t *items)
{
	const char *key;
	json_t *v;

	if (!json_object_size(items))
		return false;
	json_object_foreach((json_t *)(uintptr_t)items, key, v)
	{
		if (!json_is_object(v) || key[0] == '_')
			return false;
	}
	return true;
}

static void jsonfeed_read_items(struct fw_builder *b, const json_t *o)
{
	json_t *items = json_object_get(o, "items"), *v;
	const char *key;
	size_t i;

	if (!json_is_array(items) && json_object_size(items))
		fw_build_problem(b, 0, "items that are not a list", "read as one");
	if (holds_items(items)) {
		json_object_foreach(items, key, v) item_read(b, v);
		return;
	}
	for (i = 0; i < (json_is_array(items) ? json_array_size(items) : json_object_size(items) > 0); i++)
		item_read(b, member_of(items, i));
}

/* The item that identifies a feed without a version. */
static const json_t *first_item(const json_t *items)
{
	if (holds_items(items))
		return json_object_iter_value(json_object_iter((json_t *)(uintptr_t)items));
	return member_of(items, 0);
}

/* The version identifies a feed. Without it, a title or items of the right form do. */
static enum fw_format format_of(const json_t *o)
{
	struct fw_str v = fw_str(json_string_value(json_object_get(o, "version")));
	const json_t *items = json_object_get(o, "items");

	if (v.len && fw_str_ifind(v, FW_STR("jsonfeed.org/version/")))
		return fw_str_ends(fw_str_trim(v), FW_STR("/1")) ? FW_JSON1 : FW_JSON11;
	if (!json_is_array(items) && !json_is_object(items))
		return FW_FORMAT_NONE;
	if (json_is_string(json_object_get(o, "title")) &&
		((json_is_array(items) && !json_array_size(items)) || json_object_get(first_item(items), "id") ||
			json_object_get(first_item(items), "url")))
		return FW_JSON11;
	return FW_FORMAT_NONE;
}

/*
 * s up to its last complete item, with closing brackets added. Brackets are counted outside
 * strings; an item ends where a '}' leads back into an array inside the outermost object. Absent:
 * no complete item.
 */
static struct fw_str close_cut(struct fw_builder *b, struct fw_str s)
{
	size_t i, end = 0;
	bool quoted = false;
	uint8_t open[64];
	int depth = 0;
	char *out;

	for (i = 0; i < s.len; i++) {
		char c = s.p[i];

		if (quoted) {
			if (c == '\\')
				i++;
			else if (c == '"')
				quoted = false;
			continue;
		}
		if (c == '"') {
			quoted = true;
		} else if (c == '{' || c == '[') {
			if (depth == (int)sizeof(open))
				break;
			open[depth++] = (uint8_t)c;
		} else if (c == '}' || c == ']') {
			if (!depth)
				break;
			depth--;
			if (c == '}' && depth == 2 && open[0] == '{' && open[1] == '[')
				end = i + 1;
		}
	}
	if (!end)
		return FW_STR_NONE;
	out = fw_arena_alloc(b->arena, end + 2);
	if (!out)
		return FW_STR_NONE;
	memcpy(out, s.p, end);
	out[end] = ']';
	out[end + 1] = '}';
	return (struct fw_str){out, end + 2};
}

/*
 * The tree of invalid JSON: try the repaired text; if that fails, keep what precedes the first
 * unrepairable error.
 */
static json_t *load_broken(struct fw_builder *b, const char **repair)
{
	struct fw_str text = fw_json_repair(b->arena, b->text), cut;
	json_error_t why;
	json_t *root;

	if (!text.p)
		return NULL;
	*repair = "put right";
	root = jsonfeed_load(b, text, JSON_DISABLE_EOF_CHECK, &why);
	if (root || b->arena->failed)
		return root;
	*repair = "read up to the last complete item";
	cut = close_cut(b, fw_str_sub(text, 0, (size_t)FW_MAX(why.position, 0)));
	return cut.p ? jsonfeed_load(b, cut, 0, &why) : NULL;
}

/* ---- one item at a time ---------------------------------------------------------------------- */

static const char *jsonfeed_skip_space(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
		p++;
	return p;
}

/* The end of the value at p; end if it is not terminated. */
static const char *skip_value(const char *p, const char *end)
{
	size_t depth = 0;

	for (; p && p < end; p++) {
		if (*p == '"') {
			p = fw_json_string_end(p, end);
			if (!p || depth == 0)
				break;
			p--;
		} else if (*p == '{' || *p == '[') {
			depth++;
		} else if (*p == '}' || *p == ']') {
			if (depth <= 1)
				return p + depth;
			depth--;
		} else if (*p == ',' && depth == 0) {
			return p;
		}
	}
	return p ? p : end;
}

/*
 * Find the content of "items" in the outermost object. False unless there is exactly one, easy to
 * find.
 */
static bool jsonfeed_find_items(struct fw_str s, struct fw_str *items)
{
	const char *end = s.p + s.len, *p = jsonfeed_skip_space(s.p, end), *key, *value;

	items->p = NULL;
	if (p == end || *p != '{')
		return false;
	do {
		key = jsonfeed_skip_space(p + 1, end);
		if (key == end || *key != '"' || !(p = fw_json_string_end(key, end)))
			return false;
		p = jsonfeed_skip_space(p, end);
		if (p == end || *p != ':')
			return false;
		value = jsonfeed_skip_space(p + 1, end);
		p = skip_value(value, end);
		if (end - key >= 7 && memcmp(key, "\"items\"", 7) == 0) {
			if (items->p || p - value < 2 || *value != '[' || p[-1] != ']')
				return false;
			*items = (struct fw_str){value + 1, (size_t)(p - value - 2)};
		}
		p = jsonfeed_skip_space(p, end);
	} while (p < end && *p == ',');
	return p < end && *p == '}' && items->p;
}

static void jsonfeed_broken(struct fw_builder *b, size_t at, const char *repair)
{
	fw_build_broken(b, at, "broken JSON", repair);
}

/* Report that n members at this place are dropped. */
static void jsonfeed_too_many(struct fw_builder *b, size_t place, size_t n)
{
	if (n)
		fw_build_problem(b, place, "a list or an object of more than 1000 members", "the rest is left out");
	b->doc->dropped_n += n;
}

/* Read one item's text into an entry. Returns the number of dropped members. */
static size_t item_load(struct fw_builder *b, struct fw_str whole)
{
	size_t place = (size_t)(whole.p - b->text.p), dropped;
	struct fw_str s = fw_json_limit_members(b->arena, whole, MEMBERS_MAX, &dropped);
	json_error_t why;
	json_t *o;

	if (!s.p)
		return dropped;
	jsonfeed_too_many(b, place, dropped);
	o = jsonfeed_load(b, s, JSON_DECODE_ANY, &why);
	if (!o && !b->arena->failed) {
		struct fw_str text = fw_json_repair(b->arena, s);
		size_t at = place + (dropped ? 0 : (size_t)FW_MAX(why.position, 0));

		o = text.p ? jsonfeed_load(b, text, JSON_DECODE_ANY, &why) : NULL;
		jsonfeed_broken(b, at, o ? "put right" : "left out");
	}
	if (o)
		item_read(b, o);
	json_decref(o);
	return dropped;
}

/*
 * Read the feed with its first item only, then all items. False: the document must be read as a
 * whole.
 */
static bool read_by_item(struct fw_builder *b)
{
	struct fw_str s = b->text, items = FW_STR_NONE, text;
	size_t head_n, tail_n, dropped, of_item;
	const char *p, *end, *first;
	json_error_t why;
	json_t *root;
	char *shell;

	if (!jsonfeed_find_items(s, &items))
		return false;
	end = items.p + items.len;
	head_n = (size_t)(skip_value(jsonfeed_skip_space(items.p, end), end) - s.p);
	tail_n = (size_t)(s.p + s.len - end);
	/* checked before it is copied */
	if (!fw_json_fits(b->arena, (struct fw_str){s.p, head_n}))
		return false;
	shell = fw_arena_alloc(b->arena, head_n + tail_n);
	if (!shell)
		return false;
	memcpy(shell, s.p, head_n);
	memcpy(shell + head_n, end, tail_n);
	text = fw_json_limit_members(b->arena, (struct fw_str){shell, head_n + tail_n}, MEMBERS_MAX, &dropped);
	root = text.p ? jsonfeed_load(b, text, JSON_DISABLE_EOF_CHECK, &why) : NULL;
	if (text.p != shell)
		fw_arena_trim(b->arena, (void *)(uintptr_t)text.p, text.len, 0);
	fw_arena_trim(b->arena, shell, head_n + tail_n, 0);
	if (!root)
		return false;
	b->doc->format = json_is_object(root) ? format_of(root) : FW_FORMAT_NONE;
	if (b->doc->format != FW_FORMAT_NONE)
		jsonfeed_read_feed(b, root);
	json_decref(root);
	if (b->doc->format == FW_FORMAT_NONE)
		return true;
	first = jsonfeed_skip_space(items.p, end);
	for (p = first; p < end && !b->arena->failed;) {
		const char *next = skip_value(p, end);
		bool comma;

		of_item = item_load(b, (struct fw_str){p, (size_t)(next - p)});
		if (p == first)
			/* the first item was counted with the feed too */
			jsonfeed_too_many(b, 0, dropped - FW_MIN(dropped, of_item));
		p = jsonfeed_skip_space(next, end);
		if (p == end)
			break;
		comma = *p == ',';
		p = jsonfeed_skip_space(p + comma, end);
		/* a comma is missing between two items, or follows the last */
		if (!comma || p == end)
			jsonfeed_broken(b, (size_t)(p - s.p), "put right");
	}
	return true;
}

int fw_read_json(struct fw_builder *b, struct fw_err *err)
{
	const char *repair = NULL;
	json_error_t why;
	json_t *root;

	if (read_by_item(b))
		return 0;
	if (b->arena->failed)
		return FW_ELIMIT;
	root = jsonfeed_load(b, b->text, JSON_DISABLE_EOF_CHECK, &why);
	if (!root && !b->arena->failed)
		root = load_broken(b, &repair);
	if (b->arena->failed) {
		json_decref(root);
		return FW_ENOMEM;
	}
	if (!root)
		return fw_err_set(err, FW_EFORMAT, "not a feed: broken JSON (line %d, column %d: %s)", why.line,
			why.column, why.text);
	if (json_is_object(root))
		b->doc->format = format_of(root);
	if (b->doc->format != FW_FORMAT_NONE) {
		if (repair)
			jsonfeed_broken(b, (size_t)FW_MAX(why.position, 0), repair);
		jsonfeed_read_feed(b, root);
		jsonfeed_read_items(b, root);
	}
	json_decref(root);
	return 0;
}
