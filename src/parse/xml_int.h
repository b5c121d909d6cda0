/* SPDX-License-Identifier: ISC */
/*
 * What the parts of the tokenizer share: see the top of xml.c.
 * Nobody else includes this.
 */
#ifndef FW_PARSE_XML_INT_H
#define FW_PARSE_XML_INT_H

#include "base/str.h"
#include "parse/scan.h"
#include "parse/xml.h"

#define XML_TRY(call) \
	do { \
		int rc_ = (call); \
		if (rc_) \
			return rc_; \
	} while (0)

/* ---- a hash table in the arena: nodes are embedded, keys borrowed --------------------------------------------------- */

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
	struct fw_str uri; /* absent: not bound; then ns is a guess */
	bool guessed;      /* its absence was reported */
	uint32_t undo_n;   /* records in xml_state.undo that point here */
};

struct xml_entity {
	struct xml_node node;
	struct fw_str text;  /* replacement text, 16 readable bytes behind it */
	bool external, unparsed;
	bool open;           /* being expanded: guards against recursion */
};

/* <!ATTLIST: what is declared for one attribute */
struct xml_attdef {
	struct xml_attdef *next, *next_default;
	struct fw_str name, value; /* value absent: no default */
	bool tokens;               /* any type but CDATA: its white space collapses */
};

struct xml_attlist {
	struct xml_node node; /* key: the element's name as written */
	struct xml_attdef *first, **tail;
	struct xml_attdef *first_default, **tail_default; /* those with a value */
	size_t n, tokens_n;
};

/* ---- the tokenizer's state ------------------------------------------------------------------------------------------------ */

struct xml_open {
	struct fw_xml_name name;
	struct fw_str raw; /* as written; 16 bytes are readable at raw.p */
	size_t undo_n;     /* bindings to take back when it ends */
};

struct xml_undo {
	struct xml_prefix *prefix;
	enum fw_ns ns;
	struct fw_str uri;
};

/* What an end tag that matches nothing at once is looked up by: the signatures of open elements, chained by bucket. */
struct xml_sign {
	uint32_t sig;
	uint32_t below; /* the next one further out in the same bucket, counted from 1; 0: none */
	uint32_t other; /* the next of them with another signature: a thousand open <a> are passed in one step */
};

#define PREFIX_CACHE 16
#define FLAT_BUCKETS 256

struct xml_state {
	struct fw_xml *x;
	const struct fw_xml_handler *h;
	struct fw_err *err;
	uint64_t seed;

	/* the window being read: the document, or an entity's replacement text */
	const char *begin, *end;
	bool in_entity;
	size_t ref_offset;    /* of the outermost reference while in_entity */
	unsigned entity_depth;
	size_t expanded, max_expanded;

	bool has_cr;
	bool dirty;           /* the document holds characters that XML does not allow */
	bool seen_element, seen_doctype, junk_reported;

	/* elements */
	struct xml_open *open;
	size_t open_cap;
	uint32_t max_depth, flat; /* flat: open elements past max_depth, which have no struct xml_open */

	/* attributes of the tag being read */
	struct fw_xml_attr *attr;
	size_t attr_n, attr_cap, max_attributes;
	uint64_t attr_bloom;
	struct attr_slot { uint32_t tag, index; } *attr_slot;
	size_t attr_slot_n;
	uint32_t attr_tag;

	/* namespaces */
	struct xml_table prefixes;
	struct xml_prefix *free_prefix, *cache[PREFIX_CACHE];
	size_t held_n;          /* prefixes that undo records point to */
	struct xml_prefix none; /* the default namespace */
	struct xml_undo *undo;
	size_t undo_n, undo_cap;

	/* end tags that match nothing: see close_mismatched() */
	struct xml_sign *sign;  /* of open[0..sign_n) */
	uint32_t *innermost;    /* by signature & sign_mask: the chain's begin, counted from 1 */
	size_t sign_n, sign_cap, sign_mask;
	uint32_t flat_in[FLAT_BUCKETS]; /* flat elements by name, see flat_count() */

	/* once a search failed up to the end of the document it need not be tried again */
	bool no_quote, no_apostrophe, no_inner_tags, no_comment_end, no_cdata_end, no_pi_end;

