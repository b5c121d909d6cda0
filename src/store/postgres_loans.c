/* SPDX-License-Identifier: ISC */
/*
 * Who holds what, and the budget of hosts.
 *
 * A row of `loans` is a claim, or 64 feeds of a larger one. Whoever ends a loan (a commit, a release, somebody who finds it run
 * out, an owner who unsubscribes) locks the row first; so what a row says stays true until the end of the transaction, and
 * nobody needs a lock on each feed.
 *
 * Budgets are kept in `hosts` for crowded hosts only, as in SQLite: a host with parked feeds has a turn in the queue or a loan that
 * will return, and who returns one gives the turn on.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "store/postgres.h"

#define TAKE_BACK 16 /* rows of loans at once */

/* ---- places in the queue ------------------------------------------------------------------------------------------------- */

/* By arrival within a slot, to 16 ms; after three days it begins anew, which costs order within a second and nothing else. */
int64_t pg_place_number(struct pg *p)
{
	return pg_now_ms(p) >> 4 & ((INT64_C(1) << PG_NUMBER_BITS) - 1);
}

static int64_t slot(int64_t wake_ms)
{
	return FW_MIN(FW_MAX(wake_ms, 0), INT64_C(100000000000000)) >> PG_SLOT_BITS << PG_NUMBER_BITS;
}

int64_t pg_place_id(struct pg *p, int64_t wake_ms)
{
	int64_t id = slot(wake_ms) | pg_place_number(p);

	if (id < p->low_id) { /* what one puts there oneself is found at once */
		p->low_id = id;
		p->look_all_ms = p->look_again_ms = 0;
	}
	return id;
}

void pg_turns_given(struct pg *p, const PGresult *r)
{
	for (int i = 0; i < PQntuples(r); i++) {
		if (pg_get_int(r, i, 0) <= p->until_id)
			p->look_again_ms = 0;
	}
}

int64_t pg_place_last(int64_t wake_ms)
{
	return slot(wake_ms) | ((INT64_C(1) << PG_NUMBER_BITS) - 1);
}

/* ---- loans ---------------------------------------------------------------------------------------------------------------- */

int pg_loans_read(struct pg *p, const PGresult *r, struct pg_loans *out, struct fw_err *err)
{
	int n = PQntuples(r);

	out->n = 0;
	out->at = calloc((size_t)n + 1, sizeof(*out->at));
	if (!out->at)
		return fw_err_set(err, FW_ENOMEM, "%s: out of memory", p->name);
	for (int i = 0; i < n; i++) {
		struct pg_loan *l = &out->at[out->n++];

		l->id = pg_get_int(r, i, 0);
		l->open = l->open_was = (uint64_t)pg_get_int(r, i, 1);
		l->n = FW_MIN(pg_get_ints(r, i, 2, l->feed, PG_LOAN_MAX), (size_t)PG_LOAN_MAX);
		(void)pg_get_ints(r, i, 3, l->host, PG_LOAN_MAX);
		(void)pg_get_ints(r, i, 4, l->visit, PG_LOAN_MAX);
		(void)pg_get_ints(r, i, 5, l->wheel_at, PG_LOAN_MAX);
		(void)pg_get_ints(r, i, 6, l->feed_at, PG_LOAN_MAX);
	}
	return 0;
}

void pg_loans_finish(struct pg_loans *l)
{
	free(l->at);
	*l = (struct pg_loans){NULL, 0};
}

void pg_loans_lock(struct pg *p, const int64_t *fence, size_t n)
{
	pg_array(p, PG_INT8, n);
	for (size_t i = 0; i < n; i++)
		pg_item_int(p, fence[i] >> PG_LOAN_BITS); /* one several times does no harm */
	pg_send(p, PG_LOANS_BY_ID, "SELECT " PG_LOAN_COLUMNS " FROM loans WHERE id = ANY ($1::int8[]) ORDER BY id FOR UPDATE");
}

struct pg_loan *pg_loan_find(struct pg_loans *l, int64_t fence, int64_t feed_id, size_t *bit)
{
	int64_t id = fence >> PG_LOAN_BITS;
	size_t lo = 0, hi = l->n;

	*bit = (size_t)fence & (PG_LOAN_MAX - 1);
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (l->at[mid].id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == l->n || l->at[lo].id != id || *bit >= l->at[lo].n)
		return NULL;
	return (l->at[lo].open >> *bit & 1) && l->at[lo].feed[*bit] == feed_id ? &l->at[lo] : NULL;
}

