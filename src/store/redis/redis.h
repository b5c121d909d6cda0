/* SPDX-License-Identifier: ISC */
/*
 * Inside the Redis driver: what its files share. Nobody else includes this.
 *
 * Where things lie. A store on one server has one cell, one on a cluster 16: that is decided when it
 * is made. All keys of a cell have one tag, "{feedwheel/7}:", so they are on one server, and one
 * transaction changes them together: a script, or MULTI and EXEC (commit.c). A feed is in the cell
 * that its number names (modulo), for life, with all that belongs to it; so a shard's feeds are in
 * all cells.
 *
 *	schedule:SHARD  hash, feed to its narrow row (pack.c), which says when it is due; a shard is read as a whole
 *	feed            hash, feed to its shard and its groups of members: "url\n" and host_key; its owner's, error ...
 *	feed_ids        sorted set of feeds by number
 *	version         hash, how often a shard's schedule was changed from outside
 *	hosts:SHARD     hash, host to "next_ok_ms cool_until_ms pace_ms", in the cell that the shard names (modulo)
 *	keys:FEED       hash, entry key to "hash entry date"; entry 0: retention took it
 *	entries         hash, entry to its row; entry_ids, entry_dates: sorted sets of them
 *	visits          hash, chunks of some dozens of visits (script/head.lua); visit_ids: sorted set of the chunks
 *	lease:ID        is there while that lease is: each commit watches its own; revoked: see commit.c
 *	adopting        hash, feed to an address that it is about to have; void: set of feeds that will never be
 *	merging         hash, feed to the feed that gets its entries, while that is done
 *
 * Cell 0 also has what is one for the store: see script/meta.lua.
 *
 * All or nothing. On one server each slot is one transaction, unless it is about several feeds'
 * addresses (load, feed_drop, an outcome that brings another address). On a cluster a commit is one
 * transaction for each cell: each outcome is stored whole or not at all, and a retry stores nothing
 * twice. Whatever spans cells is done in steps that may be repeated, and that others finish where
 * somebody died between two:
 *
 *   - A new feed first has its number, then its address (urls), then it is there (create); one with
 *     a new address notes that (adopting), takes it, and has it with the commit. An address of a feed
 *     that does not have it is free: who wants it makes sure that the feed will never have it (void),
 *     and takes it.
 *   - A feed that goes into another is marked (merging): commits and changes wait.
 *     Its entries are copied, then it is removed. Lists show an entry that is there twice once. Who
 *     reads what is due finishes what is left half done.
 */
#ifndef FW_STORE_REDIS_REDIS_H
#define FW_STORE_REDIS_REDIS_H

#include "base/buf.h"
#include "base/err.h"
#include "store/driver.h"
#include "store/dsn.h"
#include "store/fields.h"

#define RS_SCHEMA 1
#define RS_CELLS 16 /* at most */
#define RS_META 0   /* the cell that has what is one for the store */
#define RS_ARENA_KEEP ((size_t)1 << 18)
#define RS_PAGE 500 /* rows asked for at a time by lists */

/* ---- conn.c: one connection ------------------------------------------------------------------ */

enum rs_type { RS_NIL, RS_INT, RS_TEXT, RS_ARRAY, RS_ERROR };

/*
 * A reply; all of it lives in the arena that the exchange was given. Texts are NUL-terminated and
 * may be written to.
 */
struct rs_reply {
	enum rs_type type;
	int64_t integer;
	struct fw_str text;     /* RS_TEXT, RS_ERROR */
	struct rs_reply **elem; /* RS_ARRAY */
	size_t n;
};

/* Where a server is and how to get in; lives as long as its connections. */
struct rs_target {
	struct fw_str host, path, user, password; /* path: of a unix socket */
	int port, db;
	bool tls, verify;
	struct fw_str ca_file, cert_file, key_file;
	int64_t connect_timeout_ms, timeout_ms;
	const char *name; /* for words: the URL without its password */
};

struct rs_conn;

/* FW_EIO cannot be reached, FW_EINVAL refused for good (password, TLS). */
int rs_conn_open(
	const struct rs_target *t, const char *host, int port, struct rs_conn **out, struct fw_err *err);
void rs_conn_close(struct rs_conn *c);
bool rs_conn_idle(const struct rs_conn *c); /* is no reply half read? */
bool rs_conn_is_at(const struct rs_conn *c, const char *host, int port);

