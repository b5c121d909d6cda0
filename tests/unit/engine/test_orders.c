/* SPDX-License-Identifier: ISC */
/* Orders: records of orders and deliveries, destinations, exchanges, the signature of webhooks. */
#include <check.h>

#include "api/order.h"
#include "base/arena.h"
#include "base/str.h"
#include "engine/orders/exchange.h"
#include "engine/orders/order_stream.h"
#include "engine/orders/webhook.h"
#include "../../suite.h"

static struct fw_store *st;
static struct fw_arena a;
static struct fw_err err;

static void open_store(void)
{
	ck_assert_int_eq(
		fw_store_open(&(struct fw_store_config){.url = "memory:", .flags = FW_STORE_CREATE}, &st, &err), 0);
	fw_arena_init(&a, 0);
}

static void close_store(void)
{
	fw_store_close(st);
	fw_arena_finish(&a);
}

static struct fw_order order(const char *name, const char *query, const char *to)
{
	return (struct fw_order){.name = fw_str(name), .query = fw_str(query), .to = fw_str(to)};
}

/* ---- records --------------------------------------------------------------------------------- */

static int count(void *ctx, const struct fw_order *o)
{
	ck_assert(!o->broken);
	++*(int *)ctx;
	return 0;
}

START_TEST(an_order_is_read_as_it_was_added)
{
	struct fw_order o = order("security", "title:CVE OR \"remote code\" -podcast", "https://hooks.example.org/x"),
			r;

	o.changes = true;
	ck_assert_int_eq(fw_order_add(st, &a, &o, 1790000000000, &err), 0);
	ck_assert(o.id > 0 && webhook_secret_is_valid(o.secret[0]));
	ck_assert_int_eq(fw_order_get(st, o.name, &a, &r, &err), 0);
	ck_assert(fw_str_eq(r.query, o.query) && fw_str_eq(r.to, o.to) && fw_str_eq(r.secret[0], o.secret[0]));
	ck_assert(r.id == o.id && r.changes && r.state == FW_ORDER_ACTIVE && r.created_ms == 1790000000000);
	r.state = FW_ORDER_PAUSED;
	ck_assert_int_eq(fw_order_put(st, &r, &err), 0);
	ck_assert_int_eq(fw_order_get(st, o.name, &a, &r, &err), 0);
	ck_assert_int_eq(r.state, FW_ORDER_PAUSED);
}
END_TEST

START_TEST(a_name_is_taken_once)
{
	struct fw_order o = order("a", "x", "file:/tmp/a");
	int n = 0;

	ck_assert_int_eq(fw_order_add(st, &a, &o, 1, &err), 0);
	ck_assert_int_eq(fw_order_add(st, &a, &o, 1, &err), FW_EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "exists already"));
	ck_assert_int_eq(fw_order_list(st, count, &n, &err), 0);
	ck_assert_int_eq(n, 1);
	ck_assert_int_eq(fw_order_remove(st, FW_STR("a"), &err), 0);
	ck_assert_int_eq(fw_order_remove(st, FW_STR("a"), &err), FW_ENOTFOUND);
}
END_TEST

START_TEST(a_missing_order_suggests_a_name)
{
	struct fw_order o = order("security", "x", "file:/tmp/a"), r;

	ck_assert_int_eq(fw_order_add(st, &a, &o, 1, &err), 0);
	ck_assert_int_eq(fw_order_get(st, FW_STR("securty"), &a, &r, &err), FW_ENOTFOUND);
	ck_assert_str_eq(err.text, "no order 'securty' (did you mean 'security'?)");
}
END_TEST

START_TEST(orders_are_listed_across_pages)
{
	int n = 0;

	for (int i = 0; i < 450; i++) {
		char name[16];
		struct fw_order o;

		(void)fw_snprintf(name, sizeof(name), "order-%d", i);
		o = order(name, "x", "file:/tmp/a");
		ck_assert_int_eq(fw_order_add(st, &a, &o, 1, &err), 0);
	}
	ck_assert_int_eq(fw_order_list(st, count, &n, &err), 0);
	ck_assert_int_eq(n, 450);
}
END_TEST