	/* the next '>' behind lt and the quotes between, see inner_tag() */
	struct {
		const char *lt, *gt;
		bool odd_quotes, odd_apostrophes;
	} tag;

	/* DTD */
	struct xml_table entities, attlists;
	bool standalone, foreign; /* foreign: an external subset or a parameter entity was referred to, and not read */
	bool dtd_ignored;         /* declarations no longer count, as expat has it */

	char *scratch, *scratch_end; /* room for decoded characters of a few bytes */
};

static inline size_t xml_at(const struct xml_state *s, const char *p)
{
	return s->in_entity ? s->ref_offset : (size_t)(p - s->begin);
}

/* Something is not as XML has it; what is done about it. */
void fw_xml_repair(struct xml_state *s, const char *p, const char *what, const char *repair);
/* The same where XML itself is fine: a limit, an entity that is not loaded. */
void fw_xml_note(struct xml_state *s, const char *p, const char *what, const char *repair);
/* FW_ENOMEM or FW_ELIMIT, whichever it is, with words. */
int fw_xml_memory(struct xml_state *s);
/* The larger array (at least want members of size bytes), or NULL. */
void *fw_xml_room(struct xml_state *s, void *array, size_t *cap, size_t want, size_t size);

struct xml_node *fw_xml_table_find(const struct xml_table *t, uint64_t seed, struct fw_str key);
FW_MUST_CHECK int fw_xml_table_add(struct xml_state *s, struct xml_table *t, struct xml_node *node, struct fw_str key);

/* Is the name (of name bytes, the first one a start) a name by XML 1.0, 5th edition? Only those outside ASCII can fail. */
bool fw_xml_name_ok(const char *p, const char *end);
/* May XML 1.0 hold this character? */
bool fw_xml_char_ok(uint32_t cp);

/* The first place in [p, end) where needle stands, or NULL. */
const char *fw_xml_find(const char *p, const char *end, const char *needle, size_t n);
/* The same up to the window's end, with a failure in the document remembered in *none: it is not tried again. */
const char *fw_xml_find_once(struct xml_state *s, const char *p, const char *needle, size_t n, bool *none);
/* Content up to s->end; elements may stay open. */
FW_MUST_CHECK int fw_xml_content(struct xml_state *s, const char *p);

enum {
	TAG_EMPTY = 1,    /* ends in "/>" */
	TAG_CUT = 2,      /* the input ended before the tag did */
	TAG_COLONS = 4,   /* some attribute's name has a colon, or is xmlns */
	TAG_TOO_MANY = 8, /* attributes */
	TAG_VALUED = 16,  /* some attribute has a value */
	TAG_STRAY = 32,   /* "a <b and c <d>": no tag at all */
};

struct xml_tag {
	const char *lt, *end; /* end: behind '>' */
	struct xml_open *open; /* the place on top of the stack that it is read into */
	unsigned flags;
};

/* ---- xml.c -------------------------------------------------------------------------------------------------------------------------- */

/* "<" that begins nothing: it is text. */
FW_MUST_CHECK int fw_xml_stray_lt(struct xml_state *s, const char **pp);
/* "]]>" in text, reported. */
void fw_xml_stray_cdata_end(struct xml_state *s, const char *p);
/* Text from p: an event, unless there is none. */
FW_MUST_CHECK int fw_xml_emit(struct xml_state *s, const char *p, const char *end, struct fw_str text);
FW_MUST_CHECK int fw_xml_expand(struct xml_state *s, const char *p, struct xml_entity *e);

/* ---- xml_text.c ----------------------------------------------------------------------------------------------------------------------- */

/* *pp at the first '&' of the text that begins at from: all up to the next '<', decoded. */
FW_MUST_CHECK int fw_xml_whole_text(struct xml_state *s, const char *from, const char **pp);

/* ---- xml_tag.c ------------------------------------------------------------------------------------------------------------------------ */

/* *pp at '<', a name's first byte behind it. */
FW_MUST_CHECK int fw_xml_start_tag(struct xml_state *s, const char **pp);
/* *pp at "</". */
FW_MUST_CHECK int fw_xml_end_tag(struct xml_state *s, const char **pp);
/* The input ends inside a tag: it is left out. */
FW_MUST_CHECK int fw_xml_cut_tag(struct xml_state *s, const char **pp);
/* Close elements until depth of them are left; nothing in the document says so. */
FW_MUST_CHECK int fw_xml_close_to(struct xml_state *s, const char *p, uint32_t depth, const char *what);

