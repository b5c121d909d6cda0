/* SPDX-License-Identifier: ISC */
/*
 * Visits, events, records, figures and retention (src/store/driver.h), on each driver: lists over
 * pages, refusals, failures.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "drv.h"
#include "store/fields.h"
#include "store/sql/sql.h"

static struct fw_err err;
static struct fw_arena A;
static char where[300]; /* the last store's URL */

static void setup(void)
{
	fw_arena_init(&A, 0);
}

static void teardown(void)
{
	fw_arena_finish(&A);
}

static struct store *opened(int i, unsigned flags, int64_t busy_ms)
{
	struct fw_store_config c = {.url = where, .flags = flags, .busy_timeout_ms = busy_ms};
	struct store *st = NULL;

	OK(drv_driver(i)->open(&c, &st, &err));
	return st;
}

static struct store *fresh_store(int i)
{
	(void)fw_str_copy(where, sizeof(where), fw_str(drv_url(i)));
	return opened(i, FW_STORE_CREATE, 0);
}

/* True if the last message names the store. */
static bool names_store(struct store *st)
{
	return strstr(err.text, strcmp(st->driver->name, "redis") == 0 ? "redis" : sql_of(st)->name) != NULL;
}

/* Feeds 1 to n. */
static void feeds_add(struct store *st, int n)
{
	struct fw_feed *f = fw_arena_calloc(&A, (size_t)n, sizeof(*f));

	for (int i = 0; i < n; i++)
		f[i] = (struct fw_feed){.id = i + 1,
			.url = fw_str(fw_arena_printf(&A, "https://h%d.example/", i + 1)),
			.created_ms = 1};
	OK(st->driver->load(st, &(struct store_load){.rows = {.feed = f, .feed_n = (size_t)n}}, &err));
}

static struct fw_store_stats figures(struct store *st)
{
	struct fw_store_stats s = {.next_due_ms = FW_NO_DATE, .size_bytes = -1};

	OK(st->driver->stats(st, &s, &err));
	return s;
}

/* ---- visits ---------------------------------------------------------------------------------- */

#define VISITS_MAX 4000

struct visits {
	size_t n, stop;
	struct fw_visit v[VISITS_MAX];
};

static struct visits V;

static int keep_visit(void *ctx, const struct fw_visit *v)
{
	struct visits *to = ctx;

	ck_assert_uint_lt(to->n, VISITS_MAX);
	to->v[to->n] = *v;
	to->v[to->n].error = fw_arena_str(&A, v->error);
	to->v[to->n++].feed_url = fw_arena_str(&A, v->feed_url);
	return to->n == to->stop ? 42 : 0;
}

static size_t visits(struct store *st, struct fw_visit_query q)
{
	V.n = V.stop = 0;
	OK(st->driver->visit_list(st, &q, keep_visit, &V, &err));
	return V.n;
}

/* Each member has another number or text. */
static struct fw_visit visit_full(int64_t base)
{
	struct fw_visit v = {.id = 0};

	for (size_t i = 0; i < fw_visit_field_n; i++) {
		const struct fw_field *f = &fw_visit_fields[i];

		if (fw_field_is_text(f))
			fw_field_str_set(f, &v, FW_STR("caf\xc3\xa9 'x' \\ \"y\"\nline \\n two\\\n\n"));
		else
			fw_field_int_set(f, &v, base + (int64_t)i);
	}
	v.kind = FW_VISIT_TLS;
	v.slot = -1;
	v.lateness_ms = UINT32_MAX;
	v.body_bytes = (uint64_t)INT64_MAX;
	return v;
}

static void visit_is(const struct fw_visit *got, const struct fw_visit *want)
{
	for (size_t i = 0; i < fw_visit_field_n; i++) {
		const struct fw_field *f = &fw_visit_fields[i];

		if (fw_field_is_text(f))
			ck_assert_msg(fw_str_eq(fw_field_str(f, got), fw_field_str(f, want)), "%s", f->name);
		else
			ck_assert_msg(fw_field_int(f, got) == fw_field_int(f, want), "%s: %lld is not %lld", f->name,
				(long long)fw_field_int(f, got), (long long)fw_field_int(f, want));
	}
}

