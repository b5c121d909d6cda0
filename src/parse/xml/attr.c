/* SPDX-License-Identifier: ISC */
/*
 * The attributes of a start tag: parsing, duplicate detection, defaults from the DTD, namespaces.
 *
 * Duplicates: one bit per name rules out most. Otherwise names are compared, and beyond FEW_ATTRS
 * looked up in a hash table, so a million attributes take linear time.
 */
#include "base/hash.h"
#include "parse/xml/attr.h"
#include "parse/xml/prefix.h"
#include "parse/xml/ref.h"
#include "parse/xml/util.h"

/* ---- the list -------------------------------------------------------------------------------- */

static struct fw_str raw_name(const struct fw_xml_attr *a)
{
	const char *p = a->name.prefix.len ? a->name.prefix.p : a->name.local.p;

	return (struct fw_str){p, (size_t)(a->name.local.p + a->name.local.len - p)};
}

/* Make room for one more attribute. */
static inline int attr_room(struct xml_state *s)
{
	void *p;

	if (s->attr_n < s->attr_cap)
		return 0;
	p = fw_xml_room(s, s->attr, &s->attr_cap, s->attr_n + 1, sizeof(*s->attr));
	if (!p)
		return fw_xml_memory(s);
	s->attr = p;
	return 0;
}

/*
 * Are these the same attribute? By the name as written or, once resolved, by namespace and local
 * name if it has a namespace.
 */
static bool attr_same(const struct fw_xml_attr *a, const struct fw_xml_attr *b, bool resolved)
{
	if (!resolved || (!a->name.uri.p && !b->name.uri.p))
		return fw_str_eq(raw_name(a), raw_name(b));
	return a->name.uri.p && b->name.uri.p && fw_str_eq(a->name.local, b->name.local) &&
		fw_str_eq(a->name.uri, b->name.uri);
}

static uint64_t attr_hash(const struct xml_state *s, const struct fw_xml_attr *a, bool resolved)
{
	bool uri = resolved && a->name.uri.p;
	struct fw_str n = uri ? a->name.local : raw_name(a);

	return fw_hash64_seed(n.p, n.len, uri ? fw_hash64_seed(a->name.uri.p, a->name.uri.len, s->seed) : s->seed);
}

/* Put attribute i in the table. True if an equal one is there already. */
static bool attr_slot_put(struct xml_state *s, size_t i, bool resolved)
{
	uint64_t h = attr_hash(s, &s->attr[i], resolved);

	for (;; h++) {
		struct attr_slot *slot = &s->attr_slot[h & (s->attr_slot_n - 1)];

		if (slot->tag != s->attr_tag) {
			*slot = (struct attr_slot){s->attr_tag, (uint32_t)i};
			return false;
		}
		if (attr_same(&s->attr[slot->index], &s->attr[i], resolved))
			return true;
	}
}

/* Create an empty table for twice n attributes. */
static int attr_slots_new(struct xml_state *s, size_t n)
{
	if (s->attr_slot_n < 2 * n || ++s->attr_tag == 0) {
		size_t slots = 64;

		while (slots < 4 * n)
			slots *= 2;
		s->attr_slot = fw_arena_calloc(s->x->arena, slots, sizeof(*s->attr_slot));
		s->attr_slot_n = s->attr_slot ? slots : 0;
		s->attr_tag = 1;
		if (!s->attr_slot)
			return fw_xml_memory(s);
	}
	return 0;
}

#define FEW_ATTRS 16 /* up to this many are compared one by one */

/* Does one of the first n attributes have the name of attribute n? Called for n = 0, 1, 2 ... */
static int attr_seen(struct xml_state *s, size_t n, bool resolved, bool *seen)
{
	*seen = false;
	if (n < FEW_ATTRS) {
		for (size_t i = 0; i < n && !*seen; i++)
			*seen = attr_same(&s->attr[i], &s->attr[n], resolved);
		return 0;
	}
	if (n == FEW_ATTRS || 2 * n > s->attr_slot_n) {
		XML_TRY(attr_slots_new(s, n + 1));
		for (size_t i = 0; i < n; i++)
			(void)attr_slot_put(s, i, resolved);
	}
	*seen = attr_slot_put(s, n, resolved);
	return 0;
}

