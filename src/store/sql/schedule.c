/* SPDX-License-Identifier: ISC */
#include <stdlib.h>

#include "base/clock.h"
#include "store/sql/schedule.h"
#include "base/banned.h"

/* How much earlier than the lease's end a worker stops: a tenth, for clocks that do not run alike and a request on its way out. */
#define MARGIN(lease_ms) ((lease_ms) / 10)

static const struct sql_text WORKERS = {"CREATE TABLE workers (id BIGINT PRIMARY KEY, name TEXT NOT NULL, lease_ms BIGINT NOT NULL, until_ms BIGINT NOT NULL)", NULL};
static const struct sql_text LEASE_IDS = {"CREATE TABLE lease_ids (one BIGINT PRIMARY KEY, last_id BIGINT NOT NULL)", NULL};
static const struct sql_text LEASE_ID_FIRST = {"INSERT INTO lease_ids VALUES (1, 0)", NULL};
static const struct sql_text SHARDS = {"CREATE TABLE shards (shard BIGINT PRIMARY KEY, worker BIGINT, version BIGINT NOT NULL, quiet_since_ms BIGINT NOT NULL)", NULL};
static const struct sql_text SHARDS_FILL = {"INSERT INTO shards (shard, worker, version, quiet_since_ms) WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < ?1 - 1) "
	"SELECT i, NULL, 0, 0 FROM c", NULL};
/* What each visit writes, and nothing else: a row stays narrow, and where it lies. */
static const struct sql_text SCHEDULE = {"CREATE TABLE schedule (shard BIGINT NOT NULL, feed_id BIGINT NOT NULL, due_at_ms BIGINT NOT NULL, host_id BIGINT NOT NULL, "
	"last_visit_ms BIGINT NOT NULL, last_ok_ms BIGINT NOT NULL, expect_us BIGINT NOT NULL, kind BIGINT NOT NULL, http_status BIGINT NOT NULL, "
	"fail_n BIGINT NOT NULL, why TEXT, PRIMARY KEY (shard, feed_id)) {clustered}{filled}", NULL};
static const struct sql_text HOSTS = {"CREATE TABLE schedule_hosts (shard BIGINT NOT NULL, id BIGINT NOT NULL, next_ok_ms BIGINT NOT NULL, cool_until_ms BIGINT NOT NULL, "
	"pace_ms BIGINT NOT NULL, PRIMARY KEY (shard, id)) {clustered}{filled}", NULL};

/* The end of a transaction: all of it, or nothing when something failed. */
static int end(struct sql *s, int rc, struct fw_err *err)
{
	if (!rc)
		return s->is->commit(s, err);
	s->is->rollback(s);
	return rc;
}

static int did(struct sql *s, const struct sql_text *t, struct fw_err *err)
{
	return sql_ask(s, t, NULL, 0, NULL, NULL, NULL, err);
}

int schedule_create(struct sql *s, struct fw_err *err)
{
	static const struct sql_text *const TABLE[] = {&WORKERS, &LEASE_IDS, &LEASE_ID_FIRST, &SHARDS, &SCHEDULE, &HOSTS};
	struct sql_value shards = SQL_INT(SCHEDULE_SHARDS);
	int rc = s->is->begin(s, err);

	if (rc)
		return rc;
	for (size_t i = 0; !rc && i < FW_N(TABLE); i++)
		rc = did(s, TABLE[i], err);
	if (!rc)
		rc = sql_ask(s, &SHARDS_FILL, &shards, 1, NULL, NULL, NULL, err);
	return end(s, rc, err);
}

/* ---- leases ------------------------------------------------------------------------------------------------------------------------------ */

/* The first numbers of the last row. */
struct ints {
	int64_t v[2];
	int n, seen;
};

static int int_row(void *ctx, const struct sql_row *row)
{
	struct ints *out = ctx;

	for (int i = 0; i < out->n; i++)
		out->v[i] = sql_int(row, i);
	out->seen++;
	return 0;
}

static int lost(struct fw_err *err)
{
	return FW_ERR(err, FW_ESTALE, "this worker's lease is over: somebody else has its feeds");
}