START_TEST(visits_whole)
{
	struct store *st = fresh_store(_i);
	struct fw_feed f = {.title = FW_STR("t")};
	struct fw_visit v[2] = {visit_full(1000), visit_full(5000)};
	struct fw_outcome o[3] = {{.feed_id = 2, .feed = &f}, {.feed_id = 99, .feed = &f}, {.feed_id = 1, .feed = &f}};

	feeds_add(st, 2);
	v[0].id = 70, v[1].id = 71;
	v[0].feed_id = 1, v[1].feed_id = 77; /* no such feed: skipped */
	for (int round = 0; round < 2; round++)
		OK(st->driver->load(st, &(struct store_load){.rows = {.visit = v, .visit_n = 2}}, &err));
	ck_assert_uint_eq(visits(st, (struct fw_visit_query){0}), 1);
	visit_is(&V.v[0], &v[0]);
	ck_assert(V.v[0].id == 70 && fw_str_eq(V.v[0].feed_url, FW_STR("https://h1.example/")));
	/* new visits follow; a removed feed has none */
	for (int i = 0; i < 3; i++) {
		o[i].visit = visit_full(8000);
		o[i].visit.kind = FW_VISIT_PUSHED;
		o[i].visit.feed_id = o[i].feed_id;
		o[i].visit.new_n = o[i].visit.changed_n = 0; /* the store counts these */
	}
	OK(st->driver->commit(st, &(struct store_commit){.outcome = o, .n = 3}, &err));
	ck_assert(o[0].rc == 0 && o[1].rc == FW_ENOTFOUND && o[2].rc == 0);
	ck_assert_uint_eq(visits(st, (struct fw_visit_query){.oldest_first = true, .after_id = 70}), 2);
	ck_assert(V.v[0].id > 70 && V.v[1].id > V.v[0].id && V.v[0].feed_id + V.v[1].feed_id == 3);
	visit_is(&V.v[V.v[0].feed_id == 2 ? 0 : 1], &o[0].visit);
	ck_assert_int_eq(figures(st).visit_n, 3);
	ck_assert_int_eq(figures(st).last_visit_id, V.v[1].id);
	drv_end(st);
}
END_TEST

/* 3,000 visits of three feeds, one a minute; two in a minute have the same time. */
static void visits_add(struct store *st)
{
	struct fw_visit *v = fw_arena_calloc(&A, 3000, sizeof(*v));

	for (int i = 0; i < 3000; i++)
		v[i] = (struct fw_visit){.id = i + 1,
			.feed_id = 1 + i % 3,
			.at_ms = NOW + i / 6 * FW_MINUTE_MS,
			.run_id = NOW + (i / 1000) * 1000 / 6 * FW_MINUTE_MS,
			.kind = FW_VISIT_OK};
	OK(st->driver->load(st, &(struct store_load){.rows = {.visit = v, .visit_n = 3000}}, &err));
}

