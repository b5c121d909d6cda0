/* SPDX-License-Identifier: ISC */
/* Inside the SQLite driver: what its files share. Nobody else includes this. */
#ifndef FW_STORE_SQLITE_H
#define FW_STORE_SQLITE_H

#include <sqlite3.h>

#include "base/buf.h"
#include "store/drivers.h"
#include "store/host.h"

#define SQ_SCHEMA 7                  /* the newest schema this program knows */
#define SQ_APPLICATION_ID 0x66777731 /* "fww1" in the file's header */

/* Prepared statements are kept under these names, from first use until close. */
enum sq_id {
	SQ_BEGIN, SQ_NUMBER, SQ_NUMBER_SET, SQ_ENTRY_N, SQ_VISIT_N, SQ_COMMIT, SQ_ROLLBACK, SQ_PAGE_SIZE, SQ_DATA_VERSION,
	SQ_META_GET, SQ_VISITOR, SQ_SET_HOST, SQ_SET_HOST_KEY, SQ_URL_TAKEN, SQ_FEED_HOST, SQ_SET_URL, SQ_SET_ERROR, SQ_SET_VALIDATORS,
	SQ_SET_META, SQ_SET_RHYTHM, SQ_SET_REDIRECT, SQ_BEAT_PUT, SQ_KEYS_ANY, SQ_ENTRY_KNOWN, SQ_ENTRY_PUT, SQ_KEY_PUT,
	SQ_KEY_CHANGE, SQ_ENTRY_CHANGE, SQ_ENTRY_DROP, SQ_KEY_ENTRIES, SQ_KEYS_DROP, SQ_PRUNE_OLD, SQ_KEYS_EMPTY,
	SQ_ENTRY_LAST, SQ_ENTRY_SEEN, SQ_KEY_OF, SQ_ENTRY_WHOLE, SQ_ENTRY_ROW, SQ_CLAIM_GOOD, SQ_LEASES_DEL, SQ_CLAIM_DROP,
	SQ_LEASE_DEL, SQ_CLAIM_TOUCH, SQ_CLAIM_OF, SQ_CLAIM_TIDY, SQ_LEASES_OF, SQ_EXPIRED, SQ_LEASE_IS, SQ_WHEEL_CRASH,
	SQ_LEASE_OF_WORKER, SQ_CLAIMS_OF, SQ_LOAD_FEED_THERE, SQ_LOAD_FEED, SQ_LOAD_KEY, SQ_LOAD_ENTRY, SQ_LOAD_KEY_BACK,
	SQ_LOAD_LAST_LINE, SQ_LOAD_LAST_LEASE, SQ_LOAD_LAST_ASIDE, SQ_LOAD_VISIT, SQ_KEYS_OF, SQ_MOVES_TOTAL, SQ_MOVES_PUT,
	SQ_MOVES_NEXT, SQ_BLOCK_GET, SQ_BLOCK_PUT, SQ_MOVES_DEL, SQ_MOVES_MERGED, SQ_FEED_LAST, SQ_MOVES_MARK,
	SQ_LINE_AT, SQ_LEASE_AT, SQ_LEASE_OF, SQ_ASIDE_AT, SQ_LINE_OF, SQ_LENT_ALL, SQ_LINE_ALL, SQ_FTS_PUT, SQ_FTS_DEL,
	SQ_FTS_ROW, SQ_FTS_NEXT, SQ_META_SET, SQ_FTS_STRUCTURE, SQ_FTS_MERGE, SQ_BEHIND, SQ_UNINDEXED, SQ_VISITS_PUT, SQ_RUN_PUT,
	SQ_FEED_URL, SQ_ROWS_UP, SQ_ROWS_DOWN, SQ_BATCHES_UP, SQ_BATCHES_DOWN, SQ_BATCH_AT, SQ_ROW_AT, SQ_RUN_FIRST,
	SQ_ROW_DEL, SQ_BATCH_OLD, SQ_BATCH_DEL, SQ_PRUNE_VISITS, SQ_PRUNE_RUNS, SQ_PRUNE_WORKERS, SQ_PRUNE_CONTROLS,
	SQ_VISIT_THERE, SQ_HOST_GET, SQ_HOST_SET, SQ_LINE_PUTS, SQ_LINE_FEED, SQ_LINE_FROM_ASIDE, SQ_LINE_FROM_LEASE, SQ_ASIDE_DEL,
	SQ_UNPARK_FIRST, SQ_ASIDE_PUT, SQ_LINE_DEL, SQ_ASIDE_FROM_LINE, SQ_UNPARK, SQ_LEASE_STATE, SQ_ASIDE_FROM_LEASE,
	SQ_LEASE_PUT, SQ_LINE_HEAD_DEL, SQ_DUE, SQ_DUE_MOVED, SQ_LINE_FIRST, SQ_LINE_MIN, SQ_CLAIM_MIN, SQ_CLAIM_NEW,
	SQ_PENDING_LINE, SQ_PENDING_MOVED, SQ_PENDING_PARKED, SQ_PENDING_LEASES, SQ_LINE_HOST, SQ_LEASE_HOST, SQ_HOST_FIND,
	SQ_HOST_NEW, SQ_HOST_COUNT, SQ_HOST_FEED, SQ_HOST_LESS, SQ_HOST_DROP, SQ_HOST_FEEDS, SQ_FEED_NEW, SQ_HOST_OF_FEED,
	SQ_FEED_DROP, SQ_LEASE_SET, SQ_ASIDE_SET, SQ_LINE_CRASH, SQ_LEASE_CRASH, SQ_ASIDE_CRASH, SQ_SET_TITLE,
	SQ_SET_FOLDER, SQ_SET_INTERVAL, SQ_SET_AUTH, SQ_FEED_ENTRIES, SQ_CLAIM_UNTIL, SQ_FEED_BY_ID, SQ_FEED_BY_URL,
	SQ_FEEDS_BY_DUE, SQ_FEEDS, SQ_FEEDS_OF_BY_DUE, SQ_FEEDS_OF, SQ_STATS_WHEEL, SQ_STATS_QUEUE, SQ_STATS_ENTRIES, SQ_CONTROL_PUT, SQ_CONTROL_LAST,
	SQ_CONTROL_PAUSED, SQ_CONTROL_NEXT, SQ_BEATS,
	SQ_VISIT_NOTED, SQ_KEY_AT, SQ_KEY_EMPTY, SQ_EVENT_PUT, SQ_EVENTS_PUT, SQ_EVENT_BURY, SQ_EVENTS, SQ_DEAD_EVENTS, SQ_EVENT_PRUNE, SQ_DEAD_PRUNE, SQ_EVENT_OLD, SQ_EVENT_UNBURY,
	SQ_RECORD_PUT, SQ_RECORD_GET, SQ_RECORDS, SQ_RECORDS_OF, SQ_RECORD_DEL, SQ_RECORD_OLD, SQ_RECORD_PRUNE,
	SQ_LEND, SQ_LEND_UNTIL,
	SQ_LEASE_PARKED, SQ_DUE_AT, SQ_PARKED_AT, SQ_PARKED_OF, SQ_DUE_LINE, SQ_DUE_ASIDE, SQ_SET_PUSH, SQ_MERGE_ENTRIES, SQ_MERGE_KEYS, SQ_HOST_COOL, SQ_DUE_SOME, SQ_LEASE_PUT_SOME,
	SQ_LINE_HEAD_DEL_SOME,
	SQ_ID_N
};

