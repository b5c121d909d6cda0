/* SPDX-License-Identifier: ISC */
/*
 * Feeds, on each driver (src/store/driver.h): subscribed, loaded, listed, changed, moved, merged,
 * removed; also by several processes at once.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "drv.h"
#include "base/clock.h"
#include "store/driver.h"

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

static struct store *open_at(int i, const char *url, unsigned flags)
{
	struct fw_store_config c = {.url = url, .flags = flags, .async_commit = true};
	struct fw_err e = {0};
	struct store *st = NULL;

	ck_assert_msg(drv_driver(i)->open(&c, &st, &e) == 0, "%s", e.text);
	return st;
}

#define STORE(st) struct store *st = drv_fresh(_i)
/* A new store, if several processes can open it. */
#define SHARED(st, url)             \
	struct store *st;           \
	const char *url;            \
	if (!under_test[_i].shared) \
		return;             \
	url = drv_url(_i);          \
	st = open_at(_i, url, FW_STORE_CREATE)

/* ---- makers and readers ---------------------------------------------------------------------- */

static int load(struct store *st, const struct fw_feed *f, size_t n, struct store_feed_new *made)
{
	return st->driver->load(st, &(struct store_load){.rows = {.feed = f, .feed_n = n}, .made = made}, &err);
}

static int64_t feed_new(struct store *st, const char *url, int64_t due_at_ms)
{
	struct fw_feed f = {.url = fw_str(url), .due_at_ms = due_at_ms};
	struct store_feed_new made = {0};

	OK(load(st, &f, 1, &made));
	ck_assert(made.id > 0 && !made.existed);
	return made.id;
}

static int keep_one(void *ctx, const struct fw_feed *f)
{
	*(struct fw_feed *)ctx = *f;
	ck_assert(fw_store_feed_dup(&A, ctx));
	return 0;
}

static int feed_get(struct store *st, int64_t id, const char *url, struct fw_feed *f)
{
	*f = (struct fw_feed){0};
	return st->driver->feed_list(st, &(struct store_feed_query){.id = id, .url = fw_str(url)}, keep_one, f, &err);
}

static struct fw_feed feed_of(struct store *st, int64_t id)
{
	struct fw_feed f;

	OK(feed_get(st, id, NULL, &f));
	ck_assert_int_eq(f.id, id);
	return f;
}

static struct fw_store_stats figures(struct store *st)
{
	struct fw_store_stats s;

	OK(st->driver->stats(st, &s, &err));
	return s;
}

struct due {
	int64_t id;
	struct store_due row;
};

static int due_row(void *ctx, const struct store_due *row)
{
	struct due *d = ctx;

	if (row->feed_id == d->id)
		d->row = *row;
	return 0;
}

/* The row that the feed's owner reads. feed_id 0: it is never due. */
static struct store_due due_of(struct store *st, int64_t id)
{
	struct due d = {.id = id};

	OK(st->driver->due(
		st, &(struct store_due_query){.shard = -1, .until_ms = INT64_MAX, .due = due_row, .ctx = &d}, &err));
	return d.row;
}

/* A lease of all shards. */
static struct store_lease *joined(struct store *st)
{
	struct store_lease *l = calloc(1, sizeof(*l));

	ck_assert_ptr_nonnull(l);
	l->lease_ms = 600000;
	OK(st->driver->heartbeat(st, "tester", l, &err));
	ck_assert_uint_eq(l->shard_n, STORE_SHARDS);
	return l;
}

/* Exactly these shards' versions have risen since the last call. -1: none. */
static void risen(struct store *st, struct store_lease *l, int a, int b)
{
	static int64_t before[STORE_SHARDS];

	for (size_t i = 0; i < STORE_SHARDS; i++)
		before[i] = l->shard[i].version;
	OK(st->driver->heartbeat(st, "tester", l, &err));
	for (int i = 0; i < STORE_SHARDS; i++)
		ck_assert_msg((l->shard[i].version > before[i]) == (i == a || i == b), "shard %d: %lld, before %lld", i,
			(long long)l->shard[i].version, (long long)before[i]);
}

/* The outcome of a visit that brought nothing. *f becomes the feed's next state. */
static struct fw_outcome visit(struct store *st, int64_t id, struct fw_feed *f)
{
	static int64_t at_ms = NOW;
	struct store_due due = due_of(st, id);

	*f = feed_of(st, id);
	f->last_visit_ms = at_ms++;
	f->due_at_ms = NOW + 3600000;
	return (struct fw_outcome){.feed_id = id,
		.host_id = due.host_id,
		.was_due_ms = due.due_at_ms,
		.feed = f,
		.visit = {.feed_id = id, .kind = FW_VISIT_OK, .at_ms = f->last_visit_ms}};
}

static struct fw_outcome push(
	int64_t id, const struct fw_feed *f, unsigned groups, const struct fw_entry_row *e, size_t n)
{
	static atomic_int_least64_t at_ms = NOW;

	return (struct fw_outcome){.feed_id = id,
		.feed = f,
		.groups = groups,
		.entries = e,
		.entry_n = n,
		.visit = {.feed_id = id, .kind = FW_VISIT_PUSHED, .at_ms = atomic_fetch_add(&at_ms, 1)}};
}

static int commit(struct store *st, const struct store_lease *l, struct fw_outcome *o, size_t n)
{
	return st->driver->commit(st, &(struct store_commit){.lease_id = l ? l->id : 0, .outcome = o, .n = n}, &err);
}

static void pushed(struct store *st, int64_t id, const struct fw_entry_row *e, size_t n)
{
	static const struct fw_feed none;
	struct fw_outcome o = push(id, &none, 0, e, n);

	OK(commit(st, NULL, &o, 1));
	ck_assert_int_eq(o.rc, 0);
}

