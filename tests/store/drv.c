/* SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "drv.h"
#include "store/driver.h"

struct fw_err drv_err;

/* ---- stores ---------------------------------------------------------------------------------- */

static const struct store_driver *driver_named(const char *name)
{
	for (const struct store_driver *const *d = store_drivers; *d; d++) {
		if (strcmp((*d)->name, name) == 0)
			return *d;
	}
	return NULL;
}

const struct store_driver *drv_driver(int i)
{
	return driver_named(under_test[i].name);
}

const char *drv_url(int i)
{
	static char url[300];
	static int n;
	char name[40];

	ck_assert(fw_snprintf(name, sizeof(name), "d%d_%d", (int)getpid(), n++));
	(void)fw_str_copy(url, sizeof(url), fw_str(scratch_url(i, name)));
	return url;
}

struct store *drv_open(int i, const char *url, unsigned flags)
{
	struct fw_store_config c = {.url = url, .flags = flags, .async_commit = true};
	struct store *st = NULL;

	DONE(drv_driver(i)->open(&c, &st, &drv_err));
	return st;
}

struct store *drv_fresh(int i)
{
	return drv_open(i, drv_url(i), FW_STORE_CREATE);
}

bool drv_is_sql(int i)
{
	return strcmp(under_test[i].name, "redis") != 0;
}

void drv_index(struct store *st)
{
	struct fw_prune p = {.now_ms = NOW, .index = true, .more = true};

	for (int n = 0; p.more; n++) {
		ck_assert_int_lt(n, 10000);
		p.more = false;
		DONE(st->driver->prune(st, &p, &drv_err));
	}
}

static void no_finding(void *ctx, const char *name, int level, const char *found, const char *remedy)
{
	(void)ctx;
	ck_assert_msg(level < 2, "%s: %s (%s)", name, found, remedy);
}

void drv_clean(struct store *st)
{
	DONE(st->driver->inspect(st, true, no_finding, NULL, &drv_err));
}

void drv_end(struct store *st)
{
	drv_clean(st);
	st->driver->close(st);
}

int64_t drv_clock(struct store *st)
{
	int64_t now_ms = 0;

	DONE(st->driver->clock(st, &now_ms, &drv_err));
	return now_ms;
}

/*
 * ---- the whole content as sums, because lists have no order -----------------------------------
 */

static void add(uint64_t *sum, struct fw_buf *b)
{
	ck_assert_int_eq(b->rc, 0);
	*sum += fw_hash64(b->p, b->len);
	fw_buf_finish(b);
}

static void text(struct fw_buf *b, struct fw_str s)
{
	fw_buf_addf(b, "%zu:%.*s|", s.len, FW_STR_ARG(s));
}

static int print_feed(void *ctx, const struct fw_feed *f)
{
	struct fw_buf b = FW_BUF_INIT(0);
	const struct fw_str s[] = {f->url, f->why, f->error, f->validator_url, f->etag, f->last_modified, f->title,
		f->home_page_url, f->rhythm, f->redirect_url, f->host_key, f->user_title, f->folder};
	const int64_t v[] = {1, f->id, f->status, f->due_at_ms, f->last_visit_ms, f->last_ok_ms, f->last_kind,
		f->http_status, f->fail_n, f->crash_n, f->expect_us, f->interval_ms, f->push_until_ms, f->last_new_ms,
		f->entry_n};

	fw_buf_add(&b, v, sizeof(v));
	for (size_t i = 0; i < FW_N(s); i++)
		text(&b, s[i]);
	add(ctx, &b);
	return 0;
}

static int print_entry(void *ctx, const struct fw_entry_row *e)
{
	struct fw_buf b = FW_BUF_INIT(0);
	const int64_t v[] = {2, e->id, e->feed_id, e->seen_ms, e->changed_ms, e->revision};

	fw_buf_add(&b, v, sizeof(v));
	text(&b, e->title);
	text(&b, e->content);
	add(ctx, &b);
	return 0;
}

