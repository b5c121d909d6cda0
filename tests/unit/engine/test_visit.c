/* SPDX-License-Identifier: ISC */
/* visit_finish(): from an ended fetch to an outcome, without network, store or clock. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"
#include "api/named_feed.h"
#include "engine/run/visit.h"
#include "../../suite.h"

#define NOW INT64_C(1795262400000) /* 2026-11-21T12:00:00Z */
#define DOC                                                                                             \
	"<rss version='2.0'><channel><title>T</title><link>http://a.example/</link><item>"              \
	"<guid>1</guid><title>one</title>"                                                              \
	"<pubDate>Fri, 20 Nov 2026 10:00:00 GMT</pubDate></item><item><guid>2</guid><title>two</title>" \
	"<pubDate>Fri, 20 Nov 2026 12:00:00 GMT</pubDate></item></channel></rss>"

static struct visit V;
static struct fw_feed WAS;
static struct visit_rules RULES;

static void setup(void)
{
	memset(&V, 0, sizeof(V));
	WAS = (struct fw_feed){.id = 5,
		.url = FW_STR("http://a.example/feed"),
		.due_at_ms = NOW - 2000,
		.created_ms = NOW - FW_DAY_MS};
	V.was = &WAS;
	V.slot = 3;
}

static void teardown(void)
{
	fw_buf_finish(&V.fetch.body);
	fw_arena_finish(&V.arena);
}

static void visit_go(enum fw_visit_kind kind, int status, const char *body)
{
	struct visit_rules r = {.run_id = 11, .host = RULES.host, .retract = RULES.retract};

	fw_due_policy_default(&r.due);
	visit_prepare(&V, NOW);
	V.fetch.kind = kind;
	V.fetch.http_status = status;
	V.fetch.visit = (struct fw_visit){.at_ms = NOW - 500, .total_us = 400000, .http_status = status, .kind = kind};
	if (!V.fetch.final_url.p)
		V.fetch.final_url = WAS.url;
	if (body)
		fw_buf_adds(&V.fetch.body, body);
	visit_learn_host(&V, &r, NOW);
	visit_finish(&V, &r, NOW, 42);
	ck_assert_int_eq(V.end, VISIT_COMMIT);
	ck_assert_int_eq(V.outcome.feed_id, 5);
	ck_assert_int_eq(V.outcome.visit.run_id, 11);
	ck_assert_int_eq(V.outcome.visit.slot, 3);
}

static void finish_with(enum fw_visit_kind kind, int status, const char *body)
{
	visit_go(kind, status, body);
	ck_assert_int_gt(V.feed.due_at_ms, NOW);
}

static void finish(enum fw_visit_kind kind, int status, const char *body)
{
	finish_with(kind, status, body);
	ck_assert_uint_gt(V.feed.why.len, 3);
}

START_TEST(new_document)
{
	V.fetch.h_etag = FW_STR("W/\"x y\"");
	WAS.last_modified = FW_STR("old");
	WAS.validator_url = FW_STR("http://old/");
	WAS.fail_n = 3;
	WAS.error = FW_STR("it was down");
	finish(FW_VISIT_OK, 200, DOC);
	ck_assert_int_eq(V.outcome.visit.kind, FW_VISIT_OK);
	ck_assert_uint_eq(V.outcome.entry_n, 2);
	ck_assert(memcmp(V.outcome.entries[0].key, V.outcome.entries[1].key, 16) != 0);
	ck_assert_uint_eq(V.outcome.visit.lateness_ms, 1500);
	/* FRB 001-014: one set, byte for byte, replaced together */
	ck_assert(V.outcome.groups & FW_GROUP_VALIDATORS);
	ck_assert(fw_str_eq(V.feed.etag, FW_STR("W/\"x y\"")));
	ck_assert_ptr_null(V.feed.last_modified.p);
	ck_assert(fw_str_eq(V.feed.validator_url, WAS.url));
	ck_assert_int_eq(V.feed.validators_ms, NOW);
	ck_assert_uint_eq(V.feed.fail_n, 0);
	ck_assert(V.outcome.groups & FW_GROUP_ERROR);
	ck_assert_uint_eq(V.feed.error.len, 0);
	ck_assert(V.outcome.groups & FW_GROUP_META);
	ck_assert(fw_str_eq(V.feed.title, FW_STR("T")));
	ck_assert_int_eq(V.feed.expect_us, 400000);
}
END_TEST

/* Members without a column are stored too, for the feed and for its entries. */
START_TEST(other_members)
{
	struct fw_str once;

	finish(FW_VISIT_OK, 200,
		"<rss version='2.0'><channel><title>T</title><copyright>C &amp; D</copyright><ttl>90</ttl>"
		"<item><guid>1</guid><title>one</title><comments>http://a.example/c</comments></item></channel></rss>");
	ck_assert(V.outcome.groups & FW_GROUP_META);
	ck_assert_ptr_nonnull(fw_str_find(V.feed.extra, FW_STR("\"copyright\":\"C & D\"")));
	ck_assert_ptr_nonnull(fw_str_find(V.feed.extra, FW_STR("\"ttl_minutes\":90")));
	ck_assert_ptr_nonnull(fw_str_find(V.outcome.entries[0].extra, FW_STR("http://a.example/c")));
	once = fw_str(fw_str_dup(V.feed.extra)); /* the same document changes nothing */
	WAS = V.feed;
	WAS.extra = once;
	WAS.body_hash = 0;
	teardown();
	memset(&V, 0, sizeof(V));
	V.was = &WAS;
	V.slot = 3;
	WAS.title = FW_STR("T");
	WAS.due_at_ms = NOW - 2000;
	WAS.url = FW_STR("http://a.example/feed");
	WAS.why = WAS.rhythm = WAS.error = WAS.validator_url = FW_STR_NONE;
	finish(FW_VISIT_OK, 200,
		"<rss version='2.0'><channel><title>T</title><copyright>C &amp; D</copyright><ttl>90</ttl>"
		"<item><guid>2</guid><title>two</title></item></channel></rss>");
	ck_assert(!(V.outcome.groups & FW_GROUP_META));
	free((char *)once.p);
}
END_TEST

START_TEST(same_bytes) /* POL-04, FRB 014: validators are replaced even then */
{
	WAS.body_hash = fw_hash64(DOC, sizeof(DOC) - 1);
	WAS.etag = FW_STR("\"a\"");
	V.fetch.h_etag = FW_STR("\"b\"");
	finish(FW_VISIT_OK, 200, DOC);
	ck_assert_int_eq(V.outcome.visit.kind, FW_VISIT_SAME);
	ck_assert_uint_eq(V.outcome.entry_n, 0);
	ck_assert(fw_str_eq(V.feed.etag, FW_STR("\"b\"")));
	ck_assert_int_eq(V.feed.last_ok_ms, NOW);
}
END_TEST

START_TEST(not_modified)
{
	WAS.etag = FW_STR("\"a\"");
	WAS.validators_ms = NOW - FW_DAY_MS / 2;
	finish(FW_VISIT_NOT_MODIFIED, 304, NULL);
	ck_assert(fw_str_eq(V.fetch.etag, FW_STR("\"a\"")));
	ck_assert_uint_eq(V.outcome.groups, 0); /* one narrow row */
	ck_assert_int_eq(V.feed.last_ok_ms, NOW);
	ck_assert_uint_eq(V.feed.fail_n, 0);
}
END_TEST

