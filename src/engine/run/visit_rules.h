/* SPDX-License-Identifier: ISC */
/* The settings that a visit needs. Pure; strings are borrowed from the configuration. */
#ifndef FW_ENGINE_VISIT_RULES_H
#define FW_ENGINE_VISIT_RULES_H

#include "engine/run/host_key.h"
#include "feedwheel/engine.h"
#include "sched/due.h"

struct visit_rules {
	struct fw_due_policy due;
	struct host_rules host;
	struct fw_limits limits;
	size_t parse_memory; /* setting parse_memory_bytes; 0: no limit */
	bool retract;        /* setting retract_entries */
	int64_t run_id;
};

/* run_id is 0. */
void visit_rules_of(const struct fw_config *c, struct visit_rules *out);

#endif