static int print_visit(void *ctx, const struct fw_visit *v)
{
	struct fw_buf b = FW_BUF_INIT(0);
	const int64_t n[] = {3, v->id, v->feed_id, v->at_ms, v->kind, v->new_n};

	fw_buf_add(&b, n, sizeof(n));
	add(ctx, &b);
	return 0;
}

static int print_host(void *ctx, const struct store_host *h)
{
	struct fw_buf b = FW_BUF_INIT(0);
	const int64_t v[] = {4, h->id, h->next_ok_ms, h->cooldown_until_ms, h->learned_delay_ms};

	fw_buf_add(&b, v, sizeof(v));
	add(ctx, &b);
	return 0;
}

uint64_t drv_print(struct store *st)
{
	struct store_feed_query q = {.q = {.status = -1}};
	struct fw_store_stats s = {0};
	uint64_t sum = 0;

	DONE(st->driver->feed_list(st, &q, print_feed, &sum, &drv_err));
	DONE(fw_store_entry_list(
		(struct fw_store *)st, &(struct fw_entry_query){.content = true}, print_entry, &sum, &drv_err));
	DONE(st->driver->visit_list(st, &(struct fw_visit_query){0}, print_visit, &sum, &drv_err));
	DONE(st->driver->due(st, &(struct store_due_query){.shard = -1, .host = print_host, .ctx = &sum}, &drv_err));
	DONE(st->driver->stats(st, &s, &drv_err));
	return sum + (uint64_t)(s.feed_n * 3 + s.entry_n * 5 + s.visit_n * 7);
}

/* ---- leases ---------------------------------------------------------------------------------- */

void drv_heartbeat(struct store *st, const char *worker, struct store_lease *l)
{
	DONE(st->driver->heartbeat(st, worker, l, &drv_err));
	ck_assert_int_gt(l->id, 0);
	ck_assert_uint_ge(l->living, 1);
	ck_assert_uint_lt(l->idle_n, l->living);
	for (size_t i = 0; i < l->shard_n; i++)
		ck_assert_msg(l->shard[i].shard >= 0 && l->shard[i].shard < STORE_SHARDS &&
				(!i || l->shard[i].shard > l->shard[i - 1].shard),
			"shards are not listed by number");
}

struct store_lease *drv_join(struct store *st, const char *worker, int64_t lease_ms)
{
	struct store_lease *l = calloc(1, sizeof(*l));

	ck_assert_ptr_nonnull(l);
	l->lease_ms = lease_ms;
	drv_heartbeat(st, worker, l);
	return l;
}

void drv_give(struct store *st, const struct store_lease *l, size_t from, size_t n)
{
	DONE(st->driver->release(
		st, &(struct store_release){.lease_id = l->id, .shard = l->shard + from, .n = n}, &drv_err));
}

void drv_share(struct store *st, const char *worker, struct store_lease *l)
{
	size_t part;

	drv_heartbeat(st, worker, l);
	part = store_fair_share(l);
	if (l->shard_n <= part)
		return;
	drv_give(st, l, part, l->shard_n - part);
	l->shard_n = part;
}

void drv_leave(struct store *st, struct store_lease *l)
{
	DONE(st->driver->release(st, &(struct store_release){.lease_id = l->id, .leave = true}, &drv_err));
	free(l);
}

void drv_reap(struct store *st, const char *worker, int64_t crashed_feed_id)
{
	DONE(st->driver->release(
		st, &(struct store_release){.worker = worker, .crashed_feed_id = crashed_feed_id}, &drv_err));
}

const struct store_shard *drv_shard(const struct store_lease *l, int shard)
{
	for (size_t i = 0; i < l->shard_n; i++) {
		if (l->shard[i].shard == shard)
			return &l->shard[i];
	}
	return NULL;
}

int64_t drv_version(struct store *st, struct store_lease *l, int shard)
{
	const struct store_shard *s;

	drv_heartbeat(st, "w", l);
	s = drv_shard(l, shard);
	ck_assert_ptr_nonnull(s);
	return s->version;
}

/* ---- feeds ----------------------------------------------------------------------------------- */

