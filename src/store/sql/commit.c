/* SPDX-License-Identifier: ISC */
/*
 * Outcomes, all or nothing.
 *
 * The fence is a lock on the lease's row, not a change of it: beside a transaction that another
 * program keeps open, versions of a row that each commit changes pile up, and each commit looks at
 * all of them. The beat changes it.
 *
 * Rows are locked in this order: the lease, schedule and feeds by place, entries, the counter of
 * entry ids, shards. What changes them from outside goes the same way.
 */
#include <stdlib.h>

#include "store/fields.h"
#include "store/sql/core.h"
#include "base/banned.h"

#define WHEEL_MAX 24

/* What a commit works on: its outcomes in order of their rows. */
struct work {
	struct sql *s;
	struct store_outcome *o;
	int64_t *place;
	bool *again;             /* of a push: one at that time is there */
	size_t n;
	int64_t now_ms;
	bool changed[STORE_SHARDS];
};

static int fence(struct work *w, int64_t lease_id, struct fw_err *err)
{
	static const struct sql_text FENCE = {"SELECT {now} FROM workers WHERE id = ?1 {share}", NULL};
	int rc = sql_number(w->s, &FENCE, (struct sql_value[]){SQL_INT(lease_id)}, 1, 0, &w->now_ms, err);

	return rc || w->now_ms ?
		rc :
		fw_err_set(err, FW_ESTALE, "%s: this worker's lease is over: others have its feeds", w->s->name);
}

/* ---- the schedule ---------------------------------------------------------------------------- */

/* Of one that was not written: was it removed, or stored before? */
static int missed(struct work *w, size_t i, struct fw_err *err)
{
	static const struct sql_text THERE = {"SELECT 1 FROM schedule WHERE place = ?1", NULL};
	int64_t there;
	int rc = sql_number(w->s, &THERE, (struct sql_value[]){SQL_INT(w->place[i])}, 1, 0, &there, err);

	if (rc)
		return rc;
	w->o[i].rc = FW_ENOTFOUND;
	if (there)
		w->place[i] = -1;
	return 0;
}

/*
 * The time of a visit tells it from the feed's others: one that is there already was stored by a
 * commit whose end was not heard. last: what that is compared with; -1: no visit was made.
 */
static int schedule_put(struct work *w, struct fw_err *err)
{
	static const struct sql_text PUT = {
		"UPDATE schedule AS t {join} SET due_at_ms = CASE WHEN t.due_at_ms = v.was THEN v.due ELSE t.due_at_ms "
		"END,"
		" status = CASE WHEN t.status = 0 THEN v.state ELSE t.status END, last_kind = v.kind, http_status = "
		"v.http, fail_n = v.fails, crash_n = v.crashes,"
		" last_visit_ms = v.visit, last_ok_ms = v.ok, expect_us = v.expect, expect_dev_us = v.dev, "
		"expect_parts = v.parts, why = v.because"
		" {from} WHERE t.place = v.spot AND t.last_visit_ms <> v.last {hits}",
		"spot:i was:i last:i due:i state:i kind:i http:i fails:i crashes:i visit:i ok:i expect:i dev:i parts:i "
		"because:t"};
	enum { COLUMNS = 15 };
	struct sql_value *v = calloc(w->n + 1, COLUMNS * sizeof(*v)), *at = v;
	bool *hit = calloc(w->n + 1, sizeof(*hit));
	int rc = v && hit ? 0 : fw_no_memory(err);

	for (size_t i = 0; !rc && i < w->n; i++, at += COLUMNS) {
		const struct store_outcome *o = &w->o[i];
		const struct fw_feed *f = o->feed;
		const struct sql_value row[COLUMNS] = {SQL_INT(w->place[i]), SQL_INT(o->was_due_ms),
			SQL_INT(o->visit.kind == FW_VISIT_NONE ? -1 : f->last_visit_ms), SQL_INT(f->due_at_ms),
			SQL_INT(f->status), SQL_INT(f->last_kind), SQL_INT(f->http_status), SQL_INT(f->fail_n),
			SQL_INT(f->crash_n), SQL_INT(f->last_visit_ms), SQL_INT(f->last_ok_ms), SQL_INT(f->expect_us),
			SQL_INT(f->expect_dev_us), SQL_INT(f->expect_parts), SQL_TEXT(f->why)};

		memcpy(at, row, sizeof(row));
	}
	rc = rc ? rc : sql_each(w->s, &PUT, v, COLUMNS, w->n, hit, err);
	for (size_t i = 0; !rc && i < w->n; i++) {
		if (!hit[i])
			rc = missed(w, i, err);
	}
	free(v);
	free(hit);
	return rc;
}

