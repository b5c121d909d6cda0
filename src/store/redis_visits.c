/* SPDX-License-Identifier: ISC */
/*
 * Visits: each commit is one value with a line for each visit, for the server has nothing to do with them but to keep them. A visit's
 * number is that of its batch, which stands in an order of its own, and its line's in it; a line never moves, but may be empty: its feed
 * is gone. Each line names the batch of the same feed's visit before it, so a feed's history is a chain, walked on the server.
 */
#include <stdlib.h>

#include "store/redis.h"

#define HISTORY_MAX 50 /* visits of a feed by one script */
#define BATCHES 4      /* read at a time */

/* ---- visits --------------------------------------------------------------------------------------------------------------------- */

struct visits {
	struct redis *r;
	const struct fw_visit_query *q;
	fw_visit_cb *cb;
	void *ctx;
	struct fw_arena arena; /* of a portion */
	size_t shown;
};

/* Show visits in this order; their ids are set. */
static int visits_show(struct visits *v, int shard, const struct fw_visit *visit, size_t n, struct fw_err *err)
{
	struct fw_feed *feed = fw_arena_calloc(&v->arena, n + 1, sizeof(*feed)), **at;
	int rc;

	at = fw_arena_mul(&v->arena, n + 1, sizeof(struct fw_feed *), 0);
	if (!feed || !at)
		return rd_no_memory(v->r, err);
	for (size_t i = 0; i < n; i++) {
		feed[i].id = visit[i].feed_id;
		at[i] = &feed[i];
	}
	rc = rd_feeds_get(v->r, shard, at, n, 0, &v->arena, err);
	for (size_t i = 0; i < n && !rc && (!v->q->limit || v->shown < v->q->limit); i++) {
		struct fw_visit one = visit[i];

		one.feed_url = feed[i].url;
		if (!feed[i].url.p)
			continue;
		v->shown++;
		rc = v->cb(v->ctx, &one);
	}
	return rc;
}

/* Take a line apart; number counts the shard's visits. False: it is empty, or not asked for. */
static bool visit_take(const struct visits *v, int shard, struct fw_str line, int64_t number, struct fw_visit *out)
{
	if (!rd_visit_unpack(line, out))
		return false;
	out->id = (number - 1) * v->r->shard_n + shard + 1;
	return (!v->q->run_id || out->run_id == v->q->run_id) && out->at_ms >= v->q->since_ms && out->id > v->q->after_id;
}

static bool more_wanted(const struct visits *v)
{
	return !v->q->limit || v->shown < v->q->limit;
}

static int feed_visits(struct visits *v, struct fw_err *err)
{
	struct redis *r = v->r;
	struct fw_feed feed = {.id = v->q->feed_id}, *at = &feed;
	int shard = rd_shard_of_feed(r, v->q->feed_id), rc;
	struct rd_reply *reply, *value;
	struct rd_loan loan = {0};
	char batch[64] = "";

	rc = rd_feeds_read(r, shard, &at, 1, &v->arena, &value, err);
	if (rc || value->elem[0]->type != RD_TEXT || !rd_value_unpack(value->elem[0]->text, &loan, NULL))
		return rc;
	(void)fw_str_copy(batch, sizeof(batch), loan.place);
	while (more_wanted(v)) {
		struct fw_visit visit[HISTORY_MAX];
		struct rd_conn *c;
		size_t n = 0;

		fw_arena_reset(&v->arena, RD_ARENA_KEEP);
		c = rd_op(r, shard, RD_READ, "history", 3, err);
		if (!c)
			return FW_ERR_CODE(err);
		rd_add(c, fw_str(batch));
		rd_add_int(c, v->q->feed_id);
		rd_add_int(c, HISTORY_MAX);
		rc = rd_run1(r, shard, &v->arena, &reply, "listing visits", err);
		if (rc || !reply->elem[0]->n)
			return rc;
		(void)fw_str_copy(batch, sizeof(batch), reply->elem[1]->text);
		for (size_t i = 0; i < reply->elem[0]->n && n < HISTORY_MAX; i++)
			n += visit_take(v, shard, reply->elem[0]->elem[i]->text, rd_int(reply->elem[2]->elem[i]), &visit[n]);
		rc = visits_show(v, shard, visit, n, err);
		if (rc)
			return rc;
	}
	return 0;
}

