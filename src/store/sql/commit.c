/* SPDX-License-Identifier: ISC */
/*
 * Commit: store outcomes and hosts in one transaction.
 *
 * The fence is a lock on the lease's row, not a change of it. If another program keeps a
 * transaction open, versions of a row that every commit changes would pile up, and each commit
 * would read them all. Only the heartbeat changes the row.
 *
 * Lock order: the lease, schedule and feeds by position, entries, hosts, the counter of entry ids,
 * shards. Every other writer of these rows uses the same order.
 */
#include <assert.h>
#include <stdlib.h>

#include "store/sql/core.h"

/* The state of a commit. v: its outcomes in the order of their rows. */
struct commit_work {
	struct sql *s;
	const struct store_commit *c;
	struct sql_visit *v;
	size_t n;
	bool push;              /* no lease: the schedule is not written */
	int64_t now_ms, number; /* number: the id of its row of row_counts */
	bool changed[STORE_SHARDS];
};

/* ---- fence and look-up ----------------------------------------------------------------------- */

static int commit_now_row(void *ctx, const struct sql_row *row)
{
	struct commit_work *w = ctx;

	w->now_ms = sql_int(row, 0);
	w->number = sql_int(row, 1);
	return 0;
}

/* Lock the lease, read the time, and assign ids to the visits. A push needs no lease. */
static int commit_fence(struct commit_work *w, int64_t lease_id, struct fw_err *err)
{
	const struct sql_value id = SQL_INT(lease_id);
	const size_t block = (size_t)1 << SQL_VISIT_BITS;
	int rc = 0;

	for (size_t i = 0; !rc && i < w->n + !w->n; i++) {
		if (i % block == 0) {
			rc = sql_row_counts_add(w->s, 0, 0, err);
			rc = rc ? rc :
				  sql_query(w->s,
					  w->push ? "SELECT {now}, {last}" :
						    "SELECT {now}, {last} FROM workers WHERE id = ?1 {share}",
					  &id, !w->push, commit_now_row, w, err);
		}
		w->v[i].id = w->number << SQL_VISIT_BITS | (int64_t)(i % block);
	}
	return rc || w->now_ms ?
		rc :
		fw_err_set(err, FW_ESTALE,
			"%s: the lease is over: other workers own its shards (the worker joins anew)", w->s->name);
}

static int commit_position_row(void *ctx, const struct sql_row *row)
{
	struct commit_work *w = ctx;

	w->v[sql_int(row, 0)].position = sql_int(row, 1);
	return 0;
}

/* Find the places: the outcome of a push has only the feed's id. -1: no such feed. */
static int commit_positions_find(struct commit_work *w, struct fw_err *err)
{
	struct sql_rows r = SQL_QUERY_ROWS(w->s, err, commit_position_row, w,
		"SELECT v.nth, f.position FROM {rows} feeds f WHERE f.id = v.feed", "nth:i feed:i");

	for (size_t i = 0; i < w->n; i++) {
		sql_rows_add(&r, SQL_V(SQL_INT(i), SQL_INT(w->v[i].o.feed_id)));
		w->v[i].position = -1;
	}
	return sql_rows_end(&r);
}

/*
 * An outcome without a lease that is not a push: the first visit of its feed, or a retry of it;
 * else the feed was visited meanwhile, and it is stored as a push.
 */
static void commit_first_visit(struct commit_work *w, struct sql_visit *v, int64_t last_ms)
{
	assert(!w->c->lease_id && v->position >= 0);
	if (last_ms && last_ms != v->o.feed->last_visit_ms) {
		v->o.visit.kind = FW_VISIT_PUSHED;
		v->o.groups &= FW_GROUP_META;
	} else {
		w->push = false;
		w->changed[v->position >> SQL_POSITION_BITS] = true;
	}
}

