/* SPDX-License-Identifier: ISC */
/* The Google Reader API: an entry as an item in JSON, and as an entry of an Atom feed. */
#include <jansson.h>

#include "base/clock.h"
#include "base/url.h"
#include "base/xml.h"
#include "api/view.h"
#include "http/readers/content.h"
#include "http/readers/greader/greader.h"

/* An entry without the date has that of its publication. */
static int64_t item_updated_ms(const struct fw_entry_row *e)
{
	return fw_date_known(e->updated_ms) ? e->updated_ms : reader_published_ms(e);
}

/* What an item names of its feed: by the account's subscription, else by the entry. */
static struct reader_feed item_feed(const struct greader_writer *w, const struct fw_entry_row *e)
{
	const struct reader_feed *f = reader_feed_find(&w->feeds, e->feed_id);

	return f ? *f : (struct reader_feed){.id = e->feed_id, .title = e->feed_title, .url = e->feed_url};
}

/* ---- labels ---------------------------------------------------------------------------------- */

static int item_label_read(void *ctx, const struct fw_label *label)
{
	struct greader_writer *w = ctx;
	struct fw_arena *a = &w->rd->p.arena;

	if (w->label_n == w->label_cap) {
		size_t cap = w->label_cap ? 2 * w->label_cap : 16;

		w->label = fw_arena_grow(a, w->label, w->label_cap * sizeof(*w->label), cap * sizeof(*w->label));
		w->label_cap = cap;
		if (!w->label)
			return FW_ENOMEM;
	}
	w->label[w->label_n] = *label;
	w->label[w->label_n++].name = fw_arena_str(a, label->name);
	return a->failed ? FW_ENOMEM : 0;
}

int greader_writer_begin(struct greader_writer *w, int64_t feed_id)
{
	struct reader *rd = w->rd;
	int rc = reader_feeds_read(rd, feed_id, false, &w->feeds);

	return rc ? rc : fw_account_label_list(rd->r->store, rd->account.id, item_label_read, w, &rd->err);
}

