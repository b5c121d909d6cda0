/* SPDX-License-Identifier: ISC */
/*
 * The schedule (src/store/driver.h) on each driver: leases of shards, due reads and commits, step
 * by step. Then processes that join, leave, are frozen beyond their lease and killed, while others
 * request polls.
 */
#include <check.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "drv.h"
#include "store/sql/sql.h"

#define FEEDS 2000
#define WORKERS 5
#define LEASE_MS (SLOW_BUILD ? 1000 : 300)
#define TROUBLES (SLOW_BUILD ? 12 : 30)

static char where[500]; /* the store's URL */

static struct store *opened(int i)
{
	struct fw_store_config c = {.url = where, .flags = FW_STORE_CREATE};
	struct fw_err e = {0};
	struct store *st = NULL;

	ck_assert_msg(drv_driver(i)->open(&c, &st, &e) == 0, "%s", e.text);
	return st;
}

static struct store *fresh_store(int i)
{
	(void)fw_str_copy(where, sizeof(where), fw_str(drv_url(i)));
	return opened(i);
}

/* ---- makers ---------------------------------------------------------------------------------- */

/* Adds a feed on a host of its own. */
static int64_t feed_add(struct store *st, const char *url, int64_t due_at_ms)
{
	struct fw_feed f = {.url = fw_str(url), .due_at_ms = due_at_ms};
	struct store_feed_new made = {0};

	DONE(st->driver->load(st, &(struct store_load){.rows = {.feed = &f, .feed_n = 1}, .made = &made}, &drv_err));
	ck_assert(made.id > 0 && !made.existed);
	return made.id;
}

struct found {
	struct fw_arena a;
	struct fw_feed feed;
};

static int found_one(void *ctx, const struct fw_feed *f)
{
	struct found *out = ctx;

	out->feed = *f;
	out->feed.url = fw_arena_str(&out->a, f->url);
	out->feed.title = fw_arena_str(&out->a, f->title);
	out->feed.host_key = fw_arena_str(&out->a, f->host_key);
	out->feed.why = fw_arena_str(&out->a, f->why);
	out->feed.etag = fw_arena_str(&out->a, f->etag);
	return 0;
}

static struct found F;

static const struct fw_feed *feed_of(struct store *st, int64_t id)
{
	DONE(st->driver->feed_list(st, &(struct store_feed_query){.id = id}, found_one, &F, &drv_err));
	return &F.feed;
}

struct seen {
	struct store_due due[FEEDS];
	struct store_host host[10];
	size_t n, host_n;
};

static int see(void *ctx, const struct store_due *due)
{
	struct seen *seen = ctx;

	ck_assert_uint_lt(seen->n, FEEDS);
	seen->due[seen->n++] = *due;
	return 0;
}

static int see_host(void *ctx, const struct store_host *host)
{
	struct seen *seen = ctx;

	ck_assert_uint_lt(seen->host_n, 10);
	ck_assert_uint_eq(seen->n, 0); /* hosts come first */
	seen->host[seen->host_n++] = *host;
	return 0;
}

static struct seen S;

static const struct store_due *due_of(struct store *st, int64_t feed_id)
{
	S.n = S.host_n = 0;
	DONE(st->driver->due(
		st, &(struct store_due_query){.shard = -1, .until_ms = INT64_MAX, .due = see, .ctx = &S}, &drv_err));
	for (size_t i = 0; i < S.n; i++) {
		if (S.due[i].feed_id == feed_id)
			return &S.due[i];
	}
	return NULL;
}

/* The outcome that a worker would commit for a due feed. */
static struct fw_outcome outcome_for(struct store *st, int64_t feed_id, struct fw_feed *f, int64_t due_at_ms)
{
	const struct store_due *due = due_of(st, feed_id);
	static int64_t time = NOW;

	ck_assert_ptr_nonnull(due);
	*f = *feed_of(st, feed_id);
	f->due_at_ms = due_at_ms;
	f->last_visit_ms = f->last_ok_ms = ++time;
	f->last_kind = FW_VISIT_OK;
	f->http_status = 200;
	f->why = FW_STR("learned \"4 h\"\\, {no array}");
	return (struct fw_outcome){.feed_id = feed_id,
		.host_id = due->host_id,
		.was_due_ms = due->due_at_ms,
		.feed = f,
		.visit = {.at_ms = time, .kind = FW_VISIT_OK, .http_status = 200, .total_us = 5000}};
}

static int commit(struct store *st, int64_t lease_id, struct fw_outcome *o, size_t n)
{
	return st->driver->commit(st, &(struct store_commit){.lease_id = lease_id, .outcome = o, .n = n}, &drv_err);
}

