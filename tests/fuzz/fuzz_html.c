/* SPDX-License-Identifier: ISC */
/*
 * Sanitised HTML: sanitising is idempotent, and the result contains only what the lists below
 * allow, in gumbo's tree of it (WEB-01 ... WEB-03). The lists are the test's own, written from the
 * standard and not from the sanitiser. Conversion to text and detection of markup accept any bytes.
 * The input's size selects base, flags, and whether there is a tree.
 */
#include <gumbo.h>
#include <string.h>

#include "base/str.h"
#include "base/url.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "parse/html/embed.h"
#include "parse/html/sanitize.h"
#include "parse/html/text.h"

/* ---- what is allowed ------------------------------------------------------------------------- */

/*
 * Words separated by spaces. None of these elements runs code, loads a document, submits data or
 * changes how its surroundings are parsed.
 */
static const char ELEMENTS[] = " a abbr acronym address article aside audio b bdi bdo big blockquote br caption"
			       " center cite code col colgroup dd del details dfn dir "
			       "div dl dt em figcaption figure font footer h1 h2 h3 h4 h5 h6 header hgroup hr i img"
			       " ins kbd li main mark menu nav ol p picture pre q "
			       "rp rt ruby s samp section small source span strike strong sub summary sup table tbody"
			       " td tfoot th thead time tr tt u ul var video "
			       "wbr ";
#define PREFIX "user-content-" /* of an id: no id of a page starts like this */
static const char LINKS[] = " href cite ";
static const char MEDIA[] = " src poster ";
static const char OTHERS[] = /* no URL, no code, nothing that scripts find elements by */
	" alt title width height sizes media type lang dir align valign datetime colspan"
	" rowspan span scope border cellpadding cellspacing "
	"bgcolor start reversed value open hreflang color face size clear hspace vspace controls ";
static const char STYLES[] = " background-color color direction font-style font-variant font-weight list-style-type"
			     " text-align text-decoration "
			     "text-decoration-line text-transform vertical-align white-space ";

static bool listed(const char *list, struct fw_str word)
{
	char padded[64];

	return word.len + 3 < sizeof(padded) && fw_snprintf(padded, sizeof(padded), " %.*s ", FW_STR_ARG(word)) &&
		strstr(list, padded);
}

/*
 * The scheme that a browser reads, in lower case: leading controls and spaces, and tabs and
 * newlines anywhere, are ignored. Empty: the URL is relative.
 */
static struct fw_str scheme_of(struct fw_str url, char name[16])
{
	size_t n = 0;

	while (url.len && (unsigned char)url.p[0] <= ' ')
		url = fw_str_sub(url, 1, url.len);
	for (size_t i = 0; i < url.len; i++) {
		int c = (unsigned char)url.p[i];

		if (c == '\t' || c == '\n' || c == '\r')
			continue;
		if (c == ':' && n)
			return (struct fw_str){name, n};
		if (!(n ? fw_is_alnum(c) || c == '+' || c == '-' || c == '.' : fw_is_alpha(c)))
			break;
		if (n < 15)
			name[n++] = (char)fw_lower(c);
	}
	return (struct fw_str){name, 0};
}

static void check_url(struct fw_str url, const char *schemes, bool based)
{
	char name[16];
	struct fw_str scheme = scheme_of(url, name);

	FUZZ_CHECK(scheme.len ? listed(schemes, scheme) : !based);
}

static void check_data(struct fw_str url, bool allowed)
{
	char name[16];

	if (fw_str_eq(scheme_of(url, name), FW_STR("data"))) {
		FUZZ_CHECK(allowed && url.len <= 64 * 1024 && fw_str_istarts(url, FW_STR("data:image/")));
		FUZZ_CHECK(!fw_str_istarts(url, FW_STR("data:image/svg")));
	}
}

/* A telephone number contains no code that a telephone would execute. */
static void check_tel(struct fw_str url)
{
	char name[16];

	if (fw_str_eq(scheme_of(url, name), FW_STR("tel"))) {
		FUZZ_CHECK(!memchr(url.p, '*', url.len) && !memchr(url.p, '#', url.len));
		FUZZ_CHECK(!fw_str_ifind(url, FW_STR("%23")) && !fw_str_ifind(url, FW_STR("%2a")));
	}
}

/*
 * Candidates, split as in the standard (section 4.8.4.2.1): white space ends a URL, a comma after
 * it or after its descriptor ends both.
 */
