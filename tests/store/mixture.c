/* SPDX-License-Identifier: ISC */
/*
 * Everything that happens on the wheel in any order, on every driver, against a model that is a table: what is due, who has what, and what
 * each host may be asked. By number a claim must lend exactly what the model would; by time what it may. LIM-06, invariants 1 and 6.
 */
#include <stdlib.h>

#include "common.h"
#include "store/host.h"

#define HOSTS 3
#define CROWD 12 /* feeds of each */
#define LONE 12
#define FEEDS (HOSTS * CROWD + LONE)
#define OPS 400
#define WORKERS 3

struct known {
	int64_t id, due_ms, expect_us, fence;
	int host, worker; /* -1: none */
	bool paused, gone;
};

static struct {
	struct fw_store *st[2]; /* the same one, if others see what one does */
	struct known feed[FEEDS];
	struct fw_budget host[HOSTS];
	struct fw_lease lease[FEEDS];
	int64_t now, host_id[HOSTS];
	uint64_t seed;
	struct fw_arena a;
} m;

static const char *const workers[WORKERS] = {"one", "two", "three"};

static uint32_t chance(uint32_t n)
{
	m.seed = m.seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(m.seed >> 33) % n;
}

static struct fw_store *any(void)
{
	return m.st[chance(2)];
}

static struct known *known(int64_t id)
{
	for (size_t i = 0; i < FEEDS; i++) {
		if (m.feed[i].id == id)
			return &m.feed[i];
	}
	return NULL;
}

static bool waits(const struct known *k)
{
	return !k->gone && !k->paused && k->worker < 0 && k->due_ms <= m.now;
}

static bool quick(const struct known *k, const struct fw_claim_ask *ask)
{
	return !ask->expect_max_us || k->expect_us <= ask->expect_max_us;
}

static bool may(const struct known *k, const struct fw_claim_ask *ask)
{
	return k->host < 0 || fw_budget_may(&m.host[k->host], ask, fw_budget_holder(ask->worker), m.now);
}

/* The model lends it, and what the store says of it is true. */
static void lent(struct known *k, const struct fw_lease *l, const struct fw_claim_ask *ask, int worker)
{
	struct fw_budget *b = k->host < 0 ? NULL : &m.host[k->host];

	ck_assert_msg(waits(k) && quick(k, ask) && may(k, ask), "feed %lld of host %d: due %lld, worker %d, now %lld", (long long)k->id, k->host,
		(long long)k->due_ms, k->worker, (long long)m.now);
	ck_assert_int_eq(l->feed.due_at_ms, k->due_ms);
	ck_assert_int_eq(l->feed.expect_us, k->expect_us);
	ck_assert_int_eq(l->host_gap_ms, b ? fw_budget_gap(b, ask) : ask->host_gap_ms);
	ck_assert_int_eq(l->host_expect_us, b ? b->expect_us : 0);
	ck_assert_int_eq(l->host_id, b ? m.host_id[k->host] : 0);
	ck_assert_int_gt(l->fence, k->fence);
	if (b)
		fw_budget_lend(b, ask, fw_budget_holder(ask->worker), m.now);
	k->fence = l->fence;
	k->worker = worker;
	m.lease[k - m.feed] = *l;
}

static struct fw_claim_ask ask_of(int worker)
{
	return (struct fw_claim_ask){.worker = workers[worker], .now_ms = m.now, .lease_ms = INT64_C(1000000000), .max = 1 + chance(12),
		.host_max = 2, .host_ahead = chance(3) ? 0 : 3, .host_gap_ms = chance(3) ? 0 : 300, .expect_max_us = chance(4) ? 0 : 1000000};
}

static void claim(void)
{
	int worker = (int)chance(WORKERS);
	struct fw_claim_ask ask = ask_of(worker);
	struct fw_lease l[12];
	struct fw_claim_got got;
	struct fw_err err = {0};

	OK(fw_store_claim(any(), &ask, &m.a, l, &got, &err));
	ck_assert_uint_le(got.n, ask.max);
	for (size_t i = 0; i < got.n; i++) {
		ck_assert(i == 0 || l[i].feed.due_at_ms >= l[i - 1].feed.due_at_ms);
		lent(known(l[i].feed.id), &l[i], &ask, worker);
	}
}

