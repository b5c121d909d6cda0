/* SPDX-License-Identifier: ISC */
/*
 * The Redis driver: types and functions that its files share. Only src/store/redis/ includes this.
 *
 * All keys of a store begin with one hash tag, "{PREFIX/0}:", so on a cluster they lie on one
 * node, and one transaction changes them together: a script, or MULTI and EXEC (commit.c). Several
 * stores, one prefix each, share a cluster.
 *
 *	schedule:SHARD  hash, feed id to schedule row (pack.c), with the due time; read as a whole
 *	feed            hash, feed id to feed row: its shard, and the groups of members (pack.c)
 *	feed_ids        sorted set of feed ids
 *	version         hash, shard to the number of changes of its schedule from outside (driver.h)
 *	hosts:SHARD     hash, host id to "next_ok_ms cooldown_until_ms learned_delay_ms"
 *	keys:FEED       hash, entry key to "hash entry date"; entry 0: removed by retention
 *	entries         hash, entry id to its row; entry_ids, entry_dates: sorted sets of the ids
 *	changes         sorted set of changes by number: "number entry feed kind revision at_ms"
 *	revisions:ENTRY hash, revision to "cut row": cut 1: without content and summary (commit_write.c)
 *	visits          hash, chunks of visits (script/head.lua); visit_ids: their sorted set
 *	lease:ID        exists while that lease does; each commit watches its own
 *	revoked         counter, raised to revoke reserved ids; each commit watches it (commit.c)
 *	new             stream of new entries (commit_write.c); on one server "PREFIX:new", as the lists
 *	                that other programs fill (inbox.c)
 *
 * Keys that exist once per store: script/meta.lua. Of an earlier version: merging, adopting and
 * void (open.c).
 *
 * Transactions. What a slot changes it changes in one, so a process that dies leaves all of it or
 * nothing. What goes in portions, each of them whole: a load of entries and visits, retention, the
 * inbox, and a commit with two outcomes of one feed.
 *
 * Threads: one at a time per store (driver.h).
 */
#ifndef FW_STORE_REDIS_REDIS_H
#define FW_STORE_REDIS_REDIS_H

#include <assert.h>

#include "base/buf.h"
#include "base/err.h"
#include "store/driver.h"
#include "store/dsn.h"
#include "store/fields.h"
#include "store/stream.h"

#define RS_SCHEMA 2 /* 1, of release 0.1.0, had no log of changes */
#define RS_ARENA_KEEP ((size_t)1 << 18)
#define RS_PAGE 500 /* rows per request of a list */

/* ---- conn.c: one connection ------------------------------------------------------------------ */

enum rs_type { RS_NIL, RS_INT, RS_TEXT, RS_ARRAY, RS_ERROR };

/*
 * A reply. All of it lives in the arena that was passed to the exchange. Texts are NUL-terminated
 * and may be written to.
 */
struct rs_reply {
	enum rs_type type;
	int64_t integer;
	struct fw_str text;     /* RS_TEXT, RS_ERROR */
	struct rs_reply **elem; /* RS_ARRAY; read them with rs_elem() */
	size_t n, room;         /* room: of elem; it grows as elements arrive */
};

/* Address and credentials of a server. Must outlive its connections. */
struct rs_target {
	struct fw_str host, path, user, password; /* path: of a unix socket */
	int port, db;
	bool tls, verify;
	struct fw_str ca_file, cert_file, key_file;
	int64_t connect_timeout_ms, timeout_ms;
	int64_t reply_max_bytes; /* memory for the replies of one exchange */
	const char *name;        /* for messages: the URL without its password */
	/* redis_destination.refuses; NULL: every address may be connected to */
	const char *(*refuses)(const void *ctx, const struct sockaddr *sa);
	const void *refuses_ctx;
};

struct rs_conn;

/* FW_EIO: the server cannot be reached. FW_EINVAL: refused for good (password, TLS). */
int rs_conn_open(const struct rs_target *t, const char *host, int port, struct rs_conn **out, struct fw_err *err);
void rs_conn_close(struct rs_conn *c);
void rs_conn_distrust(struct rs_conn *c);      /* what it sends makes no sense: it cannot be used any more */
bool rs_conn_is_idle(const struct rs_conn *c); /* no reply is half read */
bool rs_conn_is_at(const struct rs_conn *c, const char *host, int port);

