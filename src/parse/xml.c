/* SPDX-License-Identifier: ISC */
/*
 * The tokenizer: text, tags, sections, and the stack of open elements.
 *
 * One loop (fw_xml_content) walks the input from one markup character to the next. What a well-formed document holds takes the
 * straight road: names and values are slices, a name without a colon costs no namespace look-up, an end tag is one comparison with
 * the top of the stack. Everything else leaves that road for a function that repairs, reports, and comes back.
 *
 * Linear time: nothing is searched for twice. A search that ran into the end of the document is remembered (no_quote and so on),
 * duplicate attributes are found by hashing, and an end tag without a start finds that out from counters by signature, which
 * are built only once the first one was met (close_mismatched).
 *
 * Entities are read by calling the same loop on their replacement text: "the window". References and attribute values stand in
 * xml_ref.c, the internal DTD subset in xml_dtd.c.
 */
#include "base/hash.h"
#include "base/utf8.h"
#include "parse/xml_int.h"

#define MAX_PREFIXES 4096

enum {
	N = SCAN_NAME, NS = SCAN_NAME | SCAN_START, S = SCAN_SPACE | SCAN_VALUE, C = SCAN_CTL | SCAN_VALUE,
	CR = SCAN_SPACE | SCAN_VALUE | SCAN_TEXT, T = SCAN_TEXT, TV = SCAN_TEXT | SCAN_VALUE,
};

#define ROW8(c) c, c, c, c, c, c, c, c
#define ROW26(c) ROW8(c), ROW8(c), ROW8(c), c, c

const unsigned char fw_scan_class[256] = {
	C, C, C, C, C, C, C, C, C, S, S, C, C, CR, C, C,
	ROW8(C), ROW8(C),
	SCAN_SPACE, 0, 0, 0, 0, 0, TV /* & */, 0, 0, 0, 0, 0, 0, N /* - */, N /* . */, 0,
	N, N, N, N, N, N, N, N, N, N, NS /* : */, 0, TV /* < */, 0, 0, 0,
	0, ROW26(NS), 0, 0, T /* ] */, 0, NS /* _ */,
	0, ROW26(NS), 0, 0, 0, 0, 0,
	ROW8(NS), ROW8(NS), ROW8(NS), ROW8(NS), ROW8(NS), ROW8(NS), ROW8(NS), ROW8(NS),
	ROW8(NS), ROW8(NS), ROW8(NS), ROW8(NS), ROW8(NS), ROW8(NS), ROW8(NS), ROW8(NS),
};

static const struct fw_str URI_XML = {"http://www.w3.org/XML/1998/namespace", 36};
static const struct fw_str URI_XMLNS = {"http://www.w3.org/2000/xmlns/", 29};

/* ---- reports, memory, tables ------------------------------------------------------------------------------------------- */

void fw_xml_note(struct xml_state *s, const char *p, const char *what, const char *repair)
{
	if (s->h->problem)
		s->h->problem(s->x->ctx, xml_at(s, p), what, repair);
}

void fw_xml_repair(struct xml_state *s, const char *p, const char *what, const char *repair)
{
	s->x->malformed = true;
	fw_xml_note(s, p, what, repair);
}

int fw_xml_memory(struct xml_state *s)
{
	size_t max = s->x->arena->max_bytes;

	if (max)
		return fw_err_set(s->err, FW_ELIMIT, "the document needs more memory than the limit of %zu bytes: raise max_memory", max);
	return fw_err_set(s->err, FW_ENOMEM, "no memory left for the document");
}

void *fw_xml_room(struct xml_state *s, void *array, size_t *cap, size_t want, size_t size)
{
	size_t n = *cap ? *cap : 16;
	void *p;

	while (n < want)
		n *= 2;
	p = fw_arena_grow(s->x->arena, array, *cap * size, n * size);
	if (p)
		*cap = n;
	return p;
}

struct xml_node *fw_xml_table_find(const struct xml_table *t, uint64_t seed, struct fw_str key)
{
	uint64_t hash;

	if (t->n == 0)
		return NULL;
	hash = fw_hash64_seed(key.p, key.len, seed);
	for (struct xml_node *n = t->slot[hash & t->mask]; n; n = n->next) {
		if (n->hash == hash && fw_str_eq(n->key, key))
			return n;
	}
	return NULL;
}

static void table_link(struct xml_table *t, struct xml_node *node)
{
	struct xml_node **at = &t->slot[node->hash & t->mask];

	node->next = *at;
	*at = node;
}

int fw_xml_table_add(struct xml_state *s, struct xml_table *t, struct xml_node *node, struct fw_str key)
{
	if (t->n > t->mask || !t->slot) {
		struct xml_table old = *t;
		size_t n = t->slot ? (t->mask + 1) * 4 : 16;

		t->slot = fw_arena_zalloc(s->x->arena, n * sizeof(struct xml_node *));
		if (!t->slot) {
			*t = old;
			return fw_xml_memory(s);
		}
		t->mask = n - 1;
		for (size_t i = 0; old.slot && i <= old.mask; i++) {
			for (struct xml_node *k = old.slot[i], *next; k; k = next) {
				next = k->next;
				table_link(t, k);
			}
		}
	}
	node->key = key;
	node->hash = fw_hash64_seed(key.p, key.len, s->seed);
	table_link(t, node);
	t->n++;
	return 0;
}

/* ---- characters and names --------------------------------------------------------------------------------------------------- */

bool fw_xml_char_ok(uint32_t cp)
{
	if (cp < 0x20)
		return cp == '\t' || cp == '\n' || cp == '\r';
	return cp < 0xd800 || (cp >= 0xe000 && cp < 0xfffe) || (cp >= 0x10000 && cp <= 0x10ffff);
}

/* NameStartChar and NameChar of XML 1.0, 5th edition, without ASCII */
static bool name_cp_ok(uint32_t cp, bool first)
{
	static const struct { uint32_t from, to; } START[] = {
		{0xc0, 0xd6}, {0xd8, 0xf6}, {0xf8, 0x2ff}, {0x370, 0x37d}, {0x37f, 0x1fff}, {0x200c, 0x200d}, {0x2070, 0x218f},
		{0x2c00, 0x2fef}, {0x3001, 0xd7ff}, {0xf900, 0xfdcf}, {0xfdf0, 0xfffd}, {0x10000, 0xeffff},
	};

	for (size_t i = 0; i < FW_N(START); i++) {
		if (cp >= START[i].from && cp <= START[i].to)
			return true;
	}
	return !first && (cp == 0xb7 || (cp >= 0x300 && cp <= 0x36f) || (cp >= 0x203f && cp <= 0x2040));
}

