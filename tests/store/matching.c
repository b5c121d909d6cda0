/* SPDX-License-Identifier: ISC */
/*
 * What orders do to the entries of a commit (include/feedwheel/store.h, struct fw_matcher), on each
 * driver. The matcher here goes by the letters of an entry's title: d drops it, t tags it, a and b
 * are orders that get a match. With rules_follow() it goes by a record too: as long as there is
 * an order "c", the letter c gives order A a match.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "drv.h"
#include "store/sql/sql.h"

#define A INT64_C(1790000000000001)
#define B INT64_C(1790000000000002)
#define MANY 2500 /* several batches of each driver */
#define TAGGED "{\"tags\":[\"t\"]}"

struct rules {
	struct fw_matcher matcher;
	int64_t order_id[2];
	int calls, changed_n;
	int call; /* this one fails with the code of: */
	int (*meanwhile)(void);
	int64_t feed_id;
	int reloads;
	bool has_c;
};

static bool title_has(const struct fw_entry_row *e, char letter)
{
	return e->title.len && memchr(e->title.p, letter, e->title.len) != NULL;
}

static int rules_match(
	void *ctx, const struct fw_outcome *o, const struct fw_entry_row *e, bool is_new, struct fw_match_result *out)
{
	struct rules *r = ctx;
	int rc = ++r->calls == r->call ? r->meanwhile() : 0;

	r->changed_n += !is_new;
	r->feed_id = o->feed_id;
	if (rc)
		return rc;
	*out = (struct fw_match_result){.drop = title_has(e, 'd'), .order_id = r->order_id};
	if (title_has(e, 't'))
		out->extra = FW_STR(TAGGED);
	if (title_has(e, 'a') || (title_has(e, 'c') && r->has_c))
		r->order_id[out->n++] = A;
	if (title_has(e, 'b'))
		r->order_id[out->n++] = B;
	return 0;
}

static void rules_begin(struct rules *r, struct fw_store *st)
{
	*r = (struct rules){.matcher = {.match = rules_match, .ctx = r}};
	fw_store_set_matcher(st, &r->matcher);
}

/* ---- one store ------------------------------------------------------------------------------- */

static struct fw_err err;
static struct rules rules;
static struct fw_store *st;
static const char *url;
static int64_t feed;

static void begin(int i)
{
	url = strdup(drv_url(i));
	st = store_open(url, FW_STORE_CREATE);
	rules_begin(&rules, st);
	feed = subscribe(st, "https://a.example/", NOW);
}

static void end(void)
{
	check_clean(st);
	fw_store_close(st);
	free((char *)(uintptr_t)url);
}

/* Push an entry; returns the outcome, with its counts. */
static struct fw_outcome push_to(struct fw_store *to, int64_t feed_id, int key, int hash, const char *title)
{
	static struct fw_feed f;
	struct fw_entry_row e = entry(key, hash, title, "<p>number</p>");
	struct fw_outcome o = drv_push(feed_id, &f, &e, 1);

	OK(fw_store_push(to, &o, 1, &err));
	ck_assert_int_eq(o.rc, 0);
	return o;
}

static void push(int key, int hash, const char *title, uint32_t new_n, uint32_t changed_n)
{
	struct fw_outcome o = push_to(st, feed, key, hash, title);

	ck_assert_uint_eq(o.visit.new_n, new_n);
	ck_assert_uint_eq(o.visit.changed_n, changed_n);
}

struct listed {
	char text[400]; /* "1 of 1, 3 changed of 1" */
	int64_t last_id;
	size_t n;
};

static int list_add(void *ctx, const struct fw_match *m)
{
	struct listed *l = ctx;
	size_t at = strlen(l->text);

	ck_assert(m->change_id > l->last_id && m->feed_id > 0 && m->at_ms > 0);
	ck_assert(m->changed || m->change_id == m->entry_id);
	l->last_id = m->change_id;
	l->n++;
	if (at < sizeof(l->text) - 60)
		ck_assert(fw_snprintf(l->text + at, sizeof(l->text) - at, "%s%lld%s of %lld", at ? ", " : "",
			(long long)m->change_id, m->changed ? " changed" : "", (long long)m->entry_id));
	return 0;
}

