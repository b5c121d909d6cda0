/* SPDX-License-Identifier: ISC */
/*
 * What other programs put into a store on Redis by RPUSH, and read from its stream of new entries.
 * inbox.c has what is the same on all stores.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/url.h"
#include "redis_fixture.h"
#include "store/inbox.h"
#include "work.h"

#undef popen /* banned in programs; here it runs a command of the test's own */

/* ---- a store, and commands ------------------------------------------------------------------- */

static struct store *store_made(void)
{
	if (!server)
		server_up(NULL);
	return open_at(url, FW_STORE_CREATE);
}

/* A command; "@" becomes what the names of the lists begin with. */
FW_PRINTF(1, 2) static const char *run(const char *fmt, ...)
{
	static char words[4096];
	struct fw_buf b = FW_BUF_INIT(0);
	va_list ap;

	for (const char *at = fmt; *at; at++) {
		if (*at == '@')
			fw_buf_adds(&b, "feedwheel:");
		else
			fw_buf_addc(&b, *at);
	}
	fw_buf_addc(&b, '\0');
	va_start(ap, fmt);
	ck_assert_int_lt(vsnprintf(words, sizeof(words), b.p, ap), (int)sizeof(words));
	va_end(ap);
	fw_buf_finish(&b);
	return say(words);
}

#define RUN(...)                                                                      \
	do {                                                                          \
		const char *answer_ = run(__VA_ARGS__);                               \
		ck_assert_msg(answer_[0] == '+' || answer_[0] == ':', "%s", answer_); \
	} while (0)

/* n rows; row: in Lua, i from 1 */
static void push_many(const char *list, int n, const char *row)
{
	RUN("EVAL \"for i = 1, %d do redis.call('RPUSH', KEYS[1], %s) end return 1\" 1 @%s", n, row, list);
}

/* Does a reply hold these words? */
static void holds(const char *answer, const char *words)
{
	ck_assert_msg(strstr(answer, words) != NULL, "\"%s\" is not in: %s", words, answer);
}

static int length(const char *list)
{
	int n = -1;

	ck_assert_int_eq(sscanf(run("LLEN @%s", list), ":%d", &n), 1);
	return n;
}

/* As the engine decides, in short. */
static int feed_of(void *ctx, const struct store_inbox_feed *row, struct fw_feed_new *feed, struct fw_err *err)
{
	char host[256];

	(void)ctx;
	if (!fw_url_host(row->url, host, sizeof(host)))
		return fw_err_set(err, FW_EINVAL, "no address");
	*feed = (struct fw_feed_new){.url = row->url,
		.user_title = row->title,
		.folder = row->folder,
		.interval_ms = fw_str_eq(row->interval, FW_STR("1h")) ? 3600000 : 0};
	return 0;
}

static struct store_inbox take(struct store *st, size_t limit)
{
	struct store_inbox in = {.limit = limit, .feed = feed_of};

	DONE(st->driver->inbox(st, &in, &drv_err));
	return in;
}

static struct fw_store_stats figures(struct store *st)
{
	struct fw_store_stats s;

	DONE(st->driver->stats(st, &s, &drv_err));
	return s;
}

/* 0: no feed has this address. */
static int64_t feed_at(struct store *st, const char *address)
{
	struct fw_feed f = {0};
	struct fw_arena a;
	int rc;

	fw_arena_init(&a, 0);
	rc = fw_store_feed_find((struct fw_store *)st, 0, fw_str(address), &a, &f, &drv_err);
	ck_assert_msg(!rc || rc == FW_ENOTFOUND, "%s", drv_err.text);
	fw_arena_finish(&a);
	return rc ? 0 : f.id;
}

static bool is_due_first(struct store *st, const char *address)
{
	const struct store_due *due = drv_due_of(st, feed_at(st, address));

	return due && due->due_at_ms == FW_DUE_FIRST;
}

static void end(struct store *st)
{
	drv_end(st);
	server_down(SIGKILL);
}

/* ---- addresses ------------------------------------------------------------------------------- */

START_TEST(pushed_addresses_are_fetched_at_once)
{
	struct store *st = store_made(), *waiter = open_at(url, 0);
	struct store_lease *l = drv_join(st, "w", LONG_MS);
	int shard = store_host_shard(store_host_id(FW_STR("a.example")));
	int64_t version = drv_version(st, l, shard);
	bool changed = false;

	DONE(waiter->driver->wait(waiter, -1, 0, &changed, &drv_err)); /* it listens from here on */
	RUN("RPUSH @feeds_to_fetch https://a.example/1 https://a.example/2");
	RUN("PUBLISH feedwheel:changed:0 go");
	DONE(waiter->driver->wait(waiter, -1, 60000, &changed, &drv_err));
	ck_assert(changed);
	ck_assert_int_eq(figures(st).inbox_n, 2);
	ck_assert_uint_eq(take(st, 0).feed_n, 0);
	ck_assert(take(st, 0).more && length("feeds_to_fetch") == 2);
	ck_assert_uint_eq(take(waiter, 10).new_n, 2);
	ck_assert_int_eq(length("feeds_to_fetch"), 0);
	ck_assert_int_eq(figures(st).inbox_n, 0);
	ck_assert(is_due_first(st, "https://a.example/1") && is_due_first(st, "https://a.example/2"));
	ck_assert_int_gt(drv_version(st, l, shard), version);
	DONE(st->driver->wait(st, -1, 0, &changed, &drv_err));
	RUN("RPUSH @feeds_to_fetch https://a.example/3");
	ck_assert_uint_eq(take(waiter, 10).new_n, 1); /* it wakes the shard's owner */
	DONE(st->driver->wait(st, -1, 60000, &changed, &drv_err));
	ck_assert(changed);
	ck_assert_uint_eq(take(st, 10).feed_n, 0);
	waiter->driver->close(waiter);
	drv_leave(st, l);
	end(st);
}
END_TEST

