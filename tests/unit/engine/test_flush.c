/* SPDX-License-Identifier: ISC */
/*
 * The flusher: each pushed row is stored once, the client gets the true result, and a store that is
 * away or refuses a row harms nothing else.
 */
#include <check.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/push/wal.h"
#include "feedwheel/ingest.h"
#include "../../suite.h"

#undef system /* banned in programs; here it runs a command of the test's own */

#define OK(call) ck_assert_msg((call) == 0, "%s: %s", #call, err.text)
#define PRODUCERS 3
#define PER_PRODUCER 20000

static char folder[64], path[100], url[120];
static struct fw_config *config;
static struct fw_err err;

static void setup(void)
{
	fw_log_setup(FW_LOG_ERROR, false, "test");
	(void)fw_snprintf(folder, sizeof(folder), "/tmp/fw-flush-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	(void)fw_snprintf(path, sizeof(path), "%s/s.db", folder);
	(void)fw_snprintf(url, sizeof(url), "sqlite:%s", path);
	OK(fw_config_create(&config, &err));
	OK(fw_config_set(config, "store", url, "test", &err));
	OK(fw_config_set(config, "flush_ms", "20ms", "test", &err));
	OK(fw_config_set(config, "ring_bytes", "1MiB", "test", &err));
}

static void teardown(void)
{
	static const char *const tail[] = {"", "-wal", "-shm", "-checkpoint"};
	char name[120];

	fw_config_destroy(config);
	for (size_t i = 0; i < FW_N(tail); i++) {
		(void)fw_snprintf(name, sizeof(name), "%s%s", path, tail[i]);
		unlink(name);
	}
	rmdir(folder);
}

static void set(const char *name, const char *value)
{
	OK(fw_config_set(config, name, value, "test", &err));
}

static void sql(const char *text)
{
	struct fw_store_config sc = {.url = url, .flags = FW_STORE_CREATE};
	struct fw_store *st;
	sqlite3 *db;
	char *why = NULL;

	OK(fw_store_open(&sc, &st, &err)); /* creates the tables */
	fw_store_close(st);
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_msg(sqlite3_exec(db, text, NULL, NULL, &why) == SQLITE_OK, "%s", why);
	sqlite3_close(db);
}

struct stored {
	int64_t n, sum;
};

static int add_up(void *ctx, const struct fw_event *e)
{
	struct stored *s = ctx;

	s->n++;
	s->sum += e->item;
	return 0;
}

static int count_dead_letters(void *ctx, const struct fw_dead_letter *e)
{
	(void)e;
	++*(int64_t *)ctx;
	return 0;
}

static struct stored stored(int64_t *dead)
{
	struct fw_store_config sc = {.url = url, .flags = FW_STORE_READ};
	struct stored s = {0};
	struct fw_store *st;

	*dead = 0;
	OK(fw_store_open(&sc, &st, &err));
	OK(fw_store_event_list(st, 0, 0, add_up, &s, &err));
	OK(fw_store_dead_letter_list(st, 0, 0, count_dead_letters, dead, &err));
	fw_store_close(st);
	return s;
}

static struct fw_event event(const char *property, int64_t item)
{
	return (struct fw_event){.property = fw_str(property),
		.section = 1,
		.item = item,
		.remote_ip = {"\x7f\0\0\1", 4},
		.stamp_ms = fw_now_ms()};
}

static int push(struct fw_producer *l, const char *property, int64_t item, size_t n, struct fw_commit_wait *w)
{
	struct fw_event e = event(property, item);
	int rc = fw_ingest_begin(l, w);

	for (size_t i = 0; i < n && !rc; i++)
		rc = fw_ingest_put(l, &e);
	return rc ? rc : fw_ingest_publish(l, &err);
}

struct waiter {
	struct fw_commit_wait wait; /* first */
	_Atomic int told;
	int rc;
	char why[120];
};

static void told(struct fw_commit_wait *w, int rc, const char *why)
{
	struct waiter *x = (struct waiter *)w;

	x->rc = rc;
	fw_str_copy(x->why, sizeof(x->why), fw_str(why));
	atomic_fetch_add(&x->told, 1);
}

static void await(struct waiter *x)
{
	for (int i = 0; i < 20000 && !atomic_load(&x->told); i++)
		usleep(1000);
	ck_assert_int_eq(atomic_load(&x->told), 1);
}

struct producer {
	struct fw_producer *channel;
	int64_t first;
	uint64_t full;
};

static void *produce(void *arg)
{
	struct producer *p = arg;

	for (int64_t i = 0; i < PER_PRODUCER;) {
		if (push(p->channel, "news", p->first + i, 1, NULL)) {
			p->full++;
			usleep(100);
		} else {
			i++;
		}
	}
	return NULL;
}

START_TEST(all_land_once)
{
	struct producer p[PRODUCERS] = {0};
	struct fw_ingest_stats stats;
	pthread_t thread[PRODUCERS];
	struct fw_ingest *in;
	struct stored s;
	uint64_t full = 0;
	int64_t dead, n = (int64_t)PRODUCERS * PER_PRODUCER;

	set("ring_bytes", "64KiB"); /* it will be full */
	OK(fw_ingest_open(config, PRODUCERS, &in, &err));
	for (size_t i = 0; i < PRODUCERS; i++) {
		p[i] = (struct producer){fw_ingest_producer(in, i), (int64_t)i * PER_PRODUCER, 0};
		ck_assert_int_eq(pthread_create(&thread[i], NULL, produce, &p[i]), 0);
	}
	for (size_t i = 0; i < PRODUCERS; i++) {
		pthread_join(thread[i], NULL);
		full += p[i].full;
	}
	ck_assert_uint_eq(fw_ingest_stop(in, 60000), 0);
	fw_ingest_stats(in, &stats);
	ck_assert_uint_eq(stats.put_n, (uint64_t)n);
	ck_assert_uint_eq(stats.stored_n, (uint64_t)n);
	ck_assert_uint_eq(stats.full_n, full);
	ck_assert_uint_eq(stats.fill_bytes, 0);
	ck_assert_uint_le(stats.ring_bytes, 65536);
	fw_ingest_destroy(in);
	s = stored(&dead);
	ck_assert_int_eq(s.n, n);
	ck_assert_int_eq(s.sum, n * (n - 1) / 2);
	ck_assert_int_eq(dead, 0);
}
END_TEST

static void await_ids(struct fw_ingest *in)
{
	struct fw_ingest_stats stats;

	do {
		usleep(1000);
		fw_ingest_stats(in, &stats);
	} while (stats.unavailable);
}

/* A batch has been collected. */
static void await_batch(struct fw_ingest *in)
{
	struct fw_ingest_stats stats;

	do {
		usleep(1000);
		fw_ingest_stats(in, &stats);
	} while (!stats.oldest_ms);
}

struct known {
	struct {
		int64_t id;
		char ip[64];
	} row[10];
	size_t n;
};

static int note(void *ctx, const struct fw_event *e)
{
	struct known *k = ctx;

	if (k->n < FW_N(k->row)) {
		k->row[k->n].id = e->id;
		fw_str_copy(k->row[k->n].ip, sizeof(k->row[0].ip), e->remote_ip);
	}
	k->n++;
	return 0;
}

/* a full batch takes the oldest rows of all channels; addresses become text */
START_TEST(rings_are_read_in_the_order_of_ids)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *text;
	} IP[] = {{"\x7f\0\0\1", 4, "127.0.0.1"}, {"\0\0\0\0", 4, "0.0.0.0"}, {"\xff\x0a\x63\x64", 4, "255.10.99.100"},
		{"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1", 16, "2001:db8::1"}, {NULL, 0, ""},
		{"\xc8\x01\xfa\x09", 4, "200.1.250.9"}};
	static const size_t PRODUCER[] = {0, 1, 0, 2, 1, 0};
	static const size_t FIRST_N = 4; /* twice flush_rows */
	struct fw_store_config sc = {.url = url, .flags = FW_STORE_READ};
	struct fw_ingest *in;
	struct fw_store *st;
	struct known k = {0};
	sqlite3 *db;

	sql("CREATE TABLE turns (n INTEGER PRIMARY KEY, id INTEGER); CREATE TRIGGER note AFTER INSERT ON incoming"
	    " BEGIN INSERT INTO turns (id) VALUES (NEW.id); END");
	set("flush_rows", "2");
	set("flush_ms", "1h");
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	OK(fw_ingest_open(config, PRODUCERS, &in, &err));
	await_ids(in);
	/* a full batch waits for the locked store: meanwhile all others go into their rings */
	ck_assert_int_eq(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	OK(fw_ingest_begin(fw_ingest_producer(in, 0), NULL));
	for (size_t i = 0; i < FIRST_N; i++) {
		struct fw_event e = event("first", (int64_t)i);

		e.stamp_ms -= FW_MINUTE_MS;
		OK(fw_ingest_put(fw_ingest_producer(in, 0), &e));
	}
	OK(fw_ingest_publish(fw_ingest_producer(in, 0), &err));
	await_batch(in);
	for (size_t i = 0; i < FW_N(IP); i++) {
		struct fw_event e = event("news", (int64_t)i);
		struct fw_producer *l = fw_ingest_producer(in, PRODUCER[i]);

		e.remote_ip = (struct fw_str){IP[i].bytes, IP[i].len};
		OK(fw_ingest_begin(l, NULL));
		OK(fw_ingest_put(l, &e));
		OK(fw_ingest_publish(l, &err));
	}
	ck_assert_int_eq(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	ck_assert_uint_eq(fw_ingest_stop(in, 60000), 0);
	fw_ingest_destroy(in);
	OK(fw_store_open(&sc, &st, &err));
	OK(fw_store_event_list(st, 0, 0, note, &k, &err));
	fw_store_close(st);
	ck_assert_uint_eq(k.n, FIRST_N + FW_N(IP));
	for (size_t i = 0; i < FW_N(IP); i++)
		ck_assert_str_eq(k.row[FIRST_N + i].ip, IP[i].text);
	sqlite3_close(db);
	sql("CREATE TABLE wrong (n INTEGER CHECK (n = 0)); INSERT INTO wrong SELECT count(*) FROM"
	    " turns a JOIN turns b ON a.n < b.n AND a.id > b.id");
}
END_TEST

START_TEST(accepted_rows_land_by_themselves)
{
	struct fw_ingest_stats stats;
	struct fw_ingest *in;
	int64_t dead;

	OK(fw_ingest_open(config, 1, &in, &err));
	OK(push(fw_ingest_producer(in, 0), "news", 1, 1, NULL));
	do {
		usleep(1000);
		fw_ingest_stats(in, &stats);
	} while (!stats.stored_n);
	ck_assert_int_eq(stored(&dead).n, 1);
	ck_assert_uint_eq(fw_ingest_stop(in, 0), 0);
	fw_ingest_destroy(in);
}
END_TEST

START_TEST(waiters_are_notified_after_the_commit)
{
	struct waiter w = {.wait.done = told}, none = {.wait.done = told}, big = {.wait.done = told};
	struct fw_ingest *in;
	int64_t dead;

	set("flush_ms", "1h");
	set("flush_rows", "10");
	OK(fw_ingest_open(config, 2, &in, &err));
	OK(push(fw_ingest_producer(in, 0), "news", 1, 3, NULL)); /* stored along with it */
	OK(push(fw_ingest_producer(in, 0), "news", 1, 2, &w.wait));
	await(&w);
	ck_assert_int_eq(w.rc, 0);
	ck_assert_int_eq(stored(&dead).n, 5);
	OK(push(fw_ingest_producer(in, 1), "news", 1, 0, &none.wait)); /* no rows: nothing to wait for */
	await(&none);
	OK(push(fw_ingest_producer(in, 1), "news", 1, 95, &big.wait)); /* over several batches */
	await(&big);
	ck_assert_int_eq(stored(&dead).n, 100);
	ck_assert_uint_eq(fw_ingest_stop(in, 0), 0);
	fw_ingest_destroy(in);
}
END_TEST

START_TEST(refused_rows_become_dead_letters)
{
	struct waiter w = {.wait.done = told}, good = {.wait.done = told};
	struct fw_ingest_stats stats;
	struct fw_ingest *in;
	struct stored s;
	int64_t dead;

	sql("CREATE TRIGGER no_poison BEFORE INSERT ON incoming WHEN new.property = 'poison' BEGIN"
	    " SELECT raise(ABORT, 'no poison here'); END");
	set("flush_ms", "1h");
	OK(fw_ingest_open(config, 1, &in, &err));
	OK(push(fw_ingest_producer(in, 0), "news", 1, 500, NULL));
	OK(push(fw_ingest_producer(in, 0), "poison", 1, 2, NULL));
	OK(push(fw_ingest_producer(in, 0), "news", 1, 37, &good.wait));
	OK(push(fw_ingest_producer(in, 0), "poison", 1, 1, &w.wait));
	await(&w);
	await(&good);
	ck_assert_int_eq(good.rc, 0);
	ck_assert_int_eq(w.rc, FW_EINVAL);
	ck_assert_msg(strstr(w.why, "no poison here") != NULL, "%s", w.why);
	fw_ingest_stats(in, &stats);
	ck_assert_uint_eq(stats.dead_letter_n, 3);
	ck_assert_uint_eq(stats.stored_n, 537);
	ck_assert_uint_eq(fw_ingest_stop(in, 0), 0);
	fw_ingest_destroy(in);
	s = stored(&dead);
	ck_assert_int_eq(s.n, 537);
	ck_assert_int_eq(dead, 3);
}
END_TEST

/* The folder is missing at first, and appears later. */
START_TEST(store_that_is_away)
{
	char unavailable[120];
	struct waiter w = {.wait.done = told};
	struct fw_ingest_stats stats;
	struct fw_ingest *in;
	uint64_t put = 0;
	int64_t dead;

	(void)fw_snprintf(path, sizeof(path), "%s/later/s.db", folder);
	(void)fw_snprintf(url, sizeof(url), "sqlite:%s", path);
	(void)fw_snprintf(unavailable, sizeof(unavailable), "%s/later", folder);
	ck_assert_int_eq(symlink("/nowhere/at/all", unavailable), 0); /* SQLite would create a missing folder */
	set("store", url);
	set("ring_bytes", "64KiB");
	fw_log_setup(FW_LOG_ERROR, false, "test");
	OK(fw_ingest_open(config, 1, &in, &err));
	OK(push(fw_ingest_producer(in, 0), "news", 1, 1, &w.wait));
	while (push(fw_ingest_producer(in, 0), "news", 1, 1, NULL) == 0)
		put++;
	do {
		usleep(10000);
		fw_ingest_stats(in, &stats);
	} while (stats.retry_n < 2);
	ck_assert(stats.unavailable);
	ck_assert_uint_eq(stats.stored_n, 0);
	ck_assert_uint_ge(stats.full_n, 1);
	ck_assert_int_eq(atomic_load(&w.told), 0);
	unlink(unavailable);
	ck_assert_int_eq(mkdir(unavailable, 0700), 0);
	await(&w);
	ck_assert_int_eq(w.rc, 0);
	ck_assert_uint_eq(fw_ingest_stop(in, 60000), 0);
	fw_ingest_stats(in, &stats);
	ck_assert(!stats.unavailable);
	fw_ingest_destroy(in);
	ck_assert_int_eq(stored(&dead).n, (int64_t)put + 1);
	teardown();
	rmdir(unavailable);
	rmdir(folder);
	setup();
}
END_TEST

START_TEST(stop_while_it_is_away)
{
	struct waiter w = {.wait.done = told};
	struct fw_ingest *in;

	set("store", "sqlite:/proc/no/such/folder/s.db");
	fw_log_setup(FW_LOG_ERROR, false, "test");
	OK(fw_ingest_open(config, 2, &in, &err));
	OK(push(fw_ingest_producer(in, 0), "news", 1, 3, &w.wait));
	OK(push(fw_ingest_producer(in, 1), "news", 1, 4, NULL));
	ck_assert_uint_eq(fw_ingest_stop(in, 200), 7);
	ck_assert_int_eq(atomic_load(&w.told), 1);
	ck_assert_int_eq(w.rc, FW_EAGAIN);
	ck_assert_int_eq(push(fw_ingest_producer(in, 0), "news", 1, 1, NULL), FW_EGONE);
	fw_ingest_destroy(in);
}
END_TEST

START_TEST(draft_is_all_or_nothing)
{
	char longer[FW_PROPERTY_MAX + 2];
	struct fw_ingest *in;
	struct fw_event e;
	int64_t dead;

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	OK(fw_ingest_open(config, 1, &in, &err));
	OK(push(fw_ingest_producer(in, 0), "news", 1, 1, NULL));
	OK(fw_ingest_begin(fw_ingest_producer(in, 0), NULL));
	e = event("news", 1);
	OK(fw_ingest_put(fw_ingest_producer(in, 0), &e));
	e = event(longer, 1);
	ck_assert_int_eq(fw_ingest_put(fw_ingest_producer(in, 0), &e), FW_EINVAL);
	fw_ingest_discard(fw_ingest_producer(in, 0));
	longer[FW_PROPERTY_MAX] = 0;
	OK(push(fw_ingest_producer(in, 0), longer, 1, 1, NULL));
	ck_assert_uint_eq(fw_ingest_stop(in, 60000), 0);
	fw_ingest_destroy(in);
	ck_assert_int_eq(stored(&dead).n, 2);
}
END_TEST

START_TEST(rings_too_small)
{
	struct fw_ingest *in;

	set("ring_bytes", "65536");
	ck_assert_int_eq(fw_ingest_open(config, 17, &in, &err), FW_EINVAL);
	ck_assert_ptr_null(in);
	ck_assert_msg(strstr(err.text, "ring_bytes") != NULL, "%s", err.text);
}
END_TEST

/* ---- the write-ahead log --------------------------------------------------------------------- */

static char wal[120];

static void wal_setup(void)
{
	setup();
	(void)fw_snprintf(wal, sizeof(wal), "%s/wal", folder);
	set("wal_dir", wal);
}

/* The number of files in the log with this ending; drop removes them. */
static int wal_files(const char *tail, bool drop, char *one, size_t cap)
{
	DIR *d = opendir(wal);
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d))) {
		char name[400];

		if (e->d_name[0] == '.' || !fw_str_ends(fw_str(e->d_name), fw_str(tail)))
			continue;
		ck_assert(fw_snprintf(name, sizeof(name), "%s/%s", wal, e->d_name));
		if (drop)
			unlink(name);
		if (one)
			fw_str_copy(one, cap, fw_str(name));
		n++;
	}
	if (d)
		closedir(d);
	return n;
}

