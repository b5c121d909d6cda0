/* SPDX-License-Identifier: ISC */
/*
 * Which entries an account has read, and what becomes of that when entries come and go.
 *
 * An entry is read if (id <= mark_id) differs from (an exception exists). A feed's unread entries
 * are entry_total_n - read_n. So whatever changes the state of k entries changes read_n by k, in
 * the same transaction; an entry that goes while it is unread counts as read.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "store/sql/accounts.h"

/* ---- reading --------------------------------------------------------------------------------- */

struct account_state_exception {
	int64_t feed_id, entry_id;
};
struct account_state_reading {
	struct sql_account_state *st;
	const struct fw_stream *pick;
	struct fw_buf exceptions; /* array of struct account_state_exception */
};

bool sql_stream_names(const struct fw_stream *q, int64_t feed_id, struct fw_str folder)
{
	struct fw_str want = fw_path_trim(q->folder);

	if (q->feed_id && q->feed_id != feed_id)
		return false;
	if (!q->folder.p)
		return true;
	return q->folder_only ? fw_str_eq(folder, want) : fw_path_is_within(folder, want);
}

/* A subscription, or (1) an exception. */
static int account_state_row(void *ctx, const struct sql_row *row)
{
	struct account_state_reading *r = ctx;
	const struct account_state_exception x = {sql_int(row, 1), sql_int(row, 2)};
	struct sql_account_feed f = {.feed_id = x.feed_id, .mark_id = x.entry_id};

	if (sql_int(row, 0)) {
		fw_buf_add(&r->exceptions, &x, sizeof(x));
		return r->exceptions.rc;
	}
	f.picked = sql_stream_names(r->pick, f.feed_id, sql_str(row, 3));
	fw_buf_add(&r->st->feeds, &f, sizeof(f));
	r->st->picked_n += f.picked;
	return r->st->feeds.rc;
}

FW_COMPARE(account_state_feed_compare, struct sql_account_feed, feed_id)

FW_COMPARE_BY(account_state_exception_compare, struct account_state_exception, feed_id, entry_id)

/* Most engines return the rows in order. */
static void account_state_sort(void *at, size_t n, size_t size, int (*compare)(const void *, const void *))
{
	size_t i = 1;

	while (i < n && compare((char *)at + (i - 1) * size, (char *)at + i * size) < 0)
		i++;
	if (i < n)
		qsort(at, n, size, compare);
}

/* Give each feed its exceptions. */
static void account_state_join(struct sql_account_state *st, const struct account_state_exception *x, size_t n)
{
	struct sql_account_feed *f = NULL;

	for (size_t i = 0; i < n; i++) {
		if (!f || f->feed_id != x[i].feed_id) {
			f = sql_account_feed_find(st, x[i].feed_id);
			if (!f)
				continue;
			f->from = st->exception_n;
		}
		f->n++;
		st->exception_n++;
		fw_buf_add(&st->exceptions, &x[i].entry_id, sizeof(x[i].entry_id));
	}
	st->exception = (int64_t *)(void *)st->exceptions.p;
}

/*
 * One statement, so one snapshot has both: an edit that leaves nothing unread raises the mark and
 * removes the exceptions, and with one of these alone entries that were read long ago are unread.
 */
#define STATE(and)                                                                        \
	"SELECT 0, feed_id, mark_id, folder FROM subscriptions WHERE account_id = ?1" and \
		" UNION ALL SELECT 1, feed_id, entry_id, NULL FROM read_exceptions WHERE account_id = ?1" and

int sql_account_state_read(
	struct sql *s, struct sql_account_state *st, const struct fw_stream *pick, struct fw_err *err)
{
	struct account_state_reading r = {.st = st, .pick = pick, .exceptions = FW_BUF_INIT(0)};
	const struct sql_value v[] = {SQL_INT(pick->account_id), SQL_INT(pick->feed_id)};
	struct account_state_exception *x;
	size_t n;
	int rc;

