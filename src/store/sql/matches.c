/* SPDX-License-Identifier: ISC */
/* Matches of orders: rows that wait for delivery, and dead ones. entries.c: what a commit adds. */
#include <assert.h>

#include "store/sql/core.h"

#define PAGE 1000 /* rows per result: the callback may take its time */

static const char DELETE[] =
	"DELETE FROM matches {using} WHERE order_id = v.owner AND dead = v.was AND change_id = v.number";
#define DELETE_COLUMNS "owner:i was:i number:i"

int sql_matches_insert(struct sql *s, const struct fw_match *m, size_t n, bool dead, struct fw_err *err)
{
	struct sql_rows r = SQL_ROWS(s, err,
		"INSERT INTO matches (order_id, dead, change_id, entry_id, feed_id, at_ms, changed) {values}"
		" {keep order_id, dead, change_id|matches.order_id}",
		"order_id:i dead:i change_id:i entry_id:i feed_id:i at_ms:i changed:i");

	for (size_t i = 0; i < n; i++)
		sql_rows_add(&r,
			SQL_V(SQL_INT(m[i].order_id), SQL_INT(dead), SQL_INT(m[i].change_id), SQL_INT(m[i].entry_id),
				SQL_INT(m[i].feed_id), SQL_INT(m[i].at_ms), SQL_INT(m[i].changed)));
	return sql_rows_end(&r);
}

struct match_putting {
	const struct fw_match *m;
	size_t n;
	bool dead;
};

static int matches_put_all(struct sql *s, void *ctx, struct fw_err *err)
{
	const struct match_putting *p = ctx;
	struct sql_rows r = SQL_ROWS(s, err, DELETE, DELETE_COLUMNS);
	int rc;

	for (size_t i = 0; i < p->n; i++)
		sql_rows_add(&r, SQL_V(SQL_INT(p->m[i].order_id), SQL_INT(!p->dead), SQL_INT(p->m[i].change_id)));
	rc = sql_rows_end(&r);
	return rc ? rc : sql_matches_insert(s, p->m, p->n, p->dead, err);
}

int sql_match_put(struct store *st, const struct fw_match *match, size_t n, bool dead, struct fw_err *err)
{
	return sql_transaction(sql_of(st), matches_put_all, &(struct match_putting){match, n, dead}, err);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct match_listing {
	fw_match_cb *cb;
	void *ctx;
	int64_t after_id;
	size_t n;
};

static int match_list_row(void *ctx, const struct sql_row *row)
{
	struct match_listing *l = ctx;
	struct fw_match m = {.order_id = sql_int(row, 0),
		.change_id = sql_int(row, 1),
		.entry_id = sql_int(row, 2),
		.feed_id = sql_int(row, 3),
		.at_ms = sql_int(row, 4),
		.changed = sql_int(row, 5) != 0};

	l->n++;
	l->after_id = m.change_id;
	return l->cb(l->ctx, &m);
}

int sql_match_list(struct store *st, const struct fw_match_query *q, fw_match_cb *cb, void *ctx, struct fw_err *err)
{
	struct match_listing l = {.cb = cb, .ctx = ctx, .after_id = q->after_change_id};
	size_t left = q->limit ? q->limit : SIZE_MAX, page;
	int rc;

	do {
		page = FW_MIN(left, (size_t)PAGE);
		l.n = 0;
		rc = sql_query(sql_of(st),
			"SELECT order_id, change_id, entry_id, feed_id, at_ms, changed FROM matches WHERE order_id = ?1"
			" AND dead = ?2 AND change_id > ?3 ORDER BY change_id LIMIT ?4",
			SQL_V(SQL_INT(q->order_id), SQL_INT(q->dead), SQL_INT(l.after_id), SQL_INT(page)),
			match_list_row, &l, err);
		left -= FW_MIN(l.n, left);
	} while (!rc && left && l.n == page);
	return rc;
}

struct match_removing {
	int64_t order_id;
	bool dead;
	const int64_t *change_id;
	size_t n;
};

static int matches_remove_listed(struct sql *s, void *ctx, struct fw_err *err)
{
	const struct match_removing *m = ctx;
	struct sql_rows r = SQL_ROWS(s, err, DELETE, DELETE_COLUMNS);

	for (size_t i = 0; i < m->n; i++)
		sql_rows_add(&r, SQL_V(SQL_INT(m->order_id), SQL_INT(m->dead), SQL_INT(m->change_id[i])));
	return sql_rows_end(&r);
}

int sql_match_remove(
	struct store *st, int64_t order_id, bool dead, const int64_t *change_id, size_t n, struct fw_err *err)
{
	if (n)
		return sql_transaction(
			sql_of(st), matches_remove_listed, &(struct match_removing){order_id, dead, change_id, n}, err);
	return sql_exec_count(sql_of(st), "DELETE FROM matches WHERE order_id = ?1 AND dead = ?2",
		SQL_V(SQL_INT(order_id), SQL_INT(dead)), &(int64_t){0}, err);
}

struct match_summing {
	fw_match_summary_cb *cb;
	void *ctx;
};

static int match_summary_row(void *ctx, const struct sql_row *row)
{
	const struct match_summing *s = ctx;

	return s->cb(s->ctx, sql_int(row, 0), sql_int(row, 1), sql_int(row, 2), sql_int(row, 3));
}

int sql_match_summary(struct store *st, fw_match_summary_cb *cb, void *ctx, struct fw_err *err)
{
	return sql_query(sql_of(st),
		"SELECT order_id, {sum 1 - dead}, {sum dead}, coalesce(min(CASE WHEN dead = 0 THEN at_ms END), 0)"
		" FROM matches GROUP BY order_id",
		SQL_NONE, match_summary_row, &(struct match_summing){cb, ctx}, err);
}