/* From a number that is not 0 to another one. */
struct sq_map {
	int64_t (*slot)[2];
	size_t n, mask;
};

/*
 * What this connection borrowed and did not give back yet, so that a commit need not read its leases: they are as the claim wrote
 * them as long as the claim's row is there and was not touched.
 */
struct sq_loan {
	int64_t fence, feed_id, host_id, last_visit_id, last_new_ms;
	bool back, touched;
};
struct sq_claimed {
	int64_t first, last;      /* fences */
	struct sq_loan *loan;     /* in order of fences */
	size_t n, back_n, gone_n; /* gone_n: of those that are back, how many leases were deleted */
	size_t hint;              /* the next one is likely to come back here */
	bool looked, good;        /* in this transaction: is the claim as we know it? */
};
struct sq_range {
	int64_t first, last;
};
#define SQ_CLAIMED_MAX 64
struct sq_loans {
	struct sq_claimed claimed[SQ_CLAIMED_MAX]; /* a ring; n 0: free */
	size_t next, last;        /* where the next one goes; where a fence was found last */
};

/* Feeds of this transaction, on their way into line: see sqlite_line.c. */
struct sq_put;
struct sq_puts {
	struct sq_put *put;
	int64_t (*order)[2];     /* id and index */
	size_t n, cap, from, to; /* from, to: in order, those that fw_puts shows */
};

