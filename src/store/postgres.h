/* SPDX-License-Identifier: ISC */
/* Inside the PostgreSQL driver: what its files share. Nobody else includes this. */
#ifndef FW_STORE_POSTGRES_H
#define FW_STORE_POSTGRES_H

#include <libpq-fe.h>

#include "base/buf.h"
#include "base/err.h"
#include "store/drivers.h"
#include "store/fields.h"

#define PG_SCHEMA 5            /* the newest schema this program knows */
#define PG_SERVER_MIN 140000   /* lz4 for values, ordered catalogue of settings */

/* Statements are prepared under these names at their first use. PG_ONCE is not kept. */
enum pg_id {
	PG_ONCE, PG_GUARD,
	PG_BEGIN, PG_COMMIT, PG_ROLLBACK, PG_SYNC_OFF, PG_CLOCK, PG_NOTIFY, PG_LOCK,
	PG_HEAD, PG_HEAD_QUICK, PG_MOVED, PG_FIRST, PG_PARKED_NEXT, PG_PARKED_TAKE, PG_IDS_AT, PG_IDS_STAND, PG_IDS_PLACES, PG_IDS_PARKED, PG_LOAN_FIRST, PG_LOAN_NEXT, PG_LOAN_BUMP, PG_LOAN_PUT, PG_NEXT_WAKE, PG_PARK, PG_PLACES_DROP,
	PG_LOANS_EXPIRED, PG_LOANS_BY_ID, PG_LOANS_OF_WORKER, PG_LOANS_OF_FEEDS, PG_LOANS_OPEN, PG_LOANS_DROP, PG_LOAN_HOSTS, PG_REQUEUE,
	PG_HOSTS_LOCK, PG_HOSTS_SET, PG_HOST_RETURN, PG_HOSTS_RETURN, PG_TURNS, PG_CRASH,
	PG_PENDING, PG_WHEEL_VISIT, PG_STORED, PG_VISITS_ID, PG_VISITS_PUT, PG_RUN_PUT, PG_GROUPS, PG_BEAT,
	PG_ENTRY_KNOWN, PG_ENTRY_IDS, PG_ENTRY_NEW, PG_ENTRY_CHANGE, PG_KEY_PUT, PG_KEY_CHANGE, PG_TALLY, PG_STALE_WORDS,
	PG_URL_TAKEN, PG_FEED_HOST, PG_SET_URL, PG_HOST_NEW, PG_HOST_JOIN, PG_HOSTS_MORE, PG_HOST_COUNT, PG_HOST_LEAVE, PG_HOST_DROP, PG_CROWD, PG_MOVED_OF,
	PG_URLS_KNOWN, PG_FEEDS_NEW, PG_WHEEL_NEW, PG_PLACES_NEW, PG_STANDING, PG_PLACE_DROP, PG_PLACE_DROP_MOVED, PG_PARKED_DROP,
	PG_VISITS_LESS, PG_ENTRIES_DROP, PG_ENTRIES_MERGE, PG_FEED_DROP, PG_SET_OWNER, PG_WHEEL_STATUS, PG_PLACE_PUT,
	PG_FEED_BY_ID, PG_FEED_BY_URL, PG_CONTROL_PUT, PG_CONTROL_LAST, PG_CONTROL_NEXT,
	PG_SAFE_ID, PG_INDEX_LOCK, PG_INDEX_NEXT, PG_INDEX_TODO, PG_INDEX_PUT, PG_INDEX_MARK, PG_INDEX_DONE, PG_INDEX_BEHIND, PG_UNINDEXED, PG_TALLY_FOLD,
	PG_PRUNE_VISITS, PG_PRUNE_ROWS, PG_PRUNE_CONTROLS, PG_PRUNE_RUNS, PG_PRUNE_WORKERS, PG_PRUNE_ENTRIES, PG_SINCE_ID, PG_ENTRY_LAST, PG_ENTRY_AT, PG_ENTRY_MAX,
	PG_EVENTS_PUT, PG_RECORD_PUT, PG_RECORD_GET, PG_RECORD_PRUNE,
	PG_LEND_UNTIL, PG_PUSHED_DUE,
	PG_ID_N
};

#define PG_ARGS 40

