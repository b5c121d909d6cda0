/* SPDX-License-Identifier: ISC */
/*
 * Lending. An active feed is in exactly one place:
 *
 *   line    waiting for its time. For the only feed of its host (host_id 0) that is all there is to it.
 *   aside   its host has no budget left: parked, neither scanned nor woken until one of the host's loans returns. (Feeds that are
 *           not active lie there too, with host_id 0.)
 *   leases  lent, see sqlite_leases.c.
 *
 * What visits change moves with it. The line is in order of slots of 8 s, and within one in order of arrival. Feeds that come back
 * with due times scattered over some minutes are thus appended to a few dozen slots, that is to a few dozen pages a batch; in exact
 * order nearly each would dirty a page of its own, which then goes to the journal and to the file.
 *
 * A claim first takes back claims whose time is over, then reads the head of the line in rounds, and moves it to the leases in
 * stretches. Feeds of crowded hosts need budget (hosts.busy_n below host_max, hosts.next_ok_ms reached). One that gets none is
 * parked, so 500 overdue feeds of one host are met once, not at every claim; from then on at most one feed of the host stands in
 * line, at the time when the host may be asked next: it "has the turn" (turn_n; its wake_at_ms is set). The invariant that keeps
 * feeds from being forgotten: a host with parked feeds has a turn in the line or a loan that will return, and who returns one gives
 * the turn on.
 *
 * Fences, places in line and rows of visits are numbered by one counter (meta.last_number) and never used again.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/url.h"
#include "store/sqlite.h"

#define SCAN_FACTOR 4     /* rows looked at per claim, in multiples of ask->max */
#define SCAN_EXTRA 1000

struct place { /* a row of the line, and whether it was lent */
	int64_t id, feed_id, host_id, last_visit_id, fence;
	bool moved; /* wake_at_ms was set: it has the turn of its host, or was put off */
	bool gone;  /* somebody deleted the feed by hand */
};

struct host {
	int64_t id, busy_n, turn_n, parked_n, next_ok_ms;
};

/* ---- hosts ------------------------------------------------------------------------------------------------------------ */

static int host_get(struct sqlite *s, int64_t id, struct host *h, struct fw_err *err)
{
	sqlite3_stmt *q = sq_ask(s, SQ_HOST_GET, "SELECT busy_n, turn_n, parked_n, next_ok_ms FROM hosts WHERE id = ?", err, "i", id);
	int rc = q ? sq_row(s, q, err) : err->rc;

	*h = (struct host){.id = id};
	if (rc <= 0)
		return rc;
	h->busy_n = sqlite3_column_int64(q, 0);
	h->turn_n = sqlite3_column_int64(q, 1);
	h->parked_n = sqlite3_column_int64(q, 2);
	h->next_ok_ms = sqlite3_column_int64(q, 3);
	sqlite3_reset(q);
	return 0;
}

static int host_set(struct sqlite *s, const struct host *h, struct fw_err *err)
{
	return sq_do(s, SQ_HOST_SET, "UPDATE hosts SET busy_n = ?, turn_n = ?, parked_n = ?, next_ok_ms = ? WHERE id = ?", err,
		"iiiii", h->busy_n, h->turn_n, h->parked_n, h->next_ok_ms, h->id);
}

int sq_aside_del(struct sqlite *s, int64_t feed_id, struct fw_err *err)
{
	return sq_do(s, SQ_ASIDE_DEL, "DELETE FROM aside WHERE feed_id = ?", err, "i", feed_id);
}

/* Give the host's turn to its earliest parked feed, if there is one and nobody has it. h is changed, not written. */
static int turn_give(struct sqlite *s, struct host *h, struct fw_err *err)
{
	sqlite3_stmt *q;
	int64_t due, feed;
	int rc;

	if (!h->parked_n || h->turn_n)
		return 0;
	q = sq_ask(s, SQ_UNPARK_FIRST, "SELECT due_at_ms, feed_id FROM aside INDEXED BY aside_parked WHERE host_id = ? AND host_id > 0"
		" ORDER BY due_at_ms, feed_id LIMIT 1", err, "i", h->id);
	rc = q ? sq_row(s, q, err) : err->rc;
	if (rc <= 0)
		return rc;
	due = sqlite3_column_int64(q, 0);
	feed = sqlite3_column_int64(q, 1);
	sqlite3_reset(q);
	rc = sq_line_from(s, SQ_ASIDE, feed, feed, h->id, due, FW_MAX(due, h->next_ok_ms), err);
	rc = rc ? rc : sq_aside_del(s, feed, err);
	h->parked_n--;
	h->turn_n++;
	return rc;
}