static void check_srcset(struct fw_str s, bool based)
{
	for (size_t i = 0; i < s.len;) {
		size_t from;

		while (i < s.len && (fw_is_space((unsigned char)s.p[i]) || s.p[i] == ','))
			i++;
		for (from = i; i < s.len && !fw_is_space((unsigned char)s.p[i]); i++)
			;
		FUZZ_CHECK(i > from);
		check_url(fw_str_sub(s, from, i), " http https ", based);
		if (s.p[i - 1] == ',')
			continue;
		while (i < s.len && s.p[i] != ',')
			i++;
	}
}

static void check_style(struct fw_str style)
{
	while (style.p) {
		struct fw_str value, name = fw_str_split(fw_str_split(style, ';', &style), ':', &value);

		FUZZ_CHECK(listed(STYLES, fw_str_trim(name)) && value.p);
		value = fw_str_trim(value);
		FUZZ_CHECK(!memchr(value.p, '(', value.len) || fw_str_istarts(value, FW_STR("rgb")) ||
			fw_str_istarts(value, FW_STR("hsl")));
		for (size_t i = 0; i < value.len; i++)
			FUZZ_CHECK(!memchr("\\\"'/*<>@{}!", value.p[i], 12));
	}
}

/* ---- the tree -------------------------------------------------------------------------------- */

struct oracle {
	bool based, data_images;
};

static void check_attribute(const struct oracle *o, struct fw_str el, const GumboAttribute *a)
{
	struct fw_str name = fw_str(a->name), value = fw_str(a->value);

	FUZZ_CHECK(a->attr_namespace == GUMBO_ATTR_NAMESPACE_NONE);
	if (fw_str_eq(name, FW_STR("id"))) {
		FUZZ_CHECK(fw_str_starts(value, FW_STR(PREFIX)) && !memchr(value.p, ' ', value.len));
	} else if (fw_str_eq(name, FW_STR("href")) && fw_str_starts(value, FW_STR("#" PREFIX))) {
		FUZZ_CHECK(fw_str_eq(el, FW_STR("a")));
	} else if (listed(LINKS, name)) {
		FUZZ_CHECK(!fw_str_eq(name, FW_STR("href")) || fw_str_eq(el, FW_STR("a")));
		check_url(value, " http https mailto tel magnet ", o->based);
		check_tel(value);
	} else if (listed(MEDIA, name)) {
		FUZZ_CHECK(!fw_str_eq(el, FW_STR("a")));
		check_url(value, o->data_images ? " http https data " : " http https ", o->based);
		check_data(value, o->data_images);
	} else if (fw_str_eq(name, FW_STR("srcset"))) {
		check_srcset(value, o->based);
	} else if (fw_str_eq(name, FW_STR("style"))) {
		check_style(value);
	} else if (fw_str_eq(name, FW_STR("class"))) {
		FUZZ_CHECK(fw_str_starts(value, FW_STR("language-")) && !memchr(value.p, ' ', value.len));
	} else if (fw_str_eq(name, FW_STR("rel"))) {
		FUZZ_CHECK(fw_str_eq(el, FW_STR("a")) && fw_str_eq(value, FW_STR("noopener noreferrer")));
	} else {
		FUZZ_CHECK(listed(OTHERS, name));
	}
}

/* The name as written where gumbo has no number for it (picture). */
static struct fw_str element_name(const GumboElement *e)
{
	GumboStringPiece tag = e->original_tag;

	if (e->tag != GUMBO_TAG_UNKNOWN)
		return fw_str(gumbo_normalized_tagname(e->tag));
	gumbo_tag_from_original_text(&tag);
	return (struct fw_str){tag.data, tag.length};
}

static void check_node(const struct oracle *o, const GumboNode *node, unsigned depth)
{
	const GumboElement *e = &node->v.element;
	struct fw_str el;

	FUZZ_CHECK(node->type != GUMBO_NODE_COMMENT && node->type != GUMBO_NODE_TEMPLATE && depth < 600);
	if (node->type != GUMBO_NODE_ELEMENT)
		return;
	el = element_name(e);
	FUZZ_CHECK(depth == 0 || (e->tag_namespace == GUMBO_NAMESPACE_HTML && listed(ELEMENTS, el)));
	for (unsigned i = 0; i < e->attributes.length; i++)
		check_attribute(o, el, e->attributes.data[i]);
	for (unsigned i = 0; i < e->children.length; i++)
		check_node(o, e->children.data[i], depth + 1);
}

