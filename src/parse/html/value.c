/* SPDX-License-Identifier: ISC */
/* Filters URLs (WEB-03), srcset and style. Each filter is idempotent. */
#include "base/url.h"
#include "base/utf8.h"
#include "parse/html/value.h"

/* ---- URLs ------------------------------------------------------------------------------------ */

enum scheme { SCHEME_NONE, SCHEME_WEB, SCHEME_MAIL, SCHEME_TEL, SCHEME_MAGNET, SCHEME_DATA, SCHEME_BAD };

static enum scheme scheme_named(struct fw_str s)
{
	static const struct {
		struct fw_str name;
		enum scheme scheme;
	} KNOWN[] = {{{"http", 4}, SCHEME_WEB}, {{"https", 5}, SCHEME_WEB}, {{"mailto", 6}, SCHEME_MAIL},
		{{"tel", 3}, SCHEME_TEL}, {{"magnet", 6}, SCHEME_MAGNET}, {{"data", 4}, SCHEME_DATA}};

	for (size_t i = 0; i < FW_N(KNOWN); i++) {
		if (fw_str_eq(s, KNOWN[i].name))
			return KNOWN[i].scheme;
	}
	return SCHEME_BAD;
}

/*
 * The scheme as browsers and careless filters may see it: the text before a ':' with no '/', '?' or
 * '#' before it. Browsers ignore tabs and newlines in it; any other byte that is invalid in a
 * scheme makes it bad.
 */
static enum scheme scheme_of(struct fw_str url)
{
	char name[8];
	size_t n = 0;

	for (size_t i = 0; i < url.len; i++) {
		int c = (unsigned char)url.p[i];

		if (c == '/' || c == '?' || c == '#')
			return SCHEME_NONE;
		if (c == ':') {
			return scheme_named((struct fw_str){name, n});
		}
		if (c == '\t' || c == '\n' || c == '\r')
			continue;
		if (n < sizeof(name))
			name[n++] = (char)fw_lower(c);
	}
	return SCHEME_NONE;
}

static bool safe_data_image(struct fw_str url)
{
	static const char *const TYPES[] = {"data:image/png;base64,", "data:image/jpeg;base64,",
		"data:image/gif;base64,", "data:image/webp;base64,", "data:image/avif;base64,"};

	if (url.len > 64 * 1024)
		return false;
	for (size_t i = 0; i < FW_N(TYPES); i++) {
		struct fw_str type = fw_str(TYPES[i]);

		if (!fw_str_istarts(url, type))
			continue;
		for (size_t k = type.len; k < url.len; k++) {
			int c = (unsigned char)url.p[k];

			if (!fw_is_alnum(c) && c != '+' && c != '/' && c != '=')
				return false;
		}
		return true;
	}
	return false;
}

/*
 * Is it a phone number? '*' and '#', also escaped, are refused: they could form a code that a phone
 * executes.
 */
static bool safe_tel(struct fw_str url)
{
	for (size_t i = 0; i < url.len; i++) {
		int c = (unsigned char)url.p[i];

		if (c == '%' && fw_str_starts(fw_str_sub(url, i, url.len), FW_STR("%20")))
			i += 2;
		else if (!fw_is_alnum(c) && !memchr(":+-.();=", c, 8))
			return false;
	}
	return fw_str_istarts(url, FW_STR("tel:")) && url.len > 4 && url.len <= 100;
}

static bool safe_magnet(struct fw_str url)
{
	return fw_str_istarts(url, FW_STR("magnet:?")) && url.len <= FW_URL_MAX && !fw_url_has_control(url);
}

static struct fw_str value_trim(struct fw_str s) /* as URL parsers do: controls too */
{
	while (s.len && (unsigned char)s.p[0] <= ' ')
		s = fw_str_sub(s, 1, s.len);
	while (s.len && (unsigned char)s.p[s.len - 1] <= ' ')
		s.len--;
	return s;
}

bool fw_html_is_media(struct fw_str url, bool data_images)
{
	enum scheme scheme;

	url = value_trim(url);
	scheme = scheme_of(url);
	return url.len &&
		(scheme == SCHEME_WEB || scheme == SCHEME_NONE ||
			(scheme == SCHEME_DATA && data_images && safe_data_image(url)));
}

struct fw_str fw_html_url(struct fw_arena *a, struct fw_str base, struct fw_str url, bool media, bool data_images)
{
	enum scheme scheme;

	url = value_trim(url);
	scheme = scheme_of(url);
	if (!url.p || (media && !url.len) || scheme == SCHEME_BAD)
		return FW_STR_NONE;
	if (scheme == SCHEME_DATA)
		return media && data_images && safe_data_image(url) ? url : FW_STR_NONE;
	if (scheme == SCHEME_NONE && base.len && scheme_of(base) != SCHEME_WEB)
		base = FW_STR_NONE;
	url = fw_url_resolve(a, base, url);
	scheme = scheme_of(url);
	if (scheme == SCHEME_WEB || scheme == SCHEME_NONE)
		return url;
	if (media)
		return FW_STR_NONE;
	return scheme == SCHEME_MAIL || (scheme == SCHEME_TEL && safe_tel(url)) ||
			(scheme == SCHEME_MAGNET && safe_magnet(url)) ?
		url :
		FW_STR_NONE;
}

