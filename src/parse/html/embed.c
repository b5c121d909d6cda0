/* SPDX-License-Identifier: ISC */
/*
 * From a start tag to what it embeds: embed_tag_read() takes the attributes that count, in whatever
 * element or custom element they are; service_find() looks for the player's URL in RULES, which
 * gives the service and the page with the same content. A new player is a row there.
 *
 * All callers see the same embeds, because all use fw_html_embed_read(): the sanitiser, the list in
 * the JSON output, and fw_html_all_removed(). A URL is not trusted: an id has no byte that could
 * end one, and an address is absolute, http or https, without controls. Quick checks of bytes
 * precede the tokenizer, as most contents embed nothing.
 */
#include "base/url.h"
#include "base/utf8.h"
#include "parse/charset/scan.h"
#include "parse/html/embed.h"
#include "parse/html/text.h"
#include "parse/html/value.h"
#include "parse/html/write.h"

#define LISTED_URL_MAX 2048  /* a longer URL is not listed, but still becomes a link */
#define LISTED_TITLE_MAX 512 /* bytes of a listed title */
#define LABEL_MAX 100        /* bytes of a URL used as a title */
#define FALLBACK_MAX 4096    /* bytes inside an <iframe> that are searched for the page */

/* ---- services -------------------------------------------------------------------------------- */

enum embed_page {
	PAGE_NONE,    /* only the player's URL is known */
	PAGE_ID,      /* page and an id of letters, digits, '-' and '_' */
	PAGE_ID_HASH, /* the same, with the key of an unlisted video, if any */
	PAGE_PATH,    /* page and a path */
	PAGE_URI,     /* page and the parts of "service:kind:id" */
	PAGE_URL,     /* a URL, used if its host is the one in page */
	/* page is a path on the player's host, followed by an id of at least 22 characters */
	PAGE_HERE,
};

#define YOUTUBE_VIDEO "https://www.youtube.com/watch?v="
#define YOUTUBE_LIST "https://www.youtube.com/playlist?list="
#define DAILYMOTION_VIDEO "https://www.dailymotion.com/video/"

