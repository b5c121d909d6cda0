/* SPDX-License-Identifier: ISC */
/*
 * Visits: one list, appended to. A visit's number is its place there, counted from the first one that ever was; "visits_gone" in meta
 * says how many are no more at its begin. Each line names the place of the same feed's visit before it, so a feed's history is a chain,
 * walked on the server. Lines of feeds that are gone are empty.
 */
#include <stdlib.h>

#include "store/redis.h"

#define HISTORY_MAX 50 /* visits of a feed by one script */

/* ---- visits --------------------------------------------------------------------------------------------------------------------- */

struct visits {
	struct redis *r;
	const struct fw_visit_query *q;
	fw_visit_cb *cb;
	void *ctx;
	struct fw_arena arena; /* of a portion */
	size_t shown;
};

/* Show lines of visits, the last one first or the first one; first_id is that of lines->elem[0], or number tells for each. */
static int lines_show(struct visits *v, int shard, const struct rd_reply *lines, bool backwards, int64_t first_id,
	const struct rd_reply *number, struct fw_err *err)
{
	struct fw_visit *visit = fw_arena_alloc(&v->arena, (lines->n + 1) * sizeof(*visit));
	struct fw_feed *feed = fw_arena_zalloc(&v->arena, (lines->n + 1) * sizeof(*feed)), **at;
	unsigned *groups = fw_arena_zalloc(&v->arena, (lines->n + 1) * sizeof(*groups));
	size_t n = 0;
	int rc;

	at = fw_arena_alloc(&v->arena, (lines->n + 1) * sizeof(struct fw_feed *));
	if (!visit || !feed || !groups || !at)
		return rd_no_memory(v->r, err);
	for (size_t i = 0; i < lines->n; i++) {
		size_t at_line = backwards ? lines->n - 1 - i : i;
		struct fw_visit *t = &visit[n];

		if (!rd_visit_unpack(lines->elem[at_line]->text, t)) /* empty: its feed is gone */
			continue;
		t->id = number ? rd_int(number->elem[at_line]) : first_id + (int64_t)at_line;
		t->id = (t->id - 1) * v->r->shard_n + shard + 1;
		if ((v->q->run_id && t->run_id != v->q->run_id) || t->at_ms < v->q->since_ms || t->id <= v->q->after_id)
			continue;
		feed[n].id = t->feed_id;
		at[n] = &feed[n];
		n++;
	}
	rc = rd_feeds_fill(v->r, shard, at, groups, n, &v->arena, err);
	for (size_t i = 0; i < n && !rc && (!v->q->limit || v->shown < v->q->limit); i++) {
		visit[i].feed_url = feed[i].url;
		if (!feed[i].url.p)
			continue;
		v->shown++;
		rc = v->cb(v->ctx, &visit[i]);
	}
	return rc;
}

static bool more_wanted(const struct visits *v)
{
	return !v->q->limit || v->shown < v->q->limit;
}

static int feed_visits(struct visits *v, struct fw_err *err)
{
	struct redis *r = v->r;
	int shard = rd_shard_of_feed(r, v->q->feed_id), rc;
	char place[20] = "";
	struct rd_reply *reply;
	struct rd_conn *c = rd_ask(r, shard, "HGET", "wheel", 1, err);

	if (!c)
		return err->rc;
	rd_add_int(c, v->q->feed_id);
	rc = rd_run1(r, shard, &v->arena, &reply, "listing visits", err);
	if (rc || reply->type == RD_NIL)
		return rc;
	(void)fw_str_copy(place, sizeof(place), fw_str_sub(reply->text, 0, 19));
	while (!rc && more_wanted(v)) {
		fw_arena_reset(&v->arena, RD_ARENA_KEEP);
		c = rd_op(r, shard, RD_READ, "history", 3, err);
		if (!c)
			return err->rc;
		rd_add(c, fw_str(place));
		rd_add_int(c, v->q->feed_id);
		rd_add_int(c, HISTORY_MAX);
		rc = rd_run1(r, shard, &v->arena, &reply, "listing visits", err);
		if (rc || !reply->elem[0]->n)
			return rc;
		(void)fw_str_copy(place, sizeof(place), reply->elem[1]->text);
		rc = lines_show(v, shard, reply->elem[0], false, 0, reply->elem[2], err);
	}
	return rc;
}

