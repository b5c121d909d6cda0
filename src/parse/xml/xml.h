/* SPDX-License-Identifier: ISC */
/*
 * The tolerant XML tokenizer. It reads UTF-8 that is complete in memory in one pass and reports
 * events by callback.
 *
 * Well-formed input gives exactly the events of a namespace-aware expat. Ill-formed input is
 * repaired, and each repair is reported once. Strings are borrowed: slices of the input where
 * nothing had to be decoded, else of the arena. Linear for any input. Pure: no I/O, no globals.
 */
#ifndef FW_PARSE_XML_XML_H
#define FW_PARSE_XML_XML_H

#include "base/arena.h"
#include "feedwheel/document.h"
#include "parse/xml/ns.h"

struct fw_xml_name {
	enum fw_ns ns;
	struct fw_str local;  /* as written */
	struct fw_str prefix; /* empty if there is none */
	struct fw_str uri;    /* the namespace as declared; absent if there is none */
};

struct fw_xml_attr {
	struct fw_xml_name name;
	struct fw_str value; /* decoded and normalised (XML 1.0 section 3.3.3) */
};

/*
 * Any handler may be NULL. Character data may arrive in several pieces; cdata: it stood in a CDATA
 * section. A handler returns 0 to continue; any other value stops and is returned by
 * fw_xml_parse().
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
	/* set by the caller before the first call */
	struct fw_arena *arena; /* decoded text, namespace bindings, the element stack */
	const struct fw_xml_handler *handler;
	void *ctx;
	struct fw_limits limits;
	/*
	 * A handler may change this at any time. Text with references then arrives in one piece up
	 * to the next tag or section, decoded in the arena. It is still split at entities that the
	 * document declares, and at forbidden characters.
	 */
	bool whole_text;
	/* results; a handler may read them at any time */
	size_t offset;     /* of the token being reported */
	size_t end_offset; /* just after it */
	bool flattened;    /* elements below max_depth were left out */
	bool malformed;    /* something was repaired */
	uint32_t depth;
	/* references that only a DTD, which is never loaded, could declare, or past a limit */
	uint32_t skipped;
	void *priv;
};

/*
 * Tokenize input[0..len), valid UTF-8 without BOM. Returns 0, a handler's value, FW_ENOMEM or
 * FW_ELIMIT.
 */
FW_MUST_CHECK int fw_xml_parse(struct fw_xml *x, const char *input, size_t len, struct fw_err *err);

/*
 * The line and column of an offset, both from 1, columns in characters. Linear in offset: for
 * problems only.
 */
void fw_xml_position(const char *input, size_t len, size_t offset, uint32_t *line, uint32_t *column);

/*
 * The same for many offsets, mostly ascending: each byte between them is read once. Start with {0}.
 */
struct fw_xml_place {
	size_t offset;
	uint32_t line, column; /* both minus 1 */
};
void fw_xml_place_move(
	struct fw_xml_place *at, const char *input, size_t len, size_t offset, uint32_t *line, uint32_t *column);

#endif
