/* SPDX-License-Identifier: ISC */
/*
 * Addresses: which feed has which, and how feeds are removed or merged. Each change is a sequence
 * of idempotent steps across cells, as redis.h describes.
 */
#include <assert.h>
#include <unistd.h>

#include "store/redis/redis.h"
#include "base/banned.h"

#define TRIES 20
/* pause between two tries; after TRIES of them the other process counts as dead */
#define TRY_US 5000

int rs_missing(const struct rs *r, int64_t feed_id, struct fw_err *err)
{
	return fw_err_set(
		err, FW_ENOTFOUND, "%s: no feed has the number %lld", r->target.name, (long long)feed_id);
}

int rs_addresses_ask(struct rs *r, const int64_t *id, size_t n, struct rs_reply ***row, struct fw_err *err)
{
	int rc;

	for (size_t i = 0; i < n; i++) {
		rs_ask(r, rs_cell(r, id[i]), "HGET", "feed");
		rs_addi(r, id[i]);
	}
	rc = n ? rs_run(r, "finding feeds", err) : 0;
	*row = r->reply;
	return rc;
}

bool rs_has_address(const struct rs_reply *row, struct fw_str url)
{
	return row->type == RS_TEXT && fw_str_eq(rs_address_url(rs_groups_part(row->text, RS_ADDRESS)), url);
}

int rs_url_find(struct rs *r, struct fw_str url, int64_t *id, struct fw_err *err)
{
	struct rs_reply **row;
	int64_t whose;
	int rc;

	*id = 0;
	rs_ask(r, RS_META, "HGET", "urls");
	rs_add(r, url);
	rc = rs_run(r, "finding an address", err);
	whose = rc ? 0 : rs_int(r->reply[0]);
	if (rc || !whose)
		return rc;
	rc = rs_addresses_ask(r, &whose, 1, &row, err);
	*id = !rc && rs_has_address(*row, url) ? whose : 0;
	return rc;
}

/*
 * *whose in: the feed that had the address at the last look, 0: none; out: the feed that has it
 * now.
 */
static int claim_try(struct rs *r, struct fw_str url, int64_t feed_id, int64_t *whose, struct fw_err *err)
{
	int rc;

	rs_op(r, RS_META, RS_WRITE, "claim");
	rs_addi(r, 1);
	rs_add(r, url);
	rs_addi(r, feed_id);
	if (*whose)
		rs_addi(r, *whose);
	else
		rs_adds(r, "");
	rc = rs_run(r, "claiming an address", err);
	if (!rc)
		*whose = rs_int(r->reply[0]->elem[0]);
	return rc;
}

/* *has: the feed exists and has the address. Otherwise it will never have it. */
static int void_try(struct rs *r, struct fw_str url, int64_t feed_id, bool *has, struct fw_err *err)
{
	int rc;

	rs_op(r, rs_cell(r, feed_id), RS_WRITE, "void");
	rs_addi(r, feed_id);
	rs_add(r, url);
	rc = rs_run(r, "claiming an address", err);
	*has = !rc && rs_int(r->reply[0]) > 0;
	return rc;
}

int rs_url_claim(struct rs *r, struct fw_str url, int64_t feed_id, int64_t *whose, struct fw_err *err)
{
	int64_t there = 0;
	bool has = false;
	int rc;

	*whose = 0;
	rc = claim_try(r, url, feed_id, whose, err);
	/* another process is about to store that feed */
	for (int i = 0; !rc && *whose != feed_id && i < TRIES; i++) {
		rc = rs_url_find(r, url, &there, err);
		if (rc || there) {
			*whose = there;
			return rc;
		}
		usleep(i ? TRY_US : 0);
		*whose = 0;
		rc = claim_try(r, url, feed_id, whose, err);
	}
	for (int i = 0; !rc && *whose != feed_id && !has && i < TRIES; i++) {
		rc = void_try(r, url, *whose, &has, err);
		if (!rc && !has)
			rc = claim_try(r, url, feed_id, whose, err);
	}
	assert(rc || !has || *whose != feed_id);
	if (!rc && *whose != feed_id && !has)
		rc = fw_err_set(err, FW_EAGAIN, "%s: address %.*s: other processes keep claiming it: try again",
			r->target.name, FW_STR_ARG(fw_str_sub(url, 0, 200)));
	return rc;
}

int rs_url_release(struct rs *r, struct fw_str url, int64_t feed_id, struct fw_err *err)
{
	rs_op(r, RS_META, RS_TRIM, "unclaim");
	rs_add(r, url);
	rs_addi(r, feed_id);
	return rs_run(r, "releasing an address", err);
}

/* ---- removing and merging ----- -------------------------------------------------------------- */

