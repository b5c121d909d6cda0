/* SPDX-License-Identifier: ISC */
/* A link to the store: a scripted store, a clock of the test's, and the lines of the log. */
#include <check.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/store_link.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "../../suite.h"

static int64_t mono_us;
static uint64_t jitter;
static bool remote;
static int open_rc, ping_rc, opened_rc;
static unsigned open_n, ping_n, close_n, lost_n, warn_n, info_n;
static char last_warn[600], last_info[600], last_error[600];
static int a_store; /* its address stands for an open store */
static struct fw_err err;

int64_t __wrap_fw_mono_ms(void);
int64_t __wrap_fw_mono_us(void);
bool __wrap_fw_store_is_remote(const char *url);
int __wrap_fw_config_store(const struct fw_config *c, unsigned flags, struct fw_store **out, struct fw_err *e);
int __wrap_fw_store_ping(struct fw_store *st, struct fw_err *e);
void __wrap_fw_store_close(struct fw_store *st);
FW_PRINTF(2, 3) void __wrap_fw_log(enum fw_log_level level, const char *fmt, ...);

int64_t __wrap_fw_mono_ms(void)
{
	return mono_us / 1000;
}

/* Read for the jitter only. */
int64_t __wrap_fw_mono_us(void)
{
	jitter = jitter * 6364136223846793005U + 1442695040888963407U;
	return (int64_t)(jitter >> 33);
}

bool __wrap_fw_store_is_remote(const char *url)
{
	(void)url;
	return remote;
}

static int scripted(int rc, const char *what, struct fw_err *e)
{
	return rc ? fw_err_set(e, rc, "%s failed", what) : 0;
}

int __wrap_fw_config_store(const struct fw_config *c, unsigned flags, struct fw_store **out, struct fw_err *e)
{
	(void)c;
	ck_assert_uint_eq(flags, FW_STORE_CREATE);
	open_n++;
	*out = open_rc ? NULL : (struct fw_store *)(void *)&a_store;
	return scripted(open_rc, "opening", e);
}

int __wrap_fw_store_ping(struct fw_store *st, struct fw_err *e)
{
	ck_assert_ptr_eq(st, &a_store);
	ping_n++;
	return scripted(ping_rc, "the ping", e);
}

void __wrap_fw_store_close(struct fw_store *st)
{
	close_n += st != NULL;
}

void __wrap_fw_log(enum fw_log_level level, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (level == FW_LOG_ERROR) {
		memcpy(last_error, text, sizeof(text));
	} else if (level == FW_LOG_WARN) {
		warn_n++;
		memcpy(last_warn, text, sizeof(text));
	} else if (level == FW_LOG_INFO) {
		info_n++;
		memcpy(last_info, text, sizeof(text));
	}
}

static void on_lost(void *ctx)
{
	ck_assert_ptr_nonnull(((struct store_link *)ctx)->st); /* before it is closed */
	lost_n++;
}

static int on_opened(void *ctx, struct fw_store *st, struct fw_err *e)
{
	(void)ctx;
	ck_assert_ptr_eq(st, &a_store);
	return scripted(opened_rc, "the first query", e);
}

static char store_name[] = "x";
static struct fw_config config = {.store = store_name};
static struct store_link l;

static void link_init(struct store_link *k, const char *who)
{
	*k = (struct store_link){
		.config = &config, .who = who, .waits = "all wait", .opened = on_opened, .lost = on_lost, .ctx = k};
}

static void setup(void)
{
	mono_us = 1000000000;
	remote = true;
	link_init(&l, "tests");
}

static void pass(int64_t ms)
{
	mono_us += ms * 1000;
}

static void opens(void)
{
	ck_assert_ptr_eq(store_link_get(&l, &err), &a_store);
	ck_assert(!store_link_after(&l, 0, NULL));
}

static bool after(int rc)
{
	struct fw_err e = {.rc = rc, .text = "broken"};

	return store_link_after(&l, rc, &e);
}

START_TEST(opens_once_and_keeps_it)
{
	opens();
	opens();
	ck_assert_uint_eq(open_n, 1);
	ck_assert_uint_eq(ping_n, 0);
	ck_assert_uint_eq(warn_n + info_n, 0);
	store_link_close(&l);
	ck_assert_uint_eq(close_n, 1);
	ck_assert_uint_eq(lost_n, 1);
}
END_TEST

