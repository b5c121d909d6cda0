/* SPDX-License-Identifier: ISC */
/*
 * Subscriptions with the number of their unread entries. Most accounts subscribe few of many feeds,
 * or most of all. For few, their feeds' rows are read; for most, the whole schedule is, in one
 * pass: for thousands of feeds that is several times faster than a look-up of each.
 */
#include <stdlib.h>
#include <string.h>

#include "store/sql/accounts.h"

#define MOST 4 /* a fourth of all feeds */

/* ---- in memory ------------------------------------------------------------------------------- */

struct subscription_reading {
	struct fw_arena *a;
	struct fw_buf b; /* array of struct sql_subscription */
	struct sql_subscription *at;
	size_t n;
};

static int subscription_read_row(void *ctx, const struct sql_row *row)
{
	struct subscription_reading *r = ctx;
	struct sql_subscription s = {.feed_id = sql_int(row, 0),
		.read_n = sql_int(row, 1),
		.mark_id = sql_int(row, 2),
		.folder = sql_str(row, 3),
		.total_n = -1};

	s.folder = s.folder.len ? fw_arena_str(r->a, s.folder) : FW_STR("");
	fw_buf_add(&r->b, &s, sizeof(s));
	return r->b.rc || !s.folder.p ? FW_ENOMEM : 0;
}

FW_COMPARE(subscription_compare, struct sql_subscription, feed_id)

struct sql_subscription *sql_subscription_find(struct sql_subscription *at, size_t n, int64_t feed_id)
{
	const struct sql_subscription key = {.feed_id = feed_id};

	return n ? bsearch(&key, at, n, sizeof(*at), subscription_compare) : NULL;
}

/* Of any feed: by its number, how many entries it has above an id; or by its position, the rest. */
static int subscription_schedule_row(void *ctx, const struct sql_row *row)
{
	const struct subscription_reading *r = ctx;
	int64_t feed_id = sql_int(row, 3);
	struct sql_subscription *s = sql_subscription_find(
		r->at, r->n, feed_id ? feed_id : sql_position_feed(sql_int(row, 0)));

	if (s && feed_id) {
		s->above_n = sql_int(row, 1);
	} else if (s) {
		s->total_n = sql_int(row, 1);
		s->newest_ms = sql_int(row, 2);
	}
	return 0;
}

static int subscription_total_row(void *ctx, const struct sql_row *row)
{
	const struct subscription_reading *r = ctx;
	struct sql_subscription *s = &r->at[sql_int(row, 0)];

	s->total_n = sql_int(row, 1);
	s->newest_ms = sql_int(row, 2);
	s->above_n = sql_int(row, 3);
	return 0;
}

/* One statement reads both numbers: between two, a commit may add entries. */
static int subscription_totals_read(struct sql *s, struct subscription_reading *r, int64_t above_id, struct fw_err *err)
{
	struct sql_rows rows = SQL_QUERY_ROWS(s, err, subscription_total_row, r,
		"SELECT v.nth, t.entry_total_n, t.last_new_ms, (SELECT count(*) FROM entries e WHERE e.feed_id ="
		" v.feed AND e.id > v.above) FROM {rows} feeds f, schedule t WHERE f.id = v.feed AND t.position ="
		" f.position",
		"nth:i feed:i above:i");
	/* +: by id, not by feed, of which SQLite would read all entries */
	static const char *const ALL[] = {"SELECT position, entry_total_n, last_new_ms, 0 FROM schedule",
		"SELECT position, entry_total_n, last_new_ms, 0 FROM schedule UNION ALL SELECT 0, count(*), 0,"
		" +feed_id FROM entries WHERE id > ?1 GROUP BY +feed_id"};
	const struct sql_value above = SQL_INT(above_id ? above_id : INT64_MAX);
	int64_t all;
	int rc = sql_query_int(s, "SELECT value FROM meta WHERE name = 'feed_id'", SQL_NONE, 0, &all, err);

	if (!rc && (int64_t)r->n * MOST >= all)
		return sql_query(s, ALL[above_id > 0], &above, above_id > 0, subscription_schedule_row, r, err);
	rows.rc = rc;
	for (size_t i = 0; i < r->n; i++)
		sql_rows_add(&rows, SQL_V(SQL_INT(i), SQL_INT(r->at[i].feed_id), above));
	return sql_rows_end(&rows);
}

int sql_subscriptions_read(struct sql *s, int64_t account_id, int64_t above_id, struct fw_arena *a,
	struct sql_subscription **out, size_t *n, struct fw_err *err)
{
	struct subscription_reading r = {.a = a, .b = FW_BUF_INIT(0)};
	int rc = sql_query(s,
		"SELECT feed_id, read_n, mark_id, folder FROM subscriptions WHERE account_id = ?1 ORDER BY feed_id",
		SQL_V(SQL_INT(account_id)), subscription_read_row, &r, err);