	*st = (struct sql_account_state){
		.account_id = pick->account_id, .feeds = FW_BUF_INIT(0), .exceptions = FW_BUF_INIT(0)};
	rc = sql_accounts_absent(s, err);
	rc = rc ? rc :
		  sql_query(s, pick->feed_id ? STATE(" AND feed_id = ?2") : STATE(""), v, pick->feed_id ? 2 : 1,
			  account_state_row, &r, err);
	st->feed = (struct sql_account_feed *)(void *)st->feeds.p;
	st->feed_n = st->feeds.len / sizeof(*st->feed);
	account_state_sort(st->feed, st->feed_n, sizeof(*st->feed), account_state_feed_compare);
	x = (struct account_state_exception *)(void *)r.exceptions.p;
	n = r.exceptions.len / sizeof(*x);
	account_state_sort(x, n, sizeof(*x), account_state_exception_compare);
	account_state_join(st, x, n);
	if (!rc && st->exceptions.rc)
		rc = FW_ENOMEM;
	fw_buf_finish(&r.exceptions);
	return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
}

void sql_account_state_finish(struct sql_account_state *st)
{
	fw_buf_finish(&st->feeds);
	fw_buf_finish(&st->exceptions);
}

struct sql_account_feed *sql_account_feed_find(const struct sql_account_state *st, int64_t feed_id)
{
	size_t from = 0, to = st->feed_n;

	while (from < to) {
		size_t at = from + (to - from) / 2;

		if (st->feed[at].feed_id == feed_id)
			return &st->feed[at];
		if (st->feed[at].feed_id < feed_id)
			from = at + 1;
		else
			to = at;
	}
	return NULL;
}

bool sql_ids_have(const int64_t *ids, size_t n, int64_t id)
{
	size_t from = 0, to = n;

	while (from < to) {
		size_t at = from + (to - from) / 2;

		if (ids[at] == id)
			return true;
		if (ids[at] < id)
			from = at + 1;
		else
			to = at;
	}
	return false;
}

bool sql_account_has_read(const struct sql_account_state *st, const struct sql_account_feed *f, int64_t entry_id)
{
	return (entry_id <= f->mark_id) != sql_ids_have(st->exception + f->from, f->n, entry_id);
}

/* ---- locks ----------------------------------------------------------------------------------- */

/* The counter first: nobody adds an account meanwhile. 0: there never was one. */
int sql_accounts_lock_all(struct sql *s, bool *any, struct fw_err *err)
{
	int64_t last = 0;
	int rc = sql_query_int(s, "SELECT value FROM meta WHERE name = 'account_id' {update}", SQL_NONE, 0, &last, err);

	*any = false;
	if (rc || !last)
		return rc;
	last = 0;
	rc = rc ? rc : sql_query_int(s, "SELECT id FROM accounts ORDER BY id {update}", SQL_NONE, 0, &last, err);
	*any = last > 0;
	return rc;
}

/* ---- entries that come ----------------------------------------------------------------------- */

FW_COMPARE_BY(account_entry_compare, struct sql_entry_ref, feed_id, id)

struct account_total {
	int64_t position, fresh_n;
};

static int account_total_row(void *ctx, const struct sql_row *row)
{
	const struct account_total t = {sql_int(row, 0), sql_int(row, 1)};
	struct fw_buf *b = ctx;

	fw_buf_add(b, &t, sizeof(t));
	return b->rc;
}

int sql_entry_totals_raise(struct sql *s, struct sql_entry_ref *e, size_t n, struct fw_err *err)
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct sql_rows put = SQL_ROWS(s, err,
		"UPDATE schedule AS t SET entry_total_n = t.entry_total_n + v.fresh {from} WHERE t.position = v.spot",
		"spot:i fresh:i");
	struct sql_rows read = SQL_QUERY_ROWS(s, err, account_total_row, &b,
		"SELECT f.position, v.fresh FROM {rows} feeds f WHERE f.id = v.feed", "feed:i fresh:i");
	const struct account_total *t;

	if (n)
		qsort(e, n, sizeof(*e), account_entry_compare);
	for (size_t i = 0, from = 0; i < n; i++) {
		if (i + 1 < n && e[i + 1].feed_id == e[i].feed_id)
			continue;
		sql_rows_add(&read, SQL_V(SQL_INT(e[i].feed_id), SQL_INT(i + 1 - from)));
		from = i + 1;
	}
	put.rc = sql_rows_end(&read);
	if (put.rc == FW_ENOMEM)
		(void)fw_no_memory(err);
	t = (const struct account_total *)(const void *)b.p;
	for (size_t i = 0; i < b.len / sizeof(*t); i++)
		sql_rows_add(&put, SQL_V(SQL_INT(t[i].position), SQL_INT(t[i].fresh_n)));
	put.rc = sql_rows_end(&put);
	fw_buf_finish(&b);
	return put.rc;
}

