/* SPDX-License-Identifier: ISC */
/*
 * The contract of a driver for accounts: store_driver.accounts, NULL where there are none (Redis).
 * api/account.h describes rows and functions.
 *
 * Names and passwords are checked above: the store keeps what it gets. The rules of driver.h hold.
 *
 *   - The state of an account changes only while its row of `accounts` is locked; entries go only
 *     while all accounts are locked. So edits of one account wait for each other, of two do not.
 *   - An entry that is removed takes its exceptions and labels along. Retention and retraction keep
 *     entries with labels; entries go with their feed, whatever labels they have.
 */
#ifndef FW_STORE_ACCOUNTS_H
#define FW_STORE_ACCOUNTS_H

#include "api/account.h"
#include "store/driver.h"
#include "store/feed_access.h"

#define STORE_EDIT_ROWS ((size_t)10000) /* that one transaction of an account changes: others wait for it */
#define FW_ICON_STEP 1000               /* addresses of one icon_find() */
#define FW_ACCOUNT_FRESH_N 100          /* so many entries of a feed are unread for a new subscriber */

struct fw_buf;

struct store_account {
	struct fw_account a;
	struct fw_str password; /* its hash */
};
typedef int store_account_cb(void *ctx, const struct store_account *account);

/* A token: the first 16 bytes of its SHA-256. */
struct store_token {
	struct fw_account_token t;
	int64_t account_id;
	unsigned char hash[16];
	char found_name[256]; /* out of token_find() */
};

enum { STORE_ACCOUNT_PASSWORD = 1, STORE_ACCOUNT_ADMIN = 2, STORE_ACCOUNT_USED = 4 };

/* A list of an account's entries, as the front prepares it. */
struct account_list_query {
	const struct fw_stream *s;
	const int64_t *found; /* s->search: only these entries, by id; their feeds */
	const int64_t *found_feed;
	size_t found_n;
	bool whole;   /* rows of entries are wanted, not only numbers */
	bool counted; /* only *n is wanted */
	int64_t *n;   /* out: how many there were; NULL: not wanted */
};

/* A row of a table of accounts, for copies: the table's number, its numbers and its texts. */
#define STORE_ACCOUNT_INTS 6
#define STORE_ACCOUNT_STRS 2
struct store_account_row {
	int table;
	int64_t n[STORE_ACCOUNT_INTS]; /* FW_NO_DATE: NULL */
	struct fw_str s[STORE_ACCOUNT_STRS];
};
typedef int store_account_row_cb(void *ctx, const struct store_account_row *row);

/* A feed that an account wants. */
struct store_wanted_feed {
	struct fw_subscription set; /* feed_id: of a feed that exists */
	struct feed_login login;    /* that the account gives */
	bool fresh;                 /* it was added for this subscription: it is noted as an account's */
	bool existed;               /* out: the account subscribed it already */
	enum feed_access access;    /* out */
	const char *refused;        /* out: why the account may not have it; NULL: it has it */
};

struct store_accounts {
	/* *id out. FW_EINVAL: the name is taken. */
	int (*add)(struct store *st, const struct store_account *a, int64_t *id, struct fw_err *err);
	/* With a password: sessions and logins of clients end. */
	int (*set)(struct store *st, const struct store_account *a, unsigned what, struct fw_err *err);
	int (*remove)(struct store *st, int64_t id, struct fw_err *err);
	/* name absent: all, by name. One that does not exist is no error. */
	int (*list)(struct store *st, struct fw_str name, store_account_cb *cb, void *ctx, struct fw_err *err);

	/* In place of one of the same account, kind and name. Expired ones of the account go. */
	int (*token_put)(struct store *st, const struct store_token *t, int64_t now_ms, struct fw_err *err);
	int (*token_remove)(struct store *st, int64_t account_id, enum fw_account_token_kind kind, struct fw_str name,
		struct fw_err *err);
	int (*token_list)(struct store *st, int64_t account_id, fw_account_token_cb *cb, void *ctx, struct fw_err *err);
	/* The account of the token with t->hash; *t is filled. cb is called once. */
	int (*token_find)(struct store *st, struct store_token *t, store_account_cb *cb, void *ctx, struct fw_err *err);
	/* The token, and its account, were used now. */
	int (*token_use)(struct store *st, const struct store_token *t, int64_t now_ms, struct fw_err *err);

