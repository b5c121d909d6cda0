/* SPDX-License-Identifier: ISC */
/*
 * The log of changes and the revisions (include/feedwheel/store.h), on each driver. The strongest
 * cases let a reader build a copy of all entries from the log alone, and compare it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common.h"
#include "base/clock.h"

#define ENTRIES 4000 /* the highest number in a test is below it */

static struct fw_err err;
static struct fw_arena A;
static struct fw_store *st;
static char url[300];

/* A store that keeps `most` versions of up to `bytes`. */
static void store_begin(int i, uint32_t most, size_t bytes)
{
	static int n;
	char name[60];
	struct fw_store_config c = {
		.url = url, .flags = FW_STORE_CREATE, .revisions_max = most, .revision_max_bytes = bytes};

	fw_arena_init(&A, 0);
	ck_assert(fw_snprintf(name, sizeof(name), "changes%d_%d", (int)getpid(), n++));
	ck_assert(fw_snprintf(url, sizeof(url), "%s", scratch_url(i, name)));
	OK(fw_store_open(&c, &st, &err));
}

static void store_end(void)
{
	check_clean(st);
	fw_store_close(st);
	fw_arena_finish(&A);
}

/* Push an entry of this key and hash, with a title that names the hash. */
static void push_to(struct fw_store *to, int64_t feed_id, int key, int hash, const char *content)
{
	static _Atomic int64_t at_ms = NOW;
	char title[40];
	struct fw_entry_row e;
	struct fw_feed f = {.id = feed_id};
	struct fw_outcome o = {.feed_id = feed_id,
		.feed = &f,
		.entries = &e,
		.entry_n = 1,
		.visit = {.at_ms = ++at_ms, .kind = FW_VISIT_PUSHED, .slot = -1}};
	struct fw_err why = {0};

	ck_assert(fw_snprintf(title, sizeof(title), "v%d", hash));
	e = entry(key, hash, title, content);
	ck_assert_msg(fw_store_push(to, &o, 1, &why) == 0 && !o.rc, "%s", why.text);
}

static void push(int64_t feed_id, int key, int hash)
{
	push_to(st, feed_id, key, hash, "<p>number</p>");
}

/* ---- readers --------------------------------------------------------------------------------- */

struct seen {
	char text[4000]; /* "new 1 v1, changed 2 of 1 v2, gone 3 of 1" */
	int64_t last_id;
	size_t n;
};

static int see(void *ctx, const struct fw_change *c)
{
	struct seen *s = ctx;
	size_t at = strlen(s->text);

	ck_assert_int_gt(c->id, s->last_id);
	ck_assert_int_eq(c->kind == FW_CHANGE_GONE, !c->entry);
	ck_assert(c->at_ms > 0 && c->feed_id > 0);
	if (c->entry)
		ck_assert(c->entry->id == c->entry_id && c->entry->feed_url.len);
	s->last_id = c->id;
	s->n++;
	ck_assert(fw_snprintf(s->text + at, sizeof(s->text) - at, "%s%s %lld%s%.*s", at ? ", " : "",
		fw_change_kind_name(c->kind), (long long)c->entry_id, c->entry ? " " : "",
		FW_STR_ARG(c->entry ? c->entry->title : FW_STR_NONE)));
	return 0;
}

static struct seen read_from(struct fw_change_query *q)
{
	struct seen s = {.last_id = q->after_id};

	OK(fw_store_change_list(st, q, see, &s, &err));
	ck_assert_int_ge(q->next_id, s.last_id);
	return s;
}

static void reads(struct fw_change_query q, const char *text)
{
	struct seen s = read_from(&q);

	ck_assert_str_eq(s.text, text);
}

struct version {
	char text[400];
	int64_t entry_id;
};

static int version_add(void *ctx, const struct fw_entry_row *e, bool cut)
{
	struct version *v = ctx;
	size_t at = strlen(v->text);

	ck_assert_int_eq(e->id, v->entry_id);
	ck_assert(e->seen_ms > 0 && e->changed_ms >= e->seen_ms);
	ck_assert(fw_snprintf(v->text + at, sizeof(v->text) - at, "%s%u %.*s %.*s%s", at ? ", " : "", e->revision,
		FW_STR_ARG(e->title), FW_STR_ARG(fw_str_sub(e->content, 0, 12)), cut ? "cut" : ""));
	return 0;
}

