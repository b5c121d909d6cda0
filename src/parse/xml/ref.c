/* SPDX-License-Identifier: ISC */
/*
 * References (&lt; &#8217; &name;) and attribute values.
 *
 * References that XML rejects but a person understands are accepted: HTML's names without a DTD,
 * numbers without a semicolon, a character written as two surrogates. Any other '&' is text.
 * Internal entities are expanded while their total stays below limits.max_entity_ratio times the
 * document. Nothing is ever loaded.
 */
#include "base/utf8.h"
#include "parse/charset/entity.h"
#include "parse/charset/scan.h"
#include "parse/xml/ref.h"
#include "parse/xml/util.h"

#define MAX_ENTITY_DEPTH 40
#define REF_COST 16 /* charged per reference, so that empty entities count too */

/* ---- single characters ----------------------------------------------------------------------- */

/* Room for up to 16 bytes that live as long as the arena. */
static char *ref_scratch(struct xml_state *s, size_t n)
{
	char *p = s->scratch;

	if ((size_t)(s->scratch_end - p) < n) {
		p = fw_arena_alloc(s->x->arena, 256);
		if (!p)
			return NULL;
		s->scratch_end = p + 256;
	}
	s->scratch = p + n;
	return p;
}

static int char_text(struct xml_state *s, const uint32_t *cp, int n, struct xml_ref *r)
{
	char utf8[8];
	size_t len = 0;
	char *p;

	for (int i = 0; i < n; i++)
		len += fw_utf8_put(utf8 + len, cp[i]);
	p = ref_scratch(s, len);
	if (!p)
		return fw_xml_memory(s);
	memcpy(p, utf8, len);
	r->kind = XML_REF_CHAR;
	r->text = (struct fw_str){p, len};
	return 0;
}

/* Read "&#..."; p is at the '&'. */
static int char_ref(struct xml_state *s, const char *p, struct xml_ref *r)
{
	const char *q = p + 2, *low;
	uint32_t cp, cp2;

	if (!fw_entity_number(&q, s->end, &cp)) {
		fw_xml_repair(s, p, "\"&#\" without a number", "taken as text");
		r->kind = XML_REF_LITERAL;
		r->end = p + 2;
		return 0;
	}
	if (p[2] == 'X')
		fw_xml_repair(s, p, "\"&#X\" instead of \"&#x\"", "taken for it");
	if (q < s->end && *q == ';')
		q++;
	else
		fw_xml_repair(s, p, "a character reference without a semicolon", "read as if there were one");
	r->end = q;
	if (!fw_xml_char_ok(cp)) {
		low = q + 2;
		if (cp >= 0xd800 && cp < 0xdc00 && s->end - q >= 4 && q[0] == '&' && q[1] == '#' &&
			fw_entity_number(&low, s->end, &cp2) && cp2 >= 0xdc00 && cp2 < 0xe000 && low < s->end &&
			*low == ';') {
			fw_xml_repair(s, p, "a character written as two surrogates", "put together");
			cp = 0x10000 + ((cp - 0xd800) << 10) + (cp2 - 0xdc00);
			r->end = low + 1;
		} else if (cp == 0 || cp >= 0x110000 || (cp >= 0xd800 && cp < 0xe000)) {
			fw_xml_repair(s, p, "a reference to an invalid character", "U+FFFD in its place");
			cp = 0xfffd;
		} else {
			fw_xml_repair(s, p, "a reference to a character that XML forbids", "left out");
			r->kind = XML_REF_CHAR;
			r->text = FW_STR("");
			return 0;
		}
	}
	return char_text(s, &cp, 1, r);
}

/* ---- entities -------------------------------------------------------------------------------- */

