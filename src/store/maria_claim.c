/* SPDX-License-Identifier: ISC */
/*
 * Lending. A claim is one short transaction: it takes rows off the head of the queue that nobody else holds (SKIP LOCKED), gives
 * each a lease and a fence, and ends. Nothing is held while feeds are fetched.
 *
 * The head is read in rounds. Feeds of crowded hosts need budget (host.h); one that gets none is parked, so 500 overdue feeds of one
 * host are met once, not at every claim. While a host has budget left, its parked feeds follow one by one, behind what the round has
 * read; what goes ahead of its time gets the room that is left in the end. A round that waits for locks on hosts is the first one only,
 * so that two claims never wait for each other.
 *
 * A claim that leaves slow feeds out reads the queue beside the wheel without locks, and locks what it wants by its key: the slow
 * ones stay where they are, and in nobody's way. A claim that names its feeds looks where they stand, in the queue or parked, and
 * locks those; what it does not get stays where it is.
 *
 * What is lent is written down in `loans` (maria_loans.c): one row, however many feeds.
 */
#include <stdlib.h>

#include "store/maria.h"

#define SCAN_FACTOR 4    /* rows looked at per claim, in multiples of ask->max */
#define SCAN_EXTRA 1000
#define MAX_LENT 10000   /* by one claim */
#define WISHES_MIN 100   /* feeds that were named, looked at together */
#define WISHES_MAX 1000
#define WISH_HEADS 4     /* parked feeds of their hosts, that may get the turn */

struct wish { /* a feed that was named */
	int64_t feed_id;
	size_t rank;
};

struct claim {
	struct maria *m;
	const struct fw_claim_ask *ask;
	struct fw_arena *a;
	struct fw_lease *out;
	struct fw_claim_got *got;
	int64_t now_ms, before_ms;
	int64_t me;            /* as holder of hosts */
	struct fw_claim_ask plain; /* the ask, but for host_ahead */
	const struct fw_claim_ask *terms; /* of the budget just now: plain, or the whole ask */
	struct mr_line line;
	struct mr_places work; /* read from the queue, and turns that were given now */
	struct mr_places lent;
	size_t at;             /* of work: what comes next */
	bool skipped;          /* hosts that others hold were left out */
	struct wish *wish;     /* each feed once, in the order of the ask */
	size_t wish_n;
	struct mr_places found; /* where wishes stand: parked ones are not moved, and wake never */
	int64_t next_ms;       /* of wishes: when the first may be lent that could not be now */
};

static bool is_full(const struct claim *c)
{
	return c->lent.n >= FW_MIN(c->ask->max, MAX_LENT);
}

static bool has_budget(const struct claim *c, const struct mr_host *h)
{
	return fw_budget_may(&h->budget, c->terms, c->me, c->now_ms);
}

static void take_off(struct claim *c, const struct mr_place *p)
{
	if (p->stored)
		mr_places_add(&c->line, &c->line.off, p);
}

static bool is_due(const struct claim *c, const struct mr_place *p)
{
	return p->due_ms <= FW_MIN(c->now_ms, c->before_ms) && !p->slow;
}

/* The host's turn goes on: to the end of the work when that feed may be lent now, else into the queue. */
static void turn_on(struct claim *c, struct mr_host *h)
{
	struct mr_place p;

	mr_line_turn(&c->line, h, &p);
	if (p.feed_id)
		mr_places_add(&c->line, is_due(c, &p) ? &c->work : &c->line.on, &p);
}

/* In the end: hosts whose turn was lent give it on, when this worker may come back for more. */
static void turns_give(struct claim *c)
{
	for (size_t i = 0; i < c->line.host_n; i++) {
		if (!fw_budget_full(&c->line.host[i].budget, c->ask, c->me))
			mr_line_turn(&c->line, &c->line.host[i], NULL);
	}
}

