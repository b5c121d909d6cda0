/* SPDX-License-Identifier: ISC */
/*
 * Reads the write-ahead logs that earlier processes left. A damaged record costs itself alone. A
 * file with damage is renamed to NAME.damaged, never deleted; what was skipped is logged.
 *
 * The bytes after the last record that are the beginning of another one are a write that did not
 * end: kill -9 came before its push was answered, or a power failure within wal_sync_ms. They are
 * no damage.
 *
 * Threads: one thread uses a reader.
 */
#ifndef FW_ENGINE_WAL_READER_H
#define FW_ENGINE_WAL_READER_H

#include "feedwheel/types.h"

struct fw_wal_reader;

/* Errors: FW_EINVAL the folder cannot be read; FW_ENOMEM. */
FW_MUST_CHECK int fw_wal_reader_open(const char *folder, struct fw_wal_reader **out, struct fw_err *err);
/*
 * Reads the next record of the open file; it is 8-byte aligned, and valid until the next file.
 * False: end of file, or no file is open.
 */
bool fw_wal_reader_read(struct fw_wal_reader *r, struct fw_str *record);
/* The record that was read last is not one that the caller can use: counts it as damage. */
void fw_wal_reader_refuse(struct fw_wal_reader *r);
/*
 * Call it when all rows of the open file are stored: deletes or renames the file. Then opens
 * another one that no process holds. False: there are no more.
 */
bool fw_wal_reader_next(struct fw_wal_reader *r);
/* Leaves the open file as it is. NULL is allowed. */
void fw_wal_reader_close(struct fw_wal_reader *r);

#endif
