/* SPDX-License-Identifier: ISC */
/*
 * The owner's state of its hosts: each rule by itself; then ten owners that join, leave, freeze and
 * die, and rules that hold over all of them.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "sched/hosts.h"
#include "../../suite.h"

#define WALL INT64_C(1800000000000) /* wall time - monotonic time */
#define NEVER INT64_MAX
#define N 8

static struct fw_hosts *t;
static struct fw_hosts_item item[N];
static int64_t next_ms;

static struct fw_hosts_now at(int64_t mono_ms)
{
	return (struct fw_hosts_now){mono_ms, mono_ms + WALL};
}

static struct fw_hosts *table(uint32_t host_concurrency, int64_t gap_ms)
{
	struct fw_hosts *new = fw_hosts_create(&(struct fw_hosts_rules){host_concurrency, gap_ms});

	ck_assert_ptr_nonnull(new);
	fw_hosts_set_lease(new, NEVER);
	return new;
}

/* This owner has shard 1 since time 0; item[i] is feed i, in this order. */
static void begin(uint32_t host_concurrency, int64_t gap_ms)
{
	t = table(host_concurrency, gap_ms);
	fw_hosts_own(t, 1, 0, at(0));
	for (int i = 0; i < N; i++)
		item[i] = (struct fw_hosts_item){.order = 10 * i, .feed_id = i};
}

static void put(int i, int64_t host)
{
	ck_assert_int_eq(fw_hosts_put(t, 1, host, &item[i]), 0);
}

/* A user requests a feed that waits already. */
static void hurry(int i, int64_t host)
{
	fw_hosts_remove(t, &item[i]);
	item[i].urgent = true;
	put(i, host);
}

static void starts(int i, int64_t now_ms)
{
	struct fw_hosts_item *got = fw_hosts_start(t, now_ms, &next_ms);

	ck_assert_msg(
		got == &item[i], "at %lld: %lld, want %d", (long long)now_ms, got ? (long long)got->feed_id : -1LL, i);
}

/* Nothing may start until then. */
static void waits(int64_t now_ms, int64_t until_ms)
{
	ck_assert_ptr_null(fw_hosts_start(t, now_ms, &next_ms));
	ck_assert_int_eq(next_ms, until_ms);
}

static void sends(int i, int64_t now_ms)
{
	ck_assert(fw_hosts_may_send(t, &item[i], now_ms));
	fw_hosts_sent(t, &item[i], now_ms);
}

static void done(int i, int64_t now_ms, enum fw_host_health health, int64_t cooldown_ms)
{
	fw_hosts_done(t, &item[i], health, cooldown_ms ? now_ms + cooldown_ms + WALL : 0, at(now_ms));
}

static void row(int64_t host, int64_t next_ok_ms, int64_t cooldown_ms, int64_t learned_delay_ms, int64_t now_ms)
{
	struct fw_hosts_row r = {host, next_ok_ms, cooldown_ms, learned_delay_ms};

	ck_assert_int_eq(fw_hosts_row_put(t, 1, &r, at(now_ms)), 0);
}

static void dirty_is(
	int64_t now_ms, int64_t host, int64_t next_ok_ms, int64_t cooldown_ms, int64_t learned_delay_ms, bool stored)
{
	struct fw_hosts_row r[2];

	ck_assert_int_eq(fw_hosts_rows_take(t, r, 2, at(now_ms)), 1);
	ck_assert_int_eq(r[0].host_id, host);
	ck_assert_int_eq(r[0].next_ok_ms, next_ok_ms);
	ck_assert_int_eq(r[0].cooldown_until_ms, cooldown_ms);
	ck_assert_int_eq(r[0].learned_delay_ms, learned_delay_ms);
	fw_hosts_rows_done(t, r, 1, stored);
}

static void is_clean(int64_t now_ms)
{
	struct fw_hosts_row r;

	ck_assert_int_eq(fw_hosts_rows_take(t, &r, 1, at(now_ms)), 0);
}

START_TEST(budget)
{
	begin(2, 0);
	for (int i = 0; i < 4; i++)
		put(i, 7);
	starts(0, 0);
	starts(1, 0);
	waits(0, NEVER);
	sends(1, 5);
	waits(5, NEVER);
	done(1, 9, FW_HOST_HEALTHY, 0);
	starts(2, 9);
	waits(9, NEVER);
	done(0, 9, FW_HOST_HEALTHY, 0);
	starts(3, 9);
	fw_hosts_destroy(t);

	begin(0, 0); /* no limit */
	for (int i = 0; i < N; i++)
		put(i, 7);
	for (int i = 0; i < N; i++)
		starts(i, 0);
	fw_hosts_destroy(t);
}
END_TEST

/*
 * The gap counts from the moment when a request was sent, not from the permission to do so; nothing
 * starts while a permitted request is unsent.
 */
START_TEST(gap)
{
	begin(3, 1000);
	for (int i = 0; i < 5; i++)
		put(i, 7);
	starts(0, 0);
	waits(0, NEVER);
	waits(5000, NEVER);
	ck_assert(fw_hosts_may_send(t, &item[0], 5690));
	waits(5695, NEVER);
	fw_hosts_sent(t, &item[0], 5700);
	waits(5700, 6700);
	waits(6699, 6700);
	starts(1, 6700);
	sends(1, 6700);
	waits(7500, 7700);
	starts(2, 7700);
	done(2, 8600, FW_HOST_UNKNOWN, 0); /* never sent: counts from the permission */
	waits(8600, 8700);
	starts(3, 8700);
	fw_hosts_destroy(t);
}
END_TEST