/* One bit for a name. These bits alone show that most tags have no duplicates. */
static inline uint64_t bloom_bit(const char *p, size_t len)
{
	return UINT64_C(1) << (((unsigned char)p[0] * 7u + (unsigned char)p[len - 1] * 31u + len * 5u) & 63);
}

/* Accept or drop attr[attr_n]. */
static int attr_add(struct xml_state *s, const char *p, size_t raw_len)
{
	uint64_t bit = bloom_bit(p, raw_len);
	bool seen = false;

	if (s->attr_n >= FEW_ATTRS || (s->attr_bloom & bit))
		XML_TRY(attr_seen(s, s->attr_n, false, &seen));
	s->attr_bloom |= bit;
	if (seen) {
		fw_xml_repair(s, p, "the same attribute twice", "the first one counts");
		return 0;
	}
	s->attr_n++;
	return 0;
}

/* Two prefixes may mean the same namespace; then two different names are the same attribute. */
static int attrs_distinct(struct xml_state *s)
{
	size_t n = s->attr_n;

	s->attr_n = 0;
	for (size_t i = 0; i < n; i++) {
		bool seen;

		s->attr[s->attr_n] = s->attr[i];
		XML_TRY(attr_seen(s, s->attr_n, true, &seen));
		if (seen)
			fw_xml_repair(s, s->attr[i].name.local.p, "the same attribute twice", "the first one counts");
		else
			s->attr_n++;
	}
	return 0;
}

static bool attr_is_tokenized(const struct xml_attlist *list, struct fw_str name)
{
	const struct xml_attdef *d = list->first;

	while (d && !(d->tokens && fw_str_eq(d->name, name)))
		d = d->next;
	return d != NULL;
}

/* Apply the defaults and types that the DTD declares for this element. */
int fw_xml_attrs_declared(struct xml_state *s, struct fw_str raw)
{
	struct xml_attlist *list = (struct xml_attlist *)fw_xml_table_find(&s->attlists, s->seed, raw);
	size_t written = s->attr_n, i;

	for (i = 0; list && list->tokens_n && i < written; i++) {
		if (attr_is_tokenized(list, raw_name(&s->attr[i])))
			XML_TRY(fw_xml_collapse(s, &s->attr[i].value));
	}
	for (struct xml_attdef *d = list ? list->first_default : NULL; d; d = d->next_default) {
		SCAN_SET_WHOLE struct scan_name n = scan_name(d->name.p, d->name.p + d->name.len);

		for (i = 0; i < written && !fw_str_eq(raw_name(&s->attr[i]), d->name);)
			i++;
		if (i < written)
			continue;
		s->expanded += d->name.len + d->value.len + 16 * (s->attr_n + 1);
		if (s->attr_n >= s->max_attributes || s->expanded > s->max_expanded)
			break;
		XML_TRY(attr_room(s));
		fw_xml_split_name(s, d->name.p, &n, &s->attr[s->attr_n].name);
		s->attr[s->attr_n++].value = d->value;
	}
	return 0;
}

