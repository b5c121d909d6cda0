/* SPDX-License-Identifier: ISC */
/* Copies, visits, figures and retention (src/store/driver.h), on each driver. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "drv.h"

static struct fw_err err;
static struct fw_arena A;

static void setup(void)
{
	fw_arena_init(&A, 0);
}

static void teardown(void)
{
	fw_arena_finish(&A);
}

/* n feeds "https://h<from + i>.example/feed", due at their own number. */
static void feeds_add(struct store *st, int from, size_t n, struct store_feed_new *made)
{
	struct fw_feed *f = fw_arena_calloc(&A, n, sizeof(*f));

	ck_assert_ptr_nonnull(f);
	for (size_t i = 0; i < n; i++)
		f[i] = (struct fw_feed){.url = fw_str(fw_arena_printf(&A, "https://h%d.example/feed", from + (int)i)),
			.due_at_ms = 10000 - from - (int)i,
			.folder = i % 2 ? FW_STR("odd") : FW_STR_NONE,
			.user_title = i % 10 == 3 ? FW_STR("Caf\xc3\xa9 THREE") : FW_STR_NONE};
	OK(st->driver->load(st, &(struct store_load){.rows = {.feed = f, .feed_n = n}, .made = made}, &err));
}

struct shown {
	struct fw_feed last;
};

static struct shown H;

static int show(void *ctx, const struct fw_feed *f)
{
	struct shown *s = ctx;

	s->last = *f;
	s->last.url = fw_arena_str(&A, f->url);
	s->last.title = fw_arena_str(&A, f->title);
	s->last.user_title = fw_arena_str(&A, f->user_title);
	s->last.folder = fw_arena_str(&A, f->folder);
	s->last.extra = fw_arena_str(&A, f->extra);
	return 0;
}

static int count_key(void *ctx, const struct fw_entry_key *k)
{
	int64_t *n = ctx;

	ck_assert_int_ge(k->feed_id, n[1]);
	n[1] = k->feed_id;
	n[0]++;
	return 0;
}

static int count_visit(void *ctx, const struct fw_visit *v)
{
	int64_t *n = ctx;

	n[1] = v->id;
	n[2] = v->feed_id;
	n[0]++;
	ck_assert(v->feed_url.len);
	return 0;
}

START_TEST(copied)
{
	struct store *st = drv_fresh(_i);
	struct fw_feed f[2] = {{.id = 70,
				       .url = FW_STR("https://a.example/"),
				       .due_at_ms = 5,
				       .title = FW_STR("A"),
				       .extra = FW_STR("{\"x\": 1}"),
				       .last_new_ms = 3,
				       .created_ms = 2,
				       .fail_n = 4000000000u},
		{.id = 80,
			.url = FW_STR("https://b.example/"),
			.due_at_ms = 6,
			.status = FW_FEED_GONE,
			.created_ms = 2}};
	struct fw_entry_row e[2] = {entry(1, 1, "one", "x"), entry(2, 1, "two", "y")};
	struct fw_entry_key k = {.feed_id = 80, .key = "removed", .hash = 9};
	struct fw_visit v[3] = {{.id = 10, .feed_id = 70, .at_ms = 100, .run_id = 1, .kind = FW_VISIT_OK},
		{.id = 11, .feed_id = 80, .at_ms = 200, .run_id = 2, .kind = FW_VISIT_DNS, .error = FW_STR("no")},
		{.id = 13, .feed_id = 70, .at_ms = 300, .run_id = 2, .kind = FW_VISIT_OK}};
	struct store_load l = {.rows = {.feed = f,
				       .entry = e,
				       .key = &k,
				       .visit = v,
				       .feed_n = 2,
				       .entry_n = 2,
				       .key_n = 1,
				       .visit_n = 3}};
	struct store_feed_new made[1];
	struct fw_store_stats s = {0};
	int64_t n[3] = {0};

	e[0].id = 500, e[0].feed_id = 70, e[1].id = 600, e[1].feed_id = 80;
	e[0].seen_ms = e[0].changed_ms = e[1].seen_ms = e[1].changed_ms = NOW;
	e[0].revision = e[1].revision = 1;
	OK(st->driver->load(st, &l, &err));
	OK(st->driver->load(st, &l, &err)); /* may be repeated */
	OK(st->driver->stats(st, &s, &err));
	ck_assert(s.feed_n == 2 && s.active_n == 1 && s.gone_n == 1 && s.failing_n == 1 && s.due_n == 1 &&
		s.entry_n == 2 && s.visit_n == 3 && s.next_due_ms == 5);
	ck_assert(s.last_feed_id == 80 && s.last_entry_id == 600 && s.last_visit_id == 13 &&
		s.schema == schema_of(st->driver->name));
	OK(st->driver->key_list(st, 70, 80, count_key, n, &err));
	ck_assert_int_eq(n[0], 3);
	OK(st->driver->feed_list(st, &(struct store_feed_query){.id = 70}, show, &H, &err));
	ck_assert(H.last.fail_n == 4000000000u && fw_str_eq(H.last.extra, FW_STR("{\"x\": 1}")) &&
		H.last.last_new_ms == 3 && H.last.entry_n == 1);
	/* the id or URL of another feed */
	f[0].id = 71;
	IS(st->driver->load(st, &(struct store_load){.rows = {.feed = f, .feed_n = 1}}, &err), FW_EINVAL);
	f[0].id = 80;
	f[0].url = FW_STR("https://z.example/");
	IS(st->driver->load(st, &(struct store_load){.rows = {.feed = f, .feed_n = 1}}, &err), FW_EINVAL);
	feeds_add(st, 1, 1, made);
	ck_assert_int_eq(made[0].id, 81); /* above the highest id */
	/* visits load in any order */
	n[0] = 0;
	OK(st->driver->visit_list(st, &(struct fw_visit_query){.feed_id = 70}, count_visit, n, &err));
	ck_assert(n[0] == 2 && n[1] == 10);
	n[0] = 0;
	OK(st->driver->visit_list(st, &(struct fw_visit_query){.run_id = 2}, count_visit, n, &err));
	ck_assert(n[0] == 2 && n[1] == 11 && n[2] == 80);
	n[0] = 0;
	OK(st->driver->visit_list(
		st, &(struct fw_visit_query){.oldest_first = true, .after_id = 10, .limit = 1}, count_visit, n, &err));
	ck_assert(n[0] == 1 && n[1] == 11);
	n[0] = 0;
	OK(st->driver->visit_list(st, &(struct fw_visit_query){.since_ms = 150}, count_visit, n, &err));
	ck_assert_int_eq(n[0], 2);
	n[0] = 0;
	OK(st->driver->visit_list(st, &(struct fw_visit_query){.feed_id = 4711}, count_visit, n, &err));
	ck_assert_int_eq(n[0], 0);
	drv_end(st);
}
END_TEST