static struct listed list(int64_t order_id)
{
	struct listed l = {.last_id = 0};

	OK(fw_store_match_list(st, &(struct fw_match_query){.order_id = order_id}, list_add, &l, &err));
	return l;
}

static void matches_are(int64_t order_id, const char *text)
{
	struct listed l = list(order_id);

	ck_assert_str_eq(l.text, text);
}

struct extras {
	char text[400];
};

static int extra_add(void *ctx, const struct fw_entry_row *e)
{
	struct extras *x = ctx;
	size_t at = strlen(x->text);

	ck_assert(fw_snprintf(x->text + at, sizeof(x->text) - at, "%s%.*s%.*s", at ? " " : "", FW_STR_ARG(e->title),
		FW_STR_ARG(e->extra)));
	return 0;
}

static void entries_are(const char *text)
{
	struct extras x = {.text = ""};

	OK(fw_store_entry_list(st, &(struct fw_entry_query){.oldest_first = true}, extra_add, &x, &err));
	ck_assert_str_eq(x.text, text);
}

/* ---- pushes ---------------------------------------------------------------------------------- */

START_TEST(new_and_changed_entries_match)
{
	begin(_i);
	push(1, 1, "a", 1, 0);
	push(2, 1, "-", 1, 0);
	push(3, 1, "ab", 1, 0);
	matches_are(A, "1 of 1, 3 of 3");
	matches_are(B, "3 of 3");
	ck_assert(rules.calls == 3 && !rules.changed_n && rules.feed_id == feed);
	push(1, 1, "a", 0, 0); /* known and unchanged: nobody is asked */
	ck_assert_int_eq(rules.calls, 3);
	push(1, 2, "ab", 0, 1);
	push(2, 2, "-b", 0, 1);
	ck_assert(rules.calls == 5 && rules.changed_n == 2);
	matches_are(A, "1 of 1, 3 of 3, 4 changed of 1");
	matches_are(B, "3 of 3, 4 changed of 1, 5 changed of 2");
	fw_store_set_matcher(st, NULL);
	push(4, 1, "ab", 1, 0);
	matches_are(B, "3 of 3, 4 changed of 1, 5 changed of 2");
	end();
}
END_TEST

START_TEST(a_dropped_entry_stays_away)
{
	begin(_i);
	push(1, 1, "dab", 0, 0);
	entries_are("");
	matches_are(A, "");
	ck_assert_int_eq(stats(st).entry_n, 0);
	push(1, 1, "dab", 0, 0);
	push(1, 2, "ab", 0, 0); /* it has another text, and would not be dropped any more */
	ck_assert_int_eq(rules.calls, 1);
	push(2, 1, "a", 1, 0); /* it has the first number */
	fw_store_set_matcher(st, NULL);
	push(1, 3, "ab", 0, 0);
	entries_are("a");
	matches_are(A, "1 of 1");
	fw_store_set_matcher(st, &rules.matcher);
	push(2, 2, "da", 0, 1); /* what is stored is not dropped */
	entries_are("da");
	matches_are(A, "1 of 1, 2 changed of 1");
	end();
}
END_TEST

START_TEST(an_entry_is_stored_with_its_tags)
{
	begin(_i);
	push(1, 1, "t", 1, 0);
	push(2, 1, "-", 1, 0);
	push(3, 1, "dt", 0, 0);
	entries_are("t" TAGGED " -");
	push(1, 2, "-1", 0, 1);
	push(2, 2, "ta", 0, 1);
	entries_are("-1 ta" TAGGED);
	matches_are(A, "4 changed of 2");
	end();
}
END_TEST