int sq_host_return(struct sqlite *s, int64_t host_id, bool counted, int64_t cooldown_ms, struct fw_err *err)
{
	struct host h;
	int rc = host_get(s, host_id, &h, err);

	if (rc)
		return rc;
	if (counted && h.busy_n)
		h.busy_n--;
	h.next_ok_ms = FW_MAX(h.next_ok_ms, cooldown_ms);
	rc = turn_give(s, &h, err);
	return rc ? rc : host_set(s, &h, err);
}

/* ---- getting on and off the wheel ------------------------------------------------------------------------------------- */

int sq_wheel_put(struct sqlite *s, const struct fw_feed *f, int64_t status, int64_t host_id, int64_t not_before_ms,
	int64_t last_visit_id, struct fw_err *err)
{
	if (status != FW_FEED_ACTIVE)
		return sq_do(s, SQ_ASIDE_PUT, "INSERT INTO aside (feed_id, host_id, status, " SQ_STATE ") VALUES (?,0,?,?,?,?,?,?,?,?,?,?,?,?,?)",
			err, "iiiiiiiiiiiiis", f->id, status, f->due_at_ms, SQ_INT(f->last_kind), SQ_INT(f->http_status), SQ_INT(f->fail_n),
			SQ_INT(f->crash_n), f->last_visit_ms, f->last_ok_ms, f->last_new_ms, last_visit_id, f->expect_us, f->expect_dev_us, f->why);
	return sq_line_add(s, f, host_id, !host_id && not_before_ms > f->due_at_ms ? not_before_ms : FW_NO_DATE, last_visit_id, err);
}

static int line_del(struct sqlite *s, int64_t id, struct fw_err *err)
{
	return sq_do(s, SQ_LINE_DEL, "DELETE FROM line WHERE id = ?", err, "i", id);
}

/* From the line to aside: parked when host_id is set. */
static int put_aside(struct sqlite *s, int64_t id, int64_t feed_id, int64_t host_id, struct fw_err *err)
{
	int rc = sq_do(s, SQ_ASIDE_FROM_LINE, "INSERT INTO aside (feed_id, host_id, status, " SQ_STATE ") SELECT feed_id, ?, 0, " SQ_STATE
		" FROM line WHERE id = ?", err, "ii", host_id, id);

	sq_place_note(s, feed_id, 0);
	return rc ? rc : line_del(s, id, err);
}

int sq_wheel_off(struct sqlite *s, int64_t feed_id, const struct sq_where *w, struct fw_err *err)
{
	bool turn = w->table == SQ_LINE && w->moved && w->host_id, parked = w->table == SQ_ASIDE && w->host_id;
	struct host h;
	int rc = 0;

	if (w->table == SQ_LINE)
		rc = put_aside(s, w->key, feed_id, 0, err);
	else if (parked)
		rc = sq_do(s, SQ_UNPARK, "UPDATE aside SET host_id = 0 WHERE feed_id = ?", err, "i", feed_id);
	if (rc || (!turn && !parked))
		return rc;
	rc = host_get(s, w->host_id, &h, err);
	h.turn_n -= turn;
	h.parked_n -= parked;
	if (!rc && turn)
		rc = turn_give(s, &h, err);
	return rc ? rc : host_set(s, &h, err);
}

int sq_wheel_on(struct sqlite *s, int64_t feed_id, int64_t due_ms, int64_t host_id, struct fw_err *err)
{
	int rc = sq_line_from(s, SQ_ASIDE, feed_id, feed_id, host_id, due_ms, FW_NO_DATE, err);

	return rc ? rc : sq_aside_del(s, feed_id, err);
}

