/* SPDX-License-Identifier: ISC */
/*
 * Leases: one row for each feed that is lent, under a fence of its own, and one row in `claims` for each claim: until when, by whom,
 * and a range of fences.
 *
 * Most leases come back to the connection that took them, as they were. So each connection remembers what it borrowed, and a commit
 * looks at a claim's row instead of each lease: as long as that is there and untouched, so are its leases. Whoever changes a lease
 * (its feed is paused, its host gets a second feed) touches the claim, and the commit reads what there is.
 */
#include <stdlib.h>

#include "store/sqlite.h"

#define EXPIRED_CLAIMS 8  /* taken back per claim */

/* ---- what this connection borrowed -------------------------------------------------------------------------------------- */

static void claimed_forget(struct sq_claimed *c)
{
	free(c->loan);
	*c = (struct sq_claimed){0};
}

void sq_loans_forget(struct sqlite *s)
{
	for (size_t i = 0; i < SQ_CLAIMED_MAX; i++)
		claimed_forget(&s->loans.claimed[i]);
}

struct sq_claimed *sq_loans_new(struct sqlite *s, size_t n)
{
	struct sq_claimed *c = &s->loans.claimed[s->loans.next];

	claimed_forget(c);
	c->loan = calloc(n ? n : 1, sizeof(*c->loan));
	return c->loan ? c : NULL;
}

void sq_loans_keep(struct sqlite *s, struct sq_claimed *c, struct sq_range fences, size_t n)
{
	if (!c)
		return;
	c->first = fences.first;
	c->last = fences.last;
	c->n = n;
	if (n) /* an idle claim takes nobody's room */
		s->loans.next = (s->loans.next + 1) % SQ_CLAIMED_MAX;
	else
		claimed_forget(c);
}

static struct sq_claimed *claimed_of(struct sqlite *s, int64_t fence)
{
	struct sq_claimed *last = &s->loans.claimed[s->loans.last];

	if (last->n && fence >= last->first && fence <= last->last)
		return last;
	for (size_t i = 0; i < SQ_CLAIMED_MAX; i++) {
		struct sq_claimed *c = &s->loans.claimed[i];

		if (!c->n || fence < c->first || fence > c->last)
			continue;
		s->loans.last = i;
		return c;
	}
	return NULL;
}

static struct sq_loan *loan_of(struct sq_claimed *c, int64_t fence)
{
	size_t lo = 0, hi = c->n;

	if (c->hint < c->n && c->loan[c->hint].fence == fence)
		return &c->loan[c->hint++];
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (c->loan[mid].fence < fence)
			lo = mid + 1;
		else
			hi = mid;
	}
	c->hint = lo + 1;
	return lo < c->n && c->loan[lo].fence == fence ? &c->loan[lo] : NULL;
}

void sq_loans_begin(struct sqlite *s)
{
	for (size_t i = 0; i < SQ_CLAIMED_MAX; i++)
		s->loans.claimed[i].looked = false;
}

/* Is the claim's row there, and untouched? Once per transaction. */
static int claimed_look(struct sqlite *s, struct sq_claimed *c, struct fw_err *err)
{
	sqlite3_stmt *q;
	int rc;

	if (c->looked)
		return 0;
	q = sq_ask(s, SQ_CLAIM_GOOD, "SELECT 1 FROM claims WHERE first_fence = ? AND last_fence = ? AND touched = 0", err, "ii", c->first,
		c->last);
	rc = q ? sq_row(s, q, err) : err->rc;
	if (rc < 0)
		return rc;
	if (rc > 0)
		sqlite3_reset(q);
	c->looked = true;
	c->good = rc > 0;
	return 0;
}

int sq_loan_take(struct sqlite *s, int64_t fence, int64_t feed_id, struct sq_loan **out, struct fw_err *err)
{
	struct sq_claimed *c = claimed_of(s, fence);
	struct sq_loan *l;
	int rc;

	*out = NULL;
	rc = c ? claimed_look(s, c, err) : 0;
	if (rc || !c || !c->good)
		return rc;
	l = loan_of(c, fence);
	if (!l || l->back || l->touched || l->feed_id != feed_id)
		return 0;
	l->back = true;
	c->back_n++;
	*out = l;
	return 0;
}

/* The leases from..to - 1 of a claim: those that came back in this transaction, and perhaps some that did before. */
static int stretch_end(struct sqlite *s, const struct sq_claimed *c, size_t from, size_t to, int64_t *n, struct fw_err *err)
{
	int rc = from < to ? sq_do(s, SQ_LEASES_DEL, "DELETE FROM leases WHERE fence BETWEEN ? AND ?", err, "ii", c->loan[from].fence,
		c->loan[to - 1].fence) : 0;

	*n += from < to && !rc ? sqlite3_changes(s->db) : 0;
	return rc;
}

/* c->gone_n of them went before; all that are back now must go, and no other. */
static int claimed_end(struct sqlite *s, struct sq_claimed *c, struct fw_err *err)
{
	size_t from = 0;
	int64_t n = 0;
	int rc = 0;

	for (size_t i = 0; i <= c->n && !rc; i++) {
		if (i < c->n && c->loan[i].back)
			continue;
		rc = stretch_end(s, c, from, i, &n, err);
		from = i + 1;
	}
	if (rc)
		return rc;
	if (n != (int64_t)(c->back_n - c->gone_n))
		return fw_err_set(err, FW_ESTALE, "%s: leases were deleted by hand", s->path);
	c->gone_n = c->back_n;
	return c->back_n < c->n ? 0 : sq_do(s, SQ_CLAIM_DROP, "DELETE FROM claims WHERE first_fence = ?", err, "i", c->first);
}

