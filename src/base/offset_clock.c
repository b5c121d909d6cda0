/* SPDX-License-Identifier: ISC */
#include "base/offset_clock.h"

#include "base/clock.h"
#include "base/str.h"

int64_t fw_offset_clock_ms(const struct fw_offset_clock *c)
{
	if (!atomic_load_explicit(&c->known, memory_order_acquire))
		return fw_now_ms(); /* wall clock: the other one is not known yet */
	return fw_mono_ms() + atomic_load_explicit(&c->offset_ms, memory_order_relaxed);
}

int64_t fw_offset_clock_ahead_ms(const struct fw_offset_clock *c)
{
	return atomic_load_explicit(&c->ahead_ms, memory_order_relaxed);
}

void fw_offset_clock_measure(struct fw_offset_clock *c, int64_t there_ms, int64_t asked_mono_ms)
{
	int64_t mono_ms = fw_mono_ms(), took_ms = mono_ms - asked_mono_ms, latest_ms = there_ms + took_ms, now_ms,
		wall_ms;

	if (!atomic_load(&c->known)) {
		now_ms = there_ms + took_ms / 2;
	} else {
		if (took_ms > FW_OFFSET_CLOCK_TRUST_MS)
			return;
		now_ms = mono_ms + atomic_load(&c->offset_ms);
		now_ms = FW_MAX(FW_MIN(now_ms, latest_ms), there_ms);
	}
	atomic_store(&c->offset_ms, now_ms - mono_ms);
	wall_ms = fw_now_ms(); /* wall clock: it is what is compared */
	atomic_store(&c->ahead_ms, wall_ms < there_ms - 1 || wall_ms > latest_ms + 1 ? wall_ms - now_ms : 0);
	atomic_store_explicit(&c->known, true, memory_order_release);
}