/* Commands are collected, and sent by the exchange that follows at the latest. */
void rs_conn_begin(struct rs_conn *c);
void rs_conn_add(struct rs_conn *c, struct fw_str word);
struct fw_buf *rs_conn_word(struct rs_conn *c); /* a word made of what is appended to this */
void rs_conn_word_end(struct rs_conn *c);
void rs_conn_command(struct rs_conn *c, const char *words); /* "PING" and the like */
size_t rs_conn_pending(const struct rs_conn *c);
void rs_conn_push(struct rs_conn *c);   /* send what goes without waiting */
void rs_conn_forget(struct rs_conn *c); /* what was collected */
/*
 * Send what was collected and read all replies; *reply is an array of as many as there were
 * commands. FW_EIO: it broke, or the server did not answer in time (broken from then on).
 * FW_ENOMEM.
 */
int rs_conn_exchange(struct rs_conn *c, struct fw_arena *a, struct rs_reply **reply, struct fw_err *err);
/* The nth command of the last exchange, and to collect one as it was sent. */
struct fw_str rs_conn_sent(const struct rs_conn *c, size_t nth);
void rs_conn_raw(struct rs_conn *c, struct fw_str command);
/* One message that was not asked for; NULL: none within timeout_ms, or wake_fd is readable. */
int rs_conn_listen(struct rs_conn *c, int wake_fd, int64_t timeout_ms, struct fw_arena *a,
	struct rs_reply **reply, struct fw_err *err);

/* ---- open.c: life, errors, cells ------------------------------------------------------------- */

enum rs_function { RS_WRITE, RS_READ, RS_TRIM, RS_FUNCTION_N }; /* RS_TRIM: also on a server that is full */
extern const char rs_library[];                                 /* script/ *.lua */

struct rs_cmd { /* one that was collected */
	int cell;
	size_t nth; /* of its connection's */
};

struct rs {
	struct store store;
	struct fw_arena own;   /* what lives as long as the store */
	struct fw_arena arena; /* replies; emptied at the begin of each slot */
	struct fw_arena heard; /* messages */
	struct rs_target target;
	struct fw_buf shown; /* the URL without its password */
	struct fw_str prefix, tag[RS_CELLS], channel;
	/* One for each cell: a transaction watches keys on its connection. One server: the first alone. */
	struct rs_conn *conn[RS_CELLS];
	int cell_n;                       /* 1 or RS_CELLS */
	struct fw_buf library;            /* as it is loaded, */
	char function[RS_FUNCTION_N][40]; /* and what is called */
	bool cluster, read_only;
	struct rs_cmd *cmd; /* collected since the last rs_run() */
	size_t cmd_n, cmd_cap;
	struct rs_conn *to;      /* whose words are added */
	struct rs_reply **reply; /* of the last rs_run(), in order of the commands */
	struct rs_conn *ear;     /* listens to messages from others */
	char me[33];             /* who we are in these messages */
	int failed;              /* memory ran out while commands were collected */
	bool showing;            /* a caller's callback runs */
	int shards_at_once;      /* schedule.c: as their size was last seen */
};

static inline struct rs *rs_of(struct store *st)
{
	return (struct rs *)st; /* store comes first */
}
/* Of a feed, or of a shard's hosts. */
static inline int rs_cell(const struct rs *r, int64_t n)
{
	return (int)(n % r->cell_n);
}

/* A slot begins. FW_EINVAL: it writes, and the store was opened for reading only. */
int rs_start(struct rs *r, bool writes, struct fw_err *err);
static inline int rs_no_memory(const struct rs *r, struct fw_err *err)
{
	return FW_ERR(err, FW_ENOMEM, "%s: out of memory", r->target.name);
}
/* Call a callback; a slot that it calls is refused, for the rows that are shown lie in the arena. */
#define RS_SHOW(r, call) ((r)->showing = true, rs_shown(r, call))
static inline int rs_shown(struct rs *r, int rc)
{
	r->showing = false;
	return rc;
}

/*
 * Begin an operation of the library on a cell, or an ordinary command on one of its keys; words
 * follow.
 */
