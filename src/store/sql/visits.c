/* SPDX-License-Identifier: ISC */
/*
 * Visits: a row each. A feed's are a chain, from the last one, which the schedule names, back to
 * one that is not there any more. A visit links to the one that was stored before it, so links
 * never make a ring.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/fields.h"
#include "store/sql/core.h"
#include "base/banned.h"

#define COLUMNS_MAX 32
#define PAGE 500
#define SLACK_MS FW_HOUR_MS

/* From ?1 back: ?2 of them at most, none behind the first that is older than ?3. */
#define CHAIN \
	"WITH RECURSIVE chain (id, previous_id, at_ms, kind, nth) AS (SELECT a.id, a.previous_id, a.at_ms, a.kind, 1" \
	" FROM visits a WHERE a.id = ?1 UNION ALL SELECT b.id, b.previous_id, b.at_ms, b.kind, c.nth + 1" \
	" FROM chain c JOIN visits b ON b.id = c.previous_id WHERE c.nth < ?2 AND c.at_ms >= ?3) "

static bool is_made(const struct fw_outcome *o)
{
	return o->rc != FW_ENOTFOUND && o->visit.kind != FW_VISIT_NONE;
}

int sql_visits_put(
	struct sql *s, struct fw_outcome *o, const int64_t *id, const int64_t *last_id, size_t n, struct fw_err *err)
{
	static const struct sql_text PUT = {
		"INSERT INTO visits (id, previous_id, {fields visit}) {values}", "id:i previous_id:i {visit}"};
	struct sql_value *v = calloc(n + 1, COLUMNS_MAX * sizeof(*v)), *at = v;
	size_t rows = 0, columns = 0, before = n; /* before: the outcome of the last visit put */
	int rc;

	if (!v)
		return fw_no_memory(err);
	for (size_t i = 0; i < n; i++) {
		if (!is_made(&o[i]))
			continue;
		o[i].visit.feed_id = o[i].feed_id;
		at[0] = SQL_INT(id[i]);
		at[1] = SQL_INT(before < n && o[before].feed_id == o[i].feed_id ? id[before] : last_id[i]);
		columns = 2 + sql_fields_get("visit", &o[i].visit, at + 2);
		at += columns;
		before = i;
		rows++;
	}
	rc = sql_each(s, &PUT, v, columns, rows, err);
	free(v);
	return rc;
}

int sql_visit_there(struct sql *s, int64_t last_id, const struct fw_visit *v, bool *there, struct fw_err *err)
{
	static const struct sql_text THERE = {CHAIN "SELECT count(*) FROM chain WHERE at_ms = ?3 AND kind = ?4", NULL};
	int64_t n = 0;
	int rc = sql_number(s, &THERE,
		(struct sql_value[]){SQL_INT(last_id), SQL_INT(PAGE), SQL_INT(v->at_ms), SQL_INT(v->kind)}, 4, 0, &n, err);

	*there = n;
	return rc;
}

static int last_of(struct sql *s, int64_t place, int64_t *last_id, struct fw_err *err)
{
	static const struct sql_text LAST = {"SELECT last_visit_id FROM schedule WHERE place = ?1", NULL};

	return sql_number(s, &LAST, (struct sql_value[]){SQL_INT(place)}, 1, 0, last_id, err);
}

struct links {
	struct sql_value id[PAGE];
	size_t n;
	int64_t next;
};

static int link_row(void *ctx, const struct sql_row *row)
{
	struct links *l = ctx;

	if (l->n < PAGE)
		l->id[l->n++] = SQL_INT(sql_int(row, 0));
	l->next = sql_int(row, 1);
	return 0;
}

int sql_visits_drop(struct sql *s, int64_t place, struct fw_err *err)
{
	static const struct sql_text FIND = {
		CHAIN "SELECT v.id, v.previous_id FROM chain c JOIN visits v ON v.id = c.id ORDER BY c.nth {update}", NULL};
	static const struct sql_text DROP = {"DELETE FROM visits WHERE id IN (SELECT v.number FROM {rows})", "number:i"};
	struct links l;
	int64_t gone = 0;
	int rc = last_of(s, place, &l.next, err);

	do {
		l.n = 0;
		rc = rc ? rc :
			  sql_ask(s, &FIND, (struct sql_value[]){SQL_INT(l.next), SQL_INT(PAGE), SQL_INT(0)}, 3,
				  link_row, &l, NULL, err);
		rc = rc ? rc : sql_each(s, &DROP, l.id, 1, l.n, err);
		gone += (int64_t)l.n;
	} while (!rc && l.n == PAGE);
	return rc || !gone ? rc : sql_tally_add(s, 0, -gone, err);
}

