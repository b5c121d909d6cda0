/* SPDX-License-Identifier: ISC */
/*
 * Entries, on each driver (src/store/driver.h): stored once, listed in each order, found by their
 * words.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "drv.h"
#include "base/clock.h"
#include "store/sql/sql.h"

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

#define STORE(st) struct store *st = drv_fresh(_i)

static int64_t feed_new(struct store *st, const char *url)
{
	struct fw_feed f = {.url = fw_str(url), .due_at_ms = NOW, .user_title = FW_STR("Title")};
	struct store_feed_new made = {0};

	OK(st->driver->load(st, &(struct store_load){.rows = {.feed = &f, .feed_n = 1}, .made = &made}, &err));
	return made.id;
}

static struct fw_outcome push(int64_t feed_id, const struct fw_entry_row *e, size_t n)
{
	static const struct fw_feed none;
	static int64_t at_ms = NOW;

	return (struct fw_outcome){.feed_id = feed_id,
		.feed = &none,
		.entries = e,
		.entry_n = n,
		.visit = {.feed_id = feed_id, .kind = FW_VISIT_PUSHED, .at_ms = at_ms++}};
}

static void put(
	struct store *st, int64_t feed_id, const struct fw_entry_row *e, size_t n, uint32_t new_n, uint32_t changed_n)
{
	struct fw_outcome o = push(feed_id, e, n);

	OK(st->driver->commit(st, &(struct store_commit){.outcome = &o, .n = 1}, &err));
	ck_assert_int_eq(o.rc, 0);
	ck_assert_msg(o.visit.new_n == new_n && o.visit.changed_n == changed_n, "%u new, %u changed, not %u and %u",
		o.visit.new_n, o.visit.changed_n, new_n, changed_n);
}

/* ---- what a list returns --------------------------------------------------------------------- */

struct seen {
	struct fw_entry_row row[400];
	int n, stop_at;
};

static int see(void *ctx, const struct fw_entry_row *e)
{
	struct seen *s = ctx;
	struct fw_entry_row *r = &s->row[s->n++];

	ck_assert_int_le(s->n, 400);
	*r = *e;
	r->guid = fw_arena_str(&A, e->guid);
	r->url = fw_arena_str(&A, e->url);
	r->title = fw_arena_str(&A, e->title);
	r->author = fw_arena_str(&A, e->author);
	r->summary = fw_arena_str(&A, e->summary);
	r->content = fw_arena_str(&A, e->content);
	r->content_base = fw_arena_str(&A, e->content_base);
	r->extra = fw_arena_str(&A, e->extra);
	r->feed_title = fw_arena_str(&A, e->feed_title);
	r->feed_url = fw_arena_str(&A, e->feed_url);
	return s->n == s->stop_at ? 7 : 0;
}

static struct seen list(struct store *st, struct fw_entry_query q)
{
	struct seen s = {.n = 0};

	OK(fw_store_entry_list((struct fw_store *)st, &q, see, &s, &err));
	return s;
}

static int found(struct store *st, const char *words)
{
	return list(st, (struct fw_entry_query){.search = fw_str(words)}).n;
}

/* The titles of the listed entries, one letter each. */
static const char *letters(struct store *st, struct fw_entry_query q)
{
	struct seen s = list(st, q);
	struct fw_buf b = FW_BUF_INIT(0);
	const char *text;

	for (int i = 0; i < s.n; i++)
		fw_buf_addstr(&b, s.row[i].title);
	text = fw_arena_printf(&A, "%.*s", FW_STR_ARG(fw_buf_str(&b)));
	fw_buf_finish(&b);
	return text;
}

START_TEST(stored_once)
{
	STORE(st);
	int64_t f = feed_new(st, "https://a.example/"), g = feed_new(st, "https://b.example/"), last;
	struct fw_entry_row e[] = {
		entry(1, 1, "a", "one"), entry(2, 1, "b", "two"), entry(1, 2, "c", "again"), entry(3, 1, "d", "three")};
	struct seen s;

	put(st, f, e, 4, 3, 0); /* of two entries with one key the first counts */
	put(st, f, e, 4, 0, 0);
	put(st, g, e, 2, 2, 0); /* keys of each feed are independent */
	put(st, f, NULL, 0, 0, 0);
	s = list(st, (struct fw_entry_query){.oldest_first = true, .feed_id = f, .content = true, .key = true});
	ck_assert_int_eq(s.n, 3);
	for (int i = 0; i < 3; i++) {
		const struct fw_entry_row *want = &e[i == 2 ? 3 : i];

		ck_assert(fw_str_eq(s.row[i].title, want->title) && fw_str_eq(s.row[i].content, want->content));
		ck_assert(memcmp(s.row[i].key, want->key, 16) == 0 && s.row[i].hash == want->hash);
		ck_assert(s.row[i].revision == 1 && s.row[i].seen_ms == s.row[i].changed_ms && s.row[i].seen_ms > NOW);
		ck_assert(s.row[i].id > (i ? s.row[i - 1].id : 0) && s.row[i].feed_id == f);
		ck_assert(fw_str_eq(s.row[i].feed_title, FW_STR("Title")) &&
			fw_str_eq(s.row[i].feed_url, FW_STR("https://a.example/")));
	}
	last = s.row[2].id;
	e[1].hash = 77;
	e[1].title = FW_STR("B");
	e[1].content = FW_STR("two, and more");
	put(st, f, e, 4, 0, 1);
	put(st, f, e, 4, 0, 0);
	s = list(st, (struct fw_entry_query){.oldest_first = true, .feed_id = f, .content = true, .key = true});
	ck_assert(s.n == 3 && s.row[1].revision == 2 && s.row[1].hash == 77 && s.row[1].changed_ms >= s.row[1].seen_ms);
	ck_assert(fw_str_eq(s.row[1].title, FW_STR("B")) && fw_str_eq(s.row[1].content, FW_STR("two, and more")) &&
		s.row[2].id == last);
	ck_assert(s.row[0].revision == 1 && fw_str_eq(s.row[0].title, FW_STR("a")));
	drv_end(st);
}
END_TEST