/* A lease and its shards: their hosts may have been asked until now. */
static int drop(struct sql *s, int64_t lease_id, struct fw_err *err)
{
	static const struct sql_text FREE = {"UPDATE shards SET worker = NULL, quiet_since_ms = {now} WHERE worker = ?1", NULL};
	static const struct sql_text GONE = {"DELETE FROM workers WHERE id = ?1", NULL};
	struct sql_value id = SQL_INT(lease_id);
	int rc = sql_ask(s, &FREE, &id, 1, NULL, NULL, NULL, err);

	return rc ? rc : sql_ask(s, &GONE, &id, 1, NULL, NULL, NULL, err);
}

/*
 * Others whose time is over. One that is just committing holds its row, and is passed over: it lives. So does this one, however long its
 * transaction takes: it holds its own row, and would leave shards to nobody if it took that away.
 */
static int expire(struct sql *s, const struct schedule_lease *l, struct fw_err *err)
{
	static const struct sql_text OVER = {"SELECT id FROM workers WHERE until_ms < {now} AND id <> ?1 ORDER BY id LIMIT 1 {skip}", NULL};
	struct sql_value me = SQL_INT(l->id);
	struct ints dead;
	int rc;

	do { /* one after the other: they are few */
		dead = (struct ints){.n = 1};
		rc = sql_ask(s, &OVER, &me, 1, int_row, &dead, NULL, err);
		if (!rc && dead.seen)
			rc = drop(s, dead.v[0], err);
	} while (!rc && dead.seen);
	return rc;
}

struct shard_list {
	int64_t me;
	struct sql_value v[2 * SCHEDULE_SHARDS];
	size_t n;
};

static int free_row(void *ctx, const struct sql_row *row)
{
	struct shard_list *l = ctx;

	l->v[2 * l->n] = SQL_INT(sql_int(row, 0));
	l->v[2 * l->n++ + 1] = SQL_INT(l->me);
	return 0;
}

/* What is free, until this worker has its part of what the living share. */
static int take(struct sql *s, struct schedule_lease *l, struct fw_err *err)
{
	static const struct sql_text LIVING = {"SELECT count(*), (SELECT count(*) FROM shards WHERE worker = ?1) FROM workers", NULL};
	static const struct sql_text FREE = {"SELECT shard FROM shards WHERE worker IS NULL ORDER BY shard LIMIT ?1 {skip}", NULL};
	static const struct sql_text TAKE = {"UPDATE shards AS t SET worker = v.worker {from} WHERE t.shard = v.shard", "shard:i worker:i"};
	struct shard_list list = {.me = l->id};
	struct sql_value v = SQL_INT(l->id);
	struct ints living = {.n = 2};
	int rc = sql_ask(s, &LIVING, &v, 1, int_row, &living, NULL, err);

	if (rc)
		return rc;
	l->living = (uint32_t)FW_MAX(living.v[0], 1);
	v = SQL_INT((int64_t)schedule_part(l) - living.v[1]);
	if (v.i <= 0)
		return 0;
	rc = sql_ask(s, &FREE, &v, 1, free_row, &list, NULL, err);
	return rc ? rc : sql_each(s, &TAKE, list.v, 2, list.n, NULL, err);
}

int schedule_join(struct sql *s, const char *name, int64_t lease_ms, struct schedule_lease *out, struct fw_err *err)
{
	static const struct sql_text NEXT = {"UPDATE lease_ids SET last_id = last_id + 1", NULL};
	static const struct sql_text LAST = {"SELECT last_id FROM lease_ids", NULL};
	static const struct sql_text NEW = {"INSERT INTO workers (id, name, lease_ms, until_ms) VALUES (?1, ?2, ?3, {now} + ?3)", NULL};
	int64_t asked_mono_ms = fw_mono_ms();
	struct ints id = {.n = 1};
	int rc = s->is->begin(s, err);

	if (rc)
		return rc;
	*out = (struct schedule_lease){.lease_ms = lease_ms, .safe_until_mono_ms = asked_mono_ms + lease_ms - MARGIN(lease_ms)};
	rc = did(s, &NEXT, err);
	if (!rc)
		rc = sql_ask(s, &LAST, NULL, 0, int_row, &id, NULL, err);
	out->id = id.v[0];
	if (!rc)
		rc = sql_ask(s, &NEW, (struct sql_value[]){SQL_INT(out->id), SQL_TEXT(fw_str(name)), SQL_INT(lease_ms)}, 3, NULL, NULL, NULL, err);
	if (!rc)
		rc = expire(s, out, err);
	if (!rc)
		rc = take(s, out, err);
	return end(s, rc, err);
}

