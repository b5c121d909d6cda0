/* SPDX-License-Identifier: ISC */
/*
 * The schedule by shards (src/store/sql/schedule.h) on each SQL engine: what a lease promises, step by step; and by processes that join, leave,
 * are frozen beyond their lease and killed, while somebody else asks for feeds.
 */
#include <check.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "common.h"
#include "store/sql/schedule.h"

#define LONG_MS 600000
#define FEEDS 2000
#define WORKERS 5
#ifdef __SANITIZE_ADDRESS__
#define LEASE_MS 1000
#define TROUBLES 12
#else
#define LEASE_MS 300
#define TROUBLES 30
#endif

static int engines[5], engine_n; /* of under_test: those with a dialect */

static struct fw_err err;

static char where[500]; /* the store of this case */
static bool is_file;

static struct sql *opened(void)
{
	struct fw_err e = {0};
	struct sql *s = NULL;
	int rc = FW_EUNSUP;

	if (is_file)
		rc = sql_open_sqlite(where, &s, &e);
#if FW_HAVE_POSTGRES
	else
		rc = sql_open_postgres(where, &s, &e);
#endif
	ck_assert_msg(rc == 0, "%s", e.text);
	return s;
}

static struct sql *fresh_schedule(int i)
{
	static int n;
	char name[60], make[100];
	struct sql *s;

	ck_assert(fw_snprintf(name, sizeof(name), "s%d_%d", (int)getpid(), n++));
	is_file = strcmp(under_test[engines[i]].name, "sqlite") == 0;
	if (is_file) {
		ck_assert(fw_snprintf(where, sizeof(where), "%s/%s.db", scratch(), name));
		s = opened();
	} else {
		const char *url = scratch_url(engines[i], name), *host = strstr(url, "host=");

		ck_assert_ptr_nonnull(host);
		ck_assert(fw_snprintf(where, sizeof(where), "host=%.*s user=feedwheel dbname=postgres options='-csearch_path=%s'", (int)strcspn(host + 5, "&"),
			host + 5, name));
		s = opened();
		ck_assert(fw_snprintf(make, sizeof(make), "CREATE SCHEMA %s", name));
		ck_assert_msg(s->is->script(s, make, &err) == 0, "%s", err.text);
	}
	ck_assert_msg(schedule_create(s, &err) == 0, "%s", err.text);
	return s;
}

#define DONE(call) do { \
	int rc_ = (call); \
	ck_assert_msg(rc_ == 0, "%s: %d %s", #call, rc_, err.text); \
} while (0)

static struct schedule_lease joined(struct sql *s, const char *who, int64_t lease_ms)
{
	struct schedule_lease l;

	DONE(schedule_join(s, who, lease_ms, &l, &err));
	return l;
}

static size_t held(struct sql *s, const struct schedule_lease *l, struct schedule_shard *out)
{
	size_t n;

	DONE(schedule_mine(s, l, out, &n, &err));
	return n;
}

static void add(struct sql *s, int shard, int64_t feed_id, int64_t due_at_ms)
{
	struct schedule_due d = {.feed_id = feed_id, .due_at_ms = due_at_ms, .host_id = feed_id};

	DONE(schedule_add(s, &shard, &d, 1, &err));
}

struct seen {
	struct schedule_due due[FEEDS];
	size_t n;
};

static int see(void *ctx, const struct schedule_due *due)
{
	struct seen *seen = ctx;

	ck_assert_uint_lt(seen->n, FEEDS);
	seen->due[seen->n++] = *due;
	return 0;
}

static int64_t due_of(struct sql *s, int shard, int64_t feed_id)
{
	struct seen seen = {.n = 0};

	DONE(schedule_look(s, shard, INT64_MAX, see, &seen, &err));
	for (size_t i = 0; i < seen.n; i++) {
		if (seen.due[i].feed_id == feed_id)
			return seen.due[i].due_at_ms;
	}
	return FW_NO_TIME;
}

static struct schedule_outcome outcome(int shard, int64_t feed_id, int64_t was, int64_t due)
{
	return (struct schedule_outcome){.shard = shard, .was_due_ms = was, .state = {.feed_id = feed_id, .due_at_ms = due, .last_visit_ms = 1, .kind = 3, .http_status = 304,
		.why = FW_STR("learned \"4 h\"\\, {no array}")}};
}

/* ---- step by step ------------------------------------------------------------------------------------------------------------------------ */