static int count_visit(void *ctx, const struct fw_visit *v)
{
	(void)v;
	++*(int *)ctx;
	return 0;
}

static int visits_of(struct store *st, int64_t feed_id)
{
	int n = 0;

	DONE(st->driver->visit_list(st, &(struct fw_visit_query){.feed_id = feed_id}, count_visit, &n, &drv_err));
	return n;
}

static int64_t version_of(struct store *st, struct store_lease *l, int shard)
{
	DONE(st->driver->heartbeat(st, "w", l, &drv_err));
	for (size_t i = 0; i < l->shard_n; i++) {
		if (l->shard[i].shard == shard)
			return l->shard[i].version;
	}
	return -1;
}

/* ---- leases ---------------------------------------------------------------------------------- */

START_TEST(parts)
{
	struct store *st = fresh_store(_i);
	struct store_lease *a = drv_join(st, "a", LONG_MS), *b = drv_join(st, "b", LONG_MS), *c;

	ck_assert_uint_eq(a->shard_n, STORE_SHARDS); /* the first worker has all shards, */
	ck_assert_uint_eq(b->shard_n, 0);
	DONE(st->driver->heartbeat(st, "a", a, &drv_err));
	ck_assert_uint_eq(a->living, 2);
	ck_assert_uint_eq(store_fair_share(a), STORE_SHARDS / 2);
	a->shard[STORE_SHARDS - 1].quiet_since_ms = 77;
	drv_give(st, a, STORE_SHARDS / 2, STORE_SHARDS / 2); /* gives the surplus back, */
	DONE(st->driver->heartbeat(st, "b", b, &drv_err));
	ck_assert_uint_eq(b->shard_n, STORE_SHARDS / 2); /* and the other takes it */
	for (size_t i = 0; i < STORE_SHARDS / 2; i++)
		ck_assert(b->shard[i].shard == (int)i + STORE_SHARDS / 2 &&
			b->shard[i].quiet_since_ms == (i == STORE_SHARDS / 2 - 1 ? 77 : 0));
	drv_give(st, a, STORE_SHARDS / 2, 1); /* a shard that is not its own cannot be given back */
	DONE(st->driver->heartbeat(st, "b", b, &drv_err));
	ck_assert_uint_eq(b->shard_n, STORE_SHARDS / 2);
	DONE(st->driver->release(st, &(struct store_release){.lease_id = a->id, .leave = true}, &drv_err));
	c = drv_join(st, "c", LONG_MS);
	ck_assert_int_gt(c->id, b->id);
	ck_assert_uint_eq(c->shard_n, STORE_SHARDS / 2);
	ck_assert_int_eq(st->driver->heartbeat(st, "a", a, &drv_err), FW_ESTALE);
	free(a);
	free(b);
	free(c);
	drv_end(st);
}
END_TEST

START_TEST(idle_ones_take_more)
{
	struct store *st = fresh_store(_i);
	struct store_lease *a = drv_join(st, "a", LONG_MS), *b = drv_join(st, "b", LONG_MS);

	drv_give(st, a, 100, STORE_SHARDS - 100);
	b->idle = true;
	DONE(st->driver->heartbeat(st, "b", b, &drv_err));
	ck_assert_uint_eq(b->shard_n, STORE_SHARDS - 100); /* all free shards, beyond its part */
	ck_assert_uint_eq(b->idle_n, 0);                   /* other idle workers */
	DONE(st->driver->heartbeat(st, "a", a, &drv_err));
	ck_assert_uint_eq(a->idle_n, 1);
	ck_assert_uint_eq(a->shard_n, 100);
	b->idle = false;
	DONE(st->driver->heartbeat(st, "b", b, &drv_err));
	DONE(st->driver->heartbeat(st, "a", a, &drv_err));
	ck_assert_uint_eq(a->idle_n, 0);
	free(a);
	free(b);
	drv_end(st);
}
END_TEST

