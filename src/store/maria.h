/* SPDX-License-Identifier: ISC */
/* Inside the MariaDB/MySQL driver: what its files share. Nobody else includes this. */
#ifndef FW_STORE_MARIA_H
#define FW_STORE_MARIA_H

#include <mysql.h>

#include "base/buf.h"
#include "base/err.h"
#include "store/drivers.h"
#include "store/fields.h"
#include "store/host.h"

#define MR_SCHEMA 6     /* the newest schema this program knows */
#define MR_FENCE_BITS 20 /* fences are the number of a row of loans, shifted so, plus 0, 1, ... */

struct mr_ids {
	int64_t *at;
	size_t n, cap;
};

struct mr_sweep { /* a walk through the words: maria_sweep.c */
	bool on;
	struct mr_ids gone; /* what it takes out, rising */
	char word[64];      /* how far it came */
	size_t word_len;
	int64_t step;
	int64_t look_ms;    /* monotonic: whether it is time for one; 0: now */
};

struct maria {
	struct fw_store base;
	MYSQL *db;
	char name[320];           /* the store's URL without its password, for people */
	char *schema;             /* name of the database */
	bool read_only;
	bool mysql;               /* the server is MySQL, not MariaDB */
	bool arrays;              /* rows may travel as arrays: maria_bulk.c */
	bool sequences;           /* seq_0_to_n is a table of numbers */
	bool tls;                 /* asked for */
	unsigned code;            /* of the last failure */
	int64_t busy_timeout_ms;
	size_t packet_max;        /* what the server takes at once */
	int64_t step;             /* between two AUTO_INCREMENT values of one statement */
	struct fw_buf sql;        /* statements that wait to be sent together */
	struct fw_err late;       /* what a part that was sent early met with */
	int64_t clock_d_ms, clock_at_ms; /* the server's clock less our monotonic one; when that was measured */
	int64_t looked_ms, look_again_ms; /* for claims that ran out, by the clock of those who claim */
	int64_t changes;          /* as last seen by `changed` */
	int64_t asked_ms;         /* for it by `wait`, monotonic */
	bool idle;                /* the last claim found nothing */
	int64_t own_change;       /* what this transaction raises it to; 0: nothing */
	int64_t first_fence;      /* the first one this connection has lent; 0: none yet */
	int64_t entry_d, visit_d; /* rows more (or less) than when this transaction began */
	int64_t run_id;           /* the last run whose first visit was noted */
	struct fw_buf text;       /* scratch: words on their way into the index */
	struct mr_sweep sweep;
	MYSQL_STMT *entries_in, *keys_in, *events_in; /* prepared; NULL: not yet */
};

static inline struct maria *mr_of(struct fw_store *st)
{
	return (struct maria *)st; /* base comes first */
}

static inline int mr_no_memory(struct maria *m, struct fw_err *err)
{
	return FW_ERR(err, FW_ENOMEM, "%s: out of memory", m->name);
}

/*
 * A struct mr_rows that deletes rows by their key of one or two columns. Joined so, the server looks each of them up; given a list, it
 * may read all of a small table, and wait for rows that are others'.
 */
#define MR_DELETE(table, key) {"DELETE t FROM JSON_TABLE('[", "]', '$[*]' COLUMNS (k BIGINT PATH '$[0]')) j STRAIGHT_JOIN " table \
	" t FORCE INDEX (PRIMARY) ON t." key " = j.k", .json = true}
#define MR_DELETE2(table, key, key2) {"DELETE t FROM JSON_TABLE('[", "]', '$[*]' COLUMNS (k BIGINT PATH '$[0]', l BIGINT PATH '$[1]')) j" \
	" STRAIGHT_JOIN " table " t FORCE INDEX (PRIMARY) ON t." key " = j.k AND t." key2 " = j.l", .json = true}

#define MR_INT(x) ((int64_t)(x)) /* every number passed to mr_put and mr_ask goes through this or is an int64_t */

/* ---- maria_error.c ------------------------------------------------------------------------------------------------------- */

#define MR_TRIES 8 /* of a transaction that meets deadlocks */

/* Words and code for what went wrong last on this connection. Names the store and the remedy. */
int mr_error(struct maria *m, const char *doing, struct fw_err *err);
int mr_error_of(struct maria *m, MYSQL_STMT *stmt, const char *doing, struct fw_err *err); /* the same of a prepared statement */
int mr_too_large(struct maria *m, struct fw_err *err);
bool mr_error_again(unsigned code); /* the same transaction, made again at once, may well succeed */

