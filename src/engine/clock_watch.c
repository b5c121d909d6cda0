/* SPDX-License-Identifier: ISC */
#include "api/clock_watch.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

#define WRONG_MS (5 * FW_SECOND_MS)
#define MINUTES_FROM_MS (10 * FW_MINUTE_MS)

bool fw_clock_is_wrong(int64_t ahead_ms)
{
	return ahead_ms > WRONG_MS || ahead_ms < -WRONG_MS;
}

char *fw_clock_text(char dst[FW_CLOCK_TEXT_MAX], int64_t ahead_ms)
{
	char text[FW_RFC3339_MAX];
	int64_t ms = ahead_ms < 0 ? -ahead_ms : ahead_ms;
	int64_t unit_ms = ms < MINUTES_FROM_MS ? FW_SECOND_MS : FW_MINUTE_MS;

	/* a late answer of the store makes the estimate worse: 2 h, not 1 h 59 min */
	fw_duration_text(text, (ms + unit_ms / 2) / unit_ms * unit_ms);
	(void)fw_snprintf(dst, FW_CLOCK_TEXT_MAX, "%s %s the store's", text, ahead_ms < 0 ? "behind" : "ahead of");
	return dst;
}

void fw_clock_watch(bool *wrong, int64_t ahead_ms)
{
	char text[FW_CLOCK_TEXT_MAX];

	if (fw_clock_is_wrong(ahead_ms) == *wrong)
		return;
	*wrong = !*wrong;
	if (*wrong)
		fw_warn("this machine's clock is %s, which all times follow; only log, TLS and Date headers are "
			"wrong (run a time service, such as systemd-timesyncd)",
			fw_clock_text(text, ahead_ms));
	else
		fw_info("this machine's clock agrees with the store's again");
}