static int commit_feed_row(void *ctx, const struct sql_row *row)
{
	struct commit_work *w = ctx;
	struct sql_visit *v = &w->v[sql_int(row, 0)];
	int64_t last_ms = sql_int(row, 1);

	v->feed_exists = true;
	v->last_id = sql_int(row, 2);
	v->has_entries = sql_int(row, 3);
	if (w->push && v->o.visit.kind != FW_VISIT_PUSHED)
		commit_first_visit(w, v, last_ms);
	v->is_repeated = !w->push && v->o.visit.kind != FW_VISIT_NONE && last_ms == v->o.feed->last_visit_ms;
	return 0;
}

/*
 * Lock the feeds' rows in schedule and find outcomes that are stored already. A visit is identified
 * by its feed and time: if last_visit_ms equals it, an earlier try was committed but its response
 * was lost.
 */
static int commit_feeds_lock(struct commit_work *w, struct fw_err *err)
{
	struct sql_rows r = SQL_QUERY_ROWS(w->s, err, commit_feed_row, w,
		"SELECT v.nth, t.last_visit_ms, t.last_visit_id, CASE"
		" WHEN t.last_new_ms > 0 OR EXISTS (SELECT 1 FROM entry_keys k WHERE k.feed_id = v.feed) THEN 1 ELSE 0"
		" END FROM {rows} schedule t WHERE t.position = v.spot {update}",
		"nth:i spot:i feed:i");
	int rc;

	for (size_t i = 0; i < w->n; i++)
		sql_rows_add(&r, SQL_V(SQL_INT(i), SQL_INT(w->v[i].position), SQL_INT(w->v[i].o.feed_id)));
	rc = sql_rows_end(&r);
	for (size_t i = 0; !rc && i < w->n; i++) {
		struct sql_visit *v = &w->v[i];

		v->has_entries |= i && v->o.feed_id == v[-1].o.feed_id;
		if (!v->feed_exists && w->push && v->position >= 0) {
			w->s->race = SQL_RACE_LOCKS;
			return fw_err_set(err, FW_EAGAIN, "%s: feed %lld is moving to another host: try again",
				w->s->name, (long long)v->o.feed_id);
		}
		if (v->feed_exists && w->push)
			rc = sql_visit_exists(w->s, v->last_id, &v->o.visit, &v->is_repeated, err);
		if (!v->feed_exists || (v->is_repeated && !w->push))
			v->o.rc = FW_ENOTFOUND;
	}
	return rc;
}

/* ---- the schedule ---------------------------------------------------------------------------- */

static int commit_schedule_put(struct commit_work *w, struct fw_err *err)
{
	struct sql_rows r = SQL_ROWS(w->s, err,
		/* the reason first: MariaDB reads what it has assigned */
		"UPDATE schedule AS t SET why = CASE WHEN t.due_at_ms = v.was THEN v.because ELSE t.why END,"
		" due_at_ms = CASE WHEN t.due_at_ms = v.was THEN v.due ELSE t.due_at_ms END,"
		" status = CASE WHEN t.status = 0 THEN v.state ELSE t.status END,"
		" last_kind = v.kind, http_status = v.http, fail_n = v.fails, crash_n = v.crashes, last_visit_ms ="
		" v.visit, last_ok_ms = v.ok, expect_us = v.expect, expect_dev_us = v.dev, expect_parts = v.parts,"
		" last_visit_id = v.last {from} WHERE t.position = v.spot",
		"spot:i was:i due:i state:i kind:i http:i fails:i crashes:i visit:i ok:i expect:i dev:i parts:i last:i"
		" because:t");

	for (size_t i = 0; i < w->n; i++) {
		const struct sql_visit *v = &w->v[i];
		const struct fw_feed *f = v->o.feed;

		if (!v->o.rc)
			sql_rows_add(&r,
				SQL_V(SQL_INT(v->position), SQL_INT(v->o.was_due_ms), SQL_INT(f->due_at_ms),
					SQL_INT(f->status), SQL_INT(f->last_kind), SQL_INT(f->http_status),
					SQL_INT(f->fail_n), SQL_INT(f->crash_n), SQL_INT(f->last_visit_ms),
					SQL_INT(f->last_ok_ms), SQL_INT(f->expect_us), SQL_INT(f->expect_dev_us),
					SQL_INT(f->expect_parts),
					SQL_INT(v->o.visit.kind == FW_VISIT_NONE ? v->last_id : v->id),
					SQL_TEXT(f->why)));
	}
	return sql_rows_end(&r);
}

