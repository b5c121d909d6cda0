/* SPDX-License-Identifier: ISC */
/*
 * Addresses: which feed has which, and how feeds are removed or merged. Each change is a sequence
 * of idempotent steps across cells, as redis.h describes.
 */
#include <assert.h>
#include <unistd.h>

#include "store/feed_access.h"
#include "store/redis/redis.h"

#define TRIES 20
/* pause between two tries; after TRIES of them the other process counts as dead */
#define TRY_US 5000

int rs_feed_missing(const struct rs *r, int64_t feed_id, struct fw_err *err)
{
	return fw_err_set(err, FW_ENOTFOUND, "%s: no feed has the number %lld", r->target.name, (long long)feed_id);
}

int rs_feed_rows_read(struct rs *r, const int64_t *id, size_t n, const struct rs_reply ***row, struct fw_err *err)
{
	int rc;

	for (size_t i = 0; i < n; i++) {
		rs_command_key(r, rs_cell(r, id[i]), "HGET", "feed");
		rs_expect(r, "t?");
		rs_addi(r, id[i]);
	}
	rc = n ? rs_run(r, "finding feeds", err) : 0;
	*row = r->reply;
	return rc;
}

bool rs_row_has_url(const struct rs_reply *row, struct fw_str url)
{
	return row->type == RS_TEXT && fw_str_eq(rs_address_url(rs_feed_row_group(row->text, RS_ADDRESS)), url);
}

int rs_url_find(struct rs *r, struct fw_str url, int64_t *id, struct fw_err *err)
{
	const struct rs_reply **row;
	int64_t owner_id;
	int rc;

	*id = 0;
	rs_command_key(r, RS_META, "HGET", "urls");
	rs_expect(r, "t?");
	rs_add(r, url);
	rc = rs_run(r, "finding an address", err);
	owner_id = rc ? 0 : rs_int(r->reply[0]);
	if (rc || !owner_id)
		return rc;
	rc = rs_feed_rows_read(r, &owner_id, 1, &row, err);
	*id = !rc && rs_row_has_url(*row, url) ? owner_id : 0;
	return rc;
}

/*
 * *owner_id in: the feed that had the address at the last look, 0: none; out: the feed that has it
 * now.
 */
static int url_claim_try(struct rs *r, struct fw_str url, int64_t feed_id, int64_t *owner_id, struct fw_err *err)
{
	int rc;

	rs_call(r, RS_META, RS_WRITE, "url_claim");
	rs_expect(r, "[t]");
	rs_addi(r, 1);
	rs_add(r, url);
	rs_addi(r, feed_id);
	if (*owner_id)
		rs_addi(r, *owner_id);
	else
		rs_adds(r, "");
	rc = rs_run(r, "claiming an address", err);
	if (!rc)
		*owner_id = rs_int(rs_elem(r->reply[0], 0));
	return rc;
}

/* *has: the feed exists and has the address. Otherwise it will never have it. */
static int url_void_try(struct rs *r, struct fw_str url, int64_t feed_id, bool *has, struct fw_err *err)
{
	int rc;

	rs_call(r, rs_cell(r, feed_id), RS_WRITE, "void");
	rs_expect(r, "i");
	rs_addi(r, feed_id);
	rs_add(r, url);
	rc = rs_run(r, "claiming an address", err);
	*has = !rc && rs_int(r->reply[0]) > 0;
	return rc;
}

int rs_url_claim(struct rs *r, struct fw_str url, int64_t feed_id, int64_t *owner_id, struct fw_err *err)
{
	int64_t there = 0;
	bool has = false;
	int rc;

	*owner_id = 0;
	rc = url_claim_try(r, url, feed_id, owner_id, err);
	/* another process is about to store that feed */
	for (int i = 0; !rc && *owner_id != feed_id && i < TRIES; i++) {
		rc = rs_url_find(r, url, &there, err);
		if (rc || there) {
			*owner_id = there;
			return rc;
		}
		usleep(i ? TRY_US : 0);
		*owner_id = 0;
		rc = url_claim_try(r, url, feed_id, owner_id, err);
	}
	for (int i = 0; !rc && *owner_id != feed_id && !has && i < TRIES; i++) {
		rc = url_void_try(r, url, *owner_id, &has, err);
		if (!rc && !has)
			rc = url_claim_try(r, url, feed_id, owner_id, err);
	}
	assert(rc || !has || *owner_id != feed_id);
	if (!rc && *owner_id != feed_id && !has)
		rc = fw_err_set(err, FW_EAGAIN, "%s: address %.*s: other processes keep claiming it: try again",
			r->target.name, FW_STR_ARG(fw_str_sub(url, 0, 200)));
	return rc;
}

int rs_url_release(struct rs *r, struct fw_str url, int64_t feed_id, struct fw_err *err)
{
	rs_call(r, RS_META, RS_TRIM, "url_release");
	rs_add(r, url);
	rs_addi(r, feed_id);
	return rs_run(r, "releasing an address", err);
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
	rs_call(r, RS_META, RS_TRIM, "remove");
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