bool fw_xml_name_ok(const char *p, const char *end)
{
	for (bool first = true; p < end; first = false) {
		size_t n = 1;

		if ((unsigned char)*p >= 0x80 && !name_cp_ok(fw_utf8_get(p, (size_t)(end - p), &n), first))
			return false;
		p += n;
	}
	return true;
}

/* Bit 0: [p, p + n) holds a character that XML 1.0 forbids (a control, U+FFFE, U+FFFF), bit 1: a CR. Two more bytes are readable. */
SCAN_WIDE static unsigned look_over_run(const unsigned char *p, size_t n)
{
	unsigned char seen = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = p[i];

		seen |= (c < 0x20) & (c != '\t') & (c != '\n') & (c != '\r');
		seen |= (c == 0xef) & (p[i + 1] == 0xbf) & (p[i + 2] >= 0xbe);
		seen |= (unsigned char)((c == '\r') << 1);
	}
	return seen;
}

static void look_over(const char *p, size_t n, bool *illegal, bool *cr)
{
	unsigned char tail[4] = {' ', ' ', ' ', ' '};
	size_t last = FW_MIN(n, (size_t)2);
	unsigned seen = look_over_run((const unsigned char *)p, n - last);

	memcpy(tail, p + n - last, last);
	seen |= look_over_run(tail, 2);
	*illegal = seen & 1;
	*cr = seen & 2;
}

/* The bytes that a forbidden character takes at p; 0 when there is none. */
static size_t illegal_at(const char *p, const char *end)
{
	if (scan_is(*p, SCAN_CTL))
		return 1;
	return *p == '\xef' && end - p >= 3 && p[1] == '\xbf' && (unsigned char)p[2] >= 0xbe ? 3 : 0;
}

/* ---- text ---------------------------------------------------------------------------------------------------------------------- */