START_TEST(outcomes_of_one_feed_in_one_push)
{
	struct fw_entry_row e[4] = {
		entry(1, 1, "a", ""), entry(2, 1, "d", ""), entry(1, 2, "b", ""), entry(2, 2, "ab", "")};
	struct fw_feed f;
	struct fw_outcome o[2];

	begin(_i);
	o[0] = drv_push(feed, &f, e, 2);
	o[1] = drv_push(feed, &f, e + 2, 2);
	OK(fw_store_push(st, o, 2, &err));
	ck_assert(o[0].visit.new_n == 1 && o[1].visit.new_n == 0 && o[1].visit.changed_n == 1);
	entries_are("b");
	matches_are(A, "1 of 1");
	matches_are(B, "2 changed of 1");
	end();
}
END_TEST

static void push_many(int64_t to, struct fw_entry_row *e, int hash, uint32_t new_n, uint32_t changed_n)
{
	static const char *const title[] = {"ab", "-", "b", "d", "a"};
	struct fw_feed f;
	struct fw_outcome o;

	for (int i = 0; i < MANY; i++)
		e[i] = entry(i, hash, title[i % 5], "");
	o = drv_push(to, &f, e, MANY);
	OK(fw_store_push(st, &o, 1, &err));
	ck_assert_uint_eq(o.visit.new_n, new_n);
	ck_assert_uint_eq(o.visit.changed_n, changed_n);
}

START_TEST(many_at_once)
{
	struct fw_entry_row *e = calloc(MANY, sizeof(*e));
	int64_t other;

	begin(_i);
	other = subscribe(st, "https://b.example/", NOW);
	push_many(feed, e, 1, MANY / 5 * 4, 0);
	push_many(other, e, 1, MANY / 5 * 4, 0);
	push_many(feed, e, 2, 0, MANY / 5 * 4);
	ck_assert_uint_eq(list(A).n, MANY / 5 * 2 * 3);
	ck_assert_uint_eq(list(B).n, MANY / 5 * 2 * 3);
	ck_assert_int_eq(stats(st).entry_n, MANY / 5 * 4 * 2);
	free(e);
	end();
}
END_TEST

static int memory_is_out(void)
{
	return FW_ENOMEM;
}

START_TEST(a_failing_matcher_fails_the_push)
{
	struct fw_entry_row e[2] = {entry(1, 1, "a", ""), entry(2, 1, "d", "")};
	struct fw_feed f;
	struct fw_outcome o;
	uint64_t before;

	begin(_i);
	before = drv_print(store_of(st));
	o = drv_push(feed, &f, e, 2);
	rules.call = 2;
	rules.meanwhile = memory_is_out;
	IS(fw_store_push(st, &o, 1, &err), FW_ENOMEM);
	ck_assert(strstr(err.text, "orders"));
	ck_assert_uint_eq(drv_print(store_of(st)), before);
	OK(fw_store_push(st, &o, 1, &err));
	ck_assert_uint_eq(o.visit.new_n, 1);
	ck_assert_uint_eq(list(A).n, 1);
	end();
}
END_TEST

START_TEST(copies_merges_and_removals_do_not_match)
{
	struct fw_entry_row e = entry(9, 1, "ab", "");
	int64_t other;

	begin(_i);
	other = subscribe(st, "https://b.example/", NOW);
	push(1, 1, "a", 1, 0);
	e.id = 700;
	e.feed_id = other;
	e.seen_ms = e.changed_ms = NOW;
	e.revision = 1;
	OK(fw_store_load(st, &(struct fw_load){.entry = &e, .entry_n = 1}, &err));
	OK(fw_store_feed_merge(st, feed, other, &err));
	OK(fw_store_unsubscribe(st, other, &err));
	ck_assert_int_eq(rules.calls, 1);
	matches_are(A, "1 of 1");
	matches_are(B, "");
	end();
}
END_TEST

/* ---- orders that change ---------------------------------------------------------------------- */

#define ORDER FW_STR(FW_RECORD_ORDER)