/* Prunes in steps until nothing is left to prune. */
static void prune(struct store *st, struct fw_prune *p)
{
	do {
		p->more = false;
		OK(st->driver->prune(st, p, &err));
	} while (p->more);
}

START_TEST(pruned)
{
	struct store *st = drv_fresh(_i);
	struct fw_feed f = {.id = 1, .url = FW_STR("https://a.example/"), .created_ms = 1};
	struct fw_visit *v = fw_arena_calloc(&A, 5000, sizeof(*v));
	struct fw_event e[3] = {{.id = 1, .property = FW_STR("p"), .stamp_ms = 10},
		{.id = 2, .property = FW_STR("p"), .stamp_ms = 20}, {.id = 3, .property = FW_STR("p"), .stamp_ms = 30}};
	struct fw_dead_letter d = {.id = 9, .row = FW_STR("{}"), .reason = FW_STR("r"), .at_ms = 5};
	struct fw_record r = {
		.kind = FW_STR("k"), .key = FW_STR("1"), .value = FW_STR("v"), .at_ms = 1, .until_ms = 50};
	struct fw_prune p = {
		.now_ms = 60, .visits_before_ms = 4000, .events_before_ms = 25, .records = true, .index = true};
	struct fw_store_stats s = {0};
	bool was;

	for (int i = 0; i < 5000; i++)
		v[i] = (struct fw_visit){.id = i + 1, .feed_id = 1, .at_ms = i, .kind = FW_VISIT_OK};
	OK(st->driver->load(
		st, &(struct store_load){.rows = {.feed = &f, .feed_n = 1, .visit = v, .visit_n = 5000}}, &err));
	OK(st->driver->event_put(st, e, 3, &d, 1, &err));
	OK(st->driver->record_put(st, &r, false, false, &was, &err));
	r.key = FW_STR("2");
	r.until_ms = 70;
	OK(st->driver->record_put(st, &r, false, false, &was, &err));
	prune(st, &p);
	ck_assert(p.visit_n == 4000 && p.event_n == 3 && p.record_n == 1);
	OK(st->driver->stats(st, &s, &err));
	ck_assert_int_eq(s.visit_n, 1000);
	ck_assert(s.size_bytes != 0);
	p = (struct fw_prune){.now_ms = 60, .visits_before_ms = 4000};
	prune(st, &p);
	ck_assert_int_eq(p.visit_n, 0);
	drv_end(st);
}
END_TEST

/* Each commit leaves a row of counts; maintenance folds them into one. */
START_TEST(counts_fold)
{
	struct store *st = drv_fresh(_i);
	struct store_feed_new made[1];
	struct fw_feed f = {0};
	struct fw_store_stats s = {0};
	struct fw_prune p = {.now_ms = 1};

	feeds_add(st, 1, 1, made);
	for (int i = 0; i < 1100; i++) {
		struct fw_outcome o = {
			.feed_id = made[0].id, .feed = &f, .visit = {.kind = FW_VISIT_PUSHED, .at_ms = i}};

		OK(st->driver->commit(st, &(struct store_commit){.outcome = &o, .n = 1}, &err));
	}
	prune(st, &p);
	OK(st->driver->stats(st, &s, &err));
	ck_assert_int_eq(s.visit_n, 1100);
	drv_end(st);
}
END_TEST

/* A store that does not exist, and one opened for reading. */
START_TEST(opened_wrongly)
{
	struct fw_store_config c = {.flags = 0};
	struct store *st = NULL;
	char name[60];

	if (!under_test[_i].shared)
		return;
	ck_assert(fw_snprintf(name, sizeof(name), "none%d", (int)getpid()));
	c.url = scratch_url(_i, name);
	IS(drv_driver(_i)->open(&c, &st, &err), FW_ENOTFOUND);
	c.flags = FW_STORE_CREATE;
	OK(drv_driver(_i)->open(&c, &st, &err));
	st->driver->close(st);
	c.flags = FW_STORE_READ;
	OK(drv_driver(_i)->open(&c, &st, &err));
	IS(st->driver->feed_set(st, &(struct fw_feed){.id = 1}, FW_SET_TITLE, &err), FW_EINVAL);
	st->driver->close(st);
}
END_TEST

int main(void)
{
	TCase *t = cases("every driver", setup, teardown, 120);
	const TTest *const every[] = {copied, pruned, counts_fold, opened_wrongly};

	stores_begin();
	cases_add(t, every, FW_N(every), under_test_n);
	return cases_run("store retention", t);
}