/* A redirect waits for the gap, and nothing else of the host starts between it and its sending. */
START_TEST(further)
{
	begin(2, 1000);
	for (int i = 0; i < 4; i++)
		put(i, 7);
	put(4, 8);
	starts(0, 0);
	sends(0, 10);
	fw_hosts_further(t, &item[0], 100);
	ck_assert_uint_eq(fw_hosts_waiting(t), 4);
	starts(4, 100); /* of another host */
	waits(100, 1010);
	hurry(3, 7);
	starts(0, 1010); /* before all that wait, within its budget */
	waits(5000, NEVER);
	sends(0, 5000);
	starts(3, 6000);
	fw_hosts_further(t, &item[0], 6000);
	waits(6100, NEVER); /* permitted before, and unsent */
	sends(3, 6200);
	ck_assert_ptr_null(fw_hosts_first(t, 6200, &next_ms));
	ck_assert_int_eq(next_ms, 7200);
	done(3, 6300, FW_HOST_HEALTHY, 0);
	done(0, 6300, FW_HOST_HEALTHY, 0); /* cancelled as it waited */
	waits(6300, 7200);
	starts(1, 7200);
	sends(1, 7200);
	fw_hosts_further(t, &item[1], 7300);
	put(5, 6);
	ck_assert_ptr_eq(fw_hosts_first(t, 7300, &next_ms), &item[5]); /* the caller may have no place for it */
	ck_assert_int_eq(next_ms, 8200);
	fw_hosts_destroy(t);
}
END_TEST

/* It waits for a learned delay only so long; a cooldown and the lease's end refuse it. */
START_TEST(further_is_refused)
{
	begin(2, 1000);
	row(7, 0, 0, 60000, 0);
	for (int i = 0; i < 3; i++)
		put(i, 7);
	starts(0, 0);
	sends(0, 0);
	fw_hosts_further(t, &item[0], 0);
	waits(0, FW_HOSTS_FURTHER_MAX_MS);
	starts(0, 10000);
	sends(0, 10000);
	starts(1, 70000);
	sends(1, 70000);
	fw_hosts_further(t, &item[0], 70000);
	done(1, 71000, FW_HOST_UNKNOWN, 50000);
	starts(0, 80000);
	ck_assert(!fw_hosts_may_send(t, &item[0], 80000));
	done(0, 80000, FW_HOST_UNKNOWN, 0);
	waits(80000, 140000);
	fw_hosts_destroy(t);

	begin(1, 0);
	put(0, 7);
	starts(0, 0);
	sends(0, 0);
	fw_hosts_set_lease(t, 100);
	fw_hosts_release(t, 1); /* what is in flight goes on */
	fw_hosts_further(t, &item[0], 50);
	starts(0, 50);
	ck_assert(!fw_hosts_may_send(t, &item[0], 100));
	done(0, 100, FW_HOST_UNKNOWN, 0);
	fw_hosts_drop(t, 1);
	fw_hosts_destroy(t);
}
END_TEST

START_TEST(cooldown)
{
	begin(2, 0);
	for (int i = 0; i < 4; i++)
		put(i, 7);
	starts(0, 0);
	starts(1, 0);
	sends(0, 1);
	done(0, 10, FW_HOST_UNKNOWN, 5000);
	waits(10, 5010);
	ck_assert(!fw_hosts_may_send(t, &item[1], 11)); /* permitted before, sent too late */
	done(1, 11, FW_HOST_UNKNOWN, 0);
	waits(11, 5010);
	hurry(3, 7);
	waits(5009, 5010); /* a user's request does not change it */
	starts(3, 5010);
	sends(3, 5010);
	done(3, 5020, FW_HOST_UNKNOWN, 2000);
	put(0, 7);
	put(1, 7);
	waits(5020, 7020);
	starts(0, 7020);
	sends(0, 7020);
	starts(1, 7020);
	sends(1, 7020);
	done(0, 7020, FW_HOST_UNKNOWN, 3000);
	done(1, 7020, FW_HOST_UNKNOWN, 1000); /* the longer one counts */
	waits(7020, 10020);
	starts(2, 10020);
	sends(2, 10020);
	done(2, 10020, FW_HOST_UNKNOWN, 90 * FW_DAY_MS);
	put(0, 7);
	waits(10020, 10020 + FW_HOSTS_COOLDOWN_MAX_MS);
	fw_hosts_destroy(t);
}
END_TEST

