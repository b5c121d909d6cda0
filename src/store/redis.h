/* SPDX-License-Identifier: ISC */
/* Inside the Redis driver: what its files share. Nobody else includes this. */
#ifndef FW_STORE_REDIS_H
#define FW_STORE_REDIS_H

#include "base/buf.h"
#include "base/err.h"
#include "store/drivers.h"
#include "store/dsn.h"
#include "store/fields.h"

#define RD_SCHEMA 4
#define RD_SHARDS_MAX 256
#define RD_SLOT_MS 10000 /* of due times, see redis/wheel.lua */
#define RD_PUSHED RD_SHARDS_MAX /* stands for a shard where the list of pushed addresses is meant */
#define RD_ARENA_KEEP ((size_t)1 << 18)
#define RD_CHUNK 500 /* feeds or entries asked for at a time by lists */

/* ---- redis_conn.c: one connection --------------------------------------------------------------------------------------- */

enum rd_type { RD_NIL, RD_INT, RD_TEXT, RD_ARRAY, RD_ERROR };

/* A reply; all of it lives in the arena that rd_exchange was given. Texts are NUL-terminated and may be written to. */
struct rd_reply {
	enum rd_type type;
	int64_t integer;
	struct fw_str text;       /* RD_TEXT, RD_ERROR */
	struct rd_reply **elem;   /* RD_ARRAY */
	size_t n;
};

/* Where a server is and how to get in; lives as long as its connections. */
struct rd_target {
	struct fw_str host, path, user, password; /* path: of a unix socket */
	int port, db;
	bool tls, verify;
	struct fw_str ca_file, cert_file, key_file;
	int64_t connect_timeout_ms, timeout_ms;
	const char *name;         /* for words: the URL without its password */
};

struct rd_conn;

/* Errors: FW_EIO cannot be reached, FW_EINVAL refused for good (password, TLS), FW_EAGAIN is loading or has no place. */
int rd_connect(const struct rd_target *t, const char *host, int port, struct rd_conn **out, struct fw_err *err);
void rd_disconnect(struct rd_conn *c);
bool rd_is_broken(const struct rd_conn *c);
/* Is no reply half read? */
bool rd_is_idle(const struct rd_conn *c);
/* Is it connected to this address? */
bool rd_is_at(const struct rd_conn *c, const char *host, int port);

/* Commands are collected, and sent by the exchange that follows at the latest. */
void rd_begin(struct rd_conn *c, size_t argc); /* a command with so many words, which the next calls add */
void rd_add(struct rd_conn *c, struct fw_str word);
void rd_add_int(struct rd_conn *c, int64_t n);
/* A word made of what `make` appends to the buffer it is given. */
struct fw_buf *rd_word_begin(struct rd_conn *c);
void rd_word_end(struct rd_conn *c);
/* "PING" and the like: words separated by single spaces. */
void rd_command(struct rd_conn *c, const char *words);
/*
 * Send what was collected and read all replies into the arena; *reply is an array of as many as there were commands. An error
 * in a reply is not looked at. Errors: FW_EIO the connection broke or the server did not answer in time (broken from then on),
 * FW_ENOMEM.
 */
int rd_exchange(struct rd_conn *c, struct fw_arena *a, struct rd_reply **reply, struct fw_err *err);
/* Drop what was collected: when some of it is on its way already, the connection is broken. */
void rd_forget(struct rd_conn *c);
/* What the last exchange sent, taken out to be sent again: over this connection or another one. */
void rd_sent_take(struct rd_conn *c, struct fw_buf *sent, size_t *n);
void rd_sent_put(struct rd_conn *c, struct fw_buf *sent, size_t n);
/* Wait for one message that was not asked for (pub/sub): NULL in *reply: none within timeout_ms, or wake_fd is readable. */
int rd_listen(struct rd_conn *c, int wake_fd, int64_t timeout_ms, struct fw_arena *a, struct rd_reply **reply, struct fw_err *err);

/* ---- redis.c: life, errors, talking to a shard ---------------------------------------------------------------------------- */

