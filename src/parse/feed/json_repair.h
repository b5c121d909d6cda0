/* SPDX-License-Identifier: ISC */
#ifndef FW_PARSE_FEED_JSON_REPAIR_H
#define FW_PARSE_FEED_JSON_REPAIR_H

#include "base/arena.h"

/* A copy of s with what is commonly wrong in JSON put right; absent out of memory. Places in it are not those of s. */
struct fw_str fw_json_repair(struct fw_arena *a, struct fw_str s);
/* Behind the string at p, an opening quote; NULL when it does not end. */
const char *fw_json_string_end(const char *p, const char *end);
/*
 * s with at most max members in each list and object; what came behind is counted in *dropped. s itself when nothing is too long, else
 * a copy. Absent out of memory. A tree's hash tables are slow once they are larger than the processor's caches.
 */
struct fw_str fw_json_thin(struct fw_arena *a, struct fw_str s, size_t max, size_t *dropped);

/*
 * Does the memory of a tree of s fit into what the arena has left? The tree is not the arena's, but counts as if it were: an upper bound
 * of it, from one walk over the bytes. When it does not fit, the arena is full.
 */
bool fw_json_affordable(struct fw_arena *a, struct fw_str s);

#endif