#define PG_NUMERAL_(n) #n
#define PG_NUMERAL(n) PG_NUMERAL_(n) /* a number that is a macro, in SQL */

struct pg_sent {
	enum pg_id id;
	bool preparation;
};

struct pg_hint { /* where a feed's row of places lay */
	int64_t feed_id, at;
};

struct pg {
	struct fw_store base;
	PGconn *c;
	char name[304];           /* the URL without passwords, for people */
	char schema[64], channel[64];
	int32_t lock_key;         /* advisory locks of this store */
	int64_t busy_timeout_ms;
	bool read_only, relaxed;
	char session[24];         /* behind a pooler: what the server's session is marked with; else empty */
	bool broken;              /* the connection is of no use any more: FW_EIO until it is opened anew */
	bool in_callback;         /* a list shows a row: no other call then */
	bool listening, heard;
	bool fences_moved;        /* see postgres_wheel.c */
	int64_t clock_ms;         /* the server's clock minus our monotonic one */
	unsigned char prepared[PG_ID_N];

	/* parameters of the next statement */
	struct fw_buf arg;
	size_t arg_at[PG_ARGS];
	int arg_len[PG_ARGS]; /* -1: NULL */
	int arg_n;
	size_t array_at;      /* of the array that is being filled */

	/* statements sent and not yet answered, and the answers of the last run */
	struct pg_sent *sent;
	size_t sent_n, sent_cap;
	PGresult **res;
	size_t res_n;
	int send_rc;          /* first failure of sending */
	char state[6];        /* SQLSTATE of the last error */

	/* what this connection remembers of the queue, so that dead rows at its head are not looked at again and again */
	int64_t low_id;       /* nothing stands below, when last looked at */
	int64_t until_id;     /* what stands up to here was due at the last claim */
	int64_t look_all_ms;   /* monotonic: then everything is looked at, */
	int slow_looks;       /* in a row */
	int64_t look_again_ms; /* and from then on also when there is not enough */
	int64_t none_until_ms; /* at the last claim no loan had run out up to this time */
	int64_t look_loans_ms; /* monotonic: then all loans are looked at */
	int64_t look_hint_ms;  /* monotonic: and then for the one that runs out next */
	int slow_hints;        /* in a row */
	int64_t first_loan;   /* the first claim this connection made; 0: none yet */
	int64_t run_id;       /* the last run whose first visit was noted */
	struct pg_hint *hint; /* of the last due_list, in order of feed_id: claims by number follow it */
	size_t hint_n, hint_cap;
	struct fw_buf text;   /* scratch */
};

static inline struct pg *pg_of(struct fw_store *st)
{
	return (struct pg *)st; /* base comes first */
}

static inline int pg_no_memory(struct pg *p, struct fw_err *err)
{
	return FW_ERR(err, FW_ENOMEM, "%s: out of memory", p->name);
}

/* ---- postgres.c: errors, waiting ------------------------------------------------------------------------------------ */

int pg_error(struct pg *p, const PGresult *r, struct fw_err *err); /* what the server said, as ours */
int pg_gone(struct pg *p, const char *why, struct fw_err *err);    /* FW_EIO: the connection is of no use any more */
int pg_hear(struct pg *p, struct fw_err *err); /* take what the server has told: p->heard, and a look at the whole queue */

/* ---- postgres_send.c: statements, transactions, answers ------------------------------------------------------------- */

/* Parameters of the next statement, one call for each, in order. Strings are copied. */
void pg_int(struct pg *p, int64_t v);
void pg_date(struct pg *p, int64_t v); /* FW_NO_DATE: NULL */
void pg_str(struct pg *p, struct fw_str s); /* as text or bytea, whatever the statement says; absent: NULL */
void pg_text(struct pg *p, struct fw_str s); /* the same, made fit for a text: no NUL, valid UTF-8 */
void pg_null(struct pg *p);
/* An array of n: then n times one of pg_item_*. */
enum pg_type { PG_INT8 = 20, PG_TEXT = 25, PG_BYTEA = 17, PG_TID = 27, PG_UUID = 2950 };
void pg_array(struct pg *p, enum pg_type type, size_t n);
void pg_item_int(struct pg *p, int64_t v);
void pg_item_date(struct pg *p, int64_t v);
void pg_item_tid(struct pg *p, int64_t v); /* as pg_get_int gives it; 0: NULL */
void pg_item_str(struct pg *p, struct fw_str s);
void pg_item_text(struct pg *p, struct fw_str s);
void pg_ints(struct pg *p, const int64_t *v, size_t n); /* a whole array */