/* What is being forgotten: see sqlite_prune.c. 0: nothing. */
struct sq_prune {
	int64_t visits_before_ms, entries_before_ms;
	int64_t after_id; /* entries up to here were looked at */
};

/* Visits of this transaction, on their way into visit_batches. */
struct sq_visits {
	struct fw_buf text;
	int64_t id, run_id, first_ms, last_ms; /* id 0: none is begun */
	size_t n;
};

/* A row of hosts. */
struct sq_host {
	int64_t id, turn_n, parked_n;
	struct fw_budget budget;
};

struct sqlite {
	struct fw_store base;
	sqlite3 *db;
	char *path;
	sqlite3_stmt *stmt[SQ_ID_N];
	int64_t busy_timeout_ms;
	int64_t data_version;     /* as last seen by `changed` */
	int64_t indexed_id;       /* full-text index reaches this entry; good until the transaction ends */
	int64_t number;           /* the last one used; -1: not yet read in this transaction */
	struct fw_buf moves;      /* feeds that got a place in this transaction, as in moves.places */
	struct sq_map place;      /* feed to place, of all in moves; good as long as merged_move is the same */
	int64_t place_merged, place_seen; /* meta.merged_move, and the last row of moves that was read into it; -1: none was */
	struct sq_loans loans;
	struct sq_visits visits;
	struct sq_puts puts;
	struct claim *claim;      /* that reads a round now */
	struct sq_prune prune;
	bool number_dirty;
	int64_t entry_d, visit_d; /* rows more (or less) than when this transaction began: kept in meta, so that nobody counts */
	int64_t busy_since_ms;    /* when the wait for the lock began */
	bool full;                /* synchronous=FULL is on */
	bool relaxed;             /* and shall never be */
	int64_t run_id;           /* the last run whose first visit was noted */
	int64_t page_bytes;
	bool read_only;
	bool slow;                /* this transaction ended leases one by one: a claim may be empty */
	bool merging;             /* segments of the full-text index, over several steps of upkeep */
	struct fw_buf text;       /* scratch: plain text on its way into the index */
};

static inline struct sqlite *sqlite_of(struct fw_store *st)
{
	return (struct sqlite *)st; /* base comes first */
}

#define SQ_INT(x) ((int64_t)(x)) /* every number passed to sq_ask and sq_do goes through this or is an int64_t */

/* ---- sqlite.c: statements, transactions, errors ------------------------------------------------------------------- */

/*
 * Words and code for what went wrong last on this connection; `doing` completes "while ...". Names the file and the remedy.
 */
int sq_error(struct sqlite *s, const char *doing, struct fw_err *err);
/* The statement `id`, prepared at its first use from sql; NULL: err is set. */
sqlite3_stmt *sq_stmt(struct sqlite *s, enum sq_id id, const char *sql, struct fw_err *err);
/*
 * The same with its parameters bound, in order; fmt has one letter each: i int64_t, d int64_t date (FW_NO_DATE: NULL),
 * s struct fw_str as text (absent: NULL), b struct fw_str as blob. Strings must live until the statement has run.
 */
