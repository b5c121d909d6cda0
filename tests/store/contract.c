/* SPDX-License-Identifier: ISC */
/*
 * The rules of src/store/driver.h for leases, shards, due reads, commits and pushes, rule by rule,
 * on each driver. Random steps: model.c. Processes that freeze and die: fleet.c. Feeds, entries and
 * the rest: feeds.c, entries.c, records.c.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "drv.h"
#include "store/driver.h"
#include "store/sql/sql.h"

#define SHORT_MS 300

static struct fw_feed F[8]; /* the feeds' next states */

/* ---- leases ---------------------------------------------------------------------------------- */

START_TEST(the_first_has_all)
{
	struct store *st = drv_fresh(_i);
	int64_t asked_ms = fw_mono_ms();
	struct store_lease *l = drv_join(st, "host/1/0", LONG_MS);
	int64_t id = l->id;

	ck_assert_uint_eq(l->shard_n, STORE_SHARDS);
	ck_assert(l->living == 1 && l->idle_n == 0 && store_fair_share(l) == STORE_SHARDS);
	/* on the worker's clock: before the lease ends, with time left to work */
	ck_assert_int_lt(l->safe_until_mono_ms, fw_mono_ms() + LONG_MS);
	ck_assert_int_ge(l->safe_until_mono_ms, asked_ms + LONG_MS / 2);
	for (int i = 0; i < STORE_SHARDS; i++)
		ck_assert(l->shard[i].shard == i && l->shard[i].quiet_since_ms == 0);
	drv_heartbeat(st, "host/1/0", l);
	ck_assert(l->id == id && l->shard_n == STORE_SHARDS && l->living == 1);
	drv_leave(st, l);
	drv_end(st);
}
END_TEST

/*
 * No shard has two owners, and when none is free each worker has its part. Returns how many shards
 * are held.
 */
static size_t disjoint(struct store_lease *const *l, int n)
{
	bool held[STORE_SHARDS] = {false};
	size_t sum = 0;

	for (int i = 0; i < n; i++) {
		for (size_t k = 0; k < l[i]->shard_n; k++) {
			ck_assert_msg(!held[l[i]->shard[k].shard], "shard %d has two owners", l[i]->shard[k].shard);
			held[l[i]->shard[k].shard] = true;
			sum++;
		}
	}
	return sum;
}

START_TEST(parts_after_two_heartbeats)
{
	static const int WORKERS[] = {2, 3, 10};

	for (size_t k = 0; k < FW_N(WORKERS); k++) {
		struct store *st = drv_fresh(_i);
		struct store_lease *l[10];
		int n = WORKERS[k];

		for (int i = 0; i < n; i++)
			l[i] = drv_join(st, "w", LONG_MS);
		for (int i = 0; i < 2 * n; i++) /* the worker that holds everything comes last: the worst order */
			drv_share(st, "w", l[n - 1 - i % n]);
		for (int i = 0; i < n - 1; i++) /* what the second heartbeat gives back is taken by the next */
			drv_share(st, "w", l[n - 1 - i]);
		ck_assert_uint_eq(disjoint(l, n), STORE_SHARDS);
		for (int i = 0; i < n; i++) {
			ck_assert_uint_eq(l[i]->living, n);
			ck_assert_uint_le(l[i]->shard_n, store_fair_share(l[i]));
			ck_assert_uint_ge(l[i]->shard_n, STORE_SHARDS - (size_t)(n - 1) * store_fair_share(l[i]));
		}
		for (int i = 1; i < n; i++)
			drv_leave(st, l[i]);
		drv_share(st, "w", l[0]); /* one worker is left: it has all shards again, at once */
		ck_assert_uint_eq(l[0]->shard_n, STORE_SHARDS);
		drv_leave(st, l[0]);
		drv_end(st);
	}
}
END_TEST

START_TEST(heartbeat_keeps_the_lease)
{
	struct store *st = drv_fresh(_i);
	struct store_lease *a = drv_join(st, "a", LONG_MS), *b = drv_join(st, "b", LONG_MS);
	struct store_lease was;

	drv_share(st, "a", a);
	drv_share(st, "b", b);
	was = *b;
	for (int i = 0; i < 3; i++) { /* a worker that has its part keeps it when others join and leave */
		drv_heartbeat(st, "a", a);
		drv_heartbeat(st, "b", b);
		ck_assert_uint_eq(b->shard_n, was.shard_n);
		ck_assert_int_eq(memcmp(b->shard, was.shard, was.shard_n * sizeof(was.shard[0])), 0);
	}
	drv_leave(st, a);
	drv_heartbeat(st, "b", b);
	for (size_t i = 0; i < was.shard_n; i++)
		ck_assert_ptr_nonnull(drv_shard(b, was.shard[i].shard));
	drv_leave(st, b);
	drv_end(st);
}
END_TEST

/* quiet_since_ms goes with the shard from owner to owner. */
START_TEST(the_quiet_time_goes_with_the_shard)
{
	struct store *st = drv_fresh(_i);
	struct store_lease *a = drv_join(st, "a", LONG_MS), *b;
	int64_t died_ms, knew_ms = drv_clock(st) + 5;

	a->shard[5].quiet_since_ms = 77;
	a->shard[7].quiet_since_ms = knew_ms;
	drv_give(st, a, 0, 10);
	drv_heartbeat(st, "a", a); /* it takes them back itself, and gets its own value */
	ck_assert(a->shard[5].quiet_since_ms == 77 && a->shard[7].quiet_since_ms == knew_ms &&
		!a->shard[6].quiet_since_ms);
	drv_heartbeat(st, "a", a);
	ck_assert_int_eq(a->shard[5].quiet_since_ms, 77); /* as long as it reports no other value */
	a->shard[5].quiet_since_ms = 0;
	died_ms = drv_clock(st);
	/* in one call: some shards with the value given, the rest as of a worker that died now */
	DONE(st->driver->release(
		st, &(struct store_release){.lease_id = a->id, .shard = a->shard, .n = 10, .leave = true}, &drv_err));
	b = drv_join(st, "b", LONG_MS);
	ck_assert_uint_eq(b->shard_n, STORE_SHARDS);
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(b->shard[i].quiet_since_ms, i == 7 ? knew_ms : 0);
	for (int i = 10; i < STORE_SHARDS; i++)
		ck_assert(b->shard[i].quiet_since_ms >= died_ms && b->shard[i].quiet_since_ms <= drv_clock(st));
	free(a);
	drv_leave(st, b);
	drv_end(st);
}
END_TEST

/*
 * Workers that know how many start together take no more than their part. Idle ones share what is
 * left.
 */
START_TEST(begin_together)
{
	struct store *st = drv_fresh(_i);
	struct store_lease *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));

	ck_assert(a && b);
	*a = *b = (struct store_lease){.lease_ms = LONG_MS, .expected = 4};
	drv_heartbeat(st, "a", a);
	ck_assert(a->living == 1 && a->shard_n == STORE_SHARDS / 4);
	drv_heartbeat(st, "b", b);
	ck_assert(b->living == 2 && b->shard_n == STORE_SHARDS / 4);
	b->idle = b->full = true;
	drv_heartbeat(st, "b", b);
	ck_assert_uint_eq(b->shard_n, STORE_SHARDS / 4);
	a->idle = true;
	drv_heartbeat(st, "a", a);
	ck_assert_uint_eq(a->shard_n, STORE_SHARDS / 2);
	b->full = false;
	drv_heartbeat(st, "b", b);
	ck_assert_uint_eq(b->shard_n, STORE_SHARDS / 4 + STORE_SHARDS / 8);
	drv_leave(st, a);
	drv_leave(st, b);
	drv_end(st);
}
END_TEST

START_TEST(idle_and_full)
{
	struct store *st = drv_fresh(_i);
	struct store_lease *a = drv_join(st, "a", LONG_MS), *b = drv_join(st, "b", LONG_MS),
			   *c = drv_join(st, "c", LONG_MS);

	drv_give(st, a, 100, STORE_SHARDS - 100);
	b->full = true; /* it has more work than it can start: it takes no shard, though it holds none */
	drv_heartbeat(st, "b", b);
	ck_assert_uint_eq(b->shard_n, 0);
	b->full = false;
	drv_heartbeat(st, "b", b);
	ck_assert_uint_eq(b->shard_n, store_fair_share(b));
	b->full = true; /* and it loses none */
	drv_heartbeat(st, "b", b);
	ck_assert_uint_eq(b->shard_n, store_fair_share(b));
	c->idle = true; /* it takes all free shards, beyond its part */
	drv_heartbeat(st, "c", c);
	ck_assert_uint_eq(c->shard_n, STORE_SHARDS - 100 - b->shard_n);
	ck_assert_uint_eq(c->idle_n, 0); /* other idle workers */
	drv_heartbeat(st, "a", a);
	ck_assert(a->idle_n == 1 && a->living == 3 && a->shard_n == 100);
	a->idle = true;
	drv_heartbeat(st, "a", a);
	drv_heartbeat(st, "b", b);
	ck_assert_uint_eq(b->idle_n, 2);
	a->idle = c->idle = false;
	drv_heartbeat(st, "a", a);
	drv_heartbeat(st, "c", c);
	ck_assert_uint_eq(c->idle_n, 0);
	drv_leave(st, a); /* a worker that has left is not counted as idle */
	c->idle = true;
	drv_heartbeat(st, "c", c);
	drv_leave(st, c);
	drv_heartbeat(st, "b", b);
	ck_assert(b->idle_n == 0 && b->living == 1);
	drv_leave(st, b);
	drv_end(st);
}
END_TEST

