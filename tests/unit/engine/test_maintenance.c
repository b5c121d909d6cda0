/* SPDX-License-Identifier: ISC */
/*
 * Maintenance, on a store in memory: gone feeds are checked again, a clock that was ahead does no
 * lasting harm.
 */
#include <check.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/str.h"
#include "engine/run/maintenance.h"
#include "store/driver.h"
#include "../../suite.h"

#define NOW INT64_C(1795000000000)
#define YEARS(n) (366 * FW_DAY_MS * (n))
#define OK(call) ck_assert_msg((call) == 0, "%s: %s", #call, err.text)

static struct fw_store *st;
static struct store_driver driver; /* the store's slots; tests replace some */
static const struct store_driver *real;
static struct fw_err err;
static struct fw_arena arena;
static int list_rc, set_rc;

static int due(struct store *s, const struct store_due_query *q, struct fw_err *e)
{
	return list_rc ? fw_err_set(e, list_rc, "tampered with") : real->due(s, q, e);
}

static int feed_set(struct store *s, const struct fw_feed *f, unsigned what, struct fw_err *e)
{
	return set_rc ? fw_err_set(e, set_rc, "tampered with") : real->feed_set(s, f, what, e);
}

static void setup(void)
{
	OK(fw_store_open(&(struct fw_store_config){.url = "memory:", .flags = FW_STORE_CREATE}, &st, &err));
	real = store_of(st)->driver;
	driver = *real;
	driver.due = due;
	driver.feed_set = feed_set;
	store_of(st)->driver = &driver;
	fw_arena_init(&arena, 0);
	list_rc = set_rc = 0;
}

static void teardown(void)
{
	fw_store_close(st);
	fw_arena_finish(&arena);
}

static void load(int64_t id, enum fw_feed_status status, int64_t visited_ms, int64_t due_ms)
{
	struct fw_feed f = {.id = id,
		.url = fw_str(fw_arena_printf(&arena, "https://host%lld.example/feed", (long long)id)),
		.status = status,
		.last_kind = FW_VISIT_OK,
		.last_visit_ms = visited_ms,
		.due_at_ms = due_ms,
		.created_ms = NOW - FW_DAY_MS};
	struct fw_visit v = {.id = id, .feed_id = id, .at_ms = visited_ms, .kind = FW_VISIT_OK};

	OK(fw_store_load(st, &(struct fw_load){.feed = &f, .feed_n = 1, .visit = &v, .visit_n = 1}, &err));
}

static struct fw_feed feed(int64_t id)
{
	struct fw_feed f;

	OK(fw_store_feed_find(st, id, FW_STR_NONE, &arena, &f, &err));
	return f;
}

START_TEST(gone_feeds_are_due_again) /* POL-10 */
{
	bool more;
	size_t n;

	load(1, FW_FEED_GONE, NOW - 30 * FW_DAY_MS, NOW - 1);
	load(2, FW_FEED_GONE, NOW - 20 * FW_DAY_MS, NOW + 10 * FW_DAY_MS);
	load(3, FW_FEED_PAUSED, NOW - 20 * FW_DAY_MS, NOW - 1);
	OK(maintenance_probe_gone(st, NOW, &n, &more, &err));
	ck_assert_uint_eq(n, 1);
	ck_assert(!more);
	ck_assert_int_eq(feed(1).status, FW_FEED_ACTIVE);
	ck_assert_int_eq(feed(1).due_at_ms, NOW);
	ck_assert_int_eq(feed(2).status, FW_FEED_GONE);
	ck_assert_int_eq(feed(3).status, FW_FEED_PAUSED);
}
END_TEST

START_TEST(clock_ten_years_ahead_is_repaired)
{
	size_t n;

	load(1, FW_FEED_ACTIVE, NOW - FW_HOUR_MS, NOW + FW_DAY_MS); /* correct */
	load(2, FW_FEED_ACTIVE, NOW - FW_HOUR_MS, NOW + YEARS(2));  /* in the far future, but not because of a clock */
	load(3, FW_FEED_ACTIVE, NOW + YEARS(10), NOW + YEARS(10) + FW_HOUR_MS);
	load(4, FW_FEED_PAUSED, NOW + YEARS(10), NOW + YEARS(10) + FW_HOUR_MS);
	load(5, FW_FEED_ACTIVE, NOW + YEARS(10), NOW + YEARS(10) + FW_HOUR_MS);
	OK(maintenance_repair_clock(st, NOW, false, &n, &err));
	ck_assert_uint_eq(n, 2);
	ck_assert_int_eq(feed(1).due_at_ms, NOW + FW_DAY_MS);
	ck_assert_int_eq(feed(2).due_at_ms, NOW + YEARS(2));
	ck_assert_int_ge(feed(3).due_at_ms, NOW);
	ck_assert_int_le(feed(3).due_at_ms, NOW + FW_HOUR_MS);
	ck_assert_int_ne(feed(3).due_at_ms, feed(5).due_at_ms);
	OK(maintenance_repair_clock(st, NOW, false, &n, &err));
	ck_assert_uint_eq(n, 0);
}
END_TEST

/* a visit after the clock was corrected counts as newer than one from the future */
START_TEST(clock_set_back_at_runtime)
{
	size_t n;

	load(1, FW_FEED_ACTIVE, NOW + YEARS(10), NOW + YEARS(10) + FW_HOUR_MS);
	load(2, FW_FEED_ACTIVE, NOW - 1, NOW + FW_DAY_MS);
	OK(maintenance_repair_clock(st, NOW, true, &n, &err));
	ck_assert_uint_eq(n, 1);
	ck_assert_int_le(feed(1).due_at_ms, NOW + FW_HOUR_MS);
	ck_assert_int_eq(feed(2).due_at_ms, NOW + FW_DAY_MS);
}
END_TEST

START_TEST(small_clock_differences_are_ignored)
{
	size_t n;

	OK(maintenance_repair_clock(st, NOW, false, &n, &err)); /* no visit at all */
	load(1, FW_FEED_ACTIVE, NOW + 10 * FW_MINUTE_MS, NOW + FW_DAY_MS);
	list_rc = FW_EIO; /* not even listed */
	OK(maintenance_repair_clock(st, NOW, false, &n, &err));
	ck_assert_uint_eq(n, 0);
	ck_assert_int_eq(feed(1).due_at_ms, NOW + FW_DAY_MS);
}
END_TEST

START_TEST(store_failure_is_returned)
{
	size_t n;

	load(1, FW_FEED_ACTIVE, NOW + YEARS(10), NOW + YEARS(10) + FW_HOUR_MS);
	list_rc = FW_EIO;
	ck_assert_int_eq(maintenance_repair_clock(st, NOW, false, &n, &err), FW_EIO);
	list_rc = 0;
	set_rc = FW_EIO;
	ck_assert_int_eq(maintenance_repair_clock(st, NOW, false, &n, &err), FW_EIO);
	ck_assert_uint_eq(n, 0);
	set_rc = FW_ENOTFOUND;
	OK(maintenance_repair_clock(st, NOW, false, &n, &err));
	ck_assert_uint_eq(n, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit engine maintenance");
	TCase *tc = tcase_create("maintenance");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, gone_feeds_are_due_again);
	tcase_add_test(tc, clock_ten_years_ahead_is_repaired);
	tcase_add_test(tc, clock_set_back_at_runtime);
	tcase_add_test(tc, small_clock_differences_are_ignored);
	tcase_add_test(tc, store_failure_is_returned);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
