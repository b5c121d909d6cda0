/* SPDX-License-Identifier: ISC */
/* Statistics and maintenance. */
#include <assert.h>

#include "store/sql/core.h"
#include "base/banned.h"

#define VISITS_STEP 2000
#define ENTRIES_STEP 200
#define TALLY_STEP 1000

/* ---- statistics ------------------------------------------------------------------------------ */

static int stats_row(void *ctx, const struct sql_row *row)
{
	struct fw_store_stats *s = ctx;
	int64_t *const to[] = {&s->feed_n, &s->active_n, &s->paused_n, &s->gone_n, &s->quarantined_n, &s->failing_n,
		&s->due_n, &s->entry_n, &s->visit_n, &s->last_feed_id, &s->last_entry_id, &s->last_visit_id};

	for (size_t i = 0; i < FW_N(to); i++)
		*to[i] = sql_int(row, (int)i);
	s->next_due_ms = sql_date(row, FW_N(to));
	return 0;
}

int sql_stats(struct store *st, struct fw_store_stats *out, struct fw_err *err)
{
#define COUNT(what) "{sum CASE WHEN " what " THEN 1 ELSE 0 END}, "
	struct sql *s = sql_of(st);
	int64_t now_ms;
	int rc = sql_clock(st, &now_ms, err);

	rc = rc ? rc : sql_ask(s, "SELECT count(*), " COUNT("status = 0") COUNT("status = 1") COUNT("status = 2")
		COUNT("status = 3") COUNT("fail_n > 0") COUNT("status = 0 AND due_at_ms <= ?1")
		"(SELECT {sum entry_n} FROM tally), (SELECT {sum visit_n} FROM tally), (SELECT max(id) FROM feeds),"
		" (SELECT max(id) FROM entries), (SELECT max(id) FROM visits), min(CASE WHEN status = 0 THEN"
		" due_at_ms END) FROM schedule", SQL_V(SQL_INT(now_ms)), stats_row, out, err);
	rc = rc ? rc : s->dialect->search_unindexed(s, &out->unindexed_n, err);
	out->schema = SQL_SCHEMA;
	out->size_bytes = -1;
	return !rc && s->dialect->size ? s->dialect->size(s, &out->size_bytes, err) : rc;
}

/* ---- maintenance ----------------------------------------------------------------------------- */

/*
 * Retention of a table. look: among the first ?2 rows, the last id that is older than ?1; ids rise
 * with time, within the slack of a commit or a clock. drop: remove the rows up to that id that are
 * older. step: rows per step.
 */
struct ageing {
	const char *look, *drop;
	int64_t step;
};
/* clang-format off */
#define AGEING(table, time, step) { \
	"SELECT max(x.id) FROM (SELECT id, " time " AS t FROM " table " ORDER BY id LIMIT ?2) x WHERE x.t < ?1", \
	"DELETE FROM " table " WHERE id <= ?2 AND " time " < ?1", (step)}
/* clang-format on */
static const struct ageing VISITS = AGEING("visits", "at_ms", VISITS_STEP);
static const struct ageing EVENTS = AGEING("incoming", "stamp", FW_EVENT_STEP);
static const struct ageing DEAD = AGEING("incoming_dead", "at_ms", FW_EVENT_STEP);
/* By expiry time, not id; rows of the same millisecond are removed together. */
static const struct ageing RECORDS = {"SELECT max(x.t) FROM (SELECT until_ms AS t FROM records WHERE until_ms < ?1"
	" ORDER BY until_ms LIMIT ?2) x", "DELETE FROM records WHERE until_ms <= ?2 AND until_ms < ?1", FW_RECORD_STEP};

/* Adds to *n. Mostly nothing is old: then no transaction starts and no other waits. */
static int ageing_step(
	struct sql *s, const struct ageing *a, int64_t before_ms, int64_t *n, bool *more, struct fw_err *err)
{
	int64_t last, gone = 0;
	int rc = sql_number(s, a->look, SQL_V(SQL_INT(before_ms), SQL_INT(a->step)), FW_NO_DATE, &last, err);