static int rules_reload(void *ctx, struct fw_store *to, struct fw_err *why)
{
	struct rules *r = ctx;
	struct fw_record found;
	struct fw_arena a;
	int rc;

	r->reloads++;
	OK(fw_store_orders_version(to, &r->matcher.version, why));
	fw_arena_init(&a, 0);
	rc = fw_store_record_get(to, ORDER, FW_STR("c"), &a, &found, why);
	ck_assert(!rc || rc == FW_ENOTFOUND);
	r->has_c = !rc;
	fw_arena_finish(&a);
	return 0;
}

static void rules_follow(void)
{
	rules.matcher.reload = rules_reload;
	OK(rules_reload(&rules, st, &err));
	rules.reloads = 0;
}

static bool order_put(struct fw_store *to, const char *name, bool if_absent)
{
	struct fw_record r = {
		.kind = ORDER, .key = fw_str(name), .value = FW_STR("x"), .at_ms = NOW, .until_ms = FW_NO_DATE};
	bool was;

	OK(fw_store_record_put(to, &r, if_absent, &was, &err));
	return was;
}

static void order_remove(const char *name)
{
	OK(fw_store_record_remove(st, ORDER, fw_str(name), FW_STR_NONE, &err));
}

START_TEST(an_order_counts_from_its_answer_on)
{
	begin(_i);
	rules_follow();
	push(1, 1, "c", 1, 0);
	ck_assert_int_eq(rules.reloads, 0);
	ck_assert(!order_put(st, "c", true));
	push(2, 1, "c", 1, 0);
	ck_assert_int_eq(rules.reloads, 1);
	push(3, 1, "-", 1, 0);
	push(1, 2, "c", 0, 1);
	ck_assert_int_eq(rules.reloads, 1);
	matches_are(A, "2 of 2, 4 changed of 1");
	order_remove("c");
	push(4, 1, "c", 1, 0);
	push(2, 2, "-", 0, 1);
	ck_assert_int_eq(rules.reloads, 2);
	order_put(st, "c", false);
	push(5, 1, "dc", 0, 0); /* a dropped entry counts too */
	ck_assert_int_eq(rules.reloads, 3);
	order_put(st, "another", false);
	order_put(st, "third", false); /* two changes at once: one reload */
	push(6, 1, "c", 1, 0);
	ck_assert_int_eq(rules.reloads, 4);
	matches_are(A, "2 of 2, 4 changed of 1, 7 of 7");
	end();
}
END_TEST

START_TEST(what_changes_no_order_or_entry_reloads_nothing)
{
	struct fw_record other = {.kind = FW_STR("orders"),
		.key = FW_STR("c"),
		.value = FW_STR("x"),
		.at_ms = NOW,
		.until_ms = FW_NO_DATE};
	struct fw_outcome o;
	struct fw_feed f;

	begin(_i);
	order_put(st, "c", false);
	rules_follow();
	push(1, 1, "c", 1, 0);
	OK(fw_store_record_put(st, &other, false, NULL, &err));
	ck_assert(order_put(st, "c", true));
	IS(fw_store_record_remove(st, ORDER, FW_STR("absent"), FW_STR_NONE, &err), FW_ENOTFOUND);
	IS(fw_store_record_remove(st, ORDER, FW_STR("c"), FW_STR("y"), &err), FW_ENOTFOUND);
	push(2, 1, "c", 1, 0);
	ck_assert_int_eq(rules.reloads, 0);
	order_put(st, "c", false);
	push(2, 1, "c", 0, 0); /* known */
	o = drv_push(feed, &f, NULL, 0);
	OK(fw_store_push(st, &o, 1, &err));
	ck_assert_int_eq(rules.reloads, 0);
	end();
}
END_TEST

