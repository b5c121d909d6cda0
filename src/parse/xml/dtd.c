/* SPDX-License-Identifier: ISC */
/*
 * The document type declaration. Internal entities and attribute defaults are used; everything else
 * is checked and skipped. External subsets and parameter entities are never read. Once one is
 * referenced, an undeclared entity is no error, and after a parameter entity further declarations
 * are ignored (XML 1.0 section 5.1) unless the document is standalone.
 *
 * An invalid declaration is reported once and skipped up to its '>'.
 */
#include "parse/charset/scan.h"
#include "parse/xml/dtd.h"
#include "parse/xml/ref.h"
#include "parse/xml/util.h"

#define MAX_GROUPS 256 /* nested parentheses in a content model */
/* entities, and elements with attribute lists; HTML declares 2,231 in all */
#define MAX_DECLARED 10000

struct dtd_cursor {
	struct xml_state *s;
	const char *p, *end;
};

static bool dtd_at(const struct dtd_cursor *c, char b)
{
	return c->p < c->end && *c->p == b;
}

static bool dtd_take(struct dtd_cursor *c, char b)
{
	if (!dtd_at(c, b))
		return false;
	c->p++;
	return true;
}

static bool dtd_take_word(struct dtd_cursor *c, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n) != 0)
		return false;
	c->p += n;
	return true;
}

/* Skip white space; false if there is none. */
static bool dtd_space(struct dtd_cursor *c)
{
	const char *p = c->p;

	c->p = scan_space(p, c->end);
	return c->p != p;
}

enum name_sort { NMTOKEN, NCNAME, QNAME };

static bool dtd_name(struct dtd_cursor *c, enum name_sort sort, struct fw_str *out)
{
	struct scan_name n = scan_name(c->p, c->end);
	const char *p = c->p;

	*out = (struct fw_str){p, (size_t)(n.end - p)};
	if (out->len == 0)
		return false;
	if (sort != NMTOKEN) {
		if (!scan_is(*p, SCAN_START) || (n.high && !fw_xml_name_ok(p, n.end)))
			return false;
		if (n.colon &&
			(sort == NCNAME || n.colon == p || n.colon + 1 == n.end || !scan_is(n.colon[1], SCAN_START) ||
				memchr(n.colon + 1, ':', (size_t)(n.end - n.colon - 1))))
			return false;
	}
	c->p = n.end;
	return true;
}

static bool dtd_literal(struct dtd_cursor *c, struct fw_str *out)
{
	const char *q;

	if (!dtd_at(c, '"') && !dtd_at(c, '\''))
		return false;
	q = memchr(c->p + 1, *c->p, (size_t)(c->end - c->p - 1));
	if (!q)
		return false;
	*out = (struct fw_str){c->p + 1, (size_t)(q - c->p - 1)};
	c->p = q + 1;
	return true;
}

static bool pubid_ok(struct fw_str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (!fw_is_alnum((unsigned char)s.p[i]) && !memchr("-'()+,./:=?;!*#@$_% \r\n", s.p[i], 22))
			return false;
	}
	return true;
}

/*
 * SYSTEM "..." or PUBLIC "..." "...". *found: there is one. public_only: a notation may omit the
 * system literal.
 */
static bool dtd_external_id(struct dtd_cursor *c, bool public_only, bool *found)
{
	struct fw_str lit;

	*found = true;
	if (dtd_take_word(c, "SYSTEM"))
		return dtd_space(c) && dtd_literal(c, &lit);
	if (dtd_take_word(c, "PUBLIC")) {
		const char *p;

		if (!dtd_space(c) || !dtd_literal(c, &lit) || !pubid_ok(lit))
			return false;
		p = c->p;
		if (dtd_space(c) && dtd_literal(c, &lit))
			return true;
		c->p = p;
		return public_only;
	}
	*found = false;
	return true;
}

/* ---- <!ENTITY -------------------------------------------------------------------------------- */

/*
 * Convert a literal entity value to its replacement text: only character references and line ends
 * (XML 1.0 section 4.5).
 */