/*
 * POL-02, FRB 011: omitted at most once a day, and ever more rarely while that confirms the 304s
 * (sched/trust.h)
 */
START_TEST(validators_age)
{
	static const struct {
		int64_t gap_days, age_hours;
		int trust;
		bool sent;
	} T[] = {
		{1, 23, 0, true}, {1, 25, 0, false}, {7, 25, 0, false}, {7, 167, 1, true}, {7, 169, 1, false},
		{7, 300, 2, true}, {7, 340, 2, false}, {7, 25, -1, false}, {7, 23, -7, true}, {0, 23, 0, true},
		{0, 25, 0, false}, {90, 719, 4, true}, {90, 721, 4, false},
		{1, -9600, 0, false}, /* set while the clock was ahead */
	};
	struct fw_due_facts hints = {.ttl_minutes = FW_NO_NUMBER, .update_period_minutes = FW_NO_NUMBER};
	char text[FW_RHYTHM_MAX];
	int64_t date[20];
	struct fw_rhythm r;

	for (int i = 0; i < 20; i++)
		date[i] = NOW - T[_i].age_hours * FW_HOUR_MS - i * T[_i].gap_days * FW_DAY_MS;
	(void)fw_rhythm_learn(FW_STR_NONE, date, T[_i].gap_days ? 20 : 0, &hints, NOW, text);
	if (T[_i].gap_days)
		fw_rhythm_read(fw_str(text), &r);
	else
		r = (struct fw_rhythm){.ttl_minutes = FW_NO_NUMBER, .update_period_minutes = FW_NO_NUMBER};
	r.trust = T[_i].trust;
	r.checked = 1;
	(void)fw_rhythm_write(&r, text);
	WAS.rhythm = fw_str(text);
	WAS.etag = FW_STR("\"a\"");
	WAS.validators_ms = NOW - T[_i].age_hours * FW_HOUR_MS;
	WAS.last_ok_ms = NOW - FW_HOUR_MS;
	finish(FW_VISIT_OK, 200, DOC);
	ck_assert_int_eq(V.fetch.etag.p != NULL, T[_i].sent);
	ck_assert_int_eq(V.checks_304, !T[_i].sent);
	ck_assert_int_eq(V.compare_304, !T[_i].sent); /* trust_check_document() decides */
}
END_TEST

START_TEST(checked) /* the result of a check, for the trust in the server's 304s */
{
	static const struct {
		enum fw_visit_kind kind;
		int status;
		int trust;
		bool noted, compared;
	} T[] = {
		{FW_VISIT_OK, 200, 2, true, true},
		{FW_VISIT_SAME, 200, 3, true, false},
		{FW_VISIT_PROTOCOL, 304, FW_TRUST_MIN, true, false},
		{FW_VISIT_TIMEOUT, 0, 2, true, false},
		{FW_VISIT_HTTP, 500, 2, true, false},
		{FW_VISIT_LOCAL, 0, 2, false, false},
	};
	struct fw_rhythm r;

	WAS.rhythm = FW_STR("v2 tr=2,100,0");
	WAS.etag = FW_STR("\"a\"");
	WAS.validators_ms = NOW - 40 * FW_DAY_MS;
	WAS.body_hash = T[_i].kind == FW_VISIT_SAME ? fw_hash64(DOC, sizeof(DOC) - 1) : 0;
	fw_err_set(&V.fetch.err, FW_ENET, "x");
	finish(T[_i].kind == FW_VISIT_SAME ? FW_VISIT_OK : T[_i].kind, T[_i].status, T[_i].status == 200 ? DOC : NULL);
	ck_assert_ptr_null(V.fetch.etag.p);
	fw_rhythm_read(V.feed.rhythm, &r);
	ck_assert_int_eq(r.trust, T[_i].trust);
	ck_assert_int_eq(r.checked, T[_i].noted ? NOW / FW_MINUTE_MS : 100);
	ck_assert_int_eq((V.outcome.groups & FW_GROUP_RHYTHM) != 0, T[_i].noted);
	ck_assert_int_eq(V.compare_304, T[_i].compared);
}
END_TEST

START_TEST(slow_down) /* FRB 016, 020: validators survive, the host gets a pause */
{
	WAS.etag = FW_STR("\"a\"");
	V.fetch.h_etag = FW_STR("\"error page\"");
	V.fetch.h_retry_after = FW_STR("7200");
	fw_err_set(&V.fetch.err, FW_ENET, "HTTP 429");
	finish(FW_VISIT_HTTP, 429, "slow down");
	ck_assert(!(V.outcome.groups & FW_GROUP_VALIDATORS));
	ck_assert_int_eq(V.cooldown_until_ms, NOW + 2 * FW_HOUR_MS);
	ck_assert_int_ge(V.feed.due_at_ms, NOW + 2 * FW_HOUR_MS);
	ck_assert_uint_eq(V.feed.fail_n, 1);
	ck_assert_uint_gt(V.feed.error.len, 3);
	ck_assert_uint_eq(V.outcome.entry_n, 0);
}
END_TEST

#define PAGE(href)                                                                                                    \
	"<!doctype html><html><head><title>x</title><link rel=alternate type='application/atom+xml' href='" href "'>" \
	"<link rel=alternate type='application/rss+xml' href='/second'></head><body><p>hello</body></html>"

START_TEST(html_page) /* FRB 102, 103: the page's feeds are suggested, if it was a feed before */
{
	WAS.last_ok_ms = NOW - FW_DAY_MS;
	V.fetch.h_content_type = FW_STR("text/html");
	finish(FW_VISIT_OK, 200, PAGE("/atom,1"));
	ck_assert_int_eq(V.outcome.visit.kind, FW_VISIT_FORMAT);
	ck_assert_msg(strstr(V.fetch.err.text, "http://a.example/atom,1, http://a.example/second") != NULL, "%s",
		V.fetch.err.text);
	ck_assert(fw_str_eq(fw_named_feed(&V.feed), FW_STR("http://a.example/atom,1")));
	ck_assert_uint_eq(V.feed.fail_n, 1);
	ck_assert(!(V.outcome.groups & (FW_GROUP_VALIDATORS | FW_GROUP_URL)));
}
END_TEST

START_TEST(two_in_one_millisecond) /* the store takes a second visit with the same time for a repetition */
{
	WAS.last_visit_ms = NOW;
	finish(FW_VISIT_SAME, 304, "");
	ck_assert_int_eq(V.feed.last_visit_ms, NOW + 1);
	WAS.last_visit_ms = NOW - 1;
	finish(FW_VISIT_SAME, 304, "");
	ck_assert_int_eq(V.feed.last_visit_ms, NOW);
}
END_TEST

