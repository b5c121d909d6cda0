/* SPDX-License-Identifier: ISC */
/* "Did you mean": the known name nearest to a misspelt word. */
#ifndef FW_BASE_NEAR_H
#define FW_BASE_NEAR_H

#include "feedwheel/types.h"

/* Offer the known names one by one; afterwards best is the nearest one that is close enough, or NULL. */
struct fw_near {
	struct fw_str word;  /* what was written */
	const char *best;    /* one of the names offered, borrowed */
	size_t distance;     /* of best */
};

/*
 * Edits (insert, delete, replace, swap of neighbours) that make b of a; ASCII case, - and _ are the same. Words longer than
 * 64 bytes are never near: SIZE_MAX.
 */
size_t fw_edit_distance(struct fw_str a, struct fw_str b);
void fw_near_offer(struct fw_near *n, const char *name);

#endif
