/* SPDX-License-Identifier: ISC */
/*
 * The Redis driver and failing servers. Each refusal has its code and its remedy; nothing is
 * half-done; the same call succeeds when the cause is gone. Each test has servers of its own.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/inbox.h"
#include "store/redis/redis.h"
#include "tiny_disk.h"
#include "work.h"
#include "redis_calls.h"
#include "redis_fixture.h"

/* ---- visits ---------------------------------------------------------------------------------- */

static void open_says(const char *at, unsigned flags, int code, const char *words)
{
	struct fw_store_config c = {.url = at, .flags = flags};
	struct fw_store *st = NULL;

	says(fw_store_open(&c, &st, &drv_err), code, words);
	ck_assert_ptr_null(st);
	ck_assert_ptr_null(strstr(drv_err.text, "s3cret"));
}

/* ---- opening --------------------------------------------------------------------------------- */

START_TEST(urls_and_options)
{
	static const struct {
		const char *url, *words;
	} T[] = {
		{"redis://h/notanumber", "number of the database"},
		{"redis://h/0?nonsense=1", "unknown option"},
		{"redis://h:99999", "port"},
		{"redis://h/?prefix=a%20b", "prefix"},
		{"redis://h/?verify=maybe", "yes or no"},
		{"redis://h/?reply_max_mb=0", "reply_max_mb"},
		{"redis+unix://", "write redis+unix:///path"},
		{"redis+unix://host/path", "write redis+unix:///path"},
	};

	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_store_config c = {.url = T[i].url};
		struct fw_store *st;

		FAILS(fw_store_open(&c, &st, &drv_err), FW_EINVAL);
		ck_assert_msg(strstr(drv_err.text, T[i].words) != NULL, "%s: %s", T[i].url, drv_err.text);
	}
	open_says("redis://:s3cret@127.0.0.1:1/0", FW_STORE_CREATE, FW_EIO, "is the server running");
	open_says("redis+unix:///nowhere/at/all", FW_STORE_CREATE, FW_EIO, "is the server running");
	server_up(NULL);
	open_says(url, 0, FW_ENOTFOUND, "feedwheel add");
	open_says(url, FW_STORE_CREATE | FW_STORE_READ, FW_ENOTFOUND, "feedwheel add");
	ck_assert_str_eq(say("DBSIZE"), ":0\r\n"); /* nothing was created */
}
END_TEST

START_TEST(schemas_that_are_not_ours) /* REL-15 */
{
	struct fw_feed f = {.url = FW_STR("https://b.example/")};
	struct store_feed_new made;
	struct store_load load = {.rows = {.feed = &f, .feed_n = 1}, .made = &made};
	struct fw_store_stats s;
	struct store *st;
	char other[420];

	server_up(NULL);
	st = open_at(url, FW_STORE_CREATE);
	st->driver->close(st);
	st = open_at(url, FW_STORE_READ);
	DONE(st->driver->stats(st, &s, &drv_err));
	ck_assert_int_eq(s.schema, 2);
	says(st->driver->load(st, &load, &drv_err), FW_EINVAL, "reading only");
	st->driver->close(st);
	told("HSET {feedwheel/0}:meta schema_version 1"); /* release 0.1.0 */
	st = open_at(url, FW_STORE_READ);
	st->driver->close(st);
	ck_assert_str_eq(say("HGET {feedwheel/0}:meta schema_version"), "$1\r\n1\r\n");
	st = open_at(url, 0);
	st->driver->close(st);
	ck_assert_str_eq(say("HGET {feedwheel/0}:meta schema_version"), "$1\r\n2\r\n");
	told("HSET {feedwheel/0}:meta schema_version 99");
	open_says(url, FW_STORE_CREATE, FW_EVERSION, "upgrade feedwheel");
	told("HDEL {feedwheel/0}:meta schema_version");
	told("HSET {feedwheel/0}:meta schema 1");
	open_says(url, FW_STORE_CREATE, FW_EVERSION, "before the first release");
	told("SET {other/0}:meta string");
	ck_assert(fw_snprintf(other, sizeof(other), "%s?prefix=other", url));
	open_says(other, FW_STORE_CREATE, FW_EINVAL, "another program");
	told("HSET {old:0}:meta schema 4");
	ck_assert(fw_snprintf(other, sizeof(other), "%s?prefix=old", url));
	open_says(other, FW_STORE_CREATE, FW_EVERSION, "before the first release");
	ck_assert(fw_snprintf(other, sizeof(other), "%s?prefix=mine&db=77", url));
	open_says(other, FW_STORE_CREATE, FW_EINVAL, "no database with this number");
}
END_TEST

START_TEST(passwords)
{
	char with[420];

	server_up((const char *const[]){"--requirepass", "s3cret", NULL});
	open_says(url, FW_STORE_CREATE, FW_EINVAL, "requires a password");
	ck_assert(fw_snprintf(with, sizeof(with), "redis+unix://:s3cretwrong@%s", sock));
	open_says(with, FW_STORE_CREATE, FW_EINVAL, "refuses this user and password");
	ck_assert(fw_snprintf(with, sizeof(with), "redis+unix://:s3cret@%s", sock));
	fw_store_close(store_open(with, FW_STORE_CREATE));
	ck_assert(fw_snprintf(with, sizeof(with), "redis+unix://default:s3cret@%s", sock));
	fw_store_close(store_open(with, 0));
	server_down(SIGKILL);
	server_up(NULL);
	ck_assert(fw_snprintf(with, sizeof(with), "redis+unix://:s3cret@%s", sock));
	open_says(with, FW_STORE_CREATE, FW_EINVAL, "has no password");
}
END_TEST

START_TEST(too_many_connections)
{
	struct fw_store *st[4];
	int n = 0;

	server_up((const char *const[]){"--maxclients", "3", NULL});
	for (; n < 3; n++)
		st[n] = store_open(url, FW_STORE_CREATE);
	for (int i = 0; i < 50; i++) /* its refusal and our first command cross in every order */
		open_says(url, 0, FW_EAGAIN, "raise its maxclients");
	fw_store_close(st[--n]);
	for (int i = 0; i < 3000 && n < 3; i++) { /* the server takes a moment to notice that a client has gone */
		struct fw_store_config c = {.url = url};
		struct fw_err err = {0};

		if (fw_store_open(&c, &st[n], &err) == 0)
			n++;
		usleep(10000);
	}
	ck_assert_int_eq(n, 3);
	while (n)
		fw_store_close(st[--n]);
}
END_TEST

/* ---- a failing server ------------------------------------------------------------------------ */

