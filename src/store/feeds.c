/* SPDX-License-Identifier: ISC */
/* The front, part 2: feeds, the due set, pushes, visits, loads. Checks arguments. */
#include <assert.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/url.h"
#include "store/driver.h"

/* ---- feeds ----------------------------------------------------------------------------------- */

static bool url_has_host(struct fw_str url)
{
	char host[256];

	return fw_url_host(url, host, sizeof(host));
}

/* Who takes the parts of a subscription. */
struct fw_subscribing {
	store_load_put_fn *put;
	void *to;
	fw_subscribe_fn *each;
	void *ctx;
};

static int feeds_subscribe(const struct fw_subscribing *to, struct fw_feed_new *feed, size_t n, struct fw_err *err)
{
	struct fw_feed *f = calloc(n, sizeof(*f));
	struct store_feed_new *made = calloc(n, sizeof(*made));
	struct store_load l = {.rows = {.feed = f, .feed_n = n}, .made = made};
	int rc = f && made ? 0 : fw_no_memory(err);

	assert(n > 0); /* a driver never gets an empty batch */
	for (size_t i = 0; !rc && i < n; i++)
		f[i] = store_feed_of_new(&feed[i]);
	rc = rc ? rc : to->put(to->to, &l, err);
	for (size_t i = 0; !rc && i < n; i++) {
		feed[i].id = made[i].id;
		feed[i].existed = made[i].existed;
	}
	free(f);
	free(made);
	return rc;
}

int fw_store_subscribe_put(const struct fw_subscribing *to, struct fw_feed_new *feed, size_t n, struct fw_err *err)
{
	for (size_t i = 0; i < n; i++) {
		if (!url_has_host(feed[i].url))
			return fw_err_set(err, FW_EINVAL, "\"%.*s\": not a feed address: the URL has no host",
				FW_STR_ARG(fw_str_sub(feed[i].url, 0, 200)));
	}
	return n ? feeds_subscribe(to, feed, n, STORE_ERR(err)) : 0;
}

static int feeds_load_all(void *to, const struct store_load *l, struct fw_err *err)
{
	return ((struct store *)to)->driver->load(to, l, err);
}

int fw_store_subscribe(struct fw_store *st, struct fw_feed_new *feed, size_t n, struct fw_err *err)
{
	return fw_store_subscribe_put(&(struct fw_subscribing){feeds_load_all, store_of(st), NULL, NULL}, feed, n, err);
}

static int feeds_load_each(void *ctx, store_load_put_fn *put, void *to, struct fw_err *err)
{
	const struct fw_subscribing *s = ctx;

	return s->each(s->ctx, &(struct fw_subscribing){put, to, NULL, NULL}, err);
}

int fw_store_subscribe_each(struct fw_store *st, fw_subscribe_fn *each, void *ctx, struct fw_err *err)
{
	struct fw_subscribing s = {.each = each, .ctx = ctx};

	return STORE_CALL(st, load, &(struct store_load){.each = feeds_load_each, .ctx = &s}, STORE_ERR(err));
}

int fw_store_unsubscribe(struct fw_store *st, int64_t feed_id, struct fw_err *err)
{
	return STORE_CALL(st, feed_drop, feed_id, 0, STORE_ERR(err));
}

int fw_store_feed_merge(struct fw_store *st, int64_t from_id, int64_t into_id, struct fw_err *err)
{
	struct store *to = store_of(st);

	if (from_id == into_id)
		return store_invalid(to, "feed_merge: a feed cannot be merged into itself", err);
	return to->driver->feed_drop(to, from_id, into_id, STORE_ERR(err));
}

struct feed_found {
	struct fw_arena *a;
	struct fw_feed *out;
};

static int feed_found(void *ctx, const struct fw_feed *feed)
{
	struct feed_found *f = ctx;

	*f->out = *feed;
	return fw_store_feed_dup(f->a, f->out) ? 0 : FW_ENOMEM;
}

int fw_store_feed_find(
	struct fw_store *st, int64_t id, struct fw_str url, struct fw_arena *a, struct fw_feed *out, struct fw_err *err)
{
	struct feed_found f = {a, out};
	struct store_feed_query q = {.id = id, .url = id ? FW_STR_NONE : url};
	int rc = STORE_CALL(st, feed_list, &q, feed_found, &f, STORE_ERR(err));

	return rc == FW_ENOMEM ? fw_no_memory(err) : rc;
}

int fw_store_feed_list(
	struct fw_store *st, const struct fw_feed_query *q, fw_feed_cb *cb, void *ctx, struct fw_err *err)
{
	struct store *to = store_of(st);
	struct store_feed_query s = {.q = *q};

	if (q->by_due && q->after_id)
		return store_invalid(to, "feed_list: a cursor needs the order by id", err);
	s.q.folder = fw_path_trim(q->folder);
	return to->driver->feed_list(to, &s, cb, ctx, STORE_ERR(err));
}

int fw_store_feed_set(struct fw_store *st, const struct fw_feed *feed, unsigned what, struct fw_err *err)
{
	return STORE_CALL(st, feed_set, feed, what, STORE_ERR(err));
}

/* ---- the schedule ---------------------------------------------------------------------------- */

static int due_add(void *ctx, const struct store_due *d)
{
	const struct fw_due_row row = {
		d->feed_id, d->host_id, d->due_at_ms, d->expect_us, d->expect_dev_us, d->last_visit_ms};

	fw_buf_add(ctx, &row, sizeof(row));
	return 0;
}

