/* SPDX-License-Identifier: ISC */
/*
 * The SQL core: its implementations of the driver's slots (driver.h), and the helpers its files
 * share.
 */
#ifndef FW_STORE_SQL_CORE_H
#define FW_STORE_SQL_CORE_H

#include "store/sql/schema.h"

/* lease.c */
store_heartbeat_fn sql_heartbeat;
store_release_fn sql_release;
/* schedule.c; stats.c */
store_due_fn sql_due;
store_clock_fn sql_clock;
store_stats_fn sql_stats;
store_prune_fn sql_prune;
/* commit.c */
store_commit_fn sql_commit;
/* feeds.c */
store_feed_list_fn sql_feed_list;
store_feed_set_fn sql_feed_set;
store_feed_drop_fn sql_feed_drop;
store_feed_adopt_fn sql_feed_adopt;
/* inbox.c */
store_inbox_fn sql_inbox;
/* load.c */
store_load_fn sql_load;
store_key_list_fn sql_key_list;
/* entry_list.c, visits.c */
store_entry_list_fn sql_entry_list;
store_entry_counts_fn sql_entry_counts;
store_visit_list_fn sql_visit_list;
/* changes.c */
store_change_list_fn sql_change_list;
store_revision_list_fn sql_revision_list;
/* matches.c */
store_match_put_fn sql_match_put;
store_match_list_fn sql_match_list;
store_match_remove_fn sql_match_remove;
store_match_summary_fn sql_match_summary;
/* orders.c */
store_orders_version_fn sql_orders_version;
/* events.c, records.c */
store_event_put_fn sql_event_put;
store_event_ids_fn sql_event_ids;
store_event_list_fn sql_event_list;
store_event_remove_fn sql_event_remove;
store_record_put_fn sql_record_put;
store_record_list_fn sql_record_list;
store_record_remove_fn sql_record_remove;

/* The core's slots, for a driver's table. The driver adds open, close, inspect and wait. */
#define SQL_SLOTS                                                                                                   \
	.clock = sql_clock, .stats = sql_stats, .prune = sql_prune, .heartbeat = sql_heartbeat,                     \
	.release = sql_release, .due = sql_due, .commit = sql_commit, .load = sql_load, .feed_list = sql_feed_list, \
	.feed_set = sql_feed_set, .feed_drop = sql_feed_drop, .feed_adopt = sql_feed_adopt,                         \
	.entry_list = sql_entry_list, .entry_counts = sql_entry_counts, .key_list = sql_key_list,                   \
	.change_list = sql_change_list, .revision_list = sql_revision_list, .visit_list = sql_visit_list,           \
	.event_put = sql_event_put, .event_ids = sql_event_ids, .event_list = sql_event_list,                       \
	.event_remove = sql_event_remove, .match_put = sql_match_put, .match_list = sql_match_list,                 \
	.match_remove = sql_match_remove, .match_summary = sql_match_summary, .orders_version = sql_orders_version, \
	.record_put = sql_record_put, .record_list = sql_record_list, .record_remove = sql_record_remove,           \
	.inbox = sql_inbox, .accounts = &sql_accounts

/* check.c */
struct sql_check {
	const char *name, *words; /* the finding's text: %lld for */
	const char *text;         /* the two numbers of each row of this statement */
};
/*
 * The deep check of inspect. begin: a script that starts a transaction with one view of all rows.
 * own: one more check of the dialect, or NULL.
 */
int sql_check(struct sql *s, const char *begin, const struct sql_check *own, fw_inspect_cb *cb, void *ctx,
	struct fw_err *err);

/* accounts.c: of the drivers' tables. */
struct store_accounts;
extern const struct store_accounts sql_accounts;

/* ---- inside a transaction -------------------------------------------------------------------- */

/*
 * The schedule of these shards changed from outside: raise their versions and `changes`, and wake
 * the callers of wait. Call it last in a transaction. shard: STORE_SHARDS flags.
 */
int sql_shards_changed(struct sql *s, const bool *shard, struct fw_err *err);
/*
 * load.c: the feeds of a load, whose shards are flagged in changed. Call it before a row of a feed
 * is locked: it locks the counter of feed ids.
 */
