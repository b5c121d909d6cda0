/* SPDX-License-Identifier: ISC */
/* Atom 1.0 (RFC 4287). */
#include "base/clock.h"
#include "base/xml.h"
#include "engine/out/feed_item.h"

static void atom_time(struct fw_buf *out, int indent, const char *name, int64_t at_ms)
{
	char text[FW_RFC3339_MAX];

	feed_xml_element(out, indent, name, fw_str(fw_rfc3339(text, at_ms)));
}

static void atom_link(struct fw_buf *out, int indent, const char *rel, const char *type, struct fw_str href)
{
	if (!href.len)
		return;
	fw_buf_addf(out, "%*s<link", indent, "");
	feed_xml_attribute(out, "rel", fw_str(rel));
	feed_xml_attribute(out, "type", fw_str(type));
	feed_xml_attribute(out, "href", href);
	fw_buf_adds(out, "/>\n");
}

/* A text construct; also an empty one. */
static void atom_text(struct fw_buf *out, int indent, const char *name, const char *type, struct fw_str text)
{
	fw_buf_addf(out, "%*s<%s", indent, "", name);
	feed_xml_attribute(out, "type", fw_str(type));
	fw_buf_addc(out, '>');
	fw_xml_escape(out, text, FW_XML_TEXT);
	fw_buf_addf(out, "</%s>\n", name);
}

static void atom_author(struct fw_buf *out, int indent, const struct fw_person *p)
{
	fw_buf_addf(out, "%*s<author>\n", indent, "");
	feed_xml_element(out, indent + 2, "name", p->name);
	feed_xml_element(out, indent + 2, "uri", p->url);
	feed_xml_element(out, indent + 2, "email", p->email);
	fw_buf_addf(out, "%*s</author>\n", indent, "");
}

static void atom_category(struct fw_buf *out, const struct fw_category *c)
{
	fw_buf_adds(out, "    <category");
	feed_xml_attribute(out, "term", c->term);
	feed_xml_attribute(out, "scheme", c->scheme);
	feed_xml_attribute(out, "label", c->label);
	fw_buf_adds(out, "/>\n");
}

static void atom_enclosure(struct fw_buf *out, const struct fw_attachment *t)
{
	fw_buf_adds(out, "    <link rel=\"enclosure\"");
	feed_xml_attribute(out, "type", t->mime_type);
	if (t->size_bytes != FW_NO_NUMBER)
		fw_buf_addf(out, " length=\"%lld\"", (long long)t->size_bytes);
	feed_xml_attribute(out, "title", t->title);
	feed_xml_attribute(out, "href", t->url);
	fw_buf_adds(out, "/>\n");
}

/* The feed that the entry is from (section 4.2.11). */
static void atom_source(struct fw_buf *out, const struct feed_item *i)
{
	if (!i->source_url.len)
		return;
	fw_buf_adds(out, "    <source>\n");
	feed_xml_element(out, 6, "id", i->source_url);
	atom_text(out, 6, "title", "text", i->source_title.len ? i->source_title : i->source_url);
	atom_time(out, 6, "updated", i->updated_ms);
	atom_link(out, 6, "self", NULL, i->source_url);
	fw_buf_adds(out, "    </source>\n");
}

/*
 * An entry without a content needs a link to it (section 4.1.1.1). One without both has its summary
 * as content, because an empty content would hide the summary from readers.
 */
static void atom_content(struct fw_buf *out, const struct feed_item *i)
{
	bool has = i->html.len || i->text.len;

	if (i->summary.len && (has || i->url.len))
		atom_text(out, 4, "summary", "text", i->summary);
	if (i->html.len)
		atom_text(out, 4, "content", "html", i->html);
	else if (i->text.len || !i->url.len)
		atom_text(out, 4, "content", "text", has ? i->text : i->summary);
}

void feed_atom_item(struct fw_buf *out, const struct feed_item *i)
{
	fw_buf_adds(out, "  <entry");
	feed_xml_attribute(out, "xml:lang", i->language);
	fw_buf_adds(out, ">\n");
	feed_xml_element(out, 4, "id", i->id);
	atom_text(out, 4, "title", "text", i->title);
	atom_link(out, 4, "alternate", NULL, i->url);
	atom_link(out, 4, "related", NULL, i->external_url);
	for (const struct fw_attachment *t = i->attachments; t; t = t->next)
		atom_enclosure(out, t);
	if (i->published_ms != FW_NO_DATE)
		atom_time(out, 4, "published", i->published_ms);
	atom_time(out, 4, "updated", i->updated_ms);
	for (const struct fw_person *p = i->authors; p; p = p->next)
		atom_author(out, 4, p);
	for (const struct fw_category *c = i->categories; c; c = c->next)
		atom_category(out, c);
	atom_source(out, i);
	atom_content(out, i);
	fw_buf_adds(out, "  </entry>\n");
}

/* The feed has an author, for the entries that name none (section 4.1.1). */
void feed_atom_document(struct fw_buf *out, const struct fw_feed_out_head *h, int64_t updated_ms, struct fw_str items)
{
	const struct fw_person author = {.name = h->title};

	fw_buf_adds(out, "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\"");
	feed_xml_attribute(out, "xml:lang", feed_language(h->language));
	fw_buf_adds(out, ">\n");
	feed_xml_element(out, 2, "id", h->id);
	atom_text(out, 2, "title", "text", h->title);
	feed_xml_element(out, 2, "subtitle", h->description);
	atom_time(out, 2, "updated", updated_ms);
	atom_link(out, 2, "self", "application/atom+xml", h->self_url);
	atom_link(out, 2, "alternate", "text/html", h->home_url);
	atom_link(out, 2, "hub", NULL, h->hub_url);
	feed_xml_element(out, 2, "icon", h->icon);
	atom_author(out, 2, &author);
	fw_buf_addf(out, "  <generator version=\"%s\">" FEED_GENERATOR "</generator>\n", fw_version());
	fw_buf_addstr(out, items);
	fw_buf_adds(out, "</feed>\n");
}
