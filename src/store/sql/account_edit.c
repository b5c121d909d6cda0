/* SPDX-License-Identifier: ISC */
/* Edits of an account's state: entries read, unread, labelled; all read up to an entry. */
#include <assert.h>
#include <stdlib.h>

#include "store/sql/accounts.h"

/* ---- edit ------------------------------------------------------------------------------------ */

/* An entry of the edit. */
struct account_edit_entry {
	int64_t id, feed_id; /* feed_id 0: there is no such entry */
	int64_t mark_id;
	bool subscribed, labelled, exception;
};

struct account_editing {
	struct sql *s;
	int64_t account_id, now_ms;
	const struct fw_entry_edit *edit;
	struct account_edit_entry *e; /* by id, each once */
	size_t n;
};

static int account_edit_entry_row(void *ctx, const struct sql_row *row)
{
	const struct account_editing *w = ctx;

	w->e[sql_int(row, 0)].feed_id = sql_int(row, 1);
	return 0;
}

static int account_edit_mark_row(void *ctx, const struct sql_row *row)
{
	const struct account_editing *w = ctx;

	w->e[sql_int(row, 0)].subscribed = true;
	w->e[sql_int(row, 0)].mark_id = sql_int(row, 1);
	return 0;
}

static int account_edit_exception_row(void *ctx, const struct sql_row *row)
{
	const struct account_editing *w = ctx;

	w->e[sql_int(row, 0)].exception = true;
	return 0;
}

static int account_edit_label_row(void *ctx, const struct sql_row *row)
{
	const struct account_editing *w = ctx;

	w->e[sql_int(row, 0)].labelled = true;
	return 0;
}

static int account_edit_entries_read(struct account_editing *w, struct fw_err *err)
{
	struct sql_rows r = SQL_QUERY_ROWS(w->s, err, account_edit_entry_row, w,
		"SELECT v.nth, e.feed_id FROM {rows} entries e WHERE e.id = v.spot", "nth:i spot:i");

	for (size_t i = 0; i < w->n; i++)
		sql_rows_add(&r, SQL_V(SQL_INT(i), SQL_INT(w->e[i].id)));
	return sql_rows_end(&r);
}

/* For many entries all marks and exceptions are read, in two passes. */
static int account_edit_state_all(struct account_editing *w, struct fw_err *err)
{
	struct sql_account_state st;
	int rc = sql_account_state_read(w->s, &st, &(struct fw_stream){.account_id = w->account_id}, err);

	for (size_t i = 0; !rc && i < w->n; i++) {
		struct account_edit_entry *e = &w->e[i];
		const struct sql_account_feed *f = e->feed_id ? sql_account_feed_find(&st, e->feed_id) : NULL;

		if (!f)
			continue;
		e->subscribed = true;
		e->mark_id = f->mark_id;
		e->exception = sql_account_has_read(&st, f, e->id) != (e->id <= f->mark_id);
	}
	sql_account_state_finish(&st);
	return rc;
}

static int account_edit_state(struct account_editing *w, struct fw_err *err)
{
	struct sql_rows mark = SQL_QUERY_ROWS(w->s, err, account_edit_mark_row, w,
		"SELECT v.nth, t.mark_id FROM {rows} subscriptions t WHERE t.account_id = v.owner AND t.feed_id ="
		" v.feed",
		"nth:i owner:i feed:i");
	struct sql_rows exception = SQL_QUERY_ROWS(w->s, err, account_edit_exception_row, w,
		"SELECT v.nth FROM {rows} read_exceptions x WHERE x.account_id = v.owner AND x.feed_id = v.feed"
		" AND x.entry_id = v.spot",
		"nth:i owner:i feed:i spot:i");
	const struct sql_value owner = SQL_INT(w->account_id);

	for (size_t i = 0; i < w->n; i++) {
		if (w->e[i].feed_id)
			sql_rows_add(&mark, SQL_V(SQL_INT(i), owner, SQL_INT(w->e[i].feed_id)));
	}
	exception.rc = sql_rows_end(&mark);
	for (size_t i = 0; w->edit->read >= 0 && i < w->n; i++) {
		if (w->e[i].subscribed)
			sql_rows_add(
				&exception, SQL_V(SQL_INT(i), owner, SQL_INT(w->e[i].feed_id), SQL_INT(w->e[i].id)));
	}
	return sql_rows_end(&exception);
}

