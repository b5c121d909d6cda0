/* SPDX-License-Identifier: ISC */
/* Statistics and maintenance. */
#include <assert.h>

#include "store/accounts.h"
#include "store/sql/core.h"

#define VISITS_STEP 2000
#define ENTRIES_STEP 200
#define ROW_COUNTS_STEP 1000

/* ---- statistics ------------------------------------------------------------------------------ */

static int stats_row(void *ctx, const struct sql_row *row)
{
	struct fw_store_stats *s = ctx;
	int64_t *const to[] = {&s->feed_n, &s->paused_n, &s->gone_n, &s->quarantined_n, &s->failing_n, &s->due_n,
		&s->entry_n, &s->visit_n, &s->last_feed_id, &s->last_entry_id, &s->last_visit_id};

	for (size_t i = 0; i < FW_N(to); i++)
		*to[i] = sql_int(row, (int)i);
	s->next_due_ms = sql_date(row, FW_N(to));
	s->active_n = s->feed_n - s->paused_n - s->gone_n - s->quarantined_n;
	return 0;
}

static int stats_inbox_row(void *ctx, const struct sql_row *row)
{
	struct fw_store_stats *s = ctx;

	s->inbox_n = sql_int(row, 0);
	s->inbox_refused_n = sql_int(row, 1);
	return 0;
}

static int stats_inbox(struct sql *s, struct fw_store_stats *out, struct fw_err *err)
{
	return sql_query(s,
		"SELECT (SELECT count(*) FROM feeds_to_fetch) + (SELECT count(*) FROM control),"
		" (SELECT count(*) FROM feeds_to_fetch_refused)",
		SQL_NONE, stats_inbox_row, out, err);
}

/* One pass. */
static const char STATS[] =
	"SELECT count(*), {rows_of status = 1}, {rows_of status = 2}, {rows_of status = 3}, {rows_of fail_n > 0},"
	" {rows_of due_at_ms <= ?1 AND status = 0}, (SELECT {sum entry_n} FROM row_counts), (SELECT {sum visit_n}"
	" FROM row_counts), (SELECT max(id) FROM feeds), (SELECT max(id) FROM entries), (SELECT max(id) FROM visits),"
	" min(CASE WHEN status = 0 THEN due_at_ms END) FROM schedule";

int sql_stats(struct store *st, struct fw_store_stats *out, struct fw_err *err)
{
	struct sql *s = sql_of(st);
	int64_t now_ms;
	int rc = sql_clock(st, &now_ms, err);

	rc = rc ? rc : sql_pass(s, STATS, SQL_V(SQL_INT(now_ms)), stats_row, out, err);
	rc = rc ? rc : s->dialect->search_unindexed(s, &out->unindexed_n, err);
	rc = rc ? rc :
		  sql_query_int(
			  s, "SELECT value FROM meta WHERE name = 'event_clashes'", SQL_NONE, 0, &out->clash_n, err);
	rc = rc || s->schema < SQL_SCHEMA_INBOX ? rc : stats_inbox(s, out, err);
	out->schema = s->schema;
	out->size_bytes = -1;
	return !rc && s->dialect->size ? s->dialect->size(s, &out->size_bytes, err) : rc;
}

/* ---- maintenance ----------------------------------------------------------------------------- */

/*
 * Retention of a table. look: among the first ?2 rows, the last id that is older than ?1; ids rise
 * with time, within the slack of a commit or a clock. drop: remove the rows up to that id that are
 * older. step: rows per step.
 */
struct retention_rule {
	const char *find, *remove;
	int64_t step;
};
/* clang-format off */
#define RETENTION_RULE(table, time, step) { \
	"SELECT max(x.id) FROM (SELECT id, " time " AS t FROM " table " ORDER BY id LIMIT ?2) x WHERE x.t < ?1", \
	"DELETE FROM " table " WHERE id <= ?2 AND " time " < ?1", (step)}
/* clang-format on */
static const struct retention_rule RETENTION_VISITS = RETENTION_RULE("visits", "at_ms", VISITS_STEP);
static const struct retention_rule RETENTION_EVENTS = RETENTION_RULE("incoming", "stamp", FW_EVENT_STEP);
static const struct retention_rule RETENTION_DEAD_LETTERS = RETENTION_RULE("dead_letters", "at_ms", FW_EVENT_STEP);
static const struct retention_rule RETENTION_CHANGES = RETENTION_RULE("changes", "at_ms", FW_EVENT_STEP);
/* By expiry time, not id; rows of the same millisecond are removed together. */
static const struct retention_rule RETENTION_RECORDS = {
	"SELECT max(x.t) FROM (SELECT until_ms AS t FROM records WHERE until_ms < ?1 ORDER BY until_ms LIMIT ?2) x",
	"DELETE FROM records WHERE until_ms <= ?2 AND until_ms < ?1", FW_RECORD_STEP};

/* Icons too: those that were not fetched for a long time are not shown to anybody. */
static const struct retention_rule RETENTION_ICONS = {
	"SELECT max(x.t) FROM (SELECT tried_ms AS t FROM icons WHERE tried_ms < ?1 ORDER BY tried_ms LIMIT ?2) x",
	"DELETE FROM icons WHERE tried_ms <= ?2 AND tried_ms < ?1", FW_RECORD_STEP};