/* Some of what is due, and some that is not; one may come twice. */
static void claim_ids(void)
{
	int worker = (int)chance(WORKERS);
	struct fw_claim_ask ask = ask_of(worker);
	struct fw_lease l[12];
	struct fw_claim_got got;
	struct fw_err err = {0};
	size_t n = 0, deferred = 0;
	int64_t id[20];

	ask.ids = id;
	ask.id_n = 1 + chance(FW_N(id));
	for (size_t i = 0; i < ask.id_n; i++)
		id[i] = m.feed[chance(FEEDS)].id;
	OK(fw_store_claim(any(), &ask, &m.a, l, &got, &err));
	for (size_t i = 0; i < ask.id_n && n < ask.max; i++) {
		struct known *k = known(id[i]);
		bool before = false; /* kept back already, further ahead in the list */

		for (size_t j = 0; j < i; j++)
			before |= id[j] == id[i];
		if (!waits(k) || !quick(k, &ask))
			continue;
		if (!may(k, &ask)) {
			deferred += !before;
			continue;
		}
		ck_assert_msg(n < got.n && l[n].feed.id == id[i], "number %lld was not lent in its turn", (long long)id[i]);
		lent(k, &l[n++], &ask, worker);
	}
	ck_assert_uint_eq(got.n, n);
	if (n < ask.max)
		ck_assert(got.deferred_n >= deferred && got.deferred_n <= ask.id_n);
}

struct list {
	size_t n;
	bool seen[FEEDS];
};

static int listed(void *ctx, const struct fw_due_row *row)
{
	struct list *q = ctx;
	struct known *k = known(row->feed_id);

	ck_assert_msg(k && waits(k) && !q->seen[k - m.feed], "feed %lld is listed", (long long)row->feed_id);
	ck_assert_int_eq(row->due_at_ms, k->due_ms);
	ck_assert_int_eq(row->expect_us, k->expect_us);
	if (k->host >= 0) {
		m.host_id[k->host] = m.host_id[k->host] ? m.host_id[k->host] : row->host_id;
		ck_assert_int_eq(row->host_id, m.host_id[k->host]);
	} else {
		ck_assert_int_eq(row->host_id, 0);
	}
	q->seen[k - m.feed] = true;
	q->n++;
	return 0;
}

static void list(struct fw_store *st)
{
	struct list q = {.n = 0};
	struct fw_err err = {0};
	size_t n = 0;

	OK(fw_store_due_list(st, m.now, 0, listed, &q, &err));
	for (size_t i = 0; i < FEEDS; i++)
		n += waits(&m.feed[i]);
	ck_assert_uint_eq(q.n, n);
}

/* Some that are lent: how many, and which. */
static size_t pick(struct known **out, size_t max)
{
	size_t n = 0, from = chance(FEEDS);

	for (size_t i = 0; i < FEEDS && n < max; i++) {
		struct known *k = &m.feed[(from + i) % FEEDS];

		if (k->worker >= 0 && !k->gone)
			out[n++] = k;
	}
	return n;
}

static void commit(void)
{
	struct fw_outcome o[6];
	struct fw_feed f[6];
	struct known *k[6];
	struct fw_commit c = {.now_ms = m.now, .outcome = o, .n = pick(k, 1 + chance(6))};
	struct fw_err err = {0};

	for (size_t i = 0; i < c.n; i++) {
		o[i] = outcome_of(&m.lease[k[i] - m.feed], &f[i], m.now);
		o[i].host_mood = chance(6) ? FW_HOST_FINE : chance(2) ? FW_HOST_STRAINED : FW_HOST_UNKNOWN;
		o[i].host_cooldown_ms = k[i]->host >= 0 && !chance(10) ? m.now + chance(2000) : 0;
		o[i].visit.total_us = chance(5) ? chance(4000000) : 0;
		f[i].expect_us = chance(5) ? 1 + chance(2000000) : 0;
		f[i].due_at_ms = m.now + chance(2500);
	}
	OK(fw_store_commit(any(), &c, &err));
	for (size_t i = 0; i < c.n; i++) {
		ck_assert_int_eq(o[i].rc, 0);
		if (k[i]->host >= 0)
			fw_budget_return(&m.host[k[i]->host], &o[i]);
		k[i]->worker = -1;
		k[i]->due_ms = f[i].due_at_ms;
		k[i]->expect_us = f[i].expect_us;
	}
}

static void returned(struct known *k)
{
	if (k->host >= 0)
		fw_budget_return(&m.host[k->host], NULL);
	k->worker = -1;
}

static void release(void)
{
	struct known *k[6];
	size_t n = pick(k, 1 + chance(6));
	struct fw_err err = {0};

	for (size_t i = 0; i < n; i++) {
		OK(fw_store_release(any(), &m.lease[k[i] - m.feed], 1, &err));
		returned(k[i]);
	}
}

static void bury(void)
{
	int worker = (int)chance(WORKERS);
	struct fw_err err = {0};

	OK(fw_store_bury(any(), workers[worker], 0, m.now, &err));
	for (size_t i = 0; i < FEEDS; i++) {
		if (m.feed[i].worker == worker)
			returned(&m.feed[i]);
	}
}