START_TEST(known_address_pushed_is_due_first)
{
	struct store *st = store_made();
	int64_t id = drv_feed(st, "https://a.example/", NOW), paused = drv_feed(st, "https://p.example/", NOW);
	struct store_lease *l = drv_join(st, "w", LONG_MS);
	int shard = store_host_shard(store_host_id(FW_STR("a.example")));
	int64_t version = drv_version(st, l, shard);
	struct store_inbox in;

	DONE(st->driver->feed_set(
		st, &(struct fw_feed){.id = paused, .status = FW_FEED_PAUSED}, FW_SET_STATUS, &drv_err));
	RUN("RPUSH @feeds_to_fetch '{\"url\": \"https://a.example/\", \"title\": \"Other\", \"folder\": \"F\"}' "
	    "https://p.example/ https://a.example/");
	in = take(st, 10);
	ck_assert(in.feed_n == 3 && in.new_n == 0 && in.refused_n == 1 && !in.more);
	ck_assert_int_eq(feed_at(st, "https://a.example/"), id);
	ck_assert(is_due_first(st, "https://a.example/"));
	ck_assert(!drv_find(st, id)->user_title.len && !drv_find(st, id)->folder.len);
	ck_assert_int_gt(drv_version(st, l, shard), version);
	ck_assert_int_eq(drv_find(st, paused)->due_at_ms, NOW);
	holds(run("LRANGE @feeds_to_fetch_refused 0 -1"),
		"{\"url\":\"https://p.example/\",\"reason\":\"the feed is paused (to poll it again, run 'feedwheel "
		"resume')\",\"at_ms\":");
	ck_assert_int_eq(figures(st).inbox_refused_n, 1);
	drv_leave(st, l);
	end(st);
}
END_TEST

START_TEST(rows_of_json) /* what they say, and what is refused with which reason */
{
	static const struct {
		const char *row, *said;
	} T[] = {
		{"'{\"url\": \"https://x.example/\"'", "not a JSON object: "},
		{"'{\"url\": 7}'", "member \\\"url\\\": not a text"},
		{"'{\"uri\": \"https://x.example/\"}'", "unknown member \\\"uri\\\""},
		{"'{\"url\": \"https://x.example/\", \"url\": \"https://y.example/\"}'", "duplicate object key"},
		{"'{}'", "no address"},
		{"'[]'", "\"url\":\"[]\",\"reason\":\"no address\""},
		{"\"\\xff\\x00\\xfe\"", "no address"},
		{"\"\"", "no address"},
		{"'{\"url\": \"nowhere\", \"folder\": \"F\", \"interval\": \"1h\"}'",
			"{\"url\":\"nowhere\",\"folder\":\"F\",\"interval\":\"1h\",\"reason\":\"no address\","
			"\"at_ms\":"},
	};
	struct store *st = store_made();
	const struct fw_feed *f;
	struct store_inbox in;

	RUN("RPUSH @feeds_to_fetch '{\"url\": \"https://a.example/\", \"title\": \"T\\u00e4\", \"folder\": \"F/G\", "
	    "\"interval\": \"1h\"}'");
	in = take(st, 10);
	ck_assert(in.feed_n == 1 && in.new_n == 1 && !in.refused_n);
	f = drv_find(st, feed_at(st, "https://a.example/"));
	ck_assert(fw_str_eq(f->user_title, FW_STR("T\xc3\xa4")) && fw_str_eq(f->folder, FW_STR("F/G")));
	ck_assert_int_eq(f->interval_ms, 3600000);
	ck_assert_int_ge(f->created_ms, NOW);
	for (size_t i = 0; i < FW_N(T); i++) {
		RUN("RPUSH @feeds_to_fetch %s https://b.example/%zu", T[i].row, i);
		in = take(st, 10);
		ck_assert(in.feed_n == 2 && in.new_n == 1 && in.refused_n == 1);
		ck_assert(is_due_first(st, (snprintf(drv_err.text, 60, "https://b.example/%zu", i), drv_err.text)));
		holds(run("LRANGE @feeds_to_fetch_refused -1 -1"), T[i].said);
	}
	ck_assert_int_eq(length("feeds_to_fetch_refused"), (int)FW_N(T));
	ck_assert_int_eq(figures(st).inbox_refused_n, (int)FW_N(T));
	ck_assert_int_eq(figures(st).feed_n, 1 + (int)FW_N(T));
	end(st);
}
END_TEST

START_TEST(addresses_of_the_dead) /* claimed by processes of an earlier version */
{
	struct store *st = store_made();
	int64_t a = drv_feed(st, "https://a.example/", NOW);
	struct store_inbox in;

	RUN("HSET {feedwheel/0}:urls https://dead.example/ 77");
	RUN("HSET {feedwheel/0}:urls https://next.example/ %d", (int)a);
	RUN("RPUSH @feeds_to_fetch https://dead.example/ https://next.example/");
	in = take(st, 10);
	ck_assert(in.feed_n == 2 && !in.refused_n);
	ck_assert(!drv_is(st, 77) && feed_at(st, "https://next.example/") != a);
	ck_assert(is_due_first(st, "https://dead.example/") && is_due_first(st, "https://next.example/"));
	ck_assert_int_eq(feed_at(st, "https://a.example/"), a);
	end(st);
}
END_TEST

/* ---- control --------------------------------------------------------------------------------- */

static void pause_is(struct store *st, bool paused)
{
	struct fw_control c;

	DONE(fw_store_control_get((struct fw_store *)st, -1, &c, &drv_err));
	ck_assert_int_eq(c.paused, paused);
}

static void message_is(struct store *st, int64_t *after, enum fw_control_kind kind, const char *worker)
{
	struct fw_control c;

	DONE(fw_store_control_get((struct fw_store *)st, *after, &c, &drv_err));
	ck_assert_int_eq(c.kind, kind);
	if (kind != FW_CONTROL_NONE)
		ck_assert_str_eq(c.worker, worker);
	*after = kind == FW_CONTROL_NONE ? *after : c.id;
}

