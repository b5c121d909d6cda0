/* SPDX-License-Identifier: ISC */
/* Loans that end unvisited, one feed lent by its number, and who is due. Claims: maria_claim.c. */
#include <stdlib.h>

#include "store/maria.h"

#define EXPIRED_LOANS 8  /* rows, taken back per claim */
#define LOOK_MS 1000

/* ---- leases back, unvisited -------------------------------------------------------------------------------------------------- */

static int by_feed(const void *a, const void *b)
{
	const struct mr_lent *const *x = a, *const *y = b;

	return (*x)->feed_id < (*y)->feed_id ? -1 : (*x)->feed_id > (*y)->feed_id;
}

/* Those that end, by feed. */
static struct mr_lent **ends_gather(const struct mr_loans *l, size_t *n)
{
	struct mr_lent **of;
	size_t cap = 0;

	*n = 0;
	for (size_t i = 0; i < l->n; i++)
		cap += l->at[i].n;
	of = calloc(cap + 1, sizeof(struct mr_lent *));
	for (size_t i = 0; of && i < l->n; i++) {
		for (size_t k = 0; k < l->at[i].n; k++) {
			if (l->at[i].at[k].ends)
				of[(*n)++] = &l->at[i].at[k];
		}
	}
	if (of)
		qsort(of, *n, sizeof(struct mr_lent *), by_feed);
	return of;
}

/* Feeds whose loans end and that are active, back into the queue. Those that somebody deleted by hand are not found. */
static int feeds_requeue(struct maria *m, struct mr_lent **of, size_t n, struct mr_line *l, struct fw_err *err)
{
	struct mr_res r;
	int rc;

	mr_put(m, "SELECT feed_id, due_at_ms FROM wheel FORCE INDEX (PRIMARY) WHERE status = 0 AND feed_id IN (", "");
	for (size_t i = 0; i < n; i++)
		fw_buf_addf(&m->sql, "%s%lld", i ? "," : "", (long long)of[i]->feed_id);
	fw_buf_addc(&m->sql, ')');
	rc = mr_answer(m, &r, err);
	while (!rc && mr_row(&r)) {
		struct mr_lent key = {.feed_id = mr_int(&r, 0)}, *k = &key, **found;

		found = bsearch(&k, of, n, sizeof(struct mr_lent *), by_feed);
		if (found)
			mr_line_on(l, key.feed_id, mr_int(&r, 1), (*found)->host_id, 0);
	}
	return rc;
}

/* End the loans that are marked so, in rows that are locked. */
static int loans_return(struct maria *m, int64_t now_ms, const struct mr_loans *loans, struct fw_err *err)
{
	size_t n;
	struct mr_lent **of = ends_gather(loans, &n);
	int64_t *host = calloc(n + 1, sizeof(*host));
	struct mr_line l;
	int rc = of && host ? 0 : mr_no_memory(m, err);

	mr_line_init(&l, now_ms);
	for (size_t i = 0; i < n && !rc; i++)
		host[i] = mr_lent_budget(of[i]);
	rc = rc || !n ? rc : feeds_requeue(m, of, n, &l, err);
	rc = rc ? rc : mr_line_hosts(m, &l, host, n, 1, false, err);
	for (size_t i = 0; i < n && !rc; i++)
		mr_line_return(&l, host[i], NULL);
	mr_loans_write(m, loans);
	rc = rc ? rc : mr_line_write(m, &l, err);
	mr_line_finish(&l);
	free(host);
	free(of);
	return rc;
}

/* All that is out of these. */
static void loans_end(struct mr_loans *l)
{
	for (size_t i = 0; i < l->n; i++) {
		for (size_t k = 0; k < l->at[i].n; k++)
			l->at[i].at[k].ends = l->at[i].at[k].out;
	}
}

struct release {
	const struct fw_lease *lease;
	size_t n;
	int64_t now_ms;
};

static int release_in(struct maria *m, void *arg, struct fw_err *err)
{
	const struct release *w = arg;
	int64_t *fence = calloc(w->n + 1, sizeof(*fence));
	struct mr_loans loans = {0};
	int rc = fence ? 0 : mr_no_memory(m, err);

	for (size_t i = 0; i < w->n && !rc; i++)
		fence[i] = w->lease[i].fence;
	rc = rc || !w->n ? rc : mr_loans_lock(m, fence, w->n, &loans, err);
	for (size_t i = 0; i < w->n && !rc; i++) {
		bool touched = false;
		struct mr_lent *lent = mr_lent_find(&loans, fence[i], w->lease[i].feed.id, &touched);

		if (lent)
			lent->ends = true;
	}
	rc = rc ? rc : loans_return(m, w->now_ms, &loans, err);
	mr_loans_finish(&loans);
	free(fence);
	return rc;
}

