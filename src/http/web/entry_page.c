/* SPDX-License-Identifier: ISC */
/* The page: one entry with its content; alone, or as a part of the river for the script. */
#include <jansson.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/url.h"
#include "http/web/web.h"

#define ENTRY_ATTACHMENTS_MAX 50

/* ---- attachments ----------------------------------------------------------------------------- */

static void entry_size_put(struct web *w, int64_t bytes)
{
	if (bytes >= 1000000)
		web_put(w, ", %d MB", (bytes + 500000) / 1000000);
	else if (bytes > 0)
		web_put(w, ", %d KB", (bytes + 999) / 1000);
}

static void entry_attachment_put(struct web *w, const json_t *one)
{
	struct fw_str url = http_json_text(one, "url"), type = http_json_text(one, "mime_type");
	struct fw_str title = http_json_text(one, "title");

	if (!fw_is_http(url))
		return;
	web_put(w, "<li>");
	if (fw_str_istarts(type, FW_STR("audio/")))
		web_put(w, "<audio controls preload=\"none\" src=\"%t\"></audio>", url);
	else if (fw_str_istarts(type, FW_STR("video/")))
		web_put(w, "<video controls preload=\"none\" src=\"%t\"></video>", url);
	web_put(w, "<a href=\"%t\" target=\"_blank\" rel=\"noopener noreferrer\">%t</a> <small>%t", url,
		title.len ? title : url, type);
	entry_size_put(w, json_integer_value(json_object_get(one, "size_in_bytes")));
	web_put(w, "</small></li>\n");
}

static void entry_attachments_put(struct web *w, struct fw_str extra)
{
	json_t *doc, *list;

	if (!extra.len || !fw_str_find(extra, FW_STR("\"attachments\"")))
		return;
	doc = json_loadb(extra.p, extra.len, 0, NULL);
	list = json_object_get(doc, "attachments");
	if (json_array_size(list)) {
		web_put(w, "<ul class=\"attachments\">\n");
		for (size_t i = 0; i < FW_MIN(json_array_size(list), (size_t)ENTRY_ATTACHMENTS_MAX); i++)
			entry_attachment_put(w, json_array_get(list, i));
		web_put(w, "</ul>\n");
	}
	json_decref(doc);
}

/* ---- the article ----------------------------------------------------------------------------- */

static void entry_by_put(struct web *w, const struct fw_entry_row *e)
{
	const struct web_feed *f = web_feed_find(w, e->feed_id);
	struct fw_str name = f ? f->title : e->feed_title.len ? e->feed_title : e->feed_url;

	web_put(w, "<p class=\"by\"><a href=\"./?view=%s&amp;feed=%d\" dir=\"auto\">%t</a>", f ? "unread" : "starred",
		e->feed_id, name);
	if (e->author.len)
		web_put(w, " \xc2\xb7 <span dir=\"auto\">%t</span>", e->author);
	web_put(w, " \xc2\xb7 ");
	web_whole_time_put(w, fw_store_entry_date(e, e->seen_ms));
	web_put(w, "</p>\n");
}

/* Append an entry's content and what belongs to it. */
static void web_content_add(struct web *w, const struct fw_stream_entry *se)
{
	struct fw_view_work work = {.cache = w->r->thread->h->views};
	const struct fw_entry_row *e = se->entry;
	struct fw_buf html = FW_BUF_INIT(0);
	struct fw_err err = {0};

	entry_by_put(w, e);
	if (fw_entry_html(e, &work, &html, &err))
		fw_warn("%s", err.text);
	web_put(w, "<div class=\"content\" dir=\"auto\">\n");
	web_content_rewrite(
		&w->out, fw_buf_str(&html), e->extra, web_is_part(w) ? 3 : 2, http_tokenless_head(w->r)->host);
	if (!html.len)
		web_put(w, "<p>%t</p>", e->summary);
	web_put(w, "\n</div>\n");
	if (html.rc)
		w->out.rc = html.rc;
	fw_buf_finish(&html);
	entry_attachments_put(w, e->extra);
}