START_TEST(messages_pushed_by_hand)
{
	static const char *const WRONG[][2] = {
		{"dance",
			"{\"row\":\"dance\",\"reason\":\"\\\"dance\\\": not stop, pause, resume or reload\","
			"\"at_ms\":"},
		{"STOP", "not stop, pause"},
		{"'{\"command\": \"stop\", \"for\": \"w\"}'", "unknown member \\\"for\\\""},
		{"'{\"command\": }'", "not a JSON object"},
	};
	struct store *st = store_made(), *waiter = open_at(url, 0);
	struct store_inbox in;
	bool changed = false;
	int64_t after = 0;

	DONE(waiter->driver->wait(waiter, -1, 0, &changed, &drv_err));
	RUN("RPUSH @feeds_to_fetch https://a.example/");
	RUN("RPUSH @control reload 'stop host-1 worker 2' pause '{\"command\": \"resume\", \"worker\": \"w\"}'");
	in = take(st, 0);
	ck_assert(in.control_n == 4 && !in.feed_n && !in.refused_n && in.more);
	DONE(waiter->driver->wait(waiter, -1, 60000, &changed, &drv_err));
	ck_assert(changed);
	message_is(st, &after, FW_CONTROL_RELOAD, "");
	message_is(st, &after, FW_CONTROL_STOP, "host-1 worker 2");
	message_is(st, &after, FW_CONTROL_PAUSE, "");
	message_is(st, &after, FW_CONTROL_RESUME, "w"); /* one alone: all stay paused */
	message_is(st, &after, FW_CONTROL_NONE, NULL);
	pause_is(st, true);
	RUN("RPUSH @control resume");
	in = take(st, 5);
	ck_assert(in.control_n == 1 && in.feed_n == 1 && !in.more);
	message_is(st, &after, FW_CONTROL_RESUME, "");
	pause_is(st, false);
	for (size_t i = 0; i < FW_N(WRONG); i++) {
		RUN("RPUSH @control %s stop", WRONG[i][0]);
		in = take(st, 5);
		ck_assert(in.control_n == 2 && in.refused_n == 1);
		message_is(st, &after, FW_CONTROL_STOP, "");
		message_is(st, &after, FW_CONTROL_NONE, NULL);
		pause_is(st, false);
		holds(run("LRANGE @control_refused -1 -1"), WRONG[i][1]);
	}
	ck_assert_int_eq(length("control_refused"), (int)FW_N(WRONG));
	ck_assert_int_eq(figures(st).inbox_refused_n, (int)FW_N(WRONG));
	RUN("RPUSH @control \"stop\\n\""); /* redis-cli -x */
	RUN("RPUSH @feeds_to_fetch \" {\\\"url\\\": \\\"https://n.example/\\\"}\\n\" \"https://m.example/\\n\"");
	in = take(st, 5);
	ck_assert(in.control_n == 1 && in.feed_n == 2 && !in.refused_n);
	message_is(st, &after, FW_CONTROL_STOP, "");
	ck_assert(is_due_first(st, "https://n.example/") && is_due_first(st, "https://m.example/"));
	/* a message of the future, from a clock that was set back: the next one is above it */
	RUN("EVAL \"local k = '~control 00009000000000000000' redis.call('HSET', KEYS[1] .. 'records', k, '1 - 4') "
	    "return redis.call('ZADD', KEYS[1] .. 'record_names', 0, k)\" 1 {feedwheel/0}:");
	message_is(st, &after, FW_CONTROL_RELOAD, "");
	RUN("RPUSH @control pause");
	(void)take(st, 0);
	message_is(st, &after, FW_CONTROL_PAUSE, "");
	pause_is(st, true);
	ck_assert_int_eq(after, INT64_C(9000000000000001));
	waiter->driver->close(waiter);
	end(st);
}
END_TEST

/* A command chose its key, but a taker was faster: the command has to choose again. */
START_TEST(no_message_is_below_the_last)
{
	struct store *st = store_made();
	struct fw_record r = {.kind = FW_STR(STORE_CONTROL_KIND),
		.key = FW_STR("00000000000000000007"),
		.value = FW_STR("1"),
		.at_ms = NOW,
		.until_ms = FW_NO_DATE};
	bool was = true;

	DONE(st->driver->record_put(st, &r, true, true, &was, &drv_err));
	ck_assert(!was);
	r.key = FW_STR("00000000000000000006");
	DONE(st->driver->record_put(st, &r, true, true, &was, &drv_err));
	ck_assert(was);
	r.key = FW_STR("00000000000000000008");
	DONE(st->driver->record_put(st, &r, true, true, &was, &drv_err));
	ck_assert(!was);
	r.kind = FW_STR("~contrary"); /* another kind */
	r.key = FW_STR("00000000000000000005");
	DONE(st->driver->record_put(st, &r, true, true, &was, &drv_err));
	ck_assert(!was);
	r.kind = FW_STR("~contra");
	DONE(st->driver->record_put(st, &r, true, true, &was, &drv_err));
	ck_assert(!was);
	r.key = FW_STR("00000000000000000004"); /* any record but a message */
	DONE(st->driver->record_put(st, &r, true, false, &was, &drv_err));
	ck_assert(!was);
	end(st);
}
END_TEST

/* ---- many rows ------------------------------------------------------------------------------- */

START_TEST(many_rows_come_in_batches)
{
	struct store *st = store_made();
	struct store_inbox in;
	int64_t after = 0;
	push_many("feeds_to_fetch", 100000, "'https://h' .. i % 100 .. '.example/' .. i");
	push_many("control", 10000, "i % 2 == 0 and 'pause' or 'resume'");
	in = take(st, 200);
	ck_assert(in.control_n == 10000 && in.feed_n == 200 && in.new_n == 200 && in.more);
	for (int i = 0; i < 10000; i++)
		message_is(st, &after, i % 2 ? FW_CONTROL_PAUSE : FW_CONTROL_RESUME, "");
	message_is(st, &after, FW_CONTROL_NONE, NULL);
	pause_is(st, true);
	in = take(st, 100000); /* however many the caller wants */
	ck_assert(in.feed_n == 1000 && in.new_n == 1000 && in.more);
	ck_assert_int_eq(length("feeds_to_fetch"), 98800);
	ck_assert(feed_at(st, "https://h0.example/1200") && !feed_at(st, "https://h1.example/1201"));
	RUN("DEL @feeds_to_fetch");
	/* the refused ones are bounded, too */
	push_many("feeds_to_fetch_refused", 100000, "i");
	RUN("RPUSH @feeds_to_fetch one two three");
	ck_assert_uint_eq(take(st, 10).refused_n, 3);
	ck_assert_int_eq(length("feeds_to_fetch_refused"), 100000);
	holds(run("LINDEX @feeds_to_fetch_refused 0"), "$1\r\n4\r\n");
	holds(run("LINDEX @feeds_to_fetch_refused -1"), "three");
	end(st);
}
END_TEST