int mr_release(struct fw_store *st, const struct fw_lease *lease, size_t n, struct fw_err *err)
{
	struct release w = {lease, n, 0};
	int rc = mr_now(mr_of(st), 0, &w.now_ms, err);

	return rc ? rc : mr_transact(mr_of(st), release_in, &w, err);
}

static int expire_in(struct maria *m, void *arg, struct fw_err *err)
{
	struct mr_loans loans;
	int rc = mr_loans_expired(m, *(int64_t *)arg, EXPIRED_LOANS, &loans, err);

	loans_end(&loans);
	rc = rc || !loans.n ? rc : loans_return(m, *(int64_t *)arg, &loans, err);
	mr_loans_finish(&loans);
	return rc;
}

/* Claims whose time is over are taken back by whoever comes next; each looks when the next one ends, and once a second. */
int mr_expire(struct maria *m, int64_t now, struct fw_err *err)
{
	int64_t until;
	int rc;

	if (now >= m->looked_ms && now < m->look_again_ms)
		return 0;
	rc = mr_number(m, FW_NO_DATE, &until, err, "SELECT min(until_ms) FROM loans", "");
	if (!rc && until != FW_NO_DATE && until <= now)
		return mr_transact(m, expire_in, &now, err); /* there may be more */
	m->looked_ms = now;
	m->look_again_ms = rc ? now : until != FW_NO_DATE ? FW_MIN(until, now + LOOK_MS) : now + LOOK_MS;
	return rc;
}

struct bury {
	const char *worker;
	int64_t feed_id, now_ms;
	bool charged, more;
};

/* When the worker had that feed, the feed is charged. */
static void crash_count(struct maria *m, struct bury *b, const struct mr_loans *l)
{
	b->charged = false;
	for (size_t i = 0; i < l->n; i++) {
		for (size_t k = 0; k < l->at[i].n; k++)
			b->charged |= l->at[i].at[k].out && l->at[i].at[k].feed_id == b->feed_id;
	}
	if (b->charged)
		mr_put(m, "UPDATE wheel SET status = CASE WHEN status = 0 AND crash_n + 1 >= ? THEN ? ELSE status END,"
			" crash_n = crash_n + 1, last_kind = ? WHERE feed_id = ?", "iiii", MR_INT(FW_STORE_CRASH_MAX),
			MR_INT(FW_FEED_QUARANTINED), MR_INT(FW_VISIT_CRASH), b->feed_id);
}

static int bury_in(struct maria *m, void *arg, struct fw_err *err)
{
	struct bury *b = arg;
	struct mr_loans loans;
	int rc = mr_loans_of(m, b->worker, EXPIRED_LOANS, &loans, err);

	b->more = !rc && loans.n;
	if (b->more) {
		crash_count(m, b, &loans);
		loans_end(&loans);
		rc = loans_return(m, b->now_ms, &loans, err);
	}
	mr_loans_finish(&loans);
	return rc;
}

int mr_bury(struct fw_store *st, const char *worker, int64_t crashed_feed_id, int64_t now_ms, struct fw_err *err)
{
	struct bury b = {.worker = worker, .feed_id = crashed_feed_id, .more = true};
	int rc = mr_now(mr_of(st), now_ms, &b.now_ms, err);

	while (!rc && b.more) {
		rc = mr_transact(mr_of(st), bury_in, &b, err);
		b.feed_id = b.charged ? 0 : b.feed_id; /* once */
	}
	return rc;
}

int mr_pending(struct fw_store *st, int64_t due_before_ms, int64_t *n, int64_t *wake_ms, struct fw_err *err)
{
	struct mr_res r;
	/* feeds waiting at or before that time; those that were moved behind it; parked ones; lent ones */
	int rc = mr_ask(mr_of(st), &r, err, "SELECT count(*), min(wake_at_ms) FROM queue WHERE wake_at_ms <= ?"
		" UNION ALL SELECT count(*), min(wake_at_ms) FROM moved WHERE wake_at_ms > ? AND due_at_ms <= ?"
		" UNION ALL SELECT count(*), NULL FROM parked WHERE due_at_ms <= ?"
		" UNION ALL SELECT count(*), min(l.until_ms) FROM " MR_OUT " JOIN wheel w ON w.feed_id = j.feed_id WHERE w.due_at_ms <= ?",
		"iiiii", due_before_ms, due_before_ms, due_before_ms, due_before_ms, due_before_ms);

	while (!rc && mr_row(&r)) {
		int64_t wake = mr_date(&r, 1);

		*n += mr_int(&r, 0);
		if (wake != FW_NO_DATE && (*wake_ms == FW_NO_DATE || wake < *wake_ms))
			*wake_ms = wake;
	}
	return rc;
}

