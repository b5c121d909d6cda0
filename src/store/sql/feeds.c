/* SPDX-License-Identifier: ISC */
/*
 * Feeds: lists, changes by the user, the groups that outcomes write, and the position of a feed.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/str.h"
#include "store/driver.h"
#include "store/fields.h"
#include "store/feed_access.h"
#include "store/sql/core.h"

#define PAGE 500        /* rows per result: some client libraries buffer it whole */
#define LOOK_MAX 4096   /* feeds that a list by state looks at one by one */
#define FOUND_MAX 20000 /* places that one pass finds */
#define FROM " FROM feeds f JOIN schedule s ON s.position = f.position"
#define STATE "f.id, {fields feed|f.}, {fields schedule|s.}"
#define COUNTED STATE ", (SELECT count(*) FROM entry_keys k WHERE k.feed_id = f.id AND k.entry_id > 0)"

/* ---- reading --------------------------------------------------------------------------------- */

struct feed_listing {
	struct sql *s;
	const struct fw_feed_query *q;
	fw_feed_cb *cb;
	void *ctx;
	bool counted;        /* with entry_n */
	struct fw_str match; /* in lower case; absent: any */
	size_t seen, shown;  /* rows of this page; shown in all */
	int64_t last_id;
	bool full;
	struct fw_buf found; /* int64_t: places of feeds that the schedule names */
	int64_t pick[PAGE];  /* places of the page's feeds that match */
	size_t pick_n;
	struct fw_arena keep; /* memory of kept[], until it is sorted */
	struct fw_feed *kept;
	size_t kept_n;
};

static void feed_row_read(const struct sql_row *row, bool counted, struct fw_feed *f)
{
	int at = 1;

	*f = (struct fw_feed){.id = sql_int(row, 0)};
	at += (int)sql_fields_set("feed", f, row, at);
	at += (int)sql_fields_set("schedule", f, row, at);
	f->entry_n = counted ? sql_int(row, at) : 0;
}

static int feed_list_row(void *ctx, const struct sql_row *row)
{
	struct feed_listing *l = ctx;
	struct fw_feed f;

	feed_row_read(row, l->counted, &f);
	l->seen++;
	l->last_id = f.id;
	l->full = ++l->shown == l->q->limit; /* 0: none */
	return l->cb(l->ctx, &f);
}

static int feed_find_one(struct feed_listing *l, const struct store_feed_query *q, struct fw_err *err)
{
	struct fw_hash128 hash = fw_hash128(q->url.p, q->url.len);
	const char *name = l->s->name;
	int rc;

	l->counted = true;
	if (q->id)
		rc = sql_query(
			l->s, "SELECT " COUNTED FROM " WHERE f.id = ?1", SQL_V(SQL_INT(q->id)), feed_list_row, l, err);
	else
		rc = sql_query(l->s, "SELECT " COUNTED FROM " WHERE f.url_hash = ?1 AND f.url = ?2",
			SQL_V(SQL_KEY(hash.b), SQL_TEXT(q->url)), feed_list_row, l, err);
	if (rc || l->seen)
		return rc;
	if (q->id)
		return fw_err_set(err, FW_ENOTFOUND, "%s: no feed has the number %lld", name, (long long)q->id);
	return fw_err_set(err, FW_ENOTFOUND, "%s: no feed %.*s", name, FW_STR_ARG(fw_str_sub(q->url, 0, 200)));
}

#define AT_POSITIONS " FROM {rows} schedule s, feeds f WHERE s.position = v.spot AND f.id = v.feed"
/* A feed that has moved to another host meanwhile too. */
#define OF_FEEDS " FROM {rows} feeds f, schedule s WHERE f.id = v.feed AND s.position = f.position"

/* Run a statement over many places. Its rows come in any order. */
static int feeds_at_positions(
	struct feed_listing *l, const char *text, const int64_t *position, size_t n, sql_row_fn *fn, struct fw_err *err)
{
	struct sql_rows r = SQL_QUERY_ROWS(l->s, err, fn, l, text, "spot:i feed:i");

