/* SPDX-License-Identifier: ISC */
/*
 * Two passes. fw_html_anchors_find() walks the tokens before anything is written, and notes a hash
 * of each name that the content defines and of each that its links refer to; the writer then asks
 * for each id and each link. Most contents have no such link: may_refer() finds that out by a
 * search for '#', and both lists stay empty.
 *
 * A name counts only if it is in both lists, so an id and the links to it change together; one that
 * has the prefix already is kept without them. Names are compared without character references,
 * percent escapes and prefix.
 */
#include <stdlib.h>

#include "base/hash.h"
#include "base/url.h"
#include "parse/html/anchor.h"
#include "parse/html/token.h"
#include "parse/html/value.h"

#define NAMES_MAX 4096 /* of each kind in one content; further names are ignored */
#define NAME_BYTES 128

static const struct fw_str PREFIX = {FW_HTML_ANCHOR_PREFIX, sizeof(FW_HTML_ANCHOR_PREFIX) - 1};

/* The name without the prefix; absent if it is not to be kept. A name with '%' is ambiguous. */
static struct fw_str anchor_name(struct fw_str s)
{
	if (fw_str_starts(s, PREFIX))
		s = fw_str_sub(s, PREFIX.len, s.len);
	for (size_t i = 0; i < s.len; i++) {
		if ((unsigned char)s.p[i] <= ' ' || s.p[i] == 0x7f || s.p[i] == '%')
			return FW_STR_NONE;
	}
	return s.len && s.len <= NAME_BYTES ? s : FW_STR_NONE;
}

/* A URL as it would be written: without controls. */
static struct fw_str anchor_url_clean(struct fw_arena *a, struct fw_str s)
{
	char *d = fw_url_has_control(s) ? fw_arena_alloc(a, s.len) : NULL;
	size_t n = 0;

	if (!d)
		return s;
	for (size_t i = 0; i < s.len; i++) {
		if ((unsigned char)s.p[i] >= ' ' && s.p[i] != 0x7f)
			d[n++] = s.p[i];
	}
	return (struct fw_str){d, n};
}

/*
 * The decoded fragment of a link into its own document. Taken from the link as it would be written.
 */
static struct fw_str anchor_fragment(struct fw_arena *a, struct fw_str base, struct fw_str href)
{
	struct fw_str fragment, base_fragment;

	if (!href.len || !memchr(href.p, '#', href.len))
		return FW_STR_NONE;
	href = fw_url_resolve(a, FW_STR_NONE, href);
	if (href.len && href.p[0] != '#')
		href = fw_html_url(a, base, href, false, false);
	href = fw_str_split(anchor_url_clean(a, href), '#', &fragment);
	if (!fragment.len || (href.len && !fw_str_eq(href, fw_str_split(base, '#', &base_fragment))))
		return FW_STR_NONE;
	return fw_html_percent_decode(a, fragment);
}

static uint64_t anchor_hash(struct fw_str name)
{
	return fw_hash64(name.p, name.len);
}

static int anchor_hash_compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static bool anchors_have(const uint64_t *list, size_t n, struct fw_str name)
{
	uint64_t hash = anchor_hash(name);

	return n && bsearch(&hash, list, n, sizeof(hash), anchor_hash_compare);
}

/* Does s end just where an href's value starts? */
static bool ends_in_href(struct fw_str s)
{
	s.len -= s.len && (s.p[s.len - 1] == '"' || s.p[s.len - 1] == '\'');
	while (s.len && fw_is_space((unsigned char)s.p[s.len - 1]))
		s.len--;
	if (!s.len || s.p[s.len - 1] != '=')
		return false;
	s.len--;
	while (s.len && fw_is_space((unsigned char)s.p[s.len - 1]))
		s.len--;
	return s.len > 4 && fw_str_ieq(fw_str_sub(s, s.len - 4, s.len), FW_STR("href"));
}