/* Set last_visit_id of pushed feeds. Outcomes of one feed are adjacent; its last visit counts. */
static int commit_pushes_put(struct commit_work *w, struct fw_err *err)
{
	struct sql_rows r = SQL_ROWS(w->s, err,
		"UPDATE schedule AS t SET last_visit_id = v.last {from} WHERE t.position = v.spot", "spot:i last:i");
	const struct sql_visit *last = NULL;

	assert(w->push);
	for (size_t i = 0; i < w->n; i++) {
		const struct sql_visit *v = &w->v[i];

		if (v->o.rc || v->o.visit.kind == FW_VISIT_NONE)
			continue;
		if (last && last->position != v->position)
			sql_rows_add(&r, SQL_V(SQL_INT(last->position), SQL_INT(last->id)));
		last = v;
	}
	if (last)
		sql_rows_add(&r, SQL_V(SQL_INT(last->position), SQL_INT(last->id)));
	return sql_rows_end(&r);
}

/*
 * Set last_new_ms and entry_total_n of feeds with new entries, polled or pushed. Outcomes of one
 * feed are adjacent, and share a row: a statement changes a row once.
 */
static int commit_new_put(struct commit_work *w, struct fw_err *err)
{
	struct sql_rows r = SQL_ROWS(w->s, err,
		"UPDATE schedule AS t SET last_new_ms = v.at, entry_total_n = t.entry_total_n + v.fresh {from}"
		" WHERE t.position = v.spot",
		"spot:i at:i fresh:i");
	int64_t fresh_n = 0;

	for (size_t i = 0; i < w->n; i++) {
		fresh_n += w->v[i].o.rc == FW_ENOTFOUND ? 0 : w->v[i].o.visit.new_n;
		if (i + 1 < w->n && w->v[i + 1].position == w->v[i].position)
			continue;
		if (fresh_n)
			sql_rows_add(&r, SQL_V(SQL_INT(w->v[i].position), SQL_INT(w->now_ms), SQL_INT(fresh_n)));
		fresh_n = 0;
	}
	return sql_rows_end(&r);
}

/*
 * Hosts of shards that another lease owns keep the later times. Their owner reads its hosts again
 * when the version of the shard rises.
 */
static int commit_hosts_put(struct commit_work *w, const struct store_host *host, size_t n, struct fw_err *err)
{
#define HOSTS                                                                                                          \
	"INSERT INTO hosts (shard, host_id, next_ok_ms, cooldown_until_ms, learned_delay_ms) {values} {upsert shard, " \
	"host_id}"
#define HOST "shard:i host:i next:i cool:i pace:i"
	struct sql_rows own = SQL_ROWS(w->s, err,
		HOSTS " next_ok_ms = {new next_ok_ms}, cooldown_until_ms = {new cooldown_until_ms}, learned_delay_ms = "
		      "{new learned_delay_ms}",
		HOST);
	struct sql_rows others = SQL_ROWS(w->s, err,
		HOSTS " next_ok_ms = {greatest}(hosts.next_ok_ms, {new"
		      " next_ok_ms}), cooldown_until_ms = {greatest}(hosts.cooldown_until_ms, {new cooldown_until_ms})",
		HOST);

	for (size_t i = 0; i < n; i++) {
		int shard = store_host_shard(host[i].id);

		sql_rows_add(host[i].others ? &others : &own,
			SQL_V(SQL_INT(shard), SQL_INT(host[i].id), SQL_INT(host[i].next_ok_ms),
				SQL_INT(host[i].cooldown_until_ms), SQL_INT(host[i].learned_delay_ms)));
		w->changed[shard] |= host[i].others;
	}
	own.rc = sql_rows_end(&own);
	others.rc = others.rc ? others.rc : own.rc;
	return sql_rows_end(&others);
}