START_TEST(bad_orders_are_refused_with_words)
{
	static const struct {
		const char *name, *query, *to, *words;
	} T[] = {
		{"a b", "x", "file:/x", "invalid name 'a b'"},
		{"", "x", "file:/x", "invalid name"},
		{"Upper", "x", "file:/x", "lower-case letters"},
		{".", "x", "file:/x", "begins with a letter or a digit"},
		{"..", "x", "file:/x", "invalid name '..'"},
		{"-rf", "x", "file:/x", "invalid name '-rf'"},
		{"_a", "x", "file:/x", "invalid name '_a'"},
		{"a", "titel:x", "file:/x", "query, at 1: "},
		{"a", "", "file:/x", "the query is empty"},
		{"a", "x", "", "no destination"},
		{"a", "x", "ftp://example.org/", "unknown destination 'ftp://example.org/'"},
		{"a", "x", "command:notify", "absolute path"},
		{"a", "x",
			"command:/x 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 "
			"1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4",
			"over 64 words: put them into a script"},
		{"a", "x", "file:/x/%Y%m%S", "knows %Y %m %d %H %M"},
		{"a", "x", "file:x", "absolute path"},
		{"a", "x", "redis:", "name of a stream"},
		{"a", "x", "redis:?maxlen=5", "name of a stream"},
		{"a", "x", "redis:s?maxlen=", "maxlen=: not a number from 0 to 1000000000"},
		{"a", "x", "redis:s?maxlen=-1", "maxlen=-1: not a number"},
		{"a", "x", "redis://h/?stream=s&maxlen=2000000000", "maxlen=2000000000: not a number"},
		{"a", "x", "https://", "host"},
	};

	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_order o = order(T[i].name, T[i].query, T[i].to);

		ck_assert_int_eq(fw_order_add(st, &a, &o, 1, &err), FW_EINVAL);
		ck_assert_msg(strstr(err.text, T[i].words) != NULL, "%s: %s", T[i].words, err.text);
	}
}
END_TEST

/* An order of an older version: its name is no longer given, but is still known. */
START_TEST(an_older_name_stays)
{
	struct fw_order o = order("-Old.", "x", "file:/x"), r;

	o.id = 1;
	ck_assert_int_eq(fw_order_put(st, &o, &err), 0);
	ck_assert_int_eq(fw_order_get(st, o.name, &a, &r, &err), 0);
	ck_assert_int_eq(fw_order_remove(st, o.name, &err), 0);
	ck_assert_int_eq(fw_order_get(st, o.name, &a, &r, &err), FW_ENOTFOUND);
}
END_TEST

START_TEST(a_stream_is_bounded) /* unless the order says that it is not */
{
	static const struct {
		const char *to, *url, *stream;
		int64_t max;
	} T[] = {
		{"redis:s", NULL, "s", 100000},
		{"redis:s?maxlen=7", NULL, "s", 7},
		{"redis:s?maxlen=0", NULL, "s", 0},
		{"redis:s?x=1", NULL, "s?x=1", 100000},
		{"redis://h:1/2?stream=s", "redis://h:1/2", "s", 100000},
		{"redis://h:1/2?maxlen=7&stream=s&timeout_ms=9", "redis://h:1/2?timeout_ms=9", "s", 7},
		{"redis://h:1/2?timeout_ms=9&stream=s&maxlen=0", "redis://h:1/2?timeout_ms=9", "s", 0},
	};

	for (size_t i = 0; i < FW_N(T) && (FW_HAVE_REDIS || !T[i].url); i++) { /* a build may lack Redis */
		struct order_stream s;

		ck_assert_msg(order_stream_read(&a, fw_str(T[i].to), &s, &err) == 0, "%s: %s", T[i].to, err.text);
		ck_assert_msg(fw_str_eq(s.stream, fw_str(T[i].stream)), "%s: %.*s", T[i].to, FW_STR_ARG(s.stream));
		ck_assert_int_eq(s.max, T[i].max);
		ck_assert(s.url ? T[i].url && strcmp(s.url, T[i].url) == 0 : !T[i].url);
	}
}
END_TEST

START_TEST(an_order_needs_a_valid_secret)
{
	struct fw_order o = order("a", "x", "https://example.org/");

	o.secret[0] = FW_STR("whsec_AAAA");
	ck_assert_int_eq(fw_order_add(st, &a, &o, 1, &err), FW_EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "invalid secret"));
	o = order("a", "x", "file:/tmp/a");
	o.secret[0] = FW_STR("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
	ck_assert_int_eq(fw_order_add(st, &a, &o, 1, &err), FW_EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "signs webhooks"));
}
END_TEST

