/* SPDX-License-Identifier: ISC */
/*
 * The HTTP Link header (RFC 8288 section 3, appendix B.2): <target>; parameter; parameter="quoted",
 * ... Unreadable parts are skipped up to the next comma. A link with an anchor has another context
 * and is ignored.
 */
#include "base/url.h"
#include "parse/html/link_header.h"

struct link_cursor {
	const char *at, *end;
};

static void link_spaces_skip(struct link_cursor *c)
{
	while (c->at < c->end && fw_is_space((unsigned char)*c->at))
		c->at++;
}

static bool link_char_take(struct link_cursor *c, int ch)
{
	link_spaces_skip(c);
	if (c->at >= c->end || *c->at != ch)
		return false;
	c->at++;
	return true;
}

/* A token, or a quoted string without its backslashes. */
static struct fw_str link_value_read(struct fw_arena *a, struct link_cursor *c)
{
	const char *start;
	size_t n = 0;
	char *d;

	if (!link_char_take(c, '"')) {
		for (start = c->at; c->at < c->end && *c->at != ';' && *c->at != ','; c->at++)
			;
		return fw_str_trim((struct fw_str){start, (size_t)(c->at - start)});
	}
	for (start = c->at; c->at < c->end && *c->at != '"'; c->at++) {
		if (*c->at == '\\' && c->at + 1 < c->end)
			c->at++;
	}
	d = fw_arena_alloc(a, (size_t)(c->at - start) + 1);
	if (!d)
		return FW_STR_NONE;
	for (const char *p = start; p < c->at; p++) {
		if (*p == '\\' && p + 1 < c->at)
			p++;
		d[n++] = *p;
	}
	if (c->at < c->end)
		c->at++;
	return (struct fw_str){d, n};
}

/* Move past the next comma outside quotes. */
static void link_next(struct link_cursor *c)
{
	for (bool quoted = false; c->at < c->end; c->at++) {
		if (*c->at == '"')
			quoted = !quoted;
		else if (*c->at == '\\' && quoted && c->at + 1 < c->end)
			c->at++;
		else if (*c->at == ',' && !quoted)
			break;
	}
	if (c->at < c->end)
		c->at++;
}

static bool link_read(struct fw_arena *a, struct link_cursor *c, struct fw_link *l)
{
	bool anchored = false;
	const char *close;

	if (!link_char_take(c, '<') || !(close = memchr(c->at, '>', (size_t)(c->end - c->at))))
		return false;
	l->href = (struct fw_str){c->at, (size_t)(close - c->at)};
	l->length = FW_NO_NUMBER;
	c->at = close + 1;
	while (link_char_take(c, ';')) {
		struct fw_str name = {NULL, 0}, v = FW_STR("");

		link_spaces_skip(c);
		for (name.p = c->at; c->at < c->end && *c->at != '=' && *c->at != ';' && *c->at != ',' && *c->at != ' ';
			c->at++)
			;
		name.len = (size_t)(c->at - name.p);
		if (link_char_take(c, '='))
			v = link_value_read(a, c);
		if (fw_str_ieq(name, FW_STR("rel")) && !l->rel.p) /* the first one wins */
			l->rel = v;
		else if (fw_str_ieq(name, FW_STR("type")) && !l->type.p)
			l->type = v;
		else if (fw_str_ieq(name, FW_STR("title")) && !l->title.p)
			l->title = v;
		else if (fw_str_ieq(name, FW_STR("hreflang")) && !l->hreflang.p)
			l->hreflang = v;
		else if (fw_str_ieq(name, FW_STR("anchor")))
			anchored = v.len > 0;
	}
	return !anchored;
}

bool fw_html_rel_has(struct fw_str rel, struct fw_str word)
{
	while (rel.len) {
		size_t n = 0;

		while (n < rel.len && !fw_is_space((unsigned char)rel.p[n]))
			n++;
		if (fw_str_ieq(fw_str_sub(rel, 0, n), word))
			return true;
		rel = fw_str_trim(fw_str_sub(rel, n, rel.len));
	}
	return false;
}

struct fw_link *fw_link_header(struct fw_arena *a, struct fw_str header, struct fw_str base, struct fw_str rel)
{
	struct link_cursor c = {header.p, header.p + header.len};
	struct fw_link *first = NULL, **tail = &first;

	for (; c.at < c.end; link_next(&c)) {
		struct fw_link link = {0}, *kept;

		if (!link_read(a, &c, &link) || (rel.p && !fw_html_rel_has(fw_str_trim(link.rel), rel)))
			continue;
		link.href = fw_url_resolve(a, base, link.href);
		kept = fw_arena_alloc(a, sizeof(*kept));
		if (!kept)
			break;
		*kept = link;
		*tail = kept;
		tail = &kept->next;
	}
	return first;
}
