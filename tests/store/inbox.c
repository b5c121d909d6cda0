/* SPDX-License-Identifier: ISC */
/*
 * The inbox (src/store/inbox.h), and what else users write by their database's own commands and
 * read from it: on each store that several processes can use.
 *
 * Rows are put by the engine's own client: client.h. A new engine gets its commands in "rows", and
 * in "kills" a way to end a taker between two of its statements.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/url.h"
#include "client.h"
#include "drv.h"
#include "store/inbox.h"
#include "store/sqlite/sqlite.h"

#define TAKERS 4

/* ---- rows ------------------------------------------------------------------------------------ */

static bool is(int i, const char *engine)
{
	return strcmp(under_test[i].name, engine) == 0;
}

/* Has this store an inbox that others can write? */
static bool has_inbox(int i)
{
	if (under_test[i].shared && drv_driver(i)->inbox)
		return true;
	if (under_test[i].shared)
		printf("# %s is left out: its driver has no inbox\n", under_test[i].name);
	return false;
}

static const char *key(const char *url, const char *name)
{
	static char text[2][200];
	static int turn;
	char *t = text[turn++ % 2];

	ck_assert(fw_snprintf(t, sizeof(text[0]), "%s:%s", client_redis_prefix(url), name));
	return t;
}

/* An SQL text of this string; NULL: NULL. */
static void quoted(struct fw_buf *b, const char *text)
{
	if (text)
		fw_buf_addf(b, "'%s'", text);
	else
		fw_buf_adds(b, "NULL");
}

/* hour: with an interval of one hour. */
static void put_feed(int i, const char *url, const char *address, const char *title, const char *folder, bool hour)
{
	struct fw_buf b = FW_BUF_INIT(0);

	if (is(i, "redis")) {
		fw_buf_addf(&b, "{\"url\": \"%s\"", address);
		if (title)
			fw_buf_addf(&b, ", \"title\": \"%s\"", title);
		if (folder)
			fw_buf_addf(&b, ", \"folder\": \"%s\"", folder);
		fw_buf_addf(&b, "%s}%c", hour ? ", \"interval\": \"1h\"" : "", '\0');
		(void)client_redis(url, (const char *const[]){"RPUSH", key(url, "feeds_to_fetch"), b.p, NULL});
	} else {
		fw_buf_addf(&b, "INSERT INTO feeds_to_fetch (url, title, folder, interval_ms) VALUES ('%s', ", address);
		quoted(&b, title);
		fw_buf_adds(&b, ", ");
		quoted(&b, folder);
		fw_buf_addf(&b, ", %s)%c", hour ? "3600000" : "NULL", '\0');
		client_run(url, b.p);
	}
	fw_buf_finish(&b);
}

static void put_address(int i, const char *url, const char *address)
{
	if (is(i, "redis"))
		(void)client_redis(url, (const char *const[]){"RPUSH", key(url, "feeds_to_fetch"), address, NULL});
	else
		put_feed(i, url, address, NULL, NULL, false);
}

/* worker NULL: all */
static void put_control(int i, const char *url, const char *command, const char *worker)
{
	struct fw_buf b = FW_BUF_INIT(0);

	if (is(i, "redis")) {
		fw_buf_addf(&b, worker ? "%s %s%c" : "%s%s%c", command, worker ? worker : "", '\0');
		(void)client_redis(url, (const char *const[]){"RPUSH", key(url, "control"), b.p, NULL});
	} else {
		fw_buf_addf(&b, "INSERT INTO control (command, worker) VALUES ('%s', ", command);
		quoted(&b, worker);
		fw_buf_addf(&b, ")%c", '\0');
		client_run(url, b.p);
	}
	fw_buf_finish(&b);
}

/* Addresses format(from) .. in one command; format has one %d. */
static void put_many(int i, const char *url, const char *host, int n)
{
	struct fw_buf b = FW_BUF_INIT(0);

	if (is(i, "redis")) {
		const char **word = calloc((size_t)n + 3, sizeof(*word));
		struct fw_arena a;

		fw_arena_init(&a, 0);
		word[0] = "RPUSH";
		word[1] = key(url, "feeds_to_fetch");
		for (int k = 0; k < n; k++)
			word[k + 2] = fw_arena_printf(&a, "https://%s/%d", host, k);
		(void)client_redis(url, word);
		fw_arena_finish(&a);
		free(word);
		return;
	}
	fw_buf_addf(&b,
		"%sINSERT INTO feeds_to_fetch (url) WITH RECURSIVE c(k) AS (SELECT 0 UNION ALL SELECT k + 1 FROM c"
		" WHERE k < %d) SELECT %s FROM c%c",
		!is(i, "mysql") ? "" : "SET SESSION max_recursive_iterations = 1000000; ", n - 1,
		is(i, "mysql") ? "concat('https://HOST/', k)" : "'https://HOST/' || k", '\0');
	for (char *at; (at = strstr(b.p, "HOST")) != NULL;) { /* a host of four letters */
		ck_assert_uint_eq(strlen(host), 4);
		memcpy(at, host, 4);
	}
	client_run(url, b.p);
	fw_buf_finish(&b);
}

/* The refused rows: their addresses and the reasons, as the engine shows them. */
static const char *refused_rows(int i, const char *url)
{
	if (is(i, "redis"))
		return client_redis(
			url, (const char *const[]){"LRANGE", key(url, "feeds_to_fetch_refused"), "0", "-1", NULL});
	return client_rows(url, "SELECT url, folder, reason FROM feeds_to_fetch_refused ORDER BY id");
}

/* ---- taking ---------------------------------------------------------------------------------- */

static struct fw_arena made; /* strings of feed_of() */

static struct fw_str kept(struct fw_str s)
{
	return s.p ? fw_arena_str(&made, s) : s;
}

/* As the engine decides, in short. */
static int feed_of(void *ctx, const struct store_inbox_feed *row, struct fw_feed_new *feed, struct fw_err *err)
{
	char host[256];

	if (ctx)
		++*(int *)ctx;
	if (!fw_url_host(row->url, host, sizeof(host)))
		return fw_err_set(err, FW_EINVAL, "no address");
	*feed = (struct fw_feed_new){.url = kept(row->url),
		.user_title = kept(row->title),
		.folder = kept(row->folder),
		.interval_ms = fw_str_eq(row->interval, FW_STR("1h")) ? FW_HOUR_MS : row->interval_ms};
	return 0;
}