/* ---- xml_attr.c ----------------------------------------------------------------------------------------------------------------------- */

/* What stands between the element's name and '>', into s->attr; t->end goes behind it. */
FW_MUST_CHECK int fw_xml_attributes(struct xml_state *s, struct xml_tag *t, const char *p);
/* Defaults and types that the DTD declares for the element. */
FW_MUST_CHECK int fw_xml_attrs_declared(struct xml_state *s, struct fw_str raw);
/* Declarations of namespaces leave the list, prefixes are resolved. */
FW_MUST_CHECK int fw_xml_attrs_resolve(struct xml_state *s);

/* ---- xml_ns.c ------------------------------------------------------------------------------------------------------------------------- */

/* A name as written to prefix and local name; not resolved yet. */
void fw_xml_split_name(struct xml_state *s, const char *p, const struct scan_name *n, struct fw_xml_name *out);
/* An attribute named xmlns or xmlns:prefix. */
FW_MUST_CHECK int fw_xml_declare(struct xml_state *s, const struct fw_xml_attr *a);
/* Namespace of a name that has a prefix. */
FW_MUST_CHECK int fw_xml_resolve(struct xml_state *s, struct fw_xml_name *name);
/* Take declarations back until undo_n are left. */
void fw_xml_unbind(struct xml_state *s, size_t undo_n);

/* ---- xml_ref.c ------------------------------------------------------------------------------------------------------------ */

enum xml_ref_kind {
	XML_REF_LITERAL, /* stands for itself: the bytes up to end are text */
	XML_REF_CHAR,    /* text is what it means, maybe nothing */
	XML_REF_ENTITY,  /* internal, to be expanded */
	XML_REF_SKIPPED, /* external, or past a limit */
};

struct xml_ref {
	enum xml_ref_kind kind;
	const char *end;
	struct fw_str text;
	struct xml_entity *entity;
};

/* The window becomes e's text, referred to at p; and back to what it was. */
void fw_xml_enter(struct xml_state *s, const char *p, struct xml_entity *e);
void fw_xml_leave(struct xml_state *s, struct xml_entity *e, const char *begin, const char *end, bool in_entity);
/* What "&lt;" and its like at p ('&') stand for, and how long they are; NULL: it is something else. */
static inline const char *fw_xml_predefined(const char *p, const char *end, size_t *n)
{
	ptrdiff_t left = end - p;

	if (left >= 4 && p[2] == 't' && p[3] == ';' && (p[1] == 'l' || p[1] == 'g')) {
		*n = 4;
		return p[1] == 'l' ? "<" : ">";
	}
	if (left >= 5 && memcmp(p + 1, "amp;", 4) == 0) {
		*n = 5;
		return "&";
	}
	if (left >= 6 && p[5] == ';' && (memcmp(p + 1, "quot", 4) == 0 || memcmp(p + 1, "apos", 4) == 0)) {
		*n = 6;
		return p[1] == 'q' ? "\"" : "'";
	}
	return NULL;
}

/* What stands at p ('&'); repairs are reported, expansion is accounted for. */
FW_MUST_CHECK int fw_xml_ref(struct xml_state *s, const char *p, struct xml_ref *r, bool in_value);
/* An attribute's value from p, behind its quote (0: unquoted); *pp goes behind it. cut: the tag ended inside it. */
FW_MUST_CHECK int fw_xml_value(struct xml_state *s, const char **pp, char quote, struct fw_str *out, bool *cut);
/* References in [from, to) resolved, white space and line ends normalised (XML 1.0 section 3.3.3). */
FW_MUST_CHECK int fw_xml_decode(struct xml_state *s, const char *from, const char *to, struct fw_str *out);
/* White space at both ends gone, runs of it one space: what tokenized attribute types ask for. */
FW_MUST_CHECK int fw_xml_collapse(struct xml_state *s, struct fw_str *value);

/* ---- xml_dtd.c ------------------------------------------------------------------------------------------------------------ */

/* *pp at "<!DOCTYPE"; goes behind its '>'. */
FW_MUST_CHECK int fw_xml_doctype(struct xml_state *s, const char **pp);

#endif