START_TEST(a_commit_with_other_orders_is_refused)
{
	struct fw_orders_version before, after;
	struct fw_entry_row e[2];
	struct store_lease *l;
	struct fw_outcome o;
	struct fw_feed f;
	uint64_t print;

	begin(_i);
	rules_follow();
	e[0] = entry(1, 1, "c", "");
	e[1] = entry(2, 1, "d", "");
	l = drv_join(store_of(st), "w", LONG_MS);
	OK(fw_store_orders_version(st, &before, &err));
	order_put(st, "c", false);
	OK(fw_store_orders_version(st, &after, &err));
	ck_assert(memcmp(&before, &after, sizeof(before)) != 0);
	o = drv_outcome(store_of(st), feed, &f, NOW);
	o.entries = e;
	o.entry_n = 2;
	print = drv_print(store_of(st));
	FAILS(drv_commit(store_of(st), l->id, &o, 1), STORE_EORDERS);
	ck_assert_uint_eq(drv_print(store_of(st)), print);
	OK(rules_reload(&rules, st, &err));
	DONE(drv_commit(store_of(st), l->id, &o, 1));
	ck_assert_uint_eq(o.visit.new_n, 1);
	matches_are(A, "1 of 1");
	drv_leave(store_of(st), l);
	end();
}
END_TEST

static int another_adds_the_order(void)
{
	struct fw_store *other = store_open(url, 0);

	order_put(other, "c", false);
	fw_store_close(other);
	return 0;
}

/* The commit has asked the matcher, and has not ended, when the order is added. */
START_TEST(an_order_that_is_added_inside_a_commit)
{
	begin(_i);
	rules_follow();
	/* not SQLite: only one connection can write at a time */
	if (under_test[_i].shared && strcmp(fw_store_name(st), "sqlite") != 0) {
		rules.call = 1;
		rules.meanwhile = another_adds_the_order;
		push(1, 1, "c", 1, 0);
		ck_assert(rules.reloads == 1 && rules.calls >= 2);
		ck_assert_uint_eq(list(A).n, 1);
	}
	end();
}
END_TEST

static int reload_changes_more(void *ctx, struct fw_store *to, struct fw_err *why)
{
	int rc = rules_reload(ctx, to, why);

	order_put(to, "more", false);
	return rc;
}

START_TEST(orders_that_keep_changing)
{
	struct fw_entry_row e = entry(1, 1, "c", "");
	struct fw_outcome o;
	struct fw_feed f;

	begin(_i);
	rules_follow();
	rules.matcher.reload = reload_changes_more;
	order_put(st, "c", false);
	o = drv_push(feed, &f, &e, 1);
	IS(fw_store_push(st, &o, 1, &err), FW_EAGAIN);
	ck_assert(strstr(err.text, "orders"));
	entries_are("");
	rules.matcher.reload = rules_reload;
	OK(fw_store_push(st, &o, 1, &err));
	matches_are(A, "1 of 1");
	end();
}
END_TEST

/* Orders of a release that had no version of them. */
START_TEST(orders_without_a_version_get_one)
{
	struct fw_orders_version v, again;

	begin(_i);
	OK(fw_store_orders_version(st, &v, &err));
	ck_assert(memcmp(&v, &(struct fw_orders_version){.part = {0}}, sizeof(v)) == 0);
	if (drv_is_sql(_i)) {
		struct sql *s = sql_of(store_of(st));

		order_put(st, "c", false);
		OK(sql_exec(s, "DELETE FROM meta WHERE name = 'orders'", SQL_NONE, &err));
		OK(fw_store_orders_version(st, &v, &err));
		ck_assert_int_gt(v.part[0], 0);
		OK(fw_store_orders_version(st, &again, &err));
		ck_assert(memcmp(&v, &again, sizeof(v)) == 0);
	}
	end();
}
END_TEST

/* ---- visits ---------------------------------------------------------------------------------- */

static struct fw_outcome visit(struct fw_feed *f, struct fw_entry_row *e, size_t n)
{
	struct fw_outcome o = drv_outcome(store_of(st), feed, f, NOW);

	o.entries = e;
	o.entry_n = n;
	return o;
}

