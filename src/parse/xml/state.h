/* SPDX-License-Identifier: ISC */
/* The tokenizer's state, shared by the files of this folder and private to them. */
#ifndef FW_PARSE_XML_STATE_H
#define FW_PARSE_XML_STATE_H

#include "base/str.h"
#include "parse/xml/xml.h"

#define XML_TRY(call)               \
	do {                        \
		int rc_ = (call);   \
		if (rc_)            \
			return rc_; \
	} while (0)

/* ---- a hash table in the arena: nodes are embedded, keys borrowed ---------------------------- */

struct xml_node {
	struct xml_node *next;
	uint64_t hash;
	struct fw_str key;
};

struct xml_table {
	struct xml_node **slot;
	size_t n, mask;
};

struct xml_prefix {
	struct xml_node node;
	enum fw_ns ns;
	struct fw_str uri; /* absent: not bound; ns is a guess then */
	bool guessed;      /* the missing declaration was reported */
	uint32_t undo_n;   /* records in xml_state.undo that point here */
};

struct xml_entity {
	struct xml_node node;
	struct fw_str text; /* replacement text, followed by 16 readable bytes */
	bool external, unparsed;
	bool open; /* being expanded; prevents recursion */
};

/* <!ATTLIST: the declaration of one attribute */
struct xml_attdef {
	struct xml_attdef *next, *next_default;
	struct fw_str name, value; /* value absent: no default */
	bool tokens;               /* any type but CDATA: white space is collapsed */
};

struct xml_attlist {
	struct xml_node node; /* key: the element's name as written */
	struct xml_attdef *first, **tail;
	struct xml_attdef *first_default, **tail_default; /* those with a value */
	size_t n, tokens_n;
};

/* ---- the tokenizer's state ------------------------------------------------------------------- */

struct xml_open {
	struct fw_xml_name name;
	struct fw_str raw; /* as written; followed by at least 16 readable bytes at raw.p */
	size_t undo_n;     /* bindings to restore when it ends */
};

struct xml_undo {
	struct xml_prefix *prefix;
	enum fw_ns ns;
	struct fw_str uri;
};

/*
 * Index for end tags that do not match the innermost element: signatures of open elements, chained
 * by bucket.
 */
struct xml_sign {
	uint32_t sig;
	/* the next outer element in the same bucket, counted from 1; 0: none */
	uint32_t below;
	/* the next with another signature, so that 1,000 open <a> are skipped in one step */
	uint32_t other;
};

#define PREFIX_CACHE 16
#define FLAT_BUCKETS 256

struct attr_slot {
	uint32_t tag, index;
};

struct xml_state {
	struct fw_xml *x;
	const struct fw_xml_handler *h;
	struct fw_err *err;
	uint64_t seed;

	/* the current window: the document, or an entity's replacement text */
	const char *begin, *end;
	bool in_entity;
	size_t ref_offset; /* of the outermost reference while in_entity */
	unsigned entity_depth;
	size_t expanded, max_expanded;

	bool has_cr;
	bool dirty; /* the document contains characters that XML forbids */
	bool seen_element, seen_doctype, junk_reported;

	/* elements */
	struct xml_open *open;
	size_t open_cap;
	/* flat: open elements below max_depth, which have no struct xml_open */
	uint32_t max_depth, flat;

	/* attributes of the tag being read */
	struct fw_xml_attr *attr;
	size_t attr_n, attr_cap, max_attributes;
	uint64_t attr_bloom;
	struct attr_slot *attr_slot;
	size_t attr_slot_n;
	uint32_t attr_tag;

	/* namespaces */
	struct xml_table prefixes;
	struct xml_prefix *free_prefix, *cache[PREFIX_CACHE];
	size_t held_n;          /* prefixes that undo records point to */
	struct xml_prefix none; /* the default namespace */
	struct xml_undo *undo;
	size_t undo_n, undo_cap;

	/* end tags that do not match the innermost element: see close_mismatched() */
	struct xml_sign *sign; /* of open[0..sign_n) */
	uint32_t *innermost;   /* start of the chain of a signature & sign_mask, counted from 1 */
	size_t sign_n, sign_cap, sign_mask;
	uint32_t flat_in[FLAT_BUCKETS]; /* flat elements by name, see flat_count() */

	/* a search that reached the end of the document without success is not repeated */
	bool no_quote, no_apostrophe, no_inner_tags, no_comment_end, no_cdata_end, no_pi_end;

	/* cached: the next '>' after lt and the parity of the quotes between, see inner_tag() */
	struct {
		const char *lt, *gt;
		bool odd_quotes, odd_apostrophes;
	} tag;

	/* DTD */
	struct xml_table entities, attlists;
	/* foreign: an external subset or a parameter entity was referenced and not read */
	bool standalone, foreign;
	bool dtd_ignored; /* later declarations are ignored, as in expat */

	char *scratch, *scratch_end; /* room for short decoded texts */
};

static inline size_t xml_at(const struct xml_state *s, const char *p)
{
	return s->in_entity ? s->ref_offset : (size_t)(p - s->begin);
}

#endif