/* Each member is read back as it was stored; an absent one stays absent. */
START_TEST(every_member)
{
	STORE(st);
	int64_t f = feed_new(st, "https://a.example/");
	struct fw_entry_row e[2] = {entry(1, 1, "t", "c"),
		{.key = {9}, .hash = UINT64_MAX, .published_ms = FW_NO_DATE, .updated_ms = FW_NO_DATE}};
	struct seen s;

	e[0].guid = FW_STR("g");
	e[0].url = FW_STR("https://a.example/1");
	e[0].author = FW_STR("Ann");
	e[0].summary = FW_STR("s");
	e[0].content_base = FW_STR("https://a.example/base");
	e[0].content_type = FW_TEXT_HTML;
	e[0].extra = FW_STR("{\"tags\":[\"x\"]}");
	e[0].published_ms = 1000;
	e[0].updated_ms = 2000;
	put(st, f, e, 2, 2, 0);
	s = list(st, (struct fw_entry_query){.oldest_first = true, .content = true, .key = true});
	ck_assert_int_eq(s.n, 2);
	ck_assert(fw_str_eq(s.row[0].guid, e[0].guid) && fw_str_eq(s.row[0].url, e[0].url) &&
		fw_str_eq(s.row[0].author, e[0].author));
	ck_assert(fw_str_eq(s.row[0].summary, e[0].summary) && fw_str_eq(s.row[0].content_base, e[0].content_base) &&
		s.row[0].content_type == FW_TEXT_HTML);
	ck_assert(s.row[0].extra.p && s.row[0].published_ms == 1000 && s.row[0].updated_ms == 2000);
	ck_assert(!s.row[1].guid.p && !s.row[1].title.p && !s.row[1].content.p && !s.row[1].extra.p &&
		s.row[1].hash == UINT64_MAX);
	ck_assert(s.row[1].published_ms == FW_NO_DATE && s.row[1].updated_ms == FW_NO_DATE);
	s = list(st, (struct fw_entry_query){.oldest_first = true});
	ck_assert(!s.row[0].content.p && !s.row[0].content_base.p && s.row[0].hash == 0 &&
		fw_str_eq(s.row[0].summary, e[0].summary));
	for (int i = 0; i < 2; i++) { /* changed to absent, and back */
		struct fw_entry_row now = i ? e[0] : e[1];

		memcpy(now.key, e[0].key, sizeof(now.key));
		now.hash = 100 + (uint64_t)i;
		put(st, f, &now, 1, 0, 1);
		s = list(st, (struct fw_entry_query){.oldest_first = true, .content = true});
		ck_assert((s.row[0].guid.p != NULL) == (i == 1) && (s.row[0].content_base.p != NULL) == (i == 1));
		ck_assert_int_eq(s.row[0].revision, 2 + (uint32_t)i);
	}
	drv_end(st);
}
END_TEST

/*
 * Several feeds in one commit: one of them twice, one removed, and one whose new URL is refused
 * while the rest is written.
 */
START_TEST(many_feeds)
{
	STORE(st);
	int64_t f[60], n = 0;
	struct fw_entry_row e[60][12];
	struct fw_outcome o[60];
	char url[60];

	for (int i = 0; i < 60; i++) {
		(void)fw_snprintf(url, sizeof(url), "https://host-%d.example/", i);
		f[i] = feed_new(st, url);
		for (int k = 0; k < 12; k++)
			e[i][k] = entry(k, 1, "t", "c");
		o[i] = push(f[i], e[i], 12);
	}
	OK(st->driver->feed_drop(st, f[7], 0, &err));
	o[9].feed_id = f[8]; /* the same entries, but the first has changed */
	e[9][0].hash = 2;
	OK(st->driver->commit(st, &(struct store_commit){.outcome = o, .n = 60}, &err));
	for (int i = 0; i < 60; i++) {
		ck_assert_int_eq(o[i].rc, i == 7 ? FW_ENOTFOUND : 0);
		if (i != 7 && i != 8 && i != 9)
			ck_assert(o[i].visit.new_n == 12 && o[i].visit.changed_n == 0);
		n += o[i].visit.new_n;
	}
	ck_assert(n == 58 * 12 && o[8].visit.new_n + o[9].visit.new_n == 12 &&
		o[8].visit.changed_n + o[9].visit.changed_n == 1);
	for (int i = 0; i < 60; i += 2) { /* half of the feeds are unchanged, half have one new entry and one changed */
		o[i].entry_n = 11;
		e[i][5].hash = 3;
		memset(e[i][6].key, 'x', sizeof(e[i][6].key));
		o[i].visit.at_ms += 1000;
	}
	OK(st->driver->commit(st, &(struct store_commit){.outcome = o, .n = 60}, &err));
	for (int i = 0; i < 60; i++) {
		if (i != 7 && i != 8 && i != 9)
			ck_assert(o[i].visit.new_n == (i % 2 == 0) && o[i].visit.changed_n == (i % 2 == 0));
	}
	drv_end(st);
}
END_TEST

/* Letters a to h. By id: a b c d e f g h; newest first: g h e f c d a b; feed f has a, c, e, g. */
static void eight(struct store *st, int64_t *f, int64_t *g, int64_t id[8])
{
	static const char *const title[8] = {"a", "b", "c", "d", "e", "f", "g", "h"};
	struct seen s;

	*f = feed_new(st, "https://a.example/");
	*g = feed_new(st, "https://b.example/");
	for (int i = 0; i < 8; i++) {
		struct fw_entry_row e = entry(i, 1, title[i], i < 4 ? "early word" : "late word");

		e.published_ms = 1000 + 1000 * (i ^ 1);
		put(st, i % 2 ? *g : *f, &e, 1, 1, 0);
	}
	s = list(st, (struct fw_entry_query){.oldest_first = true});
	ck_assert_int_eq(s.n, 8);
	for (int i = 0; i < 8; i++)
		id[i] = s.row[i].id;
}

