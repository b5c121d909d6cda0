/* SPDX-License-Identifier: ISC */
/*
 * Namespace prefixes: their bindings and meanings.
 *
 * A prefix has one entry for the whole document, found by hash and kept in a small cache. A
 * declaration changes the entry; a stack of undo records restores it when the element ends. So a
 * name costs one comparison, however many declarations there are.
 */
#include "parse/xml/prefix.h"
#include "parse/xml/util.h"

#define MAX_PREFIXES 4096

static const struct fw_str URI_XML = {"http://www.w3.org/XML/1998/namespace", 36};
static const struct fw_str URI_XMLNS = {"http://www.w3.org/2000/xmlns/", 29};

/* Remove prefixes that no open element declares, to limit their number. */
static void purge_prefixes(struct xml_state *s)
{
	for (size_t i = 0; i <= s->prefixes.mask; i++) {
		for (struct xml_node **at = &s->prefixes.slot[i]; *at;) {
			struct xml_prefix *px = (struct xml_prefix *)*at;

			if (px->undo_n) {
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

/*
 * Find or create the entry of a prefix. *out is NULL if there are too many. name must live as long
 * as the arena.
 */
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
			if (s->held_n > MAX_PREFIXES / 2) /* purging would free too few */
				return 0;
			purge_prefixes(s);
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

static int prefix_bind(struct xml_state *s, const char *at, struct xml_prefix *px, struct fw_str uri)
{
	if (s->undo_n == s->undo_cap) {
		void *p = fw_xml_room(s, s->undo, &s->undo_cap, s->undo_n + 1, sizeof(*s->undo));

		if (!p)
			return fw_xml_memory(s);
		s->undo = p;
	}
	s->undo[s->undo_n++] = (struct xml_undo){px, px->ns, px->uri};
	s->held_n += px->undo_n++ == 0;
	if (uri.len) {
		px->uri = uri;
		px->ns = fw_str_eq(uri, URI_XML) ? FW_NS_XML : fw_ns_find(uri);
		return 0;
	}
	if (px != &s->none)
		fw_xml_repair(s, at, "a namespace prefix bound to an empty URI", "the prefix is taken as undeclared");
	px->uri = FW_STR_NONE;
	px->ns = FW_NS_NONE;
	return 0;
}

/* Handle an attribute named xmlns or xmlns:prefix. */
int fw_xml_declare(struct xml_state *s, const struct fw_xml_attr *a)
{
	struct fw_str local = a->name.local;
	struct xml_prefix *px;

	if (a->name.prefix.len == 0) {
		if (fw_str_eq(a->value, URI_XML) || fw_str_eq(a->value, URI_XMLNS)) {
			fw_xml_repair(s, local.p, "a reserved namespace as default", "declaration left out");
			return 0;
		}
		return prefix_bind(s, local.p, &s->none, a->value);
	}
	if (fw_str_eq(local, FW_STR("xmlns")) || fw_str_eq(local, FW_STR("xml")) || fw_str_eq(a->value, URI_XMLNS) ||
		fw_str_eq(a->value, URI_XML)) {
		if (!fw_str_eq(local, FW_STR("xml")) || !fw_str_eq(a->value, URI_XML))
			fw_xml_repair(
				s, local.p, "a reserved namespace or prefix is declared anew", "declaration left out");
		return 0;
	}
	if (local.len == 0)
		return 0; /* "xmlns:": reported as a name */
	XML_TRY(prefix_entry(s, local, &px));
	if (!px) {
		fw_xml_note(s, local.p, "too many namespace prefixes", "declaration left out");
		return 0;
	}
	return prefix_bind(s, local.p, px, a->value);
}

void fw_xml_unbind(struct xml_state *s, size_t undo_n)
{
	while (s->undo_n > undo_n) {
		struct xml_undo *u = &s->undo[--s->undo_n];

		s->held_n -= --u->prefix->undo_n == 0;
		u->prefix->ns = u->ns;
		u->prefix->uri = u->uri;
	}
}

/* Resolve the namespace of a name that has a prefix. */
int fw_xml_resolve(struct xml_state *s, struct fw_xml_name *name)
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

void fw_xml_split_name(struct xml_state *s, const char *p, const struct scan_name *n, struct fw_xml_name *out)
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
