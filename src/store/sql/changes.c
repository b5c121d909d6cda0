/* SPDX-License-Identifier: ISC */
/*
 * The log of changes, and the earlier versions of entries.
 *
 * A version goes to `revisions` within the server: its content does not travel.
 */
#include <assert.h>

#include "store/fields.h"
#include "store/sql/core.h"

#define PAGE 5000 /* changes per statement: some client libraries buffer a whole result */

/* ---- writing --------------------------------------------------------------------------------- */

size_t sql_changes_n(const struct sql_changes *log)
{
	return log->b.len / sizeof(struct fw_change);
}

void sql_changes_add(
	struct sql_changes *log, enum fw_change_kind kind, int64_t entry_id, int64_t feed_id, uint32_t revision)
{
	const struct fw_change c = {.kind = kind, .entry_id = entry_id, .feed_id = feed_id, .revision = revision};

	assert(kind != FW_CHANGE_NEW); /* an entry's own row says so */
	fw_buf_add(&log->b, &c, sizeof(c));
}

int sql_changes_put(struct sql *s, const struct sql_changes *log, int64_t last_id, int64_t at_ms, struct fw_err *err)
{
	struct sql_rows r = SQL_ROWS(s, err,
		"INSERT INTO changes (id, entry_id, feed_id, kind, revision, at_ms) {values}",
		"id:i entry_id:i feed_id:i kind:i revision:i at_ms:i");
	const struct fw_change *c = (const struct fw_change *)(const void *)log->b.p;
	size_t n = sql_changes_n(log);

	r.rc = log->b.rc ? fw_no_memory(err) : 0;
	for (size_t i = 0; i < n; i++)
		sql_rows_add(&r,
			SQL_V(SQL_INT(last_id - (int64_t)(n - i - 1)), SQL_INT(c[i].entry_id), SQL_INT(c[i].feed_id),
				SQL_INT(c[i].kind), SQL_INT(c[i].revision), SQL_INT(at_ms)));
	return sql_rows_end(&r);
}

int sql_changes_end(struct sql *s, struct sql_changes *log, int rc, struct fw_err *err)
{
	int64_t last_id = 0, now_ms = 0;

	if (!rc && log->b.rc)
		rc = fw_no_memory(err);
	if (!rc && sql_changes_n(log)) {
		rc = sql_query_int(s, "SELECT {now}", SQL_NONE, 0, &now_ms, err);
		rc = rc ? rc : sql_ids_reserve(s, "entry_id", (int64_t)sql_changes_n(log), &last_id, err);
		rc = rc ? rc : sql_changes_put(s, log, last_id, now_ms, err);
	}
	fw_buf_finish(&log->b);
	return rc;
}

int sql_changes_start(struct sql *s, int64_t change_id, struct fw_err *err)
{
	int64_t last;
	int rc = sql_query_int(s, "SELECT value FROM meta WHERE name = 'entry_id' {update}", SQL_NONE, 0, &last, err);

	return rc || change_id <= last ?
		rc :
		sql_exec(s, "UPDATE meta SET value = ?1 WHERE name IN ('entry_id', 'changes_pruned_id')",
			SQL_V(SQL_INT(change_id)), err);
}

static int revision_row(void *ctx, const struct sql_row *row)
{
	struct sql_revision *r = ctx;

	r[sql_int(row, 0)].revision = sql_int(row, 1);
	return 0;
}

#define LARGE "coalesce({octets e.content}, 0) + coalesce({octets e.summary}, 0) > v.most"
#define SMALL(column) "CASE WHEN " LARGE " THEN NULL ELSE " column " END"

static int revisions_copy(struct sql *s, const struct sql_revision *r, size_t n, struct fw_err *err)
{
	struct sql_rows put = SQL_ROWS(s, err,
		"INSERT INTO revisions (entry_id, omitted, revision, seen_ms, changed_ms, published_ms, updated_ms,"
		" content_type, guid, url, title, author, content_base, extra, summary, content) SELECT e.id,"
		" CASE WHEN " LARGE " THEN 1 ELSE 0 END, e.revision, e.seen_ms, e.changed_ms, e.published_ms,"
		" e.updated_ms, e.content_type, e.guid, e.url, e.title, e.author, e.content_base, e.extra, " SMALL(
			"e.summary") ", " SMALL("e.content") " FROM {rows} entries e WHERE e.id = v.spot",
		"spot:i most:i");
	struct sql_rows trim = SQL_ROWS(s, err,
		"DELETE FROM revisions {using} WHERE entry_id = v.spot AND revision <= v.lowest", "spot:i lowest:i");

	for (size_t i = 0; i < n; i++)
		sql_rows_add(&put, SQL_V(SQL_INT(r[i].entry_id), SQL_INT(s->revision_max_bytes)));
	trim.rc = sql_rows_end(&put);
	for (size_t i = 0; i < n; i++) {
		if (r[i].revision > s->revisions_max)
			sql_rows_add(&trim, SQL_V(SQL_INT(r[i].entry_id), SQL_INT(r[i].revision - s->revisions_max)));
	}
	return sql_rows_end(&trim);
}