sqlite3_stmt *sq_ask(struct sqlite *s, enum sq_id id, const char *sql, struct fw_err *err, const char *fmt, ...);
/* Next row: 1 there is one, 0 the end, negative an error. After 0 and below the statement is reset. */
int sq_row(struct sqlite *s, sqlite3_stmt *q, struct fw_err *err);
/* sq_ask and run to the end. */
int sq_do(struct sqlite *s, enum sq_id id, const char *sql, struct fw_err *err, const char *fmt, ...);
/* One number: column 0 of the first row, or `none`. */
int sq_int(struct sqlite *s, enum sq_id id, const char *sql, int64_t none, int64_t *out, struct fw_err *err);
int sq_exec(struct sqlite *s, const char *sql, struct fw_err *err);
struct fw_str sq_text(sqlite3_stmt *q, int col); /* lives until the next step */
struct fw_str sq_value_text(sqlite3_value *v);
/* The columns from..from + n - 1 of a row; returns out. */
sqlite3_value **sq_values(sqlite3_stmt *q, int from, int n, sqlite3_value **out);
static inline int64_t sq_date(sqlite3_stmt *q, int col)
{
	return sqlite3_column_type(q, col) == SQLITE_NULL ? FW_NO_DATE : sqlite3_column_int64(q, col);
}
int sq_begin(struct sqlite *s, struct fw_err *err);
/* The same for what may be lost in a power cut with the machine's workers (loans): no flush to the disk of its own. */
int sq_begin_quick(struct sqlite *s, struct fw_err *err);
/* A number that was never used before: fences, places in the queue. */
int sq_number(struct sqlite *s, int64_t *out, struct fw_err *err);
/* The same for fw_number() in statements: it counts on from s->number. */
int sq_number_load(struct sqlite *s, struct fw_err *err);
/* End the transaction: commit when rc is 0, else roll back; returns rc or the commit's failure. */
int sq_end(struct sqlite *s, int rc, struct fw_err *err);

/* ---- sqlite_schema.c ------------------------------------------------------------------------------------------------ */

/* Bring the file to SQ_SCHEMA. Errors: FW_EVERSION newer than this program, or older with no_migrate; FW_EINVAL not ours. */
int sq_migrate(struct sqlite *s, bool create, bool no_migrate, struct fw_err *err);

/* ---- sqlite_places.c ------------------------------------------------------------------------------------------------ */

/* What visits change, in the tables line, leases and aside: in their order, or SQLite copies each value once more. */
#define SQ_STATE "due_at_ms, last_kind, http_status, fail_n, crash_n, last_visit_ms, last_ok_ms, last_new_ms, last_visit_id," \
	" expect_us, expect_dev_us, why, expect_parts"
#define SQ_STATE_N 13
/* Read these columns; why lives as long as they do. */
void sq_state_read(sqlite3_value **v, struct fw_feed *f, int64_t *last_visit_id);

bool sq_map_put(struct sq_map *m, int64_t key, int64_t value); /* false: out of memory */
bool sq_map_get(const struct sq_map *m, int64_t key, int64_t *value);
void sq_map_finish(struct sq_map *m);
bool sq_sort(int64_t (*v)[2], size_t n); /* by the first of each, none of which is negative; false: out of memory */

/* Inside a transaction: the feed stands there in line; place 0: nowhere any more. */
void sq_place_note(struct sqlite *s, int64_t feed_id, int64_t place);
int sq_moves_end(struct sqlite *s, struct fw_err *err); /* write down what was noted */
int sq_places_begin(struct sqlite *s, struct fw_err *err); /* note where all stand */
void sq_places_forget(struct sqlite *s);                /* what was noted, and what was known */

