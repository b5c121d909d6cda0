/* SPDX-License-Identifier: ISC */
/*
 * Copies between stores, on each driver: rows that are read and loaded into another store are the
 * same there, and the copy works on as a store.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ids.h"
#include "drv.h"
#include "feedwheel/engine.h"
#include "store/fields.h"

#define HOUR 3600000
#define LARGE_HOST "https://large.example/%d"

static struct fw_arena A;

static void setup(void)
{
	fw_arena_init(&A, 0);
}

static void teardown(void)
{
	fw_arena_finish(&A);
}

/* ---- a store as text ------------------------------------------------------------------------- */

static void fields_dump(struct fw_buf *b, const struct fw_field *f, size_t n, const void *of)
{
	for (size_t i = 0; i < n; i++) {
		struct fw_str s = FW_STR_NONE;

		if (!fw_field_is_text(&f[i])) {
			fw_buf_addf(b, " %s=%lld", f[i].name, (long long)fw_field_int(&f[i], of));
			continue;
		}
		s = fw_field_str(&f[i], of);
		fw_buf_addf(b, s.p ? " %s=\"%.*s\"" : " %s: none", f[i].name, FW_STR_ARG(s));
	}
	fw_buf_addc(b, '\n');
}

static int feed_dump(void *ctx, const struct fw_feed *f)
{
	fw_buf_addf(ctx, "feed %lld entry_n=%lld", (long long)f->id, (long long)f->entry_n);
	fields_dump(ctx, fw_schedule_fields, fw_schedule_field_n, f);
	fields_dump(ctx, fw_feed_fields, fw_feed_field_n, f);
	return 0;
}

static void key_text(struct fw_buf *b, const unsigned char key[16], uint64_t hash)
{
	for (int i = 0; i < 16; i++)
		fw_buf_addf(b, "%02x", key[i]);
	fw_buf_addf(b, " hash=%llu", (unsigned long long)hash);
}

static int entry_dump(void *ctx, const struct fw_entry_row *e)
{
	fw_buf_addf(ctx, "entry %lld of %lld ", (long long)e->id, (long long)e->feed_id);
	key_text(ctx, e->key, e->hash);
	fields_dump(ctx, fw_entry_fields, fw_entry_field_n, e);
	return 0;
}

struct lines {
	struct fw_str line[100];
	size_t n;
};

static int key_dump(void *ctx, const struct fw_entry_key *k)
{
	struct lines *l = ctx;
	struct fw_buf b = FW_BUF_INIT(0);

	fw_buf_addf(&b, "key %04lld ", (long long)k->feed_id);
	key_text(&b, k->key, k->hash);
	fw_buf_addf(&b, " entry %lld\n", (long long)k->entry_id);
	ck_assert_uint_lt(l->n, FW_N(l->line));
	l->line[l->n++] = fw_arena_str(&A, fw_buf_str(&b));
	fw_buf_finish(&b);
	return 0;
}

static int line_order(const void *a, const void *b)
{
	return strcmp(((const struct fw_str *)a)->p, ((const struct fw_str *)b)->p);
}

static int visit_dump(void *ctx, const struct fw_visit *v)
{
	fw_buf_addf(ctx, "visit %lld", (long long)v->id);
	fields_dump(ctx, fw_visit_fields, fw_visit_field_n, v);
	return 0;
}

/* Compares line by line: Check's messages are too short for the whole text. */
static void same_text(const char *got, const char *want)
{
	struct fw_str a = fw_str(got), b = fw_str(want);

	while (a.p || b.p) {
		struct fw_str x = fw_str_split(a, '\n', &a), y = fw_str_split(b, '\n', &b);

		ck_assert_msg(fw_str_eq(x, y), "\n%.*s\nis not\n%.*s", FW_STR_ARG(x), FW_STR_ARG(y));
	}
}

/* All that a copy keeps, as text. The caller frees it. */
static char *dump(struct fw_store *st)
{
	struct fw_feed_query fq = {.status = -1};
	struct fw_entry_query eq = {.oldest_first = true, .content = true, .key = true};
	struct fw_visit_query vq = {.oldest_first = true};
	struct fw_buf b = FW_BUF_INIT(0);
	struct lines l = {.n = 0};
	struct fw_err err = {0};

	OK(fw_store_feed_list(st, &fq, feed_dump, &b, &err));
	OK(fw_store_entry_list(st, &eq, entry_dump, &b, &err));
	OK(fw_store_key_list(st, 1, INT64_MAX, key_dump, &l, &err));
	qsort(l.line, l.n, sizeof(l.line[0]), line_order);
	for (size_t i = 0; i < l.n; i++)
		fw_buf_addstr(&b, l.line[i]);
	OK(fw_store_visit_list(st, &vq, visit_dump, &b, &err));
	ck_assert_int_eq(b.rc, 0);
	return fw_buf_take(&b, NULL);
}

