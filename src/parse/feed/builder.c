/* SPDX-License-Identifier: ISC */
/*
 * What the readers of XML and JSON share, on one struct fw_builder: places for problems, strings
 * (URLs, lines, numbers, dates, damaged encodings), people, and extra members as a tree of values.
 *
 * Input is text of the document, borrowed; the result is borrowed too where nothing changes, else
 * it is in the arena. No function fails: what cannot be read is absent, FW_NO_NUMBER or FW_NO_DATE,
 * and a repair that a reader should know of is a problem at its line. Lines and columns are counted
 * on from the last place, so that many problems in one document cost no more than one.
 */
#include <stddef.h>

#include "base/clock.h"
#include "base/url.h"
#include "base/utf8.h"
#include "parse/charset/scan.h"
#include "parse/date/date.h"
#include "parse/feed/builder.h"
#include "parse/html/text.h"
#include "parse/html/title.h"

#define OBJECT_CHECKED 64

void fw_list_append(void *list, void *item, size_t next_offset)
{
	void **at = list;

	if (!item)
		return;
	while (*at)
		at = (void **)((char *)*at + next_offset);
	*at = item;
}

/* ---- places ---------------------------------------------------------------------------------- */

SCAN_WIDE static size_t newlines(const char *p, size_t n)
{
	size_t total = 0, i = 0;

	/* blocks of a known size with a small counter, which compilers vectorise */
	for (; i + 128 <= n; i += 128) {
		uint8_t some = 0;

		for (size_t k = 0; k < 128; k++)
			some = (uint8_t)(some + (p[i + k] == '\n'));
		total += some;
	}
	for (; i < n; i++)
		total += p[i] == '\n';
	return total;
}

/*
 * Offsets mostly rise and at most fall a little, so counting continues from the last one in either
 * direction.
 */
uint32_t fw_build_line(struct fw_builder *b, size_t offset)
{
	offset = FW_MIN(offset, b->text.len);
	if (offset < b->line_at)
		b->line -= (uint32_t)newlines(b->text.p + offset, b->line_at - offset);
	else
		b->line += (uint32_t)newlines(b->text.p + b->line_at, offset - b->line_at);
	b->line_at = offset;
	return b->line + 1;
}

/*
 * The column of a character, from 1. A document may be one long line, so counting continues from
 * the last problem.
 */
static uint32_t problem_column(const struct fw_builder *b, uint32_t line, size_t at)
{
	const struct fw_problem *before = b->problem_last;
	bool goes_on = before && before->line == line && b->problem_at <= at;
	size_t from = at, stop = goes_on ? b->problem_at : at - FW_MIN(at, (size_t)65536);
	uint32_t n = goes_on ? before->column : 1;

	while (from > stop && b->text.p[from - 1] != '\n')
		n += (b->text.p[--from] & 0xc0) != 0x80;
	return n;
}

void fw_build_problem(struct fw_builder *b, size_t offset, const char *what, const char *repair)
{
	struct fw_problem *p;
	size_t at = FW_MIN(offset, b->text.len);

	if (b->doc->problem_n++ >= FW_PROBLEMS_KEPT)
		return;
	p = FW_NEW(b, struct fw_problem);
	if (!p)
		return;
	p->what = what;
	p->repair = repair;
	p->line = fw_build_line(b, at);
	p->column = problem_column(b, p->line, at);
	b->problem_at = at;
	if (b->problem_last)
		b->problem_last->next = p;
	else
		b->doc->problems = p;
	b->problem_last = p;
}

void fw_build_broken(struct fw_builder *b, size_t offset, const char *what, const char *repair)
{
	size_t at = FW_MIN(offset, b->text.len);

	b->doc->malformed = true;
	if (!b->doc->broken_line) {
		b->doc->broken_line = fw_build_line(b, at);
		b->doc->broken_column = problem_column(b, b->doc->broken_line, at);
	}
	fw_build_problem(b, offset, what, repair);
}

void fw_build_empty_entry(struct fw_builder *b, size_t offset)
{
	fw_build_problem(b, offset, "an empty entry", "left out");
}

size_t fw_build_offset(const struct fw_builder *b)
{
	return b->xml ? b->xml->offset : 0;
}

bool fw_build_count_member(struct fw_builder *b, uint32_t *count, uint32_t max, const char *what)
{
	if (++*count <= max)
		return true;
	if (*count == max + 1)
		fw_build_problem(b, fw_build_offset(b), what, "the rest is left out");
	b->doc->dropped_n++;
	return false;
}