static void wal_teardown(void)
{
	wal_files("", true, NULL, 0);
	rmdir(wal);
	teardown();
}

/* A process that accepts n rows, stores none of them, and stands still. */
static pid_t accept_rows(int64_t n)
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		struct fw_ingest *in;

		set("flush_ms", "1h");
		if (fw_ingest_open(config, 2, &in, &err))
			_exit(1);
		for (int64_t i = 0; i < n; i++) {
			if (push(fw_ingest_producer(in, (size_t)i % 2), "spilt", i, 1, NULL))
				_exit(2);
		}
		kill(getpid(), SIGSTOP);
		_exit(3);
	}
	ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
	ck_assert(WIFSTOPPED(status));
	return pid;
}

/* Two processes that accept rows, and are killed; the second one only if it has any. */
static void accept_and_die(int64_t first_n, int64_t second_n)
{
	const pid_t pid[] = {accept_rows(first_n), second_n ? accept_rows(second_n) : 0};
	int status;

	for (size_t i = 0; i < FW_N(pid) && pid[i]; i++) {
		kill(pid[i], SIGKILL);
		ck_assert_int_eq(waitpid(pid[i], &status, 0), pid[i]);
		ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
}

static int64_t start_and_stop(void)
{
	struct fw_ingest_stats stats;
	struct fw_ingest *in;
	int64_t dead;

	OK(fw_ingest_open(config, 2, &in, &err));
	do {
		usleep(1000);
		fw_ingest_stats(in, &stats);
	} while (!stats.replayed);
	ck_assert_uint_eq(fw_ingest_stop(in, 60000), 0);
	fw_ingest_destroy(in);
	return stored(&dead).n;
}

START_TEST(accepted_outlives_the_process)
{
	set("wal_sync_ms", _i ? "0" : "50ms");
	accept_and_die(999, 1);
	ck_assert_int_eq(wal_files(".wal", false, NULL, 0), 3);
	ck_assert_int_eq(start_and_stop(), 1000);
	ck_assert_int_eq(wal_files("", false, NULL, 0), 0);
	ck_assert_int_eq(start_and_stop(), 1000);
}
END_TEST

START_TEST(replayed_wal_is_stored_once)
{
	struct waiter w = {.wait.done = told};
	struct fw_ingest *in;
	char one[300], copy[340], command[700];
	int64_t dead;

	OK(fw_ingest_open(config, 1, &in, &err));
	OK(push(fw_ingest_producer(in, 0), "news", 1, 100, NULL));
	OK(push(fw_ingest_producer(in, 0), "news", 1, 1, &w.wait));
	await(&w);
	ck_assert_int_eq(wal_files(".wal", false, one, sizeof(one)), 1);
	ck_assert(fw_snprintf(copy, sizeof(copy), "%s.copy", one)); /* as if it had been killed here */
	ck_assert(fw_snprintf(command, sizeof(command), "cp %s %s", one, copy));
	ck_assert_int_eq(system(command), 0);
	ck_assert_uint_eq(fw_ingest_stop(in, 60000), 0);
	fw_ingest_destroy(in);
	ck_assert_int_eq(wal_files(".wal", false, NULL, 0), 0); /* all stored: nothing to keep */
	ck_assert_int_eq(rename(copy, one), 0);
	ck_assert_int_eq(start_and_stop(), 101);
	ck_assert_int_eq(stored(&dead).n, 101);
}
END_TEST

/*
 * The log of an older version, whose ids other rows of the store have: they are stored with new
 * ids. So is a dead letter, and what a client pushes meanwhile.
 */
START_TEST(replayed_rows_whose_ids_others_have)
{
	struct fw_store_config sc = {.url = url, .flags = FW_STORE_READ};
	char one[300], copy[340], command[700];
	struct fw_store_stats s;
	struct fw_store *st;
	struct stored all;
	int64_t dead;

	accept_and_die(5, 0);
	ck_assert_int_eq(wal_files(".wal", false, one, sizeof(one)), 2); /* one of each ring */
	ck_assert(fw_snprintf(copy, sizeof(copy), "%s/../kept", wal));
	ck_assert(fw_snprintf(command, sizeof(command), "cp -r %s %s", wal, copy));
	ck_assert_int_eq(system(command), 0);
	ck_assert_int_eq(start_and_stop(), 5);
	sql("UPDATE incoming SET property_id = property_id + 100;"
	    " CREATE TRIGGER no BEFORE INSERT ON incoming WHEN new.property_id = 4"
	    " BEGIN SELECT RAISE(ABORT, 'no'); END;"
	    " INSERT INTO dead_letters SELECT id, 'another', 'why', 1 FROM incoming");
	ck_assert(fw_snprintf(command, sizeof(command), "mv %s/* %s && rmdir %s", copy, wal, copy));
	ck_assert_int_eq(system(command), 0);
	ck_assert_int_eq(start_and_stop(), 9);
	all = stored(&dead);
	ck_assert_int_eq(all.sum, 0 + 1 + 2 + 3 + 5 * 100 + 0 + 1 + 2 + 3 + 4);
	ck_assert_int_eq(dead, 5 + 1);
	OK(fw_store_open(&sc, &st, &err));
	OK(fw_store_stats(st, &s, &err));
	ck_assert_int_eq(s.clash_n, 5);
	fw_store_close(st);
}
END_TEST

START_TEST(record_cut_off)
{
	char one[300];
	struct stat st;

	set("ring_bytes", "64KiB");
	accept_and_die(1 /* in channel 0 */, 3);
	ck_assert_int_ge(wal_files(".wal", false, one, sizeof(one)), 2);
	ck_assert_int_eq(stat(one, &st), 0);
	ck_assert_int_eq(truncate(one, st.st_size - 5), 0);
	fw_log_setup(FW_LOG_ERROR, false, "test");
	ck_assert_int_eq(start_and_stop(), 3);
	ck_assert_int_eq(wal_files("", false, NULL, 0), 0);
}
END_TEST

/* Each costs its own row, and the file is kept; test_wal.c has the rest. */
START_TEST(record_damaged)
{
	static const off_t AT[] = {2 /* a length */, 10, 20, 40 /* the row */};
	char one[300];
	int fd;

	accept_and_die(5, 0); /* in two files: rows 0, 2, 4 and 1, 3 */
	ck_assert_int_eq(wal_files(".wal", false, one, sizeof(one)), 2);
	fd = open(one, O_WRONLY);
	ck_assert_int_eq(pwrite(fd, "x", 1, AT[_i]), 1);
	close(fd);
	ck_assert_int_eq(start_and_stop(), 4);
	ck_assert_int_eq(wal_files("", false, NULL, 0), 1);
	ck_assert_int_eq(wal_files(".damaged", false, NULL, 0), 1); /* kept for inspection */
}
END_TEST

/* Records of another version among the rows, each whole. */
START_TEST(record_is_no_row)
{
	static const char OTHER[100] = "a row of another version";
	struct fw_wal *log;

	accept_and_die(1, 0);
	OK(fw_wal_open(wal, 0, 1, &log, &err));
	fw_wal_add(log, 0, OTHER, sizeof(OTHER));
	fw_wal_add(log, 0, OTHER, 8);
	OK(fw_wal_write(log, 0, 2, &err));
	fw_wal_close(log);
	ck_assert_int_eq(start_and_stop(), 1);
	ck_assert_int_eq(wal_files(".damaged", false, NULL, 0), 1);
	ck_assert_int_eq(wal_files("", false, NULL, 0), 1);
}
END_TEST

static bool sync_fails;

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd)
{
	errno = EIO;
	return sync_fails ? -1 : __real_fdatasync(fd);
}