START_TEST(a_broken_connection_is_opened_again_at_once)
{
	opens();
	ck_assert(after(FW_EIO));
	ck_assert_uint_eq(lost_n, 1);
	ck_assert(store_link_is_down(&l));
	ck_assert_uint_eq(store_links_down_n(), 1);
	ck_assert_int_eq(store_link_wait_ms(&l), 0);
	pass(1);
	opens();
	ck_assert(!store_link_is_down(&l));
	ck_assert_uint_eq(store_links_down_n(), 0);
	ck_assert_uint_eq(open_n, 2);
	ck_assert_uint_eq(warn_n, 1);
	ck_assert_str_eq(last_warn, "tests: the store is unavailable: broken; all wait");
	ck_assert_uint_eq(info_n, 1);
	ck_assert(strstr(last_info, "tests: the store answers again, after "));
}
END_TEST

/* The pause doubles from 100 ms to 5 s, and half of it is random. */
START_TEST(the_backoff_grows_within_bounds_and_spreads)
{
	int64_t bound_ms = STORE_LINK_BACKOFF_MIN_MS, least_ms = INT64_MAX, most_ms = 0;

	open_rc = FW_EIO;
	for (int i = 0; i < 200; i++) {
		int64_t wait_ms;

		ck_assert_ptr_null(store_link_get(&l, &err));
		ck_assert_int_eq(err.rc, FW_EIO);
		ck_assert_str_eq(err.text, "opening failed");
		wait_ms = store_link_wait_ms(&l);
		ck_assert_int_ge(wait_ms, bound_ms / 2);
		ck_assert_int_le(wait_ms, bound_ms);
		if (bound_ms == STORE_LINK_BACKOFF_MAX_MS) {
			least_ms = FW_MIN(least_ms, wait_ms);
			most_ms = FW_MAX(most_ms, wait_ms);
		}
		ck_assert_ptr_null(store_link_get(&l, &err)); /* not before its time */
		ck_assert_uint_eq(open_n, i + 1);
		pass(wait_ms);
		bound_ms = FW_MIN(2 * bound_ms, STORE_LINK_BACKOFF_MAX_MS);
	}
	ck_assert_int_le(least_ms, STORE_LINK_BACKOFF_MAX_MS * 55 / 100);
	ck_assert_int_ge(most_ms, STORE_LINK_BACKOFF_MAX_MS * 95 / 100);
	open_rc = 0;
	opens();
	ck_assert(!after(FW_EAGAIN));
	ck_assert_int_le(store_link_wait_ms(&l), STORE_LINK_BACKOFF_MIN_MS); /* it begins anew */
}
END_TEST

START_TEST(three_refusals_of_a_server_count_as_a_broken_connection)
{
	opens();
	for (int i = 0; i < 2; i++) {
		ck_assert(!after(FW_EAGAIN));
		ck_assert_int_gt(store_link_wait_ms(&l), 0);
		ck_assert_ptr_eq(store_link_get(&l, &err), &a_store); /* it is kept */
		pass(store_link_wait_ms(&l));
	}
	ck_assert_uint_eq(warn_n, 0); /* no outage yet */
	ck_assert(after(FW_EAGAIN));
	ck_assert_uint_eq(warn_n, 1);
	ck_assert_uint_eq(close_n, 1);
	pass(store_link_wait_ms(&l));
	opens();
	ck_assert_uint_eq(open_n, 2);
}
END_TEST

START_TEST(a_file_is_not_opened_again_for_refusals)
{
	remote = false;
	opens();
	for (int i = 0; i < 10; i++) {
		ck_assert_int_eq(after(FW_EAGAIN), i >= 2);
		pass(store_link_wait_ms(&l));
	}
	ck_assert_uint_eq(close_n, 0);
	ck_assert_uint_eq(warn_n, 1);
	ck_assert(!after(0));
	ck_assert_uint_eq(info_n, 1);
}
END_TEST

START_TEST(refusals_that_take_long_begin_an_outage_sooner)
{
	opens();
	ck_assert(!after(FW_EAGAIN));
	pass(STORE_LINK_REFUSED_MS);
	ck_assert(after(FW_EAGAIN));
	ck_assert_uint_eq(warn_n, 1);
}
END_TEST

START_TEST(a_while_without_refusals_counts_anew)
{
	opens();
	for (int i = 0; i < 10; i++) {
		ck_assert(!after(FW_EAGAIN));
		ck_assert(!after(FW_EAGAIN));
		pass(STORE_LINK_REFUSED_MS);
		ck_assert(!after(0));
	}
	ck_assert_uint_eq(close_n + warn_n, 0);
}
END_TEST

/* On a full disk heartbeats succeed and commits do not. */
START_TEST(successes_between_refusals_hide_no_outage)
{
	opens();
	for (int i = 0; i < 3; i++) {
		ck_assert(!after(0));
		ck_assert_int_eq(after(FW_EAGAIN), i == 2);
	}
	ck_assert_uint_eq(warn_n, 1);
}
END_TEST