/* In real time: heartbeats keep a lease; it ends when its time is over, not before. */
START_TEST(a_lease_runs_out)
{
	struct store *st = drv_fresh(_i);
	int64_t id = drv_feed(st, "https://over.example/feed", 5), heartbeat_ms, heartbeat_wall_ms, old_id;
	struct store_lease *a = drv_join(st, "a", LONG_MS), *b = drv_join(st, "b", LONG_MS);
	struct fw_outcome o = drv_outcome(st, id, &F[0], 9);
	struct store_host h = {.id = o.host_id, .next_ok_ms = 5};
	struct store_commit c = {.outcome = &o, .n = 1, .host = &h, .host_n = 1};
	uint64_t print = drv_print(st);

	c.lease_id = old_id = a->id;
	a->lease_ms = SHORT_MS;
	for (int i = 0;; i++) {
		heartbeat_wall_ms = drv_clock(st);
		heartbeat_ms = fw_mono_ms();
		drv_heartbeat(st, "a", a);
		ck_assert_int_lt(a->safe_until_mono_ms, heartbeat_ms + SHORT_MS + 1);
		if (i == 6) /* longer than a lease */
			break;
		usleep(SHORT_MS * 200);
		drv_heartbeat(st, "b", b);
		if (fw_mono_ms() - heartbeat_ms >= SHORT_MS) /* this machine was busy: the heartbeat came too late */
			break;
		ck_assert_uint_eq(b->shard_n, 0);
	}
	b->late = true; /* it reports that its own lease was over too: then it ends nobody else's */
	usleep(2 * SHORT_MS * 1000);
	drv_heartbeat(st, "b", b);
	ck_assert(b->living == 2 && !b->shard_n);
	b->late = false;
	do {
		usleep(5000);
		drv_heartbeat(st, "b", b);
		ck_assert_int_lt(fw_mono_ms() - heartbeat_ms, 20 * SHORT_MS);
	} while (!b->shard_n);
	FAILS(st->driver->heartbeat(st, "a", a, &drv_err), FW_ESTALE);
	ck_assert_int_ge(fw_mono_ms() - heartbeat_ms, SHORT_MS - 2);
	ck_assert(b->living == 1 && b->shard_n == STORE_SHARDS); /* all of them at once */
	for (int i = 0; i < STORE_SHARDS; i++) /* requests to its hosts were possible until it ended */
		ck_assert(b->shard[i].quiet_since_ms >= heartbeat_wall_ms + a->lease_ms - 2 - SHORT_MS / 10 &&
			b->shard[i].quiet_since_ms <= drv_clock(st));
	FAILS(st->driver->commit(st, &c, &drv_err), FW_ESTALE);
	ck_assert(drv_print(st) == print);
	drv_heartbeat(st, "b", b);
	ck_assert_uint_eq(b->living, 1);
	a->id = 0;
	drv_heartbeat(st, "a", a); /* it joins again */
	ck_assert_int_gt(a->id, FW_MAX(b->id, old_id));
	drv_leave(st, a);
	drv_leave(st, b);
	drv_end(st);
}
END_TEST

/* An expired lease holds until another worker looks: its commits are taken. */
START_TEST(over_and_not_taken)
{
	struct store *st = drv_fresh(_i);
	int64_t id = drv_feed(st, "https://over.example/feed", 5);
	struct store_lease *a = drv_join(st, "a", -1000), *b;
	struct fw_outcome o = drv_outcome(st, id, &F[0], 6);

	/* joining took longer than the lease: the worker does not count as dead */
	ck_assert_uint_eq(a->shard_n, STORE_SHARDS);
	drv_heartbeat(st, "a", a);
	ck_assert_uint_eq(a->shard_n, STORE_SHARDS);
	ck_assert_int_lt(a->safe_until_mono_ms, fw_mono_ms());
	DONE(drv_commit(st, a->id, &o, 1));
	ck_assert(o.rc == 0 && drv_due_of(st, id)->due_at_ms == 6);
	b = drv_join(st, "b", LONG_MS);
	ck_assert(b->shard_n == STORE_SHARDS && b->living == 1);
	o = drv_outcome(st, id, &F[0], 7);
	FAILS(drv_commit(st, a->id, &o, 1), FW_ESTALE);
	FAILS(st->driver->heartbeat(st, "a", a, &drv_err), FW_ESTALE);
	ck_assert(drv_due_of(st, id)->due_at_ms == 6 && drv_visits(st, id) == 1);
	free(a);
	drv_leave(st, b);
	drv_end(st);
}
END_TEST

START_TEST(no_number_twice)
{
	const char *url = drv_url(_i);
	struct store *st = drv_open(_i, url, FW_STORE_CREATE);
	struct store_lease *l;
	int64_t last = 0;

	for (int i = 0; i < 9; i++) {
		l = drv_join(st, "w", i % 3 ? LONG_MS : -1000);
		ck_assert_int_gt(l->id, last);
		ck_assert_uint_eq(l->living, 1); /* whichever worker ended the one before */
		last = l->id;
		if (i % 3 == 1) {
			drv_leave(st, l);
			l = NULL;
		} else if (i % 3 == 2) {
			drv_reap(st, "w", 0);
		}
		free(l);
		if (i == 4 && under_test[_i].shared) {
			drv_end(st);
			st = drv_open(_i, url, 0);
		}
	}
	drv_end(st);
}
END_TEST

START_TEST(leases_that_are_not_there)
{
	struct store *st = drv_fresh(_i);
	struct store_lease *a = drv_join(st, "a", LONG_MS), *none = calloc(1, sizeof(*none));
	int64_t id = drv_feed(st, "https://a.example/", 5);
	struct fw_outcome o = drv_outcome(st, id, &F[0], 9);
	uint64_t print = drv_print(st);

	ck_assert_ptr_nonnull(none);
	none->id = a->id + 1000;
	none->lease_ms = LONG_MS;
	FAILS(st->driver->heartbeat(st, "none", none, &drv_err), FW_ESTALE);
	ck_assert_int_eq(none->id, a->id + 1000);
	FAILS(drv_commit(st, none->id, &o, 1), FW_ESTALE);
	FAILS(drv_commit(st, none->id, NULL, 0), FW_ESTALE);
	DONE(st->driver->release(st,
		&(struct store_release){.lease_id = none->id, .shard = a->shard, .n = 500, .leave = true}, &drv_err));
	drv_reap(st, "nobody", 0);
	drv_give(st, a, 0, 0);
	drv_heartbeat(st, "a", a);
	ck_assert(a->living == 1 && a->shard_n == STORE_SHARDS && drv_print(st) == print);
	free(none);
	drv_leave(st, a);
	drv_end(st);
}
END_TEST

START_TEST(shards_of_others_stay)
{
	struct store *st = drv_fresh(_i);
	struct store_lease *a = drv_join(st, "a", LONG_MS), *b = drv_join(st, "b", LONG_MS), all = *a;

	drv_share(st, "a", a);
	drv_share(st, "b", b);
	for (int i = 0; i < STORE_SHARDS; i++)
		all.shard[i].quiet_since_ms = 55;
	drv_give(st, &all, 0, STORE_SHARDS); /* a held half of them */
	drv_heartbeat(st, "b", b);
	ck_assert_uint_eq(b->shard_n, STORE_SHARDS / 2);
	for (size_t i = 0; i < b->shard_n; i++)
		ck_assert_int_eq(b->shard[i].quiet_since_ms, 0);
	drv_give(st, &all, 0, STORE_SHARDS); /* a repetition */
	drv_heartbeat(st, "a", a);
	ck_assert(a->shard_n == STORE_SHARDS / 2 && a->shard[0].quiet_since_ms == 55);
	drv_leave(st, a);
	drv_leave(st, b);
	drv_end(st);
}
END_TEST

START_TEST(dead_workers_are_reaped)
{
	struct store *st = drv_fresh(_i);
	struct store_lease *a = drv_join(st, "host/1/1", LONG_MS), *b = drv_join(st, "host/1/10", LONG_MS),
			   *again = drv_join(st, "host/1/1", LONG_MS);
	int64_t died_ms;

	drv_share(st, "host/1/1", a);
	drv_share(st, "host/1/10", b);
	drv_share(st, "host/1/1", again);
	died_ms = drv_clock(st);
	drv_reap(st, "host/1/1", 0); /* both workers of that name, and no other */
	FAILS(st->driver->heartbeat(st, "host/1/1", a, &drv_err), FW_ESTALE);
	FAILS(st->driver->heartbeat(st, "host/1/1", again, &drv_err), FW_ESTALE);
	FAILS(drv_commit(st, a->id, NULL, 0), FW_ESTALE);
	drv_heartbeat(st, "host/1/10", b);
	ck_assert(b->living == 1 && b->shard_n == STORE_SHARDS);
	for (size_t i = 0; i < a->shard_n; i++) {
		int64_t quiet_ms = drv_shard(b, a->shard[i].shard)->quiet_since_ms;

		ck_assert(quiet_ms >= died_ms && quiet_ms <= drv_clock(st));
	}
	free(a);
	free(again);
	drv_leave(st, b);
	drv_end(st);
}
END_TEST