START_TEST(visits_listed)
{
	const int64_t run = NOW + 1000 / 6 * FW_MINUTE_MS, late = NOW + 400 * FW_MINUTE_MS;
	struct store *st = fresh_store(_i);

	feeds_add(st, 4);
	visits_add(st);
	ck_assert_uint_eq(visits(st, (struct fw_visit_query){0}), 3000);
	for (size_t i = 0; i < V.n; i++)
		ck_assert_int_eq(V.v[i].id, 3000 - (int64_t)i);
	ck_assert_uint_eq(visits(st, (struct fw_visit_query){.feed_id = 2}), 1000); /* pages end between equal times */
	for (size_t i = 0; i < V.n; i++)
		ck_assert_int_eq(V.v[i].id, 2999 - 3 * (int64_t)i);
	ck_assert_uint_eq(visits(st, (struct fw_visit_query){.feed_id = 2, .limit = 7}), 7);
	ck_assert_uint_eq(visits(st, (struct fw_visit_query){.feed_id = 2, .since_ms = late}), 200);
	ck_assert_uint_eq(visits(st, (struct fw_visit_query){.since_ms = late}), 600);
	ck_assert_uint_eq(visits(st, (struct fw_visit_query){.since_ms = late, .limit = 501}), 501);
	ck_assert_uint_eq(visits(st, (struct fw_visit_query){.run_id = run}), 1000);
	ck_assert(V.v[0].id == 2000 && V.v[999].id == 1001);
	ck_assert_uint_eq(visits(st, (struct fw_visit_query){.run_id = run, .limit = 3}), 3);
	ck_assert_int_eq(V.v[2].id, 1998);
	ck_assert_uint_eq(visits(st, (struct fw_visit_query){.run_id = run, .feed_id = 1}), 333);
	ck_assert_uint_eq(visits(st, (struct fw_visit_query){.run_id = run + 1}), 0);
	ck_assert_uint_eq(visits(st, (struct fw_visit_query){.feed_id = 4}), 0);
	ck_assert_uint_eq(visits(st, (struct fw_visit_query){.feed_id = 5}), 0);
	ck_assert_uint_eq(visits(st, (struct fw_visit_query){.oldest_first = true}), 3000);
	ck_assert(V.v[0].id == 1 && V.v[2999].id == 3000);
	ck_assert_uint_eq(
		visits(st, (struct fw_visit_query){.oldest_first = true, .after_id = 1200, .limit = 600}), 600);
	ck_assert(V.v[0].id == 1201 && V.v[599].id == 1800);
	ck_assert_uint_eq(visits(st, (struct fw_visit_query){.oldest_first = true, .run_id = run, .limit = 600}), 600);
	ck_assert_int_eq(V.v[0].id, 1001);
	ck_assert_uint_eq(
		visits(st, (struct fw_visit_query){.oldest_first = true, .since_ms = late, .after_id = 2500}), 500);
	ck_assert_uint_eq(visits(st, (struct fw_visit_query){.oldest_first = true, .since_ms = late, .limit = 1}), 1);
	ck_assert_int_eq(V.v[0].id, 2401);
	ck_assert_uint_eq(visits(st, (struct fw_visit_query){.oldest_first = true, .after_id = 3000}), 0);
	V.n = 0;
	V.stop = 600;
	/* the callback's code */
	ck_assert_int_eq(st->driver->visit_list(st, &(struct fw_visit_query){0}, keep_visit, &V, &err), 42);
	ck_assert_uint_eq(V.n, 600);
	drv_end(st);
}
END_TEST

/* A visit of a worker whose clock was ahead does not keep older ones from being pruned. */
START_TEST(visits_pruned)
{
	struct store *st = fresh_store(_i);
	struct fw_visit v = {.id = 5000, .feed_id = 4, .at_ms = NOW + FW_DAY_MS, .kind = FW_VISIT_OK};
	struct fw_prune p = {.visits_before_ms = NOW + 490 * FW_MINUTE_MS};
	int calls = 0;

	feeds_add(st, 4);
	OK(st->driver->load(st, &(struct store_load){.rows = {.visit = &v, .visit_n = 1}}, &err));
	v.id = 1;
	visits_add(st);
	do {
		p.more = false;
		OK(st->driver->prune(st, &p, &err));
		calls++;
	} while (p.more);
	ck_assert_int_eq(p.visit_n, 490 * 6);
	ck_assert_int_ge(calls, 2);
	ck_assert_int_eq(figures(st).visit_n, 61);
	ck_assert_uint_eq(visits(st, (struct fw_visit_query){.oldest_first = true}), 61);
	ck_assert_int_eq(V.v[0].id, 490 * 6 + 1);
	v = (struct fw_visit){.id = 4999, .feed_id = 1, .at_ms = NOW, .kind = FW_VISIT_OK};
	OK(st->driver->load(st, &(struct store_load){.rows = {.visit = &v, .visit_n = 1}}, &err));
	p = (struct fw_prune){.visits_before_ms = NOW + 1};
	OK(st->driver->prune(st, &p, &err)); /* behind 60 young ones */
	ck_assert(p.visit_n == 1 && !p.more);
	drv_end(st);
}
END_TEST