START_TEST(page_becomes_its_feed) /* the first visit of a page; credentials stay with their origin (NET-14) */
{
	static const struct {
		const char *body, *user, *url; /* NULL: it stays a page */
		enum fw_visit_kind before;
	} T[] = {
		{PAGE("/atom"), NULL, "http://a.example/atom", FW_VISIT_NONE},
		{PAGE("https://b.example/x#y"), NULL, "https://b.example/x", FW_VISIT_TIMEOUT},
		{PAGE("/atom"), "me", "http://a.example/atom", FW_VISIT_NONE},
		{PAGE("https://b.example/x"), "me", NULL, FW_VISIT_NONE},
		{PAGE("/atom"), NULL, NULL, FW_VISIT_FORMAT}, /* visited before: no longer the first visit */
		{PAGE("/feed"), NULL, NULL, FW_VISIT_NONE},   /* itself */
		{PAGE("http://me:secret@a.example/atom"), NULL, NULL, FW_VISIT_NONE},
		{PAGE("file:///etc/passwd"), NULL, "http://a.example/second", FW_VISIT_NONE},
		{"<!doctype html><title>x</title>", NULL, NULL, FW_VISIT_NONE},
	};

	WAS.username = fw_str(T[_i].user);
	WAS.last_kind = T[_i].before;
	WAS.fail_n = T[_i].before == FW_VISIT_NONE ? 0 : 2;
	visit_go(FW_VISIT_OK, 200, T[_i].body);
	ck_assert_int_eq(V.outcome.visit.kind, FW_VISIT_FORMAT);
	ck_assert_int_eq(V.page_replaced, T[_i].url != NULL);
	ck_assert_int_eq((V.outcome.groups & FW_GROUP_URL) != 0, V.page_replaced);
	if (!V.page_replaced) {
		ck_assert_uint_eq(V.feed.fail_n, WAS.fail_n + 1);
		ck_assert_uint_gt(V.feed.error.len, 0);
		ck_assert_int_gt(V.feed.due_at_ms, NOW);
		return;
	}
	ck_assert_msg(fw_str_eq(V.feed.url, fw_str(T[_i].url)), "%.*s", FW_STR_ARG(V.feed.url));
	ck_assert_uint_eq(V.feed.fail_n, 0);
	ck_assert_uint_eq(V.feed.error.len, 0);
	ck_assert_int_eq(V.feed.due_at_ms, WAS.due_at_ms); /* at once, also in the same --once run */
	ck_assert_ptr_nonnull(fw_str_find(V.outcome.visit.error, fw_str(T[_i].url)));
}
END_TEST

START_TEST(empty_body)
{
	finish(FW_VISIT_OK, 200, "");
	ck_assert_int_eq(V.outcome.visit.kind, FW_VISIT_FORMAT);
	ck_assert_msg(strstr(V.fetch.err.text, "empty") != NULL, "%s", V.fetch.err.text);
}
END_TEST

/*
 * A damaged document without entries is a failure if the feed had entries; an unreadable one leaves
 * no validators.
 */
START_TEST(unreadable)
{
	static const struct {
		const char *body;
		bool had;
		enum fw_visit_kind kind;
		const char *words;
	} T[] = {
		{"<rss version='2.0'><channel><title>T</title>", true, FW_VISIT_FORMAT, "without an end tag (line 1,"},
		{"<rss version='2.0'><channel><title>T</title><it", true, FW_VISIT_FORMAT, "ends inside a tag"},
		{"<rss version='2.0'><channel><title>T</title>", false, FW_VISIT_OK, NULL}, /* it never had any */
		/* truly empty */
		{"<rss version='2.0'><channel><title>T</title></channel></rss>", true, FW_VISIT_OK, NULL},
		{"{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"T\",\"items\":[]}", true, FW_VISIT_OK,
			NULL},
		/* damaged, but with an entry */
		{"<rss version='2.0'><channel><title>T</title><item><guid>1</guid><title>one</title>", true,
			FW_VISIT_OK, NULL},
		{PAGE("/atom"), true, FW_VISIT_FORMAT, "an HTML page"},
		{"", true, FW_VISIT_FORMAT, "empty"},
	};
	bool failed = T[_i].kind == FW_VISIT_FORMAT;

	WAS.last_ok_ms = NOW - FW_HOUR_MS;
	WAS.last_new_ms = T[_i].had ? NOW - FW_DAY_MS : 0;
	WAS.etag = FW_STR("\"a\"");
	WAS.last_modified = FW_STR("Fri, 20 Nov 2026 10:00:00 GMT");
	WAS.validators_ms = NOW - FW_HOUR_MS;
	WAS.body_hash = 77;
	WAS.title = FW_STR("as it was");
	V.fetch.h_etag = FW_STR("\"a\""); /* the same for another document */
	finish(FW_VISIT_OK, 200, T[_i].body);
	ck_assert_int_eq(V.outcome.visit.kind, T[_i].kind);
	ck_assert(V.outcome.groups & FW_GROUP_VALIDATORS);
	ck_assert(fw_str_eq(V.feed.etag, failed ? FW_STR_NONE : FW_STR("\"a\"")));
	ck_assert_ptr_null(V.feed.last_modified.p);
	ck_assert_int_eq(V.feed.body_hash == 0, failed);
	ck_assert_int_eq(V.feed.validators_ms == 0, failed);
	ck_assert_uint_eq(V.feed.fail_n, failed);
	if (!failed)
		return;
	ck_assert_msg(strstr(V.fetch.err.text, T[_i].words) != NULL, "%s", V.fetch.err.text);
	ck_assert_uint_gt(V.feed.error.len, 0);
	ck_assert(!(V.outcome.groups & FW_GROUP_META));
	ck_assert(fw_str_eq(V.feed.title, FW_STR("as it was")));
}
END_TEST

START_TEST(broken_off) /* the complete entries are stored, the half one is not, and the visit counts as a failure */
{
	V.fetch.body_partial = true;
	fw_err_set(&V.fetch.err, FW_ENET, "the connection broke");
	finish(FW_VISIT_PROTOCOL, 200,
		"<rss version='2.0'><channel><title>T</title><item><guid>1</guid><title>one</title></item>"
		"<item><guid>2</guid><title>tw");
	ck_assert_int_eq(V.outcome.visit.kind, FW_VISIT_PROTOCOL);
	ck_assert_uint_eq(V.outcome.entry_n, 1);
	ck_assert(fw_str_eq(V.outcome.entries[0].guid, FW_STR("1")));
	ck_assert_str_eq(V.fetch.err.text, "the connection broke");
	ck_assert_uint_eq(V.feed.fail_n, 1);
	ck_assert(!(V.outcome.groups & FW_GROUP_VALIDATORS));
}
END_TEST

#define TAKEN_BACK                                                                                                     \
	"<feed xmlns='http://www.w3.org/2005/Atom' xmlns:at='http://purl.org/atompub/tombstones/1.0'><title>T</title>" \
	"<at:deleted-entry ref='1' when='2026-11-20T10:00:00Z'/><entry><id>1</id><title>one</title>"                   \
	"<updated>2026-11-20T10:00:00Z</updated></entry><entry><id>2</id><title>two</title></entry>"