START_TEST(killers_are_quarantined)
{
	struct store *st = drv_fresh(_i);
	int64_t id = drv_feed(st, "https://killer.example/feed", 5), paused = drv_feed(st, "https://p.example/", 5);
	int64_t version;
	int shard = store_host_shard(store_feed_host_id(drv_find(st, id)));
	struct store_lease *l = drv_join(st, "w", LONG_MS);
	struct fw_outcome o;

	ck_assert_int_eq(FW_STORE_CRASH_MAX, 2);
	drv_reap(st, "host/9/9", id); /* that worker may hold nothing any more */
	ck_assert(drv_find(st, id)->crash_n == 1 && drv_find(st, id)->status == FW_FEED_ACTIVE);
	o = drv_outcome(st, id, &F[0], 10); /* a successful visit ends the series of crashes */
	F[0].crash_n = 0;
	DONE(drv_commit(st, l->id, &o, 1));
	drv_reap(st, "host/9/9", id);
	ck_assert(drv_find(st, id)->crash_n == 1 && drv_due_of(st, id));
	version = drv_version(st, l, shard);
	o = drv_outcome(st, id, &F[0], 20); /* a worker has it in flight */
	drv_reap(st, "host/9/9", id);
	ck_assert(drv_find(st, id)->crash_n == 2 && drv_find(st, id)->status == FW_FEED_QUARANTINED);
	ck_assert_ptr_null(drv_due_of(st, id));
	ck_assert_int_gt(drv_version(st, l, shard), version); /* the owner of the shard sees it */
	DONE(drv_commit(st, l->id, &o, 1));
	ck_assert_int_eq(drv_find(st, id)->status, FW_FEED_QUARANTINED); /* the feed stays quarantined */
	DONE(st->driver->feed_set(
		st, &(struct fw_feed){.id = paused, .status = FW_FEED_PAUSED}, FW_SET_STATUS, &drv_err));
	for (int i = 0; i < 3; i++)
		drv_reap(st, "host/9/9", paused);
	ck_assert(drv_find(st, paused)->crash_n == 3 && drv_find(st, paused)->status == FW_FEED_PAUSED);
	DONE(st->driver->feed_drop(st, paused, 0, &drv_err));
	drv_reap(st, "host/9/9", paused); /* removed meanwhile: nothing to do */
	/* the user lets the feed be tried again */
	DONE(st->driver->feed_set(st, &(struct fw_feed){.id = id}, FW_SET_STATUS | FW_SET_CRASH, &drv_err));
	ck_assert(drv_find(st, id)->crash_n == 0 && drv_due_of(st, id));
	drv_leave(st, l);
	drv_end(st);
}
END_TEST

/* ---- versions -------------------------------------------------------------------------------- */

static int64_t versions[STORE_SHARDS];

/* The versions of exactly these shards have risen since the last call. */
static void risen(struct store *st, struct store_lease *l, const int *shard, size_t n, const char *what)
{
	drv_heartbeat(st, "w", l);
	ck_assert_uint_eq(l->shard_n, STORE_SHARDS);
	for (int i = 0; i < STORE_SHARDS; i++) {
		int64_t was = versions[i];
		bool wanted = false;

		for (size_t k = 0; k < n; k++)
			wanted = wanted || shard[k] == i;
		versions[i] = l->shard[i].version;
		ck_assert_msg(wanted ? versions[i] > was : versions[i] == was, "%s: shard %d went from %lld to %lld",
			what, i, (long long)was, (long long)versions[i]);
	}
}

START_TEST(changes_raise_versions)
{
	static const int64_t unknown[] = {4711, INT64_MAX, -1, -4711, INT64_MIN};
	struct store *st = drv_fresh(_i);
	struct store_lease *l = drv_join(st, "w", LONG_MS);
	int64_t id[3], other;
	int at, at_other, to;
	struct fw_outcome o;
	struct fw_feed f = {0};

	for (int i = 0; i < STORE_SHARDS; i++)
		versions[i] = l->shard[i].version;
	at = store_host_shard(store_host_id(FW_STR("one.example")));
	at_other = store_host_shard(store_host_id(FW_STR("other.example")));
	to = store_host_shard(store_host_id(FW_STR("new.example")));
	ck_assert(at != at_other && at != to && at_other != to);
	drv_feeds(st, "one.example", 3, 5, id);
	risen(st, l, &at, 1, "feeds that are loaded");
	other = drv_feed(st, "https://other.example/", 5);
	risen(st, l, &at_other, 1, "a feed that is loaded");
	f.id = id[0];
	f.due_at_ms = FW_DUE_FIRST;
	DONE(st->driver->feed_set(st, &f, FW_SET_DUE, &drv_err));
	risen(st, l, &at, 1, "fetch-now");
	f.status = FW_FEED_PAUSED;
	DONE(st->driver->feed_set(st, &f, FW_SET_STATUS, &drv_err));
	risen(st, l, &at, 1, "a pause");
	o = drv_outcome(st, id[1], &F[0], 50);
	DONE(drv_commit(st, l->id, &o, 1));
	risen(st, l, NULL, 0, "a commit of its owner");
	o = drv_push(id[1], &F[0], NULL, 0);
	DONE(drv_commit(st, 0, &o, 1));
	risen(st, l, NULL, 0, "a push");
	o = drv_outcome(st, id[1], &F[0], 60);
	F[0].url = FW_STR("https://new.example/feed");
	o.groups = FW_GROUP_URL;
	DONE(drv_commit(st, l->id, &o, 1));
	risen(st, l, (int[]){at, to}, 2, "a move");
	DONE(st->driver->feed_drop(st, id[2], 0, &drv_err));
	risen(st, l, &at, 1, "a removal");
	DONE(st->driver->feed_drop(st, other, id[0], &drv_err));
	drv_heartbeat(st, "w", l);
	/* a merge: at least where a feed was removed */
	ck_assert_int_gt(l->shard[at_other].version, versions[at_other]);
	versions[at] = l->shard[at].version;
	versions[at_other] = l->shard[at_other].version;
	for (size_t i = 0; i < FW_N(unknown); i++)
		drv_is_unknown(st, unknown[i], id[0]);
	risen(st, l, NULL, 0, "what failed");
	drv_leave(st, l);
	drv_end(st);
}
END_TEST

/* ---- due reads ------------------------------------------------------------------------------- */

static int stop_due(void *ctx, const struct store_due *due)
{
	(void)due;
	++*(int *)ctx;
	return 7;
}

static int stop_host(void *ctx, const struct store_host *host)
{
	(void)host;
	*(int *)ctx += 100;
	return 8;
}

static void status_set(struct store *st, int64_t id, enum fw_feed_status status)
{
	DONE(st->driver->feed_set(st, &(struct fw_feed){.id = id, .status = status}, FW_SET_STATUS, &drv_err));
}

struct range {
	int first, last;
	size_t n;
};

static int range_due(void *ctx, const struct store_due *due)
{
	struct range *r = ctx;

	ck_assert(due->shard >= r->first && due->shard <= r->last);
	r->n++;
	return 0;
}

/* A read of several shards returns the same as reads of one. */
static void ranges_are(struct store *st, size_t n)
{
	static const int END[] = {1, 2, 40, 500, 501, STORE_SHARDS};
	struct range r = {0, 0, 0};

	for (size_t i = 0; i < FW_N(END); r.first = END[i++]) {
		r.last = END[i] - 1;
		DONE(st->driver->due(st,
			&(struct store_due_query){.shard = r.first,
				.last_shard = r.last,
				.until_ms = INT64_MAX,
				.due = range_due,
				.ctx = &r},
			&drv_err));
	}
	ck_assert_uint_eq(r.n, n);
}