START_TEST(listed_any_way)
{
	STORE(st);
	int64_t f, g, id[8], since;
	struct seen s;

	eight(st, &f, &g, id);
	for (int search = 0; search < 2; search++) { /* with and without a search */
		const struct {
			struct fw_entry_query q;
			const char *want;
		} ask[] = {
			{{.oldest_first = true}, "abcdefgh"},
			{{.limit = 0}, "ghefcdab"},
			{{.limit = 3}, "ghe"},
			{{.oldest_first = true, .limit = 3}, "abc"},
			{{.feed_id = f}, "geca"},
			{{.feed_id = g}, "hfdb"},
			{{.feed_id = f, .oldest_first = true}, "aceg"},
			{{.feed_id = g, .oldest_first = true, .limit = 2}, "bd"},
			{{.after_id = id[3], .oldest_first = true}, "efgh"},
			{{.after_id = id[3]}, "ghef"},
			{{.before_id = id[3], .oldest_first = true}, "abc"},
			{{.before_id = id[3]}, "cab"},
			{{.after_id = id[1], .before_id = id[6], .oldest_first = true}, "cdef"},
			{{.after_id = id[1], .before_id = id[6]}, "efcd"},
			{{.after_id = id[1], .before_id = id[6], .feed_id = g}, "fd"},
			{{.after_id = id[1], .before_id = id[6], .feed_id = g, .oldest_first = true}, "df"},
			{{.behind_id = id[4], .behind_date_ms = 6000}, "fcdab"},
			{{.behind_id = id[2], .behind_date_ms = 4000, .limit = 2}, "da"},
			{{.behind_id = id[2], .behind_date_ms = 4000, .feed_id = f}, "a"},
			{{.before_id = id[4] + 1, .after_id = id[4] - 1}, "e"},
			{{.before_id = id[4] + 1, .after_id = id[4] - 1, .oldest_first = true}, "e"},
			{{.before_id = id[4] + 1, .after_id = id[4] - 1, .feed_id = f}, "e"},
			{{.before_id = id[4] + 1, .after_id = id[4] - 1, .feed_id = g}, ""},
			{{.after_id = id[7]}, ""},
			{{.feed_id = 999}, ""},
			{{.since_ms = 1}, "ghefcdab"},
			{{.since_ms = 1, .oldest_first = true}, "abcdefgh"},
			{{.since_ms = INT64_MAX / 2}, ""},
			{{.since_ms = 1, .feed_id = f, .limit = 3}, "gec"},
		};

		for (size_t i = 0; i < FW_N(ask); i++) {
			struct fw_entry_query q = ask[i].q;

			if (search)
				q.search = FW_STR("word");
			ck_assert_msg(strcmp(letters(st, q), ask[i].want) == 0, "query %zu (search %d): %s, not %s", i,
				search, letters(st, q), ask[i].want);
		}
	}
	ck_assert_str_eq(letters(st, (struct fw_entry_query){.search = FW_STR("early"), .feed_id = f}), "ca");
	s = list(st, (struct fw_entry_query){.oldest_first = true});
	since = s.row[4].seen_ms;
	for (int i = 0; i < 8; i++) /* stored at or after this time */
		ck_assert((s.row[i].seen_ms >= since) ==
			(strchr(letters(st, (struct fw_entry_query){.since_ms = since}), "abcdefgh"[i]) != NULL));
	s = (struct seen){.stop_at = 3};
	/* the code that ends the list is returned */
	ck_assert_int_eq(
		fw_store_entry_list((struct fw_store *)st, &(struct fw_entry_query){.limit = 0}, see, &s, &err), 7);
	ck_assert_int_eq(s.n, 3);
	drv_end(st);
}
END_TEST

struct count {
	int64_t n, last_id, last_ms;
	bool by_date, content;
};

static int count_one(void *ctx, const struct fw_entry_row *e)
{
	struct count *c = ctx;
	int64_t date_ms = fw_store_entry_date(e, e->seen_ms);

	if (c->n && c->by_date)
		ck_assert(date_ms < c->last_ms || (date_ms == c->last_ms && e->id < c->last_id));
	else if (c->n)
		ck_assert(e->id > c->last_id);
	ck_assert((e->content.p != NULL) == c->content);
	c->last_id = e->id;
	c->last_ms = date_ms;
	c->n++;
	return 0;
}

static int64_t unindexed(struct store *st)
{
	struct fw_store_stats s = {.unindexed_n = -1};

	OK(st->driver->stats(st, &s, &err));
	return s.unindexed_n;
}

static int count_add(void *ctx, int64_t feed_id, int64_t n)
{
	int64_t *of = ctx;

	ck_assert(feed_id > 0 && feed_id < 4 && n > 0);
	of[feed_id] += n;
	return 0;
}

static int count_stop(void *ctx, int64_t feed_id, int64_t n)
{
	(void)ctx;
	(void)feed_id;
	(void)n;
	return 7;
}

