/* SPDX-License-Identifier: ISC */
/*
 * The tokenizer, and the elements by name. fw_html_next() moves z->at from token to token. Tokens
 * are slices of the HTML: a tag's attributes stay text until fw_html_attr() walks them, and only
 * fw_html_attr_decode() copies, if a value has a character reference.
 *
 * Searches only go forward, from a token's start to its end, so all of them together are linear.
 * What is not a tag is text, so that no words are lost; only a tag that the document does not end
 * is dropped.
 */
#include "parse/charset/entity.h"
#include "parse/html/token.h"

/* ---- elements -------------------------------------------------------------------------------- */

static const struct {
	char name[12];
	uint16_t flags;
} ELEMENTS[FW_EL_COUNT] = {{"", 0},
#define X(id, name, flags) {name, flags},
	FW_HTML_ELEMENTS(X)
#undef X
};

/* The first eight bytes as a number that sorts alphabetically. */
static uint64_t name_pack(const char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap64(v);
}

enum fw_el fw_el_find(struct fw_str name)
{
	char lower[12] = "";
	size_t lo = 1, hi = FW_EL_COUNT;
	uint64_t key;

	if (name.len == 0 || name.len >= sizeof(lower))
		return FW_EL_NONE;
	for (size_t i = 0; i < name.len; i++)
		lower[i] = (char)fw_lower((unsigned char)name.p[i]);
	key = name_pack(lower);
	/* the table is sorted, and the first eight letters are unique */
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (name_pack(ELEMENTS[mid].name) < key)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < FW_EL_COUNT && memcmp(ELEMENTS[lo].name, lower, sizeof(lower)) == 0 ? (enum fw_el)lo : FW_EL_NONE;
}

const char *fw_el_name(enum fw_el el)
{
	return ELEMENTS[el].name;
}

unsigned fw_el_flags(enum fw_el el)
{
	return ELEMENTS[el].flags;
}

/* ---- tags ------------------------------------------------------------------------------------ */

static bool name_end(int c)
{
	return fw_is_space(c) || c == '/' || c == '>';
}

bool fw_html_attr(struct fw_str *attrs, struct fw_str *name, struct fw_str *value)
{
	const char *p = attrs->p, *end = p + attrs->len, *start;

	while (p < end && (fw_is_space(*p) || *p == '/'))
		p++;
	if (p >= end || *p == '>') {
		*attrs = (struct fw_str){p, (size_t)(end - p)};
		return false;
	}
	start = p++; /* a leading '=' belongs to the name */
	while (p < end && !name_end(*p) && *p != '=')
		p++;
	*name = (struct fw_str){start, (size_t)(p - start)};
	*value = FW_STR_NONE;
	for (start = p; start < end && fw_is_space(*start); start++)
		;
	if (start < end && *start == '=') {
		for (p = start + 1; p < end && fw_is_space(*p); p++)
			;
		start = p;
		if (p < end && (*p == '"' || *p == '\'')) {
			const char *quote = memchr(p + 1, *p, (size_t)(end - p - 1));

			start++;
			*value = (struct fw_str){start, (size_t)((quote ? quote : end) - start)};
			p = quote ? quote + 1 : end;
		} else {
			while (p < end && !fw_is_space(*p) && *p != '>')
				p++;
			*value = (struct fw_str){start, (size_t)(p - start)};
		}
	}
	*attrs = (struct fw_str){p, (size_t)(end - p)};
	return true;
}

/* The end of the tag whose name ends at p; NULL if the document ends first. */
static const char *tag_end(const char *p, const char *end)
{
	struct fw_str rest = {p, (size_t)(end - p)}, name, value;

	while (fw_html_attr(&rest, &name, &value))
		;
	return rest.len ? rest.p + 1 : NULL;
}

