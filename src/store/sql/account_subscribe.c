/* SPDX-License-Identifier: ISC */
/*
 * Subscribing. Whether the account may have the feed is decided within the transaction: the account
 * is locked from before its feed's login is read. Whoever gives a feed another login locks all
 * accounts, so that nobody comes to read what that login protects meanwhile.
 */
#include "store/sql/accounts.h"

#define PAST_LIMIT                                                                                     \
	"the account has as many feeds as it may have (account_feeds_max in feedwheel.conf(5)): leave" \
	" some first"

struct account_joining {
	int64_t account_id, now_ms;
	struct store_wanted_feed *w;
	size_t n;
	int64_t room;
};

struct account_claim {
	struct feed_claim c;
	bool found;
	struct fw_arena a;
};

static int account_claim_row(void *ctx, const struct sql_row *row)
{
	struct account_claim *w = ctx;

	w->found = true;
	w->c.known.username = fw_arena_str(&w->a, sql_str(row, 0));
	w->c.known.password = fw_arena_str(&w->a, sql_str(row, 1));
	w->c.shut = sql_int(row, 2) == 401;
	w->c.empty = !sql_int(row, 3) && !sql_int(row, 4);
	w->c.own = sql_int(row, 5) > 0;
	w->c.others_n = sql_int(row, 6);
	w->c.by_account = sql_int(row, 7) > 0;
	return w->a.failed ? FW_ENOMEM : 0;
}

/* Set existed, access and refused. */
static int account_access(struct sql *s, int64_t account_id, struct store_wanted_feed *w, struct fw_err *err)
{
	struct account_claim q = {.c = {.given = w->login}};
	struct account_feed_key key;
	int rc;

	fw_arena_init(&q.a, 0);
	rc = sql_query(s,
		"SELECT f.username, f.password, t.http_status, t.last_ok_ms, t.entry_total_n,"
		" (SELECT count(*) FROM subscriptions o WHERE o.account_id = ?1 AND o.feed_id = ?2),"
		" (SELECT count(*) FROM subscriptions o WHERE o.feed_id = ?2 AND o.account_id <> ?1),"
		" (SELECT count(*) FROM records r WHERE r.kind = ?3 AND r.record_key = ?4)"
		" FROM feeds f JOIN schedule t ON t.position = f.position WHERE f.id = ?2",
		SQL_V(SQL_INT(account_id), SQL_INT(w->set.feed_id), SQL_TEXT(STORE_ACCOUNT_FEED),
			SQL_BLOB(account_feed_key(&key, w->set.feed_id))),
		account_claim_row, &q, err);
	if (rc == FW_ENOMEM)
		rc = fw_no_memory(err);
	if (!rc && !q.found)
		rc = fw_err_set(
			err, FW_ENOTFOUND, "%s: no feed has the number %lld", s->name, (long long)w->set.feed_id);
	w->existed = q.c.own;
	w->access = feed_access_decide(&q.c, &w->refused);
	fw_arena_finish(&q.a);
	return rc;
}

/*
 * The number of unread entries is counted in the statement that reads entry_total_n: so one
 * snapshot has both. Whoever removes a feed locks all accounts before it removes subscriptions.
 */
static int account_subscription_insert(
	struct sql *s, const struct account_joining *j, const struct fw_subscription *set, struct fw_err *err)
{
	int64_t mark_id, n = 0;
	int rc = sql_query_int(s, "SELECT id FROM entries WHERE feed_id = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2",
		SQL_V(SQL_INT(set->feed_id), SQL_INT(FW_ACCOUNT_FRESH_N)), 0, &mark_id, err);

	rc = rc ? rc :
		  sql_exec_count(s,
			  "INSERT INTO subscriptions (account_id, feed_id, mark_id, read_n, added_ms, title, folder)"
			  " SELECT ?1, ?2, ?3, t.entry_total_n - (SELECT count(*) FROM entries e WHERE e.feed_id = ?2"
			  " AND e.id > ?3), ?4, ?5, ?6 FROM feeds f JOIN schedule t ON t.position = f.position"
			  " WHERE f.id = ?2",
			  SQL_V(SQL_INT(j->account_id), SQL_INT(set->feed_id), SQL_INT(mark_id), SQL_INT(j->now_ms),
				  SQL_TEXT(set->title), SQL_TEXT(set->folder)),
			  &n, err);
	return rc || n ?
		rc :
		fw_err_set(err, FW_ENOTFOUND, "%s: no feed has the number %lld", s->name, (long long)set->feed_id);
}

/* The note that an account added the feed: not the operator. */
static int account_feed_note(struct sql *s, const struct account_joining *j, int64_t feed_id, struct fw_err *err)
{
	struct account_feed_key key;

	return sql_exec(s,
		"INSERT INTO records (kind, record_key, value, at_ms, until_ms) VALUES (?1, ?2, ?3, ?4, NULL)"
		" {keep kind, record_key|records.kind}",
		SQL_V(SQL_TEXT(STORE_ACCOUNT_FEED), SQL_BLOB(account_feed_key(&key, feed_id)), SQL_BLOB(FW_STR("")),
			SQL_INT(j->now_ms)),
		err);
}