/* On a page of its own an entry becomes read by this button; the script presses it. */
static void entry_read_put(struct web *w, int64_t id)
{
	web_put(w,
		"<button class=\"mark\" form=\"state\" formaction=\"read?next=entry%%3Fid%%3D%d\" "
		"name=\"id\" value=\"%d\">"
		"Mark as read</button>\n",
		id, id);
}

/* The buttons below. Without script a star returns to the entry; an unread one does not. */
static void entry_tools_put(struct web *w, const struct fw_stream_entry *se)
{
	int64_t id = se->entry->id;

	web_put(w, "<div class=\"tools\"><button class=\"star\" form=\"state\" formaction=\"star");
	if (!web_is_part(w))
		web_put(w, "?next=entry%%3Fid%%3D%d", id);
	web_put(w,
		"\" name=\"id\" value=\"%d\" "
		"aria-pressed=\"%s\"><svg><use href=\"#i-star\"/></svg> Star</button>\n",
		id, se->starred ? "true" : "false");
	if (!web_is_part(w) && !se->read)
		entry_read_put(w, id);
	web_put(w,
		"<button class=\"keep\" form=\"state\" formaction=\"read?read=0\" name=\"id\" value=\"%d\" "
		"aria-pressed=\"false\"><svg><use href=\"#i-dot\"/></svg> Keep unread</button>\n",
		id);
	if (fw_is_http(se->entry->url))
		web_put(w,
			"<a class=\"button original\" href=\"%t\" target=\"_blank\" rel=\"noopener noreferrer\">"
			"<svg><use href=\"#i-out\"/></svg> Original</a>",
			se->entry->url);
	web_entry_labels_put(w, se);
	web_put(w, "</div>\n");
}

struct entry_page_view {
	struct web *w;
	bool found;
};

static int entry_put(void *ctx, const struct fw_stream_entry *se)
{
	struct entry_page_view *p = ctx;
	struct web *w = p->w;
	struct fw_str title = se->entry->title.len ? se->entry->title : FW_STR("(no title)");

	p->found = true;
	if (web_is_part(w)) {
		web_content_add(w, se);
		entry_tools_put(w, se);
		return 0;
	}
	web_frame_begin(w, title);
	web_put(w,
		"<header class=\"bar\"><a class=\"icon menu\" href=\"#column\" aria-label=\"Show the feeds\"><svg>"
		"<use href=\"#i-menu\"/></svg></a> <p class=\"back\"><a href=\"./\">Back to the "
		"entries</a></p></header>\n"
		"<form id=\"state\" method=\"post\" action=\"star\"><input type=\"hidden\" name=\"csrf\" "
		"value=\"%s\"></form>\n"
		"<article class=\"alone\">\n<h1 dir=\"auto\">%t</h1>\n<div class=\"body\">",
		w->csrf, title);
	web_content_add(w, se);
	entry_tools_put(w, se);
	web_put(w, "</div></article>\n");
	web_frame_end(w);
	return 0;
}

static int entry_feed_id(void *ctx, const struct fw_stream_entry *se)
{
	*(int64_t *)ctx = se->entry->feed_id;
	return 0;
}

enum MHD_Result web_entry(struct web *w)
{
	struct entry_page_view p = {.w = w};
	int64_t id = web_number(w, "id"), feed_id = 0;
	int rc = 0;

	if (web_is_part(w)) /* without the column: of the feeds only its own is needed */
		rc = fw_account_entries_get(
			w->r->store, w->account.id, &id, id != 0, false, entry_feed_id, &feed_id, &w->err);
	if (!rc && (feed_id || !web_is_part(w)))
		rc = web_feeds_read(w, feed_id);
	rc = rc ? rc : web_labels_read(w);
	rc = rc ? rc : fw_account_entries_get(w->r->store, w->account.id, &id, id != 0, true, entry_put, &p, &w->err);
	if (rc)
		return web_store_failed(w, rc);
	return p.found ? web_send(w, MHD_HTTP_OK) : web_fail(w, MHD_HTTP_NOT_FOUND, "There is no such entry.");
}
