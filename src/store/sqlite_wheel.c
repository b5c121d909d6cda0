/* SPDX-License-Identifier: ISC */
/*
 * Lending. An active feed is in exactly one place:
 *
 *   queue   waiting for wake_at_ms. For the only feed of its host (host_id 0) that is all there is to it.
 *   parked  its host has no budget left; here it is neither scanned nor woken until one of the host's loans returns.
 *   leases  lent, under a fence of its own. One claim is one row in `claims`: until when, and a range of fences.
 *
 * The queue is in order of slots of 8 s, and within one in order of arrival. Feeds that come back with due times scattered over
 * some minutes are thus appended to a few dozen slots, that is to a few dozen pages a batch; in exact order nearly each would
 * dirty a page of its own, which then goes to the journal and to the file.
 *
 * A claim first takes back claims whose time is over, then reads the head of the queue in rounds. Feeds of crowded hosts need
 * budget (hosts.busy_n below host_max, hosts.next_ok_ms reached). One that gets none is parked, so 500 overdue feeds of one
 * host are met once, not at every claim; from then on at most one feed of the host stands in the queue, at the time when the
 * host may be asked next: it "has the turn" (turn_n; its due_at_ms is set in the queue). The invariant that keeps feeds from
 * being forgotten: a host with parked feeds has a turn in the queue or a loan that will return, and who returns one gives the
 * turn on.
 *
 * Fences and places in the queue are numbered by one counter (meta.last_number) and never used again.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/url.h"
#include "store/sqlite.h"

#define SCAN_FACTOR 4     /* rows looked at per claim, in multiples of ask->max */
#define SCAN_EXTRA 1000
#define EXPIRED_CLAIMS 8  /* taken back per claim */

#define SLOT_BITS 13      /* of wake_at_ms: 8.192 s */
#define NUMBER_MASK INT64_C(0xffffffff)

