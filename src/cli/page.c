/* SPDX-License-Identifier: ISC */
/*
 * HTML content as text: paragraphs, lists, quotations and code, wrapped to the width; a link's URL
 * follows its text. The input is the output of fw_sanitize(): well-formed, names in lower case,
 * attributes in double quotes, no references but &amp; &lt; &gt; &quot;. So this file only lays out
 * HTML; it does not parse real-world HTML.
 *
 * Bytes collect in `word` until white space or a block ends it; words collect on a line. Each line
 * starts with `lead` (indent, "> ", "* "). After an item's first line `lead` becomes `next`, in
 * which the markers are spaces.
 */
#include "base/utf8.h"
#include "cli/cli.h"

#define LEAD_MAX 48
#define NEST_MAX 64 /* deeper lists have no lead of their own and use the outer list's numbers */

enum page_block { INLINE, BREAK, APART /* a blank line before and after */ };

struct page {
	struct fw_buf *out;
	const struct cli_term *term;
	size_t columns;
	struct fw_buf word;
	size_t column; /* columns used on this line, lead included; 0: no line started */
	size_t begin;  /* out->len at the start of the text */
	int gap;       /* line ends due before the next word: 0, 1, 2 */
	size_t pre;    /* number of open <pre> */
	char lead[LEAD_MAX + 1], next[LEAD_MAX + 1];
	size_t lead_len;
	/* of each open list, item and quotation */
	struct {
		size_t lead_len;
		int64_t number;
		bool item;
	} nest[NEST_MAX];
	size_t nest_n, deeper;       /* deeper: open elements beyond NEST_MAX */
	struct fw_buf href;          /* of the open link */
	size_t href_out, href_word;  /* out->len and word.len at the start of its text */
	bool no_address, no_picture; /* omit URLs; omit pictures */
};

/* ---- lines ----------------------------------------------------------------------------------- */

static void line_begin(struct page *p)
{
	for (; p->gap && p->out->len > p->begin; p->gap--)
		fw_buf_addc(p->out, '\n');
	p->gap = 0;
	fw_buf_add(p->out, p->lead, p->lead_len);
	memcpy(p->lead, p->next, sizeof(p->lead));
	p->column = p->lead_len;
}

static void line_end(struct page *p)
{
	while (p->out->len > p->begin && p->out->p[p->out->len - 1] == ' ')
		p->out->len--;
	p->gap = FW_MAX(p->gap, 1);
	p->column = 0;
}

/* Add a word. One wider than a line is broken, except a URL: it stays whole for copying. */
static void word_add(struct page *p, struct fw_str word, size_t width)
{
	bool whole = fw_str_find(word, FW_STR("://")) || p->lead_len + width <= p->columns;
	size_t n;

	if (whole) {
		fw_buf_addstr(p->out, word);
		p->column += width;
		return;
	}
	for (size_t at = 0; at < word.len; at += n) {
		size_t w;

		(void)fw_utf8_get(word.p + at, word.len - at, &n);
		w = fw_utf8_width(word.p + at, n);
		if (p->column + w > p->columns && p->column > p->lead_len) {
			line_end(p);
			line_begin(p);
		}
		fw_buf_add(p->out, word.p + at, n);
		p->column += w;
	}
}

static void word_end(struct page *p)
{
	struct fw_buf safe = FW_BUF_INIT(0);
	size_t width;

	if (!p->word.len)
		return;
	cli_escape(&safe, cli_ascii(p->term), fw_buf_str(&p->word));
	width = fw_utf8_width(safe.p ? safe.p : "", safe.len);
	if (p->column && !p->pre && p->column + 1 + width > p->columns)
		line_end(p);
	if (!p->column) {
		line_begin(p);
	} else if (!p->pre) {
		fw_buf_addc(p->out, ' ');
		p->column++;
	}
	if (p->pre)
		fw_buf_addstr(p->out, fw_buf_str(&safe));
	else
		word_add(p, fw_buf_str(&safe), width);
	fw_buf_reset(&p->word);
	fw_buf_finish(&safe);
}

