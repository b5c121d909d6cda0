/* SPDX-License-Identifier: ISC */
/*
 * Whole workers on a simulated clock: loop, store thread, owner, claims, commits, on a real SQLite
 * file. Hours pass in a second.
 *
 * The linker replaces (--wrap) the clocks, chance, the transfers, the loop's timers and wake-ups,
 * and the opening of the store. All else is real. SQLite uses the simulated clock too (by a VFS).
 * Workers are frozen, killed, cut off from their store and told to leave. Meanwhile the requests to
 * each host are checked: never more at once than host_concurrency, never closer than host_gap_ms,
 * over all workers.
 */
#include <check.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/run/store_thread.h"
#include "engine/run/worker_parts.h"
#include "store/inbox.h"
#include "../../suite.h"

#define WALL_MS INT64_C(1795000000000) /* Unix time when the monotonic clock showed 0 */
#define START_US INT64_C(1000000000)
#define WORKERS 4
#define FEEDS 2000
#define FLIGHTS 1024
#define TIMERS 4
#define ENTRY_MS (5 * FW_MINUTE_MS) /* each feed has a new entry this often */
#define SHOWN 40                    /* entries in a document */
#define OK(call) ck_assert_msg((call) == 0, "%s: %s", #call, err.text)

struct timer {
	uv_timer_t *handle;
	uv_timer_cb cb;
	int64_t at_ms;
};

/* a worker */
struct sim {
	struct worker w;
	struct worker_shared shared;
	struct fw_meter_slot meter;
	struct worker_options o;
	struct store_thread s;
	struct store_driver driver; /* the store's slots; failing ones while it is cut off */
	struct timer timer[TIMERS];
	bool begun, ended, woken;
	int code;
	int64_t frozen_ms;                       /* until then */
	int64_t store_at_ms, tick_at_ms, cut_ms; /* cut off from its store until then */
	uint64_t seen;                           /* store_steps when it last looked for changes */
};

struct flight {
	struct fw_fetch *f;
	struct sim *of;
	int feed;
	int64_t send_ms, end_ms;
	bool sent, redirected;
	bool waits; /* for fw_fetch_continue() */
};

struct feed {
	char url[80];
	int host;
	int64_t take_ms;
	int status; /* 0: 200 or 304 */
	int64_t retry_after_s;
	bool redirects; /* to another URL of its host */
	unsigned sent_n;
};

static int64_t now_us;
static uint64_t store_steps;
static struct sim sims[WORKERS];
static struct flight flights[FLIGHTS];
static size_t flight_n;
static struct feed feeds[FEEDS];
static int feed_n;
static struct {
	int64_t sent_ms;
	unsigned in_flight;
} hosts[FEEDS];
static bool budget_is_watched;
static struct fw_config *config;
static struct fw_err err;
static char path[200];
static unsigned sent_n, max_in_flight, pending_n;
static int64_t pending_ms;
/* what the stepped worker did: i control looked for, f feeds taken, c visits committed */
static struct fw_buf done;
static int64_t row_ms, message_ms; /* what a row of feeds_to_fetch, and a message of control costs */
static size_t batch_max;           /* the most rows that were taken at once, of late */

/* ---- what the linker replaces ---------------------------------------------------------------- */

int64_t __wrap_fw_mono_us(void);
int64_t __wrap_fw_mono_ms(void);
int64_t __wrap_fw_now_ms(void);
ssize_t __wrap_getrandom(void *to, size_t n, unsigned flags);
int __wrap_fw_fetch_start(struct fw_fetcher *fr, struct fw_fetch *f, struct fw_err *e);
void __wrap_fw_fetch_continue(struct fw_fetch *f);
void __wrap_fw_fetch_cancel(struct fw_fetch *f);
bool __wrap_fw_fetch_abandon(struct fw_fetch *f);
bool __wrap_fw_fetch_is_silent(const struct fw_fetch *f);
void __wrap_fw_fetcher_hold(struct fw_fetcher *fr, bool on);
int __wrap_uv_timer_start(uv_timer_t *t, uv_timer_cb cb, uint64_t timeout, uint64_t repeat);
int __wrap_uv_async_send(uv_async_t *a);
int __wrap_fw_config_store(const struct fw_config *c, unsigned flags, struct fw_store **out, struct fw_err *e);
int __real_fw_config_store(const struct fw_config *c, unsigned flags, struct fw_store **out, struct fw_err *e);

int64_t __wrap_fw_mono_us(void)
{
	return now_us;
}

int64_t __wrap_fw_mono_ms(void)
{
	return now_us / 1000;
}

int64_t __wrap_fw_now_ms(void)
{
	return WALL_MS + now_us / 1000;
}

/* From FW_SEED, so that a failure can be repeated. */
static uint64_t dice;

ssize_t __wrap_getrandom(void *to, size_t n, unsigned flags)
{
	(void)flags;
	for (size_t i = 0; i < n; i++) {
		dice ^= dice << 13;
		dice ^= dice >> 7;
		dice ^= dice << 17;
		((unsigned char *)to)[i] = (unsigned char)(dice >> 24);
	}
	return (ssize_t)n;
}

static int vfs_time(sqlite3_vfs *v, sqlite3_int64 *ms)
{
	(void)v;
	*ms = __wrap_fw_now_ms() + INT64_C(210866760000000); /* Julian day numbers start in 4714 BC */
	return SQLITE_OK;
}

static struct sim *sim_of(struct worker *w)
{
	return (struct sim *)(void *)w;
}

static int feed_of(struct fw_str url)
{
	for (int i = 0; i < feed_n; i++) {
		if (fw_str_eq(url, fw_str(feeds[i].url)))
			return i;
	}
	ck_abort_msg("nobody subscribed to %.*s", FW_STR_ARG(url));
	return -1;
}

int __wrap_fw_fetch_start(struct fw_fetcher *fr, struct fw_fetch *f, struct fw_err *e)
{
	struct flight *at = &flights[flight_n];
	const struct visit *v = f->ctx;

	(void)fr;
	(void)e;
	ck_assert_uint_lt(flight_n++, FLIGHTS);
	*at = (struct flight){.f = f, .of = sim_of(v->worker), .feed = feed_of(f->url)};
	at->send_ms = __wrap_fw_mono_ms() + 5;
	at->end_ms = at->send_ms + feeds[at->feed].take_ms;
	f->visit.at_ms = __wrap_fw_now_ms();
	for (size_t i = 0; i + 1 < flight_n; i++)
		ck_assert_msg(flights[i].feed != at->feed || flights[i].of != at->of || flights[i].of->ended,
			"one feed is fetched twice at once");
	return 0;
}

static size_t flight_find(const struct fw_fetch *f)
{
	size_t i = 0;

	while (i < flight_n && flights[i].f != f)
		i++;
	return i;
}

void __wrap_fw_fetch_continue(struct fw_fetch *f)
{
	struct flight *at = &flights[flight_find(f)];

	ck_assert(at < flights + flight_n && at->waits);
	at->waits = at->sent = false;
	at->send_ms = __wrap_fw_mono_ms() + 5;
}

