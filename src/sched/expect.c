/* SPDX-License-Identifier: ISC */
/*
 * How long a visit will take, by TCP's estimator for round trips (RFC 6298 section 2).
 *
 * Also how that duration splits into phases: five shares of 12 bits in one number, the first phase
 * in the lowest bits, averaged as the duration is. Shares instead of times, so that one visit of
 * ten seconds does not dominate; one number, so that a feed's row stays small. Rounding may keep
 * them from adding up to a whole: fw_expect_parts() divides by their sum.
 */
#include "base/str.h"
#include "sched/due.h"

#define MAX_US INT64_C(3600000000) /* one hour: no visit takes longer */
#define SHARE_BITS 12
#define SHARE_MAX ((1 << SHARE_BITS) - 1)

void fw_expect_update(int64_t *expect_us, int64_t *dev_us, int64_t took_us)
{
	int64_t off;

	took_us = FW_MAX(FW_MIN(took_us, MAX_US), 1);
	/* the first visit, or a value that we did not write */
	if (*expect_us <= 0 || *expect_us > MAX_US) {
		*expect_us = took_us;
		*dev_us = took_us / 2;
		return;
	}
	*dev_us = FW_MAX(FW_MIN(*dev_us, MAX_US), 0);
	off = took_us > *expect_us ? took_us - *expect_us : *expect_us - took_us;
	*dev_us += (off - *dev_us) / 4;
	*expect_us += (took_us - *expect_us) / 8;
	*expect_us = FW_MAX(*expect_us, 1); /* 0 means unknown */
}

static int64_t phase_share(int64_t parts, int phase)
{
	return parts >> phase * SHARE_BITS & SHARE_MAX;
}

/* Valid: something in the shares, and nothing above them. */
static bool phase_shares_known(int64_t parts)
{
	return parts > 0 && parts >> FW_PHASE_N * SHARE_BITS == 0;
}

void fw_expect_parts_update(int64_t *parts, const int64_t part_us[FW_PHASE_N])
{
	int64_t us[FW_PHASE_N], sum = 0, out = 0;

	for (int i = 0; i < FW_PHASE_N; i++) {
		us[i] = FW_MAX(FW_MIN(part_us[i], MAX_US), 0);
		sum += us[i];
	}
	if (!sum)
		return;
	for (int i = 0; i < FW_PHASE_N; i++) {
		int64_t share = (us[i] * SHARE_MAX + sum / 2) / sum, was = phase_share(*parts, i);

		/* rounded away from the old share, or a small difference would never vanish */
		if (phase_shares_known(*parts))
			share = share > was ? was + (share - was + 7) / 8 : was - (was - share + 7) / 8;
		out |= share << i * SHARE_BITS;
	}
	*parts = out;
}

void fw_expect_parts(int64_t parts, int64_t expect_us, int64_t part_us[FW_PHASE_N])
{
	int64_t sum = 0, before = 0, given = 0;

	expect_us = FW_MAX(FW_MIN(expect_us, MAX_US), 0);
	for (int i = 0; i < FW_PHASE_N; i++)
		sum += phase_shares_known(parts) ? phase_share(parts, i) : 0;
	for (int i = 0; i < FW_PHASE_N; i++) { /* cumulative, so that rounding loses nothing */
		before += phase_share(parts, i);
		part_us[i] = sum ? expect_us * before / sum - given : 0;
		given += part_us[i];
	}
}