/* All texts of both feeds are equal, and all numbers listed in fields.h. */
static void same(const struct fw_feed *a, const struct fw_feed *b)
{
#define TEXT(m)        \
	ck_assert_msg( \
		fw_str_eq(a->m, b->m) && !a->m.p == !b->m.p, #m ": %.*s, %.*s", FW_STR_ARG(a->m), FW_STR_ARG(b->m))
#define NUMBER(m) ck_assert_msg(a->m == b->m, #m ": %lld, %lld", (long long)a->m, (long long)b->m)
	TEXT(url);
	TEXT(why);
	TEXT(error);
	TEXT(validator_url);
	TEXT(etag);
	TEXT(last_modified);
	TEXT(title);
	TEXT(home_page_url);
	TEXT(description);
	TEXT(language);
	TEXT(icon);
	TEXT(hub);
	TEXT(topic);
	TEXT(rhythm);
	TEXT(redirect_url);
	TEXT(host_key);
	TEXT(user_title);
	TEXT(folder);
	TEXT(username);
	TEXT(password);
	ck_assert_int_eq(!a->extra.p, !b->extra.p); /* each engine writes JSON in its own form */
	NUMBER(id);
	NUMBER(status);
	NUMBER(due_at_ms);
	NUMBER(last_visit_ms);
	NUMBER(last_ok_ms);
	NUMBER(last_kind);
	NUMBER(http_status);
	NUMBER(fail_n);
	NUMBER(crash_n);
	NUMBER(expect_us);
	NUMBER(expect_dev_us);
	NUMBER(expect_parts);
	NUMBER(validators_ms);
	NUMBER(body_hash);
	NUMBER(format);
	NUMBER(redirect_since_ms);
	NUMBER(redirect_n);
	NUMBER(interval_ms);
	NUMBER(push_until_ms);
	NUMBER(created_ms);
	NUMBER(last_new_ms);
#undef TEXT
#undef NUMBER
}

static struct fw_feed full_feed(int64_t id, const char *url)
{
	return (struct fw_feed){.id = id,
		.url = fw_str(url),
		.status = FW_FEED_GONE,
		.due_at_ms = 5,
		.why = FW_STR("why"),
		.last_visit_ms = 6,
		.last_ok_ms = 7,
		.last_kind = FW_VISIT_GONE,
		.http_status = 410,
		.fail_n = UINT32_MAX,
		.crash_n = 1,
		.expect_us = 8,
		.expect_dev_us = 9,
		.expect_parts = (INT64_C(1) << 60) - 3,
		.error = FW_STR("[\"words\"]"),
		.validator_url = FW_STR("https://a.example/final"),
		.etag = FW_STR("W/\"\xff\x01\""),
		.last_modified = FW_STR("yesterday"),
		.validators_ms = 10,
		.body_hash = UINT64_MAX - 5,
		.title = FW_STR("Title"),
		.home_page_url = FW_STR("https://a.example/home"),
		.description = FW_STR("About"),
		.language = FW_STR("en"),
		.icon = FW_STR("icon"),
		.format = FW_ATOM10,
		.hub = FW_STR("hub"),
		.topic = FW_STR("topic"),
		.extra = FW_STR("{\"a\":1}"),
		.rhythm = FW_STR("r1"),
		.redirect_url = FW_STR("https://b.example/"),
		.redirect_since_ms = 11,
		.redirect_n = FW_REDIRECT_NAMED + 2,
		.host_key = FW_STR("[203.0.113.7]"),
		.user_title = FW_STR("Mine"),
		.folder = FW_STR("News"),
		.username = FW_STR("me"),
		.password = FW_STR(""),
		.interval_ms = 12,
		.push_until_ms = 13,
		.created_ms = 14,
		.last_new_ms = 15};
}

/* ---- subscribing and loading ----------------------------------------------------------------- */

START_TEST(subscribed)
{
	STORE(st);
	struct fw_feed n[4] = {{.url = FW_STR("https://a.example/"),
				       .user_title = FW_STR("T"),
				       .folder = FW_STR("F"),
				       .home_page_url = FW_STR("H"),
				       .username = FW_STR("u"),
				       .password = FW_STR("p"),
				       .interval_ms = 9,
				       .due_at_ms = 5,
				       .created_ms = 3},
		{.url = FW_STR("https://a.example/"), .user_title = FW_STR("other")},
		{.url = FW_STR("https://b.example/")}, {.url = FW_STR("https://a.example/x")}},
		       f;
	struct store_feed_new made[4];
	struct store_lease *l = joined(st);
	int64_t now, id;

	OK(load(st, n, 4, made));
	ck_assert(!made[0].existed && made[1].existed && !made[2].existed && !made[3].existed);
	ck_assert(made[0].id > 0 && made[1].id == made[0].id && made[2].id == made[0].id + 1 &&
		made[3].id == made[2].id + 1); /* in the order of the load */
	n[0].id = made[0].id;
	f = feed_of(st, made[0].id);
	same(&f, &n[0]);
	n[0].id = 0;
	OK(st->driver->clock(st, &now, &err));
	f = feed_of(st, made[2].id);
	ck_assert(f.due_at_ms > now - 60000 && f.due_at_ms <= now && f.created_ms == f.due_at_ms &&
		f.status == FW_FEED_ACTIVE && f.last_visit_ms == 0);
	ck_assert_int_eq(due_of(st, made[2].id).due_at_ms, f.due_at_ms);
	ck_assert_int_eq(due_of(st, made[0].id).shard, store_host_shard(store_feed_host_id(&n[0])));
	ck_assert_int_eq(due_of(st, made[0].id).host_id, due_of(st, made[3].id).host_id);
	risen(st, l, due_of(st, made[0].id).shard, due_of(st, made[2].id).shard);
	OK(load(st, n, 4, made)); /* again: nothing changes */
	for (int i = 0; i < 4; i++)
		ck_assert(made[i].existed && made[i].id == due_of(st, made[i].id).feed_id);
	f = feed_of(st, made[0].id);
	ck_assert(fw_str_eq(f.user_title, FW_STR("T")));
	risen(st, l, -1, -1);
	ck_assert_int_eq(figures(st).feed_n, 3);
	id = made[3].id;
	OK(st->driver->feed_drop(st, id, 0, &err));
	ck_assert_int_gt(feed_new(st, "https://a.example/x", NOW), id); /* ids are not used again */
	free(l);
	drv_end(st);
}
END_TEST

/* URLs are compared byte by byte, whatever the engine's collation does. */
START_TEST(letters_of_addresses_count)
{
	static const char *const urls[] = {"https://a.example/x", "https://a.example/X", u8"https://a.example/ä",
		"https://a.example/a", "https://a.example/x ", "https://a.example/'\"\\;--"};
	STORE(st);
	char *far = calloc(1, 9001);

	for (size_t i = 0; i < FW_N(urls); i++) {
		int64_t id = feed_new(st, urls[i], NOW);

		ck_assert_int_eq(figures(st).feed_n, (int64_t)i + 1);
		ck_assert(fw_str_eq(feed_of(st, id).url, fw_str(urls[i])));
	}
	memset(far, 'x', 9000); /* equal within the length of any index */
	memcpy(far, "https://a.example/", 18);
	feed_new(st, far, NOW);
	far[8999] = 'y';
	feed_new(st, far, NOW);
	ck_assert_int_eq(figures(st).feed_n, (int64_t)FW_N(urls) + 2);
	free(far);
	drv_end(st);
}
END_TEST

START_TEST(every_member_loaded)
{
	STORE(st);
	struct fw_feed f[3] = {full_feed(7, "https://a.example/"), {.id = 9, .url = FW_STR("https://b.example/")},
		full_feed(3, "https://c.example/")},
		       got;

	f[2].status = FW_FEED_ACTIVE;
	for (int round = 0; round < 2; round++) { /* a load may be repeated; existing rows stay */
		OK(load(st, f, 3, NULL));
		f[0].user_title = round ? f[0].user_title : FW_STR("renamed");
		f[0].status = FW_FEED_ACTIVE;
	}
	f[0] = full_feed(7, "https://a.example/");
	for (int i = 0; i < 3; i++) {
		got = feed_of(st, f[i].id);
		same(&got, &f[i]);
		OK(feed_get(st, 0, fw_arena_printf(&A, "%.*s", FW_STR_ARG(f[i].url)), &got));
		same(&got, &f[i]);
	}
	ck_assert(due_of(st, 3).due_at_ms == 5 && due_of(st, 3).expect_us == 8 && due_of(st, 3).expect_dev_us == 9 &&
		due_of(st, 3).last_visit_ms == 6);
	ck_assert_int_eq(due_of(st, 3).host_id, store_host_id(FW_STR("[203.0.113.7]")));
	ck_assert(due_of(st, 9).feed_id == 9 && due_of(st, 9).due_at_ms == 0 && due_of(st, 7).feed_id == 0);
	ck_assert_int_eq(feed_new(st, "https://d.example/", NOW), 10); /* above the highest id */
	ck_assert_int_eq(figures(st).last_feed_id, 10);
	drv_end(st);
}
END_TEST

START_TEST(load_refuses)
{
	STORE(st);
	static const struct {
		int64_t id;
		const char *url;
		int64_t id2;
		const char *url2;
	} T[] = {
		{5, "https://x.example/", 1, "https://other.example/"},
		{5, "https://x.example/", 2, "https://a.example/"},
		{5, "https://x.example/", 2, "https://b.example/changed"},
		{1, "https://b.example/", 2, "https://a.example/"},
		{5, "https://x.example/", 5, "https://y.example/"},
		{5, "https://x.example/", 6, "https://x.example/"},
		{6, "https://x.example/", 5, "https://x.example/"},
		{5, "https://x.example/", INT64_C(1) << 53, "https://y.example/"},
		{5, "https://x.example/", 0, "https://y.example/"},
		{5, "https://x.example/", -1, "https://y.example/"},
	};
	struct store_lease *l = joined(st);
	struct fw_feed got;

	feed_new(st, "https://a.example/", NOW);
	feed_new(st, "https://b.example/", NOW);
	OK(st->driver->heartbeat(st, "tester", l, &err));
	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_feed f[2] = {
			{.id = T[i].id, .url = fw_str(T[i].url)}, {.id = T[i].id2, .url = fw_str(T[i].url2)}};

		err.text[0] = 0;
		ck_assert_msg(load(st, f, 2, NULL) == FW_EINVAL, "case %zu: %s", i, err.text);
		ck_assert_ptr_nonnull(strstr(err.text, i < 7 ? "empty store" : "number"));
		ck_assert_int_eq(feed_get(st, 5, NULL, &got), FW_ENOTFOUND);
		ck_assert_int_eq(figures(st).feed_n, 2);
	}
	risen(st, l, -1, -1);
	ck_assert_int_eq(feed_new(st, "https://c.example/", NOW), 3); /* and no id was used up */
	free(l);
	drv_end(st);
}
END_TEST

/*
 * Feeds with and without ids in one load, with all their rows and with repeats; then the load
 * again.
 */
