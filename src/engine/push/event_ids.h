/* SPDX-License-Identifier: ISC */
/*
 * Ids of events from the store's ranges (base/ids.h), and new ids for events whose id another one
 * has: rows of older programs, which made ids from the clock alone, and rows of two stores that
 * become one.
 */
#ifndef FW_ENGINE_PUSH_EVENT_IDS_H
#define FW_ENGINE_PUSH_EVENT_IDS_H

#include "base/ids.h"
#include "feedwheel/ingest.h"

/*
 * Take ids from a new range. clash_n: events that need new ids, for the store's count; 0: none.
 * Errors: those of the store.
 */
FW_MUST_CHECK int event_ids_reserve(struct fw_store *st, struct fw_ids *ids, int64_t clash_n, struct fw_err *err);
/* As fw_event_ids_put(), for a dead letter. */
FW_MUST_CHECK int event_ids_put_dead(
	struct fw_store *st, struct fw_ids *ids, struct fw_dead_letter *d, uint64_t *clash_n, struct fw_err *err);

#endif