/* ---- who is due ---------------------------------------------------------------------------------------------------------------- */

struct due {
	struct fw_due_row *at; /* those that do not stand in the queue by their due time: by due time */
	size_t n, cap, shown_n, limit;
	fw_due_cb *cb;
	void *ctx;
};

static int by_due(const void *a, const void *b)
{
	const struct fw_due_row *x = a, *y = b;

	if (x->due_at_ms != y->due_at_ms)
		return x->due_at_ms < y->due_at_ms ? -1 : 1;
	return x->feed_id < y->feed_id ? -1 : x->feed_id > y->feed_id;
}

static int due_keep(struct maria *m, struct due *d, const struct fw_due_row *row, struct fw_err *err)
{
	if (d->n == d->cap) {
		size_t cap = d->cap ? d->cap * 2 : 256;
		struct fw_due_row *grown = reallocarray(d->at, cap, sizeof(*grown));

		if (!grown)
			return mr_no_memory(m, err);
		d->at = grown;
		d->cap = cap;
	}
	d->at[d->n++] = *row;
	return 0;
}

static int due_show(struct due *d, const struct fw_due_row *row)
{
	if (d->limit && d->shown_n == d->limit)
		return 0;
	d->shown_n++;
	return d->cb(d->ctx, row);
}

#define DUE_WHEEL "w.expect_us, w.expect_dev_us, w.last_visit_ms"

/* The script: first those that stand elsewhere, then the queue in its order. One statement, so nobody is seen twice or never. */
static void due_ask(struct maria *m, int64_t before_ms, size_t limit)
{
	char end[60] = ")";

	if (limit)
		(void)fw_snprintf(end, sizeof(end), " LIMIT %zu)", limit);
	mr_put(m, "(SELECT 0, x.feed_id, x.host_id, x.due_at_ms, " DUE_WHEEL " FROM parked x STRAIGHT_JOIN wheel w"
		" FORCE INDEX (PRIMARY) ON w.feed_id = x.feed_id WHERE x.due_at_ms <= ?", "i", before_ms);
	fw_buf_addf(&m->sql, "%s%s", limit ? " ORDER BY x.due_at_ms" : "", end);
	fw_buf_adds(&m->sql, " UNION ALL (SELECT 0, x.feed_id, q.host_id, x.due_at_ms, " DUE_WHEEL " FROM moved x"
		" STRAIGHT_JOIN queue q FORCE INDEX (PRIMARY) ON q.wake_at_ms = x.wake_at_ms AND q.feed_id = x.feed_id"
		" STRAIGHT_JOIN wheel w FORCE INDEX (PRIMARY) ON w.feed_id = x.feed_id WHERE x.due_at_ms <= ");
	mr_value_int(m, before_ms);
	fw_buf_addf(&m->sql, "%s%s", limit ? " ORDER BY x.due_at_ms" : "", end);
	fw_buf_adds(&m->sql, " UNION ALL (SELECT 1, x.feed_id, x.host_id, x.wake_at_ms, " DUE_WHEEL " FROM queue x"
		" FORCE INDEX (PRIMARY) STRAIGHT_JOIN wheel w FORCE INDEX (PRIMARY) ON w.feed_id = x.feed_id WHERE x.due_at_ms IS NULL"
		" AND x.wake_at_ms <= ");
	mr_value_int(m, before_ms);
	fw_buf_addf(&m->sql, "%s%s", limit ? " ORDER BY x.wake_at_ms, x.feed_id" : "", end);
}

int mr_due_list(struct fw_store *st, int64_t due_before_ms, size_t limit, fw_due_cb *cb, void *ctx, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	struct due d = {.limit = limit, .cb = cb, .ctx = ctx};
	bool sorted = false;
	size_t at = 0;
	struct mr_res r;
	int rc;

	due_ask(m, due_before_ms, limit);
	rc = mr_stream(m, &r, err);
	while (!rc && mr_row(&r)) {
		struct fw_due_row row = {.feed_id = mr_int(&r, 1), .host_id = mr_int(&r, 2), .due_at_ms = mr_int(&r, 3),
			.expect_us = mr_int(&r, 4), .expect_dev_us = mr_int(&r, 5), .last_visit_ms = mr_int(&r, 6)};

		if (!mr_int(&r, 0)) {
			rc = due_keep(m, &d, &row, err);
			continue;
		}
		if (!sorted && d.n)
			qsort(d.at, d.n, sizeof(*d.at), by_due);
		sorted = true;
		for (; at < d.n && by_due(&d.at[at], &row) < 0 && !rc; at++)
			rc = due_show(&d, &d.at[at]);
		rc = rc ? rc : due_show(&d, &row);
	}
	mr_done(&r); /* takes the rest off the line */
	if (!rc && mysql_errno(m->db))
		rc = mr_error(m, "listing what is due", err);
	if (!sorted && d.n)
		qsort(d.at, d.n, sizeof(*d.at), by_due);
	for (; at < d.n && !rc; at++)
		rc = due_show(&d, &d.at[at]);
	free(d.at);
	return rc;
}