/* ---- a copy, row by row ---------------------------------------------------------------------- */

/* Each load has one row: the worst case for a driver that profits from more. */
static int feed_over(void *ctx, const struct fw_feed *f)
{
	struct fw_err err = {0};

	OK(fw_store_load(ctx, &(struct fw_load){.feed = f, .feed_n = 1}, &err));
	return 0;
}

static int entry_over(void *ctx, const struct fw_entry_row *e)
{
	struct fw_err err = {0};

	OK(fw_store_load(ctx, &(struct fw_load){.entry = e, .entry_n = 1}, &err));
	return 0;
}

static int key_over(void *ctx, const struct fw_entry_key *k)
{
	struct fw_err err = {0};

	if (!k->entry_id)
		OK(fw_store_load(ctx, &(struct fw_load){.key = k, .key_n = 1}, &err));
	return 0;
}

static int visit_over(void *ctx, const struct fw_visit *v)
{
	struct fw_err err = {0};

	OK(fw_store_load(ctx, &(struct fw_load){.visit = v, .visit_n = 1}, &err));
	return 0;
}

static void copy(struct fw_store *from, struct fw_store *to)
{
	struct fw_feed_query fq = {.status = -1};
	struct fw_entry_query eq = {.oldest_first = true, .content = true, .key = true};
	struct fw_visit_query vq = {.oldest_first = true};
	struct fw_err err = {0};

	OK(fw_store_feed_list(from, &fq, feed_over, to, &err));
	OK(fw_store_entry_list(from, &eq, entry_over, to, &err));
	OK(fw_store_key_list(from, 1, INT64_MAX, key_over, to, &err));
	OK(fw_store_visit_list(from, &vq, visit_over, to, &err));
}

/* ---- what is copied -------------------------------------------------------------------------- */

/* One visit by a worker that joins for it and leaves. */
struct visiting {
	struct store *st;
	struct store_lease *l;
	struct fw_feed f;
	struct fw_outcome o;
};

static void visit_begin(struct visiting *v, struct fw_store *st, int64_t feed_id, int64_t at)
{
	v->st = store_of(st);
	v->l = drv_join(v->st, "w", LONG_MS);
	v->o = drv_outcome(v->st, feed_id, &v->f, at + HOUR);
	v->f.last_visit_ms = v->f.last_ok_ms = v->o.visit.at_ms = at;
}

static void visit_end(struct visiting *v)
{
	DONE(drv_commit(v->st, v->l->id, &v->o, 1));
	ck_assert_int_eq(v->o.rc, 0);
	drv_leave(v->st, v->l);
}

static void visit_with(struct fw_store *st, int64_t feed_id, int64_t at, const struct fw_entry_row *e, size_t n)
{
	struct visiting v;

	visit_begin(&v, st, feed_id, at);
	v.o.entries = e;
	v.o.entry_n = n;
	v.o.visit.run_id = at / HOUR;
	v.o.visit.error = FW_STR("words");
	v.o.visit.total_us = 7;
	v.o.visit.queue_us = 8;
	v.o.visit.store_us = INT64_C(1) << 33;
	v.o.visit.wire_bytes = UINT64_C(1) << 40;
	visit_end(&v);
}

static void all_groups(struct fw_store *st, int64_t feed_id, int64_t at)
{
	struct visiting v;

	visit_begin(&v, st, feed_id, at);
	v.o.groups = FW_GROUP_ERROR | FW_GROUP_VALIDATORS | FW_GROUP_META | FW_GROUP_RHYTHM | FW_GROUP_REDIRECT;
	v.f.error = FW_STR("went wrong");
	v.f.validator_url = FW_STR("https://a.example/v");
	v.f.etag = FW_STR("\"\xe9\x01\"");
	v.f.last_modified = FW_STR("yesterday");
	v.f.validators_ms = at - 5;
	v.f.body_hash = UINT64_MAX;
	v.f.title = FW_STR("T\xc3\xa4");
	v.f.home_page_url = FW_STR("https://a.example/home");
	v.f.description = FW_STR("");
	v.f.language = FW_STR("de");
	v.f.icon = FW_STR("https://a.example/i.png");
	v.f.format = FW_ATOM10;
	v.f.hub = FW_STR("https://hub.example/");
	v.f.topic = FW_STR("https://a.example/t");
	v.f.extra = FW_STR("{\"a\":1}");
	v.f.rhythm = FW_STR("r1:abc");
	v.f.redirect_url = FW_STR("https://moved.example/");
	v.f.redirect_since_ms = at - 9;
	v.f.redirect_n = 3;
	v.f.fail_n = 4;
	v.f.crash_n = 1;
	v.f.expect_us = 5;
	v.f.expect_dev_us = 6;
	v.f.expect_parts = (INT64_C(1) << 60) - 7;
	visit_end(&v);
}