/* ---- a taker between two commands, and beside others ----------------------------------------- */

/*
 * A relay between the taker of this process and the server: it counts what the taker sends, and
 * what it gets, and can kill this process at one of these moments.
 */
#define RELAYED_MAX 64

static struct relay {
	char path[260];
	int fd, n, pair[RELAYED_MAX][2];
	int deadly; /* which one of them kills the taker; -1: none */
	bool late;  /* not before the server gets it, but before the taker gets the reply */
	_Atomic int sent, replied, armed;
} relay;

static int unix_socket(const char *path, bool listens)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert(fw_str_copy(sa.sun_path, sizeof(sa.sun_path), fw_str(path)));
	ck_assert_int_eq((listens ? bind : connect)(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	ck_assert(!listens || listen(fd, RELAYED_MAX) == 0);
	return fd;
}

static void relay_pass(int from, int to, bool taker)
{
	static char bytes[1 << 20];
	ssize_t n = read(from, bytes, sizeof(bytes));

	if (n <= 0) {
		shutdown(to, SHUT_RDWR);
		return;
	}
	if (relay.armed && (taker ? relay.sent++ : relay.replied++) == relay.deadly && taker != relay.late)
		kill(getpid(), SIGKILL);
	for (ssize_t at = 0, put; at < n; at += put) {
		put = write(to, bytes + at, (size_t)(n - at));
		if (put <= 0)
			return;
	}
}

static void *relay_run(void *ctx)
{
	struct pollfd p[1 + 2 * RELAYED_MAX];

	(void)ctx;
	for (;;) {
		p[0] = (struct pollfd){.fd = relay.fd, .events = POLLIN};
		for (int i = 0; i < 2 * relay.n; i++)
			p[1 + i] = (struct pollfd){.fd = relay.pair[i / 2][i % 2], .events = POLLIN};
		if (poll(p, (nfds_t)(1 + 2 * relay.n), -1) <= 0)
			continue;
		for (int i = 0; i < 2 * relay.n; i++) {
			if (p[1 + i].revents)
				relay_pass(relay.pair[i / 2][i % 2], relay.pair[i / 2][1 - i % 2], i % 2 == 0);
		}
		if (p[0].revents && relay.n < RELAYED_MAX) {
			relay.pair[relay.n][0] = accept(relay.fd, NULL, NULL);
			relay.pair[relay.n++][1] = unix_socket(sock, false);
		}
	}
	return NULL;
}

/* A store whose commands pass the relay; armed from here on. */
static struct store *relayed(int deadly, bool late)
{
	static char at[420];
	struct store *st;
	pthread_t thread;

	relay = (struct relay){.deadly = deadly, .late = late};
	ck_assert(fw_snprintf(relay.path, sizeof(relay.path), "%s/r%d", dir, (int)getpid()));
	relay.fd = unix_socket(relay.path, true);
	ck_assert_int_eq(pthread_create(&thread, NULL, relay_run, NULL), 0);
	ck_assert(fw_snprintf(at, sizeof(at), "redis+unix://%s", relay.path));
	st = open_at(at, 0);
	relay.armed = 1;
	return st;
}

START_TEST(empty_lists_cost_one_round_trip)
{
	struct store *st = store_made(), *through;

	through = relayed(-1, false);
	ck_assert(!take(through, 100).more);
	ck_assert_int_eq(relay.sent, 1);
	RUN("RPUSH @feeds_to_fetch https://a.example/ https://b.example/");
	RUN("RPUSH @control pause");
	relay.sent = 0;
	ck_assert_uint_eq(take(through, 100).feed_n, 2);
	ck_assert_int_eq(relay.sent, 2); /* the look, and one call of the library for all */
	through->driver->close(through);
	end(st);
}
END_TEST

static bool taker_is_killed(int nth, bool late)
{
	struct store_inbox in = {.limit = 10, .feed = feed_of};
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		struct store *st = relayed(nth, late);

		_exit(st->driver->inbox(st, &in, &drv_err) ? 1 : 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFSIGNALED(status) || (WIFEXITED(status) && !WEXITSTATUS(status)), "%x", (unsigned)status);
	return WIFSIGNALED(status);
}

/* No row is lost; a message is there once, a feed too. nth: of all takers so far. */
static bool kill_leaves_nothing_half_done(struct store *st, int moment, bool late, int nth, int64_t *after)
{
	int64_t known = feed_at(st, "https://known.example/");
	bool killed, waits;
	char address[60];

	DONE(st->driver->feed_set(st, &(struct fw_feed){.id = known, .due_at_ms = NOW + nth}, FW_SET_DUE, &drv_err));
	ck_assert(fw_snprintf(address, sizeof(address), "https://new%d.example/", nth));
	RUN("RPUSH @control %s", nth % 2 ? "resume" : "pause");
	RUN("RPUSH @feeds_to_fetch %s https://known.example/ nowhere", address);
	killed = taker_is_killed(moment, late);
	waits = length("feeds_to_fetch") > 0;
	ck_assert(killed || !waits);
	ck_assert_int_eq(length("feeds_to_fetch"), waits ? 3 : 0); /* all or nothing */
	ck_assert_int_eq(length("control"), waits);
	ck_assert_int_eq(length("feeds_to_fetch_refused"), nth + !waits);
	ck_assert_int_eq(is_due_first(st, address), !waits);
	ck_assert_int_eq(is_due_first(st, "https://known.example/"), !waits);
	if (waits)
		ck_assert_uint_eq(take(st, 10).feed_n, 3);
	ck_assert(is_due_first(st, address) && is_due_first(st, "https://known.example/"));
	message_is(st, after, nth % 2 ? FW_CONTROL_RESUME : FW_CONTROL_PAUSE, "");
	message_is(st, after, FW_CONTROL_NONE, NULL);
	pause_is(st, nth % 2 == 0);
	ck_assert_int_eq(length("feeds_to_fetch_refused"), nth + 1);
	ck_assert_int_eq(figures(st).feed_n, nth + 2);
	ck_assert_int_eq(feed_at(st, "https://known.example/"), known);
	return killed;
}

START_TEST(taker_is_killed_between_commands)
{
	struct store *st = store_made();
	int64_t after = 0;
	int nth = 0, moments[2];

	(void)drv_feed(st, "https://known.example/", NOW);
	for (int late = 0; late <= 1; late++) {
		moments[late] = 0;
		while (kill_leaves_nothing_half_done(st, moments[late], late, nth++, &after))
			moments[late]++;
		ck_assert_int_ge(moments[late], 2);
	}
	printf("# killed before each of %d commands, and before each of %d replies\n", moments[0], moments[1]);
	end(st);
}
END_TEST

/* ---- other slots that change several keys ---------------------------------------------------- */

static struct fw_buf state;

static int state_feed(void *ctx, const struct fw_feed *f)
{
	(void)ctx;
	return fw_buf_addf(&state, "feed %d %s in %s has %d\n", (int)f->id, f->url.p, f->folder.p, (int)f->entry_n), 0;
}

static int state_entry(void *ctx, const struct fw_entry_row *e)
{
	(void)ctx;
	return fw_buf_addf(&state, "entry %s of %d, %u\n", e->title.p, (int)e->feed_id, e->revision), 0;
}

static int state_change(void *ctx, const struct fw_change *c)
{
	(void)ctx;
	return fw_buf_addf(&state, "change %d of %d\n", (int)c->kind, (int)c->feed_id), 0;
}

static int state_visit(void *ctx, const struct fw_visit *v)
{
	(void)ctx;
	return fw_buf_addf(&state, "visit of %d, %u new\n", (int)v->feed_id, v->new_n), 0;
}

static void state_finding(void *ctx, const char *name, int level, const char *text, const char *remedy)
{
	(void)ctx, (void)name, (void)remedy;
	ck_assert_msg(!level, "%s", text);
}

/*
 * What a reader sees of the store, without the numbers of entries; and the deep check finds
 * nothing.
 */
static char *state_of(struct store *st)
{
	struct fw_store *front = (struct fw_store *)st;

	fw_buf_reset(&state);
	DONE(fw_store_feed_list(front, &(struct fw_feed_query){.status = -1}, state_feed, NULL, &drv_err));
	DONE(fw_store_entry_list(front, &(struct fw_entry_query){.limit = 100}, state_entry, NULL, &drv_err));
	DONE(fw_store_change_list(front, &(struct fw_change_query){.limit = 100}, state_change, NULL, &drv_err));
	DONE(fw_store_visit_list(front, &(struct fw_visit_query){.limit = 100}, state_visit, NULL, &drv_err));
	DONE(st->driver->inspect(st, true, state_finding, NULL, &drv_err));
	fw_buf_addc(&state, '\0');
	ck_assert_int_eq(state.rc, 0);
	return strdup(state.p);
}

static int slot_subscribe(struct store *st)
{
	const struct fw_feed feed[] = {{.url = FW_STR("https://new.example/")}, {.url = FW_STR("https://h0.example/")},
		{.url = FW_STR("https://other.example/")}};
	struct store_feed_new made[FW_N(feed)];

	return st->driver->load(
		st, &(struct store_load){.rows = {.feed = feed, .feed_n = FW_N(feed)}, .made = made}, &drv_err);
}

static int slot_remove(struct store *st)
{
	return st->driver->feed_drop(st, 2, 0, &drv_err);
}

static int slot_merge(struct store *st)
{
	return st->driver->feed_drop(st, 2, 1, &drv_err);
}

/* The feed gets a new address and moves to its host; entries are new, changed and retracted. */
static int slot_commit(struct store *st)
{
	struct store_lease *l = drv_join(st, "w", LONG_MS);
	struct fw_feed f = {.id = 2,
		.url = FW_STR("https://new.example/"),
		.due_at_ms = NOW + 1,
		.last_visit_ms = NOW,
		.last_ok_ms = NOW};
	struct fw_entry_row e[] = {entry(20, 2, "changed", "x"), entry(29, 1, "new", "x")};
	const struct fw_entry_row gone = entry(21, 1, "", "");
	struct fw_entry_key key = {.feed_id = 2};
	struct fw_outcome o = {.feed_id = 2,
		.host_id = store_feed_host_id(drv_find(st, 2)),
		.was_due_ms = NOW,
		.feed = &f,
		.groups = FW_GROUP_URL | FW_GROUP_META,
		.visit = {.at_ms = NOW, .kind = FW_VISIT_OK, .slot = -1},
		.entries = e,
		.entry_n = FW_N(e),
		.retracted = &key,
		.retracted_n = 1};
	int rc;

	memcpy(key.key, gone.key, sizeof(key.key));
	rc = drv_commit(st, l->id, &o, 1);
	free(l);
	return rc;
}

/* Two feeds of two entries each; feed 2 has a key of feed 1. */
static struct store *state_begin(void)
{
	static const int KEYS[][2] = {{10, 20}, {20, 21}};
	struct store *st;
	char at[60];

	if (server)
		told("FLUSHALL");
	st = store_made();
	for (int i = 0; i < 2; i++) {
		struct fw_entry_row e[] = {entry(KEYS[i][0], 1, "a", "x"), entry(KEYS[i][1], 1, "b", "x")};
		struct fw_feed f = {0};
		struct fw_outcome o;

		ck_assert(fw_snprintf(at, sizeof(at), "https://h%d.example/", i));
		f.id = drv_feed(st, at, NOW);
		o = drv_push(f.id, &f, e, 2);
		DONE(drv_commit(st, 0, &o, 1));
	}
	return st;
}

static bool slot_is_killed(int (*slot)(struct store *st), int nth, bool late)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(slot(relayed(nth, late)) ? 1 : 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFSIGNALED(status) || (WIFEXITED(status) && !WEXITSTATUS(status)), "%x", (unsigned)status);
	return WIFSIGNALED(status);
}

