/* SPDX-License-Identifier: ISC */
/* Visits: a row each. A feed's are found by its place and their time. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/fields.h"
#include "store/sql/core.h"
#include "base/banned.h"

#define COLUMNS_MAX 32
#define PAGE 500
#define SLACK_MS FW_HOUR_MS

int sql_visits_put(struct sql *s, struct store_outcome *o, const int64_t *place, size_t n, struct fw_err *err)
{
	static const struct sql_text PUT = {"INSERT INTO visits (place, {fields visit}) {values}", "place:i {visit}"};
	struct sql_value *v = calloc(n + 1, COLUMNS_MAX * sizeof(*v)), *at = v;
	size_t rows = 0, columns = 0;
	int rc;

	if (!v)
		return fw_no_memory(err);
	for (size_t i = 0; i < n; i++) {
		if (o[i].rc == FW_ENOTFOUND || o[i].visit.kind == FW_VISIT_NONE)
			continue;
		o[i].visit.feed_id = o[i].feed_id;
		at[0] = SQL_INT(place[i]);
		columns = 1 + sql_fields_get("visit", &o[i].visit, at + 1);
		at += columns;
		rows++;
	}
	rc = sql_each(s, &PUT, v, columns, rows, NULL, err);
	free(v);
	return rc;
}

/* ---- copies ---------------------------------------------------------------------------------- */

struct loaded {
	const struct fw_visit *v;
	size_t n;
	int64_t *place;           /* of each one's feed; -1: there is none, -2: the visit is there already */
};

static int place_row(void *ctx, const struct sql_row *row)
{
	struct loaded *l = ctx;

	l->place[sql_int(row, 0)] = sql_int(row, 1);
	return 0;
}

static int there_row(void *ctx, const struct sql_row *row)
{
	struct loaded *l = ctx;

	l->place[sql_int(row, 0)] = -2;
	return 0;
}

static int loaded_look(struct sql *s, struct loaded *l, struct fw_err *err)
{
	static const struct sql_text PLACE = {
		"SELECT v.nth, f.place FROM {rows} JOIN feeds f ON f.id = v.feed", "nth:i feed:i"};
	static const struct sql_text THERE = {
		"SELECT v.nth FROM {rows} JOIN visits x ON x.id = v.number", "nth:i number:i"};
	struct sql_value *v = calloc(l->n + 1, 2 * sizeof(*v));
	int rc;

	if (!v)
		return fw_no_memory(err);
	for (size_t i = 0; i < l->n; i++) {
		v[2 * i] = SQL_INT(i);
		v[2 * i + 1] = SQL_INT(l->v[i].feed_id);
	}
	rc = sql_ask_each(s, &PLACE, v, 2, l->n, place_row, l, err);
	for (size_t i = 0; i < l->n; i++)
		v[2 * i + 1] = SQL_INT(l->v[i].id);
	rc = rc ? rc : sql_ask_each(s, &THERE, v, 2, l->n, there_row, l, err);
	free(v);
	return rc;
}

int sql_visits_load(struct sql *s, const struct fw_visit *visit, size_t n, struct fw_err *err)
{
	static const struct sql_text PUT = {
		"INSERT INTO visits (id, place, {fields visit}) {values}", "id:i place:i {visit}"};
	struct sql_value *v = calloc(n + 1, COLUMNS_MAX * sizeof(*v)), *at = v;
	struct loaded l = {visit, n, calloc(n + 1, sizeof(*l.place))};
	size_t rows = 0, columns = 0;
	int rc = v && l.place ? 0 : fw_no_memory(err);

	for (size_t i = 0; !rc && i < n; i++)
		l.place[i] = -1;
	rc = rc ? rc : loaded_look(s, &l, err);
	for (size_t i = 0; !rc && i < n; i++) {
		if (l.place[i] < 0)
			continue;
		at[0] = SQL_INT(visit[i].id);
		at[1] = SQL_INT(l.place[i]);
		columns = 2 + sql_fields_get("visit", &visit[i], at + 2);
		at += columns;
		rows++;
	}
	rc = rc ? rc : sql_append(s, "visits", &PUT, v, columns, rows, err);
	if (!rc && rows && s->dialect->visits_loaded)
		rc = s->dialect->visits_loaded(s, err);
	free(v);
	free(l.place);
	return rc ? rc : sql_tally_add(s, 0, (int64_t)rows, err);
}