struct rd_loan { /* a feed that is lent to us, as it was then */
	int64_t feed_id, fence, until_ms;
	int64_t epoch;            /* of its shard when that was last known to be so */
	int64_t last_new_ms;
	unsigned groups;          /* wide groups that there are */
	uint32_t fail_n;
	int status;               /* what the owner has set, meanwhile or (lent by its number) before */
	struct fw_str place;      /* batch of its last visit */
	struct fw_str own;        /* members that visits leave alone: host, created_ms, url, and the owner's */
	struct fw_str host;       /* whose budget the loan counts for; absent: it is the only feed of its host */
	bool spent;               /* an outcome of this batch has it */
};

struct rd_loan_claim {
	int64_t fence;
	size_t n;
};

struct rd_loans {
	struct rd_loan **slot;
	size_t n, cap;
	struct rd_loan_claim *claim;
	size_t claim_n;
};

enum rd_script { RD_CLAIM, RD_LEND, RD_COMMIT, RD_WRITE, RD_READ, RD_UPGRADE, RD_SCRIPT_N };

struct rd_node { /* a server; one, unless it is a cluster */
	struct rd_conn *conn;
	char sha[RD_SCRIPT_N][41];
};

struct redis {
	struct fw_store base;
	struct fw_arena own;       /* what lives as long as the store */
	struct fw_arena arena;     /* replies; emptied at the begin of each slot */
	struct fw_arena heard;     /* messages */
	struct rd_target target;
	struct fw_buf shown;       /* the URL without its password */
	struct fw_str prefix;
	struct rd_node *node;
	size_t node_n;
	int shard_n;
	int node_of[RD_SHARDS_MAX + 1]; /* the last one: of the list of pushed addresses */
	int turn;                  /* the shard whose turn it is to be claimed from first */
	int64_t stream_max;
	bool read_only;
	bool exact_hosts;          /* made by schema 3 with several shards: feeds are where their host's name says */
	int64_t pushed_at_ms;      /* monotonic: last look at what was pushed */
	struct rd_loans loans;
	int64_t epoch[RD_SHARDS_MAX]; /* as of the last that was heard of it */
	bool unsure;               /* a commit may have been stored without our knowing: it may come again */
	struct rd_conn *ear;       /* listens to messages from others */
	char me[33];               /* who we are in these messages */
};

static inline struct redis *redis_of(struct fw_store *st)
{
	return (struct redis *)st; /* base comes first */
}

extern const char rd_script_claim[], rd_script_lend[], rd_script_commit[], rd_script_write[], rd_script_read[], rd_script_upgrade[]; /* made of redis/ *.lua */

static inline int rd_no_memory(struct redis *r, struct fw_err *err)
{
	return FW_ERR(err, FW_ENOMEM, "%s: out of memory", r->target.name);
}

/* FW_EINVAL when it was opened for reading only. */
int rd_may_write(struct redis *r, struct fw_err *err);
/* The connection that a shard's commands go to; NULL: err is set. */
struct rd_conn *rd_shard(struct redis *r, int shard, struct fw_err *err);
/*
 * Begin a script's operation on a shard: argc more words follow (ARGV[2] and on). NULL: err is set. Commands may be collected
 * before and after it, on the same connection, then rd_run.
 */
struct rd_conn *rd_op(struct redis *r, int shard, enum rd_script script, const char *op, size_t argc, struct fw_err *err);
/*
 * The same within a transaction, whose first command it becomes; what is asked for behind it belongs to it, and rd_transact ends it.
 * It is run but when a key that was watched has changed: then *reply is NULL. Else it is what the script answered.
 */
struct rd_conn *rd_transaction(struct redis *r, int shard, enum rd_script script, const char *op, size_t argc, struct fw_err *err);
int rd_transact(struct redis *r, int shard, struct fw_arena *a, struct rd_reply **reply, const char *doing, struct fw_err *err);
/* Begin an ordinary command on one of the shard's keys: CMD {prefix:shard}:key, and argc more words. NULL: err is set. */
struct rd_conn *rd_ask(struct redis *r, int shard, const char *cmd, const char *key, size_t argc, struct fw_err *err);
/* A word: {prefix:shard}:key. */
void rd_key_add(struct redis *r, struct rd_conn *c, int shard, const char *key);
/*
 * Run what was collected for the shard: follows the cluster, loads scripts, turns error replies into ours. *reply as
 * rd_exchange has it, *reply[0] the first command's.
 */
