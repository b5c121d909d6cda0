/* SPDX-License-Identifier: ISC */
/* Redirect adoption and feed merge, in the store thread. visit.h has the rules. */
#ifndef FW_ENGINE_REDIRECT_ADOPTION_H
#define FW_ENGINE_REDIRECT_ADOPTION_H

#include "engine/meter.h"
#include "engine/run/visit.h"

/*
 * Before the commit: does the document behind the redirect belong to the known feed? Reads the
 * store if v->new_target is set, and may change v->feed.redirect_*. If the store is unavailable,
 * the redirect counts as not seen.
 */
void adoption_check(struct fw_store *st, struct visit *v);
/*
 * After the commit of an outcome that changed its feed's address: log it and keep a record. If
 * another feed has the address already, merge this feed into that one; the person's title, folder
 * and interval are kept where the other feed has none.
 */
void adoption_finish(struct fw_store *st, const struct visit *v, struct fw_meter_slot *m);

#endif
