/* SPDX-License-Identifier: ISC */
/* Pushed events and dead letters. Event ids rise with time, so rows are appended. */
#include <assert.h>

#include "base/ids.h"
#include "store/sql/core.h"

#define PAGE 1000 /* rows per result */

static struct sql_value event_text(struct fw_str s)
{
	return SQL_TEXT(s.p ? s : FW_STR(""));
}

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
			SQL_V(SQL_INT(e->id), event_text(e->property), SQL_INT(e->section), SQL_INT(e->item),
				event_text(e->remote_ip), SQL_INT(e->stamp_ms)));
	return sql_rows_end(&r);
}

struct event_putting {
	bool keep;
	struct fw_event *event;
	struct fw_dead_letter *dead;
	size_t n, dead_n;
	size_t clash_n;
};

static int event_clash_row(void *ctx, const struct sql_row *row)
{
	struct event_putting *p = ctx;
	size_t nth = (size_t)sql_int(row, 0);

	assert(nth < p->n);
	p->event[nth].clashes = true;
	p->clash_n++;
	return 0;
}

/* After the rows were put: those whose id is that of another row. */
static int event_clashes_find(struct sql *s, struct event_putting *p, struct fw_err *err)
{
	struct sql_rows r = SQL_QUERY_ROWS(s, err, event_clash_row, p,
		"SELECT v.nth FROM {rows} incoming t WHERE t.id = v.event AND (t.property_section <> v.section OR"
		" t.property_id <> v.item OR t.stamp <> v.pushed OR t.property <> {raw v.name} OR"
		" t.remote_ip <> {raw v.ip})",
		"nth:i event:i section:i item:i pushed:i name:t ip:t");

	for (size_t i = 0; i < p->n; i++) {
		struct fw_event *e = &p->event[i];

		e->clashes = false;
		sql_rows_add(&r,
			SQL_V(SQL_INT(i), SQL_INT(e->id), SQL_INT(e->section), SQL_INT(e->item), SQL_INT(e->stamp_ms),
				event_text(e->property), event_text(e->remote_ip)));
	}
	return sql_rows_end(&r);
}

static int dead_letter_put_one(struct sql *s, struct fw_dead_letter *d, struct fw_err *err)
{
	int64_t same = 1;
	int rc = sql_exec(s,
		"INSERT INTO dead_letters (id, event, reason, at_ms) VALUES (?1, ?2, ?3, ?4) {upsert"
		" id} reason = {new reason}, at_ms = {new at_ms}",
		SQL_V(SQL_INT(d->id), SQL_TEXT(d->row), SQL_TEXT(d->reason), SQL_INT(d->at_ms)), err);

	rc = rc ? rc :
		  sql_query_int(s, "SELECT count(*) FROM dead_letters WHERE id = ?1 AND event = {raw ?2}",
			  SQL_V(SQL_INT(d->id), SQL_TEXT(d->row)), 0, &same, err);
	d->clashes = !same;
	return rc;
}

static int events_put_all(struct sql *s, void *ctx, struct fw_err *err)
{
	struct event_putting *p = ctx;
	int rc;

	p->clash_n = 0;
	rc = event_rows_put(s, p->keep, p->event, p->n, err);
	rc = rc || !p->keep ? rc : event_clashes_find(s, p, err);
	for (size_t i = 0; !rc && i < p->dead_n; i++) {
		rc = dead_letter_put_one(s, &p->dead[i], err);
		p->clash_n += p->dead[i].clashes;
	}
	return rc || !p->clash_n ? rc : store_event_clash(s->name, p->clash_n, err);
}

/*
 * Rows are mostly new, and skipping existing ids costs servers two or three times as much. So it is
 * done only after a batch was refused, as that batch may have been stored while its response was
 * lost (servers report a bad row, or a race). The second try also decides about rows that are
 * refused for another reason: a row that conflicts with a key that a user has added can never be
 * stored.
 */
int sql_event_put(struct store *st, struct fw_event *event, size_t n, struct fw_dead_letter *dead, size_t dead_n,
	struct fw_err *err)
{
	struct event_putting p = {false, event, dead, n, dead_n, 0};
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

/* ---- ids ------------------------------------------------------------------------------------- */

struct event_ids_lowest {
	int64_t number, high, now_ms;
};

static int event_ids_lowest_row(void *ctx, const struct sql_row *row)
{
	*(struct event_ids_lowest *)ctx = (struct event_ids_lowest){sql_int(row, 0), sql_int(row, 1), sql_int(row, 2)};
	return 0;
}

static int event_ids_stored_row(void *ctx, const struct sql_row *row)
{
	*(int64_t *)ctx = FW_MAX(sql_int(row, 0), sql_int(row, 1)); /* NULL: 0 */
	return 0;
}

/* Raise first above the rows whose ids are in the range: those of older programs, and of copies. */
static int event_ids_stored_skip(struct sql *s, int64_t *first, struct fw_err *err)
{
	int64_t id = 0;
	int rc;

	do {
		rc = *first > FW_IDS_SERIAL_MAX - FW_IDS_RANGE ? store_event_ids_over(s->name, err) : 0;
		rc = rc ? rc :
			  sql_query(s,
				  "SELECT (SELECT max(id) FROM incoming WHERE id >= ?1 AND id < ?2), (SELECT max(id)"
				  " FROM dead_letters WHERE id >= ?1 AND id < ?2)",
				  SQL_V(SQL_INT(*first * FW_IDS_NUMBERS),
					  SQL_INT((*first + FW_IDS_RANGE) * FW_IDS_NUMBERS)),
				  event_ids_stored_row, &id, err);
		*first = !rc && id ? id / FW_IDS_NUMBERS + 1 : *first;
	} while (!rc && id);
	return rc;
}

struct event_ids_reserving {
	const struct fw_id_range *wanted;
	struct fw_id_range range;
};

/* The count of clashes is a row that each of these transactions locks: they run one by one. */
static int event_ids_reserve_one(struct sql *s, void *ctx, struct fw_err *err)
{
	struct event_ids_reserving *p = ctx;
	struct event_ids_lowest l = {.number = 0};
	int64_t clash_n, first;
	int rc = sql_ids_reserve(s, "event_clashes", p->wanted->clash_n, &clash_n, err);

	rc = rc ? rc :
		  sql_query(s, "SELECT number, high, {now} FROM event_ids ORDER BY high, number DESC LIMIT 1", SQL_NONE,
			  event_ids_lowest_row, &l, err);
	first = FW_MAX(FW_MAX(l.high + 1, p->wanted->first), fw_ids_serial_at(l.now_ms));
	rc = rc ? rc : event_ids_stored_skip(s, &first, err);
	p->range = (struct fw_id_range){.number = l.number, .first = first, .last = first + FW_IDS_RANGE - 1};
	return rc ? rc :
		    sql_exec(s, "UPDATE event_ids SET high = ?2 WHERE number = ?1",
			    SQL_V(SQL_INT(l.number), SQL_INT(p->range.last)), err);
}

int sql_event_ids(struct store *st, struct fw_id_range *range, struct fw_err *err)
{
	struct event_ids_reserving p = {.wanted = range};
	int rc = sql_transaction(sql_of(st), event_ids_reserve_one, &p, err);

	if (!rc)
		*range = p.range;
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
