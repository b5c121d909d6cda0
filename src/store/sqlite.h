/* SPDX-License-Identifier: ISC */
/* Inside the SQLite driver: what its files share. Nobody else includes this. */
#ifndef FW_STORE_SQLITE_H
#define FW_STORE_SQLITE_H

#include <sqlite3.h>

#include "base/buf.h"
#include "store/drivers.h"

#define SQ_SCHEMA 2                  /* the newest schema this program knows */
#define SQ_APPLICATION_ID 0x66777731 /* "fww1" in the file's header */

/* Prepared statements are kept under these names, from first use until close. */
enum sq_id {
	SQ_BEGIN, SQ_NUMBER, SQ_NUMBER_SET, SQ_ENTRY_N, SQ_VISIT_N, SQ_COMMIT, SQ_ROLLBACK, SQ_PAGE_SIZE,
	SQ_DATA_VERSION, SQ_META_GET, SQ_VISITOR, SQ_VISIT_PUT, SQ_RUN_PUT, SQ_WHEEL_VISIT, SQ_SET_HOST,
	SQ_URL_TAKEN, SQ_HOST_FEEDS,
	SQ_FEED_HOST, SQ_SET_URL, SQ_SET_ERROR, SQ_SET_VALIDATORS, SQ_SET_META, SQ_SET_RHYTHM, SQ_SET_REDIRECT,
	SQ_BEAT_PUT, SQ_KEYS_ANY, SQ_ENTRY_KNOWN, SQ_ENTRY_PUT, SQ_KEY_PUT, SQ_KEY_CHANGE, SQ_ENTRY_CHANGE,
	SQ_ENTRY_DROP, SQ_KEY_ENTRIES, SQ_KEYS_DROP, SQ_PRUNE_VISITS, SQ_PRUNE_RUNS, SQ_PRUNE_WORKERS, SQ_PRUNE_OLD, SQ_KEYS_EMPTY,
	SQ_ENTRY_LAST, SQ_ENTRY_SEEN, SQ_KEY_OF, SQ_ENTRY_WHOLE, SQ_ENTRY_ROW, SQ_FTS_PUT, SQ_FTS_DEL, SQ_FTS_ROW,
	SQ_FTS_NEXT, SQ_FTS_STRUCTURE, SQ_FTS_MERGE, SQ_META_SET, SQ_BEHIND, SQ_HOST_GET, SQ_HOST_SET, SQ_QUEUE_PUT, SQ_UNPARK_FIRST, SQ_PARKED_DEL,
	SQ_QUEUE_FEED, SQ_QUEUE_FIND_MOVED, SQ_QUEUE_DEL, SQ_PARKED_FEED, SQ_LEASE_GET, SQ_LEASE_DEL, SQ_CLAIM_OF,
	SQ_CLAIM_TIDY, SQ_WHEEL_STATE, SQ_LEASES_OF, SQ_CLAIM_DROP, SQ_EXPIRED, SQ_LEASE_PUT, SQ_FEED_FULL, SQ_PARK,
	SQ_DUE, SQ_QUEUE_HEAD_DEL, SQ_DUE_MOVED, SQ_QUEUE_FIRST, SQ_QUEUE_MIN, SQ_CLAIM_MIN, SQ_CLAIM_NEW,
	SQ_WHEEL_CRASH, SQ_LEASE_OF_WORKER, SQ_CLAIMS_OF, SQ_PENDING_QUEUE, SQ_PENDING_MOVED, SQ_PENDING_PARKED,
	SQ_PENDING_LEASES, SQ_QUEUE_HOST, SQ_LEASE_HOST, SQ_HOST_FIND, SQ_HOST_NEW, SQ_HOST_COUNT, SQ_HOST_FEED,
	SQ_HOST_LESS, SQ_HOST_DROP, SQ_FEED_NEW, SQ_WHEEL_NEW, SQ_STANDING, SQ_VISITS_DROP, SQ_WHEEL_DROP,
	SQ_FEED_DROP, SQ_WHEEL_STATUS, SQ_LEASE_DUE, SQ_HOST_FEED_N, SQ_SET_TITLE, SQ_SET_FOLDER, SQ_SET_INTERVAL,
	SQ_SET_AUTH, SQ_SET_CRASH, SQ_FEED_BY_ID, SQ_FEED_BY_URL, SQ_FEEDS_BY_DUE, SQ_FEEDS, SQ_VISITS_OF_FEED,
	SQ_VISITS, SQ_STATS_WHEEL, SQ_STATS_QUEUE, SQ_STATS_ENTRIES, SQ_CONTROL_PUT, SQ_CONTROL_LAST, SQ_CONTROL_NEXT,
	SQ_BEATS, SQ_VISITS_AFTER, SQ_KEYS_OF, SQ_LOAD_FEED_THERE, SQ_LOAD_FEED, SQ_LOAD_WHEEL, SQ_LOAD_KEY, SQ_LOAD_KEY_BACK,
	SQ_LOAD_ENTRY, SQ_LOAD_VISIT, SQ_LOAD_LAST_VISIT, SQ_PRUNE_CONTROLS, SQ_CONTROL_PAUSED,
	SQ_ID_N
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
	bool number_dirty;
	int64_t entry_d, visit_d; /* rows more (or less) than when this transaction began: kept in meta, so that nobody counts */
	int64_t busy_since_ms;    /* when the wait for the lock began */
	bool full;                /* synchronous=FULL is on */
	bool relaxed;             /* and shall never be */
	int64_t run_id;           /* the last run whose first visit was noted */
	int64_t page_bytes;
	bool read_only;
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
static inline int64_t sq_date(sqlite3_stmt *q, int col)
{
	return sqlite3_column_type(q, col) == SQLITE_NULL ? FW_NO_DATE : sqlite3_column_int64(q, col);
}
int sq_begin(struct sqlite *s, struct fw_err *err);
/* The same for what may be lost in a power cut with the machine's workers (loans): no flush to the disk of its own. */
int sq_begin_quick(struct sqlite *s, struct fw_err *err);
/* A number that was never used before: fences, places in the queue. */
int sq_number(struct sqlite *s, int64_t *out, struct fw_err *err);
/* End the transaction: commit when rc is 0, else roll back; returns rc or the commit's failure. */
int sq_end(struct sqlite *s, int rc, struct fw_err *err);

/* ---- sqlite_schema.c ------------------------------------------------------------------------------------------------ */

/* Bring the file to SQ_SCHEMA. Errors: FW_EVERSION newer than this program, or older with no_migrate; FW_EINVAL not ours. */
int sq_migrate(struct sqlite *s, bool create, bool no_migrate, struct fw_err *err);

/* ---- sqlite_wheel.c ------------------------------------------------------------------------------------------------- */

int sq_claim(struct fw_store *st, const struct fw_claim_ask *ask, struct fw_arena *a, struct fw_lease *out,
	struct fw_claim_got *got, struct fw_err *err);
int sq_release(struct fw_store *st, const struct fw_lease *lease, size_t n, struct fw_err *err);
int sq_bury(struct fw_store *st, const char *worker, int64_t crashed_feed_id, int64_t now_ms, struct fw_err *err);
int sq_pending(struct fw_store *st, int64_t due_before_ms, int64_t *n, int64_t *wake_ms, struct fw_err *err);
/* Inside a transaction: take a lease back; *found false: there is none (stale). *host_id is 0 when no budget was counted. */
int sq_lease_take(struct sqlite *s, int64_t fence, int64_t feed_id, bool *found, int64_t *host_id, struct fw_err *err);
/* Budget back to the host; cooldown_ms 0: none. */
int sq_host_return(struct sqlite *s, int64_t host_id, bool counted, int64_t cooldown_ms, struct fw_err *err);
/* Put an active feed on the wheel, due then, but not before its host may be asked. */
int sq_wheel_on(struct sqlite *s, int64_t feed_id, int64_t due_ms, int64_t host_id, int64_t not_before_ms, struct fw_err *err);
/* Take a feed that waits out of the queue or the parking place; a lease is left alone. */
int sq_wheel_off(struct sqlite *s, int64_t feed_id, int64_t due_ms, struct fw_err *err);
int sq_lease_end(struct sqlite *s, int64_t fence, struct fw_err *err); /* deletes the row, nothing else */
/* After leases were ended: drop the claim that held this fence if it was the last. *r remembers it from call to call. */
struct sq_range {
	int64_t first, last;
};
int sq_claim_tidy(struct sqlite *s, int64_t fence, struct sq_range *r, struct fw_err *err);
int64_t sq_slot_last(int64_t wake_ms); /* the last queue.id that a feed with this wake_at_ms can have */
/* hosts: one feed more (name of url), one less */
int sq_host_join(struct sqlite *s, struct fw_str url, int64_t *host_id, bool *crowded, struct fw_err *err);
int sq_host_leave(struct sqlite *s, int64_t host_id, struct fw_err *err);
/* has it more than one feed? */
int sq_host_crowded(struct sqlite *s, int64_t host_id, bool *crowded, struct fw_err *err);

/* ---- sqlite_commit.c, sqlite_entries.c, sqlite_search.c -------------------------------------------------------------- */

int sq_commit(struct fw_store *st, struct fw_commit *batch, struct fw_err *err);
/* Inside a transaction: a run has its first visit, unless that was noted before. */
int sq_run_put(struct sqlite *s, int64_t run_id, int64_t visit_id, struct fw_err *err);
/* Inside a transaction: new ones in, changed ones replaced, equal ones left; counts both into v. */
int sq_entries_put(struct sqlite *s, int64_t feed_id, const struct fw_entry_row *row, size_t n, int64_t now_ms,
	struct fw_visit *v, struct fw_err *err);
int sq_entries_drop(struct sqlite *s, int64_t feed_id, struct fw_err *err);
int sq_entry_list(struct fw_store *st, const struct fw_entry_query *q, fw_entry_cb *cb, void *ctx, struct fw_err *err);
int sq_prune(struct fw_store *st, int64_t visits_before_ms, int64_t entries_before_ms, int64_t *n, struct fw_err *err);
int sq_upkeep(struct fw_store *st, int64_t now_ms, bool *more, struct fw_err *err);
/* Take one entry's words out of the index (before its text changes), if they are in. */
int sq_search_forget(struct sqlite *s, int64_t entry_id, struct fw_err *err);
int sq_search_add(struct sqlite *s, int64_t entry_id, struct fw_err *err);
/* Before a search: index the rest, when it is small. */
int sq_search_catch_up(struct sqlite *s, struct fw_err *err);
int sq_search_watermark(struct sqlite *s, int64_t *id, struct fw_err *err);
/* The user's words as an FTS5 query; false when there is no word in it. */
bool sq_search_query(struct fw_str words, struct fw_buf *out);

/* ---- sqlite_load.c --------------------------------------------------------------------------------------------------- */

int sq_load(struct fw_store *st, const struct fw_load *rows, struct fw_err *err);
int sq_key_list(struct fw_store *st, int64_t first_feed_id, int64_t last_feed_id, fw_key_cb *cb, void *ctx, struct fw_err *err);

/* ---- sqlite_window.c ----------------------------------------------------------------------------------------------------- */

#define SQ_FEED_COLUMNS \
	"f.id, f.url, w.status, w.due_at_ms, w.why, w.last_visit_ms, w.last_ok_ms, w.last_kind, w.http_status, w.fail_n," \
	"w.crash_n, w.expect_us, w.expect_dev_us, w.last_new_ms, f.error, f.validator_url, f.etag, f.last_modified," \
	"f.validators_ms, f.body_hash, f.title, f.home_page_url, f.description, f.language, f.icon, f.format, f.hub, f.topic," \
	"f.extra, f.rhythm, f.redirect_url, f.redirect_since_ms, f.redirect_n, f.user_title, f.folder, f.username, f.password," \
	"f.interval_ms, f.created_ms"
#define SQ_FEED_COLUMN_N 39
/* Read these columns; strings live until the next step. */
void sq_feed_read(sqlite3_stmt *q, struct fw_feed *out);

int sq_subscribe(struct fw_store *st, struct fw_feed_new *feed, size_t n, struct fw_err *err);
int sq_unsubscribe(struct fw_store *st, int64_t feed_id, struct fw_err *err);
int sq_feed_find(struct fw_store *st, int64_t id, struct fw_str url, struct fw_arena *a, struct fw_feed *out,
	struct fw_err *err);
int sq_feed_list(struct fw_store *st, const struct fw_feed_query *q, fw_feed_cb *cb, void *ctx, struct fw_err *err);
int sq_feed_set(struct fw_store *st, const struct fw_feed *feed, unsigned what, struct fw_err *err);
int sq_visit_list(struct fw_store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx, struct fw_err *err);
int sq_stats(struct fw_store *st, int64_t now_ms, struct fw_store_stats *out, struct fw_err *err);
int sq_control_put(struct fw_store *st, enum fw_control_kind kind, int64_t now_ms, struct fw_err *err);
int sq_control_take(struct fw_store *st, int64_t after_id, struct fw_control *out, struct fw_err *err);
int sq_beat_list(struct fw_store *st, int64_t since_ms, fw_beat_cb *cb, void *ctx, struct fw_err *err);

#endif