int sq_lease_return(struct sqlite *s, int64_t fence, struct fw_err *err)
{
	int64_t feed_id, host_id, status, due;
	bool counted;
	sqlite3_stmt *q = sq_ask(s, SQ_LEASE_STATE, "SELECT feed_id, host_id, status, due_at_ms FROM leases WHERE fence = ?", err, "i", fence);
	int rc = q ? sq_row(s, q, err) : err->rc;

	if (rc <= 0)
		return rc;
	feed_id = sqlite3_column_int64(q, 0);
	host_id = sq_lease_host(sqlite3_column_int64(q, 1), &counted);
	status = sqlite3_column_int64(q, 2);
	due = sqlite3_column_int64(q, 3);
	sqlite3_reset(q);
	rc = counted ? sq_host_return(s, host_id, true, 0, err) : 0;
	if (!rc && status == FW_FEED_ACTIVE)
		rc = sq_line_from(s, SQ_LEASES, fence, feed_id, host_id, due, FW_NO_DATE, err);
	else if (!rc)
		rc = sq_do(s, SQ_ASIDE_FROM_LEASE, "INSERT INTO aside (feed_id, host_id, status, " SQ_STATE ") SELECT feed_id, 0, status, "
			SQ_STATE " FROM leases WHERE fence = ?", err, "i", fence);
	return rc ? rc : sq_lease_end(s, fence, err);
}

/* ---- claim ------------------------------------------------------------------------------------------------------------ */

struct claim {
	struct sqlite *s;
	const struct fw_claim_ask *ask;
	struct fw_arena *a;
	struct fw_lease *out;
	struct fw_claim_got *got;
	int64_t now_ms, before_ms;
	struct place *place; /* of one round */
	size_t round_n, round_max;
	struct sq_claimed *claimed;
	size_t lent_n;
	struct sq_range fences;
};

/* Note that a feed was lent under this fence. out: where it was read to, index of its place. */
static void lent(struct claim *c, struct place *p, const struct fw_feed *f, int64_t fence)
{
	p->fence = fence;
	if (!c->lent_n)
		c->fences.first = fence;
	c->fences.last = fence;
	if (c->claimed)
		c->claimed->loan[c->lent_n] = (struct sq_loan){.fence = fence, .feed_id = p->feed_id, .host_id = p->host_id,
			.last_visit_id = p->last_visit_id, .last_new_ms = f->last_new_ms};
	c->lent_n++;
}

/* The places from..to - 1, which are all there is between them that wakes by then, from the line to the leases. */
static int lend(struct claim *c, size_t from, size_t to, int64_t until_ms, struct fw_err *err)
{
	struct place *p = c->place;
	struct sqlite *s = c->s;
	int64_t fence;
	int rc = sq_number_load(s, err);

	fence = s->number;
	rc = rc ? rc : sq_do(s, SQ_LEASE_PUT, "INSERT INTO leases (fence, feed_id, host_id, status, " SQ_STATE ") SELECT fw_number(),"
		" feed_id, host_id, 0, " SQ_STATE " FROM line WHERE id BETWEEN ? AND ? AND coalesce(wake_at_ms, due_at_ms) <= ? ORDER BY id",
		err, "iii", p[from].id, p[to - 1].id, until_ms);
	if (!rc && (size_t)sqlite3_changes(s->db) != to - from)
		rc = fw_err_set(err, FW_EIO, "%s: the line changed while it was read: `feedwheel doctor` finds out more", s->path);
	rc = rc ? rc : sq_do(s, SQ_LINE_HEAD_DEL, "DELETE FROM line WHERE id BETWEEN ? AND ? AND coalesce(wake_at_ms, due_at_ms) <= ?", err,
		"iii", p[from].id, p[to - 1].id, until_ms);
	for (size_t i = from; i < to && !rc; i++)
		lent(c, &p[i], &c->out[c->got->n + i].feed, ++fence);
	return rc;
}

