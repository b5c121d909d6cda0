/* SPDX-License-Identifier: ISC */
/* Leases and the ownership of shards. driver.h has the rules. */
#include <assert.h>

#include "base/clock.h"
#include "store/driver.h"
#include "store/sql/core.h"
#include "base/banned.h"

/*
 * How much earlier than the end of its lease a worker stops sending requests: a tenth, for clock
 * drift and for requests that are on their way out.
 */
#define MARGIN(lease_ms) ((lease_ms) / 10)

static int lost(struct sql *s, struct fw_err *err)
{
	return fw_err_set(err, FW_ESTALE, "%s: the lease is over: other workers own its shards (the worker joins anew)", s->name);
}

/* End a lease and free its shards. Requests may have been sent to their hosts until now. */
static int drop(struct sql *s, int64_t lease_id, struct fw_err *err)
{
	struct sql_value id = SQL_INT(lease_id);
	int rc = sql_do(s, "UPDATE shards SET worker = NULL, quiet_since_ms = {now} WHERE worker = ?1", &id, 1, err);

	return rc ? rc : sql_do(s, "DELETE FROM workers WHERE id = ?1", &id, 1, err);
}

/*
 * If the store's clock was set back, a dead worker's lease would last longer by that much: cut each
 * lease to its length from now. Live workers renew theirs. A row that a commit has locked is
 * skipped, as below. The LIMIT keeps MySQL from reading the table that it updates.
 */
static int shorten(struct sql *s, struct fw_err *err)
{
	return sql_do(s, "UPDATE workers SET until_ms = {now} + lease_ms WHERE id IN (SELECT x.id FROM (SELECT id FROM"
		" workers WHERE until_ms > {now} + lease_ms ORDER BY id LIMIT 1000 {skip}) x)", SQL_NONE, err);
}

/* End the leases that a statement finds, one by one: they are few. */
static int drop_each(struct sql *s, const char *text, struct sql_value v, struct fw_err *err)
{
	int64_t dead;
	int rc;

	do {
		rc = sql_number(s, text, &v, 1, 0, &dead, err);
		if (!rc && dead)
			rc = drop(s, dead, err);
	} while (!rc && dead);
	return rc;
}

/*
 * Reap expired leases. A commit has the row of its lease locked, which is skipped: that worker is
 * alive. This lease is never reaped, however long the transaction takes: it has locked its own row,
 * and would assign shards to a lease that is gone.
 */