/* Which entries have a label? Asked only for those whose feed is not subscribed. */
static int account_edit_labelled(struct account_editing *w, struct fw_err *err)
{
	struct sql_rows label = SQL_QUERY_ROWS(w->s, err, account_edit_label_row, w,
		"SELECT v.nth FROM {rows} entry_labels l WHERE l.entry_id = v.spot AND l.account_id = v.owner",
		"nth:i owner:i spot:i");
	const struct sql_value owner = SQL_INT(w->account_id);

	for (size_t i = 0; i < w->n; i++) {
		if (w->e[i].feed_id && !w->e[i].subscribed)
			sql_rows_add(&label, SQL_V(SQL_INT(i), owner, SQL_INT(w->e[i].id)));
	}
	return sql_rows_end(&label);
}

#define MANY 300
#define EXCEPTIONS_AT_ONCE 100000 /* that an edit reads, or a mark changes, in one transaction */

static int account_edit_read(struct account_editing *w, struct fw_err *err)
{
	int64_t more = 1;
	int rc = account_edit_entries_read(w, err);

	if (!rc && w->n >= MANY)
		rc = sql_query_int(w->s, "SELECT 1 FROM read_exceptions WHERE account_id = ?1 LIMIT 1 OFFSET ?2",
			SQL_V(SQL_INT(w->account_id), SQL_INT(EXCEPTIONS_AT_ONCE)), 0, &more, err);
	rc = rc ? rc : more ? account_edit_state(w, err) : account_edit_state_all(w, err);
	return rc ? rc : account_edit_labelled(w, err);
}

static bool account_edit_is_read(const struct account_edit_entry *e)
{
	return (e->id <= e->mark_id) != e->exception;
}

/* Add and remove exceptions. Entries that have the wanted state already are left. */
static int account_edit_exceptions(struct account_editing *w, struct fw_err *err)
{
	struct sql_rows put = SQL_ROWS(w->s, err,
		"INSERT INTO read_exceptions (account_id, feed_id, entry_id) {values}",
		"account_id:i feed_id:i entry_id:i");
	struct sql_rows drop = SQL_ROWS(w->s, err,
		"DELETE FROM read_exceptions {using} WHERE account_id = v.owner AND feed_id = v.feed AND entry_id ="
		" v.spot",
		"owner:i feed:i spot:i");

	for (size_t i = 0; i < w->n; i++) {
		const struct account_edit_entry *e = &w->e[i];

		if (e->subscribed && account_edit_is_read(e) != (w->edit->read == 1))
			sql_rows_add(e->exception ? &drop : &put,
				SQL_V(SQL_INT(w->account_id), SQL_INT(e->feed_id), SQL_INT(e->id)));
	}
	put.rc = sql_rows_end(&put);
	drop.rc = drop.rc ? drop.rc : put.rc;
	return sql_rows_end(&drop);
}

FW_COMPARE_BY(account_edit_entry_compare, struct account_edit_entry, feed_id, id)

static int account_edit_done_row(void *ctx, const struct sql_row *row)
{
	int64_t feed_id = sql_int(row, 0);

	fw_buf_add(ctx, &feed_id, sizeof(feed_id));
	return ((struct fw_buf *)ctx)->rc;
}

/* Give these feeds the mark `head`, and forget their exceptions: n numbers. */
static int account_edit_mark(
	struct account_editing *w, const int64_t *feed_id, size_t n, int64_t head, struct fw_err *err)
{
	struct sql_rows mark = SQL_ROWS(w->s, err,
		"UPDATE subscriptions AS t SET mark_id = v.head {from} WHERE t.account_id = v.owner AND t.feed_id ="
		" v.feed",
		"owner:i feed:i head:i");
	struct sql_rows drop = SQL_ROWS(w->s, err,
		"DELETE FROM read_exceptions {using} WHERE account_id = v.owner AND feed_id = v.feed",
		"owner:i feed:i");
	const struct sql_value owner = SQL_INT(w->account_id);

	for (size_t i = 0; i < n; i++)
		sql_rows_add(&mark, SQL_V(owner, SQL_INT(feed_id[i]), SQL_INT(head)));
	drop.rc = sql_rows_end(&mark);
	for (size_t i = 0; i < n; i++)
		sql_rows_add(&drop, SQL_V(owner, SQL_INT(feed_id[i])));
	return sql_rows_end(&drop);
}