static struct store_inbox take(struct store *st, size_t limit)
{
	struct store_inbox in = {.limit = limit, .feed = feed_of};

	DONE(st->driver->inbox(st, &in, &drv_err));
	fw_arena_reset(&made, 0);
	return in;
}

#define TAKEN(in, controls, feeds, news, refusals, further)           \
	do {                                                          \
		struct store_inbox in_ = (in);                        \
		ck_assert_uint_eq(in_.control_n, (size_t)(controls)); \
		ck_assert_uint_eq(in_.feed_n, (size_t)(feeds));       \
		ck_assert_uint_eq(in_.new_n, (size_t)(news));         \
		ck_assert_uint_eq(in_.refused_n, (size_t)(refusals)); \
		ck_assert_int_eq(in_.more, (further));                \
	} while (0)

static struct fw_store_stats figures(struct store *st)
{
	struct fw_store_stats s = {0};

	DONE(st->driver->stats(st, &s, &drv_err));
	return s;
}

static int found(void *ctx, const struct fw_feed *f)
{
	*(int64_t *)ctx = f->id;
	return 0;
}

/* 0: no feed has this address. */
static int64_t feed_at(struct store *st, const char *address)
{
	struct store_feed_query q = {.url = fw_str(address)};
	int64_t id = 0;
	int rc = st->driver->feed_list(st, &q, found, &id, &drv_err);

	ck_assert_msg(!rc || rc == FW_ENOTFOUND, "%s", drv_err.text);
	return id;
}

/* Is there a feed at this address, due before all others? */
static bool due_first(struct store *st, const char *address)
{
	int64_t id = feed_at(st, address);

	return id && drv_find(st, id)->due_at_ms == FW_DUE_FIRST;
}

static int shard_of(const char *host)
{
	return store_host_shard(store_host_id(fw_str(host)));
}

static void setup(void)
{
	fw_arena_init(&made, 0);
}

static void teardown(void)
{
	fw_arena_finish(&made);
}

START_TEST(rows_become_feeds)
{
	const char *url = drv_url(_i);
	struct store_lease *l;
	int64_t known, version, other;
	struct store *st;

	if (!has_inbox(_i))
		return;
	st = drv_open(_i, url, FW_STORE_CREATE);
	TAKEN(take(st, 10), 0, 0, 0, 0, false);
	known = drv_feed(st, "https://known.example/", NOW);
	l = drv_join(st, "w", LONG_MS);
	version = drv_version(st, l, shard_of("known.example"));
	other = drv_version(st, l, shard_of("new.example"));
	put_feed(_i, url, "https://new.example/a", "Title", "Folder/Sub", true);
	put_address(_i, url, "https://known.example/");
	put_address(_i, url, "https://new.example/b");
	put_feed(_i, url, "https://known.example/", "Other", "Other", true);
	put_address(_i, url, "https://new.example/b");
	ck_assert_int_eq(figures(st).inbox_n, 5);
	TAKEN(take(st, 10), 0, 5, 2, 0, false);
	ck_assert_int_eq(figures(st).inbox_n, 0);
	ck_assert_int_eq(figures(st).inbox_refused_n, 0);
	ck_assert_int_eq(figures(st).feed_n, 3);
	ck_assert(due_first(st, "https://new.example/a") && due_first(st, "https://new.example/b"));
	ck_assert_int_eq(feed_at(st, "https://known.example/"), known);
	ck_assert(due_first(st, "https://known.example/"));
	ck_assert(fw_str_eq(drv_find(st, feed_at(st, "https://new.example/a"))->folder, FW_STR("Folder/Sub")));
	ck_assert(fw_str_eq(drv_find(st, feed_at(st, "https://new.example/a"))->user_title, FW_STR("Title")));
	ck_assert_int_eq(drv_find(st, feed_at(st, "https://new.example/a"))->interval_ms, FW_HOUR_MS);
	/* what is known stays as it is */
	ck_assert_uint_eq(drv_find(st, known)->folder.len, 0);
	ck_assert_uint_eq(drv_find(st, known)->user_title.len, 0);
	ck_assert_int_eq(drv_find(st, known)->interval_ms, 0);
	/* their owner reads them again */
	ck_assert_int_gt(drv_version(st, l, shard_of("known.example")), version);
	ck_assert_int_gt(drv_version(st, l, shard_of("new.example")), other);
	version = drv_version(st, l, shard_of("known.example"));
	TAKEN(take(st, 10), 0, 0, 0, 0, false);
	ck_assert_int_eq(drv_version(st, l, shard_of("known.example")), version);
	drv_leave(st, l);
	drv_end(st);
}
END_TEST

static void set_status(struct store *st, int64_t id, enum fw_feed_status status)
{
	DONE(st->driver->feed_set(st, &(struct fw_feed){.id = id, .status = status}, FW_SET_STATUS, &drv_err));
}

/* What is no address, and feeds that `fetch-now` refuses too. */
START_TEST(refused_rows_tell_why)
{
	static const char *const STATUS[] = {"paused", "gone", "quarantined"};
	const char *url = drv_url(_i), *rows;
	struct store *st;
	int64_t id[3];

	if (!has_inbox(_i))
		return;
	st = drv_open(_i, url, FW_STORE_CREATE);
	for (int i = 0; i < 3; i++) {
		char address[60];

		ck_assert(fw_snprintf(address, sizeof(address), "https://%s.example/", STATUS[i]));
		id[i] = drv_feed(st, address, NOW);
		set_status(st, id[i], (enum fw_feed_status)(FW_FEED_PAUSED + i));
		put_address(_i, url, address);
	}
	put_feed(_i, url, "what is this", NULL, "Here", false);
	put_address(_i, url, "https://good.example/");
	put_address(_i, url, "");
	TAKEN(take(st, 10), 0, 6, 1, 5, false);
	ck_assert(due_first(st, "https://good.example/"));
	ck_assert_int_eq(figures(st).inbox_n, 0);
	ck_assert_int_eq(figures(st).inbox_refused_n, 5);
	rows = refused_rows(_i, url);
	ck_assert_msg(strstr(rows, "what is this") && strstr(rows, "Here") && strstr(rows, "no address"), "%s", rows);
	for (int i = 0; i < 3; i++) {
		char words[60];

		ck_assert_int_eq(drv_find(st, id[i])->due_at_ms, NOW);
		ck_assert_int_eq(drv_find(st, id[i])->status, FW_FEED_PAUSED + i);
		ck_assert(fw_snprintf(words, sizeof(words), "the feed is %s", STATUS[i]));
		ck_assert_msg(strstr(rows, words), "%s", rows);
	}
	TAKEN(take(st, 10), 0, 0, 0, 0, false);
	drv_end(st);
}
END_TEST

