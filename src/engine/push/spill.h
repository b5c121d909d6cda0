/* SPDX-License-Identifier: ISC */
/*
 * A log on disk of what was accepted and is not stored yet, so that it outlives the process.
 *
 * One spill for each lane: files "NAME.spill" in one folder, appended to by the producer, each locked as long as its process lives. A
 * record is its length and a mark (4 bytes each), a checksum (8), and the bytes, filled up to a multiple of 8. What was written is there after kill -9; a thread
 * syncs it to the disk every so often. A file whose rows are all stored is deleted. At the next start, files that nobody locks are
 * read again: rows that were stored already are passed over by their ids.
 */
#ifndef FW_ENGINE_SPILL_H
#define FW_ENGINE_SPILL_H

#include <stdatomic.h>

#include "base/buf.h"
#include "feedwheel/types.h"

struct fw_spill;

/* Errors: FW_EINVAL the folder cannot be made or written, with the reason. */
FW_MUST_CHECK int fw_spill_open(const char *folder, int64_t sync_ms, size_t lanes, struct fw_spill **out, struct fw_err *err);
/* Files without rows that are not stored go; the others stay for the next start. */
void fw_spill_close(struct fw_spill *s);

/*
 * Producer of that lane: add records, then write them in one go; rows is how many rows the lane has had with them. Errors: FW_EIO the
 * disk is full or broken: nothing of it is left in the log; FW_ENOMEM.
 */
void fw_spill_add(struct fw_spill *s, size_t lane, const void *p, size_t len);
FW_MUST_CHECK int fw_spill_write(struct fw_spill *s, size_t lane, uint64_t rows, struct fw_err *err);
void fw_spill_forget(struct fw_spill *s, size_t lane);
/* Flusher: so many of the lane's rows are stored. */
void fw_spill_stored(struct fw_spill *s, size_t lane, uint64_t rows);

/*
 * Reading what others left, file by file. A record that was not finished, or was damaged, ends its file, and the log says so.
 */
struct fw_spill_reader;
FW_MUST_CHECK int fw_spill_reader_open(const char *folder, struct fw_spill_reader **out, struct fw_err *err);
/* Of the open file: its records stand on addresses divisible by 8, until the next file. False: it is at its end, or none is open. */
bool fw_spill_read(struct fw_spill_reader *r, struct fw_str *record);
/*
 * All of the open file is stored: delete it, or rename it to NAME.damaged. Then open another that nobody holds. False: there are no more.
 */
bool fw_spill_reader_next(struct fw_spill_reader *r);
void fw_spill_reader_close(struct fw_spill_reader *r);

#endif