/* Adds to *n. Mostly nothing is old: then no transaction starts and no other waits. */
static int retention_step(
	struct sql *s, const struct retention_rule *a, int64_t before_ms, int64_t *n, bool *more, struct fw_err *err)
{
	int64_t last, gone = 0;
	int rc = sql_query_int(s, a->find, SQL_V(SQL_INT(before_ms), SQL_INT(a->step)), FW_NO_DATE, &last, err);

	assert(a->step > 0);
	if (rc || last == FW_NO_DATE)
		return rc;
	rc = s->dialect->begin(s, err);
	if (rc)
		return rc;
	/* first: a reader that misses a change sees that it was pruned */
	rc = a == &RETENTION_CHANGES ?
		sql_exec(s, "UPDATE meta SET value = ?1 WHERE name = 'changes_pruned_id' AND value < ?1",
			SQL_V(SQL_INT(last)), err) :
		0;
	rc = rc ? rc : sql_exec_count(s, a->remove, SQL_V(SQL_INT(before_ms), SQL_INT(last)), &gone, err);
	rc = sql_end(s, rc || a != &RETENTION_VISITS ? rc : sql_row_counts_add(s, 0, -gone, err), err);
	if (rc)
		return rc;
	*n += gone;
	*more |= gone >= a->step / 2; /* older rows may follow younger ones */
	return 0;
}

struct retention_entries {
	int64_t before_ms, gone;
};

static int retention_entries_remove(struct sql *s, void *ctx, struct fw_err *err)
{
	struct retention_entries *e = ctx;

	return sql_entries_prune(s, e->before_ms, ENTRIES_STEP, &e->gone, err);
}

static int retention_entries_step(struct sql *s, int64_t before_ms, int64_t *n, bool *more, struct fw_err *err)
{
	struct retention_entries e = {.before_ms = before_ms};
	int rc = sql_transaction(s, retention_entries_remove, &e, err);

	if (rc)
		return rc;
	*n += e.gone;
	*more |= e.gone >= ENTRIES_STEP;
	return 0;
}

struct row_counts_sum {
	struct sql_rows drop;
	int64_t entries, visits;
};

static int row_counts_row(void *ctx, const struct sql_row *row)
{
	struct row_counts_sum *f = ctx;

	sql_rows_add(&f->drop, SQL_V(SQL_INT(sql_int(row, 0))));
	f->entries += sql_int(row, 1);
	f->visits += sql_int(row, 2);
	return 0;
}

static int row_counts_merge_rows(struct sql *s, struct fw_err *err)
{
	struct row_counts_sum f = {
		.drop = SQL_ROWS(s, err, "DELETE FROM row_counts {using} WHERE id = v.number", "number:i")};
	int rc = sql_query(s, "SELECT id, entry_n, visit_n FROM row_counts ORDER BY id LIMIT ?1 {skip}",
		SQL_V(SQL_INT(ROW_COUNTS_STEP)), row_counts_row, &f, err);

	/*
	 * insert first: its id is above theirs, and no engine reuses an id while the highest row
	 * exists
	 */
	f.drop.rc = rc ? rc : sql_row_counts_add(s, f.entries, f.visits, err);
	return sql_rows_end(&f.drop);
}

/* Merge many rows into one. Concurrent commits add rows of their own and do not wait. */
static int row_counts_merge(struct sql *s, bool *more, struct fw_err *err)
{
	int64_t n;
	int rc = sql_query_int(s, "SELECT count(*) FROM (SELECT 1 AS one FROM row_counts LIMIT ?1) x",
		SQL_V(SQL_INT(ROW_COUNTS_STEP)), 0, &n, err);

	*more = !rc && n >= ROW_COUNTS_STEP;
	if (!*more)
		return rc;
	rc = s->dialect->begin(s, err);
	return rc ? rc : sql_end(s, row_counts_merge_rows(s, err), err);
}

/* One step for each sort of rows, each in a transaction of its own. */
int sql_prune(struct store *st, struct fw_prune *p, struct fw_err *err)
{
	struct sql *s = sql_of(st);
	int64_t icon_n = 0;
	bool more = false;
	int rc = row_counts_merge(s, &p->more, err);

	if (!rc && p->visits_before_ms)
		rc = retention_step(s, &RETENTION_VISITS, p->visits_before_ms, &p->visit_n, &p->more, err);
	if (!rc && p->entries_before_ms)
		rc = retention_entries_step(s, p->entries_before_ms, &p->entry_n, &p->more, err);
	if (!rc && p->events_before_ms)
		rc = retention_step(s, &RETENTION_EVENTS, p->events_before_ms, &p->event_n, &p->more, err);
	if (!rc && p->events_before_ms)
		rc = retention_step(s, &RETENTION_DEAD_LETTERS, p->events_before_ms, &p->event_n, &p->more, err);
	if (!rc && p->changes_before_ms)
		rc = retention_step(s, &RETENTION_CHANGES, p->changes_before_ms, &p->change_n, &p->more, err);
	if (!rc && p->records)
		rc = retention_step(s, &RETENTION_RECORDS, p->now_ms + 1, &p->record_n, &p->more, err);
	if (!rc && p->records)
		rc = retention_step(s, &RETENTION_ICONS, p->now_ms - FW_ICON_KEEP_MS, &icon_n, &p->more, err);
	if (!rc && p->index)
		rc = s->dialect->search_step(s, &more, err);
	p->more |= more;
	return rc;
}
