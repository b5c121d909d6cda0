/* SPDX-License-Identifier: ISC */
/*
 * What people look at and change: feeds, visits, figures, control messages, workers.
 *
 * Feeds' numbers are dense but for what was unsubscribed, so a list asks for them window after window and holds one window in memory,
 * however many there are; in the order of due times it holds 16 bytes of each. Visits are redis_visits.c's.
 */
#include <stdlib.h>

#include "store/redis.h"

#define SUBSCRIBE_MAX 500 /* by one script */

/* ---- subscriptions ---------------------------------------------------------------------------------------------------------- */

static int not_found(struct redis *r, int64_t feed_id, struct fw_err *err)
{
	return fw_err_set(err, FW_ENOTFOUND, "%s: no feed has the number %lld", r->target.name, (long long)feed_id);
}

/* The members that the owner gives, and home_page_url, which belongs to what documents say. */
static void new_add(struct rd_conn *c, const struct fw_feed_new *n, const char *host)
{
	struct fw_feed own = {.user_title = n->user_title, .folder = n->folder, .username = n->username, .password = n->password,
		.interval_ms = n->interval_ms}, about = {.home_page_url = n->home_page_url};

	rd_add(c, n->url);
	rd_add(c, fw_str(host));
	rd_add_int(c, n->due_at_ms);
	rd_pack(rd_word_begin(c), &rd_feed_own, &own);
	rd_word_end(c);
	rd_pack(rd_word_begin(c), &rd_feed_group[2], &about);
	rd_word_end(c);
}

/* One shard's, from feed[*at] on, as many as one script takes. */
static int subscribe_some(struct redis *r, int shard, struct fw_feed_new *feed, size_t n, size_t *at, bool at_once, struct fw_err *err)
{
	struct fw_feed_new *mine[SUBSCRIBE_MAX];
	struct rd_reply *reply;
	struct rd_conn *c;
	size_t count = 0;
	char host[256];
	int rc;

	for (; *at < n && count < SUBSCRIBE_MAX; ++*at) {
		if (rd_host(r, feed[*at].url, host, sizeof(host)) && rd_shard_of_host(r, host) == shard)
			mine[count++] = &feed[*at];
	}
	if (!count)
		return 0;
	c = rd_op(r, shard, RD_WRITE, "subscribe", 4 + 5 * count, err);
	if (!c)
		return FW_ERR_CODE(err);
	rd_add_int(c, r->shard_n);
	rd_add_int(c, shard);
	rd_add_int(c, 0);
	rd_add_int(c, at_once);
	for (size_t i = 0; i < count; i++) {
		(void)rd_host(r, mine[i]->url, host, sizeof(host));
		new_add(c, mine[i], host);
	}
	rc = rd_run1(r, shard, &r->arena, &reply, "subscribing", err);
	for (size_t i = 0; i < count && !rc; i++) {
		mine[i]->id = rd_int(reply->elem[2 * i]);
		mine[i]->existed = rd_int(reply->elem[2 * i + 1]) != 0;
	}
	return rc;
}

int rd_subscribe_all(struct redis *r, struct fw_feed_new *feed, size_t n, bool at_once, struct fw_err *err)
{
	int rc = 0;

	for (int shard = 0; shard < r->shard_n && !rc; shard++) {
		for (size_t at = 0; at < n && !rc;)
			rc = subscribe_some(r, shard, feed, n, &at, at_once, err);
	}
	if (!rc)
		rd_tell(r);
	return rc;
}

int rd_subscribe(struct fw_store *st, struct fw_feed_new *feed, size_t n, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	int rc = rd_may_write(r, err);

	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	return rc ? rc : rd_subscribe_all(r, feed, n, false, err);
}

int rd_unsubscribe(struct fw_store *st, int64_t feed_id, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	int shard = feed_id > 0 ? rd_shard_of_feed(r, feed_id) : 0, rc = rd_may_write(r, err);
	struct rd_reply *reply;
	struct rd_conn *c;

	if (rc)
		return rc;
	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	c = rd_op(r, shard, RD_WRITE, "unsubscribe", 1, err);
	if (!c)
		return FW_ERR_CODE(err);
	rd_add_int(c, feed_id);
	rc = rd_run1(r, shard, &r->arena, &reply, "unsubscribing", err);
	return rc || rd_int(reply) ? rc : not_found(r, feed_id, err);
}