START_TEST(batches_are_in_order)
{
	const char *url = drv_url(_i);
	struct store *st;

	if (!has_inbox(_i))
		return;
	st = drv_open(_i, url, FW_STORE_CREATE);
	for (int i = 0; i < 4; i++) {
		char address[60];

		ck_assert(fw_snprintf(address, sizeof(address), "https://h.example/%d", i));
		put_address(_i, url, address);
	}
	TAKEN(take(st, 2), 0, 2, 2, 0, true);
	ck_assert(feed_at(st, "https://h.example/0") && feed_at(st, "https://h.example/1"));
	ck_assert_int_eq(figures(st).inbox_n, 2);
	TAKEN(take(st, 2), 0, 2, 2, 0, false);
	ck_assert_int_eq(figures(st).feed_n, 4);
	drv_end(st);
}
END_TEST

/* Reads the next message; its name for one worker, "all" for all. */
static void message_is(struct store *st, int64_t *after, enum fw_control_kind kind, const char *worker)
{
	struct fw_control c;

	DONE(fw_store_control_get((struct fw_store *)st, *after, &c, &drv_err));
	ck_assert_int_eq(c.kind, kind);
	if (kind == FW_CONTROL_NONE)
		return;
	ck_assert_str_eq(c.worker, worker);
	ck_assert_int_gt(c.id, *after);
	*after = c.id;
}

static bool paused(struct store *st)
{
	struct fw_control c;

	DONE(fw_store_control_get((struct fw_store *)st, -1, &c, &drv_err));
	return c.paused;
}

START_TEST(control_comes_first)
{
	const char *url = drv_url(_i);
	int64_t after = 0;
	struct store *st;

	if (!has_inbox(_i))
		return;
	st = drv_open(_i, url, FW_STORE_CREATE);
	put_address(_i, url, "https://h.example/0");
	put_address(_i, url, "https://h.example/1");
	put_control(_i, url, "reload", NULL);
	put_control(_i, url, "stop", "host-1 worker 2");
	put_control(_i, url, "resume", NULL);
	put_control(_i, url, "pause", NULL);
	put_control(_i, url, "resume", "host-1 worker 2"); /* one alone: all stay paused */
	ck_assert_int_eq(figures(st).inbox_n, 7);
	TAKEN(take(st, 0), 5, 0, 0, 0, true); /* control alone */
	TAKEN(take(st, 1), 0, 1, 1, 0, true);
	message_is(st, &after, FW_CONTROL_RELOAD, "");
	message_is(st, &after, FW_CONTROL_STOP, "host-1 worker 2");
	message_is(st, &after, FW_CONTROL_RESUME, "");
	message_is(st, &after, FW_CONTROL_PAUSE, "");
	message_is(st, &after, FW_CONTROL_RESUME, "host-1 worker 2");
	message_is(st, &after, FW_CONTROL_NONE, NULL);
	ck_assert(paused(st));
	put_control(_i, url, "resume", NULL);
	TAKEN(take(st, 5), 1, 1, 1, 0, false);
	message_is(st, &after, FW_CONTROL_RESUME, "");
	ck_assert(!paused(st));
	/* a command sees the messages of the inbox, and comes behind them */
	DONE(fw_store_control_put((struct fw_store *)st, FW_CONTROL_STOP, 1, &drv_err));
	message_is(st, &after, FW_CONTROL_STOP, "");
	/* a record that somebody wrote by hand, and that is no message, is in nobody's way */
	DONE(st->driver->record_put(st,
		&(struct fw_record){.kind = FW_STR(STORE_CONTROL_KIND),
			.key = FW_STR("5"),
			.value = FW_STR("?"),
			.at_ms = NOW,
			.until_ms = FW_NO_DATE},
		false, false, &(bool){false}, &drv_err));
	DONE(fw_store_control_put((struct fw_store *)st, FW_CONTROL_RELOAD, drv_clock(st) + 1000, &drv_err));
	message_is(st, &after, FW_CONTROL_RELOAD, "");
	put_control(_i, url, "stop", NULL);
	TAKEN(take(st, 5), 1, 0, 0, 0, false);
	message_is(st, &after, FW_CONTROL_STOP, "");
	message_is(st, &after, FW_CONTROL_NONE, NULL);
	drv_end(st);
}
END_TEST

/* SQL refuses such a row itself. */
START_TEST(wrong_control_is_refused)
{
	const char *url = drv_url(_i);
	struct store *st;
	int64_t after = 0;

	if (!has_inbox(_i))
		return;
	st = drv_open(_i, url, FW_STORE_CREATE);
	if (is(_i, "redis")) {
		put_control(_i, url, "dance", NULL);
		put_control(_i, url, "stop", NULL);
		ck_assert_uint_eq(take(st, 5).refused_n, 1);
		message_is(st, &after, FW_CONTROL_STOP, "");
		ck_assert_ptr_nonnull(
			strstr(client_redis(url,
				       (const char *const[]){"LRANGE", key(url, "control_refused"), "0", "-1", NULL}),
				"dance"));
	} else {
		static const char *const WRONG[] = {"INSERT INTO control (command) VALUES ('dance')",
			"INSERT INTO control (command) VALUES ('STOP')", "INSERT INTO control (command) VALUES (NULL)",
			"INSERT INTO control (worker) VALUES ('w')",
			"INSERT INTO feeds_to_fetch (folder) VALUES ('News')",
			"INSERT INTO feeds_to_fetch (url, interval_ms) VALUES ('https://a.example/', -1)",
			"INSERT INTO feeds_to_fetch (url, interval_ms) VALUES ('https://a.example/', '6h')"};

		for (size_t i = 0; i < FW_N(WRONG); i++)
			ck_assert_msg(client_try(url, WRONG[i], NULL) != NULL, "%s", WRONG[i]);
		TAKEN(take(st, 5), 0, 0, 0, 0, false);
	}
	message_is(st, &after, FW_CONTROL_NONE, NULL);
	drv_end(st);
}
END_TEST

