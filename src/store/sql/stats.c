/* SPDX-License-Identifier: ISC */
/* Figures, and what is done now and then. */
#include "base/clock.h"
#include "store/sql/core.h"
#include "base/banned.h"

#define STEP_MS 50
#define VISITS_STEP 2000
#define ENTRIES_STEP 200
#define TALLY_STEP 1000

/* ---- figures --------------------------------------------------------------------------------- */

static int schedule_row(void *ctx, const struct sql_row *row)
{
	struct fw_store_stats *s = ctx;

	s->feed_n = sql_int(row, 0);
	s->active_n = sql_int(row, 1);
	s->paused_n = sql_int(row, 2);
	s->gone_n = sql_int(row, 3);
	s->quarantined_n = sql_int(row, 4);
	s->failing_n = sql_int(row, 5);
	s->due_n = sql_int(row, 6);
	s->next_due_ms = sql_date(row, 7);
	return 0;
}

static int tally_row(void *ctx, const struct sql_row *row)
{
	struct fw_store_stats *s = ctx;

	s->entry_n = sql_int(row, 0);
	s->visit_n = sql_int(row, 1);
	s->last_feed_id = sql_int(row, 2);
	s->last_entry_id = sql_int(row, 3);
	s->last_visit_id = sql_int(row, 4);
	return 0;
}

int sql_stats(struct store *st, struct fw_store_stats *out, struct fw_err *err)
{
#define COUNT(what) "coalesce(sum(CASE WHEN " what " THEN 1 ELSE 0 END), 0)"
	static const struct sql_text SCHEDULE = {
		"SELECT count(*), " COUNT("status = 0") ", " COUNT("status = 1") ", " COUNT("status = 2") ", " COUNT(
			"status = 3") ", " COUNT("fail_n > 0") ", " COUNT("status = 0 AND due_at_ms <= ?1") ", "
													    "min(CASE "
													    "WHEN "
													    "status = "
													    "0 THEN "
													    "due_at_ms "
													    "END) FROM "
													    "schedule",
		NULL};
	static const struct sql_text TALLY = {
		"SELECT (SELECT coalesce(sum(entry_n), 0) FROM tally), (SELECT coalesce(sum(visit_n), 0) FROM tally),"
		" (SELECT coalesce(max(id), 0) FROM feeds), (SELECT coalesce(max(id), 0) FROM entries), (SELECT "
		"coalesce(max(id), 0) FROM visits)",
		NULL};
	struct sql *s = sql_of(st);
	int64_t now_ms;
	int rc = sql_clock(st, &now_ms, err);

	rc = rc ? rc : sql_ask(s, &SCHEDULE, (struct sql_value[]){SQL_INT(now_ms)}, 1, schedule_row, out, NULL, err);
	rc = rc ? rc : sql_ask(s, &TALLY, NULL, 0, tally_row, out, NULL, err);
	rc = rc ? rc : s->dialect->search_unindexed(s, &out->unindexed_n, err);
	out->schema = SQL_SCHEMA;
	out->size_bytes = -1;
	return !rc && s->dialect->size ? s->dialect->size(s, &out->size_bytes, err) : rc;
}

/* ---- maintenance ----------------------------------------------------------------------------- */

/* In transactions of their own: *n rows went, which is `step` when there may be more. */
static int removed(
	struct sql *s, const struct sql_text *t, const struct sql_value *v, size_t n, int64_t *gone, struct fw_err *err)
{
	int rc = s->dialect->begin(s, err);

	*gone = 0;
	if (rc)
		return rc;
	rc = sql_end(s, sql_ask(s, t, v, n, NULL, NULL, gone, err), err);
	*gone = rc ? 0 : *gone;
	return rc;
}

/* By id, as long as they are old: ids rise with time, give or take a commit. */
static int visits_step(struct sql *s, int64_t before_ms, int64_t *n, struct fw_err *err)
{
	static const struct sql_text ANY = {
		"SELECT 1 FROM (SELECT at_ms FROM visits ORDER BY id LIMIT 1) x WHERE x.at_ms < ?1", NULL};
	static const struct sql_text DROP = {"DELETE FROM visits WHERE id IN (SELECT x.id FROM (SELECT id, at_ms FROM "
					     "visits ORDER BY id LIMIT ?2) x WHERE x.at_ms < ?1)",
		NULL};
	const struct sql_value v[2] = {SQL_INT(before_ms), SQL_INT(VISITS_STEP)};
	int64_t any;
	int rc = sql_number(s, &ANY, v, 1, 0, &any, err);

	*n = 0;
	if (rc || !any) /* nobody has to wait for us */
		return rc;
	rc = s->dialect->begin(s, err);
	if (rc)
		return rc;
	rc = sql_ask(s, &DROP, v, 2, NULL, NULL, n, err);
	rc = sql_end(s, rc ? rc : sql_tally_add(s, 0, -*n, err), err);
	*n = rc ? 0 : *n;
	return rc;
}

static int entries_step(struct sql *s, int64_t before_ms, int64_t *n, struct fw_err *err)
{
	int rc = s->dialect->begin(s, err);

	*n = 0;
	if (rc)
		return rc;
	rc = sql_end(s, sql_entries_prune(s, before_ms, ENTRIES_STEP, n, err), err);
	*n = rc ? 0 : *n;
	return rc;
}

