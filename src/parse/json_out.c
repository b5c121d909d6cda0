/* SPDX-License-Identifier: ISC */
/*
 * Writes a document as JSON Feed 1.1, and the parts of it that stores keep. Members without a value
 * are omitted. Members that JSON Feed does not define are in "_feedwheel".
 */
#include "base/clock.h"
#include "base/str.h"
#include "parse/feed/normalize.h"
#include "parse/html/embed.h"
#include "parse/html/sanitize.h"
#include "parse/parse.h"

/* ---- small parts ----------------------------------------------------------------------------- */

static void person_out(struct fw_json *j, const char *key, const struct fw_person *p)
{
	if (!p || (!p->name.len && !p->email.len && !p->url.len))
		return;
	fw_json_object(j, key);
	fw_json_str(j, "name", p->name);
	fw_json_str(j, "url", p->url);
	fw_json_str(j, "avatar", p->avatar);
	fw_json_str(j, "_email", p->email);
	fw_json_str(j, "_role", p->role);
	fw_json_end(j);
}

static void people_out(struct fw_json *j, const char *key, const struct fw_person *p)
{
	if (!p)
		return;
	fw_json_array(j, key);
	for (; p; p = p->next)
		person_out(j, NULL, p);
	fw_json_end(j);
}

static struct fw_str tag_of(const struct fw_category *c)
{
	return c->term.len ? c->term : c->label;
}

/* Linear search: lists have at most 100 members. */
static bool tag_before(const struct fw_category *first, const struct fw_category *c)
{
	for (; first != c; first = first->next) {
		if (fw_str_eq(tag_of(first), tag_of(c)))
			return true;
	}
	return false;
}

/* The terms without schemes and duplicates. */
static void tags_out(struct fw_json *j, const struct fw_category *first)
{
	const struct fw_category *c;

	if (!first)
		return;
	fw_json_array(j, "tags");
	for (c = first; c; c = c->next) {
		if (!tag_before(first, c))
			fw_json_str(j, NULL, tag_of(c));
	}
	fw_json_end(j);
}

static void categories_out(struct fw_json *j, const struct fw_category *c)
{
	fw_json_array(j, "categories");
	for (; c; c = c->next) {
		fw_json_object(j, NULL);
		fw_json_str(j, "term", c->term);
		fw_json_str(j, "scheme", c->scheme);
		fw_json_str(j, "label", c->label);
		fw_json_end(j);
	}
	fw_json_end(j);
}

static bool categories_plain(const struct fw_category *c)
{
	for (; c; c = c->next) {
		if (c->scheme.len || c->label.len)
			return false;
	}
	return true;
}

static void str_len(struct fw_json *j, const char *key, struct fw_str s)
{
	if (s.len)
		fw_json_str(j, key, s);
}

static void number_out(struct fw_json *j, const char *key, int64_t n)
{
	if (n != FW_NO_NUMBER)
		fw_json_int(j, key, n);
}

static void links_out(struct fw_json *j, const struct fw_link *l)
{
	if (!l)
		return;
	fw_json_array(j, "links");
	for (; l; l = l->next) {
		fw_json_object(j, NULL);
		str_len(j, "rel", l->rel);
		str_len(j, "type", l->type);
		str_len(j, "href", l->href);
		str_len(j, "title", l->title);
		str_len(j, "hreflang", l->hreflang);
		number_out(j, "length", l->length);
		fw_json_end(j);
	}
	fw_json_end(j);
}

static void attachments_out(struct fw_json *j, const struct fw_attachment *a)
{
	if (!a)
		return;
	fw_json_array(j, "attachments");
	for (; a; a = a->next) {
		fw_json_object(j, NULL);
		fw_json_str(j, "url", a->url);
		fw_json_str(j, "mime_type", a->mime_type);
		fw_json_str(j, "title", a->title);
		number_out(j, "size_in_bytes", a->size_bytes);
		if (a->duration_ms != FW_NO_NUMBER && a->duration_ms % 1000)
			fw_json_double(j, "duration_in_seconds", (double)a->duration_ms / 1000);
		else if (a->duration_ms != FW_NO_NUMBER)
			fw_json_int(j, "duration_in_seconds", a->duration_ms / 1000);
		fw_json_end(j);
	}
	fw_json_end(j);
}