enum sq_table { SQ_NOWHERE, SQ_LINE, SQ_LEASES, SQ_ASIDE };
struct sq_where {
	enum sq_table table;
	int64_t key;              /* line: id, leases: fence */
	int64_t host_id, status, last_visit_id;
	bool moved;               /* in line: it has the turn of its host, or was put off */
	struct fw_feed state;     /* what SQ_STATE holds; why lives until sq_found() */
	sqlite3_stmt *q;
};
#define SQ_WHERE_COLUMN_N 4
/* For many feeds at once: sq_places_ready(), and then, as long as nobody gets another place, where each is noted to be in line. */
int sq_places_ready(struct sqlite *s, struct fw_err *err);
int sq_place_at(struct sqlite *s, int64_t feed_id, int64_t *place, struct fw_err *err); /* *place 0: none is noted */
/* Where it is and its state; sq_found() when both were looked at. lent (may be NULL): from sq_lent_map(), for many at once. */
int sq_find(struct sqlite *s, int64_t feed_id, const struct sq_map *lent, struct sq_where *w, struct fw_err *err);
void sq_found(struct sq_where *w);
int sq_lent_map(struct sqlite *s, struct sq_map *m, struct fw_err *err); /* feed to fence */
int sq_places_check(struct sqlite *s, void (*cb)(void *ctx, const char *finding), void *ctx, struct fw_err *err);

/* ---- sqlite_line.c --------------------------------------------------------------------------------------------------- */

#define SQ_NUMBER_MASK INT64_C(0xffffffff) /* of line.id; above it the slot */

int sq_line_setup(struct sqlite *s, struct fw_err *err); /* the connection is new */
int64_t sq_slot_last(int64_t wake_ms); /* the last line.id that a feed with this time can have */
/*
 * A feed gets a place in line, at due_at_ms, or at wake_ms when that is a date. It is written with others when the transaction
 * ends or somebody looks for a feed: until then f->why must live.
 */
int sq_line_add(struct sqlite *s, const struct fw_feed *f, int64_t host_id, int64_t wake_ms, int64_t last_visit_id, struct fw_err *err);
int sq_line_write(struct sqlite *s, struct fw_err *err); /* now */
/* A row of aside (key: the feed) or of leases (key: the fence) gets a place in line too; the caller deletes it where it was. */
int sq_line_from(struct sqlite *s, enum sq_table from, int64_t key, int64_t feed_id, int64_t host_id, int64_t due_ms, int64_t wake_ms,
	struct fw_err *err);

/* ---- sqlite_wheel.c, sqlite_claim.c, sqlite_leases.c, sqlite_lend.c ------------------------------------------------------------------ */

int sq_claim_setup(struct sqlite *s, struct fw_err *err); /* the connection is new */
int sq_claim(struct fw_store *st, const struct fw_claim_ask *ask, struct fw_arena *a, struct fw_lease *out,
	struct fw_claim_got *got, struct fw_err *err);
int sq_lend(struct fw_store *st, const struct fw_lend_ask *ask, struct fw_lend_got *got, struct fw_err *err);
int sq_release(struct fw_store *st, const struct fw_lease *lease, size_t n, struct fw_err *err);
int sq_bury(struct fw_store *st, const char *worker, int64_t crashed_feed_id, int64_t now_ms, struct fw_err *err);
int sq_pending(struct fw_store *st, int64_t due_before_ms, int64_t *n, int64_t *wake_ms, struct fw_err *err);
int sq_due_list(struct fw_store *st, int64_t due_before_ms, size_t limit, fw_due_cb *cb, void *ctx, struct fw_err *err);
int sq_host_get(struct sqlite *s, int64_t id, struct sq_host *h, struct fw_err *err);
int sq_host_set(struct sqlite *s, const struct sq_host *h, struct fw_err *err);
/* Give the host's turn to its earliest parked feed, if there is one and nobody has it. h is changed, not written. */
int sq_turn_give(struct sqlite *s, struct sq_host *h, struct fw_err *err);
/* A loan comes back (o NULL: unvisited): budget to the host, if it was counted. Gives the host's turn on. */
int sq_host_return(struct sqlite *s, int64_t host_id, bool counted, const struct fw_outcome *o, int64_t now_ms, struct fw_err *err);
int sq_line_del(struct sqlite *s, int64_t id, struct fw_err *err);
/* From the line to aside: parked when host_id is set. */
int sq_put_aside(struct sqlite *s, int64_t id, int64_t feed_id, int64_t host_id, struct fw_err *err);
/* A feed that stands nowhere gets in line (f->why: see sq_line_add), or, when its status is not active, aside. not_before_ms holds for
   the only feed of its host (host_id 0): the others wait for hosts.next_ok_ms. */
