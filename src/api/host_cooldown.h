/* SPDX-License-Identifier: ISC */
/* The cooldown of a host, in which no feed of it is fetched (sched/hosts.h). */
#ifndef FW_API_HOST_COOLDOWN_H
#define FW_API_HOST_COOLDOWN_H

#include "feedwheel/store.h"

/* When the cooldown of the feed's host ends, as it was stored last; 0: it has none. */
FW_MUST_CHECK int fw_feed_cooldown(
	struct fw_store *st, const struct fw_feed *feed, int64_t *until_ms, struct fw_err *err);

#endif