/* ---- maria_send.c: statements, transactions ------------------------------------------------------------------------------- */

#define MR_SCRIPT_MAX ((size_t)1 << 20)

/*
 * Statements are gathered and sent together: mr_put() appends one, mr_ask() appends a SELECT and sends all, mr_flush() sends.
 * Each ? in sql stands for a value; fmt has one letter each: i int64_t, d int64_t date (FW_NO_DATE: NULL), s struct fw_str as text
 * (absent: NULL; what is no UTF-8 is made some), b struct fw_str as bytes.
 */
void mr_put(struct maria *m, const char *sql, const char *fmt, ...);
int mr_flush(struct maria *m, struct fw_err *err);

/*
 * Rows of values: "INSERT ... VALUES " (1,2),(3,4) tail. No row: no statement. A long one is cut in
 * several, and what is there is sent, unless it is to stay whole for LAST_INSERT_ID's sake.
 */
struct mr_rows {
	const char *head, *tail; /* tail may be NULL */
	size_t n;                /* in the statement that is open */
	size_t from;             /* where that begins */
	bool whole, json;        /* in one statement; rows are arrays */
};
void mr_rows_add(struct maria *m, struct mr_rows *r, const char *fmt, ...);
void mr_rows_next(struct maria *m, struct mr_rows *r); /* "(": values and ")" are the caller's */
void mr_rows_end(struct maria *m, struct mr_rows *r);
/* One value more, as mr_put writes them. */
void mr_value_int(struct maria *m, int64_t v);
void mr_value_text(struct maria *m, struct fw_str s);
void mr_value_bytes(struct maria *m, struct fw_str s);
void mr_hex(struct maria *m, struct fw_str s); /* of these bytes, without quotes */
void mr_value_field(struct maria *m, const struct fw_field *f, const void *of);

/* s as valid UTF-8, piece by piece: what is none is replaced. */
void mr_text_each(struct fw_str s, struct fw_buf *to, void (*add)(struct fw_buf *to, const void *p, size_t len));

struct mr_res {
	MYSQL_RES *res;
	MYSQL_ROW row;
	unsigned long *len;
};
int mr_ask(struct maria *m, struct mr_res *out, struct fw_err *err, const char *sql, const char *fmt, ...);
/* mr_ask for statements that were appended to m->sql by hand; the last one is the SELECT. */
int mr_answer(struct maria *m, struct mr_res *out, struct fw_err *err);
/* The same, but rows come as they are sent, and nothing else can be asked meanwhile. */
int mr_stream(struct maria *m, struct mr_res *out, struct fw_err *err);
bool mr_row(struct mr_res *r); /* next one; at the end the result is given back, and false */
void mr_done(struct mr_res *r); /* before the end */
int64_t mr_int(const struct mr_res *r, unsigned col); /* 0 for NULL */
int64_t mr_date(const struct mr_res *r, unsigned col); /* FW_NO_DATE for NULL */
struct fw_str mr_str(const struct mr_res *r, unsigned col); /* lives until mr_row says false, or mr_done */
void mr_field_read(const struct mr_res *r, unsigned col, const struct fw_field *f, void *of);
/* One number: column 0 of the first row, or `none`. */
int mr_number(struct maria *m, int64_t none, int64_t *out, struct fw_err *err, const char *sql, const char *fmt, ...);
/* " AND id IN (1,2,3)" without the AND: appended to m->sql. n > 0. */
void mr_in(struct maria *m, const char *column, const int64_t *id, size_t n);

/* `work` in a transaction; a deadlock makes it again from its begin, some times. Its failure rolls all back. */
typedef int mr_work(struct maria *m, void *arg, struct fw_err *err);
int mr_transact(struct maria *m, mr_work *work, void *arg, struct fw_err *err);
/* The server's clock. */
int mr_now(struct maria *m, int64_t given_ms, int64_t *now_ms, struct fw_err *err);
/* In a transaction: idle workers are told that something new is due, or that there is a message. */
int mr_change(struct maria *m, struct fw_err *err);

/* ---- maria_bulk.c: rows as arrays, when m->arrays ------------------------------------------------------------------------ */

struct mr_bulk {
	unsigned columns, rows;
	size_t n; /* values so far */
	MYSQL_BIND *bind; /* by column */
	union {
		int64_t number;
		const void *bytes;
	} *value; /* of all rows of a column, then of the next */
	unsigned long *length;
	char *state;
	struct fw_arena mended;
	bool failed; /* out of memory */
};