START_TEST(changes_are_applied)
{
	struct fw_order_change change = {.query = FW_STR("y"), .changes = -1, .state = -1};
	struct fw_order o = order("a", "x", "file:/tmp/a"), r;

	ck_assert_int_eq(fw_order_add(st, &a, &o, 1, &err), 0);
	ck_assert_int_eq(fw_order_apply(st, o.name, &change, &a, &r, &err), 0);
	ck_assert(fw_str_eq(r.query, FW_STR("y")) && fw_str_eq(r.to, o.to) && !r.changes && !change.made_secret);
	change = (struct fw_order_change){.to = FW_STR("https://example.org/"), .changes = 1, .state = FW_ORDER_PAUSED};
	ck_assert_int_eq(fw_order_apply(st, o.name, &change, &a, &r, &err), 0);
	ck_assert(change.made_secret && r.secret[0].len && r.changes && r.state == FW_ORDER_PAUSED && r.id == o.id);
	change = (struct fw_order_change){.to = FW_STR("file:/tmp/b"), .changes = -1, .state = -1};
	ck_assert_int_eq(fw_order_apply(st, o.name, &change, &a, &r, &err), 0);
	ck_assert(!r.secret[0].len && !change.made_secret);
	change = (struct fw_order_change){.query = FW_STR("titel:y"), .changes = -1, .state = -1};
	ck_assert_int_eq(fw_order_apply(st, o.name, &change, &a, &r, &err), FW_EINVAL);
	ck_assert_int_eq(fw_order_apply(st, FW_STR("b"), &change, &a, &r, &err), FW_ENOTFOUND);
	o = order("d", "x", "");
	o.action = FW_ORDER_DROP;
	ck_assert_int_eq(fw_order_add(st, &a, &o, 1, &err), 0);
	change = (struct fw_order_change){.to = FW_STR("file:/tmp/b"), .changes = -1, .state = -1};
	ck_assert_int_eq(fw_order_apply(st, o.name, &change, &a, &r, &err), FW_EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "delivers nothing"));
}
END_TEST

static void break_order(const char *name)
{
	struct fw_record r = {
		.kind = FW_STR("order"), .key = fw_str(name), .value = FW_STR("{"), .at_ms = 1, .until_ms = FW_NO_DATE};

	ck_assert_int_eq(fw_store_record_put(st, &r, false, NULL, &err), 0);
}

START_TEST(a_broken_order_can_only_be_removed)
{
	struct fw_order_change change = {.query = FW_STR("y"), .changes = -1, .state = -1};
	struct fw_order_again again = {.n = 0};
	struct fw_order_status s;
	struct fw_order r;

	break_order("a");
	ck_assert_int_eq(fw_order_status_get(st, FW_STR("a"), &a, &s, &err), 0);
	ck_assert(s.order.broken);
	ck_assert_int_eq(fw_order_apply(st, FW_STR("a"), &change, &a, &r, &err), FW_EINVAL);
	ck_assert_int_eq(fw_order_retry(st, &s.order, &again, &err), FW_EINVAL);
	ck_assert_int_eq(fw_order_remove(st, FW_STR("a"), &err), 0);
	ck_assert_int_eq(fw_order_status_get(st, FW_STR("a"), &a, &s, &err), FW_ENOTFOUND);
}
END_TEST

/* ---- matches again --------------------------------------------------------------------------- */

#define DEAD 2300
#define ENTRIES 2500

static int count_status(void *ctx, const struct fw_order_status *s)
{
	ck_assert(fw_str_eq(s->order.name, FW_STR("a")));
	*(struct fw_order_status *)ctx = *s;
	return 0;
}

static struct fw_order_status the_status(void)
{
	struct fw_order_status s = {.pending_n = -1};

	ck_assert_int_eq(fw_order_status_list(st, count_status, &s, &err), 0);
	return s;
}

static void count_steps(void *ctx, const struct fw_order_again *r)
{
	ck_assert(r->n > 0);
	++*(int *)ctx;
}

static int no_match(void *ctx, const struct fw_match *m)
{
	(void)ctx;
	ck_abort_msg("match %lld is left", (long long)m->change_id);
}