/* Recursive: the tree is a few levels deep, at most 32, the JSON reader's limit. */
static void value_out(struct fw_json *j, const struct fw_value *v, bool named)
{
	const char *key = named ? v->name.p : NULL;
	const struct fw_value *m;

	switch (v->type) {
	case FW_VALUE_STRING:
		fw_json_str(j, key, v->string);
		break;
	case FW_VALUE_NUMBER:
		fw_json_double(j, key, v->number);
		break;
	case FW_VALUE_INTEGER:
		fw_json_int(j, key, v->integer);
		break;
	case FW_VALUE_BOOL:
		fw_json_bool(j, key, v->integer != 0);
		break;
	case FW_VALUE_OBJECT:
	case FW_VALUE_ARRAY:
		if (!v->members.first && named)
			break; /* all its members are empty */
		if (v->type == FW_VALUE_OBJECT)
			fw_json_object(j, key);
		else
			fw_json_array(j, key);
		for (m = v->members.first; m; m = m->next)
			value_out(j, m, v->type == FW_VALUE_OBJECT);
		fw_json_end(j);
		break;
	}
}

static void extra_out(struct fw_json *j, const struct fw_value *extra)
{
	const struct fw_value *v;

	for (v = extra ? extra->members.first : NULL; v; v = v->next)
		value_out(j, v, true);
}

/* ---- items ----------------------------------------------------------------------------------- */

static struct fw_html_embed *embeds_of(struct fw_arena *a, const struct fw_entry *e)
{
	return e->content_type == FW_TEXT_HTML ? fw_html_embeds(a, e->content, e->content_base) : NULL;
}

static void embeds_out(struct fw_json *j, const struct fw_html_embed *m)
{
	if (!m)
		return;
	fw_json_array(j, "embeds");
	for (; m; m = m->next) {
		fw_json_object(j, NULL);
		str_len(j, "url", m->url);
		if (!fw_str_eq(m->url, m->player))
			fw_json_str(j, "player", m->player);
		str_len(j, "service", m->service);
		str_len(j, "title", m->title);
		str_len(j, "image", m->image);
		fw_json_end(j);
	}
	fw_json_end(j);
}

static void item_problems_out(struct fw_json *j, const struct fw_entry *e)
{
	if (!e->all_removed)
		return;
	fw_json_array(j, "problems");
	fw_json_object(j, NULL);
	fw_json_cstr(j, "what", FW_ALL_REMOVED);
	fw_json_cstr(j, "repair", FW_ALL_REMOVED_REPAIR);
	fw_json_end(j);
	fw_json_end(j);
}

static bool item_has_own(const struct fw_entry *e)
{
	return e->id_made || e->all_removed || e->comments.len || e->comment_count != FW_NO_NUMBER ||
		e->comment_feed_url.len || e->copyright.len || e->license.len || e->created_ms != FW_NO_DATE ||
		(e->publisher && (e->publisher->name.len || e->publisher->email.len)) || e->contributors || e->links ||
		e->in_reply_to || (e->extra && e->extra->members.first) || !categories_plain(e->categories);
}

static void item_own(struct fw_json *j, const struct fw_entry *e, const struct fw_html_embed *embeds)
{
	const struct fw_link *l;

	if (!embeds && !item_has_own(e))
		return;
	fw_json_object(j, "_feedwheel");
	if (e->id_made)
		fw_json_bool(j, "id_made", true);
	str_len(j, "comments", e->comments);
	number_out(j, "comment_count", e->comment_count);
	str_len(j, "comment_feed_url", e->comment_feed_url);
	str_len(j, "copyright", e->copyright);
	str_len(j, "license", e->license);
	fw_json_time(j, "created", e->created_ms);
	person_out(j, "publisher", e->publisher);
	people_out(j, "contributors", e->contributors);
	if (!categories_plain(e->categories))
		categories_out(j, e->categories);
	links_out(j, e->links);
	if (e->in_reply_to) {
		fw_json_array(j, "in_reply_to");
		for (l = e->in_reply_to; l; l = l->next) {
			fw_json_object(j, NULL);
			str_len(j, "id", l->rel);
			str_len(j, "url", l->href);
			str_len(j, "type", l->type);
			str_len(j, "source", l->title);
			fw_json_end(j);
		}
		fw_json_end(j);
	}
	embeds_out(j, embeds);
	item_problems_out(j, e);
	extra_out(j, e->extra);
	fw_json_end(j);
}

/* Members that are neither columns of the store nor in the first part of an item. */
static void item_rest(struct fw_json *j, const struct fw_entry *e, const struct fw_html_embed *embeds)
{
	str_len(j, "language", e->language);
	str_len(j, "external_url", e->external_url);
	str_len(j, "image", e->image);
	str_len(j, "banner_image", e->banner_image);
	people_out(j, "authors", e->authors);
	tags_out(j, e->categories);
	attachments_out(j, e->attachments);
	item_own(j, e, embeds);
}

