/* SPDX-License-Identifier: ISC */
/*
 * Redirect adoptions: feeds whose address changed because a permanent redirect was adopted
 * (POL-09), without a person's request. A record keeps each for a year, so that `why` can show
 * where a subscription went.
 */
#ifndef FW_API_REDIRECT_ADOPTION_H
#define FW_API_REDIRECT_ADOPTION_H

#include "feedwheel/store.h"

struct fw_adoption {
	struct fw_str from, to; /* old and new address */
	int64_t feed_id;        /* feed that has the new address */
	int64_t at_ms;
	bool merged; /* another feed had the new address: the two were merged */
};

/* Why `into` takes up no feed that redirects to it, as words behind "feed N"; NULL: it does. */
const char *fw_adoption_refused(const struct fw_feed *from, const struct fw_feed *into);

/* The adoption that left this address. FW_ENOTFOUND: there is none. */
FW_MUST_CHECK int fw_adoption_find(
	struct fw_store *st, struct fw_str from, struct fw_arena *a, struct fw_adoption *out, struct fw_err *err);

/*
 * List the adoptions that led to this feed, by old address. The move lives until the callback
 * returns; a result other than 0 stops the listing.
 */
typedef int fw_adoption_cb(void *ctx, const struct fw_adoption *m);
FW_MUST_CHECK int fw_adoption_list(
	struct fw_store *st, int64_t feed_id, fw_adoption_cb *cb, void *ctx, struct fw_err *err);

#endif