static void versions_are(int64_t entry_id, const char *text)
{
	struct version v = {.entry_id = entry_id};

	OK(fw_store_revision_list(st, entry_id, version_add, &v, &err));
	ck_assert_str_eq(v.text, text);
}

/* Retention: everything that is older than now. */
static int64_t prune_all(bool entries, bool changes)
{
	int64_t now_ms;
	struct fw_prune p = {0};

	OK(fw_store_clock(st, &now_ms, &err));
	p.now_ms = now_ms;
	p.entries_before_ms = entries ? now_ms + FW_HOUR_MS : 0;
	p.changes_before_ms = changes ? now_ms + FW_HOUR_MS : 0;
	do
		OK(fw_store_prune(st, &p, &err));
	while (p.more);
	return entries ? p.entry_n : p.change_n;
}

/* ---- the log --------------------------------------------------------------------------------- */

START_TEST(told_in_order)
{
	struct fw_change_query q = {0};
	struct seen s;
	int64_t feed, other;

	store_begin(_i, 5, 0);
	feed = subscribe(st, "https://a.example/", NOW);
	other = subscribe(st, "https://b.example/", NOW);
	reads(q, "");
	push(feed, 1, 1);
	push(other, 2, 1);
	reads(q, "new 1 v1, new 2 v1");
	push(feed, 1, 2);
	push(feed, 1, 2); /* the same: no change */
	push(feed, 3, 1);
	/* a new entry is shown as it is now; a later change of it has a number of its own */
	reads(q, "new 1 v2, new 2 v1, changed 1 v2, new 4 v1");
	s = read_from(&q);
	ck_assert(q.next_id == 4 && q.head_id == 4 && s.n == 4);
	reads((struct fw_change_query){.after_id = 2}, "changed 1 v2, new 4 v1");
	reads((struct fw_change_query){.after_id = 4}, "");
	reads((struct fw_change_query){.after_id = 99}, "");
	reads((struct fw_change_query){.feed_id = other}, "new 2 v1");
	reads((struct fw_change_query){.feed_id = feed, .limit = 2}, "new 1 v2, changed 1 v2");
	OK(fw_store_unsubscribe(st, other, &err));
	reads((struct fw_change_query){.after_id = 4}, "gone 2");
	reads((struct fw_change_query){0}, "new 1 v2, changed 1 v2, new 4 v1, gone 2");
	ck_assert_int_eq(prune_all(true, false), 2);
	q = (struct fw_change_query){.after_id = 4};
	s = read_from(&q);
	ck_assert(s.n == 3 && strstr(s.text, "gone 1") && strstr(s.text, "gone 4"));
	ck_assert_int_eq(prune_all(true, false), 0);
	push(feed, 1, 3); /* its key is known, so it stays away: no change */
	q = (struct fw_change_query){.after_id = s.last_id};
	s = read_from(&q);
	ck_assert_int_eq(s.n, 0);
	IS(fw_store_change_list(st, &(struct fw_change_query){.after_id = -1}, see, &s, &err), FW_EINVAL);
	store_end();
}
END_TEST

static int stop(void *ctx, const struct fw_change *c)
{
	(void)ctx;
	return c->id == 2 ? 7 : 0;
}

static int content_is_read(void *ctx, const struct fw_change *c)
{
	size_t *n = ctx;

	*n += c->entry->content.len;
	return 0;
}

START_TEST(read_in_pages)
{
	struct fw_change_query q = {0};
	struct seen whole = {{0}, 0, 0}, part;
	int64_t feed;
	size_t bytes = 0;

	store_begin(_i, 0, 0);
	feed = subscribe(st, "https://a.example/", NOW);
	for (int i = 0; i < 25; i++)
		push(feed, i % 7, i);
	whole = read_from(&q);
	ck_assert_int_eq(whole.n, 25);
	for (size_t limit = 1; limit < 9; limit++) {
		q = (struct fw_change_query){.limit = limit};
		part = (struct seen){.last_id = 0};
		do {
			size_t n = part.n;

			q.after_id = q.next_id;
			OK(fw_store_change_list(st, &q, see, &part, &err));
			ck_assert_int_le(part.n - n, limit);
		} while (q.next_id < q.head_id);
		ck_assert_str_eq(part.text, whole.text);
	}
	q = (struct fw_change_query){0};
	ck_assert_int_eq(fw_store_change_list(st, &q, stop, NULL, &err), 7);
	ck_assert_int_eq(q.next_id, 2);
	OK(fw_store_change_list(st, &(struct fw_change_query){0}, content_is_read, &bytes, &err));
	ck_assert_int_eq(bytes, 0);
	OK(fw_store_change_list(st, &(struct fw_change_query){.content = true}, content_is_read, &bytes, &err));
	ck_assert_int_eq(bytes, 25 * strlen("<p>number</p>"));
	store_end();
}
END_TEST

