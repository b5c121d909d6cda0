/* SPDX-License-Identifier: ISC */
/*
 * Repairs common JSON errors: raw control characters in strings, invalid escapes, NUL and lone
 * surrogates, numbers that exceed a machine word, superfluous commas, comments, NaN and similar.
 * One pass; the output is at most twice as long as the input.
 *
 * fw_json_limit_members() limits the number of members.
 */
#include "base/str.h"
#include "parse/feed/json_repair.h"

struct repair {
	struct fw_str s;
	size_t i;
	char *out;
	size_t n;
	bool comma; /* write one before the next value */
};

static void repair_put(struct repair *r, const char *p, size_t n)
{
	memcpy(r->out + r->n, p, n);
	r->n += n;
}

static int hex4_parse(const struct repair *r, size_t at)
{
	int v = 0, d;
	size_t k;

	if (at + 4 > r->s.len)
		return -1;
	for (k = 0; k < 4; k++) {
		d = fw_hexval((unsigned char)r->s.p[at + k]);
		if (d < 0)
			return -1;
		v = v * 16 + d;
	}
	return v;
}

/* At a backslash. Moves i past the escape. */
static void repair_escape(struct repair *r)
{
	static const char replacement[] = "\\ufffd";
	int c = r->i + 1 < r->s.len ? (unsigned char)r->s.p[r->i + 1] : 0, unit;

	if (c == 'u' && (unit = hex4_parse(r, r->i + 2)) >= 0) {
		int low = unit >= 0xd800 && unit < 0xdc00 && r->i + 7 < r->s.len && r->s.p[r->i + 6] == '\\' &&
				r->s.p[r->i + 7] == 'u' ?
			hex4_parse(r, r->i + 8) :
			-1;

		if (low >= 0xdc00 && low < 0xe000) {
			repair_put(r, r->s.p + r->i, 12);
			r->i += 12;
			return;
		}
		if (unit >= 0xd800 && unit < 0xe000)
			repair_put(r, replacement, 6);
		else if (unit)
			repair_put(r, r->s.p + r->i, 6);
		r->i += 6;
	} else if (c && memchr("\"\\/bfnrt", c, 8)) {
		repair_put(r, r->s.p + r->i, 2);
		r->i += 2;
	} else {
		/* the character after it stands for itself; at the end of the text there is none */
		r->i++;
	}
}

/* At an opening quote. An unterminated string stays open: the caller cuts off the rest. */
static void repair_string(struct repair *r)
{
	repair_put(r, "\"", 1);
	for (r->i++; r->i < r->s.len;) {
		unsigned char c = (unsigned char)r->s.p[r->i];

		if (c == '\\') {
			repair_escape(r);
			continue;
		}
		r->i++;
		if (c == '"') {
			repair_put(r, "\"", 1);
			return;
		}
		if (c == '\n')
			repair_put(r, "\\n", 2);
		else if (c == '\t')
			repair_put(r, "\\t", 2);
		else if (c >= ' ')
			repair_put(r, (const char *)&c, 1);
	}
}

static bool is_word_char(int c)
{
	return fw_is_alnum(c) || c == '-' || c == '+' || c == '.' || c == '_';
}

/*
 * Copy a number or name. Integers that exceed a machine word become strings, which keep all digits.
 */
static void repair_word(struct repair *r)
{
	static const char *const gone[] = {"NaN", "Infinity", "-Infinity", "undefined", "None", "nil"};
	struct fw_str w;
	size_t from = r->i, digits = 0, k;
	int64_t n;

	while (r->i < r->s.len && is_word_char((unsigned char)r->s.p[r->i]))
		digits += (size_t)fw_is_digit((unsigned char)r->s.p[r->i++]);
	w = fw_str_sub(r->s, from, r->i);
	for (k = 0; k < FW_N(gone); k++) {
		if (fw_str_eq(w, fw_str(gone[k]))) {
			repair_put(r, "null", 4);
			return;
		}
	}
	if (fw_str_eq(w, FW_STR("True")) || fw_str_eq(w, FW_STR("False"))) {
		repair_put(r, w.p[0] == 'T' ? "true" : "false", w.len);
	} else if (digits > 18 && digits + (w.p[0] == '-') == w.len && !fw_str_int(w, &n)) {
		repair_put(r, "\"", 1);
		repair_put(r, w.p, w.len);
		repair_put(r, "\"", 1);
	} else {
		repair_put(r, w.p, w.len);
	}
}

/* At a slash. Skip the comment, or the slash if no comment starts there. */
static void repair_comment(struct repair *r)
{
	struct fw_str rest = fw_str_sub(r->s, r->i, r->s.len);
	const char *end = NULL;

	if (fw_str_starts(rest, FW_STR("/*")))
		end = fw_str_find(rest, FW_STR("*/"));
	else if (fw_str_starts(rest, FW_STR("//")))
		end = memchr(rest.p, '\n', rest.len);
	else {
		r->i++;
		return;
	}
	r->i = end ? (size_t)(end - r->s.p) + (rest.p[1] == '*' ? 2 : 1) : r->s.len;
}