START_TEST(learned_delay)
{
	static const int64_t up[] = {
		1000,
		2000,
		4000,
		8000,
		16000,
		32000,
		64000,
		128000,
		256000,
		512000,
		600000,
		600000,
	};
	int64_t now = 0, p = 4000;

	begin(1, 100);
	for (size_t i = 0; i < FW_N(up); i++) {
		put(0, 7);
		starts(0, now);
		sends(0, now + 50);
		done(0, now + 60, FW_HOST_THROTTLED, 0);
		ck_assert_int_eq(fw_hosts_learned_delay_ms(t, 7), up[i]);
		put(0, 7);
		waits(now + 60, now + 50 + up[i]); /* at once, from the last sending */
		fw_hosts_remove(t, &item[0]);
		now += 50 + up[i];
	}
	row(8, 0, 0, p, now);
	while (p) {
		put(1, 8);
		starts(1, now);
		sends(1, now);
		done(1, now, FW_HOST_UNKNOWN, 0);
		ck_assert_int_eq(fw_hosts_learned_delay_ms(t, 8), p);
		put(1, 8);
		now += FW_MAX(p, 100);
		starts(1, now);
		sends(1, now);
		done(1, now, FW_HOST_HEALTHY, 0);
		p = p * 10000 / (10000 + p);
		p = p > 50 ? p : 0;
		ck_assert_int_eq(fw_hosts_learned_delay_ms(t, 8), p);
		put(1, 8);
		waits(now, now + FW_MAX(p, 100));
		fw_hosts_remove(t, &item[1]);
		now += FW_MAX(p, 100);
	}
	fw_hosts_destroy(t);
}
END_TEST

START_TEST(order)
{
	begin(1, 1000);
	put(3, 7);
	put(1, 7);
	put(2, 8);
	put(0, 9);
	put(5, 9);
	put(6, 6);
	item[4].order = item[2].order;
	put(4, 5); /* as early as 2, but with a higher number */
	ck_assert_ptr_eq(fw_hosts_first(t, 0, &next_ms), &item[0]);
	ck_assert_int_eq(fw_hosts_waiting(t), 7);
	starts(0, 0);
	starts(1, 0);
	hurry(6, 6);
	starts(6, 0);
	starts(2, 0);
	starts(4, 0);
	waits(0, NEVER);
	sends(0, 10);
	sends(1, 20);
	done(0, 30, FW_HOST_HEALTHY, 0);
	done(1, 40, FW_HOST_HEALTHY, 0);
	item[7].urgent = true;
	put(7, 7); /* before 3, though it comes later */
	waits(40, 1010);
	starts(5, 1015);
	starts(7, 1020);
	sends(7, 1030);
	waits(1500, NEVER); /* budget */
	done(7, 1600, FW_HOST_HEALTHY, 0);
	waits(1600, 2030);
	fw_hosts_remove(t, &item[3]);
	waits(1600, NEVER);
	fw_hosts_destroy(t);
}
END_TEST

START_TEST(withdrawn)
{
	begin(1, 0);
	item[0].order = item[3].order = item[1].order;
	put(3, 7);
	put(0, 7);
	put(1, 7);
	put(2, 8);
	ck_assert_ptr_eq(fw_hosts_first(t, 0, &next_ms), &item[0]);
	fw_hosts_remove(t, &item[0]);
	fw_hosts_remove(t, &item[3]);
	starts(1, 0);
	fw_hosts_remove(t, &item[2]);
	waits(0, NEVER);
	done(1, 0, FW_HOST_HEALTHY, 0);
	waits(1, NEVER);
	ck_assert_int_eq(fw_hosts_count(t), 0);
	fw_hosts_destroy(t);
}
END_TEST

START_TEST(lease)
{
	begin(1, 0);
	put(0, 7);
	put(1, 8);
	fw_hosts_set_lease(t, 100);
	starts(0, 99);
	waits(100, NEVER);
	waits(99, NEVER); /* a clock that goes back is ignored */
	ck_assert(!fw_hosts_may_send(t, &item[0], 100));
	fw_hosts_set_lease(t, 200);
	starts(1, 100);
	sends(0, 199);
	fw_hosts_further(t, &item[0], 199);
	waits(200, NEVER); /* not even a redirect */
	fw_hosts_destroy(t);

	t = fw_hosts_create(&(struct fw_hosts_rules){.host_concurrency = 1});
	fw_hosts_own(t, 1, 0, at(0));
	put(2, 7);
	waits(0, NEVER); /* no lease yet */
	fw_hosts_destroy(t);
}
END_TEST

/* ---- rows ------------------------------------------------------------------------------------ */

START_TEST(rows)
{
	begin(1, 1000);
	put(0, 7);
	put(1, 7);
	starts(0, 0);
	sends(0, 100);
	done(0, 200, FW_HOST_HEALTHY, 0);
	is_clean(200); /* a gap alone is not stored: the lease bounds it */
	starts(1, 1100);
	sends(1, 1100);
	done(1, 1200, FW_HOST_THROTTLED, 60000);
	dirty_is(1200, 7, 2100 + WALL, 61200 + WALL, 1000, false);
	dirty_is(1300, 7, 2100 + WALL, 61200 + WALL, 1000, true);
	is_clean(1300);
	put(0, 7);
	starts(0, 61200);
	sends(0, 61200);
	done(0, 61300, FW_HOST_THROTTLED, 0);
	dirty_is(70000, 7, 0, 0, 2000, true); /* expired values are not stored */
	is_clean(70000);
	fw_hosts_destroy(t);
}
END_TEST