/* The first rule that yields a page wins; if none does, the first that matches. */
static const struct service_rule {
	const char *service; /* NULL: an advertisement or a counter */
	const char *host;    /* and its subdomains; NULL: any */
	const char *path;    /* prefix of the path; the id follows, unless ... */
	const char *query;   /* ... it is this parameter's value */
	enum embed_page kind;
	const char *page, *end; /* the text before and after the id */
} RULES[] = {
	{"YouTube", "youtube.com", "/embed/videoseries", "list", PAGE_ID, YOUTUBE_LIST, ""},
	{"YouTube", "youtube.com", "/embed/live_stream", "channel", PAGE_ID, "https://www.youtube.com/channel/",
		"/live"},
	{"YouTube", "youtube.com", "/embed/", NULL, PAGE_ID, YOUTUBE_VIDEO, ""},
	{"YouTube", "youtube.com", "/embed", "list", PAGE_ID, YOUTUBE_LIST, ""},
	{"YouTube", "youtube.com", "/v/", NULL, PAGE_ID, YOUTUBE_VIDEO, ""},
	{"YouTube", "youtube.com", "/e/", NULL, PAGE_ID, YOUTUBE_VIDEO, ""},
	{"YouTube", "youtube.com", "/p/", NULL, PAGE_ID, YOUTUBE_LIST, ""},
	{"YouTube", "youtube.com", "/live/", NULL, PAGE_ID, YOUTUBE_VIDEO, ""},
	{"YouTube", "youtube.com", "/shorts/", NULL, PAGE_ID, YOUTUBE_VIDEO, ""},
	{"YouTube", "youtube.com", "/watch", "v", PAGE_ID, YOUTUBE_VIDEO, ""},
	{"YouTube", "youtu.be", "/", NULL, PAGE_ID, YOUTUBE_VIDEO, ""},
	{"Vimeo", "player.vimeo.com", "/video/", NULL, PAGE_ID_HASH, "https://vimeo.com/", ""},
	{"Vimeo", "vimeo.com", "/moogaloop.swf", "clip_id", PAGE_ID, "https://vimeo.com/", ""},
	{"Dailymotion", "dailymotion.com", "/embed/video/", NULL, PAGE_ID, DAILYMOTION_VIDEO, ""},
	{"Dailymotion", "dailymotion.com", "/swf/video/", NULL, PAGE_ID, DAILYMOTION_VIDEO, ""},
	{"Dailymotion", "geo.dailymotion.com", "/player", "video", PAGE_ID, DAILYMOTION_VIDEO, ""},
	{"Twitch", "player.twitch.tv", "/", "video", PAGE_ID, "https://www.twitch.tv/videos/", ""},
	{"Twitch", "player.twitch.tv", "/", "channel", PAGE_ID, "https://www.twitch.tv/", ""},
	{"Twitch", "clips.twitch.tv", "/embed", "clip", PAGE_ID, "https://clips.twitch.tv/", ""},
	{"Internet Archive", "archive.org", "/embed/", NULL, PAGE_PATH, "https://archive.org/details/", ""},
	{"SoundCloud", "w.soundcloud.com", "/player", "url", PAGE_URL, "soundcloud.com", ""},
	{"Spotify", "open.spotify.com", "/embed-podcast/", NULL, PAGE_PATH, "https://open.spotify.com/", ""},
	{"Spotify", "open.spotify.com", "/embed/", NULL, PAGE_PATH, "https://open.spotify.com/", ""},
	{"Spotify", "open.spotify.com", "/embed", "uri", PAGE_URI, "https://open.spotify.com/", ""},
	{"Spotify", "embed.spotify.com", "/", "uri", PAGE_URI, "https://open.spotify.com/", ""},
	{"Bandcamp", "bandcamp.com", "/EmbeddedPlayer", NULL, PAGE_NONE, "bandcamp.com", ""},
	{"Facebook", "facebook.com", "/plugins/video.php", "href", PAGE_URL, "facebook.com", ""},
	{"Facebook", "facebook.com", "/plugins/post.php", "href", PAGE_URL, "facebook.com", ""},
	{"PeerTube", NULL, "/videos/embed/", NULL, PAGE_HERE, "/videos/watch/", ""},
	{NULL, "facebook.com", "/plugins/", NULL, PAGE_NONE, "", ""}, /* buttons */
	{NULL, "amazon-adsystem.com", "", NULL, PAGE_NONE, "", ""},
	{NULL, "doubleclick.net", "", NULL, PAGE_NONE, "", ""},
	{NULL, "googlesyndication.com", "", NULL, PAGE_NONE, "", ""},
	{NULL, "googletagmanager.com", "", NULL, PAGE_NONE, "", ""},
};

/* Is host that name or a subdomain? A backslash is refused: for browsers it ends the host. */
static bool host_is(struct fw_str host, const char *name)
{
	struct fw_str want = fw_str(name);
	size_t at = host.len - want.len;

	for (size_t i = 0; i < host.len; i++) {
		if (!fw_is_alnum((unsigned char)host.p[i]) && host.p[i] != '.' && host.p[i] != '-')
			return false;
	}
	if (host.len < want.len || !fw_str_ieq(fw_str_sub(host, at, host.len), want))
		return false;
	return !at || host.p[at - 1] == '.';
}

static struct fw_str query_value(struct fw_arena *a, struct fw_str query, const char *name)
{
	while (query.p) {
		struct fw_str value, key = fw_str_split(fw_str_split(query, '&', &query), '=', &value);

		if (value.len && fw_str_eq(key, fw_str(name)))
			return fw_html_percent_decode(a, value);
	}
	return FW_STR_NONE;
}

/* The id or path at the start of s. It has no byte that could end a URL or change its host. */
static struct fw_str embed_id(struct fw_str s, bool path)
{
	size_t n = 0;

	while (n < s.len && (fw_is_alnum((unsigned char)s.p[n]) || memchr(path ? "-_/." : "-_", s.p[n], path ? 4 : 2)))
		n++;
	while (n && s.p[n - 1] == '/')
		n--;
	return fw_str_sub(s, 0, n);
}

/* "spotify:track:1" is track/1. */
static struct fw_str uri_path(struct fw_arena *a, struct fw_str uri)
{
	struct fw_str rest;
	char *d;

