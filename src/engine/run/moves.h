/* SPDX-License-Identifier: ISC */
/* What the store thread does about permanent redirects; when one counts stands in visit.h. */
#ifndef FW_ENGINE_MOVES_H
#define FW_ENGINE_MOVES_H

#include "engine/meter.h"
#include "engine/run/visit.h"

/*
 * Before the commit: is what the new target showed the feed that we know? Asks the store when v->new_target is set, and changes
 * v->feed.redirect_*; when the store does not answer, the redirect is as if it had not been seen yet.
 */
void moves_judge(struct fw_store *st, struct visit *v);
/*
 * After the commit, of an outcome that changed its feed's address: says so, keeps a record, and where another feed had the address
 * already, makes the two one. That one stays; the owner's title, folder and interval go with it where it has none of its own.
 */
void moves_done(struct fw_store *st, const struct visit *v, struct fw_meter_slot *m);

#endif