/* Remove namespace declarations from the list and resolve prefixes. */
int fw_xml_attrs_resolve(struct xml_state *s)
{
	size_t n = 0, prefixed = 0;

	for (size_t i = 0; i < s->attr_n; i++) {
		struct fw_xml_attr *a = &s->attr[i];
		struct fw_str key = a->name.prefix.len ? a->name.prefix : a->name.local;

		if (key.len == 5 && memcmp(key.p, "xmlns", 5) == 0) {
			XML_TRY(fw_xml_declare(s, a));
			continue;
		}
		prefixed += a->name.prefix.len != 0;
		if (n != i)
			s->attr[n] = *a;
		n++;
	}
	s->attr_n = n;
	for (size_t i = 0; prefixed && i < n; i++) {
		if (s->attr[i].name.prefix.len)
			XML_TRY(fw_xml_resolve(s, &s->attr[i].name));
	}
	return prefixed > 1 ? attrs_distinct(s) : 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Text that cannot start a name, up to white space or the end of the tag. */
static const char *attr_skip_junk(const char *p, const char *end)
{
	if (p < end)
		p++;
	while (p < end && *p != '>' && *p != '<' && !scan_is(*p, SCAN_SPACE | SCAN_START) && *p != '/')
		p++;
	return p;
}

static int attr_value_unquoted(struct xml_state *s, const char **pp, struct fw_str *out, bool *cut)
{
	fw_xml_repair(s, *pp, "an attribute's value without quotes", "taken up to the next white space");
	return fw_xml_value(s, pp, 0, out, cut);
}

/* Read one attribute; *pp is at its name. */
static int attr_read(struct xml_state *s, struct xml_tag *t, const char **pp)
{
	const char *p = *pp, *end = s->end, *at = p;
	SCAN_SET_WHOLE struct scan_name n = scan_name(p, end);
	struct fw_xml_attr *a;
	bool cut = false;

	XML_TRY(attr_room(s));
	a = &s->attr[s->attr_n];
	if (n.colon || n.high) {
		fw_xml_split_name(s, p, &n, &a->name);
		t->flags |= n.colon ? TAG_COLONS : 0;
	} else {
		a->name = (struct fw_xml_name){FW_NS_NONE, {p, (size_t)(n.end - p)}, {p, 0}, {NULL, 0}};
		t->flags |= n.end - p == 5 && memcmp(p, "xmlns", 5) == 0 ? TAG_COLONS : 0;
	}
	p = scan_space(n.end, end);
	if (p < end && *p == '=') {
		t->flags |= TAG_VALUED;
		p = scan_space(p + 1, end);
		if (p == end) {
			cut = true;
		} else if (*p == '"' || *p == '\'') {
			const char *q = scan_value(p + 1, end, *p);

			if (q < end && *q == *p && !s->dirty) {
				a->value = (struct fw_str){p + 1, (size_t)(q - p - 1)};
				p = q + 1;
			} else {
				p++;
				XML_TRY(fw_xml_value(s, &p, p[-1], &a->value, &cut));
			}
		} else {
			XML_TRY(attr_value_unquoted(s, &p, &a->value, &cut));
		}
	} else {
		if (p < end)
			fw_xml_repair(s, at, "an attribute without a value", "its value is empty");
		a->value = FW_STR("");
		p = n.end;
	}
	*pp = p;
	if (cut) {
		t->flags |= TAG_CUT;
		return 0;
	}
	if (s->attr_n >= s->max_attributes) {
		if (!(t->flags & TAG_TOO_MANY))
			fw_xml_note(s, at, "more attributes than the limit allows (max_attributes)",
				"the rest is left out");
		t->flags |= TAG_TOO_MANY;
		return 0;
	}
	return attr_add(s, at, (size_t)(n.end - at));
}

/* Read the attributes between the element's name and '>'; t->end moves past the '>'. */
int fw_xml_attributes(struct xml_state *s, struct xml_tag *t, const char *p)
{
	const char *end = s->end;

	for (;;) {
		const char *at = p;

		p = scan_space(p, end);
		if (p == end) {
			t->flags |= TAG_CUT;
			break;
		}
		if (*p == '>') {
			p++;
			break;
		}
		if (*p == '/' && end - p >= 2 && p[1] == '>') {
			t->flags |= TAG_EMPTY;
			p += 2;
			break;
		}
		if (scan_is(*p, SCAN_START)) {
			if (p == at)
				fw_xml_repair(s, p, "no white space before an attribute", "read as if there were some");
			XML_TRY(attr_read(s, t, &p));
			if (t->flags & TAG_CUT)
				break;
			continue;
		}
		if (*p == '<') {
			if (t->flags & TAG_VALUED)
				fw_xml_repair(s, p, "a tag that does not end", "it ends before the next '<'");
			else
				t->flags |= TAG_STRAY;
			break;
		}
		fw_xml_repair(s, p, "characters in a tag that form no attribute", "left out");
		p = attr_skip_junk(p, end);
	}
	t->end = p;
	return 0;
}
