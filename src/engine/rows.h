/* SPDX-License-Identifier: ISC */
/* From a document to what a store keeps of it: the same for documents that were fetched and for those that somebody brought. */
#ifndef FW_ENGINE_ROWS_H
#define FW_ENGINE_ROWS_H

#include "base/arena.h"
#include "feedwheel/store.h"

/* Rows of the entries, without those that repeat one before them. Out of memory: a->failed. Strings are the document's, or in the arena. */
struct fw_entry_row *rows_of_document(struct fw_arena *a, int64_t feed_id, const struct fw_document *d, size_t *n);
/* A JSON object of what the store has no column for, of the feed; absent: nothing, or too much. */
struct fw_str rows_feed_extra(struct fw_arena *a, const struct fw_document *d);

#endif