static void page_block(struct page *p, enum page_block kind)
{
	word_end(p);
	if (p->column)
		line_end(p);
	if (kind == APART)
		p->gap = 2;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* The first byte of s, or its first reference decoded; *n: bytes consumed. */
static char text_byte(struct fw_str s, size_t *n)
{
	static const struct {
		struct fw_str name;
		char c;
	} REFERENCE[] = {
		{{"&amp;", 5}, '&'},
		{{"&lt;", 4}, '<'},
		{{"&gt;", 4}, '>'},
		{{"&quot;", 6}, '"'},
	};

	*n = 1;
	for (size_t i = 0; s.p[0] == '&' && i < FW_N(REFERENCE); i++) {
		if (fw_str_starts(s, REFERENCE[i].name)) {
			*n = REFERENCE[i].name.len;
			return REFERENCE[i].c;
		}
	}
	return s.p[0];
}

static void page_decode(struct fw_buf *out, struct fw_str s)
{
	size_t n;

	for (size_t i = 0; i < s.len; i += n)
		fw_buf_addc(out, text_byte(fw_str_sub(s, i, s.len), &n));
}

/* Preformatted text: spaces and line ends are kept. */
static void pre_byte(struct page *p, char c)
{
	if (c == '\n') {
		word_end(p);
		if (p->column)
			line_end(p);
		else if (p->gap < 2 && p->out->len > p->begin)
			p->gap++;
	} else if (c == '\t') {
		fw_buf_adds(&p->word, "    ");
	} else {
		fw_buf_addc(&p->word, c);
	}
}

static void page_add_text(struct page *p, struct fw_str s)
{
	size_t n;

	for (size_t i = 0; i < s.len; i += n) {
		char c = text_byte(fw_str_sub(s, i, s.len), &n);

		if (p->pre)
			pre_byte(p, c);
		else if (fw_is_space((unsigned char)c))
			word_end(p);
		else
			fw_buf_addc(&p->word, c);
	}
}

/* ---- elements -------------------------------------------------------------------------------- */

static struct fw_str tag_attribute(struct fw_str tag, const char *name)
{
	struct fw_str rest = tag;
	size_t len = strlen(name);

	while (rest.len) {
		const char *quote = memchr(rest.p, '"', rest.len), *end;
		size_t at, left;

		if (!quote)
			break;
		at = (size_t)(quote - rest.p);
		left = rest.len - at - 1;
		end = memchr(quote + 1, '"', left);
		if (!end)
			break;
		if (at > len + 1 && quote[-1] == '=' && rest.p[at - len - 2] == ' ' &&
			memcmp(quote - len - 1, name, len) == 0)
			return (struct fw_str){quote + 1, (size_t)(end - quote - 1)};
		rest = fw_str_sub(rest, (size_t)(end - rest.p) + 1, rest.len);
	}
	return FW_STR_NONE;
}

/*
 * Until the matching nest_pop(), add mark to the lead of the first line and then to that of the
 * others.
 */
static void nest_push(struct page *p, const char *mark, const char *then, bool item, int64_t number)
{
	size_t n = strlen(mark);

	if (p->nest_n == NEST_MAX) {
		p->deeper++;
		return;
	}
	p->nest[p->nest_n].lead_len = p->lead_len;
	p->nest[p->nest_n].number = number;
	p->nest[p->nest_n++].item = item;
	/* the line has no room for a deeper lead */
	if (p->lead_len + n > FW_MIN((size_t)LEAD_MAX, p->columns / 2))
		return;
	memcpy(p->lead + p->lead_len, mark, n + 1);
	memcpy(p->next + p->lead_len, then, n + 1);
	p->lead_len += n;
}

static void nest_pop(struct page *p)
{
	if (p->deeper || !p->nest_n) {
		p->deeper -= p->deeper > 0;
		return;
	}
	p->lead_len = p->nest[--p->nest_n].lead_len;
	p->lead[p->lead_len] = p->next[p->lead_len] = '\0';
}

static void item_begin(struct page *p)
{
	char mark[FW_RFC3339_MAX] = "* ", then[] = "                    ";
	int64_t *number = p->nest_n ? &p->nest[p->nest_n - 1].number : NULL;

	if (number && *number > 0)
		(void)fw_snprintf(mark, sizeof(mark), "%lld. ", (long long)(*number)++);
	then[FW_MIN(strlen(mark), sizeof(then) - 1)] = '\0';
	nest_push(p, mark, then, true, 0);
}

static void link_end(struct page *p)
{
	struct fw_str href = fw_buf_str(&p->href), words = FW_STR_NONE, bare;

	if (!href.len || p->no_address)
		return;
	if (p->out->len == p->href_out) /* the link's text is one word */
		words = fw_str_sub(fw_buf_str(&p->word), p->href_word, p->word.len);
	bare = fw_str_ends(href, FW_STR("/")) && !fw_str_ends(words, FW_STR("/")) ? fw_str_sub(href, 0, href.len - 1) :
										    href;
	/* no URL if the text is the URL or its end (mailto:) */
	if (href.p[0] != '#' && !(words.len >= 3 && fw_str_ends(bare, words))) {
		word_end(p);
		fw_buf_addc(&p->word, '<');
		fw_buf_addstr(&p->word, href);
		fw_buf_addc(&p->word, '>');
	}
	fw_buf_reset(&p->href);
}

static void page_media(struct page *p, const char *what, struct fw_str tag)
{
	struct fw_str alt = tag_attribute(tag, "alt"), src = tag_attribute(tag, "src"),
		      width = tag_attribute(tag, "width");

	/* a tracking pixel */
	if (p->no_picture || fw_str_eq(width, FW_STR("1")) || fw_str_eq(width, FW_STR("0")))
		return;
	if (!p->pre)
		word_end(p);
	fw_buf_addc(&p->word, '[');
	fw_buf_adds(&p->word, what);
	if (alt.len) {
		fw_buf_adds(&p->word, ":");
		word_end(p);
		page_add_text(p, alt);
	}
	fw_buf_addc(&p->word, ']');
	if (!src.len || p->no_address)
		return;
	word_end(p);
	fw_buf_addc(&p->word, '<');
	page_decode(&p->word, src);
	fw_buf_addc(&p->word, '>');
	word_end(p);
}

static enum page_block element_kind(struct fw_str name)
{
	static const char *const LIST_APART[] = {"p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "table",
		"hr", "dl", "figure", "ul", "ol"};
	static const char *const LIST_BREAK[] = {"br", "div", "li", "tr", "dt", "dd", "section", "article", "header",
		"footer", "figcaption", "caption", "summary", "details", "address", "aside", "nav", "main", "center",
		"legend", "fieldset"};

	for (size_t i = 0; i < FW_N(LIST_APART); i++) {
		if (fw_str_eq(name, fw_str(LIST_APART[i])))
			return APART;
	}
	for (size_t i = 0; i < FW_N(LIST_BREAK); i++) {
		if (fw_str_eq(name, fw_str(LIST_BREAK[i])))
			return BREAK;
	}
	return INLINE;
}

static bool is_item_open(const struct page *p)
{
	return p->deeper || (p->nest_n && p->nest[p->nest_n - 1].item);
}

static void page_element(struct page *p, struct fw_str tag)
{
	bool closing = tag.len && tag.p[0] == '/', empty = !p->column && !p->word.len;
	size_t from = closing, to = from;
	enum page_block kind;
	struct fw_str name;

	while (to < tag.len && tag.p[to] != ' ' && tag.p[to] != '/')
		to++;
	name = fw_str_sub(tag, from, to);
	kind = element_kind(name);
#define IS(word) fw_str_eq(name, FW_STR(word))
	if (kind == APART && (IS("ul") || IS("ol")) &&
		p->nest_n > (size_t)closing) /* no blank line before a nested list */
		kind = BREAK;
	if (kind != INLINE && !(p->pre && IS("br")))
		page_block(p, kind);
	if (IS("br") && (p->pre || empty))
		pre_byte(p, '\n'); /* two <br> make a blank line */
	if (closing) {
		if (IS("ul") || IS("ol") || IS("blockquote") || (IS("li") && is_item_open(p)))
			nest_pop(p);
		else if (IS("pre") && p->pre)
			p->pre--;
		else if (IS("a"))
			link_end(p);
		return;
	}
	if (IS("ul") || IS("ol"))
		nest_push(p, "", "", false, IS("ol"));
	else if (IS("li"))
		item_begin(p);
	else if (IS("blockquote"))
		nest_push(p, "> ", "> ", false, 0);
	else if (IS("dd"))
		page_add_text(p, FW_STR("- "));
	else if (IS("pre"))
		p->pre++;
	else if (IS("td") || IS("th"))
		page_add_text(p, p->column || p->word.len ? FW_STR(" | ") : FW_STR(""));
	else if (IS("hr"))
		page_add_text(p, FW_STR("----"));
	else if (IS("img"))
		page_media(p, "picture", tag);
	else if (IS("audio") || IS("video") || IS("iframe"))
		page_media(p, IS("iframe") ? "frame" : IS("audio") ? "audio" : "video", tag);
	else if (IS("a")) {
		fw_buf_reset(&p->href);
		page_decode(&p->href, tag_attribute(tag, "href"));
		p->href_out = p->out->len;
		p->href_word = p->word.len;
	}
	if (IS("hr"))
		page_block(p, APART);
#undef IS
}

/* ---- entry points ---------------------------------------------------------------------------- */

static void layout_begin(struct page *p, struct fw_buf *out, const struct cli_term *t, size_t columns, size_t indent)
{
	*p = (struct page){
		.out = out, .term = t, .columns = columns, .begin = out->len, .lead_len = FW_MIN(indent, (size_t)8)};
	memset(p->lead, ' ', p->lead_len);
	memset(p->next, ' ', p->lead_len);
}

static void layout_end(struct page *p)
{
	page_block(p, INLINE);
	if (p->out->len > p->begin)
		fw_buf_addc(p->out, '\n');
	fw_buf_finish(&p->word);
	fw_buf_finish(&p->href);
}

static void layout_html(struct page *p, struct fw_str html)
{
	for (size_t at = 0; at < html.len;) {
		const char *from = html.p + at, *open = memchr(from, '<', html.len - at), *close;
		size_t n = open ? (size_t)(open - from) : html.len - at;

		page_add_text(p, (struct fw_str){from, n});
		at += n;
		if (!open)
			break;
		close = memchr(open, '>', html.len - at);
		if (!close)
			break;
		page_element(p, (struct fw_str){open + 1, (size_t)(close - open - 1)});
		at = (size_t)(close - html.p) + 1;
	}
	layout_end(p);
}

void cli_page_html(struct fw_buf *out, const struct cli_term *t, struct fw_str html, size_t columns, size_t indent)
{
	struct page p;

	layout_begin(&p, out, t, columns, indent);
	layout_html(&p, html);
}

void cli_page_line(struct fw_buf *out, const struct cli_term *t, struct fw_str html, bool pictures)
{
	struct fw_buf lines = FW_BUF_INIT(0);
	struct page p;

	layout_begin(&p, &lines, t, SIZE_MAX / 2, 0);
	p.no_address = true;
	p.no_picture = !pictures;
	layout_html(&p, html);
	for (size_t i = 0; i < lines.len; i++) { /* replace line ends by single spaces */
		if (lines.p[i] != '\n')
			fw_buf_addc(out, lines.p[i]);
		else if (i + 1 < lines.len && lines.p[i + 1] != '\n')
			fw_buf_addc(out, ' ');
	}
	fw_buf_finish(&lines);
}

void cli_page_text(struct fw_buf *out, const struct cli_term *t, struct fw_str s, size_t columns, size_t indent)
{
	struct page p;

	layout_begin(&p, out, t, columns, indent);
	while (s.p) {
		struct fw_str line = fw_str_split(s, '\n', &s);
		bool blank = fw_str_trim(line).len == 0;

		for (size_t i = 0; i < line.len; i++) {
			if (fw_is_space((unsigned char)line.p[i]))
				word_end(&p);
			else
				fw_buf_addc(&p.word, line.p[i]);
		}
		page_block(&p, blank ? APART : BREAK);
	}
	layout_end(&p);
}