/* The account may have it. */
static int account_join(struct sql *s, struct account_joining *j, struct store_wanted_feed *w, struct fw_err *err)
{
	int rc = w->fresh ? account_feed_note(s, j, w->set.feed_id, err) : 0;

	if (rc || w->existed)
		return rc ? rc : sql_account_subscription_update(s, j->account_id, &w->set, err);
	if (j->room <= 0) {
		w->refused = PAST_LIMIT;
		return 0;
	}
	j->room--;
	return account_subscription_insert(s, j, &w->set, err);
}

static int account_room(struct sql *s, int64_t account_id, int64_t *n, struct fw_err *err)
{
	int rc = 0;

	*n = INT64_MAX;
	if (s->account_feeds_max)
		rc = sql_query_int(s, "SELECT count(*) FROM subscriptions WHERE account_id = ?1",
			SQL_V(SQL_INT(account_id)), 0, n, err);
	if (!rc && s->account_feeds_max)
		*n = FW_MAX(s->account_feeds_max - *n, INT64_C(0));
	return rc;
}

/* ---- with another login ---------------------------------------------------------------------- */

/* A status that another login got is none of this one's. */
static int login_store(struct sql *s, const struct account_joining *j, int64_t position, struct fw_err *err)
{
	const struct sql_value id = SQL_INT(j->w->set.feed_id);
	bool anew = j->w->access == FEED_ACCESS_ANEW;
	int rc = anew ? sql_exec(s, "DELETE FROM subscriptions WHERE feed_id = ?1 AND account_id <> ?2",
				SQL_V(id, SQL_INT(j->account_id)), err) :
			0;

	rc = rc ? rc :
		  sql_exec(s, "UPDATE feeds SET username = ?2, password = ?3 WHERE id = ?1",
			  SQL_V(id, SQL_TEXT(j->w->login.username), SQL_TEXT(j->w->login.password)), err);
	return rc ? rc :
		    sql_exec(s, "UPDATE schedule SET http_status = 0, due_at_ms = ?2 WHERE position = ?1",
			    SQL_V(SQL_INT(position), SQL_INT(j->now_ms)), err);
}

static bool login_is_new(const struct store_wanted_feed *w)
{
	return w->access == FEED_ACCESS_LOGIN || w->access == FEED_ACCESS_ANEW;
}

/* The feed is locked first, as a commit does it. */
static int login_join(struct sql *s, void *ctx, struct fw_err *err)
{
	struct account_joining *j = ctx;
	bool changed[STORE_SHARDS] = {false}, any;
	int64_t position;
	int rc = sql_feed_position(s, j->w->set.feed_id, true, &position, err);

	rc = rc ? rc : sql_accounts_lock_all(s, &any, err);
	rc = rc ? rc : sql_account_lock(s, j->account_id, err);
	rc = rc ? rc : account_room(s, j->account_id, &j->room, err);
	rc = rc ? rc : account_access(s, j->account_id, j->w, err);
	if (rc || j->w->access == FEED_ACCESS_REFUSED)
		return rc;
	rc = account_join(s, j, j->w, err);
	if (rc || j->w->refused || !login_is_new(j->w))
		return rc;
	rc = login_store(s, j, position, err);
	changed[position >> SQL_POSITION_BITS] = true;
	return rc ? rc : sql_shards_changed(s, changed, err);
}

/* ---- the slots ------------------------------------------------------------------------------- */

int sql_account_room(struct store *st, int64_t account_id, int64_t *n, struct fw_err *err)
{
	return account_room(sql_of(st), account_id, n, err);
}

static int account_subscribe(struct sql *s, void *ctx, struct fw_err *err)
{
	struct account_joining *j = ctx;
	int rc = sql_account_lock(s, j->account_id, err);

	rc = rc ? rc : account_room(s, j->account_id, &j->room, err);
	for (size_t i = 0; !rc && i < j->n; i++) {
		rc = account_access(s, j->account_id, &j->w[i], err);
		if (!rc && j->w[i].access == FEED_ACCESS_AS_IT_IS)
			rc = account_join(s, j, &j->w[i], err);
	}
	return rc;
}

/* Each feed that gets another login has a transaction of its own. */
int sql_account_subscribe(
	struct store *st, int64_t account_id, struct store_wanted_feed *w, size_t n, int64_t now_ms, struct fw_err *err)
{
	struct account_joining j = {.account_id = account_id, .now_ms = now_ms, .w = w, .n = n};
	int rc = sql_transaction(sql_of(st), account_subscribe, &j, err);

	for (size_t i = 0; !rc && i < n; i++) {
		j.w = &w[i];
		if (login_is_new(&w[i]))
			rc = sql_transaction(sql_of(st), login_join, &j, err);
	}
	return rc;
}