START_TEST(loaded_whole)
{
	STORE(st);
	struct fw_feed f[5] = {{.url = FW_STR("https://new.example/1")},
		{.id = 40, .url = FW_STR("https://c.example/1"), .due_at_ms = NOW},
		{.id = 50, .url = FW_STR("https://c.example/2"), .due_at_ms = NOW},
		{.url = FW_STR("https://c.example/2")}, {.id = 40, .url = FW_STR("https://c.example/1")}};
	struct store_feed_new made[5];
	struct fw_entry_row e[3] = {entry(1, 1, "a", "a"), entry(2, 1, "b", "b"), entry(1, 1, "a", "a")};
	struct fw_entry_key k[2] = {{.feed_id = 40, .key = {200}, .hash = 3}, {.feed_id = 40, .key = {200}, .hash = 3}};
	struct fw_visit v[2] = {{.id = 11, .feed_id = 40, .at_ms = NOW, .run_id = 1},
		{.id = 12, .feed_id = 40, .at_ms = NOW + 1, .run_id = 1}};
	struct fw_store_stats s;

	for (int i = 0; i < 3; i++) {
		e[i].id = 10 + i;
		e[i].feed_id = 40;
		e[i].revision = 1;
		e[i].seen_ms = e[i].changed_ms = NOW;
	}
	for (int round = 0; round < 3; round++) {
		if (round == 2) /* removed feeds come back */
			OK(st->driver->feed_drop(st, 40, 0, &err));
		OK(st->driver->load(st, &(struct store_load){.rows = {f, e, k, v, 5, 3, 2, 2}, .made = made}, &err));
		ck_assert(made[0].id == 51 && made[0].existed == (round > 0) && made[3].id == 50 && made[3].existed &&
			made[1].id == 40 && made[4].id == 40);
		s = figures(st);
		ck_assert(s.feed_n == 3 && s.entry_n == 2 && s.visit_n == 2 && s.last_entry_id == 11 &&
			s.last_visit_id == 12 && s.last_feed_id == 51);
		ck_assert_int_eq(feed_of(st, 40).entry_n, 2);
		drv_clean(st);
	}
	/* the row with an id decides, also where it comes later */
	f[0].url = f[1].url = FW_STR("https://new.example/2");
	f[1].id = 60;
	OK(load(st, f, 2, made));
	ck_assert(made[0].id == 60 && made[0].existed && made[1].id == 60 && figures(st).feed_n == 4);
	pushed(st, 50, e, 2);
	s = figures(st);
	ck_assert(s.last_entry_id >= 13 && s.last_visit_id > 12);
	drv_end(st);
}
END_TEST

#define MANY 1200

/* Feeds 1 to MANY: each third in a folder, each 50th called Pretty. */
static void many(struct store *st)
{
	struct fw_feed *f = calloc(MANY, sizeof(*f));

	ck_assert_ptr_nonnull(f);
	for (int i = 0; i < MANY; i++) {
		f[i] = (struct fw_feed){.id = i + 1,
			.url = fw_str(fw_arena_printf(&A, "https://h%d.example/", i % 700)),
			.due_at_ms = NOW + (i * 7919) % 1000,
			.folder = i % 3 ? FW_STR_NONE : FW_STR("Third"),
			.title = i % 50 ? FW_STR("Plain") : FW_STR("Very PRETTY Title")};
		f[i].url = i < 700 ? f[i].url : fw_str(fw_arena_printf(&A, "https://h%d.example/two", i % 700));
		f[i].fail_n = i % 7 == 0;
		f[i].status = i % 11 ? FW_FEED_ACTIVE : FW_FEED_PAUSED;
	}
	OK(load(st, f, MANY, NULL));
	free(f);
}

static int nothing_left(void *ctx, const struct fw_feed *f)
{
	(void)f;
	return ++*(int *)ctx == 3 ? 77 : 0;
}

struct ids {
	int64_t id[MANY + 1], due[MANY + 1];
	int n;
};

static int keep_id(void *ctx, const struct fw_feed *f)
{
	struct ids *s = ctx;

	ck_assert_int_lt(s->n, MANY);
	s->due[s->n] = f->due_at_ms;
	s->id[s->n++] = f->id;
	return 0;
}

static struct ids *listed(struct store *st, struct fw_feed_query q)
{
	struct ids *s = fw_arena_alloc(&A, sizeof(*s));

	ck_assert_ptr_nonnull(s);
	*s = (struct ids){.n = 0};
	OK(st->driver->feed_list(st, &(struct store_feed_query){.q = q}, keep_id, s, &err));
	for (int i = 1; i < s->n; i++) {
		if (q.by_due)
			ck_assert(s->due[i] > s->due[i - 1] || (s->due[i] == s->due[i - 1] && s->id[i] > s->id[i - 1]));
		else
			ck_assert_int_gt(s->id[i], s->id[i - 1]);
	}
	return s;
}

/* Each query on the feeds of many(). */
START_TEST(lists)
{
	STORE(st);
	const struct fw_feed_query ask[] = {
		{.status = -1},
		{.status = FW_FEED_ACTIVE},
		{.status = FW_FEED_PAUSED},
		{.status = FW_FEED_GONE},
		{.status = -1, .failing = true},
		{.status = -1, .folder = FW_STR("Third")},
		{.status = -1, .folder = FW_STR("")},
		{.status = -1, .folder = FW_STR("third")},
		{.status = -1, .match = FW_STR("pretty t")},
		{.status = -1, .match = FW_STR("HTTPS://H123.")},
		{.status = -1, .match = FW_STR("")},
		{.status = FW_FEED_PAUSED, .failing = true, .folder = FW_STR("Third"), .match = FW_STR("example/")},
		{.status = -1, .match = FW_STR("nobody")},
	};
	int stop = 0;

	many(st);
	for (size_t i = 0; i < 3 * FW_N(ask); i++) {
		struct fw_feed_query q = ask[i / 3];
		int want = 0;
		struct ids *s;

		q.by_due = i % 3 == 1;
		q.after_id = i % 3 == 2 ? 600 : 0;
		s = listed(st, q);
		for (int k = (int)q.after_id; k < MANY; k++) {
			bool third = k % 3 == 0,
			     match = !q.match.len || (fw_str_eq(q.match, FW_STR("pretty t")) && k % 50 == 0) ||
				fw_str_eq(q.match, FW_STR("example/")) ||
				(fw_str_eq(q.match, FW_STR("HTTPS://H123.")) && k % 700 == 123);

			want += (q.status < 0 || (q.status == FW_FEED_ACTIVE && k % 11) ||
					(q.status == FW_FEED_PAUSED && k % 11 == 0)) &&
				(!q.failing || k % 7 == 0) &&
				(!q.folder.p || fw_str_eq(q.folder, third ? FW_STR("Third") : FW_STR(""))) && match;
		}
		ck_assert_msg(s->n == want, "query %zu (%zu): %d, not %d", i / 3, i % 3, s->n, want);
		for (size_t limit = 1; limit < 600; limit = limit * 5 + 1) { /* the first rows of the list */
			struct ids *few;

			q.limit = limit;
			few = listed(st, q);
			ck_assert_int_eq(few->n, FW_MIN((int)limit, want));
			ck_assert(memcmp(few->id, s->id, (size_t)few->n * sizeof(few->id[0])) == 0);
		}
	}
	for (int i = 0; i < 3; i++) { /* the code that ends the list is returned, and no statement stays open */
		stop = 0;
		ck_assert_int_eq(
			st->driver->feed_list(st,
				&(struct store_feed_query){.q = {.status = -1,
								   .by_due = i == 1,
								   .match = i == 2 ? FW_STR("h") : FW_STR_NONE}},
				nothing_left, &stop, &err),
			77);
		ck_assert_int_eq(stop, 3);
		feed_new(st,
			i == 0         ? "https://x.example/0" :
				i == 1 ? "https://x.example/1" :
					 "https://x.example/2",
			NOW);
	}
	drv_end(st);
}
END_TEST

#define SPARSE 21000 /* a first look finds some hundred, one pass 20,000 */
#define SPARSE_STEP 9

struct sparse {
	int64_t last, step;
	int n;
};

static int sparse_next(void *ctx, const struct fw_feed *f)
{
	struct sparse *s = ctx;

	ck_assert_int_eq(f->id, s->last + s->step);
	s->last = f->id;
	s->n++;
	return 0;
}