	/*
	 * Add or change subscriptions, of feeds that the account may have (feed_access.h) and up to
	 * the limit of feeds that the store was opened with. FW_ENOTFOUND: no such feed or account.
	 */
	int (*subscribe)(struct store *st, int64_t account_id, struct store_wanted_feed *w, size_t n, int64_t now_ms,
		struct fw_err *err);
	/* How many more feeds may the account subscribe? */
	int (*room)(struct store *st, int64_t account_id, int64_t *n, struct fw_err *err);
	int (*subscription_set)(
		struct store *st, int64_t account_id, const struct fw_subscription *set, struct fw_err *err);
	int (*unsubscribe)(struct store *st, int64_t account_id, int64_t feed_id, struct fw_err *err);
	/* How many accounts subscribe the feed? */
	int (*subscriber_count)(struct store *st, int64_t feed_id, int64_t *n, struct fw_err *err);
	int (*subscription_list)(struct store *st, int64_t account_id, int64_t feed_id, bool brief,
		fw_subscription_cb *cb, void *ctx, struct fw_err *err);
	int (*folder_rename)(struct store *st, int64_t account_id, struct fw_str from, struct fw_str to, bool only,
		struct fw_err *err);

	int (*label_list)(struct store *st, int64_t account_id, fw_label_cb *cb, void *ctx, struct fw_err *err);
	int (*label)(
		struct store *st, int64_t account_id, struct fw_str name, bool make, int64_t *id, struct fw_err *err);
	int (*label_rename)(
		struct store *st, int64_t account_id, struct fw_str from, struct fw_str to, struct fw_err *err);

	int (*stream)(
		struct store *st, const struct account_list_query *s, fw_stream_cb *cb, void *ctx, struct fw_err *err);
	/*
	 * The feeds whose entries the stream can have, as int64_t, each once: what a search is
	 * limited to
	 */
	int (*stream_feeds)(struct store *st, const struct fw_stream *s, struct fw_buf *feeds, struct fw_err *err);
	int (*entries_get)(struct store *st, int64_t account_id, const int64_t *ids, size_t n, bool content,
		fw_stream_cb *cb, void *ctx, struct fw_err *err);
	int (*edit)(struct store *st, int64_t account_id, const int64_t *ids, size_t n,
		const struct fw_entry_edit *edit, int64_t now_ms, struct fw_err *err);
	int (*mark_read)(
		struct store *st, const struct fw_stream *s, int64_t until_ms, int64_t last_id, struct fw_err *err);
	int (*newest_id)(struct store *st, int64_t *id, struct fw_err *err);

	/* Icons: a cache, which is not copied. n is at most FW_ICON_STEP. */
	int (*icon_find)(struct store *st, const struct fw_str *url, size_t n, bool bytes, fw_icon_cb *cb, void *ctx,
		struct fw_err *err);
	int (*icon_put)(struct store *st, const struct fw_icon *icon, struct fw_err *err);

	/* All rows of all accounts, by table; for copies. */
	int (*dump)(struct store *st, store_account_row_cb *cb, void *ctx, struct fw_err *err);
	/* n 0: remove all accounts. last: count unread entries anew, drop rows without entry. */
	int (*load)(struct store *st, const struct store_account_row *row, size_t n, bool last, struct fw_err *err);
};

/* NULL, with an error: this store has no accounts. */
const struct store_accounts *store_accounts(struct store *st, struct fw_err *err);
/* A store may lack accounts: has it any? False also where it cannot have some. */
int store_accounts_any(struct store *st, bool *any, struct fw_err *err);
int store_account_missing(const char *store, struct fw_err *err); /* FW_ENOTFOUND */
/* A folder's name without "/" and spaces around it. */
struct fw_str store_folder_trim(struct fw_str folder);
/* May folder `from` be renamed: is path in it? *rest: what follows. */
bool store_folder_rest(struct fw_str from, struct fw_str path, struct fw_str *rest);

#endif