/* ---- commit ---------------------------------------------------------------------------------- */

static int commit_row_counts_set(struct commit_work *w, int64_t new_n, struct fw_err *err)
{
	int64_t visit_n = 0;

	assert(new_n >= 0);
	for (size_t i = 0; i < w->n; i++)
		visit_n += sql_has_visit(&w->v[i].o);
	return new_n || visit_n ? sql_exec(w->s, "UPDATE row_counts SET entry_n = ?2, visit_n = ?3 WHERE id = ?1",
					  SQL_V(SQL_INT(w->number), SQL_INT(new_n), SQL_INT(visit_n)), err) :
				  0;
}

static int commit_store(struct commit_work *w, struct fw_err *err)
{
	struct sql_entries rest = {NULL};
	int64_t new_n = 0;
	int rc = sql_feeds_put_groups(w->s, w->v, w->n, w->changed, err);

	rc = rc ? rc : sql_entries_put(w->s, w->v, w->n, w->now_ms, &new_n, &rest, err);
	for (size_t i = 0; i < w->n; i++) {
		struct fw_visit *made = &w->v[i].o.visit;

		if (w->v[i].is_repeated && !made->new_n && !made->changed_n)
			made->kind = FW_VISIT_NONE;
	}
	rc = rc ? rc : commit_new_put(w, err);
	rc = rc || !w->push ? rc : commit_pushes_put(w, err);
	rc = rc ? rc : sql_visits_put(w->s, w->v, w->n, err);
	rc = rc ? rc : commit_hosts_put(w, w->c->host, w->c->host_n, err);
	rc = rc ? rc : commit_row_counts_set(w, new_n, err);
	rc = sql_entries_insert(&rest, rc, err);
	return rc ? rc : sql_shards_changed(w->s, w->changed, err);
}

FW_COMPARE_BY(commit_position_compare, struct sql_visit, position, of)

/* Sort outcomes into the order in which all writers lock the rows. */
static int commit_outcomes_sort(struct commit_work *w, struct fw_err *err)
{
	int rc;

	for (size_t i = 0; i < w->n; i++) {
		struct fw_outcome *of = &w->c->outcome[i];
		struct sql_visit *v = &w->v[i];

		*v = (struct sql_visit){
			.o = *of, .of = of, .position = sql_position(store_host_shard(of->host_id), of->feed_id)};
		v->o.rc = 0;
		v->o.visit.new_n = v->o.visit.changed_n = 0;
	}
	rc = w->push ? commit_positions_find(w, err) : 0;
	if (w->n)
		qsort(w->v, w->n, sizeof(*w->v), commit_position_compare);
	return rc;
}

static int commit_work(struct sql *s, void *ctx, struct fw_err *err)
{
	struct commit_work *w = ctx;
	int rc;

	assert(s == w->s && w->n == w->c->n);
	memset(w->changed, 0, sizeof(w->changed));
	w->now_ms = 0;
	w->push = !w->c->lease_id;
	rc = commit_outcomes_sort(w, err);
	rc = rc ? rc : commit_fence(w, w->c->lease_id, err);
	rc = rc ? rc : commit_feeds_lock(w, err);
	rc = rc || w->push ? rc : commit_schedule_put(w, err);
	return rc ? rc : commit_store(w, err);
}

int sql_commit(struct store *st, struct store_commit *c, struct fw_err *err)
{
	struct commit_work w = {.s = sql_of(st), .c = c, .n = c->n, .v = calloc(c->n + 1, sizeof(*w.v))};
	int rc = w.v ? sql_transaction(w.s, commit_work, &w, err) : fw_no_memory(err);

	for (size_t i = 0; !rc && i < c->n; i++) {
		const struct sql_visit *v = &w.v[i];

		v->of->rc = v->is_repeated && !w.push ? 0 : v->o.rc;
		v->of->visit.new_n = v->o.visit.new_n;
		v->of->visit.changed_n = v->o.visit.changed_n;
	}
	free(w.v);
	return rc;
}