START_TEST(a_lease_that_ran_out)
{
	struct store *st = fresh_store(_i);
	int64_t id = feed_add(st, "https://over.example/feed", 5);
	struct store_lease *a = drv_join(st, "a", -1000), *b; /* joining took longer than the lease */
	struct fw_feed f;
	struct fw_outcome o = outcome_for(st, id, &f, 6);

	ck_assert_uint_eq(a->shard_n, STORE_SHARDS); /* it does not count itself as dead, nor shards as free */
	DONE(st->driver->heartbeat(st, "a", a, &drv_err));
	ck_assert_uint_eq(a->shard_n, STORE_SHARDS);
	ck_assert_int_lt(a->safe_until_mono_ms, fw_mono_ms());
	DONE(commit(st, a->id, &o, 1)); /* expired, but no worker has taken it: it still holds */
	ck_assert_int_eq(o.rc, 0);
	ck_assert_int_eq(due_of(st, id)->due_at_ms, 6);
	b = drv_join(st, "b", LONG_MS);
	ck_assert_uint_eq(b->shard_n, STORE_SHARDS);
	ck_assert_int_gt(b->shard[7].quiet_since_ms, 0);
	o = outcome_for(st, id, &f, 9);
	ck_assert_int_eq(commit(st, a->id, &o, 1), FW_ESTALE);
	ck_assert_int_eq(st->driver->heartbeat(st, "a", a, &drv_err), FW_ESTALE);
	ck_assert_int_eq(due_of(st, id)->due_at_ms, 6);
	ck_assert_int_eq(visits_of(st, id), 1);
	free(a);
	free(b);
	drv_end(st);
}
END_TEST

/*
 * A worker renewed its lease and died while the server's clock was an hour ahead; then the clock is
 * right again. SQL only.
 */
START_TEST(a_clock_that_was_set_back)
{
	static const char UNTIL[] = "SELECT until_ms FROM workers WHERE id = ?1";
	struct store_lease *dead, *b;
	int64_t until_ms, changed;
	struct store *st;

	if (!drv_is_sql(_i))
		return;
	st = fresh_store(_i);
	dead = drv_join(st, "dead", LONG_MS); /* a short one might end before it is changed */
	b = drv_join(st, "b", LONG_MS);
	DONE(sql_exec_count(sql_of(st), "UPDATE workers SET until_ms = until_ms + 3600000, lease_ms = ?2 WHERE id = ?1",
		SQL_V(SQL_INT(dead->id), SQL_INT(LEASE_MS)), &changed, &drv_err));
	ck_assert_int_eq(changed, 1);
	drv_heartbeat(st, "b", b);
	DONE(sql_query_int(sql_of(st), UNTIL, SQL_V(SQL_INT(dead->id)), 0, &until_ms, &drv_err));
	ck_assert_int_gt(until_ms, 0); /* the lease counts as renewed at that heartbeat */
	ck_assert_int_le(until_ms, drv_clock(st) + LEASE_MS);
	DONE(sql_query_int(sql_of(st), UNTIL, SQL_V(SQL_INT(b->id)), 0, &until_ms, &drv_err));
	ck_assert_int_gt(until_ms, drv_clock(st) + LONG_MS / 2); /* a longer lease is not cut */
	while (b->living > 1) {
		usleep(10000);
		drv_heartbeat(st, "b", b);
	}
	ck_assert_uint_eq(b->shard_n, STORE_SHARDS);
	ck_assert_int_eq(st->driver->heartbeat(st, "dead", dead, &drv_err), FW_ESTALE);
	free(dead);
	free(b);
	drv_end(st);
}
END_TEST

START_TEST(dead_workers_are_reaped)
{
	struct store *st = fresh_store(_i);
	int64_t id = feed_add(st, "https://killer.example/feed", 5);
	struct store_lease *a = drv_join(st, "host/1/0", LONG_MS), *b;

	DONE(st->driver->release(st, &(struct store_release){.worker = "host/1/0", .crashed_feed_id = id}, &drv_err));
	b = drv_join(st, "host/2/0", LONG_MS);
	ck_assert_uint_eq(b->shard_n, STORE_SHARDS);
	ck_assert_int_gt(b->shard[3].quiet_since_ms, 0);
	ck_assert_int_eq(st->driver->heartbeat(st, "host/1/0", a, &drv_err), FW_ESTALE);
	ck_assert_int_eq(feed_of(st, id)->crash_n, 1);
	ck_assert_int_eq(F.feed.status, FW_FEED_ACTIVE);
	/* a worker that holds nothing */
	DONE(st->driver->release(st, &(struct store_release){.worker = "host/9/9", .crashed_feed_id = id}, &drv_err));
	ck_assert_int_eq(feed_of(st, id)->status, FW_FEED_QUARANTINED);
	ck_assert_ptr_null(due_of(st, id));
	/* removed meanwhile */
	DONE(st->driver->release(st, &(struct store_release){.worker = "host/9/9", .crashed_feed_id = 4711}, &drv_err));
	ck_assert_int_gt(version_of(st, b, store_host_shard(store_feed_host_id(&F.feed))), 0);
	free(a);
	free(b);
	drv_end(st);
}
END_TEST

