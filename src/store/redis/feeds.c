/* SPDX-License-Identifier: ISC */
/* Feeds: lists, and what their owners change. */
#include <stdlib.h>

#include "store/redis/redis.h"
#include "base/banned.h"

#define TRIES 20
#define FINDS 3
#define BUCKETS 8 /* of places, at a time */

/* ---- reading --------------------------------------------------------------------------------- */

struct order { /* indexes by cell: each cell's lie together */
	size_t *at, first[RS_CELLS], n[RS_CELLS];
};

static bool order_make(struct rs *r, struct order *o, const int *cell, size_t n)
{
	size_t sum = 0;

	*o = (struct order){.at = fw_arena_calloc(&r->arena, n + 1, sizeof(*o->at))};
	if (!o->at)
		return false;
	for (size_t i = 0; i < n; i++)
		o->n[cell[i]]++;
	for (int c = 0; c < RS_CELLS; c++) {
		o->first[c] = sum;
		sum += o->n[c];
		o->n[c] = 0;
	}
	for (size_t i = 0; i < n; i++)
		o->at[o->first[cell[i]] + o->n[cell[i]]++] = i;
	return true;
}

static bool wanted(int group, bool names)
{
	return !names || group == RS_ADDRESS || group == RS_OWN || group == RS_META_GROUP;
}

int rs_feeds_read(struct rs *r, struct fw_feed *feed, const int *cell, size_t n, bool names, struct fw_err *err)
{
	struct rs_reply **reply;
	struct rs_state s;
	struct order o;
	int rc;

	if (!order_make(r, &o, cell, n))
		return rs_no_memory(r, err);
	for (int c = 0; c < RS_CELLS; c++) {
		for (int g = -1; o.n[c] && g < RS_GROUP_N; g++) {
			if (g < 0 ? names : !wanted(g, names))
				continue;
			rs_ask(r, c, "HMGET", g < 0 ? "state" : rs_group[g].key);
			for (size_t i = 0; i < o.n[c]; i++)
				rs_addi(r, feed[o.at[o.first[c] + i]].id);
		}
	}
	rc = rs_run(r, "reading feeds", err);
	reply = r->reply;
	for (int c = 0; !rc && c < RS_CELLS; c++) {
		for (int g = -1; o.n[c] && g < RS_GROUP_N; g++) {
			if (g < 0 ? names : !wanted(g, names))
				continue;
			for (size_t i = 0; i < o.n[c]; i++) {
				struct fw_str value = (*reply)->elem[i]->text;
				struct fw_feed *f = &feed[o.at[o.first[c] + i]];

				if (value.p && g < 0)
					(void)rs_state_unpack(value, f, &s);
				else if (value.p)
					rs_group_unpack(value, g, f);
			}
			reply++;
		}
	}
	return rc;
}

static int counts_read(struct rs *r, struct fw_feed *feed, const int *cell, size_t n, struct fw_err *err)
{
	struct rs_reply **reply;
	struct order o;
	int rc;

	if (!order_make(r, &o, cell, n))
		return rs_no_memory(r, err);
	for (int c = 0; c < RS_CELLS; c++) {
		if (!o.n[c])
			continue;
		rs_op(r, c, RS_READ, "counts");
		rs_addi(r, (int64_t)o.n[c]);
		for (size_t i = 0; i < o.n[c]; i++)
			rs_addi(r, feed[o.at[o.first[c] + i]].id);
	}
	rc = rs_run(r, "counting entries", err);
	reply = r->reply;
	for (int c = 0; !rc && c < RS_CELLS; c++) {
		for (size_t i = 0; i < o.n[c]; i++)
			feed[o.at[o.first[c] + i]].entry_n = rs_int((*reply)->elem[i]);
		reply += o.n[c] > 0;
	}
	return rc;
}

/* ---- lists ----------------------------------------------------------------------------------- */

struct spot { /* a feed that is to be shown */
	int64_t due_at_ms, id;
	int shard;
};

