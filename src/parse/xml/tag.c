/* SPDX-License-Identifier: ISC */
/*
 * Tags and the stack of open elements: what an end tag closes, and what happens if it closes
 * nothing.
 *
 * A start tag is parsed directly into its entry on the stack. An end tag is one comparison with the
 * top entry; if it differs, the tag is looked up in a hash table of the open elements, which is
 * built at the first such tag (close_mismatched).
 */
#include "base/hash.h"
#include "parse/xml/attr.h"
#include "parse/xml/core.h"
#include "parse/xml/prefix.h"
#include "parse/xml/tag.h"
#include "parse/xml/util.h"

/* ---- the stack ------------------------------------------------------------------------------- */

/* A 32-bit hash of a name, case folded: equal names have equal signatures. */
static uint32_t name_signature(const struct xml_state *s, struct fw_str name)
{
	char folded[64];
	uint64_t hash = s->seed;
	size_t n;

	for (; name.len; name = fw_str_sub(name, n, name.len)) {
		n = FW_MIN(name.len, sizeof(folded));
		for (size_t i = 0; i < n; i++)
			folded[i] = (char)fw_lower((unsigned char)name.p[i]);
		hash = fw_hash64_seed(folded, n, hash);
	}
	return (uint32_t)hash;
}

/*
 * The number of open elements below max_depth in name's bucket. Unseeded: every run must give the
 * same result.
 */
static uint32_t *flat_count(struct xml_state *s, struct fw_str name)
{
	uint32_t bucket = (uint32_t)name.len;

	for (size_t i = 0; i < name.len && i < 16; i++)
		bucket = bucket * 31 + (uint32_t)fw_lower((unsigned char)name.p[i]);
	return &s->flat_in[bucket % FLAT_BUCKETS];
}

static int end_event(struct xml_state *s, const struct fw_xml_name *name)
{
	return s->h->end ? s->h->end(s->x->ctx, name) : 0;
}

/* Remove the innermost element and report its end. */
static int element_pop(struct xml_state *s)
{
	struct xml_open *o = &s->open[s->x->depth - 1];
	int rc = end_event(s, &o->name);

	if (s->undo_n != o->undo_n)
		fw_xml_unbind(s, o->undo_n);
	s->x->depth--;
	if (s->sign_n > s->x->depth) {
		struct xml_sign *g = &s->sign[--s->sign_n];

		/* the innermost element heads its chain */
		s->innermost[g->sig & s->sign_mask] = g->below;
	}
	if (s->x->depth == 0)
		s->junk_reported = false;
	return rc;
}

/* Close elements until depth of them are left. The document has no end tags for them. */
int fw_xml_close_to(struct xml_state *s, const char *p, uint32_t depth, const char *what)
{
	s->x->offset = s->x->end_offset = xml_at(s, p);
	if (s->flat) {
		fw_xml_repair(s, p, what, "closed here");
		memset(s->flat_in, 0, sizeof(s->flat_in));
		s->flat = 0;
	}
	while (s->x->depth > depth) {
		fw_xml_repair(s, p, what, "closed here");
		XML_TRY(element_pop(s));
	}
	return 0;
}

static void sign_chain(struct xml_state *s, size_t i)
{
	struct xml_sign *g = &s->sign[i];
	uint32_t *at = &s->innermost[g->sig & s->sign_mask];

	g->below = *at;
	g->other = *at && s->sign[*at - 1].sig == g->sig ? s->sign[*at - 1].other : *at;
	*at = (uint32_t)i + 1;
}

