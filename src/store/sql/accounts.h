/* SPDX-License-Identifier: ISC */
/*
 * What the files of accounts share: accounts.c, account_subscribe.c, account_state.c,
 * account_edit.c, account_list.c, account_stream.c, account_copy.c, icons.c.
 */
#ifndef FW_STORE_SQL_ACCOUNTS_H
#define FW_STORE_SQL_ACCOUNTS_H

#include "store/accounts.h"
#include "store/sql/core.h"

/* The entry_total_n of a feed; a join, because MariaDB would scan for a nested SELECT. */
#define SQL_ENTRY_TOTAL(feed_id) \
	"(SELECT t.entry_total_n FROM feeds f JOIN schedule t ON t.position = f.position WHERE f.id = " feed_id ")"

/* Lock an account in a transaction. FW_ENOTFOUND. */
int sql_account_lock(struct sql *s, int64_t account_id, struct fw_err *err);
/* FW_EVERSION: a store of an older schema, opened for reading. */
int sql_accounts_absent(const struct sql *s, struct fw_err *err);

/* ---- account_list.c: subscriptions with their counts ----------------------------------------- */

struct sql_subscription {
	int64_t feed_id, read_n, mark_id;
	struct fw_str folder;
	int64_t total_n, newest_ms; /* of the feed; total_n -1: it is gone */
	int64_t above_n;            /* its entries above above_id, of the same moment as total_n */
};
/* All of the account, by feed id; strings go into the arena. above_id 0: none is counted. */
int sql_subscriptions_read(struct sql *s, int64_t account_id, int64_t above_id, struct fw_arena *a,
	struct sql_subscription **out, size_t *n, struct fw_err *err);
/* NULL: the account has not subscribed to the feed. */
struct sql_subscription *sql_subscription_find(struct sql_subscription *at, size_t n, int64_t feed_id);
int sql_account_subscription_list(struct store *st, int64_t account_id, int64_t feed_id, bool brief,
	fw_subscription_cb *cb, void *ctx, struct fw_err *err);
int sql_account_newest_id(struct store *st, int64_t *id, struct fw_err *err);

/* ---- account_state.c: which entries an account has read -------------------------------------- */

struct sql_account_feed {
	int64_t feed_id, mark_id;
	size_t from, n; /* its exceptions */
	bool picked;
};
struct sql_account_state {
	int64_t account_id;
	struct sql_account_feed *feed; /* by feed id */
	size_t feed_n, picked_n;
	int64_t *exception; /* entry ids, by feed, rising */
	size_t exception_n;
	struct fw_buf feeds, exceptions;
};
/*
 * Read the subscriptions and exceptions of an account. pick: the feeds that feed_id and folder
 * name. Finish it in any case.
 */
int sql_account_state_read(
	struct sql *s, struct sql_account_state *st, const struct fw_stream *pick, struct fw_err *err);
void sql_account_state_finish(struct sql_account_state *st);
/* Do feed_id and folder of the stream name this subscription? */
bool sql_stream_names(const struct fw_stream *q, int64_t feed_id, struct fw_str folder);
/* NULL: not subscribed. */
struct sql_account_feed *sql_account_feed_find(const struct sql_account_state *st, int64_t feed_id);
bool sql_account_has_read(const struct sql_account_state *st, const struct sql_account_feed *f, int64_t entry_id);
/* Is id in the n rising numbers? */
bool sql_ids_have(const int64_t *ids, size_t n, int64_t id);

/* Change title and folder, where they are set. */
int sql_account_subscription_update(
	struct sql *s, int64_t account_id, const struct fw_subscription *set, struct fw_err *err);

/* The slots. */
int sql_account_subscribe(struct store *st, int64_t account_id, struct store_wanted_feed *w, size_t n, int64_t now_ms,
	struct fw_err *err);
int sql_account_room(struct store *st, int64_t account_id, int64_t *n, struct fw_err *err);
int sql_account_stream(
	struct store *st, const struct account_list_query *q, fw_stream_cb *cb, void *ctx, struct fw_err *err);
int sql_account_stream_feeds(struct store *st, const struct fw_stream *q, struct fw_buf *feeds, struct fw_err *err);
int sql_account_entries_get(struct store *st, int64_t account_id, const int64_t *ids, size_t n, bool content,
	fw_stream_cb *cb, void *ctx, struct fw_err *err);
int sql_account_edit(struct store *st, int64_t account_id, const int64_t *ids, size_t n,
	const struct fw_entry_edit *edit, int64_t now_ms, struct fw_err *err);
int sql_account_mark_read(
	struct store *st, const struct fw_stream *q, int64_t until_ms, int64_t last_id, struct fw_err *err);
int sql_account_dump(struct store *st, store_account_row_cb *cb, void *ctx, struct fw_err *err);
int sql_account_load(struct store *st, const struct store_account_row *row, size_t n, bool last, struct fw_err *err);
int sql_icon_find(struct store *st, const struct fw_str *url, size_t n, bool bytes, fw_icon_cb *cb, void *ctx,
	struct fw_err *err);
int sql_icon_put(struct store *st, const struct fw_icon *icon, struct fw_err *err);
/* The indexes that streams read: made with the first account, dropped with the last. */
int sql_account_indexes(struct sql *s, struct fw_err *err);

#endif