/* One batch, whose first line has this number. */
static int batch_show(struct visits *v, int shard, struct fw_str lines, int64_t number, struct fw_err *err)
{
	struct fw_visit *visit;
	size_t n = 0, max = 0;

	for (size_t i = 0; i < lines.len; i++)
		max += lines.p[i] == '\n';
	visit = fw_arena_mul(&v->arena, max + 1, sizeof(*visit), 0);
	if (!visit)
		return rd_no_memory(v->r, err);
	(void)fw_str_split(lines, '\n', &lines); /* each line has its end in front */
	for (; lines.p; number++)
		n += visit_take(v, shard, fw_str_split(lines, '\n', &lines), number, &visit[n]);
	for (size_t i = 0; i < n / 2 && !v->q->oldest_first; i++) {
		struct fw_visit swap = visit[i];

		visit[i] = visit[n - 1 - i];
		visit[n - 1 - i] = swap;
	}
	return visits_show(v, shard, visit, n, err);
}

static int runs_first(struct visits *v, int shard, int64_t *first, struct fw_err *err)
{
	struct rd_conn *c = rd_ask(v->r, shard, "HGET", "runs", 1, err);
	struct rd_reply *reply;
	int rc;

	if (!c)
		return FW_ERR_CODE(err);
	rd_add_int(c, v->q->run_id);
	rc = rd_run1(v->r, shard, &v->arena, &reply, "listing visits", err);
	*first = rc || reply->type == RD_NIL ? -1 : FW_MAX(*first, rd_int(reply));
	return rc;
}

/* Names and first numbers of at most max batches that begin at this number or behind it, or at it or before. */
static int batches(struct visits *v, int shard, bool behind, int64_t number, int max, struct rd_reply **names, struct fw_err *err)
{
	struct rd_conn *c = rd_ask(v->r, shard, behind ? "ZRANGEBYSCORE" : "ZREVRANGEBYSCORE", "visit_order", 6, err);

	if (!c)
		return FW_ERR_CODE(err);
	rd_add_int(c, number);
	rd_add(c, behind ? FW_STR("+inf") : FW_STR("-inf"));
	rd_add(c, FW_STR("WITHSCORES"));
	rd_add(c, FW_STR("LIMIT"));
	rd_add_int(c, 0);
	rd_add_int(c, max);
	return rd_run1(v->r, shard, &v->arena, names, "listing visits", err);
}

/* The batch to begin with: the one that holds the first visit that is asked for; backwards, the newest. first: -1: there is none. */
static int begin(struct visits *v, int shard, int64_t *first, int64_t *from, struct fw_err *err)
{
	struct rd_reply *names;
	int rc;

	*first = v->q->oldest_first ? FW_MAX(v->q->after_id, 0) / v->r->shard_n + 1 : 0;
	*from = INT64_C(1) << 53; /* where scores end */
	rc = v->q->run_id ? runs_first(v, shard, first, err) : 0;
	if (rc || *first < 0 || !v->q->oldest_first)
		return rc;
	rc = batches(v, shard, false, *first, 1, &names, err);
	*from = rc || !names->n ? *first : rd_int(names->elem[1]);
	return rc;
}

static int shard_visits(struct visits *v, int shard, struct fw_err *err)
{
	bool forth = v->q->oldest_first, more;
	int64_t first, from;
	int rc = begin(v, shard, &first, &from, err);

	more = first >= 0;
	while (!rc && more && more_wanted(v)) {
		struct rd_reply *names, *lines;
		struct rd_conn *c;

		fw_arena_reset(&v->arena, RD_ARENA_KEEP);
		rc = batches(v, shard, forth, from, BATCHES, &names, err);
		if (rc || !names->n)
			return rc;
		c = rd_ask(v->r, shard, "HMGET", "visits", names->n / 2, err);
		if (!c)
			return FW_ERR_CODE(err);
		for (size_t i = 0; i < names->n; i += 2)
			rd_add(c, names->elem[i]->text);
		rc = rd_run1(v->r, shard, &v->arena, &lines, "listing visits", err);
		for (size_t i = 0; !rc && more && i < lines->n && more_wanted(v); i++) {
			int64_t number = rd_int(names->elem[2 * i + 1]);

			from = forth ? number + 1 : number - 1;
			more = forth || number > first;
			if (lines->elem[i]->text.len) /* it was not forgotten meanwhile */
				rc = batch_show(v, shard, lines->elem[i]->text, number, err);
		}
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