START_TEST(counted)
{
	char name[40];
	struct fw_store *front;
	struct fw_entry_row e[3];
	int64_t of[4] = {0}, a, b, now_ms;

	ck_assert(fw_snprintf(name, sizeof(name), "counted%d", (int)getpid()));
	OK(fw_store_open(
		&(struct fw_store_config){.url = scratch_url(_i, name), .flags = FW_STORE_CREATE}, &front, &err));
	OK(fw_store_entry_counts(front, 0, count_add, of, &err));
	a = subscribe(front, "https://a.example/", NOW);
	b = subscribe(front, "https://b.example/", NOW);
	ck_assert(a > 0 && a < 4 && b > 0 && b < 4);
	for (int i = 0; i < 3; i++)
		e[i] = entry(i, 1, "title", "x");
	for (int i = 0; i < 2; i++) {
		struct fw_outcome o = push(i ? b : a, e, i ? 1 : 3);

		OK(fw_store_push(front, &o, 1, &err));
	}
	OK(fw_store_entry_counts(front, 0, count_add, of, &err));
	ck_assert(of[a] == 3 && of[b] == 1);
	OK(fw_store_clock(front, &now_ms, &err));
	OK(fw_store_entry_counts(front, now_ms - FW_HOUR_MS, count_add, of, &err));
	ck_assert(of[a] == 6 && of[b] == 2);
	OK(fw_store_entry_counts(front, now_ms + FW_HOUR_MS, count_add, of, &err));
	ck_assert(of[a] == 6 && of[b] == 2);
	ck_assert_int_eq(fw_store_entry_counts(front, 0, count_stop, NULL, &err), 7);
	fw_store_close(front);
}
END_TEST

/*
 * More entries than the longest page has (20,000 on SQL), in each order, also by words. A rare
 * author is looked for in short pages: eight on SQL.
 */
START_TEST(long_lists)
{
	enum { N = 21100 };
	STORE(st);
	struct fw_entry_row *e = calloc(N, sizeof(*e));
	struct fw_feed feed = {.id = 5, .url = FW_STR("https://a.example/"), .due_at_ms = NOW};
	int64_t missing = -1;

	for (int i = 0; i < N; i++) {
		e[i] = entry(i, 1, "t", "word");
		e[i].id = 2 * i + 1;
		e[i].feed_id = 5;
		e[i].seen_ms = e[i].changed_ms = NOW + i;
		e[i].revision = 1;
		e[i].published_ms = NOW - i / 3 % 1000;
		e[i].author = i % 7000 == 6999 ? FW_STR("Ann") : FW_STR_NONE;
	}
	OK(st->driver->load(
		st, &(struct store_load){.rows = {.feed = &feed, .feed_n = 1, .entry = e, .entry_n = N}}, &err));
	/* again: nothing changes */
	OK(st->driver->load(
		st, &(struct store_load){.rows = {.feed = &feed, .feed_n = 1, .entry = e, .entry_n = N}}, &err));
	ck_assert_int_eq(found(st, "nothing"), 0);
	/* more than one search indexes by itself; Redis searches without an index */
	ck_assert((unindexed(st) > 0) == drv_is_sql(_i));
	OK(fw_store_entry_list((struct fw_store *)st,
		&(struct fw_entry_query){.search = FW_STR("nothing"), .unindexed_n = &missing}, see, NULL, &err));
	ck_assert_int_eq(missing, unindexed(st));
	drv_index(st);
	OK(fw_store_entry_list((struct fw_store *)st,
		&(struct fw_entry_query){.search = FW_STR("nothing"), .unindexed_n = &missing}, see, NULL, &err));
	ck_assert_int_eq(missing, 0);
	ck_assert_int_eq(unindexed(st), 0);
	for (int i = 0; i < 18; i++) {
		struct fw_entry_query q = {.oldest_first = !(i & 1),
			.feed_id = i & 2 ? 5 : 0,
			.search = i >= 16 ? FW_STR("author:ann") :
				i & 4     ? FW_STR("word") :
					    FW_STR_NONE,
			.content = i & 8,
			.key = i == 8,
			.limit = i >= 16 ? 3 :
				i == 3   ? 20001 :
					   0,
			.since_ms = i == 1 ? NOW + 1000 : 0};
		struct count c = {.by_date = i & 1, .content = i & 8};

		OK(fw_store_entry_list((struct fw_store *)st, &q, count_one, &c, &err));
		ck_assert_int_eq(c.n, i >= 16 ? 3 : i == 3 ? 20001 : i == 1 ? N - 1000 : N);
	}
	free(e);
	drv_end(st);
}
END_TEST

/* ---- search ---------------------------------------------------------------------------------- */

START_TEST(searched)
{
	static const struct {
		const char *words;
		int hits;
	} ask[] = {
		{"comet", 1},
		{"long", 2},
		{"long rain", 1},
		{"rain comet", 0},
		{"com", 0},
		{"com*", 1},
		{"\"was long\"", 1},
		{"\"long was\"", 0},
		{u8"Äpfel", 1},
		{"apfel", 1},
		{"nothing OR comet", 2},
		{"title:comet -rain", 1},
		{"long -rain", 1},
		{"", 3},
		{"hidden", 0},
		{"secret", 0},
		{u8"東京", 1},
		{u8"京東", 0},
		{"summary", 1},
	};
	STORE(st);
	int64_t f = feed_new(st, "https://a.example/");
	struct fw_entry_row e[] = {
		entry(1, 1, "A comet", "<p>the tail was <b>long</b></p><script>hidden</script>"),
		entry(2, 1, u8"Äpfel", "long rain<!-- secret -->"),
		entry(3, 1, u8"東京都", "nothing"),
	};

	e[2].summary = FW_STR("A summary");
	for (int later = 0; later < 2; later++) {
		put(st, f, e, 3, later ? 0 : 3, 0);
		for (size_t i = 0; i < FW_N(ask); i++)
			ck_assert_msg(found(st, ask[i].words) == ask[i].hits, "%s: %d, not %d", ask[i].words,
				found(st, ask[i].words), ask[i].hits);
		drv_index(st);
	}
	for (int i = 0; i < 3; i++) { /* a change removes exactly the words that were indexed */
		e[i].hash = 2;
		e[i].title = e[i].content = FW_STR("other");
		e[i].summary = FW_STR_NONE;
	}
	put(st, f, e, 3, 0, 3);
	for (size_t i = 0; i < FW_N(ask); i++)
		ck_assert_int_eq(found(st, ask[i].words), ask[i].hits == 3 ? 3 : 0);
	ck_assert_int_eq(found(st, "other"), 3);
	OK(st->driver->feed_drop(st, f, 0, &err));
	ck_assert_int_eq(found(st, "other"), 0);
	drv_end(st);
}
END_TEST