/* Text outside every element: white space is fine, the rest is dropped, and reported once in a row. */
static void outside(struct xml_state *s, const char *p, const char *end)
{
	p = scan_space(p, end);
	if (p == end)
		return;
	if (!s->junk_reported) {
		if (end - p >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
			fw_xml_repair(s, p, "a second byte order mark", "left out");
		else if (s->seen_element)
			fw_xml_repair(s, p, "text after the document's element", "left out");
		else
			fw_xml_repair(s, p, "text before the document's element", "left out");
	}
	s->junk_reported = true;
	s->x->malformed = true;
}

static inline int emit(struct xml_state *s, const char *p, const char *end, struct fw_str text, bool cdata)
{
	struct fw_xml *x = s->x;

	if (x->depth == 0) {
		outside(s, text.p, text.p + text.len);
		return 0;
	}
	if (!s->h->text || text.len == 0)
		return 0;
	x->offset = xml_at(s, p);
	x->end_offset = xml_at(s, end);
	return s->h->text(x->ctx, text, cdata);
}

static inline int emit_run(struct xml_state *s, const char *p, const char *end, bool cdata)
{
	if (p == end)
		return 0;
	return emit(s, p, end, (struct fw_str){p, (size_t)(end - p)}, cdata);
}

/* *pp at a CR: a line end is one LF. */
static int carriage_return(struct xml_state *s, const char **pp, bool cdata)
{
	const char *p = (*pp)++;

	if (s->in_entity) /* it came from a character reference */
		return emit_run(s, p, p + 1, cdata);
	if (*pp < s->end && **pp == '\n')
		return 0; /* the LF itself begins the next run */
	return emit(s, p, p + 1, FW_STR("\n"), cdata);
}

/* A run without markup in a document that holds forbidden characters: these are left out. */
static int dirty_run(struct xml_state *s, const char *p, const char *end, bool cdata)
{
	const char *from = p;

	while (p < end) {
		size_t n = illegal_at(p, s->end);

		if (n == 0) {
			p++;
			continue;
		}
		XML_TRY(emit_run(s, from, p, cdata));
		fw_xml_repair(s, p, "a character that XML does not allow", "left out");
		p += n;
		from = p;
	}
	return emit_run(s, from, end, cdata);
}

static inline int run(struct xml_state *s, const char *p, const char *end, bool cdata)
{
	return s->dirty ? dirty_run(s, p, end, cdata) : emit_run(s, p, end, cdata);
}

/* A copy without CR and without what XML does not allow; for comments and processing instructions. */
static int cleaned(struct xml_state *s, const char *p, const char *end, struct fw_str *out)
{
	bool cr = !s->in_entity && memchr(p, '\r', (size_t)(end - p)) != NULL;
	char *d;

	*out = (struct fw_str){p, (size_t)(end - p)};
	if (!cr && !s->dirty)
		return 0;
	d = fw_arena_alloc(s->x->arena, out->len + 1);
	if (!d)
		return fw_xml_memory(s);
	out->p = d;
	while (p < end) {
		size_t n = s->dirty ? illegal_at(p, end) : 0;

		if (n) {
			fw_xml_repair(s, p, "a character that XML does not allow", "left out");
			p += n;
		} else if (cr && *p == '\r') {
			if (end - p < 2 || p[1] != '\n')
				*d++ = '\n';
			p++;
		} else {
			*d++ = *p++;
		}
	}
	out->len = (size_t)(d - out->p);
	return 0;
}

const char *fw_xml_find(const char *p, const char *end, const char *needle, size_t n)
{
	while (end - p >= (ptrdiff_t)n) {
		p = memchr(p, needle[0], (size_t)(end - p) - n + 1);
		if (!p || memcmp(p, needle, n) == 0)
			return p;
		p++;
	}
	return NULL;
}

/* fw_xml_find(), with a failure in the document remembered in *none. */
static const char *find_once(struct xml_state *s, const char *p, const char *needle, size_t n, bool *none)
{
	const char *r = *none && !s->in_entity ? NULL : fw_xml_find(p, s->end, needle, n);

	if (!r && !s->in_entity)
		*none = true;
	return r;
}

/* Where something ends that has no end of its own: behind the next '>'; in an entity, with it, so that time stays linear. */
static const char *give_up(const struct xml_state *s, const char *p)
{
	p = s->in_entity ? NULL : memchr(p, '>', (size_t)(s->end - p));
	return p ? p + 1 : s->end;
}

/* ---- namespaces -------------------------------------------------------------------------------------------------------------- */

/* Forget prefixes that are not bound any more, so that their number stays bounded. */
static void purge_prefixes(struct xml_state *s)
{
	for (size_t i = 0; i <= s->prefixes.mask; i++) {
		for (struct xml_node **at = &s->prefixes.slot[i]; *at;) {
			struct xml_prefix *px = (struct xml_prefix *)*at;

			if (px->uri.p) {
				at = &px->node.next;
				continue;
			}
			*at = px->node.next;
			px->node.next = (struct xml_node *)s->free_prefix;
			s->free_prefix = px;
			s->prefixes.n--;
		}
	}
	memset(s->cache, 0, sizeof(s->cache));
}

/* The entry of a prefix, made when it is new; *out NULL when there are too many. name must live as long as the arena. */
static int prefix_entry(struct xml_state *s, struct fw_str name, struct xml_prefix **out)
{
	struct xml_prefix **slot = &s->cache[(name.len ^ (unsigned char)name.p[0]) % PREFIX_CACHE], *px = *slot;

	if (px && px->node.key.len == name.len && memcmp(px->node.key.p, name.p, name.len) == 0) {
		*out = px;
		return 0;
	}
	px = (struct xml_prefix *)fw_xml_table_find(&s->prefixes, s->seed, name);
	if (!px) {
		*out = NULL;
		if (s->prefixes.n >= MAX_PREFIXES) {
			purge_prefixes(s);
			if (s->prefixes.n >= MAX_PREFIXES / 2)
				return 0;
		}
		px = s->free_prefix;
		if (px)
			s->free_prefix = (struct xml_prefix *)px->node.next;
		else
			px = fw_arena_alloc(s->x->arena, sizeof(*px));
		if (!px)
			return fw_xml_memory(s);
		*px = (struct xml_prefix){0};
		XML_TRY(fw_xml_table_add(s, &s->prefixes, &px->node, name));
	}
	*slot = px;
	*out = px;
	return 0;
}

static int bind(struct xml_state *s, const char *at, struct xml_prefix *px, struct fw_str uri)
{
	if (s->undo_n == s->undo_cap) {
		void *p = fw_xml_room(s, s->undo, &s->undo_cap, s->undo_n + 1, sizeof(*s->undo));

		if (!p)
			return fw_xml_memory(s);
		s->undo = p;
	}
	s->undo[s->undo_n++] = (struct xml_undo){px, px->ns, px->uri};
	if (uri.len) {
		px->uri = uri;
		px->ns = fw_str_eq(uri, URI_XML) ? FW_NS_XML : fw_ns_find(uri);
		return 0;
	}
	if (px != &s->none)
		fw_xml_repair(s, at, "a namespace prefix bound to nothing", "the prefix is taken as undeclared");
	px->uri = FW_STR_NONE;
	px->ns = FW_NS_NONE;
	return 0;
}

/* An attribute named xmlns or xmlns:prefix. */
static int declare(struct xml_state *s, const struct fw_xml_attr *a)
{
	struct fw_str local = a->name.local;
	struct xml_prefix *px;

	if (a->name.prefix.len == 0) {
		if (fw_str_eq(a->value, URI_XML) || fw_str_eq(a->value, URI_XMLNS)) {
			fw_xml_repair(s, local.p, "a reserved namespace as default", "declaration left out");
			return 0;
		}
		return bind(s, local.p, &s->none, a->value);
	}
	if (fw_str_eq(local, FW_STR("xmlns")) || fw_str_eq(local, FW_STR("xml")) || fw_str_eq(a->value, URI_XMLNS) ||
	    fw_str_eq(a->value, URI_XML)) {
		if (!fw_str_eq(local, FW_STR("xml")) || !fw_str_eq(a->value, URI_XML))
			fw_xml_repair(s, local.p, "a reserved namespace or prefix is declared anew", "declaration left out");
		return 0;
	}
	if (local.len == 0)
		return 0; /* "xmlns:": reported as a name */
	XML_TRY(prefix_entry(s, local, &px));
	if (!px) {
		fw_xml_note(s, local.p, "too many namespace prefixes", "declaration left out");
		return 0;
	}
	return bind(s, local.p, px, a->value);
}

static void unbind(struct xml_state *s, size_t undo_n)
{
	while (s->undo_n > undo_n) {
		struct xml_undo *u = &s->undo[--s->undo_n];

		u->prefix->ns = u->ns;
		u->prefix->uri = u->uri;
	}
}

/* Namespace of a name that has a prefix. */
static int resolve(struct xml_state *s, struct fw_xml_name *name)
{
	struct xml_prefix *px;

	if (name->prefix.len == 3 && memcmp(name->prefix.p, "xml", 3) == 0) {
		name->ns = FW_NS_XML;
		name->uri = URI_XML;
		return 0;
	}
	XML_TRY(prefix_entry(s, name->prefix, &px));
	if (px && px->uri.p) {
		name->ns = px->ns;
		name->uri = px->uri;
		return 0;
	}
	if (!px || !px->guessed)
		fw_xml_repair(s, name->prefix.p, "an undeclared namespace prefix", "taken for what it usually means");
	s->x->malformed = true;
	name->ns = fw_ns_guess(name->prefix);
	if (px)
		px->guessed = true;
	return 0;
}

static void split_name(struct xml_state *s, const char *p, const struct scan_name *n, struct fw_xml_name *out)
{
	out->ns = FW_NS_NONE;
	out->uri = FW_STR_NONE;
	out->prefix = (struct fw_str){p, 0};
	out->local = (struct fw_str){p, (size_t)(n->end - p)};
	if (n->high && !fw_xml_name_ok(p, n->end))
		fw_xml_repair(s, p, "a name with a character that names cannot have", "kept");
	if (!n->colon)
		return;
	out->prefix.len = (size_t)(n->colon - p);
	out->local = (struct fw_str){n->colon + 1, (size_t)(n->end - n->colon - 1)};
	if (n->colon == p || out->local.len == 0 || !scan_is(*out->local.p, SCAN_START) ||
	    (n->high && !fw_xml_name_ok(out->local.p, n->end)) || memchr(out->local.p, ':', out->local.len))
		fw_xml_repair(s, p, "a name with a misplaced colon", "split at the first one");
}

/* ---- attributes --------------------------------------------------------------------------------------------------------------- */

static struct fw_str raw_name(const struct fw_xml_attr *a)
{
	const char *p = a->name.prefix.len ? a->name.prefix.p : a->name.local.p;

	return (struct fw_str){p, (size_t)(a->name.local.p + a->name.local.len - p)};
}

/* Room for one more. */
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

/* The same attribute, by the name as written, or once resolved by namespace and local name where it has a namespace. */
static bool attr_same(const struct fw_xml_attr *a, const struct fw_xml_attr *b, bool resolved)
{
	if (!resolved || (!a->name.uri.p && !b->name.uri.p))
		return fw_str_eq(raw_name(a), raw_name(b));
	return a->name.uri.p && b->name.uri.p && fw_str_eq(a->name.local, b->name.local) && fw_str_eq(a->name.uri, b->name.uri);
}

static uint64_t attr_hash(const struct xml_state *s, const struct fw_xml_attr *a, bool resolved)
{
	bool uri = resolved && a->name.uri.p;
	struct fw_str n = uri ? a->name.local : raw_name(a);

	return fw_hash64_seed(n.p, n.len, uri ? fw_hash64_seed(a->name.uri.p, a->name.uri.len, s->seed) : s->seed);
}

/* Put attribute i in the table; true when an equal one is there already. */
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

/* An empty table with room for twice n attributes. */
static int attr_slots_new(struct xml_state *s, size_t n)
{
	if (s->attr_slot_n < 2 * n || ++s->attr_tag == 0) {
		size_t slots = 64;

		while (slots < 4 * n)
			slots *= 2;
		s->attr_slot = fw_arena_zalloc(s->x->arena, slots * sizeof(*s->attr_slot));
		s->attr_slot_n = s->attr_slot ? slots : 0;
		s->attr_tag = 1;
		if (!s->attr_slot)
			return fw_xml_memory(s);
	}
	return 0;
}

#define FEW_ATTRS 16 /* so many are compared one by one */

/* Is there one of the first n attributes with the same name as attribute n? Called for n = 0, 1, 2 ... */
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

/* One bit for a name: most tags prove free of duplicates by these alone. */
static inline uint64_t bloom_bit(const char *p, size_t len)
{
	return UINT64_C(1) << (((unsigned char)p[0] * 7u + (unsigned char)p[len - 1] * 31u + len * 5u) & 63);
}

/* Take attr[attr_n] in, or drop it. */
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

/* Two prefixes may mean one namespace: then two different names are the same attribute. */
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

/* Defaults and types that the DTD declares for this element. */
static int attrs_declared(struct xml_state *s, struct fw_str raw)
{
	struct xml_attlist *list = (struct xml_attlist *)fw_xml_table_find(&s->attlists, s->seed, raw);

	for (struct xml_attdef *d = list ? list->first : NULL; d; d = d->next) {
		struct scan_name n = scan_name(d->name.p, d->name.p + d->name.len);
		size_t i = 0;

		while (i < s->attr_n && !fw_str_eq(raw_name(&s->attr[i]), d->name))
			i++;
		if (i < s->attr_n) {
			if (d->tokens)
				XML_TRY(fw_xml_collapse(s, &s->attr[i].value));
			continue;
		}
		if (!d->value.p)
			continue;
		s->expanded += d->name.len + d->value.len + 16 * (s->attr_n + 1);
		if (s->attr_n >= s->max_attributes || s->expanded > s->max_expanded)
			break;
		XML_TRY(attr_room(s));
		split_name(s, d->name.p, &n, &s->attr[s->attr_n].name);
		s->attr[s->attr_n++].value = d->value;
	}
	return 0;
}

/* Declarations of namespaces leave the list, prefixes are resolved. */
static int attrs_resolve(struct xml_state *s)
{
	size_t n = 0, prefixed = 0;

	for (size_t i = 0; i < s->attr_n; i++) {
		struct fw_xml_attr *a = &s->attr[i];
		struct fw_str key = a->name.prefix.len ? a->name.prefix : a->name.local;

		if (key.len == 5 && memcmp(key.p, "xmlns", 5) == 0) {
			XML_TRY(declare(s, a));
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
			XML_TRY(resolve(s, &s->attr[i].name));
	}
	return prefixed > 1 ? attrs_distinct(s) : 0;
}

/* ---- the stack -------------------------------------------------------------------------------------------------------------------- */

/* 32 bits for a name, case folded: equal names have equal ones. */
static uint32_t signature(const struct xml_state *s, struct fw_str name)
{
	char folded[64];
	size_t n = FW_MIN(name.len, sizeof(folded));

	for (size_t i = 0; i < n; i++)
		folded[i] = (char)fw_lower((unsigned char)name.p[i]);
	return (uint32_t)fw_hash64_seed(folded, n, s->seed);
}

static int end_event(struct xml_state *s, const struct fw_xml_name *name)
{
	return s->h->end ? s->h->end(s->x->ctx, name) : 0;
}

/* Take the innermost element off, report its end. */
static int pop(struct xml_state *s)
{
	struct xml_open *o = &s->open[s->x->depth - 1];
	int rc = end_event(s, &o->name);

	if (s->undo_n != o->undo_n)
		unbind(s, o->undo_n);
	s->x->depth--;
	if (s->sig_n > s->x->depth)
		s->open_in[s->sig[--s->sig_n] % BUCKETS]--;
	if (s->x->depth == 0)
		s->junk_reported = false;
	return rc;
}

/* Close elements until depth of them are left; nothing in the document says so. */
static int close_to(struct xml_state *s, const char *p, uint32_t depth, const char *what)
{
	s->x->offset = s->x->end_offset = xml_at(s, p);
	if (s->flat) {
		fw_xml_repair(s, p, what, "closed here");
		memset(s->flat_in, 0, sizeof(s->flat_in));
		s->flat = 0;
	}
	while (s->x->depth > depth) {
		fw_xml_repair(s, p, what, "closed here");
		XML_TRY(pop(s));
	}
	return 0;
}

/* Signatures for all open elements: from now on kept up to date by pop(). */
static int sign_open(struct xml_state *s)
{
	uint32_t depth = s->x->depth;

	if (s->sig_cap < depth) {
		void *p = fw_xml_room(s, s->sig, &s->sig_cap, depth, sizeof(*s->sig));

		if (!p)
			return fw_xml_memory(s);
		s->sig = p;
	}
	for (; s->sig_n < depth; s->sig_n++) {
		s->sig[s->sig_n] = signature(s, s->open[s->sig_n].raw);
		s->open_in[s->sig[s->sig_n] % BUCKETS]++;
	}
	return 0;
}

/*
 * An end tag that is not the innermost element's: of one past max_depth, of an ancestor (which closes what is open inside it), or of
 * nothing. Each open element is signed at most once, a tag whose signature no open element has costs no search, and a search
 * that succeeds takes off what it walked over: linear.
 */
static int close_mismatched(struct xml_state *s, const char *lt, struct fw_str raw, const char *behind_tag)
{
	uint32_t sig = signature(s, raw), depth = s->x->depth;

	if (s->flat && s->flat_in[sig % BUCKETS]) {
		s->flat_in[sig % BUCKETS]--;
		s->flat--;
		return 0;
	}
	XML_TRY(sign_open(s));
	if (s->open_in[sig % BUCKETS]) {
		while (depth > 0 && !(s->sig[depth - 1] == sig && fw_str_ieq(s->open[depth - 1].raw, raw)))
			depth--;
	} else {
		depth = 0;
	}
	if (depth == 0) {
		fw_xml_repair(s, lt, "an end tag without a start tag", "left out");
		return 0;
	}
	XML_TRY(close_to(s, lt, depth, "an element without an end tag"));
	if (!fw_str_eq(s->open[depth - 1].raw, raw))
		fw_xml_repair(s, lt, "an end tag in another case than its start tag", "taken for the same");
	s->x->offset = xml_at(s, lt);
	s->x->end_offset = xml_at(s, behind_tag);
	return pop(s);
}

/* ---- tags ------------------------------------------------------------------------------------------------------------------------- */

/* "<" that begins nothing: it is text. */
static int stray_lt(struct xml_state *s, const char **pp)
{
	const char *p = (*pp)++;

	fw_xml_repair(s, p, "a '<' that begins no markup", "taken as text");
	return emit_run(s, p, p + 1, false);
}

static int cut_tag(struct xml_state *s, const char **pp)
{
	fw_xml_repair(s, *pp, "the document ends inside a tag", "the tag is left out");
	*pp = s->end;
	return 0;
}

/* Text that nobody may take for a name's begin: up to white space or the end of the tag. */
static const char *skip_junk(const char *p, const char *end)
{
	if (p < end)
		p++;
	while (p < end && *p != '>' && *p != '<' && !scan_is(*p, SCAN_SPACE | SCAN_START) && *p != '/')
		p++;
	return p;
}

enum {
	TAG_EMPTY = 1,    /* ends in "/>" */
	TAG_CUT = 2,      /* the input ended before the tag did */
	TAG_COLONS = 4,   /* some attribute's name has a colon, or is xmlns */
	TAG_TOO_MANY = 8, /* attributes */
	TAG_VALUED = 16,  /* some attribute has a value */
	TAG_STRAY = 32,   /* "a <b and c <d>": no tag at all */
};

struct tag {
	const char *lt, *end; /* end: behind '>' */
	struct xml_open *open; /* the place on top of the stack that it is read into */
	unsigned flags;
};

static int unquoted(struct xml_state *s, const char **pp, struct fw_str *out, bool *cut)
{
	fw_xml_repair(s, *pp, "an attribute's value without quotes", "taken up to the next white space");
	return fw_xml_value(s, pp, 0, out, cut);
}

/* One attribute: *pp at its name. */
static int attribute(struct xml_state *s, struct tag *t, const char **pp)
{
	const char *p = *pp, *end = s->end, *at = p;
	struct scan_name n = scan_name(p, end);
	struct fw_xml_attr *a;
	bool cut = false;

	XML_TRY(attr_room(s));
	a = &s->attr[s->attr_n];
	if (n.colon || n.high) {
		split_name(s, p, &n, &a->name);
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
			XML_TRY(unquoted(s, &p, &a->value, &cut));
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
			fw_xml_note(s, at, "more attributes than the limit allows (max_attributes)", "the rest is left out");
		t->flags |= TAG_TOO_MANY;
		return 0;
	}
	return attr_add(s, at, (size_t)(n.end - at));
}

/* What stands between the element's name and '>'; t->end behind it. */
static int attributes(struct xml_state *s, struct tag *t, const char *p)
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
			XML_TRY(attribute(s, t, &p));
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
		fw_xml_repair(s, p, "characters in a tag that make no attribute", "left out");
		p = skip_junk(p, end);
	}
	t->end = p;
	return 0;
}