static void flight_end(size_t i)
{
	struct flight at = flights[i];

	flights[i] = flights[--flight_n];
	if (at.sent || at.redirected)
		hosts[feeds[at.feed].host].in_flight--;
	at.f->visit.total_us = (__wrap_fw_mono_ms() - at.send_ms) * 1000;
	at.f->done(at.f);
}

void __wrap_fw_fetch_cancel(struct fw_fetch *f)
{
	size_t i = flight_find(f);

	if (i == flight_n)
		return;
	f->kind = FW_VISIT_LOCAL;
	fw_err_set(&f->err, FW_EIO, "cancelled");
	flight_end(i);
}

bool __wrap_fw_fetch_is_silent(const struct fw_fetch *f)
{
	return flight_find(f) < flight_n;
}

bool __wrap_fw_fetch_abandon(struct fw_fetch *f)
{
	size_t i = flight_find(f);

	if (i == flight_n)
		return false;
	f->kind = FW_VISIT_TIMEOUT;
	fw_err_set(&f->err, FW_ENET, "given up");
	flight_end(i);
	return true;
}

void __wrap_fw_fetcher_hold(struct fw_fetcher *fr, bool on)
{
	(void)fr;
	(void)on;
}

int __wrap_uv_timer_start(uv_timer_t *t, uv_timer_cb cb, uint64_t timeout, uint64_t repeat)
{
	struct sim *m = sim_of(t->data);
	int i = 0;

	ck_assert_uint_eq(repeat, 0);
	while (i < TIMERS && m->timer[i].handle && m->timer[i].handle != t)
		i++;
	ck_assert_int_lt(i, TIMERS);
	m->timer[i] = (struct timer){t, cb, __wrap_fw_mono_ms() + (int64_t)timeout};
	return 0;
}

int __wrap_uv_async_send(uv_async_t *a)
{
	for (int i = 0; i < WORKERS; i++) {
		if (a == &sims[i].w.ch.to_loop)
			sims[i].woken = true;
	}
	return 0;
}

/* ---- a store that can be cut off ------------------------------------------------------------- */

static struct sim *stepped; /* whose store thread is running */

static bool is_cut(void)
{
	return stepped && __wrap_fw_mono_ms() < stepped->cut_ms;
}

#define CUT(e) fw_err_set(e, FW_EIO, "cut off")

static int cut_clock(struct store *st, int64_t *now_ms, struct fw_err *e)
{
	return is_cut() ? CUT(e) : store_sqlite.clock(st, now_ms, e);
}

static int cut_commit(struct store *st, struct store_commit *c, struct fw_err *e)
{
	if (c->n)
		fw_buf_adds(&done, "c");
	return is_cut() ? CUT(e) : store_sqlite.commit(st, c, e);
}

static int cut_record_put(
	struct store *st, const struct fw_record *r, bool if_absent, bool wake, bool *was, struct fw_err *e)
{
	return is_cut() ? CUT(e) : store_sqlite.record_put(st, r, if_absent, wake, was, e);
}

static int cut_record_list(
	struct store *st, const struct store_record_query *q, fw_record_cb *cb, void *ctx, struct fw_err *e)
{
	if (fw_str_eq(q->q.kind, FW_STR(STORE_CONTROL_KIND)))
		now_us += message_ms * 1000;
	return is_cut() ? CUT(e) : store_sqlite.record_list(st, q, cb, ctx, e);
}

static int cut_inbox(struct store *st, struct store_inbox *in, struct fw_err *e)
{
	int rc = is_cut() ? CUT(e) : store_sqlite.inbox(st, in, e);

	fw_buf_adds(&done, in->limit ? "f" : "i");
	now_us += (int64_t)in->feed_n * row_ms * 1000;
	batch_max = FW_MAX(batch_max, in->feed_n);
	return rc;
}

static int cut_feed_list(
	struct store *st, const struct store_feed_query *q, fw_feed_cb *cb, void *ctx, struct fw_err *e)
{
	return is_cut() ? CUT(e) : store_sqlite.feed_list(st, q, cb, ctx, e);
}

/* The query for the next due time (fw_store_pending()) takes pending_ms, and is counted. */
static int slow_due(struct store *st, const struct store_due_query *q, struct fw_err *e)
{
	if (q->shard < 0) {
		pending_n++;
		now_us += pending_ms * 1000;
	}
	return store_sqlite.due(st, q, e);
}

int __wrap_fw_config_store(const struct fw_config *c, unsigned flags, struct fw_store **out, struct fw_err *e)
{
	int rc = is_cut() ? CUT(e) : __real_fw_config_store(c, flags, out, e);

	if (rc || !stepped)
		return rc;
	stepped->driver = store_sqlite;
	stepped->driver.due = slow_due;
	stepped->driver.clock = cut_clock;
	stepped->driver.commit = cut_commit;
	stepped->driver.record_put = cut_record_put;
	stepped->driver.record_list = cut_record_list;
	stepped->driver.feed_list = cut_feed_list;
	stepped->driver.inbox = cut_inbox;
	store_of(*out)->driver = &stepped->driver;
	return 0;
}

/*
 * ---- responses
 * -----------------------------------------------------------------------------------
 */

static void document(const struct feed *at, int64_t newest, struct fw_buf *b)
{
	fw_buf_adds(b, "<rss version='2.0'><channel><title>T</title>");
	for (int64_t n = newest; n > newest - SHOWN && n > 0; n--)
		fw_buf_addf(b, "<item><guid isPermaLink='false'>%s#%lld</guid><title>%lld</title></item>", at->url,
			(long long)n, (long long)n);
	fw_buf_adds(b, "</channel></rss>");
}

static int64_t newest_entry(void)
{
	return (now_us - START_US) / 1000 / ENTRY_MS + 1;
}

static void flight_answer(struct flight *at)
{
	static char retry_after[32], etag[32];
	struct feed *to = &feeds[at->feed];
	struct fw_fetch *f = at->f;
	int64_t newest = newest_entry();

	f->final_url = fw_str(to->url);
	f->http_status = f->visit.http_status = to->status ? to->status : 200;
	(void)fw_snprintf(etag, sizeof(etag), "\"%lld\"", (long long)newest);
	if (to->status) {
		f->kind = FW_VISIT_HTTP;
		fw_err_set(&f->err, FW_ENET, "HTTP %d", to->status);
		(void)fw_snprintf(retry_after, sizeof(retry_after), "%lld", (long long)to->retry_after_s);
		f->h_retry_after = to->retry_after_s ? fw_str(retry_after) : FW_STR_NONE;
	} else if (fw_str_eq(f->etag, fw_str(etag))) {
		f->kind = FW_VISIT_NOT_MODIFIED;
		f->http_status = f->visit.http_status = 304;
	} else {
		f->kind = FW_VISIT_OK;
		f->h_etag = fw_str(etag);
		f->body.len = 0;
		document(to, newest, &f->body);
	}
}

