/* SPDX-License-Identifier: ISC */
/*
 * Accounts: readers who share the store's feeds and entries, each with subscriptions, read marks,
 * stars and labels of its own. On SQL stores; on Redis each function returns FW_EINVAL and a
 * message.
 *
 * An entry's number (struct fw_entry_row.id) is the same in all accounts and all client APIs.
 * Numbers rise in the order in which entries were stored (rows.h says which).
 *
 * All functions block; all return 0 or an error code, FW_ENOTFOUND for what does not exist. Strings
 * are UTF-8; those that callbacks get are borrowed for the call.
 */
#ifndef FW_API_ACCOUNT_H
#define FW_API_ACCOUNT_H

#include "feedwheel/store.h"

struct fw_arena;
struct fw_config;

#define FW_ACCOUNT_NAME_MAX 64    /* letters, digits, '.', '_', '-', '@' */
#define FW_ACCOUNT_PASSWORD_MIN 8 /* bytes */
#define FW_ACCOUNT_PASSWORD_MAX 1024
#define FW_ACCOUNT_TOKEN_MAX 48      /* text of a token and NUL; [A-Za-z0-9] only (GRD-03) */
#define FW_ACCOUNT_TOKENS_MAX 100    /* of an account; sessions expire */
#define FW_LABELS_MAX 1000           /* of an account */
#define FW_LABELLED_MAX 200000       /* labels of all entries of an account together */
#define FW_EDIT_MAX ((size_t)100000) /* entries x (labels + read) of one edit */
#define FW_LABEL_NAME_MAX 200        /* bytes of a label, a folder, a title: UTF-8 without control characters */
#define FW_LABEL_STARRED 0           /* the label that every account has */

/* ---- limits of a request --------------------------------------------------------------------- */

/*
 * The work of one request in the store: it ends at until_ms, and when whoever asked has left. A
 * statement that runs then is cancelled, a read that comes later is refused, and what was not
 * committed is rolled back; both with FW_EAGAIN, and `over` is set. On MariaDB and MySQL a second
 * connection ends a statement when somebody has left; without one it ends by its time. Redis has no
 * limit.
 */
struct fw_work_limit {
	int64_t until_ms;                        /* monotonic */
	bool (*left)(void *ctx, int64_t now_ms); /* NULL: nobody can leave */
	void *ctx;
	bool over;         /* out */
	bool searched;     /* out: an account searched; false at first */
	int64_t looked_ms; /* private: zero at first */
};
/* l: kept until the next call, NULL: none. Cost: none by itself. */
void fw_store_limit(struct fw_store *st, struct fw_work_limit *l);

/* ---- accounts -------------------------------------------------------------------------------- */

struct fw_account {
	int64_t id; /* never reused */
	struct fw_str name;
	bool admin;                  /* may use the operator's routes too */
	int64_t created_ms, used_ms; /* used: last request, within some minutes; 0: never */
	uint64_t subscription_n;
	size_t token_n;           /* client tokens, without sessions */
	struct fw_str token_name; /* fw_account_token_find() only: the name of that token */
	uint64_t password_mark;   /* fw_account_get() only: another one after each change of the password */
};

/* FW_EINVAL: the name or the password is invalid, or the name is taken. */
FW_MUST_CHECK int fw_account_add(struct fw_store *st, struct fw_str name, struct fw_str password, bool admin,
	int64_t now_ms, int64_t *id, struct fw_err *err);
/* All sessions end with the old password; tokens of clients stay. */
FW_MUST_CHECK int fw_account_set_password(
	struct fw_store *st, struct fw_str name, struct fw_str password, struct fw_err *err);
FW_MUST_CHECK int fw_account_set_admin(struct fw_store *st, struct fw_str name, bool admin, struct fw_err *err);
/* With all that belongs to it; feeds and entries stay. */
FW_MUST_CHECK int fw_account_remove(struct fw_store *st, struct fw_str name, struct fw_err *err);
/* Strings go into the arena. */
FW_MUST_CHECK int fw_account_get(
	struct fw_store *st, struct fw_str name, struct fw_arena *a, struct fw_account *out, struct fw_err *err);
typedef int fw_account_cb(void *ctx, const struct fw_account *account);
/* By name. */
FW_MUST_CHECK int fw_account_list(struct fw_store *st, fw_account_cb *cb, void *ctx, struct fw_err *err);
/*
 * Check a password: 0 and the account's id; FW_ENOTFOUND: the name or the password is wrong, in the
 * same time. Cost: about 30 ms of CPU and 19 MiB for this call.
 */
FW_MUST_CHECK int fw_account_login(
	struct fw_store *st, struct fw_str name, struct fw_str password, int64_t *id, struct fw_err *err);

