/* SPDX-License-Identifier: ISC */
/*
 * From bytes to UTF-8 (CHR-01 ... CHR-05). Order: BOM, HTTP charset, XML declaration or an HTML page's <meta>, UTF-8 (RFC 7303 section
 * 3.2); when that fails to decode: the other declared one, what uchardet says, windows-1252. Labels are the WHATWG Encoding
 * Standard's; no other name is ever decoded by.
 */
#ifndef FW_PARSE_CHARSET_CHARSET_H
#define FW_PARSE_CHARSET_CHARSET_H

#include "base/arena.h"

struct fw_charset_result {
	struct fw_str text;    /* valid UTF-8, no BOM, no NUL; borrowed from the input when nothing had to change */
	const char *encoding;  /* WHATWG name in lower case: "utf-8", "windows-1252", "shift_jis", "utf-16le" */
	const char *declared_by; /* "bom", "zeros", "http", "xml", "default", "sniffed" */
	bool wrong;            /* bytes were invalid for the declared encoding, or it is unknown, or declarations disagree fatally */
	const char *problem;   /* what to record in problems, or NULL */
	const char *repair;
	size_t offset;         /* of the problem in text: the first of several, the declaration's, or 0 */
};

/*
 * in      content_type: the header's value; absent when there was none
 * out     *r; text lives in the arena or in the input
 * errors  FW_ENOMEM, FW_ELIMIT (arena's ceiling)
 */
FW_MUST_CHECK int fw_charset_decode(struct fw_arena *a, struct fw_str bytes, struct fw_str content_type,
	struct fw_charset_result *r, struct fw_err *err);

/* WHATWG label to encoding name ("latin1" -> "windows-1252"); NULL when it is none. White space and case do not count. */
const char *fw_charset_label(struct fw_str label);
/* The charset parameter of a Content-Type value, quotes taken off; absent when there is none. */
struct fw_str fw_charset_of_type(struct fw_str content_type);

#endif