int schedule_beat(struct sql *s, struct schedule_lease *l, struct fw_err *err)
{
	static const struct sql_text ALIVE = {"UPDATE workers SET until_ms = {now} + lease_ms WHERE id = ?1", NULL};
	int64_t asked_mono_ms = fw_mono_ms(), changed = 0;
	struct sql_value id = SQL_INT(l->id);
	int rc = s->is->begin(s, err);

	if (rc)
		return rc;
	rc = sql_ask(s, &ALIVE, &id, 1, NULL, NULL, &changed, err);
	if (!rc && !changed)
		rc = lost(err);
	if (!rc)
		rc = expire(s, l, err);
	if (!rc)
		rc = take(s, l, err);
	rc = end(s, rc, err);
	if (!rc)
		l->safe_until_mono_ms = asked_mono_ms + l->lease_ms - MARGIN(l->lease_ms);
	return rc;
}

struct mine {
	struct schedule_shard *out;
	size_t n;
};

static int mine_row(void *ctx, const struct sql_row *row)
{
	struct mine *m = ctx;

	if (m->n < SCHEDULE_SHARDS)
		m->out[m->n++] = (struct schedule_shard){(int)sql_int(row, 0), sql_int(row, 1), sql_int(row, 2)};
	return 0;
}

int schedule_mine(struct sql *s, const struct schedule_lease *l, struct schedule_shard *out, size_t *n, struct fw_err *err)
{
	static const struct sql_text MINE = {"SELECT shard, version, quiet_since_ms FROM shards WHERE worker = ?1 ORDER BY shard", NULL};
	struct mine m = {out, 0};
	struct sql_value id = SQL_INT(l->id);
	int rc = sql_ask(s, &MINE, &id, 1, mine_row, &m, NULL, err);

	*n = m.n;
	return rc;
}

int schedule_give(struct sql *s, const struct schedule_lease *l, const struct schedule_shard *shard, size_t n, struct fw_err *err)
{
	static const struct sql_text GIVE = {"UPDATE shards AS t SET worker = NULL, quiet_since_ms = v.quiet {from} WHERE t.shard = v.shard AND t.worker = v.worker",
		"shard:i worker:i quiet:i"};
	struct sql_value *v = calloc(n + 1, 3 * sizeof(*v));
	int rc;

	if (!v)
		return fw_no_memory(err);
	for (size_t i = 0; i < n; i++) {
		v[3 * i] = SQL_INT(shard[i].shard);
		v[3 * i + 1] = SQL_INT(l->id);
		v[3 * i + 2] = SQL_INT(shard[i].quiet_since_ms);
	}
	rc = s->is->begin(s, err);
	if (!rc)
		rc = end(s, sql_each(s, &GIVE, v, 3, n, NULL, err), err);
	free(v);
	return rc;
}

int schedule_leave(struct sql *s, const struct schedule_lease *l, struct fw_err *err)
{
	int rc = s->is->begin(s, err);

	return rc ? rc : end(s, drop(s, l->id, err), err);
}

/* ---- feeds ------------------------------------------------------------------------------------------------------------------------------- */

struct due_ctx {
	int (*fn)(void *ctx, const struct schedule_due *due);
	void *ctx;
};

static int due_row(void *ctx, const struct sql_row *row)
{
	struct due_ctx *d = ctx;
	struct schedule_due due = {sql_int(row, 0), sql_int(row, 1), sql_int(row, 2), sql_int(row, 3)};

	return d->fn(d->ctx, &due);
}

int schedule_look(struct sql *s, int shard, int64_t until_ms, int (*fn)(void *ctx, const struct schedule_due *due), void *ctx, struct fw_err *err)
{
	static const struct sql_text LOOK = {"SELECT feed_id, due_at_ms, host_id, expect_us FROM schedule WHERE shard = ?1 AND due_at_ms <= ?2", NULL};
	struct due_ctx d = {fn, ctx};

	return sql_ask(s, &LOOK, (struct sql_value[]){SQL_INT(shard), SQL_INT(until_ms)}, 2, due_row, &d, NULL, err);
}