/* Few of the next ids belong to a feed with the state, more than one pass finds do in all. */
START_TEST(lists_sparse)
{
	STORE(st);
	struct fw_feed *f = calloc(SPARSE, sizeof(*f));

	ck_assert_ptr_nonnull(f);
	for (int i = 0; i < SPARSE; i++)
		f[i] = (struct fw_feed){.id = (i + 1) * SPARSE_STEP,
			.url = fw_str(fw_arena_printf(&A, "https://h%d.example/%d", i % 97, i)),
			.folder = FW_STR("all"),
			.due_at_ms = NOW,
			.status = FW_FEED_PAUSED,
			.fail_n = i % 5000 == 4999};
	for (int at = 0; at < SPARSE; at += SPARSE / 3)
		OK(load(st, f + at, SPARSE / 3, NULL));
	for (int named = 0; named < 2; named++) {
		struct fw_feed_query q = {.status = -1, .failing = true};
		struct sparse s = {.step = 5000 * SPARSE_STEP};

		q.folder = named ? FW_STR("all") : FW_STR_NONE;
		OK(st->driver->feed_list(st, &(struct store_feed_query){.q = q}, sparse_next, &s, &err));
		ck_assert_int_eq(s.n, SPARSE / 5000);
		for (s = (struct sparse){.step = s.step}; s.n < SPARSE / 5000;) { /* page by page */
			q.after_id = s.last;
			q.limit = 1;
			OK(st->driver->feed_list(st, &(struct store_feed_query){.q = q}, sparse_next, &s, &err));
		}
		ck_assert_int_eq(s.last, SPARSE / 5000 * 5000 * SPARSE_STEP);
	}
	for (int named = 0; named < 2; named++) { /* more than one pass finds */
		struct fw_feed_query q = {.status = FW_FEED_PAUSED, .limit = SPARSE - 20};
		struct sparse s = {.step = SPARSE_STEP};

		q.folder = named ? FW_STR("all") : FW_STR_NONE;
		OK(st->driver->feed_list(st, &(struct store_feed_query){.q = q}, sparse_next, &s, &err));
		ck_assert_int_eq(s.n, SPARSE - 20);
		q.after_id = s.last;
		q.limit = 0;
		OK(st->driver->feed_list(st, &(struct store_feed_query){.q = q}, sparse_next, &s, &err));
		ck_assert_int_eq(s.n, SPARSE);
	}
	free(f);
	drv_end(st);
}
END_TEST

static int due_keep(void *ctx, const struct store_due *row)
{
	struct store_due **at = ctx;

	*(*at)++ = *row;
	return 0;
}

#define CROWD 9000

struct crowd {
	bool seen[CROWD + 1];
	int n, stop;
};

static int crowd_due(void *ctx, const struct store_due *due)
{
	struct crowd *c = ctx;

	ck_assert(due->feed_id > 0 && due->feed_id <= CROWD && !c->seen[due->feed_id]);
	c->seen[due->feed_id] = true;
	return ++c->n == c->stop ? 77 : 0;
}

/* More feeds of one host are due than one statement reads: each comes once. */
START_TEST(due_crowd)
{
	STORE(st);
	struct fw_feed *f = calloc(CROWD, sizeof(*f));
	struct crowd *c = calloc(1, sizeof(*c));
	struct store_due_query q = {.shard = -1, .until_ms = NOW, .due = crowd_due, .ctx = c};

	ck_assert(f && c);
	for (int i = 0; i < CROWD; i++)
		f[i] = (struct fw_feed){.id = i + 1,
			.url = fw_str(fw_arena_printf(&A, "https://h%d.example/%d", i % 100 ? 0 : i, i)),
			.due_at_ms = i % 3 ? NOW : NOW + 1,
			.status = i % 5 ? FW_FEED_ACTIVE : FW_FEED_PAUSED};
	OK(load(st, f, CROWD, NULL));
	OK(st->driver->due(st, &q, &err));
	for (int i = 0; i < CROWD; i++)
		ck_assert_int_eq(c->seen[i + 1], i % 3 && i % 5);
	*c = (struct crowd){.stop = 4500};
	ck_assert_int_eq(st->driver->due(st, &q, &err), 77);
	*c = (struct crowd){.n = 0};
	q.shard = store_host_shard(store_host_id(FW_STR("h0.example")));
	OK(st->driver->due(st, &q, &err));
	ck_assert_int_ge(c->n, 4096);
	free(f);
	free(c);
	drv_end(st);
}
END_TEST

/* State for claims: in any order; feeds removed meanwhile are skipped. */
START_TEST(of_due)
{
	STORE(st);
	struct store_due due[MANY], *end = due;
	struct ids s = {.n = 0};
	bool seen[MANY + 1] = {false};
	size_t n;

	many(st);
	OK(st->driver->due(
		st, &(struct store_due_query){.shard = -1, .until_ms = INT64_MAX, .due = due_keep, .ctx = &end}, &err));
	n = (size_t)(end - due);
	ck_assert_uint_eq(n, MANY - (MANY + 10) / 11);
	OK(st->driver->feed_drop(st, due[7].feed_id, 0, &err));
	OK(st->driver->feed_drop(st, due[n - 1].feed_id, 0, &err));
	due[9].shard ^= 1; /* the feed was in this shard, and has moved */
	OK(st->driver->feed_list(st, &(struct store_feed_query){.due = due, .due_n = n}, keep_id, &s, &err));
	ck_assert_uint_eq(s.n, n - 3);
	for (int i = 0; i < s.n; i++) {
		ck_assert(!seen[s.id[i]] && s.id[i] != due[7].feed_id && s.id[i] != due[9].feed_id);
		seen[s.id[i]] = true;
	}
	s.n = 0;
	OK(st->driver->feed_list(st, &(struct store_feed_query){.due = due, .due_n = 0}, keep_id, &s, &err));
	ck_assert_int_eq(s.n, 0);
	drv_end(st);
}
END_TEST

START_TEST(found)
{
	STORE(st);
	struct fw_entry_row e[3] = {entry(1, 1, "a", "a"), entry(2, 1, "b", "b"), entry(3, 1, "c", "c")};
	struct fw_prune p = {.entries_before_ms = INT64_MAX / 2};
	int64_t id = feed_new(st, "https://a.example/", NOW);
	struct fw_feed f;

	feed_new(st, "https://b.example/", NOW);
	pushed(st, id, e, 3);
	OK(feed_get(st, 0, "https://a.example/", &f));
	ck_assert(f.id == id && f.entry_n == 3 && feed_of(st, id).entry_n == 3);
	ck_assert_int_gt(f.last_new_ms, NOW);
	IS(feed_get(st, 0, "https://a.example", &f), FW_ENOTFOUND);
	ck_assert_ptr_nonnull(strstr(err.text, "https://a.example"));
	IS(feed_get(st, 77, NULL, &f), FW_ENOTFOUND);
	ck_assert_ptr_nonnull(strstr(err.text, "77"));
	OK(st->driver->prune(st, &p, &err)); /* pruned entries are not counted */
	ck_assert_int_eq(p.entry_n, 3);
	ck_assert_int_eq(feed_of(st, id).entry_n, 0);
	drv_end(st);
}
END_TEST

/* ---- changes by the user --------------------------------------------------------------------- */

START_TEST(set)
{
	STORE(st);
	struct fw_feed was = full_feed(1, "https://a.example/"),
		       now = {.id = 1,
			       .status = FW_FEED_PAUSED,
			       .user_title = FW_STR("t2"),
			       .folder = FW_STR_NONE,
			       .interval_ms = 100,
			       .due_at_ms = FW_DUE_FIRST,
			       .username = FW_STR_NONE,
			       .password = FW_STR("p2"),
			       .crash_n = 0,
			       .push_until_ms = 101},
		       got;
	struct store_lease *l;
	int shard;

	was.status = FW_FEED_ACTIVE;
	OK(load(st, &was, 1, NULL));
	feed_new(st, "https://b.example/", NOW);
	l = joined(st);
	shard = due_of(st, 1).shard;
	for (unsigned what = 1; what <= FW_SET_PUSH; what <<= 1) { /* each member alone; the others stay */
		OK(st->driver->feed_set(st, &now, what, &err));
#define SET(bit, member) was.member = what == bit ? now.member : was.member
		SET(FW_SET_STATUS, status);
		SET(FW_SET_TITLE, user_title);
		SET(FW_SET_FOLDER, folder);
		SET(FW_SET_INTERVAL, interval_ms);
		SET(FW_SET_DUE, due_at_ms);
		SET(FW_SET_AUTH, username);
		SET(FW_SET_AUTH, password);
		SET(FW_SET_CRASH, crash_n);
		SET(FW_SET_PUSH, push_until_ms);
#undef SET
		got = feed_of(st, 1);
		same(&got, &was);
		risen(st, l, what == FW_SET_STATUS || what == FW_SET_DUE ? shard : -1, -1);
	}
	ck_assert_int_eq(due_of(st, 1).feed_id, 0); /* paused */
	was = full_feed(1, "https://a.example/");
	was.status = FW_FEED_ACTIVE;
	OK(st->driver->feed_set(st, &was, 2 * FW_SET_PUSH - 1, &err)); /* all members at once */
	got = feed_of(st, 1);
	same(&got, &was);
	ck_assert_int_eq(due_of(st, 1).due_at_ms, 5);
	now.id = 77;
	IS(st->driver->feed_set(st, &now, FW_SET_TITLE, &err), FW_ENOTFOUND);
	ck_assert_ptr_nonnull(strstr(err.text, "77"));
	free(l);
	drv_end(st);
}
END_TEST