/* A feed of a crowded host: lend it, or park it. */
static void lend_crowded(struct claim *c, const struct mr_place *p)
{
	struct mr_host *h = mr_line_host(&c->line, p->host_id);
	struct mr_place parked = *p;

	if (!h) {
		c->skipped = true; /* its row stays in the queue */
		return;
	}
	take_off(c, p);
	h->turn_n -= p->moved;
	if (has_budget(c, h)) {
		mr_places_add(&c->line, &c->lent, p);
		fw_budget_lend(&h->budget, c->ask, c->me, c->now_ms);
	} else {
		c->got->deferred_n++;
		h->parked_n++;
		parked.stored = parked.gone = false;
		mr_places_add(&c->line, &c->line.parked, &parked);
	}
	if (has_budget(c, h))
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

/* ---- the queue's head ---------------------------------------------------------------------------------------------------------- */

static int hosts_lock(struct claim *c, const struct mr_place *of, size_t n, size_t heads, struct fw_err *err)
{
	int64_t *host = calloc(n + 1, sizeof(*host));
	int rc = host && !c->line.failed ? 0 : mr_no_memory(c->m, err);

	for (size_t i = 0; i < n && !rc; i++)
		host[i] = of[i].host_id;
	rc = rc ? rc : mr_line_hosts(c->m, &c->line, host, n, heads, c->line.host_n > 0, err);
	free(host);
	return rc;
}

/* Rows (wake_at_ms, feed_id, host_id, due_at_ms) of the queue. */
static void places_read(struct claim *c, struct mr_res *r, struct mr_places *to)
{
	while (mr_row(r)) {
		struct mr_place p = {.wake_ms = mr_int(r, 0), .feed_id = mr_int(r, 1), .host_id = mr_int(r, 2), .moved = r->row[3] != NULL,
			.due_ms = r->row[3] ? mr_int(r, 3) : mr_int(r, 0), .stored = true};

		mr_places_add(&c->line, to, &p);
	}
}

/* Those of n places in the queue that are there still and nobody holds: locked, and put behind `to`. */
static int places_lock(struct claim *c, const struct mr_place *of, size_t n, struct mr_places *to, struct fw_err *err)
{
	struct mr_rows keys = {"SELECT q.wake_at_ms, q.feed_id, q.host_id, q.due_at_ms FROM JSON_TABLE('[", "]', '$[*]' COLUMNS"
		" (k BIGINT PATH '$[0]', l BIGINT PATH '$[1]')) j STRAIGHT_JOIN queue q FORCE INDEX (PRIMARY) ON q.wake_at_ms = j.k"
		" AND q.feed_id = j.l FOR UPDATE", .whole = true, .json = true};
	bool any = false;
	struct mr_res r;
	int rc;

	for (size_t i = 0; i < n; i++) {
		if (of[i].stored)
			mr_rows_add(c->m, &keys, "ii", of[i].wake_ms, of[i].feed_id);
		any |= of[i].stored;
	}
	mr_rows_end(c->m, &keys);
	if (!any)
		return 0;
	/* MySQL would lock the list too, and cannot; MariaDB has no OF */
	fw_buf_adds(&c->m->sql, c->m->mysql ? " OF q SKIP LOCKED" : " SKIP LOCKED");
	rc = mr_answer(c->m, &r, err);
	if (!rc)
		places_read(c, &r, to);
	return !rc && c->line.failed ? mr_no_memory(c->m, err) : rc;
}

#define COLUMNS "SELECT q.wake_at_ms, q.feed_id, q.host_id, q.due_at_ms FROM "
#define QUICK " STRAIGHT_JOIN wheel w FORCE INDEX (PRIMARY) ON w.feed_id = q.feed_id"

/* Rows of the queue that were asked for by the script, into the work, and the hosts they need. *last: the last one that was seen. */
static int round_read(struct claim *c, size_t *n, struct mr_place *last, struct fw_err *err)
{
	struct mr_places seen = {0}, *to = c->ask->expect_max_us ? &seen : &c->work;
	size_t from = c->work.n, seen_from = to->n;
	struct mr_res r;
	int rc = mr_answer(c->m, &r, err);

	if (!rc)
		places_read(c, &r, to);
	*n = to->n - seen_from;
	if (*n)
		*last = to->at[to->n - 1];
	if (!rc && to == &seen)
		rc = places_lock(c, seen.at, seen.n, &c->work, err);
	rc = rc ? rc : hosts_lock(c, c->work.at + from, c->work.n - from,
		c->ask->host_max ? (size_t)c->ask->host_max + c->ask->host_ahead : c->ask->max, err);
	free(seen.at);
	return rc;
}

/* Rounds of the queue's head. */
static int claim_head(struct claim *c, struct fw_err *err)
{
	size_t left = c->ask->max * SCAN_FACTOR + SCAN_EXTRA, n, want;
	struct mr_place last = {.wake_ms = INT64_MIN, .feed_id = -1};
	bool quick = c->ask->expect_max_us;
	int rc;

	do {
		want = FW_MIN(c->ask->max - c->lent.n, left);
		mr_put(c->m, quick ? COLUMNS "queue q FORCE INDEX (PRIMARY)" QUICK " WHERE q.wake_at_ms >= ? AND q.wake_at_ms <= ?"
			" AND (q.wake_at_ms > ? OR q.feed_id > ?) AND (w.expect_us <= ? OR coalesce(q.due_at_ms, q.wake_at_ms) <= 1)" :
			COLUMNS "queue q FORCE INDEX (PRIMARY) WHERE q.wake_at_ms >= ? AND q.wake_at_ms <= ?"
			" AND (q.wake_at_ms > ? OR q.feed_id > ?)", "iiiii", last.wake_ms, FW_MIN(c->now_ms, c->before_ms), last.wake_ms, last.feed_id,
			c->ask->expect_max_us);
		fw_buf_addf(&c->m->sql, " ORDER BY q.wake_at_ms, q.feed_id LIMIT %zu%s", want, quick ? "" : " FOR UPDATE SKIP LOCKED");
		rc = round_read(c, &n, &last, err); /* the next round begins behind these, which are ours */
		if (rc)
			return rc;
		work_off(c);
		left -= n;
	} while (n == want && left && !is_full(c));
	return 0;
}

/* With a due_before in the past, feeds that were due before it may stand behind it, because they were moved. */
static int claim_moved(struct claim *c, struct fw_err *err)
{
	struct mr_place last;
	size_t n;
	int rc;

	mr_put(c->m, c->ask->expect_max_us ? COLUMNS "moved v STRAIGHT_JOIN queue q ON q.wake_at_ms = v.wake_at_ms AND q.feed_id = v.feed_id"
		QUICK " WHERE v.wake_at_ms > ? AND v.wake_at_ms <= ? AND v.due_at_ms <= ? AND (w.expect_us <= ? OR v.due_at_ms <= 1)" :
		COLUMNS "moved v JOIN queue q ON q.wake_at_ms = v.wake_at_ms AND q.feed_id = v.feed_id"
		" WHERE v.wake_at_ms > ? AND v.wake_at_ms <= ? AND v.due_at_ms <= ?", "iiii", c->before_ms, c->now_ms, c->before_ms,
		c->ask->expect_max_us);
	fw_buf_addf(&c->m->sql, " ORDER BY v.wake_at_ms LIMIT %zu%s", c->ask->max - c->lent.n,
		c->ask->expect_max_us ? "" : " FOR UPDATE SKIP LOCKED");
	rc = round_read(c, &n, &last, err);
	if (!rc)
		work_off(c);
	return rc;
}

static int parked_order(const void *a, const void *b)
{
	const struct mr_place *x = a, *y = b;

	if (x->due_ms != y->due_ms)
		return x->due_ms < y->due_ms ? -1 : 1;
	return x->feed_id < y->feed_id ? -1 : x->feed_id > y->feed_id;
}

/* Parked feeds go along with those of their hosts, as far as this worker may have some ahead. */
static void claim_along(struct claim *c)
{
	struct mr_places *parked = &c->line.parked;

	c->terms = c->ask;
	if (parked->n)
		qsort(parked->at, parked->n, sizeof(*parked->at), parked_order);
	for (size_t i = 0; i < parked->n && !is_full(c); i++) {
		struct mr_place *p = &parked->at[i];
		struct mr_host *h = mr_line_host(&c->line, p->host_id);

		if (p->gone || !is_due(c, p) || !has_budget(c, h))
			continue;
		p->gone = true;
		h->parked_n--;
		c->got->deferred_n -= !p->stored; /* it was parked just now */
		mr_places_add(&c->line, &c->lent, p);
		fw_budget_lend(&h->budget, c->ask, c->me, c->now_ms);
	}
}

static int claim_line(struct claim *c, struct fw_err *err)
{
	int rc;

	c->terms = &c->plain;
	rc = claim_head(c, err);
	if (!rc && c->before_ms < c->now_ms && !is_full(c))
		rc = claim_moved(c, err);
	for (; c->at < c->work.n && !rc; c->at++) { /* turns that were given, and for which there is no room left */
		if (!c->work.at[c->at].stored)
			mr_places_add(&c->line, &c->line.on, &c->work.at[c->at]);
	}
	if (!rc && c->ask->host_ahead)
		claim_along(c);
	return rc;
}

/* ---- feeds that were named ------------------------------------------------------------------------------------------------------ */

static int by_feed_rank(const void *a, const void *b)
{
	const struct wish *x = a, *y = b;

	if (x->feed_id != y->feed_id)
		return x->feed_id < y->feed_id ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int by_rank(const void *a, const void *b)
{
	const struct wish *x = a, *y = b;

	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Each of them once, in their order. */
static int wishes_gather(struct claim *c, struct fw_err *err)
{
	size_t kept = 0;

	c->wish = calloc(c->ask->id_n, sizeof(*c->wish));
	if (!c->wish)
		return mr_no_memory(c->m, err);
	for (size_t i = 0; i < c->ask->id_n; i++)
		c->wish[i] = (struct wish){c->ask->ids[i], i};
	qsort(c->wish, c->ask->id_n, sizeof(*c->wish), by_feed_rank);
	for (size_t i = 0; i < c->ask->id_n; i++) {
		if (!kept || c->wish[kept - 1].feed_id != c->wish[i].feed_id)
			c->wish[kept++] = c->wish[i];
	}
	c->wish_n = kept;
	qsort(c->wish, c->wish_n, sizeof(*c->wish), by_rank);
	return 0;
}

static void wake_note(struct claim *c, int64_t at_ms)
{
	if (c->next_ms == FW_NO_DATE || at_ms < c->next_ms)
		c->next_ms = at_ms;
}

/* A row of wishes_find. */
static void wish_found(struct claim *c, const struct mr_res *r)
{
	struct mr_place p = {.feed_id = mr_int(r, 0), .due_ms = mr_int(r, 1), .stored = r->row[4] != NULL};
	int64_t expect_us = mr_int(r, 2);

	p.host_id = mr_int(r, p.stored ? 5 : 3);
	p.wake_ms = mr_int(r, 4);
	if (c->ask->expect_max_us && expect_us > c->ask->expect_max_us && p.due_ms > FW_DUE_FIRST)
		return;
	if (p.due_ms > FW_MIN(c->now_ms, c->before_ms)) {
		wake_note(c, p.due_ms);
	} else if (p.stored && !p.host_id && p.wake_ms > c->now_ms) { /* its host is left alone till then */
		c->got->deferred_n++;
		wake_note(c, p.wake_ms);
	} else {
		mr_places_add(&c->line, &c->found, &p);
	}
}

/* Where n wishes stand: c->found. Without locks, so it may not be true any more. */
static int wishes_find(struct claim *c, const struct wish *w, size_t n, struct fw_err *err)
{
	struct fw_buf *b = &c->m->sql;
	struct mr_res r;
	int rc;

	mr_put(c->m, "SELECT w.feed_id, w.due_at_ms, w.expect_us, f.host_id, q.wake_at_ms, q.host_id FROM JSON_TABLE('[", "");
	for (size_t i = 0; i < n; i++)
		fw_buf_addf(b, "%s%lld", i ? "," : "", (long long)w[i].feed_id);
	fw_buf_adds(b, "]', '$[*]' COLUMNS (i FOR ORDINALITY, k BIGINT PATH '$')) j STRAIGHT_JOIN wheel w FORCE INDEX (PRIMARY) ON w.feed_id = j.k"
		" STRAIGHT_JOIN feeds f FORCE INDEX (PRIMARY) ON f.id = w.feed_id LEFT JOIN moved v FORCE INDEX (PRIMARY) ON v.feed_id = w.feed_id"
		" LEFT JOIN queue q FORCE INDEX (PRIMARY) ON q.wake_at_ms = coalesce(v.wake_at_ms, w.due_at_ms) AND q.feed_id = w.feed_id"
		" LEFT JOIN parked p FORCE INDEX (PRIMARY) ON p.host_id = f.host_id AND p.due_at_ms = w.due_at_ms AND p.feed_id = w.feed_id"
		" WHERE w.status = 0 AND (q.feed_id IS NOT NULL OR p.feed_id IS NOT NULL) ORDER BY j.i");
	c->found.n = 0;
	rc = mr_answer(c->m, &r, err);
	while (!rc && mr_row(&r))
		wish_found(c, &r);
	return !rc && c->line.failed ? mr_no_memory(c->m, err) : rc;
}

static int place_by_feed(const void *a, const void *b)
{
	const struct mr_place *x = a, *y = b;

	return x->feed_id < y->feed_id ? -1 : x->feed_id > y->feed_id;
}

/* Those in the queue are locked there; others have them, or have moved them: gone. */
static int wishes_lock(struct claim *c, struct fw_err *err)
{
	struct mr_places locked = {0};
	int rc = places_lock(c, c->found.at, c->found.n, &locked, err);

	if (!rc && locked.n)
		qsort(locked.at, locked.n, sizeof(*locked.at), place_by_feed);
	for (size_t i = 0; i < c->found.n && !rc; i++) {
		struct mr_place *p = &c->found.at[i], *now;

		if (!p->stored)
			continue;
		now = locked.n ? bsearch(p, locked.at, locked.n, sizeof(*p), place_by_feed) : NULL;
		if (now)
			*p = *now;
		else
			p->gone = true;
	}
	free(locked.at);
	return rc;
}

/* This feed among the parked ones that are known; they are few. */
static struct mr_place *parked_find(struct claim *c, int64_t feed_id)
{
	for (size_t i = 0; i < c->line.parked.n; i++) {
		if (c->line.parked.at[i].feed_id == feed_id && !c->line.parked.at[i].gone)
			return &c->line.parked.at[i];
	}
	return NULL;
}

/* Those that are parked: known to the line afterwards, when they are there still. Their hosts are locked, and so they stay. */
static int wishes_parked(struct claim *c, struct fw_err *err)
{
	struct mr_rows keys = {"SELECT p.host_id, p.due_at_ms, p.feed_id FROM JSON_TABLE('[", "]', '$[*]' COLUMNS (h BIGINT PATH '$[0]',"
		" d BIGINT PATH '$[1]', f BIGINT PATH '$[2]')) j STRAIGHT_JOIN parked p FORCE INDEX (PRIMARY) ON p.host_id = j.h"
		" AND p.due_at_ms = j.d AND p.feed_id = j.f", .whole = true, .json = true};
	bool any = false;
	struct mr_res r;
	int rc;

	for (size_t i = 0; i < c->found.n; i++) {
		const struct mr_place *p = &c->found.at[i];

		if (p->stored || !mr_line_host(&c->line, p->host_id))
			continue;
		mr_rows_add(c->m, &keys, "iii", p->host_id, p->due_ms, p->feed_id);
		any = true;
	}
	mr_rows_end(c->m, &keys);
	if (!any)
		return 0;
	rc = mr_answer(c->m, &r, err);
	while (!rc && mr_row(&r)) {
		struct mr_place p = {.host_id = mr_int(&r, 0), .due_ms = mr_int(&r, 1), .feed_id = mr_int(&r, 2), .stored = true};

		if (!parked_find(c, p.feed_id))
			mr_places_add(&c->line, &c->line.parked, &p);
	}
	return !rc && c->line.failed ? mr_no_memory(c->m, err) : rc;
}

/* Its host has no budget for it: when will it have some? A loan that returns is news by itself. */
static void wish_defer(struct claim *c, const struct mr_host *h)
{
	c->got->deferred_n++;
	if (!fw_budget_full(&h->budget, c->ask, c->me))
		wake_note(c, FW_MAX(fw_budget_from(&h->budget, c->ask, c->me), c->now_ms));
}

/* Lend it, or leave it where it stands. */
static void wish_lend(struct claim *c, const struct mr_place *p)
{
	struct mr_host *h = mr_line_host(&c->line, p->host_id);
	struct mr_place *parked = p->stored || !h ? NULL : parked_find(c, p->feed_id);

	if (p->gone || (p->host_id && h && !p->stored && !parked))
		return;
	if (p->host_id && !h) {
		c->skipped = true;
		return;
	}
	if (h && !has_budget(c, h)) {
		wish_defer(c, h);
		return;
	}
	if (parked) {
		parked->gone = true;
		h->parked_n--;
	} else {
		take_off(c, p);
	}
	mr_places_add(&c->line, &c->lent, p);
	if (!h)
		return;
	h->turn_n -= p->moved;
	fw_budget_lend(&h->budget, c->ask, c->me, c->now_ms);
}

static int claim_wishes(struct claim *c, struct fw_err *err)
{
	int rc = 0;

	c->terms = c->ask;
	for (size_t from = 0, n; from < c->wish_n && !is_full(c) && !rc; from += n) {
		n = FW_MIN(FW_MAX((c->ask->max - c->lent.n) * 2, WISHES_MIN), WISHES_MAX);
		n = FW_MIN(n, c->wish_n - from);
		rc = wishes_find(c, c->wish + from, n, err);
		rc = rc ? rc : wishes_lock(c, err);
		rc = rc ? rc : hosts_lock(c, c->found.at, c->found.n, WISH_HEADS, err);
		rc = rc ? rc : wishes_parked(c, err);
		for (size_t i = 0; i < c->found.n && !is_full(c) && !rc; i++)
			wish_lend(c, &c->found.at[i]);
	}
	return rc;
}

/* ---- lending --------------------------------------------------------------------------------------------------------------------- */

static int earlier(const void *a, const void *b)
{
	const struct fw_lease *x = a, *y = b;

	if (x->feed.due_at_ms != y->feed.due_at_ms)
		return x->feed.due_at_ms < y->feed.due_at_ms ? -1 : 1;
	return x->fence < y->fence ? -1 : x->fence > y->fence;
}

static void host_tell(struct claim *c, int64_t host_id, struct fw_lease *l)
{
	const struct mr_host *h = mr_line_host(&c->line, host_id);

	l->host_id = host_id;
	l->host_gap_ms = h ? fw_budget_gap(&h->budget, c->ask) : c->ask->host_gap_ms;
	l->host_expect_us = h ? h->budget.expect_us : 0;
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
		host_tell(c, c->lent.at[at].host_id, l);
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

/* When the first of the queue is due, or a lease runs out. What this claim would not take does not count. */
static int next_wake(struct claim *c, struct fw_err *err)
{
	struct mr_res r;
	int rc;

	if ((c->ask->max && is_full(c)) || c->skipped) { /* there is more */
		c->got->next_ms = c->now_ms;
		return 0;
	}
	c->got->next_ms = c->next_ms;
	if (!c->ask->ids && c->ask->expect_max_us)
		mr_put(c->m, "(SELECT q.wake_at_ms FROM queue q FORCE INDEX (PRIMARY)" QUICK " WHERE q.wake_at_ms > ? AND (w.expect_us <= ?"
			" OR q.due_at_ms <= 1) ORDER BY q.wake_at_ms LIMIT 1) UNION ALL ", "ii", c->now_ms, c->ask->expect_max_us);
	else if (!c->ask->ids)
		mr_put(c->m, "SELECT min(wake_at_ms) FROM queue UNION ALL ", "");
	else
		mr_put(c->m, "", "");
	fw_buf_adds(&c->m->sql, "SELECT min(until_ms) FROM loans");
	rc = mr_answer(c->m, &r, err);
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
	c->line.expect_max_us = c->ask->expect_max_us;
	c->work.n = c->lent.n = c->at = 0;
	c->next_ms = FW_NO_DATE;
	rc = c->ask->ids ? claim_wishes(c, err) : claim_line(c, err);
	if (!rc)
		turns_give(c);
	rc = rc ? rc : claim_write(c, err);
	return rc ? rc : next_wake(c, err);
}

static int lease_by_feed(const void *a, const void *b)
{
	const struct fw_lease *x = a, *y = b;

	return x->feed.id < y->feed.id ? -1 : x->feed.id > y->feed.id;
}

/* What was lent of the wishes, in their order. */
static int wishes_order(struct claim *c, struct fw_err *err)
{
	struct fw_lease *by_id = calloc(c->got->n + 1, sizeof(*by_id));
	size_t n = 0;

	if (!by_id)
		return mr_no_memory(c->m, err);
	memcpy(by_id, c->out, c->got->n * sizeof(*by_id)); /* as they were lent: by feed */
	for (size_t i = 0; i < c->wish_n && n < c->got->n; i++) {
		struct fw_lease key = {.feed = {.id = c->wish[i].feed_id}};
		const struct fw_lease *found = bsearch(&key, by_id, c->got->n, sizeof(key), lease_by_feed);

		if (found)
			c->out[n++] = *found;
	}
	free(by_id);
	return 0;
}

/* For a claim that takes whatever is due a look costs less than a transaction, when the last one found nothing. */
static int claim_any(struct claim *c, struct fw_err *err)
{
	struct maria *m = c->m;
	bool look = !c->ask->max || (m->idle && !c->ask->expect_max_us);
	int rc = look ? next_wake(c, err) : 0;

	if (rc || !c->ask->max || (look && (c->got->next_ms == FW_NO_DATE || c->got->next_ms > c->now_ms)))
		return rc;
	rc = mr_transact(m, claim_in, c, err);
	m->idle = !rc && !c->got->n && !c->ask->expect_max_us;
	if (!rc)
		qsort(c->out, c->got->n, sizeof(*c->out), earlier);
	return rc;
}

static int claim_named(struct claim *c, struct fw_err *err)
{
	int rc = wishes_gather(c, err);

	rc = rc || !c->ask->max ? rc : mr_transact(c->m, claim_in, c, err);
	return rc || !c->got->n ? rc : wishes_order(c, err);
}

int mr_claim(struct fw_store *st, const struct fw_claim_ask *ask, struct fw_arena *a, struct fw_lease *out,
	struct fw_claim_got *got, struct fw_err *err)
{
	struct claim c = {.m = mr_of(st), .ask = ask, .a = a, .out = out, .got = got, .me = fw_budget_holder(ask->worker),
		.plain = *ask, .next_ms = FW_NO_DATE};
	int rc = mr_now(c.m, ask->now_ms, &c.now_ms, err);

	c.plain.host_ahead = 0;
	c.before_ms = ask->due_before_ms ? ask->due_before_ms : c.now_ms;
	*got = (struct fw_claim_got){.next_ms = FW_NO_DATE};
	rc = rc ? rc : mr_expire(c.m, c.now_ms, err);
	rc = rc ? rc : ask->ids ? claim_named(&c, err) : claim_any(&c, err);
	mr_line_finish(&c.line);
	free(c.work.at);
	free(c.lent.at);
	free(c.found.at);
	free(c.wish);
	if (rc)
		*got = (struct fw_claim_got){.next_ms = FW_NO_DATE};
	return rc;
}