	fw_str_split(uri, ':', &rest);
	d = rest.len ? fw_arena_dup(a, rest.p, rest.len) : NULL;
	for (size_t i = 0; d && i < rest.len; i++)
		d[i] = d[i] == ':' ? '/' : d[i];
	return embed_id((struct fw_str){d, d ? rest.len : 0}, true);
}

/* s if it is a web URL on that host, other than its API, which shows no page. */
static struct fw_str page_on(struct fw_arena *a, struct fw_str s, const char *host)
{
	struct fw_url u;

	s = fw_html_url(a, FW_STR_NONE, s, true, false);
	fw_url_split(s, &u);
	if (!s.len || fw_url_has_control(s) || !u.scheme.len || u.userinfo.p || fw_str_istarts(u.host, FW_STR("api.")))
		return FW_STR_NONE;
	return host_is(u.host, host) ? s : FW_STR_NONE;
}

static struct fw_str page_by(
	struct fw_arena *a, const struct service_rule *r, const struct fw_url *u, struct fw_str player)
{
	struct fw_str s = r->query ? query_value(a, u->query, r->query) :
				     fw_str_sub(u->path, strlen(r->path), u->path.len),
		      hash;

	if (r->kind == PAGE_NONE)
		return FW_STR_NONE;
	if (r->kind == PAGE_URL)
		return page_on(a, s, r->page);
	s = r->kind == PAGE_URI ? uri_path(a, s) : embed_id(s, r->kind == PAGE_PATH);
	if (!s.len || (r->kind == PAGE_HERE && s.len < 22))
		return FW_STR_NONE;
	if (r->kind == PAGE_HERE) {
		struct fw_str here = {player.p, (size_t)(u->path.p - player.p)};

		return fw_str(fw_arena_printf(a, "%.*s%s%.*s", FW_STR_ARG(here), r->page, FW_STR_ARG(s)));
	}
	hash = r->kind == PAGE_ID_HASH ? embed_id(query_value(a, u->query, "h"), false) : FW_STR_NONE;
	return fw_str(fw_arena_printf(
		a, "%s%.*s%s%.*s%s", r->page, FW_STR_ARG(s), hash.len ? "/" : "", FW_STR_ARG(hash), r->end));
}

/* Fill e with what is known of the player's URL. Returns the rule; NULL: none. */
static const struct service_rule *service_find(struct fw_arena *a, struct fw_html_embed *e)
{
	const struct service_rule *found = NULL;
	struct fw_url u;

	fw_url_split(e->player, &u);
	if (u.userinfo.p)
		return NULL;
	if (host_is(u.host, "youtube-nocookie.com"))
		u.host = FW_STR("youtube.com");
	for (size_t i = 0; i < FW_N(RULES); i++) {
		const struct service_rule *r = &RULES[i];
		struct fw_str page;

		if ((r->host && !host_is(u.host, r->host)) || !fw_str_starts(u.path, fw_str(r->path)))
			continue;
		found = found ? found : r;
		page = page_by(a, r, &u, e->player);
		if (page.len) {
			e->url = page;
			found = r;
			break;
		}
		if (r->host && !r->service)
			break;
	}
	/* any host: the path alone proves too little */
	if (found && found->kind == PAGE_HERE && !e->url.len)
		return NULL;
	if (found)
		e->service = fw_str(found->service);
	if (found && e->url.len && fw_str_eq(fw_str(found->page), FW_STR(YOUTUBE_VIDEO)))
		e->image = fw_str(fw_arena_printf(a, "https://i.ytimg.com/vi/%.*s/hqdefault.jpg",
			FW_STR_ARG(fw_str_sub(e->url, sizeof(YOUTUBE_VIDEO) - 1, e->url.len))));
	return found;
}

/* ---- tags ------------------------------------------------------------------------------------ */

/* Custom elements that a script turns into a player. */
static const struct custom {
	/* address and the attribute's value form the player's URL */
	const char *name, *attr, *address;
} CUSTOM[] = {
	{"amp-youtube", "data-videoid", "https://www.youtube.com/embed/"},
	{"lite-youtube", "videoid", "https://www.youtube.com/embed/"},
	{"amp-vimeo", "data-videoid", "https://player.vimeo.com/video/"},
	{"lite-vimeo", "videoid", "https://player.vimeo.com/video/"},
	{"amp-dailymotion", "data-videoid", "https://www.dailymotion.com/embed/video/"},
	{"amp-soundcloud", "data-trackid", "https://w.soundcloud.com/player/?url=https://api.soundcloud.com/tracks/"},
	{"amp-iframe", "src", NULL},
	{"amp-video", "src", NULL},
	{"amp-audio", "src", NULL},
};