START_TEST(dropped)
{
	STORE(st);
	struct fw_entry_row e[2] = {entry(1, 1, "a", "a"), entry(2, 1, "b", "b")};
	int64_t a = feed_new(st, "https://a.example/", NOW), b = feed_new(st, "https://b.example/", NOW);
	struct store_lease *l = joined(st);
	struct fw_outcome o[2];
	struct fw_feed f[2];
	int shard = due_of(st, a).shard;
	struct fw_store_stats s;

	pushed(st, a, e, 2);
	pushed(st, b, e, 1);
	o[0] = visit(st, a, &f[0]);
	o[1] = visit(st, b, &f[1]);
	OK(st->driver->feed_drop(st, a, 0, &err));
	risen(st, l, shard, -1);
	s = figures(st);
	ck_assert(s.feed_n == 1 && s.entry_n == 1 && s.visit_n == 1);
	IS(feed_get(st, a, NULL, &f[0]), FW_ENOTFOUND);
	IS(feed_get(st, 0, "https://a.example/", &f[0]), FW_ENOTFOUND);
	IS(st->driver->feed_drop(st, a, 0, &err), FW_ENOTFOUND);
	OK(commit(st, l, o, 2)); /* of what was in flight nothing is written */
	ck_assert(o[0].rc == FW_ENOTFOUND && o[1].rc == 0);
	drv_clean(st);
	OK(st->driver->feed_drop(st, b, 0, &err));
	s = figures(st);
	ck_assert(s.feed_n == 0 && s.entry_n == 0 && s.visit_n == 0 && s.next_due_ms == FW_NO_DATE);
	free(l);
	drv_end(st);
}
END_TEST

START_TEST(merged)
{
	STORE(st);
	struct fw_entry_row a[3] = {entry(1, 1, "one", "1"), entry(2, 1, "two", "2"), entry(3, 1, "three", "3")},
			    b[2] = {entry(9, 1, "zwei", "2"), entry(3, 1, "drei", "3")};
	int64_t from = feed_new(st, "https://a.example/", NOW), into = feed_new(st, "https://b.example/", NOW);
	struct store_lease *l = joined(st);
	int shard = due_of(st, from).shard;
	struct fw_store_stats s;
	struct fw_feed f;

	a[0].guid = FW_STR("g1");
	a[1].guid = b[0].guid = FW_STR("g2");
	pushed(st, from, a, 3);
	pushed(st, into, b, 2);
	IS(st->driver->feed_drop(st, from, 77, &err), FW_ENOTFOUND);
	IS(st->driver->feed_drop(st, 77, into, &err), FW_ENOTFOUND);
	IS(st->driver->feed_drop(st, into, into, &err), FW_EINVAL);
	s = figures(st);
	ck_assert(s.feed_n == 2 && s.entry_n == 5 && s.visit_n == 2);
	risen(st, l, -1, -1);
	OK(st->driver->feed_drop(st, from, into, &err));
	risen(st, l, shard, -1);
	s = figures(st);
	ck_assert(s.feed_n == 1 && s.entry_n == 3 && s.visit_n == 1); /* "two" exists by its guid, "three" by its key */
	ck_assert_int_eq(feed_of(st, into).entry_n, 3);
	IS(feed_get(st, 0, "https://a.example/", &f), FW_ENOTFOUND);
	pushed(st, into, a, 1); /* entries that were merged are known by their keys */
	ck_assert_int_eq(figures(st).entry_n, 3);
	drv_clean(st);
	OK(st->driver->feed_drop(st, into, 0, &err));
	ck_assert_int_eq(figures(st).entry_n, 0);
	free(l);
	drv_end(st);
}
END_TEST

/* A merge that no person asked for: no entry of the one becomes one of the other. */
START_TEST(taken_up)
{
	STORE(st);
	struct fw_entry_row e[2] = {entry(1, 1, "ours", "1"), entry(2, 1, "forged", "2")};
	int64_t from = feed_new(st, "https://a.example/", NOW), into = feed_new(st, "https://b.example/", NOW);
	struct fw_feed f = {.id = into, .username = FW_STR("bob"), .password = FW_STR("secret")};
	struct fw_store_stats s;

	pushed(st, from, e, 2);
	pushed(st, into, e, 1);
	IS(st->driver->feed_adopt(st, from, 77, &err), FW_ENOTFOUND);
	IS(st->driver->feed_adopt(st, 77, into, &err), FW_ENOTFOUND);
	OK(st->driver->feed_set(st, &f, FW_SET_AUTH, &err));
	IS(st->driver->feed_adopt(st, from, into, &err), FW_EINVAL);
	ck_assert(strstr(err.text, "different logins"));
	f.id = from;
	f.username = FW_STR("alice");
	OK(st->driver->feed_set(st, &f, FW_SET_AUTH, &err));
	IS(st->driver->feed_adopt(st, from, into, &err), FW_EINVAL);
	s = figures(st);
	ck_assert(s.feed_n == 2 && s.entry_n == 3);
	f.username = FW_STR("bob");
	OK(st->driver->feed_set(st, &f, FW_SET_AUTH, &err));
	OK(st->driver->feed_adopt(st, from, into, &err));
	s = figures(st);
	ck_assert(s.feed_n == 1 && s.entry_n == 1);
	ck_assert_int_eq(feed_of(st, into).entry_n, 1);
	IS(feed_get(st, 0, "https://a.example/", &f), FW_ENOTFOUND);
	pushed(st, into, e, 2); /* what it has itself it stores */
	ck_assert_int_eq(feed_of(st, into).entry_n, 2);
	drv_clean(st);
	drv_end(st);
}
END_TEST

/* ---- changes by outcomes --------------------------------------------------------------------- */

static const unsigned GROUPS[] = {
	FW_GROUP_ERROR, FW_GROUP_VALIDATORS, FW_GROUP_META, FW_GROUP_RHYTHM, FW_GROUP_REDIRECT};

/* Copies the members of these groups from `from`. */
static void groups_take(struct fw_feed *to, const struct fw_feed *from, unsigned groups)
{
	if (groups & FW_GROUP_ERROR)
		to->error = from->error;
	if (groups & FW_GROUP_VALIDATORS) {
		to->validator_url = from->validator_url, to->etag = from->etag, to->last_modified = from->last_modified;
		to->validators_ms = from->validators_ms, to->body_hash = from->body_hash;
	}
	if (groups & FW_GROUP_META) {
		to->title = from->title, to->home_page_url = from->home_page_url, to->description = from->description,
		to->language = from->language;
		to->icon = from->icon, to->format = from->format, to->hub = from->hub, to->topic = from->topic,
		to->extra = from->extra;
	}
	if (groups & FW_GROUP_RHYTHM)
		to->rhythm = from->rhythm;
	if (groups & FW_GROUP_REDIRECT)
		to->redirect_url = from->redirect_url, to->redirect_since_ms = from->redirect_since_ms,
		to->redirect_n = from->redirect_n;
}

/*
 * Each feed of a commit has other groups; then everything is reset. The user's members are never
 * written.
 */
START_TEST(groups)
{
	STORE(st);
	enum { N = 32 };
	struct fw_feed f[N], want[N], got, all = full_feed(0, "https://other.example/"), none = {0};
	struct fw_outcome o[N];
	struct store_lease *l;
	int64_t id[N];

	for (int i = 0; i < N; i++)
		id[i] = feed_new(st, fw_arena_printf(&A, "https://h%d.example/", i), NOW);
	l = joined(st);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < N; i++) {
			o[i] = visit(st, id[i], &f[i]);
			want[i] = f[i];
			o[i].groups = 0;
			for (size_t g = 0; g < FW_N(GROUPS); g++)
				o[i].groups |= i >> g & 1 ? GROUPS[g] : 0;
			groups_take(&f[i], round ? &none : &all, ~0U);
			groups_take(&want[i], &f[i], o[i].groups);
			f[i].folder = f[i].user_title = f[i].username = f[i].password = f[i].url = f[i].host_key =
				FW_STR("not mine");
			f[i].interval_ms = f[i].push_until_ms = f[i].created_ms = f[i].last_new_ms = 99;
		}
		OK(commit(st, l, o, N));
		for (int i = 0; i < N; i++) {
			ck_assert_int_eq(o[i].rc, 0);
			got = feed_of(st, id[i]);
			same(&got, &want[i]);
		}
	}
	risen(st, l, -1, -1); /* its own commits raise no version */
	free(l);
	drv_end(st);
}
END_TEST

/* A push writes only members that are absent so far. */
START_TEST(pushed_meta)
{
	STORE(st);
	struct fw_feed a = full_feed(1, "https://a.example/"),
		       b = {.id = 2, .url = FW_STR("https://b.example/"), .title = FW_STR("kept")},
		       told = {.title = FW_STR("t"),
			       .home_page_url = FW_STR("h"),
			       .description = FW_STR("d"),
			       .language = FW_STR("de"),
			       .icon = FW_STR("i")},
		       got;
	struct fw_outcome o[2] = {push(1, &told, FW_GROUP_META, NULL, 0), push(2, &told, FW_GROUP_META, NULL, 0)};

	OK(load(st, &a, 1, NULL));
	OK(load(st, &b, 1, NULL));
	OK(commit(st, NULL, o, 2));
	got = feed_of(st, 1);
	same(&got, &a);
	got = feed_of(st, 2);
	b.home_page_url = told.home_page_url, b.description = told.description, b.language = told.language,
	b.icon = told.icon;
	same(&got, &b);
	drv_end(st);
}
END_TEST

