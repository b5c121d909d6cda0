/* SPDX-License-Identifier: ISC */
/*
 * Deliveries, on a store in memory: what is read, what is refused and where, and a store that fails
 * in the middle.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/str.h"
#include "feedwheel/deliver.h"
#include "store/driver.h"
#include "../../suite.h"

#define JSON(items) "{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"T\",\"items\":[" items "]}"
#define ONE "{\"id\":\"1\",\"content_text\":\"one\"}"
#define TWO "{\"id\":\"2\",\"content_text\":\"two\"}"
#define ATOM(inside) "<feed xmlns='http://www.w3.org/2005/Atom'><title>T</title>\n" inside "</feed>"
#define EMPTY_10 "{},{},{},{},{},{},{},{},{},{},"
#define EMPTY_100 EMPTY_10 EMPTY_10 EMPTY_10 EMPTY_10 EMPTY_10 EMPTY_10 EMPTY_10 EMPTY_10 EMPTY_10 EMPTY_10
#define LINES "application/x-ndjson"
#define OK(call) ck_assert_msg((call) == 0, "%s: %s", #call, err.text)

static struct fw_store *st;
static struct fw_config *config;
static struct store_driver driver; /* the store's slots; tests replace some */
static const struct store_driver *real;
static int fails[8], fail_n; /* the results of the next commits; 1: stored, but the response is lost */
static int records_fail;     /* the result of each read of records; 0: they are read */
static struct fw_err err;

static int commit(struct store *s, struct store_commit *batch, struct fw_err *e)
{
	int rc = fail_n ? fails[--fail_n] : 0;

	if (rc < 0)
		return fw_err_set(e, rc, "tampered with");
	if (rc > 0) {
		ck_assert_int_eq(real->commit(s, batch, e), 0);
		return fw_err_set(e, FW_EIO, "the connection broke");
	}
	return real->commit(s, batch, e);
}

static int record_list(
	struct store *s, const struct store_record_query *q, fw_record_cb *cb, void *ctx, struct fw_err *e)
{
	return records_fail ? fw_err_set(e, records_fail, "no records") : real->record_list(s, q, cb, ctx, e);
}

static void setup(void)
{
	struct fw_feed_new n = {.url = FW_STR("https://a.example/feed")};

	OK(fw_config_create(&config, &err));
	OK(fw_store_open(&(struct fw_store_config){.url = "memory:", .flags = FW_STORE_CREATE}, &st, &err));
	OK(fw_store_subscribe(st, &n, 1, &err));
	real = store_of(st)->driver;
	driver = *real;
	driver.commit = commit;
	driver.record_list = record_list;
	records_fail = 0;
	store_of(st)->driver = &driver;
	fail_n = 0;
}

static void teardown(void)
{
	fw_store_close(st);
	fw_config_destroy(config);
}

static int deliver(const char *body, const char *type, bool strict, struct fw_delivery_result *out)
{
	struct fw_delivery_input in = {
		.feed_id = 1, .body = fw_str(body), .content_type = fw_str(type), .strict = strict};

	return fw_deliver(st, config, &in, 0, out, &err);
}

static void counts(const char *body, const char *type, uint32_t new_n, uint32_t changed_n, size_t known_n)
{
	struct fw_delivery_result d;

	OK(deliver(body, type, true, &d));
	ck_assert_uint_eq(d.visit.new_n, new_n);
	ck_assert_uint_eq(d.visit.changed_n, changed_n);
	ck_assert_uint_eq(d.known_n, known_n);
}

#define TOMBS(inside) \
	"<feed xmlns='http://www.w3.org/2005/Atom' xmlns:at='http://purl.org/atompub/tombstones/1.0'>" inside "</feed>"
#define DELETED(ref, hour) "<at:deleted-entry ref='" ref "' when='2026-11-20T" hour ":00:00Z'/>"
#define DATED(id, hour) "<entry><id>" id "</id><title>t</title><updated>2026-11-20T" hour ":00:00Z</updated></entry>"

static int64_t stored(void)
{
	struct fw_store_stats s;

	OK(fw_store_stats(st, &s, &err));
	return s.entry_n;
}

