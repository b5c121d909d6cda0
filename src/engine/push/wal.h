/* SPDX-License-Identifier: ISC */
/*
 * A write-ahead log (WAL) on disk of rows that are accepted but not stored yet, so that they
 * survive the process. flush.c writes, replays and truncates it.
 *
 * Each producer has a log of its own: files "NAME.wal" in one folder, to which it appends. Each
 * file is locked (flock) while its process lives. A record is its length and a magic number (4
 * bytes each), a checksum (8 bytes), and the bytes, padded to a multiple of 8. Written records
 * survive kill -9; a thread syncs them to the disk every sync_ms. A file is deleted when all its
 * rows are stored. The next start replays the files that no process holds; the store skips rows
 * that it has already, by their ids.
 *
 * Threads: a producer writes its log; the flusher calls fw_wal_stored() and reads.
 */
#ifndef FW_ENGINE_WAL_H
#define FW_ENGINE_WAL_H

#include <stdatomic.h>

#include "base/buf.h"
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
 * rows that the producer has had, these included. fw_wal_discard() drops the added records.
 * Errors: FW_EIO the disk is full or failed, and the log has none of the records; FW_ENOMEM.
 */
void fw_wal_add(struct fw_wal *s, size_t producer, const void *p, size_t len);
FW_MUST_CHECK int fw_wal_write(struct fw_wal *s, size_t producer, uint64_t rows, struct fw_err *err);
void fw_wal_discard(struct fw_wal *s, size_t producer);
/* Called by the flusher: the first `rows` rows of the producer are stored. */
void fw_wal_stored(struct fw_wal *s, size_t producer, uint64_t rows);

/*
 * Reads the files that earlier processes left, one after another. An unfinished or damaged record
 * ends its file, and is logged.
 */
struct fw_wal_reader;
FW_MUST_CHECK int fw_wal_reader_open(const char *folder, struct fw_wal_reader **out, struct fw_err *err);
/*
 * Reads the next record of the open file; it is 8-byte aligned, and valid until the next file.
 * False: end of file, or no file is open.
 */
bool fw_wal_read(struct fw_wal_reader *r, struct fw_str *record);
/*
 * Call it when all rows of the open file are stored: deletes the file, or renames it to
 * NAME.damaged. Then opens another one that no process holds. False: there are no more.
 */
bool fw_wal_reader_next(struct fw_wal_reader *r);
void fw_wal_reader_close(struct fw_wal_reader *r);

#endif
