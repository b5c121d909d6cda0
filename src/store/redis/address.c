/* SPDX-License-Identifier: ISC */
/* Addresses: which feed has which; feeds are removed and merged. */
#include <assert.h>

#include "store/feed_access.h"
#include "store/redis/redis.h"

int rs_feed_missing(const struct rs *r, int64_t feed_id, struct fw_err *err)
{
	return fw_err_set(err, FW_ENOTFOUND, "%s: no feed has the number %lld", r->target.name, (long long)feed_id);
}

int rs_feed_rows_read(struct rs *r, const int64_t *id, size_t n, const struct rs_reply ***row, struct fw_err *err)
{
	int rc;

	for (size_t i = 0; i < n; i++) {
		rs_command_key(r, "HGET", "feed");
		rs_expect(r, "t?");
		rs_addi(r, id[i]);
	}
	rc = n ? rs_run(r, "finding feeds", err) : 0;
	*row = r->reply;
	return rc;
}

int rs_url_find(struct rs *r, struct fw_str url, int64_t *id, struct fw_err *err)
{
	int rc;

	rs_call(r, RS_READ, "url_owner");
	rs_expect(r, "i?");
	rs_add(r, url);
	rc = rs_run(r, "finding an address", err);
	*id = rc ? 0 : rs_int(r->reply[0]);
	return rc;
}

/* ---- removing and merging -------------------------------------------------------------------- */

int rs_feed_drop(struct store *st, int64_t feed_id, int64_t into_id, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int64_t answer;
	int rc = rs_slot_start(r, true, err);

	if (!rc && feed_id == into_id)
		return fw_err_set(err, FW_EINVAL,
			"%s: feed %lld cannot be merged into itself: name two different feeds", r->target.name,
			(long long)feed_id);
	if (rc)
		return rc;
	rs_call(r, RS_TRIM, "remove");
	rs_expect(r, "i");
	rs_addi(r, feed_id);
	if (into_id)
		rs_addi(r, into_id);
	else
		rs_adds(r, "");
	rc = rs_run(r, "removing a feed", err);
	answer = rc ? 0 : rs_int(r->reply[0]);
	return rc || answer > 0 ? rc : rs_feed_missing(r, answer ? into_id : feed_id, err);
}

/* Without accounts nobody has read or labelled anything. */
int rs_feed_adopt(struct store *st, int64_t from_id, int64_t into_id, struct fw_err *err)
{
	const int64_t id[2] = {from_id, into_id};
	struct rs *r = rs_of(st);
	struct fw_feed f[2] = {{0}};
	const struct rs_reply **row;
	int rc = rs_slot_start(r, false, err);

	assert(from_id != into_id);
	rc = rc ? rc : rs_feed_rows_read(r, id, FW_N(id), &row, err);
	for (size_t i = 0; !rc && i < FW_N(id); i++) {
		struct fw_str own = rs_feed_row_group(row[i]->text, RS_OWNER_SETTINGS);

		if (!own.p)
			return rs_feed_missing(r, id[i], err);
		rs_unpack(own, &rs_group[RS_OWNER_SETTINGS].members, &f[i]);
	}
	if (!rc &&
		!feed_login_same(&(struct feed_login){f[0].username, f[0].password},
			&(struct feed_login){f[1].username, f[1].password}))
		rc = store_logins_differ(r->target.name, from_id, into_id, err);
	return rc ? rc : rs_feed_drop(st, from_id, 0, err);
}