START_TEST(due_feeds)
{
	struct store *st = drv_fresh(_i);
	int64_t id[40], next_ms = INT64_MAX / 4;
	char url[60];
	const struct drv_due *d;
	const struct store_due *one;
	struct store_lease *l = drv_join(st, "w", LONG_MS);
	struct fw_outcome o;
	struct store_host h;
	int n = 0;

	for (int i = 0; i < 40; i++) { /* two feeds of each host */
		(void)fw_snprintf(url, sizeof(url), "https://host%d.example/%d", i / 2, i);
		id[i] = drv_feed(st, url, 100 + i);
	}
	d = drv_due(st, -1, 119);
	ck_assert_uint_eq(d->n, 20);
	for (size_t i = 0; i < d->n; i++) {
		int at = (int)d->due[i].due_at_ms - 100;

		ck_assert(d->due[i].due_at_ms <= 119 && d->due[i].feed_id == id[at]);
		ck_assert(d->due[i].host_id == store_feed_host_id(drv_find(st, id[at])));
		ck_assert(d->due[i].shard == store_host_shard(d->due[i].host_id));
		ck_assert(!d->due[i].expect_us && !d->due[i].expect_dev_us && !d->due[i].last_visit_ms);
		if (i && d->due[i].shard != d->due[i - 1].shard) { /* shard by shard */
			for (size_t k = 0; k < i; k++)
				ck_assert_int_ne(d->due[k].shard, d->due[i].shard);
		}
	}
	ck_assert_uint_eq(drv_due(st, -1, 99)->n, 0);
	ck_assert_uint_eq(drv_due(st, -1, INT64_MAX)->n, 40);
	ranges_are(st, 40);
	one = drv_due_of(st, id[0]);
	d = drv_due(st, one->shard, INT64_MAX);
	ck_assert_uint_ge(d->n, 2);
	for (size_t i = 0; i < d->n; i++)
		ck_assert_int_eq(d->due[i].shard, d->due[0].shard);
	ck_assert_uint_eq(drv_due(st, d->due[0].shard, 99)->n, 0);
	/* the due read returns what the feed's last commit stored */
	o = drv_outcome(st, id[3], &F[0], next_ms);
	F[0].expect_us = 1234567890123;
	F[0].expect_dev_us = 77;
	DONE(drv_commit(st, l->id, &o, 1));
	one = drv_due_of(st, id[3]);
	ck_assert(one->due_at_ms == next_ms && one->expect_us == 1234567890123 && one->expect_dev_us == 77 &&
		one->last_visit_ms == F[0].last_visit_ms);
	status_set(st, id[4], FW_FEED_PAUSED); /* only active feeds */
	status_set(st, id[5], FW_FEED_GONE);
	status_set(st, id[6], FW_FEED_QUARANTINED);
	ck_assert(!drv_due_of(st, id[4]) && !drv_due_of(st, id[5]) && !drv_due_of(st, id[6]));
	ck_assert_uint_eq(drv_due(st, -1, INT64_MAX)->n, 37);
	status_set(st, id[4], FW_FEED_ACTIVE);
	ck_assert_int_eq(drv_due_of(st, id[4])->due_at_ms, 104); /* unchanged */
	/* each callback is optional, and each can end the list */
	h = (struct store_host){.id = store_feed_host_id(drv_find(st, id[0])), .next_ok_ms = 1};
	DONE(st->driver->commit(st, &(struct store_commit){.lease_id = l->id, .host = &h, .host_n = 1}, &drv_err));
	ck_assert_int_eq(
		st->driver->due(st,
			&(struct store_due_query){.shard = -1, .until_ms = INT64_MAX, .due = stop_due, .ctx = &n},
			&drv_err),
		7);
	ck_assert_int_eq(n, 1);
	ck_assert_int_eq(st->driver->due(st,
				 &(struct store_due_query){.shard = store_host_shard(h.id),
					 .until_ms = INT64_MAX,
					 .due = stop_due,
					 .host = stop_host,
					 .ctx = &n},
				 &drv_err),
		8);
	ck_assert_int_eq(n, 101);
	DONE(st->driver->due(st, &(struct store_due_query){.shard = -1, .until_ms = INT64_MAX}, &drv_err));
	DONE(st->driver->feed_drop(st, id[0], 0, &drv_err)); /* the store is usable as before */
	drv_leave(st, l);
	drv_end(st);
}
END_TEST

/* A host with many feeds, all in one shard: more rows than a page has. */
START_TEST(many_feeds_of_one_host)
{
	enum { MANY = 3000 };
	struct store *st = drv_fresh(_i);
	int64_t *id = calloc(MANY, sizeof(*id)), sum = 0;
	const struct drv_due *d;

	ck_assert_ptr_nonnull(id);
	drv_feeds(st, "large.example", MANY, 5, id);
	d = drv_due(st, store_host_shard(store_host_id(FW_STR("large.example"))), 5);
	ck_assert_uint_eq(d->n, MANY);
	for (int i = 0; i < MANY; i++)
		sum += d->due[i].feed_id - id[i];
	ck_assert_int_eq(sum, 0);
	ck_assert_uint_eq(drv_due(st, -1, 5)->n, MANY);
	free(id);
	drv_end(st);
}
END_TEST

START_TEST(hosts_outlive_their_owner)
{
	struct store *st = drv_fresh(_i);
	struct store_lease *l = drv_join(st, "w", LONG_MS);
	struct store_host h[3] = {{.id = store_host_id(FW_STR("a.example")),
					  .next_ok_ms = 10,
					  .cooldown_until_ms = 20,
					  .learned_delay_ms = 30},
		{.id = store_host_id(FW_STR("b.example")),
			.next_ok_ms = INT64_MAX,
			.cooldown_until_ms = NOW,
			.learned_delay_ms = 1}};
	struct store_commit c = {.lease_id = l->id, .host = h, .host_n = 2};
	const struct store_host *got;
	size_t all;

	h[2] = (struct store_host){
		.id = h[0].id + STORE_SHARDS * INT64_C(8), .learned_delay_ms = 3}; /* in the same shard */
	DONE(st->driver->commit(st, &c, &drv_err));
	got = drv_host(st, h[1].id);
	ck_assert(got && got->next_ok_ms == INT64_MAX && got->cooldown_until_ms == NOW && got->learned_delay_ms == 1);
	h[0] = (struct store_host){.id = h[0].id, .next_ok_ms = 5, .cooldown_until_ms = 0, .learned_delay_ms = 15};
	c.host_n = 3;
	DONE(st->driver->commit(st, &c, &drv_err)); /* the owner's value is taken as it is, earlier or later */
	got = drv_host(st, h[0].id);
	ck_assert(got && got->next_ok_ms == 5 && got->cooldown_until_ms == 0 && got->learned_delay_ms == 15);
	ck_assert_int_eq(drv_host(st, h[2].id)->learned_delay_ms, 3);
	all = drv_due(st, -1, 0)->host_n;
	ck_assert_uint_eq(all, 3);
	drv_leave(st, l);
	l = drv_join(st, "w", LONG_MS);
	ck_assert_uint_eq(drv_due(st, -1, 0)->host_n, 3);
	/* a host of another shard: the later times count, the learned delay stays */
	c.lease_id = l->id;
	h[0] = (struct store_host){
		.id = h[0].id, .next_ok_ms = 50, .cooldown_until_ms = -1, .learned_delay_ms = 99, .others = true};
	c.host_n = 1;
	DONE(st->driver->commit(st, &c, &drv_err));
	got = drv_host(st, h[0].id);
	ck_assert(got->next_ok_ms == 50 && got->cooldown_until_ms == 0 && got->learned_delay_ms == 15);
	h[0].next_ok_ms = 40;
	h[0].cooldown_until_ms = 60;
	DONE(st->driver->commit(st, &c, &drv_err));
	got = drv_host(st, h[0].id);
	ck_assert(got->next_ok_ms == 50 && got->cooldown_until_ms == 60 && got->learned_delay_ms == 15);
	h[0] = (struct store_host){.id = store_host_id(FW_STR("new.example")), .next_ok_ms = 4, .others = true};
	DONE(st->driver->commit(st, &c, &drv_err)); /* a host that was not known */
	ck_assert_int_eq(drv_host(st, h[0].id)->next_ok_ms, 4);
	drv_leave(st, l);
	drv_end(st);
}
END_TEST

/* ---- commits --------------------------------------------------------------------------------- */

START_TEST(fenced)
{
	struct store *st = drv_fresh(_i);
	int64_t one = drv_feed(st, "https://one.example/", 5), two = drv_feed(st, "https://two.example/", 5);
	struct store_lease *a = drv_join(st, "a", LONG_MS), *b = drv_join(st, "b", LONG_MS);
	struct fw_entry_row e = entry(1, 1, "one", "text");
	struct fw_outcome o[2] = {drv_outcome(st, one, &F[0], 9), drv_outcome(st, two, &F[1], 9)};
	struct store_host h = {.id = o[0].host_id, .next_ok_ms = 5, .learned_delay_ms = 7};
	struct store_commit c = {.lease_id = a->id, .outcome = o, .n = 2, .host = &h, .host_n = 1};
	uint64_t print;

	F[0].url = FW_STR("https://moved.example/");
	F[0].title = F[1].title = FW_STR("a title");
	F[1].status = FW_FEED_GONE;
	o[0].groups = FW_GROUP_URL | FW_GROUP_META | FW_GROUP_ERROR;
	o[1].groups = FW_GROUP_META | FW_GROUP_REDIRECT | FW_GROUP_VALIDATORS | FW_GROUP_RHYTHM;
	o[0].entries = o[1].entries = &e;
	o[0].entry_n = o[1].entry_n = 1;
	print = drv_print(st);
	drv_leave(st, a);
	FAILS(st->driver->commit(st, &c, &drv_err), FW_ESTALE);
	ck_assert_msg(drv_print(st) == print, "a commit without a lease wrote something");
	c.n = 0;
	FAILS(st->driver->commit(st, &c, &drv_err), FW_ESTALE);
	ck_assert(drv_print(st) == print && !drv_host(st, h.id));
	drv_heartbeat(st, "b", b);
	c.n = 2;
	c.lease_id = b->id;
	DONE(st->driver->commit(st, &c, &drv_err)); /* the same commit by the next owner */
	ck_assert(!o[0].rc && !o[1].rc && o[0].visit.new_n == 1 && o[1].visit.new_n == 1);
	ck_assert(drv_print(st) != print && drv_host(st, h.id)->learned_delay_ms == 7);
	drv_leave(st, b);
	drv_end(st);
}
END_TEST

