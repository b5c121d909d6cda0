/* SPDX-License-Identifier: ISC */
/*
 * Visits. The visits of a feed form a chain: schedule links to the last one, each visit to the
 * previous one, until a link whose row was removed. A visit links to a visit that was stored before
 * it, so the chain has no cycle.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/fields.h"
#include "store/sql/core.h"

#define PAGE 500
#define APPEND_MIN 250      /* visits per commit: fewer are pipelined with the other statements */
#define SLACK_MS FW_HOUR_MS /* between clocks, and of commits */

/* The chain from ?1 back: at most ?2 visits, up to the first that is older than ?3. */
#define CHAIN                                                                                                         \
	"WITH RECURSIVE chain (id, previous_id, at_ms, kind, nth) AS (SELECT a.id, a.previous_id, a.at_ms, a.kind, 1" \
	" FROM visits a WHERE a.id = ?1 UNION ALL SELECT b.id, b.previous_id, b.at_ms, b.kind, c.nth + 1"             \
	" FROM chain c JOIN visits b ON b.id = c.previous_id WHERE c.nth < ?2 AND c.at_ms >= ?3) "

#define PUT "INSERT INTO visits (id, previous_id, {fields visit}) {values}", "id:i previous_id:i {visit}"

int sql_visits_put(struct sql *s, struct sql_visit *v, size_t n, struct fw_err *err)
{
	struct sql_rows r = {.s = s, .err = err, .table = n < APPEND_MIN ? NULL : "visits", .text = {PUT}};
	const struct sql_visit *last = NULL;

	for (size_t i = 0; i < n; i++) {
		if (!sql_has_visit(&v[i].o))
			continue;
		v[i].o.visit.feed_id = v[i].o.feed_id;
		sql_rows_add_fields(&r,
			SQL_V(SQL_INT(v[i].id),
				SQL_INT(last && last->o.feed_id == v[i].o.feed_id ? last->id : v[i].last_id)),
			"visit", &v[i].o.visit);
		last = &v[i];
	}
	return sql_rows_end(&r);
}

int sql_visit_exists(struct sql *s, int64_t last_id, const struct fw_visit *v, bool *there, struct fw_err *err)
{
	int64_t n = 0;
	int rc = sql_query_int(s, CHAIN "SELECT count(*) FROM chain WHERE at_ms = ?3 AND kind = ?4",
		SQL_V(SQL_INT(last_id), SQL_INT(PAGE), SQL_INT(v->at_ms), SQL_INT(v->kind)), 0, &n, err);

	*there = n;
	return rc;
}

static int visit_last_of(struct sql *s, int64_t position, int64_t *last_id, struct fw_err *err)
{
	return sql_query_int(
		s, "SELECT last_visit_id FROM schedule WHERE position = ?1", SQL_V(SQL_INT(position)), 0, last_id, err);
}

struct visit_links {
	struct sql_rows drop;
	size_t n;
	int64_t next;
};

static int visit_link_row(void *ctx, const struct sql_row *row)
{
	struct visit_links *l = ctx;

	sql_rows_add(&l->drop, SQL_V(SQL_INT(sql_int(row, 0))));
	l->next = sql_int(row, 1);
	l->n++;
	return 0;
}

int sql_visits_drop(struct sql *s, int64_t position, struct fw_err *err)
{
	struct visit_links l;
	int64_t next, gone = 0;
	int rc = visit_last_of(s, position, &next, err);

	do {
		l = (struct visit_links){.next = next,
			.drop = SQL_ROWS(s, err, "DELETE FROM visits {using} WHERE id = v.number", "number:i")};
		l.drop.rc = rc ? rc :
				 sql_query(s,
					 CHAIN "SELECT v.id, v.previous_id FROM chain c JOIN visits v ON v.id = c.id"
					       " ORDER BY c.nth {update}",
					 SQL_V(SQL_INT(l.next), SQL_INT(PAGE), SQL_INT(0)), visit_link_row, &l, err);
		rc = sql_rows_end(&l.drop);
		next = l.next;
		gone += (int64_t)l.n;
	} while (!rc && l.n == PAGE);
	return rc || !gone ? rc : sql_row_counts_add(s, 0, -gone, err);
}

/* ---- load ------------------------------------------------------------------------------------ */

struct loaded_visit {
	const struct fw_visit *v;
	int64_t position, previous_id; /* position -1: the feed does not exist, or the visit does */
};

struct loaded_visits {
	struct loaded_visit *at; /* grouped by feed, in order of id */
	size_t n;
};

