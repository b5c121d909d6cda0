/* SPDX-License-Identifier: ISC */
#ifndef FW_PARSE_FEED_JSON_REPAIR_H
#define FW_PARSE_FEED_JSON_REPAIR_H

#include "base/arena.h"

/*
 * A copy of s with common JSON errors repaired. Absent: out of memory. Offsets differ from those in
 * s.
 */
struct fw_str fw_json_repair(struct fw_arena *a, struct fw_str s);
/* The end of the string whose opening quote is at p; NULL if it does not end. */
const char *fw_json_string_end(const char *p, const char *end);
/*
 * Limit each list and object of s to max members; *dropped counts the rest. Returns s itself if
 * nothing is too long, else a copy. Absent: out of memory. The limit exists because a tree's hash
 * tables become slow once they exceed the processor's caches.
 */
struct fw_str fw_json_limit_members(struct fw_arena *a, struct fw_str s, size_t max, size_t *dropped);

/*
 * Does the memory of a tree of s fit into the rest of the arena's limit? The tree lives outside the
 * arena but counts toward its limit. The estimate is an upper bound from one pass over the bytes.
 * If it does not fit, the arena is marked as full.
 */
bool fw_json_fits(struct fw_arena *a, struct fw_str s);

#endif
