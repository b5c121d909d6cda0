/* SPDX-License-Identifier: ISC */
/* How long a visit will take: the estimator that TCP has for round trips (RFC 6298 section 2). */
#include "base/str.h"
#include "sched/due.h"
#include "base/banned.h"

#define MAX_US INT64_C(3600000000) /* an hour: no visit may take longer */

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