/* Room for so many. mr_bulk_finish, whatever it returns. */
int mr_bulk_init(struct maria *m, struct mr_bulk *b, unsigned columns, unsigned rows, struct fw_err *err);
void mr_bulk_finish(struct mr_bulk *b);
/* The next value, row by row; bytes live until mr_bulk_run. A column is always filled by the same of these. */
void mr_bulk_int(struct mr_bulk *b, int64_t v);
void mr_bulk_bytes(struct mr_bulk *b, struct fw_str s); /* absent: NULL */
void mr_bulk_text(struct mr_bulk *b, struct fw_str s); /* made valid UTF-8 */
void mr_bulk_field(struct mr_bulk *b, const struct fw_field *f, const void *of);
/* Send what was gathered, then insert these rows by the statement, which is prepared when it is used first; b is empty afterwards. */
int mr_bulk_run(struct maria *m, struct mr_bulk *b, MYSQL_STMT **stmt, struct fw_str sql, int64_t *id, struct fw_err *err);

/* ---- maria_check.c ------------------------------------------------------------------------------------------------------- */

int mr_inspect(struct fw_store *st, fw_inspect_cb *cb, void *ctx, struct fw_err *err);
int mr_check(struct fw_store *st, void (*cb)(void *ctx, const char *finding), void *ctx, struct fw_err *err);

/* ---- maria_schema.c ----------------------------------------------------------------------------------------------------- */

int64_t mr_lock_number(const struct maria *m); /* for names of locks, which are the whole server's */
int mr_migrate(struct maria *m, bool create, bool no_migrate, struct fw_err *err);

/* ---- maria_line.c: where feeds stand in line ------------------------------------------------------------------------------ */

struct mr_place { /* a row of `queue`, or of `parked` */
	int64_t feed_id, host_id, wake_ms, due_ms;
	bool moved;  /* queue.due_at_ms is set: it has the turn of its host, or was put off */
	bool stored; /* the row is there; else it is about to be */
	bool gone;   /* of parked ones: has been given the turn, or was lent */
	bool slow;   /* takes longer than this claim wants */
};

struct mr_places {
	struct mr_place *at;
	size_t n, cap;
};

struct mr_host {
	int64_t id, turn_n, parked_n;
	struct fw_budget budget;
	bool headed; /* its first parked feeds are known */
};

/* Changes in line, gathered, then written by a few statements. Hosts are locked in the order of their numbers. */
struct mr_line {
	struct mr_host *host; /* by id */
	size_t host_n, host_cap;
	struct mr_places parked; /* those that are known, and those that were parked now */
	struct mr_places on, off; /* into the queue, out of it */
	int64_t now_ms;
	int64_t expect_max_us; /* a turn goes to a slower one only when no other is known; 0: all are fine */
	bool failed; /* out of memory */
};

void mr_line_finish(struct mr_line *l);
struct mr_place *mr_places_add(struct mr_line *l, struct mr_places *p, const struct mr_place *place);
void mr_line_init(struct mr_line *l, int64_t now_ms);
/*
 * Lock these hosts (any order, repeated as often as they like; 0 is passed over) and get to know the first `heads` parked feeds of
 * each that may give a turn. skip: those that others hold are left out.
 */
int mr_line_hosts(struct maria *m, struct mr_line *l, const int64_t *id, size_t n, size_t heads, bool skip, struct fw_err *err);
struct mr_host *mr_line_host(struct mr_line *l, int64_t id); /* or NULL */
/* The host's turn goes to its earliest parked feed, if there is one and nobody has it: the place is in l->on, or in *now if that is not NULL. */
void mr_line_turn(struct mr_line *l, struct mr_host *h, struct mr_place *now);
/* A loan in this host's budget ends (host_id 0: it was in none), with this outcome. NULL: unvisited. */
void mr_line_return(struct mr_line *l, int64_t host_id, const struct fw_outcome *o);
/* The host wants to be left alone until then. */
void mr_line_tell(struct mr_line *l, int64_t host_id, const struct fw_outcome *o); /* fw_budget_tell() */
/* Put an active feed on the wheel, due then, but not before its host may be asked. */
void mr_line_on(struct mr_line *l, int64_t feed_id, int64_t due_ms, int64_t host_id, int64_t not_before_ms);
/* Append all that to the script. */
int mr_line_write(struct maria *m, struct mr_line *l, struct fw_err *err);

