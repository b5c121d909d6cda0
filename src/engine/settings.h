/* SPDX-License-Identifier: ISC */
/*
 * Converts settings (struct fw_config) to the parameters of the schedule, the parser and the
 * fetcher. These rooms know no settings. Strings are borrowed from the configuration. Pure, except
 * that fw_settings_workers() counts the processors.
 */
#ifndef FW_ENGINE_SETTINGS_H
#define FW_ENGINE_SETTINGS_H

#include "feedwheel/engine.h"
#include "fetch/fetch.h"
#include "sched/plan.h"

/* Parameters of a fetcher; must outlive it. */
struct fw_net {
	struct fw_guard guard;
	char user_agent[512];
	struct fw_fetch_config fetch;
};

int fw_settings_workers(const struct fw_config *c); /* number of worker processes */
/*
 * The file descriptors that a worker with so many transfers needs: one for each, a second during a
 * redirect or address change, and some for the store, the loop and name lookups. And how many
 * transfers, at least one, so many descriptors allow.
 */
int64_t fw_settings_files(int64_t transfers);
int64_t fw_settings_transfers(int64_t files);
/* The fetch order of `run --once`, and the limits per host, for this many slots. */
void fw_settings_plan(const struct fw_config *c, uint32_t slots, struct fw_plan_rules *out);
/* feeds per batch of a batch order; else 0 */
int64_t fw_settings_batch(const struct fw_config *c, int64_t slots);
enum fw_plan_policy fw_settings_order(const struct fw_config *c);
struct fw_limits fw_settings_limits(const struct fw_config *c); /* of a document */
/*
 * out->fetch points to other members of out: do not move it. Errors: FW_EINVAL names the setting.
 */
FW_MUST_CHECK int fw_settings_net(const struct fw_config *c, uint32_t slots, struct fw_net *out, struct fw_err *err);

#endif