/* Stores all entries again with this text. */
static void say_nothing(struct store *st, int64_t f, struct fw_entry_row *e, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		e[i].hash++;
		e[i].title = e[i].content = FW_STR("nothing");
	}
	put(st, f, e, n, 0, (uint32_t)n);
}

START_TEST(searched_in_any_script)
{
	static const struct {
		const char *words;
		int hits;
	} ask[] = {
		/* composed, without accents, decomposed */
		{u8"Été", 1},
		{"ete", 1},
		{"ETE", 1},
		{u8"e\u0301te\u0301", 1},
		{u8"МИР", 1},
		{u8"κόσμος", 1},
		{"viet", 1},
		{"nam", 0},
		{u8"東京", 2}, /* also within a longer run, and after a Latin word */
		{u8"京東", 0},
		{u8"東*", 2},
		{u8"\"東京都\"", 1},
		{u8"すし", 1},
		{u8"iPhone東京", 1},
		{"dont", 0},
		{"don't", 1},
		{u8"café", 1},
		{"cafe", 1},
		{"nbsp", 0},
		{"amp", 0},
		{"8217", 0},
		{"comment", 0},
		{u8"straße", 1},
		{"AT&T", 1},
		{"a\xcc", 0},
	};
	struct fw_entry_row e[] = {
		entry(1, 1, u8"Été", u8"<p>мир Κόσμος</p>"),
		entry(2, 1, u8"東京都のすし", u8"Việt"),
		entry(3, 1, "AT&T",
			u8"iPhone東京 <!-- comment > --> don&#x2019;t&nbsp;caf&eacute; &amp; Stra&szlig;e &#99999999; "
			u8"&"),
	};
	STORE(st);
	int64_t f = feed_new(st, "https://a.example/");

	put(st, f, e, 3, 3, 0);
	drv_index(st);
	for (size_t i = 0; i < FW_N(ask); i++)
		ck_assert_msg(found(st, ask[i].words) == ask[i].hits, "%s: %d, not %d", ask[i].words,
			found(st, ask[i].words), ask[i].hits);
	say_nothing(st, f, e, 3); /* a change removes exactly the words that were indexed */
	for (size_t i = 0; i < FW_N(ask); i++)
		ck_assert_int_eq(found(st, ask[i].words), 0);
	drv_end(st);
}
END_TEST

/*
 * Each line holds forms of the same word to a reader. Each form finds entries with any other form
 * of its line, and no others.
 */
START_TEST(letters_folded)
{
	static const char *const same[][4] = {
		{u8"résumé", u8"RÉSUMÉ", u8"re\u0301sume\u0301", "resume"},
		{u8"Straße", "STRASSE", u8"STRAẞE", u8"ſtraße"},
		{u8"İzmir", "Izmir", "izmir", u8"i\u0307zmir"},
		{u8"ΟΔΟΣ", u8"οδός", u8"οδοσ", u8"οδο\u0301ς"},
		{u8"Ｗｉｄｅ１", "wide1", "WIDE1", u8"ｗｉＤＥ１"},
		{u8"ﬁsh", "fish", "FISH", u8"ﬁSH"},
		{u8"Ångström", u8"A\u030angstro\u0308m", "angstrom", "ANGSTROM"},
		{u8"Ёж", u8"ёж", u8"Еж", u8"е\u0308ж"},
		{u8"ガス", u8"カ\u3099ス", u8"ｶﾞｽ", u8"ｶ\uff9eｽ"},
		{u8"カス", u8"ｶｽ", u8"カス", u8"カｽ"},
		{u8"कीमत", u8"कीमत", u8"कीमत", u8"कीमत"},
		{u8"कमत", u8"कमत", u8"कमत", u8"कमत"},
		{u8"한글", u8"한글", u8"한글", u8"한글"},
		{u8"co\u00adoperate", "cooperate", "Cooperate", u8"coöperate"},
		{u8"مُحَمَّد", u8"محمد", u8"محـمد", u8"ﻣﺤﻤﺪ"},
	};
	struct fw_entry_row e[FW_N(same)];
	STORE(st);
	int64_t f = feed_new(st, "https://a.example/");

	for (size_t form = 0; form < 4; form++) {
		for (size_t i = 0; i < FW_N(same); i++)
			e[i] = entry((int)i, (int)form + 1, same[i][form], "<p>text</p>");
		put(st, f, e, FW_N(same), form ? 0 : FW_N(same), 0 + (form ? FW_N(same) : 0));
		drv_index(st);
		for (size_t i = 0; i < FW_N(same); i++) {
			for (size_t k = 0; k < 4; k++) {
				struct seen s = list(st, (struct fw_entry_query){.search = fw_str(same[i][k])});

				ck_assert_msg(s.n == 1 && fw_str_eq(s.row[0].title, fw_str(same[i][form])),
					"%s finds %d entries, not %s alone", same[i][k], s.n, same[i][form]);
			}
		}
	}
	drv_end(st);
}
END_TEST

/*
 * Text that consists only of unfinished starts. The test's time limit is far above the linear time,
 * and far below its square.
 */
START_TEST(indexed_in_linear_time)
{
	static const char *const part[] = {"<script>", "<style ", "<", "<!--", "<a ", "</script", "&", "&#x", u8"東"};
	STORE(st);
	int64_t f = feed_new(st, "https://a.example/");

	for (size_t i = 0; i < FW_N(part); i++) {
		struct fw_buf b = FW_BUF_INIT(0);
		struct fw_entry_row e = entry((int)i, 1, "t", "");

		while (b.len < 1000000)
			fw_buf_adds(&b, part[i]);
		e.content = fw_buf_str(&b);
		put(st, f, &e, 1, 1, 0);
		fw_buf_finish(&b);
	}
	drv_index(st);
	ck_assert_int_eq(unindexed(st), 0);
	drv_end(st);
}
END_TEST

