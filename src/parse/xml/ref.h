/* SPDX-License-Identifier: ISC */
/* References and attribute values. */
#ifndef FW_PARSE_XML_REF_H
#define FW_PARSE_XML_REF_H

#include "parse/xml/state.h"

enum xml_ref_kind {
	XML_REF_LITERAL, /* not a reference: the bytes up to end are text */
	XML_REF_CHAR,    /* text is its replacement, possibly empty */
	XML_REF_ENTITY,  /* internal entity, to be expanded */
	XML_REF_SKIPPED, /* external, or a limit is reached */
};

struct xml_ref {
	enum xml_ref_kind kind;
	const char *end;
	struct fw_str text;
	struct xml_entity *entity;
};

/* Make e's text the window, for a reference at p; and restore the previous window. */
void fw_xml_enter(struct xml_state *s, const char *p, struct xml_entity *e);
void fw_xml_leave(struct xml_state *s, struct xml_entity *e, const char *begin, const char *end, bool in_entity);
/*
 * The replacement of a predefined reference ("&lt;" ...) at p ('&') and its length in *n; NULL: it
 * is not one.
 */
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

/* Read the reference at p ('&'). Repairs are reported; expansion counts toward the limit. */
FW_MUST_CHECK int fw_xml_ref(struct xml_state *s, const char *p, struct xml_ref *r, bool in_value);
/*
 * Read an attribute value from p, after its quote (0: unquoted), and move *pp past it. cut: the tag
 * ended inside it.
 */
FW_MUST_CHECK int fw_xml_value(struct xml_state *s, const char **pp, char quote, struct fw_str *out, bool *cut);
/*
 * Resolve the references in [from, to) and normalise white space and line ends (XML 1.0 section
 * 3.3.3).
 */
FW_MUST_CHECK int fw_xml_decode(struct xml_state *s, const char *from, const char *to, struct fw_str *out);
/* Trim white space and collapse runs to one space, as tokenized attribute types require. */
FW_MUST_CHECK int fw_xml_collapse(struct xml_state *s, struct fw_str *value);

#endif