/* ---- entries that go ------------------------------------------------------------------------- */

/* An account's subscription of a feed that loses entries. */
struct account_loss {
	int64_t account_id, feed_id, mark_id, n; /* n: unread entries that go */
};
struct account_exception {
	int64_t account_id, feed_id, entry_id;
};
struct account_losses {
	struct fw_buf loss, exception;
};

static int account_loss_row(void *ctx, const struct sql_row *row)
{
	struct fw_buf *b = ctx;
	const struct account_loss l = {sql_int(row, 0), sql_int(row, 1), sql_int(row, 2), 0};

	fw_buf_add(b, &l, sizeof(l));
	return b->rc;
}

static int account_exception_row(void *ctx, const struct sql_row *row)
{
	struct fw_buf *b = ctx;
	const struct account_exception x = {sql_int(row, 0), sql_int(row, 1), sql_int(row, 2)};

	fw_buf_add(b, &x, sizeof(x));
	return b->rc;
}

static int account_exception_compare(const void *a, const void *b)
{
	const struct account_exception *x = a, *y = b;

	if (x->account_id != y->account_id)
		return FW_ORDER(x->account_id, y->account_id);
	return account_entry_compare(
		&(struct sql_entry_ref){x->entry_id, x->feed_id}, &(struct sql_entry_ref){y->entry_id, y->feed_id});
}

/* Read who subscribes the feeds of these entries, and their exceptions among them. e: by feed. */
static int account_losses_read(
	struct sql *s, struct account_losses *l, const struct sql_entry_ref *e, size_t n, struct fw_err *err)
{
	struct sql_rows who = SQL_QUERY_ROWS(s, err, account_loss_row, &l->loss,
		"SELECT t.account_id, t.feed_id, t.mark_id FROM {rows} subscriptions t WHERE t.feed_id = v.feed",
		"feed:i");
	struct sql_rows what = SQL_QUERY_ROWS(s, err, account_exception_row, &l->exception,
		"SELECT x.account_id, x.feed_id, x.entry_id FROM {rows} subscriptions t, read_exceptions x"
		" WHERE t.feed_id = v.feed AND x.account_id = t.account_id AND x.feed_id = t.feed_id"
		" AND x.entry_id = v.spot",
		"feed:i spot:i");

	for (size_t i = 0; i < n; i++) {
		if (!i || e[i].feed_id != e[i - 1].feed_id)
			sql_rows_add(&who, SQL_V(SQL_INT(e[i].feed_id)));
	}
	what.rc = sql_rows_end(&who);
	if (!what.rc && !l->loss.len)
		return 0;
	for (size_t i = 0; i < n; i++)
		sql_rows_add(&what, SQL_V(SQL_INT(e[i].feed_id), SQL_INT(e[i].id)));
	what.rc = sql_rows_end(&what);
	return what.rc == FW_ENOMEM ? fw_no_memory(err) : what.rc;
}

/* How many of the entries are unread for this subscription? */
static int64_t account_loss_count(const struct account_loss *l, const struct sql_entry_ref *e, size_t n,
	const struct account_exception *x, size_t x_n)
{
	int64_t unread_n = 0;

	for (size_t i = 0; i < n; i++) {
		struct account_exception key = {l->account_id, e[i].feed_id, e[i].id};
		bool is = x_n && bsearch(&key, x, x_n, sizeof(*x), account_exception_compare);

		unread_n += e[i].feed_id == l->feed_id && (e[i].id <= l->mark_id) == is;
	}
	return unread_n;
}

static int account_losses_write(
	struct sql *s, const struct account_losses *l, const struct sql_entry_ref *e, size_t n, struct fw_err *err)
{
	const struct account_exception *x = (const struct account_exception *)(const void *)l->exception.p;
	const struct account_loss *loss = (const struct account_loss *)(const void *)l->loss.p;
	size_t x_n = l->exception.len / sizeof(*x), loss_n = l->loss.len / sizeof(*loss);
	struct sql_rows put = SQL_ROWS(s, err,
		"UPDATE subscriptions AS t SET read_n = t.read_n + v.gone {from} WHERE t.account_id = v.owner"
		" AND t.feed_id = v.feed",
		"owner:i feed:i gone:i");
	struct sql_rows drop = SQL_ROWS(s, err,
		"DELETE FROM read_exceptions {using} WHERE account_id = v.owner AND feed_id = v.feed AND entry_id ="
		" v.spot",
		"owner:i feed:i spot:i");