START_TEST(taken_back)
{
	/* with the setting; ignored without it; of a part of a document */
	static const struct {
		bool retract, partial;
		size_t entry_n, retracted_n;
	} T[] = {{true, false, 1, 1}, {false, false, 2, 0}, {true, true, 1, 0}};

	RULES.retract = T[_i].retract;
	V.fetch.body_partial = T[_i].partial;
	if (T[_i].partial)
		fw_err_set(&V.fetch.err, FW_ENET, "the connection broke");
	finish(T[_i].partial ? FW_VISIT_PROTOCOL : FW_VISIT_OK, 200, T[_i].partial ? TAKEN_BACK : TAKEN_BACK "</feed>");
	RULES.retract = false;
	ck_assert_uint_eq(V.outcome.entry_n, T[_i].entry_n);
	ck_assert_uint_eq(V.outcome.retracted_n, T[_i].retracted_n);
	ck_assert_uint_eq(V.outcome.visit.item_n, 2);
	ck_assert(fw_str_eq(
		V.outcome.entries[V.outcome.entry_n - 1].guid, T[_i].retracted_n ? FW_STR("2") : FW_STR("1")));
}
END_TEST

START_TEST(own_fault) /* no feed is charged */
{
	fw_err_set(&V.fetch.err, FW_ENOMEM, "out of memory");
	finish(FW_VISIT_LOCAL, 0, NULL);
	ck_assert_uint_eq(V.feed.fail_n, 0);
	ck_assert_int_eq(V.feed.expect_us, 0);
}
END_TEST

static void *scarce(size_t n, void *ctx)
{
	int *left = ctx;

	return *left && (*left)-- ? malloc(n) : NULL;
}

static void scarce_free(void *p, void *ctx)
{
	(void)ctx;
	free(p);
}

START_TEST(memory_runs_out) /* invariant 2: all entries are stored, or the document is fetched again */
{
	struct fw_buf doc = FW_BUF_INIT(0);
	int failed_n = 0;

	fw_buf_adds(&doc, "<rss version='2.0'><channel><title>T</title>");
	for (int i = 0; i < 2000; i++)
		fw_buf_addf(&doc,
			"<item><guid>%d</guid><title>title of %d</title><author>a</author><category>c"
			"</category></item>",
			i, i);
	fw_buf_adds(&doc, "</channel></rss>");
	for (int allowed = 0;; allowed++, failed_n++) {
		int left = allowed;

		setup();
		V.arena = (struct fw_arena){.alloc = scarce, .free = scarce_free, .ctx = &left};
		finish_with(FW_VISIT_OK, 200, doc.p);
		if (V.fetch.kind == FW_VISIT_OK)
			break;
		ck_assert_int_eq(V.fetch.kind, FW_VISIT_LOCAL);
		ck_assert_ptr_nonnull(strstr(V.fetch.err.text, "memory"));
		ck_assert(V.outcome.entry_n == 0 && !(V.outcome.groups & FW_GROUP_VALIDATORS));
		teardown();
	}
	ck_assert_uint_eq(V.outcome.entry_n, 2000);
	for (size_t i = 0; i < 2000; i++)
		ck_assert(V.outcome.entries[i].title.len >= 10 && V.outcome.entries[i].extra.len &&
			V.outcome.entries[i].author.len);
	ck_assert_int_gt(failed_n, 5);
	fw_buf_finish(&doc);
}
END_TEST

/*
 * a document that needs too much memory is a failure of its feed, with the setting's name; nothing
 * of it is stored
 */
START_TEST(ceiling)
{
	struct fw_buf doc = FW_BUF_INIT(0);
	struct visit_rules r = {.parse_memory = (size_t)1 << 20};

	fw_buf_adds(&doc,
		"{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"t\",\"items\":[{\"id\":\"1\",\"_x\":[");
	for (int i = 0; i < 900; i++)
		fw_buf_addf(&doc, "%s[{},{},{},{}]", i ? "," : "");
	fw_buf_adds(&doc, "]}]}");
	fw_due_policy_default(&r.due);
	for (int given = 0; given < 2; given++) {
		teardown();
		setup();
		visit_prepare(&V, NOW);
		V.fetch.kind = FW_VISIT_OK;
		V.fetch.final_url = WAS.url;
		fw_buf_addstr(&V.fetch.body, fw_buf_str(&doc));
		visit_finish(&V, &r, NOW, 42);
		if (given) {
			ck_assert_int_eq(V.fetch.kind, FW_VISIT_OK);
			ck_assert_uint_eq(V.outcome.entry_n, 1);
			continue;
		}
		ck_assert_int_eq(V.fetch.kind, FW_VISIT_LIMIT);
		ck_assert_ptr_nonnull(strstr(V.fetch.err.text, "parse_memory_bytes"));
		ck_assert_uint_eq(V.feed.fail_n, 1);
		ck_assert(V.outcome.entry_n == 0 && !(V.outcome.groups & FW_GROUP_VALIDATORS));
		ck_assert_uint_lt(V.held_bytes, 65536);
		r.parse_memory = (size_t)64 << 20;
	}
	fw_buf_finish(&doc);
}
END_TEST

START_TEST(gone) /* FRB 114 */
{
	fw_err_set(&V.fetch.err, FW_EGONE, "HTTP 410");
	finish(FW_VISIT_GONE, 410, NULL);
	ck_assert_int_eq(V.feed.status, FW_FEED_GONE);
}
END_TEST

/*
 * FRB 020, 021: 429 and 503 slow the whole host down, with or without Retry-After; a success speeds
 * it up, others change nothing
 */
START_TEST(throttled)
{
	static const struct {
		enum fw_visit_kind kind;
		int status;
		const char *retry_after;
		enum fw_host_health host_health;
		int64_t cooldown_ms;
	} T[] = {
		{FW_VISIT_HTTP, 429, NULL, FW_HOST_THROTTLED, 30 * FW_SECOND_MS},
		{FW_VISIT_HTTP, 503, NULL, FW_HOST_THROTTLED, 30 * FW_SECOND_MS},
		{FW_VISIT_HTTP, 503, "0", FW_HOST_THROTTLED, 30 * FW_SECOND_MS},
		{FW_VISIT_HTTP, 503, "Thu, 01 Jan 1970 00:00:00 GMT", FW_HOST_THROTTLED, 30 * FW_SECOND_MS},
		{FW_VISIT_HTTP, 429, "soon", FW_HOST_THROTTLED, 30 * FW_SECOND_MS},
		{FW_VISIT_HTTP, 429, "604800", FW_HOST_THROTTLED, 7 * FW_DAY_MS},
		{FW_VISIT_HTTP, 429, "99999999999999999999", FW_HOST_THROTTLED, 7 * FW_DAY_MS},
		{FW_VISIT_HTTP, 500, "3600", FW_HOST_UNKNOWN, 0},
		{FW_VISIT_HTTP, 404, NULL, FW_HOST_UNKNOWN, 0},
		{FW_VISIT_DNS, 0, NULL, FW_HOST_UNKNOWN, 0},
		{FW_VISIT_NOT_MODIFIED, 304, NULL, FW_HOST_HEALTHY, 0},
		{FW_VISIT_OK, 200, NULL, FW_HOST_HEALTHY, 0},
	};

	V.fetch.h_retry_after = fw_str(T[_i].retry_after);
	fw_err_set(&V.fetch.err, FW_ENET, "HTTP");
	finish(T[_i].kind, T[_i].status, T[_i].kind == FW_VISIT_OK ? DOC : NULL);
	ck_assert_int_eq(V.host_health, T[_i].host_health);
	ck_assert_int_eq(V.cooldown_until_ms, T[_i].cooldown_ms ? NOW + T[_i].cooldown_ms : 0);
}
END_TEST