static void flight_send(size_t i)
{
	struct flight *at = &flights[i];
	int host = feeds[at->feed].host;
	int64_t mono_ms = __wrap_fw_mono_ms();

	if (!at->f->send(at->f)) {
		at->f->kind = FW_VISIT_LOCAL;
		at->f->deferred = true;
		fw_err_set(&at->f->err, FW_EAGAIN, "the host must not be requested now");
		flight_end(i);
		return;
	}
	at->f->sent(at->f);
	at->sent = true;
	at->end_ms = mono_ms + feeds[at->feed].take_ms;
	sent_n++;
	feeds[at->feed].sent_n++;
	ck_assert_msg(mono_ms - hosts[host].sent_ms >= config->host_gap_ms, "host %d was asked again after %lld ms",
		host, (long long)(mono_ms - hosts[host].sent_ms));
	hosts[host].sent_ms = mono_ms;
	hosts[host].in_flight += !at->redirected;
	ck_assert(!budget_is_watched || (int64_t)hosts[host].in_flight <= config->host_concurrency);
	max_in_flight = FW_MAX(max_in_flight, hosts[host].in_flight);
}

/* A redirect to the same host: the next request waits for fw_fetch_continue(). */
static void flight_redirect(struct flight *at)
{
	at->redirected = at->waits = true;
	if (!at->f->further(at->f, fw_str(feeds[at->feed].url)))
		__wrap_fw_fetch_continue(at->f);
}

/* ---- time ------------------------------------------------------------------------------------ */

static bool runs(const struct sim *m)
{
	return m->begun && !m->ended && m->frozen_ms <= __wrap_fw_mono_ms();
}

/* Runs the store thread until it would sleep. */
static void store_turn(struct sim *m)
{
	struct channel *ch = &m->w.ch;
	enum store_next next;
	char drop[64];

	stepped = m;
	atomic_store(&ch->collecting, 0);
	while (read(ch->wake_fd[0], drop, sizeof(drop)) > 0)
		;
	atomic_store(&ch->woken, false);
	while ((next = store_thread_step(&m->s, &m->code)) == STORE_GO_ON)
		;
	m->ended = next == STORE_END;
	m->store_at_ms = __wrap_fw_mono_ms() + store_thread_wait_ms(&m->s, __wrap_fw_mono_ms());
	atomic_store(&ch->collecting, m->s.n > 0);
	stepped = NULL;
	m->seen = ++store_steps;
}

static void store_look(struct sim *m)
{
	bool news = false;

	if (m->seen != store_steps && m->s.st && __wrap_fw_mono_ms() >= m->cut_ms &&
		!fw_store_wait(m->s.st, -1, 0, &news, &err) && news) {
		m->s.changed = true;
		m->s.control_at_ms = 0;
	}
	m->seen = store_steps;
	if (m->s.changed || atomic_load(&m->w.ch.woken) || __wrap_fw_mono_ms() >= m->store_at_ms)
		store_turn(m);
}

static void timers_fire(struct sim *m)
{
	for (int i = 0; i < TIMERS; i++) {
		struct timer t = m->timer[i];

		if (!t.handle || t.at_ms > __wrap_fw_mono_ms())
			continue;
		m->timer[i].handle = NULL;
		t.cb(t.handle);
	}
	if (__wrap_fw_mono_ms() < m->tick_at_ms)
		return;
	m->tick_at_ms = __wrap_fw_mono_ms() + 500;
	worker_round(&m->w);
}

static void flights_go_on(void)
{
	for (size_t i = 0; i < flight_n;) {
		struct flight *at = &flights[i];
		int64_t mono_ms = __wrap_fw_mono_ms();

		if (!runs(at->of) || at->waits || mono_ms < (at->sent ? at->end_ms : at->send_ms)) {
			i++;
		} else if (!at->sent) {
			flight_send(i);
			i = 0; /* the table may have changed */
		} else if (feeds[at->feed].redirects && !at->redirected) {
			flight_redirect(at);
			i = 0;
		} else {
			flight_answer(at);
			flight_end(i);
			i = 0;
		}
	}
}

static int64_t next_event_ms(void)
{
	int64_t next_ms = INT64_MAX;

	for (int i = 0; i < WORKERS; i++) {
		const struct sim *m = &sims[i];

		if (!m->begun || m->ended)
			continue;
		if (!runs(m)) {
			next_ms = FW_MIN(next_ms, m->frozen_ms);
			continue;
		}
		next_ms = FW_MIN(next_ms, FW_MIN(m->store_at_ms, m->tick_at_ms));
		for (int k = 0; k < TIMERS; k++)
			next_ms = m->timer[k].handle ? FW_MIN(next_ms, m->timer[k].at_ms) : next_ms;
	}
	for (size_t i = 0; i < flight_n; i++) {
		if (runs(flights[i].of) && !flights[i].waits)
			next_ms = FW_MIN(next_ms, flights[i].sent ? flights[i].end_ms : flights[i].send_ms);
	}
	return next_ms;
}

static void pass(int64_t ms)
{
	int64_t until_ms = __wrap_fw_mono_ms() + ms;

	for (;;) {
		int64_t next_ms;

		flights_go_on();
		for (int i = 0; i < WORKERS; i++) {
			struct sim *m = &sims[i];

			if (!runs(m))
				continue;
			if (m->woken) {
				m->woken = false;
				worker_round(&m->w);
			}
			timers_fire(m);
			store_look(m);
		}
		next_ms = FW_MAX(next_event_ms(), __wrap_fw_mono_ms() + 1);
		for (int i = 0; i < WORKERS; i++)
			next_ms = runs(&sims[i]) && sims[i].woken ? __wrap_fw_mono_ms() : next_ms;
		if (next_ms > until_ms)
			break;
		now_us = FW_MAX(now_us, next_ms * 1000);
	}
	now_us = until_ms * 1000;
}

/* ---- the world ------------------------------------------------------------------------------- */

static void set(const char *name, const char *value)
{
	OK(fw_config_set(config, name, value, "test", &err));
}

