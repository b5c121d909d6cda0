/* SPDX-License-Identifier: ISC */
/* Records: table records, in the order of its key. */
#include "store/sqlite.h"

#define COLUMNS "kind, key, value, at_ms, until_ms"

int sq_record_put(struct fw_store *st, const struct fw_record *r, bool if_absent, bool *was, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	int rc = sq_begin(s, err);

	if (rc)
		return rc;
	rc = sq_do(s, SQ_RECORD_PUT, "INSERT INTO records (" COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (kind, key) DO UPDATE SET"
		" value = excluded.value, at_ms = excluded.at_ms, until_ms = excluded.until_ms WHERE NOT ?6 OR until_ms <= excluded.at_ms", err,
		"sbbidi", r->kind, r->key, r->value, r->at_ms, r->until_ms, SQ_INT(if_absent));
	*was = !rc && !sqlite3_changes(s->db);
	return sq_end(s, rc, err);
}

static struct fw_record record_read(sqlite3_stmt *q)
{
	return (struct fw_record){.kind = sq_text(q, 0), .key = sq_text(q, 1), .value = sq_text(q, 2), .at_ms = sqlite3_column_int64(q, 3),
		.until_ms = sq_date(q, 4)};
}

int sq_record_get(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_arena *a, struct fw_record *out,
	struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	sqlite3_stmt *q = sq_ask(s, SQ_RECORD_GET, "SELECT " COLUMNS " FROM records WHERE kind = ?1 AND key = ?2", err, "sb", kind, key);
	int rc = q ? sq_row(s, q, err) : err->rc;
	bool kept;

	if (rc <= 0)
		return rc ? rc : fw_store_record_missing(s->path, kind, err);
	*out = record_read(q);
	kept = fw_store_record_dup(a, out);
	sqlite3_reset(q);
	return kept ? 0 : fw_err_set(err, FW_ENOMEM, "%s: out of memory", s->path);
}

int sq_record_list(struct fw_store *st, const struct fw_record_query *q, fw_record_cb *cb, void *ctx, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	enum sq_id id = q->kind.p ? SQ_RECORDS_OF : SQ_RECORDS;
	sqlite3_stmt *rows = sq_ask(s, id, q->kind.p ? "SELECT " COLUMNS " FROM records WHERE kind = ?1 AND key > ?2 ORDER BY key LIMIT ?3" :
		"SELECT " COLUMNS " FROM records WHERE (kind, key) > (?1, ?2) ORDER BY kind, key LIMIT ?3", err, "sbi", q->after_kind,
		q->after_key, SQ_INT(q->limit ? (int64_t)q->limit : -1));
	int rc = rows ? 1 : err->rc;

	while (rc == 1 && (rc = sq_row(s, rows, err)) == 1) {
		struct fw_record r = record_read(rows);
		int stop = cb(ctx, &r);

		if (stop) {
			sqlite3_reset(rows);
			return stop;
		}
	}
	return rc;
}

int sq_record_remove(struct fw_store *st, struct fw_str kind, struct fw_str key, struct fw_str value, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	int rc = sq_begin(s, err);

	if (rc)
		return rc;
	rc = sq_do(s, SQ_RECORD_DEL, "DELETE FROM records WHERE kind = ?1 AND key = ?2 AND value = coalesce(?3, value)", err, "sbb", kind,
		key, value);
	if (!rc && !sqlite3_changes(s->db))
		rc = fw_store_record_missing(s->path, kind, err);
	return sq_end(s, rc, err);
}

int sq_record_prune(struct fw_store *st, int64_t now_ms, int64_t *n, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	int64_t done = 0;
	sqlite3_stmt *any = sq_ask(s, SQ_RECORD_OLD, "SELECT 1 FROM records WHERE until_ms <= ?1 LIMIT 1", err, "i", now_ms);
	int rc = any ? sq_row(s, any, err) : err->rc;

	if (rc <= 0)
		return rc; /* mostly: nobody is kept from writing for that */
	sqlite3_reset(any);
	rc = sq_begin(s, err);
	if (rc)
		return rc;
	rc = sq_do(s, SQ_RECORD_PRUNE, "DELETE FROM records WHERE (kind, key) IN (SELECT kind, key FROM records WHERE until_ms <= ?1 LIMIT ?2)",
		err, "ii", now_ms, SQ_INT(FW_RECORD_STEP));
	done = rc ? 0 : sqlite3_changes64(s->db);
	rc = sq_end(s, rc, err);
	*n = rc ? 0 : done;
	return rc;
}