START_TEST(rows_back)
{
	begin(1, 1000);
	row(7, 3000 + WALL, 0, 0, 0);
	row(8, 3000 + WALL, 9000 + WALL, 0, 0);
	row(9, 0, 0, 4000, 0);
	for (int i = 0; i < 3; i++)
		put(i, 7 + i);
	starts(2, 0);
	waits(0, 3000);
	starts(0, 3000);
	waits(3000, 9000);
	starts(1, 9000);
	is_clean(9000);
	sends(2, 9000);
	done(2, 9000, FW_HOST_UNKNOWN, 0);
	put(2, 9);
	waits(9000, 13000);
	row(6, WALL + 90 * FW_DAY_MS, 0, 0, 13000); /* a wrong clock */
	row(5, 0, WALL + 90 * FW_DAY_MS, 0, 13000);
	ck_assert_int_eq(fw_hosts_free_ms(t, 6), 13000 + FW_LEARNED_DELAY_MAX_MS);
	ck_assert_int_eq(fw_hosts_free_ms(t, 5), 13000 + FW_HOSTS_COOLDOWN_MAX_MS);
	ck_assert_int_eq(fw_hosts_row_put(t, 2, &(struct fw_hosts_row){.host_id = 4}, at(0)), FW_ESTALE);
	fw_hosts_destroy(t);
}
END_TEST

/*
 * After a worker's death: each host counts as requested when the lease ended, also hosts without a
 * row.
 */
START_TEST(after_death)
{
	begin(1, 1000);
	fw_hosts_own(t, 2, WALL - 300, at(0));
	fw_hosts_own(t, 3, WALL + FW_DAY_MS, at(0)); /* a wrong clock */
	ck_assert_int_eq(
		fw_hosts_row_put(t, 2, &(struct fw_hosts_row){.host_id = 8, .learned_delay_ms = 5000}, at(0)), 0);
	put(0, 6);
	ck_assert_int_eq(fw_hosts_put(t, 2, 7, &item[1]), 0);
	ck_assert_int_eq(fw_hosts_put(t, 2, 8, &item[2]), 0);
	starts(0, 0);
	waits(0, 700);
	/* released at once: the next owner gets the time for hosts without a row */
	ck_assert_int_eq(fw_hosts_sent_until(t, 2, at(699)), WALL - 300);
	ck_assert_int_eq(fw_hosts_sent_until(t, 2, at(700)), 0);
	ck_assert_int_eq(fw_hosts_sent_until(t, 1, at(0)), 0);
	fw_hosts_release(t, 1);
	fw_hosts_own(t, 1, 0, at(0));
	fw_hosts_release(t, 3);
	fw_hosts_own(t, 3, 0, at(0)); /* claimed again, it still knows the time */
	ck_assert_int_eq(fw_hosts_sent_until(t, 3, at(0)), WALL + FW_LEARNED_DELAY_MAX_MS);
	starts(1, 700);
	waits(700, 4700);
	starts(2, 4700);
	fw_hosts_destroy(t);
}
END_TEST

START_TEST(leaving)
{
	struct fw_hosts_row r[3];

	begin(2, 1000);
	for (int i = 0; i < 3; i++)
		put(i, 7);
	put(3, 8);
	starts(0, 0);
	starts(3, 0);
	sends(3, 0);
	done(3, 10, FW_HOST_HEALTHY, 0);
	fw_hosts_remove(t, &item[1]);
	fw_hosts_remove(t, &item[2]);
	ck_assert_int_eq(fw_hosts_waiting(t), 0);
	fw_hosts_release(t, 1);
	ck_assert_int_eq(fw_hosts_put(t, 1, 7, &item[1]), FW_ESTALE);
	ck_assert_int_eq(fw_hosts_rows_take(t, r, 3, at(300)), 2);
	ck_assert_int_eq(r[0].host_id + r[1].host_id, 15);
	ck_assert_int_eq(r[0].next_ok_ms, 1000 + WALL);
	ck_assert_int_eq(r[1].next_ok_ms, 1000 + WALL);
	fw_hosts_rows_done(t, r, 2, true);
	sends(0, 400);
	done(0, 500, FW_HOST_HEALTHY, 0);
	dirty_is(500, 7, 1400 + WALL, 0, 0, true);
	fw_hosts_own(t, 1, 0, at(500)); /* claimed again, it still knows the host */
	put(1, 7);
	waits(500, 1400);
	fw_hosts_remove(t, &item[1]);
	fw_hosts_release(t, 1);
	fw_hosts_drop(t, 1);
	ck_assert_int_eq(fw_hosts_count(t), 0);
	is_clean(500);
	fw_hosts_own(t, 1, 0, at(600));
	put(1, 7);
	starts(1, 600); /* forgotten: a row would have been stored */
	fw_hosts_destroy(t);
}
END_TEST

START_TEST(forgotten)
{
	begin(1, 1000);
	for (int i = 0; i < 4; i++)
		put(i, i);
	for (int i = 0; i < 4; i++) {
		starts(i, 0);
		sends(i, 0);
	}
	done(0, 10, FW_HOST_HEALTHY, 0);
	done(1, 10, FW_HOST_HEALTHY, 5000);
	done(2, 10, FW_HOST_THROTTLED, 0);
	waits(999, NEVER);
	ck_assert_int_eq(fw_hosts_count(t), 4);
	waits(1000, NEVER); /* 0: its gap is over; 3 is in flight */
	ck_assert_int_eq(fw_hosts_count(t), 3);
	waits(9000, NEVER);
	ck_assert_int_eq(fw_hosts_count(t), 3); /* their rows are not stored */
	{
		struct fw_hosts_row r[3];

		ck_assert_int_eq(fw_hosts_rows_take(t, r, 3, at(9000)), 2);
		put(0, 1); /* used meanwhile */
		fw_hosts_remove(t, &item[0]);
		ck_assert_int_eq(fw_hosts_count(t), 3);
		fw_hosts_rows_done(t, r, 2, true);
	}
	ck_assert_int_eq(fw_hosts_count(t), 2);
	ck_assert_int_eq(fw_hosts_learned_delay_ms(t, 2), 1000);
	done(3, 9000, FW_HOST_HEALTHY, 0);
	ck_assert_int_eq(fw_hosts_count(t), 1);
	fw_hosts_destroy(t);
}
END_TEST

