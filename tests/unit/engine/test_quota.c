/* SPDX-License-Identifier: ISC */
/*
 * Quotas, on a store in memory: what counts, what is left out, and a store that fails on the way.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/str.h"
#include "engine/push/quota.h"
#include "store/driver.h"
#include "../../suite.h"

#define OK(call) ck_assert_msg((call) == 0, "%s: %s", #call, err.text)
#define MAX 100
#define ROWS 200
#define NOW INT64_C(1795262400000)

static struct fw_store *st;
static struct fw_config *config;
static struct store_driver driver; /* the store's slots; tests replace some */
static const struct store_driver *real;
static struct fw_err err;
static struct fw_arena arena;
static struct fw_feed was;
static struct fw_entry_row row[ROWS];
static struct quota q;
static struct fw_outcome o;
static int get_rc, keys_rc, put_rc, gets, walks;
static int64_t now_ms;
static char text[100000];

static int record_list(
	struct store *s, const struct store_record_query *query, fw_record_cb *cb, void *ctx, struct fw_err *e)
{
	gets += query->key.p != NULL;
	return get_rc ? fw_err_set(e, get_rc, "tampered with") : real->record_list(s, query, cb, ctx, e);
}

static int record_put(
	struct store *s, const struct fw_record *r, bool if_absent, bool wake, bool *there, struct fw_err *e)
{
	return put_rc ? fw_err_set(e, put_rc, "tampered with") : real->record_put(s, r, if_absent, wake, there, e);
}

static int key_list(struct store *s, int64_t first, int64_t last, fw_key_cb *cb, void *ctx, struct fw_err *e)
{
	walks++;
	return keys_rc ? fw_err_set(e, keys_rc, "tampered with") : real->key_list(s, first, last, cb, ctx, e);
}

static void setup(void)
{
	struct fw_feed_new n = {.url = FW_STR("https://a.example/feed")};

	OK(fw_config_create(&config, &err));
	config->feed_daily_entries_max = MAX;
	OK(fw_store_open(&(struct fw_store_config){.url = "memory:", .flags = FW_STORE_CREATE}, &st, &err));
	OK(fw_store_subscribe(st, &n, 1, &err));
	real = store_of(st)->driver;
	driver = *real;
	driver.record_list = record_list;
	driver.record_put = record_put;
	driver.key_list = key_list;
	store_of(st)->driver = &driver;
	fw_arena_init(&arena, 0);
	get_rc = keys_rc = put_rc = gets = walks = 0;
	now_ms = NOW;
	memset(text, 'x', sizeof(text));
}

static void teardown(void)
{
	fw_arena_finish(&arena);
	fw_store_close(st);
	fw_config_destroy(config);
}

/*
 * A document with entries from..to - 1; `edition` changes one entry's content. Higher numbers are
 * newer.
 */
static void document(int from, int to, uint64_t edition, size_t bytes)
{
	static char guid[ROWS][12];

	memset(row, 0, sizeof(row));
	for (int i = from; i < to; i++) {
		struct fw_entry_row *e = &row[i - from];

		snprintf(guid[i - from], sizeof(guid[0]), "%d", i);
		*e = (struct fw_entry_row){.feed_id = 1,
			.hash = edition,
			.guid = fw_str(guid[i - from]),
			.content = {text, bytes},
			.published_ms = NOW - FW_DAY_MS + i,
			.updated_ms = FW_NO_DATE};
		memcpy(e->key, &i, sizeof(i));
	}
	o = (struct fw_outcome){.feed_id = 1, .entries = row, .entry_n = (size_t)(to - from)};
	q = (struct quota){0};
}

/* A visit, this long after the one before; 0: the first. Up to its commit. */
static int take(int64_t after_ms, bool is_visit)
{
	OK(fw_store_feed_find(st, 1, FW_STR_NONE, &arena, &was, &err));
	was.last_visit_ms = after_ms ? now_ms - after_ms : 0;
	o.feed = &was;
	o.visit = (struct fw_visit){.feed_id = 1, .kind = FW_VISIT_PUSHED, .slot = -1, .at_ms = now_ms};
	return quota_apply(&q, st, config, &was, is_visit, row, &o, now_ms, &err);
}

static void store(void)
{
	OK(fw_store_push(st, &o, 1, &err));
	ck_assert_int_eq(o.rc, 0);
}

/* The whole visit; expects this many entries new, changed and held back. */
static void brings(int64_t after_ms, bool is_visit, uint32_t new_n, uint32_t changed_n, int64_t deferred_n)
{
	OK(take(after_ms, is_visit));
	store();
	quota_count(&q, st, &o, now_ms);
	ck_assert_uint_eq(o.visit.new_n, new_n);
	ck_assert_uint_eq(o.visit.changed_n, changed_n);
	ck_assert_int_eq(q.deferred_n, deferred_n);
}

static struct fw_quota quota(void)
{
	struct fw_quota now;

	OK(fw_quota_get(st, 1, now_ms, &now, &err));
	return now;
}