/*
 * A feed without unread entries needs no exceptions: its mark goes to the head. That was read
 * before: an entry that another commit stores meanwhile is above it. Which feeds these are is asked
 * once, because such a commit may come between any two statements.
 */
static int account_edit_done(struct account_editing *w, const int64_t *feed_id, size_t n, struct fw_err *err)
{
	struct fw_buf feeds = FW_BUF_INIT(0);
	struct sql_rows done = SQL_QUERY_ROWS(w->s, err, account_edit_done_row, &feeds,
		"SELECT v.feed FROM {rows} subscriptions t WHERE t.account_id = v.owner AND t.feed_id = v.feed"
		" AND t.mark_id < v.head AND t.read_n = " SQL_ENTRY_TOTAL("v.feed"),
		"owner:i feed:i head:i");
	int64_t head = 0;
	int rc;

	done.rc = sql_query_int(w->s, "SELECT value FROM meta WHERE name = 'entry_id'", SQL_NONE, 0, &head, err);
	for (size_t i = 0; i < n; i++)
		sql_rows_add(&done, SQL_V(SQL_INT(w->account_id), SQL_INT(feed_id[i]), SQL_INT(head)));
	rc = sql_rows_end(&done);
	rc = rc == FW_ENOMEM ? fw_no_memory(err) : rc;
	if (!rc && feeds.len)
		rc = account_edit_mark(
			w, (const int64_t *)(const void *)feeds.p, feeds.len / sizeof(int64_t), head, err);
	fw_buf_finish(&feeds);
	return rc;
}

/* Change read_n of each feed. */
static int account_edit_counts(struct account_editing *w, struct fw_err *err)
{
	struct sql_rows count = SQL_ROWS(w->s, err,
		"UPDATE subscriptions AS t SET read_n = t.read_n + v.more {from} WHERE t.account_id = v.owner"
		" AND t.feed_id = v.feed",
		"owner:i feed:i more:i");
	const struct sql_value owner = SQL_INT(w->account_id);
	struct fw_buf feeds = FW_BUF_INIT(0); /* ids of the feeds whose unread counts change */
	bool read = w->edit->read == 1;
	int64_t n = 0;
	int rc;

	for (size_t i = 0; i < w->n; i++) {
		const struct account_edit_entry *e = &w->e[i];

		n += e->subscribed && account_edit_is_read(e) != read;
		if (i + 1 < w->n && e[1].feed_id == e->feed_id)
			continue;
		if (n) {
			sql_rows_add(&count, SQL_V(owner, SQL_INT(e->feed_id), SQL_INT(read ? n : -n)));
			fw_buf_add(&feeds, &e->feed_id, sizeof(e->feed_id));
		}
		n = 0;
	}
	rc = sql_rows_end(&count);
	if (!rc && feeds.rc)
		rc = fw_no_memory(err);
	if (!rc && read && feeds.len)
		rc = account_edit_done(w, (const int64_t *)(const void *)feeds.p, feeds.len / sizeof(int64_t), err);
	fw_buf_finish(&feeds);
	return rc;
}

static int account_edit_labels(struct account_editing *w, struct fw_err *err)
{
	struct sql_rows add = SQL_ROWS(w->s, err,
		"INSERT INTO entry_labels (account_id, label_id, entry_id, feed_id, at_ms) {values}"
		" {keep account_id, label_id, entry_id|entry_labels.account_id}",
		"account_id:i label_id:i entry_id:i feed_id:i at_ms:i");
	struct sql_rows remove = SQL_ROWS(w->s, err,
		"DELETE FROM entry_labels {using} WHERE account_id = v.owner AND label_id = v.label AND entry_id ="
		" v.spot",
		"owner:i label:i spot:i");
	const struct fw_entry_edit *edit = w->edit;
	const struct sql_value owner = SQL_INT(w->account_id);

	for (size_t i = 0; i < w->n; i++) {
		const struct account_edit_entry *e = &w->e[i];

		for (size_t k = 0; (e->subscribed || e->labelled) && k < edit->remove_n; k++)
			sql_rows_add(&remove, SQL_V(owner, SQL_INT(edit->remove[k]), SQL_INT(e->id)));
	}
	add.rc = sql_rows_end(&remove);
	for (size_t k = 0; k < edit->add_n; k++) {
		for (size_t i = 0; i < w->n; i++) {
			const struct account_edit_entry *e = &w->e[i];

			if (e->subscribed || e->labelled)
				sql_rows_add(&add,
					SQL_V(owner, SQL_INT(edit->add[k]), SQL_INT(e->id), SQL_INT(e->feed_id),
						SQL_INT(w->now_ms)));
		}
	}
	return sql_rows_end(&add);
}