/* Send a statement with these parameters; sql is looked at when it was not prepared before. Errors come with pg_run. */
void pg_send(struct pg *p, enum pg_id id, const char *sql);
/* For statements that are put together: empties p->text, and tells whether the sql has to be written there; then send it. */
bool pg_text_wanted(struct pg *p, enum pg_id id);
void pg_send_text(struct pg *p, enum pg_id id);
bool pg_is_prepared(const struct pg *p, enum pg_id id); /* then pg_send needs no sql */
/* Wait for the answers of all that was sent: p->res[0 .. res_n), one for each pg_send, good until the next run. */
int pg_run(struct pg *p, struct fw_err *err);
/* Simple statements, also several; outside of a transaction or in one. */
int pg_exec(struct pg *p, const char *sql, struct fw_err *err);

/*
 * Many new rows at a third of what an INSERT costs the server: pg_copy_begin with a COPY ... FROM STDIN (FORMAT binary), which is a
 * transaction of its own; when that went well, for each row pg_copy_row and its columns, then pg_copy_end, which tells what became of it. Not behind a pooler (p->session): it has no guard.
 */
int pg_copy_begin(struct pg *p, const char *sql, struct fw_err *err);
void pg_copy_row(struct pg *p, unsigned columns);
void pg_copy_int(struct pg *p, int64_t v);
void pg_copy_text(struct pg *p, struct fw_str s); /* made fit, as by pg_text */
int pg_copy_end(struct pg *p, struct fw_err *err);

/* A transaction: fn sends "begin" itself (pg_begin) and ends with pg_commit; on failure it is rolled back here, and done again
   when another transaction was in its way. */
typedef int pg_txn_fn(struct pg *p, void *ctx, struct fw_err *err);
int pg_txn(struct pg *p, pg_txn_fn *fn, void *ctx, struct fw_err *err);
void pg_begin(struct pg *p);       /* queued, not sent */
void pg_begin_quick(struct pg *p); /* what may be lost with the server: no flush to the disk */
/* Queued: an advisory lock until the end of the transaction. */
enum pg_lock { PG_LOCK_SCHEMA, PG_LOCK_FENCES, PG_LOCK_MEMBERS, PG_LOCK_INDEX };
void pg_lock(struct pg *p, enum pg_lock what);
int64_t pg_lock_number(const struct pg *p, enum pg_lock what);
void pg_notify(struct pg *p);      /* queued: tell who waits, when this commits */
int pg_commit_run(struct pg *p, struct fw_err *err); /* queued, and pg_run */
void pg_answers_forget(struct pg *p);

int64_t pg_now_ms(struct pg *p); /* the server's clock */
#define PG_CLOCK_SQL "(extract(epoch FROM clock_timestamp()) * 1000)::int8" /* the same, asked */

/* Columns of an answer. */
static inline bool pg_is_null(const PGresult *r, int row, int col)
{
	return PQgetisnull(r, row, col);
}
int64_t pg_get_int(const PGresult *r, int row, int col); /* of any width; NULL: 0 */
int64_t pg_get_date(const PGresult *r, int row, int col);
struct fw_str pg_get_str(const PGresult *r, int row, int col); /* lives until the next run */
/* The numbers of an array into v; returns how many there are (no more than max are stored). NULL: 0. */
size_t pg_get_ints(const PGresult *r, int row, int col, int64_t *v, size_t max);
/* Columns from `col` on into the members that the table names. */
void pg_get_fields(const PGresult *r, int row, int col, const struct fw_field *f, size_t n, void *out);

/* SQL: the row of a table under this number, looked for where it was last seen (a ctid or NULL), then by the index; with its ctid
   as "at". (The planner must not take the index for the first: so no plain =.) */
#define PG_ROW_SQL(table, key, at, id) "SELECT ctid AS at, * FROM " table " WHERE ctid = " at " AND " key " IS NOT DISTINCT FROM " id \
	" UNION ALL SELECT ctid, * FROM " table " WHERE " key " = " id " LIMIT 1"