	for (size_t i = 0; i < n; i++)
		sql_rows_add(&r, SQL_V(SQL_INT(position[i]), SQL_INT(sql_position_feed(position[i]))));
	return sql_rows_end(&r);
}

static int feeds_list_due(struct feed_listing *l, const struct store_due *due, size_t due_n, struct fw_err *err)
{
	size_t n;
	int rc = 0;

	for (size_t at = 0; !rc && at < due_n; at += n) {
		n = FW_MIN(due_n - at, (size_t)PAGE);
		for (size_t i = 0; i < n; i++)
			l->pick[i] = sql_position(due[at + i].shard, due[at + i].feed_id);
		rc = feeds_at_positions(l, "SELECT " STATE AT_POSITIONS, l->pick, n, feed_list_row, err);
	}
	return rc;
}

/* ---- lists ----------------------------------------------------------------------------------- */

#define NAMES "SELECT f.position, f.url, f.title, f.user_title, f.folder"

/* Pick feeds by name first: counting the entries of all others would be costly. */
static int feed_name_row(void *ctx, const struct sql_row *row)
{
	struct feed_listing *l = ctx;
	struct fw_str folder = sql_str(row, 4);
	bool good = !l->q->folder.p || fw_path_is_within(folder, l->q->folder);

	assert(l->pick_n < PAGE);
	l->seen++;
	l->last_id = sql_position_feed(sql_int(row, 0));
	if (good &&
		(!l->match.p || fw_store_contains(sql_str(row, 1), l->match) ||
			fw_store_contains(sql_str(row, 2), l->match) || fw_store_contains(sql_str(row, 3), l->match)))
		l->pick[l->pick_n++] = sql_int(row, 0);
	return 0;
}

static bool feeds_are_named(const struct feed_listing *l)
{
	return l->match.p || l->q->folder.p;
}

static int feed_kept_row(void *ctx, const struct sql_row *row)
{
	struct feed_listing *l = ctx;
	struct fw_feed *f = &l->kept[l->kept_n];

	feed_row_read(row, true, f);
	if ((l->q->status >= 0 && (int)f->status != l->q->status) || (l->q->failing && !f->fail_n))
		return 0; /* a visit or a person has changed it since it was picked */
	l->kept_n++;
	return fw_store_feed_dup(&l->keep, f) ? 0 : FW_ENOMEM;
}

FW_COMPARE(feed_id_compare, struct fw_feed, id)

static int feed_due_compare(const void *a, const void *b)
{
	const struct fw_feed *x = a, *y = b;

	return x->due_at_ms != y->due_at_ms ? FW_ORDER(x->due_at_ms, y->due_at_ms) : feed_id_compare(a, b);
}

/* Read the picked feeds, and show them in order. */
static int feeds_show_picked(struct feed_listing *l, struct fw_err *err)
{
	int rc;

	assert(l->pick_n <= PAGE);
	l->kept_n = 0;
	l->kept = calloc(l->pick_n + 1, sizeof(*l->kept));
	if (!l->kept)
		return fw_no_memory(err);
	fw_arena_init(&l->keep, 0);
	rc = feeds_at_positions(l, "SELECT " COUNTED OF_FEEDS, l->pick, l->pick_n, feed_kept_row, err);
	if (rc == FW_ENOMEM)
		rc = fw_no_memory(err);
	if (!rc && l->kept_n)
		qsort(l->kept, l->kept_n, sizeof(*l->kept), l->q->by_due ? feed_due_compare : feed_id_compare);
	for (size_t i = 0; !rc && i < l->kept_n && !l->full; i++) {
		l->full = ++l->shown == l->q->limit;
		rc = l->cb(l->ctx, &l->kept[i]);
	}
	fw_arena_finish(&l->keep);
	free(l->kept);
	return rc;
}

/*
 * The list by due time: the rows of schedule are sorted here, 16 bytes a feed, then the feeds are
 * read in pages. An index by due time would slow down every visit for the sake of this rare list.
 */
struct due_position {
	int64_t due_at_ms, position;
};

