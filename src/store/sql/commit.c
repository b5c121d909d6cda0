/* SPDX-License-Identifier: ISC */
/*
 * Outcomes, all or nothing.
 *
 * The fence is a lock on the lease's row, not a change of it: beside a transaction that another
 * program keeps open, versions of a row that each commit changes pile up, and each commit looks at
 * all of them. The beat changes it.
 *
 * Rows are locked in this order: the lease, schedule and feeds by place, entries, hosts, the counter
 * of entry ids, shards. What changes them from outside goes the same way.
 */
#include <stdlib.h>

#include "store/fields.h"
#include "store/sql/core.h"
#include "base/banned.h"

#define WHEEL_MAX 24

struct spot { /* where an outcome's row lies */
	int64_t place;
	struct fw_outcome *of;
};

/* What a commit works on: its outcomes in order of their rows. */
struct work {
	struct sql *s;
	const struct store_commit *c;
	struct spot *spot;
	struct fw_outcome *o;
	int64_t *place;
	int64_t *id, *last_id;   /* of its visit, and of its feed's last one so far */
	bool *before;            /* it was stored before; of a push: one at that time is there */
	bool *there;
	bool *has;               /* its feed may have had entries before */
	size_t n;
	bool push;               /* the schedules stay */
	int64_t now_ms, number;  /* number: of its row of the tally */
	bool changed[STORE_SHARDS];
};

/* ---- the beginning --------------------------------------------------------------------------- */

static int now_row(void *ctx, const struct sql_row *row)
{
	struct work *w = ctx;

	w->now_ms = sql_int(row, 0);
	w->number = sql_int(row, 1);
	return 0;
}

/* The lease, the time, and numbers for the visits. Those of a push need no lease. */
static int fence(struct work *w, int64_t lease_id, struct fw_err *err)
{
	static const struct sql_text FENCE = {"SELECT {now}, {last} FROM workers WHERE id = ?1 {share}", NULL};
	static const struct sql_text NOW = {"SELECT {now}, {last}", NULL};
	const size_t block = (size_t)1 << SQL_VISIT_BITS;
	struct sql_value id = SQL_INT(lease_id);
	int rc = 0;

	for (size_t i = 0; !rc && i < w->n + !w->n; i++) {
		if (i % block == 0) {
			rc = sql_tally_add(w->s, 0, 0, err);
			rc = rc ? rc : sql_ask(w->s, w->push ? &NOW : &FENCE, &id, !w->push, now_row, w, NULL, err);
		}
		w->id[i] = w->number << SQL_VISIT_BITS | (int64_t)(i % block);
	}
	return rc || w->now_ms ?
		rc :
		fw_err_set(err, FW_ESTALE, "%s: this worker's lease is over: others have its feeds", w->s->name);
}

static int place_row(void *ctx, const struct sql_row *row)
{
	struct work *w = ctx;

	w->place[sql_int(row, 0)] = sql_int(row, 1);
	return 0;
}

/* Who pushes knows the feed's number only. -1: it is not there. */
static int places_find(struct work *w, struct fw_err *err)
{
	static const struct sql_text PLACE = {
		"SELECT v.nth, f.place FROM {rows} JOIN feeds f ON f.id = v.feed", "nth:i feed:i"};
	struct sql_value *v = calloc(w->n + 1, 2 * sizeof(*v));
	int rc;

	if (!v)
		return fw_no_memory(err);
	for (size_t i = 0; i < w->n; i++) {
		v[2 * i] = SQL_INT(i);
		v[2 * i + 1] = SQL_INT(w->o[i].feed_id);
		w->place[i] = -1;
	}
	rc = sql_ask_each(w->s, &PLACE, v, 2, w->n, place_row, w, err);
	free(v);
	return rc;
}

/*
 * Without a lease, and alone: the first visit of its feed, also when that is stored already? Else it
 * is taken as a push.
 */
static void first_visit(struct work *w, struct fw_outcome *o, int64_t place, int64_t last_ms)
{
	if (last_ms && last_ms != o->feed->last_visit_ms) {
		o->visit.kind = FW_VISIT_PUSHED;
		o->groups &= FW_GROUP_META;
	} else {
		w->push = false;
		w->changed[place >> SQL_PLACE_BITS] = true;
	}
}

static int look_row(void *ctx, const struct sql_row *row)
{
	struct work *w = ctx;
	size_t i = (size_t)sql_int(row, 0);

	w->there[i] = true;
	w->last_id[i] = sql_int(row, 2);
	w->has[i] = sql_int(row, 3);
	if (w->push && w->o[i].visit.kind != FW_VISIT_PUSHED)
		first_visit(w, &w->o[i], w->place[i], sql_int(row, 1));
	w->before[i] = !w->push && w->o[i].visit.kind != FW_VISIT_NONE && sql_int(row, 1) == w->o[i].feed->last_visit_ms;
	return 0;
}

/*
 * Locks the feeds' rows. The time of a visit tells it from the feed's others: one that is there
 * already was stored by a commit whose end was not heard.
 */
