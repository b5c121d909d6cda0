/* SPDX-License-Identifier: ISC */
/*
 * Lending. A claim is one short transaction: it takes rows off the head of the queue that nobody else holds (SKIP LOCKED), gives
 * each a lease and a fence, and ends. Nothing is held while feeds are fetched.
 *
 * The head is read in rounds. Feeds of crowded hosts need budget (hosts.busy_n below host_max, hosts.next_ok_ms reached); one that
 * gets none is parked, so 500 overdue feeds of one host are met once, not at every claim. A round that waits for locks on hosts is
 * the first one only, so that two claims never wait for each other.
 *
 * A claim's number is drawn when all its rows are locked; a fence is that number, shifted, plus 0, 1, ... So the fences of one feed
 * rise: who lends it next has seen the last loan's end. `loans` counts what is still out of each claim.
 */
#include <stdlib.h>

#include "store/maria.h"

#define SCAN_FACTOR 4    /* rows looked at per claim, in multiples of ask->max */
#define SCAN_EXTRA 1000
#define EXPIRED_CLAIMS 8 /* taken back per claim */
#define LOOK_MS 1000
#define MAX_LENT (((size_t)1 << MR_FENCE_BITS) - 1)

/* ---- leases back, unvisited -------------------------------------------------------------------------------------------------- */

struct loan {
	int64_t feed_id, due_ms, host_id;
	bool active;
};

