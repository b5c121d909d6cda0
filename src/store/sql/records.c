/* SPDX-License-Identifier: ISC */
/* Records: a small key-value table for feedwheel's parts, in order of kind and key. */
#include "store/driver.h"
#include "store/sql/core.h"

#define PAGE 200 /* rows per result, of at most 64 KiB each */
#define COLUMNS "kind, record_key, value, at_ms, until_ms"
#define INSERT "INSERT INTO records (" COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5)"

struct record_putting {
	const struct fw_record *r;
	bool if_absent, wake, *was;
};

/*
 * Does the kind have a later key, as long as this one? Whoever puts such records, here and from the
 * inbox, has the counter locked from this question on until the transaction ends.
 */
static int record_is_passed(struct sql *s, const struct fw_record *r, bool *passed, struct fw_err *err)
{
	int64_t changes, later = 0;
	int rc = sql_query_int(s, "SELECT value FROM meta WHERE name = 'changes' {update}", SQL_NONE, 0, &changes, err);

	rc = rc ? rc :
		  sql_query_int(s,
			  "SELECT count(*) FROM (SELECT 1 AS one FROM records WHERE kind = ?1 AND record_key > ?2"
			  " AND {octets record_key} = {octets ?2} LIMIT 1) x",
			  SQL_V(SQL_TEXT(r->kind), SQL_BLOB(r->key)), 0, &later, err);
	*passed = later > 0;
	return rc;
}

static int record_put_in(struct sql *s, void *ctx, struct fw_err *err)
{
	const struct record_putting *p = ctx;
	const struct fw_record *r = p->r;
	bool if_absent = p->if_absent, *was = p->was;
	const struct sql_value v[5] = {SQL_TEXT(r->kind), SQL_BLOB(r->key),
		SQL_BLOB(r->value.p ? r->value : FW_STR("")), SQL_INT(r->at_ms), SQL_DATE(r->until_ms)};
	int64_t until_ms = INT64_MIN, changed = 1;
	int rc = 0;

	if (if_absent && p->wake) {
		rc = record_is_passed(s, r, was, err);
		if (rc || *was)
			return rc;
	}
	if (if_absent)
		rc = sql_query_int(s,
			"SELECT coalesce(until_ms, ?3) FROM records WHERE kind = ?1 AND record_key = ?2 {update}",
			SQL_V(v[0], v[1], SQL_INT(INT64_MAX)), INT64_MIN, &until_ms, err);
	*was = until_ms > r->at_ms;
	if (rc || *was)
		return rc;
	if (if_absent && until_ms == INT64_MIN) { /* of concurrent callers one inserts it */
		rc = sql_exec_count(s, INSERT " {keep kind, record_key|records.kind}", v, 5, &changed, err);
		*was = !rc && !changed;
	} else {
		rc = sql_exec(s,
			INSERT " {upsert kind, record_key} value = {new value}, at_ms = {new at_ms}, until_ms ="
			       " {new until_ms}",
			v, 5, err);
	}
	if (!rc && !*was && store_is_order(r->kind))
		rc = sql_orders_raise(s, err);
	return rc || *was || !p->wake ? rc : sql_changes_raise(s, err);
}

int sql_record_put(
	struct store *st, const struct fw_record *r, bool if_absent, bool wake, bool *was, struct fw_err *err)
{
	return sql_transaction(sql_of(st), record_put_in, &(struct record_putting){r, if_absent, wake, was}, err);
}

struct record_listing {
	fw_record_cb *cb;
	void *ctx;
	size_t left, seen;
	char kind[FW_RECORD_KIND_MAX], key[FW_RECORD_KEY_MAX]; /* of the last record */
	struct fw_str last_kind, last_key;
};

/* Copy a name. The front allows no longer ones. */
static struct fw_str record_name_copy(char *to, size_t cap, struct fw_str s)
{
	size_t n = FW_MIN(s.len, cap);

	if (n)
		memcpy(to, s.p, n);
	return (struct fw_str){to, n};
}

static int record_list_row(void *ctx, const struct sql_row *row)
{
	struct record_listing *l = ctx;
	struct fw_record r = {.kind = sql_str(row, 0),
		.key = sql_str(row, 1),
		.value = sql_str(row, 2),
		.at_ms = sql_int(row, 3),
		.until_ms = sql_date(row, 4)};

	l->seen++;
	l->left--;
	l->last_kind = record_name_copy(l->kind, sizeof(l->kind), r.kind);
	l->last_key = record_name_copy(l->key, sizeof(l->key), r.key);
	return l->cb(l->ctx, &r);
}

static int record_not_found(struct sql *s, struct fw_str kind, struct fw_err *err)
{
	return fw_store_record_missing(s->name, kind, err);
}

int sql_record_list(
	struct store *st, const struct store_record_query *q, fw_record_cb *cb, void *ctx, struct fw_err *err)
{
	struct sql *s = sql_of(st);
	struct record_listing l = {.cb = cb,
		.ctx = ctx,
		.left = q->q.limit ? q->q.limit : SIZE_MAX,
		.last_kind = q->q.kind.p ? q->q.kind : q->q.after_kind,
		.last_key = q->q.after_key};
	char kind[FW_RECORD_KIND_MAX], key[FW_RECORD_KEY_MAX]; /* copies for the statement: its rows overwrite l's */
	size_t asked;
	int rc;

	if (q->key.p) {
		rc = sql_query(s, "SELECT " COLUMNS " FROM records WHERE kind = ?1 AND record_key = ?2",
			SQL_V(SQL_TEXT(q->q.kind), SQL_BLOB(q->key)), record_list_row, &l, err);
		return rc || l.seen ? rc : record_not_found(s, q->q.kind, err);
	}
	do {
		asked = FW_MIN(l.left, (size_t)PAGE);
		l.seen = 0;
		rc = sql_query(s,
			q->q.kind.p ? "SELECT " COLUMNS
				      " FROM records WHERE kind = ?1 AND record_key > ?2 ORDER BY record_key LIMIT ?3" :
				      "SELECT " COLUMNS
				      " FROM records WHERE {behind kind|record_key} ORDER BY kind, record_key LIMIT ?3",
			SQL_V(SQL_TEXT(record_name_copy(kind, sizeof(kind), l.last_kind)),
				SQL_BLOB(record_name_copy(key, sizeof(key), l.last_key)), SQL_INT(asked)),
			record_list_row, &l, err);
	} while (!rc && l.seen == asked && l.left);
	return rc;
}

int sql_record_remove(struct store *st, struct fw_str kind, struct fw_str key, struct fw_str value, struct fw_err *err)
{
	struct sql *s = sql_of(st);
	int64_t changed = 0;
	int rc = s->dialect->begin(s, err);

	if (rc)
		return rc;
	rc = sql_exec_count(s,
		value.p ? "DELETE FROM records WHERE kind = ?1 AND record_key = ?2 AND value = ?3" :
			  "DELETE FROM records WHERE kind = ?1 AND record_key = ?2",
		(struct sql_value[]){SQL_TEXT(kind), SQL_BLOB(key), SQL_BLOB(value)}, value.p ? 3 : 2, &changed, err);
	if (!rc && changed && store_is_order(kind))
		rc = sql_orders_raise(s, err);
	return sql_end(s, rc || changed ? rc : record_not_found(s, kind, err), err);
}