/* Room for one more element; t->open is its place. */
static inline int open_room(struct xml_state *s, struct tag *t)
{
	if (s->x->depth == s->open_cap) {
		void *p = fw_xml_room(s, s->open, &s->open_cap, s->x->depth + 1, sizeof(*s->open));

		if (!p)
			return fw_xml_memory(s);
		s->open = p;
	}
	t->open = &s->open[s->x->depth];
	return 0;
}

/* scan_same() reads 16 bytes of a name: one near the window's end is copied. */
static int pad_name(struct xml_state *s, struct fw_str *raw)
{
	char *d = fw_arena_alloc(s->x->arena, raw->len + 16);

	if (!d)
		return fw_xml_memory(s);
	memcpy(d, raw->p, raw->len);
	memset(d + raw->len, 0, 16);
	raw->p = d;
	return 0;
}

/* An element deeper than the limit: its text belongs to the last one above. */
static void flatten(struct xml_state *s, const struct tag *t)
{
	if (s->flat == 0)
		fw_xml_note(s, t->lt, "elements nested deeper than the limit allows (max_depth)", "flattened");
	if (t->flags & TAG_EMPTY)
		return;
	s->flat++;
	s->flat_in[signature(s, t->open->raw) % BUCKETS]++;
}

/* The first element of the document, or of what follows it. */
static void root(struct xml_state *s, const char *lt)
{
	if (s->seen_element)
		fw_xml_repair(s, lt, "an element after the document's element", "read as another one");
	s->seen_element = true;
	s->junk_reported = false;
}