START_TEST(retracted)
{
	struct fw_delivery_result d;

	counts(TOMBS(DATED("a", "10") DATED("b", "10") DATED("c", "10")), NULL, 3, 0, 0);
	counts(TOMBS(DELETED("a", "09") DELETED("unknown", "11")), NULL, 0, 0, 0);
	ck_assert_int_eq(stored(), 2); /* alone it counts, whatever its time */
	/* beside the entry the later one counts; of two tombstones the later */
	counts(TOMBS(DELETED("b", "09") DATED("b", "10")), NULL, 0, 0, 1);
	ck_assert_int_eq(stored(), 2);
	counts(TOMBS(DELETED("b", "10") DELETED("b", "08") DATED("b", "10") DATED("new", "10")), NULL, 1, 0, 1);
	ck_assert_int_eq(stored(), 2);
	/* it stays away, changed or not */
	counts(TOMBS(DATED("a", "10") DATED("b", "12")), NULL, 0, 0, 2);
	ck_assert_int_eq(stored(), 2);
	/* never stored: the document lists an entry that it takes back */
	counts(TOMBS(DATED("d", "10") DATED("d", "10") DELETED("d", "11")), NULL, 0, 0, 1);
	OK(deliver(TOMBS(DATED("d", "10") DATED("d", "10") DELETED("d", "11")), NULL, true, &d));
	ck_assert(d.entry_n == 2 && d.repeat_n == 1 && stored() == 2);
	/* the entry has no date: the tombstone counts; the tombstone has none: the entry */
	counts(TOMBS("<entry><id>e</id></entry><at:deleted-entry ref='f'/>" DELETED("e", "11") DATED("f", "01")), NULL,
		1, 0, 1);
	ck_assert_int_eq(stored(), 3);
	/* entries that share their id: all of them */
	counts(TOMBS(DATED("g", "10") "<entry><id>g</id><title>other</title></entry>"), NULL, 2, 0, 0);
	counts(TOMBS(DATED("g", "10") "<entry><id>g</id><title>other</title></entry>" DELETED("g", "11")), NULL, 0, 0,
		2);
	ck_assert_int_eq(stored(), 3);
	config->retract_entries = false;
	counts(TOMBS(DELETED("c", "11") DATED("h", "10") DELETED("h", "11")), NULL, 1, 0, 0);
	ck_assert_int_eq(stored(), 4);
}
END_TEST

static struct fw_feed feed_now(struct fw_arena *a)
{
	struct fw_feed f;

	OK(fw_store_feed_find(st, 1, FW_STR_NONE, a, &f, &err));
	return f;
}

#define UNDATED(id) "<entry><id>" id "</id><title>t</title></entry>"
#define PUBLISHED(id, day, updated)                                                                               \
	"<entry><id>" id "</id><title>t</title><published>2026-11-" day "T10:00:00Z</published><updated>" updated \
	"T10:00:00Z</updated></entry>"

static int guid_add(void *ctx, const struct fw_entry_row *row)
{
	fw_buf_addstr(ctx, row->guid);
	return 0;
}

/* Entries get their numbers in the order of publication, however the document lists them. */
START_TEST(numbers_follow_publication)
{
	static const struct {
		const char *doc, *order;
	} T[] = {
		{TOMBS(DATED("c", "12") DATED("b", "11") DATED("a", "10")), "abc"},
		{TOMBS(DATED("a", "10") DATED("b", "11") DATED("c", "12")), "abc"},
		{TOMBS(DATED("b", "11") DATED("c", "12") DATED("a", "10")), "abc"},
		/* without dates, and of equal dates, the last is the oldest */
		{TOMBS(UNDATED("c") UNDATED("b") UNDATED("a")), "abc"},
		{TOMBS(DATED("c", "10") DATED("b", "10") DATED("a", "10")), "abc"},
		/* unless the document lists the oldest first */
		{TOMBS(DATED("a", "10") DATED("b", "10") DATED("c", "11")), "abc"},
		/* one without a date stays beside its older neighbour */
		{TOMBS(DATED("d", "12") UNDATED("c") DATED("b", "11") UNDATED("a")), "abcd"},
		{TOMBS(DATED("a", "10") UNDATED("b") DATED("c", "11") UNDATED("d")), "abcd"},
		{TOMBS(DATED("a", "10") UNDATED("d") DATED("c", "12") DATED("b", "11")), "abcd"},
		/* an update does not publish again */
		{TOMBS(PUBLISHED("b", "19", "2026-11-19") PUBLISHED("a", "18", "2026-11-20")
				 PUBLISHED("c", "19", "2026-11-19")),
			"acb"},
	};

	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_buf got = FW_BUF_INIT(0);
		struct fw_delivery_result d;

		teardown();
		setup();
		OK(deliver(T[i].doc, NULL, true, &d));
		OK(fw_store_entry_list(st, &(struct fw_entry_query){.oldest_first = true}, guid_add, &got, &err));
		fw_buf_addc(&got, '\0');
		ck_assert_msg(strcmp(got.p, T[i].order) == 0, "%s: %s", T[i].doc, got.p);
		fw_buf_finish(&got);
	}
}
END_TEST