/* Columns of a table of members, "x.due_at_ms, x.status ..." */
void pg_columns(struct fw_buf *b, const char *prefix, const struct fw_field *f, size_t n);
/* "$from::int8[], ..." for the same */
void pg_array_params(struct fw_buf *b, int from, const struct fw_field *f, size_t n);
/* One array for each member: of[0 .. n) are pointers to the structs. */
void pg_field_arrays(struct pg *p, const struct fw_field *f, size_t field_n, const void *const *of, size_t n);

/* Rows of a SELECT one by one, in portions, in a transaction of its own; parameters as set before. What cb returns is returned. */
typedef int pg_row_fn(void *ctx, struct pg *p, const PGresult *r, int row);
int pg_list(struct pg *p, const char *sql, int portion, pg_row_fn *fn, void *ctx, struct fw_err *err);
/* The same for a list that is read to its end, of many rows: planned for the last of them, not for the first. */
int pg_list_whole(struct pg *p, const char *sql, int portion, pg_row_fn *fn, void *ctx, struct fw_err *err);

/* ---- postgres_schema.c ----------------------------------------------------------------------------------------------- */

int pg_migrate(struct pg *p, bool create, bool no_migrate, struct fw_err *err);

/* ---- postgres_loans.c: who holds what; hosts --------------------------------------------------------------------------- */

#define PG_LOAN_BITS 6
#define PG_LOAN_MAX 64 /* feeds in one row of loans: a bit each */

struct pg_loan {
	int64_t id;
	uint64_t open;  /* bit i: feed[i] is still lent */
	size_t n;
	int64_t feed[PG_LOAN_MAX], host[PG_LOAN_MAX], visit[PG_LOAN_MAX], wheel_at[PG_LOAN_MAX], feed_at[PG_LOAN_MAX];
	uint64_t open_was;
};

struct pg_loans { /* of one transaction, in order of id */
	struct pg_loan *at;
	size_t n;
};

static inline int64_t pg_fence(int64_t loan_id, size_t i)
{
	return (int64_t)((uint64_t)loan_id << PG_LOAN_BITS | i);
}

#define PG_LOAN_COLUMNS "id, open, feed_id, host_id, visit_id, wheel_at, feed_at"
int pg_loans_read(struct pg *p, const PGresult *r, struct pg_loans *out, struct fw_err *err);
void pg_loans_finish(struct pg_loans *l);
/* Queued: lock the loans of these fences. Answer: PG_LOAN_COLUMNS. */
void pg_loans_lock(struct pg *p, const int64_t *fence, size_t n);
/* The loan and its bit, when this feed is still lent under this fence; else NULL. */
struct pg_loan *pg_loan_find(struct pg_loans *l, int64_t fence, int64_t feed_id, size_t *bit);
/* Queued: write back what is still open, delete what is empty. */
void pg_loans_write(struct pg *p, const struct pg_loans *l);

struct pg_back { /* budget that goes back to a host, and what it is to learn */
	int64_t host_id, n, cooldown_ms;
	int64_t next_ms;  /* nobody asks it before */
	enum fw_host_mood mood;
	int64_t total_us; /* 0: nothing to learn */
	size_t order;     /* pg_hosts_return's own */
};
/* Queued: budget returned, cooldowns set, paces learned, turns given on. Sorts; host_id 0 is passed over. */
void pg_hosts_return(struct pg *p, struct pg_back *b, size_t n);
/* Queued: for these hosts, whose rows are locked, a parked feed into the queue when none has its turn. */
void pg_turns(struct pg *p, const int64_t *host_id, size_t n);
void pg_turns_given(struct pg *p, const PGresult *r); /* its answer: a turn that is due must not wait for a look at everything */
void pg_hosts_lock(struct pg *p, const int64_t *host_id, size_t n); /* queued; in order; answer: those of struct pg_host */

/* Where in the queue: see postgres_schema.c. */
#define PG_SLOT_BITS 10
#define PG_NUMBER_BITS 24
int64_t pg_place_id(struct pg *p, int64_t wake_ms);
int64_t pg_place_last(int64_t wake_ms);
#define PG_PLACE_SQL(wake, number) "(least(greatest(" wake ", 0), 100000000000000) >> 10 << 24 | " number ")"
int64_t pg_place_number(struct pg *p);

