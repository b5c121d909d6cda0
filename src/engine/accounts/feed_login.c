/* SPDX-License-Identifier: ISC */
#include "api/feed_login.h"
#include "base/arena.h"
#include "base/err.h"
#include "store/feed_access.h"

int fw_feed_login_check(struct fw_store *st, const struct fw_feed_new *f, struct fw_err *err)
{
	const struct feed_login given = {f->username, f->password};
	struct feed_login known;
	struct fw_feed feed;
	struct fw_arena a;
	int rc;

	if (!feed_login_is(&given))
		return 0;
	fw_arena_init(&a, 0);
	rc = fw_store_feed_find(st, 0, f->url, &a, &feed, err);
	known = rc ? given : (struct feed_login){feed.username, feed.password};
	if (!rc && !feed_login_same(&given, &known))
		rc = fw_err_set(err, FW_EINVAL,
			"feed %lld has this address with %s, which stays: leave the login out, or remove the feed"
			" first",
			(long long)feed.id, feed_login_is(&known) ? "another login" : "no login");
	fw_arena_finish(&a);
	return rc == FW_ENOTFOUND ? 0 : rc;
}