/* A quick check: is there a '#' where a link's fragment may start? Most contents have none. */
static bool may_refer(struct fw_str html, struct fw_str base)
{
	const char *p = html.p, *end = html.p + html.len;

	for (; (p = memchr(p, '#', (size_t)(end - p))) != NULL; p++) {
		struct fw_str before = {html.p, (size_t)(p - html.p)};

		if (before.len && p[-1] != '&' && (ends_in_href(before) || (base.len && fw_str_ends(before, base))))
			return true;
	}
	return false;
}

/* A name that has the prefix is kept in any case, so it is not added. */
static void anchors_add(uint64_t *list, size_t *n, struct fw_str s)
{
	struct fw_str name = fw_str_starts(s, PREFIX) ? FW_STR_NONE : anchor_name(s);

	if (name.len && *n < NAMES_MAX)
		list[(*n)++] = anchor_hash(name);
}

/* Add the names that a tag defines and the one that it refers to. */
static void anchors_add_tag(
	struct fw_arena *a, struct fw_str base, const struct fw_html_token *t, struct fw_html_anchors *out)
{
	struct fw_str attrs = t->attrs, name, value;

	while (fw_html_attr(&attrs, &name, &value)) {
		if (fw_str_ieq(name, FW_STR("id")) || (t->el == FW_E_A && fw_str_ieq(name, FW_STR("name"))))
			anchors_add(out->id, &out->id_n, fw_html_attr_decode(a, value));
		else if (t->el == FW_E_A && fw_str_ieq(name, FW_STR("href")))
			anchors_add(out->ref, &out->ref_n, anchor_fragment(a, base, fw_html_attr_decode(a, value)));
	}
}

void fw_html_anchors_find(struct fw_arena *a, struct fw_str html, struct fw_str base, struct fw_html_anchors *out)
{
	struct fw_html_tokenizer z;
	struct fw_html_token t;
	struct fw_str fragment;

	*out = (struct fw_html_anchors){.id_n = 0};
	if (!may_refer(html, fw_str_split(base, '#', &fragment)))
		return;
	out->id = fw_arena_mul(a, NAMES_MAX, sizeof(*out->id), 0);
	out->ref = fw_arena_mul(a, NAMES_MAX, sizeof(*out->ref), 0);
	if (!out->id || !out->ref)
		return;
	fw_html_start(&z, html);
	for (fw_html_next(&z, &t); t.kind != FW_HTML_END; fw_html_next(&z, &t)) {
		unsigned flags = fw_el_flags(t.el);

		if (t.kind != FW_HTML_OPEN)
			continue;
		if (flags & FW_EL_DROP)
			fw_html_skip(&z, &t);
		if (flags & FW_EL_KEEP && t.attrs.len)
			anchors_add_tag(a, base, &t, out);
	}
	qsort(out->id, out->id_n, sizeof(*out->id), anchor_hash_compare);
	qsort(out->ref, out->ref_n, sizeof(*out->ref), anchor_hash_compare);
}

static struct fw_str anchor_prefixed(struct fw_arena *a, const char *before, struct fw_str name)
{
	return fw_str(fw_arena_printf(a, "%s" FW_HTML_ANCHOR_PREFIX "%.*s", before, FW_STR_ARG(name)));
}

static bool anchors_known(const struct fw_html_anchors *in, struct fw_str name)
{
	return anchors_have(in->id, in->id_n, name) && anchors_have(in->ref, in->ref_n, name);
}

struct fw_str fw_html_anchor_id(struct fw_arena *a, const struct fw_html_anchors *in, struct fw_str id)
{
	struct fw_str name = anchor_name(id);

	return name.len && (fw_str_starts(id, PREFIX) || anchors_known(in, name)) ? anchor_prefixed(a, "", name) :
										    FW_STR_NONE;
}

struct fw_str fw_html_anchor_ref(
	struct fw_arena *a, const struct fw_html_anchors *in, struct fw_str base, struct fw_str href)
{
	struct fw_str fragment = anchor_fragment(a, base, href), name = anchor_name(fragment);

	return name.len && (fw_str_starts(fragment, PREFIX) || anchors_known(in, name)) ?
		anchor_prefixed(a, "#", name) :
		FW_STR_NONE;
}
