/* SPDX-License-Identifier: ISC */
/*
 * What a host of several feeds may be asked, and by whom: the members that every driver keeps of it, and the arithmetic. Drivers
 * that do it in their server's language do the same there.
 */
#ifndef FW_STORE_HOST_H
#define FW_STORE_HOST_H

#include "feedwheel/store.h"

struct fw_budget {
	int64_t busy_n;        /* lent */
	int64_t holder;        /* the only one who has any, as fw_budget_holder() numbers him; 0: several have, or nobody */
	int64_t next_ok_ms;    /* nobody asks the host before, but for what the holder takes ahead */
	int64_t cool_until_ms; /* the host has said so: nobody at all asks it before */
	int64_t pace_ms;       /* learned; 0: none */
	int64_t expect_us;     /* what a visit takes; 0: unknown */
};

int64_t fw_budget_holder(const char *worker); /* never 0 */
/* Between two requests. */
int64_t fw_budget_gap(const struct fw_budget *b, const struct fw_claim_ask *ask);
/* Has this worker as many as he may have, all in all? */
bool fw_budget_full(const struct fw_budget *b, const struct fw_claim_ask *ask, int64_t me);
/* From when on another may be lent to him, as far as time goes. */
int64_t fw_budget_from(const struct fw_budget *b, const struct fw_claim_ask *ask, int64_t me);
/* May another feed be lent to him now? */
bool fw_budget_may(const struct fw_budget *b, const struct fw_claim_ask *ask, int64_t me, int64_t now_ms);
void fw_budget_lend(struct fw_budget *b, const struct fw_claim_ask *ask, int64_t me, int64_t now_ms);
/* One that was lent comes back; o NULL: unvisited. */
void fw_budget_return(struct fw_budget *b, const struct fw_outcome *o, int64_t now_ms);
/* What an outcome says of when a host may be asked again, though its loan was another's. */
void fw_budget_tell(struct fw_budget *b, const struct fw_outcome *o, int64_t now_ms);
void fw_budget_cool(struct fw_budget *b, int64_t until_ms); /* 0: no word of the host */

#endif