START_TEST(formats_are_one)
{
	struct fw_delivery_result d;

	counts(JSON(ONE "," TWO), NULL, 2, 0, 0);
	counts(ONE "\n\n" TWO "\r\n", LINES, 0, 0, 2);
	counts("{\"id\":\"1\",\"content_text\":\"other\"}", LINES "; charset=utf-8", 0, 1, 0);
	/* the same identity */
	counts(ATOM("<entry><id>1</id><title>x</title></entry>"), "application/atom+xml", 0, 1, 0);
	counts("<rss version='2.0'><channel><item><guid>3</guid><title>x</title></item></channel></rss>",
		"Application/RSS+xml", 1, 0, 0);
	OK(deliver(JSON(TWO "," TWO), NULL, true, &d));
	ck_assert_uint_eq(d.entry_n, 2);
	ck_assert_uint_eq(d.repeat_n, 1);
	ck_assert_uint_eq(d.known_n, 1);
	ck_assert_int_eq(d.visit.kind, FW_VISIT_PUSHED);
}
END_TEST

static const struct {
	const char *body, *type;
	int rc;
	const char *words;
} REFUSED[] = {
	{"", NULL, FW_EINVAL, "empty"},
	{" \n\t", LINES, FW_EINVAL, "empty"},
	{ONE "\n" ONE "}\n", LINES, FW_EINVAL, "line 2, column 32"},
	{ONE "\n\n 7", LINES, FW_EINVAL, "line 3: not a JSON object"},
	{ONE "\n{}", LINES, FW_EINVAL, "line 2: an empty item"},
	{JSON(ONE ",{\"id\":}"), NULL, FW_EINVAL, "broken JSON"},
	/* also behind more problems than a document lists */
	{JSON(EMPTY_100 ONE ",\n{\"id\":}," TWO), NULL, FW_EINVAL, "line 2, column 8: broken JSON"},
	{"{\"version\":\"https://jsonfeed.org/version/1.1\",\n\"items\":[" ONE ",", NULL, FW_EINVAL, "line 2, column"},
	{"<feed xmlns='http://www.w3.org/2005/Atom'><entry><id>1</id></entry>\n<entry><id>2", NULL, FW_EINVAL,
		"line 2, column 13: the document ends"},
	{"<feed xmlns='http://www.w3.org/2005/Atom'><entry><id>1</id></entry>", NULL, FW_EINVAL,
		"ends before its root"},
	{"<rss version='2.0'><channel><item><guid>1</guid></item></channel>", NULL, FW_EINVAL, "ends before its root"},
	{"<rss version='2.0'><channel><item><guid>1</guid></item></channel></rss", NULL, FW_EINVAL,
		"ends before its root"},
	{"<html><body>hello", NULL, FW_EFORMAT, "an HTML page"},
	{"hello", NULL, FW_EFORMAT, "plain text"},
	{"[]", NULL, FW_EFORMAT, "JSON that is not a feed"},
	{ONE, "text/plain", FW_EUNSUP, "text/plain: unsupported content type"},
	{ONE, "application/json5", FW_EUNSUP, "application/feed+json"},
};

START_TEST(refused)
{
	struct fw_store_stats s;
	struct fw_delivery_result d;

	ck_assert_msg(deliver(REFUSED[_i].body, REFUSED[_i].type, true, &d) == REFUSED[_i].rc, "%d: %s", REFUSED[_i].rc,
		err.text);
	ck_assert_msg(strstr(err.text, REFUSED[_i].words), "%s: %s", REFUSED[_i].words, err.text);
	OK(fw_store_stats(st, &s, &err));
	ck_assert_int_eq(s.entry_n + s.visit_n, 0);
}
END_TEST

/*
 * a harmless defect is accepted in strict mode too; and a hub's documents are read like fetched
 * ones
 */
START_TEST(put_right)
{
	struct fw_delivery_result d;

	counts(ATOM("<entry><id>1</id><title>a & b &nbsp; <b>c</title></entry>") "\n<!-- made by --> <!-- hand -->\n",
		NULL, 1, 0, 0);
	counts("<?xml version='1.0'?><a:feed xmlns:a='http://www.w3.org/2005/Atom'><a:entry><a:id>2"
	       "</a:id><x></a:entry></a:feed >",
		NULL, 1, 0, 0);
	OK(deliver("<feed xmlns='http://www.w3.org/2005/Atom'><entry><id>3</id></entry>", NULL, false, &d));
	ck_assert_uint_eq(d.visit.new_n, 1);
	OK(deliver(JSON("{\"id\":\"4\",}"), NULL, false, &d));
	ck_assert_uint_eq(d.visit.new_n, 1);
}
END_TEST