static int visit_load_feed_row(void *ctx, const struct sql_row *row)
{
	const struct loaded_visits *l = ctx;
	struct loaded_visit *at = &l->at[sql_int(row, 0)];

	at->position = sql_int(row, 1);
	at->previous_id = sql_int(row, 2);
	return 0;
}

static int visit_load_id_row(void *ctx, const struct sql_row *row)
{
	const struct loaded_visits *l = ctx;

	l->at[sql_int(row, 0)].position = -1;
	return 0;
}

static int loaded_visit_compare(const void *a, const void *b)
{
	const struct fw_visit *x = ((const struct loaded_visit *)a)->v, *y = ((const struct loaded_visit *)b)->v;

	return x->feed_id != y->feed_id ? FW_ORDER(x->feed_id, y->feed_id) : FW_ORDER(x->id, y->id);
}

static int loaded_visits_find(struct sql *s, struct loaded_visits *l, struct fw_err *err)
{
	struct sql_rows position = SQL_QUERY_ROWS(s, err, visit_load_feed_row, l,
		"SELECT v.nth, t.position, t.last_visit_id FROM {rows}"
		" feeds f, schedule t WHERE f.id = v.feed AND t.position = f.position",
		"nth:i feed:i");
	struct sql_rows there = SQL_QUERY_ROWS(s, err, visit_load_id_row, l,
		"SELECT v.nth FROM {rows} visits x WHERE x.id = v.number", "nth:i number:i");

	for (size_t i = 0; i < l->n; i++)
		sql_rows_add(&position, SQL_V(SQL_INT(i), SQL_INT(l->at[i].v->feed_id)));
	there.rc = sql_rows_end(&position);
	for (size_t i = 0; i < l->n; i++)
		sql_rows_add(&there, SQL_V(SQL_INT(i), SQL_INT(l->at[i].v->id)));
	return sql_rows_end(&there);
}

/*
 * Count the loaded visits in a row of row_counts whose id is above theirs, so that new ids are
 * higher.
 */
static int row_counts_raise(struct sql *s, int64_t highest_id, int64_t n, struct fw_err *err)
{
	int64_t number = (highest_id >> SQL_VISIT_BITS) + 1, last;
	int rc = sql_query_int(s, "SELECT max(id) FROM row_counts", SQL_NONE, 0, &last, err);

	if (rc || last >= number)
		return rc ? rc : sql_row_counts_add(s, 0, n, err);
	rc = sql_exec(s, "INSERT INTO row_counts (id, entry_n, visit_n) VALUES (?1, 0, ?2)",
		SQL_V(SQL_INT(number), SQL_INT(n)), err);
	return rc || !s->dialect->row_counts_raised ? rc : s->dialect->row_counts_raised(s, err);
}

static int loaded_visits_put(struct sql *s, const struct loaded_visits *l, struct fw_err *err)
{
	struct sql_rows put = {.s = s, .err = err, .table = "visits", .text = {PUT}};
	struct sql_rows last = SQL_ROWS(s, err,
		"UPDATE schedule AS t SET last_visit_id = v.last {from} WHERE t.position = v.spot", "spot:i last:i");
	const struct loaded_visit *before = NULL;
	int64_t highest = 0, n = 0;

	for (size_t i = 0; i < l->n; i++) {
		const struct loaded_visit *x = &l->at[i];
		bool same = before && x->position == before->position;

		if (x->position < 0 || (same && x->v->id == before->v->id))
			continue;
		sql_rows_add_fields(
			&put, SQL_V(SQL_INT(x->v->id), SQL_INT(same ? before->v->id : x->previous_id)), "visit", x->v);
		if (before && !same)
			sql_rows_add(&last, SQL_V(SQL_INT(before->position), SQL_INT(before->v->id)));
		before = x;
		highest = FW_MAX(highest, x->v->id);
		n++;
	}
	put.rc = sql_rows_end(&put);
	last.rc = last.rc ? last.rc : put.rc;
	if (before)
		sql_rows_add(&last, SQL_V(SQL_INT(before->position), SQL_INT(before->v->id)));
	last.rc = sql_rows_end(&last);
	return last.rc || !n ? last.rc : row_counts_raise(s, highest, n, err);
}

int sql_visits_load(struct sql *s, const struct fw_visit *visit, size_t n, struct fw_err *err)
{
	struct loaded_visits l = {calloc(n + 1, sizeof(*l.at)), n};
	int rc = l.at ? 0 : fw_no_memory(err);

	assert(n > 0);
	for (size_t i = 0; !rc && i < n; i++)
		l.at[i] = (struct loaded_visit){&visit[i], -1, 0};
	if (!rc)
		qsort(l.at, n, sizeof(*l.at), loaded_visit_compare);
	rc = rc ? rc : loaded_visits_find(s, &l, err);
	rc = rc ? rc : loaded_visits_put(s, &l, err);
	free(l.at);
	return rc;
}