/* The end of a comment, doctype or similar that starts with "<!", "<?" or "</" at p. */
static const char *comment_end(const char *p, const char *end)
{
	const char *close;

	if (end - p < 4 || memcmp(p, "<!--", 4) != 0) {
		close = memchr(p, '>', (size_t)(end - p));
		return close ? close + 1 : end;
	}
	p += 4;
	if (p < end && *p == '>') /* "<!-->" */
		return p + 1;
	if (end - p >= 2 && p[0] == '-' && p[1] == '>') /* "<!--->" */
		return p + 2;
	while (p < end && (close = memchr(p, '-', (size_t)(end - p)))) {
		p = close + 1;
		if (end - p >= 2 && p[0] == '-' && p[1] == '>')
			return p + 2;
		if (end - p >= 3 && p[0] == '-' && p[1] == '!' && p[2] == '>')
			return p + 3;
	}
	return end;
}

/*
 * Does "<!" start a comment, a doctype or similar? "<!'" and "<! " are text, so that no words are
 * lost.
 */
static bool begins_comment(const char *lt, const char *end)
{
	int c = end - lt > 2 ? lt[2] : '>';

	return fw_is_alpha(c) || c == '-' || c == '[' || c == '>';
}

/* The "</name" that ends raw text; end if there is none. */
static const char *raw_text_end(const char *p, const char *end, enum fw_el el)
{
	struct fw_str name = fw_str(fw_el_name(el));

	while (p < end && (p = memchr(p, '<', (size_t)(end - p)))) {
		if ((size_t)(end - p) < name.len + 3)
			break;
		if (p[1] == '/' && fw_str_ieq((struct fw_str){p + 2, name.len}, name) && name_end(p[2 + name.len]))
			return p;
		p++;
	}
	return end;
}

void fw_html_start(struct fw_html_tokenizer *z, struct fw_str html)
{
	*z = (struct fw_html_tokenizer){.at = html.p, .end = html.p + html.len};
}

/*
 * Read the tag at z->at ('<' or "</" and a letter). False if the document ends inside it: the rest
 * is dropped.
 */
static bool read_tag(struct fw_html_tokenizer *z, struct fw_html_token *t)
{
	bool close = z->at[1] == '/';
	const char *start = z->at + 1 + close, *p = start, *end;

	while (p < z->end && !name_end(*p))
		p++;
	end = tag_end(p, z->end);
	if (!end) {
		z->at = z->end;
		return false;
	}
	t->kind = close ? FW_HTML_CLOSE : FW_HTML_OPEN;
	t->el = fw_el_find((struct fw_str){start, (size_t)(p - start)});
	t->attrs = (struct fw_str){p, (size_t)(end - 1 - p)};
	t->text = (struct fw_str){z->at, (size_t)(end - z->at)};
	if (!close && fw_el_flags(t->el) & FW_EL_RAW)
		z->raw = t->el;
	z->at = end;
	return true;
}

void fw_html_next(struct fw_html_tokenizer *z, struct fw_html_token *t)
{
	const char *p = z->at;

	*t = (struct fw_html_token){.kind = FW_HTML_END};
	if (z->raw) {
		t->kind = FW_HTML_RAW;
		t->el = z->raw;
		z->at = raw_text_end(p, z->end, z->raw);
		t->text = (struct fw_str){p, (size_t)(z->at - p)};
		z->raw = FW_EL_NONE;
		return;
	}
	while (p < z->end) {
		const char *lt = memchr(p, '<', (size_t)(z->end - p));
		int c = lt && z->end - lt > 1 ? lt[1] : 0, d = c == '/' && z->end - lt > 2 ? lt[2] : 0;

		p = lt ? lt : z->end;
		/* a '<' that is text */
		if (lt && !fw_is_alpha(c) && !(c == '!' && begins_comment(lt, z->end)) && c != '?' && !d) {
			p++;
			continue;
		}
		if (p > z->at) {
			t->kind = FW_HTML_TEXT;
			t->text = (struct fw_str){z->at, (size_t)(p - z->at)};
			z->at = p;
			return;
		}
		if (fw_is_alpha(c) || fw_is_alpha(d)) {
			if (read_tag(z, t))
				return;
		} else {
			z->at = comment_end(p, z->end);
			t->kind = FW_HTML_COMMENT;
			t->text = (struct fw_str){p, (size_t)(z->at - p)};
			return;
		}
		p = z->at;
	}
	if (p > z->at) {
		t->kind = FW_HTML_TEXT;
		t->text = (struct fw_str){z->at, (size_t)(p - z->at)};
		z->at = p;
	}
}

