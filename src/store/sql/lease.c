/* SPDX-License-Identifier: ISC */
/* Leases and the ownership of shards. driver.h has the rules. */
#include <assert.h>

#include "base/clock.h"
#include "store/driver.h"
#include "store/sql/core.h"

/*
 * How much earlier than the end of its lease a worker stops sending requests: a tenth, for clock
 * drift and for requests that are on their way out.
 */
#define LEASE_MARGIN(lease_ms) ((lease_ms) / 10)

static int lease_lost(struct sql *s, struct fw_err *err)
{
	return fw_err_set(
		err, FW_ESTALE, "%s: the lease is over: other workers own its shards (the worker joins anew)", s->name);
}

/* End a lease and free its shards. Requests may have been sent to their hosts until now. */
static int lease_drop(struct sql *s, int64_t lease_id, struct fw_err *err)
{
	struct sql_value id = SQL_INT(lease_id);
	int rc = sql_exec(s, "UPDATE shards SET worker = NULL, quiet_since_ms = {now} WHERE worker = ?1", &id, 1, err);

	return rc ? rc : sql_exec(s, "DELETE FROM workers WHERE id = ?1", &id, 1, err);
}

/*
 * If the store's clock was set back, a dead worker's lease would last longer by that much: cut each
 * lease to its length from now. Live workers renew theirs. A row that a commit has locked is
 * skipped, as below. The LIMIT keeps MySQL from reading the table that it updates.
 */
static int leases_shorten(struct sql *s, struct fw_err *err)
{
	return sql_exec(s,
		"UPDATE workers SET until_ms = {now} + lease_ms WHERE id IN (SELECT x.id FROM (SELECT id FROM"
		" workers WHERE until_ms > {now} + lease_ms ORDER BY id LIMIT 1000 {skip}) x)",
		SQL_NONE, err);
}

/* End the leases that a statement finds, one by one: they are few. */
static int leases_drop(struct sql *s, const char *text, struct sql_value v, struct fw_err *err)
{
	int64_t dead;
	int rc;

	do {
		rc = sql_query_int(s, text, &v, 1, 0, &dead, err);
		if (!rc && dead)
			rc = lease_drop(s, dead, err);
	} while (!rc && dead);
	return rc;
}

/*
 * Reap expired leases. A commit has the row of its lease locked, which is skipped: that worker is
 * alive. This lease is never reaped, however long the transaction takes: it has locked its own row,
 * and would assign shards to a lease that is gone.
 */
static int leases_reap(struct sql *s, int64_t me, struct fw_err *err)
{
	return leases_drop(s, "SELECT id FROM workers WHERE until_ms < {now} AND id <> ?1 ORDER BY id LIMIT 1 {skip}",
		SQL_INT(me), err);
}

struct shard_taking {
	struct store_lease *lease;
	size_t n;
};

static int lease_living_row(void *ctx, const struct sql_row *row)
{
	struct shard_taking *t = ctx;
	struct store_lease *l = t->lease;

	l->living = (uint32_t)FW_MAX(sql_int(row, 0), 1);
	l->idle_n = (uint32_t)sql_int(row, 1);
	t->n = store_take_count(l, (size_t)sql_int(row, 2), (size_t)sql_int(row, 3));
	return 0;
}

static int shard_free_row(void *ctx, const struct sql_row *row)
{
	struct sql_rows *shards_take = ctx;

	sql_rows_add(shards_take, SQL_V(SQL_INT(sql_int(row, 0)), SQL_INT(*(const int64_t *)shards_take->ctx)));
	return 0;
}

/* Take free shards, as many as store_take_count() allows. */
static int shards_take(struct sql *s, struct store_lease *l, struct fw_err *err)
{
	struct sql_rows shards_take = {.s = s,
		.err = err,
		.ctx = &l->id,
		.text = {
			"UPDATE shards AS t SET worker = v.lease {from} WHERE t.shard = v.number", "number:i lease:i"}};
	struct shard_taking t = {.lease = l};

	shards_take.rc = sql_query(s,
		"SELECT count(*), {sum CASE WHEN idle <> 0 AND id <> ?1 THEN 1 ELSE 0 END}, (SELECT"
		" count(*) FROM shards WHERE worker = ?1), (SELECT count(*) FROM shards WHERE worker IS NULL) FROM"
		" workers",
		SQL_V(SQL_INT(l->id)), lease_living_row, &t, err);
	if (!shards_take.rc && t.n)
		shards_take.rc = sql_query(s,
			"SELECT shard FROM shards WHERE worker IS NULL ORDER BY shard LIMIT ?1 {skip}",
			SQL_V(SQL_INT(t.n)), shard_free_row, &shards_take, err);
	return sql_rows_end(&shards_take);
}

static int shard_held_row(void *ctx, const struct sql_row *row)
{
	struct store_lease *l = ctx;

	if (l->shard_n < STORE_SHARDS)
		l->shard[l->shard_n++] = (struct store_shard){(int)sql_int(row, 0), sql_int(row, 1), sql_int(row, 2)};
	return 0;
}

static int shards_read_owned(struct sql *s, struct store_lease *l, struct fw_err *err)
{
	l->shard_n = 0;
	return sql_query(s, "SELECT shard, version, quiet_since_ms FROM shards WHERE worker = ?1 ORDER BY shard",
		SQL_V(SQL_INT(l->id)), shard_held_row, l, err);
}