START_TEST(changed_while_in_flight)
{
	struct store *st = drv_fresh(_i);
	int64_t id[5];
	struct store_lease *l = drv_join(st, "w", LONG_MS);
	struct fw_entry_row e = entry(1, 1, "one", "text");
	struct fw_outcome o[5];
	int64_t gone_entries;

	for (int i = 0; i < 5; i++) {
		char url[60];

		(void)fw_snprintf(url, sizeof(url), "https://host%d.example/", i);
		id[i] = drv_feed(st, url, 100 + i);
		o[i] = drv_outcome(st, id[i], &F[i], 5000);
		o[i].entries = &e;
		o[i].entry_n = 1;
	}
	DONE(st->driver->feed_set(st, &(struct fw_feed){.id = id[0], .due_at_ms = FW_DUE_FIRST}, FW_SET_DUE, &drv_err));
	DONE(st->driver->feed_drop(st, id[1], 0, &drv_err));
	status_set(st, id[2], FW_FEED_PAUSED);
	F[2].status = FW_FEED_ACTIVE;
	status_set(st, id[3], FW_FEED_QUARANTINED);
	F[3].status = FW_FEED_GONE;
	F[4].status = FW_FEED_GONE;
	DONE(drv_commit(st, l->id, o, 5));
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(o[i].rc, i == 1 ? FW_ENOTFOUND : 0);
		ck_assert_uint_eq(o[i].visit.new_n, i != 1);
	}
	ck_assert_int_eq(drv_due_of(st, id[0])->due_at_ms, FW_DUE_FIRST); /* the user's request to poll now stays */
	ck_assert(drv_find(st, id[0])->last_visit_ms == F[0].last_visit_ms && drv_visits(st, id[0]) == 1);
	gone_entries = drv_entries(st, id[1]);
	ck_assert(!drv_is(st, id[1]) && !drv_visits(st, id[1]) && !gone_entries);
	ck_assert(drv_find(st, id[2])->status == FW_FEED_PAUSED && drv_find(st, id[2])->due_at_ms == 5000);
	ck_assert_int_eq(drv_find(st, id[2])->http_status, 200);
	ck_assert_int_eq(drv_find(st, id[3])->status, FW_FEED_QUARANTINED);
	ck_assert_int_eq(drv_find(st, id[4])->status, FW_FEED_GONE); /* gone: its server answered 410 */
	ck_assert(!drv_due_of(st, id[2]) && !drv_due_of(st, id[3]) && !drv_due_of(st, id[4]));
	o[0] = drv_outcome(st, id[0], &F[0], 6000); /* the visit that was requested */
	DONE(drv_commit(st, l->id, o, 1));
	ck_assert_int_eq(drv_due_of(st, id[0])->due_at_ms, 6000);
	o[0] = drv_outcome(st, id[0], &F[0], 7000);
	DONE(st->driver->feed_drop(st, id[0], id[4], &drv_err)); /* merged while it was in flight */
	DONE(drv_commit(st, l->id, o, 1));
	ck_assert_int_eq(o[0].rc, FW_ENOTFOUND);
	ck_assert_uint_eq(drv_due(st, -1, INT64_MAX)->n, 0);
	drv_leave(st, l);
	drv_end(st);
}
END_TEST

/* No request was made: the commit writes only the state. */
START_TEST(state_without_a_visit)
{
	struct store *st = drv_fresh(_i);
	int64_t id = drv_feed(st, "https://a.example/", 5);
	struct store_lease *l = drv_join(st, "w", LONG_MS);
	struct fw_outcome o = drv_outcome(st, id, &F[0], 50);
	struct fw_feed set;

	DONE(drv_commit(st, l->id, &o, 1));
	F[0].due_at_ms = 60;
	F[0].why = FW_STR("postponed");
	o = (struct fw_outcome){.feed_id = id, .host_id = o.host_id, .was_due_ms = 50, .feed = &F[0]};
	ck_assert_int_eq(o.visit.kind, FW_VISIT_NONE);
	DONE(drv_commit(st, l->id, &o, 1)); /* last_visit_ms is unchanged, which does not make it a repetition here */
	ck_assert(o.rc == 0 && drv_due_of(st, id)->due_at_ms == 60 && drv_visits(st, id) == 1);
	ck_assert(fw_str_eq(drv_find(st, id)->why, FW_STR("postponed")));
	/* a due time from outside has its own reason, which a commit after it leaves */
	set = (struct fw_feed){.id = id, .due_at_ms = 70, .why = FW_STR("asked\tfor %s")};
	DONE(st->driver->feed_set(st, &set, FW_SET_DUE, &drv_err));
	o.was_due_ms = 60;
	DONE(drv_commit(st, l->id, &o, 1));
	ck_assert(drv_due_of(st, id)->due_at_ms == 70 && fw_str_eq(drv_find(st, id)->why, set.why));
	set = (struct fw_feed){.id = id, .due_at_ms = 80};
	DONE(st->driver->feed_set(st, &set, FW_SET_DUE | FW_SET_CRASH, &drv_err));
	ck_assert(drv_due_of(st, id)->due_at_ms == 80 && fw_str_eq(drv_find(st, id)->why, FW_STR("asked\tfor %s")));
	drv_leave(st, l);
	drv_end(st);
}
END_TEST

START_TEST(addresses_are_adopted)
{
	struct store *st = drv_fresh(_i);
	int64_t id[4];
	struct store_lease *l = drv_join(st, "w", LONG_MS);
	struct fw_entry_row e = entry(1, 1, "one", "text");
	struct fw_outcome o[4];

	for (int i = 0; i < 4; i++) {
		char url[60];

		(void)fw_snprintf(url, sizeof(url), "https://host%d.example/", i);
		id[i] = drv_feed(st, url, 100 + i);
	}
	o[0] = drv_outcome(st, id[0], &F[0], 50);
	F[0].url = FW_STR("https://host1.example/"); /* the URL is another feed's: the rest is written */
	F[0].etag = FW_STR("\"\xff\"");
	F[0].title = FW_STR("told");
	o[0].groups = FW_GROUP_URL | FW_GROUP_VALIDATORS | FW_GROUP_META;
	o[0].entries = &e;
	o[0].entry_n = 1;
	o[1] = drv_outcome(st, id[1], &F[1], 50);
	F[1].url = FW_STR("https://host1.example/"); /* its own URL */
	o[1].groups = FW_GROUP_URL;
	o[2] = drv_outcome(st, id[2], &F[2], 50);
	o[3] = drv_outcome(st, id[3], &F[3], 50);
	F[2].url = F[3].url = FW_STR("https://new.example/"); /* two feeds want one URL: one gets it */
	o[2].groups = o[3].groups = FW_GROUP_URL;
	DONE(drv_commit(st, l->id, o, 4));
	ck_assert_int_eq(o[0].rc, FW_EINVAL);
	ck_assert_int_eq(o[1].rc, 0);
	ck_assert(o[2].rc + o[3].rc == FW_EINVAL && (!o[2].rc || !o[3].rc));
	ck_assert(fw_str_eq(drv_find(st, id[0])->url, FW_STR("https://host0.example/")));
	ck_assert(fw_str_eq(drv_find(st, id[0])->etag, FW_STR("\"\xff\"")) &&
		fw_str_eq(drv_find(st, id[0])->title, FW_STR("told")));
	ck_assert(drv_entries(st, id[0]) == 1 && o[0].visit.new_n == 1);
	for (int i = 0; i < 4; i++) {
		const struct fw_feed *f = drv_find(st, id[i]);

		ck_assert(f->due_at_ms == 50 && drv_visits(st, id[i]) == 1);
		ck_assert_int_eq(drv_due_of(st, id[i])->host_id, store_feed_host_id(f));
		ck_assert_msg(i < 2 || fw_str_eq(f->url, FW_STR("https://new.example/")) == !o[i].rc, "feed %d: %.*s",
			i, FW_STR_ARG(f->url));
	}
	drv_leave(st, l);
	drv_end(st);
}
END_TEST