START_TEST(parts)
{
	struct sql *s = fresh_schedule(_i);
	struct schedule_shard *mine = calloc(SCHEDULE_SHARDS, sizeof(*mine));
	struct schedule_lease a = joined(s, "a", LONG_MS), b = joined(s, "b", LONG_MS), c;
	struct schedule_shard give[SCHEDULE_SHARDS];
	size_t n;

	ck_assert_uint_eq(held(s, &a, mine), SCHEDULE_SHARDS); /* who comes first has all, */
	ck_assert_uint_eq(held(s, &b, mine), 0);
	DONE(schedule_beat(s, &a, &err));
	ck_assert_uint_eq(a.living, 2);
	n = held(s, &a, mine);
	for (size_t i = schedule_part(&a); i < n; i++)
		give[i - schedule_part(&a)] = (struct schedule_shard){.shard = mine[i].shard, .quiet_since_ms = mine[i].shard == SCHEDULE_SHARDS - 1 ? 77 : 0};
	DONE(schedule_give(s, &a, give, n - schedule_part(&a), &err)); /* gives the surplus back, */
	DONE(schedule_beat(s, &b, &err));
	ck_assert_uint_eq(held(s, &b, mine), SCHEDULE_SHARDS / 2); /* and the other takes it */
	for (size_t i = 0; i < SCHEDULE_SHARDS / 2; i++)
		ck_assert(mine[i].shard == (int)i + SCHEDULE_SHARDS / 2 && mine[i].quiet_since_ms == (i == SCHEDULE_SHARDS / 2 - 1 ? 77 : 0));
	DONE(schedule_give(s, &a, give, 1, &err)); /* what is not one's own is not given away */
	ck_assert_uint_eq(held(s, &b, mine), SCHEDULE_SHARDS / 2);
	DONE(schedule_leave(s, &a, &err));
	c = joined(s, "c", LONG_MS);
	ck_assert_uint_gt(c.id, b.id);
	ck_assert_uint_eq(held(s, &c, mine), SCHEDULE_SHARDS / 2);
	ck_assert_int_eq(schedule_beat(s, &a, &err), FW_ESTALE);
	free(mine);
	sql_close(s);
}
END_TEST

START_TEST(a_lease_that_ran_out)
{
	struct sql *s = fresh_schedule(_i);
	struct schedule_shard *mine = calloc(SCHEDULE_SHARDS, sizeof(*mine));
	struct schedule_lease a = joined(s, "a", -1000), b; /* its joining took longer than the lease */
	struct schedule_outcome out = outcome(7, 70, 5, 6);

	add(s, 7, 70, 5);
	ck_assert_uint_eq(held(s, &a, mine), SCHEDULE_SHARDS); /* it does not take itself for dead, and shards for nobody's */
	DONE(schedule_beat(s, &a, &err));
	ck_assert_uint_eq(held(s, &a, mine), SCHEDULE_SHARDS);
	DONE(schedule_commit(s, &a, &out, 1, NULL, 0, &err)); /* over, but nobody has taken it: it holds */
	ck_assert_int_eq(out.rc, 0);
	ck_assert_int_eq(due_of(s, 7, 70), 6);
	ck_assert_int_lt(a.safe_until_mono_ms, fw_mono_ms());
	b = joined(s, "b", LONG_MS);
	ck_assert_uint_eq(held(s, &b, mine), SCHEDULE_SHARDS);
	ck_assert_int_gt(mine[7].quiet_since_ms, 0);
	out = outcome(7, 70, 6, 9);
	ck_assert_int_eq(schedule_commit(s, &a, &out, 1, NULL, 0, &err), FW_ESTALE);
	ck_assert_int_eq(schedule_beat(s, &a, &err), FW_ESTALE);
	ck_assert_int_eq(due_of(s, 7, 70), 6);
	free(mine);
	sql_close(s);
}
END_TEST

START_TEST(changes_from_outside)
{
	struct sql *s = fresh_schedule(_i);
	struct schedule_shard *mine = calloc(SCHEDULE_SHARDS, sizeof(*mine));
	struct schedule_lease a = joined(s, "a", LONG_MS);
	struct schedule_outcome out[2];
	int64_t version;

	add(s, 3, 1, 100);
	add(s, 3, 2, 200);
	held(s, &a, mine);
	version = mine[3].version;
	DONE(schedule_ask_for(s, 3, 1, 1, &err));
	held(s, &a, mine);
	ck_assert_int_gt(mine[3].version, version); /* the owner sees that there is something to see, */
	ck_assert_int_eq(mine[4].version, 0);       /* and where not */
	DONE(schedule_remove(s, 3, 2, &err));
	ck_assert_int_eq(schedule_remove(s, 3, 2, &err), FW_ENOTFOUND);
	ck_assert_int_eq(schedule_ask_for(s, 4, 1, 1, &err), FW_ENOTFOUND);
	out[0] = outcome(3, 1, 100, 5000); /* both were in flight meanwhile */
	out[1] = outcome(3, 2, 200, 5000);
	DONE(schedule_commit(s, &a, out, 2, NULL, 0, &err));
	ck_assert_int_eq(out[0].rc, 0);
	ck_assert_int_eq(out[1].rc, FW_ENOTFOUND);
	ck_assert_int_eq(due_of(s, 3, 1), 1); /* what a person asked for stands */
	ck_assert_int_eq(due_of(s, 3, 2), FW_NO_TIME);
	free(mine);
	sql_close(s);
}
END_TEST