int64_t drv_feed(struct store *st, const char *url, int64_t due_at_ms)
{
	struct fw_feed f = {.url = fw_str(url), .due_at_ms = due_at_ms};
	struct store_feed_new made = {0};

	DONE(st->driver->load(st, &(struct store_load){.rows = {.feed = &f, .feed_n = 1}, .made = &made}, &drv_err));
	ck_assert(made.id > 0 && !made.existed);
	return made.id;
}

void drv_feeds(struct store *st, const char *host, int n, int64_t due_at_ms, int64_t *id)
{
	struct fw_feed *f = calloc((size_t)n, sizeof(*f));
	struct store_feed_new *made = calloc((size_t)n, sizeof(*made));
	struct fw_arena a;

	ck_assert(f && made);
	fw_arena_init(&a, 0);
	for (int i = 0; i < n; i++) {
		f[i].url = fw_str(fw_arena_printf(&a, "https://%s/%d", host, i));
		f[i].due_at_ms = due_at_ms;
	}
	DONE(st->driver->load(
		st, &(struct store_load){.rows = {.feed = f, .feed_n = (size_t)n}, .made = made}, &drv_err));
	for (int i = 0; i < n; i++) {
		ck_assert(made[i].id > 0 && !made[i].existed);
		id[i] = made[i].id;
	}
	fw_arena_finish(&a);
	free(f);
	free(made);
}

struct kept {
	struct fw_arena a;
	struct fw_feed f;
	bool is;
};

static int keep_feed(void *ctx, const struct fw_feed *f)
{
	struct kept *k = ctx;

	k->f = *f;
	k->is = true;
	ck_assert(fw_store_feed_dup(&k->a, &k->f));
	return 0;
}

/* The last 16 results are kept. */
static struct kept *look_up(struct store *st, int64_t id, int *rc)
{
	static struct kept ring[16];
	static unsigned turn;
	struct kept *k = &ring[turn++ % FW_N(ring)];

	if (turn > FW_N(ring))
		fw_arena_finish(&k->a);
	fw_arena_init(&k->a, 0);
	k->is = false;
	*rc = st->driver->feed_list(st, &(struct store_feed_query){.id = id}, keep_feed, k, &drv_err);
	return k;
}

const struct fw_feed *drv_find(struct store *st, int64_t id)
{
	int rc;
	struct kept *k = look_up(st, id, &rc);

	DONE(rc);
	ck_assert(k->is && k->f.id == id);
	return &k->f;
}

bool drv_is(struct store *st, int64_t id)
{
	int rc;

	(void)look_up(st, id, &rc);
	ck_assert_msg(rc == 0 || rc == FW_ENOTFOUND, "%d %s", rc, drv_err.text);
	return rc == 0;
}

#define ROWS 20000
static struct drv_due due_seen;

static int due_row(void *ctx, const struct store_due *due)
{
	(void)ctx;
	ck_assert_uint_lt(due_seen.n, ROWS);
	due_seen.due[due_seen.n++] = *due;
	return 0;
}

static int host_row(void *ctx, const struct store_host *host)
{
	for (size_t i = 0; i < due_seen.n; i++)
		ck_assert_msg(due_seen.due[i].shard != store_host_shard(host->id), "a host behind a feed of its shard");
	(void)ctx;
	ck_assert_uint_lt(due_seen.host_n, ROWS);
	due_seen.host[due_seen.host_n++] = *host;
	return 0;
}

const struct drv_due *drv_due(struct store *st, int shard, int64_t until_ms)
{
	struct store_due_query q = {.shard = shard, .until_ms = until_ms, .due = due_row, .host = host_row};

	if (!due_seen.due) {
		due_seen.due = calloc(ROWS, sizeof(*due_seen.due));
		due_seen.host = calloc(ROWS, sizeof(*due_seen.host));
		ck_assert(due_seen.due && due_seen.host);
	}
	due_seen.n = due_seen.host_n = 0;
	DONE(st->driver->due(st, &q, &drv_err));
	return &due_seen;
}

