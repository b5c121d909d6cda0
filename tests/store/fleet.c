/* SPDX-License-Identifier: ISC */
/*
 * Five workers on one store, each a process that owns shards as in the engine (engine/owner.h).
 * They are killed, frozen for less and for more than their lease, told to leave and started again.
 * Meanwhile other clients request polls, pause, add, remove and push. On each driver that several
 * processes can use:
 *
 * - no due time of a feed is committed twice;
 * - each feed is visited, whatever happens to the workers that owned it;
 * - each entry of each stored document is there, once;
 * - over all workers no two requests to a host are closer than the gap, and none is sent in a pause
 *   that the host asked for, once that pause is stored.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "drv.h"
#include "engine/run/owner.h"

enum {
	WORKERS = 5,
	HOSTS = 60,
	FEEDS = 240,
	FEEDS_MAX = 1000,
	SLOTS = 24,
	BATCH = 64,
	WINDOW = 3,
	GAP_MS = 200,
	STEP_MS = 500, /* of the entries' keys */
	SENDS = 4000,
	PAUSES = 500,
	LEASE_MS = SLOW_BUILD ? 2000 : 500,
	TROUBLES = SLOW_BUILD ? 10 : 32,
};

struct sending {
	int64_t mono_ms, lease_id, feed_id;
};

/* no request is sent from .. until */
struct pause {
	int host;
	int64_t from_ms, until_ms;
};

struct book {
	_Atomic int send_n[HOSTS], pause_n, lost, broken, commits;
	_Atomic bool was_frozen[WORKERS];
	_Atomic int pid[WORKERS];
	_Atomic int64_t thaw_ms[WORKERS]; /* frozen until then; 0: not frozen */
	struct sending send[HOSTS][SENDS];
	struct pause pause[PAUSES];
};

static struct book *book;

static int64_t host_id[HOSTS];

static void url_of(char *out, size_t cap, int n)
{
	ck_assert(fw_snprintf(out, cap, "https://host-%d.example/%d", n % HOSTS, n));
}

static int host_at(int64_t id)
{
	for (int i = 0; i < HOSTS; i++) {
		if (host_id[i] == id)
			return i;
	}
	return -1;
}

/* The document at that time: some entries, most of which the one before had too. */
static void document(struct fw_entry_row *e, int64_t at_ms)
{
	for (int i = 0; i < WINDOW; i++)
		e[i] = entry((int)(at_ms / STEP_MS % 1000000) + i, 1, "t", "text");
}

/* ---- a worker -------------------------------------------------------------------------------- */

struct flight {
	struct claim *claim;
	int64_t send_ms, end_ms;
	bool sent;
};

struct worker {
	int me, driver;
	const char *url;
	struct store *st;
	struct owner *o;
	struct flight flight[SLOTS + OWNER_URGENT_EXTRA];
	size_t flight_n;
	struct claim *claim[BATCH];
	struct fw_outcome outcome[BATCH];
	struct fw_feed state[BATCH];
	struct fw_entry_row entry[BATCH][WINDOW];
	struct pause pause[BATCH];
	size_t n;
	int64_t batch_ms;
	uint64_t dice;
};

static volatile sig_atomic_t told_to_leave;

static void on_term(int number)
{
	(void)number;
	told_to_leave = 1;
}

static uint64_t roll(uint64_t *dice, uint64_t n)
{
	*dice = fw_hash64(dice, sizeof(*dice)) + 1;
	return *dice % n;
}

static int64_t mono(void *ctx)
{
	(void)ctx;
	return fw_mono_ms();
}

static void must(int rc, const struct fw_err *e, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "# worker: %s: %d %s\n", what, rc, e->text);
	_exit(9);
}

static void opens(struct worker *w)
{
	struct fw_store_config c = {.url = w->url, .async_commit = true};
	struct fw_err e = {0};
	int rc;

	while ((rc = drv_driver(w->driver)->open(&c, &w->st, &e)) == FW_EAGAIN)
		usleep(3000);
	must(rc, &e, "open");
}

/*
 * After a conflict: the same call again, later. After a broken connection (a server ends those of
 * clients frozen in a transaction): the same call on a new one.
 */
static bool again(struct worker *w, int rc, const struct fw_err *e, const char *what)
{
	if (rc == FW_EIO) {
		owner_set_store(w->o, NULL);
		w->st->driver->close(w->st);
		opens(w);
		owner_set_store(w->o, w->st);
		atomic_fetch_add(&book->broken, 1);
	} else if (rc != FW_EAGAIN) {
		must(rc, e, what);
	}
	return rc != 0;
}