/* An id is not used again, so a program finds its row, or its refusal, and no other. */
START_TEST(ids_are_used_once)
{
	const char *url = drv_url(_i);
	struct store *st;

	if (!has_inbox(_i) || is(_i, "redis"))
		return;
	st = drv_open(_i, url, FW_STORE_CREATE);
	put_address(_i, url, "wrong");
	put_address(_i, url, "https://a.example/");
	(void)take(st, 5);
	put_address(_i, url, "https://b.example/");
	ck_assert_str_eq(client_rows(url, "SELECT id FROM feeds_to_fetch"), "3\n");
	ck_assert_str_eq(client_rows(url, "SELECT id FROM feeds_to_fetch_refused"), "1\n");
	/* one that a program chose itself is no trap for the taker */
	client_run(url, "INSERT INTO feeds_to_fetch (id, url) VALUES (1, 'wrong too')");
	TAKEN(take(st, 5), 0, 2, 1, 1, false);
	ck_assert_str_eq(client_rows(url, "SELECT id, url FROM feeds_to_fetch_refused"), "1|wrong too\n");
	drv_end(st);
}
END_TEST

/* ---- several takers, and their deaths -------------------------------------------------------- */

struct shared {
	_Atomic int feeds, news, controls;
};

static struct shared *shared;

_Noreturn static void takes_all(int i, const char *url)
{
	struct store *st = drv_open(i, url, 0);
	struct store_inbox in;
	int rc, idle = 0;

	while (idle < 2) {
		in = (struct store_inbox){.limit = 7, .feed = feed_of};
		rc = st->driver->inbox(st, &in, &drv_err);
		if (rc && rc != FW_EAGAIN) {
			fprintf(stderr, "# taker: %s\n", drv_err.text);
			_exit(1);
		}
		shared->feeds += rc ? 0 : (int)in.feed_n;
		shared->news += rc ? 0 : (int)in.new_n;
		shared->controls += rc ? 0 : (int)in.control_n;
		idle = !rc && !in.feed_n && !in.control_n && !figures(st).inbox_n ? idle + 1 : 0;
	}
	st->driver->close(st);
	_exit(0);
}

START_TEST(takers_share_the_rows)
{
	enum { N = 300, CONTROLS = 40 };
	const char *url = drv_url(_i);
	pid_t pid[TAKERS];
	struct store *st;
	int64_t after = 0;
	int status;

	if (!has_inbox(_i))
		return;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(shared, MAP_FAILED);
	st = drv_open(_i, url, FW_STORE_CREATE);
	put_many(_i, url, "host", N);
	put_many(_i, url, "host", N / 2); /* some addresses twice */
	for (int i = 0; i < CONTROLS; i++)
		put_control(_i, url, i % 2 ? "resume" : "pause", NULL);
	for (int i = 0; i < TAKERS; i++) {
		pid[i] = fork();
		ck_assert_int_ge(pid[i], 0);
		if (!pid[i])
			takes_all(_i, url);
	}
	for (int i = 0; i < TAKERS; i++)
		ck_assert(waitpid(pid[i], &status, 0) == pid[i] && WIFEXITED(status) && !WEXITSTATUS(status));
	ck_assert_int_eq(shared->feeds, N + N / 2);
	ck_assert_int_eq(shared->news, N);
	ck_assert_int_eq(shared->controls, CONTROLS);
	ck_assert_int_eq(figures(st).feed_n, N);
	for (int i = 0; i < CONTROLS; i++)
		message_is(st, &after, i % 2 ? FW_CONTROL_RESUME : FW_CONTROL_PAUSE, "");
	message_is(st, &after, FW_CONTROL_NONE, NULL);
	drv_end(st);
	munmap(shared, sizeof(*shared));
}
END_TEST

/* ---- readers of messages --------------------------------------------------------------------- */

enum { MESSAGES = 60 };

static int messages_after(struct store *st, int64_t *after)
{
	struct fw_control c;

	for (int n = 0;; n++) {
		DONE(fw_store_control_get((struct fw_store *)st, *after, &c, &drv_err));
		if (c.kind == FW_CONTROL_NONE)
			return n;
		*after = c.id;
	}
}

_Noreturn static void commands_send(int i, const char *url)
{
	struct store *st = drv_open(i, url, 0);
	int rc;

	for (int n = 0; n < MESSAGES;) {
		rc = fw_store_control_put((struct fw_store *)st, FW_CONTROL_RELOAD, 0, &drv_err);
		if (rc && rc != FW_EAGAIN)
			_exit(1);
		n += !rc;
	}
	st->driver->close(st);
	_exit(0);
}

_Noreturn static void rows_send(int i, const char *url)
{
	for (int n = 0; n < MESSAGES; n++)
		put_control(i, url, "reload", NULL);
	takes_all(i, url);
}

/* One who reads what is above its last message sees each, whoever puts them meanwhile. */
START_TEST(messages_are_read_once)
{
	const char *url = drv_url(_i);
	pid_t pid[TAKERS];
	int64_t after = 0;
	struct store *st;
	int status, living = TAKERS, n = 0;

	if (!has_inbox(_i) || !drv_is_sql(_i))
		return;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(shared, MAP_FAILED);
	st = drv_open(_i, url, FW_STORE_CREATE);
	for (int i = 0; i < TAKERS; i++) {
		pid[i] = fork();
		ck_assert_int_ge(pid[i], 0);
		if (!pid[i] && i % 2)
			commands_send(_i, url);
		else if (!pid[i])
			rows_send(_i, url);
	}
	while (living) {
		n += messages_after(st, &after);
		if (waitpid(-1, &status, WNOHANG) <= 0)
			continue;
		ck_assert(WIFEXITED(status) && !WEXITSTATUS(status));
		living--;
	}
	n += messages_after(st, &after);
	ck_assert_int_eq(n, TAKERS * MESSAGES);
	drv_end(st);
	munmap(shared, sizeof(*shared));
}
END_TEST

/* ---- kills ----------------------------------------------------------------------------------- */

static struct sql_dialect deadly;
static const struct sql_dialect *sound;
static int statements_left;