static int expire(struct sql *s, int64_t me, struct fw_err *err)
{
	return drop_each(s, "SELECT id FROM workers WHERE until_ms < {now} AND id <> ?1 ORDER BY id LIMIT 1 {skip}",
		SQL_INT(me), err);
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

static int free_row(void *ctx, const struct sql_row *row)
{
	struct sql_rows *take = ctx;

	sql_rows_add(take, SQL_V(SQL_INT(sql_int(row, 0)), SQL_INT(*(const int64_t *)take->ctx)));
	return 0;
}

/* Take free shards, as many as store_take() allows. */
static int take(struct sql *s, struct store_lease *l, struct fw_err *err)
{
	struct sql_rows take = {.s = s,
		.err = err,
		.ctx = &l->id,
		.text = {
			"UPDATE shards AS t SET worker = v.lease {from} WHERE t.shard = v.number", "number:i lease:i"}};
	struct taking t = {.lease = l};

	take.rc = sql_ask(s, "SELECT count(*), {sum CASE WHEN idle <> 0 AND id <> ?1 THEN 1 ELSE 0 END}, (SELECT"
		" count(*) FROM shards WHERE worker = ?1), (SELECT count(*) FROM shards WHERE worker IS NULL) FROM"
		" workers", SQL_V(SQL_INT(l->id)), living_row, &t, err);
	if (!take.rc && t.n)
		take.rc = sql_ask(s, "SELECT shard FROM shards WHERE worker IS NULL ORDER BY shard LIMIT ?1 {skip}",
			SQL_V(SQL_INT(t.n)), free_row, &take, err);
	return sql_rows_end(&take);
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
	l->shard_n = 0;
	return sql_ask(s, "SELECT shard, version, quiet_since_ms FROM shards WHERE worker = ?1 ORDER BY shard",
		SQL_V(SQL_INT(l->id)), held_row, l, err);
}

/* The id is reserved in the same transaction: workers that join wait briefly for each other. */
static int join(struct sql *s, const char *worker, struct store_lease *l, int64_t *id, struct fw_err *err)
{
	int rc = sql_numbers_take(s, "lease_id", 1, id, err);

	return rc ? rc : sql_do(s,
		"INSERT INTO workers (id, name, lease_ms, until_ms, idle) VALUES (?1, ?2, ?3, {now} + ?3, ?4)",
		SQL_V(SQL_INT(*id), SQL_TEXT(fw_str(worker)), SQL_INT(l->lease_ms), SQL_INT(l->idle)), err);
}

static int keep(struct sql *s, const struct store_lease *l, struct fw_err *err)
{
	int64_t changed = 0;
	int rc = sql_change(s, "UPDATE workers SET until_ms = {now} + ?2, lease_ms = ?2, idle = ?3 WHERE id = ?1",
		SQL_V(SQL_INT(l->id), SQL_INT(l->lease_ms), SQL_INT(l->idle)), &changed, err);

	return rc || changed ? rc : lost(s, err);
}

struct beating {
	const char *worker;
	struct store_lease *l;
	int64_t was;              /* its lease so far; 0: it joins */
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
	int rc;

	assert(worker && *worker);
	rc = sql_transaction(sql_of(st), beat, &b, err);

	if (rc)
		l->id = b.was;
	else
		l->safe_until_mono_ms = b.asked_mono_ms + l->lease_ms - MARGIN(l->lease_ms);
	return rc;
}

/* ---- release --------------------------------------------------------------------------------- */

static int shards_give(struct sql *s, const struct store_give *g, struct fw_err *err)
{
	struct sql_rows r = SQL_ROWS(s, err, "UPDATE shards AS t SET worker = NULL, quiet_since_ms = v.quiet {from}"
		" WHERE t.shard = v.number AND t.worker = v.lease", "number:i lease:i quiet:i");

	for (size_t i = 0; i < g->n; i++)
		sql_rows_add(&r, SQL_V(SQL_INT(g->shard[i].shard), SQL_INT(g->lease_id),
			SQL_INT(g->shard[i].quiet_since_ms)));
	return sql_rows_end(&r);
}

/* Count a worker death against the feed whose visit killed it. */
static int crashed(struct sql *s, int64_t feed_id, struct fw_err *err)
{
	bool changed[STORE_SHARDS] = {false};
	int64_t place;
	int rc = sql_feed_place(s, feed_id, true, &place, err);

	_Static_assert(FW_FEED_ACTIVE == 0 && FW_FEED_QUARANTINED == 3, "the statement has the numbers");
	if (rc == FW_ENOTFOUND) /* it was removed meanwhile */
		return 0;
	changed[rc ? 0 : place >> SQL_PLACE_BITS] = true;
	rc = rc ? rc : sql_do(s, "UPDATE schedule SET status = CASE WHEN status = 0 AND crash_n + 1 >= ?2 THEN 3 ELSE"
		" status END, crash_n = crash_n + 1 WHERE place = ?1", SQL_V(SQL_INT(place),
		SQL_INT(FW_STORE_CRASH_MAX)), err);
	return rc ? rc : sql_shards_changed(s, changed, err);
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
		rc = drop_each(s, "SELECT id FROM workers WHERE name = ?1 ORDER BY id LIMIT 1 {update}",
			SQL_TEXT(fw_str(g->worker)), err);
		if (!rc && g->crashed_feed_id)
			rc = crashed(s, g->crashed_feed_id, err);
	}
	return rc;
}

int sql_give(struct store *st, const struct store_give *g, struct fw_err *err)
{
	struct store_give copy = *g;

	assert(g->lease_id || g->worker); /* a lease, or a dead worker */
	return sql_transaction(sql_of(st), give, &copy, err);
}
