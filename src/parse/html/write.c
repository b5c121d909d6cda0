/* SPDX-License-Identifier: ISC */
/*
 * Top to bottom: where an element may stand, how text is escaped, which attributes are kept and as
 * what, tags. The allow list of elements is FW_EL_KEEP in token.h, that of attributes RULES here:
 * of the input's attributes no other is written, and clean_value() makes each value safe by its
 * kind. fw_html_open() relies on its caller to ask fw_html_fits() first.
 */
#include "parse/html/value.h"
#include "parse/html/write.h"

/* ---- what may stand where (HTML standard, section 13.2.6.4) ---------------------------------- */

static bool ends_scope(enum fw_el el)
{
	return el == FW_E_TD || el == FW_E_TH || el == FW_E_CAPTION || el == FW_E_TABLE;
}

size_t fw_html_depth_of(const struct fw_html_writer *w, enum fw_el el)
{
	for (size_t i = w->open_n[el] ? w->n : 0; i > 0; i--) {
		enum fw_el at = w->open[i - 1];

		if (at == el)
			return w->n - i + 1;
		if (ends_scope(at) && !(fw_el_flags(el) & FW_EL_TABLE && at != FW_E_TABLE) && el != FW_E_TABLE)
			return 0;
		if (el == FW_E_LI ? at == FW_E_OL || at == FW_E_UL || at == FW_E_MENU || at == FW_E_DIR :
				    (el == FW_E_DD || el == FW_E_DT) && at == FW_E_DL)
			return 0;
	}
	return 0;
}

/* Would another li (dd, dt) that starts here close an open one? */
static bool item_open(const struct fw_html_writer *w, enum fw_el a, enum fw_el b)
{
	for (size_t i = w->open_n[a] || w->open_n[b] ? w->n : 0; i > 0; i--) {
		enum fw_el at = w->open[i - 1];

		if (at == a || at == b)
			return true;
		if (fw_el_flags(at) & FW_EL_SPECIAL && at != FW_E_ADDRESS && at != FW_E_DIV && at != FW_E_P)
			return false;
	}
	return false;
}

static bool fits_table(enum fw_el top, enum fw_el el)
{
	switch (el) {
	case FW_E_COL:
		return top == FW_E_COLGROUP;
	case FW_E_TR:
		return top == FW_E_TBODY || top == FW_E_THEAD || top == FW_E_TFOOT;
	case FW_E_TD:
	case FW_E_TH:
		return top == FW_E_TR;
	default:
		return top == FW_E_TABLE;
	}
}

bool fw_html_fits(const struct fw_html_writer *w, enum fw_el el)
{
	unsigned flags = fw_el_flags(el);
	enum fw_el top = fw_html_top(w);

	if (!(flags & FW_EL_KEEP) || (w->n == FW_HTML_DEPTH && !(flags & FW_EL_VOID)))
		return false;
	if (flags & FW_EL_TABLE)
		return fits_table(top, el);
	if (fw_el_flags(top) & FW_EL_NO_TEXT)
		return false;
	if (flags & FW_EL_CLOSES_P && fw_html_depth_of(w, FW_E_P))
		return false;
	if (flags & FW_EL_HEADING && fw_el_flags(top) & FW_EL_HEADING)
		return false;
	switch (el) {
	case FW_E_LI:
		return !item_open(w, FW_E_LI, FW_E_LI);
	case FW_E_DD:
	case FW_E_DT:
		return !item_open(w, FW_E_DD, FW_E_DT);
	case FW_E_A:
		return !fw_html_depth_of(w, FW_E_A);
	case FW_E_RT:
	case FW_E_RP:
		return !(fw_el_flags(top) & FW_EL_IMPLIED) || !fw_html_depth_of(w, FW_E_RUBY);
	default:
		return true;
	}
}

/* ---- text ------------------------------------------------------------------------------------ */

enum { PLAIN, AMP, LT, GT, QUOTE, CR, GONE };

/* clang-format off */
static const unsigned char CLASS[256] = {
	[0x00] = GONE, GONE, GONE, GONE, GONE, GONE, GONE, GONE, GONE, PLAIN, PLAIN, GONE, PLAIN, CR, GONE, GONE,
	GONE, GONE, GONE, GONE, GONE, GONE, GONE, GONE, GONE, GONE, GONE, GONE, GONE, GONE, GONE, GONE,
	['"'] = QUOTE, ['&'] = AMP, ['<'] = LT, ['>'] = GT, [0x7f] = GONE,
};
/* clang-format on */