/* ---- strings --------------------------------------------------------------------------------- */

struct fw_str fw_build_dup(struct fw_builder *b, struct fw_str s)
{
	return s.p ? fw_arena_str(b->arena, s) : s;
}

struct fw_str fw_build_base(const struct fw_builder *b, const struct fw_scope *scope)
{
	if (scope && scope->base.len)
		return scope->base;
	if (b->doc->home_page_url.len && b->doc->home_page_url.len <= FW_BASE_MAX)
		return b->doc->home_page_url;
	return b->doc->feed_url.len <= FW_BASE_MAX ? b->doc->feed_url : FW_STR_NONE;
}

/*
 * Would following this URL run the feed's code or open a file? Bytes that browsers ignore do not
 * hide the scheme (WEB-03).
 */
static bool is_active(struct fw_str url)
{
	static const char *const schemes[] = {"javascript", "vbscript", "livescript", "mocha", "data", "file", "blob",
		"filesystem", "about", "jar", "view-source", "chrome", "resource"};
	char name[16];
	size_t i, n = 0;

	for (i = 0; i < url.len && url.p[i] != ':'; i++) {
		if ((unsigned char)url.p[i] <= ' ')
			continue;
		if (n == sizeof(name) || !(fw_is_alpha(url.p[i]) || (n && url.p[i] == '-')))
			return false;
		name[n++] = url.p[i];
	}
	if (i == url.len)
		return false;
	for (i = 0; i < FW_N(schemes); i++) {
		if (fw_str_ieq((struct fw_str){name, n}, fw_str(schemes[i])))
			return true;
	}
	return false;
}

/* The length of an escaped '&' at the start of s, 0: none. In a URL it was escaped twice. */
static size_t amp_reference(struct fw_str s)
{
	static const struct fw_str forms[] = {{"&amp;", 5}, {"&#38;", 5}, {"&#038;", 6}, {"&#x26;", 6}};
	size_t i;

	for (i = 0; i < FW_N(forms); i++) {
		if (fw_str_istarts(s, forms[i]))
			return forms[i].len;
	}
	return 0;
}

static struct fw_str amp_decode(struct fw_builder *b, struct fw_str s)
{
	size_t i = 0, n = 0, len;
	char *out;

	if (!fw_str_ifind(s, FW_STR("&amp;")) && !fw_str_find(s, FW_STR("&#")))
		return s;
	out = fw_arena_alloc(b->arena, s.len);
	if (!out)
		return FW_STR_NONE;
	while (i < s.len) {
		len = s.p[i] == '&' ? amp_reference(fw_str_sub(s, i, s.len)) : 0;
		out[n++] = s.p[i];
		i += len ? len : 1;
	}
	return (struct fw_str){out, n};
}

struct fw_str fw_build_url(struct fw_builder *b, const struct fw_scope *scope, struct fw_str ref)
{
	struct fw_str base;
	ref = fw_str_trim(ref);
	if (!ref.len)
		return FW_STR_NONE;
	/*
	 * most URLs are absolute and need no change (no space, dot segment or reference): no copy
	 * then
	 */
	if (ref.len > 8 && (!memcmp(ref.p, "http://", 7) || !memcmp(ref.p, "https://", 8))) {
		const char *p = ref.p + 6, *end = ref.p + ref.len;

		while ((p = scan_address(p, end)) < end && *p == '&' &&
			!amp_reference((struct fw_str){p, (size_t)(end - p)}))
			p++;
		if (p == end)
			return ref;
	}
	ref = amp_decode(b, ref);
	if (is_active(ref)) {
		fw_build_problem(b, fw_build_offset(b), "a URL with an unsafe scheme", "left out");
		return FW_STR_NONE;
	}
	base = fw_build_base(b, scope);
	b->unresolved |= !base.len && !fw_url_is_absolute(ref);
	return fw_url_resolve(b->arena, base, ref);
}

struct fw_str fw_build_original(struct fw_builder *b, struct fw_str s)
{
	s = fw_str_trim(s);
	if (fw_url_is_web(s))
		return fw_build_url(b, NULL, s);
	if (s.len)
		fw_build_problem(b, fw_build_offset(b), "an original address that is not http or https", "left out");
	return FW_STR_NONE;
}

struct fw_str fw_build_line_text(struct fw_builder *b, struct fw_str s)
{
	size_t i, n = 0;
	bool space = false;
	char *out;