START_TEST(too_much)
{
	struct fw_delivery_result d;

	OK(fw_config_set(config, "max_entries", "2", "test", &err));
	counts(ONE "\n" TWO "\n", LINES, 2, 0, 0);
	ck_assert_int_eq(deliver(ONE "\n" TWO "\n{\"id\":\"3\"}\n", LINES, true, &d), FW_ELIMIT);
	ck_assert_ptr_nonnull(strstr(err.text, "more than max_entries = 2 entries"));
	OK(fw_config_set(config, "max_body_bytes", "1024", "test", &err));
	for (int i = 0; i < 2; i++) {
		char body[2000];

		memset(body, ' ', sizeof(body) - 1);
		memcpy(body, ONE, sizeof(ONE) - 1);
		body[sizeof(body) - 1] = '\0';
		ck_assert_int_eq(deliver(body, i ? LINES : NULL, true, &d), FW_ELIMIT);
		ck_assert_ptr_nonnull(strstr(err.text, "max_bytes"));
	}
}
END_TEST

START_TEST(feeds_that_accept_no_pushes)
{
	struct fw_delivery_input in = {.body = FW_STR(JSON(ONE)), .strict = true};
	static const struct {
		enum fw_feed_status status;
		const char *words;
	} T[] = {
		{FW_FEED_GONE, "is gone"},
		{FW_FEED_QUARANTINED, "is quarantined"},
	};
	struct fw_feed f = {.id = 1};
	struct fw_delivery_result d;

	for (int64_t id = -1; id < 9; id += 3 - (id == -1 ? 2 : 0)) {
		in.feed_id = id;
		if (id != 1)
			ck_assert_int_eq(fw_deliver(st, config, &in, 0, &d, &err), FW_ENOTFOUND);
	}
	for (size_t i = 0; i < FW_N(T); i++) {
		f.status = T[i].status;
		OK(fw_store_feed_set(st, &f, FW_SET_STATUS, &err));
		ck_assert_int_eq(deliver(JSON(ONE), NULL, true, &d), FW_EGONE);
		ck_assert_ptr_nonnull(strstr(err.text, T[i].words));
	}
	f.status = FW_FEED_ACTIVE;
	OK(fw_store_feed_set(st, &f, FW_SET_STATUS, &err));
	counts(JSON(ONE), NULL, 1, 0, 0);
}
END_TEST

START_TEST(paused_feed_accepts_pushes)
{
	struct fw_feed f = {.id = 1, .status = FW_FEED_PAUSED};
	struct fw_arena a;

	fw_arena_init(&a, 0);
	OK(fw_store_feed_set(st, &f, FW_SET_STATUS, &err));
	counts(JSON(ONE), NULL, 1, 0, 0);
	counts(JSON(ONE "," TWO), NULL, 1, 0, 1);
	ck_assert_int_eq(feed_now(&a).status, FW_FEED_PAUSED);
	fw_arena_finish(&a);
}
END_TEST

START_TEST(unknown_members_are_set_by_a_push)
{
	struct fw_arena a;
	struct fw_feed f;

	fw_arena_init(&a, 0);
	counts(ONE, LINES, 1, 0, 0);
	ck_assert_uint_eq(feed_now(&a).title.len, 0);
	counts("{\"version\":\"https://jsonfeed.org/version/1\",\"title\":\"first\",\"items\":[]}", NULL, 0, 0, 0);
	counts("{\"version\":\"https://jsonfeed.org/version/1\",\"title\":\"second\","
	       "\"home_page_url\":\"https://a.example/\",\"items\":[]}",
		NULL, 0, 0, 0);
	f = feed_now(&a);
	ck_assert(fw_str_eq(f.title, FW_STR("first")) && fw_str_eq(f.home_page_url, FW_STR("https://a.example/")));
	ck_assert_int_eq(f.last_visit_ms, 0);
	ck_assert_int_eq(f.last_kind, FW_VISIT_NONE);
	fw_arena_finish(&a);
}
END_TEST