START_TEST(throttled_name) /* one of several names of a host, or a host after a redirect, slows only itself down */
{
	static const struct {
		const char *url, *final_url, *host_key;
		bool whole;
	} T[] = {
		{"http://a.example/feed", NULL, NULL, true},
		{"http://A.example:8080/feed", NULL, NULL, true},
		{"http://a.example/feed", NULL, "[192.0.2.1]", false},
		{"http://a.example/feed", NULL, "example", false},
		{"http://evil.netlify.app/feed", NULL, NULL, false},
		/* by now its host is the hosting service */
		{"http://evil.netlify.app/feed", NULL, "evil.netlify.app", false},
		{"http://a.example/feed", "http://evil.example/feed", NULL, false},
	};

	WAS.url = fw_str(T[_i].url);
	WAS.host_key = fw_str(T[_i].host_key);
	V.fetch.final_url = fw_str(T[_i].final_url ? T[_i].final_url : T[_i].url);
	V.fetch.h_retry_after = FW_STR("604800");
	V.fetch.resolved = T[_i].host_key && T[_i].host_key[0] == '[';
	V.fetch.address[10] = V.fetch.address[11] = 0xff;
	fw_err_set(&V.fetch.err, FW_ENET, "HTTP 429");
	RULES.host = (struct host_rules){
		T[_i].host_key && T[_i].host_key[0] == '[' ? HOST_ADDRESS : HOST_DOMAIN, "example"};
	if (!T[_i].host_key || strcmp(T[_i].host_key, "example") != 0)
		RULES.host.hosting_domains = NULL;
	finish(FW_VISIT_HTTP, 429, NULL);
	ck_assert_int_eq(V.cooldown_until_ms, T[_i].whole ? NOW + 7 * FW_DAY_MS : 0);
	ck_assert_int_eq(V.host_health, T[_i].whole ? FW_HOST_THROTTLED : FW_HOST_UNKNOWN);
	ck_assert_int_eq(V.name_cooldown_ms, T[_i].whole ? 0 : 7 * FW_DAY_MS);
	ck_assert_int_ge(V.feed.due_at_ms, NOW + 7 * FW_DAY_MS);
}
END_TEST

START_TEST(hub) /* WSB: Link headers first, then the document */
{
#define HUB_DOC                                                                                                    \
	"<feed xmlns='http://www.w3.org/2005/Atom'><title>T</title><link rel='hub' href='http://in.example/hub'/>" \
	"<link rel='self' href='http://in.example/self'/><entry><id>1</id><title>one</title></entry></feed>"
	static const struct {
		const char *link, *doc, *hub, *topic;
	} T[] = {
		{"<http://l.example/hub>; rel=\"hub\", <http://l.example/self>; rel=self", HUB_DOC,
			"http://l.example/hub", "http://l.example/self"},
		{"</hub>; rel=hub", HUB_DOC, "http://a.example/hub", "http://in.example/self"},
		{"<http://l.example/hub>; rel=hub", DOC, "http://l.example/hub", "http://a.example/feed"},
		{NULL, HUB_DOC, "http://in.example/hub", "http://in.example/self"},
		{"<http://l.example/self>; rel=self", HUB_DOC, "http://in.example/hub", "http://l.example/self"},
		{"<http://l.example/self>; rel=self", DOC, "", ""},
	};

	V.fetch.h_link = fw_str(T[_i].link);
	finish(FW_VISIT_OK, 200, T[_i].doc);
	ck_assert_msg(fw_str_eq(V.feed.hub, fw_str(T[_i].hub)), "%.*s", FW_STR_ARG(V.feed.hub));
	ck_assert_msg(fw_str_eq(V.feed.topic, fw_str(T[_i].topic)), "%.*s", FW_STR_ARG(V.feed.topic));
}
END_TEST

START_TEST(phases) /* the duration of a visit, by phases */
{
	int64_t part_us[FW_PHASE_N];

	V.fetch.visit.at_ms = NOW;
	visit_prepare(&V, NOW);
	V.fetch.kind = FW_VISIT_NOT_MODIFIED;
	V.fetch.http_status = 304;
	V.fetch.final_url = WAS.url;
	V.fetch.visit = (struct fw_visit){
		.dns_us = 10000, .connect_us = 30000, .tls_us = 0, .first_byte_us = 90000, .total_us = 100000};
	visit_finish(&V, &(struct visit_rules){.run_id = 1}, NOW, 42);
	fw_expect_parts(V.feed.expect_parts, V.feed.expect_us, part_us);
	ck_assert_int_eq(V.feed.expect_us, 100000);
	ck_assert_int_eq(part_us[FW_PHASE_TLS], 0);
	ck_assert_int_ge(part_us[FW_PHASE_FIRST_BYTE], 58000);
	ck_assert_int_le(part_us[FW_PHASE_FIRST_BYTE], 62000);
	ck_assert_int_ge(part_us[FW_PHASE_BODY], 9000);
	ck_assert_int_le(part_us[FW_PHASE_BODY], 11000);
}
END_TEST

START_TEST(pushed) /* a hub pushes it: polls are rare while the promise lasts */
{
	int64_t plain, with_hub;

	finish(FW_VISIT_NOT_MODIFIED, 304, NULL);
	plain = V.feed.due_at_ms;
	WAS.push_until_ms = NOW + FW_DAY_MS;
	finish(FW_VISIT_NOT_MODIFIED, 304, NULL);
	with_hub = V.feed.due_at_ms;
	ck_assert_int_gt(with_hub, plain + 10 * FW_HOUR_MS);
	WAS.push_until_ms = NOW - 1;
	finish(FW_VISIT_NOT_MODIFIED, 304, NULL);
	ck_assert_int_eq(V.feed.due_at_ms, plain);
}
END_TEST

/*
 * FRB 114: 410 stops polling, but not forever: after 30 days, then after twice as long as it has
 * been gone, 180 at most
 */
START_TEST(gone_feeds_are_polled_again)
{
	static const struct {
		int64_t gone_ms, from_ms, to_ms;
	} T[] = {
		{FW_HOUR_MS, 27 * FW_DAY_MS, 33 * FW_DAY_MS}, {31 * FW_DAY_MS, 55 * FW_DAY_MS, 69 * FW_DAY_MS},
		{95 * FW_DAY_MS, 162 * FW_DAY_MS, 198 * FW_DAY_MS},
		{4000 * FW_DAY_MS, 162 * FW_DAY_MS, 198 * FW_DAY_MS},
		{-FW_DAY_MS, 27 * FW_DAY_MS, 33 * FW_DAY_MS}, /* the clock was set back */
	};
	bool expired = _i >= 5;
	int64_t gone_ms = T[_i % 5].gone_ms, after;

	WAS.created_ms = NOW - 5000 * FW_DAY_MS;
	*(expired ? &WAS.last_new_ms : &WAS.last_ok_ms) = NOW - gone_ms;
	if (!expired)
		fw_err_set(&V.fetch.err, FW_EGONE, "HTTP 410");
	if (expired)
		finish(FW_VISIT_OK, 200,
			"{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"T\",\"expired\":true,"
			"\"items\":[]}");
	else
		finish(FW_VISIT_GONE, 410, NULL);
	ck_assert_int_eq(V.feed.status, FW_FEED_GONE);
	after = V.feed.due_at_ms - NOW;
	ck_assert_msg(after >= T[_i % 5].from_ms && after <= T[_i % 5].to_ms, "%lld: %.*s", (long long)after,
		FW_STR_ARG(V.feed.why));
}
END_TEST