int sq_loans_end(struct sqlite *s, struct fw_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < SQ_CLAIMED_MAX && !rc; i++) {
		struct sq_claimed *c = &s->loans.claimed[i];

		if (c->looked && c->good && c->back_n > c->gone_n)
			rc = claimed_end(s, c, err);
	}
	return rc;
}

/* ---- leases -------------------------------------------------------------------------------------------------------------- */

int sq_lease_end(struct sqlite *s, int64_t fence, struct fw_err *err)
{
	return sq_do(s, SQ_LEASE_DEL, "DELETE FROM leases WHERE fence = ?", err, "i", fence);
}

int sq_lease_touch(struct sqlite *s, int64_t fence, struct fw_err *err)
{
	struct sq_claimed *c = claimed_of(s, fence);
	struct sq_loan *l = c ? loan_of(c, fence) : NULL;

	if (l)
		l->touched = true; /* also in this very transaction */
	return sq_do(s, SQ_CLAIM_TOUCH, "UPDATE claims SET touched = 1 WHERE first_fence = (SELECT first_fence FROM claims"
		" WHERE first_fence <= ? ORDER BY first_fence DESC LIMIT 1)", err, "i", fence);
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

/* Take back all that one claim lent. */
static int claim_end(struct sqlite *s, struct sq_range r, struct fw_err *err)
{
	int rc;

	for (;;) {
		sqlite3_stmt *q = sq_ask(s, SQ_LEASES_OF, "SELECT fence FROM leases WHERE fence BETWEEN ? AND ? LIMIT 1", err, "ii", r.first,
			r.last);
		int64_t fence;

		rc = q ? sq_row(s, q, err) : err->rc;
		if (rc <= 0)
			break;
		fence = sqlite3_column_int64(q, 0);
		sqlite3_reset(q);
		rc = sq_lease_return(s, fence, err);
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

int sq_claims_expire(struct sqlite *s, int64_t now, struct fw_err *err)
{
	bool more = true;
	int rc = 0;

	for (int i = 0; i < EXPIRED_CLAIMS && more && !rc; i++)
		rc = claim_end_next(s, sq_ask(s, SQ_EXPIRED, "SELECT first_fence, last_fence FROM claims WHERE until_ms <= ? LIMIT 1", err,
			"i", now), &more, err);
	return rc;
}

/* ---- leases back, unvisited --------------------------------------------------------------------------------------------- */

static int release_one(struct sqlite *s, const struct fw_lease *l, struct fw_err *err)
{
	sqlite3_stmt *q = sq_ask(s, SQ_LEASE_IS, "SELECT 1 FROM leases WHERE fence = ? AND feed_id = ?", err, "ii", l->fence, l->feed.id);
	int rc = q ? sq_row(s, q, err) : err->rc;

	if (rc <= 0)
		return rc; /* stale: passed over */
	sqlite3_reset(q);
	rc = sq_lease_touch(s, l->fence, err);
	return rc ? rc : sq_lease_return(s, l->fence, err);
}

int sq_release(struct fw_store *st, const struct fw_lease *lease, size_t n, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	struct sq_range tidied = {0, 0};
	int rc = sq_begin_quick(s, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < n && !rc; i++)
		rc = release_one(s, &lease[i], err);
	for (size_t i = 0; i < n && !rc; i++)
		rc = sq_claim_tidy(s, lease[i].fence, &tidied, err);
	return sq_end(s, rc, err);
}

static int crash_count(struct sqlite *s, int64_t fence, struct fw_err *err)
{
	int rc = sq_do(s, SQ_WHEEL_CRASH, "UPDATE leases SET crash_n = crash_n + 1, last_kind = ?2,"
		" status = CASE WHEN status = 0 AND crash_n + 1 >= ?3 THEN ?4 ELSE status END WHERE fence = ?1", err, "iiii", fence,
		SQ_INT(FW_VISIT_CRASH), SQ_INT(FW_STORE_CRASH_MAX), SQ_INT(FW_FEED_QUARANTINED));

	return rc ? rc : sq_lease_touch(s, fence, err);
}

int sq_bury(struct fw_store *st, const char *worker, int64_t crashed_feed_id, int64_t now_ms, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	bool more = true;
	int rc = sq_begin(s, err);

	(void)now_ms;
	if (rc)
		return rc;
	if (crashed_feed_id) {
		sqlite3_stmt *q = sq_ask(s, SQ_LEASE_OF_WORKER, "SELECT l.fence FROM claims c JOIN leases l"
			" ON l.fence BETWEEN c.first_fence AND c.last_fence WHERE c.worker = ? AND l.feed_id = ?", err, "si", fw_str(worker),
			crashed_feed_id);

		rc = q ? sq_row(s, q, err) : err->rc;
		if (rc > 0) { /* it had that feed: the feed is charged */
			int64_t fence = sqlite3_column_int64(q, 0);

			sqlite3_reset(q);
			rc = crash_count(s, fence, err);
		}
	}
	while (!rc && more)
		rc = claim_end_next(s, sq_ask(s, SQ_CLAIMS_OF, "SELECT first_fence, last_fence FROM claims WHERE worker = ? LIMIT 1", err,
			"s", fw_str(worker)), &more, err);
	return sq_end(s, rc, err);
}
