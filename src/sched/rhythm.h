/* SPDX-License-Identifier: ISC */
/* The text of fw_rhythm_learn(), read back. The sched room's own. */
#ifndef FW_SCHED_RHYTHM_H
#define FW_SCHED_RHYTHM_H

#include "sched/due.h"

struct rhythm {
	int64_t gap_ms, gap_n;   /* gap_n 0: none learned */
	int64_t last_ms;         /* newest date seen, or FW_NO_DATE */
	int64_t ttl_minutes, update_period_minutes; /* FW_NO_NUMBER: none */
	uint32_t skip_hours;
	uint8_t skip_days;
};

void rhythm_read(struct fw_str s, struct rhythm *out);

#endif