static int look(struct work *w, struct fw_err *err)
{
	static const struct sql_text LOOK = {"SELECT v.nth, t.last_visit_ms, t.last_visit_id,"
		" CASE WHEN t.last_new_ms > 0 OR EXISTS (SELECT 1 FROM entry_keys k WHERE k.feed_id = v.feed)"
		" THEN 1 ELSE 0 END FROM {rows} JOIN schedule t ON t.place = v.spot {update}",
		"nth:i spot:i feed:i"};
	struct sql_value *v = calloc(w->n + 1, 3 * sizeof(*v));
	int rc;

	if (!v)
		return fw_no_memory(err);
	for (size_t i = 0; i < w->n; i++) {
		v[3 * i] = SQL_INT(i);
		v[3 * i + 1] = SQL_INT(w->place[i]);
		v[3 * i + 2] = SQL_INT(w->o[i].feed_id);
	}
	rc = sql_ask_each(w->s, &LOOK, v, 3, w->n, look_row, w, err);
	free(v);
	for (size_t i = 0; !rc && i < w->n; i++) {
		w->has[i] |= i && w->o[i].feed_id == w->o[i - 1].feed_id;
		if (!w->there[i] && w->push && w->place[i] >= 0) {
			w->s->race = SQL_RACE_LOCKS;
			return fw_err_set(err, FW_EAGAIN,
				"%s: feed %lld goes from one host to another just now: try again", w->s->name,
				(long long)w->o[i].feed_id);
		}
		if (w->there[i] && w->push)
			rc = sql_visit_there(w->s, w->last_id[i], &w->o[i].visit, &w->before[i], err);
		if (!w->there[i] || (w->before[i] && !w->push))
			w->o[i].rc = FW_ENOTFOUND;
	}
	return rc;
}

/* ---- the schedule ---------------------------------------------------------------------------- */

static int schedule_put(struct work *w, struct fw_err *err)
{
	static const struct sql_text PUT = {
		"UPDATE schedule AS t {join} SET due_at_ms = CASE WHEN t.due_at_ms = v.was THEN v.due ELSE t.due_at_ms "
		"END,"
		" status = CASE WHEN t.status = 0 THEN v.state ELSE t.status END, last_kind = v.kind, http_status = "
		"v.http, fail_n = v.fails, crash_n = v.crashes,"
		" last_visit_ms = v.visit, last_ok_ms = v.ok, expect_us = v.expect, expect_dev_us = v.dev, "
		"expect_parts = v.parts, last_visit_id = v.last, why = v.because"
		" {from} WHERE t.place = v.spot",
		"spot:i was:i due:i state:i kind:i http:i fails:i crashes:i visit:i ok:i expect:i dev:i parts:i last:i "
		"because:t"};
	enum { COLUMNS = 15 };
	struct sql_value *v = calloc(w->n + 1, COLUMNS * sizeof(*v)), *at = v;
	int rc;

	if (!v)
		return fw_no_memory(err);
	for (size_t i = 0; i < w->n; i++) {
		const struct fw_outcome *o = &w->o[i];
		const struct fw_feed *f = o->feed;
		const struct sql_value row[COLUMNS] = {SQL_INT(w->place[i]), SQL_INT(o->was_due_ms),
			SQL_INT(f->due_at_ms), SQL_INT(f->status), SQL_INT(f->last_kind), SQL_INT(f->http_status),
			SQL_INT(f->fail_n), SQL_INT(f->crash_n), SQL_INT(f->last_visit_ms), SQL_INT(f->last_ok_ms),
			SQL_INT(f->expect_us), SQL_INT(f->expect_dev_us), SQL_INT(f->expect_parts),
			SQL_INT(o->visit.kind == FW_VISIT_NONE ? w->last_id[i] : w->id[i]), SQL_TEXT(f->why)};

		if (o->rc)
			continue;
		memcpy(at, row, sizeof(row));
		at += COLUMNS;
	}
	rc = sql_each(w->s, &PUT, v, COLUMNS, (size_t)(at - v) / COLUMNS, err);
	free(v);
	return rc;
}

/* What a push's visits change. Those of one feed lie together: the last one of them is its last. */
static int pushed_put(struct work *w, struct fw_err *err)
{
	static const struct sql_text LAST = {
		"UPDATE schedule AS t {join} SET last_visit_id = v.last {from} WHERE t.place = v.spot", "spot:i last:i"};
	struct sql_value *v = calloc(w->n + 1, 2 * sizeof(*v));
	size_t n = 0;
	int rc;

	if (!v)
		return fw_no_memory(err);
	for (size_t i = 0; i < w->n; i++) {
		if (w->o[i].rc || w->o[i].visit.kind == FW_VISIT_NONE)
			continue;
		n += !n || v[2 * n - 2].i != w->place[i];
		v[2 * n - 2] = SQL_INT(w->place[i]);
		v[2 * n - 1] = SQL_INT(w->id[i]);
	}
	rc = sql_each(w->s, &LAST, v, 2, n, err);
	free(v);
	return rc;
}