int rd_run(struct redis *r, int shard, struct fw_arena *a, struct rd_reply ***reply, const char *doing, struct fw_err *err);
/* The same for one command: its reply. */
int rd_run1(struct redis *r, int shard, struct fw_arena *a, struct rd_reply **reply, const char *doing, struct fw_err *err);
/* "prefix:feeds_to_fetch", or with its tag and a suffix. */
void rd_pushed_key(const struct redis *r, const char *suffix, struct fw_buf *out);
int rd_shard_of_feed(const struct redis *r, int64_t feed_id);
int rd_shard_of_host(const struct redis *r, const char *host);
/* The host that a feed of this URL joins. False: the URL names none. */
bool rd_host(const struct redis *r, struct fw_str url, char *out, size_t cap);
/* The same, where it may have a key of its own. */
bool rd_feed_host(const struct redis *r, const struct fw_feed *feed, char *out, size_t cap);
/* As leases and rows of what is due have it. host: a place's part behind the @; absent: 0. */
int64_t rd_host_id(struct fw_str host);
/* Tell those who wait that there is something new; failures are of no account, for everybody looks now and then. */
void rd_tell(struct redis *r);
/* Is it the listening connection's business? Opens it at first use. */
int rd_changed(struct fw_store *st, bool *changed, struct fw_err *err);
int rd_wait(struct fw_store *st, int wake_fd, int64_t timeout_ms, bool *changed, struct fw_err *err);

static inline int64_t rd_int(const struct rd_reply *r)
{
	int64_t n = 0;

	return r->type == RD_INT ? r->integer : r->type == RD_TEXT && fw_str_int(r->text, &n) ? n : 0;
}

/* ---- redis_pack.c: structs as values ---------------------------------------------------------------------------------------- */

/* Which of the tables of store/fields.h, and which rows of it. */
struct rd_members {
	const struct fw_field *field;
	const size_t *n;
	unsigned group;      /* struct fw_feed: only this group ... */
	const char *skip[6]; /* and not these; NULL: no more */
};
extern const struct rd_members rd_feed_own, rd_feed_group[5], rd_entry_row, rd_beat;

/* Append "name=length:bytes\n" for each member that is there: texts that are not absent, numbers that are not 0. */
void rd_pack(struct fw_buf *out, const struct rd_members *m, const void *of);
/* Read them back; strings point into the value, whose line ends become NUL. What is unknown is passed over. */
void rd_unpack(struct fw_str value, const struct rd_members *m, void *of);
struct fw_str rd_part(struct fw_str value, const char *name); /* one member, absent when it is not there */
void rd_number(struct fw_buf *out, int64_t n); /* and a space */
void rd_number_add(struct fw_buf *out, int64_t n); /* without */
/* A feed's value, but for its first three columns and its own members: what a visit leaves behind. See redis/head.lua. */
void rd_state_pack(struct fw_buf *out, int64_t fence, const struct fw_feed *f);
/*
 * Take a feed's value apart. into may be NULL; its strings point into the value, whose line ends become NUL then. The loan's strings
 * do so too; its id, fence, until, epoch, status and host are not touched. False: not ours.
 */
bool rd_value_unpack(struct fw_str value, struct rd_loan *loan, struct fw_feed *into);
/* The same without the members: into gets numbers only, and the value is left as it is. */
bool rd_state_unpack(struct fw_str value, struct rd_loan *loan, struct fw_feed *into);
/* A visit's line in a batch, from its run on; and behind the feed, its visit before, the fence and what was found. */
void rd_visit_pack(struct fw_buf *out, const struct fw_visit *v);
bool rd_visit_unpack(struct fw_str line, struct fw_visit *v);
/* An entry: members, with key and hash among them, behind "feed seen changed revision". */
void rd_entry_pack(struct fw_buf *out, int64_t feed_id, int64_t seen_ms, int64_t changed_ms, uint32_t revision,
	const struct fw_entry_row *e);
bool rd_entry_unpack(struct fw_str row, struct fw_entry_row *e);