/* Commands are collected. The next exchange sends them at the latest. */
void rs_conn_begin(struct rs_conn *c);
void rs_conn_add(struct rs_conn *c, struct fw_str word);
/* begin a word: the caller appends to this buffer */
struct fw_buf *rs_conn_word(struct rs_conn *c);
void rs_conn_word_end(struct rs_conn *c);
void rs_conn_command(struct rs_conn *c, const char *words); /* words separated by spaces: "PING" */
size_t rs_conn_pending(const struct rs_conn *c);
void rs_conn_push(struct rs_conn *c);    /* send as much as the socket takes without blocking */
void rs_conn_discard(struct rs_conn *c); /* drop the collected commands */
/*
 * Send the collected commands and read all replies. *reply is an array with one element per
 * command. FW_EIO: the connection broke, or the server did not answer within timeout_ms, or it
 * answered with more than reply_max_bytes; the connection is unusable from then on. FW_ENOMEM.
 */
int rs_conn_exchange(struct rs_conn *c, struct fw_arena *a, struct rs_reply **reply, struct fw_err *err);
/* The nth command of the last exchange as it was sent; and collect such a command again. */
struct fw_str rs_conn_get_sent(const struct rs_conn *c, size_t nth);
void rs_conn_add_raw(struct rs_conn *c, struct fw_str command);
/*
 * Wait for one published message. *reply is NULL if none came within timeout_ms, or wake_fd became
 * readable.
 */
int rs_conn_listen(struct rs_conn *c, int wake_fd, int64_t timeout_ms, struct fw_arena *a, struct rs_reply **reply,
	struct fw_err *err);

/* ---- reply.c: what replies have to look like ------------------------------------------------- */

/*
 * A shape is a text with an item for each part of a reply:
 *
 *	i        an integer that Lua can hold, or a text of one
 *	h        any integer, or a text of one
 *	t        a text
 *	x        anything
 *	[items]  an array of these items; a '.' before the bracket: and more
 *	(items)  an array that repeats these items; "(items)=" n times, "(items)<" at most n times
 *
 * '?' behind an item: or nil. '|' between shapes: one of them. Numbers that only name something are
 * 't': a reader ignores what is none of its names. 'i' is what we calculate with.
 */
bool rs_reply_fits(const struct rs_reply *r, const char *shape, size_t n);

extern const struct rs_reply rs_nil;
/* An element of an array; nil: it has no such element, or is no array. */
static inline const struct rs_reply *rs_elem(const struct rs_reply *r, size_t i)
{
	return i < r->n ? r->elem[i] : &rs_nil;
}
/* The first error among the elements; NULL: none. */
const struct rs_reply *rs_reply_error(const struct rs_reply *all);

/* ---- open.c: open and close, errors, commands ------------------------------------------------ */

/* RS_TRIM: also runs on a server whose memory is full */
enum rs_function { RS_WRITE, RS_READ, RS_TRIM, RS_FUNCTION_N };
extern const char rs_library[]; /* script/ *.lua */

/* a collected command */
struct rs_cmd {
	size_t nth;        /* its index in the exchange */
	const char *shape; /* of its reply; NULL: nobody reads it */
	size_t n;
};

