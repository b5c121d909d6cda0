/* SPDX-License-Identifier: ISC */
/*
 * Several processes on one store: what has to hold whoever runs and whoever dies, with exact accounting. For every driver whose
 * stores are shared between processes. FW_STORE_KILLS sets how many workers are killed (40, under ASan 15; the long run takes 200).
 *
 * The accounts lie in memory that all processes share: who holds which feed, how many entries its "origin" has published, how
 * many of them a commit that returned has acknowledged.
 */
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

#define FEEDS 300
#define CROWDED 100 /* of these: on two hosts */
#define WORKERS 6
#define LEFT_LAST (1 + CROWDED / 2) /* the last feed of the left one */
#define HOST_MAX 3
#define AHEAD 2     /* and as many more for one worker */
#define KEYS 40     /* an origin publishes no more */
#define LEASE_MS 400
#ifdef __SANITIZE_ADDRESS__ /* what they look for shows in fewer rounds; the plain suite has them all */
#define CREATIONS 10
#define KILLS 15
#define STOPS 4
#else
#define CREATIONS 40
#define KILLS 40
#define STOPS 10
#endif

struct account {
	_Atomic int64_t fence, until_ms; /* who holds it; 0: nobody */
	_Atomic int published, acknowledged;
};

struct book {
	struct account feed[FEEDS + 1];
	_Atomic int64_t commits, stale, released, abandoned, claims, lent, pushed;
	_Atomic int violations, go, stop;
	char first_violation[200];
};

static struct book *book;
static char url[300];
static int troubles; /* so far */

static void book_open(int driver)
{
	static int n;
	char name[40];

	book = mmap(NULL, sizeof(*book), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(book, MAP_FAILED);
	ck_assert(fw_snprintf(name, sizeof(name), "p%d_%d", (int)getpid(), n++));
	ck_assert(fw_snprintf(url, sizeof(url), "%s", scratch_url(driver, name)));
}

static void violation(const char *what, int64_t feed, int64_t a, int64_t b)
{
	if (atomic_fetch_add(&book->violations, 1) == 0)
		(void)fw_snprintf(book->first_violation, sizeof(book->first_violation), "%s: feed %lld, %lld, %lld", what,
			(long long)feed, (long long)a, (long long)b);
}

/* In a child there is no Check: say it, and leave with a code the parent looks at. */
static void must(int rc, const struct fw_err *err, const char *what)
{
	if (rc == 0)
		return;
	fprintf(stderr, "# worker: %s: %d %s\n", what, rc, err->text);
	_exit(9);
}

/* Workers that were in the way, again and again on a busy machine: the same is tried again, as store.h has it. */
#define PATIENT(call, what) do { \
	int rc_, tries_ = 0; \
	do \
		rc_ = (call); \
	while (rc_ == FW_EAGAIN && ++tries_ < 100); \
	must(rc_, &err, what); \
} while (0)

static pid_t child(void (*fn)(int), int arg)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		fn(arg);
		_exit(0);
	}
	return pid;
}

static void all_well(const pid_t *pid, int n)
{
	for (int i = 0; i < n; i++) {
		int status;

		ck_assert_int_eq(waitpid(pid[i], &status, 0), pid[i]);
		ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "process %d ended with status %x", i, (unsigned)status);
	}
}

/* ---- opening ------------------------------------------------------------------------------------------------------------- */

static void opener(int i)
{
	struct fw_store_config c = {.url = url, .flags = FW_STORE_CREATE};
	struct fw_feed_new n = {0};
	struct fw_store *st;
	struct fw_err err;
	char feed[60];

	while (!atomic_load(&book->go))
		;
	must(fw_store_open(&c, &st, &err), &err, "open");
	(void)fw_snprintf(feed, sizeof(feed), "https://h%d.example/", i);
	n.url = fw_str(feed);
	must(fw_store_subscribe(st, &n, 1, &err), &err, "subscribe");
	fw_store_close(st);
}

START_TEST(ten_processes_open_a_fresh_store) /* REL-15 */
{
	struct fw_store *st;
	pid_t pid[10];

	for (int round = 0; round < 5; round++) {
		book_open(_i);
		for (int i = 0; i < 10; i++)
			pid[i] = child(opener, i);
		atomic_store(&book->go, 1);
		all_well(pid, 10);
		st = store_open(url, 0);
		ck_assert_int_eq(stats(st, NOW).feed_n, 10);
		check_clean(st);
		fw_store_close(st);
	}
}
END_TEST