START_TEST(slots_are_killed_between_commands) /* all is done, or nothing; and it can be done again */
{
	static int (*const SLOT[])(struct store * st) = {slot_subscribe, slot_remove, slot_merge, slot_commit};
	int moments = 0;

	for (size_t i = 0; i < FW_N(SLOT); i++) {
		struct store *st = state_begin();
		char *before = state_of(st), *after, *now;
		bool late = false;

		DONE(SLOT[i](st));
		after = state_of(st);
		ck_assert_str_ne(before, after);
		st->driver->close(st);
		for (int nth = 0; nth >= 0; moments++) {
			bool killed;

			st = state_begin();
			killed = slot_is_killed(SLOT[i], nth, late);
			now = state_of(st);
			ck_assert_msg(strcmp(now, after) == 0 || (killed && strcmp(now, before) == 0),
				"slot %zu, moment %d:\n%s", i, nth, now);
			if (killed && strcmp(now, before) == 0) {
				/*
				 * as when time has passed: the dead worker's lease and its reserved
				 * ids have ended
				 */
				told("DEL {feedwheel/0}:workers {feedwheel/0}:shards {feedwheel/0}:reserved_ids");
				DONE(SLOT[i](st));
				free(now);
				now = state_of(st);
				ck_assert_str_eq(now, after);
			}
			free(now);
			st->driver->close(st);
			nth = killed ? nth + 1 : late ? -1 : 0;
			late |= !killed;
		}
		free(before);
		free(after);
	}
	printf("# killed at %d moments\n", moments);
	fw_buf_finish(&state);
}
END_TEST