static void completes(struct worker *w, size_t i, enum fw_host_health health, int64_t cooldown_until_ms)
{
	struct claim *c = w->flight[i].claim;

	fw_hosts_done(owner_hosts_lock(w->o), &c->item, health, cooldown_until_ms, owner_now(w->o));
	owner_hosts_unlock(w->o);
	claim_move(c, CLAIM_ENDED);
	w->flight[i] = w->flight[--w->flight_n];
}

static void cancels(struct worker *w, size_t i)
{
	struct claim *c = w->flight[i].claim;

	completes(w, i, FW_HOST_UNKNOWN, 0);
	owner_release(w->o, c);
}

/* Reads the time that counts as the request's: a real request would leave right after it. */
static void sends(struct worker *w, size_t i)
{
	struct claim *c = w->flight[i].claim;
	int64_t now_ms = fw_mono_ms();
	int host = host_at(c->host_id), at;
	struct fw_hosts *t = owner_hosts_lock(w->o);
	bool may = fw_hosts_may_send(t, &c->item, now_ms);

	if (may)
		fw_hosts_sent(t, &c->item, now_ms);
	owner_hosts_unlock(w->o);
	if (!may) {
		cancels(w, i);
		return;
	}
	at = atomic_fetch_add(&book->send_n[host], 1);
	if (at < SENDS)
		book->send[host][at] = (struct sending){now_ms, c->lease_id, c->feed.id};
	w->flight[i].sent = true;
}

static void ends(struct worker *w, size_t i)
{
	struct claim *c = w->flight[i].claim;
	struct fw_hosts_now now = owner_now(w->o);
	bool pauses = roll(&w->dice, 60) == 0;
	int64_t pause_ms = 300 + (int64_t)roll(&w->dice, 400);
	size_t n = w->n++;

	w->pause[n] = (struct pause){pauses ? host_at(c->host_id) : -1, 0, now.mono_ms + pause_ms};
	completes(w, i, FW_HOST_HEALTHY, pauses ? now.wall_ms + pause_ms : 0);
	owner_receive(w->o, c);
	w->state[n] = c->feed;
	w->state[n].last_visit_ms = w->state[n].last_ok_ms = now.wall_ms;
	w->state[n].last_kind = FW_VISIT_OK;
	w->state[n].due_at_ms = now.wall_ms + 700 + (int64_t)roll(&w->dice, 1000);
	document(w->entry[n], now.wall_ms);
	w->outcome[n] = (struct fw_outcome){.feed = &w->state[n],
		.entries = w->entry[n],
		.entry_n = WINDOW,
		.visit = {.at_ms = now.wall_ms, .kind = FW_VISIT_OK, .run_id = c->lease_id, .queue_us = c->was_due_ms}};
	w->claim[n] = c;
	w->batch_ms = n ? w->batch_ms : now.mono_ms;
}

static void commits(struct worker *w)
{
	struct fw_err e = {0};
	int rc;

	if (!w->n || (w->n < BATCH / 2 && fw_mono_ms() - w->batch_ms < 30))
		return;
	rc = owner_commit(w->o, w->outcome, w->claim, w->n, &e);
	if (rc != FW_ESTALE && again(w, rc, &e, "commit"))
		return;
	atomic_fetch_add(&book->commits, rc == 0);
	/*
	 * a clock that is read while the process is frozen is wrong by that long: its pauses do not
	 * count
	 */
	for (size_t i = 0; !rc && i < w->n && !atomic_load(&book->was_frozen[w->me]); i++) {
		int at = w->pause[i].host < 0 ? PAUSES : atomic_fetch_add(&book->pause_n, 1);

		w->pause[i].from_ms = fw_mono_ms();
		if (at < PAUSES)
			book->pause[at] = w->pause[i];
	}
	for (size_t i = 0; i < w->n; i++)
		owner_claim_free(w->o, w->claim[i]);
	w->n = 0;
}

