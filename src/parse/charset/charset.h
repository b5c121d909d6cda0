/* SPDX-License-Identifier: ISC */
/*
 * Converts a document of any encoding to UTF-8 (CHR-01 to CHR-05).
 *
 * Declarations count in this order: byte order mark (BOM), HTTP charset, XML declaration or HTML
 * <meta>, then the default UTF-8 (RFC 7303 section 3.2). If the declared encoding fails to decode
 * the bytes, the fallbacks are the other declared one, uchardet's guess and windows-1252. Only
 * labels of the WHATWG Encoding Standard are accepted.
 */
#ifndef FW_PARSE_CHARSET_CHARSET_H
#define FW_PARSE_CHARSET_CHARSET_H

#include "base/arena.h"

struct fw_charset_result {
	/* valid UTF-8 without BOM and NUL; borrows from the input if nothing changed */
	struct fw_str text;
	/* WHATWG name in lower case: "utf-8", "windows-1252", "shift_jis", "utf-16le" */
	const char *encoding;
	const char *declared_by; /* "bom", "zeros", "http", "xml", "default", "sniffed" */
	/*
	 * bytes are invalid for the declared encoding, the label is unknown, or declarations
	 * conflict
	 */
	bool wrong;
	const char *problem; /* text for the document's problems, or NULL */
	const char *repair;
	/* of the problem, in text: the first fault, the declaration, or 0 */
	size_t offset;
};

/*
 * in      content_type: the header's value; absent if there is none
 * out     *r; its text lives in the arena or in the input
 * errors  FW_ENOMEM, FW_ELIMIT (the arena's limit)
 */
FW_MUST_CHECK int fw_charset_decode(struct fw_arena *a, struct fw_str bytes, struct fw_str content_type,
	struct fw_charset_result *r, struct fw_err *err);

/* decode.c: see fw_parse_preload(). */
void fw_charset_preload(void);

/*
 * Map a WHATWG label to its encoding name ("latin1" -> "windows-1252"). NULL: unknown label. White
 * space around the label and its case are ignored.
 */
const char *fw_charset_label(struct fw_str label);
/* The charset parameter of a Content-Type value, without quotes; absent if there is none. */
struct fw_str fw_charset_of_type(struct fw_str content_type);

#endif