START_TEST(dead_letters_wait_again)
{
	struct fw_match *m = fw_arena_calloc(&a, DEAD, sizeof(*m));
	struct fw_order o = order("a", "x", "file:/tmp/a");
	int steps = 0;
	struct fw_order_again again = {.progress = count_steps, .ctx = &steps};

	ck_assert_int_eq(fw_order_add(st, &a, &o, 1, &err), 0);
	for (int64_t i = 0; i < DEAD; i++)
		m[i] = (struct fw_match){
			.order_id = o.id, .change_id = i + 1, .entry_id = i + 1, .feed_id = 1, .at_ms = 5};
	ck_assert_int_eq(fw_store_match_put(st, m, DEAD, true, &err), 0);
	ck_assert(the_status().dead_n == DEAD && the_status().pending_n == 0);
	ck_assert_int_eq(fw_order_retry(st, &o, &again, &err), 0);
	ck_assert(again.n == DEAD && steps == 3);
	ck_assert(the_status().dead_n == 0 && the_status().pending_n == DEAD);
	ck_assert_int_gt(the_status().oldest_ms, 5); /* else they would be dead again at the next failure */
	ck_assert_int_eq(fw_order_remove(st, o.name, &err), 0);
	ck_assert_int_eq(
		fw_store_match_list(st, &(struct fw_match_query){.order_id = o.id, .limit = 1}, no_match, NULL, &err),
		0);
}
END_TEST

/* Push ENTRIES entries; every tenth has the word. */
static void push_entries(void)
{
	struct fw_entry_row *e = fw_arena_calloc(&a, ENTRIES, sizeof(*e));
	struct fw_feed_new f = {.url = FW_STR("https://example.org/feed")};
	struct fw_outcome out = {.entries = e, .entry_n = ENTRIES, .visit = {.at_ms = 1000, .kind = FW_VISIT_PUSHED}};
	struct fw_prune p = {.index = true};
	struct fw_feed feed = {.id = 0};

	ck_assert_int_eq(fw_store_subscribe(st, &f, 1, &err), 0);
	for (int i = 0; i < ENTRIES; i++) {
		e[i].key[0] = (unsigned char)i;
		e[i].key[1] = (unsigned char)(i >> 8);
		e[i].hash = (uint64_t)i;
		e[i].title = i % 10 ? FW_STR("other") : FW_STR("wanted");
		e[i].published_ms = e[i].updated_ms = FW_NO_DATE;
		e[i].seen_ms = e[i].changed_ms = 1000;
		e[i].revision = 1;
	}
	feed.id = out.feed_id = out.visit.feed_id = f.id;
	out.feed = &feed;
	ck_assert_int_eq(fw_store_push(st, &out, 1, &err), 0);
	ck_assert_int_eq(out.rc, 0);
	do
		ck_assert_int_eq(fw_store_prune(st, &p, &err), 0);
	while (p.more);
}

START_TEST(old_entries_are_matched_again)
{
	struct fw_order o = order("a", "wanted", "file:/tmp/a");
	int steps = 0;
	struct fw_order_again again = {.progress = count_steps, .ctx = &steps};

	push_entries();
	ck_assert_int_eq(fw_order_add(st, &a, &o, 1, &err), 0);
	ck_assert_int_eq(fw_order_replay(st, &o, 1, &again, &err), 0);
	ck_assert_int_eq(again.n, ENTRIES / 10);
	ck_assert_int_eq(again.unindexed_n, 0);
	ck_assert(steps == 1 && the_status().pending_n == ENTRIES / 10);
	o.query = FW_STR("oth*"); /* more than one step */
	again.n = 0;
	ck_assert_int_eq(fw_order_replay(st, &o, 1, &again, &err), 0);
	ck_assert(again.n == ENTRIES - ENTRIES / 10 && steps == 4 && the_status().pending_n == ENTRIES);
	again.n = 0;
	ck_assert_int_eq(fw_order_replay(st, &o, INT64_MAX / 2, &again, &err), 0);
	ck_assert_int_eq(again.n, 0);
	o.state = FW_ORDER_ENDED;
	ck_assert_int_eq(fw_order_replay(st, &o, 1, &again, &err), FW_EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "resume it first"));
	o.action = FW_ORDER_DROP;
	ck_assert_int_eq(fw_order_replay(st, &o, 1, &again, &err), FW_EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "delivers nothing"));
}
END_TEST

