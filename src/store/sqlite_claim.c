/* SPDX-License-Identifier: ISC */
/*
 * Claims: feeds that are due, from where they wait (sqlite_wheel.c) to the leases.
 *
 * A claim first takes back claims whose time is over, then reads the head of the line in rounds, and moves it to the leases in
 * stretches. Those of crowded hosts that get no budget are parked. When numbers are asked for, each is looked for where it waits,
 * and nothing else is moved.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "store/sqlite.h"

#define SCAN_FACTOR 4     /* rows looked at per claim, in multiples of ask->max */
#define SCAN_EXTRA 1000

struct place { /* where a feed waits, and whether it was lent */
	int64_t id;       /* in line; 0: it is parked */
	int64_t feed_id, host_id, last_visit_id, fence;
	int64_t wake_ms;  /* FW_NO_DATE: when it is due. Else it has the turn of its host, or was put off */
	int64_t gap_ms, expect_us; /* of its host */
	bool gone;        /* somebody deleted the feed by hand */
};

struct claim {
	struct sqlite *s;
	struct fw_claim_ask ask; /* host_ahead 0 as long as others may come first */
	struct fw_arena *a;
	struct fw_lease *out;
	struct fw_claim_got *got;
	int64_t now_ms, before_ms;
	int64_t me;
	int64_t expect_max_us;
	struct place *place; /* of one round */
	size_t round_n, round_max;
	struct sq_claimed *claimed;
	size_t lent_n;
	struct sq_range fences;
	struct sq_map met;   /* hosts of which one was met in line; and in which order */
	int64_t *met_host;
	size_t met_n;
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

/* Parameter ?n is the longest duration that is wanted; what a person asked for is. Where each row counts there are two statements, for
   most claims want all that are due. */
#define WANTED(n) "(expect_us <= ?" #n " OR due_at_ms = 1)"

static bool choosy(const struct claim *c)
{
	return c->expect_max_us != INT64_MAX;
}

#define LEND "INSERT INTO leases (fence, feed_id, host_id, status, " SQ_STATE ") SELECT fw_number(), feed_id, host_id, 0, " SQ_STATE \
	" FROM line WHERE " STRETCH
#define STRETCH "id BETWEEN ?1 AND ?2 AND coalesce(wake_at_ms, due_at_ms) <= ?3"

/* The places between these two, from the line to the leases, n of them. */
static int stretch_lend(struct claim *c, int64_t first, int64_t last, int64_t until_ms, size_t n, struct fw_err *err)
{
	bool some = choosy(c);
	int rc = sq_do(c->s, some ? SQ_LEASE_PUT_SOME : SQ_LEASE_PUT, some ? LEND " AND " WANTED(4) " ORDER BY id" : LEND " ORDER BY id", err,
		some ? "iiii" : "iii", first, last, until_ms, c->expect_max_us);

	if (!rc && (size_t)sqlite3_changes(c->s->db) != n)
		rc = fw_err_set(err, FW_EIO, "%s: the line changed while it was read: `feedwheel doctor` finds out more", c->s->path);
	return rc ? rc : sq_do(c->s, some ? SQ_LINE_HEAD_DEL_SOME : SQ_LINE_HEAD_DEL, some ? "DELETE FROM line WHERE " STRETCH " AND " WANTED(4) :
		"DELETE FROM line WHERE " STRETCH, err, some ? "iiii" : "iii", first, last, until_ms, c->expect_max_us);
}

/* The places from..to - 1, which are all there is between them that is wanted and wakes by then, from the line to the leases. */
static int lend(struct claim *c, size_t from, size_t to, int64_t until_ms, struct fw_err *err)
{
	struct place *p = c->place;
	struct sqlite *s = c->s;
	int64_t fence;
	int rc = sq_number_load(s, err);

	fence = s->number;
	rc = rc ? rc : stretch_lend(c, p[from].id, p[to - 1].id, until_ms, to - from, err);
	for (size_t i = from; i < to && !rc; i++)
		lent(c, &p[i], &c->out[c->got->n + i].feed, ++fence);
	return rc;
}

static int lend_parked(struct claim *c, size_t i, struct fw_err *err)
{
	struct place *p = &c->place[i];
	struct sqlite *s = c->s;
	int64_t fence;
	int rc = sq_number(s, &fence, err);

	rc = rc ? rc : sq_do(s, SQ_LEASE_PARKED, "INSERT INTO leases (fence, feed_id, host_id, status, " SQ_STATE ") SELECT ?, feed_id, host_id,"
		" 0, " SQ_STATE " FROM aside WHERE feed_id = ?", err, "ii", fence, p->feed_id);
	rc = rc ? rc : sq_aside_del(s, p->feed_id, err);
	if (!rc)
		lent(c, p, &c->out[c->got->n + i].feed, fence);
	return rc;
}

/* Remember the host for claim_along(). */
static bool meet(struct claim *c, int64_t host_id)
{
	int64_t was;

	if (!c->met_host || sq_map_get(&c->met, host_id, &was))
		return true;
	c->met_host[c->met_n++] = host_id;
	return sq_map_put(&c->met, host_id, 1);
}

/* A feed of a crowded host: lend it; else one that was met in line is parked until it has its turn, and one asked for stays. */
static int lend_crowded(struct claim *c, size_t i, struct fw_err *err)
{
	struct place *p = &c->place[i];
	bool met = !c->ask.ids && p->id, may;
	struct sqlite *s = c->s;
	struct sq_host h;
	int rc = sq_host_get(s, p->host_id, &h, err);

	if (rc)
		return rc;
	if (met && !meet(c, p->host_id))
		return fw_err_set(err, FW_ENOMEM, "%s: claim: out of memory", s->path);
	may = !p->gone && fw_budget_may(&h.budget, &c->ask, c->me, c->now_ms);
	c->got->deferred_n += !may && !p->gone;
	if (!may && !met)
		return 0;
	h.turn_n -= p->wake_ms != FW_NO_DATE;
	if (p->gone) {
		rc = sq_line_del(s, p->id, err);
	} else if (!may) {
		rc = sq_put_aside(s, p->id, p->feed_id, p->host_id, err);
		h.parked_n++;
	} else {
		rc = p->id ? lend(c, i, i + 1, INT64_MAX, err) : lend_parked(c, i, err);
		h.parked_n -= !p->id;
		p->gap_ms = fw_budget_gap(&h.budget, &c->ask);
		p->expect_us = h.budget.expect_us;
		fw_budget_lend(&h.budget, &c->ask, c->me, c->now_ms);
	}
	if (!rc && met && !fw_budget_full(&h.budget, &c->ask, c->me))
		rc = sq_turn_give(s, &h, err);
	return rc ? rc : sq_host_set(s, &h, err);
}

#define HEAD "SELECT fw_take(l.id, l.feed_id, l.host_id, l.wake_at_ms, f.id, " SQ_STATE ", " SQ_WIDE ") FROM line l "
#define PARKED "SELECT fw_take(0, a.feed_id, a.host_id, NULL, f.id, " SQ_STATE ", " SQ_WIDE ") FROM aside a "
#define HEAD_STATE 5 /* the first of these */

/* fw_take(...) in HEAD: a row of the line (in PARKED: of aside) and its feed. Read here, a row's columns need not be copied to be handed out one by one. */
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
		.wake_ms = sqlite3_value_type(v[3]) == SQLITE_NULL ? FW_NO_DATE : sqlite3_value_int64(v[3]),
		.gone = sqlite3_value_type(v[4]) == SQLITE_NULL, .gap_ms = c->ask.host_gap_ms};
	*f = (struct fw_feed){0};
	sq_state_read(v + HEAD_STATE, f, &p->last_visit_id);
	sq_wide_read(v + HEAD_STATE + SQ_STATE_N, f);
	if (!fw_store_feed_dup(c->a, f))
		sqlite3_result_error_nomem(ctx);
}

