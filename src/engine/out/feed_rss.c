/* SPDX-License-Identifier: ISC */
/*
 * RSS 2.0, with what it lacks from other name spaces: dc:creator (author is an address of mail),
 * content:encoded (description is the summary), atom:updated, and media:content for the second and
 * further enclosures, of which an item has at most one.
 */
#include "base/clock.h"
#include "base/url.h"
#include "base/xml.h"
#include "engine/out/feed_item.h"

static void rss_time(struct fw_buf *out, int indent, const char *name, int64_t at_ms)
{
	char text[FW_RFC3339_MAX];

	feed_xml_element(out, indent, name, fw_str(fw_http_date(text, at_ms)));
}

/*
 * Plain text, where RSS has HTML: it is escaped for HTML, and then for XML. line: put at the end of
 * each line of text.
 */
static void rss_plain(struct fw_buf *out, int indent, const char *name, const char *line, struct fw_str text)
{
	struct fw_buf html = FW_BUF_INIT(0);
	struct fw_str rest = text;

	while (rest.p) {
		fw_xml_escape(&html, fw_str_split(rest, '\n', &rest), FW_XML_TEXT);
		if (rest.p)
			fw_buf_addf(&html, "%s\n", line);
	}
	feed_xml_element(out, indent, name, fw_buf_str(&html));
	out->rc = out->rc ? out->rc : html.rc;
	fw_buf_finish(&html);
}

static bool rss_is_ascii(struct fw_str s)
{
	size_t i = 0;

	while (i < s.len && (unsigned char)s.p[i] < 0x80)
		i++;
	return i == s.len;
}

/* Addresses in RSS are URIs. */
static void rss_link_attribute(struct fw_buf *out, const char *name, struct fw_str iri)
{
	struct fw_buf uri = FW_BUF_INIT(0);

	feed_uri(&uri, iri);
	feed_xml_attribute(out, name, fw_buf_str(&uri));
	out->rc = out->rc ? out->rc : uri.rc;
	fw_buf_finish(&uri);
}

static void rss_link_element(struct fw_buf *out, int indent, const char *name, struct fw_str iri)
{
	struct fw_buf uri = FW_BUF_INIT(0);

	feed_uri(&uri, iri);
	feed_xml_element(out, indent, name, fw_buf_str(&uri));
	out->rc = out->rc ? out->rc : uri.rc;
	fw_buf_finish(&uri);
}

/* An id stays the text that readers know; as a permanent link it would have to be a URI. */
static void rss_guid(struct fw_buf *out, const struct feed_item *i)
{
	bool link = fw_is_http(i->id) && fw_str_eq(i->id, i->url) && rss_is_ascii(i->id);

	fw_buf_addf(out, "      <guid isPermaLink=\"%s\">", link ? "true" : "false");
	fw_xml_escape(out, i->id, FW_XML_TEXT);
	fw_buf_adds(out, "</guid>\n");
}

static struct fw_str rss_type(const struct fw_attachment *t)
{
	return t->mime_type.len ? t->mime_type : FW_STR("application/octet-stream");
}

static void rss_enclosures(struct fw_buf *out, const struct fw_attachment *t)
{
	if (!t)
		return;
	fw_buf_adds(out, "      <enclosure");
	rss_link_attribute(out, "url", t->url);
	/* the length is required; 0 means unknown */
	fw_buf_addf(out, " length=\"%lld\"", t->size_bytes != FW_NO_NUMBER ? (long long)t->size_bytes : 0LL);
	feed_xml_attribute(out, "type", rss_type(t));
	fw_buf_adds(out, "/>\n");
	for (t = t->next; t; t = t->next) {
		fw_buf_adds(out, "      <media:content");
		rss_link_attribute(out, "url", t->url);
		if (t->size_bytes != FW_NO_NUMBER)
			fw_buf_addf(out, " fileSize=\"%lld\"", (long long)t->size_bytes);
		feed_xml_attribute(out, "type", t->mime_type);
		fw_buf_adds(out, "/>\n");
	}
}

static void rss_category(struct fw_buf *out, const struct fw_category *c)
{
	fw_buf_adds(out, "      <category");
	feed_xml_attribute(out, "domain", c->scheme);
	fw_buf_addc(out, '>');
	fw_xml_escape(out, c->term, FW_XML_TEXT);
	fw_buf_adds(out, "</category>\n");
}

static void rss_source(struct fw_buf *out, const struct feed_item *i)
{
	if (!i->source_url.len)
		return;
	fw_buf_adds(out, "      <source");
	rss_link_attribute(out, "url", i->source_url);
	fw_buf_addc(out, '>');
	fw_xml_escape(out, i->source_title.len ? i->source_title : i->source_url, FW_XML_TEXT);
	fw_buf_adds(out, "</source>\n");
}

/*
 * Some readers take a title for plain text, others for HTML. So only what would be markup is
 * escaped for HTML: "a < b & c" is the same for both.
 */