static int account_edit_labels_few(struct account_editing *w, struct fw_err *err)
{
	int64_t n = 0;
	int rc = sql_query_int(w->s, "SELECT count(*) FROM entry_labels WHERE account_id = ?1",
		SQL_V(SQL_INT(w->account_id)), 0, &n, err);

	return rc || n <= FW_LABELLED_MAX ?
		rc :
		fw_err_set(err, FW_EINVAL,
			"%s: the entries of an account have at most %d stars and labels together: remove some first",
			w->s->name, FW_LABELLED_MAX);
}

/* A label may have been removed meanwhile. */
static int account_edit_labels_check(struct account_editing *w, struct fw_err *err)
{
	int64_t n = 1;
	int rc = 0;

	for (size_t k = 0; !rc && n && k < w->edit->add_n; k++) {
		if (w->edit->add[k] != FW_LABEL_STARRED)
			rc = sql_query_int(w->s, "SELECT count(*) FROM labels WHERE account_id = ?1 AND id = ?2",
				SQL_V(SQL_INT(w->account_id), SQL_INT(w->edit->add[k])), 0, &n, err);
	}
	return rc || n ? rc : fw_err_set(err, FW_ENOTFOUND, "%s: the account has no such label", w->s->name);
}

static int account_edit(struct sql *s, void *ctx, struct fw_err *err)
{
	struct account_editing *w = ctx;
	int rc = sql_account_lock(s, w->account_id, err);

	for (size_t i = 0; i < w->n; i++)
		w->e[i] = (struct account_edit_entry){.id = w->e[i].id};
	rc = rc ? rc : account_edit_labels_check(w, err);
	rc = rc ? rc : account_edit_read(w, err);
	if (!rc)
		qsort(w->e, w->n, sizeof(*w->e), account_edit_entry_compare);
	if (!rc && w->edit->read >= 0) {
		rc = account_edit_exceptions(w, err);
		rc = rc ? rc : account_edit_counts(w, err);
	}
	rc = rc ? rc : account_edit_labels(w, err);
	return rc || !w->edit->add_n ? rc : account_edit_labels_few(w, err);
}

int sql_account_edit(struct store *st, int64_t account_id, const int64_t *ids, size_t n,
	const struct fw_entry_edit *edit, int64_t now_ms, struct fw_err *err)
{
	struct account_editing w = {.s = sql_of(st),
		.account_id = account_id,
		.now_ms = now_ms,
		.edit = edit,
		.e = calloc(n + 1, sizeof(*w.e))};
	int rc = w.e ? 0 : fw_no_memory(err);

	assert(n > 0);
	for (size_t i = 0; !rc && i < n; i++)
		w.e[i].id = ids[i];
	if (!rc)
		qsort(w.e, n, sizeof(*w.e), account_edit_entry_compare);
	for (size_t i = 0; !rc && i < n; i++) {
		if (!w.n || w.e[w.n - 1].id != w.e[i].id)
			w.e[w.n++] = w.e[i];
	}
	rc = rc ? rc : sql_transaction(w.s, account_edit, &w, err);
	free(w.e);
	return rc;
}

/* ---- mark read ------------------------------------------------------------------------------- */

struct account_marking {
	const struct fw_stream *q;
	int64_t until_ms, last_id, mark_id;
	int64_t step_id;             /* this part marks up to it; 0: all that is left */
	struct sql_subscription *at; /* those that the stream names and that have unread entries */
	size_t n;
	struct fw_arena a;
	struct fw_buf feeds; /* their feeds as {among} takes them; empty: all of the account */
};

struct account_above {
	const struct account_marking *w;
	size_t n; /* of w->at */
};

/* A feed's entries above the mark that were read one by one. */
static int account_above_row(void *ctx, const struct sql_row *row)
{
	const struct account_above *r = ctx;
	struct sql_subscription *at = sql_subscription_find(r->w->at, r->n, sql_int(row, 0));

	if (at && at->mark_id < r->w->mark_id)
		at->above_n -= sql_int(row, 1);
	return 0;
}