/* ---- events ---------------------------------------------------------------------------------- */

struct events {
	size_t n;
	int64_t last_id, sum;
	char text[200];
};

static int see_event(void *ctx, const struct fw_event *e)
{
	struct events *s = ctx;

	ck_assert_int_gt(e->id, s->last_id);
	s->last_id = e->id;
	s->sum += e->section;
	s->n++;
	return 0;
}

static int dead_letter_add(void *ctx, const struct fw_dead_letter *d)
{
	struct events *s = ctx;

	ck_assert_int_gt(d->id, s->last_id);
	s->last_id = d->id;
	s->n++;
	ck_assert(fw_snprintf(s->text, sizeof(s->text), "%.*s %.*s %lld", FW_STR_ARG(d->row), FW_STR_ARG(d->reason),
		(long long)d->at_ms));
	return 0;
}

static struct events events(struct store *st, int64_t after_id, size_t limit)
{
	struct events s = {.n = 0};

	OK(st->driver->event_list(st,
		&(struct store_event_query){.after_id = after_id, .limit = limit, .event = see_event, .ctx = &s},
		&err));
	return s;
}

static struct events letters(struct store *st, int64_t after_id, size_t limit)
{
	struct events s = {.n = 0};

	OK(st->driver->event_list(st,
		&(struct store_event_query){.after_id = after_id, .limit = limit, .dead = dead_letter_add, .ctx = &s},
		&err));
	return s;
}

/* n events with ids from `from` on, section = id. */
static struct fw_event *events_make(int64_t from, size_t n)
{
	struct fw_event *e = fw_arena_calloc(&A, n, sizeof(*e));

	for (size_t i = 0; i < n; i++)
		e[i] = (struct fw_event){.id = from + (int64_t)i,
			.property = FW_STR("news"),
			.section = from + (int64_t)i,
			.item = -1,
			.remote_ip = FW_STR("::1"),
			.stamp_ms = NOW + (int64_t)i};
	return e;
}

START_TEST(events_many)
{
	struct store *st = fresh_store(_i);
	struct fw_event *e = events_make(1, 12000);

	e[3].property = e[3].remote_ip = FW_STR_NONE;
	OK(st->driver->event_put(st, e, 5000, NULL, 0, &err));
	OK(st->driver->event_put(st, e, 5000, NULL, 0, &err));        /* its response was lost */
	OK(st->driver->event_put(st, e + 3000, 9000, NULL, 0, &err)); /* some of them exist */
	ck_assert_uint_eq(events(st, 0, 0).n, 12000);
	ck_assert_int_eq(events(st, 0, 0).sum, 12000 * 12001 / 2);
	ck_assert_int_eq(events(st, 4500, 1500).last_id, 6000); /* over pages */
	ck_assert_uint_eq(events(st, 11000, 2000).n, 1000);
	ck_assert_uint_eq(events(st, 12000, 0).n, 0);
	OK(st->driver->event_put(st, NULL, 0, NULL, 0, &err));
	drv_end(st);
}
END_TEST

/*
 * A constraint that a user added refuses an event: then none of the batch is stored, and no dead
 * letter.
 */
START_TEST(events_refused)
{
	struct store *st = fresh_store(_i);
	struct fw_event *e = events_make(1, 300);
	struct fw_dead_letter d = {.id = 9, .row = FW_STR("{}"), .reason = FW_STR("r"), .at_ms = NOW};

	if (!drv_is_sql(_i)) {
		st->driver->close(st);
		return;
	}
	OK(sql_of(st)->dialect->script(sql_of(st),
		under_test[_i].server ?
			"ALTER TABLE incoming ADD CHECK (property_section <> 250)" :
			"CREATE TRIGGER no BEFORE INSERT ON incoming WHEN new.property_section = 250 BEGIN SELECT "
			"RAISE(ABORT, 'not this one'); END",
		&err));
	OK(st->driver->event_put(st, e, 20, NULL, 0, &err));
	IS(st->driver->event_put(st, e, 300, &d, 1, &err), FW_EINVAL); /* 20 exist, and one is refused */
	ck_assert(names_store(st));
	ck_assert_uint_eq(events(st, 0, 0).n, 20);
	ck_assert_uint_eq(letters(st, 0, 0).n, 0);
	IS(st->driver->event_put(st, e + 249, 1, NULL, 0, &err), FW_EINVAL);
	OK(sql_of(st)->dialect->script(sql_of(st), "CREATE UNIQUE INDEX mine ON incoming (property_section)", &err));
	e[248].section = 1; /* it exists by a key of the user's */
	IS(st->driver->event_put(st, e, 249, &d, 1, &err), FW_EINVAL);
	ck_assert_uint_eq(events(st, 0, 0).n, 20);
	e[248].section = 249;
	OK(st->driver->event_put(st, e, 249, &d, 1, &err)); /* and the others are stored as before */
	ck_assert_uint_eq(events(st, 0, 0).n, 249);
	ck_assert_uint_eq(letters(st, 0, 0).n, 1);
	drv_end(st);
}
END_TEST