struct rd_known { /* what stands with a key: "hash id date", or "hash 0" when retention took the entry */
	uint64_t hash;
	int64_t id, date_ms;
};
void rd_known_pack(struct fw_buf *out, const struct rd_known *k);
bool rd_known_read(struct fw_str value, struct rd_known *k);

#define RD_DAY_MS INT64_C(86400000)
/* Whose list of dates an entry stands in. */
static inline int64_t rd_day_of(int64_t date_ms)
{
	return (date_ms - (date_ms < 0 ? RD_DAY_MS - 1 : 0)) / RD_DAY_MS;
}

/* ---- redis_wheel.c, redis_commit.c (see redis_commit.h) ---------------------------------------------------------------------------------------------- */

int rd_claim(struct fw_store *st, const struct fw_claim_ask *ask, struct fw_arena *a, struct fw_lease *out,
	struct fw_claim_got *got, struct fw_err *err);
int rd_lend(struct fw_store *st, const struct fw_lend_ask *ask, struct fw_lend_got *got, struct fw_err *err);
int rd_release(struct fw_store *st, const struct fw_lease *lease, size_t n, struct fw_err *err);
int rd_bury(struct fw_store *st, const char *worker, int64_t crashed_feed_id, int64_t now_ms, struct fw_err *err);
int rd_pending(struct fw_store *st, int64_t due_before_ms, int64_t *n, int64_t *wake_ms, struct fw_err *err);
int rd_commit(struct fw_store *st, struct fw_commit *batch, struct fw_err *err);
/* Subscribe to what other programs pushed on the list of addresses to fetch. */
int rd_take_pushed(struct redis *r, const char *worker, struct fw_err *err);
/* The values of feeds whose ids are set: *value is an array of n replies, RD_NIL where there is none. */
int rd_feeds_read(struct redis *r, int shard, struct fw_feed **feed, size_t n, struct fw_arena *a, struct rd_reply **value,
	struct fw_err *err);
/* Take them apart into the feeds, and read the groups that are wanted and there. url.p stays NULL where there is no value. */
int rd_feeds_fill(struct redis *r, int shard, struct fw_feed **feed, size_t n, const struct rd_reply *value, unsigned wanted,
	struct fw_arena *a, struct fw_err *err);
/* Both. */
int rd_feeds_get(struct redis *r, int shard, struct fw_feed **feed, size_t n, unsigned wanted, struct fw_arena *a,
	struct fw_err *err);

/* ---- redis_due.c ----------------------------------------------------------------------------------------------------------- */

int rd_due_list(struct fw_store *st, int64_t due_before_ms, size_t limit, fw_due_cb *cb, void *ctx, struct fw_err *err);

/* ---- redis_loans.c --------------------------------------------------------------------------------------------------------------- */

/* NULL: none. Pointers live until the next put or drop of that feed. */
struct rd_loan *rd_loan_get(const struct rd_loans *l, int64_t feed_id);
/* Copies it, over what there is of that feed. */
int rd_loan_put(struct rd_loans *l, const struct rd_loan *loan);
void rd_loan_drop(struct rd_loans *l, int64_t feed_id);
/* How many there are under this fence. */
size_t rd_loans_under(struct rd_loans *l, int64_t fence);
/* Forget those whose leases have run out, when it is time for that. */
void rd_loans_expire(struct rd_loans *l, int64_t now_ms);
void rd_loans_finish(struct rd_loans *l);

/* ---- redis_entries.c, redis_search.c ----------------------------------------------------------------------------------------- */

int rd_entry_list(struct fw_store *st, const struct fw_entry_query *q, fw_entry_cb *cb, void *ctx, struct fw_err *err);
int rd_prune(struct fw_store *st, int64_t visits_before_ms, int64_t entries_before_ms, int64_t *n, struct fw_err *err);

struct rd_search { /* the user's words, ready to be looked for */
	struct fw_buf words; /* each phrase as " a b " with a NUL behind; a prefix without its last space */
	struct fw_buf text;  /* the entry's, the same way */
	struct fw_buf raw;
};
/* False: there is no word in it. */
bool rd_search_begin(struct rd_search *s, struct fw_str words);
bool rd_search_matches(struct rd_search *s, const struct fw_entry_row *e);
/* FW_ENOMEM when memory ran out: then the last answer is no answer. */
int rd_search_failed(const struct rd_search *s);
void rd_search_end(struct rd_search *s);