START_TEST(a_second_secret_is_kept_while_one_is_rotated)
{
	struct fw_order o = order("a", "x", "https://example.org/"), r;

	ck_assert_int_eq(fw_order_add(st, &a, &o, 1, &err), 0);
	ck_assert_int_eq(fw_order_rotate(st, o.name, &a, &r, &err), 0);
	ck_assert(fw_str_eq(r.secret[1], o.secret[0]) && !fw_str_eq(r.secret[0], o.secret[0]));
	ck_assert_int_eq(fw_order_get(st, o.name, &a, &o, &err), 0);
	ck_assert(fw_str_eq(r.secret[0], o.secret[0]) && fw_str_eq(r.secret[1], o.secret[1]));
	o = order("b", "x", "file:/x");
	ck_assert_int_eq(fw_order_add(st, &a, &o, 1, &err), 0);
	ck_assert_int_eq(fw_order_rotate(st, o.name, &a, &r, &err), FW_EINVAL);
}
END_TEST

START_TEST(a_delivery_is_read_as_it_was_put)
{
	struct fw_order_delivery d,
		w = {.order_id = 7,
			.batch_n = 4,
			.id = {3, 8, 9},
			.id_n = 3,
			.fail_n = 2,
			.since_ms = 5,
			.woken_ms = 5,
			.next_ms = 6,
			.failing_since_ms = 5,
			.status = 503,
			.error = FW_STR("busy"),
			.delivered_n = 11};

	ck_assert_int_eq(fw_order_delivery_get(st, 7, &a, &d, &err), 0);
	ck_assert(d.order_id == 7 && !d.id_n && !d.fail_n);
	ck_assert_int_eq(fw_order_delivery_put(st, &w, 10, &err), 0);
	ck_assert_int_eq(fw_order_delivery_get(st, 7, &a, &d, &err), 0);
	ck_assert(d.id_n == 3 && d.id[0] == 3 && d.id[1] == 8 && d.id[2] == 9 && d.batch_n == 4 && d.fail_n == 2);
	ck_assert(d.woken_ms == 5 && d.status == 503 && d.delivered_n == 11);
	ck_assert(fw_str_eq(d.error, w.error));
}
END_TEST

/* ---- exchanges ------------------------------------------------------------------------------- */

START_TEST(an_exchange_has_what_its_address_says)
{
	static const struct {
		const char *to, *user, *password, *host, *vhost, *exchange, *routing_key;
		int port;
	} EVERY[] = {
		{"amqp://h?exchange=e", "guest", "guest", "h", "/", "e", "", 5672},
		{"amqp://h/?routing_key=q", "guest", "guest", "h", "/", "", "q", 5672},
		{"amqp://u@h/v?exchange=e&routing_key=k.*", "u", "", "h", "v", "e", "k.*", 5672},
		{"AMQP://u%40x:p%2F%3A@mq.example:1/%2Fa%2Fb?routing_key=%26&exchange=%C3%A4", "u@x",
			"p/:", "mq.example", "/a/b", "\303\244", "&", 1},
		{"amqp://[::1]:65535/%2F?exchange=e&routing_key=", "guest", "guest", "::1", "/", "e", "", 65535},
	};

	for (size_t i = 0; exchange_library() && i < FW_N(EVERY); i++) {
		struct order_exchange x;
		enum fw_order_channel channel;

		ck_assert_int_eq(order_exchange_read(&a, fw_str(EVERY[i].to), &x, &err), 0);
		ck_assert_str_eq(x.user.p, EVERY[i].user);
		ck_assert_str_eq(x.password.p, EVERY[i].password);
		ck_assert_str_eq(x.host.p, EVERY[i].host);
		ck_assert_str_eq(x.vhost.p, EVERY[i].vhost);
		ck_assert_str_eq(x.exchange.p, EVERY[i].exchange);
		ck_assert_str_eq(x.routing_key.p, EVERY[i].routing_key);
		ck_assert_int_eq(x.port, EVERY[i].port);
		ck_assert_int_eq(fw_order_check_to(fw_str(EVERY[i].to), &channel, &err), 0);
		ck_assert_int_eq(channel, FW_ORDER_AMQP);
	}
}
END_TEST