void pg_loans_write(struct pg *p, const struct pg_loans *l)
{
	size_t open_n = 0, empty_n = 0;

	for (size_t i = 0; i < l->n; i++) {
		open_n += l->at[i].open && l->at[i].open != l->at[i].open_was;
		empty_n += !l->at[i].open;
	}
	if (open_n) {
		pg_array(p, PG_INT8, open_n);
		for (size_t i = 0; i < l->n; i++) {
			if (l->at[i].open && l->at[i].open != l->at[i].open_was)
				pg_item_int(p, l->at[i].id);
		}
		pg_array(p, PG_INT8, open_n);
		for (size_t i = 0; i < l->n; i++) {
			if (l->at[i].open && l->at[i].open != l->at[i].open_was)
				pg_item_int(p, (int64_t)l->at[i].open);
		}
		pg_send(p, PG_LOANS_OPEN, "UPDATE loans SET open = u.open FROM unnest($1::int8[], $2::int8[]) u (id, open)"
			" WHERE loans.id = u.id");
	}
	if (empty_n) {
		pg_array(p, PG_INT8, empty_n);
		for (size_t i = 0; i < l->n; i++) {
			if (!l->at[i].open)
				pg_item_int(p, l->at[i].id);
		}
		pg_send(p, PG_LOANS_DROP, "DELETE FROM loans WHERE id = ANY ($1::int8[])");
	}
}

/* ---- hosts ------------------------------------------------------------------------------------------------------------------ */

static const char lock_sql[] = "SELECT id, turn_n, parked_n, busy_n, next_ok_ms, cool_until_ms, pace_ms, expect_us, holder FROM hosts"
	" WHERE id = ANY ($1::int8[]) ORDER BY id FOR UPDATE";

static const char turns_sql[] = "WITH c AS MATERIALIZED (SELECT h.id AS host_id, greatest(q.due_at_ms, h.next_ok_ms) AS wake,"
	" q.due_at_ms, q.feed_id FROM unnest($1::int8[]) u (id) JOIN hosts h ON h.id = u.id CROSS JOIN LATERAL (SELECT due_at_ms,"
	" feed_id FROM parked WHERE host_id = h.id ORDER BY due_at_ms, feed_id LIMIT 1) q WHERE h.parked_n > 0 AND h.turn_n = 0),"
	" gone AS (DELETE FROM parked q USING c WHERE q.host_id = c.host_id AND q.due_at_ms = c.due_at_ms AND q.feed_id = c.feed_id),"
	" turn AS (UPDATE hosts h SET parked_n = parked_n - 1, turn_n = turn_n + 1 FROM c WHERE h.id = c.host_id)"
	" INSERT INTO places (id, wake_at_ms, feed_id, due_at_ms) SELECT " PG_PLACE_SQL("wake", "$2") ", wake, feed_id, due_at_ms FROM c"
	" RETURNING id";

void pg_hosts_lock(struct pg *p, const int64_t *host_id, size_t n)
{
	pg_ints(p, host_id, n);
	pg_send(p, PG_HOSTS_LOCK, lock_sql);
}

void pg_turns(struct pg *p, const int64_t *host_id, size_t n)
{
	pg_ints(p, host_id, n);
	pg_int(p, pg_place_number(p));
	pg_send(p, PG_TURNS, turns_sql);
}

