/* SPDX-License-Identifier: ISC */
/* Who holds which shards: driver.h has the rules. */
#include <stdlib.h>

#include "base/clock.h"
#include "store/driver.h"
#include "store/sql/core.h"
#include "base/banned.h"

/*
 * How much earlier than the lease's end a worker stops: a tenth, for clocks that do not run alike
 * and a request on its way out.
 */
#define MARGIN(lease_ms) ((lease_ms) / 10)

static int lost(struct sql *s, struct fw_err *err)
{
	return fw_err_set(err, FW_ESTALE, "%s: this worker's lease is over: others have its feeds", s->name);
}

/* A lease and its shards: their hosts may have been asked until now. */
static int drop(struct sql *s, int64_t lease_id, struct fw_err *err)
{
	static const struct sql_text FREE = {
		"UPDATE shards SET worker = NULL, quiet_since_ms = {now} WHERE worker = ?1", NULL};
	static const struct sql_text GONE = {"DELETE FROM workers WHERE id = ?1", NULL};
	struct sql_value id = SQL_INT(lease_id);
	int rc = sql_do(s, &FREE, &id, 1, err);

	return rc ? rc : sql_do(s, &GONE, &id, 1, err);
}

/*
 * The store's clock was set back: a dead worker's lease would go on for as much longer. The living
 * renew theirs. One that is just committing is passed over, as below; the LIMIT keeps MySQL from
 * reading the table that it updates.
 */
static int shorten(struct sql *s, struct fw_err *err)
{
	static const struct sql_text AHEAD = {
		"UPDATE workers SET until_ms = {now} + lease_ms WHERE id IN (SELECT x.id FROM (SELECT id FROM workers"
		" WHERE until_ms > {now} + lease_ms ORDER BY id LIMIT 1000 {skip}) x)",
		NULL};

	return sql_do(s, &AHEAD, NULL, 0, err);
}

/*
 * Leases of others whose time is over. One that is just committing holds its row, and is passed
 * over: it lives. So does this one, however long its transaction takes: it holds its own row, and
 * would leave shards to nobody if it took that away.
 */
static int expire(struct sql *s, int64_t me, struct fw_err *err)
{
	static const struct sql_text OVER = {
		"SELECT id FROM workers WHERE until_ms < {now} AND id <> ?1 ORDER BY id LIMIT 1 {skip}", NULL};
	int64_t dead;
	int rc;

	do { /* one after the other: they are few */
		rc = sql_number(s, &OVER, (struct sql_value[]){SQL_INT(me)}, 1, 0, &dead, err);
		if (!rc && dead)
			rc = drop(s, dead, err);
	} while (!rc && dead);
	return rc;
}

struct taking {
	struct store_lease *lease;
	size_t n;
};

static int living_row(void *ctx, const struct sql_row *row)
{
	struct taking *t = ctx;
	struct store_lease *l = t->lease;

	l->living = (uint32_t)FW_MAX(sql_int(row, 0), 1);
	l->idle_n = (uint32_t)sql_int(row, 1);
	t->n = store_take(l, (size_t)sql_int(row, 2), (size_t)sql_int(row, 3));
	return 0;
}

struct shard_list {
	int64_t lease_id;
	struct sql_value v[2 * STORE_SHARDS];
	size_t n;
};

static int free_row(void *ctx, const struct sql_row *row)
{
	struct shard_list *list = ctx;

	list->v[2 * list->n] = SQL_INT(sql_int(row, 0));
	list->v[2 * list->n++ + 1] = SQL_INT(list->lease_id);
	return 0;
}

/* What is free and this worker's to take. */
static int take(struct sql *s, struct store_lease *l, struct fw_err *err)
{
	static const struct sql_text LIVING = {
		"SELECT count(*), coalesce(sum(CASE WHEN idle <> 0 AND id <> ?1 THEN 1 ELSE 0 END), 0),"
		" (SELECT count(*) FROM shards WHERE worker = ?1),"
		" (SELECT count(*) FROM shards WHERE worker IS NULL) FROM workers",
		NULL};
	static const struct sql_text FREE = {
		"SELECT shard FROM shards WHERE worker IS NULL ORDER BY shard LIMIT ?1 {skip}", NULL};
	static const struct sql_text TAKE = {
		"UPDATE shards AS t {join} SET worker = v.lease {from} WHERE t.shard = v.number", "number:i lease:i"};
	struct shard_list list = {.lease_id = l->id};
	struct taking t = {.lease = l};
	int rc = sql_ask(s, &LIVING, (struct sql_value[]){SQL_INT(l->id)}, 1, living_row, &t, NULL, err);

	if (rc || !t.n)
		return rc;
	rc = sql_ask(s, &FREE, (struct sql_value[]){SQL_INT(t.n)}, 1, free_row, &list, NULL, err);
	return rc ? rc : sql_each(s, &TAKE, list.v, 2, list.n, err);
}

static int held_row(void *ctx, const struct sql_row *row)
{
	struct store_lease *l = ctx;

	if (l->shard_n < STORE_SHARDS)
		l->shard[l->shard_n++] = (struct store_shard){(int)sql_int(row, 0), sql_int(row, 1), sql_int(row, 2)};
	return 0;
}

static int held(struct sql *s, struct store_lease *l, struct fw_err *err)
{
	static const struct sql_text HELD = {
		"SELECT shard, version, quiet_since_ms FROM shards WHERE worker = ?1 ORDER BY shard", NULL};

	l->shard_n = 0;
	return sql_ask(s, &HELD, (struct sql_value[]){SQL_INT(l->id)}, 1, held_row, l, NULL, err);
}