/* ---- lists ----------------------------------------------------------------------------------- */

struct listing {
	fw_visit_cb *cb;
	void *ctx;
	size_t seen, left;
	int64_t last_id, last_at_ms;
};

static int visit_row(void *ctx, const struct sql_row *row)
{
	struct listing *l = ctx;
	struct fw_visit v = {.id = sql_int(row, 0), .feed_url = sql_str(row, 1)};

	sql_fields_set("visit", &v, row, 2);
	l->seen++;
	l->left--;
	l->last_id = v.id;
	l->last_at_ms = v.at_ms;
	return l->cb(l->ctx, &v);
}

struct first {
	int64_t id, at_ms;
	bool seen;
};

static int first_row(void *ctx, const struct sql_row *row)
{
	*(struct first *)ctx = (struct first){sql_int(row, 0), sql_int(row, 1), true};
	return 0;
}

/*
 * *id: all visits made from since_ms on have higher ids, found by halving: ids rise with time, but
 * for clocks and commits that are apart by less than the slack. So neither a run nor a time needs
 * an index.
 */
static int since_id(struct sql *s, int64_t since_ms, int64_t *id, struct fw_err *err)
{
	static const struct sql_text LAST = {"SELECT max(id) FROM visits", NULL};
	static const struct sql_text NEXT = {"SELECT id, at_ms FROM visits WHERE id >= ?1 ORDER BY id LIMIT 1", NULL};
	int64_t hi;
	int rc = sql_number(s, &LAST, NULL, 0, 0, &hi, err);

	*id = 0;
	while (!rc && *id < hi) { /* up to *id: before; above hi: not looked at */
		int64_t mid = *id + (hi - *id) / 2 + 1;
		struct first f = {0};

		rc = sql_ask(s, &NEXT, (struct sql_value[]){SQL_INT(mid)}, 1, first_row, &f, NULL, err);
		if (!f.seen || f.at_ms >= since_ms - SLACK_MS)
			hi = mid - 1;
		else
			*id = f.id;
	}
	return rc;
}

#define SELECT "SELECT v.id, f.url, {fields visit|v.} FROM visits v JOIN feeds f ON f.place = v.place"

/* In pages: some engines hold a whole answer in memory. */
int sql_visit_list(struct store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx, struct fw_err *err)
{
#define ASKED " AND v.at_ms >= ?3 AND (?4 = 0 OR v.run_id = ?4) ORDER BY "
	static const struct sql_text OLDEST = {SELECT " WHERE v.id > ?1" ASKED "v.id LIMIT ?2", NULL};
	static const struct sql_text NEWEST = {
		SELECT " WHERE v.id < ?1 AND v.id > ?7" ASKED "v.id DESC LIMIT ?2", NULL};
	static const struct sql_text OF_FEED = {
		SELECT " WHERE v.place = ?5 AND v.at_ms <= ?6 AND (v.at_ms < ?6 OR v.id < ?1)" ASKED
		       "v.at_ms DESC, v.id DESC LIMIT ?2",
		NULL};
	struct listing l = {.cb = cb, .ctx = ctx, .last_at_ms = INT64_MAX, .left = q->limit ? q->limit : SIZE_MAX};
	const struct sql_text *text = q->oldest_first ? &OLDEST : q->feed_id ? &OF_FEED : &NEWEST;
	struct sql *s = sql_of(st);
	int64_t place = 0, since = 0;
	size_t asked;
	int rc = q->feed_id ? sql_feed_place(s, q->feed_id, false, &place, err) : 0;

	if (!rc && text != &OF_FEED && (q->since_ms || q->run_id)) /* a run is called by when it began */
		rc = since_id(s, FW_MAX(q->since_ms, q->run_id), &since, err);
	l.last_id = q->oldest_first ? FW_MAX(q->after_id, since) : INT64_MAX;
	if (rc)
		return rc == FW_ENOTFOUND ? 0 : rc;
	do {
		asked = FW_MIN(l.left, (size_t)PAGE);
		l.seen = 0;
		rc = sql_ask(s, text,
			(struct sql_value[]){SQL_INT(l.last_id), SQL_INT(asked), SQL_INT(q->since_ms),
				SQL_INT(q->run_id), SQL_INT(place), SQL_INT(l.last_at_ms), SQL_INT(since)},
			7, visit_row, &l, NULL, err);
	} while (!rc && l.seen == asked && l.left);
	return rc;
}