struct place { /* a row of the queue */
	int64_t id, wake_ms, feed_id, host_id, due_ms;
	bool moved; /* due_at_ms was set: it has the turn of its host, or was put off */
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

/* The first id of the slot that holds this time, and the last one. Times are clamped to what fits, years 1970 to 5000. */
static int64_t slot_first(int64_t wake_ms)
{
	int64_t slot = FW_MIN(FW_MAX(wake_ms, 0), INT64_C(100000000000000)) >> SLOT_BITS;

	return slot << 32;
}

int64_t sq_slot_last(int64_t wake_ms)
{
	return slot_first(wake_ms) | NUMBER_MASK;
}

static int queue_put(struct sqlite *s, int64_t wake_ms, int64_t feed_id, int64_t host_id, int64_t due_ms, struct fw_err *err)
{
	int64_t number;
	int rc;

	do { /* the number is cut to 32 bits: after some billions an old place may have the same one */
		rc = sq_number(s, &number, err);
		rc = rc ? rc : sq_do(s, SQ_QUEUE_PUT, "INSERT OR IGNORE INTO queue (id, wake_at_ms, feed_id, host_id, due_at_ms)"
			" VALUES (?,?,?,?,?)", err, "iiiid", slot_first(wake_ms) | (number & NUMBER_MASK), wake_ms, feed_id, host_id, due_ms);
	} while (!rc && !sqlite3_changes(s->db));
	return rc;
}

/* Give the host's turn to its earliest parked feed, if there is one and nobody has it. h is changed, not written. */
static int turn_give(struct sqlite *s, struct host *h, struct fw_err *err)
{
	sqlite3_stmt *q;
	int64_t due, feed;
	int rc;

	if (!h->parked_n || h->turn_n)
		return 0;
	q = sq_ask(s, SQ_UNPARK_FIRST, "SELECT due_at_ms, feed_id FROM parked WHERE host_id = ? ORDER BY due_at_ms, feed_id LIMIT 1",
		err, "i", h->id);
	rc = q ? sq_row(s, q, err) : err->rc;
	if (rc <= 0)
		return rc;
	due = sqlite3_column_int64(q, 0);
	feed = sqlite3_column_int64(q, 1);
	sqlite3_reset(q);
	rc = sq_do(s, SQ_PARKED_DEL, "DELETE FROM parked WHERE host_id = ? AND due_at_ms = ? AND feed_id = ?", err, "iii", h->id,
		due, feed);
	if (!rc)
		rc = queue_put(s, FW_MAX(due, h->next_ok_ms), feed, h->id, due, err);
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

int sq_wheel_on(struct sqlite *s, int64_t feed_id, int64_t due_ms, int64_t host_id, int64_t not_before_ms, struct fw_err *err)
{
	/* a crowded host's feeds wait for next_ok_ms anyway; the only feed of a host is put off here */
	if (!host_id && not_before_ms > due_ms)
		return queue_put(s, not_before_ms, feed_id, 0, due_ms, err);
	return queue_put(s, due_ms, feed_id, host_id, FW_NO_DATE, err);
}

/* Columns: id, wake_at_ms, feed_id, host_id, due_at_ms. */
static void place_read(sqlite3_stmt *q, struct place *p)
{
	p->id = sqlite3_column_int64(q, 0);
	p->wake_ms = sqlite3_column_int64(q, 1);
	p->feed_id = sqlite3_column_int64(q, 2);
	p->host_id = sqlite3_column_int64(q, 3);
	p->moved = sqlite3_column_type(q, 4) != SQLITE_NULL;
	p->due_ms = p->moved ? sqlite3_column_int64(q, 4) : p->wake_ms;
}

/* Where in the queue does it stand? *found false: nowhere there. Looks through one slot, then at the moved ones. */
static int queue_find(struct sqlite *s, int64_t feed_id, int64_t due_ms, struct place *p, bool *found, struct fw_err *err)
{
	sqlite3_stmt *q = sq_ask(s, SQ_QUEUE_FEED, "SELECT id, wake_at_ms, feed_id, host_id, due_at_ms FROM queue"
		" WHERE id BETWEEN ? AND ? AND feed_id = ?", err, "iii", slot_first(due_ms), sq_slot_last(due_ms), feed_id);
	int rc = q ? sq_row(s, q, err) : err->rc;

	if (!rc) {
		q = sq_ask(s, SQ_QUEUE_FIND_MOVED, "SELECT id, wake_at_ms, feed_id, host_id, due_at_ms FROM queue INDEXED BY queue_moved"
			" WHERE due_at_ms IS NOT NULL AND feed_id = ?", err, "i", feed_id);
		rc = q ? sq_row(s, q, err) : err->rc;
	}
	*found = rc > 0;
	if (rc <= 0)
		return rc;
	place_read(q, p);
	sqlite3_reset(q);
	return 0;
}

static int queue_del(struct sqlite *s, const struct place *p, struct fw_err *err)
{
	return sq_do(s, SQ_QUEUE_DEL, "DELETE FROM queue WHERE id = ?", err, "i", p->id);
}

/* Take one feed out of its host's parking place; its turn is not touched. */
static int parked_drop(struct sqlite *s, int64_t feed_id, int64_t due_ms, bool *found, struct fw_err *err)
{
	int64_t host_id = 0;
	struct host h;
	sqlite3_stmt *q = sq_ask(s, SQ_PARKED_FEED, "SELECT p.host_id FROM feeds f JOIN parked p ON p.host_id = f.host_id"
		" WHERE f.id = ? AND p.due_at_ms = ? AND p.feed_id = f.id", err, "ii", feed_id, due_ms);
	int rc = q ? sq_row(s, q, err) : err->rc;

	*found = rc > 0;
	if (rc <= 0)
		return rc;
	host_id = sqlite3_column_int64(q, 0);
	sqlite3_reset(q);
	rc = sq_do(s, SQ_PARKED_DEL, "DELETE FROM parked WHERE host_id = ? AND due_at_ms = ? AND feed_id = ?", err, "iii",
		host_id, due_ms, feed_id);
	rc = rc ? rc : host_get(s, host_id, &h, err);
	h.parked_n--;
	return rc ? rc : host_set(s, &h, err);
}

int sq_wheel_off(struct sqlite *s, int64_t feed_id, int64_t due_ms, struct fw_err *err)
{
	struct place p;
	struct host h;
	bool found;
	int rc = queue_find(s, feed_id, due_ms, &p, &found, err);

	if (rc)
		return rc;
	if (!found)
		return parked_drop(s, feed_id, due_ms, &found, err); /* lent, or off already: fine too */
	rc = queue_del(s, &p, err);
	if (rc || !p.moved || !p.host_id)
		return rc;
	rc = host_get(s, p.host_id, &h, err); /* it had the turn: give it on */
	h.turn_n--;
	rc = rc ? rc : turn_give(s, &h, err);
	return rc ? rc : host_set(s, &h, err);
}

/* ---- leases ----------------------------------------------------------------------------------------------------------- */

int sq_lease_take(struct sqlite *s, int64_t fence, int64_t feed_id, bool *found, int64_t *host_id, struct fw_err *err)
{
	sqlite3_stmt *q = sq_ask(s, SQ_LEASE_GET, "SELECT host_id FROM leases WHERE fence = ? AND feed_id = ?", err, "ii", fence,
		feed_id);
	int rc = q ? sq_row(s, q, err) : err->rc;

	*found = rc > 0;
	*host_id = 0;
	if (rc <= 0)
		return rc;
	*host_id = sqlite3_column_int64(q, 0);
	sqlite3_reset(q);
	return sq_lease_end(s, fence, err);
}

int sq_lease_end(struct sqlite *s, int64_t fence, struct fw_err *err)
{
	return sq_do(s, SQ_LEASE_DEL, "DELETE FROM leases WHERE fence = ?", err, "i", fence);
}

int sq_claim_tidy(struct sqlite *s, int64_t fence, struct sq_range *r, struct fw_err *err)
{
	sqlite3_stmt *q;
	int rc;

	if (fence >= r->first && fence <= r->last)
		return 0; /* looked at already */
	*r = (struct sq_range){fence, fence};
	q = sq_ask(s, SQ_CLAIM_OF, "SELECT first_fence, last_fence FROM claims WHERE first_fence <= ? ORDER BY first_fence DESC LIMIT 1",
		err, "i", fence);
	rc = q ? sq_row(s, q, err) : err->rc;
	if (rc <= 0)
		return rc;
	*r = (struct sq_range){sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1)};
	sqlite3_reset(q);
	return sq_do(s, SQ_CLAIM_TIDY, "DELETE FROM claims WHERE first_fence = ?1"
		" AND NOT EXISTS (SELECT 1 FROM leases WHERE fence BETWEEN ?1 AND ?2)", err, "ii", r->first, r->last);
}

/* A lease has ended without a visit: back into the queue, if its feed is still active. */
static int lease_return(struct sqlite *s, int64_t feed_id, int64_t host_id, struct fw_err *err)
{
	int64_t status, due;
	sqlite3_stmt *q = sq_ask(s, SQ_WHEEL_STATE, "SELECT status, due_at_ms FROM wheel WHERE feed_id = ?", err, "i", feed_id);
	int rc = q ? sq_row(s, q, err) : err->rc;

	if (rc <= 0)
		return rc;
	status = sqlite3_column_int64(q, 0);
	due = sqlite3_column_int64(q, 1);
	sqlite3_reset(q);
	rc = host_id ? sq_host_return(s, host_id, true, 0, err) : 0;
	if (!rc && status == FW_FEED_ACTIVE)
		rc = sq_wheel_on(s, feed_id, due, host_id, 0, err);
	return rc;
}

/* Take back all that one claim lent. */
static int claim_end(struct sqlite *s, struct sq_range r, struct fw_err *err)
{
	int rc;

	for (;;) {
		sqlite3_stmt *q = sq_ask(s, SQ_LEASES_OF, "SELECT fence, feed_id, host_id FROM leases WHERE fence BETWEEN ? AND ? LIMIT 1",
			err, "ii", r.first, r.last);
		int64_t fence, feed_id, host_id;

		rc = q ? sq_row(s, q, err) : err->rc;
		if (rc <= 0)
			break;
		fence = sqlite3_column_int64(q, 0);
		feed_id = sqlite3_column_int64(q, 1);
		host_id = sqlite3_column_int64(q, 2);
		sqlite3_reset(q);
		rc = sq_lease_end(s, fence, err);
		rc = rc ? rc : lease_return(s, feed_id, host_id, err);
		if (rc)
			break;
	}
	return rc ? rc : sq_do(s, SQ_CLAIM_DROP, "DELETE FROM claims WHERE first_fence = ?", err, "i", r.first);
}

/* End the claim that q finds first; *more false: it found none. */
static int claim_end_next(struct sqlite *s, sqlite3_stmt *q, bool *more, struct fw_err *err)
{
	int rc = q ? sq_row(s, q, err) : err->rc;
	struct sq_range r;

	*more = rc > 0;
	if (rc <= 0)
		return rc;
	r = (struct sq_range){sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1)};
	sqlite3_reset(q);
	return claim_end(s, r, err);
}