/* ---- tokens of clients, and sessions --------------------------------------------------------- */

enum fw_account_token_kind {
	FW_ACCOUNT_TOKEN_CLIENT,  /* made by `user token`: no expiry */
	FW_ACCOUNT_TOKEN_SESSION, /* of a browser: a use gives it its whole time again */
	FW_ACCOUNT_TOKEN_FEVER,   /* its text is the Fever API's key, md5 of "name:secret" */
	FW_ACCOUNT_TOKEN_LOGIN,   /* of a client that logged in with the password: ends with it, as sessions do */
	FW_ACCOUNT_TOKEN_KIND_N,
};
struct fw_account_token {
	struct fw_str name; /* "phone"; unique within the account and kind */
	enum fw_account_token_kind kind;
	int64_t created_ms, used_ms, until_ms; /* until: FW_NO_DATE: never */
};
/*
 * Make a token and write its text; only its hash is stored. One of the same name and kind is
 * replaced. For FEVER text is the secret that the user types as password.
 */
FW_MUST_CHECK int fw_account_token_add(struct fw_store *st, int64_t account_id, struct fw_str name,
	enum fw_account_token_kind kind, int64_t now_ms, int64_t until_ms, char text[FW_ACCOUNT_TOKEN_MAX],
	struct fw_err *err);
/* kind FW_ACCOUNT_TOKEN_KIND_N: those of every kind. FW_ENOTFOUND: there is none of this name. */
FW_MUST_CHECK int fw_account_token_remove(struct fw_store *st, int64_t account_id, enum fw_account_token_kind kind,
	struct fw_str name, struct fw_err *err);
typedef int fw_account_token_cb(void *ctx, const struct fw_account_token *token);
FW_MUST_CHECK int fw_account_token_list(
	struct fw_store *st, int64_t account_id, fw_account_token_cb *cb, void *ctx, struct fw_err *err);
/*
 * Whose token is this? CLIENT takes those of logins too. FW_ENOTFOUND: nobody's, or it has expired.
 * One lookup by its hash.
 */
FW_MUST_CHECK int fw_account_token_find(struct fw_store *st, struct fw_str text, enum fw_account_token_kind kind,
	int64_t now_ms, struct fw_arena *a, struct fw_account *out, struct fw_err *err);

/* ---- subscriptions --------------------------------------------------------------------------- */

struct fw_subscription {
	int64_t feed_id;
	struct fw_str title;  /* the account's; "": the feed's */
	struct fw_str folder; /* "": none; "News/Tech": below News */
	int64_t added_ms;
	int64_t unread_n;           /* out */
	int64_t newest_ms;          /* out: when the feed's newest entry was stored; 0: never */
	const struct fw_feed *feed; /* out: url, title, home_page_url, icon, extra, error, last visit; brief: NULL */
};

/*
 * Subscribe to feeds, or change title and folder of subscriptions that exist (members that are
 * absent stay). Of each feed url, username, password, user_title and folder are looked at; id and
 * existed are out. url is as a user types it: fw_url_clean(). A feed that is new to the store is
 * added to it, as `feedwheel add` does. The newest 100 entries that a feed has are unread. *added:
 * how many the account lacked.
 *
 * A title or a folder that is invalid is left out: it is no reason to refuse a file. A feed that is
 * stored with another login than the one in *feed, or with none, is left out: its id is 0 then.
 *
 * FW_EINVAL, and nothing is stored: a URL is invalid, no feed may be had, or they are more than
 * account_feeds_max permits. They are stored in parts, so that other writers wait for one only;
 * after another error some may be stored.
 */
FW_MUST_CHECK int fw_account_import(struct fw_store *st, int64_t account_id, struct fw_feed_new *feed, size_t n,
	int64_t now_ms, size_t *added, struct fw_err *err);
/* What fw_account_subscribe_all() did, or would do. */
struct fw_account_all {
	size_t added_n; /* subscriptions that the account lacked */
	size_t had_n;   /* feeds that it had: their titles and folders stay */
	size_t login_n; /* feeds with a login, which are left out: whoever knows it subscribes by the address */
	bool more;      /* there are further ones: limit was reached */
};
/*
 * Subscribe to the feeds that the operator collects, with the operator's titles and folders; feeds
 * that accounts brought are left out. limit: at most so many new ones, 0: all. count: change
 * nothing. Cost: a row of each feed that is read; the new ones in transactions of 1,000. After an
 * error those before it stay, and a repetition goes on with the rest.
 */
FW_MUST_CHECK int fw_account_subscribe_all(struct fw_store *st, int64_t account_id, size_t limit, bool count,
	int64_t now_ms, struct fw_account_all *out, struct fw_err *err);