/* ---- lists ----------------------------------------------------------------------------------- */

struct visit_listing {
	const struct fw_visit_query *q;
	fw_visit_cb *cb;
	void *ctx;
	size_t seen, left;
	int64_t last_id, next_id; /* next_id: the next visit of the chain */
};

static int visit_list_row(void *ctx, const struct sql_row *row)
{
	struct visit_listing *l = ctx;
	struct fw_visit v = {.id = sql_int(row, 0), .feed_url = sql_str(row, 1)};

	l->next_id = sql_int(row, 2);
	sql_fields_set("visit", &v, row, 3);
	l->seen++;
	l->last_id = v.id;
	if (!l->left || v.at_ms < l->q->since_ms || (l->q->run_id && v.run_id != l->q->run_id))
		return 0;
	l->left--;
	return l->cb(l->ctx, &v);
}

/* *id: all visits since since_ms have higher ids. So no index by run or time is needed. */
static int visit_id_since(struct sql *s, int64_t since_ms, int64_t *id, struct fw_err *err)
{
	return sql_id_before(s, "SELECT max(id) FROM visits",
		"SELECT id, at_ms FROM visits WHERE id >= ?1 ORDER BY id LIMIT 1", since_ms - SLACK_MS, id, err);
}

#define SELECT "SELECT v.id, f.url, v.previous_id, {fields visit|v.}"

/* The visits of one feed, last stored first. */
static int visit_chain_list(struct sql *s, struct visit_listing *l, struct fw_err *err)
{
	int64_t position, since = FW_MAX(l->q->since_ms, l->q->run_id) - SLACK_MS; /* a run_id is its start time */
	bool all = l->q->since_ms || l->q->run_id;
	size_t asked;
	int rc = sql_feed_position(s, l->q->feed_id, false, &position, err);

	assert(l->q->feed_id && !l->q->oldest_first);
	if (rc)
		return rc == FW_ENOTFOUND ? 0 : rc;
	rc = visit_last_of(s, position, &l->next_id, err);
	do {
		asked = all ? PAGE : FW_MIN(l->left, (size_t)PAGE);
		l->seen = 0;
		rc = rc ? rc :
			  sql_query(s,
				  CHAIN SELECT " FROM chain c JOIN visits v ON v.id = c.id JOIN feeds f ON f.id = "
					       "v.feed_id ORDER BY c.nth",
				  SQL_V(SQL_INT(l->next_id), SQL_INT(asked), SQL_INT(FW_MAX(since, 0))), visit_list_row,
				  l, err);
	} while (!rc && l->seen == asked && l->left);
	return rc;
}

/* In pages: some client libraries buffer a whole result. */
int sql_visit_list(struct store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx, struct fw_err *err)
{
#define ASKED                                                                                             \
	" FROM visits v JOIN feeds f ON f.id = v.feed_id WHERE v.id > ?1 AND v.id < ?5 AND v.at_ms >= ?3" \
	" AND (?4 = 0 OR v.run_id = ?4) ORDER BY "
	struct visit_listing l = {.q = q, .cb = cb, .ctx = ctx, .left = q->limit ? q->limit : SIZE_MAX};
	int64_t since = 0, after, before = INT64_MAX;
	struct sql *s = sql_of(st);
	size_t asked;
	int rc = 0;

	if (q->feed_id && !q->oldest_first)
		return visit_chain_list(s, &l, err);
	if (q->since_ms || q->run_id)
		rc = visit_id_since(s, FW_MAX(q->since_ms, q->run_id), &since, err);
	after = q->oldest_first ? FW_MAX(q->after_id, since) : since;
	do {
		asked = FW_MIN(l.left, (size_t)PAGE);
		l.seen = 0;
		rc = rc ?
			rc :
			sql_query(s, q->oldest_first ? SELECT ASKED "v.id LIMIT ?2" : SELECT ASKED "v.id DESC LIMIT ?2",
				SQL_V(SQL_INT(after), SQL_INT(asked), SQL_INT(q->since_ms), SQL_INT(q->run_id),
					SQL_INT(before)),
				visit_list_row, &l, err);
		if (q->oldest_first)
			after = l.last_id;
		else
			before = l.last_id;
	} while (!rc && l.seen == asked && l.left);
	return rc;
}