void fw_html_escape(struct fw_buf *out, struct fw_str s, bool attribute)
{
	static const char *const REFERENCE[] = {
		[AMP] = "&amp;", [LT] = "&lt;", [GT] = "&gt;", [QUOTE] = "&quot;", [CR] = "\n", [GONE] = ""};
	size_t from = 0;

	for (size_t i = 0; i < s.len; i++) {
		int class = CLASS[(unsigned char)s.p[i]];

		if (class == PLAIN || (class == QUOTE && !attribute))
			continue;
		fw_buf_add(out, s.p + from, i - from);
		from = i + 1;
		if (class != CR || from == s.len || s.p[from] != '\n') /* CR LF is one newline */
			fw_buf_adds(out, REFERENCE[class]);
	}
	fw_buf_add(out, s.p + from, s.len - from);
}

static bool is_white_space(struct fw_str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (!fw_is_space((unsigned char)s.p[i]))
			return false;
	}
	return true;
}

bool fw_html_write_text(struct fw_html_writer *w, struct fw_str text)
{
	/* it would be first in <pre> */
	while (w->pre && text.len && CLASS[(unsigned char)text.p[0]] == GONE)
		text = fw_str_sub(text, 1, text.len);
	if (!text.len)
		return true;
	if (fw_el_flags(fw_html_top(w)) & FW_EL_NO_TEXT && !is_white_space(text))
		return false;
	if (w->pre && (text.p[0] == '\n' || text.p[0] == '\r'))
		fw_buf_addc(w->out, '\n');
	w->pre = false;
	fw_html_escape(w->out, text, false);
	return true;
}

/* ---- attributes ------------------------------------------------------------------------------ */

enum value { TEXT, HREF, LINK, ANCHOR, MEDIA, SRCSET, NUMBER, WORD, STYLE, LANGUAGE_CLASS, FLAG, LAZY };

static const struct attr_rule {
	const char *name;
	enum value value;
	enum fw_el el[12]; /* for these elements; none: for all */
} RULES[] = {
	{"href", HREF, {FW_E_A}},
	{"id", ANCHOR, {0}},
	{"name", ANCHOR, {FW_E_A}},
	{"src", MEDIA, {FW_E_IMG, FW_E_SOURCE, FW_E_AUDIO, FW_E_VIDEO}},
	{"style", STYLE, {0}},
	{"alt", TEXT, {FW_E_IMG}},
	{"title", TEXT, {0}},
	{"class", LANGUAGE_CLASS, {FW_E_CODE, FW_E_PRE}},
	{"width", NUMBER, {FW_E_IMG, FW_E_VIDEO, FW_E_TABLE, FW_E_TD, FW_E_TH, FW_E_COL, FW_E_COLGROUP, FW_E_HR}},
	{"height", NUMBER, {FW_E_IMG, FW_E_VIDEO, FW_E_TABLE, FW_E_TD, FW_E_TH, FW_E_TR}},
	{"srcset", SRCSET, {FW_E_IMG, FW_E_SOURCE}},
	{"sizes", TEXT, {FW_E_IMG, FW_E_SOURCE}},
	{"media", TEXT, {FW_E_SOURCE}},
	{"type", TEXT, {FW_E_SOURCE, FW_E_OL, FW_E_UL, FW_E_LI}},
	{"poster", MEDIA, {FW_E_VIDEO}},
	{"lang", WORD, {0}},
	{"dir", WORD, {0}},
	{"align", WORD, {0}},
	{"valign", WORD, {0}},
	{"cite", LINK, {FW_E_BLOCKQUOTE, FW_E_Q, FW_E_DEL, FW_E_INS}},
	{"datetime", TEXT, {FW_E_TIME, FW_E_DEL, FW_E_INS}},
	{"colspan", NUMBER, {FW_E_TD, FW_E_TH}},
	{"rowspan", NUMBER, {FW_E_TD, FW_E_TH}},
	{"span", NUMBER, {FW_E_COL, FW_E_COLGROUP}},
	{"scope", WORD, {FW_E_TH}},
	{"border", NUMBER, {FW_E_TABLE, FW_E_IMG}},
	{"cellpadding", NUMBER, {FW_E_TABLE}},
	{"cellspacing", NUMBER, {FW_E_TABLE}},
	{"bgcolor", WORD, {FW_E_TABLE, FW_E_TR, FW_E_TD, FW_E_TH}},
	{"start", NUMBER, {FW_E_OL}},
	{"reversed", FLAG, {FW_E_OL}},
	{"value", NUMBER, {FW_E_LI}},
	{"open", FLAG, {FW_E_DETAILS}},
	{"hreflang", WORD, {FW_E_A}},
	{"color", WORD, {FW_E_FONT, FW_E_HR}},
	{"face", TEXT, {FW_E_FONT}},
	{"size", WORD, {FW_E_FONT, FW_E_HR}},
	{"clear", WORD, {FW_E_BR}},
	{"hspace", NUMBER, {FW_E_IMG}},
	{"vspace", NUMBER, {FW_E_IMG}},
	{"data-src", LAZY, {FW_E_IMG, FW_E_SOURCE, FW_E_AUDIO, FW_E_VIDEO}},
	{"data-lazy-src", LAZY, {FW_E_IMG, FW_E_SOURCE, FW_E_AUDIO, FW_E_VIDEO}},
	{"data-original", LAZY, {FW_E_IMG, FW_E_SOURCE, FW_E_AUDIO, FW_E_VIDEO}},
};
_Static_assert(FW_N(RULES) <= 64, "one bit for each in seen");