/* A feed moves to another URL and host key, and back: all its rows move with it. */
START_TEST(feeds_move)
{
	static const char *const TO[] = {"https://two.example/", "https://three.example/", "https://one.example/"};
	struct store *st = drv_fresh(_i);
	int64_t id = drv_feed(st, "https://one.example/", 5), first, host_id;
	struct store_lease *l = drv_join(st, "w", LONG_MS);
	struct fw_entry_row e;
	struct fw_outcome o;
	const struct store_due *due;

	first = store_feed_host_id(drv_find(st, id));
	for (int i = 0; i < 3; i++) {
		struct store_host h = {.next_ok_ms = 1000 + i, .others = true};
		struct store_commit c = {.lease_id = l->id, .outcome = &o, .n = 1, .host = &h, .host_n = 1};

		o = drv_outcome(st, id, &F[0], 50 + i);
		e = entry(i, 1, "one", "text");
		o.entries = &e;
		o.entry_n = 1;
		F[0].url = fw_str(TO[i]);
		o.groups = FW_GROUP_URL;
		h.id = store_feed_host_id(&F[0]);
		DONE(st->driver->commit(st, &c, &drv_err));
		due = drv_due_of(st, id);
		ck_assert(!o.rc && due && due->host_id == h.id && due->shard == store_host_shard(h.id));
		ck_assert_int_eq(due->due_at_ms, 50 + i);
		ck_assert_uint_eq(drv_due(st, -1, INT64_MAX)->n, 1); /* no row is left behind */
		ck_assert_int_eq(drv_host(st, h.id)->next_ok_ms, 1000 + i);
		ck_assert(drv_visits(st, id) == i + 1 && drv_entries(st, id) == i + 1);
	}
	o = drv_outcome(st, id, &F[0], 60);
	F[0].host_key = FW_STR("[203.0.113.7]");
	o.groups = FW_GROUP_HOST;
	DONE(drv_commit(st, l->id, &o, 1));
	host_id = store_host_id(FW_STR("[203.0.113.7]"));
	ck_assert(drv_due_of(st, id)->host_id == host_id && drv_due_of(st, id)->due_at_ms == 60);
	o = drv_outcome(st, id, &F[0], 70);
	ck_assert_int_eq(o.host_id, host_id);
	F[0].host_key = FW_STR_NONE;
	o.groups = FW_GROUP_HOST;
	DONE(drv_commit(st, l->id, &o, 1));
	ck_assert_int_eq(drv_due_of(st, id)->host_id, first);
	ck_assert_int_eq(drv_visits(st, id), 5);
	o = drv_outcome(st, id, &F[0], 80); /* it moved while a poll of it was requested */
	DONE(st->driver->feed_set(st, &(struct fw_feed){.id = id, .due_at_ms = FW_DUE_FIRST}, FW_SET_DUE, &drv_err));
	F[0].url = fw_str(TO[0]);
	o.groups = FW_GROUP_URL;
	DONE(drv_commit(st, l->id, &o, 1));
	ck_assert(drv_due_of(st, id)->due_at_ms == FW_DUE_FIRST && drv_due_of(st, id)->host_id != first);
	drv_leave(st, l);
	drv_end(st);
}
END_TEST

/* The response to a commit was lost, and the same commit is sent again. */
START_TEST(repeated_commits)
{
	struct store *st = drv_fresh(_i);
	int64_t id[2] = {drv_feed(st, "https://a.example/", 5), drv_feed(st, "https://b.example/", 5)};
	struct store_lease *l = drv_join(st, "w", LONG_MS);
	struct fw_entry_row e[2] = {entry(1, 1, "one", "text"), entry(2, 1, "two", "text")};
	struct fw_entry_row other = entry(3, 1, "three", "text");
	struct fw_outcome o[2] = {drv_outcome(st, id[0], &F[0], 9000), drv_outcome(st, id[1], &F[1], 5)}, again[2];
	struct store_host h = {.id = o[0].host_id, .next_ok_ms = 5, .learned_delay_ms = 7};
	struct store_commit c = {.lease_id = l->id, .outcome = o, .n = 2, .host = &h, .host_n = 1};
	struct fw_feed pushed = {0};
	uint64_t print;

	o[0].entries = o[1].entries = e;
	o[0].entry_n = o[1].entry_n = 2;
	F[1].url = FW_STR("https://new.example/");
	o[1].groups = FW_GROUP_URL;
	memcpy(again, o, sizeof(o));
	DONE(st->driver->commit(st, &c, &drv_err));
	ck_assert(o[0].visit.new_n == 2 && o[1].visit.new_n == 2);
	print = drv_print(st);
	c.outcome = again;
	c.n = 1;
	DONE(st->driver->commit(st, &c, &drv_err));
	ck_assert(again[0].rc == 0 && drv_print(st) == print);
	DONE(st->driver->feed_set(st, &(struct fw_feed){.id = id[0], .due_at_ms = FW_DUE_FIRST}, FW_SET_DUE, &drv_err));
	DONE(st->driver->commit(st, &c, &drv_err)); /* and a poll requested since then stays */
	ck_assert(drv_due_of(st, id[0])->due_at_ms == FW_DUE_FIRST && drv_visits(st, id[0]) == 1);
	ck_assert_int_eq(drv_entries(st, 0), 4);
	o[0] = again[0] = drv_push(id[0], &pushed, e, 2);
	DONE(drv_commit(st, 0, o, 1));
	print = drv_print(st);
	DONE(drv_commit(st, 0, again, 1));
	ck_assert(!again[0].rc && drv_print(st) == print);
	again[0].entries = &other; /* a different commit with the same time is not a repetition */
	again[0].entry_n = 1;
	again[0].visit.new_n = 0;
	DONE(drv_commit(st, 0, again, 1));
	ck_assert(
		!again[0].rc && again[0].visit.new_n == 1 && drv_entries(st, id[0]) == 3 && drv_visits(st, id[0]) == 3);
	drv_leave(st, l);
	drv_end(st);
}
END_TEST

/* ---- pushes ---------------------------------------------------------------------------------- */

START_TEST(pushes_need_no_lease)
{
	struct store *st = drv_fresh(_i);
	int64_t id = drv_feed(st, "https://pushed.example/", 5), gone = drv_feed(st, "https://gone.example/", 5),
		paused = drv_feed(st, "https://paused.example/", 6);
	struct fw_entry_row e[3] = {
		entry(1, 1, "one", "text"), entry(2, 1, "two", "text"), entry(3, 1, "three", "text")};
	struct fw_feed f = {.due_at_ms = 99999,
		.status = FW_FEED_GONE,
		.title = FW_STR("told"),
		.last_visit_ms = 7,
		.why = FW_STR("pushed"),
		.fail_n = 9,
		.crash_n = 9,
		.http_status = 500,
		.expect_us = 4};
	struct fw_outcome o[3];
	int64_t begin_ms = drv_clock(st), new_ms;

	status_set(st, paused, FW_FEED_PAUSED);
	DONE(st->driver->feed_drop(st, gone, 0, &drv_err));
	o[0] = drv_push(id, &f, e, 2);
	o[1] = drv_push(gone, &f, e, 2);
	o[2] = drv_push(paused, &f, e, 3);
	o[0].groups = FW_GROUP_META;
	DONE(drv_commit(st, 0, o, 3));
	ck_assert(!o[0].rc && o[1].rc == FW_ENOTFOUND && !o[2].rc);
	ck_assert(o[0].visit.new_n == 2 && o[2].visit.new_n == 3);
	f = *drv_find(st, id);
	ck_assert(f.due_at_ms == 5 && f.status == FW_FEED_ACTIVE && !f.last_visit_ms && !f.why.len && !f.fail_n &&
		!f.crash_n && !f.http_status && !f.expect_us && f.entry_n == 2);
	ck_assert(fw_str_eq(f.title, FW_STR("told")));
	new_ms = f.last_new_ms;
	ck_assert(new_ms >= begin_ms && new_ms <= drv_clock(st));
	ck_assert(drv_find(st, paused)->status == FW_FEED_PAUSED && drv_find(st, paused)->due_at_ms == 6 &&
		drv_entries(st, paused) == 3 && !drv_find(st, paused)->title.len);
	ck_assert(!drv_visits(st, gone) && !drv_entries(st, gone) && drv_visits(st, id) == 1);
	usleep(2000);
	o[0] = drv_push(id, &f, e, 2); /* no entry is new */
	DONE(drv_commit(st, 0, o, 1));
	ck_assert(!o[0].visit.new_n && drv_find(st, id)->last_new_ms == new_ms && drv_visits(st, id) == 2);
	o[0] = drv_push(id, &f, e, 3);
	DONE(drv_commit(st, 0, o, 1));
	ck_assert(o[0].visit.new_n == 1 && drv_find(st, id)->last_new_ms > new_ms);
	drv_end(st);
}
END_TEST

