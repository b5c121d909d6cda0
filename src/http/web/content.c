/* SPDX-License-Identifier: ISC */
/*
 * The page: the content of an entry. It is sanitised HTML, as the sanitiser writes it: well-formed
 * tags, each value in quotes, "<" in text escaped. So its tags are found without a parser, and
 * rewritten one by one:
 *  - colours and styles are dropped: the page has its own, a dark one too, and its policy forbids
 *    styles anyway;
 *  - pictures are loaded when they come near the window, sounds when they are played;
 *  - the highest heading is one below that of the entry;
 *  - what would be loaded from the page's own host is dropped: a content must not send requests in
 *    the reader's name;
 *  - links open another tab, those within the content excepted;
 *  - the link that stands for a known player gets its address, for the script.
 */
#include <jansson.h>

#include "base/url.h"
#include "base/xml.h"
#include "http/web/web.h"

#define CONTENT_ID_MAX 20 /* of a video */

struct content {
	struct fw_buf *out;
	struct fw_str own_host; /* the page's, with its port */
	int deeper;             /* headings are so many levels below what they say; may be negative */
	json_t *doc, *embeds;   /* of the entry's other members; NULL: none */
};

/* ---- players --------------------------------------------------------------------------------- */

/* The characters of an id at the start of s. */
static struct fw_str content_video_id(struct fw_str s)
{
	size_t n = 0;

	while (n < s.len && (fw_is_alnum((unsigned char)s.p[n]) || s.p[n] == '-' || s.p[n] == '_'))
		n++;
	return fw_str_sub(s, 0, n <= CONTENT_ID_MAX ? n : 0);
}

/* What the policy allows as a frame. False: no known player. */
static bool content_player(struct fw_str url, struct fw_buf *out)
{
	static const struct {
		struct fw_str page;
		const char *player;
	} KNOWN[] = {
		{{"https://www.youtube.com/watch?v=", 32}, "https://www.youtube-nocookie.com/embed/"},
		{{"https://vimeo.com/", 18}, "https://player.vimeo.com/video/"},
	};

	for (size_t i = 0; i < FW_N(KNOWN); i++) {
		struct fw_str id = fw_str_starts(url, KNOWN[i].page) ?
			content_video_id(fw_str_sub(url, KNOWN[i].page.len, url.len)) :
			FW_STR_NONE;

		if (!id.len)
			continue;
		fw_buf_addf(out, "%s%.*s?autoplay=1", KNOWN[i].player, FW_STR_ARG(id));
		return true;
	}
	return false;
}

/* For a link to a known player, add the attributes that reader.js reads. */
static void content_player_add(struct content *c, struct fw_str href)
{
	struct fw_buf written = FW_BUF_INIT(0), player = FW_BUF_INIT(0);
	const json_t *one;
	size_t i;

	json_array_foreach(c->embeds, i, one)
	{
		struct fw_str url = http_json_text(one, "url");

		fw_buf_reset(&written);
		fw_xml_escape(&written, url, FW_XML_KEEP);
		if (!fw_str_eq(fw_buf_str(&written), href) || !content_player(url, &player))
			continue;
		fw_buf_addf(c->out, " class=\"player\" title=\"Play it here\" data-player=\"%s\"", player.p);
		break;
	}
	fw_buf_finish(&written);
	fw_buf_finish(&player);
}

/* ---- tags ------------------------------------------------------------------------------------ */

static bool content_drops(struct fw_str name)
{
	static const struct fw_str DROP[] = {
		{"style", 5}, {"color", 5}, {"bgcolor", 7}, {"face", 4}, {"size", 4}, {"align", 5}, {"class", 5}};

	for (size_t i = 0; i < FW_N(DROP); i++) {
		if (fw_str_eq(name, DROP[i]))
			return true;
	}
	return false;
}

/* The level of a heading; 0: it is none. */
static int content_heading(struct fw_str name)
{
	return name.len == 2 && name.p[0] == 'h' && name.p[1] >= '1' && name.p[1] <= '6' ? name.p[1] - '0' : 0;
}

/* Is this address the page's own server? One that is not absolute would be. */
static bool content_url_is_own(const struct content *c, struct fw_str url)
{
	static const char *const SCHEME[] = {"http", "https"};
	struct fw_buf own = FW_BUF_INIT(0);
	bool is = !fw_url_is_absolute(url);

	for (size_t i = 0; i < FW_N(SCHEME) && !is; i++) {
		fw_buf_reset(&own);
		fw_buf_addf(&own, "%s://%.*s/", SCHEME[i], FW_STR_ARG(c->own_host));
		is = fw_url_same_origin(url, fw_buf_str(&own));
	}
	fw_buf_finish(&own);
	return is;
}

/* Does the browser load it, or one of several, by itself from the page's own server? */
static bool content_loads_own(const struct content *c, struct fw_str name, struct fw_str value)
{
	if (fw_str_eq(name, FW_STR("src")) || fw_str_eq(name, FW_STR("poster")) ||
		fw_str_eq(name, FW_STR("background")))
		return content_url_is_own(c, value);
	while (fw_str_eq(name, FW_STR("srcset")) && value.len) { /* "URL 2x, URL" */
		struct fw_str one = fw_str_split(value, ' ', &value);

		if (fw_str_find(one, FW_STR("/")) && content_url_is_own(c, one))
			return true;
	}
	return false;
}