static void rss_title(struct fw_buf *out, int indent, struct fw_str title)
{
	struct fw_buf html = FW_BUF_INIT(0);

	for (size_t i = 0; i < title.len; i++) {
		int next = i + 1 < title.len ? (unsigned char)title.p[i + 1] : ' ';

		if (title.p[i] == '&' && (fw_is_alnum(next) || next == '#'))
			fw_buf_adds(&html, "&amp;");
		else if (title.p[i] == '<' && (fw_is_alpha(next) || strchr("/!?", next)))
			fw_buf_adds(&html, "&lt;");
		else
			fw_buf_addc(&html, title.p[i]);
	}
	feed_xml_element(out, indent, "title", fw_buf_str(&html));
	out->rc = out->rc ? out->rc : html.rc;
	fw_buf_finish(&html);
}

/*
 * The description is the summary, and HTML is content:encoded, so that readers do not take one for
 * the other. An item needs a title or a description: an untitled one has its HTML there, and one
 * without any text gets a dash for a title.
 */
static void rss_texts(struct fw_buf *out, const struct feed_item *i)
{
	struct fw_str plain = i->summary.len ? i->summary : i->text;

	if (i->title.len || (!plain.len && !i->html.len))
		rss_title(out, 6, i->title.len ? i->title : FW_STR("-"));
	rss_plain(out, 6, "description", i->summary.len ? "" : "<br>", plain);
	if (i->html.len)
		feed_xml_element(out, 6, i->title.len || plain.len ? "content:encoded" : "description", i->html);
	else if (i->summary.len && i->text.len)
		rss_plain(out, 6, "content:encoded", "<br>", i->text);
}

void feed_rss_item(struct fw_buf *out, const struct feed_item *i)
{
	char text[FW_RFC3339_MAX];

	fw_buf_adds(out, "    <item>\n");
	rss_texts(out, i);
	rss_link_element(out, 6, "link", i->url);
	rss_guid(out, i);
	rss_time(out, 6, "pubDate", i->published_ms != FW_NO_DATE ? i->published_ms : i->updated_ms);
	if (i->updated_known)
		feed_xml_element(out, 6, "atom:updated", fw_str(fw_rfc3339(text, i->updated_ms)));
	for (const struct fw_person *p = i->authors; p; p = p->next)
		feed_xml_element(out, 6, "dc:creator", p->name);
	feed_xml_element(out, 6, "dc:language", i->language);
	for (const struct fw_category *c = i->categories; c; c = c->next)
		rss_category(out, c);
	rss_enclosures(out, i->attachments);
	rss_source(out, i);
	fw_buf_adds(out, "    </item>\n");
}

static void rss_link(struct fw_buf *out, const char *rel, const char *type, struct fw_str href)
{
	if (!href.len)
		return;
	fw_buf_adds(out, "    <atom:link");
	feed_xml_attribute(out, "rel", fw_str(rel));
	feed_xml_attribute(out, "type", fw_str(type));
	rss_link_attribute(out, "href", href);
	fw_buf_adds(out, "/>\n");
}

static void rss_image(struct fw_buf *out, const struct fw_feed_out_head *h, struct fw_str link)
{
	if (!fw_is_http(h->icon))
		return;
	fw_buf_adds(out, "    <image>\n");
	rss_link_element(out, 6, "url", h->icon);
	rss_title(out, 6, h->title);
	rss_link_element(out, 6, "link", link);
	fw_buf_adds(out, "    </image>\n");
}

void feed_rss_document(struct fw_buf *out, const struct fw_feed_out_head *h, int64_t updated_ms, struct fw_str items)
{
	struct fw_str link = h->home_url.len ? h->home_url :
		h->self_url.len              ? h->self_url :
					       FW_STR("http://localhost/");

	fw_buf_adds(out,
		"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
		"<rss version=\"2.0\" xmlns:atom=\"http://www.w3.org/2005/Atom\""
		" xmlns:content=\"http://purl.org/rss/1.0/modules/content/\""
		" xmlns:dc=\"http://purl.org/dc/elements/1.1/\""
		" xmlns:media=\"http://search.yahoo.com/mrss/\">\n  <channel>\n");
	rss_title(out, 4, h->title);
	rss_link_element(out, 4, "link", link);
	rss_plain(out, 4, "description", "", h->description.len ? h->description : h->title);
	feed_xml_element(out, 4, "language", feed_language(h->language));
	if (updated_ms)
		rss_time(out, 4, "lastBuildDate", updated_ms);
	fw_buf_addf(out, "    <generator>" FEED_GENERATOR " %s</generator>\n", fw_version());
	rss_link(out, "self", "application/rss+xml", h->self_url);
	rss_link(out, "hub", NULL, h->hub_url);
	rss_image(out, h, link);
	fw_buf_addstr(out, items);
	fw_buf_adds(out, "  </channel>\n</rss>\n");
}