	s = fw_str_trim(s);
	if (!s.len)
		return FW_STR_NONE;
	if (scan_loose(s.p, s.p + s.len) == s.p + s.len)
		return s;
	out = fw_arena_alloc(b->arena, s.len);
	if (!out)
		return FW_STR_NONE;
	for (i = 0; i < s.len; i++) {
		if (fw_is_space(s.p[i])) {
			space = true;
			continue;
		}
		if (space)
			out[n++] = ' ';
		space = false;
		out[n++] = s.p[i];
	}
	return (struct fw_str){out, n};
}

struct fw_str fw_build_plain(struct fw_builder *b, struct fw_str s, enum fw_text_type type)
{
	s = fw_str_trim(s);
	if (type == FW_TEXT_HTML && s.len && (memchr(s.p, '<', s.len) || memchr(s.p, '&', s.len)))
		s = fw_str_trim(fw_html_text(b->arena, s));
	return s.len ? s : FW_STR_NONE;
}

struct fw_str fw_build_title(struct fw_builder *b, struct fw_str s)
{
	return fw_build_line_text(b, fw_title_is_html(s) ? fw_build_plain(b, s, FW_TEXT_HTML) : s);
}

struct fw_str fw_build_language(struct fw_builder *b, struct fw_str s)
{
	size_t i;
	char *out;

	s = fw_build_line_text(b, s);
	if (!s.len || !memchr(s.p, '_', s.len) || !(out = fw_arena_alloc(b->arena, s.len)))
		return s;
	for (i = 0; i < s.len; i++)
		out[i] = s.p[i] == '_' ? '-' : s.p[i];
	return (struct fw_str){out, s.len};
}

int64_t fw_build_date(struct fw_builder *b, struct fw_str s)
{
	int64_t at, now_ms = b->options ? b->options->now_ms : 0;
	bool zone_unknown;

	s = fw_str_trim(s);
	if (!s.len)
		return FW_NO_DATE;
	if (!fw_date_parse(s, &at, &zone_unknown)) {
		fw_build_problem(b, fw_build_offset(b), "an unreadable date", "left out");
		return FW_NO_DATE;
	}
	if (zone_unknown)
		fw_build_problem(b, fw_build_offset(b), "a date with an unknown time zone", "read as UTC");
	/* FMT-07: before 1970, or more than a year ahead */
	if (now_ms > 0 && (at < 0 || at > now_ms + 366 * FW_DAY_MS)) {
		fw_build_problem(b, fw_build_offset(b), "an implausible date", "left out");
		return FW_NO_DATE;
	}
	return at;
}

int64_t fw_build_number(struct fw_str s)
{
	int64_t v = 0;
	size_t i;

	s = fw_str_trim(s);
	for (i = 0; i < s.len && fw_is_digit(s.p[i]); i++) {
		if (v > (INT64_MAX - 9) / 10)
			return FW_NO_NUMBER;
		v = v * 10 + (s.p[i] - '0');
	}
	return i ? v : FW_NO_NUMBER;
}

int64_t fw_build_size(struct fw_str s)
{
	struct fw_str rest = fw_str_trim(s);
	char digits[24];
	size_t i, n = 0;

	for (i = 0; i < rest.len && n < sizeof(digits); i++) {
		char c = rest.p[i];

		if (fw_is_digit(c))
			digits[n++] = c;
		else if (!(n && i + 3 < rest.len && memchr(",. '_", c, 5) && fw_is_digit(rest.p[i + 1]) &&
				 fw_is_digit(rest.p[i + 2]) && fw_is_digit(rest.p[i + 3]) &&
				 !(i + 4 < rest.len && fw_is_digit(rest.p[i + 4]))))
			break;
	}
	rest = fw_str_trim(fw_str_sub(rest, i, rest.len));
	if (rest.len && !fw_str_ieq(rest, FW_STR("b")) && !fw_str_istarts(rest, FW_STR("byte")))
		return FW_NO_NUMBER;
	return fw_build_number((struct fw_str){digits, n});
}

int64_t fw_build_duration(struct fw_str s)
{
	struct fw_str part, rest = fw_str_trim(s);
	double total = 0, v;
	int parts = 0;

	if (!rest.len)
		return FW_NO_NUMBER;
	while (rest.p) {
		part = fw_str_split(rest, ':', &rest);
		if (++parts > 4 || !fw_str_double(part, &v) || !(v >= 0 && v < 1e12))
			return FW_NO_NUMBER;
		total = total * 60 + v;
	}
	return total < 1e12 ? (int64_t)(total * 1000 + 0.5) : FW_NO_NUMBER;
}

