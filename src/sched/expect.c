/* SPDX-License-Identifier: ISC */
/*
 * How long a visit will take: the estimator that TCP has for round trips (RFC 6298 section 2).
 *
 * And how that is made up: five shares of 12 bits in one number, the first phase in the lowest bits, averaged as the duration is.
 * Shares and not times, so that one visit of ten seconds does not decide alone, and one number, so that a feed's narrow row stays
 * narrow. They need not add up to a whole, for what rounding took: fw_expect_parts() divides by their sum.
 */
#include "base/str.h"
#include "sched/due.h"
#include "base/banned.h"

#define MAX_US INT64_C(3600000000) /* an hour: no visit may take longer */
#define SHARE_BITS 12
#define SHARE_MAX ((1 << SHARE_BITS) - 1)

void fw_expect_update(int64_t *expect_us, int64_t *dev_us, int64_t took_us)
{
	int64_t off;

	took_us = FW_MAX(FW_MIN(took_us, MAX_US), 1);
	if (*expect_us <= 0 || *expect_us > MAX_US) { /* the first, or nothing that we wrote */
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

static int64_t share_of(int64_t parts, int phase)
{
	return parts >> phase * SHARE_BITS & SHARE_MAX;
}

/* Above the shares there is nothing, and something is in them. */
static bool parts_known(int64_t parts)
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
		int64_t share = (us[i] * SHARE_MAX + sum / 2) / sum, was = share_of(*parts, i);

		if (parts_known(*parts)) /* rounded away from where it was: else a small difference would never be made up */
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
		sum += parts_known(parts) ? share_of(parts, i) : 0;
	for (int i = 0; i < FW_PHASE_N; i++) { /* each ends where the sum of the shares so far says: so nothing is lost between them */
		before += share_of(parts, i);
		part_us[i] = sum ? expect_us * before / sum - given : 0;
		given += part_us[i];
	}
}