/* Returns a time after all rows stored so far. */
static int64_t from_now_on(struct fw_store *st)
{
	return drv_clock(store_of(st)) + 1;
}

static int64_t prune_entries(struct fw_store *st)
{
	struct fw_prune p = {.now_ms = from_now_on(st), .entries_before_ms = from_now_on(st)};
	struct fw_err err = {0};

	do
		OK(fw_store_prune(st, &p, &err));
	while (p.more);
	return p.entry_n;
}

static struct fw_store *full_store(int driver)
{
	struct fw_store *st = fresh(driver);
	struct fw_entry_row e[3] = {
		entry(1, 1, "one", "<p>first</p>"), entry(2, 7, "two", "second"), entry(3, 1, "three", NULL)};
	struct fw_feed_new n = {.url = FW_STR("https://a.example/"),
		.user_title = FW_STR("mine"),
		.folder = FW_STR("f/g"),
		.username = FW_STR("u"),
		.password = FW_STR("p"),
		.interval_ms = 1234,
		.due_at_ms = NOW};
	struct fw_feed set = {.status = FW_FEED_PAUSED}, push = {.push_until_ms = NOW + 99 * HOUR};
	struct fw_err err = {0};

	OK(fw_store_subscribe(st, &n, 1, &err));
	push.id = n.id;
	OK(fw_store_feed_set(st, &push, FW_SET_PUSH, &err));
	visit_with(st, n.id, NOW, e, 3);
	subscribe(st, "https://gone.example/", NOW + 2 * HOUR + 1); /* leaves a gap in the ids */
	subscribe_many(st, LARGE_HOST, 0, 3, NOW + 9 * HOUR);
	OK(fw_store_unsubscribe(st, 2, &err));
	ck_assert_int_eq(prune_entries(st), 3); /* all three entries are pruned, their keys stay */
	e[1].hash = 8;
	e[0] = entry(4, UINT32_MAX, "four", "fourth");
	e[0].published_ms = NOW - 5;
	e[0].guid = FW_STR("g");
	e[0].extra = FW_STR("{}");
	e[0].content_type = FW_TEXT_PLAIN;
	visit_with(st, n.id, NOW + HOUR, e, 3);
	e[0].hash = 5;
	e[0].title = FW_STR("four, corrected");
	visit_with(st, n.id, NOW + 2 * HOUR, e, 3);
	all_groups(st, n.id, NOW + 3 * HOUR);
	set.id = subscribe(st, "https://paused.example/", NOW + 5 * HOUR);
	OK(fw_store_feed_set(st, &set, FW_SET_STATUS, &err));
	subscribe(st, "https://last.example/", NOW + 3 * HOUR + 1);
	return st;
}

/* ---- copies ---------------------------------------------------------------------------------- */

START_TEST(copies_are_the_same_row_for_row)
{
	for (int to = 0; to < under_test_n; to++) { /* from each driver to each */
		struct fw_store *a = full_store(_i), *b = fresh(to);
		struct fw_store_stats sa, sb;
		char *want = dump(a), *got;

		ck_assert_ptr_nonnull(strstr(want, "four, corrected"));
		copy(a, b);
		check_clean(b);
		got = dump(b);
		same_text(got, want);
		free(got);
		copy(a, b); /* again: all rows are there already */
		check_clean(b);
		got = dump(b);
		same_text(got, want);
		sa = stats(a);
		sb = stats(b);
		ck_assert_int_eq(sa.feed_n, sb.feed_n);
		ck_assert_int_eq(sa.active_n, sb.active_n);
		ck_assert_int_eq(sa.paused_n, 1);
		ck_assert_int_eq(sb.paused_n, 1);
		ck_assert_int_eq(sa.entry_n, sb.entry_n);
		ck_assert_int_eq(sa.visit_n, sb.visit_n);
		ck_assert_int_eq(sa.last_feed_id, sb.last_feed_id);
		ck_assert_int_eq(sa.last_entry_id, sb.last_entry_id);
		ck_assert_int_eq(sa.last_visit_id, sb.last_visit_id);
		ck_assert_int_eq(sb.last_feed_id, 7);
		free(got);
		free(want);
		fw_store_close(a);
		fw_store_close(b);
	}
}
END_TEST