/* A feed of a crowded host: lend it, or park it until it has its turn. */
static int lend_crowded(struct claim *c, size_t i, struct fw_err *err)
{
	const struct fw_claim_ask *ask = c->ask;
	struct place *p = &c->place[i];
	struct sqlite *s = c->s;
	struct host h;
	bool busy;
	int rc = host_get(s, p->host_id, &h, err);

	if (rc)
		return rc;
	busy = ask->host_max && h.busy_n >= (int64_t)ask->host_max;
	h.turn_n -= p->moved;
	if (p->gone) {
		rc = line_del(s, p->id, err);
	} else if (!busy && c->now_ms >= h.next_ok_ms) {
		rc = lend(c, i, i + 1, INT64_MAX, err);
		h.busy_n++;
		h.next_ok_ms = FW_MAX(h.next_ok_ms, c->now_ms + ask->host_gap_ms);
		busy = ask->host_max && h.busy_n >= (int64_t)ask->host_max;
	} else {
		c->got->deferred_n++;
		h.parked_n++;
		rc = put_aside(s, p->id, p->feed_id, p->host_id, err);
	}
	if (!rc && !busy)
		rc = turn_give(s, &h, err);
	return rc ? rc : host_set(s, &h, err);
}

#define HEAD "SELECT fw_take(l.id, l.feed_id, l.host_id, l.wake_at_ms, f.id, " SQ_STATE ", " SQ_WIDE ") FROM line l "
#define HEAD_STATE 5 /* the first of these */

/* fw_take(...) in HEAD: a row of the line and its feed. Read here, a row's columns need not be copied to be handed out one by one. */
static void take(sqlite3_context *ctx, int n, sqlite3_value **v)
{
	struct claim *c = ((struct sqlite *)sqlite3_user_data(ctx))->claim;
	struct place *p = &c->place[c->round_n];
	struct fw_feed *f;

	(void)n;
	if (c->round_n == c->round_max) {
		sqlite3_result_error(ctx, "more feeds than were asked for", -1);
		return;
	}
	f = &c->out[c->got->n + c->round_n++].feed;
	*p = (struct place){.id = sqlite3_value_int64(v[0]), .feed_id = sqlite3_value_int64(v[1]), .host_id = sqlite3_value_int64(v[2]),
		.moved = sqlite3_value_type(v[3]) != SQLITE_NULL, .gone = sqlite3_value_type(v[4]) == SQLITE_NULL};
	*f = (struct fw_feed){0};
	sq_state_read(v + HEAD_STATE, f, &p->last_visit_id);
	sq_wide_read(v + HEAD_STATE + SQ_STATE_N, f);
	if (!fw_store_feed_dup(c->a, f))
		sqlite3_result_error_nomem(ctx);
}

int sq_wheel_setup(struct sqlite *s, struct fw_err *err)
{
	return sqlite3_create_function(s->db, "fw_take", HEAD_STATE + SQ_STATE_N + SQ_WIDE_N, SQLITE_UTF8 | SQLITE_DIRECTONLY, s, take, NULL,
		NULL) == SQLITE_OK ? 0 : sq_error(s, "opening", err);
}

/* One round: up to max rows of the line that q finds, their feeds behind what was lent before. */
static int round_read(struct claim *c, sqlite3_stmt *q, size_t max, struct fw_err *err)
{
	int rc = q ? 1 : err->rc;

	c->s->claim = c;
	c->round_n = 0;
	c->round_max = max;
	while (rc > 0)
		rc = sq_row(c->s, q, err);
	c->s->claim = NULL;
	return rc;
}

/* Those of hosts with a single feed in stretches (dense: all between the first and the last one by until_ms), then the others. */
static int round_lend(struct claim *c, size_t n, bool dense, int64_t until_ms, struct fw_err *err)
{
	struct place *p = c->place;
	size_t from = 0;
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		bool single = !p[i].host_id && !p[i].gone;

		if (!single && p[i].gone && !p[i].host_id)
			rc = line_del(c->s, p[i].id, err);
		if (!single)
			from = i + 1;
		else if (!dense || i + 1 == n || p[i + 1].host_id || p[i + 1].gone) {
			rc = lend(c, from, i + 1, dense ? until_ms : INT64_MAX, err);
			from = i + 1;
		}
	}
	for (size_t i = 0; i < n && !rc; i++) {
		if (p[i].host_id)
			rc = lend_crowded(c, i, err);
	}
	return rc;
}

