/* SPDX-License-Identifier: ISC */
/*
 * The tables of all SQL engines, written once (schema.c). feedwheel-store(7) describes them.
 *
 * A feed's id is its public number and is never reused. Its position is the key of its row in
 * schedule: the shard in the upper bits, the id in the lower ones. So the rows of a shard lie
 * together, and a worker reads and writes few pages. The position changes when the feed's host
 * does. All other rows of a feed are keyed by its id: first visits come in that order and write the
 * most.
 *
 *   schedule    the columns that each visit writes, nothing else, so that rows stay narrow. Its
 *   only
 *               index is the position: an owner reads the whole shard when its version has risen
 *   feeds       the other columns of a feed, and its position: written when they change
 *   entry_keys  every key that a feed ever had, one feed's together (dedup): a document without new
 *               entries reads no row of entries; entry_id 0: the entry was removed
 *   changes     the log of changes, without those of kind new: an entry's id is their number
 *   revisions   earlier versions of entries; omitted 1: content and summary were too large
 *   visits      each row links to the feed's previous visit, and schedule to the last: a chain, so
 *               that a visit dirties no page of an index by feed
 *   row_counts  the number of entries and visits: one row for each commit, so that commits share no
 *               row; maintenance adds them up. The ids of a commit's visits contain its row's id
 *   meta        schema, lease_id, feed_id and entry_id (the last ones assigned; entry_id also
 *               numbers changes), indexed_entry_id, changes (of schedules), changes_pruned_id,
 *               account_id, icon_id
 *
 *   feeds_to_fetch, feeds_to_fetch_refused, control
 *               the inbox (store/inbox.h): rows that other programs put in
 *
 * Accounts (accounts.h) have tables of their own, empty without an account:
 *
 *   subscriptions    entries up to mark_id are read, but for exceptions. unread = the feed's
 *                    schedule.entry_total_n - read_n: no count is a scan, and a new entry writes
 *                    no row of an account
 *   read_exceptions  above mark_id: the entry is read; else it is unread
 *   entry_labels     label_id 0: starred
 *   icons            a cache of pictures by address, of no account (icons.c)
 *
 * entry_total_n rises with each entry that the feed gets, and never sinks. It is no count of rows:
 * it starts at 0 in a store that was upgraded.
 */
#ifndef FW_STORE_SQL_SCHEMA_H
#define FW_STORE_SQL_SCHEMA_H

#include <assert.h>

#include "store/sql/sql.h"

#define SQL_SCHEMA 5           /* 1 is of release 0.1.0 */
#define SQL_SCHEMA_LOG 2       /* the first one with the log of changes */
#define SQL_SCHEMA_ACCOUNTS 3  /* the first one with accounts */
#define SQL_SCHEMA_EVENT_IDS 4 /* the first one with ranges of ids for events */
#define SQL_SCHEMA_INBOX 5     /* the first one with the inbox */
#define SQL_POSITION_BITS 53
#define SQL_VISIT_BITS 10 /* low bits of a visit id: index within its row of row_counts */

static inline int64_t sql_position(int shard, int64_t feed_id)
{
	assert(shard >= 0 && shard < STORE_SHARDS);
	return (int64_t)((uint64_t)shard << SQL_POSITION_BITS | (uint64_t)feed_id);
}

static inline int64_t sql_position_feed(int64_t position)
{
	return position & ((INT64_C(1) << SQL_POSITION_BITS) - 1);
}

/*
 * Read the version of the schema. ours: a table `meta` exists; else *version is 0: no tables. An
 * older one (sql_schema_upgrade()) is no error.
 * FW_EVERSION: a newer schema. FW_EINVAL: the database of another program.
 */
int sql_schema_version(struct sql *s, bool ours, int64_t *version, struct fw_err *err);
/*
 * Create the tables. search, doors: further statements of the dialect, NULL-ended, for the search
 * index, and for what other programs write.
 */
int sql_schema_create(struct sql *s, const char *const *search, const char *const *doors, struct fw_err *err);
extern const char sql_v_feeds[]; /* the statement that creates this view */
/* Add what older schemas lack. */
int sql_schema_upgrade(struct sql *s, const char *const *search, const char *const *doors, struct fw_err *err);

#endif