/* ---- redis_window.c --------------------------------------------------------------------------------------------------------------- */

int rd_subscribe(struct fw_store *st, struct fw_feed_new *feed, size_t n, struct fw_err *err);
/* The same; those that are subscribed already become due now. */
int rd_subscribe_all(struct redis *r, struct fw_feed_new *feed, size_t n, bool at_once, struct fw_err *err);
int rd_unsubscribe(struct fw_store *st, int64_t feed_id, struct fw_err *err);
int rd_feed_merge(struct fw_store *st, int64_t from_id, int64_t into_id, struct fw_err *err);
int rd_feed_find(struct fw_store *st, int64_t id, struct fw_str url, struct fw_arena *a, struct fw_feed *out, struct fw_err *err);
int rd_feed_list(struct fw_store *st, const struct fw_feed_query *q, fw_feed_cb *cb, void *ctx, struct fw_err *err);
int rd_feed_set(struct fw_store *st, const struct fw_feed *feed, unsigned what, struct fw_err *err);
int rd_visit_list(struct fw_store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx, struct fw_err *err);
int rd_stats(struct fw_store *st, int64_t now_ms, struct fw_store_stats *out, struct fw_err *err);
int rd_control_put(struct fw_store *st, enum fw_control_kind kind, int64_t now_ms, struct fw_err *err);
int rd_control_take(struct fw_store *st, int64_t after_id, struct fw_control *out, struct fw_err *err);
int rd_beat_list(struct fw_store *st, int64_t since_ms, fw_beat_cb *cb, void *ctx, struct fw_err *err);
/* No feed has a higher number. */
int rd_last_feed(struct redis *r, int64_t *last, struct fw_err *err);

/* ---- redis_load.c ------------------------------------------------------------------------------------------------------------------ */

int rd_load(struct fw_store *st, const struct fw_load *rows, struct fw_err *err);
int rd_key_list(struct fw_store *st, int64_t first_feed_id, int64_t last_feed_id, fw_key_cb *cb, void *ctx, struct fw_err *err);

/* ---- redis_check.c ----------------------------------------------------------------------------------------------------------------- */

/* A line of INFO on the first shard's server; absent when it may not be asked or has no such line. */
struct fw_str rd_info(struct redis *r, const char *section, const char *name);
int rd_clock(struct fw_store *st, int64_t *now_ms, struct fw_err *err);
int rd_inspect(struct fw_store *st, fw_inspect_cb *cb, void *ctx, struct fw_err *err);
int rd_check(struct fw_store *st, void (*cb)(void *ctx, const char *finding), void *ctx, struct fw_err *err);

/* ---- redis_events.c --------------------------------------------------------------------------------------------------- */

int rd_event_put(struct fw_store *st, const struct fw_event *event, size_t n, struct fw_err *err);
int rd_event_bury(struct fw_store *st, const struct fw_dead_event *event, struct fw_err *err);
int rd_event_list(struct fw_store *st, int64_t after_id, size_t limit, fw_event_cb *cb, void *ctx, struct fw_err *err);
int rd_event_dead_list(struct fw_store *st, int64_t after_id, size_t limit, fw_dead_event_cb *cb, void *ctx, struct fw_err *err);
int rd_event_prune(struct fw_store *st, int64_t before_ms, int64_t *n, struct fw_err *err);
int rd_event_unbury(struct fw_store *st, const struct fw_dead_event *event, size_t n, struct fw_err *err);

/* ---- redis_records.c -------------------------------------------------------------------------------------------------- */

int rd_record_put(struct fw_store *st, const struct fw_record *r, bool if_absent, bool *was, struct fw_err *err);
int rd_record_get(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_arena *a, struct fw_record *out,
	struct fw_err *err);
int rd_record_list(struct fw_store *st, const struct fw_record_query *q, fw_record_cb *cb, void *ctx, struct fw_err *err);
int rd_record_remove(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_str value, struct fw_err *err);
int rd_record_prune(struct fw_store *st, int64_t now_ms, int64_t *n, struct fw_err *err);

#endif
