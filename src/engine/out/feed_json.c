/* SPDX-License-Identifier: ISC */
/* JSON Feed 1.1. */
#include "base/json.h"
#include "engine/out/feed_item.h"

static void json_text(struct fw_json *j, const char *key, struct fw_str s)
{
	if (s.len)
		fw_json_str(j, key, s);
}

static void json_people(struct fw_json *j, const struct fw_person *p)
{
	if (!p)
		return;
	fw_json_array(j, "authors");
	for (; p; p = p->next) {
		fw_json_object(j, NULL);
		fw_json_str(j, "name", p->name);
		json_text(j, "url", p->url);
		json_text(j, "avatar", p->avatar);
		fw_json_end(j);
	}
	fw_json_end(j);
}

static void json_tags(struct fw_json *j, const struct fw_category *c)
{
	if (!c)
		return;
	fw_json_array(j, "tags");
	for (; c; c = c->next)
		fw_json_str(j, NULL, c->term);
	fw_json_end(j);
}

static void json_attachments(struct fw_json *j, const struct fw_attachment *t)
{
	if (!t)
		return;
	fw_json_array(j, "attachments");
	for (; t; t = t->next) {
		fw_json_object(j, NULL);
		fw_json_str(j, "url", t->url);
		fw_json_str(j, "mime_type", t->mime_type.len ? t->mime_type : FW_STR("application/octet-stream"));
		json_text(j, "title", t->title);
		if (t->size_bytes != FW_NO_NUMBER)
			fw_json_int(j, "size_in_bytes", t->size_bytes);
		if (t->duration_ms != FW_NO_NUMBER && t->duration_ms % 1000)
			fw_json_double(j, "duration_in_seconds", (double)t->duration_ms / 1000);
		else if (t->duration_ms != FW_NO_NUMBER)
			fw_json_int(j, "duration_in_seconds", t->duration_ms / 1000);
		fw_json_end(j);
	}
	fw_json_end(j);
}

/* An item must have a content, if only an empty one. */
static void json_content(struct fw_json *j, const struct feed_item *i)
{
	if (i->html.len)
		fw_json_str(j, "content_html", i->html);
	else
		fw_json_str(j, "content_text", i->text.len ? i->text : i->summary.len ? i->summary : FW_STR(""));
	json_text(j, "summary", i->summary);
}

void feed_json_item(struct fw_buf *out, const struct feed_item *i)
{
	struct fw_json json, *j = &json;

	if (out->len)
		fw_buf_addc(out, ',');
	fw_json_init(j, out, false);
	fw_json_object(j, NULL);
	fw_json_str(j, "id", i->id);
	json_text(j, "url", i->url);
	json_text(j, "external_url", i->external_url);
	json_text(j, "title", i->title);
	json_content(j, i);
	json_text(j, "image", i->image);
	json_text(j, "banner_image", i->banner_image);
	fw_json_time(j, "date_published", i->published_ms);
	if (i->updated_known)
		fw_json_time(j, "date_modified", i->updated_ms);
	json_people(j, i->authors);
	json_tags(j, i->categories);
	json_text(j, "language", i->language);
	json_attachments(j, i->attachments);
	fw_json_object(j, "_source");
	json_text(j, "title", i->source_title);
	json_text(j, "url", i->source_url);
	fw_json_end(j);
	fw_json_end(j);
}

void feed_json_document(struct fw_buf *out, const struct fw_feed_out_head *h, int64_t updated_ms, struct fw_str items)
{
	struct fw_json json, *j = &json;

	(void)updated_ms; /* JSON Feed has no such member */
	fw_json_init(j, out, false);
	fw_json_object(j, NULL);
	fw_json_cstr(j, "version", "https://jsonfeed.org/version/1.1");
	fw_json_str(j, "title", h->title);
	json_text(j, "home_page_url", h->home_url);
	json_text(j, "feed_url", h->self_url);
	json_text(j, "description", h->description);
	json_text(j, "icon", h->icon);
	json_text(j, "language", feed_language(h->language));
	if (h->hub_url.len) {
		fw_json_array(j, "hubs");
		fw_json_object(j, NULL);
		fw_json_cstr(j, "type", "WebSub");
		fw_json_str(j, "url", h->hub_url);
		fw_json_end(j);
		fw_json_end(j);
	}
	fw_json_array(j, "items");
	fw_buf_addstr(out, items);
	fw_json_end(j);
	fw_json_end(j);
	fw_buf_addc(out, '\n');
}