static const struct attr_rule *find_rule(enum fw_el el, struct fw_str name)
{
	int first = name.len ? fw_lower((unsigned char)name.p[0]) : 0;

	for (size_t i = 0; i < FW_N(RULES); i++) {
		if (RULES[i].name[0] != first || !fw_str_ieq(name, fw_str(RULES[i].name)))
			continue;
		for (size_t k = 0; k < FW_N(RULES[i].el) && RULES[i].el[k]; k++) {
			if (RULES[i].el[k] == el)
				return &RULES[i];
		}
		return RULES[i].el[0] ? NULL : &RULES[i];
	}
	return NULL;
}

/* "12", "50%", "-1", "1.5"; at most eight characters. */
static bool value_is_number(struct fw_str s)
{
	if (!s.len || s.len > 8)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (!fw_is_digit(s.p[i]) && !(s.p[i] == '%' && i && i + 1 == s.len) &&
			!(s.p[i] == '-' && !i && s.len > 1) && !(s.p[i] == '.' && i && i + 1 < s.len))
			return false;
	}
	return true;
}

static bool value_is_word(struct fw_str s)
{
	if (!s.len || s.len > 40)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		int c = (unsigned char)s.p[i];

		if (!fw_is_alnum(c) && c != '-' && c != '#' && c != '+' && c != '_')
			return false;
	}
	return true;
}

/* The "language-c" of a class list, which syntax highlighters use. */
static struct fw_str value_is_language(struct fw_str s)
{
	while (s.len) {
		size_t n = 0;

		while (n < s.len && !fw_is_space((unsigned char)s.p[n]))
			n++;
		if (fw_str_starts(s, FW_STR("language-")) && value_is_word(fw_str_sub(s, 0, n)))
			return fw_str_sub(s, 0, n);
		s = fw_str_trim(fw_str_sub(s, n, s.len));
	}
	return FW_STR_NONE;
}

/* The safe part of the value; absent: none. */
static struct fw_str clean_value(struct fw_html_writer *w, enum value kind, struct fw_str v)
{
	struct fw_str ref;

	switch (kind) {
	case HREF:
		ref = fw_html_anchor_ref(w->scratch, &w->anchors, w->base, v);
		return ref.len ? ref : fw_html_url(w->scratch, w->base, v, false, false);
	case ANCHOR:
		return fw_html_anchor_id(w->scratch, &w->anchors, v);
	case LINK:
		return fw_html_url(w->scratch, w->base, v, false, false);
	case MEDIA:
		return fw_html_url(w->scratch, w->base, v, true, w->data_images);
	case LAZY:
		return fw_html_url(w->scratch, w->base, v, true, false);
	case SRCSET:
		return fw_html_srcset(w->scratch, w->base, v);
	case STYLE:
		return fw_html_style(w->scratch, v);
	case NUMBER:
		v = fw_str_trim(v);
		return value_is_number(v) ? v : FW_STR_NONE;
	case WORD:
		v = fw_str_trim(v);
		return value_is_word(v) ? v : FW_STR_NONE;
	case LANGUAGE_CLASS:
		return value_is_language(fw_str_trim(v));
	case FLAG:
		return FW_STR("");
	default:
		return v;
	}
}

static void write_attr(struct fw_buf *out, const char *name, struct fw_str value)
{
	fw_buf_addc(out, ' ');
	fw_buf_adds(out, name);
	fw_buf_addc(out, '=');
	fw_buf_addc(out, '"');
	fw_html_escape(out, value, true);
	fw_buf_addc(out, '"');
}