START_TEST(wall_jumps)
{
	struct fw_hosts_now jumped = {2000, 2000 + WALL + FW_DAY_MS};
	struct fw_hosts_row r;

	begin(1, 1000);
	put(0, 7);
	put(1, 7);
	starts(0, 0);
	sends(0, 1500);
	fw_hosts_done(t, &item[0], FW_HOST_UNKNOWN, jumped.wall_ms + 5000, jumped);
	waits(2000, 7000);
	/* the wall clock has jumped back: each time is converted with the offset of its moment */
	ck_assert_int_eq(fw_hosts_rows_take(t, &r, 1, at(2000)), 1);
	ck_assert_int_eq(r.next_ok_ms, 2500 + WALL);
	ck_assert_int_eq(r.cooldown_until_ms, 7000 + WALL);
	fw_hosts_rows_done(t, &r, 1, true);
	starts(1, 7000);
	fw_hosts_destroy(t);
}
END_TEST

/* ---- ten owners ------------------------------------------------------------------------------ */

#define OWNERS 10
#define SHARDS 8
#define HOSTS 40
#define FEEDS 300
#define LEASE_MS 10000
#define MARGIN_MS 1000
#define SLOTS 24

/* The life of one feed with one owner. */
enum life { REST, WAITS, PERMITTED, SENT, FURTHER, DONE /* done and not committed */ };

struct sim_feed {
	int host;
	int64_t due_ms, served_ms;
	int claimed; /* by this owner; -1: none */
	bool urgent; /* this visit */
};

/* an owner's state of a feed */
struct sim_job {
	struct fw_hosts_item item;
	enum life life;
	bool further;
	int64_t send_ms, end_ms, gap_ms;
};

struct sim_owner {
	struct fw_hosts *t; /* NULL: it is not running */
	int64_t offset_ms;  /* of its monotonic clock */
	int64_t until_ms;   /* its lease, in the store */
	int64_t stop_ms, heartbeat_ms, commit_ms, frozen_ms;
	bool leaving[SHARDS];
	struct sim_job job[FEEDS];
	int64_t learned_delay_ms[HOSTS], cooldown_ms[HOSTS]; /* what it knows: the model */
};

static struct sim {
	uint64_t seed, x;
	int64_t now_ms;
	struct fw_hosts_rules rules;
	bool is_calm;
	int owner[SHARDS]; /* -1: free */
	int64_t sent_until_ms[SHARDS];
	struct fw_hosts_row row[HOSTS];
	int64_t learned_delay_ms[HOSTS],
		cooldown_ms[HOSTS]; /* what the owner knew at its last commit: the rows must agree */
	struct sim_feed feed[FEEDS];
	struct sim_owner o[OWNERS];
	int64_t sent_ms[HOSTS];
	uint32_t sent_n, further_n, refused_n, joined_n, died_n, froze_n, left_n, lost_n;
} m;

static uint32_t chance(uint32_t n)
{
	m.x = m.x * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(m.x >> 33) % n;
}

static int64_t mono(const struct sim_owner *o)
{
	return m.now_ms + o->offset_ms;
}

static struct fw_hosts_now both(const struct sim_owner *o)
{
	return (struct fw_hosts_now){mono(o), m.now_ms + WALL};
}

#define HOLDS(expr, host) \
	ck_assert_msg(expr, "seed %llu, at %lld ms, host %d", (unsigned long long)m.seed, (long long)m.now_ms, host)

static int me(const struct sim_owner *o)
{
	return (int)(o - m.o);
}

static bool has_lease(const struct sim_owner *o)
{
	return o->t && o->until_ms > m.now_ms;
}

static bool is_flying(const struct sim_job *j)
{
	return j->life == PERMITTED || j->life == SENT || j->life == FURTHER;
}

static uint32_t in_flight_of(int host)
{
	uint32_t n = 0;

	for (const struct sim_owner *o = m.o; o < m.o + OWNERS; o++) {
		for (int i = host; has_lease(o) && i < FEEDS; i++)
			n += m.feed[i].host == host && is_flying(&o->job[i]);
	}
	return n;
}

static void sim_back(struct sim_owner *o, int i)
{
	o->job[i].life = REST;
	m.feed[i].claimed = m.feed[i].claimed == me(o) ? -1 : m.feed[i].claimed;
}

static void sim_cancel(struct sim_owner *o, int i)
{
	fw_hosts_done(o->t, &o->job[i].item, FW_HOST_UNKNOWN, 0, both(o));
	sim_back(o, i);
}

/* In this shard; -1: in all. */
static int flying_n(const struct sim_owner *o, int shard)
{
	int n = 0;

	for (int i = 0; i < FEEDS; i++)
		n += is_flying(&o->job[i]) && (shard < 0 || m.feed[i].host % SHARDS == shard);
	return n;
}