/* What is due in all shards and when, and the rows of hosts. */
static const char *due_text(struct fw_store *st)
{
	const struct drv_due *d = drv_due(store_of(st), -1, INT64_MAX);
	struct fw_buf b = FW_BUF_INIT(0);
	const char *text;

	for (int64_t id = 1; id <= 10; id++) {
		for (size_t i = 0; i < d->n; i++) {
			if (d->due[i].feed_id == id)
				fw_buf_addf(&b, "%lld %lld %lld %lld %d\n", (long long)id,
					(long long)d->due[i].due_at_ms, (long long)d->due[i].host_id,
					(long long)d->due[i].last_visit_ms, d->due[i].shard);
		}
	}
	text = fw_arena_str(&A, fw_buf_str(&b)).p;
	fw_buf_finish(&b);
	return text;
}

START_TEST(copy_behaves_as_the_original)
{
	struct fw_store *a = full_store(_i), *b = fresh(_i);
	struct fw_entry_row e[2] = {entry(1, 9, "pruned: stays away", "x"), entry(5, 1, "new", "needle")};
	int64_t last_entry_id = stats(a).last_entry_id;
	struct visiting v;

	copy(a, b);
	ck_assert_str_eq(due_text(b), due_text(a)); /* the paused feed is not part of it */
	ck_assert_uint_eq(drv_due(store_of(b), -1, NOW + 3 * HOUR + 1)->n, 1);
	ck_assert_str_eq(find(b, 1, &A).password.p, "p");
	visit_begin(&v, b, 1, NOW + 9 * HOUR);
	v.o.entries = e;
	v.o.entry_n = 2;
	visit_end(&v);
	ck_assert_uint_eq(v.o.visit.new_n, 1);
	ck_assert_uint_eq(v.o.visit.changed_n, 0);
	ck_assert_int_eq(subscribe(b, "https://more.example/", NOW), 8);
	ck_assert_int_gt(stats(b).last_entry_id, last_entry_id);
	ck_assert_int_gt(stats(b).last_visit_id, stats(a).last_visit_id);
	check_clean(b);
	fw_store_close(a);
	fw_store_close(b);
}
END_TEST

/* Both stores hold the same, and the copy passes the deep check. */
static void same(struct fw_store *a, struct fw_store *b)
{
	char *want = dump(a), *got = dump(b);

	check_clean(b);
	same_text(got, want);
	ck_assert_int_eq(stats(b).feed_n, stats(a).feed_n);
	ck_assert_int_eq(stats(b).entry_n, stats(a).entry_n);
	ck_assert_int_eq(stats(b).visit_n, stats(a).visit_n);
	free(want);
	free(got);
}

START_TEST(feeds_taken_away_come_back) /* with their old ids, whatever the driver still holds of removed feeds */
{
	struct fw_store *a = full_store(_i), *b = fresh(_i);
	struct fw_err err = {0};

	copy(a, b);
	for (int64_t id = 1; id <= 7; id++)
		IS(fw_store_unsubscribe(b, id, &err), id == 2 ? FW_ENOTFOUND : 0);
	ck_assert_int_eq(stats(b).visit_n, 0);
	check_clean(b);
	copy(a, b);
	same(a, b);
	index_all(b);
	same(a, b);
	ck_assert_int_eq(hits(b, "fourth"), 1);
	fw_store_close(a);
	fw_store_close(b);
}
END_TEST

/* ---- copies by the engine from a source that changes ----------------------------------------- */

static int engine_copy(
	struct fw_store *from, struct fw_store *to, bool resume, struct fw_copy_stats *s, struct fw_err *err)
{
	struct fw_copy_options o = {.resume = resume, .batch_bytes = 1}; /* one row in each load */

	return fw_copy(from, to, &o, s, err);
}

/*
 * Changes the source by visits, by its user and by retention: each feed of a full store has other
 * rows then, another id, or another URL.
 */
static void source_changes(struct fw_store *a)
{
	struct fw_entry_row e[2] = {entry(4, 6, "four, pruned", "fourth"), entry(6, 1, "six", "sixth")};
	struct fw_feed set = {.id = 6, .user_title = FW_STR("renamed")};
	struct fw_err err = {0};
	struct visiting v;

	ck_assert_int_eq(prune_entries(a), 1);
	visit_begin(&v, a, 7, NOW + 20 * HOUR);
	visit_end(&v);
	OK(fw_store_unsubscribe(a, 3, &err));
	visit_begin(&v, a, 1, NOW + 4 * HOUR);
	v.o.groups = FW_GROUP_URL; /* the groups of a feed later in the copy */
	v.f.url = FW_STR("https://large.example/0");
	v.o.entries = e;
	v.o.entry_n = 2;
	visit_end(&v);
	ck_assert_uint_eq(v.o.visit.new_n, 1);
	OK(fw_store_feed_set(a, &set, FW_SET_TITLE, &err));
	ck_assert_int_eq(subscribe(a, "https://a.example/", NOW + 9 * HOUR), 8); /* a URL that has become free */
}