START_TEST(creation_is_killed) /* REL-15: nothing or all of the schema */
{
	for (int round = 0; round < CREATIONS; round++) {
		struct fw_store *st;
		int status;
		pid_t pid;

		book_open(_i);
		pid = child(opener, 1);
		atomic_store(&book->go, 1);
		usleep((useconds_t)(round * (10000 / CREATIONS)));
		kill(pid, SIGKILL);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		st = store_open(url, FW_STORE_CREATE);
		ck_assert_int_le(stats(st, NOW).feed_n, 1);
		check_clean(st);
		fw_store_close(st);
		munmap(book, sizeof(*book));
	}
}
END_TEST

/* ---- the wheel with workers that come and go ----------------------------------------------------------------------------- */

static uint64_t dice;

static uint64_t roll(void)
{
	dice = fw_hash64(&dice, sizeof(dice)) + 1;
	return dice;
}

/*
 * now_ms is read after the claim has returned: while it waited for the store, another process with a later clock may have found
 * the lease over and put the feed back. Who was stopped on the way here until its lease was over finds the next one's notes, and that
 * is no violation.
 */
static void note_loan(const struct fw_lease *l, int64_t now_ms)
{
	struct account *a = &book->feed[l->feed.id];
	int64_t fence = atomic_load(&a->fence), until;

	while (fence < l->fence && !atomic_compare_exchange_weak(&a->fence, &fence, l->fence))
		;
	if (fence >= l->fence) {
		if (fw_now_ms() < l->until_ms)
			violation("a fence that does not rise", l->feed.id, fence, l->fence);
		return;
	}
	until = atomic_exchange(&a->until_ms, l->until_ms);
	if (fence && until > now_ms && fw_now_ms() < l->until_ms)
		violation("lent twice at once", l->feed.id, fence, l->fence);
}

/* The loan is about to end (before the store is told, or another process could be first), unless the feed was lent again. */
static void note_end(const struct fw_lease *l)
{
	int64_t mine = l->until_ms;

	if (atomic_load(&book->feed[l->feed.id].fence) == l->fence)
		atomic_compare_exchange_strong(&book->feed[l->feed.id].until_ms, &mine, 0);
}

#define BATCH 12

/* Visit what was lent: each origin publishes one more entry, and a document holds all of them. Due again within again_ms. Or, of kind
   FW_VISIT_PUSHED: somebody has brought that document. */
static void visit(struct fw_store *st, const struct fw_lease *l, size_t n, int64_t again_ms, enum fw_visit_kind kind)
{
	static struct fw_entry_row rows[BATCH][KEYS];
	struct fw_outcome o[BATCH];
	struct fw_feed f[BATCH];
	struct fw_err err;
	int64_t now = fw_now_ms();

	for (size_t i = 0; i < n; i++) {
		int published = atomic_fetch_add(&book->feed[l[i].feed.id].published, 1) + 1;

		if (published > KEYS) {
			atomic_store(&book->feed[l[i].feed.id].published, KEYS);
			published = KEYS;
		}
		o[i] = outcome_of(&l[i], &f[i], now);
		o[i].visit.kind = kind;
		f[i].due_at_ms = now + again_ms - (int64_t)(roll() % 20);
		for (int k = 0; k < published; k++)
			rows[i][k] = entry(k + 1, 1, "title", "content");
		o[i].entries = rows[i];
		o[i].entry_n = (size_t)published;
		note_end(&l[i]);
	}
	PATIENT(fw_store_commit(st, &(struct fw_commit){.outcome = o, .n = n}, &err), "commit");
	for (size_t i = 0; i < n; i++) {
		struct account *a = &book->feed[l[i].feed.id];
		int seen = atomic_load(&a->acknowledged);

		if (o[i].rc == FW_ESTALE) {
			atomic_fetch_add(&book->stale, 1);
			continue;
		}
		while (seen < (int)o[i].entry_n && !atomic_compare_exchange_weak(&a->acknowledged, &seen, (int)o[i].entry_n))
			;
		atomic_fetch_add(&book->commits, 1);
	}
}

/* Entries for some feed, whether it is due or not; none of the left host's, where all loans count for the budget. */
static void push(struct fw_store *st, const char *name, struct fw_arena *a)
{
	struct fw_lend_ask ask = {.feed_id = 1 + LEFT_LAST + (int64_t)(roll() % (FEEDS - LEFT_LAST)), .worker = name, .now_ms = fw_now_ms(), .lease_ms = LEASE_MS};
	struct fw_lend_got got;
	struct fw_lease l;
	struct fw_err err;

	PATIENT(fw_store_lend(st, &ask, a, &l, &got, &err), "lend");
	if (!got.fence)
		return;
	note_loan(&l, fw_now_ms());
	atomic_fetch_add(&book->lent, 1);
	atomic_fetch_add(&book->pushed, 1);
	visit(st, &l, 1, 20, FW_VISIT_PUSHED);
}

