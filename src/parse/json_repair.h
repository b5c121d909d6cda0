/* SPDX-License-Identifier: ISC */
#ifndef FW_PARSE_JSON_REPAIR_H
#define FW_PARSE_JSON_REPAIR_H

#include "base/arena.h"

/* A copy of s with what is commonly wrong in JSON put right; absent out of memory. Places in it are not those of s. */
struct fw_str fw_json_repair(struct fw_arena *a, struct fw_str s);

#endif