/* What a replica still answers does not end an outage: the ping does, which checks writing. */
START_TEST(an_outage_lasts_until_a_ping_is_answered)
{
	remote = false; /* so that it is kept */
	opens();
	for (int i = 0; i < STORE_LINK_REFUSED_MAX; i++)
		(void)after(FW_EAGAIN);
	pass(10);
	ping_rc = FW_EIO;
	ck_assert(after(0));
	ck_assert(store_link_is_down(&l));
	ck_assert_uint_eq(close_n, 1);
	ck_assert_uint_eq(info_n, 0);
	pass(store_link_wait_ms(&l));
	opens(); /* an opening pings */
	ck_assert_uint_eq(info_n, 1);
}
END_TEST

START_TEST(other_errors_are_the_callers_business)
{
	opens();
	ck_assert(!after(FW_EINVAL));
	ck_assert(!after(FW_ENOTFOUND));
	ck_assert(!after(FW_ESTALE));
	ck_assert_uint_eq(close_n + warn_n, 0);
}
END_TEST

START_TEST(what_fails_after_the_opening_is_an_opening_that_failed)
{
	opened_rc = FW_EAGAIN;
	ck_assert_ptr_null(store_link_get(&l, &err));
	ck_assert_int_eq(err.rc, FW_EAGAIN);
	ck_assert_uint_eq(close_n, 1);
	ck_assert_uint_eq(lost_n, 0); /* nothing was learned there */
	opened_rc = 0;
	pass(store_link_wait_ms(&l));
	opens();
}
END_TEST

START_TEST(an_outage_is_logged_once_and_again_every_ten_minutes)
{
	int64_t until_us;

	open_rc = FW_EIO;
	until_us = mono_us + FW_HOUR_MS * 1000;
	while (mono_us < until_us) {
		ck_assert_ptr_null(store_link_get(&l, &err));
		pass(store_link_wait_ms(&l));
	}
	ck_assert_uint_eq(warn_n, 6);
	open_rc = 0;
	opens();
	ck_assert_uint_eq(info_n, 1);
	ck_assert_ptr_nonnull(strstr(last_info, "after 1 h"));
}
END_TEST

START_TEST(links_with_one_name_are_one_in_the_log)
{
	struct store_link k;

	link_init(&k, "tests");
	open_rc = FW_EIO;
	ck_assert_ptr_null(store_link_get(&l, &err));
	ck_assert_ptr_null(store_link_get(&k, &err));
	ck_assert_uint_eq(warn_n, 1);
	ck_assert_uint_eq(store_links_down_n(), 2);
	open_rc = 0;
	pass(1000);
	opens();
	ck_assert_uint_eq(info_n, 0); /* the other one still waits */
	ck_assert_int_eq(store_link_idle_ms(&k), 0);
	store_link_idle(&k);
	ck_assert(!store_link_is_down(&k));
	ck_assert_uint_eq(info_n, 1);
	store_link_close(&k);
}
END_TEST

START_TEST(a_link_that_is_closed_in_an_outage_says_nothing)
{
	open_rc = FW_EIO;
	ck_assert_ptr_null(store_link_get(&l, &err));
	store_link_close(&l);
	ck_assert_uint_eq(store_links_down_n(), 0);
	ck_assert_uint_eq(info_n, 0);
}
END_TEST

START_TEST(a_stop_does_not_wait)
{
	open_rc = FW_EIO;
	ck_assert_ptr_null(store_link_get(&l, &err));
	ck_assert_int_gt(store_link_wait_ms(&l), 0);
	store_link_try_now(&l);
	open_rc = 0;
	opens();
}
END_TEST

START_TEST(a_link_pings_when_its_last_ping_is_old)
{
	opens();
	pass(STORE_LINK_PING_MS - 1);
	opens();
	ck_assert_uint_eq(ping_n, 0);
	pass(1);
	opens();
	ck_assert_uint_eq(ping_n, 1);
	pass(STORE_LINK_PING_MS);
	ping_rc = FW_EIO;
	ck_assert_ptr_eq(store_link_get(&l, &err), &a_store); /* opened again, at once */
	ck_assert_uint_eq(open_n, 2);
	ck_assert_uint_eq(lost_n, 1);
}
END_TEST