struct host_ctx {
	int shard;
	int (*fn)(void *ctx, const struct schedule_host *host);
	void *ctx;
};

static int host_row(void *ctx, const struct sql_row *row)
{
	struct host_ctx *h = ctx;
	struct schedule_host host = {sql_int(row, 0), h->shard, sql_int(row, 1), sql_int(row, 2), sql_int(row, 3)};

	return h->fn(h->ctx, &host);
}

int schedule_hosts(struct sql *s, int shard, int (*fn)(void *ctx, const struct schedule_host *host), void *ctx, struct fw_err *err)
{
	static const struct sql_text LOOK = {"SELECT id, next_ok_ms, cool_until_ms, pace_ms FROM schedule_hosts WHERE shard = ?1", NULL};
	struct host_ctx h = {shard, fn, ctx};

	return sql_ask(s, &LOOK, (struct sql_value[]){SQL_INT(shard)}, 1, host_row, &h, NULL, err);
}

static int outcomes_put(struct sql *s, struct schedule_outcome *out, size_t n, struct fw_err *err)
{
	static const struct sql_text PUT = {"UPDATE schedule AS t SET due_at_ms = CASE WHEN t.due_at_ms = v.was THEN v.due ELSE t.due_at_ms END, "
		"last_visit_ms = v.visit, last_ok_ms = v.ok, expect_us = v.expect, kind = v.kind, http_status = v.status, fail_n = v.fails, why = v.why {from} "
		"WHERE t.shard = v.shard AND t.feed_id = v.feed {hits}", "shard:i feed:i was:i due:i visit:i ok:i expect:i kind:i status:i fails:i why:t"};
	struct sql_value *v = calloc(n + 1, 11 * sizeof(*v)), *at = v;
	bool *hit = calloc(n + 1, sizeof(*hit));
	int rc;

	for (size_t i = 0; v && i < n; i++, at += 11) {
		const struct schedule_state *f = &out[i].state;
		const struct sql_value row[11] = {SQL_INT(out[i].shard), SQL_INT(f->feed_id), SQL_INT(out[i].was_due_ms), SQL_INT(f->due_at_ms), SQL_INT(f->last_visit_ms),
			SQL_INT(f->last_ok_ms), SQL_INT(f->expect_us), SQL_INT(f->kind), SQL_INT(f->http_status), SQL_INT(f->fail_n), SQL_TEXT(f->why)};

		memcpy(at, row, sizeof(row));
	}
	rc = v && hit ? sql_each(s, &PUT, v, 11, n, hit, err) : fw_no_memory(err);
	for (size_t i = 0; !rc && i < n; i++)
		out[i].rc = hit[i] ? 0 : FW_ENOTFOUND;
	free(v);
	free(hit);
	return rc;
}

static int hosts_put(struct sql *s, const struct schedule_host *host, size_t n, struct fw_err *err)
{
	static const struct sql_text PUT = {"INSERT INTO schedule_hosts (shard, id, next_ok_ms, cool_until_ms, pace_ms) {values} "
		"ON CONFLICT (shard, id) DO UPDATE SET next_ok_ms = excluded.next_ok_ms, cool_until_ms = excluded.cool_until_ms, pace_ms = excluded.pace_ms",
		"shard:i id:i next:i cool:i pace:i"};
	struct sql_value *v = calloc(n + 1, 5 * sizeof(*v)), *at = v;
	int rc;

	for (size_t i = 0; v && i < n; i++, at += 5) {
		const struct sql_value row[5] = {SQL_INT(host[i].shard), SQL_INT(host[i].id), SQL_INT(host[i].next_ok_ms), SQL_INT(host[i].cool_until_ms), SQL_INT(host[i].pace_ms)};

		memcpy(at, row, sizeof(row));
	}
	rc = v ? sql_each(s, &PUT, v, 5, n, NULL, err) : fw_no_memory(err);
	free(v);
	return rc;
}

/*
 * The fence is a lock on the lease's row, not a change of it: beside a transaction that another program keeps open, versions of a row that each
 * commit changes pile up, and each commit looks at all of them. The beat changes it.
 */
