/* SPDX-License-Identifier: ISC */
/* How far a server's 304 (not modified) is trusted, per feed; src/sched/trust.h has the rules. */
#ifndef FW_API_TRUST_H
#define FW_API_TRUST_H

#include "feedwheel/store.h"

struct fw_trust {
	/*
	 * > 0: consecutive checks that found the document unchanged; < 0: a check found a change
	 * that a 304 had denied
	 */
	int level;
	int64_t checked_ms; /* time of the last unconditional request as a check; 0: none */
	int64_t denied_ms;  /* when a check last found such a change; 0: never */
	int64_t until_ms;   /* from then on the next request is unconditional */
};

/* False: the feed has no validators, so there is no 304 to trust. */
bool fw_trust_of(const struct fw_feed *feed, int64_t now_ms, struct fw_trust *out);

#endif
