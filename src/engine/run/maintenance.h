/* SPDX-License-Identifier: ISC */
/*
 * Maintenance of the schedule by the store thread, at its start and at intervals, beside retention.
 * What fails is retried the next time.
 */
#ifndef FW_ENGINE_MAINTENANCE_H
#define FW_ENGINE_MAINTENANCE_H

#include "engine/meter.h"
#include "feedwheel/engine.h"

/* zeroed: everything is due */
struct maintenance {
	int64_t probe_at_ms, clock_at_ms, offline_at_ms; /* monotonic */
	/* Unix; when the network went down, as recorded; 0: not recorded */
	int64_t offline_since_ms;
	int64_t unix_mono_ms; /* Unix clock minus monotonic clock; 0: not known yet */
};

/*
 * Probe gone feeds: those whose due_at_ms has come (30 to 180 days after they went) are scheduled
 * for one visit, which shows whether they are still gone. *n: how many. *more: others are left.
 * Cost: reads only the feeds that are due.
 */
FW_MUST_CHECK int maintenance_probe_gone(
	struct fw_store *st, int64_t now_ms, size_t *n, bool *more, struct fw_err *err);

/*
 * Repair the schedule after a clock was ahead. If the newest visit is more than an hour in the
 * future, or the clock went back: feeds that were visited in the future and are due later are due
 * within an hour instead. *n: how many. Cost: a look at one visit; only then one pass over the
 * schedule.
 */
FW_MUST_CHECK int maintenance_repair_clock(
	struct fw_store *st, int64_t now_ms, bool went_back, size_t *n, struct fw_err *err);

/*
 * Unblock feeds: if allow_networks has gained a network or deny_networks has lost one since the
 * last call on this store, the active feeds whose last visit that setting blocked are due at
 * now_ms. *n: how many. After an error, call it again.
 */
FW_MUST_CHECK int maintenance_unblock(
	struct fw_store *st, const struct fw_config *c, int64_t now_ms, size_t *n, struct fw_err *err);

/*
 * Do what is due. worker: its name; m: its counters; first: this worker does what one worker is
 * enough for.
 */
void maintenance_run(struct maintenance *c, struct fw_store *st, const char *worker, const struct fw_meter_slot *m,
	bool first, int64_t mono_ms);

#endif