static const struct custom *custom_find(const struct fw_html_token *t)
{
	struct fw_str name = {t->text.p + 1, (size_t)(t->attrs.p - t->text.p) - 1};

	for (size_t i = 0; i < FW_N(CUSTOM) && memchr(name.p, '-', FW_MIN(name.len, (size_t)5)); i++) {
		if (fw_str_ieq(name, fw_str(CUSTOM[i].name)))
			return &CUSTOM[i];
	}
	return NULL;
}

struct embed_tag {
	struct fw_str src, lazy, title, label, width, height, style, hidden;
};

/* Of two attributes with the same name the first wins. */
static void embed_tag_read(struct fw_arena *a, struct fw_str attrs, const char *src, struct embed_tag *tag)
{
	const struct {
		const char *name;
		struct fw_str *to;
	} WANTED[] = {{src, &tag->src}, {"data-src", &tag->lazy}, {"data-lazy-src", &tag->lazy},
		{"data-litespeed-src", &tag->lazy}, {"title", &tag->title}, {"aria-label", &tag->label},
		{"width", &tag->width}, {"height", &tag->height}, {"style", &tag->style}, {"hidden", &tag->hidden}};
	struct fw_str name, value;

	*tag = (struct embed_tag){.src = FW_STR_NONE};
	while (fw_html_attr(&attrs, &name, &value)) {
		for (size_t i = 0; i < FW_N(WANTED); i++) {
			if (!WANTED[i].to->p && fw_str_ieq(name, fw_str(WANTED[i].name)))
				*WANTED[i].to = fw_html_attr_decode(a, value.p ? value : FW_STR(""));
		}
	}
}

/*
 * An absolute web URL; absent if s is not one. A URL with a control is refused: controls are
 * dropped on output, which could expose what they hid.
 */
static struct fw_str web_address(struct fw_arena *a, struct fw_str base, struct fw_str s)
{
	struct fw_url u;

	s = s.len ? fw_html_url(a, base, s, true, false) : FW_STR_NONE;
	if (!s.len || fw_url_has_control(s))
		return FW_STR_NONE;
	fw_url_split(s, &u);
	if (!u.host.len)
		return FW_STR_NONE;
	return u.scheme.len ? s : fw_str(fw_arena_printf(a, "https:%.*s", FW_STR_ARG(s)));
}

/* The URL in an <object>'s parameters, which precede all other content. */
static struct fw_str param_address(struct fw_arena *a, struct fw_html_tokenizer z)
{
	static const char *const NAMES[] = {"movie", "src", "url", "filename"};
	struct fw_html_token t;

	for (fw_html_next(&z, &t); t.kind == FW_HTML_TEXT || t.kind == FW_HTML_COMMENT || t.el == FW_E_PARAM;
		fw_html_next(&z, &t)) {
		struct fw_str name = t.kind == FW_HTML_OPEN ? fw_html_attr_get(a, t.attrs, "name") : FW_STR_NONE;

		for (size_t i = 0; i < FW_N(NAMES); i++) {
			if (fw_str_ieq(name, fw_str(NAMES[i])))
				return fw_html_attr_get(a, t.attrs, "value");
		}
	}
	return FW_STR_NONE;
}

/* The next start tag of a link, or end tag with close. False: none. */
static bool link_tag(struct fw_html_tokenizer *z, struct fw_html_token *t, bool close)
{
	do
		fw_html_next(z, t);
	while (t->kind != FW_HTML_END && (t->el != FW_E_A || (t->kind == FW_HTML_OPEN) == close));
	return t->kind != FW_HTML_END;
}

/*
 * The fallback link inside an <iframe>. It often has the title; Bandcamp's is the only link to the
 * page.
 */
static struct fw_str fallback_link(struct fw_arena *a, struct fw_html_tokenizer z, struct fw_str *title)
{
	struct fw_html_token raw, open, close;
	const char *from;

