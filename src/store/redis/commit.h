/* SPDX-License-Identifier: ISC */
/*
 * The state of one commit. commit.c reads the rows, decides, and reports the results.
 * commit_write.c makes the new rows and the transaction.
 */
#ifndef FW_STORE_REDIS_COMMIT_H
#define FW_STORE_REDIS_COMMIT_H

#include "store/redis/redis.h"

/* an entry that is new or changed */
struct redis_commit_entry {
	const struct fw_entry_row *e;
	struct rs_key_value known; /* id 0: the entry was removed and stays away */
	bool is_new, dropped;      /* dropped: it is new, and an order drops it */
	const int64_t *order_id;   /* the orders that get a match */
	size_t order_n;
	int64_t seen_ms;   /* first seen; 0: now */
	uint32_t revision; /* the previous one */
	/* of an entry that changes: */
	int64_t change_id;
	struct fw_entry_row old;
	const struct rs_reply *kept; /* its revisions that are kept */
};

/* The entry is stored, and was not removed. */
static inline bool redis_commit_is_changed(const struct redis_commit_entry *i)
{
	return !i->is_new && i->known.id;
}

/* an entry that its feed takes back */
struct redis_commit_retraction {
	const struct fw_entry_key *key;
	struct rs_key_value known;
	int64_t change_id;
};

enum redis_commit_result {
	PLAN_STORED,
	PLAN_REPEATED, /* stored already: the response to an earlier try was lost */
	PLAN_NO_FEED,
	PLAN_RETRY, /* not in this try */
};

/* one outcome */
struct redis_commit_plan {
	struct fw_outcome *o;
	int shard;
	bool has_url;    /* the feed got its new address */
	unsigned change; /* groups of the feed row that change, as bits by RS_* */
	enum redis_commit_result result;
	struct fw_feed feed; /* schedule row, before and then after the commit */
	struct rs_schedule_row state;
	struct fw_str feed_row; /* feed row, read only if it changes */
	struct fw_str url_was;
	bool changes_host; /* to another host */
	struct redis_commit_entry *item;
	size_t item_n, match_n;
	struct redis_commit_retraction *retraction; /* of entries that are stored */
	size_t retraction_n;
	uint32_t new_n, changed_n;   /* new_n: without the dropped ones */
	int64_t visit_id, before_id; /* 0: no visit is written; 0: no earlier visit */
};

struct redis_commit {
	struct rs *r;
	struct store_commit *c;
	struct redis_commit_plan *plan; /* sorted by shard */
	size_t n;
	size_t at;               /* index of the first reply of its request */
	size_t stored_n;         /* plans that are written */
	bool *done;              /* per outcome: its result is set */
	bool hosts_done;         /* the hosts are stored */
	struct fw_str *host_row; /* rows of hosts in shards that this lease does not hold */
	bool push;               /* no lease: the schedule does not change */
	bool retry;              /* another try is needed */
	bool publishes;          /* a schedule changes: publish that */
	/* the matcher's version; NULL: none is compared */
	const struct fw_orders_version *orders;
	int64_t now_ms;         /* clock of the server */
	int64_t visit_id;       /* the last visit id that was given */
	int64_t first_id, id_n; /* id_n ids of entries and changes above first_id are reserved */
	int64_t entry_id;       /* the last entry id that was given */
};

static inline struct fw_str redis_commit_retracted_key(const struct fw_entry_key *k)
{
	return (struct fw_str){(const char *)k->key, sizeof(k->key)};
}

static inline struct fw_str redis_commit_key(const struct fw_entry_row *e)
{
	return (struct fw_str){(const char *)e->key, sizeof(e->key)};
}

/* Make the rows of all stored outcomes, and give them their ids. */
void redis_commit_rows_make(struct redis_commit *w);
/* Collect the transaction. w->at becomes the index of EXEC's reply. */
void redis_commit_write(struct redis_commit *w);

#endif