int pg_release(struct fw_store *st, const struct fw_lease *lease, size_t n, struct fw_err *err);
int pg_bury(struct fw_store *st, const char *worker, int64_t crashed_feed_id, int64_t now_ms, struct fw_err *err);
/* Claims that ran out go back into the queue. */
int pg_take_back(struct pg *p, int64_t now_ms, struct fw_err *err);

/* ---- postgres_wheel.c ---------------------------------------------------------------------------------------------------- */

int pg_claim(struct fw_store *st, const struct fw_claim_ask *ask, struct fw_arena *a, struct fw_lease *out,
	struct fw_claim_got *got, struct fw_err *err);
/* See postgres_wheel.c: before a connection's first loan. */
int pg_fences_move(struct pg *p, struct fw_err *err);
/* Queued: a row of loans. host_id NULL: none is in a budget. Answer: its number. */
struct pg_lent { /* what a loan notes of a feed */
	int64_t host_id, visit_id, wheel_at, feed_at;
};
void pg_loan_put(struct pg *p, const char *worker, int64_t until_ms, const int64_t *feed_id, const struct pg_lent *lent, size_t n);
int pg_due_list(struct fw_store *st, int64_t due_before_ms, size_t limit, fw_due_cb *cb, void *ctx, struct fw_err *err); /* postgres_ids.c */
int pg_pending(struct fw_store *st, int64_t due_before_ms, int64_t *n, int64_t *wake_ms, struct fw_err *err);

/* ---- postgres_commit.c, postgres_entries.c, postgres_search.c -------------------------------------------------------------- */

int pg_commit(struct fw_store *st, struct fw_commit *batch, struct fw_err *err);

struct pg_entries; /* what a batch brings */
struct pg_entries *pg_entries_new(const struct fw_outcome *o, size_t n, struct fw_err *err); /* NULL: none, or err->rc */
void pg_entries_free(struct pg_entries *e);
void pg_entries_ask(struct pg *p, struct pg_entries *e); /* queued, behind the locks: which are known */
/* After that run, with the answer: o[i].rc tells which count. Counts new_n and changed_n; runs what gives new ones their numbers. */
int pg_entries_sort(struct pg *p, struct pg_entries *e, const PGresult *known, struct fw_outcome *o, struct fw_err *err);
void pg_entries_put(struct pg *p, struct pg_entries *e, int64_t now_ms); /* queued */
int pg_entry_list(struct fw_store *st, const struct fw_entry_query *q, fw_entry_cb *cb, void *ctx, struct fw_err *err);
int pg_prune(struct fw_store *st, int64_t visits_before_ms, int64_t entries_before_ms, int64_t *n, struct fw_err *err);

int pg_upkeep(struct fw_store *st, int64_t now_ms, bool *more, struct fw_err *err);
/* Before a search. unindexed_n: what it does not see, 0 so far; or NULL. */
int pg_search_catch_up(struct pg *p, int64_t *unindexed_n, struct fw_err *err);
/* How many entries the index does not hold: an expression. */
#define PG_UNINDEXED_N "((SELECT count(*) FROM entries WHERE id > (SELECT value FROM meta WHERE name = 'indexed_entry_id'))" \
	" + (SELECT count(*) FROM entries_changed))"
bool pg_search_query(struct fw_str words, struct fw_buf *out); /* as a tsquery; false: no word in it */
/* All entries up to this id are to be seen: those above may yet be overtaken by smaller ones that are being written. */
int pg_safe_id(struct pg *p, int64_t *id, struct fw_err *err);

/* ---- postgres_members.c, postgres_load.c, postgres_window.c ---------------------------------------------------------------------------------- */

