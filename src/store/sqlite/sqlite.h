/* SPDX-License-Identifier: ISC */
/* The SQLite driver: a store in one file, or in memory. Shared by its files. */
#ifndef FW_STORE_SQLITE_SQLITE_H
#define FW_STORE_SQLITE_SQLITE_H

#include <sqlite3.h>

#include "store/sql/core.h"

#define SQLITE_STATEMENTS 256 /* prepared statements per connection, at most */
#define SQLITE_PAGE_BYTES 4096
#define SQLITE_WAL_BYTES (64 << 20) /* length of the WAL at which it is checkpointed */

struct sqlite_db {
	struct sql sql;
	sqlite3 *db;
	char *path;
	char *lock_path;       /* FILE-checkpoint; NULL: this connection does not write a file */
	int wal_frames;        /* in the WAL after the last commit */
	int checkpoint_frames; /* from this many on; tests lower it */
	bool committed;        /* the last COMMIT wrote frames */
	int64_t busy_since_ms;
	int64_t data_version, changes, inbox_id; /* as last read by sqlite_changed() */
	bool memory;
	bool merging; /* segments of the search index are being merged */
	struct sqlite_kept {
		const char *text;
		size_t rows;
		sqlite3_stmt *q;
	} kept[SQLITE_STATEMENTS];
	size_t kept_n;
};

static inline struct sqlite_db *sqlite_db(struct sql *s)
{
	return (struct sqlite_db *)s; /* sql comes first */
}

extern const struct sql_dialect sqlite_dialect;

/* Report SQLite's last error, as an FW_E* with its remedy. doing: "reading". */
int sqlite_failed(struct sqlite_db *s, const char *doing, struct fw_err *err);

/* open.c. The code of a file that cannot be opened. e: errno. */
int sqlite_path_code(int e);
/*
 * checkpoint.c. setup: once per connection, before it writes; open: creates FILE-checkpoint. begin
 * and end stand around each COMMIT; begin returns what end takes.
 */
void sqlite_checkpoint_setup(struct sqlite_db *s);
int sqlite_checkpoint_open(struct sqlite_db *s, struct fw_err *err);
int sqlite_checkpoint_begin(struct sqlite_db *s);
void sqlite_checkpoint_end(struct sqlite_db *s, int fd);
/* Can checkpoints of two programs lose commits with this version of SQLite (3040001: 3.40.1)? */
bool sqlite_loses_commits(int version);

extern const char *const sqlite_doors[]; /* NULL-ended */
/*
 * inspect.c. sqlite_changed(): has another connection raised `changes`, or put a row into the
 * inbox, since the last call? Cheap.
 */
int sqlite_changed(struct sqlite_db *s, bool *changed, struct fw_err *err);
store_inspect_fn sqlite_inspect;
store_wait_fn sqlite_wait;
/* fts.c: as in sql.h */
int sqlite_search_changed(struct sql *s, int64_t entry_id, enum sql_entry_change what, struct fw_err *err);
int sqlite_search_step(struct sql *s, bool *more, struct fw_err *err);
int sqlite_search_unindexed(struct sql *s, int64_t *n, struct fw_err *err);
int sqlite_search_begin(struct sql *s, const struct query_node *words, bool *any, bool *exact, struct fw_buf *value,
	int64_t *missing, struct fw_err *err);
extern const char *const sqlite_search_tables[]; /* NULL-ended */

#endif