static void content_out(struct fw_json *j, const struct fw_entry *e, unsigned flags)
{
	struct fw_buf clean;

	if (e->content_type != FW_TEXT_HTML) {
		str_len(j, "content_text", e->content.len ? e->content : e->summary);
		return;
	}
	if (flags & FW_PRINT_RAW) {
		fw_json_str(j, "content_html", e->content);
		return;
	}
	fw_buf_init(&clean, 0);
	if (fw_html_sanitize(e->content, e->content_base, flags, &clean, NULL))
		j->out->rc = j->out->rc ? j->out->rc : FW_ENOMEM;
	else
		fw_json_str(j, "content_html", fw_buf_str(&clean));
	fw_buf_finish(&clean);
}

static void arena_end(struct fw_json *j, struct fw_arena *a)
{
	if (a->failed && !j->out->rc)
		j->out->rc = FW_ENOMEM;
	fw_arena_finish(a);
}

static void out_item(struct fw_json *j, const char *key, const struct fw_entry *e, unsigned flags)
{
	struct fw_arena a;

	fw_arena_init(&a, 0);
	fw_json_object(j, key);
	fw_json_str(j, "id", e->id);
	str_len(j, "url", e->url);
	str_len(j, "title", e->title);
	content_out(j, e, flags);
	str_len(j, "content_text", e->content_text);
	str_len(j, "summary", e->summary);
	fw_json_time(j, "date_published", e->published_ms);
	fw_json_time(j, "date_modified", e->updated_ms);
	item_rest(j, e, embeds_of(&a, e));
	fw_json_end(j);
	arena_end(j, &a);
}

void fw_out_item_extra(struct fw_json *j, const struct fw_entry *e)
{
	struct fw_html_embed *embeds;
	struct fw_arena a;

	fw_arena_init(&a, 0);
	embeds = embeds_of(&a, e);
	if (e->language.len || e->external_url.len || e->image.len || e->banner_image.len || e->authors ||
		e->categories || e->attachments || embeds || item_has_own(e)) {
		fw_json_object(j, NULL);
		item_rest(j, e, embeds);
		fw_json_end(j);
	}
	arena_end(j, &a);
}

/* ---- the feed -------------------------------------------------------------------------------- */

static void generator_out(struct fw_json *j, const struct fw_document *d)
{
	if (!d->generator_name.len && !d->generator_url.len && !d->generator_version.len)
		return;
	fw_json_object(j, "generator");
	str_len(j, "name", d->generator_name);
	str_len(j, "url", d->generator_url);
	str_len(j, "version", d->generator_version);
	fw_json_end(j);
}

static void image_out(struct fw_json *j, const struct fw_image *i)
{
	if (!i->url.len && !i->title.len && !i->link.len)
		return;
	fw_json_object(j, "image");
	str_len(j, "url", i->url);
	str_len(j, "title", i->title);
	str_len(j, "link", i->link);
	str_len(j, "description", i->description);
	number_out(j, "width", i->width);
	number_out(j, "height", i->height);
	fw_json_end(j);
}