bool fw_build_bool(struct fw_str s)
{
	s = fw_str_trim(s);
	return fw_str_ieq(s, FW_STR("yes")) || fw_str_ieq(s, FW_STR("true")) || fw_str_ieq(s, FW_STR("explicit")) ||
		fw_str_ieq(s, FW_STR("1"));
}

/* windows-1252 from 0x80 to 0x9f, as browsers map it. */
static const uint16_t high_1252[32] = {0x20ac, 0x81, 0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030,
	0x0160, 0x2039, 0x0152, 0x8d, 0x017d, 0x8f, 0x90, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
	0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0x9d, 0x017e, 0x0178};

/* The windows-1252 byte of cp; -1: none. */
static int byte_1252(uint32_t cp)
{
	int i;

	if (cp < 0x100)
		return (int)cp;
	for (i = 0; i < 32; i++) {
		if (high_1252[i] == cp)
			return 0x80 + i;
	}
	return -1;
}

/*
 * Decode UTF-8 that was taken for windows-1252 and encoded again: every character maps to a byte,
 * and the bytes are UTF-8. No genuine text is like that throughout. high: offset of the first byte
 * outside ASCII.
 */
static struct fw_str mojibake_decode(struct fw_builder *b, struct fw_str s, size_t high)
{
	size_t i, n = 0, took;
	char *out;
	int byte;

	/* a lead byte of UTF-8 is U+00C2 to U+00F4, which becomes C3 xx when encoded again */
	if ((unsigned char)s.p[high] != 0xc3 || high + 2 >= s.len || !(s.p[high + 2] & 0x80) ||
		(unsigned char)s.p[high + 2] == 0xc3)
		return s; /* another C3 would be a second lead byte */
	out = fw_arena_alloc(b->arena, s.len);
	if (!out)
		return s;
	for (i = 0; i < s.len; i += took) {
		byte = byte_1252(fw_utf8_get(s.p + i, s.len - i, &took));
		if (byte < 0)
			break;
		out[n++] = (char)byte;
	}
	if (i < s.len || fw_utf8_valid(out, n) != n) {
		fw_arena_trim(b->arena, out, s.len, 0);
		return s;
	}
	fw_build_problem(b, fw_build_offset(b), "double-encoded text", "decoded once more");
	return (struct fw_str){out, n};
}

/* Is there a control character from U+0080 to U+009F at i? */
static bool c1_at(struct fw_str s, size_t i)
{
	return (unsigned char)s.p[i] == 0xc2 && i + 1 < s.len && (unsigned char)s.p[i + 1] < 0xa0;
}

/* Decode C1 controls as windows-1252: they were written as "&#146;" or mistaken for ISO-8859-1. */
static struct fw_str decode_c1(struct fw_builder *b, struct fw_str s, size_t high)
{
	const char *p = s.p + high, *end = s.p + s.len;
	size_t i, n = 0;
	char *out;

	while (p < end && (p = memchr(p, 0xc2, (size_t)(end - p))) && !c1_at(s, (size_t)(p - s.p)))
		p++;
	if (!p || p >= end)
		return s;
	out = fw_arena_alloc(b->arena, s.len + s.len / 2 + 1);
	if (!out)
		return s;
	for (i = 0; i < s.len; i++) {
		if (c1_at(s, i))
			n += fw_utf8_put(out + n, high_1252[(unsigned char)s.p[++i] - 0x80]);
		else
			out[n++] = s.p[i];
	}
	fw_build_problem(
		b, fw_build_offset(b), "control characters in place of windows-1252 characters", "read as those");
	return (struct fw_str){out, n};
}

struct fw_str fw_build_fix_mojibake(struct fw_builder *b, struct fw_str s)
{
	size_t high = s.len ? (size_t)(scan_high(s.p, s.p + s.len) - s.p) : 0;
	struct fw_str t;

	if (high == s.len)
		return s;
	t = mojibake_decode(b, s, high);
	return t.p == s.p ? decode_c1(b, s, high) : t;
}

struct fw_str fw_build_base64(struct fw_builder *b, struct fw_str s)
{
	size_t size = s.len / 4 * 3 + 3;
	char *out = fw_arena_alloc(b->arena, size);
	uint32_t acc = 0;
	int bits = 0;
	size_t i, n = 0;