/* ---- commits --------------------------------------------------------------------------------- */

START_TEST(changes_from_outside)
{
	struct store *st = fresh_store(_i);
	int64_t one = feed_add(st, "https://one.example/feed", 100),
		two = feed_add(st, "https://two.example/feed", 200),
		three = feed_add(st, "https://three.example/feed", 300);
	struct store_lease *l = drv_join(st, "a", LONG_MS);
	struct fw_feed f[3];
	struct fw_outcome o[3] = {outcome_for(st, one, &f[0], 5000), outcome_for(st, two, &f[1], 5000),
		outcome_for(st, three, &f[2], 5000)};
	int shard = due_of(st, one)->shard, other = (shard + 1) % STORE_SHARDS;
	int64_t version = version_of(st, l, shard), other_version = version_of(st, l, other);

	/* all three are in flight */
	DONE(st->driver->feed_set(st, &(struct fw_feed){.id = one, .due_at_ms = FW_DUE_FIRST}, FW_SET_DUE, &drv_err));
	ck_assert_int_gt(version_of(st, l, shard), version);       /* the owner sees that its shard has changed, */
	ck_assert_int_eq(version_of(st, l, other), other_version); /* and that the other has not */
	DONE(st->driver->feed_drop(st, two, 0, &drv_err));
	ck_assert_int_eq(st->driver->feed_drop(st, two, 0, &drv_err), FW_ENOTFOUND);
	ck_assert_int_eq(st->driver->feed_set(st, &(struct fw_feed){.id = two}, FW_SET_DUE, &drv_err), FW_ENOTFOUND);
	DONE(st->driver->feed_set(
		st, &(struct fw_feed){.id = three, .status = FW_FEED_PAUSED}, FW_SET_STATUS, &drv_err));
	f[2].status = FW_FEED_GONE;
	DONE(commit(st, l->id, o, 3));
	ck_assert_int_eq(o[0].rc, 0);
	ck_assert_int_eq(o[1].rc, FW_ENOTFOUND);
	ck_assert_int_eq(o[2].rc, 0);
	ck_assert_int_eq(due_of(st, one)->due_at_ms, FW_DUE_FIRST); /* the user's request to poll now stays */
	ck_assert_ptr_null(due_of(st, two));
	ck_assert_int_eq(feed_of(st, three)->status, FW_FEED_PAUSED);
	ck_assert_int_eq(F.feed.http_status, 200);
	ck_assert_ptr_null(due_of(st, three)); /* it is not polled any more */
	free(l);
	drv_end(st);
}
END_TEST

START_TEST(stored_once)
{
	struct store *st = fresh_store(_i);
	int64_t id = feed_add(st, "https://again.example/feed", 5);
	struct store_lease *l = drv_join(st, "a", LONG_MS);
	struct fw_entry_row e = entry(1, 1, "one", "text");
	struct fw_feed f;
	struct fw_outcome o = outcome_for(st, id, &f, 9000), again;

	o.entries = &e;
	o.entry_n = 1;
	again = o;
	DONE(commit(st, l->id, &o, 1));
	ck_assert_int_eq(o.visit.new_n, 1);
	DONE(commit(st, l->id, &again, 1)); /* as if the response had been lost */
	ck_assert_int_eq(again.rc, 0);
	ck_assert_int_eq(visits_of(st, id), 1);
	ck_assert_int_eq(feed_of(st, id)->entry_n, 1);
	ck_assert(F.feed.last_new_ms > 0 && F.feed.due_at_ms == 9000);
	ck_assert(fw_str_eq(F.feed.why, FW_STR("learned \"4 h\"\\, {no array}")));
	free(l);
	drv_end(st);
}
END_TEST