static void statement_begins(void)
{
	if (statements_left-- == 0)
		kill(getpid(), SIGKILL);
}

/* The server has executed all statements before the next one. */
static int deadly_query(struct sql *s, const char *text, const struct sql_value *v, size_t n, sql_row_fn *fn, void *ctx,
	int64_t *changed, struct fw_err *err)
{
	int64_t unwanted;

	statement_begins();
	return sound->query(s, text, v, n, fn, ctx, changed ? changed : &unwanted, err);
}

static int deadly_query_rows(struct sql *s, const struct sql_text *t, const struct sql_value *v, size_t n, size_t rows,
	sql_row_fn *fn, void *ctx, struct fw_err *err)
{
	int64_t unwanted;
	int rc;

	statement_begins();
	rc = sound->query_rows(s, t, v, n, rows, fn, ctx, err);
	return rc ? rc : sound->query(s, "SELECT 1", NULL, 0, NULL, NULL, &unwanted, err);
}

static int deadly_commit(struct sql *s, struct fw_err *err)
{
	int rc;

	statement_begins();
	rc = sound->commit(s, err);
	statement_begins();
	return rc;
}

/* Will this process die before its nth statement from here on? */
static bool dies_at(int i, struct store *st, int nth)
{
	if (!drv_is_sql(i))
		return false;
	sound = sql_of(st)->dialect;
	deadly = *sound;
	deadly.query = deadly_query;
	deadly.query_rows = deadly_query_rows;
	deadly.commit = deadly_commit;
	statements_left = nth;
	sql_of(st)->dialect = &deadly;
	return true;
}

/* Returns false once a taker has ended without being killed. */
static bool taker_is_killed(int i, const char *url, int nth)
{
	struct store_inbox in = {.limit = 10, .feed = feed_of};
	struct store *st;
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		st = drv_open(i, url, 0);
		_exit(!dies_at(i, st, nth) || st->driver->inbox(st, &in, &drv_err) ? 1 : 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFSIGNALED(status) || (WIFEXITED(status) && !WEXITSTATUS(status)), "%x", (unsigned)status);
	return WIFSIGNALED(status);
}

/* A server keeps the locks of a dead taker until it notices: for so long its rows are skipped. */
static struct store_inbox take_all(struct store *st)
{
	struct store_inbox all = {.limit = 0}, in;

	while (figures(st).inbox_n) {
		in = take(st, 10);
		all.control_n += in.control_n;
		all.feed_n += in.feed_n;
		all.new_n += in.new_n;
		all.refused_n += in.refused_n;
	}
	return all;
}

START_TEST(taker_is_killed_anywhere)
{
	const char *url = drv_url(_i);
	int64_t after = 0;
	bool killed = true;
	struct store *st;
	int n;

	if (!has_inbox(_i))
		return;
	if (!drv_is_sql(_i)) {
		printf("# %s is left out: see dies_at()\n", under_test[_i].name);
		return;
	}
	st = drv_open(_i, url, FW_STORE_CREATE);
	(void)drv_feed(st, "https://known.example/", NOW);
	for (n = 0; killed; n++) {
		int64_t waiting, refused = figures(st).inbox_refused_n, known = feed_at(st, "https://known.example/");
		bool control_waits, feeds_wait;
		char address[60];
		int messages;

		ck_assert(fw_snprintf(address, sizeof(address), "https://new.example/%d", n));
		DONE(st->driver->feed_set(
			st, &(struct fw_feed){.id = known, .due_at_ms = NOW + n}, FW_SET_DUE, &drv_err));
		put_control(_i, url, n % 2 ? "resume" : "pause", NULL);
		put_address(_i, url, address);
		put_address(_i, url, "https://known.example/");
		put_address(_i, url, "nowhere");
		killed = taker_is_killed(_i, url, n);
		waiting = figures(st).inbox_n;
		/* control, then feeds, each all or nothing */
		ck_assert_msg(waiting == 4 || waiting == 3 || waiting == 0, "%lld rows wait", (long long)waiting);
		control_waits = waiting == 4;
		feeds_wait = waiting > 0;
		messages = messages_after(st, &after);
		ck_assert_int_eq(messages, control_waits ? 0 : 1);
		if (!control_waits)
			ck_assert_int_eq(paused(st), n % 2 == 0);
		ck_assert_int_eq(due_first(st, address), !feeds_wait);
		ck_assert_int_eq(due_first(st, "https://known.example/"), !feeds_wait);
		ck_assert_int_eq(figures(st).inbox_refused_n, refused + !feeds_wait);
		TAKEN(take_all(st), control_waits ? 1 : 0, feeds_wait ? 3 : 0, feeds_wait ? 1 : 0, feeds_wait ? 1 : 0,
			false);
		ck_assert_int_eq(messages_after(st, &after), control_waits ? 1 : 0);
		ck_assert_int_eq(paused(st), n % 2 == 0);
		ck_assert(due_first(st, address) && due_first(st, "https://known.example/"));
		ck_assert_int_eq(figures(st).inbox_refused_n, refused + 1);
		ck_assert_int_eq(figures(st).feed_n, n + 2);
	}
	ck_assert_int_gt(n, 15); /* statements of the two transactions */
	printf("# %s: killed before each of %d statements\n", under_test[_i].name, n - 1);
	drv_end(st);
}
END_TEST

/* ---- many rows ------------------------------------------------------------------------------- */

static int tick(void *ctx)
{
	++*(int64_t *)ctx;
	return 0;
}

/* The work of SQLite for a batch, in hundreds of its steps. */
static int64_t batch_steps(struct store *st)
{
	sqlite3 *db = sqlite_db(sql_of(st))->db;
	int64_t steps = 0;

	sqlite3_progress_handler(db, 100, tick, &steps);
	TAKEN(take(st, 500), 0, 500, 500, 0, true);
	sqlite3_progress_handler(db, 0, NULL, NULL);
	return steps;
}