int sql_revisions_keep(struct sql *s, struct sql_revision *r, size_t n, struct fw_err *err)
{
	struct sql_rows read = SQL_QUERY_ROWS(s, err, revision_row, r,
		"SELECT v.item, e.revision FROM {rows} entries e WHERE e.id = v.spot", "item:i spot:i");
	int rc;

	for (size_t i = 0; i < n; i++)
		sql_rows_add(&read, SQL_V(SQL_INT(i), SQL_INT(r[i].entry_id)));
	rc = sql_rows_end(&read);
	return rc || !s->revisions_max ? rc : revisions_copy(s, r, n, err);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* A store of an older schema, opened for reading: nobody added the tables yet. */
static int changes_absent(const struct sql *s, struct fw_err *err)
{
	return s->schema >= SQL_SCHEMA_LOG ? 0 :
					     fw_err_set(err, FW_EVERSION,
						     "%s: the store has no log of changes yet: the next command that"
						     " writes adds it, such as `feedwheel run`",
						     s->name);
}

struct sql_change_listing {
	const struct store_change_query *q;
	fw_change_cb *cb;
	void *ctx;
	int64_t last_id;
	size_t n;
};

static int change_list_row(void *ctx, const struct sql_row *row)
{
	struct sql_change_listing *l = ctx;
	const struct fw_change c = {.id = sql_int(row, 0),
		.entry_id = sql_int(row, 1),
		.feed_id = sql_int(row, 2),
		.kind = (enum fw_change_kind)sql_int(row, 3),
		.revision = (uint32_t)sql_int(row, 4),
		.at_ms = sql_int(row, 5)};

	l->last_id = c.id;
	l->n++;
	return l->cb(l->ctx, &c);
}

int sql_change_list(struct store *st, struct store_change_query *q, fw_change_cb *cb, void *ctx, struct fw_err *err)
{
	struct sql *s = sql_of(st);
	struct sql_change_listing l = {.q = q, .cb = cb, .ctx = ctx, .last_id = q->after_id};
	size_t left = q->limit ? q->limit : SIZE_MAX, most;
	int rc = changes_absent(s, err);

	rc = rc ? rc :
		  sql_query_int(s, "SELECT value FROM meta WHERE name = 'entry_id'", SQL_NONE, 0, &q->head_id, err);
	do {
		most = FW_MIN(left, (size_t)PAGE);
		l.n = 0;
		rc = rc ? rc :
			  sql_query(s,
				  "SELECT id, entry_id, feed_id, kind, revision, at_ms FROM changes WHERE id > ?1 AND"
				  " id <= ?2 AND (?3 = 0 OR feed_id = ?3) ORDER BY id LIMIT ?4",
				  SQL_V(SQL_INT(l.last_id), SQL_INT(q->head_id), SQL_INT(q->feed_id), SQL_INT(most)),
				  change_list_row, &l, err);
		left -= l.n;
	} while (!rc && l.n == most && left);
	return rc ? rc :
		    sql_query_int(s, "SELECT value FROM meta WHERE name = 'changes_pruned_id'", SQL_NONE, 0,
			    &q->pruned_id, err);
}

struct revision_listing {
	fw_revision_cb *cb;
	void *ctx;
};

static int revision_list_row(void *ctx, const struct sql_row *row)
{
	const struct revision_listing *l = ctx;
	struct fw_entry_row e = {.id = sql_int(row, 0)};

	sql_fields_set("entry", &e, row, 2);
	return l->cb(l->ctx, &e, sql_int(row, 1) != 0);
}

int sql_revision_list(struct store *st, int64_t entry_id, fw_revision_cb *cb, void *ctx, struct fw_err *err)
{
	struct sql *s = sql_of(st);
	int rc = changes_absent(s, err);

	return rc ? rc :
		    sql_query(s,
			    "SELECT entry_id, omitted, {fields entry} FROM revisions WHERE entry_id = ?1"
			    " ORDER BY revision",
			    SQL_V(SQL_INT(entry_id)), revision_list_row, &(struct revision_listing){cb, ctx}, err);
}