START_TEST(of_feeds_and_folders)
{
	static const char *const FOLDER[] = {"News", "News/Science", "Newsletters", ""};
	struct fw_change_query q = {.folder = FW_STR("Nothing")};
	struct seen s;
	int64_t feed[4], some[2];

	store_begin(_i, 5, 0);
	for (int i = 0; i < 4; i++) {
		struct fw_feed f = {.folder = fw_str(FOLDER[i])};
		char at[60];

		ck_assert(fw_snprintf(at, sizeof(at), "https://h%d.example/", i));
		f.id = feed[i] = subscribe(st, at, NOW);
		OK(fw_store_feed_set(st, &f, FW_SET_FOLDER, &err));
		push(feed[i], i, 1); /* entry i + 1 */
	}
	for (int i = 0; i < 4; i++)
		push(feed[i], i, 2); /* 5 to 8 */
	some[0] = feed[3];
	some[1] = feed[1];
	reads((struct fw_change_query){.feed_ids = some, .feed_n = 2},
		"new 2 v2, new 4 v2, changed 2 v2, changed 4 v2");
	reads((struct fw_change_query){.folder = FW_STR("/News/")}, "new 1 v2, new 2 v2, changed 1 v2, changed 2 v2");
	reads((struct fw_change_query){.folder = FW_STR("News"), .feed_ids = some, .feed_n = 2},
		"new 2 v2, changed 2 v2");
	reads((struct fw_change_query){.folder = FW_STR("News"), .feed_id = feed[0]}, "new 1 v2, changed 1 v2");
	s = read_from(&q);
	ck_assert(!s.n && q.next_id == 8); /* it goes on after what it did not want */
	for (size_t limit = 1; limit < 4; limit++) {
		s = (struct seen){.last_id = 0};
		q = (struct fw_change_query){.feed_ids = some, .feed_n = 2, .limit = limit};
		do {
			q.after_id = q.next_id;
			OK(fw_store_change_list(st, &q, see, &s, &err));
		} while (q.next_id < q.head_id);
		ck_assert_str_eq(s.text, "new 2 v2, new 4 v2, changed 2 v2, changed 4 v2");
	}
	OK(fw_store_unsubscribe(st, feed[1], &err)); /* 9 */
	OK(fw_store_unsubscribe(st, feed[3], &err)); /* 10: which folder was it in? Nobody knows */
	reads((struct fw_change_query){.folder = FW_STR("News")}, "new 1 v2, changed 1 v2, gone 2, gone 4");
	reads((struct fw_change_query){.feed_ids = some, .feed_n = 2}, "gone 2, gone 4");
	store_end();
}
END_TEST

START_TEST(merged)
{
	struct fw_change_query q = {.after_id = 4};
	struct seen s;
	int64_t from, into;

	store_begin(_i, 5, 0);
	into = subscribe(st, "https://a.example/", NOW);
	from = subscribe(st, "https://b.example/", NOW);
	push(into, 1, 1); /* 1 */
	push(from, 1, 1); /* 2: into has its key */
	push(from, 2, 1); /* 3 */
	push(from, 2, 2); /* changed: 4 */
	OK(fw_store_feed_merge(st, from, into, &err));
	s = read_from(&q);
	ck_assert_msg(strcmp(s.text, "changed 3 v2, gone 2") == 0, "%s", s.text);
	versions_are(3, "1 v1 <p>number</p");
	ck_assert_int_eq(entry_count(st, into), 2);
	store_end();
}
END_TEST

/* ---- behind ---------------------------------------------------------------------------------- */

