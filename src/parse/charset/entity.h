/* SPDX-License-Identifier: ISC */
/* HTML character references: named, numeric, and the decoding of all of them in a text. */
#ifndef FW_PARSE_CHARSET_ENTITY_H
#define FW_PARSE_CHARSET_ENTITY_H

#include "base/arena.h"

/*
 * Find an HTML5 entity name without & and ; ("nbsp", "eacute"). Returns the number of code points
 * in cp, 1 or 2; 0: unknown name.
 */
int fw_entity_find(struct fw_str name, uint32_t cp[2]);
/*
 * Parse the number after "&#" ("x" means hexadecimal) and move *pp past it. False: no digits.
 * Numbers that are too large stay above U+10FFFF.
 */
bool fw_entity_number(const char **pp, const char *end, uint32_t *cp);
/*
 * Decode all HTML character references in s once, as browsers do (also "&amp" without a semicolon).
 * Returns s itself if it contains none.
 */
struct fw_str fw_entity_decode(struct fw_arena *a, struct fw_str s);

#endif
