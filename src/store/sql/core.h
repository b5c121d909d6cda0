/* SPDX-License-Identifier: ISC */
/* What the core's files make of the driver's slots (driver.h), and what they share. */
#ifndef FW_STORE_SQL_CORE_H
#define FW_STORE_SQL_CORE_H

#include "store/sql/schema.h"

/* lease.c */
store_beat_fn sql_beat;
store_give_fn sql_give;
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
/* load.c */
store_load_fn sql_load;
store_key_list_fn sql_key_list;
/* entries.c, visits.c */
store_entry_list_fn sql_entry_list;
store_visit_list_fn sql_visit_list;
/* events.c, records.c */
store_event_put_fn sql_event_put;
store_event_list_fn sql_event_list;
store_event_remove_fn sql_event_remove;
store_record_put_fn sql_record_put;
store_record_list_fn sql_record_list;
store_record_remove_fn sql_record_remove;

/* In a driver's table. open, close, inspect and wait are its own. */
#define SQL_SLOTS \
	.clock = sql_clock, .stats = sql_stats, .prune = sql_prune, .beat = sql_beat, .give = sql_give, .due = sql_due, \
	.commit = sql_commit, .load = sql_load, .feed_list = sql_feed_list, .feed_set = sql_feed_set, \
	.feed_drop = sql_feed_drop, .entry_list = sql_entry_list, .key_list = sql_key_list, \
	.visit_list = sql_visit_list, .event_put = sql_event_put, .event_list = sql_event_list, \
	.event_remove = sql_event_remove, .record_put = sql_record_put, .record_list = sql_record_list, \
	.record_remove = sql_record_remove

/* check.c */
struct sql_check {
	const char *name, *words; /* words: with %lld for */
	const char *text;         /* each row's two numbers */
};
/*
 * A deep check, each fault a finding of level 2. begin: a script for one view of it all; own: one
 * more, of the dialect's, or NULL.
 */
int sql_check(struct sql *s, const char *begin, const struct sql_check *own, fw_inspect_cb *cb, void *ctx,
	struct fw_err *err);

/* ---- inside a transaction -------------------------------------------------------------------- */

/*
 * The schedule of these shards changed from outside: raise their versions and `changes`, and tell
 * who waits. The last thing in a transaction. shard: STORE_SHARDS flags.
 */
int sql_shards_changed(struct sql *s, const bool *shard, struct fw_err *err);
/* Raise `changes` alone. */
int sql_changed(struct sql *s, struct fw_err *err);
/*
 * n more of a number of `numbers`; *last: the last of them. The row stays locked until the end of
 * the transaction: as late in it as can be.
 */
int sql_numbers_take(struct sql *s, const char *name, int64_t n, int64_t *last, struct fw_err *err);
/*
 * *id: the row with it, and most of those before it, are older than before_ms; found by halving, as
 * ids rise with time, give or take what the caller allows for. So a time needs no index. last: the
 * highest id; next: id and time of the first row from ?1 on.
 */
int sql_id_before(
	struct sql *s, const char *last, const char *next, int64_t before_ms, int64_t *id, struct fw_err *err);
/* So many more, or fewer. */
int sql_tally_add(struct sql *s, int64_t entry_n, int64_t visit_n, struct fw_err *err);

/* An outcome under way. */
struct sql_visit {
	struct fw_outcome o;      /* as it is stored; rc FW_ENOTFOUND: it is passed over */
	struct fw_outcome *of;    /* the caller's */
	int64_t place;            /* of its feed */
	int64_t id, last_id;      /* of its visit, and of its feed's last one so far */
	bool before;              /* it was stored before; of a push: one at that time is there */
	bool there;               /* its feed is */
	bool has;                 /* its feed may have had entries before; else it is not asked for them */
};

/* Is a visit to be stored with it? */
static inline bool sql_is_made(const struct fw_outcome *o)
{
	return o->rc != FW_ENOTFOUND && o->visit.kind != FW_VISIT_NONE;
}

/*
 * entries.c: entries of outcomes, and of what is loaded. Sets visit.new_n and changed_n. An entry
 * that somebody else stored between our look and our writing is FW_EAGAIN: the transaction begins
 * anew. New ones are inserted by sql_entries_insert(), near its end: their ids are taken then, and
 * until it ends nobody else gets any. It wants what rc is so far, and frees.
 */
struct sql_entries {
	struct items *items;
};
int sql_entries_put(struct sql *s, struct sql_visit *v, size_t n, int64_t now_ms, int64_t *new_n,
	struct sql_entries *rest, struct fw_err *err);
int sql_entries_insert(struct sql_entries *rest, int rc, struct fw_err *err);
int sql_entries_load(struct sql *s, const struct fw_entry_row *e, size_t n, const struct fw_entry_key *key,
	size_t key_n, struct fw_err *err);
int sql_entries_drop(struct sql *s, int64_t feed_id, struct fw_err *err);
int sql_entries_merge(struct sql *s, int64_t from_id, int64_t into_id, struct fw_err *err);
/* Retention: up to so many. */
int sql_entries_prune(struct sql *s, int64_t before_ms, size_t max, int64_t *n, struct fw_err *err);

/* visits.c: those that were made. */
int sql_visits_put(struct sql *s, struct sql_visit *v, size_t n, struct fw_err *err);
int sql_visits_load(struct sql *s, const struct fw_visit *v, size_t n, struct fw_err *err);
/* Of the feed at this place: all. */
int sql_visits_drop(struct sql *s, int64_t place, struct fw_err *err);
/* Is there one of this kind at that time, from this one back? */
int sql_visit_there(struct sql *s, int64_t last_id, const struct fw_visit *v, bool *there, struct fw_err *err);

/*
 * feeds.c: the groups that outcomes changed, and adopted addresses (rc FW_EINVAL where another feed
 * has it); moves feeds to their new shard, and notes the shards in changed.
 */
int sql_feeds_groups(struct sql *s, struct sql_visit *v, size_t n, bool *changed, struct fw_err *err);
/*
 * The place of a feed by its number. FW_ENOTFOUND, with words. lock: it stays where it is until the
 * transaction ends.
 */
int sql_feed_place(struct sql *s, int64_t feed_id, bool lock, int64_t *place, struct fw_err *err);

#endif