int sql_feeds_subscribe(struct sql *s, const struct store_load *l, bool *changed, struct fw_err *err);
/* Raise only `changes`, and wake the callers of wait. */
int sql_changes_raise(struct sql *s, struct fw_err *err);
/*
 * Reserve n ids of the named counter in `meta`; *last: the last of them. The counter's row stays
 * locked until the transaction ends: call it as late as possible.
 */
int sql_ids_reserve(struct sql *s, const char *name, int64_t n, int64_t *last, struct fw_err *err);
/*
 * *id: the highest id whose row is older than before_ms, by binary search; 0: none. Ids must rise
 * with time, within the slack that the caller allows for; so no index by time is needed. last:
 * statement for the highest id; next: statement for id and time of the first row with id >= ?1.
 */
int sql_id_before(
	struct sql *s, const char *last, const char *next, int64_t before_ms, int64_t *id, struct fw_err *err);
/*
 * orders.c: the same for entries and changes of a commit. STORE_EORDERS: the orders have another
 * version than the matcher. Whoever changes them waits for the counter's row, so they stay as they
 * are until the transaction ends.
 */
int sql_entry_ids_reserve(struct sql *s, int64_t n, int64_t *last, struct fw_err *err);
/* Raise the version of the orders. Call it late: it locks the counter's row too. */
int sql_orders_raise(struct sql *s, struct fw_err *err);
/* Add to the number of entries and of visits; negative: subtract. */
int sql_row_counts_add(struct sql *s, int64_t entry_n, int64_t visit_n, struct fw_err *err);

/* An outcome while it is stored. */
struct sql_visit {
	struct fw_outcome o;   /* a copy to work on; rc FW_ENOTFOUND: it is skipped */
	struct fw_outcome *of; /* the caller's */
	int64_t position;      /* of the feed */
	int64_t id, last_id;   /* of the new visit; of the feed's last visit so far */
	bool is_repeated;      /* stored before; for a push: a push with the same time is stored */
	bool feed_exists;      /* the feed exists */
	bool has_entries;      /* the feed may have entries; false: its keys need no look-up */
};

/* Does the outcome have a visit to store? */
static inline bool sql_has_visit(const struct fw_outcome *o)
{
	return o->rc != FW_ENOTFOUND && o->visit.kind != FW_VISIT_NONE;
}

/*
 * changes.c: the changes of a transaction, collected while it works and stored near its end: their
 * numbers are those of entries, and the counter's row stays locked from then on. Zero is empty.
 */
struct sql_changes {
	struct fw_buf b; /* array of struct fw_change, without id and at_ms */
};
size_t sql_changes_n(const struct sql_changes *log);
void sql_changes_add(
	struct sql_changes *log, enum fw_change_kind kind, int64_t entry_id, int64_t feed_id, uint32_t revision);
/* Store them with reserved numbers, the last of which is last_id; at_ms: now. */
int sql_changes_put(struct sql *s, const struct sql_changes *log, int64_t last_id, int64_t at_ms, struct fw_err *err);
/* The log starts above this number, unless the store has used it. */
int sql_changes_start(struct sql *s, int64_t change_id, struct fw_err *err);
/* Reserve numbers, store the changes, and free; takes the rc so far (an error: store nothing). */
int sql_changes_end(struct sql *s, struct sql_changes *log, int rc, struct fw_err *err);

/* An entry that is about to change. */
struct sql_revision {
	int64_t entry_id;
	int64_t revision; /* out: the version that it has; 0: it does not exist */
};
/* Keep the versions of these entries, and trim the older ones. */
int sql_revisions_keep(struct sql *s, struct sql_revision *r, size_t n, struct fw_err *err);

/*
 * entries.c: store the entries of outcomes. sql_entries_put() updates changed entries and sets
 * visit.new_n and changed_n. sql_entries_insert() inserts the new ones, near the end of the
 * transaction: their ids are reserved then, and no other transaction gets ids until this one ends.
 * It takes the rc so far (an error: insert nothing), and frees. FW_EAGAIN with a race: another
 * transaction stored the same entry meanwhile.
 */
struct sql_entries {
	struct entry_items *entry_items;
};
int sql_entries_put(struct sql *s, struct sql_visit *v, size_t n, int64_t now_ms, int64_t *new_n,
	struct sql_entries *rest, struct fw_err *err);