/* ---- maria_loans.c: who holds what --------------------------------------------------------------------------------------- */

struct mr_lent { /* a feed in a row of loans */
	int64_t feed_id;
	int64_t host_id;  /* for its place in the queue; 0: the only feed of its host */
	bool uncounted;   /* the loan is in no budget: host_id is written with its sign turned */
	int64_t visit_id, new_ms; /* its last visit, its last new entry */
	bool out;         /* it is lent still */
	bool ends;        /* and is about to end: mr_loans_write */
};

/* The budget that it returns to; 0: none. */
static inline int64_t mr_lent_budget(const struct mr_lent *l)
{
	return l->uncounted ? 0 : l->host_id;
}

struct mr_loan {
	int64_t id, until_ms;
	bool touched; /* its owner changed something about one of them: what is told here may be old */
	bool rewrite; /* to be written whole, and touched: mr_loans_write */
	struct mr_lent *at;
	size_t n;
};

struct mr_loans { /* by id, those of mr_loans_lock */
	struct mr_loan *at;
	size_t n;
};

/* Each of these fills out, for mr_loans_finish; all but mr_loans_read lock the rows. */
int mr_loans_lock(struct maria *m, const int64_t *fence, size_t n, struct mr_loans *out, struct fw_err *err);
int mr_loans_expired(struct maria *m, int64_t now_ms, size_t max, struct mr_loans *out, struct fw_err *err);
int mr_loans_of(struct maria *m, const char *worker, size_t max, struct mr_loans *out, struct fw_err *err);
int mr_loans_read(struct maria *m, int64_t feed_id, struct mr_loans *out, struct fw_err *err); /* 0: all; else those that name it */
/* The one in which this feed is out; *lent is NULL when it is not lent. */
int mr_loans_with(struct maria *m, int64_t feed_id, struct mr_loans *out, struct mr_loan **loan, struct mr_lent **lent, struct fw_err *err);
void mr_loans_finish(struct mr_loans *l);
/* NULL: not lent so, or ended. *touched becomes true when the row was touched. */
struct mr_lent *mr_lent_find(struct mr_loans *l, int64_t fence, int64_t feed_id, bool *touched);
/* Appended to the script: what was changed here; rows of which nothing is out go. */
void mr_loans_write(struct maria *m, const struct mr_loans *l);
/* Appended to the script: new rows; the fence of the i-th feed, when the first row has this number. */
void mr_loans_put(struct maria *m, const char *worker, int64_t until_ms, const struct mr_lent *lent, size_t n);
int64_t mr_loans_fence(const struct maria *m, int64_t first_id, size_t i);

/* The feeds that are out, as a table in FROM: l is its row of loans, j.feed_id and j.host_id the feed's, j.i its place. */
#define MR_OUT "loans l JOIN JSON_TABLE(l.body, '$[*]' COLUMNS (i FOR ORDINALITY, feed_id BIGINT PATH '$[0]', host_id BIGINT PATH" \
	" '$[1]')) j ON substr(l.lent, j.i, 1) = '1'"

/* A feed's visits, from its last one down the chain, which may end early where old visits were pruned. */
#define MR_CHAIN "WITH RECURSIVE chain (id, previous_id) AS (SELECT id, previous_id FROM visits WHERE id = ? UNION ALL" \
	" SELECT v.id, v.previous_id FROM chain c JOIN visits v ON v.id = c.previous_id) "

/* ---- maria_host.c: hosts come and go, feeds are moved ---------------------------------------------------------------------- */

struct mr_join { /* a feed that comes to a host */
	struct fw_str url, key; /* as a feed has them: key is its host_key */
	int64_t host_id; /* out */
	bool crowded;    /* out: the host has others */
};
/* In a transaction: n feeds join the hosts of their keys or URLs. */
int mr_hosts_join(struct maria *m, struct mr_join *join, size_t n, struct fw_err *err);
void mr_host_leave(struct maria *m, int64_t host_id); /* appended to the script */

struct mr_stand { /* where one feed stands; its rows are locked */
	int64_t feed_id, host_id, status, due_ms, last_visit_id;
	bool queued, parked;
	struct mr_place place; /* when queued */
	struct mr_loans loans;
	struct mr_loan *loan;
	struct mr_lent *lent;  /* in it; NULL: not lent */
};
/* FW_ENOTFOUND: no such feed. For mr_stand_finish, whatever it returns. */
int mr_stand_lock(struct maria *m, int64_t feed_id, struct mr_stand *s, struct fw_err *err);
void mr_stand_finish(struct mr_stand *s);
/* Its host for a place in the queue, locked; 0: it has no other feed. */
int mr_crowd_of(struct maria *m, const struct mr_stand *s, int64_t *host_id, struct fw_err *err);
/* Off the wheel: out of queue and parking place; a lease is left alone. */
int mr_stand_off(struct maria *m, const struct mr_stand *s, struct mr_line *l, struct fw_err *err);