static int keep_bytes(void *ctx, const struct fw_entry_row *e)
{
	struct fw_entry_row *to = ctx;

	to->title = fw_arena_str(&A, e->title);
	to->summary = fw_arena_str(&A, e->summary);
	to->extra = fw_arena_str(&A, e->extra);
	to->content = fw_arena_str(&A, e->content);
	return 0;
}

/*
 * Characters beyond the basic plane and quotes are read back unchanged. Bytes that a server refuses
 * (NUL, invalid UTF-8) do not harm the entries around them.
 */
START_TEST(any_bytes)
{
	STORE(st);
	struct fw_entry_row e = entry(1, 1, "\xf0\x9f\x98\x80 '\"\\\n\r\x1a%_", ""), got = {.id = 0};
	int64_t f = feed_new(st, "https://a.example/");

	e.content = FW_STR("a\0b\0\\");
	e.summary = FW_STR("x\xff\xc3(y\xed\xa0\x80");
	e.extra = FW_STR("{\"b\":\"\\u0000\",  \"a\":1.0}"); /* JSON is read back as it was written, too */
	put(st, f, &e, 1, 1, 0);
	OK(fw_store_entry_list(
		(struct fw_store *)st, &(struct fw_entry_query){.content = true}, keep_bytes, &got, &err));
	ck_assert(fw_str_eq(got.title, e.title));
	ck_assert(fw_str_eq(got.extra, e.extra));
	ck_assert(fw_str_starts(got.content, FW_STR("a")));
	ck_assert(fw_str_starts(got.summary, FW_STR("x")) && fw_str_find(got.summary, FW_STR("(y")));
	drv_end(st);
}
END_TEST

/*
 * Each transaction leaves an index segment. Idle maintenance merges them, and all entries are still
 * found.
 */
START_TEST(segments_merged)
{
	STORE(st);
	int64_t f = feed_new(st, "https://a.example/");

	for (int i = 0; i < 300; i++) {
		struct fw_entry_row e = entry(i, 1, "t", "number");

		put(st, f, &e, 1, 1, 0);
		ck_assert_int_eq(found(st, "number"), i + 1);
	}
	drv_index(st);
	ck_assert_int_eq(found(st, "number"), 300);
	drv_end(st);
}
END_TEST

/* ---- retention, copies, merges --------------------------------------------------------------- */

static int64_t prune(struct store *st, int64_t before_ms)
{
	struct fw_prune p = {.now_ms = NOW, .entries_before_ms = before_ms, .more = true};

	while (p.more) {
		p.more = false;
		OK(st->driver->prune(st, &p, &err));
	}
	return p.entry_n;
}

START_TEST(pruned)
{
	STORE(st);
	struct fw_feed feed = {.id = 5, .url = FW_STR("https://a.example/"), .due_at_ms = NOW};
	struct fw_entry_row e[100];
	int64_t past = NOW - 100 * FW_DAY_MS;

	for (int i = 0; i < 100; i++) {
		e[i] = entry(i, 1, "t", i < 30 ? "old" : "young");
		e[i].id = i + 1;
		e[i].feed_id = 5;
		e[i].seen_ms = i < 50 ? past : NOW;
		e[i].changed_ms = i >= 30 && i < 50 ? NOW : e[i].seen_ms; /* 20 old entries have changed since */
		e[i].revision = 1;
	}
	OK(st->driver->load(
		st, &(struct store_load){.rows = {.feed = &feed, .feed_n = 1, .entry = e, .entry_n = 100}}, &err));
	drv_index(st);
	ck_assert_int_eq(found(st, "old"), 30);
	ck_assert_int_eq(prune(st, past), 0);
	ck_assert_int_eq(prune(st, NOW - FW_DAY_MS), 30);
	ck_assert_int_eq(prune(st, NOW - FW_DAY_MS), 0);
	ck_assert_int_eq(found(st, "old"), 0);
	ck_assert_int_eq(found(st, "young"), 70);
	put(st, 5, e, 100, 0, 0); /* a pruned entry is not stored again, */
	e[3].hash = 2;
	e[60].hash = 2;
	put(st, 5, e, 100, 0, 1); /* not even when it has changed */
	ck_assert_int_eq(list(st, (struct fw_entry_query){.limit = 0}).n, 70);
	drv_end(st);
}
END_TEST

START_TEST(loaded)
{
	STORE(st);
	struct fw_feed feed[2] = {{.id = 5, .url = FW_STR("https://a.example/"), .due_at_ms = NOW},
		{.id = 6, .url = FW_STR("https://b.example/"), .due_at_ms = NOW}};
	struct fw_entry_row e[] = {entry(1, 1, "a", "word"), entry(2, 1, "b", "word"), entry(1, 1, "c", "word"),
		entry(9, 1, "d", "word"), entry(4, 1, "e", "word")};
	struct fw_entry_key key[2] = {{.feed_id = 6, .hash = 1}, {.feed_id = 5, .hash = 1, .entry_id = 99}};
	const int64_t id[5] = {10, 20, 30, 20, 7}, of[5] = {5, 5, 5, 5, 6};
	struct fw_entry_row gone = entry(8, 1, "g", "word"),
			    more[2] = {entry(5, 1, "f", "word"), entry(1, 1, "h", "word")};
	struct seen s;

	for (int i = 0; i < 5; i++) { /* the third entry has the key of the first, the fourth the id of the second */
		e[i].id = id[i];
		e[i].feed_id = of[i];
		e[i].seen_ms = NOW;
		e[i].changed_ms = NOW + 5;
		e[i].revision = 3;
	}
	memcpy(key[0].key, gone.key, 16);
	memcpy(key[1].key, e[0].key, 16);
	for (int i = 0; i < 2; i++)
		OK(st->driver->load(st,
			&(struct store_load){
				.rows = {.feed = feed, .feed_n = 2, .entry = e, .entry_n = 5, .key = key, .key_n = 2}},
			&err));
	ck_assert_str_eq(letters(st, (struct fw_entry_query){.oldest_first = true}), "eab");
	s = list(st, (struct fw_entry_query){.oldest_first = true});
	ck_assert(s.row[1].id == 10 && s.row[1].revision == 3 && s.row[1].changed_ms == NOW + 5 &&
		s.row[1].seen_ms == NOW);
	put(st, 6, &gone, 1, 0, 0);
	put(st, 6, more, 1, 1, 0);
	s = list(st, (struct fw_entry_query){.oldest_first = true});
	ck_assert(s.n == 4 && s.row[3].id > 20);
	drv_index(st);
	more[1].id = 8; /* an id below the index's position */
	more[1].feed_id = 6;
	more[1].seen_ms = more[1].changed_ms = NOW;
	more[1].revision = 1;
	OK(st->driver->load(st, &(struct store_load){.rows = {.entry = more + 1, .entry_n = 1}}, &err));
	ck_assert_int_eq(found(st, "word"), 5);
	drv_end(st);
}
END_TEST

