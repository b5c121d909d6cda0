/* SPDX-License-Identifier: ISC */
/*
 * Converts HTML to plain text from its tokens: tags are removed, references decoded, white space
 * collapsed.
 */
#include "parse/charset/entity.h"
#include "parse/charset/scan.h"
#include "parse/html/text.h"
#include "parse/html/token.h"

/* Would a browser decode this reference? "&#...", or a known name with a semicolon. */
static bool is_reference(struct fw_str s)
{
	size_t n = 1;
	uint32_t cp[2];

	if (s.len > 2 && s.p[1] == '#')
		return fw_is_digit(s.p[2]) ||
			((s.p[2] | 32) == 'x' && s.len > 3 && fw_hexval((unsigned char)s.p[3]) >= 0);
	while (n < s.len && n < 40 && fw_is_alnum((unsigned char)s.p[n]))
		n++;
	return n > 1 && n < s.len && s.p[n] == ';' && fw_entity_find(fw_str_sub(s, 1, n), cp) > 0;
}

static bool has_reference(struct fw_str s)
{
	const char *end = s.p + s.len, *p = s.p;

	while (p < end && (p = memchr(p, '&', (size_t)(end - p)))) {
		if (is_reference((struct fw_str){p, (size_t)(end - p)}))
			return true;
		p++;
	}
	return false;
}

bool fw_html_has_markup(struct fw_str s)
{
	struct fw_html_tokenizer z;
	struct fw_html_token t;

	if (!s.len || (!memchr(s.p, '<', s.len) && !memchr(s.p, '&', s.len)))
		return false;
	fw_html_start(&z, s);
	for (fw_html_next(&z, &t); t.kind != FW_HTML_END; fw_html_next(&z, &t)) {
		if (t.kind == FW_HTML_TEXT ? has_reference(t.text) : t.kind == FW_HTML_COMMENT || t.el)
			return true;
	}
	return false;
}

struct squeeze {
	char *p;
	size_t n;
	bool gap; /* write a space before the next character */
};

static void squeeze(struct squeeze *q, struct fw_str s)
{
	const char *p = s.p, *end = s.p + s.len, *from;

	while (p < end) {
		if (fw_is_space((unsigned char)*p)) {
			q->gap = true;
			p++;
			continue;
		}
		if (q->gap && q->n)
			q->p[q->n++] = ' ';
		/*
		 * words with single spaces; the loop above handles what stopped it, including a
		 * space at the end
		 */
		from = p;
		p = scan_loose(p + 1, end);
		p -= p[-1] == ' ';
		memcpy(q->p + q->n, from, (size_t)(p - from));
		q->n += (size_t)(p - from);
		q->gap = false;
	}
}

/* Would squeezing leave s, which is trimmed, unchanged? */
static bool is_plain(struct fw_str s)
{
	const char *end = s.p + s.len;

	return scan_markup(s.p, end) == end && scan_loose(s.p, end) == end;
}

/* A reference of 5 bytes may become 6. */
static size_t text_room(struct fw_str html)
{
	const char *p = html.p, *end = html.p + html.len;
	size_t n = html.len + 2;

	for (; (p = memchr(p, '&', (size_t)(end - p))) != NULL; p++)
		n++;
	return n;
}

struct fw_str fw_html_text(struct fw_arena *a, struct fw_str html)
{
	struct fw_html_tokenizer z;
	struct fw_html_token t;
	struct squeeze q = {0};
	size_t cap;

	html = fw_str_trim(html);
	if (!html.p || is_plain(html))
		return html;
	cap = text_room(html);
	q.p = fw_arena_alloc(a, cap);
	if (!q.p)
		return FW_STR_NONE;
	fw_html_start(&z, html);
	for (fw_html_next(&z, &t); t.kind != FW_HTML_END; fw_html_next(&z, &t)) {
		unsigned flags = fw_el_flags(t.el);

		if (t.kind == FW_HTML_TEXT || (t.kind == FW_HTML_RAW && t.el == FW_E_TEXTAREA))
			squeeze(&q, memchr(t.text.p, '&', t.text.len) ? fw_entity_decode(a, t.text) : t.text);
		else if (t.kind == FW_HTML_RAW && t.el == FW_E_XMP)
			squeeze(&q, t.text);
		else if (t.kind == FW_HTML_OPEN && flags & FW_EL_DROP)
			fw_html_skip(&z, &t);
		if (flags & FW_EL_BLOCK)
			q.gap = true;
	}
	q.p[q.n] = '\0';
	fw_arena_trim(a, q.p, cap, q.n + 1);
	return (struct fw_str){q.p, q.n};
}
