/* SPDX-License-Identifier: ISC */
/* UTF-8 as RFC 3629 has it: no surrogates, no overlong forms, nothing past U+10FFFF. */
#ifndef FW_BASE_UTF8_H
#define FW_BASE_UTF8_H

#include "feedwheel/types.h"

/* The number of leading bytes that are valid UTF-8: len when all are. One pass, word at a time over ASCII. */
size_t fw_utf8_valid(const char *p, size_t len);
/* Decode one code point from p[0..len), len > 0; *n is how many bytes it took (>= 1). U+FFFD for a bad one. */
uint32_t fw_utf8_get(const char *p, size_t len, size_t *n);
/* Encode; returns 1..4 bytes written to out. */
size_t fw_utf8_put(char out[4], uint32_t cp);
/* The largest cut <= max that does not split a character. */
size_t fw_utf8_cut(const char *p, size_t len, size_t max);
/* Must not reach a terminal or a log as it is: C0, DEL, C1, line and paragraph separators, bidi controls, BOM. */
bool fw_utf8_is_unsafe(uint32_t cp);
/* Columns on a terminal: wide East Asian characters count 2, combining ones 0. */
size_t fw_utf8_width(const char *p, size_t len);

#endif
