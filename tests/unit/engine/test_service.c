/* SPDX-License-Identifier: ISC */
/* A service on a scripted store and a scripted lead. Cases wait for what its thread has done. */
#include <check.h>
#include <pthread.h>
#include <string.h>

#include "api/service.h"
#include "base/clock.h"
#include "base/str.h"
#include "engine/lead.h"
#include "../../suite.h"

static int a_store; /* its address stands for an open store */
static struct fw_store *const store = (struct fw_store *)(void *)&a_store;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static char trace[400]; /* a letter for each call, but repeated ones; under the lock, as the next */
static int open_rc, first_rc, left_n;
static int64_t tick_ms, later_ms;
static bool mine, is_idle;
static struct service *s;
static struct fw_err err;

int __wrap_fw_config_store(const struct fw_config *c, unsigned flags, struct fw_store **out, struct fw_err *e);
int __wrap_fw_store_ping(struct fw_store *st, struct fw_err *e);
void __wrap_fw_store_close(struct fw_store *st);
bool __wrap_fw_store_is_remote(const char *url);
int __wrap_lead_take(struct lead *l, struct fw_store *st, bool *is_mine, int64_t *was_until_ms, struct fw_err *e);
void __wrap_lead_leave(struct lead *l, struct fw_store *st);

/* Note a call; what is scripted is read with it. */
static int note(char letter, const int *scripted)
{
	size_t n;
	int rc;

	pthread_mutex_lock(&lock);
	n = strlen(trace);
	if (n + 1 < sizeof(trace) && (!n || trace[n - 1] != letter))
		trace[n] = letter;
	rc = scripted ? *scripted : 0;
	pthread_cond_broadcast(&change);
	pthread_mutex_unlock(&lock);
	return rc;
}

int __wrap_fw_config_store(const struct fw_config *c, unsigned flags, struct fw_store **out, struct fw_err *e)
{
	int rc = note('o', &open_rc);

	(void)c;
	(void)flags;
	*out = rc ? NULL : store;
	return rc ? fw_err_set(e, rc, "no store") : 0;
}

int __wrap_fw_store_ping(struct fw_store *st, struct fw_err *e)
{
	(void)st;
	(void)e;
	return 0;
}

void __wrap_fw_store_close(struct fw_store *st)
{
	if (st)
		note('c', NULL);
}

bool __wrap_fw_store_is_remote(const char *url)
{
	(void)url;
	return true;
}

int __wrap_lead_take(struct lead *l, struct fw_store *st, bool *is_mine, int64_t *was_until_ms, struct fw_err *e)
{
	(void)st;
	(void)e;
	pthread_mutex_lock(&lock);
	*is_mine = mine;
	pthread_mutex_unlock(&lock);
	*was_until_ms = 0;
	l->safe_until_ms = 0; /* always in doubt */
	return 0;
}

void __wrap_lead_leave(struct lead *l, struct fw_store *st)
{
	(void)l;
	note('-', NULL);
	left_n += st != NULL;
}

static int run_first(void *ctx, struct fw_store *st, struct fw_err *e)
{
	int rc = note('1', &first_rc);

	(void)ctx;
	ck_assert_ptr_eq(st, store);
	return rc ? fw_err_set(e, rc, "the first task failed") : 0;
}

static int run_second(void *ctx, struct fw_store *st, struct fw_err *e)
{
	(void)ctx;
	(void)st;
	(void)e;
	return note('2', NULL);
}

static int run_leads(void *ctx, struct fw_store *st, struct fw_err *e)
{
	(void)ctx;
	(void)st;
	return service_check_lead(s, e) || note('L', NULL);
}

static int run_offline(void *ctx, struct fw_store *st, struct fw_err *e)
{
	(void)ctx;
	(void)e;
	return note(st ? 'n' : service_store(s) ? 'b' : 'x', NULL);
}

static int on_won(void *ctx, struct fw_store *st, int64_t until_ms, struct fw_err *e)
{
	(void)ctx;
	(void)st;
	(void)until_ms;
	(void)e;
	return note('+', NULL);
}