/* FW_ENOTFOUND: the account does not subscribe this feed. FW_EINVAL: as above. */
FW_MUST_CHECK int fw_account_subscription_set(
	struct fw_store *st, int64_t account_id, const struct fw_subscription *set, struct fw_err *err);
/* Stars and labels stay. */
FW_MUST_CHECK int fw_account_unsubscribe(struct fw_store *st, int64_t account_id, int64_t feed_id, struct fw_err *err);
typedef int fw_subscription_cb(void *ctx, const struct fw_subscription *s);
/*
 * By feed id. feed_id not 0: only this one. brief: without title and feed; then the cost is two
 * narrow rows of each subscription, and no entry.
 */
FW_MUST_CHECK int fw_account_subscription_list(struct fw_store *st, int64_t account_id, int64_t feed_id, bool brief,
	fw_subscription_cb *cb, void *ctx, struct fw_err *err);
/* Rename a folder and, unless only, those below it; to "": their subscriptions are in none. */
FW_MUST_CHECK int fw_account_folder_rename(
	struct fw_store *st, int64_t account_id, struct fw_str from, struct fw_str to, bool only, struct fw_err *err);

/* ---- labels ---------------------------------------------------------------------------------- */

struct fw_label {
	int64_t id; /* FW_LABEL_STARRED is not listed */
	struct fw_str name;
	int64_t entry_n;
};
typedef int fw_label_cb(void *ctx, const struct fw_label *label);
FW_MUST_CHECK int fw_account_label_list(
	struct fw_store *st, int64_t account_id, fw_label_cb *cb, void *ctx, struct fw_err *err);
/*
 * The label's id; make: created if there is none, else FW_ENOTFOUND. FW_EINVAL: the name is
 * invalid, or the account has FW_LABELS_MAX labels.
 */
FW_MUST_CHECK int fw_account_label(
	struct fw_store *st, int64_t account_id, struct fw_str name, bool make, int64_t *id, struct fw_err *err);
/* to "": removed, and its entries lose it. FW_EINVAL: the name is taken. */
FW_MUST_CHECK int fw_account_label_rename(
	struct fw_store *st, int64_t account_id, struct fw_str from, struct fw_str to, struct fw_err *err);

/* ---- entries --------------------------------------------------------------------------------- */

/* Orders that read a row of each entry that matches, whatever the limit. */
enum fw_stream_sort {
	FW_SORT_NONE,
	FW_SORT_CHANGED, /* when the entry was stored, or else last changed */
	FW_SORT_TITLE,   /* its start, without case and accents */
	FW_SORT_AUTHOR,  /* the same */
	FW_SORT_N,
};

enum fw_read_filter { FW_READ_ANY, FW_READ_UNREAD, FW_READ_READ };

/* Which entries of an account: all parts must hold. */
struct fw_stream {
	int64_t account_id;
	int64_t feed_id;      /* 0: all subscriptions. A feed that is not subscribed has only labelled entries */
	struct fw_str folder; /* with all below it; "": subscriptions in none; absent: any */
	bool folder_only;     /* with folder: without those below it */
	bool labelled;        /* only entries with label_id */
	int64_t label_id;     /* FW_LABEL_STARRED, or a label's id */
	bool not_labelled;    /* without label_id (xt=starred) */
	enum fw_read_filter read;
	int64_t since_ms, until_ms; /* stored at or after, and before; 0: any time */
	int64_t published_since_ms, published_until_ms;
	int64_t after_id, before_id; /* both exclusive; 0: none */
	struct fw_str search;        /* feedwheel-query(7); absent: none */
	bool oldest_first;
	bool by_date;                      /* by fw_store_entry_date() and id, else by id */
	enum fw_stream_sort sort;          /* then by id; not with by_date */
	int64_t behind_id, behind_date_ms; /* by_date: the last entry seen; 0: none */
	size_t offset, limit;              /* limit 0: all; offset: of Miniflux, costs its rows */
	bool content;
};

struct fw_stream_entry {
	const struct fw_entry_row *entry; /* fw_account_ids(): only id and feed_id are set */
	bool read;                        /* entries of feeds that are not subscribed are */
	bool starred;                     /* not for fw_account_ids() */
	const int64_t *label_id;          /* of the account, without starred; not for fw_account_ids() */
	size_t label_n;
};
typedef int fw_stream_cb(void *ctx, const struct fw_stream_entry *e);
/* A callback's result other than 0 stops the walk and is returned. */
FW_MUST_CHECK int fw_account_entries(
	struct fw_store *st, const struct fw_stream *s, fw_stream_cb *cb, void *ctx, struct fw_err *err);
