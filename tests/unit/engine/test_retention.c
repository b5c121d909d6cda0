/* SPDX-License-Identifier: ISC */
/*
 * Retention, on a store in memory: what is pruned, what stays, and how often all entries are
 * scanned.
 */
#include <check.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/str.h"
#include "api/retention.h"
#include "store/driver.h"
#include "../../suite.h"

#define NOW INT64_C(1795000000000)
#define OK(call) ck_assert_msg((call) == 0, "%s: %s", #call, err.text)

static struct fw_store *st;
static struct fw_config *config;
static struct store_driver driver; /* the store's slots; tests replace some */
static const struct store_driver *real;
static struct fw_err err;
static int with_entries, prune_rc;

static int prune(struct store *s, struct fw_prune *p, struct fw_err *e)
{
	with_entries += p->entries_before_ms != 0;
	return prune_rc ? fw_err_set(e, prune_rc, "tampered with") : real->prune(s, p, e);
}

static void setup(void)
{
	OK(fw_config_create(&config, &err));
	config->visits_retention_ms = 30 * FW_DAY_MS;
	config->entries_retention_ms = 90 * FW_DAY_MS;
	config->events_retention_ms = 10 * FW_DAY_MS;
	OK(fw_store_open(&(struct fw_store_config){.url = "memory:", .flags = FW_STORE_CREATE}, &st, &err));
	real = store_of(st)->driver;
	driver = *real;
	driver.prune = prune;
	store_of(st)->driver = &driver;
	with_entries = prune_rc = 0;
}

static void teardown(void)
{
	fw_store_close(st);
	fw_config_destroy(config);
}

/* Loads an entry and a visit of this age, and other rows. */
static void load(int64_t id, int64_t days)
{
	struct fw_feed f = {.id = 1, .url = FW_STR("https://a.example/feed")};
	struct fw_entry_row e = {.id = id,
		.feed_id = 1,
		.hash = 1,
		.guid = FW_STR("x"),
		.seen_ms = NOW - days * FW_DAY_MS,
		.changed_ms = NOW - days * FW_DAY_MS,
		.revision = 1,
		.published_ms = FW_NO_DATE,
		.updated_ms = FW_NO_DATE};
	struct fw_visit v = {.id = id, .feed_id = 1, .at_ms = NOW - days * FW_DAY_MS, .kind = FW_VISIT_OK};
	struct fw_event event = {
		.id = id, .property = FW_STR("p"), .section = 1, .item = 1, .stamp_ms = NOW - days * FW_DAY_MS};
	char key[2] = {(char)('a' + id), 0};
	struct fw_record r = {.kind = FW_STR("test"),
		.key = fw_str(key),
		.at_ms = NOW - days * FW_DAY_MS - 1,
		.until_ms = NOW - days * FW_DAY_MS};

	memcpy(e.key, &id, sizeof(id));
	OK(fw_store_load(st,
		&(struct fw_load){.feed = &f, .feed_n = 1, .entry = &e, .entry_n = 1, .visit = &v, .visit_n = 1},
		&err));
	OK(fw_store_event_put(st, &event, 1, &err));
	OK(fw_store_record_put(st, &r, false, NULL, &err));
}

static int count_entry(void *n, const struct fw_entry_row *e)
{
	(void)e;
	++*(int *)n;
	return 0;
}

static int count_visit(void *n, const struct fw_visit *v)
{
	(void)v;
	++*(int *)n;
	return 0;
}

static int count_event(void *n, const struct fw_event *e)
{
	(void)e;
	++*(int *)n;
	return 0;
}

static int count_record(void *n, const struct fw_record *r)
{
	(void)r;
	++*(int *)n;
	return 0;
}

static void left(int entries, int visits, int events, int records)
{
	int n[4] = {0};

	OK(fw_store_entry_list(st, &(struct fw_entry_query){.feed_id = 1}, count_entry, &n[0], &err));
	OK(fw_store_visit_list(st, &(struct fw_visit_query){.feed_id = 1}, count_visit, &n[1], &err));
	OK(fw_store_event_list(st, 0, 0, count_event, &n[2], &err));
	OK(fw_store_record_list(st, &(struct fw_record_query){.kind = FW_STR("test")}, count_record, &n[3], &err));
	ck_assert_int_eq(n[0], entries);
	ck_assert_int_eq(n[1], visits);
	ck_assert_int_eq(n[2], events);
	ck_assert_int_eq(n[3], records);
}

static void keep(int64_t now_ms)
{
	bool more = true;

	while (more)
		ck_assert_int_eq(fw_retention_run(st, config, now_ms, &more, &err), 0);
}

START_TEST(each_for_its_time)
{
	load(1, 100);
	load(2, 60);
	load(3, 20);
	load(4, 1);
	keep(NOW);
	left(3, 2, 1, 0);
}
END_TEST

START_TEST(never)
{
	config->visits_retention_ms = config->entries_retention_ms = config->events_retention_ms = 0;
	load(1, 10000);
	keep(NOW);
	left(1, 1, 1, 0); /* a record has its own expiry time */
	ck_assert_int_eq(with_entries, 0);
}
END_TEST

START_TEST(a_server_leaves_visits_and_entries_alone)
{
	bool more = true;

	load(1, 100);
	while (more)
		ck_assert_int_eq(fw_retention_run_pushed(st, config, NOW, &more, &err), 0);
	left(1, 1, 0, 0);
}
END_TEST

START_TEST(all_entries_every_six_hours)
{
	int looked;

	keep(NOW);
	looked = with_entries;
	ck_assert_int_gt(looked, 0);
	keep(NOW + 6 * FW_HOUR_MS - 1);
	ck_assert_int_eq(with_entries, looked);
	config->entries_retention_ms++; /* the user has changed the setting */
	keep(NOW + 6 * FW_HOUR_MS - 1);
	ck_assert_int_gt(with_entries, looked);
	looked = with_entries;
	keep(NOW + 12 * FW_HOUR_MS);
	ck_assert_int_gt(with_entries, looked);
}
END_TEST

START_TEST(failed_pruning_is_repeated)
{
	bool more;

	load(1, 100);
	prune_rc = FW_EAGAIN;
	ck_assert_int_eq(fw_retention_run(st, config, NOW, &more, &err), FW_EAGAIN);
	ck_assert_str_eq(err.text, "tampered with");
	ck_assert(!more);
	prune_rc = 0;
	keep(NOW);
	left(0, 0, 0, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit engine retention");
	TCase *t = tcase_create("retention");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, each_for_its_time);
	tcase_add_test(t, never);
	tcase_add_test(t, a_server_leaves_visits_and_entries_alone);
	tcase_add_test(t, all_entries_every_six_hours);
	tcase_add_test(t, failed_pruning_is_repeated);
	suite_add_tcase(s, t);
	return run_suite(s);
}
