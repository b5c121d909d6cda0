/* SPDX-License-Identifier: ISC */
/* Pushed events and dead letters. Event ids rise with time, so rows are appended. */
#include <assert.h>

#include "store/sql/core.h"
#include "base/banned.h"

#define PAGE 1000 /* rows per result */

/* keep: skip ids that exist. */
static int event_rows_put(struct sql *s, bool keep, const struct fw_event *e, size_t n, struct fw_err *err)
{
#define INSERT "INSERT INTO incoming (id, property, property_section, property_id, remote_ip, stamp) {values}"
	struct sql_rows r = {.s = s,
		.err = err,
		.table = keep ? NULL : "incoming",
		.text = {keep ? INSERT " {keep id|incoming.id}" : INSERT,
			"id:i property:t property_section:i property_id:i remote_ip:t stamp:i"}};

	for (size_t i = 0; i < n; i++, e++)
		sql_rows_add(&r,
			SQL_V(SQL_INT(e->id), SQL_TEXT(e->property.p ? e->property : FW_STR("")), SQL_INT(e->section),
				SQL_INT(e->item), SQL_TEXT(e->remote_ip.p ? e->remote_ip : FW_STR("")),
				SQL_INT(e->stamp_ms)));
	return sql_rows_end(&r);
}

static int dead_letters_put(struct sql *s, const struct fw_dead_letter *d, size_t n, struct fw_err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < n; i++)
		rc = sql_exec(s,
			"INSERT INTO dead_letters (id, event, reason, at_ms) VALUES (?1, ?2, ?3, ?4) {upsert"
			" id} event = {new event}, reason = {new reason}, at_ms = {new at_ms}",
			SQL_V(SQL_INT(d[i].id), SQL_TEXT(d[i].row), SQL_TEXT(d[i].reason), SQL_INT(d[i].at_ms)), err);
	return rc;
}

struct event_putting {
	bool keep;
	const struct fw_event *event;
	const struct fw_dead_letter *dead;
	size_t n, dead_n;
};

static int events_put_all(struct sql *s, void *ctx, struct fw_err *err)
{
	const struct event_putting *p = ctx;
	int rc = event_rows_put(s, p->keep, p->event, p->n, err);

	return rc ? rc : dead_letters_put(s, p->dead, p->dead_n, err);
}

/*
 * Rows are mostly new, and skipping existing ids costs servers two or three times as much. So it is
 * done only after a batch was refused, as that batch may have been stored while its response was
 * lost (servers report a bad row, or a race). The second try also decides about rows that are
 * refused for another reason: a row that conflicts with a key that a user has added can never be
 * stored.
 */
int sql_event_put(struct store *st, const struct fw_event *event, size_t n, const struct fw_dead_letter *dead,
	size_t dead_n, struct fw_err *err)
{
	struct event_putting p = {false, event, dead, n, dead_n};
	struct sql *s = sql_of(st);
	int rc = sql_transaction(s, events_put_all, &p, err);

	if (n && (rc == FW_EINVAL || s->race == SQL_RACE_ROW)) {
		p.keep = true;
		rc = sql_transaction(s, events_put_all, &p, err);
		if (rc == FW_EAGAIN && s->race == SQL_RACE_ROW)
			rc = FW_EINVAL;
	}
	if (rc == FW_EINVAL && err)
		err->rc = rc;
	return rc;
}

int sql_event_remove(struct store *st, const int64_t *dead_id, size_t n, struct fw_err *err)
{
	struct sql_rows r = SQL_ROWS(sql_of(st), err, "DELETE FROM dead_letters {using} WHERE id = v.dead", "dead:i");

	r.rc = r.s->dialect->begin(r.s, err);
	if (r.rc)
		return r.rc;
	for (size_t i = 0; i < n; i++)
		sql_rows_add(&r, SQL_V(SQL_INT(dead_id[i])));
	return sql_end(r.s, sql_rows_end(&r), err);
}

struct event_listing {
	const struct store_event_query *q;
	size_t seen;
	int64_t last_id;
};

static int event_list_row(void *ctx, const struct sql_row *row)
{
	struct event_listing *l = ctx;
	struct fw_event e = {.id = sql_int(row, 0),
		.property = sql_str(row, 1),
		.section = sql_int(row, 2),
		.item = sql_int(row, 3),
		.remote_ip = sql_str(row, 4),
		.stamp_ms = sql_int(row, 5)};

	l->seen++;
	l->last_id = e.id;
	return l->q->event(l->q->ctx, &e);
}

static int dead_letter_row(void *ctx, const struct sql_row *row)
{
	struct event_listing *l = ctx;
	struct fw_dead_letter d = {
		.id = sql_int(row, 0), .row = sql_str(row, 1), .reason = sql_str(row, 2), .at_ms = sql_int(row, 3)};

	l->seen++;
	l->last_id = d.id;
	return l->q->dead(l->q->ctx, &d);
}

int sql_event_list(struct store *st, const struct store_event_query *q, struct fw_err *err)
{
	struct event_listing l = {.q = q, .last_id = q->after_id};
	size_t left = q->limit ? q->limit : SIZE_MAX;
	int rc;

	assert(!q->event != !q->dead); /* exactly one */
	do {
		l.seen = 0;
		rc = sql_query(sql_of(st),
			q->event ?
				"SELECT id, property, property_section, property_id, remote_ip,"
				" stamp FROM incoming WHERE id > ?1 ORDER BY id LIMIT ?2" :
				"SELECT id, event, reason, at_ms FROM dead_letters WHERE id > ?1 ORDER BY id LIMIT ?2",
			SQL_V(SQL_INT(l.last_id), SQL_INT(FW_MIN(left, (size_t)PAGE))),
			q->event ? event_list_row : dead_letter_row, &l, err);
		left -= FW_MIN(l.seen, left);
	} while (!rc && l.seen == PAGE && left);
	return rc;
}