static int entity_undeclared(struct xml_state *s, const char *p, struct fw_str name, struct xml_ref *r)
{
	/* an unread DTD may declare it (XML 1.0 section 4.1) */
	bool fine = s->foreign && !s->standalone;
	uint32_t cp[2];
	int n = fw_entity_find(name, cp);

	s->x->skipped += fine;
	(fine ? fw_xml_note : fw_xml_repair)(
		s, p, "an entity that is not declared", n ? "read as HTML's" : "taken as text");
	if (n)
		return char_text(s, cp, n, r);
	r->kind = XML_REF_LITERAL;
	return 0;
}

static void entity_declared(struct xml_state *s, const char *p, struct xml_entity *e, struct xml_ref *r, bool in_value)
{
	r->kind = XML_REF_SKIPPED;
	r->entity = e;
	if (e->unparsed || (e->external && in_value)) {
		fw_xml_repair(s, p, "a reference to an entity that is not text here", "left out");
		return;
	}
	if (e->external) {
		fw_xml_note(s, p, "an external entity", "never loaded");
		return;
	}
	if (e->open) {
		fw_xml_repair(s, p, "a recursive entity", "left out");
		return;
	}
	s->expanded += e->text.len + REF_COST;
	if (s->entity_depth >= MAX_ENTITY_DEPTH || s->expanded > s->max_expanded) {
		s->expanded -= e->text.len + REF_COST;
		fw_xml_note(s, p, "entities that expand past the limit (max_entity_ratio)", "left out");
		s->x->skipped++;
		return;
	}
	r->kind = XML_REF_ENTITY;
}

int fw_xml_ref(struct xml_state *s, const char *p, struct xml_ref *r, bool in_value)
{
	const char *end = s->end, *q = p + 1;
	SCAN_SET_WHOLE struct scan_name n;
	struct fw_str name;
	struct xml_entity *e;
	size_t len = 0;

	r->kind = XML_REF_CHAR;
	r->text = (struct fw_str){fw_xml_predefined(p, end, &len), 1};
	r->end = p + len;
	if (r->text.p)
		return 0;
	if (q < end && *q == '#')
		return char_ref(s, p, r);
	n = scan_name(q, end);
	name = (struct fw_str){q, (size_t)(n.end - q)};
	if (name.len == 0 || !scan_is(*q, SCAN_START) || n.end == end || *n.end != ';') {
		fw_xml_repair(s, p, "an '&' that starts no reference", "taken as text");
		r->kind = XML_REF_LITERAL;
		r->end = q;
		return 0;
	}
	r->end = n.end + 1;
	if (n.colon || (n.high && !fw_xml_name_ok(q, n.end)))
		fw_xml_repair(s, p, "an entity's name with a character that names cannot have", "kept");
	e = (struct xml_entity *)fw_xml_table_find(&s->entities, s->seed, name);
	if (!e)
		return entity_undeclared(s, p, name, r);
	entity_declared(s, p, e, r, in_value);
	return 0;
}

void fw_xml_enter(struct xml_state *s, const char *p, struct xml_entity *e)
{
	if (!s->in_entity)
		s->ref_offset = xml_at(s, p);
	s->in_entity = true;
	s->begin = e->text.p;
	s->end = s->begin + e->text.len;
	s->entity_depth++;
	e->open = true;
}

void fw_xml_leave(struct xml_state *s, struct xml_entity *e, const char *begin, const char *end, bool in_entity)
{
	e->open = false;
	s->entity_depth--;
	s->begin = begin;
	s->end = end;
	s->in_entity = in_entity;
}

/* ---- attribute values ------------------------------------------------------------------------ */

struct value_out {
	char *p;
	size_t len, cap;
};

static int ref_value_put(struct xml_state *s, struct value_out *o, const char *p, size_t n)
{
	if (n > o->cap - o->len) {
		size_t cap = FW_MAX(o->cap * 2, o->len + n);
		char *q = fw_arena_grow(s->x->arena, o->p, o->cap, cap);

		if (!q)
			return fw_xml_memory(s);
		o->p = q;
		o->cap = cap;
	}
	if (n)
		memcpy(o->p + o->len, p, n);
	o->len += n;
	return 0;
}

