/* SPDX-License-Identifier: ISC */
/* What the store thread finds out about a server's 304s; the rules stand in sched/trust.h. */
#ifndef FW_ENGINE_TRUST_H
#define FW_ENGINE_TRUST_H

#include "engine/run/visit.h"

/*
 * Before the commit, of a visit with to_compare: does the document hold an entry that the store lacks, and did the server say 304 after
 * that had come? Changes v->feed.rhythm. A store that does not answer leaves it as it is.
 */
void trust_judge(struct fw_store *st, struct visit *v, int64_t now_ms);

#endif