static int due_position_row(void *ctx, const struct sql_row *row)
{
	fw_buf_add(ctx, &(struct due_position){sql_int(row, 1), sql_int(row, 0)}, sizeof(struct due_position));
	return 0;
}

static int due_position_compare(const void *a, const void *b)
{
	const struct due_position *x = a, *y = b;

	return x->due_at_ms != y->due_at_ms ? FW_ORDER(x->due_at_ms, y->due_at_ms) :
					      FW_ORDER(sql_position_feed(x->position), sql_position_feed(y->position));
}

/* Show the feeds at these places that the names allow. */
static int feeds_show_at(struct feed_listing *l, const int64_t *position, size_t n, struct fw_err *err)
{
	int rc = 0;

	assert(n <= PAGE);
	l->pick_n = 0;
	if (feeds_are_named(l))
		rc = feeds_at_positions(
			l, NAMES " FROM {rows} feeds f WHERE f.id = v.feed", position, n, feed_name_row, err);
	else
		for (; l->pick_n < n; l->pick_n++)
			l->pick[l->pick_n] = position[l->pick_n];
	return rc ? rc : feeds_show_picked(l, err);
}

static int due_positions_show(
	struct feed_listing *l, const struct due_position *due_position, size_t n, struct fw_err *err)
{
	int64_t position[PAGE];

	assert(n <= PAGE);
	for (size_t i = 0; i < n; i++)
		position[i] = due_position[i].position;
	return feeds_show_at(l, position, n, err);
}

#define SHARDS_AT_ONCE 32 /* some client libraries buffer a whole result */

static int feeds_in_due_order(struct feed_listing *l, struct fw_err *err)
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct due_position *due_position;
	size_t n;
	int rc = 0;

	for (int shard = 0; !rc && shard < STORE_SHARDS; shard += SHARDS_AT_ONCE)
		rc = sql_query(l->s,
			"SELECT position, due_at_ms FROM schedule WHERE position >= ?1 AND position <= ?2 AND (?3 < 0"
			" OR status = ?3) AND (?4 = 0 OR fail_n > 0)",
			SQL_V(SQL_INT(sql_position(shard, 0)),
				SQL_INT(sql_position(
					shard + SHARDS_AT_ONCE - 1, (INT64_C(1) << SQL_POSITION_BITS) - 1)),
				SQL_INT(l->q->status), SQL_INT(l->q->failing)),
			due_position_row, &b, err);
	if (!rc && b.rc)
		rc = fw_no_memory(err);
	due_position = (struct due_position *)(void *)b.p;
	n = b.len / sizeof(*due_position);
	if (!rc && n)
		qsort(due_position, n, sizeof(*due_position), due_position_compare);
	for (size_t at = 0; !rc && at < n && !l->full; at += PAGE)
		rc = due_positions_show(l, due_position + at, FW_MIN(n - at, (size_t)PAGE), err);
	fw_buf_finish(&b);
	return rc;
}

/* ?1: after this id, ?4: LIMIT, ?5: up to this id */
#define IN_ID_ORDER                                                                                       \
	FROM " WHERE f.id > ?1 AND f.id <= ?5 AND (?2 < 0 OR s.status = ?2) AND (?3 = 0 OR s.fail_n > 0)" \
	     " ORDER BY f.id LIMIT ?4"
#define FEED_ID_MAX ((INT64_C(1) << SQL_POSITION_BITS) - 1)

/* A page of at most n feeds, up to last_id. *whole: there may be more. */
static int feeds_page_by_id(struct feed_listing *l, size_t n, int64_t last_id, bool *whole, struct fw_err *err)
{
	const struct fw_feed_query *q = l->q;
	bool named = feeds_are_named(l);
	int rc;

	l->seen = l->pick_n = 0;
	rc = sql_query(l->s, named ? NAMES IN_ID_ORDER : "SELECT " COUNTED IN_ID_ORDER,
		SQL_V(SQL_INT(l->last_id), SQL_INT(q->status), SQL_INT(q->failing), SQL_INT(n), SQL_INT(last_id)),
		named ? feed_name_row : feed_list_row, l, err);
	*whole = l->seen == n;
	return rc || !named ? rc : feeds_show_picked(l, err);
}