static int claims_expire(struct sqlite *s, int64_t now, struct fw_err *err)
{
	bool more = true;
	int rc = 0;

	for (int i = 0; i < EXPIRED_CLAIMS && more && !rc; i++)
		rc = claim_end_next(s, sq_ask(s, SQ_EXPIRED, "SELECT first_fence, last_fence FROM claims WHERE until_ms <= ? LIMIT 1", err,
			"i", now), &more, err);
	return rc;
}

/* ---- claim ------------------------------------------------------------------------------------------------------------ */

struct claim {
	struct sqlite *s;
	const struct fw_claim_ask *ask;
	struct fw_arena *a;
	struct fw_lease *out;
	struct fw_claim_got *got;
	int64_t now_ms, before_ms;
	struct sq_range fences;
};

/* Write the lease down and hand the feed out. */
static int lend(struct claim *c, const struct place *p, struct fw_err *err)
{
	struct fw_lease *l = &c->out[c->got->n];
	struct sqlite *s = c->s;
	sqlite3_stmt *q;
	int rc = sq_number(s, &l->fence, err);

	rc = rc ? rc : sq_do(s, SQ_LEASE_PUT, "INSERT INTO leases (fence, feed_id, due_at_ms, host_id) VALUES (?, ?, ?, ?)", err,
		"iiii", l->fence, p->feed_id, p->due_ms, p->host_id);
	if (rc)
		return rc;
	q = sq_ask(s, SQ_FEED_FULL, "SELECT " SQ_FEED_COLUMNS " FROM wheel w JOIN feeds f ON f.id = w.feed_id WHERE w.feed_id = ?",
		err, "i", p->feed_id);
	rc = q ? sq_row(s, q, err) : err->rc;
	if (rc < 0)
		return rc;
	if (rc == 0) /* somebody deleted the feed by hand: its place goes too, and the others are not held up */
		return sq_lease_end(s, l->fence, err);
	if (!c->got->n)
		c->fences.first = l->fence;
	c->fences.last = l->fence;
	sq_feed_read(q, &l->feed);
	l->feed.fence = l->fence;
	l->until_ms = l->feed.lease_until_ms = c->now_ms + c->ask->lease_ms;
	rc = fw_store_feed_dup(c->a, &l->feed) ? 0 : fw_err_set(err, FW_ENOMEM, "%s: claim: no memory for the feeds", s->path);
	sqlite3_reset(q);
	if (!rc)
		c->got->n++;
	return rc;
}