/* A whole start tag stands in t and s->attr: report it. */
static inline int start_event(struct xml_state *s, struct tag *t)
{
	struct fw_xml *x = s->x;
	struct xml_open *o = t->open;

	if (x->depth == 0)
		root(s, t->lt);
	if (x->depth >= s->max_depth) {
		flatten(s, t);
		return 0;
	}
	o->undo_n = s->undo_n;
	if (s->attlists.n)
		XML_TRY(attrs_declared(s, o->raw));
	if ((t->flags & TAG_COLONS) || s->attlists.n)
		XML_TRY(attrs_resolve(s));
	if (o->name.prefix.len) {
		XML_TRY(resolve(s, &o->name));
	} else {
		o->name.ns = s->none.ns;
		o->name.uri = s->none.uri;
	}
	if (s->end - o->raw.p < 16)
		XML_TRY(pad_name(s, &o->raw));
	x->depth++;
	x->offset = xml_at(s, t->lt);
	x->end_offset = xml_at(s, t->end);
	if (s->h->start)
		XML_TRY(s->h->start(x->ctx, &o->name, s->attr, s->attr_n));
	return t->flags & TAG_EMPTY ? pop(s) : 0;
}

/* *pp at '<', a name's first byte behind it. */
static int start_tag(struct xml_state *s, const char **pp)
{
	const char *p = *pp + 1, *end = s->end;
	struct scan_name n = scan_name(p, end);
	struct tag t = {*pp, NULL, NULL, 0};

	if (n.end == end)
		return cut_tag(s, pp);
	if (*n.end != '>' && !scan_is(*n.end, SCAN_SPACE) &&
	    (n.end[-1] == ':' || *n.end != '/' || (end - n.end >= 2 && n.end[1] == '/')))
		return stray_lt(s, pp);
	XML_TRY(open_room(s, &t));
	t.open->raw = (struct fw_str){p, (size_t)(n.end - p)};
	if (n.colon || n.high) {
		split_name(s, p, &n, &t.open->name);
	} else {
		t.open->name.local = (struct fw_str){p, (size_t)(n.end - p)};
		t.open->name.prefix = (struct fw_str){p, 0};
	}
	s->attr_n = 0;
	s->attr_bloom = 0;
	if (*n.end == '>')
		t.end = n.end + 1;
	else
		XML_TRY(attributes(s, &t, n.end));
	if (t.flags & TAG_CUT)
		return cut_tag(s, pp);
	if (t.flags & TAG_STRAY)
		return stray_lt(s, pp);
	*pp = t.end;
	return start_event(s, &t);
}

