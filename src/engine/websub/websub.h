/* SPDX-License-Identifier: ISC */
/* Within the engine: what workers and the hub thread have to do with what websub.c takes from hubs. */
#ifndef FW_ENGINE_WEBSUB_H
#define FW_ENGINE_WEBSUB_H

#include <stdatomic.h>

#include "engine/websub/websub_rec.h"

/*
 * A visit was stored; was: the feed as it was claimed. If it has found what a hub should have brought, who asks hubs is told, whether or not
 * websub_url is set here; if it has found a hub, only when it is: else that is seen by who walks over all feeds. What goes wrong is logged.
 */
void fw_websub_visited(struct fw_store *st, const struct fw_config *c, const struct fw_feed *was, const struct fw_outcome *o);

/* Counts that are not in the store yet: the first one's out; false: there are none. */
bool websub_counts_take(struct counts *out);
void websub_counts_back(const struct counts *c); /* the store did not take them */

/* Is there a process that asks hubs, by the record "leader"? */
FW_MUST_CHECK int websub_led(struct fw_store *st, int64_t now_ms, bool *led, struct fw_err *err);

struct websub_meter {
	_Atomic uint64_t verdict[FW_WEBSUB_VERDICT_N], asked_n, refused_n, verified_n, denied_n, missed_n, unknown_n, looked_n;
	_Atomic int64_t known_n, active_n;
	_Atomic bool leads;
};
extern struct websub_meter websub_meter; /* of this process */

#endif