struct rs {
	struct store store;
	struct fw_arena own;      /* memory that lives as long as the store */
	struct fw_arena arena;    /* replies; emptied at the start of each slot */
	struct fw_arena messages; /* received messages */
	struct rs_target target;
	struct fw_buf shown; /* the URL without its password */
	struct fw_str prefix, tag, channel;
	struct fw_str door;               /* what the names of the lists of inbox.c begin with */
	struct rs_conn *conn;             /* to the server, on a cluster to the node that has the store */
	struct fw_buf library;            /* source text as it is loaded */
	char function[RS_FUNCTION_N][40]; /* names for FCALL */
	bool cluster, read_only;
	struct rs_cmd *cmd; /* collected since the last rs_run() */
	size_t cmd_n, cmd_cap;
	const struct rs_reply **reply; /* of the last rs_run(), in the order of the commands */
	struct rs_conn *subscriber;    /* subscription to messages of other processes; NULL: none */
	char sender_id[33];            /* sender id of this store in these messages */
	int failed;                    /* FW_ENOMEM: memory ran out while commands were collected */
	int64_t revisions_max, revision_max_bytes;
	int64_t stream_max; /* messages that a stream of new entries keeps, about; 0: there is none */
	bool in_callback;   /* a callback of the caller runs */
	int shards_at_once; /* schedule.c: from the size of the shards read last */
};

static inline struct rs *rs_of(struct store *st)
{
	return (struct rs *)st; /* store comes first */
}
/*
 * Start of a slot. FW_EINVAL: it writes, and the store was opened read-only; or a callback called
 * it.
 */
int rs_slot_start(struct rs *r, bool writes, struct fw_err *err);
static inline int rs_no_memory(const struct rs *r, struct fw_err *err)
{
	return FW_ERR(err, FW_ENOMEM, "%s: out of memory", r->target.name);
}
/*
 * Run a callback. Slots that it calls are refused, because the rows it is given lie in the arena.
 */
#define RS_CALLBACK(r, call) ((r)->in_callback = true, rs_callback_done(r, call))
static inline int rs_callback_done(struct rs *r, int rc)
{
	assert(r->in_callback);
	r->in_callback = false;
	return rc;
}

/* Begin an operation of the library, or a Redis command on a key. Its words follow. */
void rs_call(struct rs *r, enum rs_function function, const char *op);
void rs_command_key(struct rs *r, const char *cmd, const char *key);
void rs_command(struct rs *r, const char *words); /* without a key: "UNWATCH" */
/* add a key */
FW_PRINTF(2, 3) void rs_key(struct rs *r, const char *fmt, ...);
void rs_stream_key(struct rs *r); /* of the new entries */
void rs_add(struct rs *r, struct fw_str word);
void rs_adds(struct rs *r, const char *word);
void rs_addi(struct rs *r, int64_t n);
struct fw_buf *rs_word(struct rs *r); /* begin a word: the caller appends to this buffer */
void rs_word_end(struct rs *r);
/*
 * The shape of the reply to the command that was begun last. A reply that is to be read needs one:
 * without it the reply is nil.
 */
void rs_expect_n(struct rs *r, const char *shape, size_t n);
static inline void rs_expect(struct rs *r, const char *shape)
{
	rs_expect_n(r, shape, 0);
}
/*
 * Run the collected commands. Loads the library if it is missing, and turns the first error reply
 * into an error of ours. FW_EIO: also if a reply has another shape.
 */
int rs_run(struct rs *r, const char *doing, struct fw_err *err);
/*
 * The same for a transaction, which is never sent a second time. The reply of EXEC tells whether it
 * was executed.
 */
int rs_run_once(struct rs *r, const char *doing, struct fw_err *err);
void rs_discard(struct rs *r); /* drop the collected commands */
int rs_error(struct rs *r, struct fw_str text, const char *doing, struct fw_err *err);
/*
 * FW_EIO and its message, and no connection is used any more: who knows what the next replies are
 * to.
 */
int rs_malformed(struct rs *r, const char *doing, struct fw_err *err);
/* Fill r->target from a URL; r->own, r->target.name and r->shown are set. FW_EINVAL. */
int rs_target_read(struct rs *r, const char *url, struct fw_err *err);
/*
 * Authenticate and select the database. Nothing long is sent before that succeeds, because the
 * server would close the connection.
 */
int rs_authenticate(struct rs *r, struct rs_conn *c, struct fw_err *err);