/* Withdraws the waiting feeds of a shard, or of all. */
static void sim_recall(struct sim_owner *o, int shard)
{
	for (int i = 0; i < FEEDS; i++) {
		if (o->job[i].life != WAITS || (shard >= 0 && m.feed[i].host % SHARDS != shard))
			continue;
		fw_hosts_remove(o->t, &o->job[i].item);
		sim_back(o, i);
	}
}

/*
 * From stop_ms on the owner cancels what is in flight; what it has not committed is done again by
 * another.
 */
static void sim_stop(struct sim_owner *o)
{
	for (int i = 0; i < FEEDS; i++) {
		if (is_flying(&o->job[i]))
			sim_cancel(o, i);
	}
}

static void sim_forget(struct sim_owner *o, int shard)
{
	for (int i = 0; i < FEEDS; i++) {
		if (m.feed[i].host % SHARDS == shard && o->job[i].life == DONE)
			sim_back(o, i);
	}
	fw_hosts_drop(o->t, (uint32_t)shard);
	o->leaving[shard] = false;
}

/* The store reports that its lease has expired: it starts afresh. */
static void sim_lost(struct sim_owner *o)
{
	m.lost_n++;
	sim_stop(o);
	sim_recall(o, -1);
	for (int i = 0; i < FEEDS; i++) {
		if (o->job[i].life == DONE)
			sim_back(o, i);
	}
	fw_hosts_destroy(o->t);
	o->t = NULL;
}

/* ---- ... its store */

static void sim_expire(void)
{
	for (int s = 0; s < SHARDS; s++) {
		struct sim_owner *o = m.owner[s] >= 0 ? &m.o[m.owner[s]] : NULL;

		if (!o || o->until_ms > m.now_ms)
			continue;
		m.owner[s] = -1;
		m.sent_until_ms[s] = o->until_ms + WALL;
		for (int i = 0; i < FEEDS; i++) {
			if (m.feed[i].host % SHARDS == s)
				m.feed[i].claimed = -1;
		}
	}
}

static void sim_take(struct sim_owner *o, int shard)
{
	m.owner[shard] = me(o);
	fw_hosts_own(o->t, (uint32_t)shard, m.sent_until_ms[shard], both(o));
	m.sent_until_ms[shard] = 0;
	for (int h = shard; h < HOSTS; h += SHARDS) {
		o->learned_delay_ms[h] = m.learned_delay_ms[h];
		o->cooldown_ms[h] = m.cooldown_ms[h];
		if (m.row[h].host_id)
			ck_assert_int_eq(fw_hosts_row_put(o->t, (uint32_t)shard, &m.row[h], both(o)), 0);
	}
}

static int held_by(const struct sim_owner *o)
{
	int n = 0;

	for (int s = 0; s < SHARDS; s++)
		n += m.owner[s] == me(o);
	return n;
}

static void sim_heartbeat(struct sim_owner *o)
{
	int living = 0, fair, mine;

	if (!has_lease(o)) {
		sim_lost(o);
		return;
	}
	o->heartbeat_ms = m.now_ms + 2000;
	o->until_ms = m.now_ms + LEASE_MS;
	o->stop_ms = mono(o) + LEASE_MS - MARGIN_MS;
	fw_hosts_set_lease(o->t, o->stop_ms);
	sim_expire();
	for (const struct sim_owner *p = m.o; p < m.o + OWNERS; p++)
		living += has_lease(p);
	fair = (SHARDS + living - 1) / living;
	mine = held_by(o);
	for (int s = 0; s < SHARDS && mine < fair; s++) {
		if (m.owner[s] < 0) {
			sim_take(o, s);
			mine++;
		}
	}
	for (int s = 0; s < SHARDS; s++) {
		if (m.owner[s] != me(o) || o->leaving[s] || (mine <= fair && chance(60)))
			continue;
		sim_recall(o, s);
		fw_hosts_release(o->t, (uint32_t)s);
		o->leaving[s] = true;
		m.left_n++;
		mine--;
	}
}

static void sim_commit(struct sim_owner *o)
{
	bool is_lost = !has_lease(o), stored = !is_lost && chance(10);
	struct fw_hosts_row r[3];
	size_t n;

	o->commit_ms = m.now_ms + 300 + chance(1000);
	do {
		n = fw_hosts_rows_take(o->t, r, FW_N(r), both(o));
		for (size_t i = 0; stored && i < n; i++)
			m.row[r[i].host_id - 1] = r[i];
		fw_hosts_rows_done(o->t, r, n, stored);
	} while (stored && n == FW_N(r));
	for (int h = 0; stored && h < HOSTS; h++) {
		if (m.owner[h % SHARDS] != me(o))
			continue;
		m.learned_delay_ms[h] = o->learned_delay_ms[h];
		m.cooldown_ms[h] = o->cooldown_ms[h];
	}
	for (int i = 0; stored && i < FEEDS; i++) {
		if (o->job[i].life != DONE)
			continue;
		m.feed[i].served_ms = m.now_ms;
		m.feed[i].due_ms = m.now_ms + 20000;
		m.feed[i].urgent = !chance(50);
		sim_back(o, i);
	}
	for (int s = 0; stored && s < SHARDS; s++) {
		if (!o->leaving[s] || flying_n(o, s))
			continue;
		m.sent_until_ms[s] = fw_hosts_sent_until(o->t, (uint32_t)s, both(o));
		m.owner[s] = -1;
		sim_forget(o, s);
	}
	if (is_lost)
		sim_lost(o);
}