/* A feed of a crowded host, out of the queue already: lend it, let it wait for its turn, or park it. */
static int lend_crowded(struct claim *c, const struct place *p, struct fw_err *err)
{
	const struct fw_claim_ask *ask = c->ask;
	struct sqlite *s = c->s;
	struct host h;
	bool busy;
	int rc = host_get(s, p->host_id, &h, err);

	if (rc)
		return rc;
	busy = ask->host_max && h.busy_n >= (int64_t)ask->host_max;
	h.turn_n -= p->moved;
	if (!busy && c->now_ms >= h.next_ok_ms) {
		size_t lent = c->got->n;

		rc = lend(c, p, err);
		h.busy_n += c->got->n > lent;
		h.next_ok_ms = FW_MAX(h.next_ok_ms, c->now_ms + ask->host_gap_ms);
		busy = ask->host_max && h.busy_n >= (int64_t)ask->host_max;
	} else {
		c->got->deferred_n++;
		h.parked_n++;
		rc = sq_do(s, SQ_PARK, "INSERT INTO parked (host_id, due_at_ms, feed_id) VALUES (?, ?, ?)", err, "iii", p->host_id,
			p->due_ms, p->feed_id);
	}
	if (!rc && !busy)
		rc = turn_give(s, &h, err);
	return rc ? rc : host_set(s, &h, err);
}

/* One round: up to n rows from the head of what `q` reads, out of the queue, each to its new place. */
static int round_read(struct claim *c, sqlite3_stmt *q, struct place *place, size_t *n, struct fw_err *err)
{
	int rc = 0;

	*n = 0;
	while (q && (rc = sq_row(c->s, q, err)) > 0)
		place_read(q, &place[(*n)++]);
	return q ? rc : err->rc;
}

static int round_place(struct claim *c, const struct place *place, size_t n, struct fw_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++)
		rc = place[i].host_id ? lend_crowded(c, &place[i], err) : lend(c, &place[i], err);
	return rc;
}

