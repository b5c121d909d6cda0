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
 * Feeds of crowded hosts need budget (store/host.h) to be lent. One that a claim meets in line and that gets none is parked, so
 * 500 overdue feeds of one host are met once, not at every claim; from then on at most one feed of the host stands in line, at the
 * time when the host may be asked next: it "has the turn" (turn_n; its wake_at_ms is set). The invariant that keeps feeds from being
 * forgotten: a host with parked feeds has a turn in the line or a loan that will return, and who returns one gives the turn on.
 *
 * Fences, places in line and rows of visits are numbered by one counter (meta.last_number) and never used again. Claims:
 * sqlite_claim.c.
 */
#include "store/sqlite.h"

/* ---- hosts ------------------------------------------------------------------------------------------------------------ */

int sq_host_get(struct sqlite *s, int64_t id, struct sq_host *h, struct fw_err *err)
{
	sqlite3_stmt *q = sq_ask(s, SQ_HOST_GET, "SELECT turn_n, parked_n, busy_n, holder, next_ok_ms, cool_until_ms, pace_ms, expect_us"
		" FROM hosts WHERE id = ?", err, "i", id);
	int rc = q ? sq_row(s, q, err) : err->rc;

	*h = (struct sq_host){.id = id};
	if (rc <= 0)
		return rc;
	h->turn_n = sqlite3_column_int64(q, 0);
	h->parked_n = sqlite3_column_int64(q, 1);
	h->budget = (struct fw_budget){.busy_n = sqlite3_column_int64(q, 2), .holder = sqlite3_column_int64(q, 3),
		.next_ok_ms = sqlite3_column_int64(q, 4), .cool_until_ms = sqlite3_column_int64(q, 5), .pace_ms = sqlite3_column_int64(q, 6),
		.expect_us = sqlite3_column_int64(q, 7)};
	sqlite3_reset(q);
	return 0;
}

int sq_host_set(struct sqlite *s, const struct sq_host *h, struct fw_err *err)
{
	const struct fw_budget *b = &h->budget;

	return sq_do(s, SQ_HOST_SET, "UPDATE hosts SET turn_n = ?, parked_n = ?, busy_n = ?, holder = ?, next_ok_ms = ?, cool_until_ms = ?,"
		" pace_ms = ?, expect_us = ? WHERE id = ?", err, "iiiiiiiii", h->turn_n, h->parked_n, b->busy_n, b->holder, b->next_ok_ms,
		b->cool_until_ms, b->pace_ms, b->expect_us, h->id);
}

int sq_aside_del(struct sqlite *s, int64_t feed_id, struct fw_err *err)
{
	return sq_do(s, SQ_ASIDE_DEL, "DELETE FROM aside WHERE feed_id = ?", err, "i", feed_id);
}

int sq_turn_give(struct sqlite *s, struct sq_host *h, struct fw_err *err)
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
	rc = sq_line_from(s, SQ_ASIDE, feed, feed, h->id, due, FW_MAX(due, h->budget.next_ok_ms), err);
	rc = rc ? rc : sq_aside_del(s, feed, err);
	h->parked_n--;
	h->turn_n++;
	return rc;
}

int sq_host_return(struct sqlite *s, int64_t host_id, bool counted, const struct fw_outcome *o, int64_t now_ms, struct fw_err *err)
{
	struct sq_host h;
	int rc = sq_host_get(s, host_id, &h, err);

	if (rc)
		return rc;
	if (counted)
		fw_budget_return(&h.budget, o, now_ms);
	else if (o)
		fw_budget_tell(&h.budget, o, now_ms);
	rc = sq_turn_give(s, &h, err);
	return rc ? rc : sq_host_set(s, &h, err);
}

/* ---- getting on and off the wheel ------------------------------------------------------------------------------------- */

