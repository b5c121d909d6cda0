/* SPDX-License-Identifier: ISC */
/* How far a server's 304 (not modified) is believed, feed by feed; the rules stand in src/sched/trust.h. */
#ifndef FW_API_TRUST_H
#define FW_API_TRUST_H

#include "feedwheel/store.h"

struct fw_trust {
	int level;           /* > 0: so many checks in a row found the document unchanged; < 0: one found what a 304 had denied */
	int64_t checked_ms;  /* last unconditional request that was to check it; 0: none was */
	int64_t denied_ms;   /* when a check last found that; 0: never */
	int64_t until_ms;    /* from then on the next request is unconditional */
};

/* False: the feed has no validators, so there is no 304 to believe. */
bool fw_trust_of(const struct fw_feed *feed, int64_t now_ms, struct fw_trust *out);

#endif