static void no_quota(void)
{
	struct fw_quota now;

	ck_assert_int_eq(fw_quota_get(st, 1, now_ms, &now, &err), FW_ENOTFOUND);
}

START_TEST(within_its_share)
{
	document(0, MAX, 1, 10);
	brings(0, true, MAX, 0, 0);
	document(100, 125, 1, 10);
	brings(6 * FW_HOUR_MS, true, 25, 0, 0);
	ck_assert_int_eq(gets, 0); /* the store was not read */
	no_quota();
	document(200, 226, 1, 10);
	brings(6 * FW_HOUR_MS, true, 26, 0, 0);
	ck_assert_int_eq(quota().new_n, 26);
	document(300, 301, 1, 10);
	brings(FW_SECOND_MS, true, 1, 0, 0); /* a minute's share is less than one entry */
	ck_assert_int_eq(quota().new_n, 27);
	document(400, 500, 1, 10);
	brings(-FW_DAY_MS, true, 73, 0, 27); /* a clock that went back */
	config->feed_daily_bytes_max = 24000;
	document(600, 601, 1, 990); /* more than an hour's share of the bytes */
	brings(FW_HOUR_MS, true, 0, 0, 1);
	document(600, 601, 1, 900);
	brings(FW_HOUR_MS, true, 1, 0, 0);
}
END_TEST

START_TEST(a_push_has_no_share)
{
	document(0, 1, 1, 10);
	brings(0, false, 1, 0, 0);
	ck_assert_int_eq(quota().new_n, 1);
	ck_assert_int_eq(quota().bytes, 64 + 10 + 1);
	ck_assert_int_eq(walks, 0);
}
END_TEST

START_TEST(newest_first)
{
	document(0, 150, 1, 10);
	brings(0, true, 100, 0, 50);
	ck_assert_int_eq(o.entry_n, 100);
	ck_assert(fw_str_eq(o.entries[0].guid, FW_STR("50")));
	ck_assert_int_eq(quota().deferred_n, 50);
	ck_assert(fw_quota_is_used_up(config, &(struct fw_quota){.new_n = 100}));
	ck_assert(!fw_quota_is_used_up(config, &(struct fw_quota){.new_n = 99}));
	document(0, 150, 2, 10);
	brings(FW_MINUTE_MS, true, 0, 100, 50); /* known entries may change */
	ck_assert_int_eq(quota().new_n, 100);
	now_ms += FW_DAY_MS - 1;
	document(0, 150, 2, 10);
	brings(FW_MINUTE_MS, true, 0, 0, 50);
	now_ms += 1;
	no_quota();
	document(0, 150, 2, 10);
	brings(FW_MINUTE_MS, true, 50, 0, 0);
	ck_assert_int_eq(quota().new_n, 50);
	ck_assert_int_eq(quota().since_ms, now_ms);
	ck_assert_int_eq(quota().until_ms, now_ms + FW_DAY_MS);
}
END_TEST

/* Of two entries with one key the first counts; pruned entries are not new. */
START_TEST(known_entries_do_not_count)
{
	struct fw_load load = {.key = (struct fw_entry_key[]){{.feed_id = 1, .hash = 7}}, .key_n = 1};

	OK(fw_store_load(st, &load, &err)); /* number 0 */
	document(0, 110, 1, 10);
	for (int i = 1; i < 10; i++)
		memcpy(row[i].key, row[10].key, sizeof(row[0].key));
	brings(0, true, 100, 0, 0);
}
END_TEST

/* Ten changes of one small entry in a document with a large one. */
START_TEST(bytes_are_shown_from_half_of_the_quota)
{
	config->feed_daily_entries_max = 0;
	config->feed_daily_bytes_max = 100000;
	document(0, 2, 1, 100);
	row[1].content.len = 20000;
	brings(0, true, 2, 0, 0);
	no_quota();
	for (uint64_t i = 2; i < 40; i++) {
		document(0, 2, 1, 100);
		row[1].content.len = 20000;
		row[0].hash = i;
		brings(FW_MINUTE_MS, true, 0, 1, 0);
	}
	ck_assert_int_gt(walks, 30);
	ck_assert_int_lt(quota().bytes, 60000 + 40 * 200);
	document(2, 12, 1, 20000);
	brings(FW_MINUTE_MS, true, 3, 0, 7); /* the third exceeds the limit */
	ck_assert(fw_quota_is_used_up(config, &(struct fw_quota){.bytes = 100000}));
}
END_TEST

START_TEST(no_limit)
{
	config->feed_daily_entries_max = config->feed_daily_bytes_max = 0;
	document(0, ROWS, 1, 10);
	brings(FW_MINUTE_MS, false, ROWS, 0, 0);
	ck_assert_int_eq(gets, 0);
	ck_assert(!fw_quota_is_used_up(config, &(struct fw_quota){.new_n = INT64_MAX - 1, .bytes = INT64_MAX - 1}));
}
END_TEST