int sq_wheel_put(struct sqlite *s, const struct fw_feed *f, int64_t status, int64_t host_id, int64_t not_before_ms,
	int64_t last_visit_id, struct fw_err *err)
{
	if (status != FW_FEED_ACTIVE)
		return sq_do(s, SQ_ASIDE_PUT, "INSERT INTO aside (feed_id, host_id, status, " SQ_STATE ") VALUES (?,0,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
			err, "iiiiiiiiiiiiisi", f->id, status, f->due_at_ms, SQ_INT(f->last_kind), SQ_INT(f->http_status), SQ_INT(f->fail_n),
			SQ_INT(f->crash_n), f->last_visit_ms, f->last_ok_ms, f->last_new_ms, last_visit_id, f->expect_us, f->expect_dev_us,
			f->why, f->expect_parts);
	return sq_line_add(s, f, host_id, !host_id && not_before_ms > f->due_at_ms ? not_before_ms : FW_NO_DATE, last_visit_id, err);
}

int sq_line_del(struct sqlite *s, int64_t id, struct fw_err *err)
{
	return sq_do(s, SQ_LINE_DEL, "DELETE FROM line WHERE id = ?", err, "i", id);
}

int sq_put_aside(struct sqlite *s, int64_t id, int64_t feed_id, int64_t host_id, struct fw_err *err)
{
	int rc = sq_do(s, SQ_ASIDE_FROM_LINE, "INSERT INTO aside (feed_id, host_id, status, " SQ_STATE ") SELECT feed_id, ?, 0, " SQ_STATE
		" FROM line WHERE id = ?", err, "ii", host_id, id);

	sq_place_note(s, feed_id, 0);
	return rc ? rc : sq_line_del(s, id, err);
}

int sq_wheel_off(struct sqlite *s, int64_t feed_id, const struct sq_where *w, struct fw_err *err)
{
	bool turn = w->table == SQ_LINE && w->moved && w->host_id, parked = w->table == SQ_ASIDE && w->host_id;
	struct sq_host h;
	int rc = 0;

	if (w->table == SQ_LINE)
		rc = sq_put_aside(s, w->key, feed_id, 0, err);
	else if (parked)
		rc = sq_do(s, SQ_UNPARK, "UPDATE aside SET host_id = 0 WHERE feed_id = ?", err, "i", feed_id);
	if (rc || (!turn && !parked))
		return rc;
	rc = sq_host_get(s, w->host_id, &h, err);
	h.turn_n -= turn;
	h.parked_n -= parked;
	if (!rc && turn)
		rc = sq_turn_give(s, &h, err);
	return rc ? rc : sq_host_set(s, &h, err);
}