START_TEST(failed_sync_refuses_the_event)
{
	static const int64_t WANT[] = {0, FW_EIO, 0};
	pid_t pid;
	int status;

	set("wal_sync_ms", "0");
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		struct fw_ingest *in;

		set("flush_ms", "1h");
		if (fw_ingest_open(config, 1, &in, &err))
			_exit(1);
		for (size_t i = 0; i < FW_N(WANT); i++) {
			sync_fails = WANT[i] != 0;
			if (push(fw_ingest_producer(in, 0), "spilt", 1, 1, NULL) != WANT[i])
				_exit(2);
		}
		kill(getpid(), SIGKILL);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	ck_assert_int_eq(start_and_stop(), 2); /* a refused row is not there */
}
END_TEST

START_TEST(wal_is_full)
{
	struct rlimit was, limit;
	struct fw_ingest *in;
	struct fw_ingest_stats stats;
	int64_t dead;
	int rc = 0, n = 0;

	set("flush_ms", "1h");
	OK(fw_ingest_open(config, 1, &in, &err));
	getrlimit(RLIMIT_FSIZE, &was);
	limit = was;
	limit.rlim_cur = 10000;
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	for (; n < 1000 && !rc; n += !rc)
		rc = push(fw_ingest_producer(in, 0), "news", 1, 1, NULL);
	ck_assert_int_eq(rc, FW_EIO);
	ck_assert_msg(strstr(err.text, "wal_dir") != NULL, "%s", err.text);
	ck_assert_int_gt(n, 10);
	setrlimit(RLIMIT_FSIZE, &was);
	OK(push(fw_ingest_producer(in, 0), "news", 1, 1, NULL)); /* there is room again */
	ck_assert_uint_eq(fw_ingest_stop(in, 60000), 0);
	fw_ingest_stats(in, &stats);
	ck_assert_uint_eq(stats.full_n, 1);
	fw_ingest_destroy(in);
	ck_assert_int_eq(stored(&dead).n, n + 1); /* a refused row is not there */
}
END_TEST