START_TEST(dead_letters)
{
	struct store *st = fresh_store(_i);
	struct fw_dead_letter *d = fw_arena_calloc(&A, 1500, sizeof(*d));
	int64_t id[3] = {2, 1500, 77777};

	for (int i = 0; i < 1500; i++)
		d[i] = (struct fw_dead_letter){
			.id = i + 1, .row = FW_STR("{\"a\": \"'\\u0000\"}"), .reason = FW_STR("first"), .at_ms = i};
	OK(st->driver->event_put(st, NULL, 0, d, 1500, &err));
	d[7].reason = FW_STR("it's said");
	d[7].at_ms = 99;
	OK(st->driver->event_put(
		st, events_make(1, 1), 1, d + 7, 1, &err)); /* with another event; replaces the first */
	ck_assert_uint_eq(letters(st, 0, 0).n, 1500);
	ck_assert_str_eq(letters(st, 7, 1).text, "{\"a\": \"'\\u0000\"} it's said 99");
	ck_assert_str_eq(letters(st, 1499, 3).text, "{\"a\": \"'\\u0000\"} first 1499");
	ck_assert_uint_eq(letters(st, 100, 1200).n, 1200);
	ck_assert_uint_eq(events(st, 0, 0).n, 1);
	OK(st->driver->event_remove(st, id, 3, &err)); /* one of them does not exist */
	OK(st->driver->event_remove(st, id, 0, &err));
	ck_assert_uint_eq(letters(st, 0, 0).n, 1498);
	ck_assert_int_eq(letters(st, 0, 2).last_id, 3);
	drv_end(st);
}
END_TEST

START_TEST(events_pruned)
{
	struct store *st = fresh_store(_i);
	struct fw_event *e = events_make(1, 11000);
	struct fw_dead_letter d[2] = {{.id = 1, .row = FW_STR("{}"), .reason = FW_STR("r"), .at_ms = NOW + 9999},
		{.id = 2, .row = FW_STR("{}"), .reason = FW_STR("r"), .at_ms = NOW + 10000}};
	struct fw_prune p = {.events_before_ms = NOW + 10000};
	int64_t before;

	e[0].stamp_ms = NOW + FW_DAY_MS; /* of a client whose clock was ahead */
	OK(st->driver->event_put(st, e, 11000, d, 2, &err));
	do {
		p.more = false;
		before = p.event_n;
		OK(st->driver->prune(st, &p, &err));
		ck_assert_int_le(p.event_n - before, 2 * FW_EVENT_STEP);
	} while (p.more);
	ck_assert_int_eq(p.event_n, 9999 + 1);
	ck_assert_uint_eq(events(st, 0, 0).n, 1001);
	ck_assert_int_eq(letters(st, 0, 0).last_id, 2);
	drv_end(st);
}
END_TEST

/* ---- records --------------------------------------------------------------------------------- */

static void record_put(struct store *st, const char *kind, int key, int64_t until_ms)
{
	char text[20];
	struct fw_record r = {.kind = fw_str(kind), .value = FW_STR("v"), .at_ms = NOW, .until_ms = until_ms};
	bool was;

	ck_assert(fw_snprintf(text, sizeof(text), "%04d", key));
	r.key = fw_str(text);
	OK(st->driver->record_put(st, &r, false, false, &was, &err));
	ck_assert(!was);
}