	for (size_t i = 0; i < loss_n; i++) {
		size_t from = 0, to;

		while (from < n && e[from].feed_id != loss[i].feed_id)
			from++;
		for (to = from; to < n && e[to].feed_id == loss[i].feed_id;)
			to++;
		if (account_loss_count(&loss[i], e + from, to - from, x, x_n))
			sql_rows_add(&put,
				SQL_V(SQL_INT(loss[i].account_id), SQL_INT(loss[i].feed_id),
					SQL_INT(account_loss_count(&loss[i], e + from, to - from, x, x_n))));
	}
	drop.rc = sql_rows_end(&put);
	for (size_t i = 0; i < x_n; i++)
		sql_rows_add(&drop, SQL_V(SQL_INT(x[i].account_id), SQL_INT(x[i].feed_id), SQL_INT(x[i].entry_id)));
	return sql_rows_end(&drop);
}

#define LABELS_DROP "DELETE FROM entry_labels {using} WHERE entry_id = v.spot"

static int account_labels_drop(struct sql *s, const struct sql_entry_ref *e, size_t n, struct fw_err *err)
{
	struct sql_rows r = SQL_ROWS(s, err, LABELS_DROP, "spot:i");

	for (size_t i = 0; i < n; i++)
		sql_rows_add(&r, SQL_V(SQL_INT(e[i].id)));
	return sql_rows_end(&r);
}

int sql_accounts_entries_gone(struct sql *s, struct sql_entry_ref *e, size_t n, struct fw_err *err)
{
	struct account_losses l = {FW_BUF_INIT(0), FW_BUF_INIT(0)};
	bool any;
	int rc = n ? sql_accounts_lock_all(s, &any, err) : 0;

	if (rc || !n || !any)
		return rc;
	qsort(e, n, sizeof(*e), account_entry_compare);
	rc = account_losses_read(s, &l, e, n, err);
	if (!rc && l.exception.len)
		qsort(l.exception.p, l.exception.len / sizeof(struct account_exception),
			sizeof(struct account_exception), account_exception_compare);
	rc = rc || !l.loss.len ? rc : account_losses_write(s, &l, e, n, err);
	fw_buf_finish(&l.loss);
	fw_buf_finish(&l.exception);
	return rc ? rc : account_labels_drop(s, e, n, err);
}

static int account_feed_exceptions_drop(struct sql *s, int64_t feed_id, struct fw_err *err)
{
	return sql_exec(s,
		"DELETE FROM read_exceptions WHERE feed_id = ?1 AND account_id IN (SELECT account_id"
		" FROM subscriptions WHERE feed_id = ?1)",
		SQL_V(SQL_INT(feed_id)), err);
}

int sql_accounts_feed_gone(struct sql *s, int64_t feed_id, struct fw_err *err)
{
	bool any;
	int rc = sql_accounts_lock_all(s, &any, err);

	if (rc || !any)
		return rc;
	rc = account_feed_exceptions_drop(s, feed_id, err);
	return rc ? rc : sql_exec(s, "DELETE FROM subscriptions WHERE feed_id = ?1", SQL_V(SQL_INT(feed_id)), err);
}

/* ---- merge ----------------------------------------------------------------------------------- */

/*
 * Entries of one feed have moved to another; the rest of the first is about to go, or is kept for
 * its labels only. For each account that subscribes one of them, the state of all entries of the
 * second feed is made anew:
 *
 *   - an entry of a feed that the account subscribes keeps its state;
 *   - one of a feed that it does not has the state of its twin (same key or guid), which is about
 *     to go; without one, the mark of the other feed decides.
 */