static int one_host(void *ctx, const struct schedule_host *host)
{
	struct schedule_host *out = ctx;

	*out = *host;
	return 7; /* what a callback returns ends the answer, and comes back */
}

START_TEST(hosts_outlive_their_owner)
{
	struct sql *s = fresh_schedule(_i);
	struct schedule_lease a = joined(s, "a", LONG_MS);
	struct schedule_host h = {.id = 44, .shard = 9, .next_ok_ms = 10, .cool_until_ms = 20, .pace_ms = 30}, got = {0};

	DONE(schedule_commit(s, &a, NULL, 0, &h, 1, &err));
	h.pace_ms = 60;
	DONE(schedule_commit(s, &a, NULL, 0, &h, 1, &err));
	ck_assert_int_eq(schedule_hosts(s, 9, one_host, &got, &err), 7);
	ck_assert(got.id == 44 && got.shard == 9 && got.next_ok_ms == 10 && got.cool_until_ms == 20 && got.pace_ms == 60);
	DONE(schedule_hosts(s, 8, one_host, &got, &err));
	sql_close(s);
}
END_TEST

START_TEST(nothing_or_all)
{
	struct sql *s = fresh_schedule(_i);
	struct schedule_due d[2] = {{.feed_id = 1, .due_at_ms = 5}, {.feed_id = 1, .due_at_ms = 6}}; /* one number twice */
	const int shard[2] = {2, 2};

	ck_assert_int_eq(schedule_add(s, shard, d, 2, &err), FW_EIO);
	ck_assert_int_eq(due_of(s, 2, 1), FW_NO_TIME);
	DONE(schedule_add(s, shard, d, 1, &err)); /* and the connection goes on */
	ck_assert_int_eq(due_of(s, 2, 1), 5);
	sql_close(s);
}
END_TEST

/* ---- at random ---------------------------------------------------------------------------------------------------------------------------- */

static struct book {
	_Atomic int64_t owner[SCHEDULE_SHARDS], safe_until[SCHEDULE_SHARDS]; /* as the last owner said; 0: given back */
	_Atomic int64_t visits[FEEDS]; /* committed */
	_Atomic int64_t joins, stale, kills;
	_Atomic int stop, violations;
	char words[200];
} *book;

static void violation(const char *what, int64_t a, int64_t b, int64_t c)
{
	if (atomic_fetch_add(&book->violations, 1) == 0)
		(void)fw_snprintf(book->words, sizeof(book->words), "%s: %lld, %lld, %lld", what, (long long)a, (long long)b, (long long)c);
}

static int shard_of(int64_t feed)
{
	return (int)(fw_hash64(&feed, sizeof(feed)) % SCHEDULE_SHARDS);
}

static void must(int rc, const struct fw_err *e, const char *what)
{
	if (rc) {
		fprintf(stderr, "# worker: %s: %d %s\n", what, rc, e->text);
		_exit(9);
	}
}

static _Atomic int leaving;

static void on_term(int number)
{
	(void)number;
	leaving = 1;
}

struct worker {
	struct sql *s;
	struct schedule_lease l;
	struct schedule_shard mine[SCHEDULE_SHARDS];
	size_t n, turn;
	int64_t beat_mono_ms;
	uint64_t dice;
};

static uint64_t roll(struct worker *w)
{
	return w->dice = fw_hash64(&w->dice, sizeof(w->dice)) + 1;
}

static bool safe(const struct worker *w)
{
	return fw_mono_ms() < w->l.safe_until_mono_ms;
}