/* An end tag that is not exactly </name> or </name >. */
static int odd_end_tag(struct xml_state *s, const char **pp)
{
	const char *lt = *pp, *p = lt + 2, *end = s->end, *from = scan_space(p, end);
	struct scan_name n = scan_name(from, end);
	struct fw_str raw = {from, (size_t)(n.end - from)};

	p = scan_space(n.end, end);
	if (raw.len && !scan_is(*from, SCAN_START))
		raw.len = 0;
	if (p == end) {
		/* "</title" at the very end still closes the title */
		fw_xml_repair(s, lt, "the document ends inside a tag", raw.len ? "read as a whole one" : "the tag is left out");
	} else if (*p != '>' || from != lt + 2 || raw.len == 0) {
		while (p < end && *p != '>' && *p != '<')
			p++;
		fw_xml_repair(s, lt, "an end tag that holds more or less than a name", raw.len ? "the rest is left out" : "left out");
	}
	if (p < end && *p == '>')
		p++;
	*pp = p;
	if (raw.len == 0)
		return 0;
	if (!s->flat && s->x->depth && fw_str_eq(s->open[s->x->depth - 1].raw, raw)) {
		s->x->offset = xml_at(s, lt);
		s->x->end_offset = xml_at(s, p);
		return pop(s);
	}
	return close_mismatched(s, lt, raw, p);
}

static int end_tag(struct xml_state *s, const char **pp)
{
	const char *lt = *pp, *p = lt + 2, *end = s->end;

	if (s->x->depth && !s->flat) {
		struct fw_str raw = s->open[s->x->depth - 1].raw;

		if (scan_same(raw.p, p, raw.len, end)) {
			p = scan_space(p + raw.len, end);
			if (p < end && *p == '>') {
				s->x->offset = xml_at(s, lt);
				s->x->end_offset = xml_at(s, p + 1);
				*pp = p + 1;
				return pop(s);
			}
		}
	}
	return odd_end_tag(s, pp);
}

/* ---- comments, sections, instructions ------------------------------------------------------------------------------------- */

/* *pp at "<!--". */
static int comment(struct xml_state *s, const char **pp)
{
	const char *lt = *pp, *from = lt + 4, *p = find_once(s, from, "--", 2, &s->no_comment_end), *stop, *next;
	struct fw_str text;

	stop = next = NULL;
	if (p && s->end - p >= 3 && p[2] == '>') {
		stop = p;
		next = p + 3;
	} else if (p) { /* "--" inside: it ends at "-->", or at "-- >" or "--!>" as browsers have it */
		fw_xml_repair(s, p, "\"--\" inside a comment", "kept");
		for (; p; p = fw_xml_find(p + 1, s->end, "--", 2)) {
			const char *q = p + 2;

			if (q < s->end && *q == '!')
				q++;
			else
				q = scan_space(q, s->end);
			if (q < s->end && *q == '>') {
				stop = p;
				next = q + 1;
				break;
			}
		}
	}
	if (!stop) {
		fw_xml_repair(s, lt, "a comment that does not end", "it ends at the next '>'");
		next = give_up(s, from);
		stop = next > from ? next - (next[-1] == '>') : next;
		s->no_comment_end |= !s->in_entity;
	}
	*pp = next;
	if (!s->h->comment && !s->dirty)
		return 0;
	XML_TRY(cleaned(s, from, stop, &text));
	s->x->offset = xml_at(s, lt);
	s->x->end_offset = xml_at(s, next);
	return s->h->comment ? s->h->comment(s->x->ctx, text) : 0;
}