/*
 * A small disk. When it is full of rows that are stored by now, they are removed, and rows are
 * accepted again.
 */
START_TEST(wal_fills_its_disk)
{
	struct fw_ingest *in;
	int n = 0;
	int64_t dead;

	ck_assert(mkdir(wal, 0700) == 0);
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		mount("none", wal, "tmpfs", 0, "size=64k")) {
		ck_assert_msg(errno == EPERM || errno == EACCES, "mount: %s", strerror(errno));
		return; /* only root may mount */
	}
	set("flush_ms", "5ms");
	OK(fw_ingest_open(config, 1, &in, &err));
	for (int filled = 0; filled < 3; filled++) {
		int rc = 0, before = n;

		for (; n < before + 2000 && !rc; n += !rc)
			rc = push(fw_ingest_producer(in, 0), "news", 1, 1, NULL);
		ck_assert_int_eq(rc, FW_EIO);
		ck_assert_int_gt(n - before, 100);
		for (int64_t until_ms = fw_mono_ms() + 30000; rc && fw_mono_ms() < until_ms; usleep(1000))
			rc = push(fw_ingest_producer(in, 0), "news", 1, 1, NULL);
		OK(rc);
		n++;
	}
	ck_assert_uint_eq(fw_ingest_stop(in, 60000), 0);
	fw_ingest_destroy(in);
	umount(wal);
	ck_assert_int_eq(stored(&dead).n, n);
}
END_TEST