static int ref_value_decode(struct xml_state *s, const char *p, const char *to, struct value_out *o);

static int decode_ref(struct xml_state *s, const char **pp, const char *to, struct value_out *o)
{
	const char *p = *pp, *begin = s->begin, *end = s->end;
	bool in_entity = s->in_entity;
	struct xml_ref r;
	int rc;

	s->end = to; /* a reference does not extend beyond the value */
	rc = fw_xml_ref(s, p, &r, true);
	s->end = end;
	if (rc)
		return rc;
	*pp = r.end;
	switch (r.kind) {
	case XML_REF_LITERAL:
		return ref_value_put(s, o, p, (size_t)(r.end - p));
	case XML_REF_CHAR:
		return ref_value_put(s, o, r.text.p, r.text.len);
	case XML_REF_ENTITY:
		fw_xml_enter(s, p, r.entity);
		rc = ref_value_decode(s, s->begin, s->end, o);
		fw_xml_leave(s, r.entity, begin, end, in_entity);
		return rc;
	case XML_REF_SKIPPED:
		break;
	}
	return 0;
}

static int ref_value_decode(struct xml_state *s, const char *p, const char *to, struct value_out *o)
{
	while (p < to) {
		const char *from = p;

		p = scan_value(p, to, '<');
		XML_TRY(ref_value_put(s, o, from, (size_t)(p - from)));
		if (p == to)
			break;
		if (*p == '&') {
			XML_TRY(decode_ref(s, &p, to, o));
		} else if (*p == '<') {
			fw_xml_repair(s, p, "a '<' in an attribute's value", "taken as text");
			XML_TRY(ref_value_put(s, o, p++, 1));
		} else if (scan_is(*p, SCAN_SPACE)) {
			XML_TRY(ref_value_put(s, o, " ", 1));
			p += *p == '\r' && !s->in_entity && to - p >= 2 && p[1] == '\n' ? 2 : 1;
		} else {
			fw_xml_repair(s, p, "a character that XML forbids", "left out");
			p++;
		}
	}
	return 0;
}

/* Remove U+FFFE and U+FFFF from a value. They are too rare for the scanner to stop at. */
static void drop_noncharacters(struct xml_state *s, const char *at, struct fw_str *v)
{
	char *d = (char *)(uintptr_t)v->p;
	const char *p = v->p, *end = p + v->len;

	while (p < end) {
		if (*p == '\xef' && end - p >= 3 && p[1] == '\xbf' && (unsigned char)p[2] >= 0xbe) {
			fw_xml_repair(s, at, "a character that XML forbids", "left out");
			p += 3;
		} else {
			*d++ = *p++;
		}
	}
	v->len = (size_t)(d - v->p);
}

int fw_xml_decode(struct xml_state *s, const char *from, const char *to, struct fw_str *out)
{
	struct value_out o = {.cap = (size_t)(to - from) + 1};

	o.p = fw_arena_alloc(s->x->arena, o.cap);
	if (!o.p)
		return fw_xml_memory(s);
	XML_TRY(ref_value_decode(s, from, to, &o));
	fw_arena_trim(s->x->arena, o.p, o.cap, o.len);
	*out = (struct fw_str){o.p, o.len};
	if (s->dirty)
		drop_noncharacters(s, from, out);
	return 0;
}

/* The first a or b at or after p; NULL if there is none. */
static const char *value_first_of(const char *p, const char *end, char a, char b)
{
	while (p < end && *p != a && *p != b)
		p++;
	return p < end ? p : NULL;
}

/*
 * Markup inside a value, as in about="by <a href="x">us</a>.": returns where the tag at lt ends if
 * its quotes are paired, else NULL. The next '>' and the quotes before it are cached in s->tag, so
 * each byte is counted once.
 */
