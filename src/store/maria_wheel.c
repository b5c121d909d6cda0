/* SPDX-License-Identifier: ISC */
/*
 * Lending. A claim is one short transaction: it takes rows off the head of the queue that nobody else holds (SKIP LOCKED), gives
 * each a lease and a fence, and ends. Nothing is held while feeds are fetched.
 *
 * The head is read in rounds. Feeds of crowded hosts need budget (hosts.busy_n below host_max, hosts.next_ok_ms reached); one that
 * gets none is parked, so 500 overdue feeds of one host are met once, not at every claim. A round that waits for locks on hosts is
 * the first one only, so that two claims never wait for each other.
 *
 * What is lent is written down in `loans` (maria_loans.c): one row, however many feeds.
 */
#include <stdlib.h>

#include "store/maria.h"

#define SCAN_FACTOR 4    /* rows looked at per claim, in multiples of ask->max */
#define SCAN_EXTRA 1000
#define EXPIRED_LOANS 8  /* rows, taken back per claim */
#define LOOK_MS 1000
#define MAX_LENT 10000   /* by one claim */

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
		mr_line_return(&l, host[i], true, 0);
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
static int claims_expire(struct maria *m, int64_t now, struct fw_err *err)
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

/* ---- claim ------------------------------------------------------------------------------------------------------------------- */

struct claim {
	struct maria *m;
	const struct fw_claim_ask *ask;
	struct fw_arena *a;
	struct fw_lease *out;
	struct fw_claim_got *got;
	int64_t now_ms, before_ms;
	struct mr_line line;
	struct mr_places work; /* read from the queue, and turns that were given now */
	struct mr_places lent;
	size_t at;             /* of work: what comes next */
	bool skipped;          /* hosts that others hold were left out */
};

static bool is_full(const struct claim *c)
{
	return c->lent.n >= FW_MIN(c->ask->max, MAX_LENT);
}

static void take_off(struct claim *c, const struct mr_place *p)
{
	if (p->stored)
		mr_places_add(&c->line, &c->line.off, p);
}

/* The host's turn goes on: to the end of the work when that feed is due now, else into the queue. */
static void turn_on(struct claim *c, struct mr_host *h)
{
	struct mr_place p;

	mr_line_turn(&c->line, h, &p);
	if (p.feed_id)
		mr_places_add(&c->line, p.wake_ms <= c->now_ms && p.due_ms <= c->before_ms ? &c->work : &c->line.on, &p);
}

/* A feed of a crowded host: lend it, or park it. */
static void lend_crowded(struct claim *c, const struct mr_place *p)
{
	const struct fw_claim_ask *ask = c->ask;
	struct mr_host *h = mr_line_host(&c->line, p->host_id);
	struct mr_place parked = *p;
	bool busy;

	if (!h) {
		c->skipped = true; /* its row stays in the queue */
		return;
	}
	take_off(c, p);
	busy = ask->host_max && h->busy_n >= (int64_t)ask->host_max;
	h->turn_n -= p->moved;
	if (!busy && c->now_ms >= h->next_ok_ms) {
		mr_places_add(&c->line, &c->lent, p);
		h->busy_n++;
		h->next_ok_ms = FW_MAX(h->next_ok_ms, c->now_ms + ask->host_gap_ms);
		busy = ask->host_max && h->busy_n >= (int64_t)ask->host_max;
	} else {
		c->got->deferred_n++;
		h->parked_n++;
		parked.stored = parked.gone = false;
		mr_places_add(&c->line, &c->line.parked, &parked);
	}
	if (!busy)
		turn_on(c, h);
}

static void work_off(struct claim *c)
{
	while (c->at < c->work.n && !is_full(c) && !c->line.failed) {
		struct mr_place p = c->work.at[c->at++]; /* a copy: the array may grow */

		if (p.host_id) {
			lend_crowded(c, &p);
		} else {
			take_off(c, &p);
			mr_places_add(&c->line, &c->lent, &p);
		}
	}
}

/* Rows that were found: into the work, and the hosts they need. */
static int round_read(struct claim *c, struct mr_res *r, size_t *n, struct fw_err *err)
{
	struct maria *m = c->m;
	size_t from = c->work.n;
	int64_t *host;
	int rc;

	while (mr_row(r)) {
		struct mr_place p = {.wake_ms = mr_int(r, 0), .feed_id = mr_int(r, 1), .host_id = mr_int(r, 2), .moved = r->row[3] != NULL,
			.due_ms = r->row[3] ? mr_int(r, 3) : mr_int(r, 0), .stored = true};

		mr_places_add(&c->line, &c->work, &p);
	}
	*n = c->work.n - from;
	host = calloc(*n + 1, sizeof(*host));
	if (!host || c->line.failed) {
		free(host);
		return mr_no_memory(m, err);
	}
	for (size_t i = 0; i < *n; i++)
		host[i] = c->work.at[from + i].host_id;
	rc = mr_line_hosts(m, &c->line, host, *n, c->ask->host_max ? c->ask->host_max : c->ask->max, c->line.host_n > 0, err);
	free(host);
	return rc;
}