START_TEST(pushes_need_no_lease)
{
	struct store *st = fresh_store(_i);
	int64_t id = feed_add(st, "https://pushed.example/feed", 5),
		gone = feed_add(st, "https://gone.example/feed", 5);
	struct fw_entry_row e[2] = {entry(1, 1, "one", "text"), entry(2, 1, "two", "text")};
	struct fw_feed f = {.due_at_ms = 99999, .status = FW_FEED_GONE, .title = FW_STR("told"), .last_visit_ms = 7};
	struct fw_outcome o = {.feed_id = id,
				  .feed = &f,
				  .groups = FW_GROUP_META,
				  .visit = {.kind = FW_VISIT_PUSHED, .at_ms = NOW, .slot = -1},
				  .entries = e,
				  .entry_n = 2},
			  again = o;

	DONE(commit(st, 0, &o, 1));
	ck_assert_int_eq(o.visit.new_n, 2);
	DONE(commit(st, 0, &again, 1));
	ck_assert_int_eq(visits_of(st, id), 1);
	again.visit.at_ms++;
	f.title = FW_STR("told anew");
	DONE(commit(st, 0, &again, 1)); /* the same entries another time */
	ck_assert_int_eq(again.visit.new_n + again.visit.changed_n, 0);
	ck_assert_int_eq(visits_of(st, id), 2);
	feed_of(st, id);
	ck_assert(F.feed.due_at_ms == 5 && F.feed.status == FW_FEED_ACTIVE && F.feed.last_visit_ms == 0 &&
		F.feed.last_new_ms > 0 && F.feed.entry_n == 2);
	ck_assert(fw_str_eq(F.feed.title, FW_STR("told"))); /* a member that is set stays */
	DONE(st->driver->feed_drop(st, gone, 0, &drv_err));
	o.feed_id = gone;
	DONE(commit(st, 0, &o, 1));
	ck_assert_int_eq(o.rc, FW_ENOTFOUND);
	drv_end(st);
}
END_TEST

START_TEST(feeds_that_move)
{
	struct store *st = fresh_store(_i);
	int64_t one = feed_add(st, "https://old.example/feed", 5), two = feed_add(st, "https://taken.example/feed", 5);
	struct store_lease *l = drv_join(st, "a", LONG_MS);
	struct fw_feed f[2];
	struct fw_outcome o[2] = {outcome_for(st, one, &f[0], 50), outcome_for(st, two, &f[1], 50)};
	struct store_host h = {.next_ok_ms = 5000, .cooldown_until_ms = 10, .others = true};
	int64_t was = o[0].host_id;

	f[0].url = FW_STR("https://new.example/feed");
	f[0].etag = FW_STR("\"\xff\"");
	o[0].groups = FW_GROUP_URL | FW_GROUP_VALIDATORS;
	f[1].url = f[0].url; /* a moment later */
	o[1].groups = FW_GROUP_URL;
	h.id = store_feed_host_id(&f[0]);
	DONE(st->driver->commit(st,
		&(struct store_commit){.lease_id = l->id, .outcome = o, .n = 1, .host = &h, .host_n = 1}, &drv_err));
	DONE(commit(st, l->id, &o[1], 1));
	ck_assert_int_eq(o[0].rc, 0);
	ck_assert_int_eq(o[1].rc, FW_EINVAL); /* another feed has this URL; the rest is written */
	ck_assert_int_eq(due_of(st, two)->due_at_ms, 50);
	ck_assert(due_of(st, one)->host_id == h.id && h.id != was && due_of(st, one)->shard == store_host_shard(h.id));
	ck_assert(fw_str_eq(feed_of(st, one)->url, FW_STR("https://new.example/feed")) &&
		fw_str_eq(F.feed.etag, FW_STR("\"\xff\"")));
	ck_assert_int_eq(visits_of(st, one), 1);
	ck_assert_int_gt(version_of(st, l, store_host_shard(was)), 0); /* both owners see it */
	ck_assert_int_gt(version_of(st, l, store_host_shard(h.id)), 0);
	h.next_ok_ms = 4000;
	h.cooldown_until_ms = 20;
	DONE(st->driver->commit(st, &(struct store_commit){.lease_id = l->id, .host = &h, .host_n = 1}, &drv_err));
	S.n = S.host_n = 0;
	DONE(st->driver->due(st,
		&(struct store_due_query){.shard = store_host_shard(h.id),
			.until_ms = INT64_MAX,
			.due = see,
			.host = see_host,
			.ctx = &S},
		&drv_err));
	ck_assert_uint_eq(S.host_n, 1);
	ck_assert(S.host[0].next_ok_ms == 5000 && S.host[0].cooldown_until_ms == 20); /* the later times */
	f[0].host_key = FW_STR("[203.0.113.7]");
	o[0] = outcome_for(st, one, &f[1], 60);
	f[1].host_key = f[0].host_key;
	o[0].groups = FW_GROUP_HOST;
	o[0].feed = &f[1];
	DONE(commit(st, l->id, o, 1));
	ck_assert(
		due_of(st, one)->host_id == store_host_id(FW_STR("[203.0.113.7]")) && due_of(st, one)->due_at_ms == 60);
	ck_assert_int_eq(visits_of(st, one), 2);
	free(l);
	drv_end(st);
}
END_TEST

static int one_host(void *ctx, const struct store_host *host)
{
	*(struct store_host *)ctx = *host;
	return 7; /* the code of a callback ends the list, and is returned */
}