const struct store_due *drv_due_of(struct store *st, int64_t feed_id)
{
	const struct drv_due *d = drv_due(st, -1, INT64_MAX);

	for (size_t i = 0; i < d->n; i++) {
		if (d->due[i].feed_id == feed_id)
			return &d->due[i];
	}
	return NULL;
}

const struct store_host *drv_host(struct store *st, int64_t host_id)
{
	const struct drv_due *d = drv_due(st, store_host_shard(host_id), 0);

	for (size_t i = 0; i < d->host_n; i++) {
		if (d->host[i].id == host_id)
			return &d->host[i];
	}
	return NULL;
}

/* ---- commits --------------------------------------------------------------------------------- */

static int64_t time_ms = NOW;

struct fw_outcome drv_outcome(struct store *st, int64_t feed_id, struct fw_feed *f, int64_t due_at_ms)
{
	int64_t was_due_ms;

	*f = *drv_find(st, feed_id);
	was_due_ms = f->due_at_ms;
	f->due_at_ms = due_at_ms;
	f->last_visit_ms = f->last_ok_ms = ++time_ms;
	f->last_kind = FW_VISIT_OK;
	f->http_status = 200;
	f->why = FW_STR("learned \"4 h\"\\, {no array}");
	return (struct fw_outcome){.feed_id = feed_id,
		.host_id = store_feed_host_id(f),
		.was_due_ms = was_due_ms,
		.feed = f,
		.visit = {.at_ms = time_ms, .kind = FW_VISIT_OK, .http_status = 200, .total_us = 5000, .slot = -1}};
}

struct fw_outcome drv_push(int64_t feed_id, struct fw_feed *f, struct fw_entry_row *e, size_t n)
{
	return (struct fw_outcome){.feed_id = feed_id,
		.feed = f,
		.visit = {.at_ms = ++time_ms, .kind = FW_VISIT_PUSHED, .slot = -1},
		.entries = e,
		.entry_n = n};
}

int drv_commit(struct store *st, int64_t lease_id, struct fw_outcome *o, size_t n)
{
	return st->driver->commit(st, &(struct store_commit){.lease_id = lease_id, .outcome = o, .n = n}, &drv_err);
}

static int count_visit(void *ctx, const struct fw_visit *v)
{
	(void)v;
	++*(int *)ctx;
	return 0;
}

int drv_visits(struct store *st, int64_t feed_id)
{
	int n = 0;

	DONE(st->driver->visit_list(st, &(struct fw_visit_query){.feed_id = feed_id}, count_visit, &n, &drv_err));
	return n;
}

static int count_entry(void *ctx, const struct fw_entry_row *e)
{
	(void)e;
	++*(int *)ctx;
	return 0;
}

int drv_entries(struct store *st, int64_t feed_id)
{
	int n = 0;

	DONE(fw_store_entry_list(
		(struct fw_store *)st, &(struct fw_entry_query){.feed_id = feed_id}, count_entry, &n, &drv_err));
	return n;
}

void drv_is_unknown(struct store *st, int64_t id, int64_t existing)
{
	const struct store_driver *d = st->driver;
	struct fw_feed f = {.id = id};
	struct fw_entry_row e = entry(1, 1, "title", "text");
	struct fw_outcome o = drv_push(id, &f, &e, 1);
	uint64_t before = drv_print(st);

	ck_assert(!drv_is(st, id));
	FAILS(d->feed_set(st, &f, FW_SET_DUE, &drv_err), FW_ENOTFOUND);
	FAILS(d->feed_drop(st, id, 0, &drv_err), FW_ENOTFOUND);
	FAILS(d->feed_drop(st, id, existing, &drv_err), FW_ENOTFOUND);
	FAILS(d->feed_drop(st, existing, id, &drv_err), FW_ENOTFOUND);
	DONE(drv_commit(st, 0, &o, 1));
	ck_assert_int_eq(o.rc, FW_ENOTFOUND);
	drv_reap(st, "nobody", id);
	ck_assert_int_eq(drv_entries(st, id), 0);
	ck_assert_int_eq(drv_visits(st, id), 0);
	ck_assert_uint_eq(drv_print(st), before);
}