struct records {
	size_t n;
	struct fw_buf all;
};

static int see_record(void *ctx, const struct fw_record *r)
{
	struct records *s = ctx;

	s->n++;
	fw_buf_addf(&s->all, "%.*s/%.*s ", FW_STR_ARG(r->kind), FW_STR_ARG(r->key));
	return 0;
}

static struct records R;

static struct fw_str records(struct store *st, struct fw_record_query q)
{
	R.n = 0;
	fw_buf_reset(&R.all);
	OK(st->driver->record_list(st, &(struct store_record_query){.q = q}, see_record, &R, &err));
	return fw_buf_str(&R.all);
}

START_TEST(records_of_all_kinds)
{
	struct store *st = fresh_store(_i);
	struct fw_buf want = FW_BUF_INIT(0);

	for (int i = 0; i < 700; i++) {
		const char *kind = i < 200 ? "a" : i < 201 ? "a_b" : "ab";

		record_put(st, kind, i, i % 2 ? FW_NO_DATE : NOW + 5);
		fw_buf_addf(&want, "%s/%04d ", kind, i);
	}
	ck_assert(fw_str_eq(records(st, (struct fw_record_query){0}), fw_buf_str(&want)));
	(void)records(st, (struct fw_record_query){.limit = 201});
	ck_assert_uint_eq(R.n, 201);
	ck_assert(fw_str_eq(
		records(st,
			(struct fw_record_query){.after_kind = FW_STR("a"), .after_key = FW_STR("0198"), .limit = 3}),
		FW_STR("a/0199 a_b/0200 ab/0201 ")));
	ck_assert(fw_str_eq(
		records(st, (struct fw_record_query){.after_kind = FW_STR("aa"), .after_key = FW_STR("x"), .limit = 1}),
		FW_STR("ab/0201 "))); /* a cursor whose kind is gone */
	(void)records(st, (struct fw_record_query){.after_kind = FW_STR("ab"), .after_key = FW_STR("0400")});
	ck_assert_uint_eq(R.n, 299);
	(void)records(st, (struct fw_record_query){.kind = FW_STR("ab"), .limit = 401});
	ck_assert_uint_eq(R.n, 401);
	ck_assert_uint_eq(records(st, (struct fw_record_query){.after_kind = FW_STR("b")}).len, 0);
	fw_buf_finish(&want);
	fw_buf_finish(&R.all);
	drv_end(st);
}
END_TEST

START_TEST(records_looked_for)
{
	struct store *st = fresh_store(_i);
	struct fw_record r = {.kind = FW_STR("k"), .key = FW_STR("\xff\0x"), .at_ms = NOW, .until_ms = NOW + 5};
	struct store_record_query one = {.q.kind = r.kind, .key = r.key};
	bool was = true;

	IS(st->driver->record_list(st, &one, see_record, &R, &err), FW_ENOTFOUND);
	IS(st->driver->record_remove(st, r.kind, r.key, FW_STR_NONE, &err), FW_ENOTFOUND);
	ck_assert(names_store(st));
	OK(st->driver->record_put(st, &r, true, false, &was, &err));
	ck_assert(!was);
	R.n = 0;
	OK(st->driver->record_list(st, &one, see_record, &R, &err));
	ck_assert_uint_eq(R.n, 1);
	OK(st->driver->record_put(st, &r, true, true, &was, &err));
	ck_assert(was);
	r.at_ms = NOW + 5; /* the existing one has expired */
	r.until_ms = NOW + 9;
	OK(st->driver->record_put(st, &r, true, false, &was, &err));
	ck_assert(!was);
	IS(st->driver->record_remove(st, r.kind, r.key, FW_STR("v"), &err), FW_ENOTFOUND);
	OK(st->driver->record_remove(st, r.kind, r.key, FW_STR(""), &err));
	fw_buf_finish(&R.all);
	drv_end(st);
}
END_TEST