static inline int64_t rs_int(const struct rs_reply *r)
{
	int64_t n = 0;

	return r->type == RS_INT ? r->integer : r->type == RS_TEXT && fw_str_int(r->text, &n) ? n : 0;
}
/* of a reply to TIME: {seconds, microseconds} */
#define RS_TIME "[ii]"
static inline int64_t rs_time_ms(const struct rs_reply *time)
{
	return rs_int(rs_elem(time, 0)) * 1000 + rs_int(rs_elem(time, 1)) / 1000;
}
/* A field of a reply to INFO; absent: there is none, or the reply is an error. */
struct fw_str rs_info_field(const struct rs_reply *info, const char *name);
/* A field of INFO; absent if it has none. */
struct fw_str rs_info(struct rs *r, const char *section, const char *name);

/* ---- pack.c: structs as values --------------------------------------------------------------- */

/* a table of store/fields.h, and a selection of its members */
struct rs_members {
	const struct fw_field *field;
	const size_t *n;
	unsigned group;      /* struct fw_feed: only this group */
	const char *skip[6]; /* without these; NULL ends the list */
};
enum {
	RS_ADDRESS,
	RS_OWNER_SETTINGS,
	RS_ERROR_GROUP,
	RS_VALIDATORS,
	RS_META_GROUP,
	RS_RHYTHM,
	RS_REDIRECT,
	RS_GROUP_N
};
struct rs_group {
	unsigned bit; /* FW_GROUP_*; 0: none */
	struct rs_members members;
};
extern const struct rs_group rs_group[RS_GROUP_N]; /* in the order of a feed row */

/* Strings point into the value, whose line ends become NUL. Unknown members are ignored. */
void rs_unpack(struct fw_str value, const struct rs_members *m, void *of);
void rs_group_pack(struct fw_buf *out, int group, const struct fw_feed *f);
/* A feed row: the groups in change (bits by RS_*) from f, the other groups from row. */
void rs_feed_row_pack(struct fw_buf *out, struct fw_str row, unsigned change, const struct fw_feed *f);
void rs_feed_row_unpack(struct fw_str row, struct fw_feed *f);
int rs_feed_row_shard(struct fw_str row);
struct fw_str rs_feed_row_group(struct fw_str row, int group); /* absent: the row is malformed */
/* The URL of group RS_ADDRESS, which is "url\nhost_key\n". */
struct fw_str rs_address_url(struct fw_str address);

/* Parts of a schedule row that are not members of struct fw_feed. */
struct rs_schedule_row {
	int64_t host_id, last_visit_id;
};
void rs_schedule_row_pack(struct fw_buf *out, const struct fw_feed *f, const struct rs_schedule_row *s);
/* Padded with leading zeros; a number that is wider than width is written whole. */
void rs_int_pad(struct fw_buf *out, int64_t n, size_t width);
struct fw_str rs_int_text(int64_t n, char text[24]);
bool rs_schedule_row_unpack(struct fw_str row, struct fw_feed *f, struct rs_schedule_row *s);

/* before_id: id of the feed's previous visit; 0: none is stored. */
void rs_visit_pack(struct fw_buf *out, const struct fw_visit *v, int64_t before_id);
/* Once for a row: its error is decoded in its place. */
bool rs_visit_unpack(struct fw_str row, struct fw_visit *v);
/* "feed seen changed revision ", then members, key and hash. */
void rs_entry_pack(struct fw_buf *out, const struct fw_entry_row *e);
bool rs_entry_unpack(struct fw_str row, struct fw_entry_row *e);

/* value of an entry key: "hash entry date" */
struct rs_key_value {
	uint64_t hash;
	int64_t id; /* 0: the entry was removed and stays away; then there is no date */
	int64_t date_ms;
};
void rs_key_value_pack(struct fw_buf *out, const struct rs_key_value *k);
bool rs_key_value_unpack(struct fw_str value, struct rs_key_value *k);
/* "next_ok_ms cooldown_until_ms learned_delay_ms" */
void rs_host_pack(struct fw_buf *out, const struct store_host *h);
bool rs_host_unpack(struct fw_str row, struct store_host *h);

/* ---- address.c: addresses of feeds; removing and merging ------------------------------------- */