START_TEST(many_rows_come_in_batches)
{
	enum { N = 100000, BATCH = 500 };
	const char *url = drv_url(_i);
	int64_t few = 0, many;
	struct store *st;

	if (!has_inbox(_i))
		return;
	st = drv_open(_i, url, FW_STORE_CREATE);
	if (is(_i, "sqlite")) {
		put_many(_i, url, "less", 2 * BATCH);
		few = batch_steps(st);
		TAKEN(take(st, BATCH + 1), 0, BATCH, BATCH, 0, false);
	}
	put_many(_i, url, "many", N);
	put_control(_i, url, "reload", NULL);
	ck_assert_int_eq(figures(st).inbox_n, N + 1);
	TAKEN(take(st, BATCH), 1, BATCH, BATCH, 0, true);
	ck_assert(feed_at(st, "https://many/0") && feed_at(st, "https://many/499") && !feed_at(st, "https://many/500"));
	if (is(_i, "sqlite")) { /* the rest is not read */
		many = batch_steps(st);
		ck_assert_msg(many * 2 < few * 3, "%lld hundred steps, and %lld where %d rows wait", (long long)few,
			(long long)many, N);
	}
	drv_end(st);
}
END_TEST

/* ---- waking ---------------------------------------------------------------------------------- */

static bool wakes(struct store *st, int64_t timeout_ms)
{
	bool changed = false;

	DONE(st->driver->wait(st, -1, timeout_ms, &changed, &drv_err));
	return changed;
}

START_TEST(rows_wake_workers)
{
	const char *url = drv_url(_i);
	struct store *st, *other;

	if (!has_inbox(_i) || is(_i, "redis")) /* there PUBLISH wakes */
		return;
	st = drv_open(_i, url, FW_STORE_CREATE);
	other = drv_open(_i, url, 0);
	while (wakes(st, 0))
		;
	put_address(_i, url, "https://a.example/");
	ck_assert(wakes(st, FW_MINUTE_MS));
	put_control(_i, url, "reload", NULL);
	ck_assert(wakes(st, FW_MINUTE_MS));
	while (wakes(st, 0))
		;
	ck_assert(!wakes(st, 0));
	/* what a taker has made due wakes the others */
	TAKEN(take(other, 5), 1, 1, 1, 0, false);
	ck_assert(wakes(st, FW_MINUTE_MS));
	put_address(_i, url, "https://b.example/"); /* the inbox was empty in between */
	ck_assert(wakes(st, FW_MINUTE_MS));
	other->driver->close(other);
	drv_end(st);
}
END_TEST

/* ---- feeds by hand --------------------------------------------------------------------------- */

struct change {
	const char *column, *value; /* value: without quotes; NULL: NULL */
};

static const char *change_try(int i, const char *url, int64_t id, const char *column, const char *value)
{
	struct fw_buf b = FW_BUF_INIT(0);
	bool call = is(i, "mysql");
	const char *words;

	if (call)
		fw_buf_addf(&b, "CALL set_feed(%lld, '%s', ", (long long)id, column);
	else
		fw_buf_addf(&b, "UPDATE v_feeds SET %s = ", column);
	quoted(&b, value);
	if (call)
		fw_buf_addf(&b, ")%c", '\0');
	else
		fw_buf_addf(&b, " WHERE id = %lld%c", (long long)id, '\0');
	words = client_try(url, b.p, NULL);
	fw_buf_finish(&b);
	return words;
}

static void change(int i, const char *url, int64_t id, const char *column, const char *value)
{
	const char *words = change_try(i, url, id, column, value);

	ck_assert_msg(!words, "%s = %s: %s", column, value ? value : "NULL", words);
}

START_TEST(feeds_are_changed_by_hand)
{
	const char *url = drv_url(_i);
	struct store_lease *l;
	int64_t id, other, version, now_ms;
	struct store *st;
	int shard;

	if (!under_test[_i].shared || !drv_is_sql(_i))
		return;
	st = drv_open(_i, url, FW_STORE_CREATE);
	now_ms = drv_clock(st);
	id = drv_feed(st, "https://a.example/", now_ms + FW_DAY_MS);
	other = drv_feed(st, "https://b.example/", NOW);
	shard = shard_of("a.example");
	l = drv_join(st, "w", LONG_MS);
	version = drv_version(st, l, shard);
	change(_i, url, id, "title", "It is");
	change(_i, url, id, "folder", "News/Tech");
	ck_assert(fw_str_eq(drv_find(st, id)->user_title, FW_STR("It is")));
	ck_assert(fw_str_eq(drv_find(st, id)->folder, FW_STR("News/Tech")));
	ck_assert_int_eq(drv_version(st, l, shard), version); /* nothing that its owner has to read */
	change(_i, url, id, "title", NULL);
	change(_i, url, id, "folder", "");
	ck_assert_uint_eq(drv_find(st, id)->user_title.len + drv_find(st, id)->folder.len, 0);
	while (wakes(st, 0))
		;
	change(_i, url, id, "due_at", "2026-11-28T10:00:00Z");
	ck_assert(wakes(st, FW_MINUTE_MS));
	ck_assert_int_eq(drv_find(st, id)->due_at_ms, INT64_C(1795860000000));
	ck_assert_int_gt(drv_version(st, l, shard), version);
	version = drv_version(st, l, shard);
	change(_i, url, id, "due_at", "2026-11-28 10:00:00.250");
	ck_assert_int_eq(drv_find(st, id)->due_at_ms, INT64_C(1795860000250));
	change(_i, url, id, "due_at", NULL);
	ck_assert_int_eq(drv_find(st, id)->due_at_ms, FW_DUE_FIRST);
	ck_assert_int_eq(drv_find(st, id)->status, FW_FEED_ACTIVE);
	change(_i, url, id, "due_at", "2030-01-01");
	change(_i, url, id, "due_at", "now");
	ck_assert_int_eq(drv_find(st, id)->due_at_ms, FW_DUE_FIRST);
	/* an interval counts from the last visit, as for `feedwheel set` */
	change(_i, url, id, "due_at", "2038-01-01");
	change(_i, url, id, "interval_ms", "3600000");
	ck_assert_int_eq(drv_find(st, id)->interval_ms, FW_HOUR_MS);
	ck_assert_int_ge(drv_find(st, id)->due_at_ms, now_ms);
	ck_assert_int_le(drv_find(st, id)->due_at_ms, drv_clock(st));
	change(_i, url, id, "due_at", "2038-01-01");
	change(_i, url, id, "interval_ms", "0");
	ck_assert_int_eq(drv_find(st, id)->interval_ms, 0);
	ck_assert_int_gt(drv_find(st, id)->due_at_ms, drv_clock(st));
	version = drv_version(st, l, shard);
	change(_i, url, id, "status", "paused");
	ck_assert_int_eq(drv_find(st, id)->status, FW_FEED_PAUSED);
	ck_assert_int_gt(drv_version(st, l, shard), version);
	DONE(st->driver->feed_set(st, &(struct fw_feed){.id = id, .crash_n = 2, .status = FW_FEED_QUARANTINED},
		FW_SET_CRASH | FW_SET_STATUS, &drv_err));
	change(_i, url, id, "status", "active"); /* as `feedwheel resume` does */
	ck_assert_int_eq(drv_find(st, id)->status, FW_FEED_ACTIVE);
	ck_assert_int_eq(drv_find(st, id)->crash_n, 0);
	ck_assert_int_le(drv_find(st, id)->due_at_ms, drv_clock(st));
	if (!is(_i, "mysql")) {
		client_run(url,
			"UPDATE v_feeds SET title = 'All', folder = 'At/Once', interval_ms = 7200000,"
			" status = 'paused',"
			" due_at = '2026-11-28T10:00:00Z'");
		for (int i = 0; i < 2; i++) {
			const struct fw_feed *f = drv_find(st, i ? other : id);

			ck_assert(fw_str_eq(f->user_title, FW_STR("All")) && fw_str_eq(f->folder, FW_STR("At/Once")));
			ck_assert(f->interval_ms == 2 * FW_HOUR_MS && f->status == FW_FEED_PAUSED);
			ck_assert_int_eq(f->due_at_ms, INT64_C(1795860000000));
		}
	} else {
		ck_assert_int_eq(drv_find(st, other)->due_at_ms, NOW);
	}
	drv_leave(st, l);
	drv_end(st);
}
END_TEST