/* The first visit of a new address needs no lease, and is stored once. */
START_TEST(first_visits_need_no_lease)
{
	struct store *st = drv_fresh(_i);
	int64_t id = drv_feed(st, "https://first.example/", 5);
	struct store_lease *l = drv_join(st, "w", LONG_MS);
	int shard = drv_due_of(st, id)->shard;
	int64_t version = drv_version(st, l, shard);
	struct fw_entry_row e[3] = {
		entry(1, 1, "one", "text"), entry(2, 1, "two", "text"), entry(3, 1, "three", "text")};
	struct fw_feed f, later;
	struct fw_outcome o = drv_outcome(st, id, &f, 7000), second;

	f.title = FW_STR("told");
	f.etag = FW_STR("\"1\"");
	o.groups = FW_GROUP_META | FW_GROUP_VALIDATORS;
	o.entries = e;
	o.entry_n = 2;
	for (int times = 0; times < 2; times++) { /* the second time: the response to the first was lost */
		struct fw_outcome again = o;

		DONE(drv_commit(st, 0, &again, 1));
		ck_assert(!again.rc && again.visit.new_n == (times ? 0 : 2));
		later = *drv_find(st, id);
		ck_assert(later.due_at_ms == 7000 && later.last_visit_ms == f.last_visit_ms && later.entry_n == 2 &&
			later.last_kind == FW_VISIT_OK);
		ck_assert(fw_str_eq(later.title, f.title) && fw_str_eq(later.etag, f.etag) &&
			fw_str_eq(later.why, f.why));
		ck_assert_int_eq(drv_visits(st, id), 1);
	}
	ck_assert_int_gt(drv_version(st, l, shard), version); /* its owner reads it again */
	second = drv_outcome(st, id, &f, 8000);               /* it was visited meanwhile: this becomes a push */
	f.title = FW_STR("told anew");
	f.language = FW_STR("en"); /* which was absent so far */
	f.etag = FW_STR("\"2\"");
	second.groups = FW_GROUP_META | FW_GROUP_VALIDATORS;
	second.entries = e + 1;
	second.entry_n = 2;
	DONE(drv_commit(st, 0, &second, 1));
	ck_assert(!second.rc && second.visit.new_n == 1);
	f = *drv_find(st, id);
	ck_assert(f.due_at_ms == 7000 && f.last_visit_ms == later.last_visit_ms && f.entry_n == 3);
	ck_assert(fw_str_eq(f.title, FW_STR("told")) && fw_str_eq(f.language, FW_STR("en")) &&
		fw_str_eq(f.etag, FW_STR("\"1\"")));
	ck_assert_int_eq(drv_visits(st, id), 2);
	drv_leave(st, l);
	drv_end(st);
}
END_TEST

/*
 * An entry is stored once, whether it comes once or twice, in one document or two, by visit or
 * push.
 */
START_TEST(entries_are_unique)
{
	struct store *st = drv_fresh(_i);
	int64_t id = drv_feed(st, "https://a.example/", 5), other = drv_feed(st, "https://b.example/", 5);
	struct store_lease *l = drv_join(st, "w", LONG_MS);
	struct fw_entry_row e[4] = {entry(1, 1, "first", "x"), entry(1, 2, "second", "x"), entry(2, 1, "two", "x"),
		entry(3, 1, "three", "x")};
	struct fw_feed pushed = {0};
	struct fw_outcome o = drv_outcome(st, id, &F[0], 50), p[3];

	o.entries = e;
	o.entry_n = 3; /* of two entries with one key the first counts */
	DONE(drv_commit(st, l->id, &o, 1));
	ck_assert(o.visit.new_n == 2 && !o.visit.changed_n);
	p[0] = drv_push(id, &pushed, e + 2, 2); /* one of them is known from the visit */
	p[1] = drv_push(other, &pushed, e, 1);  /* keys of another feed are independent */
	DONE(drv_commit(st, 0, p, 2));
	ck_assert(p[0].visit.new_n == 1 && p[1].visit.new_n == 1);
	p[0] = drv_push(id, &pushed, e + 1, 1); /* another content hash */
	DONE(drv_commit(st, 0, p, 1));
	ck_assert(!p[0].visit.new_n && p[0].visit.changed_n == 1);
	o = drv_outcome(st, id, &F[0], 60); /* and the visit brings its earlier content */
	o.entries = e + 1;
	o.entry_n = 3;
	DONE(drv_commit(st, l->id, &o, 1));
	ck_assert(!o.visit.new_n && !o.visit.changed_n);
	ck_assert(drv_entries(st, id) == 3 && drv_entries(st, other) == 1 && drv_find(st, id)->entry_n == 3);
	e[1] = entry(8, 1, "eight", "x");
	e[2] = entry(9, 1, "nine", "x");
	e[3] = entry(8, 1, "eight", "x");
	p[0] = drv_push(id, &pushed, e + 1, 2); /* two pushes to one feed in one commit */
	p[1] = drv_push(id, &pushed, e + 2, 2);
	DONE(drv_commit(st, 0, p, 2));
	ck_assert_uint_eq(p[0].visit.new_n + p[1].visit.new_n, 2);
	ck_assert_int_eq(drv_entries(st, id), 5);
	drv_leave(st, l);
	drv_end(st);
}
END_TEST

/* ---- several processes ----------------------------------------------------------------------- */

struct shared {
	_Atomic int ready, go, new_n;
	_Atomic int64_t lease[64];
};

static struct shared *shared_new(void)
{
	struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert(s != MAP_FAILED);
	return s;
}

static void must(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "# %s: %d %s\n", what, rc, drv_err.text);
	_exit(9);
}

/* All processes start at once. */
static void ready(struct shared *s)
{
	atomic_fetch_add(&s->ready, 1);
	while (!atomic_load(&s->go))
		usleep(200);
}

enum { ROUNDS = 60, PUSHERS = 2 };

/* Brings entries k and k + 1 in round k: by push, the last process as the feed's owner. */
static void brings(int i, const char *url, int64_t id, struct shared *s, int me)
{
	struct store *st = drv_open(i, url, 0);
	struct store_lease *l = me == PUSHERS ? drv_join(st, "w", LONG_MS) : NULL;
	struct fw_feed f = {0};

	ready(s);
	for (int k = 0; k < ROUNDS; k++) {
		struct fw_entry_row e[2] = {entry(k, 1, "t", "x"), entry(k + 1, 1, "t", "x")};
		struct fw_outcome o = l ? drv_outcome(st, id, &f, k + 6) : drv_push(id, &f, e, 2);
		int rc;

		o.entries = e;
		o.entry_n = 2;
		o.visit.at_ms += INT64_C(1000000) * me;
		f.last_visit_ms = l ? o.visit.at_ms : 0;
		do {
			rc = drv_commit(st, l ? l->id : 0, &o, 1);
		} while (rc == FW_EAGAIN);
		must(rc ? rc : o.rc, "a commit");
		atomic_fetch_add(&s->new_n, (int)o.visit.new_n);
	}
	st->driver->close(st);
	_exit(0);
}

static int later_entry(void *ctx, const struct fw_entry_row *e)
{
	int64_t *last = ctx;

	ck_assert_int_gt(e->id, last[0]);
	last[0] = e->id;
	last[1]++;
	return 0;
}

START_TEST(the_same_entries_at_a_time)
{
	const char *url;
	struct store *st;
	struct shared *s;
	pid_t pid[PUSHERS + 1];
	int64_t id, last[2] = {0, 0};

	if (!under_test[_i].shared)
		return;
	url = drv_url(_i);
	st = drv_open(_i, url, FW_STORE_CREATE);
	id = drv_feed(st, "https://a.example/", 5);
	st->driver->close(st);
	s = shared_new();
	for (int me = 0; me <= PUSHERS; me++) {
		pid[me] = fork();
		ck_assert_int_ge(pid[me], 0);
		if (pid[me] == 0)
			brings(_i, url, id, s, me);
	}
	st = drv_open(_i, url, 0);
	while (atomic_load(&s->ready) <= PUSHERS)
		usleep(200);
	atomic_store(&s->go, 1);
	for (int looks = 0; looks < 30; looks++) { /* a reader that follows by id misses none */
		DONE(fw_store_entry_list((struct fw_store *)st,
			&(struct fw_entry_query){.after_id = last[0], .oldest_first = true}, later_entry, last,
			&drv_err));
		usleep(2000);
	}
	for (int i = 0; i <= PUSHERS; i++) {
		int status;

		ck_assert_int_eq(waitpid(pid[i], &status, 0), pid[i]);
		ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
	}
	DONE(fw_store_entry_list((struct fw_store *)st,
		&(struct fw_entry_query){.after_id = last[0], .oldest_first = true}, later_entry, last, &drv_err));
	ck_assert_int_eq(last[1], ROUNDS + 1);
	ck_assert_int_eq(drv_entries(st, id), ROUNDS + 1);
	ck_assert_int_eq(s->new_n, ROUNDS + 1); /* each entry was new for exactly one process */
	ck_assert_int_eq(drv_visits(st, id), ROUNDS * (PUSHERS + 1));
	ck_assert_int_eq(drv_find(st, id)->due_at_ms, ROUNDS + 5);
	munmap(s, sizeof(*s));
	drv_end(st);
}
END_TEST

enum { JOINERS = 4, JOINS = 8 };