struct fw_str fw_html_percent_decode(struct fw_arena *a, struct fw_str s)
{
	struct fw_str out;

	if (!s.len || !memchr(s.p, '%', s.len))
		return s;
	return fw_url_decode(a, s, &out) && fw_utf8_valid(out.p, out.len) == out.len ? out : FW_STR_NONE;
}

/* ---- srcset ---------------------------------------------------------------------------------- */

/* "2x", "640w", "1.5x"; or nothing. */
static bool is_descriptor(struct fw_str s)
{
	if (!s.len)
		return true;
	for (size_t i = 0; i + 1 < s.len; i++) {
		if (!fw_is_digit(s.p[i]) && s.p[i] != '.')
			return false;
	}
	return s.len > 1 && s.len < 12 && memchr("wxh", s.p[s.len - 1], 3);
}

struct fw_str fw_html_srcset(struct fw_arena *a, struct fw_str base, struct fw_str s)
{
	struct fw_buf out = FW_BUF_INIT(0);
	struct fw_str done;

	for (size_t i = 0; i < s.len;) {
		struct fw_str url, descriptor = FW_STR("");
		size_t from;

		while (i < s.len && (fw_is_space((unsigned char)s.p[i]) || s.p[i] == ','))
			i++;
		for (from = i; i < s.len && !fw_is_space((unsigned char)s.p[i]); i++)
			;
		url = fw_str_sub(s, from, i);
		if (url.len && url.p[url.len - 1] == ',') { /* without a descriptor */
			while (url.len && url.p[url.len - 1] == ',')
				url.len--;
		} else {
			for (from = i; i < s.len && s.p[i] != ','; i++)
				;
			descriptor = fw_str_trim(fw_str_sub(s, from, i));
		}
		url = fw_html_url(a, base, url, true, false);
		if (!url.len || !is_descriptor(descriptor) || fw_url_has_control(url) || url.p[0] == ',' ||
			url.p[url.len - 1] == ',')
			continue;
		if (out.len)
			fw_buf_adds(&out, ", ");
		fw_buf_addstr(&out, url);
		if (descriptor.len)
			fw_buf_addc(&out, ' ');
		fw_buf_addstr(&out, descriptor);
	}
	a->failed |= out.rc != 0;
	done = out.len && !out.rc ? fw_arena_str(a, fw_buf_str(&out)) : FW_STR_NONE;
	fw_buf_finish(&out);
	return done;
}

/* ---- style ----------------------------------------------------------------------------------- */

static bool safe_property(struct fw_str name)
{
	/* none of these can move, cover, hide, load or animate anything */
	static const char *const NAMES[] = {"background-color", "color", "direction", "font-style", "font-variant",
		"font-weight", "list-style-type", "text-align", "text-decoration", "text-decoration-line",
		"text-transform", "vertical-align", "white-space"};

	for (size_t i = 0; i < FW_N(NAMES); i++) {
		if (fw_str_ieq(name, fw_str(NAMES[i])))
			return true;
	}
	return false;
}

/* Words, numbers and colours. The only functions are rgb(), rgba(), hsl() and hsla(). */
static bool safe_value(struct fw_str v)
{
	size_t open = 0;

	if (!v.len || v.len > 64)
		return false;
	for (size_t i = 0; i < v.len; i++) {
		int c = (unsigned char)v.p[i];

		if (!fw_is_alnum(c) && !memchr(" #%.,-()", c, 8))
			return false;
		if (c == '(')
			open = open ? SIZE_MAX : i;
	}
	if (!memchr(v.p, '(', v.len))
		return !memchr(v.p, ')', v.len);
	if (v.p[v.len - 1] != ')' || open == SIZE_MAX || memchr(v.p, ')', v.len - 1))
		return false;
	return fw_str_ieq(fw_str_sub(v, 0, open), FW_STR("rgb")) ||
		fw_str_ieq(fw_str_sub(v, 0, open), FW_STR("rgba")) ||
		fw_str_ieq(fw_str_sub(v, 0, open), FW_STR("hsl")) || fw_str_ieq(fw_str_sub(v, 0, open), FW_STR("hsla"));
}

struct fw_str fw_html_style(struct fw_arena *a, struct fw_str style)
{
	struct fw_buf out = FW_BUF_INIT(0);
	struct fw_str rest = style, done;

	/* a ';' inside a string or url() splits it, and neither half is safe */
	while (rest.p) {
		struct fw_str value, name = fw_str_split(fw_str_split(rest, ';', &rest), ':', &value);

		name = fw_str_trim(name);
		value = fw_str_trim(value);
		if (!safe_property(name) || !safe_value(value))
			continue;
		if (out.len)
			fw_buf_adds(&out, "; ");
		for (size_t i = 0; i < name.len; i++)
			fw_buf_addc(&out, (char)fw_lower((unsigned char)name.p[i]));
		fw_buf_adds(&out, ": ");
		fw_buf_addstr(&out, value);
	}
	a->failed |= out.rc != 0;
	done = out.len && !out.rc ? fw_arena_str(a, fw_buf_str(&out)) : FW_STR_NONE;
	fw_buf_finish(&out);
	return done;
}
