/* SPDX-License-Identifier: ISC */
/*
 * Used by every file of the tokenizer: reports, memory, hash tables, and the characters of XML
 * names.
 */
#include "base/hash.h"
#include "base/utf8.h"
#include "parse/xml/util.h"

/* ---- reports, memory, tables ----------------------------------------------------------------- */

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
		return fw_err_set(s->err, FW_ELIMIT,
			"the document needs more memory than the limit of %zu bytes: raise max_memory", max);
	return fw_err_set(s->err, FW_ENOMEM, "out of memory for the document");
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

		t->slot = fw_arena_calloc(s->x->arena, n, sizeof(struct xml_node *));
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

/* ---- characters and names -------------------------------------------------------------------- */

bool fw_xml_char_ok(uint32_t cp)
{
	if (cp < 0x20)
		return cp == '\t' || cp == '\n' || cp == '\r';
	return cp < 0xd800 || (cp >= 0xe000 && cp < 0xfffe) || (cp >= 0x10000 && cp <= 0x10ffff);
}

/* NameStartChar and NameChar of XML 1.0, 5th edition, without ASCII */
static bool name_cp_ok(uint32_t cp, bool first)
{
	static const struct {
		uint32_t from, to;
	} START[] = {
		{0xc0, 0xd6},
		{0xd8, 0xf6},
		{0xf8, 0x2ff},
		{0x370, 0x37d},
		{0x37f, 0x1fff},
		{0x200c, 0x200d},
		{0x2070, 0x218f},
		{0x2c00, 0x2fef},
		{0x3001, 0xd7ff},
		{0xf900, 0xfdcf},
		{0xfdf0, 0xfffd},
		{0x10000, 0xeffff},
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

const char *fw_xml_find_once(struct xml_state *s, const char *p, const char *needle, size_t n, bool *none)
{
	const char *r = *none && !s->in_entity ? NULL : fw_xml_find(p, s->end, needle, n);

	if (!r && !s->in_entity)
		*none = true;
	return r;
}