/* Where a CDATA section without "]]>" may have been meant to end: "]]" or "]>" before the next end tag; else the input's end. */
static const char *cdata_guess(const char *p, const char *end, const char **next)
{
	for (const char *q = p; (q = memchr(q, ']', (size_t)(end - q))) != NULL; q++) {
		const char *r = q + 1;

		while (r < end && (*r == ']' || *r == '>' || scan_is(*r, SCAN_SPACE)))
			r++;
		if (r > q + 1 && end - r >= 2 && r[0] == '<' && r[1] == '/') {
			*next = r;
			return q;
		}
		q = r - 1;
	}
	*next = end;
	return end;
}

/* *pp at "<![CDATA[", in whatever case. */
static int cdata(struct xml_state *s, const char **pp)
{
	const char *lt = *pp, *p = lt + 9, *next, *stop = find_once(s, p, "]]>", 3, &s->no_cdata_end);

	if (memcmp(lt, "<![CDATA[", 9) != 0)
		fw_xml_repair(s, lt, "a CDATA section not in capitals", "taken for one");
	if (stop) {
		next = stop + 3;
	} else {
		fw_xml_repair(s, lt, "a CDATA section that does not end", "it ends where its element does");
		stop = cdata_guess(p, s->end, &next);
	}
	*pp = next;
	if (s->x->depth == 0) {
		fw_xml_repair(s, lt, "a CDATA section outside the document's element", "left out");
		return 0;
	}
	while (s->has_cr && p < stop) {
		const char *cr = memchr(p, '\r', (size_t)(stop - p));

		if (!cr)
			break;
		XML_TRY(run(s, p, cr, true));
		p = cr;
		XML_TRY(carriage_return(s, &p, true));
	}
	return run(s, p, stop, true);
}

/* *pp at "<!" that begins neither a comment nor CDATA. */
static int declaration(struct xml_state *s, const char **pp)
{
	const char *lt = *pp, *end = s->end;

	if (end - lt < 3)
		return cut_tag(s, pp);
	if (end - lt >= 9 && fw_str_ieq((struct fw_str){lt, 9}, FW_STR("<!DOCTYPE")) && s->x->depth == 0 && !s->in_entity) {
		if (memcmp(lt, "<!DOCTYPE", 9) != 0)
			fw_xml_repair(s, lt, "DOCTYPE not in capitals", "taken for one");
		if (s->seen_element || s->seen_doctype)
			fw_xml_repair(s, lt, "a DOCTYPE after another or after the document's element", "left out");
		if (!s->seen_doctype && !s->seen_element) {
			s->seen_doctype = true;
			return fw_xml_doctype(s, pp);
		}
		*pp = give_up(s, lt);
		return 0;
	}
	if (!fw_is_alpha(lt[2]) && lt[2] != '[' && lt[2] != '-')
		return stray_lt(s, pp);
	fw_xml_repair(s, lt, "a declaration where none can stand", "left out");
	*pp = give_up(s, lt);
	return 0;
}

static bool is_decl(const char *p, const char *end)
{
	return end - p >= 6 && memcmp(p, "<?xml", 5) == 0 && scan_is(p[5], SCAN_SPACE);
}

/* *pp at "<?". */
static int instruction(struct xml_state *s, const char **pp)
{
	const char *lt = *pp, *p = lt + 2, *end = s->end, *stop;
	struct scan_name n = scan_name(p, end);
	struct fw_str target = {p, (size_t)(n.end - p)}, data;

	stop = find_once(s, p, "?>", 2, &s->no_pi_end);
	if (!stop) {
		fw_xml_repair(s, lt, "a processing instruction that does not end", "it ends at the next '>'");
		stop = give_up(s, p);
		*pp = stop;
		return 0;
	}
	*pp = stop + 2;
	if (target.len == 0 || !scan_is(*p, SCAN_START) || (n.end != stop && !scan_is(*n.end, SCAN_SPACE)) || n.colon ||
	    (n.high && !fw_xml_name_ok(p, n.end))) {
		fw_xml_repair(s, lt, "a processing instruction without a proper name", "left out");
		return 0;
	}
	if (target.len == 3 && fw_str_ieq(target, FW_STR("xml"))) {
		fw_xml_repair(s, lt, "an XML declaration that is not at the start", "left out");
		/* whatever was open before it (an HTML page, a warning) is not part of the document */
		if (!is_decl(lt, end) || s->in_entity || s->x->depth == 0)
			return 0;
		s->seen_element = s->seen_doctype = false;
		return close_to(s, lt, 0, "an element around the document");
	}
	if (!s->h->pi && !s->dirty)
		return 0;
	XML_TRY(cleaned(s, scan_space(n.end, stop), stop, &data));
	s->x->offset = xml_at(s, lt);
	s->x->end_offset = xml_at(s, *pp);
	return s->h->pi ? s->h->pi(s->x->ctx, target, data) : 0;
}

static int markup(struct xml_state *s, const char **pp)
{
	const char *p = *pp;
	size_t left = (size_t)(s->end - p);

	if (left < 2)
		return stray_lt(s, pp);
	if (scan_is(p[1], SCAN_START))
		return start_tag(s, pp);
	switch (p[1]) {
	case '/':
		return end_tag(s, pp);
	case '!':
		if (left >= 4 && p[2] == '-' && p[3] == '-')
			return comment(s, pp);
		if (left >= 9 && p[2] == '[' && fw_str_ieq((struct fw_str){p, 9}, FW_STR("<![CDATA[")))
			return cdata(s, pp);
		return declaration(s, pp);
	case '?':
		return instruction(s, pp);
	default:
		return stray_lt(s, pp);
	}
}

/* ---- content ---------------------------------------------------------------------------------------------------------------------- */

/* Read an entity's replacement text as if it stood at p. */
static int expand(struct xml_state *s, const char *p, struct xml_entity *e)
{
	const char *begin = s->begin, *end = s->end;
	bool in_entity = s->in_entity;
	uint32_t depth = s->x->depth;
	int rc;

	fw_xml_enter(s, p, e);
	rc = fw_xml_content(s, s->begin);
	fw_xml_leave(s, e, begin, end, in_entity);
	if (!rc && s->x->depth != depth)
		fw_xml_repair(s, p, "an entity that begins or ends inside an element", "read in place");
	return rc;
}