START_TEST(readers_that_are_behind)
{
	struct fw_change_query q = {.after_id = 1};
	struct seen s = {{0}, 0, 0};
	int64_t feed, head;

	store_begin(_i, 5, 0);
	feed = subscribe(st, "https://a.example/", NOW);
	push(feed, 1, 1);
	push(feed, 2, 1);
	push(feed, 1, 2); /* 3 */
	push(feed, 1, 3); /* 4 */
	push(feed, 3, 1); /* 5 */
	ck_assert_int_eq(prune_all(false, true), 2);
	IS(fw_store_change_list(st, &q, see, &s, &err), FW_EGONE);
	ck_assert_int_eq(q.first_id, 5);
	ck_assert(strstr(err.text, "the first change left is 5"));
	reads((struct fw_change_query){.after_id = 4}, "new 5 v1");
	/* a first read is never behind, and neither is one that goes on from a base */
	q = (struct fw_change_query){.limit = 1};
	s = read_from(&q);
	ck_assert_str_eq(s.text, "new 1 v3");
	head = q.head_id;
	ck_assert_int_eq(head, 5);
	reads((struct fw_change_query){.after_id = 1, .base_id = head}, "new 2 v1, new 5 v1");
	push(feed, 2, 2);
	ck_assert_int_eq(prune_all(false, true), 1);
	q = (struct fw_change_query){.after_id = 1, .base_id = head};
	IS(fw_store_change_list(st, &q, see, &s, &err), FW_EGONE);
	store_end();
}
END_TEST

START_TEST(loaded)
{
	struct fw_load rows = {.change_id = 1000};
	struct fw_change_query q = {.after_id = 900};
	struct seen s = {{0}, 0, 0};
	int64_t feed;

	store_begin(_i, 5, 0);
	feed = subscribe(st, "https://a.example/", NOW);
	push(feed, 1, 1);
	for (int i = 0; i < 2; i++)
		OK(fw_store_load(st, &rows, &err));
	push(feed, 2, 1);
	reads((struct fw_change_query){.after_id = 1000}, "new 1001 v1");
	IS(fw_store_change_list(st, &q, see, &s, &err), FW_EGONE);
	ck_assert_int_eq(q.first_id, 1001);
	store_end();
}
END_TEST

/* ---- revisions ------------------------------------------------------------------------------- */

START_TEST(versions_kept)
{
	char *large;
	int64_t feed;

	store_begin(_i, 2, 100);
	feed = subscribe(st, "https://a.example/", NOW);
	push(feed, 1, 1);
	versions_are(1, "");
	versions_are(77, "");
	push(feed, 1, 2);
	versions_are(1, "1 v1 <p>number</p");
	push(feed, 1, 3);
	push(feed, 1, 4);
	versions_are(1, "2 v2 <p>number</p, 3 v3 <p>number</p");
	large = fw_arena_alloc(&A, 200);
	memset(large, 'x', 199);
	large[199] = '\0';
	push_to(st, feed, 1, 5, large);
	push(feed, 1, 6);
	versions_are(1, "4 v4 <p>number</p, 5 v5 cut");
	push(feed, 2, 1);
	push(feed, 2, 2);
	ck_assert_int_eq(prune_all(true, false), 2);
	versions_are(1, "");
	store_end();
}
END_TEST

START_TEST(no_versions_kept)
{
	int64_t feed;

	store_begin(_i, 0, 0);
	feed = subscribe(st, "https://a.example/", NOW);
	push(feed, 1, 1);
	push(feed, 1, 2);
	versions_are(1, "");
	store_end();
}
END_TEST

/* ---- a reader's copy ------------------------------------------------------------------------- */

struct replica {
	int64_t feed[ENTRIES]; /* of the entry with this id; 0: none */
	char title[ENTRIES][12];
	int64_t last_id, n;
};

static int replica_apply(void *ctx, const struct fw_change *c)
{
	struct replica *r = ctx;

	ck_assert_int_gt(c->id, r->last_id);
	ck_assert_int_lt(c->id, ENTRIES);
	r->last_id = c->id;
	r->n++;
	r->feed[c->entry_id] = c->entry ? c->entry->feed_id : 0;
	if (c->entry)
		ck_assert(fw_str_copy(r->title[c->entry_id], sizeof(r->title[0]), c->entry->title));
	return 0;
}

/* One read, and nothing appears later below its end. */
static void replica_follow(struct fw_store *from, struct replica *r, size_t limit)
{
	struct fw_change_query q = {.after_id = r->last_id, .limit = limit};
	struct fw_err why = {0};

	ck_assert_msg(fw_store_change_list(from, &q, replica_apply, r, &why) == 0, "%s", why.text);
	r->last_id = q.next_id;
}

