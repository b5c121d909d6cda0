/* SPDX-License-Identifier: ISC */
/*
 * Feeds whose address has changed without their owner, because a permanent redirect was adopted (POL-09): each is kept as a record for a
 * year, so that `why` can say where a subscription went.
 */
#ifndef FW_API_MOVES_H
#define FW_API_MOVES_H

#include "feedwheel/store.h"

struct fw_move {
	struct fw_str from, to; /* addresses */
	int64_t feed_id;        /* of the feed that has the address now */
	int64_t at_ms;
	bool merged;            /* that was another feed: what both had is in it now */
};

/* The move that left this address. FW_ENOTFOUND: none did. */
FW_MUST_CHECK int fw_move_find(struct fw_store *st, struct fw_str from, struct fw_arena *a, struct fw_move *out, struct fw_err *err);

/* Those that led to this feed, in order of the addresses they left. Lives until it returns; anything but 0 stops the walk. */
typedef int fw_move_cb(void *ctx, const struct fw_move *m);
FW_MUST_CHECK int fw_move_list(struct fw_store *st, int64_t feed_id, fw_move_cb *cb, void *ctx, struct fw_err *err);

#endif