/* ---- ... its requests */

static int by_due(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	if (m.feed[x].due_ms != m.feed[y].due_ms)
		return m.feed[x].due_ms < m.feed[y].due_ms ? -1 : 1;
	return x - y;
}

static bool may_claim(const struct sim_owner *o, const struct sim_feed *f)
{
	int shard = f->host % SHARDS;

	return f->due_ms <= m.now_ms && f->claimed < 0 && m.owner[shard] == me(o) && !o->leaving[shard];
}

static void sim_claim(struct sim_owner *o)
{
	int due[FEEDS], n = 0;

	for (int i = 0; i < FEEDS; i++) {
		if (may_claim(o, &m.feed[i]))
			due[n++] = i;
	}
	qsort(due, (size_t)n, sizeof(*due), by_due);
	for (int k = 0; k < n; k++) {
		struct sim_feed *f = &m.feed[due[k]];
		struct sim_job *j = &o->job[due[k]];
		int rc;

		HOLDS(j->life == REST, f->host);
		j->item = (struct fw_hosts_item){.order = f->due_ms, .feed_id = due[k], .urgent = f->urgent};
		rc = fw_hosts_put(o->t, (uint32_t)(f->host % SHARDS), f->host + 1, &j->item);
		HOLDS(rc == 0, f->host);
		j->life = WAITS;
		f->claimed = me(o);
	}
}

static int64_t sim_gap(const struct sim_job *j, int64_t learned_delay_ms)
{
	return FW_MAX(
		m.rules.gap_ms, j->further ? FW_MIN(learned_delay_ms, FW_HOSTS_FURTHER_MAX_MS) : learned_delay_ms);
}

static void sim_start(struct sim_owner *o)
{
	struct fw_hosts_item *it;
	int64_t wait_ms;

	while ((it = fw_hosts_first(o->t, mono(o), &wait_ms)) != NULL && (it->further || flying_n(o, -1) < SLOTS)) {
		struct sim_job *j = &o->job[it->feed_id];
		int host = m.feed[it->feed_id].host;

		HOLDS(j->life == (it->further ? FURTHER : WAITS), host);
		j->further = it->further;
		HOLDS(fw_hosts_start(o->t, mono(o), &wait_ms) == it, host);
		HOLDS(mono(o) < o->stop_ms, host);
		HOLDS(m.owner[host % SHARDS] == me(o), host);
		j->life = PERMITTED;
		j->gap_ms = sim_gap(j, o->learned_delay_ms[host]);
		j->send_ms = m.now_ms + chance(300);
		j->end_ms = j->send_ms + 20 + chance(1500);
		HOLDS(!m.rules.host_concurrency || in_flight_of(host) <= m.rules.host_concurrency, host);
	}
}

static void sim_send(struct sim_owner *o, int i)
{
	struct sim_job *j = &o->job[i];
	int host = m.feed[i].host;

	if (!fw_hosts_may_send(o->t, &j->item, mono(o))) {
		HOLDS(mono(o) >= o->stop_ms || o->cooldown_ms[host] > m.now_ms, host);
		m.refused_n++;
		sim_cancel(o, i);
		return;
	}
	HOLDS(has_lease(o) && m.owner[host % SHARDS] == me(o), host);
	HOLDS(o->cooldown_ms[host] <= m.now_ms, host);
	HOLDS(m.now_ms - m.sent_ms[host] >= j->gap_ms, host);
	fw_hosts_sent(o->t, &j->item, mono(o));
	m.sent_ms[host] = m.now_ms;
	m.sent_n++;
	m.further_n += j->further;
	j->life = SENT;
}

static void sim_done(struct sim_owner *o, int i)
{
	enum fw_host_health health = m.is_calm || chance(12) ? FW_HOST_HEALTHY : FW_HOST_THROTTLED;
	int64_t cooldown_ms = m.is_calm || chance(40) ? 0 : m.now_ms + 1000 + chance(15000);
	int host = m.feed[i].host;
	int64_t *p = &o->learned_delay_ms[host];

	fw_hosts_done(o->t, &o->job[i].item, health, cooldown_ms ? cooldown_ms + WALL : 0, both(o));
	o->job[i].life = DONE;
	o->cooldown_ms[host] = FW_MAX(o->cooldown_ms[host], cooldown_ms);
	*p = health == FW_HOST_THROTTLED ? FW_MIN(FW_MAX(*p * 2, 1000), 600000) : *p * 10000 / (10000 + *p);
	*p = *p > 50 ? *p : 0;
	for (int k = 0; k < FEEDS; k++) { /* the shortest gap that was in force since its permission */
		if (m.feed[k].host == host && o->job[k].life == PERMITTED)
			o->job[k].gap_ms = FW_MIN(o->job[k].gap_ms, sim_gap(&o->job[k], *p));
	}
	ck_assert_int_eq(fw_hosts_learned_delay_ms(o->t, host + 1), *p);
}

static void sim_requests(struct sim_owner *o)
{
	for (int i = 0; i < FEEDS; i++) {
		struct sim_job *j = &o->job[i];

		if (j->life == PERMITTED && j->send_ms <= m.now_ms) {
			sim_send(o, i);
		} else if (j->life == SENT && j->end_ms <= m.now_ms) {
			sim_done(o, i);
		} else if (j->life == SENT && !chance(800)) {
			fw_hosts_further(o->t, &j->item, mono(o));
			j->life = FURTHER;
		}
	}
}