static void world_begin(void)
{
	static sqlite3_vfs vfs;

	if (!vfs.zName) {
		vfs = *sqlite3_vfs_find(NULL);
		vfs.zName = "simulated";
		vfs.xCurrentTimeInt64 = vfs_time;
		ck_assert_int_eq(sqlite3_vfs_register(&vfs, 1), SQLITE_OK);
	}
	dice = (getenv("FW_SEED") ? strtoull(getenv("FW_SEED"), NULL, 10) : 1) * UINT64_C(0x9e3779b97f4a7c15);
	memset(sims, 0, sizeof(sims));
	memset(feeds, 0, sizeof(feeds));
	memset(hosts, 0, sizeof(hosts));
	for (int i = 0; i < FEEDS; i++)
		hosts[i].sent_ms = -FW_DAY_MS;
	flight_n = 0;
	feed_n = 0;
	sent_n = max_in_flight = pending_n = 0;
	pending_ms = row_ms = message_ms = 0;
	batch_max = 0;
	done = FW_BUF_INIT(0);
	budget_is_watched = true;
	now_us = START_US;
	fw_log_level_set(FW_LOG_ERROR);
	(void)fw_snprintf(path, sizeof(path), "%s/worker-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(path));
	OK(fw_config_create(&config, &err));
	(void)fw_snprintf(err.text, sizeof(err.text), "sqlite:%s/feeds.db", path);
	set("store", err.text);
	set("async_commit", "true");
	set("concurrency", "20");
	set("host_gap_ms", "1s");
	set("host_concurrency", "2");
}

static void world_end(void)
{
	static const char *const NAMES[] = {"feeds.db", "feeds.db-wal", "feeds.db-shm", "feeds.db-checkpoint"};
	char name[300];

	for (int i = 0; i < WORKERS; i++) {
		if (!sims[i].begun)
			continue;
		store_thread_finish(&sims[i].s);
		worker_finish(&sims[i].w);
	}
	fw_config_destroy(config);
	fw_buf_finish(&done);
	for (size_t i = 0; i < FW_N(NAMES); i++) {
		(void)fw_snprintf(name, sizeof(name), "%s/%s", path, NAMES[i]);
		(void)unlink(name);
	}
	ck_assert_int_eq(rmdir(path), 0);
}

static struct fw_store *look(void)
{
	struct fw_store *st;

	stepped = NULL;
	OK(fw_config_store(config, FW_STORE_CREATE, &st, &err));
	return st;
}

/* Another program. */
static int64_t by_sql(const char *sql)
{
	sqlite3 *db;
	sqlite3_stmt *q;
	int64_t n = 0;
	char name[300];

	(void)fw_snprintf(name, sizeof(name), "%s/feeds.db", path);
	ck_assert_int_eq(sqlite3_open(name, &db), SQLITE_OK);
	ck_assert_msg(sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
	if (sqlite3_step(q) == SQLITE_ROW)
		n = sqlite3_column_int64(q, 0);
	ck_assert_msg(sqlite3_finalize(q) == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_close(db);
	return n;
}

/* n further feeds, each on a host of its own, that nobody has subscribed to yet. */
static void put_addresses(int n, int64_t take_ms)
{
	char sql[300];

	for (int i = 0; i < n; i++, feed_n++) {
		struct feed *at = &feeds[feed_n];

		at->host = feed_n;
		at->take_ms = take_ms;
		(void)fw_snprintf(at->url, sizeof(at->url), "http://h%d.example/%d", at->host, feed_n);
	}
	(void)fw_snprintf(sql, sizeof(sql),
		"WITH RECURSIVE c(i) AS (SELECT %d UNION ALL SELECT i + 1 FROM c WHERE i < %d)"
		" INSERT INTO feeds_to_fetch (url) SELECT 'http://h' || i || '.example/' || i FROM c",
		feed_n - n, feed_n - 1);
	(void)by_sql(sql);
}

/* n feeds, of_host of them on each host; each is polled every interval_ms. */
static void subscribe(int n, int of_host, int64_t take_ms, int64_t interval_ms)
{
	struct fw_feed_new *f = calloc((size_t)n, sizeof(*f));
	struct fw_store *st = look();
	int first_host = feed_n;

	for (int i = 0; i < n; i++) {
		struct feed *at = &feeds[feed_n + i];

		at->host = first_host + i / of_host;
		(void)fw_snprintf(at->url, sizeof(at->url), "http://h%d.example/%d", at->host, feed_n + i);
		at->take_ms = take_ms;
		f[i] = (struct fw_feed_new){
			.url = fw_str(at->url), .interval_ms = interval_ms, .due_at_ms = fw_now_ms()};
	}
	OK(fw_store_subscribe(st, f, (size_t)n, &err));
	feed_n += n;
	fw_store_close(st);
	free(f);
}

static const struct worker_shared *begin_shared; /* of a successor */

static struct sim *begin_of(int i, int workers, bool once)
{
	struct sim *m = &sims[i];

	memset(m, 0, sizeof(*m));
	if (begin_shared)
		m->shared = *begin_shared;
	begin_shared = NULL;
	m->o = (struct worker_options){.config = config,
		.shared = &m->shared,
		.meter = &m->meter,
		.index = i,
		.first = i == 0,
		.workers = workers,
		.once = once,
		.run_id = fw_now_ms(),
		.due_before_ms = once ? fw_now_ms() : 0,
		.master_fd = -1};
	ck_assert_msg(worker_init(&m->w, &m->o) == 0, "%s", m->shared.err.text);
	(void)fw_snprintf(m->shared.name, sizeof(m->shared.name), "sim/%d/%lld", i, (long long)now_us);
	m->w.gap_timer.data = m->w.drain_timer.data = &m->w;
	ck_assert_int_eq(store_thread_init(&m->s, &m->w.ch), 0);
	stepped = m;
	ck_assert_msg(store_thread_open(&m->s) == WORKER_DONE, "%s", m->shared.err.text);
	stepped = NULL;
	m->begun = true;
	transfers_start(&m->w);
	return m;
}

static struct sim *begin(int i, bool once)
{
	return begin_of(i, 1, once);
}

/* kill -9 */
static void killed(struct sim *m)
{
	for (size_t i = 0; i < flight_n;) {
		if (flights[i].of != m) {
			i++;
			continue;
		}
		if (flights[i].sent || flights[i].redirected)
			hosts[feeds[flights[i].feed].host].in_flight--;
		flights[i] = flights[--flight_n];
	}
	store_thread_finish(&m->s);
	worker_finish(&m->w);
	m->begun = false;
}

#define NUMBERS 512
struct stop_requested {
	unsigned char is[NUMBERS];
	int64_t last;
};

static int entry_told(void *ctx, const struct fw_entry_row *e)
{
	struct stop_requested *t = ctx;
	int64_t number = 0;

	ck_assert(fw_str_int(e->title, &number) && number > 0 && number < NUMBERS);
	ck_assert_msg(
		!t->is[number]++, "feed %lld: entry %lld is there twice", (long long)e->feed_id, (long long)number);
	t->last = FW_MAX(t->last, number);
	return 0;
}

struct count {
	int64_t n, overdue, stale_ms;
};

static int feed_told(void *ctx, const struct fw_feed *f)
{
	struct count *c = ctx;

	c->n++;
	c->overdue += f->due_at_ms < fw_now_ms() - c->stale_ms;
	return 0;
}

static void none_is_late(int64_t slack_ms)
{
	struct fw_store *st = look();
	struct count c = {.stale_ms = slack_ms};

	OK(fw_store_feed_list(st, &(struct fw_feed_query){.status = -1}, feed_told, &c, &err));
	ck_assert_int_eq(c.n, feed_n);
	ck_assert_msg(
		c.overdue == 0, "%lld feeds are late by more than %lld ms", (long long)c.overdue, (long long)slack_ms);
	fw_store_close(st);
}

/* Each feed has all entries up to its newest: none is lost, none is there twice. */
static void all_there(void)
{
	struct fw_store *st = look();

	for (int i = 0; i < feed_n; i++) {
		struct stop_requested t = {.last = 0};

		OK(fw_store_entry_list(st, &(struct fw_entry_query){.feed_id = i + 1}, entry_told, &t, &err));
		ck_assert_int_ge(t.last, 1);
		for (int64_t n = 1; n <= t.last; n++)
			ck_assert_msg(
				t.is[n], "feed %d: entry %lld of %lld is lost", i + 1, (long long)n, (long long)t.last);
	}
	fw_store_close(st);
}

static int64_t leases(void)
{
	sqlite3 *db;
	sqlite3_stmt *q;
	int64_t n;
	char name[300];

	(void)fw_snprintf(name, sizeof(name), "%s/feeds.db", path);
	ck_assert_int_eq(sqlite3_open(name, &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_prepare_v2(db,
				 "SELECT (SELECT count(*) FROM workers)"
				 " + (SELECT count(*) FROM shards WHERE worker IS NOT NULL)",
				 -1, &q, NULL),
		SQLITE_OK);
	ck_assert_int_eq(sqlite3_step(q), SQLITE_ROW);
	n = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	sqlite3_close(db);
	return n;
}

/* ---- cases ----------------------------------------------------------------------------------- */

/*
 * Two hours of one worker: each feed is polled every ten minutes, and no entry is missed. Told to
 * leave, it leaves nothing behind.
 */
START_TEST(two_hours)
{
	struct sim *m;

	world_begin();
	subscribe(100, 3, 200, 10 * FW_MINUTE_MS);
	m = begin(0, false);
	pass(2 * FW_HOUR_MS);
	none_is_late(FW_MINUTE_MS);
	all_there();
	ck_assert_uint_ge(sent_n, 100 * 11);
	ck_assert_uint_le(sent_n, 100 * 13);
	worker_drain(&m->w);
	pass(FW_SECOND_MS);
	ck_assert(m->ended);
	ck_assert_int_eq(m->code, WORKER_DONE);
	ck_assert_int_eq(leases(), 0);
	world_end();
}
END_TEST

/* A --once run ends when all is stored, and its forecast was right. */
START_TEST(once)
{
	struct sim *m;

	world_begin();
	subscribe(300, 3, 500, FW_HOUR_MS);
	m = begin(0, true);
	ck_assert_int_eq(m->shared.total, 300);
	/* three of a host, a second apart, 20 at once: 100 hosts in 15 batches of half a second */
	pass(25 * FW_SECOND_MS);
	ck_assert_msg(atomic_load(&m->w.ch.finished), "%u of 300 were sent", sent_n);
	pass(FW_SECOND_MS);
	ck_assert(m->ended);
	ck_assert_int_eq(m->code, WORKER_DONE);
	ck_assert_uint_eq(sent_n, 300);
	ck_assert_int_eq(leases(), 0);
	world_end();
}
END_TEST

/* With three workers: when the last visit is over, no time is lost until all have noticed. */
START_TEST(once_together)
{
	int64_t last_us = 0;

	world_begin();
	for (int i = 0; i < 30; i++)
		subscribe(10, 1, 300 + 37 * i, FW_HOUR_MS);
	for (int i = 0; i < 3; i++)
		(void)begin_of(i, 3, true);
	for (int i = 0; i < 25000 && !(sims[0].ended && sims[1].ended && sims[2].ended); i += 10)
		pass(10);
	for (int i = 0; i < 3; i++) {
		ck_assert(sims[i].ended);
		ck_assert_int_eq(sims[i].code, WORKER_DONE);
		last_us = FW_MAX(last_us, atomic_load(&sims[i].shared.last_done_us));
	}
	ck_assert_uint_eq(sent_n, 300);
	ck_assert_int_eq(leases(), 0);
	ck_assert_msg(now_us - last_us < 100000, "%lld us after the last visit", (long long)(now_us - last_us));
	world_end();
}
END_TEST

/*
 * Feeds that redirect: their further requests wait for their host too, and end in time. The end of
 * a run waits for them.
 */
START_TEST(redirects)
{
	struct sim *m;

	world_begin();
	subscribe(60, 6, 200, 10 * FW_MINUTE_MS);
	for (int i = 0; i < feed_n; i++)
		feeds[i].redirects = i % 6 < 2;
	m = begin(0, false);
	pass(FW_HOUR_MS);
	none_is_late(FW_MINUTE_MS);
	all_there();
	ck_assert_uint_ge(sent_n, (60 + 20) * 5);
	ck_assert_uint_le(max_in_flight, 2);
	while (!flight_n || !flights[0].waits)
		pass(10);
	worker_drain(&m->w);
	pass(5 * FW_SECOND_MS);
	ck_assert_uint_eq(flight_n, 0);
	ck_assert(m->ended);
	ck_assert_int_eq(m->code, WORKER_DONE);
	ck_assert_int_eq(leases(), 0);
	world_end();
}
END_TEST

/*
 * One is killed, one is frozen for longer than its lease: after a lease and a heartbeat the other
 * has their feeds, visits those of a host with its gap, and nothing is lost.
 */
START_TEST(killed_and_frozen)
{
	struct sim *m;

	world_begin();
	budget_is_watched = false; /* a successor cannot know what the frozen worker has in flight */
	subscribe(200, 2, 300, FW_MINUTE_MS);
	for (int i = 0; i < feed_n; i++)
		feeds[i].redirects = i % 5 == 0;
	for (int i = 0; i < 3; i++)
		begin(i, false);
	pass(3 * FW_MINUTE_MS);
	killed(&sims[0]);
	sims[1].frozen_ms = __wrap_fw_mono_ms() + FW_MINUTE_MS;
	for (int i = 0; i < 10; i++) {
		pass(10 * FW_SECOND_MS);
		none_is_late(config->lease_ms + config->lease_ms / 3 + 2 * config->host_gap_ms);
	}
	m = begin(0, false);
	pass(3 * FW_MINUTE_MS);
	ck_assert(!m->ended);
	all_there();
	world_end();
}
END_TEST

/*
 * The store is away for a minute: nothing starts after the lease's safe time, nothing is lost, and
 * work resumes by itself.
 */
START_TEST(store_away)
{
	unsigned before;

	world_begin();
	subscribe(20, 1, 40 * FW_SECOND_MS, 2 * FW_MINUTE_MS);
	begin(0, false);
	pass(5 * FW_MINUTE_MS);
	while (!sims[0].w.in_flight)
		pass(FW_SECOND_MS);
	sims[0].cut_ms = __wrap_fw_mono_ms() + FW_MINUTE_MS;
	pass(15 * FW_SECOND_MS);
	before = sent_n;
	ck_assert_uint_eq(sims[0].w.in_flight, 0);
	pass(40 * FW_SECOND_MS);
	ck_assert_uint_eq(sent_n, before);
	pass(15 * FW_MINUTE_MS);
	ck_assert_uint_gt(sent_n, before);
	none_is_late(3 * FW_MINUTE_MS);
	all_there();
	world_end();
}
END_TEST

/*
 * A host that answers 429 is paused for as long as it asks. A user's request runs at once, though
 * all slots are taken.
 */
START_TEST(paused_and_urgent)
{
	struct fw_feed urgent = {.id = 100, .due_at_ms = FW_DUE_FIRST};
	struct fw_store *st;
	unsigned had;

	world_begin();
	subscribe(2, 2, 100, FW_MINUTE_MS);
	feeds[0].status = 429;
	feeds[0].retry_after_s = 600;
	subscribe(97, 1, 50 * FW_SECOND_MS, FW_MINUTE_MS); /* twenty slots, and a hundred visits of fifty seconds */
	subscribe(1, 1, 100, 10 * FW_HOUR_MS);
	begin(0, false);
	pass(5 * FW_MINUTE_MS);
	ck_assert_uint_le(feeds[0].sent_n + feeds[1].sent_n, 2);
	pass(10 * FW_MINUTE_MS);
	ck_assert_uint_ge(feeds[0].sent_n + feeds[1].sent_n, 2);
	had = feeds[99].sent_n;
	st = look();
	OK(fw_store_feed_set(st, &urgent, FW_SET_DUE, &err));
	fw_store_close(st);
	store_steps++;
	pass(FW_SECOND_MS);
	ck_assert_uint_eq(feeds[99].sent_n, had + 1);
	world_end();
}
END_TEST

/* ---- control messages, idleness -------------------------------------------------------------- */

static size_t unsent(void)
{
	size_t n = 0;

	for (size_t i = 0; i < flight_n; i++)
		n += !flights[i].sent;
	return n;
}

static void control(enum fw_control_kind kind)
{
	struct fw_store *st = look();

	OK(fw_store_control_put(st, kind, 0, &err));
	fw_store_close(st);
	store_steps++;
}

/*
 * `pause --all` while a worker runs: it stores what is in flight, and starts nothing else, also not
 * what it has claimed. `resume --all`: it goes on.
 */
START_TEST(control_pauses_a_running_worker)
{
	struct sim *m;
	unsigned had;

	world_begin();
	set("concurrency", "4");
	subscribe(200, 1, 2 * FW_SECOND_MS, FW_MINUTE_MS); /* more than four slots can visit */
	m = begin(0, false);
	pass(5 * FW_MINUTE_MS);
	while (m->w.in_flight < 4 || unsent() || !transfers_waiting(&m->w))
		pass(10);
	had = sent_n;
	control(FW_CONTROL_PAUSE);
	pass(5 * FW_MINUTE_MS);
	ck_assert(m->shared.paused);
	ck_assert_uint_eq(m->w.in_flight, 0);
	ck_assert_msg(sent_n == had, "%u requests after the pause", sent_n - had);
	control(FW_CONTROL_RESUME);
	pass(3 * FW_MINUTE_MS);
	ck_assert(!m->shared.paused);
	ck_assert_uint_ge(sent_n, had + 100);
	all_there();
	world_end();
}
END_TEST

/* A reload reaches the master, and leaves a pause as it is. */
START_TEST(control_reload_is_no_resume)
{
	struct sim *m;
	unsigned had;

	world_begin();
	subscribe(20, 1, 300, FW_MINUTE_MS);
	m = begin(0, false);
	pass(FW_MINUTE_MS);
	control(FW_CONTROL_PAUSE);
	pass(FW_MINUTE_MS);
	had = sent_n;
	ck_assert_int_eq(atomic_load(&m->shared.reload_id), 0);
	control(FW_CONTROL_RELOAD);
	pass(5 * FW_MINUTE_MS);
	ck_assert_int_gt(atomic_load(&m->shared.reload_id), 0);
	ck_assert(m->shared.paused);
	ck_assert_uint_eq(sent_n, had);
	world_end();
}
END_TEST

/* Queries for the next due time take at most a fiftieth of an idle worker's time. */
START_TEST(worker_asks_rarely_when_idle)
{
	unsigned had;

	world_begin();
	pending_ms = 100;
	subscribe(20, 1, 300, 10 * FW_HOUR_MS);
	begin(0, false);
	pass(5 * FW_MINUTE_MS); /* all are visited, and the worker is idle */
	ck_assert_uint_eq(sent_n, 20);
	had = pending_n;
	pass(FW_MINUTE_MS);
	ck_assert_uint_eq(sent_n, 20);
	ck_assert_msg(pending_n - had >= 10 && pending_n - had <= 12, "%u queries", pending_n - had);
	ck_assert_int_gt(atomic_load(&sims[0].shared.next_due_ms), fw_now_ms());
	world_end();
}
END_TEST

/* ---- rows of other programs ------------------------------------------------------------------ */

/* An address starts within a second, whichever of three workers owns its host. */
START_TEST(inbox_starts_within_a_second)
{
	world_begin();
	subscribe(3, 1, 100, 10 * FW_HOUR_MS);
	for (int i = 0; i < 3; i++)
		begin(i, false);
	pass(FW_MINUTE_MS);
	for (int i = 0; i < 30; i++) {
		put_addresses(1, 100);
		pass(FW_SECOND_MS - 10);
		ck_assert_msg(feeds[feed_n - 1].sent_n == 1, "address %d: %u requests", i, feeds[feed_n - 1].sent_n);
		pass(7 * FW_SECOND_MS + 137 * i);
	}
	ck_assert_uint_eq(sent_n, 33);
	ck_assert_int_eq(by_sql("SELECT count(*) FROM feeds_to_fetch"), 0);
	world_end();
}
END_TEST

/* Control messages are obeyed before a commit, this before addresses, these before claims. */
START_TEST(inbox_order_in_a_step)
{
	struct sim *m;

	world_begin();
	set("batch_ms", "10s");
	subscribe(4, 1, 100, FW_HOUR_MS);
	subscribe(1, 1, 20 * FW_SECOND_MS, FW_HOUR_MS);
	m = begin(0, false);
	while (m->s.n < 4)
		pass(1);
	ck_assert_uint_eq(sent_n, 5);
	put_addresses(20, 100);
	(void)by_sql("INSERT INTO control (command) VALUES ('pause')");
	done.len = 0;
	m->s.commit_now = true;
	m->s.inbox_at_ms = 0;
	store_turn(m);
	ck_assert(m->shared.paused);
	ck_assert_msg(fw_str_eq(fw_buf_str(&done), FW_STR("icf")), "%.*s", FW_STR_ARG(fw_buf_str(&done)));
	pass(FW_MINUTE_MS);
	ck_assert_uint_eq(sent_n, 5);
	ck_assert_int_eq(by_sql("SELECT count(*) FROM feeds"), 25);
	(void)by_sql("INSERT INTO control (command) VALUES ('resume')");
	pass(5 * FW_SECOND_MS);
	ck_assert_uint_eq(sent_n, 25);
	world_end();
}
END_TEST

/* Many addresses, on a slow store: batches stay short, commits and heartbeats go on. */
START_TEST(inbox_batches_are_short)
{
	struct sim *m;

	world_begin();
	subscribe(20, 1, 100, 10 * FW_SECOND_MS);
	m = begin(0, false);
	pass(FW_MINUTE_MS);
	row_ms = 5;
	put_addresses(1800, FW_HOUR_MS);
	pass(3 * FW_SECOND_MS);
	batch_max = 0;
	ck_assert_int_gt(by_sql("SELECT count(*) FROM feeds_to_fetch"), 1000);
	for (int i = 0; i < 5; i++) {
		int64_t heartbeat_ms = m->s.heartbeat_at_ms, visits = (int64_t)m->s.visits;

		done.len = 0;
		pass(FW_SECOND_MS);
		ck_assert_int_le(m->s.heartbeat_at_ms - heartbeat_ms, 6 * FW_SECOND_MS);
		ck_assert_int_ge((int64_t)m->s.visits, visits);
		ck_assert(!fw_str_find(fw_buf_str(&done), FW_STR("ff")));
	}
	ck_assert_uint_le(batch_max * (size_t)row_ms, 250);
	pass(30 * FW_SECOND_MS);
	ck_assert_int_eq(by_sql("SELECT count(*) FROM feeds_to_fetch"), 0);
	ck_assert_int_eq(by_sql("SELECT count(DISTINCT url) FROM feeds"), 1820);
	world_end();
}
END_TEST

/* Thousands of messages: the lease outlives them, and all are obeyed, in order. */
START_TEST(inbox_many_messages)
{
	struct sim *m;

	world_begin();
	subscribe(20, 1, 100, 10 * FW_SECOND_MS);
	m = begin(0, false);
	pass(FW_MINUTE_MS);
	message_ms = 5;
	(void)by_sql("WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 10001)"
		     " INSERT INTO control (command) SELECT iif(i % 2, 'pause', 'resume') FROM c");
	put_addresses(1, 100);
	pass(30 * FW_SECOND_MS);
	ck_assert(m->s.control_more);
	ck_assert_uint_eq(feeds[feed_n - 1].sent_n, 0);
	ck_assert_int_gt(leases(), 1000); /* 50 s of messages, and a lease of 15 s */
	pass(30 * FW_SECOND_MS);
	ck_assert(!m->s.control_more && m->shared.paused);
	ck_assert_uint_eq(feeds[feed_n - 1].sent_n, 0);
	message_ms = 0;
	(void)by_sql("INSERT INTO control (command) VALUES ('resume')");
	pass(FW_SECOND_MS);
	ck_assert_uint_eq(feeds[feed_n - 1].sent_n, 1);
	world_end();
}
END_TEST

/* Not during an outage; with a full disk control only; a draining worker leaves all to others. */
START_TEST(inbox_is_left_alone)
{
	struct sim *m;

	world_begin();
	subscribe(1, 1, 100, FW_HOUR_MS);
	m = begin(0, false);
	pass(FW_SECOND_MS);
	m->cut_ms = __wrap_fw_mono_ms() + FW_MINUTE_MS;
	put_addresses(1, 100);
	pass(FW_SECOND_MS);
	done.len = 0;
	pass(50 * FW_SECOND_MS);
	ck_assert(!fw_str_find(fw_buf_str(&done), FW_STR("i")) && !fw_str_find(fw_buf_str(&done), FW_STR("f")));
	pass(FW_MINUTE_MS);
	ck_assert_uint_eq(feeds[1].sent_n, 1);

	set("disk_free_min_bytes", "1000000g");
	pass(2 * FW_SECOND_MS);
	ck_assert_int_ne(m->s.full_since_ms, 0);
	put_addresses(1, 100);
	(void)by_sql("INSERT INTO control (command) VALUES ('pause')");
	pass(FW_MINUTE_MS);
	ck_assert(m->shared.paused);
	ck_assert_int_eq(by_sql("SELECT count(*) FROM feeds_to_fetch"), 1);
	set("disk_free_min_bytes", "0");
	pass(5 * FW_SECOND_MS);
	ck_assert_int_eq(by_sql("SELECT count(*) FROM feeds_to_fetch"), 0);
	ck_assert_uint_eq(feeds[2].sent_n, 0);

	worker_drain(&m->w);
	put_addresses(1, 100);
	pass(FW_MINUTE_MS);
	ck_assert(m->ended);
	ck_assert_int_eq(by_sql("SELECT count(*) FROM feeds_to_fetch"), 1);
	world_end();
}
END_TEST

/* A run --once fetches what waits at its start, with all its workers, and nothing later. */
START_TEST(inbox_of_a_run_once)
{
	world_begin();
	subscribe(5, 1, 3 * FW_SECOND_MS, FW_HOUR_MS);
	put_addresses(1500, 10);
	for (int i = 0; i < 3; i++)
		(void)begin_of(i, 3, true);
	ck_assert_int_eq(sims[0].shared.total, 1505);
	ck_assert_int_eq(by_sql("SELECT count(*) FROM feeds_to_fetch"), 0);
	pass(FW_SECOND_MS);
	put_addresses(1, 10);
	for (int i = 0; i < 600 && !(sims[0].ended && sims[1].ended && sims[2].ended); i++)
		pass(100);
	ck_assert(sims[0].ended && sims[1].ended && sims[2].ended);
	ck_assert_uint_eq(sent_n, 1505);
	ck_assert_int_eq(by_sql("SELECT count(*) FROM feeds_to_fetch"), 1);
	world_end();
}
END_TEST

static void control_to(const char *command, const struct sim *m)
{
	char sql[300];

	(void)fw_snprintf(
		sql, sizeof(sql), "INSERT INTO control (command, worker) VALUES ('%s', '%s')", command, m->shared.name);
	(void)by_sql(sql);
}

/* A message to one worker: the others do not obey it, nor does one that starts later. */
START_TEST(control_of_one_worker)
{
	world_begin();
	subscribe(100, 1, 100, 10 * FW_SECOND_MS);
	for (int i = 0; i < 3; i++)
		begin(i, false);
	pass(FW_MINUTE_MS);
	control_to("pause", &sims[1]);
	pass(FW_SECOND_MS);
	ck_assert(!sims[0].shared.paused && sims[1].shared.paused && !sims[2].shared.paused);
	begin(3, false);
	ck_assert(!sims[3].shared.paused);
	control_to("stop", &sims[0]);
	pass(5 * FW_SECOND_MS);
	ck_assert(sims[0].ended && !sims[1].ended && !sims[2].ended && !sims[3].ended);
	ck_assert_int_eq(sims[0].code, WORKER_DONE);
	ck_assert(atomic_load(&sims[0].w.ch.retires) && !atomic_load(&sims[0].w.ch.stop_requested));
	control_to("resume", &sims[1]);
	pass(FW_SECOND_MS);
	ck_assert(!sims[1].shared.paused);
	pass(FW_MINUTE_MS);
	none_is_late(20 * FW_SECOND_MS);
	world_end();
}
END_TEST

/*
 * A worker dies before it has obeyed a message to it: its successor does. It does not obey what is
 * sent to the dead one later, and stays paused.
 */
START_TEST(control_of_a_dead_worker)
{
	struct worker_shared was;
	char name[FW_WORKER_NAME_MAX];

	world_begin();
	subscribe(1, 1, 100, FW_HOUR_MS);
	begin(0, false);
	pass(FW_SECOND_MS);
	control(FW_CONTROL_RELOAD);
	control_to("pause", &sims[0]);
	memcpy(name, sims[0].shared.name, sizeof(name));
	was = sims[0].shared;
	memcpy(was.predecessor_name, name, sizeof(name));
	killed(&sims[0]);
	now_us += 1000000;
	ck_assert(!was.paused);
	ck_assert_int_eq(atomic_load(&was.reload_id), 0);
	begin_shared = &was;
	begin(0, false);
	pass(FW_SECOND_MS);
	ck_assert_int_gt(atomic_load(&sims[0].shared.reload_id), 0);
	ck_assert(sims[0].shared.paused);
	memcpy(sims[1].shared.name, name, sizeof(name));
	control_to("resume", &sims[1]);
	pass(FW_SECOND_MS);
	ck_assert(sims[0].shared.paused);
	control_to("resume", &sims[0]);
	pass(FW_SECOND_MS);
	ck_assert(!sims[0].shared.paused);
	world_end();
}
END_TEST

/* A worker is killed while it drains after a stop: its successor drains too, and is not sent on. */
static void stop_outlives(bool all)
{
	struct worker_shared was;

	world_begin();
	subscribe(1, 1, 20 * FW_SECOND_MS, FW_HOUR_MS);
	begin(0, false);
	pass(FW_SECOND_MS);
	if (all)
		control(FW_CONTROL_STOP);
	else
		control_to("stop", &sims[0]);
	(void)by_sql("INSERT INTO control (command) VALUES ('pause')");
	pass(2 * FW_SECOND_MS);
	ck_assert(sims[0].w.draining && !sims[0].ended);
	was = sims[0].shared;
	memcpy(was.predecessor_name, was.name, sizeof(was.predecessor_name));
	killed(&sims[0]);
	begin_shared = &was;
	begin(0, false);
	pass(FW_MINUTE_MS);
	ck_assert(sims[0].ended && !sims[0].shared.paused);
	ck_assert_int_eq(sims[0].code, WORKER_DONE);
	ck_assert_int_eq(atomic_load(&sims[0].w.ch.retires), !all);
	ck_assert_int_eq(atomic_load(&sims[0].w.ch.stop_requested), all);
	world_end();
}

START_TEST(control_stop_of_a_dead_worker)
{
	stop_outlives(false);
	stop_outlives(true);
}
END_TEST

/* A stop that waited for the first worker is over; a pause that waited holds. */
START_TEST(control_that_waited)
{
	struct sim *m;

	world_begin();
	subscribe(1, 1, 100, FW_HOUR_MS);
	(void)by_sql("INSERT INTO control (command) VALUES ('stop')");
	(void)by_sql("INSERT INTO control (command) VALUES ('reload')");
	m = begin(0, false);
	pass(5 * FW_SECOND_MS);
	ck_assert(!m->ended && !atomic_load(&m->shared.reload_id));
	ck_assert_uint_eq(sent_n, 1);
	worker_drain(&m->w);
	pass(5 * FW_SECOND_MS);
	(void)by_sql("INSERT INTO control (command) VALUES ('pause')");
	store_thread_finish(&m->s);
	worker_finish(&m->w);
	m = begin(0, false);
	ck_assert(m->shared.paused);
	world_end();
}
END_TEST

/* The newest refusal. */
static bool reason_is(const char *reason)
{
	sqlite3 *db;
	sqlite3_stmt *q;
	char name[300];
	bool is;

	(void)fw_snprintf(name, sizeof(name), "%s/feeds.db", path);
	ck_assert_int_eq(sqlite3_open(name, &db), SQLITE_OK);
	ck_assert_int_eq(
		sqlite3_prepare_v2(db, "SELECT reason FROM feeds_to_fetch_refused ORDER BY id DESC", -1, &q, NULL),
		SQLITE_OK);
	ck_assert_int_eq(sqlite3_step(q), SQLITE_ROW);
	is = strcmp((const char *)sqlite3_column_text(q, 0), reason) == 0;
	sqlite3_finalize(q);
	sqlite3_close(db);
	return is;
}

/* The rules of `feedwheel add`; each refusal names the column, what is wrong and the remedy. */
START_TEST(inbox_rows)
{
	static const struct {
		const char *row, *reason; /* NULL: it is subscribed */
	} ROW[] = {
		{"url) VALUES ('feed:h0.example/0#x')", NULL},
		{"url, folder, title, interval_ms) VALUES ('http://me:pw@h1.example/1', '/a/b/', ' T ', 7200000)",
			NULL},
		{"url) VALUES ('ftp://h.example/')", "url: 'ftp' is not http or https: only these are fetched"},
		{"url) VALUES ('no address')", "url: 'no address' is not a URL: write https://..."},
		{"url) VALUES ('http://')", "url: the URL has no host"},
		{"url) VALUES ('  ')", "url: missing: put an address, such as https://example.org/feed.xml"},
		{"url, folder) VALUES ('http://h.example/', printf('%0201d', 1))",
			"folder: longer than 200 bytes, or with control characters, or not UTF-8: put a shorter text"},
		{"url, title) VALUES ('http://h.example/', char(10))", NULL},
		{"url, title) VALUES ('http://i.example/', 'a' || char(10) || 'b')",
			"title: longer than 200 bytes, or with control characters, or not UTF-8: put a shorter text"},
	};
	struct fw_buf sql = FW_BUF_INIT(0);
	int64_t refused = 0;

	world_begin();
	subscribe(1, 1, 100, FW_HOUR_MS);
	begin(0, false);
	sims[0].shared.paused = true;
	for (size_t i = 0; i < FW_N(ROW); i++) {
		sql.len = 0;
		fw_buf_addf(&sql, "INSERT INTO feeds_to_fetch (%s", ROW[i].row);
		(void)by_sql(sql.p);
		pass(FW_SECOND_MS);
		refused += ROW[i].reason != NULL;
		ck_assert_int_eq(by_sql("SELECT count(*) FROM feeds_to_fetch_refused"), refused);
		if (!ROW[i].reason)
			continue;
		ck_assert_msg(reason_is(ROW[i].reason), "row %zu: not %s", i, ROW[i].reason);
	}
	ck_assert_int_eq(by_sql("SELECT count(*) FROM feeds_to_fetch"), 0);
	ck_assert_int_eq(by_sql("SELECT count(*) FROM feeds WHERE url = 'https://h0.example/0'"), 1);
	ck_assert_int_eq(by_sql("SELECT count(*) FROM feeds WHERE url = 'http://h1.example/1' AND folder = 'a/b' AND"
				" user_title = 'T' AND interval_ms = 7200000 AND username = 'me' AND password = 'pw'"),
		1);
	fw_buf_finish(&sql);
	world_end();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit engine worker");
	TCase *t = tcase_create("worker");

	tcase_set_timeout(t, 120);
	tcase_add_test(t, two_hours);
	tcase_add_test(t, once);
	tcase_add_test(t, once_together);
	tcase_add_test(t, redirects);
	tcase_add_test(t, killed_and_frozen);
	tcase_add_test(t, store_away);
	tcase_add_test(t, paused_and_urgent);
	tcase_add_test(t, control_pauses_a_running_worker);
	tcase_add_test(t, control_reload_is_no_resume);
	tcase_add_test(t, worker_asks_rarely_when_idle);
	tcase_add_test(t, inbox_starts_within_a_second);
	tcase_add_test(t, inbox_order_in_a_step);
	tcase_add_test(t, inbox_batches_are_short);
	tcase_add_test(t, inbox_many_messages);
	tcase_add_test(t, inbox_is_left_alone);
	tcase_add_test(t, inbox_of_a_run_once);
	tcase_add_test(t, inbox_rows);
	tcase_add_test(t, control_of_one_worker);
	tcase_add_test(t, control_of_a_dead_worker);
	tcase_add_test(t, control_stop_of_a_dead_worker);
	tcase_add_test(t, control_that_waited);
	suite_add_tcase(s, t);
	return run_suite(s);
}
