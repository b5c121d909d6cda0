/* SPDX-License-Identifier: ISC */
/*
 * The front (src/store/store.c) over each driver: which arguments it refuses, what it makes of
 * slots and records, which stores a build knows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "drv.h"

static struct fw_arena A;
static struct fw_err err;

static void setup(void)
{
	fw_arena_init(&A, 0);
	err = (struct fw_err){0};
}

static void teardown(void)
{
	fw_arena_finish(&A);
}

/* ---- arguments ------------------------------------------------------------------------------- */

static int no_feed(void *ctx, const struct fw_feed *feed)
{
	(void)ctx;
	ck_abort_msg("feed %lld is shown", (long long)feed->id);
}

static int no_entry(void *ctx, const struct fw_entry_row *row)
{
	(void)ctx;
	ck_abort_msg("entry %lld is shown", (long long)row->id);
}

static int no_visit(void *ctx, const struct fw_visit *visit)
{
	(void)ctx;
	ck_abort_msg("visit %lld is shown", (long long)visit->id);
}

static int no_record(void *ctx, const struct fw_record *r)
{
	(void)ctx;
	ck_abort_msg("record %.*s is shown", FW_STR_ARG(r->key));
}

#define REFUSED(call)                                                                                 \
	do {                                                                                          \
		err.text[0] = '\0';                                                                   \
		IS(call, FW_EINVAL);                                                                  \
		ck_assert_msg(err.text[0] && !strchr(err.text, '\n'), "%s: \"%s\"", #call, err.text); \
	} while (0)

/* None of these reaches the driver. */
START_TEST(arguments_refused)
{
	struct fw_store *st = fresh(_i);
	uint64_t print = drv_print(store_of(st));
	struct fw_feed_new nowhere = {.url = FW_STR("/feed")};
	struct fw_feed f[2] = {{.id = 0, .url = FW_STR("https://a.example/")}, {.id = 3, .url = FW_STR("feed")}};
	struct fw_entry_row e = entry(1, 1, "t", "c");
	struct fw_visit v[2] = {{.id = 5, .feed_id = 1, .at_ms = 1}, {.id = 5, .feed_id = 1, .at_ms = 2}};
	struct fw_outcome o = {.feed_id = 1, .feed = &f[1], .visit = {.kind = FW_VISIT_OK, .at_ms = 1}};
	const struct fw_entry_query ranked[] = {
		{.by_relevance = true},
		{.by_relevance = true, .search = FW_STR("x"), .oldest_first = true},
		{.by_relevance = true, .search = FW_STR("x"), .after_id = 1},
		{.by_relevance = true, .search = FW_STR("x"), .before_id = 1},
		{.by_relevance = true, .search = FW_STR("x"), .behind_id = 1},
	};

	REFUSED(fw_store_subscribe(st, &nowhere, 1, &err));
	REFUSED(fw_store_feed_list(st, &(struct fw_feed_query){.by_due = true, .after_id = 1}, no_feed, NULL, &err));
	REFUSED(fw_store_entry_list(
		st, &(struct fw_entry_query){.oldest_first = true, .behind_id = 1}, no_entry, NULL, &err));
	for (size_t i = 0; i < FW_N(ranked); i++)
		REFUSED(fw_store_entry_list(st, &ranked[i], no_entry, NULL, &err));
	REFUSED(fw_store_visit_list(
		st, &(struct fw_visit_query){.oldest_first = true, .feed_id = 1}, no_visit, NULL, &err));
	REFUSED(fw_store_visit_list(st, &(struct fw_visit_query){.after_id = 1}, no_visit, NULL, &err));
	REFUSED(fw_store_feed_merge(st, 7, 7, &err));
	for (int i = 0; i < 2; i++)
		REFUSED(fw_store_load(st, &(struct fw_load){.feed = &f[i], .feed_n = 1}, &err));
	REFUSED(fw_store_load(st, &(struct fw_load){.entry = &e, .entry_n = 1}, &err));
	REFUSED(fw_store_load(st, &(struct fw_load){.visit = v, .visit_n = 2}, &err));
	f[1] = (struct fw_feed){.id = INT64_C(1) << 53, .url = FW_STR("https://a.example/")};
	REFUSED(fw_store_load(st, &(struct fw_load){.feed = &f[1], .feed_n = 1}, &err));
	e.id = v[0].id = INT64_C(1) << 53;
	REFUSED(fw_store_load(st, &(struct fw_load){.entry = &e, .entry_n = 1}, &err));
	REFUSED(fw_store_load(st, &(struct fw_load){.visit = v, .visit_n = 1}, &err));
	REFUSED(fw_store_push(st, (struct fw_outcome[]){o, o}, 2, &err)); /* a first visit must be alone, */
	o.visit.kind = FW_VISIT_PUSHED;
	o.groups = FW_GROUP_META | FW_GROUP_RHYTHM;
	REFUSED(fw_store_push(st, &o, 1, &err)); /* and a push may not write what only the owner knows */
	REFUSED(fw_store_reap(st, "", 1, &err));
	REFUSED(fw_store_reap(st, NULL, 1, &err));
	REFUSED(fw_store_control_put(st, FW_CONTROL_NONE, NOW, &err));
	REFUSED(fw_store_control_put(st, (enum fw_control_kind)99, NOW, &err));
	REFUSED(fw_store_heartbeat_put(st, &(struct fw_heartbeat){.worker = ""}, NOW, &err));
	REFUSED(fw_store_record_list(st, &(struct fw_record_query){.kind = FW_STR("A")}, no_record, NULL, &err));
	ck_assert(drv_print(store_of(st)) == print);
	fw_store_close(st);
}
END_TEST

/* A call with nothing to do succeeds, and err may be NULL, also where the call fails. */
START_TEST(nothing_and_null)
{
	struct fw_store *st = fresh(_i);
	struct fw_record r;
	struct fw_feed f;
	int64_t n = 7, wake_ms = 7;

	OK(fw_store_subscribe(st, NULL, 0, &err));
	OK(fw_store_load(st, &(struct fw_load){.feed_n = 0}, &err));
	OK(fw_store_push(st, NULL, 0, &err));
	OK(fw_store_event_put(st, NULL, 0, &err));
	OK(fw_store_dead_letter_remove(st, NULL, 0, &err));
	OK(fw_store_pending(st, INT64_MAX, &n, &wake_ms, &err));
	ck_assert(n == 0 && wake_ms == FW_NO_DATE);
	ck_assert_int_eq(fw_store_ping(st, NULL), 0);
	ck_assert_int_eq(fw_store_feed_find(st, 99, FW_STR_NONE, &A, &f, NULL), FW_ENOTFOUND);
	ck_assert_int_eq(fw_store_unsubscribe(st, 99, NULL), FW_ENOTFOUND);
	ck_assert_int_eq(fw_store_record_get(st, FW_STR("k"), FW_STR("x"), &A, &r, NULL), FW_ENOTFOUND);
	ck_assert_int_eq(fw_store_record_get(st, FW_STR("K"), FW_STR("x"), &A, &r, NULL), FW_EINVAL);
	ck_assert_int_eq(fw_store_feed_merge(st, 1, 1, NULL), FW_EINVAL);
	fw_store_close(st);
}
END_TEST

/* ---- what is due ----------------------------------------------------------------------------- */

struct due {
	struct fw_due_row row[10];
	size_t n, stop;
};

static int see_due(void *ctx, const struct fw_due_row *row)
{
	struct due *d = ctx;

	ck_assert_uint_lt(d->n, FW_N(d->row));
	d->row[d->n++] = *row;
	return d->n == d->stop ? 42 : 0;
}

/* Over all shards by due time, then by id; the number of rows, and the first time. */
START_TEST(due_over_all_shards)
{
	struct fw_store *st = fresh(_i);
	struct fw_feed paused = {.status = FW_FEED_PAUSED}, first = {.due_at_ms = FW_DUE_FIRST};
	struct due d = {.n = 0};
	int64_t id[6], n, wake_ms;

	for (int i = 0; i < 6; i++)
		id[i] = subscribe(
			st, fw_arena_printf(&A, "https://h%d.example/", i), NOW + 1000 * (i == 4 ? 1 : 6 - i));
	paused.id = id[5];
	OK(fw_store_feed_set(st, &paused, FW_SET_STATUS, &err));
	OK(fw_store_due_list(st, NOW + 5000, 0, see_due, &d, &err));
	ck_assert_uint_eq(d.n, 4);
	for (size_t i = 0; i < 4; i++)
		ck_assert_int_eq(d.row[i].feed_id, id[4 - i]);
	ck_assert(d.row[0].due_at_ms == NOW + 1000 && d.row[0].last_visit_ms == 0);
	ck_assert_int_eq(d.row[0].host_id, store_host_id(FW_STR("h4.example")));
	OK(fw_store_pending(st, NOW + 5000, &n, &wake_ms, &err));
	ck_assert(n == 4 && wake_ms == NOW + 1000);
	d.n = 0;
	OK(fw_store_due_list(st, INT64_MAX, 2, see_due, &d, &err));
	ck_assert_uint_eq(d.n, 2);
	d = (struct due){.stop = 3};
	ck_assert_int_eq(fw_store_due_list(st, INT64_MAX, 0, see_due, &d, &err), 42); /* the callback's code */
	ck_assert_uint_eq(d.n, 3);
	OK(fw_store_due_list(st, NOW, 0, see_due, NULL, &err));
	first.id = id[2]; /* a user requests it */
	OK(fw_store_feed_set(st, &first, FW_SET_DUE, &err));
	OK(fw_store_pending(st, FW_DUE_FIRST, &n, &wake_ms, &err));
	ck_assert(n == 1 && wake_ms == FW_DUE_FIRST);
	d = (struct due){.n = 0};
	OK(fw_store_due_list(st, INT64_MAX, 1, see_due, &d, &err));
	ck_assert_int_eq(d.row[0].feed_id, id[2]);
	fw_store_close(st);
}
END_TEST

/* ---- pushes, dead workers -------------------------------------------------------------------- */

START_TEST(pushed_and_reaped)
{
	struct fw_store *st = fresh(_i);
	struct store *to = store_of(st);
	int64_t id = subscribe(st, "https://a.example/", NOW);
	struct store_lease *dead = drv_join(to, "host/1/0", LONG_MS), *next;
	struct fw_entry_row e = entry(1, 1, "t", "word");
	struct fw_feed meta = {.title = FW_STR("Title")};
	struct fw_outcome o = {.feed_id = id,
		.feed = &meta,
		.groups = FW_GROUP_META,
		.entries = &e,
		.entry_n = 1,
		.rc = 77,
		.visit = {.kind = FW_VISIT_PUSHED, .at_ms = NOW, .slot = -1}};

	OK(fw_store_push(st, &o, 1, &err));
	ck_assert(o.rc == 0 && o.visit.new_n == 1);
	ck_assert(fw_str_eq(find(st, id, &A).title, FW_STR("Title")));
	ck_assert_int_eq(find(st, id, &A).due_at_ms, NOW);
	o.feed_id = 99;
	OK(fw_store_push(st, &o, 1, &err));
	ck_assert_int_eq(o.rc, FW_ENOTFOUND);
	ck_assert_int_eq(entry_count(st, 0), 1);
	for (int i = 0; i < FW_STORE_CRASH_MAX; i++)
		OK(fw_store_reap(st, "host/1/0", id, &err));
	ck_assert_int_eq(find(st, id, &A).status, FW_FEED_QUARANTINED);
	next = drv_join(to, "host/2/0", LONG_MS);
	ck_assert_uint_eq(next->shard_n, STORE_SHARDS);
	FAILS(to->driver->heartbeat(to, "host/1/0", dead, &drv_err), FW_ESTALE);
	drv_leave(to, next);
	free(dead);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

/* ---- messages, heartbeats -------------------------------------------------------------------- */

START_TEST(control_messages_in_order)
{
	struct fw_store *st = fresh(_i);
	struct fw_control c;
	int64_t last;

	OK(fw_store_control_put(st, FW_CONTROL_STOP, NOW, &err));
	OK(fw_store_control_get(st, -1, &c, &err));
	ck_assert_int_eq(c.kind, FW_CONTROL_NONE);
	last = c.id; /* a worker that starts now ignores yesterday's stop */
	ck_assert_int_gt(last, 0);
	OK(fw_store_control_get(st, last, &c, &err));
	ck_assert_int_eq(c.kind, FW_CONTROL_NONE);
	OK(fw_store_control_put(st, FW_CONTROL_PAUSE, NOW, &err)); /* of the same millisecond */
	OK(fw_store_control_put(st, FW_CONTROL_RESUME, NOW + 1, &err));
	OK(fw_store_control_get(st, last, &c, &err));
	ck_assert_int_eq(c.kind, FW_CONTROL_PAUSE);
	OK(fw_store_control_get(st, c.id, &c, &err));
	ck_assert(c.kind == FW_CONTROL_RESUME && c.created_ms == NOW + 1);
	OK(fw_store_control_get(st, c.id, &c, &err));
	ck_assert_int_eq(c.kind, FW_CONTROL_NONE);
	fw_store_close(st);
}
END_TEST

static bool is_paused(struct fw_store *st)
{
	struct fw_control c;

	OK(fw_store_control_get(st, -1, &c, &err));
	return c.paused;
}

/* Messages are removed after a week; the paused state stays. */
START_TEST(a_pause_outlives_its_message)
{
	struct fw_store *st = fresh(_i);
	struct fw_prune p = {.now_ms = NOW + 8 * FW_DAY_MS, .records = true};
	struct fw_control c;

	ck_assert(!is_paused(st));
	OK(fw_store_control_put(st, FW_CONTROL_PAUSE, NOW, &err));
	OK(fw_store_control_put(st, FW_CONTROL_STOP, NOW + 1, &err));
	ck_assert(is_paused(st));
	OK(fw_store_prune(st, &p, &err));
	ck_assert_int_eq(p.record_n, 2);
	OK(fw_store_control_get(st, 0, &c, &err));
	ck_assert_int_eq(c.kind, FW_CONTROL_NONE);
	ck_assert(is_paused(st));
	OK(fw_store_control_put(st, FW_CONTROL_RESUME, 0, &err)); /* by the store's clock */
	OK(fw_store_control_get(st, 0, &c, &err));
	ck_assert(c.kind == FW_CONTROL_RESUME && llabs(c.created_ms - fw_now_ms()) < FW_MINUTE_MS);
	ck_assert(!is_paused(st));
	fw_store_close(st);
}
END_TEST

START_TEST(a_message_wakes)
{
	const char *url = drv_url(_i);
	struct fw_store *st = store_open(url, FW_STORE_CREATE), *other;
	bool changed = true;
	int64_t start;

	OK(fw_store_wait(st, -1, 20, &changed, &err));
	ck_assert(!changed);
	if (under_test[_i].shared) {
		other = store_open(url, 0);
		OK(fw_store_control_put(other, FW_CONTROL_STOP, NOW, &err));
		start = fw_mono_ms();
		OK(fw_store_wait(st, -1, 60000, &changed, &err));
		ck_assert(changed && fw_mono_ms() - start < 60000); /* notified, not timed out */
		fw_store_close(other);
	}
	fw_store_close(st);
}
END_TEST

static int heartbeat_add(void *ctx, const struct fw_heartbeat *b)
{
	fw_buf_addf(ctx, "%s:%lld:%llu:%u:%lld ", b->worker, (long long)b->pid, (unsigned long long)b->visits, b->slots,
		(long long)b->at_ms);
	return 0;
}

static void heartbeats_are(struct fw_store *st, int64_t since_ms, const char *want)
{
	struct fw_buf b = FW_BUF_INIT(0);

	OK(fw_store_heartbeat_list(st, since_ms, heartbeat_add, &b, &err));
	ck_assert(fw_str_eq(fw_buf_str(&b), fw_str(want)));
	fw_buf_finish(&b);
}

START_TEST(heartbeats)
{
	struct fw_store *st = fresh(_i);
	struct fw_heartbeat b = {.worker = "host/1/0", .pid = 1, .started_ms = NOW, .visits = 10, .slots = UINT32_MAX};
	struct fw_prune p = {.now_ms = NOW + 150 + FW_DAY_MS, .records = true};

	heartbeats_are(st, 0, "");
	OK(fw_store_heartbeat_put(st, &b, NOW + 100, &err));
	b.visits = UINT64_C(9007199254740993); /* a double cannot represent it */
	OK(fw_store_heartbeat_put(st, &b, NOW + 200, &err));
	b.worker = "host/2/0";
	b.pid = 2;
	OK(fw_store_heartbeat_put(st, &b, NOW + 150, &err));
	heartbeats_are(st, 0,
		"host/1/0:1:9007199254740993:4294967295:1763730000200"
		" host/2/0:2:9007199254740993:4294967295:1763730000150 ");
	heartbeats_are(st, NOW + 180, "host/1/0:1:9007199254740993:4294967295:1763730000200 ");
	OK(fw_store_prune(st, &p, &err));
	ck_assert_int_eq(p.record_n, 1);
	heartbeats_are(st, 0, "host/1/0:1:9007199254740993:4294967295:1763730000200 ");
	fw_store_close(st);
}
END_TEST

static int keep_record(void *ctx, const struct fw_record *r)
{
	fw_buf_addf(ctx, "%.*s/%.*s ", FW_STR_ARG(r->kind), FW_STR_ARG(r->key));
	return 0;
}

/*
 * Messages and heartbeats are stored as records, but users can neither list, put nor remove them.
 */
START_TEST(own_records_are_not_shown)
{
	struct fw_store *st = fresh(_i);
	struct fw_record r = {
		.kind = FW_STR("zzz"), .key = FW_STR("k"), .value = FW_STR("v"), .at_ms = NOW, .until_ms = FW_NO_DATE};
	struct fw_buf b = FW_BUF_INIT(0);

	OK(fw_store_control_put(st, FW_CONTROL_PAUSE, NOW, &err));
	OK(fw_store_heartbeat_put(st, &(struct fw_heartbeat){.worker = "host/1/0"}, NOW, &err));
	for (size_t limit = 0; limit < 3; limit++) {
		OK(fw_store_record_list(st, &(struct fw_record_query){.limit = limit}, no_record, NULL, &err));
	}
	OK(fw_store_record_put(st, &r, false, NULL, &err));
	OK(fw_store_record_list(st, &(struct fw_record_query){.limit = 2}, keep_record, &b, &err));
	ck_assert_str_eq(b.p, "zzz/k ");
	fw_buf_finish(&b);
	r.kind = FW_STR("~paused");
	REFUSED(fw_store_record_put(st, &r, false, NULL, &err));
	REFUSED(fw_store_record_remove(st, r.kind, FW_STR("all"), FW_STR_NONE, &err));
	REFUSED(fw_store_record_list(st, &(struct fw_record_query){.kind = r.kind}, no_record, NULL, &err));
	ck_assert(is_paused(st));
	fw_store_close(st);
}
END_TEST

/* ---- the whole store ------------------------------------------------------------------------- */

static void see_check(void *ctx, const char *name, int level, const char *found, const char *remedy)
{
	ck_assert(*name && *found && level >= 0 && level <= 2);
	ck_assert_msg((level > 0) == (*remedy != '\0') && !strstr(found, "://"), "%s: %s (%s)", name, found, remedy);
	++*(int *)ctx;
}

START_TEST(looked_at)
{
	struct fw_store *st = fresh(_i);
	int64_t now_ms = 0;
	int n = 0;

	ck_assert_str_eq(fw_store_name(st), under_test[_i].name);
	OK(fw_store_clock(st, &now_ms, &err));
	ck_assert(llabs(now_ms - fw_now_ms()) < FW_MINUTE_MS); /* the servers run on this machine */
	OK(fw_store_inspect(st, see_check, &n, &err));
	ck_assert_int_gt(n, 0);
	check_clean(st);
	fw_store_close(st);
}
END_TEST

struct inside {
	struct fw_store *st;
	int64_t last_id;
	int n;
};

static int count_feed(void *ctx, const struct fw_feed *feed)
{
	(void)feed;
	++*(int *)ctx;
	return 0;
}

static int call_inside(void *ctx, const struct fw_feed *feed)
{
	struct inside *c = ctx;
	int n = 0, rc = fw_store_feed_list(c->st, &(struct fw_feed_query){.status = -1}, count_feed, &n, &err);

	ck_assert_msg(
		rc == FW_EINVAL ? n == 0 && err.text[0] : rc == 0 && n == 3, "%d after %d feeds: %s", rc, n, err.text);
	ck_assert_int_gt(feed->id, c->last_id);
	c->last_id = feed->id;
	c->n++;
	return 0;
}

/*
 * A call from a callback is not allowed. A driver that cannot do it returns an error instead of
 * mixing the rows of two lists.
 */
START_TEST(called_from_a_callback)
{
	struct fw_store *st = fresh(_i);
	struct inside c = {.st = st};

	subscribe_many(st, "https://h%d.example/", 0, 3, NOW);
	OK(fw_store_feed_list(st, &(struct fw_feed_query){.status = -1}, call_inside, &c, &err));
	ck_assert_int_eq(c.n, 3);
	fw_store_close(st);
}
END_TEST

/* ---- which stores a build has ---------------------------------------------------------------- */

/*
 * A driver is in the build or absent. A store whose driver is absent is refused; the message names
 * the remedy and hides the password.
 */
START_TEST(absent_drivers_are_named)
{
	static const char *const every[] = {"sqlite", "memory", "redis", "postgres", "mysql"};
	size_t n = 0, absent = 0;

	for (; fw_store_driver_at(n); n++)
		ck_assert_str_eq(fw_store_driver_at(n), store_drivers[n]->name);
	ck_assert_ptr_null(store_drivers[n]);
	for (const char *name; (name = fw_store_absent_at(absent)); absent++) {
		char url[60], remedy[60];
		struct fw_store_config c = {.url = url};
		struct fw_store *st;

		ck_assert(fw_snprintf(url, sizeof(url), "%s://u:hush@127.0.0.1:1/x", name));
		ck_assert(fw_snprintf(remedy, sizeof(remedy), " and build with -D%s=enabled)", name));
		IS(fw_store_open(&c, &st, &err), FW_EUNSUP);
		ck_assert_ptr_null(st);
		ck_assert_msg(
			strstr(err.text, "://u:***@127.0.0.1:1/x\": this build has no ") && strstr(err.text, remedy),
			"%s", err.text);
		ck_assert_ptr_null(strstr(err.text, "hush"));
		ck_assert(!built_in(name));
	}
	ck_assert_uint_eq(n + absent, FW_N(every));
	for (size_t i = 0; i < FW_N(every); i++)
		n -= built_in(every[i]);
	ck_assert_uint_eq(n, 0);
	ck_assert_ptr_null(fw_store_driver_at(99));
}
END_TEST

START_TEST(open_refuses) /* each message names the thing and the remedy */
{
	static const struct {
		const char *url, *words;
		int rc;
	} T[] = {
		{"", "sqlite:/path", FW_EINVAL},
		{"feeds", "write sqlite:feeds", FW_EINVAL},
		{"oracle:x", "knows sqlite:, memory:", FW_EINVAL},
		{"oracle://u:hush@h/x", "unknown scheme", FW_EINVAL},
		{"memory:x", "nothing may follow", FW_EINVAL},
		{"sqlite:", "no file", FW_EINVAL},
		{"sqlite::memory:", "no file", FW_EINVAL},
		{"sqlite:/nowhere/at/all.db", "feedwheel add", FW_ENOTFOUND},
		{"/nowhere/at/all.sqlite3", "feedwheel add", FW_ENOTFOUND},
		{"sqlite:/", "not a regular file", FW_EINVAL},
	};
	struct fw_store *st;

	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_store_config c = {.url = T[i].url};

		IS(fw_store_open(&c, &st, &err), T[i].rc);
		ck_assert_msg(strstr(err.text, T[i].words) != NULL, "%s: %s", T[i].url, err.text);
		ck_assert_ptr_null(strstr(err.text, "hush"));
		ck_assert_ptr_null(st);
	}
	fw_store_close(NULL);
}
END_TEST

START_TEST(names)
{
	char shown[60];

	ck_assert_str_eq(fw_visit_kind_name(FW_VISIT_NOT_MODIFIED), "not_modified");
	ck_assert_str_eq(fw_visit_kind_name((enum fw_visit_kind)99), "unknown");
	ck_assert_str_eq(fw_feed_status_name(FW_FEED_QUARANTINED), "quarantined");
	ck_assert_str_eq(fw_feed_status_name((enum fw_feed_status)99), "unknown");
	ck_assert(fw_store_is_file("/a/b.db") && fw_store_is_file("x.sqlite") && !fw_store_is_file("sqlite:x.db") &&
		!fw_store_is_file("x"));
	ck_assert(fw_store_is_remote("redis://h") && !fw_store_is_remote("sqlite:x") && !fw_store_is_remote("memory:"));
	fw_store_url_show("postgres://u:hush@h/x?password=hush", shown, sizeof(shown));
	ck_assert_msg(!strstr(shown, "hush"), "%s", shown);
}
END_TEST

int main(void)
{
	TCase *t = cases("every driver", setup, teardown, 120);
	const TTest *const every[] = {arguments_refused, nothing_and_null, due_over_all_shards, pushed_and_reaped,
		control_messages_in_order, a_pause_outlives_its_message, a_message_wakes, heartbeats,
		own_records_are_not_shown, looked_at, called_from_a_callback};
	const TTest *const one[] = {absent_drivers_are_named, open_refuses, names};

	stores_begin();
	cases_add(t, every, FW_N(every), under_test_n);
	cases_add_once(t, one, FW_N(one));
	return cases_run("store front", t);
}