	*out = NULL;
	*n = 0;
	rc = rc == FW_ENOMEM ? fw_no_memory(err) : rc;
	r.n = r.b.len / sizeof(*r.at);
	if (!rc && r.n) {
		r.at = fw_arena_mul(a, r.n, sizeof(*r.at), 0);
		rc = r.at ? 0 : fw_no_memory(err);
	}
	if (!rc && r.n) {
		memcpy(r.at, r.b.p, r.n * sizeof(*r.at));
		rc = subscription_totals_read(s, &r, above_id, err);
	}
	fw_buf_finish(&r.b);
	*out = r.at;
	*n = rc ? 0 : r.n;
	return rc;
}

/* ---- the list -------------------------------------------------------------------------------- */

static int subscriptions_show(struct sql *s, int64_t account_id, fw_subscription_cb *cb, void *ctx, struct fw_err *err)
{
	struct sql_subscription *at;
	struct fw_arena a;
	size_t n;
	int rc;

	fw_arena_init(&a, 0);
	rc = sql_subscriptions_read(s, account_id, 0, &a, &at, &n, err);
	for (size_t i = 0; !rc && i < n; i++) {
		const struct fw_subscription sub = {.feed_id = at[i].feed_id,
			.unread_n = at[i].total_n - at[i].read_n,
			.newest_ms = at[i].newest_ms,
			.folder = at[i].folder};

		rc = at[i].total_n < 0 ? 0 : cb(ctx, &sub);
	}
	fw_arena_finish(&a);
	return rc;
}

struct account_subscription_listing {
	fw_subscription_cb *cb;
	void *ctx;
	int64_t last_id;
	size_t n;
};

static int account_subscription_row(void *ctx, const struct sql_row *row)
{
	struct account_subscription_listing *l = ctx;
	struct fw_feed f = {.id = sql_int(row, 0)};
	struct fw_subscription sub = {
		.feed_id = f.id, .unread_n = sql_int(row, 1), .newest_ms = sql_int(row, 2), .folder = sql_str(row, 3)};

	l->last_id = f.id;
	l->n++;
	if (!sub.folder.p)
		sub.folder = FW_STR("");
	sub.added_ms = sql_int(row, 4);
	sub.title = sql_str(row, 5).p ? sql_str(row, 5) : FW_STR("");
	sub.feed = &f;
	f.last_new_ms = sub.newest_ms;
	f.url = sql_str(row, 6);
	f.title = sql_str(row, 7);
	f.user_title = sql_str(row, 8);
	f.home_page_url = sql_str(row, 9);
	f.icon = sql_str(row, 10);
	f.error = sql_str(row, 11);
	f.description = sql_str(row, 12);
	f.etag = sql_str(row, 13);
	f.last_modified = sql_str(row, 14);
	f.status = (enum fw_feed_status)sql_int(row, 15);
	f.due_at_ms = sql_int(row, 16);
	f.last_visit_ms = sql_int(row, 17);
	f.last_ok_ms = sql_int(row, 18);
	f.last_kind = (enum fw_visit_kind)sql_int(row, 19);
	f.http_status = (int)sql_int(row, 20);
	f.fail_n = (uint32_t)sql_int(row, 21);
	f.extra = sql_str(row, 22);
	return l->cb(l->ctx, &sub);
}

/* clang-format off */
#define SUBSCRIPTION \
	"SELECT s.feed_id, t.entry_total_n - s.read_n, t.last_new_ms, s.folder, s.added_ms, s.title, f.url, f.title," \
	" f.user_title, f.home_page_url, f.icon, f.error, f.description, f.etag, f.last_modified, t.status," \
	" t.due_at_ms, t.last_visit_ms, t.last_ok_ms, t.last_kind, t.http_status, t.fail_n, f.extra" \
	" FROM subscriptions s JOIN feeds f ON f.id = s.feed_id JOIN schedule t ON t.position = f.position" \
	" WHERE s.account_id = ?1 AND "
/* clang-format on */
#define SUBSCRIPTION_PAGE 2000 /* some client libraries buffer a whole result */

int sql_account_subscription_list(struct store *st, int64_t account_id, int64_t feed_id, bool brief,
	fw_subscription_cb *cb, void *ctx, struct fw_err *err)
{
	struct account_subscription_listing l = {.cb = cb, .ctx = ctx};
	struct sql *s = sql_of(st);
	int rc = sql_accounts_absent(s, err);

	if (rc)
		return rc;
	if (brief && !feed_id)
		return subscriptions_show(s, account_id, cb, ctx, err);
	if (feed_id)
		return sql_query(s, SUBSCRIPTION "s.feed_id = ?2", SQL_V(SQL_INT(account_id), SQL_INT(feed_id)),
			account_subscription_row, &l, err);
	do {
		l.n = 0;
		rc = sql_query(s, SUBSCRIPTION "s.feed_id > ?2 ORDER BY s.feed_id LIMIT ?3",
			SQL_V(SQL_INT(account_id), SQL_INT(l.last_id), SQL_INT(SUBSCRIPTION_PAGE)),
			account_subscription_row, &l, err);
	} while (!rc && l.n == SUBSCRIPTION_PAGE);
	return rc;
}

int sql_account_newest_id(struct store *st, int64_t *id, struct fw_err *err)
{
	struct sql *s = sql_of(st);
	int rc = sql_accounts_absent(s, err);

	return rc ? rc : sql_query_int(s, "SELECT value FROM meta WHERE name = 'entry_id'", SQL_NONE, 0, id, err);
}