/* Where the list begins, its length, and where the run's first visit is (0: not asked for; -1: it has none). */
static int visits_limits(struct visits *v, int shard, int64_t *gone, int64_t *n, int64_t *first, struct fw_err *err)
{
	struct redis *r = v->r;
	struct rd_reply **reply;
	struct rd_conn *c = rd_ask(r, shard, "HGET", "meta", 1, err);
	int rc;

	if (!c)
		return err->rc;
	rd_add(c, FW_STR("visits_gone"));
	(void)rd_ask(r, shard, "LLEN", "visits", 0, err);
	(void)rd_ask(r, shard, "HGET", "runs", 1, err);
	rd_add_int(c, v->q->run_id);
	rc = rd_run(r, shard, &v->arena, &reply, "listing visits", err);
	if (rc)
		return rc;
	*gone = rd_int(reply[0]);
	*n = rd_int(reply[1]);
	*first = !v->q->run_id ? 0 : reply[2]->type == RD_NIL ? -1 : rd_int(reply[2]);
	return 0;
}

static int shard_visits(struct visits *v, int shard, struct fw_err *err)
{
	int64_t gone = 0, n = 0, first = 0, lo;
	int rc = visits_limits(v, shard, &gone, &n, &first, err);

	if (rc || first < 0)
		return rc;
	lo = FW_MAX(first - gone, 0);
	if (v->q->oldest_first) /* numbers of a shard rise by shard_n */
		lo = FW_MAX(lo, v->q->after_id / v->r->shard_n - 1 - gone);
	for (int64_t done = 0; done < n - lo && !rc && more_wanted(v); done += RD_CHUNK) {
		int64_t from = v->q->oldest_first ? lo + done : FW_MAX(n - done - RD_CHUNK, lo);
		int64_t to = v->q->oldest_first ? from + RD_CHUNK : n - done;
		struct rd_reply *lines;
		struct rd_conn *c;

		fw_arena_reset(&v->arena, RD_ARENA_KEEP);
		c = rd_ask(v->r, shard, "LRANGE", "visits", 2, err);
		if (!c)
			return err->rc;
		rd_add_int(c, from);
		rd_add_int(c, to - 1);
		rc = rd_run1(v->r, shard, &v->arena, &lines, "listing visits", err);
		rc = rc ? rc : lines_show(v, shard, lines, !v->q->oldest_first, gone + from + 1, NULL, err);
	}
	return rc;
}

struct kept { /* visits of several shards, to be put in order */
	struct fw_buf at;
	struct fw_arena words;
};

static int visit_keep(void *ctx, const struct fw_visit *v)
{
	struct kept *k = ctx;
	struct fw_visit copy = *v;

	copy.error = fw_arena_str(&k->words, v->error);
	copy.feed_url = fw_arena_str(&k->words, v->feed_url);
	fw_buf_add(&k->at, &copy, sizeof(copy));
	return k->at.rc || k->words.failed ? FW_ENOMEM : 0;
}

static int later(const void *a, const void *b)
{
	const struct fw_visit *x = a, *y = b;

	return x->at_ms > y->at_ms ? -1 : x->at_ms < y->at_ms;
}

static int by_number(const void *a, const void *b)
{
	const struct fw_visit *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int all_shards(struct visits *v, struct fw_err *err)
{
	struct kept k = {FW_BUF_INIT(0)};
	struct fw_visit *at;
	int rc = 0;

	fw_arena_init(&k.words, 0);
	for (int shard = 0; shard < v->r->shard_n && !rc; shard++) {
		struct visits one = *v;

		one.cb = visit_keep;
		one.ctx = &k;
		rc = shard_visits(&one, shard, err);
		v->arena = one.arena;
	}
	at = (struct fw_visit *)(void *)k.at.p;
	if (rc == FW_ENOMEM)
		rc = rd_no_memory(v->r, err);
	if (!rc && k.at.len)
		qsort(at, k.at.len / sizeof(*at), sizeof(*at), v->q->oldest_first ? by_number : later);
	for (size_t i = 0; i < k.at.len / sizeof(*at) && !rc && more_wanted(v); i++) {
		v->shown++;
		rc = v->cb(v->ctx, &at[i]);
	}
	fw_buf_finish(&k.at);
	fw_arena_finish(&k.words);
	return rc;
}

int rd_visit_list(struct fw_store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx, struct fw_err *err)
{
	struct visits v = {.r = redis_of(st), .q = q, .cb = cb, .ctx = ctx};
	int rc;

	fw_arena_init(&v.arena, 0);
	if (q->feed_id)
		rc = feed_visits(&v, err);
	else
		rc = v.r->shard_n == 1 ? shard_visits(&v, 0, err) : all_shards(&v, err);
	fw_arena_finish(&v.arena);
	return rc;
}