/* Joins, reads its shards, and leaves. */
static void joins(int i, const char *url, struct shared *s, int me)
{
	struct store *st = drv_open(i, url, 0);
	struct store_lease *l = calloc(1, sizeof(*l));

	if (!l)
		_exit(9);
	ready(s);
	for (int k = 0; k < JOINS; k++) {
		int rc;

		l->id = 0;
		l->lease_ms = LONG_MS;
		do {
			rc = st->driver->heartbeat(st, "w", l, &drv_err);
		} while (rc == FW_EAGAIN);
		must(rc, "a heartbeat");
		atomic_store(&s->lease[me * JOINS + k], l->id);
		do {
			rc = st->driver->release(st,
				&(struct store_release){
					.lease_id = l->id, .leave = k % 2 == 0, .shard = l->shard, .n = l->shard_n / 2},
				&drv_err);
		} while (rc == FW_EAGAIN);
		must(rc, "giving back");
	}
	st->driver->close(st);
	_exit(0);
}

START_TEST(joined_at_a_time)
{
	const char *url;
	struct store *st;
	struct shared *s;
	struct store_lease *l[JOINERS * JOINS] = {0};
	pid_t pid[JOINERS];
	int left = 0;

	if (!under_test[_i].shared)
		return;
	url = drv_url(_i);
	st = drv_open(_i, url, FW_STORE_CREATE);
	s = shared_new();
	for (int me = 0; me < JOINERS; me++) {
		pid[me] = fork();
		ck_assert_int_ge(pid[me], 0);
		if (pid[me] == 0)
			joins(_i, url, s, me);
	}
	while (atomic_load(&s->ready) < JOINERS)
		usleep(200);
	atomic_store(&s->go, 1);
	for (int me = 0; me < JOINERS; me++) {
		int status;

		ck_assert_int_eq(waitpid(pid[me], &status, 0), pid[me]);
		ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
	}
	for (int i = 0; i < JOINERS * JOINS; i++) {
		for (int k = 0; k < i; k++)
			ck_assert_int_ne(s->lease[i], s->lease[k]);
		if (i % JOINS % 2 == 0)
			continue;
		l[left] = calloc(1, sizeof(*l[0])); /* a process that did not leave still holds its lease */
		ck_assert_ptr_nonnull(l[left]);
		l[left]->id = s->lease[i];
		l[left++]->lease_ms = LONG_MS;
	}
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < left; i++)
			drv_share(st, "w", l[i]);
	}
	ck_assert_uint_eq(disjoint(l, left), STORE_SHARDS);
	ck_assert_uint_eq(l[0]->living, left);
	for (int i = 0; i < left; i++)
		drv_leave(st, l[i]);
	munmap(s, sizeof(*s));
	drv_end(st);
}
END_TEST

/* ---- trouble --------------------------------------------------------------------------------- */

/* Another client holds a lock for longer than we wait. SQL only: Redis has no such locks. */
START_TEST(busy)
{
	const char *url = drv_url(_i);
	struct fw_store_config c = {.url = url, .busy_timeout_ms = 200};
	struct store *holder, *st = NULL;
	struct store_lease *l;
	struct fw_outcome o;
	struct fw_entry_row e = entry(1, 1, "one", "text");
	uint64_t print;
	int64_t id, begin_ms;

	if (!under_test[_i].shared || !drv_is_sql(_i))
		return;
	holder = drv_open(_i, url, FW_STORE_CREATE);
	id = drv_feed(holder, "https://a.example/", 5);
	l = drv_join(holder, "w", LONG_MS);
	o = drv_outcome(holder, id, &F[0], 50);
	o.entries = &e;
	o.entry_n = 1;
	print = drv_print(holder);
	DONE(holder->driver->open(&c, &st, &drv_err));
	DONE(sql_of(holder)->dialect->begin(sql_of(holder), &drv_err));
	DONE(sql_exec_count(sql_of(holder), "UPDATE workers SET idle = idle + 1 WHERE id = ?1", SQL_V(SQL_INT(l->id)),
		&id, &drv_err));
	ck_assert_int_eq(id, 1);
	begin_ms = fw_mono_ms();
	FAILS(drv_commit(st, l->id, &o, 1), FW_EAGAIN);
	FAILS(st->driver->heartbeat(st, "w", l, &drv_err), FW_EAGAIN);
	ck_assert_int_ge(fw_mono_ms() - begin_ms, 200);
	ck_assert_int_lt(fw_mono_ms() - begin_ms, 9000);
	sql_of(holder)->dialect->rollback(sql_of(holder));
	ck_assert(drv_print(st) == print);
	drv_heartbeat(st, "w", l); /* the same call is sent again */
	DONE(drv_commit(st, l->id, &o, 1));
	ck_assert(!o.rc && o.visit.new_n == 1);
	holder->driver->close(holder);
	drv_leave(st, l);
	drv_end(st);
}
END_TEST

static int read_row(void *ctx, const struct sql_row *row)
{
	const char *reads = ctx; /* one letter for each column */

	for (int i = 0; reads[i]; i++) {
		struct fw_str s = reads[i] == 't' ? sql_str(row, i) : FW_STR_NONE;
		int64_t n = reads[i] == 'i' ? sql_int(row, i) : reads[i] == 'd' ? sql_date(row, i) : 0;

		ck_assert(s.len < 100 && n != 1000); /* read them */
	}
	return 0;
}

START_TEST(results_of_another_shape) /* fewer columns, and texts for numbers: a server may send anything */
{
	static const struct {
		const char *text, *reads;
		bool breaks;
	} T[] = {
		{"SELECT 1, 2", "ii", false},
		{"SELECT NULL, NULL, NULL", "itd", false},
		{"SELECT 1", "iii", true},
		{"SELECT 1", "it", true},
		{"SELECT 1", "id", true},
		{"SELECT 'a long text'", "t", false},
	};
	struct store *st;

	if (!drv_is_sql(_i))
		return;
	st = drv_fresh(_i);
	for (size_t i = 0; i < FW_N(T); i++) {
		int rc = sql_query(sql_of(st), T[i].text, SQL_NONE, read_row, (void *)T[i].reads, &drv_err);

		ck_assert_msg(rc == (T[i].breaks ? FW_EIO : 0), "%s: %d %s", T[i].text, rc, drv_err.text);
		ck_assert(!rc || strstr(drv_err.text, "malformed result"));
	}
	if (under_test[_i].server) /* SQLite's columns have no types */
		FAILS(sql_query(sql_of(st), "SELECT 'a long text'", SQL_NONE, read_row, (void *)"i", &drv_err), FW_EIO);
	drv_end(st);
}
END_TEST

/* The server dies in the middle of a commit, and is started again. */
START_TEST(the_server_dies)
{
	const struct server *server = under_test[_i].server;
	/* whether commits survive a kill with these server settings */
	bool keeps = server && strcmp(server->engine, "redis") != 0;
	struct fw_store_config c = {.flags = FW_STORE_CREATE};
	struct store *st = NULL;
	struct store_lease *l;
	struct fw_outcome o;
	int64_t id, now_ms;

	if (!server)
		return;
	server->start(scratch()); /* a server of this test's own */
	c.url = drv_url(_i);
	DONE(drv_driver(_i)->open(&c, &st, &drv_err)); /* a store opened with synchronous commits */
	id = drv_feed(st, "https://a.example/", 5);
	l = drv_join(st, "w", LONG_MS);
	o = drv_outcome(st, id, &F[0], 50);
	server->kill9();
	FAILS(drv_commit(st, l->id, &o, 1), FW_EIO);
	FAILS(st->driver->heartbeat(st, "w", l, &drv_err), FW_EIO);
	FAILS(st->driver->clock(st, &now_ms, &drv_err), FW_EIO);
	FAILS(st->driver->release(st, &(struct store_release){.lease_id = l->id, .leave = true}, &drv_err), FW_EIO);
	st->driver->close(st);
	server->again();
	DONE(drv_driver(_i)->open(&c, &st, &drv_err));
	if (keeps) { /* the lease survives too: an outage shorter than the lease costs nothing */
		drv_heartbeat(st, "w", l);
		ck_assert_uint_eq(l->shard_n, STORE_SHARDS);
		DONE(drv_commit(st, l->id, &o, 1));
		ck_assert(!o.rc && drv_visits(st, id) == 1 && drv_due_of(st, id)->due_at_ms == 50);
	}
	free(l);
	drv_end(st);
	server->stop();
}
END_TEST

int main(void)
{
	TCase *t = cases("every driver", NULL, NULL, 120);
	const TTest *const every[] = {the_first_has_all, parts_after_two_heartbeats, heartbeat_keeps_the_lease,
		the_quiet_time_goes_with_the_shard, begin_together, idle_and_full, a_lease_runs_out, over_and_not_taken,
		no_number_twice, leases_that_are_not_there, shards_of_others_stay, dead_workers_are_reaped,
		killers_are_quarantined, changes_raise_versions, due_feeds, many_feeds_of_one_host,
		hosts_outlive_their_owner, fenced, changed_while_in_flight, state_without_a_visit,
		addresses_are_adopted, feeds_move, repeated_commits, pushes_need_no_lease, first_visits_need_no_lease,
		entries_are_unique, the_same_entries_at_a_time, joined_at_a_time, busy, results_of_another_shape,
		the_server_dies};

	stores_begin();
	cases_add(t, every, FW_N(every), under_test_n);
	return cases_run("store contract", t);
}