int sq_wheel_put(struct sqlite *s, const struct fw_feed *f, int64_t status, int64_t host_id, int64_t not_before_ms,
	int64_t last_visit_id, struct fw_err *err);
/* Take a feed that waits out of the line, or from where it is parked: it is aside then, and its host's turn is given on. */
int sq_wheel_off(struct sqlite *s, int64_t feed_id, const struct sq_where *w, struct fw_err *err);
int sq_aside_del(struct sqlite *s, int64_t feed_id, struct fw_err *err);
/* The row of a claim. */
int sq_claim_put(struct sqlite *s, int64_t first, int64_t last, int64_t until_ms, const char *worker, struct fw_err *err);
/* Back in line from there. */
int sq_wheel_on(struct sqlite *s, int64_t feed_id, int64_t due_ms, int64_t host_id, int64_t not_before_ms, struct fw_err *err);
/* hosts: one feed more (name of url), one less */
int sq_host_join(struct sqlite *s, const struct fw_feed *feed, int64_t *host_id, bool *crowded, struct fw_err *err);
int sq_host_leave(struct sqlite *s, int64_t host_id, struct fw_err *err);
/* has it more than one feed? */
int sq_host_crowded(struct sqlite *s, int64_t host_id, bool *crowded, struct fw_err *err);

/* leases.host_id, for the feed's place in line, and whether the loan is in that host's budget: one that is not has the number negative. */
static inline int64_t sq_lease_host(int64_t host_id, bool *counted)
{
	*counted = host_id > 0;
	return host_id < 0 ? -host_id : host_id;
}

/* A lease has ended without a visit: back in line, if its feed is active. */
int sq_lease_return(struct sqlite *s, int64_t fence, struct fw_err *err);
int sq_lease_end(struct sqlite *s, int64_t fence, struct fw_err *err); /* deletes the row, nothing else */
/* Somebody changes a lease: who holds it must look at it again. */
int sq_lease_touch(struct sqlite *s, int64_t fence, struct fw_err *err);
/* After leases were ended: drop the claim that held this fence if it was the last. *r remembers it from call to call. */
int sq_claim_tidy(struct sqlite *s, int64_t fence, struct sq_range *r, struct fw_err *err);
/* Take back claims whose time is over. */
int sq_claims_expire(struct sqlite *s, int64_t now_ms, struct fw_err *err);
/* A claim of ours begins: room for up to n loans, to be filled in order of fences; NULL: they will not be remembered. */
struct sq_claimed *sq_loans_new(struct sqlite *s, size_t n);
/* It is filled, with n loans. c may be NULL. */
void sq_loans_keep(struct sqlite *s, struct sq_claimed *c, struct sq_range fences, size_t n);
void sq_loans_begin(struct sqlite *s); /* a transaction begins */
void sq_loans_forget(struct sqlite *s);
/* In a commit's transaction: the loan is ours and as it was lent, and is marked as given back; NULL: look at the lease. */
int sq_loan_take(struct sqlite *s, int64_t fence, int64_t feed_id, struct sq_loan **out, struct fw_err *err);
/* At its end: the leases of the loans that were taken go. FW_ESTALE: they were not all there: forget them, begin again. */
int sq_loans_end(struct sqlite *s, struct fw_err *err);