START_TEST(an_older_copy_is_brought_up_to_date)
{
	for (int to = 0; to < under_test_n; to++) {
		struct fw_store *a = full_store(_i), *b = fresh(to);
		struct fw_copy_stats s;
		struct fw_err err = {0};

		OK(engine_copy(a, b, false, &s, &err));
		same(a, b);
		OK(engine_copy(a, b, true, &s, &err));
		ck_assert_int_eq(s.updated + s.removed + s.feeds + s.entries + s.visits, 0);
		source_changes(a);
		OK(engine_copy(a, b, true, &s, &err));
		ck_assert_int_eq(s.differing, 0);
		ck_assert_int_eq(s.updated, 3);
		ck_assert_int_eq(s.removed, 1);
		same(a, b);
		OK(engine_copy(a, b, true, &s, &err));
		ck_assert_int_eq(s.updated + s.removed + s.feeds + s.entries + s.visits, 0);
		fw_store_close(a);
		fw_store_close(b);
	}
}
END_TEST

/* The copy is refused, and the target is unchanged. */
static void refused(struct fw_store *from, struct fw_store *to, const char *words)
{
	char *before = dump(to), *after;
	struct fw_copy_stats s;
	struct fw_err err = {0};

	IS(engine_copy(from, to, true, &s, &err), FW_EINVAL);
	ck_assert_msg(strstr(err.text, words) != NULL, "%s", err.text);
	after = dump(to);
	same_text(after, before);
	free(before);
	free(after);
}

START_TEST(store_that_is_no_copy_is_refused)
{
	struct fw_store *a = full_store(_i), *b = fresh(_i), *other = fresh(_i);
	struct fw_heartbeat heartbeat = {.worker = "h/1/1", .pid = 1, .visits = 1};
	struct fw_copy_stats s;
	struct fw_err err = {0};

	OK(engine_copy(a, b, false, &s, &err));
	source_changes(a);
	refused(b, a, "higher ids than the source"); /* source and target exchanged */
	usleep(2000);
	subscribe(other, "https://other.example/", NOW);
	refused(a, other, "differs between source and target");
	subscribe_many(other, LARGE_HOST, 0, 2, NOW);
	OK(fw_store_unsubscribe(other, 1, &err));
	OK(fw_store_unsubscribe(other, 3, &err)); /* the target has only feed 2, which the source does not have */
	refused(a, other, "none of the source's feeds");
	OK(fw_store_heartbeat_put(b, &heartbeat, from_now_on(b), &err));
	refused(a, b, "written to the target");
	fw_store_close(a);
	fw_store_close(b);
	fw_store_close(other);
}
END_TEST

START_TEST(loaded_entries_are_found) /* also when the index is beyond their ids */
{
	struct fw_store *b = fresh(_i);
	struct fw_entry_row e[2] = {entry(1, 1, "early", "haystack"), entry(2, 1, "late", "haystack with a needle")};
	struct fw_entry_query q = {.search = FW_STR("haystack")};
	struct fw_feed f = {.id = 3, .url = FW_STR("https://a.example/"), .created_ms = NOW, .due_at_ms = NOW};
	struct fw_buf out = FW_BUF_INIT(0);
	struct fw_err err = {0};

	e[0].id = 5;
	e[1].id = 9;
	e[0].feed_id = e[1].feed_id = 3;
	e[0].seen_ms = e[1].seen_ms = e[0].changed_ms = e[1].changed_ms = NOW;
	e[0].revision = e[1].revision = 1;
	OK(fw_store_load(b, &(struct fw_load){.feed = &f, .feed_n = 1, .entry = &e[1], .entry_n = 1}, &err));
	index_all(b);
	OK(fw_store_load(b, &(struct fw_load){.entry = &e[0], .entry_n = 1}, &err));
	OK(fw_store_entry_list(b, &q, entry_dump, &out, &err));
	ck_assert_ptr_nonnull(strstr(fw_buf_str(&out).p, "entry 5"));
	ck_assert_ptr_nonnull(strstr(fw_buf_str(&out).p, "entry 9"));
	ck_assert_int_eq(entry_count(b, 3), 2);
	check_clean(b);
	fw_buf_finish(&out);
	fw_store_close(b);
}
END_TEST