static int entity_text(struct xml_state *s, struct fw_str lit, struct fw_str *out, bool *ok)
{
	const char *p = lit.p, *to = p + lit.len, *end = s->end;
	char *d = fw_arena_alloc(s->x->arena, lit.len + 16);

	if (!d)
		return fw_xml_memory(s);
	*ok = true;
	*out = (struct fw_str){d, 0};
	while (p < to) {
		struct xml_ref r;
		struct scan_name n;

		if (*p == '%')
			*ok = false;
		if (*p == '\r') {
			*d++ = '\n';
			p += to - p >= 2 && p[1] == '\n' ? 2 : 1;
			continue;
		}
		if (*p != '&') {
			*d++ = *p++;
			continue;
		}
		if (to - p >= 2 && p[1] == '#') {
			int rc;

			s->end = to;
			rc = fw_xml_ref(s, p, &r, true);
			s->end = end;
			if (rc)
				return rc;
			if (r.kind == XML_REF_CHAR) {
				memcpy(d, r.text.p, r.text.len);
				d += r.text.len;
				p = r.end;
				continue;
			}
		}
		n = scan_name(p + 1, to);
		if (n.end == p + 1 || !scan_is(p[1], SCAN_START) || n.colon || n.end == to || *n.end != ';')
			*ok = false;
		*d++ = *p++;
	}
	memset(d, 0, 16);
	out->len = (size_t)(d - out->p);
	fw_arena_trim(s->x->arena, (void *)(uintptr_t)out->p, lit.len + 16, out->len + 16);
	return 0;
}

static bool dtd_too_many(struct xml_state *s, const struct xml_table *t, struct fw_str key)
{
	if (t->n < MAX_DECLARED)
		return false;
	fw_xml_note(s, key.p, "more than 10,000 declarations in the DTD", "the rest is left out");
	return true;
}

static int entity_add(struct xml_state *s, struct fw_str key, struct fw_str text, bool external, bool unparsed)
{
	struct xml_entity *e;

	if (s->dtd_ignored || fw_xml_table_find(&s->entities, s->seed, key))
		return 0; /* the first declaration wins */
	if (dtd_too_many(s, &s->entities, key))
		return 0;
	e = fw_arena_zalloc(s->x->arena, sizeof(*e));
	if (!e)
		return fw_xml_memory(s);
	e->text = text;
	e->external = external;
	e->unparsed = unparsed;
	return fw_xml_table_add(s, &s->entities, &e->node, key);
}

static int dtd_entity(struct dtd_cursor *c, bool *ok)
{
	bool parameter = false, external, unparsed = false;
	struct fw_str key, lit, text = FW_STR_NONE, notation;

	*ok = false;
	if (!dtd_space(c))
		return 0;
	if (dtd_at(c, '%')) {
		c->p++;
		parameter = true;
		if (!dtd_space(c))
			return 0;
	}
	if (!dtd_name(c, NCNAME, &key) || !dtd_space(c))
		return 0;
	if (dtd_literal(c, &lit)) {
		external = false;
		XML_TRY(entity_text(c->s, lit, &text, ok));
		if (!*ok)
			return 0;
	} else {
		const char *p;

		*ok = false;
		if (!dtd_external_id(c, false, &external) || !external)
			return 0;
		p = c->p;
		if (dtd_space(c) && dtd_take_word(c, "NDATA")) {
			unparsed = true;
			if (parameter || !dtd_space(c) || !dtd_name(c, NCNAME, &notation))
				return 0;
		} else {
			c->p = p;
		}
	}
	dtd_space(c);
	*ok = dtd_at(c, '>');
	return *ok && !parameter ? entity_add(c->s, key, text, external, unparsed) : 0;
}

/* ---- <!ATTLIST ------------------------------------------------------------------------------- */

/* "(a|b|c)" after its first parenthesis */
static bool dtd_alternatives(struct dtd_cursor *c, enum name_sort sort)
{
	struct fw_str n;

	do {
		dtd_space(c);
		if (!dtd_name(c, sort, &n))
			return false;
		dtd_space(c);
	} while (dtd_take(c, '|'));
	return dtd_take(c, ')');
}

static bool dtd_att_type(struct dtd_cursor *c, bool *tokens)
{
	struct fw_str word;

	*tokens = true;
	if (dtd_take(c, '('))
		return dtd_alternatives(c, NMTOKEN);
	if (!dtd_name(c, NCNAME, &word))
		return false;
	if (fw_str_eq(word, FW_STR("NOTATION")))
		return dtd_space(c) && dtd_take(c, '(') && dtd_alternatives(c, NCNAME);
	*tokens = !fw_str_eq(word, FW_STR("CDATA"));
	if (!*tokens)
		return true;
	static const char *const TYPES[] = {"ID", "IDREF", "IDREFS", "ENTITY", "ENTITIES", "NMTOKEN", "NMTOKENS"};

	for (size_t i = 0; i < FW_N(TYPES); i++) {
		if (fw_str_eq(word, fw_str(TYPES[i])))
			return true;
	}
	return false;
}