/* The tree that a browser would build from the result. */
static void check_safe(const struct oracle *o, struct fw_str html)
{
	GumboOptions options = kGumboDefaultOptions;
	GumboOutput *tree;

	options.fragment_context = GUMBO_TAG_DIV;
	tree = gumbo_parse_with_options(&options, html.p ? html.p : "", html.len);
	check_node(o, tree->root, 0);
	gumbo_destroy_output(&options, tree);
}

static void check_sanitised(struct fw_str in, struct fw_str base, unsigned flags)
{
	struct oracle o = {.based = base.len > 0, .data_images = flags & FW_HTML_DATA_IMAGES};
	struct fw_buf once = FW_BUF_INIT(0), twice = FW_BUF_INIT(0);

	FUZZ_CHECK(fw_html_sanitize(in, base, flags, &once, NULL) == 0);
	FUZZ_CHECK(fw_html_sanitize(fw_buf_str(&once), base, flags, &twice, NULL) == 0);
	FUZZ_CHECK(fw_str_eq(fw_buf_str(&once), fw_buf_str(&twice)));
	FUZZ_CHECK(fw_utf8_valid(fw_buf_str(&once).p, once.len) == once.len);
	check_safe(&o, fw_buf_str(&once));
	fw_buf_finish(&once);
	fw_buf_finish(&twice);
}

/*
 * Listed embeds are web URLs with a host, and few. With "all removed" there is no picture and no
 * player.
 */
static void check_embeds(struct fw_arena *a, struct fw_str in, struct fw_str base)
{
	struct fw_buf out = FW_BUF_INIT(0);
	struct fw_html_tokenizer z;
	struct fw_html_token t;
	struct fw_str text;
	size_t n = 0;

	if (fw_utf8_valid(in.p, in.len) != in.len)
		return;
	for (const struct fw_html_embed *e = fw_html_embeds(a, in, base); e; e = e->next, n++) {
		check_url(e->url, " http https ", true);
		check_url(e->player, " http https ", true);
		FUZZ_CHECK(!fw_url_has_control(e->url) && !fw_url_has_control(e->player));
		FUZZ_CHECK(!e->image.len || fw_str_starts(e->image, FW_STR("https://i.ytimg.com/vi/")));
		FUZZ_CHECK(fw_html_embed_label(e).len > 0);
	}
	FUZZ_CHECK(n <= FW_HTML_EMBEDS_MAX);
	if (fw_html_all_removed(in, base)) {
		FUZZ_CHECK(fw_html_sanitize(in, base, 0, &out, NULL) == 0);
		fw_html_start(&z, fw_buf_str(&out));
		for (fw_html_next(&z, &t); t.kind != FW_HTML_END; fw_html_next(&z, &t))
			FUZZ_CHECK(t.kind != FW_HTML_OPEN || t.el == FW_E_SOURCE ||
				!fw_html_attr_get(a, t.attrs, "src").p);
		text = fw_html_text(a, fw_buf_str(&out));
		for (size_t i = 0; i < text.len; i++) /* white space, also no-break spaces */
			FUZZ_CHECK(fw_is_space((unsigned char)text.p[i]) || text.p[i] == '\xc2' || text.p[i] == '\xa0');
	}
	fw_buf_finish(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const unsigned FLAGS[] = {
		0, FW_PRINT_NO_PIXELS, FW_HTML_DATA_IMAGES, FW_HTML_DATA_IMAGES | FW_PRINT_NO_PIXELS};
	struct fw_str in = {(const char *)data, size}, text;
	struct fw_arena a;

	check_sanitised(in, size % 3 ? FW_STR("http://example.org/dir/page") : FW_STR_NONE,
		FLAGS[size % FW_N(FLAGS)] | (size % 5 ? 0 : FW_HTML_NO_TREE));
	fw_arena_init(&a, 0);
	check_embeds(&a, in, size % 3 ? FW_STR("http://example.org/dir/page") : FW_STR_NONE);
	text = fw_html_text(&a, in);
	FUZZ_CHECK(text.len <= in.len * 2 + 2);
	FUZZ_CHECK(fw_utf8_valid(in.p, in.len) != in.len || fw_utf8_valid(text.p, text.len) == text.len);
	(void)fw_html_has_markup(in);
	fw_arena_finish(&a);
	return 0;
}