START_TEST(stop_while_it_is_away_keeps_the_wal)
{
	struct waiter w = {.wait.done = told};
	struct rlimit was, limit;
	struct fw_ingest *in;

	set("flush_ms", "1h");
	OK(fw_ingest_open(config, 1, &in, &err));
	OK(push(fw_ingest_producer(in, 0), "news", 1, 5, NULL));
	getrlimit(RLIMIT_FSIZE, &was);
	limit = was;
	limit.rlim_cur = 1;
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit); /* from now on the store has no room */
	OK(push(fw_ingest_producer(in, 0), "news", 1, 2, &w.wait));
	/* the waiting clients got an error, the other rows are on the disk */
	ck_assert_uint_eq(fw_ingest_stop(in, 200), 2);
	ck_assert_int_eq(w.rc, FW_EAGAIN);
	fw_ingest_destroy(in);
	setrlimit(RLIMIT_FSIZE, &was);
	ck_assert_int_eq(start_and_stop(), 5);
}
END_TEST

/* Rows of the log need their ids at once, and those come from the store; others wait for it. */
START_TEST(no_ids_for_the_wal_without_the_store)
{
	struct waiter w = {.wait.done = told};
	struct fw_ingest *in;

	set("store", "sqlite:/proc/no/such/folder/s.db");
	OK(fw_ingest_open(config, 1, &in, &err));
	ck_assert_int_eq(push(fw_ingest_producer(in, 0), "news", 1, 5, NULL), FW_ESTALE);
	OK(push(fw_ingest_producer(in, 0), "news", 1, 2, &w.wait));
	ck_assert_uint_eq(fw_ingest_stop(in, 0), 2);
	fw_ingest_destroy(in);
	ck_assert_int_eq(wal_files("", false, NULL, 0), 0);
}
END_TEST

