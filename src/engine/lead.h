/* SPDX-License-Identifier: ISC */
/*
 * One process of a fleet leads: it alone sends what is to be sent once. The leader is a record with
 * the key "leader", which it renews. A leader that is known to be dead loses the record at once,
 * another one when its lease ends.
 */
#ifndef FW_ENGINE_LEAD_H
#define FW_ENGINE_LEAD_H

#include "feedwheel/deliver.h"

#define LEAD_RENEW_MS INT64_C(15000)

struct lead {
	struct fw_str kind; /* of the record */
	char name[FW_WORKER_NAME_MAX];
	int64_t safe_until_ms; /* monotonic: no other process leads before; 0: we do not lead */
};

void lead_init(struct lead *l, struct fw_str kind);
/*
 * Renew the record, take it, or find that another process has it. *mine: we lead. *was_until_ms:
 * the end of the last leader's lease; 0: none; may be NULL. Errors: those of the store; then who
 * leads is unknown.
 */
FW_MUST_CHECK int lead_take(struct lead *l, struct fw_store *st, bool *mine, int64_t *was_until_ms, struct fw_err *err);
/* Without a query: true until the lease might have ended. */
bool lead_is_safe(const struct lead *l);
/* Our state was dropped: the record must be taken again. */
void lead_drop(struct lead *l);
/* Does any process lead, by the record? */
FW_MUST_CHECK int lead_exists(struct fw_store *st, struct fw_str kind, bool *exists, struct fw_err *err);
/* Give the record back, if we have it, so that another process leads at once. */
void lead_leave(struct lead *l, struct fw_store *st);

#endif
