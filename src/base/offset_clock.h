/* SPDX-License-Identifier: ISC */
/*
 * The clock of another machine: our monotonic clock plus an offset that measurements correct. So
 * our own wall clock, wrong or set, never matters.
 *
 * A measurement says that the other clock showed there_ms at some moment between our request and
 * its response. The time of this clock changes only if it contradicts that: then by as little as
 * agrees. Between two measurements it never goes backwards. At a measurement it goes back only if
 * the other clock did, or if ours runs faster.
 *
 * Any thread may measure and read.
 */
#ifndef FW_BASE_OFFSET_CLOCK_H
#define FW_BASE_OFFSET_CLOCK_H

#include <stdatomic.h>

#include "feedwheel/types.h"

#define FW_OFFSET_CLOCK_TRUST_MS INT64_C(1000) /* a measurement that took longer only starts the clock */

struct fw_offset_clock {
	_Atomic bool known;
	_Atomic int64_t offset_ms; /* its time minus our monotonic clock */
	_Atomic int64_t ahead_ms;  /* our wall clock minus its time, at the last measurement */
};

/* Its time, Unix ms. Before the first measurement: our wall clock. */
int64_t fw_offset_clock_ms(const struct fw_offset_clock *c);
/*
 * How far our wall clock is ahead of it; less than 0: behind. 0: not measured yet, or they agree as
 * far as the measurement tells.
 */
int64_t fw_offset_clock_ahead_ms(const struct fw_offset_clock *c);
/*
 * Call it when the response has come. there_ms: the time that the other clock showed.
 * asked_mono_ms: our monotonic clock before the request.
 */
void fw_offset_clock_measure(struct fw_offset_clock *c, int64_t there_ms, int64_t asked_mono_ms);

#endif