/* above_n counts a feed's entries above the mark; the unread ones are left in it. */
static int account_mark_feeds(struct sql *s, struct account_marking *w, bool exceptions, struct fw_err *err)
{
	struct account_above r = {.w = w};
	int rc = sql_subscriptions_read(s, w->q->account_id, w->mark_id, &w->a, &w->at, &r.n, err);

	if (!rc && exceptions)
		rc = sql_query(s,
			"SELECT feed_id, count(*) FROM read_exceptions WHERE account_id = ?1 AND entry_id > ?2 GROUP BY"
			" feed_id",
			SQL_V(SQL_INT(w->q->account_id), SQL_INT(w->mark_id)), account_above_row, &r, err);
	w->n = 0;
	fw_buf_reset(&w->feeds);
	for (size_t i = 0; !rc && i < r.n; i++) {
		const struct sql_subscription *at = &w->at[i];
		int64_t later_n = at->mark_id < w->mark_id ? at->above_n : 0;

		if (!sql_stream_names(w->q, at->feed_id, at->folder) || at->total_n - later_n <= at->read_n)
			continue;
		fw_buf_addf(&w->feeds, "%c%lld", w->n ? ',' : '[', (long long)at->feed_id);
		w->at[w->n++] = *at;
	}
	fw_buf_addc(&w->feeds, ']');
	if (!rc && w->n == r.n)
		fw_buf_reset(&w->feeds);
	return rc ? rc : w->feeds.rc ? fw_no_memory(err) : 0;
}

static int account_mark_id(struct sql *s, struct account_marking *w, struct fw_err *err)
{
	int64_t before;
	int rc = sql_query_int(s, "SELECT value FROM meta WHERE name = 'entry_id'", SQL_NONE, 0, &w->mark_id, err);

	if (!rc && w->last_id)
		w->mark_id = FW_MIN(w->mark_id, w->last_id);
	if (!rc && w->step_id)
		w->mark_id = FW_MIN(w->mark_id, w->step_id);
	if (rc || !w->until_ms)
		return rc;
	rc = sql_entry_id_seen_before(s, w->until_ms, &before, err);
	w->mark_id = FW_MIN(w->mark_id, before);
	return rc;
}

/* clang-format off */
#define FEW " AND {among feed_id|?3}"
#define MARKED(few) \
	"UPDATE subscriptions SET read_n = read_n + (SELECT count(*) FROM read_exceptions x WHERE x.account_id = ?1" \
	" AND x.feed_id = subscriptions.feed_id AND x.entry_id <= ?2) WHERE account_id = ?1 AND mark_id >= ?2" few \
	" AND feed_id IN (SELECT x.feed_id FROM read_exceptions x WHERE x.account_id = ?1 AND x.entry_id <= ?2)"
#define FORGET(few) \
	"DELETE FROM read_exceptions WHERE account_id = ?1 AND entry_id <= ?2" few \
	" AND feed_id IN (SELECT t.feed_id FROM subscriptions t WHERE t.account_id = ?1 AND t.mark_id >= ?2)"
/* clang-format on */

/* text: for all feeds of the account, for some. */
static int account_mark_run(
	struct sql *s, const struct account_marking *w, const char *const text[2], struct fw_err *err)
{
	return sql_exec(s, text[w->feeds.len > 0],
		(const struct sql_value[]){
			SQL_INT(w->q->account_id), SQL_INT(w->mark_id), SQL_TEXT(fw_buf_str(&w->feeds))},
		w->feeds.len ? 3 : 2, err);
}

static int account_mark_rows(struct sql *s, const struct account_marking *w, struct fw_err *err)
{
	struct sql_rows r = SQL_ROWS(s, err,
		"UPDATE subscriptions AS t SET mark_id = v.head, read_n = v.total {from} WHERE t.account_id = v.owner"
		" AND t.feed_id = v.feed",
		"owner:i feed:i head:i total:i");

	for (size_t i = 0; i < w->n; i++) {
		if (w->at[i].mark_id < w->mark_id)
			sql_rows_add(&r,
				SQL_V(SQL_INT(w->q->account_id), SQL_INT(w->at[i].feed_id), SQL_INT(w->mark_id),
					SQL_INT(w->at[i].total_n - w->at[i].above_n)));
	}
	return sql_rows_end(&r);
}

/*
 * Feeds whose mark is not below the new one keep it; their unread exceptions up to the new one
 * become read. A feed without unread entries is left as it is, with its exceptions. All other feeds
 * get the mark; entries above it keep their state.
 */