/* When a feed last had something new: after its entries are stored, whoever brought them. */
static int news_put(struct work *w, struct fw_err *err)
{
	static const struct sql_text NEWS = {
		"UPDATE schedule AS t {join} SET last_new_ms = v.at {from} WHERE t.place = v.spot", "spot:i at:i"};
	struct sql_value *v = calloc(w->n + 1, 2 * sizeof(*v));
	size_t n = 0;
	int rc;

	if (!v)
		return fw_no_memory(err);
	for (size_t i = 0; i < w->n; i++) {
		if (w->o[i].rc == FW_ENOTFOUND || !w->o[i].visit.new_n)
			continue;
		v[2 * n] = SQL_INT(w->place[i]);
		v[2 * n++ + 1] = SQL_INT(w->now_ms);
	}
	rc = sql_each(w->s, &NEWS, v, 2, n, NULL, err);
	free(v);
	return rc;
}

/*
 * Of a shard that others hold the later time counts; its owner looks at its hosts again when the
 * version rises.
 */
static int hosts_put(struct work *w, const struct store_host *host, size_t n, struct fw_err *err)
{
	static const struct sql_text OWN = {
		"INSERT INTO hosts (shard, host_id, next_ok_ms, cool_until_ms, pace_ms) {values} {upsert shard, "
		"host_id}"
		" next_ok_ms = {new next_ok_ms}, cool_until_ms = {new cool_until_ms}, pace_ms = {new pace_ms}",
		"shard:i host:i next:i cool:i pace:i"};
	static const struct sql_text OTHERS = {"INSERT INTO hosts (shard, host_id, next_ok_ms, cool_until_ms, pace_ms) "
					       "{values} {upsert shard, host_id}"
					       " next_ok_ms = {greatest}(hosts.next_ok_ms, {new next_ok_ms}), "
					       "cool_until_ms = {greatest}(hosts.cool_until_ms, {new cool_until_ms})",
		"shard:i host:i next:i cool:i pace:i"};
	struct sql_value *v = calloc(n + 1, 5 * sizeof(*v)), *at;
	int rc = v ? 0 : fw_no_memory(err);

	for (int others = 0; !rc && others < 2; others++) {
		at = v;
		for (size_t i = 0; i < n; i++) {
			const struct sql_value row[5] = {SQL_INT(store_host_shard(host[i].id)), SQL_INT(host[i].id),
				SQL_INT(host[i].next_ok_ms), SQL_INT(host[i].cool_until_ms), SQL_INT(host[i].pace_ms)};

			if (host[i].others != (others == 1))
				continue;
			memcpy(at, row, sizeof(row));
			at += 5;
			w->changed[store_host_shard(host[i].id)] |= others == 1;
		}
		rc = sql_each(w->s, others ? &OTHERS : &OWN, v, 5, (size_t)(at - v) / 5, NULL, err);
	}
	free(v);
	return rc;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int stored(struct work *w, const struct store_commit *c, struct fw_err *err)
{
	int64_t new_n = 0, visit_n = 0;
	int rc = sql_feeds_groups(w->s, w->o, w->place, w->n, w->changed, err);

	rc = rc ? rc : sql_entries_put(w->s, w->o, w->n, w->now_ms, &new_n, err);
	for (size_t i = 0; i < w->n; i++) {
		if (w->again[i] && !w->o[i].visit.new_n && !w->o[i].visit.changed_n)
			w->o[i].visit.kind = FW_VISIT_NONE;
	}
	rc = rc ? rc : news_put(w, err);
	rc = rc ? rc : sql_visits_put(w->s, w->o, w->place, w->n, err);
	rc = rc ? rc : hosts_put(w, c->host, c->host_n, err);
	for (size_t i = 0; i < w->n; i++)
		visit_n += w->o[i].rc != FW_ENOTFOUND && w->o[i].visit.kind != FW_VISIT_NONE;
	rc = rc ? rc : sql_tally_add(w->s, new_n, visit_n, err);
	return rc ? rc : sql_shards_changed(w->s, w->changed, err);
}

/*
 * Its feeds' places, locked in their order; what is not there any more, and what may be stored
 * already, is marked.
 */
static int pushed(struct work *w, struct fw_err *err)
{
	static const struct sql_text BEFORE = {
		"SELECT count(*) FROM visits WHERE place = ?1 AND at_ms = ?2 AND kind = ?3", NULL};
	int rc = sql_clock(&w->s->store, &w->now_ms, err);

	for (size_t i = 0; !rc && i < w->n; i++) {
		struct store_outcome *o = &w->o[i];
		int64_t before = 0;

		rc = sql_feed_place(w->s, o->feed_id, true, &w->place[i], err);
		if (!rc)
			rc = sql_number(w->s, &BEFORE,
				(struct sql_value[]){
					SQL_INT(w->place[i]), SQL_INT(o->visit.at_ms), SQL_INT(o->visit.kind)},
				3, 0, &before, err);
		w->again[i] = !rc && before;
		if (rc == FW_ENOTFOUND) {
			o->rc = rc;
			w->place[i] = rc = 0;
		}
	}
	return rc;
}

static int work(struct work *w, const struct store_commit *c, struct fw_err *err)
{
	int rc = w->s->dialect->begin(w->s, err);

	if (rc)
		return rc;
	rc = c->lease_id ? fence(w, c->lease_id, err) : pushed(w, err);
	if (!rc && c->lease_id)
		rc = schedule_put(w, err);
	return sql_end(w->s, rc ? rc : stored(w, c, err), err);
}

static int by_row(const void *a, const void *b)
{
	const struct store_outcome *x = *(struct store_outcome *const *)a, *y = *(struct store_outcome *const *)b;
	int shard_x = store_host_shard(x->host_id), shard_y = store_host_shard(y->host_id);

	if (shard_x != shard_y)
		return shard_x < shard_y ? -1 : 1;
	return x->feed_id < y->feed_id ? -1 : x->feed_id > y->feed_id;
}

int sql_commit(struct store *st, struct store_commit *c, struct fw_err *err)
{
	struct work w = {.s = sql_of(st), .n = c->n};
	struct store_outcome **of = calloc(c->n + 1, sizeof(struct store_outcome *));
	int rc = 0;

	w.o = calloc(c->n + 1, sizeof(*w.o));
	w.place = calloc(c->n + 1, sizeof(*w.place));
	w.again = calloc(c->n + 1, sizeof(*w.again));
	if (!of || !w.o || !w.place || !w.again)
		rc = fw_no_memory(err);
	for (size_t i = 0; !rc && i < c->n; i++)
		of[i] = &c->outcome[i];
	if (!rc && c->n)
		qsort(of, c->n, sizeof(struct store_outcome *), by_row); /* all lock rows in one order */
	for (size_t i = 0; !rc && i < c->n; i++) {
		w.o[i] = *of[i];
		w.o[i].rc = 0;
		w.o[i].visit.new_n = w.o[i].visit.changed_n = 0;
		w.place[i] = sql_place(store_host_shard(of[i]->host_id), of[i]->feed_id);
	}
	rc = rc ? rc : work(&w, c, err);
	for (size_t i = 0; !rc && i < c->n; i++) {
		of[i]->rc = w.place[i] < 0 ? 0 : w.o[i].rc; /* below 0: it was stored before */
		of[i]->visit.new_n = w.o[i].visit.new_n;
		of[i]->visit.changed_n = w.o[i].visit.changed_n;
	}
	free(of);
	free(w.o);
	free(w.place);
	free(w.again);
	return rc;
}