static void on_lost(void *ctx)
{
	(void)ctx;
	note('l', NULL);
}

static void on_closing(void *ctx)
{
	(void)ctx;
	note('e', NULL);
}

static bool on_idle(void *ctx)
{
	bool idle;

	(void)ctx;
	note('i', NULL);
	pthread_mutex_lock(&lock);
	idle = is_idle;
	pthread_mutex_unlock(&lock);
	return idle;
}

static void wait_for(const char *part)
{
	pthread_mutex_lock(&lock);
	while (!strstr(trace, part))
		pthread_cond_wait(&change, &lock);
	pthread_mutex_unlock(&lock);
}

static void starts(const struct service_task *task, size_t n, bool leads, bool waits)
{
	static char url[] = "x";
	static struct fw_config config = {.store = url};
	struct service_options o = {.config = &config,
		.who = "tests",
		.waits = "all wait",
		.task = task,
		.task_n = n,
		.tick_ms = tick_ms,
		.stop_ms = FW_HOUR_MS,
		.lead_kind = leads ? FW_STR("tests") : FW_STR_NONE,
		.leads = "tests",
		.follow_ms = 1,
		.won = on_won,
		.lost = on_lost,
		.idle = waits ? on_idle : NULL,
		.closing = on_closing};

	ck_assert_int_eq(service_open(&o, &s, &err), 0);
	ck_assert_int_eq(service_start(s, &err), 0);
}

START_TEST(tasks_run_in_the_order_of_their_table)
{
	const struct service_task task[] = {{FW_HOUR_MS, 0, run_first}, {FW_HOUR_MS, 0, run_second}};

	starts(task, FW_N(task), false, false);
	wait_for("o12");
	service_close(s);
	ck_assert_str_eq(trace, "o12e-lc");
}
END_TEST

START_TEST(an_error_ends_the_round_and_the_connection)
{
	const struct service_task task[] = {{FW_HOUR_MS, 0, run_first}, {FW_HOUR_MS, 0, run_second}};

	first_rc = FW_EIO;
	starts(task, FW_N(task), false, false);
	wait_for("o1lco1lc"); /* the second was not reached, and the first one runs again */
	pthread_mutex_lock(&lock);
	first_rc = 0;
	pthread_mutex_unlock(&lock);
	wait_for("o12");
	service_close(s);
}
END_TEST

START_TEST(a_task_runs_without_the_store_if_it_says_so)
{
	const struct service_task task[] = {{0, 0, run_second}, {0, TASK_OFFLINE, run_offline}};

	open_rc = FW_EIO;
	starts(task, FW_N(task), false, false);
	wait_for("ox");
	pthread_mutex_lock(&lock);
	ck_assert_ptr_null(strchr(trace, '2'));
	open_rc = 0;
	pthread_mutex_unlock(&lock);
	wait_for("2n");
	service_close(s);
}
END_TEST

/* It waits for the next try; the connection is kept. */
START_TEST(a_store_that_is_busy_is_not_lost)
{
	const struct service_task task[] = {{0, TASK_OFFLINE, run_offline}, {0, 0, run_first}};

	first_rc = FW_EAGAIN;
	tick_ms = 1;
	starts(task, FW_N(task), false, false);
	wait_for("on1b");
	service_close(s);
}
END_TEST

static int run_later(void *ctx, struct fw_store *st, struct fw_err *e)
{
	(void)ctx;
	(void)st;
	(void)e;
	service_in(s, 0, later_ms);
	return note(strchr(trace, 'w') ? 'v' : 'w', NULL);
}

START_TEST(a_task_of_each_round_makes_one_later)
{
	const struct service_task task[] = {{0, 0, run_later}};

	later_ms = 1;
	starts(task, FW_N(task), false, false);
	wait_for("wv");
	service_close(s);
}
END_TEST