static void starts(struct worker *w)
{
	struct fw_hosts *t = owner_hosts_lock(w->o);
	struct fw_hosts_item *item;
	int64_t next_ms, now_ms = fw_mono_ms();

	while (w->flight_n + w->n < BATCH && (item = fw_hosts_first(t, now_ms, &next_ms)) != NULL) {
		struct flight *f = &w->flight[w->flight_n];

		if (w->flight_n >= SLOTS + (item->urgent ? (size_t)OWNER_URGENT_EXTRA : 0))
			break;
		if (fw_hosts_start(t, now_ms, &next_ms) != item)
			_exit(8);
		claim_move(claim_of(item), CLAIM_FETCHING);
		*f = (struct flight){.claim = claim_of(item), .send_ms = now_ms + (int64_t)roll(&w->dice, 6)};
		f->end_ms = f->send_ms + (int64_t)roll(&w->dice, 20);
		w->flight_n++;
	}
	owner_hosts_unlock(w->o);
}

static void lives(struct worker *w)
{
	struct fw_err e = {0};
	int64_t next_ms;
	size_t n;

	for (size_t i = w->flight_n; i > 0; i--) {
		struct flight *f = &w->flight[i - 1];

		if (owner_is_lost(w->o) || fw_mono_ms() >= owner_safe_until_ms(w->o))
			cancels(w, i - 1);
		else if (!f->sent && fw_mono_ms() >= f->send_ms)
			sends(w, i - 1);
		else if (f->sent && fw_mono_ms() >= f->end_ms)
			ends(w, i - 1);
	}
	commits(w);
	if (told_to_leave == 1) {
		owner_leave(w->o);
		told_to_leave = 2;
	}
	if (again(w, owner_step(w->o, true, &next_ms, &e), &e, "step") || owner_has_left(w->o))
		return;
	(void)again(w, owner_claim(w->o, SLOTS, &n, &e), &e, "take");
	starts(w);
}

static void worker_runs(int driver, const char *url, int me, int number)
{
	static const struct owner_rules RULES = {.lease_ms = LEASE_MS,
		.slots = SLOTS,
		.host_concurrency = 1,
		.host_gap_ms = GAP_MS,
		.due_max = 10000,
		.backlog_ms = FW_HOUR_MS};
	struct worker *w = calloc(1, sizeof(*w));
	struct owner_rules rules = RULES;
	bool lost = false;
	char name[40];

	if (!w || !fw_snprintf(name, sizeof(name), "worker-%d-%d", me, (int)getpid()))
		_exit(9);
	rules.worker = name;
	w->me = me;
	w->dice = (uint64_t)number;
	w->driver = driver;
	w->url = url;
	opens(w);
	w->o = owner_create(&rules, w->st, mono, NULL);
	if (!w->o)
		_exit(9);
	while (!owner_has_left(w->o)) {
		lives(w);
		if (owner_is_lost(w->o) && !lost)
			atomic_fetch_add(&book->lost, 1);
		lost = owner_is_lost(w->o);
		usleep(3000);
	}
	owner_destroy(w->o);
	w->st->driver->close(w->st);
	free(w);
	_exit(0);
}

/* ---- faults ---------------------------------------------------------------------------------- */

struct crew {
	int driver;
	const char *url;
	struct store *st;
	pid_t thawer;
	int64_t feed[FEEDS_MAX]; /* 0: removed */
	bool paused[FEEDS_MAX];
	int feed_n;
	int64_t asked; /* due times that no other step uses */
	uint64_t dice;
};

/* Starts a child with SIGTERM blocked: until it has its own handler, Check's would end the test. */
static pid_t child(sigset_t *was)
{
	sigset_t term;
	pid_t pid;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, was);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid)
		sigprocmask(SIG_SETMASK, was, NULL);
	return pid;
}

static void worker_start(struct crew *c, int me)
{
	static int number;
	sigset_t was;
	pid_t pid;

	number++;
	atomic_store(&book->was_frozen[me], false);
	pid = child(&was);
	if (pid == 0) {
		signal(SIGTERM, on_term);
		sigprocmask(SIG_SETMASK, &was, NULL);
		worker_runs(c->driver, c->url, me, number);
	}
	atomic_store(&book->pid[me], pid);
}

static void thaw(int me)
{
	if (atomic_exchange(&book->thaw_ms[me], 0))
		kill(book->pid[me], SIGCONT);
}

static void worker_ended(int me, bool killed)
{
	int status;

	ck_assert_int_eq(waitpid(book->pid[me], &status, 0), book->pid[me]);
	ck_assert_msg(killed ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0,
		"a worker ended with status %x", (unsigned)status);
}

/*
 * A separate process thaws the workers: this one may be waiting for a lock that a frozen worker
 * holds.
 */