static int by_host(const void *a, const void *b)
{
	const struct pg_back *x = a, *y = b;

	if (x->host_id != y->host_id)
		return x->host_id < y->host_id ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* By host, each host's as they came, and those without a number left out; returns how many are left. */
static size_t back_sort(struct pg_back *b, size_t n)
{
	size_t m = 0;

	for (size_t i = 0; i < n; i++) {
		b[i].order = i;
		if (b[i].host_id)
			b[m++] = b[i];
	}
	if (m)
		qsort(b, m, sizeof(*b), by_host);
	return m;
}

/* What comes back to one host: `of` outcomes from `from` on, the counts together. mood: the worst; total_us: of the first. */
struct returned {
	int64_t host_id, n, cooldown_ms, next_ms, from, of, mood, visits, total_us;
};

static size_t returned_sum(struct returned *to, const struct pg_back *b, size_t n)
{
	size_t m = 0;

	for (size_t i = 0; i < n; i++) {
		struct returned *h = m ? &to[m - 1] : NULL;

		if (!h || h->host_id != b[i].host_id) {
			h = &to[m++];
			*h = (struct returned){.host_id = b[i].host_id, .from = (int64_t)i, .total_us = b[i].total_us};
		}
		h->n += b[i].n;
		h->cooldown_ms = FW_MAX(h->cooldown_ms, b[i].cooldown_ms);
		h->next_ms = FW_MAX(h->next_ms, FW_MAX(b[i].cooldown_ms, b[i].next_ms));
		h->of++;
		h->mood = FW_MAX(h->mood, (int64_t)b[i].mood);
		h->visits += b[i].total_us > 0;
	}
	return m;
}

static void returned_column(struct pg *p, const struct returned *h, size_t n, size_t offset)
{
	pg_array(p, PG_INT8, n);
	for (size_t i = 0; i < n; i++) {
		int64_t v;

		memcpy(&v, (const char *)&h[i] + offset, sizeof(v));
		pg_item_int(p, v);
	}
}

/* Those of which one outcome comes back to the front; how many they are. */
static size_t returned_split(struct returned *h, size_t n)
{
	size_t m = 0;

	for (size_t i = 0; i < n; i++) {
		if (h[i].of == 1) {
			struct returned one = h[i];

			h[i] = h[m];
			h[m++] = one;
		}
	}
	return m;
}

/* fw_store_pace() once more, and what a visit took into the average: the next value after v; `of`: the outcome's. */
#define FINER_SQL(v) v " * " PG_NUMERAL(FW_PACE_STEP_MS) " / (" PG_NUMERAL(FW_PACE_STEP_MS) " + " v ")"
#define PACE_STEP_SQL(v, of) "CASE " of " WHEN 2 THEN least(greatest(2 * " v ", " PG_NUMERAL(FW_PACE_MIN_MS) "), " \
	PG_NUMERAL(FW_PACE_MAX_MS) ") WHEN 1 THEN CASE WHEN " FINER_SQL(v) " > " PG_NUMERAL(FW_PACE_NONE_MS) " THEN " FINER_SQL(v) \
	" ELSE 0 END ELSE " v " END"
#define EXPECT_STEP_SQL(v, of) "CASE WHEN " of " <= 0 THEN " v " WHEN " v " = 0 THEN " of " ELSE " v " + (" of " - " v ") / 8 END"
/* A column after one step for each of a host's outcomes, in their order. */
#define STEPS_SQL(column, step) "(WITH RECURSIVE s (i, v) AS (SELECT 1::int8, h." column " UNION ALL SELECT s.i + 1, " step " FROM s" \
	" WHERE s.i <= u.k) SELECT v FROM s WHERE i = u.k + 1)"
_Static_assert(FW_HOST_FINE == 1 && FW_HOST_STRAINED == 2, "the numbers in PACE_STEP_SQL");

#define RETURN_SQL "UPDATE hosts h SET busy_n = greatest(busy_n - u.n, 0), holder = CASE WHEN busy_n > u.n THEN holder ELSE 0 END," \
	" next_ok_ms = greatest(next_ok_ms, u.next), cool_until_ms = greatest(cool_until_ms, u.cooldown), pace_ms = CASE WHEN u.mood = 0" \
	" OR (u.mood = 1 AND pace_ms = 0) THEN pace_ms ELSE "

/* Most hosts get one visit back in a commit: for these, without what the steps of several take to set up. */
static const char return_one_sql[] = RETURN_SQL PACE_STEP_SQL("pace_ms", "u.mood") " END, expect_us = "
	EXPECT_STEP_SQL("expect_us", "u.took") " FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[])"
	" u (id, n, cooldown, next, mood, took) WHERE h.id = u.id";
static const char return_sql[] = RETURN_SQL STEPS_SQL("pace_ms", PACE_STEP_SQL("v", "($9::int8[])[u.at + s.i]")) " END, expect_us ="
	" CASE WHEN u.visits = 0 THEN expect_us ELSE " STEPS_SQL("expect_us", EXPECT_STEP_SQL("v", "($10::int8[])[u.at + s.i]")) " END"
	" FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::int8[], $8::int8[])"
	" u (id, n, cooldown, next, mood, visits, at, k) WHERE h.id = u.id";

static void returned_columns(struct pg *p, const struct returned *h, size_t n, const size_t *column, size_t column_n)
{
	for (size_t i = 0; i < column_n; i++)
		returned_column(p, h, n, column[i]);
}

#define COLUMN(member) offsetof(struct returned, member)

/* Queued. h: of n outcomes b; the rows of its hosts are locked. */
static void returned_put(struct pg *p, struct returned *h, size_t m, const struct pg_back *b, size_t n)
{
	static const size_t one[] = {COLUMN(host_id), COLUMN(n), COLUMN(cooldown_ms), COLUMN(next_ms), COLUMN(mood), COLUMN(total_us)};
	static const size_t several[] = {COLUMN(host_id), COLUMN(n), COLUMN(cooldown_ms), COLUMN(next_ms), COLUMN(mood), COLUMN(visits),
		COLUMN(from), COLUMN(of)};
	size_t one_n = returned_split(h, m);

	if (one_n) {
		returned_columns(p, h, one_n, one, FW_N(one));
		pg_send(p, PG_HOST_RETURN, return_one_sql);
	}
	if (one_n == m)
		return;
	returned_columns(p, h + one_n, m - one_n, several, FW_N(several));
	pg_array(p, PG_INT8, n);
	for (size_t i = 0; i < n; i++)
		pg_item_int(p, (int64_t)b[i].mood);
	pg_array(p, PG_INT8, n);
	for (size_t i = 0; i < n; i++)
		pg_item_int(p, b[i].total_us);
	pg_send(p, PG_HOSTS_RETURN, return_sql);
}

void pg_hosts_return(struct pg *p, struct pg_back *b, size_t n)
{
	struct returned *h = NULL;
	size_t m;

	n = back_sort(b, n);
	h = n ? calloc(n, sizeof(*h)) : NULL;
	if (n && !h && !p->send_rc)
		p->send_rc = FW_ENOMEM;
	if (!h)
		return;
	m = returned_sum(h, b, n);
	returned_column(p, h, m, COLUMN(host_id));
	pg_send(p, PG_HOSTS_LOCK, lock_sql);
	returned_put(p, h, m, b, n);
	returned_column(p, h, m, COLUMN(host_id));
	pg_int(p, pg_place_number(p));
	pg_send(p, PG_TURNS, turns_sql);
	free(h);
}

/* ---- leases back, unvisited ------------------------------------------------------------------------------------------------ */

/* What is given back of some rows of loans. */
struct back {
	struct pg_loans loans;
	int64_t *feed;
	struct pg_back *host;
	size_t n;
};

static void back_finish(struct back *b)
{
	pg_loans_finish(&b->loans);
	free(b->feed);
	free(b->host);
}

static int back_begin(struct pg *p, const PGresult *r, struct back *b, struct fw_err *err)
{
	int rc = pg_loans_read(p, r, &b->loans, err);

	b->feed = calloc(b->loans.n * PG_LOAN_MAX + 1, sizeof(*b->feed));
	b->host = calloc(b->loans.n * PG_LOAN_MAX + 1, sizeof(*b->host));
	if (!rc && (!b->feed || !b->host))
		rc = fw_err_set(err, FW_ENOMEM, "%s: out of memory", p->name);
	return rc;
}

static void back_one(struct back *b, struct pg_loan *l, size_t bit)
{
	l->open &= ~(UINT64_C(1) << bit);
	b->host[b->n] = (struct pg_back){.host_id = l->host[bit], .n = 1};
	b->feed[b->n++] = l->feed[bit];
}

static void back_all(struct back *b)
{
	for (size_t i = 0; i < b->loans.n; i++) {
		for (size_t bit = 0; bit < b->loans.at[i].n; bit++) {
			if (b->loans.at[i].open >> bit & 1)
				back_one(b, &b->loans.at[i], bit);
		}
	}
}

/* Queued: back into the queue what is still active, budgets, loans. Who waits is told. */
static void back_put(struct pg *p, struct back *b)
{
	pg_ints(p, b->feed, b->n);
	pg_int(p, pg_place_number(p));
	pg_send(p, PG_REQUEUE, "INSERT INTO places (id, wake_at_ms, feed_id, wheel_at) SELECT " PG_PLACE_SQL("due_at_ms", "$2")
		", due_at_ms, feed_id, ctid FROM wheel WHERE feed_id = ANY ($1::int8[]) AND status = 0");
	p->look_all_ms = p->look_again_ms = 0; /* they were due: behind where claims have got to */
	pg_loans_write(p, &b->loans);
	pg_hosts_return(p, b->host, b->n);
	if (b->n)
		pg_notify(p);
}

struct releasing {
	const struct fw_lease *lease;
	size_t n;
};

static int release_in(struct pg *p, void *ctx, struct fw_err *err)
{
	struct releasing *q = ctx;
	struct back b = {.n = 0};
	int64_t *fence = calloc(q->n, sizeof(*fence));
	int rc;

	if (!fence)
		return fw_err_set(err, FW_ENOMEM, "%s: out of memory", p->name);
	for (size_t i = 0; i < q->n; i++)
		fence[i] = q->lease[i].fence;
	pg_begin_quick(p);
	pg_loans_lock(p, fence, q->n);
	free(fence);
	rc = pg_run(p, err);
	rc = rc ? rc : back_begin(p, p->res[p->res_n - 1], &b, err);
	if (!rc) {
		for (size_t i = 0; i < q->n; i++) {
			size_t bit;
			struct pg_loan *l = pg_loan_find(&b.loans, q->lease[i].fence, q->lease[i].feed.id, &bit);

			if (l)
				back_one(&b, l, bit);
		}
		back_put(p, &b);
		rc = pg_commit_run(p, err);
	}
	back_finish(&b);
	return rc;
}

int pg_release(struct fw_store *st, const struct fw_lease *lease, size_t n, struct fw_err *err)
{
	struct releasing q = {lease, n};

	return pg_txn(pg_of(st), release_in, &q, err);
}

struct burying {
	const char *worker;
	int64_t feed_id;
};

static int bury_in(struct pg *p, void *ctx, struct fw_err *err)
{
	struct burying *q = ctx;
	struct back b = {.n = 0};
	bool had_it = false;
	int rc;

	pg_begin(p);
	pg_text(p, fw_str(q->worker));
	pg_send(p, PG_LOANS_OF_WORKER, "SELECT " PG_LOAN_COLUMNS " FROM loans WHERE worker = $1 ORDER BY id FOR UPDATE");
	rc = pg_run(p, err);
	rc = rc ? rc : back_begin(p, p->res[p->res_n - 1], &b, err);
	if (!rc) {
		back_all(&b);
		for (size_t i = 0; i < b.n; i++)
			had_it |= q->feed_id && b.feed[i] == q->feed_id;
		if (had_it) { /* the feed is charged */
			pg_int(p, q->feed_id);
			pg_int(p, FW_VISIT_CRASH);
			pg_int(p, FW_STORE_CRASH_MAX);
			pg_int(p, FW_FEED_QUARANTINED);
			pg_send(p, PG_CRASH, "UPDATE wheel SET crash_n = crash_n + 1, last_kind = $2::int8, status = CASE WHEN status = 0"
				" AND crash_n + 1 >= $3::int8 THEN $4::int8 ELSE status END WHERE feed_id = $1::int8");
		}
		back_put(p, &b);
		rc = pg_commit_run(p, err);
	}
	back_finish(&b);
	return rc;
}

int pg_bury(struct fw_store *st, const char *worker, int64_t crashed_feed_id, int64_t now_ms, struct fw_err *err)
{
	struct burying q = {worker, crashed_feed_id};

	(void)now_ms;
	return pg_txn(pg_of(st), bury_in, &q, err);
}

static int take_back_in(struct pg *p, void *ctx, struct fw_err *err)
{
	const int64_t *now_ms = ctx;
	struct back b = {.n = 0};
	int rc;

	pg_begin_quick(p);
	pg_int(p, *now_ms);
	pg_int(p, TAKE_BACK);
	pg_send(p, PG_LOANS_EXPIRED, "SELECT " PG_LOAN_COLUMNS " FROM loans WHERE until_ms <= $1::int8 ORDER BY until_ms LIMIT $2::int8"
		" FOR UPDATE SKIP LOCKED");
	rc = pg_run(p, err);
	rc = rc ? rc : back_begin(p, p->res[p->res_n - 1], &b, err);
	if (!rc) {
		back_all(&b);
		back_put(p, &b);
		rc = pg_commit_run(p, err);
	}
	back_finish(&b);
	return rc;
}

int pg_take_back(struct pg *p, int64_t now_ms, struct fw_err *err)
{
	return pg_txn(p, take_back_in, &now_ms, err);
}