START_TEST(a_store_that_fails)
{
	document(0, 150, 1, 10);
	get_rc = FW_EIO;
	ck_assert_int_eq(take(0, true), FW_EIO);
	get_rc = 0;
	keys_rc = FW_EAGAIN;
	ck_assert_int_eq(quota_apply(&q, st, config, &was, true, row, &o, now_ms, &err), FW_EAGAIN);
	ck_assert_int_eq(o.entry_n, 150); /* nothing was changed */
	keys_rc = 0;
	OK(quota_apply(&q, st, config, &was, true, row, &o, now_ms, &err));
	OK(quota_apply(&q, st, config, &was, true, row, &o, now_ms, &err)); /* a commit that is tried again */
	ck_assert_int_eq(o.entry_n, 100);
	ck_assert_int_eq(q.deferred_n, 50);
	store();
	put_rc = FW_EIO;
	quota_count(&q, st, &o, now_ms); /* the log reports it */
	no_quota();
	put_rc = 0;
	o.rc = FW_ENOTFOUND; /* nothing was written */
	quota_count(&q, st, &o, now_ms);
	no_quota();
}
END_TEST

static int seen(void *ctx, const struct fw_quota *each)
{
	int64_t *ids = ctx;

	*ids = *ids * 10 + each->feed_id;
	return each->feed_id == 8;
}

START_TEST(records)
{
	static const struct {
		const char *key, *value;
		int64_t until_ms;
	} R[] = {
		{"0000000000000000001", "5 6 7 8", NOW + 1},
		{"0000000000000000002", "5 6 7 8", NOW},
		{"0000000000000000003", "5 6 7", NOW + 1},
		{"0000000000000000004", "5 6 -7 8", NOW + 1},
		{"0000000000000000005", "", NOW + 1},
		{"x", "5 6 7 8", NOW + 1},
		{"0000000000000000006", "5 6 7 8 9", NOW + 1},
		{"0000000000000000008", "5 6 7 8", NOW + 1},
		{"0000000000000000009", "5 6 7 8", NOW + 1},
	};
	int64_t ids = 0;
	struct fw_quota got;

	for (size_t i = 0; i < FW_N(R); i++) {
		struct fw_record r = {.kind = FW_STR("quota"),
			.key = fw_str(R[i].key),
			.value = fw_str(R[i].value),
			.at_ms = NOW - 5,
			.until_ms = R[i].until_ms};

		OK(fw_store_record_put(st, &r, false, NULL, &err));
	}
	ck_assert_int_eq(fw_quota_list(st, NOW, seen, &ids, &err), 1);
	ck_assert_int_eq(ids, 168); /* a newer version may have more fields */
	OK(fw_quota_get(st, 1, NOW, &got, &err));
	ck_assert(got.since_ms == 5 && got.new_n == 6 && got.bytes == 7 && got.deferred_n == 8 &&
		got.until_ms == NOW + 1);
	ck_assert_int_eq(fw_quota_get(st, 3, NOW, &got, &err), FW_ENOTFOUND);
	ck_assert_ptr_nonnull(strstr(err.text, "feed 3"));
}
END_TEST

START_TEST(room)
{
	config->disk_free_min_bytes = INT64_MAX;
	free(config->store);
	config->store = fw_str_dup(FW_STR("sqlite:/tmp/not there.db"));
	ck_assert_int_eq(fw_config_check_disk(config, &err), FW_EAGAIN); /* its folder's disk */
	ck_assert_ptr_nonnull(strstr(err.text, "/tmp/not there.db: "));
	ck_assert_ptr_nonnull(strstr(err.text, "disk_free_min_bytes"));
	config->disk_free_min_bytes = 0;
	OK(fw_config_check_disk(config, &err));
	config->disk_free_min_bytes = 1;
	OK(fw_config_check_disk(config, &err));
	config->disk_free_min_bytes = INT64_MAX;
	for (int i = 0; i < 4; i++) {
		static const char *const OTHER[] = {
			"sqlite:/no/such/folder/x.db", "memory:", "postgres://localhost/x", "sqlite:/etc/passwd/x"};

		free(config->store);
		config->store = fw_str_dup(fw_str(OTHER[i]));
		OK(fw_config_check_disk(config, &err));
	}
	free(config->store);
	config->store = fw_str_dup(FW_STR("sqlite:x.db")); /* in this folder */
	ck_assert_int_eq(fw_config_check_disk(config, &err), FW_EAGAIN);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit engine quota");
	TCase *t = tcase_create("quota");
	const TTest *const every[] = {within_its_share, a_push_has_no_share, newest_first, known_entries_do_not_count,
		bytes_are_shown_from_half_of_the_quota, no_limit, a_store_that_fails, records, room};

	tcase_add_checked_fixture(t, setup, teardown);
	for (size_t i = 0; i < FW_N(every); i++)
		tcase_add_test(t, every[i]);
	suite_add_tcase(s, t);
	return run_suite(s);
}