/* Hand out what was lent, in the order in which it stood in line. */
static void round_take(struct claim *c, size_t n)
{
	size_t to = c->got->n, base = to;

	for (size_t i = 0; i < n; i++) {
		struct fw_lease *l = &c->out[to];

		if (!c->place[i].fence)
			continue;
		l->feed = c->out[base + i].feed;
		l->fence = l->feed.fence = c->place[i].fence;
		l->until_ms = l->feed.lease_until_ms = c->now_ms + c->ask->lease_ms;
		to++;
	}
	c->got->n = to;
}

/* Rounds of the line's head. */
static int claim_head(struct claim *c, struct fw_err *err)
{
	size_t left = c->ask->max * SCAN_FACTOR + SCAN_EXTRA, n;
	int64_t until = FW_MIN(c->now_ms, c->before_ms);
	int rc = 0;

	do {
		size_t max = FW_MIN(c->ask->max - c->got->n, left);
		sqlite3_stmt *q = sq_ask(c->s, SQ_DUE, HEAD "LEFT JOIN feeds f ON f.id = l.feed_id WHERE l.id <= ?"
			" AND coalesce(wake_at_ms, due_at_ms) <= ? ORDER BY l.id LIMIT ?", err, "iii", sq_slot_last(until), until,
			SQ_INT(max));

		rc = round_read(c, q, max, err);
		n = c->round_n;
		rc = rc ? rc : round_lend(c, n, true, until, err);
		if (!rc)
			round_take(c, n);
		left -= n;
	} while (!rc && n && left && c->got->n < c->ask->max); /* a loan may have brought the next of its host */
	return rc;
}

/* With a due_before in the past, feeds that were due before it may stand behind it, because they were moved. */
static int claim_moved(struct claim *c, struct fw_err *err)
{
	sqlite3_stmt *q = sq_ask(c->s, SQ_DUE_MOVED, HEAD "INDEXED BY line_moved LEFT JOIN feeds f ON f.id = l.feed_id"
		" WHERE wake_at_ms IS NOT NULL AND wake_at_ms > ?1 AND wake_at_ms <= ?2 AND due_at_ms <= ?1"
		" ORDER BY wake_at_ms LIMIT ?3", err, "iii", c->before_ms, c->now_ms, SQ_INT(c->ask->max - c->got->n));
	int rc = round_read(c, q, c->ask->max - c->got->n, err);

	rc = rc ? rc : round_lend(c, c->round_n, false, 0, err);
	if (!rc)
		round_take(c, c->round_n);
	return rc;
}

/* When the line's first slot begins to be due. Once its first row is, that is all one needs to know. */
static int line_wake(struct claim *c, int64_t *wake, struct fw_err *err)
{
	sqlite3_stmt *q = sq_stmt(c->s, SQ_LINE_FIRST, "SELECT id, coalesce(wake_at_ms, due_at_ms) FROM line ORDER BY id LIMIT 1", err);
	int rc = q ? sq_row(c->s, q, err) : err->rc;
	int64_t id;

	*wake = FW_NO_DATE;
	if (rc <= 0)
		return rc;
	id = sqlite3_column_int64(q, 0);
	*wake = sqlite3_column_int64(q, 1);
	sqlite3_reset(q);
	if (*wake <= c->now_ms)
		return 0;
	q = sq_ask(c->s, SQ_LINE_MIN, "SELECT min(coalesce(wake_at_ms, due_at_ms)) FROM line WHERE id <= ?", err, "i", id | SQ_NUMBER_MASK);
	rc = q ? sq_row(c->s, q, err) : err->rc;
	if (rc <= 0)
		return rc;
	*wake = sqlite3_column_int64(q, 0);
	sqlite3_reset(q);
	return 0;
}

static int next_wake(struct claim *c, struct fw_err *err)
{
	int64_t line, claims;
	int rc = line_wake(c, &line, err);

	rc = rc ? rc : sq_int(c->s, SQ_CLAIM_MIN, "SELECT min(until_ms) FROM claims", FW_NO_DATE, &claims, err);
	if (rc)
		return rc;
	if (line == FW_NO_DATE || claims == FW_NO_DATE)
		c->got->next_ms = line == FW_NO_DATE ? claims : line;
	else
		c->got->next_ms = FW_MIN(line, claims);
	return 0;
}