#define TAKERS 3

static void takes_all(void)
{
	struct store *st = open_at(url, 0);
	struct store_inbox in;
	int rc;

	do {
		in = (struct store_inbox){.limit = 7, .feed = feed_of};
		rc = st->driver->inbox(st, &in, &drv_err);
	} while (rc == FW_EAGAIN || (!rc && (in.more || in.feed_n)));
	if (rc)
		fprintf(stderr, "# taker: %s\n", drv_err.text);
	_exit(rc ? 1 : 0);
}

START_TEST(takers_share_the_rows)
{
	struct store *st = store_made();
	pid_t pid[TAKERS];
	int64_t after = 0;
	int status;

	push_many("feeds_to_fetch", 300, "'https://h' .. i % 250 .. '.example/'");
	push_many("control", 40, "i % 2 == 0 and 'pause' or 'resume'");
	for (int i = 0; i < TAKERS; i++) {
		pid[i] = fork();
		ck_assert_int_ge(pid[i], 0);
		if (!pid[i])
			takes_all();
	}
	for (int i = 0; i < TAKERS; i++)
		ck_assert(waitpid(pid[i], &status, 0) == pid[i] && WIFEXITED(status) && !WEXITSTATUS(status));
	ck_assert_int_eq(length("feeds_to_fetch"), 0);
	ck_assert_int_eq(figures(st).feed_n, 250);
	ck_assert_int_eq(figures(st).inbox_refused_n, 0);
	for (int i = 0; i < 250; i++) {
		char address[60];

		ck_assert(fw_snprintf(address, sizeof(address), "https://h%d.example/", i));
		ck_assert(feed_at(st, address) && drv_find(st, feed_at(st, address))->due_at_ms == FW_DUE_FIRST);
	}
	for (int i = 0; i < 40; i++)
		message_is(st, &after, i % 2 ? FW_CONTROL_PAUSE : FW_CONTROL_RESUME, "");
	message_is(st, &after, FW_CONTROL_NONE, NULL);
	pause_is(st, true);
	end(st);
}
END_TEST

/* ---- keys of another type -------------------------------------------------------------------- */

static int inbox_found;

static void inbox_finding(void *ctx, const char *name, int level, const char *text, const char *remedy)
{
	if (strcmp(name, "inbox") != 0)
		return;
	inbox_found++;
	ck_assert_int_eq(level, 2);
	holds(text, ctx);
	holds(remedy, ctx);
}

START_TEST(keys_of_another_type) /* the error names the key and the remedy; what can be taken is taken */
{
	struct store *st = store_made();
	struct store_inbox in = {.limit = 10, .feed = feed_of};
	int64_t after = 0;

	RUN("SET @feeds_to_fetch https://a.example/");
	RUN("RPUSH @control reload");
	ck_assert_uint_eq(take(st, 10).control_n, 1);
	message_is(st, &after, FW_CONTROL_RELOAD, "");
	says(st->driver->inbox(st, &in, &drv_err), FW_EINVAL, ":feeds_to_fetch is no list");
	says(st->driver->inbox(st, &in, &drv_err), FW_EINVAL, "'redis-cli DEL ");
	ck_assert_int_eq(figures(st).inbox_n, 0);
	inbox_found = 0;
	DONE(st->driver->inspect(st, false, inbox_finding, (void *)"feeds_to_fetch", &drv_err));
	ck_assert_int_eq(inbox_found, 1);
	holds(run("GET @feeds_to_fetch"), "https://a.example/"); /* it is not ours */
	RUN("DEL @feeds_to_fetch");
	ck_assert(!take(st, 10).more);

	RUN("HSET @control reload 1");
	RUN("RPUSH @feeds_to_fetch https://a.example/");
	ck_assert_uint_eq(take(st, 10).feed_n, 1);
	says(st->driver->inbox(st, &in, &drv_err), FW_EINVAL, ":control is no list");
	RUN("DEL @control");

	RUN("SET @feeds_to_fetch_refused x");
	RUN("RPUSH @feeds_to_fetch https://b.example/");
	ck_assert_uint_eq(take(st, 10).feed_n, 1); /* none is refused */
	RUN("RPUSH @feeds_to_fetch https://c.example/ nowhere");
	RUN("RPUSH @control pause");
	ck_assert_uint_eq(take(st, 10).control_n, 1);
	message_is(st, &after, FW_CONTROL_PAUSE, "");
	says(st->driver->inbox(st, &in, &drv_err), FW_EINVAL, ":feeds_to_fetch_refused is no list");
	ck_assert_int_eq(length("feeds_to_fetch"), 2);
	ck_assert_int_eq(figures(st).inbox_n, 2);
	RUN("DEL @feeds_to_fetch_refused");
	ck_assert_uint_eq(take(st, 10).refused_n, 1);

	RUN("SET @control_refused x");
	RUN("RPUSH @control dance");
	RUN("RPUSH @feeds_to_fetch https://d.example/");
	ck_assert_uint_eq(take(st, 10).feed_n, 1);
	says(st->driver->inbox(st, &in, &drv_err), FW_EINVAL, ":control_refused is no list");
	RUN("RENAME @control_refused elsewhere");
	ck_assert_uint_eq(take(st, 10).refused_n, 1);
	inbox_found = 0;
	DONE(st->driver->inspect(st, false, inbox_finding, (void *)"", &drv_err));
	ck_assert_int_eq(inbox_found, 0);
	end(st);
}
END_TEST