START_TEST(load_refuses_another_feed) /* and then nothing is written */
{
	static const struct {
		int64_t id;
		const char *url;
	} T[] = {{1, "https://other.example/"}, {2, "https://a.example/"}};
	struct fw_store *st = fresh(_i);
	struct fw_err err = {0};

	subscribe(st, "https://a.example/", NOW);
	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_feed f[2] = {{.id = 5, .url = FW_STR("https://new.example/"), .created_ms = NOW},
			{.id = T[i].id, .url = fw_str(T[i].url), .created_ms = NOW}};

		IS(fw_store_load(st, &(struct fw_load){.feed = f, .feed_n = 2}, &err), FW_EINVAL);
		ck_assert_ptr_nonnull(strstr(err.text, "empty store"));
		ck_assert_int_eq(stats(st).feed_n, 1);
		check_clean(st);
	}
	fw_store_close(st);
}
END_TEST

START_TEST(load_takes_a_batch_with_repeats)
{
	struct fw_store *st = fresh(_i);
	struct fw_feed f[3] = {{.id = 4, .url = FW_STR("https://c.example/1"), .created_ms = NOW, .due_at_ms = NOW},
		{.id = 5, .url = FW_STR("https://c.example/2"), .created_ms = NOW, .due_at_ms = NOW}};
	struct fw_entry_row e[3] = {entry(1, 1, "a", "a"), entry(2, 1, "b", "b")};
	struct fw_entry_key k[2] = {{.feed_id = 4, .hash = 3}, {.feed_id = 4, .hash = 3}};
	struct fw_visit v[2] = {{.id = 1, .feed_id = 4, .at_ms = NOW, .run_id = 1},
		{.id = 2, .feed_id = 4, .at_ms = NOW + 1, .run_id = 1}};
	struct fw_load l = {f, e, k, v, 3, 3, 2, 2};
	struct fw_visit_query q = {.feed_id = 4};
	struct fw_buf out = FW_BUF_INIT(0);
	struct fw_err err = {0};

	f[2] = f[0];
	for (int i = 0; i < 2; i++) {
		e[i].id = 10 + i;
		e[i].feed_id = 4;
		e[i].revision = 1;
		e[i].seen_ms = e[i].changed_ms = NOW;
	}
	e[2] = e[0];
	e[2].id = 12; /* a key that exists already */
	OK(fw_store_load(st, &l, &err));
	check_clean(st);
	ck_assert_int_eq(stats(st).feed_n, 2);
	ck_assert_int_eq(stats(st).entry_n, 2);
	ck_assert_int_eq(stats(st).last_entry_id, 11);
	ck_assert_int_eq(find(st, 4, &A).entry_n, 2);
	OK(fw_store_visit_list(st, &q, visit_dump, &out, &err)); /* newest first, as in each list */
	ck_assert_ptr_nonnull(strstr(fw_buf_str(&out).p, "visit 2"));
	ck_assert(strstr(fw_buf_str(&out).p, "visit 2") < strstr(fw_buf_str(&out).p, "visit 1"));
	ck_assert_uint_eq(drv_due(store_of(st), -1, INT64_MAX)->n, 2);
	check_clean(st);
	fw_buf_finish(&out);
	fw_store_close(st);
}
END_TEST

/* ---- readers --------------------------------------------------------------------------------- */

static int first_id(void *ctx, const struct fw_visit *v)
{
	*(int64_t *)ctx = v->id;
	return 1;
}

START_TEST(visits_by_cursor)
{
	struct fw_store *st = full_store(_i);
	struct fw_visit_query q = {.oldest_first = true, .limit = 1};
	struct fw_err err = {0};
	int64_t id, n = 0;

	for (; n < 10; n++) {
		id = 0;
		ck_assert_int_ge(fw_store_visit_list(st, &q, first_id, &id, &err), 0);
		if (!id)
			break;
		ck_assert_int_gt(id, q.after_id);
		q.after_id = id;
	}
	ck_assert_int_eq(n, stats(st).visit_n);
	ck_assert_int_eq(q.after_id, stats(st).last_visit_id);
	fw_store_close(st);
}
END_TEST