static void owner(void)
{
	struct known *k = &m.feed[chance(FEEDS)];
	struct fw_err err = {0};

	if (k->gone)
		return;
	k->paused = !k->paused;
	OK(fw_store_feed_set(any(), &(struct fw_feed){.id = k->id, .status = k->paused ? FW_FEED_PAUSED : FW_FEED_ACTIVE}, FW_SET_STATUS, &err));
}

/* Of one host: its last feeds stay. */
static void merge(void)
{
	struct known *from = &m.feed[chance(FEEDS)], *into = &m.feed[chance(FEEDS)];
	struct fw_err err = {0};
	size_t left = 0;
	int rc;

	for (size_t i = 0; i < FEEDS; i++)
		left += m.feed[i].host == from->host && !m.feed[i].gone;
	if (!m.st[0]->driver->feed_merge || from == into || left <= CROWD / 2)
		return;
	rc = fw_store_feed_merge(any(), from->id, into->id, &err);
	if (from->gone || into->gone) {
		ck_assert(rc == FW_ENOTFOUND || (rc == FW_EAGAIN && (from->worker >= 0 || into->worker >= 0)));
	} else if (from->worker >= 0 || into->worker >= 0) {
		IS(rc, FW_EAGAIN);
	} else {
		IS(rc, 0);
		from->gone = true;
	}
}

static void setup(void)
{
	fw_arena_init(&m.a, 0);
}

static void teardown(void)
{
	fw_arena_finish(&m.a);
}

static void populate(void)
{
	for (int i = 0; i < FEEDS; i++) {
		struct known *k = &m.feed[i];
		char url[60];

		*k = (struct known){.host = i < HOSTS * CROWD ? i % HOSTS : -1, .worker = -1, .due_ms = NOW - 5000 + chance(5000)};
		ck_assert(fw_snprintf(url, sizeof(url), k->host < 0 ? "https://lone%d.example/%d" : "https://crowd%d.example/%d", k->host < 0 ? i :
			k->host, i));
		k->id = subscribe(m.st[0], url, k->due_ms);
	}
}

static void round_do(int driver, uint64_t seed)
{
	size_t active = 0;
	char name[20];
	char *url;

	ck_assert(fw_snprintf(name, sizeof(name), "mixture%llu", (unsigned long long)seed));
	url = scratch_url(driver, name);
	m.st[0] = m.st[1] = store_open(url, FW_STORE_CREATE);
	if (!m.st[0]->driver->due_list) {
		fw_store_close(m.st[0]);
		return;
	}
	if (under_test[driver].shared)
		m.st[1] = store_open(url, 0);
	m.seed = seed;
	m.now = NOW;
	memset(m.host, 0, sizeof(m.host));
	memset(m.host_id, 0, sizeof(m.host_id));
	populate();
	list(m.st[0]);
	for (int i = 0; i < OPS; i++) {
		static void (*const ops[])(void) = {claim, claim, claim_ids, claim_ids, claim_ids, commit, commit, commit, release};

		m.now += chance(400);
		if (chance(20))
			ops[chance(FW_N(ops))]();
		else
			(chance(3) == 0 ? bury : chance(2) ? owner : merge)();
		if (i % 10 == 0)
			list(any());
		if (i % 20 == 0)
			check_clean(m.st[0]);
	}
	for (int i = 0; i < WORKERS; i++)
		bury();
	for (size_t i = 0; i < FEEDS; i++) {
		struct fw_err err = {0};

		if (m.feed[i].worker >= 0)
			OK(fw_store_release(m.st[0], &m.lease[i], 1, &err));
		m.feed[i].worker = -1;
		active += !m.feed[i].gone && !m.feed[i].paused;
	}
	for (size_t got = 1; got; active -= got) { /* nobody was forgotten, however slow its host */
		struct fw_claim_ask ask = {.worker = "last", .now_ms = m.now += 10000000, .lease_ms = INT64_C(1000000000000), .max = FEEDS};
		struct fw_claim_got last;
		struct fw_lease l[FEEDS];
		struct fw_err err = {0};

		OK(fw_store_claim(m.st[0], &ask, &m.a, l, &last, &err));
		got = last.n;
		for (size_t i = 0; i < got; i++)
			lent(known(l[i].feed.id), &l[i], &ask, 0);
	}
	ck_assert_uint_eq(active, 0);
	check_clean(m.st[0]);
	if (m.st[1] != m.st[0])
		fw_store_close(m.st[1]);
	fw_store_close(m.st[0]);
}

START_TEST(any_order)
{
	uint64_t rounds = getenv("FW_LONG") ? 20 : 1;

	for (uint64_t i = 1; i <= rounds; i++)
		round_do(_i, i);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("store, any order");
	TCase *t = tcase_create("any order");

	stores_begin();
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, getenv("FW_LONG") ? 600 : 60);
	tcase_add_loop_test(t, any_order, 0, under_test_n);
	suite_add_tcase(s, t);
	return run_suite(s);
}