	fw_html_next(&z, &raw);
	if (raw.kind != FW_HTML_RAW || !raw.text.len || raw.text.len > FALLBACK_MAX)
		return FW_STR_NONE;
	fw_html_start(&z, raw.text);
	if (!link_tag(&z, &open, false))
		return FW_STR_NONE;
	from = z.at;
	*title = fw_html_text(
		a, (struct fw_str){from, (size_t)((link_tag(&z, &close, true) ? close.text.p : z.end) - from)});
	return fw_html_attr_get(a, open.attrs, "href");
}

bool fw_html_embed_read(struct fw_arena *a, struct fw_str base, const struct fw_html_tokenizer *z,
	const struct fw_html_token *t, struct fw_html_embed *e)
{
	const struct custom *custom = t->el == FW_EL_NONE ? custom_find(t) : NULL;
	struct fw_str link = FW_STR_NONE, name = FW_STR_NONE;
	const struct service_rule *rule;
	struct embed_tag tag;

	*e = (struct fw_html_embed){.next = NULL};
	if (!custom && t->el != FW_E_IFRAME && t->el != FW_E_EMBED && t->el != FW_E_OBJECT)
		return false;
	embed_tag_read(a, t->attrs, custom ? custom->attr : t->el == FW_E_OBJECT ? "data" : "src", &tag);
	if (tag.hidden.p || fw_html_hidden(tag.width, tag.height, tag.style, 2))
		return false;
	if (custom && custom->address) {
		tag.src = embed_id(tag.src, false);
		tag.src = tag.src.len ? fw_str(fw_arena_printf(a, "%s%.*s", custom->address, FW_STR_ARG(tag.src))) :
					FW_STR_NONE;
	} else if (t->el == FW_E_OBJECT && !tag.src.len) {
		tag.src = param_address(a, *z);
	}
	e->player = web_address(a, base, tag.src);
	if (!e->player.len)
		e->player = web_address(a, base, tag.lazy);
	if (!e->player.len)
		return false;
	rule = service_find(a, e);
	if (rule && !rule->service)
		return false;
	if (t->el == FW_E_IFRAME)
		link = fallback_link(a, *z, &name);
	if (rule && rule->kind == PAGE_NONE)
		e->url = page_on(a, link, rule->page);
	e->url = e->url.len ? e->url : e->player;
	e->title = fw_str_trim(tag.title);
	e->title = e->title.len ? e->title : fw_str_trim(tag.label);
	e->title = e->title.len ? e->title : name.len ? name : FW_STR_NONE;
	return true;
}

struct fw_str fw_html_embed_label(const struct fw_html_embed *e)
{
	struct fw_str s = e->url, rest;

	if (e->title.len)
		return e->title;
	if (e->service.len)
		return e->service;
	s = fw_str_split(fw_str_split(s, '#', &rest), '?', &rest);
	s = fw_str_sub(s, (size_t)(fw_str_find(s, FW_STR("//")) - s.p) + 2, s.len);
	return fw_str_sub(s, 0, fw_utf8_cut(s.p, s.len, LABEL_MAX));
}

/* ---- the list -------------------------------------------------------------------------------- */

/* Does the '<' before p start a tag that may embed something? */
static inline bool embeds_at(const char *p, const char *end)
{
	static const char *const TAGS[] = {"iframe", "object", "embed", "amp-", "lite-"};
	static const char THIRD[32] = {
		['i' & 31] = 'r', ['o' & 31] = 'j', ['e' & 31] = 'b', ['a' & 31] = 'p', ['l' & 31] = 't'};

	if (end - p < 6 || (p[2] | 32) != THIRD[*p & 31])
		return false;
	for (size_t i = 0; i < FW_N(TAGS); i++) {
		if (fw_str_istarts((struct fw_str){p, (size_t)(end - p)}, fw_str(TAGS[i])))
			return true;
	}
	return false;
}