START_TEST(adoption) /* POL-09: three redirects_seen over a day, then the new URL */
{
	static const struct {
		uint32_t n;
		int64_t since;
		const char *seen;
		bool adopted;
		const char *user, *to;
	} T[] = {
		{0, 0, NULL, false}, {1, NOW - 2 * FW_DAY_MS, "http://b.example/feed", false},
		{2, NOW - FW_DAY_MS, "http://b.example/feed", true},
		{9, NOW - FW_HOUR_MS, "http://b.example/feed", false},
		{9, NOW - 9 * FW_DAY_MS, "http://other.example/", false},
		/* the credentials would go to another origin (NET-14) */
		{9, NOW - 9 * FW_DAY_MS, "http://b.example/feed", false, "me"},
		{9, NOW - 9 * FW_DAY_MS, "http://b.example/feed", false, ":secret"},
		{9, NOW - 9 * FW_DAY_MS, "http://a.example/new", true, "me", "http://a.example/new"},
		{0, NOW - 9 * FW_DAY_MS, "http://b.example/feed", false}, /* its entries are others */
		{9, NOW + 9 * FW_DAY_MS, "http://b.example/feed", false}, /* the clock was set back */
	};

	WAS.redirect_n = T[_i].n;
	WAS.redirect_since_ms = T[_i].since;
	WAS.redirect_url = fw_str(T[_i].seen);
	WAS.username = fw_str_split(fw_str(T[_i].user), ':', &WAS.password);
	V.fetch.permanent_url = T[_i].to ? fw_str(T[_i].to) : FW_STR("http://b.example/feed");
	V.fetch.final_url = V.fetch.permanent_url;
	finish(FW_VISIT_OK, 200, DOC);
	ck_assert_int_eq((V.outcome.groups & FW_GROUP_URL) != 0, T[_i].adopted);
	ck_assert(fw_str_eq(V.feed.url, T[_i].adopted ? V.fetch.permanent_url : WAS.url));
}
END_TEST

START_TEST(redirects_seen) /* whether its entries are compared, and what ends the count */
{
	static const struct {
		enum fw_visit_kind kind;
		int64_t last_ok_ms;
		const char *seen, *to;
		bool compared, group;
		uint32_t n;
	} T[] = {
		{FW_VISIT_OK, NOW - 1, NULL, "http://b.example/", true, true, 1},
		{FW_VISIT_OK, 0, NULL, "http://b.example/", false, true, 1}, /* the new URL is not known yet */
		/* certainly the same as before */
		{FW_VISIT_NOT_MODIFIED, NOW - 1, NULL, "http://b.example/", false, true, 1},
		{FW_VISIT_OK, NOW - 1, "http://c.example/", "http://b.example/", true, true, 1},
		{FW_VISIT_OK, NOW - 1, "http://b.example/", NULL, false, true, 0},
		{FW_VISIT_OK, NOW - 1, NULL, NULL, false, false, 0},
		{FW_VISIT_HTTP, NOW - 1, NULL, "http://b.example/", false, false, 0},
	};

	WAS.last_ok_ms = T[_i].last_ok_ms;
	WAS.redirect_url = fw_str(T[_i].seen);
	WAS.redirect_n = T[_i].seen ? 2 : 0;
	V.fetch.permanent_url = fw_str(T[_i].to);
	fw_err_set(&V.fetch.err, T[_i].kind == FW_VISIT_HTTP ? FW_ENET : 0, "x");
	finish(T[_i].kind, T[_i].kind == FW_VISIT_HTTP ? 500 : 200, T[_i].kind == FW_VISIT_OK ? DOC : NULL);
	ck_assert_int_eq(V.new_target, T[_i].compared);
	ck_assert_int_eq((V.outcome.groups & FW_GROUP_REDIRECT) != 0, T[_i].group);
	ck_assert_uint_eq(V.feed.redirect_n, T[_i].n);
}
END_TEST

#define RSS_NAMING(xml)                                                                \
	"<rss version='2.0' xmlns:itunes='http://www.itunes.com/dtds/podcast-1.0.dtd'" \
	" xmlns:atom='http://www.w3.org/2005/Atom'><channel>"                          \
	"<title>T</title>" xml "<item><guid>1</guid><title>one</title></item></channel></rss>"
#define SELF(url) RSS_NAMING("<atom:link rel='self' href='" url "'/>")
#define NEW_FEED_URL(url) "<itunes:new-feed-url>" url "</itunes:new-feed-url>"
#define JSON_NAMING(url)                                                                        \
	"{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"T\",\"feed_url\":\"" url \
	"\",\"items\":[{\"id\":\"1\"}]}"

START_TEST(named) /* a document names its own URL: it counts as seen once, however often it is repeated */
{
	static const struct {
		const char *body, *to;
	} T[] = {
		{RSS_NAMING(NEW_FEED_URL("http://b.example/feed")), "http://b.example/feed"},
		{RSS_NAMING(NEW_FEED_URL("http://a.example/new")), "http://a.example/new"},
		{SELF("http://b.example/feed"), "http://b.example/feed"},
		{SELF("http://A.example/other"), NULL}, /* on the same host another spelling */
		{RSS_NAMING("<atom:link rel='self' href='http://c.example/'/>" NEW_FEED_URL("http://b.example/feed")),
			"http://b.example/feed"},
		{JSON_NAMING("http://a.example/new"), "http://a.example/new"},
		{JSON_NAMING("http://a.example/feed"), NULL},  /* its own URL */
		{JSON_NAMING("http://a.example/final"), NULL}, /* where it was found */
		{SELF("http://me:secret@b.example/feed"), NULL},
		{SELF("ftp://b.example/feed"), NULL},
		{DOC, NULL},
	};
	struct fw_str to = fw_str(T[_i].to);

	WAS.last_ok_ms = NOW - FW_DAY_MS;
	V.fetch.final_url = FW_STR("http://a.example/final");
	finish(FW_VISIT_OK, 200, T[_i].body);
	ck_assert_msg(fw_str_eq(V.feed.redirect_url, to), "%.*s", FW_STR_ARG(V.feed.redirect_url));
	ck_assert_int_eq(fw_feed_redirect_is_named(&V.feed), T[_i].to != NULL);
	ck_assert_int_eq((V.outcome.groups & FW_GROUP_REDIRECT) != 0, T[_i].to != NULL);
	ck_assert(!V.new_target && !(V.outcome.groups & FW_GROUP_URL));
}
END_TEST

