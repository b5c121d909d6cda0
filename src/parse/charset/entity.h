/* SPDX-License-Identifier: ISC */
/* HTML's character references: named, by number, and all of them in a text. */
#ifndef FW_PARSE_CHARSET_ENTITY_H
#define FW_PARSE_CHARSET_ENTITY_H

#include "base/arena.h"

/* "nbsp", "eacute", "hellip" (without & and ;): the HTML5 name's one or two code points; returns how many, 0 unknown. */
int fw_entity_find(struct fw_str name, uint32_t cp[2]);
/* The number behind "&#", "x" for hexadecimal; *pp goes behind it. False: no digits. Too large ones stay above U+10FFFF. */
bool fw_entity_number(const char **pp, const char *end, uint32_t *cp);
/* Decode HTML character references in s once, as browsers do (also "&amp" without semicolon): borrowed when there are none. */
struct fw_str fw_entity_decode(struct fw_arena *a, struct fw_str s);

#endif