/* Make room for depth signatures and at least as many chains. */
static int sign_room(struct xml_state *s, size_t depth)
{
	size_t chains = s->innermost ? s->sign_mask + 1 : 64;
	void *p;

	if (s->sign_cap < depth) {
		p = fw_xml_room(s, s->sign, &s->sign_cap, depth, sizeof(*s->sign));
		if (!p)
			return fw_xml_memory(s);
		s->sign = p;
	}
	if (s->innermost && chains >= depth)
		return 0;
	while (chains < depth)
		chains *= 2;
	s->innermost = fw_arena_calloc(s->x->arena, chains, sizeof(*s->innermost));
	if (!s->innermost)
		return fw_xml_memory(s);
	s->sign_mask = chains - 1;
	for (size_t i = 0; i < s->sign_n; i++)
		sign_chain(s, i);
	return 0;
}

/* Sign all open elements. From now on element_pop() keeps the table current. */
static int sign_open(struct xml_state *s)
{
	uint32_t depth = s->x->depth;

	XML_TRY(sign_room(s, depth));
	for (; s->sign_n < depth; s->sign_n++) {
		s->sign[s->sign_n].sig = name_signature(s, s->open[s->sign_n].raw);
		sign_chain(s, s->sign_n);
	}
	return 0;
}

/*
 * An end tag that does not match the innermost element. It may match an element below max_depth, an
 * ancestor (which closes the elements inside it), or nothing. Linear: each open element is signed
 * at most once, and chains stay short.
 */
static int close_mismatched(struct xml_state *s, const char *lt, struct fw_str raw, const char *behind_tag)
{
	uint32_t sig, depth;

	if (s->flat) {
		uint32_t *in = flat_count(s, raw);

		if (*in) {
			(*in)--;
			s->flat--;
			return 0;
		}
	}
	XML_TRY(sign_open(s));
	sig = name_signature(s, raw);
	depth = s->innermost[sig & s->sign_mask];
	while (depth > 0 && !(s->sign[depth - 1].sig == sig && fw_str_ieq(s->open[depth - 1].raw, raw)))
		depth = s->sign[depth - 1].sig == sig ? s->sign[depth - 1].below : s->sign[depth - 1].other;
	if (depth == 0) {
		fw_xml_repair(s, lt, "an end tag without a start tag", "left out");
		return 0;
	}
	XML_TRY(fw_xml_close_to(s, lt, depth, "an element without an end tag"));
	if (!fw_str_eq(s->open[depth - 1].raw, raw))
		fw_xml_repair(s, lt, "an end tag in another case than its start tag", "taken for the same");
	s->x->offset = xml_at(s, lt);
	s->x->end_offset = xml_at(s, behind_tag);
	return element_pop(s);
}

/* ---- tags ------------------------------------------------------------------------------------ */

int fw_xml_cut_tag(struct xml_state *s, const char **pp)
{
	fw_xml_repair(s, *pp, "the document ends inside a tag", "the tag is left out");
	*pp = s->end;
	return 0;
}

/* Make room for one more element; NULL: out of memory. */
static inline struct xml_open *open_room(struct xml_state *s)
{
	if (s->x->depth == s->open_cap) {
		void *p = fw_xml_room(s, s->open, &s->open_cap, s->x->depth + 1, sizeof(*s->open));

		if (!p)
			return NULL;
		s->open = p;
	}
	return &s->open[s->x->depth];
}

/* scan_same() reads 16 bytes of a name, so a name near the window's end is copied. */
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

/* An element below the depth limit: its text belongs to the last element above the limit. */
static void element_flatten(struct xml_state *s, const struct xml_tag *t)
{
	s->x->flattened = true;
	if (s->flat == 0)
		fw_xml_note(s, t->lt, "elements nested deeper than the limit allows (max_depth)", "flattened");
	if (t->flags & TAG_EMPTY)
		return;
	s->flat++;
	(*flat_count(s, t->open->raw))++;
}

/* The first element of the document, or one after its root. */
static void root_open(struct xml_state *s, const char *lt)
{
	if (s->seen_element)
		fw_xml_repair(s, lt, "an element after the document's element", "read as another one");
	s->seen_element = true;
	s->junk_reported = false;
}

