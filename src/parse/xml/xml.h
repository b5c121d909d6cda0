/* SPDX-License-Identifier: ISC */
/*
 * The tolerant XML tokenizer: one pass over UTF-8 that is whole in memory, events by callback.
 *
 * Well-formed input gives exactly the events that a namespace-aware expat gives. Ill-formed input is repaired and each
 * repair is reported once. Strings are borrowed: slices of the input where nothing had to be decoded, else of the arena.
 * Linear in the input, whatever the input. Pure: no I/O, no globals.
 */
#ifndef FW_PARSE_XML_XML_H
#define FW_PARSE_XML_XML_H

#include "base/arena.h"
#include "feedwheel/document.h"
#include "parse/xml/ns.h"

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

/* Line and column (both from 1, column in characters) of an offset; cost is linear in offset: for problems only. */
void fw_xml_position(const char *input, size_t len, size_t offset, uint32_t *line, uint32_t *column);

/* The same for many offsets, most of them in ascending order: each byte between them is looked at once. Start with {0}. */
struct fw_xml_place {
	size_t offset;
	uint32_t line, column; /* less 1 */
};
void fw_xml_walk(struct fw_xml_place *at, const char *input, size_t len, size_t offset, uint32_t *line, uint32_t *column);

#endif