/* ---- copies ---------------------------------------------------------------------------------- */

struct loaded_visit {
	const struct fw_visit *v;
	int64_t place, previous_id; /* place -1: its feed is not there, or the visit is there already */
};

struct loaded {
	struct loaded_visit *at;  /* each feed's together, by id */
	size_t n;
};

static int place_row(void *ctx, const struct sql_row *row)
{
	const struct loaded *l = ctx;
	struct loaded_visit *at = &l->at[sql_int(row, 0)];

	at->place = sql_int(row, 1);
	at->previous_id = sql_int(row, 2);
	return 0;
}

static int there_row(void *ctx, const struct sql_row *row)
{
	const struct loaded *l = ctx;

	l->at[sql_int(row, 0)].place = -1;
	return 0;
}

static int by_feed(const void *a, const void *b)
{
	const struct fw_visit *x = ((const struct loaded_visit *)a)->v, *y = ((const struct loaded_visit *)b)->v;

	if (x->feed_id != y->feed_id)
		return x->feed_id < y->feed_id ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static int loaded_look(struct sql *s, struct loaded *l, struct fw_err *err)
{
	static const struct sql_text PLACE = {"SELECT v.nth, t.place, t.last_visit_id FROM {rows}"
					      " JOIN feeds f ON f.id = v.feed JOIN schedule t ON t.place = f.place",
		"nth:i feed:i"};
	static const struct sql_text THERE = {
		"SELECT v.nth FROM {rows} JOIN visits x ON x.id = v.number", "nth:i number:i"};
	struct sql_value *v = calloc(l->n + 1, 2 * sizeof(*v));
	int rc;

	if (!v)
		return fw_no_memory(err);
	for (size_t i = 0; i < l->n; i++) {
		v[2 * i] = SQL_INT(i);
		v[2 * i + 1] = SQL_INT(l->at[i].v->feed_id);
	}
	rc = sql_ask_each(s, &PLACE, v, 2, l->n, place_row, l, err);
	for (size_t i = 0; i < l->n; i++)
		v[2 * i + 1] = SQL_INT(l->at[i].v->id);
	rc = rc ? rc : sql_ask_each(s, &THERE, v, 2, l->n, there_row, l, err);
	free(v);
	return rc;
}

/* New ones go on above these: a row of the tally says how many they are, and its number is above theirs. */
static int tally_raise(struct sql *s, int64_t highest_id, int64_t n, struct fw_err *err)
{
	static const struct sql_text LAST = {"SELECT max(id) FROM tally", NULL};
	static const struct sql_text RAISE = {"INSERT INTO tally (id, entry_n, visit_n) VALUES (?1, 0, ?2)", NULL};
	int64_t number = (highest_id >> SQL_VISIT_BITS) + 1, last;
	int rc = sql_number(s, &LAST, NULL, 0, 0, &last, err);

	if (rc || last >= number)
		return rc ? rc : sql_tally_add(s, 0, n, err);
	rc = sql_do(s, &RAISE, (struct sql_value[]){SQL_INT(number), SQL_INT(n)}, 2, err);
	return rc || !s->dialect->tally_raised ? rc : s->dialect->tally_raised(s, err);
}

static int loaded_put(struct sql *s, const struct loaded *l, struct sql_value *v, struct fw_err *err)
{
	static const struct sql_text PUT = {
		"INSERT INTO visits (id, previous_id, {fields visit}) {values}", "id:i previous_id:i {visit}"};
	static const struct sql_text LAST = {
		"UPDATE schedule AS t {join} SET last_visit_id = v.last {from} WHERE t.place = v.spot", "spot:i last:i"};
	struct sql_value *at = v;
	size_t rows = 0, columns = 0, feeds = 0;
	int64_t highest = 0, last_place = -1, last_id = 0;
	int rc;

	for (size_t i = 0; i < l->n; i++) {
		const struct loaded_visit *x = &l->at[i];

		if (x->place < 0 || (rows && x->v->id == last_id))
			continue;
		at[0] = SQL_INT(x->v->id);
		at[1] = SQL_INT(x->place == last_place ? last_id : x->previous_id);
		columns = 2 + sql_fields_get("visit", x->v, at + 2);
		at += columns;
		rows++;
		last_place = x->place;
		last_id = x->v->id;
		highest = FW_MAX(highest, last_id);
	}
	if (!rows)
		return 0;
	rc = sql_append(s, "visits", &PUT, v, columns, rows, err);
	for (size_t i = 0; i < l->n; i++) {
		const struct loaded_visit *x = &l->at[i];

		if (x->place < 0)
			continue;
		feeds += !feeds || v[2 * feeds - 2].i != x->place;
		v[2 * feeds - 2] = SQL_INT(x->place);
		v[2 * feeds - 1] = SQL_INT(x->v->id);
	}
	rc = rc ? rc : sql_each(s, &LAST, v, 2, feeds, err);
	return rc ? rc : tally_raise(s, highest, (int64_t)rows, err);
}

int sql_visits_load(struct sql *s, const struct fw_visit *visit, size_t n, struct fw_err *err)
{
	struct sql_value *v = calloc(n + 1, COLUMNS_MAX * sizeof(*v));
	struct loaded l = {calloc(n + 1, sizeof(*l.at)), n};
	int rc = v && l.at ? 0 : fw_no_memory(err);

	for (size_t i = 0; !rc && i < n; i++)
		l.at[i] = (struct loaded_visit){&visit[i], -1, 0};
	if (!rc)
		qsort(l.at, n, sizeof(*l.at), by_feed);
	rc = rc ? rc : loaded_look(s, &l, err);
	rc = rc ? rc : loaded_put(s, &l, v, err);
	free(v);
	free(l.at);
	return rc;
}

/* ---- lists ----------------------------------------------------------------------------------- */

struct listing {
	const struct fw_visit_query *q;
	fw_visit_cb *cb;
	void *ctx;
	size_t seen, left;
	int64_t last_id, next_id; /* next_id: of a chain */
};

static int visit_row(void *ctx, const struct sql_row *row)
{
	struct listing *l = ctx;
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

#define SELECT "SELECT v.id, f.url, v.previous_id, {fields visit|v.}"

/* Newest first, as they were stored. */
static int chain_list(struct sql *s, struct listing *l, struct fw_err *err)
{
	static const struct sql_text PAGE_OF = {CHAIN SELECT " FROM chain c JOIN visits v ON v.id = c.id"
		" JOIN feeds f ON f.id = v.feed_id ORDER BY c.nth", NULL};
	int64_t place, since = FW_MAX(l->q->since_ms, l->q->run_id) - SLACK_MS; /* a run is called by when it began */
	bool all = l->q->since_ms || l->q->run_id;
	size_t asked;
	int rc = sql_feed_place(s, l->q->feed_id, false, &place, err);

	if (rc)
		return rc == FW_ENOTFOUND ? 0 : rc;
	rc = last_of(s, place, &l->next_id, err);
	do {
		asked = all ? PAGE : FW_MIN(l->left, (size_t)PAGE);
		l->seen = 0;
		rc = rc ? rc :
			  sql_ask(s, &PAGE_OF,
				  (struct sql_value[]){SQL_INT(l->next_id), SQL_INT(asked), SQL_INT(FW_MAX(since, 0))},
				  3, visit_row, l, NULL, err);
	} while (!rc && l->seen == asked && l->left);
	return rc;
}

/* In pages: some engines hold a whole answer in memory. */
int sql_visit_list(struct store *st, const struct fw_visit_query *q, fw_visit_cb *cb, void *ctx, struct fw_err *err)
{
#define ASKED \
	" FROM visits v JOIN feeds f ON f.id = v.feed_id WHERE v.id > ?1 AND v.id < ?5 AND v.at_ms >= ?3" \
	" AND (?4 = 0 OR v.run_id = ?4) ORDER BY "
	static const struct sql_text OLDEST = {SELECT ASKED "v.id LIMIT ?2", NULL};
	static const struct sql_text NEWEST = {SELECT ASKED "v.id DESC LIMIT ?2", NULL};
	struct listing l = {.q = q, .cb = cb, .ctx = ctx, .left = q->limit ? q->limit : SIZE_MAX};
	int64_t since = 0, after, before = INT64_MAX;
	struct sql *s = sql_of(st);
	size_t asked;
	int rc = 0;

	if (q->feed_id && !q->oldest_first)
		return chain_list(s, &l, err);
	if (q->since_ms || q->run_id)
		rc = since_id(s, FW_MAX(q->since_ms, q->run_id), &since, err);
	after = q->oldest_first ? FW_MAX(q->after_id, since) : since;
	do {
		asked = FW_MIN(l.left, (size_t)PAGE);
		l.seen = 0;
		rc = rc ? rc :
			  sql_ask(s, q->oldest_first ? &OLDEST : &NEWEST,
				  (struct sql_value[]){SQL_INT(after), SQL_INT(asked), SQL_INT(q->since_ms),
					  SQL_INT(q->run_id), SQL_INT(before)},
				  5, visit_row, &l, NULL, err);
		if (q->oldest_first)
			after = l.last_id;
		else
			before = l.last_id;
	} while (!rc && l.seen == asked && l.left);
	return rc;
}