int pg_subscribe(struct fw_store *st, struct fw_feed_new *feed, size_t n, struct fw_err *err);
int pg_lend(struct fw_store *st, const struct fw_lend_ask *ask, struct fw_lend_got *got, struct fw_err *err);
int pg_unsubscribe(struct fw_store *st, int64_t feed_id, struct fw_err *err);
int pg_feed_set(struct fw_store *st, const struct fw_feed *feed, unsigned what, struct fw_err *err);
int pg_feed_merge(struct fw_store *st, int64_t from_id, int64_t into_id, struct fw_err *err); /* postgres_leave.c, as unsubscribe */
struct pg_standing { /* what the owner's changes need to know of a feed; the caller begins with its id and frees the loans */
	int64_t id, host_id, crowd_id, status, due_ms, last_visit_id;
	int64_t cool_until_ms; /* its host's */
	struct pg_loans loans;
	struct pg_loan *loan; /* NULL: not lent */
	size_t bit;
};
/* Take a feed off the wheel, wherever it stands; a loan is left alone (f->loan). Nobody moves it on from here to the commit. */
int pg_take_off(struct pg *p, struct pg_standing *f, bool *found, struct fw_err *err);
void pg_place_put(struct pg *p, const struct pg_standing *f, int64_t due_ms); /* queued: and on again */
struct pg_join {
	struct fw_str name;
	int64_t n, id;
	bool crowded;
};
/* Sort, and each name once; returns how many are left. */
size_t pg_joins_merge(struct pg_join *j, size_t n);
struct pg_join *pg_join_find(struct pg_join *j, size_t n, struct fw_str name);
/* In a transaction that holds PG_LOCK_MEMBERS: feeds are added to these hosts (merged). Fills id and crowded. */
int pg_hosts_join(struct pg *p, struct pg_join *j, size_t n, struct fw_err *err);
void pg_host_leave(struct pg *p, int64_t host_id); /* queued */

int pg_load(struct fw_store *st, const struct fw_load *rows, struct fw_err *err);
int pg_key_list(struct fw_store *st, int64_t first_feed_id, int64_t last_feed_id, fw_key_cb *cb, void *ctx, struct fw_err *err);

int pg_feed_find(struct fw_store *st, int64_t id, struct fw_str url, struct fw_arena *a, struct fw_feed *out,
	struct fw_err *err);
int pg_feed_list(struct fw_store *st, const struct fw_feed_query *q, fw_feed_cb *cb, void *ctx, struct fw_err *err);
int pg_visit_list(struct fw_store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx, struct fw_err *err);
int pg_stats(struct fw_store *st, int64_t now_ms, struct fw_store_stats *out, struct fw_err *err);
int pg_control_put(struct fw_store *st, enum fw_control_kind kind, int64_t now_ms, struct fw_err *err);
int pg_control_take(struct fw_store *st, int64_t after_id, struct fw_control *out, struct fw_err *err);
int pg_beat_list(struct fw_store *st, int64_t since_ms, fw_beat_cb *cb, void *ctx, struct fw_err *err);
int pg_inspect(struct fw_store *st, fw_inspect_cb *cb, void *ctx, struct fw_err *err);
int pg_check(struct fw_store *st, void (*cb)(void *ctx, const char *finding), void *ctx, struct fw_err *err);

/* ---- postgres_events.c --------------------------------------------------------------------------------------------------- */

int pg_event_put(struct fw_store *st, const struct fw_event *event, size_t n, struct fw_err *err);
int pg_event_bury(struct fw_store *st, const struct fw_dead_event *event, struct fw_err *err);
int pg_event_list(struct fw_store *st, int64_t after_id, size_t limit, fw_event_cb *cb, void *ctx, struct fw_err *err);
int pg_event_dead_list(struct fw_store *st, int64_t after_id, size_t limit, fw_dead_event_cb *cb, void *ctx, struct fw_err *err);
int pg_event_prune(struct fw_store *st, int64_t before_ms, int64_t *n, struct fw_err *err);
int pg_event_unbury(struct fw_store *st, const struct fw_dead_event *event, size_t n, struct fw_err *err);

/* ---- postgres_records.c -------------------------------------------------------------------------------------------------- */

int pg_record_put(struct fw_store *st, const struct fw_record *r, bool if_absent, bool *was, struct fw_err *err);
int pg_record_get(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_arena *a, struct fw_record *out,
	struct fw_err *err);
int pg_record_list(struct fw_store *st, const struct fw_record_query *q, fw_record_cb *cb, void *ctx, struct fw_err *err);
int pg_record_remove(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_str value, struct fw_err *err);
int pg_record_prune(struct fw_store *st, int64_t now_ms, int64_t *n, struct fw_err *err);

#endif