static void worker(int number)
{
	struct fw_store_config c = {.url = url, .busy_timeout_ms = 60000};
	struct fw_lease l[BATCH];
	struct fw_claim_got got;
	struct fw_store *st;
	struct fw_arena a;
	struct fw_err err;
	char name[60];

	dice = (uint64_t)number * 77 + (uint64_t)getpid();
	fw_arena_init(&a, 0);
	must(fw_store_open(&c, &st, &err), &err, "open");
	(void)fw_snprintf(name, sizeof(name), "test/%d/%d", (int)getpid(), number);
	while (!atomic_load(&book->stop)) {
		struct fw_claim_ask ask = {.worker = name, .now_ms = fw_now_ms(), .lease_ms = LEASE_MS, .max = 1 + roll() % BATCH,
			.host_max = HOST_MAX, .host_ahead = roll() % 2 ? AHEAD : 0};
		int64_t id[2 * BATCH];

		if (roll() % 3 == 0) { /* some by their numbers */
			for (size_t i = 0; i < FW_N(id); i++)
				id[i] = 1 + (int64_t)(roll() % FEEDS);
			ask.ids = id;
			ask.id_n = FW_N(id);
		}

		PATIENT(fw_store_claim(st, &ask, &a, l, &got, &err), "claim");
		atomic_fetch_add(&book->claims, 1);
		atomic_fetch_add(&book->lent, (int64_t)got.n);
		ask.now_ms = fw_now_ms();
		for (size_t i = 0; i < got.n; i++)
			note_loan(&l[i], ask.now_ms);
		if (roll() % 20 == 0) {
			for (size_t i = 0; i < got.n; i++)
				note_end(&l[i]);
			PATIENT(fw_store_release(st, l, got.n, &err), "release");
			atomic_fetch_add(&book->released, (int64_t)got.n);
		} else if (roll() % 60 == 0) {
			atomic_fetch_add(&book->abandoned, (int64_t)got.n); /* its leases will run out */
		} else if (got.n) {
			visit(st, l, got.n, 20, FW_VISIT_NOT_MODIFIED);
		}
		if (roll() % 8 == 0)
			push(st, name, &a);
		if (!got.n)
			usleep(2000);
		fw_arena_reset(&a, 1 << 16);
	}
	fw_arena_finish(&a);
	fw_store_close(st);
}

static void subscriptions(struct fw_store *st)
{
	subscribe_many(st, "https://crowd%d.example/", 0, 1, NOW); /* id 1 */
	subscribe_many(st, "https://left.example/%d", 0, CROWDED / 2, NOW);
	subscribe_many(st, "https://right.example/%d", 0, CROWDED / 2, NOW);
	subscribe_many(st, "https://h%d.example/", 0, FEEDS - CROWDED - 1, NOW);
}

static int sum_new(void *ctx, const struct fw_visit *v)
{
	*(int64_t *)ctx += v->new_n;
	return 0;
}

static int64_t new_in_visits(struct fw_store *st)
{
	struct fw_err err = {0};
	int64_t n = 0;

	OK(fw_store_visit_list(st, &(struct fw_visit_query){0}, sum_new, &n, &err));
	return n;
}

/* What each feed holds is what was acknowledged, and no more than was published; all together. */
static int64_t entries_agree(struct fw_store *st, bool final)
{
	int64_t total = 0;

	for (int64_t id = 1; id <= FEEDS; id++) {
		struct account *a = &book->feed[id];
		int64_t n = entry_count(st, id);

		ck_assert_msg(n >= a->acknowledged, "feed %lld: %d entries were acknowledged, %lld are there", (long long)id,
			a->acknowledged, (long long)n);
		ck_assert_msg(n <= a->published, "feed %lld: %d entries were published, %lld are there", (long long)id, a->published,
			(long long)n);
		if (final)
			ck_assert_int_eq(n, a->published);
		total += n;
	}
	return total;
}

/* Nobody works any more; but a server may still be busy with the last commit of a worker that was killed, so it is counted at rest. */
static void accounts_agree(struct fw_store *st, bool final)
{
	int64_t total, before, new_n;
	int tries = 0;

	do {
		before = new_in_visits(st);
		total = entries_agree(st, final);
		new_n = new_in_visits(st);
	} while (before != new_n && ++tries < 100);
	check_clean(st);
	ck_assert_int_eq(new_n, total); /* every entry was counted as new in exactly one stored visit */
	ck_assert_msg(book->violations == 0, "%d violations, the first: %s", book->violations, book->first_violation);
	if (final)
		printf("# %lld entries of %d feeds, none lost, none twice; no feed lent twice at once\n", (long long)total, FEEDS);
}