START_TEST(polls_match)
{
	struct fw_entry_row e[3] = {entry(1, 1, "a", ""), entry(2, 1, "d", ""), entry(3, 1, "tb", "")};
	struct store_lease *l;
	struct fw_outcome o;
	struct fw_feed f;

	begin(_i);
	l = drv_join(store_of(st), "w", LONG_MS);
	o = visit(&f, e + 1, 1);
	DONE(drv_commit(store_of(st), l->id, &o, 1));
	ck_assert_uint_eq(o.visit.new_n, 0);
	ck_assert_int_eq(drv_find(store_of(st), feed)->last_new_ms, 0);
	o = visit(&f, e, 3);
	DONE(drv_commit(store_of(st), l->id, &o, 1));
	ck_assert_uint_eq(o.visit.new_n, 2);
	DONE(drv_commit(store_of(st), l->id, &o, 1)); /* again: its response was lost */
	e[0] = entry(1, 2, "ab", "");
	o = visit(&f, e, 3);
	DONE(drv_commit(store_of(st), l->id, &o, 1));
	ck_assert(o.visit.new_n == 0 && o.visit.changed_n == 1);
	ck_assert_int_eq(drv_visits(store_of(st), feed), 3);
	entries_are("ab tb" TAGGED);
	matches_are(A, "1 of 1, 3 changed of 1");
	matches_are(B, "2 of 2, 3 changed of 1");
	drv_leave(store_of(st), l);
	end();
}
END_TEST

START_TEST(a_push_that_is_repeated_matches_once)
{
	struct fw_entry_row e[2] = {entry(1, 1, "ab", ""), entry(2, 1, "d", "")};
	struct fw_outcome o;
	struct fw_feed f;

	begin(_i);
	o = drv_push(feed, &f, e, 2);
	for (int i = 0; i < 3; i++)
		OK(fw_store_push(st, &o, 1, &err));
	o = drv_push(feed, &f, e + 1, 1); /* all are dropped: it is a visit too, once */
	for (int i = 0; i < 3; i++)
		OK(fw_store_push(st, &o, 1, &err));
	matches_are(A, "1 of 1");
	ck_assert_int_eq(drv_visits(store_of(st), feed), 2);
	end();
}
END_TEST

/* ---- others at the same time ----------------------------------------------------------------- */

static int another_pushes(void)
{
	struct fw_store *other = store_open(url, 0);

	push_to(other, feed, 1, 1, "seen by another");
	fw_store_close(other);
	return 0;
}

/* As the server reports a deadlock. */
static int transaction_is_lost(void)
{
	((struct sql *)store_of(st))->race = SQL_RACE_LOCKS;
	return FW_EAGAIN;
}

/*
 * A commit starts over while it asks the matcher: Redis finds at its end that another client
 * changed its keys, SQL loses a race for locks. What the matcher said before does not count.
 */
START_TEST(a_commit_that_starts_over)
{
	struct fw_entry_row e[3] = {entry(1, 1, "bt", ""), entry(2, 1, "ab", ""), entry(3, 1, "d", "")};
	struct fw_outcome o;
	struct fw_feed f;

	begin(_i);
	o = drv_push(feed, &f, e, 3);
	rules.call = 2;
	rules.meanwhile = drv_is_sql(_i) ? transaction_is_lost : another_pushes;
	OK(fw_store_push(st, &o, 1, &err));
	ck_assert_int_eq(rules.calls, 5);
	if (drv_is_sql(_i)) {
		ck_assert_uint_eq(o.visit.new_n, 2);
		entries_are("bt" TAGGED " ab");
		matches_are(B, "1 of 1, 2 of 2");
	} else { /* the first entry is the other client's, with another text */
		ck_assert(o.visit.new_n == 1 && o.visit.changed_n == 0);
		entries_are("seen by another ab");
		ck_assert(list(A).n == 1 && list(B).n == 1);
	}
	end();
}
END_TEST