static struct fw_str item_label_name(const struct greader_writer *w, int64_t id)
{
	for (size_t i = 0; i < w->label_n; i++) {
		if (w->label[i].id == id)
			return w->label[i].name;
	}
	return FW_STR_NONE;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void item_joined(struct fw_json *j, const char *key, const char *prefix, struct fw_str name)
{
	struct fw_buf text = FW_BUF_INIT(0);

	fw_buf_adds(&text, prefix);
	fw_buf_addstr(&text, name);
	fw_json_str(j, key, fw_buf_str(&text));
	fw_buf_finish(&text);
}

static void item_number_text(struct fw_json *j, const char *key, int64_t v)
{
	char text[24];

	(void)fw_snprintf(text, sizeof(text), "%lld", (long long)v);
	fw_json_cstr(j, key, text);
}

/* Clients read the first href without a look whether there is one: "" where no page is known. */
static void item_link(struct fw_json *j, const char *key, struct fw_str url, const char *type)
{
	fw_json_array(j, key);
	fw_json_object(j, NULL);
	fw_json_text(j, "href", fw_is_http(url) ? url : FW_STR_NONE);
	fw_json_cstr(j, "type", type);
	fw_json_end(j);
	fw_json_end(j);
}

static void item_category_list(
	const struct greader_writer *w, const struct fw_stream_entry *e, const struct reader_feed *f)
{
	struct fw_json *j = &w->rd->p.j;

	fw_json_array(j, "categories");
	fw_json_cstr(j, NULL, GREADER_STATE "reading-list");
	if (e->read)
		fw_json_cstr(j, NULL, GREADER_STATE "read");
	if (e->starred)
		fw_json_cstr(j, NULL, GREADER_STATE "starred");
	if (f->folder.len)
		item_joined(j, NULL, GREADER_LABEL, f->folder);
	for (size_t i = 0; i < e->label_n; i++) {
		struct fw_str name = item_label_name(w, e->label_id[i]);

		if (name.len && !fw_str_eq(name, f->folder))
			item_joined(j, NULL, GREADER_LABEL, name);
	}
	fw_json_end(j);
}

static void item_origin(struct fw_json *j, const struct reader_feed *f)
{
	char id[32];

	(void)fw_snprintf(id, sizeof(id), "feed/%lld", (long long)f->id);
	fw_json_object(j, "origin");
	fw_json_cstr(j, "streamId", id);
	fw_json_text(j, "title", f->title.len ? f->title : f->url);
	fw_json_text(j, "htmlUrl", f->home.len ? f->home : f->url);
	fw_json_text(j, "feedUrl", f->url);
	fw_json_end(j);
}

typedef void item_enclosure_cb(struct greader_writer *w, struct fw_str url, struct fw_str type, int64_t bytes);

/* Call cb for each attachment. They are among the entry's other members. */
static void item_enclosures(struct greader_writer *w, const struct fw_entry_row *e, item_enclosure_cb *cb)
{
	json_t *doc, *one;
	size_t i;

	if (!e->extra.len || !fw_str_find(e->extra, FW_STR("\"attachments\"")))
		return;
	doc = json_loadb(e->extra.p, e->extra.len, 0, NULL);
	json_array_foreach(json_object_get(doc, "attachments"), i, one)
	{
		struct fw_str url = http_json_text(one, "url"), type = http_json_text(one, "mime_type");

		if (fw_is_http(url))
			cb(w, url, type, json_integer_value(json_object_get(one, "size_in_bytes")));
	}
	json_decref(doc);
}

static void item_enclosure_json(struct greader_writer *w, struct fw_str url, struct fw_str type, int64_t bytes)
{
	struct fw_json *j = &w->rd->p.j;

	fw_json_object(j, NULL);
	fw_json_str(j, "href", url);
	fw_json_str(j, "type", type.len ? type : FW_STR("application/octet-stream"));
	item_number_text(j, "length", FW_MAX(bytes, INT64_C(0)));
	fw_json_end(j);
}

/* Every item has all members: a client that misses one in one item gives up the whole list. */
static void item_json(struct greader_writer *w, const struct fw_stream_entry *se)
{
	const struct fw_entry_row *e = se->entry;
	struct reader_feed f = item_feed(w, e);
	struct fw_json *j = &w->rd->p.j;
	char id[GREADER_ITEM_MAX];

	greader_item_write(id, e->id);
	fw_json_object(j, NULL);
	fw_json_cstr(j, "id", id);
	item_number_text(j, "crawlTimeMsec", e->seen_ms);
	item_number_text(j, "timestampUsec", e->seen_ms * 1000);
	fw_json_int(j, "published", reader_published_s(e));
	fw_json_int(j, "updated", reader_seconds(item_updated_ms(e)));
	fw_json_text(j, "title", e->title);
	item_link(j, "canonical", e->url, NULL);
	item_link(j, "alternate", e->url, "text/html");
	item_category_list(w, se, &f);
	item_origin(j, &f);
	fw_json_text(j, "author", e->author);
	fw_json_array(j, "enclosure");
	item_enclosures(w, e, item_enclosure_json);
	fw_json_end(j);
	fw_json_object(j, "summary"); /* newsboat reads its first member, whatever the name */
	fw_json_text(j, "content", fw_buf_str(&w->html));
	fw_json_cstr(j, "direction", "ltr");
	fw_json_end(j);
	fw_json_end(j);
}

/* ---- Atom ------------------------------------------------------------------------------------ */

static void item_atom_element(struct fw_buf *out, const char *name, const char *type, struct fw_str text)
{
	fw_buf_addf(out, type ? "<%s type=\"%s\">" : "<%s>", name, type);
	fw_xml_escape(out, text, FW_XML_TEXT);
	fw_buf_addf(out, "</%s>", name);
}

static void item_atom_time(struct fw_buf *out, const char *name, int64_t at_ms)
{
	char text[FW_RFC3339_MAX];

	fw_buf_addf(out, "<%s>%s</%s>", name, fw_rfc3339(text, at_ms), name);
}

static void item_atom_link(struct fw_buf *out, const char *rel, struct fw_str type, struct fw_str url)
{
	if (!fw_is_http(url))
		return;
	fw_buf_addf(out, "<link rel=\"%s\"", rel);
	if (type.len) {
		fw_buf_adds(out, " type=\"");
		fw_xml_escape(out, type, FW_XML_KEEP);
		fw_buf_addc(out, '"');
	}
	fw_buf_adds(out, " href=\"");
	fw_xml_escape(out, url, FW_XML_KEEP);
	fw_buf_adds(out, "\"/>");
}

static void item_atom_category(struct fw_buf *out, const char *prefix, struct fw_str term, struct fw_str label)
{
	fw_buf_addf(out, "<category scheme=\"http://www.google.com/reader/\" term=\"%s", prefix);
	fw_xml_escape(out, term, FW_XML_KEEP);
	fw_buf_adds(out, "\" label=\"");
	fw_xml_escape(out, label, FW_XML_KEEP);
	fw_buf_adds(out, "\"/>");
}

static void item_atom_state(struct fw_buf *out, const char *name)
{
	item_atom_category(out, GREADER_STATE, fw_str(name), fw_str(name));
}

static void item_atom_enclosure(struct greader_writer *w, struct fw_str url, struct fw_str type, int64_t bytes)
{
	(void)bytes;
	item_atom_link(&w->rd->p.out, "enclosure", type, url);
}

static void item_atom_source(struct fw_buf *out, const struct reader_feed *f)
{
	fw_buf_addf(out, "<source gr:stream-id=\"feed/%lld\"><id>tag:google.com,2005:reader/feed/%lld</id>",
		(long long)f->id, (long long)f->id);
	item_atom_element(out, "title", "text", f->title.len ? f->title : f->url);
	item_atom_link(out, "alternate", FW_STR("text/html"), f->home);
	fw_buf_adds(out, "</source>");
}

static void item_atom(struct greader_writer *w, const struct fw_stream_entry *se)
{
	const struct fw_entry_row *e = se->entry;
	struct reader_feed f = item_feed(w, e);
	struct fw_buf *out = &w->rd->p.out;

	fw_buf_addf(out, "<entry gr:crawl-timestamp-msec=\"%lld\"><id>" GREADER_ITEM "%016llx</id>",
		(long long)e->seen_ms, (unsigned long long)e->id);
	item_atom_state(out, "reading-list");
	item_atom_state(out, se->read ? "read" : "fresh"); /* newsboat's words for the state */
	if (se->starred)
		item_atom_state(out, "starred");
	if (f.folder.len)
		item_atom_category(out, GREADER_LABEL, f.folder, f.folder);
	for (size_t i = 0; i < se->label_n; i++) {
		struct fw_str name = item_label_name(w, se->label_id[i]);

		if (name.len && !fw_str_eq(name, f.folder))
			item_atom_category(out, GREADER_LABEL, name, name);
	}
	item_atom_element(out, "title", "text", e->title);
	item_atom_time(out, "published", reader_published_ms(e));
	item_atom_time(out, "updated", item_updated_ms(e));
	item_atom_link(out, "alternate", FW_STR("text/html"), e->url);
	item_enclosures(w, e, item_atom_enclosure);
	fw_buf_adds(out, "<author>");
	item_atom_element(out, "name", NULL, e->author.len ? e->author : f.title.len ? f.title : f.url);
	fw_buf_adds(out, "</author>");
	item_atom_element(out, "content", "html", fw_buf_str(&w->html));
	item_atom_source(out, &f);
	fw_buf_adds(out, "</entry>\n");
}

void greader_item_add(struct greader_writer *w, const struct fw_stream_entry *e)
{
	reader_html(w->rd, e->entry, &w->html);
	if (w->atom)
		item_atom(w, e);
	else
		item_json(w, e);
}

void greader_atom_begin(struct greader_writer *w, struct fw_str id, struct fw_str title)
{
	struct fw_buf *out = &w->rd->p.out;

	fw_buf_adds(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\" "
		"xmlns:gr=\"http://www.google.com/schemas/reader/atom/\">\n<id>tag:google.com,2005:reader/");
	fw_xml_escape(out, id, FW_XML_TEXT);
	fw_buf_adds(out, "</id>");
	item_atom_element(out, "title", "text", title);
	fw_buf_adds(out, "\n");
}

void greader_atom_end(struct greader_writer *w, int64_t updated_ms, int64_t next_id)
{
	struct fw_buf *out = &w->rd->p.out;

	if (next_id)
		fw_buf_addf(out, "<gr:continuation>%lld</gr:continuation>", (long long)next_id);
	item_atom_time(out, "updated", updated_ms);
	fw_buf_adds(out, "</feed>\n");
}