/* The id is reserved in the same transaction: workers that join wait briefly for each other. */
static int lease_join(struct sql *s, const char *worker, struct store_lease *l, int64_t *id, struct fw_err *err)
{
	int rc = sql_ids_reserve(s, "lease_id", 1, id, err);

	return rc ?
		rc :
		sql_exec(s,
			"INSERT INTO workers (id, name, lease_ms, until_ms, idle) VALUES (?1, ?2, ?3, {now} + ?3, ?4)",
			SQL_V(SQL_INT(*id), SQL_TEXT(fw_str(worker)), SQL_INT(l->lease_ms), SQL_INT(l->idle)), err);
}

static int lease_renew(struct sql *s, const struct store_lease *l, struct fw_err *err)
{
	int64_t changed = 0;
	int rc = sql_exec_count(s, "UPDATE workers SET until_ms = {now} + ?2, lease_ms = ?2, idle = ?3 WHERE id = ?1",
		SQL_V(SQL_INT(l->id), SQL_INT(l->lease_ms), SQL_INT(l->idle)), &changed, err);

	return rc || changed ? rc : lease_lost(s, err);
}

struct lease_renewing {
	const char *worker;
	struct store_lease *l;
	int64_t was; /* its lease so far; 0: it joins */
	int64_t sent_mono_ms;
};

static int lease_heartbeat(struct sql *s, void *ctx, struct fw_err *err)
{
	struct lease_renewing *b = ctx;
	struct store_lease *l = b->l;
	int rc;

	b->sent_mono_ms = fw_mono_ms();
	rc = b->was ? lease_renew(s, l, err) : lease_join(s, b->worker, l, &l->id, err);
	rc = rc ? rc : leases_shorten(s, err);
	rc = rc || l->late ? rc : leases_reap(s, l->id, err);
	rc = rc ? rc : shards_take(s, l, err);
	return rc ? rc : shards_read_owned(s, l, err);
}

int sql_heartbeat(struct store *st, const char *worker, struct store_lease *l, struct fw_err *err)
{
	struct lease_renewing b = {worker, l, l->id, 0};
	int rc;

	assert(worker && *worker);
	rc = sql_transaction(sql_of(st), lease_heartbeat, &b, err);

	if (rc)
		l->id = b.was;
	else
		l->safe_until_mono_ms = b.sent_mono_ms + l->lease_ms - LEASE_MARGIN(l->lease_ms);
	return rc;
}

/* ---- release --------------------------------------------------------------------------------- */

static int shards_release(struct sql *s, const struct store_release *g, struct fw_err *err)
{
	struct sql_rows r = SQL_ROWS(s, err,
		"UPDATE shards AS t SET worker = NULL, quiet_since_ms = v.quiet {from}"
		" WHERE t.shard = v.number AND t.worker = v.lease",
		"number:i lease:i quiet:i");

	for (size_t i = 0; i < g->n; i++)
		sql_rows_add(&r,
			SQL_V(SQL_INT(g->shard[i].shard), SQL_INT(g->lease_id), SQL_INT(g->shard[i].quiet_since_ms)));
	return sql_rows_end(&r);
}

/* Count a worker death against the feed whose visit killed it. */
static int feed_crash_add(struct sql *s, int64_t feed_id, struct fw_err *err)
{
	bool changed[STORE_SHARDS] = {false};
	int64_t position;
	int rc = sql_feed_position(s, feed_id, true, &position, err);

	_Static_assert(FW_FEED_ACTIVE == 0 && FW_FEED_QUARANTINED == 3, "the statement has the numbers");
	if (rc == FW_ENOTFOUND) /* it was removed meanwhile */
		return 0;
	changed[rc ? 0 : position >> SQL_POSITION_BITS] = true;
	rc = rc ? rc :
		  sql_exec(s,
			  "UPDATE schedule SET status = CASE WHEN status = 0 AND crash_n + 1 >= ?2 THEN 3 ELSE"
			  " status END, crash_n = crash_n + 1 WHERE position = ?1",
			  SQL_V(SQL_INT(position), SQL_INT(FW_STORE_CRASH_MAX)), err);
	return rc ? rc : sql_shards_changed(s, changed, err);
}

static int lease_release(struct sql *s, void *ctx, struct fw_err *err)
{
	const struct store_release *g = ctx;
	int rc;

	if (g->lease_id) {
		rc = shards_release(s, g, err);
		if (!rc && g->leave)
			rc = lease_drop(s, g->lease_id, err);
	} else {
		rc = leases_drop(s, "SELECT id FROM workers WHERE name = ?1 ORDER BY id LIMIT 1 {update}",
			SQL_TEXT(fw_str(g->worker)), err);
		if (!rc && g->crashed_feed_id)
			rc = feed_crash_add(s, g->crashed_feed_id, err);
	}
	return rc;
}

int sql_release(struct store *st, const struct store_release *g, struct fw_err *err)
{
	struct store_release copy = *g;

	assert(g->lease_id || g->worker); /* a lease, or a dead worker */
	return sql_transaction(sql_of(st), lease_release, &copy, err);
}