static int count_visit(void *ctx, const struct fw_visit *v)
{
	ck_assert_ptr_nonnull(v->feed_url.p);
	++*(int *)ctx;
	return 0;
}

static int visits_of(struct store *st, int64_t id)
{
	int n = 0;

	OK(st->driver->visit_list(st, &(struct fw_visit_query){.feed_id = id}, count_visit, &n, &err));
	return n;
}

/* A URL on another host: the feed's rows go to that host's shard, and both owners see it. */
START_TEST(adopted)
{
	STORE(st);
	int64_t id = feed_new(st, "https://a.example/", NOW), other = feed_new(st, "https://b.example/taken", NOW);
	struct store_lease *l = joined(st);
	struct store_due was = due_of(st, id), due;
	struct fw_outcome o[2];
	struct fw_feed f[2], got;
	struct ids s = {.n = 0};

	o[0] = visit(st, id, &f[0]);
	f[0].url = FW_STR("https://b.example/taken");
	f[0].error = FW_STR("words");
	o[0].groups = FW_GROUP_URL | FW_GROUP_ERROR;
	OK(commit(st, l, o, 1));
	ck_assert_int_eq(o[0].rc, FW_EINVAL);
	got = feed_of(st, id); /* the rest is written */
	ck_assert(fw_str_eq(got.url, FW_STR("https://a.example/")) && fw_str_eq(got.error, FW_STR("words")) &&
		got.last_visit_ms == f[0].last_visit_ms && visits_of(st, id) == 1);
	risen(st, l, -1, -1);
	drv_clean(st);
	o[0] = visit(st, id, &f[0]); /* within its host */
	f[0].url = FW_STR("https://a.example/more");
	o[0].groups = FW_GROUP_URL;
	OK(commit(st, l, o, 1));
	ck_assert(o[0].rc == 0 && due_of(st, id).host_id == was.host_id && due_of(st, id).shard == was.shard);
	risen(st, l, -1, -1);
	o[0] = visit(st, id, &f[0]); /* to another host; both feeds want the same URL */
	o[1] = visit(st, other, &f[1]);
	f[0].url = f[1].url = FW_STR("https://b.example/free");
	o[0].groups = o[1].groups = FW_GROUP_URL;
	OK(commit(st, l, o, 2));
	ck_assert((o[0].rc == 0 && o[1].rc == FW_EINVAL) || (o[0].rc == FW_EINVAL && o[1].rc == 0));
	if (o[0].rc) { /* the other feed was first: it is removed */
		OK(st->driver->feed_drop(st, other, 0, &err));
		o[0] = visit(st, id, &f[0]);
		f[0].url = FW_STR("https://b.example/free");
		o[0].groups = FW_GROUP_URL;
		OK(commit(st, l, o, 1));
		ck_assert_int_eq(o[0].rc, 0);
	}
	due = due_of(st, id);
	ck_assert(due.host_id == store_host_id(FW_STR("b.example")) && due.shard == store_host_shard(due.host_id) &&
		due.shard != was.shard);
	ck_assert_int_eq(due.due_at_ms, NOW + 3600000);
	risen(st, l, was.shard, due.shard);
	OK(feed_get(st, 0, "https://b.example/free", &got));
	ck_assert(got.id == id && got.last_visit_ms == f[0].last_visit_ms);
	IS(feed_get(st, 0, "https://a.example/more", &got), FW_ENOTFOUND);
	ck_assert_int_ge(visits_of(st, id), 3);
	OK(st->driver->feed_list(st, &(struct store_feed_query){.due = &was, .due_n = 1}, keep_id, &s, &err));
	ck_assert_int_eq(s.n, 0);
	OK(st->driver->feed_list(st, &(struct store_feed_query){.due = &due, .due_n = 1}, keep_id, &s, &err));
	ck_assert_int_eq(s.n, 1);
	o[0] = visit(st, id, &f[0]); /* read in the old shard, before the move: stale */
	o[0].host_id = was.host_id;
	OK(commit(st, l, o, 1));
	ck_assert_int_eq(o[0].rc, FW_ENOTFOUND);
	feed_new(st, "https://a.example/", NOW); /* its first URL is free */
	drv_clean(st);
	OK(st->driver->feed_drop(st, id, 0, &err));
	drv_end(st);
	free(l);
}
END_TEST

START_TEST(host_key)
{
	STORE(st);
	static const char KEY[] = "[203.0.113.7]";
	int64_t a = feed_new(st, "https://a.example/", NOW), b = feed_new(st, "https://b.example/", NOW);
	struct fw_entry_row e = entry(1, 1, "t", "c");
	struct store_lease *l = joined(st);
	struct store_due was = due_of(st, a);
	struct fw_outcome o[2];
	struct fw_feed f[2];

	o[0] = visit(st, a, &f[0]);
	o[1] = visit(st, b, &f[1]);
	f[0].host_key = f[1].host_key = fw_str(KEY);
	o[0].groups = o[1].groups = FW_GROUP_HOST;
	o[0].entries = &e;
	o[0].entry_n = 1;
	OK(commit(st, l, o, 2));
	ck_assert(o[0].rc == 0 && o[1].rc == 0 && o[0].visit.new_n == 1);
	ck_assert(
		due_of(st, a).host_id == store_host_id(fw_str(KEY)) && due_of(st, b).host_id == due_of(st, a).host_id);
	ck_assert(fw_str_eq(feed_of(st, a).host_key, fw_str(KEY)) && feed_of(st, a).entry_n == 1 &&
		feed_of(st, a).last_new_ms > NOW);
	drv_clean(st);
	o[0] = visit(st, a, &f[0]); /* the URL changes, the host key stays */
	f[0].url = FW_STR("https://c.example/moved");
	o[0].groups = FW_GROUP_URL;
	OK(commit(st, l, o, 1));
	ck_assert(due_of(st, a).host_id == store_host_id(fw_str(KEY)) &&
		fw_str_eq(feed_of(st, a).url, FW_STR("https://c.example/moved")));
	OK(st->driver->heartbeat(st, "tester", l, &err));
	o[0] = visit(st, a, &f[0]); /* and back to the host key of its URL */
	f[0].host_key = FW_STR_NONE;
	o[0].groups = FW_GROUP_HOST;
	OK(commit(st, l, o, 1));
	ck_assert(due_of(st, a).host_id == store_host_id(FW_STR("c.example")) && !feed_of(st, a).host_key.p &&
		visits_of(st, a) == 3);
	risen(st, l, due_of(st, a).shard, due_of(st, b).shard);
	ck_assert_int_ne(was.host_id, due_of(st, a).host_id);
	free(l);
	drv_end(st);
}
END_TEST

/* ---- keys ------------------------------------------------------------------------------------ */

struct keys {
	int64_t last;
	int n, stop_at;
	unsigned char taken;
};

static int keep_key(void *ctx, const struct fw_entry_key *k)
{
	struct keys *s = ctx;

	ck_assert_int_ge(k->feed_id, s->last);
	s->last = k->feed_id;
	if (k->entry_id == 0) {
		ck_assert(k->hash == UINT64_MAX && k->key[0] == k->feed_id % 200);
		s->taken++;
	}
	return ++s->n == s->stop_at ? 5 : 0;
}

