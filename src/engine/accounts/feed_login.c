/* SPDX-License-Identifier: ISC */
/*
 * Feeds that need a name and a password. Accounts share feeds by their address, in which a login is
 * not: so whoever subscribes a feed that has one must know it, or could read what it protects. A
 * login is replaced by the next one that its only subscriber gives; not by one of somebody who
 * comes when all have left, because what it protected is still stored.
 */
#include "base/arena.h"
#include "base/str.h"
#include "engine/accounts/accounts.h"
#include "base/banned.h"

static int login_own_one(void *ctx, const struct fw_subscription *s)
{
	(void)s;
	*(bool *)ctx = true;
	return 0;
}

struct login {
	struct fw_feed known;
	bool has, own; /* the feed has a login; the account subscribes it */
	int64_t others_n;
};

/* Who subscribes is read only where a login is in question. */
static int login_read(struct fw_store *st, int64_t account_id, int64_t feed_id, bool given, struct fw_arena *a,
	struct login *l, struct fw_err *err)
{
	int rc = fw_store_feed_find(st, feed_id, FW_STR_NONE, a, &l->known, err);

	l->has = !rc && (l->known.username.len || l->known.password.len);
	if (rc || (!l->has && !given))
		return rc;
	rc = fw_account_subscription_list(st, account_id, feed_id, true, login_own_one, &l->own, err);
	rc = rc == FW_ENOTFOUND ? 0 : rc;
	rc = rc ? rc : store_of(st)->driver->accounts->subscriber_count(store_of(st), feed_id, &l->others_n, err);
	l->others_n -= l->own;
	return rc;
}

static int login_replace(
	struct fw_store *st, struct login *l, const struct fw_feed_new *f, int64_t now_ms, struct fw_err *err)
{
	l->known.username = f->username;
	l->known.password = f->password;
	l->known.due_at_ms = now_ms;
	return fw_store_feed_set(st, &l->known, FW_SET_AUTH | FW_SET_DUE, err);
}

int account_feed_login(struct fw_store *st, int64_t account_id, const struct fw_feed_new *f, int64_t now_ms, bool *may,
	struct fw_err *err)
{
	bool given = f->username.len || f->password.len, same, refused;
	struct login l = {.has = false};
	struct fw_arena a;
	int rc;

	fw_arena_init(&a, 0);
	rc = login_read(st, account_id, f->id, given, &a, &l, err);
	same = !rc && fw_str_eq(l.known.username, f->username) && fw_str_eq(l.known.password, f->password);
	refused = l.known.http_status == 401;
	*may = same || (given ? !l.has && !refused : !l.has || l.own);
	if (!rc && !*may && given && !l.others_n && (l.own || !l.has)) {
		*may = true;
		rc = login_replace(st, &l, f, now_ms, err);
	}
	fw_arena_finish(&a);
	return rc;
}