/* The store fails in the middle: the buffered part is sent again, and nothing is stored twice. */
START_TEST(the_store_breaks)
{
	static const struct {
		int fail;
		uint32_t new_n;
		size_t known_n;
	} T[] = {
		{FW_EIO, 2, 0},               /* not stored: sent again unchanged */
		{FW_EAGAIN, 2, 0}, {1, 0, 2}, /* stored, but the response was lost */
	};
	struct fw_delivery_input in = {.feed_id = 1, .body = FW_STR(JSON(ONE "," TWO)), .strict = true};
	struct fw_delivery *d;
	struct fw_delivery_result got;
	struct fw_store_stats s;

	OK(fw_delivery_open(st, config, &in, &d, &err));
	fails[0] = T[_i].fail;
	fail_n = 1;
	ck_assert_int_eq(fw_delivery_store(d, st, &got, &err), T[_i].fail == 1 ? FW_EIO : T[_i].fail);
	OK(fw_delivery_store(d, st, &got, &err));
	ck_assert_uint_eq(got.visit.new_n, T[_i].new_n);
	ck_assert_uint_eq(got.known_n, T[_i].known_n);
	fw_delivery_close(d);
	OK(fw_store_stats(st, &s, &err));
	ck_assert_int_eq(s.entry_n, 2);
	ck_assert_int_eq(s.visit_n, 1);
}
END_TEST

/* A refusal stores nothing, temporary or final. */
START_TEST(given_up)
{
	struct fw_delivery_input in = {.feed_id = 1, .body = FW_STR(JSON(ONE)), .strict = true};
	struct fw_delivery *d;
	struct fw_delivery_result got;
	struct fw_store_stats s;

	OK(fw_delivery_open(st, config, &in, &d, &err));
	fails[0] = _i ? FW_EINVAL : FW_EAGAIN;
	fail_n = 1;
	ck_assert_int_eq(fw_delivery_store(d, st, &got, &err), fails[0]);
	fw_delivery_close(d);
	OK(fw_store_stats(st, &s, &err));
	ck_assert_int_eq(s.visit_n + s.entry_n, 0);
}
END_TEST

START_TEST(removed_meanwhile)
{
	struct fw_delivery_input in = {.feed_id = 1, .body = FW_STR(JSON(ONE)), .strict = true};
	struct fw_delivery *d;
	struct fw_delivery_result got;

	OK(fw_delivery_open(st, config, &in, &d, &err));
	if (_i) { /* after its status was checked */
		fails[0] = FW_EAGAIN;
		fail_n = 1;
		ck_assert_int_eq(fw_delivery_store(d, st, &got, &err), FW_EAGAIN);
	}
	OK(fw_store_unsubscribe(st, 1, &err));
	ck_assert_int_eq(fw_delivery_store(d, st, &got, &err), FW_ENOTFOUND);
	fw_delivery_close(d);
}
END_TEST

/* What is stored without the orders would never match, so nothing is. */
START_TEST(orders_that_cannot_be_read)
{
	struct fw_delivery_input in = {.feed_id = 1, .body = FW_STR(JSON(ONE)), .strict = true};
	struct fw_delivery *d;
	struct fw_delivery_result got;
	struct fw_store_stats s;

	OK(fw_delivery_open(st, config, &in, &d, &err));
	records_fail = _i ? FW_EINVAL : FW_EIO;
	ck_assert_int_eq(fw_delivery_store(d, st, &got, &err), records_fail);
	ck_assert_str_eq(err.text, "no records");
	OK(fw_store_stats(st, &s, &err));
	ck_assert_int_eq(s.visit_n + s.entry_n, 0);
	records_fail = 0;
	OK(fw_delivery_store(d, st, &got, &err));
	ck_assert_uint_eq(got.visit.new_n, 1);
	fw_delivery_close(d);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit engine deliver");
	TCase *t = tcase_create("deliver");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, formats_are_one);
	tcase_add_test(t, retracted);
	tcase_add_test(t, numbers_follow_publication);
	tcase_add_loop_test(t, refused, 0, (int)FW_N(REFUSED));
	tcase_add_test(t, put_right);
	tcase_add_test(t, too_much);
	tcase_add_test(t, feeds_that_accept_no_pushes);
	tcase_add_test(t, paused_feed_accepts_pushes);
	tcase_add_test(t, unknown_members_are_set_by_a_push);
	tcase_add_loop_test(t, the_store_breaks, 0, 3);
	tcase_add_loop_test(t, given_up, 0, 2);
	tcase_add_loop_test(t, orders_that_cannot_be_read, 0, 2);
	tcase_add_loop_test(t, removed_meanwhile, 0, 2);
	suite_add_tcase(s, t);
	return run_suite(s);
}
