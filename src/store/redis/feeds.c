/* SPDX-License-Identifier: ISC */
/* Feeds: lists, and changes by their owners. */
#include <assert.h>
#include <stdlib.h>

#include "store/redis/redis.h"

#define TRIES 20

/* ---- reading --------------------------------------------------------------------------------- */

static void ids_add(struct rs *r, const struct fw_feed *feed, size_t n)
{
	for (size_t i = 0; i < n; i++)
		rs_addi(r, feed[i].id);
}

/* Reads schedule rows, which lie by shard. */
static int schedule_rows_read(struct rs *r, struct fw_feed *feed, struct rs_schedule_row *state, const int *shard,
	size_t n, struct fw_err *err)
{
	int rc;

	for (size_t i = 0; i < n; i++) {
		rs_command(r, "HGET");
		rs_expect(r, "t?");
		rs_key(r, "schedule:%04d", shard[i]);
		rs_addi(r, feed[i].id);
	}
	rc = rs_run(r, "reading feeds", err);
	for (size_t i = 0; !rc && i < n; i++) {
		if (!r->reply[i]->text.p || !rs_schedule_row_unpack(r->reply[i]->text, &feed[i], &state[i]))
			feed[i].url = FW_STR_NONE; /* removed meanwhile */
	}
	return rc;
}

int rs_feeds_read(struct rs *r, struct fw_feed *feed, struct rs_schedule_row *state, size_t n, struct fw_err *err)
{
	int *shard = fw_arena_calloc(&r->arena, n + 1, sizeof(*shard)), rc;

	if (!shard || !n)
		return shard ? 0 : rs_no_memory(r, err);
	rs_command_key(r, "HMGET", "feed");
	rs_expect_n(r, "(t?)=", n);
	ids_add(r, feed, n);
	rc = rs_run(r, "reading feeds", err);
	for (size_t i = 0; !rc && i < n; i++) {
		struct fw_str row = rs_elem(r->reply[0], i)->text;

		if (!row.p)
			continue;
		shard[i] = rs_feed_row_shard(row);
		rs_feed_row_unpack(row, &feed[i]);
	}
	return rc || !state ? rc : schedule_rows_read(r, feed, state, shard, n, err);
}