static const char *inner_tag(struct xml_state *s, const char *lt, char quote)
{
	const char *end = s->end;

	if (end - lt < 2 || !(fw_is_alpha((unsigned char)lt[1]) || lt[1] == '/') || s->in_entity || s->no_inner_tags)
		return NULL;
	if (!s->tag.gt || lt < s->tag.lt || lt >= s->tag.gt) {
		s->tag.gt = memchr(lt, '>', (size_t)(end - lt));
		s->tag.gt = s->tag.gt ? s->tag.gt : end;
		s->tag.odd_quotes = s->tag.odd_apostrophes = false;
		for (const char *p = lt; p < s->tag.gt; p++) {
			s->tag.odd_quotes ^= *p == '"';
			s->tag.odd_apostrophes ^= *p == '\'';
		}
		s->tag.lt = lt;
	}
	for (; s->tag.lt < lt; s->tag.lt++) {
		s->tag.odd_quotes ^= *s->tag.lt == '"';
		s->tag.odd_apostrophes ^= *s->tag.lt == '\'';
	}
	if (s->tag.gt == end || (quote == '"' ? s->tag.odd_quotes : s->tag.odd_apostrophes))
		return NULL;
	return s->tag.gt + 1;
}

/*
 * The end of a quoted value that starts at p. If its closing quote is missing, *missing is set and
 * the value ends before the tag's '>'. It counts as missing if the document has no further quote of
 * its kind, or if a '>' and then a '<' precede it and the next '>' comes before it:
 * href="x>text</a> more. Called only for values with a '<', which XML forbids.
 */
static const char *value_end(struct xml_state *s, const char *p, char quote, bool *missing)
{
	bool *none = quote == '"' ? &s->no_quote : &s->no_apostrophe, tried = false, skipped = false;
	const char *q = p, *from = p, *end = s->end, *seen = NULL, *next;

	while (!*none || s->in_entity) {
		q = scan_value(q, end, quote);
		if (q == end)
			break;
		if (*q == quote)
			return q;
		if (*q == '<') {
			seen = seen ? seen : memchr(from, '>', (size_t)(q - from));
			from = q;
			next = seen ? NULL : inner_tag(s, q, quote);
			if (next) {
				skipped = true;
				q = from = next;
				continue;
			}
			next = seen && !tried ? value_first_of(q, end, quote, '>') : NULL;
			tried |= seen != NULL;
			if (next && *next == '>') {
				*missing = true;
				return seen;
			}
		}
		q++;
	}
	if (skipped)
		/* the guess was wrong: never repeat it, or time would not be linear */
		s->no_inner_tags = true;
	else if (!s->in_entity)
		*none = true;
	*missing = true;
	next = s->in_entity ? NULL : memchr(p, '>', (size_t)(end - p));
	return next ? next : end;
}

int fw_xml_value(struct xml_state *s, const char **pp, char quote, struct fw_str *out, bool *cut)
{
	const char *p = *pp, *end = s->end, *stop;
	bool missing = false;

	if (quote) {
		stop = value_end(s, p, quote, &missing);
	} else {
		for (stop = p; stop < end && *stop != '>' && *stop != '<' && !scan_is(*stop, SCAN_SPACE);)
			stop++;
	}
	if (stop == end) {
		*cut = true;
		return 0;
	}
	if (missing)
		fw_xml_repair(s, p, "an attribute value without its closing quote", "it ends with the tag");
	if ((missing || !quote) && *stop == '>' && stop > p && stop[-1] == '/')
		stop--;
	*pp = stop + (quote && !missing);
	return fw_xml_decode(s, p, stop, out);
}

int fw_xml_collapse(struct xml_state *s, struct fw_str *value)
{
	const char *p = value->p, *end = p + value->len;
	char *d = fw_arena_alloc(s->x->arena, value->len + 1);

	if (!d)
		return fw_xml_memory(s);
	value->p = d;
	for (; p < end; p++) {
		if (*p != ' ')
			*d++ = *p;
		else if (d > value->p && d[-1] != ' ')
			*d++ = ' ';
	}
	if (d > value->p && d[-1] == ' ')
		d--;
	value->len = (size_t)(d - value->p);
	return 0;
}