/*
 * An entry that is loaded again with its old id keeps its words: the index drops the entry that had
 * this id before.
 */
START_TEST(dropped_and_loaded_again)
{
	struct fw_feed feed = {.id = 7, .url = FW_STR("https://b.example/"), .due_at_ms = NOW};
	struct fw_entry_row e = entry(1, 1, "common beta", "");
	struct store_load rows = {.rows = {.feed = &feed, .feed_n = 1, .entry = &e, .entry_n = 1}};
	STORE(st);

	e.id = 1;
	e.feed_id = feed.id;
	e.seen_ms = e.changed_ms = NOW;
	e.revision = 1;
	for (int later = 0; later < 2; later++) { /* with and without maintenance in between */
		OK(st->driver->load(st, &rows, &err));
		drv_index(st);
		ck_assert_int_eq(found(st, "beta"), 1);
		OK(st->driver->feed_drop(st, feed.id, 0, &err));
		ck_assert_int_eq(found(st, "beta"), 0);
		if (later)
			drv_index(st);
		OK(st->driver->load(st, &rows, &err));
		drv_index(st);
		ck_assert_int_eq(found(st, "beta"), 1);
		OK(st->driver->feed_drop(st, feed.id, 0, &err));
	}
	drv_end(st);
}
END_TEST

START_TEST(merged)
{
	STORE(st);
	int64_t f = feed_new(st, "https://a.example/"), g = feed_new(st, "https://b.example/"), h, id;
	struct fw_entry_row a[] = {
		entry(1, 1, "a", "word"), entry(2, 1, "b", "word"), entry(3, 1, "c", "word"), entry(4, 1, "d", "word")};
	struct fw_entry_row b[] = {entry(1, 1, "A", "word"), entry(7, 1, "B", "word")};
	struct seen s;

	a[1].guid = b[1].guid = FW_STR("the same"); /* the first exists by its key, the second by its guid */
	a[2].guid = FW_STR("another");
	a[3].guid = FW_STR("");
	put(st, f, a, 4, 4, 0);
	put(st, g, b, 2, 2, 0);
	drv_index(st);
	s = list(st, (struct fw_entry_query){.feed_id = f, .oldest_first = true});
	id = s.row[2].id;
	OK(st->driver->feed_drop(st, f, g, &err));
	ck_assert_str_eq(letters(st, (struct fw_entry_query){.oldest_first = true}), "cdAB");
	s = list(st, (struct fw_entry_query){.feed_id = g, .oldest_first = true, .key = true});
	ck_assert(
		s.n == 4 && s.row[0].id == id && memcmp(s.row[0].key, a[2].key, 16) == 0 && s.row[0].hash == a[2].hash);
	ck_assert_int_eq(found(st, "word"), 4);
	put(st, g, a + 2, 2, 0, 0);
	h = feed_new(st, "https://c.example/"); /* a feed that has never brought an entry */
	OK(st->driver->feed_drop(st, g, h, &err));
	put(st, h, a + 2, 2, 0, 0);
	drv_end(st);
}
END_TEST

/* ---- concurrent processes -------------------------------------------------------------------- */

static int made_n(int i, const char *url, int64_t f, int rounds)
{
	struct store *st = drv_open(i, url, 0);
	int n = 0;

	for (int k = 0; k < rounds;) {
		struct fw_entry_row e[3] = {
			entry(k, 1, "t", "c"), entry(k + 1, 1, "t", "c"), entry(k + 2, 1, "t", "c")};
		struct fw_outcome o = push(f, e, 3);
		int rc;

		o.visit.at_ms += getpid() * INT64_C(100000);
		rc = st->driver->commit(st, &(struct store_commit){.outcome = &o, .n = 1}, &err);
		if (rc == FW_EAGAIN)
			continue;
		OK(rc);
		n += (int)o.visit.new_n;
		k++;
	}
	st->driver->close(st);
	return n;
}

struct pusher {
	int i;
	const char *url;
	int64_t f;
	int n;
};

static void *pusher(void *ctx)
{
	struct pusher *p = ctx;

	p->n = made_n(p->i, p->url, p->f, 200);
	return NULL;
}

/*
 * Several processes push the same entries: each is new for one of them. A reader by id never sees
 * an id below one that it has seen.
 */