/*
 * Only numbers, feeds and read: no row of an entry is read unless a date or a search needs it.
 */
FW_MUST_CHECK int fw_account_ids(
	struct fw_store *st, const struct fw_stream *s, fw_stream_cb *cb, void *ctx, struct fw_err *err);
/* Entries by number, in the order of ids[]; those that the account may not see are left out. */
FW_MUST_CHECK int fw_account_entries_get(struct fw_store *st, int64_t account_id, const int64_t *ids, size_t n,
	bool content, fw_stream_cb *cb, void *ctx, struct fw_err *err);
/*
 * A query for what a person typed into a reader's search: the text itself, if it is one
 * (feedwheel-query(7)), else its first words. *out in the arena or text; absent: there is no word,
 * so nothing matches. FW_ENOMEM.
 */
FW_MUST_CHECK int fw_account_query(
	struct fw_arena *a, struct fw_str text, int64_t now_ms, struct fw_str *out, struct fw_err *err);
/* How many entries match; the cost of fw_account_ids(). */
FW_MUST_CHECK int fw_account_count(struct fw_store *st, const struct fw_stream *s, int64_t *n, struct fw_err *err);

/* What happens to the entries of one edit. */
struct fw_entry_edit {
	int read;                    /* 1 read, 0 unread, -1 as it is */
	const int64_t *add, *remove; /* label ids, FW_LABEL_STARRED among them */
	size_t add_n, remove_n;
};
/*
 * Numbers that the account may not see are skipped. 10,000 entries with one change of each are one
 * transaction of few statements, of which all or none is stored; more are stored in parts, so that
 * other writers wait for one only. FW_EINVAL: they are more than FW_EDIT_MAX changes, or more than
 * FW_LABELLED_MAX labels.
 */
FW_MUST_CHECK int fw_account_edit(struct fw_store *st, int64_t account_id, const int64_t *ids, size_t n,
	const struct fw_entry_edit *edit, int64_t now_ms, struct fw_err *err);
/*
 * Mark as read what s says (only account_id, feed_id, folder, folder_only, labelled and label_id
 * are looked at), up to what was stored before until_ms (0: all), and with a number up to and with
 * last_id (0: all).
 */
FW_MUST_CHECK int fw_account_mark_read(
	struct fw_store *st, const struct fw_stream *s, int64_t until_ms, int64_t last_id, struct fw_err *err);

/* No entry of the store has a higher number. */
FW_MUST_CHECK int fw_account_newest_id(struct fw_store *st, int64_t *id, struct fw_err *err);

/* ---- icons ----------------------------------------------------------------------------------- */

/*
 * A cache of pictures, by their addresses, so that the feeds of one site share one. An icon that
 * was fetched is fetched again after FW_ICON_FRESH_MS, one that was not after FW_ICON_RETRY_MS, or
 * FW_ICON_REACH_MS, if its site was out of reach, which may have been our network's fault;
 * retention removes one that nobody has fetched for FW_ICON_KEEP_MS, because no feed that is read
 * names it any more. Who may see which icon is decided above.
 */
#define FW_ICON_MAX_BYTES ((size_t)64 << 10)
#define FW_ICON_FRESH_MS (30 * INT64_C(86400000))
#define FW_ICON_RETRY_MS (7 * INT64_C(86400000))
#define FW_ICON_REACH_MS INT64_C(86400000)
#define FW_ICON_KEEP_MS (60 * INT64_C(86400000))

struct fw_icon {
	int64_t id; /* out; another one when the picture changes; never reused */
	struct fw_str url;
	struct fw_str type;  /* "image/png"; absent: there is no picture */
	struct fw_str bytes; /* absent if not wanted, and without a picture */
	int64_t tried_ms;    /* the last fetch; earlier if it did not reach the site */
	bool failed;         /* that brought no picture; an older one stays */
};
/* Is it time to fetch it again? */
bool fw_icon_is_stale(const struct fw_icon *icon, int64_t now_ms);
typedef int fw_icon_cb(void *ctx, const struct fw_icon *icon);
/*
 * Those of n different addresses that the store has, in any order; bytes: with their pictures. A
 * callback's result other than 0 stops the list and is returned.
 */
FW_MUST_CHECK int fw_icon_find(struct fw_store *st, const struct fw_str *url, size_t n, bool bytes, fw_icon_cb *cb,
	void *ctx, struct fw_err *err);
/*
 * Store what a fetch brought: type and bytes, or failed. FW_EINVAL: larger than FW_ICON_MAX_BYTES.
 * FW_EAGAIN: another process stored it meanwhile.
 */
FW_MUST_CHECK int fw_icon_put(struct fw_store *st, const struct fw_icon *icon, struct fw_err *err);

#endif