int rd_feed_merge(struct fw_store *st, int64_t from_id, int64_t into_id, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	int shard = from_id > 0 ? rd_shard_of_feed(r, from_id) : 0, rc = rd_may_write(r, err);
	struct rd_reply *reply;
	struct rd_conn *c;

	if (rc)
		return rc;
	if (from_id <= 0 || into_id <= 0)
		return not_found(r, from_id <= 0 ? from_id : into_id, err);
	if (rd_shard_of_feed(r, into_id) != shard)
		return fw_err_set(err, FW_EUNSUP, "%s: feeds %lld and %lld are on different shards: they stay two", r->target.name,
			(long long)from_id, (long long)into_id);
	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	c = rd_op(r, shard, RD_WRITE, "feed_merge", 2, err);
	if (!c)
		return FW_ERR_CODE(err);
	rd_add_int(c, from_id);
	rd_add_int(c, into_id);
	rc = rd_run1(r, shard, &r->arena, &reply, "merging feeds", err);
	if (rc)
		return rc;
	if (rd_int(reply) < 0)
		return fw_err_set(err, FW_EAGAIN, "%s: feed %lld or %lld is lent: try again when it is back", r->target.name, (long long)from_id,
			(long long)into_id);
	return rd_int(reply) ? not_found(r, rd_int(reply), err) : 0;
}

/* ---- changes by the owner ----------------------------------------------------------------------------------------------------- */

/* The feed's own members with the changes in: host, created_ms and url stand first and stay. */
static int members_change(struct redis *r, struct fw_str old, const struct fw_feed *n, unsigned what, struct fw_buf *out,
	struct fw_err *err)
{
	struct fw_feed f = {0};
	char *copy = fw_arena_dup(&r->arena, old.p, old.len);
	struct fw_str url = rd_part(old, "url");
	size_t front;

	if (!copy || !url.p)
		return copy ? fw_err_set(err, FW_EINVAL, "%s: feed %lld: its members cannot be read", r->target.name, (long long)n->id) :
			rd_no_memory(r, err);
	front = (size_t)(url.p + url.len + 1 - old.p);
	rd_unpack((struct fw_str){copy, old.len}, &rd_feed_own, &f);
	if (what & FW_SET_TITLE)
		f.user_title = n->user_title;
	if (what & FW_SET_FOLDER)
		f.folder = n->folder;
	if (what & FW_SET_INTERVAL)
		f.interval_ms = n->interval_ms;
	if (what & FW_SET_PUSH)
		f.push_until_ms = n->push_until_ms;
	if (what & FW_SET_AUTH) {
		f.username = n->username;
		f.password = n->password;
	}
	fw_buf_add(out, old.p, front);
	rd_pack(out, &rd_feed_own, &f);
	return 0;
}

static void number_or_dash(struct rd_conn *c, bool is, int64_t n)
{
	if (is)
		rd_add_int(c, n);
	else
		rd_add(c, FW_STR("-"));
}

/* *result: 1 done, 0 no such feed, -1 somebody else changed it at the same time. */
static int set_once(struct redis *r, const struct fw_feed *n, unsigned what, int64_t *result, struct fw_err *err)
{
	int shard = rd_shard_of_feed(r, n->id), rc;
	bool members = what & (FW_SET_TITLE | FW_SET_FOLDER | FW_SET_INTERVAL | FW_SET_AUTH | FW_SET_PUSH);
	struct fw_feed at = {.id = n->id}, *one = &at;
	struct rd_reply *reply, *value;
	struct rd_loan was = {.own = FW_STR("")};
	struct rd_conn *c;

	*result = 0;
	if (members) {
		rc = rd_feeds_read(r, shard, &one, 1, &r->arena, &value, err);
		if (rc || value->elem[0]->type == RD_NIL)
			return rc;
		if (!rd_value_unpack(value->elem[0]->text, &was, NULL))
			return fw_err_set(err, FW_EINVAL, "%s: feed %lld cannot be read", r->target.name, (long long)n->id);
	}
	c = rd_op(r, shard, RD_WRITE, "feed_set", 6, err);
	if (!c)
		return FW_ERR_CODE(err);
	rd_add_int(c, n->id);
	number_or_dash(c, what & FW_SET_STATUS, (int64_t)n->status);
	number_or_dash(c, what & FW_SET_DUE, n->due_at_ms);
	number_or_dash(c, what & FW_SET_CRASH, n->crash_n);
	rd_add(c, was.own);
	(void)rd_word_begin(c);
	rc = members ? members_change(r, was.own, n, what, rd_word_begin(c), err) : 0;
	if (rc) {
		rd_forget(c);
		return rc;
	}
	rd_word_end(c);
	rc = rd_run1(r, shard, &r->arena, &reply, "changing a feed", err);
	*result = rc ? 0 : rd_int(reply);
	return rc;
}

