/* SPDX-License-Identifier: ISC */
/*
 * The front, part 5: accounts. What needs no secrets (api/account.h); the rest is in
 * engine/accounts. It checks arguments, and finds what a search names.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/utf8.h"
#include "query/query.h"
#include "query/words.h"
#include "store/accounts.h"

const struct store_accounts *store_accounts(struct store *st, struct fw_err *err)
{
	if (!st->driver->accounts)
		(void)fw_err_set(err, FW_EINVAL,
			"accounts need an SQL store: SQLite, PostgreSQL or MariaDB (this one is %s)", st->driver->name);
	return st->driver->accounts;
}

static int accounts_any_one(void *ctx, const struct store_account *a)
{
	(void)a;
	*(bool *)ctx = true;
	return 1;
}

int store_accounts_any(struct store *st, bool *any, struct fw_err *err)
{
	int rc;

	*any = false;
	if (!st->driver->accounts)
		return 0;
	rc = st->driver->accounts->list(st, FW_STR_NONE, accounts_any_one, any, err);
	return rc == 1 ? 0 : rc;
}

bool store_folder_rest(struct fw_str from, struct fw_str path, struct fw_str *rest)
{
	if (!from.len || !fw_str_starts(path, from) || (path.len > from.len && path.p[from.len] != '/'))
		return false;
	*rest = fw_str_sub(path, from.len, path.len);
	return true;
}

/* Call a slot, or return the error that there is none. */
#define ACCOUNTS(st, slot, ...)                                                           \
	(store_accounts(store_of(st), STORE_ERR(err)) ?                                   \
			store_of(st)->driver->accounts->slot(store_of(st), __VA_ARGS__) : \
			FW_EINVAL)

/* ---- subscriptions --------------------------------------------------------------------------- */

#define FITS " at most 200 bytes of UTF-8, without control characters"

/* MariaDB compares without the spaces at the end, others with them: names have none. */
static struct fw_str account_name_trim(struct fw_str s)
{
	while (s.len && s.p[0] == ' ')
		s = fw_str_sub(s, 1, s.len);
	while (s.len && s.p[s.len - 1] == ' ')
		s.len--;
	return s;
}

struct fw_str store_folder_trim(struct fw_str folder)
{
	size_t n;

	do {
		n = folder.len;
		folder = account_name_trim(fw_path_trim(folder));
	} while (folder.len != n);
	return folder;
}

static int account_folder_check(const struct store *to, struct fw_str *folder, struct fw_err *err)
{
	if (!fw_utf8_fits(*folder, FW_LABEL_NAME_MAX))
		return store_invalid(to, "account: a folder has" FITS, err);
	*folder = folder->p ? store_folder_trim(*folder) : *folder;
	return 0;
}

static int subscription_check(const struct store *to, struct fw_subscription *s, struct fw_err *err)
{
	if (!fw_utf8_fits(s->title, FW_LABEL_NAME_MAX))
		return store_invalid(to, "account: a title has" FITS, err);
	return account_folder_check(to, &s->folder, err);
}

int fw_account_subscription_set(
	struct fw_store *st, int64_t account_id, const struct fw_subscription *set, struct fw_err *err)
{
	struct fw_subscription s = *set;
	int rc = subscription_check(store_of(st), &s, STORE_ERR(err));

	return rc ? rc : ACCOUNTS(st, subscription_set, account_id, &s, STORE_ERR(err));
}

int fw_account_subscription_list(struct fw_store *st, int64_t account_id, int64_t feed_id, bool brief,
	fw_subscription_cb *cb, void *ctx, struct fw_err *err)
{
	return ACCOUNTS(st, subscription_list, account_id, feed_id, brief, cb, ctx, STORE_ERR(err));
}

int fw_account_folder_rename(
	struct fw_store *st, int64_t account_id, struct fw_str from, struct fw_str to, bool only, struct fw_err *err)
{
	int rc = account_folder_check(store_of(st), &to, STORE_ERR(err));

	from = store_folder_trim(from);
	if (!rc && !from.len)
		rc = store_invalid(store_of(st), "account: the folder's name is missing", STORE_ERR(err));
	return rc ? rc : ACCOUNTS(st, folder_rename, account_id, from, to, only, STORE_ERR(err));
}

/* ---- labels ---------------------------------------------------------------------------------- */

static int account_label_check(const struct store *to, struct fw_str name, struct fw_err *err)
{
	return !name.len || !fw_utf8_fits(name, FW_LABEL_NAME_MAX) ?
		store_invalid(to, "account: a label's name is not empty, and has" FITS, err) :
		0;
}

int fw_account_label_list(struct fw_store *st, int64_t account_id, fw_label_cb *cb, void *ctx, struct fw_err *err)
{
	return ACCOUNTS(st, label_list, account_id, cb, ctx, STORE_ERR(err));
}