START_TEST(other_changes_are_refused)
{
	static const struct change VALUE[] = {{"status", "gone"}, {"status", "quarantined"}, {"status", NULL},
		{"status", "Active"}, {"interval_ms", "-5"}, {"due_at", "soon"}, {"due_at", "2026-13-45"},
		{"due_at", "20261128"}, {"due_at", ""}};
	static const char *const COLUMN[] = {"url", "why", "last_visit", "last_visit_at", "last_ok_at", "last_new_at",
		"error", "home_page_url", "description", "language", "icon", "hub", "redirect_url", "created_at"};
	const char *url = drv_url(_i), *words;
	struct store *st;
	uint64_t print;
	int64_t id;

	if (!under_test[_i].shared || !drv_is_sql(_i))
		return;
	st = drv_open(_i, url, FW_STORE_CREATE);
	id = drv_feed(st, "https://a.example/", NOW);
	print = drv_print(st);
	for (size_t i = 0; i < FW_N(VALUE); i++) {
		words = change_try(_i, url, id, VALUE[i].column, VALUE[i].value);
		ck_assert_msg(words && strstr(words, VALUE[i].column) && strstr(words, "write"), "%s = %s: %s",
			VALUE[i].column, VALUE[i].value, words);
	}
	for (size_t i = 0; i < FW_N(COLUMN); i++) {
		words = change_try(_i, url, id, COLUMN[i], "x");
		ck_assert_msg(words && strstr(words, "title, folder, interval_ms, status and due_at") &&
				(is(_i, "mysql") || strstr(words, COLUMN[i])),
			"%s: %s", COLUMN[i], words);
	}
	if (is(_i, "mysql")) {
		words = change_try(_i, url, id + 1, "title", "x");
		ck_assert(words && strstr(words, "no feed has this number"));
		/* the server itself would write through the view */
		words = client_try(url, "UPDATE v_feeds SET url = 'x'", NULL);
		ck_assert(words && strstr(words, "url"));
		words = client_try(url, "UPDATE v_feeds SET folder = 'x'", NULL);
		ck_assert(words && strstr(words, "folder"));
	} else {
		static const char *const NUMBER[] = {"id", "http_status", "fail_n", "expect_ms"};

		for (size_t i = 0; i < FW_N(NUMBER); i++) {
			words = change_try(_i, url, id, NUMBER[i], "7");
			ck_assert_msg(words && strstr(words, NUMBER[i]), "%s: %s", NUMBER[i], words);
		}
		words = change_try(_i, url, id, "extra", "{\"a\": 1}");
		ck_assert(words && strstr(words, "v_feeds.extra"));
		words = client_try(url, "INSERT INTO v_feeds (url) VALUES ('https://b.example/')", NULL);
		ck_assert(words && strstr(words, "INSERT INTO feeds_to_fetch (url, folder)"));
		words = client_try(url, "DELETE FROM v_feeds", NULL);
		ck_assert(words && strstr(words, "feedwheel remove"));
		client_run(url, "UPDATE v_feeds SET title = 'x' WHERE id = 99"); /* no row */
		client_run(url, "UPDATE v_feeds SET url = url, id = id");        /* no change */
	}
	ck_assert_uint_eq(drv_print(st), print);
	drv_end(st);
}
END_TEST

/* ---- out ------------------------------------------------------------------------------------- */

START_TEST(views_show_workers_and_owners)
{
	struct fw_heartbeat b = {.worker = "host w\xc3\xb6rker 1",
		.pid = 42,
		.started_ms = INT64_C(1795860000000),
		.run_id = 7,
		.visits = 11,
		.new_entries = 12,
		.failures = 13,
		.in_flight = 14,
		.slots = 15,
		.clock_ahead_ms = -16};
	const char *url = drv_url(_i);
	struct store_lease *l;
	struct store *st;

	if (!under_test[_i].shared || !drv_is_sql(_i))
		return;
	st = drv_open(_i, url, FW_STORE_CREATE);
	DONE(fw_store_heartbeat_put((struct fw_store *)st, &b, INT64_C(1795860001234), &drv_err));
	ck_assert_str_eq(client_rows(url,
				 "SELECT name, pid, started_at, heartbeat_at, visits, new_entries, failures, in_flight,"
				 " slots, clock_ahead_ms FROM v_workers"),
		"host w\xc3\xb6rker 1|42|2026-11-28T10:00:00.000Z|2026-11-28T10:00:01.234Z|11|12|13|14|15|-16\n");
	(void)drv_feed(st, "https://a.example/", NOW);
	ck_assert_str_eq(client_rows(url, "SELECT feed_id, url, worker FROM v_owners"), "1|https://a.example/|\n");
	l = drv_join(st, b.worker, LONG_MS);
	ck_assert_str_eq(client_rows(url, "SELECT o.url, w.pid FROM v_owners o JOIN v_workers w ON w.name = o.worker"),
		"https://a.example/|42\n");
	drv_leave(st, l);
	ck_assert_str_eq(client_rows(url, "SELECT feed_id, url, worker FROM v_owners"), "1|https://a.example/|\n");
	/* as 0.1.0 wrote it: without the clock */
	client_run(url,
		is(_i, "sqlite")        ? "UPDATE records SET value = CAST('1 2 3 4 5 6 7 8' AS BLOB)" :
			is(_i, "mysql") ? "UPDATE records SET value = '1 2 3 4 5 6 7 8'" :
					  "UPDATE records SET value = '1 2 3 4 5 6 7 8'::bytea");
	ck_assert_str_eq(client_rows(url, "SELECT pid, slots, clock_ahead_ms FROM v_workers"), "1|8|0\n");
	drv_end(st);
}
END_TEST

