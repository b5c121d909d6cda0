/* SPDX-License-Identifier: ISC */
#include "sched/due.h"

void fw_expect_update(int64_t *expect_us, int64_t *dev_us, int64_t took_us)
{
	int64_t off;

	if (took_us < 0)
		return;
	if (*expect_us <= 0) { /* RFC 6298 (2.2) */
		*expect_us = took_us;
		*dev_us = took_us / 2;
		return;
	}
	off = took_us > *expect_us ? took_us - *expect_us : *expect_us - took_us;
	*dev_us += (off - *dev_us) / 4;                  /* beta 1/4 */
	*expect_us += (took_us - *expect_us) / 8;        /* alpha 1/8 */
	if (*expect_us <= 0)
		*expect_us = 1;
}