struct account_merge {
	struct sql *s;
	int64_t from_id, into_id;
	struct fw_buf ids;     /* of entries of the second feed, rising */
	struct fw_buf moved;   /* of those that moved, rising */
	struct fw_buf twins;   /* struct account_twin, by id */
	struct fw_buf owners;  /* struct account_merged, by account */
	struct fw_buf labels;  /* struct account_merge_label, of entries that go */
	struct fw_buf x[2];    /* exceptions of the account: of the first feed, of the second */
	struct fw_map by_name; /* entries that go: by key and guid */
	struct fw_arena a;
};
struct account_twin {
	int64_t id, gone_id;
};
struct account_merged {
	int64_t account_id;
	bool has[2]; /* the first feed, the second */
	int64_t mark_id[2];
};

static size_t account_ids_n(const struct fw_buf *b)
{
	return b->len / sizeof(int64_t);
}

static const int64_t *account_ids_at(const struct fw_buf *b)
{
	return (const int64_t *)(const void *)b->p;
}

static int account_id_compare(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int account_twin_compare(const void *a, const void *b)
{
	return account_id_compare(&((const struct account_twin *)a)->id, &((const struct account_twin *)b)->id);
}

static int account_merged_row(void *ctx, const struct sql_row *row)
{
	struct account_merge *m = ctx;
	struct account_merged *last = (struct account_merged *)(void *)m->owners.p;
	size_t n = m->owners.len / sizeof(*last);
	int which = sql_int(row, 1) == m->into_id;

	if (!n || last[n - 1].account_id != sql_int(row, 0)) {
		const struct account_merged fresh = {.account_id = sql_int(row, 0)};

		fw_buf_add(&m->owners, &fresh, sizeof(fresh));
		if (m->owners.rc)
			return FW_ENOMEM;
		last = (struct account_merged *)(void *)m->owners.p;
		n++;
	}
	last[n - 1].has[which] = true;
	last[n - 1].mark_id[which] = sql_int(row, 2);
	return 0;
}

/* Put an entry that goes under its key and its guid. */
static int account_merge_gone_row(void *ctx, const struct sql_row *row)
{
	struct account_merge *m = ctx;
	int64_t *id = fw_arena_alloc(&m->a, sizeof(*id));
	struct fw_str key = fw_arena_str(&m->a, sql_str(row, 1)), guid = sql_str(row, 2);
	int rc = 0;

	if (!id || !key.p)
		return FW_ENOMEM;
	*id = sql_int(row, 0);
	(void)fw_map_add(&m->by_name, key, id, &rc);
	if (!rc && guid.len) {
		guid = fw_arena_str(&m->a, guid);
		if (guid.p)
			(void)fw_map_add(&m->by_name, guid, id, &rc);
	}
	return rc || m->a.failed ? FW_ENOMEM : 0;
}

static int account_merge_entry_row(void *ctx, const struct sql_row *row)
{
	struct account_merge *m = ctx;
	struct account_twin t = {.id = sql_int(row, 0)};
	const int64_t *gone = fw_map_get(&m->by_name, sql_str(row, 1));
	struct fw_str guid = sql_str(row, 2);

	fw_buf_add(&m->ids, &t.id, sizeof(t.id));
	if (!gone && guid.len)
		gone = fw_map_get(&m->by_name, guid);
	if (gone && *gone != t.id) {
		t.gone_id = *gone;
		fw_buf_add(&m->twins, &t, sizeof(t));
	}
	return m->ids.rc || m->twins.rc ? FW_ENOMEM : 0;
}

static int account_merge_exception_row(void *ctx, const struct sql_row *row)
{
	struct account_merge *m = ctx;
	struct fw_buf *b = &m->x[sql_int(row, 0) == m->into_id];
	int64_t id = sql_int(row, 1);

	fw_buf_add(b, &id, sizeof(id));
	return b->rc;
}

static bool account_merge_was_read(const struct account_merge *m, const struct account_merged *o, int which, int64_t id)
{
	return (id <= o->mark_id[which]) != sql_ids_have(account_ids_at(&m->x[which]), account_ids_n(&m->x[which]), id);
}

static bool account_merge_is_read(const struct account_merge *m, const struct account_merged *o, int64_t id)
{
	bool moved = sql_ids_have(account_ids_at(&m->moved), account_ids_n(&m->moved), id);
	const struct account_twin *twin = NULL;
	int own = moved ? 0 : 1;

	if (o->has[own])
		return account_merge_was_read(m, o, own, id);
	if (!moved && m->twins.len)
		twin = bsearch(&(struct account_twin){.id = id}, m->twins.p, m->twins.len / sizeof(*twin),
			sizeof(*twin), account_twin_compare);
	return twin ? account_merge_was_read(m, o, 0, twin->gone_id) : id <= o->mark_id[!own];
}

static int account_merge_owner(struct account_merge *m, const struct account_merged *o, struct fw_err *err)
{
	struct sql_rows put = SQL_ROWS(m->s, err,
		"INSERT INTO read_exceptions (account_id, feed_id, entry_id) {values}",
		"account_id:i feed_id:i entry_id:i");
	const struct sql_value owner = SQL_INT(o->account_id), from = SQL_INT(m->from_id), into = SQL_INT(m->into_id);
	int64_t mark_id = o->mark_id[o->has[1]], unread_n = 0;
	int rc;

	fw_buf_reset(&m->x[0]);
	fw_buf_reset(&m->x[1]);
	rc = sql_query(m->s,
		"SELECT feed_id, entry_id FROM read_exceptions WHERE account_id = ?1 AND (feed_id = ?2 OR feed_id = ?3)"
		" ORDER BY entry_id",
		SQL_V(owner, from, into), account_merge_exception_row, m, err);
	rc = rc == FW_ENOMEM ? fw_no_memory(err) : rc;
	rc = rc ? rc :
		  sql_exec(m->s, "DELETE FROM read_exceptions WHERE account_id = ?1 AND (feed_id = ?2 OR feed_id = ?3)",
			  SQL_V(owner, from, into), err);
	put.rc = rc;
	for (size_t i = 0; i < account_ids_n(&m->ids); i++) {
		int64_t id = account_ids_at(&m->ids)[i];
		bool is = account_merge_is_read(m, o, id);

		unread_n += !is;
		if (is != (id <= mark_id))
			sql_rows_add(&put, SQL_V(owner, into, SQL_INT(id)));
	}
	rc = sql_rows_end(&put);
	if (!rc && o->has[0])
		rc = sql_exec(m->s,
			o->has[1] ? "DELETE FROM subscriptions WHERE account_id = ?1 AND feed_id = ?2" :
				    "UPDATE subscriptions SET feed_id = ?3 WHERE account_id = ?1 AND feed_id = ?2",
			(const struct sql_value[]){owner, from, into}, o->has[1] ? 2 : 3, err);
	return rc ? rc :
		    sql_exec(m->s,
			    "UPDATE subscriptions SET read_n = " SQL_ENTRY_TOTAL("?2") " - ?3 WHERE account_id = ?1"
										       " AND feed_id = ?2",
			    SQL_V(owner, into, SQL_INT(unread_n)), err);
}

struct account_merge_label {
	int64_t account_id, label_id, twin_id, at_ms;
};

static int account_merge_label_row(void *ctx, const struct sql_row *row)
{
	struct account_merge *m = ctx;
	const struct account_merge_label l = {sql_int(row, 0), sql_int(row, 1), sql_int(row, 2), sql_int(row, 3)};

	fw_buf_add(&m->labels, &l, sizeof(l));
	return m->labels.rc;
}

/* Labels follow their entries; those of an entry that has a twin pass to it. */
static int account_merge_labels(struct account_merge *m, struct fw_err *err)
{
	struct sql_rows move = SQL_ROWS(m->s, err,
		"UPDATE entry_labels AS t SET feed_id = v.target {from} WHERE t.entry_id = v.spot", "spot:i target:i");
	struct sql_rows read = SQL_QUERY_ROWS(m->s, err, account_merge_label_row, m,
		"SELECT l.account_id, l.label_id, v.twin, l.at_ms FROM {rows} entry_labels l WHERE l.entry_id = v.spot",
		"spot:i twin:i");
	struct sql_rows put = SQL_ROWS(m->s, err,
		"INSERT INTO entry_labels (account_id, label_id, entry_id, feed_id, at_ms) {values}"
		" {keep account_id, label_id, entry_id|entry_labels.account_id}",
		"account_id:i label_id:i entry_id:i feed_id:i at_ms:i");
	struct sql_rows drop = SQL_ROWS(m->s, err, LABELS_DROP, "spot:i");
	const struct account_merge_label *l;
	const struct account_twin *twin = (const struct account_twin *)(const void *)m->twins.p;

	for (size_t i = 0; i < account_ids_n(&m->moved); i++)
		sql_rows_add(&move, SQL_V(SQL_INT(account_ids_at(&m->moved)[i]), SQL_INT(m->into_id)));
	read.rc = sql_rows_end(&move);
	for (size_t i = 0; i < m->twins.len / sizeof(*twin); i++)
		sql_rows_add(&read, SQL_V(SQL_INT(twin[i].gone_id), SQL_INT(twin[i].id)));
	put.rc = sql_rows_end(&read);
	if (put.rc == FW_ENOMEM)
		(void)fw_no_memory(err);
	l = (const struct account_merge_label *)(const void *)m->labels.p;
	for (size_t i = 0; i < m->labels.len / sizeof(*l); i++)
		sql_rows_add(&put,
			SQL_V(SQL_INT(l[i].account_id), SQL_INT(l[i].label_id), SQL_INT(l[i].twin_id),
				SQL_INT(m->into_id), SQL_INT(l[i].at_ms)));
	drop.rc = sql_rows_end(&put);
	for (size_t i = 0; i < m->twins.len / sizeof(*twin); i++)
		sql_rows_add(&drop, SQL_V(SQL_INT(twin[i].gone_id)));
	return sql_rows_end(&drop);
}

#define OF_FEED "SELECT id, entry_key, guid FROM entries WHERE feed_id = ?1"

static int account_merge_run(struct account_merge *m, struct fw_err *err)
{
	const struct account_merged *o;
	int rc = sql_query(m->s,
		"SELECT account_id, feed_id, mark_id FROM subscriptions WHERE feed_id = ?1 OR feed_id = ?2"
		" ORDER BY account_id, feed_id",
		SQL_V(SQL_INT(m->from_id), SQL_INT(m->into_id)), account_merged_row, m, err);

	rc = rc ? rc : sql_query(m->s, OF_FEED, SQL_V(SQL_INT(m->from_id)), account_merge_gone_row, m, err);
	rc = rc ? rc : sql_query(m->s, OF_FEED, SQL_V(SQL_INT(m->into_id)), account_merge_entry_row, m, err);
	if (rc)
		return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
	if (m->twins.len)
		qsort(m->twins.p, m->twins.len / sizeof(struct account_twin), sizeof(struct account_twin),
			account_twin_compare);
	o = (const struct account_merged *)(const void *)m->owners.p;
	for (size_t i = 0; !rc && i < m->owners.len / sizeof(*o); i++)
		rc = account_merge_owner(m, &o[i], err);
	return rc ? rc : account_merge_labels(m, err);
}

int sql_accounts_merge(
	struct sql *s, int64_t from_id, int64_t into_id, const struct sql_changes *log, struct fw_err *err)
{
	struct account_merge m = {.s = s, .from_id = from_id, .into_id = into_id};
	const struct fw_change *c = (const struct fw_change *)(const void *)log->b.p;
	int64_t position;
	bool any = false;
	int rc;

	m.ids = m.moved = m.twins = m.owners = m.labels = m.x[0] = m.x[1] = (struct fw_buf)FW_BUF_INIT(0);
	for (size_t i = 0; i < sql_changes_n(log); i++)
		fw_buf_add(&m.moved, &c[i].entry_id, sizeof(c[i].entry_id));
	rc = m.moved.rc ? fw_no_memory(err) : sql_accounts_lock_all(s, &any, err);
	rc = rc ? rc : sql_feed_position(s, into_id, false, &position, err);
	rc = rc ? rc :
		  sql_exec(s, "UPDATE schedule SET entry_total_n = entry_total_n + ?2 WHERE position = ?1",
			  SQL_V(SQL_INT(position), SQL_INT(sql_changes_n(log))), err);
	if (!rc && any) {
		if (m.moved.len)
			qsort(m.moved.p, account_ids_n(&m.moved), sizeof(int64_t), account_id_compare);
		fw_arena_init(&m.a, 0);
		fw_map_init(&m.by_name, 0);
		rc = account_merge_run(&m, err);
		fw_map_finish(&m.by_name);
		fw_arena_finish(&m.a);
	}
	for (size_t i = 0; i < 2; i++)
		fw_buf_finish(&m.x[i]);
	fw_buf_finish(&m.ids);
	fw_buf_finish(&m.moved);
	fw_buf_finish(&m.twins);
	fw_buf_finish(&m.owners);
	fw_buf_finish(&m.labels);
	return rc;
}
