/* SPDX-License-Identifier: ISC */
#include "base/clock.h"
#include "base/str.h"
#include "sched/trust.h"

#define TRUST_MIN_MS FW_DAY_MS
#define TRUST_MAX_MS (30 * FW_DAY_MS)

/*
 * The feed's gap: the mean time between its entries, or half of the time from the newest entry to
 * the last document, whichever is longer. Later 304s are no evidence.
 */
static int64_t trust_gap_ms(const struct fw_rhythm *r, int64_t whole_ms, int64_t last_new_ms)
{
	int64_t newest_ms = r->n ? r->event[0] * FW_MINUTE_MS : last_new_ms, gap = 0;

	if (newest_ms > 0)
		gap = FW_MAX((whole_ms - newest_ms) / 2, 0);
	if (r->n > 1)
		gap = FW_MAX(gap, (r->event[0] - r->event[r->n - 1]) * FW_MINUTE_MS / (int64_t)(r->n - 1));
	return gap;
}

int64_t fw_trust_until(const struct fw_rhythm *r, int64_t whole_ms, int64_t last_new_ms, int64_t now_ms)
{
	int64_t checked_ms = r->checked * FW_MINUTE_MS, from_ms, wait_ms = TRUST_MIN_MS;

	if (whole_ms > now_ms)
		whole_ms = 0;
	from_ms = checked_ms <= now_ms ? FW_MAX(whole_ms, checked_ms) : whole_ms;
	if (r->trust > 0)
		wait_ms = FW_MIN(trust_gap_ms(r, whole_ms, last_new_ms), TRUST_MAX_MS) << (r->trust - 1);
	return from_ms + FW_MIN(FW_MAX(wait_ms, TRUST_MIN_MS), TRUST_MAX_MS);
}

size_t fw_trust_record(struct fw_str old, enum fw_trust_found found, int64_t now_ms, char out[FW_RHYTHM_MAX])
{
	struct fw_rhythm r;

	fw_rhythm_read(old, &r);
	r.checked = FW_MAX(now_ms / FW_MINUTE_MS, 1);
	if (found == FW_TRUST_UNCHANGED)
		r.trust = FW_MIN(r.trust + 1, FW_TRUST_MAX);
	if (found == FW_TRUST_DENIED) {
		r.trust = FW_TRUST_MIN;
		r.denied = r.checked;
	}
	return fw_rhythm_write(&r, out);
}