/* One worker's last round over everything: no feed was forgotten, and then every published entry is there. */
static void last_round(struct fw_store *st)
{
	struct fw_lease *l = calloc(BATCH, sizeof(*l));
	bool seen[FEEDS + 1] = {false};
	struct fw_arena a;
	int left = FEEDS;

	fw_arena_init(&a, 0);
	usleep((LEASE_MS + 50) * 1000);
	for (int64_t start = fw_mono_ms(); left && fw_mono_ms() - start < 60000;) {
		size_t n = claim_at(st, fw_now_ms() + 1000, BATCH, l, &a);

		for (size_t k = 0; k < n; k++) {
			left -= !seen[l[k].feed.id];
			seen[l[k].feed.id] = true;
		}
		if (n)
			visit(st, l, n, FW_HOUR_MS, FW_VISIT_NOT_MODIFIED);
		fw_arena_reset(&a, 1 << 16);
	}
	ck_assert_msg(left == 0, "%d feeds were never lent again", left);
	fw_arena_finish(&a);
	free(l);
}

static int count_lent(void *ctx, const struct fw_feed *f)
{
	int *n = ctx;

	n[0] += f->lease_until_ms && fw_str_starts(f->url, FW_STR("https://left."));
	n[1] += f->lease_until_ms && fw_str_starts(f->url, FW_STR("https://right."));
	return 0;
}

static void budget_holds(struct fw_store *st)
{
	struct fw_feed_query all = {.status = -1};
	struct fw_err err = {0};
	int n[2] = {0, 0};

	OK(fw_store_feed_list(st, &all, count_lent, n, &err));
	/* what is lent by number is in no budget: at the right host each worker may have one of these */
	ck_assert_msg(n[0] <= HOST_MAX + AHEAD && n[1] <= HOST_MAX + AHEAD + WORKERS, "%d and %d feeds lent of one host", n[0], n[1]);
}

START_TEST(workers_share_one_wheel) /* invariants 1, 2, 6 */
{
	struct fw_store *st;
	pid_t pid[WORKERS];

	book_open(_i);
	st = store_open(url, FW_STORE_CREATE);
	subscriptions(st);
	for (int i = 0; i < WORKERS; i++)
		pid[i] = child(worker, i);
	for (int64_t start = fw_mono_ms(); fw_mono_ms() - start < (book->commits > FEEDS ? 2500 : 60000);) {
		usleep(50000);
		check_clean(st); /* at any moment, not only at the end */
		budget_holds(st);
	}
	atomic_store(&book->stop, 1);
	all_well(pid, WORKERS);
	printf("# %s: %lld claims lent %lld feeds, %lld of them by number: %lld committed, %lld stale, %lld given back, %lld abandoned\n",
		under_test[_i].name, (long long)book->claims, (long long)book->lent, (long long)book->pushed,
		(long long)book->commits, (long long)book->stale, (long long)book->released, (long long)book->abandoned);
	ck_assert_int_gt(book->commits, FEEDS);
	ck_assert_int_gt(book->pushed, 0);
	accounts_agree(st, false);
	last_round(st);
	accounts_agree(st, true);
	fw_store_close(st);
}
END_TEST

/* Workers on one wheel, until `trouble` has come over them. The accounts are checked at the end; what was committed is printed. */
static void troubled(int driver, void (*trouble)(pid_t pid[WORKERS]), const char *what)
{
	struct fw_store *st;
	pid_t pid[WORKERS];

	book_open(driver);
	st = store_open(url, FW_STORE_CREATE);
	subscriptions(st);
	for (int i = 0; i < WORKERS; i++)
		pid[i] = child(worker, i);
	trouble(pid);
	atomic_store(&book->stop, 1);
	all_well(pid, WORKERS);
	printf("# %s: %d %s, %lld outcomes committed, %lld stale\n", under_test[driver].name, troubles, what, (long long)book->commits,
		(long long)book->stale);
	accounts_agree(st, false);
	last_round(st);
	accounts_agree(st, true);
	fw_store_close(st);
}