int sq_claim_setup(struct sqlite *s, struct fw_err *err)
{
	return sqlite3_create_function(s->db, "fw_take", HEAD_STATE + SQ_STATE_N + SQ_WIDE_N, SQLITE_UTF8 | SQLITE_DIRECTONLY, s, take, NULL,
		NULL) == SQLITE_OK ? 0 : sq_error(s, "opening", err);
}

/* A round begins: up to max rows, their feeds behind what was lent before. */
static void round_begin(struct claim *c, size_t max)
{
	c->round_n = 0;
	c->round_max = max;
}

/* The rows that q finds. */
static int round_read(struct claim *c, sqlite3_stmt *q, struct fw_err *err)
{
	int rc = q ? 1 : err->rc;

	c->s->claim = c;
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
			rc = sq_line_del(c->s, p[i].id, err);
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

/* Hand out what was lent, in the order in which it was found. */
static void round_take(struct claim *c)
{
	size_t to = c->got->n, base = to;

	for (size_t i = 0; i < c->round_n; i++) {
		const struct place *p = &c->place[i];
		struct fw_lease *l = &c->out[to];

		if (!p->fence)
			continue;
		l->feed = c->out[base + i].feed;
		l->fence = l->feed.fence = p->fence;
		l->host_id = p->host_id;
		l->host_gap_ms = p->gap_ms;
		l->host_expect_us = p->expect_us;
		l->until_ms = l->feed.lease_until_ms = c->now_ms + c->ask.lease_ms;
		to++;
	}
	c->got->n = to;
}

/* So many rows of the line's head are looked at. */
static size_t scan_max(const struct claim *c)
{
	return c->ask.max * SCAN_FACTOR + SCAN_EXTRA;
}

#define DUE HEAD "LEFT JOIN feeds f ON f.id = l.feed_id WHERE l.id <= ?1 AND coalesce(wake_at_ms, due_at_ms) <= ?2"

/* Rounds of the line's head. */
static int claim_head(struct claim *c, struct fw_err *err)
{
	size_t left = scan_max(c), n;
	int64_t until = FW_MIN(c->now_ms, c->before_ms);
	int rc = 0;

	do {
		size_t max = FW_MIN(c->ask.max - c->got->n, left);
		bool some = choosy(c);
		sqlite3_stmt *q = sq_ask(c->s, some ? SQ_DUE_SOME : SQ_DUE, some ? DUE " AND " WANTED(4) " ORDER BY l.id LIMIT ?3" :
			DUE " ORDER BY l.id LIMIT ?3", err, some ? "iiii" : "iii", sq_slot_last(until), until, SQ_INT(max), c->expect_max_us);

		round_begin(c, max);
		rc = round_read(c, q, err);
		n = c->round_n;
		rc = rc ? rc : round_lend(c, n, true, until, err);
		if (!rc)
			round_take(c);
		left -= n;
	} while (!rc && n && left && c->got->n < c->ask.max); /* a loan may have brought the next of its host */
	return rc;
}

/* With a due_before in the past, feeds that were due before it may stand behind it, because they were moved. */
static int claim_moved(struct claim *c, struct fw_err *err)
{
	size_t max = c->ask.max - c->got->n;
	sqlite3_stmt *q = sq_ask(c->s, SQ_DUE_MOVED, HEAD "INDEXED BY line_moved LEFT JOIN feeds f ON f.id = l.feed_id"
		" WHERE wake_at_ms IS NOT NULL AND wake_at_ms > ?1 AND wake_at_ms <= ?2 AND due_at_ms <= ?1 AND " WANTED(4)
		" ORDER BY wake_at_ms LIMIT ?3", err, "iiii", c->before_ms, c->now_ms, SQ_INT(max), c->expect_max_us);
	int rc;

	round_begin(c, max);
	rc = round_read(c, q, err);
	rc = rc ? rc : round_lend(c, c->round_n, false, 0, err);
	if (!rc)
		round_take(c);
	return rc;
}

/* Those that came with the round are lent; what is left of the hosts' budgets is for others. */
static int turns_give(struct claim *c, struct fw_err *err)
{
	struct sq_host h;
	int rc = 0;

	for (size_t i = 0; i < c->round_n && !rc; i++) {
		if (!c->place[i].fence || !c->place[i].host_id)
			continue;
		rc = sq_host_get(c->s, c->place[i].host_id, &h, err);
		if (rc || !h.parked_n || h.turn_n || fw_budget_full(&h.budget, &c->ask, c->me))
			continue;
		rc = sq_turn_give(c->s, &h, err);
		rc = rc ? rc : sq_host_set(c->s, &h, err);
	}
	return rc;
}

/* Of a host whose turn came those that are parked go along, as far as this worker may have more ahead. */
static int claim_along(struct claim *c, int64_t host_id, struct fw_err *err)
{
	size_t n = 0, before = c->lent_n, room = c->ask.max - c->got->n;
	struct sq_host h;
	int rc = sq_host_get(c->s, host_id, &h, err);

	for (struct fw_budget b = h.budget; n < room && n < (size_t)h.parked_n && fw_budget_may(&b, &c->ask, c->me, c->now_ms); n++)
		fw_budget_lend(&b, &c->ask, c->me, c->now_ms);
	if (rc || !n)
		return rc;
	round_begin(c, n);
	rc = round_read(c, sq_ask(c->s, SQ_PARKED_OF, PARKED "INDEXED BY aside_parked JOIN feeds f ON f.id = a.feed_id WHERE a.host_id = ?1"
		" AND a.host_id > 0 AND due_at_ms <= ?2 AND " WANTED(4) " ORDER BY due_at_ms, feed_id LIMIT ?3", err, "iiii", host_id,
		FW_MIN(c->now_ms, c->before_ms), SQ_INT(n), c->expect_max_us), err);
	for (size_t i = 0; i < c->round_n && !rc; i++)
		rc = lend_crowded(c, i, err);
	rc = rc ? rc : turns_give(c, err);
	if (!rc)
		round_take(c);
	c->got->deferred_n -= FW_MIN(c->got->deferred_n, c->lent_n - before);
	return rc;
}

/* Read a feed where it waits, if it is due. */
static int id_read(struct claim *c, int64_t feed_id, struct fw_err *err)
{
	int64_t until = FW_MIN(c->now_ms, c->before_ms), place;
	int rc = sq_place_at(c->s, feed_id, &place, err);

	if (!rc && place)
		rc = round_read(c, sq_ask(c->s, SQ_DUE_AT, HEAD "JOIN feeds f ON f.id = l.feed_id WHERE l.id = ?1 AND l.feed_id = ?2"
			" AND due_at_ms <= ?3 AND " WANTED(4), err, "iiii", place, feed_id, until, c->expect_max_us), err);
	else if (!rc)
		rc = round_read(c, sq_ask(c->s, SQ_PARKED_AT, PARKED "JOIN feeds f ON f.id = a.feed_id WHERE a.feed_id = ?1 AND a.host_id > 0"
			" AND due_at_ms <= ?2 AND " WANTED(3), err, "iii", feed_id, until, c->expect_max_us), err);
	return rc;
}

/* The next round of numbers, from *at on. */
static int ids_read(struct claim *c, struct sq_map *seen, size_t *at, struct fw_err *err)
{
	const struct fw_claim_ask *ask = &c->ask;
	int rc = sq_places_ready(c->s, err);

	round_begin(c, ask->max - c->got->n);
	for (; *at < ask->id_n && c->round_n < c->round_max && !rc; ++*at) {
		int64_t id = ask->ids[*at], was;

		if (id <= 0 || sq_map_get(seen, id, &was))
			continue; /* twice */
		rc = sq_map_put(seen, id, 1) ? id_read(c, id, err) : fw_err_set(err, FW_ENOMEM, "%s: claim: out of memory", c->s->path);
	}
	return rc;
}

/* Those that are asked for by their numbers. The only feed of its host may have been put off for its sake. */
static int claim_ids(struct claim *c, struct fw_err *err)
{
	struct sq_map seen = {0};
	size_t at = 0;
	int rc = 0;

	while (!rc && at < c->ask.id_n && c->got->n < c->ask.max) {
		rc = ids_read(c, &seen, &at, err);
		for (size_t i = 0; i < c->round_n && !rc; i++) {
			struct place *p = &c->place[i];

			if (p->host_id)
				rc = lend_crowded(c, i, err);
			else if (p->wake_ms != FW_NO_DATE && p->wake_ms > c->now_ms)
				c->got->deferred_n++;
			else
				rc = lend(c, i, i + 1, INT64_MAX, err);
		}
		rc = rc ? rc : turns_give(c, err);
		if (!rc)
			round_take(c);
	}
	sq_map_finish(&seen);
	return rc;
}

/* Those that are due, earliest first. What goes ahead of its host's time may have what is left when all others had theirs. */
static int claim_due(struct claim *c, struct fw_err *err)
{
	uint32_t ahead = c->ask.host_ahead;
	int rc;

	if (ahead) {
		c->met_host = calloc(scan_max(c) + c->ask.max, sizeof(*c->met_host));
		if (!c->met_host)
			return fw_err_set(err, FW_ENOMEM, "%s: claim: out of memory", c->s->path);
	}
	c->ask.host_ahead = 0;
	rc = claim_head(c, err);
	if (!rc && c->before_ms < c->now_ms && c->got->n < c->ask.max)
		rc = claim_moved(c, err);
	c->ask.host_ahead = ahead;
	for (size_t i = 0; i < c->met_n && c->got->n < c->ask.max && !rc; i++)
		rc = claim_along(c, c->met_host[i], err);
	free(c->met_host);
	sq_map_finish(&c->met);
	return rc;
}

/* When the line's first slot begins to be due. Once its first row is, that is all one needs to know. */
static int line_wake(struct claim *c, int64_t *wake, struct fw_err *err)
{
	sqlite3_stmt *q = sq_ask(c->s, SQ_LINE_FIRST, "SELECT id, coalesce(wake_at_ms, due_at_ms) FROM line WHERE " WANTED(1)
		" ORDER BY id LIMIT 1", err, "i", c->expect_max_us);
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
	q = sq_ask(c->s, SQ_LINE_MIN, "SELECT min(coalesce(wake_at_ms, due_at_ms)) FROM line WHERE id <= ?1 AND " WANTED(2), err, "ii",
		id | SQ_NUMBER_MASK, c->expect_max_us);
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
	return sq_claim_put(c->s, c->fences.first, c->fences.last, c->now_ms + c->ask.lease_ms, c->ask.worker, err);
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
	struct claim c = {.s = sqlite_of(st), .ask = *ask, .a = a, .out = out, .got = got, .now_ms = now,
		.before_ms = ask->due_before_ms ? ask->due_before_ms : now, .me = fw_budget_holder(ask->worker),
		.expect_max_us = ask->expect_max_us ? ask->expect_max_us : INT64_MAX};
	int rc;

	c.place = calloc(ask->max + 1, sizeof(*c.place));
	if (!c.place)
		return fw_err_set(err, FW_ENOMEM, "%s: claim: out of memory", c.s->path);
	rc = sq_begin_quick(c.s, err);
	if (!rc) {
		rc = sq_claims_expire(c.s, now, err);
		c.claimed = ask->max ? sq_loans_new(c.s, ask->max) : NULL;
		if (!rc && ask->max)
			rc = ask->ids ? claim_ids(&c, err) : claim_due(&c, err);
		rc = rc ? rc : claim_note(&c, err);
		rc = rc ? rc : next_wake(&c, err);
		rc = sq_end(c.s, rc, err);
	}
	free(c.place);
	if (rc)
		*got = (struct fw_claim_got){.next_ms = FW_NO_DATE};
	else if (!ask->ids)
		sort_if_needed(out, got->n);
	return rc;
}