/* How many feeds the list still needs, at most max. */
static size_t feeds_wanted(const struct feed_listing *l, size_t max)
{
	return l->q->limit && !feeds_are_named(l) ? FW_MIN(l->q->limit - l->shown, max) : max;
}

static int feed_position_row(void *ctx, const struct sql_row *row)
{
	const int64_t position = sql_int(row, 0);

	fw_buf_add(ctx, &position, sizeof(position));
	return 0;
}

#define FEED_ID "position % 9007199254740992"
_Static_assert(SQL_POSITION_BITS == 53, "the statement has the number");

/*
 * The next feeds with this state, by id, from one pass over the rows of schedule. They are narrow:
 * that is cheaper than to look up the row of each feed.
 */
static int feeds_find_by_state(struct feed_listing *l, size_t n, struct fw_err *err)
{
	int rc;

	fw_buf_reset(&l->found);
	rc = sql_pass(l->s,
		"SELECT position FROM schedule WHERE (?2 < 0 OR status = ?2) AND (?3 = 0 OR fail_n > 0) AND " FEED_ID
		" > ?1 ORDER BY " FEED_ID " LIMIT ?4",
		SQL_V(SQL_INT(l->last_id), SQL_INT(l->q->status), SQL_INT(l->q->failing), SQL_INT(n)),
		feed_position_row, &l->found, err);
	return !rc && l->found.rc ? fw_no_memory(err) : rc;
}

static int feeds_by_state(struct feed_listing *l, struct fw_err *err)
{
	size_t n, wanted;
	int rc;

	do {
		const int64_t *position;

		wanted = feeds_wanted(l, FOUND_MAX);
		rc = feeds_find_by_state(l, wanted, err);
		position = (const int64_t *)(const void *)l->found.p;
		n = rc ? 0 : l->found.len / sizeof(*position);
		for (size_t at = 0; !rc && at < n && !l->full; at += PAGE)
			rc = feeds_show_at(l, position + at, FW_MIN(n - at, (size_t)PAGE), err);
		if (n)
			l->last_id = sql_position_feed(position[n - 1]);
	} while (!rc && n == wanted && !l->full);
	return rc;
}

/*
 * A list of feeds with some state starts by id, because most feeds may have it. When a page finds
 * fewer than it needs among the next LOOK_MAX feeds, the rest are found by state.
 */
static int feeds_in_id_order(struct feed_listing *l, struct fw_err *err)
{
	bool by_state = l->q->status >= 0 || l->q->failing, whole = true;
	int rc = 0;

	l->last_id = l->q->after_id;
	while (!rc && whole && !l->full)
		rc = feeds_page_by_id(l, feeds_wanted(l, PAGE),
			by_state && l->last_id < FEED_ID_MAX - LOOK_MAX ? l->last_id + LOOK_MAX : FEED_ID_MAX, &whole,
			err);
	if (rc || l->full || !by_state)
		return rc;
	return feeds_by_state(l, err);
}

static int feed_list_run(struct feed_listing *l, const struct store_feed_query *q, struct fw_err *err)
{
	struct fw_buf low = FW_BUF_INIT(0);
	int rc;

	if (q->id || q->url.p)
		return feed_find_one(l, q, err);
	if (q->due)
		return feeds_list_due(l, q->due, q->due_n, err);
	l->q = &q->q;
	l->counted = true;
	fw_store_lower(&low, q->q.match);
	if (q->q.match.len)
		l->match = fw_buf_str(&low);
	rc = low.rc ? fw_no_memory(err) : q->q.by_due ? feeds_in_due_order(l, err) : feeds_in_id_order(l, err);
	fw_buf_finish(&low);
	return rc;
}

int sql_feed_list(struct store *st, const struct store_feed_query *q, fw_feed_cb *cb, void *ctx, struct fw_err *err)
{
	static const struct fw_feed_query any;
	struct feed_listing *l = calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return fw_no_memory(err);
	l->s = sql_of(st);
	l->q = &any;
	l->cb = cb;
	l->ctx = ctx;
	l->found = FW_BUF_INIT(0);
	rc = feed_list_run(l, q, err);
	fw_buf_finish(&l->found);
	free(l);
	return rc;
}