/* Rounds of the queue's head. */
static int claim_head(struct claim *c, struct fw_err *err)
{
	size_t left = c->ask->max * SCAN_FACTOR + SCAN_EXTRA, n, want;
	int64_t until = FW_MIN(c->now_ms, c->before_ms), from = INT64_MIN, after_feed = -1;
	int rc;

	do {
		struct mr_res r;

		want = FW_MIN(c->ask->max - c->lent.n, left);
		rc = mr_ask(c->m, &r, err, "SELECT wake_at_ms, feed_id, host_id, due_at_ms FROM queue FORCE INDEX (PRIMARY)"
			" WHERE wake_at_ms >= ? AND wake_at_ms <= ? AND (wake_at_ms > ? OR feed_id > ?) ORDER BY wake_at_ms, feed_id LIMIT ?"
			" FOR UPDATE SKIP LOCKED", "iiiii", from, until, from, after_feed, MR_INT(want));
		rc = rc ? rc : round_read(c, &r, &n, err);
		if (rc)
			return rc;
		if (n) { /* the next round begins behind these, which are ours */
			from = c->work.at[c->work.n - 1].wake_ms;
			after_feed = c->work.at[c->work.n - 1].feed_id;
		}
		work_off(c);
		left -= n;
	} while (n == want && left && !is_full(c));
	return 0;
}

/* With a due_before in the past, feeds that were due before it may stand behind it, because they were moved. */
static int claim_moved(struct claim *c, struct fw_err *err)
{
	struct mr_res r;
	size_t n;
	int rc = mr_ask(c->m, &r, err, "SELECT q.wake_at_ms, q.feed_id, q.host_id, q.due_at_ms FROM moved v JOIN queue q"
		" ON q.wake_at_ms = v.wake_at_ms AND q.feed_id = v.feed_id WHERE v.wake_at_ms > ? AND v.wake_at_ms <= ? AND v.due_at_ms <= ?"
		" ORDER BY v.wake_at_ms LIMIT ? FOR UPDATE SKIP LOCKED", "iiii", c->before_ms, c->now_ms, c->before_ms,
		MR_INT(c->ask->max - c->lent.n));

	rc = rc ? rc : round_read(c, &r, &n, err);
	if (!rc)
		work_off(c);
	return rc;
}

static int earlier(const void *a, const void *b)
{
	const struct fw_lease *x = a, *y = b;

	if (x->feed.due_at_ms != y->feed.due_at_ms)
		return x->feed.due_at_ms < y->feed.due_at_ms ? -1 : 1;
	return x->fence < y->fence ? -1 : x->fence > y->fence;
}

static int place_by_feed(const void *a, const void *b)
{
	const struct mr_place *x = a, *y = b;

	return x->feed_id < y->feed_id ? -1 : x->feed_id > y->feed_id;
}

/* Rows of feeds, in the order of their fences: each to a lease, and to a place in a row of loans. */
static int feeds_out(struct claim *c, struct mr_res *r, struct mr_lent *lent, struct fw_err *err)
{
	size_t at = 0;

	while (mr_row(r)) {
		struct fw_lease *l = &c->out[c->got->n];

		(void)mr_feed_read(r, 1, &l->feed);
		while (at < c->lent.n && c->lent.at[at].feed_id < l->feed.id)
			at++;
		if (at == c->lent.n || c->lent.at[at].feed_id != l->feed.id)
			continue;
		lent[c->got->n++] = (struct mr_lent){.feed_id = l->feed.id, .host_id = c->lent.at[at].host_id, .visit_id = mr_int(r, 0),
			.new_ms = l->feed.last_new_ms, .out = true};
		l->until_ms = l->feed.lease_until_ms = c->now_ms + c->ask->lease_ms;
		if (!fw_store_feed_dup(c->a, &l->feed)) {
			mr_done(r);
			return mr_no_memory(c->m, err);
		}
	}
	return 0;
}

/* Feeds that somebody deleted by hand: they are not lent, and the others of their host are not held up. */
static void ghosts_pass(struct claim *c, const struct mr_lent *lent)
{
	for (size_t i = 0, k = 0; i < c->lent.n; i++) {
		if (k < c->got->n && lent[k].feed_id == c->lent.at[i].feed_id)
			k++;
		else if (c->lent.at[i].host_id)
			mr_put(c->m, "UPDATE hosts SET busy_n = busy_n - 1 WHERE id = ?", "i", c->lent.at[i].host_id);
	}
}