/* over several visits: n redirects are needed, and entries are compared at the first */
START_TEST(named_and_redirected)
{
	enum step { NAMES, NAMES_ANOTHER, SAYS_NOTHING, SAME, UNCHANGED, REDIRECTS, FAILS };
	static const char TO[] = "http://b.example/feed", ANOTHER[] = "http://c.example/feed";
	static const struct {
		enum step step;
		int hours;
		const char *in_sight;
		uint32_t n;
		bool compared, adopted, written;
	} T[] = {
		{NAMES, 0, TO, FW_REDIRECT_NAMED + 1, false, false, true},
		{UNCHANGED, 1, TO, FW_REDIRECT_NAMED + 1, false, false, false}, /* a 304 costs no more than usual */
		{SAME, 2, TO, FW_REDIRECT_NAMED + 1, false, false, false},
		{SAYS_NOTHING, 3, NULL, 0, false, false, true},
		{NAMES, 4, TO, FW_REDIRECT_NAMED + 1, false, false, true},
		{NAMES_ANOTHER, 5, ANOTHER, FW_REDIRECT_NAMED + 1, false, false, true},
		{NAMES, 6, TO, FW_REDIRECT_NAMED + 1, false, false, true},
		{NAMES, 50, TO, FW_REDIRECT_NAMED + 2, false, false, true},
		{NAMES, 100, TO, FW_REDIRECT_NAMED + 2, false, false, false}, /* never enough by itself */
		{FAILS, 101, TO, FW_REDIRECT_NAMED + 2, false, false, false},
		{REDIRECTS, 102, TO, 3, true, false, true},
		{NAMES, 103, TO, FW_REDIRECT_NAMED + 1, false, false, true}, /* withdrawn: the count starts again */
		{NAMES, 104, TO, FW_REDIRECT_NAMED + 2, false, false, true},
		{REDIRECTS, 105, TO, 3, true, false, true},
		{REDIRECTS, 106, TO, 4, false, false, true}, /* not for a day yet */
		{REDIRECTS, 128, NULL, 0, false, true, true},
	};
	struct fw_arena kept;

	fw_arena_init(&kept, 0);
	for (size_t i = 0; i < FW_N(T); i++) {
		static const struct {
			enum fw_visit_kind kind;
			int status;
			const char *body;
		} DO[] = {
			[NAMES] = {FW_VISIT_OK, 200, SELF("http://b.example/feed")},
			[NAMES_ANOTHER] = {FW_VISIT_OK, 200, SELF("http://c.example/feed")},
			[SAYS_NOTHING] = {FW_VISIT_OK, 200, DOC},
			[SAME] = {FW_VISIT_OK, 200, DOC},
			[UNCHANGED] = {FW_VISIT_NOT_MODIFIED, 304, NULL},
			[REDIRECTS] = {FW_VISIT_OK, 200, DOC},
			[FAILS] = {FW_VISIT_HTTP, 500, NULL},
		};
		struct visit_rules r = {.run_id = 11};
		struct fw_feed was = WAS;

		fw_due_policy_default(&r.due);
		WAS.body_hash = T[i].step == SAME ? fw_hash64(DOC, sizeof(DOC) - 1) : 0;
		WAS.last_ok_ms = NOW;
		visit_prepare(&V, NOW + T[i].hours * FW_HOUR_MS);
		V.fetch.kind = DO[T[i].step].kind;
		V.fetch.http_status = DO[T[i].step].status;
		V.fetch.final_url = WAS.url;
		if (T[i].step == REDIRECTS)
			V.fetch.final_url = V.fetch.permanent_url = fw_str(TO);
		fw_buf_adds(&V.fetch.body, DO[T[i].step].body ? DO[T[i].step].body : "");
		visit_finish(&V, &r, NOW + T[i].hours * FW_HOUR_MS, 42);
		ck_assert_msg(fw_str_eq(V.feed.redirect_url, fw_str(T[i].in_sight)), "%zu: %.*s", i,
			FW_STR_ARG(V.feed.redirect_url));
		ck_assert_msg(V.feed.redirect_n == T[i].n, "%zu: %u", i, (unsigned)V.feed.redirect_n);
		ck_assert_msg(V.new_target == T[i].compared, "%zu", i);
		ck_assert_msg(((V.outcome.groups & FW_GROUP_URL) != 0) == T[i].adopted, "%zu", i);
		ck_assert_msg(((V.outcome.groups & FW_GROUP_REDIRECT) != 0) == T[i].written, "%zu", i);
		WAS = was;
		WAS.redirect_url = fw_arena_str(&kept, V.feed.redirect_url);
		WAS.redirect_n = V.feed.redirect_n;
		WAS.redirect_since_ms = V.feed.redirect_since_ms;
		teardown();
		memset(&V, 0, sizeof(V));
		V.was = &WAS;
	}
	fw_arena_finish(&kept);
}
END_TEST

START_TEST(own_network) /* a failure that is attributed to our own network charges no feed, and is retried soon */
{
	struct fw_connectivity w = {0};
	bool changed = false;

	for (int i = 0; i < FW_CONNECTIVITY_DOWN_N; i++) {
		char url[50];

		(void)fw_snprintf(url, sizeof(url), "http://h%d.example/", i);
		V.fetch.kind = FW_VISIT_DNS;
		V.fetch.url = fw_str(url);
		ck_assert(!changed && !V.our_network);
		changed = visit_learn_network(&V, &w, 1000 + i);
	}
	ck_assert(changed && V.our_network && w.down);
	visit_settle_verdict(&V, &w, 2 * FW_HOUR_MS);
	ck_assert(V.our_network && !V.verdict_deferred);
	ck_assert_int_eq(V.offline_ms, 2 * FW_HOUR_MS - 1000);
	visit_settle_verdict(&V, &w, 2000);
	WAS.fail_n = 2;
	fw_err_set(&V.fetch.err, FW_ENET, "the name servers do not respond");
	finish(FW_VISIT_DNS, 0, NULL);
	ck_assert_int_eq(V.outcome.visit.kind, FW_VISIT_LOCAL);
	ck_assert_uint_eq(V.feed.fail_n, 2);
	ck_assert_int_le(V.feed.due_at_ms, NOW + 10 * FW_MINUTE_MS);
	ck_assert_ptr_nonnull(fw_str_find(V.feed.error, FW_STR("our own network")));
	ck_assert_ptr_nonnull(
		fw_str_find(V.feed.why, FW_STR("our own network seems to be down, the feed is not charged: 5 min")));
	ck_assert_ptr_nonnull(fw_str_find(V.feed.error, FW_STR("name servers")));
}
END_TEST

/*
 * a lookup that started while the network was down fails when it is up again: the feed is not
 * charged
 */
START_TEST(old_lookup)
{
	struct fw_connectivity w = {.up_ms = FW_HOUR_MS, .alive_ms = FW_HOUR_MS};

	V.fetch.kind = FW_VISIT_DNS;
	V.fetch.url = FW_STR("http://h.example/");
	ck_assert(!visit_learn_network(&V, &w, FW_HOUR_MS + FW_CONNECTIVITY_AFTER_MS));
	ck_assert(!V.our_network);
	V.fetch.name_age_ms = 1;
	ck_assert(!visit_learn_network(&V, &w, FW_HOUR_MS + FW_CONNECTIVITY_AFTER_MS));
	ck_assert(V.our_network);
	/* and it is not reported as a new outage */
	for (int i = 0; i < 2 * FW_CONNECTIVITY_DOWN_N; i++) {
		char url[50];

		(void)fw_snprintf(url, sizeof(url), "http://h%d.example/", i);
		V.fetch.url = fw_str(url);
		V.fetch.name_age_ms = FW_CONNECTIVITY_AFTER_MS + 1;
		ck_assert(!visit_learn_network(&V, &w, FW_HOUR_MS + FW_CONNECTIVITY_AFTER_MS));
	}
	ck_assert(!w.down);
}
END_TEST