START_TEST(hosts_outlive_their_owner)
{
	struct store *st = fresh_store(_i);
	struct store_lease *a = drv_join(st, "a", LONG_MS);
	struct store_host h = {.id = store_host_id(FW_STR("a.example")),
				  .next_ok_ms = 10,
				  .cooldown_until_ms = 20,
				  .learned_delay_ms = 30},
			  got = {0};
	struct store_commit c = {.lease_id = a->id, .host = &h, .host_n = 1};
	struct store_due_query q = {.shard = store_host_shard(h.id), .host = one_host, .ctx = &got};

	DONE(st->driver->commit(st, &c, &drv_err));
	h.learned_delay_ms = 15;
	h.next_ok_ms = 5;
	DONE(st->driver->commit(st, &c, &drv_err));
	ck_assert_int_eq(st->driver->due(st, &q, &drv_err), 7);
	ck_assert(got.id == h.id && got.next_ok_ms == 5 && got.cooldown_until_ms == 20 && got.learned_delay_ms == 15);
	q.shard = (q.shard + 1) % STORE_SHARDS;
	DONE(st->driver->due(st, &q, &drv_err));
	free(a);
	drv_end(st);
}
END_TEST

/* The state that a claim needs, in one call. */
START_TEST(state_of_due_feeds)
{
	struct store *st = fresh_store(_i);
	struct store_due due[3];
	int64_t id[3];
	char url[60];

	for (int i = 0; i < 3; i++) {
		(void)fw_snprintf(url, sizeof(url), "https://h%d.example/feed", i);
		id[i] = feed_add(st, url, 5);
	}
	for (int i = 0; i < 3; i++)
		due[i] = *due_of(st, id[i]);
	DONE(st->driver->feed_drop(st, id[1], 0, &drv_err));
	S.n = 0;
	F.feed.id = 0;
	/* one was removed meanwhile */
	DONE(st->driver->feed_list(st, &(struct store_feed_query){.due = due, .due_n = 3}, found_one, &F, &drv_err));
	ck_assert(F.feed.id == id[0] || F.feed.id == id[2]);
	ck_assert_int_eq(F.feed.due_at_ms, 5);
	drv_end(st);
}
END_TEST

/* ---- at random ------------------------------------------------------------------------------- */

struct book {
	_Atomic int64_t owner[STORE_SHARDS], safe_until[STORE_SHARDS]; /* as its last owner reported; 0: given back */
	_Atomic int64_t visits[FEEDS];                                 /* committed */
	_Atomic int64_t joins, stale, kills;
	_Atomic int violations;
	char words[200];
};

static struct book *book;

static void violation(const char *what, int64_t a, int64_t b, int64_t c)
{
	if (atomic_fetch_add(&book->violations, 1) == 0)
		(void)fw_snprintf(book->words, sizeof(book->words), "%s: %lld, %lld, %lld", what, (long long)a,
			(long long)b, (long long)c);
}

static void must(int rc, const struct fw_err *e, const char *what)
{
	if (rc) {
		fprintf(stderr, "# worker: %s: %d %s\n", what, rc, e->text);
		_exit(9);
	}
}

static _Atomic int leaving;

static void on_term(int number)
{
	(void)number;
	leaving = 1;
}

struct worker {
	struct store *st;
	struct store_lease l;
	size_t n, turn; /* the shards that it works on: the first of the lease's */
	int64_t heartbeat_mono_ms;
	uint64_t dice;
};

static uint64_t roll(struct worker *w)
{
	return w->dice = fw_hash64(&w->dice, sizeof(w->dice)) + 1;
}

static bool safe(const struct worker *w)
{
	return fw_mono_ms() < w->l.safe_until_mono_ms;
}

/* Notes what the worker holds, and until when. */
static void note(struct worker *w)
{
	for (size_t i = 0; i < w->n; i++) {
		int k = w->l.shard[i].shard;
		int64_t before = atomic_load(&book->owner[k]), until = atomic_load(&book->safe_until[k]);

		if (before != w->l.id && until > fw_mono_ms() && safe(w))
			violation("two owners at once: shard, leases", k, before, w->l.id);
		if (!safe(w)) /* the process may have been stopped here: the book may show the next owner's entry */
			return;
		atomic_store(&book->owner[k], w->l.id);
		atomic_store(&book->safe_until[k], w->l.safe_until_mono_ms);
	}
}

static void unnote(struct worker *w, int shard)
{
	if (safe(w) && atomic_load(&book->owner[shard]) == w->l.id)
		atomic_store(&book->safe_until[shard], 0);
}

