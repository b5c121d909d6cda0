/* SPDX-License-Identifier: ISC */
/*
 * Permanent redirects, on a store in memory: the same feed or another, the URL free or taken, a
 * store that fails. POL-09, FRB 130-137.
 */
#include <check.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/str.h"
#include "engine/run/redirect_adoption.h"
#include "feedwheel/deliver.h"
#include "api/redirect_adoption.h"
#include "store/driver.h"
#include "../../suite.h"

#define OLD FW_STR("https://old.example/feed")
#define NEW FW_STR("https://new.example/feed")
#define RSS(items) "<rss version='2.0'><channel><title>T</title>" items "</channel></rss>"
#define ITEM(id) "<item><guid>" id "</guid><title>about " id "</title></item>"
#define OK(call) ck_assert_msg((call) == 0, "%s: %s", #call, err.text)

static struct fw_store *st;
static struct fw_config *config;
static struct store_driver driver; /* the store's slots; tests replace some */
static const struct store_driver *real;
static struct fw_meter_slot meter;
static struct fw_err err;
static struct visit V;
static struct fw_arena arena;
static int merge_rc, keys_rc, merges;

static int merge(struct store *s, int64_t from_id, int64_t into_id, struct fw_err *e)
{
	(void)s;
	ck_assert_int_eq(from_id, 1);
	ck_assert_int_eq(into_id, 2);
	merges++;
	return merge_rc ? fw_err_set(e, merge_rc, "tampered with") : 0;
}

static int keys(struct store *s, int64_t first, int64_t last, fw_key_cb *cb, void *ctx, struct fw_err *e)
{
	return keys_rc ? fw_err_set(e, keys_rc, "tampered with") : real->key_list(s, first, last, cb, ctx, e);
}

/* The feed's login: "name:password", or none. */
static void login_set(int64_t feed_id, const char *text)
{
	struct fw_feed f = {.id = feed_id};

	f.username = fw_str_split(fw_str(text), ':', &f.password);
	OK(fw_store_feed_set(st, &f, FW_SET_AUTH, &err));
}

static void setup(void)
{
	struct fw_feed_new n = {
		.url = OLD, .user_title = FW_STR("mine"), .folder = FW_STR("news"), .interval_ms = FW_HOUR_MS};

	OK(fw_config_create(&config, &err));
	OK(fw_store_open(&(struct fw_store_config){.url = "memory:", .flags = FW_STORE_CREATE}, &st, &err));
	OK(fw_store_subscribe(st, &n, 1, &err));
	real = store_of(st)->driver;
	driver = *real;
	driver.feed_adopt = merge;
	driver.key_list = keys;
	store_of(st)->driver = &driver;
	fw_arena_init(&arena, 0);
	memset(&V, 0, sizeof(V));
	memset(&meter, 0, sizeof(meter));
	merge_rc = keys_rc = merges = 0;
}

static void teardown(void)
{
	fw_buf_finish(&V.fetch.body);
	fw_arena_finish(&V.arena);
	fw_arena_finish(&arena);
	fw_store_close(st);
	fw_config_destroy(config);
}

static void knows(const char *body)
{
	struct fw_delivery_input in = {.feed_id = 1, .body = fw_str(body), .strict = true};
	struct fw_delivery_result d;

	OK(fw_deliver(st, config, &in, 0, &d, &err));
}

/* A visit of feed 1 with a permanent redirect, seen this often before; up to the commit. */
static void visit_moved(const char *body, uint32_t seen_n)
{
	struct fw_feed *was = fw_arena_zalloc(&arena, sizeof(*was));
	struct visit_rules r = {.run_id = 1};

	fw_due_policy_default(&r.due);
	OK(fw_store_feed_find(st, 1, FW_STR_NONE, &arena, was, &err));
	was->last_ok_ms = fw_now_ms() - FW_DAY_MS;
	was->redirect_n = seen_n;
	if (seen_n) {
		was->redirect_url = NEW;
		was->redirect_since_ms = fw_now_ms() - 2 * FW_DAY_MS;
	}
	V.was = was;
	visit_prepare(&V, fw_now_ms());
	V.fetch.kind = FW_VISIT_OK;
	V.fetch.http_status = 200;
	V.fetch.final_url = V.fetch.permanent_url = NEW;
	fw_buf_adds(&V.fetch.body, body);
	visit_finish(&V, &r, fw_now_ms(), 42);
}

static void commit(void)
{
	struct fw_outcome o = V.outcome;

	o.host_id = store_feed_host_id(V.was);
	o.was_due_ms = V.was->due_at_ms;
	OK(fw_store_push(st, &o, 1, &err)); /* for the store it is the first visit */
	V.outcome = o;
	adoption_finish(st, &V, &meter);
}

static uint64_t counted(enum fw_count what)
{
	return atomic_load(&meter.count[what]);
}

static int take(void *ctx, const struct fw_adoption *m)
{
	int *n = ctx;

	ck_assert(fw_str_eq(m->from, OLD) && fw_str_eq(m->to, NEW));
	++*n;
	return 0;
}

static int merged_into(int64_t feed_id)
{
	int n = 0;

	OK(fw_adoption_list(st, feed_id, take, &n, &err));
	return n;
}