int fw_account_label(
	struct fw_store *st, int64_t account_id, struct fw_str name, bool make, int64_t *id, struct fw_err *err)
{
	int rc;

	*id = 0;
	name = account_name_trim(name);
	rc = account_label_check(store_of(st), name, STORE_ERR(err));
	return rc ? rc : ACCOUNTS(st, label, account_id, name, make, id, STORE_ERR(err));
}

int fw_account_label_rename(
	struct fw_store *st, int64_t account_id, struct fw_str from, struct fw_str to, struct fw_err *err)
{
	int rc = 0;

	if (to.len) {
		to = account_name_trim(to);
		rc = account_label_check(store_of(st), to, STORE_ERR(err));
	}
	from = account_name_trim(from);
	return rc ? rc : ACCOUNTS(st, label_rename, account_id, from, to, STORE_ERR(err));
}

/* ---- streams --------------------------------------------------------------------------------- */

/* An entry that a search found. */
struct account_hit {
	int64_t id, feed_id;
};

static int account_hit_add(void *ctx, const struct fw_entry_row *e)
{
	const struct account_hit h = {e->id, e->feed_id};

	fw_buf_add(ctx, &h, sizeof(h));
	return ((struct fw_buf *)ctx)->rc;
}

FW_COMPARE(account_hit_compare, struct account_hit, id)

/*
 * The entries that match the search, among those of the feeds that the stream can have: what an
 * account may not read is not looked for. Without feeds the search is only checked.
 */
static int account_search(struct fw_store *st, const struct fw_stream *s, struct fw_buf *hits, struct fw_err *err)
{
	struct fw_buf feeds = FW_BUF_INIT(0);
	static const int64_t NO_FEED = -1;
	struct fw_entry_query q = {.search = s->search,
		.since_ms = s->since_ms,
		.until_ms = s->until_ms,
		.after_id = s->after_id,
		.before_id = s->before_id};
	int rc = store_of(st)->driver->accounts->stream_feeds(store_of(st), s, &feeds, STORE_ERR(err));

	q.feed_n = feeds.len / sizeof(*q.feed_ids);
	q.feed_ids = q.feed_n ? (const int64_t *)(const void *)feeds.p : &NO_FEED;
	q.feed_n = FW_MAX(q.feed_n, (size_t)1);
	rc = rc ? rc : fw_store_entry_list(st, &q, account_hit_add, hits, err);
	fw_buf_finish(&feeds);
	if (rc == FW_ENOMEM)
		return fw_no_memory(STORE_ERR(err));
	if (!rc && hits->len)
		qsort(hits->p, hits->len / sizeof(struct account_hit), sizeof(struct account_hit), account_hit_compare);
	return rc;
}

static int account_stream_search(
	struct fw_store *st, struct account_list_query *q, fw_stream_cb *cb, void *ctx, struct fw_err *err)
{
	struct fw_work_limit *limit = store_of(st)->limit;
	struct fw_buf hits = FW_BUF_INIT(0);
	const struct account_hit *h;
	int64_t *id = NULL;
	int rc = account_search(st, q->s, &hits, err);

	if (limit)
		limit->searched = true;
	h = (const struct account_hit *)(const void *)hits.p;
	q->found_n = hits.len / sizeof(*h);
	id = rc ? NULL : calloc(2 * q->found_n + 1, sizeof(*id));
	rc = rc || id ? rc : fw_no_memory(STORE_ERR(err));
	for (size_t i = 0; !rc && i < q->found_n; i++) {
		id[i] = h[i].id;
		id[q->found_n + i] = h[i].feed_id;
	}
	fw_buf_finish(&hits);
	if (!rc) {
		q->found = id;
		q->found_feed = id + q->found_n;
		rc = store_of(st)->driver->accounts->stream(store_of(st), q, cb, ctx, STORE_ERR(err));
	}
	free(id);
	return rc;
}

static int account_stream(
	struct fw_store *st, struct account_list_query *q, fw_stream_cb *cb, void *ctx, struct fw_err *err)
{
	if (!store_accounts(store_of(st), STORE_ERR(err)))
		return FW_EINVAL;
	if (q->s->labelled && q->s->not_labelled)
		return store_invalid(store_of(st), "account: a stream with a label and without it", STORE_ERR(err));
	if (q->s->search.p)
		return account_stream_search(st, q, cb, ctx, err);
	return store_of(st)->driver->accounts->stream(store_of(st), q, cb, ctx, STORE_ERR(err));
}

int fw_account_entries(struct fw_store *st, const struct fw_stream *s, fw_stream_cb *cb, void *ctx, struct fw_err *err)
{
	return account_stream(st, &(struct account_list_query){.s = s, .whole = true}, cb, ctx, err);
}