/* Joins, sends a heartbeat or does nothing. Gives the surplus back. */
static void live(struct worker *w)
{
	struct fw_err e = {0};
	struct store_release g = {0};
	int rc;

	if (w->l.id && fw_mono_ms() - w->heartbeat_mono_ms < LEASE_MS / 4)
		return;
	w->heartbeat_mono_ms = fw_mono_ms();
	w->l.lease_ms = LEASE_MS;
	rc = w->st->driver->heartbeat(w->st, "w", &w->l, &e);
	if (rc == FW_ESTALE) {
		atomic_fetch_add(&book->stale, 1);
		w->l.id = 0;
		rc = w->st->driver->heartbeat(w->st, "w", &w->l, &e);
	}
	if (rc == FW_EAGAIN)
		return;
	must(rc, &e, "beat");
	atomic_fetch_add(&book->joins, 1);
	w->n = w->l.shard_n;
	note(w);
	g = (struct store_release){.lease_id = w->l.id,
		.shard = w->l.shard + FW_MIN(w->n, store_fair_share(&w->l)),
		.n = w->n - FW_MIN(w->n, store_fair_share(&w->l))};
	w->n -= g.n;
	for (size_t i = 0; i < g.n; i++)
		unnote(w, g.shard[i].shard);
	rc = g.n ? w->st->driver->release(w->st, &g, &e) : 0;
	if (rc != FW_EAGAIN)
		must(rc, &e, "give");
}

static int pick(void *ctx, const struct store_due *due)
{
	struct seen *seen = ctx;

	if (seen->n < 20)
		seen->due[seen->n++] = *due;
	return 0;
}

/* Each commit moves the due time by one, so that visits can be counted. */
static void visit(struct worker *w)
{
	static struct seen seen;
	struct fw_outcome o[20];
	struct fw_feed f[20];
	struct fw_err e = {0};
	int rc, k;

	if (!w->n)
		return;
	k = w->l.shard[w->turn++ % w->n].shard;
	seen.n = 0;
	must(w->st->driver->due(w->st,
		     &(struct store_due_query){.shard = k, .until_ms = INT64_MAX, .due = pick, .ctx = &seen}, &e),
		&e, "due");
	if (atomic_load(&book->owner[k]) != w->l.id && safe(w))
		violation("a request beside the owner's: shard, lease, owner", k, w->l.id, book->owner[k]);
	for (size_t i = 0; i < seen.n; i++) {
		f[i] = (struct fw_feed){.id = seen.due[i].feed_id,
			.due_at_ms = seen.due[i].due_at_ms + 1,
			.last_visit_ms = seen.due[i].due_at_ms + 1,
			.why = FW_STR("again")};
		o[i] = (struct fw_outcome){.feed_id = f[i].id,
			.host_id = seen.due[i].host_id,
			.was_due_ms = seen.due[i].due_at_ms,
			.feed = &f[i],
			.visit = {.kind = FW_VISIT_NOT_MODIFIED, .at_ms = f[i].last_visit_ms}};
	}
	if (roll(w) % 50 == 0)
		usleep((useconds_t)(roll(w) % (LEASE_MS * 1200))); /* sometimes longer than the lease */
	rc = w->st->driver->commit(w->st, &(struct store_commit){.lease_id = w->l.id, .outcome = o, .n = seen.n}, &e);
	if (rc == FW_ESTALE || rc == FW_EAGAIN) {
		w->heartbeat_mono_ms = 0;
		return;
	}
	must(rc, &e, "commit");
	for (size_t i = 0; i < seen.n; i++) {
		if (o[i].rc == 0)
			atomic_fetch_add(&book->visits[o[i].feed_id - 1], 1);
	}
}

static pid_t worker_start(int engine)
{
	static int n;
	pid_t pid;

	sigset_t term, was;

	/* until the worker has its own handler, Check's would end the whole test */
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, &was);
	n++;
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		struct worker *w = calloc(1, sizeof(*w));
		struct fw_err e = {0};
		int rc = 0;

		if (!w)
			_exit(9);
		signal(SIGTERM, on_term);
		sigprocmask(SIG_SETMASK, &was, NULL);
		w->dice = (uint64_t)n;
		w->st = opened(engine);
		while (!leaving) {
			live(w);
			visit(w);
			usleep(2000); /* leaves processor time to the others */
		}
		for (size_t i = 0; w->l.id && i < w->n; i++)
			unnote(w, w->l.shard[i].shard);
		if (w->l.id)
			rc = w->st->driver->release(
				w->st, &(struct store_release){.lease_id = w->l.id, .leave = true}, &e);
		if (rc != FW_EAGAIN)
			must(rc, &e, "leave");
		w->st->driver->close(w->st);
		free(w);
		_exit(0);
	}
	sigprocmask(SIG_SETMASK, &was, NULL);
	return pid;
}

