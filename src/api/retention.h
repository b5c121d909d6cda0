/* SPDX-License-Identifier: ISC */
/*
 * Retention: prunes what is older than the settings allow.
 *
 *	visits    older than visits_retention_ms
 *	entries   neither new nor changed for entries_retention_ms. A pass reads all entries, so one
 *	          pass starts every 6 h. Its time is a record of kind "retention", key "entries"
 *	events    older than events_retention_ms, dead letters too
 *	records   expired ones
 *
 * One process for a store is enough; several do no harm. Each call takes about 100 ms. *more: work
 * is left, so call again soon. Errors are the store's; they are logged, too.
 */
#ifndef FW_API_RETENTION_H
#define FW_API_RETENTION_H

#include "feedwheel/engine.h"

/* Prune all four. Called by a worker once a minute, and by run --once at its end. */
int fw_retention_run(struct fw_store *st, const struct fw_config *c, int64_t now_ms, bool *more, struct fw_err *err);
/* Prune events and records only. Called by a server without workers. */
int fw_retention_run_pushed(
	struct fw_store *st, const struct fw_config *c, int64_t now_ms, bool *more, struct fw_err *err);
/* One step of the search index, some tens of ms. Prunes nothing. */
int fw_search_index_step(struct fw_store *st, int64_t now_ms, bool *more, struct fw_err *err);

#endif