static void write_attrs(struct fw_html_writer *w, enum fw_el el, const struct fw_html_attrs *attrs)
{
	struct fw_str name, value, lazy = FW_STR_NONE;
	struct fw_html_attrs it = *attrs;
	bool source = false, anchored = false;
	uint64_t seen = 0;

	while (it.next(&it, w->scratch, &name, &value)) {
		const struct attr_rule *r = find_rule(el, name);

		if (!r || seen >> (r - RULES) & 1) /* of two attributes the first wins */
			continue;
		seen |= UINT64_C(1) << (r - RULES);
		value = clean_value(w, r->value, value.p ? value : FW_STR(""));
		if (!value.p)
			continue;
		if (r->value == LAZY) {
			lazy = lazy.p ? lazy : value;
			continue;
		}
		if (r->value == ANCHOR) { /* an obsolete form of id */
			if (!anchored)
				write_attr(w->out, "id", value);
			anchored = true;
			continue;
		}
		source = source || (r->value == MEDIA && r->name[0] == 's');
		write_attr(w->out, r->name, value);
		if (r->value == HREF)
			fw_buf_adds(w->out, " rel=\"noopener noreferrer\""); /* WEB-09 */
	}
	if (lazy.p && !source)
		write_attr(w->out, "src", lazy);
}

/* "1", "1px". */
static bool pixels(struct fw_str s, int64_t *n)
{
	s = fw_str_trim(s);
	if (s.len > 2 && fw_str_ieq(fw_str_sub(s, s.len - 2, s.len), FW_STR("px")))
		s.len -= 2;
	return fw_str_int(s, n);
}

/* Is the image 1 x 1 or smaller, or is one of its sides smaller than min? */
static bool html_is_tiny(struct fw_str width, struct fw_str height, int min)
{
	int64_t w, h;
	bool has_w = pixels(width, &w), has_h = pixels(height, &h);

	if (has_w && has_h && w <= 1 && h <= 1)
		return true;
	return (has_w && w < min) || (has_h && h < min);
}

/* Read the size from a style. True if the style hides the element. */
static bool style_hides(struct fw_str style, struct fw_str *width, struct fw_str *height)
{
	while (style.p) {
		struct fw_str value, name = fw_str_trim(fw_str_split(fw_str_split(style, ';', &style), ':', &value));

		value = fw_str_trim(value);
		if (fw_str_ieq(name, FW_STR("width")))
			*width = value;
		else if (fw_str_ieq(name, FW_STR("height")))
			*height = value;
		else if ((fw_str_ieq(name, FW_STR("display")) && fw_str_ieq(value, FW_STR("none"))) ||
			(fw_str_ieq(name, FW_STR("visibility")) && fw_str_ieq(value, FW_STR("hidden"))))
			return true;
	}
	return false;
}

bool fw_html_hidden(struct fw_str width, struct fw_str height, struct fw_str style, int min)
{
	return style_hides(style, &width, &height) || html_is_tiny(width, height, min);
}

/* Is the image a tracking pixel? */
static bool is_pixel(struct fw_html_writer *w, const struct fw_html_attrs *attrs)
{
	struct fw_str name, value, width = FW_STR_NONE, height = FW_STR_NONE, style = FW_STR_NONE;
	struct fw_html_attrs it = *attrs;

	while (it.next(&it, w->scratch, &name, &value)) {
		if (!width.p && fw_str_ieq(name, FW_STR("width")))
			width = value;
		else if (!height.p && fw_str_ieq(name, FW_STR("height")))
			height = value;
		else if (!style.p && fw_str_ieq(name, FW_STR("style")))
			style = value;
	}
	return fw_html_hidden(width, height, style, 0);
}

/* ---- tags ------------------------------------------------------------------------------------ */

bool fw_html_open(struct fw_html_writer *w, enum fw_el el, const struct fw_html_attrs *attrs)
{
	if (el == FW_E_IMG && w->drop_pixels && attrs && is_pixel(w, attrs))
		return false;
	fw_buf_addc(w->out, '<');
	fw_buf_adds(w->out, fw_el_name(el));
	if (attrs)
		write_attrs(w, el, attrs);
	if (el == FW_E_AUDIO || el == FW_E_VIDEO)
		fw_buf_adds(w->out, " controls");
	fw_buf_addc(w->out, '>');
	if (!(fw_el_flags(el) & FW_EL_VOID))
		fw_html_push(w, el);
	w->pre = el == FW_E_PRE;
	return true;
}

void fw_html_close(struct fw_html_writer *w)
{
	fw_buf_adds(w->out, "</");
	fw_buf_adds(w->out, fw_el_name(fw_html_pop(w)));
	fw_buf_addc(w->out, '>');
	w->pre = false;
}
