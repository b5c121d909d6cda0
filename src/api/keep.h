/* SPDX-License-Identifier: ISC */
/*
 * Retention: what is removed from a store, and when.
 *
 *	visits    older than keep_visits_ms
 *	entries   neither new nor changed for keep_entries_ms; every 6 h in all, because it looks at all
 *	          of them. When it was done last is a record of kind "retention", key "entries"
 *	events    older than keep_events_ms, dead letters too
 *	records   that have run out
 *
 * One process of a store is enough; several do no harm. Each call takes about 100 ms. *more: there
 * is more, so call again soon. Errors are the store's and are logged.
 */
#ifndef FW_API_KEEP_H
#define FW_API_KEEP_H

#include "feedwheel/engine.h"

/* All four. Now and then (once a minute), by a worker; run --once: at its end. */
int fw_keep(struct fw_store *st, const struct fw_config *c, int64_t now_ms, bool *more);
/* Events and records only: by a server that has no workers. */
int fw_keep_pushed(struct fw_store *st, const struct fw_config *c, int64_t now_ms, bool *more);
/* One step of the search index, of tens of ms. Nothing else is removed. */
int fw_keep_index(struct fw_store *st, int64_t now_ms, bool *more);

#endif