/* ---- changes by the user --------------------------------------------------------------------- */

/*
 * The row in schedule is locked, because a commit locks it first: so removing a feed and a commit
 * of its entries wait for each other.
 */
static int feed_position_lock(struct sql *s, int64_t feed_id, int64_t *position, struct fw_err *err)
{
	return sql_query_int(s,
		"SELECT position FROM schedule WHERE position = (SELECT position FROM feeds WHERE id = ?1) {update}",
		SQL_V(SQL_INT(feed_id)), -1, position, err);
}

int sql_feed_position(struct sql *s, int64_t feed_id, bool lock, int64_t *position, struct fw_err *err)
{
	const struct sql_value v[1] = {SQL_INT(feed_id)};
	int64_t locked = -1;
	int rc = 0;

	for (int tries = 0; !rc && tries < 5; tries++) { /* the feed may move while we wait */
		if (lock)
			rc = feed_position_lock(s, feed_id, &locked, err);
		if (!rc && locked >= 0) {
			*position = locked;
			return 0;
		}
		rc = rc ? rc : sql_query_int(s, "SELECT position FROM feeds WHERE id = ?1", v, 1, -1, position, err);
		if (!rc && *position < 0)
			return fw_err_set(
				err, FW_ENOTFOUND, "%s: no feed has the number %lld", s->name, (long long)feed_id);
		if (!lock)
			return rc;
	}
	return rc ? rc :
		    fw_err_set(err, FW_EAGAIN, "%s: feed %lld is moving to another host: try again", s->name,
			    (long long)feed_id);
}

struct feed_setting {
	const struct fw_feed *feed;
	unsigned what;
};

static int feed_set_members(struct sql *s, void *ctx, struct fw_err *err)
{
	const struct fw_feed *f = ((const struct feed_setting *)ctx)->feed;
	unsigned what = ((const struct feed_setting *)ctx)->what;
	const struct {
		unsigned bit;
		const char *text;
		struct sql_value a, b;
	} SET[] = {
		{FW_SET_TITLE, "UPDATE feeds SET user_title = ?2 WHERE id = ?1", SQL_TEXT(f->user_title), SQL_NULL},
		{FW_SET_FOLDER, "UPDATE feeds SET folder = ?2 WHERE id = ?1", SQL_TEXT(f->folder), SQL_NULL},
		{FW_SET_INTERVAL, "UPDATE feeds SET interval_ms = ?2 WHERE id = ?1", SQL_INT(f->interval_ms), SQL_NULL},
		{FW_SET_AUTH, "UPDATE feeds SET username = ?2, password = ?3 WHERE id = ?1", SQL_TEXT(f->username),
			SQL_TEXT(f->password)},
		{FW_SET_PUSH, "UPDATE feeds SET push_until_ms = ?2 WHERE id = ?1", SQL_INT(f->push_until_ms), SQL_NULL},
		{FW_SET_STATUS, "UPDATE schedule SET status = ?2 WHERE position = ?1", SQL_INT(f->status), SQL_NULL},
		{FW_SET_DUE, "UPDATE schedule SET due_at_ms = ?2, why = coalesce(?3, why) WHERE position = ?1",
			SQL_INT(f->due_at_ms), SQL_TEXT(f->why)},
		{FW_SET_CRASH, "UPDATE schedule SET crash_n = ?2 WHERE position = ?1", SQL_INT(f->crash_n), SQL_NULL},
	};
	bool changed[STORE_SHARDS] = {false};
	int64_t position;
	int rc = sql_feed_position(s, f->id, true, &position, err);

	for (size_t i = 0; !rc && i < FW_N(SET); i++) {
		bool scheduled = SET[i].bit & (FW_SET_STATUS | FW_SET_DUE | FW_SET_CRASH);

		if (what & SET[i].bit)
			rc = sql_exec(s, SET[i].text,
				(struct sql_value[]){SQL_INT(scheduled ? position : f->id), SET[i].a, SET[i].b},
				SET[i].bit & (FW_SET_AUTH | FW_SET_DUE) ? 3 : 2, err);
	}
	if (rc || !(what & (FW_SET_STATUS | FW_SET_DUE)))
		return rc;
	changed[position >> SQL_POSITION_BITS] = true;
	return sql_shards_changed(s, changed, err);
}