int sql_entries_insert(struct sql_entries *rest, int rc, struct fw_err *err);
int sql_entries_load(struct sql *s, const struct fw_entry_row *e, size_t n, const struct fw_entry_key *key,
	size_t key_n, struct fw_err *err);
/* log: gets a change for each entry; the caller puts it. */
int sql_entries_drop(struct sql *s, int64_t feed_id, struct sql_changes *log, struct fw_err *err);
/* The same, but those with labels stay, and the keys of the others. */
int sql_entries_shed(struct sql *s, int64_t feed_id, struct sql_changes *log, struct fw_err *err);
int sql_entries_merge(struct sql *s, int64_t from_id, int64_t into_id, struct sql_changes *log, struct fw_err *err);
/* An entry to be removed. sql_old_entry_row() appends one to a buffer: id, feed, key, revision. */
struct sql_old_entry {
	int64_t id, feed_id, revision;
	unsigned char key[16];
};
int sql_old_entry_row(void *ctx, const struct sql_row *row);
/* Remove entries, and log that. Their keys stay, so they are not stored again. */
int sql_entries_remove(
	struct sql *s, const struct sql_old_entry *e, size_t n, struct sql_changes *log, struct fw_err *err);
/*
 * retract.c: remove the entries that outcomes retract, but those with labels. log: as of
 * sql_entries_drop().
 */
int sql_entries_retract(
	struct sql *s, const struct sql_visit *v, size_t n, struct sql_changes *log, struct fw_err *err);
/* matches.c: inside a transaction; those that exist are left. */
int sql_matches_insert(struct sql *s, const struct fw_match *m, size_t n, bool dead, struct fw_err *err);
/*
 * account_state.c: what becomes of accounts when entries come and go; in the same transaction. A
 * caller that locks entries locks the accounts first.
 */
struct sql_entry_ref {
	int64_t id, feed_id;
};
int sql_accounts_lock_all(struct sql *s, bool *any, struct fw_err *err); /* *any: there are some */
/* New entries of any feeds: raise entry_total_n. Sorts e, as the next one does. */
int sql_entry_totals_raise(struct sql *s, struct sql_entry_ref *e, size_t n, struct fw_err *err);
/* Before these entries are removed. */
int sql_accounts_entries_gone(struct sql *s, struct sql_entry_ref *e, size_t n, struct fw_err *err);
int sql_accounts_feed_gone(struct sql *s, int64_t feed_id, struct fw_err *err);
/* The entries in the log have moved to into_id; the other ones of from_id are about to go. */
int sql_accounts_merge(
	struct sql *s, int64_t from_id, int64_t into_id, const struct sql_changes *log, struct fw_err *err);
/* Retention: remove up to max entries. *n: how many. Those with labels stay. */
int sql_entries_prune(struct sql *s, int64_t before_ms, size_t max, int64_t *n, struct fw_err *err);
#define SQL_SEEN_SLACK_MS 60000 /* ids rise with seen_ms, with less than this slack between clocks */
/* entry_list.c: *id: entries up to it were first seen before before_ms, within the slack. */
int sql_entry_id_seen_before(struct sql *s, int64_t before_ms, int64_t *id, struct fw_err *err);

/* visits.c: store the visits of outcomes. */
int sql_visits_put(struct sql *s, struct sql_visit *v, size_t n, struct fw_err *err);
int sql_visits_load(struct sql *s, const struct fw_visit *v, size_t n, struct fw_err *err);
/* Remove all visits of the feed at this position. */
int sql_visits_drop(struct sql *s, int64_t position, struct fw_err *err);
/* Is a visit of v's kind and time stored, in the chain from last_id back? */
int sql_visit_exists(struct sql *s, int64_t last_id, const struct fw_visit *v, bool *there, struct fw_err *err);

/*
 * feeds.c: write the groups that outcomes changed, and adopted urls (rc FW_EINVAL if another feed
 * has it). Moves feeds to their new shards, and flags these shards in changed.
 */
int sql_feeds_put_groups(struct sql *s, struct sql_visit *v, size_t n, bool *changed, struct fw_err *err);
/*
 * Find the position of a feed by its id. FW_ENOTFOUND. lock: the position cannot change until the
 * transaction ends.
 */
int sql_feed_position(struct sql *s, int64_t feed_id, bool lock, int64_t *position, struct fw_err *err);

#endif
