/* SPDX-License-Identifier: ISC */
/*
 * A write-ahead log (WAL) on disk of rows that are accepted but not stored yet, so that they
 * survive the process. flush.c writes, replays and truncates it.
 *
 * Each producer has a log of its own: files "NAME.wal" in one folder, to which it appends records
 * (wal_format.h). Each file is locked (flock) while its process lives. Written records survive
 * kill -9; a thread syncs them, and the folder if it has a new file, to the disk every sync_ms. A
 * file is deleted when all its rows are stored. The next start replays the files that no process
 * holds (wal_reader.h); the store skips rows that it has already, by their ids.
 *
 * Threads: a producer writes its log; the flusher calls fw_wal_stored() and reads.
 */
#ifndef FW_ENGINE_WAL_H
#define FW_ENGINE_WAL_H

#include "engine/push/wal_format.h"
#include "feedwheel/types.h"

struct fw_wal;

/*
 * Opens the log for this many producers; creates the folder if it does not exist. sync_ms 0: every
 * write is synced.
 * Errors: FW_EINVAL the folder cannot be created or written; FW_ENOMEM; FW_EIO no thread.
 */
FW_MUST_CHECK int fw_wal_open(
	const char *folder, int64_t sync_ms, size_t producers, struct fw_wal **out, struct fw_err *err);
/*
 * Deletes the files whose rows are all stored; the others stay for the next start. NULL is allowed.
 */
void fw_wal_close(struct fw_wal *s);

/*
 * Called by the producer: adds records, then writes them all with one call. rows: the number of
 * rows that the producer has had, these included. fw_wal_discard() drops the added records. len <=
 * FW_WAL_RECORD_MAX.
 * Errors: FW_EIO the disk is full or failed, and the log has none of the records; FW_ENOMEM.
 */
void fw_wal_add(struct fw_wal *s, size_t producer, const void *p, size_t len);
FW_MUST_CHECK int fw_wal_write(struct fw_wal *s, size_t producer, uint64_t rows, struct fw_err *err);
void fw_wal_discard(struct fw_wal *s, size_t producer);
/* Called by the flusher: the first `rows` rows of the producer are stored. */
void fw_wal_stored(struct fw_wal *s, size_t producer, uint64_t rows);

/* ---- shared with wal_reader.c -------------------------------------------- */

#define FW_WAL_SUFFIX ".wal"

/*
 * Is the open file the one that has this name now? Ask after locking it: its name may have been
 * removed before, and then be another file's.
 */
bool fw_wal_file_is_at(int fd, const char *path);

#endif