struct listing {
	struct rs *r;
	const struct fw_feed_query *q;
	fw_feed_cb *cb;
	void *ctx;
	bool counted;        /* with entry_n */
	struct fw_str match; /* in lower case; absent: any */
	bool by_shard;       /* those that are in another shard now, perhaps of the same cell, are not meant */
	size_t shown;
	bool full;
};

static bool is_asked_for(const struct listing *l, const struct fw_feed *f)
{
	const struct fw_feed_query *q = l->q;

	return f->url.p && (q->status < 0 || (int)f->status == q->status) && (!q->failing || f->fail_n) &&
		(!q->folder.p || fw_str_eq(f->folder, q->folder)) &&
		(!l->match.p || fw_store_has(f->url, l->match) || fw_store_has(f->title, l->match) ||
			fw_store_has(f->user_title, l->match));
}

/* In their order. Those that are gone meanwhile are passed over. */
static int spots_show(struct listing *l, const struct spot *spot, size_t n, struct fw_err *err)
{
	struct fw_feed *f = fw_arena_calloc(&l->r->arena, n + 1, sizeof(*f));
	int *cell = fw_arena_calloc(&l->r->arena, n + 1, sizeof(*cell)), rc;
	size_t k = 0;

	if (!f || !cell)
		return rs_no_memory(l->r, err);
	for (size_t i = 0; i < n; i++) {
		f[i].id = spot[i].id;
		cell[i] = rs_cell(spot[i].shard);
	}
	rc = n ? rs_feeds_read(l->r, f, cell, n, false, err) : 0;
	for (size_t i = 0; !rc && i < n; i++) {
		if (!is_asked_for(l, &f[i]) ||
			(l->by_shard && store_host_shard(store_feed_host_id(&f[i])) != spot[i].shard))
			continue;
		f[k] = f[i];
		cell[k++] = cell[i];
	}
	if (!rc && k && l->counted)
		rc = counts_read(l->r, f, cell, k, err);
	for (size_t i = 0; !rc && i < k && !l->full; i++) {
		l->full = ++l->shown == l->q->limit; /* 0: none */
		rc = RS_SHOW(l->r, l->cb(l->ctx, &f[i]));
	}
	return rc;
}

static int find(struct listing *l, const struct store_feed_query *q, struct fw_err *err)
{
	struct rs_place p = {.id = q->id, .shard = -1};
	struct spot spot;
	int rc = 0;

	l->counted = true;
	for (int i = 0; !rc && !l->shown && i < FINDS; i++) { /* it may go to another cell just now */
		if (q->id)
			rc = rs_places_find(l->r, &p, 1, err);
		else
			rc = rs_url_find(l->r, q->url, &p.id, &p.shard, err);
		spot = (struct spot){.id = p.id, .shard = p.shard};
		if (rc || !p.id || p.shard < 0)
			break;
		rc = spots_show(l, &spot, 1, err);
	}
	if (rc || l->shown)
		return rc;
	if (q->id)
		return fw_err_set(err, FW_ENOTFOUND, "%s: no feed has the number %lld", l->r->target.name,
			(long long)q->id);
	return fw_err_set(err, FW_ENOTFOUND, "%s: no feed %.*s", l->r->target.name,
		FW_STR_ARG(fw_str_sub(q->url, 0, 200)));
}

static int of_due(struct listing *l, const struct store_due *due, size_t due_n, struct fw_err *err)
{
	struct spot spot[RS_PAGE];
	int rc = 0;

	l->by_shard = true;
	for (size_t at = 0, n; !rc && at < due_n; at += n) {
		n = FW_MIN(due_n - at, (size_t)RS_PAGE);
		for (size_t i = 0; i < n; i++)
			spot[i] = (struct spot){.id = due[at + i].feed_id, .shard = due[at + i].shard};
		fw_arena_reset(&l->r->arena, RS_ARENA_KEEP);
		rc = spots_show(l, spot, n, err);
	}
	return rc;
}