/* Rounds of the queue's head. */
static int claim_head(struct claim *c, struct place *place, struct fw_err *err)
{
	size_t left = c->ask->max * SCAN_FACTOR + SCAN_EXTRA, n;
	int64_t until = FW_MIN(c->now_ms, c->before_ms);
	int rc = 0;

	do {
		sqlite3_stmt *q = sq_ask(c->s, SQ_DUE, "SELECT id, wake_at_ms, feed_id, host_id, due_at_ms FROM queue"
			" WHERE id <= ? AND wake_at_ms <= ? ORDER BY id LIMIT ?", err, "iii", sq_slot_last(until), until,
			SQ_INT(FW_MIN(c->ask->max - c->got->n, left)));

		rc = round_read(c, q, place, &n, err);
		if (!rc && n) /* exactly what was read */
			rc = sq_do(c->s, SQ_QUEUE_HEAD_DEL, "DELETE FROM queue WHERE id <= ? AND wake_at_ms <= ?", err, "ii", place[n - 1].id,
				until);
		rc = rc ? rc : round_place(c, place, n, err);
		left -= n;
	} while (!rc && n && left && c->got->n < c->ask->max); /* a loan may have brought the next of its host */
	return rc;
}

/* With a due_before in the past, feeds that were due before it may stand behind it, because they were moved. */
static int claim_moved(struct claim *c, struct place *place, struct fw_err *err)
{
	sqlite3_stmt *q = sq_ask(c->s, SQ_DUE_MOVED, "SELECT id, wake_at_ms, feed_id, host_id, due_at_ms FROM queue"
		" INDEXED BY queue_moved WHERE due_at_ms IS NOT NULL AND wake_at_ms > ?1 AND wake_at_ms <= ?2 AND due_at_ms <= ?1"
		" ORDER BY wake_at_ms LIMIT ?3", err, "iii", c->before_ms, c->now_ms, SQ_INT(c->ask->max - c->got->n));
	size_t n;
	int rc = round_read(c, q, place, &n, err);

	for (size_t i = 0; i < n && !rc; i++)
		rc = queue_del(c->s, &place[i], err);
	return rc ? rc : round_place(c, place, n, err);
}

/* When the queue's first slot begins to be due. Once its first row is, that is all one needs to know. */
static int queue_wake(struct claim *c, int64_t *wake, struct fw_err *err)
{
	sqlite3_stmt *q = sq_stmt(c->s, SQ_QUEUE_FIRST, "SELECT id, wake_at_ms FROM queue ORDER BY id LIMIT 1", err);
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
	q = sq_ask(c->s, SQ_QUEUE_MIN, "SELECT min(wake_at_ms) FROM queue WHERE id <= ?", err, "i", id | NUMBER_MASK);
	rc = q ? sq_row(c->s, q, err) : err->rc;
	if (rc <= 0)
		return rc;
	*wake = sqlite3_column_int64(q, 0);
	sqlite3_reset(q);
	return 0;
}

static int next_wake(struct claim *c, struct fw_err *err)
{
	int64_t queue, claims;
	int rc = queue_wake(c, &queue, err);

	rc = rc ? rc : sq_int(c->s, SQ_CLAIM_MIN, "SELECT min(until_ms) FROM claims", FW_NO_DATE, &claims, err);
	if (rc)
		return rc;
	if (queue == FW_NO_DATE || claims == FW_NO_DATE)
		c->got->next_ms = queue == FW_NO_DATE ? claims : queue;
	else
		c->got->next_ms = FW_MIN(queue, claims);
	return 0;
}

static int claim_note(struct claim *c, struct fw_err *err)
{
	if (!c->got->n)
		return 0;
	return sq_do(c->s, SQ_CLAIM_NEW, "INSERT INTO claims (first_fence, last_fence, until_ms, worker) VALUES (?, ?, ?, ?)", err,
		"iiis", c->fences.first, c->fences.last, c->now_ms + c->ask->lease_ms, fw_str(c->ask->worker));
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
	struct place *place = calloc(ask->max + 1, sizeof(*place));
	int rc;

	if (!place)
		return fw_err_set(err, FW_ENOMEM, "%s: claim: out of memory", c.s->path);
	rc = sq_begin_quick(c.s, err);
	if (!rc) {
		rc = claims_expire(c.s, now, err);
		if (!rc && ask->max)
			rc = claim_head(&c, place, err);
		if (!rc && c.before_ms < now && got->n < ask->max)
			rc = claim_moved(&c, place, err);
		rc = rc ? rc : claim_note(&c, err);
		rc = rc ? rc : next_wake(&c, err);
		rc = sq_end(c.s, rc, err);
	}
	free(place);
	if (rc)
		*got = (struct fw_claim_got){.next_ms = FW_NO_DATE};
	else
		sort_if_needed(out, got->n);
	return rc;
}