/* When a feed last had something new: whoever brought it. */
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
	rc = sql_each(w->s, &NEWS, v, 2, n, err);
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
		rc = sql_each(w->s, others ? &OTHERS : &OWN, v, 5, (size_t)(at - v) / 5, err);
	}
	free(v);
	return rc;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int tally_set(struct work *w, int64_t new_n, struct fw_err *err)
{
	static const struct sql_text SET = {"UPDATE tally SET entry_n = ?2, visit_n = ?3 WHERE id = ?1", NULL};
	int64_t visit_n = 0;

	for (size_t i = 0; i < w->n; i++)
		visit_n += w->o[i].rc != FW_ENOTFOUND && w->o[i].visit.kind != FW_VISIT_NONE;
	return new_n || visit_n ?
		sql_do(w->s, &SET, (struct sql_value[]){SQL_INT(w->number), SQL_INT(new_n), SQL_INT(visit_n)}, 3, err) :
		0;
}

static int stored(struct work *w, const struct store_commit *c, struct fw_err *err)
{
	struct sql_entries rest = {NULL};
	int64_t new_n = 0;
	int rc = sql_feeds_groups(w->s, w->o, w->place, w->n, w->changed, err);

	rc = rc ? rc : sql_entries_put(w->s, w->o, w->has, w->n, w->now_ms, &new_n, &rest, err);
	for (size_t i = 0; i < w->n; i++) {
		if (w->before[i] && !w->o[i].visit.new_n && !w->o[i].visit.changed_n)
			w->o[i].visit.kind = FW_VISIT_NONE;
	}
	rc = rc ? rc : news_put(w, err);
	rc = rc || !w->push ? rc : pushed_put(w, err);
	rc = rc ? rc : sql_visits_put(w->s, w->o, w->id, w->last_id, w->n, err);
	rc = rc ? rc : hosts_put(w, c->host, c->host_n, err);
	rc = rc ? rc : tally_set(w, new_n, err);
	rc = sql_entries_insert(&rest, rc, err);
	return rc ? rc : sql_shards_changed(w->s, w->changed, err);
}

static int by_place(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;

	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	return x->of < y->of ? -1 : x->of > y->of;
}

/* In order of their rows: all who change some lock them in this order. */
static int in_order(struct work *w, struct fw_err *err)
{
	const struct store_commit *c = w->c;
	struct spot *spot = w->spot;
	int rc = 0;

	for (size_t i = 0; i < w->n; i++) {
		w->o[i] = c->outcome[i];
		w->place[i] = sql_place(store_host_shard(c->outcome[i].host_id), c->outcome[i].feed_id);
	}
	if (w->push)
		rc = places_find(w, err);
	for (size_t i = 0; i < w->n; i++)
		spot[i] = (struct spot){w->place[i], &c->outcome[i]};
	if (w->n)
		qsort(spot, w->n, sizeof(*spot), by_place);
	for (size_t i = 0; i < w->n; i++) {
		w->place[i] = spot[i].place;
		w->o[i] = *spot[i].of;
		w->o[i].rc = 0;
		w->o[i].visit.new_n = w->o[i].visit.changed_n = 0;
	}
	return rc;
}

static int work(struct sql *s, void *ctx, struct fw_err *err)
{
	struct work *w = ctx;
	int rc;

	(void)s;
	for (size_t i = 0; i < w->n; i++)
		w->before[i] = w->there[i] = false;
	memset(w->changed, 0, sizeof(w->changed));
	w->now_ms = 0;
	w->push = !w->c->lease_id;
	rc = in_order(w, err);
	rc = rc ? rc : fence(w, w->c->lease_id, err);
	rc = rc ? rc : look(w, err);
	rc = rc || w->push ? rc : schedule_put(w, err);
	return rc ? rc : stored(w, w->c, err);
}

int sql_commit(struct store *st, struct store_commit *c, struct fw_err *err)
{
	size_t n = c->n + 1;
	struct work w = {.s = sql_of(st), .c = c, .n = c->n,
		.spot = calloc(n, sizeof(*w.spot)), .o = calloc(n, sizeof(*w.o)),
		.place = calloc(n, sizeof(*w.place)), .id = calloc(n, sizeof(*w.id)),
		.last_id = calloc(n, sizeof(*w.last_id)), .before = calloc(n, sizeof(*w.before)),
		.there = calloc(n, sizeof(*w.there)), .has = calloc(n, sizeof(*w.has))};
	bool fine = w.spot && w.o && w.place && w.id && w.last_id && w.before && w.there && w.has;
	int rc = fine ? sql_transaction(w.s, work, &w, err) : fw_no_memory(err);

	for (size_t i = 0; !rc && i < c->n; i++) {
		struct fw_outcome *o = w.spot[i].of;

		o->rc = w.before[i] && !w.push ? 0 : w.o[i].rc;
		o->visit.new_n = w.o[i].visit.new_n;
		o->visit.changed_n = w.o[i].visit.changed_n;
	}
	free(w.spot);
	free(w.o);
	free(w.place);
	free(w.id);
	free(w.last_id);
	free(w.before);
	free(w.there);
	free(w.has);
	return rc;
}