/*
 * the wall clock jumps by years, both ways: nothing is due before the next minute, or later than it
 * should be
 */
START_TEST(clock_jumps)
{
	static const int64_t JUMP[] = {
		0, FW_HOUR_MS, -FW_HOUR_MS, 3650 * FW_DAY_MS, -3650 * FW_DAY_MS, -NOW, INT64_C(253402300799000) - NOW};
	int64_t now_ms = NOW + JUMP[_i % 7];
	static const struct {
		enum fw_visit_kind kind;
		int status;
	} ANSWER[] = {
		{FW_VISIT_OK, 200},
		{FW_VISIT_NOT_MODIFIED, 304},
		{FW_VISIT_HTTP, 429},
		{FW_VISIT_DNS, 0},
		{FW_VISIT_GONE, 410},
	};
	struct visit_rules r = {.run_id = 11};
	enum fw_visit_kind kind = ANSWER[_i / 7].kind;

	fw_due_policy_default(&r.due);
	WAS.validators_ms = WAS.last_visit_ms = WAS.last_ok_ms = WAS.last_new_ms = NOW - FW_HOUR_MS;
	WAS.redirect_url = FW_STR("http://b.example/feed");
	WAS.redirect_since_ms = NOW - FW_HOUR_MS;
	WAS.redirect_n = 1;
	WAS.etag = FW_STR("\"a\"");
	visit_prepare(&V, now_ms);
	V.fetch.kind = kind;
	V.fetch.http_status = ANSWER[_i / 7].status;
	V.fetch.final_url = WAS.url;
	V.fetch.visit = (struct fw_visit){.at_ms = now_ms, .total_us = 1000};
	V.fetch.h_date = FW_STR("Sat, 21 Nov 2026 12:00:00 GMT");
	V.fetch.h_expires = FW_STR("Sat, 21 Nov 2026 13:00:00 GMT");
	V.fetch.h_retry_after = kind == FW_VISIT_HTTP ? FW_STR("Sat, 21 Nov 2026 14:00:00 GMT") : FW_STR_NONE;
	if (kind == FW_VISIT_OK)
		fw_buf_adds(&V.fetch.body, DOC);
	else if (kind != FW_VISIT_NOT_MODIFIED)
		fw_err_set(&V.fetch.err, FW_ENET, "x");
	visit_learn_host(&V, &r, now_ms);
	visit_finish(&V, &r, now_ms, 42);
	ck_assert_int_gt(V.feed.due_at_ms, now_ms + FW_MINUTE_MS);
	ck_assert_int_le(V.feed.due_at_ms,
		now_ms +
			(kind == FW_VISIT_GONE                ? 200 :
					kind == FW_VISIT_HTTP ? 8 :
								3) *
				FW_DAY_MS);
	ck_assert_int_le(V.cooldown_until_ms, now_ms + 7 * FW_DAY_MS);
	ck_assert(fw_str_eq(V.feed.url, WAS.url));
}
END_TEST

START_TEST(absurd_headers) /* each value is limited and reported, or ignored */
{
	static const struct {
		const char *cache_control, *retry_after, *expires, *age;
		int64_t from_ms, to_ms;
	} T[] = {
		{"max-age=1000000000000", NULL, NULL, NULL, 23 * FW_HOUR_MS, 27 * FW_HOUR_MS},
		{"max-age=-5", NULL, NULL, NULL, 5 * FW_HOUR_MS, 14 * FW_HOUR_MS},
		{"max-age=3600", NULL, NULL, "99999999999999999999999", 5 * FW_HOUR_MS, 14 * FW_HOUR_MS},
		{NULL, "Thu, 01 Jan 1970 00:00:00 GMT", NULL, NULL, 5 * FW_HOUR_MS, 14 * FW_HOUR_MS},
		{NULL, "999999999999", NULL, NULL, 7 * FW_DAY_MS, 7 * FW_DAY_MS + 2 * FW_HOUR_MS},
		{NULL, "-1", NULL, NULL, 5 * FW_HOUR_MS, 14 * FW_HOUR_MS},
		{NULL, NULL, "Fri, 31 Dec 9999 23:59:59 GMT", NULL, 23 * FW_HOUR_MS, 27 * FW_HOUR_MS},
		{NULL, NULL, "0", NULL, 5 * FW_HOUR_MS, 14 * FW_HOUR_MS},
	};
	int64_t after;

	V.fetch.h_cache_control = fw_str(T[_i].cache_control);
	V.fetch.h_retry_after = fw_str(T[_i].retry_after);
	V.fetch.h_expires = fw_str(T[_i].expires);
	V.fetch.h_age = fw_str(T[_i].age);
	finish(FW_VISIT_OK, 200, DOC);
	after = V.feed.due_at_ms - NOW;
	ck_assert_msg(
		after >= T[_i].from_ms && after <= T[_i].to_ms, "%lld: %.*s", (long long)after, FW_STR_ARG(V.feed.why));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit engine visit");
	TCase *t = tcase_create("visit");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, taken_back, 0, 3);
	tcase_add_test(t, new_document);
	tcase_add_test(t, other_members);
	tcase_add_test(t, same_bytes);
	tcase_add_test(t, not_modified);
	tcase_add_loop_test(t, validators_age, 0, 14);
	tcase_add_loop_test(t, checked, 0, 6);
	tcase_add_test(t, slow_down);
	tcase_add_test(t, two_in_one_millisecond);
	tcase_add_test(t, html_page);
	tcase_add_loop_test(t, page_becomes_its_feed, 0, 9);
	tcase_add_test(t, empty_body);
	tcase_add_loop_test(t, unreadable, 0, 8);
	tcase_add_test(t, broken_off);
	tcase_add_test(t, own_fault);
	tcase_add_test(t, memory_runs_out);
	tcase_add_test(t, ceiling);
	tcase_add_test(t, gone);
	tcase_add_loop_test(t, throttled, 0, 12);
	tcase_add_loop_test(t, throttled_name, 0, 7);
	tcase_add_loop_test(t, hub, 0, 6);
	tcase_add_test(t, phases);
	tcase_add_test(t, pushed);
	tcase_add_loop_test(t, gone_feeds_are_polled_again, 0, 10);
	tcase_add_loop_test(t, adoption, 0, 10);
	tcase_add_loop_test(t, redirects_seen, 0, 7);
	tcase_add_loop_test(t, named, 0, 11);
	tcase_add_test(t, named_and_redirected);
	tcase_add_test(t, own_network);
	tcase_add_test(t, old_lookup);
	tcase_add_loop_test(t, clock_jumps, 0, 35);
	tcase_add_loop_test(t, absurd_headers, 0, 8);
	suite_add_tcase(s, t);
	return run_suite(s);
}