void rs_op(struct rs *r, int cell, enum rs_function function, const char *op);
void rs_ask(struct rs *r, int cell, const char *cmd, const char *key);
void rs_command(struct rs *r, int cell, const char *words); /* about no key: "UNWATCH" */
FW_PRINTF(3, 4) void rs_key(struct rs *r, int cell, const char *fmt, ...); /* another key, of this cell */
void rs_add(struct rs *r, struct fw_str word);
void rs_adds(struct rs *r, const char *word);
void rs_addi(struct rs *r, int64_t n);
struct fw_buf *rs_word(struct rs *r); /* a word made of what is appended to this */
void rs_word_end(struct rs *r);
/*
 * Run what was collected: all servers at once. Follows the cluster, loads the library, turns the
 * first error reply into ours.
 */
int rs_run(struct rs *r, const char *doing, struct fw_err *err);
/*
 * The same of transactions, which nobody sends a second time. *moved: servers have told that keys
 * are elsewhere, and were asked where; what EXEC answers tells which transactions were done.
 */
int rs_run_once(struct rs *r, const char *doing, bool *moved, struct fw_err *err);
void rs_forget(struct rs *r); /* what was collected */
int rs_error(struct rs *r, struct fw_str text, const char *doing, struct fw_err *err);

static inline int64_t rs_int(const struct rs_reply *r)
{
	int64_t n = 0;

	return r->type == RS_INT ? r->integer : r->type == RS_TEXT && fw_str_int(r->text, &n) ? n : 0;
}
/* A line of INFO on the meta cell's server; absent when it has none. */
struct fw_str rs_info(struct rs *r, const char *section, const char *name);

/* ---- pack.c: structs as values --------------------------------------------------------------- */

struct rs_members { /* which of the tables of store/fields.h, and which rows of it */
	const struct fw_field *field;
	const size_t *n;
	unsigned group;      /* struct fw_feed: only this group ... */
	const char *skip[6]; /* and not these; NULL: no more */
};
enum { RS_ADDRESS, RS_OWN, RS_ERROR_GROUP, RS_VALIDATORS, RS_META_GROUP, RS_RHYTHM, RS_REDIRECT, RS_GROUP_N };
struct rs_group {
	unsigned bit; /* FW_GROUP_*; 0: none */
	struct rs_members members;
};
extern const struct rs_group rs_group[RS_GROUP_N]; /* in the order of a row of `feed` */

/*
 * Append "name=length:bytes\n" for each member that is there: texts that are not absent, numbers
 * that are not 0.
 */
void rs_pack(struct fw_buf *out, const struct rs_members *m, const void *of);
/* Strings point into the value, whose line ends become NUL. What is unknown is passed over. */
void rs_unpack(struct fw_str value, const struct rs_members *m, void *of);
void rs_group_pack(struct fw_buf *out, int group, const struct fw_feed *f);
/* A row of `feed`: these groups (bits by RS_*) as they are now, the others as they stand in row. */
void rs_groups_pack(struct fw_buf *out, struct fw_str row, unsigned change, const struct fw_feed *f);
void rs_groups_unpack(struct fw_str row, struct fw_feed *f);
int rs_groups_shard(struct fw_str row);
struct fw_str rs_groups_part(struct fw_str row, int group); /* absent: it is no such row */
/* The group RS_ADDRESS is "url\nhost_key\n". */
struct fw_str rs_address_url(struct fw_str address);

/* What of a narrow row is no member of a feed. */
struct rs_state {
	int64_t host_id, last_visit_id;
};
void rs_state_pack(struct fw_buf *out, const struct fw_feed *f, const struct rs_state *s);
void rs_pad(struct fw_buf *out, int64_t n, size_t width); /* with zeros in front */
struct fw_str rs_digits(int64_t n, char text[24]);
bool rs_state_unpack(struct fw_str row, struct fw_feed *f, struct rs_state *s);

/* before_id: its feed's visit before this one; 0: none is kept. */
void rs_visit_pack(struct fw_buf *out, const struct fw_visit *v, int64_t before_id);
bool rs_visit_unpack(struct fw_str row, struct fw_visit *v);
/* "feed seen changed revision ", and members, with key and hash. */
void rs_entry_pack(struct fw_buf *out, const struct fw_entry_row *e);
bool rs_entry_unpack(struct fw_str row, struct fw_entry_row *e);