static int counts_read(struct rs *r, struct fw_feed *feed, size_t n, struct fw_err *err)
{
	int rc;

	rs_call(r, RS_READ, "counts");
	rs_expect_n(r, "(i)=", n);
	rs_addi(r, (int64_t)n);
	ids_add(r, feed, n);
	rc = rs_run(r, "counting entries", err);
	for (size_t i = 0; !rc && i < n; i++)
		feed[i].entry_n = rs_int(rs_elem(r->reply[0], i));
	return rc;
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* a feed to show */
struct redis_feed_pick {
	int64_t due_at_ms, id;
	int shard; /* expected shard; -1: any */
};

struct redis_feed_list {
	struct rs *r;
	const struct fw_feed_query *q;
	fw_feed_cb *cb;
	void *ctx;
	bool counted;        /* with entry_n */
	struct fw_str match; /* in lower case; absent: match all */
	size_t shown;
	bool full;
};

static bool feed_matches(const struct redis_feed_list *l, const struct fw_feed *f)
{
	const struct fw_feed_query *q = l->q;

	return f->url.p && (q->status < 0 || (int)f->status == q->status) && (!q->failing || f->fail_n) &&
		(!q->folder.p || fw_path_is_within(f->folder, q->folder)) &&
		(!l->match.p || fw_store_contains(f->url, l->match) || fw_store_contains(f->title, l->match) ||
			fw_store_contains(f->user_title, l->match));
}

/* In the given order. Feeds that were removed meanwhile are skipped. */
static int feed_picks_show(struct redis_feed_list *l, const struct redis_feed_pick *pick, size_t n, struct fw_err *err)
{
	struct fw_feed *f = fw_arena_calloc(&l->r->arena, n + 1, sizeof(*f));
	struct rs_schedule_row *state = fw_arena_calloc(&l->r->arena, n + 1, sizeof(*state));
	size_t k = 0;
	int rc;

	if (!f || !state)
		return rs_no_memory(l->r, err);
	for (size_t i = 0; i < n; i++)
		f[i].id = pick[i].id;
	rc = n ? rs_feeds_read(l->r, f, state, n, err) : 0;
	for (size_t i = 0; !rc && i < n; i++) {
		if (feed_matches(l, &f[i]) &&
			(pick[i].shard < 0 || store_host_shard(store_feed_host_id(&f[i])) == pick[i].shard))
			f[k++] = f[i];
	}
	assert(k <= n && !l->full);
	if (!rc && k && l->counted)
		rc = counts_read(l->r, f, k, err);
	for (size_t i = 0; !rc && i < k && !l->full; i++) {
		l->full = ++l->shown == l->q->limit; /* limit 0: no limit */
		rc = RS_CALLBACK(l->r, l->cb(l->ctx, &f[i]));
	}
	return rc;
}

static int feed_show_one(struct redis_feed_list *l, const struct store_feed_query *q, struct fw_err *err)
{
	struct redis_feed_pick pick = {.id = q->id, .shard = -1};
	int rc = q->id ? 0 : rs_url_find(l->r, q->url, &pick.id, err);

	l->counted = true;
	rc = rc || !pick.id ? rc : feed_picks_show(l, &pick, 1, err);
	if (rc || l->shown)
		return rc;
	return q->id ? rs_feed_missing(l->r, q->id, err) :
		       fw_err_set(err, FW_ENOTFOUND, "%s: no feed %.*s", l->r->target.name,
			       FW_STR_ARG(fw_str_sub(q->url, 0, 200)));
}

static int feeds_of_due(struct redis_feed_list *l, const struct store_due *due, size_t due_n, struct fw_err *err)
{
	struct redis_feed_pick pick[RS_PAGE];
	int rc = 0;

	for (size_t at = 0, n; !rc && at < due_n; at += n) {
		n = FW_MIN(due_n - at, (size_t)RS_PAGE);
		for (size_t i = 0; i < n; i++)
			pick[i] = (struct redis_feed_pick){.id = due[at + i].feed_id, .shard = due[at + i].shard};
		fw_arena_reset(&l->r->arena, RS_ARENA_KEEP);
		rc = feed_picks_show(l, pick, n, err);
	}
	return rc;
}

FW_COMPARE_BY(feed_pick_by_due, struct redis_feed_pick, due_at_ms, id)

static void feed_picks_add(const struct redis_feed_list *l, const struct rs_reply *rows, struct fw_buf *out)
{
	for (size_t i = 0; i + 2 <= rows->n; i += 2) {
		struct fw_feed f = {.id = rs_int(rs_elem(rows, i))};
		struct rs_schedule_row s;

		if (rs_schedule_row_unpack(rs_elem(rows, i + 1)->text, &f, &s) &&
			(l->q->status < 0 || (int)f.status == l->q->status) && (!l->q->failing || f.fail_n))
			fw_buf_add(
				out, &(struct redis_feed_pick){f.due_at_ms, f.id, -1}, sizeof(struct redis_feed_pick));
	}
}

/*
 * Reads and sorts all schedule rows. A sorted set of due times over all shards would cost more on
 * each visit than this costs on a list.
 */
static int feeds_by_due(struct redis_feed_list *l, struct fw_err *err)
{
	struct fw_buf picks = FW_BUF_INIT(0);
	struct redis_feed_pick *pick;
	size_t n;
	int rc = 0;

	for (int shard = 0; !rc && shard < STORE_SHARDS; shard++) {
		fw_arena_reset(&l->r->arena, RS_ARENA_KEEP);
		rs_command(l->r, "HGETALL");
		rs_expect(l->r, "(tt)");
		rs_key(l->r, "schedule:%04d", shard);
		rc = rs_run(l->r, "listing feeds", err);
		if (!rc)
			feed_picks_add(l, l->r->reply[0], &picks);
	}
	pick = (struct redis_feed_pick *)(void *)picks.p;
	n = picks.len / sizeof(*pick);
	rc = rc || !picks.rc ? rc : rs_no_memory(l->r, err);
	if (!rc && n)
		qsort(pick, n, sizeof(*pick), feed_pick_by_due);
	for (size_t at = 0; !rc && at < n && !l->full; at += RS_PAGE) {
		fw_arena_reset(&l->r->arena, RS_ARENA_KEEP);
		rc = feed_picks_show(l, pick + at, FW_MIN(n - at, (size_t)RS_PAGE), err);
	}
	fw_buf_finish(&picks);
	return rc;
}

static int feeds_by_id(struct redis_feed_list *l, struct fw_err *err)
{
	struct rs_walk w = {.key = "feed_ids", .next = l->q->after_id, .end = INT64_MAX};
	int rc = 0;

	while (!rc && !w.done && !l->full) {
		struct rs_page_row *at;
		struct redis_feed_pick *pick;
		size_t n;

		fw_arena_reset(&l->r->arena, RS_ARENA_KEEP);
		rc = rs_walk_page(l->r, &w, RS_PAGE, &at, &n, err);
		pick = rc ? NULL : fw_arena_calloc(&l->r->arena, n + 1, sizeof(*pick));
		if (!rc && !pick)
			rc = rs_no_memory(l->r, err);
		for (size_t i = 0; !rc && i < n; i++)
			pick[i] = (struct redis_feed_pick){0, at[i].id, -1};
		rc = rc ? rc : feed_picks_show(l, pick, n, err);
	}
	return rc;
}

int rs_feed_list(struct store *st, const struct store_feed_query *q, fw_feed_cb *cb, void *ctx, struct fw_err *err)
{
	static const struct fw_feed_query any = {.status = -1};
	struct redis_feed_list l = {.r = rs_of(st), .q = &any, .cb = cb, .ctx = ctx};
	struct fw_buf low = FW_BUF_INIT(0);
	int rc = rs_slot_start(l.r, false, err);

	if (q->id || q->url.p)
		return rc ? rc : feed_show_one(&l, q, err);
	if (q->due)
		return rc ? rc : feeds_of_due(&l, q->due, q->due_n, err);
	l.q = &q->q;
	l.counted = true;
	fw_store_lower(&low, q->q.match);
	if (q->q.match.len)
		l.match = fw_buf_str(&low);
	rc = rc ? rc : low.rc ? rs_no_memory(l.r, err) : q->q.by_due ? feeds_by_due(&l, err) : feeds_by_id(&l, err);
	fw_buf_finish(&low);
	return rc;
}

/* ---- changes --------------------------------------------------------------------------------- */

static void feed_settings_apply(struct fw_feed *f, const struct fw_feed *to, unsigned what)
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

static void optional_int_add(struct rs *r, bool is, int64_t n, size_t width)
{
	struct fw_buf *b = rs_word(r);

	if (is)
		rs_int_pad(b, n, width);
	rs_word_end(r);
}

/* *answer: 1 done, 0 no such feed, -1 changed meanwhile. */
static int feed_set_try(struct rs *r, const struct fw_feed *feed, unsigned what, int64_t *answer, struct fw_err *err)
{
	struct fw_feed f = {0};
	const struct rs_reply **row;
	struct fw_str own, was;
	int rc = rs_feed_rows_read(r, &feed->id, 1, &row, err);

	own = rc ? FW_STR_NONE : rs_feed_row_group((*row)->text, RS_OWNER_SETTINGS);
	was = fw_arena_str(&r->arena, own);
	*answer = 0;
	if (rc || !own.p)
		return rc;
	if (!was.p)
		return rs_no_memory(r, err);
	rs_unpack(own, &rs_group[RS_OWNER_SETTINGS].members, &f);
	feed_settings_apply(&f, feed, what);
	rs_call(r, RS_WRITE, "set");
	rs_expect(r, "i");
	rs_addi(r, feed->id);
	optional_int_add(r, what & FW_SET_STATUS, feed->status, 1);
	optional_int_add(r, what & FW_SET_DUE, feed->due_at_ms, 20);
	rs_add(r, what & FW_SET_DUE ? feed->why : FW_STR_NONE);
	optional_int_add(r, what & FW_SET_CRASH, feed->crash_n, 10);
	rs_add(r, was);
	rs_group_pack(rs_word(r), RS_OWNER_SETTINGS, &f);
	rs_word_end(r);
	rc = rs_run(r, "changing a feed", err);
	*answer = rc ? 0 : rs_int(r->reply[0]);
	return rc;
}

int rs_feed_set(struct store *st, const struct fw_feed *feed, unsigned what, struct fw_err *err)
{
	struct rs *r = rs_of(st);
	int64_t answer = -1;
	int rc = rs_slot_start(r, true, err);

	for (int i = 0; !rc && answer < 0 && i < TRIES; i++)
		rc = feed_set_try(r, feed, what, &answer, err);
	if (rc || answer == 1)
		return rc;
	return answer ? fw_err_set(err, FW_EAGAIN, "%s: other processes keep changing feed %lld: try again",
				r->target.name, (long long)feed->id) :
			rs_feed_missing(r, feed->id, err);
}