static int by_fence(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

void mr_claims_less(struct maria *m, int64_t *fence, size_t n)
{
	bool any = false;

	if (n)
		qsort(fence, n, sizeof(*fence), by_fence);
	for (size_t i = 0, from = 0; i < n; i++) {
		if (i + 1 < n && fence[i + 1] >> MR_FENCE_BITS == fence[i] >> MR_FENCE_BITS)
			continue;
		mr_put(m, "UPDATE loans SET left_n = left_n - ? WHERE id = ?", "ii", MR_INT(i + 1 - from), fence[i] >> MR_FENCE_BITS);
		from = i + 1;
		any = true;
	}
	for (size_t i = 0; i < n && any; i++) {
		if (!i || fence[i] >> MR_FENCE_BITS != fence[i - 1] >> MR_FENCE_BITS)
			mr_put(m, "DELETE FROM loans WHERE id = ? AND left_n <= 0", "i", fence[i] >> MR_FENCE_BITS);
	}
}

/* End these loans, as far as they are still what they were; feeds that are active go back into the queue. */
static int loans_return(struct maria *m, int64_t now_ms, const int64_t *feed_id, const int64_t *fence, size_t n, bool skip, struct fw_err *err)
{
	struct mr_rows gone = MR_DELETE("leases", "feed_id");
	struct loan *loan = calloc(n + 1, sizeof(*loan));
	int64_t *host = calloc(n + 1, sizeof(*host)), *ended = calloc(n + 1, sizeof(*ended));
	struct mr_line l;
	struct mr_res r;
	size_t found = 0;
	int rc = loan && host && ended ? 0 : mr_no_memory(m, err);

	mr_line_init(&l, now_ms);

	if (!rc && n) {
		fw_buf_adds(&m->sql, m->sql.len ? ";" : "");
		fw_buf_adds(&m->sql, "SELECT l.feed_id, l.fence, l.host_id, w.status, w.due_at_ms FROM leases l FORCE INDEX (PRIMARY)"
			" JOIN wheel w ON w.feed_id = l.feed_id WHERE (l.feed_id, l.fence) IN (");
		for (size_t i = 0; i < n; i++)
			fw_buf_addf(&m->sql, "%s(%lld,%lld)", i ? "," : "", (long long)feed_id[i], (long long)fence[i]);
		fw_buf_addc(&m->sql, ')');
		mr_in(m, " AND l.feed_id", feed_id, n);
		fw_buf_adds(&m->sql, skip ? " FOR UPDATE SKIP LOCKED" : " ORDER BY l.feed_id FOR UPDATE");
		rc = mr_answer(m, &r, err);
		while (!rc && mr_row(&r)) {
			host[found] = mr_int(&r, 2);
			ended[found] = mr_int(&r, 1);
			loan[found++] = (struct loan){mr_int(&r, 0), mr_int(&r, 4), mr_int(&r, 2), mr_int(&r, 3) == FW_FEED_ACTIVE};
		}
	}
	for (size_t i = 0; i < found; i++)
		mr_rows_add(m, &gone, "i", loan[i].feed_id);
	mr_rows_end(m, &gone);
	mr_claims_less(m, ended, found);
	rc = rc ? rc : mr_line_hosts(m, &l, host, found, 1, false, err);
	for (size_t i = 0; i < found && !rc; i++) {
		if (loan[i].host_id)
			mr_line_return(&l, loan[i].host_id, true, 0);
		if (loan[i].active)
			mr_line_on(&l, loan[i].feed_id, loan[i].due_ms, loan[i].host_id, 0);
	}
	rc = rc ? rc : mr_line_write(m, &l, err);
	mr_line_finish(&l);
	free(loan);
	free(host);
	free(ended);
	return rc;
}

struct release {
	const struct fw_lease *lease;
	size_t n;
	int64_t now_ms;
};

static int release_in(struct maria *m, void *arg, struct fw_err *err)
{
	const struct release *w = arg;
	int64_t *feed = calloc(w->n, sizeof(*feed)), *fence = calloc(w->n, sizeof(*fence));
	int rc = feed && fence ? 0 : mr_no_memory(m, err);

	for (size_t i = 0; i < w->n && !rc; i++) {
		feed[i] = w->lease[i].feed.id;
		fence[i] = w->lease[i].fence;
	}
	rc = rc ? rc : loans_return(m, w->now_ms, feed, fence, w->n, false, err);
	free(feed);
	free(fence);
	return rc;
}

int mr_release(struct fw_store *st, const struct fw_lease *lease, size_t n, struct fw_err *err)
{
	struct release w = {lease, n, 0};
	int rc = mr_now(mr_of(st), 0, &w.now_ms, err);

	return rc ? rc : mr_transact(mr_of(st), release_in, &w, err);
}

/* The lease of a feed that somebody deleted by hand. */
static void ghost_drop(struct maria *m, int64_t feed_id, int64_t fence, int64_t host_id)
{
	mr_put(m, "DELETE FROM leases WHERE feed_id = ?", "i", feed_id);
	mr_put(m, "UPDATE hosts SET busy_n = busy_n - 1 WHERE id = ?", "i", host_id);
	mr_claims_less(m, &fence, 1);
}

/*
 * Take back all that these claims still have out. Their leases are looked up without a lock, then locked by key. wait false: those
 * that are being given back at this very moment are left to the next one who comes by.
 */
static int claims_end(struct maria *m, int64_t now_ms, const int64_t *id, size_t n, bool wait, struct fw_err *err)
{
	struct mr_ids feed = {0}, fence = {0};
	bool any = false;
	struct mr_res r;
	int rc;

	fw_buf_adds(&m->sql, m->sql.len ? ";" : "");
	fw_buf_adds(&m->sql, "SELECT l.feed_id, l.fence, l.host_id, w.feed_id FROM leases l LEFT JOIN wheel w ON w.feed_id = l.feed_id");
	mr_in(m, " WHERE l.fence >> 20", id, n);
	rc = mr_answer(m, &r, err);
	while (!rc && mr_row(&r)) {
		any = true;
		if (!r.row[3]) {
			ghost_drop(m, mr_int(&r, 0), mr_int(&r, 1), mr_int(&r, 2));
			continue;
		}
		rc = mr_ids_add(m, &feed, mr_int(&r, 0), err);
		rc = rc ? rc : mr_ids_add(m, &fence, mr_int(&r, 1), err);
	}
	mr_done(&r);
	rc = rc || !feed.n ? rc : loans_return(m, now_ms, feed.at, fence.at, feed.n, !wait, err);
	if (!rc && !any) { /* nothing out, whatever they count */
		fw_buf_adds(&m->sql, m->sql.len ? ";DELETE FROM loans WHERE " : "DELETE FROM loans WHERE ");
		mr_in(m, "id", id, n);
	}
	free(feed.at);
	free(fence.at);
	return rc;
}

/* Claims that `sql` finds, at most EXPIRED_CLAIMS of them; *n: how many there were. */
static int claims_find(struct maria *m, int64_t *id, size_t *n, struct fw_err *err, const char *sql, const char *worker, int64_t now)
{
	struct mr_res r;
	int rc = worker ? mr_ask(m, &r, err, sql, "s", fw_str(worker)) : mr_ask(m, &r, err, sql, "i", now);

	*n = 0;
	while (!rc && mr_row(&r)) {
		if (*n < EXPIRED_CLAIMS)
			id[(*n)++] = mr_int(&r, 0);
	}
	return rc;
}

static int expire_in(struct maria *m, void *arg, struct fw_err *err)
{
	int64_t id[EXPIRED_CLAIMS];
	size_t n;
	int rc = claims_find(m, id, &n, err, "SELECT id FROM loans FORCE INDEX (loans_until) WHERE until_ms <= ? ORDER BY until_ms"
		" LIMIT 8 FOR UPDATE SKIP LOCKED", NULL, *(int64_t *)arg);

	return rc || !n ? rc : claims_end(m, *(int64_t *)arg, id, n, false, err);
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
	size_t left;
};

static int crash_count(struct maria *m, const struct bury *b, struct fw_err *err)
{
	int64_t had;
	int rc = mr_number(m, 0, &had, err, "SELECT count(*) FROM loans c JOIN leases l ON l.fence >> 20 = c.id WHERE c.worker = ?"
		" AND l.feed_id = ?", "si", fw_str(b->worker), b->feed_id);

	if (!rc && had) /* it had that feed: the feed is charged */
		mr_put(m, "UPDATE wheel SET status = CASE WHEN status = 0 AND crash_n + 1 >= ? THEN ? ELSE status END,"
			" crash_n = crash_n + 1, last_kind = ? WHERE feed_id = ?", "iiii", MR_INT(FW_STORE_CRASH_MAX),
			MR_INT(FW_FEED_QUARANTINED), MR_INT(FW_VISIT_CRASH), b->feed_id);
	return rc;
}

static int bury_in(struct maria *m, void *arg, struct fw_err *err)
{
	struct bury *b = arg;
	int64_t id[EXPIRED_CLAIMS];
	int rc = b->feed_id ? crash_count(m, b, err) : 0;

	rc = rc ? rc : claims_find(m, id, &b->left, err, "SELECT id FROM loans FORCE INDEX (loans_worker) WHERE worker = ?"
		" ORDER BY id LIMIT 8 FOR UPDATE", b->worker, 0);
	return rc || !b->left ? rc : claims_end(m, b->now_ms, id, b->left, true, err);
}

int mr_bury(struct fw_store *st, const char *worker, int64_t crashed_feed_id, int64_t now_ms, struct fw_err *err)
{
	struct bury b = {worker, crashed_feed_id, 0, 0};
	int rc = mr_now(mr_of(st), now_ms, &b.now_ms, err), rounds = 0;

	while (!rc) {
		rc = mr_transact(mr_of(st), bury_in, &b, err);
		b.feed_id = 0; /* charged once */
		if (!b.left || ++rounds == 10000)
			break;
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
		" UNION ALL SELECT count(*), min(until_ms) FROM leases l LEFT JOIN loans c ON c.id = l.fence >> 20 WHERE l.due_at_ms <= ?",
		"iiiii", due_before_ms, due_before_ms, due_before_ms, due_before_ms, due_before_ms);

	while (!rc && mr_row(&r)) {
		int64_t wake = mr_date(&r, 1);

		*n += mr_int(&r, 0);
		if (wake != FW_NO_DATE && (*wake_ms == FW_NO_DATE || wake < *wake_ms))
			*wake_ms = wake;
	}
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

/* What was lent, to be read back with the claim's number. */
static void lend(struct claim *c)
{
	struct maria *m = c->m;
	struct mr_rows leases = {"INSERT INTO leases (feed_id, fence, due_at_ms, host_id) VALUES "};

	mr_put(m, "INSERT INTO loans (lent_n, left_n, until_ms, worker) VALUES (?, ?, ?, ?)", "iiis", MR_INT(c->lent.n),
		MR_INT(c->lent.n), c->now_ms + c->ask->lease_ms, fw_str(c->ask->worker));
	mr_put(m, "SET @claim = LAST_INSERT_ID() << 20", "");
	for (size_t i = 0; i < c->lent.n; i++) {
		mr_rows_next(m, &leases);
		mr_value_int(m, c->lent.at[i].feed_id);
		fw_buf_addf(&m->sql, ",@claim+%zu,", i);
		mr_value_int(m, c->lent.at[i].due_ms);
		fw_buf_addc(&m->sql, ',');
		mr_value_int(m, c->lent.at[i].host_id);
		fw_buf_addc(&m->sql, ')');
	}
}

static int by_feed(const void *a, const void *b)
{
	const struct mr_place *const *x = a, *const *y = b;

	return (*x)->feed_id < (*y)->feed_id ? -1 : (*x)->feed_id > (*y)->feed_id;
}

static int earlier(const void *a, const void *b)
{
	const struct fw_lease *x = a, *y = b;

	if (x->feed.due_at_ms != y->feed.due_at_ms)
		return x->feed.due_at_ms < y->feed.due_at_ms ? -1 : 1;
	return x->fence < y->fence ? -1 : x->fence > y->fence;
}

/* Leases of feeds that somebody deleted by hand: they end at once, and the others are not held up. */
static int ghosts_drop(struct claim *c, const struct mr_place **place, const bool *seen, int64_t first_fence, struct fw_err *err)
{
	struct maria *m = c->m;

	for (size_t i = 0; i < c->lent.n; i++) {
		if (!seen[i])
			ghost_drop(m, place[i]->feed_id, first_fence, place[i]->host_id);
	}
	return mr_flush(m, err);
}

/* Rows of feeds, each told to the lease of its place. */
static int feeds_out(struct claim *c, struct mr_res *r, const struct mr_place **place, bool *seen, int64_t *claim, struct fw_err *err)
{
	while (mr_row(r)) {
		struct fw_lease *l = &c->out[c->got->n];
		const struct mr_place key = {.feed_id = mr_int(r, 1)}, *k = &key, **found;

		*claim = mr_int(r, 0) >> MR_FENCE_BITS;
		found = bsearch(&k, place, c->lent.n, sizeof(*place), by_feed);
		if (!found)
			continue;
		seen[found - place] = true;
		(void)mr_feed_read(r, 1, &l->feed);
		l->fence = l->feed.fence = (*claim << MR_FENCE_BITS) + (*found - c->lent.at);
		l->until_ms = l->feed.lease_until_ms = c->now_ms + c->ask->lease_ms;
		if (!fw_store_feed_dup(c->a, &l->feed)) {
			mr_done(r);
			return mr_no_memory(c->m, err);
		}
		c->got->n++;
	}
	return 0;
}

/* Write it all down, and hand the feeds out. */
static int claim_write(struct claim *c, struct fw_err *err)
{
	struct maria *m = c->m;
	const struct mr_place **place = calloc(c->lent.n + 1, sizeof(struct mr_place *));
	bool *seen = calloc(c->lent.n + 1, sizeof(*seen));
	int64_t claim = 0;
	struct mr_res r;
	int rc = place && seen ? mr_line_write(m, &c->line, err) : mr_no_memory(m, err);

	for (size_t i = 0; i < c->lent.n && !rc; i++)
		place[i] = &c->lent.at[i];
	if (!rc && c->lent.n) {
		qsort(place, c->lent.n, sizeof(struct mr_place *), by_feed);
		lend(c);
		fw_buf_adds(&m->sql, ";SELECT @claim, ");
		mr_feed_columns(m);
		fw_buf_adds(&m->sql, " FROM wheel w FORCE INDEX (PRIMARY) STRAIGHT_JOIN feeds f ON f.id = w.feed_id WHERE w.feed_id IN (");
		for (size_t i = 0; i < c->lent.n; i++)
			fw_buf_addf(&m->sql, "%s%lld", i ? "," : "", (long long)place[i]->feed_id);
		fw_buf_addc(&m->sql, ')');
		rc = mr_answer(m, &r, err);
		rc = rc ? rc : feeds_out(c, &r, place, seen, &claim, err);
		if (!rc && c->got->n < c->lent.n)
			rc = ghosts_drop(c, place, seen, claim << MR_FENCE_BITS, err);
		if (!rc && !m->first_fence)
			m->first_fence = claim << MR_FENCE_BITS;
	}
	free(place);
	free(seen);
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
	rc = rc ? rc : claims_expire(c.m, c.now_ms, err);
	if (!rc && !ask->max)
		rc = next_wake(&c, err);
	else if (!rc)
		rc = mr_transact(c.m, claim_in, &c, err);
	mr_line_finish(&c.line);
	free(c.work.at);
	free(c.lent.at);
	if (rc)
		*got = (struct fw_claim_got){.next_ms = FW_NO_DATE};
	else
		qsort(out, got->n, sizeof(*out), earlier);
	return rc;
}
