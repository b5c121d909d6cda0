/* SPDX-License-Identifier: ISC */
/*
 * The forecast of a run: the fetch plan of `run --once`, and how long it would take, by the known
 * durations of each feed, without the run. Times are in microseconds.
 */
#ifndef FW_API_FORECAST_H
#define FW_API_FORECAST_H

#include "feedwheel/engine.h"

struct fw_forecast_rules {
	const char *order; /* name of a fetch order: one of fw_forecast_order() */
	uint32_t slots, host_concurrency;
	int64_t host_gap_us;
	uint32_t batch; /* batch size of the batch orders; 0: slots */
};
/* The rules by the settings, with the slots of all workers. */
void fw_forecast_rules(const struct fw_config *c, struct fw_forecast_rules *out);
/* The i-th fetch order's name, or NULL. */
const char *fw_forecast_order(size_t i);

struct fw_forecast_total {
	int64_t total_us, sum_us;
	int64_t bound_us; /* lower bound: the largest of the three times that follow */
	int64_t slots_us, longest_us, host_us;
	/* a feed of the host that takes longest, and its number of feeds; 0: none */
	int64_t host_feed_id;
	size_t host_n;
	int64_t longest_feed_id;
};

struct fw_forecast_start {
	int64_t feed_id;
	int64_t at_us, expect_us, dev_us;
	uint32_t slot;
	/*
	 * expect_us comes from its own visits; else from its host's average, or that of all feeds
	 */
	bool known;
};

struct fw_forecast;
/*
 * Read what is due by due_before_ms. The caller frees *out. Errors: the store's; FW_EUNSUP: it
 * cannot list what is due; FW_ENOMEM.
 */
FW_MUST_CHECK int fw_forecast_read(
	struct fw_store *st, int64_t due_before_ms, struct fw_forecast **out, struct fw_err *err);
void fw_forecast_destroy(struct fw_forecast *f);
size_t fw_forecast_count(const struct fw_forecast *f, size_t *known);
/* Make the forecast. Cost: O(n log n). FW_EINVAL: unknown order, or no slots; FW_ENOMEM. */
FW_MUST_CHECK int fw_forecast_make(
	struct fw_forecast *f, const struct fw_forecast_rules *r, struct fw_forecast_total *out, struct fw_err *err);
/* The i-th feed to start in the forecast made last; i < count. */
void fw_forecast_feed(const struct fw_forecast *f, size_t i, struct fw_forecast_start *out);

/*
 * A feed's expected duration by phase: name lookup, connection, TLS, waiting, body. All 0: unknown.
 */
#define FW_FORECAST_PHASES 5
void fw_forecast_phases(const struct fw_feed *feed, int64_t part_us[FW_FORECAST_PHASES]);

#endif