/*
 * The number is taken in the same transaction: workers that join wait for each other for a moment.
 */
static int join(struct sql *s, const char *worker, struct store_lease *l, int64_t *id, struct fw_err *err)
{
	static const struct sql_text NEW = {
		"INSERT INTO workers (id, name, lease_ms, until_ms, idle) VALUES (?1, ?2, ?3, {now} + ?3, ?4)", NULL};
	int rc = sql_numbers_take(s, "lease_id", 1, id, err);

	return rc ? rc :
		    sql_do(s, &NEW,
			    (struct sql_value[]){
				    SQL_INT(*id), SQL_TEXT(fw_str(worker)), SQL_INT(l->lease_ms), SQL_INT(l->idle)},
			    4, err);
}

static int keep(struct sql *s, const struct store_lease *l, struct fw_err *err)
{
	static const struct sql_text ALIVE = {
		"UPDATE workers SET until_ms = {now} + ?2, lease_ms = ?2, idle = ?3 WHERE id = ?1", NULL};
	int64_t changed = 0;
	int rc = sql_ask(s, &ALIVE, (struct sql_value[]){SQL_INT(l->id), SQL_INT(l->lease_ms), SQL_INT(l->idle)}, 3,
		NULL, NULL, &changed, err);

	return rc || changed ? rc : lost(s, err);
}

struct beating {
	const char *worker;
	struct store_lease *l;
	int64_t was;              /* its lease; 0: it joins */
	int64_t asked_mono_ms;
};

static int beat(struct sql *s, void *ctx, struct fw_err *err)
{
	struct beating *b = ctx;
	struct store_lease *l = b->l;
	int rc;

	b->asked_mono_ms = fw_mono_ms();
	rc = b->was ? keep(s, l, err) : join(s, b->worker, l, &l->id, err);
	rc = rc ? rc : shorten(s, err);
	rc = rc || l->late ? rc : expire(s, l->id, err);
	rc = rc ? rc : take(s, l, err);
	return rc ? rc : held(s, l, err);
}

int sql_beat(struct store *st, const char *worker, struct store_lease *l, struct fw_err *err)
{
	struct beating b = {worker, l, l->id, 0};
	int rc = sql_transaction(sql_of(st), beat, &b, err);

	if (rc)
		l->id = b.was;
	else
		l->safe_until_mono_ms = b.asked_mono_ms + l->lease_ms - MARGIN(l->lease_ms);
	return rc;
}

/* ---- giving back ----------------------------------------------------------------------------- */

static int shards_give(struct sql *s, const struct store_give *g, struct fw_err *err)
{
	static const struct sql_text GIVE = {"UPDATE shards AS t {join} SET worker = NULL, quiet_since_ms = v.quiet "
					     "{from} WHERE t.shard = v.number AND t.worker = v.lease",
		"number:i lease:i quiet:i"};
	struct sql_value *v = calloc(g->n + 1, 3 * sizeof(*v));
	int rc;

	if (!v)
		return fw_no_memory(err);
	for (size_t i = 0; i < g->n; i++) {
		v[3 * i] = SQL_INT(g->shard[i].shard);
		v[3 * i + 1] = SQL_INT(g->lease_id);
		v[3 * i + 2] = SQL_INT(g->shard[i].quiet_since_ms);
	}
	rc = sql_each(s, &GIVE, v, 3, g->n, err);
	free(v);
	return rc;
}

/* A feed whose visit has killed its worker. */
static int crashed(struct sql *s, int64_t feed_id, struct fw_err *err)
{
	static const struct sql_text CRASHED = {"UPDATE schedule SET status = CASE WHEN status = 0 AND crash_n + 1 >= "
						"?2 THEN 3 ELSE status END, crash_n = crash_n + 1"
						" WHERE place = ?1",
		NULL};
	bool changed[STORE_SHARDS] = {false};
	int64_t place;
	int rc = sql_feed_place(s, feed_id, true, &place, err);

	_Static_assert(FW_FEED_ACTIVE == 0 && FW_FEED_QUARANTINED == 3, "the statement has the numbers");
	if (rc == FW_ENOTFOUND) /* it was removed meanwhile */
		return 0;
	changed[rc ? 0 : place >> SQL_PLACE_BITS] = true;
	rc = rc ? rc : sql_do(s, &CRASHED, (struct sql_value[]){SQL_INT(place), SQL_INT(FW_STORE_CRASH_MAX)}, 2, err);
	return rc ? rc : sql_shards_changed(s, changed, err);
}

static int reap(struct sql *s, const char *worker, struct fw_err *err)
{
	static const struct sql_text OF_NAME = {
		"SELECT id FROM workers WHERE name = ?1 ORDER BY id LIMIT 1 {update}", NULL};
	int64_t dead;
	int rc;

	do {
		rc = sql_number(s, &OF_NAME, (struct sql_value[]){SQL_TEXT(fw_str(worker))}, 1, 0, &dead, err);
		if (!rc && dead)
			rc = drop(s, dead, err);
	} while (!rc && dead);
	return rc;
}

static int give(struct sql *s, void *ctx, struct fw_err *err)
{
	const struct store_give *g = ctx;
	int rc;

	if (g->lease_id) {
		rc = shards_give(s, g, err);
		if (!rc && g->leave)
			rc = drop(s, g->lease_id, err);
	} else {
		rc = reap(s, g->worker, err);
		if (!rc && g->crashed_feed_id)
			rc = crashed(s, g->crashed_feed_id, err);
	}
	return rc;
}

int sql_give(struct store *st, const struct store_give *g, struct fw_err *err)
{
	struct store_give copy = *g;

	return sql_transaction(sql_of(st), give, &copy, err);
}