static int account_mark(struct sql *s, void *ctx, struct fw_err *err)
{
	static const char *const MARKED_TEXT[] = {MARKED(""), MARKED(FEW)},
				 *const FORGET_TEXT[] = {FORGET(""), FORGET(FEW)};
	struct account_marking *w = ctx;
	int64_t exceptions = 0;
	int rc = sql_account_lock(s, w->q->account_id, err);

	rc = rc ? rc : account_mark_id(s, w, err);
	rc = rc ? rc :
		  sql_query_int(s, "SELECT 1 FROM read_exceptions WHERE account_id = ?1 LIMIT 1",
			  SQL_V(SQL_INT(w->q->account_id)), 0, &exceptions, err);
	if (rc || !w->mark_id)
		return rc;
	rc = account_mark_feeds(s, w, exceptions, err);
	if (rc || !w->n)
		return rc;
	rc = exceptions ? account_mark_run(s, w, MARKED_TEXT, err) : 0;
	rc = rc ? rc : account_mark_rows(s, w, err);
	return rc || !exceptions ? rc : account_mark_run(s, w, FORGET_TEXT, err);
}

static int account_mark_add(void *ctx, const struct fw_stream_entry *e)
{
	struct fw_buf *b = ctx;

	fw_buf_add(b, &e->entry->id, sizeof(e->entry->id));
	return b->rc;
}

/* Entries with a label are few, and marks do not reach them one by one. */
static int account_mark_labelled(struct sql *s, const struct account_marking *w, struct fw_err *err)
{
	struct fw_stream q = {.account_id = w->q->account_id,
		.feed_id = w->q->feed_id,
		.folder = w->q->folder,
		.folder_only = w->q->folder_only,
		.labelled = true,
		.label_id = w->q->label_id,
		.read = FW_READ_UNREAD,
		.until_ms = w->until_ms,
		.before_id = w->last_id ? w->last_id + 1 : 0};
	struct fw_buf ids = FW_BUF_INIT(0);
	int rc = sql_account_stream(&s->store, &(struct account_list_query){.s = &q}, account_mark_add, &ids, err);
	size_t n = ids.len / sizeof(int64_t);

	if (rc == FW_ENOMEM)
		rc = fw_no_memory(err);
	for (size_t i = 0; !rc && i < n; i += STORE_EDIT_ROWS)
		rc = sql_account_edit(&s->store, q.account_id, (const int64_t *)(const void *)ids.p + i,
			FW_MIN(n - i, STORE_EDIT_ROWS), &(struct fw_entry_edit){.read = 1}, 0, err);
	fw_buf_finish(&ids);
	return rc;
}

/* Where the next part ends. Entries that come between the parts are not marked. */
static int account_mark_step(struct sql *s, struct account_marking *w, struct fw_err *err)
{
	bool first = !w->step_id;
	int64_t head = 0;
	int rc = sql_query_int(s,
		"SELECT entry_id FROM read_exceptions WHERE account_id = ?1 AND entry_id > ?2 ORDER BY entry_id LIMIT 1"
		" OFFSET ?3",
		SQL_V(SQL_INT(w->q->account_id), SQL_INT(w->step_id), SQL_INT(EXCEPTIONS_AT_ONCE)), 0, &w->step_id,
		err);

	if (rc || !first || !w->step_id)
		return rc;
	rc = sql_query_int(s, "SELECT value FROM meta WHERE name = 'entry_id'", SQL_NONE, 0, &head, err);
	w->last_id = w->last_id ? FW_MIN(w->last_id, head) : head;
	return rc;
}

static int account_mark_all(struct sql *s, struct account_marking *w, struct fw_err *err)
{
	int rc;

	do {
		rc = account_mark_step(s, w, err);
		rc = rc ? rc : sql_transaction(s, account_mark, w, err);
	} while (!rc && w->step_id && w->mark_id == w->step_id);
	return rc;
}

int sql_account_mark_read(
	struct store *st, const struct fw_stream *q, int64_t until_ms, int64_t last_id, struct fw_err *err)
{
	struct account_marking w = {.q = q, .until_ms = until_ms, .last_id = last_id, .feeds = FW_BUF_INIT(0)};
	int rc;

	if (q->labelled)
		return account_mark_labelled(sql_of(st), &w, err);
	fw_arena_init(&w.a, 0);
	rc = account_mark_all(sql_of(st), &w, err);
	fw_arena_finish(&w.a);
	fw_buf_finish(&w.feeds);
	return rc;
}