START_TEST(records_wake)
{
	struct fw_record r = {
		.kind = FW_STR("k"), .key = FW_STR("x"), .value = FW_STR("v"), .at_ms = NOW, .until_ms = FW_NO_DATE};
	struct store *st = fresh_store(_i), *other;
	bool was, changed = false;
	int64_t start;

	if (!under_test[_i].shared) {
		drv_end(st);
		return;
	}
	other = opened(_i, 0, 0);
	OK(st->driver->wait(st, -1, 20, &changed, &err));
	OK(other->driver->record_put(other, &r, false, false, &was, &err));
	OK(st->driver->wait(st, -1, 60, &changed, &err));
	ck_assert(!changed);
	OK(other->driver->record_put(other, &r, false, true, &was, &err));
	start = fw_mono_ms();
	OK(st->driver->wait(st, -1, 20000, &changed, &err));
	ck_assert(changed && fw_mono_ms() - start < 10000);
	other->driver->close(other);
	drv_end(st);
}
END_TEST

START_TEST(records_pruned)
{
	struct store *st = fresh_store(_i);
	struct fw_prune p = {.now_ms = NOW + 2000, .records = true};
	int64_t before;
	int calls = 0;

	for (int i = 0; i < 2500; i++)
		record_put(st, "k", i, i < 10 ? FW_NO_DATE : NOW + i);
	do {
		p.more = false;
		before = p.record_n;
		OK(st->driver->prune(st, &p, &err));
		ck_assert_int_le(p.record_n - before, FW_RECORD_STEP);
		calls++;
	} while (p.more);
	ck_assert_int_eq(p.record_n, 1991);
	ck_assert_int_ge(calls, 2);
	(void)records(st, (struct fw_record_query){0});
	ck_assert_uint_eq(R.n, 509);
	fw_buf_finish(&R.all);
	drv_end(st);
}
END_TEST

/* ---- figures, failures ----------------------------------------------------------------------- */

START_TEST(counted)
{
	struct store *st = fresh_store(_i);
	struct fw_feed f[6];
	struct fw_store_stats s = figures(st);
	int64_t now_ms;

	ck_assert(s.feed_n == 0 && s.active_n == 0 && s.due_n == 0 && s.entry_n == 0 && s.visit_n == 0 &&
		s.next_due_ms == FW_NO_DATE && s.last_feed_id == 0 && s.last_entry_id == 0 && s.last_visit_id == 0 &&
		s.schema == schema_of(st->driver->name) && s.unindexed_n == 0);
	OK(st->driver->clock(st, &now_ms, &err));
	for (int i = 0; i < 6; i++)
		f[i] = (struct fw_feed){.id = i + 1,
			.url = fw_str(fw_arena_printf(&A, "https://h%d.example/", i)),
			.status = i < 3 ? FW_FEED_ACTIVE : (enum fw_feed_status)(i - 2),
			.due_at_ms = i == 2 ? now_ms + FW_HOUR_MS : 1000 - i,
			.fail_n = (uint32_t)i % 2,
			.created_ms = 1};
	OK(st->driver->load(st, &(struct store_load){.rows = {.feed = f, .feed_n = 6}}, &err));
	s = figures(st);
	ck_assert(s.feed_n == 6 && s.active_n == 3 && s.paused_n == 1 && s.gone_n == 1 && s.quarantined_n == 1);
	ck_assert(s.due_n == 2 && s.failing_n == 3 && s.next_due_ms == 999 && s.last_feed_id == 6);
	ck_assert(s.size_bytes > 0);
	drv_end(st);
}
END_TEST