/* The attributes of a tag, each with a space before it: those that stay. */
static void content_attributes_add(struct content *c, struct fw_str text, bool link)
{
	while (text.len) {
		struct fw_str name, value = FW_STR_NONE, whole;
		size_t n = 0;

		text = fw_str_sub(text, 1, text.len); /* the space */
		while (n < text.len && text.p[n] != '=' && text.p[n] != ' ')
			n++;
		name = fw_str_sub(text, 0, n);
		if (n < text.len && text.p[n] == '=') {
			const char *end = n + 2 <= text.len ? memchr(text.p + n + 2, '"', text.len - n - 2) : NULL;

			if (!end)
				return; /* never: each value is in quotes */
			value = fw_str_sub(text, n + 2, (size_t)(end - text.p));
			n = (size_t)(end - text.p) + 1;
		}
		whole = fw_str_sub(text, 0, n);
		text = fw_str_sub(text, n, text.len);
		if (content_drops(name) || content_loads_own(c, name, value))
			continue;
		fw_buf_addc(c->out, ' ');
		fw_buf_addstr(c->out, whole);
		if (!link || !fw_str_eq(name, FW_STR("href")) || !value.len || value.p[0] == '#')
			continue;
		fw_buf_adds(c->out, " target=\"_blank\"");
		content_player_add(c, value);
	}
}

/* A tag without its brackets: "a href=...", "/p". */
static void content_tag_add(struct content *c, struct fw_str tag)
{
	bool end = tag.len && tag.p[0] == '/';
	struct fw_str name, rest = end ? fw_str_sub(tag, 1, tag.len) : tag;
	size_t n = 0;

	while (n < rest.len && rest.p[n] != ' ')
		n++;
	name = fw_str_sub(rest, 0, n);
	fw_buf_adds(c->out, end ? "</" : "<");
	if (content_heading(name))
		fw_buf_addf(c->out, "h%d", FW_MIN(content_heading(name) + c->deeper, 6));
	else
		fw_buf_addstr(c->out, name);
	content_attributes_add(c, fw_str_sub(rest, n, rest.len), fw_str_eq(name, FW_STR("a")));
	if (!end && fw_str_eq(name, FW_STR("img")))
		fw_buf_adds(c->out, " loading=\"lazy\" decoding=\"async\" referrerpolicy=\"no-referrer\"");
	else if (!end && (fw_str_eq(name, FW_STR("video")) || fw_str_eq(name, FW_STR("audio"))))
		fw_buf_adds(c->out, " preload=\"none\"");
	fw_buf_addc(c->out, '>');
}

/* The end of the tag that starts at s: a bracket outside of quotes. */
static size_t content_tag_len(struct fw_str s)
{
	bool quoted = false;

	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] == '"')
			quoted = !quoted;
		else if (s.p[i] == '>' && !quoted)
			return i;
	}
	return s.len;
}

/* The highest level of a heading; 0: there is none. */
static int content_top_heading(struct fw_str html)
{
	int top = 0;

	while (html.len) {
		const char *at = memchr(html.p, '<', html.len);
		int level;

		if (!at)
			break;
		html = fw_str_sub(html, (size_t)(at - html.p) + 1, html.len);
		level = html.len > 2 && (html.p[2] == ' ' || html.p[2] == '>') ?
			content_heading(fw_str_sub(html, 0, 2)) :
			0;
		if (level && (!top || level < top))
			top = level;
	}
	return top;
}

void web_content_rewrite(
	struct fw_buf *out, struct fw_str html, struct fw_str extra, int heading, struct fw_str own_host)
{
	struct content c = {.out = out, .deeper = heading - content_top_heading(html), .own_host = own_host};

	if (extra.len && fw_str_find(extra, FW_STR("\"embeds\"")))
		c.doc = json_loadb(extra.p, extra.len, 0, NULL);
	c.embeds = json_object_get(json_object_get(c.doc, "_feedwheel"), "embeds");
	while (html.len) {
		const char *at = memchr(html.p, '<', html.len);
		size_t n = at ? (size_t)(at - html.p) : html.len;

		fw_buf_addstr(out, fw_str_sub(html, 0, n));
		html = fw_str_sub(html, n + 1, html.len);
		if (!at)
			break;
		n = content_tag_len(html);
		content_tag_add(&c, fw_str_sub(html, 0, n));
		html = fw_str_sub(html, n + 1, html.len);
	}
	json_decref(c.doc);
}

/* ---- the beginning as text ------------------------------------------------------------------- */

/* Does this tag end a line? Words on both sides of others belong together. */
static bool content_breaks(struct fw_str tag)
{
	int c = tag.len && tag.p[0] == '/' ? (tag.len > 1 ? tag.p[1] : 0) : tag.len ? tag.p[0] : 0;

	return c == 'p' || c == 'd' || c == 'h' || c == 'l' || c == 't' || fw_str_starts(tag, FW_STR("br"));
}

void web_content_text(struct fw_buf *out, struct fw_str html, size_t max)
{
	size_t from = out->len;
	bool space = false;

	for (size_t i = 0; i < html.len; i++) {
		size_t n = 1;

		if (html.p[i] == '<') {
			struct fw_str rest = fw_str_sub(html, i + 1, html.len);

			n = content_tag_len(rest);
			space |= content_breaks(fw_str_sub(rest, 0, n));
			i += n + 1 - 1 + (n < rest.len);
			continue;
		}
		if (fw_is_space((unsigned char)html.p[i])) {
			space = true;
			continue;
		}
		while (i + n < html.len &&
			(html.p[i] == '&' ? html.p[i + n - 1] != ';' : ((unsigned char)html.p[i + n] & 0xc0) == 0x80))
			n++; /* a reference or a character, whole */
		if (out->len - from + n > max) {
			fw_buf_adds(out, "\xe2\x80\xa6");
			return;
		}
		if (space && out->len > from)
			fw_buf_addc(out, ' ');
		space = false;
		fw_buf_addstr(out, fw_str_sub(html, i, i + n));
		i += n - 1;
	}
}