static int attdef_add(struct xml_state *s, struct fw_str element, struct xml_attdef def)
{
	struct xml_attlist *list = (struct xml_attlist *)fw_xml_table_find(&s->attlists, s->seed, element);
	struct xml_attdef *d;

	if (s->dtd_ignored)
		return 0;
	if (!list) {
		if (dtd_too_many(s, &s->attlists, element))
			return 0;
		list = fw_arena_zalloc(s->x->arena, sizeof(*list));
		if (!list)
			return fw_xml_memory(s);
		list->tail = &list->first;
		list->tail_default = &list->first_default;
		XML_TRY(fw_xml_table_add(s, &s->attlists, &list->node, element));
	}
	for (d = list->first; d; d = d->next) {
		if (fw_str_eq(d->name, def.name))
			return 0; /* the first one wins */
	}
	if (list->n >= s->max_attributes || list->n >= 256) {
		fw_xml_note(s, def.name.p, "more declared attributes than the limit allows", "the rest is left out");
		return 0;
	}
	d = fw_arena_alloc(s->x->arena, sizeof(*d));
	if (!d)
		return fw_xml_memory(s);
	*d = def;
	*list->tail = d;
	list->tail = &d->next;
	if (d->value.p) {
		*list->tail_default = d;
		list->tail_default = &d->next_default;
	}
	list->tokens_n += d->tokens;
	list->n++;
	return 0;
}

static int dtd_attdef(struct dtd_cursor *c, struct fw_str element, bool *ok)
{
	struct xml_attdef d = {.value = FW_STR_NONE};
	struct fw_str lit;

	*ok = false;
	if (!dtd_name(c, QNAME, &d.name) || !dtd_space(c) || !dtd_att_type(c, &d.tokens) || !dtd_space(c))
		return 0;
	*ok = true;
	if (dtd_take_word(c, "#REQUIRED") || dtd_take_word(c, "#IMPLIED"))
		return attdef_add(c->s, element, d);
	*ok = (!dtd_take_word(c, "#FIXED") || dtd_space(c)) && dtd_literal(c, &lit);
	if (!*ok)
		return 0;
	XML_TRY(fw_xml_decode(c->s, lit.p, lit.p + lit.len, &d.value));
	if (d.tokens)
		XML_TRY(fw_xml_collapse(c->s, &d.value));
	return attdef_add(c->s, element, d);
}

static int dtd_attlist(struct dtd_cursor *c, bool *ok)
{
	struct fw_str element;

	*ok = false;
	if (!dtd_space(c) || !dtd_name(c, QNAME, &element))
		return 0;
	for (;;) {
		bool spaced = dtd_space(c);

		*ok = dtd_at(c, '>');
		if (*ok || !spaced)
			return 0;
		XML_TRY(dtd_attdef(c, element, ok));
		if (!*ok)
			return 0;
	}
}

/* ---- <!ELEMENT, <!NOTATION ------------------------------------------------------------------- */

static void dtd_repetition(struct dtd_cursor *c)
{
	if (dtd_at(c, '?') || dtd_at(c, '*') || dtd_at(c, '+'))
		c->p++;
}

/* after "(#PCDATA" */
static bool dtd_mixed(struct dtd_cursor *c)
{
	struct fw_str n;
	bool names = false;

	dtd_space(c);
	while (dtd_take(c, '|')) {
		names = true;
		dtd_space(c);
		if (!dtd_name(c, QNAME, &n))
			return false;
		dtd_space(c);
	}
	return dtd_take(c, ')') && (dtd_take(c, '*') || !names);
}

/* after the first '(' of a content model */
static bool dtd_children(struct dtd_cursor *c)
{
	char separator[MAX_GROUPS] = {0};
	struct fw_str n;
	size_t depth = 1;

	while (depth) {
		dtd_space(c);
		if (dtd_take(c, '(')) {
			if (depth == MAX_GROUPS)
				return false;
			separator[depth++] = 0;
			continue;
		}
		if (!dtd_name(c, QNAME, &n))
			return false;
		dtd_repetition(c);
		for (;;) { /* what may follow a name or a group */
			dtd_space(c);
			if (dtd_take(c, ')')) {
				dtd_repetition(c);
				if (--depth == 0)
					return true;
				continue;
			}
			if (!dtd_at(c, ',') && !dtd_at(c, '|'))
				return false;
			if (separator[depth - 1] && separator[depth - 1] != *c->p)
				return false;
			separator[depth - 1] = *c->p++;
			break;
		}
	}
	return true;
}

static bool dtd_element(struct dtd_cursor *c)
{
	struct fw_str n;

	if (!dtd_space(c) || !dtd_name(c, QNAME, &n) || !dtd_space(c))
		return false;
	if (dtd_take(c, '(')) {
		const char *p = c->p;

		dtd_space(c);
		if (dtd_take_word(c, "#PCDATA")) {
			if (!dtd_mixed(c))
				return false;
		} else {
			c->p = p;
			if (!dtd_children(c))
				return false;
		}
	} else if (!dtd_take_word(c, "EMPTY") && !dtd_take_word(c, "ANY")) {
		return false;
	}
	dtd_space(c);
	return dtd_at(c, '>');
}

