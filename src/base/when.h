/* SPDX-License-Identifier: ISC */
/* Times as people write them on a command line or in a URL. */
#ifndef FW_BASE_WHEN_H
#define FW_BASE_WHEN_H

#include "feedwheel/types.h"

/*
 * Convert to Unix ms: "2h" (ago), "today" and "yesterday" (since midnight), "2026-11-01" and
 * "2026-11-01 12:00" (local time), "2026-11-01T12:00:00Z". False: none of these.
 */
FW_MUST_CHECK bool fw_when_parse(struct fw_str s, int64_t now_ms, int64_t *out_ms);

#endif