static void thawer_start(struct crew *c)
{
	pid_t test = getpid();
	sigset_t was;

	c->thawer = child(&was);
	if (c->thawer)
		return;
	signal(SIGTERM, SIG_DFL);
	sigprocmask(SIG_SETMASK, &was, NULL);
	while (getppid() == test) {
		for (int i = 0; i < WORKERS; i++) {
			int64_t until_ms = book->thaw_ms[i];

			if (until_ms && fw_mono_ms() >= until_ms)
				thaw(i);
		}
		usleep(5000);
	}
	_exit(0);
}

static void thawer_end(struct crew *c)
{
	int status;

	kill(c->thawer, SIGTERM);
	ck_assert_int_eq(waitpid(c->thawer, &status, 0), c->thawer);
	for (int i = 0; i < WORKERS; i++)
		thaw(i);
}

static void trouble(struct crew *c)
{
	int me = (int)roll(&c->dice, WORKERS);
	char name[40];

	switch (roll(&c->dice, 4)) {
	case 0:
	case 1: /* for less than its lease, or for more: then others take its shards */
		atomic_store(&book->was_frozen[me], true);
		kill(book->pid[me], SIGSTOP);
		book->thaw_ms[me] = fw_mono_ms() + LEASE_MS / 4 + (int64_t)roll(&c->dice, LEASE_MS * 2);
		return;
	case 2:
		atomic_store(&book->thaw_ms[me], 0);
		kill(book->pid[me], SIGKILL);
		worker_ended(me, true);
		if (roll(&c->dice, 2)) { /* its master has noticed */
			ck_assert(fw_snprintf(name, sizeof(name), "worker-%d-%d", me, book->pid[me]));
			drv_reap(c->st, name, 0);
		}
		break;
	default:
		thaw(me);
		kill(book->pid[me], SIGTERM);
		worker_ended(me, false);
	}
	worker_start(c, me);
}

/* ---- other clients --------------------------------------------------------------------------- */

static int try(struct store *st, int rc)
{
	(void)st;
	ck_assert_msg(rc == 0 || rc == FW_EAGAIN, "%d %s", rc, drv_err.text);
	return rc;
}

static void asks(struct crew *c)
{
	int i = (int)roll(&c->dice, (uint64_t)c->feed_n);
	struct fw_feed f = {.id = c->feed[i]};
	struct fw_entry_row e[WINDOW];
	struct fw_outcome o;
	int64_t at_ms;

	if (!f.id)
		return;
	switch (roll(&c->dice, 8)) {
	case 0:
		c->paused[i] = !c->paused[i];
		f.status = c->paused[i] ? FW_FEED_PAUSED : FW_FEED_ACTIVE;
		if (try(c->st, c->st->driver->feed_set(c->st, &f, FW_SET_STATUS, &drv_err)))
			c->paused[i] = !c->paused[i];
		break;
	case 1:
		if (c->feed_n < FEEDS_MAX && roll(&c->dice, 3) == 0) {
			char url[60];

			url_of(url, sizeof(url), c->feed_n);
			c->feed[c->feed_n++] = drv_feed(c->st, url, c->asked++);
		} else if (roll(&c->dice, 3) == 0 && !try(c->st, c->st->driver->feed_drop(c->st, f.id, 0, &drv_err))) {
			c->feed[i] = 0;
		}
		break;
	case 2:
	case 3:
		at_ms = drv_clock(c->st);
		document(e, at_ms);
		o = drv_push(f.id, &f, e, WINDOW);
		o.visit.at_ms = at_ms;
		if (!try(c->st, drv_commit(c->st, 0, &o, 1)))
			ck_assert_int_eq(o.rc, 0);
		break;
	default:
		f.due_at_ms = roll(&c->dice, 3) ? c->asked++ : FW_DUE_FIRST;
		try(c->st, c->st->driver->feed_set(c->st, &f, FW_SET_DUE, &drv_err));
	}
}

static void lasts(struct crew *c, int64_t ms)
{
	int64_t end_ms = fw_mono_ms() + ms;

	while (fw_mono_ms() < end_ms) {
		asks(c);
		usleep(20000);
	}
}

/* ---- the result ------------------------------------------------------------------------------ */

struct visit {
	int64_t feed_id, due_ms, at_ms, lease_id;
};

struct visits {
	struct visit *row;
	size_t n, cap;
};