FW_COMPARE_BY(due_row_compare, struct fw_due_row, due_at_ms, feed_id)

int fw_store_due_list(
	struct fw_store *st, int64_t due_before_ms, size_t limit, fw_due_cb *cb, void *ctx, struct fw_err *err)
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct store_due_query q = {.shard = -1, .until_ms = due_before_ms, .due = due_add, .ctx = &b};
	int rc = STORE_CALL(st, due, &q, STORE_ERR(err));
	size_t n = b.len / sizeof(struct fw_due_row);
	struct fw_due_row *row = (struct fw_due_row *)(void *)b.p;

	rc = rc ? rc : b.rc ? fw_no_memory(err) : 0;
	if (!rc && n)
		qsort(row, n, sizeof(*row), due_row_compare);
	for (size_t i = 0; !rc && i < n && (!limit || i < limit); i++)
		rc = cb(ctx, &row[i]);
	fw_buf_finish(&b);
	return rc;
}

struct pending {
	int64_t n, wake_ms;
};

static int pending_add(void *ctx, const struct store_due *d)
{
	struct pending *p = ctx;

	p->n++;
	if (p->wake_ms == FW_NO_DATE || d->due_at_ms < p->wake_ms)
		p->wake_ms = d->due_at_ms;
	return 0;
}

int fw_store_pending(struct fw_store *st, int64_t due_before_ms, int64_t *n, int64_t *wake_ms, struct fw_err *err)
{
	struct pending p = {0, FW_NO_DATE};
	struct store_due_query q = {.shard = -1, .until_ms = due_before_ms, .due = pending_add, .ctx = &p};
	int rc = STORE_CALL(st, due, &q, STORE_ERR(err));

	*n = p.n;
	*wake_ms = p.wake_ms;
	return rc;
}

int fw_store_push(struct fw_store *st, struct fw_outcome *outcome, size_t n, struct fw_err *err)
{
	struct store *to = store_of(st);

	for (size_t i = 0; i < n; i++) {
		outcome[i].rc = 0;
		if (outcome[i].visit.kind != FW_VISIT_PUSHED && n > 1)
			return store_invalid(to, "push: a first visit must be the only outcome", err);
		if (outcome[i].visit.kind == FW_VISIT_PUSHED && outcome[i].groups & ~(unsigned)FW_GROUP_META)
			return store_invalid(to, "push: groups other than META are not allowed", err);
	}
	return n ? store_commit(to, &(struct store_commit){.outcome = outcome, .n = n}, STORE_ERR(err)) : 0;
}

int fw_store_reap(struct fw_store *st, const char *worker, int64_t crashed_feed_id, struct fw_err *err)
{
	struct store *to = store_of(st);

	if (!worker || !*worker)
		return store_invalid(to, "reap: the worker's name is missing", err);
	return to->driver->release(
		to, &(struct store_release){.worker = worker, .crashed_feed_id = crashed_feed_id}, STORE_ERR(err));
}

/* ---- visits, copies -------------------------------------------------------------------------- */

int fw_store_visit_list(
	struct fw_store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx, struct fw_err *err)
{
	struct store *to = store_of(st);

	if (q->oldest_first ? q->feed_id != 0 : q->after_id != 0)
		return store_invalid(
			to, "visit_list: oldest_first needs feed_id 0, and after_id needs oldest_first", err);
	return to->driver->visit_list(to, q, cb, ctx, STORE_ERR(err));
}

int fw_store_key_list(
	struct fw_store *st, int64_t first_feed_id, int64_t last_feed_id, fw_key_cb *cb, void *ctx, struct fw_err *err)
{
	return STORE_CALL(st, key_list, first_feed_id, last_feed_id, cb, ctx, STORE_ERR(err));
}

static bool load_id_is_good(int64_t id)
{
	return id > 0 && id <= STORE_ID_MAX;
}

/* What is wrong with these rows; NULL: nothing. */
static const char *load_error_text(const struct fw_load *rows)
{
	for (size_t i = 0; i < rows->feed_n; i++) {
		if (!load_id_is_good(rows->feed[i].id) || !url_has_host(rows->feed[i].url))
			return "load: a feed's id is not from 1 to 2^53 - 1, or its URL has no host";
	}
	for (size_t i = 0; i < rows->entry_n; i++) {
		if (!load_id_is_good(rows->entry[i].id))
			return "load: an entry's id is not from 1 to 2^53 - 1";
	}
	for (size_t i = 0; i < rows->visit_n; i++) {
		if (!load_id_is_good(rows->visit[i].id) || (i && rows->visit[i].id <= rows->visit[i - 1].id))
			return "load: visits must come in order of their ids, which are from 1 to 2^53 - 1";
	}
	return NULL;
}

int fw_store_load(struct fw_store *st, const struct fw_load *rows, struct fw_err *err)
{
	struct store *to = store_of(st);
	const char *wrong = load_error_text(rows);

	if (wrong)
		return store_invalid(to, wrong, err);
	if (!rows->feed_n && !rows->entry_n && !rows->key_n && !rows->visit_n && !rows->change_id)
		return 0;
	return to->driver->load(to, &(struct store_load){.rows = *rows}, STORE_ERR(err));
}