/* ---- maria_claim.c ------------------------------------------------------------------------------------------------------ */

int mr_claim(struct fw_store *st, const struct fw_claim_ask *ask, struct fw_arena *a, struct fw_lease *out,
	struct fw_claim_got *got, struct fw_err *err);

/* ---- maria_wheel.c ------------------------------------------------------------------------------------------------------ */

/* Loans that have run out are taken back, when it is time to look for some. */
int mr_expire(struct maria *m, int64_t now_ms, struct fw_err *err);
int mr_lend(struct fw_store *st, const struct fw_lend_ask *ask, struct fw_lend_got *got, struct fw_err *err);
int mr_release(struct fw_store *st, const struct fw_lease *lease, size_t n, struct fw_err *err);
int mr_bury(struct fw_store *st, const char *worker, int64_t crashed_feed_id, int64_t now_ms, struct fw_err *err);
int mr_pending(struct fw_store *st, int64_t due_before_ms, int64_t *n, int64_t *wake_ms, struct fw_err *err);
int mr_due_list(struct fw_store *st, int64_t due_before_ms, size_t limit, fw_due_cb *cb, void *ctx, struct fw_err *err);

/* ---- maria_commit.c, maria_entries.c, maria_search.c ---------------------------------------------------------------------- */

int mr_commit(struct fw_store *st, struct fw_commit *batch, struct fw_err *err);
/* In a transaction: a run has its first visit, unless that was noted before. -1 - k: the k-th number that was inserted last. */
void mr_run_put(struct maria *m, int64_t run_id, int64_t visit_id);
/* In a transaction: the entries of these outcomes; new ones in, changed ones replaced; counts into their visits. */
int mr_entries_put(struct maria *m, struct fw_outcome *const *outcome, size_t n, int64_t now_ms, struct fw_err *err);
int mr_entries_drop(struct maria *m, int64_t feed_id, struct fw_err *err);
/* In a transaction: entries go to another feed, but for those that it has by their key or guid, which go away. */
int mr_entries_move(struct maria *m, int64_t from_id, int64_t into_id, struct fw_err *err);
int mr_entry_list(struct fw_store *st, const struct fw_entry_query *q, fw_entry_cb *cb, void *ctx, struct fw_err *err);
int mr_prune(struct fw_store *st, int64_t visits_before_ms, int64_t entries_before_ms, int64_t *n, struct fw_err *err);
int mr_upkeep(struct fw_store *st, int64_t now_ms, bool *more, struct fw_err *err);

/* Run the SELECT that was appended to m->sql: its first column. Rows come as they are sent, so that a million take 8 MB. */
int mr_ids_read(struct maria *m, struct mr_ids *ids, struct fw_err *err);
int mr_ids_add(struct maria *m, struct mr_ids *ids, int64_t id, struct fw_err *err);
void mr_ids_once(struct mr_ids *ids); /* rising, each once */
int mr_by_number(const void *a, const void *b); /* for qsort and bsearch of int64_t */

/* Lists of rising numbers, as differences of seven bits a byte. *last: the one before; 0 at the beginning. */
void mr_list_add(struct fw_buf *b, int64_t *last, int64_t id);
int mr_list_read(struct maria *m, struct fw_str list, struct mr_ids *ids, struct fw_err *err); /* behind what is there */

/* A search: what may match, by the index. Some of it has to be read to be sure. */
struct mr_search {
	bool any;           /* there is a word in it at all */
	bool phrase;        /* words have to stand in a row: the index does not tell */
	struct mr_term *term;
	size_t term_n;
	struct mr_ids may;  /* rising */
};
/* How many entries the index does not hold: an expression. */
#define MR_UNINDEXED_N "((SELECT count(*) FROM entries WHERE id > (SELECT value FROM numbers WHERE name = 'indexed_entry_id'))" \
	" + (SELECT count(*) FROM reindex x JOIN entries e ON e.id = x.entry_id))"
