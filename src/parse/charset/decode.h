/* SPDX-License-Identifier: ISC */
/* Between charset.c, which chooses an encoding, and decode.c, which decodes it: by codec, one of a single byte by name. */
#ifndef FW_PARSE_CHARSET_DECODE_H
#define FW_PARSE_CHARSET_DECODE_H

#include "base/arena.h"
#include "base/str.h"

enum codec { SINGLE_BYTE, UTF8, UTF16LE, UTF16BE, UTF32LE, UTF32BE, GB18030, BIG5, EUC_KR, SHIFT_JIS, EUC_JP, ISO_2022_JP };

struct encoding {
	const char *name;
	enum codec codec;
	const char *labels; /* blank between, lower case */
};

/* How a decoding went. */
struct tally {
	size_t fault_n; /* places replaced by U+FFFD */
	size_t high_n;  /* characters beyond ASCII that were fine */
	size_t zero_n;  /* U+0000 taken out: no character of any document */
	size_t bad;     /* where in the bytes the first fault or zero is, when there is one */
	size_t place;   /* ... and where in the text it came to stand */
};

/* Where text is decoded to. The next attempt writes over one that was no good. */
struct out {
	struct fw_arena *a;
	char *p;
	size_t len, cap;
	struct tally t;
	bool failed;
};

/* Decode all of s into *text, which lives in o. False: out of memory. o->t tells how well it went. */
FW_MUST_CHECK bool fw_charset_run(struct out *o, const struct encoding *e, struct fw_str s, struct fw_str *text);

/* The character of a byte in windows-1252, as browsers have it. */
uint32_t fw_windows_1252(unsigned char c);

#endif