START_TEST(keys)
{
	STORE(st);
	static const int64_t id[] = {3, 60, 61, 500, STORE_ID_MAX - 1}; /* the next feed gets the last id */
	static const struct {
		int64_t first, last;
		int n;
	} T[] = {{INT64_MIN, INT64_MAX, 7}, {1, INT64_MAX, 7}, {3, 3, 1}, {4, 59, 0}, {60, 61, 4}, {61, 500, 2},
		{501, INT64_MAX, 2}, {3, 61, 5}, {5, 3, 0}, {INT64_MAX, INT64_MAX, 0}};
	struct fw_feed f[5];
	struct fw_entry_key k[5];
	struct fw_entry_row e[2] = {entry(1, 1, "a", "a"), entry(2, 1, "b", "b")};
	struct keys s;

	for (int i = 0; i < 5; i++) {
		f[i] = (struct fw_feed){.id = id[i], .url = fw_str(fw_arena_printf(&A, "https://k%d.example/", i))};
		k[4 - i] = (struct fw_entry_key){
			.feed_id = id[i], .key = {(unsigned char)(id[i] % 200)}, .hash = UINT64_MAX};
	}
	OK(st->driver->load(st, &(struct store_load){.rows = {.feed = f, .feed_n = 5, .key = k, .key_n = 5}}, &err));
	ck_assert(figures(st).entry_n == 0 && figures(st).last_entry_id == 0); /* keys are not entries */
	pushed(st, 60, e, 2);
	OK(st->driver->feed_drop(st, 500, 0, &err));
	for (size_t i = 0; i < FW_N(T); i++) {
		int gone = T[i].first <= 500 && T[i].last >= 500;

		s = (struct keys){.last = INT64_MIN};
		OK(st->driver->key_list(st, T[i].first, T[i].last, keep_key, &s, &err));
		ck_assert_msg(s.n ==
				T[i].n -
					(T[i].n == 7                ? 1 :
							T[i].n == 2 ? 1 :
								      0),
			"range %zu: %d keys (%d)", i, s.n, gone);
	}
	s = (struct keys){.stop_at = 2};
	ck_assert_int_eq(st->driver->key_list(st, 1, INT64_MAX, keep_key, &s, &err), 5);
	feed_new(st, "https://x.example/", NOW);
	st->driver->close(st);
}
END_TEST

/* ---- concurrent processes -------------------------------------------------------------------- */

#define AT_ONCE 3
#define URLS 120

struct party {
	int i, nth;
	const char *url;
	int64_t feed[2];
	atomic_int *turn;
	int64_t lease_id, host_id;
	int64_t id[URLS];
	int made, rc, n;
};

/* Repeats the call after a deadlock or a lock timeout. */
static int tried(int rc, const struct fw_err *e)
{
	ck_assert_msg(!rc || rc == FW_EAGAIN || rc == FW_ENOTFOUND, "%d %s", rc, e->text);
	return rc;
}

static void run_parties(struct party *p, int n, void *(*fn)(void *))
{
	pthread_t t[AT_ONCE];

	for (int i = 0; i < n; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, fn, &p[i]), 0);
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
}

static void *subscriber(void *ctx)
{
	struct party *p = ctx;
	struct store *st = open_at(p->i, p->url, 0);
	char url[URLS][40];

	for (int k = 0; k < URLS; k++)
		(void)fw_snprintf(url[k], sizeof(url[k]), "https://h%d.example/", k);
	for (int step = 0; step < URLS; step += 10) {
		struct fw_feed f[10];
		struct store_feed_new made[10];
		struct fw_err e = {0};

		for (int k = 0; k < 10; k++) /* each process in another order */
			f[k] = (struct fw_feed){.url = fw_str(url[p->nth == 1 ? step + 9 - k : step + k])};
		while (tried(st->driver->load(
				     st, &(struct store_load){.rows = {.feed = f, .feed_n = 10}, .made = made}, &e),
			       &e) != 0)
			;
		for (int k = 0; k < 10; k++) {
			p->id[p->nth == 1 ? step + 9 - k : step + k] = made[k].id;
			p->made += !made[k].existed;
		}
	}
	st->driver->close(st);
	return NULL;
}

/* Several processes subscribe to one URL at once: one of them creates the feed. */
START_TEST(subscribed_at_once)
{
	SHARED(st, url);
	struct party p[AT_ONCE];

	for (int i = 0; i < AT_ONCE; i++)
		p[i] = (struct party){.i = _i, .nth = i, .url = url};
	run_parties(p, AT_ONCE, subscriber);
	ck_assert_int_eq(p[0].made + p[1].made + p[2].made, URLS);
	ck_assert(memcmp(p[0].id, p[1].id, sizeof(p[0].id)) == 0 && memcmp(p[0].id, p[2].id, sizeof(p[0].id)) == 0);
	ck_assert_int_eq(figures(st).feed_n, URLS);
	drv_end(st);
}
END_TEST

static void *pusher(void *ctx)
{
	struct party *p = ctx;
	struct store *st = open_at(p->i, p->url, 0);
	struct fw_feed f = {.id = p->feed[0], .due_at_ms = NOW};
	struct fw_entry_row e;
	struct fw_outcome o;
	struct fw_err er = {0};

	if (p->nth == 0) { /* removes the feed while others push to it */
		while (atomic_load(p->turn) < 10)
			usleep(200);
		while ((p->rc = tried(st->driver->feed_drop(st, p->feed[0], p->feed[1], &er), &er)) == FW_EAGAIN)
			;
		atomic_store(p->turn, 1000000);
	}
	for (int k = 0; p->nth && k < 100000; k++) {
		int rc;

		e = entry(k, p->nth, "t", "c");
		e.key[15] = (unsigned char)p->nth;
		o = push(p->feed[0], &f, 0, &e, 1);
		if (p->nth == 2) { /* the owner of its shard */
			f.last_visit_ms = NOW + k + 1;
			o.host_id = p->host_id;
			o.visit.kind = FW_VISIT_OK;
		}
		while ((rc = tried(st->driver->commit(st,
					   &(struct store_commit){
						   .lease_id = p->nth == 2 ? p->lease_id : 0, .outcome = &o, .n = 1},
					   &er),
				&er)) == FW_EAGAIN)
			;
		ck_assert_int_eq(rc, 0);
		if (o.rc == FW_ENOTFOUND)
			break;
		p->n++;
		if (atomic_fetch_add(p->turn, 1) >= 1000000 + 200)
			ck_abort_msg("it was removed, and takes entries still");
	}
	st->driver->close(st);
	return NULL;
}

/*
 * A push or visit concurrent with a removal is stored whole or not at all. Concurrent with a merge:
 * entries stored before it are merged.
 */
START_TEST(dropped_beside_commits)
{
	SHARED(st, url);
	struct store_lease *l = joined(st);

	for (int round = 0; round < 8; round++) {
		atomic_int turn = 0;
		bool into = round % 2;
		struct party p[AT_ONCE];
		int64_t a = feed_new(st, "https://a.example/", NOW),
			b = into ? feed_new(st, fw_arena_printf(&A, "https://b%d.example/", round), NOW) : 0;
		int64_t before = figures(st).entry_n;

		for (int i = 0; i < AT_ONCE; i++)
			p[i] = (struct party){.i = _i,
				.nth = i,
				.url = url,
				.feed = {a, b},
				.turn = &turn,
				.lease_id = l->id,
				.host_id = due_of(st, a).host_id};
		run_parties(p, AT_ONCE, pusher);
		ck_assert_int_eq(p[0].rc, 0);
		ck_assert_int_eq(figures(st).entry_n - before, into ? p[1].n + p[2].n : 0);
		drv_clean(st);
		if (into)
			ck_assert_int_eq(feed_of(st, b).entry_n, p[1].n + p[2].n);
	}
	free(l);
	drv_end(st);
}
END_TEST

static void *merger(void *ctx)
{
	struct party *p = ctx;
	struct store *st = open_at(p->i, p->url, 0);
	struct fw_err e = {0};

	while ((p->rc = tried(st->driver->feed_drop(st, p->feed[p->nth], p->feed[!p->nth], &e), &e)) == FW_EAGAIN)
		;
	st->driver->close(st);
	return NULL;
}

/*
 * Two processes merge two feeds into each other: one does, the other finds nothing left to merge.
 */
START_TEST(merged_crosswise)
{
	SHARED(st, url);
	struct fw_entry_row e[20];

	for (int k = 0; k < 20; k++)
		e[k] = entry(k, 1, "t", "c");
	for (int round = 0; round < 10; round++) {
		struct party p[2];
		int64_t id[2] = {feed_new(st, fw_arena_printf(&A, "https://a%d.example/", round), NOW),
			feed_new(st, fw_arena_printf(&A, "https://b%d.example/", round), NOW)};

		pushed(st, id[0], e, 10);
		pushed(st, id[1], e + 10, 10);
		for (int i = 0; i < 2; i++)
			p[i] = (struct party){.i = _i, .nth = i, .url = url, .feed = {id[0], id[1]}};
		run_parties(p, 2, merger);
		ck_assert(p[0].rc + p[1].rc == FW_ENOTFOUND && (!p[0].rc || !p[1].rc));
		ck_assert_int_eq(feed_of(st, p[0].rc ? id[0] : id[1]).entry_n, 20);
		OK(st->driver->feed_drop(st, p[0].rc ? id[0] : id[1], 0, &err));
	}
	ck_assert_int_eq(figures(st).entry_n, 0);
	drv_end(st);
}
END_TEST

#define MOVE_N 40