int sq_claim_put(struct sqlite *s, int64_t first, int64_t last, int64_t until_ms, const char *worker, struct fw_err *err)
{
	return sq_do(s, SQ_CLAIM_NEW, "INSERT INTO claims (first_fence, last_fence, until_ms, worker) VALUES (?, ?, ?, ?)", err, "iiis", first,
		last, until_ms, fw_str(worker));
}

static int claim_note(struct claim *c, struct fw_err *err)
{
	sq_loans_keep(c->s, c->claimed, c->fences, c->lent_n);
	if (!c->lent_n)
		return 0;
	return sq_claim_put(c->s, c->fences.first, c->fences.last, c->now_ms + c->ask->lease_ms, c->ask->worker, err);
}

static int earlier(const void *a, const void *b)
{
	const struct fw_lease *x = a, *y = b;

	return x->feed.due_at_ms < y->feed.due_at_ms ? -1 : x->feed.due_at_ms > y->feed.due_at_ms;
}

static void sort_if_needed(struct fw_lease *out, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (out[i].feed.due_at_ms < out[i - 1].feed.due_at_ms) {
			qsort(out, n, sizeof(*out), earlier);
			return;
		}
	}
}

int sq_claim(struct fw_store *st, const struct fw_claim_ask *ask, struct fw_arena *a, struct fw_lease *out,
	struct fw_claim_got *got, struct fw_err *err)
{
	int64_t now = ask->now_ms ? ask->now_ms : fw_now_ms();
	struct claim c = {.s = sqlite_of(st), .ask = ask, .a = a, .out = out, .got = got, .now_ms = now,
		.before_ms = ask->due_before_ms ? ask->due_before_ms : now};
	int rc;

	c.place = calloc(ask->max + 1, sizeof(*c.place));
	if (!c.place)
		return fw_err_set(err, FW_ENOMEM, "%s: claim: out of memory", c.s->path);
	rc = sq_begin_quick(c.s, err);
	if (!rc) {
		rc = sq_claims_expire(c.s, now, err);
		c.claimed = ask->max ? sq_loans_new(c.s, ask->max) : NULL;
		if (!rc && ask->max)
			rc = claim_head(&c, err);
		if (!rc && c.before_ms < now && got->n < ask->max)
			rc = claim_moved(&c, err);
		rc = rc ? rc : claim_note(&c, err);
		rc = rc ? rc : next_wake(&c, err);
		rc = sq_end(c.s, rc, err);
	}
	free(c.place);
	if (rc)
		*got = (struct fw_claim_got){.next_ms = FW_NO_DATE};
	else
		sort_if_needed(out, got->n);
	return rc;
}

/* ---- what waits --------------------------------------------------------------------------------------------------------- */

int sq_pending(struct fw_store *st, int64_t due_before_ms, int64_t *n, int64_t *wake_ms, struct fw_err *err)
{
	/* feeds waiting at or before that time; those that were moved behind it; parked ones; lent ones */
	static const struct { enum sq_id id; const char *sql; } part[] = {
		{SQ_PENDING_LINE, "SELECT count(*), min(coalesce(wake_at_ms, due_at_ms)) FROM line WHERE id <= ?2"
			" AND coalesce(wake_at_ms, due_at_ms) <= ?1"},
		{SQ_PENDING_MOVED, "SELECT count(*), min(wake_at_ms) FROM line INDEXED BY line_moved"
			" WHERE wake_at_ms IS NOT NULL AND wake_at_ms > ?1 AND due_at_ms <= ?1 AND ?2"},
		{SQ_PENDING_PARKED, "SELECT count(*), NULL FROM aside INDEXED BY aside_parked WHERE host_id > 0 AND due_at_ms <= ?1 AND ?2"},
		{SQ_PENDING_LEASES, "SELECT count(*), min((SELECT until_ms FROM claims WHERE first_fence <= l.fence ORDER BY"
			" first_fence DESC LIMIT 1)) FROM leases l WHERE due_at_ms <= ?1 AND ?2"},
	};
	struct sqlite *s = sqlite_of(st);

	for (size_t i = 0; i < FW_N(part); i++) {
		sqlite3_stmt *q = sq_ask(s, part[i].id, part[i].sql, err, "ii", due_before_ms, sq_slot_last(due_before_ms));
		int rc = q ? sq_row(s, q, err) : err->rc;

		if (rc < 0)
			return rc;
		*n += sqlite3_column_int64(q, 0);
		if (sq_date(q, 1) != FW_NO_DATE && (*wake_ms == FW_NO_DATE || sqlite3_column_int64(q, 1) < *wake_ms))
			*wake_ms = sqlite3_column_int64(q, 1);
		sqlite3_reset(q);
	}
	return 0;
}