int fw_account_ids(struct fw_store *st, const struct fw_stream *s, fw_stream_cb *cb, void *ctx, struct fw_err *err)
{
	return account_stream(st, &(struct account_list_query){.s = s}, cb, ctx, err);
}

int fw_account_count(struct fw_store *st, const struct fw_stream *s, int64_t *n, struct fw_err *err)
{
	*n = 0;
	return account_stream(st, &(struct account_list_query){.s = s, .counted = true, .n = n}, NULL, NULL, err);
}

int fw_account_entries_get(struct fw_store *st, int64_t account_id, const int64_t *ids, size_t n, bool content,
	fw_stream_cb *cb, void *ctx, struct fw_err *err)
{
	return n ? ACCOUNTS(st, entries_get, account_id, ids, n, content, cb, ctx, STORE_ERR(err)) : 0;
}

int fw_account_query(struct fw_arena *a, struct fw_str text, int64_t now_ms, struct fw_str *out, struct fw_err *err)
{
	struct fw_buf folded = FW_BUF_INIT(0), words = FW_BUF_INIT(0);
	struct query_token word;
	struct query_node *q;
	struct fw_err why = {0};
	struct fw_str rest;
	int rc = query_parse(a, text, now_ms, &q, &why);

	*out = text;
	if (rc != FW_EINVAL)
		return rc ? fw_no_memory(err) : 0;
	query_words(&folded, fw_str_sub(text, 0, QUERY_LENGTH_MAX));
	rest = fw_buf_str(&folded);
	for (size_t n = 0; n < QUERY_TERMS_MAX && query_token_next(&rest, &word); n++) {
		if (words.len + word.len >= QUERY_LENGTH_MAX)
			break;
		fw_buf_add(&words, word.text, word.len);
		fw_buf_addc(&words, ' ');
	}
	*out = words.len ? fw_arena_str(a, fw_buf_str(&words)) : FW_STR_NONE;
	rc = folded.rc || words.rc || a->failed ? fw_no_memory(err) : 0;
	fw_buf_finish(&folded);
	fw_buf_finish(&words);
	return rc;
}

/* ---- edits ----------------------------------------------------------------------------------- */

/* Between two parts others write. */
int fw_account_edit(struct fw_store *st, int64_t account_id, const int64_t *ids, size_t n,
	const struct fw_entry_edit *edit, int64_t now_ms, struct fw_err *err)
{
	size_t per = FW_MAX((edit->read >= 0) + edit->add_n + edit->remove_n, (size_t)1);
	size_t step = FW_MAX(STORE_EDIT_ROWS / per, (size_t)1);
	int rc = 0;

	if (n > FW_EDIT_MAX / per)
		return fw_err_set(err, FW_EINVAL,
			"account: %zu entries with %zu changes of each are too many for one edit, which takes %zu of"
			" them",
			n, per, FW_EDIT_MAX / per);
	for (size_t i = 0; !rc && i < n; i += step)
		rc = ACCOUNTS(st, edit, account_id, ids + i, FW_MIN(n - i, step), edit, now_ms, STORE_ERR(err));
	return rc;
}

int fw_account_mark_read(
	struct fw_store *st, const struct fw_stream *s, int64_t until_ms, int64_t last_id, struct fw_err *err)
{
	return ACCOUNTS(st, mark_read, s, until_ms, last_id, STORE_ERR(err));
}

int fw_account_newest_id(struct fw_store *st, int64_t *id, struct fw_err *err)
{
	*id = 0;
	return ACCOUNTS(st, newest_id, id, STORE_ERR(err));
}

/* ---- icons ----------------------------------------------------------------------------------- */

bool fw_icon_is_stale(const struct fw_icon *icon, int64_t now_ms)
{
	return now_ms - icon->tried_ms >= (icon->failed ? FW_ICON_RETRY_MS : FW_ICON_FRESH_MS);
}

int fw_icon_find(struct fw_store *st, const struct fw_str *url, size_t n, bool bytes, fw_icon_cb *cb, void *ctx,
	struct fw_err *err)
{
	size_t step = bytes ? 64 : FW_ICON_STEP; /* 4 MiB of pictures */
	int rc = 0;

	for (size_t i = 0; !rc && i < n; i += step)
		rc = ACCOUNTS(st, icon_find, url + i, FW_MIN(n - i, step), bytes, cb, ctx, STORE_ERR(err));
	return rc;
}

int fw_icon_put(struct fw_store *st, const struct fw_icon *icon, struct fw_err *err)
{
	assert(icon->url.len && icon->failed == !icon->type.len);
	if (icon->bytes.len > FW_ICON_MAX_BYTES)
		return store_invalid(store_of(st), "an icon has at most 64 KiB", STORE_ERR(err));
	return ACCOUNTS(st, icon_put, icon, STORE_ERR(err));
}