static void *setter(void *ctx)
{
	struct party *p = ctx;
	struct store *st = open_at(p->i, p->url, 0);
	struct fw_feed f = {.id = p->feed[0], .due_at_ms = NOW, .folder = FW_STR("mine")};
	struct fw_entry_row e;
	static const struct fw_feed none;
	struct fw_err er = {0};
	int rc;

	while (atomic_load(p->turn) < MOVE_N) {
		struct fw_outcome o;

		p->n++;
		if (p->nth == 1) {
			while ((rc = tried(st->driver->feed_set(st, &f, FW_SET_FOLDER | FW_SET_DUE, &er), &er)) ==
				FW_EAGAIN)
				;
			ck_assert_int_eq(rc, 0);
			continue;
		}
		e = entry(p->n, 1, "t", "c");
		o = push(p->feed[0], &none, 0, &e, 1);
		while ((rc = tried(st->driver->commit(st, &(struct store_commit){.outcome = &o, .n = 1}, &er), &er)) ==
			FW_EAGAIN)
			;
		ck_assert(rc == 0 && o.rc == 0);
	}
	st->driver->close(st);
	return NULL;
}

/*
 * A feed moves from host to host while its user changes it and others push entries: each finds it
 * where it is.
 */
START_TEST(moved_beside_others)
{
	SHARED(st, url);
	int64_t id = feed_new(st, "https://a.example/", NOW);
	struct store_lease *l = joined(st);
	atomic_int turn = 0;
	struct party p[2];
	pthread_t t[2];
	struct fw_feed f;

	for (int i = 0; i < 2; i++) {
		p[i] = (struct party){.i = _i, .nth = i + 1, .url = url, .feed = {id}, .turn = &turn};
		ck_assert_int_eq(pthread_create(&t[i], NULL, setter, &p[i]), 0);
	}
	for (int k = 0; k < MOVE_N; k++) {
		struct fw_outcome o = visit(st, id, &f);
		int rc;

		f.host_key = fw_str(fw_arena_printf(&A, "key%d", k));
		o.groups = FW_GROUP_HOST;
		while ((rc = tried(commit(st, l, &o, 1), &err)) == FW_EAGAIN)
			;
		ck_assert(rc == 0 && o.rc == 0);
		ck_assert_int_eq(due_of(st, id).host_id, store_host_id(f.host_key));
		atomic_store(&turn, k + 1);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	f = feed_of(st, id);
	ck_assert(fw_str_eq(f.folder, FW_STR("mine")) && f.entry_n == p[1].n && visits_of(st, id) == MOVE_N + p[1].n);
	free(l);
	drv_end(st);
}
END_TEST

#define FAR_N 300
#define FAR_STEP INT64_C(5000) /* a list by state finds none of them beside each other */

static int far_listed(void *ctx, const struct fw_feed *f)
{
	struct party *p = ctx;

	ck_assert_int_eq(f->status, FW_FEED_PAUSED);
	ck_assert_int_gt(f->id, p->feed[0]); /* by id, each once */
	p->feed[0] = f->id;
	p->n += f->id / FAR_STEP % 2 == 0;
	return 0;
}

/* The first pauses and resumes the feeds of odd numbers, while the second lists what is paused. */
static void *far_changed_or_listed(void *ctx)
{
	struct party *p = ctx;
	struct store *st = open_at(p->i, p->url, 0);
	struct store_feed_query q = {.q = {.status = FW_FEED_PAUSED}};
	struct fw_err e = {0};

	for (int64_t k = 1; p->nth == 0 && !atomic_load(p->turn); k = k + 2 > FAR_N ? 1 : k + 2) {
		struct fw_feed f = {.id = k * FAR_STEP, .status = p->made++ % 3 ? FW_FEED_PAUSED : FW_FEED_ACTIVE};

		while (tried(st->driver->feed_set(st, &f, FW_SET_STATUS, &e), &e) != 0)
			;
	}
	for (int k = 0; p->nth == 1 && k < 40; k++) {
		p->n = 0;
		p->feed[0] = 0;
		q.q.folder = k % 2 ? FW_STR("x") : FW_STR_NONE;
		ck_assert_msg(st->driver->feed_list(st, &q, far_listed, p, &e) == 0, "%s", e.text);
		ck_assert_int_eq(p->n, FAR_N / 2); /* those that nobody changes */
	}
	if (p->nth == 1)
		atomic_store(p->turn, 1);
	st->driver->close(st);
	return NULL;
}

START_TEST(listed_beside_changes)
{
	SHARED(st, url);
	struct party p[2];
	struct fw_feed f[FAR_N];
	atomic_int turn = 0;

	for (int i = 0; i < FAR_N; i++)
		f[i] = (struct fw_feed){.id = (i + 1) * FAR_STEP,
			.url = fw_str(fw_arena_printf(&A, "https://h%d.example/", i)),
			.folder = FW_STR("x"),
			.due_at_ms = NOW,
			.status = FW_FEED_PAUSED};
	OK(load(st, f, FAR_N, NULL));
	for (int i = 0; i < 2; i++)
		p[i] = (struct party){.i = _i, .nth = i, .url = url, .turn = &turn};
	run_parties(p, 2, far_changed_or_listed);
	drv_end(st);
}
END_TEST

#define PARTS 5
#define PART 300

/* A subscription in parts, of which each has one address of the part before. */
struct parts {
	int calls, breaks_at; /* breaks_at: this part is refused; -1: none */
	struct fw_feed_new feed[PARTS][PART];
};

static int parts_put(void *ctx, const struct fw_subscribing *to, struct fw_err *e)
{
	struct parts *p = ctx;

	p->calls++;
	for (int part = 0; part < PARTS; part++) {
		int rc;

		for (int i = 0; i < PART; i++) {
			int n = part * PART + i - (part && !i);

			p->feed[part][i] = (struct fw_feed_new){.due_at_ms = NOW,
				.url = fw_str(fw_arena_printf(&A, "https://p%d.example/%d", n % 7, n))};
		}
		if (part == p->breaks_at)
			p->feed[part][PART - 1].url = FW_STR("nohost");
		rc = fw_store_subscribe_put(to, p->feed[part], PART, e);
		if (rc)
			return rc;
	}
	return fw_store_subscribe_put(to, NULL, 0, e);
}

/* Parts of one transaction: a part finds what the others stored, and all go if one is refused. */
START_TEST(subscribed_in_parts)
{
	STORE(st);
	struct parts *p = calloc(1, sizeof(*p));
	bool whole = strcmp(under_test[_i].name, "redis") != 0;
	int64_t last = 0;

	ck_assert_ptr_nonnull(p);
	p->breaks_at = PARTS - 1;
	IS(fw_store_subscribe_each((struct fw_store *)st, parts_put, p, &err), FW_EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "nohost"));
	ck_assert_int_eq(p->calls, 1);
	ck_assert_int_eq(figures(st).feed_n, whole ? 0 : (PARTS - 1) * (PART - 1) + 1);
	p->breaks_at = -1;
	OK(fw_store_subscribe_each((struct fw_store *)st, parts_put, p, &err));
	ck_assert_int_eq(figures(st).feed_n, PARTS * PART - (PARTS - 1));
	for (int i = 0; i < PARTS * PART; i++) {
		const struct fw_feed_new *f = &p->feed[i / PART][i % PART];
		bool again = i >= PART && i % PART == 0;

		ck_assert(fw_str_eq(feed_of(st, f->id).url, f->url));
		ck_assert(!whole || f->existed == again);
		ck_assert(f->id == last + !again || !whole);
		last = f->id;
	}
	drv_clean(st);
	free(p);
	drv_end(st);
}
END_TEST

START_TEST(read_only)
{
	SHARED(st, url);
	int64_t id = feed_new(st, "https://a.example/", NOW);
	struct store *reader = open_at(_i, url, FW_STORE_READ);
	struct fw_feed f = {.id = id, .url = FW_STR("https://b.example/")};

	ck_assert_int_eq(feed_of(reader, id).id, id);
	ck_assert_int_eq(reader->driver->feed_set(reader, &f, FW_SET_TITLE, &err), FW_EINVAL);
	ck_assert_int_eq(reader->driver->feed_drop(reader, id, 0, &err), FW_EINVAL);
	ck_assert_int_eq(load(reader, &f, 1, NULL), FW_EINVAL);
	reader->driver->close(reader);
	ck_assert_int_eq(figures(st).feed_n, 1);
	drv_end(st);
}
END_TEST

int main(void)
{
	TCase *t = cases("every driver", setup, teardown, 120);
	const TTest *const every[] = {subscribed, letters_of_addresses_count, every_member_loaded, load_refuses,
		loaded_whole, lists, lists_sparse, due_crowd, of_due, found, set, dropped, merged, taken_up, groups,
		pushed_meta, adopted, host_key, keys, subscribed_at_once, dropped_beside_commits, merged_crosswise,
		moved_beside_others, listed_beside_changes, subscribed_in_parts, read_only};

	stores_begin();
	cases_add(t, every, FW_N(every), under_test_n);
	return cases_run("store feeds", t);
}