START_TEST(refusals_pass) /* nothing is half-done, and the same commit succeeds afterwards */
{
	static const struct {
		const char *begin, *end, *words;
		int rc;
	} T[] = {
		{"CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", "raise its maxmemory", FW_EAGAIN},
		{"REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "name the master", FW_EIO},
		{"CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0", "min-replicas-to-write",
			FW_EAGAIN},
	};

	server_up(NULL);
	for (size_t i = 0; i < FW_N(T); i++) {
		struct work *w = work_begin_at(url, 0);
		int64_t lease_id = w->l->id;

		told(T[i].begin);
		says(commit(w), T[i].rc, T[i].words);
		says(w->st->driver->heartbeat(w->st, "w", w->l, &drv_err), T[i].rc, T[i].words);
		ck_assert(drv_entries(w->st, 0) == 0 && drv_visits(w->st, 0) == 0); /* reading still works */
		told(T[i].end);
		if (T[i].rc == FW_EIO)
			work_again(w, url);
		drv_heartbeat(w->st, "w", w->l);
		ck_assert_int_eq(w->l->id, lease_id);
		DONE(commit(w));
		ck_assert_uint_eq(w->o.visit.new_n, 3);
		commit_stores_once(w);
		work_end(w);
		told("FLUSHALL");
	}
}
END_TEST

START_TEST(replica_without_its_master)
{
	struct fw_store_stats s;
	struct store *st;

	server_up((const char *const[]){"--replica-serve-stale-data", "no", NULL});
	fw_store_close(store_open(url, FW_STORE_CREATE));
	st = open_at(url, FW_STORE_READ);
	told("REPLICAOF 127.0.0.1 1");
	says(st->driver->stats(st, &s, &drv_err), FW_EIO, "a replica without a master");
	told("REPLICAOF NO ONE");
	drv_end(st);
}
END_TEST

START_TEST(replica_is_for_reading) /* one that only reads learns of a failover, too */
{
	struct fw_store *writer, *reader, *late;
	char plain[420];

	server_up(NULL);
	writer = store_open(url, FW_STORE_CREATE);
	reader = store_open(url, FW_STORE_READ);
	DONE(fw_store_ping(writer, &drv_err));
	told("ACL SETUSER plain on >s3cret ~feedwheel* ~{feedwheel* &feedwheel* +@all -@dangerous");
	told("REPLICAOF 127.0.0.1 1");
	says(fw_store_ping(writer, &drv_err), FW_EIO, "name the master");
	DONE(fw_store_ping(reader, &drv_err));
	ck_assert_int_eq(stats(reader).feed_n, 0);
	open_says(url, 0, FW_EIO, "name the master");
	fw_store_close(store_open(url, FW_STORE_READ));
	ck_assert(fw_snprintf(plain, sizeof(plain), "redis+unix://plain:s3cret@%s", sock));
	late = store_open(plain, 0); /* without INFO it learns with a write */
	DONE(fw_store_ping(late, &drv_err));
	says(fw_store_subscribe(late, &(struct fw_feed_new){.url = FW_STR("https://b.example/")}, 1, &drv_err), FW_EIO,
		"name the master");
	told("REPLICAOF NO ONE");
	DONE(fw_store_ping(writer, &drv_err));
	fw_store_close(late);
	fw_store_close(reader);
	fw_store_close(writer);
}
END_TEST

START_TEST(functions_are_forgotten) /* a failover to a server without them, FUNCTION FLUSH */
{
	struct work *w;

	server_up(NULL);
	w = work_begin_at(url, 0);
	told("FUNCTION FLUSH");
	commit_stores_once(w);
	told("FUNCTION FLUSH");
	drv_heartbeat(w->st, "w", w->l);
	told("FUNCTION FLUSH");
	work_end(w);
}
END_TEST

START_TEST(busy_with_a_script)
{
	struct store *st;
	int64_t start, now_ms;
	int rc = 0;
	pid_t pid;

	server_up((const char *const[]){"--busy-reply-threshold", "50", NULL});
	st = open_at(url, FW_STORE_CREATE);
	pid = fork();
	if (pid == 0) {
		(void)say("EVAL \"while true do end\" 0");
		_exit(0);
	}
	for (start = fw_mono_ms(); !rc && fw_mono_ms() - start < 60000; usleep(20000))
		rc = st->driver->clock(st, &now_ms, &drv_err);
	says(rc, FW_EAGAIN, "busy with a script");
	told("SCRIPT KILL");
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	drv_clock(st);
	drv_end(st);
}
END_TEST

START_TEST(silent_server) /* stopped, or the network drops everything */
{
	struct store *st;
	int64_t now_ms;

	server_up(NULL);
	ck_assert(fw_snprintf(url, sizeof(url), "redis+unix://%s?timeout_ms=3000", sock));
	st = open_at(url, FW_STORE_CREATE);
	ck_assert_int_eq(kill(server, SIGSTOP), 0);
	says(st->driver->clock(st, &now_ms, &drv_err), FW_EIO, "no answer in time");
	ck_assert_int_eq(kill(server, SIGCONT), 0);
	says(st->driver->clock(st, &now_ms, &drv_err), FW_EIO,
		"open the store anew"); /* a late reply belongs to no call */
	st->driver->close(st);
	drv_end(open_at(url, 0));
}
END_TEST

static int listening(int *port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(sa);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	ck_assert_int_eq(listen(fd, 8), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
	*port = ntohs(sa.sin_port);
	return fd;
}

START_TEST(answers_of_others) /* replies of a server that is loading, of one that is no Redis, and nonsense */
{
	static const struct {
		const char *says, *words;
		int rc;
	} T[] = {
		{"-LOADING Redis is loading the dataset in memory\r\n", "loading its data", FW_EAGAIN},
		{"HTTP/1.1 400 Bad Request\r\n\r\n", "is it a Redis server", FW_EIO},
		{"", "closed the connection", FW_EIO},
		{"-DENIED Redis is running in protected mode\r\n", "other machines", FW_EINVAL},
		{"-ERR unknown command 'FUNCTION'\r\n", "Redis 7.0", FW_EVERSION},
		{"-CLUSTERDOWN The cluster is down\r\n", "have no server", FW_EAGAIN},
		{"$-7\r\n", "is it a Redis server", FW_EIO},
	};
	int port, fd = listening(&port);

	ck_assert(fw_snprintf(url, sizeof(url), "redis://127.0.0.1:%d", port));
	for (size_t i = 0; i < FW_N(T); i++) {
		pid_t pid = fork();

		if (pid == 0) {
			int c = accept(fd, NULL, NULL);
			char drop[65536];

			(void)!read(c, drop, sizeof(drop));
			(void)!write(c, T[i].says, strlen(T[i].says));
			shutdown(c, SHUT_WR);
			while (read(c, drop, sizeof(drop)) > 0)
				;
			_exit(0);
		}
		open_says(url, FW_STORE_CREATE, T[i].rc, T[i].words);
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	}
	close(fd);
}
END_TEST

/* Sends the start once, then the piece again and again, with a pause, until the client has gone. */
static void answer_without_end(int fd, const char *start, const char *piece, size_t n, useconds_t pause_us)
{
	int c = accept(fd, NULL, NULL);
	char drop[65536];

	signal(SIGPIPE, SIG_IGN);
	(void)!read(c, drop, sizeof(drop));
	(void)!write(c, start, strlen(start));
	while (n && write(c, piece, n) > 0)
		usleep(pause_us);
	while (read(c, drop, sizeof(drop)) > 0)
		;
	_exit(0);
}

static long peak_kb(void)
{
	struct rusage u;

	ck_assert_int_eq(getrusage(RUSAGE_SELF, &u), 0);
	return u.ru_maxrss;
}

START_TEST(answers_without_end) /* each ends by itself, and takes no memory that did not arrive */
{
	static char many[65536], ones[65536];
	static const struct {
		const char *options, *start, *piece;
		size_t n;
		useconds_t pause_us;
		const char *words;
	} T[] = {
		{"timeout_ms=300", "*2147483647\r\n", "", 0, 0, "no answer in time"},
		{"timeout_ms=300", "$1000000000\r\n", "x", 1, 10000, "no answer in time"},
		{"timeout_ms=20", "$500000000\r\n", many, sizeof(many), 5000, "no answer in time"},
		{"reply_max_mb=1", "$1000000000\r\n", many, sizeof(many), 0, "more than 1 MiB"},
		{"reply_max_mb=1", "*100000000\r\n", ones, sizeof(ones), 0, "more than 1 MiB"},
		{"reply_max_mb=1", "*1000\r\n*1000\r\n*1000\r\n*1000\r\n", "*1000\r\n", 7, 0, "is it a Redis server"},
	};
	int port, fd = listening(&port);
	long before_kb = peak_kb();

	memset(many, 'x', sizeof(many));
	for (size_t i = 0; i < sizeof(ones); i += 4)
		memcpy(ones + i, ":1\r\n", 4);
	for (size_t i = 0; i < FW_N(T); i++) {
		pid_t pid = fork();

		if (pid == 0)
			answer_without_end(fd, T[i].start, T[i].piece, T[i].n, T[i].pause_us);
		ck_assert(fw_snprintf(url, sizeof(url), "redis://127.0.0.1:%d?%s", port, T[i].options));
		open_says(url, FW_STORE_CREATE, FW_EIO, T[i].words);
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	}
	ck_assert_int_lt(peak_kb() - before_kb, 100000);
	close(fd);
}
END_TEST

/* ---- replies of another shape ---------------------------------------------------------------- */

/* A server in between, which exchanges one reply. In memory shared with the process that it is. */
struct between {
	int at;        /* the reply that is exchanged; -1: none */
	int seen;      /* replies so far */
	char with[80]; /* instead */
};

/* The length of the first reply, 0: it is not complete. */
static size_t reply_length(const char *p, size_t n)
{
	const char *end = memmem(p, n, "\r\n", 2);
	size_t head = end ? (size_t)(end - p) + 2 : 0, at = head;
	long count = end ? strtol(p + 1, NULL, 10) : 0;

	if (head && *p == '$')
		at += count < 0 ? 0 : (size_t)count + 2;
	for (long i = 0; head && *p == '*' && i < count; i++) {
		size_t one = reply_length(p + at, n - at);

		if (!one)
			return 0;
		at += one;
	}
	return at <= n ? at : 0;
}

/* False: the server has gone. */
static bool between_answer(struct between *b, int client, int upstream, char *buf, size_t cap, size_t *n)
{
	ssize_t got = read(upstream, buf + *n, cap - *n);
	size_t at = 0, one;

	*n += got > 0 ? (size_t)got : 0;
	while ((one = reply_length(buf + at, *n - at)) > 0) {
		bool swap = b->seen++ == b->at;

		(void)!write(client, swap ? b->with : buf + at, swap ? strlen(b->with) : one);
		at += one;
	}
	memmove(buf, buf + at, *n -= at);
	return got > 0;
}

static void between_serve(struct between *b, int client, int upstream)
{
	static char buf[1 << 22];
	char in[65536];
	size_t n = 0;

	for (;;) {
		struct pollfd p[] = {{.fd = client, .events = POLLIN}, {.fd = upstream, .events = POLLIN}};
		ssize_t got;

		if (poll(p, 2, -1) < 0)
			break;
		if (p[1].revents && !between_answer(b, client, upstream, buf, sizeof(buf), &n))
			break;
		got = p[0].revents ? read(client, in, sizeof(in)) : 1;
		if (got <= 0 || (p[0].revents && write(upstream, in, (size_t)got) != got))
			break;
	}
	close(client);
	close(upstream);
}

static int unix_connected(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)fw_str_copy(sa.sun_path, sizeof(sa.sun_path), fw_str(path));
	return connect(fd, (struct sockaddr *)&sa, sizeof(sa)) ? -1 : fd;
}

static pid_t between_start(struct between **b, int *port)
{
	int fd = listening(port);
	pid_t pid;

	*b = mmap(NULL, sizeof(**b), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(*b, MAP_FAILED);
	(*b)->at = -1;
	pid = fork();
	for (int client; pid == 0 && (client = accept(fd, NULL, NULL)) >= 0;) {
		signal(SIGPIPE, SIG_IGN);
		setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
		between_serve(*b, client, unix_connected(sock));
	}
	close(fd);
	return pid;
}

/* The call on a new store, reply nth exchanged. Returns its code; *seen: the number of replies. */
static int call_between(const struct redis_call *call, struct between *b, int nth, const char *with, int *seen)
{
	struct store *st;
	int rc;

	told("FLUSHALL");
	st = open_at(url, FW_STORE_CREATE);
	DONE(calls_load(st, &drv_err));
	DONE(calls_push(st, &drv_err));
	DONE(calls_event_put(st, &drv_err));
	DONE(calls_match_put(st, &drv_err));
	DONE(calls_record_put(st, &drv_err));
	told("RPUSH feedwheel:feeds_to_fetch https://d.example/ no");
	told("RPUSH feedwheel:control pause");
	b->seen = 0;
	(void)fw_str_copy(b->with, sizeof(b->with), fw_str(with));
	b->at = nth;
	drv_err = (struct fw_err){0};
	rc = call->run(st, &drv_err);
	*seen = b->seen;
	b->at = -1;
	st->driver->close(st);
	ck_assert_msg(!rc || (drv_err.rc == rc && drv_err.text[0]), "%s, reply %d %s: %d without a word", call->name,
		nth, with, rc);
	return rc;
}

START_TEST(stream_of_another_shape) /* rows are delivered if each got its id */
{
	static const struct {
		const char *exec, *words;
	} T[] = {
		{"*1\r\n$3\r\n1-1\r\n", NULL},
		{"*0\r\n", "malformed reply"},
		{"*-1\r\n", "malformed reply"},
		{"*1\r\n:1\r\n", "malformed reply"},
		{"*1\r\n-WRONGTYPE it is a list\r\n", "another program uses these keys"},
		{"+OK\r\n", "malformed reply"},
	};
	const struct store_stream_row row = {.id = 1, .type = "new", .text = FW_STR("{}")};
	struct redis_destination s = {.url = url, .stream = FW_STR("s"), .timeout_ms = 10000, .row = &row, .n = 1};
	int port, fd = listening(&port);

	ck_assert(fw_snprintf(url, sizeof(url), "redis://127.0.0.1:%d", port));
	for (size_t i = 0; i < FW_N(T); i++) {
		pid_t pid = fork();
		char start[200];

		ck_assert(fw_snprintf(start, sizeof(start), "+PONG\r\n+OK\r\n+QUEUED\r\n%s", T[i].exec));
		if (pid == 0)
			answer_without_end(fd, start, "", 0, 0);
		if (T[i].words)
			says(store_stream_append(&s, &drv_err), strstr(T[i].exec, "-W") ? FW_EINVAL : FW_EIO,
				T[i].words);
		else
			DONE(store_stream_append(&s, &drv_err));
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	}
	close(fd);
}
END_TEST

#define REPLIES_MAX 12 /* of a call that are exchanged; the rest are like these */

START_TEST(replies_of_another_shape) /* each reply of each call, by each of these */
{
	static const char *const WITH[] = {"*0\r\n", "*1\r\n$-1\r\n", "$-1\r\n", ":7\r\n", "+x\r\n",
		"*3\r\n:1\r\n:1\r\n:1\r\n", "*2\r\n*0\r\n*1\r\n$1\r\na\r\n", "$0\r\n\r\n",
		"*4\r\n$1\r\na\r\n$-1\r\n:9223372036854775807\r\n*1\r\n$-1\r\n", "*1\r\n*1\r\n*1\r\n$3\r\nabc\r\n",
		":-9223372036854775808\r\n"};
	struct between *b;
	int port, seen, status;
	pid_t pid;

	server_up(NULL);
	drv_end(open_at(url, FW_STORE_CREATE));
	pid = between_start(&b, &port);
	ck_assert(fw_snprintf(url, sizeof(url), "redis://127.0.0.1:%d", port));
	for (const struct redis_call *call = redis_calls; call < redis_calls + FW_N(redis_calls); call++) {
		int malformed = 0, all = 1;

		for (int nth = 0; nth < FW_MIN(all, REPLIES_MAX); nth++) {
			for (size_t i = 0; i < FW_N(WITH); i++) {
				malformed += call_between(call, b, nth, WITH[i], &seen) == FW_EIO &&
					strstr(drv_err.text, "malformed reply");
				all = FW_MAX(all, seen);
			}
		}
		if (strcmp(call->name, "match_put") && strcmp(call->name, "release")) /* they read no reply */
			ck_assert_msg(malformed > 0, "%s: none of %d replies is refused", call->name, all);
	}
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
}
END_TEST

/* A commit that could not be written is not stored; the same call succeeds when there is room. */
START_TEST(disk_full) /* REL-09: the append-only file cannot be written */
{
	struct fw_buf text = FW_BUF_INIT(0);
	struct work *w;
	int rc = 0, before = 0;

	if (!tiny_disk(dir, "6m"))
		return;
	server_up((const char *const[]){"--appendfsync", "always", "--auto-aof-rewrite-percentage", "0", NULL});
	w = work_begin_at(url, 0);
	told("CONFIG SET appendfsync everysec"); /* with "always" the server ends itself when its disk is full */
	while (text.len < 20000)
		fw_buf_adds(&text, "words and more words ");
	for (int key = 0; !rc && key < 40000; key += 20) {
		before = drv_entries(w->st, 0);
		visit_with(w, key, 20, fw_buf_str(&text));
		rc = commit(w);
		usleep(20000);
	}
	says(rc, FW_EAGAIN, "cannot write to its disk");
	ck_assert_int_eq(drv_entries(w->st, 0), before); /* all or nothing */
	ck_assert_int_eq(mount("tiny", dir, "tmpfs", MS_REMOUNT, "size=60m"), 0);
	for (int64_t start = fw_mono_ms(); rc && fw_mono_ms() - start < 60000; usleep(100000))
		rc = commit(w); /* it tries again once a second */
	DONE(rc);
	ck_assert_int_eq(w->o.rc, 0);
	ck_assert_int_eq(drv_entries(w->st, 0), before + 20);
	work_end(w);
	fw_buf_finish(&text);
	server_down(SIGKILL);
	umount2(dir, MNT_DETACH);
}
END_TEST

/* ---- commits whose reply was lost ------------------------------------------------------------ */

START_TEST(commit_that_comes_again) /* REL-01: over a new connection, as the store thread does */
{
	struct fw_store *first;
	struct work *w;

	server_up(NULL);
	w = work_begin_at(url, 0);
	DONE(commit(w));
	first = w->front;
	w->front = store_open(url, 0);
	w->st = store_of(w->front); /* for the caller, its connection broke before the reply came */
	commit_stores_once(w);
	visit(w, 0, 3);
	w->e[0].hash = 2;
	DONE(commit(w));
	ck_assert(!w->o.rc && w->o.visit.changed_n == 1);
	drv_leave(store_of(first), w->l);
	w->l = drv_join(w->st, "other", LONG_MS);
	w->l->id--; /* a commit with an expired lease is stale, even if it was stored before */
	FAILS(commit(w), FW_ESTALE);
	w->l->id++;
	fw_store_close(first);
	work_end(w);
}
END_TEST

static void holds(const char *key, int n)
{
	char words[80], answer[16];

	ck_assert(fw_snprintf(words, sizeof(words), "HLEN {feedwheel/0}:%s", key));
	ck_assert(fw_snprintf(answer, sizeof(answer), ":%d\r\n", n));
	ck_assert_str_eq(say(words), answer);
}

START_TEST(padded_numbers) /* one with more digits than places is written whole, and nothing before it */
{
	static const struct {
		int64_t n;
		size_t width;
		const char *text;
	} T[] = {{7, 4, "0007"}, {1023, 4, "1023"}, {-7, 4, "-007"}, {0, 1, "0"}, {12345, 4, "12345"}, {-1, 1, "-1"},
		{-1234, 4, "-1234"}, {INT64_MAX, 16, "9223372036854775807"}, {INT64_MIN, 20, "-9223372036854775808"},
		{INT64_MIN, 1, "-9223372036854775808"}};

	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_buf b = FW_BUF_INIT(0);

		fw_buf_adds(&b, "before ");
		rs_int_pad(&b, T[i].n, T[i].width);
		fw_buf_adds(&b, " behind");
		ck_assert_msg(strncmp(b.p, "before ", 7) == 0 && strncmp(b.p + 7, T[i].text, strlen(T[i].text)) == 0 &&
				strcmp(b.p + 7 + strlen(T[i].text), " behind") == 0,
			"%s: %s", T[i].text, b.p);
		fw_buf_finish(&b);
	}
}
END_TEST

/* A client reserved ids and died: a commit revokes them, so that readers do not wait for them. */
START_TEST(numbers_of_the_dead)
{
	struct work *w;

	server_up(NULL);
	w = work_begin_at(url, 0);
	commit_stores_once(w);
	visit(w, 3, 2);
	w->l->id += 7;
	FAILS(commit(w), FW_ESTALE);
	w->l->id -= 7;
	holds("entries", 3);
	holds("reserved_ids", 0);
	told("HSET {feedwheel/0}:reserved_ids 3 1"); /* long ago, and two of them */
	told("HSET {feedwheel/0}:meta entry_id 5");
	DONE(commit(w));
	ck_assert_uint_eq(w->o.visit.new_n, 2);
	holds("entries", 5);
	holds("reserved_ids", 0);
	ck_assert_str_eq(say("GET {feedwheel/0}:revoked"), "$1\r\n1\r\n");
	ck_assert_int_eq(drv_entries(w->st, 0), 5);
	work_end(w);
}
END_TEST

/*
 * Another client writes what a commit has read, or revokes its ids, between its reads and its
 * writes: the commit runs again, and nothing of either is lost.
 */
START_TEST(commits_that_are_disturbed)
{
	int stored = 0, refused = 0;
	struct work *w;
	pid_t other;

	server_up(NULL);
	w = work_begin_at(url, 0);
	commit_stores_once(w);
	other = fork();
	while (other == 0)
		told("INCR {feedwheel/0}:revoked");
	for (int i = 0; i < 200; i++) {
		int rc;

		visit(w, 10 + 2 * i, 2);
		rc = commit(w);
		if (rc)
			says(rc, FW_EAGAIN, "keep changing");
		stored += !rc;
		refused += rc != 0;
	}
	ck_assert_int_eq(kill(other, SIGKILL), 0);
	ck_assert_int_eq(waitpid(other, NULL, 0), other);
	ck_assert_int_gt(stored, 0);
	holds("reserved_ids", 0);
	ck_assert_int_eq(drv_entries(w->st, 0), 3 + 2 * stored);
	ck_assert_int_eq(drv_visits(w->st, w->feed_id), 1 + stored);
	printf("# of 200 commits that were disturbed all the time %d were stored, %d refused\n", stored, refused);
	work_end(w);
}
END_TEST

#define HAMMERS 3
#define TRIES_MAX 65536

/* per feed */
struct book {
	_Atomic int64_t tried[HAMMERS];                  /* the last number that was sent */
	_Atomic unsigned char known[HAMMERS][TRIES_MAX]; /* the numbers that were acknowledged */
	_Atomic int commits, stop;
};
static struct book *book;

/* Sends the commit until it is answered, over a new connection if one breaks. */
static void insist(struct store **st, int64_t lease_id, struct fw_outcome *o)
{
	struct fw_store_config c = {.url = url};
	struct fw_store *front = NULL;
	int rc;

	do {
		if (!*st && fw_store_open(&c, &front, &drv_err) == 0)
			*st = store_of(front);
		rc = *st ? drv_commit(*st, lease_id, o, 1) : FW_EIO;
		if (rc == FW_EIO && *st) {
			(*st)->driver->close(*st);
			*st = NULL;
		}
		if (rc)
			usleep(5000);
	} while (rc);
}

/*
 * Each commit brings one entry, numbered within its feed: visits for the first process, pushes for
 * the others. The same commit is sent until it is answered, whatever breaks.
 */
static void hammer(int number, struct fw_feed f, int64_t lease_id)
{
	struct store *st = NULL;

	while (!atomic_load(&book->stop)) {
		int64_t n = atomic_fetch_add(&book->tried[number], 1) + 1;
		struct fw_entry_row e = entry(0, 1, "t", "c");
		struct fw_outcome o = drv_push(f.id, &f, &e, 1);

		memcpy(e.key, &n, sizeof(n));
		if (!number) {
			o.visit.kind = FW_VISIT_OK;
			o.host_id = store_feed_host_id(&f);
			o.was_due_ms = f.due_at_ms;
			f.last_visit_ms = o.visit.at_ms;
		}
		insist(&st, number ? 0 : lease_id, &o);
		ck_assert_int_eq(o.rc, 0);
		if (n < TRIES_MAX)
			atomic_store(&book->known[number][n], 1);
		atomic_fetch_add(&book->commits, 1);
	}
	if (st)
		st->driver->close(st);
}

static int keys_seen(void *ctx, const struct fw_entry_row *row)
{
	unsigned char *seen = ctx;
	int64_t n;

	memcpy(&n, row->key, sizeof(n));
	ck_assert(n >= 1 && n < TRIES_MAX);
	ck_assert_msg(!seen[n], "number %d is there twice", (int)n);
	return seen[n] = 1, 0;
}

/* Waits until the hammers have made progress; the test's time limit fails it if they never do. */
static void some_commits(void)
{
	int before = atomic_load(&book->commits);

	while (atomic_load(&book->commits) < before + 4)
		usleep(1000);
}

START_TEST(server_is_killed_in_commit) /* with appendfsync always each acknowledged entry is there, once */
{
	static const char *const always[] = {"--appendfsync", "always", NULL};
	struct store *st;
	struct store_lease *l;
	struct fw_feed f[HAMMERS];
	int64_t id[HAMMERS];
	pid_t pid[HAMMERS];
	int known = 0;

	book = mmap(NULL, sizeof(*book), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	server_up(always);
	st = open_at(url, FW_STORE_CREATE);
	drv_feeds(st, "h.example", HAMMERS, 1, id);
	l = drv_join(st, "w", LONG_MS);
	for (int i = 0; i < HAMMERS; i++)
		f[i] = *drv_find(st, id[i]);
	for (int i = 0; i < HAMMERS; i++) {
		pid[i] = fork();
		if (pid[i] == 0) {
			hammer(i, f[i], l->id);
			_exit(0);
		}
	}
	for (int i = 0; i < 12; i++) {
		some_commits();
		usleep((useconds_t)i * 7000); /* at some point of the next commits */
		server_down(SIGKILL);
		server_up(always);
	}
	some_commits();
	atomic_store(&book->stop, 1);
	for (int i = 0; i < HAMMERS; i++) {
		int status;

		ck_assert_int_eq(waitpid(pid[i], &status, 0), pid[i]);
		ck_assert_int_eq(status, 0);
	}
	st->driver->close(st);
	st = open_at(url, 0);
	for (int i = 0; i < HAMMERS; i++) {
		struct fw_entry_query q = {.feed_id = id[i], .key = true};
		static unsigned char seen[TRIES_MAX];

		memset(seen, 0, sizeof(seen));
		DONE(fw_store_entry_list((struct fw_store *)st, &q, keys_seen, seen, &drv_err));
		for (int n = 1; n < TRIES_MAX; n++) {
			ck_assert_msg(seen[n] == book->known[i][n], "feed %d, number %d: %d is there", i, n, seen[n]);
			known += seen[n];
		}
		ck_assert_int_eq(drv_visits(st, id[i]), (int)atomic_load(&book->tried[i]));
	}
	printf("# 12 kills of the server, %d commits acknowledged\n", known);
	ck_assert_int_gt(known, 20);
	drv_leave(st, l);
	drv_end(st);
}
END_TEST

/* ---- defects in the data --------------------------------------------------------------------- */

struct found {
	int n, worst;
	char words[500];
};

static void finding(void *ctx, const char *name, int level, const char *text, const char *remedy)
{
	struct found *f = ctx;
	size_t at = strlen(f->words);

	(void)name;
	f->n++;
	f->worst = FW_MAX(f->worst, level);
	(void)fw_snprintf(f->words + at, sizeof(f->words) - at, "%s|%s|", text, remedy);
}

START_TEST(doctor_looks_at_durability)
{
	static const struct {
		const char *command, *words;
		int worst;
	} T[] = {
		{"CONFIG SET aof-load-truncated yes", "half a transaction", 1},
		{"CONFIG SET appendfsync no", "half a minute", 1},
		{"CONFIG SET appendonly no", "no append-only file", 1},
		{"CONFIG SET maxmemory-policy allkeys-lru", "drops keys", 2},
		{"CONFIG SET maxmemory 1000mb", "drops keys", 2},
	};
	struct store *st;
	struct found f = {0};

	server_up(NULL);
	st = open_at(url, FW_STORE_CREATE);
	DONE(st->driver->inspect(st, false, finding, &f, &drv_err));
	ck_assert_msg(f.worst == 0 && strstr(f.words, "everysec") &&
			(strstr(f.words, "Redis ") || strstr(f.words, "Valkey ")),
		"%s", f.words);
	told("CONFIG SET maxmemory 1000mb");
	for (size_t i = 0; i < FW_N(T); i++) {
		f = (struct found){0};
		told(T[i].command);
		DONE(st->driver->inspect(st, false, finding, &f, &drv_err));
		ck_assert_msg(f.worst == T[i].worst && strstr(f.words, T[i].words), "%s: %s", T[i].command, f.words);
	}
	st->driver->close(st);
}
END_TEST

START_TEST(deep_check_finds) /* states that no call of ours can cause */
{
	static const struct {
		const char *verb, *what, *words;
	} T[] = {
		{"HDEL", "feed 1", "it has no address"},
		{"HDEL", "entries 1", "which does not exist"},
		{"HDEL", "schedule", "no feed"},
		{"HDEL", "urls https://a.example/", "its address belongs to another feed"},
		{"ZREM", "visit_ids 1", "visit_ids: 0 instead of 1"},
		{"HSET", "meta visit_n 7", "visit_n: 7 instead of 1"},
		{"HSET", "meta entry_id 0", "higher ids exist"},
		{"HSET", "meta lease_id 0", "lease_id is 0"},
	};

	server_up(NULL);
	for (size_t i = 0; i < FW_N(T); i++) {
		struct work *w = work_begin_at(url, 0);
		struct found f = {0};
		char words[200];

		commit_stores_once(w);
		ck_assert(fw_snprintf(words, sizeof(words), "%s {feedwheel/0}:%s", T[i].verb, T[i].what));
		if (strcmp(T[i].what, "schedule") == 0)
			ck_assert(fw_snprintf(words, sizeof(words), "HDEL {feedwheel/0}:schedule:%04d 1",
				store_host_shard(store_feed_host_id(drv_find(w->st, 1)))));
		told(words);
		DONE(w->st->driver->inspect(w->st, true, finding, &f, &drv_err));
		ck_assert_msg(f.worst == 2 && strstr(f.words, T[i].words), "%s: %s", words, f.words);
		work_drop(w);
		told("FLUSHALL");
	}
}
END_TEST

/* ---- a cluster ------------------------------------------------------------------------------- */

#define NODES 3

struct node {
	char dir[240], sock[260], port[12], bus[12], id[48];
	pid_t pid;
};
static struct node node[NODES + 1]; /* the last one: a replica of the one before */

static void node_up(struct node *n)
{
	n->pid = redis_run(n->dir, true,
		(const char *const[]){"--port", n->port, "--unixsocket", n->sock, "--bind", "127.0.0.1",
			"--cluster-enabled", "yes", "--cluster-port", n->bus, "--cluster-node-timeout", "3000",
			"--repl-diskless-sync-delay", "0", NULL});
	server_wait(n->sock);
}

/* The node's answer has these words, sooner or later. */
static void node_says(const struct node *n, const char *question, const char *words)
{
	for (int64_t start = fw_mono_ms(); !strstr(say_to(n->sock, question), words); usleep(50000))
		ck_assert_int_lt(fw_mono_ms() - start, 60000);
}

static void cluster_is(const char *state)
{
	for (int i = 0; i < NODES; i++) {
		if (node[i].pid)
			node_says(&node[i], "CLUSTER INFO", state);
	}
}

static void node_make(int i)
{
	struct node *n = &node[i];
	int a, b, fa = listening(&a), fb = listening(&b);
	char words[200];

	close(fa);
	close(fb);
	ck_assert(fw_snprintf(n->dir, sizeof(n->dir), "%s/n%d", dir, i));
	ck_assert(fw_snprintf(n->sock, sizeof(n->sock), "%s/s", n->dir));
	ck_assert(fw_snprintf(n->port, sizeof(n->port), "%d", a) && fw_snprintf(n->bus, sizeof(n->bus), "%d", b));
	ck_assert_int_eq(mkdir(n->dir, 0755), 0);
	node_up(n);
	ck_assert(fw_snprintf(words, sizeof(words), "CLUSTER MEET 127.0.0.1 %s %s", node[0].port, node[0].bus));
	ck_assert_str_eq(say_to(n->sock, words), "+OK\r\n");
	ck_assert_int_eq(sscanf(say_to(n->sock, "CLUSTER MYID"), "$40 %40s", n->id), 1);
}

/* Three servers with a third of the hash slots each. */
static void cluster_up(void)
{
	char words[200];

	for (int i = 0; i < NODES; i++) {
		struct node *n = &node[i];

		node_make(i);
		ck_assert(fw_snprintf(words, sizeof(words), "CLUSTER ADDSLOTSRANGE %d %d", i * 16384 / NODES,
			(i + 1) * 16384 / NODES - 1));
		ck_assert_str_eq(say_to(n->sock, words), "+OK\r\n");
	}
	cluster_is("cluster_state:ok");
	ck_assert(fw_snprintf(url, sizeof(url), "redis://127.0.0.1:%s/", node[0].port));
}

static void cluster_down(void)
{
	for (int i = 0; i <= NODES; i++)
		redis_end(node[i].pid, SIGKILL);
}

#define FEEDS 60

/* Feeds of many hosts, visited in one commit. */
static void spread_work(struct store *st, struct store_lease *l, int64_t *id, struct fw_outcome *o, struct fw_feed *f,
	struct fw_entry_row *e)
{
	for (int i = 0; i < FEEDS; i++) {
		char at[60];

		ck_assert(fw_snprintf(at, sizeof(at), "https://h%d.example/", i));
		id[i] = drv_feed(st, at, NOW);
	}
	drv_heartbeat(st, "w", l);
	for (int i = 0; i < FEEDS; i++) {
		const struct fw_feed *is = drv_find(st, id[i]);

		f[i] = (struct fw_feed){.id = id[i], .due_at_ms = NOW + 1, .last_visit_ms = NOW, .last_ok_ms = NOW};
		o[i] = (struct fw_outcome){.feed_id = id[i],
			.host_id = store_feed_host_id(is),
			.was_due_ms = NOW,
			.feed = &f[i],
			.visit = {.at_ms = NOW, .kind = FW_VISIT_OK, .slot = -1}};
		e[i] = entry(i, 1, "title", "text");
		o[i].entries = &e[i];
		o[i].entry_n = 1;
	}
}

static int rising(void *ctx, const struct fw_entry_row *e)
{
	int64_t *last = ctx;

	ck_assert_int_gt(e->id, *last);
	*last = e->id;
	return 0;
}

static void slot_empty(const struct node *from, const struct node *to, int slot)
{
	char words[300], key[100];

	for (;;) {
		ck_assert(fw_snprintf(words, sizeof(words), "CLUSTER GETKEYSINSLOT %d 1", slot));
		if (sscanf(say_to(from->sock, words), "*1 $%*d %99s", key) != 1)
			return;
		ck_assert(fw_snprintf(words, sizeof(words), "MIGRATE 127.0.0.1 %s %s 0 5000", to->port, key));
		ck_assert_str_eq(say_to(from->sock, words), "+OK\r\n");
	}
}

START_TEST(merge_of_before) /* an earlier version died while it merged feeds; its marks go */
{
	struct store *st;
	int64_t from, into;
	char words[100];

	server_up(NULL);
	st = open_at(url, FW_STORE_CREATE);
	from = drv_feed(st, "https://from.example/", NOW);
	into = drv_feed(st, "https://into.example/", NOW);
	st->driver->close(st);
	ck_assert(fw_snprintf(words, sizeof(words), "HSET {feedwheel/0}:merging %d %d", (int)from, (int)into));
	told(words);
	told("HSET {feedwheel/0}:adopting 7 https://from.example/");
	told("SADD {feedwheel/0}:void 9");
	st = open_at(url, FW_STORE_READ);
	ck_assert(drv_is(st, from) && drv_is(st, into));
	st->driver->close(st);
	st = open_at(url, 0);
	ck_assert(!drv_is(st, from) && drv_is(st, into));
	ck_assert_str_eq(say("EXISTS {feedwheel/0}:merging {feedwheel/0}:adopting {feedwheel/0}:void"), ":0\r\n");
	ck_assert_int_ne(drv_feed(st, "https://from.example/", NOW), from);
	drv_end(st);
}
END_TEST

START_TEST(cluster_store_of_before) /* its 16 parts were spread over the nodes of a cluster */
{
	server_up(NULL);
	drv_end(open_at(url, FW_STORE_CREATE));
	told("HSET {feedwheel/0}:meta cells 16");
	open_says(url, FW_STORE_CREATE, FW_EVERSION, "copy it with feedwheel 0.1");
	open_says(url, FW_STORE_READ, FW_EVERSION, "copy it with feedwheel 0.1");
}
END_TEST

struct reloading {
	struct fw_matcher matcher;
	int reloads, calls;
	const char *words; /* told to the server in the first call; NULL: nothing */
	int64_t order_id;
};

static int reloading_match(
	void *ctx, const struct fw_outcome *o, const struct fw_entry_row *e, bool is_new, struct fw_match_result *out)
{
	struct reloading *m = ctx;

	(void)o, (void)e, (void)is_new;
	if (m->words && !m->calls++)
		told(m->words);
	*out = (struct fw_match_result){.order_id = &m->order_id, .n = m->reloads > 0};
	return 0;
}

static int reloading_reload(void *ctx, struct fw_store *st, struct fw_err *err)
{
	struct reloading *m = ctx;

	m->reloads++;
	return fw_store_orders_version(st, &m->matcher.version, err);
}

static int match_counted(void *ctx, const struct fw_match *m)
{
	(void)m;
	++*(int *)ctx;
	return 0;
}

START_TEST(order_changes_before_and_in_a_commit) /* each entry is stored once, and has one match */
{
	static const char *const WHEN[][2] = {
		/* before a commit, inside it */
		{NULL, NULL},
		{"INCRBY {feedwheel/0}:orders 5", NULL},
		{NULL, "INCRBY {feedwheel/0}:orders 5"},
	};
	static struct fw_outcome o[FEEDS];
	static struct fw_feed f[FEEDS];
	static struct fw_entry_row e[FEEDS];
	struct fw_record order = {.kind = FW_STR(FW_RECORD_ORDER),
		.key = FW_STR("o"),
		.value = FW_STR("x"),
		.at_ms = NOW,
		.until_ms = FW_NO_DATE};
	struct reloading m = {
		.matcher = {.match = reloading_match, .reload = reloading_reload, .ctx = &m}, .order_id = 7};
	int64_t id[FEEDS];
	struct store_lease *l;
	struct store *st;

	server_up(NULL);
	st = open_at(url, FW_STORE_CREATE);
	l = drv_join(st, "w", LONG_MS);
	spread_work(st, l, id, o, f, e);
	fw_store_set_matcher((struct fw_store *)st, &m.matcher);
	DONE(fw_store_record_put((struct fw_store *)st, &order, false, NULL, &drv_err));
	for (int i = 0; i < (int)FW_N(WHEN); i++) {
		int matched = 0;

		m.calls = 0;
		m.words = WHEN[i][1];
		if (WHEN[i][0])
			told(WHEN[i][0]);
		for (int k = 0; k < FEEDS; k++) {
			f[k].last_visit_ms = o[k].visit.at_ms = NOW + i;
			e[k] = entry(k + i * FEEDS, 1, "title", "text");
		}
		DONE(store_commit(st, &(struct store_commit){.lease_id = l->id, .outcome = o, .n = FEEDS}, &drv_err));
		ck_assert_int_eq(m.reloads, i + 1);
		ck_assert_int_eq(drv_entries(st, 0), (i + 1) * FEEDS);
		ck_assert_int_eq(drv_visits(st, 0), (i + 1) * FEEDS);
		DONE(fw_store_match_list((struct fw_store *)st, &(struct fw_match_query){.order_id = 7}, match_counted,
			&matched, &drv_err));
		ck_assert_int_eq(matched, (i + 1) * FEEDS);
	}
	drv_leave(st, l);
	drv_end(st);
}
END_TEST

/* The hash slot of a store with this prefix. */
static int slot_of(const char *prefix)
{
	char words[100];
	int slot = -1;

	ck_assert(fw_snprintf(words, sizeof(words), "CLUSTER KEYSLOT {%s/0}:", prefix));
	ck_assert_int_eq(sscanf(say_to(node[0].sock, words), ":%d", &slot), 1);
	return slot;
}

/* A prefix whose store lies on this node, as the slots were given out first. */
static const char *prefix_on(int nth)
{
	static char prefix[NODES][20];

	for (int i = 0; i < 100; i++) {
		int slot;

		ck_assert(fw_snprintf(prefix[nth], sizeof(prefix[nth]), "p%d", i));
		slot = slot_of(prefix[nth]);
		if (slot >= nth * 16384 / NODES && slot < (nth + 1) * 16384 / NODES)
			return prefix[nth];
	}
	ck_abort_msg("no prefix is on node %d", nth);
	return NULL;
}

/* How CLUSTER SLOTS shows a slot that has gone to a node alone. */
static const char *slot_range(int slot)
{
	static char range[60];

	ck_assert(fw_snprintf(range, sizeof(range), "*3\r\n:%d\r\n:%d\r\n", slot, slot));
	return range;
}

static const char *cluster_url(const char *prefix)
{
	static char at[NODES][420];
	static int n;

	n = (n + 1) % NODES;
	ck_assert(fw_snprintf(at[n], sizeof(at[n]), "redis://127.0.0.1:%s/?prefix=%s", node[0].port, prefix));
	return at[n];
}

static int number_at(const struct node *at, const char *words)
{
	int n = -1;

	ck_assert_int_eq(sscanf(say_to(at->sock, words), ":%d", &n), 1);
	return n;
}

START_TEST(cluster_stores) /* two stores on a cluster, one on a node; the node of one dies, and is back */
{
	static struct fw_outcome o[FEEDS];
	static struct fw_feed f[FEEDS];
	static struct fw_entry_row e[FEEDS];
	struct store *st, *other;
	struct store_lease *l;
	const char *at;
	int64_t id[FEEDS], last = 0;
	int rc;

	cluster_up();
	at = cluster_url(prefix_on(2));
	st = open_at(at, FW_STORE_CREATE);
	other = open_at(cluster_url(prefix_on(1)), FW_STORE_CREATE);
	(void)drv_feed(other, "https://other.example/", NOW);
	l = drv_join(st, "w", LONG_MS);
	spread_work(st, l, id, o, f, e);
	ck_assert_str_eq(say_to(node[0].sock, "DBSIZE"), ":0\r\n"); /* each on its node, whole */
	ck_assert_str_eq(say_to(node[2].sock, "FUNCTION FLUSH"), "+OK\r\n");
	drv_heartbeat(st, "w", l);
	redis_end(node[2].pid, SIGKILL); /* not the node in the URL */
	node[2].pid = 0;
	rc = drv_commit(st, l->id, o, FEEDS);
	ck_assert_msg(rc == FW_EIO || rc == FW_EAGAIN, "%d %s", rc, drv_err.text);
	st->driver->close(st);
	node_up(&node[2]);
	cluster_is("cluster_state:ok");
	st = open_at(at, 0);
	for (int again = 0; again < 2; again++) {
		DONE(drv_commit(st, l->id, o, FEEDS));
		for (int i = 0; i < FEEDS; i++)
			ck_assert_int_eq(o[i].rc, 0);
	}
	ck_assert_int_eq(drv_entries(st, 0), FEEDS);
	ck_assert_int_eq(drv_visits(st, 0), FEEDS);
	DONE(fw_store_entry_list(
		(struct fw_store *)st, &(struct fw_entry_query){.oldest_first = true}, rising, &last, &drv_err));
	ck_assert_int_eq(stats((struct fw_store *)other).feed_n, 1);
	drv_leave(st, l);
	drv_end(st);
	drv_end(other);
	ck_assert(fw_snprintf(url, sizeof(url), "redis://127.0.0.1:%s/1", node[0].port));
	open_says(url, 0, FW_EINVAL, "database 0 only");
	cluster_down();
}
END_TEST

static int inbox_feed(void *ctx, const struct store_inbox_feed *row, struct fw_feed_new *feed, struct fw_err *err)
{
	(void)ctx, (void)err;
	*feed = (struct fw_feed_new){.url = row->url};
	return 0;
}

START_TEST(cluster_slot_goes) /* the store waits while its hash slot moves to another node; opened again, it is there */
{
	struct store_inbox in = {.limit = 10, .feed = inbox_feed};
	struct store_lease *l;
	struct store *st;
	const char *prefix, *at;
	char words[300];
	int slot;

	cluster_up();
	prefix = prefix_on(1);
	slot = slot_of(prefix);
	at = cluster_url(prefix);
	st = open_at(at, FW_STORE_CREATE);
	l = drv_join(st, "w", LONG_MS);
	ck_assert(fw_snprintf(words, sizeof(words), "CLUSTER SETSLOT %d IMPORTING %s", slot, node[1].id));
	ck_assert_str_eq(say_to(node[2].sock, words), "+OK\r\n");
	ck_assert(fw_snprintf(words, sizeof(words), "CLUSTER SETSLOT %d MIGRATING %s", slot, node[2].id));
	ck_assert_str_eq(say_to(node[1].sock, words), "+OK\r\n");
	says(st->driver->heartbeat(st, "w", l, &drv_err), FW_EAGAIN, "moving to another node"); /* ASK */
	slot_empty(&node[1], &node[2], slot);
	ck_assert(fw_snprintf(words, sizeof(words), "CLUSTER SETSLOT %d NODE %s", slot, node[2].id));
	ck_assert_str_eq(say_to(node[2].sock, words), "+OK\r\n");
	ck_assert_str_eq(say_to(node[1].sock, words), "+OK\r\n");
	says(st->driver->heartbeat(st, "w", l, &drv_err), FW_EIO, "on another node now"); /* MOVED */
	st->driver->close(st);
	node_says(&node[0], "CLUSTER SLOTS", slot_range(slot)); /* the others notice */
	st = open_at(at, 0);
	drv_heartbeat(st, "w", l);
	ck_assert(fw_snprintf(words, sizeof(words), "RPUSH {%s/0}:feeds_to_fetch https://h.example/", prefix));
	ck_assert_int_eq(number_at(&node[2], words), 1);
	DONE(st->driver->inbox(st, &in, &drv_err));
	ck_assert(in.feed_n == 1 && in.new_n == 1);
	drv_leave(st, l);
	drv_end(st);
	cluster_down();
}
END_TEST

/* Opens the store again, as the owners of connections do, until a heartbeat is answered. */
static struct store *reopened(struct store *st, const char *at, struct store_lease *l)
{
	struct fw_store_config c = {.url = at};
	int64_t start = fw_mono_ms();
	struct fw_store *front;

	while (st->driver->heartbeat(st, "w", l, &drv_err)) {
		ck_assert_msg(drv_err.rc == FW_EIO || drv_err.rc == FW_EAGAIN, "%s", drv_err.text);
		st->driver->close(st);
		while (fw_store_open(&c, &front, &drv_err)) {
			ck_assert_msg(drv_err.rc == FW_EIO || drv_err.rc == FW_EAGAIN, "%s", drv_err.text);
			ck_assert_int_lt(fw_mono_ms() - start, 60000);
			usleep(50000);
		}
		st = store_of(front);
	}
	return st;
}

START_TEST(cluster_fails_over) /* by command, and because the node of the store died */
{
	struct node *replica = &node[NODES];
	int64_t id, now_ms;
	struct store_lease *l;
	struct store *st;
	const char *at;
	char words[80];

	cluster_up();
	node_make(NODES);
	ck_assert(fw_snprintf(words, sizeof(words), "CLUSTER REPLICATE %s", node[2].id));
	for (int64_t start = fw_mono_ms(); strcmp(say_to(replica->sock, words), "+OK\r\n") != 0; usleep(50000))
		ck_assert_int_lt(fw_mono_ms() - start, 60000); /* it has not met that node yet */
	at = cluster_url(prefix_on(2));
	st = open_at(at, FW_STORE_CREATE);
	l = drv_join(st, "w", LONG_MS);
	id = drv_feed(st, "https://a.example/", NOW);
	node_says(replica, "INFO replication", "master_link_status:up");
	for (int64_t start = fw_mono_ms(); !strstr(say_to(node[2].sock, "INFO replication"), "role:slave");
		usleep(200000)) { /* a failover that was refused, or took the nodes too long, is asked for again */
		(void)say_to(replica->sock, "CLUSTER FAILOVER");
		ck_assert_int_lt(fw_mono_ms() - start, 60000);
	}
	says(st->driver->clock(st, &now_ms, &drv_err), FW_EIO, "it is a replica"); /* one that only pings learns it */
	says(st->driver->heartbeat(st, "w", l, &drv_err), FW_EIO, "on another node now");
	st = reopened(st, at, l);
	ck_assert(drv_is(st, id));
	node_says(&node[2], "INFO replication", "master_link_status:up");
	redis_end(replica->pid, SIGKILL);
	replica->pid = 0;
	st = reopened(st, at, l);
	ck_assert(drv_is(st, id));
	drv_leave(st, l);
	drv_end(st);
	cluster_down();
}
END_TEST

/* ---- TLS ------------------------------------------------------------------------------------- */

START_TEST(over_tls)
{
	char cert[260], key[260], port[12], words[1200];
	struct work *w;
	int number, fd = listening(&number);
	pid_t pid;

	close(fd);
	ck_assert(fw_snprintf(cert, sizeof(cert), "%s/cert.pem", dir));
	ck_assert(fw_snprintf(key, sizeof(key), "%s/key.pem", dir));
	ck_assert(fw_snprintf(port, sizeof(port), "%d", number));
	pid = fork();
	if (pid == 0) {
		(void)!freopen("/dev/null", "w", stderr);
		execlp("openssl", "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
			"ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj",
			"/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", (char *)NULL);
		_exit(127);
	}
	ck_assert_int_eq(waitpid(pid, &number, 0), pid);
	ck_assert_int_eq(number, 0);
	server_up((const char *const[]){"--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key,
		"--tls-ca-cert-file", cert, "--tls-auth-clients", "optional", "--bind", "127.0.0.1", NULL});
	ck_assert(fw_snprintf(words, sizeof(words), "rediss://localhost:%s/", port));
	open_says(words, FW_STORE_CREATE, FW_EINVAL, "certificate is refused"); /* signed by an unknown authority */
	ck_assert(fw_snprintf(words, sizeof(words), "rediss://localhost:%s/?ca_file=/nowhere", port));
	open_says(words, FW_STORE_CREATE, FW_EINVAL, "ca_file");
	ck_assert(fw_snprintf(words, sizeof(words), "rediss://localhost:%s/?ca_file=%s&cert_file=%s&key_file=/nowhere",
		port, cert, cert));
	open_says(words, FW_STORE_CREATE, FW_EINVAL, "key_file");
	ck_assert(fw_snprintf(words, sizeof(words), "rediss://127.0.0.2:%s/?ca_file=%s", port, cert));
	told("CONFIG SET bind \"127.0.0.1 127.0.0.2\"");
	open_says(words, FW_STORE_CREATE, FW_EINVAL, "certificate is refused"); /* it is for another host name */
	ck_assert(fw_snprintf(words, sizeof(words), "rediss://127.0.0.1:%s/?ca_file=%s&cert_file=%s&key_file=%s", port,
		cert, cert, key));
	w = work_begin_at(words, 0);
	commit_stores_once(w);
	work_end(w);
	ck_assert(fw_snprintf(words, sizeof(words), "redis://127.0.0.1:%s/", port)); /* this port expects TLS */
	open_says(words, 0, FW_EIO, "redis");
	ck_assert(fw_snprintf(words, sizeof(words), "rediss://127.0.0.2:%s/?verify=no", port));
	fw_store_close(store_open(words, 0));
}
END_TEST

int main(void)
{
	const TTest *const every[] = {urls_and_options, schemas_that_are_not_ours, passwords, too_many_connections,
		refusals_pass, replica_without_its_master, replica_is_for_reading, functions_are_forgotten,
		busy_with_a_script, silent_server, answers_of_others, answers_without_end, replies_of_another_shape,
		stream_of_another_shape, disk_full, commit_that_comes_again, padded_numbers, numbers_of_the_dead,
		commits_that_are_disturbed, server_is_killed_in_commit, doctor_looks_at_durability, deep_check_finds,
		merge_of_before, cluster_store_of_before, order_changes_before_and_in_a_commit, cluster_stores,
		cluster_slot_goes, cluster_fails_over, over_tls};
	TCase *t;

	server_needed(&server_redis);
	t = cases("redis", redis_setup, redis_teardown, 120);
	cases_add(t, every, FW_N(every), 1);
	return cases_run("store redis_faults", t);
}