/* A quick check: most contents have no tag that embeds. */
static bool may_embed(struct fw_str html)
{
	const char *p = html.p, *end = html.p + html.len;

#ifdef __SSE2__
	for (; end - p >= 16; p += 16) {
		for (unsigned m = scan_bits(scan_eq(scan_load(p), '<')); m; m &= m - 1) {
			if (embeds_at(p + scan_first(m) + 1, end))
				return true;
		}
	}
#endif
	for (; p < end; p++) {
		if (*p == '<' && embeds_at(p + 1, end))
			return true;
	}
	return false;
}

static bool embed_list_has(const struct fw_html_embed *list, struct fw_str url)
{
	while (list && !fw_str_eq(list->url, url))
		list = list->next;
	return list != NULL;
}

struct fw_html_embed *fw_html_embeds(struct fw_arena *a, struct fw_str html, struct fw_str base)
{
	struct fw_html_embed *list = NULL, **at = &list, e;
	struct fw_html_tokenizer z;
	struct fw_html_token t;
	size_t n = 0;

	if (!html.len || !may_embed(html))
		return NULL;
	fw_html_start(&z, html);
	for (fw_html_next(&z, &t); t.kind != FW_HTML_END && n < FW_HTML_EMBEDS_MAX; fw_html_next(&z, &t)) {
		if (t.kind != FW_HTML_OPEN || fw_el_flags(t.el) & FW_EL_KEEP)
			continue;
		if (fw_html_embed_read(a, base, &z, &t, &e) && e.url.len <= LISTED_URL_MAX &&
			e.player.len <= LISTED_URL_MAX && !embed_list_has(list, e.url)) {
			e.title.len = fw_utf8_cut(e.title.p, e.title.len, LISTED_TITLE_MAX);
			*at = fw_arena_alloc(a, sizeof(e));
			if (!*at)
				return NULL;
			**at = e;
			at = &(*at)->next;
			n++;
		}
		if (fw_el_flags(t.el) & FW_EL_DROP)
			fw_html_skip(&z, &t);
	}
	return list;
}

/* ---- media and names ------------------------------------------------------------------------- */

static bool has_address(struct fw_arena *a, struct fw_str attrs, bool data_images)
{
	static const char *const NAMES[] = {"src", "data-src", "data-lazy-src", "data-original"};

	for (size_t i = 0; i < FW_N(NAMES); i++) {
		if (fw_html_is_media(fw_html_attr_get(a, attrs, NAMES[i]), data_images && !i))
			return true;
	}
	return false;
}

bool fw_html_plays(
	struct fw_arena *a, const struct fw_html_tokenizer *z, const struct fw_html_token *t, bool data_images)
{
	struct fw_html_tokenizer ahead = *z;
	struct fw_html_token in;

	if (has_address(a, t->attrs, data_images))
		return true;
	for (fw_html_next(&ahead, &in);
		in.kind == FW_HTML_TEXT || in.kind == FW_HTML_COMMENT || in.el == FW_E_SOURCE || in.el == FW_E_TRACK;
		fw_html_next(&ahead, &in)) {
		if (in.kind == FW_HTML_OPEN && in.el == FW_E_SOURCE && has_address(a, in.attrs, data_images))
			return true;
	}
	return false;
}

struct fw_str fw_html_svg_name(struct fw_arena *a, const struct fw_html_tokenizer *z, const struct fw_html_token *t)
{
	struct fw_html_tokenizer ahead = *z;
	struct fw_html_token in;
	struct fw_str name = fw_str_trim(fw_html_attr_get(a, t->attrs, "aria-label"));

	if (fw_str_ieq(fw_html_attr_get(a, t->attrs, "aria-hidden"), FW_STR("true")))
		return FW_STR_NONE;
	if (name.len)
		return name;
	do
		fw_html_next(&ahead, &in);
	while (in.kind == FW_HTML_COMMENT || (in.kind == FW_HTML_TEXT && !fw_str_trim(in.text).len));
	if (t->text.p[t->text.len - 2] == '/' || in.kind != FW_HTML_OPEN || in.el != FW_E_TITLE)
		return FW_STR_NONE;
	fw_html_next(&ahead, &in);
	return fw_html_text(a, in.text);
}

/* ---- what stays visible ---------------------------------------------------------------------- */