	if (!out)
		return FW_STR_NONE;
	for (i = 0; i < s.len && s.p[i] != '='; i++) {
		int c = (unsigned char)s.p[i], v;

		if (fw_is_alpha(c))
			v = c >= 'a' ? c - 'a' + 26 : c - 'A';
		else if (fw_is_digit(c))
			v = c - '0' + 52;
		else if (c == '+' || c == '-')
			v = 62;
		else if (c == '/' || c == '_')
			v = 63;
		else if (fw_is_space(c))
			continue;
		else
			return s;
		acc = acc << 6 | (uint32_t)v;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			out[n++] = (char)(acc >> bits);
		}
	}
	if (fw_utf8_valid(out, n) != n || memchr(out, 0, n)) {
		fw_arena_trim(b->arena, out, size, 0);
		return FW_STR_NONE;
	}
	return (struct fw_str){out, n};
}

/* ---- people ---------------------------------------------------------------------------------- */

/* Find a mail address in s and return its position in at and len. False: none. */
static bool mail_find(struct fw_str s, size_t *at, size_t *len)
{
	static const char extra[] = "!#$%&'*+-/=?^_`{|}~.";
	const char *sign = s.len ? memchr(s.p, '@', s.len) : NULL;
	size_t from, to;

	while (sign) {
		from = to = (size_t)(sign - s.p);
		while (from > 0 && (fw_is_alnum(s.p[from - 1]) || (s.p[from - 1] && strchr(extra, s.p[from - 1]))))
			from--;
		for (to++; to < s.len && (fw_is_alnum(s.p[to]) || s.p[to] == '-' || s.p[to] == '.' || (s.p[to] & 0x80));
			to++)
			;
		while (to > 0 && s.p[to - 1] == '.')
			to--;
		if ((size_t)(sign - s.p) > from && to > (size_t)(sign - s.p) + 1) {
			*at = from;
			*len = to - from;
			return true;
		}
		sign = memchr(sign + 1, '@', s.len - (size_t)(sign + 1 - s.p));
	}
	return false;
}

/* Trim a name after its mail address was cut out: remove brackets and dangling signs. */
static struct fw_str name_trim(struct fw_str s)
{
	for (;;) {
		struct fw_str t = fw_str_trim(s);

		if (t.len && memchr("<([,;:-", t.p[t.len - 1], 7))
			t.len--;
		else if (t.len && memchr(">)],;:-", t.p[0], 7)) {
			t.p++;
			t.len--;
		}
		if (t.len == s.len)
			return t;
		s = t;
	}
}

/* Skip what mailto: adds to an address: "a@example.org?subject=x". */
static struct fw_str mail_suffix_skip(struct fw_str s)
{
	size_t i = 0;

	while (s.len && s.p[0] == '?' && i < s.len && !fw_is_space(s.p[i]) && !memchr(">)]", s.p[i], 3))
		i++;
	return fw_str_sub(s, i, s.len);
}

/* Remove the first brackets of "(Name)", "(Name" and "(Name) (Editor)". */
static struct fw_str name_bare(struct fw_builder *b, struct fw_str s)
{
	const char *end, *text;
	struct fw_str name, rest;
	int depth = 1;

	if (s.len < 2 || s.p[0] != '(')
		return s;
	for (end = s.p + 1; end < s.p + s.len && depth > 0; end++)
		depth += *end == '(' ? 1 : *end == ')' ? -1 : 0;
	name = fw_str_trim((struct fw_str){s.p + 1, (size_t)(end - s.p) - 1 - (depth == 0)});
	rest = fw_str_trim(fw_str_sub(s, (size_t)(end - s.p), s.len));
	if (!rest.len || !name.len)
		return name.len ? name : rest;
	text = fw_arena_printf(b->arena, "%.*s %.*s", FW_STR_ARG(name), FW_STR_ARG(rest));
	return fw_str(text);
}