struct rs_known { /* what stands with a key: "hash entry date" */
	uint64_t hash;
	int64_t id; /* 0: retention took it, and there is no date */
	int64_t date_ms;
};
void rs_known_pack(struct fw_buf *out, const struct rs_known *k);
bool rs_known_read(struct fw_str value, struct rs_known *k);
/* "next_ok_ms cool_until_ms pace_ms" */
void rs_host_pack(struct fw_buf *out, const struct store_host *h);
bool rs_host_unpack(struct fw_str row, struct store_host *h);

/* ---- address.c: whose addresses are; and how feeds go -------------------------------------- */

/* FW_ENOTFOUND, with words. */
int rs_missing(const struct rs *r, int64_t feed_id, struct fw_err *err);
/*
 * The address becomes the feed's (*whose is feed_id), or *whose is the feed that is there and has
 * it.
 */
int rs_url_claim(struct rs *r, struct fw_str url, int64_t feed_id, int64_t *whose, struct fw_err *err);
int rs_url_release(struct rs *r, struct fw_str url, int64_t feed_id, struct fw_err *err);
/* Which feed that is there has this address; 0: none. */
int rs_url_find(struct rs *r, struct fw_str url, int64_t *id, struct fw_err *err);
/* Addresses of these feeds: rows of `feed`, in order; those that are not there are RS_NIL. */
int rs_addresses_ask(struct rs *r, const int64_t *id, size_t n, struct rs_reply ***row, struct fw_err *err);
bool rs_has_address(const struct rs_reply *row, struct fw_str url);
/* Finish what is half done in this cell. */
int rs_merges_finish(struct rs *r, int cell, struct fw_err *err);

/* ---- the slots, by file ---------------------------------------------------------------------- */

store_beat_fn rs_beat; /* lease.c */
store_give_fn rs_give;
store_due_fn rs_due; /* schedule.c */
store_clock_fn rs_clock;
store_stats_fn rs_stats;
store_prune_fn rs_prune;
store_commit_fn rs_commit; /* commit.c */
store_load_fn rs_load;     /* load.c */
store_key_list_fn rs_key_list;
store_feed_list_fn rs_feed_list; /* feeds.c */
store_feed_set_fn rs_feed_set;
store_feed_drop_fn rs_feed_drop;   /* address.c */
store_entry_list_fn rs_entry_list; /* entries.c */
store_visit_list_fn rs_visit_list; /* visits.c */
store_event_put_fn rs_event_put;   /* events.c */
store_event_list_fn rs_event_list;
store_event_remove_fn rs_event_remove;
store_record_put_fn rs_record_put; /* records.c */
store_record_list_fn rs_record_list;
store_record_remove_fn rs_record_remove;
store_inspect_fn rs_inspect; /* inspect.c */

/* commit.c: numbers of those who took too long to store what they had taken them for. */
int rs_numbers_revoke(struct rs *r, struct fw_err *err);
/* lease.c: FW_ESTALE, with words. */
int rs_lost(struct rs *r, struct fw_err *err);

/*
 * feeds.c: feeds whose ids are set. state: their narrow rows too; NULL: their groups alone. url.p stays
 * NULL where there is none.
 */
int rs_feeds_read(struct rs *r, struct fw_feed *feed, struct rs_state *state, size_t n, struct fw_err *err);

/* entries.c: numbers of one sorted set of all cells, merged; or visits, with their rows. */
struct rs_number {
	int64_t id;
	int cell;
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
 * The next page, at most about `most`; numbers that are in two cells are there twice. In the arena.
 */
int rs_walk_page(
	struct rs *r, struct rs_walk *w, size_t most, struct rs_number **out, size_t *n, struct fw_err *err);
/* The least of the cells' last numbers whose row's time is before ms. */
int rs_since(
	struct rs *r, const char *name, const char *pattern, int64_t ms, int64_t *last, struct fw_err *err);

/* search.c */
struct rs_search {           /* the user's words, ready to be looked for */
	struct fw_buf words; /* each phrase as " a b " with a NUL behind; a prefix without its last space */
	struct fw_buf text;  /* the entry's, the same way */
	struct fw_buf raw;
};
bool rs_search_begin(struct rs_search *s, struct fw_str words); /* false: there is no word in it */
bool rs_search_matches(struct rs_search *s, const struct fw_entry_row *e);
int rs_search_failed(const struct rs_search *s); /* FW_ENOMEM: the last answer is no answer */
void rs_search_end(struct rs_search *s);

#endif
