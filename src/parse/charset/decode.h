/* SPDX-License-Identifier: ISC */
/* The interface between charset.c, which chooses an encoding, and decode.c, which decodes it. */
#ifndef FW_PARSE_CHARSET_DECODE_H
#define FW_PARSE_CHARSET_DECODE_H

#include "base/arena.h"
#include "base/str.h"

enum codec {
	SINGLE_BYTE,
	UTF8,
	UTF16LE,
	UTF16BE,
	UTF32LE,
	UTF32BE,
	GB18030,
	BIG5,
	EUC_KR,
	SHIFT_JIS,
	EUC_JP,
	ISO_2022_JP
};

struct encoding {
	const char *name;
	enum codec codec;
	/* lower case, separated by spaces */
	const char *labels;
};

/* The result of a decoding attempt. */
struct decode_stats {
	size_t fault_n; /* places replaced by U+FFFD */
	size_t high_n;  /* valid characters outside ASCII */
	size_t zero_n;  /* U+0000 removed: no document may contain it */
	size_t bad;     /* input offset of the first fault or U+0000, if any */
	size_t place;   /* ... and its offset in the output text */
};

/* The output buffer. A later attempt overwrites the text of a failed one. */
struct decode_out {
	struct fw_arena *a;
	char *p;
	size_t len, cap;
	struct decode_stats t;
	bool failed;
};

/*
 * Decode all of s into *text, which lives in o, and count the faults in o->t. False: out of memory.
 */
FW_MUST_CHECK bool fw_charset_decode_as(
	struct decode_out *o, const struct encoding *e, struct fw_str s, struct fw_str *text);

/* The code point of a windows-1252 byte, as browsers map it. */
uint32_t fw_windows_1252(unsigned char c);

#endif