static int replica_compare(void *ctx, const struct fw_entry_row *e)
{
	struct replica *r = ctx;

	ck_assert_msg(r->feed[e->id] == e->feed_id && fw_str_eq(e->title, fw_str(r->title[e->id])),
		"entry %lld: %lld %s, not %lld %.*s", (long long)e->id, (long long)r->feed[e->id], r->title[e->id],
		(long long)e->feed_id, FW_STR_ARG(e->title));
	r->feed[e->id] = 0;
	return 0;
}

/* The copy is exact. It is empty afterwards. */
static void replica_check(struct replica *r)
{
	OK(fw_store_entry_list(st, &(struct fw_entry_query){.oldest_first = true}, replica_compare, r, &err));
	for (int i = 0; i < ENTRIES; i++)
		ck_assert_msg(!r->feed[i], "entry %d does not exist", i);
}

START_TEST(copied_by_a_reader) /* a random walk */
{
	struct replica *r = calloc(1, sizeof(*r)), *late = calloc(1, sizeof(*late));
	int64_t feed[6];
	uint32_t x = 12345 + (uint32_t)_i;
	int feed_n = 0, made = 0;

	store_begin(_i, 3, 0);
	ck_assert(r && late);
	for (int i = 0; i < 400; i++) {
		int pick, key;

		x = x * 1664525 + 1013904223;
		pick = (int)(x >> 16) % 100, key = (int)(x >> 8) % 20;
		while (feed_n < 4) {
			char at[60];

			ck_assert(fw_snprintf(at, sizeof(at), "https://h%d.example/", made++));
			feed[feed_n++] = subscribe(st, at, NOW);
		}
		if (pick < 90)
			push(feed[pick % feed_n], key, (int)(x >> 24) % 4 + 1);
		else if (pick < 92)
			OK(fw_store_unsubscribe(st, feed[--feed_n], &err));
		else if (pick < 94)
			OK(fw_store_feed_merge(st, feed[--feed_n], feed[0], &err));
		else if (pick < 95)
			prune_all(true, false);
		else
			replica_follow(st, r, (size_t)(x % 5));
	}
	replica_follow(st, r, 0);
	replica_check(r);
	replica_follow(st, late, 0);
	replica_check(late);
	free(r);
	free(late);
	store_end();
}
END_TEST

struct writer {
	pthread_t thread;
	int64_t feed_id;
	int i;
};

static void *writer_run(void *ctx)
{
	const struct writer *w = ctx;
	struct fw_store *own = store_open(url, 0);

	for (int i = 0; i < 60; i++)
		push_to(own, w->feed_id, i % 10, i + 1, "<p>number</p>");
	fw_store_close(own);
	return NULL;
}

START_TEST(followed_while_others_write)
{
	struct replica *r = calloc(1, sizeof(*r));
	struct writer w[4];

	ck_assert_ptr_nonnull(r);
	if (!under_test[_i].shared) {
		free(r);
		return;
	}
	store_begin(_i, 2, 0);
	for (int i = 0; i < 4; i++) {
		char at[60];

		ck_assert(fw_snprintf(at, sizeof(at), "https://h%d.example/", i));
		w[i] = (struct writer){.feed_id = subscribe(st, at, NOW), .i = i};
	}
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&w[i].thread, NULL, writer_run, &w[i]), 0);
	while (r->n < 4 * 60)
		replica_follow(st, r, 0);
	for (int i = 0; i < 4; i++)
		pthread_join(w[i].thread, NULL);
	replica_follow(st, r, 0);
	ck_assert_int_eq(r->n, 4 * 60); /* each change once */
	replica_check(r);
	free(r);
	store_end();
}
END_TEST

/* Push entries 100 and 101 of a feed with the hash, and retract two keys (0: none). */
static void retract(int64_t feed_id, int hash, int first, int second, uint32_t new_n, uint32_t changed_n)
{
	static int64_t at_ms = NOW - FW_DAY_MS;
	struct fw_entry_row e[2] = {entry(100, hash, "x", "x"), entry(101, hash, "y", "y")};
	struct fw_entry_key k[2] = {{0}};
	struct fw_feed f = {.id = feed_id};
	struct fw_outcome o = {.feed_id = feed_id,
		.feed = &f,
		.entries = e,
		.entry_n = hash ? 2 : 0,
		.retracted = k,
		.retracted_n = (size_t)(!!first + !!second),
		.visit = {.at_ms = ++at_ms, .kind = FW_VISIT_PUSHED, .slot = -1}};

	memcpy(k[0].key, &first, sizeof(first));
	memcpy(k[1].key, &second, sizeof(second));
	OK(fw_store_push(st, &o, 1, &err));
	ck_assert(!o.rc && o.visit.new_n == new_n && o.visit.changed_n == changed_n);
}

