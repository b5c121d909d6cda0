/* SPDX-License-Identifier: ISC */
/*
 * The tolerant XML tokenizer: one pass over UTF-8 that is whole in memory, events by callback.
 *
 * Well-formed input gives exactly the events that a namespace-aware expat gives. Ill-formed input is repaired and each
 * repair is reported once. Strings are borrowed: slices of the input where nothing had to be decoded, else of the arena.
 * Linear in the input, whatever the input. Pure: no I/O, no globals.
 */
#ifndef FW_PARSE_XML_H
#define FW_PARSE_XML_H

#include "base/arena.h"
#include "feedwheel/document.h"

/* Namespaces are resolved to small numbers; 0 is none or unknown (then uri tells). The table is xml.c's; see fw_ns_find(). */
enum fw_ns {
	FW_NS_NONE, FW_NS_XML, FW_NS_XMLNS, FW_NS_UNKNOWN,
	FW_NS_ATOM10, FW_NS_ATOM03, FW_NS_RDF, FW_NS_RSS10, FW_NS_RSS090, FW_NS_RSS11, FW_NS_RSS20, FW_NS_CDF, FW_NS_XHTML,
	FW_NS_CONTENT, FW_NS_DC, FW_NS_DCTERMS, FW_NS_SY, FW_NS_SLASH, FW_NS_WFW, FW_NS_THR, FW_NS_MEDIA, FW_NS_ITUNES,
	FW_NS_PODCAST, FW_NS_GEORSS, FW_NS_GML, FW_NS_GEO, FW_NS_PSC, FW_NS_FEEDBURNER, FW_NS_FH, FW_NS_CC, FW_NS_CREATIVECOMMONS,
	FW_NS_ICBM, FW_NS_ADMIN, FW_NS_GOOGLEPLAY, FW_NS_SOURCE, FW_NS_OPENSEARCH, FW_NS_APP, FW_NS_SVG, FW_NS_MATHML,
	FW_NS_AG, FW_NS_ANNOTATE, FW_NS_XLINK, FW_NS_PINGBACK, FW_NS_TRACKBACK, FW_NS_BLOGCHANNEL, FW_NS_TAXO, FW_NS_FOAF,
	FW_NS_ENC, FW_NS_PRISM,
	FW_NS_COUNT
};

struct fw_xml_name {
	enum fw_ns ns;
	struct fw_str local;  /* as written */
	struct fw_str prefix; /* empty when there was none */
	struct fw_str uri;    /* the namespace as declared; absent when there is none */
};

struct fw_xml_attr {
	struct fw_xml_name name;
	struct fw_str value; /* decoded and normalised (XML 1.0 section 3.3.3) */
};

/*
 * Any handler may be NULL. Character data may come in several pieces; cdata tells that it stood in a CDATA section.
 * A handler returns 0 to go on, anything else to stop: fw_xml_parse returns it.
 */
struct fw_xml_handler {
	int (*start)(void *ctx, const struct fw_xml_name *name, const struct fw_xml_attr *attr, size_t attr_n);
	int (*end)(void *ctx, const struct fw_xml_name *name);
	int (*text)(void *ctx, struct fw_str text, bool cdata);
	int (*comment)(void *ctx, struct fw_str text);
	int (*pi)(void *ctx, struct fw_str target, struct fw_str data);
	/* what and repair are string constants; offset is in bytes from the start of the input */
	void (*problem)(void *ctx, size_t offset, const char *what, const char *repair);
};

struct fw_xml {
	/* the caller sets these before the first call */
	struct fw_arena *arena; /* decoded text, namespace bindings, the element stack */
	const struct fw_xml_handler *handler;
	void *ctx;
	struct fw_limits limits;
	/*
	 * A handler may change this at any time: text up to the next tag or section that holds references comes in one piece, decoded in the
	 * arena. Entities that the document declares still part it, and everything does where it holds characters that XML forbids.
	 */
	bool whole_text;
	/* results, readable at any time from a handler */
	size_t offset;       /* of the token being reported */
	size_t end_offset;   /* just behind it */
	bool malformed;      /* something was repaired */
	uint32_t depth;
	uint32_t skipped;    /* references to what only a DTD that is never loaded could declare, or past a limit */
	void *priv;
};

/* Tokenize input[0..len), valid UTF-8 without BOM. 0, a handler's value, or FW_ENOMEM / FW_ELIMIT. */
FW_MUST_CHECK int fw_xml_parse(struct fw_xml *x, const char *input, size_t len, struct fw_err *err);

/* Exact match first, then near misses: case, trailing slash or #, http against https, www. */
enum fw_ns fw_ns_find(struct fw_str uri);
/* What an undeclared prefix most likely means ("dc", "media", "itunes" ...); FW_NS_UNKNOWN when we cannot tell. */
enum fw_ns fw_ns_guess(struct fw_str prefix);

/* Line and column (both from 1, column in characters) of an offset; cost is linear in offset: for problems only. */
void fw_xml_position(const char *input, size_t len, size_t offset, uint32_t *line, uint32_t *column);

/* The same for many offsets, most of them in ascending order: each byte between them is looked at once. Start with {0}. */
struct fw_xml_place {
	size_t offset;
	uint32_t line, column; /* less 1 */
};
void fw_xml_walk(struct fw_xml_place *at, const char *input, size_t len, size_t offset, uint32_t *line, uint32_t *column);

/* entity.c: "nbsp", "eacute", "hellip" (without & and ;): the HTML5 name's one or two code points; returns how many, 0 unknown. */
int fw_entity_find(struct fw_str name, uint32_t cp[2]);
/* The number behind "&#", "x" for hexadecimal; *pp goes behind it. False: no digits. Too large ones stay above U+10FFFF. */
bool fw_entity_number(const char **pp, const char *end, uint32_t *cp);
/* Decode HTML character references in s once, as browsers do (also "&amp" without semicolon): borrowed when there are none. */
struct fw_str fw_entity_decode(struct fw_arena *a, struct fw_str s);

#endif