/* ---- sqlite_commit.c, sqlite_visits.c, sqlite_entries.c, sqlite_search.c, sqlite_prune.c ------------------------------------------ */

int sq_commit(struct fw_store *st, struct fw_commit *batch, struct fw_err *err);
/* Inside a transaction: one visit more; its id is good when the transaction ends. */
int sq_visit_add(struct sqlite *s, int64_t feed_id, const struct fw_visit *v, int64_t previous_id, int64_t *id,
	struct fw_err *err);
int sq_visits_end(struct sqlite *s, struct fw_err *err); /* write down what was added */
void sq_visits_forget(struct sqlite *s);
/* Inside a transaction: a run has its first visit, unless that was noted before. */
int sq_run_put(struct sqlite *s, int64_t run_id, int64_t visit_id, struct fw_err *err);
int sq_visit_list(struct fw_store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx, struct fw_err *err);
/* All of a feed, from its last one down. */
int sq_visits_drop(struct sqlite *s, int64_t feed_id, int64_t last_visit_id, struct fw_err *err);
/* One step; *n: how many went, *more: there are more. */
int sq_visits_prune(struct sqlite *s, int64_t before_ms, int64_t *n, bool *more, struct fw_err *err);
/* Are there as many as meta says? */
int sq_visits_check(struct sqlite *s, void (*cb)(void *ctx, const char *finding), void *ctx, struct fw_err *err);
int sq_visit_there(struct sqlite *s, int64_t id, bool *there, struct fw_err *err); /* in visit_batches */
/* Inside a transaction: new ones in, changed ones replaced, equal ones left; counts both into v. */
int sq_entries_put(struct sqlite *s, int64_t feed_id, const struct fw_entry_row *row, size_t n, int64_t now_ms,
	struct fw_visit *v, struct fw_err *err);
int sq_entries_drop(struct sqlite *s, int64_t feed_id, struct fw_err *err);
/* Entries that one feed has and the other lacks, by key and by guid, become the other's. */
int sq_entries_merge(struct sqlite *s, int64_t from_id, int64_t into_id, struct fw_err *err);
int sq_entry_list(struct fw_store *st, const struct fw_entry_query *q, fw_entry_cb *cb, void *ctx, struct fw_err *err);
/* One step from there on; *after_id -1: that was the end. */
int sq_entries_prune(struct sqlite *s, int64_t before_ms, int64_t *after_id, int64_t *n, struct fw_err *err);
int sq_prune(struct fw_store *st, int64_t visits_before_ms, int64_t entries_before_ms, int64_t *n, struct fw_err *err);
int sq_upkeep(struct fw_store *st, int64_t now_ms, bool *more, struct fw_err *err);
int sq_index_upkeep(struct sqlite *s, bool *more, struct fw_err *err); /* *more is false before */
/* Take one entry's words out of the index (before its text changes), if they are in. */
int sq_search_forget(struct sqlite *s, int64_t entry_id, struct fw_err *err);
int sq_search_add(struct sqlite *s, int64_t entry_id, struct fw_err *err);
/* Before a search: index the rest, when it is small. */
int sq_search_catch_up(struct sqlite *s, int64_t *unindexed_n, struct fw_err *err);
int sq_search_unindexed(struct sqlite *s, int64_t *n, struct fw_err *err); /* how many entries the index does not hold */
int sq_search_watermark(struct sqlite *s, int64_t *id, struct fw_err *err);
/* The user's words as an FTS5 query; false when there is no word in it. */
bool sq_search_query(struct fw_str words, struct fw_buf *out);

/* ---- sqlite_load.c --------------------------------------------------------------------------------------------------- */