/* ---- leases back, unvisited --------------------------------------------------------------------------------------------- */

int sq_release(struct fw_store *st, const struct fw_lease *lease, size_t n, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	struct sq_range tidied = {0, 0};
	int rc = sq_begin_quick(s, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < n && !rc; i++) {
		int64_t host_id;
		bool found;

		rc = sq_lease_take(s, lease[i].fence, lease[i].feed.id, &found, &host_id, err);
		if (!rc && found)
			rc = lease_return(s, lease[i].feed.id, host_id, err);
	}
	for (size_t i = 0; i < n && !rc; i++)
		rc = sq_claim_tidy(s, lease[i].fence, &tidied, err);
	return sq_end(s, rc, err);
}

static int crash_count(struct sqlite *s, int64_t feed_id, struct fw_err *err)
{
	return sq_do(s, SQ_WHEEL_CRASH, "UPDATE wheel SET crash_n = crash_n + 1, last_kind = ?2,"
		" status = CASE WHEN status = 0 AND crash_n + 1 >= ?3 THEN ?4 ELSE status END WHERE feed_id = ?1", err, "iiii", feed_id,
		SQ_INT(FW_VISIT_CRASH), SQ_INT(FW_STORE_CRASH_MAX), SQ_INT(FW_FEED_QUARANTINED));
}

int sq_bury(struct fw_store *st, const char *worker, int64_t crashed_feed_id, int64_t now_ms, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	bool more = true;
	int rc = sq_begin(s, err);

	(void)now_ms;
	if (!rc && crashed_feed_id) {
		sqlite3_stmt *q = sq_ask(s, SQ_LEASE_OF_WORKER, "SELECT 1 FROM claims c JOIN leases l"
			" ON l.fence BETWEEN c.first_fence AND c.last_fence WHERE c.worker = ? AND l.feed_id = ?", err, "si", fw_str(worker),
			crashed_feed_id);

		rc = q ? sq_row(s, q, err) : err->rc;
		if (rc > 0) { /* it had that feed: the feed is charged */
			sqlite3_reset(q);
			rc = crash_count(s, crashed_feed_id, err);
		}
	}
	while (!rc && more)
		rc = claim_end_next(s, sq_ask(s, SQ_CLAIMS_OF, "SELECT first_fence, last_fence FROM claims WHERE worker = ? LIMIT 1", err,
			"s", fw_str(worker)), &more, err);
	return sq_end(s, rc, err);
}

int sq_pending(struct fw_store *st, int64_t due_before_ms, int64_t *n, int64_t *wake_ms, struct fw_err *err)
{
	/* feeds waiting at or before that time; those that were moved behind it; parked ones; lent ones */
	static const struct { enum sq_id id; const char *sql; } part[] = {
		{SQ_PENDING_QUEUE, "SELECT count(*), min(wake_at_ms) FROM queue WHERE id <= ?2 AND wake_at_ms <= ?1"},
		{SQ_PENDING_MOVED, "SELECT count(*), min(wake_at_ms) FROM queue INDEXED BY queue_moved"
			" WHERE due_at_ms IS NOT NULL AND wake_at_ms > ?1 AND due_at_ms <= ?1 AND ?2"},
		{SQ_PENDING_PARKED, "SELECT count(*), NULL FROM parked WHERE due_at_ms <= ?1 AND ?2"},
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
	int64_t due = 0;
	struct place p;
	struct host h;
	bool found;
	sqlite3_stmt *q = sq_ask(s, SQ_WHEEL_STATE, "SELECT status, due_at_ms FROM wheel WHERE feed_id = ?", err, "i", first_feed);
	int rc = q ? sq_row(s, q, err) : err->rc;

	if (rc > 0) {
		due = sqlite3_column_int64(q, 1);
		sqlite3_reset(q);
	}
	if (rc < 0)
		return rc;
	rc = host_get(s, host_id, &h, err);
	rc = rc ? rc : queue_find(s, first_feed, due, &p, &found, err);
	if (rc)
		return rc;
	if (found && !p.host_id) {
		rc = sq_do(s, SQ_QUEUE_HOST, "UPDATE queue SET host_id = ? WHERE id = ?", err, "ii", host_id, p.id);
		h.turn_n += p.moved;
	} else if (!found) {
		rc = sq_do(s, SQ_LEASE_HOST, "UPDATE leases SET host_id = ?1 WHERE feed_id = ?2 AND host_id = 0", err, "ii", host_id,
			first_feed);
		h.busy_n += rc ? 0 : sqlite3_changes(s->db);
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