START_TEST(a_wrong_exchange_is_refused_with_words)
{
	char many[400];
	const struct {
		const char *to, *words;
	} WRONG[] = {
		{"amqp:h", "needs a host"},
		{"amqp:///v?exchange=e", "needs a host"},
		{"amqp://h", "needs an exchange, or a queue"},
		{"amqp://h/v?exchange=&routing_key=", "needs an exchange, or a queue"},
		{"amqp://h/v?exchange=e&key=k", "amqp: unknown option \"key\": known are exchange, routing_key"},
		{"amqp://h/v?exchange=e&exchange=f", "is repeated"},
		{"amqp://u:p@h:0/v?exchange=e", "amqp: invalid port"},
		{"amqp://u:%zz@h/v?exchange=e", "amqp: password: invalid percent escape"},
		{"amqp://h/v?exchange=%00", "invalid percent escape"},
		{many, "up to 255 bytes each"},
		{"amqps://h/v?exchange=e", "TLS proxy"},
	};

	memset(many, 'x', sizeof(many));
	memcpy(many, "amqp://h/v?exchange=", 20);
	many[20 + 256] = '\0';
	for (size_t i = 0; i < FW_N(WRONG); i++) {
		struct order_exchange x;
		const char *words = exchange_library() ? WRONG[i].words : "this build has no AMQP";

		ck_assert_int_eq(order_exchange_read(&a, fw_str(WRONG[i].to), &x, &err), FW_EINVAL);
		ck_assert_msg(strstr(err.text, words) != NULL, "%s: %s", WRONG[i].to, err.text);
	}
}
END_TEST

/* ---- signatures ------------------------------------------------------------------------------ */

/* The example of Standard Webhooks 1.0.0. */
START_TEST(a_webhook_is_signed_as_the_standard_has_it)
{
	static const char WANT[] = "webhook-id: msg_loFOjxBNrRLzqYUf\0webhook-timestamp: 1731705121\0"
				   "webhook-signature: v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=";
	struct fw_order o = {.secret = {FW_STR("whsec_plJ3nmyCDGBKInavdOK15jsl")}};
	struct fw_buf b = FW_BUF_INIT(0);

	ck_assert_int_eq(webhook_headers(&o, "msg_loFOjxBNrRLzqYUf", 1731705121999,
				 FW_STR("{\"event_type\":\"ping\",\"data\":{\"success\":true}}"), &b, &err),
		0);
	ck_assert(fw_str_eq(fw_buf_str(&b), (struct fw_str){WANT, sizeof(WANT)}));
	fw_buf_reset(&b);
	o.secret[1] = FW_STR("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
	ck_assert_int_eq(webhook_headers(&o, "1", 1731705121000, FW_STR("{}"), &b, &err), 0);
	ck_assert_ptr_nonnull(fw_str_find(fw_buf_str(&b), FW_STR("= v1,")));
	fw_buf_finish(&b);
}
END_TEST

START_TEST(bad_secrets_are_refused)
{
	static const char *const BAD[] = {"", "whsec_", "plJ3nmyCDGBKInavdOK15jsl", "whsec_plJ3nmyCDGBKInavdOK15j",
		"whsec_AAAA", "whsec_!!!!nmyCDGBKInavdOK15jslplJ3nmyC"};

	for (size_t i = 0; i < FW_N(BAD); i++)
		ck_assert(!webhook_secret_is_valid(fw_str(BAD[i])));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("engine orders");
	TCase *t = tcase_create("all");
	const TTest *const every[] = {an_order_is_read_as_it_was_added, a_name_is_taken_once,
		a_missing_order_suggests_a_name, orders_are_listed_across_pages, bad_orders_are_refused_with_words,
		an_older_name_stays, a_second_secret_is_kept_while_one_is_rotated, a_delivery_is_read_as_it_was_put,
		an_exchange_has_what_its_address_says, a_wrong_exchange_is_refused_with_words,
		a_webhook_is_signed_as_the_standard_has_it, bad_secrets_are_refused, a_stream_is_bounded,
		an_order_needs_a_valid_secret, changes_are_applied, a_broken_order_can_only_be_removed,
		dead_letters_wait_again, old_entries_are_matched_again};

	tcase_add_checked_fixture(t, open_store, close_store);
	for (size_t i = 0; i < FW_N(every); i++)
		tcase_add_test(t, every[i]);
	suite_add_tcase(s, t);
	return run_suite(s);
}