static int reference(struct xml_state *s, const char **pp)
{
	const char *p = *pp;
	struct xml_ref r;

	XML_TRY(fw_xml_ref(s, p, &r, false));
	*pp = r.end;
	if (s->x->depth == 0 && r.kind != XML_REF_LITERAL) {
		fw_xml_repair(s, p, "a reference outside the document's element", "left out");
		return 0;
	}
	switch (r.kind) {
	case XML_REF_LITERAL:
		return emit_run(s, p, r.end, false);
	case XML_REF_CHAR:
		return emit(s, p, r.end, r.text, false);
	case XML_REF_ENTITY:
		return expand(s, p, r.entity);
	case XML_REF_SKIPPED:
		break;
	}
	return 0;
}

int fw_xml_content(struct xml_state *s, const char *p)
{
	const char *end = s->end, *from = p;
	int rc = 0;

	while (rc == 0) {
		p = scan_text(p, end);
		if (p < end && *p == ']') {
			if (end - p >= 3 && p[1] == ']' && p[2] == '>' && s->x->depth)
				fw_xml_repair(s, p, "\"]]>\" outside a CDATA section", "taken as text");
			p++;
			continue;
		}
		if (p != from)
			rc = run(s, from, p, false);
		if (rc || p == end)
			break;
		if (*p == '<')
			rc = markup(s, &p);
		else if (*p == '&')
			rc = reference(s, &p);
		else
			rc = carriage_return(s, &p, false);
		from = p;
	}
	return rc;
}

/* ---- the document ---------------------------------------------------------------------------------------------------------------- */

/* One pseudo attribute of the XML declaration. False: not one. */
static bool pseudo(const char **pp, const char *end, struct fw_str *name, struct fw_str *value)
{
	const char *p = scan_space(*pp, end), *q;

	if (p == end || p == *pp)
		return false;
	name->p = p;
	while (p < end && fw_is_alpha((unsigned char)*p))
		p++;
	name->len = (size_t)(p - name->p);
	p = scan_space(p, end);
	if (p == end || *p != '=')
		return false;
	p = scan_space(p + 1, end);
	if (p == end || (*p != '"' && *p != '\''))
		return false;
	for (q = p + 1; q < end && *q != *p; q++) {
		if (!fw_is_alnum((unsigned char)*q) && *q != '.' && *q != '-' && *q != '_')
			return false;
	}
	if (q == end)
		return false;
	*value = (struct fw_str){p + 1, (size_t)(q - p - 1)};
	*pp = q + 1;
	return true;
}

/* version, then maybe encoding, then maybe standalone (XML 1.0 section 2.8) */
static bool decl_ok(struct xml_state *s, const char *p, const char *end)
{
	struct fw_str name, value;

	if (!pseudo(&p, end, &name, &value) || !fw_str_eq(name, FW_STR("version")))
		return false;
	if (scan_space(p, end) == end)
		return true;
	if (!pseudo(&p, end, &name, &value))
		return false;
	if (fw_str_eq(name, FW_STR("encoding"))) {
		if (value.len == 0 || !fw_is_alpha((unsigned char)*value.p))
			return false;
		if (scan_space(p, end) == end)
			return true;
		if (!pseudo(&p, end, &name, &value))
			return false;
	}
	s->standalone = fw_str_eq(value, FW_STR("yes"));
	return fw_str_eq(name, FW_STR("standalone")) && (s->standalone || fw_str_eq(value, FW_STR("no"))) &&
		scan_space(p, end) == end;
}

static const char *xml_decl(struct xml_state *s, const char *p)
{
	const char *stop = fw_xml_find(p, s->end, "?>", 2);

	if (!stop) {
		fw_xml_repair(s, p, "an XML declaration that does not end", "it ends at the next '>'");
		return give_up(s, p);
	}
	if (!decl_ok(s, p + 5, stop))
		fw_xml_repair(s, p, "an XML declaration that is not as XML has it", "left out");
	return stop + 2;
}

int fw_xml_parse(struct fw_xml *x, const char *input, size_t len, struct fw_err *err)
{
	static const struct fw_xml_handler none;
	struct xml_state *s = fw_arena_zalloc(x->arena, sizeof(*s));
	const char *p = input;

	x->offset = x->end_offset = 0;
	x->malformed = false;
	x->depth = x->skipped = 0;
	x->priv = s;
	if (!s)
		return fw_err_set(err, x->arena->max_bytes ? FW_ELIMIT : FW_ENOMEM, "no memory left to read the document");
	s->x = x;
	s->h = x->handler ? x->handler : &none;
	s->err = err;
	s->seed = (uint64_t)(uintptr_t)s * UINT64_C(0x9e3779b97f4a7c15);
	s->begin = input;
	s->end = input + len;
	s->max_depth = x->limits.max_depth ? x->limits.max_depth : 256;
	s->max_attributes = x->limits.max_attributes ? x->limits.max_attributes : 1000;
	s->max_expanded = (x->limits.max_entity_ratio ? x->limits.max_entity_ratio : 20) * FW_MAX(len, (size_t)4096);
	look_over(input, len, &s->dirty, &s->has_cr);
	x->malformed = s->dirty; /* wherever it stands; reported where it is met in text */
	if (is_decl(p, s->end))
		p = xml_decl(s, p);
	XML_TRY(fw_xml_content(s, p));
	XML_TRY(close_to(s, s->end, 0, "an element without an end tag"));
	if (!s->seen_element)
		fw_xml_repair(s, s->end, "a document without an element", "nothing to read");
	return 0;
}

void fw_xml_walk(struct fw_xml_place *at, const char *input, size_t len, size_t offset, uint32_t *line, uint32_t *column)
{
	if (offset > len)
		offset = len;
	if (offset < at->offset)
		*at = (struct fw_xml_place){0};
	for (; at->offset < offset; at->offset++) {
		char c = input[at->offset];

		if (c == '\n' || (c == '\r' && (at->offset + 1 == len || input[at->offset + 1] != '\n'))) {
			at->line++;
			at->column = 0;
		} else {
			at->column += ((unsigned char)c & 0xc0) != 0x80;
		}
	}
	*line = at->line + 1;
	*column = at->column + 1;
}

void fw_xml_position(const char *input, size_t len, size_t offset, uint32_t *line, uint32_t *column)
{
	struct fw_xml_place at = {0};

	fw_xml_walk(&at, input, len, offset, line, column);
}