START_TEST(unusable_wal_dir)
{
	struct fw_ingest *in;

	set("wal_dir", "/proc/no/such/folder");
	ck_assert_int_eq(fw_ingest_open(config, 1, &in, &err), FW_EINVAL);
	ck_assert_msg(strstr(err.text, "wal_dir = /proc/no/such/folder") != NULL, "%s", err.text);
}
END_TEST

START_TEST(ids_rise)
{
	struct fw_ids a, b;
	int64_t last = 0, now = FW_IDS_EPOCH_MS + 1000, id;

	fw_ids_init(&a);
	fw_ids_init(&b);
	ck_assert_int_eq(fw_ids_take(&a, 1, now), 0); /* without a range */
	fw_ids_range(&a, 7, 1, FW_IDS_SERIAL_MAX);
	fw_ids_range(&b, 8, 1, FW_IDS_SERIAL_MAX);
	for (int i = 0; i < 20000; i++) { /* more ids than a millisecond has, and a clock that is set back */
		id = fw_ids_take(&a, 1, i < 10000 ? now : now - 500);
		ck_assert_int_gt(id, last);
		ck_assert_int_eq(id & 1023, 7);
		last = id;
	}
	id = fw_ids_take(&a, 100, now);
	ck_assert_int_gt(id, last);
	ck_assert_int_gt(fw_ids_take(&a, 1, now), id + 99 * 1024);
	ck_assert_int_eq(fw_ids_ms(fw_ids_take(&b, 1, now)), now);
	ck_assert_int_eq(fw_ids_take(&b, 1, now) & 1023, 8);
	ck_assert_int_gt(fw_ids_take(&b, 1, INT64_MAX), 0); /* a wrong clock gives no negative id */
}
END_TEST