/* Into the book: what is mine, and how long. */
static void note(struct worker *w)
{
	for (size_t i = 0; i < w->n; i++) {
		int k = w->mine[i].shard;
		int64_t before = atomic_load(&book->owner[k]), until = atomic_load(&book->safe_until[k]);

		if (before != w->l.id && until > fw_mono_ms() && safe(w))
			violation("two owners at once: shard, leases", k, before, w->l.id);
		if (!safe(w)) /* perhaps stopped here: what stands in the book may be the next one's */
			return;
		atomic_store(&book->owner[k], w->l.id);
		atomic_store(&book->safe_until[k], w->l.safe_until_mono_ms);
	}
}

/* Rejoin, beat or go on. The surplus goes back. */
static void live(struct worker *w)
{
	struct fw_err e = {0};
	struct schedule_shard give[SCHEDULE_SHARDS];
	int rc = 0;
	size_t n = 0;

	if (w->l.id && fw_mono_ms() - w->beat_mono_ms < LEASE_MS / 4)
		return;
	w->beat_mono_ms = fw_mono_ms();
	if (w->l.id)
		rc = schedule_beat(w->s, &w->l, &e);
	if (rc == FW_EAGAIN)
		return;
	if (!w->l.id || rc == FW_ESTALE) {
		atomic_fetch_add(&book->joins, 1);
		atomic_fetch_add(&book->stale, rc == FW_ESTALE);
		rc = schedule_join(w->s, "w", LEASE_MS, &w->l, &e);
		if (rc == FW_EAGAIN) {
			w->l.id = 0;
			return;
		}
	}
	must(rc, &e, "beat");
	must(schedule_mine(w->s, &w->l, w->mine, &w->n, &e), &e, "mine");
	note(w);
	while (w->n > schedule_part(&w->l)) {
		give[n] = (struct schedule_shard){.shard = w->mine[--w->n].shard};
		if (safe(w) && atomic_load(&book->owner[give[n].shard]) == w->l.id)
			atomic_store(&book->safe_until[give[n].shard], 0);
		n++;
	}
	rc = schedule_give(w->s, &w->l, give, n, &e);
	if (rc != FW_EAGAIN)
		must(rc, &e, "give");
}

static int pick(void *ctx, const struct schedule_due *due)
{
	struct seen *seen = ctx;

	if (seen->n < 20)
		seen->due[seen->n++] = *due;
	return 0;
}

static void visit(struct worker *w)
{
	struct schedule_outcome out[20];
	struct seen seen = {.n = 0};
	struct fw_err e = {0};
	int rc, k;

	if (!w->n)
		return;
	k = w->mine[w->turn++ % w->n].shard;
	must(schedule_look(w->s, k, 0, pick, &seen, &e), &e, "look"); /* those a person asked for, */
	if (!seen.n)
		must(schedule_look(w->s, k, INT64_MAX, pick, &seen, &e), &e, "look"); /* else any */
	if (atomic_load(&book->owner[k]) != w->l.id && safe(w))
		violation("a request beside the owner's: shard, lease, owner", k, w->l.id, book->owner[k]);
	for (size_t i = 0; i < seen.n; i++) /* each commit moves the due time by one: so visits can be counted; below 0 back to where they were */
		out[i] = outcome(k, seen.due[i].feed_id, seen.due[i].due_at_ms, seen.due[i].due_at_ms < 0 ? -seen.due[i].due_at_ms + 1 : seen.due[i].due_at_ms + 1);
	if (roll(w) % 50 == 0)
		usleep((useconds_t)(roll(w) % (LEASE_MS * 1200))); /* now and then longer than the lease */
	rc = schedule_commit(w->s, &w->l, out, seen.n, NULL, 0, &e);
	if (rc == FW_ESTALE || rc == FW_EAGAIN) {
		w->beat_mono_ms = 0;
		return;
	}
	must(rc, &e, "commit");
	for (size_t i = 0; i < seen.n; i++) {
		if (out[i].rc == 0)
			atomic_fetch_add(&book->visits[out[i].state.feed_id], 1);
	}
}

static pid_t worker_start(void)
{
	static int n;
	pid_t pid;

	n++;
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		struct worker *w = calloc(1, sizeof(*w));
		struct fw_err e = {0};

		if (!w)
			_exit(9);
		signal(SIGTERM, on_term);
		w->dice = (uint64_t)n;
		w->s = opened();
		while (!leaving) {
			live(w);
			visit(w);
			usleep(2000); /* others want the processors too */
		}
		for (size_t i = 0; w->l.id && i < w->n; i++) {
			if (safe(w) && atomic_load(&book->owner[w->mine[i].shard]) == w->l.id)
				atomic_store(&book->safe_until[w->mine[i].shard], 0);
		}
		if (w->l.id && schedule_leave(w->s, &w->l, &e) != FW_EAGAIN)
			must(e.rc, &e, "leave");
		sql_close(w->s);
		free(w);
		_exit(0);
	}
	return pid;
}

