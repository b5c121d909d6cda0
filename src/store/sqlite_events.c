/* SPDX-License-Identifier: ISC */
/* Pushed events: tables incoming and incoming_dead. Their ids rise with time, so rows are appended. */
#include "store/sqlite.h"

#define MANY 32
#define ROW "(?,?,?,?,?,?)"
#define ROWS4 ROW "," ROW "," ROW "," ROW
#define ROWS16 ROWS4 "," ROWS4 "," ROWS4 "," ROWS4
#define PUT(rows) "INSERT INTO incoming (id, property, property_section, property_id, remote_ip, stamp) VALUES " rows \
	" ON CONFLICT (id) DO NOTHING"

/* n rows by a statement that has room for so many: begin and end of a statement cost as much as a row. */
static int put(struct sqlite *s, sqlite3_stmt *q, const struct fw_event *e, size_t n, struct fw_err *err)
{
	int at = 0, rc = q ? SQLITE_OK : SQLITE_NOMEM;

	if (!q)
		return err->rc;
	for (size_t i = 0; i < n && rc == SQLITE_OK; i++, e++) {
		rc |= sqlite3_bind_int64(q, ++at, e->id);
		rc |= sqlite3_bind_text64(q, ++at, e->property.p, e->property.len, SQLITE_STATIC, SQLITE_UTF8);
		rc |= sqlite3_bind_int64(q, ++at, e->section);
		rc |= sqlite3_bind_int64(q, ++at, e->item);
		rc |= sqlite3_bind_text64(q, ++at, e->remote_ip.p, e->remote_ip.len, SQLITE_STATIC, SQLITE_UTF8);
		rc |= sqlite3_bind_int64(q, ++at, e->stamp_ms);
	}
	return rc == SQLITE_OK ? sq_row(s, q, err) : sq_error(s, "passing values", err);
}

int sq_event_put(struct fw_store *st, const struct fw_event *event, size_t n, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	int rc = sq_begin(s, err);

	if (rc)
		return rc;
	for (; n >= MANY && !rc; event += MANY, n -= MANY)
		rc = put(s, sq_stmt(s, SQ_EVENTS_PUT, PUT(ROWS16 "," ROWS16), err), event, MANY, err);
	for (; n && !rc; event++, n--)
		rc = put(s, sq_stmt(s, SQ_EVENT_PUT, PUT(ROW), err), event, 1, err);
	return sq_end(s, rc, err);
}

int sq_event_bury(struct fw_store *st, const struct fw_dead_event *event, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	int rc = sq_begin(s, err);

	if (rc)
		return rc;
	return sq_end(s, sq_do(s, SQ_EVENT_BURY, "INSERT INTO incoming_dead (id, row, reason, at_ms) VALUES (?1, ?2, ?3, ?4)"
		" ON CONFLICT (id) DO UPDATE SET row = ?2, reason = ?3, at_ms = ?4", err, "issi", event->id, event->row, event->reason, event->at_ms), err);
}

int sq_event_unbury(struct fw_store *st, const struct fw_dead_event *event, size_t n, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	int rc = sq_begin(s, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < n && !rc; i++)
		rc = sq_do(s, SQ_EVENT_UNBURY, "DELETE FROM incoming_dead WHERE id = ?1", err, "i", event[i].id);
	return sq_end(s, rc, err);
}

int sq_event_list(struct fw_store *st, int64_t after_id, size_t limit, fw_event_cb *cb, void *ctx, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	sqlite3_stmt *q = sq_ask(s, SQ_EVENTS, "SELECT id, property, property_section, property_id, remote_ip, stamp FROM incoming"
		" WHERE id > ?1 ORDER BY id LIMIT ?2", err, "ii", after_id, SQ_INT(limit ? (int64_t)limit : -1));
	int rc = q ? 1 : err->rc;

	while (rc == 1 && (rc = sq_row(s, q, err)) == 1) {
		struct fw_event e = {.id = sqlite3_column_int64(q, 0), .property = sq_text(q, 1), .section = sqlite3_column_int64(q, 2),
			.item = sqlite3_column_int64(q, 3), .remote_ip = sq_text(q, 4), .stamp_ms = sqlite3_column_int64(q, 5)};
		int stop = cb(ctx, &e);

		if (stop) {
			sqlite3_reset(q);
			return stop;
		}
	}
	return rc;
}

int sq_event_dead_list(struct fw_store *st, int64_t after_id, size_t limit, fw_dead_event_cb *cb, void *ctx, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	sqlite3_stmt *q = sq_ask(s, SQ_DEAD_EVENTS, "SELECT id, row, reason, at_ms FROM incoming_dead WHERE id > ?1 ORDER BY id LIMIT ?2",
		err, "ii", after_id, SQ_INT(limit ? (int64_t)limit : -1));
	int rc = q ? 1 : err->rc;

	while (rc == 1 && (rc = sq_row(s, q, err)) == 1) {
		struct fw_dead_event e = {.id = sqlite3_column_int64(q, 0), .row = sq_text(q, 1), .reason = sq_text(q, 2),
			.at_ms = sqlite3_column_int64(q, 3)};
		int stop = cb(ctx, &e);

		if (stop) {
			sqlite3_reset(q);
			return stop;
		}
	}
	return rc;
}

/* Among so many in front of the table. */
#define OLD(table, time) table " WHERE id IN (SELECT id FROM (SELECT id, " time " AS t FROM " table " ORDER BY id LIMIT ?1) WHERE t < ?2)"

int sq_event_prune(struct fw_store *st, int64_t before_ms, int64_t *n, struct fw_err *err)
{
	struct sqlite *s = sqlite_of(st);
	sqlite3_stmt *any = sq_ask(s, SQ_EVENT_OLD, "SELECT 1 FROM " OLD("incoming", "stamp") " UNION ALL SELECT 1 FROM "
		OLD("incoming_dead", "at_ms") " LIMIT 1", err, "ii", SQ_INT(FW_EVENT_STEP), before_ms);
	int rc = any ? sq_row(s, any, err) : err->rc;
	int64_t done = 0;

	if (rc <= 0)
		return rc; /* mostly: nobody is kept from writing for that */
	sqlite3_reset(any);
	rc = sq_begin(s, err);
	if (rc)
		return rc;
	rc = sq_do(s, SQ_EVENT_PRUNE, "DELETE FROM " OLD("incoming", "stamp"), err, "ii", SQ_INT(FW_EVENT_STEP), before_ms);
	done = rc ? 0 : sqlite3_changes64(s->db);
	rc = rc ? rc : sq_do(s, SQ_DEAD_PRUNE, "DELETE FROM " OLD("incoming_dead", "at_ms"), err, "ii", SQ_INT(FW_EVENT_STEP), before_ms);
	done += rc ? 0 : sqlite3_changes64(s->db);
	rc = sq_end(s, rc, err);
	*n = rc ? 0 : done;
	return rc;
}