static int visit_row(void *ctx, const struct fw_visit *v)
{
	struct visits *all = ctx;

	if (all->n == all->cap) {
		all->cap = all->cap ? 2 * all->cap : 4096;
		all->row = realloc(all->row, all->cap * sizeof(*all->row));
		ck_assert_ptr_nonnull(all->row);
	}
	all->row[all->n++] = (struct visit){v->feed_id, v->kind == FW_VISIT_OK ? v->queue_us : 0, v->at_ms, v->run_id};
	return 0;
}

static int by_due(const void *a, const void *b)
{
	const struct visit *x = a, *y = b;

	if (x->feed_id != y->feed_id)
		return x->feed_id < y->feed_id ? -1 : 1;
	return x->due_ms < y->due_ms ? -1 : x->due_ms > y->due_ms;
}

static void visits_read(struct store *st, struct visits *all)
{
	all->n = 0;
	DONE(st->driver->visit_list(st, &(struct fw_visit_query){0}, visit_row, all, &drv_err));
	if (all->n)
		qsort(all->row, all->n, sizeof(*all->row), by_due);
}

/* Each feed that neither its user nor its server stops. */
static bool all_visited(const struct crew *c, const struct visits *all, int at_least)
{
	for (int i = 0; i < c->feed_n; i++) {
		int n = 0;

		for (size_t k = 0; k < all->n && c->feed[i]; k++)
			n += all->row[k].feed_id == c->feed[i] && all->row[k].due_ms;
		if (c->feed[i] && !c->paused[i] && n < at_least)
			return false;
	}
	return true;
}

static void dues_once(const struct visits *all)
{
	for (size_t i = 1; i < all->n; i++) {
		const struct visit *a = &all->row[i - 1], *b = &all->row[i];

		/* polls that users requested share one due time */
		ck_assert_msg(by_due(a, b) != 0 || b->due_ms <= FW_DUE_FIRST,
			"feed %lld: due at %lld, visited by leases %lld and %lld", (long long)a->feed_id,
			(long long)a->due_ms, (long long)a->lease_id, (long long)b->lease_id);
	}
}

struct keys {
	const struct visits *all;
	int64_t feed_id, n, more;
	int64_t key[4096];
};

static int key_row(void *ctx, const struct fw_entry_row *e)
{
	struct keys *k = ctx;
	int key;

	memcpy(&key, e->key, sizeof(key));
	ck_assert_int_lt(k->n, FW_N(k->key));
	for (int64_t i = 0; i < k->n; i++)
		ck_assert_msg(k->key[i] != key, "feed %lld: entry %d is there twice", (long long)k->feed_id, key);
	k->key[k->n++] = key;
	return 0;
}

/* The entries of all stored documents are there, and no others. */
static void entries_once(const struct crew *c, const struct visits *all)
{
	static struct keys k;

	for (int i = 0; i < c->feed_n; i++) {
		struct fw_entry_query q = {.feed_id = c->feed[i], .key = true};
		bool wanted[FW_N(k.key)] = {false};

		if (!c->feed[i])
			continue;
		k.n = 0;
		k.feed_id = c->feed[i];
		DONE(fw_store_entry_list((struct fw_store *)c->st, &q, key_row, &k, &drv_err));
		for (size_t v = 0; v < all->n; v++) {
			for (int w = 0; w < WINDOW && all->row[v].feed_id == k.feed_id; w++) {
				int64_t key = all->row[v].at_ms / STEP_MS % 1000000 + w, at = 0;

				while (at < k.n && k.key[at] != key)
					at++;
				ck_assert_msg(at < k.n, "feed %lld: entry %lld is lost", (long long)k.feed_id,
					(long long)key);
				wanted[at] = true;
			}
		}
		for (int64_t at = 0; at < k.n; at++)
			ck_assert_msg(wanted[at], "feed %lld: entry %lld came by no visit", (long long)k.feed_id,
				(long long)k.key[at]);
	}
}

static int by_time(const void *a, const void *b)
{
	const struct sending *x = a, *y = b;

	return x->mono_ms < y->mono_ms ? -1 : x->mono_ms > y->mono_ms;
}

/* Millisecond clocks, each read once: two workers' can differ by two. */
#define SLACK_MS 2

