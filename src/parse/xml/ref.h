/* SPDX-License-Identifier: ISC */
/* References and attribute values. */
#ifndef FW_PARSE_XML_REF_H
#define FW_PARSE_XML_REF_H

#include "parse/xml/state.h"

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

#endif
