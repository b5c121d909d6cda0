/* SPDX-License-Identifier: ISC */
/* Records: small things of feedwheel's parts, in order of kind and key. */
#include "store/driver.h"
#include "store/sql/core.h"
#include "base/banned.h"

#define PAGE 200 /* rows of one answer, of 64 KiB each at most */
#define COLUMNS "kind, record_key, value, at_ms, until_ms"
#define INSERT "INSERT INTO records (" COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5)"

struct putting {
	const struct fw_record *r;
	bool if_absent, wake, *was;
};

static int put(struct sql *s, void *ctx, struct fw_err *err)
{
	const struct putting *p = ctx;
	const struct fw_record *r = p->r;
	bool if_absent = p->if_absent, *was = p->was;
	static const struct sql_text THERE = {
		"SELECT coalesce(until_ms, ?3) FROM records WHERE kind = ?1 AND record_key = ?2 {update}", NULL};
	static const struct sql_text PUT = {INSERT " {upsert kind, record_key} value = {new value},"
						   " at_ms = {new at_ms}, until_ms = {new until_ms}",
		NULL};
	static const struct sql_text FIRST = {INSERT " {keep kind, record_key|records.kind}", NULL};
	const struct sql_value v[5] = {SQL_TEXT(r->kind), SQL_BLOB(r->key),
		SQL_BLOB(r->value.p ? r->value : FW_STR("")), SQL_INT(r->at_ms), SQL_DATE(r->until_ms)};
	int64_t until_ms = INT64_MIN, changed = 1;
	int rc = 0;

	if (if_absent)
		rc = sql_number(
			s, &THERE, (struct sql_value[]){v[0], v[1], SQL_INT(INT64_MAX)}, 3, INT64_MIN, &until_ms, err);
	*was = until_ms > r->at_ms;
	if (rc || *was)
		return rc;
	if (if_absent && until_ms == INT64_MIN) { /* of many that find none, one puts it */
		rc = sql_ask(s, &FIRST, v, 5, NULL, NULL, &changed, err);
		*was = !rc && !changed;
	} else {
		rc = sql_do(s, &PUT, v, 5, err);
	}
	return rc || *was || !p->wake ? rc : sql_changed(s, err);
}

int sql_record_put(
	struct store *st, const struct fw_record *r, bool if_absent, bool wake, bool *was, struct fw_err *err)
{
	return sql_transaction(sql_of(st), put, &(struct putting){r, if_absent, wake, was}, err);
}

struct listing {
	fw_record_cb *cb;
	void *ctx;
	size_t left, seen;
	char kind[FW_RECORD_KIND_MAX], key[FW_RECORD_KEY_MAX]; /* of the last one */
	struct fw_str last_kind, last_key;
};

/* Longer ones are nobody's records. */
static struct fw_str kept(char *to, size_t cap, struct fw_str s)
{
	size_t n = FW_MIN(s.len, cap);

	if (n)
		memcpy(to, s.p, n);
	return (struct fw_str){to, n};
}

static int record_row(void *ctx, const struct sql_row *row)
{
	struct listing *l = ctx;
	struct fw_record r = {.kind = sql_str(row, 0),
		.key = sql_str(row, 1),
		.value = sql_str(row, 2),
		.at_ms = sql_int(row, 3),
		.until_ms = sql_date(row, 4)};

	l->seen++;
	l->left--;
	l->last_key = kept(l->key, sizeof(l->key), r.key);
	return l->cb(l->ctx, &r);
}

static int missing(struct sql *s, struct fw_str kind, struct fw_err *err)
{
	return fw_store_record_missing(s->name, kind, err);
}

/* Those of one kind, behind the last key, as many as are left. */
static int list_kind(struct sql *s, struct listing *l, struct fw_err *err)
{
	static const struct sql_text OF_KIND = {
		"SELECT " COLUMNS " FROM records WHERE kind = ?1 AND record_key > ?2 ORDER BY record_key LIMIT ?3",
		NULL};
	char after[FW_RECORD_KEY_MAX]; /* rows replace the last key while the statement still has this value */
	size_t asked;
	int rc;

	do {
		const struct sql_value v[3] = {SQL_TEXT(l->last_kind), SQL_BLOB(kept(after, sizeof(after), l->last_key)),
			SQL_INT(FW_MIN(l->left, (size_t)PAGE))};

		asked = (size_t)v[2].i;
		l->seen = 0;
		rc = sql_ask(s, &OF_KIND, v, 3, record_row, l, NULL, err);
	} while (!rc && l->seen == asked && l->left);
	return rc;
}

static int kind_row(void *ctx, const struct sql_row *row)
{
	struct listing *l = ctx;

	l->seen++;
	l->last_kind = kept(l->kind, sizeof(l->kind), sql_str(row, 0));
	l->last_key = FW_STR("");
	return 0;
}

/* Kind by kind: so the key's index finds the beginning of a page on each engine. */
static int list_all(struct sql *s, struct listing *l, struct fw_err *err)
{
	static const struct sql_text NEXT = {
		"SELECT kind FROM records WHERE kind > ?1 ORDER BY kind LIMIT 1", NULL};
	char after[FW_RECORD_KIND_MAX];
	int rc = l->last_kind.len ? list_kind(s, l, err) : 0;

	while (!rc && l->left) {
		const struct sql_value v = SQL_TEXT(kept(after, sizeof(after), l->last_kind));

		l->seen = 0;
		rc = sql_ask(s, &NEXT, &v, 1, kind_row, l, NULL, err);
		if (rc || !l->seen)
			break;
		rc = list_kind(s, l, err);
	}
	return rc;
}

int sql_record_list(
	struct store *st, const struct store_record_query *q, fw_record_cb *cb, void *ctx, struct fw_err *err)
{
	static const struct sql_text ONE = {
		"SELECT " COLUMNS " FROM records WHERE kind = ?1 AND record_key = ?2", NULL};
	struct sql *s = sql_of(st);
	struct listing l = {.cb = cb, .ctx = ctx, .left = q->q.limit ? q->q.limit : SIZE_MAX};
	struct fw_str kind = q->q.kind.p ? q->q.kind : q->q.after_kind;
	int rc;

	if (q->key.p) {
		rc = sql_ask(s, &ONE, (struct sql_value[]){SQL_TEXT(q->q.kind), SQL_BLOB(q->key)}, 2, record_row, &l,
			NULL, err);
		return rc || l.seen ? rc : missing(s, q->q.kind, err);
	}
	l.last_kind = kept(l.kind, sizeof(l.kind), kind);
	l.last_key = kept(l.key, sizeof(l.key), q->q.after_key);
	return q->q.kind.p ? list_kind(s, &l, err) : list_all(s, &l, err);
}

int sql_record_remove(struct store *st, struct fw_str kind, struct fw_str key, struct fw_str value, struct fw_err *err)
{
	static const struct sql_text ONE = {"DELETE FROM records WHERE kind = ?1 AND record_key = ?2", NULL};
	static const struct sql_text THIS = {
		"DELETE FROM records WHERE kind = ?1 AND record_key = ?2 AND value = ?3", NULL};
	struct sql *s = sql_of(st);
	int64_t changed = 0;
	int rc = s->dialect->begin(s, err);

	if (rc)
		return rc;
	rc = sql_ask(s, value.p ? &THIS : &ONE, (struct sql_value[]){SQL_TEXT(kind), SQL_BLOB(key), SQL_BLOB(value)},
		value.p ? 3 : 2, NULL, NULL, &changed, err);
	return sql_end(s, rc || changed ? rc : missing(s, kind, err), err);
}
