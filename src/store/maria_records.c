/* SPDX-License-Identifier: ISC */
/* Records: table records. */
#include "store/maria.h"

#define COLUMNS "kind, `key`, value, at_ms, until_ms"

struct work {
	const struct fw_record *r;
	struct fw_str kind, key, value;
	bool if_absent;
	int64_t now_ms, n;
};

/*
 * until_ms is looked at, so it is set last: one assignment sees what those before it have done. What is replaced always changes (a new
 * one has not run out when it is put), and no row counts as changed when all of it stays.
 */
static int record_in(struct maria *m, void *arg, struct fw_err *err)
{
	static const char put[] = "INSERT INTO records (" COLUMNS ") VALUES (?, ?, ?, ?, ?) ON DUPLICATE KEY UPDATE value = VALUES(value),"
		" at_ms = VALUES(at_ms), until_ms = VALUES(until_ms)";
	static const char put_if[] = "INSERT INTO records (" COLUMNS ") VALUES (?, ?, ?, ?, ?) ON DUPLICATE KEY UPDATE"
		" value = IF(until_ms <= VALUES(at_ms), VALUES(value), value), at_ms = IF(until_ms <= VALUES(at_ms), VALUES(at_ms), at_ms),"
		" until_ms = IF(until_ms <= VALUES(at_ms), VALUES(until_ms), until_ms); SELECT row_count()";
	struct work *w = arg;
	const struct fw_record *r = w->r;

	w->n = 1;
	if (w->if_absent)
		return mr_number(m, 0, &w->n, err, put_if, "sbbid", r->kind, r->key, r->value, r->at_ms, r->until_ms);
	mr_put(m, put, "sbbid", r->kind, r->key, r->value, r->at_ms, r->until_ms);
	return mr_flush(m, err);
}

int mr_record_put(struct fw_store *st, const struct fw_record *r, bool if_absent, bool *was, struct fw_err *err)
{
	struct work w = {.r = r, .if_absent = if_absent};
	int rc = mr_transact(mr_of(st), record_in, &w, err);

	*was = !rc && !w.n;
	return rc;
}

static struct fw_record record_read(const struct mr_res *r)
{
	return (struct fw_record){.kind = mr_str(r, 0), .key = mr_str(r, 1), .value = mr_str(r, 2), .at_ms = mr_int(r, 3),
		.until_ms = mr_date(r, 4)};
}

int mr_record_get(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_arena *a, struct fw_record *out,
	struct fw_err *err)
{
	struct maria *m = mr_of(st);
	struct mr_res r;
	int rc = mr_ask(m, &r, err, "SELECT " COLUMNS " FROM records WHERE kind = ? AND `key` = ?", "sb", kind, key);

	if (rc)
		return rc;
	if (!mr_row(&r))
		return fw_store_record_missing(m->name, kind, err);
	*out = record_read(&r);
	rc = fw_store_record_dup(a, out) ? 0 : mr_no_memory(m, err);
	mr_done(&r);
	return rc;
}

int mr_record_list(struct fw_store *st, const struct fw_record_query *q, fw_record_cb *cb, void *ctx, struct fw_err *err)
{
	int64_t limit = q->limit ? (int64_t)q->limit : INT64_MAX;
	struct maria *m = mr_of(st);
	struct mr_res r;
	int rc;

	if (q->kind.p)
		mr_put(m, "SELECT " COLUMNS " FROM records WHERE kind = ? AND `key` > ? ORDER BY `key` LIMIT ?", "sbi", q->kind, q->after_key, limit);
	else
		mr_put(m, "SELECT " COLUMNS " FROM records WHERE kind > ? OR (kind = ? AND `key` > ?) ORDER BY kind, `key` LIMIT ?", "ssbi",
			q->after_kind, q->after_kind, q->after_key, limit);
	rc = mr_stream(m, &r, err);
	while (!rc && mr_row(&r)) {
		struct fw_record record = record_read(&r);

		rc = cb(ctx, &record);
	}
	mr_done(&r);
	return rc;
}

static int record_out(struct maria *m, void *arg, struct fw_err *err)
{
	struct work *w = arg;

	return mr_number(m, 0, &w->n, err, "DELETE FROM records WHERE kind = ? AND `key` = ? AND value = coalesce(?, value); SELECT row_count()",
		"sbb", w->kind, w->key, w->value);
}

int mr_record_remove(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_str value, struct fw_err *err)
{
	struct work w = {.kind = kind, .key = key, .value = value};
	struct maria *m = mr_of(st);
	int rc = mr_transact(m, record_out, &w, err);

	return rc || w.n ? rc : fw_store_record_missing(m->name, kind, err);
}

static int records_prune(struct maria *m, void *arg, struct fw_err *err)
{
	struct work *w = arg;

	return mr_number(m, 0, &w->n, err, "DELETE FROM records WHERE until_ms <= ? ORDER BY until_ms LIMIT ?; SELECT row_count()", "ii",
		w->now_ms, MR_INT(FW_RECORD_STEP));
}

int mr_record_prune(struct fw_store *st, int64_t now_ms, int64_t *n, struct fw_err *err)
{
	struct work w = {.now_ms = now_ms};
	int rc = mr_transact(mr_of(st), records_prune, &w, err);

	*n = rc ? 0 : w.n;
	return rc;
}