static int events_step(struct sql *s, int64_t before_ms, int64_t *n, struct fw_err *err)
{
#define OLD(table, time) \
	{"DELETE FROM " table " WHERE id IN (SELECT x.id FROM (SELECT id, " time " AS t FROM " table \
	 " ORDER BY id LIMIT ?2) x WHERE x.t < ?1)", NULL}
	static const struct sql_text EVENTS = OLD("incoming", "stamp"), DEAD = OLD("incoming_dead", "at_ms");
	static const struct sql_text ANY = {"SELECT (SELECT count(*) FROM (SELECT id, stamp AS t FROM incoming ORDER "
					    "BY id LIMIT ?2) x WHERE x.t < ?1)"
					    " + (SELECT count(*) FROM (SELECT id, at_ms AS t FROM incoming_dead ORDER "
					    "BY id LIMIT ?2) y WHERE y.t < ?1)",
		NULL};
	const struct sql_value v[2] = {SQL_INT(before_ms), SQL_INT(FW_EVENT_STEP)};
	int64_t any, dead = 0;
	int rc = sql_number(s, &ANY, v, 2, 0, &any, err);

	*n = 0;
	if (rc || !any)
		return rc;
	rc = removed(s, &EVENTS, v, 2, n, err);
	rc = rc ? rc : removed(s, &DEAD, v, 2, &dead, err);
	*n += dead;
	return rc;
}

static int records_step(struct sql *s, int64_t now_ms, int64_t *n, struct fw_err *err)
{
	static const struct sql_text ANY = {"SELECT 1 FROM records WHERE until_ms <= ?1 LIMIT 1", NULL};
	static const struct sql_text DROP = {"DELETE FROM records WHERE until_ms <= ?1", NULL};
	const struct sql_value v = SQL_INT(now_ms);
	int64_t any;
	int rc = sql_number(s, &ANY, &v, 1, 0, &any, err);

	*n = 0;
	return rc || !any ? rc : removed(s, &DROP, &v, 1, n, err);
}

struct fold {
	struct sql_value id[TALLY_STEP];
	size_t n;
	int64_t entries, visits;
};

static int fold_row(void *ctx, const struct sql_row *row)
{
	struct fold *f = ctx;

	if (f->n < TALLY_STEP) {
		f->id[f->n++] = SQL_INT(sql_int(row, 0));
		f->entries += sql_int(row, 1);
		f->visits += sql_int(row, 2);
	}
	return 0;
}

static int folded(struct sql *s, struct fold *f, struct fw_err *err)
{
	static const struct sql_text ROWS = {
		"SELECT id, entry_n, visit_n FROM tally ORDER BY id LIMIT ?1 {skip}", NULL};
	static const struct sql_text DROP = {"DELETE FROM tally WHERE id IN (SELECT v.number FROM {rows})", "number:i"};
	int rc = sql_ask(s, &ROWS, (struct sql_value[]){SQL_INT(TALLY_STEP)}, 1, fold_row, f, NULL, err);

	rc = rc ? rc : sql_each(s, &DROP, f->id, 1, f->n, NULL, err);
	return rc ? rc : sql_tally_add(s, f->entries, f->visits, err);
}

/* Many rows become one. Commits that come meanwhile add rows of their own, and do not wait. */
static int tally_fold(struct sql *s, bool *more, struct fw_err *err)
{
	static const struct sql_text MANY = {"SELECT count(*) FROM (SELECT 1 AS one FROM tally LIMIT ?1) x", NULL};
	struct fold f = {.n = 0};
	int64_t n;
	int rc = sql_number(s, &MANY, (struct sql_value[]){SQL_INT(TALLY_STEP)}, 1, 0, &n, err);

	*more = !rc && n >= TALLY_STEP;
	if (!*more)
		return rc;
	rc = s->dialect->begin(s, err);
	return rc ? rc : sql_end(s, folded(s, &f, err), err);
}

int sql_prune(struct store *st, struct store_prune *p, struct fw_err *err)
{
	struct sql *s = sql_of(st);
	int64_t until_ms = fw_mono_ms() + STEP_MS, n = 0;
	bool more = false;
	int rc = tally_fold(s, &more, err);

	p->more = more;
	if (!rc && p->visits_before_ms) {
		rc = visits_step(s, p->visits_before_ms, &n, err);
		p->visit_n += n;
		p->more |= n >= VISITS_STEP;
	}
	if (!rc && p->entries_before_ms && fw_mono_ms() < until_ms) {
		rc = entries_step(s, p->entries_before_ms, &n, err);
		p->entry_n += n;
		p->more |= n >= ENTRIES_STEP;
	}
	if (!rc && p->events_before_ms) {
		rc = events_step(s, p->events_before_ms, &n, err);
		p->event_n += n;
		p->more |= n >= FW_EVENT_STEP;
	}
	if (!rc && p->records) {
		rc = records_step(s, p->now_ms, &n, err);
		p->record_n += n;
	}
	more = false;
	if (!rc && p->index)
		rc = s->dialect->search_step(s, &more, err);
	p->more |= more;
	return rc;
}