/* Is it empty by "/>"? Foreign elements such as <svg/> may be, HTML's may not. */
static bool ends_at_once(const struct fw_html_token *t)
{
	return t->el == FW_E_SVG && t->text.p[t->text.len - 2] == '/';
}

void fw_html_skip(struct fw_html_tokenizer *z, const struct fw_html_token *t)
{
	struct fw_html_token inner;
	size_t depth = !(fw_el_flags(t->el) & FW_EL_RAW) && !ends_at_once(t);

	while (depth) {
		fw_html_next(z, &inner);
		if (inner.kind == FW_HTML_END)
			return;
		if (inner.kind == FW_HTML_OPEN && inner.el == t->el)
			depth += !ends_at_once(&inner);
		else if (inner.kind == FW_HTML_CLOSE && inner.el == t->el)
			depth--;
	}
}

/* ---- attribute values ------------------------------------------------------------------------ */

/*
 * The length of the reference at s, which starts with '&'; 0: not a reference. In an attribute, a
 * name without a semicolon before '=' or a letter is not a reference, so "?a=1&copy=2" is
 * unchanged. Without a semicolon only the four names that authors of markup use are recognised.
 */
static size_t attr_reference(struct fw_str s)
{
	static const char *const BARE[] = {"&amp", "&lt", "&gt", "&quot"};
	uint32_t cp[2];
	size_t n = 1;

	if (s.len > 2 && s.p[1] == '#') {
		bool hex = (s.p[2] | 32) == 'x';
		size_t start = n = hex ? 3 : 2;

		while (n < s.len && (hex ? fw_hexval((unsigned char)s.p[n]) >= 0 : fw_is_digit(s.p[n])))
			n++;
		return n == start ? 0 : n + (n < s.len && s.p[n] == ';');
	}
	while (n < s.len && n < 40 && fw_is_alnum((unsigned char)s.p[n]))
		n++;
	if (n < s.len && s.p[n] == ';')
		return fw_entity_find(fw_str_sub(s, 1, n), cp) ? n + 1 : 0;
	for (size_t i = 0; i < FW_N(BARE) && !(n < s.len && s.p[n] == '='); i++) {
		if (fw_str_eq(fw_str_sub(s, 0, n), fw_str(BARE[i])))
			return n;
	}
	return 0;
}

struct fw_str fw_html_attr_decode(struct fw_arena *a, struct fw_str value)
{
	char *d;
	size_t n = 0;

	if (!value.len || !memchr(value.p, '&', value.len))
		return value;
	/* the largest growth is from 5 bytes to 6 */
	d = fw_arena_alloc(a, value.len + value.len / 2 + 8);
	if (!d)
		return FW_STR_NONE;
	for (size_t i = 0; i < value.len;) {
		size_t took = value.p[i] == '&' ? attr_reference(fw_str_sub(value, i, value.len)) : 0;
		struct fw_str c;

		if (!took) {
			d[n++] = value.p[i++];
			continue;
		}
		c = fw_entity_decode(a, fw_str_sub(value, i, i + took));
		if (!c.p)
			return FW_STR_NONE;
		memcpy(d + n, c.p, c.len);
		n += c.len;
		i += took;
	}
	return (struct fw_str){d, n};
}

struct fw_str fw_html_attr_get(struct fw_arena *a, struct fw_str attrs, const char *want)
{
	struct fw_str name, value;

	while (fw_html_attr(&attrs, &name, &value)) {
		if (fw_str_ieq(name, fw_str(want)))
			return fw_html_attr_decode(a, value.p ? value : FW_STR(""));
	}
	return FW_STR_NONE;
}