/* Report the complete start tag in t and s->attr. */
static inline int start_event(struct xml_state *s, struct xml_tag *t)
{
	struct fw_xml *x = s->x;
	struct xml_open *o = t->open;

	if (x->depth == 0)
		root_open(s, t->lt);
	if (x->depth >= s->max_depth) {
		element_flatten(s, t);
		return 0;
	}
	o->undo_n = s->undo_n;
	if (s->attlists.n)
		XML_TRY(fw_xml_attrs_declared(s, o->raw));
	if ((t->flags & TAG_COLONS) || s->attlists.n)
		XML_TRY(fw_xml_attrs_resolve(s));
	if (o->name.prefix.len) {
		XML_TRY(fw_xml_resolve(s, &o->name));
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
	return t->flags & TAG_EMPTY ? element_pop(s) : 0;
}

/* *pp is at '<' and the start of a name follows. */
int fw_xml_start_tag(struct xml_state *s, const char **pp)
{
	const char *p = *pp + 1, *end = s->end;
	SCAN_SET_WHOLE struct scan_name n = scan_name(p, end);
	SCAN_SET_WHOLE struct xml_tag t = {*pp, NULL, NULL, 0};

	if (n.end == end)
		return fw_xml_cut_tag(s, pp);
	if (*n.end != '>' && !scan_is(*n.end, SCAN_SPACE) &&
		(n.end[-1] == ':' || *n.end != '/' || (end - n.end >= 2 && n.end[1] == '/')))
		return fw_xml_stray_lt(s, pp);
	t.open = open_room(s);
	if (!t.open)
		return fw_xml_memory(s);
	t.open->raw = (struct fw_str){p, (size_t)(n.end - p)};
	if (n.colon || n.high) {
		fw_xml_split_name(s, p, &n, &t.open->name);
	} else {
		t.open->name.local = (struct fw_str){p, (size_t)(n.end - p)};
		t.open->name.prefix = (struct fw_str){p, 0};
	}
	s->attr_n = 0;
	s->attr_bloom = 0;
	if (*n.end == '>')
		t.end = n.end + 1;
	else
		XML_TRY(fw_xml_attributes(s, &t, n.end));
	if (t.flags & TAG_CUT)
		return fw_xml_cut_tag(s, pp);
	if (t.flags & TAG_STRAY)
		return fw_xml_stray_lt(s, pp);
	*pp = t.end;
	return start_event(s, &t);
}

/* An end tag other than exactly </name> or </name >. */
static int odd_end_tag(struct xml_state *s, const char **pp)
{
	const char *lt = *pp, *p = lt + 2, *end = s->end, *from = scan_space(p, end);
	SCAN_SET_WHOLE struct scan_name n = scan_name(from, end);
	struct fw_str raw = {from, (size_t)(n.end - from)};

	p = scan_space(n.end, end);
	if (raw.len && !scan_is(*from, SCAN_START))
		raw.len = 0;
	if (p == end) {
		/* "</title" at the end of the document still closes the title */
		fw_xml_repair(s, lt, "the document ends inside a tag",
			raw.len ? "read as a whole one" : "the tag is left out");
	} else if (*p != '>' || from != lt + 2 || raw.len == 0) {
		while (p < end && *p != '>' && *p != '<')
			p++;
		fw_xml_repair(s, lt, "a malformed end tag", raw.len ? "the rest is left out" : "left out");
	}
	if (p < end && *p == '>')
		p++;
	*pp = p;
	if (raw.len == 0)
		return 0;
	if (!s->flat && s->x->depth && fw_str_eq(s->open[s->x->depth - 1].raw, raw)) {
		s->x->offset = xml_at(s, lt);
		s->x->end_offset = xml_at(s, p);
		return element_pop(s);
	}
	return close_mismatched(s, lt, raw, p);
}

int fw_xml_end_tag(struct xml_state *s, const char **pp)
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
				return element_pop(s);
			}
		}
	}
	return odd_end_tag(s, pp);
}