START_TEST(same_or_not)
{
	static const struct {
		const char *before, *shown;
		int keys_rc;
		bool in_sight;
		uint32_t n;
	} T[] = {
		{RSS(ITEM("1") ITEM("2")), RSS(ITEM("2") ITEM("3")), 0, true, 1}, /* one known entry, one new */
		{RSS(ITEM("1") ITEM("2")), RSS(ITEM("8") ITEM("9")), 0, true, 0}, /* another feed's entries */
		{NULL, RSS(ITEM("1")), 0, true, 1},                               /* nothing to compare with */
		{RSS(ITEM("1")), RSS(""), 0, false, 0},                           /* nothing to compare */
		/* the store fails: the next sighting counts as the first */
		{RSS(ITEM("1")), RSS(ITEM("1")), FW_EIO, false, 0},
	};

	if (T[_i].before)
		knows(T[_i].before);
	visit_moved(T[_i].shown, 0);
	ck_assert(V.new_target);
	keys_rc = T[_i].keys_rc;
	adoption_check(st, &V);
	ck_assert(!V.new_target);
	ck_assert_int_eq(V.feed.redirect_url.len > 0, T[_i].in_sight);
	ck_assert_uint_eq(V.feed.redirect_n, T[_i].n);
	commit();
	ck_assert_int_eq(V.outcome.rc, 0);
	ck_assert_uint_eq(counted(FW_COUNT_ADOPTED), 0);
}
END_TEST

START_TEST(adopted)
{
	struct fw_adoption m;

	visit_moved(RSS(ITEM("1")), 2);
	adoption_check(st, &V);
	commit();
	ck_assert_uint_eq(counted(FW_COUNT_ADOPTED), 1);
	ck_assert_int_eq(merges, 0);
	OK(fw_adoption_find(st, OLD, &arena, &m, &err));
	ck_assert(fw_str_eq(m.to, NEW) && m.feed_id == 1 && !m.merged && m.at_ms > 0);
	ck_assert_int_eq(fw_adoption_find(st, NEW, &arena, &m, &err), FW_ENOTFOUND);
	ck_assert_int_eq(merged_into(1), 1);
	ck_assert_int_eq(merged_into(2), 0);
}
END_TEST

START_TEST(taken) /* by a feed in each state; what its user has set stays */
{
	static const struct {
		enum fw_feed_status status;
		const char *title;
		int rc;
		bool one;
		const char *login[2];
	} T[] = {
		{FW_FEED_ACTIVE, NULL, 0, true, {NULL, NULL}},
		{FW_FEED_ACTIVE, "theirs", 0, true, {NULL, NULL}},
		{FW_FEED_GONE, NULL, 0, true, {NULL, NULL}},
		{FW_FEED_PAUSED, NULL, 0, false, {NULL, NULL}},
		{FW_FEED_ACTIVE, NULL, FW_EAGAIN, false, {NULL, NULL}},
		/* whoever reads one feed may not know the other's login */
		{FW_FEED_ACTIVE, NULL, 0, false, {NULL, "bob:secret"}},
		{FW_FEED_ACTIVE, NULL, 0, false, {":", ":secret"}},
	};
	struct fw_feed_new n = {.url = NEW, .user_title = fw_str(T[_i].title), .due_at_ms = fw_now_ms() + FW_DAY_MS};
	struct fw_feed f = {.id = 2, .status = T[_i].status};

	OK(fw_store_subscribe(st, &n, 1, &err));
	OK(fw_store_feed_set(st, &f, FW_SET_STATUS, &err));
	for (int i = 0; i < 2; i++)
		login_set(i + 1, T[_i].login[i]);
	merge_rc = T[_i].rc;
	visit_moved(RSS(ITEM("1")), 2);
	adoption_check(st, &V);
	commit();
	ck_assert_int_eq(V.outcome.rc, FW_EINVAL);
	ck_assert_int_eq(merges, T[_i].one || T[_i].rc);
	ck_assert_uint_eq(counted(FW_COUNT_MERGED), T[_i].one);
	ck_assert_int_eq(merged_into(2), T[_i].one);
	OK(fw_store_feed_find(st, 2, FW_STR_NONE, &arena, &f, &err));
	ck_assert(T[_i].one || T[_i].rc || !f.user_title.len);
	if (!T[_i].one)
		return;
	ck_assert(fw_str_eq(f.user_title, fw_str(T[_i].title ? T[_i].title : "mine")));
	ck_assert(fw_str_eq(f.folder, FW_STR("news")));
	ck_assert_int_eq(f.interval_ms, FW_HOUR_MS);
	ck_assert_int_eq(f.status, FW_FEED_ACTIVE);
}
END_TEST

/* What the operator added is not an account's feed in the one that takes it up. */
START_TEST(owned)
{
	static const struct {
		bool from, into, is; /* an account's */
	} T[] = {{true, true, true}, {false, true, false}, {true, false, false}, {false, false, false}};
	struct fw_feed_new n = {.url = NEW, .due_at_ms = fw_now_ms() + FW_DAY_MS};
	struct fw_record r = {.kind = FW_STR("account_feed"), .value = FW_STR(""), .until_ms = FW_NO_DATE};

	OK(fw_store_subscribe(st, &n, 1, &err));
	for (int i = 0; i < 2; i++) {
		r.key = i ? FW_STR("2") : FW_STR("1");
		if (i ? T[_i].into : T[_i].from)
			OK(fw_store_record_put(st, &r, false, NULL, &err));
	}
	visit_moved(RSS(ITEM("1")), 2);
	adoption_check(st, &V);
	commit();
	ck_assert_int_eq(merges, 1);
	ck_assert_int_eq(fw_store_record_get(st, r.kind, FW_STR("2"), &arena, &r, &err), T[_i].is ? 0 : FW_ENOTFOUND);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit engine redirects");
	TCase *t = tcase_create("redirects");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, same_or_not, 0, 5);
	tcase_add_test(t, adopted);
	tcase_add_loop_test(t, taken, 0, 7);
	tcase_add_loop_test(t, owned, 0, 4);
	suite_add_tcase(s, t);
	return run_suite(s);
}
