/* SPDX-License-Identifier: ISC */
/*
 * The bytes of a write-ahead log's file: records, and the walk through them that passes damage.
 *
 * A record is a head of 24 bytes (struct fw_wal_head), and its bytes, padded to a multiple of 8.
 * The head has a check of its own, which depends on its place in the file. Therefore a walk knows
 * what it has before it: a head that is right gives the true length, even if the bytes after it are
 * damaged; a head that is right and reaches beyond the end is a write that did not end; and what a
 * client pushes is not taken for a record, even if it looks like one. Records are numbered from 0
 * in each file, so a walk knows how many it has missed.
 *
 * Files of version 0.1.0 ("fws1") have heads without number and check. They are read, but where a
 * head is damaged, its length is unknown, and so is whether the last write ended.
 *
 * Pure: no files, no log.
 */
#ifndef FW_ENGINE_WAL_FORMAT_H
#define FW_ENGINE_WAL_FORMAT_H

#include "base/buf.h"
#include "feedwheel/types.h"

#define FW_WAL_RECORD_MAX ((uint32_t)1 << 10) /* bytes of a record; also bounds the cost of a walk */

struct fw_wal_head {
	uint32_t bytes, magic; /* bytes: without head and padding */
	uint64_t sum;          /* of the bytes */
	uint32_t number;       /* of the record in its file, from 0 */
	uint32_t check;        /* of what is above */
};

/* Appends a record whose head has no number and no check yet. len <= FW_WAL_RECORD_MAX. */
void fw_wal_record_add(struct fw_buf *b, const void *p, size_t len);
/*
 * Completes the heads of the records in p, which is 8-byte aligned and will be at this place of a
 * file that has `number` records before it. Returns the number of records after it.
 */
uint32_t fw_wal_record_complete(void *p, size_t bytes, size_t at, uint32_t number);

/* Bytes that are not a record. */
struct fw_wal_gap {
	size_t at, bytes; /* bytes 0: no gap */
	uint64_t record_n;
	bool at_least; /* there may have been more than record_n */
};

struct fw_wal_walk {
	const unsigned char *p;
	size_t bytes, at;
	uint32_t number; /* of the next record */
	bool old;        /* fws1 */
	/* at the end: bytes of a write that did not end, behind the last gap */
	size_t unfinished_bytes;
};

/* p: a whole file, 8-byte aligned; it stays the caller's, and outlives the walk. */
void fw_wal_walk_begin(struct fw_wal_walk *w, const void *p, size_t bytes);
/*
 * Moves to the next record, which points into p and is 8-byte aligned; gap: what was skipped before
 * it. False: no more records; gap and w->unfinished_bytes: what the end of the file has instead.
 * All records, gaps and unfinished bytes are the whole file. A walk takes linear time, whatever the
 * bytes are.
 */
bool fw_wal_walk_next(struct fw_wal_walk *w, struct fw_str *record, struct fw_wal_gap *gap);

#endif
