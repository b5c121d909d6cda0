/* SPDX-License-Identifier: ISC */
/* From a document to what a store keeps of it: the same for documents that were fetched and for those that somebody brought. */
#ifndef FW_ENGINE_ROWS_H
#define FW_ENGINE_ROWS_H

#include "base/arena.h"
#include "feedwheel/store.h"

/*
 * The ceiling for the memory that reading a document of so many bytes may take, besides them: 8 times as much and 8 MiB, and max_bytes at
 * most (parse_memory_bytes; 0: any). Feeds as they are take 1.5 times their bytes, rows included, and 10,000 entries with nothing in them
 * 7 MiB.
 */
size_t rows_memory(size_t len, size_t max_bytes);
/* The ceiling was too low: says so. Returns FW_ELIMIT. */
int rows_memory_short(size_t len, size_t max_bytes, struct fw_err *err);
/* Rows of the entries, without those that repeat one before them. Out of memory: a->failed. Strings are the document's, or in the arena. */
struct fw_entry_row *rows_of_document(struct fw_arena *a, int64_t feed_id, const struct fw_document *d, size_t *n);
/*
 * Which of a document's rows has the store? All keys of the feed are read. state: n of them, each an enum row_state; of two rows with one key
 * the first counts, the other is known. Errors: the store's; FW_ENOMEM.
 */
enum row_state { ROW_NEW, ROW_CHANGED, ROW_KNOWN /* or retention took it: it stays away, changed or not */ };
FW_MUST_CHECK int rows_compare(struct fw_store *st, int64_t feed_id, const struct fw_entry_row *row, size_t n, unsigned char *state,
	struct fw_err *err);
/* What it says of the feed: title and the like; fill: only where nothing is known yet. Has anything changed? */
bool rows_feed_meta(struct fw_feed *s, const struct fw_document *d, bool fill);
/* A JSON object of what the store has no column for, of the feed; absent: nothing, or too much. */
struct fw_str rows_feed_extra(struct fw_arena *a, const struct fw_document *d);

#endif