int mr_search_open(struct maria *m, struct fw_str words, int64_t *unindexed_n, struct mr_search *out, struct fw_err *err);
/* Keep those of ids, in their order, that match, up to limit (0: all). */
int mr_search_match(struct maria *m, const struct mr_search *s, size_t limit, struct mr_ids *ids, struct fw_err *err);
void mr_search_finish(struct mr_search *s);

/* ---- maria_sweep.c ------------------------------------------------------------------------------------------------------- */

/* One step of taking removed entries out of the index, when it is time. */
int mr_sweep(struct maria *m, bool *more, struct fw_err *err);
void mr_sweep_finish(struct maria *m);

/* ---- maria_load.c --------------------------------------------------------------------------------------------------------- */

int mr_load(struct fw_store *st, const struct fw_load *rows, struct fw_err *err);
int mr_key_list(struct fw_store *st, int64_t first_feed_id, int64_t last_feed_id, fw_key_cb *cb, void *ctx, struct fw_err *err);

/* ---- maria_members.c ------------------------------------------------------------------------------------------------------ */

int mr_subscribe(struct fw_store *st, struct fw_feed_new *feed, size_t n, struct fw_err *err);
int mr_unsubscribe(struct fw_store *st, int64_t feed_id, struct fw_err *err);
int mr_feed_set(struct fw_store *st, const struct fw_feed *feed, unsigned what, struct fw_err *err);
int mr_feed_merge(struct fw_store *st, int64_t from_id, int64_t into_id, struct fw_err *err);

/* ---- maria_window.c ------------------------------------------------------------------------------------------------------- */

/* The columns of a whole feed, from `feeds f` and `wheel w`. */
void mr_feed_columns(struct maria *m);
unsigned mr_feed_read(const struct mr_res *r, unsigned col, struct fw_feed *out); /* from this one on; returns the next */

/* "column IN (these) ORDER BY FIELD(column, these)": appended to m->sql. n > 0. */
void mr_in_order(struct maria *m, const char *column, const int64_t *id, size_t n);
/* Fields behind one another, each with a comma before it: their names; their values. */
void mr_names(struct maria *m, const struct fw_field *f, size_t n);
void mr_values(struct maria *m, const struct fw_field *f, size_t n, const void *of);

int mr_feed_find(struct fw_store *st, int64_t id, struct fw_str url, struct fw_arena *a, struct fw_feed *out,
	struct fw_err *err);
int mr_feed_list(struct fw_store *st, const struct fw_feed_query *q, fw_feed_cb *cb, void *ctx, struct fw_err *err);
int mr_visit_list(struct fw_store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx, struct fw_err *err);
int mr_stats(struct fw_store *st, int64_t now_ms, struct fw_store_stats *out, struct fw_err *err);
int mr_control_put(struct fw_store *st, enum fw_control_kind kind, int64_t now_ms, struct fw_err *err);
int mr_control_take(struct fw_store *st, int64_t after_id, struct fw_control *out, struct fw_err *err);
int mr_beat_list(struct fw_store *st, int64_t since_ms, fw_beat_cb *cb, void *ctx, struct fw_err *err);

/* ---- maria_events.c --------------------------------------------------------------------------------------------------- */

int mr_event_put(struct fw_store *st, const struct fw_event *event, size_t n, struct fw_err *err);
int mr_event_bury(struct fw_store *st, const struct fw_dead_event *event, struct fw_err *err);
int mr_event_list(struct fw_store *st, int64_t after_id, size_t limit, fw_event_cb *cb, void *ctx, struct fw_err *err);
int mr_event_dead_list(struct fw_store *st, int64_t after_id, size_t limit, fw_dead_event_cb *cb, void *ctx, struct fw_err *err);
int mr_event_prune(struct fw_store *st, int64_t before_ms, int64_t *n, struct fw_err *err);
int mr_event_unbury(struct fw_store *st, const struct fw_dead_event *event, size_t n, struct fw_err *err);

/* ---- maria_records.c -------------------------------------------------------------------------------------------------- */

int mr_record_put(struct fw_store *st, const struct fw_record *r, bool if_absent, bool *was, struct fw_err *err);
int mr_record_get(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_arena *a, struct fw_record *out,
	struct fw_err *err);
int mr_record_list(struct fw_store *st, const struct fw_record_query *q, fw_record_cb *cb, void *ctx, struct fw_err *err);
int mr_record_remove(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_str value, struct fw_err *err);
int mr_record_prune(struct fw_store *st, int64_t now_ms, int64_t *n, struct fw_err *err);

#endif