/* ---- one feed, by its number ---------------------------------------------------------------------------------------------------- */

struct lending {
	const struct fw_lend_ask *ask;
	struct fw_lend_got *got;
	int64_t now_ms;
};

/* The feed is off the wheel: a row of loans for it alone. */
static int lend_one(struct maria *m, const struct lending *w, const struct mr_stand *s, struct fw_err *err)
{
	struct mr_lent lent = {.feed_id = s->feed_id, .uncounted = true, .visit_id = s->last_visit_id, .out = true};
	int64_t until = w->now_ms + w->ask->lease_ms, id = 0;
	int rc = mr_crowd_of(m, s, &lent.host_id, err);

	rc = rc ? rc : mr_number(m, 0, &lent.new_ms, err, "SELECT last_new_ms FROM wheel WHERE feed_id = ?", "i", s->feed_id);
	if (!rc)
		mr_loans_put(m, w->ask->worker, until, &lent, 1);
	rc = rc ? rc : mr_number(m, 0, &id, err, "SELECT LAST_INSERT_ID()", "");
	if (!rc && s->status != FW_FEED_ACTIVE) { /* as if it had been paused since: the commit looks */
		mr_put(m, "UPDATE loans SET touched = 1 WHERE id = ?", "i", id);
		rc = mr_flush(m, err);
	}
	if (rc)
		return rc;
	w->got->fence = mr_loans_fence(m, id, 0);
	w->got->until_ms = until;
	return 0;
}

static int lent_look(struct maria *m, const struct mr_loan *loan, struct fw_lend_got *got, struct fw_err *err)
{
	struct mr_res r;
	int rc = mr_ask(m, &r, err, "SELECT worker FROM loans WHERE id = ?", "i", loan->id);

	got->until_ms = loan->until_ms;
	if (!rc && mr_row(&r)) {
		(void)fw_str_copy(got->worker, sizeof(got->worker), mr_str(&r, 0));
		mr_done(&r);
	}
	return rc;
}

static int lend_in(struct maria *m, void *arg, struct fw_err *err)
{
	const struct lending *w = arg;
	struct mr_line l;
	struct mr_stand s;
	int rc = mr_stand_lock(m, w->ask->feed_id, &s, err);

	*w->got = (struct fw_lend_got){.status = (enum fw_feed_status)s.status};
	mr_line_init(&l, w->now_ms);
	if (rc)
		goto out;
	if (s.lent) {
		rc = lent_look(m, s.loan, w->got, err);
	} else if (s.status == FW_FEED_ACTIVE && !s.queued && !s.parked) { /* no end of its moves, or taken out by hand */
		rc = fw_err_set(err, FW_EAGAIN, "%s: feed %lld stands nowhere: try again; `feedwheel doctor` finds out more", m->name,
			(long long)s.feed_id);
	} else if (fw_feed_takes_entries(w->got->status)) {
		rc = s.status == FW_FEED_ACTIVE ? mr_stand_off(m, &s, &l, err) : 0;
		rc = rc ? rc : mr_line_write(m, &l, err);
		rc = rc ? rc : lend_one(m, w, &s, err);
	}
out:
	mr_line_finish(&l);
	mr_stand_finish(&s);
	return rc;
}

int mr_lend(struct fw_store *st, const struct fw_lend_ask *ask, struct fw_lend_got *got, struct fw_err *err)
{
	struct maria *m = mr_of(st);
	struct lending w = {.ask = ask, .got = got};
	int rc = mr_now(m, ask->now_ms, &w.now_ms, err);

	rc = rc ? rc : mr_transact(m, lend_in, &w, err);
	if (!rc && !got->fence && got->until_ms && got->until_ms <= w.now_ms) { /* it has run out */
		rc = mr_transact(m, expire_in, &w.now_ms, err);
		rc = rc ? rc : mr_transact(m, lend_in, &w, err);
	}
	if (rc)
		*got = (struct fw_lend_got){.status = FW_FEED_ACTIVE};
	else if (got->fence && !m->first_fence)
		m->first_fence = got->fence;
	return rc;
}