	assert(a->step > 0);
	if (rc || last == FW_NO_DATE)
		return rc;
	rc = s->dialect->begin(s, err);
	if (rc)
		return rc;
	rc = sql_change(s, a->drop, SQL_V(SQL_INT(before_ms), SQL_INT(last)), &gone, err);
	rc = sql_end(s, rc || a != &VISITS ? rc : sql_tally_add(s, 0, -gone, err), err);
	if (rc)
		return rc;
	*n += gone;
	*more |= gone >= a->step / 2; /* older rows may follow younger ones */
	return 0;
}

static int entries_step(struct sql *s, int64_t before_ms, int64_t *n, bool *more, struct fw_err *err)
{
	int64_t gone = 0;
	int rc = s->dialect->begin(s, err);

	if (rc)
		return rc;
	rc = sql_end(s, sql_entries_prune(s, before_ms, ENTRIES_STEP, &gone, err), err);
	if (rc)
		return rc;
	*n += gone;
	*more |= gone >= ENTRIES_STEP;
	return 0;
}

struct fold {
	struct sql_rows drop;
	int64_t entries, visits;
};

static int fold_row(void *ctx, const struct sql_row *row)
{
	struct fold *f = ctx;

	sql_rows_add(&f->drop, SQL_V(SQL_INT(sql_int(row, 0))));
	f->entries += sql_int(row, 1);
	f->visits += sql_int(row, 2);
	return 0;
}

static int folded(struct sql *s, struct fw_err *err)
{
	struct fold f = {
		.drop = SQL_ROWS(s, err, "DELETE FROM tally {using} WHERE id = v.number", "number:i")};
	int rc = sql_ask(s, "SELECT id, entry_n, visit_n FROM tally ORDER BY id LIMIT ?1 {skip}",
		SQL_V(SQL_INT(TALLY_STEP)), fold_row, &f, err);

	/*
	 * insert first: its id is above theirs, and no engine reuses an id while the highest row
	 * exists
	 */
	f.drop.rc = rc ? rc : sql_tally_add(s, f.entries, f.visits, err);
	return sql_rows_end(&f.drop);
}

/* Merge many rows into one. Concurrent commits add rows of their own and do not wait. */
static int tally_fold(struct sql *s, bool *more, struct fw_err *err)
{
	int64_t n;
	int rc = sql_number(s, "SELECT count(*) FROM (SELECT 1 AS one FROM tally LIMIT ?1) x",
		SQL_V(SQL_INT(TALLY_STEP)), 0, &n, err);

	*more = !rc && n >= TALLY_STEP;
	if (!*more)
		return rc;
	rc = s->dialect->begin(s, err);
	return rc ? rc : sql_end(s, folded(s, err), err);
}

/* One step for each sort of rows, each in a transaction of its own. */
int sql_prune(struct store *st, struct fw_prune *p, struct fw_err *err)
{
	struct sql *s = sql_of(st);
	bool more = false;
	int rc = tally_fold(s, &p->more, err);

	if (!rc && p->visits_before_ms)
		rc = ageing_step(s, &VISITS, p->visits_before_ms, &p->visit_n, &p->more, err);
	if (!rc && p->entries_before_ms)
		rc = entries_step(s, p->entries_before_ms, &p->entry_n, &p->more, err);
	if (!rc && p->events_before_ms)
		rc = ageing_step(s, &EVENTS, p->events_before_ms, &p->event_n, &p->more, err);
	if (!rc && p->events_before_ms)
		rc = ageing_step(s, &DEAD, p->events_before_ms, &p->event_n, &p->more, err);
	if (!rc && p->records)
		rc = ageing_step(s, &RECORDS, p->now_ms + 1, &p->record_n, &p->more, err);
	if (!rc && p->index)
		rc = s->dialect->search_step(s, &more, err);
	p->more |= more;
	return rc;
}
