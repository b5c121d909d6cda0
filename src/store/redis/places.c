/* SPDX-License-Identifier: ISC */
/*
 * Where feeds lie, whose addresses are, and how feeds get to another cell or go away: in steps, see
 * redis.h.
 */
#include <string.h>
#include <unistd.h>

#include "store/redis/redis.h"
#include "base/banned.h"

#define BUCKET_BITS 7
#define TRIES 20
#define TRY_US 5000 /* others are about to finish: so long, and then they are taken for dead */

static void bucket_add(struct rs *r, int64_t id, bool as_key, const char *cmd)
{
	int64_t bucket = id >> BUCKET_BITS;
	char key[40];

	(void)fw_snprintf(key, sizeof(key), "place:%lld", (long long)bucket);
	if (as_key) {
		rs_ask(r, (int)(bucket % RS_CELLS), cmd, key);
	} else {
		rs_op(r, (int)(bucket % RS_CELLS), strcmp(cmd, "unplace") == 0 ? RS_TRIM : RS_WRITE, cmd);
		rs_addi(r, bucket);
	}
}

int rs_places_find(struct rs *r, struct rs_place *p, size_t n, struct fw_err *err)
{
	int rc;

	for (size_t i = 0; i < n; i++) {
		bucket_add(r, p[i].id, true, "HGET");
		rs_addi(r, p[i].id);
	}
	rc = n ? rs_run(r, "finding feeds", err) : 0;
	for (size_t i = 0; !rc && i < n; i++) {
		struct fw_str moves, shard = fw_str_split(r->reply[i]->text, ' ', &moves);
		int64_t at = -1;

		p[i].moves = 0;
		if (r->reply[i]->type != RS_TEXT || !fw_str_int(shard, &at) || !fw_str_int(moves, &p[i].moves))
			at = -1;
		p[i].shard = (int)at;
	}
	return rc;
}

static int missing(struct rs *r, int64_t feed_id, struct fw_err *err)
{
	return fw_err_set(
		err, FW_ENOTFOUND, "%s: no feed has the number %lld", r->target.name, (long long)feed_id);
}

static int busy(struct rs *r, int64_t feed_id, struct fw_err *err)
{
	return fw_err_set(err, FW_EAGAIN, "%s: feed %lld goes from one host to another just now: try again",
		r->target.name, (long long)feed_id);
}

int rs_place_of(struct rs *r, int64_t feed_id, int *shard, struct fw_err *err)
{
	struct rs_place p = {.id = feed_id};
	int rc = rs_places_find(r, &p, 1, err);

	*shard = p.shard;
	return rc || p.shard >= 0 ? rc : missing(r, feed_id, err);
}

/* Those of one bucket lie in a row, mostly. */
int rs_places_put(struct rs *r, const struct rs_place *p, size_t n, struct fw_err *err)
{
	size_t end;

	for (size_t i = 0; i < n; i = end) {
		for (end = i + 1; end < n && p[end].id >> BUCKET_BITS == p[i].id >> BUCKET_BITS; end++)
			;
		bucket_add(r, p[i].id, false, "place");
		rs_addi(r, (int64_t)(end - i));
		for (size_t k = i; k < end; k++) {
			rs_addi(r, p[k].id);
			rs_addi(r, p[k].shard);
			rs_addi(r, p[k].moves);
		}
	}
	for (size_t i = 0; i < n; i++) {
		if (i && p[i].id >> BUCKET_BITS == p[i - 1].id >> BUCKET_BITS)
			continue;
		rs_ask(r, RS_META, "ZADD", "places");
		rs_addi(r, p[i].id >> BUCKET_BITS);
		rs_addi(r, p[i].id >> BUCKET_BITS);
	}
	return n ? rs_run(r, "noting where feeds are", err) : 0;
}

static int place_drop(struct rs *r, int64_t feed_id, struct fw_err *err)
{
	bucket_add(r, feed_id, false, "unplace");
	rs_addi(r, feed_id);
	return rs_run(r, "removing a feed", err);
}

/* ---- addresses ------------------------------------------------------------------------------- */

struct fw_str rs_address_url(struct fw_str row)
{
	struct fw_str host;

	return fw_str_split(row, '\n', &host);
}

int rs_url_find(struct rs *r, struct fw_str url, int64_t *id, int *shard, struct fw_err *err)
{
	struct rs_place p = {0};
	int rc;

	*id = 0;
	rs_ask(r, rs_url_cell(url), "HGET", "urls");
	rs_add(r, url);
	rc = rs_run(r, "finding an address", err);
	p.id = rc ? 0 : rs_int(r->reply[0]);
	if (rc || !p.id)
		return rc;
	rc = rs_places_find(r, &p, 1, err);
	if (rc || p.shard < 0)
		return rc;
	rs_ask(r, rs_cell(p.shard), "HGET", "address");
	rs_addi(r, p.id);
	rc = rs_run(r, "finding an address", err);
	if (!rc && r->reply[0]->type == RS_TEXT && fw_str_eq(rs_address_url(r->reply[0]->text), url)) {
		*id = p.id;
		*shard = p.shard;
	}
	return rc;
}