/* The number of a new row of loans is drawn when all that is lent is locked: so the fences of one feed rise. */
static int lend(struct claim *c, const struct mr_lent *lent, struct fw_err *err)
{
	int64_t first;
	int rc;

	mr_loans_put(c->m, c->ask->worker, c->now_ms + c->ask->lease_ms, lent, c->got->n);
	rc = mr_number(c->m, 0, &first, err, "SELECT LAST_INSERT_ID()", "");
	for (size_t i = 0; i < c->got->n && !rc; i++)
		c->out[i].fence = c->out[i].feed.fence = mr_loans_fence(c->m, first, i);
	if (!rc && !c->m->first_fence)
		c->m->first_fence = c->out[0].fence;
	return rc;
}

/* Write it all down, and hand the feeds out. */
static int claim_write(struct claim *c, struct fw_err *err)
{
	struct maria *m = c->m;
	struct mr_lent *lent = calloc(c->lent.n + 1, sizeof(*lent));
	struct mr_res r;
	int rc = lent ? mr_line_write(m, &c->line, err) : mr_no_memory(m, err);

	if (!rc && c->lent.n) {
		qsort(c->lent.at, c->lent.n, sizeof(*c->lent.at), place_by_feed);
		mr_put(m, "SELECT w.last_visit_id, ", "");
		mr_feed_columns(m);
		fw_buf_adds(&m->sql, " FROM wheel w FORCE INDEX (PRIMARY) STRAIGHT_JOIN feeds f ON f.id = w.feed_id WHERE w.feed_id IN (");
		for (size_t i = 0; i < c->lent.n; i++)
			fw_buf_addf(&m->sql, "%s%lld", i ? "," : "", (long long)c->lent.at[i].feed_id);
		fw_buf_adds(&m->sql, ") ORDER BY w.feed_id");
		rc = mr_answer(m, &r, err);
		rc = rc ? rc : feeds_out(c, &r, lent, err);
		if (!rc && c->got->n < c->lent.n)
			ghosts_pass(c, lent);
		rc = rc || !c->got->n ? rc : lend(c, lent, err);
	}
	free(lent);
	return rc;
}

/* When the first of the queue is due, or a lease runs out. */
static int next_wake(struct claim *c, struct fw_err *err)
{
	struct mr_res r;
	int rc;

	if ((c->ask->max && is_full(c)) || c->skipped) { /* there is more */
		c->got->next_ms = c->now_ms;
		return 0;
	}
	rc = mr_ask(c->m, &r, err, "SELECT min(wake_at_ms) FROM queue"
		" UNION ALL SELECT min(until_ms) FROM loans", "");
	while (!rc && mr_row(&r)) {
		int64_t wake = mr_date(&r, 0);

		if (wake != FW_NO_DATE && (c->got->next_ms == FW_NO_DATE || wake < c->got->next_ms))
			c->got->next_ms = wake;
	}
	return rc;
}

static int claim_in(struct maria *m, void *arg, struct fw_err *err)
{
	struct claim *c = arg;
	int rc;

	(void)m; /* it is c->m */
	*c->got = (struct fw_claim_got){.next_ms = FW_NO_DATE};
	mr_line_finish(&c->line);
	mr_line_init(&c->line, c->now_ms);
	c->work.n = c->lent.n = c->at = 0;
	rc = claim_head(c, err);
	if (!rc && c->before_ms < c->now_ms && !is_full(c))
		rc = claim_moved(c, err);
	for (; c->at < c->work.n && !rc; c->at++) { /* turns that were given, and for which there is no room left */
		if (!c->work.at[c->at].stored)
			mr_places_add(&c->line, &c->line.on, &c->work.at[c->at]);
	}
	rc = rc ? rc : claim_write(c, err);
	return rc ? rc : next_wake(c, err);
}

int mr_claim(struct fw_store *st, const struct fw_claim_ask *ask, struct fw_arena *a, struct fw_lease *out,
	struct fw_claim_got *got, struct fw_err *err)
{
	struct claim c = {.m = mr_of(st), .ask = ask, .a = a, .out = out, .got = got};
	int rc = mr_now(c.m, ask->now_ms, &c.now_ms, err);

	c.before_ms = ask->due_before_ms ? ask->due_before_ms : c.now_ms;
	*got = (struct fw_claim_got){.next_ms = FW_NO_DATE};
	rc = rc ? rc : claims_expire(c.m, c.now_ms, err);
	if (!rc && (!ask->max || c.m->idle)) /* a look costs less than a transaction */
		rc = next_wake(&c, err);
	if (!rc && ask->max && (!c.m->idle || (got->next_ms != FW_NO_DATE && got->next_ms <= c.now_ms))) {
		rc = mr_transact(c.m, claim_in, &c, err);
		c.m->idle = !rc && !got->n;
	}
	mr_line_finish(&c.line);
	free(c.work.at);
	free(c.lent.at);
	if (rc)
		*got = (struct fw_claim_got){.next_ms = FW_NO_DATE};
	else
		qsort(out, got->n, sizeof(*out), earlier);
	return rc;
}