START_TEST(a_task_of_each_round_runs_when_woken)
{
	const struct service_task task[] = {{0, 0, run_later}};

	later_ms = FW_HOUR_MS;
	starts(task, FW_N(task), false, false);
	wait_for("w");
	service_wake(s);
	wait_for("wv");
	service_close(s);
}
END_TEST

START_TEST(the_lead_is_won_lost_and_given_back)
{
	const struct service_task task[] = {{1, TASK_LEADS, run_leads}, {1, TASK_FOLLOWS, run_second}};

	starts(task, FW_N(task), true, false);
	wait_for("o2");
	ck_assert(!service_leads(s));
	pthread_mutex_lock(&lock);
	mine = true;
	pthread_mutex_unlock(&lock);
	wait_for("+L");
	ck_assert(service_leads(s));
	pthread_mutex_lock(&lock);
	mine = false;
	pthread_mutex_unlock(&lock);
	wait_for("l");
	pthread_mutex_lock(&lock);
	memset(trace, 0, sizeof(trace));
	mine = true;
	pthread_mutex_unlock(&lock);
	wait_for("L");
	service_close(s);
	ck_assert_int_eq(left_n, 1); /* while the store was open */
	ck_assert_ptr_nonnull(strstr(trace, "e-"));
}
END_TEST

START_TEST(a_stop_waits_until_the_owner_is_idle)
{
	const struct service_task task[] = {{0, 0, run_first}};

	starts(task, FW_N(task), false, true);
	wait_for("o1");
	service_stop(s);
	wait_for("i1"); /* rounds go on */
	pthread_mutex_lock(&lock);
	ck_assert_ptr_null(strchr(trace, 'e'));
	is_idle = true;
	pthread_mutex_unlock(&lock);
	service_wake(s);
	service_close(s);
	ck_assert_ptr_nonnull(strstr(trace, "ie"));
}
END_TEST

START_TEST(one_that_was_not_started_closes)
{
	struct service_options o = {.who = "tests", .waits = "all wait", .closing = on_closing};

	ck_assert_int_eq(service_open(&o, &s, &err), 0);
	service_close(s);
	ck_assert_str_eq(trace, "e-");
}
END_TEST

static int wanted_n;

static int run_count(void *ctx, struct fw_store *st, struct fw_err *e)
{
	(void)ctx;
	(void)st;
	(void)e;
	pthread_mutex_lock(&lock);
	if (wanted_n == 10 && !strchr(trace, 'a'))
		trace[strlen(trace)] = 'a';
	pthread_cond_broadcast(&change);
	pthread_mutex_unlock(&lock);
	return 0;
}

static void *waker(void *ctx)
{
	(void)ctx;
	for (int i = 0; i < 100; i++)
		service_wake(s);
	pthread_mutex_lock(&lock);
	wanted_n++;
	pthread_mutex_unlock(&lock);
	service_wake(s);
	return NULL;
}

START_TEST(ten_threads_wake_it)
{
	const struct service_task task[] = {{0, 0, run_count}};
	pthread_t id[10];

	starts(task, FW_N(task), false, false);
	for (size_t i = 0; i < FW_N(id); i++)
		ck_assert_int_eq(pthread_create(&id[i], NULL, waker, NULL), 0);
	wait_for("a"); /* no wake was lost */
	for (size_t i = 0; i < FW_N(id); i++)
		pthread_join(id[i], NULL);
	service_close(s);
}
END_TEST

int main(void)
{
	const TTest *const all[] = {tasks_run_in_the_order_of_their_table, an_error_ends_the_round_and_the_connection,
		a_task_runs_without_the_store_if_it_says_so, a_store_that_is_busy_is_not_lost,
		a_task_of_each_round_makes_one_later, a_task_of_each_round_runs_when_woken,
		the_lead_is_won_lost_and_given_back, a_stop_waits_until_the_owner_is_idle,
		one_that_was_not_started_closes, ten_threads_wake_it};
	TCase *tc = tcase_create("service");
	Suite *suite = suite_create("unit engine service");

	for (size_t i = 0; i < FW_N(all); i++)
		tcase_add_test(tc, all[i]);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