START_TEST(pushed_at_once)
{
	struct store *st;
	struct pusher p[3];
	pthread_t t[3];
	int64_t f, last = 0;
	const char *url;
	int n = 0;

	if (!under_test[_i].shared)
		return;
	url = scratch_url(_i, "pushers");
	st = drv_open(_i, url, FW_STORE_CREATE);
	f = feed_new(st, "https://a.example/");
	for (int i = 0; i < 3; i++) {
		p[i] = (struct pusher){_i, url, f, 0};
		ck_assert_int_eq(pthread_create(&t[i], NULL, pusher, &p[i]), 0);
	}
	for (int i = 0; i < 50; i++) {
		struct seen s = list(st, (struct fw_entry_query){.oldest_first = true, .after_id = last});

		n += s.n;
		last = s.n ? s.row[s.n - 1].id : last;
		usleep(1000);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	n += list(st, (struct fw_entry_query){.oldest_first = true, .after_id = last}).n;
	ck_assert_int_eq(n, 202); /* no entry was hidden */
	ck_assert_int_eq(p[0].n + p[1].n + p[2].n, 202);
	drv_end(st);
}
END_TEST

/* ---- waiting; defects in the data ------------------------------------------------------------ */

START_TEST(waited)
{
	struct store *st, *other;
	struct fw_entry_row e = entry(1, 1, "t", "c");
	int fd[2];
	bool changed;
	int64_t f, start;
	const char *url;

	url = scratch_url(_i, "waiters");
	st = drv_open(_i, url, FW_STORE_CREATE);
	start = fw_mono_ms();
	OK(st->driver->wait(st, -1, 120, &changed, &err));
	ck_assert(!changed && fw_mono_ms() - start >= 119);
	ck_assert_int_eq(pipe(fd), 0);
	ck_assert_int_eq(write(fd[1], "x", 1), 1);
	start = fw_mono_ms();
	OK(st->driver->wait(st, fd[0], 10000, &changed, &err));
	ck_assert(!changed && fw_mono_ms() - start < 5000);
	close(fd[0]);
	close(fd[1]);
	if (under_test[_i].shared) {
		other = drv_open(_i, url, 0);
		f = feed_new(other, "https://a.example/");
		start = fw_mono_ms();
		OK(st->driver->wait(st, -1, 10000, &changed, &err));
		ck_assert(changed && fw_mono_ms() - start < 5000);
		put(other, f, &e, 1, 1, 0); /* it does not touch the schedule */
		OK(st->driver->wait(st, -1, 100, &changed, &err));
		ck_assert(!changed);
		other->driver->close(other);
	}
	drv_end(st);
}
END_TEST

static void count_finding(void *ctx, const char *name, int level, const char *found_text, const char *remedy)
{
	ck_assert(*name && *found_text && (level == 0 || *remedy));
	*(int *)ctx += level == 2;
}

START_TEST(faults_found)
{
	static const char *const fault[] = {
		"DELETE FROM schedule",
		"DELETE FROM feeds",
		"DELETE FROM entry_keys",
		"DELETE FROM entries",
		"UPDATE entry_keys SET entry_id = 77",
		"DELETE FROM row_counts",
		"UPDATE schedule SET host_id = host_id + 1",
		"UPDATE schedule SET position = position + 1",
		"UPDATE shards SET worker = 99 WHERE shard = 3",
		"DELETE FROM shards WHERE shard = 3",
		"UPDATE meta SET value = 0 WHERE name = 'entry_id'",
		("INSERT INTO hosts (shard, host_id, next_ok_ms, cooldown_until_ms, learned_delay_ms) "
		 "VALUES (3, 4, 0, 0, 0)"),
	};
	struct store *st;
	struct fw_entry_row e = entry(1, 1, "t", "c");
	int n = 0;

	if (!drv_is_sql(_i))
		return;
	st = drv_fresh(_i);
	put(st, feed_new(st, "https://a.example/"), &e, 1, 1, 0);
	OK(st->driver->inspect(st, false, count_finding, &n, &err));
	/* the server reports it: MySQL may lose the last second, others can become corrupt */
	ck_assert_int_eq(n, under_test[_i].server && !server_durable && strcmp(under_test[_i].name, "mysql") != 0);
	st->driver->close(st);
	for (size_t i = 0; i < FW_N(fault); i++) {
		st = drv_fresh(_i);
		put(st, feed_new(st, "https://a.example/"), &e, 1, 1, 0);
		n = 0;
		OK(sql_of(st)->dialect->script(sql_of(st), fault[i], &err));
		OK(st->driver->inspect(st, true, count_finding, &n, &err));
		ck_assert_msg(n > 0, "%s: nothing was found", fault[i]);
		st->driver->close(st);
	}
}
END_TEST

/*
 * A store opened for reading: a search uses what is indexed, and reports how many entries are not.
 */
START_TEST(read_only)
{
	struct store *st, *reader;
	struct fw_entry_row e = entry(1, 1, "t", "word"), late = entry(2, 1, "t", "word");
	struct fw_entry_query q = {.search = FW_STR("word")};
	int64_t f, missing = 0;
	const char *url;

	if (!under_test[_i].shared)
		return;
	url = scratch_url(_i, "reader");
	st = drv_open(_i, url, FW_STORE_CREATE);
	f = feed_new(st, "https://a.example/");
	put(st, f, &e, 1, 1, 0);
	drv_index(st);
	put(st, f, &late, 1, 1, 0);
	reader = drv_open(_i, url, FW_STORE_READ);
	q.unindexed_n = &missing;
	ck_assert_int_eq(list(reader, q).n, drv_is_sql(_i) ? 1 : 2);
	ck_assert_int_eq(missing, drv_is_sql(_i));
	drv_end(reader);
	drv_end(st);
}
END_TEST

int main(void)
{
	TCase *t = cases("every driver", setup, teardown, 120);
	const TTest *const every[] = {stored_once, every_member, many_feeds, listed_any_way, counted, long_lists,
		searched, searched_in_any_script, letters_folded, indexed_in_linear_time, any_bytes, segments_merged,
		pruned, loaded, dropped_and_loaded_again, merged, pushed_at_once, waited, faults_found, read_only};

	stores_begin();
	cases_add(t, every, FW_N(every), under_test_n);
	return cases_run("store entries", t);
}