int sq_load(struct fw_store *st, const struct fw_load *rows, struct fw_err *err);
int sq_key_list(struct fw_store *st, int64_t first_feed_id, int64_t last_feed_id, fw_key_cb *cb, void *ctx, struct fw_err *err);

/* ---- sqlite_events.c ------------------------------------------------------------------------------------------------- */

int sq_event_put(struct fw_store *st, const struct fw_event *event, size_t n, struct fw_err *err);
int sq_event_bury(struct fw_store *st, const struct fw_dead_event *event, struct fw_err *err);
int sq_event_list(struct fw_store *st, int64_t after_id, size_t limit, fw_event_cb *cb, void *ctx, struct fw_err *err);
int sq_event_dead_list(struct fw_store *st, int64_t after_id, size_t limit, fw_dead_event_cb *cb, void *ctx, struct fw_err *err);
int sq_event_prune(struct fw_store *st, int64_t before_ms, int64_t *n, struct fw_err *err);
int sq_event_unbury(struct fw_store *st, const struct fw_dead_event *event, size_t n, struct fw_err *err);

/* ---- sqlite_records.c -------------------------------------------------------------------------------------------------- */

int sq_record_put(struct fw_store *st, const struct fw_record *r, bool if_absent, bool *was, struct fw_err *err);
int sq_record_get(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_arena *a, struct fw_record *out,
	struct fw_err *err);
int sq_record_list(struct fw_store *st, const struct fw_record_query *q, fw_record_cb *cb, void *ctx, struct fw_err *err);
int sq_record_remove(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_str value, struct fw_err *err);
int sq_record_prune(struct fw_store *st, int64_t now_ms, int64_t *n, struct fw_err *err);

/* ---- sqlite_window.c ----------------------------------------------------------------------------------------------------- */

/* Of a feed f, what a visit mostly leaves alone. */
#define SQ_WIDE \
	"f.id, f.url, f.error, f.validator_url, f.etag, f.last_modified, f.validators_ms, f.body_hash, f.title, f.home_page_url," \
	" f.description, f.language, f.icon, f.format, f.hub, f.topic, f.extra, f.rhythm, f.redirect_url, f.redirect_since_ms," \
	" f.redirect_n, f.user_title, f.folder, f.username, f.password, f.interval_ms, f.created_ms, f.push_until_ms, f.host_key"
#define SQ_WIDE_N 29
/* Read these columns; strings live as long as they do. Members of SQ_STATE are left alone. */
void sq_wide_read(sqlite3_value **v, struct fw_feed *out);

/* The feed's host, and where it stands (sq_found() is done). */
int sq_standing(struct sqlite *s, int64_t id, int64_t *host_id, struct sq_where *w, struct fw_err *err);
int sq_subscribe(struct fw_store *st, struct fw_feed_new *feed, size_t n, struct fw_err *err);
int sq_unsubscribe(struct fw_store *st, int64_t feed_id, struct fw_err *err);
int sq_feed_merge(struct fw_store *st, int64_t from_id, int64_t into_id, struct fw_err *err);
int sq_feed_find(struct fw_store *st, int64_t id, struct fw_str url, struct fw_arena *a, struct fw_feed *out,
	struct fw_err *err);
int sq_feed_list(struct fw_store *st, const struct fw_feed_query *q, fw_feed_cb *cb, void *ctx, struct fw_err *err);
int sq_feed_set(struct fw_store *st, const struct fw_feed *feed, unsigned what, struct fw_err *err);
int sq_stats(struct fw_store *st, int64_t now_ms, struct fw_store_stats *out, struct fw_err *err);
int sq_control_put(struct fw_store *st, enum fw_control_kind kind, int64_t now_ms, struct fw_err *err);
int sq_control_take(struct fw_store *st, int64_t after_id, struct fw_control *out, struct fw_err *err);
int sq_beat_list(struct fw_store *st, int64_t since_ms, fw_beat_cb *cb, void *ctx, struct fw_err *err);

#endif