static void commits(struct store *st, const struct store_lease *l, int64_t feed_id, struct fw_entry_row *e, size_t n)
{
	static int64_t at_ms = NOW;
	struct fw_feed f;
	struct fw_outcome o = drv_outcome(st, feed_id, &f, NOW);

	o.visit.at_ms = f.last_visit_ms = ++at_ms;
	o.entries = e;
	o.entry_n = n;
	ck_assert_int_eq(drv_commit(st, l->id, &o, 1), 0);
	ck_assert_int_eq(o.rc, 0);
}

START_TEST(new_entries_are_told)
{
	struct fw_entry_row e[] = {
		entry(1, 1, "a", "a"), entry(2, 1, "b", "b"), entry(3, 1, "c", "c"), entry(4, 1, "d", "d")};
	const char *url = drv_url(_i);
	struct client_listener *c;
	struct store_lease *l;
	struct fw_outcome o;
	struct fw_feed f;
	struct store *st;
	int64_t id;

	if (!is(_i, "postgres"))
		return;
	st = drv_open(_i, url, FW_STORE_CREATE);
	id = drv_feed(st, "https://a.example/", NOW);
	l = drv_join(st, "w", LONG_MS);
	c = client_listen(url, "_new");
	commits(st, l, id, e, 2);
	ck_assert_str_eq(client_notified(c), "2");
	commits(st, l, id, e, 2); /* nothing new */
	e[0].hash = 2;
	commits(st, l, id, e, 3); /* a new one, and a change, which has number 4 */
	ck_assert_str_eq(client_notified(c), "3");
	o = drv_push(id, &f, e + 3, 1);
	ck_assert_int_eq(drv_commit(st, 0, &o, 1), 0);
	ck_assert_str_eq(client_notified(c), "5");
	client_listen_end(c);
	drv_leave(st, l);
	drv_end(st);
}
END_TEST

/* A role that may write through the doors, and nothing else. */
START_TEST(rights_of_the_doors_suffice)
{
	const char *url = drv_url(_i), *schema;
	struct store_lease *l;
	char other[300], sql[600];
	int64_t id, version;
	struct store *st;

	if (!is(_i, "postgres"))
		return;
	st = drv_open(_i, url, FW_STORE_CREATE);
	id = drv_feed(st, "https://a.example/", NOW);
	l = drv_join(st, "w", LONG_MS);
	version = drv_version(st, l, shard_of("a.example"));
	schema = strstr(url, "&schema=") + strlen("&schema=");
	ck_assert(fw_snprintf(sql, sizeof(sql),
		"DROP ROLE IF EXISTS doorman; CREATE ROLE doorman LOGIN; GRANT USAGE ON SCHEMA %s TO doorman;"
		" GRANT INSERT ON feeds_to_fetch, control TO doorman; GRANT SELECT, UPDATE ON v_feeds TO doorman",
		schema));
	client_run(url, sql);
	ck_assert(strstr(url, "//feedwheel@") &&
		fw_snprintf(other, sizeof(other), "postgres://doorman@%s", strstr(url, "//feedwheel@") + 12));
	put_address(_i, other, "https://b.example/");
	put_control(_i, other, "reload", NULL);
	change(_i, other, id, "due_at", "now");
	ck_assert(due_first(st, "https://a.example/"));
	ck_assert_int_gt(drv_version(st, l, shard_of("a.example")), version);
	ck_assert_ptr_nonnull(client_try(other, "SELECT password FROM feeds", NULL));
	ck_assert_ptr_nonnull(client_try(other, "UPDATE schedule SET due_at_ms = 1", NULL));
	ck_assert_ptr_nonnull(client_try(other, "SELECT url FROM feeds_to_fetch", NULL));
	TAKEN(take(st, 5), 1, 1, 1, 0, false);
	/* the search_path of a client may name other schemas, or none */
	ck_assert(fw_snprintf(sql, sizeof(sql),
		"SET search_path = pg_catalog; UPDATE %s.v_feeds SET status = 'paused' WHERE id = %lld;"
		" INSERT INTO %s.feeds_to_fetch (url) VALUES ('https://c.example/')",
		schema, (long long)id, schema));
	while (wakes(st, 0))
		;
	client_run(other, sql);
	ck_assert(wakes(st, FW_MINUTE_MS));
	ck_assert_int_eq(drv_find(st, id)->status, FW_FEED_PAUSED);
	TAKEN(take(st, 5), 0, 1, 1, 0, false);
	ck_assert(fw_snprintf(sql, sizeof(sql), "DROP OWNED BY doorman; DROP ROLE doorman"));
	client_run(url, sql);
	drv_leave(st, l);
	drv_end(st);
}
END_TEST

int main(void)
{
	TCase *t = cases("every driver", setup, teardown, 300);
	const TTest *const every[] = {rows_become_feeds, refused_rows_tell_why, batches_are_in_order,
		control_comes_first, wrong_control_is_refused, ids_are_used_once, takers_share_the_rows,
		messages_are_read_once, taker_is_killed_anywhere, many_rows_come_in_batches, rows_wake_workers,
		feeds_are_changed_by_hand, other_changes_are_refused, views_show_workers_and_owners,
		new_entries_are_told, rights_of_the_doors_suffice};

	stores_begin();
	cases_add(t, every, FW_N(every), under_test_n);
	return cases_run("store inbox", t);
}