static void kill_them(pid_t pid[WORKERS])
{
	const char *wish = getenv("FW_STORE_KILLS");
	int64_t kills = KILLS;

	if (wish)
		ck_assert(fw_str_int(fw_str(wish), &kills));
	dice = 42;
	for (troubles = 0; troubles < kills; troubles++) {
		int victim = (int)(roll() % WORKERS), status;

		usleep(5000 + (useconds_t)(roll() % 40000));
		ck_assert_int_eq(kill(pid[victim], SIGKILL), 0);
		ck_assert_int_eq(waitpid(pid[victim], &status, 0), pid[victim]);
		ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "worker left by itself: status %x", (unsigned)status);
		pid[victim] = child(worker, victim);
	}
	usleep(300000);
}

START_TEST(workers_are_killed) /* REL-01, invariant 3 */
{
	troubled(_i, kill_them, "kills");
}
END_TEST

static void stop_them(pid_t pid[WORKERS])
{
	dice = 7;
	for (troubles = 0; troubles < STOPS; troubles++) {
		pid_t victim = pid[roll() % WORKERS];

		usleep((useconds_t)(roll() % 100000));
		ck_assert_int_eq(kill(victim, SIGSTOP), 0);
		usleep(LEASE_MS * 1000 + (useconds_t)(roll() % 400000));
		ck_assert_int_eq(kill(victim, SIGCONT), 0);
	}
}

START_TEST(workers_are_stopped) /* REL-05: for longer than their leases, wherever they are */
{
	troubled(_i, stop_them, "stops");
}
END_TEST

static void sleeper(int arg)
{
	struct fw_store *st = store_open(url, 0);
	struct fw_entry_row e = entry(99, 1, "from the dead", "x");
	struct fw_lease l[1];
	struct fw_feed f;
	struct fw_outcome o;
	struct fw_arena a;

	(void)arg;
	fw_arena_init(&a, 0);
	if (claim_at(st, NOW, 1, l, &a) != 1)
		_exit(8);
	raise(SIGSTOP);
	o = outcome_of(&l[0], &f, NOW);
	o.entries = &e;
	o.entry_n = 1;
	_exit(commit_one(st, &o, NOW) == FW_ESTALE ? 0 : 7);
}

START_TEST(worker_that_slept_too_long_writes_nothing) /* REL-05 */
{
	struct fw_lease l[1];
	struct fw_feed f;
	struct fw_outcome o;
	struct fw_store *st;
	struct fw_arena a;
	int64_t id;
	int status;
	pid_t pid;

	book_open(_i);
	fw_arena_init(&a, 0);
	st = store_open(url, FW_STORE_CREATE);
	id = subscribe(st, "https://a.example/", NOW);
	pid = child(sleeper, 0);
	ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
	ck_assert(WIFSTOPPED(status));
	ck_assert_uint_eq(claim_at(st, NOW + 60000, 1, l, &a), 1);
	o = outcome_of(&l[0], &f, NOW + 60000);
	ck_assert_int_eq(commit_one(st, &o, NOW + 60000), 0);
	ck_assert_int_eq(kill(pid, SIGCONT), 0);
	all_well(&pid, 1);
	ck_assert_int_eq(entry_count(st, id), 0);
	ck_assert_int_eq(stats(st, NOW).visit_n, 1);
	fw_arena_finish(&a);
	fw_store_close(st);
}
END_TEST

START_TEST(change_is_seen_by_others)
{
	struct fw_store *mine, *other;
	struct fw_err err = {0};
	bool changed;

	book_open(_i);
	mine = store_open(url, FW_STORE_CREATE);
	other = store_open(url, 0);
	OK(fw_store_wait(mine, -1, 0, &changed, &err));
	OK(fw_store_wait(mine, -1, 0, &changed, &err));
	ck_assert(!changed);
	subscribe(other, "https://a.example/", NOW);
	OK(fw_store_wait(mine, -1, 60000, &changed, &err));
	ck_assert(changed);
	OK(fw_store_wait(mine, -1, 0, &changed, &err));
	ck_assert(!changed);
	subscribe(mine, "https://b.example/", NOW); /* one's own does not count */
	OK(fw_store_wait(mine, -1, 0, &changed, &err));
	ck_assert(!changed);
	fw_store_close(mine);
	fw_store_close(other);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("store, several processes");
	TCase *t = tcase_create("shared drivers");
	const TTest *every[] = {ten_processes_open_a_fresh_store, creation_is_killed, workers_share_one_wheel, workers_are_killed,
		workers_are_stopped, worker_that_slept_too_long_writes_nothing, change_is_seen_by_others};

	stores_begin();
	tcase_set_timeout(t, 180);
	for (size_t i = 0; i < FW_N(every); i++) {
		for (int d = 0; d < under_test_n; d++) {
			if (under_test[d].shared)
				tcase_add_loop_test(t, every[i], d, d + 1);
		}
	}
	suite_add_tcase(s, t);
	return run_suite(s);
}