static int gaps_kept(void)
{
	int sent = 0;

	for (int h = 0; h < HOSTS; h++) {
		struct sending *s = book->send[h];
		int n = FW_MIN(book->send_n[h], SENDS);

		sent += n;
		qsort(s, (size_t)n, sizeof(*s), by_time);
		for (int i = 1; i < n; i++)
			ck_assert_msg(s[i].mono_ms - s[i - 1].mono_ms >= GAP_MS - SLACK_MS,
				"host %d: feed %lld by lease %lld, and after %lld ms feed %lld by lease %lld", h,
				(long long)s[i - 1].feed_id, (long long)s[i - 1].lease_id,
				(long long)(s[i].mono_ms - s[i - 1].mono_ms), (long long)s[i].feed_id,
				(long long)s[i].lease_id);
	}
	return sent;
}

static void pauses_kept(void)
{
	for (int p = 0; p < FW_MIN(book->pause_n, (int)PAUSES); p++) {
		const struct pause *is = &book->pause[p];
		const struct sending *s = book->send[is->host];

		for (int i = 0; i < FW_MIN(book->send_n[is->host], SENDS); i++)
			ck_assert_msg(s[i].mono_ms < is->from_ms || s[i].mono_ms >= is->until_ms - SLACK_MS,
				"host %d: feed %lld by lease %lld, %lld ms before its pause ended", is->host,
				(long long)s[i].feed_id, (long long)s[i].lease_id,
				(long long)(is->until_ms - s[i].mono_ms));
	}
}

static void feeds_make(struct crew *c)
{
	for (int i = 0; i < HOSTS; i++) {
		char name[60];

		ck_assert(fw_snprintf(name, sizeof(name), "host-%d.example", i));
		host_id[i] = store_host_id(fw_str(name));
	}
	for (; c->feed_n < FEEDS; c->feed_n++) {
		char url[60];

		url_of(url, sizeof(url), c->feed_n);
		c->feed[c->feed_n] = drv_feed(c->st, url, c->asked++);
	}
}

START_TEST(owners_come_and_go)
{
	struct visits all = {0};
	struct store_lease *l;
	struct crew *c;
	int64_t end_ms;
	int sent;

	if (!under_test[_i].shared)
		return;
	c = calloc(1, sizeof(*c));
	ck_assert_ptr_nonnull(c);
	fw_log_level_set(FW_LOG_ERROR);
	book = mmap(NULL, sizeof(*book), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert(book != MAP_FAILED);
	c->driver = _i;
	c->url = drv_url(_i);
	c->asked = 1000;
	c->dice = getenv("FW_SEED") ? strtoull(getenv("FW_SEED"), NULL, 10) : 1;
	c->st = drv_open(_i, c->url, FW_STORE_CREATE);
	feeds_make(c);
	for (int i = 0; i < WORKERS; i++)
		worker_start(c, i);
	thawer_start(c);
	lasts(c, 1000);
	for (int i = 0; i < TROUBLES; i++) {
		trouble(c);
		lasts(c, LEASE_MS / 4 + (int64_t)roll(&c->dice, LEASE_MS / 2));
	}
	thawer_end(c);
	end_ms = fw_mono_ms() + 60 * FW_SECOND_MS;
	do { /* no feed is forgotten */
		ck_assert_int_lt(fw_mono_ms(), end_ms);
		usleep(200000);
		visits_read(c->st, &all);
	} while (!all_visited(c, &all, 2));
	for (int i = 0; i < WORKERS; i++)
		kill(book->pid[i], SIGTERM);
	for (int i = 0; i < WORKERS; i++)
		worker_ended(i, false);
	visits_read(c->st, &all);
	dues_once(&all);
	entries_once(c, &all);
	sent = gaps_kept();
	pauses_kept();
	printf("# %s: %zu visits of %d requests, %d commits, %d leases lost, %d connections, %d pauses\n",
		under_test[_i].name, all.n, sent, book->commits, book->lost, book->broken, book->pause_n);
	l = drv_join(c->st, "last", LONG_MS);
	ck_assert_uint_eq(l->shard_n, STORE_SHARDS); /* all workers have left */
	ck_assert_uint_eq(l->living, 1);
	drv_leave(c->st, l);
	drv_end(c->st);
	free(all.row);
	free(c);
	munmap(book, sizeof(*book));
}
END_TEST

int main(void)
{
	TCase *t = cases("every driver", NULL, NULL, 300);
	const TTest *const every[] = {owners_come_and_go};

	stores_begin();
	cases_add(t, every, FW_N(every), under_test_n);
	return cases_run("store fleet", t);
}