int sql_feed_set(struct store *st, const struct fw_feed *feed, unsigned what, struct fw_err *err)
{
	return sql_transaction(sql_of(st), feed_set_members, &(struct feed_setting){feed, what}, err);
}

/* Lock both rows in the order of a commit, so that concurrent merges cannot deadlock. */
static int feed_pair_lock(struct sql *s, int64_t from_id, int64_t into_id, int64_t *from, struct fw_err *err)
{
	int64_t into;
	int rc = sql_feed_position(s, from_id, false, from, err);

	assert(from_id != into_id);
	rc = rc ? rc : sql_feed_position(s, into_id, false, &into, err);
	if (!rc && *from < into)
		rc = sql_feed_position(s, from_id, true, from, err);
	rc = rc ? rc : sql_feed_position(s, into_id, true, &into, err);
	return rc ? rc : sql_feed_position(s, from_id, true, from, err); /* locked already, or after into */
}

struct feed_dropping {
	int64_t feed_id, into_id;
};

/* What belongs to the feed alone, and the feed. */
static int feed_rows_drop(struct sql *s, int64_t feed_id, int64_t position, struct sql_changes *log, struct fw_err *err)
{
	int rc = sql_entries_drop(s, feed_id, log, err);

	rc = rc ? rc : sql_visits_drop(s, position, err);
	rc = rc ? rc : sql_exec(s, "DELETE FROM schedule WHERE position = ?1", SQL_V(SQL_INT(position)), err);
	return rc ? rc : sql_exec(s, "DELETE FROM feeds WHERE id = ?1", SQL_V(SQL_INT(feed_id)), err);
}

static int feed_shard_changed(struct sql *s, int64_t position, struct fw_err *err)
{
	bool changed[STORE_SHARDS] = {false};

	changed[position >> SQL_POSITION_BITS] = true;
	return sql_shards_changed(s, changed, err);
}

static int feed_drop_all(struct sql *s, void *ctx, struct fw_err *err)
{
	int64_t feed_id = ((const struct feed_dropping *)ctx)->feed_id,
		into_id = ((const struct feed_dropping *)ctx)->into_id;
	struct sql_changes log = {FW_BUF_INIT(0)};
	int64_t position;
	int rc;

	rc = into_id ? feed_pair_lock(s, feed_id, into_id, &position, err) :
		       sql_feed_position(s, feed_id, true, &position, err);
	if (rc)
		return rc;
	if (into_id)
		rc = sql_entries_merge(s, feed_id, into_id, &log, err);
	if (!rc && into_id)
		rc = sql_accounts_merge(s, feed_id, into_id, &log, err);
	rc = rc ? rc : sql_accounts_feed_gone(s, feed_id, err);
	rc = rc ? rc : feed_rows_drop(s, feed_id, position, &log, err);
	rc = sql_changes_end(s, &log, rc, err);
	return rc ? rc : feed_shard_changed(s, position, err);
}

int sql_feed_drop(struct store *st, int64_t feed_id, int64_t into_id, struct fw_err *err)
{
	struct sql *s = sql_of(st);

	return feed_id == into_id ?
		fw_err_set(err, FW_EINVAL, "%s: feed %lld cannot be merged into itself: name two feeds", s->name,
			(long long)feed_id) :
		sql_transaction(s, feed_drop_all, &(struct feed_dropping){feed_id, into_id}, err);
}

/* ---- a merge that no person asked for -------------------------------------------------------- */

struct feed_logins {
	struct feed_login of[2];
	size_t n;
	struct fw_arena a;
};