/* The source's servers may have been ahead: a server of the copy gives none of their ids again. */
START_TEST(new_ids_are_not_those_of_the_copy)
{
	struct fw_store *from = fresh(_i), *to = store_open(drv_url(_i), FW_STORE_CREATE);
	struct fw_copy_options o = {.batch_bytes = 1 << 20};
	struct fw_id_range r = {.first = 1}, there = {.first = 1};
	struct fw_copy_stats s;
	struct fw_event e = {.property = FW_STR("news"), .remote_ip = FW_STR(""), .stamp_ms = NOW};
	struct fw_err err = {0};

	OK(fw_store_event_ids(from, &r, &err));
	for (int64_t i = 0; i < 3; i++) {
		e.id = (r.first + (FW_MINUTE_MS << FW_IDS_COUNT_BITS) * i) * FW_IDS_NUMBERS + r.number;
		OK(fw_store_event_put(from, &e, 1, &err));
	}
	OK(fw_copy(from, to, &o, &s, &err));
	ck_assert_int_eq(s.events, 3);
	OK(fw_store_event_ids(to, &there, &err));
	ck_assert_int_gt(there.first, e.id / FW_IDS_NUMBERS);
	fw_store_close(from);
	fw_store_close(to);
}
END_TEST

START_TEST(keys_of_a_range_of_feeds)
{
	struct fw_store *st = fresh(_i);
	struct fw_feed f[3];
	struct fw_entry_key k[3];
	struct lines l = {.n = 0};
	struct fw_err err = {0};

	for (int i = 0; i < 3; i++) {
		f[i] = (struct fw_feed){.id = i + 1,
			.created_ms = NOW,
			.due_at_ms = NOW,
			.url = fw_str(fw_arena_printf(&A, "https://%d.example/", i))};
		k[i] = (struct fw_entry_key){.feed_id = 3 - i, .hash = (uint64_t)i};
	}
	OK(fw_store_load(st, &(struct fw_load){.feed = f, .feed_n = 3, .key = k, .key_n = 3}, &err));
	OK(fw_store_key_list(st, 2, 3, key_dump, &l, &err));
	ck_assert_uint_eq(l.n, 2);
	ck_assert_ptr_nonnull(strstr(l.line[0].p, "key 0002 "));
	ck_assert_ptr_nonnull(strstr(l.line[1].p, "key 0003 "));
	ck_assert_ptr_nonnull(strstr(l.line[1].p, "hash=0 entry 0"));
	l.n = 0;
	OK(fw_store_key_list(st, 4, INT64_MAX, key_dump, &l, &err));
	ck_assert_uint_eq(l.n, 0);
	ck_assert_int_eq(stats(st).last_entry_id, 0); /* keys are not entries */
	ck_assert_int_eq(stats(st).entry_n, 0);
	fw_store_close(st);
}
END_TEST

/* ---- records --------------------------------------------------------------------------------- */

static int record_dump(void *ctx, const struct fw_record *r)
{
	fw_buf_addf(ctx, "%.*s/%.*s=%.*s %lld %lld\n", FW_STR_ARG(r->kind), FW_STR_ARG(r->key), FW_STR_ARG(r->value),
		(long long)r->at_ms, (long long)r->until_ms);
	return 0;
}

static char *records(struct fw_store *st)
{
	struct fw_buf b = FW_BUF_INIT(0);
	struct fw_err err = {0};

	fw_buf_adds(&b, "records:\n");
	OK(fw_store_record_list(st, &(struct fw_record_query){0}, record_dump, &b, &err));
	ck_assert_int_eq(b.rc, 0);
	return fw_buf_take(&b, NULL);
}

static void record_put(struct fw_store *st, const char *kind, const char *key, const char *value, int64_t until_ms)
{
	struct fw_record r = {
		.kind = fw_str(kind), .key = fw_str(key), .value = fw_str(value), .at_ms = NOW, .until_ms = until_ms};
	struct fw_err err = {0};

	OK(fw_store_record_put(st, &r, false, NULL, &err));
}

static void same_records(struct fw_store *a, struct fw_store *b)
{
	char *want = records(a), *got = records(b);

	same_text(got, want);
	free(want);
	free(got);
}