static int by_id(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int by_due(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;

	if (x->due_at_ms != y->due_at_ms)
		return x->due_at_ms < y->due_at_ms ? -1 : 1;
	return by_id(a, b);
}

static int pages_show(
	struct listing *l, struct fw_buf *spots, int (*order)(const void *, const void *), struct fw_err *err)
{
	struct spot *spot = (struct spot *)(void *)spots->p;
	size_t n = spots->len / sizeof(*spot);
	int rc = spots->rc ? rs_no_memory(l->r, err) : 0;

	if (!rc && n)
		qsort(spot, n, sizeof(*spot), order);
	for (size_t at = 0; !rc && at < n && !l->full; at += RS_PAGE) {
		fw_arena_reset(&l->r->arena, RS_ARENA_KEEP);
		rc = spots_show(l, spot + at, FW_MIN(n - at, (size_t)RS_PAGE), err);
	}
	return rc;
}

/*
 * The narrow rows are put in order here: an index by due time over all shards would cost each visit
 * more than a list ever does.
 */
static int in_due_order(struct listing *l, struct fw_err *err)
{
	struct fw_buf spots = FW_BUF_INIT(0);
	int rc = 0;

	for (int cell = 0; !rc && cell < RS_CELLS; cell++) {
		const struct rs_reply *all;

		fw_arena_reset(&l->r->arena, RS_ARENA_KEEP);
		rs_ask(l->r, cell, "HGETALL", "state");
		rc = rs_run(l->r, "listing feeds", err);
		all = rc ? NULL : l->r->reply[0];
		for (size_t i = 0; !rc && i + 2 <= all->n; i += 2) {
			struct fw_feed f = {.id = rs_int(all->elem[i])};
			struct rs_state s;

			if (rs_state_unpack(all->elem[i + 1]->text, &f, &s) &&
				(l->q->status < 0 || (int)f.status == l->q->status) &&
				(!l->q->failing || f.fail_n))
				fw_buf_add(
					&spots, &(struct spot){f.due_at_ms, f.id, cell}, sizeof(struct spot));
		}
	}
	rc = rc ? rc : pages_show(l, &spots, by_due, err);
	fw_buf_finish(&spots);
	return rc;
}

static int buckets_show(struct listing *l, const struct rs_reply *buckets, struct fw_err *err)
{
	struct fw_buf spots = FW_BUF_INIT(0);
	int rc;

	for (size_t i = 0; i < buckets->n; i++) {
		char key[40];

		(void)fw_snprintf(key, sizeof(key), "place:%lld", (long long)rs_int(buckets->elem[i]));
		rs_ask(l->r, (int)(rs_int(buckets->elem[i]) % RS_CELLS), "HGETALL", key);
	}
	rc = rs_run(l->r, "listing feeds", err);
	for (size_t i = 0; !rc && i < buckets->n; i++) {
		const struct rs_reply *all = l->r->reply[i];

		for (size_t k = 0; k + 2 <= all->n; k += 2) {
			struct fw_str moves, shard = fw_str_split(all->elem[k + 1]->text, ' ', &moves);
			int64_t id = rs_int(all->elem[k]), at;

			if (id > l->q->after_id && fw_str_int(shard, &at))
				fw_buf_add(&spots, &(struct spot){0, id, (int)at}, sizeof(struct spot));
		}
	}
	rc = rc ? rc : pages_show(l, &spots, by_id, err);
	fw_buf_finish(&spots);
	return rc;
}

static int in_id_order(struct listing *l, struct fw_err *err)
{
	int64_t next = FW_MAX(l->q->after_id, INT64_C(0)) >> 7;
	size_t n;
	int rc;

	do {
		fw_arena_reset(&l->r->arena, RS_ARENA_KEEP);
		rs_ask(l->r, RS_META, "ZRANGEBYSCORE", "places");
		rs_addi(l->r, next);
		rs_adds(l->r, "+inf");
		rs_adds(l->r, "LIMIT");
		rs_addi(l->r, 0);
		rs_addi(l->r, BUCKETS);
		rc = rs_run(l->r, "listing feeds", err);
		n = rc ? 0 : l->r->reply[0]->n;
		if (n) {
			next = rs_int(l->r->reply[0]->elem[n - 1]) + 1;
			rc = buckets_show(l, l->r->reply[0], err);
		}
	} while (!rc && n == BUCKETS && !l->full);
	return rc;
}

int rs_feed_list(
	struct store *st, const struct store_feed_query *q, fw_feed_cb *cb, void *ctx, struct fw_err *err)
{
	static const struct fw_feed_query any = {.status = -1};
	struct listing l = {.r = rs_of(st), .q = &any, .cb = cb, .ctx = ctx};
	struct fw_buf low = FW_BUF_INIT(0);
	int rc = rs_start(l.r, false, err);

	if (q->id || q->url.p)
		return rc ? rc : find(&l, q, err);
	if (q->due)
		return rc ? rc : of_due(&l, q->due, q->due_n, err);
	l.q = &q->q;
	l.counted = true;
	fw_store_lower(&low, q->q.match);
	if (q->q.match.len)
		l.match = fw_buf_str(&low);
	rc = rc               ? rc
		: low.rc      ? rs_no_memory(l.r, err)
		: q->q.by_due ? in_due_order(&l, err)
			      : in_id_order(&l, err);
	fw_buf_finish(&low);
	return rc;
}

/* ---- by their owner -------------------------------------------------------------------------- */

static void own_change(struct fw_feed *f, const struct fw_feed *to, unsigned what)
{
	if (what & FW_SET_TITLE)
		f->user_title = to->user_title;
	if (what & FW_SET_FOLDER)
		f->folder = to->folder;
	if (what & FW_SET_INTERVAL)
		f->interval_ms = to->interval_ms;
	if (what & FW_SET_PUSH)
		f->push_until_ms = to->push_until_ms;
	if (what & FW_SET_AUTH) {
		f->username = to->username;
		f->password = to->password;
	}
}

static void number_add(struct rs *r, bool is, int64_t n)
{
	if (is)
		rs_addi(r, n);
	else
		rs_adds(r, "");
}

/* *answer: 1 it is done, 0 it is not there, -1 it was changed meanwhile, -2 it is moving. */
static int set_try(
	struct rs *r, int cell, const struct fw_feed *feed, unsigned what, int64_t *answer, struct fw_err *err)
{
	struct fw_feed f = {0};
	struct fw_str was;
	int rc;

	rs_ask(r, cell, "HGET", "own");
	rs_addi(r, feed->id);
	rc = rs_run(r, "changing a feed", err);
	was = rc || r->reply[0]->type != RS_TEXT ? FW_STR("") : fw_arena_str(&r->arena, r->reply[0]->text);
	if (rc || !was.p)
		return rc ? rc : rs_no_memory(r, err);
	rs_group_unpack(r->reply[0]->text, RS_OWN, &f);
	own_change(&f, feed, what);
	rs_op(r, cell, RS_WRITE, "set");
	rs_addi(r, feed->id);
	number_add(r, what & FW_SET_STATUS, feed->status);
	if (what & FW_SET_DUE)
		rs_pad(rs_word(r), feed->due_at_ms, 20);
	else
		(void)rs_word(r);
	rs_word_end(r);
	number_add(r, what & FW_SET_CRASH, feed->crash_n);
	rs_add(r, was);
	rs_group_pack(rs_word(r), RS_OWN, &f);
	rs_word_end(r);
	rc = rs_run(r, "changing a feed", err);
	*answer = rc ? 0 : rs_int(r->reply[0]);
	return rc;
}

int rs_feed_set(struct store *st, const struct fw_feed *feed, unsigned what, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int64_t answer = -1;
	int shard, rc = rs_start(r, true, err);

	for (int i = 0; !rc && answer < 1 && i < TRIES; i++) {
		rc = rs_place_of(r, feed->id, &shard, err);
		rc = rc ? rc : set_try(r, rs_cell(shard), feed, what, &answer, err);
		if (!rc && answer == -2)
			rc = rs_moves_finish(r, rs_cell(shard), err);
		if (!rc && answer == 0 && i) /* twice: it did not just go somewhere else */
			break;
	}
	if (rc || answer == 1)
		return rc;
	return fw_err_set(err, answer ? FW_EAGAIN : FW_ENOTFOUND,
		answer ? "%s: others change feed %lld all the time: try again"
		       : "%s: no feed has the number %lld",
		r->target.name, (long long)feed->id);
}
