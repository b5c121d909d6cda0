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

/* ---- removing and merging ----- -------------------------------------------------------------- */

static int feed_remove_try(
	struct rs *r, int64_t id, int64_t into_id, const struct rs_reply *moved, int64_t *answer, struct fw_err *err)
{
	struct rs_numbers number;
	const struct rs_reply *url;
	int rc;

	rs_command(r, rs_cell(r, id), "HLEN");
	rs_expect(r, "i");
	rs_key(r, rs_cell(r, id), "keys:%lld", (long long)id);
	rc = rs_run(r, "removing a feed", err);
	rc = rc ? rc : rs_numbers_reserve(r, rs_int(r->reply[0]), &number, err);
	if (rc)
		return rc;
	rs_call(r, rs_cell(r, id), RS_TRIM, "remove");
	rs_expect(r, "t?|i");
	rs_addi(r, id);
	if (into_id)
		rs_addi(r, into_id);
	else
		rs_adds(r, "");
	rs_addi(r, number.first_id + 1);
	rs_addi(r, number.n);
	rs_addi(r, number.revoked[rs_cell(r, id)]);
	rs_addi(r, moved ? (int64_t)moved->n : 0);
	for (size_t i = 0; moved && i < moved->n; i++)
		rs_add(r, rs_elem(moved, i)->text);
	rc = rs_run(r, "removing a feed", err);
	url = rc ? NULL : r->reply[0];
	rc = rs_numbers_release(r, &number, rc, err);
	if (rc || !url)
		return rc;
	*answer = url->type == RS_TEXT ? 1 : rs_int(url);
	return *answer > 0 ? rs_url_release(r, url->text, id, err) : 0;
}

#define REMOVE_AGAIN (-2) /* it got entries meanwhile, or its numbers were revoked */

/*
 * into_id 0: no merge. moved: entries that into_id has now; NULL: none. *answer: 1 removed, 0 no
 * such feed, -1 a merge into another feed runs.
 */
static int feed_remove(
	struct rs *r, int64_t id, int64_t into_id, const struct rs_reply *moved, int64_t *answer, struct fw_err *err)
{
	int rc = 0;

	*answer = REMOVE_AGAIN;
	for (int i = 0; !rc && *answer == REMOVE_AGAIN && i < TRIES; i++)
		rc = feed_remove_try(r, id, into_id, moved, answer, err);
	return rc || *answer != REMOVE_AGAIN ?
		rc :
		fw_err_set(err, FW_EAGAIN, "%s: feed %lld keeps getting entries: try again", r->target.name,
			(long long)id);
}

/* A list of groups of `per` words. */
static void groups_add(struct rs *r, const struct rs_reply *list, size_t per)
{
	rs_addi(r, (int64_t)(list->n / per));
	for (size_t i = 0; i < list->n; i++)
		rs_add(r, rs_elem(list, i)->text);
}

#define MOVE_AGAIN (-2) /* its numbers were revoked */

/* Store the exported entries in feed into_id. *moved: the reply of merge_entries. */
static int entries_move(
	struct rs *r, int64_t into_id, const struct rs_reply *all, const struct rs_reply **moved, struct fw_err *err)
{
	int rc = 0;

	*moved = NULL;
	for (int i = 0; !rc && i < TRIES && (!*moved || rs_int(*moved) == MOVE_AGAIN); i++) {
		struct rs_numbers number;

		rc = rs_numbers_reserve(r, (int64_t)rs_elem(all, 1)->n / 2, &number, err);
		if (rc)
			return rc;
		rs_call(r, rs_cell(r, into_id), RS_WRITE, "merge_entries");
		rs_expect(r, "(t)|i");
		rs_addi(r, into_id);
		rs_addi(r, number.first_id + 1);
		rs_addi(r, number.revoked[rs_cell(r, into_id)]);
		groups_add(r, rs_elem(all, 0), 2);
		groups_add(r, rs_elem(all, 1), 2);
		groups_add(r, rs_elem(all, 2), 3);
		rc = rs_run(r, "merging feeds", err);
		*moved = rc ? NULL : r->reply[0];
		rc = rs_numbers_release(r, &number, rc, err);
	}
	return rc;
}

/*
 * If the feed is gone, another process finished the merge. FW_ENOTFOUND: `into` does not exist.
 * FW_EAGAIN: `into` is being merged itself. After an error the feed `id` is unchanged.
 */
