/* SPDX-License-Identifier: ISC */
/* "Did you mean": suggests the known name nearest to a misspelt word. */
#ifndef FW_BASE_SUGGEST_H
#define FW_BASE_SUGGEST_H

#include "feedwheel/types.h"

/* Offer all known names; then best is the nearest one that is close enough, or NULL. */
struct fw_suggest {
	struct fw_str word; /* the misspelt word */
	const char *best;   /* one of the offered names, borrowed */
	size_t distance;    /* between word and best */
};

/*
 * Number of edits (insert, delete, replace, swap neighbours) that turn a into b. ASCII case is
 * ignored, and - equals _. SIZE_MAX: a word is longer than 64 bytes.
 */
size_t fw_edit_distance(struct fw_str a, struct fw_str b);
void fw_suggest_offer(struct fw_suggest *n, const char *name);

#endif
