/* SPDX-License-Identifier: ISC */
#include <string.h>

#include "engine/run/visit_rules.h"
#include "engine/settings.h"

void visit_rules_of(const struct fw_config *c, struct visit_rules *out)
{
	*out = (struct visit_rules){.limits = fw_settings_limits(c),
		.parse_memory = (size_t)c->parse_memory_bytes,
		.retract = c->retract_entries};
	out->host.policy = !c->host_key || strcmp(c->host_key, "domain") == 0 ? HOST_DOMAIN :
		strcmp(c->host_key, "host") == 0                              ? HOST_NAME :
										HOST_ADDRESS;
	out->host.hosting_domains = c->hosting_domains;
	fw_due_policy_default(&out->due);
	out->due.min_ms = c->interval_min_ms;
	out->due.normal_ms = c->interval_ms;
	out->due.max_ms = c->interval_max_ms;
	out->due.pushed_ms = c->websub_poll_ms;
}