static int feed_merge_finish(struct rs *r, int64_t id, int64_t into_id, struct fw_err *err)
{
	const struct rs_reply *all, *moved;
	int64_t there, answer;
	int rc;

	rs_call(r, rs_cell(r, id), RS_READ, "export");
	rs_expect(r, "[(tt)(tt)(ttt)]?");
	rs_addi(r, id);
	rc = rs_run(r, "merging feeds", err);
	all = rc ? NULL : r->reply[0];
	if (rc || all->type != RS_ARRAY)
		return rc;
	rc = entries_move(r, into_id, all, &moved, err);
	if (rc)
		return rc;
	there = rs_int(moved);
	if (moved->type != RS_ARRAY) {
		rs_call(r, rs_cell(r, id), RS_WRITE, "unmerge");
		rs_addi(r, id);
		rc = rs_run(r, "merging feeds", err);
		return rc ? rc :
			!there ?
			    rs_feed_missing(r, into_id, err) :
			    fw_err_set(err, FW_EAGAIN, "%s: feed %lld is being merged into another feed: try again",
				    r->target.name, (long long)into_id);
	}
	/*
	 * lists over all cells start again: the entries are in both feeds now, and soon in one only
	 */
	rs_command_key(r, RS_META, "HINCRBY", "meta");
	rs_adds(r, "merge_n");
	rs_addi(r, 1);
	rc = rs_run(r, "merging feeds", err);
	return rc ? rc : feed_remove(r, id, into_id, moved, &answer, err);
}

int rs_merges_finish(struct rs *r, int cell, struct fw_err *err)
{
	const struct rs_reply *all;
	int rc;

	rs_command_key(r, cell, "HGETALL", "merging");
	rs_expect(r, "(tt)");
	rc = rs_run(r, "merging feeds", err);
	all = rc ? NULL : r->reply[0];
	for (size_t i = 0; !rc && i + 2 <= all->n; i += 2) {
		rc = feed_merge_finish(r, rs_int(rs_elem(all, i)), rs_int(rs_elem(all, i + 1)), err);
		if (rc == FW_ENOTFOUND)
			rc = 0;
	}
	return rc;
}

static int feed_merge_start(struct rs *r, int64_t id, int64_t into_id, int64_t *answer, struct fw_err *err)
{
	int rc;

	rs_command_key(r, rs_cell(r, into_id), "HEXISTS", "feed");
	rs_expect(r, "i");
	rs_addi(r, into_id);
	rs_command_key(r, rs_cell(r, id), "HEXISTS", "feed");
	rs_expect(r, "i");
	rs_addi(r, id);
	rc = rs_run(r, "merging feeds", err);
	if (rc)
		return rc;
	if (!rs_int(r->reply[0]))
		return rs_feed_missing(r, into_id, err);
	*answer = 0;
	if (!rs_int(r->reply[1]))
		return 0;
	rs_call(r, rs_cell(r, id), RS_WRITE, "merge");
	rs_expect(r, "i");
	rs_addi(r, id);
	rs_addi(r, into_id);
	rc = rs_run(r, "merging feeds", err);
	*answer = rc ? 0 : rs_int(r->reply[0]);
	return rc || *answer < 1 ? rc : feed_merge_finish(r, id, into_id, err);
}

int rs_feed_drop(struct store *st, int64_t feed_id, int64_t into_id, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int64_t answer = -1;
	int rc = rs_slot_start(r, true, err);

	if (!rc && feed_id == into_id)
		return fw_err_set(err, FW_EINVAL,
			"%s: feed %lld cannot be merged into itself: name two different feeds", r->target.name,
			(long long)feed_id);
	for (int i = 0; !rc && answer < 0 && i < TRIES; i++) {
		rc = into_id ? feed_merge_start(r, feed_id, into_id, &answer, err) :
			       feed_remove(r, feed_id, 0, NULL, &answer, err);
		if (!rc && answer < 0)
			rc = rs_merges_finish(r, rs_cell(r, feed_id), err);
	}
	if (rc || answer > 0)
		return rc;
	return answer ? fw_err_set(err, FW_EAGAIN, "%s: feed %lld is being merged into another feed: try again",
				r->target.name, (long long)feed_id) :
			rs_feed_missing(r, feed_id, err);
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
