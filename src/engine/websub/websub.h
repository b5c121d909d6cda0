/* SPDX-License-Identifier: ISC */
/* WebSub inside the engine: what workers and the hub thread exchange with websub.c. */
#ifndef FW_ENGINE_WEBSUB_H
#define FW_ENGINE_WEBSUB_H

#include <stdatomic.h>

#include "engine/websub/websub_records.h"

/*
 * Call it after a visit was stored; was: the feed as claimed. If the visit found entries that the
 * hub should have delivered, it leaves a message for the leader, whether or not websub_url is set
 * here. If it found another hub, it does so only with websub_url; otherwise the next scan finds it.
 * Errors are logged.
 */
void fw_websub_visited(
	struct fw_store *st, const struct fw_config *c, const struct fw_feed *was, const struct fw_outcome *o);

/* Takes the first of the counts that are not in the store yet. False: there are none. */
bool websub_counts_take(struct counts *out);
void websub_counts_return(const struct counts *c); /* puts them back after a failure of the store */

struct websub_meter {
	_Atomic uint64_t verdict[FW_WEBSUB_VERDICT_N], requests_n, refused_n, verified_n, denied_n, missed_n, unknown_n,
		lookups_n;
	_Atomic int64_t known_n, active_n;
	_Atomic bool leads;
};
extern struct websub_meter websub_meter; /* counters of this process */

#endif