static void skips_out(struct fw_json *j, const struct fw_document *d)
{
	static const char *const names[] = {
		"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
	int i;

	if (d->skip_hours) {
		fw_json_array(j, "skip_hours");
		for (i = 0; i < 24; i++) {
			if (d->skip_hours >> i & 1)
				fw_json_int(j, NULL, i);
		}
		fw_json_end(j);
	}
	if (d->skip_days) {
		fw_json_array(j, "skip_days");
		for (i = 0; i < 7; i++) {
			if (d->skip_days >> i & 1)
				fw_json_cstr(j, NULL, names[i]);
		}
		fw_json_end(j);
	}
}

static void feed_own(struct fw_json *j, const struct fw_document *d)
{
	str_len(j, "id", d->id);
	fw_json_time(j, "updated", d->updated_ms);
	fw_json_time(j, "published", d->published_ms);
	fw_json_time(j, "created", d->created_ms);
	generator_out(j, d);
	str_len(j, "copyright", d->copyright);
	str_len(j, "license", d->license);
	str_len(j, "docs", d->docs);
	number_out(j, "ttl_minutes", d->ttl_minutes);
	number_out(j, "update_period_minutes", d->update_period_minutes);
	skips_out(j, d);
	image_out(j, &d->image);
	person_out(j, "publisher", d->publisher);
	people_out(j, "contributors", d->contributors);
	if (d->categories)
		categories_out(j, d->categories);
	links_out(j, d->links);
	if (d->complete)
		fw_json_bool(j, "complete", true);
	if (d->archive)
		fw_json_bool(j, "archive", true);
	str_len(j, "prev_archive_url", d->prev_archive_url);
	extra_out(j, d->extra);
}

static void hubs_out(struct fw_json *j, const struct fw_link *l)
{
	if (!l)
		return;
	fw_json_array(j, "hubs");
	for (; l; l = l->next) {
		fw_json_object(j, NULL);
		fw_json_str(j, "type", l->type.len ? l->type : FW_STR("WebSub"));
		fw_json_str(j, "url", l->href);
		fw_json_end(j);
	}
	fw_json_end(j);
}

static void retractions_out(struct fw_json *j, const struct fw_retraction *r)
{
	if (!r)
		return;
	fw_json_array(j, "deleted_entries");
	for (; r; r = r->next) {
		fw_json_object(j, NULL);
		fw_json_str(j, "id", r->ref);
		fw_json_time(j, "when", r->when_ms);
		person_out(j, "by", r->by);
		str_len(j, "comment", r->comment);
		fw_json_end(j);
	}
	fw_json_end(j);
}

static void problems_out(struct fw_json *j, const struct fw_document *d)
{
	const struct fw_problem *p;
	char at[32];

	if (!d->problems)
		return;
	fw_json_array(j, "problems");
	for (p = d->problems; p; p = p->next) {
		fw_json_object(j, NULL);
		if (p->line && fw_snprintf(at, sizeof(at), "%u:%u", p->line, p->column))
			fw_json_cstr(j, "at", at);
		fw_json_cstr(j, "what", p->what);
		fw_json_cstr(j, "repair", p->repair);
		fw_json_end(j);
	}
	fw_json_end(j);
	if (d->problem_n > 100)
		fw_json_int(j, "problem_count", (int64_t)d->problem_n);
	if (d->dropped_n)
		fw_json_int(j, "dropped", (int64_t)d->dropped_n);
}

/* Write JSON Feed 1.1. */
static void out_document(struct fw_json *j, const struct fw_document *d, unsigned flags)
{
	const struct fw_entry *e;

	fw_json_object(j, NULL);
	fw_json_cstr(j, "version", "https://jsonfeed.org/version/1.1");
	str_len(j, "title", d->title);
	str_len(j, "home_page_url", d->home_page_url);
	str_len(j, "feed_url", d->feed_url);
	str_len(j, "description", d->description);
	str_len(j, "next_url", d->next_url);
	str_len(j, "icon", d->icon);
	str_len(j, "favicon", d->favicon);
	people_out(j, "authors", d->authors);
	str_len(j, "language", d->language);
	if (d->expired)
		fw_json_bool(j, "expired", true);
	hubs_out(j, d->hubs);
	fw_json_object(j, "_feedwheel");
	fw_json_cstr(j, "format", fw_format_name(d->format));
	fw_json_cstr(j, "encoding", d->encoding);
	fw_json_bool(j, "malformed", d->malformed);
	problems_out(j, d);
	retractions_out(j, d->retractions);
	feed_own(j, d);
	fw_json_end(j);
	fw_json_array(j, "items");
	for (e = d->entries; e; e = e->next)
		out_item(j, NULL, e, flags);
	fw_json_end(j);
	fw_json_end(j);
}

void fw_out_feed_extra(struct fw_json *j, const struct fw_document *d)
{
	fw_json_object(j, NULL);
	str_len(j, "favicon", d->favicon);
	people_out(j, "authors", d->authors);
	hubs_out(j, d->hubs);
	str_len(j, "next_url", d->next_url);
	if (d->expired)
		fw_json_bool(j, "expired", true);
	fw_json_object(j, "_feedwheel");
	feed_own(j, d);
	fw_json_end(j);
	fw_json_end(j);
}

int fw_document_json(const struct fw_document *doc, unsigned flags, char **json, size_t *len, struct fw_err *err)
{
	struct fw_buf out;
	struct fw_json j;
	int rc;

	*json = NULL;
	fw_buf_init(&out, 0);
	fw_json_init(&j, &out, (flags & FW_PRINT_PRETTY) != 0);
	out_document(&j, doc, flags);
	fw_buf_addc(&out, '\n');
	rc = out.rc;
	if (!rc)
		*json = fw_buf_take(&out, len);
	fw_buf_finish(&out);
	return rc ? fw_err_set(err, rc, "out of memory writing JSON") : 0;
}
