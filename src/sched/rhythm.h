/* SPDX-License-Identifier: ISC */
/* What was learned of a feed, as a value. Stored as text: "v1 ttl=60 sy=1440 sh=ff sd=41 at=29384756 g=61,1440,60". */
#ifndef FW_SCHED_RHYTHM_H
#define FW_SCHED_RHYTHM_H

#include "feedwheel/types.h"

#define FW_RHYTHM_EVENTS 48

struct fw_rhythm {
	int64_t ttl_minutes, update_period_minutes; /* or FW_NO_NUMBER */
	uint32_t skip_hours;
	uint8_t skip_days;
	size_t n;                         /* publications known, newest first; */
	int64_t event[FW_RHYTHM_EVENTS];  /* minutes since 1970; what came within ten minutes counts as one */
};

struct fw_rhythm_guess {
	int64_t interval_ms; /* how long to wait; 0: nothing is known */
	int64_t gap_ms;      /* between publications */
	int64_t silence_ms;  /* since the last one */
	bool burst;          /* it is publishing right now */
};

/* Never fails: what cannot be read is as if nothing had been learned. */
void fw_rhythm_read(struct fw_str text, struct fw_rhythm *out);
void fw_rhythm_guess(const struct fw_rhythm *r, int64_t now_ms, struct fw_rhythm_guess *out);

#endif