/* ---- hosts come and go --------------------------------------------------------------------------------------------------- */

/* A second feed has come to this host: the first one's place now names the host, and its loan, if any, is counted. */
static int host_crowd(struct sqlite *s, int64_t host_id, int64_t first_feed, struct fw_err *err)
{
	struct sq_where w;
	struct host h;
	int rc = sq_find(s, first_feed, NULL, &w, err);

	sq_found(&w);
	if (rc || w.host_id || (w.table != SQ_LINE && w.table != SQ_LEASES))
		return rc;
	rc = host_get(s, host_id, &h, err);
	if (!rc && w.table == SQ_LINE) {
		rc = sq_do(s, SQ_LINE_HOST, "UPDATE line SET host_id = ? WHERE id = ?", err, "ii", host_id, w.key);
		h.turn_n += w.moved;
	} else if (!rc) {
		rc = sq_do(s, SQ_LEASE_HOST, "UPDATE leases SET host_id = ? WHERE fence = ?", err, "ii", host_id, w.key);
		rc = rc ? rc : sq_lease_touch(s, w.key, err);
		h.busy_n++;
	}
	return rc ? rc : host_set(s, &h, err);
}

int sq_host_join(struct sqlite *s, struct fw_str url, int64_t *host_id, bool *crowded, struct fw_err *err)
{
	int64_t feed_n = 0, first = 0;
	sqlite3_stmt *q;
	char name[256];
	int rc;

	if (!fw_url_host(url, name, sizeof(name)))
		name[0] = '\0';
	*crowded = false;
	q = sq_ask(s, SQ_HOST_FIND, "SELECT id, feed_n FROM hosts WHERE name = ?", err, "s", fw_str(name));
	rc = q ? sq_row(s, q, err) : err->rc;
	if (rc < 0)
		return rc;
	if (rc == 0) {
		rc = sq_do(s, SQ_HOST_NEW, "INSERT INTO hosts (name, feed_n) VALUES (?, 1)", err, "s", fw_str(name));
		*host_id = sqlite3_last_insert_rowid(s->db);
		return rc;
	}
	*host_id = sqlite3_column_int64(q, 0);
	feed_n = sqlite3_column_int64(q, 1);
	sqlite3_reset(q);
	*crowded = true;
	rc = sq_do(s, SQ_HOST_COUNT, "UPDATE hosts SET feed_n = feed_n + 1 WHERE id = ?", err, "i", *host_id);
	if (rc || feed_n != 1)
		return rc;
	q = sq_ask(s, SQ_HOST_FEED, "SELECT id FROM feeds WHERE host_id = ? LIMIT 1", err, "i", *host_id);
	rc = q ? sq_row(s, q, err) : err->rc;
	if (rc <= 0)
		return rc;
	first = sqlite3_column_int64(q, 0);
	sqlite3_reset(q);
	return host_crowd(s, *host_id, first, err);
}

int sq_host_leave(struct sqlite *s, int64_t host_id, struct fw_err *err)
{
	int rc = sq_do(s, SQ_HOST_LESS, "UPDATE hosts SET feed_n = feed_n - 1 WHERE id = ?", err, "i", host_id);

	return rc ? rc : sq_do(s, SQ_HOST_DROP, "DELETE FROM hosts WHERE id = ? AND feed_n <= 0", err, "i", host_id);
}
