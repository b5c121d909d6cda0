/* SPDX-License-Identifier: ISC */
/*
 * Converts a document to the rows of a store, for fetched and for pushed documents, and finds which
 * of them the store has. Pure except rows_compare(), which reads the feed's keys.
 */
#ifndef FW_ENGINE_ROWS_H
#define FW_ENGINE_ROWS_H

#include "base/arena.h"
#include "feedwheel/store.h"

/*
 * Memory limit for reading a document of len bytes, besides those bytes: 8 times its size plus 8
 * MiB, at most max_bytes (parse_memory_bytes; 0: no limit). Real feeds take 1.5 times their size,
 * rows included; 10,000 empty entries take 7 MiB.
 */
size_t rows_memory_limit(size_t len, size_t max_bytes);
/* Describes in *err that the limit was exceeded. Returns FW_ELIMIT. */
int rows_memory_exceeded(size_t len, size_t max_bytes, struct fw_err *err);
/*
 * Rows of the entries, without duplicates, in the order of publication, because a store numbers
 * them in this order. That is by date: published, else updated. Of equal dates, and where there are
 * none, the last of the document is the oldest, unless most dates of the document rise; an entry
 * without a date stays beside its older neighbour. is_partial: the document broke off, so its last
 * entry may be incomplete, and is left out. Strings are the document's or in the arena. Out of
 * memory: a->failed.
 */
struct fw_entry_row *rows_from_document(
	struct fw_arena *a, int64_t feed_id, const struct fw_document *d, bool is_partial, size_t *n);
/*
 * The keys of the entries that the document retracts. Leaves these out of the n rows, because a
 * document may list an entry beside its retraction: the later of the two counts, and the retraction
 * if the entry has no date. NULL: none, or out of memory: a->failed.
 */
struct fw_entry_key *rows_retracted(struct fw_arena *a, int64_t feed_id, const struct fw_document *d,
	struct fw_entry_row *row, size_t *n, size_t *retracted_n);
/*
 * Compares a document's rows with the store; reads all keys of the feed. state: n of enum
 * row_state. Of two rows with the same key the first counts, the other is known. Errors: the
 * store's; FW_ENOMEM.
 */
enum row_state { ROW_NEW, ROW_CHANGED, ROW_KNOWN /* or deleted by retention: it stays deleted, changed or not */ };
FW_MUST_CHECK int rows_compare(struct fw_store *st, int64_t feed_id, const struct fw_entry_row *row, size_t n,
	unsigned char *state, struct fw_err *err);
/*
 * Copies title and the like from the document to s; fill: only into empty members. True: something
 * changed.
 */
bool rows_feed_meta(struct fw_feed *s, const struct fw_document *d, bool fill);
/*
 * A JSON object of the feed's members that the store has no column for; absent: none, or too large.
 */
struct fw_str rows_feed_extra(struct fw_arena *a, const struct fw_document *d);

#endif