START_TEST(records_become_those_of_the_source)
{
	for (int to = 0; to < under_test_n; to++) { /* from each driver to each */
		struct fw_store *a = fresh(_i), *b = fresh(to);
		struct fw_copy_stats s;
		struct fw_err err = {0};

		record_put(a, "token", "one", "1", FW_NO_DATE);
		record_put(a, "token", "two", "2", FW_NO_DATE);
		record_put(a, "key", "two", "3", NOW + 5);
		OK(engine_copy(a, b, false, &s, &err));
		ck_assert_int_eq(s.records, 3);
		ck_assert_int_eq(s.differing, 0);
		same_records(a, b);
		IS(engine_copy(a, b, false, &s, &err), FW_EINVAL);
		ck_assert_msg(strstr(err.text, "not empty") && strstr(err.text, "access tokens"), "%s", err.text);
		OK(engine_copy(a, b, true, &s, &err));
		ck_assert_int_eq(s.records, 0);
		OK(fw_store_record_remove(a, FW_STR("token"), FW_STR("one"), FW_STR_NONE, &err));
		record_put(a, "token", "two", "changed", NOW + 9);
		record_put(a, "zebra", "three", "", FW_NO_DATE);
		record_put(b, "alien", "own", "", FW_NO_DATE);
		record_put(b, "zebra", "zzz", "", FW_NO_DATE);
		OK(engine_copy(a, b, true, &s, &err));
		ck_assert_int_eq(s.records, 5);
		ck_assert_int_eq(s.differing, 0);
		same_records(a, b);
		fw_store_close(a);
		fw_store_close(b);
	}
}
END_TEST

#define RECORDS 450 /* several pages */

START_TEST(many_records)
{
	struct fw_copy_options o = {.batch_bytes = 1 << 20};
	struct fw_store *a = store_open("memory:", 0), *b = fresh(_i);
	struct fw_copy_stats s;
	struct fw_err err = {0};
	char key[20];

	for (int i = 0; i < RECORDS; i++) {
		ck_assert(fw_snprintf(key, sizeof(key), "%d", i));
		record_put(a, i % 3 ? "token" : "other", key, key, FW_NO_DATE);
	}
	OK(fw_copy(a, b, &o, &s, &err));
	ck_assert_int_eq(s.records, RECORDS);
	same_records(a, b);
	fw_store_close(a);
	fw_store_close(b);
}
END_TEST

struct meddling {
	struct fw_store *with;
	struct fw_buf words;
	bool done;
};

/* Called before the comparison starts. */
static void meddle(void *ctx, const struct fw_copy_stats *s)
{
	struct meddling *m = ctx;
	struct fw_err err = {0};

	if (s->phase != FW_COPY_VERIFY || m->done)
		return;
	m->done = true;
	OK(fw_store_record_remove(m->with, FW_STR("token"), FW_STR("gone"), FW_STR_NONE, &err));
	/* as if it had expired */
	OK(fw_store_record_remove(m->with, FW_STR("key"), FW_STR("short"), FW_STR_NONE, &err));
	record_put(m->with, "token", "other", "2", FW_NO_DATE);
	record_put(m->with, "token", "zebra", "", FW_NO_DATE);
}

static void meddled(void *ctx, const char *words)
{
	struct meddling *m = ctx;

	fw_buf_addf(&m->words, "%s\n", words);
}

START_TEST(different_records_are_reported)
{
	struct fw_store *a = fresh(_i), *b = fresh(_i);
	struct meddling m = {.with = b};
	struct fw_copy_options o = {.batch_bytes = 1 << 20, .progress = meddle, .differs = meddled, .ctx = &m};
	struct fw_control newest;
	struct fw_copy_stats s;
	struct fw_err err = {0};

	record_put(a, "key", "short", "", NOW + 5);
	record_put(a, "token", "gone", "", FW_NO_DATE);
	record_put(a, "token", "other", "1", FW_NO_DATE);
	record_put(a, "token", "same", "", FW_NO_DATE);
	OK(fw_copy(a, b, &o, &s, &err));
	ck_assert_int_eq(s.differing, 3);
	fw_buf_addc(&m.words, 0);
	ck_assert_str_eq(m.words.p,
		"record token 'gone': missing at the target\nrecord token 'other': different at the target\n"
		"record token 'zebra': not at the source\n");
	OK(fw_store_control_get(b, -1, &newest, &err));
	ck_assert(newest.paused);
	fw_buf_finish(&m.words);
	fw_store_close(a);
	fw_store_close(b);
}
END_TEST

int main(void)
{
	TCase *t = cases("every driver", setup, teardown, 60);
	const TTest *const every[] = {
		copies_are_the_same_row_for_row,
		copy_behaves_as_the_original,
		feeds_taken_away_come_back,
		an_older_copy_is_brought_up_to_date,
		store_that_is_no_copy_is_refused,
		loaded_entries_are_found,
		load_refuses_another_feed,
		load_takes_a_batch_with_repeats,
		visits_by_cursor,
		keys_of_a_range_of_feeds,
		new_ids_are_not_those_of_the_copy,
		records_become_those_of_the_source,
		many_records,
		different_records_are_reported,
	};

	stores_begin();
	cases_add(t, every, FW_N(every), under_test_n);
	return cases_run("store copy", t);
}