/* Whatever the clock says, an id is in the range: all of it can be taken, and nothing behind it. */
START_TEST(ids_stay_in_their_range)
{
	int64_t now = FW_IDS_EPOCH_MS + FW_DAY_MS, first = fw_ids_serial_at(now), last = first + FW_IDS_RANGE - 1;
	const int64_t clock[] = {now - FW_DAY_MS, now, now + FW_MINUTE_MS, now + FW_DAY_MS, INT64_MIN, INT64_MAX};
	struct fw_ids ids;
	int64_t before = 0, id;

	fw_ids_init(&ids);
	fw_ids_range(&ids, 1023, first, last);
	for (size_t i = 0; i < FW_N(clock); i++, before = id) {
		id = fw_ids_take(&ids, 3, clock[i]);
		ck_assert_int_gt(id, before);
		ck_assert_int_ge(id >> 10, first);
		ck_assert_int_le((id >> 10) + 2, last);
		ck_assert_int_eq(id & 1023, 1023);
	}
	ck_assert_int_ge(fw_ids_ms(id), now + FW_MINUTE_MS); /* it followed the clock while that was in the range */
	ck_assert_int_lt(fw_ids_ms(id), now + FW_MINUTE_MS + 10);
	ck_assert_int_eq(fw_ids_take(&ids, fw_ids_left(&ids) + 1, now), 0);
	id = fw_ids_take(&ids, fw_ids_left(&ids) - 1, now + FW_DAY_MS);
	ck_assert_int_eq(fw_ids_left(&ids), 1);
	ck_assert_int_eq(fw_ids_take(&ids, 1, now) >> 10, last);
	ck_assert_int_eq(fw_ids_take(&ids, 1, now), 0);
	fw_ids_range(&ids, 3, last + 1, last + FW_IDS_RANGE); /* the store's next range */
	ck_assert_int_eq(fw_ids_take(&ids, 1, now), ((last + 1) << 10) + 3);
	fw_ids_range(&ids, 4, first, last + FW_IDS_RANGE); /* taken meanwhile: no id comes twice */
	ck_assert_int_eq(fw_ids_take(&ids, 1, now), ((last + 2) << 10) + 4);
}
END_TEST