START_TEST(others_may_only_push) /* with the ACL of the manual */
{
	struct store *st = store_made();
	char at[420];

	told("ACL SETUSER giver on >s3cret ~feedwheel:feeds_to_fetch ~feedwheel:control &feedwheel:changed:* +rpush "
	     "+publish");
	told("ACL SETUSER reader on >s3cret %R~feedwheel:new +xread +xrange");
	told("ACL SETUSER store on >s3cret ~feedwheel* ~{feedwheel* &feedwheel* +@all -@dangerous +info");
	holds(say("ACL DRYRUN giver RPUSH feedwheel:feeds_to_fetch x"), "+OK");
	holds(say("ACL DRYRUN giver RPUSH feedwheel:control x"), "+OK");
	holds(say("ACL DRYRUN giver PUBLISH feedwheel:changed:0 x"), "+OK");
	holds(say("ACL DRYRUN giver RPUSH {feedwheel/0}:urls x"), "no permissions");
	holds(say("ACL DRYRUN giver LTRIM feedwheel:control 1 -1"), "no permissions");
	holds(say("ACL DRYRUN reader XRANGE feedwheel:new - +"), "+OK");
	holds(say("ACL DRYRUN reader XADD feedwheel:new * a b"), "no permissions");
	ck_assert(fw_snprintf(at, sizeof(at), "redis+unix://store:s3cret@%s", sock));
	st->driver->close(st);
	st = open_at(at, 0);
	RUN("RPUSH feedwheel:feeds_to_fetch https://a.example/ nowhere");
	ck_assert_uint_eq(take(st, 10).feed_n, 2);
	ck_assert_int_eq(figures(st).inbox_refused_n, 1);
	end(st);
}
END_TEST

/* ---- the stream of new entries --------------------------------------------------------------- */

static int stream_length(const char *key)
{
	int n = -1;

	ck_assert_int_eq(sscanf(run("XLEN %s", key), ":%d", &n), 1);
	return n;
}

/* A field of the newest message of this stream. */
static const char *field(const char *key, const char *name)
{
	static char value[200];
	const char *answer = run("XREVRANGE %s + - COUNT 1", key), *at = strstr(answer, name);

	ck_assert_msg(at, "%s is not in: %s", name, answer);
	ck_assert_msg(sscanf(at + strlen(name), "\r\n$%*d\r\n%199[^\r]", value) == 1, "%s", answer);
	return value;
}

START_TEST(new_entries_are_published)
{
	struct work *w;

	server_up(NULL);
	w = work_begin_at(url, 0);
	commit_stores_once(w);
	ck_assert_int_eq(stream_length("feedwheel:new"), 1);
	ck_assert_str_eq(field("feedwheel:new", "feed_id"), "1");
	ck_assert_str_eq(field("feedwheel:new", "url"), "https://a.example/");
	ck_assert_str_eq(field("feedwheel:new", "first_id"), "1");
	ck_assert_str_eq(field("feedwheel:new", "last_id"), "3");
	ck_assert_str_eq(field("feedwheel:new", "new_n"), "3");
	ck_assert_int_eq(strtoll(field("feedwheel:new", "at_ms"), NULL, 10), w->o.visit.at_ms);
	for (int i = 0; i < 3; i++) /* the answer was lost */
		commit_stores_once(w);
	ck_assert_int_eq(stream_length("feedwheel:new"), 1);
	visit(w, 0, 3);
	DONE(commit(w)); /* nothing is new */
	visit(w, 0, 3);
	w->e[1].hash = 2;
	DONE(commit(w)); /* one entry changed */
	ck_assert_uint_eq(w->o.visit.changed_n, 1);
	ck_assert_int_eq(stream_length("feedwheel:new"), 1);
	visit(w, 1, 4);
	w->e[0].hash = 3;
	DONE(commit(w)); /* one changed, two are new: 3 and 4 */
	ck_assert_int_eq(stream_length("feedwheel:new"), 2);
	ck_assert_str_eq(field("feedwheel:new", "first_id"), "6");
	ck_assert_str_eq(field("feedwheel:new", "last_id"), "7");
	ck_assert_str_eq(field("feedwheel:new", "new_n"), "2");
	work_end(w);
}
END_TEST

START_TEST(pushed_entries_are_published) /* once, also if the push is repeated */
{
	struct fw_entry_row e[] = {entry(1, 1, "a", "x"), entry(2, 1, "b", "y")};
	struct store *st = store_made();
	int64_t id = drv_feed(st, "https://a.example/", NOW);
	struct fw_feed f = {.id = id};
	struct fw_outcome o[] = {drv_push(id, &f, e, 2), drv_push(id + 16, &f, e, 2)}; /* no such feed */

	for (int i = 0; i < 3; i++)
		DONE(drv_commit(st, 0, o, FW_N(o)));
	ck_assert(!o[0].rc && o[1].rc == FW_ENOTFOUND);
	ck_assert_int_eq(stream_length("feedwheel:new"), 1);
	ck_assert_str_eq(field("feedwheel:new", "url"), "https://a.example/"); /* which the push did not say */
	ck_assert_str_eq(field("feedwheel:new", "new_n"), "2");
	end(st);
}
END_TEST

