/* SPDX-License-Identifier: ISC */
/*
 * The blocking thread pool is fair: an account leaves a thread to others, also while addresses are
 * fetched, takes turns with them, and has so many jobs. A job that runs later runs when it says.
 */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/str.h"
#include "http/server/pool.h"
#include "../../suite.h"

#define JOBS 300

/* A job of an account, which waits at its gate. */
struct work {
	struct pool_job job;
	int64_t account_id;
	bool is_slow;     /* it waits until the gate opens */
	bool fetches;     /* meanwhile it fetches an address */
	int64_t later_ms; /* not 0: it runs again then */
	enum pool_turn turn;
};

static struct pool *pool;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_open;
static int running[6], most[6];
static int64_t order[JOBS];
static int done_n, refused_n;

static int work_run(struct pool_job *j, struct fw_store *st, struct fw_err *err)
{
	struct work *w = (struct work *)j;

	ck_assert_msg(st, "%s", err->text);
	w->turn = w->account_id ? pool_job_is_of(pool, j, w->account_id) : POOL_NOW;
	if (w->turn == POOL_NOT_YET)
		return POOL_LATER;
	if (w->later_ms) {
		j->at_ms = w->later_ms;
		w->later_ms = 0;
		return POOL_LATER;
	}
	if (w->turn == POOL_TOO_MANY)
		return 0;
	if (w->fetches)
		pool_job_fetches(pool, j, true);
	pthread_mutex_lock(&lock);
	running[w->account_id]++;
	most[w->account_id] = FW_MAX(most[w->account_id], running[w->account_id]);
	pthread_cond_broadcast(&changed);
	while (w->is_slow && !is_open)
		pthread_cond_wait(&changed, &lock);
	running[w->account_id]--;
	pthread_mutex_unlock(&lock);
	if (w->fetches)
		pool_job_fetches(pool, j, false);
	return 0;
}

static void work_done(struct pool_job *j)
{
	struct work *w = (struct work *)j;

	pthread_mutex_lock(&lock);
	refused_n += w->turn == POOL_TOO_MANY;
	order[done_n++] = w->account_id;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void put_work(struct work *w)
{
	w->job = (struct pool_job){.run = work_run, .done = work_done};
	ck_assert(pool_take_slot(pool));
	pool_put(pool, &w->job);
}

static void put(struct work *w, int64_t account_id, bool is_slow)
{
	*w = (struct work){.account_id = account_id, .is_slow = is_slow};
	put_work(w);
}

/* Wait until *n is at least so many. */
static void await(const int *n, int least)
{
	pthread_mutex_lock(&lock);
	while (*n < least)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void gate(bool opens)
{
	pthread_mutex_lock(&lock);
	is_open = opens;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void start_with(int64_t threads, bool discovery)
{
	static struct fw_config *c;
	struct fw_err err;

	ck_assert_int_eq(fw_config_create(&c, &err), 0);
	ck_assert_int_eq(fw_config_set(c, "store", "memory:", "test", &err), 0);
	c->serve_pool_threads = threads;
	c->serve_discovery = discovery;
	ck_assert_msg(!pool_open(c, &pool, &err), "%s", err.text);
}

static void start(int64_t threads)
{
	start_with(threads, false);
}

START_TEST(an_account_leaves_a_thread_to_others)
{
	static struct work alice[20], bob;

	start(3);
	for (size_t i = 0; i < FW_N(alice); i++)
		put(&alice[i], 1, true);
	await(&running[1], 2);
	put(&bob, 2, false);
	await(&done_n, 1);
	ck_assert_int_eq(order[0], 2);
	gate(true);
	await(&done_n, 21);
	ck_assert_int_eq(most[1], 2);
	pool_destroy(pool);
}
END_TEST

/* Three addresses are fetched, one account asks for more than it may have; others are served. */
START_TEST(fetches_take_no_thread_from_requests)
{
	static struct work fetch[3], alice[4], own, bob;

	start_with(2, true);
	for (int i = 0; i < 3; i++) {
		fetch[i] = (struct work){.account_id = 1 + i, .is_slow = true, .fetches = true};
		put_work(&fetch[i]);
		await(&running[1 + i], 1);
	}
	put(&own, 1, false); /* of an account that has an address fetched */
	await(&done_n, 1);
	for (size_t i = 0; i < FW_N(alice); i++)
		put(&alice[i], 4, true);
	await(&running[4], 1);
	put(&bob, 5, false);
	await(&done_n, 2);
	ck_assert(order[0] == 1 && order[1] == 5);
	gate(true);
	await(&done_n, 9);
	ck_assert_int_eq(most[4], 1);
	pool_destroy(pool);
}
END_TEST

START_TEST(accounts_take_turns)
{
	static struct work alice[60], bob[3], nobody;

	start(1);
	put(&nobody, 0, true);
	await(&running[0], 1);
	for (size_t i = 0; i < FW_N(alice); i++)
		put(&alice[i], 1, false);
	for (size_t i = 0; i < FW_N(bob); i++)
		put(&bob[i], 2, false);
	gate(true);
	await(&done_n, 64);
	for (int i = 0, bobs = 0; i < 8; i++) { /* its own among the first */
		bobs += order[i] == 2;
		ck_assert_msg(i < 7 || bobs == 3, "%d of 3", bobs);
	}
	pool_destroy(pool);
}
END_TEST

START_TEST(an_account_has_so_many_jobs)
{
	static struct work alice[POOL_ACCOUNT_MAX + 20], bob;

	start(2);
	for (size_t i = 0; i < FW_N(alice); i++)
		put(&alice[i], 1, true);
	await(&refused_n, 20);
	put(&bob, 2, false);
	await(&done_n, 21);
	gate(true);
	await(&done_n, (int)FW_N(alice) + 1);
	ck_assert_int_eq(refused_n, 20);
	pool_destroy(pool);
}
END_TEST

START_TEST(a_job_runs_again_when_it_says)
{
	static struct work late, soon;
	int64_t now_ms = fw_mono_ms();

	start(2);
	put(&late, 1, false);
	late.later_ms = now_ms + 60;
	put(&soon, 2, false);
	soon.later_ms = now_ms + 30;
	await(&done_n, 2);
	pool_destroy(pool);
}
END_TEST

static void setup(void)
{
	is_open = false;
	done_n = refused_n = 0;
}

int main(void)
{
	TCase *tc = tcase_create("pool");
	Suite *s = suite_create("unit http pool");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, an_account_leaves_a_thread_to_others);
	tcase_add_test(tc, fetches_take_no_thread_from_requests);
	tcase_add_test(tc, accounts_take_turns);
	tcase_add_test(tc, an_account_has_so_many_jobs);
	tcase_add_test(tc, a_job_runs_again_when_it_says);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