static void ended(pid_t pid, int signal_wanted)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(signal_wanted ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0, "a worker ended with status %x", (unsigned)status);
}

static int64_t visits_least(void)
{
	int64_t least = INT64_MAX;

	for (int i = 0; i < FEEDS; i++)
		least = FW_MIN(least, atomic_load(&book->visits[i]));
	return least;
}

START_TEST(workers_come_and_go)
{
	struct sql *s = fresh_schedule(_i);
	struct schedule_due *d = calloc(FEEDS, sizeof(*d));
	int *shard = calloc(FEEDS, sizeof(*shard)), asked = 0;
	pid_t pid[WORKERS];
	uint64_t dice = 1;
	struct seen *seen = calloc(1, sizeof(*seen));

	book = mmap(NULL, sizeof(*book), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(book, MAP_FAILED);
	for (int i = 0; i < FEEDS; i++) {
		d[i] = (struct schedule_due){.feed_id = i, .due_at_ms = 1, .host_id = i};
		shard[i] = shard_of(i);
	}
	DONE(schedule_add(s, shard, d, FEEDS, &err));
	for (int i = 0; i < WORKERS; i++)
		pid[i] = worker_start();
	for (int t = 0; t < TROUBLES; t++) {
		dice = fw_hash64(&dice, sizeof(dice)) + 1;
		int who = (int)(dice % WORKERS), what = (int)(dice / WORKERS % 3);

		usleep(LEASE_MS * 200);
		if (what == 0) {
			kill(pid[who], SIGKILL);
			ended(pid[who], SIGKILL);
			atomic_fetch_add(&book->kills, 1);
			pid[who] = worker_start();
		} else if (what == 1) {
			kill(pid[who], SIGSTOP);
			usleep((useconds_t)(LEASE_MS * 1000 * (1 + dice / 100 % 2)));
			kill(pid[who], SIGCONT);
		} else {
			kill(pid[who], SIGTERM);
			ended(pid[who], 0);
			pid[who] = worker_start();
		}
	}
	while (visits_least() < 2) /* nobody is forgotten, whatever happened to who had it */
		usleep(10000);
	for (int i = 0; i < WORKERS; i++)
		kill(pid[i], SIGTERM);
	for (int i = 0; i < WORKERS; i++)
		ended(pid[i], 0);
	ck_assert_msg(book->violations == 0, "%d violations, the first: %s", book->violations, book->words);
	for (int k = 0; k < SCHEDULE_SHARDS; k++)
		DONE(schedule_look(s, k, INT64_MAX, see, seen, &err));
	ck_assert_uint_eq(seen->n, FEEDS);
	for (size_t i = 0; i < FEEDS; i++) { /* killed between the commit and the book: that many may be missing there, never the other way round */
		int64_t more = seen->due[i].due_at_ms - 1 - book->visits[seen->due[i].feed_id];

		ck_assert_msg(more >= 0, "feed %lld: %lld visits were promised that are not there", (long long)seen->due[i].feed_id, (long long)-more);
		asked += (int)more;
	}
	ck_assert_int_le(asked, 20 * (int)book->kills);
	printf("# %s: %lld leases, %lld lost, %lld kills, %d commits not heard of\n", under_test[engines[_i]].name, (long long)book->joins, (long long)book->stale,
		(long long)book->kills, asked);
	munmap(book, sizeof(*book));
	free(seen);
	free(d);
	free(shard);
	sql_close(s);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("schedule");
	TCase *c = tcase_create("schedule");

	stores_begin();
	for (int i = 0; i < under_test_n; i++) {
		if (strcmp(under_test[i].name, "sqlite") == 0 || strcmp(under_test[i].name, "postgres") == 0)
			engines[engine_n++] = i;
	}
	tcase_set_timeout(c, 300);
	tcase_add_loop_test(c, parts, 0, engine_n);
	tcase_add_loop_test(c, a_lease_that_ran_out, 0, engine_n);
	tcase_add_loop_test(c, changes_from_outside, 0, engine_n);
	tcase_add_loop_test(c, hosts_outlive_their_owner, 0, engine_n);
	tcase_add_loop_test(c, nothing_or_all, 0, engine_n);
	tcase_add_loop_test(c, workers_come_and_go, 0, engine_n);
	suite_add_tcase(suite, c);
	return run_suite(suite);
}