/* Sets FW_ENOTFOUND and its message. */
int rs_feed_missing(const struct rs *r, int64_t feed_id, struct fw_err *err);
/* The existing feed with this address; 0: none. */
int rs_url_find(struct rs *r, struct fw_str url, int64_t *id, struct fw_err *err);
/* Feed rows of these feeds, in order; RS_NIL for feeds that do not exist. */
int rs_feed_rows_read(struct rs *r, const int64_t *id, size_t n, const struct rs_reply ***row, struct fw_err *err);

/* ---- the slots, by file ---------------------------------------------------------------------- */

store_heartbeat_fn rs_heartbeat; /* lease.c */
store_release_fn rs_release;
store_due_fn rs_due; /* schedule.c */
store_clock_fn rs_clock;
store_stats_fn rs_stats;
store_prune_fn rs_prune;
store_commit_fn rs_commit;       /* commit.c */
store_match_put_fn rs_match_put; /* matches.c */
store_match_list_fn rs_match_list;
store_match_remove_fn rs_match_remove;
store_stream_append_fn rs_stream_append; /* stream.c */
store_match_summary_fn rs_match_summary;
store_orders_version_fn rs_orders_version; /* orders.c */
void rs_match_row_add(struct rs *r, const struct fw_match *m);
store_load_fn rs_load; /* load.c */
store_key_list_fn rs_key_list;
store_feed_list_fn rs_feed_list; /* feeds.c */
store_feed_set_fn rs_feed_set;
store_feed_drop_fn rs_feed_drop; /* address.c */
store_feed_adopt_fn rs_feed_adopt;
store_entry_list_fn rs_entry_list;   /* entries.c */
store_change_list_fn rs_change_list; /* changes.c */
store_revision_list_fn rs_revision_list;
store_visit_list_fn rs_visit_list; /* visits.c */
store_event_put_fn rs_event_put;   /* events.c */
store_event_ids_fn rs_event_ids;
store_event_list_fn rs_event_list;
store_event_remove_fn rs_event_remove;
store_record_put_fn rs_record_put; /* records.c */
store_record_list_fn rs_record_list;
store_record_remove_fn rs_record_remove;
store_inspect_fn rs_inspect; /* inspect.c */
store_inbox_fn rs_inbox;     /* inbox.c */
int rs_inbox_count(struct rs *r, int64_t *waiting_n, int64_t *refused_n, struct fw_err *err);
int rs_inbox_inspect(struct rs *r, fw_inspect_cb *cb, void *ctx, struct fw_err *err);

/* commit.c: revoke reserved entry ids whose process did not store its entries in time. */
int rs_ids_revoke(struct rs *r, struct fw_err *err);
/* changes.c: the last number below which all are stored. */
int rs_head_read(struct rs *r, int64_t *id, struct fw_err *err);
/* changes.c: retention of the log. Adds to p->change_n and p->more. */
int rs_changes_prune(struct rs *r, struct fw_prune *p, struct fw_err *err);
/* lease.c: sets FW_ESTALE and its message. */
int rs_lease_over(struct rs *r, struct fw_err *err);

/*
 * feeds.c: fills feeds whose ids are set. state: also read their schedule rows; NULL: read feed
 * rows only. url.p stays NULL for a feed that does not exist.
 */
int rs_feeds_read(struct rs *r, struct fw_feed *feed, struct rs_schedule_row *state, size_t n, struct fw_err *err);

/* entries.c: members of one sorted set that begin with their ids; or visits with their rows. */
struct rs_page_row {
	int64_t id;
	struct fw_str row;
};
struct rs_walk {
	const char *key; /* "entry_ids", "feed_ids"; NULL: visits */
	bool down;
	int64_t next; /* exclusive */
	int64_t end;  /* exclusive */
	bool done;
};
/*
 * The next page: `most` ids, and of visits perhaps some more. Results lie in the arena.
 */
int rs_walk_page(struct rs *r, struct rs_walk *w, size_t most, struct rs_page_row **out, size_t *n, struct fw_err *err);
/* The highest id whose row has a time before ms. */
int rs_id_before(struct rs *r, const char *name, const char *pattern, int64_t ms, int64_t *last, struct fw_err *err);

#endif