int schedule_commit(struct sql *s, struct schedule_lease *l, struct schedule_outcome *out, size_t n, const struct schedule_host *host, size_t host_n,
	struct fw_err *err)
{
	static const struct sql_text FENCE = {"SELECT id FROM workers WHERE id = ?1 {share}", NULL};
	struct ints fence = {.n = 1};
	struct sql_value id = SQL_INT(l->id);
	int rc = s->is->begin(s, err);

	if (rc)
		return rc;
	rc = sql_ask(s, &FENCE, &id, 1, int_row, &fence, NULL, err);
	if (!rc && !fence.seen)
		rc = lost(err);
	if (!rc)
		rc = outcomes_put(s, out, n, err);
	if (!rc)
		rc = hosts_put(s, host, host_n, err);
	return end(s, rc, err);
}

/* ---- from outside ------------------------------------------------------------------------------------------------------------------------ */

/* Always the last in its transaction: shards stay locked as short as can be. */
static int changed_shard(struct sql *s, int shard, struct fw_err *err)
{
	static const struct sql_text CHANGED = {"UPDATE shards SET version = version + 1 WHERE shard = ?1", NULL};
	struct sql_value v = SQL_INT(shard);

	return sql_ask(s, &CHANGED, &v, 1, NULL, NULL, NULL, err);
}

int schedule_add(struct sql *s, const int *shard, const struct schedule_due *feed, size_t n, struct fw_err *err)
{
	static const struct sql_text ADD = {"INSERT INTO schedule (shard, feed_id, due_at_ms, host_id, expect_us, last_visit_ms, last_ok_ms, kind, http_status, fail_n) "
		"{values} ", "shard:i feed:i due:i host:i expect:i visit:i ok:i kind:i status:i fails:i"};
	struct sql_value *v = calloc(n + 1, 10 * sizeof(*v)), *at = v;
	bool changed[SCHEDULE_SHARDS] = {false};
	int rc = v ? s->is->begin(s, err) : fw_no_memory(err);

	if (rc) {
		free(v);
		return rc;
	}
	for (size_t i = 0; i < n; i++, at += 10) {
		const struct sql_value row[10] = {SQL_INT(shard[i]), SQL_INT(feed[i].feed_id), SQL_INT(feed[i].due_at_ms), SQL_INT(feed[i].host_id), SQL_INT(feed[i].expect_us),
			SQL_INT(0), SQL_INT(0), SQL_INT(0), SQL_INT(0), SQL_INT(0)};

		memcpy(at, row, sizeof(row));
		changed[shard[i]] = true;
	}
	rc = sql_each(s, &ADD, v, 10, n, NULL, err);
	for (int i = 0; !rc && i < SCHEDULE_SHARDS; i++) { /* in order, so that two who add cannot wait for each other */
		if (changed[i])
			rc = changed_shard(s, i, err);
	}
	free(v);
	return end(s, rc, err);
}

static int change(struct sql *s, const struct sql_text *t, const struct sql_value *v, size_t n, int shard, struct fw_err *err)
{
	int64_t changed = 0;
	int rc = s->is->begin(s, err);

	if (rc)
		return rc;
	rc = sql_ask(s, t, v, n, NULL, NULL, &changed, err);
	if (!rc && !changed)
		rc = FW_ERR(err, FW_ENOTFOUND, "no feed has the number %lld", (long long)v[1].i);
	if (!rc)
		rc = changed_shard(s, shard, err);
	return end(s, rc, err);
}

int schedule_remove(struct sql *s, int shard, int64_t feed_id, struct fw_err *err)
{
	static const struct sql_text REMOVE = {"DELETE FROM schedule WHERE shard = ?1 AND feed_id = ?2", NULL};

	return change(s, &REMOVE, (struct sql_value[]){SQL_INT(shard), SQL_INT(feed_id)}, 2, shard, err);
}

int schedule_ask_for(struct sql *s, int shard, int64_t feed_id, int64_t due_at_ms, struct fw_err *err)
{
	static const struct sql_text ASK = {"UPDATE schedule SET due_at_ms = ?3 WHERE shard = ?1 AND feed_id = ?2", NULL};

	return change(s, &ASK, (struct sql_value[]){SQL_INT(shard), SQL_INT(feed_id), SQL_INT(due_at_ms)}, 3, shard, err);
}