/* Only white space, including no-break spaces in any notation? */
static bool text_is_blank(struct fw_str s)
{
	static const char *const SPACES[] = {"\xc2\xa0", "&nbsp;", "&#160;", "&#xa0;", "&#xA0;"};

	for (s = fw_str_trim(s); s.len; s = fw_str_trim(s)) {
		size_t i = s.p[0] == '&' || s.p[0] == SPACES[0][0] ? 0 : FW_N(SPACES);

		while (i < FW_N(SPACES) && !fw_str_starts(s, fw_str(SPACES[i])))
			i++;
		if (i == FW_N(SPACES))
			return false;
		s = fw_str_sub(s, strlen(SPACES[i]), s.len);
	}
	return true;
}

/* Elements that may be visible by their start tag alone. */
static bool is_thing(enum fw_el el)
{
	return el == FW_E_IMG || el == FW_E_VIDEO || el == FW_E_AUDIO || !(fw_el_flags(el) & FW_EL_KEEP);
}

static bool tag_shows(
	struct fw_arena *a, struct fw_str base, const struct fw_html_tokenizer *z, const struct fw_html_token *t)
{
	struct fw_html_embed e;

	switch (t->el) {
	case FW_E_IMG:
	case FW_E_IMAGE:
		return has_address(a, t->attrs, false) || fw_html_attr_get(a, t->attrs, "srcset").len ||
			fw_html_attr_get(a, t->attrs, "alt").len;
	case FW_E_VIDEO:
	case FW_E_AUDIO:
		return fw_html_plays(a, z, t, false) || fw_html_attr_get(a, t->attrs, "poster").len;
	case FW_E_SVG:
		return fw_html_svg_name(a, z, t).len > 0;
	default:
		return fw_html_embed_read(a, base, z, t, &e);
	}
}

/* Does the tag at p leave the text after it visible? Knows only the most common tags. */
static bool is_harmless(const char *p)
{
	static const char *const TAGS[] = {"<div", "<spa", "<str"};

	for (size_t i = 0; i < FW_N(TAGS); i++) {
		if (memcmp(p, TAGS[i], 4) == 0)
			return true;
	}
	return memchr("/abcfghlpu", p[1] | 32, 10) != NULL;
}

/*
 * Text or a picture after a few harmless tags, as in most contents. Ten times faster than the
 * tokenizer. A '>' in an attribute may be taken for the tag's end; the result may then be true by
 * mistake.
 */
static bool begins_with_text(struct fw_str s)
{
	const char *p = s.p, *end = s.p + s.len, *tag;

	for (int i = 0; i < 5; i++) {
		while (p < end && fw_is_space((unsigned char)*p))
			p++;
		if (end - p < 4)
			return false;
		if (*p != '<')
			return *p != '&' && *p != '\xc2';
		tag = p;
		p = memchr(p, '>', (size_t)(end - p));
		if (p && memcmp(tag, "<img", 4) == 0)
			return fw_str_find((struct fw_str){tag, (size_t)(p - tag)}, FW_STR(" src=\"http")) != NULL;
		if (!p || !is_harmless(tag) || (p[-1] != '"' && memchr(tag, '=', (size_t)(p - tag))))
			return false;
		p++;
	}
	return false;
}

bool fw_html_all_removed(struct fw_str html, struct fw_str base)
{
	struct fw_html_tokenizer z;
	struct fw_html_token t;
	struct fw_arena a;
	bool removed = false, shown = false;

	html = fw_str_trim(html);
	if (!html.len || begins_with_text(html))
		return false;
	fw_arena_init(&a, 0);
	fw_html_start(&z, html);
	for (fw_html_next(&z, &t); t.kind != FW_HTML_END && !shown; fw_html_next(&z, &t)) {
		unsigned flags = fw_el_flags(t.el);

		if (t.kind == FW_HTML_TEXT || (t.kind == FW_HTML_RAW && !(flags & FW_EL_DROP)))
			shown = !text_is_blank(t.text);
		if (t.kind != FW_HTML_OPEN || !is_thing(t.el))
			continue;
		shown = tag_shows(&a, base, &z, &t);
		removed |= t.el != FW_E_HTML && t.el != FW_E_HEAD && t.el != FW_E_BODY;
		if (flags & FW_EL_DROP)
			fw_html_skip(&z, &t);
	}
	removed = removed && !shown && !a.failed;
	fw_arena_finish(&a);
	return removed;
}
