/* SPDX-License-Identifier: ISC */
/* What the store thread does to the schedule at its start, and now and then beside retention: what fails is done the next time. */
#ifndef FW_ENGINE_CHORES_H
#define FW_ENGINE_CHORES_H

#include "engine/meter.h"
#include "feedwheel/engine.h"

struct chores { /* zeroed: all is due */
	int64_t probe_at_ms, clock_at_ms, offline_at_ms; /* monotonic */
	int64_t offline_since_ms; /* Unix; 0: it is not, or that is not told */
	int64_t unix_mono_ms; /* by how much the one clock was ahead of the other; 0: not known yet */
};

/*
 * Feeds that are gone and whose time has come (due_at_ms, 30 to 180 days on) are scheduled again for one visit, which says whether they
 * still are. Looks at no more often than needed; *n: how many.
 */
FW_MUST_CHECK int chores_probe(struct fw_store *st, int64_t now_ms, size_t *n, bool *more, struct fw_err *err);

/*
 * When the newest visit lies more than an hour in the future, or the clock was seen to go back: feeds that were visited there and are due
 * later still are due again within an hour; *n: how many. Cost: a look at one visit; then one pass over what is due at all.
 */
FW_MUST_CHECK int chores_clock(struct fw_store *st, int64_t now_ms, bool went_back, size_t *n, struct fw_err *err);

/*
 * Since the last call on this store, has allow_networks got a network, or deny_networks lost one? Then the active feeds whose last visit that
 * setting blocked are due at now_ms. *n: how many. One that fails may be called again.
 */
FW_MUST_CHECK int chores_unblock(struct fw_store *st, const struct fw_config *c, int64_t now_ms, size_t *n, struct fw_err *err);

/* worker: its name; m: its counters; first: it is the one that does what one is enough for. */
void chores_do(struct chores *c, struct fw_store *st, const char *worker, const struct fw_meter_slot *m, bool first, int64_t mono_ms);

#endif