static void sim_join(struct sim_owner *o)
{
	int64_t offset_ms = (int64_t)chance(1000000) - 500000;

	sim_expire(); /* the dead owner whose place this is */
	for (int s = 0; s < SHARDS; s++) {
		if (m.owner[s] == me(o))
			return;
	}
	*o = (struct sim_owner){.offset_ms = offset_ms,
		.until_ms = m.now_ms + LEASE_MS,
		.t = table(m.rules.host_concurrency, m.rules.gap_ms)};
	m.joined_n++;
}

static void sim_die(struct sim_owner *o)
{
	fw_hosts_destroy(o->t);
	o->t = NULL;
	m.died_n++;
}

static void sim_turn(struct sim_owner *o)
{
	if (!o->t) {
		if (!chance(m.is_calm ? 100 : 1500))
			sim_join(o);
		return;
	}
	if (o->frozen_ms > m.now_ms || chance(2))
		return;
	if (!m.is_calm && !chance(3000)) {
		sim_die(o);
		return;
	}
	if (!m.is_calm && !chance(1500)) {
		o->frozen_ms = m.now_ms + 500 + chance(25000);
		m.froze_n++;
		return;
	}
	sim_requests(o); /* an owner that wakes up still believes in its lease */
	if (mono(o) >= o->stop_ms)
		sim_stop(o);
	sim_start(o);
	if (o->commit_ms <= m.now_ms)
		sim_commit(o);
	if (o->t && o->heartbeat_ms <= m.now_ms)
		sim_heartbeat(o);
	if (o->t && !chance(10))
		sim_claim(o);
}

static void sim_steps(int n)
{
	for (int k = 0; k < n; k++) {
		m.now_ms += 1 + chance(25);
		for (int i = 0; i < OWNERS; i++)
			sim_turn(&m.o[i]);
	}
}

static size_t unserved_since(int64_t since_ms)
{
	size_t n = 0;

	for (int i = 0; i < FEEDS; i++)
		n += m.feed[i].served_ms <= since_ms;
	return n;
}

static void sim_run(uint64_t seed, int steps)
{
	static const int64_t gap_ms[] = {1000, 0, 300};
	int64_t calm_ms;

	memset(&m, 0, sizeof(m));
	m.seed = m.x = seed;
	m.rules = (struct fw_hosts_rules){(uint32_t)(seed % 4), gap_ms[seed % 3]};
	for (int s = 0; s < SHARDS; s++)
		m.owner[s] = -1;
	for (int h = 0; h < HOSTS; h++)
		m.sent_ms[h] = -FW_DAY_MS;
	for (int i = 0; i < FEEDS; i++) /* a quarter belong to one host */
		m.feed[i] = (struct sim_feed){
			.host = i % 4 ? (int)chance(HOSTS) : 3, .claimed = -1, .due_ms = chance(5000)};
	m.now_ms = 1;
	for (int i = 0; i < OWNERS; i++)
		sim_join(&m.o[i]);
	sim_steps(steps);
	/* no starvation: when all is calm, each feed gets its turn, again and again */
	m.is_calm = true;
	for (int turn = 0; turn < 2; turn++) {
		calm_ms = m.now_ms;
		for (int k = 0; k < 400 && unserved_since(calm_ms); k++)
			sim_steps(100);
		ck_assert_msg(!unserved_since(calm_ms), "seed %llu: %zu feeds starve", (unsigned long long)seed,
			unserved_since(calm_ms));
	}
	printf("# seed %llu: host_concurrency %u, gap %lld ms, %lld s: "
	       "%u requests (%u further), %u refused; %u joined, %u died, %u froze, %u lost, %u left\n",
		(unsigned long long)seed, m.rules.host_concurrency, (long long)m.rules.gap_ms,
		(long long)(m.now_ms / 1000), m.sent_n, m.further_n, m.refused_n, m.joined_n, m.died_n, m.froze_n,
		m.lost_n, m.left_n);
	for (int i = 0; i < OWNERS; i++)
		fw_hosts_destroy(m.o[i].t);
}

START_TEST(ten_owners)
{
	const char *seed = getenv("FW_SEED");

	if (seed)
		sim_run(strtoull(seed, NULL, 10), 10000);
	for (uint64_t i = 1; !seed && i <= 12; i++)
		sim_run(i, 8500);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit sched hosts");
	TCase *c = tcase_create("rules"), *p = tcase_create("owners");

	tcase_add_test(c, budget);
	tcase_add_test(c, gap);
	tcase_add_test(c, further);
	tcase_add_test(c, further_is_refused);
	tcase_add_test(c, cooldown);
	tcase_add_test(c, learned_delay);
	tcase_add_test(c, order);
	tcase_add_test(c, withdrawn);
	tcase_add_test(c, lease);
	tcase_add_test(c, rows);
	tcase_add_test(c, rows_back);
	tcase_add_test(c, after_death);
	tcase_add_test(c, leaving);
	tcase_add_test(c, forgotten);
	tcase_add_test(c, wall_jumps);
	suite_add_tcase(s, c);
	tcase_add_test(p, ten_owners);
	tcase_set_timeout(p, 60);
	suite_add_tcase(s, p);
	return run_suite(s);
}