/* into_id 0: no merge. *answer: 1 removed, 0 no such feed, -1 a merge into another feed runs. */
static int feed_remove(struct rs *r, int64_t id, int64_t into_id, int64_t *answer, struct fw_err *err)
{
	const struct rs_reply *url;
	int rc;

	rs_op(r, rs_cell(r, id), RS_TRIM, "remove");
	rs_addi(r, id);
	if (into_id)
		rs_addi(r, into_id);
	else
		rs_adds(r, "");
	rc = rs_run(r, "removing a feed", err);
	if (rc)
		return rc;
	url = r->reply[0];
	*answer = url->type == RS_TEXT ? 1 : rs_int(url);
	return *answer > 0 ? rs_url_release(r, url->text, id, err) : 0;
}

static void list_add(struct rs *r, const struct rs_reply *list)
{
	rs_addi(r, (int64_t)(list->n / 2));
	for (size_t i = 0; i < list->n; i++)
		rs_add(r, list->elem[i]->text);
}

/*
 * If the feed is gone, another process finished the merge. FW_ENOTFOUND: `into` does not exist.
 * FW_EAGAIN: `into` is being merged itself. After an error the feed `id` is unchanged.
 */
static int merge_finish(struct rs *r, int64_t id, int64_t into_id, struct fw_err *err)
{
	const struct rs_reply *all;
	int64_t there, answer;
	int rc;

	rs_op(r, rs_cell(r, id), RS_READ, "export");
	rs_addi(r, id);
	rc = rs_run(r, "merging feeds", err);
	all = rc ? NULL : r->reply[0];
	if (rc || all->type != RS_ARRAY)
		return rc;
	rs_op(r, rs_cell(r, into_id), RS_WRITE, "adopt");
	rs_addi(r, into_id);
	list_add(r, all->elem[0]);
	list_add(r, all->elem[1]);
	rc = rs_run(r, "merging feeds", err);
	there = rc ? 0 : rs_int(r->reply[0]);
	if (rc)
		return rc;
	if (there < 1) {
		rs_op(r, rs_cell(r, id), RS_WRITE, "unmerge");
		rs_addi(r, id);
		rc = rs_run(r, "merging feeds", err);
		return rc ? rc : !there ? rs_missing(r, into_id, err) :
			fw_err_set(err, FW_EAGAIN, "%s: feed %lld is being merged into another feed: try again",
				r->target.name, (long long)into_id);
	}
	/*
	 * lists over all cells start again: the entries are in both feeds now, and soon in one only
	 */
	rs_ask(r, RS_META, "HINCRBY", "meta");
	rs_adds(r, "moved");
	rs_addi(r, 1);
	rc = rs_run(r, "merging feeds", err);
	return rc ? rc : feed_remove(r, id, into_id, &answer, err);
}

int rs_merges_finish(struct rs *r, int cell, struct fw_err *err)
{
	const struct rs_reply *all;
	int rc;

	rs_ask(r, cell, "HGETALL", "merging");
	rc = rs_run(r, "merging feeds", err);
	all = rc ? NULL : r->reply[0];
	for (size_t i = 0; !rc && i + 2 <= all->n; i += 2) {
		rc = merge_finish(r, rs_int(all->elem[i]), rs_int(all->elem[i + 1]), err);
		if (rc == FW_ENOTFOUND)
			rc = 0;
	}
	return rc;
}

static int merge(struct rs *r, int64_t id, int64_t into_id, int64_t *answer, struct fw_err *err)
{
	int rc;

	rs_ask(r, rs_cell(r, into_id), "HEXISTS", "feed");
	rs_addi(r, into_id);
	rs_ask(r, rs_cell(r, id), "HEXISTS", "feed");
	rs_addi(r, id);
	rc = rs_run(r, "merging feeds", err);
	if (rc)
		return rc;
	if (!rs_int(r->reply[0]))
		return rs_missing(r, into_id, err);
	*answer = 0;
	if (!rs_int(r->reply[1]))
		return 0;
	rs_op(r, rs_cell(r, id), RS_WRITE, "merge");
	rs_addi(r, id);
	rs_addi(r, into_id);
	rc = rs_run(r, "merging feeds", err);
	*answer = rc ? 0 : rs_int(r->reply[0]);
	return rc || *answer < 1 ? rc : merge_finish(r, id, into_id, err);
}

int rs_feed_drop(struct store *st, int64_t feed_id, int64_t into_id, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int64_t answer = -1;
	int rc = rs_start(r, true, err);

	if (!rc && feed_id == into_id)
		return fw_err_set(err, FW_EINVAL, "%s: feed %lld cannot be merged into itself: name two different feeds",
			r->target.name, (long long)feed_id);
	for (int i = 0; !rc && answer < 0 && i < TRIES; i++) {
		rc = into_id ? merge(r, feed_id, into_id, &answer, err) : feed_remove(r, feed_id, 0, &answer, err);
		if (!rc && answer < 0)
			rc = rs_merges_finish(r, rs_cell(r, feed_id), err);
	}
	if (rc || answer > 0)
		return rc;
	return answer ? fw_err_set(err, FW_EAGAIN, "%s: feed %lld is being merged into another feed: try again",
				r->target.name, (long long)feed_id)
		      : rs_missing(r, feed_id, err);
}
