/* SPDX-License-Identifier: ISC */
/* Checks of a server's 304s, in the store thread. sched/trust.h has the rules. */
#ifndef FW_ENGINE_TRUST_H
#define FW_ENGINE_TRUST_H

#include "engine/run/visit.h"

/*
 * Before the commit of a visit with compare_304: did the server reply 304 after publishing an entry
 * that the store lacks? Changes v->feed.rhythm; not if the store is unavailable.
 */
void trust_check_document(struct fw_store *st, struct visit *v, int64_t now_ms);

#endif