struct fw_str fw_json_repair(struct fw_arena *a, struct fw_str s)
{
	struct repair r = {.s = s};

	/* worst case: one byte becomes two (a raw newline), three become four (NaN) */
	r.out = fw_arena_mul(a, s.len, 2, 8);
	if (!r.out)
		return FW_STR_NONE;
	while (r.i < s.len) {
		int c = (unsigned char)s.p[r.i];

		if (c == '/') {
			repair_comment(&r);
			continue;
		}
		if (c == ',') {
			r.comma = true;
			r.i++;
			continue;
		}
		if (c <= ' ') {
			r.i++;
			if (fw_is_space(c) && c != '\f')
				repair_put(&r, (const char *)&s.p[r.i - 1], 1);
			continue;
		}
		if (r.comma && c != '}' && c != ']')
			repair_put(&r, ",", 1);
		r.comma = false;
		if (c == '"') {
			repair_string(&r);
		} else if (is_word_char(c)) {
			repair_word(&r);
		} else {
			repair_put(&r, s.p + r.i, 1);
			r.i++;
		}
	}
	return (struct fw_str){r.out, r.n};
}

/* ---- too many members ------------------------------------------------------------------------ */

#define THIN_DEPTH 64 /* members deeper down are not counted */

const char *fw_json_string_end(const char *p, const char *end)
{
	for (const char *begin = p++; (p = memchr(p, '"', (size_t)(end - p))) != NULL; p++) {
		const char *q = p;

		while (q - 1 > begin && q[-1] == '\\')
			q--;
		if ((p - q) % 2 == 0)
			return p + 1;
	}
	return NULL;
}

/*
 * Upper bounds of jansson's memory on 64 bits: an empty object 280 bytes, a list 200, a member's
 * slot 50 to 100, a string 80 plus its bytes.
 */
#define OBJECT_BYTES 400
#define LIST_BYTES 300
#define MEMBER_BYTES 120

bool fw_json_fits(struct fw_arena *a, struct fw_str s)
{
	const char *end = s.p + s.len, *p;
	size_t left = a->used_bytes < a->max_bytes ? a->max_bytes - a->used_bytes : 0, cost = s.len;

	/* it would fit even if every byte were a bracket */
	if (!a->max_bytes || s.len <= left / (OBJECT_BYTES + 1))
		return true;
	for (p = s.p; p < end && cost <= left; p++) {
		if (*p == '"') {
			p = fw_json_string_end(p, end);
			if (!p) /* jansson stops here */
				break;
			p--;
		} else if (*p == '{') {
			cost += OBJECT_BYTES;
		} else if (*p == '[') {
			cost += LIST_BYTES;
		} else if (*p == ',' || *p == ':') {
			cost += MEMBER_BYTES;
		}
	}
	if (cost <= left)
		return true;
	a->failed = a->full = true;
	return false;
}

static const char *string_skip(const char *p, const char *end)
{
	p = fw_json_string_end(p, end);
	return p ? p : end;
}

/*
 * The bracket that closes the list or object around p, which is a comma. Each comma on the way is
 * one member.
 */
static const char *members_skip(const char *p, const char *end, size_t *n)
{
	size_t depth = 0;

	while (p < end) {
		switch (*p) {
		case '"':
			p = string_skip(p, end);
			continue;
		case ',':
			*n += depth == 0;
			break;
		case '[':
		case '{':
			depth++;
			break;
		case ']':
		case '}':
			if (depth-- == 0)
				return p;
			break;
		}
		p++;
	}
	return end;
}

static bool has_commas(struct fw_str s, size_t n)
{
	const char *p = s.p, *end = s.p + s.len;

	for (; n && p < end && (p = memchr(p, ',', (size_t)(end - p))) != NULL; p++)
		n--;
	return n == 0;
}

struct fw_str fw_json_limit_members(struct fw_arena *a, struct fw_str s, size_t max, size_t *dropped)
{
	const char *p = s.p, *end = s.p + s.len, *from = s.p;
	size_t n[THIN_DEPTH + 1] = {0}, depth = 0;
	char *out, *to;

	*dropped = 0;
	if (!has_commas(s, max))
		return s;
	to = out = fw_arena_alloc(a, s.len);
	if (!out)
		return FW_STR_NONE;
	while (p < end) {
		switch (*p) {
		case '"':
			p = string_skip(p, end);
			continue;
		case '[':
		case '{':
			if (++depth <= THIN_DEPTH)
				n[depth] = 1;
			break;
		case ']':
		case '}':
			depth -= depth > 0;
			break;
		case ',':
			if (!depth || depth > THIN_DEPTH || n[depth]++ < max)
				break;
			memcpy(to, from, (size_t)(p - from));
			to += p - from;
			from = p = members_skip(p, end, dropped);
			continue;
		}
		p++;
	}
	memcpy(to, from, (size_t)(end - from));
	to += end - from;
	fw_arena_trim(a, out, s.len, *dropped ? (size_t)(to - out) : 0);
	return *dropped ? (struct fw_str){out, (size_t)(to - out)} : s;
}