static int feed_login_row(void *ctx, const struct sql_row *row)
{
	struct feed_logins *l = ctx;

	assert(l->n < FW_N(l->of));
	l->of[l->n++] = (struct feed_login){fw_arena_str(&l->a, sql_str(row, 0)), fw_arena_str(&l->a, sql_str(row, 1))};
	return l->a.failed ? FW_ENOMEM : 0;
}

static int feed_logins_check(struct sql *s, const struct feed_dropping *d, struct fw_err *err)
{
	struct feed_logins l = {.n = 0};
	int rc;

	fw_arena_init(&l.a, 0);
	rc = sql_query(s, "SELECT username, password FROM feeds WHERE id = ?1 OR id = ?2",
		SQL_V(SQL_INT(d->feed_id), SQL_INT(d->into_id)), feed_login_row, &l, err);
	if (rc == FW_ENOMEM)
		rc = fw_no_memory(err);
	if (!rc && !feed_login_same(&l.of[0], &l.of[1]))
		rc = store_logins_differ(s->name, d->feed_id, d->into_id, err);
	fw_arena_finish(&l.a);
	return rc;
}

/* The accounts have passed on. Entries that still have labels keep the feed. */
static int feed_leave(struct sql *s, int64_t feed_id, int64_t position, struct sql_changes *log, struct fw_err *err)
{
	int64_t labelled_n;
	int rc = sql_query_int(s,
		"SELECT count(*) FROM entries WHERE feed_id = ?1 AND EXISTS (SELECT 1 FROM entry_labels l"
		" WHERE l.entry_id = entries.id)",
		SQL_V(SQL_INT(feed_id)), 0, &labelled_n, err);

	if (!rc && !labelled_n)
		return feed_rows_drop(s, feed_id, position, log, err);
	rc = rc ? rc : sql_entries_shed(s, feed_id, log, err);
	return rc ? rc :
		    sql_exec(s, "UPDATE schedule SET status = ?2 WHERE position = ?1",
			    SQL_V(SQL_INT(position), SQL_INT(FW_FEED_PAUSED)), err);
}

static int feed_adopt_all(struct sql *s, void *ctx, struct fw_err *err)
{
	const struct feed_dropping *d = ctx;
	struct sql_changes log = {FW_BUF_INIT(0)};
	int64_t position;
	int rc = feed_pair_lock(s, d->feed_id, d->into_id, &position, err);

	rc = rc ? rc : feed_logins_check(s, d, err);
	if (rc)
		return rc;
	rc = sql_accounts_merge(s, d->feed_id, d->into_id, &log, err);
	rc = rc ? rc : sql_accounts_feed_gone(s, d->feed_id, err);
	rc = rc ? rc : feed_leave(s, d->feed_id, position, &log, err);
	rc = sql_changes_end(s, &log, rc, err);
	return rc ? rc : feed_shard_changed(s, position, err);
}

int sql_feed_adopt(struct store *st, int64_t from_id, int64_t into_id, struct fw_err *err)
{
	assert(from_id != into_id);
	return sql_transaction(sql_of(st), feed_adopt_all, &(struct feed_dropping){from_id, into_id}, err);
}

/* ---- changes by outcomes --------------------------------------------------------------------- */

/* A push writes only members that the feed lacks. */
#define UNTOLD(column) #column " = coalesce(nullif(t." #column ", ''), v." #column ")"

/* clang-format off */
#define UPDATE(name, set) name, {"UPDATE feeds AS t SET " set " {from} WHERE t.id = v.spot", "spot:i {" name "}"}
/* clang-format on */