#define WRITERS 4
#define ROUNDS 40
#define FEEDS 3
#define KEYS 12

static int64_t feeds[FEEDS];

/* Pushes over its own connection, until each is stored. */
static void *writer(void *ctx)
{
	int me = (int)(intptr_t)ctx;
	struct fw_store *own = store_open(url, 0);
	struct fw_entry_row e[KEYS];
	struct fw_outcome o[FEEDS];
	struct fw_feed f[FEEDS];
	struct rules mine;
	struct fw_err why;
	char title[KEYS][20];

	rules_begin(&mine, own);
	for (int round = 0; round < ROUNDS; round++) {
		int rc, tries = 0;

		for (int k = 0; k < KEYS; k++) {
			int key = (me * 5 + k + round) % (2 * KEYS);

			ck_assert(fw_snprintf(title[k], sizeof(title[k]), "%s%d", key % 3 ? "a" : "d", round));
			e[k] = entry(key, round * WRITERS + me, title[k], "");
		}
		for (int i = 0; i < FEEDS; i++) {
			o[i] = (struct fw_outcome){.feed_id = feeds[i],
				.feed = &f[i],
				.visit = {.at_ms = NOW + (round * WRITERS + me) * FEEDS + i,
					.kind = FW_VISIT_PUSHED,
					.slot = -1},
				.entries = e,
				.entry_n = KEYS};
		}
		while ((rc = fw_store_push(own, o, FEEDS, &why)) == FW_EAGAIN && ++tries < 1000)
			usleep(1000);
		ck_assert_msg(rc == 0, "%s", why.text);
	}
	fw_store_close(own);
	return NULL;
}

struct expected {
	size_t n;
};

static int expected_add(void *ctx, const struct fw_change *c)
{
	((struct expected *)ctx)->n += c->kind != FW_CHANGE_GONE;
	return 0;
}

/* Each change, of several clients that disturb each other, has exactly one match. */
START_TEST(clients_at_the_same_time)
{
	struct expected x = {0};
	pthread_t thread[WRITERS];

	begin(_i);
	if (under_test[_i].shared) {
		for (int i = 0; i < FEEDS; i++)
			feeds[i] = subscribe(st,
				(const char *[]){"https://f.example/", "https://g.example/", "https://h.example/"}[i],
				NOW);
		for (int i = 0; i < WRITERS; i++)
			ck_assert(pthread_create(&thread[i], NULL, writer, (void *)(intptr_t)i) == 0);
		for (int i = 0; i < WRITERS; i++)
			ck_assert(pthread_join(thread[i], NULL) == 0);
		OK(fw_store_change_list(st, &(struct fw_change_query){0}, expected_add, &x, &err));
		ck_assert_uint_eq(list(A).n, x.n);
		ck_assert_uint_ge(x.n, FEEDS * 2 * KEYS * 2 / 3);
		ck_assert_int_eq(entry_count(st, 0), FEEDS * 2 * KEYS * 2 / 3);
	}
	end();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("matching");
	TCase *t = tcase_create("every driver");
	const TTest *const every[] = {new_and_changed_entries_match, a_dropped_entry_stays_away,
		an_entry_is_stored_with_its_tags, outcomes_of_one_feed_in_one_push, many_at_once,
		a_failing_matcher_fails_the_push, copies_merges_and_removals_do_not_match, polls_match,
		a_push_that_is_repeated_matches_once, a_commit_that_starts_over, clients_at_the_same_time,
		an_order_counts_from_its_answer_on, what_changes_no_order_or_entry_reloads_nothing,
		a_commit_with_other_orders_is_refused, an_order_that_is_added_inside_a_commit,
		orders_that_keep_changing, orders_without_a_version_get_one};

	stores_begin();
	tcase_set_timeout(t, 120);
	for (size_t i = 0; i < FW_N(every); i++)
		tcase_add_loop_test(t, every[i], 0, under_test_n);
	suite_add_tcase(s, t);
	return run_suite(s);
}