/* Each slot that writes returns this code. */
static void all_fail(struct store *st, int rc)
{
	struct fw_event *e = events_make(1, 3);
	struct fw_dead_letter d = {.id = 9, .row = FW_STR("{}"), .reason = FW_STR("r"), .at_ms = NOW};
	struct fw_record r = {
		.kind = FW_STR("k"), .key = FW_STR("x"), .value = FW_STR("v"), .at_ms = NOW, .until_ms = FW_NO_DATE};
	struct fw_prune p = {.now_ms = INT64_MAX - 1, .events_before_ms = INT64_MAX, .records = true};
	bool was;

	IS(st->driver->event_put(st, e, 3, NULL, 0, &err), rc);
	IS(st->driver->event_put(st, NULL, 0, &d, 1, &err), rc);
	IS(st->driver->event_remove(st, &d.id, 1, &err), rc);
	IS(st->driver->record_put(st, &r, true, true, &was, &err), rc);
	IS(st->driver->record_remove(st, r.kind, r.key, FW_STR_NONE, &err), rc);
	IS(st->driver->prune(st, &p, &err), rc);
	ck_assert_msg(names_store(st), "%s", err.text);
}

START_TEST(read_only)
{
	struct store *st = fresh_store(_i), *reader;

	if (under_test[_i].shared) {
		OK(st->driver->event_put(st, events_make(7, 1), 1, NULL, 0, &err));
		record_put(st, "k", 1, NOW + 1);
		reader = opened(_i, FW_STORE_READ, 0);
		all_fail(reader, FW_EINVAL);
		ck_assert_uint_eq(events(reader, 0, 0).n, 1);
		ck_assert_int_eq(figures(reader).feed_n, 0);
		(void)records(reader, (struct fw_record_query){0});
		ck_assert_uint_eq(R.n, 1);
		fw_buf_finish(&R.all);
		reader->driver->close(reader);
	}
	drv_end(st);
}
END_TEST

/* Another client locks the tables for longer than busy_timeout_ms. */
START_TEST(locked)
{
	struct store *st = fresh_store(_i), *other;
	struct sql *s = drv_is_sql(_i) ? sql_of(st) : NULL;

	if (s && under_test[_i].shared) {
		OK(st->driver->event_put(st, events_make(7, 1), 1, NULL, 0, &err));
		record_put(st, "k", 1, NOW + 1);
		other = opened(_i, 0, 100);
		OK(s->dialect->begin(s, &err));
		if (strcmp(under_test[_i].name, "postgres") == 0)
			OK(s->dialect->script(s, "LOCK TABLE incoming, dead_letters, records", &err));
		if (strcmp(under_test[_i].name, "mysql") != 0)
			all_fail(other, FW_EAGAIN);
		s->dialect->rollback(s);
		OK(other->driver->event_put(other, events_make(1, 3), 3, NULL, 0, &err));
		ck_assert_uint_eq(events(other, 0, 0).n, 4);
		other->driver->close(other);
	}
	drv_end(st);
}
END_TEST

/* The connection breaks: it is unusable, and a new one reads what was stored. */
START_TEST(connection_gone)
{
	struct store *st = fresh_store(_i), *other;

	if (strcmp(under_test[_i].name, "postgres") == 0) {
		OK(st->driver->event_put(st, events_make(7, 1), 1, NULL, 0, &err));
		record_put(st, "k", 1, NOW + 1);
		other = opened(_i, 0, 0);
		OK(sql_of(other)->dialect->script(sql_of(other),
			"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
			" AND backend_type = 'client backend'",
			&err));
		all_fail(st, FW_EIO);
		IS(st->driver->visit_list(st, &(struct fw_visit_query){0}, keep_visit, &V, &err), FW_EIO);
		IS(st->driver->event_list(st, &(struct store_event_query){.event = see_event}, &err), FW_EIO);
		IS(st->driver->record_list(st, &(struct store_record_query){0}, see_record, &R, &err), FW_EIO);
		IS(st->driver->stats(st, &(struct fw_store_stats){0}, &err), FW_EIO);
		st->driver->close(st);
		st = other;
		ck_assert_uint_eq(events(st, 0, 0).n, 1);
	}
	drv_end(st);
}
END_TEST

int main(void)
{
	TCase *t = cases("every driver", setup, teardown, 120);
	const TTest *const every[] = {visits_whole, visits_listed, visits_pruned, events_many, events_refused,
		dead_letters, events_pruned, records_of_all_kinds, records_looked_for, records_wake, records_pruned,
		counted, read_only, locked, connection_gone};

	stores_begin();
	cases_add(t, every, FW_N(every), under_test_n);
	return cases_run("store small", t);
}