static bool dtd_notation(struct dtd_cursor *c)
{
	struct fw_str n;
	bool found;

	if (!dtd_space(c) || !dtd_name(c, NCNAME, &n) || !dtd_space(c) || !dtd_external_id(c, true, &found) || !found)
		return false;
	dtd_space(c);
	return dtd_at(c, '>');
}

/* ---- the subset ------------------------------------------------------------------------------ */

static bool dtd_comment(struct dtd_cursor *c)
{
	const char *q = fw_xml_find(c->p, c->end, "--", 2);

	if (!q || c->end - q < 3 || q[2] != '>')
		return false;
	c->p = q + 3;
	return true;
}

static bool dtd_instruction(struct dtd_cursor *c)
{
	const char *q;
	struct fw_str target;

	if (!dtd_name(c, NCNAME, &target) || fw_str_ieq(target, FW_STR("xml")))
		return false;
	q = fw_xml_find_once(c->s, c->p, "?>", 2, &c->s->no_pi_end);
	if (!q || (q != c->p && !scan_is(*c->p, SCAN_SPACE)))
		return false;
	c->p = q + 2;
	return true;
}

static bool dtd_parameter_ref(struct dtd_cursor *c)
{
	struct fw_str n;

	if (!dtd_name(c, NCNAME, &n) || !dtd_take(c, ';'))
		return false;
	c->s->foreign = true;
	c->s->dtd_ignored = !c->s->standalone;
	return true;
}

/* Read the declaration at '<'. */
static int dtd_declaration(struct dtd_cursor *c, bool *ok)
{
	*ok = false;
	if (dtd_take_word(c, "<!--")) {
		*ok = dtd_comment(c);
		return 0;
	}
	if (dtd_take_word(c, "<?")) {
		*ok = dtd_instruction(c);
		return 0;
	}
	if (dtd_take_word(c, "<!ENTITY"))
		XML_TRY(dtd_entity(c, ok));
	else if (dtd_take_word(c, "<!ATTLIST"))
		XML_TRY(dtd_attlist(c, ok));
	else if (dtd_take_word(c, "<!ELEMENT"))
		*ok = dtd_element(c);
	else if (dtd_take_word(c, "<!NOTATION"))
		*ok = dtd_notation(c);
	if (*ok)
		c->p++; /* '>' */
	return 0;
}

static void dtd_skip(struct dtd_cursor *c, const char *from)
{
	const char *p;

	if (c->p == from && c->p < c->end)
		c->p++;
	p = memchr(c->p, '>', (size_t)(c->end - c->p));
	c->p = p ? p + 1 : c->end;
}

/* Read the subset from after '[' to after ']'. *ended is false if there is no ']'. */
static int dtd_subset(struct dtd_cursor *c, bool *ended)
{
	*ended = false;
	for (;;) {
		const char *from;
		bool ok = true;

		dtd_space(c);
		if (c->p == c->end)
			return 0;
		from = c->p;
		if (dtd_take(c, ']')) {
			*ended = true;
			return 0;
		}
		if (dtd_take(c, '%')) {
			ok = dtd_parameter_ref(c);
		} else if (dtd_at(c, '<')) {
			XML_TRY(dtd_declaration(c, &ok));
		} else {
			ok = false;
		}
		if (!ok) {
			fw_xml_repair(c->s, from, "a malformed declaration in the DTD", "left out");
			dtd_skip(c, from);
		}
	}
}

int fw_xml_doctype(struct xml_state *s, const char **pp)
{
	struct dtd_cursor c = {s, *pp + 9, s->end};
	const char *inside = NULL;
	struct fw_str root;
	bool ok, external = false, ended = true;

	ok = dtd_space(&c) && dtd_name(&c, QNAME, &root);
	if (ok && dtd_space(&c))
		ok = dtd_external_id(&c, false, &external);
	s->foreign |= external;
	dtd_space(&c);
	if (ok && dtd_take(&c, '[')) {
		inside = c.p;
		XML_TRY(dtd_subset(&c, &ended));
		dtd_space(&c);
	}
	if (!ok || !dtd_take(&c, '>')) {
		fw_xml_repair(s, *pp, "a malformed DOCTYPE", "left out");
		if (ended) {
			dtd_skip(&c, *pp);
		} else {
			c.p = inside; /* everything was consumed: the document is in the subset */
			s->no_pi_end = false;
		}
	}
	*pp = c.p;
	return 0;
}