int rd_feed_set(struct fw_store *st, const struct fw_feed *feed, unsigned what, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	int64_t result = -1;
	int rc = rd_may_write(r, err);

	if (!rc && feed->id <= 0)
		return not_found(r, feed->id, err);
	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	for (int i = 0; i < 20 && result < 0 && !rc; i++)
		rc = set_once(r, feed, what, &result, err);
	if (rc)
		return rc;
	if (result < 0)
		return fw_err_set(err, FW_EAGAIN, "%s: feed %lld is being changed by others all the time: try again", r->target.name,
			(long long)feed->id);
	if (!result)
		return not_found(r, feed->id, err);
	if (what & (FW_SET_STATUS | FW_SET_DUE))
		rd_tell(r);
	return 0;
}

/* ---- feeds ---------------------------------------------------------------------------------------------------------------------- */

struct lent {
	int64_t id, fence, until_ms;
};

static int by_id(const void *a, const void *b)
{
	const struct lent *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* What is lent of a shard, or of one feed only, into struct lent. */
static int lent_read(struct redis *r, int shard, int64_t feed_id, struct fw_buf *out, struct fw_err *err)
{
	struct rd_conn *c = rd_op(r, shard, RD_READ, "lent", feed_id ? 1 : 0, err);
	struct rd_reply *claims;
	int rc;

	if (!c)
		return FW_ERR_CODE(err);
	if (feed_id)
		rd_add_int(c, feed_id);
	rc = rd_run1(r, shard, &r->arena, &claims, "looking for what is lent", err);
	for (size_t i = 0; !rc && i + 2 < claims->n; i += 3) {
		const struct rd_reply *who = claims->elem[i + 2];
		struct lent l = {.fence = rd_int(claims->elem[i]), .until_ms = rd_int(claims->elem[i + 1])};
		struct fw_str rest;

		for (size_t k = 0; k < who->n; k++) {
			if (fw_str_int(fw_str_split(who->elem[k]->text, '@', &rest), &l.id))
				fw_buf_add(out, &l, sizeof(l));
		}
	}
	return rc || !out->rc ? rc : rd_no_memory(r, err);
}

/* Read feeds of one shard by number; those that are not there keep url.p NULL. lent: in order of ids. */
static int feeds_read(struct redis *r, int shard, struct fw_feed **feed, size_t n, const struct fw_buf *lent, struct fw_arena *a,
	struct fw_err *err)
{
	static const struct { const char *cmd, *key; } part[] = {{"HMGET", "feeds"}, {"ZMSCORE", "status"}, {"HMGET", "entry_n"}};
	struct rd_reply **reply;
	int rc;

	for (size_t p = 0; p < FW_N(part); p++) {
		struct rd_conn *c = rd_ask(r, shard, part[p].cmd, part[p].key, n, err);

		if (!c)
			return FW_ERR_CODE(err);
		for (size_t i = 0; i < n; i++)
			rd_add_int(c, feed[i]->id);
	}
	rc = rd_run(r, shard, a, &reply, "reading feeds", err);
	rc = rc ? rc : rd_feeds_fill(r, shard, feed, n, reply[0], ~0u, a, err);
	for (size_t i = 0; i < n && !rc; i++) {
		const struct lent key = {.id = feed[i]->id}, *l = lent->len ?
			bsearch(&key, lent->p, lent->len / sizeof(key), sizeof(key), by_id) : NULL;

		feed[i]->status = (enum fw_feed_status)rd_int(reply[1]->elem[i]);
		feed[i]->entry_n = rd_int(reply[2]->elem[i]);
		feed[i]->fence = l ? l->fence : 0;
		feed[i]->lease_until_ms = l ? l->until_ms : 0;
	}
	return rc;
}

int rd_feed_find(struct fw_store *st, int64_t id, struct fw_str url, struct fw_arena *a, struct fw_feed *out, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	struct rd_reply *reply;
	char host[256];
	int rc = 0, shard;

	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	*out = (struct fw_feed){.id = id};
	if (!id && rd_host(r, url, host, sizeof(host))) {
		struct rd_conn *c;

		shard = rd_shard_of_host(r, host);
		c = rd_ask(r, shard, "HGET", "urls", 1, err);
		if (!c)
			return FW_ERR_CODE(err);
		rd_add(c, url);
		rc = rd_run1(r, shard, &r->arena, &reply, "finding a feed", err);
		out->id = rc ? 0 : rd_int(reply);
	}
	if (!rc && out->id > 0) {
		struct fw_buf lent = FW_BUF_INIT(0);

		shard = rd_shard_of_feed(r, out->id);
		rc = lent_read(r, shard, out->id, &lent, err);
		rc = rc ? rc : feeds_read(r, shard, &out, 1, &lent, a, err);
		fw_buf_finish(&lent);
	}
	if (rc || out->url.p)
		return rc;
	if (id)
		return not_found(r, id, err);
	return fw_err_set(err, FW_ENOTFOUND, "%s: no feed %.*s", r->target.name, FW_STR_ARG(url));
}

static bool feed_matches(const struct fw_feed *f, const struct fw_feed_query *q)
{
	if (!f->url.p || (q->status >= 0 && (int)f->status != q->status) || (q->failing && !f->fail_n))
		return false;
	if (q->folder.p && !fw_str_eq(f->folder, q->folder))
		return false;
	return !q->match.p || fw_str_ifind(f->url, q->match) || fw_str_ifind(f->title, q->match) ||
		fw_str_ifind(f->user_title, q->match);
}

/* Show feeds by number, in this order: those that are there and match, until the limit. */
static int feeds_show(struct redis *r, const int64_t *id, size_t n, const struct fw_buf *lent, const struct fw_feed_query *q,
	size_t *shown, fw_feed_cb *cb, void *ctx, struct fw_err *err)
{
	struct fw_feed *feed, **mine;
	int rc = 0;

	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	feed = fw_arena_calloc(&r->arena, n + 1, sizeof(*feed));
	mine = fw_arena_mul(&r->arena, n + 1, sizeof(struct fw_feed *), 0);
	if (!feed || !mine)
		return rd_no_memory(r, err);
	for (int shard = 0; shard < r->shard_n && !rc; shard++) {
		size_t k = 0;

		for (size_t i = 0; i < n; i++) {
			if (rd_shard_of_feed(r, id[i]) != shard)
				continue;
			feed[i].id = id[i];
			mine[k++] = &feed[i];
		}
		rc = k ? feeds_read(r, shard, mine, k, lent, &r->arena, err) : 0;
	}
	for (size_t i = 0; i < n && !rc && (!q->limit || *shown < q->limit); i++) {
		if (!feed_matches(&feed[i], q))
			continue;
		++*shown;
		rc = cb(ctx, &feed[i]);
	}
	return rc;
}

int rd_last_feed(struct redis *r, int64_t *last, struct fw_err *err)
{
	*last = 0;
	for (int shard = 0; shard < r->shard_n; shard++) {
		struct rd_conn *c = rd_ask(r, shard, "HGET", "meta", 1, err);
		struct rd_reply *reply;
		int rc;

		if (!c)
			return FW_ERR_CODE(err);
		rd_add(c, FW_STR("last_feed"));
		rc = rd_run1(r, shard, &r->arena, &reply, "listing feeds", err);
		if (rc)
			return rc;
		*last = FW_MAX(*last, rd_int(reply) * r->shard_n);
	}
	return 0;
}

static int rising(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* The numbers of all feeds with a status other than active, above after_id, in order. */
static int ids_of_status(struct redis *r, int status, int64_t after_id, struct fw_buf *ids, struct fw_err *err)
{
	for (int shard = 0; shard < r->shard_n; shard++) {
		struct rd_conn *c = rd_ask(r, shard, "ZRANGEBYSCORE", "status", 2, err);
		struct rd_reply *reply;
		int rc;

		if (!c)
			return FW_ERR_CODE(err);
		rd_add_int(c, status);
		rd_add_int(c, status);
		rc = rd_run1(r, shard, &r->arena, &reply, "listing feeds", err);
		if (rc)
			return rc;
		for (size_t i = 0; i < reply->n; i++) {
			int64_t id = rd_int(reply->elem[i]);

			if (id > after_id)
				fw_buf_add(ids, &id, sizeof(id));
		}
	}
	if (ids->rc)
		return rd_no_memory(r, err);
	if (ids->len)
		qsort(ids->p, ids->len / sizeof(int64_t), sizeof(int64_t), rising);
	return 0;
}

static int by_status(struct redis *r, const struct fw_buf *lent, const struct fw_feed_query *q, fw_feed_cb *cb, void *ctx,
	struct fw_err *err)
{
	struct fw_buf ids = FW_BUF_INIT(0);
	int rc = ids_of_status(r, q->status, q->after_id, &ids, err);
	const int64_t *id = (const int64_t *)(const void *)ids.p;
	size_t shown = 0, n = ids.len / sizeof(*id);

	for (size_t at = 0; at < n && !rc && (!q->limit || shown < q->limit); at += RD_CHUNK)
		rc = feeds_show(r, id + at, FW_MIN(n - at, RD_CHUNK), lent, q, &shown, cb, ctx, err);
	fw_buf_finish(&ids);
	return rc;
}

static int by_number(struct redis *r, const struct fw_buf *lent, const struct fw_feed_query *q, fw_feed_cb *cb, void *ctx,
	struct fw_err *err)
{
	size_t shown = 0;
	int64_t last;
	int rc;

	if (q->status > FW_FEED_ACTIVE) /* few */
		return by_status(r, lent, q, cb, ctx, err);
	rc = rd_last_feed(r, &last, err);
	for (int64_t at = FW_MAX(q->after_id, 0) + 1; at <= last && !rc && (!q->limit || shown < q->limit);) {
		int64_t id[RD_CHUNK];
		size_t n = 0;

		while (n < RD_CHUNK && at <= last)
			id[n++] = at++;
		rc = feeds_show(r, id, n, lent, q, &shown, cb, ctx, err);
	}
	return rc;
}

struct due {
	int64_t due_ms, id;
};

static int due_note(void *ctx, const struct fw_feed *f)
{
	struct due d = {f->due_at_ms, f->id};

	fw_buf_add(ctx, &d, sizeof(d));
	return 0;
}

static int earlier(const void *a, const void *b)
{
	const struct due *x = a, *y = b;

	if (x->due_ms != y->due_ms)
		return x->due_ms < y->due_ms ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static int by_due(struct redis *r, const struct fw_buf *lent, const struct fw_feed_query *q, fw_feed_cb *cb, void *ctx,
	struct fw_err *err)
{
	struct fw_buf all = FW_BUF_INIT(0);
	struct fw_feed_query every = *q;
	size_t shown = 0, n;
	struct due *due;
	int rc;

	every.limit = 0;
	rc = by_number(r, lent, &every, due_note, &all, err);
	rc = rc || !all.rc ? rc : rd_no_memory(r, err);
	due = (struct due *)(void *)all.p;
	n = all.len / sizeof(*due);
	if (n)
		qsort(due, n, sizeof(*due), earlier);
	for (size_t i = 0; i < n && !rc && (!q->limit || shown < q->limit);) {
		int64_t id[RD_CHUNK];
		size_t m = 0;

		while (m < RD_CHUNK && i < n)
			id[m++] = due[i++].id;
		rc = feeds_show(r, id, m, lent, q, &shown, cb, ctx, err);
	}
	fw_buf_finish(&all);
	return rc;
}

int rd_feed_list(struct fw_store *st, const struct fw_feed_query *q, fw_feed_cb *cb, void *ctx, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	struct fw_buf lent = FW_BUF_INIT(0);
	int rc = 0;

	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	for (int shard = 0; shard < r->shard_n && !rc; shard++)
		rc = lent_read(r, shard, 0, &lent, err);
	if (lent.len)
		qsort(lent.p, lent.len / sizeof(struct lent), sizeof(struct lent), by_id);
	if (!rc)
		rc = q->by_due ? by_due(r, &lent, q, cb, ctx, err) : by_number(r, &lent, q, cb, ctx, err);
	fw_buf_finish(&lent);
	return rc;
}

/* ---- figures, messages, workers --------------------------------------------------------------------------------------------------- */

int rd_stats(struct fw_store *st, int64_t now_ms, struct fw_store_stats *out, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	int64_t bytes;
	int rc = 0;

	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	for (int shard = 0; shard < r->shard_n && !rc; shard++) {
		int64_t *const sum[] = {&out->feed_n, &out->paused_n, &out->gone_n, &out->quarantined_n, &out->failing_n, &out->lent_n,
			&out->due_n, NULL, &out->entry_n, &out->visit_n};
		struct rd_conn *c = rd_op(r, shard, RD_READ, "stats", 3, err);
		struct rd_reply *reply;

		if (!c)
			return FW_ERR_CODE(err);
		rd_add_int(c, now_ms);
		rd_add_int(c, r->shard_n);
		rd_add_int(c, shard);
		rc = rd_run1(r, shard, &r->arena, &reply, "counting", err);
		if (rc)
			return rc;
		for (size_t i = 0; i < FW_N(sum); i++) {
			if (sum[i])
				*sum[i] += rd_int(reply->elem[i]);
		}
		out->last_feed_id = FW_MAX(out->last_feed_id, rd_int(reply->elem[10]));
		out->last_entry_id = FW_MAX(out->last_entry_id, rd_int(reply->elem[11]));
		out->last_visit_id = FW_MAX(out->last_visit_id, rd_int(reply->elem[12]));
		if (reply->elem[7]->text.len && (out->next_due_ms == FW_NO_DATE || rd_int(reply->elem[7]) < out->next_due_ms))
			out->next_due_ms = rd_int(reply->elem[7]);
	}
	out->active_n = out->feed_n - out->paused_n - out->gone_n - out->quarantined_n;
	out->size_bytes = fw_str_int(rd_info(r, "memory", "used_memory"), &bytes) ? bytes : -1;
	out->schema = RD_SCHEMA;
	return rc;
}

int rd_control_put(struct fw_store *st, enum fw_control_kind kind, int64_t now_ms, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	struct rd_reply *reply;
	struct rd_conn *c;
	int rc = rd_may_write(r, err);

	if (rc)
		return rc;
	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	c = rd_op(r, 0, RD_WRITE, "control", 2, err);
	if (!c)
		return FW_ERR_CODE(err);
	rd_add_int(c, (int64_t)kind);
	rd_add_int(c, now_ms);
	rc = rd_run1(r, 0, &r->arena, &reply, "leaving a message", err);
	if (!rc)
		rd_tell(r);
	return rc;
}

/* One message, or the newest number. *junk: it is none, somebody pushed something else. */
static int message_read(struct redis *r, int64_t after_id, struct fw_control *out, bool *junk, struct fw_err *err)
{
	struct rd_conn *c = rd_op(r, 0, RD_READ, "control_take", 1, err);
	struct rd_reply *reply;
	struct fw_str when;
	int64_t kind = 0;
	int rc;

	*junk = false;
	if (!c)
		return FW_ERR_CODE(err);
	rd_add_int(c, after_id);
	rc = rd_run1(r, 0, &r->arena, &reply, "looking for messages", err);
	if (rc || !reply->n)
		return rc;
	out->id = rd_int(reply->elem[0]);
	if (after_id < 0) {
		out->paused = rd_int(reply->elem[1]) != 0;
		return 0;
	}
	*junk = !fw_str_int(fw_str_split(reply->elem[1]->text, ' ', &when), &kind) || kind <= FW_CONTROL_NONE || kind > INT32_MAX;
	if (!*junk)
		out->kind = (enum fw_control_kind)kind;
	if (!when.p || !fw_str_int(when, &out->created_ms))
		out->created_ms = 0; /* pushed by hand, without a time */
	return 0;
}

int rd_control_take(struct fw_store *st, int64_t after_id, struct fw_control *out, struct fw_err *err)
{
	struct redis *r = redis_of(st);
	bool junk = true;
	int rc = 0;

	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	while (junk && !rc) {
		rc = message_read(r, after_id, out, &junk, err);
		after_id = out->id;
	}
	return rc;
}

static int by_name(const void *a, const void *b)
{
	return strcmp((*(struct rd_reply *const *)a)->text.p, (*(struct rd_reply *const *)b)->text.p);
}

int rd_beat_list(struct fw_store *st, int64_t since_ms, fw_beat_cb *cb, void *ctx, struct fw_err *err)
{
	static const struct rd_members all = {fw_beat_fields, &fw_beat_field_n, 0, {NULL}};
	struct redis *r = redis_of(st);
	struct rd_reply *list;
	struct rd_conn *c;
	int rc;

	fw_arena_reset(&r->arena, RD_ARENA_KEEP);
	c = rd_ask(r, 0, "HGETALL", "workers", 0, err);
	rc = c ? rd_run1(r, 0, &r->arena, &list, "listing workers", err) : FW_ERR_CODE(err);
	if (!rc && list->n) /* pairs of a name and its values move together */
		qsort(list->elem, list->n / 2, 2 * sizeof(struct rd_reply *), by_name);
	for (size_t i = 0; !rc && i + 1 < list->n; i += 2) {
		struct fw_beat b = {.worker = list->elem[i]->text.p};

		rd_unpack(list->elem[i + 1]->text, &all, &b);
		if (b.at_ms >= since_ms)
			rc = cb(ctx, &b);
	}
	return rc;
}