static int key_is_gone(void *ctx, const struct fw_entry_key *k)
{
	size_t *n = ctx;

	*n += !k->entry_id;
	return 0;
}

START_TEST(retracted)
{
	int64_t feed, other;
	size_t gone_n = 0;

	store_begin(_i, 5, 0);
	feed = subscribe(st, "https://a.example/", NOW);
	other = subscribe(st, "https://b.example/", NOW);
	retract(feed, 0, 1, 2, 0, 0); /* of a feed that never had an entry */
	push(feed, 1, 1);
	push(feed, 1, 2); /* 2: a change */
	push(other, 1, 1);
	push(feed, 2, 1);
	reads((struct fw_change_query){0}, "new 1 v2, changed 1 v2, new 3 v1, new 4 v1");
	versions_are(1, "1 v1 <p>number</p");
	/* beside new entries: their numbers come first */
	retract(feed, 1, 1, 77, 2, 0);
	reads((struct fw_change_query){.after_id = 2}, "new 3 v1, new 4 v1, new 5 x, new 6 y, gone 1");
	versions_are(1, "");
	ck_assert_int_eq(stats(st).entry_n, 4); /* the other feed has the same key */
	retract(feed, 1, 1, 77, 0, 0);
	push(feed, 1, 3);
	push(feed, 1, 2);
	ck_assert_int_eq(stats(st).entry_n, 4);
	/* beside entries that change */
	retract(feed, 2, 2, 1, 0, 2);
	reads((struct fw_change_query){.after_id = 7}, "changed 5 x, changed 6 y, gone 4");
	retract(other, 0, 1, 2, 0, 0);
	ck_assert_int_eq(stats(st).entry_n, 2);
	OK(fw_store_key_list(st, feed, other, key_is_gone, &gone_n, &err));
	ck_assert_uint_eq(gone_n, 3);
	ck_assert_int_eq(prune_all(true, false), 2);
	OK(fw_store_unsubscribe(st, feed, &err));
	ck_assert_int_eq(stats(st).entry_n, 0);
	store_end();
}
END_TEST

/* Outcomes of one feed in one commit count in their order. */
START_TEST(retracted_in_order)
{
	struct fw_entry_row e = entry(1, 1, "v1", "x");
	struct fw_entry_key k = {0};
	struct fw_feed f = {0};
	struct fw_outcome o[3];

	store_begin(_i, 5, 0);
	f.id = subscribe(st, "https://a.example/", NOW);
	memcpy(k.key, e.key, sizeof(k.key));
	for (int i = 0; i < 3; i++)
		o[i] = (struct fw_outcome){.feed_id = f.id,
			.feed = &f,
			.entries = &e,
			.entry_n = i != 1,
			.retracted = &k,
			.retracted_n = i == 1,
			.visit = {.at_ms = NOW + i, .kind = FW_VISIT_PUSHED, .slot = -1}};
	OK(fw_store_push(st, o, 3, &err));
	ck_assert(o[0].visit.new_n == 1 && o[2].visit.new_n == 0);
	reads((struct fw_change_query){0}, "gone 1");
	ck_assert_int_eq(stats(st).entry_n, 0);
	store_end();
}
END_TEST

int main(void)
{
	const TTest *every[] = {told_in_order, retracted, retracted_in_order, read_in_pages, of_feeds_and_folders,
		merged, readers_that_are_behind, loaded, versions_kept, no_versions_kept, copied_by_a_reader,
		followed_while_others_write};
	Suite *suite = suite_create("changes");
	TCase *c = tcase_create("changes");

	stores_begin();
	tcase_set_timeout(c, 120);
	for (size_t i = 0; i < FW_N(every); i++)
		tcase_add_loop_test(c, every[i], 0, under_test_n);
	suite_add_tcase(suite, c);
	return run_suite(suite);
}
