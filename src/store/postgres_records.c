/* SPDX-License-Identifier: ISC */
/* Records: table records. */
#include "store/postgres.h"

#define COLUMNS "kind, key, value, at_ms, until_ms"

struct putting {
	const struct fw_record *r;
	bool if_absent, was;
};

static int record_in(struct pg *p, void *ctx, struct fw_err *err)
{
	struct putting *q = ctx;
	int rc;

	pg_begin(p);
	pg_str(p, q->r->kind);
	pg_str(p, q->r->key);
	pg_str(p, q->r->value);
	pg_int(p, q->r->at_ms);
	pg_date(p, q->r->until_ms);
	pg_int(p, q->if_absent);
	pg_send(p, PG_RECORD_PUT, "INSERT INTO records AS r (" COLUMNS ") VALUES ($1::text, $2::bytea, $3::bytea, $4::int8, $5::int8)"
		" ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, at_ms = excluded.at_ms, until_ms = excluded.until_ms"
		" WHERE $6::int8 = 0 OR r.until_ms <= excluded.at_ms RETURNING 1");
	rc = pg_commit_run(p, err);
	q->was = !rc && !PQntuples(p->res[1]);
	return rc;
}

int pg_record_put(struct fw_store *st, const struct fw_record *r, bool if_absent, bool *was, struct fw_err *err)
{
	struct putting q = {.r = r, .if_absent = if_absent};
	int rc = pg_txn(pg_of(st), record_in, &q, err);

	*was = q.was;
	return rc;
}

static struct fw_record record_read(const PGresult *r, int row)
{
	return (struct fw_record){.kind = pg_get_str(r, row, 0), .key = pg_get_str(r, row, 1), .value = pg_get_str(r, row, 2),
		.at_ms = pg_get_int(r, row, 3), .until_ms = pg_get_date(r, row, 4)};
}

int pg_record_get(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_arena *a, struct fw_record *out,
	struct fw_err *err)
{
	struct pg *p = pg_of(st);
	int rc;

	pg_str(p, kind);
	pg_str(p, key);
	pg_send(p, PG_RECORD_GET, "SELECT " COLUMNS " FROM records WHERE kind = $1::text AND key = $2::bytea");
	rc = pg_run(p, err);
	if (rc)
		return rc;
	if (!PQntuples(p->res[0]))
		return fw_store_record_missing(p->name, kind, err);
	*out = record_read(p->res[0], 0);
	return fw_store_record_dup(a, out) ? 0 : pg_no_memory(p, err);
}

struct listing {
	fw_record_cb *cb;
	void *ctx;
};

static int record_show(void *ctx, struct pg *p, const PGresult *r, int row)
{
	struct listing *l = ctx;
	struct fw_record record = record_read(r, row);

	(void)p;
	return l->cb(l->ctx, &record);
}

int pg_record_list(struct fw_store *st, const struct fw_record_query *q, fw_record_cb *cb, void *ctx, struct fw_err *err)
{
	struct listing l = {cb, ctx};
	struct pg *p = pg_of(st);

	pg_str(p, q->after_kind);
	pg_str(p, q->after_key);
	pg_int(p, q->limit ? (int64_t)q->limit : INT64_MAX);
	return pg_list(p, q->kind.p ? "SELECT " COLUMNS " FROM records WHERE kind = $1::text AND key > $2::bytea ORDER BY key LIMIT $3::int8" :
		"SELECT " COLUMNS " FROM records WHERE (kind, key) > ($1::text, $2::bytea) ORDER BY kind, key LIMIT $3::int8", 200, record_show,
		&l, err);
}

struct removal {
	struct fw_str kind, key, value;
	int64_t now_ms, n;
};

static int record_out(struct pg *p, void *ctx, struct fw_err *err)
{
	struct removal *q = ctx;
	int rc;

	pg_begin(p);
	pg_str(p, q->kind);
	pg_str(p, q->key);
	pg_str(p, q->value);
	pg_send(p, PG_ONCE, "DELETE FROM records WHERE kind = $1::text AND key = $2::bytea AND value = coalesce($3::bytea, value) RETURNING 1");
	rc = pg_commit_run(p, err);
	q->n = rc ? 0 : PQntuples(p->res[1]);
	return rc;
}

int pg_record_remove(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_str value, struct fw_err *err)
{
	struct removal q = {.kind = kind, .key = key, .value = value};
	struct pg *p = pg_of(st);
	int rc = pg_txn(p, record_out, &q, err);

	return rc || q.n ? rc : fw_store_record_missing(p->name, kind, err);
}

/* Two workers may prune at once: what one has locked the other leaves to it. */
static int records_prune(struct pg *p, void *ctx, struct fw_err *err)
{
	struct removal *q = ctx;
	int rc;

	pg_begin(p);
	pg_int(p, q->now_ms);
	pg_int(p, FW_RECORD_STEP);
	pg_send(p, PG_RECORD_PRUNE, "WITH gone AS (DELETE FROM records WHERE (kind, key) IN (SELECT kind, key FROM records"
		" WHERE until_ms <= $1::int8 ORDER BY until_ms LIMIT $2::int8 FOR UPDATE SKIP LOCKED) RETURNING 1) SELECT count(*) FROM gone");
	rc = pg_commit_run(p, err);
	q->n = rc ? 0 : pg_get_int(p->res[1], 0, 0);
	return rc;
}

int pg_record_prune(struct fw_store *st, int64_t now_ms, int64_t *n, struct fw_err *err)
{
	struct removal q = {.now_ms = now_ms};
	int rc = pg_txn(pg_of(st), records_prune, &q, err);

	*n = q.n;
	return rc;
}
