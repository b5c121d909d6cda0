/* SPDX-License-Identifier: ISC */
/* From the settings table to what the workshops take. */
#ifndef FW_ENGINE_SETTINGS_H
#define FW_ENGINE_SETTINGS_H

#include "engine/run/visit.h"
#include "fetch/fetch.h"

/* What a fetcher borrows for its life. */
struct fw_net {
	struct fw_guard guard;
	char user_agent[512];
	struct fw_fetch_config fetch;
};

int fw_settings_workers(const struct fw_config *c); /* how many processes */
/* The order of a --once and a host's limits, with so many slots. */
void fw_settings_plan(const struct fw_config *c, uint32_t slots, struct fw_plan_rules *out);
int64_t fw_settings_batch(const struct fw_config *c, int64_t slots); /* of a batch order, with so many slots in a worker; else 0 */
enum fw_plan_policy fw_settings_order(const struct fw_config *c);
void fw_settings_visit(const struct fw_config *c, struct visit_rules *out);
/* out->fetch refers to out's other members: do not move it. Errors: FW_EINVAL naming the setting. */
FW_MUST_CHECK int fw_settings_net(const struct fw_config *c, uint32_t slots, struct fw_net *out, struct fw_err *err);

#endif
