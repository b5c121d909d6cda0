/* SPDX-License-Identifier: ISC */
/* UTF-8 as defined in RFC 3629: no surrogates, no overlong forms, nothing above U+10FFFF. */
#ifndef FW_BASE_UTF8_H
#define FW_BASE_UTF8_H

#include "feedwheel/types.h"

/*
 * Number of leading bytes that are valid UTF-8; len if all are. One pass; ASCII in runs of 16
 * bytes.
 */
size_t fw_utf8_valid(const char *p, size_t len);
/* At most max bytes, valid, and without C0 controls and DEL: a name that somebody typed. */
bool fw_utf8_fits(struct fw_str s, size_t max);
/*
 * Decode a code point from p[0..len), len > 0. *n: bytes used (>= 1). Invalid bytes give U+FFFD and
 * *n = 1.
 */
uint32_t fw_utf8_get(const char *p, size_t len, size_t *n);
/* Encode into out; returns the length, 1 to 4 bytes. */
size_t fw_utf8_put(char out[4], uint32_t cp);
/* The longest cut <= max that does not split a character. */
size_t fw_utf8_cut(const char *p, size_t len, size_t max);
/*
 * Must not reach a terminal or a log unescaped: C0, DEL, C1, line and paragraph separators, bidi
 * controls, BOM.
 */
bool fw_utf8_is_unsafe(uint32_t cp);
/* Columns on a terminal: wide East Asian characters count 2, combining characters 0. */
size_t fw_utf8_width(const char *p, size_t len);

#endif