START_TEST(what_waiting_does_not_mend_is_tried_rarely)
{
	opens();
	ck_assert(after(FW_EUNUSABLE));
	ck_assert(store_link_is_unusable(&l));
	ck_assert_uint_eq(close_n, 1);
	ck_assert_int_ge(store_link_wait_ms(&l), STORE_LINK_BACKOFF_MAX_MS / 2);
	ck_assert_str_eq(last_error, "tests: the store is unusable: broken; waiting does not mend this; all wait");
	pass(store_link_wait_ms(&l));
	opens(); /* a person has mended it */
	ck_assert(!store_link_is_unusable(&l));
}
END_TEST

/* So it leaves a server that became a replica, and opens nothing that was not open. */
START_TEST(an_idle_link_pings)
{
	ck_assert_int_eq(store_link_idle_ms(&l), -1);
	store_link_idle(&l);
	ck_assert_uint_eq(open_n, 0);
	opens();
	ck_assert_int_eq(store_link_idle_ms(&l), STORE_LINK_PING_MS);
	store_link_idle(&l);
	ck_assert_uint_eq(ping_n, 0);
	pass(STORE_LINK_PING_MS);
	ck_assert_int_eq(store_link_idle_ms(&l), 0);
	ping_rc = FW_EIO;
	store_link_idle(&l);
	ck_assert_uint_eq(ping_n, 1);
	ck_assert_uint_eq(close_n, 1);
	ck_assert_uint_eq(open_n, 2);
	ck_assert(!store_link_is_down(&l));
}
END_TEST

static void *renew_from_a_thread(void *ctx)
{
	(void)ctx;
	store_links_renew();
	return NULL;
}

START_TEST(one_broken_link_makes_the_others_ping)
{
	struct store_link k;
	pthread_t thread;

	link_init(&k, "others");
	opens();
	ck_assert_ptr_nonnull(store_link_get(&k, &err));
	ck_assert(after(FW_EIO));
	ck_assert_ptr_nonnull(store_link_get(&k, &err));
	ck_assert_uint_eq(ping_n, 1);
	ck_assert_ptr_nonnull(store_link_get(&k, &err));
	ck_assert_uint_eq(ping_n, 1);
	ck_assert_int_eq(pthread_create(&thread, NULL, renew_from_a_thread, NULL), 0);
	pthread_join(thread, NULL);
	ck_assert_ptr_nonnull(store_link_get(&k, &err));
	ck_assert_uint_eq(ping_n, 2);
	store_link_close(&k);
}
END_TEST

START_TEST(the_first_link_that_is_back_ends_the_pause_of_the_others)
{
	struct store_link k;

	link_init(&k, "others");
	open_rc = FW_EIO;
	for (int i = 0; i < 8; i++) { /* k is in its longest pause, l before a shorter one */
		pass(STORE_LINK_BACKOFF_MAX_MS);
		ck_assert_ptr_null(store_link_get(&k, &err));
	}
	ck_assert_ptr_null(store_link_get(&l, &err));
	pass(STORE_LINK_BACKOFF_MIN_MS);
	ck_assert_int_gt(store_link_wait_ms(&k), 0);
	open_rc = 0;
	opens();
	ck_assert_int_eq(store_link_wait_ms(&k), 0);
	open_rc = FW_EIO; /* only once: then it pauses as before */
	ck_assert_ptr_null(store_link_get(&k, &err));
	ck_assert_int_gt(store_link_wait_ms(&k), 0);
	store_link_close(&k);
}
END_TEST

int main(void)
{
	const TTest *const all[] = {opens_once_and_keeps_it, a_broken_connection_is_opened_again_at_once,
		the_backoff_grows_within_bounds_and_spreads, three_refusals_of_a_server_count_as_a_broken_connection,
		a_file_is_not_opened_again_for_refusals, refusals_that_take_long_begin_an_outage_sooner,
		a_while_without_refusals_counts_anew, successes_between_refusals_hide_no_outage,
		an_outage_lasts_until_a_ping_is_answered, other_errors_are_the_callers_business,
		what_fails_after_the_opening_is_an_opening_that_failed,
		an_outage_is_logged_once_and_again_every_ten_minutes, links_with_one_name_are_one_in_the_log,
		a_link_that_is_closed_in_an_outage_says_nothing, a_stop_does_not_wait,
		a_link_pings_when_its_last_ping_is_old, what_waiting_does_not_mend_is_tried_rarely, an_idle_link_pings,
		one_broken_link_makes_the_others_ping, the_first_link_that_is_back_ends_the_pause_of_the_others};
	TCase *tc = tcase_create("store link");
	Suite *s = suite_create("unit engine store_link");

	tcase_add_checked_fixture(tc, setup, NULL);
	for (size_t i = 0; i < FW_N(all); i++)
		tcase_add_test(tc, all[i]);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