int sq_wheel_on(struct sqlite *s, int64_t feed_id, int64_t due_ms, int64_t host_id, int64_t not_before_ms, struct fw_err *err)
{
	int rc = sq_line_from(s, SQ_ASIDE, feed_id, feed_id, host_id, due_ms,
		!host_id && not_before_ms > due_ms ? not_before_ms : FW_NO_DATE, err);

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
	rc = counted ? sq_host_return(s, host_id, true, NULL, 0, err) : 0;
	if (!rc && status == FW_FEED_ACTIVE)
		rc = sq_line_from(s, SQ_LEASES, fence, feed_id, host_id, due, FW_NO_DATE, err);
	else if (!rc)
		rc = sq_do(s, SQ_ASIDE_FROM_LEASE, "INSERT INTO aside (feed_id, host_id, status, " SQ_STATE ") SELECT feed_id, 0, status, "
			SQ_STATE " FROM leases WHERE fence = ?", err, "i", fence);
	return rc ? rc : sq_lease_end(s, fence, err);
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

/* One of the two streams of due_list: in order, more or less, of column 2. */
struct due_stream {
	sqlite3_stmt *q;
	bool there;
};

static int due_next(struct sqlite *s, struct due_stream *d, struct fw_err *err)
{
	int rc = d->q ? sq_row(s, d->q, err) : err->rc;

	d->there = rc > 0;
	return FW_MIN(rc, 0);
}

#define DUE_ROW "feed_id, host_id, due_at_ms, expect_us, expect_dev_us, last_visit_ms"

int sq_due_list(struct fw_store *st, int64_t due_before_ms, size_t limit, fw_due_cb *cb, void *ctx, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	struct due_stream d[2] = {{.there = false}};
	int64_t last = sq_slot_last(due_before_ms);
	int rc;

	/* the line up to that time; what stands behind it, though it is due, and what is parked */
	d[0].q = sq_ask(s, SQ_DUE_LINE, "SELECT " DUE_ROW " FROM line WHERE id <= ? AND due_at_ms <= ? ORDER BY id", err, "ii", last, due_before_ms);
	rc = due_next(s, &d[0], err);
	if (rc)
		return rc;
	d[1].q = sq_ask(s, SQ_DUE_ASIDE, "SELECT " DUE_ROW " FROM (SELECT * FROM (SELECT " DUE_ROW " FROM line INDEXED BY line_moved"
		" WHERE wake_at_ms IS NOT NULL AND wake_at_ms > ?2 AND due_at_ms <= ?2 AND id > ?1) UNION ALL SELECT " DUE_ROW " FROM aside"
		" INDEXED BY aside_parked WHERE host_id > 0 AND due_at_ms <= ?2) ORDER BY due_at_ms", err, "ii", last, due_before_ms);
	rc = due_next(s, &d[1], err);
	for (size_t n = 0; !rc && (d[0].there || d[1].there) && (!limit || n < limit); n++) {
		struct due_stream *of = &d[!d[0].there || (d[1].there && sqlite3_column_int64(d[1].q, 2) < sqlite3_column_int64(d[0].q, 2))];

		rc = cb(ctx, &(struct fw_due_row){.feed_id = sqlite3_column_int64(of->q, 0), .host_id = sqlite3_column_int64(of->q, 1),
			.due_at_ms = sqlite3_column_int64(of->q, 2), .expect_us = sqlite3_column_int64(of->q, 3),
			.expect_dev_us = sqlite3_column_int64(of->q, 4), .last_visit_ms = sqlite3_column_int64(of->q, 5)});
		rc = rc ? rc : due_next(s, of, err);
	}
	for (size_t i = 0; i < FW_N(d); i++) {
		if (d[i].there)
			sqlite3_reset(d[i].q);
	}
	return rc;
}

/* ---- hosts come and go --------------------------------------------------------------------------------------------------- */

/* A second feed has come to this host: the first one's place now names the host, and its loan, if any, is counted. */
static int host_crowd(struct sqlite *s, int64_t host_id, int64_t first_feed, struct fw_err *err)
{
	struct sq_where w;
	struct sq_host h;
	int rc = sq_find(s, first_feed, NULL, &w, err);

	sq_found(&w);
	if (rc || w.host_id || (w.table != SQ_LINE && w.table != SQ_LEASES))
		return rc;
	rc = sq_host_get(s, host_id, &h, err);
	if (!rc && w.table == SQ_LINE) {
		rc = sq_do(s, SQ_LINE_HOST, "UPDATE line SET host_id = ? WHERE id = ?", err, "ii", host_id, w.key);
		h.turn_n += w.moved;
	} else if (!rc) {
		rc = sq_do(s, SQ_LEASE_HOST, "UPDATE leases SET host_id = ? WHERE fence = ?", err, "ii", host_id, w.key);
		rc = rc ? rc : sq_lease_touch(s, w.key, err);
		h.budget.busy_n++; /* of whoever it is: nobody takes more ahead until it is back */
		h.budget.holder = 0;
	}
	return rc ? rc : sq_host_set(s, &h, err);
}

int sq_host_join(struct sqlite *s, const struct fw_feed *feed, int64_t *host_id, bool *crowded, struct fw_err *err)
{
	int64_t feed_n = 0, first = 0;
	sqlite3_stmt *q;
	char name[256];
	int rc;

	if (!fw_store_feed_host(feed, name, sizeof(name)))
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