/* *whose: who has the address now, of whom it was said before that he had it. */
static int claim_try(struct rs *r, struct fw_str url, int64_t feed_id, int64_t *whose, struct fw_err *err)
{
	int rc;

	rs_op(r, rs_url_cell(url), RS_WRITE, "claim");
	rs_add(r, url);
	rs_addi(r, feed_id);
	if (*whose)
		rs_addi(r, *whose);
	else
		rs_adds(r, "");
	rc = rs_run(r, "taking an address", err);
	if (!rc)
		*whose = rs_int(r->reply[0]);
	return rc;
}

/* *has: that feed is there and has the address; else it will never have it. */
static int void_try(struct rs *r, struct fw_str url, int64_t feed_id, bool *has, struct fw_err *err)
{
	struct rs_place p = {.id = feed_id};
	int rc = rs_places_find(r, &p, 1, err);

	*has = false;
	if (rc || p.shard < 0)
		return rc;
	rs_op(r, rs_cell(p.shard), RS_WRITE, "void");
	rs_addi(r, feed_id);
	rs_add(r, url);
	rc = rs_run(r, "taking an address", err);
	*has = !rc && rs_int(r->reply[0]) > 0;
	return rc;
}

int rs_url_claim(struct rs *r, struct fw_str url, int64_t feed_id, int64_t *whose, struct fw_err *err)
{
	int64_t there = 0;
	bool has = false;
	int shard, rc = 0;

	*whose = 0;
	rc = claim_try(r, url, feed_id, whose, err);
	for (int i = 0; !rc && *whose != feed_id && i < TRIES; i++) { /* somebody is about to have it */
		rc = rs_url_find(r, url, &there, &shard, err);
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
	if (!rc && *whose != feed_id && !has)
		rc = fw_err_set(err, FW_EAGAIN, "%s: others take the address %.*s again and again: try again",
			r->target.name, FW_STR_ARG(fw_str_sub(url, 0, 200)));
	return rc;
}

int rs_url_release(struct rs *r, struct fw_str url, int64_t feed_id, struct fw_err *err)
{
	rs_op(r, rs_url_cell(url), RS_TRIM, "unclaim");
	rs_add(r, url);
	rs_addi(r, feed_id);
	return rs_run(r, "releasing an address", err);
}

/* ---- to another cell, into another feed, away ------------------------------------------------ */

static void list_add(struct rs *r, const struct rs_reply *list)
{
	rs_addi(r, (int64_t)(list->n / 2));
	for (size_t i = 0; i < list->n; i++)
		rs_add(r, list->elem[i]->text);
}

/* What another cell's import takes; NULL: it is gone. */
static int feed_export(struct rs *r, int cell, int64_t id, const struct rs_reply **out, struct fw_err *err)
{
	int rc;

	rs_op(r, cell, RS_READ, "export");
	rs_addi(r, id);
	rc = rs_run(r, "moving a feed", err);
	*out = rc || r->reply[0]->type != RS_ARRAY ? NULL : r->reply[0];
	return rc;
}

static int feed_remove(struct rs *r, int cell, int64_t id, const int64_t *moves, const struct rs_reply **out,
	struct fw_err *err)
{
	int rc;

	rs_op(r, cell, RS_TRIM, "remove");
	rs_addi(r, id);
	if (moves)
		rs_addi(r, *moves);
	else
		rs_adds(r, "");
	rc = rs_run(r, "removing a feed", err);
	*out = rc ? NULL : r->reply[0];
	return rc;
}

/* Who walks through all cells looks once more: it is in both now, and soon in one. */
static int moved_note(struct rs *r, struct fw_err *err)
{
	rs_op(r, RS_META, RS_TRIM, "moved");
	return rs_run(r, "moving a feed", err);
}

static int move_finish(struct rs *r, int cell, int64_t id, struct fw_err *err)
{
	const struct rs_reply *all, *gone;
	struct rs_place p = {.id = id};
	struct rs_state s;
	struct fw_feed f = {0};
	int rc = feed_export(r, cell, id, &all, err);

	if (rc || !all || !rs_state_unpack(all->elem[0]->text, &f, &s))
		return rc;
	p.shard = s.shard;
	p.moves = s.moves;
	rs_op(r, rs_cell(p.shard), RS_WRITE, "import");
	rs_addi(r, id);
	for (size_t i = 0; i < 1 + RS_GROUP_N; i++)
		rs_add(r, all->elem[i]->text);
	for (size_t i = 1 + RS_GROUP_N; i < all->n; i++)
		list_add(r, all->elem[i]);
	rc = rs_run(r, "moving a feed", err);
	rc = rc ? rc : rs_places_put(r, &p, 1, err);
	rc = rc ? rc : moved_note(r, err);
	return rc ? rc : feed_remove(r, cell, id, &p.moves, &gone, err);
}

/* Its rows are gone: what pointed to it. */
static int traces_drop(struct rs *r, int64_t id, const struct rs_reply *address, struct fw_err *err)
{
	int rc = address->type == RS_TEXT ? rs_url_release(r, rs_address_url(address->text), id, err) : 0;

	return rc ? rc : place_drop(r, id, err);
}

static int unmerge(struct rs *r, int cell, int64_t id, struct fw_err *err)
{
	rs_op(r, cell, RS_WRITE, "unmerge");
	rs_addi(r, id);
	return rs_run(r, "merging feeds", err);
}

/* FW_ENOTFOUND: `into` is not there; then `id` is as before. */
static int merge_finish(struct rs *r, int cell, int64_t id, int64_t into_id, struct fw_err *err)
{
	const struct rs_reply *all, *gone;
	struct rs_place into = {.id = into_id};
	struct rs_state s;
	struct fw_feed f = {0};
	int64_t there = 0;
	int rc = feed_export(r, cell, id, &all, err);

	rc = rc || !all ? rc : rs_places_find(r, &into, 1, err);
	if (rc || !all || !rs_state_unpack(all->elem[0]->text, &f, &s))
		return rc;
	if (into.shard >= 0) {
		rs_op(r, rs_cell(into.shard), RS_WRITE, "adopt");
		rs_addi(r, into_id);
		list_add(r, all->elem[1 + RS_GROUP_N]);
		list_add(r, all->elem[2 + RS_GROUP_N]);
		rc = rs_run(r, "merging feeds", err);
		there = rc ? 0 : rs_int(r->reply[0]);
	}
	if (rc)
		return rc;
	if (there < 1) {
		rc = unmerge(r, cell, id, err);
		return rc ? rc : there ? busy(r, into_id, err) : missing(r, into_id, err);
	}
	rc = moved_note(r, err);
	rc = rc ? rc : feed_remove(r, cell, id, &s.moves, &gone, err);
	return rc || gone->type != RS_TEXT ? rc : traces_drop(r, id, gone, err);
}

int rs_moves_finish(struct rs *r, int cell, struct fw_err *err)
{
	const struct rs_reply *all;
	int rc;

	rs_ask(r, cell, "HGETALL", "moving");
	rc = rs_run(r, "moving feeds", err);
	all = rc ? NULL : r->reply[0];
	for (size_t i = 0; !rc && i + 2 <= all->n; i += 2) {
		int64_t id = rs_int(all->elem[i]), into;
		struct fw_str to = all->elem[i + 1]->text;

		if (fw_str_starts(to, FW_STR("into ")) && fw_str_int(fw_str_sub(to, 5, to.len), &into))
			rc = merge_finish(r, cell, id, into, err);
		else
			rc = move_finish(r, cell, id, err);
		if (rc == FW_ENOTFOUND)
			rc = 0;
	}
	return rc;
}

/* FW_ENOTFOUND, with words. */
static int is_there(struct rs *r, int64_t id, struct fw_err *err)
{
	int shard, rc = rs_place_of(r, id, &shard, err);

	if (rc)
		return rc;
	rs_ask(r, rs_cell(shard), "HEXISTS", "state");
	rs_addi(r, id);
	rc = rs_run(r, "finding a feed", err);
	return rc || rs_int(r->reply[0]) ? rc : missing(r, id, err);
}

static int merge(struct rs *r, int cell, int64_t id, int64_t into_id, int64_t *answer, struct fw_err *err)
{
	int rc = is_there(r, into_id, err);

	if (rc)
		return rc;
	rs_op(r, cell, RS_WRITE, "merge");
	rs_addi(r, id);
	rs_addi(r, into_id);
	rc = rs_run(r, "merging feeds", err);
	*answer = rc ? 0 : rs_int(r->reply[0]);
	return rc || *answer < 1 ? rc : merge_finish(r, cell, id, into_id, err);
}

/* *answer: 1 it is done, 0 there is no such feed there, -1 it is moving. */
static int drop_try(struct rs *r, int cell, int64_t id, int64_t into_id, int64_t *answer, struct fw_err *err)
{
	const struct rs_reply *gone;
	int rc;

	if (into_id)
		return merge(r, cell, id, into_id, answer, err);
	rc = feed_remove(r, cell, id, NULL, &gone, err);
	if (rc)
		return rc;
	*answer = gone->type == RS_INT ? -1 : gone->type == RS_TEXT;
	return *answer == 1 ? traces_drop(r, id, gone, err) : 0;
}

int rs_feed_drop(struct store *st, int64_t feed_id, int64_t into_id, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int64_t answer = -1;
	int shard, rc = rs_start(r, true, err);

	if (!rc && feed_id == into_id)
		return fw_err_set(err, FW_EINVAL, "%s: feed %lld cannot be merged into itself: name two",
			r->target.name, (long long)feed_id);
	for (int i = 0; !rc && answer < 0 && i < TRIES; i++) {
		rc = rs_place_of(r, feed_id, &shard, err);
		rc = rc ? rc : drop_try(r, rs_cell(shard), feed_id, into_id, &answer, err);
		if (!rc && answer < 0)
			rc = rs_moves_finish(r, rs_cell(shard), err);
	}
	if (rc || answer == 1)
		return rc;
	return answer ? busy(r, feed_id, err) : missing(r, feed_id, err);
}