#define TAKERS 3
#define RANGES 300
#define RANGE_IDS 40

struct taker {
	struct fw_ids *ids;
	int64_t id[RANGES * RANGE_IDS];
	size_t n;
	_Atomic bool *over;
};

static void *take_ids(void *arg)
{
	struct taker *t = arg;

	while (!atomic_load(t->over)) {
		int64_t id = fw_ids_take(t->ids, 1, 0);

		if (id && t->n < FW_N(t->id))
			t->id[t->n++] = id;
	}
	return NULL;
}

/*
 * Ranges change while ids are taken: each id is in the range of its number. The ranges overlap, as
 * those of a server whose clock stands still.
 */
START_TEST(ids_of_threads_stay_in_their_ranges)
{
	static struct taker t[TAKERS];
	static bool seen[RANGES + 1][RANGES + RANGE_IDS + 1];
	pthread_t thread[TAKERS];
	_Atomic bool over = false;
	struct fw_ids ids;
	size_t n = 0;

	fw_ids_init(&ids);
	for (size_t i = 0; i < TAKERS; i++) {
		t[i] = (struct taker){.ids = &ids, .over = &over};
		ck_assert_int_eq(pthread_create(&thread[i], NULL, take_ids, &t[i]), 0);
	}
	for (int64_t number = 1; number <= RANGES; number++) {
		fw_ids_range(&ids, number, number, number + RANGE_IDS - 1);
		while (fw_ids_left(&ids) > RANGE_IDS / 2)
			sched_yield();
	}
	while (fw_ids_left(&ids))
		sched_yield();
	atomic_store(&over, true);
	for (size_t i = 0; i < TAKERS; i++)
		pthread_join(thread[i], NULL);
	for (size_t i = 0; i < TAKERS; i++) {
		for (size_t k = 0; k < t[i].n; k++) {
			int64_t number = t[i].id[k] & 1023, serial = t[i].id[k] >> 10;

			ck_assert(number >= 1 && number <= RANGES);
			ck_assert(serial >= number && serial < number + RANGE_IDS);
			ck_assert(!seen[number][serial]);
			seen[number][serial] = true;
			n++;
		}
	}
	ck_assert_uint_ge(n, RANGES);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit engine flush");
	TCase *t = tcase_create("flush"), *sp = tcase_create("wal");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, all_land_once);
	tcase_add_test(t, rings_are_read_in_the_order_of_ids);
	tcase_add_test(t, accepted_rows_land_by_themselves);
	tcase_add_test(t, waiters_are_notified_after_the_commit);
	tcase_add_test(t, refused_rows_become_dead_letters);
	tcase_add_test(t, store_that_is_away);
	tcase_add_test(t, stop_while_it_is_away);
	tcase_add_test(t, draft_is_all_or_nothing);
	tcase_add_test(t, rings_too_small);
	tcase_add_test(t, ids_rise);
	tcase_add_test(t, ids_stay_in_their_range);
	tcase_add_test(t, ids_of_threads_stay_in_their_ranges);
	suite_add_tcase(s, t);
	tcase_add_checked_fixture(sp, wal_setup, wal_teardown);
	tcase_set_timeout(sp, 120);
	tcase_add_loop_test(sp, accepted_outlives_the_process, 0, 2);
	tcase_add_test(sp, replayed_wal_is_stored_once);
	tcase_add_test(sp, replayed_rows_whose_ids_others_have);
	tcase_add_test(sp, record_cut_off);
	tcase_add_loop_test(sp, record_damaged, 0, 4);
	tcase_add_test(sp, record_is_no_row);
	tcase_add_test(sp, failed_sync_refuses_the_event);
	tcase_add_test(sp, wal_is_full);
	tcase_add_test(sp, wal_fills_its_disk);
	tcase_add_test(sp, stop_while_it_is_away_keeps_the_wal);
	tcase_add_test(sp, no_ids_for_the_wal_without_the_store);
	tcase_add_test(sp, unusable_wal_dir);
	suite_add_tcase(s, sp);
	return run_suite(s);
}