START_TEST(published_address_is_the_feeds) /* of a feed that gets a new one, or does not get it */
{
	static const char *const TO[][2] = {
		{"https://new.example/", "https://new.example/"}, {"https://taken.example/", "https://new.example/"}};
	struct work *w;

	server_up(NULL);
	w = work_begin_at(url, 0);
	commit_stores_once(w);
	(void)drv_feed(w->st, "https://taken.example/", NOW);
	for (size_t i = 0; i < FW_N(TO); i++) {
		struct fw_feed f;

		visit(w, 10 + 2 * (int)i, 2);
		f = *w->o.feed;
		f.url = fw_str(TO[i][0]);
		w->o.feed = &f;
		w->o.groups = FW_GROUP_URL;
		DONE(commit(w));
		ck_assert_int_eq(w->o.rc, i ? FW_EINVAL : 0);
		ck_assert_int_eq(stream_length("feedwheel:new"), 2 + (int)i);
		ck_assert_str_eq(field("feedwheel:new", "url"), TO[i][1]);
		drv_heartbeat(w->st, "w", w->l);
	}
	work_end(w);
}
END_TEST

START_TEST(stream_is_bounded)
{
	struct work *w;
	char at[420];

	server_up(NULL);
	ck_assert(fw_snprintf(at, sizeof(at), "%s?stream_max=0", url));
	w = work_begin_at(at, 0);
	commit_stores_once(w);
	ck_assert_str_eq(say("EXISTS feedwheel:new"), ":0\r\n");
	work_end(w);
	told("FLUSHALL");
	ck_assert(fw_snprintf(at, sizeof(at), "%s?stream_max=50", url));
	w = work_begin_at(at, 0);
	for (int i = 0; i < 500; i++) {
		visit(w, i, 1);
		DONE(commit(w));
	}
	/* "~": whole nodes of a hundred messages go */
	ck_assert_int_ge(stream_length("feedwheel:new"), 50);
	ck_assert_int_le(stream_length("feedwheel:new"), 250);
	ck_assert_str_eq(field("feedwheel:new", "last_id"), "500");
	work_end(w);
	for (int i = 0; i < 2; i++) {
		struct fw_store_config c = {.url = at};
		struct fw_store *st = NULL;

		ck_assert(fw_snprintf(at, sizeof(at), "%s?stream_max=%s", url, i ? "x" : "-1"));
		FAILS(fw_store_open(&c, &st, &drv_err), FW_EINVAL);
		holds(drv_err.text, "stream_max=");
	}
}
END_TEST

START_TEST(stream_of_another_type) /* is found when the store is opened */
{
	struct fw_store_config c = {.url = url};
	struct store *st = store_made();
	struct fw_store *again = NULL;
	char at[420];

	st->driver->close(st);
	told("SET feedwheel:new x");
	says(fw_store_open(&c, &again, &drv_err), FW_EINVAL, "feedwheel:new is no stream");
	holds(drv_err.text, "stream_max=0");
	fw_store_close(store_open(url, FW_STORE_READ));
	ck_assert(fw_snprintf(at, sizeof(at), "%s?stream_max=0", url));
	st = open_at(at, 0);
	end(st);
}
END_TEST

/* ---- the manual ------------------------------------------------------------------------------ */

static int blocked_clients(void)
{
	const char *answer = say("INFO clients"), *at = strstr(answer, "blocked_clients:");
	int n = -1;

	ck_assert_msg(at && sscanf(at, "blocked_clients:%d", &n) == 1, "%s", answer);
	return n;
}

/* Starts a command of the page, by the shell, with the server of this case. */
static FILE *recipe(const char *line)
{
	char words[1000];
	FILE *f;

	ck_assert(strncmp(line, "redis-cli ", 10) == 0);
	ck_assert(fw_snprintf(words, sizeof(words), "redis-cli -s %s %s", sock, line + 10));
	f = popen(words, "r");
	ck_assert_ptr_nonnull(f);
	return f;
}

/* Each line of the page that begins with redis-cli, as printed; those of RECIPES: test_doors.py. */
START_TEST(recipes_of_the_manual)
{
	const char *root = getenv("FW_SOURCE_ROOT");
	char path[300], line[1000], said[1000];
	int n = 0, reads = 0;
	struct work *w;
	int64_t after = 0;
	FILE *page, *f;

	server_up(NULL);
	w = work_begin_at(url, 0);
	ck_assert(fw_snprintf(path, sizeof(path), "%s/man/feedwheel-store.7", root ? root : "."));
	page = fopen(path, "r");
	ck_assert_msg(page != NULL, "%s", path);
	while (fgets(line, sizeof(line), page)) {
		bool blocks = strstr(line, " BLOCK ") != NULL;

		if (strcmp(line, ".Sh RECIPES\n") == 0)
			break;
		if (strncmp(line, "redis-cli ", 10) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		f = recipe(line);
		if (blocks) {
			while (!blocked_clients())
				usleep(1000);
			commit_stores_once(w);
		}
		said[fread(said, 1, sizeof(said) - 1, f)] = '\0';
		ck_assert_msg(pclose(f) == 0, "%s: %s", line, said);
		if (blocks)
			holds(said, "https://a.example/");
		else
			ck_assert_msg(said[0] >= '0' && said[0] <= '9', "%s: %s", line, said);
		n += !blocks;
		reads += blocks;
	}
	fclose(page);
	ck_assert(n == 4 && reads == 1);
	ck_assert_uint_eq(take(w->st, 10).new_n, 2);
	ck_assert(is_due_first(w->st, "https://sky.example/new"));
	ck_assert(fw_str_eq(drv_find(w->st, feed_at(w->st, "https://tide.example/"))->folder, FW_STR("Sea")));
	message_is(w->st, &after, FW_CONTROL_PAUSE, "");
	pause_is(w->st, true);
	work_end(w);
}
END_TEST

int main(void)
{
	const TTest *const every[] = {pushed_addresses_are_fetched_at_once, known_address_pushed_is_due_first,
		rows_of_json, addresses_of_the_dead, messages_pushed_by_hand, no_message_is_below_the_last,
		many_rows_come_in_batches, empty_lists_cost_one_round_trip, taker_is_killed_between_commands,
		slots_are_killed_between_commands, takers_share_the_rows, keys_of_another_type,
		pushed_entries_are_published, stream_of_another_type, others_may_only_push, new_entries_are_published,
		published_address_is_the_feeds, stream_is_bounded, recipes_of_the_manual};
	TCase *t;

	server_needed(&server_redis);
	t = cases("inbox", redis_setup, redis_teardown, 120);
	cases_add(t, every, FW_N(every), 1);
	return cases_run("store redis_inbox", t);
}