static void ended(pid_t pid, int signal_wanted)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(signal_wanted ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0,
		"a worker ended with status %x", (unsigned)status);
}

static int64_t visits_least(void)
{
	int64_t least = INT64_MAX;

	for (int i = 0; i < FEEDS; i++)
		least = FW_MIN(least, atomic_load(&book->visits[i]));
	return least;
}

static void feeds_make(struct store *st)
{
	struct fw_feed *f = calloc(FEEDS, sizeof(*f));
	struct store_feed_new *made = calloc(FEEDS, sizeof(*made));
	struct fw_arena a;

	ck_assert(f && made);
	fw_arena_init(&a, 0);
	for (int i = 0; i < FEEDS; i++)
		f[i] = (struct fw_feed){
			.url = fw_str(fw_arena_printf(&a, "https://host-%d.example/feed", i)), .due_at_ms = 1};
	DONE(st->driver->load(st, &(struct store_load){.rows = {.feed = f, .feed_n = FEEDS}, .made = made}, &drv_err));
	for (int i = 0; i < FEEDS; i++)
		ck_assert_int_eq(made[i].id, i + 1);
	fw_arena_finish(&a);
	free(made);
	free(f);
}

START_TEST(workers_come_and_go)
{
	struct store *st;
	pid_t pid[WORKERS];
	uint64_t dice = 1;
	int unheard = 0;

	if (!under_test[_i].shared)
		return;
	st = fresh_store(_i);
	book = mmap(NULL, sizeof(*book), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(book, MAP_FAILED);
	feeds_make(st);
	for (int i = 0; i < WORKERS; i++)
		pid[i] = worker_start(_i);
	for (int t = 0; t < TROUBLES; t++) {
		dice = fw_hash64(&dice, sizeof(dice)) + 1;
		int who = (int)(dice % WORKERS), what = (int)(dice / WORKERS % 3);

		usleep(LEASE_MS * 200);
		if (what == 0) {
			kill(pid[who], SIGKILL);
			ended(pid[who], SIGKILL);
			atomic_fetch_add(&book->kills, 1);
			pid[who] = worker_start(_i);
		} else if (what == 1) {
			kill(pid[who], SIGSTOP);
			usleep((useconds_t)(LEASE_MS * 1000 * (1 + dice / 100 % 2)));
			kill(pid[who], SIGCONT);
		} else {
			kill(pid[who], SIGTERM);
			ended(pid[who], 0);
			pid[who] = worker_start(_i);
		}
	}
	while (visits_least() < 2) /* no feed is forgotten, whatever happened to its owners */
		usleep(10000);
	for (int i = 0; i < WORKERS; i++)
		kill(pid[i], SIGTERM);
	for (int i = 0; i < WORKERS; i++)
		ended(pid[i], 0);
	ck_assert_msg(book->violations == 0, "%d violations, the first: %s", book->violations, book->words);
	ck_assert_ptr_nonnull(due_of(st, 1));
	ck_assert_uint_eq(S.n, FEEDS);
	/*
	 * a worker may be killed between its commit and its note: the book may lack that many,
	 * never have more
	 */
	for (size_t i = 0; i < FEEDS; i++) {
		int64_t more = S.due[i].due_at_ms - 1 - book->visits[S.due[i].feed_id - 1];

		ck_assert_msg(more >= 0, "feed %lld: %lld visits were promised that are not there",
			(long long)S.due[i].feed_id, (long long)-more);
		unheard += (int)more;
	}
	ck_assert_int_le(unheard, 20 * (int)book->kills);
	printf("# %s: %lld heartbeats, %lld leases lost, %lld kills, %d visits not heard of\n", under_test[_i].name,
		(long long)book->joins, (long long)book->stale, (long long)book->kills, unheard);
	munmap(book, sizeof(*book));
	drv_end(st);
}
END_TEST

int main(void)
{
	TCase *t = cases("every driver", NULL, NULL, 300);
	const TTest *const every[] = {parts, idle_ones_take_more, a_lease_that_ran_out, a_clock_that_was_set_back,
		dead_workers_are_reaped, changes_from_outside, stored_once, pushes_need_no_lease, feeds_that_move,
		hosts_outlive_their_owner, state_of_due_feeds, workers_come_and_go};

	stores_begin();
	fw_arena_init(&F.a, 0);
	cases_add(t, every, FW_N(every), under_test_n);
	return cases_run("store schedule", t);
}