void fw_person_split(struct fw_builder *b, struct fw_str s, struct fw_person *p)
{
	struct fw_str before, after, name;
	size_t at, len;

	s = fw_build_line_text(b, fw_str_trim(s));
	if (!s.len)
		return;
	if (!mail_find(s, &at, &len)) {
		if (!p->name.len)
			p->name = s;
		return;
	}
	if (!p->email.len)
		p->email = fw_str_sub(s, at, at + len);
	before = fw_str_sub(s, 0, at);
	if (before.len >= 7 && fw_str_ieq(fw_str_sub(before, before.len - 7, before.len), FW_STR("mailto:")))
		before.len -= 7;
	before = name_trim(before);
	after = name_trim(mail_suffix_skip(fw_str_sub(s, at + len, s.len)));
	name = name_bare(b, before.len ? before : after);
	if (name.len > 1 && name.p[0] == '"' && name.p[name.len - 1] == '"')
		name = fw_str_trim(fw_str_sub(name, 1, name.len - 1));
	if (name.len && !p->name.len && !fw_str_ieq(name, p->email))
		p->name = name;
}

/* ---- extra members --------------------------------------------------------------------------- */

/*
 * Linear search in objects made of XML, which have few members. Those of a JSON Feed may have many,
 * and jansson has ensured that their names differ.
 */
static bool value_name_taken(const struct fw_value *in, struct fw_str name)
{
	const struct fw_value *v = in->type == FW_VALUE_OBJECT ? in->members.first : NULL;
	int n;

	for (n = 0; v && n < OBJECT_CHECKED; v = v->next, n++) {
		if (fw_str_eq(v->name, name))
			return true;
	}
	return false;
}

struct fw_value *fw_value_new(struct fw_builder *b, struct fw_value *in, const char *name, enum fw_value_type type)
{
	struct fw_value *v;

	/*
	 * a chapter in something other than a list would be a member without a name, which is not
	 * JSON
	 */
	if (!in || (in->type != FW_VALUE_ARRAY && (in->type != FW_VALUE_OBJECT || !name)) ||
		(name && value_name_taken(in, fw_str(name))))
		return NULL;
	v = FW_NEW(b, struct fw_value);
	if (!v)
		return NULL;
	v->type = type;
	v->name = fw_str(name);
	if (in->members.last)
		in->members.last->next = v;
	else
		in->members.first = v;
	in->members.last = v;
	return v;
}

struct fw_value *fw_value_find(const struct fw_value *in, const char *name)
{
	struct fw_str key = fw_str(name);
	struct fw_value *v;

	for (v = fw_value_members(in); v; v = v->next) {
		if (fw_str_eq(v->name, key))
			return v;
	}
	return NULL;
}

struct fw_value *fw_value_object(struct fw_builder *b, struct fw_value **root, const char *name)
{
	struct fw_value *v;

	if (!*root) {
		*root = FW_NEW(b, struct fw_value);
		if (!*root)
			return NULL;
		(*root)->type = FW_VALUE_OBJECT;
	}
	if (!name[0])
		return *root;
	v = fw_value_find(*root, name);
	return v ? v : fw_value_new(b, *root, name, FW_VALUE_OBJECT);
}

struct fw_value *fw_value_array(struct fw_builder *b, struct fw_value *in, const char *name)
{
	struct fw_value *v = fw_value_find(in, name);

	return v && v->type == FW_VALUE_ARRAY ? v : fw_value_new(b, in, name, FW_VALUE_ARRAY);
}

void fw_value_str(struct fw_builder *b, struct fw_value *in, const char *name, struct fw_str s)
{
	struct fw_value *v = s.p ? fw_value_new(b, in, name, FW_VALUE_STRING) : NULL;

	if (v)
		v->string = s;
}

void fw_value_int(struct fw_builder *b, struct fw_value *in, const char *name, int64_t n)
{
	struct fw_value *v = n != FW_NO_NUMBER ? fw_value_new(b, in, name, FW_VALUE_INTEGER) : NULL;

	if (v)
		v->integer = n;
}

void fw_value_num(struct fw_builder *b, struct fw_value *in, const char *name, double n)
{
	struct fw_value *v = fw_value_new(b, in, name, FW_VALUE_NUMBER);

	if (v)
		v->number = n;
}

void fw_value_date(struct fw_builder *b, struct fw_value *in, const char *name, int64_t at_ms)
{
	char text[FW_RFC3339_MAX];

	if (at_ms != FW_NO_DATE)
		fw_value_str(b, in, name, fw_build_dup(b, fw_str(fw_rfc3339(text, at_ms))));
}

void fw_value_bool(struct fw_builder *b, struct fw_value *in, const char *name, bool on)
{
	struct fw_value *v = fw_value_new(b, in, name, FW_VALUE_BOOL);

	if (v)
		v->integer = on;
}