/* Write the groups: one statement for each group. */
static int feed_groups_put(struct sql *s, const struct sql_visit *v, size_t n, struct fw_err *err)
{
	static const struct {
		unsigned group;
		bool push;
		const char *name;
		struct sql_text text;
	} GROUP[] = {
		{FW_GROUP_VALIDATORS, false, UPDATE("validators", "{set validators|v.}")},
		{FW_GROUP_META, false, UPDATE("meta", "{set meta|v.}")},
		{FW_GROUP_RHYTHM, false, UPDATE("rhythm", "{set rhythm|v.}")},
		{FW_GROUP_REDIRECT, false, UPDATE("redirect", "{set redirect|v.}")},
		{FW_GROUP_ERROR, false, UPDATE("error", "{set error|v.}")},
		{FW_GROUP_META, true,
			UPDATE("meta",
				UNTOLD(title) ", " UNTOLD(home_page_url) ", " UNTOLD(description) ", " UNTOLD(
					language) ", " UNTOLD(icon))},
	};
	bool push = n && v[0].o.visit.kind == FW_VISIT_PUSHED; /* all outcomes of a commit are pushes, or none is */
	int rc = 0;

	for (size_t g = 0; !rc && g < FW_N(GROUP); g++) {
		struct sql_rows r = {.s = s, .err = err, .text = GROUP[g].text};

		for (size_t i = 0; GROUP[g].push == push && i < n; i++) {
			if (v[i].o.rc != FW_ENOTFOUND && v[i].o.groups & GROUP[g].group)
				sql_rows_add_fields(&r, SQL_V(SQL_INT(v[i].o.feed_id)), GROUP[g].name, v[i].o.feed);
		}
		rc = sql_rows_end(&r);
	}
	return rc;
}

/* Move a feed to another host: its row of schedule moves to that host's shard. */
static int feed_move(struct sql *s, struct sql_visit *v, int64_t host_id, bool *changed, struct fw_err *err)
{
	int64_t feed_id = v->o.feed_id, from = v->position, to = sql_position(store_host_shard(host_id), feed_id);
	int rc = sql_exec(
		s, "UPDATE schedule SET host_id = ?2 WHERE position = ?1", SQL_V(SQL_INT(from), SQL_INT(host_id)), err);

	changed[from >> SQL_POSITION_BITS] = changed[to >> SQL_POSITION_BITS] = true;
	if (rc || to == from)
		return rc;
	v->position = to;
	rc = sql_exec(
		s, "UPDATE schedule SET position = ?2 WHERE position = ?1", SQL_V(SQL_INT(from), SQL_INT(to)), err);
	return rc ?
		rc :
		sql_exec(s, "UPDATE feeds SET position = ?2 WHERE id = ?1", SQL_V(SQL_INT(feed_id), SQL_INT(to)), err);
}

/* Write another url or host: rare, so one by one. */
static int feed_url_put(struct sql *s, struct sql_visit *v, bool *changed, struct fw_err *err)
{
	const struct fw_feed *f = v->o.feed;
	struct fw_hash128 hash = fw_hash128(f->url.p, f->url.len);
	const struct sql_value id = SQL_INT(v->o.feed_id), bytes = SQL_KEY(hash.b);
	int64_t taken = 0, host_id;
	int rc = 0;

	if (v->o.groups & FW_GROUP_URL) {
		rc = sql_query_int(
			s, "SELECT id FROM feeds WHERE url_hash = ?1 AND id <> ?2", SQL_V(bytes, id), 0, &taken, err);
		if (rc || taken) {
			v->o.rc = rc ? 0 : FW_EINVAL;
			return rc;
		}
		rc = sql_exec(s, "UPDATE feeds SET url = ?2, url_hash = ?3 WHERE id = ?1",
			SQL_V(id, SQL_TEXT(f->url), bytes), err);
	}
	if (!rc && v->o.groups & FW_GROUP_HOST)
		rc = sql_exec(s, "UPDATE feeds SET host_key = ?2 WHERE id = ?1", SQL_V(id, SQL_TEXT(f->host_key)), err);
	host_id = store_feed_host_id(f);
	return rc || host_id == v->o.host_id ? rc : feed_move(s, v, host_id, changed, err);
}

int sql_feeds_put_groups(struct sql *s, struct sql_visit *v, size_t n, bool *changed, struct fw_err *err)
{
	int rc = feed_groups_put(s, v, n, err);

	for (size_t i = 0; !rc && i < n; i++) {
		if (v[i].o.rc != FW_ENOTFOUND && v[i].o.groups & (FW_GROUP_URL | FW_GROUP_HOST))
			rc = feed_url_put(s, &v[i], changed, err);
	}
	return rc;
}
